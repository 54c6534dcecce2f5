"""MLLM-as-a-Judge as released: items to score, to compare and to rank, with a human verdict, and judges' results.

A row holds everything: picture, instruction, the answers, people's verdict (``human``, of a batch ``human_answer``),
and in result files ``result`` with a judge's verdict and analysis. Rows speak of the same sample when data set, picture
(with or without ``image/`` before its name) and instruction are the same; its key is the picture's number and a hash of
the three, because the files count scores, pairs and batches in spaces of their own.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from bank.intake.formats.reading import (
    BadRow,
    Problem,
    Row,
    chosen_files,
    converted,
    first_names,
    odd,
    rows,
    short_hash,
    validated,
)
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord, SampleRecord
from bank.intake.formats.seen import SeenAnswers

NAME = "mllm-as-a-judge"
TITLE = "MLLM-as-a-Judge"
SCORE_SCALE = [
    {"value": value, "label": label}
    for value, label in enumerate(("Poor", "Fair", "Average", "Good", "Excellent"), start=1)
]
ANNOTATOR = "human"
COMMON = {"image_path", "original_dataset", "instruction"}
CHOICES = {"A": "first", "B": "second", "C": "tie"}
# A verdict in double brackets, white space aside: [[3]], [[A]]; [[C],[D],[B],[A]] or [[C]],[[D]],[[B]],[[A]].
SINGLE = re.compile(r"\[\[\w\]\]")
SEVERAL = re.compile(r"\[\[\w\]\]?(?:[,>]?\[{1,2}\w\]{1,2})+")


class Answer(BaseModel):
    model_config = ConfigDict(strict=True)

    name: str
    answer: str


class Result(BaseModel):
    """A judge's part of a row."""

    model_config = ConfigDict(strict=True)

    name: str = ""
    judge: str | int | None = None
    analysis: str | None = None


class Common(BaseModel):
    model_config = ConfigDict(strict=True)

    id: int | str | None = None
    image_path: str
    original_dataset: str
    instruction: str
    human: str | int | None = None
    result: Result | None = None


class Score(Common):
    name: str
    answer: str


class Pair(Common):
    answer1: Answer
    answer2: Answer


class Batch(Common):
    answers: list[Answer] = Field(min_length=3, max_length=8)
    human_answer: str | None = None


SHAPES: dict[str, type[Common]] = {"score": Score, "pair": Pair, "batch": Batch}


@dataclass(frozen=True, slots=True)
class Item:
    """A row, read."""

    kind: str
    key: str
    image: str
    data: Any  # Score, Pair or Batch
    answers: list[Answer]
    refs: list[dict[str, str]]
    repeated: list[bool]  # whether the same answer stood in a row before


def recognises(path: Path) -> bool:
    if path.is_dir():
        return bool(_own_files(path))
    return _kind(first_names(path)) != ""


