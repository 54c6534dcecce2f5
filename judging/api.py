"""Judges, runs and judgments for scripts."""

from typing import Any, cast

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import exceptions, mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from bank.models import Benchmark, User
from bank.models.catalogue import is_staff
from bank.models.verdict import COLUMNS
from judging import actions, analyses, queries
from judging.collecting.start import start_collecting
from judging.models import Judge, Judgment, PromptTemplate, Run
from judging.probing import probe_judge


class Conflict(exceptions.APIException):
    """409, in words."""

    status_code = status.HTTP_409_CONFLICT


def _bad(error: actions.BadInput) -> exceptions.ValidationError:
    return exceptions.ValidationError({error.field or "detail": [str(error)]})


class JudgeSerializer(serializers.ModelSerializer[Judge]):
    """A judge. Its address and the name of its key's variable are for staff; the key is nowhere."""

    class Meta:
        model = Judge
        fields = (
            "id",
            "name",
            "model",
            "host",
            "base_url",
            "key_env",
            "baseline",
            "family",
            "concurrency",
            "rpm",
            "tpm",
            "timeout",
            "price_in",
            "price_out",
            "abilities",
        )
        staff_only = ("base_url", "key_env")

    def to_representation(self, judge: Judge) -> dict[str, Any]:
        data = super().to_representation(judge)
        if not is_staff(self.context["request"].user):
            for name in self.Meta.staff_only:
                data.pop(name)
        return data


class JudgeIn(serializers.Serializer[Any]):
    """A judge behind an OpenAI-compatible endpoint, at a host that the installation allows."""

    name = serializers.CharField(max_length=200)
    base_url = serializers.CharField(max_length=500)
    model = serializers.CharField(max_length=200)
    key_env = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)
    concurrency = serializers.IntegerField(min_value=1, max_value=1024, required=False, default=16)
    rpm = serializers.IntegerField(min_value=1, max_value=10**9, required=False, default=None, allow_null=True)
    tpm = serializers.IntegerField(min_value=1, max_value=10**9, required=False, default=None, allow_null=True)
    timeout = serializers.IntegerField(min_value=1, max_value=3600, required=False, default=120)
    price_in = serializers.FloatField(min_value=0, required=False, default=None, allow_null=True)
    price_out = serializers.FloatField(min_value=0, required=False, default=None, allow_null=True)
    family = serializers.CharField(max_length=100, required=False, default="", allow_blank=True)


