"""What somebody would try: foreign ids, fields that are not theirs, other methods, paths out, errors that talk."""

import io
import json
import logging
import re
from urllib.parse import urljoin

import pytest
from cryptography.fernet import Fernet
from django.core import mail
from django.test import Client
from django.urls import reverse
from django.utils.http import urlencode
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from accounts.models import User
from annotations.campaigns import run_doubts
from annotations.campaigns.members import make_annotator
from annotations.models import Campaign, Label
from bank.models import Sample
from judging.models import Judge, Run
from leaderboard.views.gone import GONE
from tests.access.crawl import TOKEN
from tests.access.test_routes import TABLE, doors, refused
from tests.access.world import CANARY, PRIVATE, PUBLIC, routes, spellings
from tests.bank.conftest import folder, manage, picture

pytestmark = pytest.mark.django_db
__all__ = ["folder", "manage"]  # fixtures
# Everybody's: judges and models belong to no benchmark, and the same picture is in the public one.
# The token of an invitation is the right to it; a prompt belongs to no benchmark.
SHARED = (
    "annotations:invitation",
    "judging:template-detail",
    "api-prompt-detail",
    "judging:judge-detail",
    "api-judge-detail",
    "api-model-detail",
    "leaderboard:model-detail",
    "leaderboard:judge-detail",
    "bank:image",
)
ABSENT = {int: 10**9, str: "absent"}


def absent(arguments):
    return {key: ABSENT[type(value)] for key, value in arguments.items()}


@pytest.mark.parametrize("role", ["anonymous", "annotator", "researcher"])
@pytest.mark.check("B2", "B5")
def test_a_foreign_id_answers_as_an_absent_one(role, world, people, client_of):
    """Of another's assignment, of a private benchmark: the same status, the same bytes."""
    stranger = User.objects.create_user("stranger", role=role if role != "anonymous" else "annotator")
    client = Client(raise_request_exception=False)
    if role != "anonymous":
        client.force_login(stranger)
    if role == "annotator":
        make_annotator(stranger)
    compared, differ = 0, []
    for name, route, _ in routes():
        arguments = world.arguments(route, PRIVATE)
        if not arguments or name in SHARED or role not in TABLE[name]:
            continue
        if name.removeprefix("leaderboard:") in GONE:  # whose link on has the name that was asked for
            continue
        for method in ("get", "post"):
            foreign = getattr(client, method)(reverse(name, kwargs=arguments))
            missing = getattr(client, method)(reverse(name, kwargs=absent(arguments)))
            bodies = [TOKEN.sub(rb"\1", answer.content) for answer in (foreign, missing)]
            compared += foreign.status_code == 404
            if foreign.status_code != missing.status_code or (foreign.status_code != 302 and bodies[0] != bodies[1]):
                differ.append((name, method, foreign.status_code, missing.status_code))
    assert differ == []
    assert compared >= (10 if role != "researcher" else 20)


