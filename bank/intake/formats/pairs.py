"""Comparisons, one row a pair: a question, two models with their answers, and who won.

``prompt, model_a, response_a, model_b, response_b, winner`` as people write it down. A row holds everything at once:
sample, responses, and a label or a judgment.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.reading import BadRow, Problem, Row, rows
from bank.intake.formats.seen import SeenAnswers
from bank.intake.formats.wide import Read, ReadRow, model_in, text_in
from bank.models.verdict import GRADED
from bank.text.names import as_stored
from bank.text.words import meanings_of

NAME = "pairs"
TITLE = "Comparisons (a pair a row)"
VERDICT = "winner"
BOTH_BAD = "both bad"  # a flag of labels
NEEDED = ("prompt", "model_a", "response_a", "model_b", "response_b", "winner")
FIELDS = (*NEEDED, *"preference reply_status key image annotator judge comment category language tstamp flags".split())
WINNERS = meanings_of(__file__, "winners")  # by a word without brackets around it and in lower case


def recognises(path: Path) -> bool:
    return wide.has_columns(path, NEEDED)


def parts(path: Path, read: Read = rows) -> set[str]:
    return wide.parts_of(path, read, (VERDICT, "preference"))


def samples(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.samples_of(_pairs(path, read), FIELDS)


def responses(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.responses_of(_pairs(path, read, warnings=False), "response_a", "response_b")


def labels(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.labels_of(_pairs(path, read, warnings=False), wide.People(path, read, noun="pair"), _label)


def _label(pair: ReadRow) -> dict[str, Any]:
    return _about(pair) | ({"flags": [BOTH_BAD, *wide.flags_in(pair.data)]} if _winner(pair) == BOTH_BAD else {})


def judgments(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.judgments_of(_pairs(path, read, warnings=False), _item, _judgment)


def _judgment(pair: ReadRow) -> dict[str, Any]:
    return _about(pair) | ({"reason": BOTH_BAD} if _winner(pair) == BOTH_BAD else {})


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


def _winner(pair: ReadRow) -> str:
    return "" if _is_graded(pair) else winner_of(pair.data.get("winner"), [ref["model"] for ref in pair.refs])


def _is_graded(pair: ReadRow) -> bool:
    return pair.data.get("preference") not in (None, "")


def _about(pair: ReadRow) -> dict[str, Any]:
    """The verdict of a row: who won, or how far the first is preferred, from 0 to 1."""
    about = _item(pair)
    if _is_graded(pair):
        return about | {"preference": wide.number_in(pair.data, "preference")}
    winner = _winner(pair)
    return about | {"protocol": "pair", "choice": "tie" if winner == BOTH_BAD else winner}


def _item(pair: ReadRow) -> dict[str, Any]:
    return pair.item | {"kind": "pair", "protocol": GRADED if "preference" in pair.data else "pair"}


def _pairs(path: Path, read: Read, *, warnings: bool = True) -> Iterator[Row | Problem]:
    """The rows of a file, each read."""
    answers, questions = SeenAnswers(), wide.Questions()

    def pair(row: Row) -> ReadRow:
        data = row.data
        models = [model_in(data, name) for name in ("model_a", "model_b")]
        texts = [text_in(data, name) for name in ("response_a", "response_b")]
        question = questions.read(row)
        refs, repeated = answers.places(question.key, models, texts)
        return ReadRow(question, texts, refs, [ref["variant"] for ref in refs], repeated, data)

    return wide.read_as(pair, read(path), warnings=warnings)
