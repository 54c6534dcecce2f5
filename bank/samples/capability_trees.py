"""Capability trees that a benchmark can start with."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Max

from bank.models import Benchmark, Capability

SEPARATOR = " / "
# Names in order; the value of a name is the subtree below it.
Tree = dict[str, Any]

TITLES = {
    "mllm-bench": "MLLM-Bench: 6 levels, 42 capabilities",
    "mmbench": "MMBench: L-1 (2), L-2 (6), L-3 (20)",
}
# MLLM-Bench (Ge et al. 2023), Table 9; MMBench (Liu et al. 2023), section 3.1 and Table 14.
TREES: dict[str, Tree] = {
    name: json.loads(Path(__file__).with_name("trees").joinpath(f"{name}.json").read_text(encoding="utf-8"))
    for name in TITLES
}


def last_position(benchmark: Benchmark) -> int:
    """The position after all others of a benchmark's tree."""
    return (benchmark.capabilities.aggregate(last=Max("position"))["last"] or 0) + 1


def path_below(parent: Capability | None, name: str) -> str:
    return f"{parent.path}{SEPARATOR}{name}" if parent else name


@transaction.atomic
def add_template(*, benchmark: Benchmark, tree: Tree) -> int:
    """Add a template's missing nodes; returns how many."""
    nodes = {node.path: node for node in benchmark.capabilities.all()}
    existing_count = len(nodes)
    place = last_position(benchmark)

    def grow(branch: Tree | Iterable[str], parent: Capability | None) -> None:
        nonlocal place
        for name in branch:
            path = path_below(parent, name)
            if path not in nodes:
                nodes[path] = Capability.objects.create(
                    benchmark=benchmark, parent=parent, name=name, path=path, position=place
                )
                place += 1
            if isinstance(branch, dict):
                grow(branch[name], nodes[path])

    grow(tree, None)
    return len(nodes) - existing_count
