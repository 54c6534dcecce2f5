"""Forms of submissions and recipes. The actions validate the data, so the forms do not repeat that."""

from typing import Any

from django import forms

from accounts.forms import Styled
from accounts.models import User
from bank.forms.fields import BenchmarkChoice, CleanCharField, tick
from bank.models import Benchmark, SubmissionRules
from bank.submissions.actions import HIGHEST_LIMIT
from judging.collecting import submissions as queue
from judging.inputs import InputForm
from judging.models import Judge, Run
from leaderboard.held_out.actions import HeldOutIn
from leaderboard.submissions import LARGEST, TOO_LARGE

OPEN = {"open": True, "closed": False, "": None}


class HeldOutForm(InputForm):
    """Draw the half that is held out, or ask for a run's figures on it."""

    takes = HeldOutIn


class TryoutForm(Styled):
    """What may be changed on the page of a tried run before it is tried again: the prompt, and some settings."""

    text = CleanCharField(required=False, widget=forms.Textarea, label="Prompt", strip=False)
    max_tokens = forms.IntegerField(required=False, min_value=1, label="Longest reply")
    temperature = forms.FloatField(
        required=False, min_value=0, max_value=2, widget=forms.NumberInput(attrs={"step": "0.1"})
    )
    image_size = forms.IntegerField(required=False, min_value=1, label="Pictures")

    def __init__(self, *args: Any, run: Run, **kwargs: Any) -> None:
        settings = {name: run.settings.get(name) for name in ("max_tokens", "temperature", "image_size")}
        if settings["temperature"] == 0:
            settings["temperature"] = 0  # without a point
        super().__init__(*args, initial=settings, **kwargs)
        for name, words in (("max_tokens", "tokens"), ("image_size", "at most, px")):
            self.fields[name].widget.attrs["placeholder"] = words

    def changes(self) -> dict[str, Any]:
        """The settings that were changed; None for those to leave out."""
        return {name: self.cleaned_data[name] for name in self.changed_data if name != "text"}


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

    open = tick("Researchers may submit")
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
    count_failed = tick("Files that do not pass the check count, too")
    hidden_splits = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    required_splits = forms.MultipleChoiceField(required=False, widget=forms.CheckboxSelectMultiple)
    private_half = tick("Keep the score of one half of what has closed keys back until a curator releases it")
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


class PatternChoice(forms.ModelChoiceField):  # type: ignore[type-arg]  # cannot be subscripted at run time
    """A run, told by its judge, protocol and settings."""

    def label_from_instance(self, obj: Run) -> str:
        prompt = obj.settings.get("prompt", "")
        words = [str(obj.judge), obj.protocol, f"prompt {prompt}" if prompt else ""]
        words += ["both orders" if obj.orders == "both" else "", "with criteria" if obj.held else ""]
        return f"run {obj.pk}: {', '.join(filter(None, words))}"


class JudgingForm(Styled):
    """Who judges what researchers submit, and what that may cost."""

    like = PatternChoice(
        queryset=Run.objects.none(),
        required=False,
        empty_label="Nobody: only keys score",
        label="Judge them like",
        help_text="The judge, prompt and settings of a run on this benchmark, so that they share its board.",
    )
    per_submission = forms.FloatField(
        required=False, min_value=0, label="Each, US dollars", help_text="Empty: no limit."
    )
    budget_per_day = forms.FloatField(
        required=False, min_value=0, label="A day, US dollars", help_text="Empty: no limit. What is over waits."
    )

    publishes = tick(
        "Publish the next edition the day after one is judged",
        help_text="Where the board has editions, and nothing speaks against it; if something does, you are told.",
    )

    def __init__(self, *args: Any, benchmark: Benchmark, **kwargs: Any) -> None:
        rules = queue.judging_of(benchmark)
        patterns = queue.patterns(benchmark)
        initial: dict[str, Any] = {}
        if rules is not None:
            alike = [run.pk for run in patterns if run.settings_hash == rules.like.settings_hash]
            chosen = rules.like_id if rules.like_id in {run.pk for run in patterns} else next(iter(alike), None)
            initial = {"like": chosen if rules.active else None, "per_submission": rules.per_submission}
            initial |= {"budget_per_day": rules.per_day, "publishes": rules.publishes}
        super().__init__(*args, initial=initial, **kwargs)
        runs = Run.objects.filter(pk__in=[run.pk for run in patterns]).select_related("judge")
        self.fields["like"].queryset = runs  # type: ignore[attr-defined]

    def save(self, *, by: User, benchmark: Benchmark) -> None:
        """Raises BadInput."""
        data, rules = self.cleaned_data, queue.judging_of(benchmark)
        like: Run | None = data["like"] or (rules.like if rules else None)
        if like is not None:
            queue.set_judging(
                by=by,
                benchmark=benchmark,
                like=like,
                active=data["like"] is not None,
                per_submission=data["per_submission"],
                per_day=data["budget_per_day"],
                publishes=data["publishes"],
            )


class OutsideForm(Styled):
    """Scores of a benchmark that is not held here. ``sent_by``: the form of the page that the fields belong to."""

    use_required_attribute = False  # that form has other buttons, too

    def __init__(self, *args: Any, sent_by: str = "", **more: Any) -> None:
        super().__init__(*args, **more)
        if sent_by:
            for field in self.fields.values():
                field.widget.attrs["form"] = sent_by

    board = forms.CharField(max_length=120, label="Benchmark", help_text="An existing name replaces its scores.")
    source = forms.CharField(
        max_length=500, required=False, label="Published in", help_text="A paper, table or address."
    )
    scores = forms.CharField(
        required=False,
        max_length=500_000,
        widget=forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        help_text="One line a model: its name as here, a comma, its score. None: the benchmark is removed.",
    )
    lower_is_better = tick("Lower is better")


class Reason(forms.Form):
    """The reason for a change."""

    reason = forms.CharField(max_length=2000, required=False)


class RecipeForm(Styled):
    yaml = forms.CharField(
        label="Recipe in YAML",
        max_length=500_000,
        strip=False,
    )


class EvaluateForm(Styled):
    """Which endpoint is asked by a recipe."""

    endpoint = forms.ModelChoiceField(Judge.objects.exclude(base_url="").order_by("name"), empty_label=None)
    model = forms.CharField(
        required=False,
        max_length=200,
        help_text="the name that its answers belong to; the endpoint's model if empty",
    )
    limit = forms.IntegerField(
        label="Only the first", required=False, min_value=1, help_text="questions of each scenario"
    )
    budget = forms.FloatField(label="Budget, $", required=False, min_value=0.0001)
