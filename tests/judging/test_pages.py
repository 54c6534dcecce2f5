"""Pages of judging, as each role."""

import re
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from bank import exposure
from bank.errors import BadInput
from bank.models import CriteriaAccess, Item
from judging import protocols
from judging.forms import RunForm
from judging.models import Attempt, Judge, Judgment, PromptTemplate, Run, WorkerBeat
from judging.runs.actions import start_run
from judging.runs.tryouts import draw
from tests.hidden import ended_before_today, write_criterion
from tests.judging.server import Server, answer, error
from tests.markup import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(start, judge_at, work_on):
    """A run that ended before today: three verdicts, one undecided, one unparsed, one refused by the endpoint."""
    replies = [answer(f"Names the walnut bowl.\nAnswer{1 + n % 2}") for n in range(3)]
    replies += [
        answer("unable to decide: situation one"),
        answer("Names the walnut bowl, I think."),
        error(400, message="walnut"),
    ]
    with Server(lambda call: replies[call.number]) as server:
        run = work_on(start(judge_at(server.url, concurrency=1, price_in=2, price_out=10)))
    ended_before_today(run)
    return run


def text_of(response) -> str:
    """What a reader sees of a page."""
    body = re.sub(r"<(script|style)[^>]*>.*?</\1>", " ", flat(response), flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", body))


# -- lists ----------------------------------------------------------------------------------------------------------


def test_an_empty_site_says_what_a_run_is_and_how_to_start_one(client_of, baseline):
    baseline("first")
    page = text_of(client_of("curator").get("/judging/"))
    assert "No runs yet" in page
    assert "New run" in page
    assert "No worker running" in page
    assert "New run" not in text_of(client_of("researcher").get("/judging/"))


def test_the_list_shows_each_run_with_its_state_and_progress(client_of, run):
    WorkerBeat.objects.create(name="w", seen_at=timezone.now())
    page = text_of(client_of("researcher").get("/judging/"))
    for words in ("kestrel", "Everyday", "Finished", "4 of 6", "both orders", "Worker running"):
        assert words in page


def test_a_private_benchmark_and_its_runs_are_for_staff_only(client_of, run, benchmark):
    benchmark.visibility = "private"
    benchmark.save()
    judgment = run.judgments.first()
    for path in (
        reverse("judging:run-detail", args=[run.pk]),
        reverse("judging:run-progress", args=[run.pk]),
        reverse("judging:judgment-detail", args=[judgment.pk]),
    ):
        assert client_of("curator").get(path).status_code == 200
        assert client_of("researcher").get(path).status_code == 404
    assert "Everyday" not in text_of(client_of("researcher").get("/judging/"))


# -- a run's page ---------------------------------------------------------------------------------------------------


def test_a_run_tells_what_it_did_what_failed_and_what_it_cost(client_of, run):
    page = text_of(client_of("curator").get(reverse("judging:run-detail", args=[run.pk])))
    for words in (
        "kestrel on Everyday pairs with criteria, both orders, 3 items",
        "4 of 6, 66.7%",
        "2 33.33% of judgments",
        "Failed2",
        "Undecided 1",
        "No vote on the last line",
        "The endpoint refused the request (400)",
        "pairwise-criteria.default 1",
        "Undecided, situation 1",
        "order turned",
    ):
        assert words in page
    assert "walnut" not in page.replace("walnut bowl stands", "")


def test_below_staff_a_run_with_criteria_tells_counts_and_statuses_and_nothing_that_has_a_length(client_of, run):
    assert run.held
    page = text_of(client_of("researcher").get(reverse("judging:run-detail", args=[run.pk])))
    for words in (
        "4 of 6, 66.7%",
        "Failed2",
        "No verdict in the reply",
        "Calls made6",
        "pairwise-criteria.default 1",
    ):
        assert words in page
    for words in ("Tokens", "Seconds", "Cost", "$", "Rate, last minute", "seed", "No vote on the last line", "last at"):
        assert words not in page
    assert "seed" in text_of(client_of("curator").get(reverse("judging:run-detail", args=[run.pk])))
    judgment = run.judgments.filter(status="ok").first()
    page = text_of(client_of("researcher").get(reverse("judging:judgment-detail", args=[judgment.pk])))
    for words in ("Tokens sent", "Cost", "Seconds", "Request hash", "UTC"):
        assert words not in page
    assert "Request hash" in text_of(client_of("curator").get(reverse("judging:judgment-detail", args=[judgment.pk])))


def test_by_duration_and_price_only_staff_choose_and_sort(client_of, run):
    Judgment.objects.filter(pk=run.judgments.first().pk).update(latency=99, cost=5)
    path = reverse("judging:judgment-list")
    for query in ("?sort=slowest", "?sort=dearest", "?seconds=50", "?cost=4"):
        listed = {role: client_of(role).get(path + query).context["listing"].rows for role in ("researcher", "curator")}
        newest = client_of("researcher").get(path).context["listing"].rows
        assert [row.pk for row in listed["researcher"]] == [row.pk for row in newest]
        assert [row.pk for row in listed["curator"]] != [row.pk for row in newest]
    assert "Cost, from" not in text_of(client_of("researcher").get(path))


def test_each_kind_of_failure_opens_what_failed_and_a_rate_limit_shows(client_of, run):
    client, path = client_of("curator"), reverse("judging:run-detail", args=[run.pk])
    unread = run.judgments.get(status="parse_failed")
    page = flat(client.get(path))
    assert reverse("judging:judgment-detail", args=[unread.pk]) + '" id="open-' in page
    assert 'id="limited"' not in page
    live = {"limit": 1, "limited": True, "retrying": {"rate": 2}, "pause": 7}
    Run.objects.update(state="running")
    run.holds.create(until=timezone.now() + timedelta(seconds=50), live=live)
    Judge.objects.filter(pk=run.judge_id).update(concurrency=8)
    Judgment.objects.filter(pk=run.judgments.filter(choice="undecided").first().pk).update(
        status="parse_failed", reason_hash=unread.reason_hash, choice=None, situation=None
    )
    page = client.get(path)
    assert "limit 1 of 8" in text_of(page)
    assert "rate limit, 7 s" in text_of(page)
    assert f"?run={run.pk}&amp;show=parse_failed" in flat(page)


def test_failed_and_undecided_are_links_that_show_those_alone(client_of, run):
    client, path = client_of("researcher"), reverse("judging:run-detail", args=[run.pk])

    def rows(show: str) -> int:
        return flat(client.get(path, {"show": show})).count('id="thumb-')

    assert (rows("all"), rows("failed"), rows("undecided")) == (6, 2, 1)
    assert client.get(path, {"show": "secret"}).status_code == 404


def test_the_live_part_asks_for_itself_until_the_run_has_ended(client_of, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    Run.objects.update(held=exposure.NOTHING)
    path = reverse("judging:run-progress", args=[run.pk])
    fragment = flat(client_of("researcher").get(path))
    assert fragment.startswith('<div id="run-progress"')
    assert f'hx-get="{path}?show=all"' in fragment
    for state in ("paused", "finished", "cancelled"):
        Run.objects.update(state=state)
        assert "hx-trigger" not in flat(client_of("researcher").get(path))


def test_the_page_and_its_live_part_are_the_same_markup(client_of, run):
    client = client_of("curator")
    page = flat(client.get(reverse("judging:run-detail", args=[run.pk])))
    fragment = flat(client.get(reverse("judging:run-progress", args=[run.pk])))
    hide = re.compile(r'name="csrfmiddlewaretoken"\s+value="[^"]+"')
    assert hide.sub("", fragment.strip()) in hide.sub("", page)


def test_a_run_that_waits_without_a_worker_says_how_to_start_one(client_of, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    Run.objects.update(held=exposure.NOTHING)
    path = reverse("judging:run-detail", args=[run.pk])
    assert "No worker is running" in text_of(client_of("researcher").get(path))
    WorkerBeat.objects.create(name="w", seen_at=timezone.now())
    assert "No worker is running" not in text_of(client_of("researcher").get(path))
    Run.objects.update(state="running")
    run.holds.create(until=timezone.now() - timedelta(seconds=1))
    assert "The worker stopped responding" in text_of(client_of("researcher").get(path))


def test_while_it_runs_a_run_shows_what_is_in_flight_its_rate_and_the_time_left(client_of, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    live = {
        "limit": 8,
        "rate": 0.05,
        "retrying": {"rate": 2},
        "curve": {"from": timezone.now().isoformat(), "width": 1, "points": [1, 3, 2, 4]},
    }
    Run.objects.update(state="running")
    run.holds.create(until=timezone.now() + timedelta(seconds=20), in_flight=4, live=live)
    page = text_of(client_of("curator").get(reverse("judging:run-detail", args=[run.pk])))
    for words in (
        "4 limit 8",
        "0.05 judgments a second",
        "2 min",
        "Rate limit (429)",
        "Retrying",
        "Judgments per second",
    ):
        assert words in page
    assert "fell silent" not in page
    assert "2 workers" not in page
    Run.objects.update(started_at=timezone.now())
    run.holds.create(until=timezone.now() + timedelta(seconds=20), worker="far:7", in_flight=3, live={"limit": 4})
    page = client_of("curator").get(reverse("judging:run-detail", args=[run.pk]))
    assert "2 workers" in text_of(page)
    assert "7 limit 12" in text_of(page)
    assert "far:7" in flat(page)
    assert "far:7" not in flat(client_of("researcher").get(reverse("judging:run-detail", args=[run.pk])))


def test_a_paused_run_says_why_in_words(client_of, start, judge_at, work_on, monkeypatch):
    monkeypatch.delenv("KESTREL_API_KEY", raising=False)
    run = work_on(start(judge_at("http://127.0.0.1:9/v1", key_env="KESTREL_API_KEY")))
    Run.objects.update(held=exposure.NOTHING)
    assert "Paused. Staff see why" in text_of(client_of("researcher").get(reverse("judging:run-detail", args=[run.pk])))
    page = text_of(client_of("curator").get(reverse("judging:run-detail", args=[run.pk])))
    assert "Paused. The key of kestrel is missing: the environment variable KESTREL_API_KEY is empty" in page


def test_a_run_answered_by_two_model_versions_says_so(client_of, run):
    Run.objects.update(
        reported=[{"model": "k-1", "fingerprint": "", "replies": 4}, {"model": "k-2", "fingerprint": "f", "replies": 2}]
    )
    page = text_of(client_of("researcher").get(reverse("judging:run-detail", args=[run.pk])))
    assert "More than one model version answered: k-1 4 times, k-2 f 2 times." in page


def test_runs_of_the_overlap_baseline_are_staffs_alone(client_of, baseline, start, work_on):
    run = work_on(start(baseline("criteria-overlap")))
    path = reverse("judging:run-detail", args=[run.pk])
    assert client_of("researcher").get(path).status_code == 404
    assert "first order" in text_of(client_of("curator").get(path))
    judgment = reverse("judging:judgment-detail", args=[run.judgments.first().pk])
    assert client_of("researcher").get(judgment).status_code == 404
    assert client_of("curator").get(judgment).status_code == 200


# -- what staff may do ----------------------------------------------------------------------------------------------


def test_staff_pause_resume_and_cancel_a_run(client_of, start, judge_at):
    run, client = start(judge_at("http://127.0.0.1:9/v1")), client_of("curator")
    for verb, state in (("pause", "paused"), ("resume", "queued"), ("cancel", "cancelled")):
        answered = client.post(reverse(f"judging:run-{verb}", args=[run.pk]), follow=True)
        assert answered.status_code == 200
        run.refresh_from_db()
        assert run.state == state
    again = client.post(reverse("judging:run-resume", args=[run.pk]), follow=True)
    assert "Only a paused or waiting run can resume" in text_of(again)


def test_a_run_changes_only_by_post_and_with_a_token_of_the_form(client_of, people, run):
    path = reverse("judging:run-retry", args=[run.pk])
    assert client_of("curator").get(path).status_code == 405
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(people["curator"])
    assert strict.post(path).status_code == 403
    assert run.judgments.count() == 6


def test_staff_retry_one_kind_of_failure_or_all(client_of, run):
    client, path = client_of("curator"), reverse("judging:run-retry", args=[run.pk])
    client.post(path, {"status": "parse_failed", "reason": "no vote on the last line"})
    assert run.judgments.count() == 5
    answered = client.post(path, follow=True)
    assert "1 judgments will be made again" in text_of(answered)
    assert (run.judgments.count(), Run.objects.get().state) == (4, "queued")
    assert client.post(path, {"status": "everything"}).status_code == 404
    client.post(path, {"status": "ok"})
    assert run.judgments.count() == 4


@pytest.mark.parametrize("verb", ["pause", "resume", "cancel", "retry"])
def test_a_researcher_looks_on(client_of, run, verb):
    before = (Run.objects.get().state, run.judgments.count())
    assert client_of("researcher").post(reverse(f"judging:run-{verb}", args=[run.pk])).status_code == 403
    assert (Run.objects.get().state, run.judgments.count()) == before
    page = flat(client_of("researcher").get(reverse("judging:run-detail", args=[run.pk])))
    assert "<button" not in page.split('id="run-progress"')[1]


# -- starting -------------------------------------------------------------------------------------------------------


def choices(judge: Judge, benchmark, **others) -> dict:
    chosen = {"judge": judge.pk, "benchmark": benchmark.pk, "protocol": "pairwise-criteria", "order": "both"}
    chosen |= {"prompt": "default", "context": "image", "criteria": "yes", "repeats": "1", "temperature": "0"}
    return chosen | others


def test_staff_start_a_run_with_the_settings_they_chose(client_of, people, benchmark, baseline):
    chosen = choices(baseline("longest"), benchmark, order="fixed", repeats="2", limit="2")
    answered = client_of("curator").post(reverse("judging:run-new"), chosen)
    run = Run.objects.get()
    assert answered.headers["Location"] == reverse("judging:run-detail", args=[run.pk])
    assert (run.by, run.state, run.items.count()) == (people["curator"], "queued", 2)
    assert (run.settings["order"], run.settings["repeats"], run.settings["criteria"]) == ("fixed", 2, True)


def cards(page) -> dict[str, tuple[bool, bool, str]]:
    """By protocol: whether it can be chosen, whether it is, its words if the page says them."""
    html = flat(page)
    chosen = re.search(r'id="protocol-words">(.*?)\.?</p>', html)[1].strip()
    found = {
        name: (True, "selected" in marks, chosen if "selected" in marks else "")
        for name, marks in re.findall(
            r'<option value="([a-z-]+)"([^>]*)>', html.split('id="id_protocol"')[1].split("</select>")[0]
        )
    }
    names = {protocols.get(name).title: name for name in protocols.all_by_name()}
    impossible = re.findall(r"<li><b>(.*?)</b>: (.*?)</li>", html)
    return found | {names[unescape(title)]: (False, False, words) for title, words in impossible}


def test_the_form_shows_what_each_protocol_would_judge_or_why_it_cannot(client_of, benchmark, judge_at, baseline):
    client, judge = client_of("curator"), judge_at("http://127.0.0.1:9/v1")
    shown = cards(client.get(reverse("judging:run-new"), {"judge": judge.pk}))
    assert shown["pairwise-criteria"] == (
        True,
        True,
        "3 pairs in both orders: which answer is better; the judge sees the hidden criteria",
    )
    assert shown["batch"] == (False, False, "no rankings yet: make items first")
    assert list(shown)[:3] == ["pairwise-criteria", "pair", "pair-graded"]
    sample = benchmark.samples.first()
    answer = sample.responses.first()
    item = Item.objects.create(kind="score", sample=sample, content_hash="one")
    item.responses.set([answer], through_defaults={"position": 0})
    asked = {"judge": judge.pk, "benchmark": benchmark.pk}
    shown = cards(client.get(reverse("judging:run-choices"), asked | {"protocol": "score"}))
    assert shown["score"][1:] == (True, shown["score"][2])
    assert shown["score"][2].startswith("1 answer: ")
    assert shown["reference-score"] == (False, False, "no sample has a reference answer")
    assert shown["choice-extraction"] == (False, False, "no sample has options")
    assert shown["components"] == (False, False, "no sample has components")
    write_criterion(sample=sample, key="2", kind="soft_reference", text="A bowl.")
    by_length = {"judge": baseline("longest").pk, "benchmark": benchmark.pk, "protocol": "reference-score"}
    shown = cards(client.get(reverse("judging:run-choices"), by_length | {"judge": judge.pk}))
    assert shown["reference-score"][:2] == (True, True)
    answered = client.get(reverse("judging:run-choices"), by_length)
    assert cards(answered)["reference-score"] == (False, False, "Always the longer answer gives no such verdicts")
    assert "protocol-changed" in answered.headers["HX-Trigger-After-Settle"]


def test_of_a_judge_that_makes_no_calls_verdicts_are_counted(client_of, benchmark, baseline):
    chosen = choices(baseline("longest"), benchmark)
    words = text_of(client_of("curator").post(reverse("judging:run-estimate"), chosen))
    assert "makes no calls" in words
    assert "Verdicts6" in words
    assert "Calls" not in words


def test_what_a_judge_cannot_do_is_said_before_the_run_is_started(client_of, benchmark, judge_at):
    judge, client = judge_at("http://127.0.0.1:9/v1"), client_of("curator")
    judge.abilities = {"vision": False}
    judge.save()
    path = reverse("judging:run-estimate")
    answer = client.post(path, choices(judge, benchmark), headers={"HX-Request": "true"})
    refused = text_of(answer)
    fold = next(title for title, names in RunForm.FOLDS.items() if "context" in names)
    assert f"cannot see pictures, as its test showed: under {fold}, choose" in refused
    assert f"as “{RunForm.base_fields['context'].label}”" in refused
    solid = re.findall(r'<(\w+) class="btn primary"([^>]*)>', answer.content.decode())
    assert solid == [("a", ' href="#id_context"')]  # what is to be done is not to start
    cured = client.post(path, choices(judge, benchmark, context="none"), headers={"HX-Request": "true"})
    assert 'class="btn primary" type="submit" id="start-run"' in flat(cured)
    assert "#id_context" not in flat(cured)
    assert "Calls6" in text_of(client.post(path, choices(judge, benchmark, context="none")))
    assert "has no prices" in text_of(client.post(path, choices(judge, benchmark, context="none", budget="5")))


def test_a_run_is_tried_on_a_few_items_first_and_goes_on_over_all_of_them_with_those_verdicts(
    client_of, benchmark, judge_at, work_on, monkeypatch
):
    """Its page shows verdicts by order and replies, and where the order mattered."""
    monkeypatch.setattr("judging.runs.tryouts.ITEMS", 2)
    items = benchmark.samples.count()
    client = client_of("curator")
    with Server(lambda call: answer("The first one names the bowl.\nAnswer1")) as server:
        chosen = choices(judge_at(server.url), benchmark)
        tried = client.post(reverse("judging:run-new"), chosen | {"try": "1"})
        first = Run.objects.get()
        assert tried.headers["Location"] == f"/judging/runs/{first.pk}/tryout/"
        waiting = client.get(tried.headers["Location"])
        assert "Asking" in text_of(waiting)
        assert "every 1s" in waiting.content.decode()
        renewed = client.get(tried.headers["Location"], headers={"HX-Request": "true"}).content.decode()
        assert "<textarea" not in renewed  # what is being typed stays
        assert 'hx-swap-oob="true"' in renewed
        work_on(first)
        assert len(server.calls) == 4  # two pairs in both orders
        of_judge = reverse("leaderboard:judge-detail", args=[first.judge_id])
        assert client_of("anonymous").get(of_judge).status_code == 404
        assert client_of("researcher").get(reverse("judging:run-detail", args=[first.pk])).status_code == 404
        page = client.get(tried.headers["Location"])
        words = text_of(page)
        assert "Readable replies4 of 4" in words
        assert words.count("order mattered") == 2
        assert "The first one names the bowl." in words
        assert re.search(r"<mark[^>]*>Answer1</mark>", page.content.decode())
        assert "every 1s" not in page.content.decode()
        assert "Tried on 2 of" in text_of(client.get(reverse("judging:run-detail", args=[first.pk])))
        assert f"{items - 2} more pairs, both orders" in words
        assert f"Judge all {items} pairs" in words
        kept = set(Judgment.objects.filter(run=first).values_list("pk", flat=True))
        started = client.post(reverse("leaderboard:run-go-on", args=[first.pk]))
        assert started.headers["Location"] == reverse("judging:run-detail", args=[first.pk])
        work_on(first)
        assert client_of("anonymous").get(of_judge).status_code == 200
        assert len(server.calls) == 2 * items
        client.post(reverse("judging:run-new"), chosen)
    run = Run.objects.get()
    assert (run.items.count(), run.planned, run.verdicts, run.tryout) == (items, 2 * items, 2 * items, False)
    assert kept < set(Judgment.objects.filter(run=run).values_list("pk", flat=True))


def test_where_too_little_can_be_read_the_causes_come_first_and_the_run_does_not_go_on(
    client_of, benchmark, judge_at, work_on
):
    client = client_of("curator")

    def reply(call):
        if "Reply with one line" in call.text:
            return answer("Answer1")
        return answer("Answer1") if call.number == 0 else answer("Judgement: Answer1\nThat is all.")

    with Server(reply) as server:
        tried = client.post(
            reverse("judging:run-new"), choices(judge_at(server.url), benchmark, reasoning="first") | {"try": "1"}
        )
        first = Run.objects.get()
        work_on(first)
        words = text_of(client.get(tried.headers["Location"]))
        assert "What to change" in words
        assert "hold one further up" in words
        assert "The run stays closed until all of" in words
        refused = client.post(reverse("leaderboard:run-go-on", args=[first.pk]), follow=True)
        assert "can be read" in text_of(refused)
        assert Run.objects.count() == 1
        again = client.post(reverse("leaderboard:run-try-again", args=[first.pk]), {"fix": "alone", "temperature": "0"})
        second = Run.objects.exclude(pk=first.pk).get()
        assert again.headers["Location"] == reverse("leaderboard:run-tryout", args=[second.pk])
        assert second.settings["reasoning"] == "none"
        assert set(second.items.all()) == set(first.items.all())
        work_on(second)
        words = text_of(client.get(again.headers["Location"]))
        assert "What to change" not in words
        assert "2 trials" in words


def test_a_trial_says_which_of_three_things_keeps_a_verdict_from_being_read(client_of, benchmark, judge_at, work_on):
    said = {
        "It is brighter.\nVERDICT: B": "in other words than the prompt asks for. 6 of 6 replies have their own, "
        "such as “VERDICT: B”. What can be read: Answer1 or Answer2",
        "I would say that Answer2 is the better one of them.": "not on a line of its own. 6 of 6 replies say more on",
        "Answer1\nIt is brighter.": "not on the last line. 6 of 6 replies hold one further up",
    }
    for reply, cause in said.items():
        with Server(lambda call, reply=reply: answer(reply)) as server:
            chosen = choices(judge_at(server.url), benchmark, reasoning="none") | {"try": "1"}
            tried = client_of("curator").post(reverse("judging:run-new"), chosen)
            run = Run.objects.order_by("-pk")[0]
            work_on(run)
            page = client_of("curator").get(tried.headers["Location"])
            causes = text_of(page)
            assert f"The verdict is {cause}" in causes, causes
            assert causes.count("The verdict is") == 1
            # What gives the words is named first where these are the trouble; reasons first would not help.
            assert ("Add the verdict line and try" in causes) == ("VERDICT" in reply)
            Judge.objects.filter(pk=run.judge_id).update(name=f"judge of {run.pk}")


def test_replies_that_were_cut_off_get_room_and_a_changed_prompt_is_a_version_of_its_own(
    client_of, benchmark, judge_at, work_on
):
    client = client_of("curator")
    with Server(lambda call: answer("Both answers", finish="length")) as server:
        chosen = choices(judge_at(server.url), benchmark) | {"try": "1", "max_tokens": "300"}
        tried = client.post(reverse("judging:run-new"), chosen)
        first = Run.objects.get()
        work_on(first)
        page = client.get(tried.headers["Location"])
        assert "end at the limit of 300 tokens" in text_of(page)
        text = page.context["prompt"].text
        path = reverse("leaderboard:run-try-again", args=[first.pk])
        client.post(path, {"fix": "tokens", "max_tokens": "300", "temperature": "0", "text": text + "\nBe brief."})
        second = Run.objects.exclude(pk=first.pk).get()
        assert second.settings["max_tokens"] == 600
        assert second.settings["prompt"] == "default-own@1"
        assert PromptTemplate.objects.get().text.endswith("Be brief.")
        client.post(path, {"max_tokens": "300", "temperature": "0", "text": "Which is better?"})
        assert Run.objects.count() == 2


def test_other_items_can_be_drawn_for_a_trial(client_of, benchmark, judge_at, monkeypatch):
    monkeypatch.setattr("judging.runs.tryouts.ITEMS", 1)
    client = client_of("curator")
    client.post(reverse("judging:run-new"), choices(judge_at("http://127.0.0.1:9"), benchmark) | {"try": "1"})
    first = Run.objects.get()
    client.post(reverse("leaderboard:run-try-again", args=[first.pk]), {"others": "1", "temperature": "0"})
    second = Run.objects.exclude(pk=first.pk).get()
    assert second.tryout
    assert second.items.count() == 1
    assert not set(first.items.all()) & set(second.items.all())


def test_the_list_begins_with_the_viewers_own_runs_and_folds_those_of_built_in_judges(
    client_of, people, benchmark, judge_at, baseline
):
    made = {}
    for name, judge, by in (
        ("mine", judge_at("http://127.0.0.1:9"), people["curator"]),
        ("others", judge_at("http://127.0.0.1:9", name="merlin"), people["administrator"]),
        ("built in", baseline("longest"), people["curator"]),
    ):
        made[name] = start_run(judge=judge, benchmark=benchmark, protocol="pair", by=by, new=True)
    client = client_of("curator")
    before, fold = flat(client.get("/judging/")).split('<details class="fold">')
    assert re.findall(r"/judging/runs/(\d+)/", before)[::2] == [str(made[name].pk) for name in ("mine", "others")]
    assert re.findall(r"/judging/runs/(\d+)/", fold)[::2] == [str(made["built in"].pk)]
    Run.objects.exclude(pk=made["built in"].pk).delete()
    assert '<details class="fold" open>' in flat(client.get("/judging/")), "where there are no others"


def test_a_built_in_judge_is_called_in_pickers_what_it_is_called_elsewhere(client_of, benchmark, baseline):
    judge, client = baseline("longest"), client_of("curator")
    run = start_run(judge=judge, benchmark=benchmark, protocol="pair")
    assert f'<option value="{judge.name}">{judge.titled}</option>' in flat(client.get("/judging/judgments/"))
    chosen = flat(client.get(f"/judging/judgments/?judge={judge.name}"))
    assert judge.titled in chosen[chosen.index("<h1>") : chosen.index("</h1>")]
    assert f">{run.pk}: {judge.titled}, pair" in flat(client.get("/judging/runs/new/"))


def test_a_tryout_is_for_those_who_start_runs(client_of, run, people):
    path = reverse("leaderboard:run-tryout", args=[run.pk])
    assert client_of("curator").get(path).status_code == 200
    assert client_of("researcher").get(path).status_code == 403


def test_a_tryout_draws_what_people_labelled_and_nothing_of_a_hidden_split(benchmark):
    items = Item.objects.filter(sample__benchmark=benchmark)
    assert list(draw(items)) == list(draw(items))
    benchmark.hidden_splits = ["test"]
    benchmark.save()
    hidden = items.first().sample
    hidden.split = "test"
    hidden.save()
    assert draw(items).filter(sample=hidden).count() == 0
    assert draw(items).exists()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"budget": "5"}, "has no prices"),
        ({"prompt": "answer-then-reason", "reasoning": "first"}, "leave it out"),
        ({"repeats": "0"}, "greater than or equal to 1"),
        ({"temperature": "hot"}, "a number from 0 to 2"),
        ({"judge": "999"}, "Select a valid choice"),
        ({"limit": "-1"}, "greater than or equal to 1"),
    ],
)
def test_a_choice_that_cannot_be_is_said_at_its_place_and_starts_nothing(client_of, benchmark, judge_at, wrong, words):
    chosen = choices(judge_at("http://127.0.0.1:9/v1"), benchmark) | wrong
    answered = client_of("curator").post(reverse("judging:run-new"), chosen)
    assert answered.status_code == 422
    assert words in text_of(answered)
    assert not Run.objects.exists()


