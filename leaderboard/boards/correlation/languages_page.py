"""Two languages of a benchmark beside each other, as a table."""

from dataclasses import dataclass

from django.utils.translation import get_language_info

from leaderboard.benchmarks import to_compare
from leaderboard.boards.correlation.languages import LanguageRow as Row
from leaderboard.boards.correlation.languages import Side, TwoLanguages, languages
from leaderboard.scope import Scope
from leaderboard.show import marks
from leaderboard.show.table import P_VALUE, Column, Table, axis_of, change, names, number_cell, table
from leaderboard.view import Address
from stats.figures import NONE, percent, signed_points, whole, whole_percent

MEASURES = {"circular": "Circular accuracy, %", "vanilla": "Accuracy of one pass, %", "accuracy": "Accuracy, %"}


@dataclass(frozen=True, slots=True)
class LanguagesPanel:
    """``a`` and ``b``: language and the benchmark that asks in it; ``untold``: how many models have no difference."""

    a: tuple[str, str]
    b: tuple[str, str]
    measure: str
    pairs: int
    table: Table
    untold: int


def panels_of(address: Address, scope: Scope) -> list[LanguagesPanel]:
    """The benchmark beside the versions and benchmarks in other languages that the viewer may see."""
    if not scope.kind.keyed:
        return []
    return [_panel(comparison) for comparison in languages(scope, to_compare(address.benchmark, address.viewer))]


def language_name(code: str) -> str:
    """``Chinese`` for ``zh``; the code where it is none that is known."""
    for candidate in (code, {"zh": "zh-hans", "cn": "zh-hans"}.get(code, code.split("-")[0])):
        try:
            return str(get_language_info(candidate)["name"]).removeprefix("Simplified ")
        except KeyError:
            continue
    return code


def _side(side: Side) -> tuple[str, str]:
    return language_name(side.language), f"{side.benchmark.title} {side.benchmark.version}".strip()


def _panel(comparison: TwoLanguages) -> LanguagesPanel:
    rows = comparison.rows
    a, b, measure = _side(comparison.a), _side(comparison.b), MEASURES[comparison.measure]

    def accuracy(side: tuple[str, str], name: str) -> Column[Row]:
        n = f"{name}_n"
        return Column(side[0], lambda row: number_cell(row.number(name), percent, getattr(row, n)), title=side[1])

    return LanguagesPanel(
        a,
        b,
        measure,
        comparison.pairs,
        table(
            [
                names("Model", "model", css="name"),
                accuracy(a, "a"),
                accuracy(b, "b"),
                *change(
                    axis_of(rows, "difference", 0.0, width=marks.WIDE, unit=0.01),
                    whole_percent,
                    signed_points,
                ),
                P_VALUE,
                Column("n", lambda row: NONE if row.difference.value is None else whole(row.n)),
            ],
            rows,
            label=f"{a[0]} and {b[0]}",
            caption=f"{measure} of each model in {a[0]} and in {b[0]}, with the difference over the same questions",
            css="cmpt versus",
        ),
        sum(row.difference.value is None for row in rows),
    )
