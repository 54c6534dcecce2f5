"""A researcher who curates one benchmark, beside the same researcher before: every address of both benchmarks."""

import html
import re

import pytest
from django.core.exceptions import PermissionDenied
from django.utils import timezone

import bank.criteria
from accounts import rights
from accounts.models import Right, User
from accounts.rules import ANYWHERE, opened_by
from accounts.tokens import make_token
from annotations.models import Annotator, Campaign, Label
from bank import database, guard
from bank.models import Benchmark, CriteriaAccess, Response
from judging.models import Judge, Judgment, Run, Trial
from leaderboard.benchmarks import to_compare
from leaderboard.view import Address
from tests.access.crawl import FORMS, crawl
from tests.access.test_crawl import OTHER
from tests.access.test_routes import doors, refused
from tests.access.world import CANARY, PRIVATE, PUBLIC, UNSEEN, rewrite, routes

pytestmark = pytest.mark.django_db
# Doors for whoever labels or curates anything; what lies behind is asked for by condition.
OPEN_DOORS = {name for name, _, view in routes() if opened_by(view) is ANYWHERE}
# What opens to somebody with every right for a benchmark.
OPENED = set(
    """
    annotations:ahead annotations:annotator-change annotations:assignment-detail annotations:assignment-draft
    annotations:assignment-image annotations:assignment-skip annotations:assignment-submit annotations:begin
    annotations:campaign-ballot annotations:campaign-close annotations:campaign-copy annotations:campaign-count
    annotations:campaign-guidelines annotations:campaign-invite annotations:campaign-items annotations:campaign-new
    annotations:campaign-open annotations:campaign-open-finished
    annotations:campaign-pause annotations:campaign-preview annotations:campaign-remove
    annotations:campaign-saw-nothing
    annotations:campaign-rule annotations:campaign-scale annotations:campaign-settings annotations:done
    annotations:doubts-add annotations:go-on annotations:index annotations:invitation-revoke annotations:item-decide
    annotations:item-detail annotations:items-known annotations:label-return annotations:prepare
    annotations:run-doubts annotations:run-subset annotations:say annotations:work
    api-assignment-image api-benchmark-export api-benchmark-publish api-benchmark-quotas api-campaign-consent
    api-campaign-invitation api-campaign-invitations api-campaign-member api-campaign-next api-campaign-returned
    api-campaign-open-finished
    api-campaign-state api-export-detail api-export-file api-export-list api-judgment-analysis api-label-detail
    api-label-list api-run-cancel api-run-pause
    api-run-resume api-run-retry api-sample-criteria api-upload-cancel api-upload-confirm api-upload-detail
    api-upload-list api-upload-map
    bank:benchmark-check bank:benchmark-detail bank:benchmark-drafts bank:benchmark-edit bank:benchmark-export
    bank:benchmark-items bank:benchmark-publish bank:benchmark-reviews bank:benchmark-split bank:capabilities
    bank:criteria bank:criteria-history bank:export-file bank:exports bank:index bank:items-count bank:review
    bank:review-queue bank:round-close
    bank:sample-check bank:sample-detail bank:sample-edit bank:sample-history bank:sample-new bank:samples-change
    bank:upload-cancel bank:upload-columns bank:upload-confirm bank:upload-detail bank:upload-dismiss bank:upload-image
    bank:upload-list bank:upload-problems bank:upload-progress bank:upload-template
    judging:judgment-prompt judging:run-cancel judging:run-pause judging:run-resume judging:run-retry
    judging:run-saw-nothing
    judging:trial-detail judging:trial-prompt
    leaderboard:boards-fed leaderboard:edition-new leaderboard:held-out leaderboard:steps
    """.split()
)
ALL = "all"
NAV = re.compile(rb"<nav\b.*?</nav>", re.DOTALL)  # it has another link for who curates something


@pytest.fixture
def met(world, client_of, monkeypatch):
    """``met()``: what each address of both benchmarks answers to the researcher."""
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    monkeypatch.setattr(database, "now", lambda: now)

    def make():
        client = client_of("researcher")
        client.raise_request_exception = False
        return client

    def ask(*how):
        """By (method, slug), of these methods. What names no benchmark is the same address for both, and is asked for
        once; other forms are asked of what opens.
        """
        of_each = {slug: list(doors(world, slug)) for slug in (PUBLIC, PRIVATE)}
        shared = [door for door in of_each[PUBLIC] if door in of_each[PRIVATE]]
        found = {}
        for slug in (ALL, PUBLIC, PRIVATE):
            addresses = shared if slug == ALL else [door for door in of_each[slug] if door not in shared]
            found["get", slug] = crawl(make, addresses, "get")
            if FORMS in how:
                opened = [(name, path) for (name, path, _), at in found["get", slug].items() if at.status_code == 200]
                found[FORMS, slug] = crawl(make, opened, FORMS)
            if "post" in how:
                found["post", slug] = crawl(make, addresses, "post")
        return found

    return ask


