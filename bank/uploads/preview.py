"""The first samples of an upload as they will look, criteria counted only."""

import io
import warnings
from itertools import islice
from pathlib import Path
from typing import Any

from PIL import Image, ImageOps

from bank import images
from bank.formats import reader
from bank.formats.reading import BadFile, Row
from bank.formats.records import SampleRecord
from bank.imports.bundle import Look
from bank.models import Upload
from bank.uploads import staging

SAMPLES = 6
PICTURES = 4  # of each
EDGE = 720  # pixels
TEXT = 1_200  # characters of an instruction


def keep_preview(upload: Upload, seen: Look) -> None:
    """Leave the first samples and small copies of their pictures in the upload's folder."""
    if "samples" not in seen.parts:
        return
    folder = staging.folder(upload) / "preview"
    folder.mkdir(mode=staging.PRIVATE, exist_ok=True)
    shown: list[dict[str, Any]] = []
    number = 0
    try:
        rows = reader(seen.module, "samples")(seen.path)
        for row in islice((row for row in rows if isinstance(row, Row)), SAMPLES):
            record: SampleRecord = row.data
            pictures = []
            for image in record.images[:PICTURES]:
                pictures.append(_small(image, seen.images, folder / f"{number}.jpg") | {"position": number})
                if "fault" in pictures[-1]:
                    pictures[-1]["position"] = None
                number += 1
            shown.append(_shown(record) | {"images": pictures})
    except BadFile:
        pass  # the check says so
    staging.tell(upload, "preview.json", shown)


def _shown(record: SampleRecord) -> dict[str, Any]:
    text = record.instruction
    return {
        "key": record.key,
        "instruction": text if len(text) <= TEXT else f"{text[:TEXT]} …",
        "hint": record.hint[:TEXT],
        "options": {letter: option[:TEXT] for letter, option in islice(record.options.items(), 10)},
        "capability": " / ".join(record.path),
        "question_type": record.question_type,
        "criteria": len(record.criteria),
        "answer": bool(record.answer),
    }


def _small(image: Any, folder: Path, target: Path) -> dict[str, Any]:
    """A small copy of a picture: its size, or why there is none."""
    data = getattr(image, "data", None)
    if data is None:
        if not image.file:
            return {"fault": "The picture is an address only; it is not fetched."}
        path = (folder / image.file).resolve()
        if not path.is_relative_to(folder.resolve()) or not path.is_file():
            return {"fault": "The picture is not among the files."}
        data = path.read_bytes() if path.stat().st_size <= images.MAX_BYTES else b""
    try:
        images.ingest(data, keep=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=list(images.FORMATS)) as found:
                small = ImageOps.exif_transpose(found)
                small.thumbnail((EDGE, EDGE))
                plain = small.convert("RGBA")
                ground = Image.new("RGB", plain.size, "white")
                ground.paste(plain, mask=plain.getchannel("A"))
                ground.save(target, "JPEG", quality=85)
                return {"width": ground.width, "height": ground.height}
    except images.NotAnImage as error:
        return {"fault": f"The picture cannot be taken: {error}."}
