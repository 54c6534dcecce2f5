"""What ``make bench`` measures is filled by column, past the models: it must fit the tables of today."""

import pytest

from bank.models import Benchmark, Sample
from tests.bench import bank, boards, judges

pytestmark = pytest.mark.django_db
FILLED = {
    "bank": lambda: bank.fill(samples=400, models=2),
    "boards": lambda: boards.fill(votes=200, models=6, samples=20),
    "judges": lambda: judges.fill(200, models=16, judges=2),
}


@pytest.mark.parametrize("name", FILLED)
def test_what_is_measured_fits_the_tables(name):
    FILLED[name]()
    assert Sample.objects.filter(benchmark=Benchmark.objects.get()).exists()
