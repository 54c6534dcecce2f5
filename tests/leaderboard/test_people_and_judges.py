"""Agreement of all pairs, the ceiling, and the ranks of judges."""

import itertools
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from django.core.cache import cache
from django.utils import timezone

from accounts.models import User
from annotations.campaigns.actions import close_campaign, make_campaign
from annotations.models import Annotator, Assignment, Label
from bank import exposure
from bank.models import Sample
from judging.models import AnalysisRelease, Judgment, Run
from leaderboard import votes
from leaderboard.boards import seen
from leaderboard.boards.agreement.board import METRICS
from leaderboard.boards.judges.board import leave_one_out_majority
from leaderboard.boards.seen import judges
from leaderboard.view import scope_of
from stats.agreement import agreement, agreement_decided, cohen_kappa, pairwise_kappa
from stats.ranks import Place
from stats.results import DuplicateVerdict
from stats.verdicts import VERDICTS
from tests.leaderboard.conftest import PEOPLE, judgments, labels
from tests.markup import flat


@pytest.mark.parametrize("seed", range(5))
def test_pairwise_kappa_is_cohens_kappa_of_every_pair_with_its_interval(seed):
    rng = np.random.default_rng(seed)
    rows = [(who, item) for who in "abcdefg" for item in range(40) if rng.random() < 0.4]
    rows += [(who, item) for who in ("same", "also") for item in range(6)]
    frame = pd.DataFrame(rows, columns=["who", "item"])
    frame["verdict"] = np.where(
        frame["who"].isin(["same", "also"]), "tie", rng.choice(["first", "second", "tie", None], len(frame))
    )
    found = pairwise_kappa(annotator=frame["who"], item=frame["item"], verdict=frame["verdict"])
    given = {who: rows.dropna().set_index("item")["verdict"] for who, rows in frame.groupby("who")}
    by_pair = {(row.a, row.b): row for row in found.itertuples()}
    for a, b in itertools.combinations(sorted(given), 2):
        both = pd.concat([given[a], given[b]], axis=1, join="inner", keys=["a", "b"])
        if both.empty:
            assert (a, b) not in by_pair
            continue
        one = cohen_kappa(first=both["a"], second=both["b"], cluster=both.index)
        row = by_pair[a, b]
        assert row.n == one.n == len(both)
        if one.value is None:
            assert np.isnan(row.kappa)
        else:
            assert row.kappa == pytest.approx(one.value, abs=1e-12)
        if one.interval is None:
            assert np.isnan(row.low)
        else:
            assert (row.low, row.high) == pytest.approx((one.interval.low, one.interval.high), abs=1e-12)


def test_a_kappa_of_two_people_without_an_interval_says_why():
    found = pairwise_kappa(
        annotator=[who for who in "abc" for _ in range(12)],
        item=[*range(12), *range(12), *range(6, 18)],
        verdict=["first", "second"] * 6 * 2 + ["first", "tie"] * 6,
    ).set_index(["a", "b"])
    assert found.loc[("a", "b"), "reason"] == "a perfect value has no interval"
    assert found.loc[("a", "c"), "reason"] == "fewer than 8 groups: no interval"
    assert found["low"].isna().all()


def test_pairwise_kappa_refuses_two_labels_on_one_item():
    with pytest.raises(DuplicateVerdict):
        pairwise_kappa(annotator=["a", "a"], item=[1, 1], verdict=["first", "tie"])


