"""What a process keeps of verdicts is what the database holds, however rows come and go."""

import pytest
from django.db import transaction

from bank.models import Benchmark, EvaluatedModel, Response, Sample
from bank.samples.items import ItemSpec, ensure_items
from judging.models import Judge, Judgment, Run, RunItem
from leaderboard import votes
from leaderboard.boards import seen
from leaderboard.scope import NO_ELO
from leaderboard.view import scope_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def run():
    """Three models on four samples, each pair once, and a run over all of it without a judgment."""
    benchmark = Benchmark.objects.create(slug="few", title="Few", visibility="public")
    models = [EvaluatedModel.objects.create(name=name) for name in "abc"]
    run = Run.objects.create(
        judge=Judge.objects.create(name="j"), benchmark=benchmark, protocol="pair", settings={"order": "both"}
    )
    for n in range(4):
        add_sample(run, models, n)
    return run


def add_sample(run, models, n):
    sample = Sample.objects.create(
        benchmark=run.benchmark, key=f"s{n}", instruction="?", position=n, status=Sample.Status.APPROVED
    )
    pks = [Response.objects.create(sample=sample, model=model, text="!").pk for model in models]
    items, _ = ensure_items(
        [ItemSpec("pair", sample.pk, pair) for pair in ((pks[0], pks[1]), (pks[1], pks[2]), (pks[2], pks[0]))]
    )
    for item in items.values():
        RunItem.objects.create(run=run, item_id=item.pk)


def say(run, choice, *, items=None, repeat=0):
    for item in run.items.order_by("pk") if items is None else items:
        for order in ("01", "10"):
            Judgment.objects.create(run=run, item=item, order=order, repeat=repeat, choice=choice)


def board(run):
    """The rows as this process makes them, which must be those of one that kept nothing."""
    scope = scope_of(benchmark=run.benchmark, source="j", elo=NO_ELO)
    rows = seen.models(scope).as_json()
    assert seen.models(scope).as_json() == rows
    return {row["model"]: row for row in rows}


def test_new_verdicts_items_and_repeats_are_counted_at_once(run):
    items = list(run.items.order_by("pk"))
    say(run, "first", items=items[:6])
    assert board(run)["a"]["n"] == 4
    say(run, "second", items=items[6:])
    assert [board(run)["a"][name] for name in ("n", "wins", "losses")] == [8, 4, 4]
    add_sample(run, list(EvaluatedModel.objects.order_by("name")), 4)
    assert board(run)["a"]["coverage"] == 0.8
    say(run, "tie", repeat=1)
    assert board(run)["a"]["coverage"] == 1


def test_removed_verdicts_are_gone_also_where_others_came(run):
    say(run, "first")
    assert board(run)["a"]["wins"] == 4
    run.judgments.all().delete()  # as a jury that is computed anew
    say(run, "tie")
    assert [board(run)["a"][name] for name in ("wins", "ties")] == [0, 8]
    first = run.items.order_by("pk").first()
    run.judgments.filter(item=first, order="10").delete()
    assert board(run)["a"]["n"] == 7  # an order is missing


def test_items_that_are_removed_are_gone(run):
    say(run, "first")
    assert board(run)["a"]["n"] == 8
    first = run.items.order_by("pk").first()
    first.delete()
    assert board(run)["a"]["n"] == 7


def test_what_a_transaction_undoes_was_never_counted(run):
    say(run, "first", items=list(run.items.order_by("pk"))[:9])
    before = board(run)
    with transaction.atomic():
        say(run, "second", items=list(run.items.order_by("pk"))[9:])
        assert board(run)["a"]["n"] == 8
        transaction.set_rollback(True)
    assert board(run) == before


def test_a_model_is_called_as_it_is_called_now(run):
    say(run, "first")
    assert "a" in board(run)
    EvaluatedModel.objects.filter(name="a").update(name="z")
    assert set(board(run)) == {"z", "b", "c"}


def test_the_state_of_the_data_is_told_apart_by_every_verdict(run):
    scope = scope_of(benchmark=run.benchmark, source="j")
    seen = []
    for change in (lambda: None, lambda: say(run, "first"), lambda: run.judgments.latest("pk").delete()):
        change()
        seen.append(str(votes.fingerprint(scope)))
    assert len(set(seen)) == 3
