"""What pages and the API say about a submission: its scores, what exactly each of them is, and its faults."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from bank.models import Submission, SubmissionScore
from judging.runs import submissions as queue
from judging.runs.submissions import Progress
from leaderboard import submissions
from leaderboard.figures import rank_range, tick
from leaderboard.pages.marks import WIDE, Axis, axis, axis_head, interval_bar
from leaderboard.rows import UNKNOWN, Number
from leaderboard.submissions import Standing
from stats.disclosure import MIN_SAMPLES

FIRST = 20  # faults of each kind that a page lists; the others are in the file
# Shares about keys that are not open are in whole percent. With up to a hundred samples a single answer still changes
# them, with more samples less often: ``bank.submissions.scoring`` and the kept half are what protects single keys.
DIGITS = 2
NOTHING_HIDDEN = (
    "No split is hidden, so nothing is kept back from people who submit often. Single answers are marked only if "
    "everybody may see the key. Other splits only return totals, but the totals of many submissions reveal keys too. "
    "If you hide a split, half of it can be kept back."
)
NAMES = {
    "vanilla": "Accuracy, one pass",
    "circular": "Accuracy, circular",
    "accuracy": "Accuracy",
    "precision": "Precision of yes",
    "recall": "Recall of yes",
    "f1": "F1",
    "yes_ratio": "Share of yes",
}
MEANINGS = {
    "vanilla": "the pass with the options as they stand",
    "circular": "right in every rotation of the options",
    "precision": "of the answers yes, how many are right",
    "recall": "of the questions whose answer is yes, how many were found",
    "f1": "harmonic mean of precision and recall",
    "yes_ratio": "of all answers; a tendency, not a score",
}
SHORT = {"vanilla": "one pass", "circular": "circular", "accuracy": ""}  # in the lines of levels
UNIT = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), WIDE)
METHODS = {
    "wilson": "Wilson",
    "wilson by group, effective n": "Wilson by picture",
    "F1, wilson, effective n, jackknife by group": "jackknife by picture",
}


def percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _tick(value: float) -> str:
    return f"{100 * value:.0f}"


@dataclass(frozen=True, slots=True)
class Line:
    """A number with its interval."""

    name: str
    meaning: str
    short: str
    value: str
    interval: str
    n: int
    method: str
    bar: SafeString


@dataclass(frozen=True, slots=True)
class Block:
    """The scores of one part of one split, with what they are in words."""

    split: str
    title: str
    hidden: bool
    kept: bool
    n: int
    words: str
    lines: list[Line] = field(default_factory=list)
    levels: list[tuple[str, list[Line]]] = field(default_factory=list)
    extraction: str = ""
    chance: str = ""


def split_name(split: str) -> str:
    return split or "no split"


def blocks(submission: Submission, viewer: Viewer) -> list[Block]:
    """The scores that the viewer may see, the hidden splits last."""
    scores = SubmissionScore.objects.visible_to(viewer, submission)
    kept_half = SubmissionScore.Part.KEPT
    ordered = sorted(scores, key=lambda score: (score.hidden, score.split, score.part == kept_half, score.pk))
    return [_block(score, submission) for score in ordered]


def _block(score: SubmissionScore, submission: Submission) -> Block:
    numbers = told_of(score)
    kept = score.part == SubmissionScore.Part.KEPT
    kind = "multiple choice" if score.kind == SubmissionScore.Kind.CHOICE else "yes or no"
    block = Block(
        split=score.split,
        title=f"{split_name(score.split)}, {kind}",
        hidden=score.hidden,
        kept=kept,
        n=score.n,
        words=_words(score, submission),
        lines=[_line(name, numbers[name], in_whole_percent=not score.open) for name in NAMES if numbers.get(name)],
        levels=[
            (
                ", ".join(name or "no level" for name in level["names"]),
                [_line(n, level[n], in_whole_percent=not score.open) for n in NAMES if level.get(n)],
            )
            for level in numbers.get("levels", [])
        ],
        extraction=_extraction(numbers.get("extraction"), score.kind),
        chance=percent(numbers["chance"]) if numbers.get("chance") else "",
    )
    return block


def _line(name: str, number: dict[str, Any], *, in_whole_percent: bool) -> Line:
    low, high = number["low"], number["high"]
    digits = 0 if in_whole_percent else 1
    return Line(
        name=NAMES[name],
        meaning=MEANINGS.get(name, ""),
        short=SHORT.get(name, ""),
        value="–" if number["value"] is None else f"{100 * number['value']:.{digits}f}%",
        interval="–" if low is None else f"{100 * low:.{digits}f} to {100 * high:.{digits}f}",
        n=number["n"],
        method=METHODS.get(number["method"], number["method"]),
        bar=interval_bar(UNIT, number["value"], low, high, write=percent),
    )


def axis_ticks() -> SafeString:
    return axis_head(UNIT, _tick)


def _words(score: SubmissionScore, submission: Submission) -> str:
    if not score.numbers:
        return f"Counted, but not shown: unless keys are public, a number covers at least {MIN_SAMPLES} samples."
    if score.part == SubmissionScore.Part.KEPT:
        released = "It is released." if submission.released_at else "Only staff see it until a curator releases it."
        return f"The kept half: {score.n} samples drawn once and for all, whose score ranks. {released}"
    if score.part == SubmissionScore.Part.SHOWN:
        return (
            f"The shown half: {score.n} samples of the hidden split, the same for every submission. The other half is "
            "kept back and ranks, so that scores reached by trial and error do not count."
        )
    if score.hidden:
        return f"All {score.n} samples of the hidden split. Single answers are never marked."
    if not score.open:
        return (
            f"All {score.n} samples of the split. Not all of its answer keys are open to everybody, and marks would "
            "reveal them, so there are only totals."
        )
    return f"All {score.n} samples of the split, whose keys are open to everybody. Each answer is marked below."


def _extraction(counts: dict[str, int] | None, kind: str) -> str:
    if not counts:
        return ""
    total = sum(counts.values())
    reading = "an option by its label" if kind == SubmissionScore.Kind.CHOICE else "yes or no"
    sentence = f"{counts['label']:,} of {total:,} responses name {reading}"
    if counts["none"]:
        sentence += f"; {counts['none']:,} name none or several: nothing is guessed, they count as not right"
    if counts["no_text"]:
        sentence += f"; {counts['no_text']:,} have no answer (empty, refused, cut off)"
    return sentence + "."


STATES = {
    "waiting": "Waits to be judged",
    "judging": "Being judged",
    "judged": "Judged",
    "stopped": "Not judged",
    "withdrawn": "Withdrawn",
}


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """A number of the submission beside that of the best."""

    name: str
    value: str
    interval: str
    bar: SafeString
    n: int | None
    method: str
    best: str
    best_interval: str


@dataclass(frozen=True, slots=True)
class Judged:
    """How far the judging of a submission is, in words, and what came of it."""

    progress: Progress
    title: str
    words: str
    standing: Standing | None = None
    heading: str = ""
    rank: str = ""
    ranks: str = ""
    board: str = ""  # its address
    ticks: SafeString | None = None
    lines: list[JudgedLine] = field(default_factory=list)


def judged(submission: Submission, viewer: Viewer) -> Judged | None:
    """None where nobody judges the submissions of its benchmark."""
    progress = queue.progress(submission, staff=allowed(viewer, "read-hidden"))
    if progress is None:
        return None
    made = Judged(progress, STATES[progress.state], _judging_words(progress))
    if progress.state == "withdrawn" or not (progress.done or progress.state == "judged"):
        return made
    standing = submissions.standing(submission, progress, viewer)
    if standing.scope is None or standing.row is None:
        return replace(made, standing=standing)
    column, unit = standing.scope.kind.shape.main, standing.scope.kind.shape.unit
    parts: list[tuple[str, Any, Any]] = [("All", standing.row, standing.best)]
    parts += [
        (name or "no level", level, standing.best and standing.best.level(name))
        for name, level in standing.row.levels.items()
    ]
    numbers = [
        (name, own.n, own.number(column.name), best.number(column.name) if best else UNKNOWN)
        for name, own, best in parts
    ]
    scale = axis([end for *_, own, _ in numbers for end in own.ends], unit=unit)
    row, scope = standing.row, standing.scope
    view = {"kind": scope.kind.in_address} if scope.kind.in_address else {}
    view |= {"source": scope.source}
    return replace(
        made,
        standing=standing,
        heading=column.label,
        rank=f"{row.place} of {standing.models}" if row.rank is not None else "",
        ranks=rank_range(row.place, row.rank_low, row.rank_high) if row.rank_low is not None else "",
        board=f"{reverse('leaderboard:models', args=[submission.benchmark])}?{urlencode(view)}",
        ticks=axis_head(scale, _tick if unit == 0.01 else tick),
        lines=[
            JudgedLine(
                name,
                column.write(own.value),
                _between(own, column.write),
                interval_bar(scale, own.value, own.low, own.high, write=column.write),
                n,
                own.method or own.reason,
                column.write(best.value),
                _between(best, column.write),
            )
            for name, n, own, best in numbers
        ],
    )


def _between(number: Number, write: Callable[[float | None], str]) -> str:
    return "–" if number.low is None else f"{write(number.low)} to {write(number.high)}"


def _judging_words(progress: Progress) -> str:
    calls = f"{progress.done:,} of {progress.planned:,} judgments are made"
    if progress.state == "waiting":
        place = f"It is number {progress.place} of {progress.waiting} in the queue" if progress.place else "It waits"
        why = f": {progress.reason}, it goes on with the next day's (UTC)" if progress.reason else ""
        return f"{place}{why}.{f' {calls}.' if progress.planned else ''}"
    if progress.state == "judging":
        words = calls if progress.planned else "Its numbers are shown when all of it is judged"
        return f"{words}{f', {progress.reason}' if progress.reason else ''}."
    if progress.state == "stopped":
        return f"{progress.reason[:1].upper()}{progress.reason[1:]}.{f' {calls}.' if progress.planned else ''}"
    if progress.failures:
        return f"{calls}; {progress.failures:,} failed and are counted as such."
    return f"{calls}." if progress.planned else ""


def judging_as_json(submission: Submission, viewer: Viewer) -> dict[str, Any] | None:
    """The same for scripts, with the rows as boards write them."""
    shown = judged(submission, viewer)
    if shown is None:
        return None
    progress = shown.progress
    written = {
        name: getattr(progress, name)
        for name in ("state", "reason", "place", "waiting", "done", "planned", "failures", "finished_at")
    }
    return written | {
        "run": progress.run.pk if progress.run else None,
        "judge": progress.run.judge.name if progress.run else None,
        "standing": shown.standing.as_json() if shown.standing else None,
    }


@dataclass(frozen=True, slots=True)
class Faults:
    """What was wrong with a file, the first of each kind and how many there are."""

    rows: list[list[str]]
    row_count: int
    missing: list[str]
    missing_count: int
    extra: list[str]
    extra_count: int

    @property
    def any(self) -> bool:
        return bool(self.row_count or self.missing_count or self.extra_count)


def faults(problems: dict[str, Any]) -> Faults:
    return Faults(
        rows=problems.get("problems", [])[:FIRST],
        row_count=problems.get("problem_count", 0),
        missing=problems.get("missing", [])[:FIRST],
        missing_count=problems.get("missing_count", 0),
        extra=problems.get("extra", [])[:FIRST],
        extra_count=problems.get("extra_count", 0),
    )


def fault_rows(problems: dict[str, Any]) -> Iterable[list[str]]:
    """All faults as rows: kind, place, field, what."""
    for place, name, reason in problems.get("problems", []):
        yield ["row", place, name, reason]
    for key in problems.get("missing", []):
        yield ["missing", key, "", "has no response"]
    for key in problems.get("extra", []):
        yield ["extra", key, "", "is not a sample of the benchmark"]


def scores_as_json(submission: Submission, viewer: Viewer) -> list[dict[str, Any]]:
    """The same scores for scripts; shares about keys that are not open are in whole percent, as on the page."""
    return [
        {
            "split": score.split,
            "hidden": score.hidden,
            "part": score.part,
            "kind": score.kind,
            "n": score.n,
            "numbers": told_of(score),
            "words": _words(score, submission),
        }
        for score in SubmissionScore.objects.visible_to(viewer, submission)
    ]


def told_of(score: SubmissionScore) -> dict[str, Any]:
    """The numbers as published: rounded unless all keys are open."""
    numbers: dict[str, Any] = score.numbers if score.open else _rounded(score.numbers)
    return numbers


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, DIGITS) if isinstance(value, float) else value


@dataclass(frozen=True, slots=True)
class Headline:
    """One number for a list, with what it is."""

    value: str
    about: str


def headline(scores: Iterable[SubmissionScore]) -> Headline | None:
    """The main number of a submission, preferably from the shown half of a hidden split."""
    best = sorted((score for score in scores if score.numbers), key=lambda score: (not score.hidden, score.pk))
    for score in best:
        for name in ("circular", "vanilla", "accuracy"):
            number = told_of(score).get(name)
            if number:
                line = _line(name, number, in_whole_percent=not score.open)
                way = [] if name == "accuracy" else [SHORT[name]]
                return Headline(
                    line.value, ", ".join([line.interval, *way, split_name(score.split), f"n = {line.n:,}"])
                )
    return None
