"""One answer on a scale, and points for each weighted part of an instruction."""

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import gettext_noop as noop

from annotations.ballots.base import (
    KEYS,
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Form,
    Material,
    Scale,
    Settings,
    is_number,
    number_in,
)

MOST_STEPS = 21
LONGEST_RUBRIC = 1_000
MOST_POINTS = 1_000
MOST_WEIGHTS = 200
LONGEST_KEY = 60
# Where neither the campaign nor the benchmark has a scale: that of MLLM-as-a-Judge (arXiv 2402.04788), in our words.
USUAL = (
    (1, noop("Poor"), noop("Wrong or beside the point: of no help.")),
    (2, noop("Fair"), noop("Partly right, with serious errors or gaps.")),
    (3, noop("Average"), noop("Answers the question, with flaws that matter.")),
    (4, noop("Good"), noop("Right and helpful, with small flaws.")),
    (5, noop("Excellent"), noop("Right, complete and clear: nothing to improve.")),
)


class Score(Ballot):
    """One answer on any scale, each step with its word and what it means."""

    protocol = "score"
    kind = "score"
    fields = ("score",)
    title = lazy("Scores")
    noun = lazy("scores")
    question = lazy("How good is this answer?")
    about = lazy("One answer on a scale, 1 to 5 unless the benchmark or you have another.")
    names = ("scale",)

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """``scale``: its steps, or {min, max, step, marks}, where marks are the steps that have words."""
        benchmark = [{"value": value, "label": label} for value, label in scale]
        usual = benchmark or [{"value": value, "label": label, "about": about} for value, label, about in USUAL]
        own = given.get("scale") or usual
        return super().settled(given) | {"scale": _steps(_spread(own, usual) if isinstance(own, Mapping) else own)}

    @property
    def buttons(self) -> list[Choice]:
        """Each step, lowest first. Its key is its own digit; what has none is reached by the arrows."""
        steps = self.settings["scale"]
        digits = {step["value"] for step in steps} & set(range(10))
        return [
            Choice(
                f"{step['value']:g}",
                _(label) if (label := step["label"]) else "",
                KEYS[int(step["value"]) - 1] if step["value"] in digits else "",
                about=_(about) if (about := step["about"]) else "",
            )
            for step in steps
        ]

    @property
    def values(self) -> list[float]:
        return [step["value"] for step in self.settings["scale"]]

    @property
    def advice(self) -> str:  # type: ignore[override]
        if self.has_rubric:
            return _("Judge it by what each score means.")
        words = _("{lowest} is the worst, {highest} the best.")
        return words.format(lowest=f"{self.values[0]:g}", highest=f"{self.values[-1]:g}")

    @property
    def has_rubric(self) -> bool:
        return any(step["about"] for step in self.settings["scale"])

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        return {"score": self.values}

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        score = given.get("score")
        if not is_number(score) or score not in self.values:
            raise BadVerdict("score", _("Choose one of {choices}.").format(choices=_listed(self.values)))
        return {"score": float(score)}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        return {"score": form.number("score")}


def marks_between(lowest: object, highest: object, step: object) -> list[float]:
    """The marks of an even scale, lowest first. Raises BadSettings."""
    if not (is_number(lowest) and is_number(highest) and is_number(step)):
        raise BadSettings("scale: the lowest mark, the highest and the step are numbers.")
    if not lowest < highest or step <= 0:
        raise BadSettings("scale: the lowest mark is below the highest, and the step is above 0.")
    steps = (highest - lowest) / step
    if steps > MOST_STEPS - 1 + 1e-9:
        raise BadSettings(f"scale: at most {MOST_STEPS} marks; take a larger step.")
    if abs(steps - round(steps)) > 1e-9:
        raise BadSettings(f"scale: steps of {step:g} from {lowest:g} do not end at {highest:g}.")
    return [round(lowest + place * step, 9) for place in range(round(steps) + 1)]


