"""The labels of a campaign as plain rows, for what is counted on them."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd

from annotations.labels.verdicts import VERDICT_COLUMNS, is_right, majority_word, verdict_key, verdict_number
from annotations.models import Campaign, Label
from bank.models.verdict import Choice, turned
from stats.agreement import pairwise_agreement, pairwise_kappa
from stats.proportions import proportion, rate
from stats.reliability import Metric, fleiss_kappa, krippendorff_alpha
from stats.results import Estimate, Interval
from stats.verdicts import majority

UNDECIDED = {Choice.UNDECIDED.value: Choice.TIE.value}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One label that counts. ``said`` is its verdict as a word, ``undecided`` being a tie; ``shown`` the same in the
    order in which its annotator saw the answers; ``right`` holds it against hidden gold."""

    annotator: int
    item: int
    place: int  # the campaign item
    said: str
    raw: str  # as ``said``, with "undecided" by itself
    shown: str
    verdict_number: float | None
    ranking: list[list[int]] | None
    seconds: float | None
    level: str
    right: bool | None
    at: datetime


def label_rows(campaign: Campaign) -> list[LabelRow]:
    """The labels of a campaign that count, in the order given: without practice and what was excluded."""
    found = Label.objects.filter(campaign=campaign, excluded=False, assignment__campaign_item__practice=False)
    columns = ("annotator", "item", "assignment__campaign_item", "assignment__order", "seconds", "created_at")
    more = ("item__sample__capability__path", "assignment__campaign_item__gold", "situation")
    rows = []
    for row in found.order_by("pk").values_list(*columns, *more, *VERDICT_COLUMNS):
        annotator, item, place, order, seconds, at, level, gold, situation, *values = row
        verdict: dict[str, Any] = dict(zip(VERDICT_COLUMNS, values, strict=True)) | {"situation": situation}
        raw = verdict_key(verdict)
        if raw is None:
            continue
        rows.append(
            LabelRow(
                annotator=annotator,
                item=item,
                place=place,
                said=UNDECIDED.get(raw, raw),
                raw=raw,
                shown=verdict_key(as_shown(verdict, order)) or raw,
                verdict_number=verdict_number(verdict),
                ranking=verdict["ranking"],
                seconds=seconds,
                level=level or "",
                right=None if gold is None else is_right(verdict, gold),
                at=at,
            )
        )
    return rows


def as_shown(verdict: dict[str, Any], order: str) -> dict[str, Any]:
    """A stored verdict in the order in which the answers were shown: "first" is then the left one."""
    places = [int(digit) for digit in order]
    stood = [places.index(position) for position in range(len(places))]
    return turned(verdict, order=stood)


def by_item(labels: Iterable[LabelRow]) -> dict[int, list[LabelRow]]:
    """Labels by campaign item: two reviews of one item are about different judgments."""
    found: dict[int, list[LabelRow]] = defaultdict(list)
    for label in labels:
        found[label.place].append(label)
    return found


MIN_ITEMS = 30  # items: with fewer a number is provisional

