"""The board of judges as a page: one metric with its interval, its level by level heat, the others as figures."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from judging.judgments.analyses import sees_usage
from judging.models import BASELINES, Run
from judging.protocols.in_words import settings_in_words
from leaderboard.boards.base import Board
from leaderboard.boards.judges.board import (
    ALL,
    INDIVIDUALS,
    MAJORITY,
    NOBODY,
    PEOPLE,
    REFERENCES,
    Against,
    JudgesBoard,
    MetricValue,
)
from leaderboard.boards.judges.board import JudgeRow as Row
from leaderboard.boards.judges.ranks import LevelValue
from leaderboard.boards.judges.repeats import RepeatsRow
from leaderboard.boards.judges.reviews import ComparedRow, ReviewRow
from leaderboard.boards.judges.stand_in import StandInBoard, StandInRow
from leaderboard.boards.judges.stand_in_page import standin_cell
from leaderboard.boards.judges.versions import VersionRow
from leaderboard.kinds import Kind
from leaderboard.lookups import runs_of
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import SIDED, Metric
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import JUDGED, POOL, POOLED
from leaderboard.show import marks
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.pickers import Select, pick
from leaderboard.show.provenance import run_link, verdicts_link
from leaderboard.show.table import (
    OUTSIDE,
    Chooser,
    Column,
    Sorting,
    Table,
    Write,
    axis_of,
    choose,
    columns_of,
    names,
    number_cell,
    table,
)
from leaderboard.view import Address
from stats.figures import (
    NONE,
    dollars,
    in_brackets,
    in_words,
    interval,
    number_of,
    percent,
    rank_range,
    signed,
    signed_points,
    two,
    value_or_interval,
    whole,
    whole_percent,
    with_interval,
)
from stats.ranks import Place

EACH_LABEL = "each label"
BEST_FIRST = "-value"
SORTS = ("value", "judge", "n", "coverage")


@dataclass(frozen=True, slots=True)
class JudgesPage:
    """``finding``: what the table comes to, in a sentence or two."""

    metric: str
    metric_label: str
    in_words: str
    reference: str
    finding: SafeString
    table: Table
    chooser: Chooser | None
    levels: list[str]
    counted: str
    has_floor: bool
    far_below: str  # how far from people the palest colour begins


def chosen(address: Address, kind: Kind, board: JudgesBoard) -> tuple[Metric, str]:
    """Metric and reference of the address, or their defaults."""
    reference = address.params.get("reference", "")
    metric = kind.metric(address.params.get("metric", ""), board.measured)
    return metric, reference if reference in REFERENCES else REFERENCES[0]


def reference_words(kind: Kind) -> dict[str, str]:
    return {MAJORITY: kind.reference, INDIVIDUALS: EACH_LABEL}


def definitions(board: JudgesBoard, kind: Kind) -> list[str]:
    """Those that make a difference to this board."""
    sets = [POOL.name] if data_sets(board) > 1 else []
    return [*sets, *(name for name in JUDGED if kind.pairwise and name != POOL.name)] if board.rows else []


def selects(address: Address, board: JudgesBoard, kind: Kind) -> list[Select]:
    metric, reference = chosen(address, kind, board)
    metrics = {offered.name: offered.label for offered in kind.metrics if offered.name in board.measured}
    return [
        pick("metric", "Measure", metrics, metric.name, on=metric is not kind.metric("", board.measured)),
        pick("reference", "Compared with", reference_words(kind), reference, on=reference != REFERENCES[0]),
    ]


def in_plain_words(name: str) -> str:
    """``Always the longer answer`` for a built-in judge's ``baseline-longest``; other names as they are."""
    return BASELINES.get(name.removeprefix("baseline-"), name) if name.startswith("baseline-") else name


ROW = 46  # pixels
UNTESTED = StandInBoard()
OF_PEOPLE = "each label against the majority of the others: of single labels there is no list"
FEWEST_ON_LEVEL = 30  # labels
BELOW_PEOPLE = (-0.15, -0.08, -0.03, 0.0)  # between the five colours of a level: points below people there


