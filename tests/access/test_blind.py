"""Blind is asked when a label is written, too: nobody changes theirs after others' verdicts could be read."""

import json
from datetime import timedelta

import pytest
from django.apps import apps
from django.core.management import call_command
from django.utils import timezone

from accounts.models import AuditEntry, User
from annotations.assignment.errors import Refused
from annotations.assignment.leases import next_assignment
from annotations.assignment.notices import open_returns
from annotations.campaigns.actions import close_campaign, make_campaign, open_campaign
from annotations.campaigns.blinding import open_finished
from annotations.campaigns.members import make_annotator
from annotations.labels.actions import return_label, submit_label
from annotations.labels.agreement import label_rows
from annotations.models import Campaign, CampaignItem, Label
from bank.models import Benchmark, Item, Response, Sample
from bank.samples.items import make_items, plan_items
from tests.access.test_sealing import API, BELOW, questions, rows_of
from tests.bank.test_submissions import migration
from tests.judging.conftest import baseline, work_on  # noqa: F401 (fixtures)
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1", "M2"), pytest.mark.both_databases]
ITEMS = 40


@pytest.fixture
def others(people):
    """Annotators besides the one that a client labels as."""
    made = [User.objects.create_user(name, password="x", role="annotator") for name in ("bea", "cem")]
    return [make_annotator(person) for person in made]


@pytest.fixture
def world(people, baseline, work_on):  # noqa: F811
    """The finding's: forty pairs, two judges that have judged them all, and somebody to label them blind."""
    from judging.runs import actions

    benchmark = questions("blinded", ["It is told."] * ITEMS, kind="guideline", models=("lark", "wren"))
    Benchmark.objects.update(visibility="public")
    make_items(plan_items(kind="pair", benchmark=benchmark))
    for judge in ("longest", "first"):
        work_on(actions.start_run(judge=baseline(judge), benchmark=benchmark, protocol="pair"))
    make_annotator(people["annotator"])
    return benchmark


def round_of(benchmark, people, others=(), **settings):
    everybody = [people["annotator"], *(other.person for other in others)]
    return make_campaign(name="Blind", benchmark=benchmark, protocol="pair", annotators=everybody, **settings)


def label_all(campaign, annotator, at=None):
    now = at or timezone.now()
    while (shown := next_assignment(campaign=campaign, annotator=annotator, now=now)) is not None:
        submit_label(assignment=shown, verdict={"choice": "left"}, now=now)


def shown_to(client, benchmark):
    """How many item pages show a judge's verdict, or who wrote the answers."""
    shown = 0
    for pk in Item.objects.filter(sample__benchmark=benchmark).values_list("pk", flat=True):
        answer = client.get(f"/leaderboards/{benchmark}/items/{pk}/")
        page = flat(answer) if answer.status_code == 200 else ""
        shown += f"{benchmark.slug}-lark" in page or "longest" in page
    return shown


def changed_by(client, labels):
    """How many of these labels the API takes a change of, and why not of the others."""
    taken, refused = 0, set()
    for label in labels:
        given = {"choice": "right"}
        if label.choice != ("first" if label.assignment.order == "01" else "second"):
            given = {"choice": "tie"}
        answer = client.put(f"{API}/labels/{label.pk}/", json.dumps(given), content_type="application/json")
        taken += answer.status_code == 200
        if answer.status_code != 200:
            refused.add((answer.status_code, answer.json().get("code")))
    return taken, refused


