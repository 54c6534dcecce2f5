"""What endpoints draft, read by people first: other words, objects in pictures, instructions and criteria."""

import json

import pytest

from bank.errors import BadInput
from bank.models import Benchmark, Capability, CriteriaAccess, Draft, Sample, SampleImage
from bank.models.drafts import REWRITINGS
from bank.recipes import store
from bank.recipes.spec import from_yaml as read
from bank.samples import drafts
from judging.models import Collected, Run
from judging.recipes import evaluations
from judging.runs import actions
from judging.work import leases
from tests.hidden import criteria
from tests.judging.server import Server, answer
from tests.judging.small import make_benchmark
from tests.markup import flat

pytestmark = pytest.mark.django_db
SECRET = "Names the quagga in the corner."


def collect(kind, judge, benchmark, work_on, **settings):
    return work_on(actions.start_collecting(kind=kind, judge=judge, benchmark=benchmark, settings=settings or None))


def in_other_words(call):
    """Says how it was asked to write; other questions are answered with A."""
    ways = ("passive", "active", "friend", "formal", "translate")
    how = [word for word in ways if word in call.text] if "Write the following question" in call.text else []
    return answer(f"{how[0]}: what is on it?" if how else "A")


def test_questions_in_other_words_wait_until_a_person_takes_them(benchmark, judge_at, work_on, client_of):
    with Server(in_other_words) as server:
        run = collect("rewrites", judge_at(server.url), benchmark, work_on)
        assert (run.state, run.verdicts, len(server.calls)) == ("finished", 15, 15)
        assert not any(call.images for call in server.calls)
        with pytest.raises(BadInput, match="every other way; nothing is left"):
            actions.start_collecting(kind="rewrites", judge=run.judge, benchmark=benchmark, new=True)
    sample = Sample.objects.get(key="0")
    assert drafts.rewritings([sample.pk]) == {}
    client = client_of("curator")
    assert "formal: what is on it?" in flat(client.get(f"/bank/benchmarks/{benchmark}/drafts/"))
    formal = Draft.objects.get(sample=sample, part="formal")
    client.post(f"/bank/benchmarks/{benchmark}/drafts/", {"draft": [formal.pk], "take": ""})
    assert drafts.rewritings([sample.pk])[sample.pk]["formal"].text == "formal: what is on it?"
    casual = Draft.objects.get(sample=sample, part="casual")
    client.post(f"/bank/benchmarks/{benchmark}/drafts/", {"draft": [casual.pk], "dismiss": ""})
    casual.refresh_from_db()
    assert (casual.state, casual.by.username) == ("dismissed", "curator")


def test_verbs_of_instructions_are_asked_for_once_and_counted_on_the_benchmarks_page(
    benchmark, judge_at, work_on, client_of
):
    def says(call):
        return answer(
            "I cannot tell what this is asking for at all." if call.text.endswith("2") else "Describe: Picture."
        )

    number = benchmark.samples.count()
    with Server(says) as server:
        for at, sample in enumerate(benchmark.samples.order_by("pk")):
            Sample.objects.filter(pk=sample.pk).update(instruction=f"Describe picture {at}")
        run = collect("verbs", judge_at(server.url), benchmark, work_on)
        assert not any(call.images for call in server.calls)
    assert (run.state, run.verdicts, run.failures) == ("finished", number - 1, 1)
    Benchmark.objects.update(visibility="public")
    page = flat(client_of("anonymous").get(f"/leaderboards/{benchmark.slug}/"))
    assert "What instructions ask to do" in page
    assert "describe (picture)" in page
    rows = client_of("anonymous").get(f"/api/v1/leaderboards/contents/?benchmark={benchmark.slug}&part=verbs").json()
    told = [(row["name"], row["n"], row["of"]) for row in rows]
    assert told == [("describe (picture)", number - 1, number - 1)]
    with Server(says) as server:  # what failed alone is asked again
        again = actions.start_collecting(kind="verbs", judge=judge_at(server.url, name="other"), benchmark=benchmark)
    assert again.planned == 1


def test_drafts_are_read_taken_and_dismissed_by_api(benchmark, judge_at, work_on, client_of):
    with Server(in_other_words) as server:
        collect("rewrites", judge_at(server.url), benchmark, work_on)
    client = client_of("curator")
    rows = client.get("/api/v1/drafts/?sample=0&part=passive").json()["results"]
    assert [(row["text"], row["state"]) for row in rows] == [("passive: what is on it?", "waiting")]
    assert client.post(f"/api/v1/drafts/{rows[0]['id']}/take/").json()["state"] == "taken"
    other = Draft.objects.filter(state="waiting").first()
    assert client.post(f"/api/v1/drafts/{other.pk}/dismiss/").json()["state"] == "dismissed"
    assert client_of("researcher").get("/api/v1/drafts/").status_code == 403
    whole = Draft.objects.create(sample=other.sample, part="sample", text="{}", origin="m")
    assert client.post(f"/api/v1/drafts/{whole.pk}/take/").status_code == 400


