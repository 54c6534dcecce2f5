"""A benchmark in two languages: which models answer the same questions better in one of them (MMBench, en and zh).

The two are languages of one benchmark's samples, or two benchmarks or versions in different languages. Samples
correspond if their keys are equal without the language: ``mmbench-en-241``, ``mmbench-zh-241``.

If answer keys are hidden, only staff see this (see ``leaderboard.hidden``). Only whole benchmarks are compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from accounts.rules import Viewer
from bank.models import Benchmark
from leaderboard import kinds
from leaderboard.benchmarks import to_compare
from leaderboard.boards.base import Tested, with_significance
from leaderboard.boards.models import keyed
from leaderboard.methods import SEED
from leaderboard.rows import JSON, UNKNOWN, Number, number
from leaderboard.scope import BadScope, Scope
from stats.disclosure import MIN_SAMPLES
from stats.paired import difference
from stats.proportions import mean, rate

MOST = 3  # comparisons on one page
ALIASES = {"zh": {"zh", "cn"}}  # names of a language in keys


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """The counted answers to a benchmark's samples in one language; equal ``pair`` means corresponding samples."""

    benchmark: Benchmark
    language: str
    frame: pd.DataFrame

    @property
    def rotated(self) -> bool:
        return bool(self.frame["variant"].str.startswith(keyed.CIRCULAR).any())


@dataclass(frozen=True, kw_only=True)
class LanguageRow(Tested):
    """A model in two languages: ``difference`` is a minus b over the ``n`` corresponding samples."""

    model: str
    a: Number
    a_n: int
    b: Number
    b_n: int
    difference: Number = UNKNOWN
    p: float | None = None
    n: int = 0
    significant: bool | None = None


@dataclass(frozen=True, eq=False, slots=True)
class TwoLanguages:
    """``measure``: circular, vanilla or accuracy; ``pairs``: the number of corresponding samples."""

    a: Side
    b: Side
    measure: str
    pairs: int
    rows: list[LanguageRow]


def languages(scope: Scope, others: Sequence[tuple[Benchmark, bool]]) -> list[TwoLanguages]:
    """Comparisons of the benchmark's languages with each other, and with those of ``others`` with the same questions;
    each of these with whether the viewer is staff to it.

    Empty under a filter, and for benchmarks without keys.
    """
    if not scope.kind.keyed or scope.narrowed:
        return []
    own_sides = sides(scope)
    side_pairs = list(combinations(own_sides, 2))
    own_languages = {side.language for side in own_sides}
    for benchmark, staff in others:
        codes = set(benchmark.samples.exclude(language="").values_list("language", flat=True).order_by().distinct())
        if own_languages and codes - own_languages and scope.kind in kinds.available(benchmark, "models", staff=staff):
            other = replace(scope, benchmark=benchmark, anchor="", run=None, staff=staff)
            side_pairs += product(own_sides, sides(other))
    comparisons = (_comparison(scope, a, b) for a, b in side_pairs if a.language != b.language)
    return [comparison for comparison in comparisons if comparison is not None][:MOST]


def sides(scope: Scope) -> list[Side]:
    """One side for every language, by its code; empty if this viewer may not see what the keys tell."""
    try:
        frame, _, has_levels = keyed.counted_answers(scope)
    except BadScope:
        return []
    if frame.empty or not has_levels:
        return []
    facts = scope.benchmark.samples.order_by().values_list("pk", "key", "language")
    samples = pd.DataFrame(facts, columns=["sample", "name", "language"])
    frame = frame.merge(samples, on="sample")
    language_sides = []
    for language, answers in frame[frame["language"] != ""].groupby("language"):
        pair_names = {name: _without_language(name, language) for name in answers["name"].unique()}
        language_sides.append(Side(scope.benchmark, language, answers.assign(pair=answers["name"].map(pair_names))))
    return language_sides


def _without_language(key: str, language: str) -> str:
    code = language.split("-")[0].casefold()
    names = ALIASES.get(code, {code}) | {language.casefold()}
    parts = re.split(r"[-_./ ]+", key)
    return "-".join(part for part in parts if part.casefold() not in names) or key


def _comparison(scope: Scope, a: Side, b: Side) -> TwoLanguages | None:
    """The comparison; None if nothing shows that the two have the same questions."""
    shared = set(a.frame["pair"]) & set(b.frame["pair"])
    if len(shared) < MIN_SAMPLES and a.benchmark.slug != b.benchmark.slug:
        return None
    names = sorted(set(a.frame["model"]) & set(b.frame["model"]), key=str.casefold)
    circular = scope.kind.rotates and a.rotated and b.rotated
    rows = [
        row
        for name in names
        if (row := _language_row(scope, name, _rights(a, name, circular), _rights(b, name, circular)))
    ]
    if not rows:
        return None
    rows = sorted(with_significance(rows), key=lambda row: (-(row.a.value or 0.0), row.model.casefold()))
    measure = "circular" if circular else "vanilla" if scope.kind.rotates else "accuracy"
    return TwoLanguages(a, b, measure, len(shared), rows)


def _rights(side: Side, model: str, circular: bool) -> pd.DataFrame:
    answers = side.frame[side.frame["model"] == model]
    pairs = answers.drop_duplicates("sample").set_index("sample")["pair"]
    counted = keyed.every_rotation(answers) if circular else answers[answers["variant"] == ""]
    return counted[["sample", "group", "right"]].assign(pair=counted["sample"].map(pairs))


def _language_row(scope: Scope, model: str, a: pd.DataFrame, b: pd.DataFrame) -> LanguageRow | None:
    if a.empty or b.empty:
        return None
    shares = [rate(hits=side["right"].to_numpy(), cluster=side["group"].to_numpy()) for side in (a, b)]
    row = LanguageRow(model=model, a=number(shares[0]), a_n=shares[0].n, b=number(shares[1]), b_n=shares[1].n)
    # A key that occurs twice without its language is ambiguous.
    paired = a.drop_duplicates("pair", keep=False).merge(
        b.drop_duplicates("pair", keep=False), on="pair", suffixes=("_a", "_b")
    )
    n = len(paired)
    if not n:
        return row
    first, second = paired["right_a"].to_numpy(np.float64), paired["right_b"].to_numpy(np.float64)
    cluster = paired["group_a"].to_numpy()
    test = difference(first=first, second=second, cluster=cluster, rng=np.random.default_rng(SEED))
    gap = mean(values=first - second, cluster=cluster)
    return replace(row, difference=number(gap), p=test.p, n=n)


def languages_beside(scope: Scope, viewer: Viewer) -> list[JSON]:
    """The rows of ``languages``, each with its two benchmarks and languages; empty for kinds without keys."""
    if not scope.kind.keyed:
        return []
    rows = []
    for comparison in languages(scope, to_compare(scope.benchmark, viewer)):
        compared = {
            "a_benchmark": str(comparison.a.benchmark),
            "a_language": comparison.a.language,
            "b_benchmark": str(comparison.b.benchmark),
            "b_language": comparison.b.language,
            "measure": comparison.measure,
        }
        rows += [compared | row.as_json() for row in comparison.rows]
    return rows
