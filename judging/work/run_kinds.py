"""What each kind of run makes: which calls are missing, their requests, how replies are read, where results go.

Session, budget, limits, batches and leases are the same for all kinds.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from django.db.models import Count, Exists, OuterRef, Q

from bank.database import bulk
from bank.models import Response, Sample, SampleImage
from bank.models.verdict import turned
from judging import protocols
from judging.endpoints.answers import Reply
from judging.models import Collected, Judgment, Run, RunTask, Trial, reason_key
from judging.protocols import CannotAsk, prompts
from judging.protocols.replies import ParsedVerdict, Reading, Status, read_reply
from judging.protocols.score import weighted_score
from judging.recipes import answers, questions
from judging.runs import collecting, plan, requests
from judging.runs.collecting import Task
from judging.runs.plan import Job
from judging.runs.requests import CallRequest, JudgeRequest
from judging.work import raw_sql

Row = Judgment | Trial | Collected
PAGE = 100  # rows of a run that are read at once


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs of some neighbouring rows of a run; ``last`` is where the next page begins."""

    last: int
    jobs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class CachedCall:
    """The result of an earlier identical call."""

    reply: Reply
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    columns: dict[str, Any]  # of the new row, as far as the reply does not determine them


class OfSample(Protocol):
    """A job about a sample."""

    @property
    def sample(self) -> Sample: ...

    @property
    def place(self) -> int: ...


J = TypeVar("J")
S = TypeVar("S", bound=OfSample)


class Kind(ABC, Generic[J]):
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


