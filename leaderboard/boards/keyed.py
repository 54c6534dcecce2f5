"""The boards of answers held against keys: multiple choice and yes or no.

Answer keys are hidden, and whoever knows what a model answered would learn a key from a number about few samples.
Live, these boards are staff's, but for keys open to all; everybody else sees editions (``leaderboard.hidden``).
In an edition a model has the numbers, and the levels, of which no combination is about fewer than LEAST samples
(``stats.disclosure``). A hidden split is shown as a whole alone, by its kept half (ADR 11).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from django.db.models import QuerySet

from accounts.installation_key import keyed as keyed_hash
from bank.models import EvaluatedModel, Response, Sample, Submission, SubmissionRules
from bank.models.items import ItemResponse
from bank.submissions import marked_responses
from bank.submissions.scoring import is_kept
from judging.models import Judgment, Run
from leaderboard import votes
from leaderboard.boards.base import Level, ModelRow, ModelsBoard, by_rank, ranks, share
from leaderboard.hidden import hidden_split, open_samples, refuse_live
from leaderboard.methods import SEED
from leaderboard.rows import UNKNOWN, Number, number
from leaderboard.scope import PEOPLE, BadScope, Scope
from stats.answers import yes_no_scores
from stats.disclosure import LEAST, Cell, tellable, tells_of_few
from stats.proportions import mean, rate, rate_by_sizes
from stats.ranks import Place, places_of_means

NO_ANSWERS = "No answers to questions with a key yet."
REST_ON_SAID = ("precision", "recall", "f1")  # from these, what is right among the answers yes follows
CIRCULAR = "circular-"
STEPS = (marked_responses.LABEL, marked_responses.JUDGE, marked_responses.RANDOM)
WITHHELD = f"Levels, and other numbers, that could tell about fewer than {LEAST} samples are left out."
VANILLA, CIRCULAR_ACCURACY, ACCURACY = "vanilla", "circular", "accuracy"  # what can rank
K = TypeVar("K", bound=ModelRow)
Told = dict[str, Cell]  # the numbers that an edition tells of a model, by what they are of


@dataclass(frozen=True, kw_only=True)
class ChoiceLevel(Level):
    vanilla: Number = UNKNOWN
    circular: Number = UNKNOWN
    difference: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class ChoiceRow(ModelRow):
    """Right in the one pass as it stands, right in every rotation, the second minus the first; and how many answers'
    options were found in which way.
    """

    vanilla: Number = UNKNOWN
    circular: Number = UNKNOWN
    difference: Number = UNKNOWN
    levels: dict[str, ChoiceLevel] = field(default_factory=dict)
    extraction: dict[str, int] = field(default_factory=dict)
    n: int
    coverage: float | None = None


@dataclass(frozen=True, kw_only=True)
class YesNoLevel(Level):
    accuracy: Number = UNKNOWN
    n: int


@dataclass(frozen=True, kw_only=True)
class YesNoRow(ModelRow):
    accuracy: Number = UNKNOWN
    precision: Number = UNKNOWN
    recall: Number = UNKNOWN
    f1: Number = UNKNOWN
    yes_ratio: Number = UNKNOWN
    levels: dict[str, YesNoLevel] = field(default_factory=dict)
    n: int
    coverage: float | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyedBoard(ModelsBoard):
    """``depths``: paths of levels by their depth; ``withheld``: in words; ``half``: only that of a split which is kept
    back was counted.
    """

    depths: list[list[str]] = field(default_factory=list)
    withheld: str = ""
    half: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class ChoiceBoard(KeyedBoard):
    """``letters``: shares of the chosen options by model, and ``right`` of the right ones."""

    rows: Sequence[ChoiceRow] = field(default=(), kw_only=False)
    ranked_by: str = VANILLA
    letters: dict[str, dict[str, float]] = field(default_factory=dict)
    right: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class YesNoBoard(KeyedBoard):
    rows: Sequence[YesNoRow] = field(default=(), kw_only=False)
    ranked_by: str = ACCURACY


def models(scope: Scope) -> KeyedBoard:
    """Accuracy of every model on questions with a key (MMBench, Tables 2 and 4; POPE), by every level of the tree."""
    refuse_live(scope)
    split = hidden_split(scope)
    if split is not None:
        return _of_hidden(scope, split)
    frame, runs = _counted(scope)
    if frame.empty:
        return KeyedBoard([], [NO_ANSWERS], runs)
    board = _board(scope, frame, levels=True)
    return replace(board, runs=runs, withheld=WITHHELD if scope.edition else "")


def counted_answers(scope: Scope, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that the board counts (columns: ``marked_responses.as_frame``), its runs, and whether it has numbers
    by level; of one ``model``, or of all. Raises BadScope.
    """
    refuse_live(scope)
    split = hidden_split(scope)
    if split is not None:
        frame, runs, _ = _hidden_answers(scope, split, model)
    else:
        frame, runs = _counted(scope, model)
    return frame[frame["model"] == model] if model else frame, runs, split is None


