"""A local right makes no global one: who came by an invitation labels on that benchmark, and is a visitor elsewhere."""

import json
import re

import pytest
from django.apps import apps
from django.test import Client
from django.utils import timezone

from accounts import actions, rights
from accounts.models import AuditEntry, Grant, Right, User
from accounts.rules import RULES, allowed, where
from accounts.tokens import make_token
from annotations.campaigns import invitations
from annotations.campaigns.actions import make_campaign
from annotations.campaigns.members import add_annotators, make_annotator, remove_annotator
from annotations.models import Assignment, Campaign, Invitation, Label, Membership
from bank.models import Benchmark
from evalsite.management.commands import migrate
from leaderboard.kept import pages as prepared
from leaderboard.models import PreparedPage
from tests.access.crawl import FORMS, crawl
from tests.access.test_one_benchmark import OPEN_DOORS
from tests.access.test_routes import SIGNED_IN, TABLE, doors, refused
from tests.access.world import PRIVATE, PUBLIC, UNSEEN, spellings
from tests.bank.test_submissions import migration
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.check("B1", "B2")]
PASSWORD = "long-enough-for-me"
PID = "5f1e0c8a9b7d4e3f2a1b0c9d"


def fresh(person):
    return User.objects.get(pk=person.pk)


def link_of(campaign, by, **options):
    options = {"days": 3} | options
    (made,) = invitations.invite(campaign=campaign, by=by, now=timezone.now(), **options)
    return f"/invitations/{invitations.token_of(made)}/"


def by_invitation(campaign, by):
    """A client of somebody who opens a link signed out, and makes an account."""
    client = Client()
    client.post(link_of(campaign, by), {"username": "newcomer", "password": PASSWORD})
    return client


def by_an_invented_id(campaign, by):
    client = Client()
    client.post(f"{link_of(campaign, by, most=3, outside=True)}?PROLIFIC_PID={PID}")
    return client


WAYS = [by_invitation, by_an_invented_id]


def whose(client):
    return User.objects.get(pk=client.session["_auth_user_id"])


def texts_met(client, campaign):
    """What a client reads of a campaign's items: by page, and by the API one after the other."""
    met = []
    for path in ("", "prepare/", "done/"):
        page = client.get(f"/annotate/{campaign.pk}/{path}", follow=True)
        met.append(flat(page) if page.status_code == 200 else "")
    client.post(f"/annotate/{campaign.pk}/begin/")
    for _ in range(20):
        page = client.get(f"/annotate/{campaign.pk}/", follow=True)
        met.append(flat(page) if page.status_code == 200 else "")
        answer = client.post(f"/api/v1/campaigns/{campaign.name}/next/", "{}", "application/json")
        if answer.status_code != 200:
            break
        met.append(json.dumps(answer.json()))
        given = {"assignment": answer.json()["assignment"], "choice": "left", "idempotency_key": f"{len(met)}"}
        client.post("/api/v1/labels/", given, "application/json")
    return " ".join(met)


@pytest.fixture
def two(world, people):
    """The finding's world: a researcher curates the public benchmark alone; a private one is open to all."""
    rights.grant(benchmark=PUBLIC, to=people["researcher"], right=Right.CURATE, by=people["curator"])
    everybody = make_campaign(
        name="For everybody", benchmark=Benchmark.objects.get(slug=PRIVATE), protocol="pairwise-criteria"
    )
    return world, fresh(people["researcher"]), everybody


@pytest.mark.parametrize("way", WAYS)
def test_who_was_let_into_one_benchmark_gets_no_item_of_another(way, two):
    world, by, everybody = two
    client = way(world.campaigns[PUBLIC], by)
    assert UNSEEN not in texts_met(client, everybody)
    assert not Assignment.objects.filter(campaign_item__campaign=everybody).exists()
    assert everybody.name not in flat(client.get("/annotate/"))
    assert everybody.name not in flat(client.get("/"))
    listed = client.get("/api/v1/campaigns/").json()["results"]
    assert [row["name"] for row in listed] == [world.campaigns[PUBLIC].name]


@pytest.mark.parametrize("way", WAYS)
def test_who_was_let_into_a_benchmark_labels_there(way, two):
    world, by, _ = two
    campaign = world.campaigns[PUBLIC]
    campaign.overlap = 3
    campaign.save()
    client = way(campaign, by)
    assert "How many?" in texts_met(client, campaign)
    person = whose(client)
    assert Label.objects.filter(annotator__person=person, campaign=campaign).count() == 3
    assert person.role == "guest"
    given = Grant.objects.get(person=person)
    assert (given.benchmark, given.right, given.invited) == (PUBLIC, "label", True)
    entry = AuditEntry.objects.get(action="right-granted", about=person.username)
    assert (entry.who, entry.command) == (by, "invitation")