def test_the_estimate_counts_calls_and_money_for_what_is_chosen(client_of, benchmark, judge_at):
    judge, client = judge_at("http://127.0.0.1:9/v1", price_in=2, price_out=10), client_of("curator")
    path = reverse("judging:run-estimate")
    fragment = client.get(path, choices(judge, benchmark, repeats="3"))
    assert flat(fragment).strip().startswith('<div id="run-estimate"')
    assert "Items3 Calls18".replace(" ", "") in text_of(fragment).replace(" ", "")
    shown = text_of(fragment).replace(" ", "")
    sent, received = (
        int(re.search(rf"Tokens{what},about([0-9,]+)", shown)[1].replace(",", "")) for what in ("sent", "received")
    )
    assert 18 * 400 < sent < 18 * 1000  # a prompt of some 1,800 letters, and a picture of one tile
    assert f"${(2 * sent + 10 * received) / 1e6:.3f}" in shown
    assert "An estimate" in text_of(fragment)
    assert "Choose a judge" in text_of(client.get(path))
    assert "Calls 6".replace(" ", "") in text_of(client.get(reverse("judging:run-new"))).replace(" ", "")


@pytest.mark.parametrize("made", ["run", "attack", "collect"])
def test_more_items_than_there_can_be_are_refused_in_words(client_of, benchmark, judge_at, made):
    judge = judge_at("http://127.0.0.1:9/v1")
    chosen = choices(judge, benchmark, limit=10**20, endpoint=judge.pk, kind="responses")
    answered = client_of("curator").post(reverse(f"judging:{made}-new"), chosen)
    assert answered.status_code == 422
    assert "a whole number from 1 to" in text_of(answered)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"level": "Nowhere"}, "has no level 'Nowhere'"),
        ({"run": 99}, "99 is not one of the available choices"),
        ({"repeats": "-1"}, "Repeats: Ensure this value is greater than or equal to 1."),
    ],
)
def test_the_estimate_says_what_is_wrong_with_the_choice(client_of, benchmark, judge_at, given, words):
    path = reverse("judging:run-estimate")
    fragment = client_of("curator").get(path, choices(judge_at("http://127.0.0.1:9/v1"), benchmark, **given))
    assert words in text_of(fragment).replace("&#x27;", "'")


