"""The card of an evaluated model."""

from typing import Any

from django import forms

from accounts.forms import Styled
from bank.models import EvaluatedModel

WEIGHTS = [("", "not known"), ("true", "open"), ("false", "closed")]


class CardForm(Styled, forms.ModelForm):
    """Facts about a model beside its answers."""

    open = forms.NullBooleanField(required=False, label="Weights", widget=forms.Select(choices=WEIGHTS))
    price_in = forms.FloatField(required=False, min_value=0, label="Price in", help_text="US dollars, million tokens.")
    price_out = forms.FloatField(required=False, min_value=0, label="Price out")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():  # the form of the person, since the page is kept
            field.widget.attrs["form"] = "personal"

    class Meta:
        model = EvaluatedModel
        fields = EvaluatedModel.CARD
        widgets = {"released": forms.DateInput(attrs={"type": "date"})}
        help_texts = {
            "parameters": "As its makers say, such as 7B.",
            "licence": "Of the weights.",
            "architecture": "How its parts are joined.",
            "vision": "The part that sees.",
            "language": "The part that writes.",
        }
