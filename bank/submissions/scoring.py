"""Compares a submission's responses with the answer keys: totals for every split, single marks for open keys.

Keys are read through ``bank.criteria.for_scoring``, page by page, and each page is logged. Nothing stored about
a split whose keys are not all public reveals anything about fewer than ``MIN_SAMPLES`` of these keys, neither alone nor
compared with other numbers of the same submission, those of earlier scorings included.

What a number depends on is, by sample, a keyed hash of the key and the answer: a cell of ``stats.disclosure``. An
answer that names nothing, or another option in each rotation, is wrong whatever the key is, and reveals nothing.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

import numpy as np
from django.db.models import QuerySet

import bank.criteria
from accounts.installation_key import keyed
from bank.criteria import answer_keys
from bank.database import batched
from bank.models import Response, ResponseMark, Sample, ScoredCells, Submission, SubmissionRules, SubmissionScore
from bank.models.submissions import new_seed
from stats import disclosure
from stats.answer_text import answer_in, option_in
from stats.answers import choice_scores, shown_as, yes_no_scores
from stats.disclosure import MIN_SAMPLES, Cell, reveals_few
from stats.proportions import rate
from stats.results import Estimate

Cells = dict[str, Cell]  # what numbers are made of, by their names
PARTS = {"yes": 1, "no": 0, "neither": -1}  # of the answers, on which precision, recall and F1 rest


class Row(Protocol):
    """A sample compared with its key; ``one`` and ``every`` are empty where nothing is to be counted."""

    @property
    def sample(self) -> int: ...
    @property
    def said(self) -> int: ...
    @property
    def one(self) -> str: ...
    @property
    def every(self) -> str: ...


R = TypeVar("R", bound=Row)


def level_name(names: Sequence[str], measure: str) -> str:
    return "\x1f".join([measure, *names])


def publishable(kind: str, rows: Sequence[R], levels: Sequence[tuple[list[str], list[R]]], *, circular: bool) -> Cells:
    """The numbers of one part that may be shown together, each with its cells: the whole first, then levels."""

    def cell(level_rows: Sequence[R], measure: str) -> Cell:
        if measure == "circular":
            return {str(row.sample): row.every for row in level_rows if row.every}
        return {str(row.sample): row.one for row in level_rows if row.one and (measure != "accuracy" or row.said >= 0)}

    choice = kind == SubmissionScore.Kind.CHOICE
    measures = ["circular", "vanilla"][not circular :] if choice else ["accuracy"]
    groups = [{measure: cell(rows, measure)} for measure in measures]
    if not choice:
        groups.append({name: cell([row for row in rows if row.said == said], name) for name, said in PARTS.items()})
    for names, level_rows in sorted(levels, key=lambda level: -len(level[1])):
        groups += [{level_name(names, measure): cell(level_rows, measure)} for measure in measures]
    everything = {name: cells for group in groups for name, cells in group.items()}
    if not reveals_few(list(everything.values())):
        return everything
    return disclosure.publishable(groups)


# ---- over time ----


def shown_before(submission: Submission) -> list[Cell]:
    """The cells of every number of a submission that was ever stored; kept halves count as shown."""
    rows = ScoredCells.objects.filter(submission=submission).order_by("pk")
    return [cell for row in rows for cell in row.cells]


def keep(submission: Submission, cells: Sequence[Cell]) -> None:
    """Remember the cells of numbers that are shown from now on."""
    if cells:
        ScoredCells.objects.create(submission=submission, cells=cast(Any, cells))


def may_follow(new: Sequence[Cell], before: Sequence[Cell]) -> bool:
    """Whether these numbers, compared with those shown before, reveal nothing about few samples."""
    return all(cell in before for cell in new) or not reveals_few([*before, *new])


MOST_DRAWN, MOST_HASHED = 64, 50_000  # among many clusters any seed is even enough


def is_kept(*, seed: str, cluster: str) -> bool:
    """Whether this cluster (samples that share a picture) is in the kept half, whose score is released later.

    It depends only on the seed and the cluster, so samples added later never move others between halves.
    """
    return bool(hashlib.sha256(f"{seed}:{cluster}".encode()).digest()[0] & 1)


def even_seed(clusters: Counter[str]) -> str:
    """A secret seed whose halves have about the same number of samples; ``clusters`` counts the samples of each."""

    def unevenness(seed: str) -> int:
        in_kept_half = sum(samples for cluster, samples in clusters.items() if is_kept(seed=seed, cluster=cluster))
        return abs(2 * in_kept_half - clusters.total())

    draws = max(1, min(MOST_DRAWN, MOST_HASHED // max(1, len(clusters))))
    return min((new_seed() for _ in range(draws)), key=unevenness)


# ---- scoring ----


PAGE = 500
CHOICE, YES_NO = SubmissionScore.Kind.CHOICE, SubmissionScore.Kind.YES_NO
YES = {"yes": 1, "no": 0}
MAIN = ("circular", "vanilla", "accuracy")
STAYS = (
    "a new score would tell about fewer than ten answer keys. The score stays until ten corrections have gathered, "
    "in each level that they touch."
)
STAYS_OLD = "its keys have changed, and it was scored before this site kept what scores are made of. The score stays."


@dataclass(frozen=True, slots=True)
class MarkedSample:
    """One sample compared with its key. ``said`` and ``key`` apply to yes or no: 1, 0, -1 for neither."""

    split: str
    kind: str
    cluster: str
    level: str
    options: int
    right: bool
    everywhere: bool  # right in every rotation
    said: int
    key: int
    sent: int  # responses, of which ...
    found: int  # ... so many name an option, or yes or no, and ...
    silent: int  # ... so many hold no text
    sample: int = 0
    # What the one pass, and right in every rotation, owe to the key, hashed; empty for nothing, and for an open key.
    one: str = ""
    every: str = ""
    open: bool = False  # everybody may see the key


Parts = dict[tuple[str, str, str], list[MarkedSample]]  # by split, part and kind of question


@dataclass(frozen=True, slots=True)
class KeyedSample:
    """An answered sample, with what scoring needs."""

    pk: int
    split: str
    labels: tuple[str, ...]
    cluster: str
    level: str
    path: str = ""  # of its capability, from the top

    @classmethod
    def of(cls, sample: Sample) -> "KeyedSample":
        path = sample.capability.path if sample.capability else ""
        level = sample.capability.level if sample.capability else ""
        return cls(sample.pk, sample.split, tuple(sample.options), sample.cluster, level, path)

    def kind_of(self, key: str) -> tuple[str, str] | None:
        """The kind of question and the key as answers state it; None if no rule can read the key."""
        key = key.strip()
        if self.labels:
            return (CHOICE, key) if key in self.labels else None
        return (YES_NO, key.lower()) if key.lower() in YES else None


def score(submission: Submission, rules: SubmissionRules) -> tuple[bool, list[str]]:
    """Replace the scores of a submission; returns whether anything in it has a key, and a message for each split whose
    scores stay as they were. Call it in a transaction.
    """
    hidden = set(submission.benchmark.hidden_splits)
    ResponseMark.objects.filter(response__submission=submission).delete()
    marked: list[MarkedSample] = []
    unscored = 0
    for page in _pages(submission):
        ids = [sample.pk for sample in page]
        keys = bank.criteria.for_scoring(submission=submission, sample_ids=ids)
        asked = submission.benchmark.samples.filter(pk__in=ids)
        open_ = set(answer_keys.with_open_keys(asked).values_list("pk", flat=True))
        answers = _answers(submission, ids)
        marks: list[ResponseMark] = []
        for sample in page:
            result = _mark(sample, keys.get(sample.pk, ""), answers[sample.pk], open_=sample.pk in open_)
            if result is None:
                unscored += 1
                continue
            marked.append(result[0])
            if sample.pk in open_:
                marks += result[1]
        ResponseMark.objects.bulk_create(marks, batch_size=1000)
    stored, stays = _store(submission, _parts(marked, hidden, rules), hidden)
    submission.counts = submission.counts | {"unscored": unscored}
    return stored, stays


def _store(submission: Submission, parts: Parts, hidden: set[str]) -> tuple[bool, list[str]]:
    """Replace the stored scores of these parts, split by split, if that reveals nothing about few keys."""
    closed = {split for (split, _, _), rows in parts.items() if not all(row.open for row in rows)}
    made: dict[str, list[tuple[SubmissionScore, Cells]]] = defaultdict(list)
    for (split, part, kind), rows in sorted(parts.items()):
        numbers_of_part, cells = numbers(
            kind,
            rows,
            circular=bool(submission.counts.get("circular")),
            least=MIN_SAMPLES if split in closed else 1,
        )
        score = SubmissionScore(  # type: ignore[misc]  # the field's stubs know only text
            submission=submission,
            split=split,
            hidden=split in hidden,
            open=split not in closed,
            part=part,
            kind=kind,
            n=len(rows),
            numbers=numbers_of_part,
        )
        made[split].append((score, cells))
    stored: dict[str, list[SubmissionScore]] = defaultdict(list)
    for score in SubmissionScore.objects.filter(submission=submission):
        stored[score.split].append(score)
    shown_cells = shown_before(submission)
    shown_samples = {sample for cell in shown_cells for sample in cell}
    fresh: list[Cell] = []
    stays: dict[str, str] = {}
    for split, scores in made.items():
        new = [cell for _, of in scores for cell in of.values()]
        old = [score for score in stored[split] if not score.open and score.numbers]
        unknown = bool(old) and split in closed and shown_samples.isdisjoint(sample for cell in new for sample in cell)
        if unknown and not _the_same(old, [score for score, _ in scores]):
            stays[split] = STAYS_OLD
        elif may_follow(new, [*shown_cells, *fresh]):
            fresh += [cell for cell in new if cell not in shown_cells]
        elif stored[split]:
            stays[split] = STAYS
        else:
            for score, _ in scores:
                score.numbers = {}
    SubmissionScore.objects.filter(submission=submission).exclude(split__in=stays).delete()
    SubmissionScore.objects.bulk_create([score for split in made if split not in stays for score, _ in made[split]])
    keep(submission, fresh)
    return bool(made), [f"{split or 'no split'}: {why}" for split, why in stays.items()]


def _the_same(old: list[SubmissionScore], new: list[SubmissionScore]) -> bool:
    """Whether the main numbers are unchanged, as far as both exist."""

    def values(scores: list[SubmissionScore]) -> dict[tuple[str, str, str], Any]:
        numbers = {(score.part, score.kind, name): score.numbers.get(name) for score in scores for name in MAIN}
        return {name: number["value"] for name, number in numbers.items() if number}

    one, other = values(old), values(new)
    return all(one[name] == other[name] for name in one.keys() & other.keys()) and bool(one.keys() & other.keys())


def marks(submission: Submission) -> QuerySet[ResponseMark]:
    """The marked answers whose keys are public now, whatever they were when marked."""
    open_ = answer_keys.with_open_keys(submission.benchmark.samples.order_by())
    return ResponseMark.objects.filter(response__submission=submission, response__sample__in=open_)


def _pages(submission: Submission) -> Iterator[list[KeyedSample]]:
    """The answered samples, page by page."""
    answered = Response.objects.filter(submission=submission).order_by("sample").values_list("sample", flat=True)
    for ids in batched(list(answered.distinct()), PAGE):
        samples = submission.benchmark.samples.filter(pk__in=ids).select_related("capability").order_by("pk")
        yield [KeyedSample.of(sample) for sample in samples]


def _answers(submission: Submission, ids: Sequence[int]) -> dict[int, list[Response]]:
    answers: dict[int, list[Response]] = defaultdict(list)
    names = ("pk", "sample_id", "variant", "text", "status", "option_order")
    # By sample and model, for which there is an index: by submission, each page would read all of it.
    responses = Response.objects.filter(sample_id__in=ids, model=submission.model_id).only(*names, "submission_id")
    for response in responses:
        if response.submission_id == submission.pk:
            answers[response.sample_id].append(response)
    return answers


def _mark(
    sample: KeyedSample, key: str, responses: list[Response], *, open_: bool = False
) -> tuple[MarkedSample, list[ResponseMark]] | None:
    """A sample's responses compared with its key; None if no rule can read the key."""
    asked = sample.kind_of(key)
    if asked is None:
        return None
    kind, expected = asked
    options = {response.variant: chosen_option(response, sample.labels) for response in responses}
    marks = [
        ResponseMark(response=response, option=options[response.variant], right=options[response.variant] == expected)
        for response in responses
    ]
    rights = [mark.right for mark in marks]
    first = options.get("", "")
    complete = len(rights) == max(len(sample.labels), 1)
    owed = "" if open_ else keyed("cell", f"{expected}\x1f{first}")[:16]
    marked = MarkedSample(
        split=sample.split,
        kind=kind,
        cluster=sample.cluster,
        level=sample.level,
        options=len(sample.labels),
        right=first == expected,
        everywhere=all(rights) and complete,
        said=YES.get(first, -1),
        key=YES.get(expected, -1),
        sent=len(responses),
        found=sum(option != "" for option in options.values()),
        silent=sum(response.status != Response.Status.OK for response in responses),
        sample=sample.pk,
        one=owed if first or kind == YES_NO else "",
        every=owed if first and complete and set(options.values()) == {first} else "",
        open=open_,
    )
    return marked, marks


