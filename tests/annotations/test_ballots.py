"""Every kind of label: what is taken, how it is stored, and that it comes back as it was given."""

import hashlib
import json
import random

import pytest
from django.test import Client

from annotations import ballots
from annotations.assignment import material
from annotations.assignment.leases import next_assignment
from annotations.ballots import BadSettings, BadVerdict, Component, Material
from annotations.campaigns.actions import make_campaign
from annotations.labels.actions import change_label, submit_label
from annotations.models import Label, LabelRevision
from bank.criteria import CriteriaAccess
from bank.errors import BadInput
from bank.models import Benchmark, Item, Response
from bank.samples.items import make_items, plan_items
from judging.models import Judgment
from judging.protocols import Option
from tests.annotations.kinds import ANALYSIS, SECRET, WEIGHTS, benchmark_of, campaign_of, judged
from tests.hidden import change, criteria, show
from tests.markup import flat

SCALE = [{"value": 0, "label": "No"}, {"value": 0.5}, {"value": 10, "label": "Yes", "about": "All of it."}]
PARTS = tuple(Component(key, "", weight) for key, weight in WEIGHTS.items())
OPTIONS = (Option("A", "B", "two"), Option("B", "C", "three"), Option("C", "A", "one"))


def points(*given):
    return [{"component": key, "points": value} for key, value in zip(WEIGHTS, given, strict=True)]


