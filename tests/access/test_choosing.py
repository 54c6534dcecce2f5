"""A selection is an output: which items people get, and in which order, tells nothing of what they may not know."""

import json
import random
from collections import defaultdict

import pytest
from django.utils import timezone

from annotations.assignment.gold import gold_from_campaign
from annotations.assignment.leases import next_assignment
from annotations.campaigns.actions import add_items, make_campaign
from annotations.campaigns.auto_enqueue import enqueue_new_items, select_judged_items, set_rule
from annotations.campaigns.blinding import note_blind_in
from annotations.campaigns.members import make_annotator
from annotations.campaigns.run_doubts import DIFFERS, NO_VERDICT
from annotations.campaigns.sampling import Plan
from annotations.labels.actions import submit_label
from annotations.models import Adjudication, Assignment, Campaign, CampaignItem, Label
from bank import exposure
from bank.errors import BadInput
from bank.models import Sample
from bank.samples.items import make_items, plan_items
from judging.models import Run
from tests.access.test_sealing import LETTERS, SECRETS, drawn, items_of, judged, questions, secrets_of
from tests.hidden import ended_before_today
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1", "M2")]
KEY = exposure.Inputs.ANSWER_KEY


def said_of(benchmark, annotator, verdict, *, name, held=exposure.NOTHING):
    """A closed campaign in which somebody labelled all of these items: ``verdict(item)`` gives the columns."""
    now, items = timezone.now(), {item.pk: item for item in items_of(benchmark)}
    campaign = Campaign.objects.create(
        name=name, benchmark=benchmark, protocol="score", state="closed", held=held, plan={}
    )
    places = CampaignItem.objects.bulk_create(CampaignItem(campaign=campaign, item_id=pk, taken=1) for pk in items)
    done = {"annotator": annotator, "state": "submitted", "slot": 0, "leased_at": now, "lease_until": now}
    leased = Assignment.objects.bulk_create(Assignment(campaign_item=place, **done) for place in places)
    labels = []
    for work in leased:
        about = {
            "assignment": work,
            "campaign": campaign,
            "annotator": annotator,
            "item_id": work.campaign_item.item_id,
        }
        labels.append(Label(**about, created_at=now, changed_at=now, **verdict(items[work.campaign_item.item_id])))
    Label.objects.bulk_create(labels)
    return campaign


@pytest.fixture
def world():
    """Answers A to D to two hundred questions, and a run whose judge marked the wrong ones 1, by what it held."""
    benchmark = questions("marked", drawn(LETTERS, "marks"))
    make_items(plan_items(kind="score", benchmark=benchmark))

    def make(held):
        marks = marks_of(benchmark)
        protocol = {"protocol": "reference-score", "imported": False}
        run = judged(benchmark, lambda item, responses: marks(item), held=held, **protocol)
        ended_before_today(run)
        return benchmark, run

    return make


def marks_of(benchmark):
    """The marks of whoever knows the keys."""
    keys = secrets_of(benchmark)
    return lambda item: {"score": 5 if item.ordered_responses()[0].text == keys[item.sample_id] else 1}


@pytest.fixture
def praised(world, people):
    """The same, where people who never saw a key gave each answer 5 points."""

    def make(held):
        benchmark, run = world(held)
        said_of(benchmark, make_annotator(people["curator"]), lambda item: {"score": 5}, name="Said before")
        return benchmark, run

    return make


def by_plan(benchmark, run):
    plan = Plan(how="run", run=run.pk, reasons=(DIFFERS,))
    try:
        return make_campaign(name="Doubts", benchmark=benchmark, protocol="score", plan=plan)
    except BadInput:  # it would have no items
        return None


def almost_empty(benchmark):
    campaign = make_campaign(name="Doubts", benchmark=benchmark, protocol="score", plan=Plan(most=1))
    campaign.campaign_items.all().delete()
    return campaign


def by_rule(benchmark, run):
    campaign = almost_empty(benchmark)
    set_rule(campaign=campaign, runs="all", reasons=[DIFFERS])
    return campaign


def by_hand(benchmark, run):
    campaign = almost_empty(benchmark)
    wrong = list(run.judgments.filter(score=1).values_list("pk", flat=True))
    add_items(campaign=campaign, selection=select_judged_items(campaign=campaign, ids=wrong))
    return campaign


WAYS = [by_plan, by_rule, by_hand]


