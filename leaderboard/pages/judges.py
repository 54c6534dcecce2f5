"""The board of judges as a page: one metric with its interval, its level by level heat, the others as figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from judging.judgments.analyses import sees_usage
from judging.models import Run
from leaderboard.boards import Board
from leaderboard.boards.base import Cell, Row
from leaderboard.boards.pair_judges import PEOPLE, REFERENCES
from leaderboard.figures import number_of, tick, two, whole
from leaderboard.kinds import Kind
from leaderboard.metrics import Metric
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.pages.bias import Chip
from leaderboard.pages.judge_rows import (
    RUNNING,
    JudgeRow,
    ceiling_row,
    judge_row,
    running_cell,
)
from leaderboard.pages.models import Head
from leaderboard.pages.provenance import Fact, data_facts, rule_fact
from leaderboard.scope import Scope
from stats.means import Place

EACH_LABEL = "each label"
BEST_FIRST = "-value"
SORTS = ("value", "judge", "n", "coverage")


@dataclass(frozen=True, slots=True)
class JudgesPage:
    metric: str
    metric_label: str
    in_words: str
    reference: str
    heads: dict[str, Head]
    beside: list[Head]
    levels: list[str]
    running: list[Head]
    rows: list[JudgeRow] = field(default_factory=list)
    heat_low: str = ""
    heat_high: str = ""
    judges: int = 0
    has_settings: bool = False
    has_floor: bool = False
    has_biases: bool = False


def chosen(address: Address, kind: Kind) -> tuple[Metric, str]:
    """Metric and reference of the address, or their defaults."""
    reference = address.given.get("reference", "")
    return kind.metric(address.given.get("metric", "")), reference if reference in REFERENCES else REFERENCES[0]


def reference_words(kind: Kind) -> dict[str, str]:
    return {"majority": kind.reference, "individuals": EACH_LABEL}


def selects(address: Address, board: Board, kind: Kind) -> list[Select]:
    metric, reference = chosen(address, kind)
    there = {row["metric"] for row in board.rows}
    metrics = [Choice(one.name, one.label) for one in kind.metrics if one.name in there]
    return [
        Select("metric", "Metric", [("", metrics)], metric.name, on=metric is not kind.metrics[0]),
        Select(
            "reference",
            "Against",
            [("", [Choice(name, reference_words(kind)[name]) for name in REFERENCES])],
            reference,
            on=reference != REFERENCES[0],
        ),
    ]


def _as_seen(running: Row, run: Run | None, address: Address) -> Row:
    """What a judge costs and how long it takes, where this viewer may see it."""
    if run is not None and sees_usage(run, address.viewer):
        return running
    return {name: value for name, value in running.items() if name not in ("cost", "seconds")}


def page_of(
    address: Address, board: Board, *, kind: Kind, biases: Mapping[int, list[Chip]] = MappingProxyType({})
) -> JudgesPage:
    """Everything that the table shows. ``biases`` are the marks of each run."""
    chosen_metric, reference = chosen(address, kind)
    metric = chosen_metric.name
    judges = _by_run(board, reference)
    there = {name for numbers in judges.values() for name in numbers}
    runs = Run.objects.filter(pk__in=judges).select_related("judge").in_bulk()
    assert board.judges  # where there are rows
    against = board.judges.against[reference]
    standing, cells, ceiling = against.standing.get(metric, {}), against.cells.get(metric, {}), against.ceiling
    beside = [one for one in kind.metrics if one.beside and one.name != metric and one.name in there]
    levels = _level_names(against.cells[kind.metrics[0].name], board.judges.cell_order)
    running = {pk: _as_seen(one, runs.get(pk), address) for pk, one in board.judges.running.items()}
    known = [name for name in RUNNING if any(one.get(name) is not None for one in running.values())]
    values = [numbers[metric] for numbers in judges.values() if metric in numbers]
    ends = [row[end] for row in values for end in ("value", "value_low", "value_high")]
    ends += [ceiling.get(metric, {}).get(end) for end in ("value", "value_low", "value_high")]
    scale = marks.axis(ends, unit=1)
    order = _ordered(address, judges, runs, chosen_metric, standing)
    tints = _tints(order, standing) if _sort(address) == BEST_FIRST else {}
    rows = []
    if ceiling.get(metric):
        people = cells.get(PEOPLE, {})
        rows.append(ceiling_row(ceiling, chosen_metric, beside, [(name, people.get(name)) for name in levels], scale))
    for place, run in enumerate(order):
        following = order[place + 1] if place + 1 < len(order) else None
        rows.append(
            judge_row(
                address,
                runs[run],
                judges[run],
                metric=chosen_metric,
                standing=standing.get(run),
                beside=beside,
                levels=[(name, cells.get(run, {}).get(name)) for name in levels],
                scale=scale,
                ceiling=ceiling.get(metric, {}).get("value"),
                tinted=tints.get(run, False),
                last=bool(tints) and following is not None and tints.get(following) is not tints.get(run),
                biases=biases.get(run, []),
                running=[running_cell(running.get(run, {}), name) for name in known],
            )
        )
    low, high = chosen_metric.heat
    return JudgesPage(
        metric=metric,
        metric_label=chosen_metric.label,
        in_words=chosen_metric.words,
        reference=reference,
        heads=_heads(address, chosen_metric, scale),
        beside=[Head(one.label, address.link(metric=one.name, sort=None), title=one.words) for one in beside],
        levels=levels,
        running=[Head(RUNNING[name][0], "", title=RUNNING[name][1]) for name in known],
        rows=rows,
        heat_low=two(low),
        heat_high=two(high),
        judges=sum(not judge.judge.is_baseline for judge in runs.values()),
        has_settings=any(row.settings for row in rows),
        has_biases=any(row.biases for row in rows),
        has_floor=any(row.kind == "baseline" for row in rows),
    )


def _by_run(board: Board, reference: str) -> dict[int, dict[str, Row]]:
    """By run and metric the rows over all data sets."""
    judges: dict[int, dict[str, Row]] = {}
    for row in board.rows:
        if row["reference"] == reference and row["source_dataset"] == "all":
            judges.setdefault(row["run"], {})[row["metric"]] = row
    return judges


def _level_names(cells: dict[int, dict[str, Cell]], order: list[str]) -> list[str]:
    """Data sets or levels that some judge has a verdict in, in the board's order; none where there is one only."""
    seen = {name for of_judge in cells.values() for name, cell in of_judge.items() if cell.n}
    ordered = [name for name in order if name in seen]
    return ordered if len(ordered) > 1 else []


