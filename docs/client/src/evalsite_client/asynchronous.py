"""The async client. The sync one is made from this file: ``python docs/client/make_sync.py``."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import httpx

from evalsite_client.shared import (
    AGAIN,
    COMING,
    PIECE,
    ROWS,
    Assignment,
    Benchmark,
    Campaign,
    Label,
    Progress,
    Run,
    Submission,
    Upload,
    UploadFailed,
    error_of,
    files_in,
    frame_of,
    key_of,
    no_progress,
    pause_before,
    piece_at,
)

if TYPE_CHECKING:
    import pandas as pd


class AsyncClient:
    """A connection to an installation. Calls that can be repeated are sent again where the server is busy or away.

    ``address`` is where evalsite runs, ``token`` one of the page of tokens; ``progress(step, done, total)`` is told how
    far long steps are (``bars()`` draws it). Raises ApiError, NotAllowed, Conflict, and httpx's errors of connections
    when ``tries`` are used up.
    """

    def __init__(
        self, address: str, token: str, *, tries: int = 6, timeout: float = 60, progress: Progress = no_progress
    ) -> None:
        self.tries, self.progress = tries, progress
        headers = {"Authorization": f"Token {token}"}
        self.http = httpx.AsyncClient(base_url=f"{address.rstrip('/')}/api/v1/", headers=headers, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self.http.aclose()

    # ---- calls ----

    async def call(self, method: str, path: str, *, repeats: bool = True, **more: Any) -> httpx.Response:
        """One call below /api/v1/. ``repeats``: whether sending it again does no harm. Raises ApiError."""
        for attempt in range(1, self.tries + 1):
            response = None
            try:
                response = await self.http.request(method, path, **more)
            except httpx.TransportError:
                if not repeats or attempt == self.tries:
                    raise
            if response is not None and (response.status_code not in AGAIN or not repeats or attempt == self.tries):
                if response.is_success:
                    return response
                raise error_of(response)
            await asyncio.sleep(pause_before(attempt, response))
        raise AssertionError("every try returns or raises")

    async def get(self, path: str, **parameters: Any) -> Any:
        """The JSON of a GET, as soon as it is there."""
        while (response := await self.call("GET", path, params=_given(parameters))).status_code == COMING:
            await asyncio.sleep(pause_before(1, response))
        return response.json()

    async def post(self, path: str, body: Any = None, *, repeats: bool = True) -> Any:
        """The JSON of a POST; None where it gives none."""
        response = await self.call("POST", path, json={} if body is None else body, repeats=repeats)
        return response.json() if response.content else None

    async def listed(self, path: str, **filters: Any) -> AsyncIterator[dict[str, Any]]:
        """Every object of a list, page by page."""
        page = await self.get(path, **filters)
        while True:
            for one in page["results"]:
                yield one
            if not page["next"]:
                return
            page = (await self.call("GET", page["next"])).json()

    # ---- data in ----

    async def make_benchmark(self, slug: str, title: str, **facts: Any) -> Benchmark:
        return Benchmark(**await self.post("benchmarks/", {"slug": slug, "title": title} | facts, repeats=False))

    async def benchmark(self, slug: str, version: str = "") -> Benchmark:
        """The benchmark of this name, its newest version if none is said. Raises LookupError."""
        found = [one async for one in self.listed("benchmarks/", **_given({"slug": slug, "version": version}))]
        if not found:
            raise LookupError(f"there is no benchmark {slug!r}")
        return Benchmark(**found[-1])

    async def add_rows(self, part: str, benchmark: str, rows: Iterable[dict[str, Any]]) -> dict[str, int]:
        """Bring ``samples`` or ``responses`` in, as rows of the generic format; what was made, by noun.

        Sent in parts, each of which comes in whole or not at all. Rows that are there already change nothing.
        """
        waiting, made = list(rows), dict[str, int]()
        for start in range(0, len(waiting), ROWS):
            some = waiting[start : start + ROWS]
            answer = await self.post(f"{part}/", {"benchmark": benchmark, "rows": some})
            for noun, count in answer["made"].items():
                made[noun] = made.get(noun, 0) + count
            self.progress(part, start + len(some), len(waiting))
        return made

    async def upload(
        self,
        path: str | Path,
        *,
        map: dict[str, Any] | None = None,
        confirm: bool = True,
        poll: float = 1.0,
        **choices: Any,
    ) -> Upload:
        """Send a file or a folder, have it checked and brought in. Goes on where a broken connection stopped.

        ``map`` says what the columns of a table hold, where no format knows it; without one the nearest is taken if it
        lacks nothing. ``choices`` are those of the page: benchmark, version, title, visibility, parts, skip_bad,
        saw_nothing, model, judge ... With ``confirm`` false it ends after the check. Raises UploadFailed.
        """
        files = files_in(Path(path))
        asked = {"files": [{"name": name, "size": file.stat().st_size} for name, file in files]}
        upload = Upload(**await self.post("uploads/", asked, repeats=False))
        while upload.state == "receiving":
            piece = piece_at(files, upload.offset, PIECE)
            headers = {"Upload-Offset": str(upload.offset), "Content-Type": "application/offset+octet-stream"}
            response = await self.call("PATCH", f"uploads/{upload.id}/", content=piece, headers=headers)
            upload = Upload(**response.json())
            self.progress("upload", upload.offset, upload.size)
        upload = await self._settled(upload, poll)
        if upload.state == "mapping":
            upload = Upload(**await self.post(f"uploads/{upload.id}/map/", {"map": map or _nearest(upload)}))
            upload = await self._settled(upload, poll)
        while confirm and upload.state == "checked":
            upload = Upload(**await self.post(f"uploads/{upload.id}/confirm/", choices))
            upload = await self._settled(upload, poll)
        if upload.state not in ("done", "checked"):
            raise UploadFailed(upload)
        return upload

    async def _settled(self, upload: Upload, poll: float) -> Upload:
        """The upload once no worker has it."""
        while upload.state in ("received", "checking", "importing"):
            await asyncio.sleep(poll)
            upload = Upload(**await self.get(f"uploads/{upload.id}/"))
        return upload

    async def make_items(self, benchmark: str, kind: str = "pair", **plan: Any) -> int:
        """Make the items that judges and people give verdicts on; returns how many are new."""
        made: int = 0
        after: int | None = None
        while True:
            asked = {"benchmark": benchmark, "kind": kind} | plan | ({"after": after} if after is not None else {})
            answer = await self.post("items/", asked)
            made, after = made + answer["made"], answer["after"]
            if after is None:
                return made

    # ---- people ----

    async def make_campaign(self, name: str, benchmark: str, protocol: str, **settings: Any) -> Campaign:
        asked = {"name": name, "benchmark": benchmark, "protocol": protocol} | settings
        return Campaign(**await self.post("campaigns/", asked, repeats=False))

    async def campaign(self, name: str) -> Campaign:
        return Campaign(**await self.get(f"campaigns/{name}/"))

    async def set_state(self, campaign: str, state: str, *, again: bool = False) -> Campaign:
        """``open``, ``paused`` or ``closed``."""
        return Campaign(**await self.post(f"campaigns/{campaign}/state/", {"state": state, "again": again}))

    async def assignments(self, campaign: str) -> AsyncIterator[Assignment]:
        """What the token's owner is to label, one after another: label each before the next is asked for."""
        while True:
            given = await self.post(f"campaigns/{campaign}/next/")
            if given is None:
                return
            yield Assignment(**given)

    async def label(self, assignment: Assignment, **verdict: Any) -> Label:
        """Store a verdict as ``verdicts`` of the assignment says. The same again is stored once."""
        key = key_of(assignment.assignment, verdict)
        asked = {"assignment": assignment.assignment, "idempotency_key": key} | verdict
        return Label(**await self.post("labels/", asked))

    # ---- judges ----

    async def run(
        self, judge: str, benchmark: str, protocol: str, *, wait: bool = True, poll: float = 2.0, **more: Any
    ) -> Run:
        """Start a run, or go on with the one that does the same; with ``wait`` until it has ended or paused.

        ``more``: settings, limit, budget, kind, new ... as the API takes them.
        """
        asked = {"judge": judge, "benchmark": benchmark, "protocol": protocol} | more
        run = Run(**await self.post("runs/", asked))
        while wait and not run.has_ended:
            await asyncio.sleep(poll)
            run = Run(**await self.get(f"runs/{run.id}/"))
            self.progress("judge", (run.done or 0) + (run.failed or 0), run.total or 0)
        return run

    # ---- numbers ----

    async def board(self, name: str, benchmark: str, **view: Any) -> list[dict[str, Any]]:
        """The rows of a board (docs/rows.md): ``models``, ``judges``, ``agreement``, ``bias``, ``compare`` ..."""
        rows: list[dict[str, Any]] = await self.get(f"leaderboards/{name}/", benchmark=benchmark, **view)
        return rows

    async def frame(self, name: str, benchmark: str, **view: Any) -> "pd.DataFrame":
        """The same as a pandas table; a number ``x`` has its 95% interval in ``x_low`` and ``x_high``."""
        return frame_of(await self.board(name, benchmark, **view))

    # ---- answers sent in, data out ----

    async def submit(self, benchmark: str, model: str, path: str | Path, **more: Any) -> Submission:
        """Send a model's answers in. Raises ApiError with every fault of the file."""
        with Path(path).open("rb") as file:
            form = {"benchmark": benchmark, "model": model} | more
            response = await self.call("POST", "submissions/", data=form, files={"file": file}, repeats=False)
        return Submission(**response.json())

    async def export(
        self, benchmark: str, path: str | Path, *, what: str = "samples", shape: str = "jsonl", later: bool = False
    ) -> Path:
        """Write a table of a benchmark to a file, which appears whole or not at all. A large one is made by a worker
        first, or any where ``later`` is said.
        """
        found, target = await self.benchmark(*benchmark.split("@", 1)), Path(path)
        draft = target.with_name(f".{target.name}.part")
        asked: dict[str, Any] = {"json": {"what": what, "shape": shape, "later": later}}
        method, place, comes = "POST", f"benchmarks/{found.id}/export/", True
        try:
            while comes:
                async with self.http.stream(method, place, **asked) as response:
                    if not response.is_success:
                        await response.aread()
                        raise error_of(response)
                    if comes := response.status_code == COMING:
                        method, place, asked = "GET", str(response.url.join(response.headers["Location"])), {}
                        await asyncio.sleep(pause_before(1, response))
                        continue
                    with draft.open("wb") as file:
                        async for piece in response.aiter_bytes():
                            file.write(piece)
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)
        return target


def _given(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value not in (None, "")}


def _nearest(upload: Upload) -> dict[str, Any]:
    """The map that comes nearest, if it lacks nothing. Raises UploadFailed."""
    nearest = dict(upload.found["nearest"][0])
    if nearest.pop("missing"):
        raise UploadFailed(upload)
    return nearest
