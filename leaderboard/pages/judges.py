"""The board of judges as a page: one metric with its interval, its level by level heat, the others as figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from django.urls import reverse
from django.utils.safestring import SafeString

from judging.judgments.analyses import sees_usage
from judging.models import Run
from leaderboard.boards.judge_board import (
    ALL,
    INDIVIDUALS,
    MAJORITY,
    PEOPLE,
    REFERENCES,
    JudgesBoard,
    MetricValue,
    Running,
)
from leaderboard.boards.judge_board import JudgeRow as Row
from leaderboard.boards.judge_ranks import Cell as LevelValue
from leaderboard.boards.reviews import ReviewsBoard
from leaderboard.definitions import JUDGED, POOL, POOLED
from leaderboard.figures import NONE, interval, number_of, percent, rank_range, tick, told, two, whole
from leaderboard.kinds import Kind
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import Metric
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select, settings_in_words
from leaderboard.pages.bias import Chip
from leaderboard.pages.provenance import Fact, data_facts, rule_fact, run_link, verdicts_link
from leaderboard.pages.table import Cell, Head, Sorting, ends_of_groups, row_css, tints
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope
from stats.ranks import Place

EACH_LABEL = "each label"
BEST_FIRST = "-value"
SORTS = ("value", "judge", "n", "coverage")


@dataclass(frozen=True, slots=True)
class JudgeRow:
    name: str
    page: str  # the judge's own
    kind: str  # "", "baseline", "ceiling" or "provisional"
    chip: str
    simulated: bool
    settings: str
    run: str
    run_link: str
    link: str
    rank: str
    ranks: str
    css: str
    value: str
    bar: SafeString
    beside: list[Cell]
    levels: list[Cell]
    n: str
    coverage: str
    running: list[Cell] = field(default_factory=list)
    biases: list[Chip] = field(default_factory=list)
    key: str = ""  # what the page of two judges calls it


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
    reference = address.params.get("reference", "")
    return kind.metric(address.params.get("metric", "")), reference if reference in REFERENCES else REFERENCES[0]


def reference_words(kind: Kind) -> dict[str, str]:
    return {MAJORITY: kind.reference, INDIVIDUALS: EACH_LABEL}


def definitions(board: JudgesBoard, kind: Kind) -> list[str]:
    """Those that make a difference to this board."""
    sets = [POOL.name] if data_sets(board) > 1 else []
    return [*sets, *(name for name in JUDGED if kind.pairwise and name != POOL.name)] if board.rows else []


def selects(address: Address, board: JudgesBoard, kind: Kind) -> list[Select]:
    metric, reference = chosen(address, kind)
    measured = {row.metric for row in board.rows}
    metrics = [Choice(offered.name, offered.label) for offered in kind.metrics if offered.name in measured]
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


def page_of(
    address: Address, board: JudgesBoard, *, kind: Kind, biases: Mapping[int, list[Chip]] = MappingProxyType({})
) -> JudgesPage:
    """Everything that the table shows. ``biases`` are the marks of each run."""
    metric, reference = chosen(address, kind)
    judges = board.overall(reference)
    measured = {name for rows in judges.values() for name in rows}
    runs = Run.objects.filter(pk__in=judges).select_related("judge").in_bulk()
    against = board.against[reference]
    standing, cells = against.standing.get(metric.name, {}), against.cells.get(metric.name, {})
    ceiling = against.ceiling.get(metric.name)
    extra_metrics = [
        extra for extra in kind.metrics if extra.always_shown and extra.name != metric.name and extra.name in measured
    ]
    levels = _level_names(against.cells.get(kind.metrics[0].name, {}), board.cell_order)
    running = {pk: figures for pk, figures in board.running.items() if pk in runs}
    usage = {pk: sees_usage(runs[pk], address.viewer) for pk in running}
    columns = [
        column
        for column in RUNNING
        if any(_running(figures, column, usage[pk]) is not None for pk, figures in running.items())
    ]
    values = [rows[metric.name].value for rows in judges.values() if metric.name in rows]
    scale = marks.axis([end for value in [*values, ceiling.number if ceiling else UNKNOWN] for end in value.ends])
    sorting = Sorting.of(address, SORTS, usual=BEST_FIRST)
    order = _ordered(sorting, judges, runs, metric, standing)
    tinted = tints((run, standing[run].tier) for run in order if run in standing) if sorting.is_usual else {}
    table_rows = []
    if ceiling:
        people = cells.get(PEOPLE, {})
        table_rows.append(
            _ceiling_row(
                against.ceiling,
                ceiling,
                extra_metrics,
                _level_cells(metric, [(name, people.get(name)) for name in levels]),
                scale,
            )
        )
    for run, last in zip(order, ends_of_groups(order, tinted), strict=True):
        level_values, figures = cells.get(run, {}), running.get(run)
        table_rows.append(
            _judge_row(
                address,
                runs[run],
                judges[run],
                metric=metric,
                standing=standing.get(run),
                extra_metrics=extra_metrics,
                levels=_level_cells(metric, [(name, level_values.get(name)) for name in levels]),
                scale=scale,
                ceiling=ceiling.number.value if ceiling else None,
                tinted=tinted.get(run, False),
                last=last,
                biases=biases.get(run, []),
                running=[_running_cell(figures, column, usage[run]) if figures else Cell(NONE) for column in columns],
            )
        )
    low, high = metric.heat
    return JudgesPage(
        metric=metric.name,
        metric_label=metric.label,
        in_words=metric.words + (over_data_sets(address, board) if metric.compute else ""),
        reference=reference,
        heads=_heads(sorting, metric, scale),
        beside=[
            Head(extra.label, address.link(metric=extra.name, sort=None), title=extra.words) for extra in extra_metrics
        ],
        levels=levels,
        running=[Head(RUNNING[column][0], "", title=RUNNING[column][1]) for column in columns],
        rows=table_rows,
        heat_low=two(low),
        heat_high=two(high),
        judges=sum(not run.judge.is_baseline for run in runs.values()),
        has_settings=len({run.judge_id for run in runs.values()}) < len(runs),
        has_biases=any(row.biases for row in table_rows),
        has_floor=any(row.kind == "baseline" for row in table_rows),
    )


def _level_names(cells: dict[int, dict[str, LevelValue]], order: list[str]) -> list[str]:
    """Data sets or levels that some judge has a verdict in, in the board's order; none where there is one only."""
    present = {name for of_judge in cells.values() for name, cell in of_judge.items() if cell.n}
    ordered = [name for name in order if name in present]
    return ordered if len(ordered) > 1 else []