def build_judges_page(
    address: Address,
    board: JudgesBoard,
    *,
    kind: Kind,
    biases: Mapping[int, list[Chip]] = MappingProxyType({}),
    tested: StandInBoard = UNTESTED,
) -> JudgesPage:
    """Everything that the table shows. ``biases`` are the marks of each run; ``tested``: who may stand in."""
    metric, reference = chosen(address, kind, board)
    sorting = Sorting.of(address, SORTS, usual=BEST_FIRST)
    shown = _Shown.of(address, board, kind, sorting, tested)
    columns, chooser = choose(_columns(shown, biases), address, sorting.column)
    rows = [*([PEOPLE] if shown.with_people else []), *shown.order]
    of_metric = [rows[metric.name] for rows in shown.judges.values() if metric.name in rows]
    most = max((row.n for row in of_metric), default=0)  # items that the metric rests on
    return JudgesPage(
        metric=metric.name,
        metric_label=metric.label,
        in_words=metric.words + (over_data_sets(address, board) if metric.compute else ""),
        reference=reference,
        finding=_finding(shown),
        table=table(
            columns,
            rows,
            sorting=sorting,
            row_css=lambda run: OUTSIDE.get(shown.outside[run], "") if run else "base",
            label="Board of judges",
            caption=f"{metric.label} of every judge against the {reference_words(kind)[reference]}",
            css="lb lines",
        ),
        chooser=chooser,
        levels=shown.levels,
        counted=(
            f"{number_of(most, 'pair')}: people chose a side"
            if metric is SIDED
            else f"{number_of(most, 'item')} at most"
        ),
        has_floor="baseline" in shown.outside.values(),
        far_below="15 points" if metric.is_share else "0.15",
    )


