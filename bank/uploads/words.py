"""Counts, reasons and places as the pages say them."""

import re
from collections import Counter

from bank.formats.reading import Problem
from bank.models import Upload
from bank.uploads import staging

QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
NUMBER = re.compile(r"(?<![\w.])\d[\d,.]*")
ONE = {"criteria": "criterion"}
# Reasons as a library or a terminal says them, and as the page does.
ON_THE_PAGE = (
    ("Extra inputs are not permitted", "is no field that is known here; is it spelled right?"),
    ("Field required", "is missing"),
    ("name it with --model", "name it in the field Model"),
    ("name it with --judge", "name it in the field Judge"),
    ("name another with --campaign", "name another in the field Campaign"),
    ("bring the new ones in with --version.", "bring them in as a new version."),
)


def counts(made: "Counter[str] | dict[str, int]") -> str:
    """``420 samples, 1 image``; "" where nothing."""
    return ", ".join(f"{count:,} {_noun(noun, count)}" for noun, count in made.items() if count)


def _noun(noun: str, count: int) -> str:
    if count != 1:
        return noun
    first, _, rest = noun.partition(" ")
    one = ONE.get(first, first[:-1] if first.endswith("s") else first)
    return f"{one} {rest}".strip()


def reason(problem: Problem) -> str:
    """Why, for somebody at the page."""
    text = problem.reason
    for terminal, page in ON_THE_PAGE:
        text = text.replace(terminal, page)
    return text[:500]


def kind(problem: Problem) -> str:
    """The same for all rows that have the same fault: names and numbers left out."""
    text = NUMBER.sub("…", QUOTED.sub("…", reason(problem)))
    field = ".".join(part for part in problem.field.split(".") if not part.isdigit())
    return f"{field}: {text}" if field else text


def without_paths(text: str, upload: Upload) -> str:
    """The text without the place where the files lie on this machine."""
    root = str(staging.plain(upload))
    return text.replace(f"{root}/", "").replace(root, upload.name)