def keys_read(benchmark, campaign):
    """How many keys an annotator names who takes the answer that is missing among their items for the right one."""
    dice, given = random.Random(1), defaultdict(set)
    for item in items_of(benchmark).filter(campaign_items__campaign=campaign) if campaign else ():
        given[item.sample_id].add(item.ordered_responses()[0].text)
    right = 0
    for sample, key in secrets_of(benchmark).items():
        missing = sorted(set(LETTERS) - given[sample])
        right += (missing[0] if len(missing) == 1 else dice.choice(LETTERS)) == key
    return right


@pytest.mark.parametrize("way", WAYS)
def test_no_key_follows_from_the_items_that_are_given_to_people(way, praised, at_chance):
    """The finding: a campaign of what a judge with the keys marked otherwise than people told 40 of 40 keys."""
    benchmark, run = praised(KEY)
    right = keys_read(benchmark, way(benchmark, run))
    at_chance(right, SECRETS, 1 / 4, f"keys by which items there are, {way.__name__}")


@pytest.mark.parametrize("way", WAYS)
def test_what_a_judge_that_saw_nothing_closed_leaves_in_doubt_is_still_given_to_people(way, praised):
    benchmark, run = praised(exposure.NOTHING)
    campaign = way(benchmark, run)
    assert campaign.campaign_items.count() == run.judgments.filter(score=1).count() == 3 * SECRETS
    assert keys_read(benchmark, campaign) == SECRETS  # the attack sees what there is to see


@pytest.mark.parametrize(("held", "known"), [(KEY, False), (exposure.NOTHING, True)])
def test_a_judge_is_compared_with_no_people_who_were_shown_the_key(held, known, world, people, at_chance):
    benchmark, run = world(exposure.NOTHING)
    run.judgments.update(score=5)
    said_of(benchmark, make_annotator(people["curator"]), marks_of(benchmark), name="Shown", held=held)
    right = keys_read(benchmark, by_rule(benchmark, run))
    if known:
        assert right == SECRETS
    else:
        at_chance(right, SECRETS, 1 / 4, "keys by which items there are, of people who were shown them")


@pytest.mark.parametrize(("blind", "known"), [(True, False), (False, True)])
def test_labels_of_a_blind_round_that_goes_on_choose_no_items_for_others(blind, known, world, people, at_chance):
    benchmark, run = world(exposure.NOTHING)
    run.judgments.update(score=5)
    campaign = said_of(benchmark, make_annotator(people["curator"]), marks_of(benchmark), name="Goes on")
    Campaign.objects.filter(pk=campaign.pk).update(blind=blind, state="open")
    campaign.refresh_from_db()
    note_blind_in(campaign)
    right = keys_read(benchmark, by_rule(benchmark, run))
    if known:
        assert right == SECRETS
    else:
        at_chance(right, SECRETS, 1 / 4, "keys by which items there are, of a blind round that goes on")


def test_failed_replies_choose_as_little_as_verdicts_do(world, at_chance):
    """An answer may ask the judge for none where the key has a letter."""
    benchmark, run = world(KEY)
    run.judgments.filter(score=1).update(status="parse_failed", score=None)
    campaign = almost_empty(benchmark)
    set_rule(campaign=campaign, runs="all", reasons=[NO_VERDICT])
    at_chance(keys_read(benchmark, campaign), SECRETS, 1 / 4, "keys by which replies failed")


def test_a_run_chooses_from_the_day_on_that_people_are_told_of_it(praised):
    benchmark, run = praised(exposure.Inputs.GUIDELINE)
    Run.objects.update(finished_at=timezone.now())
    campaign = by_rule(benchmark, run)
    assert campaign.campaign_items.count() == 0
    ended_before_today(run)
    assert enqueue_new_items(campaign) == 3 * SECRETS


def test_an_annotator_whose_campaign_has_a_rule_gets_the_items_that_it_brings(praised, people, client_of):
    """Found by hand: the rule was applied in their name, who may not read all verdicts, and the page failed."""
    benchmark, run = praised(exposure.NOTHING)
    campaign = by_rule(benchmark, run)
    campaign.rule["seen"] = {}
    campaign.save()
    campaign.campaign_items.all().delete()
    answer = client_of("annotator").post("/api/v1/campaigns/Doubts/next/", {}, content_type="application/json")
    assert answer.status_code == 200
    assert campaign.campaign_items.count() == 3 * SECRETS


