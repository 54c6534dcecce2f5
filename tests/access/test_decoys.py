"""Gold hides among decoys: what several accounts were all given does not tell which items are gold."""

from itertools import combinations

import pytest
from django.apps import apps
from django.utils import timezone

from annotations.assignment.errors import Refused
from annotations.assignment.gold import GoldVerdict, gold_from_campaign, mark_all_gold, mark_gold, unmark_gold
from annotations.assignment.leases import next_assignment, skip
from annotations.assignment.queries import progress_of
from annotations.campaigns.actions import add_items, close_campaign, copy_campaign, make_campaign
from annotations.campaigns.candidates import candidates_of
from annotations.campaigns.sampling import Plan, Selection
from annotations.labels.actions import submit_label
from annotations.labels.agreement import label_rows
from annotations.labels.monitor import monitor_of
from annotations.models import Assignment, Campaign, CampaignItem, Label
from tests.annotations.conftest import annotators, pairs  # noqa: F401 (fixtures)
from tests.bank.test_submissions import migration
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1")]
GOLD, ITEMS = 16, 160


@pytest.fixture
def round_of(pairs, annotators):  # noqa: F811
    """``round_of(2, overlap=1)``: a campaign of 160 items of which 16 are hidden gold, and its annotators."""

    def make(people, *, items=ITEMS, gold=GOLD, **settings):
        some = annotators(people)
        campaign = make_campaign(
            name="Gold",
            benchmark=pairs(items),
            protocol="pair",
            annotators=[one.person for one in some],
            **{"gold_rate": 0.1} | settings,
        )
        marked = campaign.campaign_items.select_related("campaign", "item__sample").order_by("?")[:gold]
        mark_all_gold(GoldVerdict(place, {"choice": "first"}) for place in marked)
        return campaign, some

    return make


def label(campaign, annotator, most=None):
    """The campaign items that somebody labelled, in their order, and what their progress said before each."""
    met, progress = [], []
    while most is None or len(met) < most:
        shown = next_assignment(campaign=campaign, annotator=annotator, now=timezone.now())
        if shown is None:
            break
        progress.append(progress_of(campaign=campaign, annotator=annotator).total)
        choice = "tie" if shown.campaign_item.gold is None else "left" if shown.order == "01" else "right"
        submit_label(assignment=shown, verdict={"choice": choice}, now=timezone.now())
        met.append(shown.campaign_item_id)
    return met, progress


def label_in_turns(campaign, some):
    """What each met, where all of them label until nothing is left."""
    met, going = {person: [] for person in some}, list(some)
    while going:
        for person in list(going):
            items, _ = label(campaign, person, 1)
            met[person] += items
            if not items:
                going.remove(person)
    return list(met.values())


def kinds(campaign):
    gold = set(campaign.campaign_items.filter(gold__isnull=False).values_list("pk", flat=True))
    return gold, set(campaign.campaign_items.filter(decoy=True).values_list("pk", flat=True))


def test_half_of_what_two_accounts_were_both_given_is_no_gold(round_of, at_chance):
    """The finding: of 45 items each they had 4 in common, and all 4 were gold."""
    campaign, people = round_of(2, overlap=1)
    first, second = (label(campaign, person, 45)[0] for person in people)
    gold, decoys = kinds(campaign)
    both = set(first) & set(second)
    assert len(decoys) == GOLD
    assert both <= gold | decoys
    for met in (first, second):
        assert abs(len(gold.intersection(met)) - len(decoys.intersection(met))) <= 1
    at_chance(len(both & gold), len(both), 1 / 2, "gold by what two accounts were given, 45 of 160 items each")


@pytest.mark.parametrize(("people", "overlap"), [(2, 1), (3, 2)])
def test_to_the_end_what_more_accounts_than_the_overlap_met_is_gold_and_as_many_decoys(people, overlap, round_of):
    campaign, some = round_of(people, overlap=overlap, gold_rate=0.2)
    met = label_in_turns(campaign, some)
    gold, decoys = kinds(campaign)
    shared = {item for group in combinations(map(set, met), overlap + 1) for item in set.intersection(*group)}
    assert shared == gold | decoys
    assert len(decoys) == len(gold) == GOLD
    taken = dict(CampaignItem.objects.filter(gold__isnull=True, decoy=False).values_list("pk", "taken"))
    assert set(taken.values()) == {overlap}


