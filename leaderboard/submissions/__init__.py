"""What the pages and the API of submissions share: receiving a file, lists, and files to download."""

import io
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.text import get_valid_filename

from accounts import csv, notices
from accounts.http import attached
from accounts.models import User
from accounts.rules import Viewer, allowed
from bank.models import Benchmark, ResponseMark, Submission, SubmissionRules
from bank.submissions import actions, quota, scoring, totals
from bank.submissions.addressed import answers_to_judges
from bank.submissions.check import Checked, required_splits, wanted_samples
from judging import protocols
from judging.collecting.submissions import Progress, judging_of
from judging.models import QueuedSubmission, Run, SubmissionJudging
from leaderboard import editions, votes
from leaderboard.boards import seen
from leaderboard.boards.base import ModelRow, ModelsBoard, by_rank
from leaderboard.editions import in_steps
from leaderboard.methods import PROVISIONAL
from leaderboard.rows import Number
from leaderboard.scope import BadScope, Scope
from leaderboard.sight import Sight
from leaderboard.view import scope_of

SHAPES = ("jsonl", "csv", "tsv")
NO_BETTER = "No better than your best, or by too little to be told."

LARGEST = 128 * 2**20  # bytes of a submitted file
TOO_LARGE = (
    f"The file is larger than {LARGEST // 2**20} MB. Pack it with gzip, or leave columns out that are not needed."
)


# ---- the next edition ----


def publish_next(rows: Sequence[QueuedSubmission]) -> None:
    """Once submissions to a benchmark are judged: publish the next edition of their board, if a curator said so. What
    speaks against it, and that a submission's model is left out, is told to that curator.
    """
    benchmark = rows[0].submission.benchmark
    rules = judging_of(benchmark)
    if rules is None or not rules.publishes:
        return
    kind = protocols.get(rules.like.protocol).verdict_kind
    if not Sight(scope_of(benchmark=benchmark, kind=kind)).sealed:
        return
    readable = editions.runs_to_read(scope_of(benchmark=benchmark, kind=kind))
    run = next((run for run in [rules.like, *(row.run for row in rows)] if run in readable), None)
    try:
        made = editions.draft(benchmark=benchmark, kind=kind, run=run)
        if made.unchanged:
            return
        editions.publish(benchmark=benchmark, kind=kind, run=run, by=rules.changed_by)
    except editions.Refused as error:
        _tell_curator(rows[0], rules, kind, f"The next edition of {benchmark.title} is not published. {error}")
        return
    for row in rows:
        if reason := made.left_out.get(row.submission.name):
            said = f"The new edition of {benchmark.title} leaves out {row.submission.name}: {reason}."
            _tell_curator(row, rules, kind, said)


def _tell_curator(row: QueuedSubmission, rules: SubmissionJudging, kind: str, text: str) -> None:
    if rules.changed_by is not None:
        page = reverse("leaderboard:edition-new", args=[str(row.submission.benchmark)])
        notices.tell(rules.changed_by, key=f"edition-{row.submission_id}", text=text, link=f"{page}?kind={kind}")


@contextmanager
def on_disk(file: "UploadedFile[bytes]") -> Iterator[Path]:
    """An uploaded file under its own name, for as long as it is read."""
    with tempfile.TemporaryDirectory(prefix="submission-") as folder:
        try:
            name = get_valid_filename(file.name or "")[-100:].lstrip(".")
        except Exception:  # a name of dots alone
            name = ""
        path = Path(folder) / (name or "responses")
        with path.open("wb") as out:
            for chunk in file.chunks():
                out.write(chunk)
        yield path


def take(
    *,
    person: User,
    benchmark: Benchmark,
    model: str,
    file: "UploadedFile[bytes]",
    organisation: str,
    is_open: bool | None,
    check_only: bool,
) -> Submission | Checked:
    """Submit an uploaded file, or only check it. Raises Exceeded, Refused."""
    now = timezone.now()
    with on_disk(file) as path:
        if check_only:
            name = actions.clean_name(model)
            return actions.check_only(person=person, benchmark=benchmark, name=name, path=path, now=now)
        return actions.submit(
            person=person,
            benchmark=benchmark,
            name=model,
            path=path,
            file_name=path.name,
            organisation=organisation,
            is_open=is_open,
            now=now,
        )