def test_annotators_whom_an_administrator_made_still_enter_what_is_for_everybody(two, people, client_of):
    _, _, everybody = two
    assert UNSEEN in texts_met(client_of("annotator"), everybody)


def test_a_guest_enters_what_is_for_everybody_on_their_own_benchmark(two):
    world, by, _ = two
    beside = make_campaign(
        name="Beside", benchmark=world.samples[PUBLIC].benchmark, protocol="pairwise-criteria", blind=False
    )
    client = by_invitation(world.campaigns[PUBLIC], by)
    assert "Beside" in flat(client.get("/annotate/"))
    assert "How many?" in texts_met(client, beside)


# ---- every address ----


def test_a_guest_is_an_annotator_on_their_benchmark_and_a_visitor_elsewhere(world, people, client_of):
    """Every address: of their own benchmark as an annotator meets it, all others as somebody signed out does."""
    Campaign.objects.update(open_to_all=True)
    newcomer = User.objects.create_user("another", password=PASSWORD, role="annotator")
    make_annotator(newcomer)
    make_annotator(people["guest"])
    rights.let_in(person=people["guest"], benchmark=PUBLIC, by=people["curator"])

    def client_for(person):
        def make():
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(fresh(person))
            return client

        return make

    def met(person, slug, how):
        shared = set(doors(world, PUBLIC)) if slug == PRIVATE else set()
        # An invitation lets its reader in, whoever that is.
        at = [door for door in doors(world, slug) if door not in shared and door[0] != "annotations:invitation"]
        found = crawl(client_for(person), at, how)
        return {where_: answer for where_, answer in found.items() if where_[0] != "accounts:sign-out"}

    def asked(answer):
        return "refused" if refused(answer) else answer.status_code

    for how in ("get", "post"):
        own, theirs = met(people["guest"], PUBLIC, how), met(newcomer, PUBLIC, how)
        assert {w: asked(a) for w, a in own.items()} == {w: asked(a) for w, a in theirs.items()}
        elsewhere, visitors = met(people["guest"], PRIVATE, how), met(None, PRIVATE, how)
        different = {
            where_[0]
            for where_, answer in elsewhere.items()
            if asked(answer) != asked(visitors[where_])
            and not (where_[0] in OPEN_DOORS and answer.status_code in (404, 405, 415))
        }
        assert sorted(name for name in different if TABLE[name] != SIGNED_IN) == []
        for where_, answer in elsewhere.items():
            assert UNSEEN.encode() not in answer.everything, where_
            assert not any(secret in answer.everything for secret in spellings()), where_
    forms = crawl(client_for(people["guest"]), doors(world, PUBLIC), FORMS)
    assert [where_ for where_, answer in forms.items() if answer.status_code > 499] == []


def test_a_guest_whom_nobody_let_in_has_what_a_visitor_has_and_an_account(people, client_of):
    visitor, gives = RULES["read-public"].roles, {name for name, rule in RULES.items() if "guest" in rule.roles}
    assert "anonymous" in visitor
    assert gives == {"read-public", "be-signed-in"}
    client = client_of("guest")
    assert client.get("/annotate/").status_code == 403
    assert client.get("/accounts/settings/").status_code == 200
    assert client.get("/").status_code == 200
    assert "/annotate/" not in flat(client.get("/"))


def test_what_an_invitation_gives_shows_nothing_of_a_private_benchmark_but_the_items_that_are_given(world, people):
    client = by_invitation(world.campaigns[PRIVATE], people["curator"])
    assert UNSEEN in texts_met(client, world.campaigns[PRIVATE])
    person = whose(client)
    assert not allowed(person, "read-private", of=PRIVATE)
    assert not Benchmark.objects.filter(where(person, "read-private"), slug=PRIVATE).exists()
    assert client.get(f"/leaderboards/{PRIVATE}/models/").status_code == 404
    assert client.get(f"/api/v1/samples/?benchmark={PRIVATE}").json()["results"] == []
    rights.grant(benchmark=PRIVATE, to=person, right=Right.LABEL, by=people["curator"])  # on purpose, it shows it
    assert client.get(f"/leaderboards/{PRIVATE}/models/").status_code == 200


def test_tokens_of_a_guest_label_on_their_benchmark_alone(two):
    world, by, everybody = two
    client = by_invitation(world.campaigns[PUBLIC], by)
    offered = re.findall(r'name="scopes" value="(\w+)"', client.get("/accounts/tokens/").content.decode())
    assert offered == ["read", "label"]
    header = {"HTTP_AUTHORIZATION": f"Token {make_token(person=whose(client))[1]}"}

    def asked(campaign):
        path = f"/api/v1/campaigns/{campaign.name}/next/"
        return Client().post(path, "{}", "application/json", **header).status_code

    assert (asked(world.campaigns[PUBLIC]), asked(everybody)) == (200, 404)


