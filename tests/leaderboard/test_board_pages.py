"""The pages: the same rows as the API and the command, in the order and under the filters of the address."""

import csv
import gzip
import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from django.contrib.staticfiles import finders
from django.urls import reverse

from annotations.models import Campaign, Label
from bank.models import Benchmark, Item, Sample
from judging.models import Judgment, Run, RunItem
from leaderboard.boards.judges import stand_in as standin
from leaderboard.view import scope_of
from tests.leaderboard.conftest import MODELS, SECRET, by_model, judgments, labels
from tests.markup import flat

pytestmark = pytest.mark.django_db
MODELS_PAGE = "/leaderboards/grove/models/"
JUDGES_PAGE = "/leaderboards/grove/judges/"
AGREEMENT_PAGE = "/leaderboards/grove/agreement/"


class Tables(HTMLParser):
    """The body rows of a page's tables as lists of words, and the heads with what they are sorted by."""

    def __init__(self, html):
        super().__init__()
        self.rows, self.heads, self.links = [], [], []
        self._row = self._cell = None
        self._in_body = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "tbody":
            self._in_body = True
        elif tag == "tr" and self._in_body:
            self._row = None if attrs.get("class") == "group" else []
            if self._row is not None:
                self.rows.append(self._row)
        elif tag in ("td", "th"):
            self._cell = []
            if not self._in_body:
                self.heads.append((self._cell, attrs.get("aria-sort")))
            elif self._row is not None:
                self._row.append(self._cell)
        elif tag == "a" and "href" in attrs:
            self.links.append(attrs["href"])

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self._cell = None
        elif tag == "table":
            self._in_body = False

    def handle_data(self, data):
        if self._cell is not None and data.strip():
            self._cell.append(data.strip())

    def column(self, place):
        return [" ".join(row[place]) for row in self.rows]


def page(client, path, status=200, **query):
    answer = client.get(f"{path}?{urlencode(query)}" if query else path)
    assert answer.status_code == status, answer.content[:600]
    return flat(answer)


def models_of(html):
    """The names in the order of the table, without organisation or chip."""
    return [row[1][0] for row in Tables(html).rows]


# ---- one set of rows ----


def test_the_first_board_page_sends_at_most_150_kb_compressed_script_included(voted, client):
    html = client.get(MODELS_PAGE).content.decode()
    files = {re.sub(r"#.*", "", link) for link in re.findall(r'(?:src|href)="/static/([^"]+)"', html)}
    assert any(name.startswith("js/charts") for name in files)
    sent = [html.encode()]
    for name in files:
        found = finders.find(name) or finders.find(re.sub(r"\.[0-9a-f]{12}(?=\.\w+$)", "", name))
        assert found, name
        sent.append(Path(found).read_bytes())
    assert sum(len(gzip.compress(part)) for part in sent) < 150_000


def test_page_api_and_command_give_the_same_rows(voted, board, client):
    rows = board("models")
    api = client.get("/api/v1/leaderboards/models/", {"benchmark": "grove"}).json()
    assert api == json.loads(json.dumps(rows))
    usual = Tables(page(client, MODELS_PAGE))
    assert "Elo" not in [" ".join(words) for words, _ in usual.heads]
    every = ["win_rate", "n", "bt", "held", "elo", "mean_length", "levels"]
    table = Tables(page(client, f"{MODELS_PAGE}?{urlencode({'show': every}, doseq=True)}"))
    shown = {cells[1][0]: cells for cells in table.rows}
    assert set(shown) == set(MODELS)
    for row in rows:
        rank, _, win, n, bt, _held, elo, length, *levels = [" ".join(cell) for cell in shown[row["model"]]]
        if row["n"] < 30:
            assert (rank, elo) == ("–", "–")
            continue
        low, high = min(row["tier"], row["rank_low"]), row["rank_high"]
        assert rank == (str(low) if low == high else f"{low}–{high}")
        assert win == f"{100 * row['win_rate']:.1f}"
        assert n == str(row["n"])
        assert bt == f"{row['bt']:+.2f}".replace("-", "−")
        assert elo == f"{row['elo']:,.0f}"
        assert length == f"{row['mean_length']:,.0f}"
        assert levels == [f"{100 * level['win_rate']:.0f}" for level in row["levels"].values()]
    for what in ("judges", "agreement"):
        assert client.get(f"/api/v1/leaderboards/{what}/", {"benchmark": "grove@1"}).status_code == 200
    assert client.get("/api/v1/leaderboards/judges/", {"benchmark": "grove"}).json() == board("judges")


