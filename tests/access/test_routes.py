"""Every route and who may open it, by session and by token. An undeclared route fails; test_crawl.py asks them all."""

import pytest
from django.urls import NoReverseMatch, reverse

from accounts.rules import RULES, rule_of
from leaderboard.registry import TABLES
from tests.access.conftest import ROLES
from tests.access.world import PRIVATE, PUBLIC, routes

pytestmark = pytest.mark.django_db

EVERYBODY = set(ROLES)
SIGNED_IN = EVERYBODY - {"anonymous"}  # a guest whom nobody let in anywhere is met; test_guests.py has the others
LABELLERS = {"annotator", "curator", "administrator"}
READERS = {"researcher", "curator", "administrator"}
STAFF = {"curator", "administrator"}

# Every route of the site and who may open it. A new route must be added here, by hand, on purpose.
TABLE = {
    "home": EVERYBODY,
    "leaderboard:find": EVERYBODY,
    "leaderboard:boards-fed": LABELLERS,
    "leaderboard:data": EVERYBODY,
    "leaderboard:model-detail": EVERYBODY,
    "leaderboard:judge-detail": EVERYBODY,
    "leaderboard:run-tryout": STAFF,
    "leaderboard:run-try-again": STAFF,
    "leaderboard:run-go-on": STAFF,
    "leaderboard:desiderata": EVERYBODY,
    "leaderboard:recipes": READERS,
    "leaderboard:recipe": READERS,
    "leaderboard:recipe-new": STAFF,
    "leaderboard:recipe-board": EVERYBODY,
    "leaderboard:recipe-yaml": READERS,
    "leaderboard:recipe-progress": READERS,
    "leaderboard:recipe-answers": EVERYBODY,
    "leaderboard:recipe-publish": STAFF,
    "leaderboard:steps": STAFF,
    "leaderboard:recipe-remove": STAFF,
    "leaderboard:evaluate": STAFF,
    "leaderboard:evaluation-retry": STAFF,
    "leaderboard:corruptions": EVERYBODY,
    "api-recipe-list": READERS,
    "api-recipe-detail": READERS,
    "api-evaluation-list": READERS,
    "api-evaluation-detail": READERS,
    "api-evaluation-retry": STAFF,
    "api-recipe-publish": STAFF,
    "api-leaderboard-recipes": EVERYBODY,
    "api-leaderboard-desiderata": EVERYBODY,
    "accounts:sign-in": EVERYBODY,
    "accounts:sign-out": SIGNED_IN,
    "accounts:code": EVERYBODY,
    "accounts:second-factor": SIGNED_IN,
    "accounts:settings": SIGNED_IN,
    "accounts:tokens": SIGNED_IN,
    "accounts:password": SIGNED_IN,
    "accounts:password-reset": EVERYBODY,
    "accounts:password-choose": EVERYBODY,
    "accounts:notices": SIGNED_IN,
    "accounts:views": SIGNED_IN,
    "people": {"administrator"},
    "audit": {"administrator"},
    "audit-export": {"administrator"},
    "person": {"administrator"},
    "teams": {"administrator"},
    "team": {"administrator"},
    "api-docs": EVERYBODY,
    "api-schema": EVERYBODY,
    "healthz": EVERYBODY,
    "readyz": EVERYBODY,
    "metrics": EVERYBODY,  # on this machine, or with the token: test_metrics
    "favicon": EVERYBODY,
    "bank:index": STAFF,
    "bank:access-log": {"administrator"},
    "bank:access-log-export": {"administrator"},
    "bank:image": EVERYBODY,
    "bank:benchmark-detail": STAFF,
    "bank:benchmark-new": STAFF,
    "bank:benchmark-edit": STAFF,
    "bank:benchmark-publish": STAFF,
    "bank:benchmark-export": STAFF,
    "bank:benchmark-people": STAFF,
    "bank:benchmark-check": STAFF,
    "bank:benchmark-split": STAFF,
    "bank:benchmark-drafts": STAFF,
    "bank:benchmark-reviews": STAFF,
    "bank:capabilities": STAFF,
    "bank:benchmark-models": STAFF,
    "bank:benchmark-items": STAFF,
    "bank:items-count": STAFF,
    "bank:samples-change": STAFF,
    "bank:sample-new": STAFF,
    "bank:sample-edit": STAFF,
    "bank:sample-history": STAFF,
    "bank:sample-check": STAFF,
    "bank:review-queue": STAFF,
    "bank:review": STAFF,
    "bank:round-close": STAFF,
    "bank:criteria-history": STAFF,
    "bank:sample-detail": STAFF,
    "bank:criteria": STAFF,
    "bank:exports": STAFF,
    "bank:export-file": STAFF,
    "bank:upload-list": STAFF,
    "bank:upload-detail": STAFF,
    "bank:upload-progress": STAFF,
    "bank:upload-confirm": STAFF,
    "bank:upload-columns": STAFF,
    "bank:upload-cancel": STAFF,
    "bank:upload-problems": STAFF,
    "bank:upload-template": STAFF,
    "bank:upload-dismiss": STAFF,
    "bank:upload-image": STAFF,
    "api-export-list": STAFF,
    "api-export-detail": STAFF,
    "api-export-file": STAFF,
    "api-upload-list": STAFF,
    "api-upload-detail": STAFF,
    "api-upload-confirm": STAFF,
    "api-upload-map": STAFF,
    "api-upload-cancel": STAFF,
    "judging:index": READERS,
    "judging:run-new": STAFF,
    "judging:run-estimate": STAFF,
    "judging:run-choices": STAFF,
    "judging:run-detail": READERS,
    "judging:run-progress": READERS,
    "judging:run-pause": STAFF,
    "judging:run-resume": STAFF,
    "judging:run-cancel": STAFF,
    "judging:run-saw-nothing": STAFF,
    "judging:run-retry": STAFF,
    "judging:run-analyses": STAFF,
    "judging:run-release": STAFF,
    "judging:run-release-confirm": STAFF,
    "judging:run-release-decide": STAFF,
    "judging:run-withhold": STAFF,
    "judging:judge-new": STAFF,
    "judging:judge-detail": READERS,
    "judging:judge-maker": STAFF,
    "judging:judge-probe": STAFF,
    "judging:collect-new": STAFF,
    "judging:attack-new": STAFF,
    "judging:trial-list": STAFF,
    "judging:trial-detail": STAFF,
    "judging:trial-prompt": STAFF,
    "judging:jury-new": STAFF,
    "judging:jury-compute": STAFF,
    "judging:judgment-list": READERS,
    "judging:judgment-export": READERS,
    "judging:judgment-detail": READERS,
    "judging:judgment-prompt": STAFF,
    "judging:webhooks": {"administrator"},
    "judging:template-list": READERS,
    "judging:template-detail": READERS,
    "judging:template-new": STAFF,
    "judging:template-preview": STAFF,
    "judging:template-discard": STAFF,
    "annotations:index": LABELLERS,
    "annotations:work": LABELLERS,
    "annotations:ahead": LABELLERS,
    "annotations:go-on": LABELLERS,
    "annotations:prepare": LABELLERS,
    "annotations:begin": LABELLERS,
    "annotations:done": LABELLERS,
    "annotations:say": LABELLERS,
    "annotations:assignment-detail": LABELLERS,
    "annotations:assignment-submit": LABELLERS,
    "annotations:assignment-skip": LABELLERS,
    "annotations:assignment-draft": LABELLERS,
    "annotations:assignment-image": LABELLERS,
    "annotations:campaign-list": READERS,
    "annotations:campaign-new": STAFF,
    "annotations:campaign-detail": READERS,
    "annotations:campaign-open": STAFF,
    "annotations:campaign-pause": STAFF,
    "annotations:campaign-close": STAFF,
    "annotations:campaign-open-finished": STAFF,
    "annotations:campaign-guidelines": STAFF,
    "annotations:campaign-add": STAFF,
    "annotations:campaign-remove": STAFF,
    "annotations:annotator-change": STAFF,
    "annotations:campaign-count": STAFF,
    "annotations:campaign-preview": STAFF,
    "annotations:campaign-scale": STAFF,
    "annotations:campaign-ballot": STAFF,
    "annotations:items-known": STAFF,
    "annotations:campaign-copy": STAFF,
    "annotations:campaign-saw-nothing": STAFF,
    "annotations:campaign-settings": STAFF,
    "annotations:guidelines-preview": STAFF,
    "annotations:guidelines-picture": SIGNED_IN,
    "annotations:campaign-invite": STAFF,
    "annotations:invitation-revoke": STAFF,
    "annotations:invitation": EVERYBODY,
    "annotations:campaign-agreement": READERS,
    "annotations:campaign-items": STAFF,
    "annotations:item-detail": STAFF,
    "annotations:item-decide": STAFF,
    "annotations:label-return": STAFF,
    "annotations:campaign-data": READERS,
    "annotations:campaign-download": READERS,
    "annotations:campaign-rule": STAFF,
    "annotations:run-doubts": STAFF,
    "annotations:doubts-add": STAFF,
    "annotations:run-subset": STAFF,
    "annotations:judgments-add": STAFF,
    "leaderboard:index": EVERYBODY,
    "leaderboard:models": EVERYBODY,
    "leaderboard:judges": EVERYBODY,
    "leaderboard:agreement": EVERYBODY,
    "leaderboard:answers": EVERYBODY,
    "leaderboard:models-compare": EVERYBODY,
    "leaderboard:judges-compare": EVERYBODY,
    "leaderboard:board-file": EVERYBODY,
    "leaderboard:snapshot-new": SIGNED_IN - {"guest"},
    "leaderboard:snapshot-list": EVERYBODY,
    "leaderboard:snapshot-detail": EVERYBODY,
    "leaderboard:snapshot-file": EVERYBODY,
    "leaderboard:snapshot-changes": EVERYBODY,
    "leaderboard:votes": EVERYBODY,
    "leaderboard:compare": EVERYBODY,
    "leaderboard:item": EVERYBODY,
    "leaderboard:benchmark": EVERYBODY,
    "leaderboard:plot": EVERYBODY,
    "leaderboard:picture": EVERYBODY,
    "leaderboard:leads": EVERYBODY,
    "leaderboard:edition-new": STAFF,
    "leaderboard:held-out": STAFF,
    "leaderboard:disagreements": READERS,
    "leaderboard:matrix": EVERYBODY,
    "leaderboard:profile": EVERYBODY,
    "leaderboard:runs-compare": EVERYBODY,
    "leaderboard:together": EVERYBODY,
    "leaderboard:outside-scores": EVERYBODY,
    "leaderboard:submission-list": READERS,
    "leaderboard:submission-new": READERS,
    "leaderboard:submission-export": STAFF,
    "leaderboard:submission-template": READERS,
    "leaderboard:submission-questions": READERS,
    "leaderboard:submission-rules": STAFF,
    "leaderboard:submission-detail": READERS,
    "leaderboard:submission-problems": READERS,
    "leaderboard:submission-marks": READERS,
    "leaderboard:submission-withdraw": READERS,
    "leaderboard:submission-restore": STAFF,
    "leaderboard:submission-release": STAFF,
    "leaderboard:submission-rescore": STAFF,
    "leaderboard:submission-judge-again": STAFF,
    "api-outside-score-list": EVERYBODY,
    "api-submission-list": READERS,
    "api-submission-detail": READERS,
    "api-submission-withdraw": READERS,
    "api-submission-restore": STAFF,
    "api-submission-release": STAFF,
    "api-submission-judge-again": STAFF,
    "api-leaderboard-models": EVERYBODY,
    "api-leaderboard-judges": EVERYBODY,
    "api-leaderboard-agreement": EVERYBODY,
    "api-leaderboard-bias": EVERYBODY,
    "api-leaderboard-correlation": EVERYBODY,
    "api-leaderboard-stand-in": EVERYBODY,
    "api-leaderboard-people-and-judge": EVERYBODY,
    "api-leaderboard-ceiling": EVERYBODY,
    "api-leaderboard-analyses": EVERYBODY,
    "api-leaderboard-repeats": EVERYBODY,
    "api-leaderboard-reviews": EVERYBODY,
    "api-leaderboard-campaign": READERS,
    "api-leaderboard-power": READERS,
    "api-leaderboard-apart": EVERYBODY,
    "api-leaderboard-variance": EVERYBODY,
    "api-leaderboard-versions": EVERYBODY,
    "api-leaderboard-abilities": EVERYBODY,
    "api-leaderboard-lengths": EVERYBODY,
    "api-leaderboard-contents": EVERYBODY,
    "api-leaderboard-letters": EVERYBODY,
    "api-leaderboard-extraction": EVERYBODY,
    "api-leaderboard-places": EVERYBODY,
    "api-leaderboard-compare": EVERYBODY,
    "api-compare-models": EVERYBODY,
    "api-compare-judges": EVERYBODY,
    "api-snapshot-list": EVERYBODY,
    "api-edition-list": EVERYBODY,
    "api-held-out-list": STAFF,
    "api-leaderboard-held-out": STAFF,
    "api-leaderboard-disagreements": READERS,
    "api-snapshot-detail": EVERYBODY,
    "api-snapshot-rows": EVERYBODY,
    "leaderboard:bias": EVERYBODY,
    "leaderboard:correlation": EVERYBODY,
    "leaderboard:method": EVERYBODY,
    "styleguide": EVERYBODY,
    "leaderboard:formulas": EVERYBODY,
    "api-judge-list": READERS,
    "api-judge-probe": STAFF,
    "api-judge-detail": READERS,
    "api-run-list": READERS,
    "api-run-detail": READERS,
    "api-run-attacks": READERS,
    "api-jury-list": READERS,
    "api-run-cancel": STAFF,
    "api-run-pause": STAFF,
    "api-run-resume": STAFF,
    "api-run-retry": STAFF,
    "api-webhook-list": {"administrator"},
    "api-webhook-detail": {"administrator"},
    "api-webhook-test": {"administrator"},
    "api-webhook-deliveries": {"administrator"},
    "api-prompt-list": READERS,
    "api-prompt-detail": READERS,
    "api-judgment-list": READERS,
    "api-judgment-detail": READERS,
    "api-judgment-analysis": STAFF,  # and of released runs researchers; see test_analyses.py
    "api-benchmark-list": EVERYBODY,
    "api-benchmark-detail": EVERYBODY,
    "api-benchmark-quotas": STAFF,
    "api-benchmark-publish": STAFF,
    "api-benchmark-export": STAFF,
    "api-draft-list": STAFF,
    "api-draft-detail": STAFF,
    "api-draft-take": STAFF,
    "api-draft-dismiss": STAFF,
    "api-sample-list": EVERYBODY,
    "api-sample-detail": EVERYBODY,
    "api-sample-criteria": STAFF,
    "api-model-list": EVERYBODY,
    "api-model-detail": EVERYBODY,
    "api-response-list": READERS,
    "api-recipe-response-list": READERS,
    "api-recipe-response-detail": READERS,
    "api-response-detail": READERS,
    "api-item-list": READERS,
    "api-item-detail": READERS,
    "api-campaign-list": SIGNED_IN,
    "api-campaign-detail": SIGNED_IN,
    "api-campaign-next": LABELLERS,
    "api-campaign-state": STAFF,
    "api-campaign-open-finished": STAFF,
    "api-campaign-members": STAFF,
    "api-campaign-member": STAFF,
    "api-campaign-invitations": STAFF,
    "api-campaign-invitation": STAFF,
    "api-campaign-returned": LABELLERS,
    "api-campaign-consent": LABELLERS,
    "api-campaign-labels": READERS,
    "api-assignment-image": LABELLERS,
    "api-label-list": READERS,
    "api-label-detail": LABELLERS,
}


