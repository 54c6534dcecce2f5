"""Battles as LMArena and FastChat publish them, read as comparisons.

``model_a, model_b, winner, conversation_a, conversation_b`` with ``judge, turn, language, tstamp, anony``. The last
turn is judged, or number ``turn``; earlier ones stand above it.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from bank.intake.formats import pairs, wide
from bank.intake.formats.reading import BadRow, Problem, Row, first_names, is_whole, listed, parse_json, rows
from bank.picked import present

NAME = "lmarena"
TITLE = "Battles (LMArena, FastChat)"
SHAPE = pairs
GPT = "gpt4_pair"  # FastChat's name for GPT-4 in the column that else holds people
NAMES_SHOWN = "names shown"  # a flag of labels
CONVERSATIONS = ("conversation_a", "conversation_b")
NEEDED = {"model_a", "model_b", "winner", *CONVERSATIONS}
WINNERS = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}  # a column each, at Kaggle
AT_KAGGLE = {"prompt", "model_a", "response_a", "model_b", "response_b", *WINNERS}
KEPT = "model_a model_b winner language category tstamp annotator comment image images".split()


def recognises(path: Path) -> bool:
    names = first_names(path)
    return names >= NEEDED or names >= AT_KAGGLE


def wide_rows(path: Path) -> Iterator[Row | Problem]:
    """The rows of the file as rows of ``pairs``."""
    return wide.read_as(_pair, rows(path), warnings=True)


def _pair(row: Row) -> dict[str, Any]:
    data = row.data
    if "prompt" in data and "winner" not in data:
        return _pair_at_kaggle(data)
    both = [turns_of(data, name) for name in CONVERSATIONS]
    judged = _judged_turn(data, both)
    asked, others = ([question for question, _ in turns[:judged]] for turns in both)
    if asked != others:
        raise BadRow("conversation_b", "asks something else than conversation_a")
    if not asked[-1].strip():
        raise BadRow("conversation_a", "ends with an empty question")
    pair = present(data, KEPT) | {"prompt": joined(asked)}
    for side, turns in zip("ab", both, strict=True):
        texts = [answer for _, answer in turns[:judged]]
        pair[f"response_{side}"] = joined_answers(texts)
    if (key := wide.value_in(data, "key")) is not None:
        pair["key"] = turn_key(key, judged)
    if data.get("judge") not in (None, ""):
        pair["judge" if data["judge"] == GPT or "annotator" in pair else "annotator"] = data["judge"]
    if data.get("anony") in (False, "False", "false"):
        pair["flags"] = [NAMES_SHOWN]
    return pair


def _judged_turn(data: dict[str, Any], both: Sequence[Sequence[tuple[str, str]]]) -> int:
    """The number of the turn that is judged, from 1: the last, where the row does not say. Raises BadRow."""
    turn = data.get("turn") if data.get("turn") not in (None, "") else len(both[0])
    if isinstance(turn, str) and turn.isascii() and turn.isdigit():
        turn = int(turn)
    if not is_whole(turn) or turn < 1:
        raise BadRow("turn", "is no number of turns")
    if turn > min(map(len, both)):
        raise BadRow("turn", f"is {turn}, but the conversations have {min(map(len, both))}")
    return turn


def _pair_at_kaggle(data: dict[str, Any]) -> dict[str, Any]:
    """A row of Kaggle's LMSYS competition: the turns as JSON lists, and a 1 in the column of the winner."""
    won = [winner for column, winner in WINNERS.items() if str(data.get(column)).strip() in ("1", "1.0", "True")]
    pair = present(data, KEPT)
    for column in ("prompt", "response_a", "response_b"):
        turns = listed(data[column]) if isinstance(data.get(column), str) else data.get(column)
        if not isinstance(turns, list) or not turns:
            raise BadRow(column, "is no list of turns")
        texts = [text_of(turn, column) for turn in turns]
        pair[column] = joined(texts) if column == "prompt" else joined_answers(texts)
    if (key := wide.value_in(data, "key")) is not None:
        pair["key"] = key
    if len(won) != 1:
        raise BadRow("winner_tie", f"of {', '.join(WINNERS)} {len(won)} say 1, not one")
    return pair | {"winner": won[0]}


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
    first = messages[0]
    rules = ""
    if isinstance(first, dict) and first.get("role") == "system":
        rules, messages = text_of(first.get("content"), column).strip(), messages[1:]
    turns: list[tuple[str, str]] = []
    for number, message in enumerate(messages, start=1):
        role = message.get("role") if isinstance(message, dict) else None
        asks = number % 2 == 1
        if role != ("user" if asks else "assistant"):
            raise BadRow(column, f"message {number} is not by the {'user' if asks else 'assistant'}")
        text = text_of(message.get("content"), column)
        if asks:
            turns.append((f"**System**\n\n{rules}\n\n**User**\n\n{text}" if rules and not turns else text, ""))
        else:
            turns[-1] = (turns[-1][0], text)
    if not turns:
        raise BadRow(column, "holds nothing that a user says")
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


def joined_answers(texts: Sequence[str]) -> str:
    """A model's answers up to the judged one, which says whether there is any."""
    return joined(texts) if texts[-1].strip() else ""


def turn_key(key: Any, turn: int) -> Any:
    """The key of the sample that a turn is; the first has that of the question."""
    return key if turn == 1 else f"{key}-{turn}"


def joined(texts: Iterable[str]) -> str:
    """Several turns under a heading each."""
    turns = list(texts)
    if len(turns) == 1:
        return turns[0]
    return "\n\n".join(f"**Turn {number}**\n\n{text}" for number, text in enumerate(turns, start=1))
