"""How far the annotators of a campaign agree, with intervals. The methods are those of ``stats``."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from annotations.labels.provenance import offered_by
from annotations.labels.verdicts import (
    VERDICT_COLUMNS,
    Columns,
    decisions,
    is_right,
    majority_word,
    verdict_key,
    verdict_number,
)
from annotations.models import Campaign, Label
from bank import guard
from bank.models.verdict import Choice, turned
from stats.agreement import (
    MEASURES,
    MOST_LABELS,
    beyond_chance,
    cohen_kappa,
    method_of,
    pairwise_agreement,
    pairwise_kappa,
)
from stats.figures import NONE, two, whole_percent
from stats.generalizability import Components, Intraclass, components, intraclass
from stats.proportions import proportion, rate
from stats.reliability import Metric, fleiss_kappa, gwet, krippendorff_alpha
from stats.results import Estimate, Interval
from stats.verdicts import majority

UNDECIDED = {Choice.UNDECIDED.value: Choice.TIE.value}


@dataclass(frozen=True, slots=True)
class LabelRow:
    """One label that counts; a ``late`` one is compared with no other, see ``LabelQuerySet.compared``.

    ``verdict`` is its key, with undecided as a tie; ``shown`` the same in the order the annotator saw; ``right`` tells
    whether it matches hidden gold; ``group`` is what its item's sample shares with others (an image, a prompt).
    """

    annotator: int
    item: int
    campaign_item: int
    group: str
    verdict: str
    raw: str  # like ``verdict``, but keeps undecided apart
    shown: str
    verdict_number: float | None
    ranking: list[list[int]] | None
    decisions: tuple[str, ...]
    seconds: float | None
    level: str
    right: bool | None
    at: datetime
    late: bool = False


def label_rows(campaign: Campaign, viewer: Viewer | None = None, *, every: bool = False) -> list[LabelRow]:
    """The labels of a campaign that are compared with one another, or ``every`` one that counts, oldest first: those
    that this viewer may see one by one, or all. Leaves out practice and excluded labels.
    """
    with guard.working():
        labels = Label.objects.all() if viewer is None else Label.objects.seen_by(viewer)
    labels = (labels.counted() if every else labels.compared()).filter(campaign=campaign)
    columns = (
        *("annotator", "item", "assignment__campaign_item", "assignment__order", "seconds", "created_at"),
        *("item__sample__group", "item__sample__key", "item__sample__capability__path"),
        *("assignment__campaign_item__gold", "changed_late", "situation"),
    )
    rows = []
    for row in labels.order_by("pk").values_list(*columns, *VERDICT_COLUMNS):
        annotator, item, campaign_item, order, seconds, at, group, key, level, gold, late, situation, *values = row
        verdict: dict[str, Any] = dict(zip(VERDICT_COLUMNS, values, strict=True)) | {"situation": situation}
        raw = verdict_key(verdict)
        if raw is None:
            continue
        rows.append(
            LabelRow(
                annotator=annotator,
                item=item,
                campaign_item=campaign_item,
                group=group or key,
                verdict=UNDECIDED.get(raw, raw),
                raw=raw,
                shown=verdict_key(as_shown(verdict, order)) or raw,
                verdict_number=verdict_number(verdict),
                ranking=verdict["ranking"],
                decisions=decisions(verdict),
                seconds=seconds,
                level=level or "",
                right=None if gold is None else is_right(verdict, gold),
                at=at,
                late=late,
            )
        )
    return rows


def as_shown(verdict: dict[str, Any], order: str) -> dict[str, Any]:
    """A stored verdict in the order the answers were shown, so that "first" is the left one."""
    places = [int(digit) for digit in order]
    return turned(verdict, order=[places.index(position) for position in range(len(places))])


def one_by_one(labels: Iterable[LabelRow]) -> list[LabelRow]:
    """Each decision of these labels as a label of its own, on an item of its own: rankings that are nearly the same, or
    points, agree as far as their decisions do. Labels of one decision stay as they are.
    """
    places: dict[tuple[int, int], int] = {}
    rows = []
    for label in labels:
        if len(label.decisions) == 1:
            rows.append(label)
            continue
        for place, decision in enumerate(label.decisions):
            item = places.setdefault((label.campaign_item, place), -len(places) - 1)
            rows.append(replace(label, campaign_item=item, verdict=decision, verdict_number=None))
    return rows


LabelsByItem = Mapping[int, Sequence[LabelRow]]


def by_item(labels: Iterable[LabelRow]) -> dict[int, list[LabelRow]]:
    """Labels by campaign item. Two reviews of one item are about different judgments."""
    grouped: dict[int, list[LabelRow]] = defaultdict(list)
    for label in labels:
        grouped[label.campaign_item].append(label)
    return grouped


def pairs_of_labels(items: LabelsByItem) -> Iterator[tuple[LabelRow, LabelRow]]:
    """Every two labels of the same item."""
    for labels in items.values():
        yield from combinations(labels, 2)


def own_and_others(items: LabelsByItem, annotator: int) -> Iterator[tuple[LabelRow, list[LabelRow]]]:
    """The own label of each item that others have labelled, too, with theirs."""
    for labels in items.values():
        own = next((label for label in labels if label.annotator == annotator), None)
        others = [label for label in labels if label.annotator != annotator]
        if own is not None and others:
            yield own, others


def with_majority(items: LabelsByItem, annotator: int) -> list[tuple[LabelRow, str]]:
    """The own label of each item on which the others have a majority, with that majority."""
    compared = []
    for own, others in own_and_others(items, annotator):
        majority = majority_word(other.verdict for other in others)
        if majority is not None:
            compared.append((own, majority))
    return compared


MIN_ITEMS = 30  # with fewer items a number is provisional


@dataclass(frozen=True, slots=True)
class Figure:
    """A number as the page displays it; ``write``: how it is written, see ``stats.figures``."""

    name: str
    about: str
    estimate: Estimate
    items: int
    write: str = "three"

    @property
    def provisional(self) -> bool:
        return 0 < self.items < MIN_ITEMS


IN_CELLS = {
    "": "% the same",
    "kappa": "Cohen's kappa",
    "kappa_linear": "weighted",
    "kappa_quadratic": "by squares",
    "ac1": "AC1",
    "ac2": "AC2",
}


@dataclass(frozen=True, slots=True)
class Matches:
    """How often two verdicts on one item were the same. Undecided counts as a tie."""

    same: int
    n: int

    @property
    def share(self) -> float | None:
        return self.same / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Cell(Matches):
    """Two annotators: how many items both labelled, and on how many they gave the same verdict."""

    agreement: Estimate
    beyond_chance: dict[str, Estimate]  # by measure, see ``measures_of``

    @property
    def of_kappa(self) -> Estimate:
        return self.beyond_chance["kappa"]

    def shown(self, measure: str) -> str:
        """Its value by a measure, or where there is none of this name, the percentage of equal verdicts."""
        if measure not in MEASURES:
            return whole_percent(self.share)
        return two(self.beyond_chance[measure].value) if measure in self.beyond_chance else NONE

    @property
    def heat(self) -> str:
        """CSS class of the cell, over the fixed range 0 to 1."""
        return "qx" if self.share is None else f"q{min(4, int(self.share * 5))}"


@dataclass(frozen=True, slots=True)
class Level:
    """Agreement on the items of one capability."""

    name: str
    items: int
    same: Figure
    alpha: Figure


@dataclass(frozen=True, slots=True)
class Agreement:
    """Everything on the page. ``items`` are those with two labels or more."""

    items: int
    labels: int
    unanimous: int
    of_unanimous: Estimate
    figures: list[Figure]
    rule: str
    # Each verdict, of how many items it is the majority's, and the share; empty for what is no pair.
    majority: list[tuple[str, int, Estimate]]
    levels: list[Level]
    people: list[int]
    cells: dict[tuple[int, int], Cell]  # by annotators, the smaller id first


def agreement_of(campaign: Campaign, labels: Sequence[LabelRow]) -> Agreement:
    """Agreement of these labels. A number that cannot be computed has the value None and a reason.

    Gwet's coefficients and intraclass correlations count an item with one label, too: in what chance would give, and
    in what items and people differ by.
    """
    shared = {item: rows for item, rows in by_item(labels).items() if len(rows) > 1}
    counted = [label for rows in shared.values() for label in rows]
    offered = offered_by(campaign)
    figures = [
        matching(counted, len(shared)),
        alpha(counted, "nominal", len(shared)),
        *([alpha(counted, "ordinal", len(shared))] if are_ordered(counted) else []),
        _fleiss(shared),
        *_gwets(labels, len(shared), offered),
        *_intraclass(labels, len(shared)),
    ]
    rule = campaign.benchmark.majority
    alike = [len({label.verdict for label in rows}) == 1 for rows in shared.values()]
    return Agreement(
        items=len(shared),
        labels=len(counted),
        unanimous=sum(alike),
        of_unanimous=rate(hits=alike, cluster=[rows[0].group for rows in shared.values()]),
        figures=figures,
        rule=rule,
        majority=_majorities(labels, rule),
        levels=_levels(counted),
        people=sorted({label.annotator for label in labels}),
        cells=pairwise_cells(labels, offered),
    )


def _majorities(labels: Sequence[LabelRow], rule: str) -> list[tuple[str, int, Estimate]]:
    """Of how many items each verdict is the majority, and of which share; nothing for what is no pair."""
    pairs = [label for label in labels if label.raw in Choice.values]
    if not pairs:
        return []
    frame = pd.DataFrame({"item": [label.campaign_item for label in pairs], "choice": [label.raw for label in pairs]})
    decided = majority(labels=frame, rule=rule)["choice"]
    groups = {label.campaign_item: label.group for label in pairs}
    cluster = [groups[item] for item in decided.index]
    shares = {name: rate(hits=decided == name, cluster=cluster) for name in Choice.values}
    return [(name, int((decided == name).sum()), shares[name]) for name in Choice.values]


def _levels(labels: Sequence[LabelRow]) -> list[Level]:
    """Agreement on each capability, if there are several."""
    in_level: dict[str, list[LabelRow]] = defaultdict(list)
    for label in labels:
        in_level[label.level].append(label)
    if len(in_level) < 2:
        return []
    levels = []
    for name, rows in sorted(in_level.items()):
        items = len(by_item(rows))
        levels.append(Level(name, items, matching(rows, items), alpha(rows, "nominal", items)))
    return levels


def pairwise_cells(labels: Sequence[LabelRow], offered: Sequence[Columns] = ()) -> dict[tuple[int, int], Cell]:
    """Every two annotators with items in common; ``offered`` are the verdicts that the ballot has."""
    if not labels:
        return {}
    annotators, items = [label.annotator for label in labels], [label.campaign_item for label in labels]
    same = pairwise_agreement(annotator=annotators, item=items, verdict=[label.verdict for label in labels])
    tables = {
        measure: pairwise_kappa(
            annotator=annotators,
            item=items,
            verdict=verdicts,
            measure=measure,
            categories=categories_of(measure, verdicts, offered),
        )
        for measure, verdicts in measures_of(labels).items()
    }
    estimates = {
        measure: {(row.a, row.b): _estimate(row, measure) for row in table.itertuples(index=False)}
        for measure, table in tables.items()
    }
    cells = {}
    for a, b, agreed, n in same.itertuples(index=False):
        share = proportion(successes=int(agreed), n=int(n))
        of_two = {measure: by_pair[a, b] for measure, by_pair in estimates.items()}
        cells[int(a), int(b)] = Cell(int(agreed), int(n), share, of_two)
    return _by_group(cells, labels, offered)


def measures_of(labels: Sequence[LabelRow]) -> dict[str, list[Any]]:
    """The measures of agreement beyond chance that these labels can have, with the verdicts that each compares: all of
    them where every verdict stands on a scale.
    """
    numbers = [label.verdict_number for label in labels]
    verdicts = [label.verdict for label in labels]
    on_scale = None not in numbers
    return {
        measure: numbers if chosen.power else verdicts
        for measure, chosen in MEASURES.items()
        if on_scale or not chosen.power
    }


def _estimate(row: Any, measure: str) -> Estimate:
    """Of a row of `pairwise_kappa`."""
    value, low, high, se = (None if np.isnan(of) else float(of) for of in (row.kappa, row.low, row.high, row.se))
    method = method_of(measure)
    ends = None if low is None or high is None else Interval(low, high, 0.95, method)
    return Estimate(value, int(row.n), ends, method, row.reason, se, int(row.n))


def categories_of(measure: str, verdicts: Iterable[Any], offered: Iterable[Columns]) -> list[Any]:
    """The categories of this measure: these verdicts, and those offered that nobody gave; of numbers those
    given alone where the ballot offers so many that no measure knows them all.
    """
    given = dict.fromkeys(verdicts)
    number = MEASURES[measure].power
    both = given | dict.fromkeys(verdict_number(verdict) if number else verdict_key(verdict) for verdict in offered)
    return [*(given if number and len(both) > MOST_LABELS else both)]


def _by_group(
    cells: dict[tuple[int, int], Cell], labels: Sequence[LabelRow], offered: Sequence[Columns]
) -> dict[tuple[int, int], Cell]:
    """The cells, with intervals by group where items that two people share have a picture or prompt in common."""
    groups = {label.campaign_item: label.group for label in labels}
    if len(set(groups.values())) == len(groups):
        return cells
    measures = measures_of(labels)
    said = {measure: _by_annotator(labels, verdicts) for measure, verdicts in measures.items()}
    clustered = {}
    for (a, b), cell in cells.items():
        shared = _in_both(said["kappa"][a], said["kappa"][b])
        cluster = [groups[item] for item in shared]
        of_two = {
            measure: beyond_chance(
                measure=measure,
                first=[by[a][item] for item in shared],
                second=[by[b][item] for item in shared],
                cluster=cluster,
                categories=categories_of(measure, measures[measure], offered),
            )
            for measure, by in said.items()
        }
        hits = [said["kappa"][a][item] == said["kappa"][b][item] for item in shared]
        clustered[a, b] = replace(cell, agreement=rate(hits=hits, cluster=cluster), beyond_chance=of_two)
    return clustered


def _by_annotator(labels: Sequence[LabelRow], verdicts: Sequence[Any]) -> dict[int, dict[int, Any]]:
    """The verdicts of these labels by annotator and campaign item."""
    by: dict[int, dict[int, Any]] = {}
    for label, verdict in zip(labels, verdicts, strict=True):
        by.setdefault(label.annotator, {})[label.campaign_item] = verdict
    return by


def _in_both(items: Iterable[int], others: Container[int]) -> list[int]:
    return [item for item in items if item in others]


def agreement_with_others(items: LabelsByItem, annotator: int) -> tuple[Matches, Estimate | None]:
    """How an annotator compares with the majority of the others: matches, and Cohen's kappa. Items where the others
    have no majority are left out; the annotator's own label is not part of it.
    """
    compared = with_majority(items, annotator)
    if not compared:
        return Matches(0, 0), None
    own, others = [label.verdict for label, _ in compared], [majority for _, majority in compared]
    kappa = cohen_kappa(first=own, second=others, cluster=[label.group for label, _ in compared])
    return Matches(sum(label.verdict == majority for label, majority in compared), len(compared)), kappa


def matching(
    labels: Sequence[LabelRow],
    items: int,
    *,
    name: str = "Matching",
    about: str = "of {n:,} pairs of labels on the same item are the same verdict",
) -> Figure:
    """The share of label pairs on the same item that match, clustered by group; ``about`` holds their number."""
    pairs = list(pairs_of_labels(by_item(labels)))
    hits = [first.verdict == second.verdict for first, second in pairs]
    estimate = rate(hits=hits, cluster=[first.group for first, _ in pairs])
    return Figure(name, about.format(n=len(hits)), estimate, items, "percent_sign")


def alpha(labels: Sequence[LabelRow], metric: Metric, items: int) -> Figure:
    """Krippendorff's alpha of these labels, whose units are their campaign items."""
    unit: list[tuple[int, int]] = []
    groups: list[str] = []
    value: list[str | float] = []
    for label in labels:
        if metric == "nominal":
            unit.append((label.campaign_item, 0))
            value.append(label.verdict)
            groups.append(label.group)
        elif label.ranking is not None:  # each answer's rank is a value of its own
            before = 0
            for group in label.ranking:
                unit += [(label.campaign_item, position) for position in group]
                value += [before + (len(group) + 1) / 2] * len(group)
                groups += [label.group] * len(group)
                before += len(group)
        elif label.verdict_number is not None:
            unit.append((label.campaign_item, 0))
            value.append(label.verdict_number)
            groups.append(label.group)
    codes = {key: code for code, key in enumerate(dict.fromkeys(unit))}
    estimate = krippendorff_alpha(unit=[codes[key] for key in unit], value=value, metric=metric, cluster=groups)
    about = "all different verdicts differ equally" if metric == "nominal" else "verdicts further apart differ more"
    return Figure(f"Krippendorff's alpha, {metric}", about, estimate, items)


