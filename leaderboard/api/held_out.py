"""API of the half that a benchmark holds out; the figures that were told are rows, ``leaderboards/held-out/``."""

from typing import ClassVar, cast

from drf_spectacular.utils import extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from bank.api.base import sent
from leaderboard.held_out import actions
from leaderboard.models import HeldOutRelease


class HeldOutReleaseSerializer(serializers.ModelSerializer[HeldOutRelease]):
    """A request for a run's figures on the half."""

    benchmark = serializers.CharField()
    by = serializers.CharField(default="", help_text="empty: a command")

    class Meta:
        model = HeldOutRelease
        fields = ("number", "benchmark", "run", "by", "at")


class HeldOut(mixins.ListModelMixin, viewsets.GenericViewSet[HeldOutRelease]):
    """Who asked for a judge's figures on the half that a benchmark holds out, and when. For staff."""

    access_rule = "read-hidden"
    access_rules: ClassVar = {"create": "publish"}
    serializer_class = HeldOutReleaseSerializer
    queryset = HeldOutRelease.objects.select_related("benchmark", "by").order_by("pk")
    filters: ClassVar = {"benchmark": "benchmark__slug", "run": "run"}

    @extend_schema(request=actions.HeldOutIn, responses={201: HeldOutReleaseSerializer, 204: None})
    def create(self, request: Request) -> Response:
        """Draw the half: 204; or ask for a run's figures on it: 201."""
        made = actions.hold_out(**sent(request, actions.HeldOutIn), by=cast(User, request.user))
        if isinstance(made, HeldOutRelease):
            return Response(self.get_serializer(made).data, status=status.HTTP_201_CREATED)
        return Response(status=status.HTTP_204_NO_CONTENT)
