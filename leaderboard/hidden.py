"""What of the verdicts and samples a live view counts below staff, where some of its inputs are hidden.

Whether the viewer sees a live view, an edition, or nothing, says ``sight``.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import date, datetime
from typing import Any

import numpy as np
import pandas as pd
from django.contrib.auth.models import AnonymousUser
from django.db.models import Exists, F, Min, OuterRef, Q, QuerySet

from annotations.models import Campaign, CampaignItem, Label, LabelQuerySet, LabelRevision
from bank import exposure, guard
from bank.criteria import answer_keys
from bank.models import Benchmark, Item, Sample, Submission
from bank.samples.held_out import held_out_samples
from judging.models import Judgment, Run
from leaderboard.kept.values import kept_until_changed, until_changed
from leaderboard.scope import ADJUDICATED, HELD, INDIVIDUALS, OPEN, WHOLE, Scope, changed
from stats.arrays import BoolArray
from stats.disclosure import MIN_SAMPLES


@kept_until_changed
def closed_of(benchmark: Benchmark) -> int:
    """All that is closed in one or another sample of a benchmark (``exposure.Inputs``)."""
    return exposure.closed_in(Sample.objects.filter(benchmark=benchmark))


def untold_runs(*, staff: bool) -> list[int]:
    """Runs that nobody below staff is told of, see ``RunQuerySet.unseen_by``. Kept, for pages ask often."""
    if staff:
        return []
    return until_changed(("untold runs",), lambda: Run.objects.unseen_by(AnonymousUser()))


def uncounted_runs(*, staff: bool) -> list[int]:
    """Runs whose failures nobody below staff may count, see ``RunQuerySet.uncounted_by``. Kept until it may change."""
    return [] if staff else until_changed(("uncounted runs",), lambda: Run.objects.uncounted_by(AnonymousUser()))


def unseen_runs(benchmark: Benchmark, *, staff: bool, edition: bool = False) -> list[int]:
    """Runs that no number counts below staff: those nobody is told of, and outside editions those that held a closed
    key or weight.
    """
    untold = untold_runs(staff=staff)
    return untold if staff or edition else [*untold, *_keyed_runs(benchmark)]


@kept_until_changed
def _keyed_runs(benchmark: Benchmark) -> list[int]:
    keys = closed_of(benchmark) & exposure.KEYED
    held = benchmark.runs.filter(exposure.any_of(keys, "held")) if keys else benchmark.runs.none()
    return list(held.order_by().values_list("pk", flat=True))


@kept_until_changed
def outside_items(benchmark: Benchmark) -> list[int]:
    """Items with an answer from outside, of samples of which something is closed."""
    items = Item.objects.filter(sample__benchmark=benchmark, outside=True, sample__closed__gt=0)
    return sorted(items.order_by().values_list("pk", flat=True)) if closed_of(benchmark) else []


@kept_until_changed
def withdrawn_items(benchmark: Benchmark) -> list[int]:
    """Items with an answer of a submission that was withdrawn: they count nowhere."""
    withdrawn = Submission.objects.filter(benchmark=benchmark, state=Submission.State.WITHDRAWN)
    items = Item.objects.filter(outside=True, responses__submission__in=withdrawn)
    return sorted(items.order_by().values_list("pk", flat=True).distinct())


@kept_until_changed
def untold_items(benchmark: Benchmark) -> list[int]:
    """Items of which nobody below staff knows that they are there, see ``Item.held``."""
    items = Item.objects.filter(sample__benchmark=benchmark, held__gt=0).exclude(exposure.named_openly(""))
    return sorted(items.order_by().values_list("pk", flat=True)) if closed_of(benchmark) else []


def unmeasured_items(scope: Scope) -> list[int]:
    """The items of samples with a closed answer key: how long an answer is tells which option it is, so no number below
    staff says it.
    """
    return [] if scope.staff else _items_with_closed_keys(scope.benchmark)


@kept_until_changed
def _items_with_closed_keys(benchmark: Benchmark) -> list[int]:
    if not closed_of(benchmark) & exposure.Inputs.ANSWER_KEY:
        return []
    items = Item.objects.filter(
        exposure.any_of(exposure.Inputs.ANSWER_KEY, "sample__closed"), sample__benchmark=benchmark
    )
    return list(items.order_by("pk").values_list("pk", flat=True))


def fingerprint_of_sealed(benchmark: Benchmark) -> list[Any]:
    """Changes whenever something that boards below staff may count is closed, hidden or opened."""
    items = outside_items(benchmark), untold_items(benchmark), sorted(sealed_items(benchmark))
    return [closed_of(benchmark), *items]


def left_out(scope: Scope, run: Run) -> list[int]:
    """Items on which this view leaves out the verdicts of a run: those with an answer from outside, where it held what
    is closed, those of which nobody is told, and sealed ones of which it covers few samples.
    """
    if scope.staff or scope.edition:
        return []
    outside = outside_items(scope.benchmark) if run.held & closed_of(scope.benchmark) else []
    few_or_late = *_sealed_of_few(scope.benchmark, run, scope.anchor), *_judged_late(run)
    return [*outside, *untold_items(scope.benchmark), *few_or_late]


@guard.working()
@kept_until_changed
def _judged_late(run: Run) -> list[int]:
    """The blind items that the run judged after the round on them was opened."""
    late = Judgment.objects.exclude(exposure.said_before()).filter(run=run)
    return list(late.order_by().values_list("item", flat=True).distinct()) if blind_items(run.benchmark) else []


@guard.working()
def _sealed_of_few(benchmark: Benchmark, run: Run, anchor: str) -> list[int]:
    """The run's items of sealed samples, if it covers few of these: a number of the run would be about few samples, or
    about few beside that of another run. Otherwise those on which numbers of models would be about few, in a view with
    this ``anchor``; a call without a verdict covers nothing. Kept until it may change.
    """

    def read() -> list[int]:
        judged = Judgment.objects.filter(_sealed(benchmark, "item__"), run=run, status=Judgment.Status.OK).order_by()
        judged = judged.filter(exposure.said_before())
        of_kind = Item.objects.filter(
            _sealed(benchmark), sample__benchmark=benchmark, kind__in=judged.values("item__kind")
        )
        could_be = of_kind.order_by().values("sample").distinct().count()
        covered = judged.values_list("item", "item__sample", MODEL_IN).distinct()
        return sorted(_of_few(list(covered), of=could_be, blind=blind_items(benchmark), anchor=anchor))

    if not sealed_items(benchmark):
        return []
    return until_changed(("sealed of few", run.pk, anchor), read, benchmark=benchmark.pk)


def counted_labels(scope: Scope, labels: LabelQuerySet) -> LabelQuerySet:
    """Those of these labels that the view counts, see ``exposure.counted``: none on sealed samples if they are about
    few of these, or leave few to other campaigns, nor on models with numbers that would be about few.
    """
    if scope.staff or scope.edition:
        return labels
    if closed_of(scope.benchmark):
        labels = labels.filter(exposure.counted(held="campaign__held"))
    if not sealed_items(scope.benchmark):
        return labels
    labels = labels.filter(exposure.said_before())
    of_benchmark = labels.filter(campaign__benchmark=scope.benchmark, item__kind=scope.kind.item_kind, excluded=False)
    sealed = of_benchmark.filter(_sealed(scope.benchmark, "item__")).order_by()
    columns = ("item", "item__sample", MODEL_IN, "campaign__name")
    given = list(sealed.values_list(*columns).distinct())
    asked = [row[:3] for row in given if scope.campaign in ("", row[3])]
    every = len({sample for _, sample, *_ in given})
    few = _of_few(asked, of=every, blind=blind_items(scope.benchmark), anchor=scope.anchor)
    return labels.exclude(_on(few, scope.benchmark)) if few else labels


@guard.working()
def earlier_versions(scope: Scope, labels: QuerySet[Label]) -> dict[int, dict[str, Any]]:
    """By id, what those of these labels said when the round on their item was opened that were changed since: what they
    say now is of that round.
    """
    if scope.staff or scope.edition or not blind_items(scope.benchmark):
        return {}
    since = F("label__item__blind_since")
    of_then = LabelRevision.objects.filter(label__in=labels.order_by().values("pk"), given_at__lt=since)
    return dict(of_then.filter(replaced_at__gte=since).values_list("label_id", "verdict"))


def _on(items: Collection[int], benchmark: Benchmark) -> Q:
    """The condition of rows on these sealed items; where they are too many to be named, of rows on any sealed one."""
    return Q(item__in=items) if len(items) <= MOST_NAMED else _sealed(benchmark, "item__")


def counted_reviews(scope: Scope, reviews: QuerySet[Label], *, held: str) -> QuerySet[Label]:
    """Those of these labels, which review judges' verdicts, that the view counts: a review says what the verdict says.
    ``held`` is the path to what the reviewed judge held.
    """
    if unseen := held_out_in(scope.benchmark):
        reviewed = reviews.order_by().values_list("item__sample", flat=True).distinct()
        reviews = reviews.exclude(item__sample__in=unseen.intersection(reviewed))
    if scope.staff or scope.edition:
        return reviews
    reviews = reviews.filter(exposure.counted(held="campaign__held"), exposure.counted(held=held))
    reviews = reviews.filter(exposure.said_before()).exclude(_in_hidden_splits(scope.benchmark, "item__"))
    if blind := blind_items(scope.benchmark):
        again = set(reviews.filter(item__blind=True).order_by().values_list("item", flat=True))
        if len({blind[item] for item in again & blind.keys()}) < MIN_SAMPLES:
            reviews = reviews.exclude(item__blind=True)
    return reviews


def counted_judgments(scope: Scope, judgments: QuerySet[Judgment]) -> QuerySet[Judgment]:
    """Those of these judgments that the view counts, see ``exposure.counted`` and ``left_out``."""
    if scope.staff or scope.edition:
        return judgments
    if closed_of(scope.benchmark):
        judgments = judgments.filter(exposure.counted(held="run__held"))
    if sealed_items(scope.benchmark):
        judgments = judgments.filter(exposure.said_before())
        for run in Run.objects.filter(pk__in=judgments.order_by().values("run")):
            if few := _sealed_of_few(scope.benchmark, run, scope.anchor):
                judgments = judgments.exclude(_on(few, scope.benchmark), run=run)
    return judgments


# ---- few samples ----

MOST_NAMED = 10_000  # items in one statement: SQLite takes some 32,000 values


MODEL_IN = "item__places__response__model__name"
Covered = Sequence[tuple[int, int, str]]


def _of_few(covered: Covered, *, of: int, blind: Collection[int], anchor: str) -> set[int]:
    """The items that numbers below staff leave out, of ``covered`` sealed ones: item, sample, and a model in it.

    Of hidden splits no two models may meet on few samples, for who knows all totals could tell these. On ``blind``
    items only what everybody could read before is counted, so it is enough that each model's number is about many, and
    those about two models leave them out (``of_many``).
    """
    if _is_few(len({sample for _, sample, _ in covered}), of=of):
        return {item for item, _, _ in covered}
    models_in, sample_of = defaultdict(set), {}
    for item, sample, model in covered:
        models_in[item].add(model)
        sample_of[item] = sample
    together = defaultdict(set)
    for item in models_in.keys() - blind:
        together[frozenset(models_in[item])].add(sample_of[item])
    few = {item for item in models_in.keys() - blind if len(together[frozenset(models_in[item])]) < MIN_SAMPLES}
    return few | _of_models_with_few({item: models_in[item] for item in models_in.keys() & blind}, sample_of, anchor)


def _of_models_with_few(models_in: dict[int, set[str]], sample_of: dict[int, int], anchor: str) -> set[int]:
    """The items with a model that is in few samples of what is left; only pairs with the ``anchor`` count for a model
    where there are some.
    """
    anchored = any(anchor in models for models in models_in.values())
    left, few = dict(models_in), set[int]()
    while True:
        samples = defaultdict(set)
        for item, models in left.items():
            for model in models:
                if not anchored or anchor in models:
                    samples[model].add(sample_of[item])
        scarce = {
            item
            for item, models in left.items()
            if any(len(samples[model]) < MIN_SAMPLES for model in models if not anchored or anchor in models)
        }
        if not scarce:
            return few
        few |= scarce
        left = {item: models for item, models in left.items() if item not in scarce}


def _is_few(samples: int, *, of: int) -> bool:
    """Whether a number about so many sealed samples is about too few, or leaves too few beside it."""
    return samples < MIN_SAMPLES or 0 < of - samples < MIN_SAMPLES


def sealed_samples(benchmark: Benchmark) -> set[int]:
    """The samples in use whose single verdicts are for staff whatever was held: those of hidden splits, and those with
    an item that people still label blind. Kept until it may change.
    """

    def read() -> set[int]:
        blind = Exists(Item.objects.filter(sample=OuterRef("pk"), blind=True))
        samples = benchmark.samples.in_use().filter(Q(split__in=benchmark.hidden_splits) | Q(blind))
        return set(samples.order_by().values_list("pk", flat=True))

    return until_changed(("sealed", benchmark.pk, tuple(benchmark.hidden_splits)), read, benchmark=benchmark.pk)


def sealed_items(benchmark: Benchmark) -> set[int]:
    """The items in use whose single verdicts are for staff whatever was held, see ``sealed_samples``. Kept until it may
    change.
    """

    def read() -> set[int]:
        items = Item.objects.filter(_sealed(benchmark), sample__in=benchmark.samples.in_use().order_by())
        return set(items.order_by().values_list("pk", flat=True))

    return until_changed(("sealed items", benchmark.pk, tuple(benchmark.hidden_splits)), read, benchmark=benchmark.pk)


def sealed_from(scope: Scope) -> set[int]:
    """Items whose single verdicts the viewer of this view may not read, whatever was held; none for staff."""
    return set() if scope.staff else sealed_items(scope.benchmark)


def blind_items(benchmark: Benchmark) -> dict[int, int]:
    """The samples of the items in use that are sealed because people label them, and for nothing else: what was said of
    these before counts as it did. Kept until it may change.
    """

    def read() -> dict[int, int]:
        items = Item.objects.filter(blind=True, sample__in=benchmark.samples.in_use().order_by())
        return dict(items.exclude(_in_hidden_splits(benchmark)).order_by().values_list("pk", "sample"))

    key = ("blind items", benchmark.pk, tuple(benchmark.hidden_splits))
    return until_changed(key, read, benchmark=benchmark.pk, votes=False)


def blind_since(scope: Scope) -> datetime | None:
    """Since when boards of the view's kind stand still, as far as people label its items blind: when the earliest of
    these rounds was opened. None where nobody does.
    """
    blind = Item.objects.filter(blind=True, kind=scope.kind.item_kind, sample__benchmark=scope.benchmark)
    since: datetime | None = blind.aggregate(first=Min("blind_since"))["first"]
    return since


def last_day(scope: Scope) -> date | None:
    """The last day of the rounds that are open on blind items of the view's kind; None where one has no end."""
    places = CampaignItem.objects.filter(item__blind=True, item__kind=scope.kind.item_kind)
    rounds = places.filter(
        campaign__benchmark__slug=scope.benchmark.slug, campaign__blind=True, campaign__state__in=Campaign.GOING
    )
    ends = list(rounds.order_by().values_list("campaign__due", flat=True).distinct())
    known: list[date] = [end for end in ends if end]
    return max(known) if known and len(known) == len(ends) else None


