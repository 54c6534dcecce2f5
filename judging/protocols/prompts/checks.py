"""What is wrong with a template that somebody wrote, before it may be used.

The material of a prompt is data that others wrote: a candidate could write a line that looks like one of ours. So every
piece must stand between tags that end in the nonce, which nobody could know. That is tried, not only asked for: the
template is rendered with marked texts under every combination of settings that it can tell apart. Templates may branch
on settings and on what is there, never on what a text says, so these renderings stand for all.
"""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence

from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.meta import find_undeclared_variables

from bank.models import Item
from judging.protocols import CannotAsk, Criterion, Material, Option, Protocol, prompts
from judging.protocols.settings import Settings

LONGEST = 20_000
MOST_SHOWN = 12
FENCE = ("<NAME-{{ nonce }}>", "</NAME-{{ nonce }}>")
NONCE = "7d1e5a90c3b8f246"
COUNTS = {Item.Kind.SCORE: 1, Item.Kind.PAIR: 2, Item.Kind.BATCH: 3}
ALLOWED = (
    *(nodes.Template, nodes.Output, nodes.TemplateData, nodes.Name, nodes.Const, nodes.For, nodes.If, nodes.Assign),
    *(nodes.AssignBlock, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Filter, nodes.Test, nodes.Compare),
    *(nodes.Operand, nodes.And, nodes.Or, nodes.Not, nodes.CondExpr, nodes.Concat, nodes.Add, nodes.Sub, nodes.Mod),
    *(nodes.Tuple, nodes.List),
)
FILTERS = frozenset({"join", "length", "count", "reverse", "first", "last", "upper", "lower"})
TESTS = frozenset({"odd", "even", "divisibleby"})
# What a template may compare: settings and places, never what a text says.
COMPARED = frozenset({"picture", "reasoning", "images", "letters", "loop", "scale", "total"})
PLAIN_FORMAT = re.compile(r"(?:[^%]|%%|%[ds])*")


class Marks:
    """Texts that can be found again, by what they stand for."""

    def __init__(self) -> None:
        self.words: dict[str, str] = {}

    def __call__(self, what: str) -> str:
        mark = f"mark{len(self.words)}of5c1d"
        self.words[mark] = what
        # Two lines: a template that puts a text into the middle of a line of its own is found out.
        return f"{mark} begins\n{mark} ends"


def faults(protocol: Protocol, text: str) -> list[str]:
    """Everything that keeps a template from being used, in words; none for a good one."""
    if not text.strip():
        return ["The template is empty."]
    if len(text) > LONGEST:
        return [f"The template is longer than {LONGEST:,} characters."]
    try:
        tree = prompts.parsed(text)
        # One after the other: what is forbidden could already cost a gigabyte when names are looked for.
        found = list(_forbidden(tree)) or list(_unknown(tree, protocol)) or list(_tried(protocol, text))
    except TemplateSyntaxError as error:
        return [f"Line {error.lineno}: {error.message}"]
    except RecursionError:
        return ["The template is nested too deeply."]
    return list(dict.fromkeys(found))[:MOST_SHOWN]


def variables(protocol: Protocol) -> list[str]:
    """What a template of this protocol may name."""
    settings = protocol.settings({})
    return sorted(protocol.values(_material(protocol, Marks(), picture="shown"), settings))


# -- the tree -------------------------------------------------------------------------------------------------------


def _forbidden(tree: nodes.Template) -> Iterator[str]:
    for node in _below(tree):
        kind = type(node).__name__
        if not isinstance(node, ALLOWED):
            yield f"Line {node.lineno}: {kind.lower()} is not for prompts. Use output, if, for and set."
        elif isinstance(node, nodes.Filter) and node.name not in FILTERS:
            yield f"Line {node.lineno}: the filter {node.name} is not for prompts. There are: {_list(FILTERS)}."
        elif isinstance(node, nodes.Test) and node.name not in TESTS:
            yield f"Line {node.lineno}: the test {node.name} is not for prompts. There are: {_list(TESTS)}."
        elif isinstance(node, nodes.Mod) and not _formats_plainly(node):
            yield f"Line {node.lineno}: % takes a text with %d or %s on its left."
        elif isinstance(node, nodes.Getattr) and node.attr.startswith("_"):
            yield f"Line {node.lineno}: {node.attr} is not for prompts."
        elif isinstance(node, nodes.Compare) and (names := _compared(node) - COMPARED):
            yield f"Line {node.lineno}: {_list(names)} cannot be compared; a prompt does not go by what a text says."


