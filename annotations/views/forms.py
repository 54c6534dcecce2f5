"""Forms of the campaign pages. The actions validate the values; the forms do not repeat that."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import QueryDict
from django.utils.translation import gettext_lazy as lazy

from accounts.forms import Styled
from accounts.models import Role, User
from accounts.rules import Viewer, allowed, where, who
from annotations import ballots
from annotations.ballots import BadSettings, parse_number
from annotations.ballots.scores import marks_between
from annotations.campaigns import run_doubts, sampling
from annotations.campaigns.inputs import SETTINGS, bounds_of
from annotations.campaigns.sampling import Plan, parse_plan
from annotations.models import Campaign, Membership
from bank.errors import BadInput
from bank.forms.fields import BenchmarkChoice, CleanCharField, long_text, tick, whole_number
from bank.models import Benchmark, EvaluatedModel, Item, Response
from judging.models import Judge, Judgment, Run
from judging.protocols.label import MAX_QUESTION, as_lines, categories_in


@dataclass(frozen=True, slots=True)
class Scale:
    """What the form shows of a scale, with its steps as ballots have them. ``error`` says why there are none."""

    steps: list[dict[str, Any]]
    own: bool
    lowest: float
    highest: float
    step: float
    error: str = ""


class BallotForm(Styled):
    """The ballot's settings. Fields for other protocols are ignored."""

    allowed = forms.MultipleChoiceField(
        choices=[("tie", "Tie"), ("undecided", "Unable to decide, with the situation")],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Besides first and second",
        initial=["tie", "undecided"],
    )
    ties = tick("Answers may share a place")
    analyses = tick("Show the judge's analysis if it is released", initial=True)
    confidence = tick("Ask how sure they are")
    own_scale = tick("Custom scale")
    lowest = forms.FloatField(required=False, label="Lowest", widget=forms.NumberInput(attrs={"step": "any"}))
    highest = forms.FloatField(required=False, label="Highest", widget=forms.NumberInput(attrs={"step": "any"}))
    step = forms.FloatField(required=False, widget=forms.NumberInput(attrs={"step": "any", "min": "0"}))
    weight = forms.FloatField(
        required=False,
        label="Weight of parts without one",
        widget=forms.NumberInput(attrs={"step": "any", "min": "0"}),
        help_text="The benchmark's own weights take precedence. Empty: leave out samples without weights.",
    )
    weights = long_text(
        3, "length 4", label="Other weights for some parts", help_text="A part's key and its weight, one per line."
    )

    categories = long_text(
        5, "positive: likes it", help_text="One per line: a name, or a name, a colon and what it means."
    )
    question = CleanCharField(
        required=False,
        max_length=MAX_QUESTION,
        help_text="About each text or picture. Empty: which category fits.",
    )

    def ballot(self, protocol: str, benchmark: Benchmark) -> dict[str, Any]:
        """The settings in the form. ``asked`` tells that this part of the form was submitted. Raises BadInput."""
        data = self.cleaned_data
        settings: dict[str, Any] = {"confidence": data["confidence"]}
        if "asked" not in self.data:
            return settings
        names = ballots.get(protocol).setting_names
        typed = {name: data.get(name) for name in ("ties", "analyses", "weight", "question")}
        typed["choices"] = ["left", "right", *data["allowed"]]
        settings |= {name: value for name, value in typed.items() if name in names}
        if "weights" in names:
            settings["weights"] = _weights(data.get("weights") or "")
        if "categories" in names:
            settings["categories"] = categories_in(data["categories"])
        if "scale" in names and data["own_scale"]:
            settings["scale"] = self._own_steps(benchmark)
        return settings

    def _own_steps(self, benchmark: Benchmark) -> list[dict[str, Any]]:
        scale = self.scale(benchmark)
        if scale.error:
            raise BadInput(scale.error)
        return scale.steps

    def scale(self, benchmark: Benchmark | None) -> Scale:
        """The scale in the form: a custom one if ticked, else the benchmark's or the default one."""
        score, own_scale = ballots.get("score"), ballots.scale_of(benchmark) if benchmark else []
        default = score.default_settings(scale=own_scale)["scale"]
        if not self.is_bound:
            own = bool(self.initial.get("own_scale"))
            steps = self.initial["scale"] if own else default
            return Scale(steps=steps, own=own, **_ends(steps))
        data, ends = self.cleaned_data, _ends(default)
        ends |= {name: data[name] for name in ends if data.get(name) is not None}
        if not data.get("own_scale"):
            return Scale(steps=default, own=False, **ends)
        given: dict[str, Any] = {"min": ends["lowest"], "max": ends["highest"], "step": ends["step"]}
        try:
            values = marks_between(**ends)
            given["marks"] = [mark for mark in self._typed_marks() if mark["value"] in values]
            steps = score.clean_settings({"scale": given}, scale=own_scale)["scale"]
        except BadSettings as error:
            return Scale(steps=[], own=True, error=_sentence(error), **ends)
        return Scale(steps=steps, own=True, **ends)

    def faults(self) -> str:
        """The errors of all fields in one line."""
        return " ".join(f"{self[name].label}: {why.as_text()[2:]}" for name, why in self.errors.items())

    def _typed_marks(self) -> Iterator[dict[str, Any]]:
        """The submitted rows of the scale that have a mark."""
        columns = (cast(QueryDict, self.data).getlist(name) for name in ("mark", "word", "meaning"))
        for text, label, about in zip(*columns, strict=False):
            value = parse_number(text)
            if value is not None:
                yield {"value": value, "label": label, "about": about}


