"""Publishing boards that depend on hidden inputs, so that no two states of them reveal those of one sample (ADR 26).

A cell is one number of a model, over all samples or one level. For each sample it depends on something hidden (a key, a
weight, a verdict) and on the reading of the answer. If two cells differ in that for a single sample, anybody who knows
the answers can work out what is hidden there. So no combination of a model's cells, in this edition and all earlier
ones of the benchmark, may be about fewer than MIN_SAMPLES samples (``stats.disclosure``); corrections wait until that
many have accumulated. Two models whose answers differ in fewer are not published both. And a number that would settle
what it is made of is given as an interval.
"""

import json
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any, cast

import numpy as np
import pandas as pd
from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from accounts import audit
from accounts.models import User
from annotations.models import Campaign
from bank import exposure
from bank.announcements import announce
from bank.errors import BadInput
from bank.models import Benchmark, Capability, EvaluatedModel, Sample, Submission
from bank.models.items import ItemResponse
from bank.submissions import totals
from bank.submissions.addressed import answers_to_judges
from judging.models import Run
from leaderboard import votes
from leaderboard.boards.base import CODED as CODED_WORDS
from leaderboard.boards.base import (
    ModelRow,
    ModelsBoard,
    as_interval,
    as_stored,
    by_rank,
    whole_as_text,
    whole_from_text,
)
from leaderboard.boards.by_kind import makers_of
from leaderboard.boards.judges import board as judge_board
from leaderboard.boards.judges.board import JudgeRow, JudgesBoard
from leaderboard.boards.models import keyed, pairs, scores
from leaderboard.boards.models.keyed import fact_hash
from leaderboard.boards.models.pairs import PairRow, PairsBoard
from leaderboard.boards.models.scores import ScoresBoard
from leaderboard.boards.seen import models
from leaderboard.editions.in_steps import Told, best_alone, is_told, strengths, told_to_senders, unreleased
from leaderboard.editions.in_steps import rows_of as stepped_rows
from leaderboard.hidden import (
    closed_of,
    hidden_split,
    of_one_source,
    open_samples,
    uncounted_items,
)
from leaderboard.kinds import KINDS, Kind
from leaderboard.metrics import READABLE
from leaderboard.models import Edition, RecipeEdition
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import WRONG, BadScope, Scope
from leaderboard.sight import Sight
from leaderboard.view import scope_of
from stats.disclosure import CODED, MIN_SAMPLES, SETTLED, Cell, changed_samples, differ_in_few, reveals_few, settles
from stats.figures import listed, number_of
from stats.ranks import tiers_of

Cells = dict[str, dict[str, Cell]]  # what the numbers of an edition are made of, by model and number
WHOLE = ""  # the only number of a board by components, marks, pairs or scores
TOLD = 5  # reasons listed at once
KEYED = "keyed"  # stands for all boards of answers compared with keys: their facts are the same
BEHIND = ":"  # before what was read of the answer, in a fact that holds more than that
PEOPLES = "people"  # stands for people against people on a board of judges
MODELS, JUDGES = Edition.What.MODELS, Edition.What.JUDGES


class Refused(BadInput):
    """An edition that would reveal too much, or nothing new; the message says why."""


@dataclass(frozen=True, slots=True)
class Published:
    """What an edition told: ``family`` and ``inputs`` say with what its numbers can be compared."""

    name: str
    family: str
    inputs: int
    cells: Cells


