"""The public page of a model and that of a judge: all boards of theirs that the viewer may see, and no other."""

import json
import re
from collections import defaultdict
from datetime import date

import pytest

from annotations.models import Label
from bank import exposure
from bank.models import Benchmark, Capability, EvaluatedModel
from judging.models import Judge, Judgment, Run
from leaderboard.boards.behind import votes_page
from tests.leaderboard.conftest import STRENGTH, by_model, judgments, labels

pytestmark = pytest.mark.django_db


def text_of(client, path):
    answer = client.get(path)
    assert answer.status_code == 200, path
    return " ".join(answer.content.decode().split())


def page_of(model):
    return f"/models/{EvaluatedModel.objects.get(name=model).pk}/"


def of_judge(name):
    return f"/judges/{Judge.objects.get(name=name).pk}/"


def test_a_models_page_has_its_boards_and_the_boards_link_to_it(voted, client, board):
    row = by_model(board("models"))["Alder"]
    page = text_of(client, page_of("Alder"))
    assert f"{100 * row['win_rate']:.1f}% [{100 * row['win_rate_low']:.1f}, {100 * row['win_rate_high']:.1f}]" in page
    assert f"over {row['n']} items" in page
    assert f'href="{page_of("Alder")}"' in text_of(client, "/leaderboards/grove/models/")
    assert f'href="{page_of("Alder")}"' in text_of(client, "/")
    assert f'href="{page_of("Alder")}"' in text_of(client, "/find/?q=alder")


def test_models_at_0_count_in_the_median_of_a_level(brought, client):
    """Alder wins all, Birch half, Cedar and Dogwood nothing: beside Birch the median of the others is 0."""
    rows = [
        row | {"choice": "first" if STRENGTH[row["responses"][0]] > STRENGTH[row["responses"][1]] else "second"}
        for row in labels()
    ]
    brought("labels", rows)
    page = text_of(client, page_of("Birch"))
    levels = page[page.index("By level") :]
    bars = re.findall(r'class="oth" d="M([\d.]+) 4v8"/>.*?class="pt" cx="([\d.]+)"', levels)
    assert len(bars) >= 2
    assert all(float(median) < float(own) for median, own in bars)


def test_a_models_page_has_the_capabilities_below_its_levels(voted, client, board):
    page = text_of(client, page_of("Birch"))
    rows = re.findall(r'title="(Creation[^"]*|Perception[^"]*)" ?>(\w+)</span>.*?<b ?>([\d.]+)</b>', page)
    shown = {path: value for path, _, value in rows}
    assert list(shown) == [
        "Creation",
        "Creation / Stories",
        "Creation / Poetry",
        "Perception",
        "Perception / Reading",
    ]
    for level, below in (("Creation", "Poetry"), ("Creation", "Stories"), ("Perception", "Reading")):
        row = by_model(board("models", "--level", level))["Birch"]
        assert shown[f"{level} / {below}"] == f"{100 * row['levels'][below]['win_rate']:.1f}"


def test_of_many_capabilities_a_models_page_has_the_weakest_and_the_strongest_beside_the_others(voted, client):
    """Beside two others twenty: Birch wins all of those with an odd number and loses the rest."""
    parent = Capability.objects.get(path="Perception")
    names = [f"Skill {n:02}" for n in range(20)]
    skills = [
        Capability.objects.create(benchmark=voted, parent=parent, name=name, path=f"Perception / {name}", position=n)
        for n, name in enumerate(names)
    ]
    samples = voted.samples.filter(capability__path__startswith="Perception").order_by("pk")
    for n, sample in enumerate(samples):
        sample.capability = skills[n % 20]
        sample.save()
    for label in Label.objects.filter(item__sample__in=samples).select_related("item__sample__capability"):
        models = list(label.item.places.order_by("position").values_list("response__model__name", flat=True))
        if "Birch" in models:
            odd = label.item.sample.capability.position % 2
            label.choice = "first" if (models[0] == "Birch") == bool(odd) else "second"
            label.save()
    page = text_of(client, page_of("Birch"))
    shown = re.findall(r'title="Perception / (Skill \d\d)"', page)
    assert "Of 22 capabilities the 7 weakest and the 7 strongest beside that median." in page
    assert (len(shown), shown) == (14, sorted(shown))
    assert [int(name[-2:]) % 2 for name in shown].count(1) == 7


