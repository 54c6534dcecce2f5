"""A benchmark made through the import commands, small enough to reckon by hand and wide enough to rank."""

import io
import json
import random

import pytest
from django.core.management import call_command

from bank.models import Benchmark
from tests.bank.conftest import folder, manage, picture
from tests.once import once

__all__ = ["folder", "manage"]

MODELS = ("Alder", "Birch", "Cedar", "Dogwood")
STRENGTH = {"Alder": 3, "Birch": 2, "Cedar": 1, "Dogwood": 0}
PEOPLE = ("Ada", "Ben", "Chen")
SECRET = "zq-hidden-criterion-7"
SAMPLES = 36


def samples():
    """36 samples: two levels with two capabilities each, two question types, two splits."""
    return [
        {
            "key": f"s{n:02}",
            "instruction": f"What does sign {n} say?",
            "images": ["sign.png"],
            "capability": ["Perception", "Reading"] if n % 3 else ["Creation", "Poetry" if n % 2 else "Stories"],
            "question_type": "closed-ended" if n % 2 else "open-ended",
            "split": "dev" if n < 24 else "test",
            "criteria": [{"text": f"{SECRET} of sign {n}"}],
        }
        for n in range(SAMPLES)
    ]


def responses():
    return [
        {"sample": f"s{n:02}", "model": model, "text": f"{model} says **sign {n}**."}
        for n in range(SAMPLES)
        for model in MODELS
    ]


def pairs():
    """Every pair of the first three models on every sample; the last model on ten samples only."""
    for n in range(SAMPLES):
        for i, first in enumerate(MODELS):
            for second in MODELS[i + 1 :]:
                if second != "Dogwood" or (first == "Alder" and n < 10):
                    yield (f"s{n:02}", first, second) if (n + i) % 2 else (f"s{n:02}", second, first)


def vote(first, second, rng, noise):
    """The stronger one mostly; sometimes a tie, sometimes the other."""
    drawn = STRENGTH[first] - STRENGTH[second] + rng.gauss(0, noise)
    return "tie" if abs(drawn) < 0.4 else "first" if drawn > 0 else "second"


def labels(seed=1):
    rng = random.Random(seed)
    for sample, first, second in pairs():
        for person in PEOPLE:
            if rng.random() < 0.8:
                row = {"kind": "pair", "protocol": "pairwise-criteria", "sample": sample, "annotator": person}
                yield row | {"responses": [first, second], "choice": vote(first, second, rng, 1.6), "seconds": 20}


def judgments(judge, *, noise, seed, settings=None, share=1.0, repeats=1):
    """Both orders of every pair. The order names who stood first; the choice is about ``responses``."""
    rng = random.Random(seed)
    for sample, first, second in pairs():
        for repeat in range(repeats):
            for order in ([first, second], [second, first]):
                if rng.random() < share:
                    yield {
                        "kind": "pair",
                        "protocol": "pairwise-criteria",
                        "sample": sample,
                        "responses": [first, second],
                        "judge": judge,
                        "settings": {"order": "both"} | (settings or {}),
                        "order": order,
                        "repeat": repeat,
                        "choice": vote(first, second, rng, noise),
                        "analysis": f"It says {SECRET}.",
                        "raw": f"{SECRET} Answer1",
                    }


@pytest.fixture
def grove(folder, manage):
    """The benchmark ``grove`` with responses, without a verdict."""

    def make():
        (folder.root / "sign.png").write_bytes(picture())
        assert (
            manage("import_benchmark", "generic", folder("samples", samples()), "--benchmark", "grove", "--public")[0]
            == 0
        )
        assert manage("import_responses", "generic", folder("responses", responses()), "--benchmark", "grove")[0] == 0
        return Benchmark.objects.get(slug="grove")

    return once("grove", make)


@pytest.fixture
def brought(folder, manage, grove):
    """``brought("labels", rows)`` imports rows into the grove."""

    def run_import(what, rows, *more):
        path = folder(what, list(rows))
        assert manage(f"import_{what}", "generic", path, "--benchmark", "grove", *more)[0] == 0
        return grove

    return run_import


@pytest.fixture
def voted(brought):
    """The grove with labels of three people and two judges, a good and a poor one."""

    def make():
        brought("labels", labels())
        brought("judgments", [*judgments("keen", noise=0.6, seed=2), *judgments("dull", noise=9.0, seed=3)])
        return Benchmark.objects.get(slug="grove")

    return once("voted", make)


@pytest.fixture
def board(db):
    """``board("models", "--source", "keen")`` gives the command's rows; keyword ``benchmark`` for another one."""

    def rows(what, *options, benchmark="grove"):
        out = io.StringIO()
        call_command("leaderboard", what, "--benchmark", benchmark, *options, "--format", "json", stdout=out)
        return json.loads(out.getvalue())

    return rows


def without_state(row):
    """A row without as of when it is."""
    return {name: value for name, value in row.items() if name not in ("as_of", "kept_back")}


def by_model(rows):
    return {row["model"]: row for row in rows}
