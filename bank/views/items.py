"""Items of a benchmark: how many there are, and making more."""

from typing import Any

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_POST

from accounts.forms import Styled
from accounts.http import PageRequest, form_page, posted
from accounts.rules import BY_NAME, requires
from bank.forms.fields import tick, whole_number
from bank.models import Benchmark, Item
from bank.samples.items import ItemPlan, make_some, models_answering, plan_items
from bank.views.common import bank_page, benchmark_named, faults_in

KINDS = {
    Item.Kind.PAIR: "Pairs: which of two answers is better",
    Item.Kind.SCORE: "Single answers: scores, components, options, yes or no",
    Item.Kind.BATCH: "Batches: all answers to a sample, ranked",
}
BARE = "bare"
OF_SAMPLES = (BARE, "Samples themselves: a category for each text or picture, without an answer")


class MakeItems(Styled):
    kind = forms.ChoiceField(
        label="What is judged", choices=[*KINDS.items(), OF_SAMPLES], widget=forms.RadioSelect, initial=Item.Kind.PAIR
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
    size = forms.IntegerField(
        required=False,
        min_value=3,
        max_value=26,
        label="Answers of each batch",
        help_text="Balanced by model and length; of pairs, all within such a batch. Empty: all answers.",
    )
    sample = forms.IntegerField(
        required=False, min_value=1, max_value=10_000_000, label="Draw so many samples", help_text="Empty: all of them."
    )
    seed = forms.IntegerField(
        required=False, min_value=0, max_value=2**31 - 1, initial=0, help_text="The same seed draws the same samples."
    )
    least = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=1_000_000,
        label="Answers of at least so many characters",
        help_text="Then none that was refused or cut off either. Empty: all.",
    )
    apart = tick("Only samples without items of other kinds")
    rotations = tick("Also the answers to rotated options (CircularEval)")

    def __init__(self, benchmark: Benchmark, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.benchmark = benchmark
        self.answering = models_answering(benchmark)
        if not self.answering:
            kinds = self.fields["kind"]
            kinds.choices, kinds.initial = [OF_SAMPLES], BARE  # type: ignore[attr-defined]
        names: list[Any] = [(name, name) for name in self.answering]
        anchor, models = self.fields["anchor"], self.fields["models"]
        anchor.choices = [("", "none"), *names]  # type: ignore[attr-defined]
        models.choices = names  # type: ignore[attr-defined]
        if benchmark.anchor and benchmark.anchor.name in self.answering:
            self.initial.setdefault("anchor", benchmark.anchor.name)

    def plan(self) -> ItemPlan:
        """The plan that the form requests. Raises BadInput."""
        values = self.cleaned_data
        drawn = {"benchmark": self.benchmark, "sample": values["sample"], "seed": values["seed"] or 0}
        drawn |= {"apart": values["apart"], "least": values["least"] or 0}
        if values["kind"] == BARE:
            return plan_items(kind=Item.Kind.SCORE, bare=True, **drawn)
        return plan_items(
            **drawn,
            kind=values["kind"],
            models=values["models"] or self.answering,
            anchor=values["anchor"] if values["kind"] == Item.Kind.PAIR else "",
            size=values["size"] if values["kind"] != Item.Kind.SCORE else None,
            rotations=values["rotations"] and values["kind"] == Item.Kind.SCORE,
        )


MOST_COUNTED = 100_000
WORDS = {Item.Kind.PAIR: "Pairs", Item.Kind.SCORE: "Single answers and samples", Item.Kind.BATCH: "Batches"}


@requires("write-bank", of=BY_NAME)
@form_page
def benchmark_items(request: PageRequest, name: str) -> HttpResponse:
    """Items are made for two seconds at a time; the page requests the next ones until all are there."""
    benchmark = benchmark_named(name)
    form = MakeItems(benchmark, posted(request))
    context: dict[str, Any] = {"benchmark": benchmark, "form": form}
    if form.is_valid():
        with faults_in(form):
            context["step"] = _step(form, request)
    context |= {"there": _existing(benchmark), "aside": bool(request.htmx)}
    return bank_page(request, "bank/_items-made.html" if context["aside"] else "bank/items.html", context)


@requires("write-bank", of=BY_NAME)
@require_POST
def items_count(request: HttpRequest, name: str) -> HttpResponse:
    """How many items the form would make."""
    form = MakeItems(benchmark_named(name), request.POST)
    context: dict[str, Any] = {"form": form}
    if form.is_valid():
        with faults_in(form):
            plan = form.plan()
            context |= {"items": plan.count(), "samples": len(plan.samples), "models": len(plan.wanted)}
    return render(request, "bank/_items-count.html", context)


def _step(form: MakeItems, request: HttpRequest) -> dict[str, Any]:
    """Make the next items: what is done so far and how to continue."""
    plan = form.plan()
    start = min(_number(request.POST.get("after", "")), len(plan.samples))
    made, after = make_some(plan, after=start)
    fields = [(key, value) for key in form.fields for value in request.POST.getlist(key)]
    return {
        "made": _number(request.POST.get("made", "")) + made,
        "after": after,
        "samples": len(plan.samples),
        "done": after >= len(plan.samples),
        "fields": fields,
    }


def _existing(benchmark: Benchmark) -> list[tuple[str, int, bool]]:
    """For each kind: its name, how many items there are, and whether there are more than were counted."""
    counted = []
    for kind, word in WORDS.items():
        items = Item.objects.filter(sample__benchmark=benchmark, kind=kind).order_by()
        n = items.values("pk")[: MOST_COUNTED + 1].count()
        counted.append((word, min(n, MOST_COUNTED), n > MOST_COUNTED))
    return counted


def _number(text: str) -> int:
    return whole_number(text, below=10**9) or 0
