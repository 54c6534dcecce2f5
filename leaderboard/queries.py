"""Queries for the pages of boards: benchmarks, who may see which votes, and the votes behind a number."""

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from string import ascii_uppercase
from typing import Any

import numpy as np
import pandas as pd
from django.db.models import Count, Exists, OuterRef, QuerySet

from accounts.rules import Viewer, allowed
from annotations.models import Annotator, Campaign, CampaignItem, Label
from bank import guard
from bank.forms.fields import whole_number
from bank.models import Benchmark, Item, ItemResponse, Response, Sample, models_with
from judging.models import Judgment, Run
from judging.protocols.replies import NONE_OF_THEM
from leaderboard import votes
from leaderboard.boards.base import Board
from leaderboard.hidden import held_out_in, of_one_source, uncounted_runs, untold_runs
from leaderboard.metrics import GIVEN, SWAPPED
from leaderboard.rankings.correlation import CorrelationBoard, correlations, usual_scope
from leaderboard.rankings.languages import languages
from leaderboard.rows import JSON
from leaderboard.scope import HUMANS, Scope, answers_shown
from leaderboard.votes import arrays, scores
from stats.figures import number_of, two, whole
from stats.verdicts import majority, without_majority

MOST_COMPARED = 12
COUNTS = (  # of a benchmark
    "samples",
    "asked_samples",
    "models",
    "asked_models",
    "judges",
    "baselines",
    "labels",
    "annotators",
    "judgments",
)


# ---- benchmarks ----


@dataclass(frozen=True, slots=True)
class BenchmarkCounts:
    """A benchmark with its counts, as the index shows it. Verdicts are on items, and not all samples and models are in
    one: ``asked_samples`` and ``asked_models`` are.
    """

    benchmark: Benchmark
    name: str  # as in URLs
    samples: int = 0
    asked_samples: int = 0
    models: int = 0
    asked_models: int = 0
    judges: int = 0
    baselines: int = 0
    labels: int = 0
    annotators: int = 0
    judgments: int = 0

    @property
    def of_samples(self) -> str:
        """``19 samples (13 with items)``."""
        return number_of(self.samples, "sample") + self.samples_note

    @property
    def of_models(self) -> str:
        """``70 models (59 with items)``."""
        return number_of(self.models, "model") + self.models_note

    @property
    def samples_note(self) -> str:
        return _with_items(self.asked_samples, self.samples)

    @property
    def models_note(self) -> str:
        return _with_items(self.asked_models, self.models)

    @property
    def in_words(self) -> str:
        """``36 samples, 4 models, 471 labels by 3 people``, without what there is none of."""
        counted = ((self.judges, "judge"), (self.judgments, "judgment"), (self.labels, "label"))
        models = [self.of_models] if self.models else []
        parts = [self.of_samples, *models, *(number_of(n, noun) for n, noun in counted if n)]
        people = f" by {number_of(self.annotators, 'person', 'people')}" if self.labels else ""
        return ", ".join(parts) + people

    @property
    def in_short(self) -> str:
        """``36 samples, 4 models, 471 labels``."""
        some = [
            words for n, words in ((self.models, self.of_models), (self.judges, number_of(self.judges, "judge"))) if n
        ]
        return ", ".join([self.of_samples, *some, number_of(self.labels, "label")])


def _with_items(n: int, every: int) -> str:
    """Said where some have items and others do not: no board counts the others."""
    return f" ({whole(n)} with items)" if 0 < n < every else ""


def newest_visible(viewer: Viewer) -> list[Benchmark]:
    """The newest version of every benchmark that the viewer may see, by title."""
    newest: dict[str, Benchmark] = {}
    for benchmark in Benchmark.objects.visible_to(viewer).select_related("anchor").order_by("pk"):
        newest[benchmark.slug] = benchmark
    return sorted(newest.values(), key=lambda benchmark: (benchmark.title.casefold(), benchmark.pk))


def versions_of(benchmark: Benchmark, viewer: Viewer) -> list[Benchmark]:
    """Every version that the viewer may see, newest first."""
    return list(Benchmark.objects.visible_to(viewer).filter(slug=benchmark.slug).order_by("-pk"))