def test_the_downloads_of_a_page_hold_its_view(voted, board, client):
    html = page(client, MODELS_PAGE, source="keen", split="dev", elo="online")
    links = [link for link in Tables(html).links if "/api/v1/" in link]
    assert len(links) == 2
    as_csv, as_json = (client.get(link.replace("&amp;", "&")) for link in sorted(links))
    assert as_csv.headers["Content-Type"].startswith("text/csv")
    cells = list(csv.DictReader(io.StringIO(as_csv.content.decode())))
    rows = as_json.json()
    assert [row["model"] for row in rows] == [row["model"] for row in cells]
    assert [str(row["wins"]) for row in rows] == [row["wins"] for row in cells]
    assert cells[0]["Perception wins"] == str(rows[0]["levels"]["Perception"]["wins"])
    assert rows != board("models", "--source", "keen")
    alder = by_model(rows)["Alder"]
    dev = Item.objects.filter(sample__split="dev", sample__benchmark=voted, places__response__model__name="Alder")
    assert alder["n"] == dev.count()


def test_boards_link_to_what_their_numbers_are_and_the_place_is_there(voted, client):
    for board in ("models", "judges", "agreement", "bias"):
        (link,) = set(re.findall(r'href="/method/formulas/#([^"]+)"', page(client, f"/leaderboards/grove/{board}/")))
        assert f'id="{link}"' in page(client, "/method/formulas/")
    shown = page(client, "/method/formulas/")
    assert "arXiv 2411.00640" in shown
    assert "[ADR" not in shown


@pytest.mark.check("C12")
def test_a_models_name_cannot_become_a_formula_in_csv(folder, manage, grove, client, brought):
    rows = [{"sample": f"s{n:02}", "model": "=HYPERLINK(1)", "text": "x"} for n in range(36)]
    assert manage("import_responses", "generic", folder("responses", rows), "--benchmark", "grove")[0] == 0
    brought(
        "labels",
        [
            {
                "kind": "pair",
                "protocol": "pair",
                "sample": f"s{n:02}",
                "responses": ["=HYPERLINK(1)", "Alder"],
                "annotator": "Ada",
                "choice": "first" if n % 2 else "second",
            }
            for n in range(36)
        ],
    )
    text = client.get("/api/v1/leaderboards/models/", {"benchmark": "grove", "format": "csv"}).content.decode()
    assert "\n=" not in text
    assert "HYPERLINK" in text


# ---- order and filters ----


@pytest.mark.parametrize(
    ("sort", "key", "descending"),
    [
        ("-win_rate", lambda row: row["win_rate"], True),
        ("bt", lambda row: row["bt"], False),
        ("-elo", lambda row: row["elo"], True),
        ("model", lambda row: row["model"], False),
        ("-level:Perception", lambda row: row["levels"]["Perception"]["win_rate"], True),
    ],
)
def test_any_column_sorts_the_page_by_the_server(sort, key, descending, voted, board, client):
    html = page(client, MODELS_PAGE, source="keen", sort=sort)
    rows = [row for row in board("models", "--source", "keen") if row["n"] >= 30]
    expected = [row["model"] for row in sorted(rows, key=key, reverse=descending)]
    assert models_of(html)[: len(expected)] == expected
    marked = [state for _, state in Tables(html).heads if state]
    assert marked == ["descending" if descending else "ascending"]


