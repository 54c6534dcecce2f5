"""The form that makes items."""

from typing import Any

from django import forms

from accounts.forms import Styled
from bank.actions.items import ItemPlan, models_answering, plan_items
from bank.models import Benchmark, Item

KINDS = {
    Item.Kind.PAIR: "Pairs: which of two answers is better",
    Item.Kind.SCORE: "Single answers: scores, components, options, yes or no",
    Item.Kind.BATCH: "Batches: all answers to a sample, ranked",
}


class MakeItems(Styled):
    kind = forms.ChoiceField(
        label="What is judged", choices=list(KINDS.items()), widget=forms.RadioSelect, initial=Item.Kind.PAIR
    )
    anchor = forms.ChoiceField(
        required=False, help_text="With one, every model is paired with it; without, every two models meet."
    )
    models = forms.MultipleChoiceField(
        required=False,
        label="Only these models",
        widget=forms.SelectMultiple(attrs={"size": 6}),
        help_text="None chosen: all with answers here.",
    )
    sample = forms.IntegerField(
        required=False, min_value=1, max_value=10_000_000, label="Draw so many samples", help_text="Empty: all of them."
    )
    seed = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, initial=0, help_text="The same seed draws the same samples."
    )
    rotations = forms.BooleanField(required=False, label="Also the answers to rotated options (CircularEval)")

    def __init__(self, benchmark: Benchmark, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.benchmark = benchmark
        self.answering = models_answering(benchmark)
        names: list[Any] = [(name, name) for name in self.answering]
        anchor, models = self.fields["anchor"], self.fields["models"]
        anchor.choices = [("", "none"), *names]  # type: ignore[attr-defined]
        models.choices = names  # type: ignore[attr-defined]
        if benchmark.anchor and benchmark.anchor.name in self.answering:
            self.initial.setdefault("anchor", benchmark.anchor.name)

    def plan(self) -> ItemPlan:
        """What the form asks for. Raises BadInput."""
        given = self.cleaned_data
        pairs = given["kind"] == Item.Kind.PAIR
        return plan_items(
            kind=given["kind"],
            benchmark=self.benchmark,
            models=given["models"] or self.answering,
            anchor=given["anchor"] if pairs else "",
            sample=given["sample"],
            seed=given["seed"] or 0,
            rotations=given["rotations"] and given["kind"] == Item.Kind.SCORE,
        )
