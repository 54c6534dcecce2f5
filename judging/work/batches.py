"""Sessions that hand calls in by an endpoint's batch interface: files of requests, polled until they are done.

The run's row keeps which batches are out, so that any worker collects them. What a batch did not answer is missing, and
goes into the next one. A batch is written down before it is handed in, under a name of its own: a worker killed in
between is followed by one that finds it by that name and does not hand it in again.
"""

import asyncio
import secrets
from typing import Any

import orjson
from django.utils import timezone

from accounts.loop import db
from judging.endpoints.answers import Answer, Failed, Outcome, Received, completed, refused
from judging.models import Run
from judging.work import run_kinds, store
from judging.work.results import PendingCall
from judging.work.session import Session

CALLS = 50_000  # of one batch, as OpenAI has it
BYTES = 48_000_000  # of its file, which is held in memory; OpenAI takes 200 MB
OUT = 8  # batches at once
RESULT_LIMIT = 400_000_000  # bytes of results
TRANSFER = 600.0  # seconds that a file may take
ENDED = {"completed", "failed", "expired", "cancelled"}
NAME = "evalsite"  # under which a batch is found again


class Batches(Session):
    def __init__(self, run: Run, **rest: Any) -> None:
        super().__init__(run, **rest)
        self.out: list[dict[str, Any]] = [dict(one) for one in run.batches]
        self.attempts: dict[str, PendingCall] = {}  # of jobs that a batch failed, by name

    def in_flight(self) -> int:
        return sum(int(one["number"]) for one in self.out)

    def live(self) -> dict[str, Any]:
        return super().live() | {"batches": len(self.out)}

    async def _next_page(self) -> run_kinds.Page | None:
        """One worker at a time is at such a run: it need claim nothing."""
        return await db(self.kind.page, after=self.after)

    async def calling(self) -> None:
        # Which jobs are out is not known one by one: what is missing is read when nothing is out.
        self.exhausted = bool(self.out)
        for one in [one for one in self.out if not one["id"]]:
            await self._found_again(one)
        while self.ending is None:
            if self.stop.is_set():
                self.ending = self.stopped
                return
            await self._hand_in()
            if self.ending is None and not self.out:
                await self._finish()
                continue
            for one in list(self.out):
                if self.ending is None:
                    await self._look(one)
            if self.out and self.ending is None:
                await self._rest(self.patience.poll)
        await db(self.run.refresh_from_db, fields=["state"])
        if self.run.state == Run.State.CANCELLED:
            for one in self.out:
                await self._send("POST", f"/batches/{one['id']}/cancel", b"{}")

    # -- handing in ---------------------------------------------------------------------------------------------

    async def _hand_in(self) -> None:
        """Hand in what is missing and not out yet, as far as the budget reaches."""
        while self.ending is None and not self.exhausted and len(self.out) < OUT:
            lines, number = await self._lines()
            await self._flush()
            if not number:
                if not self.exhausted and not self.out and self.ending is None:
                    self.end_without_budget()
                return
            batch = {"id": "", "name": secrets.token_hex(8), "number": number, "at": timezone.now().isoformat()}
            await self._note([*self.out, batch])
            await self._submit(batch, b"".join(lines))

    async def _lines(self) -> tuple[list[bytes], int]:
        """The next requests, a line each. Jobs that need no call are done on the way."""
        lines: list[bytes] = []
        held = 0
        while not self.exhausted and self.ending is None:
            if not self.ready:
                await self._fetch()
                continue
            room = self.spending.has_room(self.in_flight() + len(lines))
            if not room or len(lines) >= CALLS or held >= BYTES:
                break
            pending = self.ready.popleft()
            prepared = await self._prepared(pending)
            if prepared is None:
                continue
            head = orjson.dumps({"custom_id": self._name(pending.job), "method": "POST", "url": "/v1/chat/completions"})
            lines.append(head[:-1] + b',"body":' + prepared[1] + b"}\n")
            held += len(lines[-1])
        return lines, len(lines)

    def _name(self, job: Any) -> str:
        """How a batch names a job: by what makes it one of the run."""
        return "-".join(str(value) for value in (self.run.pk, *self.kind.key(job).values()))

    async def _submit(self, one: dict[str, Any], content: bytes) -> None:
        file = await self._send(
            "POST", "/files", form={"purpose": "batch"}, files={"file": (f"{one['name']}.jsonl", content)}
        )
        if file is None:
            await self._note([other for other in self.out if other is not one])
            return
        body = {
            "input_file_id": file.get("id"),
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "metadata": {NAME: one["name"]},
        }
        made = await self._send("POST", "/batches", orjson.dumps(body))
        if made is None or not isinstance(made.get("id"), str):
            self.end(Run.State.PAUSED, f"{self.judge.name} took no batch. Resume to try again.")
            return
        one["id"] = made["id"]
        await self._note(self.out)

    async def _found_again(self, one: dict[str, Any]) -> None:
        """A worker was killed while it handed a batch in: find it, or forget it."""
        listed = await self._send("GET", "/batches?limit=100")
        for batch in (listed or {}).get("data") or ():
            if isinstance(batch, dict) and (batch.get("metadata") or {}).get(NAME) == one["name"]:
                one["id"] = batch["id"]
        if self.ending is None:
            await self._note([other for other in self.out if other["id"]])
            self.exhausted = bool(self.out)

    # -- collecting ---------------------------------------------------------------------------------------------

    async def _look(self, one: dict[str, Any]) -> None:
        batch = await self._send("GET", f"/batches/{one['id']}")
        if batch is None:
            return
        if not isinstance(batch.get("status"), str):
            self.end(Run.State.PAUSED, f"{self.judge.at_host} does not say what became of its batch.")
        if batch.get("status") not in ENDED:
            return
        results: dict[str, Answer] = {}
        for file in (batch.get("output_file_id"), batch.get("error_file_id")):
            if isinstance(file, str) and file:
                received = await self._received("GET", f"/files/{file}/content", limit=RESULT_LIMIT)
                if received is None:
                    return
                results |= _results(received.content)
        answered = bool(results)
        await self._take_all(results)
        await self._flush()
        if self.ending is None:
            await self._note([other for other in self.out if other is not one])
            if not self.out:  # what was not answered is missing, and handed in again
                self.after, self.exhausted = 0, False
                self.ready.clear()
        if not answered:
            words = f"the batch {one['id']} ended as {batch['status']} and brought nothing. Look there, then resume."
            self.pause(words)

    async def _take_all(self, results: dict[str, Answer]) -> None:
        """Store what a batch brought: its jobs are among those that are missing."""
        after, at = 0, timezone.now()
        while results and self.ending is None and (page := await db(self.kind.page, after=after)):
            after = page.last
            for job in page.jobs:
                name = self._name(job)
                answer = results.pop(name, None)
                if answer is None or self.ending is not None:
                    continue
                pending = self.attempts.setdefault(name, PendingCall(job))
                await self.take(pending, self.kind.request(job, template=self.template), at, answer)
            self.later.clear()  # the next batch has them
            await self._flush()

    # -- requests -----------------------------------------------------------------------------------------------

    async def _note(self, out: list[dict[str, Any]]) -> None:
        """Write down which batches are out."""
        self.out = out
        await db(store.note_batches, run=self.run, batches=out)

    async def _send(self, method: str, path: str, body: bytes | None = None, **form: Any) -> dict[str, Any] | None:
        received = await self._received(method, path, body, **form)
        try:
            listed = orjson.loads(received.content) if received else None
        except ValueError:
            listed = None
        return listed if isinstance(listed, dict) else None

    async def _received(self, method: str, path: str, body: bytes | None = None, **rest: Any) -> Received | None:
        """One request, pending again while its faults pass; None when the session ends over it."""
        passing = False
        for number in range(self.patience.failures):
            try:
                received = await self.endpoint.send(method, path, body, key=self.key, timeout=TRANSFER, **rest)
            except Failed as failed:
                words, passing = failed.words, True
            else:
                if received.status < 300:
                    return received
                answer = refused(received.status, received.content, received.headers)
                words, passing = answer.words, answer.outcome in (Outcome.RATE, Outcome.TRANSIENT)
            if not passing or self.ending is not None:
                break
            await asyncio.sleep(self.patience.wait_after(number + 1))
        if passing:
            self.wait(f"{words}, asked for a batch")
        self.pause(f"{words}, asked for a batch.")
        return None


def _results(content: bytes) -> dict[str, Answer]:
    """The answers in a file of results, by the names of their jobs; lines that are none are left out."""
    found: dict[str, Answer] = {}
    for line in content.splitlines():
        try:
            row = orjson.loads(line)
        except ValueError:
            continue
        name = row.get("custom_id") if isinstance(row, dict) else None
        if not isinstance(name, str):
            continue
        response = row.get("response") if isinstance(row.get("response"), dict) else {}
        status, body = response.get("status_code"), orjson.dumps(response.get("body"))
        if status == 200:
            found[name] = completed(body)
        elif type(status) is int:
            found[name] = refused(status, body, {})
        else:
            found[name] = Answer(Outcome.TRANSIENT, words="the batch ended before it")
    return found