@pytest.mark.django_db
class TestAgreement:
    def test_every_pair_stands_there_once_with_what_the_statistics_say(self, voted, board):
        rows = board("agreement")
        voters = [*PEOPLE, "majority", "dull", "keen"]
        pairs = {frozenset(pair) for pair in itertools.combinations(voters, 2)}
        assert {frozenset((row["a"], row["b"])) for row in rows} == pairs
        assert len(rows) == len(pairs) * len(METRICS)
        frame = pd.DataFrame(Label.objects.values_list("annotator__name", "item", "choice"), columns=["who", "i", "c"])
        by = {who: mine.set_index("i")["c"] for who, mine in frame.groupby("who")}
        for a, b in itertools.combinations(PEOPLE, 2):
            both = pd.concat([by[a], by[b]], axis=1, join="inner", keys=["a", "b"])
            whole = agreement(first=both["a"], second=both["b"], cluster=both.index)
            sided = agreement_decided(first=both["a"], second=both["b"], cluster=both.index)
            said = {row["metric"]: row for row in rows if {row["a"], row["b"]} == {a, b}}
            assert (said["agreement"]["agree"], said["agreement"]["n"]) == (whole.agree, len(both))
            assert said["agreement"]["value"] == pytest.approx(whole.share.value)
            assert (said["agreement_decided"]["agree"], said["agreement_decided"]["n"]) == (sided.agree, sided.share.n)

    def test_several_items_of_a_sample_widen_the_interval(self, voted, board):
        # 36 samples with three pairs each: they are clusters, and 36 of them are enough.
        row = next(r for r in board("agreement") if {r["a"], r["b"]} == {"majority", "keen"} and r["metric"] == "kappa")
        scope = scope_of(benchmark="grove")
        people = votes.of_people(scope).frame.merge(votes.of_runs(scope, votes.runs_of(scope, "keen")).frame, on="item")
        group = votes.pairs(scope)["group"].reindex(people["item"]).to_numpy()
        both = [people[f"choice_{side}"].replace("undecided", "tie") for side in "xy"]
        expected = cohen_kappa(first=both[0], second=both[1], cluster=group)
        assert row["value"] == pytest.approx(expected.value)
        assert (row["value_low"], row["value_high"]) == pytest.approx(
            (expected.interval.low, expected.interval.high), abs=0.03
        )

    def test_people_of_the_same_name_stay_two_people(self, brought, board):
        brought("labels", labels())
        one, other = Annotator.objects.order_by("pk")[:2]
        other.origin, other.name = "elsewhere", one.name
        other.save()
        names = {row["a"] for row in board("agreement")} | {row["b"] for row in board("agreement")}
        assert {f"{one.name} (grove)", f"{one.name} (elsewhere)"} <= names

    def test_somebody_called_majority_is_not_the_majority(self, brought, board):
        brought("labels", [row | {"annotator": row["annotator"].replace("Ben", "majority")} for row in labels()])
        rows = board("agreement")
        assert any({row["a"], row["b"]} == {"majority (grove)", "majority"} for row in rows)
        assert not any(row["a"] == row["b"] for row in rows)


