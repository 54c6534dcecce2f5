"""The answers to a recipe, compared with the keys: a row for each question, condition, rotation and repeat.

Keys are read page by page and each page is logged. What a single row says stays with the caller, who must guard what is
shown.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pandas as pd

from bank import guard
from bank.criteria import answer_keys
from bank.database import batched
from bank.marking import PAGE, option_behind, yes_or_no
from bank.models import Benchmark, Recipe, Response, Sample
from bank.recipes.spec import PLAIN, YES_NO, Nearest, Numbers, Spec, Tree
from bank.recipes.verbalizers import named
from stats.answer_text import option_in
from stats.desiderata import softmax, tree_credit

CIRCULAR = "circular-"
COLUMNS = [
    *("model", "response", "sample", "key", "split", "path", "group", "language", "options", "condition", "rotation"),
    *("repeat", "said", "letter", "key_letter", "text", "truth", "right", "credit", "read", "confidence", "mass"),
    "chance",
]


@guard.working()
def as_frame(recipe: Recipe, spec: Spec, benchmark: Benchmark, *, samples: Any = None, model: str = "") -> pd.DataFrame:
    """One row for each answer to a question with a key; ``model`` limits it to one, ``samples`` (a QuerySet) to some.

    ``said``: the sample's own label, yes, no, a class, or a text; "" for what no rule can read (``read`` is then False,
    and it is not right). ``letter`` and ``key_letter``: the labels behind which that option and the right one stood.
    ``truth``: the key, without synonyms. ``right`` is 0 or 1, ``credit`` the share of the way down a tree.
    ``confidence`` is the softmax over the pool of the answer given, ``mass`` the probability of the whole pool,
    ``chance`` that of a random answer. Refused, filtered, cut off and empty answers count as not read.
    """
    responses = Response.all_objects.filter(recipe=recipe, sample__benchmark=benchmark)
    if model:
        responses = responses.filter(model__name=model)
    if samples is not None:
        responses = responses.filter(sample__in=samples)
    rows: list[tuple[Any, ...]] = []
    ids = sorted(set(responses.order_by().values_list("sample", flat=True)))
    for page in batched(ids, PAGE):
        asked = Sample.objects.select_related("capability").in_bulk(page)
        keys = answer_keys.keys_for_boards(benchmark=benchmark, sample_ids=list(page))
        for response in _last_turns(responses.filter(sample__in=page)):
            if response.sample_id in keys:
                rows.append(_marked_answer(spec, asked[response.sample_id], keys[response.sample_id], response))
    return pd.DataFrame(rows, columns=COLUMNS)


def _last_turns(responses: Any) -> Iterator[Any]:
    """The last turn of each answer."""
    names = ("pk", "sample_id", "variant", "repeat", "turn", "text", "status", "option_order", "likelihoods")
    last: Any = None
    in_order = responses.order_by("sample", "model", "variant", "repeat", "turn")
    for row in in_order.values_list(*names, "model__name", named=True).iterator(chunk_size=2000):
        key = (row.sample_id, row.model__name, row.variant, row.repeat)
        if last is not None and key != (last.sample_id, last.model__name, last.variant, last.repeat):
            yield last
        last = row
    if last is not None:
        yield last


def _marked_answer(spec: Spec, sample: Sample, key: str, response: Any) -> tuple[Any, ...]:
    rotation = int(response.variant.removeprefix(CIRCULAR)) if response.variant.startswith(CIRCULAR) else 0
    condition = PLAIN if rotation else response.variant
    labels = list(sample.options)
    confidence, mass, size = _confidence(response.likelihoods)
    answered = response.status == Response.Status.OK and (response.likelihoods is None or confidence is not None)
    said = _stated_answer(spec, labels, condition, response) if answered else ""
    stood_at = dict(zip(_order(response, labels), labels, strict=False)) if spec.is_of_options else {}
    right_texts = answer_keys.synonyms(key)
    truth = right_texts[0]
    right, credit = _compared(spec, labels, key, right_texts, said)
    chance = 1 / len(labels) if labels and spec.is_of_options else _chance(spec, size)
    about = (sample.key, sample.split, sample.capability_path, sample.cluster)
    return (
        *(response.model__name, response.pk, sample.pk, *about, sample.language, len(labels), condition, rotation),
        *(response.repeat, said, stood_at.get(said, ""), stood_at.get(key.strip(), ""), response.text, truth),
        *(int(right), credit, bool(said), confidence, mass, chance),
    )


def _compared(spec: Spec, labels: Sequence[str], key: str, right_texts: Sequence[str], said: str) -> tuple[bool, float]:
    """Mark an answer: is it right, and its credit down a tree."""
    if labels and spec.is_of_options:
        return said == key.strip(), 0.0
    if isinstance(spec.turns[-1].pool, Tree):
        credit = max(tree_credit(_steps(said), _steps(each)) for each in right_texts)
        return credit == 1.0 and len(_steps(said)) >= 1, credit
    return bool(said) and plain(said) in {plain(each) for each in right_texts}, 0.0


def _order(response: Any, labels: Sequence[str]) -> list[str]:
    """The options in the order in which they stood."""
    return [str(label) for label in response.option_order or labels]


def _stated_option(spec: Spec, labels: Sequence[str], condition: str, response: Any) -> str:
    verbalizer = named(condition)
    written = verbalizer.labels(labels) if verbalizer else list(labels)
    label = response.text if spec.turns[-1].kind == "likelihood" else option_in(response.text, written)
    return option_behind(label, labels, response, written=written)


def _stated_answer(spec: Spec, labels: Sequence[str], condition: str, response: Any) -> str:
    last = spec.turns[-1]
    if labels and spec.is_of_options:
        return _stated_option(spec, labels, condition, response)
    if last.kind == "likelihood":
        return str(response.text)
    if spec.metric == "yes-no":
        return yes_or_no(response.text)
    return response.text.strip()


def _confidence(likelihoods: dict[str, Any] | None) -> tuple[float | None, float | None, int]:
    if not likelihoods or not likelihoods.get("pool"):
        return None, None, 0
    values = [float("-inf") if value is None else float(value) for _, value in likelihoods["pool"]]
    if all(value is None for _, value in likelihoods["pool"]):
        return None, 0.0, len(values)
    return max(softmax(values)), likelihoods.get("mass"), len(values)


def _chance(spec: Spec, size: int) -> float | None:
    """The probability of a random answer: one of a pool; None where texts are written freely."""
    last = spec.turns[-1]
    if spec.metric == "yes-no" or last.pool == YES_NO:
        return 0.5
    if last.kind != "likelihood":
        return None
    if isinstance(last.pool, Tree):
        return 1 / len(last.pool.tree)
    if isinstance(last.pool, Numbers | Nearest):
        return 1 / size if size else None
    return 1 / len(last.pool)


def _steps(path: str) -> list[str]:
    return [plain(step) for step in path.split("/") if step.strip()]


@guard.working()
def exact_matches(*, benchmark: Benchmark, responses: Iterable[int]) -> dict[int, bool]:
    """By response, whether its whole text is a right one: the key, a synonym, the text of the option that is the key,
    or an exact reference.

    Samples without any are left out. A response without a text is no match. What single ones say stays with the caller.
    """
    matches: dict[int, bool] = {}
    for page in batched(sorted(responses), PAGE):
        rows = list(Response.objects.filter(pk__in=page).select_related("sample"))
        asked = sorted({row.sample_id for row in rows})
        references = answer_keys.references_for_boards(benchmark=benchmark, sample_ids=asked)
        for row in rows:
            if row.sample_id in references:
                right = _right_texts(row.sample, references[row.sample_id])
                matches[row.pk] = row.status == Response.Status.OK and plain(row.text) in right
    return matches


def _right_texts(sample: Sample, keys: Sequence[str]) -> set[str]:
    """The keys with their synonyms, and the texts of the options that are keys."""
    right = {plain(text) for key in keys for text in answer_keys.synonyms(key)}
    options = (str(sample.options.get(key.strip(), "")) for key in keys)
    return right | {plain(text) for text in options if text}


def plain(text: str) -> str:
    """A text as exact match compares it: without case, marks at its ends, and white space that differs."""
    words = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return words.strip(" .,:;!?\"'()[]")
