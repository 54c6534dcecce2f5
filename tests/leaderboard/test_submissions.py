"""Submissions as researchers and curators meet them: pages and API, who sees what, and what hidden splits keep back."""

import io
import json
import re
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from accounts.models import Notice, User
from accounts.tokens import make_token
from annotations.models import Campaign
from bank.models import Benchmark, EvaluatedModel, Item, Response, ResponseMark, Sample, Submission, SubmissionScore
from bank.submissions import actions
from bank.submissions.scoring import is_kept
from judging.models import Run
from leaderboard.models import Edition
from tests.access.crawl import TOKEN
from tests.bank.conftest import picture
from tests.bank.test_submissions import LABELS, allow, answers, choices, send
from tests.hidden import criteria, show
from tests.markup import flat

__all__ = ["allow", "choices", "send"]
pytestmark = pytest.mark.django_db
API = "/api/v1/submissions/"
SEED = next(
    str(n) for n in range(99) if sum(is_kept(seed=str(n), cluster=f"test{k}") for k in range(24)) == 12
)  # halves alike, each large enough to be shown


def as_file(rows, name="responses.jsonl"):
    return SimpleUploadedFile(name, "".join(json.dumps(row) + "\n" for row in rows).encode())


@pytest.fixture
def bench(choices, allow):
    """4 samples with open keys and 24 hidden ones, half of the hidden ones kept back."""
    benchmark = choices(dev=4, test=24)
    rules = allow(benchmark, hidden=["test"], private_half=True, per_day=3, in_all=5)
    rules.seed = SEED
    rules.save()
    return benchmark


@pytest.fixture
def researcher(client_of):
    return client_of("researcher")


def post(client, benchmark, rows, *, model="Finch", **more):
    return client.post(API, {"benchmark": benchmark.slug, "model": model, "file": as_file(rows)} | more)


# ---- the API ----


def test_a_researcher_submits_by_the_api_with_a_token_and_reads_the_scores(bench, people, client):
    token = {"HTTP_AUTHORIZATION": f"Token {make_token(person=people['researcher'])[1]}"}
    rows = list(answers(bench, right=lambda n: n % 4 != 1))
    form = {"benchmark": "choices", "model": "Finch", "organisation": "Aviary", "open": "true", "file": as_file(rows)}
    answer = client.post(API, form, **token)
    assert answer.status_code == 201
    sent = answer.json()
    assert (sent["state"], sent["model"], sent["organisation"], sent["open"]) == ("scored", "Finch", "Aviary", True)
    assert [(score["split"], score["part"]) for score in sent["scores"]] == [("dev", "whole"), ("test", "shown")]
    dev = sent["scores"][0]["numbers"]["vanilla"]
    assert (dev["value"], dev["n"], dev["method"]) == (0.75, 4, "wilson")
    assert sent["scores"][1]["words"].startswith("No better than chance (25%). ")
    assert "The other half is kept back" in sent["scores"][1]["words"]
    assert client.get(f"{API}{sent['id']}/", **token).json() == sent
    assert client.get(f"{API}?state=scored", **token).json()["results"][0]["id"] == sent["id"]


def test_a_file_that_does_not_pass_is_400_with_every_fault(bench, researcher):
    rows = [row for row in answers(bench) if row["sample"] != "test3"]
    answer = post(researcher, bench, [*rows, {"sample": "nowhere", "text": "A"}, {"sample": "dev0", "txt": "A"}])
    assert answer.status_code == 400
    said = answer.json()
    assert said["state"] == "failed"
    assert said["problems"]["missing"] == ["test3"]
    assert said["problems"]["extra"] == ["nowhere"]
    assert {field for _, field, _ in said["problems"]["problems"]} == {"txt"}
    assert not Response.objects.exists()


def test_checking_only_stores_nothing(bench, researcher):
    answer = post(researcher, bench, answers(bench), check_only="true")
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    assert answer.json()["counts"]["splits"]["test"] == {"samples": 24, "responses": 24}
    assert not Submission.objects.exists()


