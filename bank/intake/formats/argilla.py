"""Records of Argilla, as its datasets export them to JSON or JSON Lines, each response of a person one label.

``metadata`` of a record names the item as Label Studio's ``data`` does here: ``sample`` (else the record's ``id`` or
``external_id``) and ``responses`` or ``models``. Questions are read by their names: ``choice`` (or ``label`` or
``preference``), ``score`` (or ``rating``), ``ranking``, ``option``, ``answer``, ``agree``, ``grade``,
``hallucination``, ``comment``, ``part:KEY``; with the protocol ``label``, ``label`` is the ``option``. Both shapes are
taken: responses by question (Argilla 2), and by person with a status (Argilla 1), of which the submitted ones count.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats.label_studio import PART, YES_OR_NO, add, columns_of, kind_for, responses_of, who
from bank.intake.formats.reading import BadFile, BadRow, Problem, Row, converted, head, rows
from bank.intake.formats.records import LabelRecord
from bank.models.verdict import is_of_categories

NAME = "argilla"
TITLE = "Argilla records (JSON)"
NAMES = {"label": "choice", "preference": "choice", "rating": "score"}
QUESTIONS = ("choice", "option", "grade", "situation", "confidence", *YES_OR_NO)
SUBMITTED = ("submitted", None)


def recognises(path: Path) -> bool:
    if path.is_dir():
        return False
    try:
        start = head(path)
    except BadFile:
        return False
    return b'"fields"' in start and b'"responses"' in start and b'"metadata"' in start


def parts(path: Path) -> set[str]:
    return {"labels"}


def labels(path: Path) -> Iterator[Row | Problem]:
    """One label for each person who answered a record."""
    return converted(rows(path), _labels, LabelRecord)


def _labels(row: Row) -> list[dict[str, Any]]:
    try:
        return _records(row.data)
    except ValueError as error:
        raise BadRow("responses", str(error)) from None


def _records(data: dict[str, Any]) -> list[dict[str, Any]]:
    about = data.get("metadata") if isinstance(data.get("metadata"), dict) else {}
    assert isinstance(about, dict)
    sample = about.get("sample") or data.get("external_id") or data.get("id") or ""
    responses = responses_of(about)
    kind = about.get("kind") or kind_for(responses)
    base = {"kind": kind, "sample": sample, "responses": responses}
    base |= {name: about[name] for name in ("protocol", "campaign") if about.get(name)}
    labels_of_people = []
    for person, answers in _by_person(data.get("responses")).items():
        verdict: dict[str, Any] = {}
        for question, value in answers.items():
            category = question == "label" and is_of_categories(base.get("protocol"))
            add(_answer("option" if category else question, value, responses), verdict)
        labels_of_people.append(base | {"annotator": person} | verdict)
    return labels_of_people


def _by_person(responses: Any) -> dict[str, dict[str, Any]]:
    """What each person said, by question."""
    people: dict[str, dict[str, Any]] = {}
    if isinstance(responses, dict):
        for question, answers in responses.items():
            for answer in answers if isinstance(answers, list) else ():
                if isinstance(answer, dict) and answer.get("status") in SUBMITTED:
                    people.setdefault(who(answer.get("user_id")), {})[question] = answer.get("value")
        return people
    if not isinstance(responses, list):
        raise ValueError("responses are neither by question nor by person")
    for answer in responses:
        if isinstance(answer, dict) and answer.get("status") in SUBMITTED and isinstance(answer.get("values"), dict):
            values = {
                name: value.get("value") if isinstance(value, dict) else value
                for name, value in answer["values"].items()
            }
            people[who(answer.get("user_id"))] = values
    return people


def _answer(question: str, value: Any, responses: list[Any]) -> dict[str, Any]:
    """What the answer to one question says. Raises ValueError."""
    name = NAMES.get(question, question)
    if name == "score":
        value = float(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    elif name == "ranking":
        value = _ranked(value)
    elif name == "comment":
        value = str(value or "")
    elif not name.startswith(PART) and name not in QUESTIONS:
        raise ValueError(f"the question {question!r} is none that a label holds; rename it as the documentation says")
    return columns_of(name, value, responses)


def _ranked(value: Any) -> list[list[Any]]:
    """``[{"value": "model", "rank": 1}, ...]`` as groups, best first."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError("a ranking is a list of values with ranks")
    ranks = sorted({one["rank"] for one in value if isinstance(one.get("rank"), int)})
    return [[one.get("value") for one in value if one.get("rank") == rank] for rank in ranks]
