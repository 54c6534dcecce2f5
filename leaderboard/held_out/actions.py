"""Holding half of a benchmark out, and asking for a run's figures on it."""

from collections import Counter
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import QuerySet
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
from leaderboard.boards.base import whole_as_text
from leaderboard.boards.seen import judges
from leaderboard.held_out.board import beside
from leaderboard.kinds import KINDS
from leaderboard.models import HeldOutRelease
from leaderboard.scope import HELD, OPEN
from leaderboard.view import scope_of


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
    protocols: list[str] = []
    for kind in KINDS.values():
        if kind.metrics:
            protocols += kind.protocols
    runs = benchmark.runs.filter(kind=Run.Kind.JUDGMENTS, protocol__in=protocols).exclude(state__in=Run.GOING)
    return runs.select_related("judge").order_by("-pk")


def _labelled(benchmark: Benchmark) -> Counter[str]:
    """How many items with labels that count each picture or prompt has."""
    labels = Label.objects.counted().of_answers().filter(campaign__benchmark=benchmark).order_by()
    items = labels.values_list("item", "item__sample__group", "item__sample__key").distinct()
    return Counter(group or key for _, group, key in items)
