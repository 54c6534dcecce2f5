"""Label Studio's JSON export: tasks with annotations, each annotation one label.

``data`` of a task names the item: the sample's key (``sample``, ``key`` or ``sample_key``) and the models whose
responses were shown, in order (``responses`` or ``models``, or ``model_a`` and ``model_b``). What a region says is told
by its type, and where that is open by the name of its control (``from_name``). Cancelled annotations are passed over.

A task of Label Studio's own templates names no sample: its ``data`` holds the instruction and the answers. It brings
its sample and responses as well, those of models called "answer 1", "answer 2" where it names none.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bank.intake.formats import wide
from bank.intake.formats.reading import (
    BadFile,
    BadRow,
    Problem,
    Row,
    Where,
    converted,
    json_value,
    odd,
    start_of,
)
from bank.intake.formats.records import LabelRecord, ResponseRecord, SampleRecord
from bank.intake.formats.seen import SeenAnswers
from bank.models.verdict import is_of_categories
from bank.picked import present
from bank.text.names import as_stored
from bank.text.words import meanings_of

NAME = "label-studio"
TITLE = "Label Studio (JSON)"
KEYS = ("sample", "key", "sample_key")
# What the templates call answers, and the models that gave them: side by side, or one alone.
SIDES = (("1", "2"), ("_1", "_2"), ("_a", "_b"), ("",))
ANSWERS = [[word + end for end in ends] for word in ("answer", "response", "output") for ends in SIDES]
MODELS = [["model" + end for end in ends] for ends in SIDES]
LEFT_OVER = "_"  # the bucket of what nobody has placed
ITEMS = ("items", "answers")  # lists of {id, title, body or html}, as a Ranker takes them
CHOICES = meanings_of(__file__, "choices")
YES_NO = {"yes": True, "true": True, "no": False, "false": False}
NUMBERS = ("score", "preference")  # that may be chosen from a list, as text
YES_OR_NO = ("answer", "agree", "hallucination")
PART = "part:"
LISTS, TEXTS = ("parts", "spans", "flags"), ("comment", "reason")  # what several parts of an answer may add to


def recognises(path: Path) -> bool:
    start = start_of(path).lstrip(b"\xef\xbb\xbf \r\n\t")
    return start[:1] == b"[" and b'"annotations"' in start and b'"data"' in start


@dataclass(frozen=True, slots=True)
class Task:
    """A task, read: its item as labels name it, and what it brings itself."""

    about: dict[str, Any]  # kind, sample, responses, texts
    names: dict[str, Any]  # the responses by what regions may call them
    annotations: list[Any]
    data: dict[str, Any]
    question: wide.Question | None = None  # None where it names a stored sample
    fresh: tuple[int, ...] = ()  # its answers that no task before it held
    named: bool = True  # whether the data names the models


def parts(path: Path) -> set[str]:
    brings = any(isinstance(row, Row) and row.data.question for row in _tasks(path))
    return {"samples", "responses", "labels"} if brings else {"labels"}


def samples(path: Path) -> Iterator[Row | Problem]:
    """The samples of tasks that hold their instruction, each once."""
    done: set[str] = set()

    def sample(row: Row) -> Iterator[dict[str, Any]]:
        question = row.data.question
        if question and question.key not in done:
            done.add(question.key)
            yield wide.sample_of(question, {})

    return converted(_tasks(path), sample, SampleRecord)


def responses(path: Path) -> Iterator[Row | Problem]:
    """The answers of such tasks, each once. A model's second answer to the same instruction is a variant."""
    told = False

    def answers(row: Row) -> Iterator[Problem | dict[str, Any]]:
        nonlocal told
        task: Task = row.data
        if task.question and not task.named and not told:
            told = True
            yield odd(row, "model", "the data names no models; the answers are those of 'answer 1', 'answer 2', ...")
        for place in task.fresh:
            ref, text = task.about["responses"][place], task.about["texts"][place]
            yield from wide.odd_answer(row, "answer", text, ref)
            yield {"sample": task.about["sample"], "text": text} | ref

    return converted((row for row in _tasks(path) if isinstance(row, Row)), answers, ResponseRecord)


def labels(path: Path) -> Iterator[Row | Problem]:
    """One label for each annotation that says something."""
    number = 0

    def annotations() -> Iterator[Row | Problem]:
        nonlocal number
        for row in _tasks(path):
            if isinstance(row, Problem):
                number += 1
                yield row._replace(where=Where(path.name, record=number))
                continue
            for annotation in row.data.annotations:
                number += 1
                yield Row(Where(path.name, record=number), (row.data, annotation))

    return converted(annotations(), _label, LabelRecord)


