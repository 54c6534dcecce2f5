"""A recipe's YAML as somebody types it: written to be changed by hand, and what is wrong with it in which line."""

from collections.abc import Sequence
from typing import Any

import yaml

from bank.recipes.spec import BadRecipe, Spec, from_yaml, stored


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def of_spec(spec: Spec) -> str:
    """A recipe as YAML that is easy to change by hand; it reads back unchanged."""
    value = {"name": spec.name} | stored(spec)
    text: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return text


def lines_of(text: str, place: Sequence[str | int]) -> range:
    """The numbers of the lines, from 1, that say what stands at a place ("turns", 0, "kind"); of the deepest known
    part of it. Empty where the text is no YAML, or does not say it.
    """
    try:
        node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return range(0)
    found = range(0)
    for step in place:
        if isinstance(node, yaml.MappingNode):
            key, node = next(((k, v) for k, v in node.value if k.value == str(step)), (None, None))
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
            key = node = node.value[step]
        else:
            break
        if key is None:
            break
        found = range(key.start_mark.line + 1, _last_line(node) + 1)
    return found


def _last_line(node: Any) -> int:
    if isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]  # marks of blocks end where the next key begins
        return _last_line(last[1] if isinstance(last, tuple) else last)
    end = node.end_mark
    return max(node.start_mark.line + 1, end.line + 1 if end.column else end.line)


def fault_in(text: str) -> tuple[Spec | None, BadRecipe | None, int]:
    """The recipe in a text, or its fault and the line, from 1 (0: nowhere in particular)."""
    try:
        return from_yaml(text), None, 0
    except BadRecipe as error:
        found = lines_of(text, error.place)
        return None, error, error.line or (found.start if found else 0)