def until_closed(scope: Scope) -> str:
    """Until when votes on these are kept back, in words."""
    return until_in_words(last_day(scope))


def until_in_words(day: date | None) -> str:
    return f"until {day:%-d %b %Y}" if day else "until the round closes"


def _in_hidden_splits(benchmark: Benchmark, item: str = "") -> Q:
    return Q(**{f"{item}sample__split__in": benchmark.hidden_splits})


def _sealed(benchmark: Benchmark, item: str = "") -> Q:
    """The condition of ``sealed_items``; ``item`` is the path to the item."""
    return _in_hidden_splits(benchmark, item) | Q(**{f"{item}blind": True})


def counts_sealed(scope: Scope) -> bool:
    """Whether numbers of this view are made for somebody who sees no single verdict on some of its samples."""
    return not (scope.staff or scope.edition) and bool(sealed_items(scope.benchmark))


@kept_until_changed
def held_out_in(benchmark: Benchmark) -> set[int]:
    """The samples on which no judge is compared with people before somebody asks for it."""
    return held_out_samples(benchmark)


def of_one_source(scope: Scope) -> Scope:
    """The view over all samples, for numbers of verdicts that are compared with nobody else's."""
    return scope if scope.half else replace(scope, half=WHOLE)


def of_open_half(scope: Scope) -> Scope:
    """The view without what is held out, for boards of one source that are compared with another's."""
    return replace(scope, half=OPEN) if held_out_in(scope.benchmark) else scope