@dataclass(frozen=True, kw_only=True)
class Draft:
    """The next edition as it would be: what it tells, and what it leaves out and why. ``problem`` says why it must not
    be published; ``changed`` by model how many samples differ from the last edition; ``in_steps`` submitted models that
    it tells by the Ladder.
    """

    scope: Scope
    what: str
    number: int
    board: ModelsBoard | JudgesBoard | None = None
    cells: Cells = field(default_factory=dict)
    text: str = ""
    problem: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    without_levels: list[str] = field(default_factory=list)
    changed: dict[str, int] = field(default_factory=dict)
    in_steps: dict[str, Told] = field(default_factory=dict)
    last: Edition | None = None

    @property
    def noun(self) -> str:
        return "judge" if self.what == JUDGES else "model"

    @property
    def unchanged(self) -> bool:
        return self.last is not None and self.last.board == self.text

    @property
    def differs_in_few(self) -> bool:
        """Whether it must not be published beside the last one."""
        return bool(self.board is not None and self.problem and not self.unchanged)

    def in_words(self) -> list[tuple[str, str]]:
        """What a curator should know before it is published: a term, and what is said of it."""
        rows = [("It tells", self.numbers_in_words())]
        if self.least:
            words = f"{number_of(self.least, 'sample')} behind a number; {MIN_SAMPLES} are needed"
            rows.append(("Smallest group", words))
        if self.last is None:
            rows.append(("Compared with the last", "this would be the first edition"))
        elif self.board is not None:
            rows.append((f"Compared with edition {self.last.number}", self.changes_in_words()))
        if self.in_steps:
            rows.append(("In steps", self.steps_in_words()))
        if names := self.as_intervals():
            rows.append(("As intervals", f"{listed(names)}: a share would tell nearly every sample behind it"))
        if levels := self.levels_kept_out():
            rows.append(("Levels kept out", levels))
        rows += [(f"Left out: {name}", reason) for name, reason in self.left_out.items()]
        if speaking := self.addressed_in_words():
            rows.append(("Answers to the judge", speaking))
        public = self.scope.benchmark.visibility == Benchmark.Visibility.PUBLIC
        rows.append(("Who sees it", "everybody" if public else "staff, and everybody once the benchmark is published"))
        rows.append(("Afterwards", "it cannot be taken back: it stays beside all other editions"))
        return rows

    @property
    def least(self) -> int:
        """The fewest samples behind a number; 0 where it tells none."""
        return min((len(cell) for numbers in self.cells.values() for cell in numbers.values() if cell), default=0)

    def numbers_in_words(self) -> str:
        """What it tells of how many models or judges."""
        if self.board is None or not self.board.rows:
            return "nothing"
        columns: dict[str, None] = {}
        for row in self.board.rows:
            columns |= dict.fromkeys(
                column.name.replace("_", " ")
                for column in fields(row)
                if isinstance(value := getattr(row, column.name), Number) and value.ends != UNKNOWN.ends
            )
        told = number_of(len({*self.cells, *self.in_steps}), self.noun)
        return f"{listed(list(columns)) or 'no numbers'} of {told}, rounded"

    def steps_in_words(self) -> str:
        """Of which submitted models it tells a number, and in which steps."""
        told = next(iter(self.in_steps.values()))
        best = sorted(name for name, one in self.in_steps.items() if one.share is not None)
        return (
            f"{number_of(len(self.in_steps), 'submitted model')} that {'is' if len(self.in_steps) == 1 else 'are'} not "
            f"released, in steps of {told.step} of {told.n} samples; a number for the best of each sender alone: "
            f"{listed(best) or 'of none'}"
        )

    def addressed_in_words(self) -> str:
        """Of which submitted models how many answers speak of the judge, criteria or votes; "" where none does."""
        if self.what == JUDGES:
            return ""
        told = []
        for submission in Submission.objects.filter(
            benchmark=self.scope.benchmark, name__in={*self.cells, *self.in_steps}, model__isnull=False
        ).order_by("name"):
            speaking, answers = answers_to_judges(submission)
            if speaking:
                told.append(f"{submission.name}: {speaking:,} of {number_of(answers, 'answer')}")
        return f"{'; '.join(told)} speak of the judge, criteria or votes" if told else ""

    def changes_in_words(self) -> str:
        """Who enters, and how many samples changed since the last edition."""
        before = models_in_steps(self.last) if self.last else set()
        new = [name for name in self.cells if name not in self.changed]
        new += [name for name in self.in_steps if name not in before]
        words = [f"{listed(new)} {'enters' if len(new) == 1 else 'enter'}"] if new else []
        changed = [n for n in self.changed.values() if n]
        if changed:
            ends = f"{min(changed)} to {max(changed)}" if min(changed) < max(changed) else f"{max(changed)}"
            words.append(f"{ends} samples changed in {number_of(len(changed), self.noun)}")
        return "; ".join(words) or "no sample changed"

    def _models(self) -> Sequence[ModelRow]:
        return self.board.rows if isinstance(self.board, ModelsBoard) else ()

    def as_intervals(self) -> list[str]:
        """The models of which some numbers are told as intervals, with these numbers."""
        names = []
        for row in self._models():
            columns = [column.name for column in fields(row) if _is_coded(getattr(row, column.name))]
            levels = [
                name
                for name, level in row.levels.items()
                if any(_is_coded(getattr(level, column.name)) for column in fields(level))
            ]
            if columns or levels:
                names.append(f"{row.model} ({', '.join([*columns, *levels])})")
        return names

    def levels_kept_out(self) -> str:
        """Which levels it does not tell, and why; "" where it tells all."""
        if self.what == JUDGES:
            return "all: an edition of judges has none"
        if not self.scope.kind.hidden and self.cells and self.scope.benchmark.capabilities.exists():
            return f"of {listed(list(self.cells))} all: they have hidden verdicts"
        if not self.scope.kind.keyed or hidden_split(self.scope) is not None:
            return ""
        paths = set(self.scope.benchmark.capabilities.values_list("path", flat=True))
        kept_out = {row.model: paths - set(row.levels) for row in self._models()}
        words = [
            f"{path} (of {number_of(n, 'model')})"
            for path in sorted(paths)
            if (n := sum(path in missing for missing in kept_out.values()))
        ]
        reason = f"they, or what is left beside them, would be about fewer than {MIN_SAMPLES} samples or settle them"
        few = f"; of {listed(self.without_levels)} all, since another model differs in few samples there"
        return f"{listed(words)}: {reason}{few if self.without_levels else ''}" if words else ""


def _is_coded(value: object) -> bool:
    return isinstance(value, Number) and value.value is None and value.low is not None


def runs_to_read(scope: Scope) -> list[Run]:
    """The finished runs that an edition may use, newest first: those that held hidden inputs from the day after."""
    return list(_readable(scope).order_by("-pk"))


def _readable(scope: Scope) -> QuerySet[Run]:
    return votes.judged_runs(replace(scope, staff=False, edition=True)).filter(state=Run.State.FINISHED)


def usual_run(scope: Scope) -> Run | None:
    """The run of the last edition; for the first edition the finished run over most items, if answers need reading."""
    last = _earlier(scope, MODELS).last()
    if last is not None:
        return last.run
    people = (
        not scope.kind.keyed
        and scope.kind.labels().filter(campaign__benchmark=scope.benchmark, excluded=False).exists()
    )
    runs = _readable(scope) if scope.kind.keyed else _readable(scope).filter(judge__baseline="")
    return None if people else votes.with_most_items(runs)


def publish(
    *,
    benchmark: Benchmark,
    kind: str | Kind,
    split: str = "",
    run: Run | None = None,
    judges: bool = False,
    by: User | None = None,
    command: str = "",
) -> Edition:
    """Publish the board of models, or of ``judges``, as it is now. ``run`` is the judge's run whose readings, points or
    verdicts count (of pairs, scores and points with those of the same judge, protocol and settings); without one no
    readings count, and people's verdicts. Raises Refused.
    """
    with transaction.atomic():
        Benchmark.objects.select_for_update().get(pk=benchmark.pk)
        made = draft(benchmark=benchmark, kind=kind, split=split, run=run, judges=judges)
        if made.problem:
            raise Refused(made.problem)
        edition = Edition.objects.create(
            what=made.what,
            benchmark=made.scope.benchmark,
            kind=made.scope.kind.name,
            split=hidden_split(made.scope) or "",
            number=made.number,
            run=run,
            board=made.text,
            cells=cast(Any, made.cells),
            inputs=_inputs_of(made.scope),
            by=by,
        )
        of = "judges, " if judges else ""
        _note_totals(made, f"edition {edition.number} of {kind}")
        subject = f"{benchmark}, {of}{kind}{', ' + split if split else ''}, edition {edition.number}"
        audit.record("edition-published", by=by, command=command, about=subject)
        announce(
            "edition.published",
            key=str(edition.pk),
            number=edition.pk,
            state="published",
            page=reverse("leaderboard:index"),
            benchmark=benchmark,
            board="judges" if judges else "models",
            kind=str(kind),
        )
        return edition


