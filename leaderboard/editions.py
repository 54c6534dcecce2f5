"""Publishing boards that rest on hidden keys or weights, so that no two states of them tell one sample's.

A cell is one number: of a model, over all samples or a level of them. What it owes to hidden inputs is, sample by
sample, the key, the weights and the reading of the answer. Two cells that differ in that for one sample give its key
away to whoever knows the answers; so between an edition and every earlier one, and between a level and the whole, they
differ for none or for LEAST samples. Corrections wait until so many have gathered.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from django.db import transaction

from accounts import audit
from accounts.secrets import keyed as keyed_hash
from bank.actions import BadInput
from bank.models import Benchmark, User
from judging.models import Run
from leaderboard import points, votes
from leaderboard.boards import Board, graded, keyed, models
from leaderboard.hidden import LEAST, hidden_split, rests_on_hidden
from leaderboard.models import Edition
from leaderboard.scope import KEYED, BadScope, Scope, scope_of

Cell = Mapping[str, str]  # by sample: what it gives to the number, as a hash
KEYS = "(the key)"  # whose shares of letters stand beside the models'
TOLD = 5  # reasons that are told at once


class Refused(BadInput):
    """An edition that would tell too much, or nothing new; says why."""


@dataclass(frozen=True, slots=True)
class Cells:
    """What the numbers of an edition are made of."""

    models: dict[str, dict[str, str]]  # by model and sample: a hash of key, weights and reading
    paths: dict[str, str]  # by sample: its capability
    levels: dict[str, list[str]]  # by model: the levels that are told of it

    def of(self, model: str, level: str) -> Cell:
        whole = self.models.get(model, {})
        return whole if not level else {s: one for s, one in whole.items() if _is_below(self.paths[s], level)}

    def sealed(self) -> str:
        text = json.dumps([self.models, self.paths, self.levels])
        return base64.b64encode(zlib.compress(text.encode())).decode()

    @classmethod
    def opened(cls, text: str) -> "Cells":
        return cls(*json.loads(zlib.decompress(base64.b64decode(text))))


def runs_to_read(scope: Scope) -> list[Run]:
    """The finished runs of which one may be an edition's, newest first."""
    runs = votes.judged_runs(replace(scope, staff=False)).filter(state=Run.State.FINISHED)
    return list(runs.order_by("-pk"))


def usual_run(scope: Scope) -> Run | None:
    """The run of the last edition; of the first one the newest finished run, where answers need reading."""
    last = _earlier(scope).last()
    if last is not None:
        return last.run
    people = scope.kind not in KEYED and not graded.outcomes(replace(scope, edition=True))[0].empty
    return None if people else next(iter(runs_to_read(scope)), None)


def publish(
    *,
    benchmark: Benchmark,
    kind: str,
    split: str = "",
    run: Run | None = None,
    by: User | None = None,
    command: str = "",
) -> Edition:
    """Publish the board of models as it is now. ``run`` is the judge's whose readings or points count, none: nobody's,
    of components people's. Raises Refused.
    """
    try:
        scope = scope_of(benchmark=benchmark, kind=kind, split=split, run=run.pk if run else None)
        scope = replace(scope, edition=True)
        if run is not None and run not in runs_to_read(scope):
            raise Refused(f"Run {run.pk} is not a finished run whose verdicts this board could count.", "run")
        with transaction.atomic():
            Benchmark.objects.select_for_update().get(pk=benchmark.pk)
            edition = _publish(scope, run, by)
            about = f"{benchmark}, {kind}{', ' + split if split else ''}, edition {edition.number}"
            audit.record("edition-published", by=by, command=command, about=about)
            return edition
    except BadScope as error:
        raise Refused(str(error)) from None


