"""Labels: one per annotator and item, in canonical order, every change kept, every retry harmless."""

import math
from datetime import timedelta

import pytest

from annotations import ballots
from annotations.assignment.errors import AlreadyLabelled, KeyReused, StaleEdit
from annotations.assignment.leases import next_assignment
from annotations.ballots import BadVerdict
from annotations.labels.actions import change_label, save_draft, submit_label
from annotations.models import Assignment, Label, LabelRevision
from tests.annotations.conftest import at_once

pytestmark = pytest.mark.both_databases

LATER = timedelta(minutes=5)


@pytest.fixture
def held(campaign_of, now):
    campaign, (annotator, _) = campaign_of()
    return next_assignment(campaign=campaign, annotator=annotator, now=now)


def shown(assignment, order):
    Assignment.objects.filter(pk=assignment.pk).update(order=order)
    assignment.order = order
    return assignment


@pytest.mark.django_db
class TestCanonicalOrder:
    @pytest.mark.parametrize(
        ("order", "choice", "stored"),
        [
            ("01", "left", "first"),
            ("01", "right", "second"),
            ("10", "left", "second"),
            ("10", "right", "first"),
            ("10", "tie", "tie"),
        ],
    )
    def test_what_was_seen_is_stored_in_canonical_order(self, held, now, order, choice, stored):
        label = submit_label(assignment=shown(held, order), verdict={"choice": choice}, now=now).label
        label.refresh_from_db()
        assert label.choice == stored
        assert ballots.presented({"choice": label.choice}, order)["choice"] == choice

    @pytest.mark.parametrize("order", ["01", "10"])
    def test_undecided_keeps_its_situation(self, held, now, order):
        label = submit_label(
            assignment=shown(held, order), verdict={"choice": "undecided", "situation": 2}, now=now
        ).label
        assert (label.choice, label.situation) == ("undecided", 2)


@pytest.mark.django_db
class TestAllowedVerdicts:
    @pytest.mark.parametrize(
        ("verdict", "field"),
        [
            ({}, "choice"),
            ({"choice": "first"}, "choice"),
            ({"choice": "both"}, "choice"),
            ({"choice": ["left"]}, "choice"),
            ({"choice": "undecided"}, "situation"),
            ({"choice": "undecided", "situation": 3}, "situation"),
            ({"choice": "undecided", "situation": True}, "situation"),
            ({"choice": "left", "situation": 1}, "situation"),
            ({"choice": "left", "score": 5}, "score"),
            ({"choice": "left", "ranking": [0, 1]}, "ranking"),
        ],
    )
    def test_what_pairwise_criteria_does_not_take(self, held, now, verdict, field):
        with pytest.raises(BadVerdict) as caught:
            submit_label(assignment=held, verdict=verdict, now=now)
        assert caught.value.field == field
        held.refresh_from_db()
        assert held.state == "leased"

    def test_the_protocol_pair_knows_no_undecided(self, campaign_of, now):
        campaign, (annotator, _) = campaign_of(protocol="pair")
        held = next_assignment(campaign=campaign, annotator=annotator, now=now)
        with pytest.raises(BadVerdict, match="left, right, tie"):
            submit_label(assignment=held, verdict={"choice": "undecided"}, now=now)
        assert submit_label(assignment=held, verdict={"choice": "tie"}, now=now).created

    @pytest.mark.parametrize(
        ("options", "field"),
        [
            ({"comment": "x" * 5001}, "comment"),
            ({"comment": "a\x00b"}, "comment"),
            ({"comment": "half \ud83d"}, "comment"),
            ({"flags": ["f" * 61]}, "flags"),
            ({"flags": [str(n) for n in range(13)]}, "flags"),
            ({"flags": "other"}, "flags"),
            ({"seconds": math.nan}, "seconds"),
            ({"seconds": "12"}, "seconds"),
            ({"confidence": 1.5}, "confidence"),
            ({"idempotency_key": "k" * 65}, "idempotency_key"),
        ],
    )
    def test_what_no_label_takes(self, held, now, options, field):
        with pytest.raises(BadVerdict) as caught:
            submit_label(assignment=held, verdict={"choice": "left"}, now=now, **options)
        assert caught.value.field == field

    @pytest.mark.parametrize(("sent", "stored"), [(-5, 0), (12.5, 12.5), (10**9, 30 * 60), (None, None)])
    def test_seconds_lie_within_the_lease(self, held, now, sent, stored):
        label = submit_label(assignment=held, verdict={"choice": "left"}, seconds=sent, now=now).label
        assert label.seconds == stored


