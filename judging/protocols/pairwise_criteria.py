"""Pairwise voting with per-sample criteria, as MLLM-Bench does it; the wording of the prompts is our own."""

from collections.abc import Mapping
from typing import Any

from bank.models import Item
from judging.protocols.base import Material, Protocol
from judging.protocols.settings import BadSettings, Settings
from judging.verdicts import Found, pair_vote

ANSWER_THEN_REASON = "answer-then-reason"


class PairwiseCriteria(Protocol):
    name = "pairwise-criteria"
    title = "Pairs with criteria"
    kind = Item.Kind.PAIR
    verdict_kind = "pair"
    answer_forms = (
        (r"Answer1", "Answer1"),
        (r"Answer2", "Answer2"),
        (r"situation one", "unable to decide: situation one"),
        (r"situation two", "unable to decide: situation two"),
    )
    defaults = {"reasoning": "none"}

    def settings(self, given: Mapping[str, Any]) -> Settings:
        if isinstance(given, Mapping) and given.get("prompt") == ANSWER_THEN_REASON:
            given = {"reasoning": "after"} | dict(given)
        chosen = super().settings(given)
        if chosen["prompt"] == ANSWER_THEN_REASON and chosen["reasoning"] != "after":
            raise BadSettings(
                f"reasoning: the prompt {chosen['prompt']} asks for the reasons after the vote; leave it out."
            )
        return chosen

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        return pair_vote(text, place=self.place(settings))


PROTOCOL = PairwiseCriteria()
