"""MLLM-Bench as released: questions with criteria, the anchor's and the models' answers, raw judge votes.

A directory holds ``questions_with_criteria.json``, ``anchor.json``, ``answers/*.jsonl``, ``votes/*.jsonl.gz``,
``images_manifest.json`` and the images; each file is taken alone as well.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from bank.intake.formats.reading import (
    PICTURE_ENDINGS,
    BadFile,
    BadRow,
    Problem,
    Row,
    chosen_files,
    converted,
    existing,
    first_names,
    json_array,
    json_lines,
    json_value,
    kind_of,
    odd,
    require,
    validated,
)
from bank.intake.formats.records import JudgmentRecord, ResponseRecord, SampleRecord

NAME = "mllm-bench"
TITLE = "MLLM-Bench"
QUESTIONS = "questions_with_criteria.json"
ANCHOR = "anchor.json"
MAJORITY = "mllm-bench"
QUESTION_TYPES = {"open-ended": "open-ended", "close-ended": "closed-ended", "compound": "compound"}
# A provider's words in place of an answer.
FILTERED = re.compile(r"^The response was filtered due to the prompt triggering .{0,40}content management policy", re.S)
NUMBERED = re.compile(r"^[^\S\n]*(\d+)\.(?!\d)\s*", re.M)
VOTES: dict[str, dict[str, Any]] = {
    "answer1": {"choice": "first"},
    "answer2": {"choice": "second"},
    "unable to decide: situation one": {"choice": "undecided", "situation": 1},
    "unable to decide: situation two": {"choice": "undecided", "situation": 2},
}


class Question(BaseModel):
    """A record of the question file."""

    model_config = ConfigDict(strict=True)

    id: int | str
    question: str
    image_path: str | None = None
    level: str | None = None
    capability: str | None = None
    question_type: str | None = None
    url: str | None = None
    criteria: str | None = None


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / QUESTIONS).is_file() or any(path.glob("*_criteria.jsonl*")) or _answers_only(path)
    names = first_names(path)
    return (
        {"id", "image_path", "question", "capability", "criteria"} <= names
        or {"unique_idx", "gen_model_id", "answer"} <= names
        or names == {"id", "model", "answer"}
    )


def _answers_only(path: Path) -> bool:
    first = next(iter(sorted(path.glob("*.jsonl"))), None)
    return first is not None and recognises(first)


def samples(path: Path) -> Iterator[Row | Problem]:
    """Samples with their criteria. An absent image is a warning: 13 of the release are absent."""
    file = path / QUESTIONS if path.is_dir() else path
    manifest = _manifest(file.parent)
    seen: dict[str, str] = {}

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        record, warnings = _sample(row, manifest.get(str(row.data.id), {}))
        yield from warnings
        if record["instruction"] in seen:
            reason = f"sample {record['key']}: is the same as that of sample {seen[record['instruction']]}"
            yield odd(row, "question", reason)
        seen.setdefault(record["instruction"], record["key"])
        yield record

    return converted(validated(json_array(file), Question), sample, SampleRecord)


def anchor(path: Path) -> str:
    """The model that all others are compared with, as the anchor file names it; empty where there is none."""
    file = path / ANCHOR if path.is_dir() else path.parent / ANCHOR
    if not file.is_file():
        return ""
    first = next(iter(json_array(file)), None)
    return str(first.data.get("gen_model_id", "")) if isinstance(first, Row) else ""


def responses(path: Path) -> Iterator[Row | Problem]:
    """Answers of the anchor and of the models: of a directory, all of them."""
    in_folder = existing(path, [ANCHOR]) + (sorted(path.glob("answers/*.jsonl")) or sorted(path.glob("*.jsonl")))
    for file in chosen_files(path, in_folder, f"holds neither {ANCHOR} nor answers/*.jsonl"):
        records = json_array(file) if kind_of(file) == "json" else json_lines(file)
        yield from converted(records, _answer, ResponseRecord)


def judgments(path: Path) -> Iterator[Row | Problem]:
    """Raw votes: two a sample, one in each order. The prompt in them holds criteria and is not taken."""
    in_folder = sorted(path.glob("votes/*.jsonl*")) or sorted(path.glob("*_criteria.jsonl*"))
    for file in chosen_files(path, in_folder, "holds no votes/*.jsonl.gz"):
        vote = partial(_vote, anchor_name=anchor(file.parent) or anchor(file.parent.parent))
        yield from converted(json_lines(file), vote, JudgmentRecord)


def vote_of(text: str) -> dict[str, Any] | None:
    """The vote on the last line of a judge's reply, or None where that line holds no vote."""
    last = next((line for line in reversed(text.strip().splitlines()) if line.strip()), "")
    return VOTES.get(last.strip().strip("*`'\".").lower())


def _manifest(directory: Path) -> dict[str, dict[str, Any]]:
    """What the manifest says of the picture of each sample, by its key; nothing where there is none."""
    file = directory / "images_manifest.json"
    if not file.is_file():
        return {}
    entries = json_value(file)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) and "id" in entry for entry in entries):
        raise BadFile(file, "is no list of pictures with an id each")
    return {str(entry["id"]): entry for entry in entries}