def _answered_by(samples: QuerySet[Sample], model: str) -> QuerySet[Sample]:
    return samples.filter(pk__in=Response.objects.filter(model__name=model).values("sample")) if model else samples


def _counted(scope: Scope, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...]]:
    read, runs = read_by_judges(scope)
    samples = _answered_by(votes.samples_in(scope).exclude(split__in=scope.benchmark.hidden_splits), model)
    return _named(marked_responses.as_frame(scope.benchmark, samples, kind=scope.kind.question, read=read), scope), runs


# ---- what an edition tells ----

EVERY, ONE, BOTH, RIGHT = "all rotations", "one pass", "the difference", "right answers"
SAID = {"yes": "answers yes", "no": "answers no", "": "answers that are neither"}


def told_of_models(scope: Scope, frame: pd.DataFrame, *, levels: bool) -> dict[str, Told]:
    """What the numbers that an edition tells of each model are made of; of models that are not in it nothing.

    The numbers: ``EVERY`` and ``ONE`` pass of multiple choice, the first of them by level, too, and ``BOTH``, the one
    pass of what was answered in every rotation, which the difference rests on; ``RIGHT`` of yes or no, by level, too,
    and what precision, recall and F1 rest on. A sample gives what follows from its key: one whose answer names nothing,
    or another option in each rotation, is wrong whatever the key is, and one whose key is open tells nothing new.
    """
    frame = frame.assign(given=_given(frame), open=frame["sample"].isin(open_samples(scope)))
    paths = [path for depth in (_depths(scope, frame) if levels else []) for path in depth]
    tell = _of_choice if scope.kind.rotates else _of_yes_no
    found = {}
    for name, mine in frame.groupby("model"):
        told = tell(mine)
        if told:
            _add_levels(told, mine, paths)
            found[str(name)] = told
    return found


def _given(frame: pd.DataFrame) -> "pd.Series[str]":
    pairs = frame["key"] + "\x1f" + frame["said"]
    return pairs.map({pair: keyed_hash("cell", pair)[:16] for pair in pairs.unique()})


def _cell(rows: pd.DataFrame) -> Cell:
    rows = rows[~rows["open"]]
    return dict(zip(rows["sample"].astype(str), rows["given"], strict=True))


def _of_choice(mine: pd.DataFrame) -> Told:
    passes = mine[(mine["variant"] == "") | mine["variant"].str.startswith(CIRCULAR)]
    complete = passes[passes["sample"].isin(every_rotation(mine)["sample"])]
    the_same = complete.groupby("sample")["said"].transform("nunique") == 1
    first = complete["variant"] == ""
    of = {EVERY: complete[the_same & first], ONE: mine[mine["variant"] == ""], BOTH: complete[first]}
    return tellable({name: _cell(rows[rows["said"] != ""])} for name, rows in of.items() if len(rows))


def _of_yes_no(mine: pd.DataFrame) -> Told:
    one = mine[mine["variant"] == ""]
    right = _cell(one[one["said"] != ""])
    if not len(one) or tells_of_few([right]):
        return {}
    return tellable([{RIGHT: right}, {name: _cell(one[one["said"] == said]) for said, name in SAID.items()}])


def _add_levels(told: Told, mine: pd.DataFrame, paths: list[str]) -> None:
    """The largest first, so that a small one is what stays untold beside its neighbours."""
    whole = next(iter(told.values()))
    of = dict(zip(mine["sample"].astype(str), mine["path"], strict=True))
    cells = {path: {s: given for s, given in whole.items() if is_below(of[s], path)} for path in paths}
    for path, cell in sorted(cells.items(), key=lambda pair: (-len(pair[1]), paths.index(pair[0]))):
        above = path.rpartition(" / ")[0]
        if (above in told or not above) and not tells_of_few([*told.values(), cell]):
            told[path] = cell


