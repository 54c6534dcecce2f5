"""Checks of a template that somebody wrote, before it may be used.

The material of a prompt is data from others: a candidate could write a line that looks like one of ours. Every piece
must therefore be fenced by tags that end in the nonce, which nobody can know. This is tested, not just required: the
template is rendered with marked texts under every combination of settings it can distinguish. Templates may branch on
settings and on what exists, never on the content of a text, so these renderings cover all others.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables

from judging.protocols import CannotAsk, Criterion, Material, Option, Protocol, prompts
from judging.protocols.settings import Settings

MOST_CHARACTERS = 20_000
MOST_FAULTS = 12
FENCE = ("<NAME-{{ nonce }}>", "</NAME-{{ nonce }}>")
NONCE = "7d1e5a90c3b8f246"
ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.For, nodes.If, nodes.Assign),
    *(nodes.AssignBlock, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Compare),
    *(nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Concat, nodes.Add, nodes.Sub, nodes.Mod),
    *(nodes.Tuple, nodes.List),
)
FILTERS = frozenset({"join", "length", "count", "reverse", "first", "last", "upper", "lower"})
TESTS = frozenset({"odd", "even", "divisibleby"})
# What a template may compare: settings and positions, never the content of a text.
COMPARED = frozenset({"picture", "reasoning", "images", "language", "letters", "loop", "scale", "total"})
UNRENDERED = (TemplateError, ArithmeticError, LookupError, TypeError, ValueError)
PLAIN_FORMAT = re.compile(r"(?:[^%]|%%|%[ds])*")


class Marks:
    """Placeholder texts that can be found in the rendered prompt, with a label for each."""

    def __init__(self) -> None:
        self.labels: dict[str, str] = {}

    def __call__(self, label: str) -> str:
        mark = f"mark{len(self.labels)}of5c1d"
        self.labels[mark] = label
        # Two lines, to detect a template that puts a text in the middle of a line of its own.
        return f"{mark} begins\n{mark} ends"


def faults(protocol: Protocol, text: str, *, as_published: bool = False) -> list[str]:
    """Everything that keeps a template from being used; empty for a good one.

    One that is ``as_published`` needs no fences, and may ask for the verdict in its own words; it must show the
    instruction and the answers somewhere.
    """
    rendering = partial(_rendering_faults, protocol, text, as_published=as_published)
    return _faults(text, variables(protocol), f"Templates of {protocol.name}", rendering)


def _faults(text: str, known: Iterable[str], such: str, rendering: Callable[[], Iterable[str]]) -> list[str]:
    """The first faults that are found: of every template's text, then of its variables (``such`` ones have those that
    are ``known``), then of its ``rendering``.
    """
    if not text.strip():
        return ["The template is empty."]
    if len(text) > MOST_CHARACTERS:
        return [f"The template is longer than {MOST_CHARACTERS:,} characters."]
    try:
        tree = prompts.parsed(text)
        # A forbidden construct could cost a gigabyte while names are looked up: it comes first.
        problems = list(_forbidden(tree)) or _unknown(tree, set(known), such) or list(rendering())
    except TemplateSyntaxError as error:
        return [f"Line {error.lineno}: {error.message}"]
    except RecursionError:
        return ["The template is nested too deeply."]
    return list(dict.fromkeys(problems))[:MOST_FAULTS]


QUERY_VARIABLES = ("ask", "hint", "images", "instruction", "language", "options")  # of prompts for answering models


def query_faults(text: str) -> list[str]:
    """Everything that keeps a template from asking a model: it must show the instruction and all options.

    What a model is asked needs no fences: the questions are staff's own.
    """
    return _faults(text, QUERY_VARIABLES, "Prompts for models", partial(_not_shown, text))


def _not_shown(query: str) -> list[str]:
    marks = Marks()
    options = [("A", marks("Option A")), ("B", marks("Option B"))]
    values = {"instruction": marks("The instruction"), "hint": "", "images": 1, "language": "en", "ask": "Which?"}
    try:
        rendered = prompts.rendered(query, values | {"options": options})
        prompts.rendered(query, values | {"options": [], "images": 0, "language": "zh", "hint": "h"})
    except UNRENDERED as error:
        return [f"It cannot be rendered: {str(error)[:200]}"]
    return [f"{label} is not shown in full." for mark, label in marks.labels.items() if f"{mark} ends" not in rendered]


def variables(protocol: Protocol) -> list[str]:
    """The variables of this protocol's templates."""
    settings = protocol.settings(protocol.example)
    return sorted(protocol.values(_material(protocol, Marks(), picture="shown"), settings))