class TestReading:
    @pytest.mark.parametrize(
        ("protocol", "settings", "about", "sent", "stored"),
        [
            ("pair", {}, Material("10"), {"choice": "left"}, {"choice": "second"}),
            (
                "pair",
                {"choices": ["left", "right", "undecided"]},
                Material("01", 2),
                {"choice": "undecided", "situation": 2},
                {"choice": "undecided", "situation": 2},
            ),
            (
                "pair-graded",
                {},
                Material("10", 2),
                {"choice": "left", "preference": 0.75},
                {"choice": "second", "preference": 0.25},
            ),
            ("score", {}, Material("0"), {"score": 4}, {"score": 4}),
            ("score", {"scale": SCALE}, Material("0"), {"score": 0.5}, {"score": 0.5}),
            ("batch", {}, Material("201", 3), {"ranking": [0, 2, 1]}, {"ranking": [[2], [1], [0]]}),
            ("batch", {"ties": True}, Material("201", 3), {"ranking": [[2, 0], 1]}, {"ranking": [[1, 2], [0]]}),
            (
                "components",
                {},
                Material("0", components=PARTS),
                {"parts": points(4, 1.25, 0)},
                {"parts": {"length": 4, "mention": 1.25, "genre": 0}, "score": 5.25},
            ),
            ("choice-extraction", {}, Material("0", options=OPTIONS), {"option": "A"}, {"option": "B"}),
            ("choice-extraction", {}, Material("0", options=OPTIONS), {"option": "X"}, {"option": "X"}),
            ("yes-no", {}, Material("0"), {"answer": False}, {"answer": False}),
            ("label", {"categories": ["sea", "river"]}, Material("0"), {"option": "river"}, {"option": "river"}),
            ("label", {"categories": ["sea", "X"]}, Material(""), {"option": "X"}, {"option": "X"}),
            (
                "review",
                {},
                Material("01", 2, length=50),
                {"agree": True, "grade": 2, "hallucination": True, "spans": [[10, 20], [0, 3], [15, 30]]},
                {"agree": True, "grade": 2, "hallucination": True, "spans": [[0, 3], [10, 30]]},
            ),
            ("review", {}, Material("01", 2), {"agree": False}, {"agree": False}),
            ("compare-analyses", {}, Material("10", 2, length=9), {"choice": "left"}, {"choice": "second"}),
            ("compare-analyses", {}, Material("01", 2), {"choice": "tie"}, {"choice": "tie"}),
        ],
    )
    def test_a_verdict_is_stored_in_canonical_terms_and_shown_as_it_was_given(
        self, protocol, settings, about, sent, stored
    ):
        ballot = type(ballots.get(protocol))(settings)
        columns = ballot.parse(sent, about)
        assert {name: value for name, value in columns.items() if value is not None} == stored
        again = ballot.parse(ballot.present(columns, about), about)
        assert again == columns

    @pytest.mark.parametrize(
        ("protocol", "about", "sent", "field"),
        [
            ("pair", Material("01", 2), {"choice": "undecided"}, "choice"),
            ("pair-graded", Material("01", 2), {"preference": 0.6}, "preference"),
            ("pair-graded", Material("01", 2), {"choice": "left"}, "preference"),
            ("pair-graded", Material("01", 2), {"choice": "right", "preference": 1}, "choice"),
            ("score", Material("0"), {"score": 6}, "score"),
            ("score", Material("0"), {"score": 3.5}, "score"),
            ("score", Material("0"), {"score": True}, "score"),
            ("score", Material("0"), {"score": "3"}, "score"),
            ("score", Material("0"), {"choice": "left", "score": 3}, "choice"),
            ("batch", Material("012", 3), {"ranking": [0, 1]}, "ranking"),
            ("batch", Material("012", 3), {"ranking": [0, 1, 1]}, "ranking"),
            ("batch", Material("012", 3), {"ranking": [[0, 1], 2]}, "ranking"),
            ("batch", Material("012", 3), {"ranking": [0, 1, True]}, "ranking"),
            ("batch", Material("012", 3), {"ranking": "012"}, "ranking"),
            ("components", Material("0", components=PARTS), {"parts": points(4.1, 0, 0)}, "parts"),
            ("components", Material("0", components=PARTS), {"parts": points(-1, 0, 0)}, "parts"),
            ("components", Material("0", components=PARTS), {"parts": points(float("nan"), 0, 0)}, "parts"),
            ("components", Material("0", components=PARTS), {"parts": points(1, 1, 1)[:2]}, "parts"),
            ("components", Material("0", components=PARTS), {"parts": points(1, 1, 1) * 2}, "parts"),
            ("components", Material("0"), {"parts": []}, "parts"),
            ("choice-extraction", Material("0", options=OPTIONS), {"option": "D"}, "option"),
            ("yes-no", Material("0"), {"answer": "yes"}, "answer"),
            ("yes-no", Material("0"), {}, "answer"),
            ("review", Material("01", 2, length=9), {"agree": True}, "grade"),
            ("review", Material("01", 2, length=9), {"agree": True, "grade": 6}, "grade"),
            ("review", Material("01", 2), {"agree": True, "grade": 3}, "grade"),
            ("compare-analyses", Material("01", 2, length=9), {"choice": "undecided", "situation": 1}, "situation"),
            ("compare-analyses", Material("01", 2, length=9), {"choice": "undecided"}, "choice"),
            ("compare-analyses", Material("01", 2, length=9), {"agree": True, "choice": "left"}, "agree"),
            ("compare-analyses", Material("01", 2, length=0), {"choice": "left"}, "choice"),
            (
                "review",
                Material("01", 2, length=9),
                {"agree": True, "grade": 3, "hallucination": True, "spans": [[3, 10]]},
                "spans",
            ),
            (
                "review",
                Material("01", 2, length=9),
                {"agree": True, "grade": 3, "hallucination": False, "spans": [[3, 5]]},
                "spans",
            ),
        ],
    )
    def test_what_a_protocol_does_not_take_is_refused_by_field(self, protocol, about, sent, field):
        with pytest.raises(BadVerdict) as caught:
            ballots.get(protocol).parse(sent, about)
        assert caught.value.field == field

    @pytest.mark.parametrize("seed", range(40))
    def test_any_ranking_in_any_order_comes_back(self, seed):
        rng = random.Random(seed)
        order, ranked = rng.sample(range(5), 5), rng.sample(range(5), 5)
        joined = [rng.random() < 0.4 for _ in ranked]
        groups = []
        for answer, join in zip(ranked, joined, strict=True):
            if join and groups:
                groups[-1].append(answer)
            else:
                groups.append([answer])
        ballot = type(ballots.get("batch"))({"ties": True})
        about = Material("".join(map(str, order)), answers=5)
        columns = ballot.parse({"ranking": groups}, about)
        assert columns["ranking"] == [sorted(order[answer] for answer in group) for group in groups]
        assert ballot.present(columns, about)["ranking"] == [sorted(group) for group in groups]

    @pytest.mark.parametrize(
        ("protocol", "settings"),
        [
            ("pair", {"choices": ["left"]}),
            ("pair", {"choices": ["left", "right", "both"]}),
            ("pair", {"ties": True}),
            ("score", {"scale": [1]}),
            ("score", {"scale": [1, 1]}),
            ("score", {"scale": [{"value": "1"}, 2]}),
            ("score", {"scale": {"min": 0, "max": 10, "step": 3}}),
            ("score", {"scale": {"min": 0, "max": 100}}),
            ("score", {"scale": {"min": 5, "max": 1}}),
            ("score", {"scale": {"min": 0, "max": 1, "marks": [{"value": 2}]}}),
            ("components", {"weight": 0}),
            ("components", {"weights": {"length": "4"}}),
            ("batch", {"ties": "yes"}),
            ("label", {}),
            ("label", {"categories": ["sea"]}),
            ("label", {"categories": ["sea", "Sea"]}),
            ("label", {"categories": ["sea", "river"], "question": None}),
            ("review", {"confidence": 1}),
        ],
    )
    def test_settings_that_a_protocol_does_not_take(self, protocol, settings):
        with pytest.raises(BadSettings):
            ballots.get(protocol).clean_settings(settings)


