"""An installation of before knows after the update what it would know had the facts been noted from the start."""

import pytest
from django.apps import apps
from django.utils import timezone

import bank.criteria
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import make_annotator
from annotations.models import Campaign
from bank import exposure
from bank.models import Item, Response, Sample
from bank.samples.items import make_items, plan_items
from evalsite.management.commands import migrate
from judging.models import Run
from judging.runs import actions
from tests.access.test_sealing import for_the_key, judged, pairs_with, questions, secrets_of, submit
from tests.bank.test_submissions import migration
from tests.hidden import change, criteria
from tests.judging.conftest import baseline, judge_at, work_on  # noqa: F401 (fixtures)

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1", "M2"), pytest.mark.both_databases]
FACTS = (
    (Sample, "closed", exposure.NOTHING),
    (Run, "held", exposure.NOTHING),
    (Campaign, "held", exposure.NOTHING),
    (Item, "blind", False),
    (Item, "outside", False),
    (Response, "origin", Response.Origin.STAFF),
)
WORDS = [
    "keyed@1: for staff alone from now on are 12 single verdicts of judges who were, or may have been, shown keys or "
    "weights; 16 answers of models to questions whose key is not public. "
    "`manage.py publish keyed@1 --keys` opens its keys to everybody, for good.",
    "labelled@1: for staff alone from now on are 3 items, votes on them and who wrote their answers, until the blind "
    "campaign that asks about them closes.",
]


def facts():
    return {(model.__name__, name): dict(model.objects.values_list("pk", name)) for model, name, _ in FACTS}


def as_before():
    for model, name, default in FACTS:
        model.objects.update(**{name: default})


def update():
    migration("bank", "sealing").close(apps, None)
    migration("bank", "sealing").note_outside(apps, None)
    migration("annotations", "sealing").note_held(apps, None)
    migration("annotations", "sealing").note_blind(apps, None)
    migration("judging", "sealing").note_held(apps, None)


@pytest.fixture
def world(people, baseline, work_on):  # noqa: F811
    """Verdicts from a file on questions with keys, a judge shown criteria of which one was opened since,
    components that a blind campaign shows, and a submission.
    """
    keyed = questions("keyed", "ABCD")
    pairs_with(keyed, "A")
    judged(keyed, for_the_key(secrets_of(keyed)))
    texts = questions("texts", ["It counts."] * 3, kind="guideline", models=("lark", "wren"))
    make_items(plan_items(kind="pair", benchmark=texts))
    work_on(actions.start_run(judge=baseline("longest"), benchmark=texts, protocol="pairwise-criteria"))
    opened = texts.samples.first()
    row = {"key": "hidden", "kind": "guideline", "category": "", "weight": None, "text": "It counts."}
    bank.criteria.edit(user=people["curator"], sample=opened, rows=[row | {"shown_to": "public"}])
    bank.criteria.note_closed(texts.samples.all())
    labelled = questions("labelled", ["Two words."] * 3, kind="component", models=("lark",))
    change(criteria(sample__benchmark=labelled), shown_to="campaign", weight=1.0)
    make_items(plan_items(kind="score", benchmark=labelled))
    make_annotator(people["annotator"])
    campaign = make_campaign(
        name="Parts", benchmark=labelled, protocol="components", annotators=[people["annotator"]], shows_criteria=True
    )
    shown = next_assignment(campaign=campaign, annotator=people["annotator"].annotator, now=timezone.now())
    bank.criteria.for_assignment(shown)
    submit(people, texts, "texts-finch", "I counted them.")
    make_items(plan_items(kind="pair", benchmark=texts, models=["texts-finch"], anchor="texts-lark"))


def test_the_update_notes_what_would_have_been_noted(world):
    noted = facts()
    for model, name, default in FACTS:
        assert any(value != default for value in noted[model.__name__, name].values()), (model, name)
    as_before()
    update()
    assert facts() == noted


def test_the_update_says_of_each_benchmark_what_it_closed(world):
    assert list(migrate.closed_in_words()) == WORDS