def test_no_position_tells_gold_from_decoys(round_of, at_chance):
    """Each block has one of both, at any two places; who guesses the first is right in half of them."""
    campaign, people = round_of(5, overlap=5)
    gold, decoys = kinds(campaign)
    firsts = []
    for person in people:
        met, _ = label(campaign, person, 100)
        for start in range(0, 100, 10):
            known = [item for item in met[start : start + 10] if item in gold | decoys]
            assert len(known) == 2
            assert len(gold.intersection(known)) == 1
            firsts.append(known[0] in gold)
    at_chance(sum(firsts), len(firsts), 1 / 2, "gold by its place in a block")


def test_progress_tells_no_gold_from_other_items_and_skipping_neither(round_of):
    campaign, (one, two) = round_of(2, overlap=2)
    _, totals = label(campaign, one)
    assert len(set(totals)) == 1
    for _ in range(30):  # some of them are gold, some decoys
        shown = next_assignment(campaign=campaign, annotator=two, now=timezone.now())
        before = progress_of(campaign=campaign, annotator=two)
        skip(assignment=shown, now=timezone.now())
        assert progress_of(campaign=campaign, annotator=two) == before


def test_a_campaign_is_complete_when_decoys_have_their_labels_too(round_of):
    campaign, (one,) = round_of(1, items=20, gold=4, overlap=1)
    label(campaign, one, 15)
    assert not Campaign.objects.complete().exists()
    label(campaign, one)
    assert Label.objects.filter(assignment__campaign_item__decoy=True).count() == 4
    assert Campaign.objects.complete().exists()


def test_decoys_are_counted_once_by_their_majority_where_every_label_counts(round_of, client_of):
    campaign, people = round_of(5, items=40, gold=0, overlap=1, gold_rate=0.5)
    places = list(campaign.campaign_items.order_by("pk")[:2])
    CampaignItem.objects.filter(pk__in=[place.pk for place in places]).update(decoy=True)
    label_in_turns(campaign, people)
    close_campaign(campaign=campaign, now=timezone.now())
    of_decoys = Label.objects.filter(assignment__campaign_item__decoy=True).count()
    assert of_decoys > 2
    view = "benchmark=pairs&kind=pair&source=individuals"
    rows = client_of("curator").get(f"/api/v1/leaderboards/models/?{view}").json()
    assert {row["wins"] + row["ties"] + row["losses"] for row in rows} == {40}
    assert len(label_rows(campaign)) == 38 + of_decoys  # agreement has them all


def test_the_monitor_counts_decoys_as_items_with_as_many_labels_as_asked_for(round_of, people, client_of):
    campaign, some = round_of(3, items=40, gold=4, overlap=2)
    for person in some:
        label(campaign, person)
    monitor = monitor_of(campaign, label_rows(campaign, every=True), people["curator"])
    assert (monitor.items, monitor.decoys, monitor.gold) == (36, 4, 4)
    assert (monitor.filled, monitor.slots, monitor.complete) == (72, 72, 36)
    assert [depth.labels for depth in monitor.depths] == [2, 1, 0]
    page = flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))
    assert "4 of the items are decoys" in page
    assert "decoy" not in flat(client_of("researcher").get(f"/campaigns/{campaign.pk}/"))
    assert "decoy" in flat(client_of("curator").get(f"/campaigns/{campaign.pk}/items/?show=decoy"))