@pytest.mark.django_db
class TestCampaigns:
    def test_the_scale_is_fixed_when_the_campaign_is_made(self, now):
        benchmark = benchmark_of()
        benchmark.score_scale = [{"value": 2, "label": "Fine"}, {"value": 0, "label": "Not"}]
        benchmark.save()
        campaign, annotator = campaign_of("score", benchmark=benchmark)
        Benchmark.objects.update(score_scale=[])
        held = next_assignment(campaign=campaign, annotator=annotator, now=now)
        with pytest.raises(BadVerdict, match="0, 2"):
            submit_label(assignment=held, verdict={"score": 1}, now=now)
        assert submit_label(assignment=held, verdict={"score": 2}, now=now).label.score == 2

    @pytest.mark.parametrize(("shown_to", "criteria", "items"), [("public", False, 2), ("campaign", True, 2)])
    def test_components_are_those_that_annotators_may_see(self, shown_to, criteria, items):
        campaign, _ = campaign_of("components", benchmark=benchmark_of(shown_to=shown_to), shows_criteria=criteria)
        assert campaign.campaign_items.count() == items

    @pytest.mark.parametrize(("shown_to", "criteria"), [("staff", True), ("campaign", False)])
    def test_a_sample_with_hidden_components_is_not_given_out(self, shown_to, criteria):
        with pytest.raises(BadInput, match="weighted components"):
            campaign_of("components", benchmark=benchmark_of(shown_to=shown_to), shows_criteria=criteria)

    def test_one_hidden_component_keeps_the_whole_sample_back(self):
        benchmark = benchmark_of()
        show("staff", criteria("mention", sample__key="s1"))
        campaign, _ = campaign_of("components", benchmark=benchmark)
        assert [place.item.sample.key for place in campaign.campaign_items.all()] == ["s0"]

    def test_a_campaign_says_what_parts_are_worth_only_where_the_benchmark_does_not(self, now):
        benchmark = benchmark_of()
        change(criteria("mention", "genre"), weight=None)
        with pytest.raises(BadInput, match="weighted components"):
            campaign_of("components", benchmark=benchmark)
        own = {"weight": 2, "weights": {"genre": 5, "length": 9}}
        campaign, annotator = campaign_of("components", benchmark=benchmark, ballot=own)
        held = next_assignment(campaign=campaign, annotator=annotator, now=now)
        parts = [{"component": key, "points": points} for key, points in (("length", 4), ("mention", 2), ("genre", 5))]
        with pytest.raises(BadVerdict, match="0 to 4"):
            submit_label(assignment=held, verdict={"parts": [parts[0] | {"points": 9}, *parts[1:]]}, now=now)
        assert submit_label(assignment=held, verdict={"parts": parts}, now=now).label.score == 10

    @pytest.mark.parametrize("hide", ["split", "baseline"])
    def test_verdicts_that_only_staff_may_see_are_not_reviewed(self, hide):
        benchmark = benchmark_of()
        judgment = judged(benchmark)
        if hide == "split":
            benchmark.samples.update(split="test")
            Benchmark.objects.update(hidden_splits=["test"])
        else:
            judgment.run.judge.baseline = "criteria-overlap"
            judgment.run.judge.save()
        with pytest.raises(BadInput, match="no judge"):
            make_campaign(name="x", benchmark=benchmark, protocol="review")

    def test_pictures_are_labelled_by_themselves_with_categories_that_the_campaign_sets(self, now):
        benchmark = benchmark_of()
        Item.objects.filter(sample__benchmark=benchmark, kind="score").delete()
        make_items(plan_items(kind="score", benchmark=benchmark, bare=True))
        with pytest.raises(BadInput, match="categories: name 2 to 100"):
            make_campaign(name="x", benchmark=benchmark, protocol="label")
        campaign, annotator = campaign_of("label", benchmark=benchmark)
        held = next_assignment(campaign=campaign, annotator=annotator, now=now)
        with pytest.raises(BadVerdict, match="harbour, river"):
            submit_label(assignment=held, verdict={"option": "lake"}, now=now)
        label = submit_label(assignment=held, verdict={"option": "harbour"}, now=now).label
        assert (label.option, label.item.places.count()) == ("harbour", 0)

    def test_extraction_needs_options_and_says_so(self):
        benchmark = benchmark_of()
        benchmark.samples.update(options={})
        with pytest.raises(BadInput, match="has options"):
            make_campaign(name="x", benchmark=benchmark, protocol="choice-extraction")


