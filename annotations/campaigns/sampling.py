"""The choice of a campaign's items: a sampling plan, and a seed for its random choices."""

import random
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from annotations.campaigns import run_doubts
from annotations.campaigns.candidates import Candidate, candidates_for
from bank.database import chunks
from bank.errors import BadInput
from bank.models import Benchmark, EvaluatedModel, ItemResponse, Sample
from bank.text.names import as_stored
from judging.models import Judgment, Run

ALL, PER_CAPABILITY, STRATIFIED, RUN, KEYS = "all", "per-capability", "stratified", "run", "keys"

METHODS = {
    ALL: "Every item",
    PER_CAPABILITY: "A number of samples per capability",
    STRATIFIED: "A number of samples in all, spread in proportion",
    RUN: "Items a judge's run leaves in doubt",
    KEYS: "A list of samples",
}

STRATA = {
    "capability": "Capability",
    "level": "Top of the capability",
    "question_type": "Question type",
    "source": "Source",
    "split": "Split",
}

MAX_KEYS = 100_000


class Plan(BaseModel, frozen=True):
    """How items are chosen.

    ``n`` is the number of samples, per capability or in all, and ``by`` what they are spread over. ``models`` limits
    items to these models and the anchor, ``judges`` reviews and comparisons to verdicts of these judges. ``run`` and
    ``reasons`` are those of ``run_doubts``, ``keys`` are sample keys, ``most`` limits the number of items.
    """

    how: str = ALL
    n: int | None = None
    by: str = "capability"
    models: tuple[str, ...] = ()
    judges: tuple[str, ...] = ()
    run: int | None = None
    reasons: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    most: int | None = None

    def as_json(self) -> dict[str, Any]:
        """Only the fields that differ from their defaults. Of a list of keys only its length."""
        kept = {"how": self.how} | self.model_dump(mode="json", exclude_defaults=True)
        if self.how != STRATIFIED:
            kept.pop("by", None)
        return kept | ({"keys": len(self.keys)} if self.keys else {})


def parse_plan(data: Mapping[str, Any]) -> Plan:
    """A plan from JSON. Raises BadInput."""
    unknown = sorted(set(data) - set(Plan.model_fields))
    if unknown:
        names = ", ".join(sorted(Plan.model_fields))
        raise BadInput(f"A sampling plan has no field {unknown[0]!r}. Its fields are {names}.")
    plan = Plan(**data)
    if plan.how not in METHODS:
        raise BadInput(f"Unknown way to choose items: {plan.how!r}. Choose one of: {', '.join(METHODS)}.")
    if plan.most is not None and not _is_positive(plan.most):
        raise BadInput("The most items in all must be a number from 1.")
    if plan.by not in STRATA:
        raise BadInput(f"Samples cannot be spread by {plan.by!r}. Choose one of: {', '.join(STRATA)}.")
    if len(plan.keys) > MAX_KEYS:
        raise BadInput(f"A list holds at most {MAX_KEYS:,} keys.")
    _check_method(plan)
    return plan


def _check_method(plan: Plan) -> None:
    """Raise BadInput if the plan lacks something its method needs."""
    if plan.how in (PER_CAPABILITY, STRATIFIED) and not _is_positive(plan.n):
        raise BadInput("Say how many samples: a number from 1.")
    if plan.how == RUN:
        if not _is_positive(plan.run):
            raise BadInput("Choose the run whose items people should look at.")
        if not plan.reasons or set(plan.reasons) - set(run_doubts.REASONS):
            raise BadInput(f"Choose at least one reason for doubt: {', '.join(run_doubts.REASONS)}.")
    if plan.how == KEYS and not plan.keys:
        raise BadInput("The list holds no sample keys.")


