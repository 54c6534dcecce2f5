"""What an answer says: the option it means, or yes or no; and the category of a text or picture."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from annotations.ballots.base import (
    KEYS,
    OPTIONS,
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Group,
    Material,
    PostedForm,
    Scale,
    Settings,
    button_group,
    required_bool,
)
from bank.models.verdict import LABEL
from judging import protocols
from judging.protocols.label import categories_of, question_of
from judging.protocols.replies import NONE_OF_THEM

NONE = Choice(NONE_OF_THEM, lazy("None of them"), "tie", quiet=True)
YES_NO = (Choice("yes", lazy("Yes"), "first", "Y"), Choice("no", lazy("No"), "second", "N"))


class ChoiceExtraction(Ballot):
    """The option an answer means, with the options as the model saw them, or none of them."""

    protocol = "choice-extraction"
    fields = ("option",)
    title = lazy("Multiple choice: the option meant")
    noun = lazy("answers to read")
    question = lazy("Which option does this answer mean?")
    advice = lazy("What it means counts, whether or not it is right.")
    about = lazy("Which option an answer means, or none, as MMBench needs it.")
    usual_seconds = 15
    shows = OPTIONS
    needs_answer = True
    lacking = "no sample of its items has options."

    @property
    def keys(self) -> Sequence[Choice]:
        first, second = lazy("the first option"), lazy("the second, and so on")
        return (Choice("", first, "first"), Choice("", second, "second"), NONE)

    def fitting(self, items: QuerySet[Any]) -> QuerySet[Any]:
        return super().fitting(items).exclude(sample__options={})

    def buttons_of(self, material: Material) -> list[Choice]:
        options = [
            Choice(option.shown, option.text, KEYS[index] if index < 9 else "")
            for index, option in enumerate(material.options)
        ]
        return [*options, NONE]

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"option": [*(option.shown for option in material.options), NONE_OF_THEM]}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        keys = {option.shown: option.key for option in material.options} | {NONE_OF_THEM: NONE_OF_THEM}
        option = given.get("option")
        if not isinstance(option, str) or option not in keys:
            raise BadVerdict("option", _("Choose one of {choices}.").format(choices=", ".join(keys)))
        return {"option": keys[option]}

    def decisions(self, options: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
        return {key: f"{key}. {text}" for key, text in options.items()} | {NONE_OF_THEM: "None of them"}

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
    fields = ("answer",)
    title = lazy("Yes or no")
    noun = lazy("yes or no answers")
    question = lazy("Does this answer say yes or no?")
    advice = lazy("What it means counts, whether or not it is right.")
    about = lazy("Whether an answer says yes or no, as POPE needs it.")
    needs_answer = True

    @property
    def buttons(self) -> Sequence[Choice]:
        return YES_NO

    @property
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        return [{"answer": True}, {"answer": False}]

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"answer": [True, False]}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        return {"answer": required_bool(given, "answer")}

    def decided(self, decision: str) -> dict[str, Any]:
        return {"answer": decision == "yes"}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        return [button_group("answer", self.question, self.buttons, values, _("Choose yes or no first"))]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        return {"answer": form.yes_no("answer")}


class Label(Ballot):
    """The category of one text or picture, or of an answer to one: one of the campaign's own categories."""

    protocol = LABEL
    fields = ("option",)
    title = lazy("Categories")
    noun = lazy("items to categorise")
    about = lazy("One category for each text, picture or answer, from a list of your own.")
    advice = lazy("Exactly one, the one that fits best.")
    rubric_title = lazy("What the categories mean")
    rubric_style = "names"
    setting_names = ("categories", "question")

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """``categories`` are names, or {value, about}; ``question`` is asked about each text or picture."""
        try:
            own = {
                "categories": categories_of(given.get("categories")),
                "question": question_of(given.get("question", "")),
            }
        except protocols.BadSettings as error:
            raise BadSettings(str(error)) from None
        return super().clean_settings(given) | own

    @classmethod
    def default_settings(cls, *, scale: Scale = ()) -> Settings:
        """No categories: a campaign cannot be made without some, but one from a file may not say which there were."""
        return super().clean_settings({}) | {"categories": [], "question": ""}

    @property
    def question(self) -> str:  # type: ignore[override]
        return self.settings["question"] or _("Which category fits?")

    @property
    def names(self) -> list[str]:
        return [category["value"] for category in self.settings["categories"]]

    @property
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        return [{"option": name} for name in self.names]

    @property
    def buttons(self) -> list[Choice]:
        """The first ten have digit keys."""
        return [
            Choice(name, name, KEYS[index] if index < len(KEYS) else "", about=about)
            for index, (name, about) in enumerate(
                (category["value"], category["about"]) for category in self.settings["categories"]
            )
        ]

    @property
    def rubric(self) -> Sequence[Choice]:
        """All categories, if one of them is described."""
        return self.buttons if any(category["about"] for category in self.settings["categories"]) else ()

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"option": self.names}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        if given.get("option") not in self.names:
            raise BadVerdict("option", _("Choose one of {choices}.").format(choices=", ".join(self.names)))
        return {"option": given["option"]}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        missing = _("Choose a category first")
        return [button_group("option", self.question, self.buttons, values, missing, "options categories")]

    from_form = ChoiceExtraction.from_form
