"""Corrupted pictures and questions, to measure robustness (ChEF, arXiv 2311.02692, Appendix C.5, Tables 2 and 3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from bank.corruptions import texts
from bank.text.digests import generator

if TYPE_CHECKING:
    from PIL import Image

    from bank.corruptions import images  # loads numpy, which most workers never need

# How a composed corruption is made (C.5): of these categories one method at random each, in this order, and all of the
# others in sequence: of pictures at the end, of questions at the beginning.
IMAGE_RANDOM, IMAGE_ALL = ("noise", "blur", "weather", "digital"), "other"
TEXT_ALL, TEXT_RANDOM = "basic", ("sentence", "word", "character", "choice")


@dataclass(frozen=True, slots=True)
class Step:
    """One corruption. ``severity`` from 1 to 5, and 1 where a method has only one."""

    method: str
    severity: int


@dataclass(frozen=True, slots=True)
class Composition:
    """The corruption of a picture and of a question; ``left_out``: categories of which no method could be used."""

    image: tuple[Step, ...] = ()
    text: tuple[Step, ...] = ()
    left_out: tuple[str, ...] = ()


def compose(*, seed: str, image: bool, text: bool, options: int = 0, written: Collection[str] = ()) -> Composition:
    """A composed corruption, drawn by the seed. ``written``: methods of sentences whose text is stored; ``options``:
    how many the question has.
    """
    rng = generator("compose", seed)
    of_image = _image_steps(rng) if image else []
    of_text, left_out = _text_steps(rng, options, written) if text else ([], [])
    return Composition(tuple(of_image), tuple(of_text), tuple(left_out))


def _drawn(rng: Random, methods: Sequence[images.Method | texts.Method]) -> Step:
    method = rng.choice(methods)
    return Step(method.name, rng.randint(1, _most(method)))


def _image_steps(rng: Random) -> list[Step]:
    from bank.corruptions import images

    by_category = {name: [m for m in images.METHODS.values() if m.category == name] for name in images.CATEGORIES}
    steps = [_drawn(rng, by_category[name]) for name in IMAGE_RANDOM]
    return steps + [_drawn(rng, [method]) for method in by_category[IMAGE_ALL]]


def _is_usable(method: texts.Method, options: int, written: Collection[str]) -> bool:
    return (not method.written or method.name in written) and (not method.of_options or options > 1)


def _text_steps(rng: Random, options: int, written: Collection[str]) -> tuple[list[Step], list[str]]:
    """The steps, and the categories of which no method could be used."""
    steps = [Step(m.name, 1) for m in texts.METHODS.values() if m.category == TEXT_ALL]
    left_out = []
    for name in TEXT_RANDOM:
        methods = [m for m in texts.METHODS.values() if m.category == name]
        if usable := [m for m in methods if _is_usable(m, options, written)]:
            steps.append(_drawn(rng, usable))
        else:
            left_out.append(name)
    # A sentence is written anew before its words and letters are changed, lower case and all.
    return sorted(steps, key=lambda step: not texts.METHODS[step.method].written), left_out


def _most(method: images.Method | texts.Method) -> int:
    return method.severities if isinstance(method.severities, int) else len(method.severities)


def single(method: str, *, severity: int | None = None, seed: str = "") -> Composition:
    """One corruption alone, its severity drawn by the seed if none is given. Raises ValueError for what is unknown."""
    from bank.corruptions import images

    found = images.METHODS.get(method) or texts.METHODS.get(method)
    if found is None:
        raise ValueError(f"there is no corruption called {method}")
    most = _most(found)
    return step_of(Step(method, min(severity, most) if severity else generator("single", seed).randint(1, most)))


def each(*, image: bool, text: bool, severity: int | None = None) -> list[Step]:
    """Every corruption that needs no text in other words, at every severity, or at the given one where it has it."""
    from bank.corruptions import images

    methods: list[images.Method | texts.Method] = [*images.METHODS.values()] if image else []
    methods += [method for method in texts.METHODS.values() if text and not method.written]
    return [
        Step(method.name, at)
        for method in methods
        for at in ([min(severity, _most(method))] if severity else range(1, _most(method) + 1))
    ]


def step_of(step: Step) -> Composition:
    """One corruption alone."""
    return Composition(text=(step,)) if step.method in texts.METHODS else Composition(image=(step,))


def apply_image(image: Image.Image, steps: Sequence[Step], seed: str) -> Image.Image:
    """The picture after these corruptions, in sequence."""
    from bank.corruptions import images

    image = images.as_rgb(image)
    for step in steps:
        image = images.corrupt(image, method=step.method, severity=step.severity, seed=seed)
    return image


def encoded(image: Image.Image) -> bytes:
    """The picture as PNG."""
    from bank.corruptions import images

    return images.encoded(image)


def apply_text(text: str, steps: Sequence[Step], seed: str, written: Mapping[str, str] | None) -> str:
    """The question after these corruptions, in sequence. ``written``: the stored texts, by method."""
    for step in steps:
        text = texts.corrupt(
            text, method=step.method, severity=step.severity, seed=seed, written=(written or {}).get(step.method)
        )
    return text


def apply_order(labels: Sequence[str], steps: Sequence[Step], seed: str) -> list[str]:
    """The labels of options in the order in which these corruptions put them."""
    order = list(labels)
    for step in steps:
        if texts.METHODS[step.method].of_options:
            order = texts.reorder(order, method=step.method, seed=seed)
    return order