def are_ordered(labels: Sequence[LabelRow]) -> bool:
    """Whether these verdicts stand on a scale or in an order."""
    return any(label.verdict_number is not None or label.ranking for label in labels)


def _fleiss(shared: dict[int, list[LabelRow]]) -> Figure:
    """Over the items with the most common number of labels, because Fleiss' kappa needs the same number on each."""
    sizes = Counter(len(rows) for rows in shared.values())
    size = max(sizes, key=lambda size: (sizes[size], size), default=2)
    labels = [label for rows in shared.values() if len(rows) == size for label in rows]
    estimate = fleiss_kappa(
        unit=[label.campaign_item for label in labels],
        value=[label.verdict for label in labels],
        cluster=[label.group for label in labels],
    )
    return Figure("Fleiss' kappa", f"over the items with {size} labels", estimate, sizes[size])


GWETS: tuple[Literal["ac1", "ac2"], ...] = ("ac1", "ac2")


def _gwets(labels: Sequence[LabelRow], items: int, offered: Sequence[Columns]) -> list[Figure]:
    """Gwet's coefficients of all labels: AC1, and of verdicts on a scale AC2. ``items``: those with several."""
    measures = measures_of(labels)
    unit, cluster = [label.campaign_item for label in labels], [label.group for label in labels]
    ac1, *ac2 = (
        gwet(
            unit=unit,
            value=measures[measure],
            measure=measure,
            categories=categories_of(measure, measures[measure], offered),
            cluster=cluster,
        )
        for measure in GWETS
        if measure in measures
    )
    figures = [
        Figure(
            "Gwet's AC1",
            "as kappa, but steady where nearly all verdicts are the same",
            ac1,
            items,
        )
    ]
    about = "the same, verdicts further apart differ more (by squares)"
    return figures + [Figure("Gwet's AC2", about, estimate, items) for estimate in ac2]