BETTER = "The 95% range of this judge's rank"


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the table shows: the judges' rows by run and metric, in their ``order``, and why each is ``outside`` the
    ranking. The run ``PEOPLE`` stands for one more person.
    """

    address: Address
    board: JudgesBoard
    kind: Kind
    metric: Metric
    against: Against
    judges: dict[int, dict[str, Row]]
    runs: dict[int, Run]
    tested: dict[int, StandInRow]
    people: int  # whom the test left out in turn
    order: list[int]
    outside: dict[int, str]
    levels: list[str]

    @classmethod
    def of(cls, address: Address, board: JudgesBoard, kind: Kind, sorting: Sorting, tested: StandInBoard) -> "_Shown":
        metric, reference = chosen(address, kind, board)
        judges, against = board.overall(reference), board.against[reference]
        runs = runs_of(judges)
        standing = against.standing.get(metric.name, {})
        order = _ordered(sorting, judges, runs, metric, standing)
        return cls(
            address,
            board,
            kind,
            metric,
            against,
            judges,
            runs,
            {row.run: row for row in tested.rows},
            tested.people,
            order,
            {run: _outside(runs[run], judges[run].get(metric.name), standing) for run in order},
            _level_names(against.cells.get(kind.metrics[0].name, {}), board.cell_order),
        )

    @property
    def with_people(self) -> bool:
        return self.metric.name in self.against.ceiling

    @property
    def person(self) -> Number:
        return self.of_people(self.metric.name).number

    def of_people(self, metric: str) -> MetricValue:
        return self.against.ceiling.get(metric, NOBODY)

    def value(self, run: int) -> Number:
        if run == PEOPLE:
            return self.person
        row = self.judges[run].get(self.metric.name)
        return row.value if row else UNKNOWN

    def pooled(self, run: int) -> Number:
        """The number of all items as one, beside the mean over data sets."""
        row = self.judges[run].get(self.metric.name) if run != PEOPLE else None
        return row.pooled if row else UNKNOWN

    def rows_of(self, run: int, *, metric: str = "", level: str = "") -> str:
        """Where a judge's verdicts are; of people's labels there is no list."""
        if run == PEOPLE:
            return ""
        return verdicts_link(self.address, self.runs[run], metric=metric or self.metric.name, level=level)

    def name(self, run: int) -> str:
        if run == PEOPLE:
            return "One more person"
        judge = self.runs[run].judge
        return judge.titled if judge.is_baseline else judge.name

    def name_cell(self, run: int) -> Cell:
        if run == PEOPLE:
            return Cell(self.name(run), title=f"each of {self.board.annotators} people against the others")
        judge = self.runs[run].judge
        chips = [Chip("simulated")] if judge.simulated else []
        chips += [Chip("provisional", "warn")] if self.outside[run] == "provisional" else []
        return Cell(
            self.name(run),
            f"run {run}",
            link=reverse("leaderboard:judge-detail", args=[judge.pk]),
            chips=tuple(chips),
            title=judge.name,
            small_title=_settings(self.runs[run]),
            small_link=run_link(self.address.viewer, self.runs[run]),
        )

    def stand_in(self, run: int) -> Cell:
        """Whether the judge may stand in for a person, and of how many people that is true."""
        if run == PEOPLE:
            return Cell("people, to compare")
        if run in self.tested:
            return standin_cell(self.tested[run], self.runs[run])
        return Cell("needs no skill" if self.outside[run] == "baseline" else NONE)

    def rank(self, run: int) -> Cell:
        place = self.against.standing.get(self.metric.name, {}).get(run)
        if place is None:
            return Cell("" if run == PEOPLE or self.outside[run] == "baseline" else NONE)
        return Cell(rank_range(place.rank, place.rank_low, place.rank_high))

    def on_level(self, run: int, level: str) -> LevelValue | None:
        return self.against.cells.get(self.metric.name, {}).get(run, {}).get(level)

    def level(self, run: int, level: str) -> Cell:
        found, people = self.on_level(run, level), self.on_level(PEOPLE, level)
        if found is None:
            return Cell(NONE, css="qx", title="no verdict")
        title = f"{level}, n = {whole(found.n)}" + (f", {OF_PEOPLE}" if run == PEOPLE else "")
        if self.with_people and (people is None or people.n < FEWEST_ON_LEVEL):
            return Cell("few", css="qx", title=f"{title}: fewer than {FEWEST_ON_LEVEL} labels to compare with")
        share = self.metric.is_share and found.value is not None
        text = whole_percent(found.value) if share else two(found.value)
        plain = run == PEOPLE or self.outside[run] == "baseline"
        css = "" if plain else self.shade(found.value, people.value if people else None)
        return Cell(text, css=css, title=title, link=self.rows_of(run, level=level))

    def shade(self, value: float | None, person: float | None) -> str:
        """The colour of a judge's level: by its distance to people there, or by the metric's own range without them."""
        if value is None or person is None:
            return marks.heat(value, *self.metric.heat)
        return marks.shade(person - value if self.metric.lower_is_better else value - person, BELOW_PEOPLE)


def _columns(shown: _Shown, biases: Mapping[int, list[Chip]]) -> list[Column[int]]:
    settings_differ = len({run.judge_id for run in shown.runs.values()}) < len(shown.runs)

    def bias(run: int) -> Cell:
        chips = tuple(biases.get(run, ()))
        return Cell(chips=chips) if chips else Cell(NONE, css="dim3")

    def settings(run: int) -> Cell:
        words = _settings(shown.runs[run]) if run else ""
        return Cell(words or NONE, title=words)

    return [
        Column(
            "May stand in",
            shown.stand_in,
            css="maystand",
            under=f"for one of {shown.people} people",
            title="The alternative annotator test, see below",
            shown=bool(shown.tested),
        ),
        names("Judge", shown.name_cell, sort="judge"),
        _metric_column(shown),
        *(_level_column(shown, level) for level in shown.levels),
        *_running(shown.address, shown.board, shown.runs),
        Column("Rank", shown.rank, key="place", title=BETTER, usual=not shown.kind.stand_in),
        *_beside(shown),
        *_counts(shown),
        Column(
            "Bias",
            bias,
            css="",
            key="bias",
            title="Biases that are notable or strong beside people's",
            usual=not shown.levels,
            shown=any(biases.get(run) for run in shown.order),
        ),
        Column(
            "Settings",
            settings,
            css="small dim clip",
            head="",
            key="settings",
            usual=settings_differ and not shown.levels,
        ),
    ]


def _level_column(shown: _Shown, level: str) -> Column[int]:
    there = [shown.on_level(run, level) for run in shown.order]
    items = max((found.n for found in there if found), default=0)
    return Column(
        level or "No level",
        lambda run: shown.level(run, level),
        kind="heat",
        css="c level",
        key="levels",
        choice=f"{shown.metric.label} on each {shown.kind.part_word}",
        under=number_of(items, "item"),
        title=f"{shown.metric.label} on {level or 'samples without a level'}",
    )


def _finding(shown: _Shown) -> SafeString:
    """``Three of nine judges may stand in for one of the five people. They agree on 82.9 to 86.0% ...``."""
    ranked = [run for run in shown.order if shown.outside[run] != "baseline" and shown.value(run).value is not None]
    if not shown.metric.is_share or not ranked:
        return SafeString()
    best = max(ranked, key=lambda run: shown.value(run).value or 0.0)
    on = "pairs where people chose a side" if shown.metric is SIDED else "items"
    counted = shown.judges[best][shown.metric.name].n
    items = f"{whole(counted)} {on}"
    if counted < PROVISIONAL:
        return format_html("{} are too few to say who may stand in; it takes {}.", items, PROVISIONAL)
    where = _where(shown, items)
    if all(row.passes is None for row in shown.tested.values()):
        value = percent(shown.value(best).value)
        return format_html("{} agrees with people on <b>{}%</b> {}.", shown.runs[best].judge, value, where)
    return _who_may_stand_in(shown, ranked, best, where)


def _where(shown: _Shown, items: str) -> SafeString:
    """``of 1,200 items; one more person does on 80.1%``."""
    sets, pooled = data_sets(shown.board), shown.address.params.get(POOL.name) == POOLED
    where = f"of {items}" if sets < 2 or pooled else f"in the mean over {sets} data sets, {items}"
    if shown.person.value is None:
        return format_html("{}", where)
    return format_html("{}; one more person does on <b>{}%</b>", where, percent(shown.person.value))


def _who_may_stand_in(shown: _Shown, ranked: list[int], best: int, where: SafeString) -> SafeString:
    passed = [run for run in ranked if run in shown.tested and shown.tested[run].passes]
    stand = format_html(
        "{} {} for one of {} people.",
        _of_judges(len(passed), len(ranked)),
        format_html("<b>{}</b>", "may stand in") if passed else "is shown to stand in",
        in_words(shown.board.annotators),
    )
    values = sorted(shown.value(run).value or 0.0 for run in passed or [best])
    span = percent(values[0]) if len(values) == 1 else f"{percent(values[0])} to {percent(values[-1])}"
    if passed:
        who, ties = "They agree" if len(passed) > 1 else "It agrees", SafeString()
    else:
        who, ties = f"The best, {shown.runs[best].judge}, agrees", _with_ties(shown, best)
    return format_html("{} {} with people on <b>{}%</b> {}.{}", stand, who, span, where, ties)


def _of_judges(passed: int, judges: int) -> str:
    """``Three of four judges``, ``Neither of two judges``."""
    if judges == 1:
        return "The judge" if passed else "No judge"
    none = "Neither" if judges == 2 else "None"
    return f"{in_words(passed).capitalize() if passed else none} of {in_words(judges)} judges"


def _with_ties(shown: _Shown, run: int) -> SafeString:
    """Why a judge that chooses people's side as often as they do may still not stand in: it sees fewer ties."""
    counted = shown.kind.metrics[0].name
    row, of_people = shown.judges[run].get(counted), shown.of_people(counted).number
    best, person = shown.value(run).value, shown.person.value
    if shown.metric is not SIDED or not (row and of_people.n) or best is None or person is None or best < person:
        return SafeString()
    return format_html(
        " With ties counted, it has {}% and people {}%.", percent(row.value.value), percent(of_people.value)
    )