@pytest.fixture
def room(db, now):
    """``room(protocol)`` gives an open assignment and its annotator's signed-in client."""

    def make(protocol, **options):
        campaign, annotator = campaign_of(protocol, **options)
        client = Client()
        client.force_login(annotator.person)
        return campaign, next_assignment(campaign=campaign, annotator=annotator, now=now), client

    return make


FORMS = {
    "pairwise-criteria": ({"choice": "undecided", "situation": "1"}, {"choice": "undecided", "situation": 1}),
    "pair": ({"choice": "tie"}, {"choice": "tie"}),
    "pair-graded": ({"preference": "0.5"}, {"choice": "tie", "preference": 0.5}),
    "score": ({"score": "5"}, {"score": 5}),
    "components": ({"points": ["4", "2,5", "0.25"]}, {"parts": {"length": 4, "mention": 2.5, "genre": 0.25}}),
    "choice-extraction": ({"option": "C"}, {"option": "C"}),
    "yes-no": ({"answer": "no"}, {"answer": False}),
    "label": ({"option": "river"}, {"option": "river"}),
    "review": ({"agree": "no", "grade": "2", "hallucination": "no"}, {"agree": False, "grade": 2}),
    "compare-analyses": ({"choice": "tie"}, {"choice": "tie"}),
}


