"""How the samples of a file differ from those of a stored version: added, changed, missing."""

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bank.criteria import importing
from bank.database import batched
from bank.intake.formats.reading import Problem, Row
from bank.intake.formats.records import ImageRecord, SampleRecord
from bank.intake.imports import Cancelled, never
from bank.intake.imports.samples import changed_fields, criteria_of
from bank.intake.imports.sources import PictureFolder
from bank.models import Benchmark, Sample
from bank.text.words import cut

BATCH = 500
LISTED = 50  # changed samples shown field by field
KEYS = 500
SHOWN = 1_500  # characters of a value
HIDDEN = "Criteria or answer key changed; they are not shown here."


def against(
    *,
    benchmark: Benchmark,
    rows: Iterable[Row | Problem],
    images: PictureFolder,
    cancelled: Callable[[], bool] = never,
) -> dict[str, Any]:
    """Compare sample rows with a stored version.

    ``{against, added, changed, missing, same, changes: [{key, pk, fields: [{name, old, new} | {name, hidden}]}],
    added_keys, missing_keys}``; lists are truncated, counts are complete. For criteria it says only that they changed.
    """
    counts = dict.fromkeys(("added", "changed", "same"), 0)
    changes: list[dict[str, Any]] = []
    added: list[str] = []
    missing = set(benchmark.samples.values_list("key", flat=True))
    digests: dict[Path, str] = {}
    for batch in batched((row for row in rows if isinstance(row, Row)), BATCH):
        if cancelled():
            raise Cancelled
        records: dict[str, SampleRecord] = {row.data.key: row.data for row in batch}
        stored = benchmark.samples.filter(key__in=list(records)).select_related("capability")
        stored_by_key = {sample.key: sample for sample in stored.prefetch_related("images")}
        missing.difference_update(records)
        differing = importing.differing({s.pk: criteria_of(records[s.key]) for s in stored_by_key.values()})
        for key, record in records.items():
            if key not in stored_by_key:
                counts["added"] += 1
                added.append(key) if len(added) < KEYS else None
                continue
            fields = _changed(stored_by_key[key], record, images, digests)
            if stored_by_key[key].pk in differing:
                fields.append({"name": "criteria", "hidden": HIDDEN})
            counts["changed" if fields else "same"] += 1
            if fields and len(changes) < LISTED:
                changes.append({"key": key, "pk": stored_by_key[key].pk, "fields": fields})
    return counts | {
        "against": benchmark.version,
        "missing": len(missing),
        "changes": changes,
        "added_keys": added,
        "missing_keys": sorted(missing)[:KEYS],
    }


def _changed(
    sample: Sample, record: SampleRecord, images: PictureFolder, digests: dict[Path, str]
) -> list[dict[str, Any]]:
    changed = changed_fields(sample, record)
    fields = [{"name": name, "old": _excerpt(old), "new": _excerpt(new)} for name, (old, new) in changed.items()]
    pictures = [_digest(image, images, digests) for image in record.images]
    present = [digest for digest in pictures if digest]
    old = list(sample.images.all())
    same = len(old) == len(present) and all(
        new in (image.original_sha256, image.sha256) for image, new in zip(old, present, strict=True)
    )
    if not same:
        fields.append({"name": "images", "old": _pictures(len(old)), "new": f"{_pictures(len(present))}, not the same"})
    return fields


def _digest(image: ImageRecord, folder: PictureFolder, digests: dict[Path, str]) -> str:
    """SHA-256 of a picture of the file, "" if it is missing."""
    if image.data is not None:
        return hashlib.sha256(image.data).hexdigest()
    if not image.file:
        return ""
    path = folder.find(image)
    if path not in digests:
        inside = folder.holds(path) and path.is_file()
        digests[path] = hashlib.sha256(path.read_bytes()).hexdigest() if inside else ""
    return digests[path]


def _pictures(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"


def _excerpt(value: Any) -> str:
    if isinstance(value, dict):
        value = "\n".join(f"{name}: {text}" for name, text in value.items())
    text = str(value)
    return cut(text, SHOWN)