def open_benchmarks(viewer: Viewer) -> QuerySet[Benchmark]:
    """Benchmarks that the viewer may submit to."""
    return Benchmark.objects.visible_to(viewer).filter(submission_rules__open=True).select_related("submission_rules")


def offers(person: User, now: datetime) -> list[dict[str, Any]]:
    """Each benchmark that takes submissions, with the number that the person has left, and where its questions are in
    the API.
    """
    rows = []
    for benchmark in open_benchmarks(person).order_by("title", "pk"):
        rules = benchmark.submission_rules
        remaining = quota.left(rules=rules, person=person, now=now)
        splits = needed_splits(benchmark, rules)
        named = {"benchmark": benchmark.slug, "version": benchmark.version}
        row = {"benchmark": benchmark, "rules": rules, "left": remaining, "needed": splits}
        rows.append(row | {"questions": reverse("api-sample-list", query=named)})
    return rows


def needed_splits(benchmark: Benchmark, rules: SubmissionRules) -> list[dict[str, Any]]:
    """The splits of a benchmark with their samples: which are required, which are hidden."""
    counts, rotations = Counter[str](), Counter[str]()
    for sample in wanted_samples(benchmark).values():
        counts[sample.split] += 1
        rotations[sample.split] += max(1, len(sample.labels))
    needed = required_splits(rules, set(counts))
    return [
        {
            "name": split,
            "samples": count,
            "rotations": rotations[split],
            "needed": split in needed,
            "hidden": split in benchmark.hidden_splits,
        }
        for split, count in sorted(counts.items())
    ]


def template_rows(benchmark: Benchmark, split: str | None, *, circular: bool) -> Iterator[dict[str, str]]:
    """Rows to fill in: every sample of a split (None: all that are required), with all rotations if ``circular``."""
    samples = wanted_samples(benchmark).values()
    rules = SubmissionRules.objects.filter(benchmark=benchmark).first() or SubmissionRules(benchmark=benchmark)
    splits = {split} if split is not None else required_splits(rules, {sample.split for sample in samples})
    for sample in samples:
        if sample.split in splits:
            for shift in range(max(1, len(sample.labels)) if circular else 1):
                yield {"sample": sample.key, "variant": f"circular-{shift}" if shift else "", "text": ""}


def template_file(rows: Iterable[dict[str, str]], shape: str, *, name: str) -> HttpResponseBase:
    """The rows as ``jsonl``, ``csv`` or VLMEvalKit's ``tsv`` (rotation n of a question at index + n x 1,000,000)."""
    if shape == "csv":
        return csv.download(f"{name}.csv", ["sample", "variant", "text"], (row.values() for row in rows))
    out = io.StringIO()
    if shape == "jsonl":
        for row in rows:
            out.write(json.dumps({key: value for key, value in row.items() if value or key == "text"}) + "\n")
    else:
        out.write("index\tprediction\n")
        for row in rows:
            shift = int(row["variant"].rpartition("-")[2] or 0)
            out.write(f"{int(row['sample']) + shift * 1_000_000}\t\n")
    kind = {"tsv": "text/tab-separated-values", "jsonl": "application/jsonl"}[shape]
    return attached(HttpResponse(out.getvalue(), content_type=f"{kind}; charset=utf-8"), f"{name}.{shape}")


def may_be_tsv(benchmark: Benchmark) -> bool:
    """Whether every key is an index, as VLMEvalKit's files have it."""
    return all(key.isascii() and key.isdigit() and int(key) < 1_000_000 for key in wanted_samples(benchmark))


@dataclass(frozen=True, slots=True)
class Ledger:
    """For curators: how many exact totals are ``told`` about the answers of a submission's sender, and how many may be;
    of how many of its ``answers`` the text speaks of the judge, criteria or votes.
    """

    told: int
    most: int
    addressed: int
    answers: int

    @property
    def is_full(self) -> bool:
        return self.told >= self.most