@pytest.mark.django_db
class TestRetries:
    @pytest.mark.check("G1")
    def test_the_same_key_gives_the_same_label(self, held, now):
        first = submit_label(assignment=held, verdict={"choice": "left"}, idempotency_key="a", now=now)
        again = submit_label(assignment=held, verdict={"choice": "right"}, idempotency_key="a", now=now + LATER)
        assert (first.created, again.created) == (True, False)
        assert again.label == first.label
        assert again.label.choice == first.label.choice

    def test_another_key_is_a_second_label_and_refused(self, held, now):
        submit_label(assignment=held, verdict={"choice": "left"}, idempotency_key="a", now=now)
        for key in ("b", ""):
            with pytest.raises(AlreadyLabelled):
                submit_label(assignment=held, verdict={"choice": "left"}, idempotency_key=key, now=now)
        assert Label.objects.count() == 1

    def test_a_key_of_another_assignment_stores_nothing(self, campaign_of, now):
        campaign, (annotator, _) = campaign_of()
        one = next_assignment(campaign=campaign, annotator=annotator, now=now)
        two = next_assignment(campaign=campaign, annotator=annotator, now=now, prefetch=True)
        submit_label(assignment=one, verdict={"choice": "left"}, idempotency_key="a", now=now)
        with pytest.raises(KeyReused):
            submit_label(assignment=two, verdict={"choice": "left"}, idempotency_key="a", now=now)
        assert Label.objects.count() == 1
        two.refresh_from_db()
        assert two.state == "leased"

    def test_a_retry_is_answered_even_after_the_campaign_closed(self, held, now):
        submit_label(assignment=held, verdict={"choice": "left"}, idempotency_key="a", now=now)
        campaign = held.campaign_item.campaign
        campaign.state = "closed"
        campaign.save()
        again = submit_label(assignment=held, verdict={"choice": "left"}, idempotency_key="a", now=now)
        assert not again.created


@pytest.mark.django_db(transaction=True)
@pytest.mark.check("G1")
def test_a_retry_ten_times_at_once_never_stores_a_second_label(campaign_of, now):
    campaign, (annotator, _) = campaign_of()
    held = next_assignment(campaign=campaign, annotator=annotator, now=now)

    def send(number):
        assignment = Assignment.objects.select_related("annotator", "campaign_item__campaign").get(pk=held.pk)
        key = "same" if number < 8 else f"other-{number}"
        try:
            return submit_label(assignment=assignment, verdict={"choice": "tie"}, idempotency_key=key, now=now).created
        except AlreadyLabelled:
            return None

    answers = at_once(send, range(10))
    assert answers.count(True) == 1
    assert Label.objects.count() == 1
    assert held.campaign_item.__class__.objects.get(pk=held.campaign_item_id).taken == 1


@pytest.mark.django_db
class TestChanges:
    @pytest.fixture
    def label(self, held, now):
        return submit_label(
            assignment=held, verdict={"choice": "tie"}, comment="even", flags=["other"], seconds=10, now=now
        ).label

    @pytest.mark.check("G10")
    def test_a_change_keeps_what_was(self, held, label, now):
        changed = change_label(
            assignment=held, verdict={"choice": "undecided", "situation": 1}, comment="no", seconds=15, now=now + LATER
        )
        assert changed
        label.refresh_from_db()
        assert (label.choice, label.situation, label.comment, label.flags) == ("undecided", 1, "no", [])
        assert (label.created_at, label.changed_at) == (now, now + LATER)
        revision = LabelRevision.objects.get()
        assert revision.verdict == {"choice": "tie"}
        assert (revision.comment, revision.flags, revision.seconds) == ("even", ["other"], 10)
        assert (revision.by, revision.given_at) == (held.annotator, now)

    def test_the_same_again_is_no_change(self, held, label, now):
        same = {"verdict": {"choice": "tie"}, "comment": "even", "flags": ["other"]}
        assert not change_label(assignment=held, now=now + LATER, **same)
        assert not LabelRevision.objects.exists()

    def test_an_edit_of_what_another_tab_has_changed_is_refused(self, held, label, now):
        change_label(assignment=held, verdict={"choice": "left"}, now=now + LATER, seen=now)
        with pytest.raises(StaleEdit):
            change_label(assignment=held, verdict={"choice": "right"}, now=now + 2 * LATER, seen=now)
        # The first one again, after a lost reply: it is stored already.
        assert not change_label(assignment=held, verdict={"choice": "left"}, now=now + 2 * LATER, seen=now)

    def test_a_draft_that_comes_after_the_label_is_refused(self, held, label, now):
        with pytest.raises(AlreadyLabelled):
            save_draft(assignment=held, draft={"comment": "late"}, now=now)
        save_draft(assignment=held, draft={"comment": "a change"}, now=now, editing=True)
        held.refresh_from_db()
        assert held.draft == {"comment": "a change"}