@pytest.mark.check("E2")
def test_a_limit_is_429_with_retry_after_and_a_sentence_on_the_page(bench, researcher):
    for n in range(3):
        assert post(researcher, bench, answers(bench), model=f"m{n}").status_code == 201
    answer = post(researcher, bench, answers(bench), model="m3")
    assert answer.status_code == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 86_401
    assert "3 times a day" in answer.json()["detail"]
    form = {"benchmark": bench.pk, "model": "m3", "file": as_file(answers(bench)), "submit": "1"}
    page = researcher.post("/submissions/new/", form)
    assert page.status_code == 429
    assert "3 times a day" in flat(page)
    assert "0 of 3" in flat(page)


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"benchmark": "nowhere"}, 400, "no such benchmark"),
        ({"benchmark": "a\x00b"}, 400, ""),
        ({"model": ""}, 400, "model"),
        ({"model": "Known"}, 409, "Known-2"),
        ({"state": "scored"}, 400, "There is no such field"),
        ({"by": "1"}, 400, "There is no such field"),
    ],
)
def test_what_the_api_does_not_take(changes, status, words, bench, researcher):
    EvaluatedModel.objects.create(name="Known")
    form = {"benchmark": "choices", "model": "Finch", "file": as_file(answers(bench))} | changes
    answer = researcher.post(API, form)
    assert answer.status_code == status
    assert words in flat(answer)


def test_a_closed_and_a_private_benchmark(bench, allow, researcher, client_of):
    allow(bench, open=False)
    assert post(researcher, bench, answers(bench)).status_code == 409
    allow(bench)
    Benchmark.objects.update(visibility="private")
    private = post(researcher, bench, answers(bench))
    absent = post(researcher, Benchmark(slug="absent"), answers(bench))
    assert (private.status_code, private.content) == (absent.status_code, absent.content)
    assert post(client_of("curator"), bench, answers(bench)).status_code == 201


def test_withdrawing_and_restoring_by_the_api(bench, researcher, client_of):
    pk = post(researcher, bench, answers(bench)).json()["id"]
    assert researcher.post(f"{API}{pk}/withdraw/", {"reason": "a bug"}).json()["state"] == "withdrawn"
    assert researcher.post(f"{API}{pk}/withdraw/").status_code == 409
    assert researcher.post(f"{API}{pk}/restore/", {"reason": "x"}).status_code == 403
    curator = client_of("curator")
    assert curator.post(f"{API}{pk}/restore/").status_code == 400
    assert curator.post(f"{API}{pk}/restore/", {"reason": "no bug"}).json()["state"] == "scored"
    assert [one["id"] for one in researcher.get(API).json()["results"]] == [pk]


# ---- who sees what ----


def test_anothers_submission_is_as_if_absent(bench, people, client_of):
    rival = User.objects.create_user("rival", password="a-long-password", role="researcher")
    mine = post(client_of("researcher"), bench, answers(bench)).json()["id"]
    client = client_of("researcher")
    client.force_login(rival)
    for ask, tail in ((client.get, ""), (client.post, "withdraw/")):
        foreign, absent = (ask(f"{API}{pk}/{tail}") for pk in (mine, 99999999))
        assert (foreign.status_code, foreign.content) == (404, absent.content)
    for part in ("", "problems.csv", "answers.csv"):
        foreign, absent = (client.get(f"/submissions/{pk}/{part}") for pk in (mine, 99999999))
        assert foreign.status_code == 404
        assert TOKEN.sub(b"", foreign.content) == TOKEN.sub(b"", absent.content)
    assert client.post(f"/submissions/{mine}/withdraw/").status_code == 404
    assert client.get(API).json()["results"] == []
    assert "Finch" not in flat(client.get("/submissions/"))
    assert Submission.objects.get().state == "scored"
    assert client_of("curator").get(f"/submissions/{mine}/").status_code == 200