@pytest.mark.parametrize("forms", [(), pytest.param((FORMS,), marks=pytest.mark.soak)])
@pytest.mark.check("A1", "B1", "B2")
def test_a_curator_of_one_benchmark_learns_nothing_of_another(world, people, met, forms):
    before = met("get", *forms, "post")
    rights.grant(benchmark=PUBLIC, to=people["researcher"], right=Right.RELEASE)
    after = met("get", *forms, "post")
    broken, changed, told = [], [], []
    for how, slug in after:
        for where, answer in after[how, slug].items():
            was = before[how, slug].get(where)
            if answer.status_code >= 500:
                broken.append((how, where))
            if PRIVATE.encode() in answer.everything and not (was and PRIVATE.encode() in was.everything):
                told.append((how, where))
            if where[0] in OPEN_DOORS and answer.status_code != 200:
                continue  # opened, and what the address names is as if absent
            if slug == PRIVATE and (was is None or NAV.sub(b"", answer.body) != NAV.sub(b"", was.body)):
                changed.append((how, where))
    assert (broken, changed, told) == ([], [], [])
    opened = {
        where[0]
        for how in ("get", "post")
        for slug in (ALL, PUBLIC)
        for where, answer in after[how, slug].items()
        if refused(before[how, slug][where]) and not refused(answer)
    }
    assert opened == OPENED
    # And nothing that shows depends on what the other one hides.
    rewrite(world, OTHER, [PRIVATE])
    again = met("get", *forms)
    assert [
        (*asked, *where) for asked in again for where, answer in again[asked].items() if answer != after[asked][where]
    ] == []


@pytest.fixture
def curate(people):
    """``curate(right)`` grants the researcher a right for the public benchmark."""

    def grant(right=Right.CURATE):
        return rights.grant(benchmark=PUBLIC, to=people["researcher"], right=right, by=people["curator"])

    return grant


def test_criteria_are_read_where_one_curates_and_each_reading_is_logged(world, client_of, curate):
    curate()
    client, before = client_of("researcher"), CriteriaAccess.objects.count()
    for slug, status in ((PUBLIC, 200), (PRIVATE, 403)):
        answer = client.get(f"/bank/samples/{world.samples[slug].pk}/criteria/")
        assert (answer.status_code, CANARY.encode() in html.unescape(answer.content.decode()).encode()) == (
            status,
            slug == PUBLIC,
        )
        assert client.get(f"/api/v1/samples/{world.samples[slug].pk}/criteria/").status_code == (
            200 if slug == PUBLIC else 403
        )
    assert CriteriaAccess.objects.count() == before + 2


def test_readers_of_criteria_ask_for_every_sample(world, people, curate):
    curate()
    person = User.objects.get(pk=people["researcher"].pk)
    for samples in ([world.samples[PRIVATE]], list(world.samples.values()), []):
        with pytest.raises(PermissionDenied):
            bank.criteria.for_staff(user=person, samples=samples, how="page")
    assert bank.criteria.for_staff(user=person, samples=[world.samples[PUBLIC]], how="page")
    with pytest.raises(PermissionDenied):
        bank.criteria.edit(user=person, sample=world.samples[PRIVATE], rows=[])
    ids = [sample.pk for sample in world.samples.values()]
    with pytest.raises(PermissionDenied):
        bank.criteria.log_quoted(user=person, sample_ids=ids, how="export", reason="to see")


def test_raw_tables_hold_the_rows_of_what_one_curates_alone(world, people, curate):
    curate()
    person = User.objects.get(pk=people["researcher"].pk)
    with guard.serving(lambda: person):
        found = {
            *Judgment.objects.values_list("run__benchmark__slug", flat=True),
            *Trial.objects.values_list("run__benchmark__slug", flat=True),
            *Label.objects.values_list("campaign__benchmark__slug", flat=True),
            *Response.objects.values_list("sample__benchmark__slug", flat=True),
            *Response.all_objects.values_list("sample__benchmark__slug", flat=True),
        }
    assert found == {PUBLIC}