def test_a_models_page_says_what_its_number_is_by_other_verdicts_and_at_each_place(voted, client, board):
    EvaluatedModel.objects.filter(name="Alder").update(family="keens")
    Judge.objects.filter(name="keen").update(family="keens")
    page = text_of(client, page_of("Alder"))
    panel = page[page.index("What sways its results") :]
    panel = panel[: panel.index("</section>")]
    for judge in ("keen", "dull"):
        row = by_model(board("models", "--source", judge))["Alder"]
        shown = re.search(rf"By {judge}(.*?)</tr>", panel)[1]
        assert f">{100 * row['win_rate']:.1f}</a>" in shown
        assert ("a judge of its own family" in shown) == (judge == "keen")
    assert "Shown first" not in panel  # imported labels do not say which answer stood first
    rows = [row for row in judgments("keen", noise=0.6, seed=2) if "Alder" in row["responses"]]
    places = {row["shown"]: row for row in board("places", "--source", "keen") if row["model"] == "Alder"}
    for place, shown in enumerate(("first", "second")):
        own = [row for row in rows if row["order"][place] == "Alder"]
        won = [row["choice"] == ("first" if row["responses"][0] == "Alder" else "second") for row in own]
        assert (places[shown]["n"], places[shown]["win_rate_n"]) == (len(own), len(own))
        assert places[shown]["win_rate"] == pytest.approx(sum(won) / len(won))
        assert places[shown]["win_rate_low"] < places[shown]["win_rate"] < places[shown]["win_rate_high"]


def test_a_judges_page_says_how_it_does_beside_people_and_what_sways_it(voted, client, board):
    rows = {row["metric"]: row for row in board("judges") if (row["judge"], row["reference"]) == ("keen", "majority")}
    page = text_of(client, of_judge("keen"))
    value, low, high = (100 * rows["accuracy_sided"][f"value{end}"] for end in ("", "_low", "_high"))
    assert f"Agreement {value:.1f}% [{low:.1f}, {high:.1f}]" in page
    assert "one more person" in page
    assert "Position" in page
    assert "@misc{evalsite-judge-" in page
    assert f'href="{of_judge("keen")}"' in text_of(client, "/leaderboards/grove/judges/")


def test_a_judges_page_says_how_steady_it_is(voted, brought, client, board):
    rows = [*judgments("steady", noise=0.6, seed=5, repeats=3)]
    for row in rows[:30]:
        row |= {"status": "refused", "choice": None, "raw": ""}
    brought("judgments", rows)
    assert "Readable replies" not in text_of(client, of_judge("keen"))  # its file has verdicts alone
    page = text_of(client, of_judge("steady"))
    panel = page[page.index("Steadiness") :]
    facts = dict(re.findall(r"<dt>([^<]+)</dt><dd ?> ?(.*?) ?</dd>", panel[: panel.index("</section>")]))
    labelled = {(row["sample"], *row["responses"]) for row in labels()}
    read = [bool(row["choice"]) for row in rows if (row["sample"], *row["responses"]) in labelled]
    assert 0 < len(read) < len(rows)
    assert facts["Readable replies"].startswith(f"{100 * sum(read) / len(read):.1f}% [")
    by_metric = {
        row["metric"]: row for row in board("judges") if (row["judge"], row["reference"]) == ("steady", "majority")
    }
    again = by_metric["consistency"]
    assert facts["Same if asked again"] == (
        f"{100 * again['value']:.1f}% [{100 * again['value_low']:.1f}, {100 * again['value_high']:.1f}]"
    )
    bias = next(row for row in board("bias") if (row["judge"], row["bias"]) == ("steady", "position"))
    assert facts["Same in both orders"].startswith(f"{100 * bias['detail']['consistent']:.1f}%")
    by_pair = defaultdict(list)
    for row in labels():
        by_pair[row["sample"], *row["responses"]].append(row["choice"])
    people = [choice for choices in by_pair.values() if len(choices) > 1 for choice in choices]
    assert facts["Says tie"].endswith(f"; people {100 * people.count('tie') / len(people):.1f}%")


