"""Comparisons, one row a pair: a question, two models with their answers, and who won.

``prompt, model_a, response_a, model_b, response_b, winner`` as people write it down. A row holds everything at once:
sample, responses, and a label or a judgment. Canonical order is that of the row.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.reading import (
    BadRow,
    Problem,
    Row,
    converted,
    rows,
)
from bank.intake.formats.records import JudgmentRecord, LabelRecord, ResponseRecord
from bank.intake.formats.seen import SeenAnswers
from bank.intake.formats.wide import Question, Read, model_in, text_in, value_in
from bank.models.verdict import GRADED
from bank.text.names import as_stored

NAME = "pairs"
TITLE = "Comparisons (a pair a row)"
VERDICT = "winner"
BOTH_BAD = "both bad"  # a flag of labels
NEEDED = ("prompt", "model_a", "response_a", "model_b", "response_b", "winner")
FIELDS = (*NEEDED, *"preference reply_status key image annotator judge comment category language tstamp flags".split())
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

    question: Question
    texts: list[str]
    refs: list[dict[str, str]]
    repeated: list[bool]  # whether the same answer stood in a row before
    data: dict[str, Any]

    @property
    def models(self) -> list[str]:
        return [ref["model"] for ref in self.refs]


def recognises(path: Path) -> bool:
    return wide.has_columns(path, NEEDED)


def parts(path: Path, read: Read = rows) -> set[str]:
    return wide.parts_of(path, read, (VERDICT, "preference"))


def samples(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return wide.samples_of(_pairs(path, read), FIELDS)


def responses(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    """Every answer once. A model's second answer to the same question is a variant named by a hash of its text."""
    return converted(_pairs(path, read, warnings=False), _answers, ResponseRecord)


def _answers(row: Row) -> Iterator[Problem | dict[str, Any]]:
    pair: Pair = row.data
    for side, text, ref, repeated in zip("ab", pair.texts, pair.refs, pair.repeated, strict=True):
        if not repeated:
            yield from wide.odd_answer(row, f"response_{side}", text, ref)
            yield {"sample": pair.question.key, "text": text} | ref


def labels(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    """What people say."""
    people = wide.People(path, read, noun="pair")

    def label(row: Row) -> Iterator[Problem | dict[str, Any]]:
        pair: Pair = row.data
        if wide.named_by(pair.data)[0] == "judgments":
            return
        about = _about(pair)
        name, warnings = people.name(row, pair.data, (pair.question.key, frozenset(map(tuple, _named(pair)))))
        yield from warnings
        flags = wide.flags_in(pair.data)
        if _winner(pair) == BOTH_BAD:
            flags = [BOTH_BAD, *flags]
        more = {"annotator": name, "flags": flags, "comment": text_in(pair.data, "comment")}
        yield about | more | wide.time_of(pair.data)

    return converted(_pairs(path, read, warnings=False), label, LabelRecord)


def _named(pair: Pair) -> list[tuple[str, str]]:
    return [(ref["model"], ref["variant"]) for ref in pair.refs]


def judgments(path: Path, read: Read = rows) -> Iterator[Row | Problem]:
    return converted(_pairs(path, read, warnings=False), _judgment, JudgmentRecord)


def _judgment(row: Row) -> Iterator[dict[str, Any]]:
    pair: Pair = row.data
    part, name = wide.named_by(pair.data)
    if part == "judgments":
        more = {"judge": name, "settings": {"criteria": False}, "analysis": value_in(pair.data, "comment")}
        if status := wide.failed(pair.data):
            yield _item(pair) | more | status | {"protocol": GRADED if "preference" in pair.data else "pair"}
            return
        yield _about(pair) | more | ({"reason": BOTH_BAD} if _winner(pair) == BOTH_BAD else {})


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


def _winner(pair: Pair) -> str:
    return "" if _is_graded(pair) else winner_of(pair.data.get("winner"), pair.models)


def _is_graded(pair: Pair) -> bool:
    return pair.data.get("preference") not in (None, "")


def _about(pair: Pair) -> dict[str, Any]:
    """The verdict of a row: who won, or how far the first is preferred, from 0 to 1."""
    about = _item(pair)
    if _is_graded(pair):
        return about | {"protocol": GRADED, "preference": wide.number_in(pair.data, "preference")}
    winner = _winner(pair)
    return about | {"protocol": "pair", "choice": "tie" if winner == BOTH_BAD else winner}


def _item(pair: Pair) -> dict[str, Any]:
    return {"kind": "pair", "sample": pair.question.key, "responses": pair.refs, "texts": pair.texts}


def _pairs(path: Path, read: Read, *, warnings: bool = True) -> Iterator[Row | Problem]:
    """The rows of a file, each read as a Pair."""
    answers, questions = SeenAnswers(), wide.Questions()

    def pair(row: Row) -> Pair:
        data = row.data
        models = [model_in(data, name) for name in ("model_a", "model_b")]
        texts = [text_in(data, "response_a"), text_in(data, "response_b")]
        question = questions.read(row)
        places = [answers.place(question.key, model, text) for model, text in zip(models, texts, strict=True)]
        refs = [{"model": model, "variant": variant} for model, (variant, _) in zip(models, places, strict=True)]
        return Pair(question, texts, refs, [repeated for _, repeated in places], data)

    return wide.read_as(pair, read(path), warnings=warnings)
