"""The bank's tables as rows of the ``generic`` format, and tables as files."""

import csv
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from django.utils.module_loading import import_string

import bank.criteria
from accounts import audit
from accounts.csv import escape
from accounts.models import User
from accounts.rules import Viewer
from bank import media
from bank.database import batched, chunks
from bank.errors import BadInput
from bank.intake import parquet, registry
from bank.intake.formats.generic import BOOLEANS, FLOATS, INTEGERS, LISTS
from bank.models import Benchmark, Item, ItemResponse, Recipe, Response, Sample
from bank.picked import picked, present

Records = Iterator[dict[str, Any]]
Files = Iterable[tuple[str, Iterable[bytes]]]  # the name of each, and its bytes in pieces
ZIP = "application/zip"
TEXTS = (".jsonl", ".json", ".csv", ".xml", ".md")
# Every column that may be exported. A new model field is not exported until it is listed here.
VERDICT = """score choice preference situation ranking parts option extraction answer agree grade hallucination spans
    confidence reason"""
in_text = json.JSONEncoder(ensure_ascii=False).encode
COLUMNS = {
    "samples": """key instruction images question_type capability split source language hint group options answer
        criteria metadata status""".split(),
    "responses": "sample model variant text status reason option_order tokens".split(),
    "recipe_responses": """sample model recipe recipe_sha256 variant repeat turn text status reason option_order tokens
        likelihoods""".split(),
    "items": "kind sample responses".split(),
    "labels": f"""kind protocol sample responses compared annotator simulated changed_late {VERDICT} seconds comment
        flags campaign at revisions""".split(),
    "judgments": f"""kind protocol sample responses judge simulated run settings order repeat status {VERDICT}
        analysis raw prompt_tokens completion_tokens cost reported_model""".split(),
    "preferences": """prompt images chosen rejected chosen_model rejected_model sample agree against source""".split(),
    "questions": "key split instruction hint options images".split(),
}


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """Who requests a table (a person, or a command by name), which protected parts of it, and which of its rows."""

    user: User | None = None
    command: str = ""
    reason: str = ""  # why hidden text is exported; goes into the access log
    criteria: bool = False  # of samples, with their answer keys
    analyses: bool = False  # of judgments, with the raw replies: they can quote criteria
    names: bool = False  # of annotators, in place of their pseudonyms
    viewer: Viewer | None = None  # where labels leave to somebody below staff
    campaign: int | None = None  # the labels, preferences or items of this one alone
    run: int | None = None  # the judgments of this one alone
    model: str = ""  # whose scores, where a file holds those of one
    by_sample: bool = False  # verdicts on one sample follow each other


Table = Callable[[Benchmark, ExportRequest], Records]


def shapes(*, of_campaign: bool = False) -> dict[str, registry.Shape]:
    """The shapes that can be written with the installed packages; with ``of_campaign`` those of one campaign, too."""
    return {
        name: shape
        for name, shape in registry.SHAPES.items()
        if (of_campaign or not shape.of_campaign) and (parquet.available() or not shape.needs_pyarrow)
    }


def shape_for(what: str, name: str) -> registry.Shape:
    """The shape of that name. Raises BadInput where it does not hold that table, NoPyarrow."""
    shape = registry.SHAPES[name]
    if what not in shape.tables:
        raise BadInput(f"{name} is a shape for {' or '.join(shape.tables)}, not for {what}.", "shape")
    if shape.needs_pyarrow:
        parquet.load()
    return shape


