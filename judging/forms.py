"""Forms of the judging pages. What they take is checked by the actions and the protocols, not a second time here."""

from typing import Any

from django import forms

from accounts.forms import Styled
from bank.forms.benchmarks import FileShape
from bank.forms.fields import BenchmarkChoice, CleanCharField
from bank.models import Benchmark, Item
from judging import protocols
from judging.models import OVERLAP, Judge, PromptTemplate, Run
from judging.protocols import prompts
from judging.protocols.settings import DETAILS, EFFORTS, NAMES
from judging.runs import attacks, item_sets, plan, queries
from judging.runs.collecting import COLLECTORS
from judging.runs.juries import SETTING

NAMED = 5  # judges in a label
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
        own = COLLECTORS[self.cleaned_data["kind"]].own_settings
        chosen = {name: True for name in own if self.cleaned_data[name]}
        return {"prompt": self.cleaned_data["prompt"]} | chosen | self.request()


class RunForm(RequestForm):
    """A new run. ``settings`` gives the protocol's settings as they were chosen."""

    field_order = (
        *("judge", "benchmark", "protocol", "order", "prompt", "reasoning", "context", "criteria", "repeats"),
        *("temperature", "top_p", "split", "level", "models", "campaign", "run", "sample", "sample_seed"),
    )

    judge = forms.ModelChoiceField(queryset=Judge.objects.none(), empty_label=None)
    benchmark = BenchmarkChoice(queryset=Benchmark.objects.all(), empty_label=None)
    protocol = forms.ChoiceField()
    order = forms.ChoiceField(
        choices=[
            ("", "As the protocol has it"),
            ("both", "Both orders"),
            ("shuffled", "One order, shuffled"),
            ("fixed", "One order, as stored"),
        ],
        required=False,
        help_text="Both orders show position bias and cost two calls an item.",
    )
    prompt = forms.ChoiceField()
    reasoning = forms.ChoiceField(
        choices=[
            ("", "As the protocol has it"),
            ("none", "Verdict only"),
            ("first", "Reasons, then the verdict"),
            ("after", "The verdict, then reasons"),
            ("three-step", "Three steps, then the verdict"),
        ],
        required=False,
    )
    context = forms.ChoiceField(
        choices=[
            ("", "As the protocol has it"),
            ("image", "Pictures"),
            ("none", "No pictures"),
            ("caption", "Descriptions of the pictures"),
            ("objects", "Objects found in the pictures"),
            ("caption+objects", "Descriptions and objects"),
        ],
        required=False,
        help_text="What the judge sees beside the texts.",
    )
    criteria = forms.TypedChoiceField(
        choices=[("", "As the protocol has it"), ("yes", "Shown to the judge"), ("no", "Kept from the judge")],
        coerce=lambda value: value == "yes",
        empty_value="",
        required=False,
        label="Hidden criteria",
    )
    repeats = forms.IntegerField(
        min_value=1, max_value=100, required=False, help_text="Empty: as the protocol has it, mostly 1."
    )

    models = forms.CharField(
        max_length=2_000, required=False, label="Models only", help_text="Names with commas between them. Empty: all."
    )
    campaign = forms.CharField(
        max_length=200, required=False, label="Campaign only", help_text="Its name: what its people label."
    )
    run = forms.IntegerField(
        min_value=1, required=False, label="Items of run", help_text="Its number: the items that it was made over."
    )
    structured = forms.BooleanField(required=False)

    TICKS = ("structured", *RequestForm.TICKS)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        able = list(Judge.objects.filter(abilities__json_schema=True).values_list("name", flat=True)[:NAMED])
        if able:
            self.fields["structured"].label = f"Held to a JSON schema. Seen to keep to one: {', '.join(able)}"
        else:
            del self.fields["structured"]
        known = protocols.all_by_name()
        judges = self.fields["judge"]
        assert isinstance(judges, forms.ModelChoiceField)
        judges.queryset = queries.judges_with_counts().exclude(base_url="", baseline="")
        self._choices("protocol", [(name, protocol.title) for name, protocol in known.items()])
        names = {name: name for protocol in known for name in prompts.names(protocol)}
        for row in PromptTemplate.objects.defer("text"):
            names[f"{row.name}@{row.version}"] = f"{row.name} {row.version}, for {row.protocol}"
        self._choices("prompt", list(names.items()))

    def _choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, forms.ChoiceField)
        field.choices = choices

    def settings(self) -> dict[str, Any]:
        """The settings as chosen, without those that the protocol does not leave open."""
        protocol = protocols.get(self.cleaned_data["protocol"])
        closed = {*protocol.fixed, *(["order"] if protocol.kind == Item.Kind.SCORE else [])}
        chosen = {name: self.cleaned_data[name] for name in NAMES if name not in closed}
        return {name: value for name, value in chosen.items() if value not in ("", None)} | self.request()

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        judge = data.get("judge")
        if data.get("structured") and judge and judge.abilities.get("json_schema") is not True:
            words = f"{judge.name} was not seen to keep to a JSON schema: test it, or do not hold it to one."
            self.add_error("judge", words)
        return data

    def request(self) -> dict[str, Any]:
        return super().request() | ({"structured": True} if self.cleaned_data.get("structured") else {})


