"""What the result of a call means for its job, for the run and for later calls."""

import asyncio
import heapq
import itertools
import math
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone

from accounts.loop import db
from judging.endpoints.answers import Answer, Outcome, Reply
from judging.endpoints.judges import waits_of
from judging.endpoints.waiting import DAY, Errors, next_try
from judging.models import Attempt, Run
from judging.models.runs import BUDGET_SPENT, UNREAD
from judging.protocols.replies import ParsedVerdict, Reading, Status, joined, read_reply
from judging.runs.requests import TOKEN_LIMITS, CallRequest, steps_of
from judging.work import run_kinds, store
from judging.work.budget import Spending
from judging.work.health import AWAY, Halt, Health
from judging.work.identity import Reported
from judging.work.pace import LONGEST_PAUSE, Pacer
from judging.work.writer import Writer

UNREADABLE = ("parse_failed", "refused")
CAME = (Outcome.OK, Outcome.FILTERED, "empty", *UNREADABLE)  # outcomes of calls that brought a reply without a verdict
FINAL = {Outcome.PERMANENT, Outcome.FILTERED}  # no use in calling again
PASSING = {Outcome.RATE, Outcome.TRANSIENT, Outcome.TIMEOUT, Outcome.UNREACHABLE, Outcome.GARBAGE}


@dataclass(slots=True)
class PendingCall:
    """A job on its way to a judgment."""

    job: Any  # a plan.Job or a collecting.Task
    claim: int = 0  # under which it is this worker's
    failures: int = 0
    limits: int = 0
    odd: int = 0  # replies that were empty, or none
    own: int = 0  # failures while the endpoint answered others
    failed_at: float | None = None  # last
    asked: int = 0  # times it was asked again for a reply that can be read
    dropped: set[str] = field(default_factory=set)  # parameters that the endpoint did not take from it
    why: str = ""  # the outcome it waits after
    since: float | None = None  # its first call failed
    said: list[str] = field(default_factory=list)  # the replies to its steps so far, where each is a call
    step_costs: list[tuple[float | None, int | None, int | None]] = field(default_factory=list)  # and tokens, of these


def _of_call(row: run_kinds.Row, request: CallRequest, call: Answer | run_kinds.CachedCall) -> None:
    """Note on a row what was asked, who answered and how many tokens that took."""
    row.prompt_sha256, row.call_key, row.reported_model = request.sha256, request.key, call.model
    row.prompt_tokens, row.completion_tokens = call.prompt_tokens, call.completion_tokens


def _with_steps(row: Any, pending: PendingCall) -> None:
    """Add the steps to the row of their verdict: what was said, tokens and cost; unknown where one is."""
    row.analysis = joined(*pending.said, row.analysis or "") or None
    for number, name in enumerate(("cost", "prompt_tokens", "completion_tokens")):
        values = [getattr(row, name), *(step[number] for step in pending.step_costs)]
        known = [value for value in values if value is not None]
        setattr(row, name, sum(known) if len(known) == len(values) else None)


