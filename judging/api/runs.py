"""The API of runs and juries."""

from functools import partial
from typing import Any, ClassVar, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.rules import allowed
from bank.api.base import StrictSerializer
from bank.errors import BadInput
from bank.models import Benchmark
from judging.api import Conflict, validation_error
from judging.models import Judge, Judgment, Run
from judging.runs import actions, juries, queries
from judging.runs.actions import start_collecting
from judging.runs.attack_report import report_for
from judging.runs.collecting import COLLECTORS


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
        if not allowed(viewer, "read-calls"):
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


class RunIn(StrictSerializer):
    """What to judge. The same judge, protocol, settings and items continue the existing run, unless ``new``."""

    elsewhere: ClassVar = {"items": 'Unknown field. Choose items in the settings: {"settings": {"items": ...}}.'}

    kind = serializers.ChoiceField(
        [Run.Kind.JUDGMENTS, Run.Kind.ATTACKS, *COLLECTORS],
        required=False,
        default=Run.Kind.JUDGMENTS,
        help_text=(
            "responses: a model's answers to the benchmark; captions and objects: what its pictures "
            "show; rewrites (questions in other words) and drafts (instructions and criteria), for people to read; "
            "attacks: how far the judge can be misled"
        ),
    )
    judge = serializers.CharField(help_text="its name; for collecting runs, the name of the endpoint")
    benchmark = serializers.CharField(help_text="SLUG or SLUG@VERSION")
    protocol = serializers.CharField(required=False, default="", help_text="for judgments and attacks")
    model = serializers.CharField(
        required=False,
        default="",
        allow_blank=True,
        max_length=200,
        help_text="the model that collected texts belong to",
    )
    settings = serializers.DictField(required=False, default=dict)
    attacks = serializers.ListField(
        child=serializers.CharField(max_length=40),
        required=False,
        default=list,
        help_text="NAME or NAME@VERSION, for a run of kind attacks; none: all attacks",
    )
    limit = serializers.IntegerField(min_value=1, required=False, default=None, allow_null=True)
    budget = serializers.FloatField(required=False, default=None, allow_null=True, help_text="US dollars")
    new = serializers.BooleanField(required=False, default=False)
    reuse = serializers.BooleanField(
        required=False, default=False, help_text="answer identical calls from stored ones, at no cost"
    )
    batched = serializers.BooleanField(required=False, default=False, help_text="use the endpoint's batch interface")


class RetryIn(StrictSerializer):
    """Which failures to retry; without either field, all of them."""

    statuses = serializers.ListField(
        child=serializers.ChoiceField(Judgment.FAILURES), required=False, default=list, help_text="none: any status"
    )
    reason = serializers.CharField(
        required=False, default=None, allow_null=True, allow_blank=True, help_text="exactly as in the judgments"
    )


class ResumeIn(StrictSerializer):
    """How a paused run resumes."""

    budget = serializers.FloatField(
        required=False,
        default=None,
        allow_null=True,
        help_text="US dollars in total; without a value it stays unchanged",
    )


class MovedSerializer(serializers.Serializer[Any]):
    """The effect of one attack on the worth of the attacked answers: share of wins, of others below, or the score.

    ``change`` is ``attacked`` minus ``plain`` on the same ``n`` items; what cannot be computed is null. ``clear``: the
    change is significant with all attacks taken together; ``unread`` is the share of its calls without a verdict.
    """

    attack = serializers.CharField()
    version = serializers.IntegerField()
    title = serializers.CharField()
    null_answer = serializers.BooleanField(help_text="the attacked answer contains nothing at all")
    worth = serializers.CharField()
    n = serializers.IntegerField()
    plain = serializers.FloatField(allow_null=True)
    plain_low = serializers.FloatField(allow_null=True)
    plain_high = serializers.FloatField(allow_null=True)
    attacked = serializers.FloatField(allow_null=True)
    attacked_low = serializers.FloatField(allow_null=True)
    attacked_high = serializers.FloatField(allow_null=True)
    change = serializers.FloatField(allow_null=True)
    change_low = serializers.FloatField(allow_null=True)
    change_high = serializers.FloatField(allow_null=True)
    method = serializers.CharField()
    p = serializers.FloatField(allow_null=True)
    clear = serializers.BooleanField()
    unread = serializers.FloatField(allow_null=True)
    unread_low = serializers.FloatField(allow_null=True)
    unread_high = serializers.FloatField(allow_null=True)
    unread_n = serializers.IntegerField()


