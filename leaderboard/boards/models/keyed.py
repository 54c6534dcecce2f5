"""The boards of answers compared with keys: multiple choice and yes or no.

Answer keys are hidden, and anybody who knows what a model answered could learn a key from a number about few samples.
Unless the keys are open to all, only staff see these boards live; everybody else sees editions
(``leaderboard.hidden``). An edition shows only numbers and levels of a model of which no combination is about fewer
than MIN_SAMPLES samples (``stats.disclosure``). A hidden split is shown only as a whole, by its kept half (ADR 11).
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from django.db.models import QuerySet

from accounts.installation_key import keyed as keyed_hash
from bank import guard
from bank.models import Benchmark, EvaluatedModel, Response, Sample, Submission, SubmissionRules
from bank.models.items import ItemResponse
from bank.submissions import marked_responses
from bank.submissions.scoring import is_kept
from judging.models import Judgment, Run
from leaderboard import votes
from leaderboard.boards.base import (
    ApartRow,
    Level,
    ModelRow,
    ModelsBoard,
    apart,
    as_interval,
    best_of,
    by_rank,
    next_better,
    places_by,
    ranks,
    share,
)
from leaderboard.hidden import hidden_split, open_samples
from leaderboard.rows import UNKNOWN, Number, number
from leaderboard.scope import AS_POPE, BY_LABEL, EXCLUDE, PEOPLE, WRONG, BadScope, Scope
from leaderboard.sight import refuse_live
from stats.answers import yes_no_scores
from stats.disclosure import MIN_SAMPLES, Cell, coded_and_left_out, ends_of_coded, publishable, reveals_few, settles
from stats.paired import change
from stats.proportions import likeness, rate, rate_by_sizes

NO_ANSWERS = "No answers to questions with a key yet."
FROM_POSITIVES = ("precision", "recall", "f1")  # they reveal how many of the answers "yes" are right
CIRCULAR = "circular-"
STEPS = (marked_responses.LABEL, marked_responses.JUDGE, marked_responses.RANDOM)
WITHHELD = f"Levels and other numbers that could reveal something about fewer than {MIN_SAMPLES} samples are left out."
VANILLA, CIRCULAR_ACCURACY, ACCURACY = "vanilla", "circular", "accuracy"  # the columns that can rank
K = TypeVar("K", bound=ModelRow)
PublishedCells = dict[str, Cell]  # what the numbers of a model in an edition are made of, by number


@dataclass(frozen=True, kw_only=True)
class ChoiceLevel(Level):
    vanilla: Number = UNKNOWN
    circular: Number = UNKNOWN
    difference: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class ChoiceRow(ModelRow):
    """Right in the one pass with options as they are, right in every rotation, and the difference (rotations minus one
    pass). ``extraction``: for how many answers the option was found in which way.

    ``failures``: samples with an answer in which nobody found an option, or without one, which count by
    ``failure_rule``; ``x_best`` and ``x_worst`` are the numbers if all of these answers were right, or wrong.
    """

    failure_rule: str = WRONG
    vanilla: Number = UNKNOWN
    vanilla_best: float | None = None
    vanilla_worst: float | None = None
    circular: Number = UNKNOWN
    circular_best: float | None = None
    circular_worst: float | None = None
    difference: Number = UNKNOWN
    levels: dict[str, ChoiceLevel] = field(default_factory=dict)
    extraction: dict[str, int] = field(default_factory=dict)
    n: int
    failures: int | None = None
    coverage: float | None = None


@dataclass(frozen=True, kw_only=True)
class YesNoLevel(Level):
    accuracy: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class YesNoRow(ModelRow):
    """``failures``: answers that say neither or are missing; ``reading``: how yes or no was read; the rest as in
    ``ChoiceRow``.
    """

    failure_rule: str = WRONG
    reading: str = BY_LABEL
    accuracy: Number = UNKNOWN
    accuracy_best: float | None = None
    accuracy_worst: float | None = None
    precision: Number = UNKNOWN
    recall: Number = UNKNOWN
    f1: Number = UNKNOWN
    yes_ratio: Number = UNKNOWN
    levels: dict[str, YesNoLevel] = field(default_factory=dict)
    n: int
    failures: int | None = None
    coverage: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyedBoard(ModelsBoard):
    """``depths``: paths of levels by depth; ``withheld``: what is left out, in words; ``half``: whether only the kept
    half of a hidden split was counted.
    """

    depths: list[list[str]] = field(default_factory=list)
    withheld: str = ""
    half: bool = False

    @property
    def level_columns(self) -> list[list[str]]:
        return self.depths

    @property
    def all_notes(self) -> list[str]:
        return [*self.notes, *filter(None, [self.withheld])]


@dataclass(frozen=True, eq=False)
class ChoiceBoard(KeyedBoard):
    """``letters``: by model, the share of each letter among those it chose in all passes (MMBench, Figure 4);
    ``right``: the share of each that was the right one there.
    """

    rows: Sequence[ChoiceRow] = ()
    _: KW_ONLY
    ranked_by: str = VANILLA
    letters: dict[str, dict[str, float]] = field(default_factory=dict)
    right: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class YesNoBoard(KeyedBoard):
    rows: Sequence[YesNoRow] = ()
    _: KW_ONLY
    ranked_by: str = ACCURACY


def _shape(scope: Scope) -> type[KeyedBoard]:
    return ChoiceBoard if scope.kind.rotates else YesNoBoard


def models(scope: Scope) -> ModelsBoard:
    """Accuracy of every model on questions with a key (MMBench, Tables 2 and 4; POPE), by every level of the tree."""
    refuse_live(scope)
    split = hidden_split(scope)
    if split is not None:
        return _of_hidden(scope, split)
    frame, runs = _counted(scope)
    if frame.empty:
        return _shape(scope)([], [NO_ANSWERS], runs)
    board = _keyed_board(scope, frame, levels=True)
    return replace(board, runs=runs, withheld=WITHHELD if scope.edition else "")


def counted_answers(scope: Scope, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that the board counts (columns: ``marked_responses.as_frame``), its runs, and whether it has numbers
    by level. For one ``model``, or for all. Raises BadScope.
    """
    refuse_live(scope)
    split = hidden_split(scope)
    if split is not None:
        frame, runs, _ = _hidden_answers(scope, split, model)
    else:
        frame, runs = _counted(scope, model)
    frame = _asked(frame)
    return frame[frame["model"] == model] if model else frame, runs, split is None


