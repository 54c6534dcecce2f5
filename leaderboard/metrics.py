"""How judges are compared with people: one object per metric, with everything about it.

A metric is computed from the rows with verdicts of both people (``value``) and a judge (``judged``), and is the mean
over data sets and repeats; ``group`` says which rows depend on each other. Ranks of judges, and numbers by level, come
from sums over these rows instead (``boards.judges.ranks``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from judging.protocols.replies import NONE_OF_THEM
from stats import agreement as agreements
from stats.agreement import MEASURES, beyond_chance, kappa_of
from stats.arrays import BoolArray, FloatArray, IntArray, mean_ranks, ratio
from stats.classification import ClassScores, class_scores, macro_f1, macro_precision, macro_recall, pair_scores
from stats.correlation import PEARSON, SPEARMAN, pearson, spearman
from stats.figures import percent, tick, two, whole_percent
from stats.generalizability import intraclass
from stats.proportions import mean, rate
from stats.rankings import distances
from stats.results import Estimate
from stats.verdicts import MISSING, TIE, three_way, words
from stats.verdicts import decided as only_decided

GIVEN, SWAPPED = IN_ORDERS = ("given", "swapped")  # columns: a judge's verdict in the item's order, and in the other
ONE_ORDER = "no pair here has a verdict in both orders"
Measured = tuple[Estimate, float | None] | None  # with p if there is a test; None: not defined for such rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """``label`` is its heading in a table, ``words`` a description in one line. ``heat`` is the
    two ends of the color scale of its cells, worst first.

    ``compute`` takes the rows as the kind of verdict prepares them (``OfPairs``, ``OfGrades``); without it the metric
    is about a judge's replies alone. ``terms`` turns rows into columns to sum (n, K), the first of which counts rows;
    ``of_sums`` turns sums (..., K) into values.
    """

    name: str
    label: str
    words: str
    compute: Callable[[Any], Measured] | None = None
    of_sums: Callable[[FloatArray], FloatArray] | None = None
    terms: Callable[[pd.DataFrame], FloatArray] | None = None
    heat: tuple[float, float] = (0.2, 1.0)
    always_shown: bool = False  # also shown when another metric is chosen
    is_share: bool = False  # pages write it in percent

    @property
    def lower_is_better(self) -> bool:
        return self.heat[0] > self.heat[1]

    @property
    def write(self) -> Callable[[float | None], str]:
        return percent if self.is_share else two

    @property
    def unit(self) -> float:
        """What its axis counts in."""
        return 0.01 if self.is_share else 1.0

    def tick(self, value: float) -> str:
        return whole_percent(value) if self.is_share else tick(value)

    @property
    def within_sentence(self) -> str:
        """Its name within a sentence: names of people keep their capital."""
        return self.label if self.name in (PEARSON, SPEARMAN) else self.label.lower()


CONSISTENCY = Metric(
    name="consistency",
    label="Consistency",
    words="mean share of the most frequent verdict over a judge's repeats",
    always_shown=True,
)
MCC = Metric(
    name="mcc",
    label="Same in most repeats",
    words="share of items where more than half of the repeats are the same (MCC)",
)
READABLE = Metric(
    name="readable",
    label="Readable replies",
    words="share of the replies that a judge was asked for that could be read",
)
OF_REPLIES = (CONSISTENCY, MCC, READABLE)


BEYOND_CHANCE = (-0.1, 0.9)  # the colors of what is 0 where two agree by chance alone

# ---- pairs ----


class OfPairs:
    """Votes of people (``value``) and a judge (``judged``) on the same pairs, over data sets and repeats."""

    def __init__(self, paired: pd.DataFrame) -> None:
        self.rows = {
            "first": paired["value"],
            "second": paired["judged"],
            "cluster": paired["group"].to_numpy(),
            "stratum": strata_of(paired),
        }
        self.paired, self.failed = paired, paired["judged"].isna().to_numpy()
        self.scores, self.agreement = cache(self._scores), cache(self._agreement)
        self.in_orders = cache(partial(_right_in_orders, paired))

    def _scores(self, *, ties: bool) -> ClassScores:
        return pair_scores(
            reference=self.rows["first"],
            prediction=self.rows["second"],
            cluster=self.rows["cluster"],
            stratum=self.rows["stratum"],
            ties=ties,
        )

    def _agreement(self, *, decided: bool) -> Measured:
        """The share of rows with the same verdict."""
        read = only_decided if decided else three_way
        return self._same(read(self.rows["first"]), read(self.rows["second"]))

    def sided(self) -> Measured:
        """The share of rows on which people chose a side that have the same one; a tie is another."""
        return self._same(only_decided(self.rows["first"]), three_way(self.rows["second"]))

    def _same(self, value: IntArray, judged: IntArray) -> Measured:
        """The share of rows with the same code. A failure, kept where it counts as wrong, is another one."""
        counted = (value != MISSING) & ((judged != MISSING) | self.failed)
        return rate(hits=(value == judged)[counted], **self._parts(counted)), None

    def _parts(self, rows: BoolArray) -> dict[str, Any]:
        return {name: self.rows[name][rows] for name in ("cluster", "stratum")}

    def kappa(self) -> Measured:
        return kappa(**self.rows), None

    def beyond_chance(self, measure: str) -> Measured:
        return beyond_chance_of_choices(measure, **self.rows), None

    def tie_rate(self) -> Measured:
        judged = three_way(self.rows["second"])
        return rate(hits=(judged == TIE)[judged != MISSING], **self._parts(judged != MISSING)), None

    def right_in(self, orders: Sequence[str]) -> Measured:
        """The share of a judge's verdicts in one order that are people's, or the mean of this share over both."""
        terms = self.in_orders()
        counted, right = terms[:, 0], _mean_right(terms, orders=orders)
        return self._by_order(counted > 0, lambda rows: mean(values=right[rows], ends=(0.0, 1.0), **self._parts(rows)))

    def kappa_of_orders(self) -> Measured:
        judged = self.paired.reindex(columns=IN_ORDERS)
        first_of_item = ~self.paired.duplicated(["item", "repeat"])  # where each label counts, it has several rows
        both = ((judged > MISSING).all(axis=1) & first_of_item).to_numpy()
        return self._by_order(
            both,
            lambda rows: agreements.cohen_kappa(
                first=judged.loc[rows, GIVEN], second=judged.loc[rows, SWAPPED], **self._parts(rows)
            ),
        )

    def _by_order(self, rows: BoolArray, measure: Callable[[BoolArray], Estimate]) -> Measured:
        """``measure`` of these rows, which have a verdict in both orders; None of people, who see a pair in one."""
        if GIVEN not in self.paired:
            return None
        return measure(rows) if rows.any() else Estimate(None, 0, None, "", ONE_ORDER), None


def strata_of(paired: pd.DataFrame) -> Any:
    """Codes of data set and repeat: a metric is the unweighted mean over them (MLLM-as-a-Judge, Table 2).

    Where data sets are pooled, all rows have the same one.
    """
    return paired.groupby(["dataset", "repeat"], observed=True).ngroup().to_numpy()


def kappa(first: Any, second: Any, cluster: Any, stratum: Any = None) -> Estimate:
    """Cohen's kappa over first, second and tie, undecided counting as a tie."""
    return agreements.cohen_kappa(
        first=words(three_way(first)), second=words(three_way(second)), cluster=cluster, stratum=stratum
    )


