"""What calls cost, and whether the budget has room for one more."""

from judging.endpoints.answers import Answer, Outcome
from judging.models import Judge, Run

# A prompt with a picture and a short vote, until replies tell what calls really take.
ORDINARY_PROMPT, ORDINARY_REPLY = 2_000, 300


def price(
    judge: Judge, prompt_tokens: int | None, completion_tokens: int | None, cached_tokens: int = 0
) -> float | None:
    """What tokens cost in US dollars by the judge's prices; None without prices or without a count.

    ``cached_tokens``: of the prompt's, those that the endpoint had read before; they may have a price of their own.
    """
    if judge.price_in is None or judge.price_out is None or prompt_tokens is None:
        return None
    cached = min(cached_tokens, prompt_tokens) if judge.price_cached is not None else 0
    sent = (prompt_tokens - cached) * judge.price_in + cached * (judge.price_cached or 0.0)
    return (sent + (completion_tokens or 0) * judge.price_out) / 1e6


def typical_call(run: Run) -> float:
    """What one call takes, in US dollars: the run's mean so far, else an ordinary prompt's; 0 without prices.

    The mean is that of answers: calls that cost nothing (a rate limit) are no part of it, lost ones do not change it.
    """
    if run.priced and run.spent:
        return run.spent / run.priced
    return price(run.judge, ORDINARY_PROMPT, ORDINARY_REPLY) or 0.0


class Spending:
    """The money of one run: what it has spent, restarts and removed failures included, and what calls take.

    Each worker knows of the others what they last committed, so that together they overspend by no more than the calls
    that were begun since.
    """

    def __init__(self, run: Run) -> None:
        self._judge = run.judge
        self.budget = run.budget
        self.spent = run.spent
        self.typical = typical_call(run)
        self.elsewhere = 0  # calls in flight of other workers, at their last commits

    def pay(self, answer: Answer) -> tuple[float | None, float]:
        """What a call cost as far as its tokens tell, and what to count for it: a typical call where they do not."""
        cost = price(self._judge, answer.prompt_tokens, answer.completion_tokens, answer.cached_tokens)
        if cost is not None:
            self.typical += 0.1 * (cost - self.typical)
        counted = cost if cost is not None else self.typical if answer.outcome == Outcome.OK else 0.0
        self.spent += counted
        return cost, counted

    def see(self, *, spent: float, budget: float | None, elsewhere: int) -> None:
        """What the run says after a commit: other workers spend, too, and somebody may have raised the budget."""
        self.spent, self.budget, self.elsewhere = spent, budget, elsewhere

    def has_room(self, in_flight: int) -> bool:
        """Whether one more call fits beside those in flight."""
        return self.budget is None or self.spent + (in_flight + self.elsewhere + 1) * self.typical <= self.budget
