"""What workers agree upon in the database: who makes which calls, how many at once, which model answers."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.utils import timezone

from judging.endpoints.answers import Answer, Outcome
from judging.models import Attempt, JudgeShare, Judgment, Run, RunHold
from judging.runs.following import follow
from judging.work import budget, curve, leases, run_kinds, store
from judging.work.identity import Reported
from tests.judging.small import make_benchmark

pytestmark = pytest.mark.both_databases

NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def workers(start, judge_at):
    """Some workers at one run of 24 judgments: the same run, each with a hold of its own."""

    def make(number: int) -> list[Run]:
        run = start(judge_at(NOWHERE), on=make_benchmark(samples=12, slug="many"))
        found = [Run.objects.get(pk=run.pk) for _ in range(number)]
        assert all(leases.take(one) for one in found)
        return found

    return make


def claim(run: Run, *, after: int = 0, most: int = 3) -> run_kinds.Page | None:
    return leases.next_claim(run, kind=run_kinds.run_kind(run), after=after, most=most)


def keys(*claims: run_kinds.Page | None) -> list[tuple]:
    return [(job.subject.item_id, job.order) for one in claims if one for job in one.jobs]


class Worker:
    """A worker as far as money goes: it begins calls while there is room, and tells of them by its commits."""

    def __init__(self, run: Run) -> None:
        assert leases.take(run)
        self.run, self.spending = run, budget.Spending(run)
        self.batch, self.in_flight = store.Batch(), 0

    def begin(self, most: int) -> None:
        """Begin so many calls, or as many as there is room for."""
        for _ in range(most):
            if not self.spending.has_room(self.in_flight):
                return
            self.in_flight += 1

    def end(self) -> None:
        """All calls are answered, at what a call takes."""
        for _ in range(self.in_flight):
            _, counted = self.spending.pay(Answer(Outcome.OK))
            self.batch.calls += 1
            self.batch.priced += 1
            self.batch.spent += counted
        self.in_flight = 0

    def tell(self) -> None:
        batch, self.batch = self.batch, store.Batch()
        batch.in_flight = self.in_flight
        seen = store.commit(run=self.run, batch=batch)
        self.spending.see(spent=seen.spent, budget=seen.budget, elsewhere=seen.elsewhere)


@pytest.mark.check("F7")
def test_what_one_worker_has_claimed_no_other_gets(workers):
    one, two = workers(2)
    claims = [claim(one), claim(two), claim(one), claim(two), claim(one)]
    assert claims[-1] is None
    assert len(keys(*claims)) == len(set(keys(*claims))) == 24
    assert not leases.finish(one, kind=run_kinds.run_kind(one))


def test_a_claim_is_free_again_when_its_worker_has_left_or_fell_silent(workers):
    one, two, three = workers(3)
    first, second = claim(one), claim(two)
    assert leases.leave(run=one, state=Run.State.QUEUED)
    assert keys(claim(three)) == keys(first)
    two.holds.filter(pk=two.hold.pk).update(until=timezone.now() - timedelta(seconds=1))
    leases.finish(three, kind=run_kinds.run_kind(three))  # looks who fell silent
    assert keys(claim(three)) == keys(second)
    assert Run.objects.get(pk=one.pk).state == Run.State.RUNNING  # others went on with it


def test_a_run_is_finished_only_when_all_of_it_is_stored_by_whomever(workers):
    one, two = workers(2)
    for run in (one, two):
        part = claim(run, most=6)
        rows = [Judgment(run=run, item_id=item, order=order, choice="first") for item, order in keys(part)]
        assert not leases.finish(run, kind=run_kinds.run_kind(run))
        store.commit(run=run, batch=store.Batch(rows=rows, claims=[part.claim]))
    assert leases.finish(two, kind=run_kinds.run_kind(two))
    assert leases.finish(one, kind=run_kinds.run_kind(one))
    after = Run.objects.get(pk=one.pk)
    assert (after.state, after.verdicts, after.claims.count()) == (Run.State.FINISHED, 24, 0)


def test_workers_whose_first_replies_name_different_models_mix_no_verdicts(workers):
    one, two = workers(2)
    seen = []
    for run, model in ((one, "kestrel-1"), (two, "kestrel-2")):
        reported, part = Reported(run), claim(run)
        assert reported.accepts(Answer(Outcome.OK, model=model))
        item, order = keys(part)[0]
        batch = store.Batch(rows=[Judgment(run=run, item_id=item, order=order, choice="first", reported_model=model)])
        batch.replies[model, ""] += 1
        batch.calls, batch.opened = 1, reported.opened
        seen.append(store.commit(run=run, batch=batch).other_model)
    run = Run.objects.get(pk=one.pk)
    assert seen == [False, True]
    assert [row.reported_model for row in run.judgments.all()] == ["kestrel-1"]
    assert (run.reported_model, run.calls) == ("kestrel-1", 2)  # the call was made, and is paid for
    assert [entry["model"] for entry in run.reported] == ["kestrel-1"]


def test_a_batch_whose_commit_was_never_heard_of_counts_once(workers):
    (run,) = workers(1)
    part = claim(run, most=1)
    item, order = keys(part)[0]
    batch = store.Batch(rows=[Judgment(run=run, item_id=item, order=order, choice="first")], calls=2, spent=0.5)
    failed = Attempt(run=run, item_id=item, order=order, repeat=0, at=timezone.now(), outcome="transient", seconds=1)
    batch.number, batch.attempts = 1, [failed]
    first = store.commit(run=run, batch=batch)
    assert store.commit(run=run, batch=batch, again=True) == first
    after = Run.objects.get(pk=run.pk)
    assert (after.calls, after.spent, after.verdicts, Attempt.objects.count()) == (2, 0.5, 1, 1)


def test_a_batch_that_the_database_threw_away_is_stored_when_it_is_tried_again(workers):
    (run,) = workers(1)
    batch = store.Batch(calls=1, spent=0.5, number=1)
    store.commit(run=run, batch=batch)
    batch = store.Batch(calls=1, spent=0.25, number=2)
    with transaction.atomic():
        store.commit(run=run, batch=batch)
        transaction.set_rollback(True)
    assert store.commit(run=run, batch=batch, again=True).spent == 0.75


@pytest.mark.check("F9")
@pytest.mark.parametrize("untold", [0, 3])
def test_two_workers_overspend_a_budget_by_no_more_than_the_calls_begun_since_they_last_told(untold, start, judge_at):
    priced = judge_at(NOWHERE, price_in=1.0, price_out=1.0)
    run = start(priced, budget=1.0)
    each = budget.typical_call(run)
    Run.objects.filter(pk=run.pk).update(budget=10.5 * each)
    one, two = (Worker(Run.objects.get(pk=run.pk)) for _ in range(2))
    one.begin(6)
    one.tell()
    two.tell()
    one.begin(untold)
    two.begin(1000)
    assert two.in_flight == 4  # the budget pays for ten, and the other has told of six
    two.tell()
    for worker in (one, two):
        worker.end()
        worker.tell()
        worker.begin(1000)
        assert worker.in_flight == 0
    assert Run.objects.get(pk=run.pk).spent == pytest.approx((10 + untold) * each)


def test_after_an_outage_the_first_worker_back_counts_the_calls_of_the_others_and_ends_no_hold(start, judge_at):
    run = start(judge_at(NOWHERE, price_in=1.0, price_out=1.0), budget=1.0)
    one, two = (Worker(Run.objects.get(pk=run.pk)) for _ in range(2))
    for worker in (one, two):
        worker.begin(3)
        worker.tell()
    run.holds.update(until=timezone.now() - timedelta(seconds=1))
    one.tell()
    assert (one.spending.elsewhere, run.holds.count()) == (3, 2)
    two.end()
    two.tell()
    assert Run.objects.get(pk=run.pk).spent == pytest.approx(3 * budget.typical_call(run))


def test_shares_of_a_judge_never_exceed_its_concurrency_and_go_where_calls_are(judge_at):
    judge = judge_at(NOWHERE, concurrency=5)

    def share(holder: str, *, used: int, wants: bool = True) -> int:
        found = leases.share(judge_id=judge.pk, holder=holder, wants=wants, used=used)
        assert sum(JudgeShare.objects.values_list("calls", flat=True)) <= 5
        return found.calls

    assert share("a", used=0) == 5
    assert share("b", used=0) == 0  # nothing is free before somebody has given it back
    assert share("a", used=5) == 3
    assert share("b", used=0) == 0  # it has three to be, and five in flight
    assert share("a", used=4) == 3
    assert share("b", used=0) == 1
    assert share("a", used=3) == 3
    assert share("b", used=1) == 2
    assert share("c", used=0) == 0
    assert share("a", used=3, wants=False) == 0
    assert share("a", used=0, wants=False) == 0
    assert share("b", used=2) == 3
    assert share("c", used=0) == 2
    JudgeShare.objects.filter(holder="b").update(until=timezone.now() - timedelta(seconds=1))
    assert share("c", used=2) == 5  # b fell silent


def test_a_worker_that_is_asked_to_pause_tells_the_others(judge_at):
    judge = judge_at(NOWHERE)
    common = {"judge_id": judge.pk, "wants": True, "used": 0}
    leases.share(**common, holder="a", closed_for=7.0)
    assert 5 < leases.share(**common, holder="b").closed_for <= 7


def test_the_curves_of_several_workers_add_up():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    one, two = curve.new(at), curve.new(at + timedelta(seconds=3))
    for seconds in range(400):
        curve.extend(one, 2, now=at + timedelta(seconds=seconds))
    for seconds in range(3, 10):
        curve.extend(two, 1, now=at + timedelta(seconds=seconds))
    both = curve.merged(one, {}, two)
    assert sum(both["points"]) == 807
    assert (both["from"], both["width"]) == (one["from"], one["width"])
    assert sum(both["points"][:3]) == sum(one["points"][:3]) + 7
    assert curve.merged() == {}


def test_the_hold_of_a_worker_that_died_ends_with_the_run_and_its_calls_count_as_lost(workers):
    left, last = workers(2)
    long_ago = timezone.now() - timedelta(minutes=20)
    RunHold.objects.filter(pk=left.hold.pk).update(until=long_ago, in_flight=2)
    Run.objects.filter(pk=last.pk).update(state=Run.State.FINISHED)
    follow()
    run = Run.objects.get(pk=last.pk)
    assert list(run.holds.values_list("pk", flat=True)) == [last.hold.pk]
    assert run.lost == 2


def test_of_the_workers_that_an_endpoint_fails_the_first_tries_for_all_until_it_answers(judge_at):
    judge = judge_at(NOWHERE, concurrency=24)

    def tell(holder, failing):
        told = leases.share(judge_id=judge.pk, holder=holder, wants=True, used=1, failing=failing)
        return told.another_tries

    for holder in "abc":
        assert tell(holder, failing=False) is False
    assert [tell(holder, failing=True) for holder in "cba"] == [False, False, False]
    assert [tell(holder, failing=True) for holder in "abc"] == [False, True, True]
    assert tell("a", failing=False) is False
    assert [tell(holder, failing=True) for holder in "bc"] == [False, True]
    leases.give_back(judge_id=judge.pk, holder="b")
    assert tell("c", failing=True) is False


def test_a_budget_has_room_for_what_is_in_flight_here_and_elsewhere_and_one_call_more(judge_at, start):
    run = start(judge_at("http://127.0.0.1:9/v1", price_in=1, price_out=1))
    spending = budget.Spending(run)
    spending.typical = 1.0
    spending.see(spent=4.0, budget=10.0, elsewhere=3)
    assert [spending.has_room(here) for here in (1, 2, 3)] == [True, True, False]
    spending.see(spent=4.0, budget=None, elsewhere=300)
    assert spending.has_room(300)
