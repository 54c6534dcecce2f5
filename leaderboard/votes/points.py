"""Points for weighted components as shares of their weights.

The weights are part of the criteria: ``bank.criteria.answer_keys.parts_for_boards`` reads them and logs it. A category
is named below staff only where its components are public. Campaigns say what a component without a weight is worth.
"""

import json
from collections.abc import Callable, Collection, Iterable
from typing import Any

import pandas as pd
from django.db.models import Exists, OuterRef

from annotations import ballots
from annotations.models import Campaign, Label
from bank import guard
from bank.criteria import answer_keys
from leaderboard.scope import OF_TEN, Scope

NO_WEIGHTS = "The samples have no weighted components, so points cannot be divided by weights."
SEVERAL = (
    "Campaigns give components without a weight different ones: choose a campaign. Until then such points do not count."
)
TEN = 10.0  # points of an instruction (MIA-Bench, 2.2)
HUNDRED = 100.0  # percent, as MIA-Bench prints its scores
OTHER = "others"


def shares_of(scope: Scope, frame: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, list[str]]:
    """Verdicts whose ``value`` is points by component (a dict), as percentages of the weights.

    Returns one row per verdict (``value`` = points / sum of the sample's weights, or / ten), one row per component with
    its ``category``, and notes. A verdict without all components of its sample does not count; judges may leave out
    components whose weight comes from a campaign alone. Raises BadScope if hidden weights are not for this viewer.
    """
    parts, opinions = _weights_of(scope, frame)
    verdict_rows, component_rows = [], []
    left_out = 0
    for row in frame.to_dict("records"):
        points = row["value"]
        counted = _counted(parts.get(row["sample"], []), points)
        if not counted:
            left_out += 1
            continue
        total = sum(points[part.key] for part in counted)
        most = TEN if scope.total == OF_TEN else sum(part.weight for part in counted)
        verdict_rows.append(row | {"value": HUNDRED * total / most})
        component_rows += _component_rows(row, [part for part in counted if scope.staff or part.public])
    notes = []
    if not verdict_rows:
        notes.append(NO_WEIGHTS)
    elif left_out:
        notes.append(f"{left_out} verdicts lack a component of their sample and are not counted.")
    if opinions > 1:
        notes.append(SEVERAL)
    columns = ["item", "model", "group", "category", "value"]
    return pd.DataFrame(verdict_rows, columns=list(frame.columns)), pd.DataFrame(component_rows, columns=columns), notes


def made_of(scope: Scope, frame: pd.DataFrame) -> "pd.Series[str]":
    """For each verdict the weights of its sample and its points, as text: what its share is made of."""
    parts, _ = _weights_of(scope, frame)
    weights = {sample: [(part.key, part.weight) for part in components] for sample, components in parts.items()}
    texts = [
        json.dumps([weights.get(sample, []), value], sort_keys=True)
        for sample, value in zip(frame["sample"], frame["value"], strict=True)
    ]
    return pd.Series(texts, index=frame.index, dtype=object)


def _counted(parts: Iterable[answer_keys.Part], points: Collection[str]) -> list[answer_keys.Part]:
    """The components that count in a verdict with these points; none where it lacks one."""
    counted = [part for part in parts if not part.lent or part.key in points]
    return counted if all(part.key in points for part in counted) else []


def _component_rows(row: dict[str, Any], parts: Iterable[answer_keys.Part]) -> list[dict[str, Any]]:
    verdict = {name: row[name] for name in ("item", "model", "group")}
    return [
        verdict | {"category": part.category or OTHER, "value": HUNDRED * row["value"][part.key] / part.weight}
        for part in parts
    ]


def _weights_of(scope: Scope, frame: pd.DataFrame) -> tuple[dict[int, list[answer_keys.Part]], int]:
    """The weighted components of these samples, and how many different default weights campaigns have."""
    opinions = _own_weights(scope)
    default_weight = opinions[0] if len(opinions) == 1 else None
    ids = sorted(set(frame["sample"].tolist()))
    return answer_keys.parts_for_boards(benchmark=scope.benchmark, sample_ids=ids, default_weight=default_weight), len(
        opinions
    )


@guard.working()
def _own_weights(scope: Scope) -> list[Callable[[str], float | None]]:
    """The different default weights that the view's campaigns give to components without one."""
    labelled = Exists(Label.objects.filter(campaign=OuterRef("pk")))
    campaigns = Campaign.objects.filter(labelled, benchmark=scope.benchmark, protocol__in=scope.kind.protocols)
    if scope.campaign:
        campaigns = campaigns.filter(name=scope.campaign)
    weights = {}
    for campaign in campaigns.order_by("pk"):
        ballot = ballots.of(campaign)
        settings = {name: ballot.settings.get(name) for name in ballot.setting_names}
        if any(settings.values()):
            weights[json.dumps(settings, sort_keys=True)] = ballot.default_weight
    return list(weights.values())


def order_of(categories: Iterable[str]) -> list[str]:
    """Categories by their number of points, the most frequent first."""
    counted = pd.Series(list(categories), dtype=object).value_counts()
    return [str(name) for name in sorted(counted.index, key=lambda name: (-counted[name], name))]