def is_below(path: str, level: str) -> bool:
    return path == level or path.startswith(f"{level} / ")


# ---- what answers say ----


def read_by_judges(scope: Scope) -> tuple[dict[int, tuple[str, str]], tuple[int, ...]]:
    """What a judge read in answers that name no option themselves, by response; and its runs.

    The source's judge; without one, the newest run that read any. An edition has one finished run, or none.
    """
    runs = votes.judged_runs(scope)
    if scope.edition and scope.run is None:
        return {}, ()
    if scope.run is not None:
        runs = runs.filter(pk=scope.run)
        if not runs:
            raise BadScope(f"There is no run {scope.run} that read answers of {scope.benchmark}.")
    elif scope.source not in PEOPLE:
        runs = Run.objects.filter(pk__in=[run.pk for run in votes.runs_of(scope, scope.source)])
    else:
        newest = runs.order_by("pk").last()
        runs = runs.filter(pk=newest.pk) if newest else runs.none()
    ids = tuple(runs.order_by("pk").values_list("pk", flat=True))
    told = Judgment.objects.filter(run__in=ids, status=Judgment.Status.OK, repeat=0).order_by("pk")
    answers = {True: "yes", False: "no"}
    verdicts = {
        item: (option if scope.kind.rotates else answers.get(bool(answer), ""), how or marked_responses.JUDGE)
        for item, option, answer, how in told.values_list("item", "option", "answer", "extraction")
        if option is not None or answer is not None
    }
    places = ItemResponse.objects.filter(item__in=told.values("item"), position=0)
    return {
        response: (str(verdicts[item][0] or ""), verdicts[item][1])
        for item, response in places.values_list("item", "response")
        if item in verdicts
    }, ids


def _named(frame: pd.DataFrame, scope: Scope) -> pd.DataFrame:
    """With the models' names. Of submissions below staff only those that a curator has released."""
    if not scope.staff:
        waiting = Submission.objects.filter(benchmark=scope.benchmark, released_at=None, model__isnull=False)
        frame = frame[~frame["model"].isin(set(waiting.values_list("model", flat=True)))]
    names = dict(EvaluatedModel.objects.filter(pk__in=frame["model"].unique().tolist()).values_list("pk", "name"))
    return frame.assign(model=frame["model"].map(names))


# ---- rows ----


def _board(scope: Scope, frame: pd.DataFrame, *, levels: bool) -> KeyedBoard:
    depths = _depths(scope, frame) if levels else []
    told = told_of_models(scope, frame, levels=levels) if scope.edition else None
    asked = frame["sample"].nunique()
    items = int(asked)
    if told is not None:
        frame = frame[frame["model"].isin(told)]
        in_edition = {path for cells in told.values() for path in cells}
        depths = [shown for paths in depths if (shown := [path for path in paths if path in in_edition])]
    answers = {str(name): own for name, own in sorted(frame.groupby("model"), key=lambda pair: str(pair[0]).casefold())}
    paths = [path for depth in depths for path in depth]
    board = _choice_board if scope.kind.rotates else _yes_no_board
    return replace(board(answers, paths, told, asked), items=items, depths=depths)


def _choice_board(
    answers: dict[str, pd.DataFrame], paths: list[str], told: dict[str, Told] | None, asked: int
) -> ChoiceBoard:
    rotated = any(own["variant"].str.startswith(CIRCULAR).any() for own in answers.values())
    rows, counted = [], {}
    for name, own in answers.items():
        cells = None if told is None else told[name]
        one, every = own[own["variant"] == ""], every_rotation(own)
        n = int(one["sample"].nunique())
        if cells is not None:
            one = one if ONE in cells else one.iloc[:0]
            every = every if EVERY in cells else every.iloc[:0]
        accuracies = _accuracies(one, every, told=cells is not None)
        if cells is not None and BOTH not in cells:
            accuracies["difference"] = UNKNOWN
        within = one if cells is None or EVERY not in cells else one.iloc[:0]
        found = own["said"] != ""
        extraction = {step: int(((own["how"] == step) & found).sum()) for step in STEPS}
        extraction["none"] = int((~found & (own["how"] != marked_responses.NO_TEXT)).sum())
        extraction["no_text"] = int((own["how"] == marked_responses.NO_TEXT).sum())
        row = ChoiceRow(
            model=name,
            **accuracies,
            levels={
                path: ChoiceLevel(
                    **_accuracies(_below(within, path), _below(every, path), told=cells is not None),
                    n=int(_below(own, path)["sample"].nunique()),
                )
                for path in paths
                if cells is None or path in cells
            },
            extraction=extraction,
            n=n,
            coverage=share(n, asked),
        )
        rows.append(row)
        counted[name] = every if rotated else one
    letters = {name: _shares(own[own["variant"] == ""]["said"]) for name, own in answers.items()}
    # Of an edition not: a letter may be the key of few, and a model may always say one letter but for few.
    keys = pd.concat(answers.values()).drop_duplicates("sample")["key"] if answers and told is None else None
    return ChoiceBoard(
        _ranked(rows, counted),
        ranked_by=CIRCULAR_ACCURACY if rotated else VANILLA,
        letters=letters,
        right={} if keys is None else _shares(keys),
    )


