"""Two languages of a benchmark beside each other, as a table."""

from dataclasses import dataclass

from django.utils.safestring import SafeString
from django.utils.translation import get_language_info

from leaderboard import queries
from leaderboard.boards.languages import LanguageRow as Row
from leaderboard.boards.languages import Side, TwoLanguages, languages
from leaderboard.figures import MINUS, NONE, in_brackets, interval, percent, signed_points, whole
from leaderboard.pages import marks
from leaderboard.pages.address import Address
from leaderboard.pages.versus import p_value
from leaderboard.rows import Number
from leaderboard.scope import Scope

MEASURES = {"circular": "Circular accuracy, %", "vanilla": "Accuracy of one pass, %", "accuracy": "Accuracy, %"}


@dataclass(frozen=True, slots=True)
class LanguageRow:
    model: str
    a: str
    a_title: str
    b: str
    b_title: str
    difference: str
    interval: str
    bar: SafeString
    p: str
    significant: bool
    n: str


@dataclass(frozen=True, slots=True)
class LanguagesTable:
    """``a`` and ``b``: language and the benchmark that asks in it."""

    a: tuple[str, str]
    b: tuple[str, str]
    measure: str
    axis: SafeString
    pairs: int
    rows: list[LanguageRow]
    untold: int  # models without a difference


def tables_of(address: Address, scope: Scope) -> list[LanguagesTable]:
    """The benchmark beside the versions and benchmarks in other languages that the viewer may see."""
    if not scope.kind.keyed:
        return []
    return [
        _table(comparison) for comparison in languages(scope, queries.to_compare(address.benchmark, address.viewer))
    ]


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


def _table(comparison: TwoLanguages) -> LanguagesTable:
    scale = marks.axis(
        [0.0, *(end for row in comparison.rows for end in row.difference.ends)], width=marks.WIDE, unit=0.01
    )
    return LanguagesTable(
        _side(comparison.a),
        _side(comparison.b),
        MEASURES[comparison.measure],
        marks.axis_head(scale, _tick),
        comparison.pairs,
        [_row(row, scale) for row in comparison.rows],
        sum(row.difference.value is None for row in comparison.rows),
    )


def _tick(value: float) -> str:
    return whole(100 * value).replace("-", MINUS)


def _row(row: Row, scale: marks.Axis) -> LanguageRow:
    return LanguageRow(
        row.model,
        *_accuracy(row.a, row.a_n),
        *_accuracy(row.b, row.b_n),
        signed_points(row.difference.value),
        in_brackets(row.difference, signed_points),
        marks.interval_bar(scale, *row.difference.ends, write=signed_points),
        p_value(row.p),
        bool(row.significant),
        NONE if row.difference.value is None else whole(row.n),
    )


def _accuracy(share: Number, n: int) -> tuple[str, str]:
    ends = interval(share, percent)
    return percent(share.value), f"{ends}; n = {whole(n)} samples" if ends else f"n = {whole(n)} samples"
