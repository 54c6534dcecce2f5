"""The form that says what to do with an upload."""

import re
from typing import Any

from django import forms

from accounts.forms import Styled
from accounts.rules import allowed
from bank.forms.fields import tick, whole_number
from bank.intake.imports.provenance import VERDICTS
from bank.intake.uploads import actions
from bank.models import Benchmark, Upload

SLUG = re.compile(r"[A-Za-z0-9_-]{1,80}")
VERSION = re.compile(r"[A-Za-z0-9._-]{1,40}")


NEW = "new"  # the answer "a new version" beside the stored ones
CHECKED = ("benchmark", "version", "parts", "model", "judge", "annotator", "campaign")  # what the check depends on
NAMES = ("model", "judge", "annotator", "campaign")
PARTS = {
    "samples": "Samples",
    "responses": "Responses",
    "recipe_responses": "Answers by recipes",
    "judgments": "Judgments",
    "labels": "Labels",
}


class ChoicesForm(Styled):
    """What to do with a checked upload. Starts with what the check proposed."""

    benchmark = forms.RegexField(
        SLUG,
        max_length=80,
        label="Benchmark",
        help_text="Its short name in addresses and commands.",
        error_messages={"invalid": "Letters, digits, - and _ only."},
    )
    into = forms.ChoiceField(required=False, widget=forms.RadioSelect, label="There is a benchmark of this name")
    version = forms.RegexField(
        VERSION,
        required=False,
        max_length=40,
        error_messages={"invalid": "Letters, digits, full stop, - and _ only."},
    )
    title = forms.CharField(max_length=200, required=False)
    visibility = forms.ChoiceField(
        choices=[("public", "Everybody"), ("private", "Staff")],
        required=False,
        label="Seen by",
        help_text="Criteria and answer keys stay hidden either way.",
    )
    anchor = forms.CharField(
        max_length=200, required=False, help_text="The model that others are compared with. Empty: none."
    )
    model = forms.CharField(max_length=200, required=False, help_text="Of responses that name no model.")
    judge = forms.CharField(max_length=200, required=False, help_text="Of judgments that name no judge.")
    annotator = forms.CharField(max_length=200, required=False, help_text="Of labels that name nobody.")
    campaign = forms.CharField(max_length=200, required=False, help_text="A closed campaign that takes the labels.")
    parts = forms.MultipleChoiceField(widget=forms.CheckboxSelectMultiple, label="Bring in")
    saw_nothing = tick(
        "Whoever gave these verdicts saw nothing hidden: no answer keys, references, weights or other criteria",
        help_text="Leave it empty where you do not know. What is said here is logged.",
    )
    skip_bad = tick("Bring in the good rows, leave the bad ones out")

    def __init__(self, data: Any = None, *, upload: Upload) -> None:
        self.upload = upload
        super().__init__(data, initial=self.first(upload))
        findings = upload.found
        self.fields["parts"].choices = [(part, PARTS[part]) for part in findings.get("parts", [])]  # type: ignore[attr-defined]
        self.stored = list(self._versions(self.first(upload)["benchmark"]))
        choices = [(version, f"Add to version {version}") for version in self.stored]
        self.fields["into"].choices = [*choices, (NEW, "A new version beside it")]  # type: ignore[attr-defined]
        if self.stored:
            self.fields["version"].label = "Name of the new version"
        else:
            del self.fields["into"]
        for part, name in (
            ("samples", "anchor"),
            ("responses", "model"),
            ("judgments", "judge"),
            ("labels", "annotator"),
            ("labels", "campaign"),
        ):
            if part not in findings.get("parts", []):
                del self.fields[name]
        if not set(VERDICTS) & set(findings.get("parts", [])):
            del self.fields["saw_nothing"]
        if not findings.get("bad"):
            del self.fields["skip_bad"]
        if upload.is_limited:
            self.fields["benchmark"].disabled = True
            del self.fields["anchor"]
            if not self.may_publish:
                self.fields["visibility"].disabled = True

    @property
    def may_publish(self) -> bool:
        """Whether its sender may let everybody see a new version."""
        return allowed(self.upload.by, "publish", of=self.first(self.upload)["benchmark"])

    @property
    def adds(self) -> bool:
        """Whether it was checked as an addition to a stored version, which keeps its title and other settings."""
        return bool(self.stored) and self.upload.found.get("checked", {}).get("version") in self.stored

    @property
    def names(self) -> list[forms.BoundField]:
        return [self[name] for name in NAMES if name in self.fields]

    @property
    def names_needed(self) -> bool:
        """Whether rows lack such a name, or one was given."""
        missing = {row["field"] for reason in self.upload.found.get("reasons", []) for row in reason["first"]}
        return bool(missing & set(NAMES)) or any(self.initial.get(name) for name in NAMES)

    @staticmethod
    def first(upload: Upload) -> dict[str, Any]:
        """The initial values: the choices made before, else what the check proposed."""
        values = {"visibility": "private", "version": "1"} | upload.found.get("proposed", {}) | upload.choices
        stored = set(ChoicesForm._versions(values.get("benchmark", "")))
        values["into"] = values["version"] if values["version"] in stored else NEW
        if values["version"] in stored:
            values["version"] = next_version(stored)
        return {"benchmark": "", "parts": upload.found.get("parts", [])} | values

    @classmethod
    def from_api(cls, upload: Upload, sent: dict[str, Any]) -> dict[str, Any]:
        """The form's data for an API call: what the call leaves out is as proposed; without a version what is sent is
        added to the newest, if the benchmark is there.
        """
        data = cls.first(upload)
        # Of a benchmark that its sender does not curate nothing is looked up: ``clean`` refuses its name.
        slug = data["benchmark"] if upload.is_limited else sent.get("benchmark", data["benchmark"])
        stored = cls._versions(str(slug))
        if "version" in sent:
            data["into"] = sent["version"] if sent["version"] in stored else NEW
        elif slug != data["benchmark"]:
            data["into"] = stored[0] if stored else NEW
        return data | {name: value for name, value in sent.items() if name in cls.base_fields and name != "into"}

    @staticmethod
    def _versions(slug: str) -> list[str]:
        return list(Benchmark.objects.filter(slug=slug).order_by("-pk").values_list("version", flat=True))

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        slug, into = data.get("benchmark", ""), data.pop("into", "")
        if self.upload.is_limited and self.data.get("benchmark", slug) != slug:
            self.add_error("benchmark", f"This upload is for {slug} alone.")
        stored = self._versions(slug)
        if into and into != NEW and into in stored:
            data["version"] = into
        elif not stored and into not in ("", NEW):  # another benchmark than the one that has this version
            data["version"] = "1"
        elif not data.get("version"):
            self.add_error("version", "Name the version.")
        elif into == NEW and data["version"] in stored and self.stored:
            self.add_error("version", f"Version {data['version']} is there already. Choose another, or add to it.")
        proposed = self.first(self.upload)
        for name in ("title", "visibility", "anchor"):  # a form that adds to a version does not show them
            if name not in self.data:
                data[name] = proposed.get(name, "")
        data["title"] = data.get("title") or slug
        if not self.may_publish:
            data["visibility"] = Benchmark.Visibility.PRIVATE
        if not self.errors and not self.rechecks(data) and self.upload.found.get("bad") and not data.get("skip_bad"):
            raise forms.ValidationError(
                "Some rows are bad. Mend them and send the file again, or have the good rows brought in without them."
            )
        return data

    def rechecks(self, data: dict[str, Any] | None = None) -> bool:
        """Whether these choices change what would be made, so that the files must be checked again first."""
        data = self.cleaned_data if data is None else data
        checked = self.upload.found.get("checked", {})
        return any((data.get(name) or "") != (checked.get(name) or "") for name in CHECKED)

    def carry_out(self, *, go_on: bool = False) -> bool:
        """Confirm, or have it checked again: True if it is being imported. Raises WrongState.

        With ``go_on`` a check that finds nothing that a person must see is followed by the import.
        """
        if not self.rechecks():
            actions.confirm(upload=self.upload, choices=self.cleaned_data)
            return True
        actions.check(upload=self.upload, choices=self.cleaned_data | ({actions.GO_ON: True} if go_on else {}))
        return False


def next_version(stored: set[str]) -> str:
    """A version that does not exist yet: the next whole number."""
    numbers = [number for version in stored if (number := whole_number(version)) is not None]
    return str(max(numbers, default=len(stored)) + 1)