def test_missing_values_and_provisional_rows_come_last_in_either_direction(voted, client):
    for sort in ("win_rate", "-win_rate", "model", "-n", "n", "rank"):
        assert models_of(page(client, MODELS_PAGE, sort=sort))[-1] == "Dogwood"
    html = page(client, MODELS_PAGE, anchor="Cedar", sort="win_rate")
    # The anchor has no win rate; Dogwood is provisional besides.
    assert models_of(html)[-2:] == ["Cedar", "Dogwood"]
    assert "anchor" in html
    assert "Not ranked yet" in html


def test_an_unknown_column_sorts_by_rank(voted, client):
    assert models_of(page(client, MODELS_PAGE, sort="colour")) == models_of(page(client, MODELS_PAGE))


def test_filters_narrow_page_and_api_alike(voted, client):
    for filters in ({"level": "Creation"}, {"split": "test"}, {"question_type": "closed-ended"}):
        rows = client.get("/api/v1/leaderboards/models/", {"benchmark": "grove"} | filters).json()
        shown = Tables(page(client, MODELS_PAGE, **filters).partition("</table>")[0])
        assert {row[1][0]: " ".join(row[3]) for row in shown.rows} == {row["model"]: str(row["n"]) for row in rows}
        assert sum(row["n"] for row in rows) < sum(
            row["n"] for row in client.get("/api/v1/leaderboards/models/", {"benchmark": "grove"}).json()
        )


def offered(html, name):
    """What a control of the filter row lets people choose, without the word for all."""
    control = re.search(rf'<select[^>]*name="{name}".*?</select>', html, re.DOTALL)
    return [value for value in re.findall(r'<option\s+value="([^"]*)"', control[0]) if value] if control else []


def test_the_controls_offer_the_question_types_and_splits_of_the_samples_in_use(voted, client):
    Sample.objects.filter(key="s01").update(status=Sample.Status.REJECTED, split="draft", question_type="essay")
    html = page(client, MODELS_PAGE)
    assert offered(html, "question_type") == ["closed-ended", "open-ended"]
    assert offered(html, "split") == ["dev", "test"]


def test_a_level_opens_into_what_lies_below_it(voted, client):
    rows = client.get("/api/v1/leaderboards/models/", {"benchmark": "grove", "level": "Creation"}).json()
    assert set(rows[0]["levels"]) == {"Poetry", "Stories"}
    assert "Poetry" in page(client, MODELS_PAGE, level="Creation")


@pytest.mark.parametrize(
    "query", [{"level": "Nowhere"}, {"split": "x"}, {"source": "nobody"}, {"run": "x"}, {"run": "999"}, {"anchor": "x"}]
)
def test_a_view_that_does_not_exist_is_said_in_words(query, voted, client):
    html = page(client, MODELS_PAGE, status=400, **query)
    assert "This view does not exist" in html
    assert client.get("/api/v1/leaderboards/models/", {"benchmark": "grove"} | query).status_code == 400


def test_the_api_refuses_an_unknown_parameter_and_asks_for_the_benchmark(voted, client):
    for what in ("models", "judges", "agreement"):
        path = f"/api/v1/leaderboards/{what}/"
        unknown = client.get(path, {"benchmark": "grove", "criteria__icontains": SECRET})
        assert (unknown.status_code, "criteria__icontains" in unknown.json()) == (400, True)
        assert client.get(path).status_code == 400
        assert client.get(path, {"benchmark": "forest"}).status_code == 404
        assert client.get(path, {"benchmark": "grove", "kind": "parts"}).status_code == 400


# ---- where the verdicts come from ----


