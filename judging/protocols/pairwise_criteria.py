"""Pairwise voting with per-sample criteria, as MLLM-Bench does it; the wording of the prompts is ours."""

import re
from collections.abc import Mapping
from typing import Any

from judging.protocols.base import KINDS_OF_REFERENCE, Material
from judging.protocols.pair import OfPairs
from judging.protocols.replies import NO_VOTE, NoVerdict, ParsedVerdict, Place, verdict_line
from judging.protocols.settings import BadSettings, Printed, Settings

_EDGES = " \t\r\u00a0\u200b\ufeff*_`~\"'“”‘’«»#>().,;:!?[]{}|-–—"
_VOTE = re.compile(
    r"(?:(?:my|the|final)\s+)*(?:(?:vote|verdict|answer|decision|choice)\s*(?:is\s*)?[:：]\s*)?"
    r"(?:answer\s*(?P<side>[12])"
    r"|unable\s+to\s+decide(?:[\s:：,;.(\[–—-]+situation\s*(?P<situation>one|two|1|2))?)",
    re.IGNORECASE | re.ASCII,
)
_SITUATIONS = {"one": 1, "two": 2, "1": 1, "2": 2}


def parse_vote(text: str, *, place: Place) -> ParsedVerdict:
    """The vote between two answers, alone on the last (or first) line of a reply.

    ``Answer1``, ``Answer2``, ``unable to decide: situation one|two``, in upper or lower case, with or without emphasis,
    quotes, a full stop or a leading ``Vote:``. Code fences and rules around it are ignored. Raises NoVerdict.
    """
    line = verdict_line(text, place=place, missing=NO_VOTE[place])
    verdict = _as_vote(line.value)
    if verdict is None:
        raise NoVerdict(NO_VOTE[place])
    return ParsedVerdict(verdict, line.analysis)


def _as_vote(line: str) -> dict[str, Any] | None:
    bare = re.sub(r"[*`_]", "", line).strip(_EDGES)
    match = _VOTE.fullmatch(bare)
    if match is None:
        return None
    if side := match["side"]:
        return {"choice": "first" if side == "1" else "second"}
    situation = match["situation"]
    return {"choice": "undecided"} | ({"situation": _SITUATIONS[situation.lower()]} if situation else {})


ANSWER_THEN_REASON = "answer-then-reason"


class PairwiseCriteria(OfPairs):
    name = "pairwise-criteria"
    title = "Pairs with criteria"
    words = "which answer is better; the judge sees the hidden criteria"
    needs_criteria = ("guideline", "component", "range", *KINDS_OF_REFERENCE)
    lacking = "no sample has criteria"
    answer_forms = (
        (r"Answer1", "Answer1"),
        (r"Answer2", "Answer2"),
        (r"situation one", "unable to decide: situation one"),
        (r"situation two", "unable to decide: situation two"),
    )
    printed = Printed(
        "MLLM-Bench",
        "Sections 5 and 6, both orders",
        {"order": "both", "criteria": True, "context": "image", "reasoning": "none"},
    )
    defaults = {"reasoning": "none"}

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        if isinstance(chosen, Mapping) and chosen.get("prompt") == ANSWER_THEN_REASON:
            chosen = {"reasoning": "after"} | dict(chosen)
        settings = super().settings(chosen)
        if settings["prompt"] == ANSWER_THEN_REASON and settings["reasoning"] != "after":
            raise BadSettings(
                f"reasoning: the prompt {settings['prompt']} asks for the reasons after the vote; leave it out."
            )
        return settings

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_vote(text, place=self.verdict_line(settings))

    def name_of(self, place: int) -> str:
        return f"Answer {place + 1}"

    def best(self, material: Material, place: int) -> str:
        return f"Answer{place + 1}"
