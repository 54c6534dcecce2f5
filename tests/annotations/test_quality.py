"""Practice rounds and hidden gold items."""

from datetime import timedelta

import pytest

from annotations.assignment import quality
from annotations.assignment.errors import PracticeFailed, PracticeIsOver, Stopped
from annotations.assignment.leases import next_assignment
from annotations.assignment.quality import gold_block_size, lift_stop, places_in_block, qualify, repeat_practice
from annotations.assignment.queries import progress_of
from annotations.ballots import PRESENTED
from annotations.labels.actions import change_label, submit_label
from annotations.labels.verdicts import disagreement, is_right, majority_word, verdict_key
from annotations.models import Campaign, CampaignItem, Label, Membership

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]
CANONICAL = {"first": "second", "second": "first"}


def answer(assignment, choice, now):
    """Give a canonical choice, whichever way the pair was shown."""
    choice = CANONICAL[choice] if assignment.order == "10" and choice in CANONICAL else choice
    return submit_label(assignment=assignment, verdict={"choice": PRESENTED[choice]}, now=now).label


def known(campaign, places, *, practice):
    """These places of the campaign get a right verdict: first."""
    ids = CampaignItem.objects.filter(campaign=campaign, position__in=places).values_list("pk", flat=True)
    CampaignItem.objects.filter(pk__in=list(ids)).update(gold={"choice": "first"}, practice=practice)


def get(campaign, annotator, now, **options):
    return next_assignment(campaign=campaign, annotator=annotator, now=now, **options)


class TestPractice:
    @pytest.fixture
    def practice(self, campaign_of):
        campaign, people = campaign_of(6, 2, practice_pass=0.6)
        known(campaign, [1, 3, 5], practice=True)
        return campaign, people

    def go(self, campaign, annotator, choices, now):
        for choice in choices:
            assignment = get(campaign, annotator, now)
            assert assignment.campaign_item.practice
            assert get(campaign, annotator, now, prefetch=True) is None
            answer(assignment, choice, now)

    def test_it_comes_first_for_everybody_and_then_the_campaign(self, practice, now):
        campaign, people = practice
        for annotator in people:
            assert progress_of(campaign=campaign, annotator=annotator).total == 3
            self.go(campaign, annotator, ["first", "first", "tie"], now)
            assert not get(campaign, annotator, now).campaign_item.practice
            progress = progress_of(campaign=campaign, annotator=annotator)
            assert (progress.done, progress.total) == (0, 3 if annotator == people[0] else 2)
            assert Membership.objects.get(annotator=annotator).qualified

    def test_below_the_mark_nothing_is_handed_out_until_they_try_again(self, practice, now):
        campaign, (one, _) = practice
        self.go(campaign, one, ["second", "tie", "first"], now)
        with pytest.raises(PracticeFailed):
            get(campaign, one, now)
        member = Membership.objects.get(annotator=one)
        repeat_practice(member=member)
        assert not Label.objects.exists()
        assert set(CampaignItem.objects.values_list("taken", flat=True)) == {0}
        self.go(campaign, one, ["first"] * 3, now)
        assert get(campaign, one, now)
        member.refresh_from_db()
        assert [(one["right"], one["of"]) for one in member.tries] == [(1, 3), (3, 3)]

    def test_a_curator_can_let_somebody_in(self, practice, now):
        campaign, (one, _) = practice
        self.go(campaign, one, ["tie"] * 3, now)
        qualify(member=Membership.objects.get(annotator=one))
        assert not get(campaign, one, now).campaign_item.practice

    def test_what_was_seen_as_wrong_cannot_be_put_right(self, practice, now):
        campaign, (one, _) = practice
        assignment = get(campaign, one, now)
        answer(assignment, "tie", now)
        assignment.refresh_from_db()
        with pytest.raises(PracticeIsOver):
            change_label(assignment=assignment, verdict={"choice": "left"}, now=now)