def _sample(row: Row, entry: dict[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    data, problems, key = row.data, [], str(row.data.id)

    def warn(field: str, reason: str) -> None:
        problems.append(odd(row, field, f"sample {key}: {reason}"))

    url, question_type = data.url or "", data.question_type or ""
    if question_type.startswith("http"):
        warn("question_type", "holds an address; it was read as the url and the question type is left open")
        url, question_type = question_type, ""
    elif question_type and question_type not in QUESTION_TYPES:
        warn("question_type", f"{question_type!r} is not one of {', '.join(QUESTION_TYPES)}")
    named = (str(entry.get("file") or ""), data.image_path or "")
    places = _places(key, named)
    picture = {"file": next(filter(None, named), ""), "also": places, "url": url, "required": False}
    if not picture["file"] and not url:
        warn("image_path", "there is none")
    if true := _other_format(named[1], entry):
        warn("image_path", f"{named[1]!r} was released as {true}, whatever its ending says")
    criteria = split_criteria(data.criteria or "")
    if not criteria:
        warn("criteria", "there are none")
    elif not NUMBERED.match(data.criteria.lstrip()):
        warn("criteria", "the first has no number")
    return {
        "key": key,
        "instruction": data.question,
        "images": [picture] if picture["file"] or url else [],
        "question_type": QUESTION_TYPES.get(question_type, question_type),
        "capability": [name for name in (data.level, data.capability) if name],
        "source": "MLLM-Bench",
        "language": "en",
        "criteria": [{"key": str(n), "text": text} for n, text in enumerate(criteria, start=1)],
    }, problems


def _other_format(name: str, entry: dict[str, Any]) -> str:
    """The format that the manifest states of a picture, where its ending says another; else ""."""
    ending, stated = Path(name).suffix.lower().lstrip(".").upper().replace("JPG", "JPEG"), entry.get("orig_format")
    return str(stated) if ending and stated and ending != stated else ""


def _places(key: str, named: Iterable[str]) -> tuple[str, ...]:
    """Where the picture may lie: where the manifest or the record says, else ``images/<id>`` with any ending."""
    stated = [name.removeprefix("./").removeprefix("data/") for name in named if name]
    return (*stated, *(f"images/{key}.{ending}" for ending in PICTURE_ENDINGS))


def split_criteria(text: str) -> list[str]:
    """The criteria of one numbered text. A number counts at the start of a line where it goes on from the last;
    the first may lack it, and a line without belongs to the criterion before."""
    pieces, start, expected = [], 0, 1
    for match in NUMBERED.finditer(text):
        number = int(match[1])
        unnumbered = (expected, number) == (1, 2) and text[: match.start()].strip()
        if number != expected and not unnumbered:
            continue
        pieces.append(text[start : match.start()])
        start, expected = match.end(), number + 1
    pieces.append(text[start:])
    return [piece.strip() for piece in pieces if piece.strip()]


def _answer(row: Row) -> Iterator[dict[str, Any]]:
    data = row.data
    key = data.get("unique_idx", data.get("id"))
    if key is None:
        raise BadRow("id", "is missing")
    require(data, "answer")
    text = "" if data["answer"] is None else data["answer"]
    if not isinstance(text, str):
        raise BadRow("answer", "is not text")
    record = {"sample": key, "model": data.get("gen_model_id") or data.get("model") or "", "text": text}
    if FILTERED.match(text):
        record |= {"status": "filtered", "reason": "the provider's content filter answered instead of the model"}
    yield record


def _vote(row: Row, anchor_name: str) -> Iterator[dict[str, Any]]:
    data = row.data
    try:
        key, _, order = str(data["unique_idx"]).rpartition("_")
        first, second = data["model_1"], data["model_2"]
        completion = data["response"]
        choice = completion["choices"][0]
        content = choice["message"].get("content")
        usage = completion.get("usage") or {}
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise BadRow("response", f"is not a vote of this format ({error})") from None
    # Candidate, then anchor. Which of the two is the anchor the file does not say.
    turned = first == anchor_name if anchor_name else order == "1"
    vote = vote_of(content) if isinstance(content, str) else None
    if vote is None:
        filtered = choice.get("finish_reason") == "content_filter"
        status = "filtered" if filtered else "empty" if not (content or "").strip() else "parse_failed"
        vote = {"status": status, "reason": "no vote on the last line"}
    elif turned:
        vote = vote | {"choice": {"first": "second", "second": "first"}.get(vote["choice"], vote["choice"])}
    yield {
        "kind": "pair",
        "protocol": "pairwise-criteria",
        "sample": key,
        "responses": [second, first] if turned else [first, second],
        "order": [first, second],
        "judge": completion.get("model") or data.get("gen_model_id") or "",
        "reported_model": completion.get("model") or "",
        "settings": {"order": "both", "criteria": True, "context": "image", "reasoning": "none"},
        "raw": content if isinstance(content, str) else None,
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
    } | vote