def file_pieces(*, what: str, shape: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """A table as a file in one of ``registry.SHAPES``, piece by piece, in constant memory. Raises BadInput, NoPyarrow,
    both before the first piece.
    """
    chosen = shape_for(what, shape)
    if chosen.maker:
        maker: Callable[[str, Benchmark, ExportRequest], Iterator[bytes]] = import_string(chosen.maker)
        return maker(what, benchmark, asked)
    return pieces(records=records(what, benchmark=benchmark, asked=asked), what=what, shape=shape)


def records(what: str, *, benchmark: Benchmark, asked: ExportRequest) -> Records:
    """The rows of a table. Hidden text leaves only with a reason, and each page of it is logged. Raises BadInput."""
    if (asked.criteria or asked.analyses) and not asked.reason.strip():
        raise BadInput("Hidden text leaves only with a reason.", "reason")
    table: Table = _OWN.get(what) or import_string(registry.EXPORTED[what])
    rows = table(benchmark, asked)
    return noted(rows, f"{what} of {benchmark}", asked) if asked.criteria or asked.analyses else rows


def noted(rows: Records, about: str, asked: ExportRequest) -> Records:
    """The rows, of which the audit log has that they leave as soon as they do."""
    audit.record("criteria-exported", by=asked.user, command=asked.command, about=about, reason=asked.reason)
    yield from rows


def _samples(benchmark: Benchmark, asked: ExportRequest) -> Records:
    query = benchmark.samples.select_related("capability").prefetch_related("images").order_by("position", "pk")
    for page in batched(query.iterator(chunk_size=500), 500):
        hidden = _hidden(page, asked) if asked.criteria else {}
        for sample in page:
            record = _sample(sample)
            if asked.criteria:
                record |= _criteria(hidden.get(sample.pk, []))
            yield trimmed(record)


def _hidden(page: list[Sample], asked: ExportRequest) -> "dict[int, list[bank.criteria.Text]]":
    if asked.user is not None:
        return bank.criteria.for_staff(user=asked.user, samples=page, how="export", reason=asked.reason)
    ids = [sample.pk for sample in page]
    return bank.criteria.for_command(command=asked.command, sample_ids=ids, reason=asked.reason)


def log_analyses(sample_ids: list[int], asked: ExportRequest) -> None:
    """Log that what judges wrote about these samples is exported."""
    bank.criteria.log_quoted(
        user=asked.user,
        command=asked.command,
        sample_ids=sample_ids,
        how="export of analyses",
        reason=asked.reason,
    )


def _sample(sample: Sample) -> dict[str, Any]:
    names = [
        "key",
        "instruction",
        "question_type",
        "split",
        "source",
        "language",
        "hint",
        "group",
        "options",
        "metadata",
        "status",
    ]
    placed = [
        (i.position, {"file": i.path, "description": i.description, "objects": i.objects_found, "url": i.source_url})
        for i in sample.images.all()
    ]
    placed += [(i["position"], i | {"position": None, "required": False}) for i in sample.absent_images]
    images = _in_place(placed)
    path = sample.capability.path.split(" / ") if sample.capability else []
    return picked(sample, names) | {"images": images, "capability": path}


def _in_place(placed: list[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Pictures by their positions."""
    return [trimmed(image) for _, image in sorted(placed, key=lambda pair: pair[0])]


def _criteria(texts: list[bank.criteria.Text]) -> dict[str, Any]:
    names = ("key", "kind", "text", "weight", "category", "shown_to")
    answers = [text for text in texts if (text.key, text.kind, text.shown_to) == ("answer", "answer_key", "staff")]
    rows = [picked(text, names) for text in texts if text not in answers]
    return {"criteria": rows, "answer": answers[0].text if answers else ""}


ANSWER = ("variant", "text", "status", "reason", "option_order", "tokens")


def _responses(benchmark: Benchmark, asked: ExportRequest) -> Records:
    query = Response.objects.filter(sample__benchmark=benchmark).order_by("pk")
    names = {"sample__key": "sample", "model__name": "model", **{name: name for name in ANSWER}}
    for row in query.values_list(*names).iterator(chunk_size=2000):
        yield trimmed(dict(zip(names.values(), row, strict=True)))


def _recipe_responses(benchmark: Benchmark, asked: ExportRequest) -> Records:
    recipes = {recipe.pk: {"recipe": str(recipe), "recipe_sha256": recipe.sha256} for recipe in Recipe.objects.all()}
    query = Response.all_objects.filter(sample__benchmark=benchmark, recipe__in=recipes).order_by("pk")
    names = ("repeat", "turn", "likelihoods", *ANSWER)
    for recipe, sample, model, *row in query.values_list("recipe", "sample__key", "model__name", *names).iterator():
        of_all = {"sample": sample, "model": model} | recipes[recipe]
        yield trimmed(of_all | dict(zip(names, row, strict=True)))


def _items(benchmark: Benchmark, asked: ExportRequest) -> Records:
    query = Item.objects.filter(sample__benchmark=benchmark).order_by("pk")
    for page in batched(query.values_list("pk", "kind", "sample__key").iterator(chunk_size=900), 900):
        responses = refs_by_item(pk for pk, _, _ in page)
        for pk, kind, key in page:
            yield {"kind": kind, "sample": key, "responses": responses.get(pk, [])}


def questions(benchmark: Benchmark, viewer: Viewer) -> Records:
    """What a model is asked: the samples in use that the viewer may see, without anything that answers are judged by.

    Of a picture that is not stored here its address, if it has one: the name of its file may tell too much.
    """
    samples = benchmark.samples.visible_to(viewer).in_use().prefetch_related("images").order_by("position", "pk")
    for sample in samples.iterator(chunk_size=500):
        placed: list[tuple[int, dict[str, Any]]] = [(i.position, {"file": i.path}) for i in sample.images.all()]
        placed += [(image["position"], {"absent": True, "url": image.get("url")}) for image in sample.absent_images]
        images = _in_place(placed)
        names = ("key", "split", "instruction", "hint", "options")
        yield trimmed(picked(sample, names) | {"images": images})


_OWN: dict[str, Table] = {
    "samples": _samples,
    "responses": _responses,
    "recipe_responses": _recipe_responses,
    "items": _items,
}


def ref(model: str, variant: str) -> str | dict[str, str]:
    """A response as a row names it."""
    return {"model": model, "variant": variant} if variant else model


def refs_by_item(items: Iterable[int]) -> dict[int, list[str | dict[str, str]]]:
    """The responses of these items as a row names them, in canonical order, by item; one without any is left out."""
    by_item: dict[int, list[str | dict[str, str]]] = {}
    for ids in chunks(items):
        first, last = min(ids), max(ids)
        are_dense = last - first < 2 * len(ids)  # as most are; a thousand values in a condition take their time
        wanted = {"item__gte": first, "item__lte": last} if are_dense else {"item__in": ids}
        places = ItemResponse.objects.filter(**wanted).order_by("item", "position")
        for item, model, variant in places.values_list("item_id", "response__model__name", "response__variant"):
            by_item.setdefault(item, []).append(ref(model, variant))
    return by_item


def trimmed(record: dict[str, Any]) -> dict[str, Any]:
    """The record without empty values; 0 and false are not empty."""
    return {name: value for name, value in record.items() if value not in (None, "", [], {})}


def write(*, records: Records, what: str, shape: str, output: Path | None) -> int:
    """Write records as ``jsonl``, ``csv`` or ``parquet`` to a file or standard output; returns how many."""
    count = 0

    def counted() -> Records:
        nonlocal count
        for record in records:
            count += 1
            yield record

    write_pieces(made=pieces(records=counted(), what=what, shape=shape), output=output)
    return count


def write_pieces(*, made: Iterable[bytes], output: Path | None) -> None:
    """Write a file produced piece by piece to a file or standard output."""
    with _target(output) as file:
        for piece in made:
            file.write(piece)


def pieces(*, records: Records, what: str, shape: str) -> Iterator[bytes]:
    """The file, piece by piece, as a download sends it, in constant memory. Raises NoPyarrow."""
    if shape == "parquet":
        parquet.load()  # fail before a download starts
    makers: dict[str, Callable[..., Iterator[bytes]]] = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet}
    return makers[shape](records, COLUMNS[what])


def zipped(*, records: Records, shape: str, what: str = "samples") -> Iterator[bytes]:
    """A zip of samples as ``pieces`` makes them, with the pictures they name; it can be imported as it is. Of
    ``questions`` likewise, to be answered.
    """
    pictures: dict[str, None] = {}

    def noted() -> Records:
        for record in records:
            named = (image for image in record.get("images", ()) if "file" in image)
            present = (image for image in named if image.get("required", True))
            pictures.update(dict.fromkeys(image["file"] for image in present))
            yield record

    def files() -> Iterator[tuple[str, Iterable[bytes]]]:
        yield f"{what}.{shape}", pieces(records=noted(), what=what, shape=shape)
        for name in pictures:
            if (data := picture(name)) is not None:
                yield name, [data]

    return zip_of(files())


def picture(name: str) -> bytes | None:
    """The bytes of a stored picture, if its file is there."""
    try:
        return media.read(name)
    except FileNotFoundError:
        return None


def zip_of(files: Files) -> Iterator[bytes]:
    """A zip archive of these files, piece by piece. Text is compressed, pictures and Parquet are as they are."""
    file = _Pieces()
    with zipfile.ZipFile(file, "w") as archive:
        for name, made in files:
            entry = zipfile.ZipInfo(name)
            if name.endswith(TEXTS):
                entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as into:
                for piece in made:
                    into.write(piece)
                    yield file.take()
    yield file.take()


@contextmanager
def _target(output: Path | None) -> Iterator[IO[bytes]]:
    """The file appears complete or not at all."""
    if output is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    draft = output.with_name(f".{output.name}.part")
    try:
        with draft.open("wb") as file:
            yield file
        draft.replace(output)
    finally:
        draft.unlink(missing_ok=True)


def _jsonl(records: Records, columns: list[str]) -> Iterator[bytes]:
    for batch in batched(records, 500):
        lines = (in_text(present(record, columns)) for record in batch)
        yield "".join(f"{line}\n" for line in lines).encode()


def cell(name: str, value: Any) -> Any:
    """A value as one cell of a table: lists and objects as JSON text."""
    if value is None:
        return None
    if name in LISTS:
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def _csv(records: Records, columns: list[str]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for batch in batched(records, 500):
        for record in batch:
            cells = [cell(name, record.get(name)) for name in columns]
            writer.writerow([escape(value) if isinstance(value, str) else value for value in cells])
        yield text.getvalue().encode()
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode()


class _Pieces(io.RawIOBase):
    """Collects what is written until it is taken."""

    def __init__(self) -> None:
        self.held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.held.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        taken, self.held = b"".join(self.held), []
        return taken


def _parquet(records: Records, columns: list[str]) -> Iterator[bytes]:
    pa, _ = parquet.load()
    schema = pa.schema([(name, pa.type_for_alias(type_of(name, columns))) for name in columns])
    return parquet_pieces(records=records, schema=schema, value=typed, at_once=2000)


def type_of(name: str, columns: list[str]) -> str:
    """The type of one of a table's columns, as pyarrow and the Hugging Face Hub call it."""
    if "against" in columns and name in ("agree", "against"):  # of a preference, how many labels
        return "int64"
    if name in BOOLEANS and "key" not in columns:  # a sample's answer is text, a verdict's is yes or no
        return "bool"
    return "float64" if name in FLOATS else "int64" if name in INTEGERS else "string"


def typed(name: str, row: dict[str, Any]) -> Any:
    """A row's value for a column with a type: lists and objects as JSON text."""
    value = row.get(name)
    return value if name in BOOLEANS | FLOATS | INTEGERS else cell(name, value)


def parquet_pieces(
    *, records: Records, schema: Any, value: Callable[[str, dict[str, Any]], Any], at_once: int
) -> Iterator[bytes]:
    """A Parquet file, piece by piece: ``value`` gives a column's value of a row, ``at_once`` rows are a row group."""
    pa, pq = parquet.load()
    file = _Pieces()
    with pq.ParquetWriter(pa.PythonFile(file, mode="w"), schema) as writer:
        for batch in batched(records, at_once):
            columns = [[value(name, row) for row in batch] for name in schema.names]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            yield file.take()
    yield file.take()