class TestGold:
    @pytest.fixture
    def gold(self, campaign_of):
        campaign, people = campaign_of(30, 2, overlap=2)
        known(campaign, range(20, 30), practice=False)
        Campaign.objects.update(gold_rate=0.25, gold_least=2, gold_pass=0.75)
        campaign.refresh_from_db()
        return campaign, people

    def go(self, campaign, annotator, now, choose):
        """Label until nothing is left; whether each item was gold, and what progress said before it."""
        was, shown = [], []
        while (assignment := get(campaign, annotator, now)) is not None:
            progress = progress_of(campaign=campaign, annotator=annotator)
            shown.append((progress.done, progress.total))
            was.append(assignment.campaign_item.gold is not None)
            answer(assignment, choose(was[-1]), now)
        return was, shown

    def test_it_comes_at_the_rate_to_everybody_at_places_of_their_own(self, gold, now):
        campaign, (one, two) = gold
        (first, shown), (second, _) = (self.go(campaign, who, now, lambda _: "first") for who in (one, two))
        for was in (first, second):
            assert was.count(False) == 20
            blocks = [was[start : start + 4] for start in range(0, len(was) - 3, 4)]
            assert all(block.count(True) == 1 for block in blocks)
        assert first != second
        counts = CampaignItem.objects.filter(gold__isnull=True).values_list("taken", flat=True)
        assert set(counts) == {2}
        # No count tells which item was gold: each raises what is done by one, and the whole stays.
        assert [done for done, _ in shown] == list(range(len(shown)))
        assert len({total for _, total in shown}) == 1

    @pytest.mark.parametrize("known", [2, 99])
    @pytest.mark.parametrize("lacking", [0, 1, 2])
    @pytest.mark.parametrize("others", [0, 1, 2, 3, 20])
    def test_what_is_ahead_is_what_comes_wherever_the_lot_puts_it(self, others, lacking, known):
        for seed in range(50):
            campaign, had, new, came = Campaign(seed=seed, gold_rate=0.25), 0, others, []
            left, lacks = {"gold": known, "decoy": known}, lacking
            while any(left.values()):
                block, place = divmod(had, 4)
                kind = places_in_block(campaign, 1, block).get(place, "")
                kind = kind if kind and left[kind] else "" if new else "decoy" if lacks else None
                if kind is None:
                    break
                came.append((had, new, dict(left), lacks, bool(kind)))
                due = places_in_block(campaign, 1, block).get(place) == kind
                if kind:
                    left[kind] -= 1
                    lacks = min(lacks, left["decoy"]) if due else lacks - 1
                new, had = new - (not kind), had + 1
            total = sum(known for *_, known in came)
            for index, (before, fresh, unseen, lack, _) in enumerate(came):
                ahead = quality.ahead_of(campaign, 1, assigned=before, new=fresh, unseen=unseen, lacking=lack)
                assert sum(known for *_, known in came[:index]) + ahead == total

    def test_below_the_mark_there_is_a_warning_then_a_stop_and_a_curator_lets_them_go_on(self, gold, now):
        campaign, (one, _) = gold
        member = Membership.objects.get(annotator=one)
        wrong = 0
        while wrong < 4:
            assignment = get(campaign, one, now)
            is_gold = assignment.campaign_item.gold is not None
            answer(assignment, "tie" if is_gold else "first", now)
            wrong += is_gold
            now += timedelta(seconds=1)
            member.refresh_from_db()
            assert bool(member.warned_at) == (wrong >= 2)
            assert bool(member.stopped_at) == (wrong >= 4)
        with pytest.raises(Stopped, match="known to be right"):
            get(campaign, one, now)
        lift_stop(member=member, now=now)
        assert get(campaign, one, now)

    def test_good_work_hears_nothing(self, gold, now):
        campaign, (one, _) = gold
        self.go(campaign, one, now, lambda gold: "first" if gold else "tie")
        member = Membership.objects.get(annotator=one)
        assert member.warned_at is None

    def test_places_are_drawn_by_lot(self, gold):
        campaign, (one, _) = gold
        size = gold_block_size(campaign)
        places = [tuple(places_in_block(campaign, one.pk, block)) for block in range(400)]
        assert {places.count((gold, decoy)) > 10 for gold in range(size) for decoy in range(size) if gold != decoy} == {
            True
        }


class TestVerdicts:
    @pytest.mark.parametrize(
        ("given", "gold", "right"),
        [
            ({"choice": "tie"}, {"choice": "tie"}, True),
            ({"choice": "undecided", "situation": 2}, {"choice": "undecided"}, True),
            ({"choice": "undecided", "situation": 2}, {"choice": "undecided", "situation": 1}, False),
            ({"score": 4.0}, {"score": 5}, False),
            ({"score": 4.0}, {"score": 5, "within": 1}, True),
            ({"ranking": [[1], [0, 2]]}, {"ranking": [[1], [2, 0]]}, True),
            ({"ranking": [[1], [0], [2]]}, {"ranking": [[1], [2], [0]]}, False),
            ({"parts": {"a": 2, "b": 1}}, {"parts": {"b": 1.0, "a": 2.0}}, True),
            ({"parts": {"a": 1, "b": 2}}, {"parts": {"a": 2, "b": 1}}, False),
            ({"parts": {"a": 1.0, "b": 2.5}}, {"parts": {"a": 2, "b": 1}, "within": 0.5}, True),
            ({"option": "C"}, {"option": "B"}, False),
            ({"answer": False}, {"answer": False}, True),
            ({"agree": True}, {"agree": False}, False),
            ({}, {"choice": "tie"}, False),
            ({"choice": "tie"}, {}, False),
        ],
    )
    @pytest.mark.one_database
    def test_a_verdict_is_right_or_not(self, given, gold, right):
        assert is_right(given, gold) is right

    @pytest.mark.one_database
    def test_false_is_a_verdict_and_nothing_is_none(self):
        assert verdict_key({"answer": False}) == "no"
        assert verdict_key({"answer": None, "choice": None}) is None

    @pytest.mark.one_database
    def test_majority_and_dispute(self):
        assert majority_word(["a", "a", "b"]) == "a"
        assert majority_word(["a", "b"]) is None
        assert majority_word([]) is None
        assert disagreement(["a"]) is None
        assert disagreement(["a", "a"]) == 0
        assert disagreement(["a", "a", "b"]) == pytest.approx(2 / 3)
