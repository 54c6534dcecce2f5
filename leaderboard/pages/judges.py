"""The board of judges as a page: one metric with its interval, its level by level heat, the others as figures."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from judging.analyses import sees_usage
from judging.models import Run
from leaderboard.boards import Board
from leaderboard.boards.base import Row
from leaderboard.boards.judges import PEOPLE, REFERENCES
from leaderboard.boards.sums import LOWER
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.pages.bias import Chip
from leaderboard.pages.figures import number_of, tick, two, whole
from leaderboard.pages.judge_rows import (
    HEAT,
    HEAT_DEFAULT,
    RUNNING,
    JudgeRow,
    ceiling_row,
    judge_row,
    running_cell,
)
from leaderboard.pages.models import Head
from leaderboard.pages.provenance import Fact, data_facts, rule_fact
from leaderboard.scope import Scope

DEFAULTS = {
    "pair": "accuracy_with_tie",
    "score": "pearson",
    "components": "pearson",
    "batch": "levenshtein",
    "choice": "agreement",
    "yes-no": "agreement",
}
METRICS = {
    "pearson": "Pearson",
    "spearman": "Spearman",
    "levenshtein": "Distance",
    "accuracy_with_tie": "Accuracy",
    "f1_with_tie": "F1",
    "recall_with_tie": "Recall",
    "accuracy_without_tie": "Accuracy, decided",
    "f1_without_tie": "F1, decided",
    "recall_without_tie": "Recall, decided",
    "agreement": "Agreement",
    "agreement_decided": "Agreement, decided",
    "kappa": "Kappa",
    "consistency": "Consistency",
    "mcc": "Same in most repeats",
}
IN_WORDS = {
    "pearson": "Pearson correlation with people's scores, within each data set, then their mean",
    "spearman": "Spearman correlation with people's scores, within each data set, then their mean",
    "levenshtein": "normalized Levenshtein distance from people's order: 0 is the same order, lower is better",
    "accuracy_with_tie": "share of items with people's verdict; undecided counts as a tie",
    "f1_with_tie": "F1, mean over first, second and tie",
    "recall_with_tie": "recall, mean over first, second and tie",
    "accuracy_without_tie": "share of items with people's verdict where both chose a side",
    "f1_without_tie": "F1, mean over first and second, where both chose a side",
    "recall_without_tie": "recall, mean over first and second, where both chose a side",
    "agreement": "share of items with the same verdict; undecided counts as a tie",
    "agreement_decided": "share of items with the same verdict where both chose a side",
    "kappa": "Cohen's kappa over first, second and tie: agreement beyond chance",
    "consistency": "mean share of the most frequent verdict over a judge's repeats",
    "mcc": "share of items where more than half of the repeats are the same",
}
# Beside the chosen metric; agreement is accuracy by another name.
BESIDE = ("pearson", "spearman", "accuracy_with_tie", "accuracy_without_tie", "f1_with_tie", "kappa", "consistency")
REFERENCE_WORDS = {"majority": "majority of people", "individuals": "each label"}
MEAN_WORDS = {"majority": "mean of people", "individuals": "each label"}
BEST_FIRST = "-value"
SORTS = ("value", "judge", "n", "coverage")


@dataclass(frozen=True, slots=True)
class JudgesPage:
    metric: str
    metric_label: str
    in_words: str
    reference: str
    heads: dict[str, Head]
    beside: list[Head]
    levels: list[str]
    running: list[Head]
    rows: list[JudgeRow] = field(default_factory=list)
    heat_low: str = ""
    heat_high: str = ""
    judges: int = 0
    has_settings: bool = False
    has_floor: bool = False
    has_biases: bool = False


def chosen(address: Address, kind: str) -> tuple[str, str]:
    """Metric and reference of the address, or their defaults."""
    metric, reference = address.given.get("metric", ""), address.given.get("reference", "")
    return metric if metric in METRICS else DEFAULTS[kind], reference if reference in REFERENCES else REFERENCES[0]


def reference_words(kind: str) -> dict[str, str]:
    return MEAN_WORDS if kind in ("score", "components", "batch") else REFERENCE_WORDS


def selects(address: Address, board: Board, kind: str) -> list[Select]:
    metric, reference = chosen(address, kind)
    there = {row["metric"] for row in board.rows} or set(METRICS)
    metrics = [Choice(name, label) for name, label in METRICS.items() if name in there]
    return [
        Select("metric", "Metric", [("", metrics)], metric, on=metric != DEFAULTS[kind]),
        Select(
            "reference",
            "Against",
            [("", [Choice(name, reference_words(kind)[name]) for name in REFERENCES])],
            reference,
            on=reference != REFERENCES[0],
        ),
    ]


def _as_seen(running: Row, run: Run | None, address: Address) -> Row:
    """What a judge costs and how long it takes, where this viewer may see it."""
    if run is not None and sees_usage(run, address.viewer):
        return running
    return {name: value for name, value in running.items() if name not in ("cost", "seconds")}


def page_of(
    address: Address, board: Board, *, kind: str, biases: Mapping[int, list[Chip]] = MappingProxyType({})
) -> JudgesPage:
    """Everything that the table shows. ``biases`` are the marks of each run."""
    metric, reference = chosen(address, kind)
    judges = _by_run(board, reference)
    there = {name for numbers in judges.values() for name in numbers}
    runs = Run.objects.filter(pk__in=judges).select_related("judge").in_bulk()
    standing = board.extra["standing"][reference].get(metric, {})
    ceiling = board.extra["ceiling"][reference]
    beside = [name for name in BESIDE if name != metric and name in there]
    levels = _level_names(board, reference, DEFAULTS[kind])
    running = {pk: _as_seen(one, runs.get(pk), address) for pk, one in board.extra["running"].items()}
    known = [name for name in RUNNING if any(one.get(name) is not None for one in running.values())]
    values = [numbers[metric] for numbers in judges.values() if metric in numbers]
    ends = [row[end] for row in values for end in ("value", "value_low", "value_high")]
    ends += [ceiling.get(metric, {}).get(end) for end in ("value", "value_low", "value_high")]
    scale = marks.axis(ends, unit=1)
    order = _ordered(address, judges, runs, metric, standing)
    tints = _tints(order, standing) if _sort(address) == BEST_FIRST else {}
    by_level = board.extra["levels"][reference].get(metric, {})
    rows = []
    if ceiling.get(metric):
        people = by_level.get(PEOPLE, {})
        rows.append(ceiling_row(ceiling, metric, beside, [(name, people.get(name)) for name in levels], scale))
    for place, run in enumerate(order):
        following = order[place + 1] if place + 1 < len(order) else None
        rows.append(
            judge_row(
                address,
                runs[run],
                judges[run],
                metric=metric,
                standing=standing.get(run),
                beside=beside,
                levels=[
                    (name, board.extra["levels"][reference].get(metric, {}).get(run, {}).get(name)) for name in levels
                ],
                scale=scale,
                ceiling=ceiling.get(metric, {}).get("value"),
                tinted=tints.get(run, False),
                last=bool(tints) and following is not None and tints.get(following) is not tints.get(run),
                biases=biases.get(run, []),
                running=[running_cell(running.get(run, {}), name) for name in known],
            )
        )
    low, high = HEAT.get(metric, HEAT_DEFAULT)
    return JudgesPage(
        metric=metric,
        metric_label=METRICS[metric],
        in_words=IN_WORDS[metric],
        reference=reference,
        heads=_heads(address, metric, scale),
        beside=[Head(METRICS[name], address.link(metric=name, sort=None), title=IN_WORDS[name]) for name in beside],
        levels=levels,
        running=[Head(RUNNING[name][0], "", title=RUNNING[name][1]) for name in known],
        rows=rows,
        heat_low=two(low),
        heat_high=two(high),
        judges=sum(not judge.judge.is_baseline for judge in runs.values()),
        has_settings=any(row.settings for row in rows),
        has_biases=any(row.biases for row in rows),
        has_floor=any(row.kind == "baseline" for row in rows),
    )


def _by_run(board: Board, reference: str) -> dict[int, dict[str, Row]]:
    """By run and metric the rows over all data sets."""
    judges: dict[int, dict[str, Row]] = {}
    for row in board.rows:
        if row["reference"] == reference and row["source_dataset"] == "all":
            judges.setdefault(row["run"], {})[row["metric"]] = row
    return judges


def _level_names(board: Board, reference: str, metric: str) -> list[str]:
    """Data sets or levels that some judge has a verdict in, in the board's order; none where there is one only."""
    of_metric = board.extra["levels"][reference][metric]
    seen = {name for of_judge in of_metric.values() for name, numbers in of_judge.items() if numbers["n"]}
    ordered = [name for name in board.extra["level_order"] if name in seen]
    return ordered if len(ordered) > 1 else []