def _asked(frame: pd.DataFrame) -> pd.DataFrame:
    """Without the answers about which the judge who reads them was not asked: nobody knows what they say."""
    return frame[frame["how"] != marked_responses.UNASKED]


@guard.working()
def _answered_by(samples: QuerySet[Sample], model: str) -> QuerySet[Sample]:
    return samples.filter(pk__in=Response.objects.filter(model__name=model).values("sample")) if model else samples


def _counted(scope: Scope, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...]]:
    read, runs = read_by_judges(scope)
    samples = _answered_by(votes.samples_in(scope).exclude(split__in=scope.benchmark.hidden_splits), model)
    return _named(_marked(scope, samples, read), scope), runs


def _marked(scope: Scope, samples: QuerySet[Sample], read: marked_responses.Read | None) -> pd.DataFrame:
    return marked_responses.as_frame(
        scope.benchmark, samples, kind=scope.kind.question, read=read, pope=scope.reading == AS_POPE
    )


# ---- what an edition reveals ----

EVERY, ONE, BOTH, RIGHT = "all rotations", "one pass", "the difference", "right answers"
SAID = {"yes": "answers yes", "no": "answers no", "": "answers that are neither"}


def published_cells(scope: Scope, frame: pd.DataFrame, *, levels: bool) -> dict[str, PublishedCells]:
    """For each model in an edition, what its numbers are made of.

    For multiple choice: ``EVERY`` and ``ONE`` pass (the first of these also by level), and ``BOTH``: the one pass of
    what was answered in every rotation, which the difference depends on. For yes or no: ``RIGHT``, also by level, and
    what precision, recall and F1 depend on. A sample contributes what follows from its key. It contributes nothing if
    its answer names no option, or another one in each rotation (wrong whatever the key is), or if its key is open.
    """
    frame = frame[~frame["model"].isin(scope.without)]
    frame = frame.assign(given=given(frame), open=frame["sample"].isin(open_samples(scope)))
    paths = list(chain.from_iterable(_depths(scope, frame))) if levels else []
    tell = _of_choice if scope.kind.rotates else _of_yes_no
    by_model = {}
    for name, rows in frame.groupby("model"):
        cells = tell(rows)
        if cells:
            _add_levels(cells, rows, paths if name not in scope.whole else [])
            by_model[str(name)] = cells
    return by_model


