"""The board of biases: what sways a judge, with people's own beside it, the same by page, command and API."""

import json
import re
from itertools import product
from math import ceil

import pytest
from django.core.management import call_command

from annotations.models import Campaign
from bank.models import EvaluatedModel
from judging.models import Judge
from leaderboard.boards.seen import bias_of
from leaderboard.scope import BadScope
from leaderboard.view import scope_of
from stats.power import detectable
from tests.leaderboard.conftest import MODELS, PEOPLE, judgments, labels, pairs
from tests.leaderboard.test_graded_boards import scores

pytestmark = pytest.mark.django_db


def of(board, judge):
    return {row["bias"]: row for row in board.as_json() if row["judge"] == judge}


def always_first():
    """A judge that votes for whichever answer stands first."""
    for sample, first, second in pairs():
        for order in ([first, second], [second, first]):
            choice = "first" if order[0] == first else "second"
            yield {
                "kind": "pair", "protocol": "pairwise-criteria", "sample": sample, "responses": [first, second],
                "judge": "lazy", "settings": {"order": "both"}, "order": order, "choice": choice,
            }  # fmt: skip


def mostly_first():
    """The same, but on every sixth sample it votes for whichever stands second."""
    for row in always_first():
        late = int(row["sample"][1:]) % 6 == 0
        yield row | ({"choice": "second" if row["choice"] == "first" else "first"} if late else {})


def test_a_judge_that_takes_the_first_place_leans_to_it_wholly(brought):
    brought("labels", labels())
    brought("judgments", [*always_first(), *judgments("keen", noise=0.6, seed=2)])
    board = bias_of(scope_of(benchmark="grove"))
    lazy, keen, people = (of(board, name) for name in ("lazy", "keen", "humans"))
    assert (lazy["position"]["value"], lazy["position"]["detail"]["consistent"]) == (1, 0)
    assert lazy["position"]["n"] == len(list(pairs()))
    assert lazy["position"]["detail"]["significant"] is True
    low, value, high = (keen["position"][name] for name in ("value_low", "value", "value_high"))
    assert -0.3 < low < value < high < 0.3
    assert keen["length"]["value"] is None or keen["length"]["value_low"] < keen["length"]["value_high"]
    assert keen["self"]["value"] is None
    assert "family" in keen["self"]["detail"]["reason"]
    # Imported labels do not say in which order they were given: unknown is not 0.
    assert people["position"]["value"] is None
    assert set(people) == {"position", "length", "self"}


def test_its_own_family_and_a_soft_heart_are_held_against_people(brought):
    brought("labels", [row for seed, name in enumerate(PEOPLE) for row in scores(0.5, seed, annotator=name)])
    kind = [row | {"score": min(5, row["score"] + (1 if row["responses"] == ["Cedar"] else 0))} for row in
            scores(0.5, 7, judge="kin")]  # fmt: skip
    brought("judgments", kind)
    Judge.objects.filter(name="kin").update(family="conifer")
    EvaluatedModel.objects.filter(name="Cedar").update(family="conifer")
    board = bias_of(scope_of(benchmark="grove", kind="score"))
    kin = of(board, "kin")
    assert kin["self"]["value"] == pytest.approx(1, abs=0.3)
    assert kin["self"]["value_low"] > 0.5
    assert kin["self"]["detail"]["models"] == ["Cedar"]
    assert kin["high_score"]["value_low"] < kin["high_score"]["value"] < kin["high_score"]["value_high"]
    detail = kin["high_score"]["detail"]
    assert sum(detail["judge"]) == pytest.approx(1)
    assert detail["judge_mean"] - detail["people_mean"] == pytest.approx(kin["high_score"]["value"])
    assert sum(of(board, "humans")["high_score"]["detail"]["people"].values()) == pytest.approx(1)
    own, others = (sum(x * y for x, y in zip(kin["self"]["detail"]["scale"], kin["self"]["detail"][side], strict=True))
                   for side in ("own", "own_people"))  # fmt: skip
    assert own - others == pytest.approx(1, abs=0.3)
    with pytest.raises(BadScope, match="none of kind choice"):
        bias_of(scope_of(benchmark="grove", kind="choice", staff=True))


