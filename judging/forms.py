"""Forms of the judging pages. The actions and protocols check the values; the forms do not check them again."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from django import forms
from django.db.models import Exists, OuterRef
from django.utils.functional import cached_property

from accounts.forms import Styled
from accounts.webhooks import EVENTS
from bank.forms.benchmarks import FileShape
from bank.forms.fields import BenchmarkChoice, CleanCharField, long_text, tick
from bank.forms.folds import Fold
from bank.models import Benchmark, Item
from judging import protocols
from judging.collecting.collectors import COLLECTORS
from judging.endpoints.inputs import JudgeIn
from judging.extras import attacks
from judging.inputs import InputForm, fields_of, form_field
from judging.models import JURY, OVERLAP, Judge, PromptTemplate, Run
from judging.protocols import prompts
from judging.protocols.label import MAX_QUESTION, as_lines, categories_in
from judging.protocols.prompts.stored import TemplateIn, titles
from judging.protocols.settings import AS_PRINTED, BOUNDS, DETAILS, EFFORTS, NAMES, ONE_STEP, REQUEST
from judging.runs import item_sets, plan, queries, tryouts
from judging.runs.inputs import JuryIn, RunIn
from judging.webhooks import WebhookIn

MOST_NAMED = 5  # judges in a label
MOST_RUNS = 200  # to choose from
DASH = "–"
STEP_CALLS = "three-calls"  # in the form, the reasoning three-step with step_calls
ITEM_SET = ("split", "level", "campaign", "run", "sample")
ENDPOINT_DEFAULT = ("", "The endpoint's default")
PROTOCOL_DEFAULT = ("", "The protocol's default")


RUN = fields_of(RunIn)
JUDGE = fields_of(JudgeIn)
MEMBERS = fields_of(JuryIn)


def _text(label: str, help_text: str, **options: Any) -> forms.CharField:
    return forms.CharField(required=False, label=label, help_text=help_text, **options)


def _with_suggestions(values: str, label: str, help_text: str) -> forms.CharField:
    """A text field with suggestions from the page's list of that name, see ``RequestForm.parts``."""
    return _text(label, help_text, max_length=200, widget=forms.TextInput(attrs={"list": values}))


def _number(setting: str, label: str, help_text: str) -> forms.IntegerField:
    """A setting that is a number, within its bounds."""
    low, high = BOUNDS[setting]
    made = forms.FloatField if setting == "top_p" else forms.IntegerField
    return made(min_value=low, max_value=high, required=False, label=label, help_text=help_text)


def _drawn(least: int, label: str, help_text: str) -> forms.IntegerField:
    return forms.IntegerField(min_value=least, required=False, label=label, help_text=help_text)


def _choice(choices: Sequence[tuple[str, str]], label: str = "", help_text: str = "") -> forms.ChoiceField:
    return forms.ChoiceField(choices=choices, required=False, label=label or None, help_text=help_text)


