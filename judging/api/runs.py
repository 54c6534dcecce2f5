"""The API of runs and juries."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rules import allowed, demand, through
from bank.api.base import conflicts, sent
from bank.api.resources import Visible, posted
from bank.errors import BadInput
from judging.api import Resource
from judging.extras import juries
from judging.extras.attack_report import MovedSerializer, report_for
from judging.models import JURY, Run
from judging.runs import actions, queries
from judging.runs.inputs import JuryIn, ResumeIn, RetryIn, RunIn


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run with its counts: ``done`` judgments have a verdict, ``failed`` ones do not.

    Below staff both are null while a run with hidden criteria is active.
    """

    judge = serializers.CharField(source="judge.name")
    simulated = serializers.BooleanField(source="judge.simulated")
    benchmark = serializers.CharField(source="benchmark.__str__")
    total = serializers.SerializerMethodField()
    done = serializers.SerializerMethodField()
    failed = serializers.SerializerMethodField()
    dropped = serializers.ListField(
        child=serializers.CharField(), read_only=True, help_text="parameters that the endpoint does not take"
    )
    endpoint_says = serializers.SerializerMethodField(
        help_text="of a single run, for staff: its commonest words where calls failed"
    )

    class Meta:
        model = Run
        fields = (
            "id",
            "kind",
            "judge",
            "simulated",
            "benchmark",
            "protocol",
            "model_name",
            "item_set",
            "settings",
            "settings_hash",
            "template",
            "template_version",
            "template_sha256",
            "seed",
            "state",
            "state_reason",
            "endpoint_says",
            "dropped",
            "next_try_at",
            "tries",
            "total",
            "done",
            "failed",
            "reading",
            "calls",
            "lost",
            "cached",
            "saved",
            "reuse",
            "batched",
            "spent",
            "budget",
            "reported_model",
            "imported",
            "created_at",
            "started_at",
            "finished_at",
        )

    def to_representation(self, run: Run) -> dict[str, Any]:
        viewer = self.context["request"].user
        data = super().to_representation(self._counts(run).run)  # as the viewer may see it
        if not allowed(viewer, "read-calls", of=run.benchmark):
            data["seed"] = None
            if run.held:
                data |= dict.fromkeys(("spent", "cached"))
            if self._counts(run).withheld:
                data |= dict.fromkeys(("calls", "lost"))
        return data

    def _counts(self, run: Run) -> queries.Listed:
        """The counts of all runs on this page, in a few queries."""
        counts: dict[int, queries.Listed] = self.context["counts"]
        if run.pk not in counts:
            shown = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else [run]
            counts.update(
                {row.run.pk: row for row in queries.listed(list(shown or [run]), viewer=self.context["request"].user)}
            )
        return counts[run.pk]

    def get_endpoint_says(self, run: Run) -> str | None:
        alone = not isinstance(self.parent, serializers.ListSerializer)
        return queries.endpoint_says(run, viewer=self.context["request"].user) or None if alone else None

    def get_total(self, run: Run) -> int:
        return self._counts(run).total

    def get_done(self, run: Run) -> int | None:
        return self._counts(run).done

    def get_failed(self, run: Run) -> int | None:
        return self._counts(run).failed


class RunResource(Visible, Resource[Run]):
    """What the resources of runs and of juries share."""

    serializer_class = RunSerializer
    queryset = Run.objects.select_related("judge", "benchmark")

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "counts": {}}


class Runs(mixins.RetrieveModelMixin, RunResource):
    """Runs of judges; staff start, pause, resume and cancel them, and retry what failed."""

    access_rules = dict.fromkeys(("create", "cancel", "pause", "resume", "retry"), "write-judging")
    access_of = through(Run, "benchmark__slug")
    filters = {
        "kind": "kind",
        "judge": "judge__name",
        "benchmark": "benchmark__slug",
        "state": "state",
        "protocol": "protocol",
    }

    def get_queryset(self) -> Any:
        runs = super().get_queryset()
        if "state" in self.request.query_params:  # of some, whether they have ended is not told yet
            runs = runs.exclude(pk__in=Run.objects.unseen_by(self.request.user))
        return runs

    @extend_schema(request=RunIn, responses={201: RunSerializer, 200: RunSerializer})
    def create(self, request: Request) -> Response:
        """Start a run: 201; or continue the one that does the same: 200."""
        given = RunIn(data=request.data)
        given.is_valid(raise_exception=True)
        existing = set(given.validated_data["judge"].runs.values_list("pk", flat=True))
        run = given.start(by=self.request.user)
        return self.responded(run, made=run.pk not in existing)

    def _act(self, action: Any, **values: Any) -> Response:
        run = self.get_object()
        with conflicts(BadInput):
            action(run=run, **values)
        run.refresh_from_db()
        return self.responded(run)

    @posted(None, {200: RunSerializer})
    def cancel(self, request: Request, pk: str) -> Response:
        """End a run for good; its verdicts stay."""
        return self._act(actions.cancel_run)

    @posted(None, {200: RunSerializer})
    def pause(self, request: Request, pk: str) -> Response:
        """Pause a run."""
        return self._act(actions.pause_run)

    @posted(ResumeIn, {200: RunSerializer})
    def resume(self, request: Request, pk: str) -> Response:
        """Resume a paused run, optionally with another budget."""
        given = sent(request, ResumeIn)
        if given["budget"] is not None:
            demand(request, "write-judging")  # what a run may cost is not for who curates one benchmark
        actions.check_budget(self.get_object().judge, given["budget"])
        return self._act(actions.resume_run, **given)

    @posted(RetryIn, {200: RunSerializer})
    def retry(self, request: Request, pk: str) -> Response:
        """Judge again what ended without a verdict. Verdicts stay; without failures nothing changes."""
        return self._act(actions.retry_failed, **sent(request, RetryIn))

    @extend_schema(responses={200: MovedSerializer(many=True)})
    @action(detail=True, pagination_class=None, filter_backends=[])
    def attacks(self, request: Request, pk: str) -> Response:
        """The effect of each attack, for a run of kind attacks; 404 for other runs.

        Below staff there are no rows while a run with hidden criteria is active, none for a judge that marks against
        references, and none about fewer than 10 samples.
        """
        run = self.get_object()
        if run.kind != Run.Kind.ATTACKS:
            raise exceptions.NotFound
        found = report_for(run, request.user)
        return Response(MovedSerializer(found.rows if found else [], many=True).data)


class Juries(RunResource):
    """Juries, as the runs that hold their verdicts; staff create and recompute them."""

    access_rules = {"create": "write-judging"}
    queryset = RunResource.queryset.filter(settings__has_key=JURY)
    filters = {"judge": "judge__name", "benchmark": "benchmark__slug", "protocol": "protocol"}

    @extend_schema(request=JuryIn, responses={201: RunSerializer, 200: RunSerializer})
    def create(self, request: Request) -> Response:
        """Create a jury: 201; or recompute the one with that name and those runs: 200."""
        given = sent(request, JuryIn)
        existing = set(self.queryset.filter(judge__name=given["name"]).values_list("pk", flat=True))
        run = juries.make_jury(**given, by=self.request.user)
        return self.responded(run, made=run.pk not in existing)
