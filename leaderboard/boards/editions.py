"""Publishing boards that depend on hidden keys or weights, so that no two states of them reveal those of one sample.

A cell is one number of a model, over all samples or one level. For each sample it depends on the key, the weights and
the reading of the answer. If two cells differ in that for a single sample, anybody who knows the answers can work out
its key. So no combination of a model's cells, in this edition and all earlier ones, may be about fewer than MIN_SAMPLES
samples (``stats.disclosure``). Corrections wait until that many have accumulated.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

import pandas as pd
from django.db import transaction
from django.db.models import QuerySet

from accounts import audit
from accounts.installation_key import keyed as keyed_hash
from accounts.models import User
from bank.errors import BadInput
from bank.models import Benchmark
from judging.models import Run
from leaderboard import votes
from leaderboard.boards import keyed, models, scores
from leaderboard.boards.base import as_stored
from leaderboard.hidden import hidden_split, open_samples, rests_on_hidden
from leaderboard.kinds import Kind
from leaderboard.models import Edition, RecipeEdition
from leaderboard.scope import BadScope, Scope, scope_of
from stats.disclosure import MIN_SAMPLES, Cell, changed_samples, reveals_few

Cells = dict[str, dict[str, Cell]]  # what the numbers of an edition are made of, by model and number
WHOLE = ""  # the only number of a board by components
TOLD = 5  # reasons listed at once


class Refused(BadInput):
    """An edition that would reveal too much, or nothing new; the message says why."""


def runs_to_read(scope: Scope) -> list[Run]:
    """The finished runs that an edition may use, newest first."""
    runs = votes.judged_runs(replace(scope, staff=False)).filter(state=Run.State.FINISHED)
    return list(runs.order_by("-pk"))


def usual_run(scope: Scope) -> Run | None:
    """The run of the last edition; for the first edition the newest finished run, if answers need reading."""
    last = _earlier(scope).last()
    if last is not None:
        return last.run
    people = not scope.kind.keyed and not scores.outcomes(replace(scope, edition=True))[0].empty
    return None if people else next(iter(runs_to_read(scope)), None)


def publish(
    *,
    benchmark: Benchmark,
    kind: str | Kind,
    split: str = "",
    run: Run | None = None,
    by: User | None = None,
    command: str = "",
) -> Edition:
    """Publish the board of models as it is now. ``run`` is the judge's run whose readings or points count; without one
    no readings count, and people's points for components. Raises Refused.
    """
    try:
        scope = scope_of(benchmark=benchmark, kind=kind, split=split, run=run.pk if run else None)
        scope = replace(scope, edition=True)
        if run is not None and run not in runs_to_read(scope):
            raise Refused(f"Run {run.pk} is not a finished run whose verdicts this board could count.", "run")
        with transaction.atomic():
            Benchmark.objects.select_for_update().get(pk=benchmark.pk)
            edition = _publish(scope, run, by)
            subject = f"{benchmark}, {kind}{', ' + split if split else ''}, edition {edition.number}"
            audit.record("edition-published", by=by, command=command, about=subject)
            return edition
    except BadScope as error:
        raise Refused(str(error)) from None


def _publish(scope: Scope, run: Run | None, by: User | None) -> Edition:
    if not rests_on_hidden(scope):
        raise Refused("This board depends on nothing hidden: everybody sees it live.")
    board = models(scope)
    if not board.rows:
        raise Refused(f"No model has answers to {MIN_SAMPLES} samples or more that could be counted.")
    cells = cells_of(scope)
    if reasons := list(refusals(cells, _cells_before(scope))):
        more = f" And {len(reasons) - TOLD} more." if len(reasons) > TOLD else ""
        raise Refused(
            f"This edition would reveal something about fewer than {MIN_SAMPLES} samples. "
            f"{' '.join(reasons[:TOLD])}{more} Wait until {MIN_SAMPLES} changes have accumulated."
        )
    earlier = list(_earlier(scope))
    digits, ends = digits_of(scope)
    text = json.dumps(rounded(as_stored(board), digits=digits, ends=ends))
    if earlier and earlier[-1].board == text:
        raise Refused(f"Nothing has changed since edition {earlier[-1].number}.")
    return Edition.objects.create(
        benchmark=scope.benchmark,
        kind=scope.kind.name,
        split=hidden_split(scope) or "",
        number=(earlier[-1].number if earlier else 0) + 1,
        run=run,
        board=text,
        cells=cast(Any, cells),
        by=by,
    )


def digits_of(scope: Scope) -> tuple[int, int]:
    """Decimals of values and of the ends of intervals, in the units of the page.

    A number in full reveals more than itself: few sets of weights produce a given mean of shares of small whole
    weights, and if some samples share a cluster, the ends of its interval depend on the points of these few.
    """
    digits = scope.kind.edition_digits
    if scope.kind.keyed:
        return digits, digits
    clusters = [sample.cluster for sample in scope.benchmark.samples.in_use().only("group", "key")]
    return digits, digits if len(set(clusters)) == len(clusters) else digits - 1


def rounded(data: Any, *, digits: int, ends: int, name: str = "") -> Any:
    """Rows, and everything in them, with rounded numbers; intervals never become narrower."""
    if isinstance(data, dict):
        return {key: rounded(value, digits=digits, ends=ends, name=key) for key, value in data.items()}
    if isinstance(data, list):
        return [rounded(value, digits=digits, ends=ends, name=name) for value in data]
    if name == "se":  # in full it would undo the rounding of the ends
        return None
    if not isinstance(data, float) or name == "coverage":
        return data
    if name == "low":
        return math.floor(round(data * 10**ends, 9)) / 10**ends
    if name == "high":
        return math.ceil(round(data * 10**ends, 9)) / 10**ends
    return round(data, digits)


def _earlier(scope: Scope) -> QuerySet[Edition]:
    return _seen_before(scope).filter(benchmark=scope.benchmark, split=hidden_split(scope) or "")


def _seen_before(scope: Scope) -> QuerySet[Edition]:
    """The editions of this kind for all splits and versions of the benchmark: their samples have the same keys."""
    editions = Edition.objects.filter(benchmark__slug=scope.benchmark.slug, kind=scope.kind.name)
    return editions.select_related("benchmark").order_by("benchmark", "split", "number")


def _cells_before(scope: Scope) -> dict[str, Cells]:
    """What was published of the same keys, by the edition's name: by boards of this kind, and by recipes."""
    earlier: dict[str, Cells] = {name_of(previous, scope): previous.cells for previous in _seen_before(scope)}
    return earlier | (cells_of_recipes(scope.benchmark.slug) if scope.kind.keyed else {})


