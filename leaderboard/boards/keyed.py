"""The boards of answers held against keys: multiple choice and yes or no.

Answer keys are hidden, and whoever knows what a model answered would learn a key from a number about few samples.
Live, these boards are staff's, but for keys open to all; everybody else sees editions (``leaderboard.hidden``).
In an edition a model has the numbers, and the levels, of which no combination is about fewer than LEAST samples
(``stats.disclosure``). A hidden split is shown as a whole alone, by its kept half (ADR 11).
"""

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
from leaderboard.boards.base import Board, Row, number, share
from leaderboard.hidden import hidden_split, open_samples, refuse_live
from leaderboard.methods import SEED
from leaderboard.scope import PEOPLE, BadScope, Scope
from stats.answers import yes_no_scores
from stats.disclosure import LEAST, Cell, tellable, tells_of_few
from stats.means import places_of_means
from stats.proportions import mean, rate, rate_by_sizes
from stats.results import Estimate

NO_ANSWERS = "No answers to questions with a key yet."
YES_NO = ("accuracy", "precision", "recall", "f1", "yes_ratio")
REST_ON_SAID = ("precision", "recall", "f1")  # from these, what is right among the answers yes follows
CIRCULAR = "circular-"
STEPS = (marked_responses.LABEL, marked_responses.JUDGE, marked_responses.RANDOM)
WITHHELD = f"Levels, and other numbers, that could tell about fewer than {LEAST} samples are left out."
Told = dict[str, Cell]  # the numbers that an edition tells of a model, by what they are of


def models(scope: Scope) -> Board:
    """Accuracy of every model on questions with a key (MMBench, Tables 2 and 4; POPE).

    Multiple choice: the one pass as it stands (``vanilla``), right in every rotation (``circular``) and the difference
    of the two, by every level of the tree; how the options were found. Yes or no: accuracy, precision, recall, F1 and
    the share of yes. ``extra``: ``items`` (samples), ``depths`` (paths of levels by their depth), ``letters`` (shares
    of the chosen options, by model, and of the key), ``levels`` of yes or no, ``withheld`` in words.
    """
    refuse_live(scope)
    split = hidden_split(scope)
    if split is not None:
        return _of_hidden(scope, split)
    frame, runs = _counted(scope)
    if frame.empty:
        return Board([], [NO_ANSWERS], runs)
    rows, extra = _rows(scope, frame, levels=True)
    withheld = WITHHELD if scope.edition else ""
    return Board(rows, [], runs, extra | {"items": int(frame["sample"].nunique()), "withheld": withheld})