def to_compare(benchmark: Benchmark, viewer: Viewer) -> list[tuple[Benchmark, bool]]:
    """Benchmarks to compare rankings with: the other versions of this one, and the newest version of all others. Each
    with whether the viewer is staff to it.
    """
    versions = [other for other in versions_of(benchmark, viewer) if other.pk != benchmark.pk]
    others = [other for other in newest_visible(viewer) if other.slug != benchmark.slug]
    return [(one, allowed(viewer, "read-hidden", of=one)) for one in [*versions, *others][:MOST_COMPARED]]


def correlated(scope: Scope, viewer: Viewer) -> CorrelationBoard:
    """The benchmark's rankings compared with each other and with those of other benchmarks that the viewer may see."""
    others = to_compare(scope.benchmark, viewer)
    return correlations(scope, [usual_scope(benchmark, staff=staff) for benchmark, staff in others])


def languages_beside(scope: Scope, viewer: Viewer) -> list[JSON]:
    """The rows of ``languages``, each with its two benchmarks and languages; empty for kinds without keys."""
    if not scope.kind.keyed:
        return []
    return [
        {
            "a_benchmark": str(comparison.a.benchmark),
            "a_language": comparison.a.language,
            "b_benchmark": str(comparison.b.benchmark),
            "b_language": comparison.b.language,
            "measure": comparison.measure,
        }
        | row.as_json()
        for comparison in languages(scope, to_compare(scope.benchmark, viewer))
        for row in comparison.rows
    ]


@guard.working()
def benchmark_counts(
    benchmarks: Sequence[Benchmark], viewer: Viewer, *, names: Container[str] = COUNTS
) -> list[BenchmarkCounts]:
    """Benchmarks with those of their counts that are asked for by name, as far as this viewer may see them, in a fixed
    number of queries.
    """
    staff = all(allowed(viewer, "read-hidden", of=benchmark) for benchmark in benchmarks)
    untold = untold_runs(staff=staff)
    ids = [benchmark.pk for benchmark in benchmarks]
    samples = Sample.objects.filter(status=Sample.Status.APPROVED, benchmark__in=ids)
    answers = answers_shown(staff=staff).filter(sample__benchmark__in=ids)
    labels = Label.objects.filter(campaign__benchmark__in=ids, excluded=False)
    ok = Judgment.Status.OK
    with_verdict = Exists(Judgment.objects.filter(run=OuterRef("pk"), status=ok))
    runs = Run.objects.filter(with_verdict, benchmark__in=ids).exclude(pk__in=untold)

    in_items = answers.filter(Exists(ItemResponse.objects.filter(response=OuterRef("pk"))))

    def models(of: QuerySet[Response]) -> dict[int, int]:
        if len(ids) == 1:  # one answer of each model is enough
            return {ids[0]: models_with(of).count()}
        return _by(of, "sample__benchmark", Count("model", distinct=True))

    def judgments() -> dict[int, int]:
        # Failed ones are few, and at both ends of an index.
        ends = [Judgment.objects.filter(run__benchmark__in=ids, **{f"status__{end}": ok}) for end in ("lt", "gt")]
        as_calls = [*untold, *uncounted_runs(staff=staff)]  # of these every call counts, if without a verdict, too
        failed = [_by(rows.exclude(run__in=as_calls), "run__benchmark", Count("pk")) for rows in ends]
        stored = {pk: sum(n for run, n in arrays.rows_per_run(Judgment, pk).items() if run not in untold) for pk in ids}
        return {pk: n - sum(end.get(pk, 0) for end in failed) for pk, n in stored.items()}

    counts: dict[str, Callable[[], dict[int, int]]] = {
        "samples": lambda: _by(samples, "benchmark", Count("pk")),
        "asked_samples": lambda: _by(
            samples.filter(Exists(Item.objects.filter(sample=OuterRef("pk")))), "benchmark", Count("pk")
        ),
        "models": lambda: models(answers),
        "asked_models": lambda: models(in_items),
        "labels": lambda: _by(labels, "campaign__benchmark", Count("pk")),
        "annotators": lambda: _by(labels, "campaign__benchmark", Count("annotator", distinct=True)),
        "judges": lambda: _by(runs.filter(judge__baseline=""), "benchmark", Count("judge", distinct=True)),
        "baselines": lambda: _by(runs.exclude(judge__baseline=""), "benchmark", Count("judge", distinct=True)),
        "judgments": judgments,
    }
    found = {name: count() for name, count in counts.items() if name in names}
    return [
        BenchmarkCounts(
            benchmark, benchmark.slug, **{name: numbers.get(benchmark.pk, 0) for name, numbers in found.items()}
        )
        for benchmark in benchmarks
    ]