def given(frame: pd.DataFrame) -> "pd.Series[str]":
    """What follows from each row's key and from what was read in the answer, as a hash of both."""
    pairs = frame["key"] + "\x1f" + frame["said"]
    return pairs.map({pair: fact_hash(pair) for pair in pairs.unique()})


def fact_hash(fact: str) -> str:
    """A fact as the cells of editions hold it."""
    return keyed_hash("cell", fact)[:16]


def _right_cell(rows: pd.DataFrame) -> Cell:
    rows = rows[~rows["open"]]
    return dict(zip(rows["sample"].astype(str), rows["given"], strict=True))


def _of_choice(rows: pd.DataFrame) -> PublishedCells:
    passes = rows[(rows["variant"] == "") | rows["variant"].str.startswith(CIRCULAR)]
    complete = passes[passes["sample"].isin(every_rotation(rows)["sample"])]
    the_same = complete.groupby("sample")["said"].transform("nunique") == 1
    one_pass = complete["variant"] == ""
    counted = {EVERY: complete[the_same & one_pass], ONE: rows[rows["variant"] == ""], BOTH: complete[one_pass]}
    return publishable({name: _right_cell(part[part["said"] != ""])} for name, part in counted.items() if len(part))


def _of_yes_no(rows: pd.DataFrame) -> PublishedCells:
    one_pass = rows[rows["variant"] == ""]
    right = _right_cell(one_pass[one_pass["said"] != ""])
    if not len(one_pass) or reveals_few([right]):
        return {}
    return publishable(
        [{RIGHT: right}, {name: _right_cell(one_pass[one_pass["said"] == said]) for said, name in SAID.items()}]
    )


def _add_levels(published: PublishedCells, rows: pd.DataFrame, paths: list[str]) -> None:
    """The largest levels first, so that if one has to be left out it is a small one."""
    first_cell = next(iter(published.values()))
    path_of = dict(zip(rows["sample"].astype(str), rows["path"], strict=True))
    cells = {
        path: {sample: fact for sample, fact in first_cell.items() if is_below(path_of[sample], path)} for path in paths
    }
    for path, cell in sorted(cells.items(), key=lambda pair: (-len(pair[1]), paths.index(pair[0]))):
        above = path.rpartition(" / ")[0]
        if (above in published or not above) and not reveals_few([*published.values(), cell]):
            published[path] = cell


@dataclass(frozen=True, slots=True)
class PublishedHits:
    """The numbers of a model that an edition tells: ``cells``; ``coded`` ones are given as intervals. ``hits``: how
    many samples of each cell are right.
    """

    cells: PublishedCells
    hits: dict[str, int]
    coded: set[str]

    @classmethod
    def in_cells(cls, cells: PublishedCells, hits: dict[str, int]) -> "PublishedHits":
        coded, left_out = coded_and_left_out(cells, hits)
        return cls({name: cell for name, cell in cells.items() if name not in left_out}, hits, coded)

    def __contains__(self, name: str) -> bool:
        return name in self.cells

    def number(self, name: str, exact: Number) -> Number:
        """The number as it may be told. Samples that are not in its cell are right or wrong whatever is hidden."""
        if name not in self.coded or exact.value is None or not exact.n:
            return exact
        hits, n = self.hits[name], len(self.cells[name])
        fixed = round(exact.value * exact.n) - hits
        low, high = ends_of_coded(hits=hits, n=n, fixed=fixed, rows=exact.n)
        return as_interval(exact, low=low, high=high)


def _right_samples(answers: pd.DataFrame) -> set[str]:
    return set(answers.loc[answers["right"].astype(bool), "sample"].astype(str))


def _told_of_choice(cells: PublishedCells, answers: pd.DataFrame) -> PublishedHits:
    one_pass, every = _right_samples(_one_pass(answers)), _right_samples(every_rotation(answers))
    of_levels = every if EVERY in cells else one_pass
    right = {EVERY: every, ONE: one_pass, BOTH: one_pass}
    return PublishedHits.in_cells(
        cells, {name: len(cell.keys() & right.get(name, of_levels)) for name, cell in cells.items()}
    )


