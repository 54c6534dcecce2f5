"""Capability trees that a benchmark can start with."""

from collections.abc import Iterable
from typing import Any

from django.db import transaction
from django.db.models import Max

from bank.models import Benchmark, Capability

SEPARATOR = " / "
# Names in order; the value of a name is the subtree below it.
Tree = dict[str, Any]

# MLLM-Bench (Ge et al. 2023), Table 9: 42 capabilities on 6 levels.
MLLM_BENCH: Tree = {
    "Perception": [
        "General Object Recognition",
        "OCR",
        "Multilingual Text Recognition",
        "Action Recognition",
        "Symbol Recognition",
        "Food Recognition",
        "Landmark Recognition",
    ],
    "Understanding": [
        "Scene Understanding",
        "Attribute Recognition",
        "Image Topic Understanding",
        "Hidden Objects Recognition",
        "Facial Expression Recognition",
        "Emotion Understanding",
        "Multimodal Commonsense Understanding",
        "Joke and Meme Understanding",
        "Multilingual Multicultural Understanding",
        "Document Understanding",
        "Table Understanding",
    ],
    "Applying": [
        "Object Localization",
        "Object Counting",
        "Spatial Relationship Understanding",
        "Medical Image Understanding",
        "Image Captioning",
        "Dense Captioning",
    ],
    "Analyzing": [
        "Natural Relation Understanding",
        "Chart Understanding",
        "Attribute Comparison",
        "Difference Finding",
        "Event Cause Reasoning",
        "Social Relation Reasoning",
        "Identity Reasoning",
        "Function Reasoning",
        "Physical Property Reasoning",
        "Visual Math Reasoning",
        "Action Prediction",
        "Trend Prediction",
    ],
    "Evaluation": [
        "Image Quality Evaluation",
        "Damage Evaluation",
        "Fake Image Detection",
        "Ethical Problem Detection",
    ],
    "Creation": ["Coding Capability with Vision", "Visual Storytelling"],
}

# MMBench (Liu et al. 2023), section 3.1 and Table 14: L-1 (2), L-2 (6), L-3 (20).
MMBENCH: Tree = {
    "Perception": {
        "Coarse Perception": ["Image Style", "Image Scene", "Image Emotion", "Image Quality", "Image Topic"],
        "Fine-grained Perception (single-instance)": [
            "Object Localization",
            "Attribute Recognition",
            "Celebrity Recognition",
            "OCR",
        ],
        "Fine-grained Perception (cross-instance)": [
            "Spatial Relationship",
            "Attribute Comparison",
            "Action Recognition",
        ],
    },
    "Reasoning": {
        "Attribute Reasoning": ["Physical Property Reasoning", "Function Reasoning", "Identity Reasoning"],
        "Relation Reasoning": ["Social Relation", "Physical Relation", "Nature Relation"],
        "Logic Reasoning": ["Structuralized Image-Text Understanding", "Future Prediction"],
    },
}

TREES: dict[str, Tree] = {"mllm-bench": MLLM_BENCH, "mmbench": MMBENCH}
TITLES = {
    "mllm-bench": "MLLM-Bench: 6 levels, 42 capabilities",
    "mmbench": "MMBench: L-1 (2), L-2 (6), L-3 (20)",
}


def last_position(benchmark: Benchmark) -> int:
    """The position after all others of a benchmark's tree."""
    return (benchmark.capabilities.aggregate(last=Max("position"))["last"] or 0) + 1


@transaction.atomic
def add_template(*, benchmark: Benchmark, tree: Tree) -> int:
    """Add a template's missing nodes; returns how many."""
    nodes = {node.path: node for node in benchmark.capabilities.all()}
    existing_count = len(nodes)
    place = last_position(benchmark)

    def grow(branch: Tree | Iterable[str], parent: Capability | None) -> None:
        nonlocal place
        for name in branch:
            path = f"{parent.path}{SEPARATOR}{name}" if parent else name
            if path not in nodes:
                nodes[path] = Capability.objects.create(
                    benchmark=benchmark, parent=parent, name=name, path=path, position=place
                )
                place += 1
            if isinstance(branch, dict):
                grow(branch[name], nodes[path])

    grow(tree, None)
    return len(nodes) - existing_count