# -- the tree -------------------------------------------------------------------------------------------------------


def _forbidden(tree: nodes.Template) -> Iterator[str]:
    for node in _descendants(tree):
        kind = type(node).__name__
        if not isinstance(node, ALLOWED):
            yield f"Line {node.lineno}: {kind.lower()} is not allowed in prompts. Use output, if, for and set."
        elif isinstance(node, nodes.Filter) and node.name not in FILTERS:
            yield f"Line {node.lineno}: the filter {node.name} is not allowed. Allowed filters: {_list(FILTERS)}."
        elif isinstance(node, nodes.Test) and node.name not in TESTS:
            yield f"Line {node.lineno}: the test {node.name} is not allowed. Allowed tests: {_list(TESTS)}."
        elif isinstance(node, nodes.Mod) and not _formats_plainly(node):
            yield f"Line {node.lineno}: % needs a text with %d or %s on its left."
        elif isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
            yield f"Line {node.lineno}: {node.attr} is not allowed in prompts."
        elif isinstance(node, nodes.Compare) and (names := _compared(node) - COMPARED):
            yield f"Line {node.lineno}: {_list(names)} cannot be compared: prompts must not depend on what a text says."


def _descendants(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _descendants(child)


def _formats_plainly(node: nodes.Mod) -> bool:
    left = node.left
    return isinstance(left, nodes.Const) and isinstance(left.value, str) and bool(PLAIN_FORMAT.fullmatch(left.value))


def _compared(node: nodes.Compare) -> set[str]:
    """The names whose values are compared. Comparing the length of a list is allowed."""

    def names(part: nodes.Node) -> Iterator[str]:
        if isinstance(part, nodes.Filter) and part.name in ("length", "count") and isinstance(part.node, nodes.Name):
            return
        if isinstance(part, nodes.Name):
            yield part.name
        for child in part.iter_child_nodes():
            yield from names(child)

    return set(names(node))


def _unknown(tree: nodes.Template, known: set[str], such: str) -> list[str]:
    unknown = find_undeclared_variables(tree) - known
    return [f"Unknown variable: {_list(unknown)}. {such} have: {_list(known)}."] if unknown else []


def _list(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


# -- the renderings -------------------------------------------------------------------------------------------------


def _left_out(marks: Marks, rendered: str) -> list[str]:
    """The instruction or answers that a rendered prompt does not show."""
    return [
        label
        for mark, label in marks.labels.items()
        if label.startswith(("The instruction", "Answer ")) and mark not in rendered
    ]


def _rendering_faults(protocol: Protocol, text: str, *, as_published: bool) -> Iterator[str]:
    template = prompts.Prompt(protocol.name, "draft", 0, text, "")
    for settings, picture, hinted in _combinations(protocol):
        marks = Marks()
        material = _material(protocol, marks, picture=picture, hinted=hinted)
        where = f"({_combination(settings, picture)})"
        try:
            rendered = protocol.render(template, material, settings)
        except CannotAsk as error:  # it produces too much text: no use in trying further combinations
            yield f"It cannot be rendered: {error}."
            return
        except UNRENDERED as error:
            yield f"It cannot be rendered {where}: {str(error)[:200]}"
            continue
        if as_published:
            yield from (f"{label} is not shown {where}." for label in _left_out(marks, rendered))
            continue
        fenced, outside = _split_fenced(rendered)
        yield from _fencing_faults(marks, fenced, outside, _needed(protocol, settings, picture, hinted), where)
        yield from (
            f"The judge is not told to write {words} {where}."
            for pattern, words in protocol.answer_forms
            if not re.search(pattern, outside)
        )


def _fencing_faults(marks: Marks, fenced: str, outside: str, needed: set[str], where: str) -> Iterator[str]:
    for mark, label in marks.labels.items():
        if mark in outside:
            yield f"{label} must be between a line {FENCE[0]} and a line {FENCE[1]}."
        elif label in needed and f"{mark} begins\n{mark} ends" not in fenced:
            yield f"{label} is not shown in full {where}."


def _combinations(protocol: Protocol) -> Iterator[tuple[Settings, str, bool]]:
    base = protocol.settings(protocol.example)
    criteria = [base["criteria"]] if "criteria" in protocol.fixed else [True, False]
    pictures = ["shown", "described", "withheld", "none"]
    for reasoning, shown, picture, hinted in itertools.product(protocol.reasonings, criteria, pictures, [False, True]):
        yield base | {"reasoning": reasoning, "criteria": shown}, picture, hinted


def _combination(settings: Settings, picture: str) -> str:
    shown = "shown" if settings["criteria"] else "off"
    return f"picture {picture}, reasoning {settings['reasoning']}, criteria {shown}"


def _needed(protocol: Protocol, settings: Settings, picture: str, hinted: bool) -> set[str]:
    needed = {"The instruction", *(f"Answer {number}" for number in range(1, protocol.answers + 1))}
    values = set(protocol.values(_material(protocol, Marks(), picture=picture), settings))
    if "components" in values:
        needed |= {"Component 1", "Component 2"}
    elif "references" in values:
        needed.add("The reference answer")
    elif settings["criteria"]:
        needed.add("The criterion")
    if picture == "described" and "context" not in protocol.fixed:
        needed |= {"The description of the picture", "The objects in the picture"}
    if protocol.needs_options:
        needed |= {"Option A", "Option B"}
    return needed


def _material(protocol: Protocol, marks: Marks, *, picture: str, hinted: bool = False) -> Material:
    """Everything that a prompt of any protocol may show, each text marked."""
    criteria = (
        Criterion("1", "guideline", marks("The criterion")),
        Criterion("2", "soft_reference", marks("The reference answer")),
        Criterion("3", "component", marks("Component 1"), 4.0),
        Criterion("4", "component", marks("Component 2"), 6.0),
    )
    described = picture == "described"
    return Material(
        instruction=marks("The instruction"),
        question_type="open-ended",
        hint=marks("The hint") if hinted else "",
        answers=tuple(marks(f"Answer {number}") for number in range(1, protocol.answers + 1)),
        criteria=criteria,
        options=(Option("A", "A", marks("Option A")), Option("B", "B", marks("Option B"))),
        scale=((1.0, "Poor"), (2.0, ""), (3.0, "Good")),
        images=1 if picture == "shown" else 0,
        descriptions=(marks("The description of the picture"),) if described else (),
        objects=(marks("The objects in the picture"),) if described else (),
        withheld=picture == "withheld",
        nonce=NONCE,
    )


_OPENS = re.compile(rf"<(?P<tag>[A-Za-z0-9][A-Za-z0-9-]*)-{NONCE}>")


def _split_fenced(rendered: str) -> tuple[str, str]:
    """The text inside and outside of fences. A fence that is not closed contains nothing."""
    inside: list[str] = []
    outside: list[str] = []
    lines: Sequence[str] = rendered.split("\n")
    index = 0
    while index < len(lines):
        opens = _OPENS.fullmatch(lines[index].strip())
        closing = f"</{opens['tag']}-{NONCE}>" if opens else ""
        end = next((n for n in range(index + 1, len(lines)) if lines[n].strip() == closing), None) if opens else None
        if end is None:
            outside.append(lines[index])
            index += 1
        else:
            inside += lines[index + 1 : end]
            index = end + 1
    return "\n".join(inside), "\n".join(outside)