def _ordered(
    address: Address, judges: dict[int, dict[str, Row]], runs: dict[int, Run], metric: str, standing: dict[int, Row]
) -> list[int]:
    """Judges by the sorted column, those that are not ranked after them, baselines as the floor."""
    sort = _sort(address)
    key = sort.removeprefix("-")

    def value(run: int) -> Any:
        numbers = judges[run].get(metric) or next(iter(judges[run].values()))
        if key == "judge":
            return runs[run].judge.name.casefold()
        return numbers[key]

    order = sorted(judges, key=lambda run: (runs[run].judge.name.casefold(), run))
    known = [run for run in order if value(run) is not None]
    turned = key == "value" and metric in LOWER  # best first is smallest first
    known.sort(key=value, reverse=sort.startswith("-") != turned)
    if sort == "-value":
        known.sort(key=lambda run: standing[run]["tier"] if run in standing else len(judges) + 1)
    order = known + [run for run in order if value(run) is None]
    return sorted(order, key=lambda run: (runs[run].judge.is_baseline, run not in standing))


def _sort(address: Address) -> str:
    asked = address.given.get("sort", BEST_FIRST)
    return asked if asked.removeprefix("-") in SORTS else BEST_FIRST


def _tints(order: list[int], standing: dict[int, Row]) -> dict[int, bool]:
    tints: dict[int, bool] = {}
    tinted, tier = False, None
    for run in order:
        if run not in standing:
            continue
        if standing[run]["tier"] != tier:
            tinted, tier = not tinted, standing[run]["tier"]
        tints[run] = tinted
    return tints


