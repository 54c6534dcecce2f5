"""Pictures out: to whoever may see a sample that holds them."""

from typing import Any, Protocol

from django.conf import settings
from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase

from accounts.rules import allowed, requires
from bank.models import SampleImage
from bank.models.catalogue import Benchmark

TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


class Kept(Protocol):
    """A picture in the media folder."""

    kind: Any

    @property
    def path(self) -> str: ...


def image_response(image: Kept, request: HttpRequest) -> HttpResponseBase:
    """The picture's bytes. The address is the content's hash: a browser may keep it, shared caches may not."""
    path = settings.MEDIA_ROOT / image.path
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise Http404("the file is gone") from None
    response = FileResponse(file, content_type=TYPES[image.kind])
    response["Cache-Control"] = "private, max-age=86400, immutable"
    response["Content-Disposition"] = "inline"
    return response


@requires("read-public")
def image(request: HttpRequest, sha256: str, kind: str) -> HttpResponseBase:
    """A picture of a sample that the viewer may see; of anything else 404."""
    found = SampleImage.objects.filter(sha256=sha256, kind=kind)
    if not allowed(request.user, "read-bank"):
        found = found.filter(sample__benchmark__visibility=Benchmark.Visibility.PUBLIC, sample__status="approved")
    first = found.first()
    if first is None:
        raise Http404("no such picture")
    return image_response(first, request)