def _by(rows: QuerySet[Any], key: str, count: Count) -> dict[int, int]:
    return dict(rows.order_by().values_list(key).annotate(n=count))


# ---- who may see what ----


def sees_labels(viewer: Viewer) -> bool:
    """Whether the viewer may see single labels, and those of running campaigns."""
    return allowed(viewer, "read-labels")


def held_items(benchmark: Benchmark) -> QuerySet[CampaignItem]:
    """Items of campaigns that have not ended: their votes would influence those who still label them."""
    return CampaignItem.objects.filter(campaign__benchmark=benchmark, campaign__state__in=Campaign.GOING)


def is_held(item: Item) -> bool:
    return CampaignItem.objects.filter(item=item, campaign__state__in=Campaign.GOING).exists()


def sealed_items(benchmark: Benchmark, viewer: Viewer) -> set[int]:
    """Items whose single verdicts this viewer may not read, whatever was held: those of hidden splits, and those that
    people still label blind; empty for staff.
    """
    if allowed(viewer, "read-hidden", of=benchmark):
        return set()
    items = Item.objects.filter(sample__benchmark=benchmark)
    of_hidden = items.filter(sample__split__in=benchmark.hidden_splits).values_list("pk", flat=True)
    blind = items.filter(blind=True).values_list("pk", flat=True)
    return {*(of_hidden if benchmark.hidden_splits else ()), *blind}


# ---- the votes behind a number ----


@dataclass(frozen=True, eq=False, kw_only=True)
class VoteTable(Board[Any]):
    """``table``: one row per item of a model, with the columns ``model, other, item, level, sample`` and the number of
    ``win``, ``tie`` and ``loss``; ``models``: all models with votes, by name. Of everybody's verdicts on the item, the
    model named first: how many people gave ``first``, ``even`` and ``second``, their majority ``people``, one column
    for each of ``judges`` (see ``UNREADABLE``), how many of them ``differ`` from people, and whether the order
    ``mattered`` to one.
    """

    table: pd.DataFrame
    models: list[str]
    judges: list[Run]


def vote_table(scope: Scope, model: str) -> VoteTable:
    """The same outcomes that the board of models counts, item by item."""
    scope = of_one_source(scope)
    items = votes.pairs(scope)
    outcomes = votes.outcomes(scope)
    frame = votes.join_items(items, votes.with_failures(outcomes, scope.failures))
    of_anchor = (frame["a"] == scope.anchor) | (frame["b"] == scope.anchor)
    anchor = scope.anchor if of_anchor.any() else ""
    frame = frame[of_anchor] if anchor else frame
    used = np.union1d(*(frame[side].cat.codes.unique() for side in ("a", "b")))
    names = sorted(frame["a"].cat.categories[used], key=str.casefold)
    frame = frame[(frame["a"] == model) | (frame["b"] == model)]
    sides = [votes.sided(frame, anchor)]
    if anchor:
        # The anchor has no numbers of its own, but its pairs can be read.
        turned = sides[0].rename(columns={"model": "other", "other": "model"})
        sides.append(turned.assign(outcome=2 - turned["outcome"]))
    rows = pd.concat(sides, ignore_index=True)
    rows = rows[rows["model"] == model]
    rows = rows.assign(**{name: rows["outcome"] == code for code, name in enumerate(votes.OUTCOMES)})
    rows = rows.assign(**{name: rows[name].astype(str) for name in ("model", "other")})
    table = rows.groupby(["model", "other", "item"], as_index=False)[list(votes.OUTCOMES)].sum()
    facts = frame.drop_duplicates("item").set_index("item")[["sample", "level"]]
    table = table.join(facts, on="item")
    of_model = frame.drop_duplicates("item").set_index("item")
    everybody, judges = _everybody(scope, of_model["b"].astype(str) == model)
    table = table.join(everybody, on="item")
    table = _without_people(table, table["sample"].isin(held_out_in(scope.benchmark)))
    return VoteTable(runs=tuple(run.pk for run in outcomes.runs), table=table, models=names, judges=judges)


