"""Automatic hints about what may be wrong with a sample. A hint never blocks anything."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from django.db.models import Count, F
from django.utils import timezone

import bank.criteria
from accounts.models import User
from bank.database import batched, chunks
from bank.models import Benchmark, Sample, SampleImage

SHORT_EDGE = 512  # pixels; MLLM-Bench's guideline (Table 10)
MOST_BITS = 5  # of 64 that may differ between pictures that look alike
BLOCK = 512  # rows compared at a time


@dataclass(frozen=True, slots=True)
class Hint:
    """One kind of hint: its bit in ``Sample.quality_hints``, its label on a chip, and its meaning."""

    bit: int
    name: str
    title: str
    meaning: str


NO_IMAGE, SMALL, DUPLICATE, NO_CRITERIA, GIVES_AWAY = 1, 2, 4, 8, 16
HINTS = [
    Hint(NO_IMAGE, "no-image", "no picture", "The sample has no picture, so its question is asked of the text alone."),
    Hint(SMALL, "small", "small picture", f"A picture's short edge is below {SHORT_EDGE} pixels."),
    Hint(DUPLICATE, "duplicate", "near-duplicate", "A picture looks almost the same as one of another sample."),
    Hint(
        NO_CRITERIA,
        "no-criteria",
        "no criteria",
        "There are no criteria, so judges see only the question and the answers.",
    ),
    Hint(GIVES_AWAY, "gives-away", "gives the answer", "The instruction or hint contains the text of the answer."),
]
BY_NAME = {hint.name: hint for hint in HINTS}
ALL = sum(hint.bit for hint in HINTS)
REFERENCES = frozenset(["exact_reference", "answer_key"])
LEAST = 4  # letters of an answer; shorter ones occur in many instructions by chance


def hints_in(mask: int) -> list[Hint]:
    """The hints whose bits are set."""
    return [hint for hint in HINTS if mask & hint.bit]


def masks_with(hint: Hint) -> list[int]:
    """Every value of the column that has this hint set."""
    return [mask for mask in range(1, ALL + 1) if mask & hint.bit]


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def gives_away(shown: Iterable[str], references: Iterable[tuple[str, str]], options: dict[str, str]) -> bool:
    """Whether a visible text contains an exact reference or answer key ((kind, text) pairs) as whole words.

    Answers of fewer than four letters and option letters occur in too many texts to mean anything.
    """
    answers = [_plain(text) for kind, text in references if kind in REFERENCES and text not in options]
    answers = [answer for answer in answers if len(answer) >= LEAST]
    return bool(answers) and any(f" {answer} " in f" {_plain(text)} " for text in shown for answer in answers)


def hints_for(
    *,
    shown: Iterable[str],
    options: dict[str, str],
    sizes: Sequence[tuple[int, int]],
    absent: bool,
    criteria: Sequence[tuple[str, str]],
) -> int:
    """The hint mask of one sample by itself; near-duplicates need the other samples (``duplicate_changes``).

    ``sizes`` are width and height of its pictures, ``absent`` says whether it names pictures that are not stored here,
    ``criteria`` are (kind, text) pairs.
    """
    mask = 0 if sizes or absent else NO_IMAGE
    if sizes and any(min(size) < SHORT_EDGE for size in sizes):
        mask |= SMALL
    if not criteria:
        return mask | NO_CRITERIA
    for kind, _ in criteria:  # most samples have no such criterion, and an import calls this a hundred thousand times
        if kind in REFERENCES:
            return mask | (GIVES_AWAY if gives_away(shown, criteria, options) else 0)
    return mask


def near_duplicates(hashes: Sequence[tuple[int, str, str]]) -> dict[int, set[int]]:
    """For each sample, the samples with a picture that looks almost the same, from (sample id, hash, group) of each
    picture.

    At most ``MOST_BITS`` of 64 bits differ. By the pigeonhole principle such a pair agrees in one of MOST_BITS + 1
    bands of bits, so only pictures that share a band are compared. Samples in one named group share pictures on
    purpose, and a plain surface (hash 0) looks like any other: neither counts.
    """
    owners = _owners(hashes)
    twins: dict[int, set[int]] = defaultdict(set)

    def join(one: int, other: int) -> None:
        for sample, group in owners[one]:
            for twin, theirs in owners[other]:
                if sample != twin and not (group and group == theirs):
                    twins[sample].add(twin)
                    twins[twin].add(sample)

    for value, holders in owners.items():
        if len(holders) > 1:
            join(value, value)
    for one, other in _near_values(np.array(sorted(owners), dtype=np.uint64)):
        join(one, other)
    return dict(twins)


def _owners(hashes: Iterable[tuple[int, str, str]]) -> dict[int, list[tuple[int, str]]]:
    """(sample id, group) of the pictures by hash as a number."""
    owners: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for sample, text, group in hashes:
        if text and (value := int(text, 16)):
            owners[value].append((sample, group))
    return owners


def _near_values(values: np.ndarray) -> Iterator[tuple[int, int]]:
    """Pairs of these distinct values that differ in at most ``MOST_BITS``, some of them in several bands."""
    edges = np.linspace(0, 64, MOST_BITS + 2).astype(int)
    for low, high in pairwise(edges):
        band = (values >> np.uint64(low)) & np.uint64(2 ** int(high - low) - 1)
        order = np.argsort(band, kind="stable")
        starts = np.flatnonzero(np.diff(band[order], prepend=band[order][:1] + np.uint64(1)))
        for rows in np.split(order, starts[1:]) if len(values) else []:
            for start in range(0, len(rows), BLOCK):
                compared = values[rows[start : start + BLOCK]]
                apart = np.bitwise_count(compared[:, None] ^ values[rows][None, :])
                for a, b in np.argwhere(apart <= MOST_BITS):
                    if start + a < b:
                        yield int(compared[a]), int(values[rows[b]])


def lookalikes(sample: Sample, *, among: list[int] | None = None) -> list[int]:
    """Ids of other samples of the benchmark with a picture that looks almost like one of this sample's.

    ``among`` limits the search to samples with these values of the hint column.
    """
    own_hashes = [int(picture.phash, 16) for picture in sample.images.all() if picture.phash]
    if not any(own_hashes):
        return []
    others = SampleImage.objects.filter(sample__benchmark=sample.benchmark_id).exclude(sample=sample).exclude(phash="")
    if among is not None:
        others = others.filter(sample__quality_hints__in=among)
    if sample.group:
        others = others.exclude(sample__group=sample.group)
    rows = list(others.order_by().values_list("sample_id", "phash"))
    values = np.array([int(text, 16) for _, text in rows], dtype=np.uint64)
    close = np.zeros(len(rows), dtype=bool)
    for value in filter(None, own_hashes):
        close |= np.bitwise_count(values ^ np.uint64(value)) <= MOST_BITS
    return sorted({rows[index][0] for index in np.flatnonzero(close) if values[index]})


def update_duplicates(benchmark: Benchmark) -> None:
    """Set or clear the near-duplicate hint of every sample."""
    fresh, former = duplicate_changes(benchmark)
    set_duplicate_hint(fresh, former)
    mark_checked(benchmark)


def duplicate_changes(benchmark: Benchmark) -> tuple[set[int], set[int]]:
    """Samples that need the near-duplicate hint, and samples that should lose it."""
    pictures = SampleImage.objects.filter(sample__benchmark=benchmark).order_by()
    twins = near_duplicates(list(pictures.values_list("sample_id", "phash", "sample__group").iterator(chunk_size=5000)))
    flagged = set(
        benchmark.samples.filter(quality_hints__in=masks_with(BY_NAME["duplicate"])).values_list("pk", flat=True)
    )
    return twins.keys() - flagged, flagged - twins.keys()


def set_duplicate_hint(fresh: Iterable[int], former: Iterable[int]) -> None:
    """Add the hint to some samples and remove it from others."""
    for ids, change in (
        (fresh, F("quality_hints").bitor(DUPLICATE)),
        (former, F("quality_hints") - DUPLICATE),
    ):
        for batch in chunks(sorted(ids), 500):
            Sample.objects.filter(pk__in=batch).update(quality_hints=change)


def mark_checked(benchmark: Benchmark) -> None:
    """Record that all samples were checked for hints."""
    Benchmark.objects.filter(pk=benchmark.pk).update(checked_at=timezone.now())


def check(*, benchmark: Benchmark, user: User) -> dict[str, int]:
    """Check every sample again; returns counts by hint name. Reads criteria on behalf of ``user``, which is logged."""
    rows = benchmark.samples.prefetch_related("images").order_by("pk")
    bit = DUPLICATE
    for page in batched(rows.iterator(chunk_size=500), 500):
        texts = bank.criteria.for_staff(user=user, samples=page, how="quality")
        changed: dict[int, list[int]] = defaultdict(list)
        for sample in page:
            mask = sample.quality_hints & bit | hints_for(
                shown=(sample.instruction, sample.hint),
                options=sample.options,
                sizes=[(picture.width, picture.height) for picture in sample.images.all()],
                absent=bool(sample.absent_images),
                criteria=[(text.kind, text.text) for text in texts.get(sample.pk, [])],
            )
            if mask != sample.quality_hints:
                changed[mask].append(sample.pk)
        for mask, ids in changed.items():
            Sample.objects.filter(pk__in=ids).update(quality_hints=mask)
    update_duplicates(benchmark)
    counts = dict.fromkeys(BY_NAME, 0)
    for mask, n in benchmark.samples.order_by().values_list("quality_hints").annotate(n=Count("pk")):
        for hint in hints_in(mask):
            counts[hint.name] += n
    return counts
