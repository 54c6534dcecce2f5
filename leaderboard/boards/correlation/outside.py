"""Scores of benchmarks that are not held here, typed in from where they were published."""

import csv
import io
import math
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Count

from accounts.models import User
from bank.errors import BadInput
from bank.text.names import as_stored
from leaderboard.models import OutsideScore

MOST = 5_000  # scores of one board
HEAD = ["board", "model", "score", "lower_is_better", "source"]


@transaction.atomic
def set_scores(
    *, board: str, scores: Mapping[str, float], source: str, lower_is_better: bool = False, by: User | None = None
) -> int:
    """Replace a board's scores; without any the board is removed. Returns how many there are now. Raises BadInput."""
    board, source = " ".join(board.split()), source.strip()
    if not 0 < len(board) <= 120:
        raise BadInput("The name of the benchmark has 1 to 120 characters.", "board")
    if len(scores) > MOST:
        raise BadInput(f"At most {MOST:,} scores.", "scores")
    if scores and not 0 < len(source) <= 500:
        raise BadInput("Say where the scores were published, in at most 500 characters.", "source")
    named = {as_stored(model): float(score) for model, score in scores.items()}
    if len(named) < len(scores):
        raise BadInput("A model is named twice.", "scores")
    for model, score in named.items():
        if not 0 < len(model) <= 200 or not math.isfinite(score):
            raise BadInput(f"{model[:60]!r}: a model's name and a number.", "scores")
    OutsideScore.objects.filter(board=board).delete()
    OutsideScore.objects.bulk_create(
        OutsideScore(board=board, model=model, score=score, lower_is_better=lower_is_better, source=source, by=by)
        for model, score in named.items()
    )
    return len(named)


def typed_boards() -> list[dict[str, Any]]:
    """Every board with ``source``, ``lower_is_better`` and ``models``, how many it has scores of; by name."""
    named = OutsideScore.objects.order_by("board").values("board", "source", "lower_is_better")
    return [dict(row) for row in named.annotate(models=Count("pk"))]


def read_scores(text: str) -> dict[str, float]:
    """Scores from lines of ``model,score``, quoted as in CSV; a heading is left out. Raises BadInput."""
    scores: dict[str, float] = {}
    try:
        rows = list(csv.reader(io.StringIO(text), skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise BadInput(f"This is not CSV: {error}.", "scores") from None
    for number, row in enumerate(rows, start=1):
        if not any(cell.strip() for cell in row) or [cell.strip().lower() for cell in row] == ["model", "score"]:
            continue
        try:
            model, score = row
            value = float(score)
        except ValueError:
            raise BadInput(f"Line {number}: a model's name, a comma and a number.", "scores") from None
        if as_stored(model) in scores:
            raise BadInput(f"Line {number}: {as_stored(model)!r} is named twice.", "scores")
        scores[as_stored(model)] = value
    return scores