ON_SCALE = np.array([0.0, 1.0, 0.5, np.nan])  # first, second, a tie between them, nothing


def beyond_chance_of_choices(measure: str, first: Any, second: Any, cluster: Any, stratum: Any = None) -> Estimate:
    """A measure of ``stats.agreement`` over first, tie and second, in this order."""
    a, b = (ON_SCALE[three_way(choices)] for choices in (first, second))
    return beyond_chance(
        measure=measure, first=a, second=b, cluster=cluster, stratum=stratum, categories=ON_SCALE[:-1].tolist()
    )


def _tables(sums: FloatArray, *, decided: bool) -> FloatArray:
    """The confusion tables in sums (..., 10): the number of rows that count, and the nine cells."""
    tables = sums[..., 1:].reshape(*sums.shape[:-1], 3, 3)
    return tables[..., :2, :2] if decided else tables


def _accuracy(sums: FloatArray, *, decided: bool) -> FloatArray:
    """Of all rows that count, failures that count as wrong among them."""
    return ratio(np.trace(_tables(sums, decided=decided), axis1=-2, axis2=-1), sums[..., 0])


def _of_tables(measure: Callable[[FloatArray], FloatArray], sums: FloatArray, *, decided: bool) -> FloatArray:
    return measure(_tables(sums, decided=decided))


