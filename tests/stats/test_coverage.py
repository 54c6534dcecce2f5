"""How often each published interval holds the truth, over grids of designs.

The rule: over a grid the mean coverage is at least .93, and no design is below .90; and no interval is typically more
than 1.5 times as wide as one by somebody who knows how far estimates scatter. `make soak` simulates whole grids
and prints them; the ordinary suite a few designs of each, with few sets. Not here: Elo's replicates and ranges of
ranks, which are no confidence intervals of a parameter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom, norm

from stats.agreement import MEASURES, beyond_chance, cohen_kappa
from stats.answers import yes_no_scores
from stats.bias import length, length_of_scores, own_family, position, within_samples
from stats.bradley_terry import BradleyTerry, fit
from stats.classification import class_scores, pair_scores
from stats.controlled import contrast, length_controlled_rates
from stats.controlled import fit as controlled_fit
from stats.correlation import correlation_difference, pearson, spearman
from stats.desiderata import calibration, relative
from stats.generalizability import components, intraclass
from stats.paired import change
from stats.parts import over_parts
from stats.prediction import prediction_powered
from stats.proportions import mean, proportion, rate, rate_by_sizes, rates, t_quantile, wilson
from stats.rankings import rank_correlation
from stats.reliability import fleiss_kappa, gwet, krippendorff_alpha, steadiness
from stats.results import Estimate

MEAN, LEAST = 0.93, 0.90


@dataclass(frozen=True)
class Design:
    """`groups` of `rows` rows each, or of geometric sizes with this mean where `unequal`, or of lognormal ones whose
    logarithms have the standard deviation `skew`.

    `share` is that of hits, and `spread` how far groups differ in it (standard deviation of the log-odds). `ceiling`
    moves latent scores towards the end of a scale from 1 to 5. `models` and `further` are for ratings and unlabelled
    rows. `parts` are for means over data sets of unequal size.
    """

    groups: int
    rows: int = 1
    unequal: bool = False
    share: float = 0.5
    spread: float = 1.0
    ceiling: float = 0.0
    models: int = 3
    further: int = 0
    skew: float = 0.0
    parts: tuple[int, ...] = ()  # groups of each data set but the first, which has `groups`

    def sizes(self, rng):
        if self.skew:
            drawn = self.rows * rng.lognormal(-(self.skew**2) / 2, self.skew, self.groups)
            return np.maximum(np.round(drawn), 1).astype(int)
        return rng.geometric(1 / self.rows, self.groups) if self.unequal else np.full(self.groups, self.rows)

    @property
    def effective(self):
        """How many equal groups these are worth (Kish 1965)."""
        rng = np.random.default_rng(3)
        return float(np.mean([sizes.sum() ** 2 / (sizes @ sizes) for sizes in (self.sizes(rng) for _ in range(200))]))

    def group(self, rng):
        """The group of each row."""
        return np.repeat(np.arange(self.groups), self.sizes(rng))


Estimates = Callable[[np.random.Generator, Design], Sequence[Estimate]]
Truth = Callable[[Design], Sequence[float]]


@dataclass(frozen=True)
class Grid:
    """`estimates` draws a set of a design and gives what is estimated from it; `truth` the same of all sets."""

    name: str
    estimates: Estimates
    designs: tuple[Design, ...]
    few: tuple[Design, ...]
    truth: Truth | None = None  # None: the estimates from a very large set
    sets: int = 2000
    ends: tuple[float, float] | None = None  # between which the interval is Wilson's
    widest: float = 1.5  # beside that of `_knowing`
    typical: Callable[[np.ndarray], float] = np.mean  # which of the widths

    def truth_of(self, design: Design, rows: int) -> Sequence[float]:
        if self.truth:
            return self.truth(design)
        alike = replace(design, groups=rows // design.rows, unequal=False, skew=0.0, parts=())
        return _of_large_set(self.estimates, alike)


@cache
def _of_large_set(estimates: Estimates, design: Design) -> list[float]:
    return [estimate.value for estimate in estimates(np.random.default_rng(1), design)]


@dataclass(frozen=True)
class Coverage:
    design: Design
    share: float
    width: float
    wider: float  # the typical width beside that of `_knowing`
    without: float  # share of the sets that have no interval


def coverage(grid: Grid, design: Design, *, sets: int, rows: int) -> Coverage:
    """Of `sets` sets; `rows` are those of the large set that stands for the truth."""
    rng, truth = np.random.default_rng(7), grid.truth_of(design, rows)
    found: list[list[tuple[float, float, float]]] = [[] for _ in truth]
    for _ in range(sets):
        for at, estimate in enumerate(grid.estimates(rng, design)):
            if estimate.interval:
                found[at].append((estimate.value, estimate.interval.low, estimate.interval.high))
    tables = [np.array(table).reshape(-1, 3).T for table in found]
    held = [(low <= value) & (value <= high) for (_, low, high), value in zip(tables, truth, strict=True)]
    widths = np.concatenate([high - low for _, low, high in tables])
    knowing = [_knowing(values, value, design, grid.ends) for (values, _, _), value in zip(tables, truth, strict=True)]
    if not len(widths):
        return Coverage(design, np.nan, np.nan, np.nan, 1.0)
    return Coverage(
        design,
        float(np.concatenate(held).mean()),
        float(widths.mean()),
        float(grid.typical(widths) / grid.typical(np.concatenate(knowing))),
        1 - len(widths) / (sets * len(truth)),
    )


def _knowing(values, truth, design, ends):
    """How wide the interval is of somebody who knows by how much estimates scatter, (sets,)."""
    spread, df = float(np.std(values)) if len(values) else 0.0, max(design.effective, 2) - 1
    if ends is None:
        return np.full(len(values), 2 * t_quantile(0.95, df) * spread)
    low, high = ends
    p = (truth - low) / (high - low)
    n = p * (1 - p) / max(spread / (high - low), 1e-9) ** 2
    shares = np.clip((values - low) / (high - low), 0, 1)
    intervals = [wilson(successes=share * n, n=n, df=df) for share in shares]
    return (high - low) * np.array([interval.high - interval.low for interval in intervals])


# ---- what is drawn ----


NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(41)


@cache
def log_odds(share: float, spread: float) -> float:
    """The mean log-odds at which hits of groups that differ so much have this share."""

    def excess(b):
        return float(WEIGHTS @ expit(b + spread * NODES) / WEIGHTS.sum()) - share

    return brentq(excess, -40, 40)


def hits(rng, design):
    """Hits and their groups."""
    group = design.group(rng)
    of_group = log_odds(design.share, design.spread) + design.spread * rng.standard_normal(design.groups)
    return (rng.random(len(group)) < expit(of_group)[group]).astype(float), group


def scores(rng, design, judges=2):
    """Scores 1 to 5 of as many judges on the same rows, (judges, n), and the groups. What groups share, what rows share
    and what a judge sees alone vary alike.
    """
    group = design.group(rng)
    quality = rng.standard_normal(design.groups)[group] + rng.standard_normal(len(group))
    seen = quality + rng.standard_normal((judges, len(group)))
    return np.clip(np.round(3 + design.ceiling + 0.7 * seen), 1, 5), group


def mean_score(design):
    latent = norm(3 + design.ceiling, 0.7 * np.sqrt(3))
    return 5 - sum(latent.cdf(k + 0.5) for k in (1, 2, 3, 4))


def verdicts(rng, design, judges=2):
    """As `scores`, cut to words."""
    drawn, group = scores(rng, design, judges)
    words = np.array(["first", "tie", "second"], dtype=object)
    return words[np.digitize(drawn, [2.5, 3.5])], group


def own(estimate: Callable[..., Estimate]) -> Estimates:
    """An estimator of one number, as `Grid` takes them."""
    return lambda rng, design: [estimate(rng, design)]


# ---- one estimator per published interval ----


@own
def one_share(rng, design):
    drawn, group = hits(rng, design)
    return rate(hits=drawn, cluster=group)


@own
def pooled_share(rng, design):
    """Two repeats of one judge on the same rows, of which it mostly says the same again."""
    group = design.group(rng)
    of_group = log_odds(design.share, design.spread) + design.spread * rng.standard_normal(design.groups)
    drawn = rng.random((2, len(group))) < expit(of_group)[group]
    drawn[1] = np.where(rng.random(len(group)) < 0.8, drawn[0], drawn[1])
    return rate(hits=drawn.ravel().astype(float), cluster=np.tile(group, 2), stratum=np.repeat([0, 1], len(group)))


def shares_beside_others(rng, design):
    """The share of the last of five models on the same rows, which differ in how right they are."""
    group, hit = design.group(rng), []
    for share in (0.5, 0.3, 0.1, 0.1, design.share):
        of_group = log_odds(share, design.spread) + design.spread * rng.standard_normal(design.groups)
        hit.append(rng.random(len(group)) < expit(of_group)[group])
    part = np.repeat(np.arange(5), len(group))
    return rates(hits=np.concatenate(hit), cluster=np.tile(group, 5), part=part, parts=5)[4:]


@own
def replies_of_items(rng, design):
    """Of six replies to each item, which mostly fail together."""
    drawn, group = hits(rng, design)
    item = np.repeat(np.arange(len(group)), 6)
    again = rng.random(len(item)) < design.share
    failed = np.where(rng.random(len(item)) < 0.9, drawn[item], again)
    return rate(hits=failed, cluster=group[item], item=item)


@own
def share_by_sizes(rng, design):
    """All rows of a group alike: what it allows for."""
    sizes = design.sizes(rng)
    alike = rng.random(design.groups) < design.share
    return rate_by_sizes(hits=int(sizes[alike].sum()), n=int(sizes.sum()), cluster=np.repeat(range(len(sizes)), sizes))


@own
def mean_of_scores(rng, design):
    (drawn,), group = scores(rng, design, 1)
    return mean(values=drawn, cluster=group, ends=(1, 5))


@own
def pooled_mean(rng, design):
    """Two repeats of one judge on the same rows."""
    drawn, group = scores(rng, design)
    return mean(values=drawn.ravel(), cluster=np.tile(group, 2), stratum=np.repeat([0, 1], len(group)), ends=(1, 5))


def over_data_sets(draw, estimate):
    """The mean over data sets of unequal size, each with rows like the others."""

    @own
    def of_all(rng, design):
        drawn, group, stratum = [], [], []
        for part, groups in enumerate((design.groups, *design.parts)):
            values, own_group = draw(rng, replace(design, groups=groups))
            drawn.append(np.atleast_2d(values))
            group.append(own_group + 1_000_000 * part)
            stratum += [part] * len(own_group)
        columns, cluster, stratum = np.hstack(drawn), np.concatenate(group), np.array(stratum)
        whole = estimate(columns, cluster=cluster, stratum=stratum)
        parts = {
            str(part): estimate(columns[:, stratum == part], cluster=cluster[stratum == part])
            for part in range(len(design.parts) + 1)
        }
        return over_parts(whole, parts, apart=True)

    return of_all


mean_share_over_sets = over_data_sets(hits, lambda columns, **more: rate(hits=columns[0], **more))
mean_score_over_sets = over_data_sets(
    lambda rng, design: scores(rng, design, 1), lambda columns, **more: mean(values=columns[0], ends=(1, 5), **more)
)
pearson_over_sets = over_data_sets(scores, lambda columns, **more: pearson(x=columns[0], y=columns[1], **more).estimate)
kappa_over_sets = over_data_sets(
    verdicts, lambda columns, **more: cohen_kappa(first=columns[0], second=columns[1], **more)
)


@own
def mean_without_ends(rng, design):
    group = design.group(rng)
    return mean(values=rng.standard_normal(design.groups)[group] + rng.standard_normal(len(group)), cluster=group)


@own
def change_of_scores(rng, design):
    (before, after), group = scores(rng, design)
    return change(before=before, after=after, cluster=group, ends=(1, 5))


@own
def change_of_hits(rng, design):
    """Right before, and right after, of rows that are hard for both."""
    group = design.group(rng)
    b = log_odds(design.share, 1.5) + rng.standard_normal(design.groups)[group] + rng.standard_normal(len(group))
    before, after = (rng.random((2, len(group))) < expit(b + np.array([[0], [0.4]]))).astype(float)
    return change(before=before, after=after, cluster=group, ends=(0, 1))


@own
def pearson_r(rng, design):
    (x, y), group = scores(rng, design)
    return pearson(x=x, y=y, cluster=group).estimate


@own
def spearman_rho(rng, design):
    (x, y), group = scores(rng, design)
    return spearman(x=x, y=y, cluster=group).estimate


def repeated(rng, design):
    """People's scores, and two repeats of a judge's beside them: x, y, cluster, stratum."""
    (people, *judge), group = scores(rng, design, 3)
    stratum = np.repeat([0, 1], len(group))
    return {"x": np.tile(people, 2), "y": np.concatenate(judge), "cluster": np.tile(group, 2), "stratum": stratum}


@own
def pooled_pearson(rng, design):
    return pearson(**repeated(rng, design)).estimate


@own
def pooled_spearman(rng, design):
    return spearman(**repeated(rng, design)).estimate


def difference_of(name):
    @own
    def of_two(rng, design):
        (people, first, second), group = scores(rng, design, 3)
        noisy = np.clip(np.round(second + rng.standard_normal(len(group))), 1, 5)
        columns = {"first": first, "second": noisy, "reference": people, "cluster": group}
        return correlation_difference(**columns, stratum=np.zeros(len(group)), name=name).difference

    return of_two


@own
def kappa(rng, design):
    (first, second), group = verdicts(rng, design)
    return cohen_kappa(first=first, second=second, cluster=group)


@own
def pooled_kappa(rng, design):
    (people, *judge), group = verdicts(rng, design, 3)
    return cohen_kappa(
        first=np.tile(people, 2),
        second=np.concatenate(judge),
        cluster=np.tile(group, 2),
        stratum=np.repeat([0, 1], len(group)),
    )


def labelled(drawn, group):
    """Unit, value and cluster of labels (judges, n)."""
    units = np.tile(np.arange(len(group)), len(drawn))
    return {"unit": units, "value": drawn.ravel(), "cluster": np.tile(group, len(drawn))}


def alpha_of(metric):
    @own
    def alpha(rng, design):
        """Of three people, each of whom leaves a fifth out."""
        drawn, group = scores(rng, design, 3)
        drawn[rng.random(drawn.shape) < 0.2] = np.nan
        return krippendorff_alpha(**labelled(drawn, group), metric=metric)

    return alpha


def beyond(measure):
    @own
    def of_two(rng, design):
        (first, second), group = scores(rng, design)
        return beyond_chance(measure=measure, first=first, second=second, cluster=group, categories=range(1, 6))

    return of_two


@own
def gwet_of_three(rng, design):
    drawn, group = scores(rng, design, 3)
    drawn[rng.random(drawn.shape) < 0.2] = np.nan
    return gwet(**labelled(drawn, group), measure="ac2", categories=range(1, 6))


def reliability(name):
    @own
    def of_three(rng, design):
        """Three people, one of them strict, each of whom leaves a fifth out."""
        drawn, group = scores(rng, design, 3)
        drawn[2] = np.maximum(drawn[2] - 1, 1)
        columns = labelled(drawn, group)
        there = rng.random(drawn.size) < 0.8
        rater = np.repeat(np.arange(3), len(group))
        table = {name: column[there] for name, column in columns.items()}
        return getattr(
            intraclass(item=table["unit"], rater=rater[there], value=table["value"], cluster=table["cluster"]), name
        )

    return of_three


def variance_shares(rng, design):
    """Of prompts with items, each rated by three people, one of them strict, each of whom leaves a fifth out."""
    group = design.group(rng)
    item, person = np.indices((len(group), 3)).reshape(2, -1)
    of_group, of_item = rng.standard_normal(design.groups), 1.5 * rng.standard_normal(len(group))
    value = of_group[group[item]] + of_item[item] - 0.8 * (person == 2) + rng.standard_normal(len(item))
    there = rng.random(len(item)) < 0.8
    columns = {"value": value, "item": item, "prompt": group[item], "crossed": person}
    found = components(**{name: column[there] for name, column in columns.items()}, name="person")
    return [part.share for part in found.parts]


@own
def fleiss(rng, design):
    return fleiss_kappa(**labelled(*verdicts(rng, design, 3)))


def pair_score(name, ties=True):
    @own
    def of_pairs(rng, design):
        (reference, prediction), group = verdicts(rng, design)
        return getattr(pair_scores(reference=reference, prediction=prediction, cluster=group, ties=ties), name)

    return of_pairs


def of_five(measure, name=None):
    @own
    def of_categories(rng, design):
        """Five categories, some of them rare."""
        (first, second), group = scores(rng, design)
        if name is None:
            return measure(first=first, second=second, cluster=group)
        return getattr(measure(reference=first, prediction=second, cluster=group), name)

    return of_categories


@own
def pooled_f1(rng, design):
    (people, *judge), group = verdicts(rng, design, 3)
    columns = {"reference": np.tile(people, 2), "prediction": np.concatenate(judge), "cluster": np.tile(group, 2)}
    return pair_scores(**columns, stratum=np.repeat([0, 1], len(group)), ties=True).f1


def yes_no(name):
    @own
    def of_answers(rng, design):
        key, group = hits(rng, design)
        right = rng.random(len(group)) < expit(1 + rng.standard_normal(design.groups))[group]
        return getattr(yes_no_scores(key=key, said=np.where(right, key, 1 - key), cluster=group), name)

    return of_answers


def steady(name):
    @own
    def of_repeats(rng, design):
        """Three repeats on each row, some of them without a verdict."""
        group = design.group(rng)
        firm = expit(design.ceiling + rng.standard_normal(design.groups)[group])
        same = rng.random((3, len(group))) < firm
        verdict = np.where(same, "first", np.where(rng.random(same.shape) < 0.8, "second", None))
        table = pd.DataFrame({"item": np.tile(np.arange(len(group)), 3), "verdict": verdict.ravel()})
        return getattr(steadiness(table.assign(group=np.tile(group, 3)).dropna(), asked=3), name)

    return of_repeats


def place(name):
    @own
    def of_orders(rng, design):
        """A judge that takes the first place, whatever stands there, in a share of the pairs that differs by group."""
        swayed, group = hits(rng, design)
        straight = np.where(swayed == 1, "first", "second")
        turned = np.where((swayed == 0) & (rng.random(len(group)) < 0.1), "first", "second")
        return getattr(position(straight=straight, turned=turned, cluster=group), name)

    return of_orders


@own
def length_slope(rng, design):
    group = design.group(rng)
    tokens = rng.lognormal(4, 0.7, (len(group), 2))
    gap = tokens[:, 0] - tokens[:, 1]
    taste = rng.standard_normal(design.groups)[group] * design.spread / 2
    odds = design.ceiling / 2 + (0.5 + taste) * np.tanh(gap / 70)
    return length(won=rng.random(len(group)) < expit(odds), tokens=tokens, cluster=group).slope


@own
def slope_of_scores(rng, design):
    """Samples with three answers each."""
    of_sample = design.group(rng)
    sample = np.repeat(np.arange(len(of_sample)), 3)
    tokens = rng.lognormal(4, 0.7, len(sample))
    taste = 0.004 * (1 + design.spread * rng.standard_normal(design.groups)[of_sample][sample])
    quality = design.ceiling + rng.standard_normal(len(sample)) + rng.standard_normal(len(of_sample))[sample]
    score = np.clip(np.round(3 + quality + taste * (tokens - 60)), 1, 5)
    score, tokens = (within_samples(column, sample) for column in (score, tokens))
    return length_of_scores(score=score, tokens=tokens, cluster=of_sample[sample])


def family(width):
    @own
    def extra(rng, design):
        (people, judge), group = scores(rng, design)
        is_own = rng.random(len(group)) < 1 / 4
        judge = np.minimum(judge + (is_own & (rng.random(len(group)) < 0.3)), 5)
        if width == 1:
            people, judge = people > 3, judge > 3
        return own_family(judge=judge, people=people, own=is_own, cluster=group, width=width)

    return extra


def votes(rng, design, taste):
    """Votes in groups that differ in what they favour: `taste` (groups, models). A fifth are ties."""
    group = design.group(rng)
    theta = np.linspace(-0.6, 0.6, design.models) + taste
    a = rng.integers(0, design.models, len(group))
    b = (a + rng.integers(1, design.models, len(group))) % design.models
    won = rng.random(len(group)) < expit(theta[group, a] - theta[group, b])
    return a, b, np.where(rng.random(len(group)) < 0.2, 0.5, won), group


def fitted(a, b, y, group, item, models) -> BradleyTerry:
    names = [str(model) for model in range(models)]
    return fit(a=a, b=b, y=y, models=names, group=group, item=item, rng=np.random.default_rng(0), draws=2)


def by_group(rng, design):
    taste = 0.5 * rng.standard_normal((design.groups, design.models))
    a, b, y, group = votes(rng, design, taste)
    return fitted(a, b, y, group, np.arange(len(y)), design.models)


def prompts_fixed(rng, design):
    """As many prompts as models, the same in every set; `groups` items of them with one pair each and `rows` votes."""
    prompts = design.models
    taste = 0.5 * np.random.default_rng(2).standard_normal((prompts, design.models))
    item = design.group(rng)
    prompt = rng.integers(0, prompts, design.groups)
    a = rng.integers(0, design.models, design.groups)
    b = (a + rng.integers(1, design.models, design.groups)) % design.models
    theta = np.linspace(-0.6, 0.6, design.models) + taste
    odds = theta[prompt, a] - theta[prompt, b] + 0.7 * rng.standard_normal(design.groups)
    won = rng.random(len(item)) < expit(odds)[item]
    y = np.where(rng.random(len(item)) < 0.2, 0.5, won)
    return fitted(a[item], b[item], y, prompt[item], item, design.models)


def strengths(rated) -> Estimates:
    return lambda rng, design: [rating.strength for rating in rated(rng, design).ratings.values()]


def contrasts(rated) -> Estimates:
    def of_ends(rng, design):
        result = rated(rng, design)
        return [result.contrast("0", str(other)).difference for other in (1, design.models - 1)]

    return of_ends


def styled(rng, design):
    """Votes swayed by length and by bold words, more in some groups than in others; stronger models write more, and few
    answers have bold words where `share` is small.
    """
    group = design.group(rng)
    taste = 0.5 * rng.standard_normal((design.groups, design.models))
    theta = np.linspace(-0.6, 0.6, design.models) + taste
    a = rng.integers(0, design.models, len(group))
    b = (a + rng.integers(1, design.models, len(group))) % design.models
    words, bold = (
        np.stack([draw(side) for side in (a, b)])
        for draw in (
            lambda model: rng.lognormal(4 + 0.1 * model, 0.6),
            lambda model: rng.poisson(design.share * (2 + 0.6 * model)).astype(float),
        )
    )
    covariates = {"length": contrast(*words), "bold": contrast(*bold)}
    swayed = (1.5 + rng.standard_normal(design.groups)[group]) * covariates["length"] + 0.3 * covariates["bold"]
    won = rng.random(len(group)) < expit(theta[group, a] - theta[group, b] + swayed)
    y = np.where(rng.random(len(group)) < 0.2, 0.5, won)
    names, items = [str(model) for model in range(design.models)], np.arange(len(group))
    votes = {"a": a, "b": b, "y": y, "models": names, "group": group, "item": items, "covariates": covariates}
    return controlled_fit(**votes, rng=np.random.default_rng(0), draws=2)


def coefficients(rng, design):
    return [coefficient.value for coefficient in styled(rng, design).coefficients.values()]


def length_controlled(rng, design):
    """Three models with a row in each sample; their answers are shorter, as long and longer than the anchor's, or all
    shorter by `ceiling`.
    """
    sample = np.tile(np.arange(int((sizes := design.sizes(rng)).sum())), 3)
    group, model = np.tile(np.repeat(np.arange(design.groups), sizes), 3), np.repeat(np.arange(3), sizes.sum())
    of_group, of_sample = rng.standard_normal(design.groups), rng.standard_normal(sizes.sum())
    gap = 60 * (model - 1 - design.ceiling) + 80 * rng.standard_normal(len(model)) + 30 * of_sample[sample]
    hard = design.spread * (of_group[group] + of_sample[sample]) / 2
    odds = log_odds(design.share, 1.0) + 0.3 * (model - 1) + hard + (1 + of_group[group] / 2) * np.tanh(gap / 90)
    won = np.where(rng.random(len(model)) < 0.1, 0.5, rng.random(len(model)) < expit(odds))
    return length_controlled_rates(won=won, difference=gap, sample=sample, cluster=group, part=model, parts=3)


def powered(right: float) -> Estimates:
    """People's labels and a judge that knows the label in this share of rows and guesses in the others."""

    @own
    def share_of_hits(rng, design):
        of_group = log_odds(design.share, 0.5) + 0.5 * rng.standard_normal(2 * design.groups)
        groups = (
            design.group(rng),
            rng.integers(0, 2 * design.groups, design.further),
        )
        labels, hidden = (rng.random(len(group)) < expit(of_group)[group] for group in groups)
        judged, further = (
            np.where(rng.random(len(true)) < right, true, rng.random(len(true)) < 0.5) for true in (labels, hidden)
        )
        return prediction_powered(
            labels=labels,
            judged=judged,
            unlabelled=further,
            cluster=groups[0],
            unlabelled_cluster=groups[1],
            ends=(0, 1),
        ).estimate

    return share_of_hits