# ---- how the right comes and ends ----


def test_a_guest_who_accepts_another_invitation_labels_on_that_benchmark_too(world, people):
    client = by_invitation(world.campaigns[PUBLIC], people["curator"])
    path = link_of(world.campaigns[PRIVATE], people["curator"])
    assert "Join as newcomer" in flat(client.get(path))
    assert client.post(path).url == f"/annotate/{world.campaigns[PRIVATE].pk}/"
    assert set(whose(client).grants.values_list("benchmark", flat=True)) == {PUBLIC, PRIVATE}


@pytest.mark.parametrize("role", ["annotator", "researcher", "curator"])
def test_an_account_with_another_role_that_accepts_stays_as_it_is(role, world, people, client_of):
    client_of(role).post(link_of(world.campaigns[PRIVATE], people["curator"]))
    person = fresh(people[role])
    assert (person.role, person.grants.count()) == (role, 0)
    is_member = Membership.objects.filter(campaign=world.campaigns[PRIVATE], annotator__person=person).exists()
    assert is_member == (role != "researcher")


def test_what_an_invitation_gave_ends_with_the_last_campaign_of_the_benchmark(world, people, client_of):
    first = world.campaigns[PUBLIC]
    client = by_invitation(first, people["curator"])
    person = whose(client)
    second = make_campaign(
        name="Second", benchmark=first.benchmark, protocol=first.protocol, annotators=[person], by=people["curator"]
    )
    now = timezone.now()
    remove_annotator(campaign=first, annotator=person.annotator, now=now, by=people["curator"])
    assert Grant.objects.filter(person=person).exists()
    client_of("curator").post(f"/campaigns/{second.pk}/annotators/{person.annotator.pk}/remove/")
    assert not Grant.objects.filter(person=person).exists()
    assert client.get("/annotate/").status_code == 403
    ended = AuditEntry.objects.get(action="right-ended", about=person.username)
    assert ended.who == people["curator"]
    assert client.post(link_of(first, people["curator"])).status_code == 200  # "You were removed": no way back
    assert not Grant.objects.filter(person=person).exists()
    page = client_of("curator").get(f"/campaigns/{first.pk}/")
    assert "newcomer" in flat(page)
    client_of("curator").post(f"/campaigns/{first.pk}/annotators/add/", {"people": [person.pk]})
    assert client.get(f"/annotate/{first.pk}/", follow=True).status_code == 200


def test_what_somebody_granted_a_guest_by_hand_outlives_their_campaigns(world, people):
    client = by_invitation(world.campaigns[PUBLIC], people["curator"])
    person = whose(client)
    rights.grant(benchmark=PUBLIC, to=person, right=Right.LABEL, by=people["curator"])
    remove_annotator(campaign=world.campaigns[PUBLIC], annotator=person.annotator, now=timezone.now())
    assert Grant.objects.get(person=person).right == "label"


def test_whom_staff_take_the_right_from_does_not_get_it_back_by_the_same_link(world, people, client_of):
    path = link_of(world.campaigns[PUBLIC], people["curator"])
    client = Client()
    client.post(path, {"username": "newcomer", "password": PASSWORD})
    page = f"/bank/benchmarks/{PUBLIC}@1/people/"
    assert "by invitation" in flat(client_of("curator").get(page))
    client_of("curator").post(page, {"end": Grant.objects.get(person=whose(client)).pk})
    client.post(path)
    assert not Grant.objects.exists()
    assert client.get(f"/annotate/{world.campaigns[PUBLIC].pk}/").status_code == 403


@pytest.mark.parametrize("way", WAYS)
def test_links_of_who_may_no_longer_run_the_campaign_let_nobody_in(way, two):
    world, by, _ = two
    path = link_of(world.campaigns[PUBLIC], by, most=3, outside=way is by_an_invented_id)
    came = Client().post(f"{path}?PROLIFIC_PID=came-before")
    rights.end(grant=Grant.objects.get(person=by))
    for one in (f"{path}?PROLIFIC_PID={PID}", path):
        assert Client().get(one).status_code == 404
    if way is by_an_invented_id:  # who came stays
        assert came.status_code == 302
        assert Client().post(f"{path}?PROLIFIC_PID=came-before").status_code == 302
    staff = Client()
    staff.force_login(User.objects.get(username="curator"))
    assert invitations.token_of(Invitation.objects.latest("pk")) not in flat(
        staff.get(f"/campaigns/{world.campaigns[PUBLIC].pk}/")
    )


def test_an_id_opens_no_account_that_was_let_do_more(world, people):
    path = f"{link_of(world.campaigns[PUBLIC], people['curator'], most=3, outside=True)}?PROLIFIC_PID={PID}"
    client = Client()
    client.post(path)
    rights.grant(benchmark=PUBLIC, to=whose(client), right=Right.CURATE, by=people["curator"])
    again = Client()
    assert again.post(path).status_code == 200
    assert "_auth_user_id" not in again.session


