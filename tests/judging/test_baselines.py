"""The judges that every judge table is measured from."""

import random

import pytest

from judging import protocols
from judging.models import OVERLAP, Judgment, Run
from judging.protocols.baselines import CannotJudge, Case

ANSWERS = ["A walnut bowl stands on it.", "Something or other is there on top of the table, I think."]
CRITERIA = ["Names the walnut bowl.", "Says that it stands on the table."]


def verdict(name: str, *, answers=ANSWERS, criteria=CRITERIA, order=(0, 1), seed=7) -> str:
    case = Case(answers=answers, criteria=criteria, order=order, rng=random.Random(seed))
    return protocols.get("pairwise-criteria").baselines[name](case)["choice"]


def test_first_takes_whatever_stands_first():
    assert verdict("first") == verdict("first", answers=ANSWERS[::-1], order=(1, 0)) == "first"


def test_longest_counts_words_and_calls_equal_lengths_a_tie():
    assert verdict("longest") == "second"
    assert verdict("longest", answers=ANSWERS[::-1]) == "first"
    assert verdict("longest", answers=["one two three", "four  five\nsix"]) == "tie"


def test_random_prefers_the_same_answer_in_both_orders_and_no_side_over_many_items():
    straight = [verdict("random", seed=seed) for seed in range(2000)]
    turned = [verdict("random", seed=seed, order=(1, 0)) for seed in range(2000)]
    assert all(a != b for a, b in zip(straight, turned, strict=True))
    assert 900 < straight.count("first") < 1100


def test_overlap_prefers_the_answer_with_the_larger_share_of_the_criteria_words():
    assert verdict("criteria-overlap") == "first"  # walnut, bowl, stands against table
    assert verdict("criteria-overlap", answers=["BOWL! Walnut?", "the of and"]) == "first"
    assert verdict("criteria-overlap", answers=["bowl bowl bowl", "a bowl"]) == "tie"


def test_overlap_has_no_verdict_where_there_is_nothing_to_go_by():
    for criteria in ([], ["It is to be as it was."]):
        with pytest.raises(CannotJudge, match="no criteria"):
            verdict("criteria-overlap", criteria=criteria)


@pytest.mark.parametrize("name", ["random", "first", "longest", "criteria-overlap"])
def test_a_baseline_goes_through_the_same_rows_as_any_judge(baseline, start, work_on, name):
    run = work_on(start(baseline(name)))
    assert run.state == Run.State.FINISHED
    assert run.judgments.filter(status="ok").count() == 3 * 2
    assert run.attempts.count() == 0
    choices = {
        order: list(run.judgments.filter(order=order).values_list("choice", flat=True)) for order in ("01", "10")
    }
    if name == "first":  # in canonical order, what stood first is one answer in one order and the other in the other
        assert choices == {"01": ["first"] * 3, "10": ["second"] * 3}
    else:
        assert choices["01"] == choices["10"]
    if name == "criteria-overlap":
        assert choices["01"] == ["first"] * 3


def test_only_the_overlap_baseline_reads_criteria_and_each_page_leaves_one_record(baseline, start, work_on):
    from bank.models import CriteriaAccess

    for name in ("random", "first", "longest"):
        work_on(start(baseline(name)))
    assert not CriteriaAccess.objects.exists()
    run = work_on(start(baseline("criteria-overlap")))
    record = CriteriaAccess.objects.get()
    assert (record.how, record.about, len(record.sample_ids)) == ("judging", f"run {run.pk}", 3)


def test_verdicts_of_the_overlap_baseline_are_seen_one_by_one_by_staff_only(baseline, start, work_on, people):
    for name in ("longest", OVERLAP):
        work_on(start(baseline(name)))
    for role in ("curator", "administrator"):
        assert Judgment.objects.seen_by(people[role]).count() == 12
    for role in ("annotator", "researcher"):
        seen = Judgment.objects.seen_by(people[role])
        assert set(seen.values_list("run__judge__baseline", flat=True)) == {"longest"}


def test_verdicts_on_a_private_benchmark_are_seen_by_staff_only(baseline, start, work_on, people, benchmark):
    work_on(start(baseline("first")))
    benchmark.visibility = "private"
    benchmark.save()
    assert Judgment.objects.seen_by(people["curator"]).count() == 6
    assert not Judgment.objects.seen_by(people["researcher"]).exists()
    assert not Run.objects.visible_to(people["researcher"]).exists()
