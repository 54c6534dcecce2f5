"""Rows of the board of judges: one judge, or people against people as the ceiling."""

from dataclasses import dataclass, field

from django.utils.safestring import SafeString

from judging.models import Judge, Run
from leaderboard.boards.base import Cell as Reckoned
from leaderboard.boards.base import Row
from leaderboard.figures import NONE, percent, span, two, whole
from leaderboard.methods import PROVISIONAL
from leaderboard.metrics import Metric
from leaderboard.pages import marks
from leaderboard.pages.address import Address, settings_in_words
from leaderboard.pages.bias import Chip
from leaderboard.pages.provenance import run_link, verdicts_link
from stats.means import Place


@dataclass(frozen=True, slots=True)
class Cell:
    text: str
    css: str = ""
    title: str = ""
    link: str = ""


@dataclass(frozen=True, slots=True)
class JudgeRow:
    name: str
    kind: str  # "", "baseline", "ceiling" or "provisional"
    chip: str
    settings: str
    run: str
    run_link: str
    link: str
    rank: str
    ranks: str
    tinted: bool
    last_of_tier: bool
    value: str
    bar: SafeString
    beside: list[Cell]
    levels: list[Cell]
    n: str
    coverage: str
    running: list[Cell] = field(default_factory=list)
    biases: list[Chip] = field(default_factory=list)
    key: str = ""  # what the page of two judges calls it


def _value(numbers: Row | None) -> str:
    return NONE if not numbers else two(numbers["value"])


def _title(numbers: Row | None) -> str:
    if not numbers or numbers["value"] is None:
        return ""
    ends = "" if numbers["value_low"] is None else f"95%: {two(numbers['value_low'])} to {two(numbers['value_high'])}, "
    return f"{ends}n = {whole(numbers['n'])}"


def judge_row(
    address: Address,
    run: Run,
    numbers: dict[str, Row],
    *,
    metric: Metric,
    standing: Place | None,
    beside: list[Metric],
    levels: list[tuple[str, Reckoned | None]],
    scale: marks.Axis,
    ceiling: float | None,
    tinted: bool,
    last: bool,
    running: list[Cell],
    biases: list[Chip],
) -> JudgeRow:
    main = numbers.get(metric.name) or {"value": None, "value_low": None, "value_high": None, "n": 0, "coverage": None}
    judge: Judge = run.judge
    few = not judge.is_baseline and standing is None and main["value"] is not None and main["n"] < PROVISIONAL
    kind = "baseline" if judge.is_baseline else "provisional" if few else ""
    return JudgeRow(
        name=judge.name,
        kind=kind,
        chip="floor" if judge.is_baseline else "provisional" if few else "",
        settings=settings_in_words(run.protocol, run.settings) if not judge.is_baseline else "",
        run=str(run.pk),
        run_link=run_link(address.viewer, run),
        link=verdicts_link(address, run),
        rank="" if judge.is_baseline else NONE if standing is None else str(standing.tier),
        ranks="" if standing is None else span(standing.rank_low, standing.rank_high),
        tinted=tinted,
        last_of_tier=last,
        value=_value(main),
        bar=marks.interval_bar(
            scale, main["value"], main["value_low"], main["value_high"], provisional=few, ceiling=ceiling
        ),
        beside=[Cell(_value(numbers.get(one.name)), title=_title(numbers.get(one.name))) for one in beside],
        levels=_level_cells(metric, levels),
        n=whole(main["n"]),
        coverage=NONE if main["coverage"] is None else percent(main["coverage"]),
        running=running,
        biases=biases,
        key=f"run-{run.pk}",
    )


RUNNING = {
    "cost": ("$ / 1,000", "US dollars for 1,000 judgments, of those whose cost is known"),
    "seconds": ("s / call", "Mean seconds of a call"),
    "agree": ("Agreed %", "Share of reviewed verdicts that people agree with"),
    "grade": ("Analysis", "Mean grade of its analyses by people, 1 to 5"),
    "hallucination": ("Halluc. %", "Share of reviewed analyses in which people found something that is not there"),
}


def running_cell(numbers: Row, name: str) -> Cell:
    value = numbers.get(name)
    if value is None:
        return Cell(NONE)
    write = percent if name in ("agree", "hallucination") else two
    low, high = numbers.get(f"{name}_low"), numbers.get(f"{name}_high")
    ends = "" if low is None else f"95%: {write(low)} to {write(high)}, "
    n = numbers.get("reviews" if name in ("agree", "grade", "hallucination") else "asked", 0)
    return Cell(write(value), title=f"{ends}n = {whole(n)}")


def _level_cells(metric: Metric, levels: list[tuple[str, Reckoned | None]]) -> list[Cell]:
    low, high = metric.heat
    return [
        Cell(two(cell.value), marks.heat(cell.value, low, high), f"{name}, n = {whole(cell.n)}")
        if cell
        else Cell(NONE, "qx")
        for name, cell in levels
    ]


def ceiling_row(
    ceiling: dict[str, Row],
    metric: Metric,
    beside: list[Metric],
    levels: list[tuple[str, Reckoned | None]],
    scale: marks.Axis,
) -> JudgeRow:
    main = ceiling[metric.name]
    return JudgeRow(
        name="Person against person",
        kind="ceiling",
        chip="ceiling",
        settings="",
        run="",
        run_link="",
        link="",
        rank="",
        ranks="",
        tinted=False,
        last_of_tier=True,
        value=_value(main),
        bar=marks.interval_bar(scale, main["value"], main["value_low"], main["value_high"], ceiling=main["value"]),
        beside=[Cell(_value(ceiling.get(one.name)), title=_title(ceiling.get(one.name))) for one in beside],
        levels=_level_cells(metric, levels),
        n=whole(main["n"]),
        coverage=NONE,
    )
