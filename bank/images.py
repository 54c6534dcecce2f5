"""Pictures: checked, re-encoded and named by content on the way in; served to viewers who may see them."""

import hashlib
import io
import secrets
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from django.http import FileResponse, Http404, HttpRequest, HttpResponseBase
from PIL import Image, ImageDraw, ImageFont, ImageOps

from accounts.rules import allowed, requires
from bank import media
from bank.models import SampleImage
from bank.models.catalogue import known_to
from bank.objects import Away

FORMATS = {"PNG": "png", "JPEG": "jpg", "WEBP": "webp"}
MAX_PIXELS = 40_000_000
MAX_BYTES = 40 * 2**20
Image.MAX_IMAGE_PIXELS = MAX_PIXELS
LOOKED_AT = 50  # pictures to recognise a folder without the mark


class NotAnImage(ValueError):
    """The file is not an acceptable picture; the message says why."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored picture. ``phash`` describes its look: 16 hexadecimal digits, of which few differ between similar
    pictures.
    """

    sha256: str
    original_sha256: str
    kind: str
    width: int
    height: int
    phash: str


def _check_extent(image: Image.Image) -> None:
    """Raises NotAnImage for too many pixels, or several frames."""
    if image.width * image.height > MAX_PIXELS:
        raise NotAnImage(f"{image.width} x {image.height} is more than {MAX_PIXELS // 10**6} megapixels")
    if getattr(image, "n_frames", 1) > 1:
        raise NotAnImage("an animation; send one frame")


def ingest(source: Path | bytes, *, keep: bool = True, into: Path | None = None) -> Stored:
    """Check a picture by its content, re-encode it without metadata, and store it under the hash of the result.

    ``keep=False`` only checks and writes no file; ``into`` is a folder for files that are not served yet, under the
    names that ``home`` takes. Accepts one frame of PNG, JPEG or WebP of at most 40 megapixels, rotated as its
    orientation tag says. The file name does not matter. Raises NotAnImage.
    """
    data = source if isinstance(source, bytes) else read_file(source)
    original = hashlib.sha256(data).hexdigest()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
                kind = FORMATS[str(image.format)]
                _check_extent(image)
                image.load()
                if media.exists(home(f"{original}.{kind}")):  # our own encoding, back from an export: not once more
                    return Stored(original, original, kind, *image.size, dhash(image))
                upright = ImageOps.exif_transpose(image)
                encoded = _encode(upright, kind)
                width, height = upright.size
                phash = dhash(upright)
    except (NotAnImage, Away):
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise NotAnImage(f"more than {MAX_PIXELS // 10**6} megapixels") from None
    except (OSError, ValueError, SyntaxError, EOFError, OverflowError, MemoryError):
        raise NotAnImage("not a readable PNG, JPEG or WebP picture") from None
    sha256 = hashlib.sha256(encoded).hexdigest()
    name = f"{sha256}.{kind}"
    if keep and not media.exists(home(name)):
        if into is None:
            media.write(home(name), encoded)
        else:
            media.write_file(into / name, encoded)
    return Stored(sha256, original, kind, width, height, phash)


def home(name: str) -> str:
    """Where the picture ``<sha256>.<kind>`` is served from."""
    return f"images/{name[:2]}/{name}"


def media_matches_database() -> bool:
    """Whether this process's media folder, or object storage, is the one with the database's pictures. Raises Away.

    The database and the folder hold the same token. Whoever first finds most of the newest pictures in the folder
    creates the token, or restores it if the file is gone: an empty or outdated folder never becomes the right one.
    """
    from bank.models import PictureStorage, SampleImage

    token = PictureStorage.objects.values_list("token", flat=True).first()
    try:
        folder_token = media.read(media.MARK).decode().strip()
    except Away:
        raise
    except OSError:
        folder_token = ""
    if token and folder_token:
        return folder_token == token
    newest = SampleImage.objects.order_by("-pk")[:LOOKED_AT]
    present = [media.exists(image.path) for image in newest]
    if not present:
        return True  # there are no pictures yet
    if 2 * sum(present) <= len(present):
        return False
    row, _ = PictureStorage.objects.get_or_create(pk=1, defaults={"token": folder_token or secrets.token_hex(16)})
    if not folder_token:
        try:
            media.write(media.MARK, row.token.encode())
        except OSError:
            return True  # read-only from here, but the pictures are present
    return folder_token in ("", row.token)


