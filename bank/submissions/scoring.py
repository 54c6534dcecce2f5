"""Compares a submission's responses with the answer keys: totals for every split, single marks for open keys.

Keys are read through ``bank.criteria.for_scoring``, page by page, and each page is logged. The totals of samples whose
keys are not open to everybody are for staff; ``bank.submissions.ladder`` decides what the submitter is told of them.
"""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.db.models import QuerySet

import bank.criteria
from bank import guard
from bank.criteria import answer_keys
from bank.database import batched
from bank.marking import CHOICE, PAGE, YES, YES_NO, Answer, KeyedSample, chosen_option
from bank.models import Response, ResponseMark, Submission, SubmissionRules, SubmissionScore
from bank.models.submissions import new_seed
from bank.submissions import ladder, quota
from stats.answers import choice_scores, yes_no_scores
from stats.disclosure import MIN_SAMPLES
from stats.proportions import rate
from stats.results import Estimate

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
    sample: int
    hit: bool  # right in all that was sent
    answered: bool  # names the same option in all that was sent; otherwise it is wrong whatever the key is
    open: bool  # everybody may see the key

    @property
    def chance(self) -> float:
        return 1 / self.options if self.options else 0.5


@dataclass(frozen=True, slots=True)
class Part:
    """Samples that are summed together."""

    split: str
    part: str
    kind: str
    open: bool

    @property
    def shown(self) -> bool:
        """Whether it is the half with closed keys of which the submitter may be told."""
        return not self.open and self.part != SubmissionScore.Part.KEPT


Parts = dict[Part, list[MarkedSample]]


def score(submission: Submission, rules: SubmissionRules) -> bool:
    """Replace the scores of a submission, and tell the submitter what may be told, if that was not done before.

    Returns whether anything in it has a key. Call it in a transaction.
    """
    quota.lock_person(benchmark=submission.benchmark_id, person=submission.by_id)
    best = ladder.best_told(submission)
    rivals = {told.submission_id: told.submission for told in best.values()}
    hits: dict[tuple[int, int], bool] = {}
    ResponseMark.objects.filter(response__submission=submission).delete()
    marked: list[MarkedSample] = []
    unscored = 0
    read: Counter[str] = Counter(label=0, none=0, no_text=0)
    for page in _pages(submission):
        ids = [sample.pk for sample in page]
        keys = bank.criteria.for_scoring(submission=submission, sample_ids=ids)
        open_ = _open(submission, ids)
        answers = _answers(submission, ids)
        marks: list[ResponseMark] = []
        read.update(_readings(page, answers))
        for sample in page:
            result = _mark(sample, keys.get(sample.pk, ""), answers[sample.pk], open_=sample.pk in open_)
            if result is None:
                unscored += 1
                continue
            marked.append(result[0])
            if sample.pk in open_:
                marks += result[1]
        ResponseMark.objects.bulk_create(marks, batch_size=1000)
        for rival in rivals.values():
            hits |= _hits(rival, page, keys)
    parts = _parts(marked, set(submission.benchmark.hidden_splits), rules)
    _store(submission, parts)
    shown = {(part.split, part.kind): rows for part, rows in parts.items() if part.shown}
    ladder.tell(submission, rules, shown, best=best, hits_of_best=hits)
    submission.counts = submission.counts | {"unscored": unscored, "read": dict(read)}
    return bool(parts)


def _hits(rival: Submission, samples: Sequence[KeyedSample], keys: Mapping[int, str]) -> dict[tuple[int, int], bool]:
    """Whether this submission is right, by its id and the sample's; without samples whose key no rule can read."""
    answers = _answers(rival, [sample.pk for sample in samples])
    results = (_mark(sample, keys.get(sample.pk, ""), answers[sample.pk]) for sample in samples)
    return {(rival.pk, result[0].sample): result[0].hit for result in results if result}


def _open(submission: Submission, ids: Sequence[int]) -> set[int]:
    """The samples among these whose keys everybody may see."""
    asked = submission.benchmark.samples.filter(pk__in=ids)
    return set(answer_keys.with_open_keys(asked).values_list("pk", flat=True))


def _readings(samples: Iterable[KeyedSample], answers: Mapping[int, list[Response]]) -> Iterator[str]:
    """Of the answers to questions with options."""
    for sample in samples:
        if sample.labels:
            yield from (_reading(response, sample.labels) for response in answers[sample.pk])


def _reading(response: Answer, labels: tuple[str, ...]) -> str:
    """Whether a response names an option; this needs no key."""
    if response.status != Response.Status.OK:
        return "no_text"
    return "label" if chosen_option(response, labels) else "none"


def _store(submission: Submission, parts: Parts) -> None:
    """Replace the stored scores."""
    hidden, circular = submission.benchmark.hidden_splits, bool(submission.counts.get("circular"))
    SubmissionScore.objects.filter(submission=submission).delete()
    SubmissionScore.objects.bulk_create(
        SubmissionScore(  # type: ignore[misc]  # the field's stubs know only text
            submission=submission,
            split=part.split,
            hidden=part.split in hidden,
            open=part.open,
            part=part.part,
            kind=part.kind,
            n=len(rows),
            numbers=numbers(part.kind, rows, circular=circular),
        )
        for part, rows in parts.items()
    )