SHOWN = 4  # judges beside people
UNREADABLE = "unreadable"
TURNED = {"first": "second", "second": "first"}
SIDES = ("first", "even", "second")


def _everybody(scope: Scope, turned: "pd.Series[bool]") -> tuple[pd.DataFrame, list[Run]]:
    """What people and judges said of each item, as ``VoteTable`` has it; ``turned``: by item, whether the model that is
    named first is its second one.
    """
    scope = replace(scope, source=HUMANS, run=None)

    def as_named(choices: "pd.Series[str]") -> "pd.Series[str]":
        choices = choices[choices.index.isin(turned.index)]
        return choices.where(~turned.reindex(choices.index), choices.map(lambda choice: TURNED.get(choice, choice)))

    labels = votes.labels_on(scope, turned.index)
    rows = pd.DataFrame(index=turned.index)
    given = as_named(labels.set_index("item")["choice"]).replace({"tie": "even", "undecided": "even"})
    for side in SIDES:
        rows[side] = (given == side).groupby(level=0).sum().reindex(rows.index, fill_value=0)
    rows["people"] = _most(as_named(majority(labels=labels, rule=scope.rule)["choice"]), rows) if len(labels) else None
    groups = [runs for runs in votes.judge_groups(scope) if not runs[-1].judge.is_baseline]
    found: list[tuple[Run, pd.Series[str], pd.Series[bool]]] = []
    for runs in groups:
        outcomes = votes.of_runs(scope, runs)
        once = outcomes.frame[outcomes.frame["repeat"] == 0].set_index("item")["choice"].astype(str)
        failed = [item for item in outcomes.failed["item"].unique() if item not in once.index]
        choices = as_named(pd.concat([once, pd.Series(UNREADABLE, index=failed, dtype=object)]))
        orders = votes.in_orders(scope, runs).drop_duplicates("item").set_index("item")
        if len(choices):
            found.append((runs[-1], choices, orders[GIVEN] != orders[SWAPPED]))
    found.sort(key=lambda judge: -len(judge[1]))
    differ, mattered = pd.Series(0, index=rows.index), pd.Series(data=False, index=rows.index)
    decided = rows["people"].isin(("first", "second", "tie"))
    for run, choices, changed in found[:SHOWN]:
        own = rows[f"judge {run.pk}"] = choices.reindex(rows.index)
        told = decided & own.notna() & (own != UNREADABLE)
        differ += told & (own.replace("undecided", "tie") != rows["people"])
        mattered |= changed.reindex(rows.index, fill_value=False)
    return rows.assign(differ=differ, mattered=mattered), [run for run, *_ in found[:SHOWN]]


def _most(verdicts: "pd.Series[str]", given: pd.DataFrame) -> "pd.Series[str]":
    """What most people gave: a side or a tie, or that they have no majority, which boards count as a tie."""
    given = given.reindex(verdicts.index)
    split = without_majority(verdict=verdicts, **{side: given[side] for side in SIDES})
    return verdicts.replace("undecided", "tie").mask(split, votes.SPLIT)


@dataclass(frozen=True, slots=True)
class VoteList:
    """Items of one model: those shown, and how many are held back."""

    table: pd.DataFrame
    held: int  # by running campaigns
    sealed: int  # in hidden splits
    wins: int
    ties: int
    losses: int
    items: int
    others: list[str]
    due: date | None  # when the last of these campaigns is to be done, if that is known
    parts: Mapping[str, int]  # how many rows are in each of ``ONLY``


ONLY: dict[str, Callable[[pd.DataFrame], "pd.Series[bool]"]] = {
    "differ": lambda table: table["differ"] > 0,
    "split": lambda table: table["people"] == votes.SPLIT,
    "order": lambda table: table["mattered"],
}


