"""Prompts that staff write: what is refused, that a version never changes, and that runs ask with them."""

import json
import tracemalloc
from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from bank.errors import BadInput
from bank.models import CriteriaAccess
from judging import protocols
from judging.models import Judgment, PromptTemplate, Run
from judging.protocols import prompts
from judging.protocols.prompts import checks, stored
from judging.runs import requests
from judging.work import run_kinds
from tests.hidden import ended_before_today
from tests.judging.server import Server, answer
from tests.judging.test_pages import choices, text_of

PAIRS = protocols.get("pairwise-criteria")
DEFAULT = prompts.get("pairwise-criteria").text
EVERY = [(protocol, name) for protocol in protocols.all_by_name() for name in prompts.names(protocol)]


@pytest.mark.parametrize(("protocol", "name"), EVERY)
def test_every_built_in_prompt_keeps_the_rules_for_those_of_staff(protocol, name):
    assert checks.faults(protocols.get(protocol), prompts.get(protocol, name).text) == []


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{{ answers[0] }}", "", "Answer 1 is not shown in full"),
        ("<answer-1-{{ nonce }}>\n", "", "Answer 1 must be between a line <NAME-{{ nonce }}>"),
        ("</answer-2-{{ nonce }}>", "</answer-2>", "Answer 2 must be between"),
        ("<answer-1-{{ nonce }}>\n{{ answers[0] }}", "<answer-1-{{ nonce }}> {{ answers[0] }}", "Answer 1 must be"),
        ("{{ instruction }}", "{{ instruction|upper }}", "The instruction is not shown in full"),
        ("{% if criteria %}", "{% if criteria and reasoning == 'first' %}", "The criterion is not shown in full"),
        ("You compare", "{{ criteria|join }} You compare", "The criterion must be between"),
        ("unable to decide: situation two", "", "not told to write unable to decide: situation two"),
        ("{{ nonce }}", "fixed", "must be between"),
        ("You compare", "{{ secret }} You compare", "Unknown variable: secret. Templates of pairwise-criteria have"),
        ("You compare", "{% if answers[0] == 'x' %}y{% endif %}You compare", "answers cannot be compared"),
        ("You compare", "{% if instruction|length > 3 %}y{% endif %}You compare", ""),
        ("You compare", "{{ answers.__class__ }}", "__class__ is not allowed in prompts"),
        ("You compare", "{% for i in range(9) %}{% endfor %}", "call is not allowed in prompts"),
        ("You compare", "{{ 'x' * 9 }}", "mul is not allowed in prompts"),
        ("You compare", "{{ '%999999999d' % 1 }}", "% needs a text with %d or %s"),
        ("You compare", "{{ instruction|center(9) }}", "the filter center is not allowed"),
        ("You compare", "{% include 'x' %}", "include is not allowed in prompts"),
        ("You compare", "{% macro x() %}{% endmacro %}", "macro is not allowed in prompts"),
        ("You compare", "{% if %}", "Line 1: "),
        ("You compare", "x" * 20_001, "longer than 20,000"),
        ("{{ answers[0] }}", "{{ answers[5] }}", "It cannot be rendered"),
        ("You compare", f"{{{{ {'(' * 5000}1{')' * 5000} }}}}", "nested too deeply"),
    ],
)
def test_a_template_that_breaks_a_rule_is_told_which(old, new, words):
    assert old in DEFAULT
    found = checks.faults(PAIRS, DEFAULT.replace(old, new))
    assert any(words in fault for fault in found) if words else found == []


BOMBS = {
    "doubled": "{% set a = a ~ a %}",
    "added": "{% set a = a + a %}",
    "joined": "{% set a = [a, a]|join('-') %}",
    "formatted": "{% set a = '%s%s' % (a, a) %}",
    "captured": "{% set b %}{{ a }}{{ a }}{% endset %}{% set a = b %}",
    "nested": "{% set a = [a, a] %}",
}


PLAIN = "Question: {{ instruction }}\nFirst: {{ answers[0] }}\nSecond: {{ answers[1] }}\nWhich is better? Judge."