ICC = {
    "ICC(1)": ("one_way", "reliability of one rating, whoever gives it"),
    "ICC(A,1)": ("agreement", "reliability of one rating; strict and mild people differ"),
    "ICC(C,1)": ("consistency", "the same, but for how strict or mild each is"),
}


def _intraclass(labels: Sequence[LabelRow], items: int) -> list[Figure]:
    """Intraclass correlations of all labels, as numbers; nothing of pairs, yes or no, and what has no number.
    ``items``: those with several.
    """
    words = {*Choice.values, "yes", "no"}
    numbers = [label.verdict_number for label in labels if label.verdict_number is not None and label.raw not in words]
    if not labels or len(numbers) < len(labels):
        return []
    found: Intraclass = intraclass(
        item=[label.campaign_item for label in labels],
        rater=[label.annotator for label in labels],
        value=numbers,
        cluster=[label.group for label in labels],
    )
    return [Figure(name, about, getattr(found, which), items) for name, (which, about) in ICC.items()]


def components_of(labels: Sequence[LabelRow]) -> Components | None:
    """The differences between labels of a campaign; None of those without a place on a scale."""
    numbers = [label.verdict_number for label in labels if label.verdict_number is not None]
    if len(numbers) < len(labels):
        return None
    return components(
        value=numbers,
        item=[label.campaign_item for label in labels],
        prompt=[label.group for label in labels],
        crossed=[label.annotator for label in labels],
        name="person",
    )


PARTS = {
    "prompt": "what is asked, or the picture",
    "item": "the answers, within a picture or prompt",
    "person": "how strict somebody is, or which side they lean to",
    "item by person": "who sees which answer how",
    "rest": "who sees which answer how, and chance",
}


def parts_of(labels: Sequence[LabelRow]) -> dict[str, Any] | None:
    """The parts of the variance as the page shows them, and how much narrower the mean's interval would be with twice
    the items and with twice the people.
    """
    found = components_of(labels)
    if found is None:
        return None
    figures = [
        Figure(part.name.capitalize(), PARTS[part.name], part.share, part.levels, "percent_sign")
        for part in found.parts
    ]
    error = found.error()
    narrower = [
        whole_percent(1 - more / error) if error else "0" for more in (found.error(items=2), found.error(raters=2))
    ]
    return {"figures": figures, "items": narrower[0], "people": narrower[1]}