@own
def correlation_of_boards(rng, design):
    """Two boards of as many models as groups."""
    quality = rng.standard_normal(design.groups)
    x, y = quality + 0.6 * rng.standard_normal((2, design.groups))
    return rank_correlation(x=x, y=y, rng=rng).spearman


# ---- the grids ----


def grid_of(groups, **ways) -> tuple[Design, ...]:
    """Every combination of (groups, rows) with the other fields."""
    names, values = list(ways), list(ways.values())
    return tuple(
        Design(count, rows, **dict(zip(names, chosen, strict=True)))
        for (count, rows), *chosen in product(groups, *values)
        if not (dict(zip(names, chosen, strict=True)).get("unequal") and rows == 1)
    )


SIZES = ((8, 5), (12, 5), (20, 5), (50, 4), (100, 5), (30, 1), (100, 1), (500, 1))
SCORED = grid_of(SIZES, unequal=(False, True), ceiling=(0.0, 1.5))
CLASSED = (*SCORED, *grid_of(((10, 1), (15, 1), *SIZES), unequal=(False, True), ceiling=(0.75,)))
FEW_SCORED = (Design(12, 5, ceiling=0.75), Design(30, 1))
SHARES = grid_of(
    product((8, 13, 30, 100), (2, 5, 20)),
    unequal=(False, True),
    share=(0.02, 0.1, 0.5, 0.9),
    spread=(0.0, 1.0, 2.0),
)
ALIKE = grid_of(product((13, 30, 100), (5, 20)), unequal=(False, True), share=(0.1, 0.3, 0.5, 0.9))
RATED = tuple(
    Design(groups, rows, models=models, skew=skew)
    for models, groups, rows, skew in (
        (3, 8, 10, 0.0),
        (3, 13, 10, 0.0),
        (6, 8, 30, 0.0),
        (6, 13, 30, 0.0),
        (6, 20, 30, 0.0),
        (6, 50, 20, 0.0),
        (12, 13, 60, 0.0),
        (12, 20, 60, 0.0),
        (12, 50, 30, 0.0),
        (12, 100, 30, 0.0),
        (3, 10, 15, 1.0),
        (3, 15, 15, 1.4),
        (4, 20, 15, 1.4),
        (5, 29, 20, 0.8),
        (6, 25, 20, 1.0),
        (12, 50, 30, 1.2),
    )
)
CONTROLLED = tuple(design for design in RATED if design.groups > design.models + 2)  # models and two covariates
RARE = grid_of(((20, 10), (30, 3), (50, 5), (100, 2), (400, 1)), unequal=(False, True), share=(0.01, 0.05))
FIXED = (
    *(
        Design(items, rows, models=models)
        for models, items, rows in ((6, 100, 1), (6, 100, 3), (6, 500, 2), (12, 300, 1), (12, 300, 3), (12, 1000, 2))
    ),
    Design(100, 3, models=6, unequal=True),
    Design(300, 3, models=12, skew=1.4),
)
POWERED = tuple(
    Design(groups, rows, unequal=unequal, share=share, further=further)
    for groups, rows, further, unequal in (
        (50, 1, 200, False),
        (30, 2, 500, False),
        (50, 2, 1000, False),
        (100, 1, 1000, False),
        (30, 5, 1000, False),
        (100, 3, 3000, False),
        (50, 3, 1000, True),
        (100, 3, 3000, True),
    )
    for share in (0.5, 0.9)
)


