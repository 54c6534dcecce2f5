"""Verdicts as data frames with one outcome per item, for the statistics."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Subquery, Sum, Value
from django.db.models.functions import Length

from annotations.models import Adjudication, CampaignItem, Label
from bank import exposure, guard
from bank.criteria import answer_keys
from bank.models import (
    Benchmark,
    Capability,
    EvaluatedModel,
    Item,
    ItemResponse,
    Response,
    Sample,
    Submission,
    SubmissionScore,
)
from judging import protocols
from judging.models import Judge, Judgment, Run, RunItem
from judging.protocols.in_words import settings_in_words
from leaderboard.hidden import (
    as_told,
    counted_labels,
    earlier_versions,
    fingerprint_of_sealed,
    held_out_in,
    left_out,
    unseen_runs,
    withdrawn_items,
)
from leaderboard.kept.values import kept_while_voted, until_changed
from leaderboard.metrics import GIVEN, SWAPPED
from leaderboard.scope import (
    ADJUDICATED,
    ANY_ORDER,
    AS_TIE,
    DROPPED,
    EXCLUDE,
    HALF,
    INDIVIDUALS,
    PEOPLE,
    WRONG,
    BadScope,
    Scope,
    answers_shown,
)
from leaderboard.sight import MODELS, Sight
from leaderboard.votes import arrays
from stats.arrays import blocks
from stats.disclosure import MIN_SAMPLES
from stats.figures import listed
from stats.proportions import mean
from stats.results import Estimate
from stats.verdicts import MISSING, UNASKED, VERDICTS, combine, majority, without_majority
from stats.verdicts import TIE as TIED

# Formats in which a sample's source is its original data set: averages are over these.
DATA_SETS = ("mllm-as-a-judge", "alt-test", "generic")
OUTCOMES = ("win", "tie", "loss")
FAILED = "failed"  # in place of a verdict, where a failure counts as lost by whoever it is about
MANY = 200_000  # pairs of a benchmark above which pages only bootstrap Elo on request
WIN, TIE, LOSS = range(3)


def samples_in(scope: Scope) -> QuerySet[Sample]:
    """The samples that a view counts: the approved ones that pass its filters."""
    samples = scope.benchmark.samples.in_use()
    if scope.level:
        samples = samples.filter(Q(capability__path=scope.level) | Q(capability__path__startswith=f"{scope.level} / "))
    if scope.question_type:
        samples = samples.filter(question_type=scope.question_type)
    return samples.filter(split=scope.split) if scope.split else samples


def level_names(scope: Scope) -> list[str]:
    """The level columns of a view in tree order: the top levels, or those just below the chosen level."""
    nodes = Capability.objects.filter(benchmark=scope.benchmark)
    nodes = nodes.filter(parent__path=scope.level) if scope.level else nodes.filter(parent=None)
    return [*nodes.order_by("position", "pk").values_list("name", flat=True), ""]


def level_of(scope: Scope, paths: "pd.Series[Any]") -> "pd.Series[Any]":
    """Of the paths of capabilities the top, or the step below the level that the view is narrowed to."""
    depth = len(scope.level.split(" / ")) if scope.level else 0
    return paths.fillna("").astype(str).str.split(" / ").map(lambda path: path[depth] if len(path) > depth else "")


def group_of(samples: pd.DataFrame) -> "pd.Series[Any]":
    """What makes samples dependent on one another: their ``group``, else each its own ``key``."""
    return samples["group"].where(samples["group"] != "", samples["key"])


def pairs(scope: Scope, *, only: "pd.Series[int] | None" = None) -> pd.DataFrame:
    """The pair items of a view, or those among ``only``: index ``item``; columns ``sample, level, group, dataset, a,
    b`` (a, b: models).

    ``level`` is the top of the sample's capability, or the step below the level that the view is narrowed to. Words are
    categories, those of ``a`` and ``b`` the same.
    """
    facts = ("pk", "key", "group", "capability__path", "source")
    samples = pd.DataFrame(
        samples_in(scope).order_by("pk").values_list(*facts), columns=["pk", "key", "group", "path", "dataset"]
    )
    samples["level"] = level_of(scope, samples["path"])
    samples["group"] = group_of(samples)
    samples["dataset"] = dataset_of(scope, samples["dataset"])

    items = arrays.pair_items(scope.benchmark)
    items = items if only is None else items.among(only.to_numpy(np.int64))
    found, place = locate(samples["pk"].to_numpy(np.int32), items.sample)
    rows = slice(None) if found.all() else found
    names, codes = _model_names(items.sides)
    columns: dict[str, Any] = {"sample": items.sample[rows]}
    for name in ("level", "group", "dataset"):
        words = pd.Categorical(samples[name].astype(str))
        columns[name] = pd.Categorical.from_codes(words.codes[place[rows]], dtype=words.dtype)
    for name, side in (("a", items.first), ("b", items.second)):
        columns[name] = pd.Categorical.from_codes(codes[side[rows]], categories=names)
    return as_told(scope, pd.DataFrame(columns, index=pd.Index(items.item[rows], name="item"), copy=False))


def locate(ids: Any, targets: Any) -> tuple[Any, Any]:
    """A mask of the ``targets`` that are among ``ids``, which rise, and the place of each in them."""
    if len(ids) and int(ids[-1]) - int(ids[0]) + 1 == len(ids):  # none is left out: no need to look for them
        place = targets.astype(np.int32, copy=False) - np.int32(ids[0])
        known = (place >= 0) & (place < len(ids))
        return known, place if known.all() else np.where(known, place, np.int32(0))
    known, place = np.zeros(len(targets), dtype=bool), np.zeros(len(targets), dtype=np.int32)
    for rows in blocks(len(targets)) if len(ids) else ():
        at = np.searchsorted(ids, targets[rows])
        at[at == len(ids)] = 0
        known[rows], place[rows] = ids[at] == targets[rows], at
    return known, place


def _model_names(sides: Sequence[tuple[int, str]]) -> tuple[list[str], Any]:
    """The names of models, sorted, and for each side the index of its name."""
    names_by_id = dict(EvaluatedModel.objects.filter(pk__in={model for model, _ in sides}).values_list("pk", "name"))
    side_names = [
        f"{names_by_id.get(model)} ({variant})" if variant else str(names_by_id.get(model)) for model, variant in sides
    ]
    names = sorted(set(side_names))
    place = {name: code for code, name in enumerate(names)}
    small = np.int16 if len(names) < 2**15 else np.int32
    return names, np.array([place[name] for name in side_names], dtype=small)


def answers_of(scope: Scope) -> "QuerySet[Any]":
    """The answers of the view, with a text, whose lengths the viewer may know; ``blind``: they stand in an item that
    people label blind.
    """
    shown = answers_shown(staff=scope.staff)
    if not scope.staff:  # how long an answer is tells which option it is
        shown = shown.exclude(exposure.answers_closed("sample__"))
    blind = ItemResponse.objects.filter(response=OuterRef("pk"), item__blind=True)
    told = shown.filter(sample__in=samples_in(scope).order_by()).exclude(text="")
    return told.annotate(blind=Value(value=False) if scope.staff else Exists(blind))


def answer_lengths(scope: Scope) -> dict[str, tuple[float, float | None]]:
    """By model, named as on boards: the mean length of its answers in characters (as AlpacaEval counts), and in tokens
    if all are known. Answers without a text do not count, and in blind items few do not: how long an answer is tells
    whose it is.
    """

    def read() -> dict[str, tuple[float, float | None]]:
        sums = (
            answers_of(scope)
            .order_by()
            .values_list("model", "variant", "blind")
            .annotate(
                samples=Count("sample", distinct=True),
                characters=Sum(Length("text")),
                counted=Sum("tokens", default=0),
                n=Count("pk"),
                known=Count("tokens"),
            )
        )
        totals: defaultdict[tuple[int, str], Counter[str]] = defaultdict(Counter)
        for model, variant, blind, samples, characters, tokens, n, known in sums:
            if not blind or samples >= MIN_SAMPLES:
                totals[model, variant].update(characters=characters, tokens=tokens, n=n, known=known)
        names = dict(EvaluatedModel.objects.filter(pk__in={pk for pk, _ in totals}).values_list("pk", "name"))
        lengths: dict[str, tuple[float, float | None]] = {}
        for (pk, variant), of in totals.items():
            name = f"{names[pk]} ({variant})" if variant else names[pk]
            in_tokens = of["tokens"] / of["n"] if of["known"] == of["n"] else None
            lengths[name] = of["characters"] / of["n"], in_tokens
        return lengths

    view = (scope.benchmark.pk, scope.level, scope.question_type, scope.split, scope.staff)
    return until_changed(("mean lengths", *view), read, benchmark=scope.benchmark.pk, votes=False)


def labels_by_origin(scope: Scope) -> tuple[bool, bool]:
    """Whether labels of simulated annotators count in the view, and whether labels of real ones do."""

    def read() -> tuple[bool, bool]:
        labels = scope.kind.labels().filter(campaign__benchmark=scope.benchmark, excluded=False)
        of_simulated = labels.filter(annotator__simulated=True).exists()
        return of_simulated, of_simulated and labels.filter(annotator__simulated=False).exists()

    if not scope.by_people:
        return False, False
    return until_changed(("origin", scope.benchmark.pk, scope.kind.name), read, benchmark=scope.benchmark.pk)


SPLIT = "split"  # people have no majority


def shown_majority(counted: pd.DataFrame) -> "pd.Series[str]":
    """What most people gave, of the table that ``majority`` makes, as pages write it: ``SPLIT`` where they have no
    majority, which counts as a tie.
    """
    even = counted["tie"] + counted["undecided"]
    split = without_majority(verdict=counted["choice"], first=counted["first"], even=even, second=counted["second"])
    return counted["choice"].mask(split, SPLIT)


def is_large(benchmark: Benchmark) -> bool:
    """Whether a bootstrap over the benchmark's pairs takes seconds."""
    return arrays.items_by_kind(benchmark).get(Item.Kind.PAIR, 0) > MANY


