"""API of the files that a worker writes for whoever asked for an export."""

from django.db.models import QuerySet
from django.http import HttpResponseBase
from django.urls import reverse
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.rules import ANYWHERE
from bank.api.base import FILES, Conflict
from bank.intake import export_files
from bank.models import ExportFile

AGAIN_AFTER = 5  # seconds after which a file that is not ready is asked for again


class ExportFileSerializer(serializers.ModelSerializer[ExportFile]):
    file = serializers.SerializerMethodField(help_text="Where it is downloaded; 202 until it is ready.")

    class Meta:
        model = ExportFile
        fields = ("id", "name", "state", "fault", "size", "file", "created_at", "ended_at")

    def get_file(self, row: ExportFile) -> str:
        return reverse("api-export-file", args=[row.pk])


WAITS = {202: OpenApiResponse(ExportFileSerializer, "A worker writes it: ask again at `file` after `Retry-After`.")}


def answer_of(made: HttpResponseBase | ExportFile) -> HttpResponseBase:
    """The file that was asked for, or 202 with where it will be."""
    if not isinstance(made, ExportFile):
        return made
    told = ExportFileSerializer(made).data
    headers = {"Retry-After": str(AGAIN_AFTER), "Location": told["file"]}
    return Response(told, status=status.HTTP_202_ACCEPTED, headers=headers)


class Exports(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """The caller's large exports of the last day, which a worker writes. For curators and administrators."""

    access_rule = "read-bank"
    access_of = ANYWHERE
    serializer_class = ExportFileSerializer
    filters: dict[str, str] = {}

    def get_queryset(self) -> QuerySet[ExportFile]:
        return ExportFile.objects.filter(by=self.request.user.pk)

    @extend_schema(responses=FILES | WAITS)
    @action(detail=True, pagination_class=None)
    def file(self, request: Request, pk: str) -> HttpResponseBase:
        """The file, for a day. Hidden text in it is logged at each download. 409 where it could not be written, or is
        not there any more."""
        row = self.get_object()
        if row.state == ExportFile.State.WAITING:
            return answer_of(row)
        if row.fault:
            raise Conflict({"detail": row.fault})
        return export_files.downloaded(row)