@pytest.mark.check("B3")
def test_fields_that_are_not_offered_change_nothing(world, client_of, tokens, settings):
    settings.JUDGE_HOSTS = ["api.example.org"]
    curator = {"content_type": "application/json", **tokens["curator"]}
    client = Client()
    judge = {"name": "new", "base_url": "https://api.example.org/v1", "model": "m"}
    extra = {
        "id": 7_777_777,
        "pk": 7_777_777,
        "any_host": True,
        "baseline": "random",
        "created_at": "2001-01-01",
        "key": "sk-1",
    }
    assert client.post("/api/v1/judges/", judge | extra, **curator).status_code == 201
    made = Judge.objects.get(name="new")
    assert (made.any_host, made.baseline, made.created_at.year > 2001, made.pk != 7_777_777) == (False, "", True, True)

    run = {"judge": "baseline-first", "benchmark": PUBLIC, "protocol": "pairwise-criteria", "new": True}
    extra = {"id": 7_777_777, "state": "finished", "imported": True, "spent": -5, "by": 1, "calls": 5, "holds": [1]}
    extra |= {"releases": [1]}
    before = Run.objects.count()
    refused = client.post("/api/v1/runs/", run | extra, **curator)
    assert (refused.status_code, set(refused.json()), Run.objects.count()) == (400, set(extra), before)
    made = Run.objects.get(pk=client.post("/api/v1/runs/", run, **curator).json()["id"])
    assert made.by.username == "curator"

    mine = world.assignments[PUBLIC]
    label = {"assignment": mine.pk, "idempotency_key": "k1", "choice": "left"}
    extra = {"id": 7_777_777, "annotator": 99, "campaign": 99, "item": 99, "excluded": True, "created_at": "2001-01-01"}
    answer = client.post("/api/v1/labels/", label | extra, content_type="application/json", **tokens["annotator"])
    assert answer.status_code == 400, answer.content
    assert set(answer.json()) == set(extra)
    assert not Label.objects.filter(assignment=mine).exists()

    form = {"name": "new", "benchmark": world.samples[PUBLIC].benchmark_id, "protocol": "pairwise-criteria"}
    form |= {"overlap": 1, "lease_minutes": 30, "who": "everybody"}
    form |= {"state": "closed", "imported": "on", "id": 7_777_777}
    assert client_of("curator").post("/campaigns/new/", form).status_code == 302
    made = Campaign.objects.get(name="new")
    assert (made.state, made.imported, made.pk != 7_777_777) == ("open", False, True)


@pytest.mark.check("B4")
def test_no_other_method_spelling_or_override_opens_what_get_does_not(world):
    """Asked without a session: whatever GET refuses, everything else refuses or does not know."""
    client = Client(raise_request_exception=False)
    opened = []
    for name, path in doors(world, PUBLIC):
        if "anonymous" in TABLE[name]:
            continue
        overridden = {"HTTP_X_HTTP_METHOD_OVERRIDE": "GET", "HTTP_X_METHOD_OVERRIDE": "DELETE"}
        asked = {
            "put": client.put(path),
            "patch": client.patch(path),
            "delete": client.delete(path),
            "trace": client.trace(path),
            "override": client.post(path, {"_method": "DELETE"}, **overridden),
            "json": client.get(path.rstrip("/") + ".json"),
            "upper": client.get(path.upper()),
            "semicolon": client.get(path.rstrip("/") + ";/"),
            "rewritten": client.get("/nowhere/", HTTP_X_ORIGINAL_URL=path, HTTP_X_REWRITE_URL=path),
        }
        opened += [
            (name, how)
            for how, answer in asked.items()
            if not (refused(answer) or answer.status_code in (301, 404, 405))
        ]
    assert opened == []


@pytest.mark.check("B4")
def test_pages_are_got_and_posted_to_and_know_no_other_method(world, client_of):
    client = client_of("administrator")
    answered = []
    for name, path in doors(world, PUBLIC):
        methods = ["TRACE", "CONNECT", "PROPFIND", "BREW"]
        if not path.startswith("/api/v1/"):
            methods += ["OPTIONS", "PUT", "PATCH", "DELETE"]
        for method in methods:
            answer = client.generic(method, path)
            if answer.status_code != 405 or len(answer.content) > 200:
                answered.append((name, method, answer.status_code))
    assert answered == []
    assert client.options("/api/v1/benchmarks/").status_code == 200


@pytest.mark.check("B4")
@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.soak)])
def test_a_number_that_python_does_not_read_is_no_fault_of_ours(every, world, people):
    """5,000 digits in every field of every page and in the bodies of the API: int() refuses more than 4,300."""
    digits, failed = "9" * 5_000, []
    client = Client(raise_request_exception=False)
    usual = set(
        "page n limit seed sample run judge a b item sort cursor edition benchmark model settings parts".split()
    )
    for name, path in [*doors(world, PUBLIC)][::every]:
        client.force_login(people["curator"])
        page = client.get(path)
        fields = usual | set(
            re.findall(r'name="([\w.-]+)"', "" if page.streaming else page.content.decode(errors="ignore"))
        )
        numbers = dict.fromkeys(sorted(fields), digits)
        body = "{" + ", ".join(f'"{field}": {digits}' for field in sorted(fields)) + "}"
        answers = {"get": client.get(path, numbers), "post": client.post(path, numbers)}
        if path.startswith("/api/"):
            answers["json"] = client.post(path, body, content_type="application/json")
        failed += [(name, how) for how, answer in answers.items() if answer.status_code >= 500]
    assert set(failed) <= {("readyz", "get"), ("readyz", "post")}


