"""What a corrupted picture costs, beside reading and writing the picture without corrupting it."""

import io
from collections.abc import Iterator

import numpy as np
from PIL import Image

from bank import corruptions
from bank.corruptions import images
from tests.bench.parts import Result, cpu

SIDE = 768  # pixels


def corrupted() -> Iterator[Result]:
    across, down = np.meshgrid(np.linspace(0, 12, SIDE), np.linspace(0, 9, SIDE))
    noise = np.random.default_rng(1).normal(0, 12, (SIDE, SIDE, 3))
    waves = np.stack([np.sin(across), np.cos(down), np.sin(across + down)], axis=-1)
    picture = Image.fromarray(np.clip(128 + 90 * waves + noise, 0, 255).astype(np.uint8))
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=92)

    def read_and_written() -> None:
        corruptions.encoded(Image.open(io.BytesIO(out.getvalue())).convert("RGB"))

    plain = cpu(lambda: [read_and_written() for _ in range(5)]) / 5
    costs = {}
    for name in images.METHODS:
        images.corrupt(picture, method=name, severity=3, seed="warm")
        costs[name] = cpu(lambda name=name: images.corrupt(picture, method=name, severity=3, seed="a"))
    slowest = max(costs, key=costs.__getitem__)
    yield Result(f"a picture of {SIDE} pixels corrupted, mean of 22", plain, sum(costs.values()) / len(costs), 2)
    yield Result(f"  the slowest: {slowest}", plain, costs[slowest], 10)
