import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stats.ranks import InvalidProbability, benjamini_hochberg, benjamini_yekutieli

# The 15 p-values of Benjamini and Hochberg 1995's example (thrombolysis after myocardial infarction).
PAPER = [
    0.0001,
    0.0004,
    0.0019,
    0.0095,
    0.0201,
    0.0278,
    0.0298,
    0.0344,
    0.0459,
    0.3240,
    0.4262,
    0.5719,
    0.6528,
    0.7590,
    1,
]


def test_benjamini_hochberg_rejects_the_four_hypotheses_of_the_paper():
    assert benjamini_hochberg(p=PAPER).tolist() == [True] * 4 + [False] * 11


def test_benjamini_yekutieli_rejects_three_of_them():
    assert benjamini_yekutieli(p=PAPER).tolist() == [True] * 3 + [False] * 12


@given(st.lists(st.floats(0, 1), max_size=50), st.sampled_from([0.01, 0.05, 0.2]))
def test_both_agree_with_statsmodels(p, q):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    hochberg, yekutieli = benjamini_hochberg(p=p, q=q), benjamini_yekutieli(p=p, q=q)
    assert not (yekutieli & ~hochberg).any()
    if p:
        assert hochberg.tolist() == multitest.fdrcorrection(p, alpha=q)[0].tolist()
        assert yekutieli.tolist() == multitest.fdrcorrection(p, alpha=q, method="negcorr")[0].tolist()


def test_a_step_up_rejects_a_small_p_that_fails_its_own_threshold():
    # 0.04 > 0.05 / 2, but 0.05 <= 0.05: both are rejected.
    assert benjamini_hochberg(p=[0.04, 0.05]).all()


@pytest.mark.parametrize("p", [[-0.1], [1.1], [np.nan]])
def test_what_is_no_probability_is_refused(p):
    with pytest.raises(InvalidProbability):
        benjamini_hochberg(p=p)