@pytest.mark.django_db
class TestCeiling:
    @staticmethod
    def rows(*votes_of_items):
        """A long table: one string of letters an item, f, s, t or u for each person in turn."""
        words = dict(zip("fstu", VERDICTS, strict=True))
        rows = [(n, who, words[word]) for n, given in enumerate(votes_of_items) for who, word in enumerate(given)]
        return pd.DataFrame(rows, columns=["item", "annotator", "value"])

    def test_against_the_majority_leaves_the_labels_own_vote_out(self, brought):
        # ffs: each f meets {f, s} = a draw = tie; s meets {f, f} = first. f alone is compared with nobody.
        found = leave_one_out_majority(self.rows("ffs", "f"), "plurality")
        assert list(zip(found["judged"], found["value"], strict=True)) == [
            ("first", "tie"),
            ("first", "tie"),
            ("second", "first"),
        ]

    def test_the_board_gives_people_beside_judges(self, voted):
        board = judges(scope_of(benchmark="grove"))
        majority, each = (board.against[name].ceiling for name in ("majority", "individuals"))
        counts = Label.objects.values_list("item", flat=True)
        per_item = pd.Series(list(counts)).value_counts()
        assert majority["accuracy_with_tie"].n == int(per_item[per_item > 1].sum())
        assert each["agreement"].n == int((per_item * (per_item - 1) // 2).sum())
        for value in (*majority.values(), *each.values()):
            assert value.number.low <= value.number.value <= value.number.high
        assert each["accuracy_with_tie"].number.value == pytest.approx(each["agreement"].number.value)

    def test_one_label_an_item_gives_no_ceiling(self, brought):
        brought("labels", list(labels())[:1])
        against = judges(scope_of(benchmark="grove")).against
        assert [against[name].ceiling for name in ("majority", "individuals")] == [{}, {}]


@pytest.mark.django_db
class TestStanding:
    def test_the_better_judge_is_ranked_first_and_a_baseline_not_at_all(self, brought):
        brought("labels", labels())
        given = [("keen", 0.6, 2), ("dull", 9.0, 3), ("baseline-first", 50.0, 4)]
        brought("judgments", [row for name, noise, seed in given for row in judgments(name, noise=noise, seed=seed)])
        board = judges(scope_of(benchmark="grove"))
        runs = {row["judge"]: row["run"] for row in board.as_json()}
        standing = board.against["majority"].standing["accuracy_with_tie"]
        assert set(standing) == {runs["keen"], runs["dull"]}
        assert standing[runs["keen"]] == Place(rank=1, rank_low=1, rank_high=1, tier=1, best=True)
        assert standing[runs["dull"]].tier == 2

    def test_two_judges_with_the_same_verdicts_cannot_be_told_apart(self, brought):
        brought("labels", labels())
        twins = [*judgments("left", noise=1.5, seed=2), *judgments("right", noise=1.5, seed=2)]
        brought("judgments", twins)
        standing = judges(scope_of(benchmark="grove")).against["majority"].standing
        for metric in standing.values():
            assert {place.tier for place in metric.values()} == {1}

    def test_levels_add_up_to_the_whole(self, voted):
        board = judges(scope_of(benchmark="grove"))
        levels = board.against["majority"].cells["accuracy_with_tie"]
        for row in board.as_json():
            if (row["metric"], row["reference"], row["source_dataset"]) == ("accuracy_with_tie", "majority", "grove"):
                parts = levels[row["run"]].values()
                assert sum(part.n for part in parts) == row["n"]
                assert sum(part.n * part.value for part in parts) / row["n"] == pytest.approx(row["value"])


@pytest.mark.django_db
def test_a_kept_board_is_made_again_when_anything_under_it_changes(voted):
    scope = scope_of(benchmark="grove")
    first = seen.models(scope)
    assert seen.models(scope).computed_at == first.computed_at
    label = Label.objects.exclude(choice="tie").first()
    changes = [
        lambda: Label.objects.filter(pk=label.pk).update(excluded=True),
        lambda: label.item.sample.__class__.objects.filter(pk=label.item.sample_id).update(status="rejected"),
        lambda: scope.benchmark.samples.filter(key="s09").update(
            capability=scope.benchmark.capabilities.get(path="Perception")
        ),
        lambda: setattr(scope.benchmark, "majority", "mllm-bench"),
        lambda: Label.objects.filter(item__sample__key="s20").first().delete(),
    ]
    keys = {first.key}
    for change in changes:
        change()
        keys.add(seen.models(scope).key)
    assert len(keys) == len(changes) + 1


def review(campaign, places, said, *, of=lambda n: 3):
    """So many people review each verdict as ``said(n, place, who)`` says, and the campaign ends."""
    now = timezone.now()
    for n, place in enumerate(places):
        for who in range(of(n)):
            annotator = Annotator.objects.get_or_create(name=f"reviewer-{who}", pseudonym=f"reviewer-{who}")[0]
            held = Assignment.objects.create(
                campaign_item=place,
                annotator=annotator,
                order="0",
                slot=who,
                state="submitted",
                leased_at=now,
                lease_until=now,
            )
            Label.objects.create(
                assignment=held,
                campaign=campaign,
                item=place.item,
                annotator=annotator,
                created_at=now,
                changed_at=now,
                **said(n, place, who),
            )
    close_campaign(campaign=campaign, now=now)  # reviews of what is still labelled blind are not counted


@pytest.mark.django_db
def test_two_runs_are_compared_by_what_reviewers_found_in_the_verdicts_on_the_same_items(brought, grove, client):
    """MLLM-as-a-Judge, Table 7: hallucinations with and without reasoning step by step."""
    for name in ("keen", "calm"):
        brought("judgments", list(judgments(name, noise=0.6, seed=2))[:160])
    brought("labels", labels())
    campaign = make_campaign(name="reviews", benchmark=grove, protocol="review", overlap=3)
    places = list(campaign.campaign_items.select_related("reviewed__run__judge", "item").order_by("pk"))
    hallucinating = {"keen": 2, "calm": 4}  # of how many items one

    def said(n, place, who):
        judge = place.reviewed.run.judge.name
        return {"agree": True, "hallucination": place.item_id % hallucinating[judge] == 0, "grade": 3}

    review(campaign, places, said)
    runs = {run.judge.name: run.pk for run in Run.objects.select_related("judge")}
    rows = client.get(f"/api/v1/leaderboards/compare/?benchmark=grove&a=run-{runs['keen']}&b=run-{runs['calm']}").json()
    (row,) = [row for row in rows if row["measure"].startswith("Hallucinates")]
    items = {place.item_id for place in places}
    shares = [sum(pk % of == 0 for pk in items) / len(items) for of in (2, 4)]
    assert [row["a"], row["b"]] == pytest.approx(shares)
    assert row["difference"] == pytest.approx(shares[0] - shares[1])
    assert row["n"] == len(items)
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    page = client.get(f"/leaderboards/grove/judges/compare/?a=run-{runs['keen']}&b=run-{runs['calm']}").content.decode()
    assert "Hallucinates, by consensus of three reviews" in page


@pytest.mark.django_db
def test_reviews_of_verdicts_count_by_the_consensus_of_three_and_by_data_set(brought, grove, board, client, people):
    brought("judgments", list(judgments("keen", noise=0.6, seed=2))[:96])
    brought("labels", labels())
    campaign = make_campaign(name="reviews", benchmark=grove, protocol="review", overlap=3)
    places = list(campaign.campaign_items.select_related("reviewed", "item").order_by("pk"))
    grades = {place.reviewed_id: [] for place in places}

    def said(n, place, who):
        grade = 1 + (n + who) % 5
        grades[place.reviewed_id].append(grade)
        return {"agree": who < n % 4, "hallucination": n % 2 == 0, "grade": grade}

    review(campaign, places, said, of=lambda n: 2 if n == 0 else 3)  # one verdict has two reviews alone
    (row,) = board("reviews")
    of_three = range(1, len(places))
    assert (row["judge"], row["verdicts"], row["reviews"]) == ("keen", len(places), 3 * len(places) - 1)
    assert row["agree"] == pytest.approx(sum(n % 4 >= 2 for n in of_three) / len(of_three))
    assert row["hallucination"] == pytest.approx(sum(n % 2 == 0 for n in of_three) / len(of_three))
    assert row["agree_n"] == len(of_three)
    means = {verdict: np.mean(given) for verdict, given in grades.items()}
    assert row["grade"] == pytest.approx(np.mean(list(means.values())))
    of_sample = {}
    for place in places:
        of_sample.setdefault(place.item.sample_id, []).append(means[place.reviewed_id])
    away = [np.abs(np.array(of) - np.mean(of)).mean() for of in of_sample.values() if len(of) > 1]
    assert row["deviation"] == pytest.approx(np.mean(away))
    assert row["deviation_low"] <= row["deviation"] <= row["deviation_high"]
    assert client.get("/api/v1/leaderboards/reviews/?benchmark=grove").json() == [row]
    shown = client.get("/leaderboards/grove/judges/").content.decode()
    assert f"{100 * row['agree']:.1f}" in shown[shown.index('id="reviews"') :]


PREFERRED = [  # what three people say of the two analyses of one item, and what that is worth to the first
    (("first", "first", "second"), 1.0),
    (("second", "second", "tie"), 0.0),
    (("tie", "tie", "first"), 0.5),
    (("first", "second", "tie"), 0.5),
    (("second", "second", "second"), 0.0),
]


@pytest.mark.django_db
def test_of_two_judges_whose_analyses_people_compared_the_preferred_share_counts_ties_half(
    brought, grove, board, client, client_of
):
    for name in ("keen", "calm"):
        brought("judgments", list(judgments(name, noise=0.6, seed=2))[:160])
    brought("labels", labels())
    release_all()
    campaign = make_campaign(name="compared", benchmark=grove, protocol="compare-analyses", overlap=3)
    places = list(campaign.campaign_items.select_related("reviewed__run__judge", "item__sample").order_by("pk"))
    assert len(places) == 80  # both judges in both orders: once an item
    turned = {"first": "second", "second": "first", "tie": "tie"}

    def said(n, place, who):
        choice = PREFERRED[n % 5][0][who]
        return {"choice": choice if place.reviewed.run.judge.name == "calm" else turned[choice], "comment": "So."}

    review(campaign, places, said)
    worth = [PREFERRED[n % 5][1] for n in range(80)]
    ties = [value == 0.5 for value in worth]
    (row,) = board("analyses")
    assert (row["a"], row["b"], row["kind"], row["items"], row["labels"]) == ("calm", "keen", "pair", 80, 240)
    assert row["preferred"] == pytest.approx(sum(worth) / 80) == pytest.approx(0.4)
    assert row["ties"] == pytest.approx(sum(ties) / 80) == pytest.approx(0.4)
    groups = {place.item.sample.key for place in places}
    assert (row["preferred_n"], row["preferred_groups"]) == (80, len(groups))
    assert row["preferred_low"] < 0.4 < row["preferred_high"]
    by_hand = clustered(worth, [place.item.sample.key for place in places])
    assert row["preferred_se"] == pytest.approx(by_hand)
    assert client.get("/api/v1/leaderboards/analyses/?benchmark=grove").json() == [row]
    assert client.get("/api/v1/leaderboards/analyses/?benchmark=grove&source=keen").json() == [row]
    cells = client.get("/api/v1/leaderboards/analyses/?benchmark=grove&format=csv").content.decode().splitlines()
    assert cells[0].startswith("a,a_run,b,b_run,kind,preferred,preferred_low")
    shown = client.get("/leaderboards/grove/judges/").content.decode()
    panel = shown[shown.index('id="analyses"') :].partition("</section>")[0]
    assert "calm against keen" in panel
    assert "40.0" in panel
    assert board("reviews") == []  # nobody reviewed a verdict by itself
    Run.objects.filter(judge__name="keen").update(held=exposure.UNKNOWN)
    with changed_to_closed(grove):
        withheld = "/api/v1/leaderboards/analyses/?benchmark=grove"
        assert client.get(withheld).json() == []  # what withholds one of the two withholds both
        assert client_of("curator").get(withheld).json()[0]["items"] == 80
    votes_before = board("models")
    Label.objects.filter(campaign=campaign).delete()
    assert board("models") == votes_before  # nor voted between answers


@contextmanager
def changed_to_closed(benchmark):
    """While an answer key of each sample is closed."""
    for closed in (exposure.KEYED, exposure.NOTHING):
        Sample.objects.filter(benchmark=benchmark).update(closed=closed)
        cache.clear()
        if closed:
            yield


def clustered(values, groups):
    """The standard error of a mean whose rows share groups (Miller 2024): G/(G-1) sum of the groups' sums squared."""
    mean, sums = np.mean(values), {}
    for value, group in zip(values, groups, strict=True):
        sums[group] = sums.get(group, 0.0) + value - mean
    count = len(sums)
    return np.sqrt(count / (count - 1) * sum(each**2 for each in sums.values())) / len(values)


def release_all():
    """Two people release every analysis."""
    one, two = (User.objects.create_user(name, role="curator") for name in ("release-one", "release-two"))
    now = timezone.now()
    AnalysisRelease.objects.bulk_create(
        AnalysisRelease(
            judgment=judgment,
            run_id=judgment.run_id,
            proposed_by=one,
            proposed_at=now,
            confirmed_by=two,
            confirmed_at=now,
        )
        for judgment in Judgment.objects.all()
    )


def test_a_judge_with_few_verdicts_is_provisional_and_the_page_says_so(brought, client):
    brought("labels", [row for row in labels() if row["sample"] < "s12"])
    rows = list(judgments("keen", noise=0.6, seed=2))
    brought("judgments", [*rows, *(row | {"judge": "newcomer"} for row in rows if row["sample"] < "s05")])
    page = flat(client.get("/leaderboards/grove/judges/"))
    newcomer, keen = (page[page.index(f">{judge}</a>") :].partition("</tr>")[0] for judge in ("newcomer", "keen"))
    assert ">provisional</span>" in newcomer
    assert "provisional" not in keen


def test_a_number_over_several_data_sets_says_that_it_is_their_mean(voted, board, client):
    pks = list(Sample.objects.order_by("pk").values_list("pk", flat=True))
    Sample.objects.filter(pk__in=pks[:10]).update(source="Small")
    Sample.objects.filter(pk__in=pks[10:]).update(source="Large")
    rows = [row for row in board("judges") if row["judge"] == "dull" and row["reference"] == "majority"]
    value = {row["source_dataset"]: row for row in rows if row["metric"] == "accuracy_with_tie"}
    assert value["all"]["value"] == pytest.approx((value["Small"]["value"] + value["Large"]["value"]) / 2)
    assert value["all"]["value_method"].startswith("mean over 2 data sets, MOVER over parts, wilson")
    assert not value["Large"]["value_method"].startswith("mean over")
    said = "the mean over 2 data sets, each counting alike"
    assert said in client.get("/leaderboards/grove/judges/").text


def test_every_number_about_people_against_people_has_an_interval_or_a_reason(voted, board):
    rows = board("ceiling")
    assert {row["level"] for row in rows} > {""}
    for row in rows:
        assert row["value_n"] or row["value"] is None
        assert row["value_low"] is not None or row["notes"]