def _cells(paired: pd.DataFrame, *, decided: bool, failures: bool, sided: bool = False) -> FloatArray:
    """One row of ten for each pair: whether it counts, and its cell in the confusion table. ``failures``: those that
    are kept count, but have no cell; ``sided``: a pair counts where people chose a side, whatever the judge did.
    """
    first, second = three_way(paired["value"]), three_way(paired["judged"])
    judged = second != MISSING
    terms = np.zeros((len(paired), 10))
    counted = (first < TIE) & ((second < TIE) | sided) if decided else np.ones(len(paired), dtype=bool)
    terms[:, 0] = counted & (judged | failures)
    terms[np.flatnonzero(judged), 1 + 3 * first[judged] + second[judged]] = 1
    return terms


def _right_in_orders(paired: pd.DataFrame) -> FloatArray:
    """For each row (n, 3): whether it has a judge's verdict in both orders, and whether each of these is people's."""
    if GIVEN not in paired:
        return np.zeros((len(paired), 3))
    judged, value = paired[list(IN_ORDERS)].to_numpy(), three_way(paired["value"])[:, None]
    counted = ~np.isnan(judged).any(axis=1, keepdims=True) & (value != MISSING)
    return np.hstack([counted, counted & (judged == value)]).astype(np.float64)


def _mean_right(sums: FloatArray, *, orders: Sequence[str]) -> FloatArray:
    right = [sums[..., 1 + IN_ORDERS.index(order)] for order in orders]
    return ratio(np.mean(right, axis=0), sums[..., 0])


# One function for each way to count: ranks compute the terms of all metrics with the same one once.
CELLS = {
    (decided, failures): partial(_cells, decided=decided, failures=failures)
    for decided, failures in product((False, True), repeat=2)
}


def _share(name: str, label: str, words: str, *, decided: bool = False, **more: Any) -> Metric:
    """A share of pairs with people's verdict. ``decided``: only rows where both chose a side count."""
    return Metric(
        name=name,
        label=label,
        words=words,
        compute=lambda paired: paired.agreement(decided=decided),
        of_sums=partial(_accuracy, decided=decided),
        terms=CELLS[decided, True],
        is_share=True,
        **more,
    )


def _on_pairs(*, of_sums: Callable[[FloatArray], FloatArray], decided: bool = False, **more: Any) -> Metric:
    """Another metric of confusion tables; failures do not count."""
    return Metric(of_sums=partial(_of_tables, of_sums, decided=decided), terms=CELLS[decided, False], **more)


def _of_scores(name: str, label: str, words: str, of_sums: Callable[[FloatArray], FloatArray], **more: Any) -> Metric:
    """One of MLLM-as-a-Judge, Table 2: ``with_tie`` and ``without_tie``."""
    field, _, ties = name.partition("_")
    decided = ties == "without_tie"
    return _on_pairs(
        name=name,
        label=label,
        words=words,
        compute=lambda paired: (getattr(paired.scores(ties=not decided), field), None),
        of_sums=of_sums,
        decided=decided,
        **more,
    )


def _beyond_chance(name: str, label: str, words: str) -> Metric:
    measure = MEASURES[name]
    return _on_pairs(
        name=name,
        label=label,
        words=f"agreement beyond chance over first, tie and second{words}",
        compute=lambda paired: paired.beyond_chance(name),
        of_sums=lambda tables: measure.of_table(tables, ON_SCALE[:-1]),
        heat=BEYOND_CHANCE,
    )


def _in_order(name: str, label: str, words: str, *orders: str) -> Metric:
    return Metric(
        name=name,
        label=label,
        words=f"{words}, of pairs judged in both orders",
        compute=lambda paired: paired.right_in(orders),
        of_sums=partial(_mean_right, orders=orders),
        terms=_right_in_orders,
    )


