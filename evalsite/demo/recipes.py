"""Answers of invented models to recipes, so that recipes and desiderata have something to show without an endpoint.

Drawn pictures, their questions and the answers are made here and brought in as files are; the recipes are those of
``data/recipes.yaml``. The same seed gives the same rows: each draw is keyed by the model, the question and how it was
put, so that a model that knows an answer mostly knows it under other conditions, too.
"""

import json
import random
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import cos, exp, log, pi, sin
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from django.db import transaction
from django.utils import timezone
from PIL import Image, ImageDraw

from accounts.models import User
from bank.models import Benchmark, EvaluatedModel
from bank.recipes import spec as specs
from bank.recipes import store
from bank.recipes.marked_answers import as_frame
from bank.recipes.spec import Condition, Spec
from evalsite.demo import loader, simulation
from evalsite.demo.simulation import FOLDER
from judging.models import Evaluation, Judge, Judgment, Run, RunItem
from judging.recipes import evaluations, questions
from judging.recipes.marking import MARKS_EACH, start_marks

SLUG = "drawn-shapes"
SEED = 20261118
PICTURES = 40
SIZE = (480, 320)
CELLS = (5, 3)
SHAPES = ("circle", "square", "triangle", "star")
COLOURS = {"blue": "#2f6db5", "red": "#c83f2f", "green": "#3f8a4f", "yellow": "#e2b714", "purple": "#7c4f9f"}
LETTERS = "ABCD"
CHOICE, YES_NO = "choice", "yes-no"  # splits: questions with options, and those of yes or no
HARD = {"Counting": 0.5, "Colours": -0.7, "Places": 0.1}  # how hard a question is, by its level

Row = dict[str, Any]
Shape = tuple[str, str, int, int]  # colour, shape, column, row


@dataclass(frozen=True, slots=True)
class Mind:
    """How a model answers: its skill, and what other ways of asking do to it, on the scale of a logit.

    ``sure`` multiplies what its confidence should be; None for a model whose endpoint tells no likelihoods.
    """

    skill: float
    sure: float | None
    per_example: float  # what each example adds
    labels: float  # the share of other labels that it keeps to
    damage: float  # what a damaged picture takes
    yes: float  # leans to yes
    marks: float  # of its reasons, 0 to 10
    lacks: Sequence[str] = ()  # recipes that it was never asked by


MODELS = {
    name: Mind(**values) for name, values in json.loads((FOLDER / "minds.json").read_text(encoding="utf-8")).items()
}
JUDGE = simulation.STEADY.name


def is_here() -> bool:
    """Whether all of it came in: the marks for reasons are the last part."""
    return Run.objects.filter(benchmark__slug=SLUG, kind=Run.Kind.MARKS).exists()


def load_recipes() -> None:
    """Bring in what is missing; what is there stays as it is."""
    curator = User.objects.filter(username="curator").first()
    with TemporaryDirectory() as name:
        folder = Path(name)
        loader.write(folder / "samples.jsonl", _samples(folder))
        shutil.copy(FOLDER / "recipe-models.jsonl", folder / "models.jsonl")
        loader.imported(
            ["samples"],
            folder,
            slug=SLUG,
            title="Drawn shapes",
            description="Drawn shapes to count, to name and to find, asked by recipes. Made for the demo: the models "
            "and their answers are invented.",
            open_keys=True,
        )
    values = yaml.safe_load((FOLDER / "recipes.yaml").read_text(encoding="utf-8"))
    recipes = [store.save(specs.parsed(value), by=curator)[0] for value in values]
    loader.add("recipe_responses", _answers([store.spec_of(recipe) for recipe in recipes]), slug=SLUG)
    EvaluatedModel.objects.filter(name__in=MODELS).update(simulated=True)
    _mark_reasons(curator)


# ---- pictures and questions ----


def _samples(folder: Path) -> Iterator[Row]:
    for name, (shapes, questions_of) in _pictures().items():
        _drawn(random.Random(f"{SEED} drawing {name}"), shapes).save(folder / f"{name}.png", "PNG", optimize=True)
        about = {"images": [{"file": f"{name}.png", "description": "Coloured shapes on a light ground"}]}
        for key, question in questions_of.items():
            yield question | about | {"key": f"{name}-{key}", "group": name, "language": "en"}


