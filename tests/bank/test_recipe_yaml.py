"""A recipe's YAML as somebody typed it: what stands where, and what is wrong with it."""

import pytest

from bank.recipes import spec, text

TYPED = """\
# Ours, for May.
name: mine
scenario: [{benchmark: animals, split: dev}]   # all of it
instruction:
  queries:
  - default
  examples:
    how: random
    k: 2

  verbalizer: natural
turns:
- {kind: cot}
- kind: likelihood
metric: accuracy
"""


@pytest.mark.parametrize(
    ("place", "lines"),
    [
        (["name"], [2]),
        (["scenario"], [3]),
        (["instruction"], [4, 5, 6, 7, 8, 9, 10, 11]),
        (["instruction", "examples"], [7, 8, 9]),
        (["turns", 1, "kind"], [14]),
        (["turns", 1, "kind", "deeper"], [14]),
        (["nothing"], []),
    ],
)
def test_the_lines_of_a_part_are_found(place, lines):
    assert list(text.lines_of(TYPED, place)) == lines


@pytest.mark.parametrize(
    ("old", "new", "line", "guess"),
    [
        ("kind: likelihood", "kind: likelyhood", 14, "likelihood"),
        ("metric: accuracy", "metrik: accuracy", 15, "metric"),
        ("    how: random", "    how: randon", 8, "random"),
        ("- kind: likelihood", "- kind: likelihood\n  pools: options", 15, "pool"),
        ("metric: accuracy", "metric: [accuracy", 16, ""),
        ("name: mine\n", "", 0, ""),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_word_that_was_meant(old, new, line, guess):
    found, error, where = text.fault_in(TYPED.replace(old, new))
    assert found is None
    assert (where, error.guess) == (line, guess)


def test_a_recipe_written_to_be_changed_reads_back_unchanged():
    query = "{{ instruction }}\n{{ ask }}"
    made = spec.parsed(
        {
            "name": "mine",
            "scenario": [{"benchmark": "animals"}],
            "instruction": {"queries": [query, "default"]},
            "turns": [{"kind": "likelihood"}],
            "metric": "ece",
        }
    )
    typed = text.of_spec(made)
    assert spec.from_yaml(typed) == made
    assert "    {{ instruction }}\n    {{ ask }}\n" in typed