@pytest.mark.check("B7")
def test_one_foreign_id_among_many_and_nothing_is_written(world, client_of):
    """Judgments, runs and items of another benchmark, beside good ones."""
    client, campaign = client_of("curator"), world.campaigns[PUBLIC]
    judgments = [*world.runs[PUBLIC].judgments.values_list("pk", flat=True), world.judgments[PRIVATE].pk]
    items = [world.items[PUBLIC].pk, world.items[PRIVATE].pk]
    assert len(judgments) > 1

    def stored():
        campaign.refresh_from_db()
        return campaign.rule, list(campaign.campaign_items.values_list("pk", flat=True)), Run.objects.count()

    before = stored()
    page = client.post("/campaigns/from/judgments/", {"judgment": judgments, "campaign": campaign.pk}, follow=True)
    assert "nothing was added" in page.content.decode()
    chosen = {"runs": [world.runs[PUBLIC].pk, world.runs[PRIVATE].pk], "reasons": [run_doubts.NO_MAJORITY]}
    page = client.post(f"/campaigns/{campaign.pk}/rule/", chosen, follow=True)
    assert "Choose runs on" in page.content.decode()
    asked = {"judge": "baseline-first", "protocol": "pair", "benchmark": PUBLIC, "settings": {"items": {"ids": items}}}
    assert client.post("/api/v1/runs/", asked, content_type="application/json").status_code == 400
    assert stored() == before
    asked["settings"]["items"]["ids"].pop()
    assert client.post("/api/v1/runs/", asked, content_type="application/json").status_code == 201


@pytest.mark.check("B6")
def test_a_disabled_persons_token_and_session_stop_at_the_next_request(world, people, tokens, client_of):
    session, person = client_of("researcher"), people["researcher"]
    assert session.get("/api/v1/runs/").status_code == 200
    assert Client().get("/api/v1/runs/", **tokens["researcher"]).status_code == 200
    person.is_active = False
    person.save()
    assert session.get("/api/v1/runs/").status_code in (401, 403)
    assert Client().get("/api/v1/runs/", **tokens["researcher"]).status_code == 401


UP = [
    "../" * 8,
    "..%2f" * 8,
    "..%252f" * 8,
    "%2e%2e/" * 8,
    "..\\" * 8,
    "..%5c" * 8,
    "..%c0%af" * 6,
    "....//" * 8,
    "/" * 3,
    "%00/",
]
TRAVERSALS = [
    f"{root}{up}etc/passwd" for root in ("/bank/images/", "/static/", "/bank/images/../../static/js/") for up in UP
]


@pytest.mark.parametrize("path", TRAVERSALS)
@pytest.mark.check("B9")
def test_no_path_leads_out_of_its_folder(path, media):
    answer = Client(raise_request_exception=False).get(path)
    assert answer.status_code in (301, 302, 400, 404)
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    assert b"root:" not in body


def test_there_are_thirty_traversals():
    assert len(TRAVERSALS) == 30