@pytest.mark.check("A11")
def test_a_papers_prompt_is_taken_as_it_is_judged_by_and_told_on_every_board(
    client_of, start, judge_at, work_on, benchmark
):
    curator = client_of("curator")
    form = {"protocol": "pairwise-criteria", "name": "paper", "text": PLAIN}
    assert "must be between a line" in text_of(curator.post("/judging/prompts/new/", form))
    answered = curator.post("/judging/prompts/new/", form | {"as_published": "on"})
    assert answered.status_code == 302
    assert PromptTemplate.objects.get().as_published
    page = text_of(curator.get("/judging/prompts/pairwise-criteria/paper/1/"))
    assert "As published: without fences" in page
    hidden = {"protocol": "pairwise-criteria", "name": "half", "text": "{{ instruction }} {{ answers[0] }}"}
    refused = curator.post("/api/v1/prompts/", hidden | {"as_published": True}, content_type="application/json")
    assert refused.status_code == 400
    assert "Answer 2 is not shown" in refused.content.decode()
    with Server(lambda call: answer("Answer1")) as server:
        work_on(start(judge_at(server.url), settings={"prompt": "paper", "order": "fixed"}))
    ended_before_today()
    assert any("Question: What is on table 0?\nFirst: A walnut bowl" in call.text for call in server.calls)
    board = client_of("researcher").get("/leaderboards/everyday/models/?source=kestrel")
    assert "Judged with a prompt as published: it has no fences" in text_of(board)
    out = StringIO()
    call_command("leaderboard", "models", benchmark="everyday", source="kestrel", stdout=out)
    assert "Judged with a prompt as published" in out.getvalue()


@pytest.mark.parametrize("line", BOMBS.values(), ids=BOMBS)
def test_a_template_that_doubles_a_text_line_by_line_is_neither_stored_nor_rendered(line):
    bomb = "{% set a = instruction %}\n" + 24 * f"{line}\n" + "{{ a }}"
    assert any("produces too much text" in fault for fault in checks.faults(PAIRS, f"{DEFAULT}\n{bomb}"))
    stored = prompts.Prompt("pairwise-criteria", "bomb", 1, bomb, "")
    tracemalloc.start()
    with pytest.raises(prompts.TooMuch):
        stored.render({"instruction": "What is on the table?" * 50})
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 60_000_000


@pytest.mark.parametrize("inside", ["", "{{ a }}", "x" * 500])
def test_loops_in_loops_end(inside):
    loops = "".join(f"{{% for {name} in instruction %}}" for name in "abcd")
    text = loops + inside + 4 * "{% endfor %}"
    assert any("produces too much text" in fault for fault in checks.faults(PAIRS, f"{DEFAULT}\n{text}"))
    with pytest.raises(prompts.TooMuch):
        prompts.Prompt("pairwise-criteria", "loops", 1, text, "").render({"instruction": "What is on the table?" * 50})


def test_loops_over_constants_are_counted_as_others_are():
    """A compiler that folds constants would work them out where nothing is metered: 17 s for seven of them."""
    loops = "".join(f"{{% for {name} in [1, 2, 3, 4, 5, 6, 7, 8, 9, 10] %}}" for name in "abcdefgh")
    text = loops + "x" + 8 * "{% endfor %}"
    assert any("produces too much text" in fault for fault in checks.faults(PAIRS, f"{DEFAULT}\n{text}"))


def test_a_sum_without_end_is_told_to_be_nested_too_deeply():
    text = "{{ " + "+".join(["'x'"] * 3_000) + " }}"
    assert checks.faults(PAIRS, f"{DEFAULT}\n{text}") == ["The template is nested too deeply."]


@pytest.mark.django_db
def test_an_item_for_which_a_stored_template_makes_too_much_is_an_error_and_the_run_goes_on(
    start, judge_at, work_on, benchmark
):
    PromptTemplate.objects.create(
        protocol="pairwise-criteria",
        name="grows",
        version=1,
        text=DEFAULT + "\n{% set a = instruction %}" + 14 * "{% set a = a ~ a %}" + "{{ a }}",
        sha256="0" * 64,
    )
    long = benchmark.samples.first()
    long.instruction *= 100
    long.save()
    with Server(lambda call: answer("Answer1")) as server:
        run = work_on(start(judge_at(server.url), settings={"prompt": "grows@1", "order": "fixed"}))
    assert (run.state, run.verdicts, run.failures) == ("finished", 2, 1)
    assert "produces too much text" in run.judgments.get(status="error").reason


@pytest.mark.parametrize(
    ("protocol", "old", "words"),
    [
        ("pair", "[[C]]", "[[C]]"),
        ("score", "[[{{ scale[0][0] }}]]", "a score in double brackets"),
        ("components", "{{ form }}", "Score of component 1"),
        ("components", "{{ part.text }}", "Component 1 is not shown in full"),
        ("choice-extraction", "Choice: ", "Choice: and a label"),
        ("choice-extraction", "{{ option.text }}", "Option A is not shown in full"),
        ("reference-score", "Mark: 3", "Mark: and a number"),
        ("reasoning-quality", "{{ text }}", "The reference answer is not shown in full"),
        ("yes-no", "Answer: X", "Answer: X"),
        ("batch", "[[{{ letter }}]]", "every letter in double brackets"),
    ],
)
def test_each_protocol_asks_for_what_it_reads(protocol, old, words):
    text = prompts.get(protocol).text
    assert old in text
    assert any(words in fault for fault in checks.faults(protocols.get(protocol), text.replace(old, "")))


