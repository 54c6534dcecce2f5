"""Scores of one answer on a scale, and points for each weighted component of an instruction."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.utils.translation import gettext_noop as noop

from annotations.ballots.base import (
    COMPONENTS,
    KEYS,
    BadSettings,
    BadVerdict,
    Ballot,
    Choice,
    Group,
    Material,
    PostedForm,
    Scale,
    Settings,
    button_group,
    is_number,
    parse_number,
)

MAX_STEPS = 21
MAX_RUBRIC = 1_000
MAX_POINTS = 1_000
MAX_WEIGHTS = 200
MAX_KEY = 60
# If neither the campaign nor the benchmark has a scale: that of MLLM-as-a-Judge (arXiv 2402.04788), in our words.
DEFAULT_SCALE = (
    (1, noop("Poor"), noop("Wrong or beside the point: of no help.")),
    (2, noop("Fair"), noop("Partly right, with serious errors or gaps.")),
    (3, noop("Average"), noop("Answers the question, with flaws that matter.")),
    (4, noop("Good"), noop("Right and helpful, with small flaws.")),
    (5, noop("Excellent"), noop("Right, complete and clear: nothing to improve.")),
)


class Score(Ballot):
    """One answer on any scale. Each step has a label and a description."""

    protocol = "score"
    fields = ("score",)
    title = lazy("Scores")
    noun = lazy("scores")
    question = lazy("How good is this answer?")
    about = lazy("One answer on a scale, 1 to 5 unless the benchmark or you have another.")
    setting_names = ("scale",)

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """``scale`` is a list of steps, or {min, max, step, marks}, where marks are the steps with labels."""
        benchmark = [{"value": value, "label": label} for value, label in scale]
        default = benchmark or [
            {"value": value, "label": label, "about": about} for value, label, about in DEFAULT_SCALE
        ]
        own = given.get("scale") or default
        return super().clean_settings(given) | {
            "scale": _steps(_spread(own, default) if isinstance(own, Mapping) else own)
        }

    @property
    def buttons(self) -> list[Choice]:
        """The steps, lowest first. Single digits are their own keys; the others are reached by arrow keys."""
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
    def verdicts(self) -> Sequence[Mapping[str, Any]]:
        return [{"score": value} for value in self.values]

    @property
    def advice(self) -> str:  # type: ignore[override]
        if self.rubric:
            return _("Judge it by what each score means.")
        words = _("{lowest} is the worst, {highest} the best.")
        return words.format(lowest=f"{self.values[0]:g}", highest=f"{self.values[-1]:g}")

    @property
    def rubric(self) -> Sequence[Choice]:
        """All steps, the best first, if one of them is described."""
        return self.buttons[::-1] if any(step["about"] for step in self.settings["scale"]) else ()

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {"score": self.values}

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        score = given.get("score")
        if not is_number(score) or score not in self.values:
            raise BadVerdict("score", _("Choose one of {choices}.").format(choices=_listed(self.values)))
        return {"score": float(score)}

    def decisions(self, options: Mapping[str, str], given: Sequence[str]) -> dict[str, str]:
        return {step.value: f"{step.value}, {step.words}" if step.words else step.value for step in self.buttons}

    def decided(self, decision: str) -> dict[str, Any]:
        return {"score": float(decision)}

    def groups(self, material: Material, values: Mapping[str, Any]) -> list[Group]:
        style = "steps" if len(self.buttons) > 7 else "scale"
        return [button_group("score", self.question, self.buttons, values, _("Choose a score first"), style)]

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        return {"score": form.number("score")}


def marks_between(lowest: object, highest: object, step: object) -> list[float]:
    """The marks of a scale with equal steps, lowest first. Raises BadSettings."""
    if not (is_number(lowest) and is_number(highest) and is_number(step)):
        raise BadSettings("scale: the lowest mark, the highest mark and the step must be numbers.")
    if not lowest < highest or step <= 0:
        raise BadSettings("scale: the lowest mark must be below the highest, and the step above 0.")
    steps = (highest - lowest) / step
    if steps > MAX_STEPS - 1 + 1e-9:
        raise BadSettings(f"scale: at most {MAX_STEPS} marks; take a larger step.")
    if abs(steps - round(steps)) > 1e-9:
        raise BadSettings(f"scale: steps of {step:g} from {lowest:g} do not end at {highest:g}.")
    return [round(lowest + index * step, 9) for index in range(round(steps) + 1)]


def _spread(given: Mapping[str, Any], default: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The steps of {min, max, step, marks}, with the default labels if the ends match. Raises BadSettings."""
    unknown = sorted(str(name) for name in set(given) - {"min", "max", "step", "marks"})
    marks = given.get("marks", [])
    if unknown or not isinstance(marks, list) or not all(isinstance(mark, dict) for mark in marks):
        raise BadSettings("scale: expected {min, max, step, marks}, each mark {value, label, about}.")
    values = marks_between(given.get("min"), given.get("max"), given.get("step", 1))
    words = {mark.get("value"): mark for mark in marks}
    foreign = [value for value in words if value not in values]
    if foreign:
        raise BadSettings(f"scale: {str(foreign[0])[:40]} is not a mark between {values[0]:g} and {values[-1]:g}.")
    if [values[0], values[-1]] == [default[0]["value"], default[-1]["value"]]:
        words = {step["value"]: step for step in default} | words
    return [
        {"value": value} | {name: words.get(value, {}).get(name) for name in ("label", "about")} for value in values
    ]


