"""Corruptions of pictures (ChEF, Table 2): 22 methods of five categories, each with five severities.

Noise, blur, weather and digital ones follow ImageNet-C (Hendrycks and Dietterich 2019, arXiv 1903.12261), whose
parameters stand with each method; it is made for pictures of 224 pixels, so lengths grow with the shorter edge. What
differs is in docs/corruptions.md. The same picture, method, severity and seed give the same result.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

from bank.text.digests import drawn_number

Pixels = npt.NDArray[np.float32]  # (height, width, 3), 0 to 1
Severity = tuple[float, ...]
BASE = 224  # pixels of the shorter edge that lengths are given for
CATEGORIES = ("noise", "blur", "weather", "digital", "other")
Bilinear, Bicubic, Box = Image.Resampling.BILINEAR, Image.Resampling.BICUBIC, Image.Resampling.BOX


Corruption = Callable[[Image.Image, Severity, np.random.Generator], Image.Image]


@dataclass(frozen=True, slots=True)
class Method:
    """``parameters`` names what the numbers of each severity are."""

    name: str
    title: str
    category: str
    parameters: tuple[str, ...]
    severities: tuple[Severity, Severity, Severity, Severity, Severity]
    make: Corruption


def corrupt(image: Image.Image, *, method: str, severity: int, seed: str) -> Image.Image:
    """The picture after one corruption: RGB, as large as before. Raises ValueError for what is unknown."""
    if method not in METHODS:
        raise ValueError(f"there is no corruption of pictures called {method}")
    if not 1 <= severity <= 5:
        raise ValueError("a severity is a number from 1 to 5")
    chosen = METHODS[method]
    rng = np.random.default_rng(drawn_number(method, severity, seed))
    return chosen.make(as_rgb(image), chosen.severities[severity - 1], rng)


def as_rgb(image: Image.Image) -> Image.Image:
    """The picture in RGB; what is transparent stands on white."""
    if image.mode == "RGB":
        return image
    if "transparency" in image.info or image.mode in ("RGBA", "LA", "PA"):
        image = image.convert("RGBA")
        white = Image.new("RGBA", image.size, "white")
        return Image.alpha_composite(white, image).convert("RGB")
    return image.convert("RGB")


def encoded(image: Image.Image) -> bytes:
    """The picture as PNG: without loss, and as quick as it can be."""
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=1)
    return out.getvalue()


# ---- helpers ----


def _pixels(image: Image.Image) -> Pixels:
    return np.asarray(image, dtype=np.float32) / 255.0


def _image(pixels: Pixels) -> Image.Image:
    return Image.fromarray((np.clip(pixels, 0, 1) * 255 + 0.5).astype(np.uint8))


def _scale(image: Image.Image) -> float:
    return min(image.size) / BASE


def _normal(image: Image.Image, rng: np.random.Generator) -> Pixels:
    return rng.standard_normal((image.height, image.width, 3), dtype=np.float32)


def _field(size: tuple[int, int], cells: float, rng: np.random.Generator) -> Pixels:
    """Smooth noise with mean 0 and deviation 1, (height, width); ``cells`` along the shorter edge."""
    width, height = size
    per_cell = min(size) / max(cells, 1)
    grid = (max(2, round(height / per_cell)), max(2, round(width / per_cell)))
    coarse = Image.fromarray(rng.standard_normal(grid, dtype=np.float32))
    field = np.asarray(coarse.resize(size, Bicubic), dtype=np.float32)
    return (field - field.mean()) / max(float(field.std()), 1e-6)


def _plasma(size: tuple[int, int], decay: float, rng: np.random.Generator) -> Pixels:
    """Clouds from 0 to 1, (height, width): octaves of smooth noise, each ``decay`` times weaker than the one before."""
    clouds = sum(_field(size, 2.0**octave, rng) * decay**-octave for octave in range(1, 8))
    low, high = float(np.min(clouds)), float(np.max(clouds))
    return np.asarray((clouds - low) / max(high - low, 1e-6), dtype=np.float32)


def _smear(layer: Pixels, length: float, angle: float, *, sigma: float) -> Pixels:
    """A mean along a line of this length in pixels, weighted by a Gaussian from one of its ends."""
    taps = int(min(max(2, round(length)), 24))
    at = np.linspace(0, length, taps)
    weights = np.exp(-0.5 * (at / max(sigma, 0.5)) ** 2)
    weights /= weights.sum()
    total = np.zeros_like(layer)
    for distance, weight in zip(at, weights, strict=True):
        across, down = round(distance * np.cos(angle)), round(distance * np.sin(angle))
        total += np.float32(weight) * _shifted(layer, across, down)
    return total


def _shifted(layer: Pixels, across: int, down: int) -> Pixels:
    """The layer moved by so many pixels; its edges are repeated."""
    rows = np.clip(np.arange(layer.shape[0]) - down, 0, layer.shape[0] - 1)
    columns = np.clip(np.arange(layer.shape[1]) - across, 0, layer.shape[1] - 1)
    return layer[rows][:, columns]


def _resized(image: Image.Image, factor: float, *, up: Image.Resampling = Bilinear, down: Any = Box) -> Image.Image:
    """Made smaller by the factor, and as large as before again."""
    return image.resize(_smaller(image, factor), down).resize(image.size, up)


def _middle(image: Image.Image, width: float, height: float) -> Image.Image:
    """The middle of the picture, of this size, made as large as the picture."""
    left, top = (image.width - width) / 2, (image.height - height) / 2
    return image.resize(image.size, Bilinear, box=(left, top, left + width, top + height))


def _smaller(image: Image.Image, factor: float) -> tuple[int, int]:
    return max(1, round(image.width * factor)), max(1, round(image.height * factor))


METHODS: dict[str, Method] = {}


def _method(
    category: str, parameters: str, *severities: float | Severity, title: str = ""
) -> Callable[[Corruption], Corruption]:
    """Offer a function as a corruption of its name, with what its numbers are and those of each severity."""

    def offered(make: Corruption) -> Corruption:
        words = make.__name__.strip("_").replace("_", " ")
        name = words.replace(" ", "-")
        numbers: Any = tuple(each if isinstance(each, tuple) else (each,) for each in severities)
        METHODS[name] = Method(
            name, title or words.capitalize(), category, tuple(parameters.split(", ")), numbers, make
        )
        return make

    return offered


# ---- noise ----


@_method("noise", "deviation", 0.08, 0.12, 0.18, 0.26, 0.38)
def _gaussian_noise(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    return _image(_pixels(image) + _normal(image, rng) * severity[0])


@_method("noise", "photons", 60, 25, 12, 5, 3)
def _shot_noise(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """Photons counted: a normal distribution with the variance of Poisson's, which costs a tenth."""
    pixels = _pixels(image)
    return _image(pixels + _normal(image, rng) * np.sqrt(pixels / severity[0]))


