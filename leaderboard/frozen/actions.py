"""Freezing the view of a board."""

from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from judging.models import Run
from leaderboard import methods
from leaderboard.boards.base import Board, ModelsBoard, whole_as_text
from leaderboard.boards.seen import rated_otherwise
from leaderboard.models import Snapshot
from leaderboard.rows import order_of
from leaderboard.scope import BadScope, Scope
from leaderboard.sight import Sight
from leaderboard.votes import samples_in, scores


@transaction.atomic
def freeze(*, what: str, scope: Scope, view: dict[str, str], board: Board[Any], by: User) -> Snapshot:
    """The snapshot of a view with its data; the existing one if it was frozen before. Raises BadScope.

    ``scope`` is the view below staff: a snapshot is for everybody, without names and without the overlap baseline.
    """
    if scope.staff:
        raise ValueError("a snapshot is made of the public view")
    if not board.rows or board.computed_at is None:
        raise BadScope("This view has no rows to freeze.")
    now = as_of_now(what=what, scope=scope, view=view, board=board)
    kept = ("code", "benchmark", "scope", "tables", "made_from", "computed_at")
    defaults = {name: getattr(now, name) for name in kept} | {"by": by}
    snapshot, _ = Snapshot.objects.get_or_create(what=what, fingerprint=now.fingerprint, defaults=defaults)
    return snapshot


def as_of_now(*, what: str, scope: Scope, view: dict[str, str], board: Board[Any]) -> Snapshot:
    """The snapshot that freezing this view would make; it is not stored."""
    rows = board.as_json()
    beside = rated_otherwise(scope, board)
    return Snapshot(
        what=what,
        fingerprint=board.key,
        code=board.key[:12],
        benchmark=scope.benchmark,
        scope=view,
        tables={"rows": rows, "order": order_of(rows), "board": whole_as_text(board)}
        | ({"beside": whole_as_text(beside)} if beside else {}),
        made_from=_made_from(scope, board),
        computed_at=board.computed_at or timezone.now(),
    )


def _made_from(scope: Scope, board: Board[Any]) -> dict[str, Any]:
    edition = board.edition if isinstance(board, ModelsBoard) else None
    visibility = {"edition": edition} if edition else {} if Sight(scope).sealed else {"open": True}
    runs = Run.objects.filter(pk__in=board.runs).select_related("judge").order_by("pk")
    return visibility | {
        "kind": scope.kind.name,
        "source": scope.source if scope.run is None else f"run {scope.run}",
        "majority": scope.rule,
        "anchor": scope.anchor,
        "methods": methods.VERSION,
        "notes": board.notes,
        "counted": board.counted | _labels(scope, board),
        "runs": [
            {
                "run": run.pk,
                "judge": run.judge.name,
                "model": run.reported_model or run.judge.model,
                "protocol": run.protocol,
                "settings": run.settings,
                "prompt": run.template,
                "prompt_version": run.template_version,
                "prompt_sha256": run.template_sha256,
                "imported": run.imported,
            }
            for run in runs
        ],
    }


def _labels(scope: Scope, board: Board[Any]) -> dict[str, int]:
    """How many labels count in a board of models by people's verdicts; other boards say it themselves."""
    if not isinstance(board, ModelsBoard) or not scope.by_people or board.edition:
        return {}
    labels = scores.counted_labels(scope, every=True)
    return {"labels": labels.filter(item__sample__in=samples_in(scope).order_by()).count()}
