"""Juries: what they decide, what they leave undecided, and that they stand where a judge stands."""

import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.urls import reverse

from bank.errors import BadInput
from judging.extras import juries
from judging.models import Judge, Judgment, Run
from tests.hidden import write_criterion
from tests.judging.small import make_benchmark
from tests.judging.test_compare import BOTH, votes
from tests.judging.test_pages import text_of
from tests.judging.test_protocols import item_of

pytestmark = pytest.mark.django_db


def said(run: Run, column: str = "choice") -> list:
    rows = run.judgments.order_by("item").values_list("status", column, "reason")
    return [value if status == "ok" else reason for status, value, reason in rows]


def test_the_most_frequent_vote_is_the_jurys_and_a_draw_is_a_tie(run_of):
    bank = make_benchmark(samples=5, slug="five")
    given = {
        "kestrel": ("first", "first", "first", "second", "first"),
        "osprey": ("first", "second", "tie", "second", None),
        "heron": ("second", "tie", "tie", "undecided", "first"),
    }
    runs = [
        run_of(bank, votes(*[(vote,) for vote in given[name]], orders=("01",)), judge=name, settings={"order": "fixed"})
        for name in given
    ]
    jury = juries.make_jury(name="three birds", runs=runs)
    assert said(jury) == ["first", "tie", "tie", "second", "1 of 3 members have no verdict"]
    assert (jury.verdicts, jury.failures, jury.items.count()) == (4, 1, 5)
    assert jury.judge.name == "three birds"


def test_each_member_has_one_vote_over_its_orders_and_repeats(benchmark, run_of):
    both = run_of(benchmark, votes(("first", "first"), ("first", "second"), ("first", None)), **BOTH)
    rows = [{"choice": choice, "repeat": n} for n, choice in enumerate(("first", "second", "second"))]
    rows += [{"choice": "tie", "item": 1}, {"choice": "first", "item": 2}]
    often = run_of(benchmark, rows, judge="osprey", settings={"order": "fixed", "repeats": 3})
    third = run_of(benchmark, [{"choice": "first", "item": n} for n in range(3)], judge="heron")
    jury = juries.make_jury(name="jury", runs=[both, often, third])
    # Item 0: first, second (of three repeats), first. Item 1: a tie over the orders, tie, first. Item 2 lacks an order.
    assert said(jury) == ["first", "tie", "1 of 3 members have no verdict"]


def test_scores_are_averaged_rankings_go_by_mean_position_and_options_by_the_most(benchmark, run_of):
    def jury_of(name, protocol, *columns):
        runs = [run_of(benchmark, rows, judge=f"{name}-{n}", protocol=protocol) for n, rows in enumerate(columns)]
        return juries.make_jury(name=name, runs=runs)

    scores = jury_of("scores", "score", [{"score": 2}], [{"score": 5}])
    assert said(scores, "score") == [3.5]
    ranked = [[{"ranking": ranking, "order": "021"}] for ranking in ([[0], [1], [2]], [[1], [0], [2]], [[1], [2], [0]])]
    # Mean positions: 0 at 1, 1 at 1/3, 2 at 5/3.
    assert said(jury_of("rankings", "batch", *ranked), "ranking") == [[[1], [0], [2]]]
    assert Judgment.objects.get(run__judge__name="rankings").order == "012"
    options = jury_of("options", "choice-extraction", [{"option": "A"}], [{"option": "B"}], [{"option": "A"}])
    assert said(options, "option") == ["A"]
    divided = jury_of("yes", "yes-no", [{"answer": True}], [{"answer": False}])
    assert said(divided, "answer") == ["the members are divided"]


