"""Reviews of a judge's verdict and analysis, and comparisons of two, as in MLLM-as-a-Judge."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.answers import YES_NO
from annotations.ballots.base import (
    KEYS,
    BadVerdict,
    Ballot,
    Choice,
    Group,
    Material,
    PostedForm,
    Scale,
    Settings,
    bool_setting,
    button_group,
    required_bool,
)
from annotations.ballots.pairs import Pair
from bank.models.verdict import ANALYSES

GRADES = tuple(
    Choice(str(grade), words, KEYS[grade - 1])
    for grade, words in enumerate((lazy("Poor"), lazy("Fair"), lazy("Average"), lazy("Good"), lazy("Excellent")), 1)
)
MAX_SPANS = 100


class Review(Ballot):
    """Whether the annotator agrees. If a released analysis is shown, also its grade and its hallucinated passages.

    ``spans`` are [start, end) in code points of the displayed text, whose hash is stored with them.
    """

    protocol = "review"
    layout = "review"
    fields = ("agree", "grade", "hallucination", "spans")
    title = lazy("Review of a judge's verdicts")
    noun = lazy("verdicts to review")
    question = lazy("Is the judge right?")
    advice = lazy("Look at the answers yourself first.")
    about = lazy("People check a judge's verdicts and, where released, its analyses.")
    setting_names = ("analyses",)
    of_judgments = True
    lacking = "no judge has given a verdict that annotators may see."
    agree = YES_NO
    grades = GRADES

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        return super().clean_settings(given) | {"analyses": bool_setting("analyses", given.get("analyses", True))}

    @property
    def buttons(self) -> Sequence[Choice]:
        return YES_NO

    @property
    def shows_analyses(self) -> bool:  # type: ignore[override]
        return bool(self.settings["analyses"])

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"agree": [True, False]}
        if material.length:
            allowed |= {"grade": [1, 2, 3, 4, 5], "hallucination": [True, False], "spans": [[0, material.length]]}
        return allowed

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        columns: dict[str, Any] = {
            "agree": required_bool(given, "agree"),
            "grade": None,
            "hallucination": None,
            "spans": None,
        }
        if not material.length:
            for field in ("grade", "hallucination", "spans"):
                if given.get(field) not in (None, "", []):
                    raise BadVerdict(field, _("No analysis is shown here, so there is nothing to say about it."))
            return columns
        grade = given.get("grade")
        if isinstance(grade, bool) or grade not in (1, 2, 3, 4, 5):
            raise BadVerdict("grade", _("Give the analysis 1 to 5."))
        columns |= {"grade": int(grade), "hallucination": required_bool(given, "hallucination")}
        spans = _spans(given.get("spans"), material.length)
        if spans and not columns["hallucination"]:
            raise BadVerdict("spans", _("A marked passage goes with a hallucination only."))
        return columns | {"spans": spans or None}

    def decided(self, decision: str) -> dict[str, Any]:
        return {"agree": decision == "yes"}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        question, missing = _("Do you agree with the verdict?"), _("Say whether you agree")
        groups = [button_group("agree", question, self.agree, values, missing)]
        if material.length:
            question, missing = _("How good is the analysis?"), _("Give the analysis 1 to 5")
            groups.append(button_group("grade", question, self.grades, values, missing, "scale"))
            question, missing = (
                _("Does the analysis say what is not there?"),
                _("Say whether the analysis hallucinates"),
            )
            groups.append(button_group("hallucination", question, YES_NO, values, missing))
        return groups

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
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


class CompareAnalyses(Pair):
    """Which of two judges' analyses of one item is better, or a tie, with the reason (MLLM-as-a-Judge, Figure 21).

    Left and right are the analyses as this annotator saw them.
    """

    protocol = ANALYSES
    layout = "analyses"
    fields = ("choice",)
    title = lazy("Two judges' analyses compared")
    noun = lazy("pairs of analyses")
    question = lazy("Which analysis is better?")
    advice = lazy("The more accurate first, then the more complete. Say why.")
    about = lazy("The better of two judges' released analyses of one item, or a tie, and the reason in words.")
    setting_names = ()
    choices = Pair.default_choices  # type: ignore[assignment]
    usual_seconds = 90
    of_judgments = True
    of_two = True
    shows_analyses = True
    asks_why: ClassVar[bool] = True
    single_votes = False
    lacking = (
        "there are no two judges whose analyses of one item annotators may see. An analysis is shown once two people "
        "have released it, or where its sample hides nothing; both judges must have seen the answers in the same order."
    )

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """None of its own: a tie is always possible."""
        return super(Pair, cls).clean_settings(given)

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        if material.length == 0:
            raise BadVerdict("choice", _("One of these analyses is not shown any more. Skip this item."))
        return super().parse(given, material)

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        return [] if material.length == 0 else super().groups(material, values)


def _spans(given: object, length: int) -> list[list[int]]:
    """Marked passages in order. Those that touch or overlap are merged. Raises BadVerdict."""
    if given in (None, ""):
        return []
    error = BadVerdict(
        "spans", _("Passages are [start, end] within the {length} characters shown.").format(length=length)
    )
    if not isinstance(given, list) or len(given) > MAX_SPANS:
        raise error
    spans: list[list[int]] = []
    for span in given:
        valid = isinstance(span, list) and len(span) == 2 and all(type(offset) is int for offset in span)
        if not valid or not 0 <= span[0] < span[1] <= length:
            raise error
        spans.append([span[0], span[1]])
    return _merged(spans)


def _merged(spans: list[list[int]]) -> list[list[int]]:
    merged: list[list[int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([start, end])
    return merged
