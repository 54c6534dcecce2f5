"""The alternative annotator test on the board of judges, and the page of people and a judge together."""

from dataclasses import dataclass

from django.utils.safestring import SafeString

from leaderboard.boards.standin import EPSILON, StandInBoard, StandInRow, TogetherBoard, judges_of
from leaderboard.figures import NONE, interval, number_of, two, whole
from leaderboard.kinds import Kind
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.scope import Scope

STEPS = ("0", "0.05", "0.1", "0.15", "0.2", "0.3")


def epsilon_of(address: Address) -> float:
    """The address' epsilon, where it is one of the steps."""
    text = address.params.get("epsilon", "")
    return float(text) if text in STEPS else EPSILON


READING = [
    (
        "Both",
        "is what people would say over all items: their labels correct the judge where nobody labelled.",
    ),
    ("People", "is the same number by the labelled items alone; both have 95% intervals on one axis."),
    ("Shared n, further N", "are the items that people and the judge share, and those that the judge alone has."),
    ("λ", "is how far the judge is trusted: 0 uses people alone, 1 trusts the judge as far as the labels allow."),
]


@dataclass(frozen=True, slots=True)
class TestRow:
    judge: str
    run: int
    said: str  # may, may not, or why it cannot be told
    passes: bool | None
    winning: str
    advantage: str
    tested: str
    n: str


@dataclass(frozen=True, slots=True)
class TestPanel:
    rows: list[TestRow]
    steps: list[tuple[str, str, bool]]  # epsilon, link, chosen
    people: str
    distance: bool


def panel_of(address: Address, board: StandInBoard, *, kind: Kind) -> TestPanel:
    """The alternative annotator test, judges that pass with most advantage first."""
    selected = f"{epsilon_of(address):g}"
    default = f"{EPSILON:g}"
    steps = [
        (step, address.link(epsilon=None if step == default else step) + "#stand-in", step == selected)
        for step in STEPS
    ]
    order = sorted(board.rows, key=lambda row: (-(row.winning_rate or -1), -(row.advantage or -1), row.judge))
    rows = [_test_row(row) for row in order]
    return TestPanel(rows, steps, number_of(board.people, "annotator"), kind.stand_in == "distance")


def _test_row(row: StandInRow) -> TestRow:
    passes = row.passes
    return TestRow(
        judge=row.shown,
        run=row.run,
        said=row.reason.capitalize() if passes is None else "may stand in" if passes else "may not",
        passes=passes,
        winning=two(row.winning_rate),
        advantage=two(row.advantage),
        tested=f"{row.tested} of {len(row.annotators)}" if row.annotators else NONE,
        n=whole(row.n or None),
    )


# ---- people and a judge together ----


@dataclass(frozen=True, slots=True)
class BothRow:
    model: str
    link: str
    people: str
    people_title: str
    people_bar: SafeString
    people_n: str
    both: str
    both_title: str
    both_bar: SafeString
    weight: str
    n: str
    further: str
    judge: str
    reason: str


@dataclass(frozen=True, slots=True)
class BothPage:
    judge: str
    measure: str
    axis: SafeString
    rows: list[BothRow]


def judge_select(scope: Scope, run: int | None) -> Select:
    choices = [Choice(str(group[-1].pk), f"{group[-1].judge}, run {group[-1].pk}") for group in judges_of(scope)]
    return Select("run", "Judge", [("", choices)], str(run or ""))


def page_of(address: Address, scope: Scope, board: TogetherBoard) -> BothPage:
    """Everything that the table shows."""
    shape, to = scope.kind.shape, scope.kind.rows_page
    write = shape.main.write
    ends = [end for row in board.rows for number in (row.people, row.both) for end in number.ends]
    scale = marks.axis(ends, unit=shape.unit)
    rows = [
        BothRow(
            model=row.model,
            link=address.to(to, **(address.view() | {"run": None}), model=row.model),
            people=write(row.people.value),
            people_title=interval(row.people, write),
            people_bar=marks.interval_bar(scale, *row.people.ends, write=write),
            people_n=whole(row.people_n or None),
            both=write(row.both.value),
            both_title=interval(row.both, write),
            both_bar=marks.interval_bar(scale, *row.both.ends, write=write),
            weight=two(row.weight),
            n=whole(row.n),
            further=whole(row.further),
            judge=write(row.judge),
            reason=row.reason,
        )
        for row in board.rows
    ]
    axis = marks.axis_head(scale, lambda value: whole(100 * value) if shape.hundred else f"{value:g}")
    return BothPage(board.judge, shape.main.label, axis, rows)