def _label(row: Row) -> Iterator[dict[str, Any]]:
    task, annotation = row.data
    if not isinstance(annotation, dict):
        raise BadRow("annotations", "is not an annotation")
    if not annotation.get("was_cancelled"):
        try:
            yield _record(task, annotation)
        except ValueError as error:
            raise BadRow("result", str(error)) from None


def _tasks(path: Path) -> Iterator[Row | Problem]:
    """The tasks of a file, each read as a Task."""
    tasks = json_value(path)
    if not isinstance(tasks, list):
        raise BadFile(path, "is no list of tasks")
    questions, seen = wide.Questions(), SeenAnswers()
    for number, task in enumerate(tasks, 1):
        row = Row(Where(path.name, record=number), task)
        try:
            if not isinstance(task, dict) or not isinstance(task.get("data"), dict):
                raise BadRow("data", "a task has no data")
            yield Row(row.where, _task(task, questions, seen, row.where))
        except BadRow as fault:
            yield Problem(row.where, fault.field, fault.reason)
        except ValueError as error:
            yield Problem(row.where, "data", str(error))


def _task(task: dict[str, Any], questions: wide.Questions, seen: SeenAnswers, where: Where) -> Task:
    """Raises BadRow."""
    data, annotations = task["data"], task.get("annotations") or []
    sample = next((data[name] for name in KEYS if data.get(name) not in (None, "")), "")
    answers = {} if sample else _answers(data)
    if not answers:
        responses = responses_of(data)
        about = {"kind": data.get("kind") or kind_for(responses), "sample": sample, "responses": responses}
        return Task(about, called(responses), annotations, data)
    if not wide.text_in(data, "prompt"):
        raise BadRow("prompt", "is missing: data holds answers, but neither their instruction nor a sample's key")
    question = questions.read(Row(where, present(data, ASKED)))
    models, named = _models(data, list(answers))
    texts = list(answers.values())
    refs, repeated = seen.places(question.key, models, texts)
    about = {"kind": kind_for(refs), "sample": question.key, "responses": refs, "texts": texts}
    fresh = tuple(place for place, known in enumerate(repeated) if not known)
    return Task(about, called(refs, list(answers)), annotations, data, question, fresh, named)


ASKED = (*wide.COLUMNS["prompt"], *wide.COLUMNS["image"])  # of a task, what makes the sample


def _answers(data: dict[str, Any]) -> dict[str, str]:
    """The answers that a task holds, by the name that regions call them. Raises BadRow."""
    for names in ANSWERS:
        if all(name in data for name in names):
            return {name: wide.text_in(data, name) for name in names}
    for name in ITEMS:
        items = data.get(name)
        if isinstance(items, list) and items and all(isinstance(item, dict) and "id" in item for item in items):
            return {str(item["id"]): wide.text_in(item, "body") or wide.text_in(item, "html") for item in items}
    return {}


def _models(data: dict[str, Any], ids: list[str]) -> tuple[list[str], bool]:
    """The models that gave a task's answers, and whether it names them: in fields, as a list, or as ids of items."""
    listed = data.get("models")
    named = [[data.get(name) for name in names] for names in MODELS] + [listed if isinstance(listed, list) else []]
    for models in named:
        if len(models) == len(ids) and all(models):
            return [as_stored(str(model)) for model in models], True
    if any(name in data for name in ITEMS) and not all(name.isdigit() for name in ids):
        return list(map(as_stored, ids)), True
    return [f"answer {number}" for number in range(1, len(ids) + 1)], False


def called(responses: list[Any], ids: Iterable[str] = ()) -> dict[str, Any]:
    """The responses by what a region may call them: the model, the answer's id, or its number from 1."""
    numbers = {f"{before}{number}": one for number, one in enumerate(responses, 1) for before in ("", "answer-")}
    models = {str(one["model"] if isinstance(one, dict) else one): one for one in responses}
    return numbers | models | dict(zip(ids, responses, strict=False))


