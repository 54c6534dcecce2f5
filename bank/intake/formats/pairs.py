"""Comparisons, one row a pair: a question, two models with their answers, and who won.

``prompt, model_a, response_a, model_b, response_b, winner`` as people write it down, or battles as LMArena and FastChat
publish them (``model_a, model_b, winner, conversation_a, conversation_b, judge, turn, language, tstamp``). A row holds
everything at once: sample, responses, and a label or a judgment. Canonical order is that of the row.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    SeenAnswers,
    Where,
    converted,
    first_names,
    kind_of,
    odd,
    parse_json,
    rows,
)
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord, SampleRecord
from bank.text.names import as_stored

NAME = "pairs"
TITLE = "Comparisons (a pair a row, LMArena battles)"
LOOKED_AT = 50  # rows; in CSV an empty cell is no name
ANNOTATOR = "human"  # of verdicts, where a file names nobody
GPT = "gpt4_pair"  # FastChat's name for GPT-4 in the column that else holds people
BOTH_BAD, NAMES_SHOWN = "both bad", "names shown"  # flags of labels
MOST_LANGUAGE = 16  # characters
# What columns may be called, by what they hold.
COLUMNS = {
    "key": ("question_id", "id", "prompt_id", "key"),
    "prompt": ("prompt", "instruction", "question"),
    "response_a": ("response_a", "answer_a", "output_a"),
    "response_b": ("response_b", "answer_b", "output_b"),
    "image": ("image", "image_path", "images"),
    "annotator": ("annotator", "annotator_id", "worker", "rater"),
    "judge": ("judge", "judge_name"),
    "comment": ("comment", "rationale", "explanation", "reason"),
}
ALONE = tuple("model_a model_b winner conversation_a conversation_b turn language category anony tstamp".split())
KNOWN = {*ALONE, *(name for names in COLUMNS.values() for name in names)}
FIELDS = (*ALONE, *(names[0] for names in COLUMNS.values()))
NEEDED = ("prompt", "model_a", "response_a", "model_b", "response_b", "winner")
BATTLE = ("conversation_a", "conversation_b")
# Who won, without brackets around it and in lower case.
WINNERS = {
    **dict.fromkeys(("model_a", "model a", "a", "left", "first", "response_a"), "first"),
    **dict.fromkeys(("model_b", "model b", "b", "right", "second", "response_b"), "second"),
    **dict.fromkeys(("tie", "c", "equal", "draw", "both", "same", "both_good", "tie (bothgood)"), "tie"),
    **dict.fromkeys(("tie (bothbad)", "bothbad", "both_bad", "both bad", "neither"), BOTH_BAD),
}


@dataclass(frozen=True, slots=True)
class Pair:
    """A row, read."""

    key: str
    prompt: str
    images: list[dict[str, Any]]
    group: str
    models: list[str]
    texts: list[str]
    refs: list[dict[str, str]]
    repeated: list[bool]  # whether the same answer stood in a row before
    data: dict[str, Any]


def recognises(path: Path) -> bool:
    if path.is_dir():
        return False
    try:
        names = first_names(path)
        if kind_of(path) != "json":  # which cannot be read in part
            names = names.union(*(row.data for row in islice(rows(path), LOOKED_AT) if isinstance(row, Row)))
    except (BadFile, LookupError):
        return False
    wanted = ("model_a", "model_b", "winner", *BATTLE) if names.issuperset(BATTLE) else NEEDED
    return all(names.intersection(COLUMNS.get(name, (name,))) for name in wanted)


def parts(path: Path) -> set[str]:
    """Samples, responses, and verdicts of people or judges, as rows name them; labels, where a row names neither."""
    by = {_given_by(row.data)[0] or "labels" for row in rows(path) if isinstance(row, Row)}
    return {"samples", "responses"} | by


def samples(path: Path) -> Iterator[Row | Problem]:
    done: set[str] = set()
    unread: set[str] = set()

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        pair: Pair = row.data
        if unknown := sorted(pair.data.keys() - KNOWN - unread):
            unread.update(unknown)
            yield odd(row, "", f"these columns are not read: {', '.join(unknown)}")
        if pair.key in done:
            return
        done.add(pair.key)
        language = _word(pair.data, "language")
        if len(language) > MOST_LANGUAGE:
            yield odd(row, "language", f"{language[:50]!r} has more than {MOST_LANGUAGE} characters; left out")
            language = ""
        yield {
            "key": pair.key,
            "instruction": pair.prompt,
            "images": pair.images,
            "language": language,
            "level": _word(pair.data, "category"),
            "group": pair.group,
        }

    return converted(_pairs(path), sample, SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    """Every answer once. A model's second answer to the same question is a variant named by a hash of its text."""
    return converted(_pairs(path), _answers, ResponseRecord)


