"""Pictures in: right by content, re-encoded without what they carried; hostile ones refused."""

import io
import struct
import zlib

import pytest
from PIL import Image

from bank import images
from tests.bank.conftest import picture


def stored_bytes(stored, media):
    return (media / "images" / stored.sha256[:2] / f"{stored.sha256}.{stored.kind}").read_bytes()


@pytest.mark.parametrize(("kind", "ending"), [("PNG", "png"), ("JPEG", "jpg"), ("WEBP", "webp")])
def test_a_picture_is_known_by_its_content_and_named_by_it(kind, ending, media, tmp_path):
    path = tmp_path / "wrong.txt"
    path.write_bytes(picture(kind=kind))
    stored = images.ingest(path)
    assert (stored.kind, stored.width, stored.height) == (ending, 32, 24)
    assert Image.open(io.BytesIO(stored_bytes(stored, media))).format == kind
    assert images.ingest(path) == stored


@pytest.mark.check("C2")
def test_what_a_picture_carried_beside_its_pixels_is_gone_and_it_stands_upright(media):
    image = Image.new("RGB", (40, 20), "white")
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by 90 degrees
    exif[0x010F] = "secret-camera"
    out = io.BytesIO()
    image.save(out, "JPEG", exif=exif, comment=b"secret-comment")
    stored = images.ingest(out.getvalue() + b"<script>secret-tail</script>")
    assert (stored.width, stored.height) == (20, 40)
    assert b"secret" not in stored_bytes(stored, media)


def test_our_own_encoding_is_not_encoded_again(media):
    first = images.ingest(picture(kind="JPEG"))
    again = images.ingest(stored_bytes(first, media))
    assert again.sha256 == first.sha256


def test_transparency_survives(media):
    out = io.BytesIO()
    Image.new("RGBA", (8, 8), (255, 0, 0, 0)).save(out, "PNG")
    stored = images.ingest(out.getvalue())
    assert Image.open(io.BytesIO(stored_bytes(stored, media))).getpixel((0, 0))[3] == 0


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def bomb(width, height):
    """A PNG that claims to be enormous."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


HEADER = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)


def animation(kind="WEBP"):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    out = io.BytesIO()
    frames[0].save(out, kind, save_all=True, append_images=frames[1:])
    return out.getvalue()


HUNDRED_MB = zlib.compress(bytes(100_000_000), 9)


def text_bomb():
    """A small picture with a text that unpacks to 100 MB before its pixels."""
    raw = picture()
    return raw[:33] + chunk(b"zTXt", b"a\0\0" + HUNDRED_MB) + raw[33:]


def profile_bomb():
    raw = picture()
    return raw[:33] + chunk(b"iCCP", b"a\0\0" + HUNDRED_MB) + raw[33:-12]


def grown_jpeg(side):
    """A JPEG of 8 x 8 pixels that says it is larger."""
    raw = bytearray(picture(kind="JPEG", size=(8, 8)))
    start = raw.index(b"\xff\xc0")
    raw[start + 5 : start + 9] = struct.pack(">HH", side, side)
    return bytes(raw)


HOSTILE = {
    "nothing": b"",
    "text": b"hello",
    "html": b"<html><script>alert(1)</script></html>",
    "svg": b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>',
    "pdf": b"%PDF-1.7\n",
    "postscript": b"%!PS-Adobe-3.0 EPSF-3.0\n",
    "zip": b"PK\x03\x04" + b"\0" * 30,
    "a PNG's first bytes only": picture()[:40],
    "a JPEG cut in half": picture(kind="JPEG", size=(400, 400))[:300],
    "a PNG with a broken chunk": picture()[:-20] + b"\0" * 20,
    "50,000 x 50,000 pixels": bomb(50_000, 50_000),
    "7,000 x 7,000 pixels": bomb(7_000, 7_000),
    "2^31 pixels wide": bomb(2**31 - 1, 1),
    "no pixels": bomb(0, 0),
    "an animation": animation(),
    "a GIF": b"GIF89a\x01\x00\x01\x00\x80\x00\x00\xff\xff\xff\x00\x00\x00!\xf9\x04\x01\x00\x00\x00\x00,"
    b"\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;",
    "a TIFF": b"II*\x00\x08\x00\x00\x00\x00\x00",
    "a BMP": b"BM" + b"\0" * 60,
    "an ICO": b"\0\0\1\0\1\0" + b"\0" * 40,
    "a WebP header": b"RIFF\x24\0\0\0WEBPVP8 ",
    "an MP4": b"\0\0\0\x20ftypisom",
    "an AVIF": b"\0\0\0\x20ftypavif",
    "an animated PNG": animation("PNG"),
    "a PNG whose text unpacks to 100 MB": text_bomb(),
    "a PNG with a profile that unpacks to 100 MB": profile_bomb(),
    "a PNG that ends in its first chunk": picture()[:33],
    "a PNG without pixels": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", HEADER) + chunk(b"IEND", b""),
    "a PNG of an unknown colour type": b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", HEADER[:9] + b"\x07" + HEADER[10:]),
    "a PNG with pixels that are no zlib": b"\x89PNG\r\n\x1a\n"
    + chunk(b"IHDR", HEADER)
    + chunk(b"IDAT", b"garbage" * 9)
    + chunk(b"IEND", b""),
    "a JPEG that says 65,500 x 65,500": grown_jpeg(65_500),
    "a JPEG of its first marker": b"\xff\xd8\xff\xe0",
    "a JPEG that only comments": b"\xff\xd8" + b"\xff\xfe\xff\xff" + b"x" * 65_533 + b"\xff\xd9",
    "a JPEG 2000": b"\0\0\0\x0cjP  \r\n\x87\n" + b"\0" * 40,
    "a PSD": b"8BPS\0\1" + b"\0" * 60,
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.check("C1")
def test_a_hostile_file_is_refused_and_leaves_nothing(name, media):
    with pytest.raises(images.NotAnImage):
        images.ingest(HOSTILE[name])
    assert not list(media.rglob("*.*"))


def test_there_are_34_hostile_files():
    assert len(HOSTILE) == 34


def test_a_file_of_more_than_40_megabytes_is_not_read(tmp_path, media):
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(images.MAX_BYTES + 1)
    with pytest.raises(images.NotAnImage, match="more than 40 MB"):
        images.ingest(path)