@pytest.mark.check("A14", "F12")
def test_staff_add_a_judge_at_an_allowed_host_only(client_of, settings):
    settings.JUDGE_HOSTS = ["api.example.org"]
    client, path = client_of("curator"), reverse("judging:judge-new")
    given = {"name": "kestrel", "model": "k", "concurrency": "8", "timeout": "60"}
    for address, words in (
        ("http://169.254.169.254/v1", "is not one of the hosts"),
        ("https://api.example.org.evil.test/v1", "is not one of the hosts"),
        ("https://user:pass@api.example.org/v1", "must not contain a user name"),
        ("file:///etc/passwd", "must be a URL like"),
        ("https://api.example.org:bad/v1", "not a URL"),
        ("http://api.example.org/v1", "With http:// anybody on the way can read what is sent"),
        ("https://api.example.org:8443/v1", "Port 8443 of api.example.org is not allowed"),
    ):
        answered = client.post(path, given | {"base_url": address})
        assert answered.status_code == 422
        assert words in text_of(answered)
    for variable in ("SECRET_KEY", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY", "sk-123", "HOME", "OTHER_API_KEY"):
        answered = client.post(path, given | {"base_url": "https://api.example.org/v1", "key_env": variable})
        assert answered.status_code == 422
    assert not Judge.objects.filter(name="kestrel").exists()
    client.post(path, given | {"base_url": "https://api.example.org/v1/", "key_env": "OPENAI_API_KEY"})
    judge = Judge.objects.get(name="kestrel")
    assert (judge.base_url, judge.any_host, judge.concurrency) == ("https://api.example.org/v1", False, 8)


@pytest.mark.check("A14", "F12")
def test_ports_this_machine_and_keys_are_as_the_site_lists_them_and_what_a_judge_has_it_keeps(client_of, settings):
    settings.JUDGE_HOSTS = ["api.example.org:8443", "localhost", "127.0.0.1:8000"]
    settings.JUDGE_KEYS = ["TEAM_*"]
    client, path = client_of("curator"), reverse("judging:judge-new")
    given = {"model": "k", "concurrency": "8", "timeout": "60"}
    for number, (address, key, taken) in enumerate(
        [
            ("https://api.example.org:8443/v1", "TEAM_API_KEY", True),
            ("https://api.example.org:8443/v1", "OPENAI_API_KEY", False),
            ("http://api.example.org:8443/v1", "", False),
            ("http://localhost/v1", "", True),
            ("http://localhost:8000/v1", "", False),
            ("http://127.0.0.1:8000/v1", "", True),
        ]
    ):
        sent = client.post(path, given | {"name": f"j{number}", "base_url": address, "key_env": key})
        assert (sent.status_code == 302) == taken == Judge.objects.filter(name=f"j{number}").exists()
    old = {"base_url": "http://api.example.org:8443/v1", "model": "k", "key_env": "OTHER_API_KEY"}
    Judge.objects.create(name="old", **old)
    assert client.post(path, given | old | {"name": "old", "concurrency": "3"}).status_code == 302
    assert Judge.objects.get(name="old").concurrency == 3


def test_a_judge_by_command_takes_any_host_and_a_second_endpoint_needs_another_name(judge_at):
    judge = judge_at("http://10.0.0.7:8000/v1")
    assert judge.any_host
    assert judge_at("http://10.0.0.7:8000/v1", concurrency=99).concurrency == 99
    with pytest.raises(BadInput, match="choose another name"):
        judge_at("http://10.0.0.8:8000/v1")


def test_a_researcher_sees_of_a_judge_its_host_but_not_its_address_or_variable(client_of, judge_at):
    judge = judge_at("http://127.0.0.1:8123/v1/team-a", key_env="KESTREL_API_KEY")
    path = reverse("judging:judge-detail", args=[judge.pk])
    researcher, curator = (text_of(client_of(role).get(path)) for role in ("researcher", "curator"))
    assert "127.0.0.1:8123" in researcher
    assert "team-a" not in researcher
    assert "KESTREL_API_KEY" not in researcher
    assert "http://127.0.0.1:8123/v1/team-a" in curator
    assert "KESTREL_API_KEY" in curator


# -- a judgment -----------------------------------------------------------------------------------------------------


def test_staff_read_what_the_judge_said_and_every_call_others_the_verdict_only(client_of, run):
    judgment = run.judgments.filter(status="ok", choice__in=["first", "second"]).first()
    path = reverse("judging:judgment-detail", args=[judgment.pk])
    curator, researcher = (text_of(client_of(role).get(path)) for role in ("curator", "researcher"))
    for words in ("Names the walnut bowl.", "Show the prompt"):
        assert words in curator
        assert words not in researcher
    for words in ("is better", "heron-7b", "osprey-13b", "What is on table", "The same item", "Not released"):
        assert words in researcher


def test_the_notice_of_a_judgment_without_a_verdict_is_in_sentence_case(client_of, run):
    judgment = run.judgments.get(status="parse_failed")
    page = text_of(client_of("curator").get(reverse("judging:judgment-detail", args=[judgment.pk])))
    assert "Parse failed: no vote on the last line" in page


def test_a_failed_judgment_shows_staff_why_and_what_the_endpoint_said_and_others_its_status(client_of, run):
    judgment = run.judgments.get(status="error")
    path = reverse("judging:judgment-detail", args=[judgment.pk])
    curator, researcher = (text_of(client_of(role).get(path)) for role in ("curator", "researcher"))
    assert "the endpoint refused the request (400)" in curator
    assert "refused the request" not in researcher
    assert "Statuserror" in researcher
    assert '"message"' not in researcher
    assert "&quot;walnut&quot;" in curator
    assert "Calls without a verdict" in curator
    assert Attempt.objects.filter(item=judgment.item).exists()


def test_a_curator_sees_the_very_prompt_and_the_reading_is_logged_in_their_name(client_of, people, run):
    judgment = run.judgments.filter(status="ok").first()
    path = reverse("judging:judgment-prompt", args=[judgment.pk])
    page = text_of(client_of("curator").get(path))
    assert "Names the walnut bowl, number" in page
    assert "the one that was sent" in page
    record = CriteriaAccess.objects.exclude(how="judging").get()
    assert (record.who, record.sample_ids) == (people["curator"], [judgment.item.sample_id])
    assert client_of("researcher").get(path).status_code == 403
    fragment = flat(client_of("curator").get(path, headers={"HX-Request": "true"}))
    assert fragment.strip().startswith('<div id="judgment-prompt"')


def test_a_prompt_whose_sample_has_changed_since_says_that_it_is_not_the_one_sent(client_of, run):
    judgment = run.judgments.filter(status="ok").first()
    judgment.item.sample.instruction = "What else is there?"
    judgment.item.sample.save()
    page = text_of(client_of("curator").get(reverse("judging:judgment-prompt", args=[judgment.pk])))
    assert "not exactly what the judge saw" in page


def test_markup_in_answers_and_replies_is_text(client_of, run):
    judgment = run.judgments.filter(status="ok").first()
    response = judgment.item.ordered_responses()[0]
    response.text = "<img src=x onerror=alert(1)>"
    response.save()
    Judgment.objects.filter(pk=judgment.pk).update(raw="<script>alert(1)</script>", reported_model="<b>k</b>")
    page = flat(client_of("curator").get(reverse("judging:judgment-detail", args=[judgment.pk])))
    for markup in ("<img src=x", "<script>alert", "<b>k</b>"):
        assert markup not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page
