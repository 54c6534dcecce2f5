"""Holding a submission's responses against the answer keys: aggregates for every split, single marks for open ones.

Keys are read through ``bank.criteria.for_scoring``, page by page, and each page is logged. Nothing that this module
stores about a hidden split tells about fewer than ``LEAST`` samples.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

import bank.criteria
from bank.imports import batched
from bank.models import Response, ResponseMark, Sample, Submission, SubmissionRules, SubmissionScore
from bank.submissions.halves import is_kept
from stats.choices import choice_scores, shown_as
from stats.proportions import rate
from stats.results import Estimate
from stats.said import answer_in, option_in
from stats.yes_no import yes_no_scores

LEAST = 10  # samples of a hidden split that a number is about, at least
PAGE = 500
CHOICE, YES_NO = SubmissionScore.Kind.CHOICE, SubmissionScore.Kind.YES_NO
YES = {"yes": 1, "no": 0}


@dataclass(frozen=True, slots=True)
class Held:
    """One sample held against its key. ``said`` and ``key`` are for yes or no: 1, 0, -1 for neither."""

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


@dataclass(frozen=True, slots=True)
class Keyed:
    """A sample that was answered, as scoring needs it."""

    pk: int
    split: str
    labels: tuple[str, ...]
    cluster: str
    level: str
    path: str = ""  # of its capability, from the top

    @classmethod
    def of(cls, sample: Sample) -> "Keyed":
        path = sample.capability.path if sample.capability else ""
        level = sample.capability.level if sample.capability else ""
        return cls(sample.pk, sample.split, tuple(sample.options), sample.cluster, level, path)

    def kind_of(self, key: str) -> tuple[str, str] | None:
        """The kind of question and the key as answers say it; None where no rule reads the key."""
        key = key.strip()
        if self.labels:
            return (CHOICE, key) if key in self.labels else None
        return (YES_NO, key.lower()) if key.lower() in YES else None


def score(submission: Submission, rules: SubmissionRules) -> bool:
    """Store the scores of a submission anew; whether anything in it has a key. Call it in a transaction."""
    hidden = set(submission.benchmark.hidden_splits)
    SubmissionScore.objects.filter(submission=submission).delete()
    ResponseMark.objects.filter(response__submission=submission).delete()
    held: list[Held] = []
    unscored = 0
    for page in _pages(submission):
        keys = bank.criteria.for_scoring(submission=submission, sample_ids=[sample.pk for sample in page])
        answers = _answers(submission, [sample.pk for sample in page])
        marks: list[ResponseMark] = []
        for sample in page:
            one = _hold(sample, keys.get(sample.pk, ""), answers[sample.pk])
            if one is None:
                unscored += 1
                continue
            held.append(one[0])
            if sample.split not in hidden:
                marks += one[1]
        ResponseMark.objects.bulk_create(marks, batch_size=1000)
    circular = bool(submission.counts.get("circular"))
    scores = [
        SubmissionScore(
            submission=submission,
            split=split,
            hidden=split in hidden,
            part=part,
            kind=kind,
            n=len(rows),
            numbers=numbers(kind, rows, circular=circular, least=LEAST if split in hidden else 1, seed=submission.pk),
        )
        for (split, part, kind), rows in sorted(_parts(held, hidden, rules).items())
    ]
    SubmissionScore.objects.bulk_create(scores)
    submission.counts = submission.counts | {"unscored": unscored}
    return bool(scores)


def _pages(submission: Submission) -> Iterator[list[Keyed]]:
    """The samples that were answered, page by page."""
    answered = Response.objects.filter(submission=submission).order_by("sample").values_list("sample", flat=True)
    for ids in batched(list(answered.distinct()), PAGE):
        samples = submission.benchmark.samples.filter(pk__in=ids).select_related("capability").order_by("pk")
        yield [Keyed.of(sample) for sample in samples]


def _answers(submission: Submission, ids: Sequence[int]) -> dict[int, list[Response]]:
    found: dict[int, list[Response]] = defaultdict(list)
    names = ("pk", "sample_id", "variant", "text", "status", "option_order")
    # By sample and model, for which there is an index: by submission, each page would read all of it.
    own = Response.objects.filter(sample_id__in=ids, model=submission.model_id).only(*names, "submission_id")
    for response in own:
        if response.submission_id == submission.pk:
            found[response.sample_id].append(response)
    return found


def _hold(sample: Keyed, key: str, responses: list[Response]) -> tuple[Held, list[ResponseMark]] | None:
    """A sample's responses against its key; None where the key is none that a rule can read."""
    asked = sample.kind_of(key)
    if asked is None:
        return None
    kind, wanted = asked
    said = {response.variant: said_by(response, sample.labels) for response in responses}
    marks = [
        ResponseMark(response=response, option=said[response.variant], right=said[response.variant] == wanted)
        for response in responses
    ]
    rights = [mark.right for mark in marks]
    first = said.get("", "")
    held = Held(
        split=sample.split,
        kind=kind,
        cluster=sample.cluster,
        level=sample.level,
        options=len(sample.labels),
        right=first == wanted,
        everywhere=all(rights) and len(rights) == max(len(sample.labels), 1),
        said=YES.get(first, -1),
        key=YES.get(wanted, -1),
        sent=len(responses),
        found=sum(option != "" for option in said.values()),
        silent=sum(response.status != Response.Status.OK for response in responses),
    )
    return held, marks