class Answer(Protocol):
    """What is read from a response."""

    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def option_order(self) -> Any: ...


def chosen_option(response: Answer, labels: tuple[str, ...]) -> str:
    """The option that a response chose, as the sample names it; yes or no without options; empty for none."""
    if response.status != Response.Status.OK:
        return ""
    if not labels:
        answer = answer_in(response.text)
        return "" if answer is None else "yes" if answer else "no"
    label = option_in(response.text, labels)
    if label is None:
        return ""
    shift = int(response.variant.rpartition("-")[2]) if response.variant else 0
    return shown_as(label, labels, shift=shift, order=response.option_order)


def _parts(marked: Iterable[MarkedSample], hidden: set[str], rules: SubmissionRules) -> Parts:
    """The samples by split, part and kind of question."""
    parts: Parts = defaultdict(list)
    for sample in marked:
        part = SubmissionScore.Part.WHOLE
        if sample.split in hidden and rules.private_half:
            in_kept_half = is_kept(seed=rules.seed, cluster=sample.cluster)
            part = SubmissionScore.Part.KEPT if in_kept_half else SubmissionScore.Part.SHOWN
        parts[(sample.split, part.value, sample.kind)].append(sample)
    return parts


def numbers(kind: str, rows: list[MarkedSample], *, circular: bool, least: int) -> tuple[dict[str, Any], Cells]:
    """The numbers of one part, as stored and shown, and their cells; empty if they would be about fewer than ``least``
    samples. With ``least`` 1 the keys are public and everything is shown.
    """
    if len(rows) < least:
        return {}, {}
    levels = grouped(rows, least=least)
    levels = levels if len(levels) > 1 else []
    cells = publishable(kind, rows, levels, circular=circular) if least > 1 else {}

    def kept(result: dict[str, Any], names: Sequence[str] = ()) -> dict[str, Any]:
        """The numbers without those that may not be shown."""
        untold = {name for name in MAIN if least > 1 and level_name(names, name) not in cells}
        if not names and least > 1 and "yes" not in cells:
            untold |= {"precision", "recall", "f1"}
        return {name: None if name in untold else value for name, value in result.items()}

    result = kept(_choice(rows, circular=circular) if kind == CHOICE else _yes_no(rows))
    if not any(result.get(name) for name in MAIN):
        return {}, {}
    result["extraction"] = {
        "label": sum(row.found for row in rows),
        "none": sum(row.sent - row.found - row.silent for row in rows),
        "no_text": sum(row.silent for row in rows),
    }
    shown = [kept(_level(kind, names, samples, circular=circular), names) for names, samples in levels]
    if shown := [level for level in shown if any(level.get(name) for name in MAIN)]:
        result["levels"] = shown
    return result, cells


