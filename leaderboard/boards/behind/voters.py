"""Two voters beside each other, item by item."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from accounts.rules import Viewer, allowed
from annotations.models import Annotator
from bank.forms.fields import whole_number
from judging.protocols.replies import NONE_OF_THEM
from leaderboard import votes
from leaderboard.boards.behind.single_labels import sees_labels
from leaderboard.hidden import sealed_from, without_sealed
from leaderboard.scope import Scope
from leaderboard.votes import scores
from stats.figures import two
from stats.verdicts import majority

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
    """``majority``, ``run-3`` or an annotator's pseudonym, on the items that boards which compare voters count: not all
    of them may be listed (``listed``). Raises NoSuchVoter.
    """
    scope = without_sealed(scope)
    items = scores.items_asked(scope)
    number = whole_number(key.removeprefix("run-")) if key.startswith("run-") else None
    if number is not None:
        name, frame = _of_run(scope, number)
    elif key == MAJORITY:
        name, frame = _of_majority(scope)
    else:
        name, frame = _of_person(scope, key, viewer)
    frame = frame[frame["item"].isin(items.index)]
    if not scope.kind.pairwise:
        numbers = scope.kind.numbers(scope, frame, items)
        frame = numbers[["item"]].assign(choice=numbers["value"].map(in_words))
    return Voter(key, name, frame.set_index("item")["choice"])


def _of_run(scope: Scope, number: int) -> tuple[str, pd.DataFrame]:
    run = votes.judged_runs(scope).filter(pk=number).first()
    if run is None:
        raise NoSuchVoter(f"run-{number}")
    group = list(votes.judged_runs(scope).filter(**run.alike))
    frame = votes.of_runs(scope, group).frame if scope.kind.pairwise else scores.of_runs(scope, group)
    return run.judge.titled, frame[frame["repeat"] == 0]


def _of_majority(scope: Scope) -> tuple[str, pd.DataFrame]:
    # Below staff there may be none that the view counts: the page then says that nothing is in common.
    if scope.kind.pairwise:
        frame = votes.labels_of(scope)[["item", "choice"]]
        if len(frame):
            frame = votes.shown_majority(majority(labels=frame, rule=scope.rule)).reset_index()
    else:
        frame = scores.mean_by_item(scores.labels_of(scope))
    return "people, mean" if scope.kind.by_mean else "people, majority", frame


def _of_person(scope: Scope, pseudonym: str, viewer: Viewer) -> tuple[str, pd.DataFrame]:
    person = Annotator.objects.filter(pseudonym=pseudonym).first() if sees_labels(viewer) else None
    if person is None:
        raise NoSuchVoter(pseudonym)
    labels = votes.labels_of(scope) if scope.kind.pairwise else scores.labels_of(scope)
    return person.shown(named=allowed(viewer, "read-names")), labels[labels["annotator"] == person.pk]


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


def listed(scope: Scope, table: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``side_by_side`` that the viewer may see one by one."""
    return table[~table.index.isin(sealed_from(scope))]


MATCHES: dict[str, Callable[[pd.DataFrame], "pd.Series[bool]"]] = {
    "": lambda table: table["same"].notna(),
    "same": lambda table: table["same"],
    "different": lambda table: ~table["same"],
    # MMBench, 4.3, Cases I and II: one of the two reads no option, or each another one.
    "none": lambda table: ~table["same"] & table[["first", "second"]].eq(NONE_OF_THEM).any(axis=1),
    "options": lambda table: ~table["same"] & table[["first", "second"]].ne(NONE_OF_THEM).all(axis=1),
}