def _yes_no_board(
    answers: dict[str, pd.DataFrame], paths: list[str], told: dict[str, Told] | None, asked: int
) -> YesNoBoard:
    rows, counted = [], {}
    for name, own in answers.items():
        cells = None if told is None else told[name]
        one = own[own["variant"] == ""]
        n = int(one["sample"].nunique())
        scores = _yes_no(one, told=cells is not None)
        if cells is not None and not cells.keys() >= {*SAID.values()}:
            scores |= dict.fromkeys(REST_ON_SAID, UNKNOWN)
        row = YesNoRow(
            model=name,
            **scores,
            levels={
                path: YesNoLevel(accuracy=_right(_below(one, path), told=cells is not None), n=len(_below(one, path)))
                for path in paths
                if cells is None or path in cells
            },
            n=n,
            coverage=share(n, asked),
        )
        rows.append(row)
        counted[name] = one
    return YesNoBoard(_ranked(rows, counted))


def _depths(scope: Scope, frame: pd.DataFrame) -> list[list[str]]:
    """The paths of each depth of the tree below the view's level, in the tree's order."""
    paths = frame.drop_duplicates("sample")["path"]
    below = len(scope.level.split(" / ")) if scope.level else 0
    order = list(scope.benchmark.capabilities.order_by("position", "pk").values_list("path", flat=True))
    found: list[list[str]] = []
    shown = {scope.level}
    while True:
        depth = below + len(found)
        here = [path for path in order if len(path.split(" / ")) == depth + 1 and path.rpartition(" / ")[0] in shown]
        shown = {path for path in here if paths.map(lambda one, path=path: is_below(one, path)).any()}
        if not shown:
            return [] if len(found) == 1 and len(found[0]) == 1 else found
        found.append([path for path in here if path in shown])


def _below(frame: pd.DataFrame, path: str) -> pd.DataFrame:
    return frame[(frame["path"] == path) | frame["path"].str.startswith(f"{path} / ")]


def every_rotation(mine: pd.DataFrame) -> pd.DataFrame:
    """One row a sample that was answered in every rotation: ``right`` in all of them. Others are not counted."""
    passes = mine[(mine["variant"] == "") | mine["variant"].str.startswith(CIRCULAR)]
    if not passes["variant"].str.startswith(CIRCULAR).any():
        return passes.iloc[:0]
    by_sample = passes.groupby("sample")
    first = by_sample[["path", "group", "options"]].first()
    first["right"] = by_sample["right"].all()
    return first[by_sample.size() >= first["options"]].reset_index()


def _right(frame: pd.DataFrame, *, told: bool) -> Number:
    """The share of right rows. ``told``: for an edition, with an interval that tells no more than the share."""
    if not len(frame):
        return UNKNOWN
    cluster = frame["group"].to_numpy()
    if told:
        return number(rate_by_sizes(hits=int(frame["right"].sum()), n=len(frame), cluster=cluster))
    return number(rate(hits=frame["right"].to_numpy(), cluster=cluster))


def _accuracies(one: pd.DataFrame, every: pd.DataFrame, *, told: bool) -> dict[str, Any]:
    """``vanilla``, ``circular`` and ``difference`` of the one pass and of what was answered in every rotation."""
    both = one[["sample", "group", "right"]].merge(every[["sample", "right"]], on="sample", suffixes=("", "_every"))
    numbers = {"vanilla": _right(one, told=told), "circular": _right(every, told=told)}
    if told:  # right in every rotation is right in one: what is lost is a share
        lost = _right(both.assign(right=both["right"] & ~both["right_every"]), told=True)
        value, high, low = (None if end is None else -end or 0.0 for end in lost.ends)
        return numbers | {"difference": Number(value, low, high)}
    change = both["right_every"].astype(float) - both["right"].astype(float)
    drop = mean(values=change.to_numpy(), cluster=both["group"].to_numpy()) if len(both) else None
    return numbers | {"difference": number(drop)}