def samples(path: Path) -> Iterator[Row | Problem]:
    done: set[str] = set()
    ids: dict[tuple[str, object], str] = {}

    def sample(row: Row) -> Iterator[Problem | dict[str, Any]]:
        item: Item = row.data
        if item.data.id is not None and ids.setdefault((item.kind, item.data.id), item.key) != item.key:
            reason = f"{item.data.id} stands above with another picture or instruction; these are two samples"
            yield odd(row, "id", reason)
        if item.key in done:
            return
        done.add(item.key)
        yield {
            "key": item.key,
            "instruction": item.data.instruction,
            "images": [{"file": item.image, "also": (f"image/{item.image}",), "required": False}],
            "source": item.data.original_dataset,
            "group": item.image,
            "language": "en",
        }

    return converted(_items(path), sample, SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    """Every answer once. A model's second answer to the same instruction is a variant named by a hash of its text."""
    return converted(_items(path), _answers, ResponseRecord)


def _answers(row: Row) -> Iterator[Problem | dict[str, Any]]:
    item: Item = row.data
    for answer, ref, repeated in zip(item.answers, item.refs, item.repeated, strict=True):
        if repeated:
            continue
        if ref["variant"]:
            reason = f"{answer.name!r} answered this instruction otherwise above; kept as variant {ref['variant']}"
            yield odd(row, "answer", reason)
        yield {"sample": item.key, "text": answer.answer} | ref


def labels(path: Path) -> Iterator[Row | Problem]:
    return converted(_items(path), _label, LabelRecord)


def _label(row: Row) -> Iterator[dict[str, Any]]:
    item: Item = row.data
    field = "human_answer" if item.kind == "batch" and item.data.human_answer is not None else "human"
    value = getattr(item.data, field)
    if value is None:
        return
    verdict = verdict_of(item.kind, str(value), len(item.refs))
    if verdict is None:
        raise BadRow(field, f"{value!r} is no verdict on {_article(item.kind)}")
    yield _about(item, verdict) | {"annotator": ANNOTATOR}


def judgments(path: Path) -> Iterator[Row | Problem]:
    return converted(_items(path), _judgment, JudgmentRecord)


def verdict_of(kind: str, text: str, count: int) -> dict[str, Any] | None:
    """``3``, ``A``, ``CDBA`` or the same in brackets (``[[3]]``, ``[[C], [D], [B], [A]]``) as verdict columns, with a
    ranking as positions; None for anything else."""
    plain = re.sub(r"[\[\]\s,>]", "", text)
    if kind == "score":
        return {"score": float(plain)} if re.fullmatch(r"[1-5]", plain) else None
    if kind == "pair":
        return {"choice": CHOICES[plain]} if plain in CHOICES else None
    places = [ord(letter) - ord("A") for letter in plain]
    return {"ranking": places} if sorted(places) == list(range(count)) else None


def spelled_in(analysis: str, kind: str) -> str:
    """The last verdict in double brackets of an analysis; empty where there is none."""
    verdicts = (SEVERAL if kind == "batch" else SINGLE).findall(re.sub(r"\s", "", analysis))
    return verdicts[-1] if verdicts else ""


def _judgment(row: Row) -> Iterator[Problem | dict[str, Any]]:
    item: Item = row.data
    result: Result | None = item.data.result
    if result is None:
        return
    stated = "" if result.judge is None else str(result.judge).strip()
    spelled = spelled_in(result.analysis or "", item.kind)
    verdict, spelled_verdict = (
        verdict_of(item.kind, text, len(item.refs)) if text else None for text in (stated, spelled)
    )
    if not stated and spelled_verdict is not None:
        verdict = spelled_verdict
        yield odd(row, "result.judge", "is empty; the verdict is taken from the analysis")
    elif verdict is not None and spelled_verdict is not None and spelled_verdict != verdict:
        yield odd(row, "result.judge", f"is {stated!r}, but the analysis ends with {spelled}; kept as it is")
    record = _about(item, verdict or {})
    record |= {"judge": result.name, "analysis": result.analysis}
    record |= {"settings": {"order": "fixed", "criteria": False, "context": "image"}}
    if verdict is None:
        empty = not stated and not (result.analysis or "").strip()
        reason = f"{stated!r} is no verdict on {_article(item.kind)}" if stated else "no verdict is given"
        record |= {"status": "empty" if empty else "parse_failed", "reason": reason}
        yield odd(row, "result.judge", f"{reason}; kept as failed")
    yield record


def _about(item: Item, verdict: dict[str, Any]) -> dict[str, Any]:
    """A verdict with what it is about; a ranking by response."""
    if "ranking" in verdict:
        verdict = {"ranking": [[item.refs[place]] for place in verdict["ranking"]]}
    texts = [answer.answer for answer in item.answers]
    return {
        "kind": item.kind,
        "protocol": item.kind,
        "sample": item.key,
        "responses": item.refs,
        "texts": texts,
    } | verdict


def _article(kind: str) -> str:
    expected = {"score": "1 to 5", "pair": "A, B or C", "batch": "every letter of the answers once"}
    return f"a {kind} ({expected[kind]})"


def _kind(names: set[str] | frozenset[str]) -> str:
    if not names >= COMMON:
        return ""
    if "answers" in names:
        return "batch"
    if {"answer1", "answer2"} <= names:
        return "pair"
    return "score" if {"name", "answer"} <= names else ""


def _own_files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.json*")) if file.is_file() and _kind(first_names(file))]


def _items(path: Path) -> Iterator[Row | Problem]:
    """The rows of a file, or of all files of a folder in the order of their names, each read as an Item."""
    files = chosen_files(path, _own_files(path), "holds no file of score, pair or batch items")
    seen = SeenAnswers()
    for row in (row for file in files for row in rows(file)):
        if isinstance(row, Problem):
            yield row
        elif kind := _kind(set(row.data)):
            for checked in validated([row], SHAPES[kind]):
                yield checked if isinstance(checked, Problem) else _item(checked, kind, seen)
        else:
            missing = next(iter(sorted(COMMON - set(row.data))), "answer")
            yield Problem(row.where, missing, "is missing")


def _item(row: Row, kind: str, seen: SeenAnswers) -> Row:
    data = row.data
    image = _image(data.image_path)
    identity = json.dumps([data.original_dataset, image, data.instruction], ensure_ascii=True)
    key = f"{Path(image).stem}-{short_hash(identity)}"
    if isinstance(data, Score):
        answers = [Answer(name=data.name, answer=data.answer)]
    else:
        answers = [data.answer1, data.answer2] if isinstance(data, Pair) else data.answers
    names, texts = [answer.name for answer in answers], [answer.answer for answer in answers]
    refs, repeated = seen.places(key, names, texts)
    return Row(row.where, Item(kind, key, image, data, answers, refs, repeated))


def _image(path: str) -> str:
    """The picture's name: ``image/205.jpg`` and ``205.jpg`` are the same."""
    return path.removeprefix("./").removeprefix("image/")
