"""Parquet files need pyarrow, which is a third the size of everything else and is not installed by default."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.http import HttpResponse

NEEDED = "Parquet needs pyarrow: `make setup EXTRAS=parquet` in a clone, or the wheel with [parquet]"


class NoPyarrow(LookupError):
    """Parquet was requested, but pyarrow is not installed."""

    def __init__(self) -> None:
        super().__init__(NEEDED)


def available() -> bool:
    return find_spec("pyarrow") is not None


def load() -> tuple[Any, Any]:
    """``pyarrow`` and ``pyarrow.parquet``, loaded on first use. Raises NoPyarrow."""
    if not available():
        raise NoPyarrow
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def refusal() -> HttpResponse:
    """The response to a request for a Parquet file that no page here offers."""
    return HttpResponse(NEEDED, content_type="text/plain; charset=utf-8", status=501)
