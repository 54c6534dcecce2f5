"""Two judges' analyses of one item side by side: what is drawn, shown, stored, sent out and read in."""

import json

import pytest
from django.core.management import call_command
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.models import User
from annotations import ballots
from annotations.assignment import gold, material
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import close_campaign, copy_campaign, make_campaign
from annotations.campaigns.auto_enqueue import select_judged_items
from annotations.campaigns.candidates import candidates_for
from annotations.campaigns.members import add_annotators, make_annotator
from annotations.campaigns.run_doubts import human_verdicts
from annotations.labels import exports
from annotations.labels.actions import submit_label
from annotations.labels.adjudication import adjudicate
from annotations.labels.monitor import recent_labels
from annotations.models import Adjudication, Assignment, Campaign, CampaignItem, Label, Membership
from bank import exposure
from bank.criteria import CriteriaAccess
from bank.errors import BadInput
from bank.intake.imports.engine import run_import
from bank.management.importing import Failed
from bank.models import Benchmark, EvaluatedModel, Item, Sample
from judging.models import AnalysisRelease, Judgment, Run
from tests.annotations.kinds import SECRET, benchmark_of, campaign_of, judged, judged_by_two
from tests.markup import flat

pytestmark = pytest.mark.django_db
PROTOCOL = "compare-analyses"


def drawn(benchmark, **more):
    """The judges of every two that would be compared, by name, each two sorted."""
    names = dict(Judgment.objects.values_list("pk", "run__judge__name"))
    candidates = candidates_for(benchmark=benchmark, protocol=PROTOCOL, **more)
    return sorted(tuple(sorted(names[pk] for pk in candidate.judgments)) for candidate in candidates)


@pytest.fixture
def benchmark(db):
    return benchmark_of(samples=1)