class Runs(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Run]):
    """Runs of judges; staff start, pause, resume and cancel them, and retry what failed."""

    access_rule = "read-judging"
    access_rules = dict.fromkeys(("create", "cancel", "pause", "resume", "retry"), "write-judging")
    serializer_class = RunSerializer
    queryset = Run.objects.select_related("judge", "benchmark")
    lookup_value_regex = "[0-9]+"
    filters = {
        "kind": "kind",
        "judge": "judge__name",
        "benchmark": "benchmark__slug",
        "state": "state",
        "protocol": "protocol",
    }

    def get_queryset(self) -> Any:
        runs = self.queryset.visible_to(self.request.user)
        if "state" in self.request.query_params:  # of some, whether they have ended is not told yet
            runs = runs.exclude(pk__in=Run.objects.unseen_by(self.request.user))
        return runs

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "counts": {}}

    @extend_schema(request=RunIn, responses={201: RunSerializer, 200: RunSerializer})
    def create(self, request: Request) -> Response:
        """Start a run: 201; or continue the one that does the same: 200."""
        serializer = RunIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        judge = Judge.objects.filter(name=data["judge"]).first()
        if judge is None:
            raise exceptions.ValidationError({"judge": ["Unknown judge."]})
        try:
            benchmark = Benchmark.objects.named(data["benchmark"])
        except Benchmark.DoesNotExist:
            raise exceptions.ValidationError({"benchmark": ["Unknown benchmark."]}) from None
        existing = set(judge.runs.values_list("pk", flat=True))
        try:
            arguments = {name: data[name] for name in ("settings", "limit", "budget", "new", "reuse", "batched")}
            arguments |= {"judge": judge, "benchmark": benchmark, "by": cast(User, request.user)}
            if data["kind"] in (Run.Kind.JUDGMENTS, Run.Kind.ATTACKS):
                attacks = data["attacks"] if data["kind"] == Run.Kind.ATTACKS else None
                run = actions.start_run(protocol=data["protocol"], attacks=attacks, **arguments)
            else:
                run = start_collecting(kind=data["kind"], model=data["model"], **arguments)
        except BadInput as error:
            raise validation_error(error) from None
        status_code = status.HTTP_201_CREATED if run.pk not in existing else status.HTTP_200_OK
        return Response(self.get_serializer(run).data, status=status_code)

    def _act(self, action: Any) -> Response:
        run = self.get_object()
        try:
            action(run=run)
        except BadInput as error:
            raise Conflict({"detail": str(error)}) from None
        run.refresh_from_db()
        return Response(self.get_serializer(run).data)

    @extend_schema(request=None, responses={200: RunSerializer, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    @action(detail=True, methods=["post"])
    def cancel(self, request: Request, pk: str) -> Response:
        """End a run for good; its verdicts stay."""
        return self._act(actions.cancel_run)

    @extend_schema(request=None, responses={200: RunSerializer, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    @action(detail=True, methods=["post"])
    def pause(self, request: Request, pk: str) -> Response:
        """Pause a run."""
        return self._act(actions.pause_run)

    @extend_schema(request=ResumeIn, responses={200: RunSerializer, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Resume a paused run, optionally with another budget."""
        serializer = ResumeIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            actions.check_budget(self.get_object().judge, serializer.validated_data["budget"])
        except BadInput as error:
            raise validation_error(error) from None
        return self._act(partial(actions.resume_run, **serializer.validated_data))

    @extend_schema(request=RetryIn, responses={200: RunSerializer, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    @action(detail=True, methods=["post"])
    def retry(self, request: Request, pk: str) -> Response:
        """Judge again what ended without a verdict. Verdicts stay; without failures nothing changes."""
        serializer = RetryIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        return self._act(partial(actions.retry_failed, **serializer.validated_data))

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
        return Response(MovedSerializer(found.as_rows() if found else [], many=True).data)


class JuryIn(serializers.Serializer[Any]):
    """Several judges as one. The same name with the same runs recomputes the verdicts."""

    name = serializers.CharField(max_length=200)
    runs = serializers.ListField(child=serializers.IntegerField(min_value=1), help_text="one run of each member")


class Juries(mixins.ListModelMixin, viewsets.GenericViewSet[Run]):
    """Juries, as the runs that hold their verdicts; staff create and recompute them."""

    access_rule = "read-judging"
    access_rules = {"create": "write-judging"}
    serializer_class = RunSerializer
    queryset = Run.objects.filter(settings__has_key=juries.SETTING).select_related("judge", "benchmark")
    filters = {"judge": "judge__name", "benchmark": "benchmark__slug", "protocol": "protocol"}

    def get_queryset(self) -> Any:
        return self.queryset.visible_to(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "counts": {}}

    @extend_schema(request=JuryIn, responses={201: RunSerializer, 200: RunSerializer})
    def create(self, request: Request) -> Response:
        """Create a jury: 201; or recompute the one with that name and those runs: 200."""
        serializer = JuryIn(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        members = list(Run.objects.visible_to(request.user).filter(pk__in=data["runs"]))
        if missing := sorted(set(data["runs"]) - {run.pk for run in members}):
            raise exceptions.ValidationError({"runs": [f"Unknown run {missing[0]}."]})
        existing = set(self.queryset.filter(judge__name=data["name"]).values_list("pk", flat=True))
        try:
            run = juries.make_jury(name=data["name"], runs=members, by=cast(User, request.user))
        except BadInput as error:
            raise validation_error(error) from None
        status_code = status.HTTP_201_CREATED if run.pk not in existing else status.HTTP_200_OK
        return Response(self.get_serializer(run).data, status=status_code)
