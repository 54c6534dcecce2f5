"""The form that says what the columns of an uploaded table hold."""

from collections.abc import Iterator
from typing import Any

from django import forms

from bank.forms.fields import tick
from bank.intake.formats import mapping
from bank.intake.formats.mapping import Column, ColumnMap, Proposal
from bank.intake.uploads import actions, staging
from bank.models import Upload
from bank.picked import filled

SHOWN = 3  # of what comes nearest
NOT_THERE = {
    "annotator": "Left empty, people are called human.",
    "judge": "If a model decided, not a person.",
    "category": "One for all, or leave it empty.",
    "model": "Whose answers these are.",
}


class ColumnsForm(forms.Form):
    """What each column holds, what words in it stand for, and what is the same for all rows."""

    keep = tick("Remember for files with these columns")

    def __init__(self, data: Any = None, *, upload: Upload, shape: str = "", typed: Any = None) -> None:
        """``typed``: what was chosen so far, of a form that is drawn again and not yet sent."""
        self.upload = upload
        said = data if data is not None else typed
        self.count, self.columns = staging.columns(upload)
        self.all_shapes = mapping.proposals(self.columns)
        known = mapping.checked(upload.map) if upload.map else None
        self.shape = shape or (said or {}).get("shape") or (known.shape if known else self.all_shapes[0].shape)
        if self.shape not in mapping.SHAPES:
            self.shape = self.all_shapes[0].shape
        self.proposal = next(one for one in self.all_shapes if one.shape == self.shape)
        if known is None or known.shape != self.shape:
            known = self.proposal.map
        super().__init__(data, initial={"keep": upload.keeps_map if typed is None else "keep" in typed})
        self.label_suffix = ""
        if upload.is_limited:
            del self.fields["keep"]
        self._add_columns(known)
        chosen = known.columns if said is None else self._chosen(said)
        self.chosen = chosen
        self._add_values(known, chosen)
        self._add_constants(known, chosen)
        for name in self.fields if typed is not None else ():
            if typed.get(name) or name.startswith("column-"):
                self.initial[name] = typed.get(name)

    def _add_columns(self, known: ColumnMap) -> None:
        field_of = {column: name for name, column in known.columns.items()}
        choices = [("", "Leave out"), *((name, mapping.label(name)) for name in mapping.FIELDS[self.shape])]
        for number, column in enumerate(self.columns):
            self.fields[f"column-{number}"] = forms.ChoiceField(
                choices=choices,
                required=False,
                initial=field_of.get(column.name, ""),
                label=f"What {column.name} holds",
                widget=forms.Select(attrs={"class": "input"}),
            )

    def _chosen(self, data: Any) -> dict[str, str]:
        """The columns by field as the form was sent."""
        sent = ((data.get(f"column-{number}"), column.name) for number, column in enumerate(self.columns))
        return {name: column for name, column in sent if name in mapping.FIELDS[self.shape]}

    def _add_values(self, known: ColumnMap, chosen: dict[str, str]) -> None:
        self.words: dict[str, dict[str, int]] = {}
        proposed = known.model_copy(update={"columns": chosen})
        for name, words in mapping.open_values(proposed, self.columns).items():
            self.words[name] = words
            choices = [("", "choose"), *mapping.WORDS[name].items()]
            for number, word in enumerate(words):
                meaning = known.values.get(name, {}).get(word) or mapping.meaning_of(name, word)
                self.fields[f"value-{name}-{number}"] = forms.ChoiceField(
                    choices=choices,
                    required=False,
                    initial=meaning,
                    label=f"What {word} stands for",
                    widget=forms.Select(attrs={"class": "input"}),
                )

    def _add_constants(self, known: ColumnMap, chosen: dict[str, str]) -> None:
        self.absent = [name for name in mapping.CONSTANTS[self.shape] if name not in chosen]
        for name in self.absent:
            self.fields[f"constant-{name}"] = forms.CharField(
                required=False,
                max_length=200,
                initial=known.constants.get(name, ""),
                label=mapping.label(name),
                help_text=NOT_THERE.get(name, ""),
                widget=forms.TextInput(attrs={"class": "input"}),
            )

    @property
    def nearest(self) -> list[Proposal]:
        """What the table comes nearest to, with what is chosen."""
        first = self.all_shapes[:SHOWN]
        return first if self.proposal in first else [*first, self.proposal]

    @property
    def others(self) -> list[Proposal]:
        return [one for one in self.all_shapes if one not in self.nearest]

    @property
    def rows(self) -> Iterator[tuple[Column, forms.BoundField, str]]:
        """Each column with its field, and how it was found: ``name``, ``content``, or "" where somebody chose it."""
        found = {column: name for name, column in self.proposal.columns.items()}
        for number, column in enumerate(self.columns):
            bound = self[f"column-{number}"]
            is_found = bool(bound.value()) and found.get(column.name) == bound.value()
            how = "content" if bound.value() in self.proposal.by_content else "name"
            yield column, bound, how if is_found else ""

    @property
    def values(self) -> Iterator[tuple[str, str, list[tuple[str, int, forms.BoundField]]]]:
        """Each field whose words must be told, by its label and the name of its column: the words with their rows."""
        for name, words in self.words.items():
            column = self.chosen.get(name, "")
            told = [(word, n, self[f"value-{name}-{number}"]) for number, (word, n) in enumerate(words.items())]
            yield mapping.label(name), column, told

    @property
    def constants(self) -> list[forms.BoundField]:
        return [self[f"constant-{name}"] for name in self.absent]

    def _meanings(self, name: str, data: dict[str, Any]) -> dict[str, str]:
        """What words in the column of this field stand for, where that is said."""
        sent = {word: data.get(f"value-{name}-{number}", "") for number, word in enumerate(self.words[name])}
        return filled(sent)

    def _columns_by_field(self, data: dict[str, Any]) -> dict[str, str]:
        """Of two columns for one field the first; the other is an error."""
        columns: dict[str, str] = {}
        for number, column in enumerate(self.columns):
            name = data.get(f"column-{number}", "")
            if name in columns:
                self.add_error(f"column-{number}", f"{columns[name]} is {mapping.label(name)} already.")
            elif name:
                columns[name] = column.name
        return columns

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        columns = self._columns_by_field(data)
        meanings = {name: self._meanings(name, data) for name in self.words}
        if any(self.words.values()) and not any(meanings.values()):
            self.add_error(None, "Say what the words stand for.")
        constants = {name: text for name in self.absent if (text := data.get(f"constant-{name}", "").strip())}
        try:
            self.map = ColumnMap(shape=self.proposal.shape, columns=columns, values=meanings, constants=constants)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        if missing := self.map.missing:
            self.add_error(None, f"No column holds {', '.join(map(mapping.label, missing))}.")
        return data

    def carry_out(self) -> None:
        """Have the table checked as it is named now. Raises WrongState."""
        actions.name_columns(upload=self.upload, map=self.map, keep=self.cleaned_data.get("keep", False))