def _ordered(
    address: Address,
    judges: dict[int, dict[str, Row]],
    runs: dict[int, Run],
    metric: Metric,
    standing: dict[int, Place],
) -> list[int]:
    """Judges by the sorted column, those that are not ranked after them, baselines as the floor."""
    sort = _sort(address)
    key = sort.removeprefix("-")

    def value(run: int) -> Any:
        numbers = judges[run].get(metric.name) or next(iter(judges[run].values()))
        if key == "judge":
            return runs[run].judge.name.casefold()
        return numbers[key]

    order = sorted(judges, key=lambda run: (runs[run].judge.name.casefold(), run))
    known = [run for run in order if value(run) is not None]
    turned = key == "value" and metric.lower_is_better  # best first is smallest first
    known.sort(key=value, reverse=sort.startswith("-") != turned)
    if sort == "-value":
        known.sort(key=lambda run: standing[run].tier or 0 if run in standing else len(judges) + 1)
    order = known + [run for run in order if value(run) is None]
    return sorted(order, key=lambda run: (runs[run].judge.is_baseline, run not in standing))


def _sort(address: Address) -> str:
    asked = address.given.get("sort", BEST_FIRST)
    return asked if asked.removeprefix("-") in SORTS else BEST_FIRST


def _tints(order: list[int], standing: dict[int, Place]) -> dict[int, bool]:
    tints: dict[int, bool] = {}
    tinted, tier = False, None
    for run in order:
        if run not in standing:
            continue
        if standing[run].tier != tier:
            tinted, tier = not tinted, standing[run].tier
        tints[run] = tinted
    return tints


def ceiling_in_words(reference: str, n: float, kind: Kind) -> str:
    """How the ceiling is computed."""
    if reference == "majority":
        others = "mean" if kind.by_mean else "majority"
        return f"Ceiling: each of {whole(n)} labels against the {others} of the other people on its item."
    return f"Ceiling: every two people who labelled the same item, {whole(n)} pairs of labels."


def _heads(address: Address, metric: Metric, scale: marks.Axis) -> dict[str, Head]:
    sort = _sort(address)

    def made(label: str, column: str, *, best_first: bool = True, **more: Any) -> Head:
        first = f"-{column}" if best_first else column
        state = {column: "ascending", f"-{column}": "descending"}.get(sort, "")
        following = (column if sort == f"-{column}" else f"-{column}") if state else first
        return Head(label, address.link(sort=None if following == BEST_FIRST else following), state, **more)

    ticks = marks.axis_head(scale, tick)
    return {
        "judge": made("Judge", "judge", best_first=False),
        "value": made(metric.label, "value", marks=ticks, title=metric.words),
        "n": made("n", "n", title="Pairs of verdicts compared"),
        "coverage": made("Cov. %", "coverage", title="Share of people's items that the judge has a verdict on"),
    }


def facts(scope: Scope, board: Board) -> list[Fact]:
    """What made the page."""
    extra = board.extra
    counted = f"{number_of(extra['labels'], 'label')} by {number_of(extra['annotators'], 'annotator')}"
    return [
        Fact("Human labels", counted),
        Fact("Items", whole(extra["items"])),
        *([rule_fact(scope)] if scope.kind.pairwise else []),
        *data_facts(board, counted=number_of(len(board.runs), "run")),
    ]
