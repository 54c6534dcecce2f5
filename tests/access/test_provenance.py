"""What comes from a file closes where something is closed, unless whoever brings it says that nothing was seen."""

import io
import json
import re

import pytest
from django.apps import apps
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command

from accounts import audit
from accounts.models import AuditEntry
from annotations.labels import provenance as labels
from annotations.models import Campaign, Label
from bank import exposure
from bank.errors import BadInput
from bank.intake.uploads import worker
from bank.management.importing import Failed
from bank.samples.items import make_items, plan_items
from evalsite.management.commands import migrate
from judging.extras.juries import make_jury
from judging.judgments import provenance as judgments
from judging.models import Judge, Judgment, Run
from tests.access.test_sealing import (
    API,
    BELOW,
    GIVES_UP,
    LETTERS,
    SECRETS,
    drawn,
    items_of,
    questions,
    rows_of,
    secrets_of,
)
from tests.bank.test_submissions import migration
from tests.hidden import criteria, ended_before_today
from tests.markup import flat

pytestmark = [pytest.mark.django_db, pytest.mark.check("M1")]
KINDS = {"answer_key": "keys", "exact_reference": "exact references", "component": "points"}


def labels_that_know(benchmark, path, *, more=None):
    """People who knew the secret give 5 to the answer that is right, and 1 to the others."""
    secrets, rows = secrets_of(benchmark), []
    for item in items_of(benchmark).filter(kind="score").order_by("pk"):
        (response,) = item.ordered_responses()
        right = response.text == secrets[item.sample_id]
        rows.append(
            {
                "kind": "score",
                "sample": item.sample.key,
                "responses": [response.model.name],
                "annotator": "Ada",
                "score": 5 if right else 1,
                "comment": f"It has to be {secrets[item.sample_id]}.",
            }
            | (more or {})
        )
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def judgments_that_know(benchmark, path, *, settings):
    rows = [json.loads(line) for line in labels_that_know(benchmark, path).read_text(encoding="utf-8").splitlines()]
    for row in rows:
        del row["annotator"], row["comment"]
        row |= {"judge": "oracle", "settings": settings}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def brought_in(part, path, benchmark, **options):
    """What the command prints."""
    out = io.StringIO()
    call_command(f"import_{part}", "generic", str(path), benchmark=benchmark.slug, stdout=out, **options)
    return out.getvalue()


def world(slug, secrets, **columns):
    benchmark = questions(slug, secrets, **columns)
    make_items(plan_items(kind="score", benchmark=benchmark))
    return benchmark


def good_answers(client, benchmark):
    """By sample the answer that this client reads to be good: on item pages, in labels and judgments, in what can be
    downloaded of campaigns; and of comments what they name.
    """
    good = {}
    items = {item.pk: item for item in items_of(benchmark).filter(kind="score")}
    for rows in ("labels", "judgments"):
        for row in rows_of(client, f"{API}/{rows}/?benchmark={benchmark.slug}&page_size=100"):
            if row["score"] == 5:
                good[items[row["item"]].sample_id] = items[row["item"]].ordered_responses()[0].text
            if named := re.search(r"has to be (\w)", row.get("comment") or ""):
                good[items[row["item"]].sample_id] = named[1]
    by_key = dict(benchmark.samples.values_list("key", "pk"))
    for campaign in Campaign.objects.filter(benchmark=benchmark):
        answer = client.get(f"/campaigns/{campaign.pk}/data/download/?what=labels&shape=jsonl")
        for line in answer.getvalue().decode().splitlines() if answer.status_code == 200 else ():
            row = json.loads(line)
            if named := re.search(r"has to be (\w)", row.get("comment", "")):
                good[by_key[row["sample"]]] = named[1]
    nothing = 0
    for pk, item in items.items():
        page = client.get(f"/leaderboards/{benchmark.slug}/items/{pk}/")
        shown = (
            re.search(r"([\d.]+)\s+in the mean", re.sub("<[^>]+>", " ", flat(page)))
            if page.status_code == 200
            else None
        )
        nothing = 0 if shown else nothing + 1
        if shown and shown[1] == "5":
            good.setdefault(item.sample_id, item.ordered_responses()[0].text)
        if nothing == GIVES_UP:
            break
    return good


def guessed(client, benchmark):
    """How many secrets an attacker names who takes the answer that got a 5 for the right one; else A."""
    good = good_answers(client, benchmark)
    return sum(good.get(sample, "A") == secret for sample, secret in secrets_of(benchmark).items())


