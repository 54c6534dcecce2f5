"""A benchmark in two languages: who answers the same questions better in one of them (MMBench, English and Chinese).

The two are languages of one benchmark's samples, or two benchmarks or versions in different languages. Samples
correspond where their keys are equal once the language is left out of them: ``mmbench-en-241``, ``mmbench-zh-241``.

Where answer keys are hidden this is staff's (see ``leaderboard.hidden``). Only whole benchmarks are compared.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np
import pandas as pd

from bank.models import Benchmark
from leaderboard import kinds
from leaderboard.boards import keyed
from leaderboard.methods import SEED
from leaderboard.rows import UNKNOWN, Number, Row, number
from leaderboard.scope import BadScope, Scope
from stats.disclosure import LEAST
from stats.paired import difference
from stats.proportions import mean, rate
from stats.ranks import benjamini_hochberg

MOST = 3  # comparisons on one page
ALSO = {"zh": {"zh", "cn"}}  # how keys call a language beside its code


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """The counted answers to a benchmark's samples in one language, each with the ``pair`` that it corresponds by."""

    benchmark: Benchmark
    language: str
    frame: pd.DataFrame

    @property
    def rotated(self) -> bool:
        return bool(self.frame["variant"].str.startswith(keyed.CIRCULAR).any())


@dataclass(frozen=True, kw_only=True)
class LanguageRow(Row):
    """A model in two languages: ``difference`` is a minus b over the ``n`` samples that correspond."""

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
    """``measure``: circular, vanilla or accuracy; ``pairs``: how many samples correspond."""

    a: Side
    b: Side
    measure: str
    pairs: int
    rows: list[LanguageRow]


def languages(scope: Scope, others: Sequence[Benchmark]) -> list[TwoLanguages]:
    """The benchmark beside itself in other languages, and beside those of ``others`` that ask the same questions.

    None under a filter, and of benchmarks without keys.
    """
    if not scope.kind.keyed or scope.narrowed:
        return []
    own = sides(scope)
    found = list(combinations(own, 2))
    mine = {side.language for side in own}
    for benchmark in others:
        codes = set(benchmark.samples.exclude(language="").values_list("language", flat=True).order_by().distinct())
        if mine and codes - mine and scope.kind in kinds.known_of(benchmark, "models", staff=scope.staff):
            found += product(own, sides(replace(scope, benchmark=benchmark, anchor="", run=None)))
    told = (_told(scope, a, b) for a, b in found if a.language != b.language)
    return [one for one in told if one is not None][:MOST]


def sides(scope: Scope) -> list[Side]:
    """One side for every language, by its code; none where the keys are not for this viewer."""
    try:
        frame, _, whole = keyed.counted_answers(scope)
    except BadScope:
        return []
    if frame.empty or not whole:
        return []
    about = scope.benchmark.samples.order_by().values_list("pk", "key", "language")
    known = pd.DataFrame(about, columns=["sample", "name", "language"])
    frame = frame.merge(known, on="sample")
    spoken = frame.drop_duplicates("sample")["language"]
    found = []
    for language in sorted(set(spoken) - {""}):
        mine = frame[frame["language"] == language]
        if len(mine):
            pair = {name: _without_language(name, language) for name in mine["name"].unique()}
            found.append(Side(scope.benchmark, language, mine.assign(pair=mine["name"].map(pair))))
    return found


def _without_language(key: str, language: str) -> str:
    code = language.split("-")[0].casefold()
    names = ALSO.get(code, {code}) | {language.casefold()}
    parts = re.split(r"[-_./ ]+", key)
    return "-".join(part for part in parts if part.casefold() not in names) or key


def _told(scope: Scope, a: Side, b: Side) -> TwoLanguages | None:
    """The comparison; None where nothing says that the two ask the same."""
    shared = set(a.frame["pair"]) & set(b.frame["pair"])
    if len(shared) < LEAST and a.benchmark.slug != b.benchmark.slug:
        return None
    names = sorted(set(a.frame["model"]) & set(b.frame["model"]), key=str.casefold)
    circular = scope.kind.rotates and a.rotated and b.rotated
    rows = [row for name in names if (row := _row(scope, name, _rights(a, name, circular), _rights(b, name, circular)))]
    if not rows:
        return None
    tested = [row.p for row in rows if row.p is not None]
    counts = iter(benjamini_hochberg(p=tested) if tested else ())
    rows = [row if row.p is None else replace(row, significant=bool(next(counts))) for row in rows]
    rows.sort(key=lambda row: (-(row.a.value or 0.0), row.model.casefold()))
    measure = "circular" if circular else "vanilla" if scope.kind.rotates else "accuracy"
    return TwoLanguages(a, b, measure, len(shared), rows)


def _rights(side: Side, model: str, circular: bool) -> pd.DataFrame:
    mine = side.frame[side.frame["model"] == model]
    pairs = mine.drop_duplicates("sample").set_index("sample")["pair"]
    counted = keyed.every_rotation(mine) if circular else mine[mine["variant"] == ""]
    return counted[["sample", "group", "right"]].assign(pair=counted["sample"].map(pairs))


def _row(scope: Scope, model: str, a: pd.DataFrame, b: pd.DataFrame) -> LanguageRow | None:
    if a.empty or b.empty:
        return None
    shares = [rate(hits=side["right"].to_numpy(), cluster=side["group"].to_numpy()) for side in (a, b)]
    row = LanguageRow(model=model, a=number(shares[0]), a_n=shares[0].n, b=number(shares[1]), b_n=shares[1].n)
    # A key that stands twice once its language is left out says of neither to whom it belongs.
    both = a.drop_duplicates("pair", keep=False).merge(
        b.drop_duplicates("pair", keep=False), on="pair", suffixes=("_a", "_b")
    )
    n = len(both)
    if not n:
        return row
    first, second = both["right_a"].to_numpy(np.float64), both["right_b"].to_numpy(np.float64)
    cluster = both["group_a"].to_numpy()
    test = difference(first=first, second=second, cluster=cluster, rng=np.random.default_rng(SEED))
    apart = mean(values=first - second, cluster=cluster)
    return replace(row, difference=number(apart), p=test.p, n=n)