def _below(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _below(child)


def _formats_plainly(node: nodes.Mod) -> bool:
    left = node.left
    return isinstance(left, nodes.Const) and isinstance(left.value, str) and bool(PLAIN_FORMAT.fullmatch(left.value))


def _compared(node: nodes.Compare) -> set[str]:
    """The names whose value is compared; how many there are of something may be."""

    def names(part: nodes.Node) -> Iterator[str]:
        if isinstance(part, nodes.Filter) and part.name in ("length", "count") and isinstance(part.node, nodes.Name):
            return
        if isinstance(part, nodes.Name):
            yield part.name
        for child in part.iter_child_nodes():
            yield from names(child)

    return set(names(node))


def _unknown(tree: nodes.Template, protocol: Protocol) -> Iterator[str]:
    known = variables(protocol)
    if strange := find_undeclared_variables(tree) - set(known):
        yield f"There is no {_list(strange)} here. Templates of {protocol.name} may name: {_list(known)}."


def _list(words: Iterable[str]) -> str:
    return ", ".join(sorted(words))


# -- the renderings -------------------------------------------------------------------------------------------------


def _tried(protocol: Protocol, text: str) -> Iterator[str]:
    template = prompts.Prompt(protocol.name, "draft", 0, text, "")
    for settings, picture, hinted in _situations(protocol):
        marks = Marks()
        material = _material(protocol, marks, picture=picture, hinted=hinted)
        try:
            rendered = protocol.render(template, material, settings)
        except CannotAsk as error:  # it makes too much: no use in trying that again and again
            yield f"It cannot be rendered: {error}."
            return
        except (TemplateError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            yield f"It cannot be rendered ({_situation(settings, picture)}): {str(error)[:200]}"
            continue
        fenced, outside = _parts(rendered)
        needed = _needed(protocol, settings, picture, hinted)
        for mark, what in marks.words.items():
            if mark in outside:
                yield f"{what} must stand between a line {FENCE[0]} and a line {FENCE[1]}."
            elif what in needed and f"{mark} begins\n{mark} ends" not in fenced:
                yield f"{what} is not shown whole ({_situation(settings, picture)})."
        yield from (
            f"The judge is not told to write {words} ({_situation(settings, picture)})."
            for pattern, words in protocol.answer_forms
            if not re.search(pattern, outside)
        )


def _situations(protocol: Protocol) -> Iterator[tuple[Settings, str, bool]]:
    base = protocol.settings({})
    criteria = [base["criteria"]] if "criteria" in protocol.fixed else [True, False]
    pictures = ["shown", "described", "withheld", "none"]
    for reasoning, shown, picture, hinted in itertools.product(protocol.reasonings, criteria, pictures, [False, True]):
        yield base | {"reasoning": reasoning, "criteria": shown}, picture, hinted


def _situation(settings: Settings, picture: str) -> str:
    shown = "shown" if settings["criteria"] else "off"
    return f"picture {picture}, reasoning {settings['reasoning']}, criteria {shown}"


def _needed(protocol: Protocol, settings: Settings, picture: str, hinted: bool) -> set[str]:
    needed = {"The instruction", *(f"Answer {number}" for number in range(1, COUNTS[Item.Kind(protocol.kind)] + 1))}
    values = set(protocol.values(_material(protocol, Marks(), picture=picture), settings))
    if "components" in values:
        needed |= {"Component 1", "Component 2"}
    elif "references" in values:
        needed.add("The reference answer")
    elif settings["criteria"]:
        needed.add("The criterion")
    if picture == "described" and "context" not in protocol.fixed:
        needed |= {"The description of the picture", "The objects in the picture"}
    if protocol.name == "choice-extraction":
        needed |= {"Option A", "Option B"}
    return needed


def _material(protocol: Protocol, marks: Marks, *, picture: str, hinted: bool = False) -> Material:
    """All that a prompt of any protocol may show, each text marked."""
    count = COUNTS[Item.Kind(protocol.kind)]
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
        answers=tuple(marks(f"Answer {number}") for number in range(1, count + 1)),
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


def _parts(rendered: str) -> tuple[str, str]:
    """The text inside and outside of fences. A fence that does not end holds nothing."""
    inside: list[str] = []
    outside: list[str] = []
    lines: Sequence[str] = rendered.split("\n")
    at = 0
    while at < len(lines):
        opens = _OPENS.fullmatch(lines[at].strip())
        closing = f"</{opens['tag']}-{NONCE}>" if opens else ""
        end = next((n for n in range(at + 1, len(lines)) if lines[n].strip() == closing), None) if opens else None
        if end is None:
            outside.append(lines[at])
            at += 1
        else:
            inside += lines[at + 1 : end]
            at = end + 1
    return "\n".join(inside), "\n".join(outside)
