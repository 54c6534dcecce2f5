"""Rights for one benchmark, beside the role: what a grant shows and changes, of its own benchmark and of no other."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import IntegrityError, transaction

from accounts import actions, audit, rights
from accounts.models import AuditEntry, Grant, Right, Role, Team, User
from accounts.rules import RULES, allowed, class_of, where, who
from accounts.tokens import make_token
from annotations.campaigns.members import add_annotators
from annotations.models import Assignment, Campaign, Label
from bank.errors import BadInput
from bank.models import Benchmark, Sample
from tests.access.crawl import crawl
from tests.access.test_routes import TABLE, doors
from tests.access.world import PRIVATE, PUBLIC, UNSEEN, spellings

pytestmark = pytest.mark.django_db
BOARD = f"/leaderboards/{PRIVATE}/models/"


def fresh(person):
    """As the next request finds them: rights are read once for an object."""
    return User.objects.get(pk=person.pk)


@pytest.fixture
def granted(people):
    """``granted(right, slug)`` grants the researcher a right."""

    def grant(right, slug=PRIVATE, to=None):
        return rights.grant(benchmark=slug, to=to or people["researcher"], right=right, by=people["curator"])

    return grant


# ---- the table ----


def test_each_right_includes_those_before_it_and_none_gives_what_administrators_do(people, granted):
    gives = {rule: found.right for rule, found in RULES.items() if found.right}
    assert gives["read-private"] == Right.VIEW
    assert not {"administer", "be-signed-in", "submit", "grant-rights"} & set(gives)
    for right in Right:
        granted(right)
        person = fresh(people["researcher"])
        for rule, least in gives.items():
            if Role.RESEARCHER not in RULES[rule].roles:
                assert allowed(person, rule, of=PRIVATE) == (list(Right).index(right) >= list(Right).index(least))
            assert allowed(person, rule) == allowed(person, rule, of=PUBLIC) == (Role.RESEARCHER in RULES[rule].roles)


def test_a_grant_lowers_nothing_and_is_nothing_to_who_is_switched_off_or_signed_out(people, granted):
    granted(Right.VIEW, to=people["administrator"])
    assert all(allowed(fresh(people["administrator"]), rule, of=PRIVATE) for rule in RULES)
    granted(Right.VIEW)
    person = fresh(people["researcher"])
    person.is_active = False
    assert not allowed(person, "read-private", of=PRIVATE)
    assert not allowed(AnonymousUser(), "read-private", of=PRIVATE)


def test_everything_and_nothing_stay_what_they_are_beside_other_conditions(world, people):
    found = [
        Benchmark.objects.filter(where(people[role], "read-private") | where(people[role], "administer")).count()
        for role in ("administrator", "curator", "researcher")
    ]
    assert found == [2, 2, 0]


def test_a_grant_is_for_a_person_or_a_team_and_for_one_right(people):
    team = Team.objects.create(name="readers")
    for values in ({}, {"person": people["researcher"], "team": team}):
        with pytest.raises(IntegrityError), transaction.atomic():
            Grant.objects.create(benchmark=PRIVATE, right=Right.VIEW, **values)
    with pytest.raises(IntegrityError), transaction.atomic():
        Grant.objects.create(benchmark=PRIVATE, right="rule", team=team)


# ---- seeing a private benchmark ----


@pytest.mark.parametrize("role", [pytest.param("annotator", marks=pytest.mark.soak), "researcher"])
def test_who_may_view_a_private_benchmark_meets_it_as_the_role_meets_a_public_one(role, world, people, client_of):
    def met(slug):
        made = client_of(role)
        made.raise_request_exception = False
        opened = [door for door in doors(world, slug) if role in TABLE[door[0]]]
        return crawl(lambda: made, opened, "get")

    def by_route(found):
        return {name: answer.status_code for (name, *_), answer in found.items()}

    public, absent = met(PUBLIC), met(PRIVATE)
    rights.grant(benchmark=PRIVATE, to=people[role], right=Right.VIEW)
    shown = met(PRIVATE)
    assert by_route(shown) == by_route(public)
    assert by_route(absent) != by_route(public)
    for where_, answer in shown.items():
        assert not any(secret in answer.everything for secret in spellings()), where_
        assert f"{UNSEEN}-draft".encode() not in answer.everything, where_
        assert f"{UNSEEN}-part".encode() not in answer.everything, where_


def test_a_right_and_its_end_hold_from_the_next_request_whatever_was_kept(world, people, client_of, granted):
    other = User.objects.create_user("another", password="a-long-password", role="researcher")
    clients = {"granted": client_of("researcher"), "other": client_of("researcher")}
    clients["other"].force_login(other)

    def met(who):
        pages = ["/", "/leaderboards/", "/data/", f"/find/?q={PRIVATE}", "/api/v1/benchmarks/", BOARD]
        answers = [clients[who].get(page) for page in pages]
        return [PRIVATE in answer.content.decode() for answer in answers[:-1]], answers[-1].status_code

    nothing = met("other")
    assert nothing[1] == 404
    assert met("granted") == nothing
    given = granted(Right.VIEW)
    assert met("granted")[1] == 200
    assert met("granted") != nothing
    assert met("other") == nothing  # in the same role, after the page was kept
    rights.end(grant=given, by=people["curator"])
    assert met("granted") == nothing


def test_what_is_kept_for_a_role_is_kept_apart_for_who_was_granted_more(people, granted):
    before = class_of(fresh(people["researcher"]))
    granted(Right.VIEW)
    viewing = class_of(fresh(people["researcher"]))
    granted(Right.CURATE)
    assert len({before, viewing, class_of(fresh(people["researcher"]))}) == 3


def test_a_team_is_a_list_of_people(world, people, client_of, granted):
    team = rights.make_team(name=" Readers  of it ", by=people["administrator"])
    assert team.name == "Readers of it"
    granted(Right.VIEW, to=team)
    assert client_of("researcher").get(BOARD).status_code == 404
    rights.set_member(team=team, person=people["researcher"], member=True)
    assert client_of("researcher").get(BOARD).status_code == 200
    rights.set_member(team=team, person=people["researcher"], member=False)
    assert client_of("researcher").get(BOARD).status_code == 404
    rights.set_member(team=team, person=people["researcher"], member=True)
    rights.end_team(team=team)
    assert client_of("researcher").get(BOARD).status_code == 404
    assert not Grant.objects.exists()


def test_a_token_reads_what_its_owner_was_granted_and_needs_the_scope_of_each_rule(world, people, client, granted):
    def met(scopes):
        header = {"HTTP_AUTHORIZATION": f"Token {make_token(person=fresh(people['researcher']), scopes=scopes)[1]}"}
        return PRIVATE in client.get("/api/v1/benchmarks/", **header).content.decode()

    before = make_token(person=people["researcher"])[0].scopes
    assert not met(["read"])
    granted(Right.VIEW)
    assert met(["read"])
    assert not met(["submit"])
    assert make_token(person=fresh(people["researcher"]))[0].scopes == before


def test_the_log_names_who_was_granted_what_until_they_are_erased(people, granted):
    given = granted(Right.VIEW)
    granted(Right.CURATE)
    granted(Right.CURATE)
    rights.end(grant=given, by=people["curator"])
    team = rights.make_team(name="readers")
    rights.set_member(team=team, person=people["researcher"], member=True)
    granted(Right.VIEW)
    entries = AuditEntry.objects.filter(action__startswith="right").order_by("number")
    assert [(entry.action, entry.details["right"]) for entry in entries] == [
        ("right-granted", "view"),
        ("right-granted", "curate"),
        ("right-ended", "curate"),
        ("right-granted", "view"),
    ]
    assert {entry.about for entry in entries} == {"researcher"}
    actions.erase(person=people["researcher"], by=people["administrator"])
    assert not Grant.objects.exists()
    assert not team.members.exists()
    assert "researcher" not in AuditEntry.objects.filter(action__in=audit.OF_ACCOUNTS).values_list("about", flat=True)
    assert list(audit.broken()) == []


def test_samples_of_a_private_benchmark_are_seen_once_approved(world, people, granted):
    granted(Right.VIEW)
    seen = Sample.objects.visible_to(fresh(people["researcher"])).filter(benchmark__slug=PRIVATE)
    assert set(seen.values_list("status", flat=True)) == {"approved"}


# ---- labelling ----


def test_who_may_label_on_a_benchmark_labels_in_its_campaigns_and_in_no_other(world, people, client_of, granted):
    researcher = people["researcher"]
    Campaign.objects.update(open_to_all=True)
    asked = {slug: f"/annotate/{campaign.pk}/prepare/" for slug, campaign in world.campaigns.items()}
    granted(Right.VIEW)
    with pytest.raises(BadInput):
        add_annotators(campaign=world.campaigns[PRIVATE], people=[fresh(researcher)])
    assert client_of("researcher").get(asked[PRIVATE]).status_code == 403
    given = granted(Right.LABEL)
    add_annotators(campaign=world.campaigns[PRIVATE], people=[fresh(researcher)])
    with pytest.raises(BadInput):
        add_annotators(campaign=world.campaigns[PUBLIC], people=[fresh(researcher)])
    client = client_of("researcher")
    assert client.get(asked[PRIVATE]).status_code == 200
    assert client.get(asked[PUBLIC]).status_code == 404
    index = client.get("/annotate/").content.decode()
    assert world.campaigns[PRIVATE].name in index
    assert world.campaigns[PUBLIC].name not in index
    client.post(f"/annotate/{world.campaigns[PRIVATE].pk}/begin/")
    assert client.get(f"/annotate/{world.campaigns[PRIVATE].pk}/").status_code == 200
    mine = Assignment.objects.get(annotator__person=researcher)
    page = f"/annotate/assignments/{mine.pk}/"
    assert client.get(page).status_code == 200
    client.post(f"{page}submit/", {"choice": "left", "key": "one-of-mine"})
    assert Label.objects.filter(annotator__person=researcher, campaign=world.campaigns[PRIVATE]).count() == 1
    rights.end(grant=given)
    assert client.get(page).status_code == 403
    assert client.get("/annotate/").status_code == 403
    assert who("label", of=world.campaigns[PRIVATE].benchmark).filter(pk=researcher.pk).count() == 0


def test_a_token_with_the_scope_labels_where_its_owner_may(world, people, client, granted):
    granted(Right.LABEL)
    researcher = fresh(people["researcher"])
    add_annotators(campaign=world.campaigns[PRIVATE], people=[researcher])

    def asked(slug, scopes):
        header = {"HTTP_AUTHORIZATION": f"Token {make_token(person=researcher, scopes=scopes)[1]}"}
        return client.post(
            f"/api/v1/campaigns/{world.campaigns[slug].name}/next/", "{}", "application/json", **header
        ).status_code

    assert asked(PRIVATE, ["label"]) == 200
    assert asked(PRIVATE, ["read"]) == 403
    assert asked(PUBLIC, ["label"]) == 404


# ---- the pages ----


def test_staff_grant_and_end_rights_on_a_benchmarks_page(world, people, client_of):
    page, client = f"/bank/benchmarks/{PRIVATE}@1/people/", client_of("curator")
    assert "Nobody is named" in client.get(page).content.decode()
    for wrong in ({"person": "nobody"}, {}, {"person": "researcher", "team": world.team.pk}):
        assert client.post(page, {"right": "view"} | wrong).status_code == 400
    client.post(page, {"person": "researcher", "right": "view"})
    client.post(page, {"team": world.team.pk, "right": "label"})
    assert client_of("researcher").get(BOARD).status_code == 200
    assert client_of("researcher").get(page).status_code == 403
    answer = client.get(page).content.decode()
    assert "see it while it is private" in answer
    assert "team of 0" in answer
    for given in Grant.objects.all():
        client.post(page, {"end": given.pk})
    assert client.post(page, {"end": "x"}).status_code == 404
    assert client_of("researcher").get(BOARD).status_code == 404


def test_administrators_make_teams(people, client_of):
    client = client_of("administrator")
    page = client.post("/people/teams/", {"name": "readers"}).headers["Location"]
    client.post("/people/teams/", {"name": "readers"})
    assert Team.objects.count() == 1
    assert client.post(page, {"add": "1", "person": "nobody"}).status_code == 400
    client.post(page, {"add": "1", "person": "Researcher"})
    assert Team.objects.get().members.get() == people["researcher"]
    client.post(page, {"remove": "researcher"})
    assert not Team.objects.get().members.exists()
    client.post(page, {"end": "1"})
    assert not Team.objects.exists()


def test_a_second_factor_is_required_of_who_curates_as_it_is_of_staff(world, people, client_of, granted, settings):
    settings.SECOND_FACTOR_FOR_STAFF = True
    granted(Right.LABEL)
    assert client_of("researcher").get(BOARD).status_code == 200
    granted(Right.CURATE)
    assert client_of("researcher").get(BOARD).headers["Location"] == "/accounts/codes/"
