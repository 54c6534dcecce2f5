"""Every model's stored responses compared with the answer keys, for the boards.

What a single response says stays with the caller: nothing of it is stored, and the caller must guard what is shown (see
``leaderboard.boards.models.keyed``).
"""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
from django.db.models import Exists, OuterRef, Q, QuerySet

from bank import guard
from bank.criteria import answer_keys
from bank.database import batched
from bank.marking import PAGE, KeyedSample, chosen_option, letter_of
from bank.models import Benchmark, Response, Sample, Submission
from stats.answer_text import answer_in, pope_answer

LABEL, JUDGE, RANDOM, NONE, NO_TEXT = "label", "judge", "random", "none", "no_text"
UNASKED = "unasked"  # the text names no option, and the judge who reads such texts was not asked about it
LOOKED_AT = 20  # answers read to decide whether questions are yes/no questions
SKIPPED = "skipped"  # both what it said and how: a rotation that was not asked, since an earlier one was wrong
COLUMNS = [
    *("model", "sample", "split", "path", "group", "kind", "options", "key"),
    *("variant", "said", "how", "right", "response", "letter", "key_letter"),
]
Read = Mapping[int, tuple[str, str]]  # by response: what a judge read in it, and how it came to it


def counted() -> Q:
    """Responses that boards count: imported ones, and those of submissions that passed and were not withdrawn."""
    return Q(submission=None) | Q(submission__state=Submission.State.SCORED)


@guard.working()
def are_answered(benchmark: Benchmark, *, options: bool) -> bool:
    """Whether there are answers to questions with options, or without: to those of yes or no, which most of the first
    answers say. Whether keys exist is hidden, and nothing here depends on it.
    """
    answers = Response.objects.filter(counted())
    if options:
        return answers.filter(sample__benchmark=benchmark).exclude(sample__options={}).exists()
    answers = answers.exclude(text="")
    questions = benchmark.samples.filter(Exists(answers.filter(sample=OuterRef("pk"))), options={})
    sample_ids = list(questions.order_by("position", "pk").values_list("pk", flat=True)[:LOOKED_AT])
    texts = answers.filter(sample__in=sample_ids).order_by("sample__position", "pk").values_list("text", flat=True)
    readings = [answer_in(text) for text in texts[:LOOKED_AT]]
    return sum(reading is not None for reading in readings) * 2 > len(readings)


def as_frame(
    benchmark: Benchmark, samples: QuerySet[Sample], *, kind: str, read: Read | None, pope: bool = False
) -> pd.DataFrame:
    """One row per response to a sample whose key a rule can read, for questions of this ``kind`` (choice, yes_no).

    Columns: ``model`` (id), ``sample``, ``split``, ``path`` (capability), ``group``, ``kind``, ``options`` (how many),
    ``key``, ``variant``, ``said`` (the sample's own label of the option, yes, no, or empty), ``how`` (label, judge,
    random, none, unasked, no_text), ``right`` (bool), ``response``, and what was said and the key by the labels that
    stood before them in this pass (``letter``, ``key_letter``). If a text names no option itself, ``read`` decides;
    what is not in it was not asked. Keys are read page by page, and each page is logged. With ``pope``, yes and no are
    read as POPE's own script does.
    """
    rows: list[tuple[Any, ...]] = []
    for page in _pages(samples, kind):
        keys = answer_keys.keys_for_boards(benchmark=benchmark, sample_ids=[sample.pk for sample in page])
        asked = {sample.pk: (sample, sample.kind_of(keys.get(sample.pk, ""))) for sample in page}
        for response in _responses([sample.pk for sample in page]):
            sample, kind_and_key = asked[response.sample_id]
            if kind_and_key is None or kind_and_key[0] != kind:
                continue
            said, how = _read_answer(response, sample.labels, read, pope)
            about = (response.model_id, sample.pk, sample.split, sample.path, sample.cluster, kind, len(sample.labels))
            key = kind_and_key[1]
            letters = (letter_of(said, response, sample.labels), letter_of(key, response, sample.labels))
            rows.append((*about, key, response.variant, said, how, said == key, response.pk, *letters))
    return _with_skipped(pd.DataFrame(rows, columns=COLUMNS))


def _with_skipped(frame: pd.DataFrame) -> pd.DataFrame:
    """Rotations that were not asked count as wrong while one that was asked is wrong; where the key has changed since,
    nobody knows what they would have been, and they are left out.
    """
    skipped = frame["how"] == SKIPPED
    if not skipped.any():
        return frame
    wrong = frame[(frame["how"] == LABEL) & ~frame["right"].astype(bool)]
    pairs = pd.MultiIndex.from_frame(frame[["model", "sample"]])
    known = pairs.isin(pd.MultiIndex.from_frame(wrong[["model", "sample"]]))
    return frame[~skipped | known].reset_index(drop=True)


def _pages(samples: QuerySet[Sample], kind: str) -> Iterator[list[KeyedSample]]:
    ids = samples.order_by("pk").values_list("pk", flat=True)
    for page in batched(list(ids), PAGE):
        rows = Sample.objects.filter(pk__in=page).select_related("capability").order_by("pk")
        yield [KeyedSample.from_sample(sample) for sample in rows if bool(sample.options) == (kind == "choice")]


def _responses(ids: list[int]) -> Iterator[Any]:
    names = ("pk", "sample_id", "model_id", "variant", "text", "status", "option_order")
    with guard.working():
        responses = Response.objects.filter(counted(), sample_id__in=ids).order_by("sample", "model", "variant")
    yield from responses.values_list(*names, named=True).iterator(chunk_size=2000)


def _read_answer(response: Any, labels: tuple[str, ...], read: Read | None, pope: bool) -> tuple[str, str]:
    if response.status == Response.Status.SKIPPED:
        return SKIPPED, SKIPPED
    if response.status != Response.Status.OK:
        return "", NO_TEXT
    if pope and not labels:
        return ("yes" if pope_answer(response.text) else "no"), LABEL
    chosen = chosen_option(response, labels)
    if chosen:
        return chosen, LABEL
    if read is None:
        return "", NONE
    return _checked_reading(*read.get(response.pk, ("", UNASKED)), labels)


def _checked_reading(option: str, how: str, labels: tuple[str, ...]) -> tuple[str, str]:
    """A reading, without an option that the question does not have."""
    valid = option in labels if labels else option in ("yes", "no")
    return (option, how) if valid else ("", how if option or how == UNASKED else NONE)