def _answers(row: Row) -> Iterator[Problem | dict[str, Any]]:
    pair: Pair = row.data
    for side, text, ref, repeated in zip("ab", pair.texts, pair.refs, pair.repeated, strict=True):
        if repeated:
            continue
        if not text:
            yield odd(row, f"response_{side}", "is empty; kept as an empty answer")
        if ref["variant"]:
            reason = f"{ref['model']!r} answered this question otherwise above; kept as variant {ref['variant']}"
            yield odd(row, f"response_{side}", reason)
        yield {"sample": pair.key, "text": text} | ref


def labels(path: Path) -> Iterator[Row | Problem]:
    """What people say. Where the file names nobody, several verdicts on one pair are by as many people."""
    some_named = _names_somebody(path)
    times: Counter[Any] = Counter()

    def label(row: Row) -> Iterator[Problem | dict[str, Any]]:
        pair: Pair = row.data
        by, name = _given_by(pair.data)
        if by == "judgments":
            return
        if not by and some_named:
            raise BadRow("annotator", "is missing, although other rows name theirs")
        verdict = _verdict(pair)
        if not by:
            name = ANNOTATOR
            item = (pair.key, frozenset(tuple(ref.values()) for ref in pair.refs))
            times[item] += 1
            if times[item] > 1:
                name = f"{ANNOTATOR} {times[item]}"
                yield odd(row, "annotator", f"nobody is named, and this pair has a verdict above; kept as by {name!r}")
        flags = [BOTH_BAD] if verdict == BOTH_BAD else []
        if pair.data.get("anony") in (False, "False", "false"):
            flags.append(NAMES_SHOWN)
        more = {"annotator": name, "flags": flags, "comment": _value(pair.data, "comment") or ""}
        yield _about(pair, verdict) | more | _at(pair.data)

    return converted(_pairs(path), label, LabelRecord)


def judgments(path: Path) -> Iterator[Row | Problem]:
    return converted(_pairs(path), _judgment, JudgmentRecord)


def _judgment(row: Row) -> Iterator[dict[str, Any]]:
    pair: Pair = row.data
    by, name = _given_by(pair.data)
    if by == "judgments":
        verdict = _verdict(pair)
        more = {"judge": name, "settings": {"criteria": False}, "analysis": _value(pair.data, "comment")}
        yield _about(pair, verdict) | more | ({"reason": BOTH_BAD} if verdict == BOTH_BAD else {})


def winner_of(winner: Any, models: list[str]) -> str:
    """``first``, ``second``, ``tie`` or ``both bad``, from a word for it or the name of the better model. Raises
    BadRow for anything else, and where a name is also the word for the other side.
    """
    if winner is None or winner == "":
        raise BadRow("winner", "is missing")
    if not isinstance(winner, str):
        raise BadRow("winner", f"{str(winner)[:50]} is no word for a result")
    meant = {WINNERS.get(winner.strip().strip("[]").lower())} - {None}
    meant |= {side for side, model in zip(("first", "second"), models, strict=True) if as_stored(winner) == model}
    if not meant:
        raise BadRow("winner", f"{winner[:50]!r} is none of model_a, model_b, tie, both_bad and the two models")
    if len(meant) > 1:
        raise BadRow("winner", f"{winner[:50]!r} may mean either: it is a model's name and the word for another result")
    return str(meant.pop())


def _verdict(pair: Pair) -> str:
    if _value(pair.data, "annotator") and _value(pair.data, "judge"):
        raise BadRow("judge", "stands beside an annotator; a verdict is by one of them")
    return winner_of(pair.data.get("winner"), pair.models)


def _about(pair: Pair, verdict: str) -> dict[str, Any]:
    return {
        "kind": "pair",
        "protocol": "pair",
        "sample": pair.key,
        "responses": pair.refs,
        "texts": pair.texts,
        "choice": "tie" if verdict == BOTH_BAD else verdict,
    }


def _given_by(data: dict[str, Any]) -> tuple[str, Any]:
    """The part that the verdict of a row belongs to, and who gave it; two empty texts where nobody is named."""
    person, judge = _value(data, "annotator"), _value(data, "judge")
    if person is None and judge != GPT and _is_battle(data):
        person, judge = judge, None
    if person is not None:
        return "labels", person
    return ("judgments", judge) if judge is not None else ("", "")


def _names_somebody(path: Path) -> bool:
    return any(_given_by(row.data)[0] for row in rows(path) if isinstance(row, Row))


def _at(data: dict[str, Any]) -> dict[str, Any]:
    """When, from seconds since 1970."""
    if (seconds := data.get("tstamp")) in (None, ""):
        return {}
    try:
        return {"at": datetime.fromtimestamp(float(seconds), UTC)}
    except (TypeError, ValueError, OverflowError, OSError):
        raise BadRow("tstamp", f"{str(seconds)[:50]!r} is no time in seconds since 1970") from None