def ledger_of(submission: Submission) -> Ledger:
    addressed, answers = answers_to_judges(submission)
    told = totals.told_to(benchmark=submission.benchmark, person=submission.by)
    return Ledger(told, totals.most(submission.benchmark), addressed, answers)


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a judged submission stands on the board of its judge's verdicts with the same protocol and settings, beside
    the best of the others there. As on the board, models with fewer than 30 items have no rank.

    ``models``: how many are ranked. Without a ``row``, ``reason`` says why there are no numbers. ``whole``: only the
    main number is told, rounded, since the judge's verdicts may follow hidden criteria that an answer asks about.
    """

    scope: Scope | None = None
    row: ModelRow | None = None
    best: ModelRow | None = None
    models: int = 0
    reason: str = ""
    whole: bool = False

    def as_json(self) -> dict[str, Any]:
        """Both rows as boards write them."""
        return {
            "models": self.models,
            "row": self.row and self._own(self.row.as_json()),
            "best": self.best and self.best.as_json(),
            "reason": self.reason,
        }

    def _own(self, row: dict[str, Any]) -> dict[str, Any]:
        if not self.whole or self.scope is None:
            return row
        told = {name: row.get(name) for name in ("model", "rank", self.scope.kind.shape.main.name)}
        return {name: {} if isinstance(value, dict) else told.get(name) for name, value in row.items()}


def standing(submission: Submission, judged: Progress, viewer: Viewer) -> Standing:
    """The submission's row on the board of the judge that its benchmark's rules name."""
    rules = judging_of(submission.benchmark)
    run = judged.run or (rules.like if rules else None)
    if run is None:
        return Standing(reason="Nobody judges these submissions any more.")
    staff = allowed(viewer, "read-hidden")
    whole = bool(run.held) and not staff
    try:
        kind = protocols.get(run.protocol).verdict_kind
        scope = scope_of(benchmark=submission.benchmark, kind=kind, source=run.judge.name, staff=staff)
        board = _board_like(run, scope)
    except BadScope as error:
        return Standing(reason=str(error))
    ranked = sorted((row for row in board.rows if row.rank is not None and row.n >= PROVISIONAL), key=by_rank)
    own = _row_of(submission, board)
    if own is None and whole:  # of what researchers sent, everybody sees the next edition, its sender the whole at once
        judged_all = _board_like(run, replace(scope, staff=True))
        own = _told_row(submission, judged_all, scope)
        if own is None and _row_of(submission, judged_all):
            return Standing(scope, reason=NO_BETTER, whole=True)
    elif own is not None and own.n < PROVISIONAL:
        own = replace(own, rank=None)
    best = next((row for row in ranked if row.model != submission.name), None)
    reason = "" if own else " ".join(board.notes) or "It has no verdict yet."
    return Standing(scope, own, best, len(ranked), reason, whole)


def _told_row(submission: Submission, board: ModelsBoard, scope: Scope) -> ModelRow | None:
    """The submission with its main number alone, as its sender is told it (``editions.in_steps``), since a judge may
    have been asked about hidden text. None where it is no better than what they were told of.
    """
    told = in_steps.told_to_senders(scope, board.rows).get(submission.name)
    row = _row_of(submission, board)
    if told is None or told.share is None or row is None:
        return None
    low, high = in_steps.scale_of(scope)
    alone: dict[str, Any] = {scope.kind.shape.main.name: Number(low + told.share * (high - low))}
    return replace(row, rank=None, **alone)


def _board_like(run: Run, scope: Scope) -> ModelsBoard:
    """The board by all runs of this run's judge, protocol and settings that the view may count. Raises BadScope."""
    counted = votes.judged_runs(scope).filter(**run.alike).first()
    if counted is None:
        raise BadScope(f"{run.judge} has no judgments on {scope.benchmark} with these settings that are told yet.")
    return seen.models(replace(scope, run=counted.pk, alike=True))


def _row_of(submission: Submission, board: ModelsBoard) -> ModelRow | None:
    return next((row for row in board.rows if row.model == submission.name), None)


def marks_of(submission: Submission) -> QuerySet[ResponseMark]:
    """The marked answers whose keys are open now, in the order of the samples."""
    marks = scoring.marks(submission).select_related("response__sample")
    return marks.order_by("response__sample__position", "response__sample", "response__variant")