@_method("noise", "share", 0.03, 0.06, 0.09, 0.17, 0.27)
def _impulse_noise(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    pixels = _pixels(image)
    drawn = rng.random(pixels.shape, dtype=np.float32)
    share = np.float32(severity[0] / 2)
    pixels = np.where(drawn < share, 0, pixels)
    return _image(np.where(drawn > 1 - share, 1, pixels))


@_method("noise", "deviation", 0.15, 0.2, 0.35, 0.45, 0.6)
def _speckle_noise(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    pixels = _pixels(image)
    return _image(pixels + pixels * _normal(image, rng) * severity[0])


# ---- blur ----


@_method("blur", "radius", 3, 4, 6, 8, 10)
def _defocus_blur(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """A mean over a disc. A large disc is applied to a smaller picture: what that loses, the disc would take anyway."""
    radius = severity[0] * _scale(image)
    factor = min(1.0, 5 / max(radius, 1e-6))
    small = image.resize(_smaller(image, factor), Box)
    pixels, reach = _pixels(small), max(0, round(radius * factor))
    total, count = np.zeros_like(pixels), 0
    for down in range(-reach, reach + 1):
        for across in range(-reach, reach + 1):
            if down * down + across * across <= reach * reach:
                total += _shifted(pixels, across, down)
                count += 1
    return _image(total / float(count)).resize(image.size, Bilinear)


@_method("blur", "sigma, reach, rounds", (0.7, 1, 2), (0.9, 2, 1), (1, 2, 3), (1.1, 3, 2), (1.5, 4, 2))
def _frosted_glass_blur(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    sigma, reach, rounds = severity
    scale = _scale(image)
    far = max(1, round(reach * scale))
    blurred = np.asarray(image.filter(ImageFilter.GaussianBlur(sigma * scale)))
    own_row, own_column = np.arange(image.height)[:, None], np.arange(image.width)[None, :]
    rows, columns = np.broadcast_to(own_row, blurred.shape[:2]), np.broadcast_to(own_column, blurred.shape[:2])
    for _ in range(int(rounds)):
        moved = rng.integers(-far, far, size=(2, image.height, image.width), dtype=np.int32, endpoint=True)
        at = np.clip(own_row + moved[0], 0, image.height - 1)
        beside = np.clip(own_column + moved[1], 0, image.width - 1)
        rows, columns = rows[at, beside], columns[at, beside]
    return Image.fromarray(blurred[rows, columns]).filter(ImageFilter.GaussianBlur(sigma * scale))


@_method("blur", "length, sigma", (10, 3), (15, 5), (15, 8), (15, 12), (20, 15))
def _motion_blur(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    length, sigma = (value * _scale(image) for value in severity)
    return _image(_smear(_pixels(image), length, rng.uniform(-np.pi / 4, np.pi / 4), sigma=sigma))


@_method("blur", "zoom", 1.10, 1.15, 1.20, 1.25, 1.30)
def _zoom_blur(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """The mean of the picture and of ever nearer ones, up to this much nearer."""
    steps = np.linspace(1, severity[0], 8)
    total = np.zeros((image.height, image.width, 3), dtype=np.float32)
    for zoom in steps:
        width, height = image.width / zoom, image.height / zoom
        total += np.asarray(_middle(image, width, height), dtype=np.float32)
    return _image(total / (255.0 * len(steps)))


@_method("blur", "sigma", 1, 2, 3, 4, 6)
def _gaussian_blur(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    return image.filter(ImageFilter.GaussianBlur(severity[0] * _scale(image)))


# ---- weather ----


@_method(
    "weather",
    "mean, threshold, length, kept",
    (0.1, 0.7, 6, 0.8),
    (0.2, 0.75, 8, 0.7),
    (0.35, 0.9, 10, 0.7),
    (0.45, 0.9, 10, 0.65),
    (0.55, 0.9, 12, 0.55),
)
def _snow(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """Flakes: the peaks of noise, smeared as they fall; and a picture as pale as on a day of snow."""
    mean, threshold, length, pale = severity
    scale = _scale(image)
    size = tuple(max(2, round(edge / max(scale, 0.2))) for edge in image.size)
    flakes = rng.normal(mean, 0.3, size=(size[1], size[0])).astype(np.float32)
    flakes = np.where(flakes < threshold, 0, flakes)
    angle = rng.uniform(np.pi / 4, 3 * np.pi / 4)
    layer = _smear(np.clip(flakes, 0, 1), length, angle, sigma=length / 2)
    layer = np.asarray(Image.fromarray(layer).resize(image.size, Bilinear), dtype=np.float32)[..., None]
    pixels = _pixels(image)
    grey = _pixels(image.convert("L"))[..., None]
    pixels = pale * pixels + (1 - pale) * np.maximum(pixels, grey * 1.5 + 0.5)
    return _image(pixels + layer + layer[::-1, ::-1])


@_method("weather", "kept, ice", (1, 0.4), (0.8, 0.6), (0.7, 0.7), (0.65, 0.7), (0.6, 0.75))
def _frost(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """Ice on a pane: ridges of noise, thicker towards the edges, in place of the photographs of ImageNet-C."""
    kept, ice = severity
    ridges = sum(
        np.float32(0.6**octave) * (1 - np.minimum(np.abs(_field(image.size, 4.0 * 2**octave, rng)), 1))
        for octave in range(4)
    ) / np.float32(2.2)
    across, down = (np.abs(np.linspace(-1, 1, edge, dtype=np.float32)) for edge in image.size)
    edge = np.maximum(across[None, :], down[:, None]) ** 2
    cover = np.clip(ridges**2 * (np.float32(0.45) + edge), 0, 1)[..., None]
    colour = np.array([0.86, 0.93, 1.0], dtype=np.float32)
    return _image(kept * _pixels(image) + ice * cover * colour)


@_method("weather", "amount, decay", (1.5, 2), (2, 2), (2.5, 1.7), (2.5, 1.5), (3, 1.4))
def _fog(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    amount, decay = severity
    pixels = _pixels(image)
    highest = float(pixels.max())
    pixels = pixels + amount * _plasma(image.size, decay, rng)[..., None]
    return _image(pixels * (highest / (highest + amount)) if highest else pixels)


@_method("weather", "added", 0.1, 0.2, 0.3, 0.4, 0.5)
def _brightness(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    hue, saturation, value = image.convert("HSV").split()
    brighter = value.point([min(255, round(level + 255 * severity[0])) for level in range(256)])
    return Image.merge("HSV", (hue, saturation, brighter)).convert("RGB")


@_method(
    "weather", "share, opacity, mud", (0.06, 0.6, 0), (0.1, 0.65, 0), (0.16, 0.7, 0), (0.14, 0.8, 1), (0.2, 0.9, 1)
)
def _spatter(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """Drops of water, or from severity 4 of mud: where smooth noise is high."""
    share, opacity, mud = severity
    field = _field(image.size, 40, rng) + 0.5 * _field(image.size, 90, rng)
    border = np.quantile(field[::4, ::4], 1 - share)
    cover = np.clip((field - np.float32(border)) * 3, 0, 1)[..., None] * opacity
    colour = np.array([0.25, 0.16, 0.08] if mud else [0.69, 0.93, 0.93], dtype=np.float32)
    return _image(_pixels(image) * (1 - cover) + colour * cover)


# ---- digital ----


@_method("digital", "kept", 0.4, 0.3, 0.2, 0.1, 0.05)
def _contrast(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    pixels = _pixels(image)
    mean = pixels.mean(axis=(0, 1), keepdims=True)
    return _image((pixels - mean) * severity[0] + mean)


@_method("digital", "moved, cells", (0.008, 6), (0.012, 6), (0.008, 14), (0.011, 14), (0.015, 14))
def _elastic(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    """A mesh whose knots are moved at random: by so much of the shorter edge, with so many cells along it."""
    moved, cells = severity
    width, height = image.size
    per_cell = max(4.0, min(image.size) / cells)
    columns, rows = (max(1, round(edge / per_cell)) for edge in image.size)
    across, down = np.linspace(0, width, columns + 1), np.linspace(0, height, rows + 1)
    knots = np.stack(np.meshgrid(across, down), axis=-1)
    shift = rng.normal(0, moved * min(image.size), size=knots.shape)
    shift[[0, -1], :] = shift[:, [0, -1]] = 0
    source = knots + shift
    mesh = []
    for row in range(rows):
        for column in range(columns):
            box = tuple(round(edge) for edge in (across[column], down[row], across[column + 1], down[row + 1]))
            corners = [source[row + y, column + x] for y, x in ((0, 0), (1, 0), (1, 1), (0, 1))]
            mesh.append((box, tuple(float(part) for corner in corners for part in corner)))
    return image.transform(image.size, Image.Transform.MESH, mesh, Bilinear)


@_method("digital", "kept", 0.6, 0.5, 0.4, 0.3, 0.25)
def _pixelate(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    return _resized(image, severity[0] / max(_scale(image), 1.0), up=Image.Resampling.NEAREST)


@_method("digital", "quality", 25, 18, 15, 10, 7, title="JPEG compression")
def _jpeg_compression(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    out = io.BytesIO()
    image.save(out, "JPEG", quality=int(severity[0]))
    return Image.open(out).convert("RGB")


@_method("digital", "colour", 0.6, 0.3, 1.8, 2.5, 4)
def _saturate(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    return ImageEnhance.Color(image).enhance(severity[0])


# ---- other ----


@_method("other", "area kept", 0.98, 0.96, 0.94, 0.92, 0.9)
def _centre_crop(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    kept = severity[0] ** 0.5  # of each edge
    return _middle(image, image.width * kept, image.height * kept)


@_method("other", "edge kept", 0.9, 0.8, 0.7, 0.6, 0.5)
def _resize(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    return _resized(image, severity[0], down=Bilinear)


@_method("other", "degrees", 3, 6, 9, 12, 15)
def _rotate(image: Image.Image, severity: Severity, rng: np.random.Generator) -> Image.Image:
    angle = severity[0] * (1 if rng.random() < 0.5 else -1)
    fill = tuple(int(level) for level in np.asarray(ImageOps.fit(image, (1, 1), Box)).ravel()[:3])
    return image.rotate(angle, Bilinear, fillcolor=fill)