def test_without_labels_page_command_and_api_show_the_judge_with_most_items_and_say_so(brought, board, client):
    brought("judgments", [*judgments("early", noise=9.0, seed=3)][:20])
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    said = "People have not labelled this benchmark yet, so these are the verdicts of keen."
    html = page(client, MODELS_PAGE)
    assert said in html
    assert models_of(html)[:3] == ["Alder", "Birch", "Cedar"]
    of_judge = board("models", "--source", "keen")
    for rows in (board("models"), client.get("/api/v1/leaderboards/models/", {"benchmark": "grove"}).json()):
        assert [row["notes"][0] for row in rows] == [said] * 4
        assert [row | {"notes": row["notes"][1:]} for row in rows] == of_judge
    assert board("models", "--source", "humans") == []
    assert "Nobody has labelled these pairs yet" in page(client, JUDGES_PAGE)


def test_without_labels_runs_of_a_judge_with_the_same_settings_count_together(brought, board, client_of):
    """Two halves of a benchmark are more than two thirds of it."""
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    whole = Run.objects.get()
    later = Run.objects.get()
    later.pk, later.imported = None, False
    later.save()
    for rows in (Judgment, RunItem):
        rows.objects.filter(run=whole, item__sample__key__gte="s18").update(run=later)
    brought("judgments", [*judgments("early", noise=9.0, seed=3)][:160])
    assert Run.objects.count() == 3
    said = "People have not labelled this benchmark yet, so these are the verdicts of keen."
    assert said in page(client_of("curator"), MODELS_PAGE)
    assert [row["notes"][0] for row in board("models")] == [said] * 4
    assert standin.run_beside(scope_of(benchmark="grove", staff=True)) == later.pk


def test_without_labels_a_judge_with_several_settings_is_named_with_the_run_that_has_most_items(brought, board, client):
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    brought("judgments", [*judgments("keen", noise=9.0, seed=4, settings={"prompt": "other"})][:30])
    most = Run.objects.order_by("pk").first().pk
    said = f"so these are the verdicts of keen, run {most}."
    assert said in page(client, MODELS_PAGE)
    assert all(said in row["notes"][0] for row in board("models"))
    assert [row["n"] for row in board("models")] == [row["n"] for row in board("models", "--run", str(most))]


def test_a_judge_with_two_settings_is_shown_by_the_run_with_most_items_and_the_other_is_offered(brought, client):
    brought("labels", labels())
    brought("judgments", judgments("keen", noise=0.6, seed=2))
    brought("judgments", [*judgments("keen", noise=0.6, seed=2, settings={"prompt": "other"})][:30])
    most, newest = Run.objects.order_by("pk")
    html = page(client, MODELS_PAGE, source="keen")
    assert f'<option value="{most.pk}" selected>' in html
    assert f'<option value="{newest.pk}">' in html
    refused = client.get("/api/v1/leaderboards/models/", {"benchmark": "grove", "source": "keen"})
    assert refused.status_code == 400
    assert f"run {most.pk}" in str(refused.json())
    assert len(client.get("/api/v1/leaderboards/models/", {"benchmark": "grove", "run": most.pk}).json()) == 4


def test_an_empty_benchmark_says_what_to_do(grove, client, client_of):
    for path in (MODELS_PAGE, JUDGES_PAGE, AGREEMENT_PAGE):
        assert "yet" in page(client, path)
        assert "Let people label" in page(client_of("curator"), path)


def test_the_page_says_what_made_it_and_links_the_run_for_those_who_may_open_it(voted, client, client_of):
    html = page(client, MODELS_PAGE, source="keen")
    run = Run.objects.get(judge__name="keen")
    for fact in ("what made this page", "Fingerprint", "Computed", "both orders", "keen", "100.0 %"):
        assert fact in html
    link = reverse("judging:run-detail", args=[run.pk])
    assert link not in html
    assert link in page(client_of("researcher"), MODELS_PAGE, source="keen")


# ---- the rows behind a number ----


