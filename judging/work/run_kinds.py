"""What each kind of run makes: which calls are missing, their requests, how replies are read, where results go.

Session, budget, limits, batches and leases are the same for all kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Generic, TypeVar, cast

from django.db.models import Count, Exists, OuterRef, Q

from bank.database import bulk
from bank.models import Response, SampleImage
from bank.models.verdict import turned
from judging import protocols
from judging.collecting import collectors
from judging.collecting.collectors import Task
from judging.endpoints.answers import Reply
from judging.models import Collected, Judgment, Run, RunTask, Trial, reason_key
from judging.protocols import CannotAsk, prompts
from judging.protocols.replies import ParsedVerdict, Reading, Status, read_reply
from judging.protocols.score import weighted_score
from judging.recipes import questions
from judging.recipes.conversation import Conversation, RecipeCall, turn_answer
from judging.recipes.likelihoods import NoLikelihood
from judging.runs import plan, requests
from judging.runs.plan import Job
from judging.runs.requests import CallRequest, JudgeRequest

Row = Judgment | Trial | Collected
PAGE = 100  # rows of a run that are read at once
DRAWN = "drawn: "  # how the reason of a verdict begins that stands in for a reply that cannot be read


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs of some neighbouring rows of a run; ``last`` is where the next page begins."""

    last: int
    jobs: Sequence[Any]
    claim: int = 0  # by which they are this worker's; 0 where nothing is claimed


@dataclass(frozen=True, slots=True)
class CachedCall:
    """The result of an earlier identical call."""

    reply: Reply
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    columns: dict[str, Any]  # of the new row, as far as the reply does not determine them


J = TypeVar("J")
T = TypeVar("T", Task, Conversation)


class RunKind(ABC, Generic[J]):
    """How one run makes rows. A job is what ``page`` returned."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @abstractmethod
    def planned(self) -> int: ...

    @property
    def per_row(self) -> int:
        """How many calls a row of the run may need."""
        return 1

    @abstractmethod
    def missing(self, *, after: int = 0) -> Any:
        """The unfinished rows of the run, in order."""

    @abstractmethod
    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[J]:
        """The jobs that these rows still need."""

    def page(self, *, after: int = 0, read_criteria: bool = True) -> Page | None:
        """The next jobs, claimed or not; None if there are none. ``read_criteria`` loads what their requests show."""
        while rows := list(self.missing(after=after)[:PAGE]):
            after = rows[-1].pk
            if jobs := self.jobs(rows, read_criteria=read_criteria):
                return Page(after, jobs)
        return None

    def template(self) -> prompts.Prompt | None:
        """What its requests are rendered from. Raises prompts.UnknownPrompt if it is not what it was."""
        return requests.template_of(self.run)

    @abstractmethod
    def request(self, job: J, *, template: Any) -> CallRequest: ...

    def follow_up(self, job: J, row: Any) -> J | None:
        """The job that can be done now that this one is; None at the end of a task."""
        return None

    @abstractmethod
    def row_without_call(self, job: J, request: Any) -> Row | None:
        """The row of a job that needs no call; None if it needs one."""

    @abstractmethod
    def read(self, job: J, request: Any, reply: Reply) -> Row: ...

    @abstractmethod
    def row(self, job: J, reading: Reading) -> Row:
        """The row of a job with a reading, or with the reason why there is none."""

    @abstractmethod
    def key(self, job: J) -> dict[str, Any]:
        """The columns that identify the job in the log of attempts."""

    @abstractmethod
    def store(self, rows: Sequence[Any]) -> tuple[int, int, int]:
        """Store new rows in the caller's transaction; returns the numbers of verdicts, failures, undecided."""

    @abstractmethod
    def counts(self) -> dict[str, int]: ...

    @abstractmethod
    def cached_call(self, key: str) -> CachedCall | None:
        """The result of an identical call in any run; failed calls and calls without a verdict do not count."""


