"""A local model for the tutorials, answering in the forms of vLLM and of Ollama.

It stands in for one: as a judge it prefers the longer answer nine times of ten, or the shorter where the prompt says
so, and asked to add it is mostly right and
says by its log-probabilities how sure it is.
"""

import hashlib
import math
import re
from typing import Any

from tests.judging.server import Act, Call, Script, error, status

ANSWER = re.compile(r"<answer-([AB])-\w+>\n(.*?)\n</answer-", re.DOTALL)
SUM = re.compile(r"What is (\d+) \+ (\d+)\?")
OPTION = re.compile(r"^([A-D])\. (\d+)$", re.MULTILINE)


def vllm(model: str) -> Script:
    """As vLLM answers: fields of its own, null where a request did not ask for them; log-probabilities on request."""

    def script(call: Call) -> Act:
        if call.body["model"] != model:
            return error(404, kind="NotFoundError", message=f"The model `{call.body['model']}` does not exist.")
        text, tops = _reply(call)
        listed = [{"token": token, "logprob": p, "bytes": list(token.encode())} for token, p in tops]
        content = [{**listed[0], "top_logprobs": listed}] if call.body.get("logprobs") and listed else None
        message = {"role": "assistant", "content": text, "reasoning_content": None, "tool_calls": []}
        choice = {"index": 0, "message": message, "logprobs": content and {"content": content}}
        choice |= {"finish_reason": "stop", "stop_reason": None}
        return _completion(call, model, choice, prompt_logprobs=None, kv_transfer_params=None, id="chatcmpl-1")

    return script


def ollama(model: str) -> Script:
    """As Ollama answers at /v1: its own fingerprint, no log-probabilities, fields that it does not know ignored."""

    def script(call: Call) -> Act:
        if call.body["model"] != model:
            return error(404, kind="api_error", message=f'model "{call.body["model"]}" not found, try pulling it first')
        choice = {"index": 0, "message": {"role": "assistant", "content": _reply(call)[0]}, "finish_reason": "stop"}
        return _completion(call, model, choice, system_fingerprint="fp_ollama", id="chatcmpl-672")

    return script


def _completion(call: Call, model: str, choice: dict[str, Any], **own: Any) -> Act:
    usage = {"prompt_tokens": len(call.raw) // 4, "completion_tokens": 8, "total_tokens": len(call.raw) // 4 + 8}
    body = {"object": "chat.completion", "created": 1, "model": model, "choices": [choice], "usage": usage} | own
    return status(200, body, content_type="application/json")


def _reply(call: Call) -> tuple[str, list[tuple[str, float]]]:
    """What the model says, and the likeliest first tokens with their log-probabilities."""
    said = "\n".join(_text(message["content"]) for message in call.body["messages"])
    if answers := dict(ANSWER.findall(said)):
        choose = min if "The shorter answer is the better one" in said else max
        longer = choose(answers, key=lambda letter: len(answers[letter]))
        if _drawn("".join(sorted(answers.values()))) < 0.1:
            longer = "AB"[longer == "A"]
        return f"Judgement: [[{longer}]]", []
    if asked := SUM.findall(said):
        one, other = map(int, asked[-1])
        options = OPTION.findall(said)[-4:]
        sure = 0.45 + 0.5 * _drawn(f"sure {one} {other}")
        right = _drawn(f"{one} {other}") < sure
        wanted = one + other if right else one + other + 1
        shares = {letter: sure if int(number) == wanted else (1 - sure) / 3 for letter, number in options}
        best = max(shares, key=shares.__getitem__)
        tops = sorted(((letter, math.log(share)) for letter, share in shares.items()), key=lambda top: -top[1])
        return best, tops
    return "4", [("4", -0.1), ("5", -3.0)]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _drawn(text: str) -> float:
    """From 0 to 1, the same for the same text."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 2**32