TIE_RATE = Metric(
    name="tie_rate",
    label="Says tie",
    words="share of its verdicts that are a tie, undecided among them",
    compute=OfPairs.tie_rate,
)
WITH_TIE = "share of items with people's verdict; undecided counts as a tie"
WITHOUT_TIE = "share of items with people's verdict where both chose a side"
SIDED = Metric(
    name="accuracy_sided",
    label="Agreement",
    words="share of the pairs on which people chose a side where it chose the same one; a tie is wrong there",
    compute=OfPairs.sided,
    of_sums=partial(_accuracy, decided=True),
    terms=partial(_cells, decided=True, failures=True, sided=True),
    is_share=True,
    always_shown=True,
)
PAIRS = (
    _share("accuracy_with_tie", "Ties counted", WITH_TIE, always_shown=True),
    SIDED,
    _of_scores("f1_with_tie", "F1", "F1, mean over first, second and tie", macro_f1, always_shown=True),
    _of_scores("recall_with_tie", "Recall", "recall, mean over first, second and tie", macro_recall),
    _share("accuracy_without_tie", "Both chose a side", WITHOUT_TIE, decided=True, always_shown=True),
    _of_scores("f1_without_tie", "F1, decided", "F1, mean over first and second, where both chose a side", macro_f1),
    _of_scores(
        "recall_without_tie",
        "Recall, decided",
        "recall, mean over first and second, where both chose a side",
        macro_recall,
    ),
    _of_scores("precision_with_tie", "Precision", "precision, mean over first, second and tie", macro_precision),
    _of_scores(
        "precision_without_tie",
        "Precision, decided",
        "precision, mean over first and second, where both chose a side",
        macro_precision,
    ),
    _share("agreement", "Same verdict", "share of items with the same verdict; undecided counts as a tie"),
    _share(
        "agreement_decided",
        "Same verdict, decided",
        "share of items with the same verdict where both chose a side",
        decided=True,
    ),
    _on_pairs(
        name="kappa",
        label="Kappa",
        words="Cohen's kappa over first, second and tie: agreement beyond chance",
        compute=OfPairs.kappa,
        of_sums=kappa_of,
        heat=BEYOND_CHANCE,
        always_shown=True,
    ),
    _beyond_chance("kappa_linear", "Weighted kappa", " by weighted kappa: a tie is half way between the sides"),
    _beyond_chance("kappa_quadratic", "Weighted kappa, quadratic", " by weighted kappa, distances squared"),
    _beyond_chance("ac1", "AC1", " by Gwet's AC1, steady where one verdict is rare"),
    _beyond_chance("ac2", "AC2", " by Gwet's AC2: as AC1, distances squared"),
    _in_order(
        "accuracy_mean_of_orders", "Accuracy, mean of orders", "mean of the accuracies in each order", *IN_ORDERS
    ),
    _in_order(
        "accuracy_given_order",
        "Accuracy, given order",
        "share of verdicts that are people's, the answers shown in the item's order",
        GIVEN,
    ),
    _in_order(
        "accuracy_swapped_order",
        "Accuracy, swapped",
        "share of verdicts that are people's, the answers shown the other way round",
        SWAPPED,
    ),
    Metric(
        name="kappa_of_orders",
        label="Kappa of orders",
        words="Cohen's kappa between a judge's verdicts in the two orders of a pair: agreement beyond chance",
        compute=OfPairs.kappa_of_orders,
        heat=BEYOND_CHANCE,
    ),
    TIE_RATE,
    *OF_REPLIES,
)


# ---- scores, points and rankings ----