def test_erasing_a_guest_ends_what_they_were_let_do(world, people):
    client = by_invitation(world.campaigns[PUBLIC], people["curator"])
    person = whose(client)
    actions.erase(person=person, by=people["administrator"])
    assert not Grant.objects.exists()
    assert not AuditEntry.objects.filter(about="newcomer").exists()


# ---- who is one ----


def test_staff_see_who_are_guests_and_administrators_make_more_of_them(world, people, client_of):
    client = by_invitation(world.campaigns[PUBLIC], people["curator"])
    person = whose(client)
    assert ">guest</span>" in flat(client_of("curator").get(f"/campaigns/{world.campaigns[PUBLIC].pk}/"))
    assert ">guest</span>" not in flat(client_of("researcher").get(f"/campaigns/{world.campaigns[PUBLIC].pk}/"))
    administrator = client_of("administrator")
    listed = flat(administrator.get("/people/?role=guest"))
    assert ">newcomer</a>" in listed
    assert ">annotator</a>" not in listed
    administrator.post(f"/people/{person.pk}/", {"do": "role", "role": "annotator"})
    assert allowed(fresh(person), "label")
    administrator.post(f"/people/{person.pk}/", {"do": "role", "role": "guest"})
    assert not allowed(fresh(person), "label")
    assert allowed(fresh(person), "label", of=PUBLIC)


def test_accounts_that_came_by_an_invitation_before_become_guests_with_the_update(world, people, capsys):
    def came(name, *campaigns, how="invitation"):
        person, _ = actions.make_account(name=name, role="annotator", password=PASSWORD, how=how)
        for campaign in campaigns:
            add_annotators(campaign=campaign, people=[person])
        return person

    public, private = world.campaigns[PUBLIC], world.campaigns[PRIVATE]
    guest, both, outside = came("old-guest", public), came("in-both", public, private), came("in-none")
    left = came("left", private)
    remove_annotator(campaign=private, annotator=left.annotator, now=timezone.now())
    seeing = came("seeing", private)
    rights.grant(benchmark=PRIVATE, to=seeing, right=Right.VIEW)
    made = came("made-here", public, how="make_user")
    promoted = came("promoted", public)
    for role in ("researcher", "annotator"):
        actions.set_role(person=promoted, role=role, by=people["administrator"])
    migration("annotations", "guests").make_guests(apps, None)
    roles = {one.username: fresh(one).role for one in (guest, both, outside, left, seeing, made, promoted)}
    assert roles == dict.fromkeys(["old-guest", "in-both", "in-none", "left", "seeing"], "guest") | dict.fromkeys(
        ["made-here", "promoted"], "annotator"
    )
    found = set(Grant.objects.values_list("person__username", "benchmark", "right", "invited"))
    assert found == {
        ("old-guest", PUBLIC, "label", True),
        ("in-both", PUBLIC, "label", True),
        ("in-both", PRIVATE, "label", True),
        ("seeing", PRIVATE, "label", False),
    }
    assert people["annotator"].role == "annotator"
    User.objects.filter(pk=people["guest"].pk).delete()
    assert migrate.note_guests() == 5
    noted = AuditEntry.objects.get(action="role-changed", about="in-both")
    assert (noted.command, noted.details["labels_on"]) == ("migrate", [PRIVATE, PUBLIC])


def test_guests_share_the_pages_that_are_kept_for_their_role(world, people, monkeypatch):
    """Thousands may come by a link: none of them has a large board drawn anew."""
    monkeypatch.setattr(prepared, "MANY", -1)
    rights.let_in(person=people["guest"], benchmark=PUBLIC)
    other = User.objects.create_user("another", password=PASSWORD, role="guest")
    rights.let_in(person=other, benchmark=PUBLIC)
    for person in (people["guest"], other):
        client = Client()
        client.force_login(fresh(person))
        assert client.get(f"/leaderboards/{PUBLIC}/models/?source=some-judge").status_code == 202
    prepared.prepare(PreparedPage.objects.get().pk)
    for person in (people["guest"], other):
        client = Client()
        client.force_login(fresh(person))
        assert client.get(f"/leaderboards/{PUBLIC}/models/?source=some-judge").status_code == 200


def test_who_may_not_freeze_a_view_is_not_offered_it(world, people, client_of):
    def offered(client):
        return "Cite this view" in flat(client.get(f"/leaderboards/{PUBLIC}/models/?source=some-judge"))

    assert not offered(client_of("anonymous"))
    assert not offered(client_of("guest"))
    assert offered(client_of("annotator"))
    rights.let_in(person=people["guest"], benchmark=PUBLIC)
    assert offered(client_of("guest"))
