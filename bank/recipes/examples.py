"""In-context examples: which other questions are shown before a question, with their answers (ChEF, B.2).

They come from the same benchmark and language, never from a hidden split, never without a key that everybody may see,
and never from the question's own group.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.conf import settings
from scipy.sparse import csr_array

from bank.criteria import answer_keys
from bank.errors import BadInput
from bank.intake import parquet
from bank.models import Benchmark, Sample, SampleImage
from bank.recipes.spec import Examples
from bank.text.digests import keyed_digest

WORD = re.compile(r"[^\W_]+|[\u4e00-\u9fff]")
AT_ONCE = 512  # questions compared with all others: 512 x 20,000 numbers are 40 MB
NO_KEYS = "has no questions with a key that everybody may see, so it can give no examples"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A question that may be an example."""

    pk: int
    key: str
    group: str
    language: str
    text: str


def seeded(seed: int, *parts: str) -> np.random.Generator:
    """A generator that is the same on every machine for the same seed and parts."""
    return np.random.default_rng(int.from_bytes(keyed_digest(seed, *parts), "big"))


def chosen(
    rule: Examples, *, benchmark: Benchmark, asked: Sequence[Sample], seed: int, about: str
) -> dict[int, list[int]]:
    """By asked question, the ids of its ``rule.k`` examples, in the order in which they are shown. Raises BadInput."""
    if rule.how == "none":
        return {}
    candidates = _candidates(rule, benchmark, about)
    shown = {}
    nearness = _nearness(rule, list(map(_candidate, asked)), candidates)
    groups, languages = (np.array([getattr(one, name) for one in candidates]) for name in ("group", "language"))
    keys = np.array([one.pk for one in candidates])
    for at, sample in enumerate(asked):
        usable = np.flatnonzero((keys != sample.pk) & (groups != sample.cluster) & (languages == sample.language))
        if len(usable) < rule.k:
            raise BadInput(
                f"{benchmark} has {len(usable)} questions that can be examples for {sample.key}, and {rule.k} are "
                "asked for: they have a key that everybody may see, its language, and another picture or prompt.",
                "examples",
            )
        if rule.how == "random":
            usable = seeded(seed, sample.key).permutation(usable)
        places = usable[: rule.k] if nearness is None else _nearest(usable, nearness[at], rule.k)
        shown[sample.pk] = [candidates[place].pk for place in places]
    return shown


def nearest_keys(keys: Mapping[int, str], *, samples: Any, asked: Sequence[Sample], n: int) -> dict[int, list[int]]:
    """By asked question, the ids of the ``n`` other questions whose keys are nearest to its own by their text, without
    those that say the same. ``keys``: by id, of all ``samples`` (a QuerySet). Raises BadInput.
    """
    ids = sorted(keys)
    texts = [answer_keys.synonyms(keys[pk])[0] for pk in ids]
    place = {pk: at for at, pk in enumerate(ids)}
    groups = dict(samples.values_list("pk", "group"))
    near = _Rows(*tf_idf([texts[place[sample.pk]] for sample in asked], texts))
    found = {}
    for at, sample in enumerate(asked):
        said, taken = {texts[place[sample.pk]].casefold()}, list[int]()
        for other in np.argsort(-near[at], kind="stable"):
            if len(taken) == n:
                break
            if _goes_together(sample, ids[other], groups) or texts[other].casefold() in said:
                continue
            said.add(texts[other].casefold())
            taken.append(ids[other])
        if not taken:
            raise BadInput(f"There is no other key that the answer to {sample.key} could be chosen from.", "recipe")
        found[sample.pk] = taken
    return found


def _goes_together(sample: Sample, other: int, groups: Mapping[int, str]) -> bool:
    """Whether the other question is this one, or shares its picture or prompt."""
    return other == sample.pk or bool(sample.group and groups.get(other) == sample.group)


def _nearest(usable: np.ndarray, nearness: np.ndarray, k: int) -> np.ndarray:
    """The nearest last, next to the question."""
    return usable[np.argsort(-nearness[usable], kind="stable")][:k][::-1]


def _candidates(rule: Examples, benchmark: Benchmark, about: str) -> list[Candidate]:
    """The questions with an open key; of fixed examples those named, in their order. Raises BadInput."""
    with_keys = answer_keys.open_keys(about=about, samples=benchmark.samples.in_use())
    rows = benchmark.samples.filter(pk__in=with_keys).order_by("key")
    candidates = [_candidate(sample) for sample in rows]
    if not candidates:
        raise BadInput(f"{benchmark} {NO_KEYS}.", "examples")
    return _fixed(rule.keys, candidates, benchmark) if rule.how == "fixed" else candidates


def _candidate(sample: Sample) -> Candidate:
    text = "\n".join((sample.instruction, *map(str, sample.options.values())))
    return Candidate(sample.pk, sample.key, sample.cluster, sample.language, text)


def _fixed(keys: Sequence[str], candidates: Sequence[Candidate], benchmark: Benchmark) -> list[Candidate]:
    by_key = {candidate.key: candidate for candidate in candidates}
    if missing := [key for key in keys if key not in by_key]:
        raise BadInput(
            f"{missing[0]} cannot be an example: {benchmark} has no such question with a key that everybody may see "
            "(those of hidden splits are hidden).",
            "examples",
        )
    return [by_key[key] for key in keys]