class JudgmentsKind(RunKind[Job]):
    table: type[Judgment] | type[Trial] = Judgment

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.protocol = protocols.get(run.protocol)

    def planned(self) -> int:
        return plan.planned_judgments(self.run)

    @property
    def per_row(self) -> int:
        return plan.judgments_per_item(self.run)

    def missing(self, *, after: int = 0) -> Any:
        return plan.unfinished_items(self.run, after=after)

    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[Job]:
        return plan.missing_jobs(self.run, rows, read_criteria=read_criteria)

    def request(self, job: Job, *, template: prompts.Prompt) -> JudgeRequest:
        return requests.judge_request(self.run, job, template=template, protocol=self.protocol)

    def row_without_call(self, job: Job, request: JudgeRequest) -> Judgment | Trial | None:
        if places := plan.unanswered_places(job, self.protocol, self.run.settings):
            why = next(filter(None, job.subject.unanswered))
            if self.run.settings.get("unanswered") == "loses":
                lowest = self.protocol.lowest(request.material, places)
                return self.row(job, Reading("ok", lowest, reason=plan.NOT_ASKED[why]))
            return self.row(job, Reading(cast(Status, why), reason=plan.NOT_ASKED[why]))
        verdict = self.protocol.without_call(request.material)
        return None if verdict is None else self.row(job, Reading("ok", verdict))

    def read(self, job: Job, request: JudgeRequest, reply: Reply) -> Judgment | Trial:
        parse = partial(self.protocol.parse, material=request.material, settings=self.run.settings)
        reading = read_reply(reply, parse)
        if reading.status != "ok":
            substitute = self.protocol.fallback(request.material, plan.random_seed(self.run, job))
            if substitute is not None:
                reading = Reading("ok", substitute | {"reason": f"{DRAWN}{reading.reason}"}, analysis=reading.analysis)
        judgment = self.row(job, reading)
        judgment.raw = reply.text or reply.refusal or None
        if self.protocol.weighted and judgment.score is not None:
            scale = self.protocol.scale(request.material)
            judgment.weighted_score = weighted_score(reply.tokens, score=judgment.score, scale=scale)
        return judgment

    def row(self, job: Job, reading: Reading) -> Judgment | Trial:
        """A judgment from a reading, its verdict in canonical order."""
        return self.table(
            run=self.run,
            **self.key(job),
            status=reading.status,
            analysis=reading.analysis or None,
            reason_hash=reason_key(reading.reason),
            **{"reason": reading.reason} | turned(reading.verdict, order=job.positions),
        )

    def key(self, job: Job) -> dict[str, Any]:
        return {"item_id": job.subject.item_id, "order": job.order, "repeat": job.repeat}

    def store(self, rows: Sequence[Judgment | Trial]) -> tuple[int, int, int]:
        key, items = self.table.KEY, list({row.item_id for row in rows})
        stored = set(self.table.objects.filter(run=self.run, item__in=items).values_list(*key))
        new_rows = [row for row in rows if tuple(getattr(row, name) for name in key) not in stored]
        bulk.insert_objects(self.table, new_rows)
        verdicts = sum(row.status == Judgment.Status.OK for row in new_rows)
        return verdicts, len(new_rows) - verdicts, sum(row.choice == "undecided" for row in new_rows)

    def counts(self) -> dict[str, int]:
        return self.table.objects.filter(run=self.run).aggregate(
            verdicts=Count("pk", filter=Q(status="ok")),
            failures=Count("pk", filter=~Q(status="ok")),
            undecided=Count("pk", filter=Q(choice="undecided")),
        )

    def cached_call(self, key: str) -> CachedCall | None:
        earlier = self.table.objects.filter(call_key=key, status=Judgment.Status.OK, run__imported=False)
        first = earlier.exclude(extraction="random").order_by("pk").first()
        if first is None or not first.raw:
            return None
        columns = {"analysis": first.analysis, "weighted_score": first.weighted_score}
        return CachedCall(Reply(first.raw), first.reported_model, first.prompt_tokens, first.completion_tokens, columns)


class TrialsKind(JudgmentsKind):
    """Judgments of answers under attack, and of the same answers unchanged."""

    table = Trial

    def row(self, job: Job, reading: Reading) -> Judgment | Trial:
        row = super().row(job, reading)
        row.target = job.target  # type: ignore[union-attr]
        return row

    def key(self, job: Job) -> dict[str, Any]:
        return super().key(job) | {"attack": job.attack}