def _outside(run: Run, row: Row | None, standing: Mapping[int, Place]) -> str:
    """Why the judge is not ranked: it needs no skill, or its number is over too few items; empty where it is."""
    if run.judge.is_baseline:
        return "baseline"
    if run.pk in standing or row is None or row.value.value is None:
        return ""
    return "provisional" if row.n < PROVISIONAL else ""


def _settings(run: Run) -> str:
    return "" if run.judge.is_baseline else settings_in_words(run.protocol, run.settings)


def _metric_column(shown: _Shown) -> Column[int]:
    """The metric that ranks, on an axis with the band of one more person."""
    metric, person = shown.metric, shown.person
    scale = axis_of([PEOPLE, *shown.order], shown.value, width=marks.COLUMN, unit=metric.unit, row=ROW)

    def cell(run: int) -> Cell:
        value = shown.value(run)
        bar = marks.interval_bar(
            scale,
            *value.ends,
            write=shown.metric.write,
            provisional=shown.outside.get(run) == "provisional",
            ceiling=person.value,
            band=(person.low, person.high),
        )
        said = [interval(value, shown.metric.write), "" if run else OF_PEOPLE]
        title = ", ".join(filter(None, said))
        pooled = shown.pooled(run)
        beside = f"pooled {with_interval(pooled, shown.metric.write)}" if value.low is None and pooled.value else ""
        return Cell(value_or_interval(value, shown.metric.write), beside, title=title, link=shown.rows_of(run), bar=bar)

    axis = marks.axis_head(scale, metric.tick)
    label = f"{metric.label} %" if metric.is_share else metric.label
    return Column(label, cell, kind="interval", css="plotted", sort="value", title=metric.words, axis=axis)