def cells_of_recipes(slug: str) -> dict[str, Cells]:
    """What the numbers of all recipes' editions over a benchmark are made of, by the edition's name."""
    return {
        f"edition {edition.number} of recipe {edition.recipe}": edition.cells[slug]
        for edition in RecipeEdition.objects.select_related("recipe")
        if slug in edition.cells
    }


def name_of(edition: Edition, scope: Scope) -> str:
    split = "" if edition.split == (hidden_split(scope) or "") else f" of split {edition.split or 'none'}"
    version = "" if edition.benchmark_id == scope.benchmark.pk else f" of {edition.benchmark}"
    return f"edition {edition.number}{split}{version}"


# ---- what numbers are made of ----


def cells_of(scope: Scope) -> Cells:
    """What the numbers of this board, computed for an edition, are made of."""
    if scope.kind.keyed:
        frame, _, levels = keyed.counted_answers(scope)
        by_model = keyed.published_cells(scope, frame, levels=levels)
    else:
        frame, _ = scores.verdicts_on_models(scope)
        hidden = (frame["model"] != "") & ~frame["sample"].isin(open_samples(scope))
        frame = frame[hidden].sort_values(["model", "sample", "item"])
        facts = (
            scope.kind.made_of(scope, frame).groupby([frame["model"], frame["sample"]]).agg("\x1e".join).reset_index()
        )
        facts.columns = pd.Index(["model", "sample", "given"])
        by_model = {str(name): {WHOLE: _cell(rows["sample"], rows["given"])} for name, rows in facts.groupby("model")}
    ids = {str(pk): key for pk, key in scope.benchmark.samples.values_list("pk", "key")}
    return {
        model: {number: {ids[sample]: facts for sample, facts in cell.items()} for number, cell in numbers.items()}
        for model, numbers in by_model.items()
    }


def _cell(samples: "pd.Series[int]", facts: "pd.Series[str]") -> Cell:
    return {str(sample): keyed_hash("cell", fact)[:16] for sample, fact in zip(samples, facts, strict=True)}


# ---- what they must not reveal ----


def refusals(new: Cells, earlier: Mapping[str, Cells]) -> Iterator[str]:
    """Why these numbers must not be published after the earlier ones (by name): one sentence per model, no samples."""
    for model, cells_now in new.items():
        before = {name: cells_then[model] for name, cells_then in earlier.items() if model in cells_then}
        changes = (
            (number, name, changed_samples(cell, cells_then[number]))
            for number, cell in cells_now.items()
            for name, cells_then in before.items()
            if number in cells_then
        )
        if few := next((change for change in changes if 0 < change[2] < MIN_SAMPLES), None):
            number, name, differing_samples = few
            subject = f"{number} of {model}" if number else model
            yield f"{subject} differs from {name} in {differing_samples} sample{'' if differing_samples == 1 else 's'}."
        elif reveals_few([cell for cells_then in (cells_now, *before.values()) for cell in cells_then.values()]):
            compared = f"compared with one another and with those of {', '.join(before)}"
            yield f"The numbers of {model}, {compared}, reveal fewer."