@cache
def _pictures() -> dict[str, tuple[list[Shape], dict[str, Row]]]:
    """By name, what is in each picture, and the questions about it."""
    made = {}
    for number in range(1, PICTURES + 1):
        rng = random.Random(f"{SEED} picture {number}")
        shapes = _scene(rng)
        made[f"picture-{number:02}"] = shapes, _asked(rng, shapes)
    return made


def _scene(rng: random.Random) -> list[Shape]:
    """Shapes in cells of a grid, of which one stands alone at the left; one kind of shape is there once."""
    columns, rows = CELLS
    lone, *others = rng.sample(SHAPES, len(SHAPES))
    cells = rng.sample(list(product(range(1, columns), range(rows))), rng.randint(6, 9))
    kinds = [lone, *(rng.choice(others) for _ in cells[1:])]
    kinds_left = rng.choice([kind for kind in SHAPES if kind in kinds and kind != lone])
    placed = [*zip(kinds, cells, strict=True), (kinds_left, (0, rng.randrange(rows)))]
    return [(rng.choice(list(COLOURS)), kind, column, row) for kind, (column, row) in placed]


def _drawn(rng: random.Random, shapes: Sequence[Shape]) -> Image.Image:
    image = Image.new("RGB", SIZE, "#f4f1ea")
    draw = ImageDraw.Draw(image)
    width, height = SIZE[0] / CELLS[0], SIZE[1] / CELLS[1]
    for colour, kind, column, row in shapes:
        r = rng.randint(24, 38)
        x = (column + 0.5) * width + rng.randint(-6, 6)
        y = (row + 0.5) * height + rng.randint(-8, 8)
        if kind == "circle":
            draw.ellipse((x - r, y - r, x + r, y + r), fill=COLOURS[colour])
            continue
        # Corners of a square, a triangle or a star; every other one of a star lies nearer to its middle.
        corners = {"square": 4, "triangle": 3, "star": 10}[kind]
        turned = pi / 4 if kind == "square" else 0.0
        radii = [r * (0.42 if kind == "star" and at % 2 else 1.15) for at in range(corners)]
        angles = [turned + 2 * pi * at / corners for at in range(corners)]
        outline = [(x + near * sin(angle), y - near * cos(angle)) for near, angle in zip(radii, angles, strict=True)]
        draw.polygon(outline, fill=COLOURS[colour])
    return image.quantize(16)


def _asked(rng: random.Random, shapes: Sequence[Shape]) -> dict[str, Row]:
    """Three questions with options and two of yes or no about a picture."""
    kinds = [kind for _, kind, *_ in shapes]
    left = min(shapes, key=lambda shape: shape[2])[1]
    others = [kind for kind in SHAPES if kind != left]
    there = sorted({(colour, kind) for colour, kind, *_ in shapes})
    absent = [pair for pair in product(COLOURS, SHAPES) if pair not in there and pair[1] in kinds]
    return {
        "count": _about_number(rng, kinds),
        "colour": _about_colour(rng, shapes, kinds),
        "place": _choice(rng, "Places", "Which shape is furthest to the left?", left, others),
        "present": _yes_no("random", rng.choice(there), "yes"),
        "absent": _yes_no("adversarial", rng.choice(absent), "no"),
    }


def _about_number(rng: random.Random, kinds: Sequence[str]) -> Row:
    counted = rng.choice([kind for kind in SHAPES if kinds.count(kind) > 1])
    count = kinds.count(counted)
    near = [n for n in range(max(0, count - 3), count + 4) if n != count]
    wrong = [str(n) for n in rng.sample(near, 3)]
    return _choice(rng, "Counting", f"How many {counted}s are there?", str(count), wrong)


def _about_colour(rng: random.Random, shapes: Sequence[Shape], kinds: Sequence[str]) -> Row:
    """About a kind of shape that is there once."""
    lone = next(kind for kind in kinds if kinds.count(kind) == 1)
    right = next(colour for colour, kind, *_ in shapes if kind == lone)
    wrong = rng.sample([colour for colour in COLOURS if colour != right], 3)
    return _choice(rng, "Colours", f"Which colour is the {lone}?", right, wrong)


