"""Label Studio's JSON export: tasks with annotations, each annotation one label.

``data`` of a task names the item: the sample's key (``sample``, ``key`` or ``sample_key``) and the models whose
responses were shown, in order (``responses`` or ``models``, or ``model_a`` and ``model_b``). What a region says is told
by its type, and where that is open by the name of its control (``from_name``). Cancelled annotations are passed over.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bank.intake.formats.reading import BadFile, Problem, Row, Where, head, json_value, validated
from bank.intake.formats.records import LabelRecord
from bank.models.verdict import is_of_categories

NAME = "label-studio"
TITLE = "Label Studio (JSON)"
KEYS = ("sample", "key", "sample_key")
CHOICES = {
    **dict.fromkeys(("first", "left", "a", "model_a", "1", "answer 1", "response 1"), "first"),
    **dict.fromkeys(("second", "right", "b", "model_b", "2", "answer 2", "response 2"), "second"),
    **dict.fromkeys(("tie", "equal", "both", "same", "neither", "draw"), "tie"),
    **dict.fromkeys(("undecided", "unable to decide", "unsure", "skip"), "undecided"),
}
YES_NO = {"yes": True, "true": True, "no": False, "false": False}
YES_OR_NO = ("answer", "agree", "hallucination")
PART = "part:"
LISTS, TEXTS = ("parts", "spans", "flags"), ("comment", "reason")  # what several parts of an answer may add to


def recognises(path: Path) -> bool:
    if path.is_dir():
        return False
    try:
        start = head(path).lstrip(b"\xef\xbb\xbf \r\n\t")
    except BadFile:
        return False
    return start[:1] == b"[" and b'"annotations"' in start and b'"data"' in start


def parts(path: Path) -> set[str]:
    return {"labels"}


def labels(path: Path) -> Iterator[Row | Problem]:
    """One label for each annotation that says something."""
    return validated(_rows(path), LabelRecord)


def _rows(path: Path) -> Iterator[Row | Problem]:
    tasks = json_value(path)
    if not isinstance(tasks, list):
        raise BadFile(Where(path.name), "is no list of tasks")
    number = 0
    for task in tasks:
        if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
            number += 1
            yield Problem(Where(path.name, record=number), "data", "a task has no data")
            continue
        for annotation in task.get("annotations") or ():
            number += 1
            where = Where(path.name, record=number)
            if not isinstance(annotation, dict):
                yield Problem(where, "annotations", "is not an annotation")
            elif not annotation.get("was_cancelled"):
                try:
                    yield Row(where, _record(task["data"], annotation))
                except ValueError as error:
                    yield Problem(where, "result", str(error))


def _record(data: dict[str, Any], annotation: dict[str, Any]) -> dict[str, Any]:
    sample = next((data[name] for name in KEYS if data.get(name) not in (None, "")), "")
    responses = responses_of(data)
    kind = data.get("kind") or kind_for(responses)
    verdict: dict[str, Any] = {}
    for region in annotation.get("result") or ():
        if isinstance(region, dict) and isinstance(region.get("value"), dict):
            add(_answer(_renamed(region, data), responses), verdict)
    record = {"kind": kind, "sample": sample, "responses": responses, "annotator": who(annotation.get("completed_by"))}
    more = {"seconds": annotation.get("lead_time"), "at": annotation.get("created_at")}
    more |= {name: data.get(name) for name in ("protocol", "campaign", "compared")}
    return record | {name: value for name, value in more.items() if value is not None} | verdict


def add(said: dict[str, Any], verdict: dict[str, Any]) -> None:
    """Add what one part of an answer says. Raises ValueError where another part has said something else."""
    for name, value in said.items():
        if name in LISTS:
            verdict.setdefault(name, []).extend(value)
        elif name in TEXTS and verdict.get(name):
            verdict[name] += f"\n{value}"
        elif value is not None and verdict.setdefault(name, value) != value:
            raise ValueError(f"{name} is said twice, {verdict[name]!r} and {value!r}")


def _renamed(region: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Where categories are given, one chosen from a list is the category, whatever the list is called."""
    category = is_of_categories(data.get("protocol")) and region.get("type") == "choices"
    if category and region.get("from_name") != "flags":
        return region | {"from_name": "option"}
    return region