def _told_of_yes_no(cells: PublishedCells, answers: pd.DataFrame) -> PublishedHits:
    """Precision, recall and F1 have no intervals that hide what they tell, so they are left out where they would."""
    one_pass = _one_pass(answers)
    right, yes = _right_samples(one_pass), set(one_pass.loc[one_pass["key"] == "yes", "sample"].astype(str))
    hits = {name: len(cell.keys() & (yes if name == SAID[""] else right)) for name, cell in cells.items()}
    parts = [RIGHT, *SAID.values()]
    if any(settles(hits[name], len(cells[name])) for name in parts if name in cells):
        cells = {name: cell for name, cell in cells.items() if name not in SAID.values()}
    return PublishedHits.in_cells(cells, hits)


def is_below(path: str, level: str) -> bool:
    return path == level or path.startswith(f"{level} / ")


# ---- readings of answers ----


def _reading_runs(scope: Scope) -> QuerySet[Run]:
    runs = votes.judged_runs(scope)
    if scope.run is not None:
        runs = runs.filter(pk=scope.run)
        if not runs:
            raise BadScope(f"There is no run {scope.run} that read answers of {scope.benchmark}.")
        return runs
    if scope.edition:
        return runs.none()
    if scope.source not in PEOPLE:
        return Run.objects.filter(pk__in=[run.pk for run in votes.runs_of(scope, scope.source)])
    finished = runs.filter(state=Run.State.FINISHED)
    run = votes.with_most_items(finished)
    return finished.filter(**run.alike) if run else runs.none()


@guard.working()
def read_by_judges(scope: Scope) -> tuple[marked_responses.Read | None, tuple[int, ...]]:
    """By response, what a judge read in answers that do not name an option themselves, for all that it was asked about;
    and its runs. None where no judge reads.

    The judge is the view's source; if that is people, the one whose finished runs were asked about most answers. An
    edition has one finished run, or none.
    """
    ids = tuple(_reading_runs(scope).order_by("pk").values_list("pk", flat=True))
    if not ids:
        return None, ()
    judgments = Judgment.objects.filter(run__in=ids, repeat=0).exclude(status=Judgment.Status.SKIPPED_BUDGET)
    answers = {True: "yes", False: "no"}
    verdicts: dict[int, tuple[str, str]] = {}
    columns = ("item", "status", "option", "answer", "extraction")
    for item, status, option, answer, how in judgments.order_by("pk").values_list(*columns):
        verdicts.setdefault(item, ("", marked_responses.NONE))
        if status == Judgment.Status.OK and (option is not None or answer is not None):
            read = option if scope.kind.rotates else answers.get(bool(answer), "")
            verdicts[item] = (str(read or ""), how or marked_responses.JUDGE)
    places = ItemResponse.objects.filter(item__in=judgments.values("item"), position=0)
    return {response: verdicts[item] for item, response in places.values_list("item", "response")}, ids


