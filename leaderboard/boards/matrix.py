"""Win rates of every model against every other."""

from leaderboard import votes
from leaderboard.boards.base import Board, Row, kept, models, number
from leaderboard.scope import BadScope, Scope
from stats.proportions import rate

MOST = 30  # models shown at once


def win_rates(scope: Scope, rows: int = 0, columns: int = 0) -> Board:
    """Rows ``{model, other, wins, ties, losses, win_rate, win_rate_low, win_rate_high, n}`` of the models in one block
    of ``MOST`` by rank against those in another, ``rows`` and ``columns`` counting blocks from 0.

    ``extra``: ``models`` and ``others`` name the two blocks, ``of`` is how many models there are. Repeats are averaged:
    an item counts once.
    """
    if not scope.kind.pairwise:
        raise BadScope(f"Win rates are told of pairs; there are none of kind {scope.kind}.")
    ranked = kept(scope, "models", models)
    names = [row["model"] for row in ranked.rows]
    blocks = [names[MOST * start : MOST * (start + 1)] for start in (rows, columns)]
    if not all(blocks):
        blocks = [names[:MOST], names[:MOST]]
    found = votes.outcomes(scope)
    frame = votes.told(votes.pairs(scope), found.frame)
    ones, others = ({side: frame[side].isin(block) for side in ("a", "b")} for block in blocks)
    sided = votes.sided(frame[(ones["a"] & others["b"]) | (ones["b"] & others["a"])], "")
    sided = sided[sided["model"].isin(blocks[0]) & sided["other"].isin(blocks[1])]
    cells: list[Row] = []
    for (model, other), part in sided.groupby(["model", "other"], observed=True):
        won = [int((part["outcome"] == code).sum()) for code in (votes.WIN, votes.TIE, votes.LOSS)]
        counts = dict(zip(("wins", "ties", "losses"), (n / found.repeats for n in won), strict=True))
        hits = (part["outcome"] == votes.WIN).to_numpy()
        share = rate(hits=hits, cluster=votes.clusters(part).to_numpy())
        row: Row = {"model": model, "other": other} | counts | number("win_rate", share)
        cells.append(row | {"n": part["item"].nunique()})
    return Board(cells, ranked.notes, ranked.runs, {"models": blocks[0], "others": blocks[1], "of": len(names)})