REPLICATES = 1000


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as the page writes it."""

    name: str
    about: str
    estimate: Estimate
    items: int
    percent: bool = False

    @property
    def value(self) -> str:
        return _formatted(self.estimate.value, self.percent)

    @property
    def interval(self) -> str:
        found = self.estimate.interval
        return (
            "" if found is None else f"{_formatted(found.low, self.percent)} to {_formatted(found.high, self.percent)}"
        )

    @property
    def provisional(self) -> bool:
        return 0 < self.items < MIN_ITEMS


def _formatted(value: float | None, percent: bool) -> str:
    if value is None:
        return "–"
    return f"{100 * value:.1f}%" if percent else f"{value:.3f}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class Matches:
    """How often two verdicts on one item were the same; undecided counts as a tie."""

    same: int
    n: int

    @property
    def share(self) -> float | None:
        return self.same / self.n if self.n else None

    @property
    def percent(self) -> str:
        return "–" if self.share is None else f"{100 * self.share:.0f}%"


@dataclass(frozen=True, slots=True)
class Cell(Matches):
    """Two annotators: on how many items both gave the same verdict, of how many that both labelled."""

    kappa: float | None
    low: float | None
    high: float | None

    @property
    def heat(self) -> str:
        """The class of a cell, over the fixed range 0 to 1."""
        return "qx" if self.share is None else f"q{min(8, int(self.share * 9))}"

    @property
    def words(self) -> str:
        estimate = proportion(successes=self.same, n=self.n)
        found = estimate.interval
        around = f" (95%: {100 * found.low:.0f} to {100 * found.high:.0f}%)" if found else ""
        if self.kappa is None:
            return f"{self.same} of {self.n} the same{around}; no kappa: both gave one and the same verdict only"
        kappa = "" if self.low is None else f" ({self.low:.2f} to {self.high:.2f})"
        return f"{self.same} of {self.n} the same{around}; Cohen's kappa {self.kappa:.2f}{kappa}"


@dataclass(frozen=True, slots=True)
class Level:
    """Agreement on the items of one capability."""

    name: str
    items: int
    same: Figure
    alpha: Figure


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everything on the page. ``items`` have two labels or more."""

    items: int
    labels: int
    unanimous: int
    figures: list[Figure]
    rule: str
    majority: list[tuple[str, int]]  # how often each verdict is the majority's; empty for what is no pair
    levels: list[Level]
    people: list[int]
    cells: dict[tuple[int, int], Cell]  # by annotators, the smaller id first


def agreement_of(campaign: Campaign, labels: Sequence[LabelRow], *, by_level: bool = True) -> Agreement:
    """Of labels that count. Of every number: value None where it cannot be computed, and why."""
    shared = {place: given for place, given in by_item(labels).items() if len(given) > 1}
    counted = [label for given in shared.values() for label in given]
    rng = np.random.default_rng(campaign.seed)
    figures = [
        _matching(counted, len(shared)),
        _alpha(counted, "nominal", rng, len(shared)),
        *([_alpha(counted, "ordinal", rng, len(shared))] if _ordered(counted) else []),
        _fleiss(shared, rng),
    ]
    chosen: list[tuple[str, int]] = []
    rule = campaign.benchmark.majority
    pairs = [label for label in labels if label.raw in ("first", "second", "tie", "undecided")]
    if pairs:
        frame = pd.DataFrame({"item": [one.place for one in pairs], "choice": [one.raw for one in pairs]})
        counts = Counter(majority(labels=frame, rule=rule)["choice"])
        chosen = [(name, counts[name]) for name in ("first", "second", "tie", "undecided")]
    levels = []
    if by_level:
        for name in sorted({label.level for label in counted}):
            here = [label for label in counted if label.level == name]
            items = len({label.place for label in here})
            levels.append(Level(name, items, _matching(here, items), _alpha(here, "nominal", rng, items)))
    return Agreement(
        items=len(shared),
        labels=len(counted),
        unanimous=sum(len({label.said for label in given}) == 1 for given in shared.values()),
        figures=figures,
        rule=rule,
        majority=chosen,
        levels=levels if len(levels) > 1 else [],
        people=sorted({label.annotator for label in labels}),
        cells=pairwise_cells(labels),
    )


def pairwise_cells(labels: Sequence[LabelRow]) -> dict[tuple[int, int], Cell]:
    """Every two annotators with items in common."""
    if not labels:
        return {}
    who, items = [label.annotator for label in labels], [label.place for label in labels]
    said = [label.said for label in labels]
    kappas = pairwise_kappa(annotator=who, item=items, verdict=said)
    kappas = {(a, b): rest for a, b, _, *rest in kappas.itertuples(index=False)}
    found = {}
    for a, b, same, n in pairwise_agreement(annotator=who, item=items, verdict=said).itertuples(index=False):
        kappa, low, high = (None if np.isnan(value) else float(value) for value in kappas[a, b])
        found[int(a), int(b)] = Cell(int(same), int(n), kappa, low, high)
    return found