class RequestForm(Styled):
    """The choices of runs of every kind: the part of the benchmark, the request, and where answers come from.

    ``request`` returns the settings as chosen.
    """

    temperature = _text("Temperature", "Empty: the protocol's default, usually 0. A dash: send none.", max_length=10)
    top_p = _number("top_p", "Top p", "Empty: the endpoint's default.")
    split = _with_suggestions("splits", "Split only", "Empty: all.")
    level = _with_suggestions("levels", "Level only", "Includes the levels below it.")
    sample = _drawn(1, "A sample of", "Drawn at random with the seed.")
    sample_seed = _drawn(0, "Seed of the sample", "Empty: 0.")
    seed = _number("seed", "Seed of the calls", "If the endpoint takes one.")
    max_tokens = _number("max_tokens", "Longest reply", "Tokens, including thinking.")
    reasoning_effort = _choice([ENDPOINT_DEFAULT, *((name, name) for name in EFFORTS)])
    image_size = _number("image_size", "Longest edge", "Pixels. Empty: as stored.")
    detail = _choice([ENDPOINT_DEFAULT, *((name, name) for name in DETAILS)], "Detail of pictures")
    ask_again = _number(
        "ask_again", "Ask again, times", "Where a reply breaks the format or refuses; each reply is kept."
    )
    as_printed = tick("As printed in the paper that asks so; what is chosen here comes first")
    limit = form_field(RUN["limit"], "First items only")
    budget = form_field(RUN["budget"], "Budget, US dollars")
    reuse = form_field(RUN["reuse"], "Answer identical calls from stored ones, at no cost")
    batched = form_field(RUN["batched"], "Use the endpoint's batch interface: cheaper, within a day")
    new = form_field(RUN["new"], "Start a new run even if the same run exists")

    TICKS: tuple[str, ...] = ("as_printed", "reuse", "batched", "new")
    IN_SIGHT: tuple[str, ...] = ()  # in sight at once
    IN_SIGHT_LAST: tuple[str, ...] = ()  # in sight, too, after the protocol
    FOLDS: Mapping[str, tuple[str, ...]] = {}

    def _named(self, names: Sequence[str]) -> list[forms.BoundField]:
        return [self[name] for name in names if name in self.fields]

    @property
    def ticks(self) -> list[forms.BoundField]:
        return self._named(self.TICKS)

    @property
    def in_sight(self) -> list[forms.BoundField]:
        return self._named(self.IN_SIGHT)

    @property
    def in_sight_last(self) -> list[forms.BoundField]:
        return self._named(self.IN_SIGHT_LAST)

    @property
    def folds(self) -> list[Fold]:
        """The other fields by topic."""
        folds = []
        for title, names in self.FOLDS.items():
            fields = self._named(names)
            set_fields = [f"{field.label} {_chosen(field)}".lower() for field in fields if _chosen(field)]
            said = ", ".join(set_fields) or ("all" if "split" in names else "as the protocol has it")
            if fields:
                folds.append(Fold(title, fields, said))
        return folds

    @property
    def parts(self) -> dict[str, list[str]]:
        """The ``splits`` and ``levels`` of the chosen benchmark, or of the default one."""
        benchmark = self.chosen("benchmark")
        return item_sets.parts(benchmark) if benchmark else {"splits": [], "levels": []}

    def chosen(self, name: str) -> Any:
        """The row chosen in a field, be the rest of the form right or not; without a choice the field's first one."""
        field: Any = self.fields[name]
        value = self[name].value()
        try:
            return field.clean(getattr(value, "pk", value)) if value else next(iter(field.queryset or ()), None)
        except forms.ValidationError:
            return None

    def settings(self) -> dict[str, Any]:
        """The settings as chosen, with the part of the benchmark."""
        return self.request()

    def as_input(self) -> dict[str, Any]:
        """The data that ``RunIn`` takes."""
        data = self.cleaned_data
        shared = {name: data[name] for name in ("limit", "budget", "new", "reuse", "batched")}
        return shared | {"benchmark": str(data["benchmark"]), "settings": self.settings()}

    def request(self) -> dict[str, Any]:
        """The settings of the request and the part of the benchmark, without empty values."""
        data = self.cleaned_data
        part = _filled(data, ITEM_SET)
        if data.get("sample_seed") is not None:
            part["seed"] = data["sample_seed"]
        if models := [name for part in data.get("models", "").split(",") if (name := part.strip())]:
            part["models"] = models
        printed = {AS_PRINTED: True} if data.get(AS_PRINTED) else {}
        return _filled(data, REQUEST) | self._temperature() | printed | ({"items": part} if part else {})

    def _temperature(self) -> dict[str, Any]:
        """As typed. A dash means null; anything else that is not a number is left for the protocol to refuse."""
        typed = self.cleaned_data["temperature"].strip()
        if typed in ("", "-", DASH):
            return {"temperature": None} if typed else {}
        try:
            return {"temperature": float(typed)}
        except ValueError:
            return {"temperature": typed}


ITEMS = ("split", "level", "models", "campaign", "run", "sample", "sample_seed", "limit")
SAMPLING = ("temperature", "top_p", "seed", "max_tokens", "reasoning_effort", "ask_again")


def _filled(data: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: data[name] for name in names if data.get(name) not in ("", None)}


def _chosen(field: forms.BoundField) -> str:
    """The field's value as people read it; empty where it is the default."""
    value = field.value()
    choices = dict(getattr(field.field, "choices", ()))
    if value in (None, "") or (choices and value == next(iter(choices))):
        return ""
    return str(choices.get(value, value)).partition("\n")[0][:60]