def dhash(image: Image.Image) -> str:
    """The difference hash (Krawetz 2013): is each of 8 x 8 grey fields brighter than its right neighbour?

    Similar pictures differ in few of the 64 bits; scaling, small edits and re-encoding change few.
    """
    grey = image.convert("RGBA").convert("L") if "transparency" in image.info else image.convert("L")
    fields = grey.resize((9, 8), Image.Resampling.BILINEAR, reducing_gap=3.0).tobytes()
    bits = 0
    for row in range(8):
        for column in range(8):
            bits = bits << 1 | (fields[9 * row + column] > fields[9 * row + column + 1])
    return f"{bits:016x}"


def read_file(path: Path) -> bytes:
    """A picture file's bytes. Raises NotAnImage if it is too large, OSError."""
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise NotAnImage(f"{size / 2**20:.0f} MB is more than {MAX_BYTES // 2**20} MB")
    return path.read_bytes()


def _encode(image: Image.Image, kind: str) -> bytes:
    plain = Image.new(image.mode, image.size)  # a copy of the pixels alone: no EXIF, no comments, no profile
    plain.paste(image)
    if image.mode == "P" and (palette := image.getpalette()):
        plain.putpalette(palette)
        if "transparency" in image.info:
            plain = image.convert("RGBA")
    out = io.BytesIO()
    if kind == "jpg":
        if plain.mode not in ("RGB", "L", "CMYK"):
            plain = plain.convert("RGB")
        plain.save(out, "JPEG", quality=92)
    elif kind == "webp":
        plain.save(out, "WEBP", quality=90)
    else:
        plain.save(out, "PNG", compress_level=6)
    return out.getvalue()


def smaller(data: bytes, *, longest: int) -> bytes:
    """A stored picture with its longer edge at most ``longest`` pixels, of the same kind; unchanged if it is not
    longer.

    The same bytes and length give the same result.
    """
    with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
        if max(image.size) <= longest:
            return data
        kind = str(image.format)
        reduced = image.convert("RGBA" if image.mode == "P" else image.mode)
        reduced.thumbnail((longest, longest), Image.Resampling.LANCZOS)
        return _saved(reduced, kind)


def with_words(data: bytes, words: str) -> bytes:
    """A stored picture of the same kind and size with words in black on a white band at the bottom.

    The letters are as large as the width allows, between 10 pixels and a twentieth of the longer edge.
    """
    with Image.open(io.BytesIO(data), formats=list(FORMATS)) as image:
        kind = str(image.format)
        marked = image.convert("RGB")
    draw = ImageDraw.Draw(marked)
    size = max(10, max(marked.size) // 20)
    lines = _wrapped(draw, words, ImageFont.load_default(size), marked.width - size)
    while size > 10 and len(lines) * size * 1.3 > marked.height / 2:
        size -= 1
        lines = _wrapped(draw, words, ImageFont.load_default(size), marked.width - size)
    step = round(size * 1.3)
    top = max(0, marked.height - step * len(lines) - size // 2)
    draw.rectangle((0, top, marked.width, marked.height), fill="white")
    for number, line in enumerate(lines):
        draw.text((size // 2, top + size // 4 + number * step), line, fill="black", font=ImageFont.load_default(size))
    return _saved(marked, kind)


def _wrapped(draw: ImageDraw.ImageDraw, words: str, font: Any, width: int) -> list[str]:
    lines: list[str] = []
    for word in words.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and draw.textlength(longer, font=font) <= width:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _saved(image: Image.Image, kind: str) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **({} if kind == "PNG" else {"quality": 90}))
    return buffer.getvalue()


TYPES = {"png": "image/png", "jpg": "image/jpeg", "webp": "image/webp"}


class ImageFile(Protocol):
    """A stored picture."""

    kind: Any

    @property
    def path(self) -> str: ...


def image_response(image: ImageFile, request: HttpRequest) -> HttpResponseBase:
    """The picture's bytes. The URL contains the content's hash: browsers may cache it, shared caches may not."""
    try:
        file = media.opened(image.path)
    except FileNotFoundError:
        raise Http404("the file is gone") from None
    response = FileResponse(file, content_type=TYPES[image.kind])
    response["Cache-Control"] = "private, max-age=86400, immutable"
    response["Content-Disposition"] = "inline"
    return response


@requires("read-public")
def image(request: HttpRequest, sha256: str, kind: str) -> HttpResponseBase:
    """A picture of a sample that the viewer may see; anything else is 404."""
    images = SampleImage.objects.filter(sha256=sha256, kind=kind)
    if not allowed(request.user, "read-bank"):
        images = images.filter(known_to(request.user, "sample__benchmark__"), sample__status="approved")
    first = images.first()
    if first is None:
        raise Http404("no such picture")
    return image_response(first, request)
