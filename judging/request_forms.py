"""What runs of every kind may choose: the part of the benchmark, the request, where answers come from."""

from typing import Any

from django import forms

from accounts.forms import Styled
from bank.forms import BenchmarkChoice
from bank.models import Benchmark
from judging import item_sets, prompts, queries
from judging.collecting import COLLECTORS
from judging.protocols.settings import DETAILS, EFFORTS

DASH = "–"
REQUEST = ("top_p", "seed", "max_tokens", "reasoning_effort", "image_size", "detail")
PART = ("split", "level", "campaign", "run", "sample")
ORDINARY = ("", "As the endpoint has it")


def _offered(values: str, **shown: Any) -> forms.CharField:
    """A text with the values that the page offers under this name, see ``RequestForm.parts``."""
    return forms.CharField(required=False, widget=forms.TextInput(attrs={"list": values}), **shown)


class RequestForm(Styled):
    """``item_set`` and ``request`` give the settings as they were chosen."""

    temperature = forms.CharField(
        max_length=10,
        required=False,
        help_text="Empty: as the protocol has it, mostly 0. A dash where the endpoint takes none.",
    )
    top_p = forms.FloatField(
        min_value=0, max_value=1, required=False, label="Top p", help_text="Empty: as the endpoint has it."
    )
    split = _offered("splits", max_length=100, label="Split only", help_text="Empty: all.")
    level = _offered("levels", max_length=200, label="Level only", help_text="With all below it.")
    sample = forms.IntegerField(min_value=1, required=False, label="A sample of", help_text="Drawn by the seed.")
    sample_seed = forms.IntegerField(min_value=0, required=False, label="Seed of the sample", help_text="Empty: 0.")
    seed = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, required=False, label="Seed of the calls", help_text="Where it is taken."
    )
    max_tokens = forms.IntegerField(
        min_value=1, max_value=1_000_000, required=False, label="Longest reply", help_text="Tokens, thinking included."
    )
    reasoning_effort = forms.ChoiceField(choices=[ORDINARY, *((name, name) for name in EFFORTS)], required=False)
    image_size = forms.IntegerField(
        min_value=64, max_value=8_192, required=False, label="Longest edge", help_text="Pixels. Empty: as stored."
    )
    detail = forms.ChoiceField(
        choices=[ORDINARY, *((name, name) for name in DETAILS)], required=False, label="Detail of pictures"
    )
    limit = forms.IntegerField(
        min_value=1, required=False, label="First items only", help_text="A number, to try things out. Empty: all."
    )
    budget = forms.FloatField(
        min_value=0.000001,
        required=False,
        label="Budget, US dollars",
        help_text="The run pauses before it is overspent.",
    )
    reuse = forms.BooleanField(required=False, label="Answer identical calls from stored ones, at no cost")
    batched = forms.BooleanField(
        required=False, label="Hand calls in by the endpoint's batch interface: cheaper, within a day"
    )
    new = forms.BooleanField(required=False, label="Another run, even if the same was made before")

    TICKS: tuple[str, ...] = ("reuse", "batched", "new")

    @property
    def ticks(self) -> list[Any]:
        return [self[name] for name in self.TICKS if name in self.fields]

    @property
    def others(self) -> list[Any]:
        return [field for field in self if field.name not in self.TICKS]

    @property
    def parts(self) -> dict[str, list[str]]:
        """What the benchmark that is chosen, or would be, has to choose from: ``splits`` and ``levels``."""
        field = self.fields["benchmark"]
        assert isinstance(field, forms.ModelChoiceField)
        chosen = self["benchmark"].value()
        try:
            benchmark = field.clean(chosen) if chosen else next(iter(field.queryset or ()), None)
        except forms.ValidationError:
            benchmark = None
        return item_sets.parts(benchmark) if benchmark else {"splits": [], "levels": []}

    def request(self) -> dict[str, Any]:
        """The settings of the request and of the part of the benchmark; what was left empty is left out."""
        data = self.cleaned_data
        chosen = {name: data[name] for name in REQUEST if data.get(name) not in ("", None)}
        part = {name: data[name] for name in PART if data.get(name) not in ("", None)}
        if data.get("sample_seed") is not None:
            part["seed"] = data["sample_seed"]
        if models := [name for one in data.get("models", "").split(",") if (name := one.strip())]:
            part["models"] = models
        return chosen | self._temperature() | ({"items": part} if part else {})

    def _temperature(self) -> dict[str, Any]:
        """As typed: a dash is null, and what is no number goes on to the protocol, which says so."""
        typed = self.cleaned_data["temperature"].strip()
        if typed in ("", "-", DASH):
            return {"temperature": None} if typed else {}
        try:
            return {"temperature": float(typed)}
        except ValueError:
            return {"temperature": typed}


class CollectForm(RequestForm):
    """A new run that collects what a model writes."""

    kind = forms.ChoiceField(label="What", choices=[(one.name, one.title) for one in COLLECTORS.values()])
    endpoint = forms.ModelChoiceField(queryset=queries.judges_with_counts().none(), empty_label=None)
    benchmark = BenchmarkChoice(queryset=Benchmark.objects.all(), empty_label=None)
    model = forms.CharField(
        max_length=200,
        required=False,
        label="Name of the model",
        help_text="As boards will call it. Empty: the endpoint's.",
    )
    prompt = forms.ChoiceField()
    circular = forms.BooleanField(required=False, label="Options in every rotation, for circular evaluation")
    replace = forms.BooleanField(required=False, label="Replace descriptions that there are")

    TICKS = ("circular", "replace", "reuse", "batched", "new")
    field_order = ("kind", "endpoint", "benchmark", "model", "prompt")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        endpoint, prompt = self.fields["endpoint"], self.fields["prompt"]
        assert isinstance(endpoint, forms.ModelChoiceField)
        assert isinstance(prompt, forms.ChoiceField)
        endpoint.queryset = queries.judges_with_counts().exclude(base_url="")
        names = dict.fromkeys(name for kind in COLLECTORS for name in prompts.names(kind))
        prompt.choices = [(name, name) for name in names]

    def settings(self) -> dict[str, Any]:
        own = COLLECTORS[self.cleaned_data["kind"]].own
        chosen = {name: True for name in own if self.cleaned_data[name]}
        return {"prompt": self.cleaned_data["prompt"]} | chosen | self.request()
