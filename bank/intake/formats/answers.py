"""Answers, one row an answer: a question, a model with its answer, and perhaps the score that somebody gave it.

``prompt, model, response`` and ``score, annotator`` or ``score, judge``. A row holds everything at once: sample,
response, and a label or a judgment. Several scores of one answer are several rows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.reading import Problem, Row, converted, rows
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord
from bank.intake.formats.seen import SeenAnswers
from bank.intake.formats.wide import Question, Read, model_in, text_in, value_in

NAME = "answers"
TITLE = "Answers (one a row)"
VERDICT = "score"
NEEDED = ("prompt", "model", "response")
FIELDS = (
    *NEEDED,
    *"score reply_status key image annotator judge comment answer hint category language tstamp flags".split(),
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A row, read."""

    question: Question
    text: str
    ref: dict[str, str]
    other: str  # than the model's first answer: the name of the variant
    repeated: bool  # whether the same answer stood in a row before
    data: dict[str, Any]


def recognises(path: Path) -> bool:
    return wide.has_columns(path, NEEDED)


def parts(path: Path, read: Read = rows) -> set[str]:
    return wide.parts_of(path, read, (VERDICT,))


def samples(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.samples_of(_answers(path, read), FIELDS)


def responses(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    """Every answer once. A model's second answer to the same question is a variant named by a hash of its text."""
    return converted(_answers(path, read, warnings=False), _response, ResponseRecord)


def _response(row: Row) -> Iterator[Problem | dict[str, Any]]:
    answer: Answer = row.data
    if not answer.repeated:
        yield from wide.odd_answer(row, "response", answer.text, answer.ref | {"variant": answer.other})
        yield {"sample": answer.question.key, "text": answer.text} | answer.ref


def labels(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    """What people say."""
    people = wide.People(path, read, noun="answer")

    def label(row: Row) -> Iterator[Problem | dict[str, Any]]:
        answer: Answer = row.data
        if wide.named_by(answer.data)[0] == "judgments" or value_in(answer.data, "score") is None:
            return
        about = _about(answer)
        name, warnings = people.name(row, answer.data, (answer.question.key, *answer.ref.values()))
        yield from warnings
        more = {"annotator": name, "flags": wide.flags_in(answer.data), "comment": text_in(answer.data, "comment")}
        yield about | more | wide.time_of(answer.data)

    return converted(_answers(path, read, warnings=False), label, LabelRecord)


def judgments(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return converted(_answers(path, read, warnings=False), _judgment, JudgmentRecord)


def _judgment(row: Row) -> Iterator[dict[str, Any]]:
    answer: Answer = row.data
    part, name = wide.named_by(answer.data)
    more = {"judge": name, "settings": {"criteria": False}, "analysis": value_in(answer.data, "comment")}
    status = wide.failed(answer.data)
    if part == "judgments" and status:
        yield _item(answer) | more | status
    elif part == "judgments" and value_in(answer.data, "score") is not None:
        yield _about(answer) | more


def _about(answer: Answer) -> dict[str, Any]:
    return _item(answer) | {"score": wide.number_in(answer.data, "score")}


def _item(answer: Answer) -> dict[str, Any]:
    about = {"kind": "score", "protocol": "score", "sample": answer.question.key}
    return about | {"responses": [answer.ref], "texts": [answer.text]}


def _answers(path: Path, read: Read, *, warnings: bool = True) -> Iterator[Row | Problem]:
    """The rows of a file, each read as an Answer."""
    seen, questions = SeenAnswers(), wide.Questions()

    def answer(row: Row) -> Answer:
        model = model_in(row.data, "model")
        text = text_in(row.data, "response")
        question = questions.read(row)
        variant = text_in(row.data, "variant")
        other, repeated = seen.place(question.key, f"{model}\0{variant}", text)
        ref = {"model": model, "variant": " ".join(filter(None, (variant, other)))}
        return Answer(question, text, ref, other, repeated, row.data)

    return wide.read_as(answer, read(path), warnings=warnings)