def test_the_kept_half_shows_to_a_researcher_once_it_is_released(bench, researcher, client_of):
    pk = post(researcher, bench, answers(bench)).json()["id"]
    page = f"/submissions/{pk}/"
    assert "kept half" not in flat(researcher.get(page))
    assert "the other half of the answers" in flat(researcher.get(page))
    assert f'href="/leaderboards/{bench}/models/?kind=choice&amp;split=test"' in flat(researcher.get(page))
    curator = client_of("curator")
    assert "Only staff see it" in flat(curator.get(page))
    assert researcher.post(f"{page}release/").status_code == 403
    assert curator.post(f"{page}release/").status_code == 302
    assert "100% of the kept half, whose score ranks, as it was at its release" in flat(researcher.get(page))
    assert "the other half of the answers" not in flat(researcher.get(page))
    assert "It is released" in flat(curator.get(page))
    assert "no better" not in Notice.objects.get().text
    assert (Notice.objects.get().person.username, Notice.objects.get().link) == ("researcher", page)
    assert [score["part"] for score in researcher.get(f"{API}{pk}/").json()["scores"]] == ["whole", "kept", "shown"]


def test_a_submissions_page_shows_where_its_model_stands_on_boards_that_its_owner_may_see(bench, researcher, client_of):
    pk = post(researcher, bench, answers(bench)).json()["id"]
    page = f"/submissions/{pk}/"
    assert "All boards" not in flat(researcher.get(page))
    assert "All boards" in flat(client_of("curator").get(page))


def test_no_answer_of_a_hidden_split_is_marked_anywhere(bench, researcher, allow):
    pk = post(researcher, bench, answers(bench, right=lambda n: n > 2)).json()["id"]
    everything = "".join(
        flat(researcher.get(path))
        for path in (f"/submissions/{pk}/", f"/submissions/{pk}/answers.csv", f"{API}{pk}/", "/submissions/")
    )
    assert "test0" not in everything
    assert researcher.get(f"/submissions/{pk}/answers.csv").getvalue().decode().splitlines() == [
        "sample,split,variant,option,right",
        *(f"dev{n},dev,,{LABELS[(n + (n < 3)) % 4]},{n > 2}" for n in range(4)),
    ]
    allow(bench, hidden=["test", "dev"])
    assert "dev0" not in researcher.get(f"/submissions/{pk}/answers.csv").getvalue().decode(), "hidden since"


def test_one_letter_for_all_tells_nothing_of_keys_that_are_staffs(choices, allow, researcher, client_of):
    """Four submissions, all A to all D, and the marks of each would be every key, its totals how many of each."""
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    said = []
    for label in LABELS:
        rows = [{"sample": f"val{n}", "text": label} for n in range(120)]
        sent = post(researcher, benchmark, rows, model=label).json()
        assert [score["part"] for score in sent["scores"]] == ["shown"]
        said.append([(score["n"], score["numbers"], score["words"]) for score in sent["scores"]])
        page = flat(researcher.get(f"/submissions/{sent['id']}/"))
        assert "No better than chance (25%)." in page
        assert "val0" not in page
        lines = researcher.get(f"/submissions/{sent['id']}/answers.csv").getvalue().decode().splitlines()
        assert lines == ["sample,split,variant,option,right"]
    assert said == said[:1] * 4
    ((_, found, _),) = said[0]
    assert found == {"vanilla": None, "circular": None, "extraction": None, "best": None, "chance": 0.25}
    assert "no better than chance (25%)" in flat(researcher.get("/submissions/"))
    # Marks of before the keys were guarded, and of keys that are staff's again, are not served either.
    response = Response.objects.filter(submission=sent["id"]).first()
    ResponseMark.objects.create(response=response, option="D", right=False)
    for client in (researcher, client_of("curator")):
        assert len(client.get(f"/submissions/{sent['id']}/answers.csv").getvalue().decode().splitlines()) == 1