class TestCandidates:
    def test_every_two_judges_with_open_analyses_are_compared_once_on_every_item(self, benchmark):
        for name in ("hawk", "kite", "owl"):
            for order in ("10", "01"):
                judged(benchmark, by=name, order=order)
        assert drawn(benchmark) == [("hawk", "kite"), ("hawk", "owl"), ("kite", "owl")]

    def test_an_analysis_that_nobody_released_is_compared_with_none(self, benchmark):
        judged(benchmark, by="hawk")
        judged(benchmark, by="kite")
        judged(benchmark, by="owl", released=False)
        assert drawn(benchmark) == [("hawk", "kite")]
        AnalysisRelease.objects.filter(run__judge__name="kite").update(decision="keep")
        assert drawn(benchmark) == []
        with pytest.raises(BadInput, match="no two judges whose analyses"):
            make_campaign(name="x", benchmark=benchmark, protocol=PROTOCOL)

    def test_analyses_that_name_the_answers_in_other_orders_are_not_compared(self, benchmark):
        judged(benchmark, by="hawk", order="10")
        judged(benchmark, by="kite", order="01")
        assert drawn(benchmark) == []

    def test_one_judge_is_compared_with_itself_under_other_settings_alone(self, benchmark):
        first, again = judged(benchmark, by="hawk"), judged(benchmark, by="hawk")
        assert drawn(benchmark) == []
        Run.objects.filter(pk=again.run_id).update(settings_hash="other")
        assert [candidate.judgments for candidate in candidates_for(benchmark=benchmark, protocol=PROTOCOL)] == [
            (first.pk, again.pk)
        ]

    @pytest.mark.parametrize("hide", ["split", "baseline", "sample", "key"])
    def test_what_withholds_one_verdict_withholds_the_comparison(self, benchmark, hide):
        judged(benchmark, by="hawk")
        hidden = judged(benchmark, by="kite")
        match hide:
            case "split":
                benchmark.samples.update(split="test")
                Benchmark.objects.update(hidden_splits=["test"])
            case "baseline":
                type(hidden.run.judge).objects.filter(name="kite").update(baseline="criteria-overlap")
            case "sample":
                benchmark.samples.update(status=Sample.Status.REJECTED)
            case "key":
                Run.objects.filter(pk=hidden.run_id).update(held=exposure.UNKNOWN)
                benchmark.samples.update(closed=exposure.KEYED)
        benchmark.refresh_from_db()
        assert drawn(benchmark) == []

    def test_a_plan_names_the_judges_and_a_run_is_one_side(self, benchmark):
        runs = {name: judged(benchmark, by=name).run for name in ("hawk", "kite", "owl")}
        assert drawn(benchmark, run=runs["owl"]) == [("hawk", "owl"), ("kite", "owl")]
        command = ("make_campaign", "two", "--benchmark", "kinds", "--protocol", PROTOCOL)
        call_command(*command, "--judges", "hawk,owl")
        (place,) = Campaign.objects.get(name="two").campaign_items.all()
        assert place.judgments == tuple(
            Judgment.objects.filter(run__in=[runs["hawk"], runs["owl"]]).order_by("pk").values_list("pk", flat=True)
        )
        with pytest.raises(Failed, match="Unknown judge: 'eagle'"):
            call_command("make_campaign", "three", *command[2:], "--judges", "hawk,eagle")

    def test_two_judgments_are_in_a_campaign_once_whichever_stands_first(self):
        campaign, _ = campaign_of(PROTOCOL, benchmark=benchmark_of(samples=1))
        (place,) = campaign.campaign_items.all()
        for one, other in (place.judgments, place.judgments[::-1]):
            with pytest.raises(IntegrityError), transaction.atomic():
                CampaignItem.objects.create(campaign=campaign, item_id=place.item_id, reviewed_id=one, against_id=other)

    def test_a_copy_has_the_same_and_a_judgment_chosen_by_hand_brings_its_comparisons(self, benchmark):
        kept = [judged(benchmark, by=name) for name in ("hawk", "kite", "owl")]
        campaign = make_campaign(name="three", benchmark=benchmark, protocol=PROTOCOL)
        copied = copy_campaign(campaign=campaign, name="copied")
        assert {place.subject for place in copied.campaign_items.all()} == {
            place.subject for place in campaign.campaign_items.all()
        }
        selection = select_judged_items(campaign=campaign, ids=[kept[0].pk])
        assert {candidate.judgments for candidate in selection.candidates} == {
            (kept[0].pk, kept[1].pk),
            (kept[0].pk, kept[2].pk),
        }


def places_of(html):
    """The analyses in the order of the page: the first judge's says 1, the other's 2."""
    at = {html.index("Answer1 counts the boats."): 1, html.index("Answer2 names two boats"): 2}
    return [at[place] for place in sorted(at)]


@pytest.fixture
def rooms(now):
    """One comparison, and twelve people who have it before them: (assignment, client) of each."""
    campaign, _ = campaign_of(PROTOCOL, benchmark=benchmark_of(samples=1), overlap=13)
    made = []
    for number in range(12):
        person = User.objects.create_user(f"person-{number}", role="annotator")
        add_annotators(campaign=campaign, people=[person])
        client = Client()
        client.force_login(person)
        Membership.objects.update(guidelines_read=1)
        made.append((next_assignment(campaign=campaign, annotator=make_annotator(person), now=now), client))
    return made


