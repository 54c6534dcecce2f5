"""Whether a judge's verdict is right, and how good its analysis is, as MLLM-as-a-Judge has people check it."""

import json
from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.answers import YES_NO
from annotations.ballots.base import KEYS, BadVerdict, Ballot, Choice, Form, Material, Scale, Settings, flag, yes_or_no

GRADES = tuple(
    Choice(str(grade), words, KEYS[grade - 1])
    for grade, words in enumerate((lazy("Poor"), lazy("Fair"), lazy("Average"), lazy("Good"), lazy("Excellent")), 1)
)
MOST_SPANS = 100


class Review(Ballot):
    """Agree or not; where the campaign shows the released analysis also its grade, and what in it is hallucinated.

    ``spans`` are [start, end) of the text as displayed, in characters; whose hash is kept beside them.
    """

    protocol = "review"
    kind = ""
    fields = ("agree", "grade", "hallucination", "spans")
    title = lazy("Review of a judge's verdicts")
    noun = lazy("verdicts to review")
    question = lazy("Is the judge right?")
    advice = lazy("Look at the answers yourself first.")
    about = lazy("People check a judge's verdicts and, where released, its analyses.")
    names = ("analyses",)
    agree = YES_NO
    grades = GRADES

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        return super().settled(given) | {"analyses": flag("analyses", given.get("analyses", True))}

    @property
    def shows_analyses(self) -> bool:
        return bool(self.settings["analyses"])

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"agree": [True, False]}
        if material.length:
            allowed |= {"grade": [1, 2, 3, 4, 5], "hallucination": [True, False], "spans": [[0, material.length]]}
        return allowed

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        found: dict[str, Any] = {
            "agree": yes_or_no(given, "agree"),
            "grade": None,
            "hallucination": None,
            "spans": None,
        }
        if not material.length:
            for field in ("grade", "hallucination", "spans"):
                if given.get(field) not in (None, "", []):
                    raise BadVerdict(field, _("No analysis is shown here, so there is nothing to say about it."))
            return found
        grade = given.get("grade")
        if isinstance(grade, bool) or grade not in (1, 2, 3, 4, 5):
            raise BadVerdict("grade", _("Give the analysis 1 to 5."))
        found |= {"grade": int(grade), "hallucination": yes_or_no(given, "hallucination")}
        spans = _spans(given.get("spans"), material.length)
        if spans and not found["hallucination"]:
            raise BadVerdict("spans", _("A marked passage goes with a hallucination only."))
        return found | {"spans": spans or None}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        hallucination = form.yes_no("hallucination")
        try:
            spans = json.loads(form.text("spans") or "null") if hallucination else None
        except (ValueError, RecursionError):
            spans = None
        return {
            "agree": form.yes_no("agree"),
            "grade": form.whole("grade"),
            "hallucination": hallucination,
            "spans": spans or None,
        }


def _spans(given: object, length: int) -> list[list[int]]:
    """Marked passages in order, those that touch or overlap as one. Raises BadVerdict."""
    if given in (None, ""):
        return []
    wrong = BadVerdict(
        "spans", _("Passages are [start, end] within the {length} characters shown.").format(length=length)
    )
    if not isinstance(given, list) or len(given) > MOST_SPANS:
        raise wrong
    spans: list[list[int]] = []
    for span in given:
        whole = isinstance(span, list) and len(span) == 2 and all(type(place) is int for place in span)
        if not whole or not 0 <= span[0] < span[1] <= length:
            raise wrong
        spans.append([span[0], span[1]])
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return joined