def test_what_curating_gives_ends_where_releasing_begins(world, client_of, curate):
    curate()
    publish, edition = f"/bank/benchmarks/{PUBLIC}@1/publish/", f"/leaderboards/{PUBLIC}@1/models/editions/new/"
    client = client_of("researcher")
    assert [client.get(page).status_code for page in (publish, edition)] == [403, 403]
    curate(Right.RELEASE)
    assert client.get(publish).status_code == 200
    assert client.get(edition).status_code in (200, 302)
    client.post(publish, {"visibility": "private"})
    assert Benchmark.objects.get(slug=PUBLIC).visibility == "private"
    assert client.get(f"/bank/benchmarks/{PUBLIC}@1/people/").status_code == 403
    assert client.get("/bank/benchmarks/new/").status_code == 403


def test_a_curator_of_one_benchmark_writes_its_samples_and_runs_its_campaigns(world, people, client_of, curate):
    curate()
    client = client_of("researcher")
    sample = world.samples[PUBLIC]
    assert CANARY in html.unescape(client.get(f"/bank/samples/{sample.pk}/edit/").content.decode())
    answer = client.post(f"/bank/benchmarks/{PUBLIC}@1/capabilities/", {"do": "add", "name": "Reasoning"})
    assert answer.status_code == 302
    assert sample.benchmark.capabilities.filter(name="Reasoning").exists()
    page = client.get("/campaigns/new/").content.decode()
    assert PUBLIC in page
    assert PRIVATE not in page
    assert UNSEEN not in page
    made = {"name": "mine", "protocol": "pair", "how": "all", "who": "these", "lease_minutes": 30, "order": "least"}
    made |= {"overlap": 1, "draft": "1", "blind": "on"}
    for slug in (PRIVATE, PUBLIC):
        client.post("/campaigns/new/", made | {"benchmark": world.samples[slug].benchmark_id})
        assert Campaign.objects.filter(name="mine").exists() == (slug == PUBLIC)


def test_names_of_annotators_stay_with_the_role(world, people, client_of, curate):
    """A pseudonym is the same on every benchmark: who knows it once knows who labelled elsewhere."""
    Annotator.objects.update(name="Erika Mustermann")
    curate(Right.RELEASE)
    client, pk = client_of("researcher"), world.campaigns[PUBLIC].pk
    place = world.assignments[PUBLIC].campaign_item_id
    pages = [
        *(f"/campaigns/{pk}/", f"/campaigns/{pk}/agreement/", f"/campaigns/{pk}/items/{place}/"),
        *(f"/leaderboards/{PUBLIC}/agreement/", f"/leaderboards/{PUBLIC}/judges/disagreements/"),
        *(f"/api/v1/leaderboards/agreement/?benchmark={PUBLIC}", "/api/v1/labels/"),
        *(f"/campaigns/{pk}/data/download/?as=jsonl&names=1", "/campaigns/new/"),
    ]
    named = set()
    for page in pages:
        for who in ("curator", "researcher"):
            answer = client_of(who).get(page)
            assert answer.status_code == 200, page
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            named |= {(who, page)} if b"Erika" in body else set()
    assert len(named) > 4
    assert {who for who, _ in named} == {"curator"}
    asked = {"what": "labels", "shape": "jsonl", "names": "on", "reason": "to see"}
    assert "Erika" not in client.post(f"/bank/benchmarks/{PUBLIC}@1/export/", asked).content.decode()
    assert client.get(f"/api/v1/campaigns/{world.campaigns[PUBLIC].name}/members/").status_code == 403


def test_an_annotator_who_curates_one_benchmark_reads_nobodys_labels_elsewhere(world, people, client_of):
    client, address = client_of("annotator"), "/api/v1/labels/"
    assert client.get(address).status_code == 403
    rights.grant(benchmark=PUBLIC, to=people["annotator"], right=Right.CURATE)
    rights.grant(benchmark=PRIVATE, to=people["annotator"], right=Right.VIEW)
    answer = client.get(address)
    assert {row["benchmark"] for row in answer.json()["results"]} == {f"{PUBLIC}@1"}
    assert client.get(f"/campaigns/{world.campaigns[PUBLIC].pk}/").status_code == 200
    assert client.get(f"/campaigns/{world.campaigns[PRIVATE].pk}/").status_code == 403


@pytest.mark.parametrize("right", [Right.CURATE, Right.RELEASE])
def test_no_step_of_a_benchmark_leads_where_its_curator_may_not_go(world, client_of, curate, right):
    curate(right)
    client = client_of("researcher")
    page = client.get(f"/leaderboards/{PUBLIC}@1/steps/").content.decode()
    links = re.findall(r'href="([^"]+)"', page)
    assert links
    assert [client.get(html.unescape(link)).status_code for link in links] == [200] * len(links)