def _of_half(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    held = held_out_in(scope.benchmark) if scope.half != WHOLE else ()
    return items[items["sample"].isin(held) == (scope.half == HELD)] if held or scope.half == HELD else items


def as_told(scope: Scope, items: pd.DataFrame) -> pd.DataFrame:
    """The items of a view (index ``item``; columns ``sample, dataset``) of which its numbers may be made: every number
    of verdicts passes here. None is about what was withdrawn, and where a half is held out, none that compares judges
    with people is made of it.

    Items of hidden splits count as a whole alone: where they are of MIN_SAMPLES samples, in views without filters and
    with the usual definitions. Otherwise two views could differ in few. Items that people label blind count where they
    are of as many samples: of these nothing counts that was not open to everybody before.
    """
    if withdrawn := withdrawn_items(scope.benchmark):
        items = items[~items.index.isin(withdrawn)]
    every, items = len(items), _of_half(scope, items)
    is_half = len(items) < every
    if not counts_sealed(scope):
        return items
    blind = blind_items(scope.benchmark)
    is_blind = items.index.isin(list(blind))
    if items["sample"][is_blind].nunique() < MIN_SAMPLES:
        items = items[~is_blind]
    sealed = items.index.isin(list(sealed_items(scope.benchmark) - blind.keys()))
    if not sealed.any():
        return items
    several_sets = items["dataset"].nunique() > 1  # some numbers are means over data sets
    if several_sets or items["sample"][sealed].nunique() < MIN_SAMPLES or _is_narrowed(scope) or is_half:
        return items[~sealed]
    return items


def in_parts(scope: Scope, rows: pd.DataFrame, by: str) -> BoolArray:
    """Which rows, by their column ``item`` or ``sample``, the parts that the column ``by`` names are made of: none on
    items of hidden splits, since a part of these can be about few, and of items that people label blind those of parts
    that are about many.
    """
    if not counts_sealed(scope):
        return np.ones(len(rows), dtype=np.bool_)
    blind = blind_items(scope.benchmark)
    if "item" in rows:
        sealed = rows["item"].isin(sealed_items(scope.benchmark) - blind.keys())
    else:
        sealed = rows["sample"].isin(sealed_samples(scope.benchmark) - set(blind.values()))
    return np.asarray(~sealed & of_many(scope, rows, by))


def of_many(scope: Scope, rows: pd.DataFrame, *by: str) -> BoolArray:
    """Which rows, by their column ``item`` or ``sample``, a number about them is made of, or one for each value of the
    columns ``by``: of items that people label blind those of numbers about many.
    """
    if not counts_sealed(scope):
        return np.ones(len(rows), dtype=np.bool_)
    blind = blind_items(scope.benchmark)
    if "item" in rows:
        sample = rows["item"].map(blind)
    else:
        sample = rows["sample"].where(rows["sample"].isin(blind.values()))
    if not by:
        return np.asarray(sample.isna() | (sample.nunique() >= MIN_SAMPLES))
    parts = [rows[name].to_numpy() for name in by]
    many = sample.groupby(parts, observed=True).transform("nunique") >= MIN_SAMPLES
    return np.asarray(sample.isna() | many)


def _is_narrowed(scope: Scope) -> bool:
    """Whether the view counts another part of the sealed samples' verdicts, or counts them otherwise, than the usual
    one.
    """
    benchmark = scope.benchmark
    if scope.singly:
        return True
    if scope.split:
        items = Item.objects.filter(sample__benchmark=benchmark, sample__split=scope.split).order_by()
        in_splits = sealed_items(benchmark) - blind_items(benchmark).keys()
        if not in_splits <= set(items.values_list("pk", flat=True)):
            return True
    usual_anchor = benchmark.anchor.name if benchmark.anchor else ""
    other = scope.level or scope.question_type or scope.majority or changed(scope) or scope.anchor != usual_anchor
    return bool(other) or scope.source in (INDIVIDUALS, ADJUDICATED)


def without_sealed(scope: Scope) -> Scope:
    """The view without sealed samples, for numbers that would be about parts of these: what two have in common, places,
    bins.
    """
    return replace(scope, singly=True) if counts_sealed(scope) else scope


def rests_on_hidden(scope: Scope) -> bool:
    """Whether the numbers of this view depend on hidden keys or weights, or on verdicts that no live view below staff
    counts (``exposure.counted``).
    """
    if not scope.kind.hidden:
        return not scope.kind.no_models and _has_uncounted(scope)
    if hidden_split(scope) is not None:
        return True
    splits = scope.benchmark.hidden_splits
    samples = scope.benchmark.samples.in_use()
    return not answer_keys.are_open(
        samples=samples.exclude(split__in=splits) if scope.kind.keyed else samples,
        kinds=scope.kind.hidden,
    )


@guard.working()
def _has_uncounted(scope: Scope) -> bool:
    """Whether a verdict of the view's kind, by people or a judge, is in editions alone. Kept until it may change."""
    benchmark, closed = scope.benchmark, closed_of(scope.benchmark)
    keys = closed & exposure.KEYED

    def find() -> bool:
        runs = benchmark.runs.filter(kind=Run.Kind.JUDGMENTS, protocol__in=scope.kind.protocols)
        verdicts = Judgment.objects.filter(status=Judgment.Status.OK)
        labels = scope.kind.labels().filter(excluded=False)
        sources: list[tuple[QuerySet[Any], QuerySet[Any], str]] = [
            (runs, verdicts, "run__in"),
            (benchmark.campaigns.all(), labels, "campaign__in"),
        ]
        for given_by, given, column in sources:
            if given.filter(**{column: given_by.filter(exposure.any_of(keys, "held"))}).exists():
                return True
            holding = list(given_by.filter(exposure.any_of(closed, "held")).order_by().values_list("pk", flat=True))
            if given.filter(~exposure.named_openly(), **{column: given_by}, item__held__gt=0).exists():
                return True
            outside = Item.objects.filter(outside=True, sample__benchmark=benchmark)
            if holding and given.filter(**{column: holding}, item__in=outside).exists():
                return True
        return False

    return bool(closed) and until_changed(("uncounted", benchmark.pk, scope.kind.name), find, benchmark=benchmark.pk)


def uncounted_items(benchmark: Benchmark, held: int) -> QuerySet[Item]:
    """The items on which live views below staff count no verdict that held these inputs."""
    items = Item.objects.filter(sample__benchmark=benchmark)
    of_keys = Q(exposure.any_of(held & exposure.KEYED, "sample__closed"))
    return items.filter(of_keys | Q(exposure.any_of(held, "sample__closed"), outside=True) | ~exposure.named_openly(""))


def open_samples(scope: Scope) -> set[int]:
    """The samples whose keys or weights are open to everybody, so that they add nothing hidden to a number."""
    return answer_keys.open_samples(benchmark=scope.benchmark, kinds=scope.kind.hidden)


def samples_with_open_keys(benchmark: Benchmark) -> set[int]:
    """The samples whose answer keys are open to everybody."""
    return answer_keys.open_samples(benchmark=benchmark, kinds=("answer_key",))


def hidden_split(scope: Scope) -> str | None:
    """The hidden split that the view is about, also if the benchmark has no other."""
    hidden = scope.benchmark.hidden_splits
    if not scope.kind.keyed or not hidden:
        return None
    if scope.split in hidden:
        return scope.split
    if scope.split or scope.benchmark.samples.in_use().exclude(split__in=hidden).exists():
        return None
    return str(hidden[0])


def keys_are_open(samples: "QuerySet[Sample]") -> bool:
    """Whether the keys of all of these samples are open to everybody."""
    return bool(samples.count() == answer_keys.with_open_keys(samples).count())