class _Rows:
    """How near each asked question is to every candidate, computed a stretch at a time."""

    def __init__(self, asked: Any, candidates: Any) -> None:
        self._asked, self._candidates = asked, candidates
        self._begin, self._block = -AT_ONCE, np.zeros((0, 0))

    def __getitem__(self, at: int) -> Any:
        if not self._begin <= at < self._begin + AT_ONCE:
            self._begin = at - at % AT_ONCE
            block = self._asked[self._begin : self._begin + AT_ONCE] @ self._candidates.T
            self._block = block.toarray() if hasattr(block, "toarray") else block
        return self._block[at - self._begin]


def _nearness(rule: Examples, asked: Sequence[Candidate], candidates: Sequence[Candidate]) -> Any:
    if not rule.how.startswith("top-"):
        return None
    if rule.embeddings:
        vectors = embeddings(rule.embeddings)
        return _Rows(*(_vectors(vectors, part, rule.embeddings) for part in (asked, candidates)))
    if rule.how == "top-text":
        return _Rows(*tf_idf([one.text for one in asked], [one.text for one in candidates]))
    hashes = _hashes({one.pk for one in (*asked, *candidates)})
    return _Rows(*(_bits(hashes, part) for part in (asked, candidates)))


def tf_idf(asked: Sequence[str], others: Sequence[str]) -> tuple[csr_array, csr_array]:
    """Rows of unit length: (1 + log tf) (1 + log((1 + N) / (1 + df))) of the words; N and df are of the ``others``."""
    vocabulary: dict[str, int] = {}
    counts = [_counts(text, vocabulary) for text in (*others, *asked)]
    frequency = np.zeros(len(vocabulary))
    for words in counts[: len(others)]:
        frequency[list(words)] += 1
    weight = np.log((1 + len(others)) / (1 + frequency)) + 1
    rows = [_unit(words, weight) for words in counts]
    return tuple(_sparse(part, len(vocabulary)) for part in (rows[len(others) :], rows[: len(others)]))


def _counts(text: str, vocabulary: dict[str, int]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for word in WORD.findall(text.casefold()):
        place = vocabulary.setdefault(word, len(vocabulary))
        counts[place] = counts.get(place, 0) + 1
    return counts


def _unit(words: Mapping[int, int], weight: Any) -> dict[int, float]:
    row = {place: (1 + np.log(count)) * weight[place] for place, count in words.items()}
    length = np.sqrt(sum(value * value for value in row.values())) or 1.0
    return {place: value / length for place, value in row.items()}


def _sparse(rows: Sequence[Mapping[int, float]], width: int) -> csr_array:
    starts = np.cumsum([0, *map(len, rows)])
    places = np.fromiter((place for row in rows for place in row), dtype=np.int64, count=starts[-1])
    values = np.fromiter((value for row in rows for value in row.values()), dtype=np.float64, count=starts[-1])
    return csr_array((values, places, starts), shape=(len(rows), width))


def _hashes(ids: set[int]) -> dict[int, str]:
    """The perceptual hash of each question's first picture (64 bits: whether each of 8 x 8 places is brighter than the
    one beside it)."""
    rows = SampleImage.objects.filter(sample__in=ids, phash__gt="").order_by("-position")
    return dict(rows.values_list("sample", "phash"))


def _bits(hashes: Mapping[int, str], questions: Sequence[Candidate]) -> Any:
    """Rows of +1 and -1, so that a product counts the bits that agree; zeros for a question without a picture."""
    rows = np.zeros((len(questions), 64))
    for at, question in enumerate(questions):
        if question.pk in hashes:
            bits = np.unpackbits(np.frombuffer(bytes.fromhex(hashes[question.pk]), dtype=np.uint8))
            rows[at] = 2.0 * bits - 1
    return rows


def embeddings(name: str) -> dict[str, Any]:
    """Vectors by key from a Parquet file with ``key, vector`` in the data folder's ``embeddings``. Raises BadInput."""
    path = settings.DATA / "embeddings" / name
    if not path.is_file():
        raise BadInput(f"There is no file {name} in the folder embeddings of the data folder.", "examples")
    try:
        _, reader = parquet.load()
        table = reader.read_table(path, columns=["key", "vector"]).to_pydict()
        vectors = {str(key): np.asarray(vector, dtype=np.float64) for key, vector in zip(*table.values(), strict=True)}
    except parquet.NoPyarrow as error:
        raise BadInput(str(error), "examples") from None
    except Exception as error:  # whatever pyarrow says of a file that is none
        raise BadInput(f"{name} is no Parquet file with key and vector: {str(error)[:200]}", "examples") from None
    if len({vector.shape for vector in vectors.values()}) > 1 or not all(
        vector.ndim == 1 and np.isfinite(vector).all() for vector in vectors.values()
    ):
        raise BadInput(f"The vectors of {name} are not all finite numbers of one length.", "examples")
    return vectors


def _vectors(vectors: Mapping[str, Any], questions: Sequence[Candidate], name: str) -> Any:
    if missing := [question.key for question in questions if question.key not in vectors]:
        raise BadInput(f"{name} has no vector of {missing[0]}, nor of {len(missing) - 1} others.", "examples")
    rows = np.array([vectors[question.key] for question in questions])
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