def dataset_of(scope: Scope, source: "pd.Series[str]") -> "pd.Series[str]":
    """The source data set of samples, in formats whose source is a data set; otherwise the benchmark."""
    if scope.benchmark.source_format not in DATA_SETS:
        return pd.Series(scope.benchmark.slug, index=source.index, dtype=object)
    return source.where(source.fillna("") != "", scope.benchmark.slug).astype(str)


@dataclass(frozen=True, eq=False, slots=True)
class Outcomes:
    """``frame``: one outcome a row: ``item``, ``choice``, ``repeat``, ``weight`` if there are several repeats, and
    ``annotator`` where people gave it. Of graded pairs it has the ``preference`` for the first answer, the mean over
    orders or people, and if that was given in other steps than five, it is the outcome, too: ``points``.

    ``expected``: the items that should have an outcome (index), so that coverage can be told. ``failed``: the items and
    repeats that a judge was asked for in every order without a verdict in each; a call not made yet is no failure.
    """

    frame: pd.DataFrame
    expected: pd.Index
    failed: pd.DataFrame
    repeats: int
    runs: tuple[Run, ...] = ()


NO_FAILURES = pd.DataFrame({"item": np.zeros(0, np.int32), "repeat": np.zeros(0, np.int16)})  # people have none


def outcomes(scope: Scope) -> Outcomes:
    """The outcomes of the view's source; ``with_failures`` adds its failures. Raises BadScope."""
    if scope.run is not None:
        run = Run.objects.filter(pk=scope.run, benchmark=scope.benchmark).select_related("judge").first()
        if run is None or run.pk in unseen_in(scope):
            raise BadScope(f"There is no run {scope.run} on {scope.benchmark}.")
        return of_runs(scope, with_alike(scope, run))
    if scope.source in PEOPLE:
        return of_people(scope)
    return of_runs(scope, runs_of(scope, scope.source))


