"""What an answer says: the option it means, or yes or no."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import (
    KEYS,
    BadVerdict,
    Ballot,
    Choice,
    Group,
    Material,
    PostedForm,
    button_group,
    required_bool,
)
from judging.protocols.replies import NONE_OF_THEM

YES_NO = (Choice("yes", lazy("Yes"), "first", "Y"), Choice("no", lazy("No"), "second", "N"))


class ChoiceExtraction(Ballot):
    """The option an answer means, with the options as the model saw them, or none of them."""

    protocol = "choice-extraction"
    kind = "score"
    fields = ("option",)
    title = lazy("Multiple choice: the option meant")
    noun = lazy("answers to read")
    question = lazy("Which option does this answer mean?")
    advice = lazy("What it means counts, whether or not it is right.")
    about = lazy("Which option an answer means, or none, as MMBench needs it.")

    def buttons_of(self, material: Material) -> list[Choice]:
        options = [
            Choice(option.shown, option.text, KEYS[index] if index < 9 else "")
            for index, option in enumerate(material.options)
        ]
        return [*options, Choice(NONE_OF_THEM, lazy("None of them"), "tie", quiet=True)]

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"option": [*(option.shown for option in material.options), NONE_OF_THEM]}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        keys = {option.shown: option.key for option in material.options} | {NONE_OF_THEM: NONE_OF_THEM}
        option = given.get("option")
        if not isinstance(option, str) or option not in keys:
            raise BadVerdict("option", _("Choose one of {choices}.").format(choices=", ".join(keys)))
        return {"option": keys[option]}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        buttons = self.buttons_of(material)
        return [button_group("option", self.question, buttons, values, _("Choose an option first"), "options")]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        return {"option": form.text("option") or None}

    def present(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        labels = {option.key: option.shown for option in material.options}
        option = columns.get("option")
        return {"option": labels.get(option, option)} if option is not None else {}


class YesNo(Ballot):
    """Whether an answer says yes or no."""

    protocol = "yes-no"
    kind = "score"
    fields = ("answer",)
    title = lazy("Yes or no")
    noun = lazy("yes or no answers")
    question = lazy("Does this answer say yes or no?")
    advice = lazy("What it means counts, whether or not it is right.")
    about = lazy("Whether an answer says yes or no, as POPE needs it.")
    buttons = YES_NO

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"answer": [True, False]}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        return {"answer": required_bool(given, "answer")}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        return [button_group("answer", self.question, self.buttons, values, _("Choose yes or no first"))]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        return {"answer": form.yes_no("answer")}
