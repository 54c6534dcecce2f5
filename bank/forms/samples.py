"""The sample editor. Rows of criteria and pictures come numbered; a button adds empty ones without losing a letter."""

import json
import re
from dataclasses import asdict
from typing import Any

from django import forms
from django.core import signing

from accounts.forms import Styled
from bank import images
from bank.forms.fields import CleanCharField, long_text, tick, whole_number
from bank.models import Benchmark, Sample, SampleImage
from bank.models.catalogue import Capability
from bank.picked import picked
from bank.samples.capabilities import tree_of
from bank.samples.editor import FIELDS, Picture

EMPTY_ROWS = 2
MOST_ROWS = 40
SALT = "bank.picture-held"
KINDS = {
    "guideline": "evaluation guideline",
    "exact_reference": "exact reference",
    "soft_reference": "soft reference",
    "range": "acceptable range",
    "component": "component with points",
}
SHOWN = {"staff": "staff only", "campaign": "annotators, where a campaign shows criteria", "public": "everybody"}
QUESTION_TYPES = ("open-ended", "closed-ended", "compound", "multiple-choice", "yes-no")


class Placed(Styled):
    """Where a sample belongs in its benchmark. ``no_capability`` are the choices before those of the tree."""

    question_type = CleanCharField(
        label="Question type", required=False, max_length=40, widget=forms.TextInput(attrs={"list": "question-types"})
    )
    capability = forms.ChoiceField(required=False)
    split = CleanCharField(required=False, max_length=40, widget=forms.TextInput(attrs={"list": "splits"}))
    no_capability = [("", "none")]

    def __init__(self, *args: Any, benchmark: Benchmark, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        nodes = tree_of(benchmark, counts={})
        self.nodes: dict[str, Capability] = {str(node.capability.pk): node.capability for node in nodes}
        choices = [(str(n.capability.pk), f"{n.indent}{n.capability.name}") for n in nodes]
        self.fields["capability"].choices = self.no_capability + choices  # type: ignore[attr-defined]


class SampleFields(Placed):
    key = CleanCharField(max_length=200, help_text="A short name, unique in the benchmark.")
    instruction = CleanCharField(
        widget=forms.Textarea(attrs={"rows": 5}),
        max_length=200_000,
        help_text="What models are asked. Markdown, and LaTeX between $ signs.",
    )
    hint = long_text(2, max_length=20_000)
    options = long_text(
        4,
        max_length=20_000,
        help_text="For multiple choice, one a line. They become A, B, C ...; a line may name its own: D: maybe.",
    )
    answer = CleanCharField(
        label="Answer key",
        required=False,
        max_length=20_000,
        help_text="The right option's letter, or the one right answer. Hidden like a criterion.",
    )
    source = CleanCharField(required=False, max_length=200, help_text="Where picture and question come from.")
    group = CleanCharField(
        required=False, max_length=200, help_text="Samples that share a picture or a prompt carry the same word."
    )
    language = CleanCharField(required=False, max_length=16, help_text="Such as en or zh.")
    note = CleanCharField(required=False, max_length=500, label="What you changed", help_text="Stands in the history.")
    edition = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def clean_options(self) -> dict[str, str]:
        options: dict[str, str] = {}
        for line in self.cleaned_data["options"].splitlines():
            if not line.strip():
                continue
            named = re.fullmatch(r"\s*([A-Za-z0-9]{1,2})\s*[:.)]\s+(\S.*?)\s*", line)
            free = (chr(65 + n) for n in range(26) if chr(65 + n) not in options)
            letter, text = (named[1], named[2]) if named else (next(free, ""), line.strip())
            if not letter:
                raise forms.ValidationError("There are at most 26 options.")
            if letter in options:
                raise forms.ValidationError(f"Two options are called {letter}.")
            options[letter] = text
        if len(options) == 1:
            raise forms.ValidationError("One option is no choice: give two or more, or none.")
        return options

    def clean_capability(self) -> Capability | None:
        return self.nodes.get(self.cleaned_data["capability"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        options, answer = data.get("options"), (data.get("answer") or "").strip()
        if options and answer and answer not in options:
            self.add_error("answer", f"The answer is one of the options' letters: {', '.join(options)}.")
        return data


class CriterionRow(Styled):
    key = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)
    kind = forms.ChoiceField(choices=list(KINDS.items()), initial="guideline")
    text = long_text(3, max_length=200_000)
    weight = forms.FloatField(
        required=False, min_value=0, max_value=1e6, widget=forms.NumberInput(attrs={"step": "any"})
    )
    category = CleanCharField(required=False, max_length=60)
    shown_to = forms.ChoiceField(label="Seen by", choices=list(SHOWN.items()), initial="staff")
    order = forms.IntegerField(required=False, min_value=0, max_value=1000)
    remove = tick()


class PictureRow(Styled):
    pk = forms.IntegerField(widget=forms.HiddenInput)
    description = long_text(2, max_length=20_000)
    objects_found = long_text(2, label="Detected objects", max_length=50_000)
    order = forms.IntegerField(required=False, min_value=0, max_value=1000)
    remove = tick()

    def clean_objects_found(self) -> list[Any]:
        return [_object(line) for line in self.cleaned_data["objects_found"].splitlines() if line.strip()]


def _object(line: str) -> Any:
    """A detected object: a name, or what a detector wrote as JSON."""
    if line.strip()[:1] in "{[":
        try:
            return json.loads(line)
        except ValueError:
            pass
    return line.strip()


def objects_as_text(objects: list[Any]) -> str:
    return "\n".join(o if isinstance(o, str) else json.dumps(o, ensure_ascii=False) for o in objects)


class MultipleFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class Files(forms.FileField):
    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        single = super().clean
        return [single(file, initial) for file in data] if isinstance(data, list | tuple) else [single(data, initial)]


class NewPictures(Styled):
    pictures = Files(
        required=False,
        label="Add pictures",
        widget=MultipleFiles(attrs={"accept": "image/png,image/jpeg,image/webp", "class": "files"}),
        help_text="PNG, JPEG or WebP up to 40 MB; stored anew without what a camera wrote into them.",
    )

    def clean_pictures(self) -> list[images.Stored]:
        stored = []
        for file in self.cleaned_data["pictures"]:
            if file is None:
                continue
            if file.size > images.MAX_BYTES:
                raise forms.ValidationError(f"{file.name}: larger than {images.MAX_BYTES // 2**20} MB.")
            try:
                stored.append(images.ingest(file.read()))
            except images.NotAnImage as error:
                raise forms.ValidationError(f"{file.name}: {error}.") from None
        return stored


def _held(token: str) -> images.Stored | None:
    try:
        return images.Stored(**signing.loads(token, salt=SALT, max_age=86_400))
    except signing.BadSignature:
        return None


def _held_pictures(tokens: list[str]) -> list[images.Stored]:
    return [held for token in tokens if (held := _held(token))]


def _picture_row(data: Any, picture: SampleImage, number: int) -> PictureRow:
    initial = {
        "pk": picture.pk,
        "description": picture.description,
        "objects_found": objects_as_text(picture.objects_found),
        "order": number,
    }
    return PictureRow(data, prefix=f"p{picture.pk}", initial=initial)


class Editor:
    """The whole form: fields, criteria rows, picture rows, new pictures."""

    def __init__(
        self,
        *,
        benchmark: Benchmark,
        sample: Sample | None,
        criteria: list[Any],
        proposed: dict[str, Any] | None = None,
        data: Any = None,
        files: Any = None,
    ) -> None:
        self.sample = sample
        self.adding = data is not None and "more" in data
        proposed = proposed or {"instruction": "", "criteria": []}
        first = self._initial(sample, criteria)
        if proposed["instruction"]:
            first["instruction"] = proposed["instruction"]
        self.fields = SampleFields(data, initial=first, benchmark=benchmark)
        stored = list(sample.images.all()) if sample else []
        self.criteria = self._new_rows(criteria, proposed["criteria"]) if data is None else self._sent_rows(data)
        for row_form in self.criteria:
            if row_form["kind"].value() == "answer_key":  # one under a name of its own; it is not offered to new rows
                row_form.fields["kind"].choices += [("answer_key", "answer key")]  # type: ignore[attr-defined]
        self.pictures = [_picture_row(data, picture, number) for number, picture in enumerate(stored, 1)]
        self.shown = list(zip(self.pictures, stored, strict=True))
        self.new = NewPictures(data, files)
        self.held = [] if data is None else _held_pictures(data.getlist("held"))

    @staticmethod
    def _with_defaults(data: Any, number: int) -> Any:
        """A row that was just added is not in the data yet: it gets what an empty row starts with."""
        if f"c{number}-kind" in data:
            return data
        filled = data.copy()
        filled.update({f"c{number}-kind": "guideline", f"c{number}-shown_to": "staff", f"c{number}-order": number + 1})
        return filled

    @staticmethod
    def _new_rows(criteria: list[Any], proposed: list[dict[str, Any]]) -> list[CriterionRow]:
        """The stored criteria, those that a draft proposes, and a few empty ones."""
        names = ("key", "kind", "text", "weight", "category", "shown_to")
        shown = [c for c in criteria if (c.key, c.kind) != ("answer", "answer_key")]
        rows: list[dict[str, Any]] = [picked(c, names) for c in shown]
        for row in proposed:
            rows.append({"kind": "guideline" if row["weight"] is None else "component"} | row)
        rows += [{}] * EMPTY_ROWS
        return [CriterionRow(prefix=f"c{n}", initial={"order": n + 1} | row) for n, row in enumerate(rows)]

    def _sent_rows(self, data: Any) -> list[CriterionRow]:
        count = (whole_number(data.get("rows"), below=1_000) or 0) + (EMPTY_ROWS if self.adding else 0)
        return [CriterionRow(self._with_defaults(data, n), prefix=f"c{n}") for n in range(min(count, MOST_ROWS))]

    @staticmethod
    def _initial(sample: Sample | None, criteria: list[Any]) -> dict[str, Any]:
        if sample is None:
            return {"language": "en"}
        names = ("key", "instruction", "hint", "question_type", "split", "source", "group", "language", "edition")
        answer = next((c.text for c in criteria if (c.key, c.kind) == ("answer", "answer_key")), "")
        options = "\n".join(f"{letter}: {text}" for letter, text in sample.options.items())
        return picked(sample, names) | {
            "capability": str(sample.capability_id or ""),
            "options": options,
            "answer": answer,
        }

    def is_valid(self) -> bool:
        valid = [form.is_valid() for form in (self.fields, *self.criteria, *self.pictures, self.new)]
        if self.new.is_valid():
            self.held += self.new.cleaned_data["pictures"]
        return all(valid)

    @property
    def held_tokens(self) -> list[tuple[str, images.Stored]]:
        """The pictures that came in and are not saved yet, as the form carries them."""
        return [(signing.dumps(asdict(picture), salt=SALT), picture) for picture in self.held]

    def take_over(self, edition: int) -> None:
        """Let the same typed text be saved over the edition that stands now."""
        self.fields.data = {**self.fields.data, "edition": str(edition)}

    def values(self) -> dict[str, Any]:
        data = self.fields.cleaned_data
        return {name: data[name] for name in FIELDS}

    def _filled_rows(self) -> list[dict[str, Any]]:
        """The criteria with a text, without those to be removed, in their order."""
        rows = [row.cleaned_data for row in self.criteria]
        filled = [row for row in rows if row["text"].strip() and not row["remove"]]
        return sorted(filled, key=lambda row: MOST_ROWS + 1 if row["order"] is None else row["order"])

    def criteria_rows(self) -> list[dict[str, Any]]:
        """The criteria as they are to be stored; new ones get the next free number as key."""
        filled = self._filled_rows()
        taken = {row["key"] for row in filled}
        numbers = (str(n) for n in range(1, 10_000) if str(n) not in taken and f"c{n}" not in taken)
        rows = [
            {
                "key": row["key"] or next(numbers),
                "kind": row["kind"],
                "category": row["category"].strip(),
                "weight": row["weight"],
                "shown_to": row["shown_to"],
                "text": row["text"].strip(),
            }
            for row in filled
        ]
        answer = self.fields.cleaned_data["answer"].strip()
        if answer:
            key = {"key": "answer", "kind": "answer_key", "category": "", "weight": None, "shown_to": "staff"}
            rows.append(key | {"text": answer})
        return rows

    def picture_list(self) -> list[Picture]:
        """The pictures as they are to be stored, new ones last."""
        rows = [row.cleaned_data for row in self.pictures if not row.cleaned_data["remove"]]
        rows.sort(key=lambda row: row["order"] if row["order"] is not None else 1001)
        existing = [
            Picture(pk=row["pk"], description=row["description"].strip(), objects_found=row["objects_found"])
            for row in rows
        ]
        return existing + [Picture(stored=stored) for stored in self.held]


class Bulk(Placed):
    """Values for many samples; a field that stays empty leaves them as they are."""

    no_split = tick("Take the split away")
    no_capability = [("", "leave as it is"), ("none", "none")]
    status = forms.ChoiceField(
        required=False, choices=[("", "leave as it is"), *((s.value, s.label.lower()) for s in Sample.Status)]
    )
    note = CleanCharField(required=False, max_length=500, label="Why", help_text="Stands in every sample's history.")

    def values(self) -> dict[str, Any]:
        """Field to new value, of what was chosen."""
        data = self.cleaned_data
        values: dict[str, Any] = {}
        if data["no_split"] or data["split"]:
            values["split"] = "" if data["no_split"] else data["split"]
        if data["capability"]:
            values["capability"] = self.nodes.get(data["capability"])
        if data["status"]:
            values["status"] = data["status"]
        if data["question_type"]:
            values["question_type"] = data["question_type"]
        return values
