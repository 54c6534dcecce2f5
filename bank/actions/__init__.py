"""Writes over several tables of the bank."""

import random
from collections.abc import Sequence
from itertools import combinations

from django.db import transaction
from django.db.models import Exists, OuterRef

from bank.imports import BadInput, chunks
from bank.imports.items import Spec, ensure
from bank.models import Benchmark, Item, Response, Submission

__all__ = ["BadInput", "find_benchmark", "make_items"]
SAMPLES_AT_ONCE = 200


def find_benchmark(name: str) -> Benchmark:
    """The benchmark ``SLUG`` or ``SLUG@VERSION``. Raises BadInput."""
    try:
        return Benchmark.objects.named(name)
    except Benchmark.DoesNotExist:
        known = ", ".join(Benchmark.objects.order_by("slug").values_list("slug", flat=True).distinct()[:20])
        raise BadInput(f"There is no benchmark {name!r}. There are: {known or 'none yet'}.") from None


@transaction.atomic
def make_items(
    *,
    kind: str,
    benchmark: Benchmark,
    models: Sequence[str] = (),
    anchor: str = "",
    sample: int | None = None,
    seed: int = 0,
    rotations: bool = False,
) -> tuple[int, int]:
    """Make items from the stored responses of variant "": (made, all). With ``rotations`` score items of the answers to
    rotated options, too, whose options a judge may then read (CircularEval).

    Canonical order is the order of ``models`` (where none are given by name, without those that were withdrawn), the
    anchor last. Pairs: with an anchor
    each model against it, without one every pair of models. Batches: one item a sample with every model. ``sample``
    draws so many samples, seeded.
    """
    if rotations and kind != Item.Kind.SCORE:
        raise BadInput("--rotations: only single answers are read under every rotation of their options.")
    answers = Response.objects.filter(sample__benchmark=benchmark, variant="")
    present = set(answers.order_by().values_list("model__name", flat=True).distinct())
    withdrawn = answers.filter(submission__state=Submission.State.WITHDRAWN).order_by()
    names = list(models) or sorted(present - set(withdrawn.values_list("model__name", flat=True).distinct()))
    anchor = anchor or (benchmark.anchor.name if benchmark.anchor and kind == Item.Kind.PAIR and not models else "")
    wanted = {*names, anchor} - {""}
    for name in sorted(wanted - present):
        raise BadInput(f"{name!r} has no responses in {benchmark}.")
    if anchor:
        names = [name for name in names if name != anchor]
    answered = Response.objects.filter(sample=OuterRef("pk"), variant="", model__name__in=wanted)
    samples = benchmark.samples.filter(Exists(answered)).order_by("position", "pk")
    ids = list(samples.values_list("pk", flat=True))
    if sample is not None:
        if sample > len(ids):
            raise BadInput(f"--sample {sample}: only {len(ids)} samples have responses.")
        ids = sorted(random.Random(seed).sample(ids, sample))
    made = everything = 0
    for some in chunks(ids, SAMPLES_AT_ONCE):
        specs = _specs(kind, some, names, anchor)
        if rotations:
            specs += _rotated(some, names)
        made += ensure(specs)[1]
        everything += len(specs)
    return made, everything


def _specs(kind: str, ids: Sequence[int], names: Sequence[str], anchor: str) -> list[Spec]:
    """The items of these samples."""
    answered: dict[int, dict[str, int]] = {pk: {} for pk in ids}
    found = Response.objects.filter(sample__in=ids, variant="", model__name__in={*names, anchor} - {""})
    for pk, sample_id, name in found.values_list("pk", "sample_id", "model__name"):
        answered[sample_id][name] = pk
    return [
        Spec(kind, sample_id, tuple(responses))
        for sample_id, given in answered.items()
        for responses in _groups(kind, given, names, anchor)
    ]


def _rotated(ids: Sequence[int], names: Sequence[str]) -> list[Spec]:
    """Items of the answers to rotated options of these samples."""
    found = Response.objects.filter(sample__in=ids, variant__regex=r"^circular-[0-9]+$", model__name__in=names)
    rows = found.order_by("sample__position", "sample", "model__name", "pk").values_list("sample", "pk")
    return [Spec(Item.Kind.SCORE, sample, (response,)) for sample, response in rows]


def _groups(kind: str, answered: dict[str, int], names: Sequence[str], anchor: str) -> list[list[int]]:
    here = [answered[name] for name in names if name in answered]
    if kind == Item.Kind.SCORE:
        return [[response] for response in here]
    if kind == Item.Kind.PAIR:
        if anchor:
            return [[response, answered[anchor]] for response in here if anchor in answered]
        return [list(pair) for pair in combinations(here, 2)]
    everything = [*here, *([answered[anchor]] if anchor in answered else [])]
    return [everything] if len(everything) > 2 else []
