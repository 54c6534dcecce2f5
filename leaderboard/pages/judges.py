"""The board of judges as a page: one metric with its interval, its level by level heat, the others as figures."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from django.urls import reverse

from judging.judgments.analyses import sees_usage
from judging.models import Run
from leaderboard.boards.judge_board import ALL, INDIVIDUALS, MAJORITY, PEOPLE, REFERENCES, Against, JudgesBoard
from leaderboard.boards.judge_board import JudgeRow as Row
from leaderboard.boards.judge_ranks import LevelValue
from leaderboard.boards.reviews import ReviewRow, ReviewsBoard
from leaderboard.definitions import JUDGED, POOL, POOLED
from leaderboard.figures import NONE, number_of, percent, rank_range, tick, two, value_or_interval, whole
from leaderboard.kinds import Kind
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import Metric
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select, settings_in_words
from leaderboard.pages.marks import Cell, Chip
from leaderboard.pages.provenance import Fact, data_facts, rule_fact, run_link, verdicts_link
from leaderboard.pages.table import Column, Sorting, Table, Write, figure, names, number_cell, row_classes, table, tints
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import Scope
from stats.ranks import Place

EACH_LABEL = "each label"
BEST_FIRST = "-value"
SORTS = ("value", "judge", "n", "coverage")


@dataclass(frozen=True, slots=True)
class JudgesPage:
    """``heat``: of people and of each judge the coloured cells, one for each of the ``levels``."""

    metric: str
    metric_label: str
    in_words: str
    reference: str
    table: Table
    levels: list[str]
    heat: list[tuple[str, list[Cell]]]
    heat_low: str
    heat_high: str
    has_floor: bool
    has_biases: bool


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


def build_judges_page(
    address: Address, board: JudgesBoard, *, kind: Kind, biases: Mapping[int, list[Chip]] = MappingProxyType({})
) -> JudgesPage:
    """Everything that the table shows. ``biases`` are the marks of each run."""
    metric, reference = chosen(address, kind)
    judges = board.overall(reference)
    runs = Run.objects.filter(pk__in=judges).select_related("judge").in_bulk()
    against = board.against[reference]
    standing, cells = against.standing.get(metric.name, {}), against.cells.get(metric.name, {})
    levels = _level_names(against.cells.get(kind.metrics[0].name, {}), board.cell_order)
    sorting = Sorting.of(address, SORTS, usual=BEST_FIRST)
    order = _ordered(sorting, judges, runs, metric, standing)
    tinted = tints((run, standing[run].tier) for run in order if run in standing) if sorting.is_usual else {}
    outside = {run: "baseline" if runs[run].judge.is_baseline else "" for run in order}
    outside |= {
        run: "provisional" for run in order if _is_provisional(runs[run], judges[run].get(metric.name), standing)
    }
    classes = row_classes(order, tinted, outside)
    people = [PEOPLE] if metric.name in against.ceiling else []
    low, high = metric.heat

    def name(run: int) -> str:
        return runs[run].judge.name if run in runs else "Person against person"

    def heat_cell(run: int, level: str) -> Cell:
        found = cells.get(run, {}).get(level)
        if found is None:
            return Cell(NONE, css="qx")
        title = f"{level}, n = {whole(found.n)}"
        return Cell(two(found.value), css=marks.heat(found.value, low, high), title=title)

    def at_level(level: str) -> Column[int]:
        return Column(
            level or "No level",
            lambda run: heat_cell(run, level),
            kind="heat",
            css="c hd",
            soft=True,
            title=f"{metric.label} on {level or 'samples without a level'}",
        )

    def name_cell(run: int) -> Cell:
        if run == PEOPLE:
            return Cell(name(run), chips=(Chip("ceiling"),))
        judge, look = runs[run].judge, outside[run]
        chips = [Chip("simulated")] if judge.simulated else []
        chips += [Chip("floor")] if look == "baseline" else [Chip(look, "warn")] if look else []
        return Cell(
            name(run),
            f"run {run}",
            link=reverse("leaderboard:judge-detail", args=[judge.pk]),
            chips=tuple(chips),
            small_title=_settings(runs[run]),
            small_link=run_link(address.viewer, runs[run]),
        )

    settings_differ = len({run.judge_id for run in runs.values()}) < len(runs)
    has_biases = any(biases.get(run) for run in order)
    return JudgesPage(
        metric=metric.name,
        metric_label=metric.label,
        in_words=metric.words + (over_data_sets(address, board) if metric.compute else ""),
        reference=reference,
        table=table(
            [
                Column("Compare", lambda run: _tick(run, name(run)), kind="tick", css="tick", unseen=True),
                Column("Rank", lambda run: _rank(run, standing, outside), kind="rank", css="n rankh", title=BETTER),
                names("Judge", name_cell, sort="judge"),
                _metric_column(address, board, judges, runs, metric, against, outside),
                *(at_level(level) for level in levels),
                *_beside(address, judges, runs, kind, metric, against),
                *_counts(address, judges, runs, metric, against),
                Column(
                    "Bias",
                    lambda run: Cell(chips=tuple(biases.get(run, ()))) if biases.get(run) else Cell(NONE, css="dim3"),
                    css="",
                    title="Biases whose 95% interval excludes 0",
                    shown=has_biases,
                ),
                *_running(address, board, runs),
                Column(
                    "Settings",
                    lambda run: Cell(_settings(runs[run]) or NONE, title=_settings(runs[run])) if run else NONE,
                    css="small dim sets",
                    head="",
                    shown=settings_differ,
                ),
            ],
            [*people, *order],
            sorting=sorting,
            row_css=lambda run: classes[run] if run else "base gend",
            label="Board of judges",
            caption=f"{metric.label} of every judge against the {reference_words(kind)[reference]}",
            css="jt judgeboard",
        ),
        levels=levels,
        heat=[(name(run), [heat_cell(run, level) for level in levels]) for run in [*people, *order] if levels],
        heat_low=two(low),
        heat_high=two(high),
        has_biases=has_biases,
        has_floor="baseline" in outside.values(),
    )


BETTER = "1 + the number of judges that are significantly better; the 95% range of this judge by itself"


def _is_provisional(run: Run, row: Row | None, standing: Mapping[int, Place]) -> bool:
    """Whether the judge's number is over too few items to rank it."""
    if run.judge.is_baseline or run.pk in standing or row is None:
        return False
    return row.value.value is not None and row.n < PROVISIONAL