class TestPages:
    @pytest.mark.parametrize("protocol", FORMS)
    def test_a_form_labels_it_and_back_shows_what_was_given(self, room, protocol):
        _, held, client = room(protocol)
        sent, stored = FORMS[protocol]
        here = f"/annotate/assignments/{held.pk}/"
        assert client.get(here).status_code == 200
        draft = client.post(f"{here}draft/", sent)
        assert draft.status_code == 200
        held.refresh_from_db()
        assert held.draft
        answer = client.post(f"{here}submit/", sent | {"key": "k", "comment": "so"})
        assert answer.status_code == 302, flat(answer)
        label = Label.objects.get()
        assert {name: getattr(label, name) for name in stored} == stored
        html = flat(client.get(here))
        for name, value in sent.items():
            if name == "points":
                assert all(f'value="{each}"' in html for each in ("4", "2.5", "0.25"))
            else:
                (input_,) = [part for part in html.split("<input")[1:] if f'name="{name}" value="{value}"' in part]
                assert " checked" in input_.split(">")[0]

    @pytest.mark.parametrize("protocol", FORMS)
    def test_an_empty_form_comes_back_with_what_is_missing(self, room, protocol):
        _, held, client = room(protocol)
        client.get(f"/annotate/assignments/{held.pk}/")
        answer = client.post(f"/annotate/assignments/{held.pk}/submit/", {"key": "k", "comment": "kept"})
        assert answer.status_code == 400
        assert "kept</textarea>" in flat(answer)
        assert not Label.objects.exists()

    def test_places_make_a_ranking_in_the_order_that_was_shown(self, room):
        _, held, client = room("batch", ballot={"ties": True})
        here = f"/annotate/assignments/{held.pk}/"
        places = {f"place-{answer}": place for answer, place in enumerate("3114")}
        assert client.post(f"{here}submit/", places | {"key": "k"}).status_code == 302
        order = [int(digit) for digit in held.order]
        assert Label.objects.get().ranking == [sorted([order[1], order[2]]), [order[0]], [order[3]]]
        html = flat(client.get(here))
        assert [html.index(f'data-answer="{answer}"') for answer in (1, 2, 0, 3)] == sorted(
            html.index(f'data-answer="{answer}"') for answer in range(4)
        )

    def test_two_answers_at_one_place_are_refused_without_ties(self, room):
        _, held, client = room("batch")
        places = {f"place-{answer}": place for answer, place in enumerate("3114")}
        answer = client.post(f"/annotate/assignments/{held.pk}/submit/", places)
        assert answer.status_code == 400
        assert "no ties" in flat(answer)

    def test_confidence_is_asked_where_the_campaign_wants_it(self, room):
        _, held, client = room("pair", ballot={"confidence": True})
        here = f"/annotate/assignments/{held.pk}/"
        assert "How sure are you?" in flat(client.get(here))
        client.post(f"{here}submit/", {"choice": "left", "confidence": "0.75", "key": "k"})
        assert Label.objects.get().confidence == 0.75
        assert '<option value="0.75" selected>' in flat(client.get(here))

    def test_options_stand_as_the_model_saw_them(self, room):
        benchmark = benchmark_of(samples=1)
        Response.objects.update(option_order=["B", "C", "A"])
        _, held, client = room("choice-extraction", benchmark=benchmark)
        html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
        assert html.index("<dt>A</dt>") < html.index("two boats") < html.index("<dt>B</dt>")
        client.post(f"/annotate/assignments/{held.pk}/submit/", {"option": "A", "key": "k"})
        assert Label.objects.get().option == "B"

    def test_reading_components_for_a_campaign_is_logged_and_public_ones_need_no_log(self, room):
        _, held, client = room("components", benchmark=benchmark_of(shown_to="campaign"), shows_criteria=True)
        before = CriteriaAccess.objects.count()
        html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
        assert "About mention." in html
        assert SECRET not in html
        assert CriteriaAccess.objects.count() == before + 1
        client.post(f"/annotate/assignments/{held.pk}/submit/", {"points": ["1", "1", "1"], "key": "k"})
        assert CriteriaAccess.objects.count() == before + 1


