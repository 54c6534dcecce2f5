"""Which of two answers is better."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import (
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Group,
    Material,
    PostedForm,
    Scale,
    Settings,
    Words,
    button_group,
    is_number,
)
from bank.models.verdict import GRADED, choice_of, turned
from bank.models.verdict import Choice as Stored

LEFT_RIGHT = {"left": Stored.FIRST, "right": Stored.SECOND, "tie": Stored.TIE, "undecided": Stored.UNDECIDED}
PRESENTED = {stored: shown for shown, stored in LEFT_RIGHT.items()}
SITUATIONS: dict[int, Words] = {
    1: lazy("Closed-ended: both right or both wrong"),
    2: lazy("Both have considerable factual errors or ethical problems"),
}
_BUTTONS = {
    "left": Choice("left", lazy("First is better"), "first", short=lazy("First")),
    "tie": Choice("tie", lazy("Tie"), "tie", "T"),
    "right": Choice("right", lazy("Second is better"), "second", short=lazy("Second")),
    "undecided": Choice("undecided", lazy("Unable to decide"), "undecided", short=lazy("Unable"), quiet=True),
}


DECISIONS = {"left": "A is better", "tie": "Tie", "right": "B is better", "undecided": "Unable to decide"}


class OfPairs(Ballot):
    """Which of two answers is better."""

    layout = "pair"
    noun = lazy("pairs")
    advice = lazy("Correct first, then complete, then clear.")
    single_votes = True

    def decisions(self, options: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
        allowed = getattr(self, "choices", DECISIONS)
        return {LEFT_RIGHT[name].value: words for name, words in DECISIONS.items() if name in allowed}

    def present(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        # Swapping a pair twice gives back the original.
        presented = super().present(turned(dict(columns), order=material.places), material)
        choice = presented.get("choice")
        return presented | {"choice": PRESENTED[Stored(choice)]} if choice else presented


class Pair(OfPairs):
    """Left or right; also a tie and "unable to decide" with its situation, if the campaign allows them."""

    protocol = "pair"
    fields: ClassVar[tuple[str, ...]] = ("choice", "situation")
    title = lazy("Pairs")
    question = lazy("Which answer helps the person more?")
    about = lazy("The better of two answers, or a tie.")
    setting_names: ClassVar[tuple[str, ...]] = ("choices",)
    default_choices: ClassVar[tuple[str, ...]] = ("left", "right", "tie")

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        choices = given.get("choices", cls.default_choices)
        if (
            not isinstance(choices, list | tuple)
            or set(choices) - set(LEFT_RIGHT)
            or not {"left", "right"} <= set(choices)
        ):
            raise BadSettings("choices: left and right, plus tie and undecided if they are allowed.")
        return super().clean_settings(given) | {"choices": [choice for choice in LEFT_RIGHT if choice in choices]}

    @property
    def choices(self) -> list[str]:
        return list(self.settings["choices"])

    @property
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        return [{"choice": LEFT_RIGHT[choice].value} for choice in self.choices]

    @property
    def buttons(self) -> list[Choice]:
        return [button for choice, button in _BUTTONS.items() if choice in self.choices]

    @property
    def situations(self) -> dict[int, Words]:
        return SITUATIONS if "undecided" in self.choices else {}

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"choice": self.choices}
        return allowed | ({"situation": list(self.situations)} if self.situations else {})

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        choice, situation = given.get("choice"), given.get("situation")
        if not isinstance(choice, str) or choice not in self.choices:
            raise BadVerdict("choice", _("Choose one of {choices}.").format(choices=", ".join(self.choices)))
        if situation is not None and (isinstance(situation, bool) or situation not in self.situations):
            raise BadVerdict("situation", self._which_situation())
        if choice == "undecided" and situation is None:
            raise BadVerdict("situation", self._which_situation())
        if choice != "undecided" and situation is not None:
            raise BadVerdict("situation", _("A situation goes with undecided only."))
        return turned({"choice": LEFT_RIGHT[choice].value, "situation": situation}, order=material.places)

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        return [button_group("choice", self.question, self.buttons, values, _("Choose a verdict first"))]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        choice = form.text("choice")
        return {"choice": choice or None, "situation": form.whole("situation") if choice == "undecided" else None}

    def _which_situation(self) -> str:
        if not self.situations:
            return _("The protocol {protocol} takes no {field}.").format(protocol=self.protocol, field="situation")
        words = "; ".join(
            f"{number}: {str(text)[0].lower()}{str(text)[1:]}" for number, text in self.situations.items()
        )
        return _("Say which situation ({situations}).").format(situations=words)


class PairwiseCriteria(Pair):
    """Verdicts as in MLLM-Bench."""

    protocol = "pairwise-criteria"
    title = lazy("Pairs with criteria")
    about = lazy("The better of two answers, a tie, or unable to decide, as in MLLM-Bench.")
    default_choices = ("left", "right", "tie", "undecided")


STEPS = (
    Choice("1", lazy("First is much better"), "first", short=lazy("Much better")),
    Choice("0.75", lazy("First is better"), "second", short=lazy("Better")),
    Choice("0.5", lazy("About the same"), "third", "T", short=lazy("Same")),
    Choice("0.25", lazy("Second is better"), "fourth", short=lazy("Better")),
    Choice("0", lazy("Second is much better"), "fifth", short=lazy("Much better")),
)


class PairGraded(OfPairs):
    """How much better one of two answers is, in five steps: ``preference`` is 1 if the first shown is much better."""

    protocol = GRADED
    fields = ("choice", "preference")
    title = lazy("Pairs, graded")
    question = lazy("Which answer helps the person more, and by how much?")
    about = lazy("How much better one of two answers is, in five steps.")

    @property
    def buttons(self) -> Sequence[Choice]:
        return STEPS

    @property
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        return [{"choice": choice_of(float(step.value)).value, "preference": float(step.value)} for step in STEPS]

    @property
    def keys(self) -> Sequence[Choice]:
        return [replace(step, short="") for step in STEPS]  # which answer is better, too

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"preference": [float(step.value) for step in STEPS]}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        preference = given.get("preference")
        steps = self.allowed_answers(material)["preference"]
        if not is_number(preference) or preference not in steps:
            choices = ", ".join(f"{step:g}" for step in steps)
            raise BadVerdict("preference", _("Choose one of {choices}.").format(choices=choices))
        if given.get("choice") not in (None, "", PRESENTED[choice_of(preference)]):
            raise BadVerdict("choice", _("The choice follows from the preference."))
        verdict = {"choice": choice_of(preference).value, "preference": float(preference)}
        return turned(verdict, order=material.places)

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        return [button_group("preference", self.question, STEPS, values, _("Choose a verdict first"), "degrees")]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        return {"preference": form.number("preference")}
