"""API of editions: boards that rest on hidden inputs, as they were published."""

from typing import Any, ClassVar, cast

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from bank.api.base import sent
from bank.api.strict import StrictSerializer
from bank.models import Benchmark
from bank.samples.benchmarks import find_benchmark
from judging.models import Run
from leaderboard import editions
from leaderboard.kinds import WITH_EDITIONS
from leaderboard.models import Edition
from leaderboard.view import scope_of


class EditionSerializer(serializers.ModelSerializer[Edition]):
    """An edition without its rows, which the board gives to everybody below staff."""

    benchmark = serializers.CharField()

    class Meta:
        model = Edition
        fields = ("id", "benchmark", "what", "kind", "split", "number", "published_at")


class EditionIn(StrictSerializer):
    """Which board is published as it is now."""

    benchmark = serializers.CharField(help_text="SLUG or SLUG@VERSION")
    kind = serializers.ChoiceField(WITH_EDITIONS)
    split = serializers.CharField(default="", allow_blank=True, help_text="a hidden split")
    run = serializers.PrimaryKeyRelatedField(
        queryset=Run.objects.all(),
        default=None,
        allow_null=True,
        help_text="whose verdicts count; default as last time",
    )
    judges = serializers.BooleanField(default=False, help_text="the board of judges")
    dry_run = serializers.BooleanField(default=False, help_text="say what it would tell, and publish nothing")


DRAFT = inline_serializer(
    "EditionDraft",
    {
        "number": serializers.IntegerField(),
        "tells": serializers.ListField(child=serializers.CharField(), help_text="what it would tell, a sentence each"),
        "problem": serializers.CharField(help_text="why it cannot be published; empty where it can"),
    },
)


class Editions(mixins.ListModelMixin, viewsets.GenericViewSet[Edition]):
    """Editions of boards. Staff publish the next one."""

    access_rule = "read-public"
    access_rules: ClassVar = {"create": "publish"}
    serializer_class = EditionSerializer
    queryset = Edition.objects.select_related("benchmark").order_by("pk")
    filters: ClassVar = {"benchmark": "benchmark__slug", "what": "what", "kind": "kind"}

    def get_queryset(self) -> Any:
        return self.queryset.filter(benchmark__in=Benchmark.objects.visible_to(self.request.user))

    @extend_schema(request=EditionIn, responses={201: EditionSerializer, 200: DRAFT})
    def create(self, request: Request) -> Response:
        """Publish the next edition: 201; with ``dry_run`` what it would tell: 200. For staff."""
        given = sent(request, EditionIn)
        benchmark, dry_run = find_benchmark(given.pop("benchmark")), given.pop("dry_run")
        if given["run"] is None and not given["judges"]:
            given["run"] = editions.usual_run(scope_of(benchmark=benchmark, kind=given["kind"], split=given["split"]))
        if dry_run:
            draft = editions.draft(benchmark=benchmark, **given)
            tells = [f"{term}: {said}." for term, said in draft.in_words()]
            return Response({"number": draft.number, "tells": tells, "problem": draft.problem})
        made = editions.publish(benchmark=benchmark, by=cast(User, request.user), **given)
        return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