class AttackForm(RunForm):
    """A new run that tries a judge with attacks."""

    attacks = forms.MultipleChoiceField(
        choices=[(key, f"{attack.name}: {attack.title}") for key, attack in attacks.ALL.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="Attacks",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        judge = self.fields["judge"]
        assert isinstance(judge, forms.ModelChoiceField)
        judge.queryset = judge.queryset.exclude(baseline=OVERLAP) if judge.queryset is not None else None
        known = protocols.all_by_name()
        self._choices("protocol", [(name, known[name].title) for name in attacks.PROTOCOLS])
        self.fields["sample"].initial = attacks.SAMPLE

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        judge, chosen = data.get("judge"), data.get("attacks") or ()
        pictures = not (judge and judge.baseline) and data.get("context") in ("", "image")
        if set(chosen) == set(attacks.ALL) and not pictures:  # all there are: of those that can be tried
            data["attacks"] = attacks.canonical((), pictures=False)
        return data

    @property
    def others(self) -> list[Any]:
        return [field for field in super().others if field.name != "attacks"]

    @property
    def boxes(self) -> Any:
        return self["attacks"]


def as_form(run: Run) -> dict[str, Any]:
    """A run's choices as the form of a new one holds them, down to its items."""
    settings = run.settings
    same = (
        "order",
        "reasoning",
        "context",
        "repeats",
        "top_p",
        "seed",
        "max_tokens",
        "reasoning_effort",
        "image_size",
        "detail",
        "structured",
    )
    chosen = {name: settings[name] for name in same if settings.get(name) is not None}
    chosen |= _items_as_form(run) | {"reuse": run.reuse, "batched": run.batched}
    chosen |= {"judge": run.judge_id, "benchmark": run.benchmark_id, "protocol": run.protocol, "new": True}
    chosen |= {"prompt": settings.get("prompt", "default"), "budget": run.budget}
    if "criteria" in settings:
        chosen["criteria"] = "yes" if settings["criteria"] else "no"
    if "temperature" in settings:
        chosen["temperature"] = DASH if settings["temperature"] is None else f"{settings['temperature']:g}"
    return chosen


def _items_as_form(run: Run) -> dict[str, Any]:
    """What makes the run's items once more; the run itself where its set does not, or not any more."""
    item_set = dict(run.item_set)
    covered = plan.judgeable_items(benchmark=run.benchmark, kind=protocols.get(run.protocol).kind)
    try:
        same = item_sets.items(item_set, benchmark=run.benchmark, query=covered).count() == run.run_items.count()
    except item_sets.BadItemSet:
        same = False
    models, seed = item_set.pop("models", []), item_set.pop("seed", None)
    if not same or "ids" in item_set or any("," in name for name in models):
        return {"run": run.pk}
    return item_set | {"sample_seed": seed, "models": ", ".join(models)}


class JudgeForm(Styled):
    """A judge behind an endpoint."""

    name = forms.CharField(max_length=200, help_text="As boards and files will call it.")
    base_url = forms.CharField(
        max_length=500, label="Address", help_text="Up to the version, e.g. https://api.openai.com/v1"
    )
    model = forms.CharField(max_length=200, help_text="As the endpoint calls it.")
    key_env = forms.CharField(
        max_length=100,
        required=False,
        label="Variable with the key",
        help_text="The name of a variable in the worker's environment, e.g. OPENAI_API_KEY. Never the key itself.",
    )
    concurrency = forms.IntegerField(initial=16, min_value=1, max_value=1024, label="Calls at once")
    timeout = forms.IntegerField(initial=120, min_value=1, max_value=3600, label="Seconds one call may take")
    rpm = forms.IntegerField(min_value=1, required=False, label="Calls a minute", help_text="Empty: no limit.")
    tpm = forms.IntegerField(min_value=1, required=False, label="Tokens a minute", help_text="Empty: no limit.")
    price_in = forms.FloatField(
        min_value=0, required=False, label="Price of tokens sent", help_text="US dollars per million."
    )
    price_out = forms.FloatField(
        min_value=0, required=False, label="Price of tokens received", help_text="US dollars per million."
    )
    family = forms.CharField(
        max_length=100, required=False, help_text="Of the model, for the bias towards its own family."
    )


class RunsChoice(forms.ModelMultipleChoiceField):
    """Runs with what tells them apart."""

    def label_from_instance(self, run: Any) -> str:
        order = {"both": "both orders"}.get(run.orders, run.orders)
        return f"{run.pk}: {run.judge} on {run.benchmark}, {run.protocol}, {order}, {run.state}"


class JuryForm(Styled):
    """A jury: a name, and one run of each member."""

    name = forms.CharField(max_length=200, help_text="As boards and files will call it.")
    runs = RunsChoice(
        queryset=Run.objects.none(), widget=forms.CheckboxSelectMultiple, label="Members", help_text="One run of each."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["runs"]
        assert isinstance(field, forms.ModelMultipleChoiceField)
        runs = Run.objects.filter(kind=Run.Kind.JUDGMENTS).exclude(judge__baseline=OVERLAP)
        runs = runs.exclude(settings__has_key=SETTING).select_related("judge", "benchmark")
        field.queryset = runs.order_by("benchmark", "protocol", "judge__name", "pk")


class SelectionForm(Styled):
    """How a selection of judgments leaves."""

    shape = FileShape()
    analyses = forms.BooleanField(required=False, label="With what the judges wrote: analyses and raw replies")
    reason = CleanCharField(
        required=False, max_length=500, help_text="Needed with analyses. It stands in the access log with your name."
    )

    def clean(self) -> dict[str, Any]:
        given = super().clean() or {}
        if given.get("analyses") and not (given.get("reason") or "").strip():
            self.add_error("reason", "Say why: an analysis can quote hidden criteria.")
        return given


class TemplateForm(Styled):
    """A version of a prompt template."""

    protocol = forms.ChoiceField()
    name = forms.CharField(
        max_length=40, help_text="Small letters, digits, hyphens. A name that exists gets its next version."
    )
    text = CleanCharField(
        label="Template", widget=forms.Textarea(attrs={"rows": 30, "spellcheck": "false"}), strip=False
    )
    note = CleanCharField(max_length=300, required=False, help_text="What is different, for those who choose.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["protocol"]
        assert isinstance(field, forms.ChoiceField)
        field.choices = [(name, protocol.title) for name, protocol in protocols.all_by_name().items()]


class PreviewForm(forms.Form):
    """A draft of a template, and the real sample to see it with."""

    protocol = forms.CharField(max_length=40)
    text = CleanCharField(strip=False)
    benchmark = forms.ModelChoiceField(queryset=Benchmark.objects.all(), required=False)
    sample = forms.CharField(max_length=200, required=False)
    criteria = forms.BooleanField(required=False)
    reasoning = forms.CharField(max_length=20, required=False)
