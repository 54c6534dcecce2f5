"""How likely a model finds each answer of a pool, by the two means that endpoints have.

``first-token``: the candidates that an endpoint lists for the first token of its answer (20 at the usual ones).
``prompt``: the log-probabilities of the tokens of an answer that we put into the model's mouth (vLLM).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from typing import Any

from judging.endpoints.answers import Token

NOT_SPELT = "the tokens that the endpoint returned do not spell the answer it was given"
MARKS = " \t\r\n\u00a0\u0120\u2581"  # white space, and how tokenizers write it


class NoLikelihood(ValueError):
    """The reply does not tell it; says why."""


@dataclass(frozen=True, slots=True)
class Likelihoods:
    """The log-likelihood of each answer of a pool, None for one that was not returned, and the probability that all of
    them have together (None where that means nothing).
    """

    pool: tuple[tuple[str, float | None], ...]
    by: str
    mass: float | None
    sum: str = "total"

    @property
    def best(self) -> str:
        """The likeliest answer; of equal ones the first. Empty where none was returned: nothing is drawn at random."""
        known = [(answer, logp) for answer, logp in self.pool if logp is not None]
        return max(known, key=lambda pair: pair[1])[0] if known else ""

    def as_json(self) -> dict[str, Any]:
        return {"by": self.by, "sum": self.sum, "pool": [list(pair) for pair in self.pool], "mass": self.mass}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Likelihoods":
        pool = tuple((str(answer), None if logp is None else float(logp)) for answer, logp in value["pool"])
        return cls(pool, value["by"], value.get("mass"), value.get("sum", "total"))


def first_token_likelihoods(tokens: Sequence[Token], pool: Sequence[str]) -> Likelihoods:
    """The likelihoods of labels, from the first token of a reply that is not white space.

    The forms of a label (case, a space before it) are summed. One that is not among the candidates has none; where all
    are missing the model said something else, and the mass is 0. Raises NoLikelihood.
    """
    first = next((token for token in tokens if token.text.strip(MARKS)), None)
    if first is None:
        raise NoLikelihood("the endpoint returned no log-probabilities")
    shares = dict.fromkeys(pool, 0.0)
    by_form = {answer.casefold(): answer for answer in pool}
    for text, logp in dict(first.candidates).items():
        answer = by_form.get(text.strip(MARKS).casefold())
        if answer is not None:
            shares[answer] += exp(min(logp, 0.0))
    answers = tuple((answer, log(share) if share else None) for answer, share in shares.items())
    return Likelihoods(answers, "first-token", min(sum(shares.values()), 1.0))


def prompt_likelihood(tail: Sequence[tuple[str, float]], answer: str, *, per_token: bool) -> float:
    """The log-likelihood of an answer at the end of a prompt, summed over its tokens or divided by their number.

    A token that holds the answer's beginning and what stands before it counts as the answer's. Raises NoLikelihood.
    """
    if not tail:
        raise NoLikelihood("the endpoint returned no log-probabilities of the prompt")
    wanted = answer.strip()
    text, total, number = "", 0.0, 0
    for token, logp in reversed(tail):
        text = token + text
        total += logp
        number += 1
        if len(text.strip(MARKS)) >= len(wanted):
            break
    spelt = "".join(" " if char in "\u0120\u2581" else char for char in text).strip()
    if not spelt.endswith(wanted):
        raise NoLikelihood(NOT_SPELT)
    return total / number if per_token else total