class Judgments(Kind[Job]):
    made: type[Judgment] | type[Trial] = Judgment

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
                reading = Reading("ok", substitute | {"reason": f"drawn: {reading.reason}"}, analysis=reading.analysis)
        judgment = self.row(job, reading)
        judgment.raw = reply.text or reply.refusal or None
        if self.protocol.weighted and judgment.score is not None:
            scale = self.protocol.scale(request.material)
            judgment.weighted_score = weighted_score(reply.tokens, score=judgment.score, scale=scale)
        return judgment

    def row(self, job: Job, reading: Reading) -> Judgment | Trial:
        """A judgment from a reading, its verdict in canonical order."""
        return self.made(
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
        key, items = self.made.KEY, list({row.item_id for row in rows})
        stored = set(raw_sql.read(self.made, key, run_id=self.run.pk, item_id=items))
        new_rows = [row for row in rows if tuple(getattr(row, name) for name in key) not in stored]
        bulk.insert_objects(self.made, new_rows)
        verdicts = sum(row.status == Judgment.Status.OK for row in new_rows)
        return verdicts, len(new_rows) - verdicts, sum(row.choice == "undecided" for row in new_rows)

    def counts(self) -> dict[str, int]:
        return self.made.objects.filter(run=self.run).aggregate(
            verdicts=Count("pk", filter=Q(status="ok")),
            failures=Count("pk", filter=~Q(status="ok")),
            undecided=Count("pk", filter=Q(choice="undecided")),
        )

    def cached_call(self, key: str) -> CachedCall | None:
        earlier = self.made.objects.filter(call_key=key, status=Judgment.Status.OK, run__imported=False)
        first = earlier.exclude(extraction="random").order_by("pk").first()
        if first is None or not first.raw:
            return None
        columns = {"analysis": first.analysis, "weighted_score": first.weighted_score}
        return CachedCall(Reply(first.raw), first.reported_model, first.prompt_tokens, first.completion_tokens, columns)


class Trials(Judgments):
    """Judgments of answers under attack, and of the same answers unchanged."""

    made = Trial

    def row(self, job: Job, reading: Reading) -> Judgment | Trial:
        row = super().row(job, reading)
        row.target = job.target  # type: ignore[union-attr]
        return row

    def key(self, job: Job) -> dict[str, Any]:
        return super().key(job) | {"attack": job.attack}


def _as_response(row: Collected) -> Response:
    """A rotation's reply as the response that it becomes."""
    variant = collecting.variant(row.place)
    order = collecting.rotated(list(row.sample.options), row.place) or None
    return Response(sample=row.sample, variant=variant, text=row.text, status="ok", option_order=order)


class OfTasks(Kind[S]):
    """A run over ``RunTask``, whose results are ``Collected``."""

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

    def row(self, job: S, reading: Reading) -> Collected:
        reason = reading.reason.replace("the judge", "the model")
        result = {"status": reading.status, "reason": reason, "reason_hash": reason_key(reason)}
        return Collected(run=self.run, sample=job.sample, place=job.place, **result)

    def counts(self) -> dict[str, int]:
        counts = Collected.objects.filter(run=self.run, last=True).aggregate(
            verdicts=Count("pk", filter=Q(status__in=self.good)), failures=Count("pk", filter=~Q(status__in=self.good))
        )
        return counts | {"undecided": 0}


class Collecting(OfTasks[Task]):
    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.collector = collecting.COLLECTORS[run.kind]
        self.right = collecting.RightAnswers(run) if run.settings.get("stop_rotations") else None

    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[Task]:
        images: dict[int, list[SampleImage]] = {}
        for image in SampleImage.objects.filter(sample__in={row.sample_id for row in rows}).order_by("position"):
            images.setdefault(image.sample_id, []).append(image)
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
        return Collected(
            run=self.run,
            sample=job.sample,
            place=job.place,
            status=Collected.Status.SKIPPED,
            reason=collecting.WRONG_BEFORE,
            reason_hash=reason_key(collecting.WRONG_BEFORE),
        )

    def read(self, job: Task, request: CallRequest, reply: Reply) -> Collected:
        kept = ""

        def parse(text: str) -> ParsedVerdict:
            nonlocal kept
            kept = self.collector.read(text, self.run)
            return ParsedVerdict({})

        row = self.row(job, read_reply(reply, parse))
        row.text, row.thinking = reply.refusal or kept or reply.text, reply.reasoning
        if self.right and row.status == Collected.Status.OK:
            self.right.mark(job.sample, _as_response(row))
        return row

    def key(self, job: Task) -> dict[str, Any]:
        return {"sample_id": job.sample.pk, "order": str(job.place), "repeat": 0}

    def store(self, rows: Sequence[Collected]) -> tuple[int, int, int]:
        samples = {row.sample_id for row in rows}
        stored = set(Collected.objects.filter(run=self.run, sample__in=samples).values_list("sample_id", "place"))
        new_rows = [row for row in rows if (row.sample_id, row.place) not in stored]
        self.collector.keep(self.run, new_rows)
        Collected.objects.bulk_create(new_rows)
        kept = sum(row.status in self.good for row in new_rows)
        return kept, len(new_rows) - kept, 0

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


class RecipeAnswers(OfTasks[questions.Job]):
    """Answers by a recipe. A task is a conversation of one call or several; each is stored when it comes, the last one
    with the responses of all turns.
    """

    def template(self) -> None:
        return None

    def jobs(self, rows: Sequence[Any], *, read_criteria: bool = True) -> Sequence[questions.Job]:
        return questions.jobs(self.run, rows)

    def request(self, job: questions.Job, *, template: None) -> CallRequest:
        if job.sample.absent_images:
            raise CannotAsk("a picture of the sample is not stored here")
        return answers.request(self.run, job)

    def read(self, job: questions.Job, request: CallRequest, reply: Reply) -> Collected:
        return answers.read(self.run, job, reply)

    def row(self, job: questions.Job, reading: Reading) -> Collected:
        row = super().row(job, reading)
        row.step = job.step
        return row

    def key(self, job: questions.Job) -> dict[str, Any]:
        return {"sample_id": job.sample.pk, "order": str(job.place), "repeat": job.step}

    def row_without_call(self, job: questions.Job, request: CallRequest) -> None:
        return None

    def follow_up(self, job: questions.Job, row: Collected) -> questions.Job | None:
        return None if row.last else answers.next_job(job, row)

    def store(self, rows: Sequence[Collected]) -> tuple[int, int, int]:
        return answers.store(self.run, rows)

    def cached_call(self, key: str) -> CachedCall | None:
        return None  # of a likelihood only its numbers are stored, not the reply


def needs_pictures(run: Run) -> bool:
    """Whether a worker needs the image files to work the run."""
    return run.shows_pictures and SampleImage.objects.filter(sample__benchmark=run.benchmark_id).exists()


def of(run: Run) -> Kind[Any]:
    kinds: dict[str, type[Kind[Any]]] = {
        Run.Kind.JUDGMENTS: Judgments,
        Run.Kind.MARKS: Judgments,
        Run.Kind.ATTACKS: Trials,
        Run.Kind.RECIPE: RecipeAnswers,
    }
    return kinds.get(run.kind, Collecting)(run)