def doors(world, slug=PUBLIC):
    """(name, path) of every route, with the objects of one benchmark in its places."""
    for name, route, _ in routes():
        if name not in TABLE:
            continue  # said by the first test
        arguments = world.arguments(route, slug)
        try:
            yield name, reverse(name, kwargs=arguments)
        except NoReverseMatch as error:
            pytest.fail(f"Say in World.arguments what stands in {route}: {error}")


@pytest.mark.check("B1")
def test_every_route_is_declared_and_in_the_table():
    found = {name: rule_of(view) for name, _, view in routes()}
    assert [name for name, rule in found.items() if rule not in RULES] == []
    assert set(found) == set(TABLE)


def refused(answer):
    login = answer.status_code == 302 and answer.headers["Location"].startswith("/accounts/sign-in/")
    return login or answer.status_code in (401, 403)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.check("B1")
def test_a_token_opens_what_a_session_opens(role, world, tokens, client):
    for name, path in doors(world):
        if path.startswith("/api/v1/"):
            answer = client.get(path, **tokens[role])
            assert answer.status_code == 405 or refused(answer) == (role not in TABLE[name]), (name, answer.status_code)


@pytest.mark.parametrize("role", ["anonymous", "guest", "annotator", "researcher"])
@pytest.mark.check("B2")
def test_what_is_private_is_as_if_absent(role, world, client_of):
    """A foreign id answers as an absent one does: 404, with the same words."""
    for name in ("api-benchmark-detail", "api-sample-detail", "api-response-detail", "api-item-detail"):
        if role not in TABLE[name]:
            continue
        route = next(route for found, route, _ in routes() if found == name)
        path = reverse(name, kwargs=world.arguments(route, PRIVATE))
        absent = reverse(name, kwargs={"pk": 10**9})
        foreign, missing = client_of(role).get(path), client_of(role).get(absent)
        assert foreign.status_code == missing.status_code == 404
        assert foreign.content == missing.content


