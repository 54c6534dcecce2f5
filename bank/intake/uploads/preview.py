"""What the page shows of an upload: its first samples, proposed settings, and counts and reasons in words."""

import io
import re
import warnings
from collections import Counter
from itertools import islice
from pathlib import PurePath
from typing import Any

from django.db.models import Count
from PIL import Image, ImageOps

from bank import images
from bank.intake.formats import is_of_many, reader, templates
from bank.intake.formats.reading import BadFile, Problem, Row
from bank.intake.formats.records import ImageRecord, SampleRecord
from bank.intake.imports.sources import PictureFolder, Source
from bank.intake.uploads import staging
from bank.models import Benchmark, Sample, Upload
from bank.text.words import cut

SAMPLES = 6
PICTURES = 4  # of each
EDGE = 720  # pixels
TEXT = 1_200  # characters of an instruction


def keep_preview(upload: Upload, source: Source) -> None:
    """Have the first samples shown, with small copies of their pictures from the upload's folder."""
    if "samples" not in source.parts:
        return
    shown: list[dict[str, Any]] = []
    images_folder = PictureFolder(source.images)
    number = 0
    try:
        rows = reader(source.module, "samples")(source.path)
        for row in islice((row for row in rows if isinstance(row, Row)), SAMPLES):
            record: SampleRecord = row.data
            pictures = []
            for image in record.images[:PICTURES]:
                small = io.BytesIO()
                pictures.append(_small(image, images_folder, small) | {"position": number})
                if "fault" in pictures[-1]:
                    pictures[-1]["position"] = None
                else:
                    with staging.writing(upload, f"preview/{number}.jpg") as file:
                        file.write(small.getvalue())
                number += 1
            shown.append(_first_sample(record) | {"images": pictures})
    except BadFile:
        pass  # the check reports it
    upload.shown = upload.shown | {"preview": shown}


def _first_sample(record: SampleRecord) -> dict[str, Any]:
    text = record.instruction
    return {
        "key": record.key,
        "instruction": cut(text, TEXT),
        "hint": record.hint[:TEXT],
        "options": {letter: option[:TEXT] for letter, option in islice(record.options.items(), 10)},
        "capability": " / ".join(record.path),
        "question_type": record.question_type,
        "criteria": len(record.criteria),
        "answer": bool(record.answer),
    }


def _small(image: ImageRecord, folder: PictureFolder, target: io.BytesIO) -> dict[str, Any]:
    """A small copy of a picture: its size, or why there is none."""
    data = image.data
    if data is None:
        if not image.file:
            return {"fault": "The picture is an address only; it is not fetched."}
        path = folder.find(image)
        if not folder.holds(path) or not path.is_file():
            return {"fault": "The picture is not among the files."}
        data = path.read_bytes() if path.stat().st_size <= images.MAX_BYTES else b""
    try:
        images.ingest(data, keep=False)
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(io.BytesIO(data), formats=list(images.FORMATS)) as picture:
                small = ImageOps.exif_transpose(picture)
                small.thumbnail((EDGE, EDGE))
                plain = small.convert("RGBA")
                ground = Image.new("RGB", plain.size, "white")
                ground.paste(plain, mask=plain.getchannel("A"))
                ground.save(target, "JPEG", quality=85)
                return {"width": ground.width, "height": ground.height}
    except images.NotAnImage as error:
        return {"fault": f"The picture cannot be taken: {error}."}


LOOKED_AT = 50


def propose(upload: Upload, source: Source) -> dict[str, Any]:
    """``{benchmark, version, title, visibility, anchor, parts}``: the benchmark of the format or of the file's name;
    for files without samples, the benchmark with the samples they name.
    """
    stored = None
    if "samples" in source.parts:
        slug = re.sub(r"[^a-z0-9_-]+", "-", _stem(upload.name).lower()).strip("-")[:80] or "benchmark"
        named_by_file = is_of_many(source.module)
        slug = slug if named_by_file else source.format
        title = _title(slug) if named_by_file else source.name
        stored = Benchmark.objects.filter(slug=slug).order_by("-pk").first()
    else:
        stored = _named_in(source)
        slug, title = (stored.slug, stored.title) if stored else ("", "")
    anchor = source.module.anchor(source.path) if hasattr(source.module, "anchor") else ""
    return {
        "benchmark": slug,
        "version": stored.version if stored else "1",
        "title": stored.title if stored else title,
        "visibility": stored.visibility if stored else "private",
        "anchor": "" if stored else anchor,
        "parts": list(source.parts),
    }