def test_every_number_of_the_board_opens_as_many_rows_as_it_says(voted, board, client):
    for row in board("models", "--source", "keen"):
        for outcome, count in (("win", row["wins"]), ("tie", row["ties"]), ("loss", row["losses"])):
            html = page(client, "/leaderboards/grove/votes/", model=row["model"], outcome=outcome, source="keen")
            said = re.search(r"of (\d+) samples?, (\d+) pairs?;", html)
            assert int(said.group(2)) == count if count else "No items with this outcome" in html
            pairs = [line for line in Tables(html).rows if row["model"] in line[0]]
            assert len(pairs) == count or int(said.group(1)) > 20
        for level, numbers in row["levels"].items():
            html = page(client, "/leaderboards/grove/votes/", model=row["model"], level=level, source="keen")
            assert f"{numbers['n']} item" in html


def test_the_links_of_a_row_carry_the_view(voted, client):
    html = page(client, MODELS_PAGE, source="keen", split="dev")
    links = {link.replace("&amp;", "&") for link in Tables(html).links if "/votes/" in link}
    assert links
    for link in links:
        assert "source=keen" in link
        assert "split=dev" in link
        assert client.get(link).status_code == 200


def test_an_item_shows_its_answers_and_each_verdict_of_the_judges(voted, client):
    item = Item.objects.filter(sample__key="s03").order_by("pk").first()
    html = page(client, f"/leaderboards/grove/items/{item.pk}/", model="Alder", source="keen")
    names = list(item.places.order_by("position").values_list("response__model__name", flat=True))
    for name in names:
        assert f"{name} says <strong>sign 3</strong>." in html
        assert f"{name} shown first" in html
    assert "What does sign 3 say?" in html
    assert "keen" in html
    assert re.search(r"\d+ of \d+", html)


def test_an_item_of_another_benchmark_is_not_found(voted, client):
    other = Benchmark.objects.create(slug="other", title="Other", visibility="public")
    item = Item.objects.first()
    assert client.get(f"/leaderboards/{other.slug}/items/{item.pk}/").status_code == 404


def test_two_voters_stand_side_by_side(voted, client, board):
    run = Run.objects.get(judge__name="keen").pk
    path = "/leaderboards/grove/compare/"
    rows = [r for r in board("agreement") if {r["a"], r["b"]} == {"majority", "keen"} and r["metric"] == "agreement"]
    html = page(client, path, a="majority", b=f"run-{run}")
    assert f"Same {rows[0]['agree']}" in html
    assert f"Different {rows[0]['n'] - rows[0]['agree']}" in html
    assert re.search(r"Alder against \w+|\w+ against Alder", html)
    different = page(client, path, a="majority", b=f"run-{run}", match="different")
    assert "same</span>" not in different
    for wrong in ({"a": "majority", "b": "run-999"}, {"a": "nobody", "b": "majority"}, {}):
        assert client.get(path, wrong).status_code == 404


def test_judges_page_ranks_by_the_metric_of_the_address(voted, client):
    for metric in ("accuracy_with_tie", "kappa", "f1_without_tie", "agreement_decided"):
        for reference in ("majority", "individuals"):
            table = Tables(page(client, JUDGES_PAGE, metric=metric, reference=reference))
            names = [row[1][0] for row in table.rows]
            assert names[0] == "One more person"
            assert names.index("keen") < names.index("dull")
    upside_down = [row[1][0] for row in Tables(page(client, JUDGES_PAGE, sort="value")).rows]
    assert upside_down.index("dull") < upside_down.index("keen")


def test_the_matrix_shows_the_most_active_first_and_pages_the_rest(brought, client):
    rows = [
        row | {"annotator": f"{row['annotator']} {number}"}
        for number in range(6)
        for row in labels(number)
        if int(row["sample"][1:]) >= number * 2
    ]
    brought("labels", rows)
    first = page(client, AGREEMENT_PAGE)
    assert "annotators 1 to 12 of 18" in first
    assert "annotators 13 to 18 of 18" in page(client, AGREEMENT_PAGE, page=2)
    every = page(client, AGREEMENT_PAGE, all=1)
    assert "annotators 1 to" not in every
    # 18 people and the majority, each with each.
    assert every.count('class="heat') >= 19 * 19