def runs_of(scope: Scope, judge: str) -> list[Run]:
    """The judge's runs, which must share protocol and settings; otherwise raises BadScope with the list."""
    runs = judged_runs(scope).filter(judge__name=judge)
    if not runs:
        judges = judges_of(scope)
        if not Judge.objects.filter(name=judge).exists():
            raise BadScope(f"There is no judge {judge!r}. With judgments here: {', '.join(judges) or 'none yet'}.")
        raise BadScope(
            f"{judge!r} has no judgments on {scope.benchmark}. With some: {', '.join(judges) or 'none yet'}."
        )
    if len({(run.protocol, run.settings_hash) for run in runs}) > 1:
        raise BadScope(f"{judge!r} has runs with different settings. Choose one as run: {_by_settings(runs)}.")
    return list(runs)


def _by_settings(runs: Iterable[Run]) -> str:
    """The runs with what each was asked, in words, once for those that were asked alike."""
    alike: dict[tuple[Any, ...], list[Run]] = {}
    for run in runs:
        alike.setdefault(_source(run), []).append(run)
    return "; ".join(
        f"{'runs' if len(of) > 1 else 'run'} {listed([str(run.pk) for run in of])}: "
        f"{settings_in_words(of[0].protocol, of[0].settings)}"
        for of in alike.values()
    )


def with_alike(scope: Scope, run: Run) -> list[Run]:
    """The run itself; in an edition, and where the view says so, with all finished ones alike: each submission has a
    run of its own.
    """
    if not (scope.edition or scope.alike):
        return [run]
    return list(judged_runs(scope).filter(Q(pk=run.pk) | Q(**run.alike, state=Run.State.FINISHED)))


@guard.working()
def judged_runs(scope: Scope) -> QuerySet[Run]:
    """Runs on the benchmark with a verdict of the view's kind that the view may count, oldest first."""
    with_verdict = Judgment.objects.filter(
        run=OuterRef("pk"), status=Judgment.Status.OK, item__kind=scope.kind.item_kind
    )
    runs = Run.objects.filter(
        Exists(with_verdict), benchmark=scope.benchmark, kind=Run.Kind.JUDGMENTS, protocol__in=scope.kind.protocols
    )
    return runs.exclude(pk__in=unseen_in(scope)).select_related("judge").order_by("pk")


@guard.working()
def with_most_items(runs: Iterable[Run], *, alone: bool = False) -> Run | None:
    """The run with verdicts on most items, those of runs alike counted together unless each stands ``alone``; the
    newest of several; None of none. A try-out replaces no whole run.
    """
    found = list(runs)
    if len(found) < 2:
        return found[0] if found else None
    pks = tuple(run.pk for run in found)
    counted_by = ("run",) if alone else ("run__judge", "run__protocol", "run__settings_hash")

    def count() -> dict[tuple[Any, ...], int]:
        judged = Judgment.objects.filter(run__in=pks, status=Judgment.Status.OK).order_by().values_list(*counted_by)
        return {tuple(source): n for *source, n in judged.annotate(n=Count("item", distinct=True))}

    items = until_changed(("items of runs", pks, alone), count, benchmark=found[0].benchmark_id)
    return max(found, key=lambda run: (items.get((run.pk,) if alone else tuple(run.alike.values()), 0), run.pk))


SEALED = (
    "Sealed, no edition yet: a judge's fuller run is told on the day after it has ended, or by an edition. Until then "
    "no try-out stands in its place."
)
GOES_ON = "A judge's fuller run has no verdict yet, and no try-out stands in its place."