@pytest.mark.parametrize("kind", ["answer_key", pytest.param("exact_reference", marks=pytest.mark.soak)])
def test_no_key_follows_from_labels_that_a_file_brings(kind, client_of, at_chance, tmp_path):
    """The finding: 40 of 40 for an anonymous visitor, since the campaign was made as if people had seen nothing."""
    benchmark = world("keyed", drawn(LETTERS, kind), kind=kind)
    told = brought_in("labels", labels_that_know(benchmark, tmp_path / "labels.jsonl"), benchmark)
    assert told.startswith(f"{4 * SECRETS} labels will be for staff alone, with all numbers made of them: ")
    assert "--saw-nothing" in told.splitlines()[0], "before they are written"
    for role in BELOW:
        at_chance(guessed(client_of(role), benchmark), SECRETS, 1 / 4, f"{KINDS[kind]} by labels from a file, {role}")
    assert guessed(client_of("curator"), benchmark) == SECRETS


@pytest.mark.parametrize("settings", [{"criteria": False}, {}])
def test_a_file_does_not_say_of_itself_that_its_judge_saw_nothing(settings, client_of, at_chance, tmp_path):
    """The finding: 40 of 40, where the file said ``criteria: false``."""
    benchmark = world("keyed", drawn(LETTERS, "keys"))
    path = judgments_that_know(benchmark, tmp_path / "judgments.jsonl", settings=settings)
    assert f"{4 * SECRETS} judgments" in brought_in("judgments", path, benchmark).splitlines()[0]
    ended_before_today()
    for role in BELOW:
        at_chance(guessed(client_of(role), benchmark), SECRETS, 1 / 4, f"keys by judgments from a file, {role}")


def test_whoever_brings_labels_may_say_that_nothing_hidden_was_seen_and_it_is_logged(client_of, tmp_path):
    benchmark = world("keyed", drawn(LETTERS, "keys")[:20])
    told = brought_in("labels", labels_that_know(benchmark, tmp_path / "f.jsonl"), benchmark, saw_nothing=True)
    assert "staff alone" not in told
    assert guessed(client_of("researcher"), benchmark) == 20
    entry = AuditEntry.objects.get(action="saw-nothing-said")
    assert (entry.about, entry.details) == ("keyed@1", {"verdicts": {"labels": 80}})
    assert entry.action in audit.ACTIONS


def test_of_a_judge_that_its_file_says_was_shown_criteria_it_cannot_be_said(tmp_path):
    benchmark = world("keyed", "ABCD")
    path = judgments_that_know(benchmark, tmp_path / "f.jsonl", settings={"criteria": True})
    with pytest.raises(Failed, match="16 bad rows"):
        brought_in("judgments", path, benchmark, saw_nothing=True)
    assert not Judgment.objects.exists()


def test_a_campaign_or_run_has_seen_what_any_of_its_files_may_have(client_of, tmp_path):
    """And what closes with a file is said before it is written."""
    benchmark = world("keyed", drawn(LETTERS, "keys")[:20])
    path = labels_that_know(benchmark, tmp_path / "f.jsonl")
    rows = path.read_text(encoding="utf-8").splitlines(keepends=True)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("".join(rows[:60]), encoding="utf-8")
    second.write_text("".join(rows[60:]), encoding="utf-8")
    brought_in("labels", first, benchmark, saw_nothing=True)
    campaign = Campaign.objects.get()
    assert campaign.held == exposure.NOTHING
    told = brought_in("labels", second, benchmark, dry_run=True)
    assert "20 labels and 60 labels of the same giver that came before" in told
    assert Campaign.objects.get().held == exposure.NOTHING
    brought_in("labels", second, benchmark)
    assert Campaign.objects.get().held == exposure.UNKNOWN
    assert rows_of(client_of("researcher"), f"{API}/labels/") == []
    brought_in("labels", first, benchmark, saw_nothing=True)  # again: it changes nothing
    assert Campaign.objects.get().held == exposure.UNKNOWN


def test_it_can_be_said_later_by_command_and_page_and_is_logged(client_of, tmp_path):
    benchmark = world("keyed", drawn(LETTERS, "keys")[:20])
    brought_in("labels", labels_that_know(benchmark, tmp_path / "f.jsonl"), benchmark, campaign="Old round")
    path = judgments_that_know(benchmark, tmp_path / "j.jsonl", settings={})
    brought_in("judgments", path, benchmark)
    ended_before_today()
    run, campaign, out = Run.objects.get(), Campaign.objects.get(), io.StringIO()
    researcher, curator = client_of("researcher"), client_of("curator")
    page = flat(curator.get(f"/campaigns/{campaign.pk}/"))
    assert "80 labels and all numbers made of them are for staff alone" in page
    call_command("publish", "keyed", saw_nothing="Old round", stdout=out)
    assert out.getvalue().startswith("80 labels of Old round that were for staff alone")
    assert len(rows_of(researcher, f"{API}/labels/?page_size=100")) == 80
    assert "for staff alone" not in flat(curator.get(f"/campaigns/{campaign.pk}/"))
    assert rows_of(researcher, f"{API}/judgments/?page_size=100") == []
    assert researcher.post(f"/judging/runs/{run.pk}/saw-nothing/").status_code == 403
    assert curator.post(f"/judging/runs/{run.pk}/saw-nothing/").status_code == 302
    assert len(rows_of(researcher, f"{API}/judgments/?page_size=100")) == 80
    said = AuditEntry.objects.filter(action="saw-nothing-said").order_by("pk")
    assert [entry.details for entry in said] == [{"campaign": "Old round"}, {"run": run.pk}]
    for wrong in ("New round", "999999"):
        with pytest.raises(Failed, match="neither a campaign nor a run"):
            call_command("publish", "keyed", saw_nothing=wrong)


