"""Imports samples with their pictures and criteria."""

import hashlib
import json
import os
import pickle
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from django.db.models import Model

import bank.criteria
from bank import images
from bank.criteria import importing
from bank.database import bulk, chunks
from bank.intake.formats.reading import Problem, Row, Where
from bank.intake.formats.records import ImageRecord, SampleRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.stage import BYTES, KEY, NUMBER, TEXT
from bank.models import Capability, Sample, SampleImage
from bank.samples import quality

STAGED, KEYS = "staged_samples", "staged_sample_key"
COMPARED = ("instruction", "hint", "language", "question_type", "options", "split", "source", "group", "metadata")
OWN = ("quality_hints", "absent_images", "key", "status", *COMPARED)
COLUMNS = ("id", "benchmark_id", "capability_id", "position", "closed", *OWN)
IMAGE_COLUMNS = """sample_id position sha256 original_sha256 kind width height phash description objects_found
    source_url""".split()
NEW_VERSION = "Imports never change samples; import the new ones with --version."
REMEMBERED = 10_000
# How programs write a cell without a text. Kept, since an option may well be called that.
NO_TEXT = {"nan", "none", "null", "n/a", "na", "<na>"}
EMPTY_CELL = "says what programs write for an empty cell; it is kept as the text of the option"
A_PICTURE = 2**18
NONE = "[]"
ABSENT = "no such file"
ENDINGS = {".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp"}


# New samples by column: plain values, because millions of them wait on disk.
Batch = tuple[
    list[tuple[str, ...]],  # the paths of their capabilities
    list[bulk.Column],  # what of them is closed, and their values of OWN
    list[tuple[Any, ...]],  # pictures: the number of the sample, and the values of IMAGE_COLUMNS from position on
    importing.EncryptedCriteria,
]
# The pictures of a row in order; None if one is absent.
Pictures = list[images.Stored | None]


