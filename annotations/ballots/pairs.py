"""Which of two answers is better."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import BadSettings, BadVerdict, Ballot, Choice, Form, Material, Scale, Settings, Words
from bank.models.verdict import Choice as Stored
from bank.models.verdict import turned

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


class Pair(Ballot):
    """A, B, and where the campaign allows them a tie and "unable to decide" with its situation."""

    protocol = "pair"
    kind = "pair"
    fields = ("choice", "situation")
    title = lazy("Pairs")
    noun = lazy("pairs")
    question = lazy("Which answer helps the person more?")
    advice = lazy("Correct first, then complete, then clear.")
    about = lazy("The better of two answers, or a tie.")
    names = ("choices",)
    usual: ClassVar[tuple[str, ...]] = ("left", "right", "tie")

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        choices = given.get("choices", cls.usual)
        if (
            not isinstance(choices, list | tuple)
            or set(choices) - set(LEFT_RIGHT)
            or not {"left", "right"} <= set(choices)
        ):
            raise BadSettings("choices: left and right, and of tie and undecided those that are allowed.")
        return super().settled(given) | {"choices": [choice for choice in LEFT_RIGHT if choice in choices]}

    @property
    def choices(self) -> list[str]:
        return list(self.settings["choices"])

    @property
    def buttons(self) -> list[Choice]:
        return [button for choice, button in _BUTTONS.items() if choice in self.choices]

    @property
    def situations(self) -> dict[int, Words]:
        return SITUATIONS if "undecided" in self.choices else {}

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        allowed: dict[str, list[Any]] = {"choice": self.choices}
        return allowed | ({"situation": list(self.situations)} if self.situations else {})

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
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

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        choice = form.text("choice")
        return {"choice": choice or None, "situation": form.whole("situation") if choice == "undecided" else None}

    def shown(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        found = super().shown(turned(dict(columns), order=material.places), material)  # a pair turned twice is itself
        return found | {"choice": PRESENTED[Stored(found["choice"])]} if found.get("choice") else found

    def _which_situation(self) -> str:
        if not self.situations:
            return _("The protocol {protocol} takes no {field}.").format(protocol=self.protocol, field="situation")
        words = "; ".join(
            f"{number}: {str(text)[0].lower()}{str(text)[1:]}" for number, text in self.situations.items()
        )
        return _("Say which situation ({situations}).").format(situations=words)


class PairwiseCriteria(Pair):
    """As MLLM-Bench votes."""

    protocol = "pairwise-criteria"
    title = lazy("Pairs with criteria")
    about = lazy("The better of two answers, a tie, or unable to decide, as in MLLM-Bench.")
    usual = ("left", "right", "tie", "undecided")
