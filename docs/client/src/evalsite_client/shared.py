"""What both clients share: what the API gives, its errors, when a call is sent again, and boards as tables."""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import httpx
from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    import pandas as pd

Progress = Callable[[str, int, int], None]
PIECE = 8 * 2**20  # bytes of an upload sent at once
ROWS = 500  # sent at once
AGAIN = (429, 502, 503, 504)
COMING = 202  # rows over many verdicts that are being computed
LONGEST = 60.0  # seconds between two tries
ENDED = ("finished", "failed", "cancelled", "paused")


class ApiError(Exception):
    """An answer that is no success. ``fields`` holds what is wrong by field, ``detail`` where it is about none."""

    def __init__(self, response: httpx.Response) -> None:
        self.status = response.status_code
        try:
            said = response.json()
        except ValueError:
            said = {"detail": response.text[:500]}
        self.fields: dict[str, Any] = said if isinstance(said, dict) else {"detail": said}
        self.detail = str(self.fields.get("detail") or self.fields)
        super().__init__(f"{response.request.method} {response.request.url.path}: {self.status}, {self.detail}")


class NotAllowed(ApiError):
    """401 or 403: the token is unknown or has ended, or its owner may not do this."""


class Conflict(ApiError):
    """409: what is there now does not allow it."""


class UploadFailed(Exception):
    """The files cannot come in; the upload says why."""

    def __init__(self, upload: "Upload") -> None:
        self.upload = upload
        super().__init__(upload.fault or f"the upload is {upload.state}")


def error_of(response: httpx.Response) -> ApiError:
    kinds = {401: NotAllowed, 403: NotAllowed, 409: Conflict}
    return kinds.get(response.status_code, ApiError)(response)


class Given(BaseModel):
    """An object of the API; fields that this version of the client does not know are kept."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())


class Benchmark(Given):
    id: int
    slug: str
    version: str
    title: str
    visibility: str


class Upload(Given):
    """``found``: what the check found; where the state is ``mapping``, what the columns could hold (``nearest``)."""

    id: int
    name: str
    state: str
    size: int
    offset: int
    fault: str
    found: dict[str, Any]
    report: dict[str, Any]


class Campaign(Given):
    id: int
    name: str
    benchmark: str
    protocol: str
    state: str
    overlap: int


class Assignment(Given):
    """``verdicts`` says what may be answered; ``responses`` are in the order shown."""

    assignment: int
    item: int | str
    protocol: str
    sample: dict[str, Any]
    responses: list[dict[str, Any]]
    verdicts: dict[str, Any]
    lease_until: datetime | None = None


class Label(Given):
    id: int


class Run(Given):
    id: int
    kind: str
    judge: str
    benchmark: str
    state: str
    total: int | None = None
    done: int | None = None
    failed: int | None = None

    @property
    def has_ended(self) -> bool:
        return self.state in ENDED


class Submission(Given):
    id: int
    state: str


def key_of(assignment: int, verdict: dict[str, Any]) -> str:
    """The same key for the same verdict: sent twice, it is stored once."""
    return str(uuid5(NAMESPACE_URL, f"{assignment} {sorted(verdict.items())!r}"))


def pause_before(attempt: int, response: httpx.Response | None) -> float:
    """Seconds to wait before try number ``attempt``, from 1; as ``Retry-After`` says where it is given."""
    asked = response.headers.get("Retry-After", "") if response is not None else ""
    return min(float(asked) if asked.isdigit() else 0.5 * 2**attempt, LONGEST)


def files_in(path: Path) -> list[tuple[str, Path]]:
    """A file, or those below a folder, by the names they are sent under."""
    if path.is_file():
        return [(path.name, path)]
    return [(str(file.relative_to(path.parent)), file) for file in sorted(path.rglob("*")) if file.is_file()]


def piece_at(files: Sequence[tuple[str, Path]], offset: int, size: int) -> bytes:
    """So many bytes of the files one after another, from an offset on."""
    found = b""
    for _, file in files:
        length = file.stat().st_size
        if offset < length and len(found) < size:
            with file.open("rb") as source:
                source.seek(offset)
                found += source.read(size - len(found))
            offset = 0
        else:
            offset = max(0, offset - length)
    return found


def frame_of(rows: Iterable[dict[str, Any]]) -> "pd.DataFrame":
    """Rows as a table; a number ``x`` has its interval beside it in ``x_low`` and ``x_high``."""
    import pandas as pd

    table = pd.DataFrame(list(rows))
    for name in [name for name in table.columns if f"{name}_low" in table.columns]:
        ends = [name, f"{name}_low", f"{name}_high"]
        table[ends] = table[ends].astype(float)
    return table


def bars() -> Progress:
    """A progress bar for each step, by tqdm (``pip install evalsite-client[bars]``)."""
    from tqdm import tqdm

    shown: dict[str, tqdm[Any]] = {}

    def progress(step: str, done: int, total: int) -> None:
        bar = shown.setdefault(step, tqdm(desc=step, total=total))
        bar.total = total
        bar.update(done - bar.n)
        if done >= total:
            bar.close()
            shown.pop(step)

    return progress


def no_progress(step: str, done: int, total: int) -> None:
    """For calls that nobody watches."""
