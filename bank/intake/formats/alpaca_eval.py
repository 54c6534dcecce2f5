"""AlpacaEval's annotations, read as comparisons; its outputs are ``answers`` as they are.

``instruction, output_1, generator_1, output_2, generator_2, annotator, preference``.
A preference is 1 for the first, 2 for the second, 0 or 1.5 for neither. A file in which some lie between is one of
graded pairs.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from bank.intake.formats import pairs, wide
from bank.intake.formats.reading import BadRow, Problem, Row, first_names, rows

NAME = "alpaca-eval"
TITLE = "AlpacaEval's annotations"
SHAPE = pairs
NEEDED = {"instruction", "output_1", "generator_1", "output_2", "generator_2", "preference"}
WINNERS = {1: "model_a", 2: "model_b", 0: "tie", 1.5: "tie"}


def recognises(path: Path) -> bool:
    return first_names(path) >= NEEDED


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The rows of the file as rows of ``pairs``."""
    graded = any(isinstance(row, Row) and _lies_between(row.data.get("preference")) for row in rows(path))
    return wide.read_as(partial(_pair, graded=graded), rows(path), warnings=True)


def _lies_between(preference: Any) -> bool:
    return isinstance(preference, float) and 1 < preference < 2 and preference != 1.5


def _pair(row: Row, graded: bool) -> dict[str, Any]:
    data = row.data
    pair: dict[str, Any] = {"prompt": wide.text_in(data, "instruction"), "category": wide.text_in(data, "dataset")}
    if context := wide.text_in(data, "input"):
        pair["prompt"] += f"\n\n{context}"
    for side, number in (("a", 1), ("b", 2)):
        pair |= {f"model_{side}": data.get(f"generator_{number}"), f"response_{side}": data.get(f"output_{number}")}
    if data.get("annotator_index") not in (None, ""):  # a person, by number
        pair["annotator"] = str(data["annotator_index"])
    elif data.get("annotator") not in (None, ""):
        pair["judge"] = data["annotator"]
        if isinstance(data.get("raw_completion"), str):
            pair["comment"] = data["raw_completion"]
    if graded:
        pair["preference"] = None
    if data.get("preference") in (None, ""):
        return pair | {"reply_status": "parse_failed"}
    preference = wide.number_in(data, "preference")
    if preference not in WINNERS and not 1 <= preference <= 2:
        raise BadRow("preference", f"{str(preference)[:50]} is neither 0 nor from 1 to 2")
    if not graded:
        return pair | {"winner": WINNERS[preference]}
    return pair | {"preference": 2 - preference if preference else 0.5}