def _pairs(path: Path) -> Iterator[Row | Problem]:
    """The rows of a file, each read as a Pair."""
    answers = SeenAnswers()
    first: dict[str, tuple[str, Where]] = {}  # of each key, what is asked, as a hash, and where
    for row in rows(path):
        if isinstance(row, Problem):
            yield row
            continue
        try:
            yield Row(row.where, _pair(row, answers, first))
        except BadRow as fault:
            yield Problem(row.where, fault.field, fault.reason)


def _pair(row: Row, answers: SeenAnswers, first: dict[str, tuple[str, Where]]) -> Pair:
    data: dict[str, Any] = row.data
    models = [_model(data, name) for name in ("model_a", "model_b")]
    turns = 1
    if _is_battle(data):
        prompt, texts, turns = _of_conversations(data)
    else:
        prompt = _text(data, "prompt")
        if not prompt.strip():
            raise BadRow(_column(data, "prompt"), "is missing")
        texts = [_text(data, "response_a"), _text(data, "response_b")]
    pictures = [_picture(one) for one in _listed(_value(data, "image"))]
    names = [picture.get("file") or picture.get("url") or _digest(picture["data"]) for picture in pictures]
    asked = _digest(json.dumps([prompt, *names]).encode())
    key = _value(data, "key")
    if key is None:
        key = asked
    elif isinstance(key, bool) or not isinstance(key, str | int):
        raise BadRow(_column(data, "key"), "is neither text nor a whole number")
    key = f"{key}-{turns}" if turns > 1 else str(key)
    before, where = first.setdefault(key, (asked, row.where))
    if before != asked:
        raise BadRow(_column(data, "key"), f"{key!r} stands with another question or picture at {where}")
    places = [answers.place(key, model, text) for model, text in zip(models, texts, strict=True)]
    refs = [{"model": model, "variant": variant} for model, (variant, _) in zip(models, places, strict=True)]
    group = names[0] if names and len(names[0]) <= MOST_GROUP else ""
    return Pair(key, prompt, pictures, group, models, texts, refs, [repeated for _, repeated in places], data)


MOST_GROUP = 200  # characters


def _of_conversations(data: dict[str, Any]) -> tuple[str, list[str], int]:
    """What is asked, the two answers, and how many turns were judged: ``turn`` of them, or all."""
    both = [_turns(data, name) for name in BATTLE]
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
    answers = [[answer for _, answer in turns[:judged]] for turns in both]
    return _joined(asked), [_joined(texts) if texts[-1].strip() else "" for texts in answers], judged


def _turns(data: dict[str, Any], column: str) -> list[tuple[str, str]]:
    """The questions of a conversation, each with its answer, empty if there is none."""
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
        text = _said(message.get("content"), column)
        if asks:
            turns.append((text, ""))
        else:
            turns[-1] = (turns[-1][0], text)
    return turns


def _said(content: Any, column: str) -> str:
    """The text of a message: as it is, or its parts of type text."""
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


def _joined(texts: list[str]) -> str:
    """Several turns under a heading each."""
    if len(texts) == 1:
        return texts[0]
    return "\n\n".join(f"**Turn {number}**\n\n{text}" for number, text in enumerate(texts, start=1))


def _is_battle(data: dict[str, Any]) -> bool:
    return any(name in data for name in BATTLE)


def _column(data: dict[str, Any], field: str) -> str:
    """The column that holds this, or the name it should have."""
    return next((name for name in COLUMNS[field] if data.get(name) not in (None, "")), COLUMNS[field][0])


def _value(data: dict[str, Any], field: str) -> Any:
    """What stands in the column; None where it is empty."""
    value = data.get(_column(data, field))
    return None if value == "" else value


def _text(data: dict[str, Any], field: str) -> str:
    value = _value(data, field)
    if value is not None and not isinstance(value, str):
        raise BadRow(_column(data, field), "is no text")
    return value if value and value.strip() else ""


def _word(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise BadRow(name, "is no text")
    return value or ""


def _model(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if isinstance(value, bool) or not isinstance(value, str | int | None):
        raise BadRow(name, "is no name")
    model = as_stored(str(value or ""))
    if not model:
        raise BadRow(name, "is missing")
    return model


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _picture(value: Any) -> dict[str, Any]:
    """A picture by its path or address, or its bytes as the Hugging Face Hub keeps them."""
    if isinstance(value, dict):
        value = value.get("bytes") or value.get("path")
    if isinstance(value, bytes):
        return {"data": value}
    if not isinstance(value, str) or not value.strip():
        raise BadRow("image", "is neither a path, an address nor a picture")
    return {"url" if value.startswith(("http://", "https://")) else "file": value, "required": False}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]