@pytest.mark.check("A6")
def test_errors_of_every_kind_say_nothing_hidden(world, client_of, people, settings, caplog):
    """400, 403, 404, 413 and a real 500: a criterion that no key opens any more."""
    curator, pk = client_of("curator"), world.samples[PUBLIC].pk
    curator.raise_request_exception = False
    caplog.set_level(logging.DEBUG)
    asked = {
        400: Client().get("/", HTTP_HOST="evil.example"),
        403: client_of("annotator").get(f"/bank/samples/{pk}/criteria/"),
        404: curator.get("/bank/samples/999999999/criteria/"),
        413: curator.post("/campaigns/new/", {"name": "x" * 3_000_000}),
    }
    broken = curator.post("/api/v1/runs/", "{" + CANARY, content_type="application/json")
    assert broken.status_code == 400
    settings.CRITERIA_KEYS = [Fernet.generate_key().decode()]
    caplog.clear()
    asked[500] = curator.get(f"/bank/samples/{pk}/criteria/")
    analysis = curator.get(f"/api/v1/judgments/{world.judgments[PUBLIC].pk}/analysis/")
    for status, answer in {**asked, 5000: analysis}.items():
        assert answer.status_code in {413: (400, 413), 5000: (500,)}.get(status, (status,)), status
        for word in (b"Traceback", b"Unreadable", b"CRITERIA_KEYS", b"gAAAA", b"site-packages", *spellings()):
            assert word not in answer.content, (status, word)
    assert "gAAAA" not in caplog.text
    assert not any(secret.decode() in caplog.text for secret in spellings())
    assert mail.outbox == []


@pytest.mark.check("A15")
def test_each_reader_of_criteria_writes_to_the_log():
    """Whatever in bank.criteria touches a stored text records it, but for what hands no text out."""
    import inspect

    import bank.criteria

    silent = {
        "_read": "called by the readers only",
        "for_public": "there is nothing to guard",
        "differing": "hands out ids",
        "fingerprint": "reads versions",
        "_of_kind": "a condition on kinds, without a text",
        "_kinds_of": "hands out kinds, without a text",
        "open_keys": "makes public, without handing out",
        "has_kind": "a condition on kinds, without a text",
        "guarded": "hands out ids",
        "public_keys": "there is nothing to guard",
        "shown_weights": "hands out keys and weights of what annotators are shown with its text, by a reader",
        "edit": "hands out the keys that changed; each change is kept with its author",
    }
    found = set()
    for name, made in vars(bank.criteria).items():
        if inspect.isfunction(made) and made.__module__ == "bank.criteria":
            source = inspect.getsource(made)
            reads = re.search(r"(Criterion|CriterionRevision)\.objects\.(?!create|bulk_create)|_read\(", source)
            if reads and not re.search(r"\brecord\(", source):
                found.add(name)
    assert found <= set(silent)


OUTSIDE = """//evil.example ///evil.example ////evil.example https://evil.example/ http:evil.example https:evil.example
    /\\evil.example \\/evil.example \\\\evil.example /\\/evil.example //evil.example/%2f.. //evil.example\\@testserver
    https://testserver@evil.example/ https://testserver.evil.example/ //testserver.evil.example javascript:alert(1)
    JaVaScRiPt:alert(1) data:text/html,x vbscript:x ftp://evil.example //google.com%2f@testserver /%09/evil.example
    http://[::1]/ //%65vil.example https:///evil.example""".split()


def test_there_are_twenty_five_redirects_to_try():
    assert len(OUTSIDE) == 25


@pytest.mark.parametrize("target", OUTSIDE)
@pytest.mark.check("D7")
def test_signing_in_leads_nowhere_outside(target, people):
    typed = {"username": "curator", "password": "a-long-password"}
    for address, data in (
        (f"/accounts/sign-in/?{urlencode({'next': target})}", typed),
        ("/accounts/sign-in/", typed | {"next": target}),
    ):
        place = Client().post(address, data).headers["Location"]
        assert place == "/" or re.match(r"/[^/\\\\]", place)
        assert urljoin("http://testserver/accounts/", place).startswith("http://testserver/")