def votes_of(
    board: VoteTable,
    scope: Scope,
    viewer: Viewer,
    *,
    other: str = "",
    outcome: str = "",
    only: str = "",
    words: str = "",
) -> VoteList:
    """The rows of ``vote_table`` by opponent, outcome, words of the instruction and one of ``ONLY``, without those of
    running campaigns unless the viewer may see their labels. Samples on which judges differ most from people come
    first.
    """
    table = board.table
    others = sorted(table["other"].unique())
    if other:
        table = table[table["other"] == other]
    sealed = table["item"].isin(sealed_items(scope.benchmark, viewer))
    table, held_count, due = table[~sealed], 0, None
    if scope.by_people and not sees_labels(viewer):
        holding = dict(held_items(scope.benchmark).values_list("item_id", "campaign__due"))
        is_held_item = table["item"].isin(holding)
        ends = [holding[item] for item in table["item"][is_held_item]]
        due = max((end for end in ends if end), default=None) if all(ends) else None
        held_count, table = int(is_held_item.sum()), table[~is_held_item]
    elif not sees_labels(viewer):  # a judge's verdicts can be read there, people's not yet
        holding = dict.fromkeys(held_items(scope.benchmark).values_list("item_id", flat=True))
        table = _without_people(table, table["item"].isin(holding))
    if words:
        said = Sample.objects.filter(pk__in=table["sample"].unique().tolist(), instruction__icontains=words)
        table = table[table["sample"].isin(said.values_list("pk", flat=True))]
    wins, ties, losses = (int((table[name] > 0).sum()) for name in votes.OUTCOMES)
    items, parts = len(table), {name: int(which(table).sum()) for name, which in ONLY.items()}
    if only:
        table = table[ONLY[only](table)]
    if outcome:
        table = table[table[outcome] > 0]
    worst = table.groupby("sample")["differ"].transform("max")
    table = table.assign(worst=-worst).sort_values(["worst", "sample", "item"], kind="stable")
    return VoteList(table, held_count, int(sealed.sum()), wins, ties, losses, items, others, due, parts)


def _without_people(table: pd.DataFrame, rows: "pd.Series[bool]") -> pd.DataFrame:
    """The table without what people said on these rows, and how judges compare with it."""
    unknown = {"people": None, "differ": 0, **dict.fromkeys(SIDES, 0)}
    return table.assign(**{name: table[name].mask(rows, value) for name, value in unknown.items()})


def has_answered(benchmark: Benchmark, model: str, viewer: Viewer) -> bool:
    """Whether the model has answers that boards show this viewer: below staff, no submissions that wait for release."""
    return (
        answers_shown(staff=allowed(viewer, "read-hidden", of=benchmark))
        .filter(sample__benchmark=benchmark, model__name=model)
        .exists()
    )


def runs_of(ids: Iterable[int]) -> dict[int, Run]:
    """With their judges, in the order of their numbers."""
    return Run.objects.filter(pk__in=ids).select_related("judge").order_by("pk").in_bulk()


def samples_by_id(ids: Iterable[int]) -> dict[int, Sample]:
    return Sample.objects.select_related("capability").prefetch_related("images").in_bulk(list(ids))


def texts_of(samples: Iterable[int], model: str, viewer: Viewer) -> dict[int, str]:
    """A model's first answer to each sample, as far as the viewer may read them."""
    rows = Response.objects.seen_by(viewer).filter(sample__in=list(samples), model__name=model)
    return dict(rows.order_by("sample", "-variant").values_list("sample", "text"))


def items_with_samples(ids: Iterable[int]) -> dict[int, Item]:
    return Item.objects.select_related("sample__capability").prefetch_related("sample__images").in_bulk(list(ids))


def model_names(ids: Iterable[int]) -> dict[int, list[str]]:
    """The models of pairs in canonical order, with the variant if there is one."""
    places = ItemResponse.objects.filter(item__in=list(ids)).order_by("item", "position")
    names: dict[int, list[str]] = defaultdict(list)
    for item, model, variant in places.values_list("item", "response__model__name", "response__variant"):
        names[item].append(f"{model} ({variant})" if variant else model)
    return names