def test_a_jury_of_rankings_takes_each_members_mean_over_its_orders_and_keeps_ties(benchmark, run_of):
    def ranked(judge: str, *said: tuple, **columns) -> Run:
        rows = [{"ranking": ranking, "order": order} for order, ranking in said]
        return run_of(benchmark, rows, judge=judge, protocol="batch", **columns)

    both = {"settings": {"order": "both", "repeats": 1}}
    # Over its orders the first member holds 0 and 1 for the same (positions 0 and 1, then 1 and 0), 2 for the last.
    first = ranked("kestrel", ("012", [[0], [1], [2]]), ("210", [[1], [0], [2]]), **both)
    second = ranked("osprey", ("012", [[0, 1], [2]]))
    assert said(juries.make_jury(name="tied", runs=[first, second]), "ranking") == [[[0, 1], [2]]]
    half = ranked("heron", ("012", [[2], [1], [0]]), **both)  # lacks the other order
    assert said(juries.make_jury(name="half", runs=[second, half])) == ["1 of 2 members have no verdict"]


def test_a_jury_of_yes_and_no_goes_by_the_most_and_draws_nothing(run_of):
    bank = make_benchmark(samples=4, slug="four")
    given = {
        "kestrel": (True, False, True, True),
        "osprey": (True, False, False, None),
        "heron": (False, False, None, True),
    }
    runs = []
    for name, answers in given.items():
        rows = [{"answer": answer, "item": n} for n, answer in enumerate(answers) if answer is not None]
        runs.append(run_of(bank, rows, judge=name, protocol="yes-no", settings={"order": "fixed", "repeats": 1}))
    missing = "1 of 3 members have no verdict"
    assert said(juries.make_jury(name="three", runs=runs), "answer") == [True, False, missing, missing]
    assert said(juries.make_jury(name="two", runs=runs[:2]), "answer")[2] == "the members are divided"


def test_the_same_call_computes_anew_from_the_runs_as_they_are(benchmark, run_of):
    runs = [run_of(benchmark, [{"choice": "first"}], judge=name) for name in ("kestrel", "osprey")]
    jury = juries.make_jury(name="jury", runs=runs)
    assert not juries.is_stale(jury)
    for run in runs:
        Judgment.objects.create(run=run, item=benchmark.samples.last().items.get(), choice="second")
    assert juries.is_stale(jury)
    again = juries.make_jury(name="jury", runs=runs)
    assert again.pk == jury.pk
    assert not juries.is_stale(again)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda runs, make: runs[:1], "at least two members"),
        (lambda runs, make: [runs[0], make(judge="kestrel")], "a member twice"),
        (lambda runs, make: [runs[0], make(judge="x", protocol="pair")], "one benchmark and one protocol"),
        (lambda runs, make: [runs[0], make(judge="baseline-criteria-overlap")], "uses the hidden criteria"),
        (lambda runs, make: [runs[0], juries.make_jury(name="other", runs=runs)], "not of juries"),
    ],
)
def test_a_jury_that_cannot_be_is_refused_with_the_reason(benchmark, run_of, change, words):
    def make(**columns):
        return run_of(benchmark, [{"choice": "first"}], **columns)

    runs = [make(judge="kestrel"), make(judge="osprey")]
    chosen = change(runs, make)
    with pytest.raises(BadInput, match=words):
        juries.make_jury(name="jury", runs=chosen)
    for name in ("kestrel", "baseline-jury", " "):
        with pytest.raises(BadInput):
            juries.make_jury(name=name, runs=runs)
    assert not Judge.objects.filter(name="jury").exists()


def test_a_jury_stands_on_the_boards_by_its_name_with_its_coverage(benchmark, run_of):
    runs = [
        run_of(
            benchmark, votes(("first",), (vote,), ("first",), orders=("01",)), judge=name, settings={"order": "fixed"}
        )
        for name, vote in (("kestrel", "second"), ("osprey", None))
    ]
    for run in runs:
        run.items.set(run.judgments.values_list("item", flat=True))
    juries.make_jury(name="two birds", runs=runs)
    out = io.StringIO()
    call_command("leaderboard", "models", benchmark="everyday", source="two birds", format="json", stdout=out)
    rows = {row["model"]: row for row in json.loads(out.getvalue())}
    assert (rows["heron-7b"]["wins"], rows["heron-7b"]["n"]) == (2, 2)
    assert rows["heron-7b"]["coverage"] == pytest.approx(2 / 3)


