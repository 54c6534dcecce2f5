"""Points for each weighted part of an instruction, as MIA-Bench grades (arXiv 2407.01509)."""

from typing import Any

from bank.models import Item
from judging.protocols.base import CannotAsk, Criterion, Material, Protocol
from judging.protocols.settings import Settings
from judging.verdicts import Found, components


class Components(Protocol):
    name = "components"
    title = "Weighted components"
    kind = Item.Kind.SCORE
    verdict_kind = "components"
    answer_forms = (
        (
            r"[Ss]core of component 1: \S+/4, score of component 2: \S+/6, total score: \S+/10",
            "Score of component 1: x/{{ components[0].weight }}, and so on, total score: z/{{ total }}.",
        ),
    )
    defaults = {"reasoning": "after"}
    fixed = ("criteria",)

    def values(self, material: Material, settings: Settings) -> dict[str, Any]:
        parts = [{"text": part.text, "weight": f"{part.weight:g}"} for part in _parts(material)]
        total = f"{sum(part.weight or 0 for part in _parts(material)):g}"
        return super().values(material, settings) | {"components": parts, "total": total}

    def parse(self, text: str, material: Material, settings: Settings) -> Found:
        parts = _parts(material)
        return components(
            text,
            place=self.place(settings),
            keys=[part.key for part in parts],
            weights=[part.weight or 0 for part in parts],
        )


def _parts(material: Material) -> list[Criterion]:
    parts = [criterion for criterion in material.criteria if criterion.kind == "component"]
    if not parts:
        raise CannotAsk("the sample has no components")
    if any(not part.weight for part in parts):
        raise CannotAsk("a component has no weight")
    return parts


PROTOCOL = Components()
