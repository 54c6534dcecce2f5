"""Responses that name their sample or rotation in their format's own way, translated into ours.

MIA-Bench identifies a sample by the URL of its picture. MMBench identifies the rotation of a circular evaluation by the
number of the copy; the sample knows by how many places that copy rotates its options.
"""

from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

from bank.intake.formats.reading import Problem, Row
from bank.intake.formats.records import ResponseRecord, SampleRecord
from bank.models import Benchmark, Sample, SampleImage

BATCH = 1000
Turn = tuple[list[str], dict[str, int]]  # the option letters; by how many places each copy rotates them


class PendingAddresses:
    """How to address samples that are not stored yet."""

    def __init__(self) -> None:
        self.keys: dict[str, list[str]] = {}  # by the URL of a picture
        self.turns: dict[str, Turn] = {}  # by key

    def add(self, record: SampleRecord) -> None:
        for url in dict.fromkeys(image.url for image in record.images if image.url):
            self.keys.setdefault(url, []).append(record.key)
        if record.options:
            self.turns[record.key] = (list(record.options), record.metadata.get("rotations", {}))


class Addresses:
    """Addresses of the samples of one benchmark (``None``: it does not exist yet) and of those the import will make.

    With ``answerable``, only samples that everybody may answer: drafts count as missing.
    """

    def __init__(
        self, benchmark: Benchmark | None, pending: "PendingAddresses | None" = None, *, answerable: bool = False
    ) -> None:
        self.benchmark, self.pending = benchmark, pending or PendingAddresses()
        self.only = {"status": Sample.Status.APPROVED} if answerable else {}

    def resolved(self, rows: Iterable[Row | Problem]) -> Iterator[Row | Problem]:
        """The same rows, each with its sample's key and its variant; rows that cannot be resolved become problems."""
        source = iter(rows)
        while batch := list(islice(source, BATCH)):
            keys = {row.data.sample for row in batch if isinstance(row, Row) and row.data.rotation}
            turns = self._turns(keys)
            for row in batch:
                if isinstance(row, Row) and row.data.image_url:
                    yield self._addressed(row)
                elif isinstance(row, Row) and row.data.rotation:
                    yield _rotated(row, turns.get(row.data.sample))
                else:
                    yield row

    @cached_property
    def _keys(self) -> dict[str, list[str]]:
        """Sample keys by the URL of a picture they show."""
        by_url = {url: list(keys) for url, keys in self.pending.keys.items()}
        if self.benchmark is None:
            return by_url
        samples = self.benchmark.samples.filter(**self.only).order_by()
        stored = SampleImage.objects.filter(sample__in=samples).exclude(source_url="").order_by()
        for url, key in stored.values_list("source_url", "sample__key"):
            by_url.setdefault(url, []).append(key)
        absent = samples.exclude(absent_images=[])
        for images, key in absent.values_list("absent_images", "key"):
            for image in images:
                if image.get("url"):
                    by_url.setdefault(image["url"], []).append(key)
        return by_url

    def _addressed(self, row: Row) -> Row | Problem:
        record: ResponseRecord = row.data
        keys = self._keys.get(record.image_url, [])
        if len(keys) == 1:
            return Row(row.where, record.model_copy(update={"sample": keys[0], "image_url": ""}))
        reason = f"{len(keys)} samples show" if keys else "no sample shows"
        return Problem(row.where, "sample", f"{reason} the picture at {record.image_url}")

    def _turns(self, keys: set[str]) -> dict[str, Turn]:
        """By sample: the letters of its options, and by how many places each circular copy rotates them."""
        pending = {key: self.pending.turns[key] for key in keys if key in self.pending.turns}
        if self.benchmark is None or not keys:
            return pending
        rows: Any = (
            self.benchmark.samples.filter(key__in=keys, **self.only)
            .order_by()
            .values_list("key", "options", "metadata")
        )
        stored = {key: (list(options), metadata.get("rotations", {})) for key, options, metadata in rows.iterator()}
        return pending | stored


def _rotated(row: Row, turn: Turn | None) -> Row | Problem:
    record: ResponseRecord = row.data
    letters, rotations = turn or ([], {})
    if turn is not None and record.rotation >= max(len(letters), 1):
        reason = f"is for copy {record.rotation}, but sample {record.sample!r} has {len(letters)} options"
        return Problem(row.where, "index", reason)
    if rotations and str(record.rotation) not in rotations:
        reason = f"is for copy {record.rotation}, which is not a known rotation of sample {record.sample!r}"
        return Problem(row.where, "index", reason)
    shift = rotations.get(str(record.rotation), record.rotation)
    update = {"variant": f"circular-{shift}", "rotation": 0, "option_order": letters[shift:] + letters[:shift] or None}
    return Row(row.where, record.model_copy(update=update))