def models_in_steps(edition: Edition) -> set[str]:
    """The submitted models of which an edition told by the Ladder alone."""
    if edition.what == JUDGES or KINDS[edition.kind].keyed:
        return set()
    main = KINDS[edition.kind].shape.main.name
    rows = json.loads(edition.board)["rows"]
    return {row["model"] for row in rows if is_told(row[main].get("method", ""), row[main].get("reason", ""))}


def _note_totals(made: Draft, edition: str) -> None:
    """Note in the ledger what is told exactly of submitted models."""
    if made.what == JUDGES:
        return
    submissions = Submission.objects.filter(benchmark=made.scope.benchmark, model__isnull=False, name__in=made.cells)
    for submission in submissions:
        for number, cell in made.cells[submission.name].items():
            of = f"{edition}{number and ', '}{number}"
            totals.note(submission=submission, made_of=_values(cell), of=of, samples=len(cell))


def draft(
    *, benchmark: Benchmark, kind: str | Kind, split: str = "", run: Run | None = None, judges: bool = False
) -> Draft:
    """The next edition as it would be now; nothing is stored. Raises Refused for a view that cannot have one."""
    try:
        scope = scope_of(benchmark=benchmark, kind=kind, split=split, run=run.pk if run and not judges else None)
        scope = replace(scope, edition=True)
        scope = scope if judges else of_one_source(scope)
        if not Sight(scope).sealed or (judges and not scope.kind.hidden):
            raise Refused("This board depends on nothing hidden: everybody sees it live.")
        if run is not None and run not in runs_to_read(scope):
            raise Refused(
                f"Run {run.pk} is not a finished run whose verdicts this board could count. One that held hidden "
                "inputs counts from the day after its end.",
                "run",
            )
        return _draft_of_judges(scope) if judges else _draft_of_models(scope)
    except BadScope as error:
        raise Refused(str(error)) from None


def _draft_of_models(scope: Scope) -> Draft:
    earlier = published_before(scope)
    every, waiting = scope, [] if scope.kind.keyed else [each.name for each in unreleased(scope)]
    scope, left_out, without_levels = _without_few(replace(scope, without=tuple(waiting)), earlier)
    stepped, told, few = _in_steps(every, waiting) if waiting else ([], {}, [])
    left_out |= dict.fromkeys(few, FEW_VERDICTS)
    board, cells = _board_and_cells(scope, stepped)
    last = _earlier(scope, MODELS).last()
    made = Draft(
        scope=scope,
        what=MODELS,
        number=(last.number if last else 0) + 1,
        left_out=left_out,
        without_levels=without_levels,
        in_steps=told,
        last=last,
    )
    if not board.rows or not (cells or stepped):
        nothing = f"No model has answers to {MIN_SAMPLES} samples or more that could be counted."
        if left_out:
            nothing += f" {_first([f'{name}: {reason}.' for name, reason in left_out.items()])}"
        if not _inputs_of(scope):
            nothing = "These verdicts rest on nothing hidden: everybody sees this board live. Count those of a run."
        return replace(made, problem=nothing)
    new = Published("", _family(scope.kind.name), _inputs_of(scope), cells)
    text = json.dumps(as_stored(board))
    made = replace(made, board=board, cells=cells, text=text, changed=_changes(cells, last))
    return _checked(made, new, earlier, binary_samples(scope.benchmark.slug) if scope.kind.keyed else ())


def _checked(made: Draft, new: Published, earlier: Sequence[Published], binary: Collection[str] = ()) -> Draft:
    """With what keeps it from being published, if anything does."""
    problem = reveals(refusals(new, earlier, binary))
    if not problem and made.unchanged:
        problem = f"Nothing has changed since edition {made.number - 1}."
    return replace(made, problem=problem)


def _changes(cells: Mapping[str, Mapping[str, Cell]], last: Edition | None) -> dict[str, int]:
    """By how many samples a number of each row has changed at most, of those that the last edition had."""
    then = last.cells if last else {}
    return {name: max(_changed(numbers, then[name]), default=0) for name, numbers in cells.items() if name in then}


def _changed(now: Mapping[str, Cell], then: Mapping[str, Cell]) -> Iterator[int]:
    return (changed_samples(_values(cell), _values(then[name])) for name, cell in now.items() if name in then)


def _first(told: Sequence[str]) -> str:
    """So many sentences, and how many more there are."""
    return " ".join([*told[:TOLD], *([f"And {len(told) - TOLD} more."] if len(told) > TOLD else [])])


def reveals(reasons: Iterable[str], of: Benchmark | str = "") -> str:
    """The ``reasons`` against an edition; "" without any. ``of``: of which benchmark the samples are."""
    told = list(reasons)
    if not told:
        return ""
    few = f"fewer than {MIN_SAMPLES} samples{of and f' of {of}'}"
    until = f"Wait until {MIN_SAMPLES} changes have accumulated."
    return f"This edition would reveal something about {few}. {_first(told)} {until}"


def _earlier(scope: Scope, what: str) -> QuerySet[Edition]:
    editions = Edition.objects.filter(
        benchmark=scope.benchmark, kind=scope.kind.name, split=hidden_split(scope) or "", what=what
    )
    return editions.order_by("number")


# ---- what was published before ----