class Samples:
    """Imports sample records into the context's benchmark."""

    def __init__(self, context: ImportContext) -> None:
        self.context, self.folder = context, context.images
        # The result for each picture, by its file or the hash of its bytes: stored, or why it was refused.
        self.pictures: OrderedDict[Path | str, images.Stored | str] = OrderedDict()
        self.files: dict[tuple[str, ...], Path] = {}  # of the batch, by the places that a record names
        self.capabilities: dict[tuple[str, ...], int] = {}
        self.paths: set[tuple[str, ...]] = set()  # of pending samples
        self.pending_pictures = self.pending_criteria = 0
        self.position = -1
        self.batches = 0
        context.stage.make(KEYS, key=f"{TEXT} PRIMARY KEY", place=NUMBER)
        context.stage.make(STAGED, n=KEY, rows=NUMBER, batch=BYTES)

    def check(self, rows: list[Row], report: Report) -> None:
        keys = [row.data.key for row in rows]
        ids = self.context.sample_ids(keys)
        taken = self._taken(keys, [row.where for row in rows])
        if any(row.data.images for row in rows):
            self.files.clear()
            self._ingest(rows)
        fresh: list[tuple[SampleRecord, Pictures]] = []
        stored: dict[int, tuple[Where, SampleRecord, Pictures]] = {}
        for number, row in enumerate(rows):
            record: SampleRecord = row.data
            if number in taken:
                report.refuse(row.where, "key", f"{record.key!r} already occurs at {taken[number]}")
                continue
            if record.key not in ids:
                _warn_of_empty_options(row, report)
            pictures_of_row = self._pictures(row, report) if record.images else []
            if pictures_of_row is None:
                continue
            if record.key in ids:
                stored[ids[record.key]] = (row.where, record, pictures_of_row)
            else:
                fresh.append((record, pictures_of_row))
        if stored:
            self._compare(stored, report)
        if "responses" in self.context.source.parts:
            for record, _ in fresh:
                self.context.addresses.add(record)
        batch = self._batch(fresh, report)
        if batch:
            self.batches += 1
            columns: dict[str, bulk.Column] = {
                "n": [self.batches],
                "rows": [len(fresh)],
                "batch": [pickle.dumps(batch)],
            }
            self.context.stage.put(STAGED, columns)

    def _taken(self, keys: Sequence[str], places: Sequence[Where]) -> dict[int, Where]:
        """The rows, by index, whose keys the file has used before, and where it did so first."""
        stage, used = self.context.stage, dict[str, Where]()
        for some in chunks(keys):
            listed = ", ".join(["%s"] * len(some))
            rows = stage.ask(f"SELECT key, place FROM {KEYS} WHERE key IN ({listed})", *some)
            used |= {key: stage.where(place) for key, place in rows}
        taken, new = {}, dict[str, Where]()
        for index, (key, place) in enumerate(zip(keys, places, strict=True)):
            if key in used or key in new:
                taken[index] = used.get(key) or new[key]
            else:
                new[key] = place
        stage.put(KEYS, {"key": list(new), "place": stage.places(list(new.values()))})
        return taken

    def settle(self, report: Report) -> None:
        """Each batch was compared with what is stored when it was checked."""

    def _batch(self, fresh: list[tuple[SampleRecord, Pictures]], report: Report) -> Batch | None:
        hidden = [hidden_rows(record) for record, _ in fresh]
        pictures = [(number, *picture) for number, pair in enumerate(fresh) for picture in _picture_rows(*pair)]
        values = [_values(*pair, rows) for pair, rows in zip(fresh, hidden, strict=True)]
        return self._new(
            paths=[tuple(record.path) for record, _ in fresh],
            values=list(zip(*values, strict=True)) if values else [],
            pictures=pictures,
            criteria=importing.as_columns(hidden),
            keys=[record.key for record, _ in fresh],
            report=report,
        )

    def _new(
        self,
        *,
        paths: list[tuple[str, ...]],
        values: list[Sequence[Any]],
        pictures: list[tuple[Any, ...]],
        criteria: importing.CriteriaColumns,
        keys: Sequence[str],
        report: Report,
    ) -> Batch | None:
        report.made["samples"] += len(keys)
        report.made["images"] += len(pictures)
        report.made["criteria"] += len(criteria[0])
        self.paths.update(paths)
        self.pending_pictures += len(pictures)
        self.pending_criteria += len(criteria[0])
        if not keys:
            return None
        if self.context.open_keys:
            importing.open_keys(criteria)
        splits = values[OWN.index("split")]
        closed = importing.closed_of(criteria, [split in self.context.hidden_splits for split in splits])
        self.context.announce(keys, closed)
        if not self.context.writes:
            return None
        columns = list(map(bulk.compact, [closed, *values]))
        return paths, columns, pictures, importing.encrypt(*criteria)

    def weigh(self, row: Row) -> int:
        """The bytes of its pictures, estimated if they are separate files. Keeps batches small, so that an import with
        many pictures reports progress and can be cancelled quickly.
        """
        return sum(len(image.data) if image.data else A_PICTURE for image in row.data.images)

    def expected_rows(self) -> dict[type[Model], int]:
        nodes = {path[:depth] for path in self.paths for depth in range(1, len(path) + 1)}
        return {
            Capability: len(nodes),
            Sample: self.context.pending_samples,
            SampleImage: self.pending_pictures,
            bank.criteria.Criterion: self.pending_criteria,
        }

    def write(self) -> Iterator[int]:
        stage = self.context.stage
        for number, _ in stage.slices(STAGED, step=1):
            [(rows, batch)] = stage.ask(f"SELECT rows, batch FROM {STAGED} WHERE n = %s", number)
            self._write(pickle.loads(batch))  # noqa: S301 (put there by this process, open to nobody else)
            yield rows

    def _write(self, batch: Batch) -> None:
        benchmark, writer = self.context.open(), self.context.writer
        if self.position < 0:
            self.position = benchmark.samples.count()
            self.capabilities = {tuple(node.path.split(" / ")): node.pk for node in benchmark.capabilities.all()}
        paths, values, pictures, sealed = batch
        ids = writer.ids(Sample, len(paths))
        capabilities = [self._capability(path) if path else None for path in paths]
        positions = range(self.position, self.position + len(ids))
        columns = (ids, bulk.Constant(benchmark.pk, len(ids)), capabilities, positions, *values)
        writer.put(Sample, dict(zip(COLUMNS, columns, strict=True)))
        self.position += len(ids)
        self._write_images([(ids[number], *picture) for number, *picture in pictures])
        importing.write(sealed, ids, writer)

    def finish(self) -> None:
        """Existing samples are never changed."""

    def _write_images(self, rows: list[tuple[Any, ...]]) -> None:
        if not rows:
            return
        self.context.has_pictures = True
        staged, ready = self.context.folder("staged"), self.context.folder("ready")
        for _, _, sha256, _, kind, *_ in rows:
            name = f"{sha256}.{kind}"
            if (staged / name).exists():
                os.replace(staged / name, ready / name)
        self.context.writer.put(SampleImage, dict(zip(IMAGE_COLUMNS, zip(*rows, strict=True), strict=True)))

    def _ingest(self, rows: list[Row]) -> None:
        """Check and store the pictures of these rows on all cores: decoding releases the interpreter lock."""
        named: set[Path | str] = set()
        sources: dict[Path | str, Path | bytes] = {}
        for image in (image for row in rows for image in row.data.images if not image.only_address):
            name = self._name(image)
            named.add(name)
            if name not in self.pictures and (isinstance(name, str) or self.folder.holds(name)):
                sources[name] = name if isinstance(name, Path) else image.data
        into = self.context.folder("staged") if self.context.writes else None

        def take(source: Path | bytes) -> images.Stored | str:
            try:
                data = source if isinstance(source, bytes) else images.read_file(source)
            except images.NotAnImage as error:
                return str(error)
            except OSError:
                return ABSENT
            try:
                return images.ingest(data, keep=into is not None, into=into)
            except images.NotAnImage as error:
                return str(error)

        if sources:
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                self.pictures.update(zip(sources, pool.map(take, sources.values()), strict=True))
        for name in named & self.pictures.keys():
            self.pictures.move_to_end(name)
        while len(self.pictures) > max(REMEMBERED, len(named)):
            self.pictures.popitem(last=False)

    def _name(self, image: ImageRecord) -> Path | str:
        if image.data is not None:
            return hashlib.sha256(image.data).hexdigest()
        places = (image.file, *image.also)
        if places not in self.files:
            self.files[places] = self.folder.find(image)
        return self.files[places]

    def _pictures(self, row: Row, report: Report) -> Pictures | None:
        """The pictures of a row; None if one of them is faulty."""
        pictures: Pictures = []
        for position, image in enumerate(row.data.images):
            field = f"images.{position}"
            if image.only_address:
                pictures.append(None)
                continue
            picture = self.pictures.get(self._name(image), "is outside the image folder")
            self.folder.asked += image.data is None
            self.folder.missing += picture == ABSENT
            if picture == ABSENT and not image.required:
                reason = f"{image.file!r}: the picture is missing; the sample is imported without it"
                report.add(Problem(row.where, field, reason, warning=True))
                pictures.append(None)
            elif isinstance(picture, str):
                report.refuse(
                    row.where, field, f"{image.file!r}: {picture}" if image.file else picture, sample=row.data.key
                )
                return None
            else:
                ending = ENDINGS.get(Path(image.file).suffix.lower())
                if ending not in (None, picture.kind):
                    reason = f"{image.file!r}: the picture is {picture.kind} by content, despite its name"
                    report.add(Problem(row.where, field, reason, warning=True))
                pictures.append(picture)
        return pictures

    def _compare(self, rows: dict[int, tuple[Where, SampleRecord, Pictures]], report: Report) -> None:
        """Samples that are stored already must be identical."""
        differing = importing.differing({pk: criteria_of(record) for pk, (_, record, _) in rows.items()})
        stored = Sample.objects.select_related("capability").prefetch_related("images").in_bulk(list(rows))
        for pk, (where, record, pictures) in rows.items():
            sample = stored[pk]
            fields = list(changed_fields(sample, record))
            if not _same_pictures(sample, record, pictures):
                fields.append("images")
            if pk in differing:
                fields.append("criteria")
            if fields:
                reason = f"sample {record.key!r} is stored with a different {', '.join(fields)}. {NEW_VERSION}"
                report.refuse(where, fields[0], reason)
            else:
                report.unchanged += 1

    def _capability(self, path: tuple[str, ...]) -> int:
        if path not in self.capabilities:
            parent = self._capability(path[:-1]) if path[1:] else None
            node = Capability(
                benchmark=self.context.open(),
                parent_id=parent,
                name=path[-1],
                path=" / ".join(path),
                position=len(self.capabilities),
            )
            self.context.writer.make(node)
            self.capabilities[path] = node.pk
        return self.capabilities[path]


