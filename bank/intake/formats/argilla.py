"""Records of Argilla, as its datasets export them to JSON or JSON Lines, each response of a person one label.

``metadata`` of a record names the item as Label Studio's ``data`` does here: ``sample`` (else the record's ``id`` or
``external_id``) and ``responses`` or ``models``, with ``variants`` beside them. Questions are read by their names:
``choice`` (or ``label``), ``score`` (or ``rating``), ``preference`` (with the protocol ``pair-graded``, else a choice),
``ranking`` (or ``rank_1``, ``rank_2``, the place of each answer), ``option``, ``answer``, ``agree``, ``grade``,
``hallucination``, ``comment``, ``part:KEY``; with the protocol ``label``, ``label`` is the ``option``. Another name is
read by the question's type, from the settings that Argilla writes beside the records, or by the answer itself where it
can mean one thing only. Both shapes are taken: responses by question (Argilla 2), and by person with a status (Argilla
1), of which the submitted ones count.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats.label_studio import (
    CHOICES,
    PART,
    YES_NO,
    YES_OR_NO,
    add,
    called,
    columns_of,
    kind_for,
    responses_of,
    who,
)
from bank.intake.formats.reading import (
    MAX_FIRST,
    BadRow,
    Problem,
    Row,
    converted,
    is_number,
    json_value,
    rows,
    start_of,
)
from bank.intake.formats.records import LabelRecord
from bank.models.verdict import GRADED, is_of_categories

NAME = "argilla"
TITLE = "Argilla records (JSON)"
NAMES = {"label": "choice", "preference": "choice", "rating": "score"}
QUESTIONS = ("choice", "score", "ranking", "option", "grade", "situation", "confidence", "comment", *YES_OR_NO)
RANK = re.compile(r"rank_[1-9]")
RECORDS, SETTINGS = "records.json", ".argilla/settings.json"  # of the folder that Argilla writes
YES_NO_PROTOCOL = "yes-no"
SUBMITTED = ("submitted", None)


def recognises(path: Path) -> bool:
    if path.is_dir():
        return (path / SETTINGS).is_file() and (path / RECORDS).is_file()
    start = start_of(path, MAX_FIRST)  # a picture in a field is as long as itself
    return b'"fields"' in start and b'"responses"' in start and b'"metadata"' in start


def parts(path: Path) -> set[str]:
    return {"labels"}


def labels(path: Path) -> Iterator[Row | Problem]:
    """One label for each person who answered a record; of a file, or of the folder that Argilla writes."""
    records = path / RECORDS if path.is_dir() else path
    types = _types(records.parent / SETTINGS)

    def labels_of(row: Row) -> list[dict[str, Any]]:
        try:
            return _records(row.data, types)
        except ValueError as error:
            raise BadRow("responses", str(error)) from None

    return converted(rows(records), labels_of, LabelRecord)


def _types(settings: Path) -> dict[str, str]:
    """The types of a dataset's questions by name; none without its settings."""
    found = json_value(settings) if settings.is_file() else {}
    questions = found.get("questions") if isinstance(found, dict) else None
    named = [one for one in questions or () if isinstance(one, dict) and isinstance(one.get("settings"), dict)]
    return {str(one.get("name")): str(one["settings"].get("type")) for one in named}


def _records(data: dict[str, Any], types: dict[str, str]) -> list[dict[str, Any]]:
    about = data.get("metadata") if isinstance(data.get("metadata"), dict) else {}
    assert isinstance(about, dict)
    sample = about.get("sample") or data.get("external_id") or data.get("id") or ""
    responses = _with_variants(responses_of(about), about.get("variants"))
    names = called(responses)
    kind = about.get("kind") or kind_for(responses)
    base = {"kind": kind, "sample": sample, "responses": responses}
    base |= {name: about[name] for name in ("protocol", "campaign") if about.get(name)}
    labels_of_people = []
    for person, answers in _by_person(data.get("responses")).items():
        verdict: dict[str, Any] = {}
        places: dict[str, Any] = {}
        for question, value in answers.items():
            if RANK.fullmatch(question):
                places[question.removeprefix("rank_")] = value
            elif value is not None:
                name = _name(question, value, types.get(question, ""), base)
                add(_answer(name, value, names), verdict)
        if places:
            ranked = [{"value": number, "rank": place} for number, place in places.items()]
            add(_answer("ranking", ranked, names), verdict)
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


def _with_variants(responses: list[Any], variants: Any) -> list[Any]:
    """The models with the variants that stand beside them."""
    if not isinstance(variants, list) or len(variants) != len(responses):
        return responses
    return [{"model": one, "variant": variant} for one, variant in zip(responses, variants, strict=True)]


def _name(question: str, value: Any, type: str, about: dict[str, Any]) -> str:
    """What a question asks: by its name, else by its type and the answer. Raises ValueError if that may be several
    things.
    """
    of_categories = is_of_categories(about.get("protocol"))
    if question == "label" and of_categories:
        return "option"
    if question == "preference" and about.get("protocol") == GRADED:
        return question
    name = NAMES.get(question, question)
    if name in QUESTIONS or name.startswith(PART):
        return name
    alone = len(about["responses"]) < 2
    if type == "ranking" or (isinstance(value, list) and all(isinstance(one, dict) for one in value)):
        return "ranking"
    if type == "text":
        return "comment"
    if is_number(value) and alone:
        return "score"
    word = str(value).strip().lower()
    if isinstance(value, str) and of_categories and type:
        return "option"
    if isinstance(value, str) and about["kind"] == "pair" and word in CHOICES:
        return "choice"
    if word in YES_NO and about.get("protocol") == YES_NO_PROTOCOL:
        return "answer"
    raise ValueError(
        f"the question {question!r} may mean several things: rename it as the documentation says, or bring the folder "
        f"with {SETTINGS} that Argilla's to_disk writes, and name the protocol in the metadata"
    )


def _answer(name: str, value: Any, names: dict[str, Any]) -> dict[str, Any]:
    """What the answer to one question says. Raises ValueError."""
    if name == "ranking":
        value = _ranked(value)
    elif name == "comment":
        value = str(value)
    return columns_of(name, value, names)


def _ranked(value: Any) -> list[list[Any]]:
    """``[{"value": "model", "rank": 1}, ...]`` as groups, best first."""
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise ValueError(
            "a ranking is a list of values with ranks; where Argilla's client wrote a list of names, it has lost the "
            "ranks (argilla-io/argilla#5712): ask for places, rank_1, rank_2, ..."
        )
    if not all(isinstance(one.get("rank"), int) for one in value):
        raise ValueError("a ranking leaves an answer without its rank")
    ranks = sorted({one["rank"] for one in value})
    return [[one.get("value") for one in value if one["rank"] == rank] for rank in ranks]
