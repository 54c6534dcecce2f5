"""Answers, one row an answer: a question, a model with its answer, and perhaps the score that somebody gave it.

``prompt, model, response`` and ``score, annotator`` or ``score, judge``. A row holds everything at once: sample,
response, and a label or a judgment. Several scores of one answer are several rows.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.reading import Problem, Row, rows
from bank.intake.formats.seen import SeenAnswers
from bank.intake.formats.wide import Read, ReadRow, model_in, text_in, value_in

NAME = "answers"
TITLE = "Answers (one a row)"
VERDICT = "score"
NEEDED = ("prompt", "model", "response")
FIELDS = (
    *NEEDED,
    *"score reply_status key image annotator judge comment answer hint category language tstamp flags".split(),
)


def recognises(path: Path) -> bool:
    return wide.has_columns(path, NEEDED)


def parts(path: Path, read: Read = rows) -> set[str]:
    return wide.parts_of(path, read, (VERDICT,))


def samples(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.samples_of(_answers(path, read), FIELDS)


def responses(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.responses_of(_answers(path, read, warnings=False), "response")


def labels(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.labels_of(_answers(path, read, warnings=False), wide.People(path, read, noun="answer"), _scored)


def judgments(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.judgments_of(_answers(path, read, warnings=False), _item, _scored)


def _scored(answer: ReadRow) -> dict[str, Any]:
    """The verdict of a row; empty where nobody has scored the answer."""
    if value_in(answer.data, VERDICT) is None:
        return {}
    return _item(answer) | {"score": wide.number_in(answer.data, VERDICT)}


def _item(answer: ReadRow) -> dict[str, Any]:
    return answer.item | {"kind": "score", "protocol": "score"}


def _answers(path: Path, read: Read, *, warnings: bool = True) -> Iterator[Row | Problem]:
    """The rows of a file, each read."""
    seen, questions = SeenAnswers(), wide.Questions()

    def answer(row: Row) -> ReadRow:
        model = model_in(row.data, "model")
        text = text_in(row.data, "response")
        question = questions.read(row)
        variant = text_in(row.data, "variant")
        other, repeated = seen.place(question.key, f"{model}\0{variant}", text)
        ref = {"model": model, "variant": " ".join(filter(None, (variant, other)))}
        return ReadRow(question, [text], [ref], [other], [repeated], row.data)

    return wide.read_as(answer, read(path), warnings=warnings)