def published_before(scope: Scope, what: str = MODELS) -> list[Published]:
    """All editions of the benchmark, of every kind, split and version, and of recipes: one pool, since their samples
    have the same keys. The editions of judges are compared among themselves.
    """
    editions = Edition.objects.filter(benchmark__slug=scope.benchmark.slug, what=what)
    if what == JUDGES:
        editions = editions.filter(kind=scope.kind.name)
    pool = [
        Published(name_of(edition, scope), _family(edition.kind), _inputs_told(edition), edition.cells)
        for edition in editions.select_related("benchmark").order_by("pk")
    ]
    return pool + (published_by_recipes(scope.benchmark.slug) if what == MODELS else [])


def published_by_recipes(slug: str) -> list[Published]:
    """What all recipes' editions told of a benchmark."""
    return [
        Published(
            f"edition {edition.number} of recipe {edition.recipe}",
            KEYED,
            int(exposure.Inputs.ANSWER_KEY),
            edition.cells[slug],
        )
        for edition in RecipeEdition.objects.select_related("recipe").order_by("pk")
        if slug in edition.cells
    ]


def published_of(slug: str) -> list[Published]:
    """What the editions of a benchmark's own boards told, named for a recipe."""
    return [
        Published(
            f"edition {edition.number} of {edition.kind} on {edition.benchmark}",
            _family(edition.kind),
            _inputs_told(edition),
            edition.cells,
        )
        for edition in Edition.objects.filter(benchmark__slug=slug, what=MODELS).select_related("benchmark")
    ]


def name_of(edition: Edition, scope: Scope) -> str:
    kind = "" if edition.kind == scope.kind.name else f" of {edition.kind}"
    split = "" if edition.split == (hidden_split(scope) or "") else f" of split {edition.split or 'none'}"
    version = "" if edition.benchmark_id == scope.benchmark.pk else f" of {edition.benchmark}"
    return f"edition {edition.number}{kind}{split}{version}"


def _family(kind: str) -> str:
    return KEYED if KINDS[kind].keyed else kind


def _inputs_told(edition: Edition) -> int:
    return exposure.inputs_of_all(KINDS[edition.kind].hidden) or edition.inputs


def _inputs_of(scope: Scope) -> int:
    """What the numbers of this view depend on: by its kind, or by what its verdicts held."""
    if scope.kind.hidden:
        return exposure.inputs_of_all(scope.kind.hidden)
    return reduce(or_, _held(scope), 0) & closed_of(scope.benchmark)


def _held(scope: Scope) -> list[int]:
    if scope.by_people:
        return list(Campaign.objects.filter(benchmark=scope.benchmark).values_list("held", flat=True).distinct())
    return list(Run.objects.filter(pk=scope.run or 0).values_list("held", flat=True))


# ---- what numbers are made of ----


def cells_of(scope: Scope) -> Cells:
    """What the numbers of this board, computed for an edition, are made of."""
    if scope.kind.keyed:
        frame, _, levels = keyed.counted_answers(scope)
        by_model = keyed.published_cells(scope, frame, levels=levels)
    else:
        by_model = {
            str(name): {WHOLE: _edition_cell(rows["sample"], rows["value"], rows["answer"])}
            for name, rows in _sample_facts(scope).groupby("model")
        }
    ids = {str(pk): key for pk, key in scope.benchmark.samples.values_list("pk", "key")}

    def by_key(cell: Cell) -> Cell:
        return {ids[sample]: facts for sample, facts in cell.items()}

    return {model: {number: by_key(cell) for number, cell in numbers.items()} for model, numbers in by_model.items()}


def _edition_cell(samples: "pd.Series[int]", values: "pd.Series[str]", answers: "pd.Series[str]") -> Cell:
    return {
        str(sample): f"{fact_hash(value)}{BEHIND}{answer}"
        for sample, value, answer in zip(samples, values, answers, strict=True)
    }


def _sample_facts(scope: Scope) -> pd.DataFrame:
    """What hidden inputs do to the numbers of models, a row per model and sample: ``model, sample``, the ``value``, as
    text, and a hash of the ``answer`` as it was read. Every model of the board has a row, or adds nothing hidden.
    """
    rows = _of_pairs(scope) if scope.kind.pairwise else _of_scores(scope)
    rows = rows.sort_values(["model", "sample", "item"])
    by_sample = rows.groupby(["model", "sample"], observed=True).agg({"value": "\x1e".join, "answer": "\x1e".join})
    facts = by_sample.reset_index().astype({"model": str})
    facts["answer"] = facts["answer"].map({answer: fact_hash(answer) for answer in facts["answer"].unique()})
    if exposure.inputs_of_all(scope.kind.hidden) & exposure.KEYS:
        as_read = _as_read(scope).astype(object)  # where it is empty, too
        known = pd.MultiIndex.from_frame(facts[["model", "sample"]])
        facts["answer"] = as_read.reindex(known).fillna(pd.Series(facts["answer"].to_numpy(), index=known)).to_numpy()
    return facts


def _as_read(scope: Scope) -> "pd.Series[str]":
    """By model and sample, the fact that boards of keyed answers have of the same answer, where its text names one."""
    parts = []
    for kind in KINDS.values():
        if not kind.keyed:
            continue
        frame, _, _ = keyed.counted_answers(replace(scope, kind=kind, run=None, without=()))
        frame = frame[(frame["variant"] == "") & (frame["said"] != "")]
        parts.append(frame[["model", "sample"]].assign(fact=keyed.given(frame)))
    return pd.concat(parts).drop_duplicates(["model", "sample"]).set_index(["model", "sample"])["fact"]


def _of_scores(scope: Scope) -> pd.DataFrame:
    frame, _ = scores.verdicts_on_models(scope)
    frame = frame[frame["model"] != ""]
    if scope.kind.hidden:
        frame = frame[~frame["sample"].isin(open_samples(scope))]
    else:
        frame = frame[frame["item"].isin(_hidden_items(scope))]
    positions = [names.index(model) for model, names in zip(frame["model"], frame["models"], strict=True)]
    return frame.assign(value=scope.kind.made_of(scope, frame), answer=_texts(frame["item"], positions))