class Answer(Protocol):
    """What is read of a response."""

    @property
    def status(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def variant(self) -> str: ...
    @property
    def option_order(self) -> Any: ...


def said_by(response: Answer, labels: tuple[str, ...]) -> str:
    """The option that a response chose, named as the sample names it; yes or no without options; empty for none."""
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


def _parts(held: Iterable[Held], hidden: set[str], rules: SubmissionRules) -> dict[tuple[str, str, str], list[Held]]:
    """The samples by split, part and kind of question."""
    parts: dict[tuple[str, str, str], list[Held]] = defaultdict(list)
    for one in held:
        part = SubmissionScore.Part.WHOLE
        if one.split in hidden and rules.private_half:
            kept = is_kept(seed=rules.seed, cluster=one.cluster)
            part = SubmissionScore.Part.KEPT if kept else SubmissionScore.Part.SHOWN
        parts[(one.split, part.value, one.kind)].append(one)
    return parts


def numbers(kind: str, rows: list[Held], *, circular: bool, least: int, seed: int) -> dict[str, Any]:
    """The numbers of one part, as stored and shown; empty where they would be about fewer than ``least`` samples."""
    if len(rows) < least:
        return {}
    found = _choice(rows, circular=circular) if kind == CHOICE else _yes_no(rows, seed=seed)
    found["extraction"] = {
        "label": sum(row.found for row in rows),
        "none": sum(row.sent - row.found - row.silent for row in rows),
        "no_text": sum(row.silent for row in rows),
    }
    levels = grouped(rows, least=least)
    if len(levels) > 1:
        found["levels"] = [_level(kind, names, some, circular=circular) for names, some in levels]
    return found


def _choice(rows: list[Held], *, circular: bool) -> dict[str, Any]:
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


def _yes_no(rows: list[Held], *, seed: int) -> dict[str, Any]:
    scores = yes_no_scores(
        key=[row.key for row in rows],
        said=[row.said for row in rows],
        cluster=np.asarray([row.cluster for row in rows]),
        rng=np.random.default_rng(seed),
    )
    names = ("accuracy", "precision", "recall", "f1", "yes_ratio")
    return {name: as_json(getattr(scores, name)) for name in names}


def _level(kind: str, names: list[str], rows: list[Held], *, circular: bool) -> dict[str, Any]:
    cluster = np.asarray([row.cluster for row in rows])
    right = as_json(rate(hits=[row.right for row in rows], cluster=cluster))
    if kind == YES_NO:
        return {"names": names, "n": len(rows), "accuracy": right}
    everywhere = as_json(rate(hits=[row.everywhere for row in rows], cluster=cluster)) if circular else None
    return {"names": names, "n": len(rows), "vanilla": right, "circular": everywhere}


def grouped(rows: Iterable[Held], *, least: int) -> list[tuple[list[str], list[Held]]]:
    """Levels with at least ``least`` samples each. Smaller ones stand together, with the smallest of the others where
    they would still be too few: nothing can be had by subtracting what is shown.
    """
    levels: dict[str, list[Held]] = defaultdict(list)
    for row in rows:
        levels[row.level].append(row)
    ordered = sorted(levels.items(), key=lambda pair: len(pair[1]))
    small: list[str] = []
    together: list[Held] = []
    while ordered and (len(ordered[0][1]) < least or 0 < len(together) < least):
        name, some = ordered.pop(0)
        small.append(name)
        together += some
    found = [([name], some) for name, some in sorted(ordered)]
    return [*found, (sorted(small), together)] if together else found


def as_json(estimate: Estimate) -> dict[str, Any]:
    interval = estimate.interval
    return {
        "value": estimate.value,
        "low": interval.low if interval else None,
        "high": interval.high if interval else None,
        "n": estimate.n,
        "method": estimate.method,
    }
