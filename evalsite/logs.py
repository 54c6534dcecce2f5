"""What each line of the log says: when, how grave, what, who says so, and of which request."""

import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id = ContextVar("request_id", default="")


def complete(record: logging.LogRecord) -> bool:
    """Add to a record what its line says beside the message."""
    at, request = datetime.fromtimestamp(record.created, UTC), request_id.get()
    record.at = at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    record.level = record.levelname.lower()
    record.request = f" request_id={request}" if request else ""
    return True
