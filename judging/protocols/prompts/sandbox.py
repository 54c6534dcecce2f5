"""Rendering within limits: a few lines of a template can double a text until memory is full, or loop for hours.

Everything a template writes and every loop iteration is counted before it happens, and rendering stops beyond what any
prompt needs. Material counts every time it is written.
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

MOST_CHARACTERS = 4_000_000  # written by one rendering, including intermediate texts
MOST_ITERATIONS = 100_000  # of its loops, and entries of lists
MOST_SECONDS = 5.0
COPYING = ("upper", "lower", "reverse", "first", "last")  # filters that produce as much as they get
CONCATENATED, SLICED, ITERATED = "_concatenated", "_sliced", "_iterated"  # our filters, inserted by ``metered_tree``


class TooMuch(ValueError):
    """The template writes too much text or runs too long."""

    def __init__(self) -> None:
        super().__init__("the template produces too much text: it doubles a text, or nests loops")


class _Meter:
    def __init__(self) -> None:
        self.characters, self.iterations = MOST_CHARACTERS, MOST_ITERATIONS
        self.until = time.monotonic() + MOST_SECONDS

    def spend(self, characters: int, iterations: int = 0) -> None:
        self.characters -= characters
        self.iterations -= iterations
        if self.characters < 0 or self.iterations < 0 or time.monotonic() > self.until:
            raise TooMuch


_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def metered() -> Iterator[None]:
    """Everything rendered inside counts as one rendering."""
    token = _meter.set(_Meter())
    try:
        yield
    except RecursionError:  # nested lists
        raise TooMuch from None
    finally:
        _meter.reset(token)


def measured(value: Any) -> Any:
    """Count a value that is about to be written or copied, and return it."""
    if (meter := _meter.get()) is not None:  # None while compiling, where values are as short as the template
        _measure(value, meter)
    return value


def _measure(value: Any, meter: _Meter) -> None:
    if isinstance(value, str):
        meter.spend(len(value))
    elif isinstance(value, Mapping):
        _measure(list(value.items()), meter)
    elif isinstance(value, Sequence):
        meter.spend(0, len(value))
        for entry in value:
            _measure(entry, meter)
    else:
        meter.spend(20)


def _concatenated(parts: list[Any]) -> str:
    return "".join(map(str, measured(parts)))


def _iterated(value: Any, weight: int) -> Any:
    """Count the iterations of a loop over a value. Each writes ``weight`` characters of the template itself."""
    items = value if isinstance(value, str | Sequence) else list(value)
    if (meter := _meter.get()) is not None:
        meter.spend(weight * len(items), len(items))
    return items


def _copying(make: Callable[..., Any]) -> Callable[..., Any]:
    def metered_filter(value: Any, *args: Any, **kwargs: Any) -> Any:
        return make(measured(value), *args, **kwargs)

    return metered_filter


@pass_eval_context
def _join(context: nodes.EvalContext, value: Any, d: str = "", attribute: str | int | None = None) -> Any:
    items = list(value)
    measured([*items, d * len(items)])
    return measured(FILTERS["join"](context, items, d, attribute))


class MeteredEnvironment(ImmutableSandboxedEnvironment):
    """Compiles templates. It counts + and %; ``metered_tree`` inserts filters that count the rest."""

    intercepted_binops = frozenset({"+", "%"})

    def __init__(self, **options: Any) -> None:
        super().__init__(finalize=measured, **options)
        self.filters |= {name: _copying(FILTERS[name]) for name in COPYING}
        self.filters |= {"join": _join, CONCATENATED: _concatenated, SLICED: measured, ITERATED: _iterated}

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        for value in (left, right):
            if not isinstance(value, int | float):
                measured(value)
        return super().call_binop(context, operator, left, right)


class _InsertMeters(NodeTransformer):
    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(CONCATENATED, nodes.List(node.nodes, lineno=node.lineno))

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        return _filtered(SLICED, node) if isinstance(node.arg, nodes.Slice) else node

    def visit_For(self, node: nodes.For) -> nodes.Node:
        weight = sum(len(text.data) for part in node.body for text in _all(part, nodes.TemplateData))
        weight += sum(len(str(text.value)) for part in node.body for text in _all(part, nodes.Const))
        self.generic_visit(node)
        node.iter = _filtered(ITERATED, node.iter, nodes.Const(weight, lineno=node.lineno))
        return node


def _all(node: nodes.Node, kind: Any) -> Iterator[Any]:
    if isinstance(node, kind):
        yield node
    yield from node.find_all(kind)


def _filtered(name: str, node: Any, *args: nodes.Expr) -> nodes.Filter:
    return nodes.Filter(node, name, list(args), [], None, None, lineno=node.lineno)


def metered_tree(tree: nodes.Template, environment: MeteredEnvironment) -> nodes.Template:
    """The template with the counting filters inserted."""
    metered_template: nodes.Template = _InsertMeters().visit(tree)
    metered_template.set_environment(environment)
    return metered_template
