"""What one import is about: what it was told, the benchmark, and what its parts stored or will make."""

import os
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from types import ModuleType

from django.db.models import Model

from bank.database import batched
from bank.intake.imports.addressing import Coming
from bank.intake.imports.name_index import Numbers
from bank.intake.imports.writer import Intake, Outdated
from bank.models import Benchmark, EvaluatedModel, Response, Sample, SampleImage

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
    intake: Intake = field(init=False)  # once all rows are checked
    parts: tuple[str, ...] = ()
    coming: int = 0  # samples that will be made
    addressed: Coming = field(default_factory=Coming)  # by what else than their keys, if responses follow
    responses: Numbers = field(default_factory=Numbers)  # that will be made, by sample, model and variant
    responses_coming: int = 0
    items: Numbers = field(default_factory=Numbers)  # that will be made, by content hash: see bank.intake.imports.items
    pictured: bool = False  # whether samples came with pictures
    near: tuple[set[int], set[int]] | None = None  # near-duplicates among those that were there; no more such
    _new_anchor: EvaluatedModel | None = None
    _opened: bool = False

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
        """The id of a sample, also of one that was only coming when the rows were checked."""
        return sample if sample > 0 else self.intake.number(Sample, FIRST_COMING - sample)

    def real_response(self, response: int) -> int:
        """The same of a response."""
        return response if response > 0 else self.intake.number(Response, FIRST_COMING - response)

    def coming_rows(self) -> dict[type[Model], int]:
        """The rows that ``open`` makes, at most."""
        return {EvaluatedModel: int(bool(self.anchor)), Benchmark: int(self.benchmark is None)}

    def open(self) -> Benchmark:
        """The benchmark to write to, made if it is new."""
        if self._opened and self.benchmark is not None:
            return self.benchmark
        self._opened = True
        if self.anchor and (self.benchmark is None or self.benchmark.anchor is None):
            found = EvaluatedModel.objects.filter(name=self.anchor).first()
            self._new_anchor = found or self.intake.make(EvaluatedModel(name=self.anchor))
        if self.benchmark is None:
            made = Benchmark(
                slug=self.slug,
                version=self.version or "1",
                title=self.title or self.slug,
                visibility=self.visibility or Benchmark.Visibility.PRIVATE,
                majority=getattr(self.module, "MAJORITY", Benchmark.Majority.PLURALITY),
                score_scale=getattr(self.module, "SCORE_SCALE", []),
                source_format=self.module.NAME,
                anchor=self._new_anchor,
            )
            self.benchmark = self.intake.make(made)
        self.intake.flush()
        return self.benchmark

    def folder(self, name: str) -> Path:
        """A folder that is removed after the import."""
        if self.scratch is None:
            raise ValueError("an import that keeps nothing has no folder")
        path = self.scratch() / name
        path.mkdir(exist_ok=True)
        return path

    def settle(self) -> None:
        """Move the pictures of written samples to where they are served from, and look for near-duplicates."""
        from bank.images import home
        from bank.samples import quality

        if not self.pictured:
            return
        for entry in os.scandir(self.folder("ready")):
            target = home(entry.name)
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(entry.path, target)
        own = self.intake.own(SampleImage)
        pictures = SampleImage.objects.filter(pk__range=(own[0], own[-1])).order_by("pk")
        for sha256, kind in pictures.values_list("sha256", "kind").iterator():
            if not home(f"{sha256}.{kind}").exists():  # it was there at the check, of an import that failed since
                raise Outdated("a picture is gone")
        news, samples = quality.near_news(self.open()), self.intake.own(Sample)
        fresh = [pk for pk in sorted(news[0]) if pk in samples]  # new ones bear no hint for nothing
        for some in batched(fresh, 500):
            self.intake.do(partial(quality.mark_near, some, ()))
        self.intake.flush()
        self.near = (news[0].difference(fresh), news[1])

    def show(self) -> None:
        """What changes of samples and the benchmark that were there. In the last transaction."""
        from bank.samples import quality

        benchmark = self.open()
        if self.near is not None:
            quality.mark_near(*self.near)
            quality.looked_at(benchmark)
        if self._new_anchor and benchmark.anchor is None:
            benchmark.anchor = self._new_anchor
            benchmark.save(update_fields=["anchor"])