def test_what_does_worse_than_the_best_reads_as_what_does_a_little_better(choices, allow, researcher, client_of):
    """The same words and the same shape, on the page, in the list and by the API; staff see the numbers."""
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    first = post(researcher, benchmark, answers(benchmark, right=lambda n: n % 4, splits=["val"]), model="first").json()
    (told,) = first["scores"]
    best = told["numbers"]["vanilla"]["value"]
    assert told["numbers"]["vanilla"] | {"value": 0, "n": 0} == {
        **{"value": 0, "low": None, "high": None, "n": 0, "method": "ladder"}
    }
    assert told["words"].startswith(f"At least {100 * best:.0f}%. ")
    rights = {
        "worse": lambda n: False,
        "alike": lambda n: n % 4,
        "a little better": lambda n: n % 4 or n < 4,
    }  # by one: the half is drawn
    seen = []
    for name, right in rights.items():
        sent = post(researcher, benchmark, answers(benchmark, right=right, splits=["val"]), model=name).json()
        page = flat(researcher.get(f"/submissions/{sent['id']}/"))
        block = page[page.index('<section class="panel">') : page.index("</section>")]
        seen.append((sent["scores"], sent["state"], re.sub(r"\s+", " ", block)))
        staff = client_of("curator").get(f"{API}{sent['id']}/").json()["scores"]
        assert {score["part"]: bool(score["numbers"]["vanilla"]) for score in staff} == {"shown": True, "kept": True}
        assert all("levels" in score["numbers"] for score in staff)
    assert seen == seen[:1] * 3
    assert seen[0][0][0]["numbers"]["best"] == best
    assert seen[0][0][0]["words"].startswith(f"No better than your best ({100 * best:.0f}%). ")
    listed = flat(researcher.get("/submissions/"))
    assert listed.count(f"no better than your best ({100 * best:.0f}%)") == 3


def test_how_many_samples_of_a_kind_there_are_is_not_told_where_keys_decide_it(choices, allow, researcher):
    """Without options, a sample is one of yes and no by its key alone."""
    benchmark = choices(yes_no=60, asked="val")
    Sample.objects.create(benchmark=benchmark, key="poem", instruction="Write.", split="val", position=99)
    allow(benchmark, private_half=True)
    rows = [{"sample": f"y{n}", "text": "yes" if n % 2 else "no"} for n in range(60)]
    sent = post(researcher, benchmark, [*rows, {"sample": "poem", "text": "Roses"}]).json()
    (score,) = sent["scores"]
    assert score["n"] is None
    assert score["numbers"]["accuracy"]["value"]
    assert {name for name, number in score["numbers"].items() if number} == {"accuracy", "best"}
    assert sent["counts"]["unscored"] is None
    page = flat(researcher.get(f"/submissions/{sent['id']}/"))
    assert "Samples without a key that a rule can read" in re.sub(r"\s+", " ", page)


def test_open_samples_of_a_split_are_told_whole_and_the_others_by_the_ladder(choices, allow, researcher):
    """A total of both would let the open ones, whose marks are known, carry a score to the edge of being told."""
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    show("public", criteria("answer", sample__key__in=[f"val{n}" for n in range(21)]))
    sent = post(researcher, benchmark, answers(benchmark, right=lambda n: n < 21, splits=["val"])).json()
    by_part = {score["part"]: score for score in sent["scores"]}
    assert by_part["whole"]["numbers"]["vanilla"]["value"] == 1.0
    assert by_part["whole"]["n"] == 21
    assert by_part["shown"]["numbers"]["vanilla"] is None
    assert len(researcher.get(f"/submissions/{sent['id']}/answers.csv").getvalue().decode().splitlines()) == 22
    show("staff", criteria("answer", sample__key="val20"))
    assert len(researcher.get(f"/submissions/{sent['id']}/answers.csv").getvalue().decode().splitlines()) == 21