class CollectForm(RequestForm):
    """A new run that collects a model's responses or descriptions of images."""

    IN_SIGHT = ("kind", "endpoint", "benchmark", "model", "prompt", "budget")
    FOLDS = MappingProxyType(
        {
            "Which samples": ITEMS,
            "Prompt": ("components",),
            "Sampling": SAMPLING,
            "Pictures": ("image_size", "detail"),
        }
    )

    kind = forms.ChoiceField(
        label="What", choices=[(collector.name, collector.title) for collector in COLLECTORS.values()]
    )
    endpoint = forms.ModelChoiceField(queryset=queries.judges_with_counts().exclude(base_url=""), empty_label=None)
    benchmark = BenchmarkChoice(queryset=Benchmark.objects.all(), empty_label=None)
    model = _text("Name of the model", "As boards will show it. Empty: the endpoint's model.", max_length=200)
    prompt = forms.ChoiceField()
    components = _text(
        "Components",
        "For the prompt composed: one a line, with its weight, such as “length limit: 2”.",
        max_length=2_000,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    circular = tick("Options in every rotation, for circular evaluation")
    stop_rotations = tick("Stop the rotations of a question after a wrong one, where its key is open to everybody")
    no_pictures = tick("Without the pictures, as a model of its own: what the text alone gives away")
    replace = tick("Replace existing descriptions")

    TICKS = ("as_printed", "circular", "stop_rotations", "no_pictures", "replace", "reuse", "batched", "new")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        prompt: Any = self.fields["prompt"]
        names = [name for kind in COLLECTORS for name in prompts.names(kind)]
        prompt.choices = [(name, name) for name in dict.fromkeys([*names, *prompts.stored_names("responses")])]

    def settings(self) -> dict[str, Any]:
        own = COLLECTORS[self.cleaned_data["kind"]].own_settings
        chosen = {name: True for name in own if self.cleaned_data[name]}
        composed = {"components": self.cleaned_data["components"]} if self.cleaned_data["components"] else {}
        return {"prompt": self.cleaned_data["prompt"]} | chosen | composed | self.request()

    def as_input(self) -> dict[str, Any]:
        data = self.cleaned_data
        return super().as_input() | {"kind": data["kind"], "judge": data["endpoint"].name, "model": data["model"]}

    def clean_components(self) -> dict[str, float]:
        components = {}
        for line in filter(None, map(str.strip, self.cleaned_data["components"].splitlines())):
            name, _, weight = line.rpartition(":")
            try:
                components[name.strip() or weight.strip()] = float(weight) if name else 1.0
            except ValueError:
                raise forms.ValidationError(f"{line[:60]!r} does not end with a weight, such as “: 2”.") from None
        return components


class JudgeChoice(forms.ModelChoiceField):
    """A judge by what readers call it."""

    def label_from_instance(self, judge: Any) -> str:
        return str(judge.titled)


class RunForm(RequestForm):
    """A new run of a judge. ``settings`` returns the protocol's settings as chosen."""

    IN_SIGHT = ("judge", "benchmark")
    IN_SIGHT_LAST = ("budget",)
    FOLDS = MappingProxyType(
        {
            "Which items": ITEMS,
            "Prompt": ("prompt", "order", "reasoning", "criteria", "repeats", "unanswered", "question", "categories"),
            "Pictures": ("context", "image_size", "detail"),
            "Sampling": SAMPLING,
        }
    )

    judge = JudgeChoice(queryset=queries.judges_with_counts().exclude(base_url="", baseline=""), empty_label=None)
    benchmark = BenchmarkChoice(queryset=Benchmark.objects.all(), empty_label=None)
    protocol = forms.ChoiceField()  # drawn with what each means
    order = _choice(
        [
            PROTOCOL_DEFAULT,
            ("both", "Both orders"),
            ("shuffled", "One order, shuffled"),
            ("fixed", "One order, as stored"),
        ],
        help_text="Both orders show position bias and cost two calls per item.",
    )
    prompt = forms.ChoiceField()
    reasoning = _choice(
        [
            PROTOCOL_DEFAULT,
            ("none", "Verdict only"),
            ("first", "Reasons, then the verdict"),
            ("after", "The verdict, then reasons"),
            ("three-step", "Three steps, then the verdict"),
            (STEP_CALLS, "Three steps, each in a call of its own"),
            *((name, f"A step on {name.replace('-', ' ')} in a call of its own, then reasons") for name in ONE_STEP),
        ]
    )
    context = _choice(
        [
            PROTOCOL_DEFAULT,
            ("image", "Pictures"),
            ("none", "No pictures"),
            ("caption", "Descriptions of the pictures"),
            ("objects", "Objects found in the pictures"),
            ("caption+objects", "Descriptions and objects"),
        ],
        label="What the judge sees",
        help_text="Besides the texts.",
    )
    criteria = forms.TypedChoiceField(
        choices=[PROTOCOL_DEFAULT, ("yes", "Shown to the judge"), ("no", "Kept from the judge")],
        coerce=lambda value: value == "yes",
        empty_value="",
        required=False,
        label="Hidden criteria",
    )
    question = CleanCharField(
        required=False,
        max_length=MAX_QUESTION,
        help_text="About each text or picture. Empty: which category it belongs to.",
    )
    categories = long_text(
        5, "positive: likes it", help_text="One per line: a name, or a name, a colon and what it means."
    )
    repeats = _number("repeats", "Repeats", "Empty: the protocol's default, usually 1.")
    unanswered = _choice(
        [("", "No verdict"), ("loses", "They lose: the lowest verdict"), ("asked", "Whatever the judge says")],
        "Answers that are empty, refused or an error",
        "Only the last costs a call.",
    )

    models = _text("Models only", "Names separated by commas. Empty: all.", max_length=2_000)
    campaign = _choice([], "Campaign only", "The items labelled in it.")
    run = forms.TypedChoiceField(
        required=False, coerce=int, empty_value=None, label="Items of run", help_text="The items that it judged."
    )
    structured = tick()

    TICKS = ("structured", *RequestForm.TICKS)
    PROTOCOLS: tuple[str, ...] = tuple(protocols.all_by_name())

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        fields: dict[str, Any] = self.fields
        tested = list(Judge.objects.filter(abilities__json_schema=True).values_list("name", flat=True)[:MOST_NAMED])
        if tested:
            words = f"Require a JSON schema. Tested judges that follow one: {', '.join(tested)}"
            fields["structured"].label = words
        else:
            del fields["structured"]
        # The overlap baseline needs criteria, which few protocols show.
        fields["judge"].initial = fields["judge"].queryset.exclude(baseline=OVERLAP).first()
        with_items = Exists(Item.objects.filter(sample__benchmark=OuterRef("pk")))
        fields["benchmark"].initial = Benchmark.objects.filter(with_items).first()
        fields["protocol"].choices = [(name, protocols.get(name).title) for name in self.PROTOCOLS]
        names = {name: name for protocol in protocols.all_by_name() for name in prompts.names(protocol)}
        for row in PromptTemplate.objects.defer("text"):
            names[f"{row.name}@{row.version}"] = f"{row.name} {row.version}, for {row.protocol}"
        fields["prompt"].choices = list(names.items())
        of_campaigns = Benchmark.objects.filter(campaigns__isnull=False).order_by("campaigns__name")
        titles_by_name = of_campaigns.values_list("campaigns__name", "title")
        fields["campaign"].choices = [("", "All"), *((name, f"{name}, {title}") for name, title in titles_by_name)]
        runs = Run.objects.filter(kind=Run.Kind.JUDGMENTS).select_related("judge", "benchmark").order_by("-pk")
        numbers = [
            (run.pk, f"{run.pk}: {run.judge.titled}, {run.protocol}, {run.benchmark.title}") for run in runs[:MOST_RUNS]
        ]
        fields["run"].choices = [("", "None"), *numbers]

    @cached_property
    def offers(self) -> Sequence[plan.Offer]:
        """Items for the chosen judge on the chosen benchmark, by protocol."""
        benchmark = self.chosen("benchmark")
        return plan.offers(judge=self.chosen("judge"), benchmark=benchmark, names=self.PROTOCOLS) if benchmark else []

    @property
    def possible(self) -> list[plan.Offer]:
        """The protocols that can be chosen."""
        return [offer for offer in self.offers if not offer.problem]

    @property
    def impossible(self) -> list[plan.Offer]:
        """Those that cannot, each with its reason."""
        return [offer for offer in self.offers if offer.problem]

    @property
    def protocol_chosen(self) -> str:
        """The protocol chosen; where that cannot be, or nothing was chosen, the first that can."""
        possible = [offer.protocol.name for offer in self.possible]
        value = str(self["protocol"].value() or "")
        return value if value in possible or not possible else possible[0]

    def settings(self) -> dict[str, Any]:
        """The settings as chosen, without those that the protocol fixes."""
        protocol = protocols.get(self.cleaned_data["protocol"])
        fixed = {*protocol.fixed, *(["order"] if protocol.answers == 1 else [])}
        chosen = {name: self.cleaned_data[name] for name in NAMES if name not in (*fixed, "step_calls")}
        if chosen.get("reasoning") == STEP_CALLS:
            chosen |= {"reasoning": "three-step", "step_calls": True}
        elif chosen.get("reasoning") in ONE_STEP:
            chosen |= {"reasoning": "first", "step_calls": chosen["reasoning"]}
        if "categories" in protocol.own_settings:
            chosen |= {"question": self.cleaned_data["question"]}
            chosen |= {"categories": categories_in(self.cleaned_data["categories"])}
        usual = ("", None, "default")  # so that a paper's own prompt is asked
        return {name: value for name, value in chosen.items() if value not in usual} | self.request()

    def as_input(self) -> dict[str, Any]:
        data = self.cleaned_data
        return super().as_input() | {"judge": data["judge"].name, "protocol": data["protocol"]}

    def clean(self) -> dict[str, Any]:
        data = super().clean() or self.cleaned_data
        judge = data.get("judge")
        if data.get("structured") and judge and judge.abilities.get("json_schema") is not True:
            words = f"No test has shown that {judge.name} follows a JSON schema: test it, or do not require one."
            self.add_error("judge", words)
        return data


class AttackForm(RunForm):
    """A new run that tests a judge with attacks."""

    PROTOCOLS = attacks.PROTOCOLS
    question = categories = None  # type: ignore[assignment]  # no attack on that protocol

    attacks = forms.MultipleChoiceField(
        choices=[(key, f"{attack.name}: {attack.title}") for key, attack in attacks.ALL.items()],
        widget=forms.CheckboxSelectMultiple,
        required=False,
        label="Attacks",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        judge: Any = self.fields["judge"]
        judge.queryset = judge.queryset.exclude(baseline=OVERLAP)
        self.fields["sample"].initial = attacks.DEFAULT_SAMPLE

    def clean(self) -> dict[str, Any]:
        data = super().clean()
        judge, chosen = data.get("judge"), data.get("attacks") or ()
        pictures = not (judge and judge.baseline) and data.get("context") in ("", "image")
        if set(chosen) == set(attacks.ALL) and not pictures:  # all attacks are chosen: use those that apply
            data["attacks"] = attacks.canonical((), pictures=False)
        return data

    def as_input(self) -> dict[str, Any]:
        return super().as_input() | {"kind": Run.Kind.ATTACKS, "attacks": self.cleaned_data["attacks"]}

    @property
    def boxes(self) -> Any:
        return self["attacks"]


def as_form(run: Run) -> dict[str, Any]:
    """A run's settings and items as initial values for the form of a new run."""
    settings = run.settings
    initial = {name: settings[name] for name in RunForm.base_fields if settings.get(name) is not None}
    initial |= {name: getattr(run, name) for name in ("protocol", "budget", "reuse", "batched")}
    initial |= {"judge": run.judge_id, "benchmark": run.benchmark_id}
    initial |= _items_as_form(run) | {"new": True, "categories": as_lines(settings.get("categories", ()))}
    if settings.get("step_calls"):
        initial["reasoning"] = STEP_CALLS if settings["step_calls"] is True else settings["step_calls"]
    if "criteria" in settings:
        initial["criteria"] = "yes" if settings["criteria"] else "no"
    if "temperature" in settings:
        initial["temperature"] = DASH if settings["temperature"] is None else f"{settings['temperature']:g}"
    return initial


def _items_as_form(run: Run) -> dict[str, Any]:
    """The form values that select the run's items again; the run itself if its item set no longer does."""
    item_set = dict(run.item_set)
    try:
        is_same = tryouts.items_of(run).count() == run.run_items.count()
    except item_sets.BadItemSet:
        is_same = False
    models, seed = item_set.pop("models", []), item_set.pop("seed", None)
    if not is_same or "ids" in item_set or any("," in name for name in models):
        return {"run": run.pk}
    return item_set | {"sample_seed": seed, "models": ", ".join(models)}


class WebhookForm(InputForm):
    """An address and what it is told of."""

    takes = WebhookIn
    labels = MappingProxyType({"url": "Address"})

    events = forms.MultipleChoiceField(
        choices=[(event, words) for event, words in EVENTS.items()],
        widget=forms.CheckboxSelectMultiple,
        label="It is told when",
        error_messages={"required": "Choose what it is told of."},
    )


class JudgeForm(InputForm):
    """A judge behind an endpoint."""

    takes = JudgeIn
    labels = MappingProxyType(
        {
            "base_url": "Address",
            "key_env": "Variable with the key",
            "key_header": "Header of the key",
            "query": "Query string",
            "concurrency": "Calls at once",
            "timeout": "Seconds one call may take",
            "rpm": "Calls a minute",
            "tpm": "Tokens a minute",
            "waits": "Minutes before it is tried again",
            "give_up_after": "Minutes until a run gives up",
            "price_in": "Price of tokens sent",
            "price_cached": "Price of tokens sent again",
            "price_out": "Price of tokens received",
        }
    )

    key = form_field(JUDGE["key"], "Key", widget=forms.PasswordInput(attrs={"autocomplete": "off"}))
    headers = form_field(JUDGE["headers"], "Headers", widget=forms.Textarea(attrs={"rows": 2}))

    USUAL = ("name", "base_url", "model", "family", "key", "key_env")

    @property
    def usual(self) -> list[forms.BoundField]:
        return [self[name] for name in self.USUAL]

    @property
    def rest(self) -> list[forms.BoundField]:
        return [field for field in self if field.name not in self.USUAL]


class RunsChoice(forms.ModelMultipleChoiceField):
    """Runs, labelled with what distinguishes them."""

    def label_from_instance(self, run: Any) -> str:
        order = {"both": "both orders"}.get(run.orders, run.orders)
        return f"{run.pk}: {run.judge.titled} on {run.benchmark}, {run.protocol}, {order}, {run.state}"


class JuryForm(Styled):
    """A jury: a name and one run of each member."""

    name = form_field(MEMBERS["name"], None)
    runs = RunsChoice(
        queryset=Run.objects.filter(kind=Run.Kind.JUDGMENTS)
        .exclude(judge__baseline=OVERLAP)
        .exclude(settings__has_key=JURY)
        .select_related("judge", "benchmark")
        .order_by("benchmark", "protocol", "judge__name", "pk"),
        widget=forms.CheckboxSelectMultiple,
        label="Members",
        help_text=MEMBERS["runs"].help_text,
    )


class SelectionForm(Styled):
    """How a selection of judgments is exported."""

    shape = FileShape(rows=True)
    analyses = tick("Include what the judges wrote: analyses and raw replies")
    reason = CleanCharField(
        required=False, max_length=500, help_text="Required with analyses. It goes into the access log with your name."
    )

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if data.get("analyses") and not (data.get("reason") or "").strip():
            self.add_error("reason", "Give a reason: an analysis can quote hidden criteria.")
        return data


class TemplateForm(InputForm):
    """A version of a prompt template."""

    takes = TemplateIn

    protocol = forms.ChoiceField(choices=list(titles().items()))
    text = CleanCharField(
        label="Template", widget=forms.Textarea(attrs={"rows": 30, "spellcheck": "false"}), strip=False
    )
    as_published = tick("A paper's prompt as published: without fences, which boards made with it say")


class PreviewForm(forms.Form):
    """A draft of a template and the sample to preview it with."""

    as_published = tick()
    protocol = forms.CharField(max_length=40)
    text = CleanCharField(strip=False)
    benchmark = forms.ModelChoiceField(queryset=Benchmark.objects.all(), required=False)
    sample = forms.CharField(max_length=200, required=False)
    criteria = tick()
    reasoning = forms.CharField(max_length=20, required=False)