@guard.working()
def in_place_of_people(scope: Scope) -> tuple[Scope, str]:
    """The view by a judge, and a note that says so, where people have labelled nothing of its kind; else the view as
    it is. Of judges those with the newest edition's settings come first, then those with verdicts on most items.

    A run over fewer than half of the items of another, in whatever state that is, is a try-out, and ranks nothing. A
    baseline is a floor for judges; it never ranks models by itself.
    """
    labelled = scope.kind.labels().filter(campaign__benchmark=scope.benchmark, excluded=False)
    if scope.kind.keyed or labelled.exists():
        return scope, ""
    judged = list(judged_runs(scope).filter(judge__baseline=""))
    planned = _planned_items(scope)
    whole = [run for run in judged if 2 * planned.get(_source(run), 0) >= max(planned.values(), default=0)]
    if not whole:
        unseen = Run.objects.filter(_of_judges(scope), pk__in=unseen_in(scope), tryout=False)
        return scope, SEALED if unseen.exists() else GOES_ON if judged else ""
    run, several = _ranking_run(scope, judged, whole)
    named = f"{run.judge}, run {run.pk}" if several else str(run.judge)
    others = Label.objects.filter(campaign__benchmark=scope.benchmark, excluded=False).exists()
    missing = (
        "People have labelled other things here, not these" if others else "People have not labelled this benchmark yet"
    )
    note = f"{missing}, so these are the verdicts of {named}{_of_all(scope, run, planned)}."
    return replace(scope, source=run.judge.name, run=run.pk if several else None), note


def _ranking_run(scope: Scope, judged: Sequence[Run], whole: Sequence[Run]) -> tuple[Run, bool]:
    """Which of the ``whole`` runs ranks, and whether by itself: its judge has several sources."""
    edition = Sight(scope, MODELS).edition
    published = []
    if edition and edition.run:
        published = [run for run in whole if _source(run) == _source(edition.run)]
    first = published or whole
    run = with_most_items(first)
    assert run
    of_judge = run.judge_id
    several = len({_source(of) for of in judged if of.judge_id == of_judge}) > 1
    if several:
        run = with_most_items([of for of in first if of.judge_id == of_judge], alone=True) or run
    return run, several


def _source(run: Run) -> tuple[Any, ...]:
    return tuple(run.alike.values())


def _of_judges(scope: Scope) -> Q:
    """Runs of judges, no baselines, with verdicts of the view's kind to come or to be counted."""
    return Q(
        benchmark=scope.benchmark, kind=Run.Kind.JUDGMENTS, protocol__in=scope.kind.protocols, judge__baseline=""
    ) & ~Q(state=Run.State.CANCELLED)


def _planned_items(scope: Scope) -> dict[tuple[Any, ...], int]:
    """How many items the runs of each source are about, whatever their state and whoever sees them."""

    runs = Run.objects.filter(_of_judges(scope) | Q(pk__in=judged_runs(scope).order_by().values("pk"))).order_by("pk")
    pks = tuple(runs.values_list("pk", flat=True))

    def count() -> dict[tuple[Any, ...], int]:
        rows = RunItem.objects.filter(run__in=pks, item__kind=scope.kind.item_kind).order_by()
        sources = rows.values_list("run__judge", "run__protocol", "run__settings_hash")
        return {tuple(source): n for *source, n in sources.annotate(n=Count("item", distinct=True))}

    return until_changed(("planned items", scope.kind.name, pks), count, benchmark=scope.benchmark.pk, votes=False)


def _of_all(scope: Scope, run: Run, planned: Mapping[tuple[Any, ...], int]) -> str:
    """What is to be said of a run over few of the items that there are; nothing of files, which need not be whole."""
    if run.imported or run.item_set:
        return ""
    there = Item.objects.filter(sample__in=scope.benchmark.samples.in_use(), kind=scope.kind.item_kind).count()
    tried = planned.get(_source(run), 0)
    return f", a try-out of {tried:,} of {there:,} items" if 2 * tried < there else ""


def unseen_in(scope: Scope) -> list[int]:
    """Runs that the view must not count."""
    return unseen_runs(scope.benchmark, staff=scope.staff, edition=scope.edition)


def judges_of(scope: Scope) -> list[str]:
    return list(dict.fromkeys(judged_runs(scope).order_by("judge__name").values_list("judge__name", flat=True)))


def judge_groups(scope: Scope) -> list[list[Run]]:
    """The runs that boards compare with people: one group per judge, protocol and settings."""
    runs = judged_runs(scope)
    if scope.run is not None:
        runs = runs.filter(pk=scope.run)
    elif scope.source not in PEOPLE:
        runs = runs.filter(judge__name=scope.source)
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs.order_by("judge__name", "pk"):
        groups.setdefault((run.judge.name, run.protocol, run.settings_hash), []).append(run)
    return list(groups.values())


