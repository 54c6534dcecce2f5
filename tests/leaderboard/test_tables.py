"""What pages show beside the boards leaves by the command and the API, in full precision and to nobody else."""

import csv
import io
import json
import re

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Role
from annotations.labels.agreement import agreement_of, label_rows
from annotations.models import Annotator, Campaign
from bank.models import Benchmark
from judging.models import Run
from leaderboard import rows as board_rows
from leaderboard.boards import seen
from leaderboard.boards.judges import stand_in as standin
from leaderboard.registry import TABLES
from leaderboard.view import scope_of
from stats.agreement import MEASURES
from tests.bank.conftest import folder, manage
from tests.leaderboard.conftest import PEOPLE, judgments
from tests.leaderboard.test_editions import publish
from tests.leaderboard.test_keyed_boards import LABELS, quiz
from tests.markup import flat

__all__ = ["folder", "manage", "publish", "quiz"]
pytestmark = pytest.mark.django_db
API = "/api/v1/leaderboards"
READERS = {Role.RESEARCHER, Role.CURATOR, Role.ADMINISTRATOR}
STAFF = READERS - {Role.RESEARCHER}
NEEDED = {
    "compare": {"a": "Alder", "b": "Cedar"},
    "places": {"source": "keen"},
    "disagreements": {"source": "dull"},
    "apart": {"source": "dull"},
}  # without which there are no rows


def told(what, *options, benchmark="grove", shape="json"):
    """What the command prints."""
    out = io.StringIO()
    call_command("leaderboard", what, "--benchmark", benchmark, *options, "--format", shape, stdout=out)
    return json.loads(out.getvalue()) if shape == "json" else out.getvalue()


def got(client, what, status=200, **query):
    answer = client.get(f"{API}/{what}/", {"benchmark": "grove"} | query)
    assert answer.status_code == status, answer.content
    return answer


def as_options(query):
    return [part for name, value in query.items() for part in (f"--{name}", value)]


@pytest.mark.parametrize(
    "what", sorted(TABLES.keys() - {"reviews", "analyses", "repeats", "versions", "held-out"})
)  # nobody reviewed or asked again here
def test_the_command_and_the_api_give_the_same_rows_in_every_format(what, quiz, voted, client_of):
    client, query = client_of("curator"), NEEDED.get(what, {})
    name = "quiz" if what in ("abilities", "letters", "extraction") else "grove"
    rows = told(what, *as_options(query), benchmark=name)
    assert rows
    assert got(client, what, **query, benchmark=name).json() == rows
    lines = got(client, what, **query, benchmark=name, format="jsonl").content.decode()
    assert [json.loads(line) for line in lines.splitlines()] == rows
    assert told(what, *as_options(query), benchmark=name, shape="jsonl") == lines
    cells = told(what, *as_options(query), benchmark=name, shape="csv")
    assert got(client, what, **query, benchmark=name, format="csv").content.decode() == cells
    columns = next(csv.reader(io.StringIO(cells)))
    assert columns == list(dict.fromkeys(column for row in rows for column in board_rows.flat(row)))
    assert len(told(what, *as_options(query), benchmark=name, shape="table").splitlines()) > len(rows)


def test_the_stand_in_test_takes_any_epsilon_and_gives_what_the_page_rounds(voted, client):
    rows = got(client, "stand-in", epsilon="0.1").json()
    page = client.get("/leaderboards/grove/judges/?epsilon=0.1").content.decode()
    panel = page[page.index('id="stand-in"') :]
    for row in rows:
        assert f">{row['winning_rate']:.2f}<" in re.sub(r"\s+", "", panel)
        assert (row["epsilon"], len(row["annotators"])) == (0.1, 3)
        assert {"n", "advantage", "p", "rejected"} == set(row["annotators"][0])
    exact = [row | {"as_of": None} for row in standin.stand_ins(scope_of(benchmark="grove"), 0.123456789).as_json()]
    assert told("stand-in", "--epsilon", "0.123456789") == exact
    assert got(client, "stand-in", epsilon="0.123456789").json() == exact
    close = standin.stand_ins(scope_of(benchmark="grove"), 0.123456788).as_json()
    assert [row["annotators"][0]["p"] for row in close] != [row["annotators"][0]["p"] for row in exact]