def board(kind: str) -> dict[str, dict]:
    out = io.StringIO()
    call_command("leaderboard", "models", benchmark="everyday", kind=kind, source="jury", format="json", stdout=out)
    return {row["model"]: row for row in json.loads(out.getvalue())}


def test_juries_of_scores_and_of_options_stand_on_their_boards(benchmark, run_of):
    samples = list(benchmark.samples.order_by("pk"))

    def jury(items, column: str, protocol: str, *said: list) -> None:
        runs = []
        for n, values in enumerate(said):
            run = run_of(benchmark, [], judge=f"{protocol} {n}", protocol=protocol, settings={"order": "fixed"})
            for item, value in zip(items, values, strict=True):
                Judgment.objects.create(run=run, item=item, order="012"[: item.places.count()], **{column: value})
            run.items.set(items)
            runs.append(run)
        juries.make_jury(name="jury", runs=runs)

    scored = [item_of(samples[0], "A bowl.")]
    jury(scored, "score", "score", [2], [4], [4.5])
    row = board("score")["model 0"]
    assert (row["score"], row["n"]) == (3.5, 1)
    for sample in samples:
        sample.options = {"A": "a bowl", "B": "a cup"}
        sample.save()
        write_criterion(sample=sample, key="answer", kind="answer_key", text="A")
    read = [item_of(samples[n], "Hard to say.") for n in (1, 2)]
    jury(read, "option", "choice-extraction", ["A", "B"], ["A", "A"], ["B", "B"])
    row = board("choice")["model 0"]
    assert row["extraction"]["judge"] == 2
    # About the answer of the first sample nobody was asked, and nobody knows what it says.
    assert (row["vanilla"], row["n"], row["coverage"]) == (1 / 2, 2, pytest.approx(2 / 3))


def test_a_jury_is_made_in_the_browser_and_by_command(client_of, benchmark, run_of):
    runs = [run_of(benchmark, [{"choice": "first"}], judge=name) for name in ("kestrel", "osprey")]
    client, path = client_of("curator"), reverse("judging:jury-new")
    assert "kestrel on everyday@1" in text_of(client.get(path))
    answered = client.post(path, {"name": "jury", "runs": [runs[0].pk]})
    assert answered.status_code == 422
    assert "at least two members" in text_of(answered)
    page = text_of(client.post(path, {"name": "jury", "runs": [run.pk for run in runs]}, follow=True))
    for words in ("A jury of 2 judges", "Members", "Compute again"):
        assert words in page
    assert "Computed" in page
    for words in ("Imported", "Release to researchers", "[1, 2]"):
        assert words not in page
    jury = Run.objects.get(judge__name="jury")
    page = text_of(client.post(reverse("judging:jury-compute", args=[jury.pk]), follow=True))
    assert "recomputed from the current runs of its members" in page
    assert client.post(reverse("judging:jury-compute", args=[runs[0].pk])).status_code == 404
    assert client_of("researcher").post(path).status_code == 403
    out = io.StringIO()
    call_command("make_jury", "second", runs=f"{runs[0].pk},{runs[1].pk}", stdout=out)
    assert "second on everyday@1, 1 verdicts, 0 items without one" in out.getvalue()
    asked = {"name": "fourth", "runs": [run.pk for run in runs]}
    for status in (201, 200):
        made = client.post("/api/v1/juries/", asked, content_type="application/json")
        assert (made.status_code, made.json()["judge"], made.json()["done"]) == (status, "fourth", 1)
    refused = client.post("/api/v1/juries/", asked | {"runs": [10**6]}, content_type="application/json")
    assert refused.json() == {"runs": ["Unknown run 1000000."]}
    names = {run["judge"] for run in client_of("researcher").get("/api/v1/juries/").json()["results"]}
    assert names == {"jury", "second", "fourth"}
    with pytest.raises(CommandError, match="Unknown run 1000000000"):
        call_command("make_jury", "third", runs=f"1000000000,{runs[0].pk}")
