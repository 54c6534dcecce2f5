"""What pages and the API say about a submission: its scores, what exactly each of them is, and its faults."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from django.urls import reverse

from accounts.rules import Viewer, allowed
from bank.models import Submission, SubmissionScore, ToldScore
from bank.submissions.ladder import MOST_TOLD
from judging.collecting import submissions as queue
from judging.collecting.submissions import Progress
from leaderboard import submissions
from leaderboard.boards.base import ModelRow
from leaderboard.models import Edition
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope
from leaderboard.show.marks import WIDE, Axis, Cell, axis
from leaderboard.show.table import Column, Table, Write, interval_of, names, table
from leaderboard.submissions import Standing
from stats.disclosure import MIN_SAMPLES
from stats.figures import NONE, percent, rank_range, two, whole_percent
from stats.ladder import ERRORS, LEAST
from stats.proportions import wilson

FIRST = 20  # faults of each kind that a page lists
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


@dataclass(frozen=True, slots=True)
class Line:
    """A number with its interval; ``small``: what stands beside its name; ``best``: that of the best model."""

    name: str
    number: Number
    small: str = ""
    is_level: bool = False
    best: Number = UNKNOWN


def _scores_table(
    label: str, heads: tuple[str, str], lines: list[Line], write: Write, scale: Axis, ticks: Write, best: str = ""
) -> Table:
    """``heads``: what the lines are, and what their numbers; ``best``: whose stand beside them."""

    def between(number: Number) -> Cell:
        low, high = number.between or (None, None)
        return Cell(f"{write(low)} to {write(high)}" if number.between else NONE, title=number.method or number.reason)

    return table(
        [
            names(heads[0], lambda line: Cell(line.name, line.small, small_css="wide-only")),
            Column(heads[1], lambda line: Cell(write(line.number.value), strong=not line.is_level)),
            interval_of("number", scale, ticks, write, css="axis"),
            Column("95% interval", lambda line: between(line.number)),
            Column("n", lambda line: line.number.n),
            Column(best, lambda line: write(line.best.value), shown=bool(best)),
            Column("95% interval", lambda line: between(line.best), shown=bool(best)),
        ],
        lines,
        row_css=lambda line: "lvl" if line.is_level else "",
        label=label,
        caption=label,
        css="scores",
    )


@dataclass(frozen=True, slots=True)
class Block:
    """The scores of one part of one split. ``board``: the kind of board that counts it."""

    seen: "SeenScore"
    title: str
    kept: bool
    halved: bool
    board: str
    table: Table | None
    read: dict[str, int]  # how many answers were read in which way, of the ``whole_file`` or of the part
    whole_file: bool
    chance: str


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
        f" Their interval, {whole_percent(number['low'])}% to {whole_percent(number['high'])}%, follows from this "
        "rounded figure alone, so that it tells nothing more: as if answers about one picture were right or wrong "
        "together."
    )


def _told_words(score: SubmissionScore, told: ToldScore | None) -> str:
    if told is None:
        return (
            f"Not told: a number covers at least {MIN_SAMPLES} samples, and where a curator sets no limit, a person is "
            f"told of {MOST_TOLD} submissions."
        )
    if told.kept:
        return f"{whole_percent(told.value)}% of the kept half, whose score ranks, as it was at its release."
    if told.value is not None:
        return f"At least {whole_percent(told.value)}%."
    if told.best is not None:
        return f"No better than your best ({whole_percent(told.best)}%)."
    return f"No better than chance ({whole_percent(score.numbers.get('chance') or 0.5)}%)."


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


def _level_lines(level: dict[str, Any]) -> list[Line]:
    title = ", ".join(name or "no level" for name in level["names"])
    present = [name for name in NAMES if level.get(name)]
    several = len(present) > 1
    return [Line(title, _number(level[name]), SHORT.get(name, "") if several else "", True) for name in present]


def _block(one: SeenScore, submission: Submission) -> Block:
    score, numbers = one.score, one.numbers
    kind = "multiple choice" if score.kind == SubmissionScore.Kind.CHOICE else "yes or no"
    counts = numbers.get("extraction")
    whole_file = counts is None and score.kind == SubmissionScore.Kind.CHOICE
    if whole_file:
        counts = submission.counts.get("read")
    write = percent if score.open else whole_percent
    lines = [Line(NAMES[name], _number(numbers[name]), MEANINGS.get(name, "")) for name in NAMES if numbers.get(name)]
    for level in numbers.get("levels", []):
        lines += _level_lines(level)
    title, is_kept = f"{split_name(score.split)}, {kind}", score.part == SubmissionScore.Part.KEPT
    label = f"{title}{', kept half' if is_kept else ''}"
    return Block(
        seen=one,
        title=title,
        kept=is_kept,
        halved=score.part == SubmissionScore.Part.SHOWN,
        board=score.kind.replace("_", "-"),
        table=_scores_table(label, ("Measure", "Value, %"), lines, write, UNIT, whole_percent) if lines else None,
        read=counts | {"all": sum(counts.values())} if counts else {},
        whole_file=whole_file,
        chance=f"{percent(numbers['chance'])}%" if numbers.get("chance") else "",
    )


def _number(stored: dict[str, Any]) -> Number:
    method = METHODS.get(stored["method"], stored["method"])
    return Number(stored["value"], stored["low"], stored["high"], n=stored["n"], method=method)


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
    closed = next((block for block in listed if not block.seen.score.open), None)
    scored = submission.state == Submission.State.SCORED
    to_come, view = False, {}
    if closed is not None:
        view = {"kind": closed.board, "split": closed.seen.score.split if closed.seen.score.hidden else ""}
        if scored and submission.released_at is not None:
            editions = Edition.objects.filter(benchmark=submission.benchmark, what=Edition.What.MODELS, **view)
            newest = editions.order_by("-number").first()
            to_come = newest is None or submission.name not in newest.cells
    query = {name: value for name, value in view.items() if value}
    return Next(
        waits=scored and submission.released_at is None,
        halved=any(block.halved for block in listed),
        sealed=closed is not None,
        to_come=to_come,
        edition=reverse("leaderboard:edition-new", args=[submission.benchmark], query=query)
        if to_come and allowed(viewer, "publish")
        else "",
        board=reverse("leaderboard:models", args=[submission.benchmark], query=query),
    )


@dataclass(frozen=True, slots=True)
class Judged:
    """How far the judging of a submission is, and what came of it."""

    progress: Progress
    title: str
    standing: Standing | None = None
    rank: str = ""
    ranks: str = ""
    board: str = ""  # its address
    table: Table | None = None


def _judged_lines(standing: Standing, row: ModelRow, column: str) -> list[Line]:
    """The submission's number as a whole and by level, how many it counts, and that of the best model."""
    parts: list[tuple[str, Any, Any]] = [("All", row, standing.best)]
    if not standing.whole:
        of_best = standing.best.level if standing.best else lambda name: None
        parts += [(name or "no level", level, of_best(name)) for name, level in row.levels.items()]
    return [
        Line(
            name,
            replace(own.number(column), n=None if standing.whole else own.n),
            is_level=own is not row,
            best=best.number(column) if best else UNKNOWN,
        )
        for name, own, best in parts
    ]


