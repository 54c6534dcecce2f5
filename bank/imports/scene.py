"""What one import is about: what it was told, the benchmark, and what its parts stored or will make."""

import os
from array import array
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType

from bank.imports.addressing import Coming
from bank.imports.seen import Numbers
from bank.models import Benchmark, EvaluatedModel

FIRST_COMING = -2  # and down; Python's hash of -1 is that of -2


@dataclass
class Scene:
    """One import from its first row to its last.

    Ids of stored rows are positive. A sample or response that the import itself will make has a negative one until
    it is written, so that later parts can speak of it.
    """

    module: ModuleType
    path: Path
    images: Path
    slug: str
    version: str = ""
    title: str = ""
    anchor: str = ""
    visibility: str = ""
    model: str = ""
    judge: str = ""
    campaign: str = ""
    scratch: Callable[[], Path] | None = None  # None: a dry run
    benchmark: Benchmark | None = None
    parts: tuple[str, ...] = ()
    coming: int = 0  # samples that will be made
    addressed: Coming = field(default_factory=Coming)  # by what else than their keys, if responses follow
    responses: Numbers = field(default_factory=Numbers)  # that will be made, by sample, model and variant
    responses_coming: int = 0
    items: Numbers = field(default_factory=Numbers)  # that will be made, by content hash: see bank.imports.items
    pictures: bool = False  # whether some wait to be moved
    pictured: bool = False  # whether samples came with pictures
    made: "array[int]" = field(default_factory=lambda: array("q"))  # their ids, once they have some

    def __str__(self) -> str:
        return str(self.benchmark) if self.benchmark else f"{self.slug}@{self.version or '1'}"

    @property
    def writes(self) -> bool:
        """False for a dry run."""
        return self.scratch is not None

    @cached_property
    def stored(self) -> Numbers:
        """The ids of the benchmark's samples by key."""
        numbers = Numbers()
        if self.benchmark is not None:
            rows = self.benchmark.samples.order_by().values_list("key", "pk")
            found = list(rows.iterator(chunk_size=5000))
            numbers.add([key for key, _ in found], [pk for _, pk in found])
        return numbers

    def announce(self, keys: Sequence[str]) -> None:
        """These samples will be made, in this order."""
        start = FIRST_COMING - self.coming
        self.stored.add(keys, range(start, start - len(keys), -1))
        self.coming += len(keys)

    def announce_responses(self, names: Sequence[Hashable]) -> None:
        """These responses (sample, model, variant) will be made; kept where a later part may speak of them."""
        if self.parts[-1] != "responses":
            start = FIRST_COMING - self.responses_coming
            self.responses.add(names, range(start, start - len(names), -1))
            self.responses_coming += len(names)

    def sample_ids(self, keys: Sequence[str]) -> list[int]:
        """Ids by key, 0 where there is no such sample."""
        return self.stored.find(keys)

    def real(self, sample: int) -> int:
        """The id of a sample that meanwhile has one."""
        return sample if sample > 0 else self.made[FIRST_COMING - sample]

    def open(self) -> Benchmark:
        """The benchmark to write to, made if it is new. Inside the transaction."""
        if self.benchmark is None:
            self.benchmark = Benchmark.objects.create(
                slug=self.slug,
                version=self.version or "1",
                title=self.title or self.slug,
                visibility=self.visibility or Benchmark.Visibility.PRIVATE,
                majority=getattr(self.module, "MAJORITY", Benchmark.Majority.PLURALITY),
                score_scale=getattr(self.module, "SCORE_SCALE", []),
                source_format=self.module.NAME,
            )
        if self.anchor and self.benchmark.anchor is None:
            self.benchmark.anchor, _ = EvaluatedModel.objects.get_or_create(name=self.anchor)
            self.benchmark.save(update_fields=["anchor"])
        return self.benchmark

    def folder(self, name: str) -> Path:
        """A folder that is removed after the import."""
        if self.scratch is None:
            raise ValueError("an import that keeps nothing has no folder")
        path = self.scratch() / name
        path.mkdir(exist_ok=True)
        return path

    def settle(self) -> None:
        """Look for near-duplicates; then move the pictures of written samples to where they are served from.

        The last thing before the commit.
        """
        from bank.images import home
        from bank.quality import flag_near

        if self.pictured:
            flag_near(self.open())
        if not self.pictures:
            return
        for entry in os.scandir(self.folder("ready")):
            target = home(entry.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(entry.path, target)
