"""The lines of the log: when, how grave, what, who says so, and of which request, run,
judgment, item or upload."""

import json
import logging
from contextvars import ContextVar
from datetime import UTC, datetime

request_id = ContextVar("request_id", default="")
IDS = ("request_id", "run", "judgment", "item", "upload")  # given as ``extra``, but the first


def complete(record: logging.LogRecord) -> bool:
    """Add to a record what its line says beside the message."""
    record.at = datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    record.level = record.levelname.lower()
    record.request_id = request_id.get()
    record.ids = "".join(f" {name}={value}" for name, value in _ids(record).items())
    return True


def _ids(record: logging.LogRecord) -> dict[str, str | int]:
    found = {name: getattr(record, name, "") for name in IDS}
    return {name: value for name, value in found.items() if value}


class JSONFormatter(logging.Formatter):
    """An object a line: at, level, logger, message, then the ids, and the traceback as ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        complete(record)
        said = vars(record)
        line = {"at": said["at"], "level": said["level"], "logger": record.name, "message": record.getMessage()}
        line |= _ids(record)
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def briefly(record: logging.LogRecord) -> bool:
    """Requests under an unknown host name, and those that are refused, take a line each: 503 the one that gives its
    reason, and no traceback below 500.
    """
    from bank.errors import outage

    status = getattr(record, "status_code", 0)
    if status == 503:
        if not record.exc_info:  # whoever answered it has said why
            return False
        record.msg, record.args = "%s %s", (vars(record)["request"].path, outage(record.exc_info[1]))
    if status < 500 or status == 503:
        record.exc_info = None
    return True
