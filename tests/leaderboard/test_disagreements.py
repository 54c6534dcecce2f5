"""Where a judge decides otherwise than most people do, grouped by what those who labelled ticked and wrote there."""

import pytest

from annotations.models import Campaign, Label
from bank.models import Item
from bank.samples import held_out
from tests.bank.conftest import folder, manage
from tests.leaderboard.conftest import MODELS
from tests.leaderboard.test_tables import got, told
from tests.markup import flat

__all__ = ["folder", "manage"]
pytestmark = pytest.mark.django_db
PAGE = "/leaderboards/grove/judges/disagreements/"
# Sample, what people say of Alder and Birch, the judge's, and what the two who label it write and tick.
CASES = [
    ("s00", "first", "second", ["Misses the sign."], []),
    ("s01", "first", "second", ["misses  the SIGN."], ["answer"]),
    ("s02", "second", "first", [], []),
    ("s03", "first", "tie", ["Too long."], []),
    ("s04", "first", "first", ["Nothing to say."], []),
    ("s05", "tie", "first", [], ["other"]),
]


def voted_on(case):
    sample, people, judge, comments, flags = case
    pair = {"kind": "pair", "sample": sample, "responses": list(MODELS[:2]), "protocol": "pairwise-criteria"}
    for number, annotator in enumerate(("Ada", "Ben")):
        words = {"comment": comments[number]} if number < len(comments) else {}
        yield "labels", pair | {"annotator": annotator, "choice": people, "seconds": 9, "flags": flags} | words
    yield "judgments", pair | {"judge": "odd", "settings": {"order": "first"}, "choice": judge}


@pytest.fixture
def apart(brought):
    rows = [row for case in CASES for row in voted_on(case)]
    brought("labels", [row for what, row in rows if what == "labels"], "--saw-nothing")
    return brought("judgments", [row for what, row in rows if what == "judgments"])


def keys(items):
    return sorted(Item.objects.filter(pk__in=items).values_list("sample__key", flat=True))


def grouped(rows):
    return {(row["people"], row["judged"], row["by"], row["said"]): (row["n"], keys(row["items"])) for row in rows}


def test_items_stand_by_what_both_say_and_beside_each_thing_that_people_said_of_them(apart):
    rows = told("disagreements", "--source", "odd")
    assert grouped(rows) == {
        ("a side", "the other side", "comment", "Misses the sign."): (2, ["s00", "s01"]),
        ("a side", "the other side", "tick", "An answer is cut off or garbled"): (1, ["s01"]),
        ("a side", "the other side", "nothing", ""): (1, ["s02"]),
        ("a side", "a tie", "comment", "Too long."): (1, ["s03"]),
        ("a tie", "a side", "tick", "Something else (say what in the comment)"): (1, ["s05"]),
    }
    assert {row["of"] for row in rows if row["judged"] == "the other side"} == {3}
    assert rows[0]["n"] == 2, "what was said on most items comes first"


def test_scores_stand_by_whether_the_judge_is_a_point_higher_or_lower(brought):
    one = {"kind": "score", "protocol": "score", "responses": ["Alder"]}
    scored = [("s00", 5, 2, "Wrong count."), ("s01", 2, 4, "Fine, in fact."), ("s02", 3, 3.5, "Close.")]
    brought("labels", [one | {"sample": s, "annotator": "Ada", "score": p, "comment": c} for s, p, _, c in scored])
    brought("judgments", [one | {"sample": s, "judge": "odd", "score": j, "settings": {}} for s, _, j, _ in scored])
    rows = told("disagreements", "--source", "odd", "--kind", "score")
    assert {(row["people"], row["judged"], row["said"]) for row in rows} == {
        ("their mean", "lower", "Wrong count."),
        ("their mean", "higher", "Fine, in fact."),
    }


def test_the_page_leads_from_the_words_to_the_items(apart, client_of):
    rows = told("disagreements", "--source", "odd")
    page = client_of("researcher").get(PAGE, {"run": rows[0]["run"]})
    assert "People say a side, the judge the other side" in flat(page)
    assert "Misses the sign." in flat(page)
    for item in rows[0]["items"]:
        assert f'href="/leaderboards/grove/items/{item}/"' in page.content.decode()
    beside = client_of("researcher").get(
        "/leaderboards/grove/compare/", {"a": "majority", "b": f"run-{rows[0]['run']}"}
    )
    assert "Where they differ, by what people wrote there" in flat(beside)


def test_it_is_for_those_who_read_single_labels_and_asks_whose(apart, client_of):
    for role in ("anonymous", "annotator"):
        assert client_of(role).get(PAGE, {"source": "odd"}).status_code in (302, 403)
        got(client_of(role), "disagreements", source="odd", status=401 if role == "anonymous" else 403)
    answer = got(client_of("researcher"), "disagreements", status=400).json()
    assert answer["detail"] == "Say whose: a run, or a judge as the source."
    assert got(client_of("researcher"), "disagreements", run="999", status=400)


def test_words_that_could_quote_what_a_campaign_showed_are_for_staff(apart, client_of):
    apart.samples.filter(key="s00").update(closed=8)  # a guideline
    Campaign.objects.update(held=8)
    read = {role: got(client_of(role), "disagreements", source="odd").json() for role in ("researcher", "curator")}
    assert grouped(read["curator"])["a side", "the other side", "comment", "Misses the sign."] == (2, ["s00", "s01"])
    below = grouped(read["researcher"])
    assert not any("s00" in items for (*_, by, _), (_, items) in below.items() if by != "nothing")


def test_labels_of_practice_and_excluded_ones_say_nothing_here(apart):
    Label.objects.filter(item__sample__key="s03").update(excluded=True)
    assert not any(row["said"] == "Too long." for row in told("disagreements", "--source", "odd"))


def test_what_is_held_out_is_not_in_it(apart):
    counts = dict.fromkeys(apart.samples.values_list("key", flat=True), 1)
    held_out.draw(benchmark=apart, labelled=counts)
    held = held_out.held_out_samples(apart)
    items = {item for row in told("disagreements", "--source", "odd") for item in row["items"]}
    assert not Item.objects.filter(pk__in=items, sample__in=held).exists()