def _is_positive(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number > 0


@dataclass(frozen=True, slots=True)
class Selection:
    """The candidates that a plan selects, in no particular order. ``why`` is stored with the item, by its subject.
    ``withheld``: how many of the verdicts that were to choose may not.
    """

    candidates: list[Candidate]
    why: dict[tuple[int, ...], str]
    withheld: int = 0

    @property
    def samples(self) -> int:
        return len({candidate.sample for candidate in self.candidates})


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
    """The items that a campaign with these settings would get. Raises BadInput, also if the plan names something that
    does not exist.
    """
    rng = random.Random(seed)
    selected = candidates_for(
        benchmark=benchmark, protocol=protocol, shows_criteria=shows_criteria, run=run, ballot=ballot
    )
    why: dict[tuple[int, ...], str] = {}
    if plan.models:
        selected = _only_about(selected, _model_ids(plan.models, benchmark))
    if plan.judges:
        selected = _only_by(selected, plan.judges)
    if plan.how == RUN:
        doubtful = select_doubtful(selected, find_run(benchmark, plan.run), plan.reasons)
        selected, why = doubtful.candidates, doubtful.why
    elif plan.how == KEYS:
        selected = _with_keys(selected, plan.keys, benchmark)
    elif plan.how in (PER_CAPABILITY, STRATIFIED):
        selected = _spread(plan, selected, rng)
    selected = _at_most(plan.most, selected, rng)
    subjects = [candidate.subject for candidate in selected]
    return Selection(selected, {subject: why[subject] for subject in subjects if subject in why})


def _at_most(most: int | None, candidates: list[Candidate], rng: random.Random) -> list[Candidate]:
    """All candidates, or so many of them at random."""
    if most is None or len(candidates) <= most:
        return candidates
    return rng.sample(sorted(candidates, key=lambda candidate: candidate.subject), most)


def select_doubtful(candidates: Iterable[Candidate], run: Run, reasons: Iterable[str]) -> Selection:
    """Those of the candidates that a run leaves in doubt for these reasons."""
    doubts = run_doubts.doubts_of(run, reasons=reasons)
    selected = [candidate for candidate in candidates if candidate.item in doubts]
    why = {candidate.subject: describe_reasons(doubts[candidate.item], run) for candidate in selected}
    return Selection(selected, why)


def find_run(benchmark: Benchmark, pk: int | None) -> Run:
    """A run on this benchmark. Raises BadInput."""
    run = Run.objects.filter(pk=pk or 0, benchmark=benchmark).select_related("benchmark").first()
    if run is None:
        raise BadInput(f"{benchmark} has no run {pk}.")
    return run


def describe_reasons(reasons: Iterable[str], run: Run) -> str:
    """Why an item was added, for people: "no majority over the repeats (run 3)"."""
    names = set(reasons)
    words = ", ".join(text[0].lower() + text[1:] for name, text in run_doubts.REASONS.items() if name in names)
    return f"{words} (run {run.pk})"


def _model_ids(models: Iterable[str], benchmark: Benchmark) -> set[int]:
    """These models and the anchor."""
    names = set(map(as_stored, models))
    ids = dict(EvaluatedModel.objects.filter(name__in=names).values_list("name", "pk"))
    missing = sorted(names - set(ids))
    if missing:
        raise BadInput(f"Unknown model: {missing[0]!r}.")
    return {*ids.values(), *([benchmark.anchor_id] if benchmark.anchor_id else [])}


def _only_about(candidates: list[Candidate], models: set[int]) -> list[Candidate]:
    """Candidates with responses of these models only."""
    others: set[int] = set()
    for ids in chunks(candidate.item for candidate in candidates):
        rows = ItemResponse.objects.filter(item__in=ids).exclude(response__model__in=models)
        others.update(rows.values_list("item_id", flat=True))
    return [candidate for candidate in candidates if candidate.item not in others]


def _only_by(candidates: list[Candidate], names: Sequence[str]) -> list[Candidate]:
    """Candidates whose judgments are all by these judges. Raises BadInput for a judge of none of them, also where there
    is one of that name: what judges elsewhere are called is not told.
    """
    wanted, theirs = set(map(as_stored, names)), dict[int, str]()
    for ids in chunks({pk for candidate in candidates for pk in candidate.judgments}):
        theirs |= Judgment.objects.filter(pk__in=ids, run__judge__name__in=wanted).values_list("pk", "run__judge__name")
    if missing := sorted(wanted - set(theirs.values())):
        raise BadInput(f"Unknown judge: {missing[0]!r}.")
    return [candidate for candidate in candidates if theirs.keys() >= set(candidate.judgments)]


def _with_keys(candidates: list[Candidate], keys: Sequence[str], benchmark: Benchmark) -> list[Candidate]:
    sample_ids: dict[str, int] = {}
    for batch in chunks(keys):
        sample_ids |= Sample.objects.filter(benchmark=benchmark, key__in=batch).values_list("key", "pk")
    missing = [key for key in dict.fromkeys(keys) if key not in sample_ids]
    if missing:
        more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise BadInput(f"{benchmark} has no sample {missing[0]!r}{more}.")
    samples = {sample_ids[key] for key in keys}
    return [candidate for candidate in candidates if candidate.sample in samples]


def _spread(plan: Plan, candidates: list[Candidate], rng: random.Random) -> list[Candidate]:
    """Draw a number of samples at random from each stratum, each with all of its items."""
    stratum_of = _strata(plan, {candidate.sample for candidate in candidates})
    strata: dict[str, list[int]] = defaultdict(list)
    for sample in sorted(stratum_of):
        strata[stratum_of[sample]].append(sample)
    n = plan.n or 0
    if plan.how == PER_CAPABILITY:
        sizes = dict.fromkeys(strata, n)
    else:
        sizes = in_proportion({name: len(samples) for name, samples in strata.items()}, n)
    drawn: set[int] = set()
    for name in sorted(strata):
        samples = strata[name]
        drawn.update(rng.sample(samples, min(sizes[name], len(samples))))
    return [candidate for candidate in candidates if candidate.sample in drawn]


def _strata(plan: Plan, samples: set[int]) -> dict[int, str]:
    """The stratum of each sample."""
    by = "capability" if plan.how == PER_CAPABILITY else plan.by
    column = "capability__path" if by in ("capability", "level") else by
    strata: dict[int, str] = {}
    for ids in chunks(samples):
        strata |= {pk: value or "" for pk, value in Sample.objects.filter(pk__in=ids).values_list("pk", column)}
    if by == "level":
        strata = {pk: path.split(" / ", 1)[0] for pk, path in strata.items()}
    return strata


def in_proportion(sizes: Mapping[str, int], n: int) -> dict[str, int]:
    """Divide ``n`` among strata of these sizes by largest remainder (Hamilton). No stratum gets more than its size."""
    total = sum(sizes.values())
    if not total:
        return dict(sizes)
    n = min(n, total)
    exact = {name: n * size / total for name, size in sizes.items()}
    shares = {name: int(share) for name, share in exact.items()}
    left = n - sum(shares.values())
    for name in sorted(exact, key=lambda name: (-(exact[name] - shares[name]), name))[:left]:
        shares[name] += 1
    return shares