def test_people_and_a_judge_are_those_of_the_page_for_any_judge(brought, voted, client):
    labelled = list(judgments("further", noise=0.6, seed=4))
    brought("judgments", labelled)
    newest = Run.objects.order_by("pk").last()
    rows = got(client, "people-and-judge").json()
    assert {(row["judge_name"], row["run"]) for row in rows} == {("further", newest.pk)}
    assert rows == [
        {"judge_name": "further", "run": newest.pk} | row | {"as_of": None}
        for row in standin.together(scope_of(benchmark="grove"), newest.pk).as_json()
    ]
    keen = Run.objects.get(judge__name="keen").pk
    for query in ({"source": "keen"}, {"run": str(keen)}):
        assert {row["run"] for row in got(client, "people-and-judge", **query).json()} == {keen}
        assert told("people-and-judge", *as_options(query)) == got(client, "people-and-judge", **query).json()


def test_people_against_people_stand_as_the_page_shows_them_by_level_too(voted, client):
    rows = got(client, "ceiling").json()
    board = seen.judges(scope_of(benchmark="grove"))
    of_all = {(row["reference"], row["metric"]): row for row in rows if not row["level"]}
    for reference, against in board.against.items():
        for metric, of_people in against.ceiling.items():
            row = of_all[reference, metric]
            assert (row["value"], row["value_low"], row["n"]) == (
                of_people.number.value,
                of_people.number.low,
                of_people.n,
            )
    value = of_all["majority", "accuracy_sided"]["value"]
    html = client.get("/leaderboards/grove/judges/").content.decode()
    ceiling = html[html.index("One more person") :]
    assert f"<b>{100 * value:.1f}</b>" in ceiling[: ceiling.index("</tr>")]
    assert {row["level"] for row in rows} == {"", "Perception", "Creation"}


@pytest.mark.parametrize("role", ["anonymous", *Role.values])
def test_agreement_in_a_campaign_is_for_those_who_read_its_page_and_names_are_staffs(role, voted, client_of):
    client = client_of(role)
    if role not in READERS:
        assert client.get(f"{API}/campaign/?benchmark=grove").status_code in (401, 403)
        return
    rows = got(client, "campaign").json()
    campaign = Campaign.objects.get()
    figures = agreement_of(campaign, label_rows(campaign)).figures
    of_all = {row["metric"]: row for row in rows if not (row["level"] or row["a"] or row["verdict"])}
    assert list(of_all) == ["matching", "alpha_nominal", "alpha_ordinal", "fleiss", "ac1", "ac2", "unanimous"]
    assert [row["value"] for row in of_all.values()][:-1] == [figure.estimate.value for figure in figures]
    assert of_all["alpha_nominal"]["value_low"] == figures[1].estimate.interval.low
    names = {row[side] for row in rows if row["a"] for side in ("a", "b")}
    assert names == (set(PEOPLE) if role in STAFF else set(Annotator.objects.values_list("pseudonym", flat=True)))
    assert {row["metric"] for row in rows if row["a"]} == {"agreement", *MEASURES}
    assert {row["level"] for row in rows} == {"", "Perception / Reading", "Creation / Poetry", "Creation / Stories"}
    assert got(client, "campaign", campaign=campaign.name).json() == rows
    assert got(client, "campaign", 400, campaign="none").json()
    page = flat(client.get(f"/campaigns/{campaign.pk}/agreement/"))
    assert f"{of_all['alpha_nominal']['value']:.3f}" in page
    link = re.search(r'href="(/api/v1/leaderboards/campaign/[^"]+json)"', page)[1].replace("&amp;", "&")
    assert client.get(link).json() == rows
    Benchmark.objects.update(visibility="private")
    assert got(client, "campaign", 200 if role in STAFF else 404)


@pytest.mark.parametrize("role", ["anonymous", *Role.values])
def test_letters_of_hidden_keys_are_staffs_and_an_edition_tells_none_of_the_keys(role, quiz, publish, client_of):
    client = client_of(role)
    rows = {what: got(client, what, benchmark="quiz").json() for what in ("letters", "extraction")}
    assert all(bool(of_table) == (role in STAFF) for of_table in rows.values())
    publish()
    letters, extraction = (got(client, what, benchmark="quiz").json() for what in rows)
    of_key = {row["letter"]: row["share"] for row in letters if row["of"] == "key"}
    assert of_key == (dict.fromkeys(LABELS, 0.25) if role in STAFF else {})
    of_model = {row["letter"]: row["share"] for row in letters if row["model"] == "Shaky"}
    every_pass, one_pass = {"A": 0.25, "B": 0.25, "C": 0.3125, "D": 0.1875}, {"A": 0.5, "C": 0.5}
    assert of_model == (every_pass if role in STAFF else one_pass)
    assert [(row["model"], row["label"], row["n"], row["found"]) for row in extraction] == [
        ("Shaky", 192, 192, 1.0),
        ("Sure", 192, 192, 1.0),
    ]
    for what in rows:
        status = 200 if role in STAFF else 400  # an edition is seen as a whole
        got(client, what, status, benchmark="quiz", level="Seeing")
    got(client, "compare", 200 if role in STAFF else 400, benchmark="quiz", a="Sure", b="Shaky")


