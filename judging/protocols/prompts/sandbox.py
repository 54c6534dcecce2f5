"""Rendering in bounds: a few lines of a template can double a text until the memory is full, or go round for hours.

Wherever a template makes a text or goes round a loop, that is counted before it is done, and ends beyond what any
prompt takes. The material that a prompt shows is counted as often as it is written.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from jinja2 import nodes, pass_eval_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

MOST_CHARACTERS = 4_000_000  # that one rendering writes, those of texts on the way included
MOST_ROUNDS = 100_000  # of its loops, and things looked at in lists
MOST_SECONDS = 5.0
COPYING = ("upper", "lower", "reverse", "first", "last")  # filters that make as much as they are given
WRITTEN, SHOWN, ROUNDS = "_written", "_shown", "_rounds"  # filters of ours, put in by ``counted``


class TooMuch(ValueError):
    """A template that writes more than any prompt is long, or does not come to an end."""

    def __init__(self) -> None:
        super().__init__("the template makes too much of it: it doubles a text, or loops in loops")


class _Meter:
    def __init__(self) -> None:
        self.characters, self.rounds = MOST_CHARACTERS, MOST_ROUNDS
        self.until = time.monotonic() + MOST_SECONDS

    def spend(self, characters: int, rounds: int = 0) -> None:
        self.characters -= characters
        self.rounds -= rounds
        if self.characters < 0 or self.rounds < 0 or time.monotonic() > self.until:
            raise TooMuch


_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[None]:
    """What is rendered inside is one rendering."""
    token = _meter.set(_Meter())
    try:
        yield
    except RecursionError:  # lists in lists
        raise TooMuch from None
    finally:
        _meter.reset(token)


def measured(value: Any) -> Any:
    """A value that is about to be written or copied, once it is counted."""
    if (meter := _meter.get()) is not None:  # None: what the compiler works out beforehand is as short as the template
        _measure(value, meter)
    return value


def _measure(value: Any, meter: _Meter) -> None:
    if isinstance(value, str):
        meter.spend(len(value))
    elif isinstance(value, Mapping):
        _measure(list(value.items()), meter)
    elif isinstance(value, Sequence):
        meter.spend(0, len(value))
        for one in value:
            _measure(one, meter)
    else:
        meter.spend(20)


def _written(parts: list[Any]) -> str:
    return "".join(map(str, measured(parts)))


def _rounds(value: Any, weight: int) -> Any:
    """What a loop goes over, once its rounds are counted. Each writes ``weight`` characters of the template itself."""
    items = value if isinstance(value, str | Sequence) else list(value)
    if (meter := _meter.get()) is not None:
        meter.spend(weight * len(items), len(items))
    return items


def _copying(make: Callable[..., Any]) -> Callable[..., Any]:
    def filtered(value: Any, *given: Any, **named: Any) -> Any:
        return make(measured(value), *given, **named)

    return filtered


@pass_eval_context
def _join(context: nodes.EvalContext, value: Any, d: str = "", attribute: str | int | None = None) -> Any:
    items = list(value)
    measured([*items, d * len(items)])
    return measured(FILTERS["join"](context, items, d, attribute))


class Bounded(ImmutableSandboxedEnvironment):
    """Where templates are compiled. + and % are counted here, all else by what ``counted`` puts into a template."""

    intercepted_binops = frozenset({"+", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=measured, **options)
        self.filters |= {name: _copying(FILTERS[name]) for name in COPYING}
        self.filters |= {"join": _join, WRITTEN: _written, SHOWN: measured, ROUNDS: _rounds}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, int | float):
                measured(value)
        return super().call_binop(context, operator, left, right)


class _Counting(NodeTransformer):
    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _through(WRITTEN, nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _through(SHOWN, node) if isinstance(node.arg, nodes.Slice) else node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        own = sum(len(text.data) for part in node.body for text in _all(part, nodes.TemplateData))
        own += sum(len(str(text.value)) for part in node.body for text in _all(part, nodes.Const))
        self.generic_visit(node)
        node.iter = _through(ROUNDS, node.iter, nodes.Const(own, lineno=node.lineno))
        return node


def _all(node: nodes.Node, kind: Any) -> Iterator[Any]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)


def _through(name: str, node: Any, *given: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(given), [], None, None, lineno=node.lineno)


def counted(tree: nodes.Template, environment: Bounded) -> nodes.Template:
    """The template with all counting in it."""
    found: nodes.Template = _Counting().visit(tree)
    found.set_environment(environment)
    return found