@pytest.mark.parametrize("overlap", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_nobody_reads_others_verdicts_and_then_changes_their_own(overlap, world, people, others, client_of):
    """The finding: with its last label an item's page showed both authors and two judges, and the label could then be
    changed: 40 of 40.
    """
    labelling = others[: overlap - 1]
    campaign = round_of(world, people, labelling, overlap=overlap)
    for annotator in (people["annotator"].annotator, *labelling):
        label_all(campaign, annotator)
    own = Label.objects.filter(annotator__person=people["annotator"])
    client = client_of("annotator")
    assert own.count() == ITEMS
    assert [shown_to(client_of(role), world) for role in BELOW] == [0, 0, 0]
    assert changed_by(client, own[:2]) == (2, set())  # nothing is shown yet

    answer = client_of("curator").post(f"/campaigns/{campaign.pk}/open-finished/", follow=True)
    assert "The items that have all their labels are open" in flat(answer)
    assert AuditEntry.objects.filter(action="finished-opened").count() == 1
    assert [shown_to(client_of(role), world) for role in BELOW] == [ITEMS] * 3
    given = list(own.order_by("pk").values_list("choice", flat=True))
    assert changed_by(client, own) == (0, {(409, "item-opened")})
    page = client.post(
        f"/annotate/assignments/{own[0].assignment_id}/submit/", {"editing": "1", "choice": "tie"}, follow=True
    )
    assert page.status_code == 409
    assert "A curator or an adjudicator can decide the item" in flat(page)
    assert list(own.order_by("pk").values_list("choice", flat=True)) == given


def test_items_that_lack_labels_stay_blind_when_finished_ones_are_opened(world, people, others, client_of):
    campaign = round_of(world, people, others, overlap=2)
    label_all(campaign, people["annotator"].annotator)
    for _ in range(5):
        shown = next_assignment(campaign=campaign, annotator=others[0], now=timezone.now())
        submit_label(assignment=shown, verdict={"choice": "left"}, now=timezone.now())
    name = campaign.name
    answer = client_of("curator").post(f"{API}/campaigns/{name}/open-finished/")
    assert answer.status_code == 200
    assert Item.objects.filter(blind=False).count() == 5
    mine = Label.objects.filter(annotator__person=people["annotator"])
    assert changed_by(client_of("annotator"), mine)[0] == ITEMS - 5
    shown = next_assignment(campaign=campaign, annotator=others[0], now=timezone.now())
    submit_label(assignment=shown, verdict={"choice": "left"}, now=timezone.now())
    assert not Item.objects.get(pk=shown.campaign_item.item_id).blind  # from now on, each that gets its last label
    again = client_of("curator").post(f"{API}/campaigns/{name}/open-finished/")
    assert (again.status_code, again.json()["detail"]) == (409, "The finished items are open already.")


def test_finished_items_are_not_opened_where_gold_is_hidden(world, people, client_of):
    campaign = round_of(world, people)
    CampaignItem.objects.filter(pk=campaign.campaign_items.first().pk).update(gold={"choice": "first"})
    with pytest.raises(Refused, match="hidden gold"):
        open_finished(campaign=campaign, by=people["curator"], now=timezone.now())
    assert "It would be what stays blind" in flat(client_of("curator").get(f"/campaigns/{campaign.pk}/"))


def test_a_round_that_was_closed_and_is_opened_again_keeps_its_labels_as_they_were(world, people, client_of):
    """A neighbour: all could be read between."""
    campaign = round_of(world, people)
    label_all(campaign, people["annotator"].annotator)
    close_campaign(campaign=campaign, now=timezone.now())
    assert shown_to(client_of("annotator"), world) == ITEMS
    open_campaign(campaign=campaign, again=True, by=people["curator"])
    assert Item.objects.filter(blind=True).count() == ITEMS
    assert changed_by(client_of("annotator"), Label.objects.all()) == (0, {(409, "item-opened")})


def test_an_item_whose_label_is_excluded_after_it_was_open_takes_no_changes(world, people, others, client_of):
    """A neighbour: it lacks a label again, and is blind again."""
    from annotations.campaigns.members import exclude_labels

    campaign = round_of(world, people, others[:1], overlap=2)
    for annotator in (people["annotator"].annotator, others[0]):
        label_all(campaign, annotator)
    open_finished(campaign=campaign, by=people["curator"], now=timezone.now())
    exclude_labels(campaign=campaign, annotator=others[0])
    assert Item.objects.filter(blind=True).count() == ITEMS
    mine = Label.objects.filter(annotator__person=people["annotator"])
    assert changed_by(client_of("annotator"), mine) == (0, {(409, "item-opened")})


def test_a_label_is_returned_only_while_its_author_can_still_answer_blind(world, people, client_of):
    campaign = round_of(world, people)
    label_all(campaign, people["annotator"].annotator)
    first, second = Label.objects.order_by("pk")[:2]
    return_label(label=first, by=people["curator"], note="Look at the hat.", now=timezone.now())
    mine = people["annotator"].annotator
    assert open_returns(mine, campaigns=[campaign]).count() == 1
    open_finished(campaign=campaign, by=people["curator"], now=timezone.now())
    assert not open_returns(mine, campaigns=[campaign]).exists()
    assert client_of("annotator").get(f"{API}/campaigns/Blind/returned/").json() == []
    with pytest.raises(Refused, match="Decide the item instead"):
        return_label(label=second, by=people["curator"], note="Look at the hat.", now=timezone.now())


@pytest.mark.one_database
def test_researchers_read_everything_when_the_round_is_closed(world, people, client_of):
    """The control: nothing is hidden for good."""
    campaign = round_of(world, people)
    label_all(campaign, people["annotator"].annotator)
    researcher = client_of("researcher")
    counted = [f"{API}/{what}/?page_size=100" for what in ("labels", "judgments", "responses")]
    assert [len(rows_of(researcher, address)) for address in counted] == [0, 0, 0]
    close_campaign(campaign=campaign, now=timezone.now())
    assert [len(rows_of(researcher, address)) for address in counted] == [ITEMS, 2 * ITEMS * 2, 2 * ITEMS]
    assert [shown_to(client_of(role), world) for role in BELOW] == [ITEMS] * 3


def test_labels_in_a_round_that_is_not_blind_can_be_changed_to_its_end(world, people, client_of):
    campaign = round_of(world, people, blind=False)
    label_all(campaign, people["annotator"].annotator)
    assert changed_by(client_of("annotator"), Label.objects.all())[0] == ITEMS


# ---- who wrote what is blind ----


def test_the_list_of_items_names_no_model_of_what_is_labelled_blind(world, people, client_of):
    campaign = round_of(world, people)
    address = f"{API}/items/?page_size=100"
    assert {len(row["responses"]) for row in rows_of(client_of("researcher"), address)} == {0}
    assert {len(row["responses"]) for row in rows_of(client_of("curator"), address)} == {2}
    close_campaign(campaign=campaign, now=timezone.now())
    assert {len(row["responses"]) for row in rows_of(client_of("researcher"), address)} == {2}


def version_two(texts=None):
    """The benchmark again, by models of other names; ``texts``: other answers than those of the first version."""
    second = Benchmark.objects.create(slug="blinded", version="2", title="blinded", visibility="public")
    other = questions("again", ["It is told."] * ITEMS, kind="guideline", models=texts or ("lark", "wren"))
    other.samples.update(benchmark=second)
    make_items(plan_items(kind="pair", benchmark=second))
    return Item.objects.filter(sample__benchmark=second)


def test_an_item_of_another_version_with_the_same_answers_is_blind_as_long_as_its_twin(world, people):
    twins = version_two()
    campaign = round_of(world, people)
    assert twins.filter(blind=True).count() == ITEMS
    label_all(campaign, people["annotator"].annotator)
    assert twins.filter(blind=True).count() == ITEMS
    open_finished(campaign=campaign, by=people["curator"], now=timezone.now())
    assert not Item.objects.filter(blind=True).exists()


def test_an_item_of_another_version_with_other_answers_is_not_blind(world, people):
    twins = version_two(("lark", "finch"))
    campaign = round_of(world, people)
    assert not twins.filter(blind=True).exists()
    Response.objects.filter(text="finch").update(text="wren")
    open_campaign(campaign=campaign)
    assert twins.filter(blind=True).count() == ITEMS
    close_campaign(campaign=campaign, now=timezone.now())
    assert not Item.objects.filter(blind=True).exists()


# ---- labels of before ----


@pytest.fixture
def late(world, people, others):
    """Labels of two people of which five were changed long after their items had both, and five at once."""
    campaign = round_of(world, people, others[:1], overlap=2)
    start = timezone.now() - timedelta(days=3)
    label_all(campaign, people["annotator"].annotator, at=start)
    label_all(campaign, others[0], at=start + timedelta(hours=1))
    labels = list(Label.objects.filter(annotator__person=people["annotator"]).order_by("pk"))
    for number, label in enumerate(labels[:10]):
        hours = 9 if number < 5 else 1.5
        Label.objects.filter(pk=label.pk).update(changed_at=start + timedelta(hours=hours))
    migration("annotations", "blind_at_writing").note_changed_late(apps, None)
    return campaign


def test_labels_changed_long_after_their_item_had_all_are_marked_by_the_update(late):
    assert Label.objects.filter(changed_late=True).count() == 5


def test_late_labels_are_compared_with_no_other_and_count_for_models(late, client_of):
    close_campaign(campaign=late, now=timezone.now())
    assert len(label_rows(late, every=True)) == 2 * ITEMS
    assert len(label_rows(late)) == 2 * ITEMS - 5
    curator = client_of("curator")
    view = "benchmark=blinded&kind=pair"
    models = curator.get(f"{API}/leaderboards/models/?{view}&source=individuals").json()
    assert [row["wins"] + row["ties"] + row["losses"] for row in models] == [2 * ITEMS] * 2
    agreement = curator.get(f"{API}/leaderboards/agreement/?{view}").json()
    assert {row["n"] for row in agreement if {row["a"], row["b"]} == {"annotator", "bea"}} == {ITEMS - 5}
    judges = curator.get(f"{API}/leaderboards/judges/?{view}").json()
    individuals = {row["n"] for row in judges if row["reference"] == "individuals" and row["metric"] == "kappa"}
    assert individuals == {2 * ITEMS - 5}
    assert "5 labels changed when others could be read" in flat(curator.get(f"/campaigns/{late.pk}/"))
    exported = b"".join(curator.get(f"/campaigns/{late.pk}/data/download/?as=jsonl").streaming_content).splitlines()
    assert sum(json.loads(line).get("changed_late", False) for line in exported) == 5


def test_the_update_makes_whole_rounds_blind_and_keeps_what_was_open_as_it_was(world, people, client_of):
    campaign = round_of(world, people)
    label_all(campaign, people["annotator"].annotator)
    Item.objects.update(blind=False)  # as before: they have their label
    module = migration("annotations", "blind_at_writing")
    module.note_opened(apps, None)
    module.note_blind(apps, None)
    assert Item.objects.filter(blind=True).count() == ITEMS
    assert changed_by(client_of("annotator"), Label.objects.all()) == (0, {(409, "item-opened")})
    assert Campaign.objects.get(pk=campaign.pk).finished_opened_at is None


@pytest.mark.parametrize("way", ["by hand", "by a file"])
def test_a_version_that_comes_in_while_people_label_is_blind_with_the_other(way, world, people, tmp_path):
    """A version brought in during a round would have named the authors."""
    campaign = round_of(world, people)
    second = Benchmark.objects.create(slug=world.slug, version="2", title="Second", visibility="public")
    for sample in world.samples.order_by("pk"):
        copied = Sample.objects.create(
            benchmark=second, key=sample.key, instruction=sample.instruction, position=sample.position
        )
        Response.objects.bulk_create(
            Response(sample=copied, model=answer.model, text=answer.text) for answer in sample.responses.all()
        )
    if way == "by hand":
        make_items(plan_items(kind="pair", benchmark=second))
    else:
        row = {"kind": "pair", "responses": ["blinded-lark", "blinded-wren"], "judge": "elsewhere", "choice": "first"}
        path = tmp_path / "judgments.jsonl"
        rows = [json.dumps(row | {"sample": key}) for key in second.samples.values_list("key", flat=True)]
        path.write_text("\n".join(rows), encoding="utf-8")
        call_command("import_judgments", "generic", str(path), benchmark="blinded@2")
    items = Item.objects.filter(sample__benchmark=second)
    assert items.filter(blind=True).count() == ITEMS
    close_campaign(campaign=campaign, now=timezone.now())
    assert not items.filter(blind=True).exists()