def test_what_a_run_may_cost_stays_with_the_role(world, client_of, curate):
    curate(Right.RELEASE)
    run = world.runs[PUBLIC]
    Run.objects.filter(pk=run.pk).update(state=Run.State.PAUSED, budget=1.0)
    client = client_of("researcher")
    api = f"/api/v1/runs/{run.pk}/resume/"
    assert client.post(api, {"budget": 50}, content_type="application/json").status_code == 403
    client.post(f"/judging/runs/{run.pk}/resume/", {"budget": "50"})
    run.refresh_from_db()
    assert (run.budget, run.state in Run.GOING) == (1.0, True)


def test_boards_are_live_where_one_curates_and_as_before_elsewhere(world, people, curate):
    curate()
    rights.grant(benchmark=PRIVATE, to=people["researcher"], right=Right.VIEW)
    person = User.objects.get(pk=people["researcher"].pk)
    named = {slug: Benchmark.objects.get(slug=slug) for slug in (PUBLIC, PRIVATE)}
    staff = {slug: Address(person, "leaderboard:models", slug, one).staff for slug, one in named.items()}
    assert staff == {PUBLIC: True, PRIVATE: False}
    assert [(str(one), is_staff) for one, is_staff in to_compare(named[PUBLIC], person)] == [(f"{PRIVATE}@1", False)]
    assert set(Run.objects.filter(pk__in=Run.objects.unseen_by(person)).values_list("benchmark__slug", flat=True)) <= {
        PRIVATE
    }


def test_a_token_writes_with_the_scope_run_and_where_its_owner_may(world, people, client, curate):
    curate()
    person = User.objects.get(pk=people["researcher"].pk)
    assert set(make_token(person=person)[0].scopes) == {"read", "label", "submit", "run"}

    def paused(slug, scopes):
        header = {"HTTP_AUTHORIZATION": f"Token {make_token(person=person, scopes=scopes)[1]}"}
        run = world.evaluations[slug].runs.get()
        return client.post(f"/api/v1/runs/{run.pk}/cancel/", "{}", "application/json", **header).status_code

    assert paused(PUBLIC, ["read"]) == 403
    assert paused(PRIVATE, ["run"]) == 403
    assert paused(PUBLIC, ["run"]) == 200
    assert world.evaluations[PRIVATE].runs.get().state == Run.State.PAUSED


def test_campaigns_and_items_are_made_by_the_api_for_the_benchmark_one_curates(
    world, people, client, client_of, curate
):
    curate()
    header = {"HTTP_AUTHORIZATION": f"Token {make_token(person=User.objects.get(pk=people['researcher'].pk))[1]}"}

    def made(what, **sent):
        answer = client.post(f"/api/v1/{what}/", sent, "application/json", **header)
        return answer.status_code, answer.content

    campaign = {"name": "by script", "protocol": "pairwise-criteria"}
    assert made("items", benchmark=PUBLIC, kind="pair")[0] == 200
    assert made("campaigns", benchmark=PUBLIC, **campaign)[0] == 201
    assert Campaign.objects.get(name="by script").open_to_all
    # Another benchmark is refused as one that is not there, and nobody's account is looked for.
    for what, sent in (("campaigns", campaign | {"name": "another"}), ("items", {"kind": "pair"})):
        refusals = {
            made(what, benchmark=name, **sent) for name in (PRIVATE, f"{PRIVATE}@2", "nowhere", "", None, [PUBLIC])
        }
        assert [status for status, _ in refusals] == [403]
        unknown = made(what, benchmark=f"{PUBLIC}@nowhere", **sent)
        assert (unknown[0], PRIVATE.encode() in unknown[1]) == (400, False)
        assert made(what, **sent) in refusals
    judge, other = Run.objects.filter(benchmark__slug=PRIVATE).first().judge, Judge.objects.create(name="elsewhere")
    asked = {"benchmark": PUBLIC, "protocol": "review", "name": "reviews"}
    names = (other.name, "nobody")
    refusals = {made("campaigns", judges=[name], **asked)[1].replace(name.encode(), b"") for name in names}
    assert len(refusals) == 1
    Run.objects.filter(benchmark__slug=PUBLIC).update(judge=other)
    offered = client_of("researcher").get("/campaigns/new/").content
    assert (b">elsewhere<" in offered, f">{judge.name}<".encode() in offered) == (True, False)
    people_named = [
        made("campaigns", benchmark=PUBLIC, annotators=[name], **campaign) for name in ("curator", "nobody")
    ]
    assert people_named[0] == people_named[1]
    assert people_named[0][0] == 403
    assert client.post("/api/v1/campaigns/", "[]", "application/json", **header).status_code == 403
