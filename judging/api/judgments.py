"""The API of judgments."""

from typing import Any, cast

from django.db.models import F, OuterRef, QuerySet, Subquery
from drf_spectacular.utils import extend_schema
from rest_framework import exceptions, mixins, serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.rules import allowed
from bank import guard
from bank.models import with_answers
from bank.models.verdict import COLUMNS
from judging.api import Resource
from judging.judgments import analyses
from judging.models import Judgment, Run


class JudgmentSerializer(serializers.ModelSerializer[Judgment]):
    """A verdict in canonical order, the order of ``responses``; ``order`` is the order in which they were shown."""

    judge = serializers.CharField(source="run.judge.name")
    simulated = serializers.BooleanField(source="run.judge.simulated")
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
            "simulated",
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
        responses = judgment.item.ordered_responses()
        return [{"model": response.model.name, "variant": response.variant} for response in responses]

    def get_order(self, judgment: Judgment) -> list[int]:
        return [int(place) for place in judgment.order]

    def to_representation(self, judgment: Judgment) -> dict[str, Any]:
        return super().to_representation(*analyses.as_seen([judgment], self.context["request"].user))


class AnalysisSerializer(serializers.Serializer[Any]):
    """What a judge wrote. ``gaps`` counts removed passages; researchers get no raw reply."""

    id = serializers.IntegerField()
    analysis = serializers.CharField(allow_null=True)
    raw = serializers.CharField(allow_null=True)
    gaps = serializers.IntegerField()
    withheld = serializers.BooleanField()


def _of_benchmark(judgments: QuerySet[Judgment], slug: str) -> QuerySet[Judgment]:
    return _of_runs(judgments, Run.objects.filter(benchmark__slug=slug))


def _of_judge(judgments: QuerySet[Judgment], name: str) -> QuerySet[Judgment]:
    return _of_runs(judgments, Run.objects.filter(judge__name=name))


@guard.working()
def _of_runs(judgments: QuerySet[Judgment], runs: QuerySet[Run]) -> QuerySet[Judgment]:
    """The judgments of these runs, so that a page of a million is read in the order of the list.

    With a join, or an index on several runs, a database sorts all of them for each page.
    """
    first_of_run = Judgment.objects.filter(run=OuterRef("pk")).order_by("pk").values("pk")[:1]
    firsts = dict(runs.order_by("pk").values_list("pk", Subquery(first_of_run)))
    if len(firsts) == 1:
        return judgments.filter(run__in=firsts)
    first = min((pk for pk in firsts.values() if pk is not None), default=0)
    return judgments.alias(of_run=F("run_id") + 0).filter(of_run__in=list(firsts), pk__gte=first)


class Judgments(mixins.RetrieveModelMixin, Resource[Judgment]):
    """Verdicts of judges. What the judges wrote is for staff; researchers get released analyses, redacted."""

    serializer_class = JudgmentSerializer
    filters = {
        "run": "run",
        "judge": _of_judge,
        "benchmark": _of_benchmark,
        "sample": "item__sample__key",
        "item": "item",
        "status": "status",
        "choice": "choice",
    }

    def get_queryset(self) -> Any:
        judgments = Judgment.objects.seen_by(self.request.user).defer("analysis", "raw")
        judgments = judgments.select_related("run__judge", "item__sample__benchmark")
        return judgments.prefetch_related(with_answers("item__"))

    @extend_schema(responses=AnalysisSerializer)
    @action(detail=True)
    def analysis(self, request: Request, pk: str) -> Response:
        """The judge's analysis and full reply; below staff the redacted analysis if it is released, else 403."""
        judgment = self.get_object()
        if allowed(request.user, "read-analyses", of=judgment.run.benchmark):
            data = {"analysis": judgment.analysis, "raw": judgment.raw, "gaps": 0, "withheld": False}
        elif redacted := analyses.released(judgment, reader=cast(User, request.user)):
            data = {"analysis": redacted.text, "raw": None, "gaps": redacted.gaps, "withheld": redacted.withheld}
        else:
            raise exceptions.PermissionDenied
        return Response(AnalysisSerializer({"id": judgment.pk} | data).data)
