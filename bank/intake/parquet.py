"""Parquet files need pyarrow, which weighs as much as a third of all else and is not installed by itself."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.http import HttpResponse

NEEDED = "Parquet needs pyarrow: pip install --require-hashes -r requirements/parquet.txt"


class NoPyarrow(LookupError):
    """A Parquet file is to be read or written, and pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__(NEEDED)


def available() -> bool:
    return find_spec("pyarrow") is not None


def load() -> tuple[Any, Any]:
    """``pyarrow`` and ``pyarrow.parquet``, loaded by the first who needs them. Raises NoPyarrow."""
    if not available():
        raise NoPyarrow
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def refusal() -> HttpResponse:
    """What somebody gets who asks for a Parquet file that nothing here offers."""
    return HttpResponse(NEEDED, content_type="text/plain; charset=utf-8", status=501)
