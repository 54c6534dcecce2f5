"""A capability tree in the order in which it is read."""

from collections import defaultdict
from dataclasses import dataclass, field

from bank.models import Benchmark, Capability
from bank.queries.benchmarks import by_capability


@dataclass(slots=True)
class Node:
    """A capability in its tree; ``own`` samples are its own, ``all`` with those of everything below."""

    capability: Capability
    depth: int
    own: int = 0
    all: int = 0
    below: list[int] = field(default_factory=list)  # ids of the subtree, itself included
    first: bool = False
    last: bool = False

    @property
    def indent(self) -> str:
        return "\u2003" * self.depth


def tree_of(benchmark: Benchmark, *, counts: dict[int | None, int] | None = None) -> list[Node]:
    """Depth first, siblings by position. ``counts`` are samples by capability id, counted where not given."""
    if counts is None:
        counts = by_capability(benchmark)
    children: dict[int | None, list[Capability]] = defaultdict(list)
    for capability in benchmark.capabilities.order_by("position", "pk"):
        children[capability.parent_id].append(capability)
    nodes: list[Node] = []

    def walk(parent: int | None, depth: int) -> list[Node]:
        made = []
        for number, capability in enumerate(children[parent]):
            own = counts.get(capability.pk, 0)
            node = Node(capability, depth, own, own, [capability.pk], number == 0)
            node.last = number == len(children[parent]) - 1
            nodes.append(node)
            for child in walk(capability.pk, depth + 1):
                node.all += child.all
                node.below += child.below
            made.append(node)
        return made

    walk(None, 0)
    return nodes
