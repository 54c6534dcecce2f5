"""API of uploads: begun, sent in pieces that may be sent again, checked, confirmed, cancelled."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema, inline_serializer
from rest_framework import mixins, serializers, status, viewsets
from rest_framework.parsers import BaseParser, MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.http import person
from accounts.rules import ANYWHERE
from bank.api.base import PlainJSON, sent
from bank.api.resources import posted
from bank.api.strict import described
from bank.errors import BadInput
from bank.forms.fields import whole_number
from bank.forms.uploads import ChoicesForm
from bank.intake.formats import mapping
from bank.intake.uploads import actions, staging
from bank.models import Upload
from bank.models.uploads import UploadQuerySet

PIECE = "application/offset+octet-stream"


class PieceParser(BaseParser):
    """Hands the body on as a stream: it is never in memory as a whole."""

    media_type = PIECE

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return stream


class UploadSerializer(serializers.ModelSerializer[Upload]):
    by = serializers.CharField(source="by.username")
    offset = serializers.IntegerField(source="received", help_text="Where the next piece begins, in bytes.")
    page = serializers.SerializerMethodField(help_text="The page of this upload.")
    progress = serializers.SerializerMethodField(help_text="What the worker is at: part and rows.")

    class Meta:
        model = Upload
        fields = (
            "id",
            "name",
            "by",
            "state",
            "size",
            "offset",
            "sha256",
            "fault",
            "found",
            "map",
            "keeps_map",
            "choices",
            "report",
            "progress",
            "page",
            "created_at",
            "changed_at",
        )

    def get_page(self, upload: Upload) -> str:
        return reverse("bank:upload-detail", args=[upload.pk])

    def get_progress(self, upload: Upload) -> dict[str, Any]:
        return staging.progress(upload)


class FileSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(max_length=1000, trim_whitespace=False)
    size = serializers.IntegerField(min_value=0)


class NewUploadSerializer(serializers.Serializer[Any]):
    """The files that will come as one stream, in this order."""

    files = FileSerializer(many=True)
    benchmark = serializers.CharField(
        required=False, help_text="SLUG or SLUG@VERSION, a stored one that they are checked for first."
    )
    sha256 = serializers.CharField(required=False, help_text="Of the whole stream, if you know it; it is checked.")


class MapSerializer(serializers.Serializer[Any]):
    map = serializers.DictField(help_text="shape, columns, values, constants: see the documentation of file formats.")
    keep = serializers.BooleanField(default=True, help_text="Whether files with the same columns are read so, too.")


# What is done with the files. What is left out stays as the check proposed it.
CHOICES = inline_serializer(
    "Choices", {name: described(field) for name, field in ChoicesForm.base_fields.items() if name != "into"}
)


class Uploads(mixins.ListModelMixin, mixins.RetrieveModelMixin, viewsets.GenericViewSet):
    """Files on their way into the bank. For curators and administrators; who curates single benchmarks brings in
    samples of these, and sees their own uploads."""

    access_rule = "write-bank"
    access_of = ANYWHERE
    serializer_class = UploadSerializer
    filters = {"state": "state"}
    parser_classes = [PlainJSON, MultiPartParser, PieceParser]

    def get_queryset(self) -> UploadQuerySet:
        return Upload.objects.seen_by(person(self.request)).select_related("by")

    @extend_schema(
        request={"application/json": NewUploadSerializer, "multipart/form-data": OpenApiTypes.OBJECT},
        responses={201: UploadSerializer},
    )
    def create(self, request: Request) -> Response:
        """Begin an upload: as JSON the names and sizes of the files, whose bytes then come by PATCH; or, as multipart
        form data, the files themselves in the field `files`, all at once."""
        user = person(request)
        try:
            if request.content_type.startswith("multipart/"):
                benchmark = request.POST.get("benchmark", "")
                upload = actions.receive_form(by=user, files=request.FILES.getlist("files"), benchmark=benchmark)
            else:
                asked = sent(request, NewUploadSerializer)
                files = [(file["name"], file["size"]) for file in asked["files"]]
                named = {name: asked.get(name, "") for name in ("sha256", "benchmark")}
                upload = actions.start(by=user, files=files, **named)
        except actions.BadInput as error:
            raise serializers.ValidationError({"files": [str(error)]}) from None
        return Response(self.get_serializer(upload).data, status=status.HTTP_201_CREATED)

    @extend_schema(
        request={PIECE: OpenApiTypes.BINARY},
        parameters=[
            OpenApiParameter("Upload-Offset", int, OpenApiParameter.HEADER, required=True),
            OpenApiParameter("Upload-Sha256", str, OpenApiParameter.HEADER, description="Of this piece; it is checked"),
        ],
        responses={
            200: UploadSerializer,
            409: OpenApiResponse(description="Another offset is due; `offset` tells which."),
        },
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        """Send the bytes from `Upload-Offset` on, up to 64 MB at once. A piece that was received already changes
        nothing, so one whose answer was lost is simply sent again; GET tells the offset to go on from."""
        upload = self.get_object()
        if request.content_type != PIECE:
            raise serializers.ValidationError({"content-type": [f"A piece has the content type {PIECE}."]})
        offset = _whole(request.headers.get("Upload-Offset", ""), "Upload-Offset")
        length = _whole(request.headers.get("Content-Length", ""), "Content-Length")
        try:
            upload = actions.receive(
                upload=upload,
                offset=offset,
                length=length,
                pieces=actions.pieces_of(request.stream, length),
                sha256=request.headers.get("Upload-Sha256", ""),
            )
        except actions.BadInput as error:
            raise serializers.ValidationError({"detail": str(error)}) from None
        except actions.WrongOffset as error:
            return _conflict(error, offset=error.received)
        except actions.WrongState as error:
            return _conflict(error, state=upload.state)
        return Response(self.get_serializer(upload).data)

    @posted({"application/json": MapSerializer}, {200: UploadSerializer})
    def map(self, request: Request, pk: str) -> Response:
        """Say what the columns of a table hold, where the state is `mapping` (`found.nearest` proposes) or `checked`;
        it is checked so then."""
        upload = self.get_object()
        given = sent(request, MapSerializer)
        try:
            named = mapping.ready(mapping.checked(given["map"]))
        except BadInput as error:
            raise serializers.ValidationError({"map": [str(error)]}) from None
        return self._step(upload, partial(actions.name_columns, upload=upload, map=named, keep=given["keep"]))

    @posted({"application/json": CHOICES}, {200: UploadSerializer})
    def confirm(self, request: Request, pk: str) -> Response:
        """Bring the checked files in. Choices that change what would be made have them checked again instead: the
        state is then `received`, and another call confirms."""
        upload = self.get_object()
        if not isinstance(request.data, dict):
            raise serializers.ValidationError({"detail": "Send a JSON object."})
        form = ChoicesForm(ChoicesForm.from_api(upload, request.data), upload=upload)
        if not form.is_valid():
            raise serializers.ValidationError(form.errors.get_json_data())
        return self._step(upload, form.carry_out)

    @posted(None, {200: UploadSerializer})
    def cancel(self, request: Request, pk: str) -> Response:
        """End the upload; nothing of it stays. During an import the worker undoes what it began, which takes a
        moment."""
        upload = self.get_object()
        return self._step(upload, partial(actions.cancel, upload=upload))

    def _step(self, upload: Upload, take: Callable[[], object]) -> Response:
        """The upload after a step, or that it cannot be taken now."""
        try:
            take()
        except actions.WrongState as error:
            return _conflict(error, state=upload.state)
        upload.refresh_from_db()
        return Response(self.get_serializer(upload).data)


def _whole(text: str, name: str) -> int:
    number = whole_number(text)
    if number is None:
        raise serializers.ValidationError({name: ["A whole number of bytes."]})
    return number


def _conflict(reason: object, **where: Any) -> Response:
    return Response({"detail": str(reason)} | where, status=status.HTTP_409_CONFLICT)