class CallResults(Writer):
    """A session that makes calls: their results, their price, and which are made again."""

    def __init__(self, run: Run, **rest: Any) -> None:
        super().__init__(run, **rest)
        self.limiter = self.shared.limiter(self.judge.pk, self.judge.concurrency)
        self.health = Health(self.judge, self.patience, trying=bool(run.tries))
        self.spending = Spending(run)
        self.reported = Reported(run)
        self.claimed: dict[int, int] = {}  # results that each claim still lacks
        self.pacer = Pacer(self.judge, self._reserve)
        self.later: list[tuple[float, int, PendingCall]] = []
        self.numbers = itertools.count()
        self.unstored: set[int] = set()  # results of calls that wait for their commit
        self.fresh = asyncio.Event()
        self.unread: int | None = None  # replies without a verdict so far; None once there is no need to count them

    async def count_unread(self) -> None:
        """Count from now on, unless the first replies are there already: whoever goes on with a run knows of them."""
        most = self.patience.unread
        if self.run.judges and not self.run.batched and self.stored < most < self.total:
            came = self.run.attempts.filter(outcome__in=CAME)[:most]  # also those that were asked again
            self.unread = 0 if await db(came.count) < most else None

    def _note_reading(self, row: run_kinds.Row) -> None:
        """Pause a run of which no reply can be read: all others would be paid for like these."""
        if self.unread is None:
            return
        if row.status == "ok" and not row.reason.startswith(run_kinds.DRAWN):
            self.unread = None
            return
        self.unread += 1
        if self.unread >= self.patience.unread:
            number, self.unread = self.unread, None
            self.pause(
                f"{UNREAD}, {number} of {number}, and the others would be paid for like them. Read one: if prompt or "
                "judge has to change, start a new run; resume to go on with this one as it is."
            )

    async def _reserve(self, each: timedelta, number: int) -> float:
        return await db(store.reserve, judge_id=self.judge.pk, each=each, number=number)

    async def _reused(self, pending: PendingCall, request: CallRequest) -> bool:
        """Answer a job from an identical call that is stored, if there is one."""
        cached = await db(self.kind.cached_call, request.key)
        if cached is None or not self.reported.holds(cached.model):
            return False
        row = self.kind.read(pending.job, request, cached.reply)
        if row.status != "ok":
            return False
        self._accepted(Answer(Outcome.OK, model=cached.model))
        for name, value in cached.columns.items():
            setattr(row, name, value)
        _of_call(row, request, cached)
        row.cost, row.cached = 0.0, True
        self.batch.cached += 1
        self._done(pending, row)
        return True

    async def take(self, pending: PendingCall, request: CallRequest, at: datetime, answer: Answer) -> None:
        """Go by the end of a call; where the endpoint does not take a parameter, go on without it."""
        name = answer.parameter
        # A batch was sent with what may have been dropped since; a job is asked again for each parameter once.
        was_sent = name in request.parameters or (name in self.run.dropped and name not in pending.dropped)
        ability = self._without(name)
        if not name or not was_sent or (name in request.needs and ability.get("max_tokens") == ""):
            self._take(pending, request, at, answer)
            return
        self._log(pending.job, at, answer, self._pay(answer))
        # A refusal of a call that was sent before may come after replies without the parameter.
        abilities = self.run.abilities if name in self.run.dropped else None
        if abilities is None and not self.batch.replies:
            abilities = await db(store.drop_parameter, run=self.run, name=name, ability=ability)
        if abilities is None:
            self.pause(
                f"it does not take {name} any more. Verdicts with and without it are not mixed: start a new run."
            )
            return
        self.run.abilities = abilities
        pending.dropped.add(name)
        self.repeated(pending)

    def _without(self, name: str) -> dict[str, Any]:
        """What to know of an endpoint that does not take a parameter. The token limit has two names."""
        if name not in TOKEN_LIMITS:
            return {name: False}
        other = next(limit for limit in TOKEN_LIMITS if limit != name)
        return {"max_tokens": "" if other in self.run.dropped else other}

    def _take(self, pending: PendingCall, request: CallRequest, at: datetime, answer: Answer) -> None:
        """Decide what the end of a call means for its job and for the run."""
        now = asyncio.get_running_loop().time()
        cost = self._pay(answer)
        if answer.allowances:
            sizes = [self.pacer.tokens_each if one.of_tokens else 1.0 for one in answer.allowances]
            told = zip(answer.allowances, sizes, strict=True)
            self.limiter.told(now, [(one.left / max(1.0, size), one.seconds) for one, size in told])
        halt = self.health.note(answer, now=now, limiter=self.limiter)
        if answer.outcome in FINAL:
            self.limiter.answered()
        row: run_kinds.Row | None = None
        if answer.outcome == Outcome.OK:
            self.limiter.succeeded()
            self.run.tries, self.run.failing_since = 0, None
            if self._accepted(answer):
                if self.run.settings.get("step_calls") and self._stepped(pending, answer, cost):
                    return
                row = self.kind.read(pending.job, request, answer.reply or Reply())
                self._note_reading(row)
                if row.status in UNREADABLE and pending.asked < self.run.settings.get("ask_again", 0):
                    self._ask_again(pending, row.status, at, answer, cost)
                    return
                if row.status == "empty" and pending.odd + 1 < self.patience.odd and self._again(pending, answer, now):
                    self._log(pending.job, at, answer, cost, outcome=row.status)
                    return
            else:
                halt = Halt(self._other_model(answer.model, self.reported.newest))
        elif answer.outcome in FINAL or (answer.outcome in PASSING and not self._again(pending, answer, now)):
            status: Status = "filtered" if answer.outcome == Outcome.FILTERED else "error"
            row = self.kind.row(pending.job, Reading(status, reason=answer.words))
            if status == "filtered":
                self._note_reading(row)
        if row:
            _of_call(row, request, answer)
            row.cost, row.latency = cost, answer.seconds or None  # a batch tells none
            if pending.said:
                _with_steps(row, pending)
            self.unstored.add(id(row))
            self._done(pending, row)
        if row is None or row.status != "ok":
            self._log(pending.job, at, answer, cost)
        if halt and halt.waits:
            self.wait(halt.words)
        elif halt:
            self.pause(halt.words)

    def pause(self, words: str) -> None:
        """End the session over the judge's endpoint, until somebody resumes the run."""
        self.end(Run.State.PAUSED, f"{self.judge.at_host}: {words}")

    def wait(self, words: str, *, retry_after: float | None = None) -> None:
        """End the session: the run is tried again later, or given up when that has been in vain for long enough."""
        if self.ending is not None:
            return
        now = timezone.now()
        failing_for = asyncio.get_running_loop().time() - (self.health.failing_since or math.inf)
        errors = Errors(
            since=self.run.failing_since or now - timedelta(seconds=max(0.0, failing_for)),
            tries=self.run.tries,
            retry_after=None if retry_after is None else timedelta(seconds=retry_after),
            waits=waits_of(self.judge),
            give_up_after=self._gives_up_after(),
        )
        at = next_try(now, errors)
        if at is None:
            minutes = errors.give_up_after / timedelta(minutes=1)
            span = f"{minutes:g} minutes" if minutes < 120 else f"{minutes / 60:.3g} hours"
            self.pause(f"{words}. Nothing but errors for {span}. Resume when it works again.")
            return
        tried = {"next_try_at": at, "tries": errors.tries + 1, "failing_since": errors.since}
        self.end(Run.State.WAITING, f"{self.judge.at_host}: {words}.", alone=True, next_try=tried)

    def _gives_up_after(self) -> timedelta:
        seconds = self.patience.give_up_after
        return timedelta(minutes=self.judge.give_up_after) if seconds is None else timedelta(seconds=seconds)

    def _stepped(self, pending: PendingCall, answer: Answer, cost: float | None) -> bool:
        """Go on with the next step; False where the reply is that of the last one, or no step."""
        reply = answer.reply or Reply()
        is_step = read_reply(reply, lambda text: ParsedVerdict({})).status == "ok"
        if len(pending.said) == len(steps_of(self.run.settings)) - 1 or not is_step:
            return False
        pending.said.append(reply.text.strip())
        pending.step_costs.append((cost, answer.prompt_tokens, answer.completion_tokens))
        pending.failures = pending.limits = pending.odd = 0
        pending.own, pending.since, pending.failed_at = 0, None, None
        self.repeated(pending)
        return True

    def _ask_again(self, pending: PendingCall, status: str, at: datetime, answer: Answer, cost: float | None) -> None:
        """Put a job back whose reply breaks the format or refuses; the reply stays in the log of attempts."""
        pending.asked += 1
        said = answer.reply or Reply()
        self._log(pending.job, at, replace(answer, detail=said.refusal or said.text), cost, outcome=status)
        self.repeated(pending)

    def repeated(self, pending: PendingCall) -> None:
        """Take a job that is to be asked again."""

    def end_without_budget(self) -> None:
        spent, budget = self.spending.spent, self.spending.budget
        words = f"{BUDGET_SPENT}: ${spent:.2f} of ${budget:.2f} spent. Start the run again with a higher one to go on."
        self.end(Run.State.PAUSED, words)

    def _accepted(self, answer: Answer) -> bool:
        """Count a reply of a model that the run may hold; False for another one's."""
        if not self.reported.accepts(answer):
            return False
        self.batch.replies[answer.model, answer.fingerprint] += 1
        self.batch.opened = self.reported.opened
        return True

    def _other_model(self, model: str, newest: str) -> str:
        self.left_word = {"other_model": model}
        return (
            f"it now says that {model or 'a model without a name'} answers, not {newest}. "
            "Its verdicts are not mixed in. Resume to accept them in this run, or start a new run."
        )

    def _again(self, pending: PendingCall, answer: Answer, now: float) -> bool:
        """Put a job back for another call; False when it has had its share."""
        if answer.outcome == Outcome.UNREACHABLE:
            if now >= self.limiter.closed_until:
                wait = self.patience.wait_after(self.health.rounds)
                self.limiter.closed_until = now + min(wait, LONGEST_PAUSE)
            at = self.limiter.closed_until
        else:
            limited = answer.outcome == Outcome.RATE
            odd = answer.outcome in (Outcome.GARBAGE, Outcome.OK)
            pending.limits += limited
            pending.odd += odd
            pending.failures += not (limited or odd)
            pending.since = now if pending.since is None else pending.since
            if self._gives_up(pending, answer, now):
                return False
            wait = self.patience.wait_after(pending.limits if limited else pending.odd if odd else pending.failures)
            if answer.retry_after is not None:
                may_ask = answer.retry_after <= DAY.total_seconds()
                wait = answer.retry_after if may_ask else self.patience.longest_wait
            at = now + wait
            if limited:
                self.limiter.limited(now, at - now)
            elif answer.outcome != Outcome.OK and not self.is_last(pending):  # those that are left wait each by itself
                self.limiter.failed(now, self.patience.wait_after)
        pending.why = answer.outcome
        heapq.heappush(self.later, (at, next(self.numbers), pending))
        return True

    def _gives_up(self, pending: PendingCall, answer: Answer, now: float) -> bool:
        """Whether a job has had its share of calls. Of errors those count between which the endpoint answered others:
        while it fails all, nothing is known of this one.
        """
        since, before, pending.failed_at = pending.since or now, pending.failed_at, now
        if answer.outcome in (Outcome.GARBAGE, Outcome.OK):
            return pending.odd >= self.patience.odd
        answered = self.health.succeeded_at or -math.inf
        pending.own += before is None or answered >= before
        limited = answer.outcome == Outcome.RATE
        if (pending.own >= self.patience.failures and not limited) or answered - since > self.patience.altogether:
            return True
        is_away = limited or answer.http_status in AWAY
        return not is_away and pending.failures >= self.patience.failures and self.is_last(pending)

    def is_last(self, pending: PendingCall) -> bool:
        """Whether nothing is left to call for but jobs that failed."""
        return True

    def _pay(self, answer: Answer) -> float | None:
        """Count a call and what it cost; returns that, None where nobody knows. Without a connection there was none."""
        if answer.outcome == Outcome.UNREACHABLE:
            return None
        cost, counted = self.spending.pay(answer)
        self.batch.calls += 1
        self.batch.priced += counted > 0
        self.batch.spent += counted
        if answer.prompt_tokens:
            self.pacer.used(answer.prompt_tokens + (answer.completion_tokens or 0))
        return cost

    def _log(self, job: Any, at: datetime, answer: Answer, cost: float | None, *, outcome: str = "") -> None:
        """Keep a call that brought no verdict."""
        self.batch.attempts.append(
            Attempt(
                run=self.run,
                at=at,
                outcome=outcome or answer.outcome,
                http_status=answer.http_status,
                seconds=answer.seconds,
                prompt_tokens=answer.prompt_tokens,
                completion_tokens=answer.completion_tokens,
                cost=cost,
                detail=answer.detail,
                **self.kind.key(job),
            )
        )

    def _done(self, pending: PendingCall, row: run_kinds.Row) -> None:
        self.batch.rows.append(row)
        following = None if self.run.batched else self.kind.follow_up(pending.job, row)
        if following is not None:
            self.followed(PendingCall(following, pending.claim))
        elif pending.claim in self.claimed:
            self.claimed[pending.claim] -= 1
            if not self.claimed[pending.claim]:
                del self.claimed[pending.claim]
                self.batch.claims.append(pending.claim)
        self.fresh.set()

    def followed(self, pending: PendingCall) -> None:
        """Take a job that another one made possible."""

    def look(self, batch: store.Batch, seen: store.Seen) -> None:
        self.spending.see(spent=seen.spent + self.batch.spent, budget=seen.budget, elsewhere=seen.elsewhere)
        if seen.other_model and batch.opened:
            self.pause(self._other_model(batch.opened.model, "the model that answered first"))
        elif batch.opened is self.reported.opened:
            self.reported.opened = None
        super().look(batch, seen)