def the_share(design):
    return [design.share]


def confident(rng, design):
    """Confidences, whether right, and groups: answers too sure by ``spread``, groups harder or easier than others."""
    cluster = design.group(rng)
    ease = rng.normal(0, 0.7, design.groups)[cluster]
    logit = rng.normal(0.8, 1.2, len(cluster)) + ease
    sure = np.clip(1 / (1 + np.exp(-np.abs(logit) * (1 + design.spread))), 0.25, 1)
    hard = rng.normal(0, 0.05, design.groups)[cluster]
    return sure, rng.random(len(cluster)) < np.clip(1 / (1 + np.exp(-np.abs(logit))) + hard, 0.02, 0.98), cluster


def calibrated(rng, design):
    sure, right, cluster = confident(rng, design)
    keys = [f"{at:06}" for at in range(len(sure))]
    return [calibration(confidence=sure, right=right, key=keys, cluster=cluster, rng=rng).score]


@cache
def mean_calibration(design):
    """ECE depends on how many questions there are: the mean over many sets of this design."""
    rng = np.random.default_rng(11)
    return [float(np.mean([calibrated(rng, design)[0].value for _ in range(800)]))]


def corrupted(rng, design):
    """RRM of questions with four options: right as often as ``share``, a fifth less often when corrupted."""
    cluster = design.group(rng)
    ease = rng.normal(0, 1, design.groups)[cluster]
    plain = rng.normal(size=len(cluster))
    other = 0.9 * plain + np.sqrt(1 - 0.81) * rng.normal(size=len(cluster))
    right, spoilt = (
        noise + ease < norm.ppf(share) * np.sqrt(2)
        for noise, share in ((plain, design.share), (other, 0.8 * design.share))
    )
    return [relative(part=spoilt - 0.25, whole=right - 0.25, cluster=cluster, method="RRM")]


