"""The part of the campaign forms that says what annotators may answer, protocol by protocol."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from django import forms

from accounts.forms import Styled
from annotations import ballots
from annotations.ballots import BadSettings, number_in
from annotations.ballots.scores import marks_between
from annotations.models import Campaign
from bank.actions import BadInput
from bank.forms import Clean
from bank.models import Benchmark

PAIRS = ("pair", "pairwise-criteria")


@dataclass(frozen=True, slots=True)
class Mark:
    """A step of a scale, as a row of the form."""

    value: str
    word: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Scale:
    """What the form shows of a scale; without marks ``error`` says why."""

    marks: list[Mark]
    own: bool
    lowest: str
    highest: str
    step: float
    error: str = ""

    @property
    def gap(self) -> str:
        return f"{self.step:g}"


class BallotForm(Styled):
    """What may be answered. A part for another protocol than the campaign's is not read."""

    allowed = forms.MultipleChoiceField(
        choices=[("tie", "Tie"), ("undecided", "Unable to decide, with the situation")],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        label="Besides first and second",
        initial=["tie", "undecided"],
    )
    ties = forms.BooleanField(required=False, label="Answers may share a place")
    analyses = forms.BooleanField(required=False, initial=True, label="Show the judge's analysis, where it is released")
    confidence = forms.BooleanField(required=False, label="Ask how certain they are")
    own_scale = forms.BooleanField(required=False, label="A scale of its own")
    lowest = forms.FloatField(required=False, label="Lowest", widget=forms.NumberInput(attrs={"step": "any"}))
    highest = forms.FloatField(required=False, label="Highest", widget=forms.NumberInput(attrs={"step": "any"}))
    step = forms.FloatField(required=False, widget=forms.NumberInput(attrs={"step": "any", "min": "0"}))
    weight = forms.FloatField(
        required=False,
        label="Points for a part without a weight",
        widget=forms.NumberInput(attrs={"step": "any", "min": "0"}),
        help_text="Where the benchmark has weights, those count. Empty: samples without weights are left out.",
    )
    weights = Clean(
        required=False,
        label="Other points for some parts",
        widget=forms.Textarea(attrs={"rows": 3, "placeholder": "length 4"}),
        help_text="A part's key and its points, one a line.",
    )

    def ballot(self, protocol: str, benchmark: Benchmark) -> dict[str, Any]:
        """The settings that the form gives; ``asked`` says that its part of the form was sent. Raises BadInput."""
        given = self.cleaned_data
        found: dict[str, Any] = {"confidence": given["confidence"]}
        if "asked" not in self.data:
            return found
        if protocol in PAIRS:
            found["choices"] = ["left", "right", *given["allowed"]]
        elif protocol == "batch":
            found["ties"] = given["ties"]
        elif protocol == "review":
            found["analyses"] = given["analyses"]
        elif protocol == "components":
            found |= {"weight": given.get("weight"), "weights": _weights(given.get("weights") or "")}
        elif protocol == "score" and given["own_scale"]:
            scale = self.scale(benchmark)
            if scale.error:
                raise BadInput(scale.error)
            found["scale"] = [
                {"value": float(mark.value), "label": mark.word, "about": mark.meaning} for mark in scale.marks
            ]
        return found

    def scale(self, benchmark: Benchmark | None) -> "Scale":
        """The scale that the form shows: its own where that is ticked, else the benchmark's or the usual one."""
        usual = _usual(benchmark)
        values = [float(mark.value) for mark in usual]
        gap = min(after - before for before, after in pairwise(values))
        if not self.is_bound:
            rows = _rows(self.initial["scale"]) if self.initial.get("own_scale") else usual
            values = [float(mark.value) for mark in rows]
            gap = min(after - before for before, after in pairwise(values))
            return Scale(rows, bool(self.initial.get("own_scale")), rows[0].value, rows[-1].value, gap)
        own = bool(self.cleaned_data.get("own_scale"))
        typed = [self.cleaned_data.get(name) for name in ("lowest", "highest", "step")]
        lowest, highest, step = (
            default if number is None else number
            for number, default in zip(typed, (values[0], values[-1], gap), strict=True)
        )
        shown = Scale(usual, own, f"{lowest:g}", f"{highest:g}", step)
        if not own:
            return shown
        try:
            wanted = marks_between(lowest, highest, step)
        except BadSettings as error:
            return replace(shown, marks=[], error=_sentence(error))
        words = {mark.value: mark for mark in usual} if (lowest, highest) == (values[0], values[-1]) else {}
        words |= dict(self._typed())
        return replace(shown, marks=[words.get(f"{value:g}", Mark(f"{value:g}", "", "")) for value in wanted])

    def faults(self) -> str:
        """What is wrong with single fields, in one line."""
        return " ".join(f"{self[name].label}: {why.as_text()[2:]}" for name, why in self.errors.items())

    def _typed(self) -> Iterator[tuple[str, Mark]]:
        """The rows that came with the form, by their mark."""
        if not hasattr(self.data, "getlist"):
            return
        columns = (self.data.getlist(name) for name in ("mark", "word", "meaning"))
        for value, word, meaning in zip(*columns, strict=False):
            number = number_in(value)
            if number is not None:
                yield f"{number:g}", Mark(f"{number:g}", word.strip(), meaning.strip())


def initial_of(campaign: Campaign) -> dict[str, Any]:
    """What the form begins with for a campaign's ballot."""
    settings = ballots.of(campaign).settings
    found: dict[str, Any] = {
        name: settings[name] for name in ("confidence", "ties", "analyses", "weight", "scale") if name in settings
    }
    usual = ballots.get(campaign.protocol).settled({}, scale=ballots.scale_of(campaign.benchmark))
    if found.get("scale") == usual.get("scale"):
        found.pop("scale", None)
    found["own_scale"] = "scale" in found
    found["allowed"] = settings.get("choices", [])
    found["weights"] = "\n".join(f"{key} {worth:g}" for key, worth in settings.get("weights", {}).items())
    return found


def _usual(benchmark: Benchmark | None) -> list[Mark]:
    scale = ballots.scale_of(benchmark) if benchmark else []
    return _rows(ballots.get("score").settled({}, scale=scale)["scale"])


def _rows(steps: list[dict[str, Any]]) -> list[Mark]:
    return [Mark(f"{step['value']:g}", step["label"], step["about"]) for step in steps]


def _weights(text: str) -> dict[str, float]:
    found = {}
    for line in filter(None, (line.strip() for line in text.splitlines())):
        key, _, points = line.rpartition(" ")
        worth = number_in(points)
        if not key.strip() or worth is None:
            raise BadInput(f"Each line is a part's key and its points, as “length 4”, not “{line[:60]}”.")
        found[key.strip()] = worth
    return found


def _sentence(error: BadSettings) -> str:
    """Without the name of the setting, which a page does not show."""
    words = str(error).partition(": ")[2] or str(error)
    return words[0].upper() + words[1:]
