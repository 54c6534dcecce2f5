"""Forms of the submission pages. The actions validate the data, so the forms do not repeat that."""

from typing import Any

from django import forms

from accounts.forms import Styled
from bank.forms.fields import BenchmarkChoice
from bank.models import Benchmark, SubmissionRules
from bank.submissions.actions import HIGHEST_LIMIT

LARGEST = 128 * 2**20  # bytes of a submitted file
TOO_LARGE = (
    f"The file is larger than {LARGEST // 2**20} MB. Pack it with gzip, or leave columns out that are not needed."
)


OPEN = {"open": True, "closed": False, "": None}


class SubmissionForm(Styled):
    """A file of one model's responses."""

    benchmark = BenchmarkChoice(queryset=Benchmark.objects.none(), empty_label=None)
    file = forms.FileField(
        help_text="JSON Lines, CSV or Parquet, or VLMEvalKit's TSV; gzip is fine.",
        error_messages={"required": "Choose the file with the responses.", "empty": "The file is empty."},
    )
    model = forms.CharField(
        max_length=200, label="Model's name", help_text="As it will stand on the boards. Each submission needs its own."
    )
    organisation = forms.CharField(max_length=200, required=False)
    weights = forms.ChoiceField(
        required=False, choices=[("", "Not said"), ("open", "Open weights"), ("closed", "Closed")], label="Weights"
    )

    def __init__(self, *args: Any, benchmarks: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["benchmark"].queryset = benchmarks  # type: ignore[attr-defined]

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > LARGEST:
            raise forms.ValidationError(TOO_LARGE)
        return file


class RulesForm(Styled):
    """What a benchmark takes from researchers."""

    open = forms.BooleanField(required=False, label="Researchers may submit")
    per_day = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=HIGHEST_LIMIT,
        label="A day, each person",
        help_text="Empty: no limit. Days end at midnight UTC.",
    )
    in_all = forms.IntegerField(
        required=False, min_value=1, max_value=HIGHEST_LIMIT, label="In all, each person", help_text="Empty: no limit."
    )
    count_failed = forms.BooleanField(required=False, label="Files that do not pass the check count, too")
    hidden_splits = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    required_splits = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    private_half = forms.BooleanField(
        required=False, label="Keep the score of one half of each hidden split back until a curator releases it"
    )
    notes = forms.CharField(
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text="Markdown. Researchers read it before they submit.",
    )

    def __init__(self, *args: Any, rules: SubmissionRules, splits: list[str], **kwargs: Any) -> None:
        names = ("open", "per_day", "in_all", "count_failed", "required_splits", "private_half", "notes")
        initial = {name: getattr(rules, name) for name in names} | {"hidden_splits": rules.benchmark.hidden_splits}
        super().__init__(*args, initial=initial, **kwargs)
        for name in ("hidden_splits", "required_splits"):
            self.fields[name].choices = [(split, split or "no split") for split in splits]  # type: ignore[attr-defined]

    def ticks(self) -> list[tuple[str, forms.BoundField]]:
        """The two columns of the table of splits."""
        return [("hidden", self["hidden_splits"]), ("required", self["required_splits"])]


class Reason(forms.Form):
    """The reason for a change."""

    reason = forms.CharField(max_length=2000, required=False)
