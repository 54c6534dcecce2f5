"""The category of one text or picture: nominal labels, with categories that each run or campaign sets for itself."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bank.models import Item
from bank.models.verdict import LABEL, MAX_CATEGORY
from bank.text.names import as_stored
from judging.protocols.base import Material, Protocol
from judging.protocols.replies import NoVerdict, ParsedVerdict, Place, unwrapped, verdict_candidates
from judging.protocols.settings import BadSettings, Settings

MOST_CATEGORIES = 100
MAX_ABOUT = MAX_QUESTION = 1_000
FORM = "categories: a list, each a name, or {value, about}."


def categories_of(chosen: Any) -> list[dict[str, str]]:
    """The categories in canonical form, ``value`` and ``about``, in the order chosen. Raises BadSettings.

    Names that a reader could take for each other, because they differ in capitals alone, are refused.
    """
    chosen = [] if chosen is None else chosen
    if not isinstance(chosen, list):
        raise BadSettings(FORM)
    if not 2 <= len(chosen) <= MOST_CATEGORIES:
        raise BadSettings(f"categories: name 2 to {MOST_CATEGORIES} of them.")
    categories = list(map(_category, chosen))
    if len({_bare(category["value"]) for category in categories}) < len(categories):
        raise BadSettings("categories: two have the same name.")
    return categories


def _category(each: Any) -> dict[str, str]:
    parts = {"value": each} if isinstance(each, str) else each
    if not isinstance(parts, Mapping) or not set(parts) <= {"value", "about"}:
        raise BadSettings(FORM)
    value, about = parts.get("value"), parts.get("about", "")
    if not isinstance(value, str) or not isinstance(about, str):
        raise BadSettings(FORM)
    value = as_stored(" ".join(value.split()))
    if not 0 < len(value) <= MAX_CATEGORY or len(about) > MAX_ABOUT:
        raise BadSettings(
            f"categories: a name has 1 to {MAX_CATEGORY} characters, what it means at most {MAX_ABOUT:,}."
        )
    return {"value": value, "about": " ".join(about.split())}


def categories_in(text: str) -> list[dict[str, str]]:
    """Categories written one per line, each a name, or a name, a colon and what it means; see ``categories_of``."""
    lines = (line.partition(":") for line in text.splitlines() if line.strip())
    return [{"value": name.strip(), "about": about.strip()} for name, _, about in lines]


def as_lines(categories: Sequence[Mapping[str, str]]) -> str:
    """The inverse of ``categories_in``."""
    return "\n".join(": ".join(filter(None, (each["value"], each.get("about", "")))) for each in categories)


def question_of(chosen: Any) -> str:
    """The question about each text or picture; empty for a general question. Raises BadSettings."""
    if not isinstance(chosen, str) or len(chosen) > MAX_QUESTION:
        raise BadSettings(f"question: a text of at most {MAX_QUESTION:,} characters.")
    return " ".join(chosen.split())


def _bare(name: str) -> str:
    return unwrapped(re.sub(r"[*_`#]", "", name)).casefold()


def parse_label(text: str, *, place: Place, categories: Sequence[str]) -> ParsedVerdict:
    """The category in a reply, as the run writes it; capitals, quotes and brackets do not matter. Raises NoVerdict."""
    by_name = {_bare(name): name for name in categories}
    for piece in verdict_candidates(text, place=place):
        name = by_name.get(_bare(piece.value))
        if name is not None:
            return ParsedVerdict({"option": name}, piece.analysis)
    raise NoVerdict(f"none of the categories on the {place} line")


class Label(Protocol):
    name = LABEL
    title = "Categories"
    words = "which category a text or picture belongs to"
    kind = Item.Kind.SCORE
    verdict_kind = "nominal"
    needs_answer = False
    own_settings = ("categories", "question")
    answer_forms = (
        (r"Label: ", "Label: and a category"),
        (r"some category(.|\n)*another one", "the name of every one of the categories"),
    )
    defaults = {"criteria": False}
    fixed = ("criteria",)  # with letters as categories, a label would tell a hidden key
    baselines = {"random": lambda case: {"option": case.rng.choice(list(case.categories))}}
    example = {"categories": ["some category", "another one"]}

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        """``categories`` has no default: what they are is what the run is about."""
        settings = super().settings(chosen) | {"categories": categories_of(chosen.get("categories"))}
        question = question_of(chosen.get("question", ""))
        return settings | ({"question": question} if question else {})

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        own = {"categories": settings["categories"], "question": settings.get("question", "")}
        return super().values(material, settings) | own

    def verdict_schema(self, material: Material, settings: Settings) -> dict[str, Any]:
        return {"type": "string", "enum": _names(settings)}

    def parse(self, text: str, material: Material, settings: Settings) -> ParsedVerdict:
        return parse_label(text, place=self.verdict_line(settings), categories=_names(settings))


def _names(settings: Settings) -> list[str]:
    return [category["value"] for category in settings["categories"]]
