"""What a run makes: which calls are missing, what each asks, what its reply amounts to, and where that is stored.

The session, the budget, the limits, the batches and the lease are the same for all of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db.models import Count, Exists, OuterRef, Q

from bank.database import bulk
from bank.models import SampleImage
from bank.models.verdict import turned
from judging import protocols
from judging.endpoints.answers import Reply
from judging.models import Collected, Judgment, Run, RunTask, Trial, reason_key
from judging.protocols import prompts
from judging.protocols.replies import Found, Reading, read_reply
from judging.protocols.score import weighted_score
from judging.runs import collecting, plan, requests
from judging.runs.collecting import Task
from judging.runs.plan import Job
from judging.runs.requests import CallRequest, JudgeRequest
from judging.work import direct

Row = Judgment | Trial | Collected
PAGE = 100  # rows of a run that are read at once


@dataclass(frozen=True, slots=True)
class Page:
    """Jobs of some neighbouring rows of a run; ``last`` is where the next page begins."""

    last: int
    jobs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Known:
    """What an identical call brought earlier."""

    reply: Reply
    model: str
    prompt_tokens: int | None
    completion_tokens: int | None
    columns: dict[str, Any]  # of the new row: what the reply alone does not tell


class Kind(ABC):
    """One run's way of making rows. ``job`` is whatever ``page`` gave out."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @abstractmethod
    def planned(self) -> int: ...

    @property
    def per_row(self) -> int:
        """How many calls a row of the run may lack."""
        return 1

    @abstractmethod
    def missing(self, *, after: int = 0) -> Any:
        """The rows of the run that lack something, in order."""

    @abstractmethod
    def jobs(self, rows: Sequence[Any], *, reads: bool = True) -> Sequence[Any]:
        """What they lack."""

    def page(self, *, after: int = 0, reads: bool = True) -> Page | None:
        """The next jobs, whoever claims them; None when there are no more. ``reads`` what their requests show, too."""
        while rows := list(self.missing(after=after)[:PAGE]):
            after = rows[-1].pk
            if jobs := self.jobs(rows, reads=reads):
                return Page(after, jobs)
        return None

    @abstractmethod
    def asked(self, job: Any, *, template: prompts.Prompt) -> CallRequest: ...

    @abstractmethod
    def told(self, job: Any, asked: Any) -> Row | None:
        """The row of a job that needs no call."""

    @abstractmethod
    def read(self, job: Any, asked: Any, reply: Reply) -> Row: ...

    @abstractmethod
    def without(self, job: Any, reading: Reading) -> Row:
        """The row of a job whose call brought nothing to read."""

    @abstractmethod
    def key(self, job: Any) -> dict[str, Any]:
        """How an attempt names the job."""

    @abstractmethod
    def store(self, rows: Sequence[Any]) -> tuple[int, int, int]:
        """Store what is not stored yet, in the caller's transaction; how many verdicts, failures, undecided."""

    @abstractmethod
    def counted(self) -> dict[str, int]: ...

    @abstractmethod
    def known(self, key: str) -> Known | None:
        """What an identical call brought in any run. Calls that failed or brought no verdict are none."""


class Judgments(Kind):
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

    def jobs(self, rows: Sequence[Any], *, reads: bool = True) -> Sequence[Job]:
        return plan.missing_jobs(self.run, rows, read_criteria=reads)

    def asked(self, job: Job, *, template: prompts.Prompt) -> JudgeRequest:
        return requests.judge_request(self.run, job, template=template, protocol=self.protocol)

    def told(self, job: Job, asked: JudgeRequest) -> Judgment | Trial | None:
        told = self.protocol.without_call(asked.material)
        return None if told is None else self.without(job, Reading("ok", told))

    def read(self, job: Job, asked: JudgeRequest, reply: Reply) -> Judgment | Trial:
        parse = partial(self.protocol.parse, material=asked.material, settings=self.run.settings)
        reading = read_reply(reply, parse)
        if reading.status != "ok":
            instead = self.protocol.fallback(asked.material, plan.random_seed(self.run, job))
            if instead is not None:
                reading = Reading("ok", instead | {"reason": f"drawn: {reading.reason}"}, analysis=reading.analysis)
        judgment = self.without(job, reading)
        judgment.raw = reply.text or reply.refusal or None
        if self.protocol.weighted and judgment.score is not None:
            scale = self.protocol.scale(asked.material)
            judgment.weighted_score = weighted_score(reply.tokens, score=judgment.score, scale=scale)
        return judgment

    def without(self, job: Job, reading: Reading) -> Judgment | Trial:
        """A judgment of a reading, its verdict turned into canonical order."""
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
        stored = set(direct.read(self.made, key, run_id=self.run.pk, item_id=items))
        fresh = [row for row in rows if tuple(getattr(row, name) for name in key) not in stored]
        bulk.insert_objects(self.made, fresh)
        verdicts_ = sum(row.status == Judgment.Status.OK for row in fresh)
        return verdicts_, len(fresh) - verdicts_, sum(row.choice == "undecided" for row in fresh)

    def counted(self) -> dict[str, int]:
        return self.made.objects.filter(run=self.run).aggregate(
            verdicts=Count("pk", filter=Q(status="ok")),
            failures=Count("pk", filter=~Q(status="ok")),
            undecided=Count("pk", filter=Q(choice="undecided")),
        )

    def known(self, key: str) -> Known | None:
        found = self.made.objects.filter(call_key=key, status=Judgment.Status.OK, run__imported=False)
        old = found.exclude(extraction="random").order_by("pk").first()
        if old is None or not old.raw:
            return None
        columns = {"analysis": old.analysis, "weighted_score": old.weighted_score}
        return Known(Reply(old.raw), old.reported_model, old.prompt_tokens, old.completion_tokens, columns)


