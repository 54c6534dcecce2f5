"""The state of one import: its arguments, the benchmark, and what its parts have stored or will make."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db.models import Model

from bank import exposure, media, objects
from bank.database import batched, chunks
from bank.errors import BadInput
from bank.intake.imports import never
from bank.intake.imports.addressing import PendingAddresses
from bank.intake.imports.sources import PictureFolder, Source
from bank.intake.imports.stage import KEY, NUMBER, TEXT, Stage, seen
from bank.intake.imports.writer import ImportWriter, Outdated
from bank.models import Benchmark, EvaluatedModel, Sample, SampleImage
from bank.text.names import as_stored


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

    Ids of stored rows are positive. The n-th sample or response that the import itself will make has the id -n until it
    is written, so that later parts can refer to it: see ``staged_sample`` and ``staged_response``.
    """

    source: Source
    images: PictureFolder
    scratch: Callable[[], Path] | None = None  # None: a dry run
    benchmark: Benchmark | None = None
    writer: ImportWriter = field(init=False)  # set once all rows are checked
    stage: Stage = field(default_factory=lambda: Stage(never))
    pending_samples: int = 0  # samples that will be made
    # Other ways than keys to name a sample, if responses follow.
    addresses: PendingAddresses = field(default_factory=PendingAddresses)
    has_pictures: bool = False  # whether samples came with pictures
    near: tuple[set[int], set[int]] | None = None  # among older samples: new near-duplicates, and former ones
    _new_anchor: EvaluatedModel | None = None
    _opened: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        self.stage.make("staged_sample", number=KEY, key=f"{TEXT} UNIQUE", closed=NUMBER)
        key = {"sample": NUMBER, "model": TEXT, "variant": TEXT}
        self.stage.make("staged_response", primary=tuple(key), **key, number=NUMBER)
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

    def announce(self, keys: Sequence[str], closed: Sequence[int]) -> None:
        """These samples will be made, in this order; ``closed``: see ``Sample.closed``."""
        numbers = range(-self.pending_samples - 1, -self.pending_samples - len(keys) - 1, -1)
        self.stage.put("staged_sample", {"number": numbers, "key": keys, "closed": closed})
        self.pending_samples += len(keys)

    def announce_responses(self, table: str, joins: str) -> None:
        """The responses of this table will be made; remembered if a later part may refer to them."""
        if self.source.parts[-1] != "responses":
            self.stage.do(
                f"""INSERT INTO staged_response SELECT named.sample, staged.name, staged.variant,
                    (SELECT min(n) FROM {table}) - staged.n - 1 FROM {table} staged {joins}"""
            )
            self.stage.look_at("staged_response")

    def sample_ids(self, keys: Sequence[str]) -> dict[str, int]:
        """The ids of stored samples by key."""
        ids: dict[str, int] = {}
        for some in chunks(keys if self.benchmark is not None else ()):
            ids |= Sample.objects.filter(benchmark=self.benchmark, key__in=some).values_list("key", "pk")
        return ids

    def of_sample(self, key: str) -> str:
        """Joins that find the sample of this key, ``stored`` or ``pending``."""
        benchmark = self.benchmark.pk if self.benchmark else 0
        return f"""LEFT JOIN bank_sample stored ON stored.benchmark_id = {benchmark} AND stored.key = {key}
                AND {seen(Sample, "stored")}
            LEFT JOIN staged_sample pending ON pending.key = {key}"""

    def as_stored(self, model: type[Model], column: str) -> str:
        """SQL for the id of a sample or response, even if it was only pending when the rows were checked."""
        own = self.writer.reserved(model)
        return f"CASE WHEN {column} > 0 THEN {column} ELSE {own[0] - 1} - {column} END" if own else column

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