def _of_pairs(scope: Scope) -> pd.DataFrame:
    frame = votes.join_items(pairs.items_in(scope), votes.with_failures(votes.outcomes(scope), WRONG))
    frame = frame[frame["item"].isin(_hidden_items(scope))]
    won, lost = {"first": "won", "second": "lost"}, {"first": "lost", "second": "won"}
    sides = []
    for position, (side, other, words) in enumerate((("a", "b", won), ("b", "a", lost))):
        outcome = frame["choice"].astype(str)
        sides.append(
            pd.DataFrame(
                {
                    "model": frame[side].astype(str),
                    "sample": frame["sample"],
                    "item": frame["item"],
                    "value": frame[other].astype(str) + "\x1f" + outcome.map(words).fillna(outcome),
                    "answer": _texts(frame["item"], [position] * len(frame)),
                }
            )
        )
    return pd.concat(sides)


def _texts(items: "pd.Series[int]", positions: Sequence[int]) -> list[str]:
    """A hash of each item's answer in its position."""
    ids = [int(item) for item in items.unique()]
    places = ItemResponse.objects.filter(item__in=ids, position__in=set(positions))
    hashes = {
        (item, at): fact_hash(text) for item, at, text in places.values_list("item", "position", "response__text")
    }
    return [hashes.get(place, "") for place in zip(items, positions, strict=True)]


def _hidden_items(scope: Scope) -> set[int]:
    """Items with a verdict that no live view counts below staff."""
    held = reduce(or_, _held(scope), 0) & closed_of(scope.benchmark)
    return set(uncounted_items(scope.benchmark, held).values_list("pk", flat=True))


# ---- models that are left out ----

NEAR = f"beside those of {{}}, its answers would tell of fewer than {MIN_SAMPLES} samples"
FEW_VERDICTS = f"its numbers would depend on hidden verdicts about fewer than {MIN_SAMPLES} samples"


def _without_few(scope: Scope, earlier: Sequence[Published]) -> tuple[Scope, dict[str, str], list[str]]:
    """The view without models whose numbers would be about few samples, alone or beside those of another model; why
    each is left out; and which models have no levels for the second reason.
    """
    left_out: dict[str, str] = {}
    waiting, cells = scope.without, cells_of(scope)
    while few := [name for name, of in cells.items() if not scope.kind.keyed and len(of[WHOLE]) < MIN_SAMPLES]:
        left_out |= dict.fromkeys(few, FEW_VERDICTS)
        scope = replace(scope, without=(*waiting, *left_out))
        cells = cells_of(scope)
    paths, binary = paths_of(scope.benchmark.slug), binary_samples(scope.benchmark.slug) if scope.kind.keyed else set()
    near = near_models(cells, earlier, paths, binary)
    scope = replace(scope, without=(*scope.without, *near))
    whole = near_in_levels({name: of for name, of in cells.items() if name not in near}, earlier, paths, binary)
    return replace(scope, whole=tuple(whole)), left_out | near, whole


def paths_of(slug: str) -> set[str]:
    """The levels of all versions of a benchmark."""
    return set(Capability.objects.filter(benchmark__slug=slug).values_list("path", flat=True))


def binary_samples(slug: str) -> set[str]:
    """The questions of yes or no, or with two options, in any version of a benchmark, by key."""
    samples = Sample.objects.filter(benchmark__slug=slug).values_list("key", "options")
    return {key for key, options in samples if len(options or ()) in (0, 2)}


def near_models(cells: Cells, earlier: Sequence[Published], paths: set[str], binary: Collection[str]) -> dict[str, str]:
    """Models whose answers differ from another's in few samples, or are the opposite in all but few, with the reason:
    of two, the one that is published stays; of two new ones the one that came to the bank first.
    """

    def wholes(numbers: Mapping[str, Cell]) -> dict[str, list[Cell]]:
        by_measure: dict[str, list[Cell]] = {}
        for name, cell in numbers.items():
            if name not in paths:
                by_measure.setdefault(_measure(name), []).append(cell)
        return by_measure

    return _near(cells, earlier, wholes, binary)


def _measure(number: str) -> str:
    """What a number says of each answer: other than whether it is right only where a recipe has a metric of its own."""
    measure = number.rpartition(", ")[2] if " on " in number else ""
    return "" if measure == "accuracy" else measure


def near_in_levels(cells: Cells, earlier: Sequence[Published], paths: set[str], binary: Collection[str]) -> list[str]:
    """Models that have no levels beside another model: their answers differ in few samples of one of them, or of what
    is left of a level beside those below it.
    """

    def pieces(numbers: Mapping[str, Cell]) -> dict[str, list[Cell]]:
        levels = {path: cell for path, cell in numbers.items() if path in paths}
        if not levels:
            return {}
        parts = {path: [cell] for path, cell in levels.items()}
        for path, cell in [("", next(iter(numbers.values()))), *levels.items()]:
            below = [other for name, other in levels.items() if name.rpartition(" / ")[0] == path]
            inside = {sample for other in below for sample in other}
            if rest := {sample: fact for sample, fact in cell.items() if sample not in inside}:
                parts[f"the rest of {path}"] = [rest]
        return parts

    return list(_near(cells, earlier, pieces, binary))