def of_runs(scope: Scope, runs: Sequence[Run]) -> Outcomes:
    """One outcome per item and repeat from a judge's runs with the same settings, as far as the view may count them.

    They are one source: an item counts in the first run that has an outcome for it. With several repeats, ``weight`` is
    1 / the repeats of the item that have an outcome, so that each item counts once.
    """
    parts, failures, seen = [], [], np.zeros(0, dtype=np.int32)
    expected = []
    for run in runs:
        part, failed = _combined(scope, run)
        items = arrays.run_items(run)
        without = left_out(scope, run)
        expected.append(items[~np.isin(items, without)] if without else items)
        if len(seen):
            unseen = ~np.isin(part.item, seen)
            part = _Combined(*(column[unseen] for column in part))
        parts.append(part)
        failures.append(failed)
        if len(runs) > 1:
            seen = np.union1d(seen, part.item)
    item, repeat, choice = map(_joined, zip(*parts, strict=True))
    failed = pd.concat(failures)
    if len(runs) > 1:  # what one run failed at, another may have done
        failed = failed[~failed["item"].isin(seen)].drop_duplicates(["item", "repeat"])
    choices = pd.Categorical.from_codes(choice, categories=list(VERDICTS))
    frame = pd.DataFrame({"item": item, "repeat": repeat, "choice": choices}, copy=False)
    if protocols.get(runs[0].protocol).graded:
        frame = _with_preferences(runs, frame)
    if runs[0].repeats > 1 or (len(repeat) and int(repeat.max()) > 0):
        frame["weight"] = 1 / frame.groupby("item")["item"].transform("size")
    return Outcomes(
        frame,
        pd.Index(expected[0] if len(expected) == 1 else np.unique(np.concatenate(expected))),
        failed,
        max(runs[0].repeats, int(repeat.max(initial=0)) + 1),
        tuple(runs),
    )


@guard.working()
def _with_preferences(runs: Sequence[Run], frame: pd.DataFrame) -> pd.DataFrame:
    """With the mean preference over orders of each row, in the first run that has some for its item."""
    rows = Judgment.objects.filter(run__in=[run.pk for run in runs], preference__isnull=False)
    given = pd.DataFrame(
        rows.order_by("pk").values_list("run_id", "item_id", "repeat", "preference"),
        columns=["run", "item", "repeat", "preference"],
    )
    means = given.groupby(["item", "repeat", "run"], as_index=False)["preference"].mean()
    means = means.drop_duplicates(["item", "repeat"]).set_index(["item", "repeat"])["preference"]
    means = means.reindex(pd.MultiIndex.from_frame(frame[["item", "repeat"]]))
    return _as_points(frame.assign(preference=means.to_numpy()), given["preference"])


def _as_points(frame: pd.DataFrame, given: "pd.Series[float]") -> pd.DataFrame:
    """With ``points`` where the preferences that were given are not all of five steps."""
    in_steps = (given.dropna() * 4).isin(range(5)).all()
    return frame if in_steps else frame.assign(points=frame["preference"])


class Verdicts(NamedTuple):
    """Columns with a place for each verdict, see ``arrays.verdicts``."""

    item: Any
    repeat: Any
    choice: Any
    turned: Any


def verdicts(scope: Scope, run: Run) -> Verdicts:
    """The columns of ``arrays.verdicts``, as far as the view may count them."""
    columns = Verdicts(*arrays.verdicts(run))
    without = left_out(scope, run)
    if not without:
        return columns
    counted = ~np.isin(columns.item, without)
    return Verdicts(*(column[counted] for column in columns))


class _Combined(NamedTuple):
    """Columns with a place for each item and repeat."""

    item: Any
    repeat: Any
    choice: Any


