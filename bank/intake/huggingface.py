"""Tables as a folder that ``datasets.load_dataset`` reads: Parquet with pictures inside, and a card.

``data/TABLE.parquet`` holds the columns of the export of that table, lists and objects as JSON text; ``images`` are
structs {bytes, path}, which the features in the schema's metadata call pictures. ``README.md`` names a configuration
for each table.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from bank.intake import exports, parquet
from bank.intake.exports import COLUMNS, ExportRequest, Records, type_of, typed
from bank.intake.registry import EVERYTHING, TABLES
from bank.models import Benchmark

LOOKED_FOR = ("samples", "responses", "labels", "judgments")  # what people look for in a benchmark
IMAGES = "images"
LICENCE = re.compile(r"[a-z0-9][a-z0-9.-]*")  # as the Hub names them
AT_ONCE = 1000  # rows of a row group
PICTURED = 50  # rows of one that holds pictures


def zip_pieces(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """The folder as a zip, piece by piece. Raises BadInput, NoPyarrow."""
    return exports.zip_of(files(what, benchmark, asked))


def write_folder(what: str, benchmark: Benchmark, asked: ExportRequest, folder: Path) -> None:
    """Write the folder, new or empty. Raises BadInput, NoPyarrow, OSError."""
    for name, pieces in files(what, benchmark, asked):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        exports.write_pieces(made=pieces, output=path)


def files(what: str, benchmark: Benchmark, asked: ExportRequest) -> exports.Files:
    """The files of the folder. Hidden text stands in the table that it was asked for. Raises BadInput, NoPyarrow."""
    parquet.load()
    records = {
        table: exports.records(table, benchmark=benchmark, asked=_asked_of(table, asked)) for table in tables_of(what)
    }
    return _files(records, benchmark)


def tables_of(what: str) -> list[str]:
    """The tables of a file: one, or all that people look for."""
    return list(LOOKED_FOR) if what == EVERYTHING else [what]


def _asked_of(table: str, asked: ExportRequest) -> ExportRequest:
    """The request as it applies to one table."""
    return replace(
        asked,
        criteria=asked.criteria and table == "samples",
        analyses=asked.analyses and table == "judgments",
    )


def _files(records: dict[str, Records], benchmark: Benchmark) -> Iterator[tuple[str, Iterable[bytes]]]:
    written = []
    for table, rows in records.items():
        first = next(rows, None)
        if first is not None:
            written.append(table)
            yield place_of(table), _parquet(table, chain([first], rows))
    yield "README.md", [_card(benchmark, written).encode()]


def place_of(table: str) -> str:
    return f"data/{table}.parquet"


def _parquet(table: str, records: Records) -> Iterator[bytes]:
    pa, _ = parquet.load()
    columns = COLUMNS[table]
    features: dict[str, Any] = {name: {"dtype": type_of(name, columns), "_type": "Value"} for name in columns}
    types = {name: pa.type_for_alias(features[name]["dtype"]) for name in columns}
    if IMAGES in columns:
        features[IMAGES] = {"feature": {"_type": "Image"}, "_type": "Sequence"}
        types[IMAGES] = pa.list_(pa.struct({"bytes": pa.binary(), "path": pa.string()}))
    about = {"huggingface": json.dumps({"info": {"features": features}})}
    schema = pa.schema(list(types.items()), metadata=about)
    at_once = PICTURED if IMAGES in columns else AT_ONCE
    return exports.parquet_pieces(records=records, schema=schema, value=_value, at_once=at_once)


def _value(name: str, row: dict[str, Any]) -> Any:
    """A row's value for a column; the pictures of a sample or preference, which name them in two ways, as far as they
    are here.
    """
    if name != IMAGES:
        return typed(name, row)
    names = [image.get("file", "") if isinstance(image, dict) else image for image in row.get(IMAGES, ())]
    found = [(name, exports.picture(name)) for name in names if name]
    return [{"bytes": data, "path": PurePath(name).name} for name, data in found if data is not None]


def _card(benchmark: Benchmark, tables: list[str]) -> str:
    """The README.md of the folder: settings as YAML (JSON is YAML), then words."""
    settings: dict[str, Any] = {"pretty_name": benchmark.title, "tags": ["evalsite"]}
    identifier = benchmark.licence.strip().lower().replace(" ", "-")
    if LICENCE.fullmatch(identifier):
        settings["license"] = identifier
    settings["configs"] = [
        {"config_name": table, "data_files": [{"split": "train", "path": place_of(table)}], "default": number == 0}
        for number, table in enumerate(tables)
    ]
    front = "".join(f"{name}: {json.dumps(value, ensure_ascii=False)}\n" for name, value in settings.items())
    listed = "\n".join(f"- `{table}`: {TABLES[table]}" for table in tables)
    licence = benchmark.licence or "not stated"
    return (
        f"---\n{front}---\n\n# {benchmark.title}\n\n{benchmark.description}\n\n"
        f"Benchmark `{benchmark}`, exported from evalsite. Licence: {licence}.\n\n{listed}\n\n"
        "Lists and objects are JSON text; pictures are inside.\n"
    )
