"""Agreement of a campaign as its board gives it: no layer above a formula drops the rows that it counts."""

import numpy as np
import pytest

from stats.generalizability import intraclass
from tests.stats.test_stats_reliability import FOUR_OBSERVERS

pytestmark = pytest.mark.django_db


def scores_of(table, named="s"):
    return [
        {"kind": "score", "sample": f"{named}{item}", "responses": ["Finch"], "annotator": f"P{person}", "score": value}
        for person, row in enumerate(table.tolist())
        for item, value in enumerate(row)
        if not np.isnan(value)
    ]


@pytest.fixture
def figures(folder, manage, board):
    """``figures(table)``: the campaign's figures by metric, of a table (annotators, items) of scores."""

    def ask(table, benchmark="observers"):
        items = range(table.shape[1])
        samples = [{"key": f"s{n}", "instruction": f"How good is {n}?"} for n in items]
        answers = [{"sample": f"s{n}", "model": "Finch", "text": f"Answer {n}."} for n in items]
        for what, rows in (("benchmark", samples), ("responses", answers), ("labels", scores_of(table))):
            public = ["--public"] if what == "benchmark" else []
            path = folder(what, rows)
            assert manage(f"import_{what}", "generic", path, "--benchmark", benchmark, *public)[0] == 0
        return {row["metric"]: row for row in board("campaign", benchmark=benchmark) if not (row["a"] or row["level"])}

    return ask


def test_gwets_coefficients_and_intraclass_correlations_of_a_campaign_leave_no_item_with_one_label_out(figures):
    """The board gave AC1 .77515 and ICC .8452 .8457 .8576 of the table whose AC1 Gwet prints as .77544."""
    found = figures(FOUR_OBSERVERS)
    assert (round(found["ac1"]["value"], 5), round(found["ac2"]["value"], 5)) == (0.77544, 0.91400)
    person, item = np.nonzero(np.isfinite(FOUR_OBSERVERS))
    of_all = intraclass(item=item, rater=person, value=FOUR_OBSERVERS[person, item], cluster=item)
    icc = [found[f"icc_{which}"]["value"] for which in ("one_way", "agreement", "consistency")]
    assert icc == pytest.approx([of_all.one_way.value, of_all.agreement.value, of_all.consistency.value])
    assert [round(value, 4) for value in icc] == [0.8414, 0.8419, 0.8523], "as counted pair by pair"
    assert round(found["alpha_nominal"]["value"], 4) == 0.7434, "alpha counts what is paired alone"


@pytest.mark.parametrize(("items", "expected"), [(4, -2.0), (8, -1.0 - 1 / 3)])
def test_a_correlation_below_minus_one_is_told_as_it_is_on_few_items_and_on_many(items, expected, figures):
    """Opposite items: Shrout and Fleiss' estimator is below -1. From eight items on -1.0 was shown."""
    low = np.tile([1.0, 5.0], items // 2)
    found = figures(np.array([low, 6.0 - low]), benchmark=f"opposite{items}")["icc_agreement"]
    assert found["value"] == pytest.approx(expected)
    assert (found["value_low"], found["value_high"]) == (None, None)


def test_elo_is_left_out_where_the_help_says_so(voted, board):
    rows = board("models", "--elo", "none")
    assert {row["elo"] for row in rows} == {None}
    assert all(row["bt"] is not None for row in rows if row["rank"])