class Judges(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Judge]):
    """Judges; staff add some, and test what their endpoints can do."""

    access_rule = "read-judging"
    access_rules = dict.fromkeys(("create", "probe"), "write-judging")
    serializer_class = JudgeSerializer
    queryset = Judge.objects.all()
    lookup_value_regex = "[0-9]+"
    filters = {"name": "name", "baseline": "baseline"}

    @extend_schema(request=JudgeIn, responses={201: JudgeSerializer})
    def create(self, request: Request) -> Response:
        given = JudgeIn(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            judge = actions.add_judge(**given.validated_data)
        except actions.BadInput as error:
            raise _bad(error) from None
        return Response(self.get_serializer(judge).data, status=status.HTTP_201_CREATED)

    @extend_schema(request=None, responses={200: JudgeSerializer})
    @action(detail=True, methods=["post"])
    def probe(self, request: Request, pk: str) -> Response:
        """Find out by a few short calls what the endpoint can do; runs that start from then on make use of it."""
        judge = self.get_object()
        try:
            probe_judge(judge=judge)
        except actions.BadInput as error:
            raise Conflict({"detail": str(error)}) from None
        return Response(self.get_serializer(judge).data)


class RunSerializer(serializers.ModelSerializer[Run]):
    """A run with its counts: ``done`` judgments hold a verdict, ``failed`` ones do not."""

    judge = serializers.CharField(source="judge.name")
    benchmark = serializers.CharField(source="benchmark.__str__")
    total = serializers.SerializerMethodField()
    done = serializers.SerializerMethodField()
    failed = serializers.SerializerMethodField()

    class Meta:
        model = Run
        fields = (
            "id",
            "kind",
            "judge",
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
            "total",
            "done",
            "failed",
            "calls",
            "cached",
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

    def _counts(self, run: Run) -> queries.Listed:
        """Of all runs on this page in a few queries."""
        known: dict[int, queries.Listed] = self.context["counts"]
        if run.pk not in known:
            shown = self.parent.instance if isinstance(self.parent, serializers.ListSerializer) else [run]
            known.update({row.run.pk: row for row in queries.listed(list(shown or [run]))})
        return known[run.pk]

    def get_total(self, run: Run) -> int:
        return self._counts(run).total

    def get_done(self, run: Run) -> int:
        return self._counts(run).done

    def get_failed(self, run: Run) -> int:
        return self._counts(run).failed


class RunIn(serializers.Serializer[Any]):
    """What to judge. The same judge, protocol, settings and items go on with the run there is, unless ``new``."""

    kind = serializers.ChoiceField(
        Run.Kind.choices,
        required=False,
        default=Run.Kind.JUDGMENTS,
        help_text="responses: a model's answers to the benchmark; captions: descriptions of its pictures",
    )
    judge = serializers.CharField(help_text="its name; that of the endpoint where texts are collected")
    benchmark = serializers.CharField(help_text="SLUG or SLUG@VERSION")
    protocol = serializers.CharField(required=False, default="", help_text="for judgments")
    model = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=200, help_text="the name that collected texts get"
    )
    settings = serializers.DictField(required=False, default=dict)
    limit = serializers.IntegerField(min_value=1, required=False, default=None, allow_null=True)
    budget = serializers.FloatField(required=False, default=None, allow_null=True, help_text="US dollars")
    new = serializers.BooleanField(required=False, default=False)
    reuse = serializers.BooleanField(
        required=False, default=False, help_text="answer identical calls from stored ones, at no cost"
    )
    batched = serializers.BooleanField(
        required=False, default=False, help_text="hand calls in by the endpoint's batch interface"
    )


class Runs(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Run]):
    """Runs of judges; staff start, pause, resume and cancel them."""

    access_rule = "read-judging"
    access_rules = dict.fromkeys(("create", "cancel", "pause", "resume"), "write-judging")
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
        return self.queryset.visible_to(self.request.user)

    def get_serializer_context(self) -> dict[str, Any]:
        return {**super().get_serializer_context(), "counts": {}}

    @extend_schema(request=RunIn, responses={201: RunSerializer, 200: RunSerializer})
    def create(self, request: Request) -> Response:
        """Start a run: 201; or go on with the one that does the same: 200."""
        given = RunIn(data=request.data)
        given.is_valid(raise_exception=True)
        data = given.validated_data
        judge = Judge.objects.filter(name=data["judge"]).first()
        if judge is None:
            raise exceptions.ValidationError({"judge": ["There is no judge of that name."]})
        try:
            benchmark = Benchmark.objects.named(data["benchmark"])
        except Benchmark.DoesNotExist:
            raise exceptions.ValidationError({"benchmark": ["There is no such benchmark."]}) from None
        newest = Run.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        try:
            asked = {name: data[name] for name in ("settings", "limit", "budget", "new", "reuse", "batched")}
            asked |= {"judge": judge, "benchmark": benchmark, "by": cast(User, request.user)}
            if data["kind"] == Run.Kind.JUDGMENTS:
                run = actions.start_run(protocol=data["protocol"], **asked)
            else:
                run = start_collecting(kind=data["kind"], model=data["model"], **asked)
        except actions.BadInput as error:
            raise _bad(error) from None
        made = status.HTTP_201_CREATED if run.pk > newest else status.HTTP_200_OK
        return Response(self.get_serializer(run).data, status=made)

    def _act(self, what: Any) -> Response:
        run = self.get_object()
        try:
            what(run=run)
        except actions.BadInput as error:
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
        """Stop a run for now."""
        return self._act(actions.pause_run)

    @extend_schema(request=None, responses={200: RunSerializer, 409: OpenApiResponse(OpenApiTypes.OBJECT)})
    @action(detail=True, methods=["post"])
    def resume(self, request: Request, pk: str) -> Response:
        """Let a paused run go on."""
        return self._act(actions.resume_run)