def _publish(scope: Scope, run: Run | None, by: User | None) -> Edition:
    if not rests_on_hidden(scope):
        raise Refused("Nothing hidden is in this board: everybody sees it live.")
    board = models(scope)
    if not board.rows:
        raise Refused(f"No model has answers to {LEAST} samples or more that could be counted.")
    cells, earlier = cells_of(scope, board), list(_earlier(scope))
    if reasons := list(refusals(cells, [Cells.opened(one.cells) for one in earlier])):
        more = f" And {len(reasons) - TOLD} more." if len(reasons) > TOLD else ""
        raise Refused(
            f"This edition would tell about fewer than {LEAST} samples. "
            f"{' '.join(reasons[:TOLD])}{more} Wait until {LEAST} changes have gathered."
        )
    text = json.dumps({"rows": board.rows, "notes": board.notes, "extra": board.extra})
    if earlier and earlier[-1].board == text:
        raise Refused(f"Nothing has changed since edition {earlier[-1].number}.")
    return Edition.objects.create(
        benchmark=scope.benchmark,
        kind=scope.kind,
        split=hidden_split(scope) or "",
        number=(earlier[-1].number if earlier else 0) + 1,
        run=run,
        board=text,
        cells=cells.sealed(),
        by=by,
    )


def _earlier(scope: Scope) -> Any:
    found = Edition.objects.filter(benchmark=scope.benchmark, kind=scope.kind, split=hidden_split(scope) or "")
    return found.order_by("number")


# ---- what numbers are made of ----


def cells_of(scope: Scope, board: Board) -> Cells:
    """What the numbers of this board, computed for an edition, are made of."""
    if scope.kind in KEYED:
        frame, _, _ = keyed.counted_answers(scope)
        frame = frame.sort_values(["model", "sample", "variant"])
        said = frame["key"] + "\x1f" + frame["variant"] + "=" + frame["said"] + "/" + frame["how"]
        paths = frame.drop_duplicates("sample").set_index("sample")["path"]
    else:
        frame, _ = graded.verdicts_on_models(scope)
        frame = frame[frame["model"] != ""].sort_values(["model", "sample", "item"])
        said = points.made_of(scope, frame)
        paths = pd.Series("", index=frame["sample"].unique())
    given = said.groupby([frame["model"], frame["sample"]]).agg("\x1e".join)
    made: dict[str, dict[str, str]] = {}
    for (model, sample), text in given.items():
        made.setdefault(str(model), {})[str(sample)] = keyed_hash("cell", text)[:16]
    if scope.kind == "choice":
        keys = frame.drop_duplicates("sample").set_index("sample")["key"]
        made[KEYS] = {str(sample): keyed_hash("cell", key)[:16] for sample, key in keys.items()}
    within = board.extra.get("levels", {})
    levels = {
        str(row["model"]): list(row["levels"] if scope.kind == "choice" else within.get(row["model"], []))
        for row in (board.rows if scope.kind in KEYED else ())
    }
    return Cells(made, {str(sample): str(path) for sample, path in paths.items()}, levels)


def _is_below(path: str, level: str) -> bool:
    return path == level or path.startswith(f"{level} / ")


# ---- what they may not tell ----


def refusals(new: Cells, earlier: list[Cells]) -> Iterator[str]:
    """Why these numbers may not be published after the earlier ones, one sentence a cell. Names no sample."""
    for model in new.models:
        whole, levels = new.of(model, ""), new.levels.get(model, [])
        if len(whole) < LEAST:
            yield f"{model} has answers to {len(whole)} samples."
        for level in levels:
            size = len(new.of(model, level))
            if size < LEAST or _is_few(len(whole) - size):
                yield f"{level} of {model} is about {size} samples of {len(whole)}."
        for number, old in enumerate(earlier, start=1):
            if model not in old.models:
                continue
            for level in ("", *(one for one in levels if one in old.levels.get(model, []))):
                apart = differing(new.of(model, level), old.of(model, level))
                if _is_few(apart):
                    where = f"{level} of {model}" if level else model
                    yield f"{where} differs from edition {number} in {apart} sample{'' if apart == 1 else 's'}."


def differing(one: Cell, other: Cell) -> int:
    """For how many samples two cells owe something else to hidden inputs."""
    return sum(one.get(sample) != other.get(sample) for sample in {*one, *other})


def _is_few(n: int) -> bool:
    return 0 < n < LEAST