@pytest.mark.check("D6")
def test_a_form_that_is_out_of_date_keeps_what_was_typed(world, people):
    client = Client(enforce_csrf_checks=True)
    client.force_login(people["curator"])
    typed = {"name": "A careful name", "protocol": "none", "guidelines": "Look\r\nat <both> answers.", "overlap": "3"}
    stale = typed | {"csrfmiddlewaretoken": "x" * 64}
    answer = client.post("/campaigns/new/", stale, HTTP_ORIGIN="http://testserver")
    page = answer.content.decode()
    assert answer.status_code == 403
    assert "nothing that you typed is lost" in page
    assert "at &lt;both&gt; answers.</textarea>" in page
    assert 'name="overlap" value="3"' in page
    fresh = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
    again = client.post("/campaigns/new/", typed | {"csrfmiddlewaretoken": fresh}, HTTP_ORIGIN="http://testserver")
    assert again.status_code == 200  # the form itself, with what it still lacks
    assert "A careful name" in again.content.decode()


@pytest.mark.check("D6")
def test_what_another_site_sends_is_not_offered_again_and_no_password_comes_back(people):
    client = Client(enforce_csrf_checks=True)
    client.force_login(people["curator"])
    for headers in ({"HTTP_ORIGIN": "https://evil.example"}, {}):
        answer = client.post("/campaigns/new/", {"name": "Forged"}, **headers)
        assert answer.status_code == 403
        assert b"Forged" not in answer.content
    typed = {"username": "curator", "password": "a-long-password"}
    answer = client.post("/accounts/sign-in/?next=/bank/", typed, HTTP_ORIGIN="http://testserver", follow=True)
    assert answer.redirect_chain == [("/accounts/sign-in/?next=/bank/", 302)]
    assert b"a-long-password" not in answer.content
    assert b"out of date" in answer.content


def test_a_schema_and_its_page_name_no_hidden_field(client):
    for path in ("/api/schema/?format=json", "/api/docs/"):
        text = client.get(path).content.decode()
        text = re.sub(r"gold_(rate|pass|least|stops)\b", "", text)  # settings of a campaign, which staff send
        for name in ("criteria_fingerprint", "password", "criteria__", "gold"):
            assert name not in text, (path, name)
    assert json.loads(client.get("/api/schema/?format=json").content)["paths"]


@pytest.mark.check("D6")
def test_no_route_takes_a_form_without_its_token(world, client_of, people):
    """Every route that would do something, asked by a session from elsewhere."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(people["administrator"])
    before = [(table, table.objects.count()) for table in (Campaign, Judge, Label, Run, User)]
    done = {
        (name, answer.status_code)
        for name, path in doors(world)
        for method in (client.post, client.put, client.patch, client.delete)
        if (answer := method(path, "{}", content_type="application/json")).status_code not in (403, 405)
    }
    assert done == set()
    assert [(table, table.objects.count()) for table, _ in before] == before


@pytest.mark.check("A13")
def test_a_pictures_answer_does_not_leave_with_it(folder, manage, client_of, media):
    """Where the file's name, its own texts and its thumbnail tell the answer."""
    told = PngInfo()
    told.add_text("Description", f"Answer: {CANARY}")
    image, out = Image.open(io.BytesIO(picture())), io.BytesIO()
    exif = image.getexif()
    exif[0x010E] = f"Answer: {CANARY}"  # ImageDescription
    image.save(out, "PNG", pnginfo=told, exif=exif)
    assert CANARY.encode() in out.getvalue()
    (folder.root / f"{CANARY}.png").write_bytes(out.getvalue())
    rows = [{"key": "s1", "instruction": "Which?", "images": [f"{CANARY}.png"], "options": {"A": "x", "B": "y"}}]
    assert manage("import_benchmark", "generic", folder("samples", rows), "--benchmark", "named", "--public")[0] == 0
    sample = Sample.objects.get(benchmark__slug="named")
    served = sample.images.get()
    for role in ("anonymous", "annotator", "researcher"):
        client = client_of(role)
        pages = [f"/api/v1/samples/{sample.pk}/", "/api/v1/samples/?benchmark=named", "/leaderboards/named/models/"]
        for path in [*pages, reverse("bank:image", args=[served.sha256, served.kind])]:
            answer = client.get(path, follow=True)
            body = b"".join(answer.streaming_content) if answer.streaming else answer.content
            assert answer.status_code == 200, path
            assert not any(secret in body + repr(answer.headers).encode() for secret in spellings()), path