def test_a_score_made_anew_with_other_keys_shows_to_staff_and_changes_nothing_that_was_told(
    bench, researcher, client_of
):
    pk = post(researcher, bench, answers(bench)).json()["id"]
    before = researcher.get(f"{API}{pk}/").json()["scores"]
    for row in criteria("answer", sample__key__startswith="test"):
        row.text = LABELS[(LABELS.index(row.text) + 1) % 4]
        row.save()
    curator = client_of("curator")
    told = curator.post(f"/submissions/{pk}/rescore/", follow=True).context["messages"]
    assert "What its sender was told stays told." in str(next(iter(told)))
    assert researcher.get(f"{API}{pk}/").json()["scores"] == before
    by_part = {
        score["part"]: score["numbers"]["vanilla"]["value"] for score in curator.get(f"{API}{pk}/").json()["scores"]
    }
    assert by_part == {"whole": 1.0, "shown": 0.0, "kept": 0.0}


@pytest.mark.parametrize("role", ["anonymous", "annotator", "researcher"])
def test_a_model_that_waits_for_its_release_is_below_staff_as_one_that_does_not_exist(role, bench, client_of):
    """A guess at its name is not confirmed, and no page counts it."""
    pk = post(client_of("researcher"), bench, answers(bench)).json()["id"]
    board = "/api/v1/leaderboards/models/?benchmark=choices&kind=pair&anchor="

    def asked(role, name):
        answer = client_of(role).get(f"{board}{name}")
        return answer.status_code, flat(answer).replace(name, "NAME")

    def counted(role):
        page = flat(client_of(role).get("/leaderboards/choices/models/?kind=pair"))
        return re.search(r"28 samples, (\d+) model", page)[1]

    assert asked(role, "Finch") == asked(role, "Nobody")
    assert asked(role, "Finch")[0] == 400
    assert asked("curator", "Finch")[0] == 200
    assert (counted(role), counted("curator")) == ("0", "1")
    client_of("curator").post(f"/submissions/{pk}/release/")
    assert asked(role, "Finch")[0] == 200


def test_a_released_figure_comes_in_whole_per_cents_with_an_interval_that_follows_from_it(
    choices, allow, researcher, client_of
):
    benchmark = choices(val=120)
    allow(benchmark, private_half=True)
    sent = post(researcher, benchmark, answers(benchmark, right=lambda n: n % 3, splits=["val"])).json()
    exact = SubmissionScore.objects.get(submission=sent["id"], part="kept").numbers["vanilla"]["value"]
    client_of("curator").post(f"/submissions/{sent['id']}/release/")
    scores = {score["part"]: score for score in researcher.get(f"{API}{sent['id']}/").json()["scores"]}
    found = scores["kept"]["numbers"]["vanilla"]
    assert found["value"] == round(exact, 2)
    assert found["low"] < found["value"] < found["high"]
    assert "levels" not in scores["kept"]["numbers"]
    page = flat(client_of("curator").get(f"/submissions/{sent['id']}/"))
    assert f"Their interval, {100 * found['low']:.0f}% to {100 * found['high']:.0f}%, follows" in page
    assert f"of {120} responses name an option" in flat(researcher.get(f"/submissions/{sent['id']}/"))
    assert scores["shown"] == sent["scores"][0], "nothing more about the shown half"


def test_curators_see_how_many_people_were_told_of_how_many_submissions(bench, researcher, client_of):
    for name in ("Finch", "Wren"):
        post(researcher, bench, answers(bench), model=name)
    post(client_of("curator"), bench, answers(bench), model="Robin")
    page = re.sub(r"\s+", " ", flat(client_of("curator").get("/submissions/rules/choices@1/")))
    assert "2 people were told of 3 submissions so far" in page


# ---- the pages ----