def _ordered(
    sorting: Sorting,
    judges: dict[int, dict[str, Row]],
    runs: dict[int, Run],
    metric: Metric,
    standing: dict[int, Place],
) -> list[int]:
    """Judges by the sorted column, those that are not ranked after them, baselines as the floor."""

    def value(run: int) -> Any:
        row = judges[run].get(metric.name) or next(iter(judges[run].values()))
        values = {"judge": row.judge.casefold(), "value": row.value.value, "n": row.n, "coverage": row.coverage}
        return values[sorting.column]

    by_name = sorted(judges, key=lambda run: (runs[run].judge.name.casefold(), run))
    order = sorting.ordered(by_name, value, lower_first=sorting.column == "value" and metric.lower_is_better)
    if sorting.is_usual:
        order.sort(key=lambda run: standing[run].tier or 0 if run in standing else len(judges) + 1)
    return sorted(order, key=lambda run: (runs[run].judge.is_baseline, run not in standing))


def ceiling_in_words(reference: str, n: float, kind: Kind) -> str:
    """How the ceiling is computed."""
    if reference == MAJORITY:
        others = "mean" if kind.by_mean else "majority"
        return f"Ceiling: each of {whole(n)} labels against the {others} of the other people on its item."
    return f"Ceiling: every two people who labelled the same item, {whole(n)} pairs of labels."