def _warn_of_empty_options(row: Row, report: Report) -> None:
    """Of an option that says what a spreadsheet writes into an empty cell."""
    for label, text in row.data.options.items():
        if text.strip().casefold() in NO_TEXT:
            report.add(Problem(row.where, f"options.{label}", EMPTY_CELL, warning=True))


def _values(record: SampleRecord, pictures: Pictures, hidden: list[importing.CriterionValues]) -> tuple[Any, ...]:
    """The values of OWN."""
    hints = quality.hints_for(
        shown=(record.instruction, record.hint),
        options=record.options,
        sizes=[(picture.width, picture.height) for picture in pictures if picture is not None],
        absent=None in pictures,
        criteria=[(kind, text) for _, kind, _, _, _, text in hidden],
    )
    return (
        hints,
        json.dumps(_absent(record, pictures)) if None in pictures else NONE,
        record.key,
        record.status,
        record.instruction,
        record.hint,
        record.language,
        record.question_type,
        json.dumps(record.options),
        record.split,
        record.source,
        record.group,
        Sample._meta.get_field("metadata").get_prep_value(record.metadata),
    )


def _picture_rows(record: SampleRecord, pictures: Pictures) -> list[tuple[Any, ...]]:
    return [
        (
            position,
            picture.sha256,
            picture.original_sha256,
            picture.kind,
            picture.width,
            picture.height,
            picture.phash,
            image.description,
            json.dumps(image.objects),
            image.url,
        )
        for position, (image, picture) in enumerate(zip(record.images, pictures, strict=True))
        if picture is not None
    ]


