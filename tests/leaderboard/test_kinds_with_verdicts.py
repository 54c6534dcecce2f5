"""Which kinds of verdicts a benchmark has is asked of all at once, and found as each kind by itself finds it."""

import pytest

from annotations.models import Label
from bank import guard
from leaderboard import kinds
from tests.leaderboard.conftest import judgments
from tests.leaderboard.test_graded_boards import scores

pytestmark = pytest.mark.django_db


def test_each_kind_has_verdicts_where_it_finds_labels_or_judgments_of_its_own(voted, brought):
    brought("judgments", [*judgments("keen", noise=0.6, seed=2), *scores(0.5, 1, judge="marker")])
    found = {name for name, kind in kinds.KINDS.items() if kinds.has_verdicts(voted, kind, staff=True)}
    with guard.working():
        by_people = {name for name, kind in kinds.KINDS.items() if kind.labels().filter(item__sample__benchmark=voted)}
    assert found == {"pair", "score"}
    assert by_people == {"pair"}


@pytest.mark.parametrize("protocol", ["pair", "reference-score", "score", "somebody-elses"])
def test_labels_of_a_shared_column_are_of_the_kind_of_their_campaign(protocol, voted):
    with guard.working():
        labels = Label.objects.filter(campaign__benchmark=voted)
        labels.update(choice=None, score=3)
        voted.campaigns.update(protocol=protocol)
        by_people = {name for name, kind in kinds.KINDS.items() if kind.labels().exists()}
    found = {name for name, kind in kinds.KINDS.items() if kind.column == "score" and kind.is_of(protocol)}
    assert found == by_people