def test_it_cannot_be_said_of_what_was_given_here(tmp_path):
    benchmark = world("keyed", "ABCD")
    run = Run.objects.create(
        judge=Judge.objects.create(name="own"), benchmark=benchmark, protocol="score", held=exposure.UNKNOWN
    )
    campaign = Campaign.objects.create(name="own", benchmark=benchmark, protocol="score", held=exposure.UNKNOWN)
    with pytest.raises(BadInput, match="is known"):
        judgments.say_saw_nothing(run=run)
    with pytest.raises(BadInput, match="is known"):
        labels.say_saw_nothing(campaign=campaign)


def test_a_jury_has_seen_what_its_members_saw_whenever_that_is_said(tmp_path):
    benchmark = world("keyed", "ABCD")
    path = judgments_that_know(benchmark, tmp_path / "f.jsonl", settings={})
    for name in ("one", "two"):
        brought_in("judgments", path, benchmark, judge=name, saw_nothing=True)
    jury = make_jury(name="Both", runs=list(Run.objects.all()))
    assert Run.objects.get(pk=jury.pk).held == exposure.NOTHING
    more = tmp_path / "more.jsonl"
    rows = [json.loads(line) | {"repeat": 1} for line in path.read_text(encoding="utf-8").splitlines()]
    more.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    brought_in("judgments", more, benchmark, judge="one")
    assert Run.objects.get(pk=jury.pk).held == exposure.UNKNOWN
    judgments.say_saw_nothing(run=Run.objects.get(judge__name="one"))
    assert Run.objects.get(pk=jury.pk).held == exposure.NOTHING
    with pytest.raises(BadInput, match="its members"):
        judgments.say_saw_nothing(run=Run.objects.get(pk=jury.pk))


def test_what_leaves_and_comes_back_is_not_known_any_more(tmp_path):
    benchmark = world("keyed", "ABCD")
    brought_in("labels", labels_that_know(benchmark, tmp_path / "f.jsonl"), benchmark, saw_nothing=True)
    file = tmp_path / "export.jsonl"
    call_command("export", "labels", benchmark="keyed", shape="jsonl", output=file, names=True)
    Label.objects.all().delete()
    Campaign.objects.all().delete()
    brought_in("labels", file, benchmark)
    assert (Label.objects.count(), Campaign.objects.get().held) == (16, exposure.UNKNOWN)


def test_where_only_texts_are_closed_verdicts_are_seen_and_comments_are_not(client_of, tmp_path):
    """A comment may quote a guideline, as a judge's words may."""
    benchmark = world("guided", ["It counts."] * 20, kind="guideline", models=("lark",))
    path = labels_that_know(benchmark, tmp_path / "f.jsonl", more={"flags": ["it counts"]})
    assert "staff alone" not in brought_in("labels", path, benchmark)
    for role, words in (("researcher", set()), ("curator", {"It has to be It counts..", "it counts"})):
        client, campaign = client_of(role), Campaign.objects.get()
        rows = rows_of(client, f"{API}/labels/")
        assert len(rows) == 20
        assert {row["comment"] for row in rows}.union(*(row["flags"] for row in rows)) - {""} == words
        texts = flat(client.get(f"/campaigns/{campaign.pk}/")) + flat(
            client.get(f"/campaigns/{campaign.pk}/?show=noted")
        )
        texts += client.get(f"/campaigns/{campaign.pk}/data/download/?what=labels&shape=jsonl").getvalue().decode()
        assert ("It has to be" in texts) == (role == "curator")
        assert ('"it counts"' in texts) == (role == "curator")


