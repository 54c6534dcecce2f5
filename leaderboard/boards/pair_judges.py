"""The board of judges: how well each one's verdicts match people's, beside how well people match each other."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from judging.models import Run
from leaderboard import votes
from leaderboard.boards import graded_judges
from leaderboard.boards.base import Against, Board, OfJudges, Row, averaged, number, share
from leaderboard.boards.running import running
from leaderboard.boards.sources import judge_groups
from leaderboard.boards.standing import Tables, standing_of
from leaderboard.metrics import CONSISTENCY, MCC, PAIRS, OfPairs
from leaderboard.scope import Scope
from stats.reliability import steadiness
from stats.results import Estimate
from stats.verdicts import RULES, VERDICTS, encode, majority, words

NO_LABELS = "No labels by people yet, so no judge can be compared with them."
PEOPLE = 0  # where runs are told apart by number: people against people
REFERENCES = ("majority", "individuals")
LOWEST = {one.name: one.lowest for one in PAIRS}


def by_pairs(scope: Scope) -> Board:
    """How well each judge's verdicts match the humans' (MLLM-as-a-Judge, Table 2; MLLM-Bench, Table 6).

    ``extra``: ``labels``, ``annotators``, ``items`` of the reference; ``ceiling[reference][metric]`` how well people
    match each other; ``standing[reference][metric][run]`` a judge's rank among the judges that are no baselines;
    ``levels[reference][metric][run][level]`` the metric by level, as ``value`` and ``n``, people's own under run 0; and
    ``level_order``.
    """
    items = votes.pairs(scope)
    labels = votes.labels_of(scope)
    labels = labels[labels["item"].isin(items.index)]
    if labels.empty:
        return Board([], [NO_LABELS])
    labels = labels.rename(columns={"choice": "value"})
    references = {
        "majority": majority_of(labels, scope.rule),
        "individuals": labels[["item", "value"]],
    }
    groups = [(runs, votes.of_runs(runs)) for runs in judge_groups(scope)]
    labelled = items.loc[items.index.isin(labels["item"])]
    columns = graded_judges.columns_of(scope, labelled)
    if labelled["dataset"].nunique() > 1:
        items = items.assign(level=items["dataset"])  # cells are by data set where there are several
    rows: list[Row] = []
    tables: dict[str, Tables] = {name: Tables(labelled) for name in REFERENCES}
    for runs, found in groups:
        for reference, truth in references.items():
            both = _compared(truth, found.frame, items)
            rows += _judge_rows(scope, items, runs, found, reference, truth, both)
            tables[reference].add(runs[-1].pk, both, ranked=not runs[0].judge.baseline)
    ceilings = {}
    for name in REFERENCES:
        against = against_others(labels, scope.rule) if name == "majority" else against_each(labels)
        both = against.assign(repeat=0).join(items[["group", "level", "dataset"]], on="item", how="inner")
        tables[name].add(PEOPLE, both, ranked=False)
        ceilings[name] = ceiling(both, twice=name == "individuals")
    extra = {
        "labels": len(labels),
        "annotators": int(labels["annotator"].nunique()),
        "items": int(labels["item"].nunique()),
    }
    against = {name: Against(ceilings[name], standing_of(one), one.by_level()) for name, one in tables.items()}
    used = [run for runs, _ in groups for run in runs]
    beside = OfJudges(against, columns, running(used))
    return Board(rows, [f"Majority rule: {scope.rule}."], tuple(run.pk for run in used), extra, beside)


def _compared(truth: pd.DataFrame, verdicts: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """Reference and judge side by side: ``item, value, told, repeat, group, level, dataset``."""
    verdicts = verdicts.rename(columns={"choice": "told"})
    return truth.merge(verdicts, on="item").join(items[["group", "level", "dataset"]], on="item", how="inner")


def _judge_rows(
    scope: Scope,
    items: pd.DataFrame,
    runs: list[Run],
    found: votes.Outcomes,
    reference: str,
    truth: pd.DataFrame,
    both: pd.DataFrame,
) -> Iterable[Row]:
    coverage = share(int(both["item"].nunique()), truth["item"].nunique())
    run = runs[-1]
    each = {str(name): _averaged(one) for name, one in both.groupby("dataset")}
    whole = next(iter(each.values())) if len(each) == 1 else mean_of_sets(list(each.values()))
    if found.repeats > 1 and reference == "majority":
        told = found.frame.rename(columns={"choice": "verdict"}).join(items["group"], on="item", how="inner")
        steady = steadiness(told)
        again = {CONSISTENCY.name: averaged([steady.consistency]), MCC.name: averaged([steady.mcc])}
        whole |= again
        each = {name: numbers | again for name, numbers in each.items()} if len(each) == 1 else each
    rows = []
    for dataset, metrics in (*each.items(), ("all", whole)):
        for name, numbers in metrics.items():
            row = {"judge": run.judge.name, "run": run.pk, "settings": run.settings, "source_dataset": dataset}
            row |= {"kind": "pair", "reference": reference, "metric": name}
            rows.append(row | numbers | {"p": None, "coverage": coverage})
    return rows


def _averaged(both: pd.DataFrame) -> dict[str, Row]:
    """By metric its numbers, computed for each repeat and averaged."""
    metrics: dict[str, list[Estimate]] = {}
    for _, one in both.groupby("repeat"):
        for name, estimate in pair_metrics(one).items():
            metrics.setdefault(name, []).append(estimate)
    return {name: averaged(estimates) for name, estimates in metrics.items()}


def mean_of_sets(sets: list[dict[str, Row]]) -> dict[str, Row]:
    """By metric the unweighted mean over the data sets that have a value (MLLM-as-a-Judge, Table 2).

    No sample lies in two of them, so the squares of the half-widths of their intervals add up.
    """
    found: dict[str, Row] = {}
    for name in sets[0] if sets else ():
        known = [one[name] for one in sets if one[name]["value"] is not None]
        if not known:
            found[name] = number("value", None) | {"n": sum(one[name]["n"] for one in sets)}
            continue
        value = float(np.mean([one["value"] for one in known]))
        row: Row = {"value": value, "value_low": None, "value_high": None, "n": sum(one["n"] for one in known)}
        if all(one["value_low"] is not None for one in known):
            below, above = (
                float(np.sqrt(sum((one[end] - one["value"]) ** 2 for one in known))) / len(known)
                for end in ("value_low", "value_high")
            )
            row |= {
                "value_low": max(value - below, LOWEST[name]),
                "value_high": min(value + above, 1.0),
            }
        found[name] = row
    return found


def pair_metrics(both: pd.DataFrame) -> dict[str, Estimate]:
    """Every metric of ``told`` against ``value``."""
    votes_of_both = OfPairs(both)
    known = ((one.name, one.compute(votes_of_both)) for one in PAIRS if one.compute)
    return {name: found[0] for name, found in known if found is not None}


def majority_of(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """``item``, ``value``: what most people say of each item, of labels ``item, annotator, value``."""
    found = majority(labels=labels.rename(columns={"value": "choice"}), rule=rule)[["choice"]].reset_index()
    return found.rename(columns={"choice": "value"})


# ---- how well people match each other ----


def ceiling(both: pd.DataFrame, *, twice: bool) -> dict[str, Row]:
    """The metrics of people against people, in the way a judge is held against them; by metric ``value, n`` and ends.

    Against the majority: each label against the majority of the *others* on its item (leave one out). Against
    individuals: each label against each other label on its item; every two then stand in ``both`` ``twice``, in either
    direction, and count once in ``n``.
    """
    if both.empty:
        return {}
    return {
        name: number("value", estimate) | {"n": estimate.n // 2 if twice else estimate.n}
        for name, estimate in pair_metrics(both).items()
    }


def against_others(labels: pd.DataFrame, rule: str) -> pd.DataFrame:
    """Each label (``told``) beside the majority of the other people on its item (``value``); items with one label are
    left out.
    """
    codes, size = encode(labels["value"]), len(VERDICTS)
    item, _ = pd.factorize(labels["item"])
    counts = np.bincount(item * size + codes, minlength=(item.max(initial=-1) + 1) * size).reshape(-1, size)
    others = counts[item]
    others[np.arange(len(codes)), codes] -= 1
    some = others.sum(axis=1) > 0
    frame = labels.loc[some, ["item"]].assign(told=labels.loc[some, "value"])
    return frame.assign(value=words(RULES[rule](others[some])))


def against_each(labels: pd.DataFrame) -> pd.DataFrame:
    """Each label (``value``) beside each other label on its item (``told``): every two of them twice."""
    both = labels.merge(labels, on="item", suffixes=("", "_other"))
    both = both[both["annotator"] != both["annotator_other"]]
    return both.rename(columns={"value_other": "told"})[["item", "value", "told"]]