def _near(cells: Cells, earlier: Sequence[Published], pieces: Any, binary: Collection[str]) -> dict[str, str]:
    published = {model for edition in earlier for model in edition.cells}
    pks = dict(EvaluatedModel.objects.filter(name__in=cells).values_list("name", "pk"))
    order = sorted(cells, key=lambda name: (name not in published, pks.get(name, math.inf), name))
    place = {name: at for at, name in enumerate(order)}
    told: dict[str, list[tuple[str, Cell]]] = {}  # by piece: the model, and what it told
    for edition in earlier:
        for model, numbers in edition.cells.items():
            if _has_answers(edition, numbers):
                _gather(told, model, pieces(numbers))
    new: dict[str, list[tuple[str, Cell]]] = {}
    for model in order:
        _gather(new, model, pieces(cells[model]))
    near_new = np.zeros((len(order), len(order)), bool)
    near_old: dict[str, str] = {}
    for piece, entries in new.items():
        owners = np.array([place[model] for model, _ in entries])
        of_new = [cell for _, cell in entries]
        few = differ_in_few(of_new, of_new, binary=binary)
        np.logical_or.at(near_new, (owners[:, None], owners[None, :]), few)
        old = told.get(piece, [])
        few = differ_in_few(of_new, [cell for _, cell in old], binary=binary)
        for row, column in zip(*np.nonzero(few), strict=True):
            model, other = entries[row][0], old[column][0]
            if model != other and model not in published:
                near_old.setdefault(model, other)
    out: dict[str, str] = {}
    kept: list[int] = []
    for at, model in enumerate(order):
        beside = near_old.get(model) or next((order[other] for other in kept if near_new[at, other]), "")
        if beside and model not in published:
            out[model] = NEAR.format(beside)
        else:
            kept.append(at)
    return out


def _gather(into: dict[str, list[tuple[str, Cell]]], model: str, pieces: Mapping[str, list[Cell]]) -> None:
    """Add what a model told, each once: most editions repeat most of the one before."""
    for piece, cells in pieces.items():
        entries = into.setdefault(piece, [])
        seen = [cell for owner, cell in entries if owner == model]
        for cell in map(_answers, cells):
            if cell not in seen:
                entries.append((model, cell))
                seen.append(cell)


def _has_answers(edition: Published, numbers: Mapping[str, Cell]) -> bool:
    """Whether its facts tell answers apart: others than of keyed answers did not before they held a second part."""
    fact = next((fact for cell in numbers.values() for fact in cell.values()), "")
    return edition.family == KEYED or BEHIND in fact


# ---- what must not be revealed ----


def _values(cell: Cell) -> Cell:
    return {sample: fact.partition(BEHIND)[0] for sample, fact in cell.items()}


def _answers(cell: Cell) -> Cell:
    return {sample: fact.rpartition(BEHIND)[2] for sample, fact in cell.items()}


def _support(cell: Cell) -> Cell:
    return dict.fromkeys(cell, "")


def refusals(new: Published, earlier: Sequence[Published], binary: Collection[str] = ()) -> Iterator[str]:
    """Why these numbers must not be published after the earlier ones: one sentence per model, no samples.

    Within a family the facts say what two numbers have in common. Numbers of different families that depend on the same
    inputs may have a sample's contribution in common, up to a factor (a mark is 1 where the answer is wrong and 5 where
    it is right). What they have is not known of all, so it must hold both ways: where they have in common what was read
    alike, and with each other edition where they have all in common.
    """
    for model, cells_now in new.cells.items():
        same = [edition for edition in earlier if model in edition.cells and edition.family == new.family]
        others = [
            edition
            for edition in earlier
            if model in edition.cells and edition.family != new.family and edition.inputs & new.inputs & exposure.KEYED
        ]
        if (reason := _within(model, cells_now, same, binary)) or (reason := _across(model, cells_now, same, others)):
            yield reason


def _within(model: str, cells_now: Mapping[str, Cell], same: Sequence[Published], binary: Collection[str]) -> str:
    changes = (
        (number, edition.name, changed_samples(_values(cell), _values(edition.cells[model][number])))
        for number, cell in cells_now.items()
        for edition in same
        if number in edition.cells[model]
    )
    if few := next((change for change in changes if 0 < change[2] < MIN_SAMPLES), None):
        number, name, differing = few
        subject = f"{number} of {model}" if number else model
        return f"{subject} differs from {name} in {number_of(differing, 'sample')}."
    if reveals_few(_distinct(_values, cells_now, *(edition.cells[model] for edition in same))):
        return _compared(model, same)
    for number, cell in cells_now.items() if binary else ():
        before = [_values(edition.cells[model][number]) for edition in same if number in edition.cells[model]]
        if differ_in_few([_values(cell)], before, binary=binary).any():
            return _compared(model, same)
    return ""


def _across(model: str, cells_now: Mapping[str, Cell], same: Sequence[Published], others: Sequence[Published]) -> str:
    for edition in others:
        if reveals_few(_distinct(_support, cells_now, edition.cells[model])):
            return _compared(model, [edition])
    if others and reveals_few(_distinct(_answers, cells_now, *(one.cells[model] for one in (*same, *others)))):
        return _compared(model, [*same, *others])
    return ""


def _compared(model: str, editions: Sequence[Published]) -> str:
    names = ", ".join(dict.fromkeys(edition.name for edition in editions))
    with_those = f" and with those of {names}" if names else ""
    return f"The numbers of {model}, compared with one another{with_those}, reveal fewer."


def _distinct(form: Any, *numbers: Mapping[str, Cell]) -> list[Cell]:
    """All these cells, each once: most editions repeat most of the one before."""
    found: list[Cell] = []
    for cell in (form(cell) for of in numbers for cell in of.values()):
        if cell not in found:
            found.append(cell)
    return found


# ---- numbers as they are told ----


def _in_steps(scope: Scope, waiting: Collection[str]) -> tuple[list[ModelRow], dict[str, Told], list[str]]:
    """The rows of submitted models that are not released, what is told of each (see ``in_steps``), and of which nothing
    is, since they have too few verdicts.
    """
    exact = models(scope).rows
    every = told_to_senders(scope, exact)
    told = best_alone({name: every[name] for name in waiting if name in every})
    few = [row.model for row in exact if row.model in waiting and row.model not in told]
    return stepped_rows(scope, exact, told), told, few