class JudgmentSerializer(serializers.ModelSerializer[Judgment]):
    """A verdict in canonical order, which ``responses`` name; ``order`` tells in which they were shown."""

    judge = serializers.CharField(source="run.judge.name")
    sample = serializers.CharField(source="item.sample.key")
    benchmark = serializers.CharField(source="item.sample.benchmark.__str__")
    responses = serializers.SerializerMethodField()
    order = serializers.SerializerMethodField()

    class Meta:
        model = Judgment
        fields = (
            "id",
            "run",
            "judge",
            "benchmark",
            "sample",
            "item",
            "responses",
            "order",
            "repeat",
            "status",
            *COLUMNS,
            "prompt_sha256",
            "reported_model",
            "prompt_tokens",
            "completion_tokens",
            "cost",
            "latency",
            "weighted_score",
            "cached",
            "created_at",
        )

    def get_responses(self, judgment: Judgment) -> list[dict[str, str]]:
        found = judgment.item.ordered_responses()
        return [{"model": response.model.name, "variant": response.variant} for response in found]

    def get_order(self, judgment: Judgment) -> list[int]:
        return [int(place) for place in judgment.order]

    def to_representation(self, judgment: Judgment) -> dict[str, Any]:
        data = super().to_representation(judgment)
        if not is_staff(self.context["request"].user):
            # What hidden components are called, how many there are and what each is worth is hidden.
            data["parts"] = analyses.without_hidden_parts([judgment], self.context["request"].user)[0].parts
            if judgment.run.imported:
                data["reason"] = ""  # a file's reasons are a judge's own words, which can quote criteria
        return data


class AnalysisSerializer(serializers.Serializer[Any]):
    """What a judge said. ``gaps`` counts what was taken out; researchers get no raw reply."""

    id = serializers.IntegerField()
    analysis = serializers.CharField(allow_null=True)
    raw = serializers.CharField(allow_null=True)
    gaps = serializers.IntegerField()
    withheld = serializers.BooleanField()


class Judgments(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[Judgment]):
    """Verdicts of judges. What the judges said is for staff, and redacted for researchers where a run's is released."""

    access_rule = "read-judging"
    serializer_class = JudgmentSerializer
    queryset = Judgment.objects.select_related("run__judge", "item__sample__benchmark").prefetch_related(
        "item__places__response__model"
    )
    lookup_value_regex = "[0-9]+"
    filters = {
        "run": "run",
        "judge": "run__judge__name",
        "benchmark": "item__sample__benchmark__slug",
        "sample": "item__sample__key",
        "item": "item",
        "status": "status",
        "choice": "choice",
    }

    def get_queryset(self) -> Any:
        return self.queryset.visible_to(self.request.user).defer("analysis", "raw")

    @extend_schema(responses=AnalysisSerializer)
    @action(detail=True)
    def analysis(self, request: Request, pk: str) -> Response:
        """The judge's analysis and its whole reply; below staff the redacted one of a released run, else 403."""
        judgment = self.get_object()
        if is_staff(request.user):
            said = {"analysis": judgment.analysis, "raw": judgment.raw, "gaps": 0, "withheld": False}
        elif shown := analyses.released(judgment, reader=cast(User, request.user)):
            said = {"analysis": shown.text, "raw": None, "gaps": shown.gaps, "withheld": shown.withheld}
        else:
            raise exceptions.PermissionDenied
        return Response(AnalysisSerializer({"id": judgment.pk} | said).data)


class TemplateSerializer(serializers.ModelSerializer[PromptTemplate]):
    """A version of a prompt template that staff wrote. ``name@version`` is a value of the setting ``prompt``."""

    class Meta:
        model = PromptTemplate
        fields = ("id", "protocol", "name", "version", "text", "sha256", "note", "created_at")


class TemplateIn(serializers.Serializer[Any]):
    """The next version of a name."""

    protocol = serializers.CharField(max_length=40)
    name = serializers.CharField(max_length=40)
    text = serializers.CharField(max_length=30_000, trim_whitespace=False)
    note = serializers.CharField(max_length=300, required=False, default="", allow_blank=True)


class Templates(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet[PromptTemplate]):
    """Prompt templates that staff wrote; staff add versions. Built-in ones are part of the software."""

    access_rule = "read-judging"
    access_rules = {"create": "write-judging"}
    serializer_class = TemplateSerializer
    queryset = PromptTemplate.objects.all()
    lookup_value_regex = "[0-9]+"
    filters = {"protocol": "protocol", "name": "name"}

    @extend_schema(request=TemplateIn, responses={201: TemplateSerializer})
    def create(self, request: Request) -> Response:
        given = TemplateIn(data=request.data)
        given.is_valid(raise_exception=True)
        try:
            made = actions.add_template(**given.validated_data, by=cast(User, request.user))
        except actions.BadInput as error:
            raise exceptions.ValidationError({error.field or "detail": str(error).split("\n")}) from None
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