def test_a_page_says_what_to_mend_and_gives_all_of_it_as_a_file(bench, researcher):
    rows = [{"sample": "dev0", "text": "A"}]
    form = {"benchmark": bench.pk, "model": "Finch", "file": as_file(rows), "submit": "1"}
    answer = researcher.post("/submissions/new/", form, follow=True)
    text = flat(answer)
    assert "did not pass the check" in text
    assert "27 missing" in text
    assert "and 7 more" in text
    path = answer.redirect_chain[-1][0]
    lines = researcher.get(f"{path}problems.csv").getvalue().decode().splitlines()
    assert len(lines) == 28
    assert "missing,test23,,has no response" in lines


def test_check_only_on_the_page_names_everything_and_keeps_what_was_typed(bench, researcher):
    form = {"benchmark": bench.pk, "model": "Finch", "file": as_file([{"sample": "dev0", "text": "A"}]), "check": "1"}
    text = flat(researcher.post("/submissions/new/", form))
    assert "would not pass" in text
    assert "missing,test23,,has no response" in text
    assert 'value="Finch"' in text
    assert not Submission.objects.exists()


def test_after_a_release_staff_are_led_to_the_edition_that_brings_the_model_on_the_board(bench, researcher, client_of):
    pk = post(researcher, bench, answers(bench)).json()["id"]
    curator, page = client_of("curator"), f"/submissions/{pk}/"
    assert "Release it above" in flat(curator.get(page))
    assert "with the next edition of the board after a curator has released it" in flat(researcher.get(page))
    curator.post(f"{page}release/")
    edition = f"/leaderboards/{bench}/models/editions/new/?kind=choice&split=test"
    assert f'href="{edition.replace("&", "&amp;")}"' in flat(curator.get(page))
    assert "joins the board with the next edition" in flat(researcher.get(page))
    assert "editions/new/" not in flat(researcher.get(page))
    curator.post(edition, {"kind": "choice", "split": "test"})
    assert Edition.objects.get().split == "test"
    assert "Publish the next edition" not in flat(curator.get(page))
    assert "stands on the board" in flat(researcher.get(page))


def test_the_score_of_open_keys_alone_can_be_released_too(choices, allow, researcher, client_of):
    benchmark = choices(dev=12)
    allow(benchmark)
    page = f"/submissions/{post(researcher, benchmark, answers(benchmark)).json()['id']}/"
    assert "once a curator has released it" in flat(researcher.get(page))
    curator = client_of("curator")
    assert "Release</button>" in flat(curator.get(page))
    curator.post(f"{page}release/")
    assert "stands on the boards below" in flat(researcher.get(page))


def test_the_questions_come_as_a_zip_without_what_answers_are_judged_by(folder, manage, allow, researcher, client_of):
    for name in ("boat.png", "hut.png"):
        (folder.root / name).write_bytes(picture(colour="teal" if name == "boat.png" else "tan"))
    rows = [
        {"key": "a", "instruction": "How many?", "split": "test", "hint": "Count.", "options": {"A": "one", "B": "two"},
         "images": ["boat.png", {"file": "secret-3.png", "url": "https://x.org/3", "required": False}],
         "criteria": [{"key": "answer", "kind": "answer_key", "text": "B"}], "metadata": {"note": "SECRET"}},
        {"key": "b", "instruction": "Where?", "images": ["boat.png"], "criteria": [{"text": "SECRET"}]},
        {"key": "c", "instruction": "Not yet.", "images": ["hut.png"], "status": "draft"},
    ]  # fmt: skip
    path = folder("samples", rows)
    assert manage("import_benchmark", "generic", path, "--benchmark", "boats", "--public")[0] == 0
    benchmark = Benchmark.objects.get()
    allow(benchmark, hidden=["test"])
    answer = researcher.get("/submissions/questions/boats/")
    assert answer.headers["Content-Disposition"] == 'attachment; filename="boats-1-questions.zip"'
    sent = b"".join(answer.streaming_content)
    archive = zipfile.ZipFile(io.BytesIO(sent))
    boat = next(name for name in archive.namelist() if name != "questions.jsonl")
    assert archive.namelist() == ["questions.jsonl", boat]
    assert archive.read(boat).startswith(b"\x89PNG")
    assert [json.loads(line) for line in archive.read("questions.jsonl").splitlines()] == [
        {"key": "a", "split": "test", "instruction": "How many?", "hint": "Count.", "options": {"A": "one", "B": "two"},
         "images": [{"file": boat}, {"absent": True, "url": "https://x.org/3"}]},
        {"key": "b", "instruction": "Where?", "images": [{"file": boat}]},
    ]  # fmt: skip
    assert "/submissions/questions/boats@1/" in flat(researcher.get("/submissions/new/"))
    assert client_of("annotator").get("/submissions/questions/boats/").status_code == 403
    Benchmark.objects.update(visibility="private")
    assert researcher.get("/submissions/questions/boats/").status_code == 404


