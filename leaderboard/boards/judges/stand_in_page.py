"""The alternative annotator test on the board of judges, and the page of people and a judge together."""

from dataclasses import dataclass

from django.urls import reverse

from judging.models import Run
from leaderboard.boards.judges.stand_in import EPSILON, StandInBoard, StandInRow, TogetherBoard, TogetherRow, judges_of
from leaderboard.kinds import Kind
from leaderboard.lookups import known_models, runs_of
from leaderboard.scope import Scope
from leaderboard.show import marks
from leaderboard.show.marks import Cell, Chip
from leaderboard.show.pickers import Segment, Select, pick
from leaderboard.show.table import IN_TIERS, Column, Table, column_of, names, on_axis, table, text
from leaderboard.view import Address
from stats.figures import NONE, in_brackets, number_of, rank_range, short, whole, whole_percent

STEPS = ("0", "0.05", "0.1", "0.15", "0.2", "0.3")


def epsilon_of(address: Address) -> float:
    """The address' epsilon, where it is one of the steps."""
    text = address.params.get("epsilon", "")
    return float(text) if text in STEPS else EPSILON


@dataclass(frozen=True, slots=True)
class TestPanel:
    table: Table
    steps: list[Segment]
    people: str
    distance: bool


def panel_of(address: Address, board: StandInBoard, *, kind: Kind) -> TestPanel:
    """The alternative annotator test, judges that pass with most advantage first."""
    selected = f"{epsilon_of(address):g}"
    default = f"{EPSILON:g}"
    steps = [
        Segment(
            whole(100 * float(step)),
            address.link(epsilon=None if step == default else step) + "#stand-in",
            step == selected,
        )
        for step in STEPS
    ]
    runs = runs_of(row.run for row in board.rows)

    def beside(row: StandInRow) -> str:
        return people_of(runs.get(row.run))

    columns: list[Column[StandInRow]] = [
        names("Judge", lambda row: Cell(row.shown, f"run {row.run}"), css=""),
        text("Result", lambda row: standin_cell(row, runs.get(row.run)), css="maystand"),
        column_of(StandInRow, "advantage", opens=beside),
        column_of(StandInRow, "winning_rate", opens=beside),
        Column(
            "Tested",
            lambda row: f"{row.tested} of {len(row.annotators)}" if row.annotators else NONE,
            opens=beside,
            title="People with 30 shared items or more",
        ),
        Column(
            "Labels",
            lambda row: whole(row.n or None),
            opens=beside,
            title="Labels on items that the judge has a verdict on",
        ),
    ]
    rows = sorted(board.rows, key=lambda row: (-(row.winning_rate or -1), -(row.advantage or -1), row.judge))
    label = "Alternative annotator test"
    drawn = table(columns, rows, label=label, caption=f"{label} of every judge", css="cmpt")
    return TestPanel(drawn, steps, number_of(board.people, "person", "people"), kind.stand_in == "distance")


def people_of(run: Run | None) -> str:
    """Where the judge stands in place of each person, one by one."""
    return f"{reverse('leaderboard:judge-detail', args=[run.judge_id])}#stand-in-{run.pk}" if run else ""


def standin_cell(row: StandInRow, run: Run | None = None) -> Cell:
    """Whether the judge may stand in, and beside how many people; or why that cannot be told. With its ``run`` it leads
    to them.
    """
    if row.passes is None or row.winning_rate is None:
        return Cell("too few labels", row.reason)
    link = people_of(run)
    near = round(row.winning_rate * row.tested)
    people = "person" if row.tested == 1 else "people"
    if row.passes:
        return Cell("yes", f"as close as {near} of {row.tested} {people}", css="good", icon="check", link=link)
    far = row.tested - near
    who = "all" if not near else f"{far} of"
    return Cell("not proven", f"less close than {who} {row.tested} {people}", link=link)


# ---- people and a judge together ----


def judge_select(scope: Scope, run: int | None) -> Select:
    newest = [group[-1] for group in judges_of(scope)]
    return pick("run", "Judge", {str(of.pk): f"{of.judge}, run {of.pk}" for of in newest}, str(run or ""))


RANKED = f"The 95% range of this model's rank by both. {IN_TIERS}"


def levels_table(scope: Scope, board: TogetherBoard) -> Table | None:
    """The models within the levels that have labels enough; nothing where none has."""
    rows = [row for row in board.levels if row.both.value is not None]
    if not rows:
        return None
    write = scope.kind.shape.main.write
    return table(
        [
            names("Level", "level", css=""),
            text("Model", "model"),
            Column("Both", "both", write),
            Column("95% interval", lambda row: in_brackets(row.both, write)),
            Column("People", "people", write),
            Column("Shared n", "n"),
            Column("Further N", "further"),
            Column("λ", "weight"),
        ],
        rows,
        label="By level",
        caption="Models by people and the judge together, within each level",
        css="cmpt",
    )


def together_table(address: Address, scope: Scope, board: TogetherBoard) -> Table:
    """Each model by people alone and by people with the judge."""
    shape = scope.kind.shape
    write = shape.main.write
    ends = []
    for row in board.rows:
        ends += [*row.people.ends, *row.both.ends]
    scale = marks.axis(ends, unit=shape.unit)

    def model(row: TogetherRow) -> Cell:
        link = address.to(scope.kind.rows_page, **(address.view() | {"run": None}), model=row.model)
        return Cell(row.model, link=link, chips=(Chip("simulated"),) if known[row.model].simulated else ())

    ticks = whole_percent if shape.hundred else short
    place, known = {row.model: row for row in board.ranks}, known_models(row.model for row in board.rows)

    def rank(row: TogetherRow) -> Cell:
        of = place.get(row.model)
        return Cell(rank_range(of.rank, of.rank_low, of.rank_high) or str(of.rank) if of else NONE)

    return table(
        [
            Column("Rank", rank, title=RANKED, shown=bool(place)),
            names("Model", model),
            on_axis("Both", "shown", scale, ticks, write),
            on_axis("People", "people", scale, ticks, write),
            Column("Labelled", lambda row: whole(row.people_n or None)),
            Column("Shared n", "n", title="Items that people and the judge share"),
            Column("Further N", "further", title="Items that the judge alone has"),
            Column(
                "λ",
                "weight",
                title="Lambda: 0 uses people alone, 1 trusts the judge as far as the labels allow",
            ),
            Column("Judge alone", "judge", write),
        ],
        board.rows,
        label="People and judge",
        caption="Each model by people alone and by people with the judge, with 95% intervals",
        css="lb",
    )
