"""Draw the pictures of the demo's multiple-choice benchmark, and write its questions and two models' answers.

Usage (maintainers only; what it writes is committed): ``python evalsite/demo/data/shapes/draw.py``. Needs Pillow. The
same seed gives the same files.
"""

import json
import math
import random
from pathlib import Path

from PIL import Image, ImageDraw

HERE = Path(__file__).resolve().parent
COLOURS = {"red": "#C8402F", "blue": "#2F6DB5", "green": "#2E8555", "yellow": "#E3B505", "purple": "#7A4FA3"}
SHAPES = ("circle", "square", "triangle", "star")
DEV, TEST = 6, 30  # pictures; each has two questions
SCALE = 2
LETTERS = "ABCD"


def outline(shape: str, x: float, y: float, r: float) -> list[tuple[float, float]]:
    if shape == "triangle":
        turns = [(math.pi * (2 * n / 3 - 0.5), r) for n in range(3)]
    else:
        turns = [(math.pi * (n / 5 - 0.5), r if n % 2 == 0 else r * 0.42) for n in range(10)]
    return [(x + length * math.cos(turn), y + length * math.sin(turn)) for turn, length in turns]


def draw(things: list[tuple[str, str, float, float, float]], path: Path) -> None:
    image = Image.new("RGB", (768 * SCALE, 512 * SCALE), "#F4F1EA")
    pen = ImageDraw.Draw(image)
    for shape, colour, x, y, r in things:
        x, y, r, fill = x * SCALE, y * SCALE, r * SCALE, COLOURS[colour]
        if shape == "circle":
            pen.ellipse((x - r, y - r, x + r, y + r), fill)
        elif shape == "square":
            pen.rectangle((x - r * 0.85, y - r * 0.85, x + r * 0.85, y + r * 0.85), fill)
        else:
            pen.polygon(outline(shape, x, y, r), fill)
    image.resize((768, 512), Image.Resampling.LANCZOS).quantize(24).save(path, optimize=True)


def scene(rng: random.Random) -> list[tuple[str, str, float, float, float]]:
    """Four to eight shapes in a grid of 4 x 3, exactly one of them a shape that no other is."""
    alone, *others = rng.sample(SHAPES, 3)
    kinds = [alone] + [rng.choice(others) for _ in range(rng.randint(3, 7))]
    cells = rng.sample([(column, row) for column in range(4) for row in range(3)], len(kinds))
    return [
        (
            shape,
            rng.choice(list(COLOURS)),
            96 + 192 * column + rng.uniform(-22, 22),
            86 + 170 * row + rng.uniform(-14, 14),
            rng.uniform(44, 66),
        )
        for shape, (column, row) in zip(kinds, cells, strict=True)
    ]


def options(right: str, wrong: list[str], rng: random.Random) -> tuple[dict[str, str], str]:
    texts = [right, *wrong]
    rng.shuffle(texts)
    return dict(zip(LETTERS, texts, strict=False)), LETTERS[texts.index(right)]


def questions(name: str, split: str, things: list[tuple[str, str, float, float, float]], rng: random.Random):
    shapes = [shape for shape, *_ in things]
    counted = rng.choice([shape for shape in SHAPES if shapes.count(shape) != 1])
    count = shapes.count(counted)
    near = sorted(set(range(max(0, count - 3), count + 4)) - {count}, key=lambda n: abs(n - count))[:3]
    asked = [("Counting", f"How many {counted}s are there?", str(count), [str(n) for n in near])]
    shape, colour, *_ = next(thing for thing in things if shapes.count(thing[0]) == 1)
    others = rng.sample([other for other in COLOURS if other != colour], 3)
    asked.append(("Attributes", f"Which colour is the {shape}?", colour, others))
    for level, instruction, right, wrong in asked:
        shown, answer = options(right, wrong, rng)
        yield {
            "key": f"{name}-{level.lower()}",
            "instruction": instruction,
            "images": [{"file": f"images/{name}.png", "description": "Coloured shapes on a light ground"}],
            "question_type": "multiple-choice",
            "capability": [level],
            "split": split,
            "language": "en",
            "group": name,
            "options": shown,
            "answer": answer,
        }


def answers(samples: list[dict], rng: random.Random, *, knows: dict[str, float], rotations: bool, words: float):
    """What an invented model says: it knows a share of each level, leans to A, and now and then names no letter."""
    for sample in samples:
        letters = list(sample["options"])
        known = rng.random() < knows[sample["capability"][0]]
        for shift in range(len(letters) if rotations else 1):
            right = letters[(letters.index(sample["answer"]) - shift) % len(letters)]
            letter = right if known and rng.random() < 0.95 else rng.choice(["A", *letters])
            text = sample["options"][letters[(letters.index(letter) + shift) % len(letters)]]
            spoken = rng.random() < words
            row = {"sample": sample["key"], "text": f"I see {text}." if spoken else f"The answer is {letter}. {text}"}
            yield row | ({"variant": f"circular-{shift}"} if shift else {})


def write(name: str, rows) -> None:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    (HERE / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    rng = random.Random(5)
    (HERE / "images").mkdir(exist_ok=True)
    samples = []
    for number in range(1, DEV + TEST + 1):
        name, things = f"shapes-{number:02}", scene(rng)
        draw(things, HERE / "images" / f"{name}.png")
        samples += questions(name, "dev" if number <= DEV else "test", things, rng)
    write("samples.jsonl", samples)
    kestrel = {"Counting": 0.62, "Attributes": 0.9}
    write("kestrel.jsonl", answers(samples, rng, knows=kestrel, rotations=True, words=0.02))
    write("wren.jsonl", answers(samples, rng, knows={"Counting": 0.35, "Attributes": 0.7}, rotations=False, words=0.12))


if __name__ == "__main__":
    main()
