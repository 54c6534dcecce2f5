"""What an answer says: which option it means, or yes or no."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import KEYS, BadVerdict, Ballot, Choice, Form, Material, yes_or_no
from judging.protocols.replies import NONE_OF_THEM

YES_NO = (Choice("yes", lazy("Yes"), "first", "Y"), Choice("no", lazy("No"), "second", "N"))


class ChoiceExtraction(Ballot):
    """The option that an answer means, as the model saw the options, or none of them."""

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
            Choice(option.shown, option.text, KEYS[place] if place < 9 else "")
            for place, option in enumerate(material.options)
        ]
        return [*options, Choice(NONE_OF_THEM, lazy("None of them"), "tie", quiet=True)]

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        return {"option": [*(option.shown for option in material.options), NONE_OF_THEM]}

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        keys = {option.shown: option.key for option in material.options} | {NONE_OF_THEM: NONE_OF_THEM}
        option = given.get("option")
        if not isinstance(option, str) or option not in keys:
            raise BadVerdict("option", _("Choose one of {choices}.").format(choices=", ".join(keys)))
        return {"option": keys[option]}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        return {"option": form.text("option") or None}

    def shown(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
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

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        return {"answer": [True, False]}

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        return {"answer": yes_or_no(given, "answer")}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        return {"answer": form.yes_no("answer")}