def _named_in(source: Source) -> Benchmark | None:
    """The benchmark with most of the samples that the first rows name; of several versions the newest."""
    keys: set[str] = set()
    for part in source.parts:
        try:
            rows = islice(reader(source.module, part)(source.path), LOOKED_AT)
            keys |= {row.data.sample for row in rows if isinstance(row, Row)}
        except BadFile:
            continue
    counted = Sample.objects.filter(key__in=list(keys)).order_by().values("benchmark").annotate(n=Count("pk"))
    best = counted.order_by("-n", "-benchmark").first()
    return Benchmark.objects.get(pk=best["benchmark"]) if best else None


def _stem(name: str) -> str:
    stem = PurePath(name).name
    while (shorter := PurePath(stem).stem) != stem and re.fullmatch(r"\.[A-Za-z]{2,8}", PurePath(stem).suffix):
        stem = shorter
    return stem


def _title(slug: str) -> str:
    return slug.replace("-", " ").replace("_", " ").capitalize()


QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
SEVERAL = re.compile(r"…(?:,? …)+")
ONE = {"criteria": "criterion"}
# Reasons as a library or the command line words them, and as the page does.
ON_THE_PAGE = (
    ("name it with --model", "name it in the field Model"),
    ("name it with --judge", "name it in the field Judge"),
    ("name it with --annotator", "name it in the field Annotator"),
    ("name another with --campaign", "name another in the field Campaign"),
    ("import the new ones with --version.", "import them as a new version."),
)


# What mends a fault, by words of its reason.
FIXES = (
    ("is not a known field", "Rename it or take it out."),
    ("is not JSON", "Mend the line there: each is one row, as in the example."),
    ("is missing", "Add it to each of these rows."),
    ("is none of", "Write one of these words."),
    ("is no object", "Write it as JSON, as in the example."),
    ("is no list", "Write it as JSON, as in the example."),
    ("is empty", "Fill it in, or take these rows out."),
    ("picture is missing", "Add the pictures under the names that the file gives, in a zip or a folder with it."),
    ("already occurs", "Give each sample a key of its own."),
    ("no sample", "Correct the key, or bring the sample in with this file."),
    ("has no response", "Bring the answers in first, or with this file."),
    ("no such file", "Add the pictures under the names that the file gives, in a zip or a folder with it."),
)
SHOWN_TO = "Write public for everybody, campaign for those who label, staff for nobody else."


def fix(problem: Problem) -> str:
    """What mends it; "" where the reason says so itself."""
    if problem.field.endswith("shown_to"):
        return SHOWN_TO
    return next((words for part, words in FIXES if part in problem.reason), "")


def example(part: str, problem: Problem) -> str:
    """What the field may hold, as the templates write it."""
    has_one = problem.field or problem.reason.startswith("is not JSON")
    return templates.example(part, problem.field) if has_one and not problem.warning else ""


def counts(made: "Counter[str] | dict[str, int]") -> str:
    """``420 samples, 1 image``; "" if nothing."""
    return ", ".join(f"{count:,} {_noun(noun, count)}" for noun, count in made.items() if count)


def _noun(noun: str, count: int) -> str:
    if count != 1:
        return noun
    first, _, rest = noun.partition(" ")
    singular = ONE.get(first, first[:-1] if first.endswith("s") else first)
    return f"{singular} {rest}".strip()


def reason(problem: Problem) -> str:
    """The reason as the page words it."""
    text = problem.reason
    for terminal, page in ON_THE_PAGE:
        text = text.replace(terminal, page)
    return text[:500]


def kind(problem: Problem) -> str:
    """The same text for all rows with the same fault: names and numbers are left out."""
    text = SEVERAL.sub("…", NUMBER.sub("…", QUOTED.sub("…", reason(problem))))
    field = ".".join(part for part in problem.field.split(".") if not part.isdigit())
    return f"{field}: {text}" if field else text


def without_paths(text: str, upload: Upload) -> str:
    """The text without the files' location on this machine."""
    root = str(staging.plain(upload))
    return text.replace(f"{root}/", "").replace(root, upload.name)
