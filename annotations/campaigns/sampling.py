"""Which items a campaign is made of: a plan, and a seed that decides what it leaves open."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from annotations.campaigns import run_doubts
from annotations.campaigns.candidates import Candidate, candidates_for
from bank.database import chunks
from bank.errors import BadInput
from bank.models import Benchmark, EvaluatedModel, ItemResponse, Sample
from judging.models import Run

ALL, PER_CAPABILITY, STRATIFIED, RUN, KEYS = "all", "per-capability", "stratified", "run", "keys"

METHODS = {
    ALL: "Every item",
    PER_CAPABILITY: "So many samples of each capability",
    STRATIFIED: "So many samples in all, spread in proportion",
    RUN: "What a judge's run leaves in doubt",
    KEYS: "The samples of a list",
}

STRATA = {
    "capability": "Capability",
    "level": "Top of the capability",
    "question_type": "Question type",
    "source": "Source",
    "split": "Split",
}

MAX_KEYS = 100_000


@dataclass(frozen=True, slots=True)
class Plan:
    """How items are chosen.

    ``n`` samples (of each capability, or in all); ``by`` what they are spread over; ``models``: only items about these
    and the anchor; ``run`` and ``reasons`` as ``disputes`` names them; ``keys`` of samples; ``most`` items in all.
    """

    how: str = ALL
    n: int | None = None
    by: str = "capability"
    models: tuple[str, ...] = ()
    run: int | None = None
    reasons: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    most: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Without what plays no part; a long list of keys by its length alone."""
        unset = {field.name: field.default for field in fields(self)}
        kept = {name: value for name, value in asdict(self).items() if value != unset[name] or name == "how"}
        if self.how != STRATIFIED:
            kept.pop("by", None)
        kept = {name: list(value) if isinstance(value, tuple) else value for name, value in kept.items()}
        return kept | ({"keys": len(self.keys)} if self.keys else {})