@pytest.mark.parametrize("role", ["anonymous", "curator"])
def test_what_a_judge_costs_is_drawn_beside_the_others_for_those_who_may_see_it(role, voted, client_of):
    runs = {run.judge.name: run for run in Run.objects.filter(judge__name__in=["keen", "dull"])}
    Run.objects.update(held=exposure.NOTHING)
    Judgment.objects.filter(run=runs["keen"]).update(cost=0.002, latency=1.5)
    Judgment.objects.filter(run=runs["dull"]).update(cost=0.02)
    page = text_of(client_of(role), of_judge("keen"))
    assert "<dt>1,000 verdicts</dt><dd > $2.00 </dd>" in page
    assert "<dt>A call</dt><dd > 1.5 s </dd>" in page
    assert "$20.00 for 1,000 verdicts, " in page
    Run.objects.filter(pk=runs["keen"].pk).update(held=exposure.UNKNOWN)
    page = text_of(client_of(role), of_judge("keen"))
    assert ("1,000 verdicts" in page) == (role == "curator")
    other = text_of(client_of(role), of_judge("dull"))
    assert ("$2.00 for 1,000 verdicts" in other) == (role == "curator")


def test_a_judge_that_costs_nothing_says_so_and_one_whose_price_nobody_knows_says_nothing(voted, client):
    Run.objects.update(held=exposure.NOTHING)
    Judgment.objects.filter(run__judge__name="keen").update(cost=0.0)
    assert "<dt>1,000 verdicts</dt><dd > $0.00 </dd>" in text_of(client, of_judge("keen"))
    assert "1,000 verdicts" not in text_of(client, of_judge("dull"))


@pytest.mark.parametrize("role", ["anonymous", "annotator", "researcher"])
def test_pages_of_what_is_on_private_benchmarks_alone_are_not_there_below_staff(role, voted, client_of):
    Benchmark.objects.update(visibility="private")
    assert client_of(role).get(page_of("Alder")).status_code == 404
    assert "Grove" not in client_of(role).get(of_judge("keen")).content.decode()
    assert "Not on a public board" not in text_of(client_of("curator"), page_of("Alder"))


def test_the_baseline_that_reads_criteria_has_no_page_below_staff(voted, client_of):
    judge = Judge.objects.get(baseline="criteria-overlap")
    Run.objects.create(judge=judge, benchmark=voted, protocol="pair", state="finished")
    assert client_of("anonymous").get(of_judge(judge.name)).status_code == 404
    assert client_of("curator").get(of_judge(judge.name)).status_code == 200


def test_staff_edit_the_card_by_page_and_by_api_and_nobody_else_does(voted, client_of):
    facts = {"organisation": "North", "open": "true", "parameters": "7B", "price_in": "0.5", "released": "2026-05-01"}
    assert client_of("researcher").post(page_of("Alder"), facts).status_code == 404
    assert client_of("curator").post(page_of("Alder"), facts).status_code == 302
    page = text_of(client_of("anonymous"), page_of("Alder"))
    for words in ("North", "open", "7B", "1 May 2026", "$0.5 a million tokens"):
        assert words in page
    path = f"/api/v1{page_of('Alder')}"
    change = {"data": json.dumps({"licence": "MIT", "name": "Other"}), "content_type": "application/json"}
    assert client_of("researcher").patch(path, **change).status_code == 403
    told = client_of("curator").patch(path, **change).json()
    assert (told["name"], told["licence"], told["organisation"]) == ("Alder", "MIT", "North")
    refused = client_of("curator").post(page_of("Alder"), facts | {"price_in": "-1"})
    assert (refused.status_code, EvaluatedModel.objects.get(name="Alder").price_in) == (200, 0.5)


