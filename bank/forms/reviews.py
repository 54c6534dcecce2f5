"""Forms of cross-review."""

from typing import Any

from django import forms

from accounts.forms import Styled
from accounts.models import User
from accounts.rules import who
from bank.forms.fields import CleanCharField, long_text
from bank.models import Benchmark, SampleReview
from bank.models.reviews import GUIDELINE
from bank.samples.reviews import MOST_REVIEWS

VERDICTS = {
    "fine": "Fine as it is",
    "revise": "Send back to be revised",
    "reject": "Reject: it does not belong here",
}


class People(forms.ModelMultipleChoiceField):
    def label_from_instance(self, person: Any) -> str:
        return f"{person.get_full_name() or person.username}, {person.role}"


class OpenRound(Styled):
    reviewers = People(queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="Who reviews")
    per_sample = forms.IntegerField(label="Reviews a sample", initial=1, min_value=1, max_value=MOST_REVIEWS)

    def __init__(self, *args: Any, benchmark: Benchmark, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reviewers: Any = self.fields["reviewers"]
        reviewers.queryset = who("review-samples", of=benchmark).order_by("username")


class Review(Styled):
    """Six points and a verdict. Built from GUIDELINE: ``<point>`` ok or not, ``<point>_note``."""

    verdict = forms.ChoiceField(choices=list(VERDICTS.items()), widget=forms.RadioSelect)
    note = long_text(3, max_length=5_000, label="To the author", help_text="Needed where the sample is not fine.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, (title, meaning) in GUIDELINE.items():
            self.fields[name] = forms.ChoiceField(
                label=title,
                help_text=meaning,
                choices=[("ok", "holds"), ("not", "does not")],
                widget=forms.RadioSelect(attrs={"class": "check"}),
                error_messages={"required": "Say whether it holds."},
            )
            self.fields[f"{name}_note"] = CleanCharField(
                required=False,
                max_length=1_000,
                widget=forms.TextInput(attrs={"class": "input", "placeholder": "what is wrong, where it does not"}),
            )

    def rows(self) -> list[tuple[Any, Any]]:
        """(point, its note) as bound fields."""
        return [(self[name], self[f"{name}_note"]) for name in GUIDELINE]

    def points(self) -> dict[str, Any]:
        data = self.cleaned_data
        return {name: {"ok": data[name] == "ok", "note": data[f"{name}_note"].strip()} for name in GUIDELINE}


class Check(Styled):
    decision = forms.ChoiceField(
        choices=[
            ("approve", "Approve: it belongs to the benchmark"),
            ("revise", "Send back to be revised"),
            ("reject", "Reject"),
        ],
        widget=forms.RadioSelect,
    )
    reason = long_text(3, max_length=5_000, help_text="Needed where you send it back or reject it.")


def verdict_words(review: SampleReview) -> str:
    """``fine``, ``revise`` ... or that it waits."""
    return review.get_verdict_display().lower() if review.verdict else "waits"