def _ends(steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The lowest and highest mark of a scale, and its smallest step."""
    values = [step["value"] for step in steps]
    gap = min(after - before for before, after in pairwise(values))
    return {"lowest": values[0], "highest": values[-1], "step": gap}


def initial_of(campaign: Campaign) -> dict[str, Any]:
    """The initial values for a campaign's ballot."""
    settings = ballots.of(campaign).settings
    default = ballots.get(campaign.protocol).default_settings(scale=ballots.scale_of(campaign.benchmark))
    weights = [f"{key} {weight:g}" for key, weight in settings.get("weights", {}).items()]
    return settings | {
        "own_scale": settings.get("scale") != default.get("scale"),
        "allowed": settings.get("choices", []),
        "categories": as_lines(settings.get("categories", ())),
        "weights": "\n".join(weights),
    }


def _weights(text: str) -> dict[str, float]:
    weights = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        key, _, points = line.rpartition(" ")
        weight = parse_number(points)
        if not key.strip() or weight is None:
            raise BadInput(f"Each line must have a part's key and its weight, like “length 4”, not “{line[:60]}”.")
        weights[key.strip()] = weight
    return weights


def _sentence(error: BadSettings) -> str:
    """The message without the setting's name, which the page does not show."""
    words = str(error).partition(": ")[2] or str(error)
    return words[0].upper() + words[1:]


EVERYONE, CHOSEN_PEOPLE = "everybody", "these"

MAX_KEYS_FILE = 5 * 2**20  # bytes


class RunField(forms.ModelChoiceField):
    def label_from_instance(self, run: Any) -> str:
        return f"Run {run.pk}: {run.judge.titled}, {run.protocol}, on {run.benchmark}"


class PeopleField(forms.ModelMultipleChoiceField):
    def label_from_instance(self, person: Any) -> str:
        role = "" if person.role == "annotator" else f", {person.role}"
        known = getattr(person, "annotator", None)
        name = known.shown(named=True) if known else person.get_full_name() or person.username
        return f"{name}{role}" if person.username in name else f"{name}, {person.username}{role}"


class PercentField(forms.FloatField):
    """A share, entered in percent."""

    widget = forms.NumberInput

    def __init__(self, *, min_value: float, max_value: float, **kwargs: Any) -> None:
        super().__init__(required=False, min_value=100 * min_value, max_value=100 * max_value, **kwargs)
        self.widget.attrs.setdefault("step", "any")

    def clean(self, value: Any) -> float | None:
        percent = super().clean(value)
        return None if percent is None else percent / 100

    def prepare_value(self, value: Any) -> Any:
        return f"{100 * value:g}" if isinstance(value, float) else value


def people_who_label(benchmark: Benchmark | None = None) -> QuerySet[User]:
    """Those whose role lets them label, and whom a right lets label on the benchmark."""
    return who("label", of=benchmark).select_related("annotator").order_by("username")


class SamplingForm(Styled):
    """The choice of items: a sampling plan and its seed."""

    how = forms.ChoiceField(
        choices=list(sampling.METHODS.items()), required=False, initial=sampling.ALL, widget=forms.RadioSelect, label=""
    )
    n = forms.IntegerField(required=False, min_value=1, label="Samples", initial=2)
    by = forms.ChoiceField(choices=list(sampling.STRATA.items()), required=False, label="Spread over")
    run = RunField(queryset=Run.objects.none(), required=False, label="Run", empty_label="Choose a run")
    reasons = forms.MultipleChoiceField(
        choices=list(run_doubts.REASONS.items()),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="In doubt",
        initial=[run_doubts.NO_MAJORITY, run_doubts.NO_VERDICT],
    )
    keys = long_text(
        4,
        label="Sample keys",
        help_text="One per line, or a file below: text, or CSV with a column named sample or key.",
    )
    keys_file = forms.FileField(required=False, label="File of keys")
    models = forms.ModelMultipleChoiceField(
        queryset=EvaluatedModel.objects.order_by("name"),
        required=False,
        label="Only these models",
        help_text="Plus the anchor. None selected: all models.",
        widget=forms.SelectMultiple(attrs={"size": 5}),
    )
    judges = forms.ModelMultipleChoiceField(
        queryset=Judge.objects.filter(runs__kind=Run.Kind.JUDGMENTS).distinct().order_by("name"),
        required=False,
        label="Only these judges",
        help_text="For reviews; for comparisons, both of the two. None selected: all judges.",
        widget=forms.SelectMultiple(attrs={"size": 5}),
    )
    most = forms.IntegerField(
        required=False, min_value=1, label="At most", help_text="Items in total. Empty: no limit."
    )
    seed = forms.IntegerField(
        required=False,
        min_value=0,
        max_value=2**31 - 1,
        help_text="The same seed selects the same items. Empty: random.",
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        runs: Any = self.fields["run"]
        judged = Judgment.objects.values("run")
        runs.queryset = Run.objects.filter(kind=Run.Kind.JUDGMENTS, pk__in=judged).select_related("judge", "benchmark")

    def plan(self) -> Plan:
        """The plan in the form. Raises BadInput."""
        data = self.cleaned_data
        how = data.get("how") or sampling.ALL
        plan: dict[str, Any] = {"how": how, "most": data.get("most")}
        plan |= {name: [one.name for one in data.get(name) or ()] for name in ("models", "judges")}
        return parse_plan(plan | self._fields_of(how))

    def _fields_of(self, how: str) -> dict[str, Any]:
        """The fields of a plan that only this way of choosing items has."""
        data = self.cleaned_data
        match how:
            case sampling.PER_CAPABILITY:
                return {"n": data.get("n")}
            case sampling.STRATIFIED:
                by = {"by": data["by"]} if data.get("by") else {}
                return {"n": data.get("n")} | by
            case sampling.RUN:
                return {"run": data["run"].pk if data.get("run") else None, "reasons": data.get("reasons") or ()}
            case sampling.KEYS:
                return {"keys": [*_lines(data.get("keys") or ""), *_keys_in(data.get("keys_file"))]}
        return {}


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _keys_in(file: Any) -> list[str]:
    """The keys in a file with one per line, or in a CSV file with a column ``sample`` or ``key``. Raises BadInput."""
    if file is None:
        return []
    if file.size > MAX_KEYS_FILE:
        raise BadInput(f"{file.name} is larger than {MAX_KEYS_FILE // 2**20} MB.")
    try:
        text = file.read().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadInput(f"{file.name} is not UTF-8 text.") from None
    lines = _lines(text)
    names = [name.strip().lower() for name in next(csv.reader(lines[:1]), [])]
    column = next((name for name in ("sample", "key") if name in names), None)
    if column is None:
        return lines
    rows = list(csv.DictReader(io.StringIO(text), fieldnames=names, restval=""))
    return [key for row in rows[1:] if (key := row[column].strip())]


class AssignmentForm(Styled):
    """How items are assigned and labels checked."""

    overlap = forms.IntegerField(
        label="Labels per item", initial=2, help_text="By different annotators.", **bounds_of("overlap")
    )
    lease_minutes = forms.IntegerField(
        **bounds_of("lease_minutes"),
        label="Minutes per item",
        initial=30,
        help_text="After this time an unfinished item goes to somebody else.",
    )
    order = forms.ChoiceField(
        choices=[("", "As usual: least labelled first, judgments one after the other"), *Campaign.Order.choices],
        required=False,
    )
    daily_cap = forms.IntegerField(
        **bounds_of("daily_cap"),
        required=False,
        label="Labels per day",
        help_text="Per person. Empty: no limit.",
    )
    share = forms.IntegerField(
        **bounds_of("share"),
        required=False,
        label="Labels per person",
        help_text="Then they have finished. Empty: as many as there are.",
    )
    consent = CleanCharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6}),
        max_length=50_000,
        help_text="Markdown that each person agrees to before the first item, again when it changes. Empty: none.",
    )
    completion_code = CleanCharField(
        required=False,
        max_length=100,
        label="Completion code",
        help_text="Told who has finished, as Prolific and MTurk ask for it.",
    )
    return_url = forms.CharField(
        required=False,
        max_length=500,
        label="Way back",
        help_text="Where they go then: https://app.prolific.com/submissions/complete?cc=…",
    )
    due = forms.DateField(
        required=False,
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
        help_text="Shown to annotators. Labelling does not stop then.",
    )
    practice_pass = PercentField(
        **bounds_of("practice_pass"),
        label="Practice, % right to pass",
        help_text="Empty: no practice round. Choose its items on the item pages.",
    )
    gold_rate = PercentField(
        **bounds_of("gold_rate"),
        label="Hidden gold, % of items",
        help_text="Items whose right verdict is known. Empty: none.",
    )
    gold_pass = PercentField(**bounds_of("gold_pass"), label="Gold, % right to pass", initial=0.7)
    gold_least = forms.IntegerField(
        **bounds_of("gold_least"), required=False, initial=5, label="Gold items first", help_text="Before a warning."
    )
    gold_stops = tick("After a warning without effect, assign no more items", initial=True)

    def settings(self) -> dict[str, Any]:
        """The settings of a campaign. Empty fields get the defaults of the table; without an order, what is usual for
        what is labelled.
        """
        given, unset = self.cleaned_data, Campaign()
        names = [name for name in SETTINGS if name != "order" or given.get(name)]
        return {name: getattr(unset, name) if given.get(name) in (None, "") else given[name] for name in names}