def nearly_the_same(submission: Submission, rules: SubmissionRules) -> Submission | None:
    """A submission whose figure is released, and whose answers to the kept half differ from these in few samples."""
    if not rules.private_half:
        return None
    told = submission.benchmark.submissions.filter(told_scores__kept=True).exclude(pk=submission.pk)
    others = list(told.distinct())
    answered, differing = _count_differing(submission, others, rules) if others else ({}, {})
    near = {part[0] for part, few in differing.items() if 0 < few < MIN_SAMPLES and answered[part]}
    return next((other for other in others if other.pk in near), None)


OfSplit = tuple[int, str, bool]  # a submission, a split and whether there are options


def _count_differing(
    submission: Submission, others: Sequence[Submission], rules: SubmissionRules
) -> tuple[dict[OfSplit, int], dict[OfSplit, int]]:
    """Samples of the kept half that these others answer, and those that they answer in another way."""
    answered: Counter[OfSplit] = Counter()
    differing: Counter[OfSplit] = Counter()
    for page in _pages(submission):
        ids = [sample.pk for sample in page]
        open_ = _open(submission, ids)
        kept = _kept([sample for sample in page if sample.pk not in open_], rules)
        own = _answers(submission, ids)
        for other in others:
            theirs = _answers(other, ids)
            for sample in kept:
                key = (other.pk, sample.split, bool(sample.labels))
                chosen = _chosen_options(theirs[sample.pk], sample.labels)
                answered[key] += bool(chosen)
                differing[key] += chosen != _chosen_options(own[sample.pk], sample.labels)
    return answered, differing


def _kept(samples: Iterable[KeyedSample], rules: SubmissionRules) -> list[KeyedSample]:
    return [sample for sample in samples if is_kept(seed=rules.seed, cluster=sample.cluster)]


def marks(submission: Submission) -> QuerySet[ResponseMark]:
    """The marked answers whose keys are public now, whatever they were when marked."""
    open_ = answer_keys.with_open_keys(submission.benchmark.samples.order_by())
    return ResponseMark.objects.filter(response__submission=submission, response__sample__in=open_)


def _pages(submission: Submission) -> Iterator[list[KeyedSample]]:
    """The answered samples, page by page."""
    with guard.working():
        answered = Response.objects.filter(submission=submission).order_by("sample").values_list("sample", flat=True)
    for ids in batched(list(answered.distinct()), PAGE):
        samples = submission.benchmark.samples.filter(pk__in=ids).select_related("capability").order_by("pk")
        yield [KeyedSample.from_sample(sample) for sample in samples]


@guard.working()
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
    options = _chosen_options(responses, sample.labels)
    marks = [
        ResponseMark(response=response, option=options[response.variant], right=options[response.variant] == expected)
        for response in responses
    ]
    rights = [mark.right for mark in marks]
    first = options.get("", "")
    complete = len(rights) == max(len(sample.labels), 1)
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
        hit=bool(rights) and all(rights),
        answered=bool(first) and set(options.values()) == {first},
        open=open_,
    )
    return marked, marks


def _chosen_options(responses: Iterable[Answer], labels: tuple[str, ...]) -> dict[str, str]:
    """By variant."""
    return {response.variant: chosen_option(response, labels) for response in responses}


def _parts(marked: Iterable[MarkedSample], hidden: set[str], rules: SubmissionRules) -> Parts:
    """The samples by split, kind of question and whether their keys are open; the closed ones in two halves."""
    parts: Parts = defaultdict(list)
    for sample in marked:
        part = SubmissionScore.Part.WHOLE
        open_ = sample.open and sample.split not in hidden
        if not open_ and rules.private_half:
            in_kept_half = is_kept(seed=rules.seed, cluster=sample.cluster)
            part = SubmissionScore.Part.KEPT if in_kept_half else SubmissionScore.Part.SHOWN
        parts[Part(sample.split, part.value, sample.kind, open_)].append(sample)
    return dict(sorted(parts.items(), key=lambda item: (item[0].split, item[0].part, item[0].kind, item[0].open)))


def _extraction(rows: Sequence[MarkedSample]) -> dict[str, int]:
    """How many responses name an option, none, or hold no text."""
    return {
        "label": sum(row.found for row in rows),
        "none": sum(row.sent - row.found - row.silent for row in rows),
        "no_text": sum(row.silent for row in rows),
    }


def numbers(kind: str, rows: list[MarkedSample], *, circular: bool) -> dict[str, Any]:
    """The numbers of one part, as stored: for staff, and for everybody where its keys are open."""
    result = _choice(rows, circular=circular) if kind == CHOICE else _yes_no(rows)
    result["extraction"] = _extraction(rows)
    # What telling a figure takes (``bank.submissions.ladder``): the answers behind it, and how many go together.
    result["answered"] = sum(row.answered for row in rows)
    result["alike"] = sum(size**2 for size in Counter(row.cluster for row in rows).values()) / len(rows)
    levels: dict[str, list[MarkedSample]] = defaultdict(list)
    for row in rows:
        levels[row.level].append(row)
    if len(levels) > 1:
        result["levels"] = [_level(kind, name, levels[name], circular=circular) for name in sorted(levels)]
    return result


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


def _level(kind: str, name: str, rows: list[MarkedSample], *, circular: bool) -> dict[str, Any]:
    names, cluster = [name], np.asarray([row.cluster for row in rows])
    right = as_json(rate(hits=[row.right for row in rows], cluster=cluster))
    if kind == YES_NO:
        return {"names": names, "n": len(rows), "accuracy": right}
    everywhere = as_json(rate(hits=[row.everywhere for row in rows], cluster=cluster)) if circular else None
    return {"names": names, "n": len(rows), "vanilla": right, "circular": everywhere}


def as_json(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "n": estimate.n,
        "method": estimate.method,
    }