def test_decoys_follow_the_gold_that_is_added_and_taken_away(round_of):
    campaign, (one,) = round_of(1, items=20, gold=3)
    assert len(kinds(campaign)[1]) == 3
    more = campaign.campaign_items.filter(gold__isnull=True, decoy=False).first()
    mark_gold(campaign_item=more, verdict={"choice": "tie"})
    decoy = campaign.campaign_items.filter(decoy=True).first()
    mark_gold(campaign_item=decoy, verdict={"choice": "tie"})
    gold, decoys = kinds(campaign)
    assert (len(gold), len(decoys), len(gold & decoys)) == (5, 5, 0)
    label(campaign, one)
    assert Assignment.objects.filter(campaign_item__in=decoys).count() == 5
    with pytest.raises(Refused):
        unmark_gold(campaign_item=campaign.campaign_items.filter(gold__isnull=False, taken__gt=0).first())
    assert kinds(campaign) == (gold, decoys)
    copied = copy_campaign(campaign=campaign, name="Again")
    assert [len(kind) for kind in kinds(copied)] == [5, 5]
    unmark_gold(campaign_item=copied.campaign_items.filter(gold__isnull=False).first())
    assert [len(kind) for kind in kinds(copied)] == [4, 4]


def test_with_too_few_ordinary_items_all_are_decoys_and_items_that_come_make_up_for_it(round_of):
    campaign, _ = round_of(1, items=10, gold=7, plan=Plan(most=10))
    assert len(kinds(campaign)[1]) == 3
    again = make_campaign(name="Few", benchmark=campaign.benchmark, protocol="pair", plan=Plan(most=4), gold_rate=0.2)
    for place in again.campaign_items.all()[:3]:
        mark_gold(campaign_item=place, verdict={"choice": "tie"})
    assert len(kinds(again)[1]) == 1
    assert add_items(campaign=again, selection=Selection(candidates_of(again), {})) == 6
    assert len(kinds(again)[1]) == 3


def test_who_knows_the_campaign_that_gold_came_from_cannot_tell_it_from_decoys(round_of):
    """Gold that another campaign settled stood out: of what everybody got, only gold had verdicts there."""
    source, known_to = round_of(2, overlap=2, items=80, gold=0, gold_rate=0)
    label_in_turns(source, known_to)
    close_campaign(campaign=source, now=timezone.now())
    settled = set(source.campaign_items.values_list("item", flat=True)[:40])
    source.campaign_items.exclude(item__in=settled).delete()
    campaign = make_campaign(
        name="Next", benchmark=source.benchmark, protocol="pair", gold_rate=0.2, overlap=1, annotators=[]
    )
    found = gold_from_campaign(campaign, source, most=GOLD)
    mark_all_gold(found.verdicts, alike=found.alike)
    gold, decoys = kinds(campaign)
    everybodys = campaign.campaign_items.filter(pk__in=gold | decoys)
    assert len(gold) == len(decoys) == GOLD
    assert set(everybodys.values_list("item", flat=True)) <= settled


# ---- what the curator is told ----


def test_the_form_says_how_much_hidden_gold_closes_and_until_when(round_of, client_of):
    campaign, people = round_of(1, items=12, gold=0)
    label(campaign, people[0])
    close_campaign(campaign=campaign, now=timezone.now())
    form = {"benchmark": campaign.benchmark_id, "protocol": "pair", "overlap": 1, "blind": "on", "how": "all"}
    curator = client_of("curator")
    assert "With hidden gold" not in flat(curator.post("/campaigns/count/", form))
    page = flat(curator.post("/campaigns/count/", form | {"gold_rate": "10", "due": "2090-01-02"}))
    assert "stay blind until it is closed (due 2 Jan 2090): 12 labels and 0 judgments on them are hidden" in page
    fewer = flat(curator.post("/campaigns/count/", form | {"gold_rate": "10", "most": "5"}))
    assert "stay blind until it is closed: 5 labels" in fewer
    assert "With hidden gold" not in flat(curator.post("/campaigns/count/", form | {"gold_rate": "10", "blind": ""}))


def test_the_forms_say_where_there_are_too_few_items_for_decoys(round_of, client_of):
    campaign, _ = round_of(1, items=10, gold=7)
    for page in ("settings", "items"):
        assert "There are 4 ordinary items too few for as many decoys as gold" in flat(
            client_of("curator").get(f"/campaigns/{campaign.pk}/{page}/")
        )


def test_the_update_draws_decoys_for_the_gold_that_is_there(round_of):
    campaign, _ = round_of(1, items=20, gold=4)
    CampaignItem.objects.update(decoy=False)
    migration("annotations", "decoys").draw_decoys(apps, None)
    gold, decoys = kinds(campaign)
    assert (len(decoys), gold & decoys) == (4, set())
