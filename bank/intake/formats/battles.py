"""Battles as LMArena and FastChat publish them, read as comparisons.

``model_a, model_b, winner, conversation_a, conversation_b`` with ``judge, turn, language, tstamp, anony``. The last
turn is judged, or number ``turn``; earlier ones stand above it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats import pairs, wide
from bank.intake.formats.reading import BadRow, Problem, Row, first_names, parse_json, rows

NAME = "lmarena"
TITLE = "Battles (LMArena, FastChat)"
SHAPE = pairs
GPT = "gpt4_pair"  # FastChat's name for GPT-4 in the column that else holds people
NAMES_SHOWN = "names shown"  # a flag of labels
CONVERSATIONS = ("conversation_a", "conversation_b")
NEEDED = {"model_a", "model_b", "winner", *CONVERSATIONS}
KEPT = "model_a model_b winner language category tstamp annotator comment image images".split()


def recognises(path: Path) -> bool:
    return not path.is_dir() and first_names(path) >= NEEDED


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The rows of the file as rows of ``pairs``."""
    return wide.read_as(_pair, rows(path), warnings=True)


def _pair(row: Row) -> dict[str, Any]:
    data = row.data
    both = [turns_of(data, name) for name in CONVERSATIONS]
    judged = data.get("turn") if data.get("turn") not in (None, "") else len(both[0])
    if isinstance(judged, str) and judged.isascii() and judged.isdigit():
        judged = int(judged)
    if isinstance(judged, bool) or not isinstance(judged, int) or judged < 1:
        raise BadRow("turn", "is no number of turns")
    if judged > min(map(len, both)):
        raise BadRow("turn", f"is {judged}, but the conversations have {min(map(len, both))}")
    asked, others = ([question for question, _ in turns[:judged]] for turns in both)
    if asked != others:
        raise BadRow("conversation_b", "asks something else than conversation_a")
    if not asked[-1].strip():
        raise BadRow("conversation_a", "ends with an empty question")
    pair = {name: data[name] for name in KEPT if name in data} | {"prompt": joined(asked)}
    for side, turns in zip("ab", both, strict=True):
        texts = [answer for _, answer in turns[:judged]]
        pair[f"response_{side}"] = joined(texts) if texts[-1].strip() else ""
    if (key := wide.value_in(data, "key")) is not None:
        pair["key"] = turn_key(key, judged)
    if data.get("judge") not in (None, ""):
        pair["judge" if data["judge"] == GPT or "annotator" in pair else "annotator"] = data["judge"]
    if data.get("anony") in (False, "False", "false"):
        pair["flags"] = [NAMES_SHOWN]
    return pair


def turns_of(data: dict[str, Any], column: str) -> list[tuple[str, str]]:
    """The questions of a conversation, each with its answer, empty if there is none. Raises BadRow."""
    messages = data.get(column)
    if isinstance(messages, str):
        try:
            messages = parse_json(messages)
        except ValueError:
            raise BadRow(column, "is not JSON") from None
    if not isinstance(messages, list) or not messages:
        raise BadRow(column, "is no list of messages")
    turns: list[tuple[str, str]] = []
    for number, message in enumerate(messages, start=1):
        role = message.get("role") if isinstance(message, dict) else None
        asks = number % 2 == 1
        if role != ("user" if asks else "assistant"):
            raise BadRow(column, f"message {number} is not by the {'user' if asks else 'assistant'}")
        text = text_of(message.get("content"), column)
        if asks:
            turns.append((text, ""))
        else:
            turns[-1] = (turns[-1][0], text)
    return turns


def text_of(content: Any, column: str) -> str:
    """The text of a message: as it is, or its parts of type text. Raises BadRow."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if not isinstance(content, list) or not all(isinstance(part, dict) for part in content):
        raise BadRow(column, "holds a message that is no text")
    texts = [part.get("text") for part in content]
    if any(part.get("type") != "text" for part in content) or not all(isinstance(text, str) for text in texts):
        raise BadRow(column, "holds a message with more than text, which is not read")
    return "\n\n".join(texts)


def turn_key(key: Any, turn: int) -> Any:
    """The key of the sample that a turn is; the first has that of the question."""
    return key if turn == 1 else f"{key}-{turn}"


def joined(texts: Iterable[str]) -> str:
    """Several turns under a heading each."""
    turns = list(texts)
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"**Turn {number}**\n\n{text}" for number, text in enumerate(turns, start=1))