def ceiling_in_words(reference: str, n: float, kind: str) -> str:
    """How the ceiling is computed."""
    if reference == "majority" and kind in ("score", "components", "batch"):
        return f"Ceiling: each of {whole(n)} labels against the mean of the other people on its item."
    if reference == "majority":
        return f"Ceiling: each of {whole(n)} labels against the majority of the other people on its item."
    return f"Ceiling: every two people who labelled the same item, {whole(n)} pairs of labels."


def _heads(address: Address, metric: str, scale: marks.Axis) -> dict[str, Head]:
    sort = _sort(address)

    def made(label: str, column: str, *, best_first: bool = True, **more: Any) -> Head:
        first = f"-{column}" if best_first else column
        state = {column: "ascending", f"-{column}": "descending"}.get(sort, "")
        following = (column if sort == f"-{column}" else f"-{column}") if state else first
        return Head(label, address.link(sort=None if following == BEST_FIRST else following), state, **more)

    ticks = marks.axis_head(scale, tick)
    return {
        "judge": made("Judge", "judge", best_first=False),
        "value": made(METRICS[metric], "value", marks=ticks, title=IN_WORDS[metric]),
        "n": made("n", "n", title="Pairs of verdicts compared"),
        "coverage": made("Cov. %", "coverage", title="Share of people's items that the judge has a verdict on"),
    }


def facts(scope: Scope, board: Board) -> list[Fact]:
    """What made the page."""
    extra = board.extra
    counted = f"{number_of(extra['labels'], 'label')} by {number_of(extra['annotators'], 'annotator')}"
    return [
        Fact("Human labels", counted),
        Fact("Items", whole(extra["items"])),
        *([rule_fact(scope)] if scope.kind == "pair" else []),
        *data_facts(board, counted=number_of(len(board.runs), "run")),
    ]