def _settings(run: Run) -> str:
    return "" if run.judge.is_baseline else settings_in_words(run.protocol, run.settings)


def _tick(run: int, name: str) -> Cell:
    """What the page of two judges calls this one."""
    return Cell(f"run-{run}", title=f"{name}, run {run}") if run else Cell()


def _rank(run: int, standing: Mapping[int, Place], outside: Mapping[int, str]) -> Cell:
    place = standing.get(run)
    if place is None:
        return Cell("" if run == PEOPLE or outside[run] == "baseline" else NONE)
    return Cell(str(place.tier), rank_range(place.tier, place.rank_low, place.rank_high))


def _metric_column(
    address: Address,
    board: JudgesBoard,
    judges: dict[int, dict[str, Row]],
    runs: dict[int, Run],
    metric: Metric,
    against: Against,
    outside: Mapping[int, str],
) -> Column[int]:
    """The metric that ranks, on an axis that shows how well people do against people."""
    ceiling = against.ceiling.get(metric.name)
    of_people = ceiling.number if ceiling else UNKNOWN
    values = {run: rows[metric.name].value for run, rows in judges.items() if metric.name in rows}
    scale = marks.axis([end for value in [*values.values(), of_people] for end in value.ends])

    def cell(run: int) -> Cell:
        value = values.get(run, UNKNOWN) if run else of_people
        provisional = outside.get(run) == "provisional"
        bar = marks.interval_bar(scale, *value.ends, provisional=provisional, ceiling=of_people.value)
        return Cell(value_or_interval(value, two), link=verdicts_link(address, runs[run]) if run else "", bar=bar)

    axis = marks.axis_head(scale, tick)
    return Column(metric.label, cell, kind="interval", css="", sort="value", title=metric.words, axis=axis)