def _combined(scope: Scope, run: Run) -> tuple[_Combined, pd.DataFrame]:
    """The items, repeats and outcomes (codes) of a run where every order has a verdict, or where the view says so one
    of them, and what ``failed``.
    """
    item, numbers, choice, *_ = verdicts(scope, run)
    items, unit = _by_item(item)
    used = np.flatnonzero(np.bincount(numbers)) if len(numbers) else np.zeros(1, dtype=np.int64)
    repeats = len(used)
    if repeats > 1:
        unit = unit.astype(np.int64) * repeats + np.searchsorted(used, numbers)
    units, orders = len(items) * repeats, 2 if run.orders == "both" else 1
    wanted = 1 if scope.orders == ANY_ORDER else orders
    combined = combine(unit=unit, units=units, choice=choice, orders=wanted)
    rows = np.flatnonzero(~combined.complete)
    if len(rows):
        rows = rows[np.bincount(unit, weights=choice != UNASKED, minlength=units)[rows] >= orders]
    failed = pd.DataFrame({"item": items[rows // repeats], "repeat": used[rows % repeats].astype(np.int16)})
    if repeats > 1:
        rows = np.flatnonzero(combined.complete)
        repeat = used[rows % repeats].astype(np.int16)
        return _Combined(items[rows // repeats], repeat, combined.choice[rows]), failed
    of_item = items if combined.complete.all() else items[combined.complete]
    repeat = np.full(len(of_item), used[0], dtype=np.int16)
    return _Combined(of_item, repeat, combined.choice[combined.complete]), failed


def in_orders(scope: Scope, runs: Sequence[Run]) -> pd.DataFrame:
    """A judge's verdict in each order of the pairs asked about in both: ``item, repeat``, and as codes ``GIVEN`` and
    ``SWAPPED``; undecided is a tie. Of several runs counts the first that has both verdicts.

    Failures count by the view's rule: they are left out with their pair, are ties, or MISSING.
    """
    parts = []
    for run in runs:
        item, repeat, choice, turned = verdicts(scope, run)
        rows = pd.DataFrame({"item": item, "repeat": repeat, "judged": np.minimum(choice, TIED)})
        given, swapped = (rows[(turned == place) & (choice != UNASKED)] for place in (False, True))
        parts.append(given.merge(swapped, on=["item", "repeat"]))
    both = pd.concat(parts).rename(columns={"judged_x": GIVEN, "judged_y": SWAPPED})
    both["failed"] = (both[[GIVEN, SWAPPED]] == MISSING).any(axis=1)
    both = both.sort_values("failed", kind="stable").drop_duplicates(["item", "repeat"])
    if scope.failures == AS_TIE:
        return both.replace({name: {MISSING: TIED} for name in (GIVEN, SWAPPED)})
    return both if scope.failures == WRONG else both[~both["failed"]]


def with_failures(outcomes: Outcomes, rule: str) -> pd.DataFrame:
    """The frame of outcomes, with failures as ties or as ``FAILED``, or without them.

    The column ``failed`` says which they are; it is left out where there are none.
    """
    frame, failed = outcomes.frame, outcomes.failed
    if rule in ("", EXCLUDE) or failed.empty:
        return frame
    choices = frame["choice"].cat.add_categories([FAILED])
    added = pd.Categorical(["tie" if rule == AS_TIE else FAILED] * len(failed), dtype=choices.dtype)
    parts = [frame.assign(choice=choices, failed=False), failed.assign(choice=added, failed=True)]
    frame = pd.concat(parts, ignore_index=True).sort_values(["item", "repeat"], ignore_index=True)
    if "weight" in frame:
        frame["weight"] = 1 / frame.groupby("item")["item"].transform("size")
    return frame


def _joined(parts: Sequence[Any]) -> Any:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _by_item(item: Any) -> tuple[Any, Any]:
    """The distinct items sorted by id, and for each row the index of its item."""
    if (item[1:] > item[:-1]).all():
        return item, np.arange(len(item), dtype=np.int32)
    items = np.sort(item)
    items = items[np.concatenate(([True], items[1:] > items[:-1]))]
    return items, locate(items, item)[1]


def judged(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``with_failures`` that are a judge's verdicts."""
    return frame[~frame["failed"].astype(bool)] if "failed" in frame else frame


def among(items: pd.DataFrame, targets: "pd.Index | pd.Series[int]") -> tuple[Any, Any]:
    """Which of the items are in the view (a mask), and their indices in it; ``items`` as returned by ``pairs``."""
    found, place = locate(items.index.to_numpy(), targets.to_numpy())
    return found, place if found.all() else place[found]


def join_items(items: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    """The outcomes on items of the view, each with its item's columns."""
    in_view, place = among(items, outcomes["item"])
    kept_outcomes = outcomes if in_view.all() else outcomes[in_view]
    facts = items.take(place).set_axis(kept_outcomes.index)
    return pd.concat([kept_outcomes, facts], axis=1)


@guard.working()
def labels_of(scope: Scope, *, every: bool = False) -> pd.DataFrame:
    """The labels that are compared with other verdicts, or ``every`` one that counts, oldest first: ``item``,
    ``annotator``, ``choice``, ``preference`` if there are any.
    """
    labels = Label.objects.of_answers()
    rows = counted_labels(scope, labels.counted() if every else labels.compared())
    rows = rows.filter(campaign__benchmark=scope.benchmark, item__kind=Item.Kind.PAIR, choice__isnull=False)
    if scope.campaign:
        rows = rows.filter(campaign__name=scope.campaign)
    columns = ["item", "annotator", "choice", "preference"]
    values = rows.order_by("pk").values_list("pk", "item_id", "annotator_id", "choice", "preference")
    frame = pd.DataFrame(values, columns=["label", *columns]).set_index("label")
    if earlier := earlier_versions(scope, rows):
        of_then = pd.DataFrame.from_dict(earlier, orient="index").reindex(columns=columns[2:])
        frame.loc[of_then.index, columns[2:]] = of_then
    frame = frame.reset_index(drop=True)
    if frame["preference"].isna().all():
        frame = frame.drop(columns="preference")
    # The same person in two campaigns: the first label on the item counts, so that nobody votes twice.
    return frame.drop_duplicates(["item", "annotator"])


def decoys_of(scope: Scope) -> set[int]:
    """The items that everybody got, so that gold did not show among them. Where every label counts by itself, theirs
    are one vote, what most of them say.
    """
    places = CampaignItem.objects.filter(decoy=True, campaign__benchmark=scope.benchmark)
    places = places.filter(campaign__name=scope.campaign) if scope.campaign else places
    if not scope.staff:  # which are decoys of an open round would be told by how boards move
        places = places.exclude(_first_asked_now())
    return set(places.order_by().values_list("item", flat=True))


def labels_on(scope: Scope, items: "pd.Index[Any]") -> pd.DataFrame:
    """Those of these items."""
    labels = labels_of(scope)
    return labels[labels["item"].isin(items)]


def of_people(scope: Scope) -> Outcomes:
    """The majority per item, every label by itself, or the adjudicated verdict where there is one."""
    labels = labels_of(scope, every=True)
    places = CampaignItem.objects.filter(
        campaign__benchmark=scope.benchmark, item__kind=Item.Kind.PAIR, reviewed__isnull=True
    )
    if scope.campaign:
        places = places.filter(campaign__name=scope.campaign)
        if not places.exists():
            raise BadScope(f"There is no campaign {scope.campaign!r} over pairs of {scope.benchmark}.")
    if not scope.staff:
        places = places.exclude(_first_asked_now())
    expected = pd.Index(places.values_list("item_id", flat=True)).unique()
    if scope.source == INDIVIDUALS:
        of_decoys = labels["item"].isin(decoys_of(scope))
        if of_decoys.any():
            parts = [labels[~of_decoys], _one_vote(scope, labels[of_decoys])]
            labels = pd.concat(parts, ignore_index=True)
        if "preference" in labels:
            labels = _as_points(labels, labels["preference"])
        return Outcomes(labels.assign(repeat=0), expected, NO_FAILURES, 1)
    frame = _one_vote(scope, labels)
    if "preference" in labels:
        frame = _as_points(frame, labels["preference"])
    if scope.source == ADJUDICATED:
        rows = Adjudication.objects.filter(campaign_item__in=places, choice__isnull=False)
        if not scope.staff:
            rows = rows.filter(exposure.said_before(item="campaign_item__item__", at="changed_at"))
        decided = dict(rows.values_list("campaign_item__item_id", "choice"))
        frame["choice"] = frame["item"].map(decided).fillna(frame["choice"])
        if "preference" in frame:  # of those who were not overruled
            frame = frame.drop(columns=frame.columns.intersection(["points"]))
            frame["preference"] = frame["preference"].where(~frame["item"].isin(decided))
    return Outcomes(frame.assign(repeat=0), expected, NO_FAILURES, 1)


def _first_asked_now() -> Q:
    """The places of which the last closed state of blind items knows nothing: of rounds that were opened on them since
    and never closed before.
    """
    never_closed = Q(campaign__closed_at=None) | Q(campaign__closed_at__gte=F("item__blind_since"))
    return never_closed & Q(item__blind=True, campaign__blind=True, asked_since__gte=F("item__blind_since"))


def _one_vote(scope: Scope, labels: pd.DataFrame) -> pd.DataFrame:
    """One row an item: the majority of its labels, and their mean preference if there are any."""
    frame = majority(labels=labels, rule=scope.rule)[["choice"]].reset_index()
    if "preference" in labels:
        frame["preference"] = frame["item"].map(labels.groupby("item")["preference"].mean())
    return frame


def sided(frame: pd.DataFrame, anchor: str) -> pd.DataFrame:
    """One row a model and outcome, a place in OUTCOMES; with an anchor only the other side of its pairs.

    ``frame`` has ``item, level, group, a, b, choice``; ``repeat``, ``weight`` and ``failed`` stay where it has them.
    """
    sides = []
    for side, other, won, lost in (("a", "b", "first", "second"), ("b", "a", "second", "first")):
        rows = frame[(frame[other] == anchor) & (frame[side] != anchor)] if anchor else frame
        choice = rows["choice"]
        beaten = choice.isin([lost, FAILED])
        outcome = np.select([choice == won, beaten], [np.int8(WIN), np.int8(LOSS)], np.int8(TIE))
        columns = {"model": rows[side], "other": rows[other], "outcome": outcome}
        copied = ("item", "level", "group", *(name for name in ("repeat", "weight", "failed") if name in rows))
        if "preference" in rows:
            columns["preference"] = rows["preference"] if side == "a" else 1 - rows["preference"]
            if "failed" in rows:  # a tie, or lost
                counted = np.where(outcome == TIE, 0.5, 0.0)
                columns["preference"] = columns["preference"].where(~rows["failed"].astype(bool), counted)
        sides.append(pd.DataFrame(columns | {name: rows[name] for name in copied}))
    return pd.concat(sides, ignore_index=True)


def win_points(rows: pd.DataFrame, ties: str) -> pd.DataFrame:
    """Rows of ``sided`` with what each counts in a win rate, ``won``: a win 1, a tie 0 or half, or it is left out."""
    won = (rows["outcome"] == WIN).astype(float) + (0.5 if ties == HALF else 0.0) * (rows["outcome"] == TIE)
    rows = rows.assign(won=won)
    return rows[rows["outcome"] != TIE] if ties == DROPPED else rows


STRONG = (0.0, 1.0)  # preferences for a much better answer, of everybody who voted, in every order


def mean_preferences(rows: pd.DataFrame) -> dict[str, Estimate]:
    """By model, the mean preference for its answers, of rows of ``sided`` that have one; an item counts once."""
    if "preference" not in rows:
        return {}
    rows = rows[rows["preference"].notna()]
    by_item = rows.groupby(["model", "item"], observed=True).agg({"preference": "mean", "group": "first"})
    return {
        str(name): mean(values=of["preference"].to_numpy(), cluster=of["group"].to_numpy(), ends=(0.0, 1.0))
        for name, of in by_item.groupby("model", observed=True)
    }


def share_won(rows: pd.DataFrame, ties: str) -> Estimate:
    """The win rate of rows of ``sided``; an item counts as the mean of its repeats, if it has a ``weight``."""
    rows = win_points(rows, ties)
    won = rows["won"]
    if "weight" in rows:
        repeats = rows.assign(won=won * rows["weight"]).groupby("item")
        rows = repeats.agg({"won": "sum", "weight": "sum", "group": "first"})
        won = (rows["won"] / rows["weight"]).round(9)
    return mean(values=won.to_numpy(), cluster=rows["group"].to_numpy(), ends=(0.0, 1.0))


def fingerprint(scope: Scope) -> dict[str, Any]:
    """Counts and last changes of everything that a view is computed from: equal as long as the data are.

    It is shown to users, so it does not depend on anything that is withheld from the view.
    """
    view = (scope.benchmark.pk, scope.staff, scope.kind.hidden)
    return until_changed(("fingerprint", *view), lambda: _fingerprint(scope), benchmark=scope.benchmark.pk)


@guard.working()
def _fingerprint(scope: Scope) -> dict[str, Any]:
    unseen = unseen_in(scope)
    labels = Label.objects.filter(campaign__benchmark=scope.benchmark)
    decided = Adjudication.objects.filter(campaign_item__campaign__benchmark=scope.benchmark)
    if not scope.staff:
        labels = labels.filter(exposure.said_before())
        decided = decided.filter(exposure.said_before(item="campaign_item__item__", at="changed_at"))
    return {
        "labels": labels.aggregate(n=Count("pk"), last=Max("changed_at"), top=Max("pk")),
        "excluded": labels.filter(excluded=True).aggregate(n=Count("pk"), sum=Sum("pk")),
        # Both are stored once and never changed.
        "judgments": _per_run(Judgment, scope.benchmark, unseen),
        "run_items": _per_run(RunItem, scope.benchmark, unseen),
        # When, and not what, which may be sealed.
        "adjudications": list(decided.order_by("pk").values_list("pk", "changed_at")),
        "asked": CampaignItem.objects.filter(campaign__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        "items": sum(arrays.items_by_kind(scope.benchmark).values()),
        "samples": sample_groups(scope.benchmark),
        "sealed": None if scope.staff else fingerprint_of_sealed(scope.benchmark),
        "answers": _answers(scope),
        "capabilities": list(scope.benchmark.capabilities.order_by("pk").values_list("pk", "path")),
        **({"held_out": True} if held_out_in(scope.benchmark) else {}),
        **({"withdrawn": withdrawn_items(scope.benchmark)} if withdrawn_items(scope.benchmark) else {}),
        **(_hidden_facts(scope) if scope.kind.hidden else {}),
    }


@guard.working()
def _answers(scope: Scope) -> dict[str, int]:
    counts = arrays.answers(scope.benchmark)
    if scope.staff:
        return counts
    withheld = Response.objects.filter(submission__benchmark=scope.benchmark, submission__released_at=None)
    return {"n": counts["n"] - withheld.count()}


class SampleGroup(NamedTuple):
    """The samples that share a status, question type and split: how many they are, the sum of their ids, and the sum of
    ids times capabilities, which changes if one moves to another capability.
    """

    status: str
    question_type: str
    split: str
    n: int
    keys: int
    places: int | None


@kept_while_voted
def sample_groups(benchmark: Benchmark) -> list[SampleGroup]:
    facts = benchmark.samples.order_by().values_list("status", "question_type", "split")
    sums = {"n": Count("pk"), "keys": Sum("pk"), "places": Sum(F("pk") * F("capability_id"))}
    return [SampleGroup(*each) for each in sorted(facts.annotate(**sums), key=str)]


@guard.working()
def _per_run(model: type[Judgment] | type[RunItem], benchmark: Benchmark, without: Sequence[int]) -> list[list[Any]]:
    """How many rows each run has, and its newest one. As separate queries, each comes from an index."""
    newest = model.objects.filter(run=OuterRef("pk")).order_by("-pk").values("pk")[:1]
    newest_rows = benchmark.runs.exclude(pk__in=without).order_by("pk").values_list(Subquery(newest), flat=True)
    counts = arrays.rows_per_run(model, benchmark.pk)
    return [[(run, n) for run, n in counts.items() if run not in without], list(newest_rows)]


@guard.working()
def _hidden_facts(scope: Scope) -> dict[str, Any]:
    """What numbers that depend on hidden criteria depend on apart from verdicts."""
    submissions = Submission.objects.filter(benchmark=scope.benchmark).order_by("pk")
    return {
        "responses": Response.objects.filter(sample__benchmark=scope.benchmark).aggregate(Count("pk"), Max("pk")),
        "criteria": answer_keys.edition_of(scope.benchmark),
        "submissions": list(submissions.values_list("pk", "state", "released_at")),
        "scores": SubmissionScore.objects.filter(submission__in=submissions.order_by()).aggregate(
            Count("pk"), Max("pk")
        ),
        "hidden": [scope.benchmark.hidden_splits, scope.staff],
    }