class TaskRunKind(RunKind[T]):
    """A run over ``RunTask``, in which a model writes; its results are ``Collected``."""

    good: ClassVar[tuple[str, ...]] = (Collected.Status.OK, Collected.Status.SKIPPED)

    def planned(self) -> int:
        return self.run.tasks.count()

    def missing(self, *, after: int = 0) -> Any:
        ended = Collected.objects.filter(run=self.run, last=True)
        done = ended.filter(sample=OuterRef("sample"), place=OuterRef("place"))
        return (
            RunTask.objects.filter(~Exists(done), run=self.run, pk__gt=after)
            .select_related("sample__capability")
            .order_by("pk")
        )

    def row_without_call(self, job: T, request: Any) -> Collected | None:
        return None

    def row(self, job: T, reading: Reading) -> Collected:
        reason = reading.reason.replace("the judge", "the model")
        return Collected(
            run=self.run,
            sample=job.sample,
            place=job.place,
            step=job.step,
            status=reading.status,
            reason=reason,
            reason_hash=reason_key(reason),
        )

    def key(self, job: T) -> dict[str, Any]:
        return {"sample_id": job.sample.pk, "order": str(job.place), "repeat": job.step}

    @abstractmethod
    def keep(self, rows: Sequence[Collected]) -> None:
        """Put the texts where they belong in the bank, in the transaction that stores the rows."""

    def store(self, rows: Sequence[Collected]) -> tuple[int, int, int]:
        stored_rows = Collected.objects.filter(run=self.run, sample__in={row.sample_id for row in rows})
        stored = set(stored_rows.values_list("sample_id", "place", "step"))
        new_rows = [row for row in rows if (row.sample_id, row.place, row.step) not in stored]
        ended = [row for row in new_rows if row.last]
        if ended:
            self.keep(ended)
        Collected.objects.bulk_create(new_rows)
        kept = sum(row.status in self.good for row in ended)
        return kept, len(ended) - kept, 0

    def counts(self) -> dict[str, int]:
        counts = Collected.objects.filter(run=self.run, last=True).aggregate(
            verdicts=Count("pk", filter=Q(status__in=self.good)), failures=Count("pk", filter=~Q(status__in=self.good))
        )
        return counts | {"undecided": 0}

    def cached_call(self, key: str) -> CachedCall | None:
        return None