def agreement_with_others(places: Mapping[int, Sequence[LabelRow]], annotator: int) -> tuple[int, int, Estimate | None]:
    """An annotator beside what more than half of the others say: how often the same, of how many, and Cohen's kappa.

    ``places`` as ``given.by_place`` makes them. Items without such a majority of others do not count; the annotator's
    own label plays no part in it.
    """
    mine, theirs = [], []
    for given in places.values():
        own = next((label.said for label in given if label.annotator == annotator), None)
        if own is None:
            continue
        best = majority_word(label.said for label in given if label.annotator != annotator)
        if best is not None:
            mine.append(own)
            theirs.append(best)
    same = sum(a == b for a, b in zip(mine, theirs, strict=True))
    if not mine:
        return 0, 0, None
    table = pairwise_kappa(
        annotator=[0] * len(mine) + [1] * len(mine), item=[*range(len(mine))] * 2, verdict=[*mine, *theirs]
    )
    _, _, n, kappa, low, high = next(table.itertuples(index=False))
    interval = None if np.isnan(low) else Interval(float(low), float(high), 0.95, "asymptotic")
    return same, len(mine), Estimate(None if np.isnan(kappa) else float(kappa), int(n), interval, "asymptotic")


def _matching(labels: Sequence[LabelRow], items: int) -> Figure:
    """The share of pairs of labels on one item that are the same, items being the clusters."""
    hits, cluster = [], []
    for place, given in by_item(labels).items():
        for i, first in enumerate(given):
            for second in given[i + 1 :]:
                hits.append(first.said == second.said)
                cluster.append(place)
    about = f"of {len(hits):,} pairs of labels on the same item are the same verdict"
    return Figure("Matching", about, rate(hits=hits, cluster=cluster), items, percent=True)


def _alpha(labels: Sequence[LabelRow], metric: Metric, rng: np.random.Generator, items: int) -> Figure:
    unit: list[tuple[int, int]] = []
    value: list[str | float] = []
    for label in labels:
        if metric == "nominal":
            unit.append((label.place, 0))
            value.append(label.said)
        elif label.ranking is not None:  # each answer's place in the ranking is a value by itself
            before = 0
            for group in label.ranking:
                unit += [(label.place, position) for position in group]
                value += [before + (len(group) + 1) / 2] * len(group)
                before += len(group)
        elif label.verdict_number is not None:
            unit.append((label.place, 0))
            value.append(label.verdict_number)
    codes = {one: code for code, one in enumerate(dict.fromkeys(unit))}
    estimate = krippendorff_alpha(
        unit=[codes[one] for one in unit], value=value, metric=metric, rng=rng, replicates=REPLICATES
    )
    about = "any two verdicts differ the same" if metric == "nominal" else "verdicts further apart differ more"
    return Figure(f"Krippendorff's alpha, {metric}", about, estimate, items)


def _ordered(labels: Sequence[LabelRow]) -> bool:
    return any(label.verdict_number is not None or label.ranking for label in labels)


def _fleiss(shared: dict[int, list[LabelRow]], rng: np.random.Generator) -> Figure:
    """Over the items with the number of labels that most have: Fleiss' kappa wants the same number on each."""
    sizes = Counter(len(given) for given in shared.values())
    size = max(sizes, key=lambda size: (sizes[size], size), default=2)
    labels = [label for given in shared.values() if len(given) == size for label in given]
    estimate = fleiss_kappa(
        unit=[label.place for label in labels],
        value=[label.said for label in labels],
        rng=rng,
        replicates=REPLICATES,
    )
    return Figure("Fleiss' kappa", f"over the items with {size} labels", estimate, sizes[size])
