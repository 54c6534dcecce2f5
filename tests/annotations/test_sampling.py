"""Which items a campaign is made of."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from accounts.models import User
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import add_items, close_campaign, copy_campaign, make_campaign
from annotations.campaigns.candidates import candidates_for
from annotations.campaigns.run_doubts import (
    DIFFERS,
    NO_MAJORITY,
    NO_VERDICT,
    TURNED,
    combine_verdicts,
    differs,
    doubts_of,
    mean_ranking,
)
from annotations.campaigns.sampling import Plan, in_proportion, parse_plan, select_items
from annotations.campaigns.sizing import size_of
from annotations.labels.actions import submit_label
from annotations.models import CampaignItem
from bank.errors import BadInput
from bank.models import Capability, EvaluatedModel, Item, Sample
from judging.models import Judge, Judgment, Run, RunItem
from tests.annotations.kinds import benchmark_of
from tests.markup import flat

db = pytest.mark.django_db


@pytest.fixture
def tree(pairs):
    """24 samples of 6 capabilities at 2 tops (4 each, the last with 3 and one without), pairs of three models."""

    def make(models=("anchor", "one", "two")):
        benchmark = pairs(24, models=models)
        leaves = []
        for top in "PQ":
            above = Capability.objects.create(benchmark=benchmark, name=top, path=top)
            leaves += [
                Capability.objects.create(benchmark=benchmark, parent=above, name=f"{top}{n}", path=f"{top} / {top}{n}")
                for n in range(3)
            ]
        for number, sample in enumerate(benchmark.samples.order_by("position")):
            sample.capability = leaves[number // 4] if number < 23 else None
            sample.save()
        return benchmark

    return make


def count(benchmark, seed=1, **plan):
    chosen = select_items(benchmark=benchmark, protocol="pair", plan=parse_plan(plan), seed=seed)
    return len(chosen.candidates), chosen.samples


@db
class TestPlans:
    def test_so_many_samples_of_each_capability_with_all_their_items(self, tree):
        benchmark = tree()
        assert count(benchmark) == (72, 24)
        assert count(benchmark, how="per-capability", n=2) == (2 * 6 * 3 + 3, 13)
        assert count(benchmark, how="per-capability", n=4) == (72, 24)

    def test_only_items_about_some_models_and_the_anchor(self, tree):
        benchmark = tree()
        assert count(benchmark, models=["anchor", "one"]) == (24, 24)
        assert count(benchmark, models=["one"]) == (0, 0)
        benchmark.anchor_id = Item.objects.first().responses.get(model__name="anchor").model_id
        benchmark.save()
        assert count(benchmark, models=["one"]) == (24, 24)
        with pytest.raises(BadInput, match="Unknown model: 'three'"):
            count(benchmark, models=["three"])

    def test_stratified_is_in_proportion(self, tree):
        benchmark = tree()
        plan = Plan(how="stratified", n=12, by="level")
        chosen = select_items(benchmark=benchmark, protocol="pair", plan=plan, seed=3)
        samples = Sample.objects.filter(pk__in={one.sample for one in chosen.candidates})
        tops = Counter(sample.capability.level if sample.capability else "" for sample in samples)
        assert tops in (Counter(P=6, Q=6), Counter(P=6, Q=5, **{"": 1}))

    def test_the_seed_decides_and_the_same_seed_decides_the_same(self, tree):
        benchmark = tree()

        def take(seed):
            plan = Plan(how="per-capability", n=1)
            return {c.item for c in select_items(benchmark=benchmark, protocol="pair", plan=plan, seed=seed).candidates}

        assert take(1) == take(1) != take(2)

    def test_a_list_of_keys_and_the_most_in_all(self, tree):
        benchmark = tree()
        assert count(benchmark, how="keys", keys=["s3", "s9", "s3"]) == (6, 2)
        assert count(benchmark, how="keys", keys=["s3", "s9"], most=4)[0] == 4
        with pytest.raises(BadInput, match="no sample 'x' and 1 more"):
            count(benchmark, how="keys", keys=["s3", "x", "y"])

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"how": "sorted"}, "Unknown way to choose"),
            ({"how": "per-capability"}, "how many samples"),
            ({"how": "stratified", "n": 0}, "how many samples"),
            ({"how": "stratified", "n": 3, "by": "weather"}, "spread by"),
            ({"how": "run"}, "Choose the run"),
            ({"how": "run", "run": 1, "reasons": ["odd"]}, "reason for doubt"),
            ({"how": "keys"}, "no sample keys"),
            ({"most": -1}, "most items"),
            ({"what": 1}, "has no field 'what'"),
        ],
    )
    def test_what_is_no_plan_is_said_in_words(self, given, words):
        with pytest.raises(BadInput, match=words):
            parse_plan(given)

    def test_the_campaign_keeps_how_its_items_were_chosen(self, tree):
        plan = Plan(how="per-capability", n=2, models=("anchor", "one"))
        campaign = make_campaign(name="x", benchmark=tree(), protocol="pair", plan=plan)
        assert campaign.plan == {"how": "per-capability", "n": 2, "models": ["anchor", "one"]}
        assert campaign.campaign_items.count() == 13
        fixed = make_campaign(name="y", benchmark=campaign.benchmark, protocol="pair", order="fixed")
        keys = list(fixed.campaign_items.order_by("position").values_list("item__sample__position", flat=True))
        assert keys == sorted(keys)

    def test_the_design_of_mllm_bench_is_252_items(self, pairs):
        """Appendix F.1: two samples of each of 42 capabilities, three models against LLaVA-v1.5-13B."""
        models = ["llava-v1.5-13b", "top", "middle", "bottom", "other"]
        benchmark = pairs(126, models=models)
        leaves = [Capability.objects.create(benchmark=benchmark, name=f"c{n}", path=f"c{n}") for n in range(42)]
        for sample in benchmark.samples.all():
            sample.capability = leaves[sample.position // 3]
            sample.save()
        benchmark.anchor = EvaluatedModel.objects.get(name=models[0])
        benchmark.save()
        # Of the pairs among the four, those with the anchor: 2 x 42 x 3.
        Item.objects.exclude(responses__model=benchmark.anchor).delete()
        assert count(benchmark, how="per-capability", n=2, models=models[1:4]) == (252, 84)


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=8), st.integers(0, 300))
def test_seats_in_proportion_add_up_and_never_exceed_a_stratum(sizes, n):
    seats = in_proportion(sizes, n)
    assert sum(seats.values()) == min(n, sum(sizes.values()))
    assert all(0 <= seats[name] <= size for name, size in sizes.items())


@db
class TestRuns:
    @pytest.fixture
    def run(self, pairs, annotators, now):
        """Six items: steady, no majority, unread, turned, another verdict than people, and not finished."""
        benchmark = pairs(6)
        judge = Judge.objects.create(name="j")
        settings = {"order": "both", "repeats": 2}
        run = Run.objects.create(
            judge=judge, benchmark=benchmark, protocol="pair", settings=settings, settings_hash="x"
        )
        items = list(Item.objects.order_by("pk"))
        said = [
            [("first", "first"), ("first", "first")],
            [("first", "first"), ("second", "second")],
            [("first", None), ("first", "first")],
            [("first", "second"), ("first", "second")],
            [("second", "second"), ("second", "second")],
            [("first", "second")],
        ]
        for item, repeats in zip(items, said, strict=True):
            RunItem.objects.create(run=run, item=item)
            for repeat, choices in enumerate(repeats):
                for order, choice in zip(("01", "10"), choices, strict=True):
                    status = "ok" if choice else "parse_failed"
                    Judgment.objects.create(
                        run=run, item=item, order=order, repeat=repeat, choice=choice, status=status
                    )
        campaign = make_campaign(name="people", benchmark=benchmark, protocol="pair", seed=1)
        (one,) = annotators(1)
        while (assignment := next_assignment(campaign=campaign, annotator=one, now=now)) is not None:
            choice = "left" if assignment.order == "01" else "right"
            submit_label(assignment=assignment, verdict={"choice": choice}, now=now)
        close_campaign(campaign=campaign, now=now)
        return run, [item.pk for item in items]

    def test_each_reason_finds_its_items(self, run):
        run, (_, unsteady, unread, turned, other, unfinished) = run
        found = doubts_of(run)
        assert found[unsteady] == {NO_MAJORITY, DIFFERS}
        assert found[unread] == {NO_VERDICT}
        assert found[turned] == {TURNED, DIFFERS}
        assert found[other] == {DIFFERS}
        assert unfinished not in found
        assert len(found) == 4

    def test_they_become_a_campaign_that_says_why(self, run):
        run, items = run
        plan = parse_plan({"how": "run", "run": run.pk, "reasons": [NO_MAJORITY, NO_VERDICT]})
        campaign = make_campaign(name="doubts", benchmark=run.benchmark, protocol="pair", plan=plan)
        places = campaign.campaign_items.order_by("item")
        assert [place.item_id for place in places] == items[1:3]
        assert places[0].why == f"no majority over the repeats (run {run.pk})"
        again = select_items(benchmark=run.benchmark, protocol="pair", plan=Plan(), seed=1)
        assert add_items(campaign=campaign, selection=again) == 4
        assert add_items(campaign=campaign, selection=again) == 0
        assert sorted(campaign.campaign_items.values_list("position", flat=True)) == list(range(6))

    def test_from_the_pages_of_a_run_what_is_in_doubt_goes_to_people(self, run, client):
        run, items = run
        client.force_login(User.objects.create_user("curator", role="curator"))
        page = flat(client.get(f"/judging/runs/{run.pk}/"))
        path = f"/campaigns/from/runs/{run.pk}/"
        assert f'href="{path}"' in page
        assert "4 items" in flat(client.get(path))
        few = make_campaign(
            name="few", benchmark=run.benchmark, protocol="pair", plan=parse_plan({"how": "all", "most": 1})
        )
        client.post(f"{path}add/", {"campaign": few.pk, "reasons": [NO_MAJORITY, NO_VERDICT]})
        assert set(items[1:3]) <= set(few.campaign_items.values_list("item", flat=True))

    def test_chosen_judgments_go_into_the_campaign_that_is_asked_for_next(self, run, client):
        run, items = run
        curator = User.objects.create_user("curator", role="curator")
        client.force_login(curator)
        assert 'name="judgment"' in flat(client.get("/judging/judgments/"))
        few = make_campaign(
            name="few", benchmark=run.benchmark, protocol="pair", plan=parse_plan({"how": "all", "most": 1})
        )
        drawn = few.campaign_items.get().item_id  # by the campaign's own seed
        others = [item for item in items if item != drawn][:2]
        chosen = list(Judgment.objects.filter(item__in=others).values_list("pk", flat=True))
        path = "/campaigns/from/judgments/"
        page = flat(client.post(path, {"judgment": chosen}))
        assert "8 judgments on 2 items" in page
        assert "few" in page
        assert few.campaign_items.count() == 1
        answer = flat(client.post(path, {"judgment": chosen, "campaign": few.pk}, follow=True))
        assert "2 items added to few" in answer
        assert set(others) <= set(few.campaign_items.values_list("item", flat=True))
        assert "No judgments selected" in flat(client.post(path))
        client.force_login(User.objects.create_user("reader", role="researcher"))
        assert 'name="judgment"' not in flat(client.get("/judging/judgments/"))

    def test_a_copy_has_the_items_and_people_and_no_labels(self, run):
        campaign = CampaignItem.objects.first().campaign
        campaign.campaign_items.filter(position=0).update(gold={"choice": "first"}, note="Because.")
        copied = copy_campaign(campaign=campaign, name="again")
        assert (copied.state, copied.seed != campaign.seed, copied.labels.count()) == ("draft", True, 0)
        assert copied.campaign_items.get(position=0).gold == {"choice": "first"}
        assert set(copied.campaign_items.values_list("taken", flat=True)) == {0}
        assert list(copied.members.all()) == list(campaign.members.all())
        campaign.refresh_from_db()
        assert campaign.labels.count() == 6

    def test_only_what_can_be_labelled_is_eligible(self, run):
        run, items = run
        Sample.objects.filter(items=items[0]).update(status="rejected")
        assert {one.item for one in candidates_for(benchmark=run.benchmark, protocol="pair")} == set(items[1:])


class TestCombining:
    def test_verdicts_on_one_item_become_one(self):
        assert combine_verdicts([{"choice": "first"}, {"choice": "undecided"}]) == {"choice": "first"}
        assert combine_verdicts([{"choice": "first"}, {"choice": "second"}]) == {"choice": "tie"}
        assert combine_verdicts([{"score": 3}, {"score": 4}]) == {"score": 3.5}
        assert combine_verdicts([{"option": "A"}, {"option": "B"}]) is None
        assert combine_verdicts([{"answer": False}]) == {"answer": False}
        assert combine_verdicts([{}]) is None
        assert mean_ranking([[[0], [1], [2]], [[1], [0], [2]]]) == [[0, 1], [2]]

    def test_a_tie_and_unable_to_decide_do_not_differ_and_scores_may_be_close(self):
        assert not differs({"choice": "tie"}, {"choice": "undecided"})
        assert differs({"choice": "tie"}, {"choice": "first"})
        assert not differs({"score": 3.5}, {"score": 4})
        assert differs({"score": 3}, {"score": 4})
        assert differs({"ranking": [[0], [1], [2]]}, {"ranking": [[2], [1], [0]]})
        assert not differs({"option": "A"}, {"choice": "first"})


@db
def test_a_campaign_of_yes_or_no_counts_items_that_ask_something_else():
    benchmark = benchmark_of(samples=4)
    asked = (
        "Is there a boat?",
        "Look at the quay. Are there two boats? Answer yes or no.",
        "图中有船吗?",
        "What needs his attention, and why?",
    )
    for sample, instruction in zip(benchmark.samples.order_by("position"), asked, strict=True):
        sample.instruction = instruction
        sample.save()
    settings = {"benchmark": benchmark, "plan": parse_plan({}), "seed": 1, "shows_criteria": False, "overlap": 1}
    assert size_of(protocol="yes-no", ballot={}, **settings).open_questions == 1
    assert size_of(protocol="score", ballot={}, **settings).open_questions == 0
