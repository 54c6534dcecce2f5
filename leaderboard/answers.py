"""The rows behind a model's score: every answer that was counted, with its score, points or mark."""

import pandas as pd

from bank.access import Viewer
from bank.models import EvaluatedModel, Response
from bank.models.catalogue import is_staff
from bank.submissions import keyed
from leaderboard import grades, points, queries
from leaderboard.boards.graded import outcomes
from leaderboard.boards.keyed import KIND, read_by_judges
from leaderboard.hidden import refuse_live
from leaderboard.scope import KEYED, Scope
from leaderboard.votes import samples_in

COLUMNS = ["sample", "item", "value", "said", "right"]


def of_model(scope: Scope, model: str, viewer: Viewer) -> tuple[pd.DataFrame, int]:
    """The counted answers of a model, in the order of the samples, and how many hidden splits hold back.

    Columns ``sample`` (id), ``item`` (id, or None), ``value`` (score, percent of points, or None), ``said`` and
    ``right``. Raises BadScope where hidden keys or weights are not for this viewer: with the answer, a mark tells them.
    """
    refuse_live(scope)
    found = _keyed(scope, model) if scope.kind in KEYED else _graded(scope, model)
    if is_staff(viewer):
        return found, 0
    sealed = found["sample"].isin(queries.sealed_samples(scope.benchmark, viewer))
    return found[~sealed], int(sealed.sum())


def _graded(scope: Scope, model: str) -> pd.DataFrame:
    items = grades.items_of(scope)
    frame, _ = outcomes(scope)
    frame = frame[frame["item"].isin(items.index)].join(items, on="item")
    frame = frame[frame["models"] == (model,)]
    if scope.kind == "components" and len(frame):
        frame, _, _ = points.shares_of(scope, frame.assign(model=model))
    return frame.assign(said=None, right=None).sort_values(["sample", "item"])[COLUMNS].reset_index(drop=True)


def _keyed(scope: Scope, model: str) -> pd.DataFrame:
    """One row a sample: the first pass, and ``right`` in every pass where there were several."""
    known = EvaluatedModel.objects.filter(name=model).first()
    if known is None:
        return pd.DataFrame(columns=COLUMNS)
    mine = samples_in(scope).filter(pk__in=Response.objects.filter(model=known).values("sample"))
    read, _ = read_by_judges(scope)
    frame = keyed.answered(scope.benchmark, mine, kind=KIND[scope.kind], read=read)
    frame = frame[frame["model"] == known.pk]
    if frame.empty:
        return pd.DataFrame(columns=COLUMNS)
    by_sample = frame.sort_values("variant").groupby("sample")
    found = pd.DataFrame({"said": by_sample["said"].agg(", ".join), "right": by_sample["right"].all()}).reset_index()
    return found.assign(item=None, value=None)[COLUMNS]