@pytest.mark.check("B5")
def test_a_private_picture_is_not_served_below_staff(world, client_of):
    """The same picture in a public benchmark is: by itself a hash says nothing."""
    world.samples[PUBLIC].benchmark.visibility = "private"
    world.samples[PUBLIC].benchmark.save()
    image = world.samples[PUBLIC].images.get()
    path = reverse("bank:image", args=[image.sha256, image.kind])
    for role in ("anonymous", "guest", "annotator", "researcher"):
        assert client_of(role).get(path).status_code == 404
    assert client_of("curator").get(path).status_code == 200


@pytest.mark.parametrize(
    "query",
    [
        "criteria__icontains=q",
        "criterion__text__startswith=z",
        "sample__criteria=1",
        "ordering=answer",
        "ordering=criteria__text",
        "fields=criteria",
        "expand=criteria",
        "include=text",
        "search=zq7",
        "benchmark__samples__criteria__text=z",
        "run__judge__key_env=KEY",
        "page_size=1000000000",
        "page_size=-1",
        "page_size=٣",
        "&".join(f"f{n}=1" for n in range(1000)),
    ],
)
@pytest.mark.parametrize("role", ["anonymous", "researcher", "curator"])
@pytest.mark.check("A5", "E4")
def test_a_parameter_that_is_no_filter_is_an_error(role, query, world, client_of):
    for name, path in doors(world):
        if name.startswith("api-") and name.endswith("-list") and role in TABLE[name]:
            answer = client_of(role).get(f"{path}?{query}")
            assert answer.status_code == 400, (name, query)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.check("B1")