def _heads(sorting: Sorting, metric: Metric, scale: marks.Axis) -> dict[str, Head]:
    ticks = marks.axis_head(scale, tick)
    share = "Share of people's items that the judge has a verdict on"
    return {
        "judge": sorting.head("Judge", "judge"),
        "value": sorting.head(metric.label, "value", marks=ticks, title=metric.words),
        "n": sorting.head("n", "n", title="Pairs of verdicts compared"),
        "coverage": sorting.head("Coverage %", "coverage", title=share),
    }


FLOOR = "are the baselines: they know no more than chance, the places, the lengths or the words of the answers."


def data_sets(board: JudgesBoard) -> int:
    return len({row.source_dataset for row in board.rows} - {ALL})


def over_data_sets(address: Address, board: JudgesBoard) -> str:
    """What a number over all is where there are several source data sets."""
    sets = data_sets(board)
    pooled = address.params.get(POOL.name) == POOLED
    words = f", pooled over {sets} data sets" if pooled else f", the mean over {sets} data sets, each counting alike"
    return words if sets > 1 else ""


def reading(page: JudgesPage, *, against: str, ceiling: str) -> list[tuple[str, str]]:
    """What the columns are: a term and what is said of it. ``ceiling``: how it is computed, in words."""
    compared = f"the {against} who labelled it" if page.reference == MAJORITY else "every label that people gave it"
    words = [
        (True, "", f"A judge's verdict on an item is compared with {compared}."),
        (True, page.metric_label, f"ranks: {page.in_words}. Bars are 95% intervals."),
        (bool(ceiling), "", ceiling),
        (page.has_floor, "Floor", FLOOR),
        (True, "Rank", "is shared where judges cannot be told apart at 5% after Benjamini–Hochberg."),
        (True, "n", "is the number of verdicts compared."),
        (True, "Coverage", "is the share of people's items that the judge has a verdict on."),
        (page.has_biases, "Bias", "names what sways a judge, where its 95% interval leaves 0 out."),
        (bool(page.levels), "", f"A coloured column is {page.metric_label} on one part of the samples."),
        (True, "", "A click on a metric's name ranks by it, a click on a number opens the items behind it."),
    ]
    return [(term, said) for shown, term, said in words if shown]


def facts(scope: Scope, board: JudgesBoard) -> list[Fact]:
    """What made the page."""
    counted = f"{number_of(board.labels, 'label')} by {number_of(board.annotators, 'annotator')}"
    return [
        Fact("Human labels", counted),
        Fact("Items", whole(board.items)),
        *([rule_fact(scope)] if scope.kind.pairwise else []),
        *data_facts(board, counted=number_of(len(board.runs), "run")),
    ]


# ---- rows ----


def _judge_row(
    address: Address,
    run: Run,
    rows: dict[str, Row],
    *,
    metric: Metric,
    standing: Place | None,
    extra_metrics: list[Metric],
    levels: list[Cell],
    scale: marks.Axis,
    ceiling: float | None,
    tinted: bool,
    last: bool,
    running: list[Cell],
    biases: list[Chip],
) -> JudgeRow:
    judge, row = run.judge, rows.get(metric.name)
    value = row.value if row else UNKNOWN
    provisional = (
        not judge.is_baseline
        and standing is None
        and row is not None
        and value.value is not None
        and row.n < PROVISIONAL
    )
    kind = "baseline" if judge.is_baseline else "provisional" if provisional else ""
    return JudgeRow(
        name=judge.name,
        page=reverse("leaderboard:judge-detail", args=[judge.pk]),
        kind=kind,
        simulated=judge.simulated,
        chip="floor" if judge.is_baseline else "provisional" if provisional else "",
        settings=settings_in_words(run.protocol, run.settings) if not judge.is_baseline else "",
        run=str(run.pk),
        run_link=run_link(address.viewer, run),
        link=verdicts_link(address, run),
        rank="" if judge.is_baseline else NONE if standing is None else str(standing.tier),
        ranks="" if standing is None else rank_range(standing.tier, standing.rank_low, standing.rank_high),
        css=row_css(kind, tinted=tinted, last=last),
        value=told(value, two),
        bar=marks.interval_bar(scale, *value.ends, provisional=provisional, ceiling=ceiling),
        beside=[
            _value_cell(MetricValue(extra_row.value, extra_row.n) if (extra_row := rows.get(extra.name)) else None)
            for extra in extra_metrics
        ],
        levels=levels,
        n=whole(row.n if row else 0),
        coverage=NONE if row is None or row.coverage is None else percent(row.coverage),
        running=running,
        biases=biases,
        key=f"run-{run.pk}",
    )


