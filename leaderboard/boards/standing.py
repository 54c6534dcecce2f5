"""How the numbers of a view stand: as of when, and what is kept back of them while people label blind."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from django.db.models import QuerySet

from annotations.models import Label
from bank import exposure, guard
from leaderboard.boards.base import view_in_json
from leaderboard.hidden import (
    blind_items,
    blind_since,
    counts_sealed,
    last_day,
    of_one_source,
    sealed_items,
    until_in_words,
    without_sealed,
)
from leaderboard.kept.values import key_of, until_changed
from leaderboard.scope import Scope
from leaderboard.sight import JUDGES, MODELS, Sight, State
from leaderboard.votes.scores import counted_labels, items_asked
from stats.figures import number_of


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a view counts of items that people label blind: of how many it counts what was said before (``again``), how
    many are left out since they are ``few``, and how many have nothing that counts (``first``). It says nothing that a
    label of an open round moves. ``beside``: what is said of hidden splits, in words.
    """

    again: int = 0
    few: int = 0
    first: int = 0
    since: datetime | None = None  # the earliest of these rounds was opened
    until: date | None = None  # None: until they close
    beside: tuple[str, ...] = ()

    @property
    def items(self) -> int:
        """On so many nothing new counts."""
        return self.again + self.few + self.first

    @property
    def closed(self) -> bool:
        """Whether the numbers are of an earlier state."""
        return self.again > 0

    @property
    def as_of(self) -> str:
        """``14 Nov 2026``."""
        return f"{self.since:%-d %b %Y}" if self.since else ""

    @property
    def until_when(self) -> str:
        return until_in_words(self.until)

    @property
    def which(self) -> str:
        """``112 items are being labelled again until 4 Dec 2026``."""
        return self._which()

    @property
    def which_blind(self) -> str:
        """The same, and that who labels sees nobody's labels."""
        return self._which(", blind,")

    def _which(self, blind: str = "") -> str:
        n = self.again or self.items
        again = " again" if self.again else ""
        return f"{number_of(n, 'item')} {_are(n)} being labelled{again}{blind} {self.until_when}"

    @property
    def in_short(self) -> str:
        """One line for small places; "" where no number stands still."""
        return f"As of {self.as_of}; {self.which}" if self.again else ""

    @property
    def more(self) -> list[str]:
        """What else is kept back, a sentence each."""
        found = []
        if self.few:
            which = f"{number_of(self.few, 'more item' if self.again else 'item')} that people label again"
            left_out = f"{self.until_when} {_are(self.few)} left out"
            found.append(f"{which} {left_out}: numbers of few would tell single verdicts.")
        if self.first and self.again:
            found.append(self._of_first)
        return [*found, *self.beside]

    @property
    def notes(self) -> list[str]:
        """All of it, for what has no place for a band."""
        found = []
        if self.again:
            since = f"As of {self.as_of}, the last closed state"
            found.append(f"{since}: {self.which}, and what is said of these now counts when that round closes.")
        elif self.first:
            found.append(self._of_first)
        return [*found, *self.more]

    @property
    def _of_first(self) -> str:
        which = f"{number_of(self.first, 'item')} {_are(self.first)} being labelled {self.until_when}"
        return f"{which}, and {'counts' if self.first == 1 else 'count'} when that round closes."


NONE_OPEN = Rounds()


def rounds_of(scope: Scope) -> Rounds:
    """What a view keeps back while rounds are open; nothing for staff, who see it all. Kept until it may change."""
    if scope.kind.keyed or not scope.by_people or not counts_sealed(scope):
        return NONE_OPEN
    key = key_of(view_in_json(scope, "rounds"))
    return until_changed(("rounds", key), lambda: _rounds(scope), benchmark=scope.benchmark.pk)


def rounds_beside_people(scope: Scope) -> Rounds:
    """The same of a view in which judges are compared with people."""
    return rounds_of(without_sealed(scope))


@guard.working()
def _rounds(scope: Scope) -> Rounds:
    blind, everything = blind_items(scope.benchmark).keys(), replace(scope, staff=True, singly=False)
    asked = set(items_asked(everything).index)
    counted = _labelled(counted_labels(scope, every=True)) & set(items_asked(scope).index)
    before = _labelled(counted_labels(everything, every=True).filter(exposure.said_before()))
    again, few = len(counted & blind), len((before & asked & blind) - counted)
    first = len(asked & blind) - again - few
    beside = tuple(_of_hidden_splits(scope, asked, counted))
    if not again + few + first:
        return Rounds(beside=beside)
    return Rounds(again, few, first, blind_since(scope), last_day(scope), beside)


def _are(n: int) -> str:
    return "is" if n == 1 else "are"


def _labelled(labels: QuerySet[Label]) -> set[int]:
    return set(labels.order_by().values_list("item", flat=True).distinct())


def _of_hidden_splits(scope: Scope, asked: set[int], counted: set[int]) -> Iterator[str]:
    sealed = (sealed_items(scope.benchmark) - blind_items(scope.benchmark).keys()) & asked
    everything = replace(scope, staff=True, singly=False)
    given = _labelled(counted_labels(everything, every=True)) & sealed
    told = given & counted
    if told:
        count = "counts" if len(told) == 1 else "count"
        items = number_of(len(told), "item")
        yield f"{items} of a hidden split {count} in the whole, and in no part by level or length."
    if left := len(given - counted):
        which = f"{number_of(left, 'more labelled item' if told else 'labelled item')} of a hidden split {_are(left)}"
        yield f"{which} left out: numbers of few would tell single verdicts."


def state_of(scope: Scope, board: str) -> dict[str, Any]:
    """What each row of a table beside this board says of its state: ``as_of`` when, if that is not now, and what is
    ``kept_back`` of it, of how many items and until which day, if one is known (design: Contract).
    """
    sight = Sight(scope, {"models": MODELS, "judges": JUDGES}.get(board))
    if sight.state == State.EDITION and sight.edition:
        return {"as_of": sight.edition.published_at.isoformat()}
    rounds = rounds_of(of_one_source(scope)) if board == "models" else rounds_beside_people(scope)
    state: dict[str, Any] = {"as_of": rounds.since.isoformat() if rounds.closed and rounds.since else None}
    if rounds.items:
        until = rounds.until.isoformat() if rounds.until else None
        state["kept_back"] = {"items": rounds.items, "until": until}
    return state