def test_a_benchmark_that_takes_submissions_says_so_at_its_head_to_those_who_may_send(bench, allow, researcher, client):
    assert "Submit a model" in flat(researcher.get(f"/leaderboards/{bench}/"))
    assert "Submit a model" not in flat(client.get(f"/leaderboards/{bench}/"))
    allow(bench, open=False)
    assert "Submit a model" not in flat(researcher.get(f"/leaderboards/{bench}/"))


@pytest.mark.parametrize(("empty", "warned"), [(28, True), (3, True), (2, False)])
def test_a_check_warns_where_many_answers_are_empty(empty, warned, bench, researcher):
    rows = [row | {"text": ""} if n < empty else row for n, row in enumerate(answers(bench))]
    form = {"benchmark": bench.pk, "model": "Finch", "file": as_file(rows), "check": "1"}
    text = flat(researcher.post("/submissions/new/", form))
    assert "The file passes: 28 responses" in text
    assert (f"{empty} of 28 answers are empty" in text) == warned


@pytest.mark.parametrize("query", ["shape=jsonl", "shape=csv", "shape=csv&circular=1", "shape=jsonl&split=dev"])
def test_a_template_filled_in_is_a_file_that_passes(query, bench, researcher, allow):
    allow(bench, hidden=["test"], required=["dev"])
    answer = researcher.get(f"/submissions/template/choices/?{query}")
    text = answer.getvalue().decode()
    assert "attachment" in answer.headers["Content-Disposition"]
    filled = text.replace('"text": ""', '"text": "A"') if "jsonl" in query else text.replace(",\n", ",A\n")
    file = SimpleUploadedFile("filled", filled.encode())
    sent = researcher.post(API, {"benchmark": "choices", "model": "Finch", "file": file})
    assert sent.status_code == 201, sent.content
    assert sent.json()["counts"]["circular"] == ("circular" in query)


def test_an_index_and_prediction_table_with_rotations_is_understood(choices, allow, researcher):
    """As VLMEvalKit writes it: rotation n of question i at i + n x 1,000,000."""
    benchmark = choices(dev=3)
    for number, sample in enumerate(benchmark.samples.order_by("position")):
        Sample.objects.filter(pk=sample.pk).update(key=str(100 + number))
    allow(benchmark)
    lines = researcher.get("/submissions/template/choices/?shape=tsv&circular=1").content.decode().splitlines()
    assert lines[:3] == ["index\tprediction", "100\t", "1000100\t"]
    rows = [lines[0]]
    for line in lines[1:]:
        index = int(line)
        rows.append(f"{index}\t{LABELS[(index % 1_000_000 - 100 - index // 1_000_000) % 4]}")
    file = SimpleUploadedFile("finch.tsv", ("\n".join(rows) + "\n").encode())
    sent = researcher.post(API, {"benchmark": "choices", "model": "Finch", "file": file}).json()
    assert sent["scores"][0]["numbers"]["circular"]["value"] == 1.0


