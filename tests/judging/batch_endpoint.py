"""The batch interface of an OpenAI-compatible endpoint, for tests: files, batches, results."""

import json
from collections.abc import Callable
from typing import Any

from tests.judging.server import Act, Call, status

Line = dict[str, Any]  # a request of a batch


def said(text: str, *, model: str = "test-vl-1") -> dict[str, Any]:
    """The response to a request: a completion that says this."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1000, "completion_tokens": 10}
    return {"status_code": 200, "body": {"model": model, "choices": [choice], "usage": usage}}


class BatchEndpoint:
    """``reply`` gives the response to one line; None leaves it unanswered. A batch ends after ``patience`` looks."""

    def __init__(self, reply: Callable[[Line], dict[str, Any] | None], *, patience: int = 1) -> None:
        self.reply, self.patience = reply, patience
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.lines: list[Line] = []  # of all batches
        self.after_making: Callable[[], None] = lambda: None

    def __call__(self, call: Call) -> Act:
        path = call.path.removeprefix("/v1").partition("?")[0]
        parts = path.strip("/").split("/")
        if path == "/files":
            name = f"file-{len(self.files)}"
            self.files[name] = call.raw.split(b"\r\n\r\n")[-1].rpartition(b"\r\n--")[0]
            for part in call.raw.split(b"\r\n--"):
                if b'name="file"' in part:
                    self.files[name] = part.partition(b"\r\n\r\n")[2]
            return status(200, {"id": name, "object": "file"})
        if path == "/batches" and call.body:
            lines = [json.loads(line) for line in self.files[call.body["input_file_id"]].splitlines() if line]
            self.lines += lines
            batch = {"id": f"batch-{len(self.batches)}", "looks": 0, "status": "in_progress", "lines": lines}
            self.batches[batch["id"]] = batch | {"metadata": call.body["metadata"]}
            self.after_making()
            return status(200, self._shown(batch["id"]))
        if path == "/batches":
            return status(200, {"data": [self._shown(name) for name in self.batches]})
        if parts[0] == "batches":
            batch = self.batches[parts[1]]
            if parts[-1] == "cancel":
                batch["status"] = "cancelled"
            batch["looks"] += 1
            if batch["looks"] > self.patience and batch["status"] == "in_progress":
                self._end(batch)
            return status(200, self._shown(parts[1]))
        if parts[-1] == "content":
            return status(200, self.files[parts[1]])
        return status(404, {"error": {"message": "no"}})

    def _end(self, batch: dict[str, Any]) -> None:
        answered = [(line["custom_id"], self.reply(line)) for line in batch["lines"]]
        rows = [{"custom_id": name, "response": one, "error": None} for name, one in answered if one]
        batch["output_file_id"] = f"output-{batch['id']}"
        self.files[batch["output_file_id"]] = b"\n".join(json.dumps(row).encode() for row in rows[::-1])
        batch["status"] = "completed"

    def _shown(self, name: str) -> dict[str, Any]:
        return {key: value for key, value in self.batches[name].items() if key not in ("lines", "looks")}