def test_the_index_counts_what_there_is(voted, client):
    html = page(client, "/leaderboards/")
    row = next(row for row in Tables(html).rows if "grove" in row[0])
    counts = f"{Judgment.objects.count():,} judgments, {Label.objects.count():,} labels by 3 people"
    assert f"36 samples, 4 models, 2 judges, {counts}" in " ".join(row[0])
    leads = page(client, "/leaderboards/grove/leads/")
    assert "Alder" in leads
    assert "keen" in leads


def test_an_older_version_stays_reachable_by_its_name(voted, client):
    Benchmark.objects.create(slug="grove", version="2", title="grove", visibility="public")
    assert "No verdicts yet" in page(client, MODELS_PAGE)
    assert models_of(page(client, "/leaderboards/grove@1/models/"))
    assert "No verdicts yet" in page(client, "/leaderboards/grove/")
    assert 'href="/leaderboards/grove@1/models/"' in page(client, "/leaderboards/grove@1/")


def test_nothing_in_the_bank_is_said_calmly(client, client_of, db):
    assert "Nothing is public here yet" in page(client, "/")
    assert "No public benchmark yet" in page(client, "/leaderboards/")
    assert 'href="/bank/uploads/"' in page(client_of("curator"), "/")


def test_home_shows_the_best_and_one_item_as_judged(voted, client):
    html = page(client, "/")
    tables = Tables(html)
    assert "One finished item" in html
    assert "What does sign" in html
    assert re.search(r"[123] (people|person)", html)
    assert [link for link in tables.links if quote("Alder") in link]
    assert SECRET not in html
    assert Campaign.objects.get().state == Campaign.State.CLOSED
    assert reverse("leaderboard:index") in html


def test_the_pairs_behind_a_number_say_what_everybody_said_and_can_be_narrowed(voted, client):
    votes = "/leaderboards/grove/votes/"
    html = page(client, votes, model="Alder")
    assert re.search(r"\d+ won of \d+ = \d+\.\d%", html)
    assert "differs from most people" in html
    named = {name: int(n) for name, n in re.findall(r'only=(\w+)"[^>]*>[^<]*? (\d+)</a>', html)}
    assert named["differ"] > 0
    differ = page(client, votes, model="Alder", only="differ")
    assert f"{named['differ']} pair" in differ
    assert "all agree" not in differ
    found = page(client, votes, model="Alder", q="sign 7")
    assert found.count('class="sample"') == 1
    assert "sign 7" in found
    assert "Nothing is counted under these filters" in page(client, votes, model="Alder", q="no such words")


class Dead(HTMLParser):
    """Figures in the cells of tables that neither lead anywhere nor have a title that says why not or what they are."""

    def __init__(self, html):
        super().__init__()
        self.figures, self.dead = 0, []
        self._cell, self._open = "", False
        self._leads = False
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "td":
            self._cell, self._open, self._leads = "", True, bool(attrs.get("title"))
        elif tag == "a" and "href" in attrs:
            self._leads = True

    def handle_data(self, data):
        if self._open:
            self._cell += data

    def handle_endtag(self, tag):
        if tag == "td":
            self._open = False
            if re.search(r"\d", self._cell):
                self.figures += 1
                self.dead += [] if self._leads else [" ".join(self._cell.split())]


@pytest.mark.parametrize("board", ["judges", "bias", "models", "models/matrix", "agreement"])
def test_every_figure_of_a_board_leads_to_its_rows_or_says_why_not(voted, client, board):
    found = Dead(page(client, f"/leaderboards/grove/{board}/"))
    assert found.figures
    assert found.dead == []


def test_a_kind_of_board_that_there_is_none_of_is_refused_in_words(voted, client):
    for page in ("models", "judges", "bias", "correlation"):
        answer = client.get(f"/leaderboards/grove/{page}/?kind=nonsense")
        assert answer.status_code == 400
        assert "Unknown kind of board" in answer.content.decode()