# -- versions -------------------------------------------------------------------------------------------------------


def write(text=DEFAULT, **values) -> PromptTemplate:
    given = {"protocol": "pairwise-criteria", "name": "strict", "note": "stricter"} | values
    return stored.add_template(text=text, **given)


@pytest.mark.django_db
def test_each_text_of_a_name_is_a_version_and_none_is_ever_changed():
    first, second = write(), write(DEFAULT + "\nBe strict.")
    assert (first.version, second.version) == (1, 2)
    assert prompts.get("pairwise-criteria", "strict") == prompts.Prompt.from_row(second)
    assert prompts.get("pairwise-criteria", "strict", 1).text == first.text
    first.text = "changed"
    with pytest.raises(ValueError, match="never changed"):
        first.save()
    with pytest.raises(BadInput, match="Version 1 of strict has exactly this text"):
        write()
    with pytest.raises(BadInput, match="built in"):
        write(name="default")
    with pytest.raises(BadInput, match="lower-case letters"):
        write(name="a@1")
    with pytest.raises(BadInput, match="must be between"):
        write("{{ answers[0] }}")


@pytest.mark.django_db
def test_the_setting_names_the_newest_version_and_is_written_with_it():
    write()
    assert PAIRS.settings({"prompt": "strict"})["prompt"] == "strict@1"
    write(DEFAULT + "\nBe strict.")
    assert PAIRS.settings({"prompt": "strict"})["prompt"] == "strict@2"
    assert PAIRS.settings({"prompt": "strict@1"})["prompt"] == "strict@1"
    for unknown in ("strict@3", "lenient", "strict@", "strict@x", 7):
        with pytest.raises(protocols.BadSettings, match="prompt: "):
            PAIRS.settings({"prompt": unknown})
    with pytest.raises(protocols.BadSettings, match="Unknown prompt 'strict' for pair"):
        protocols.get("pair").settings({"prompt": "strict"})


@pytest.mark.django_db
def test_a_run_asks_with_the_version_it_began_with_and_a_new_version_begins_a_new_run(start, judge_at, work_on):
    write("Of the first kind.\n" + DEFAULT)
    with Server(lambda call: answer("Answer1")) as server:
        judge = judge_at(server.url)
        run = start(judge, settings={"prompt": "strict"})
        write("Of the second kind.\n" + DEFAULT)
        assert start(judge, settings={"prompt": "strict@1"}).pk == run.pk
        other = start(judge, settings={"prompt": "strict"})
        assert other.pk != run.pk
        work_on(run)
        assert len(server.calls) == 6
        assert all("Of the first kind." in json.dumps(call.body) for call in server.calls)
        work_on(other)
        assert "Of the second kind." in json.dumps(server.calls[-1].body)
    assert (run.template, run.template_version) == ("pairwise-criteria.strict", 1)
    assert (other.template_version, other.template_sha256) == (2, prompts.get("pairwise-criteria", "strict", 2).sha256)
    assert Judgment.objects.filter(run=run, choice="first").count() == 3


@pytest.mark.django_db
def test_an_unused_version_may_be_thrown_away_a_used_one_stays(client_of, start, judge_at):
    used = write()
    start(judge_at("http://127.0.0.1:9/v1"), settings={"prompt": "strict"})
    unused = write(DEFAULT + "\nBe strict.")
    client = client_of("curator")
    for template in (used, unused):
        client.post(reverse("judging:template-discard", args=["pairwise-criteria", "strict", template.version]))
    assert list(PromptTemplate.objects.values_list("version", flat=True)) == [1]


# -- pages, command, API --------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_the_list_shows_versions_hashes_and_use(client_of, people, start, judge_at):
    made = write(by=people["curator"])
    start(judge_at("http://127.0.0.1:9/v1"), settings={"prompt": "strict"})
    page = text_of(client_of("researcher").get(reverse("judging:template-list")))
    for words in (
        made.sha256[:8],
        "strict",
        "stricter",
        "built in",
        "answer-then-reason",
        prompts.get("pair").sha256[:8],
    ):
        assert words in page
    detail = text_of(
        client_of("researcher").get(reverse("judging:template-detail", args=["pairwise-criteria", "strict", 1]))
    )
    assert "You compare two answers" in detail
    assert "kestrel" in detail
    assert client_of("researcher").get(reverse("judging:template-new")).status_code == 403
    assert client_of("curator").get("/judging/prompts/pair/none/1/").status_code == 404
    assert client_of("curator").get("/judging/prompts/pair/default/9/").status_code == 404


