"""Freezing a view of a board as a snapshot; holding half of a benchmark out, and telling a judge's figures on it."""

from collections import Counter
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone
from rest_framework import serializers

from accounts import audit
from accounts.models import User
from annotations.models import Label
from bank.api.strict import StrictSerializer
from bank.errors import BadInput
from bank.models import Benchmark, HeldOutHalf
from bank.samples import held_out
from judging.models import Run
from judging.runs.inputs import BenchmarkField
from leaderboard import methods
from leaderboard.boards import Board, judges, rated_otherwise
from leaderboard.boards.base import ModelsBoard, whole_as_text
from leaderboard.boards.held_out import beside
from leaderboard.kinds import KINDS
from leaderboard.models import HeldOutRelease, Snapshot
from leaderboard.rows import order_of
from leaderboard.scope import HELD, OPEN, BadScope, Scope
from leaderboard.sight import Sight
from leaderboard.view import scope_of
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


# ---- the half that is held out ----


class HeldOutIn(StrictSerializer):
    """Draw the half of a benchmark that is held out, once and for good; or ask for a run's figures on it."""

    benchmark = BenchmarkField(help_text="SLUG or SLUG@VERSION")
    draw = serializers.BooleanField(
        default=False, help_text="Hold half of what people labelled out. It cannot be taken back."
    )
    run = serializers.PrimaryKeyRelatedField(
        queryset=Run.objects.select_related("judge", "benchmark"),
        default=None,
        allow_null=True,
        help_text="Tell this run's figures on the half. The request is counted and shown.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(attrs)
        if given["draw"] == bool(given["run"]):
            raise serializers.ValidationError({"run": "Either draw the half, or name a run."})
        return given


@transaction.atomic
def hold_out(
    *, benchmark: Benchmark, draw: bool = False, run: Run | None = None, by: User | None = None, command: str = ""
) -> HeldOutHalf | HeldOutRelease:
    """Do what a ``HeldOutIn`` asks for: the half, or the request with its figures. Recorded in the audit log. Raises
    BadInput.
    """
    if draw:
        return held_out.draw(benchmark=benchmark, labelled=_labelled(benchmark), by=by, command=command)
    # Locked, so that two requests at once have two numbers.
    if not HeldOutHalf.objects.select_for_update().filter(benchmark=benchmark):
        raise BadInput(f"{benchmark} holds no half out.", "benchmark")
    if run is None or run not in compared_runs(benchmark):
        raise BadInput(f"That is no finished run of a judge that people's labels on {benchmark} fit.", "run")
    kind = next(kind for kind in KINDS.values() if run.protocol in kind.protocols)
    scope = scope_of(benchmark=benchmark, kind=kind, run=run.pk, staff=True)
    found = beside(judges(replace(scope, half=OPEN)), judges(replace(scope, half=HELD)), run.pk)
    if not found.rows:
        raise BadInput(f"People have labelled nothing in one of the halves that run {run.pk} judged.", "run")
    asked = HeldOutRelease.objects.create(
        benchmark=benchmark,
        run=run,
        number=benchmark.held_out_releases.count() + 1,
        board=whole_as_text(found),
        by=by,
    )
    about = f"{benchmark}, {run.judge}, run {run.pk}, request {asked.number}"
    audit.record("held-out-shown", by=by, command=command, about=about)
    return asked


def compared_runs(benchmark: Benchmark) -> QuerySet[Run]:
    """The finished runs of judges whose verdicts boards compare with people's, the newest first."""
    protocols = [protocol for kind in KINDS.values() if kind.metrics for protocol in kind.protocols]
    runs = benchmark.runs.filter(kind=Run.Kind.JUDGMENTS, protocol__in=protocols).exclude(state__in=Run.GOING)
    return runs.select_related("judge").order_by("-pk")


def _labelled(benchmark: Benchmark) -> Counter[str]:
    """How many items with labels that count each picture or prompt has."""
    labels = Label.objects.counted().of_answers().filter(campaign__benchmark=benchmark).order_by()
    items = labels.values_list("item", "item__sample__group", "item__sample__key").distinct()
    return Counter(group or key for _, group, key in items)