def names_of(item: Item, viewer: Viewer) -> list[str]:
    """The same of one item, as far as this viewer is told them: answers that people label blind have letters alone."""
    names = model_names([item.pk])[item.pk]
    if not item.hides_authors_from(viewer):
        return names
    return [f"Answer {letter}" for letter in ascii_uppercase[: len(names)]]


# ---- two voters side by side ----

MAJORITY = "majority"


class NoSuchVoter(LookupError):
    """This voter gave no verdict here, or the viewer may not see it."""


@dataclass(frozen=True, eq=False, slots=True)
class Voter:
    """The majority, an annotator or a judge's run, with one verdict per item: index ``item``, values ``choice``; of
    other kinds than pairs in words, as ``in_words`` writes them.
    """

    key: str
    name: str
    choices: "pd.Series[str]"


def voter(scope: Scope, key: str, viewer: Viewer) -> Voter:
    """``majority``, ``run-3`` or an annotator's pseudonym. Raises NoSuchVoter."""
    pairwise = scope.kind.pairwise
    items = scores.items_asked(scope)
    if key.startswith("run-") and (number := whole_number(key.removeprefix("run-"))) is not None:
        run = votes.judged_runs(scope).filter(pk=number).first()
        if run is None:
            raise NoSuchVoter(key)
        group = list(votes.judged_runs(scope).filter(**run.alike))
        frame = votes.of_runs(scope, group).frame if pairwise else scores.of_runs(scope, group)
        name, frame = run.judge.titled, frame[frame["repeat"] == 0]
    elif key == MAJORITY:
        # Below staff there may be none that the view counts: the page then says that nothing is in common.
        name = "people, mean" if scope.kind.by_mean else "people, majority"
        frame = votes.labels_of(scope)[["item", "choice"]] if pairwise else scores.mean_by_item(scores.labels_of(scope))
        if pairwise and len(frame):
            frame = votes.shown_majority(majority(labels=frame, rule=scope.rule)).reset_index()
        if not sees_labels(viewer):
            held_ids = set(held_items(scope.benchmark).values_list("item_id", flat=True))
            frame = frame[~frame["item"].isin(held_ids)]
    else:
        person = Annotator.objects.filter(pseudonym=key).first() if sees_labels(viewer) else None
        if person is None:
            raise NoSuchVoter(key)
        labels = votes.labels_of(scope) if pairwise else scores.labels_of(scope)
        name = person.shown(named=allowed(viewer, "read-names"))
        frame = labels[labels["annotator"] == person.pk]
    frame = frame[frame["item"].isin(items.index) & ~frame["item"].isin(sealed_items(scope.benchmark, viewer))]
    if not pairwise:
        numbers = scope.kind.numbers(scope, frame, items)
        frame = numbers[["item"]].assign(choice=numbers["value"].map(in_words))
    return Voter(key, name, frame.set_index("item")["choice"])


def in_words(verdict: Any) -> str:
    """``4.33``; ``CAB`` of a ranking; words as they are."""
    if isinstance(verdict, tuple):
        return scores.as_letters(verdict)
    return verdict if isinstance(verdict, str) else two(verdict)


def side_by_side(first: Voter, second: Voter) -> pd.DataFrame:
    """The items that both gave a verdict on: index ``item``, columns ``first``, ``second``, ``same``; undecided, and no
    majority, count as the tie of pairs.
    """
    paired = pd.concat([first.choices, second.choices], axis=1, join="inner", keys=["first", "second"])
    ties = dict.fromkeys(("undecided", votes.SPLIT), "tie")
    first_said, second_said = (paired[side].astype(object).replace(ties) for side in ("first", "second"))
    return paired.assign(same=first_said == second_said)


MATCHES: dict[str, Callable[[pd.DataFrame], "pd.Series[bool]"]] = {
    "": lambda table: table["same"].notna(),
    "same": lambda table: table["same"],
    "different": lambda table: ~table["same"],
    # MMBench, 4.3, Cases I and II: one of the two reads no option, or each another one.
    "none": lambda table: ~table["same"] & table[["first", "second"]].eq(NONE_OF_THEM).any(axis=1),
    "options": lambda table: ~table["same"] & table[["first", "second"]].ne(NONE_OF_THEM).all(axis=1),
}