class TestReviews:
    def test_the_annotator_sees_the_judges_order_and_no_hidden_criterion(self, room):
        _, held, client = room("review")
        assert held.order == Judgment.objects.get().order == "10"
        html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
        assert "Answer 1 is better" in html  # "second" in canonical order
        assert "Answer1 counts the boats." in html
        assert "seven grey herons" not in html
        assert "some-judge" not in html
        assert CriteriaAccess.objects.filter(how="redaction", who=held.annotator.person).count() == 1

    def test_spans_speak_of_the_text_as_displayed_whose_hash_is_kept(self, room):
        _, held, client = room("review")
        here = f"/annotate/assignments/{held.pk}/"
        client.get(here)
        held.refresh_from_db()
        text = material.shown_material(held, ballots.of(held.campaign_item.campaign)).reviews[0].analysis
        assert hashlib.sha256(text.encode()).hexdigest() == held.displayed_sha256
        start = text.index("a red lighthouse")
        span = [start, start + len("a red lighthouse")]
        sent = {"agree": "yes", "grade": "3", "hallucination": "yes", "spans": json.dumps([span]), "key": "k"}
        assert client.post(f"{here}submit/", sent).status_code == 302
        label = Label.objects.get()
        assert label.spans == [span]
        assert text[slice(*label.spans[0])] == "a red lighthouse"
        assert label.displayed_sha256 == held.displayed_sha256
        too_far = sent | {"spans": json.dumps([[0, len(text) + 1]]), "editing": "1"}
        assert client.post(f"{here}submit/", too_far).status_code == 400

    def test_without_analyses_only_agreement_is_asked(self, room):
        _, held, client = room("review", ballot={"analyses": False})
        here = f"/annotate/assignments/{held.pk}/"
        html = flat(client.get(here))
        assert "counts the boats" not in html
        assert 'name="grade"' not in html
        assert client.post(f"{here}submit/", {"agree": "no", "key": "k"}).status_code == 302
        assert Label.objects.get().grade is None

    def test_of_an_analysis_that_is_not_released_only_the_verdict_is_shown_and_asked_about(self, room):
        benchmark = benchmark_of()
        judged(benchmark, released=False)
        _, held, client = room("review", benchmark=benchmark)
        here = f"/annotate/assignments/{held.pk}/"
        html = flat(client.get(here))
        assert "counts the boats" not in html
        assert "not released" in html
        assert 'name="grade"' not in html
        assert not CriteriaAccess.objects.filter(how="redaction").exists()
        assert client.post(f"{here}submit/", {"agree": "no", "key": "k"}).status_code == 302

    def test_making_such_a_campaign_says_how_many_analyses_are_released(self, client_of):
        benchmark = benchmark_of()
        judged(benchmark)
        judged(benchmark, order="01", released=False)
        form = {"benchmark": benchmark.pk, "protocol": "review", "overlap": 1, "who": "everybody", "asked": 1}
        answer = client_of("curator").post("/campaigns/count/", form | {"analyses": "on"})
        assert "1 of 2 analyses are released" in flat(answer)
        assert "are released" not in flat(client_of("curator").post("/campaigns/count/", form))

    def test_two_verdicts_on_one_item_are_two_things_to_review(self, room):
        benchmark = benchmark_of()
        judged(benchmark)
        judged(benchmark, order="01")
        campaign, _ = campaign_of("review", benchmark=benchmark)
        assert campaign.campaign_items.values("item").distinct().count() == 1
        assert campaign.campaign_items.count() == 2


@pytest.mark.django_db
def test_a_change_of_points_keeps_the_old_ones(now):
    campaign, annotator = campaign_of("components")
    held = next_assignment(campaign=campaign, annotator=annotator, now=now)
    submit_label(assignment=held, verdict={"parts": points(1, 1, 1)}, now=now)
    assert change_label(assignment=held, verdict={"parts": points(1, 1, 2)}, now=now)
    assert LabelRevision.objects.get().verdict == {"parts": {"length": 1, "mention": 1, "genre": 1}, "score": 3}
    assert Label.objects.get().score == 4


def test_the_analysis_of_these_tests_is_one_that_needs_the_redactor():
    assert SECRET in ANALYSIS