def parse_plan(given: Mapping[str, Any]) -> Plan:
    """A plan from JSON. Raises BadInput."""
    known = {field.name for field in fields(Plan)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise BadInput(f"A sampling plan has no {unknown[0]!r}; it has {', '.join(sorted(known))}.")
    lists = {name: tuple(given.get(name) or ()) for name in ("models", "reasons", "keys")}
    plan = Plan(**{**given, **lists})
    if plan.how not in METHODS:
        raise BadInput(f"{plan.how!r} is no way to choose items; there are {', '.join(METHODS)}.")
    if plan.how in (PER_CAPABILITY, STRATIFIED) and not _is_positive(plan.n):
        raise BadInput("Say how many samples: a number from 1.")
    if plan.most is not None and not _is_positive(plan.most):
        raise BadInput("The most items in all are a number from 1.")
    if plan.by not in STRATA:
        raise BadInput(f"Samples are spread by {', '.join(STRATA)}, not by {plan.by!r}.")
    if plan.how == RUN:
        if not _is_positive(plan.run):
            raise BadInput("Choose the run whose items people should look at.")
        if not plan.reasons or set(plan.reasons) - set(run_doubts.REASONS):
            raise BadInput(f"Choose what of the run is in doubt: {', '.join(run_doubts.REASONS)}.")
    if plan.how == KEYS and not plan.keys:
        raise BadInput("The list holds no sample keys.")
    if len(plan.keys) > MAX_KEYS:
        raise BadInput(f"A list holds at most {MAX_KEYS:,} keys.")
    return plan


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


@dataclass(frozen=True, slots=True)
class Selection:
    """What a plan takes, in no order of meaning; ``why`` is kept with the item, by its pk."""

    candidates: list[Candidate]
    why: dict[int, str]

    @property
    def samples(self) -> int:
        return len({candidate.sample for candidate in self.candidates})


def select(
    plan: Plan, *, benchmark: Benchmark, candidates: Iterable[Candidate], rng: random.Random, anchor: str = ""
) -> Selection:
    """What of the candidates the plan takes. Raises BadInput for a plan that names what is not there."""
    found, why = list(candidates), {}
    if plan.models:
        found = _about(found, _known(plan.models, benchmark, anchor))
    if plan.how == RUN:
        run = Run.objects.filter(pk=plan.run or 0, benchmark=benchmark).select_related("benchmark").first()
        if run is None:
            raise BadInput(f"There is no run {plan.run} on {benchmark}.")
        doubted = {item: held for item, held in run_doubts.doubts_of(run).items() if held & set(plan.reasons)}
        found = [candidate for candidate in found if candidate.item in doubted]
        why = {candidate.pk: words_for(doubted[candidate.item] & set(plan.reasons), run) for candidate in found}
    elif plan.how == KEYS:
        found = _of_keys(found, plan.keys, benchmark)
    elif plan.how in (PER_CAPABILITY, STRATIFIED):
        found = _spread(plan, found, rng)
    if plan.most is not None and len(found) > plan.most:
        found = rng.sample(sorted(found, key=lambda candidate: candidate.pk), plan.most)
    return Selection(found, {candidate.pk: why[candidate.pk] for candidate in found if candidate.pk in why})


def words_for(reasons: Iterable[str], run: Run) -> str:
    """What brought an item here, in words: "no majority over the repeats (run 3)"."""
    held = set(reasons)
    said = ", ".join(words[0].lower() + words[1:] for name, words in run_doubts.REASONS.items() if name in held)
    return f"{said} (run {run.pk})"


def _known(models: Sequence[str], benchmark: Benchmark, anchor: str) -> set[int]:
    names = {*models, anchor or (benchmark.anchor.name if benchmark.anchor else "")} - {""}
    found = dict(EvaluatedModel.objects.filter(name__in=names).values_list("name", "pk"))
    missing = sorted(set(models) - set(found))
    if missing:
        raise BadInput(f"There is no model {missing[0]!r}.")
    return set(found.values())


def _about(candidates: list[Candidate], models: set[int]) -> list[Candidate]:
    """Those whose every response is of one of these models."""
    others: set[int] = set()
    for ids in chunks(candidate.item for candidate in candidates):
        rows = ItemResponse.objects.filter(item__in=ids).exclude(response__model__in=models)
        others.update(rows.values_list("item_id", flat=True))
    return [candidate for candidate in candidates if candidate.item not in others]


def _of_keys(candidates: list[Candidate], keys: Sequence[str], benchmark: Benchmark) -> list[Candidate]:
    known: dict[str, int] = {}
    for some in chunks(keys):
        known |= Sample.objects.filter(benchmark=benchmark, key__in=some).values_list("key", "pk")
    missing = [key for key in dict.fromkeys(keys) if key not in known]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise BadInput(f"There is no sample {missing[0]!r}{more} in {benchmark}.")
    wanted = {known[key] for key in keys}
    return [candidate for candidate in candidates if candidate.sample in wanted]


def _spread(plan: Plan, candidates: list[Candidate], rng: random.Random) -> list[Candidate]:
    """By stratum so many samples, drawn by lot, each with all of its items."""
    stratum = _strata(plan, {candidate.sample for candidate in candidates})
    strata: dict[str, list[int]] = defaultdict(list)
    for sample in sorted(stratum):
        strata[stratum[sample]].append(sample)
    n = plan.n or 0
    if plan.how == PER_CAPABILITY:
        share = dict.fromkeys(strata, n)
    else:
        share = in_proportion({name: len(samples) for name, samples in strata.items()}, n)
    taken: set[int] = set()
    for name in sorted(strata):
        samples = strata[name]
        taken.update(rng.sample(samples, min(share[name], len(samples))))
    return [candidate for candidate in candidates if candidate.sample in taken]


def _strata(plan: Plan, samples: set[int]) -> dict[int, str]:
    column = {"capability": "capability__path", "level": "capability__path"}.get(plan.by, plan.by)
    if plan.how == PER_CAPABILITY:
        column = "capability__path"
    found: dict[int, str] = {}
    for ids in chunks(samples):
        found |= {pk: value or "" for pk, value in Sample.objects.filter(pk__in=ids).values_list("pk", column)}
    if plan.how == STRATIFIED and plan.by == "level":
        found = {pk: path.split(" / ", 1)[0] for pk, path in found.items()}
    return found


def in_proportion(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """``n`` seats for strata of these sizes by largest remainder (Hamilton), none more than its size."""
    whole = sum(sizes.values())
    if not whole:
        return dict(sizes)
    n = min(n, whole)
    exact = {name: n * size / whole for name, size in sizes.items()}
    seats = {name: int(share) for name, share in exact.items()}
    left = n - sum(seats.values())
    for name in sorted(exact, key=lambda name: (-(exact[name] - seats[name]), name))[:left]:
        seats[name] += 1
    return seats


def select_items(
    *,
    benchmark: Benchmark,
    protocol: str,
    plan: Plan,
    seed: int,
    shows_criteria: bool = False,
    run: Run | None = None,
    ballot: Mapping[str, Any] | None = None,
) -> Selection:
    """What a campaign like this would be made of. Raises BadInput."""
    found = candidates_for(
        benchmark=benchmark, protocol=protocol, shows_criteria=shows_criteria, run=run, ballot=ballot
    )
    return select(plan, benchmark=benchmark, candidates=found, rng=random.Random(seed))