def the_ratio(design):
    return [(0.8 * design.share - 0.25) / (design.share - 0.25)]


UNEVEN = ((200, (8,)), (500, (10,)), (300, (8, 8, 8)), (100, (50, 30, 20, 10, 8, 8)), (60, (12,)), (40, (40, 40, 40)))
OF_SETS = tuple(
    Design(groups, rows, parts=parts, share=share, spread=spread)
    for (groups, parts), (rows, spread), share in product(UNEVEN, ((1, 0.0), (4, 1.0)), (0.5, 0.8, 0.9))
)
SCORED_SETS = tuple(
    Design(groups, rows, parts=parts, ceiling=ceiling)
    for (groups, parts), rows, ceiling in product(UNEVEN, (1, 4), (0.0, 1.0))
)
# Kappa of eight single rows with a rare class has an interval in half of the sets, and does not cover there by itself.
CLASSED_SETS = tuple(design for design in SCORED_SETS if min(design.parts) > 8 or design.rows > 1)
GRIDS = (
    Grid("share", one_share, SHARES, (Design(8, 5, share=0.1), Design(30, 2, unequal=True)), the_share),
    Grid(
        "share beside other models",
        shares_beside_others,
        grid_of(product((8, 13, 30, 100), (5, 20)), unequal=(False, True), share=(0.01, 0.02, 0.1), spread=(0.0, 1.0)),
        (Design(20, 10, share=0.02, spread=0.0),),
        the_share,
    ),
    Grid(
        "share of replies",
        replies_of_items,
        grid_of(product((13, 30, 100), (1, 5)), unequal=(False, True), share=(0.01, 0.02, 0.1), spread=(0.0, 1.0)),
        (),
        the_share,
    ),
    Grid("share over repeats", pooled_share, SHARES[::3], (Design(13, 5, share=0.1),), the_share),
    Grid("share by sizes", share_by_sizes, ALIKE, (Design(30, 5, unequal=True),), the_share),
    Grid("mean of scores", mean_of_scores, SCORED, FEW_SCORED, lambda design: [mean_score(design)]),
    Grid("mean over repeats", pooled_mean, SCORED, FEW_SCORED[:1], lambda design: [mean_score(design)]),
    Grid("share over data sets", mean_share_over_sets, OF_SETS, OF_SETS[:2], the_share),
    Grid(
        "mean over data sets", mean_score_over_sets, SCORED_SETS, SCORED_SETS[:1], lambda design: [mean_score(design)]
    ),
    Grid("Pearson over data sets", pearson_over_sets, SCORED_SETS, SCORED_SETS[:1]),
    Grid("Cohen's kappa over data sets", kappa_over_sets, CLASSED_SETS, CLASSED_SETS[:1]),
    Grid("mean without ends", mean_without_ends, SCORED[::2], FEW_SCORED[:1], lambda design: [0.0]),
    Grid("change of scores", change_of_scores, SCORED, FEW_SCORED, lambda design: [0.0]),
    Grid(
        "change of hits",
        change_of_hits,
        grid_of(((10, 1), *SIZES), unequal=(False, True), share=(0.05, 0.3, 0.5, 0.9)),
        (Design(8, 5, share=0.3), Design(30)),
        # Wilson's upper end of 0 of 10 is .28, where the oracle's half width at shares of .05 is .19: Newcombe combines
        # two of these. With ten items no interval that covers is narrower.
        widest=1.75,
    ),
    Grid("Pearson", pearson_r, SCORED, FEW_SCORED),
    Grid("Spearman", spearman_rho, SCORED, FEW_SCORED),
    Grid("Pearson over repeats", pooled_pearson, SCORED, FEW_SCORED[:1]),
    Grid("Spearman over repeats", pooled_spearman, SCORED, FEW_SCORED[:1]),
    Grid("difference of two Pearson", difference_of("pearson"), SCORED, FEW_SCORED[:1]),
    Grid("difference of two Spearman", difference_of("spearman"), SCORED, FEW_SCORED[:1]),
    Grid("Cohen's kappa", kappa, CLASSED, FEW_SCORED),
    Grid("Cohen's kappa over repeats", pooled_kappa, CLASSED, FEW_SCORED[:1]),
    Grid("alpha, nominal", alpha_of("nominal"), CLASSED, FEW_SCORED[:1]),
    Grid("alpha, ordinal", alpha_of("ordinal"), SCORED, FEW_SCORED[:1]),
    Grid("alpha, interval", alpha_of("interval"), SCORED, FEW_SCORED[:1]),
    *(Grid(MEASURES[name].name, beyond(name), SCORED, FEW_SCORED[:1]) for name in MEASURES if name != "kappa"),
    Grid("AC2 of three", gwet_of_three, SCORED, FEW_SCORED[:1]),
    *(
        Grid(f"intraclass correlation, {name.replace('_', ' ')}", reliability(name), SCORED, FEW_SCORED[:1])
        for name in ("one_way", "agreement", "consistency")
    ),
    Grid(
        "shares of variance",
        variance_shares,
        grid_of(((8, 5), (12, 5), (20, 5), (50, 4), (100, 5)), unequal=(False, True)),
        (Design(20, 5),),
    ),
    Grid("Fleiss' kappa", fleiss, CLASSED, FEW_SCORED[:1]),
    Grid("accuracy of pairs", pair_score("accuracy"), SCORED, FEW_SCORED[:1]),
    Grid("macro F1", pair_score("f1"), CLASSED, FEW_SCORED),
    Grid("macro F1 without ties", pair_score("f1", ties=False), CLASSED, FEW_SCORED[:1]),
    Grid("macro recall", pair_score("recall"), CLASSED, FEW_SCORED[:1]),
    Grid("Cohen's kappa of five categories", of_five(cohen_kappa), CLASSED, FEW_SCORED[:1]),
    Grid("macro F1 of five categories", of_five(class_scores, "f1"), CLASSED, (Design(20, 10), Design(200))),
    Grid("macro precision of five categories", of_five(class_scores, "precision"), CLASSED, (Design(20, 10),)),
    Grid("macro F1 over repeats", pooled_f1, CLASSED, FEW_SCORED[:1]),
    Grid("F1 of yes", yes_no("f1"), grid_of(SIZES, unequal=(False, True), share=(0.2, 0.5)), (Design(20, 5),)),
    Grid(
        "precision of yes",
        yes_no("precision"),
        grid_of(SIZES, unequal=(False, True), share=(0.2, 0.5)),
        (Design(20, 5),),
    ),
    Grid("consistency", steady("consistency"), SCORED, FEW_SCORED[:1]),
    Grid("majority of repeats", steady("mcc"), SCORED, FEW_SCORED[:1]),
    Grid(
        "position, consistent",
        place("consistent"),
        grid_of(SIZES, unequal=(False, True), share=(0.1, 0.5)),
        (Design(20, 5, share=0.1),),
    ),
    Grid(
        "position, first",
        place("first"),
        grid_of(SIZES, unequal=(False, True), share=(0.1, 0.5)),
        (Design(20, 5, share=0.1),),
    ),
    Grid(
        "calibration",
        calibrated,
        grid_of(((30, 1), (100, 1), (300, 1), (30, 5), (100, 5)), unequal=(False, True), spread=(0.0, 0.5, 2.0)),
        (Design(60, spread=0.5),),
        mean_calibration,
        sets=400,
        # The mean of absolute values of sums around 0, of confidences that are right: they scatter by .60 of what the
        # sums do, the jackknife knows the sums. Too wide by 1 / .60 there, and by no more than 1.5 elsewhere.
        widest=1.8,
    ),
    Grid(
        "robustness above chance",
        corrupted,
        grid_of(((20, 5), (100, 1), (50, 5), (500, 1)), unequal=(False, True), share=(0.5, 0.6, 0.9)),
        (Design(60, share=0.7),),
        the_ratio,
        # An interval of a ratio that covers has no finite mean width: its whole may lie at chance (Gleser and Hwang
        # 1987).
        typical=np.median,
    ),
    Grid(
        "slope of length",
        length_slope,
        grid_of(SIZES, unequal=(False, True), spread=(0.0, 1.0), ceiling=(0.0, 1.5)),
        (Design(50, 4),),
    ),
    Grid(
        "slope of scores on length",
        slope_of_scores,
        grid_of(SIZES, unequal=(False, True), spread=(0.0, 1.0), ceiling=(0.0, 1.5)),
        FEW_SCORED,
    ),
    Grid("own family, scores", family(4), SCORED, FEW_SCORED[:1]),
    Grid("own family, wins", family(1), SCORED, FEW_SCORED[:1]),
    Grid("Bradley-Terry strengths", strengths(by_group), RATED, (RATED[1], RATED[11]), sets=1000),
    Grid("Bradley-Terry contrasts", contrasts(by_group), RATED, RATED[1:2]),
    Grid(
        "controlled strengths",
        strengths(lambda rng, design: styled(rng, design).strengths),
        CONTROLLED,
        sets=1000,
        few=(),
    ),
    Grid("coefficients of length and style", coefficients, CONTROLLED, CONTROLLED[3:4], sets=1000),
    Grid("coefficients of rare style", coefficients, RARE, (), sets=1000),
    Grid(
        "length-controlled win rate",
        length_controlled,
        grid_of(SIZES, unequal=(False, True), share=(0.2, 0.5, 0.8), spread=(0.0, 1.0), ceiling=(0.0, 1.0)),
        (Design(30, 1), Design(100, 2, unequal=True, share=0.2, ceiling=1.0)),
        sets=400,
    ),
    Grid("Bradley-Terry strengths, prompts fixed", strengths(prompts_fixed), FIXED, FIXED[1:2], sets=1000),
    Grid("Bradley-Terry contrasts, prompts fixed", contrasts(prompts_fixed), FIXED, FIXED[1:2]),
    *(
        Grid(f"PPI++, a judge that knows {right:.0%}", powered(right), POWERED, POWERED[:1], the_share)
        for right in (0.0, 0.6, 0.9)
    ),
    Grid(
        "Spearman of two boards",
        correlation_of_boards,
        grid_of(((10, 1), (30, 1), (100, 1))),
        (),
        # of two normal columns that correlate at 1/1.36 (Kendall and Stuart 1979, 31.19)
        lambda design: [6 / np.pi * np.arcsin(1 / 1.36 / 2)],
        300,
    ),
)


