"""Answer keys and weights for boards, for calculations over responses and points. Never returns a text with its key."""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import models

from bank import exposure
from bank.criteria import Criterion, record
from bank.criteria.tables import opened
from bank.models.catalogue import Benchmark, Sample, in_hidden_splits

KEY, COMPONENT = str(Criterion.Kind.ANSWER_KEY), str(Criterion.Kind.COMPONENT)


def synonyms(key: str) -> list[str]:
    """The texts that a key takes for right, ``cat | kitten``; the first is the one that is shown."""
    return [text for part in key.split("|") if (text := part.strip())] or [key.strip()]


@dataclass(frozen=True, slots=True)
class Part:
    """A component as boards need it: its maximum points, never its text. ``lent``: only a campaign gives the weight."""

    key: str
    category: str
    weight: float
    public: bool
    lent: bool = False


@opened()
def keys_for_boards(*, benchmark: Any, sample_ids: Sequence[int]) -> dict[int, str]:
    """Answer keys by sample id, to score the responses of every model; samples without a key are left out."""
    record(how="boards", about=f"benchmark {benchmark}", sample_ids=sample_ids)
    keys = Criterion.objects.filter(sample_id__in=sample_ids, kind=KEY)
    return {row.sample_id: row.text for row in keys.order_by("-position", "-pk")}


@opened()
def references_for_boards(*, benchmark: Any, sample_ids: Sequence[int]) -> dict[int, list[str]]:
    """Answer keys and exact references by sample id, to compare open answers with."""
    record(how="boards", about=f"benchmark {benchmark}", sample_ids=sample_ids)
    references: dict[int, list[str]] = {}
    rows = Criterion.objects.filter(sample_id__in=sample_ids, kind__in=[KEY, "exact_reference"])
    for row in rows.order_by("position", "pk"):
        references.setdefault(row.sample_id, []).append(row.text)
    return references


@opened()
def open_keys(*, about: str, samples: models.QuerySet[Sample]) -> dict[int, str]:
    """The keys of those of these samples whose key everybody may see, by sample id: what recipes show to models."""
    ids = list(with_open_keys(samples).order_by().values_list("pk", flat=True))
    record(how="recipe", about=about, sample_ids=ids)
    keys = Criterion.objects.filter(sample_id__in=ids, kind=KEY)
    return {row.sample_id: row.text for row in keys.order_by("-position", "-pk")}


@opened()
def parts_for_boards(
    *, benchmark: Any, sample_ids: Sequence[int], default_weight: Callable[[str], float | None] | None = None
) -> dict[int, list[Part]]:
    """The weighted components by sample id, to sum points. Callers that show categories must show only public ones.

    ``default_weight`` gives the weight of a component that has none, by its key.
    """
    record(how="boards", about=f"benchmark {benchmark}", sample_ids=sample_ids)
    rows = Criterion.objects.filter(sample_id__in=sample_ids, kind=COMPONENT)
    rows = rows.order_by("sample_id", "position", "pk")
    parts: dict[int, list[Part]] = defaultdict(list)
    for row in rows.only("sample_id", "key", "category", "weight", "shown_to"):
        worth = row.weight or (default_weight(row.key) if default_weight else None)
        if worth and worth > 0:
            public = row.shown_to == Criterion.ShownTo.PUBLIC
            parts[row.sample_id].append(Part(row.key, row.category, float(worth), public, not row.weight))
    return dict(parts)


def _open(kinds: Sequence[str]) -> models.Q:
    """Samples of which no criterion of these kinds is closed, or was until ``open_keys`` opened it."""
    return models.Q(exposure.none_of(exposure.inputs_of_all(kinds), "closed")) & ~in_hidden_splits()


@opened()
def with_some(samples: models.QuerySet[Sample], kinds: Sequence[str]) -> models.QuerySet[Sample]:
    """The samples among these that have criteria of these kinds. Reveals no text, so it is not logged."""
    rows = Criterion.objects.filter(sample=models.OuterRef("pk"), kind__in=kinds).order_by()
    return samples.filter(models.Exists(rows))


def are_open(*, samples: models.QuerySet[Sample], kinds: Sequence[str]) -> bool:
    """Whether these samples have criteria of these kinds and all of them are visible to everybody."""
    found = with_some(samples.order_by(), kinds)
    return found.exists() and not found.exclude(_open(kinds)).exists()


def open_samples(*, benchmark: Benchmark, kinds: Sequence[str]) -> set[int]:
    """The benchmark's samples whose criteria of these kinds are all visible to everybody."""
    return set(with_some(benchmark.samples.order_by(), kinds).filter(_open(kinds)).values_list("pk", flat=True))


def with_open_keys(samples: models.QuerySet[Sample]) -> models.QuerySet[Sample]:
    """The samples among these whose answer key is visible to everybody."""
    return with_some(samples, [KEY]).filter(_open([KEY]))


@opened()
def edition_of(benchmark: Any) -> tuple[int, int, int]:
    """Count, last id and sum of versions of a benchmark's criteria: they change whenever the criteria do. No text."""
    rows = Criterion.objects.filter(sample__benchmark=benchmark)
    totals = rows.aggregate(n=models.Count("pk"), last=models.Max("pk"), versions=models.Sum("version"))
    return totals["n"], totals["last"] or 0, totals["versions"] or 0
