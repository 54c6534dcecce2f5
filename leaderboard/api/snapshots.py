"""API of frozen views: a list, one with what made it, and its rows."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from bank.api.resources import Visible
from bank.api.viewsets import ReadOnly
from leaderboard.api import CsvRenderer
from leaderboard.models import Snapshot


class SnapshotSerializer(serializers.ModelSerializer[Snapshot]):
    benchmark = serializers.CharField()

    class Meta:
        model = Snapshot
        fields = ("code", "benchmark", "what", "scope", "fingerprint", "made_from", "computed_at", "created_at")


# Rows of any board, as they were when it was frozen.
ROWS = {(200, "application/json"): serializers.ListSerializer(child=serializers.DictField()), (200, "text/csv"): str}


class Snapshots(Visible, ReadOnly):
    """Frozen views of boards, newest first: what was asked for, and what made it. They never change."""

    serializer_class = SnapshotSerializer
    queryset = Snapshot.objects.select_related("benchmark")
    filters = {"benchmark": "benchmark__slug", "what": "what"}
    lookup_field = "code"
    lookup_value_regex = "[-a-zA-Z0-9_]+"

    @extend_schema(responses=ROWS, parameters=[])
    @action(detail=True, pagination_class=None, renderer_classes=[JSONRenderer, CsvRenderer])
    def rows(self, request: Request, code: str = "") -> Response:
        """The rows as they were, as JSON or CSV."""
        return Response(self.get_object().rows)