def test_a_file_of_models_changes_nothing_that_is_known_not_even_a_no_or_a_price_of_nothing(voted, manage, tmp_path):
    known = {"open": False, "price_in": 0.0, "licence": "MIT", "released": date(2026, 1, 2)}
    EvaluatedModel.objects.filter(name="Alder").update(**known, price_out=None)
    card = {"name": "Alder", "open": True, "price_in": 3, "price_out": 4, "licence": "Apache-2.0"}
    (tmp_path / "models.jsonl").write_text(json.dumps(card | {"released": "2020-01-01"}))
    sample = Benchmark.objects.get().samples.first().key
    (tmp_path / "responses.jsonl").write_text(json.dumps({"sample": sample, "model": "Zelkova", "text": "Yes."}))
    assert manage("import_responses", "generic", tmp_path, "--benchmark", "grove")[0] == 0
    assert EvaluatedModel.objects.values(*known, "price_out").get(name="Alder") == known | {"price_out": 4}


def test_a_file_of_models_fills_what_is_not_known_and_a_bad_one_is_refused_with_its_line(voted, manage, tmp_path):
    EvaluatedModel.objects.filter(name="Alder").update(organisation="North")
    cards = [{"name": "Alder", "organisation": "South", "licence": "MIT"}, {"name": "Zelkova", "parameters": "3B"}]
    (tmp_path / "models.jsonl").write_text("\n".join(map(json.dumps, cards)))
    keys = Benchmark.objects.get().samples.values_list("key", flat=True)
    answers = [{"sample": key, "model": "Zelkova", "text": "Yes."} for key in keys]
    (tmp_path / "responses.jsonl").write_text("\n".join(map(json.dumps, answers)))
    assert manage("import_responses", "generic", tmp_path, "--benchmark", "grove")[0] == 0
    known = dict(EvaluatedModel.objects.values_list("name", "licence"))
    assert (known["Alder"], known["Zelkova"]) == ("MIT", "")
    assert EvaluatedModel.objects.get(name="Alder").organisation == "North"
    assert EvaluatedModel.objects.get(name="Zelkova").parameters == "3B"
    (tmp_path / "models.jsonl").write_text('{"name": "Alder"}\n{"name": "Birch", "price_in": -1}')
    status, _, problem = manage("import_responses", "generic", tmp_path, "--benchmark", "grove")
    assert status == 1
    assert "models.jsonl, line 2" in problem
    assert "price_in" in problem


def test_a_benchmarks_page_says_where_its_models_and_judges_stand_and_what_it_holds(grove, manage, client):
    manage("make_items", "pair", "--benchmark", "grove")
    page = text_of(client, "/leaderboards/grove/")
    for words in ("Overview", "The whole board", "All judges", "About", "@misc{evalsite-grove-1"):
        assert words in page
    levels = re.findall(r'<a href="/leaderboards/grove/models/\?level=[^"]+">([^<]+)</a>', page)
    assert levels == list(dict.fromkeys(capability.level for capability in grove.capabilities.all()))
    assert page.count("0.0%") == len(levels)
    assert "Make more items" not in page


def test_a_benchmarks_page_shows_visitors_no_sample_that_is_not_approved(grove, client, client_of):
    texts = list(grove.samples.order_by("position").values_list("instruction", flat=True)[:2])
    assert texts[0][:60] in text_of(client, "/leaderboards/grove/")
    grove.samples.filter(instruction=texts[0]).update(status="draft")
    for role in ("anonymous", "curator"):
        assert texts[0][:60] not in text_of(client_of(role), "/leaderboards/grove/")
    grove.visibility = "private"
    grove.save()
    assert client.get("/leaderboards/grove/").status_code == 404
    assert "From a file to a board" not in text_of(client_of("curator"), "/leaderboards/grove/")  # loaded by itself


def test_a_verdict_that_begins_a_line_keeps_the_capitals_of_answers_and_models():
    names = ("wren 3B", "Kestrel-VL 7B")
    said = {"tie": "Tie", "first": "wren 3B better", "second": "Kestrel-VL 7B better", "B > A = C": "B > A = C"}
    assert {choice: votes_page.sentence(choice, names) for choice in said} == said