def _spread(given: Mapping[str, Any], usual: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of {min, max, step, marks}; those of the usual ends keep the usual words. Raises BadSettings."""
    unknown = sorted(str(name) for name in set(given) - {"min", "max", "step", "marks"})
    marks = given.get("marks", [])
    if unknown or not isinstance(marks, list) or not all(isinstance(mark, dict) for mark in marks):
        raise BadSettings("scale: {min, max, step, marks}, each mark {value, label, about}.")
    values = marks_between(given.get("min"), given.get("max"), given.get("step", 1))
    words = {mark.get("value"): mark for mark in marks}
    strange = [value for value in words if value not in values]
    if strange:
        raise BadSettings(f"scale: {str(strange[0])[:40]} is no mark between {values[0]:g} and {values[-1]:g}.")
    if [values[0], values[-1]] == [usual[0]["value"], usual[-1]["value"]]:
        words = {step["value"]: step for step in usual} | words
    return [
        {"value": value} | {name: words.get(value, {}).get(name) for name in ("label", "about")} for value in values
    ]


def _steps(given: Any) -> list[dict[str, Any]]:
    """A scale, lowest first. Raises BadSettings."""
    if not isinstance(given, list) or not 2 <= len(given) <= MOST_STEPS:
        raise BadSettings(f"scale: a list of 2 to {MOST_STEPS} steps, each {{value, label, about}}.")
    steps = []
    for step in given:
        value = step.get("value") if isinstance(step, dict) else step
        if not is_number(value) or abs(value) > 1_000_000:
            raise BadSettings(f"scale: each step has a number as its value, not {str(value)[:40]!r}.")
        words = {
            name: str(step.get(name) or "").strip() if isinstance(step, dict) else "" for name in ("label", "about")
        }
        if len(words["label"]) > 60 or len(words["about"]) > LONGEST_RUBRIC:
            raise BadSettings(f"scale: at most 60 characters for a word and {LONGEST_RUBRIC:,} for what it means.")
        steps.append({"value": float(value)} | words)
    if len({step["value"] for step in steps}) < len(steps):
        raise BadSettings("scale: the same value twice.")
    return sorted(steps, key=lambda step: step["value"])


def _is_worth(weight: object) -> bool:
    return is_number(weight) and 0 < weight <= MOST_POINTS


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


class Components(Ballot):
    """Points within 0 and the weight of each component, as MIA-Bench grades; the score is their share of 10."""

    protocol = "components"
    kind = "score"
    fields = ("parts",)
    title = lazy("Weighted components")
    noun = lazy("answers by component")
    question = lazy("How much of each part does the answer fulfil?")
    advice = lazy("From 0 to what the part is worth; fractions are fine.")
    about = lazy("Points for each weighted component that annotators may see, as in MIA-Bench.")
    names = ("weight", "weights")

    @classmethod
    def settled(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """``weight``: what a component without one is worth; ``weights``: the same for some, by key."""
        weight, weights = given.get("weight"), given.get("weights", {})
        if weight is not None and not _is_worth(weight):
            raise BadSettings(f"weight: a number above 0, at most {MOST_POINTS:,}, not {str(weight)[:40]!r}.")
        if not isinstance(weights, dict) or len(weights) > MOST_WEIGHTS:
            raise BadSettings(f"weights: at most {MOST_WEIGHTS} components, each with what it is worth.")
        for key, worth in weights.items():
            if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY or not _is_worth(worth):
                raise BadSettings(f"weights: {str(key)[:60]}: a number above 0, at most {MOST_POINTS:,}.")
        return super().settled(given) | {"weight": weight, "weights": weights}

    def lacking(self, key: str) -> float | None:
        """What a component is worth for which the benchmark says nothing; None: nothing is said here either."""
        worth: float | None = self.settings["weights"].get(key, self.settings["weight"])
        return worth

    def verdicts(self, material: Material) -> dict[str, list[Any]]:
        return {
            "parts": [{"component": part.key, "text": part.text, "weight": part.weight} for part in material.components]
        }

    def read(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.refuse_others(given)
        parts = given.get("parts")
        rows = parts if isinstance(parts, list) else []
        points: dict[str, float] = {}
        weights = {part.key: part.weight for part in material.components}
        for row in rows:
            key, value = (row.get("component"), row.get("points")) if isinstance(row, dict) else (None, None)
            if not isinstance(key, str) or key not in weights or key in points:
                raise BadVerdict("parts", _("Each component once: {names}.").format(names=", ".join(weights)))
            if not is_number(value) or not 0 <= value <= weights[key]:
                number = list(weights).index(key) + 1
                words = _("Part {number}: a number from 0 to {weight}.")
                raise BadVerdict("parts", words.format(number=number, weight=f"{weights[key]:g}"))
            points[key] = float(value)
        if not weights or set(points) != set(weights):
            missing = [str(place) for place, key in enumerate(weights, 1) if key not in points]
            raise BadVerdict(
                "parts", _("Give points to every part; missing: {numbers}.").format(numbers=", ".join(missing))
            )
        in_order = {key: points[key] for key in weights}
        return {"parts": in_order, "score": 10 * sum(points.values()) / sum(weights.values())}

    def posted(self, form: Form, material: Material) -> dict[str, Any]:
        """Points in the order of the components; a field that is empty is not there yet, other text is no number."""
        given = form.texts("points")
        filled = [(part, text) for part, text in zip(material.components, given, strict=False) if text.strip()]
        return {"parts": [{"component": part.key, "points": number_in(text)} for part, text in filled] or None}

    def shown(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        parts = columns.get("parts")
        return {"parts": [{"component": key, "points": points} for key, points in parts.items()]} if parts else {}