@pytest.mark.django_db
def test_a_curator_writes_a_version_in_the_browser_and_starts_a_run_with_it(client_of, benchmark, judge_at):
    client, path = client_of("curator"), reverse("judging:template-new")
    copied = client.get(path, {"protocol": "pairwise-criteria", "prompt": "rephrased"}).content.decode()
    assert "Please act as an impartial referee" in copied
    given = {"protocol": "pairwise-criteria", "name": "strict", "text": DEFAULT.replace("{{ answers[0] }}", "")}
    answered = client.post(path, given)
    assert answered.status_code == 422
    assert "Answer 1 is not shown in full" in text_of(answered)
    client.post(path, given | {"text": DEFAULT.replace("\n", "\r\n")})
    assert PromptTemplate.objects.get().text == DEFAULT.rstrip("\n")
    judge = judge_at("http://127.0.0.1:9/v1")
    client.post(reverse("judging:run-new"), choices(judge, benchmark, prompt="strict@1"))
    assert Run.objects.get().settings["prompt"] == "strict@1"


@pytest.mark.django_db
def test_the_preview_shows_a_real_sample_and_logs_the_reading_of_its_criteria(client_of, people, benchmark):
    client, path = client_of("curator"), reverse("judging:template-preview")
    given = {"protocol": "pairwise-criteria", "text": DEFAULT, "benchmark": benchmark.pk, "sample": "1"}
    shown = client.post(path, given).content.decode()
    assert "A walnut bowl stands on table 1." in shown
    assert "Names the walnut bowl, number 1." not in shown
    assert 'alt="Picture 1"' in shown
    assert not CriteriaAccess.objects.exists()
    shown = text_of(client.post(path, given | {"criteria": "on"}))
    assert "Names the walnut bowl, number 1." in shown
    record = CriteriaAccess.objects.get()
    assert (record.who, record.how, len(record.sample_ids)) == (people["curator"], "prompt preview", 1)
    for change, words in (
        ({"text": "{{ x }}"}, "Unknown variable: x"),
        ({"sample": "none"}, "Sample none has no items"),
        ({"benchmark": ""}, "Choose a benchmark"),
        ({"protocol": "batch", "text": prompts.get("batch").text}, "no items of kind batch"),
    ):
        assert words in text_of(client.post(path, given | change))
    assert client_of("researcher").post(path, given).status_code == 403


@pytest.mark.django_db
def test_the_preview_is_what_a_run_would_send(benchmark, people, start, judge_at):
    run = start(judge_at("http://127.0.0.1:9/v1"))
    job = run_kinds.run_kind(run).page().jobs[0]
    item = run.items.get(pk=job.subject.item_id)
    shown = requests.preview_request(
        template=prompts.get("pairwise-criteria"), settings=run.settings, item=item, user=people["curator"]
    )
    sent = requests.judge_request(run, job, template=prompts.get("pairwise-criteria"), protocol=PAIRS)

    def without_nonce(asked):
        return asked.text.replace(asked.material.nonce, "")

    assert without_nonce(shown) == without_nonce(sent)
    assert [image.sha256 for image in shown.images] == [image.sha256 for image in sent.images]


@pytest.mark.django_db
def test_templates_by_api_and_command(client_of, benchmark, judge_at):
    client = client_of("curator")
    given = {"protocol": "pairwise-criteria", "name": "strict", "text": DEFAULT}
    made = client.post("/api/v1/prompts/", given, content_type="application/json")
    assert (made.status_code, made.json()["version"]) == (201, 1)
    wrong = client.post("/api/v1/prompts/", given | {"text": "x"}, content_type="application/json")
    assert wrong.status_code == 400
    assert any("Answer 1" in fault for fault in wrong.json()["text"])
    assert [one["name"] for one in client.get("/api/v1/prompts/").json()["results"]] == ["strict"]
    judge_at("http://127.0.0.1:9/v1")
    chosen = '{"prompt": "strict"}'
    call_command("judge", benchmark="everyday", judge="kestrel", protocol="pairwise-criteria", chosen=chosen)
    assert Run.objects.get().settings["prompt"] == "strict@1"