def recipe(how):
    text = f"""
name: robust
scenario: [{{benchmark: everyday}}]
corruption: {how}
turns: [{{kind: direct}}]
metric: rrm
"""
    return store.save(read(text))[0]


def test_a_recipe_asks_in_the_words_that_were_taken_and_names_what_is_not_written(benchmark, judge_at, work_on, people):
    Sample.objects.update(options={"A": "a bowl", "B": "a lamp"})
    with Server(in_other_words) as server:
        judge = judge_at(server.url)
        made = recipe("{strategy: single, text: passive}")
        with pytest.raises(BadInput, match="3 questions are not written as passive, such as 0"):
            evaluations.start_evaluation(recipe=made, judge=judge)
        collect("rewrites", judge, benchmark, work_on)
        drafts.take(drafts=Draft.objects.filter(part="passive"), by=people["curator"])
        before = len(server.calls)
        evaluation = evaluations.start_evaluation(recipe=made, judge=judge)
        work_on(evaluation.runs.get())
    asked = [call.text for call in server.calls[before:]]
    assert sum("passive: what is on it?" in text for text in asked) == 3
    assert sum("What is on table" in text for text in asked) == 3  # the plain question beside it


def test_objects_in_pictures_are_listed_for_judges_that_see_none(benchmark, judge_at, work_on):
    with Server(lambda call: answer("- walnut bowl: 10, 20, 30, 40\n- spoon: 1, 2, 3, 4\n")) as server:
        judge = judge_at(server.url)
        collect("objects", judge, benchmark, work_on)
        assert all(len(call.images) == 1 for call in server.calls)
        image = SampleImage.objects.filter(sample__key="1").get()
        assert image.objects_found == ["walnut bowl: 10, 20, 30, 40", "spoon: 1, 2, 3, 4"]
        revision = image.sample.revisions.latest("pk")
        assert revision.note.startswith("Objects listed by kestrel-vl, run ")
        before = len(server.calls)
        settings = {"context": "objects"}
        run = actions.start_run(judge=judge, benchmark=benchmark, protocol="pairwise-criteria", settings=settings)
        work_on(run)
    assert all("walnut bowl: 10, 20, 30, 40" in call.text and not call.images for call in server.calls[before:])


def test_drafted_criteria_are_kept_encrypted_and_become_criteria_when_a_person_saves_them(
    benchmark, judge_at, work_on, client_of
):
    reply = json.dumps({"criteria": [{"text": SECRET}, "Counts the spoons."]})
    with Server(lambda call: answer(f"```json\n{reply}\n```")) as server:
        run = collect("drafts", judge_at(server.url), benchmark, work_on)
    assert not any("walnut bowl, number" in call.text for call in server.calls)  # no criterion was shown
    assert {row.text for row in Collected.objects.filter(run=run)} == {""}
    sample = Sample.objects.get(key="0")
    draft = Draft.objects.get(sample=sample)
    assert SECRET not in str(Draft.objects.filter(pk=draft.pk).extra(select={"raw": "text"}).values("raw"))
    assert SECRET not in client_of("researcher").get(f"/judging/runs/{run.pk}/").content.decode()
    curator = client_of("curator")
    assert SECRET in flat(curator.get(f"/bank/benchmarks/{benchmark}/drafts/"))
    assert SECRET in curator.get(f"/api/v1/drafts/{draft.pk}/").json()["text"]
    assert CriteriaAccess.objects.filter(how="drafts", who__username="curator").count() == 2
    page = curator.get(f"/bank/samples/{sample.pk}/edit/?draft={draft.pk}")
    assert SECRET in page.content.decode()
    form = {"draft": draft.pk, "rows": 2, "key": "0", "instruction": sample.instruction, "language": "en"}
    form |= {"edition": sample.edition, "question_type": "closed-ended", "c0-kind": "guideline", "c0-text": SECRET}
    form |= {"c0-shown_to": "staff", "c0-order": 1, "c1-kind": "guideline", "c1-text": "", "c1-shown_to": "staff"}
    for picture in sample.images.all():
        form |= {f"p{picture.pk}-pk": picture.pk, f"p{picture.pk}-order": 1}
    answered = curator.post(f"/bank/samples/{sample.pk}/edit/", form)
    assert answered.status_code == 302, flat(answered)
    assert [one.text for one in criteria(sample=sample)] == [SECRET]
    draft.refresh_from_db()
    assert draft.state == "taken"
    assert curator.get(f"/api/v1/drafts/{draft.pk}/").json()["text"] == ""  # a criterion now, read where that is logged


