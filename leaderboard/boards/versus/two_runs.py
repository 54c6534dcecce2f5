"""Two runs beside each other: how far they agree, where they differ, and what is set otherwise."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.text import Truncator

from judging.models import Run
from judging.runs.compare import Comparison, Difference, Figure
from leaderboard.show.marks import Cell
from leaderboard.show.table import Column, Table, names, table, text
from stats import figures
from stats.figures import whole

MOST_OF_TEXT, MOST_OF_KEY = 80, 24  # characters of an instruction, and of a sample's key


@dataclass(frozen=True, slots=True)
class TwoRuns:
    """The tables of the page, None where there is nothing in one."""

    agreement: Table | None
    matrix: Table | None
    differing: Table | None
    settings: Table | None


def build_two_runs(found: Comparison) -> TwoRuns:
    return TwoRuns(
        agreement=_agreement(found) if found.figures else None,
        matrix=_matrix(found) if found.matrix else None,
        differing=_differing(found) if found.differing else None,
        settings=_settings(found) if found.changes else None,
    )


def _agreement(found: Comparison) -> Table:
    def value(figure: Figure) -> str:
        return str(getattr(figures, figure.write)(figure.estimate.value))

    def between(figure: Figure) -> str:
        return figures.ends(figure.estimate, getattr(figures, figure.write)) or figure.estimate.reason

    return table(
        [
            names("Measure", lambda figure: Cell(figure.title, figure.note), css=""),
            Column("Value", value),
            text("95% interval", between, css="num dim"),
            Column("Items", lambda figure: whole(figure.estimate.n)),
        ],
        found.figures,
        label="Agreement of the two runs",
        caption="Agreement of the two runs",
    )


def _matrix(found: Comparison) -> Table:
    def count(at: int) -> Column[tuple[str, list[int]]]:
        def cell(row: tuple[str, list[int]]) -> Cell:
            label, counts = row
            return Cell(whole(counts[at]), strong=label == found.labels[at])

        return Column(found.labels[at], cell)

    def label(row: tuple[str, list[int]]) -> str:
        name, _ = row
        return name

    return table(
        [names(f"Run {found.first.pk}", label, css="", unseen=True), *map(count, range(len(found.labels)))],
        found.matrix,
        label="Items by verdict of both runs",
        caption="Items by verdict of both runs",
    )


def _differing(found: Comparison) -> Table:
    def sample(row: Difference) -> Cell:
        key = Truncator(row.sample.key).chars(MOST_OF_KEY)
        return Cell(Truncator(row.sample.instruction).chars(MOST_OF_TEXT), key, title=row.sample.instruction)

    def first(row: Difference) -> Cell:
        return Cell(row.first, link=reverse("judging:judgment-detail", args=[row.first_judgment]))

    def second(row: Difference) -> Cell:
        return Cell(row.second, link=reverse("judging:judgment-detail", args=[row.second_judgment]))

    return table(
        [
            names("Sample", sample, css="fills"),
            text(_named(found.first), first),
            text(_named(found.second), second),
        ],
        found.differing,
        label="Items that differ",
        caption="Items on which the runs differ",
    )


def _settings(found: Comparison) -> Table:
    def name(change: tuple[str, str, str]) -> str:
        setting, _, _ = change
        return setting

    def first(change: tuple[str, str, str]) -> str:
        _, value, _ = change
        return value

    def second(change: tuple[str, str, str]) -> str:
        _, _, value = change
        return value

    return table(
        [
            names("Setting", name, css=""),
            text(f"Run {found.first.pk}", first),
            text(f"Run {found.second.pk}", second),
        ],
        found.changes,
        label="Settings that differ",
        caption="Settings that differ",
    )


def _named(run: Run) -> str:
    return f"Run {run.pk}, {run.judge.titled}"