def test_every_address_without_arguments_answers_where_there_is_nothing_yet(role, people, client_of):
    client = client_of(role)
    client.raise_request_exception = False
    for name, route, _ in routes():
        if "<" not in route and name != "readyz":  # it says that no worker runs
            assert client.get(reverse(name)).status_code < 500, name


@pytest.mark.check("B1")
def test_an_undeclared_view_is_closed(rf, people):
    from django.contrib.auth.models import AnonymousUser
    from django.http import Http404, HttpResponse

    from accounts.middleware import AccessMiddleware

    request = rf.get("/new/")
    for user in (AnonymousUser(), people["administrator"]):
        request.user = user
        with pytest.raises(Http404):
            AccessMiddleware(lambda r: HttpResponse()).process_view(request, lambda r: HttpResponse(), (), {})


@pytest.mark.parametrize("role", ["anonymous", "guest", "annotator", "researcher"])
def test_boards_of_a_private_benchmark_are_as_if_absent(role, world, client_of):
    # Nothing of a benchmark, no page, and a page that the rule closes before anything is looked for.
    pages = (
        "index",
        "find",
        "boards-fed",
        "data",
        "model-detail",
        "judge-detail",
        "method",
        "formulas",
        "snapshot-new",
        "edition-new",
        "desiderata",
        "recipes",
        "corruptions",
        "profile",
        "runs-compare",
        "outside-scores",
    )
    other = [f"leaderboard:{page}" for page in pages]
    for name, path in doors(world, PRIVATE):
        if name.startswith("leaderboard:") and name not in other and "submission" not in name and role in TABLE[name]:
            assert client_of(role).get(path, follow=True).status_code == 404, name
    for what in (*TABLES, "models/compare", "judges/compare"):
        answer = client_of(role).get(f"/api/v1/leaderboards/{what}/?benchmark={PRIVATE}")
        absent = client_of(role).get(f"/api/v1/leaderboards/{what}/?benchmark=absent")
        assert (answer.status_code, answer.content) == (absent.status_code, absent.content), what
    home = client_of(role).get("/").content.decode()
    if role == "annotator":  # their home lists the campaigns that they label in
        home = home.replace(world.campaigns[PRIVATE].name, "")
    assert PRIVATE not in client_of(role).get("/leaderboards/").content.decode() + home