def test_staff_are_told_how_many_doubts_are_not_given_to_people_and_why(praised, client_of):
    benchmark, run = praised(KEY)
    staff = client_of("curator")
    page = flat(staff.get(f"/campaigns/from/runs/{run.pk}/"))
    assert f"{3 * SECRETS} items are in doubt by verdicts that may not choose items for annotators" in page
    assert f"and {3 * SECRETS} not given to annotators" in page
    campaign = almost_empty(benchmark)
    path = "/campaigns/from/judgments/"
    chosen = list(run.judgments.filter(score=1).values_list("pk", flat=True)[:7])
    said = flat(staff.post(path, {"judgment": chosen, "campaign": campaign.pk}, follow=True))
    assert "0 items added to Doubts" in said
    assert "7 may not choose items for annotators, so they were left out" in said
    open_run = judged(benchmark, lambda item, responses: {"score": 1}, judge="blind", protocol="score", held=0)
    page = flat(staff.get(f"/campaigns/from/runs/{open_run.pk}/"))
    assert "not given to annotators" not in page
    assert f"{4 * SECRETS} items" in page


@pytest.mark.parametrize(("held", "first"), [(exposure.NOTHING, True), (KEY, False)])
def test_the_most_disputed_come_first_by_labels_that_may_choose(held, first, world, people):
    benchmark, _ = world(exposure.NOTHING)
    campaign = make_campaign(
        name="Order", benchmark=benchmark, protocol="score", overlap=3, order="disputed", plan=Plan(most=4)
    )
    Campaign.objects.update(held=held)
    campaign.refresh_from_db()
    disputed = campaign.campaign_items.get(position=2)
    for role, score in (("curator", 1), ("administrator", 5)):
        annotator = make_annotator(people[role])
        while (work := next_assignment(campaign=campaign, annotator=annotator, now=timezone.now())) is not None:
            differs = work.campaign_item_id == disputed.pk
            submit_label(assignment=work, verdict={"score": score if differs else 3}, now=timezone.now())
    third = make_annotator(people["annotator"])
    given = next_assignment(campaign=campaign, annotator=third, now=timezone.now())
    assert (given.campaign_item_id == disputed.pk) == first


@pytest.mark.parametrize(("held", "found"), [(exposure.NOTHING, 4 * SECRETS), (KEY, 0)])
def test_practice_and_gold_are_made_of_no_labels_by_who_was_shown_the_key(held, found, world, people):
    benchmark, _ = world(exposure.NOTHING)
    marks = marks_of(benchmark)
    source = said_of(benchmark, make_annotator(people["curator"]), marks, name="Shown", held=held)
    for place in source.campaign_items.select_related("item"):
        place.adjudication = Adjudication.objects.create(campaign_item=place, by=people["curator"], **marks(place.item))
    campaign = make_campaign(name="Next", benchmark=benchmark, protocol="score")
    if found:
        assert len(gold_from_campaign(campaign, source).verdicts) == found
    else:
        with pytest.raises(BadInput, match="settled none"):
            gold_from_campaign(campaign, source)


def test_preference_pairs_follow_from_no_label_that_their_reader_may_not_see(people, client_of, at_chance):
    """Found by hand: it was asked of the labels of all campaigns, also of those that showed keys, and so failed."""
    benchmark = questions("liked", drawn("AB", "liked"), kind="guideline", models="AB")
    make_items(plan_items(kind="pair", benchmark=benchmark))
    Sample.objects.update(closed=exposure.Inputs.EXACT_REFERENCE)
    keys = secrets_of(benchmark)

    def right(item):
        return {"choice": ("first", "second")[item.ordered_responses()[1].text == keys[item.sample_id]]}

    open_to_all = said_of(
        benchmark, make_annotator(people["annotator"]), lambda item: {"choice": "first"}, name="Saw nothing"
    )
    for n, role in enumerate(("curator", "administrator")):
        told = make_annotator(people[role])
        said_of(benchmark, told, right, name=f"Shown {n}", held=exposure.Inputs.EXACT_REFERENCE)
    path = f"/campaigns/{open_to_all.pk}/data/download/?as=preferences"
    rows = [json.loads(line) for line in client_of("researcher").get(path).getvalue().splitlines()]
    assert len(rows) == SECRETS
    by_key = {sample.key: keys[sample.pk] for sample in benchmark.samples.all()}
    guessed = sum(row["chosen"] == by_key[row["sample"]] for row in rows)
    at_chance(guessed, SECRETS, 1 / 2, "references by preference pairs")
