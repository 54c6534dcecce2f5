"""A model for tests, behind an endpoint: it knows answers, gives log-probabilities of both kinds, and has its faults.

The model writes what is likeliest, in the labels that it is asked for.
"""

import math
import re
from dataclasses import dataclass, field

from tests.judging.server import Act, Call, answer, completion, error

QUESTION = re.compile(r"question (?P<key>[\w-]+)")
OPTION = re.compile(r"^(?P<label>[A-Z])\. (?P<text>.+)$", re.MULTILINE)
PAIR = re.compile(r"(\w+) for (\w+)")


@dataclass
class Talker:
    """``shares``: by question, the probabilities of the texts of its options."""

    shares: dict[str, dict[str, float]]
    first_token: bool = True
    prompt: bool = True
    follows: bool = True  # other labels, when told to
    broken: set[str] = field(default_factory=set)  # questions that end in an error
    top: int = 20

    def __call__(self, call: Call) -> Act:
        messages = call.body["messages"]
        text = "\n".join(self._text(message) for message in messages if message["role"] != "assistant")
        if "single digit 4" in text:
            return self._probed(call)
        asked = [self._text(message) for message in messages if message["role"] == "user"]
        own = next(text for text in reversed(asked) if QUESTION.search(text))
        key = QUESTION.findall(own)[-1]
        if key in self.broken:
            return error(400)
        shares = self._labels(key, own)
        if call.body.get("prompt_logprobs") is not None:
            said = messages[-1]["content"]
            return self._spelt(said, math.log(self._share(key, shares, said)))
        if "step by step" in self._text(messages[-1]):
            return answer(f"First I look at question {key}, then I think.")
        best = max(shares, key=shares.__getitem__)
        if call.body.get("logprobs") and self.first_token:
            listed = [{"token": f" {label}", "logprob": math.log(share)} for label, share in shares.items() if share][
                : self.top
            ]
            token = {"token": f" {best}", "logprob": math.log(shares[best]), "top_logprobs": listed}
            return completion({"role": "assistant", "content": best}, logprobs_of=[token])
        return answer(best)

    def _probed(self, call: Call) -> Act:
        if call.body.get("prompt_logprobs") is not None:
            return self._spelt("4", -0.5) if self.prompt else error(400)
        if call.body.get("logprobs") and not self.first_token:
            return error(400)
        if call.body.get("logprobs"):
            tops = [{"token": "4", "logprob": -0.1}, {"token": "5", "logprob": -3.0}]
            token = {"token": "4", "logprob": -0.1, "top_logprobs": tops}
            return completion({"role": "assistant", "content": "4"}, logprobs_of=[token])
        return answer("4")

    def _text(self, message) -> str:
        content = message["content"]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)

    def _labels(self, key: str, asked: str) -> dict[str, float]:
        """The probability of each label that may be written."""
        shares = self.shares[key]
        tail = asked[asked.rindex("question") :]
        options = {match["label"]: match["text"] for match in OPTION.finditer(tail)}
        if not options:
            return shares
        new = (
            {old: label for label, old in PAIR.findall(tail.partition("In your answer write")[2])}
            if self.follows
            else {}
        )
        return {new.get(label, label): shares.get(text, 0.0) for label, text in options.items()}

    def _share(self, key: str, shares: dict[str, float], said: str) -> float:
        return shares.get(said) or self.shares[key].get(said) or 1e-6

    def _spelt(self, said: str, logp: float) -> Act:
        """As vLLM returns a prompt's tokens: here two characters each."""
        tokens = [said[at : at + 2] for at in range(0, len(said), 2)]
        rows = [None, {"1": {"logprob": -9.0, "rank": 1, "decoded_token": "assistant\n"}}]
        rows += [{"7": {"logprob": logp / len(tokens), "rank": 1, "decoded_token": token}} for token in tokens]
        return completion({"role": "assistant", "content": "."}, finish="length", prompt_logprobs=rows)