def _ceiling_row(
    values: dict[str, MetricValue],
    ceiling: MetricValue,
    extra_metrics: list[Metric],
    levels: list[Cell],
    scale: marks.Axis,
) -> JudgeRow:
    return JudgeRow(
        name="Person against person",
        page="",
        kind="ceiling",
        chip="ceiling",
        simulated=False,
        settings="",
        run="",
        run_link="",
        link="",
        rank="",
        ranks="",
        css=row_css("ceiling", tinted=False, last=True),
        value=two(ceiling.number.value),
        bar=marks.interval_bar(scale, *ceiling.number.ends, ceiling=ceiling.number.value),
        beside=[_value_cell(values.get(extra.name)) for extra in extra_metrics],
        levels=levels,
        n=whole(ceiling.n),
        coverage=NONE,
    )


def _value_cell(value: MetricValue | None) -> Cell:
    if value is None or value.number.value is None:
        return Cell(NONE)
    return Cell(two(value.number.value), title=_with_n(value.number, value.n, two))


def _with_n(number: Number, n: int, write: Any) -> str:
    """``95%: 0.71 to 0.83, n = 120``."""
    ends = interval(number, write)
    return f"{ends}, n = {whole(n)}" if ends else f"n = {whole(n)}"


def _level_cells(metric: Metric, levels: list[tuple[str, LevelValue | None]]) -> list[Cell]:
    low, high = metric.heat
    return [
        Cell(two(cell.value), marks.heat(cell.value, low, high), f"{name}, n = {whole(cell.n)}")
        if cell
        else Cell(NONE, "qx")
        for name, cell in levels
    ]


RUNNING = {
    "cost": ("$ / 1,000", "US dollars for 1,000 judgments, of those whose cost is known"),
    "seconds": ("s / call", "Mean seconds of a call"),
    "agree": ("Agreed %", "Share of reviewed verdicts that people agree with"),
    "grade": ("Analysis", "Mean grade of its analyses by people, 1 to 5"),
    "hallucination": ("Halluc. %", "Share of reviewed analyses in which people found something that is not there"),
}


@dataclass(frozen=True, slots=True)
class Reviewed:
    """A judge's verdicts as people reviewed them, in a data set or over all."""

    judge: str
    run: int
    dataset: str
    cells: list[Cell]
    verdicts: str
    reviews: str


def reviewed(board: ReviewsBoard) -> list[Reviewed]:
    rows = []
    for row in board.rows:
        numbers = ((row.agree, percent), (row.hallucination, percent), (row.grade, two), (row.deviation, two))
        cells = [Cell(write(of.value), title=_with_n(of, of.n or 0, write)) for of, write in numbers]
        rows.append(Reviewed(row.shown, row.run, row.source_dataset, cells, whole(row.verdicts), whole(row.reviews)))
    return rows


OF_USAGE = ("cost", "seconds")  # not for everybody


def _running(figures: Running, column: str, usage: bool) -> Number | None:
    """The value in this column; None if it is unknown, or a cost that this viewer may not see."""
    if column in OF_USAGE:
        value = figures.cost if column == "cost" else figures.seconds
        return Number(value) if usage and value is not None else None
    opinions = {"agree": figures.agree, "grade": figures.grade, "hallucination": figures.hallucination}
    return opinions[column] if opinions[column].value is not None else None


def _running_cell(figures: Running, column: str, usage: bool) -> Cell:
    number = _running(figures, column, usage)
    if number is None:
        return Cell(NONE)
    write = percent if column in ("agree", "hallucination") else two
    n = figures.asked if column in OF_USAGE else figures.reviews
    return Cell(write(number.value), title=_with_n(number, n, write))