def _beside(shown: _Shown) -> list[Column[int]]:
    """The other metrics; a click on a head ranks by that one."""
    measured = set[str]().union(*shown.judges.values())

    def column(extra: Metric) -> Column[int]:
        def cell(run: int) -> Cell:
            found = shown.of_people(extra.name) if run == PEOPLE else None
            row = shown.judges[run].get(extra.name) if found is None else None
            number, n = (found.number, found.n) if found else (row.value, row.n) if row else (UNKNOWN, 0)
            if number.value is None:
                return Cell(NONE, title="" if run else OF_PEOPLE)
            return number_cell(number, extra.write, n, link=shown.rows_of(run, metric=extra.name))

        link = shown.address.link(metric=extra.name, sort=None)
        usual = extra.always_shown and not shown.kind.leading
        return Column(extra.label, cell, title=extra.words, key=extra.name, link=link, usual=usual)

    return [column(extra) for extra in shown.kind.metrics if extra is not shown.metric and extra.name in measured]


def _counts(shown: _Shown) -> list[Column[int]]:
    def n(run: int) -> Cell:
        if run == PEOPLE:
            return Cell(whole(shown.of_people(shown.metric.name).n), title=OF_PEOPLE)
        row = shown.judges[run].get(shown.metric.name)
        return Cell(whole(row.n if row else 0))

    def coverage(run: int) -> Cell:
        row = shown.judges[run].get(shown.metric.name) if run else None
        return Cell(
            percent(row.coverage if row else None), link=shown.rows_of(run, metric=ALL)
        )  # of every labelled item

    share, words = "Share of people's items that the judge has a verdict on", "Verdicts compared"
    usual = not shown.levels
    return [
        Column("n", n, css="n dim", opens=shown.rows_of, sort="n", title=words, choice=f"{words}, n", usual=usual),
        Column("Coverage %", coverage, sort="coverage", title=share, usual=False),
    ]


def _level_names(cells: dict[int, dict[str, LevelValue]], order: list[str]) -> list[str]:
    """Data sets or levels that some judge has a verdict in, in the board's order; none where there is one only."""
    present: set[str] = set()
    for of_judge in cells.values():
        present.update(name for name, cell in of_judge.items() if cell.n)
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


def data_sets(board: JudgesBoard) -> int:
    return len({row.source_dataset for row in board.rows} - {ALL})


def over_data_sets(address: Address, board: JudgesBoard) -> str:
    """What a number over all is where there are several source data sets."""
    sets = data_sets(board)
    pooled = address.params.get(POOL.name) == POOLED
    words = f", pooled over {sets} data sets" if pooled else f", the mean over {sets} data sets, each counting alike"
    return words if sets > 1 else ""


# ---- what judges cost, and what people say of their verdicts ----