def _yes_no(one: pd.DataFrame, *, told: bool) -> dict[str, Any]:
    """The scores of a ``YesNoRow``."""
    codes = {"yes": 1, "no": 0}
    scores = yes_no_scores(
        key=one["key"].map(codes).to_numpy(),
        said=one["said"].map(codes).fillna(-1).astype(int).to_numpy(),
        cluster=one["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    numbers = {
        "accuracy": number(scores.accuracy),
        "precision": number(scores.precision),
        "recall": number(scores.recall),
        "f1": number(scores.f1),
        "yes_ratio": number(scores.yes_ratio),
    }
    return numbers | _told_yes_no(one, numbers["f1"]) if told else numbers


def _told_yes_no(one: pd.DataFrame, f1: Number) -> dict[str, Number]:
    """The same shares for an edition; F1 has an interval only where that follows from the counts alone."""
    yes, hits = one["said"] == "yes", (one["said"] == "yes") & (one["key"] == "yes")
    keys = int((one["key"] == "yes").sum())
    return {
        "accuracy": _right(one, told=True),
        "precision": _right(one[yes].assign(right=hits[yes]), told=True),
        "recall": number(rate_by_sizes(hits=int(hits.sum()), n=keys, cluster=one["group"].to_numpy())),
        "yes_ratio": _right(one.assign(right=yes), told=True),
        "f1": f1 if one["group"].is_unique else Number(f1.value),
    }


def _shares(said: "pd.Series[str]") -> dict[str, float]:
    """The share of each option among those that were found; ``none`` is of all."""
    named = said[said != ""]
    found = {str(option): float(n / len(named)) for option, n in named.value_counts().sort_index().items()}
    return found | ({"": float((said == "").mean())} if (said == "").any() else {})


def _ranked(rows: list[K], counted: dict[str, pd.DataFrame]) -> list[K]:
    """The rows with their ranks, by rank. ``counted``: by model the answers that rank it."""
    some = {name: frame for name, frame in counted.items() if len(frame)}
    places: dict[str, Place] = {}
    if some:
        frame = pd.concat([one.assign(place=at) for at, one in enumerate(some.values())], ignore_index=True)
        in_order = places_of_means(
            values=frame["right"].to_numpy(np.float64),
            model=frame["place"].to_numpy(),
            models=len(some),
            cluster=frame["group"].to_numpy(),
            rng=np.random.default_rng(SEED),
        )
        places = dict(zip(some, in_order, strict=True))
    return sorted((replace(row, **ranks(places.get(row.model))) for row in rows), key=by_rank)


# ---- hidden splits ----


def _of_hidden(scope: Scope, split: str) -> KeyedBoard:
    """A hidden split as a whole: of every model the half that is kept back, or all of it where nothing is kept back."""
    frame, runs, half = _hidden_answers(scope, split)
    if frame["sample"].nunique() < LEAST:
        few = f"The hidden split {split!r} has fewer than {LEAST} answered samples to rank by."
        return KeyedBoard([], [few], runs)
    counted = "half of the hidden split, drawn once, whose score ranks" if half else "the whole hidden split"
    board = _board(scope, frame, levels=False)
    if isinstance(board, ChoiceBoard):
        board = replace(board, letters={}, right={})
    return replace(board, runs=runs, half=half, withheld=f"Counted is {counted}. No letters and no levels.")


def _hidden_answers(scope: Scope, split: str, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that count, the runs that read some, and whether half of the split is kept back."""
    if scope.level or scope.question_type:
        raise BadScope(f"Of the hidden split {split!r} only whole numbers are shown: leave the other filters out.")
    rules = SubmissionRules.objects.filter(benchmark=scope.benchmark).first()
    read, runs = read_by_judges(scope)
    samples = _answered_by(scope.benchmark.samples.in_use().filter(split=split), model)
    frame = _named(marked_responses.as_frame(scope.benchmark, samples, kind=scope.kind.question, read=read), scope)
    if rules is None or not rules.private_half:
        return frame, runs, False
    kept = {group: is_kept(seed=rules.seed, cluster=group) for group in frame["group"].unique()}
    return frame[frame["group"].map(kept).astype(bool)], runs, True
