"""A gate for continuous integration: what numbers of a board must reach, and how they stand beside the same as they
were.

An interval decides: a number fails where all of its 95% interval lies on the wrong side. Compared with what was, it is
worse where the interval of the difference does: of two independent numbers, that interval is made of both (squares of
the distances to the ends added; Newcombe, Statistics in Medicine 17:873, 1998, method 10; Zou and Donner, Statistics in
Medicine 27:1693, 2008). The two share items, so a difference is told later than a paired test would, never sooner.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan, sqrt
from pathlib import Path
from xml.etree import ElementTree

from bank.errors import BadInput
from leaderboard.models import Snapshot
from leaderboard.rows import JSON
from leaderboard.show.files import with_interval

PASSED, FAILED, UNKNOWN, NONE = "passed", "failed", "unknown", "no number"
BESIDE = ("coverage", "pooled")  # numbers of a row that say something of its own
WHOSE = ("judge", "model", "a", "b")
FORMATS = ("junit", "markdown")
IDENTITY = ("judge", "model", "a", "b", "source_dataset", "kind", "reference", "metric", "bias", "level", "part")
MARKUP = re.compile(r"[\\`*_\[\]<>!|]")  # in the name of a model, which would load a picture where the table is shown
NO_SIDE = "Biases have no better side: --fail-over and --fail-under say how far they may go."


@dataclass(frozen=True, slots=True)
class Checked:
    """One number: whose, what it was held against in words, and whether it passed. One that is not known does not; one
    that there is none of, as of the anchor against itself, neither passes nor fails.
    """

    name: str
    value: float | None
    against: str
    state: str
    words: str = ""

    @property
    def stops(self) -> bool:
        return self.state in (FAILED, UNKNOWN)


@dataclass(frozen=True, slots=True)
class Limit:
    """What a number must reach, or may reach at most."""

    number: str
    value: float
    at_most: bool

    @property
    def words(self) -> str:
        return f"{'at most' if self.at_most else 'at least'} {self.value:g}"


def limit(text: str, *, at_most: bool = False) -> Limit:
    """``accuracy=.8``. Raises BadInput."""
    name, _, value = text.partition("=")
    try:
        number = float(value)
    except ValueError:
        number = nan
    if not isfinite(number):
        raise BadInput(f"{text!r} is not NAME=NUMBER.")
    return Limit(name.strip(), number, at_most)


def chosen(rows: Iterable[JSON], conditions: Sequence[str]) -> list[JSON]:
    """The rows whose columns are as ``COLUMN=VALUE`` say. Raises BadInput."""
    found = list(rows)
    for condition in conditions:
        name, sign, value = condition.partition("=")
        if not sign or any(name not in row for row in found):
            raise BadInput(f"{condition!r} is not COLUMN=VALUE of these rows.")
        found = [row for row in found if str(row[name]) == value]
    return found


def names_one(conditions: Iterable[str]) -> bool:
    """Whether ``COLUMN=VALUE`` name whose rows they are."""
    return any(condition.partition("=")[0] in WHOSE for condition in conditions)


def checked(
    rows: Sequence[JSON],
    limits: Iterable[Limit],
    *,
    plain: bool,
    named: bool = False,
    earlier: Sequence[JSON] = (),
) -> list[Checked]:
    """Every number that a limit is about. A number that there is none of is unknown where its row was ``named``, had
    one in the ``earlier`` rows, or no row has one. Raises BadInput where no row has such a column.
    """
    before = _by_identity(earlier)
    found = []
    for each in limits:
        of_limit = [(row, column) for row in rows if (column := _column(row, each.number))]
        if not of_limit:
            raise BadInput(f"No row has a number {each.number!r}.")
        none_has = all(row[column] is None for row, column in of_limit)
        for row, column in of_limit:
            wanted = named or none_has or before.get(_identity(row), {}).get(column) is not None
            found.append(_within(row, column, each, plain=plain, wanted=wanted))
    return found


def _column(row: JSON, number: str) -> str:
    """The column that holds the number: its own, or ``value`` in the row of a metric; "" where none does."""
    if number in (row.get("metric"), row.get("bias")):
        return "value"
    return number if f"{number}_low" in row else ""


def _within(row: JSON, column: str, limit: Limit, *, plain: bool, wanted: bool) -> Checked:
    name, value = _name(row, limit.number), row[column]
    if value is None and row.get(f"{column}_low") is None and not wanted:
        return Checked(name, None, limit.words, NONE, _why(row, column))
    end = value if plain else row[f"{column}_low" if limit.at_most else f"{column}_high"]
    if end is None:
        return Checked(name, value, limit.words, UNKNOWN, _why(row, column))
    fails = end > limit.value if limit.at_most else end < limit.value
    return Checked(name, value, limit.words, FAILED if fails else PASSED, _written(row, column))


def compared(
    rows: Sequence[JSON], earlier: Sequence[JSON], *, lower_is_better: Iterable[str], plain: bool
) -> list[Checked]:
    """Every number that stands in the earlier rows, too, of several runs of a judge that of the last; a row that is
    gone is not known. Raises BadInput where none stands in both.
    """
    if any("bias" in row for row in rows):
        raise BadInput(NO_SIDE)
    before, now = _by_identity(earlier), _by_identity(rows)
    found = []
    for identity, row in now.items():
        old = before.get(identity)
        if not old:
            continue
        for column in _numbers(row):
            turned = row.get("metric", column) in lower_is_better
            found.append(_beside(row, old, column, turned=turned, plain=plain))
    if not found:
        raise BadInput("No row stands in what it is compared with.")
    known = (old for key, old in before.items() if key not in now)
    gone = [old for old in known if any(old[column] is not None for column in _numbers(old))]
    return found + [Checked(_name(old, "row"), None, "there before", UNKNOWN, "it is gone") for old in gone]


def _beside(row: JSON, old: JSON, column: str, *, turned: bool, plain: bool) -> Checked:
    name = _name(row, row.get("metric", column))
    now, then = row[column], old[column]
    if then is None:
        return Checked(name, now, "unknown before", PASSED, "")
    against = f"{then:.3f} before"
    if now is None:
        return Checked(name, now, against, UNKNOWN, _why(row, column))
    change = then - now if turned else now - then
    if plain:
        return Checked(name, now, against, FAILED if change < 0 else PASSED, _written(row, column))
    low, high = row[f"{column}_low"], row[f"{column}_high"]
    low_then, high_then = old[f"{column}_low"], old[f"{column}_high"]
    if None in (low, high, low_then, high_then):
        return Checked(name, now, against, UNKNOWN if change < 0 else PASSED, _why(row, column))
    better, worse = (now - low, high_then - then) if turned else (high - now, then - low_then)
    most = change + sqrt(better**2 + worse**2)
    words = f"{_written(row, column)}; the difference is at most {most:+.3f}"
    return Checked(name, now, against, FAILED if most < 0 else PASSED, words)


def _run(row: JSON) -> int:
    return int(row.get("run") or 0)


def _identity(row: JSON) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(row[name])) for name in IDENTITY if row.get(name) not in (None, ""))


def _by_identity(rows: Iterable[JSON]) -> dict[tuple[tuple[str, str], ...], JSON]:
    """Of several runs of a judge the last."""
    return {_identity(row): row for row in sorted(rows, key=_run)}


def _numbers(row: JSON) -> list[str]:
    return [name for name in row if f"{name}_low" in row and name not in BESIDE]


def _name(row: JSON, number: str) -> str:
    words = [str(row[name]) for name in IDENTITY if row.get(name) not in (None, "", number)]
    return ", ".join([*words, number])


def _written(row: JSON, column: str) -> str:
    return with_interval(row, column) if row[column] is not None else "unknown"


def _why(row: JSON, column: str) -> str:
    """Why the number or its interval is not known."""
    plain = "there is none" if row[column] is None else "it has no interval"
    return next((note for note in row.get("notes", ()) if note.startswith(f"{column}:")), plain)


def earlier_rows(named: str) -> list[JSON]:
    """The rows of a snapshot by its code, or of a file that ``--format json`` or ``jsonl`` made. Raises BadInput."""
    path = Path(named)
    if not path.is_file():
        snapshot = Snapshot.objects.filter(code=named).first()
        if snapshot is None:
            raise BadInput(f"{named!r} is neither a file nor the code of a snapshot.")
        return list(snapshot.rows)
    try:
        text = path.read_text(encoding="utf-8")
        lines = [text] if text.lstrip().startswith("[") else text.splitlines()
        read = [json.loads(line, parse_constant=_refuse) for line in lines]
        rows = read[0] if read and isinstance(read[0], list) else read
    except (OSError, ValueError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadInput(f"{named} does not hold rows as --format json prints them.")
    return rows


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


# ---- how it is told ----


def told(title: str, checks: Sequence[Checked], shape: str) -> str:
    """The checks as JUnit XML, a table in Markdown, or the lines of those that did not pass."""
    return {"junit": _junit, "markdown": _markdown}.get(shape, _lines)(title, checks)


def _lines(title: str, checks: Sequence[Checked]) -> str:
    return "".join(f"{one.state}  {one.name}: {one.words}, {one.against}\n" for one in checks if one.state != PASSED)


def _markdown(title: str, checks: Sequence[Checked]) -> str:
    counts = _counts(checks)
    lines = [f"**{title}**: {', '.join(f'{n} {state}' for state, n in counts.items() if n)}", ""]
    lines += ["| | number | held against | |", "|---|---|---|---|"]
    order = (FAILED, UNKNOWN, PASSED, NONE)
    for one in sorted(checks, key=lambda one: order.index(one.state)):
        cells = (one.state, one.name, one.against, one.words)
        lines.append("| " + " | ".join(MARKUP.sub(r"\\\g<0>", cell) for cell in cells) + " |")
    return "\n".join(lines) + "\n"


def _junit(title: str, checks: Sequence[Checked]) -> str:
    counts = _counts(checks)
    numbers = {"tests": len(checks), "failures": counts[FAILED], "errors": counts[UNKNOWN], "skipped": counts[NONE]}
    suite = ElementTree.Element("testsuite", {"name": title} | {name: str(n) for name, n in numbers.items()})
    for one in checks:
        case = ElementTree.SubElement(suite, "testcase", {"classname": title, "name": f"{one.name}, {one.against}"})
        if one.state != PASSED:
            kind = {FAILED: "failure", UNKNOWN: "error", NONE: "skipped"}[one.state]
            ElementTree.SubElement(case, kind, {"message": one.words})
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _counts(checks: Sequence[Checked]) -> Mapping[str, int]:
    return {state: sum(one.state == state for one in checks) for state in (FAILED, UNKNOWN, PASSED, NONE)}