def responses_of(data: dict[str, Any]) -> list[Any]:
    """The models of an item: names, or objects with ``model`` and maybe ``variant``."""
    candidates = data.get("responses") or data.get("models")
    if candidates is None:
        candidates = [data[name] for name in ("model_a", "model_b") if data.get(name)]
    if not isinstance(candidates, list):
        raise ValueError("responses or models is a list of the models that were shown")
    return [
        {name: one[name] for name in ("model", "variant") if one.get(name)} if isinstance(one, dict) else one
        for one in candidates
    ]


def kind_for(responses: list[Any]) -> str:
    """The kind of an item of so many responses."""
    return {0: "score", 1: "score", 2: "pair"}.get(len(responses), "batch")


def who(person: Any) -> str:
    """The name of an annotator: as it is, or from an object with a user name, address or number."""
    if isinstance(person, dict):
        person = next((person[name] for name in ("username", "email", "id") if person.get(name)), None)
    return "" if person is None else str(person)


def columns_of(name: str, value: Any, responses: list[Any]) -> dict[str, Any]:
    """The columns of a verdict that an answer to a question of this name gives. Raises ValueError."""
    if name.startswith(PART):
        return {"parts": [{"component": name.removeprefix(PART), "points": value}]}
    if name == "choice":
        known = CHOICES.get(str(value).strip().lower())
        if known is None:
            raise ValueError(f"{value!r} is none of the verdicts left, right, tie and undecided")
        return {"choice": known}
    if name == "ranking":
        return {"ranking": ranking_of(value, responses)}
    if name in YES_OR_NO and value is not None:
        if str(value).lower() not in YES_NO:
            raise ValueError(f"{name} is yes or no, not {value!r}")
        return {name: YES_NO[str(value).lower()]}
    return {name: value}


def _answer(region: dict[str, Any], responses: list[Any]) -> dict[str, Any]:
    """What one region says. Raises ValueError for what cannot be read."""
    name, value = str(region.get("from_name", "")), region["value"]
    match region.get("type"):
        case "pairwise":
            return columns_of("choice", value.get("selected"), responses)
        case "choices":
            return _chosen(name, value.get("choices") or [], responses)
        case "rating":
            return {"grade" if name == "grade" else "score": value.get("rating")}
        case "number":
            known = name.startswith(PART) or name in ("situation", "confidence", "grade", "preference")
            return columns_of(name if known else "score", value.get("number"), responses)
        case "ranker":
            return columns_of("ranking", value.get("ranker"), responses)
        case "labels":
            return {"spans": [[value.get("start"), value.get("end")]]}
        case "textarea":
            text = value.get("text")
            lines = text if isinstance(text, list) else [text]
            return {"reason" if name == "reason" else "comment": "\n".join(str(line) for line in lines if line)}
        case other:
            raise ValueError(f"a region of type {other!r} says nothing that a label holds")


def _chosen(name: str, choices: Any, responses: list[Any]) -> dict[str, Any]:
    if not isinstance(choices, list):
        raise ValueError("choices is a list")
    if name == "flags":
        return {"flags": choices}
    if len(choices) != 1:
        raise ValueError(f"{name} holds {len(choices)} choices, a verdict is one")
    word = str(choices[0])
    if name == "score" and word.replace(".", "", 1).isdigit() and word.isascii():
        return {"score": float(word)}
    return columns_of(name if name in ("option", "extraction", *YES_OR_NO) else "choice", word, responses)


def ranking_of(ranker: Any, responses: list[Any]) -> list[list[Any]]:
    """Groups of responses, best first: a list, or numbered buckets. A response may stand as its number from 1."""
    groups = ranker
    if isinstance(ranker, dict):
        order = sorted(ranker, key=lambda name: (not name.isdigit(), int(name) if name.isdigit() else 0, name))
        groups = ranker["rank"] if list(ranker) == ["rank"] else [ranker[name] for name in order]
    if not isinstance(groups, list):
        raise ValueError("a ranking is a list, or numbered groups")
    named = {str(one["model"] if isinstance(one, dict) else one): one for one in responses}
    by_number = {str(number): one for number, one in enumerate(responses, 1)}

    def ref(one: Any) -> Any:
        text = str(one.get("model") if isinstance(one, dict) else one)
        known = named.get(text) or by_number.get(text)
        if known is None:
            raise ValueError(f"the ranking names {text!r}, which is none of the responses")
        return known

    return [[ref(one) for one in group] if isinstance(group, list) else [ref(group)] for group in groups if group != []]