def test_where_nothing_is_closed_no_file_closes_anything(client_of, tmp_path):
    benchmark = world("opened", drawn(LETTERS, "keys")[:20])
    call_command("publish", "opened", keys=True)
    assert "staff alone" not in brought_in("labels", labels_that_know(benchmark, tmp_path / "f.jsonl"), benchmark)
    assert guessed(client_of("anonymous"), benchmark) == 20
    rows = rows_of(client_of("researcher"), f"{API}/labels/?page_size=100")
    assert len(rows) == 80
    assert all(row["comment"] for row in rows)
    assert not criteria(sample__benchmark=benchmark, shown_to="staff").exists()


def test_samples_that_come_with_their_labels_close_these_too(client_of, tmp_path):
    rows = [
        {"key": f"q{n}", "instruction": f"Which is {n}?", "options": {"A": "a", "B": "b"}, "answer": "A"}
        for n in range(5)
    ]
    folder = tmp_path / "all"
    folder.mkdir()
    (folder / "samples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    answers = [{"sample": row["key"], "model": "lark", "text": "A"} for row in rows]
    (folder / "responses.jsonl").write_text("".join(json.dumps(row) + "\n" for row in answers), encoding="utf-8")
    given = [
        {"kind": "score", "sample": row["key"], "responses": ["lark"], "annotator": "Ada", "score": 5} for row in rows
    ]
    (folder / "labels.jsonl").write_text("".join(json.dumps(row) + "\n" for row in given), encoding="utf-8")
    out = io.StringIO()
    call_command("import_benchmark", "generic", str(folder), benchmark="new", all_parts=True, dry_run=True, stdout=out)
    assert "5 labels" in out.getvalue().splitlines()[0]
    call_command("import_benchmark", "generic", str(folder), benchmark="new", all_parts=True, visibility="public")
    assert (Label.objects.count(), Campaign.objects.get().held) == (5, exposure.UNKNOWN)
    assert rows_of(client_of("researcher"), f"{API}/labels/") == []


def test_the_update_closes_what_files_brought_and_says_how_it_is_opened(tmp_path):
    benchmark = world("keyed", "ABCD")
    brought_in("labels", labels_that_know(benchmark, tmp_path / "f.jsonl"), benchmark, saw_nothing=True)
    path = judgments_that_know(benchmark, tmp_path / "j.jsonl", settings={"criteria": False})
    for name in ("one", "two"):
        brought_in("judgments", path, benchmark, judge=name, saw_nothing=True)
    jury = make_jury(name="Both", runs=list(Run.objects.all()))
    free = world("free", "ABCD")
    call_command("publish", "free", keys=True)
    brought_in("labels", labels_that_know(free, tmp_path / "o.jsonl"), free, saw_nothing=True)
    assert list(migrate.unknown_in_words()) == []
    migration("annotations", "unknown_provenance").close(apps, None)
    migration("judging", "unknown_provenance").close(apps, None)
    one, two = Run.objects.exclude(pk=jury.pk).order_by("pk")
    assert list(migrate.unknown_in_words()) == [
        "keyed@1: verdicts from files count as given by somebody who may have seen what is closed. For staff alone "
        f"are: 16 labels of the campaign 'imported' ('imported'), 16 judgments of one ({one.pk}) and 16 judgments of "
        f"two ({two.pk}). Where nothing hidden was seen, `manage.py publish keyed@1 --saw-nothing` with what stands in "
        "brackets opens them."
    ]
    assert set(Run.objects.values_list("held", flat=True)) == {exposure.UNKNOWN}


@pytest.mark.parametrize("says", [False, True])
def test_an_upload_asks_what_was_seen(says, client_of, tmp_path, media):
    benchmark = world("keyed", drawn(LETTERS, "keys")[:20])
    file = SimpleUploadedFile("l.jsonl", labels_that_know(benchmark, tmp_path / "l.jsonl").read_bytes())
    curator = client_of("curator")
    sent = curator.post(f"{API}/uploads/", {"files": [file], "benchmark": "keyed"}).json()
    worker.work_all()
    page = flat(curator.get(f"/bank/uploads/{sent['id']}/"))
    assert "Whoever gave these verdicts saw nothing hidden" in page
    assert "Without it, 80 labels will be for staff alone, with all numbers made of them" in page
    choices = {"saw_nothing": True} if says else {}
    answer = curator.post(f"{API}/uploads/{sent['id']}/confirm/", choices, content_type="application/json")
    assert answer.status_code == 200, answer.content
    worker.work_all()
    assert Campaign.objects.get().held == (exposure.NOTHING if says else exposure.UNKNOWN)
    assert len(rows_of(client_of("researcher"), f"{API}/labels/?page_size=100")) == 80 * says
    logged = AuditEntry.objects.filter(action="saw-nothing-said")
    assert [(entry.name, entry.details) for entry in logged] == [("curator", {"verdicts": {"labels": 80}})] * says
