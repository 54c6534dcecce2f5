"""API of scores of benchmarks that are not held here."""

from typing import ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from bank.api.base import sent
from bank.api.strict import StrictSerializer
from leaderboard.boards.correlation import outside
from leaderboard.models import OutsideScore


class OutsideScoreSerializer(serializers.ModelSerializer[OutsideScore]):
    class Meta:
        model = OutsideScore
        fields = ("id", "board", "model", "score", "lower_is_better", "source", "at")


class OutsideScoresIn(StrictSerializer):
    """All scores of one benchmark. They replace the earlier ones; an empty object removes the benchmark."""

    board = serializers.CharField(max_length=120)
    source = serializers.CharField(  # type: ignore[assignment]  # the base class has an attribute of this name
        max_length=500, required=False, default="", allow_blank=True
    )
    lower_is_better = serializers.BooleanField(required=False, default=False)
    scores = serializers.DictField(child=serializers.FloatField(), help_text="by the model's name")


class OutsideScores(mixins.ListModelMixin, viewsets.GenericViewSet[OutsideScore]):
    """Scores of benchmarks that are not held here, as typed; they take part in rankings over several benchmarks."""

    access_rule = "read-public"
    access_rules: ClassVar = {"create": "write-bank"}
    serializer_class = OutsideScoreSerializer
    queryset = OutsideScore.objects.order_by("pk")
    filters: ClassVar = {"board": "board", "model": "model"}

    @extend_schema(request=OutsideScoresIn, responses={201: OutsideScoresIn})
    def create(self, request: Request) -> Response:
        """Replace the scores of a benchmark."""
        data = sent(request, OutsideScoresIn)
        outside.set_scores(by=cast(User, request.user), **data)
        return Response(data, status=status.HTTP_201_CREATED)