def _beside(
    address: Address,
    judges: dict[int, dict[str, Row]],
    runs: dict[int, Run],
    kind: Kind,
    metric: Metric,
    against: Against,
) -> list[Column[int]]:
    """The metrics that always stand beside the one that ranks; a click on a head ranks by that one."""
    measured = {name for rows in judges.values() for name in rows}

    def column(extra: Metric) -> Column[int]:
        def cell(run: int) -> Cell:
            if run == PEOPLE:
                of_people = against.ceiling.get(extra.name)
                return number_cell(of_people.number, n=of_people.n) if of_people else Cell(NONE)
            row = judges[run].get(extra.name)
            if row is None or row.value.value is None:
                return Cell(NONE)
            return number_cell(row.value, n=row.n, link=verdicts_link(address, runs[run]))

        return Column(
            extra.label, cell, css="n two", title=extra.words, link=address.link(metric=extra.name, sort=None)
        )

    return [
        column(extra) for extra in kind.metrics if extra.always_shown and extra is not metric and extra.name in measured
    ]


def _counts(
    address: Address, judges: dict[int, dict[str, Row]], runs: dict[int, Run], metric: Metric, against: Against
) -> list[Column[int]]:
    def n(run: int) -> Cell:
        if run == PEOPLE:
            return Cell(whole(against.ceiling[metric.name].n))
        row = judges[run].get(metric.name)
        return Cell(whole(row.n if row else 0), link=verdicts_link(address, runs[run]))

    def coverage(run: int) -> str:
        row = judges[run].get(metric.name) if run else None
        return percent(row.coverage if row else None)

    share = "Share of people's items that the judge has a verdict on"
    return [
        Column("n", n, sort="n", title="Pairs of verdicts compared"),
        Column("Coverage %", coverage, css="n roomy", sort="coverage", title=share),
    ]


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
    """What the columns are: terms with their explanations. ``ceiling``: how it is computed, in words."""
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


# ---- what judges cost, and what people say of their verdicts ----


OF_USAGE = ("cost", "seconds")  # not for everybody
RUNNING: dict[str, tuple[str, Write, str]] = {
    "cost": ("$ / 1,000", two, "US dollars for 1,000 judgments, of those whose cost is known"),
    "seconds": ("s / call", two, "Mean seconds of a call"),
    "agree": ("Agreed %", percent, "Share of reviewed verdicts that people agree with"),
    "grade": ("Analysis", two, "Mean grade of its analyses by people, 1 to 5"),
    "hallucination": (
        "Halluc. %",
        percent,
        "Share of reviewed analyses in which people found something that is not there",
    ),
}


def _running(address: Address, board: JudgesBoard, runs: dict[int, Run]) -> list[Column[int]]:
    """The columns that some judge has a number in, without costs that this viewer may not see."""

    def column(name: str) -> Column[int]:
        label, write, title = RUNNING[name]
        numbers = {}
        for pk, figures in board.running.items():
            value = getattr(figures, name)
            if name in OF_USAGE:
                value = (
                    Number(value, n=figures.asked) if pk in runs and sees_usage(runs[pk], address.viewer) else UNKNOWN
                )
            else:
                value = replace(value, n=figures.reviews)
            if pk in runs and value.value is not None:
                numbers[pk] = value
        return figure(label, numbers.get, write, css="n two more", title=title, shown=bool(numbers))

    return [column(name) for name in RUNNING]


def reviewed(board: ReviewsBoard) -> Table | None:
    """Each judge's verdicts as people reviewed them, in a data set or over all."""
    if not board.rows:
        return None

    def judge(row: ReviewRow) -> Cell:
        of_set = "" if row.source_dataset == ALL else f", {row.source_dataset}"
        return Cell(row.shown, f"run {row.run}{of_set}")

    return table(
        [
            names("Judge", judge),
            figure(
                "Agreed %",
                lambda row: row.agree,
                percent,
                title="Share of verdicts that most of exactly three reviews agree with",
            ),
            figure(
                "Halluc. %",
                lambda row: row.hallucination,
                percent,
                title="Share of analyses in which most of exactly three reviews found something that is not there",
            ),
            figure("Grade", lambda row: row.grade, title="Mean grade of analyses, 1 to 5"),
            figure(
                "Deviation",
                lambda row: row.deviation,
                title="Mean absolute deviation of the grades of one sample's verdicts from their mean",
            ),
            Column("Reviews", lambda row: Cell(whole(row.reviews), title=f"Of {whole(row.verdicts)} verdicts")),
        ],
        board.rows,
        label="Reviews of verdicts",
        caption="Verdicts as people reviewed them",
        css="cmpt reviews",
        tall=False,
    )