def _named(frame: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """The frame with the names of models. Below staff, without submissions that no curator has released."""
    if not scope.staff:
        waiting = Submission.objects.filter(benchmark=scope.benchmark, released_at=None, model__isnull=False)
        frame = frame[~frame["model"].isin(set(waiting.values_list("model", flat=True)))]
    names = dict(EvaluatedModel.objects.filter(pk__in=frame["model"].unique().tolist()).values_list("pk", "name"))
    return frame.assign(model=frame["model"].map(names))


# ---- rows ----


def _keyed_board(scope: Scope, frame: pd.DataFrame, *, levels: bool) -> KeyedBoard:
    samples = frame["sample"].nunique()
    items = int(samples)
    published, half_read = None, []
    if not scope.edition:
        half_read = _half_read(frame, _asked(frame))
    frame = _asked(frame)
    depths = _depths(scope, frame) if levels else []
    if scope.edition:
        published = published_cells(scope, frame, levels=levels)
        frame = frame[frame["model"].isin(published)]
    answers = {
        str(name): rows for name, rows in sorted(frame.groupby("model"), key=lambda pair: str(pair[0]).casefold())
    }
    told = None
    if published is not None:
        told = _told(scope, published, answers)
        depths = _in_edition(depths, told)
    paths = list(chain.from_iterable(depths))
    failures = scope.failures or WRONG
    one_pass = _one_pass(_read(frame, failures))
    alike = None if published is not None or one_pass.empty else _likeness(one_pass)
    board: KeyedBoard
    if scope.kind.rotates:
        choices = _choice_board(answers, paths, told, samples, failures, alike)
        board = choices if levels else replace(choices, letters={}, right={})
    else:
        board = _yes_no_board(answers, paths, told, samples, failures, scope.reading, alike)
    return replace(board, items=items, depths=depths, notes=[*board.notes, *half_read])


def _told(
    scope: Scope, published: dict[str, PublishedCells], answers: dict[str, pd.DataFrame]
) -> dict[str, PublishedHits]:
    told_of = _told_of_choice if scope.kind.rotates else _told_of_yes_no
    return {name: told_of(cells, answers[name]) for name, cells in published.items()}


def _in_edition(depths: list[list[str]], told: dict[str, PublishedHits]) -> list[list[str]]:
    """The levels that the edition tells of some model, by depth."""
    shown = set[str]().union(*(hits.cells for hits in told.values()))
    visible = []
    for paths in depths:
        of_depth = [path for path in paths if path in shown]
        if of_depth:
            visible.append(of_depth)
    return visible


def _half_read(frame: pd.DataFrame, asked: pd.DataFrame) -> list[str]:
    """A note where whoever reads answers was not asked about all that name nothing themselves: the model that it is
    worst for.
    """
    if len(asked) == len(frame):
        return []
    whole, read = (rows.groupby("model")["sample"].nunique() for rows in (frame, asked))
    read = read.reindex(whole.index, fill_value=0)
    worst = (read / whole).idxmin()
    of = f"{worst} is read for {int(read[worst]):,} of {int(whole[worst]):,}"
    return [f"{of}: finish the extraction. Until then answers in words are not counted."]


def _likeness(answers: pd.DataFrame) -> float:
    """How alike the answers of one group are, from all models."""
    part, names = pd.factorize(answers["model"])
    return likeness(hits=answers["right"].to_numpy(), cluster=answers["group"].to_numpy(), part=part, parts=len(names))


def _read(answers: pd.DataFrame, failures: str) -> pd.DataFrame:
    """The answers that count: all of them, or those that say something."""
    return answers[answers["said"] != ""] if failures == EXCLUDE else answers


def _one_pass(answers: pd.DataFrame) -> pd.DataFrame:
    return answers[answers["variant"] == ""]


def _with_failures(
    answers: pd.DataFrame, failures: str, **numbers: Callable[[pd.DataFrame], pd.DataFrame]
) -> dict[str, Any]:
    """How failures count, how many there are, and where there are some each number with all of them right, and wrong.

    ``numbers``: by name, how the answers become the rows, one a sample, of whose ``right`` it is the mean.
    """
    failed = answers["said"] == ""
    columns: dict[str, Any] = {"failure_rule": failures, "failures": int(answers.loc[failed, "sample"].nunique())}
    for name, counted in numbers.items() if failed.any() else ():
        best, worst = (
            counted(answers.assign(right=right))["right"] for right in (answers["right"] | failed, answers["right"])
        )
        if len(best):
            columns |= {f"{name}_best": float(best.mean()), f"{name}_worst": float(worst.mean())}
    return columns


def _choice_board(
    answers: dict[str, pd.DataFrame],
    paths: list[str],
    told: dict[str, PublishedHits] | None,
    samples: int,
    failures: str,
    alike: float | None,
) -> ChoiceBoard:
    rotated = any(answered["variant"].str.startswith(CIRCULAR).any() for answered in answers.values())
    rows, counted, asked = [], {}, {}
    for name, answered in answers.items():
        passes = _Passes.of(_read(answered, failures))
        cells = None if told is None else told[name]
        row = _choice_row(name, answered, passes, cells, paths, samples=samples, failures=failures, alike=alike)
        rows.append(row)
        counted[name] = passes.every if rotated else passes.one
        if cells is None:
            asked[name] = answered[answered["how"] != marked_responses.SKIPPED]
        else:  # which passes were asked can tell where a model was wrong
            asked[name] = _one_pass(answered)
    letters = {name: _shares(frame["letter"].where(frame["said"] != "", "")) for name, frame in asked.items()}
    ranked_by = CIRCULAR_ACCURACY if rotated else VANILLA
    if told is not None:
        return ChoiceBoard(rows, [], ranked_by=ranked_by, apart=[], letters=letters, right={})
    # Not in an edition: a letter may be the key of few samples, and a model may nearly always choose one letter.
    right = {}
    if asked:
        right = _shares(pd.concat(asked.values()).drop_duplicates(["sample", "variant"])["key_letter"])
    rows, notes, neighbours = _ranked(rows, counted, ranked_by)
    return ChoiceBoard(rows, notes, ranked_by=ranked_by, apart=neighbours, letters=letters, right=right)


@dataclass(frozen=True, eq=False, slots=True)
class _Passes:
    """The answers of a model that count; of these the one pass, and the samples answered in every rotation."""

    read: pd.DataFrame
    one: pd.DataFrame
    every: pd.DataFrame

    @classmethod
    def of(cls, read: pd.DataFrame) -> "_Passes":
        return cls(read, _one_pass(read), every_rotation(read))


def _choice_row(
    name: str,
    answered: pd.DataFrame,
    passes: _Passes,
    cells: PublishedHits | None,
    paths: list[str],
    *,
    samples: int,
    failures: str,
    alike: float | None,
) -> ChoiceRow:
    one_pass, all_rotations = passes.one, passes.every
    if cells is None:
        accuracies = _accuracies(one_pass, all_rotations, alike, for_edition=False)
        with_failures = _with_failures(answered, failures, vanilla=_one_pass, circular=every_rotation)
        within = one_pass
    else:
        one_pass = one_pass if ONE in cells else one_pass.iloc[:0]
        all_rotations = all_rotations if EVERY in cells else all_rotations.iloc[:0]
        accuracies = _told_accuracies(one_pass, all_rotations, cells, alike)
        with_failures = {}
        within = one_pass.iloc[:0] if EVERY in cells else one_pass
        paths = [path for path in paths if path in cells]
    levels = {}
    for path in paths:
        of_level = _of_level(_below(within, path), _below(all_rotations, path), cells, path, alike)
        levels[path] = ChoiceLevel(**of_level, n=int(_below(passes.read, path)["sample"].nunique()))
    n = int(passes.one["sample"].nunique())
    return ChoiceRow(
        model=name,
        **accuracies,
        levels=levels,
        extraction=_extraction(answered),
        **with_failures,
        n=n,
        coverage=share(n, samples),
    )


def _told_accuracies(
    one_pass: pd.DataFrame, all_rotations: pd.DataFrame, cells: PublishedHits, alike: float | None
) -> dict[str, Any]:
    """``_accuracies`` as an edition may tell them."""
    accuracies = _accuracies(one_pass, all_rotations, alike, for_edition=True)
    accuracies["vanilla"] = cells.number(ONE, accuracies["vanilla"])
    accuracies["circular"] = cells.number(EVERY, accuracies["circular"])
    if BOTH not in cells or cells.coded & {ONE, EVERY, BOTH}:
        accuracies["difference"] = UNKNOWN
    return accuracies


def _extraction(answered: pd.DataFrame) -> dict[str, int]:
    named, no_text = answered["said"] != "", answered["how"] == marked_responses.NO_TEXT
    extraction = {step: int(((answered["how"] == step) & named).sum()) for step in STEPS}
    return extraction | {"none": int((~named & ~no_text).sum()), "no_text": int(no_text.sum())}


def _yes_no_board(
    answers: dict[str, pd.DataFrame],
    paths: list[str],
    told: dict[str, PublishedHits] | None,
    samples: int,
    failures: str,
    reading: str,
    alike: float | None,
) -> YesNoBoard:
    rows, counted = [], {}
    for name, answered in answers.items():
        cells = None if told is None else told[name]
        one_pass = _one_pass(_read(answered, failures))
        n = int(one_pass["sample"].nunique())
        scores = _yes_no(one_pass, alike, for_edition=cells is not None)
        if cells is not None:
            scores["accuracy"] = cells.number(RIGHT, scores["accuracy"])
            if not cells.cells.keys() >= {*SAID.values()}:
                scores |= dict.fromkeys(FROM_POSITIVES, UNKNOWN)
        row = YesNoRow(
            model=name,
            reading=reading,
            **scores,
            levels={
                path: YesNoLevel(
                    accuracy=_right_on(_below(one_pass, path), cells, path, alike),
                    n=len(_below(one_pass, path)),
                )
                for path in paths
                if cells is None or path in cells
            },
            **(_with_failures(_one_pass(answered), failures, accuracy=_one_pass) if cells is None else {}),
            n=n,
            coverage=share(n, samples),
        )
        rows.append(row)
        counted[name] = one_pass
    rows, notes, neighbours = _ranked(rows, counted, YesNoBoard.ranked_by) if told is None else (rows, [], [])
    return YesNoBoard(rows, notes, apart=neighbours)


def _depths(scope: Scope, frame: pd.DataFrame) -> list[list[str]]:
    """The paths of each depth of the tree below the view's level, in the tree's order."""
    paths = frame.drop_duplicates("sample")["path"]
    below = len(scope.level.split(" / ")) if scope.level else 0
    order = list(scope.benchmark.capabilities.order_by("position", "pk").values_list("path", flat=True))
    depths: list[list[str]] = []
    shown = {scope.level}
    while True:
        depth = below + len(depths)
        candidates = [
            path for path in order if len(path.split(" / ")) == depth + 1 and path.rpartition(" / ")[0] in shown
        ]
        shown = {
            path for path in candidates if paths.map(lambda sample_path, path=path: is_below(sample_path, path)).any()
        }
        if not shown:
            return [] if len(depths) == 1 and len(depths[0]) == 1 else depths
        depths.append([path for path in candidates if path in shown])


def _below(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    return frame[(frame["path"] == path) | frame["path"].str.startswith(f"{path} / ")]


def every_rotation(answers: pd.DataFrame) -> pd.DataFrame:
    """One row per sample that was answered in every rotation: ``right`` in all of them. Others do not count."""
    passes = answers[(answers["variant"] == "") | answers["variant"].str.startswith(CIRCULAR)]
    if not passes["variant"].str.startswith(CIRCULAR).any():
        return passes.iloc[:0]
    by_sample = passes.groupby("sample")
    questions = by_sample[["path", "group", "options"]].first()
    questions["right"] = by_sample["right"].all()
    return questions[by_sample.size() >= questions["options"]].reset_index()


def _right(frame: pd.DataFrame, alike: float | None = None, *, for_edition: bool) -> Number:
    """The share of right rows. ``alike``: how alike those of a group are. ``for_edition``: with an interval that
    reveals no more than the share.
    """
    if not len(frame):
        return UNKNOWN
    cluster = frame["group"].to_numpy()
    if for_edition:
        return number(rate_by_sizes(hits=int(frame["right"].sum()), n=len(frame), cluster=cluster))
    return number(rate(hits=frame["right"].to_numpy(), cluster=cluster, likeness=alike))


def _right_on(frame: pd.DataFrame, told: PublishedHits | None, path: str, alike: float | None) -> Number:
    """The share of right rows of a level."""
    number_of_level = _right(frame, alike, for_edition=told is not None)
    return number_of_level if told is None else told.number(path, number_of_level)


def _of_level(
    one_pass: pd.DataFrame, all_rotations: pd.DataFrame, told: PublishedHits | None, path: str, alike: float | None
) -> dict[str, Any]:
    """``_accuracies`` of a level; in an edition it has one of them."""
    numbers = _accuracies(one_pass, all_rotations, alike, for_edition=told is not None)
    if told is not None:
        numbers = {name: told.number(path, exact) for name, exact in numbers.items()}
    return numbers


def _accuracies(
    one_pass: pd.DataFrame, all_rotations: pd.DataFrame, alike: float | None, *, for_edition: bool
) -> dict[str, Any]:
    """``vanilla``, ``circular`` and ``difference``, from the one pass and from the samples with all rotations."""
    paired = one_pass[["sample", "group", "right"]].merge(
        all_rotations[["sample", "right"]], on="sample", suffixes=("", "_every")
    )
    numbers = {
        "vanilla": _right(one_pass, alike, for_edition=for_edition),
        "circular": _right(all_rotations, alike, for_edition=for_edition),
    }
    if for_edition:  # right in every rotation implies right in one pass, so the loss is a share
        lost = _right(paired.assign(right=paired["right"] & ~paired["right_every"]), for_edition=True)
        value, high, low = (None if end is None else -end or 0.0 for end in lost.ends)
        return numbers | {"difference": replace(lost, value=value, low=low, high=high)}
    before, after = (paired[name].to_numpy(np.float64) for name in ("right", "right_every"))
    drop = change(before=before, after=after, cluster=paired["group"].to_numpy(), ends=(0.0, 1.0))
    return numbers | {"difference": number(drop)}


def _yes_no(answers: pd.DataFrame, alike: float | None, *, for_edition: bool) -> dict[str, Any]:
    """The scores of a ``YesNoRow``."""
    codes = {"yes": 1, "no": 0}
    scores = yes_no_scores(
        key=answers["key"].map(codes).to_numpy(),
        said=answers["said"].map(codes).fillna(-1).astype(int).to_numpy(),
        cluster=answers["group"].to_numpy(),
        likeness=alike,
    )
    numbers = {name: number(getattr(scores, name)) for name in ("accuracy", *FROM_POSITIVES, "yes_ratio")}
    return numbers | _published_yes_no(answers, numbers["f1"]) if for_edition else numbers


def _published_yes_no(answers: pd.DataFrame, f1: Number) -> dict[str, Number]:
    """The same shares for an edition. F1 has an interval only if that follows from the counts alone."""
    yes, hits = answers["said"] == "yes", (answers["said"] == "yes") & (answers["key"] == "yes")
    keys = int((answers["key"] == "yes").sum())
    return {
        "accuracy": _right(answers, for_edition=True),
        "precision": _right(answers[yes].assign(right=hits[yes]), for_edition=True),
        "recall": number(rate_by_sizes(hits=int(hits.sum()), n=keys, cluster=answers["group"].to_numpy())),
        "yes_ratio": _right(answers.assign(right=yes), for_edition=True),
        "f1": f1 if answers["group"].is_unique else Number(f1.value, n=f1.n),
    }


def _shares(options: "pd.Series[str]") -> dict[str, float]:
    """The share of each option among the answers with one; "" is the share of all answers without one."""
    chosen = options[options != ""]
    shares = {str(option): float(n / len(chosen)) for option, n in chosen.value_counts().sort_index().items()}
    return shares | ({"": float((options == "").mean())} if (options == "").any() else {})


def _ranked(rows: list[K], counted: dict[str, pd.DataFrame], measure: str) -> tuple[list[K], list[str], list[ApartRow]]:
    """The rows with their ranks, sorted by rank, a note on the best, and neighbours that share a rank. ``counted``: by
    model, the answers that rank it.
    """
    answered = {name: frame for name, frame in counted.items() if len(frame)}
    named = [frame.assign(model=name) for name, frame in answered.items()]
    places = places_by(pd.concat(named, ignore_index=True), [*answered]) if answered else {}
    ranked = sorted((replace(row, **ranks(places.get(row.model))) for row in rows), key=by_rank)
    neighbours = apart(ranked, measure, next_better([*places], [*places.values()]))
    return ranked, best_of({name: place.best for name, place in places.items()}), neighbours


# ---- hidden splits ----


def _of_hidden(scope: Scope, split: str) -> ModelsBoard:
    """A hidden split as a whole: for every model its kept half, or all of it if nothing is kept back."""
    frame, runs, half = _hidden_answers(scope, split)
    if frame["sample"].nunique() < MIN_SAMPLES:
        few = f"The hidden split {split!r} has fewer than {MIN_SAMPLES} answered samples, too few for a ranking."
        return _shape(scope)([], [few], runs)
    counted = "half of the hidden split, drawn once, whose score ranks" if half else "the whole hidden split"
    board = _keyed_board(scope, frame, levels=False)
    return replace(board, runs=runs, half=half, apart=(), withheld=f"This counts {counted}. No letters and no levels.")


def _hidden_answers(scope: Scope, split: str, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that count, the runs that read some of them, and whether half of the split is kept back."""
    if scope.level or scope.question_type:
        raise BadScope(f"The hidden split {split!r} is only shown as a whole: remove the other filters.")
    read, runs = read_by_judges(scope)
    samples = _answered_by(scope.benchmark.samples.in_use().filter(split=split), model)
    frame = _named(_marked(scope, samples, read), scope)
    kept = kept_half(scope.benchmark, frame["group"])
    return (frame, runs, False) if kept is None else (frame[kept], runs, True)


def kept_half(benchmark: Benchmark, groups: "pd.Series[str]") -> "pd.Series[bool] | None":
    """Which of these groups are of the half of hidden splits that is kept back; None where nothing is."""
    rules = SubmissionRules.objects.filter(benchmark=benchmark).first()
    if rules is None or not rules.private_half:
        return None
    return groups.map({group: is_kept(seed=rules.seed, cluster=group) for group in groups.unique()}).astype(bool)
