"""The state of one import: its arguments, the benchmark, and what its parts have stored or will make."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Model

from bank import exposure, media, objects
from bank.database import batched
from bank.errors import BadInput
from bank.intake.formats.seen import NameIndex
from bank.intake.imports.addressing import PendingAddresses
from bank.intake.imports.sources import PictureFolder, Source
from bank.intake.imports.writer import ImportWriter, Outdated
from bank.models import Benchmark, EvaluatedModel, Response, Sample, SampleImage
from bank.text.names import as_stored

FIRST_PENDING = -2  # and down; Python's hash of -1 is that of -2


@dataclass(kw_only=True)
class ImportOptions:
    """What may be said of an import, by a command, a page or a script. Raises BadInput.

    Samples go into the benchmark ``slug`` (its newest version, or the one named), which is created if it is new; the
    other parts alone require an existing one. ``title``, ``anchor`` and ``visibility`` apply to a new benchmark;
    ``model``, ``judge`` and ``annotator`` apply to rows that name none, and ``campaign`` says where labels go. With
    ``open_keys`` everybody sees the answer keys, references and weights of new samples: for sets whose keys are public
    anyway.
    Without ``takes_anchor`` a file does not name the model that others are compared with.
    ``untrusted`` responses are treated as submitted ones are: they may hold instructions to a judge.
    ``saw_nothing``: whoever gave the verdicts saw nothing hidden; otherwise they count as having seen all that the
    benchmark has closed.
    """

    slug: str
    version: str = ""
    title: str = ""
    anchor: str = ""
    visibility: str = ""
    model: str = ""
    judge: str = ""
    annotator: str = ""
    campaign: str = ""
    open_keys: bool = False
    untrusted: bool = False
    saw_nothing: bool = False
    takes_anchor: bool = True

    def __post_init__(self) -> None:
        try:
            validate_slug(self.slug)
        except ValidationError:
            raise BadInput(f"{self.slug!r} is not a slug: use letters, digits, - and _.") from None
        for name in ("version", "title", "anchor", "model", "judge", "annotator", "campaign"):
            setattr(self, name, as_stored(getattr(self, name)))
        for name, limit in (("slug", 80), ("version", 40), ("title", 200)):
            value = getattr(self, name)
            if len(value) > limit or not value.isprintable():
                raise BadInput(f"The {name} may have at most {limit} printable characters.")


@dataclass(kw_only=True)
class ImportContext(ImportOptions):
    """One import from its first row to its last. Raises BadInput if it has no benchmark.

    Ids of stored rows are positive. A sample, response or item that the import itself will make has a negative id until
    it is written, so that later parts can refer to it.
    """

    source: Source
    images: PictureFolder
    scratch: Callable[[], Path] | None = None  # None: a dry run
    benchmark: Benchmark | None = None
    writer: ImportWriter = field(init=False)  # set once all rows are checked
    pending_samples: int = 0  # samples that will be made
    pending_closed: bytearray = field(default_factory=bytearray)  # what of each is closed, if verdicts follow
    # Other ways than keys to name a sample, if responses follow.
    addresses: PendingAddresses = field(default_factory=PendingAddresses)
    responses: NameIndex = field(default_factory=NameIndex)  # pending ones, by sample, model and variant
    pending_responses: int = 0
    models_answering: set[str] = field(default_factory=set)  # models of pending responses
    items: NameIndex = field(default_factory=NameIndex)  # pending ones, by content hash: see bank.intake.imports.items
    pending_items: int = 0
    has_pictures: bool = False  # whether samples came with pictures
    near: tuple[set[int], set[int]] | None = None  # among older samples: new near-duplicates, and former ones
    _new_anchor: EvaluatedModel | None = None
    _opened: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        benchmarks = Benchmark.objects.filter(slug=self.slug, **({"version": self.version} if self.version else {}))
        self.benchmark = benchmarks.select_related("anchor").order_by("-pk").first()
        if self.benchmark is None and "samples" not in self.source.parts:
            raise BadInput(f"No benchmark {self.slug!r}; import its samples first.")
        if self.takes_anchor and not self.anchor and hasattr(self.source.module, "anchor"):
            self.anchor = as_stored(self.source.module.anchor(self.source.path))

    def __str__(self) -> str:
        return str(self.benchmark) if self.benchmark else f"{self.slug}@{self.version or '1'}"

    @property
    def writes(self) -> bool:
        """False for a dry run."""
        return self.scratch is not None

    @property
    def held(self) -> int:
        """What those who gave its verdicts count as having seen (``exposure.Inputs``)."""
        return exposure.NOTHING if self.saw_nothing else exposure.UNKNOWN

    @property
    def hidden_splits(self) -> list[str]:
        return self.benchmark.hidden_splits if self.benchmark else []

    @cached_property
    def stored(self) -> NameIndex:
        """The ids of the benchmark's samples by key."""
        numbers = NameIndex()
        if self.benchmark is not None:
            rows = self.benchmark.samples.order_by().values_list("key", "pk")
            pairs = list(rows.iterator(chunk_size=5000))
            numbers.add([key for key, _ in pairs], [pk for _, pk in pairs])
        return numbers

    def announce(self, keys: Sequence[str]) -> None:
        """These samples will be made, in this order."""
        start = FIRST_PENDING - self.pending_samples
        self.stored.add(keys, range(start, start - len(keys), -1))
        self.pending_samples += len(keys)

    def announce_responses(self, names: Sequence[tuple[int, str, str]]) -> None:
        """These responses (sample, model, variant) will be made; remembered if a later part may refer to them."""
        if self.source.parts[-1] != "responses":
            start = FIRST_PENDING - self.pending_responses
            self.responses.add(names, range(start, start - len(names), -1))
            self.models_answering.update(model for _, model, _ in names)
        self.pending_responses += len(names)

    def sample_ids(self, keys: Sequence[str]) -> list[int]:
        """Ids by key, 0 if there is no such sample."""
        return self.stored.find(keys)

    def stored_sample_id(self, sample: int) -> int:
        """The id of a sample, even if it was only pending when the rows were checked."""
        return sample if sample > 0 else self.writer.id_at(Sample, FIRST_PENDING - sample)

    def stored_response_id(self, response: int) -> int:
        """The same for a response."""
        return response if response > 0 else self.writer.id_at(Response, FIRST_PENDING - response)

    def expected_rows(self) -> dict[type[Model], int]:
        """The most rows that ``open`` makes."""
        return {EvaluatedModel: int(bool(self.anchor)), Benchmark: int(self.benchmark is None)}

    def open(self) -> Benchmark:
        """The benchmark to write to, created if it is new."""
        if self._opened and self.benchmark is not None:
            return self.benchmark
        self._opened = True
        if self.anchor and (self.benchmark is None or self.benchmark.anchor is None):
            model = EvaluatedModel.objects.filter(name=self.anchor).first()
            self._new_anchor = model or self.writer.make(EvaluatedModel(name=self.anchor))
        if self.benchmark is None:
            made = Benchmark(
                slug=self.slug,
                version=self.version or "1",
                title=self.title or self.slug,
                visibility=self.visibility or Benchmark.Visibility.PRIVATE,
                majority=getattr(self.source.module, "MAJORITY", Benchmark.Majority.PLURALITY),
                score_scale=getattr(self.source.module, "SCORE_SCALE", []),
                source_format=self.source.module.NAME,
                anchor=self._new_anchor,
            )
            self.benchmark = self.writer.make(made)
        self.writer.flush()
        return self.benchmark

    def folder(self, name: str) -> Path:
        """A folder that is removed after the import."""
        if self.scratch is None:
            raise ValueError("a dry run has no folder")
        path = self.scratch() / name
        path.mkdir(exist_ok=True)
        return path

    def store_pictures(self) -> None:
        """Move the pictures of written samples to where they are served from, and look for near-duplicates."""
        from bank.images import home
        from bank.samples import quality

        if not self.has_pictures:
            return
        ids = self.writer.reserved(SampleImage)
        pictures = SampleImage.objects.filter(pk__range=(ids[0], ids[-1])).order_by("pk")
        names = (home(f"{sha256}.{kind}") for sha256, kind in pictures.values_list("sha256", "kind").iterator())
        deque(objects.at_once(lambda path: media.move_in(path, home(path.name)), self.folder("ready").iterdir()), 0)
        if not all(
            objects.at_once(media.exists, names)
        ):  # it was there at the check, of an import that has failed since
            raise Outdated("a picture is gone")
        news, samples = quality.duplicate_changes(self.open()), self.writer.reserved(Sample)
        fresh = [pk for pk in sorted(news[0]) if pk in samples]  # new samples have no hint to clear
        for batch in batched(fresh, 500):
            self.writer.do(partial(quality.set_duplicate_hint, batch, ()))
        self.writer.flush()
        self.near = (news[0].difference(fresh), news[1])

    def finish(self) -> None:
        """Update existing samples and the benchmark. Runs in the last transaction."""
        from bank.samples import quality

        benchmark = self.open()
        if self.near is not None:
            quality.set_duplicate_hint(*self.near)
            quality.mark_checked(benchmark)
        if self._new_anchor and benchmark.anchor is None:
            benchmark.anchor = self._new_anchor
            benchmark.save(update_fields=["anchor"])