class CollectingKind(TaskRunKind[Task]):
    """A collector's texts (``collectors.COLLECTORS``)."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.collector = collectors.COLLECTORS[run.kind]
        self.right = collectors.RightAnswers(run) if run.settings.get("stop_rotations") else None

    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[Task]:
        shown = self.collector.shows(self.run.settings)
        images = plan.images_by_sample(sample__in={row.sample_id for row in rows}) if shown else {}
        if self.right:
            self.right.look_up(list({row.sample_id: row.sample for row in rows}.values()))
        return [
            Task(row.sample, row.place, self.collector.task_images(row.place, images.get(row.sample_id, [])))
            for row in rows
        ]

    def request(self, job: Task, *, template: prompts.Prompt) -> CallRequest:
        return self.collector.request(self.run, job, template=template)

    def row_without_call(self, job: Task, request: CallRequest) -> Collected | None:
        if not self.right or not job.place or job.sample.pk not in self.right.wrong:
            return None
        row = self.row(job, Reading("ok", reason=collectors.WRONG_BEFORE))
        row.status = Collected.Status.SKIPPED
        return row

    def read(self, job: Task, request: CallRequest, reply: Reply) -> Collected:
        reading = read_reply(reply, lambda text: ParsedVerdict({"text": self.collector.read(text, self.run)}))
        row = self.row(job, reading)
        row.text = reply.refusal or reading.verdict.get("text") or reply.text
        row.thinking = reply.reasoning
        if self.right and row.status == Collected.Status.OK:
            self.right.mark_row(row)
        return row

    def keep(self, rows: Sequence[Collected]) -> None:
        self.collector.keep(self.run, rows)

    def cached_call(self, key: str) -> CachedCall | None:
        earlier = Collected.objects.filter(call_key=key, status=Collected.Status.OK, run__kind=self.run.kind)
        first = earlier.select_related("response").order_by("pk").first()
        if first is None:
            return None
        text = first.response.text if first.response else first.text
        if not text:  # of a draft only the draft itself is stored
            return None
        columns = {"thinking": first.thinking}
        return CachedCall(Reply(text), first.reported_model, first.prompt_tokens, first.completion_tokens, columns)


class RecipeKind(TaskRunKind[Conversation]):
    """Answers by a recipe. A task is a conversation of one call or several; each is stored when it comes, the last one
    with the responses of all turns. No call is answered from a stored one: of a likelihood only its numbers are kept.
    """

    def template(self) -> None:
        return None

    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[Conversation]:
        return questions.conversations(self.run, rows)

    def request(self, job: Conversation, *, template: None) -> RecipeCall:
        if questions.lacks_picture(job.spec, job.sample):
            raise CannotAsk("a picture of the sample is not stored here")
        call = job.call()
        repeat = questions.Place.of_task(job.place, job.spec).repeat
        parameters = requests.request_parameters(self.run, repeat=repeat)
        if call.by:
            parameters = requests.with_likelihoods(self.run, parameters, call)
        images = tuple(picture.image for message in call.messages for picture in message.pictures)
        digest = requests.conversation_hash(self.run, call.messages, parameters, job.place, job.step)
        return replace(
            call,
            text=call.messages[-1].text,
            images=images,
            parameters=parameters,
            sha256=digest,
            needs=requests.TOKEN_LIMITS if call.by else (),
        )

    def row(self, job: Conversation, reading: Reading) -> Collected:
        row = super().row(job, reading)
        row.job = job
        return row

    def read(self, job: Conversation, request: RecipeCall, reply: Reply) -> Collected:
        """The row of a call's reply. A line of reasoning that was cut off is gone on with; an answer is not."""
        reading = read_reply(reply, lambda text: ParsedVerdict({}))
        if request.by and reading.status in ("truncated", "empty"):  # it needs no more than the first token
            reading = Reading("ok")
        goes_on = reading.status == "ok" or (
            reading.status == "truncated" and not request.by and job.is_reasoning(request)
        )
        likelihoods = None
        if goes_on:
            try:
                likelihoods = job.likelihoods_in(request, reply)
            except NoLikelihood as error:
                reading, goes_on = Reading("error", reason=str(error)), False
        row = self.row(job, reading)
        row.text = "" if request.by == "prompt" else reply.refusal or reply.text
        row.thinking, row.likelihoods = reply.reasoning, likelihoods
        row.last = not goes_on or job.after(row).next_call() is None
        return row

    def follow_up(self, job: Conversation, row: Collected) -> Conversation | None:
        return None if row.last else job.after(row)

    def keep(self, rows: Sequence[Collected]) -> None:
        collectors.store_responses(self.run, rows, self._responses)

    def _responses(self, row: Collected) -> list[Response]:
        """The answers of a conversation's turns, the one in which it ended included."""
        job: Conversation = row.job
        answers = job.after(row).answers() if row.status in (Collected.Status.OK, Collected.Status.TRUNCATED) else []
        if not answers or row.status not in (Collected.Status.OK, answers[-1].status):
            turn = job.call().turn
            answers = [*job.answers()[:turn], turn_answer(turn, row)]
        variant, repeat = questions.variant_and_repeat(row.place, job.spec)
        for answer in answers:
            answer.sample, answer.variant, answer.repeat = row.sample, variant, repeat
            answer.reason = row.reason if answer.status != Collected.Status.OK else ""
            answer.option_order = list(job.order) or None
        return answers


def needs_pictures(run: Run) -> bool:
    """Whether a worker needs the image files to work the run."""
    return run.shows_pictures and SampleImage.objects.filter(sample__benchmark=run.benchmark_id).exists()


def run_kind(run: Run) -> RunKind[Any]:
    """What the run makes, and how."""
    kinds: dict[str, type[RunKind[Any]]] = {
        Run.Kind.JUDGMENTS: JudgmentsKind,
        Run.Kind.MARKS: JudgmentsKind,
        Run.Kind.ATTACKS: TrialsKind,
        Run.Kind.RECIPE: RecipeKind,
    }
    return kinds.get(run.kind, CollectingKind)(run)