def _record(task: Task, annotation: dict[str, Any]) -> dict[str, Any]:
    verdict: dict[str, Any] = {}
    for region in annotation.get("result") or ():
        if isinstance(region, dict) and isinstance(region.get("value"), dict):
            add(_answer(_renamed(region, task.data), task.names), verdict)
    if task.about["kind"] == "pair" and "ranking" in verdict:
        verdict["choice"] = _better(verdict.pop("ranking"), task.about["responses"])
    record = task.about | {"annotator": who(annotation.get("completed_by") or annotation.get("annotator"))}
    more = {"seconds": annotation.get("lead_time"), "at": annotation.get("created_at")}
    more |= {name: task.data.get(name) for name in ("protocol", "campaign", "compared")}
    return record | {name: value for name, value in more.items() if value is not None} | verdict


def _better(ranking: list[list[Any]], responses: list[Any]) -> str:
    """Which of two ranked answers is better."""
    return "tie" if len(ranking) == 1 else "first" if ranking[0] == responses[:1] else "second"


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


def columns_of(name: str, value: Any, names: dict[str, Any]) -> dict[str, Any]:
    """The columns of a verdict that an answer to a question of this name gives; ``names``: the responses by what it may
    call them. Raises ValueError.
    """
    if name.startswith(PART):
        return {"parts": [{"component": name.removeprefix(PART), "points": value}]}
    if name == "choice":
        known = CHOICES.get(str(value).strip().lower())
        if known is None:
            raise ValueError(f"{value!r} is none of the verdicts left, right, tie and undecided")
        return {"choice": known}
    if name == "ranking":
        return {"ranking": ranking_of(value, names)}
    if name in YES_OR_NO and value is not None:
        if str(value).lower() not in YES_NO:
            raise ValueError(f"{name} is yes or no, not {value!r}")
        return {name: YES_NO[str(value).lower()]}
    return {name: number_in(value) if name in NUMBERS else value}


def number_in(value: Any) -> Any:
    """The number that a text spells; anything else as it is."""
    try:
        return float(value) if isinstance(value, str) and value.isascii() else value
    except ValueError:
        return value


def _answer(region: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """What one region says. Raises ValueError for what cannot be read."""
    name, value = str(region.get("from_name", "")), region["value"]
    match region.get("type"):
        case "pairwise":
            return columns_of("choice", value.get("selected"), names)
        case "choices":
            return _chosen(name, value.get("choices") or [], names)
        case "rating":
            return {"grade" if name == "grade" else "score": value.get("rating")}
        case "number":
            known = name.startswith(PART) or name in ("situation", "confidence", "grade", "preference")
            return columns_of(name if known else "score", value.get("number"), names)
        case "ranker":
            ranker = value.get("ranker")
            in_order = ranker.get(name) if isinstance(ranker, dict) and list(ranker) == [name] else ranker
            return columns_of("ranking", in_order, names)
        case "labels":
            return {"spans": [[value.get("start"), value.get("end")]]}
        case "textarea":
            text = value.get("text")
            lines = text if isinstance(text, list) else [text]
            return {"reason" if name == "reason" else "comment": "\n".join(str(line) for line in lines if line)}
        case other:
            raise ValueError(f"a region of type {other!r} says nothing that a label holds")


def _chosen(name: str, choices: Any, names: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(choices, list):
        raise ValueError("choices is a list")
    if name == "flags":
        return {"flags": choices}
    if len(choices) != 1:
        raise ValueError(f"{name} holds {len(choices)} choices, a verdict is one")
    known = name in ("option", "extraction", *NUMBERS, *YES_OR_NO)
    return columns_of(name if known else "choice", str(choices[0]), names)


def ranking_of(ranker: Any, names: dict[str, Any]) -> list[list[Any]]:
    """Groups of responses, best first: a list, or numbered buckets. Raises ValueError."""
    groups = ranker
    if isinstance(ranker, dict):
        buckets = {name: ids for name, ids in ranker.items() if name != LEFT_OVER}
        if ranker.get(LEFT_OVER):
            raise ValueError("the ranking leaves some answers in no bucket")
        if list(buckets) != ["rank"] and not all(name.isdigit() for name in buckets):
            words = " and ".join(repr(name) for name in list(buckets)[:2])
            raise ValueError(f"the buckets {words} are no ranks; name them 1, 2, 3, 1 the best")
        groups = buckets["rank"] if "rank" in buckets else [buckets[name] for name in sorted(buckets, key=int)]
    if not isinstance(groups, list):
        raise ValueError("a ranking is a list, or numbered groups")

    def ref(one: Any) -> Any:
        text = str(one.get("model") if isinstance(one, dict) else one)
        if text not in names:
            raise ValueError(f"the ranking names {text!r}, which is none of the responses")
        return names[text]

    return [[ref(one) for one in group] if isinstance(group, list) else [ref(group)] for group in groups if group != []]