def _choice(rows: list[MarkedSample], *, circular: bool) -> dict[str, Any]:
    scores = choice_scores(
        vanilla=[row.right for row in rows],
        circular=[row.everywhere for row in rows] if circular else None,
        options=[row.options for row in rows],
        cluster=np.asarray([row.cluster for row in rows]),
    )
    return {
        "vanilla": as_json(scores.vanilla),
        "circular": None if scores.circular is None else as_json(scores.circular),
        "chance": scores.chance,
    }


def _yes_no(rows: list[MarkedSample]) -> dict[str, Any]:
    scores = yes_no_scores(
        key=[row.key for row in rows],
        said=[row.said for row in rows],
        cluster=np.asarray([row.cluster for row in rows]),
    )
    names = ("accuracy", "precision", "recall", "f1", "yes_ratio")
    return {name: as_json(getattr(scores, name)) for name in names}


def _level(kind: str, names: list[str], rows: list[MarkedSample], *, circular: bool) -> dict[str, Any]:
    cluster = np.asarray([row.cluster for row in rows])
    right = as_json(rate(hits=[row.right for row in rows], cluster=cluster))
    if kind == YES_NO:
        return {"names": names, "n": len(rows), "accuracy": right}
    everywhere = as_json(rate(hits=[row.everywhere for row in rows], cluster=cluster)) if circular else None
    return {"names": names, "n": len(rows), "vanilla": right, "circular": everywhere}


def grouped(rows: Iterable[MarkedSample], *, least: int) -> list[tuple[list[str], list[MarkedSample]]]:
    """Levels with at least ``least`` samples each. Smaller ones are combined, if needed with the smallest of the
    others: nothing can be computed by subtracting what is shown.
    """
    levels: dict[str, list[MarkedSample]] = defaultdict(list)
    for row in rows:
        levels[row.level].append(row)
    ordered = sorted(levels.items(), key=lambda pair: len(pair[1]))
    small: list[str] = []
    together: list[MarkedSample] = []
    while ordered and (len(ordered[0][1]) < least or 0 < len(together) < least):
        name, samples = ordered.pop(0)
        small.append(name)
        together += samples
    large = [([name], samples) for name, samples in sorted(ordered)]
    return [*large, (sorted(small), together)] if together else large


def as_json(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {
        "value": estimate.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n": estimate.n,
        "method": estimate.method,
    }
