"""Preference files, as models are trained on: ``prompt, chosen, rejected``, as text or as messages.

``chosen_model`` and ``rejected_model`` say whose answers these are. The project's own export of preferences is one.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from accounts.csv import unescape
from bank.intake.formats import pairs, wide
from bank.intake.formats.battles import joined, joined_answers, turns_of
from bank.intake.formats.reading import BadRow, Problem, Row, first_names, kind_of, listed, rows
from bank.picked import present

NAME = "preferences"
TITLE = "Preferences (prompt, chosen, rejected)"
SHAPE = pairs
SIDES = (("chosen", "a"), ("rejected", "b"))
KEPT = "image images category language judge annotator".split()
VOTES = ("agree", "against")  # of the project's own export, how many labels


def recognises(path: Path) -> bool:
    names = first_names(path)
    return names >= {"chosen", "rejected"} and not names.isdisjoint(wide.COLUMNS["prompt"])


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The rows of the file as rows of ``pairs``, the preferred answer first."""
    return wide.read_as(partial(_pair, is_csv=kind_of(path) == "csv"), rows(path), warnings=True)


def _pair(row: Row, is_csv: bool) -> dict[str, Any]:
    data: dict[str, Any] = row.data
    exported = data.keys() >= {*VOTES, "sample"}
    if exported and is_csv:
        data = {name: unescape(cell) for name, cell in data.items()}
    pair = present(data, KEPT) | {"winner": "model_a"}
    column = wide.column_of(data, "prompt")
    asked = _messages(data.get(column))
    if not isinstance(asked, str | list | None):
        raise BadRow(column, "is neither text nor a list of messages")
    prompts = set()
    for name, side in SIDES:
        turns, answer = _side(data, name, column, asked)
        prompts.add(joined(question for question, _ in turns) if turns else str(asked or ""))
        pair[f"response_{side}"] = answer
        pair[f"model_{side}"] = data.get(f"{name}_model") or name
    if len(prompts) > 1:
        raise BadRow("rejected", "answers something else than chosen")
    pair["prompt"] = prompts.pop()
    if exported:
        pair |= {"key": data["sample"], "annotator": data.get("source")}
        pair["comment"] = ", ".join(f"{data[name]} {name}" for name in VOTES)
    elif (key := wide.value_in(data, "key")) is not None:
        pair["key"] = key
    return pair


def _side(data: dict[str, Any], name: str, column: str, asked: Any) -> tuple[list[tuple[str, str]], str]:
    """The turns of one side where it or the prompt is a list of messages, and its answer. Raises BadRow."""
    said = _messages(data.get(name))
    if isinstance(said, list):
        whole = said if not isinstance(asked, list) or _opens(said) else [*asked, *said]
        turns = turns_of({name: whole}, name)
        return turns, joined_answers([text for _, text in turns])
    return turns_of({column: asked}, column) if isinstance(asked, list) else [], wide.text_in(data, name)


def _messages(value: Any) -> Any:
    """A list of messages, also as JSON text; anything else as it is."""
    return listed(value) if isinstance(value, str) and value.startswith("[{") else value


def _opens(messages: list[Any]) -> bool:
    """Whether it begins with what a model is asked."""
    return bool(messages) and isinstance(messages[0], dict) and messages[0].get("role") in ("system", "user")