class OfGrades:
    """Scores, percentages of points or rankings by people (``value``) and a judge (``judged``), of any number of data
    sets and repeats.
    """

    def __init__(self, paired: pd.DataFrame) -> None:
        self.paired, self.cluster, self.stratum = paired, paired["group"].to_numpy(), strata_of(paired)
        self.scores = cache(self._scores)

    def correlation(self, name: str) -> Measured:
        judged, value = (self.paired[column].to_numpy(np.float64) for column in ("judged", "value"))
        result = {PEARSON: pearson, SPEARMAN: spearman}[name](
            x=judged, y=value, cluster=self.cluster, stratum=self.stratum
        )
        return result.estimate, result.p

    def distance(self) -> Measured:
        distance = distance_of_rankings(self.paired)
        return mean(values=distance, cluster=self.cluster, stratum=self.stratum, ends=(0.0, 1.0)), None

    def agreement(self) -> Measured:
        hits = (self.paired["judged"] == self.paired["value"]).to_numpy(np.float64)
        return rate(hits=hits, cluster=self.cluster, stratum=self.stratum), None

    def misread(self) -> Measured:
        value, judged = (self.paired[column].to_numpy(object) for column in ("value", "judged"))
        other = value != judged
        hits = ((value == NONE_OF_THEM) | (judged == NONE_OF_THEM))[other]
        return rate(hits=hits, cluster=self.cluster[other], stratum=self.stratum[other]), None

    def _scores(self) -> ClassScores:
        value, judged = (self.paired[column].to_numpy(object) for column in ("value", "judged"))
        return class_scores(reference=value, prediction=judged, cluster=self.cluster, stratum=self.stratum)

    def beyond_chance(self, measure: str) -> Measured:
        judged, value = (self.paired[column].to_numpy() for column in ("judged", "value"))
        columns = {"first": judged, "second": value, "cluster": self.cluster, "stratum": self.stratum}
        return beyond_chance(measure=measure, **columns), None

    def intraclass(self, which: str) -> Measured:
        n = len(self.paired)
        of_two = intraclass(
            item=np.tile(np.arange(n), 2),
            rater=np.repeat([0, 1], n),
            value=self.paired[["judged", "value"]].to_numpy(np.float64).T.ravel(),
            cluster=np.tile(self.cluster, 2),
            stratum=np.tile(self.stratum, 2),
        )
        return replace(getattr(of_two, which), n=n), None


def distance_of_rankings(paired: pd.DataFrame) -> FloatArray:
    """The distance of each judged ranking (``judged``) from people's (``value``), shape (n,)."""
    return distances(first=paired["judged"].tolist(), second=paired["value"].tolist())


def _r_of_sums(sums: FloatArray) -> FloatArray:
    """r of (..., 6) sums n, x, y, xx, yy, xy; NaN where a column does not vary."""
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    vx, vy, cov = n * xx - x * x, n * yy - y * y, n * xy - x * y
    flat = (vx <= 1e-9 * n * n) | (vy <= 1e-9 * n * n)
    return np.where(flat, np.nan, ratio(cov, np.sqrt(np.maximum(vx, 0) * np.maximum(vy, 0))))


def _squares(sums: FloatArray) -> tuple[FloatArray, ...]:
    """Of (..., 6) sums as `_on_one_scale` has them: n, the squared differences of x and y on the same rows, of every x
    and every y, and of every two x and every two y.
    """
    n, x, y, xx, yy, xy = np.moveaxis(sums, -1, 0)
    return n, xx + yy - 2 * xy, n * (xx + yy) - 2 * x * y, n * (xx + yy) - x * x - y * y


def _icc_agreement(sums: FloatArray) -> FloatArray:
    n, same, crossed, _ = _squares(sums)
    return 1 - ratio((n - 1) * same, crossed - same)


def _icc_consistency(sums: FloatArray) -> FloatArray:
    n, same, crossed, own = _squares(sums)
    return ratio(crossed - n * same, own)


def _mean_of_sums(sums: FloatArray) -> FloatArray:
    return ratio(sums[..., 1], sums[..., 0])


