"""The numbers that our documents, or the papers they follow, print: a change of one is a change of what we promise.

What each does is tested beside its code; here stands what it is.
"""

import inspect
from datetime import timedelta

import pytest
from django.utils.module_loading import import_string

CONSTANTS = {
    # Sign-in, and what an address may ask (docs/operations.md)
    "accounts.attempts.WINDOW": timedelta(minutes=15),
    "accounts.attempts.MAX_NAME_AND_PLACE": 10,
    "accounts.attempts.MAX_PLACE": 100,
    "accounts.attempts.MAX_NAME": 50,
    # What of a judge's words leaves (ADR 9, ADR 24)
    "bank.text.redactor.WINDOW": 5,
    "bank.text.redactor.LETTERS": 28,
    "bank.text.redactor.SHIFTED": 8,
    "bank.text.redactor.DEPTH": 2,
    "bank.text.similarity.DENSE": 0.46,
    "bank.text.similarity.SPARSE": 0.62,
    "bank.text.similarity.REACH": 2.5,
    "bank.text.similarity.SAME": 24,
    "bank.text.similarity.STRETCH": 48,
    "bank.text.similarity.VOWELS": 0.24,
    # Numbers from hidden keys (ADR 11, ADR 17)
    "stats.disclosure.MIN_SAMPLES": 10,
    # Hints for curators: MLLM-Bench's guideline, Table 10
    "bank.samples.quality.SHORT_EDGE": 512,
    # Fewer, and an interval by groups or a test says little (ADR 8; 2501.10970, section 3)
    "stats.proportions.FEWEST_GROUPS": 8,
    "stats.jackknife.MOST": 500,
    "stats.bradley_terry.FEWEST_ITEMS": 30,
    "stats.prediction.FEWEST_LABELS": 50,
    "stats.prediction.FEWEST_LABELLED_GROUPS": 30,
    "stats.prediction.FOLDS": 10,
    "stats.alternative.FEWEST": 30,
    "stats.rankings.MOST_EXACT": 8,
    "stats.rankings.DRAWS": 20_000,
    "leaderboard.methods.PROVISIONAL": 30,
    # Whether a judge may stand in for an annotator (2501.10970)
    "leaderboard.boards.judges.stand_in.EPSILON": 0.2,
    "leaderboard.boards.judges.stand_in.FEWEST_PEOPLE": 3,
    # How far apart two verdicts are doubtful
    "annotations.campaigns.run_doubts.FAR_SCORE": 1.0,
    "annotations.campaigns.run_doubts.FAR_RANKING": 0.5,
}
DEFAULTS = {
    "stats.elo.online": {"k": 4, "scale": 400, "base": 10, "start": 1000},
    "stats.elo.online_bootstrap": {"k": 4, "scale": 400, "base": 10, "start": 1000, "replicates": 1000},
    "stats.bradley_terry.fit": {"draws": 1000, "level": 0.95, "q": 0.05},
    "stats.alternative.alternative_annotator_test": {"epsilon": 0.2, "q": 0.05},
    "stats.proportions.wilson": {"level": 0.95},
}


@pytest.mark.parametrize("name", CONSTANTS)
def test_a_published_constant_is_as_published(name):
    assert import_string(name) == CONSTANTS[name]


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_published_default_is_as_published(name):
    parameters = inspect.signature(import_string(name)).parameters
    assert {each: parameters[each].default for each in DEFAULTS[name]} == DEFAULTS[name]
