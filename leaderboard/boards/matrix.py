"""Win rates of every model against every other."""

from leaderboard import votes
from leaderboard.boards.base import Board, Row, kept, number
from leaderboard.boards.models import models
from leaderboard.scope import BadScope, Scope
from leaderboard.stats.proportions import rate

MOST = 30  # models shown at once


def win_rates(scope: Scope) -> Board:
    """Rows ``{model, other, wins, ties, losses, win_rate, win_rate_low, win_rate_high, n}``, a pair in both directions.

    Of the first ``MOST`` models by rank that were compared at all, in ``extra["models"]``; ``extra["of"]`` is how many
    there are. Repeats are averaged: an item counts once.
    """
    if scope.kind != "pair":
        raise BadScope(f"Win rates are told of pairs; there are none of kind {scope.kind!r}.")
    ranked = kept(scope, "models", models)
    names = [row["model"] for row in ranked.rows]
    shown = names[:MOST]
    items = votes.pairs(scope)
    found = votes.outcomes(scope)
    frame = found.frame[found.frame["item"].isin(items.index)].join(items, on="item")
    frame = frame[frame["a"].isin(shown) & frame["b"].isin(shown)]
    rows: list[Row] = []
    for (model, other), part in votes.sided(frame, "").groupby(["model", "other"]):
        won = [int((part["outcome"] == code).sum()) for code in (votes.WIN, votes.TIE, votes.LOSS)]
        counts = dict(zip(("wins", "ties", "losses"), (n / found.repeats for n in won), strict=True))
        hits = (part["outcome"] == votes.WIN).to_numpy()
        share = rate(hits=hits, cluster=votes.clusters(part).to_numpy())
        row: Row = {"model": model, "other": other} | counts | number("win_rate", share)
        rows.append(row | {"n": part["item"].nunique()})
    return Board(rows, ranked.notes, ranked.runs, {"models": shown, "of": len(names)})