def test_pairs_judged_in_one_order_show_which_place_won_beside_peoples_share_of_it(brought, client):
    brought("labels", labels())
    one_order = [row | {"settings": {"order": "shuffled"}} for row in always_first() if row["choice"] == "first"]
    brought("judgments", [row for n, row in enumerate(one_order) if n % 4])
    row = of(bias_of(scope_of(benchmark="grove")), "lazy")["position"]
    assert (row["value"], row["detail"]["first"], row["detail"]["second"]) == (1, 1, 0)
    assert row["n"] == sum(bool(n % 4) for n in range(len(one_order)))
    assert 0 < row["detail"]["people_first"] < 1
    assert row["detail"]["method"] == "orders drawn by lot"
    assert "one order" in client.get("/leaderboards/grove/bias/").content.decode()


def rankings(judge):
    """A judge that ranks the answers as they were shown, except on every third sample, where it turns them round."""
    for n in range(24):
        shown = [MODELS[(n + place) % 3] for place in range(3)]
        best = shown if n % 3 else shown[::-1]
        yield {
            "kind": "batch", "protocol": "batch", "sample": f"s{n:02}", "responses": list(MODELS[:3]), "judge": judge,
            "settings": {"order": "shuffled"}, "order": shown, "ranking": best,
        }  # fmt: skip


def test_rankings_show_how_far_they_follow_the_order_shown_and_the_share_of_each_order(brought, client):
    brought("judgments", rankings("copy"))
    (row,) = bias_of(scope_of(benchmark="grove", kind="batch")).as_json()
    assert row["value"] == pytest.approx(16 / 24 - 8 / 24)
    assert row["value_low"] < row["value"] < row["value_high"]
    assert row["detail"]["orders"] == {"A B C": pytest.approx(16 / 24), "C B A": pytest.approx(8 / 24)}
    shown = client.get("/leaderboards/grove/bias/?kind=batch").content.decode()
    assert "Orders given" in shown
    assert client.get(f"/leaderboards/grove/plots/bias.svg?kind=batch&metric=orders-{row['run']}").status_code == 200


def test_the_longer_of_two_answers_and_the_longer_of_several_scored_ones_are_told(brought, folder, manage, client):
    long_ones = [
        {"sample": f"s{n:02}", "model": model, "text": "word " * (10 + 10 * place + n)}
        for n in range(24)
        for place, model in enumerate(("Elm", "Fir", "Gum"))
    ]
    brought("responses", long_ones)
    pair = {"kind": "pair", "protocol": "pair", "judge": "wordy", "settings": {"order": "fixed"}}
    likes = [
        pair
        | {"sample": f"s{n:02}", "responses": [a, b], "choice": "tie" if n % 6 == 0 else "first" if a > b else "second"}
        for n in range(24)
        for a, b in (("Elm", "Fir"), ("Gum", "Elm"))
    ]
    score = {"kind": "score", "protocol": "score", "judge": "wordy"}
    likes += [
        score | {"sample": f"s{n:02}", "responses": [model], "score": 2 + place + n % 2}
        for n in range(24)
        for place, model in enumerate(("Elm", "Fir", "Gum"))
    ]
    brought("judgments", likes)
    row = of(bias_of(scope_of(benchmark="grove")), "wordy")["length"]
    assert [(point["difference"], point["n"]) for point in row["detail"]["curve"]] == [(10, 24), (20, 24)]
    for point in row["detail"]["curve"]:  # 4 of 24 are ties
        assert point["value"] == pytest.approx((20 + 4 / 2) / 24)
        assert point["value_low"] < point["value"] < point["value_high"]
    row = of(bias_of(scope_of(benchmark="grove", kind="score")), "wordy")["length"]
    # Scores rise by one where lengths rise by ten: by the standard deviation of -10, 0 and 10.
    assert row["value"] == pytest.approx((2 / 3) ** 0.5)
    assert [(point["difference"], point["value"]) for point in row["detail"]["curve"]] == [(-10, -1), (0, 0), (10, 1)]
    shown = client.get("/leaderboards/grove/bias/?kind=score").content.decode()
    assert "points beside the mean of the sample" in shown
    assert client.get(f"/leaderboards/grove/plots/bias.svg?kind=score&metric=length-{row['run']}").status_code == 200