def _board_and_cells(scope: Scope, stepped: Sequence[ModelRow]) -> tuple[ModelsBoard, Cells]:
    """The board rounded, with intervals where a number would settle what it is made of, and with ranks that follow from
    the numbers as they are told; and what they are made of. ``stepped`` rows, of models that the view leaves out, are
    added: no other row counts their verdicts.
    """
    cells = cells_of(scope)
    if not cells and not stepped:
        return ModelsBoard(), cells
    if scope.kind.pairwise:
        board, cells = _pairs_as_told(scope, cells)
    else:
        board = models(scope)
        if not scope.kind.keyed:
            board = _scores_as_told(scope, cast(ScoresBoard, board), cells)
    digits, ends = digits_of(scope)
    board = replace(board, rows=[*board.rows, *stepped])
    told = whole_from_text(type(board), json.dumps(rounded(as_stored(board), digits=digits, ends=ends)))
    names = {row.model for row in stepped}
    anchor = next((row.number(board.ranked_by) for row in told.rows if row.model == scope.anchor), UNKNOWN)
    steps = strengths(scope, [row for row in told.rows if row.model in names], anchor)
    return replace(told, rows=placed(told.rows, board.ranked_by, scope.kind.ends(scope.benchmark), steps)), cells


def _pairs_as_told(scope: Scope, cells: Cells) -> tuple[ModelsBoard, Cells]:
    """Without levels of models with a hidden verdict. A model whose hidden verdicts a number would settle has its win
    rate as an interval and nothing more, and no other number counts its pairs: strengths and wins add up over models.
    """
    frame = _of_pairs(scope)
    most = {}
    for name, outcome in frame["value"].str.split("\x1f").str[-1].groupby(frame["model"]):
        counts, n = outcome.value_counts(), len(outcome)
        won = int(counts.get("won", 0))
        if name != scope.anchor and (settles(won, n) or settles(int(counts.iloc[0]), n)):
            most[str(name)] = 2 * won > n
    board = cast(PairsBoard, models(scope))
    apart = [_pair_as_interval(row, most=most[row.model]) for row in board.rows if row.model in most]
    if most:
        others = replace(scope, without=(*scope.without, *most))
        live, board = board, cast(PairsBoard, models(others))
        board = replace(board, items=live.items, runs=live.runs)
        cells = {name: numbers for name, numbers in cells.items() if name in most} | cells_of(others)
    rows = [_pair_as_a_whole(row) if row.model in cells else row for row in board.rows]
    return replace(board, rows=[*rows, *apart]), cells


def _pair_as_a_whole(row: PairRow) -> PairRow:
    return replace(row, levels={}, win_rate_best=None, win_rate_worst=None, win_rate_lc=UNKNOWN)


def _pair_as_interval(row: PairRow, *, most: bool) -> PairRow:
    low, high = (1 - CODED, 1.0) if most else (0.0, CODED)
    told = as_interval(row.win_rate, low=low, high=high)
    return PairRow(model=row.model, tie_rule=row.tie_rule, failure_rule=row.failure_rule, win_rate=told, n=row.n)


def _scores_as_told(scope: Scope, board: ScoresBoard, cells: Cells) -> ModelsBoard:
    """With intervals for means at an end of the scale, whose samples all are there. Where only some verdicts are
    hidden, without levels of models that have one.
    """
    frame, _ = scores.verdicts_on_models(scope)
    frame = scope.kind.shares(scope, frame[frame["model"] != ""]).whole
    hidden = (
        ~frame["sample"].isin(open_samples(scope)) if scope.kind.hidden else frame["item"].isin(_hidden_items(scope))
    )
    least, most = scope.kind.ends(scope.benchmark)
    of_model = {str(name): rows["value"].to_numpy(float) for name, rows in frame[hidden].groupby("model")}
    rows = []
    for row in board.rows:
        if row.model in cells and not scope.kind.hidden:
            row = replace(row, levels={})
        values, exact = of_model.get(row.model, np.zeros(0)), row.score
        if len(values) and exact.value is not None and exact.n:
            missing = [(most - values).sum() / (most - least), (values - least).sum() / (most - least)]
            if min(missing) <= SETTLED:
                fixed = exact.value * exact.n - values.sum()
                low, high = (
                    ((1 - CODED) * most + CODED * least, most)
                    if missing[0] <= missing[1]
                    else (least, (1 - CODED) * least + CODED * most)
                )
                ends = ((fixed + end * len(values)) / exact.n for end in (low, high))
                row = replace(row, score=as_interval(exact, low=next(ends), high=next(ends)))
        rows.append(row)
    return replace(board, rows=rows)


def placed(
    rows: Sequence[Any], column: str, scale: tuple[float, float], steps: Mapping[str, Number] = MappingProxyType({})
) -> list[Any]:
    """The rows with ranks that tell no more than the numbers in this column do: equal ones share a rank, and a tier
    begins where an interval of an earlier one lies above. ``steps``: what stands for the number of models that are told
    in steps.
    """
    strengths: dict[str, float] = {}
    ends: dict[str, tuple[float, float]] = {}
    for row in rows:
        told = steps.get(row.model) or row.number(column)
        strength = told.value if row.model in steps else _strength(row, column, scale)
        if strength is not None:
            strengths[row.model] = strength
        if told.between:
            ends[row.model] = told.between

    ordered = sorted(ends, key=lambda name: -strengths[name])
    better = np.array([[ends[other][0] > ends[name][1] for other in ordered] for name in ordered], dtype=np.bool_)
    tier = dict(zip(ordered, tiers_of(better, range(len(ordered))).tolist(), strict=True)) if ordered else {}

    def place(row: Any) -> dict[str, int | None]:
        if row.model not in strengths:
            return dict.fromkeys(("rank", "rank_low", "rank_high", "tier"))
        rank = 1 + sum(other > strengths[row.model] for other in strengths.values())
        if row.model not in ends:
            return {"rank": rank, "rank_low": None, "rank_high": None, "tier": None}
        low, high = ends[row.model]
        above = sum(other_low > high for other_low, _ in ends.values())
        below = sum(other_high < low for _, other_high in ends.values())
        return {"rank": rank, "rank_low": 1 + above, "rank_high": len(strengths) - below, "tier": tier[row.model]}

    return sorted((replace(row, **place(row)) for row in rows), key=by_rank)