def test_curators_keep_the_rules_on_a_page(bench, client_of):
    curator = client_of("curator")
    page = "/submissions/rules/choices@1/"
    assert curator.get(page).status_code == 200
    form = {"open": "on", "per_day": "", "in_all": "9", "hidden_splits": ["dev"], "notes": "By **letter**."}
    assert curator.post(page, form).status_code == 302
    bench.refresh_from_db()
    rules = actions.rules_of(bench)
    assert (bench.hidden_splits, rules.per_day, rules.in_all, rules.private_half) == (["dev"], None, 9, False)
    assert "<strong>letter</strong>" in flat(client_of("researcher").get("/submissions/new/"))
    assert curator.post(page, form | {"per_day": "0"}).status_code == 200
    assert curator.post(page, form | {"hidden_splits": ["nowhere"]}).status_code == 200
    assert actions.rules_of(bench).per_day is None


@pytest.mark.check("C12")
def test_curators_export_every_submission(bench, researcher, client_of):
    post(researcher, bench, answers(bench), model="=Finch()")
    lines = client_of("curator").get("/submissions/export.csv").getvalue().decode().splitlines()
    assert len(lines) == 4
    assert "'=Finch()" in lines[1], "no spreadsheet takes a name for a formula"


def test_a_file_that_is_too_large_is_refused(bench, researcher, monkeypatch):
    monkeypatch.setattr("leaderboard.api.submissions.LARGEST", 10)
    monkeypatch.setattr("leaderboard.views.forms.LARGEST", 10)
    assert "larger than" in flat(post(researcher, bench, answers(bench)))
    form = {"benchmark": bench.pk, "model": "Finch", "file": as_file(answers(bench)), "submit": "1"}
    assert "larger than" in flat(researcher.post("/submissions/new/", form))
    assert not Submission.objects.exists()


@pytest.mark.parametrize("name", ["../../evil.jsonl", ".hidden", "a/b\\c.jsonl", "…"])
def test_a_file_name_is_no_path(name, bench, researcher):
    file = io.BytesIO(as_file(answers(bench)).read())
    file.name = name
    answer = researcher.post(API, {"benchmark": "choices", "model": "Finch", "file": file})
    assert answer.status_code in (201, 400)
    if answer.status_code == 201:
        assert not {"/", "\\"} & set(answer.json()["file_name"])


# ---- hidden splits elsewhere ----


def test_single_verdicts_about_a_hidden_split_are_for_staff(voted, client_of):
    Benchmark.objects.update(hidden_splits=["test"])
    Campaign.objects.update(state=Campaign.State.CLOSED)
    hidden = Item.objects.filter(sample__split="test").first()
    run = Run.objects.get(judge__name="keen").pk
    staff, researcher = client_of("curator"), client_of("researcher")
    assert researcher.get(f"/leaderboards/grove/items/{hidden.pk}/").status_code == 404
    assert staff.get(f"/leaderboards/grove/items/{hidden.pk}/").status_code == 200
    for path in ("/api/v1/labels/?page_size=500", f"/api/v1/judgments/?run={run}&page_size=500"):
        keys = [{row["sample"] for row in client.get(path).json()["results"]} for client in (staff, researcher)]
        assert any(key >= "s24" for key in keys[0]), path
        assert keys[1], path
        assert not any(key >= "s24" for key in keys[1]), path
    votes = "/leaderboards/grove/votes/?model=Alder"
    assert "of a hidden split or labelled blind: only sums are shown" in flat(researcher.get(votes))
    assert "of a hidden split" not in flat(staff.get(votes))
    compare = f"/leaderboards/grove/compare/?a=majority&b=run-{run}&split=test"
    assert "s24" not in flat(researcher.get(compare))
    assert "s24" in flat(staff.get(compare))
    samples = researcher.get("/api/v1/samples/?split=test").json()["results"]
    assert len(samples) == 12, "the samples themselves stay public"
