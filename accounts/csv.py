"""CSV downloads, row by row, with cells that no spreadsheet reads as a formula."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from django.http import StreamingHttpResponse

from accounts.http import attached

FORMULA = re.compile(r"'*[=+\-@\t\r]")  # with the apostrophes that escaping puts before it


def escape(cell: str) -> str:
    """Escape a cell that a spreadsheet would read as a formula. ``unescape`` reverses it."""
    return "'" + cell if FORMULA.match(cell) else cell


def unescape(cell: str) -> str:
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) else cell


def download(name: str, head: Sequence[str], rows: Iterable[Iterable[object]]) -> StreamingHttpResponse:
    """A CSV file for the browser, sent while ``rows`` are read. Texts are escaped."""
    return attached(StreamingHttpResponse(lines(head, rows), content_type="text/csv; charset=utf-8"), name)


class _Line:
    """A file for csv.writer that returns each line."""

    def write(self, text: str) -> str:
        return text


def lines(head: Sequence[str], rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """The lines of a CSV file, texts escaped."""
    writer: Any = csv.writer(_Line(), lineterminator="\n")
    yield writer.writerow(head)
    for row in rows:
        yield writer.writerow([escape(cell) if isinstance(cell, str) else cell for cell in row])
