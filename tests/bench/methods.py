"""The statistics of boards beside what others would do with the same data. CPU time; where a peer would take minutes, a
few of its passes are measured and the rest counted.

evalica stands for itself. FastChat's bootstrap of Elo is made again as a vectorised numpy loop over whole resamples, as
its authors' is one in Python; choix's as the minorisation step that its default is, on the same counts.
"""

from collections.abc import Iterator

import numpy as np
from scipy import stats
from scipy.special import expit

from stats import bradley_terry, elo
from stats.bradley_terry import Votes, solve
from stats.correlation import pearson, spearman
from stats.reliability import krippendorff_alpha
from tests.bench.parts import Result, cpu, cpus
from tests.stats import replicated

VOTES, MODELS, PROMPTS, REPLICATES = 1_000_000, 200, 5_000, 1_000
FEW = 5  # passes of a slow peer


def methods() -> Iterator[Result]:
    rng = np.random.default_rng(1)
    strength = rng.normal(0, 1, MODELS)
    a = rng.integers(0, MODELS, VOTES)
    b = (a + rng.integers(1, MODELS, VOTES)) % MODELS
    y = np.where(rng.random(VOTES) < 0.1, 0.5, (rng.random(VOTES) < expit(strength[a] - strength[b])).astype(float))
    prompts = rng.integers(0, PROMPTS, VOTES)
    yield from _ratings(a, b, y, prompts)
    yield from _elo(a, b, y)
    yield from _agreement()


def _ratings(a, b, y, prompts) -> Iterator[Result]:
    import evalica

    names = [f"model-{n:03}" for n in range(MODELS)]
    left, right = [names[n] for n in a], [names[n] for n in b]
    winners = [evalica.Winner.Draw if v == 0.5 else evalica.Winner.X if v else evalica.Winner.Y for v in y]
    peer, fit = cpus(
        lambda: evalica.bradley_terry(left, right, winners),
        lambda: bradley_terry.fit(
            a=a, b=b, y=y, models=names, group=prompts, item=np.arange(VOTES), rng=np.random.default_rng(2)
        ),
    )
    yield Result("Bradley-Terry, 1 M votes, 200 models, intervals and ranks", peer, fit, 0.5)

    votes = Votes.checked(a=a, b=b, y=y, models=names)
    wins = votes.wins()
    found = [cpu(lambda work=work: [work(wins) for _ in range(20)]) / 20 for work in (_choix, solve)]
    yield Result("  its point on ready counts, beside choix's method", *found, 2)

    # evalica on counts: each pair and outcome once, with its number as the weight.
    pair = a * MODELS + b
    cells, times = np.unique(pair * 3 + (2 * y).astype(np.int64), return_counts=True)
    one, other, outcome = cells // 3 // MODELS, cells // 3 % MODELS, cells % 3
    of_cell = [(evalica.Winner.Y, evalica.Winner.Draw, evalica.Winner.X)[n] for n in outcome]
    xs, ys = [names[n] for n in one], [names[n] for n in other]
    draws = np.random.default_rng(3).multinomial(VOTES, times / VOTES, size=FEW).astype(np.float64)

    def loop() -> None:
        for drawn in draws:
            evalica.bradley_terry(xs, ys, of_cell, weights=drawn.tolist())

    ours = cpu(
        lambda: replicated.strengths(votes=votes, replicates=REPLICATES, rng=np.random.default_rng(4)), best_of=1
    )
    peer = cpu(loop, best_of=1) * REPLICATES / FEW
    yield Result("  1,000 bootstrap replicates, beside a loop over evalica", peer, ours, 0.2)


def _choix(wins: np.ndarray) -> np.ndarray:
    """Minorisation and maximisation (Hunter 2004), as choix does it, to its tolerance of 1e-8."""
    played, won = wins + wins.T, wins.sum(axis=1)
    weight = np.ones(len(wins))
    while True:
        new = won / (played / (weight[:, None] + weight[None, :])).sum(axis=1)
        new *= len(new) / new.sum()
        if np.abs(np.log(new) - np.log(weight)).mean() < 1e-8:
            return np.log(new)
        weight = new


def _elo(a, b, y) -> Iterator[Result]:
    names = [str(n) for n in range(MODELS)]

    def ours() -> None:
        elo.online_bootstrap(a=a, b=b, y=y, models=names, rng=np.random.default_rng(2))

    steps = 20_000

    def full_length() -> None:
        """All replicates take a vote together, each its own, from 1,000 points on: ``steps`` votes of a million."""
        rng = np.random.default_rng(2)
        ratings = np.full((REPLICATES, MODELS), 1000.0)
        rows = np.arange(REPLICATES)
        for _ in range(steps):
            at = rng.integers(0, VOTES, REPLICATES)
            first, second = a[at], b[at]
            change = 4 * (y[at] - 1 / (1 + 10 ** ((ratings[rows, second] - ratings[rows, first]) / 400)))
            ratings[rows, first] += change
            ratings[rows, second] -= change

    peer = cpu(full_length, best_of=1) * VOTES / steps
    yield Result("Elo, 1,000 replicates, beside the vectorised full length", peer, cpu(ours, best_of=1), 0.1)


def _agreement() -> Iterator[Result]:
    rng = np.random.default_rng(5)
    n = VOTES
    x = rng.integers(1, 6, n)
    y = np.clip(x + rng.integers(-1, 2, n), 1, 5)
    # Two rows of each sample: the interval leaves out samples.
    cluster = np.repeat(np.arange(n // 2), 2)

    def ours() -> None:
        for measure in (pearson, spearman):
            measure(x=x, y=y, cluster=cluster)

    def resampled() -> None:
        at = rng.integers(0, n, n)
        for measure in (stats.pearsonr, stats.spearmanr):
            measure(x[at], y[at])

    peer = cpu(resampled, best_of=1) * REPLICATES
    yield Result("Pearson, Spearman of 1 M pairs, beside 1,000 bootstraps", peer, cpu(ours, best_of=1), 0.05)

    unit, value = rng.integers(0, n // 5, n), rng.integers(0, 5, n)

    def alpha() -> None:
        krippendorff_alpha(unit=unit, value=value, metric="ordinal")

    yield Result("Krippendorff's alpha of 1 M labels with its interval", 1, cpu(alpha, best_of=1), 1)