def counted_answers(scope: Scope, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that the board counts, one row each (see ``keyed.answered``), its runs, and whether numbers by level
    may stand beside the whole; of one ``model``, or of all. Raises BadScope.
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
    return _named(marked_responses.answered(scope.benchmark, samples, kind=scope.kind.question, read=read), scope), runs


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


def _rows(scope: Scope, frame: pd.DataFrame, *, levels: bool) -> tuple[list[Row], Row]:
    asked = frame["sample"].nunique()
    depths = _depths(scope, frame) if levels else []
    told = told_of_models(scope, frame, levels=levels) if scope.edition else None
    if told is not None:
        frame = frame[frame["model"].isin(told)]
        depths = [shown for paths in depths if (shown := [p for p in paths if any(p in one for one in told.values())])]
    rows: list[Row] = []
    ranked: list[pd.DataFrame] = []
    extra: Row = {"depths": depths, "letters": {}, "key": {}, "levels": {}, "ranked_by": "accuracy"}
    rotated = bool(frame["variant"].str.startswith(CIRCULAR).any())
    for name, mine in sorted(frame.groupby("model"), key=lambda pair: str(pair[0]).casefold()):
        one = mine[mine["variant"] == ""]
        row: Row = {"model": name, "rank": None}
        own = told[str(name)] if told is not None else None
        paths = [path for depth in depths for path in depth if own is None or path in own]
        if scope.kind.rotates:
            every = every_rotation(mine)
            n = one["sample"].nunique()
            if own is not None:
                one = one if ONE in own else one.iloc[:0]
                every = every if EVERY in own else every.iloc[:0]
            row |= _accuracies(one, every, told=own is not None)
            if own is not None and BOTH not in own:
                row |= number("difference", None)
            within = one if own is None or EVERY not in own else one.iloc[:0]
            row["levels"] = {path: _level(mine, within, every, path, told=own is not None) for path in paths}
            row["extraction"] = {step: int(((mine["how"] == step) & (mine["said"] != "")).sum()) for step in STEPS}
            row["extraction"] |= {
                "none": int(((mine["said"] == "") & (mine["how"] != marked_responses.NO_TEXT)).sum()),
                "no_text": int((mine["how"] == marked_responses.NO_TEXT).sum()),
            }
            extra["letters"][name] = _shares(mine[mine["variant"] == ""]["said"])
            counted = every if rotated else one
        else:
            n = one["sample"].nunique()
            row |= _yes_no(one, told=own is not None)
            if own is not None and not own.keys() >= {*SAID.values()}:
                for measure in REST_ON_SAID:
                    row |= number(measure, None)
            extra["levels"][name] = {
                path: number("accuracy", _right(_below(one, path), told=own is not None))
                | {"n": len(_below(one, path))}
                for path in paths
            }
            counted = one
        row |= {"n": int(n), "coverage": share(int(n), asked)}
        rows.append(row)
        if len(counted):
            ranked.append(counted.assign(place=len(rows) - 1))
    _rank(rows, ranked)
    if scope.kind.rotates:
        extra["ranked_by"] = "circular" if rotated else "vanilla"
        # Of an edition not: a letter may be the key of few, and a model may always say one letter but for few.
        extra["key"] = _shares(frame.drop_duplicates("sample")["key"]) if told is None else {}
    rows.sort(key=lambda row: (row["rank"] is None, row["rank"] or 0, row["model"]))
    return rows, extra


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


def _right(frame: pd.DataFrame, *, told: bool) -> Estimate | None:
    """The share of right rows. ``told``: for an edition, with an interval that tells no more than the share."""
    if not len(frame):
        return None
    if told:
        return rate_by_sizes(hits=int(frame["right"].sum()), n=len(frame), cluster=frame["group"].to_numpy())
    return rate(hits=frame["right"].to_numpy(), cluster=frame["group"].to_numpy())


def _accuracies(one: pd.DataFrame, every: pd.DataFrame, *, told: bool) -> Row:
    both = one[["sample", "group", "right"]].merge(every[["sample", "right"]], on="sample", suffixes=("", "_every"))
    row = number("vanilla", _right(one, told=told)) | number("circular", _right(every, told=told))
    if told:  # right in every rotation is right in one: what is lost is a share
        lost = both["right"] & ~both["right_every"]
        share_lost = number("difference", _right(both.assign(right=lost), told=True))
        ends = share_lost["difference"], share_lost["difference_high"], share_lost["difference_low"]
        names = ("difference", "difference_low", "difference_high")
        return row | {name: None if end is None else -end or 0.0 for name, end in zip(names, ends, strict=True)}
    change = both["right_every"].astype(float) - both["right"].astype(float)
    drop = mean(values=change.to_numpy(), cluster=both["group"].to_numpy()) if len(both) else None
    return row | number("difference", drop)


def _level(mine: pd.DataFrame, one: pd.DataFrame, every: pd.DataFrame, path: str, *, told: bool) -> Row:
    n = int(_below(mine, path)["sample"].nunique())
    return _accuracies(_below(one, path), _below(every, path), told=told) | {"n": n}


def _yes_no(one: pd.DataFrame, *, told: bool) -> Row:
    codes = {"yes": 1, "no": 0}
    scores = yes_no_scores(
        key=one["key"].map(codes).to_numpy(),
        said=one["said"].map(codes).fillna(-1).astype(int).to_numpy(),
        cluster=one["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    row = {key: value for name in YES_NO for key, value in number(name, getattr(scores, name)).items()}
    return row | _told_yes_no(one) if told else row


def _told_yes_no(one: pd.DataFrame) -> Row:
    """The same shares for an edition; F1 has an interval only where that follows from the counts alone."""
    yes, hits = one["said"] == "yes", (one["said"] == "yes") & (one["key"] == "yes")
    keys = int((one["key"] == "yes").sum())
    shares = {
        "accuracy": _right(one, told=True),
        "precision": _right(one[yes].assign(right=hits[yes]), told=True),
        "recall": rate_by_sizes(hits=int(hits.sum()), n=keys, cluster=one["group"].to_numpy()),
        "yes_ratio": _right(one.assign(right=yes), told=True),
    }
    row = {key: value for name, estimate in shares.items() for key, value in number(name, estimate).items()}
    return row | ({} if one["group"].is_unique else {"f1_low": None, "f1_high": None})


def _shares(said: "pd.Series[str]") -> dict[str, float]:
    """The share of each option among those that were found; ``none`` is of all."""
    named = said[said != ""]
    found = {str(option): float(n / len(named)) for option, n in named.value_counts().sort_index().items()}
    return found | ({"": float((said == "").mean())} if (said == "").any() else {})


def _rank(rows: list[Row], ranked: list[pd.DataFrame]) -> None:
    if not ranked:
        return
    counted = pd.concat(ranked, ignore_index=True)
    codes, at = np.unique(counted["place"].to_numpy(), return_inverse=True)
    places = places_of_means(
        values=counted["right"].to_numpy(np.float64),
        model=at,
        models=len(codes),
        cluster=counted["group"].to_numpy(),
        rng=np.random.default_rng(SEED),
    )
    for place, row in zip(places, codes, strict=True):
        rows[row] |= {"rank": place.rank, "rank_low": place.rank_low, "rank_high": place.rank_high, "tier": place.tier}


# ---- hidden splits ----


def _of_hidden(scope: Scope, split: str) -> Board:
    """A hidden split as a whole: of every model the half that is kept back, or all of it where nothing is kept back."""
    frame, runs, half = _hidden_answers(scope, split)
    if frame["sample"].nunique() < LEAST:
        return Board([], [f"The hidden split {split!r} has fewer than {LEAST} answered samples to rank by."], runs)
    rows, extra = _rows(scope, frame, levels=False)
    said = "half of the hidden split, drawn once, whose score ranks" if half else "the whole hidden split"
    extra |= {"items": int(frame["sample"].nunique()), "withheld": f"Counted is {said}. No letters and no levels."}
    return Board(rows, [], runs, extra | {"letters": {}, "key": {}, "part": "kept" if half else "whole"})


def _hidden_answers(scope: Scope, split: str, model: str = "") -> tuple[pd.DataFrame, tuple[int, ...], bool]:
    """The answers that count, the runs that read some, and whether half of the split is kept back."""
    if scope.level or scope.question_type:
        raise BadScope(f"Of the hidden split {split!r} only whole numbers are shown: leave the other filters out.")
    rules = SubmissionRules.objects.filter(benchmark=scope.benchmark).first()
    read, runs = read_by_judges(scope)
    samples = _answered_by(scope.benchmark.samples.in_use().filter(split=split), model)
    frame = _named(marked_responses.answered(scope.benchmark, samples, kind=scope.kind.question, read=read), scope)
    if rules is None or not rules.private_half:
        return frame, runs, False
    kept = {group: is_kept(seed=rules.seed, cluster=group) for group in frame["group"].unique()}
    return frame[frame["group"].map(kept).astype(bool)], runs, True
