"""Reads for the pages of uploads."""

from typing import Any

from django.db import connection

from bank.models import Upload
from bank.uploads import staging

MANY = 300_000  # rows: SQLite takes some ten seconds to write them, and lets nobody else write meanwhile


def progress(upload: Upload) -> dict[str, Any]:
    """How far the worker is: ``{doing, phase, part, rows, of, percent}``; ``held`` says whether one is at it."""
    if not upload.is_worked:
        return {}
    told = staging.told(upload, "progress.json") or {}
    rows, total = told.get("rows", 0), told.get("of") or 0
    held, cancelling = staging.is_held(upload), staging.asked_to_cancel(upload)
    return told | {
        "doing": "Cancelling" if cancelling else _doing(upload, held=held, phase=told.get("phase")),
        "held": held,
        "cancelling": cancelling,
        "percent": min(100.0, 100 * rows / total) if total else None,
    }


def _doing(upload: Upload, *, held: bool, phase: str | None) -> str:
    importing = upload.state == Upload.State.IMPORTING
    if not held:
        return "Waiting to be brought in" if importing else "Waiting to be checked"
    if phase in ("writing", "unpacking"):
        return phase.capitalize()
    return "Reading once more" if importing else "Checking every row"


def preview(upload: Upload) -> list[dict[str, Any]]:
    """The first samples as they will look."""
    return staging.told(upload, "preview.json") or []


def others_wait(upload: Upload) -> bool:
    """Whether people who label would notice the import."""
    rows = sum(part["rows"] - part["unchanged"] for part in upload.found.get("counted", []))
    return connection.vendor == "sqlite" and rows > MANY