def _products(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.stack([np.ones(len(x)), x, y, x * x, y * y, x * y], axis=1)


def _centred(paired: pd.DataFrame) -> FloatArray:
    x, y = paired["judged"].to_numpy(np.float64), paired["value"].to_numpy(np.float64)
    return _products(x - x.mean(), y - y.mean()) if len(x) else np.zeros((0, 6))


def _on_one_scale(paired: pd.DataFrame) -> FloatArray:
    x, y = paired["judged"].to_numpy(np.float64), paired["value"].to_numpy(np.float64)
    return _products(x - y.mean(), y - y.mean()) if len(x) else np.zeros((0, 6))


def _ranks(paired: pd.DataFrame) -> FloatArray:
    """Taken once, within each ``part``."""
    columns = []
    for name in ("judged", "value"):
        within = paired.groupby("part")[name].transform(lambda values: mean_ranks(values.to_numpy()) / len(values))
        columns.append(within.to_numpy(np.float64) - 0.5)
    return _products(columns[0], columns[1])


def _values_counted(values: Callable[[pd.DataFrame], FloatArray], paired: pd.DataFrame) -> FloatArray:
    return np.stack([np.ones(len(paired)), values(paired)], axis=1)


def _hits(paired: pd.DataFrame) -> FloatArray:
    return np.asarray(paired["judged"] == paired["value"], dtype=np.float64)


def _on_scale(name: str, label: str, words: str, compute: Callable[[OfGrades], Measured], **more: Any) -> Metric:
    """How near a judge's scores are to people's."""
    return Metric(name=name, label=label, words=words, compute=compute, heat=(0.0, 0.9), **more)


SCORES = (
    _on_scale(
        PEARSON,
        "Pearson",
        "Pearson correlation with people's scores",
        lambda paired: paired.correlation(PEARSON),
        of_sums=_r_of_sums,
        terms=_centred,
        always_shown=True,
    ),
    _on_scale(
        SPEARMAN,
        "Spearman",
        "Spearman correlation with people's scores",
        lambda paired: paired.correlation(SPEARMAN),
        of_sums=_r_of_sums,
        terms=_ranks,
        always_shown=True,
    ),
    _on_scale(
        "icc_agreement",
        "ICC, agreement",
        "intraclass correlation ICC(A,1) with people's scores: 1 where the scores are the same",
        lambda paired: paired.intraclass("agreement"),
        of_sums=_icc_agreement,
        terms=_on_one_scale,
    ),
    _on_scale(
        "icc_consistency",
        "ICC, consistency",
        "intraclass correlation ICC(C,1) with people's scores: 1 where they are the same but for a constant",
        lambda paired: paired.intraclass("consistency"),
        of_sums=_icc_consistency,
        terms=_on_one_scale,
    ),
    _on_scale(
        "kappa_linear",
        "Weighted kappa",
        "weighted kappa with people's scores, by their distance: agreement beyond chance",
        lambda paired: paired.beyond_chance("kappa_linear"),
    ),
    _on_scale(
        "kappa_quadratic",
        "Weighted kappa, quadratic",
        "weighted kappa with people's scores, by the square of their distance: agreement beyond chance",
        lambda paired: paired.beyond_chance("kappa_quadratic"),
    ),
    *OF_REPLIES,
)
RANKINGS = (
    Metric(
        name="levenshtein",
        label="Distance",
        words="normalized Levenshtein distance from people's order: 0 is the same order, lower is better",
        compute=OfGrades.distance,
        of_sums=_mean_of_sums,
        terms=partial(_values_counted, distance_of_rankings),
        heat=(1.0, 0.0),
    ),
    *OF_REPLIES,
)


def _agreement(words: str) -> Metric:
    return Metric(
        name="agreement",
        label="Agreement",
        words=words,
        compute=OfGrades.agreement,
        of_sums=_mean_of_sums,
        terms=partial(_values_counted, _hits),
    )


def _kappa(classes: str) -> Metric:
    return Metric(
        name="kappa",
        label="Kappa",
        words=f"Cohen's kappa over the {classes}: agreement beyond chance",
        compute=lambda paired: paired.beyond_chance("kappa"),
        heat=BEYOND_CHANCE,
        always_shown=True,
    )


def _ac1(classes: str) -> Metric:
    return Metric(
        name="ac1",
        label="AC1",
        words=f"agreement beyond chance over the {classes} by Gwet's AC1, steady where one is rare",
        compute=lambda paired: paired.beyond_chance("ac1"),
        heat=BEYOND_CHANCE,
    )


def _over_categories(name: str, label: str, **more: Any) -> Metric:
    words = f"{label}, mean over the categories that people or the judge gave"
    return Metric(
        name=name, label=label, words=words, compute=lambda paired: (getattr(paired.scores(), name), None), **more
    )


READINGS = (
    _agreement("share of answers that the judge reads as most people do"),
    _kappa("options"),
    _ac1("options"),
    Metric(
        name="case_1",
        label="Case I",
        words="of the answers read otherwise, the share where people or the judge read no option, the others: Case II",
        compute=OfGrades.misread,
    ),
    *OF_REPLIES,
)
CATEGORIES = (
    _agreement("share of items to which the judge gives the category that most people give"),
    _kappa("categories"),
    _ac1("categories"),
    _over_categories("f1", "F1", always_shown=True),
    _over_categories("recall", "Recall"),
    _over_categories("precision", "Precision"),
    *OF_REPLIES,
)