def _absent(record: SampleRecord, pictures: Pictures) -> list[dict[str, Any]]:
    pairs = enumerate(zip(record.images, pictures, strict=True))
    return [image.as_absent(position) for position, (image, picture) in pairs if picture is None]


def _same_pictures(sample: Sample, record: SampleRecord, pictures: Pictures) -> bool:
    """Whether the pictures are the same originals, or our own encodings of them coming back from an export.

    A stored picture that is merely absent this time is no difference: a single file comes without its pictures.
    """
    stored = {image.position: (image.original_sha256, image.sha256) for image in sample.images.all()}
    gone = {image["position"]: image for image in sample.absent_images}
    for position, (image, picture) in enumerate(zip(record.images, pictures, strict=True)):
        if picture is not None and picture.original_sha256 not in stored.get(position, ()):
            return False
        if picture is None and position not in stored and gone.get(position) != image.as_absent(position):
            return False
    return len(stored) + len(gone) == len(pictures)


def changed_fields(sample: Sample, record: SampleRecord) -> dict[str, tuple[Any, Any]]:
    """What the record says otherwise than the stored sample, besides pictures and criteria: old and new by name."""
    values = {name: (getattr(sample, name), getattr(record, name)) for name in COMPARED}
    values["capability"] = sample.capability_path, " / ".join(record.path)
    return {name: (old, new) for name, (old, new) in values.items() if old != new}


def criteria_of(record: SampleRecord) -> list[dict[str, Any]]:
    """The hidden rows of a sample by name."""
    return [dict(zip(importing.COLUMNS, row, strict=True)) for row in hidden_rows(record)]


def hidden_rows(record: SampleRecord) -> list[importing.CriterionValues]:
    """The hidden rows of a sample: its criteria, and the answer key as one more."""
    rows: list[importing.CriterionValues] = [
        (c.key or str(number), c.kind, c.category, c.weight, c.shown_to, c.text)
        for number, c in enumerate(record.criteria, start=1)
    ]
    if record.answer:
        rows.append(("answer", "answer_key", "", None, "staff", record.answer))
    return rows