BETWEEN = {
    (0.0, 1.0): (
        *(
            "share",
            "share beside other models",
            "share of replies",
            "share over repeats",
            "share over data sets",
            "share by sizes",
            "accuracy of pairs",
            "consistency",
            "majority of repeats",
        ),
        *("macro F1", "macro F1 without ties", "macro recall", "macro F1 of five categories", "macro F1 over repeats"),
        *("macro precision of five categories", "F1 of yes", "precision of yes", "calibration"),
        *("position, consistent", "position, first", "length-controlled win rate"),
    ),
    (1.0, 5.0): ("mean of scores", "mean over repeats", "mean over data sets"),
}
GRIDS = tuple(
    replace(grid, ends=next((ends for ends, names in BETWEEN.items() if grid.name in names), None)) for grid in GRIDS
)


@pytest.mark.parametrize(("n", "least"), [(10, 0.842), (30, 0.85), (100, 0.85)])
def test_wilson_on_single_rows_covers_as_exactly_reckoned(n, least):
    counts = np.arange(n + 1)
    intervals = [proportion(successes=int(count), n=n).interval for count in counts]
    low, high = (np.array([getattr(interval, end) for interval in intervals]) for end in ("low", "high"))
    shares = np.linspace(0.0005, 0.9995, 2000)
    holds = (low <= shares[:, None]) & (shares[:, None] <= high)
    exact = (binom.pmf(counts, n, shares[:, None]) * holds).sum(axis=1)
    assert exact.mean() >= 0.95
    assert exact[(shares > 1 / n) & (shares < 1 - 1 / n)].min() >= least


