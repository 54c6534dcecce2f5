"""What pages and the API say about a submission: its scores, what exactly each of them is, and its faults."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from django.urls import reverse
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from accounts.rules import Viewer, allowed
from bank.models import Submission, SubmissionScore, ToldScore
from bank.submissions.ladder import MOST_TOLD
from judging.runs import submissions as queue
from judging.runs.submissions import Progress
from leaderboard import submissions
from leaderboard.boards.base import ModelRow
from leaderboard.figures import rank_range, tick
from leaderboard.models import Edition
from leaderboard.pages.marks import WIDE, Axis, axis, axis_head, interval_bar
from leaderboard.rows import UNKNOWN, Number
from leaderboard.submissions import Standing
from stats.disclosure import MIN_SAMPLES
from stats.ladder import ERRORS, LEAST
from stats.proportions import wilson

FIRST = 20  # faults of each kind that a page lists; the others are in the file
FOR_TELLING = ("answered", "alike")  # stored beside the numbers, which they are none of
ONE_PASS, CIRCULAR, ACCURACY = "vanilla", "circular", "accuracy"
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
    "ladder": "told in steps, rounded down",
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
    n: int | None
    method: str
    bar: SafeString


@dataclass(frozen=True, slots=True)
class Block:
    """The scores of one part of one split, with what they are in words."""

    split: str
    title: str
    hidden: bool
    kept: bool
    halved: bool
    is_open: bool  # everybody may see the keys
    board: str  # the kind of board that counts it
    n: int | None
    words: str
    lines: list[Line] = field(default_factory=list)
    levels: list[tuple[str, list[Line]]] = field(default_factory=list)
    extraction: str = ""
    chance: str = ""


def split_name(split: str) -> str:
    return split or "no split"


@dataclass(frozen=True, slots=True)
class SeenScore:
    """A score as a viewer sees it: None in ``numbers``, and as ``n``, is what is not told; ``words`` say why."""

    score: SubmissionScore
    numbers: dict[str, Any]
    n: int | None
    words: str


def seen_scores(submission: Submission, viewer: Viewer) -> list[SeenScore]:
    """The scores of a submission that the viewer may see."""
    scores = SubmissionScore.objects.visible_to(viewer, submission)
    return _seen_scores(scores, submission, submission.told_scores.all(), staff=allowed(viewer, "read-hidden"))


def _seen_scores(
    scores: Iterable[SubmissionScore], submission: Submission, told: Iterable[ToldScore], *, staff: bool
) -> list[SeenScore]:
    rows = {(row.split, row.kind, row.kept): row for row in told}
    found = []
    for score in scores:
        row = rows.get((score.split, score.kind, score.part == SubmissionScore.Part.KEPT))
        if staff or score.open:
            numbers = {name: value for name, value in score.numbers.items() if name not in FOR_TELLING}
            words = _whole_words(score, submission)
            if not score.open and (score.part != SubmissionScore.Part.KEPT or submission.released_at):
                words += f" Its sender was told: {_told_words(score, row)}{_told_interval(score, row)}"
            found.append(SeenScore(score, numbers, score.n, words))
        else:
            # How many questions are answered by yes or no depends on their keys.
            n = score.n if score.kind == SubmissionScore.Kind.CHOICE else None
            found.append(
                SeenScore(score, _told_numbers(score, row, n), n, _told_words(score, row) + _part_words(score))
            )
    return found


def _main(score: SubmissionScore) -> str:
    """The number that is told."""
    return next((name for name in (CIRCULAR, ONE_PASS, ACCURACY) if score.numbers.get(name)), ACCURACY)


def _told_numbers(score: SubmissionScore, told: ToldScore | None, n: int | None) -> dict[str, Any]:
    """What is told of keys that are not open, in the shape of the whole."""
    choice = score.kind == SubmissionScore.Kind.CHOICE
    names = (ONE_PASS, CIRCULAR) if choice else (ACCURACY, "precision", "recall", "f1", "yes_ratio")
    numbers: dict[str, Any] = dict.fromkeys((*names, "extraction"))
    numbers["best"] = None
    if choice:
        numbers["chance"] = round(score.numbers.get("chance") or 0.0, 2)
    if told is not None:
        numbers["best"] = told.best and round(told.best, 3)
        if told.value is not None:
            numbers[_main(score)] = _told_number(score, told, told.value, n)
    return numbers


def _told_number(score: SubmissionScore, told: ToldScore, value: float, n: int | None) -> dict[str, Any]:
    """A told share; of a kept half with the interval that follows from it alone."""
    number = {"value": round(value, 3), "low": None, "high": None, "n": n, "method": "ladder"}
    alike = score.numbers.get("alike")
    if told.kept and alike:
        interval = wilson(successes=value * score.n / alike, n=score.n / alike)
        number |= {"low": round(interval.low, 2), "high": round(interval.high, 2), "method": "wilson"}
    return number


def _told_interval(score: SubmissionScore, told: ToldScore | None) -> str:
    """For staff, why the interval of a released figure is another than theirs."""
    number = _told_number(score, told, told.value, score.n) if told is not None and told.value is not None else None
    if number is None or number["low"] is None:
        return ""
    return (
        f" Their interval, {_whole_percent(number['low'])} to {_whole_percent(number['high'])}, follows from this "
        "rounded figure alone, so that it tells nothing more: as if answers about one picture were right or wrong "
        "together."
    )


def _whole_percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.0f}%"


def _told_words(score: SubmissionScore, told: ToldScore | None) -> str:
    if told is None:
        return (
            f"Not told: a number covers at least {MIN_SAMPLES} samples, and where a curator sets no limit, a person is "
            f"told of {MOST_TOLD} submissions."
        )
    if told.kept:
        return f"{_whole_percent(told.value)} of the kept half, whose score ranks, as it was at its release."
    if told.value is not None:
        return f"At least {_whole_percent(told.value)}."
    if told.best is not None:
        return f"No better than your best ({_whole_percent(told.best)})."
    return f"No better than chance ({_whole_percent(score.numbers.get('chance') or 0.5)})."


def _part_words(score: SubmissionScore) -> str:
    if score.part == SubmissionScore.Part.KEPT:
        return ""
    words = (
        f" Its keys are not open, so a score is told where it beats the best that you were told, with any model, by "
        f"more than {LEAST} samples and {ERRORS} standard errors of the difference, rounded down to that step."
    )
    if score.part == SubmissionScore.Part.SHOWN:
        words += " This is about one half of the samples. The other half is kept back and ranks."
    return words


def blocks(submission: Submission, viewer: Viewer) -> list[Block]:
    """The scores that the viewer may see, the hidden splits last."""
    kept_half = SubmissionScore.Part.KEPT
    ordered = sorted(
        seen_scores(submission, viewer),
        key=lambda one: (one.score.hidden, one.score.split, one.score.part == kept_half, one.score.pk),
    )
    return [_block(one, submission) for one in ordered]


def _block(one: SeenScore, submission: Submission) -> Block:
    score, numbers = one.score, one.numbers
    kind = "multiple choice" if score.kind == SubmissionScore.Kind.CHOICE else "yes or no"
    counts, about = numbers.get("extraction"), ""
    if counts is None and score.kind == SubmissionScore.Kind.CHOICE:
        counts, about = submission.counts.get("read"), "Of the whole file, "
    return Block(
        split=score.split,
        title=f"{split_name(score.split)}, {kind}",
        hidden=score.hidden,
        kept=score.part == SubmissionScore.Part.KEPT,
        halved=score.part == SubmissionScore.Part.SHOWN,
        is_open=score.open,
        board=score.kind.replace("_", "-"),
        n=one.n,
        words=one.words,
        lines=[_line(name, numbers[name], in_whole_percent=not score.open) for name in NAMES if numbers.get(name)],
        levels=[
            (
                ", ".join(name or "no level" for name in level["names"]),
                [_line(n, level[n], in_whole_percent=not score.open) for n in NAMES if level.get(n)],
            )
            for level in numbers.get("levels", [])
        ],
        extraction=about + _extraction(counts, score.kind) if counts else "",
        chance=percent(numbers["chance"]) if numbers.get("chance") else "",
    )


def _line(name: str, number: dict[str, Any], *, in_whole_percent: bool) -> Line:
    low, high = number["low"], number["high"]
    digits = 0 if in_whole_percent else 1
    return Line(
        name=NAMES[name],
        meaning=MEANINGS.get(name, ""),
        short=SHORT.get(name, ""),
        value="–" if number["value"] is None else f"{100 * number['value']:.{digits}f}",
        interval="–" if low is None else f"{100 * low:.{digits}f} to {100 * high:.{digits}f}",
        n=number["n"],
        method=METHODS.get(number["method"], number["method"]),
        bar=interval_bar(UNIT, number["value"], low, high, write=percent),
    )


def axis_ticks() -> SafeString:
    return axis_head(UNIT, _tick)


def _whole_words(score: SubmissionScore, submission: Submission) -> str:
    """What the whole numbers are about."""
    if score.open:
        return f"{score.n} samples of the split, whose keys are open to everybody. Each answer is marked below."
    if score.part == SubmissionScore.Part.KEPT:
        released = "It is released." if submission.released_at else "Only staff see it until a curator releases it."
        return f"The kept half: {score.n} samples drawn once and for all, whose score ranks. {released}"
    if score.part == SubmissionScore.Part.SHOWN:
        return f"The shown half: {score.n} samples, the same for every submission. Only staff see its numbers."
    return f"{score.n} samples of the split whose keys are not open. Only staff see these numbers."


def _extraction(counts: dict[str, int], kind: str) -> str:
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
class Next:
    """What is still to come before a scored submission ranks: its release (``waits``), then, where keys are not open
    (``sealed``), an edition of the board (``to_come``). ``edition``: where that is published, for those who may;
    ``board``: where it stands then.
    """

    waits: bool
    halved: bool
    sealed: bool
    to_come: bool
    edition: str
    board: str


def next_of(submission: Submission, viewer: Viewer, shown: Iterable[Block]) -> Next:
    """The steps that a submission has before it."""
    listed = list(shown)
    closed = next((block for block in listed if not block.is_open), None)
    scored = submission.state == Submission.State.SCORED
    to_come, view, query = False, {}, ""
    if closed is not None:
        view = {"kind": closed.board, "split": closed.split if closed.hidden else ""}
        query = f"?{urlencode({name: value for name, value in view.items() if value})}"
    if closed is not None and scored and submission.released_at is not None:
        editions = Edition.objects.filter(benchmark=submission.benchmark, what=Edition.What.MODELS, **view)
        newest = editions.order_by("-number").first()
        to_come = newest is None or submission.name not in newest.cells
    publish = reverse("leaderboard:edition-new", args=[submission.benchmark])
    return Next(
        waits=scored and submission.released_at is None,
        halved=any(block.halved for block in listed),
        sealed=closed is not None,
        to_come=to_come,
        edition=publish + query if to_come and allowed(viewer, "publish") else "",
        board=reverse("leaderboard:models", args=[submission.benchmark]) + query,
    )


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


def _judged_numbers(standing: Standing, row: ModelRow, column: str) -> list[tuple[str, int | None, Number, Number]]:
    """The submission's number as a whole and by level, how many it counts, and that of the best model."""
    parts: list[tuple[str, Any, Any]] = [("All", row, standing.best)]
    if not standing.whole:
        parts += [
            (name or "no level", level, standing.best and standing.best.level(name))
            for name, level in row.levels.items()
        ]
    return [
        (name, None if standing.whole else own.n, own.number(column), best.number(column) if best else UNKNOWN)
        for name, own, best in parts
    ]


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
    numbers = _judged_numbers(standing, standing.row, column.name)
    scale = axis([end for *_, own, _ in numbers for end in own.ends], unit=unit)
    row, scope = standing.row, standing.scope
    view = {"kind": scope.kind.in_address} if scope.kind.in_address else {}
    view |= {"source": scope.source}
    return replace(
        made,
        standing=standing,
        heading=column.label,
        rank=f"{row.place} of {standing.models}" if row.rank is not None else "",
        ranks=rank_range(row.place, row.rank_low, row.rank_high)
        if row.rank_low is not None and not standing.whole
        else "",
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
    calls = f"{progress.done or 0:,} of {progress.planned or 0:,} judgments are made"
    if progress.state == "waiting":
        place = f"It is number {progress.place} of {progress.waiting} in the queue" if progress.place else "It waits"
        why = f": {progress.reason}, it goes on with the next day's (UTC)" if progress.reason else ""
        return f"{place}{why}.{f' {calls}.' if progress.planned else ''}"
    if progress.state == "judging":
        words = calls if progress.planned else "It is told on the next day (UTC) when all of it is judged"
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
    """The same scores for scripts."""
    return [
        {
            "split": one.score.split,
            "hidden": one.score.hidden,
            "part": one.score.part,
            "kind": one.score.kind,
            "n": one.n,
            "numbers": one.numbers,
            "words": one.words,
        }
        for one in seen_scores(submission, viewer)
    ]


def counts_as_seen(submission: Submission, viewer: Viewer) -> dict[str, Any]:
    """What was counted in the file. How many samples no rule can score depends on their keys: staff are told."""
    counts: dict[str, Any] = submission.counts
    return counts if allowed(viewer, "read-hidden") or not counts.get("unscored") else counts | {"unscored": None}


@dataclass(frozen=True, slots=True)
class Headline:
    """One number for a list, with what it is; ``told`` is False for words that take its place."""

    value: str
    about: str
    told: bool = True


def headlines(submissions: Iterable[Submission], viewer: Viewer) -> list[Headline | None]:
    """The main number of each submission, preferably of a hidden split, without kept halves."""
    listed = list(submissions)
    ids = [submission.pk for submission in listed]
    scores: dict[int, list[SubmissionScore]] = {}
    for score in SubmissionScore.objects.filter(submission__in=ids).exclude(part=SubmissionScore.Part.KEPT):
        scores.setdefault(score.submission_id, []).append(score)
    told: dict[int, list[ToldScore]] = {}
    for row in ToldScore.objects.filter(submission__in=ids, kept=False):
        told.setdefault(row.submission_id, []).append(row)
    staff = allowed(viewer, "read-hidden")
    return [
        _headline(_seen_scores(scores.get(one.pk, []), one, told.get(one.pk, []), staff=staff), told.get(one.pk, []))
        for one in listed
    ]


def _headline(scores: list[SeenScore], told: list[ToldScore]) -> Headline | None:
    ordered = sorted(scores, key=lambda one: (not one.score.hidden, one.score.pk))
    for one in ordered:
        split = split_name(one.score.split)
        for name in (CIRCULAR, ONE_PASS, ACCURACY):
            if number := one.numbers.get(name):
                line = _line(name, number, in_whole_percent=not one.score.open)
                parts = [line.interval] if number["low"] is not None else []
                parts += [SHORT[name]] if SHORT[name] else []
                parts += [split] if line.n is None else [split, f"n = {line.n:,}"]
                return Headline(line.value, ", ".join(parts))
    if ordered:
        first = ordered[0].score
        row = next((row for row in told if (row.split, row.kind) == (first.split, first.kind)), None)
        words = _told_words(first, row) if row is not None else "not told"
        return Headline(words[:1].lower() + words[1:].rstrip("."), split_name(first.split), told=False)
    return None