class TestLabelling:
    def test_sides_are_drawn_for_each_and_the_label_is_stored_in_canonical_order(self, rooms):
        seen = set()
        for held, client in rooms:
            here = f"/annotate/assignments/{held.pk}/"
            html = flat(client.get(here))
            order = places_of(html)
            assert held.order == {(1, 2): "01", (2, 1): "10"}[tuple(order)]
            sent = {"choice": "left", "comment": "It is the fuller one.", "key": "k"}
            assert client.post(f"{here}submit/", sent).status_code == 302
            label = Label.objects.get(assignment=held)
            assert (label.choice, label.comment) == (("first", "second")[order[0] - 1], "It is the fuller one.")
            chosen = [part for part in flat(client.get(here)).split("<input")[1:] if " checked" in part.split(">")[0]]
            assert 'value="left"' in chosen[0]
            seen.add(held.order)
        assert seen == {"01", "10"}

    def test_the_page_names_no_judge_and_quotes_no_hidden_criterion(self, rooms):
        held, client = rooms[0]
        html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
        assert "some-judge" not in html
        assert "other-judge" not in html
        assert SECRET not in html
        assert "a passage was removed" in html
        assert CriteriaAccess.objects.filter(how="redaction", who=held.annotator.person).count() == 2

    def test_the_answers_stand_as_both_judges_saw_them(self, rooms):
        for held, client in rooms[:4]:
            html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
            assert html.index("Answer 1 of s0") < html.index("Answer 0 of s0")  # both were asked in the turned order
            assert {"Answer 1 is better", "Answer 2 is better"} <= {
                review.verdict for review in material.shown_material(held, ballots.get(PROTOCOL)).reviews
            }

    def test_names_of_models_are_masked_in_both(self, rooms):
        EvaluatedModel.objects.filter(name="model-3").update(name="LLaVA-13B")
        Judgment.objects.update(analysis="Answer1 counts the boats as LLaVA-13B does. Answer2 names two boats.")
        held, client = rooms[0]
        html = flat(client.get(f"/annotate/assignments/{held.pk}/"))
        assert html.count("Answer1 counts the boats as") == 2
        assert "LLaVA" not in html

    def test_without_a_reason_nothing_is_stored_on_the_page_or_by_the_api(self, rooms):
        held, client = rooms[0]
        here = f"/annotate/assignments/{held.pk}/"
        client.get(here)
        answer = client.post(f"{here}submit/", {"choice": "left", "comment": " ", "key": "k"})
        assert answer.status_code == 400
        assert "Say why, in a sentence or two." in flat(answer)
        sent = {"assignment": held.pk, "choice": "right"}
        refused = client.post("/api/v1/labels/", sent, content_type="application/json")
        assert (refused.status_code, refused.json()) == (400, {"comment": ["Say why, in a sentence or two."]})
        assert not Label.objects.exists()
        stored = client.post("/api/v1/labels/", sent | {"comment": "Fuller."}, content_type="application/json")
        assert stored.status_code == 201
        assert Label.objects.get().choice == ("second" if held.order == "01" else "first")

    def test_the_api_shows_both_in_presented_order_and_what_may_be_answered(self, rooms):
        held, client = rooms[0]
        campaign = held.campaign_item.campaign
        shown = client.post(f"/api/v1/campaigns/{campaign.name}/next/", {}, content_type="application/json").json()
        assert "review" not in shown
        first, second = (held.campaign_item.reviewed, held.campaign_item.against)
        other = {first.pk: "Answer1 counts", second.pk: "Answer2 names"}
        wanted = [first.pk, second.pk] if held.order == "01" else [second.pk, first.pk]
        assert [each["analysis"].startswith(other[pk]) for each, pk in zip(shown["analyses"], wanted, strict=True)]
        assert shown["verdicts"] == {"choice": ["left", "right", "tie"]}
        assert "judge" not in json.dumps(shown)

    def test_an_analysis_that_is_kept_back_meanwhile_is_not_shown_and_neither_is_the_other(self, rooms):
        held, client = rooms[0]
        here = f"/annotate/assignments/{held.pk}/"
        client.get(here)
        AnalysisRelease.objects.filter(judgment=held.campaign_item.against_id).update(decision="keep")
        html = flat(client.get(here))
        assert "Answer1 counts the boats." not in html
        assert "Answer2 names two boats" not in html
        assert "they cannot be compared" in html
        answer = client.post(f"{here}submit/", {"choice": "left", "comment": "So.", "key": "k"})
        assert answer.status_code == 400
        assert "Skip this item" in flat(answer)

    def test_nobody_gets_a_comparison_of_which_one_verdict_tells_a_closed_key(self, now):
        campaign, ada = campaign_of(PROTOCOL, benchmark=benchmark_of(samples=1))
        for judgment in campaign.campaign_items.get().judgments:
            run = Run.objects.filter(judgments=judgment)
            run.update(held=exposure.UNKNOWN)
            Sample.objects.update(closed=exposure.KEYED)
            assert not CampaignItem.objects.assignable().exists()
            assert next_assignment(campaign=campaign, annotator=ada, now=now) is None
            run.update(held=exposure.NOTHING)
        assert next_assignment(campaign=campaign, annotator=ada, now=now) is not None

    def test_known_verdicts_come_from_another_campaign_of_the_same(self, rooms, people, now):
        campaign = rooms[0][0].campaign_item.campaign
        (place,) = campaign.campaign_items.all()
        adjudicate(campaign_item=place, by=people["curator"], verdict={"choice": "second"})
        close_campaign(campaign=campaign, now=now)
        again = copy_campaign(campaign=campaign, name="again")
        (found,) = gold.gold_from_campaign(again, campaign).verdicts
        assert found.verdict == {"choice": "second"}
        assert found.campaign_item.subject == place.subject

    def test_practice_tells_which_analysis_was_right_as_it_stood_and_the_round_ends_with_its_numbers(self, now):
        benchmark = benchmark_of()
        campaign, ada = campaign_of(PROTOCOL, benchmark=benchmark, practice_pass=0.5)
        place = campaign.campaign_items.order_by("pk")[0]
        gold.mark_gold(campaign_item=place, verdict={"choice": "first"}, practice=True)
        client = Client()
        client.force_login(ada.person)
        held = next_assignment(campaign=campaign, annotator=ada, now=now)
        assert held.campaign_item_id == place.pk
        here = f"/annotate/assignments/{held.pk}/"
        client.get(here)
        wrong = "right" if held.order == "01" else "left"
        client.post(f"{here}submit/", {"choice": wrong, "comment": "So.", "key": "k"})
        page = flat(client.get(f"/annotate/{campaign.pk}/"))
        names = ("Analysis 2", "Analysis 1") if held.order == "01" else ("Analysis 1", "Analysis 2")
        assert f"{names[0]} is better" in page
        assert f"{names[1]} is better" in page
        Membership.objects.update(qualified=True)
        held = next_assignment(campaign=campaign, annotator=ada, now=now)
        material.shown_material(held, ballots.of(campaign))
        submit_label(assignment=held, verdict={"choice": "tie"}, comment="So.", now=now)
        close_campaign(campaign=campaign, now=now)
        assert client.get(f"/annotate/{campaign.pk}/done/").status_code == 200
        assert client.get("/annotate/").status_code == 200

    def test_it_says_nothing_about_the_answers(self, rooms, now):
        for held, client in rooms:
            client.get(f"/annotate/assignments/{held.pk}/")
            held.refresh_from_db()
            submit_label(assignment=held, verdict={"choice": "left"}, comment="So.", now=now)
        item = Item.objects.get(pk=rooms[0][0].campaign_item.item_id)
        every = {"labels": Label.objects.all(), "adjudications": Adjudication.objects.all()}
        assert human_verdicts([item.pk], rule="plurality", **every) == {}
        assert list(exports.preferences(campaign=rooms[0][0].campaign_item.campaign)) == []

    def test_the_newest_labels_name_the_judge_that_was_preferred(self, rooms, people, now, client_of):
        held, client = rooms[0]
        client.get(f"/annotate/assignments/{held.pk}/")
        held.refresh_from_db()
        side = "left" if held.order == "01" else "right"
        submit_label(assignment=held, verdict={"choice": side}, comment="So.", now=now)
        campaign = held.campaign_item.campaign
        (row,) = recent_labels(campaign, people["curator"])
        assert (row.better, row.over) == ("some-judge", "other-judge")
        page = flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))
        assert page.index("some-judge") < page.index("other-judge")
        assert "What can be told apart" not in page  # of two models
        assert "judge-these" not in page  # no judge is asked this


