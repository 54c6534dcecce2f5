"""A verdict that staff enter, in canonical order: an adjudication, or what is right about a gold item."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from annotations import ballots
from annotations.ballots.pairs import Pair
from annotations.models import Campaign, CampaignItem
from annotations.verdicts import main_column
from bank.actions import BadInput
from bank.models.verdict import Choice

COLUMN = {
    "pairwise-criteria": "choice",
    "pair": "choice",
    "batch": "ranking",
    "components": "parts",
    "choice-extraction": "option",
    "yes-no": "answer",
    "review": "agree",
}  # every other protocol: a score
NONE_OF_THEM = "X"


@dataclass(frozen=True, slots=True)
class Entry:
    """What a form asks for: ``column`` and, for it, what may be chosen or how many numbers are wanted."""

    column: str
    choices: list[tuple[str, str]] = field(default_factory=list)  # (value, words)
    situations: list[tuple[int, str]] = field(default_factory=list)
    names: list[str] = field(default_factory=list)  # of the answers or parts that get a number each
    chosen: dict[str, Any] = field(default_factory=dict)  # the verdict that stands in the form

    @property
    def selected(self) -> str:
        """The choice that is on."""
        value = self.chosen.get(self.column)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """(name, the number that stands there) of a ranking or of points."""
        value = self.chosen.get(self.column)
        if self.column == "ranking":
            places = {position: rank for rank, group in enumerate(value or [], 1) for position in group}
            return [(name, str(places.get(position, ""))) for position, name in enumerate(self.names)]
        return [(name, f"{value[name]:g}" if value and name in value else "") for name in self.names]


def entry_of(place: CampaignItem, verdicts: Iterable[Mapping[str, Any]], chosen: Mapping[str, Any]) -> Entry:
    """What is asked about an item; ``verdicts`` are its labels, ``chosen`` what stands already."""
    campaign = place.campaign
    column = COLUMN.get(campaign.protocol, "score")
    stands = dict(chosen)
    match column:
        case "choice":
            words = {"left": "A is better", "tie": "Tie", "right": "B is better", "undecided": "Unable to decide"}
            ballot = ballots.of(campaign)
            allowed = ballot.choices if isinstance(ballot, Pair) else list(words)
            situations = ballot.situations if isinstance(ballot, Pair) else {}
            choices = [(ballots.LEFT_RIGHT[name].value, text) for name, text in words.items() if name in allowed]
            return Entry(column, choices, [(number, str(text)) for number, text in situations.items()], chosen=stands)
        case "option":
            options = [(key, f"{key}. {text}") for key, text in place.item.sample.options.items()]
            return Entry(column, [*options, (NONE_OF_THEM, "None of them")], chosen=stands)
        case "answer" | "agree":
            return Entry(column, [("yes", "Yes"), ("no", "No")], chosen=stands)
        case "ranking":
            letters = [f"Answer {'ABCDEFGH'[n]}" for n in range(place.item.places.count())]
            return Entry(column, names=letters, chosen=stands)
        case "parts":
            keys = list(dict.fromkeys(key for verdict in verdicts for key in verdict.get("parts") or {}))
            return Entry(column, names=keys, chosen=stands)
    return Entry(column, [(f"{value:g}", words) for value, words in scale_of(campaign)], chosen=stands)


def scale_of(campaign: Campaign) -> list[tuple[float, str]]:
    """The steps of a score, with their words."""
    found = []
    for step in ballots.of(campaign).settings["scale"]:
        value, label = float(step["value"]), str(step.get("label") or "")
        found.append((value, f"{value:g}" + (f", {label}" if label and label != f"{value:g}" else "")))
    return found


def read(entry: Entry, posted: Any) -> dict[str, Any]:
    """The verdict columns that a form gives. Raises BadInput."""
    if entry.column in ("ranking", "parts"):
        given = [_number(text) for text in posted.getlist("number")]
        if len(given) != len(entry.names) or None in given or not given:
            raise BadInput("Give a number to each.")
        numbers = [number for number in given if number is not None]
        if entry.column == "parts":
            if min(numbers) < 0:
                raise BadInput("Points are 0 or more.")
            return {"parts": dict(zip(entry.names, numbers, strict=True))}
        ranks = sorted(set(numbers))
        return {"ranking": [[place for place, number in enumerate(numbers) if number == rank] for rank in ranks]}
    value = posted.get("verdict", "")
    if value not in dict(entry.choices):
        raise BadInput("Choose a verdict.")
    if entry.column in ("answer", "agree"):
        return {entry.column: value == "yes"}
    if entry.column == "score":
        return {"score": float(value)}
    if value == Choice.UNDECIDED and entry.situations:
        situation = posted.get("situation", "")
        if situation not in {str(number) for number, _ in entry.situations}:
            raise BadInput("Say which situation it is.")
        return {"choice": value, "situation": int(situation)}
    return {entry.column: value}


def _number(text: str) -> float | None:
    try:
        number = float(text) if text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and abs(number) < 1e6 else None


def stands(place: CampaignItem, labels: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """What a form about this item begins with: the adjudicated verdict, else the gold one, else what all labels say."""
    adjudication = getattr(place, "adjudication", None)
    if adjudication is not None:
        found: dict[str, Any] = adjudication.verdict()
        return found
    if place.gold:
        return dict(place.gold)
    every = [dict(label) for label in labels]
    name = main_column(every[0]) if every else None
    same = name and all(label.get(name) == every[0][name] for label in every)
    return {name: every[0][name]} if name and same else {}