def _choice(rng: random.Random, level: str, instruction: str, right: str, wrong: list[str]) -> Row:
    texts = rng.sample([right, *wrong], len(LETTERS))
    return {
        "instruction": instruction,
        "question_type": "multiple-choice",
        "capability": [level],
        "split": CHOICE,
        "options": dict(zip(LETTERS, texts, strict=True)),
        "answer": LETTERS[texts.index(right)],
    }


def _yes_no(subset: str, pair: tuple[str, str], answer: str) -> Row:
    return {
        "instruction": f"Is there a {pair[0]} {pair[1]} in the picture?",
        "question_type": "yes-no",
        "capability": ["Presence", subset],
        "split": YES_NO,
        "answer": answer,
    }


# ---- answers ----


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as a recipe put it to a model."""

    model: str
    spec: Spec
    key: str
    level: str
    options: tuple[str, ...]
    answer: str
    condition: Condition
    repeat: int
    wording: int

    def draw(self, *about: object) -> random.Random:
        return random.Random(" ".join(map(str, (SEED, self.model, self.key, *about))))

    @property
    def here(self) -> random.Random:
        """Draws of this condition and repeat alone."""
        return self.draw(self.spec.name, self.condition.name, self.repeat)


def _keys() -> dict[str, str]:
    return {f"{name}-{key}": made["answer"] for name, (_, of_it) in _pictures().items() for key, made in of_it.items()}


def _answers(of: Sequence[Spec]) -> Iterator[Row]:
    """A row for each turn of each model by each recipe."""
    keys = _keys()
    for spec in of:
        (scenario,) = spec.scenario
        _, samples = evaluations.samples_of(spec, scenario)
        for model, mind in MODELS.items():
            if scenario.split in mind.lacks or (mind.sure is None and spec.ways):
                continue
            for sample in samples:
                about = (sample.key, sample.capability_path.split("/")[0], tuple(sample.options), keys[sample.key])
                for place in questions.places(spec, sample):
                    condition, repeat, _ = questions.Place.of_task(place, spec)
                    wording = questions.dealt_query(spec.seed, sample.key, len(spec.instruction.queries), repeat)
                    asked = Asked(model, spec, *about, spec.conditions[condition], repeat, wording)
                    row: Row = {"sample": sample.key, "model": model, "recipe": f"{spec.name}@{spec.version}"}
                    row |= {"variant": asked.condition.name, "repeat": repeat}
                    yield from (row | {"turn": turn} | said for turn, said in enumerate(_turns(asked, mind)))


def _turns(asked: Asked, mind: Mind) -> list[Row]:
    """The answers of a model, turn by turn."""
    answer, margin = _chosen(asked, mind)
    if asked.spec.ways:
        return [_likelihoods(asked, mind, answer, margin)]
    failed = _failed(asked)
    if failed:
        return [failed]
    said = _in_words(asked, mind, answer)
    if len(asked.spec.turns) > 1:
        return [{"text": _reasons(asked, answer)}, {"text": said}]
    return [{"text": said}]


def _chosen(asked: Asked, mind: Mind) -> tuple[str, float]:
    """The answer that the model finds, and by how much its skill is beyond what the question takes."""
    margin = mind.skill - HARD.get(asked.level, 0.0) - asked.draw("question").gauss(0, 0.9)
    strength = asked.condition.step.severity / 3 if asked.condition.step else asked.condition.corrupted
    margin += mind.per_example * asked.condition.shots - mind.damage * strength
    margin += (0.0, -0.15, -0.3)[asked.wording]
    pool = asked.options or ("no", "yes")
    if not asked.options:
        margin += mind.yes * (1 if asked.answer == "yes" else -1)
    # The same luck with a question under most conditions, and some of each.
    luck = asked.draw("luck") if asked.here.random() < 0.88 else asked.here
    if luck.random() < 1 / (1 + exp(-margin)):
        return asked.answer, margin
    return asked.draw("wrong").choice([each for each in pool if each != asked.answer]), margin


def _failed(asked: Asked) -> Row | None:
    """A refused or cut off answer, now and then."""
    draw = asked.here.random()
    if draw < 0.004:
        return {"text": "I'm sorry, but I can't help with that.", "status": "refused", "reason": "the model refused"}
    if draw < 0.008:
        return {"text": "Let me look at every shape in", "status": "truncated", "reason": "longer than allowed"}
    return None


def _in_words(asked: Asked, mind: Mind, answer: str) -> str:
    rng = asked.draw("words", asked.spec.name, asked.condition.name, asked.repeat)
    if not asked.options:
        return rng.choice(("{}.", "{}", "{}, as far as I can see.")).format(answer.capitalize())
    verbalizer = asked.condition.verbalizer
    if verbalizer and rng.random() < mind.labels:
        answer = verbalizer.labels(asked.options)[asked.options.index(answer)]
    elif rng.random() < 0.01:
        return "It is hard to tell from this picture."
    return rng.choice(("{}", "{}", "{}.", "The answer is {}.")).format(answer)


def _reasons(asked: Asked, answer: str) -> str:
    rng = asked.draw("reasons")
    look: dict[str, Callable[[], str]] = {
        "Counting": lambda: "I go through the picture row by row and count each shape of that kind once.",
        "Colours": lambda: "There is only one such shape, so I compare its colour with the four that are offered.",
        "Places": lambda: "I look for the shape whose middle is nearest to the left edge.",
    }
    doubt = rng.choice(("", " Two of the options can be left out at once.", " I checked it a second time."))
    return f"{look[asked.level]()}{doubt} That fits {answer} best."


def _likelihoods(asked: Asked, mind: Mind, answer: str, margin: float) -> Row:
    """The log-likelihood of each option: as sure as the model says it is, which need not be how sure it should be."""
    assert mind.sure is not None
    rng = asked.draw("sure")
    felt = mind.sure * (margin + rng.gauss(0, 0.7)) + (0.0 if answer == asked.answer else -0.8)
    confidence = min(0.998, max(0.28, 1 / (1 + exp(-felt))))
    weights = {each: rng.uniform(0.2, 1) for each in asked.options if each != answer}
    # No other option may be likelier than the answer.
    rest = {each: (1 - confidence) * weight / sum(weights.values()) for each, weight in weights.items()}
    shares = {answer: max(confidence, 1.02 * max(rest.values()))} | rest
    mass = rng.uniform(0.965, 0.9995)
    total = sum(shares.values())
    pool = [[each, round(log(mass * shares[each] / total), 4)] for each in asked.options]
    return {"text": answer, "likelihoods": {"by": "first-token", "pool": pool, "mass": round(mass, 4)}}


# ---- marks for reasons ----


@transaction.atomic
def _mark_reasons(curator: User | None) -> None:
    """The simulated judge marks the reasons, as runs of real ones are stored: those of wrong answers are worse."""
    recipe = store.get("shapes-reasons")
    judge, _ = Judge.objects.get_or_create(name=JUDGE, defaults={"simulated": True})
    now = timezone.now()
    benchmark = Benchmark.objects.named(SLUG)
    answers = as_frame(recipe, store.spec_of(recipe), benchmark)
    wrong = set(answers[answers["right"] == 0][["model", "key"]].itertuples(index=False, name=None))
    for model, mind in MODELS.items():
        evaluation = Evaluation.objects.create(
            recipe=recipe, judge=judge, model_name=model, by=curator, finished_at=now
        )
        run = start_marks(evaluation, store.spec_of(recipe), benchmark, budget=None)
        if run is None:
            continue
        judgments = []
        items = RunItem.objects.filter(run=run).order_by("pk").values_list("item", "item__sample__key")
        for (item, key), repeat in product(items, range(MARKS_EACH)):
            quality = mind.marks - 3.5 * ((model, key) in wrong)
            quality += random.Random(f"{SEED} {model} {key} reasons").gauss(0, 0.9)
            seen = quality + random.Random(f"{SEED} {model} {key} mark {repeat}").gauss(0, 0.6)
            score = min(10.0, max(0.0, float(round(seen))))
            judgments.append(Judgment(run=run, item_id=item, order="0", repeat=repeat, score=score))
        Judgment.objects.bulk_create(judgments, batch_size=1_000)
        run.state, run.finished_at, run.verdicts = Run.State.FINISHED, now, len(judgments)
        run.told = run.state  # nobody has waited for it
        run.save(update_fields=["state", "told", "finished_at", "verdicts"])