def test_a_table_is_made_of_the_first_kind_of_verdicts_that_it_can_be_made_of(quiz, folder, manage):
    pair = {"kind": "pair", "sample": "q0", "responses": ["Sure", "Shaky"], "annotator": "Ada", "choice": "first"}
    assert manage("import_labels", "generic", folder("labels", [pair]), "--benchmark", "quiz")[0] == 0
    assert "win_rate" in told("models", benchmark="quiz")[0]
    assert {row["model"] for row in told("letters", benchmark="quiz")} == {"", "Sure", "Shaky"}


def test_two_to_compare_are_models_by_name_or_judges_by_run(voted, client):
    runs = [f"run-{Run.objects.get(judge__name=name).pk}" for name in ("keen", "dull")]
    rows = told("compare", "--a", runs[0], "--b", runs[1])
    assert {(row["a_name"], row["b_name"]) for row in rows} == {("keen", "dull")}
    assert got(client, "judges/compare", a=runs[0], b=runs[1]).json() == rows
    rows = told("compare", "--a", "Alder", "--b", "Cedar", "--part", "levels")
    assert got(client, "models/compare", a="Alder", b="Cedar", part="levels").json() == rows
    page = client.get("/leaderboards/grove/models/compare/?a=Alder&b=Cedar").content.decode()
    link = re.search(r'href="(/api/v1/leaderboards/compare/[^"]+json)"', page)[1].replace("&amp;", "&")
    assert client.get(link).json() == told("compare", "--a", "Alder", "--b", "Cedar")


@pytest.mark.parametrize(
    ("page", "tables"),
    [
        ("grove/judges/?epsilon=0.1", {"ceiling", "stand-in"}),
        ("grove/models/together/", {"people-and-judge"}),
        ("grove/correlation/", {"correlation"}),
        ("quiz/models/", {"letters", "extraction"}),
    ],
)
def test_a_pages_menu_offers_what_it_shows(page, tables, quiz, voted, client_of):
    client = client_of("curator")
    links = re.findall(rf'href="({API}/([\w-]+)/\?[^"]+)"', client.get(f"/leaderboards/{page}").content.decode())
    assert tables <= {table for _, table in links}
    for link, table in links:
        answer = client.get(link.replace("&amp;", "&"))
        assert (answer.status_code, bool(answer.content.strip())) == (200, True), table
        assert ("epsilon=0.1" in link) == (table == "stand-in")


@pytest.mark.parametrize(
    ("what", "query", "words"),
    [
        ("stand-in", {"epsilon": "1.5"}, "from 0 to 1"),
        ("stand-in", {"epsilon": "nan"}, "from 0 to 1"),
        ("stand-in", {"kind": "batch"}, "only computed for pairs, scores and categories"),
        ("stand-in", {"anchor": "Alder"}, ""),
        ("people-and-judge", {"run": "999"}, "No judge has a run 999"),
        ("letters", {}, "Only answers to multiple choice have options"),
        ("ceiling", {"epsilon": "0.1"}, ""),
        ("correlation", {"part": "all"}, "Unknown part"),
        ("campaign", {"level": "Perception"}, ""),
        ("campaign", {"campaign": "none"}, "no campaign"),
        ("compare", {"a": "Alder"}, "Say which two"),
        ("compare", {"a": "Alder", "b": "Nobody"}, "nothing to compare"),
    ],
)
def test_what_a_table_cannot_answer_is_refused_in_words(what, query, words, voted, client_of):
    answer = got(client_of("curator"), what, 400, **query).json()
    assert words in str(answer)
    with pytest.raises(CommandError) as refused:
        told(what, *as_options(query))
    assert refused.value.returncode == 2
    assert words in str(refused.value)


def test_places_where_there_are_no_pairs_are_none_and_nothing_is_said_to_depend_on_keys(quiz, client_of):
    for role in ("anonymous", "curator"):
        assert got(client_of(role), "places", benchmark="quiz").json() == []