def test_page_command_and_api_say_the_same_of_biases(brought, client_of, capsys):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    call_command("leaderboard", "bias", benchmark="grove", shape="json")
    printed = json.loads(capsys.readouterr().out)
    assert printed == client_of("anonymous").get("/api/v1/leaderboards/bias/?benchmark=grove").json()
    assert {"judge", "bias", "value", "n", "detail"} <= set(printed[0])
    call_command("leaderboard", "bias", benchmark="grove")
    assert "position" in capsys.readouterr().out
    page = client_of("anonymous").get("/leaderboards/grove/bias/").content.decode()
    assert "keen" in page
    assert "to compare" in page
    empty = client_of("anonymous").get("/leaderboards/grove/bias/?kind=score").content.decode()
    assert "No judge has judged" in empty


# ---- the page ----

PAGE = "/leaderboards/grove/bias/"
LONGER = {"Elm": 10, "Fir": 30}  # words


@pytest.fixture
def by_length(brought):
    """Brings who chose the longer of two answers, on samples from the first: ``judge=23`` of 24, and people's."""
    texts = [
        {"sample": f"s{n:02}", "model": model, "text": "word " * (words * (n + 24) // 24)}
        for n, (model, words) in product(range(24), LONGER.items())
    ]
    brought("responses", texts)

    def rows(longer, of=24):
        for n in range(of):
            side = "first" if n < longer else "second"
            yield {
                "kind": "pair",
                "protocol": "pair",
                "sample": f"s{n:02}",
                "responses": ["Fir", "Elm"],
                "choice": side,
            }

    def bring(people, of, **judges):
        brought("labels", [row | {"annotator": "Ada"} for row in rows(people, of)])
        given = []
        for judge, longer in judges.items():
            given += [row | {"judge": judge, "settings": {"order": "fixed"}} for row in rows(longer)]
        brought("judgments", given)

    return bring


def page_of(client, query=""):
    """The page in one line, without what formatting puts between words."""
    return re.sub(r"\s+", " ", client.get(f"{PAGE}{query}").content.decode()).replace("&#x27;", "'")


def said_in(html):
    found = re.search('<p class="say">(.*?)</p>', html)
    return re.sub("</?b>", "", found.group(1)) if found else ""


def row_of(html, name):
    """What stands in a row of the board, cell by cell."""
    body = html[html.index('class="data lb') :]
    (row,) = (row for row in re.findall("<tr.*?</tr>", body) if f">{name}<" in row)
    cells = re.findall(r"<t[dh][ >].*?</t[dh]>", row)
    return [" ".join(re.sub("<[^>]*>", " ", cell).split()) for cell in cells]


def test_the_largest_effect_is_named_first_also_where_peoples_order_is_not_known(brought, client):
    brought("labels", labels())
    brought("judgments", [*mostly_first(), *judgments("keen", noise=0.6, seed=2)])
    html = page_of(client)
    largest = "lazy leans to the answer shown first by 66.1 points, the largest effect here"
    assert said_in(html).startswith(f"{largest} (people's own order was not kept)")
    assert re.search(r'class="chip bad"[^>]*>\+66\.1</a>', html)
    assert row_of(html, "People")[1:] == ["not known order not kept", "", ""]
    assert row_of(html, "lazy")[3] == "+66.1 strong"
    assert "against 0" in html
    assert "beyond people</span>" not in html


def test_a_judge_is_marked_only_where_people_s_own_error_leaves_a_difference(by_length, client):
    by_length(7, 10, wordy=23)  # 96 [80, 99] of 100 leave people's 70, but these may be 90 as well
    board = bias_of(scope_of(benchmark="grove"))
    row = of(board, "wordy")["length"]
    assert row["detail"]["longer_low"] > 0.7
    (beyond,) = (each.difference for each in board.beyond if each.bias == "length")
    assert beyond.value == pytest.approx(23 / 24 - 7 / 10)
    assert beyond.low < 0 < beyond.high
    assert "beyond" not in row
    html = page_of(client)
    assert row_of(html, "wordy")[-1].startswith("+25.8 [−")
    assert not re.search(r'class="chip (bad|warn)"[^>]*>\+25\.8', html)
    assert "rewards longer answers" not in html


def test_who_lies_beyond_people_is_named_after_the_largest_effect_and_then_who_is_not_told_apart(by_length, client):
    by_length(5, 24, wordy=23, plain=6)
    html = page_of(client)
    assert said_in(html) == (
        "wordy leans to the answer shown first by 91.7 points, the largest effect here (people's own order was not "
        "kept), and rewards longer answers 75.0 points more than people. On length plain is not told apart from people."
    )
    assert "like people" not in html
    assert row_of(html, "wordy")[-1].startswith("+75.0 [+")


def test_one_axis_holds_every_interval_and_people_stand_on_it_with_theirs(by_length, client):
    by_length(3, 24, wordy=23)
    html = page_of(client)
    heads = re.findall(r'<svg class="iv"[^>]*aria-hidden="true"><text.*?</svg>', html)
    assert len(set(heads)) == 1, "one axis for all biases"
    assert "−50" in heads[0]
    (band,) = set(re.findall(r'<rect class="band" x="([\d.]+)"[^>]*width="([\d.]+)" height="54"', html))
    width = int(re.search(r'<svg class="iv" width="(\d+)"', html).group(1))
    assert 8 < float(band[0]) < float(band[0]) + float(band[1]) < width - 8
    for x in map(float, re.findall(r'<circle class="pt" cx="([\d.]+)" cy="8"', html)):
        assert 8 < x < width - 8


def test_a_bias_far_beyond_the_others_has_an_axis_of_its_own_and_its_head_says_so(by_length, brought, client):
    by_length(12, 24, even=12)
    brought("judgments", mostly_first())
    html = page_of(client)
    shown, longer = re.findall(r'<th scope="colgroup".*?</th>', html)
    reach = [re.search(r"axis from −\d+ to \+(\d+)", head).group(1) for head in (shown, longer)]
    assert int(reach[0]) > 3 * int(reach[1]) - 5  # both are rounded out to the next 5


def test_what_nobody_measured_is_no_column_but_a_line_and_curators_can_name_the_makers(brought, client, client_of):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    html = page_of(client)
    assert "<b>Own family</b>" not in html
    assert "Not measured here: " in html
    assert "own family, no judge's maker is named" in html
    assert "Name the makers" not in html
    judge = Judge.objects.get(name="keen")
    curator = client_of("curator")
    assert f'href="/judging/judges/{judge.pk}/#maker">Name the makers</a>' in page_of(curator)
    EvaluatedModel.objects.filter(name="Cedar").update(family="conifer")
    said = curator.post(f"/judging/judges/{judge.pk}/maker/", {"family": "conifer"}, follow=True)
    assert 'value="conifer"' in said.content.decode()
    assert "<b>Own family</b>" in page_of(client)
    assert client_of("researcher").post(f"/judging/judges/{judge.pk}/maker/", {"family": "x"}).status_code == 403
    sent = {"family": "none"}
    answer = curator.patch(f"/api/v1/judges/{judge.pk}/", sent, content_type="application/json")
    assert answer.json()["family"] == "none"


def test_without_an_interval_there_is_no_sentence_but_the_reason(brought, client):
    few = [row for row in judgments("keen", noise=0.6, seed=2) if row["sample"] < "s05"]
    brought("labels", [row for row in labels() if row["sample"] < "s05"])
    brought("judgments", few)
    html = page_of(client)
    assert said_in(html) == ""
    assert "No finding here, for no number of a judge has an interval: fewer than 8 groups: no interval." in html
    assert 'class="chip bad" title' not in html


def test_where_no_judge_is_told_apart_the_page_says_what_so_many_pairs_could_have_shown(brought, client):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    Campaign.objects.update(imported=False)  # the order of their answers is known
    (beyond,) = (each.difference for each in bias_of(scope_of(benchmark="grove")).beyond)
    points = ceil(100 * detectable(beyond.se))
    n = len(list(pairs()))
    assert said_in(page_of(client)) == (
        f"No judge is told apart from people here; {n} pairs could show {points} points or more."
    )


def test_the_curves_of_four_judges_are_drawn_and_those_of_all_on_request(by_length, client):
    by_length(12, 24, a=20, b=18, c=16, d=14, e=12)
    html = page_of(client)
    first, rest = html.split("<b>Show all, 5</b>")
    assert (first.count("forest curve"), rest.count("forest curve")) == (4, 1)
    (area,) = set(re.findall(r'<path class="band" d="[^"]*Z"', html))
    assert area, "people's band lies behind each"


def test_the_tables_of_figures_write_no_indentation_into_each_cell(by_length, client):
    by_length(12, 24, a=20)
    html = client.get(PAGE).content.decode()
    (figures,) = re.findall('<table class="data cmpt">.*?</table>', html, re.DOTALL)
    cells = len(re.findall("<t[dh] ", figures))
    assert len(figures) / cells < 128