@pytest.mark.parametrize(
    ("kind", "settings", "reply"),
    [
        ("responses", {"circular": True}, "A"),
        ("captions", {}, "A bowl on a table."),
        ("objects", {}, "walnut bowl: 10, 20, 30, 40"),
        ("rewrites", {}, "In other words: what is on it?"),
        ("drafts", {}, json.dumps({"criteria": ["Counts the spoons."]})),
        ("drafts", {"prompt": "instruction"}, json.dumps({"instruction": "Count.", "criteria": ["Counts."]})),
        (
            "drafts",
            {"prompt": "composed", "components": {"mention": 1}},
            json.dumps({"instruction": "Count.", "criteria": [{"text": "Counts.", "category": "mention"}]}),
        ),
    ],
)
def test_every_kind_is_collected_on_samples_with_capabilities(kind, settings, reply, benchmark, judge_at, work_on):
    top = Capability.objects.create(benchmark=benchmark, name="Perception", path="Perception")
    leaf = Capability.objects.create(benchmark=benchmark, name="Tables", path="Perception / Tables", parent=top)
    benchmark.samples.update(capability=leaf, options={"A": "a bowl", "B": "a cup"})
    with Server(lambda call: answer(reply)) as server:
        run = collect(kind, judge_at(server.url), benchmark, work_on, **settings)
    assert (run.state, run.failures, run.verdicts) == ("finished", 0, run.planned), run.state_reason
    if kind == "drafts" and settings.get("prompt") != "composed":
        assert all("Perception / Tables" in call.text for call in server.calls)


def test_an_instruction_is_composed_of_weighted_components(benchmark, judge_at, work_on):
    parts = [{"text": "Mention the bowl.", "category": "mention", "weight": 3}]
    reply = json.dumps({"instruction": "In two lines, mention the bowl.", "criteria": parts})
    with Server(lambda call: answer(reply)) as server:
        components = {"mention": 3, "length limit": 1}
        run = collect("drafts", judge_at(server.url), benchmark, work_on, prompt="composed", components=components)
    assert run.state == "finished"
    assert "- mention (weight 3)" in server.calls[0].text
    assert drafts.proposal(Draft.objects.first()) == {
        "instruction": "In two lines, mention the bowl.",
        "criteria": [{"text": "Mention the bowl.", "weight": 3.0, "category": "mention"}],
    }


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("Here you are.", "not one JSON object"),
        ('{"criteria": []}', "no list of 1 to 40 criteria"),
        ('{"criteria": [{"weight": 1}]}', "lacks a criterion's text"),
        ("[1]", "not one JSON object"),
    ],
)
def test_a_reply_that_is_no_draft_fails_in_words_and_keeps_no_text(reply, words, judge_at, work_on):
    with Server(lambda call: answer(reply)) as server:
        run = collect("drafts", judge_at(server.url), make_benchmark(samples=1), work_on)
    (row,) = Collected.objects.filter(run=run)
    assert (row.status, row.text, row.thinking) == ("parse_failed", "", "")
    assert words in row.reason
    assert not Draft.objects.exists()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"prompt": "composed"}, "takes components"),
        ({"components": {"mention": 1}}, "takes components"),
        ({"prompt": "composed", "components": {"": 1}}, "names with weights"),
        ({"prompt": "composed", "components": [1]}, "names with weights"),
    ],
)
def test_components_are_refused_in_words(settings, words, benchmark, judge_at):
    with pytest.raises(BadInput, match=words):
        actions.start_collecting(
            kind="drafts", judge=judge_at("http://127.0.0.1:9/v1"), benchmark=benchmark, settings=settings
        )
    assert not Run.objects.exists()


def test_all_ways_of_writing_are_corruptions_of_sentences():
    from bank.corruptions import texts

    assert tuple(method.name for method in texts.METHODS.values() if method.written) == REWRITINGS


def test_runs_that_are_told_what_pictures_show_wait_while_it_is_being_written(benchmark, judge_at, work_on):
    with Server(lambda call: answer("A bowl: 1, 2, 3, 4")) as server:
        judge = judge_at(server.url)
        collecting = actions.start_collecting(kind="captions", judge=judge, benchmark=benchmark)
        listing = actions.start_collecting(kind="objects", judge=judge, benchmark=benchmark)
        settings = {"context": "caption+objects"}
        run = actions.start_run(judge=judge, benchmark=benchmark, protocol="pairwise-criteria", settings=settings)
        seen = actions.start_run(judge=judge, benchmark=benchmark, protocol="pairwise-criteria")
        assert {one.pk for one in leases.waiting()} == {collecting.pk, listing.pk, seen.pk}
        work_on(collecting)
        assert run not in leases.waiting()
        work_on(listing)
        assert run in leases.waiting()