def judged(submission: Submission, viewer: Viewer) -> Judged | None:
    """None where nobody judges the submissions of its benchmark."""
    progress = queue.progress(submission, staff=allowed(viewer, "read-hidden"))
    if progress is None:
        return None
    made = Judged(progress, STATES[progress.state])
    if progress.state == "withdrawn" or not (progress.done or progress.state == "judged"):
        return made
    standing = submissions.standing(submission, progress, viewer)
    if standing.scope is None or standing.row is None:
        return replace(made, standing=standing)
    made = replace(made, standing=standing, table=_standing_table(standing, standing.row, standing.scope))
    row, kind = standing.row, standing.scope.kind
    view = {"kind": kind.in_address} if kind.in_address else {}
    view["source"] = standing.scope.source
    board = reverse("leaderboard:models", args=[submission.benchmark], query=view)
    rank = f"{row.rank} of {standing.models}" if row.rank is not None else ""
    ranks = ""
    if row.rank_low is not None and not standing.whole:
        ranks = rank_range(row.rank, row.rank_low, row.rank_high)
    return replace(made, rank=rank, ranks=ranks, board=board)


def _standing_table(standing: Standing, row: ModelRow, scope: Scope) -> Table:
    column, unit = scope.kind.shape.main, scope.kind.shape.unit
    lines = _judged_lines(standing, row, column.name)
    scale = axis(chain.from_iterable(line.number.ends for line in lines), unit=unit)
    best, ticks = standing.best.model if standing.best else "Best", whole_percent if unit == 0.01 else two
    return _scores_table(column.label, ("Level", column.label), lines, column.write, scale, ticks, best)


def judging_as_json(submission: Submission, viewer: Viewer) -> dict[str, Any] | None:
    """The same for scripts, with the rows as boards write them."""
    shown = judged(submission, viewer)
    if shown is None:
        return None
    progress = shown.progress
    written = {
        name: getattr(progress, name)
        for name in ("state", "reason", "place", "waiting", "done", "planned", "failures", "finished_at", "told_next")
    }
    return written | {
        "run": progress.run.pk if progress.run else None,
        "judge": progress.run.judge.name if progress.run else None,
        "standing": shown.standing.as_json() if shown.standing else None,
    }


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
                write, n = percent if one.score.open else whole_percent, number["n"]
                ends = "" if number["low"] is None else f"{write(number['low'])} to {write(number['high'])}"
                parts = filter(None, (ends, SHORT[name], split, "" if n is None else f"n = {n:,}"))
                return Headline(write(number["value"]), ", ".join(parts))
    if ordered:
        first = ordered[0].score
        row = next((row for row in told if (row.split, row.kind) == (first.split, first.kind)), None)
        words = _told_words(first, row) if row is not None else "not told"
        return Headline(words[:1].lower() + words[1:].rstrip("."), split_name(first.split), told=False)
    return None