class WithItems(BenchmarkChoice):
    """A benchmark, and whether there is nothing to label in it yet."""

    def label_from_instance(self, benchmark: Any) -> str:
        return f"{benchmark.titled}{'' if benchmark.has_items else ' (no items yet)'}"


class CampaignForm(SamplingForm, BallotForm, AssignmentForm):
    name = forms.CharField(max_length=200, help_text="Shown to annotators and used by scripts.")
    benchmark = WithItems(
        queryset=Benchmark.objects.annotate(
            has_items=Exists(Item.objects.filter(sample__benchmark=OuterRef("pk")))
        ).order_by("-has_items", "-pk"),
        empty_label=None,
    )
    protocol = forms.ChoiceField(
        choices=[(name, f"{ballot.title} ({name})") for name, ballot in ballots.BALLOTS.items()]
    )
    who = forms.ChoiceField(
        label="Who labels",
        choices=[
            (EVERYONE, "Every annotator, and guests who label on this benchmark, including those who join later"),
            (CHOSEN_PEOPLE, "These people and those invited"),
        ],
        initial=EVERYONE,
        widget=forms.RadioSelect,
    )
    annotators = PeopleField(queryset=people_who_label(), required=False, widget=forms.CheckboxSelectMultiple, label="")
    blind = tick("Blind: hide model names mentioned in answers", initial=True)
    shows_criteria = tick("Show criteria marked for campaigns (each reading is logged)")
    guidelines = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 10}),
        help_text="Markdown. Annotators open it with G. Add pictures on the campaign's settings page.",
        max_length=50_000,
    )

    def __init__(self, *args: Any, viewer: Viewer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not allowed(viewer, "write-campaigns"):
            self._limit(viewer)
        if not self.is_bound:
            self.initial.setdefault("protocol", self._first_with_items())

    def _limit(self, viewer: Viewer) -> None:
        """Offer what somebody knows who runs campaigns on single benchmarks, and nobody's account."""
        fields: Any = self.fields
        for name, benchmark in (("benchmark", ""), ("run", "benchmark__"), ("judges", "runs__benchmark__")):
            theirs = where(viewer, "write-campaigns", benchmark)
            fields[name].queryset = fields[name].queryset.filter(theirs)
        known = Response.objects.visible_to(viewer).order_by().values("model")
        fields["models"].queryset = fields["models"].queryset.filter(pk__in=known)
        fields["annotators"].queryset = User.objects.none()

    def _first_with_items(self) -> str:
        """The first protocol that the chosen benchmark has items for."""
        benchmarks: Any = self.fields["benchmark"]
        wanted = whole_number(str(self.initial.get("benchmark", "")))
        chosen = benchmarks.queryset if wanted is None else benchmarks.queryset.filter(pk=wanted)
        items = Item.objects.filter(sample__benchmark=chosen.first()).order_by()
        kinds = {kind for kind in Item.Kind if items.filter(kind=kind).exists()}
        fitting = (name for name, ballot in ballots.BALLOTS.items() if ballot.kind in kinds)
        return next(fitting, next(iter(ballots.BALLOTS)))


class AddAnnotatorsForm(Styled):
    people = PeopleField(queryset=User.objects.none(), widget=forms.CheckboxSelectMultiple, label="")

    def __init__(self, *args: Any, campaign: Campaign, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        people: Any = self.fields["people"]
        members = Membership.objects.filter(campaign=campaign, withdrawn_at__isnull=True)
        removed = Q(role=Role.GUEST, is_active=True, annotator__memberships__in=campaign.memberships.all())
        found = people_who_label(campaign.benchmark).values("pk")
        every = User.objects.filter(Q(pk__in=found) | removed).distinct().select_related("annotator")
        people.queryset = every.exclude(annotator__in=members.values("annotator")).order_by("username")


class GuidelinesForm(Styled):
    guidelines = long_text(12, max_length=50_000)
    about = CleanCharField(
        required=False,
        max_length=200,
        label="What changes",
        help_text="Shown to those who have read the guidelines already.",
    )


class InvitationForm(Styled):
    """A link for anyone who has it, or a mail to each person."""

    days = forms.IntegerField(initial=14, min_value=1, max_value=365, label="Valid for (days)")
    most = forms.IntegerField(
        required=False, min_value=1, max_value=10_000, label="People", help_text="Leave empty for any number."
    )
    outside = forms.BooleanField(
        required=False,
        label="From Prolific or MTurk: without a password, by the PROLIFIC_PID or workerId in the address",
    )
    emails = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        label="E-mail to",
        help_text="One address per line. Each gets a link for one person. Empty: a link to pass on.",
    )


class JoinForm(Styled):
    """A new account for somebody who was invited."""

    username = forms.CharField(max_length=150, label=lazy("Name"), help_text=lazy("Letters, digits and @ . + - _"))
    password = forms.CharField(
        label=lazy("Password"),
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=lazy("At least 10 characters."),
    )


class PowerForm(Styled):
    """A plan, see ``annotations.campaigns.power``; a field that is left empty stays as the campaign has it."""

    items = forms.IntegerField(required=False, min_value=1, label="Items of each model")
    labels = forms.IntegerField(required=False, min_value=1, label="Labels an item")
    rate = forms.FloatField(required=False, min_value=0, max_value=1, label="Rate", help_text="0.5 is hardest to tell")
    tie_rate = forms.FloatField(required=False, min_value=0, max_value=1, label="Share of ties")
    alike = forms.FloatField(
        required=False, min_value=0, max_value=1, label="Labels alike", help_text="ICC(1) of two labels on an item"
    )
    difference = forms.FloatField(required=False, min_value=0, max_value=1, label="Difference to find")
