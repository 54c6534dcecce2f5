"""Forms of a benchmark: its facts, and what leaves it."""

import re
from typing import Any

from django import forms
from django.utils.text import slugify

from accounts.forms import Styled
from accounts.rules import Viewer, allowed
from bank.forms.fields import CleanCharField, long_text, tick
from bank.intake import exports, parquet
from bank.intake.registry import EVERYTHING, SHAPES, TABLES
from bank.models import Benchmark, EvaluatedModel, Response
from bank.picked import picked
from bank.samples.capability_trees import TITLES

LABELS = {"plurality": "Most frequent verdict wins", "mllm-bench": "As in MLLM-Bench: undecided outweighs"}


def scale_as_text(scale: list[dict[str, Any]]) -> str:
    lines = [f"{step['value']} = {step['label']}" if step.get("label") else str(step["value"]) for step in scale]
    return "\n".join(lines)


class Facts(Styled):
    """The facts about a benchmark."""

    title = CleanCharField(max_length=200)
    description = long_text(3, max_length=20_000)
    licence = CleanCharField(required=False, max_length=200, help_text="Of pictures and texts, such as CC BY 4.0.")
    anchor = forms.ModelChoiceField(
        queryset=EvaluatedModel.objects.none(),
        required=False,
        empty_label="none",
        help_text="The model that all others are compared with.",
    )
    majority = forms.ChoiceField(label="Majority rule", choices=list(LABELS.items()))
    score_scale = long_text(
        5,
        help_text="One step a line, such as 1 = Poor. Leave it empty where answers are only compared.",
        max_length=2_000,
    )
    edition = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, viewer: Viewer, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        anchor: Any = self.fields["anchor"]
        anchor.queryset = EvaluatedModel.objects.order_by("name")
        if not allowed(viewer, "read-bank"):
            known = Response.objects.visible_to(viewer).order_by().values("model")
            anchor.queryset = anchor.queryset.filter(pk__in=known)

    def clean_score_scale(self) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = []
        for line in self.cleaned_data["score_scale"].splitlines():
            if not line.strip():
                continue
            match = re.fullmatch(r"\s*(-?\d{1,6}(?:\.\d{1,3})?)\s*(?:=\s*(.{0,60}?))?\s*", line)
            if match is None:
                raise forms.ValidationError(f"{line.strip()!r} is no step: write a number, =, and its name.")
            number = float(match[1])
            value = int(number) if number.is_integer() else number
            if any(step["value"] == value for step in steps):
                raise forms.ValidationError(f"{value} stands twice.")
            steps.append({"value": value, "label": match[2] or ""})
        return steps


class NewBenchmark(Facts):
    slug = forms.CharField(
        label="Short name",
        max_length=80,
        required=False,
        help_text="For addresses and commands: letters, digits, - and _. Left empty, it is made of the title. "
        "It cannot be changed later.",
    )
    version = forms.CharField(max_length=40, initial="1")
    tree = forms.ChoiceField(
        label="Capability tree",
        required=False,
        choices=[("", "empty, I make my own"), *TITLES.items()],
        help_text="To begin with; you can change every part of it.",
    )
    field_order = ["title", "slug", "version", "description", "licence", "tree", "anchor", "majority", "score_scale"]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "slug" not in self.errors and not data.get("slug"):
            data["slug"] = slugify(data.get("title", ""))[:80]
            if not data["slug"] and "title" not in self.errors:
                self.add_error("slug", "None can be made of this title: write one with letters, digits, - and _.")
        return data


def facts_of(benchmark: Benchmark) -> dict[str, Any]:
    """The facts about a stored benchmark, as the form begins with them."""
    names = ("title", "description", "licence", "anchor", "majority", "edition")
    return picked(benchmark, names) | {"score_scale": scale_as_text(benchmark.score_scale)}


class FileShape(forms.ChoiceField):
    """In which shape a table leaves; Parquet only where it can be made. ``rows``: only shapes that are rows."""

    def __init__(self, *, rows: bool = False) -> None:
        self.rows = rows
        super().__init__(label="File", choices=self.offered, widget=forms.RadioSelect, initial="jsonl")

    def offered(self) -> list[tuple[str, str]]:
        shapes = exports.shapes().items()
        return [(name, shape.title) for name, shape in shapes if not (self.rows and shape.maker)]

    def validate(self, value: Any) -> None:
        if value in SHAPES and SHAPES[value].needs_pyarrow and not parquet.available():
            raise forms.ValidationError(parquet.NEEDED)
        super().validate(value)


WHOLE = (EVERYTHING, "Samples, responses, labels and judgments, as a Hugging Face folder")


def tables_offered() -> list[tuple[str, str]]:
    """The tables, and all together where a shape can hold them."""
    whole = any(EVERYTHING in shape.tables for shape in exports.shapes().values())
    return [*TABLES.items(), *([WHOLE] if whole else [])]


# What is asked for by a tick of its own, and the table that holds it.
TICKS = {"criteria": "samples", "analyses": "judgments", "names": "labels"}


class Export(Styled):
    what = forms.ChoiceField(label="What", choices=tables_offered, widget=forms.RadioSelect, initial="samples")
    shape = FileShape()
    pictures = tick("Samples with their pictures, as a zip")
    criteria = tick("Samples with criteria and answer keys")
    analyses = tick("Judgments with analyses and raw replies")
    names = tick("Labels with the annotators' names, not their pseudonyms")
    model = CleanCharField(
        required=False, max_length=200, help_text="Of scores for Inspect, where several models have some."
    )
    run = forms.IntegerField(required=False, min_value=1, help_text="Judgments of the run with this number alone.")
    later = tick("Write it in the background, as large files are: it can be downloaded for a day")
    reason = CleanCharField(
        required=False,
        max_length=500,
        help_text="Needed with criteria and analyses. It stands in the access log with your name.",
    )

    def ticks(self) -> list[forms.BoundField]:
        return [self[name] for name in TICKS]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        what, shape = data.get("what", ""), data.get("shape")
        self._refuse_ticks(data, what)
        if shape and what not in SHAPES[shape].tables:
            self.add_error("shape", f"It is for {' or '.join(SHAPES[shape].tables)}, not for {what}.")
        if shape and data.get("pictures") and SHAPES[shape].maker:
            self.add_error("pictures", "This file holds its pictures, or none: take the tick away.")
        hidden = data.get("criteria") or data.get("analyses")
        if hidden and _is_blank(data.get("reason")):
            self.add_error("reason", "Say why hidden text leaves: it goes out only with a reason.")
        return data

    def _refuse_ticks(self, data: dict[str, Any], what: str) -> None:
        """Of what another table holds. Only pictures do not go with everything."""
        for name, table in ({"pictures": "samples"} | TICKS).items():
            if data.get(name) and what not in (table, EVERYTHING if name in TICKS else table):
                self.add_error(name, f"That belongs to {table}: choose {table}, or take the tick away.")


def _is_blank(text: str | None) -> bool:
    return not (text or "").strip()


class SplitDraw(Styled):
    """How a dev and a test split are drawn."""

    share = forms.FloatField(
        label="Share of dev", initial=0.4, min_value=0.01, max_value=0.99, help_text="MMBench: 0.4"
    )
    seed = forms.IntegerField(initial=0, min_value=0, max_value=2**31 - 1)
    dev = CleanCharField(label="Name of the first", initial="dev", max_length=40)
    test = CleanCharField(label="Name of the second", initial="test", max_length=40)