class TestFiles:
    @pytest.fixture
    def labelled(self, now):
        """A campaign with one label of each of two comparisons: (campaign, rows of its file)."""
        campaign, ada = campaign_of(PROTOCOL)
        while (held := next_assignment(campaign=campaign, annotator=ada, now=now)) is not None:
            material.shown_material(held, ballots.of(campaign))
            submit_label(assignment=held, verdict={"choice": "left"}, comment="So.", now=now)
        return campaign, list(exports.label_records(names=True, campaign=campaign))

    def brought(self, rows, tmp_path, name="copy"):
        path = tmp_path / "labels.jsonl"
        path.write_text("".join(f"{json.dumps(row | {'campaign': name})}\n" for row in rows))
        return run_import(path=path, slug="kinds", parts=["labels"])["labels"]

    def test_a_row_names_both_judgments_and_comes_back_to_them(self, labelled, tmp_path):
        campaign, rows = labelled
        for row in rows:
            assert [each["judge"] for each in row["compared"]] == ["some-judge", "other-judge"]
            assert row["compared"][0]["order"] == ["model-1", "model-0"]
        assert self.brought(rows, tmp_path).problems == []
        copied = Campaign.objects.get(name="copy")
        for one in (campaign, copied):
            assert one.campaign_items.count() == 2
        choices = [
            dict(one.labels.values_list("assignment__campaign_item__reviewed", "choice")) for one in (campaign, copied)
        ]
        assert choices[0] == choices[1]
        assert self.brought(rows, tmp_path).unchanged == 2

    def test_a_row_that_names_them_the_other_way_round_is_turned_and_one_of_turned_answers_is_not(
        self, labelled, tmp_path
    ):
        campaign, rows = labelled
        rows[0]["compared"].reverse()
        rows[1]["responses"].reverse()
        assert self.brought(rows, tmp_path).problems == []
        given, copied = (
            dict(Label.objects.filter(campaign__name=name).values_list("item__sample__key", "choice"))
            for name in (campaign.name, "copy")
        )
        other = {"first": "second", "second": "first"}
        turned, kept = (row["sample"] for row in rows)
        assert copied == {turned: other[given[turned]], kept: given[kept]}
        for place in Campaign.objects.get(name="copy").campaign_items.all():
            assert place.reviewed.run.judge.name == "some-judge"
        assert sorted(Assignment.objects.filter(label__campaign__name="copy").values_list("order", flat=True)) == [
            "01",
            "10",
        ]

    def test_judgments_that_are_not_here_are_asked_for(self, labelled, tmp_path):
        _, rows = labelled
        rows[0]["compared"][1]["judge"] = "eagle"
        del rows[1]["compared"]
        problems = [str(problem) for problem in self.brought(rows, tmp_path).problems]
        assert len(problems) == 2
        assert any("import the judgments first" in problem and "eagle" in problem for problem in problems)
        assert any("compared names two judgments" in problem for problem in problems)

    def test_labels_list_both_judgments(self, labelled, client_of):
        campaign, _ = labelled
        rows = client_of("curator").get(f"/api/v1/labels/?campaign={campaign.name}").json()["results"]
        assert {tuple(row["judgments"]) for row in rows} == {place.judgments for place in campaign.campaign_items.all()}


def test_the_form_offers_it_counts_and_shows_the_first(client_of):
    benchmark = benchmark_of()
    judged_by_two(benchmark)
    client = client_of("curator")
    form = {"benchmark": benchmark.pk, "protocol": PROTOCOL, "overlap": 1, "who": "everybody", "asked": 1}
    assert "2 items, 1 label each, at 1 min 30 s a label" in flat(client.post("/campaigns/count/", form))
    preview = flat(client.post("/campaigns/preview/", form))
    assert "The two judges' verdicts: Answer 1 is better; Answer 2 is better." in preview.replace("&#x27;", "'")
    sent = form | {"name": "Two", "overlap": 2, "lease_minutes": 30, "gold_rate": 0, "gold_pass": 70, "gold_least": 5}
    answer = client.post("/campaigns/new/", sent)
    assert answer.status_code == 302, answer.context["form"].errors
    assert Campaign.objects.get(name="Two").campaign_items.count() == 2
    alone = client.post("/campaigns/new/", sent | {"name": "One", "judges": [Run.objects.first().judge_id]})
    assert "selects no items" in flat(alone)
