"""Tables as CSV, a line at a time, in which no spreadsheet finds a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with the apostrophes that escaping puts before it


def escape(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; ``unescape`` gives it back."""
    return "'" + cell if FORMULA.match(cell) else cell


def unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def download(name: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> StreamingHttpResponse:
    """The file ``name`` for a browser, sent while ``rows`` are read; texts are escaped."""
    response = StreamingHttpResponse(_lines(head, rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class _Line:
    """What csv.writer writes to: hands each line on."""

    def write(self, text: str) -> str:
        return text


def _lines(head: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    writer: Any = csv.writer(_Line())
    yield writer.writerow(head)
    for row in rows:
        yield writer.writerow([escape(cell) if isinstance(cell, str) else cell for cell in row])
