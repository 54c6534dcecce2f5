"""YAML of recipes that no recipe is: refused in words, whatever PyYAML makes of it."""

import pytest

from bank.errors import BadInput
from bank.recipes import spec

RECIPE = "name: x\nmetric: accuracy\nturns: [{kind: direct}]\nscenario: [{benchmark: b}]\n"


@pytest.mark.parametrize(
    "line",
    [
        "seed: " + "9" * 200_000,
        "seed: -" + "9" * 5_000,
        "seed: !!int '" + "9" * 5_000 + "'",
        "seed: 0x" + "f" * 200_000,
        "seed: " + ":".join(["59"] * 100_000),
        "version: 4294967296",
        "seed: 2001-13-45",
        "seed: 2001-01-01T99:00:00",
        "seed: !!timestamp foo",
        "seed: !!bool foo",
        "seed: !!int x",
        "seed: !!float y",
        "seed: " + "[" * 100_000,
        "seed: [" + "a," * 200_000 + "]",
    ],
    ids=lambda line: line[:30],
)
def test_what_is_no_value_of_a_recipe_is_refused_in_words(line):
    with pytest.raises(BadInput):
        spec.from_yaml(RECIPE + line)


def test_twenty_thousand_scenarios_are_refused_before_they_are_read(monkeypatch):
    read = []
    monkeypatch.setattr(spec.yaml, "safe_load", lambda text: read.append(text))
    with pytest.raises(BadInput, match="at most 20 scenarios"):
        spec.from_yaml(
            RECIPE.split("scenario")[0] + "scenario:\n" + "".join(f"- benchmark: b{n}\n" for n in range(20_000))
        )
    assert read == []


def test_a_tree_of_twenty_thousand_classes_is_a_recipe():
    tree = "".join(f"    - animal/dog{n}\n" for n in range(20_000))
    turns = f"turns:\n- kind: likelihood\n  pool:\n    tree:\n{tree}"
    read = spec.from_yaml("name: x\nmetric: weighted-accuracy\nscenario: [{benchmark: b}]\n" + turns)
    assert len(read.turns[0].pool.tree) == 20_000