class Trials(Judgments):
    """Judgments of answers under attack, and of the same answers as they are."""

    made = Trial

    def without(self, job: Job, reading: Reading) -> Judgment | Trial:
        row = super().without(job, reading)
        row.target = job.target  # type: ignore[union-attr]
        return row

    def key(self, job: Job) -> dict[str, Any]:
        return super().key(job) | {"attack": job.attack}


class Collecting(Kind):
    def __init__(self, run: Run) -> None:
        super().__init__(run)
        self.collector = collecting.COLLECTORS[run.kind]

    def planned(self) -> int:
        return self.run.tasks.count()

    def missing(self, *, after: int = 0) -> Any:
        done = Collected.objects.filter(run=self.run, sample=OuterRef("sample"), place=OuterRef("place"))
        return RunTask.objects.filter(~Exists(done), run=self.run, pk__gt=after).select_related("sample").order_by("pk")

    def jobs(self, rows: Sequence[Any], *, reads: bool = True) -> Sequence[Task]:
        images: dict[int, list[SampleImage]] = {}
        for image in SampleImage.objects.filter(sample__in={row.sample_id for row in rows}).order_by("position"):
            images.setdefault(image.sample_id, []).append(image)
        return [
            Task(row.sample, row.place, self.collector.task_images(row.place, images.get(row.sample_id, [])))
            for row in rows
        ]

    def asked(self, job: Task, *, template: prompts.Prompt) -> CallRequest:
        return self.collector.request(self.run, job, template=template)

    def told(self, job: Task, asked: CallRequest) -> None:
        return None

    def read(self, job: Task, asked: CallRequest, reply: Reply) -> Collected:
        reading = read_reply(reply, lambda text: Found({}))
        row = self.without(job, reading)
        row.text, row.thinking = reply.refusal or reply.text, reply.reasoning
        return row

    def without(self, job: Task, reading: Reading) -> Collected:
        reason = reading.reason.replace("the judge", "the model")
        told = {"status": reading.status, "reason": reason, "reason_hash": reason_key(reason)}
        return Collected(run=self.run, sample=job.sample, place=job.place, **told)

    def key(self, job: Task) -> dict[str, Any]:
        return {"sample_id": job.sample.pk, "order": str(job.place), "repeat": 0}

    def store(self, rows: Sequence[Collected]) -> tuple[int, int, int]:
        samples = {row.sample_id for row in rows}
        stored = set(Collected.objects.filter(run=self.run, sample__in=samples).values_list("sample_id", "place"))
        fresh = [row for row in rows if (row.sample_id, row.place) not in stored]
        self.collector.keep(self.run, fresh)
        Collected.objects.bulk_create(fresh)
        kept = sum(row.status == Collected.Status.OK for row in fresh)
        return kept, len(fresh) - kept, 0

    def counted(self) -> dict[str, int]:
        counts = Collected.objects.filter(run=self.run).aggregate(
            verdicts=Count("pk", filter=Q(status="ok")), failures=Count("pk", filter=~Q(status="ok"))
        )
        return counts | {"undecided": 0}

    def known(self, key: str) -> Known | None:
        found = Collected.objects.filter(call_key=key, status=Collected.Status.OK, run__kind=self.run.kind)
        old = found.select_related("response").order_by("pk").first()
        if old is None:
            return None
        text = old.response.text if old.response else old.text
        columns = {"thinking": old.thinking}
        return Known(Reply(text), old.reported_model, old.prompt_tokens, old.completion_tokens, columns)


def needs_pictures(run: Run) -> bool:
    """Whether a worker must have the pictures at hand to work the run."""
    return run.shows_pictures and SampleImage.objects.filter(sample__benchmark=run.benchmark_id).exists()


def of(run: Run) -> Kind:
    kinds: dict[str, type[Kind]] = {Run.Kind.JUDGMENTS: Judgments, Run.Kind.ATTACKS: Trials}
    return kinds.get(run.kind, Collecting)(run)