def _strength(row: Any, column: str, scale: tuple[float, float]) -> float | None:
    """The number that ranks; of an interval without a value the end of the scale that it stands for."""
    told: Number = row.number(column)
    if told.value is not None:
        return told.value
    if told.low is not None and told.high is not None:
        return told.high if told.low + told.high > sum(scale) else told.low
    coded = getattr(row, "win_rate", UNKNOWN)
    if coded.low is not None and coded.value is None:
        return math.inf if coded.low > CODED else -math.inf
    return None


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


def rounded(data: Any, *, digits: int, ends: int, name: str = "", column: str = "") -> Any:
    """Rows, and everything in them, with rounded numbers; intervals never become narrower."""
    if isinstance(data, dict):
        is_number = {"value", "low", "high"} <= data.keys()
        return {
            key: rounded(value, digits=digits, ends=ends, name=key, column=name if is_number else column)
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [rounded(value, digits=digits, ends=ends, name=name) for value in data]
    if name == "se":  # in full it would undo the rounding of the ends
        return None
    if not isinstance(data, float) or name == "coverage":
        return data
    if column == "elo":
        digits = ends = 0
    if name == "low":
        return math.floor(round(data * 10**ends, 9)) / 10**ends
    if name == "high":
        return math.ceil(round(data * 10**ends, 9)) / 10**ends
    return round(data, digits)


# ---- boards of judges ----


def _ceiling_as_told(against: judge_board.Against) -> dict[str, judge_board.MetricValue]:
    return {
        name: value
        for name, value in against.ceiling.items()
        if value.n >= MIN_SAMPLES and not _settles(name, value.number)
    }


def _draft_of_judges(scope: Scope) -> Draft:
    """Every judge against people over all data sets: no levels, no ranks, and nothing of what calls cost."""
    last = _earlier(scope, JUDGES).last()
    made = Draft(scope=scope, what=JUDGES, number=(last.number if last else 0) + 1, last=last)
    live = makers_of(scope.kind).judges(scope)
    cells, runs = _cells_of_judges(scope)
    few = [name for name, numbers in cells.items() if any(len(cell) < MIN_SAMPLES for cell in numbers.values())]
    cells = {name: numbers for name, numbers in cells.items() if name not in few}
    made = replace(made, left_out=dict.fromkeys(few, f"compared on fewer than {MIN_SAMPLES} samples"))
    told = {runs[name] for name in cells if name in runs}
    shown = [row for row in live.rows if row.run in told and row.source_dataset == judge_board.ALL]
    settled = {(row.run, row.reference) for row in shown if _settles(row.metric, row.value)}
    rows = [
        _judge_as_told(row) if (row.run, row.reference) in settled else row for row in shown if row.n >= MIN_SAMPLES
    ]
    if not rows:
        nothing = f"No judge has verdicts on {MIN_SAMPLES} samples or more that people have labelled."
        return replace(made, problem=nothing)
    against = {
        reference: judge_board.Against(_ceiling_as_told(of) if PEOPLES in cells else {}, {}, {})
        for reference, of in live.against.items()
    }
    board = replace(live, rows=rows, against=against, cell_order=[], running={}, key="", computed_at=None)
    digits, ends = max(digits_of(scope)[0], 2), 2
    text = json.dumps(rounded(json.loads(whole_as_text(board)), digits=digits, ends=ends))
    new = Published("", scope.kind.name, 0, cells)
    earlier = [replace(one, family=scope.kind.name) for one in published_before(scope, JUDGES)]
    return _checked(replace(made, board=board, cells=cells, text=text, changed=_changes(cells, last)), new, earlier)


def _settles(metric: str, told: Number) -> bool:
    return metric == "agreement" and told.value is not None and settles(round(told.value * (told.n or 0)), told.n or 0)


def _judge_as_told(row: JudgeRow) -> JudgeRow:
    """A judge that agrees with people nearly always, or never: an interval, and no other number of its verdicts."""
    if row.metric == READABLE.name:
        return row
    low, high = (1 - CODED, 1.0) if (row.value.value or 0.0) > CODED else (0.0, CODED)
    told = as_interval(row.value, low=low, high=high) if row.metric == "agreement" else Number(reason=CODED_WORDS)
    return replace(row, value=told, p=None)


def _cells_of_judges(scope: Scope) -> tuple[Cells, dict[str, int]]:
    """By judge, protocol and settings, and for people, the verdicts that are compared on each sample; and by judge the
    run that stands for it.
    """
    comparison = judge_board.Comparison(scope)
    labels = comparison.labels
    if labels.empty:
        return {}, {}
    sample_of = comparison.items["sample"]
    ids = dict(scope.benchmark.samples.values_list("pk", "key"))
    by_item = labels.sort_values(["item", "annotator"]).groupby("item")["value"].agg(lambda values: str(list(values)))

    def cell(verdicts: pd.DataFrame) -> Cell:
        rows = verdicts[verdicts["item"].isin(by_item.index)].sort_values(["item", "repeat"])
        verdict_facts = rows["item"].map(by_item) + "\x1f" + rows["judged"].astype(str)
        by_sample = verdict_facts.groupby(rows["item"].map(sample_of)).agg("\x1e".join)
        return {ids[int(sample)]: fact_hash(fact) for sample, fact in by_sample.items()}

    cells: Cells = {PEOPLES: {WHOLE: cell(pd.DataFrame({"item": by_item.index, "repeat": 0, "judged": PEOPLES}))}}
    runs_of = {}
    for runs in votes.judge_groups(scope):
        if numbers := cell(comparison.verdicts_of(runs)):
            name = f"{runs[0].judge.name}, {runs[0].protocol}, settings {runs[0].settings_hash[:6]}"
            cells[name], runs_of[name] = {WHOLE: numbers}, runs[-1].pk
    return cells, runs_of
