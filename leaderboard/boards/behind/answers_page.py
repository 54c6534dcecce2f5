"""The rows behind a model's score: every answer that was counted, with its score, points or mark."""

import pandas as pd

from accounts.rules import Viewer, allowed
from leaderboard.boards.models.keyed import counted_answers
from leaderboard.boards.models.scores import verdicts_on_models
from leaderboard.hidden import of_one_source, sealed_samples
from leaderboard.scope import Scope

COLUMNS = ["sample", "item", "value", "said", "right"]


def of_model(scope: Scope, model: str, viewer: Viewer) -> tuple[pd.DataFrame, int]:
    """The counted answers of a model, in the order of the samples, and the number of sealed ones that are withheld.

    Columns ``sample`` (id), ``item`` (id, or None), ``value`` (score, percent of points, or None), ``said`` and
    ``right``. Raises BadScope if hidden keys or weights are not for this viewer: a mark and its answer reveal them.
    """
    answers = _keyed(scope, model) if scope.kind.keyed else _graded(scope, model)
    if allowed(viewer, "read-hidden", of=scope.benchmark):
        return answers, 0
    is_sealed = answers["sample"].isin(sealed_samples(scope.benchmark))
    return answers[~is_sealed], int(is_sealed.sum())


def _graded(scope: Scope, model: str) -> pd.DataFrame:
    frame, _ = verdicts_on_models(of_one_source(scope))
    frame = frame[(frame["model"] == model) & (frame["model"] != "")]
    if len(frame):
        frame = scope.kind.shares(scope, frame).whole
    return frame.assign(said=None, right=None).sort_values(["sample", "item"])[COLUMNS].reset_index(drop=True)


def _keyed(scope: Scope, model: str) -> pd.DataFrame:
    """One row per sample: its options in all passes, and whether it is ``right`` in every pass."""
    frame, _, _ = counted_answers(scope, model)
    if frame.empty:
        return pd.DataFrame(columns=COLUMNS)
    by_sample = frame.sort_values("variant").groupby("sample")
    answers = pd.DataFrame(
        {
            "said": by_sample["said"].agg(lambda options: ", ".join(option or "–" for option in options)),
            "right": by_sample["right"].all(),
        }
    ).reset_index()
    return answers.assign(item=None, value=None)[COLUMNS]