OF_USAGE = ("cost", "seconds")  # not for everybody
RUNNING: dict[str, tuple[str, Write, str]] = {
    "cost": ("Price", dollars, "US dollars for 1,000 verdicts, of those whose cost is known"),
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

        def cell(run: int) -> Cell:
            """It leads to the run, for those who may open it."""
            link = run_link(address.viewer, runs[run]) if run in numbers else ""
            return number_cell(numbers.get(run), write, link=link)

        return Column(label, cell, key=name, title=title, usual=name == "cost", shown=bool(numbers))

    return [column(name) for name in RUNNING]


def repeated(board: Board[RepeatsRow], kind: Kind) -> Table | None:
    """How many verdicts of each judge are the same, as shares of its items."""
    if not board.rows:
        return None
    by_run: dict[int, dict[int, RepeatsRow]] = {}
    for row in board.rows:
        by_run.setdefault(row.run, {})[row.alike] = row
    most = max(row.repeats for row in board.rows)

    def judge(of_run: dict[int, RepeatsRow]) -> Cell:
        row = of_run[1]
        return Cell(row.shown, f"run {row.run}, {row.repeats} times")

    def share(alike: int) -> Column[dict[int, RepeatsRow]]:
        def cell(of_run: dict[int, RepeatsRow]) -> Cell:
            if alike not in of_run:
                return Cell("")
            row = of_run[alike]
            return number_cell(row.share, percent, row.n, css=marks.heat(row.share.value, 0.0, 1.0))

        return Column(str(alike), cell, kind="heat", css="c", title=f"Share of items on which {alike} are the same, %")

    return table(
        [names("Judge", judge), *(share(alike) for alike in range(1, most + 1))],
        by_run.values(),
        label="How many verdicts are the same",
        caption="Share of items, in %, on which so many of a judge's verdicts are the same",
        css="cmpt",
        fill=True,
    )


def prompt_versions(board: Board[VersionRow], kind: Kind) -> Table | None:
    """Each version of a judge's prompt beside the one before it, by the first measure against people."""
    first: dict[tuple[str, str, int], VersionRow] = {}
    for row in board.rows:
        first.setdefault((row.judge, row.prompt, row.version), row)
    if not first:
        return None

    def judge(row: VersionRow) -> Cell:
        return Cell(row.shown, f"{row.prompt}, version {row.version}, run {row.run}")

    unit = " %" if kind.pairwise else ""
    write, write_change = (percent, signed_points) if kind.pairwise else (two, signed)

    def change(row: VersionRow) -> Cell:
        worth = (row.difference.value or 0.0) * (-1 if "lower is better" in row.measure else 1)
        css = ("good" if worth > 0 else "bad") if row.significant else ""
        p = "" if row.p is None else f"p = {row.p:.2g}"
        words = [in_brackets(row.difference, write_change), f"version {row.version} less {row.before}", p]
        return Cell(write_change(row.difference.value), ", ".join(filter(None, words)), css=css, title=row.measure)

    def share(row: VersionRow, value: float | None) -> Cell:
        return Cell(write(value), f"n = {row.n:,}", title=row.measure)

    return table(
        [
            names("Judge", judge),
            Column(f"Before{unit}", lambda row: share(row, row.value_before)),
            Column(f"Now{unit}", lambda row: share(row, row.value)),
            Column("Difference", change, title="With its 95% interval, on the items that both versions judged"),
            Column("Spent", lambda row: dollars(row.spent)),
        ],
        first.values(),
        label="Versions of prompts",
        caption="Each version of a judge's prompt beside the one before it, against people on the same items",
        css="cmpt",
        fill=True,
    )


def reviewed(board: Board[ReviewRow], kind: Kind) -> Table | None:
    """Each judge's verdicts as people reviewed them, in a data set or over all."""
    if not board.rows:
        return None

    def judge(row: ReviewRow) -> Cell:
        of_set = "" if row.source_dataset == ALL else f", {row.source_dataset}"
        return Cell(row.shown, f"run {row.run}{of_set}")

    return table(
        [
            names("Judge", judge),
            *columns_of(ReviewRow),
            Column("Reviews", lambda row: Cell(whole(row.reviews), title=f"Of {whole(row.verdicts)} verdicts")),
        ],
        board.rows,
        label="Reviews of verdicts",
        caption="Verdicts as people reviewed them",
        css="cmpt reviews",
    )


def compared(board: Board[ComparedRow], kind: Kind) -> Table | None:
    """Every two judges whose analyses people compared."""
    if not board.rows:
        return None

    def judges(row: ComparedRow) -> Cell:
        a, b = (
            f"{name} (simulated)" if simulated else name
            for name, simulated in ((row.a, row.a_simulated), (row.b, row.b_simulated))
        )
        return Cell(f"{a} against {b}", f"runs {row.a_run} and {row.b_run}")

    return table(
        [
            names("Judges", judges),
            *columns_of(ComparedRow),
            Column("Items", lambda row: Cell(whole(row.items), title=f"{whole(row.labels)} labels")),
        ],
        board.rows,
        label="Two judges' analyses compared",
        caption="Which of two judges' analyses people prefer",
        css="cmpt reviews",
    )