def _steps(given: Any) -> list[dict[str, Any]]:
    """A scale, lowest first. Raises BadSettings."""
    if not isinstance(given, list) or not 2 <= len(given) <= MAX_STEPS:
        raise BadSettings(f"scale: expected a list of 2 to {MAX_STEPS} steps, each {{value, label, about}}.")
    steps = [_step(step if isinstance(step, dict) else {"value": step}) for step in given]
    if len({step["value"] for step in steps}) < len(steps):
        raise BadSettings("scale: two steps have the same value.")
    return sorted(steps, key=lambda step: step["value"])


def _step(given: Mapping[str, Any]) -> dict[str, Any]:
    value = given.get("value")
    if not is_number(value) or abs(value) > 1_000_000:
        raise BadSettings(f"scale: the value of a step must be a number, not {str(value)[:40]!r}.")
    words = {name: str(given.get(name) or "").strip() for name in ("label", "about")}
    if len(words["label"]) > 60 or len(words["about"]) > MAX_RUBRIC:
        raise BadSettings(f"scale: a label has at most 60 characters, a description {MAX_RUBRIC:,}.")
    return {"value": float(value)} | words


def _is_worth(weight: object) -> bool:
    return is_number(weight) and 0 < weight <= MAX_POINTS


def _listed(values: list[float]) -> str:
    return ", ".join(f"{value:g}" for value in values)


class Components(Ballot):
    """Points for each component, from 0 to its weight, as in MIA-Bench. The score is their weighted share of 10."""

    protocol = "components"
    layout = "components"
    numbered = True
    fields = ("parts",)
    title = lazy("Weighted components")
    noun = lazy("answers by component")
    question = lazy("How much of each part does the answer fulfil?")
    advice = lazy("From 0 to what the part is worth; fractions are fine.")
    about = lazy("Points for each weighted component that annotators may see, as in MIA-Bench.")
    setting_names = ("weight", "weights")
    compared = "points for a part"
    alike = lazy("you and the others gave the same points to {same} of {n} parts")
    usual_seconds = 60
    shows = COMPONENTS
    needs_answer = True
    lacking = (
        "no sample has weighted components of which annotators may see every one. In the samples, set who sees each "
        "component to campaigns or everybody, and give it a weight there or in the settings of the ballot."
    )

    @property
    def keys(self) -> Sequence[Choice]:
        return (Choice("", lazy("points"), "0–9"), Choice("", lazy("to the next part"), "Tab"))

    @classmethod
    def clean_settings(cls, given: Mapping[str, Any], *, scale: Scale = ()) -> Settings:
        """``weight`` is the weight of components that have none; ``weights`` overrides it by key."""
        weight, weights = given.get("weight"), given.get("weights", {})
        if weight is not None and not _is_worth(weight):
            raise BadSettings(f"weight: a number above 0, at most {MAX_POINTS:,}, not {str(weight)[:40]!r}.")
        if not isinstance(weights, dict) or len(weights) > MAX_WEIGHTS:
            raise BadSettings(f"weights: at most {MAX_WEIGHTS} components, each with its weight.")
        for key, worth in weights.items():
            if not isinstance(key, str) or not 0 < len(key) <= MAX_KEY or not _is_worth(worth):
                raise BadSettings(f"weights: {str(key)[:60]}: a number above 0, at most {MAX_POINTS:,}.")
        return super().clean_settings(given) | {"weight": weight, "weights": weights}

    def default_weight(self, key: str) -> float | None:
        """The weight of a component for which the benchmark has none. None if the campaign has none either."""
        weight: float | None = self.settings["weights"].get(key, self.settings["weight"])
        return weight

    def allowed_answers(self, material: Material) -> dict[str, list[Any]]:
        return {
            "parts": [{"component": part.key, "text": part.text, "weight": part.weight} for part in material.components]
        }

    def parse(self, given: Mapping[str, Any], material: Material) -> dict[str, Any]:
        self.reject_other_fields(given)
        parts = given.get("parts")
        weights = {part.key: part.weight for part in material.components}
        points = _points_of(parts if isinstance(parts, list) else [], weights)
        if not weights or set(points) != set(weights):
            missing = [str(number) for number, key in enumerate(weights, 1) if key not in points]
            raise BadVerdict(
                "parts", _("Give points to every part; missing: {numbers}.").format(numbers=", ".join(missing))
            )
        in_order = {key: points[key] for key in weights}
        return {"parts": in_order, "score": 10 * sum(points.values()) / sum(weights.values())}

    def from_form(self, form: PostedForm, material: Material) -> dict[str, Any]:
        """The form has one field of points per component. Empty fields are left out; other text becomes None."""
        texts = form.texts("points")
        filled = [(part, text) for part, text in zip(material.components, texts, strict=False) if text.strip()]
        return {"parts": [{"component": part.key, "points": parse_number(text)} for part, text in filled] or None}

    def present(self, columns: Mapping[str, Any], material: Material) -> dict[str, Any]:
        parts = columns.get("parts")
        return {"parts": [{"component": key, "points": points} for key, points in parts.items()]} if parts else {}


def _points_of(rows: Sequence[Any], weights: Mapping[str, float]) -> dict[str, float]:
    """The points of these components, as far as they are given. Raises BadVerdict."""
    points: dict[str, float] = {}
    for row in rows:
        key, value = (row.get("component"), row.get("points")) if isinstance(row, dict) else (None, None)
        if not isinstance(key, str) or key not in weights or key in points:
            raise BadVerdict("parts", _("Each component once: {names}.").format(names=", ".join(weights)))
        if not is_number(value) or not 0 <= value <= weights[key]:
            number = list(weights).index(key) + 1
            words = _("Part {number}: a number from 0 to {weight}.")
            raise BadVerdict("parts", words.format(number=number, weight=f"{weights[key]:g}"))
        points[key] = float(value)
    return points