@pytest.mark.soak
@pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.name)
def test_over_a_grid_of_designs_an_interval_covers_as_often_as_it_says(grid, capsys):
    results = [coverage(grid, design, sets=grid.sets, rows=400_000) for design in grid.designs]
    # Where hardly a set has an interval, those that have one are not like the others.
    kept = [result for result in results if result.without < 1 / 2]
    shares, wider = [result.share for result in kept], [result.wider for result in kept]
    with capsys.disabled():
        print(f"\n{grid.name}: mean {np.mean(shares):.3f}, least {min(shares):.3f}, widest {max(wider):.2f}")
        for result in results:
            width = f"width {result.width:.3f} = {result.wider:.2f}"
            print(f"  {result.share:.3f}  {width}  none {result.without:.3f}  {result.design}")
    assert np.mean(shares) >= MEAN
    assert min(shares) >= LEAST
    assert max(wider) <= grid.widest


@pytest.mark.parametrize("grid", [grid for grid in GRIDS if grid.few], ids=lambda grid: grid.name)
def test_on_a_few_designs_an_interval_covers_nearly_as_often_as_it_says(grid):
    results = [coverage(grid, design, sets=120, rows=20_000) for design in grid.few]
    assert np.mean([result.share for result in results]) >= 0.90
    assert max(result.wider for result in results) <= grid.widest
