"""What a viewer sees of a board: live numbers, an edition, or nothing and why. A door asks it once and hands it on.

Boards that depend on hidden inputs, answer keys of splits that are not open or weights of hidden components, are live
for staff alone: anybody who knows what models answered can read a key off two states of the board. Everybody else sees
the newest edition that a curator published; ``editions`` says how one is made and what it must not reveal. Pairs and
scores are live for everybody, without verdicts that held keys, and without those that held closed text on answers from
outside: these count in editions alone. Which verdicts count in a live view says ``hidden``.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from leaderboard.hidden import hidden_split, rests_on_hidden
from leaderboard.kept.values import until_changed
from leaderboard.models import Edition
from leaderboard.scope import ELO, HUMANS, NO_ELO, BadScope, Scope, changed

MODELS, JUDGES = Edition.What.MODELS, Edition.What.JUDGES
NONE_YET = "No edition of this board is published yet: it depends on hidden answers, so only staff see it until then."
AS_A_WHOLE = (
    "This board depends on hidden answers or weights. You see a published edition as a whole: without filters, "
    "and with the verdicts and definitions that the edition was made from."
)
STAFFS = "This depends on hidden answers or weights. Everybody may see published editions of the boards."
BESIDE = "This board is seen by its editions, which tell nothing beside their rows."


class Withheld(BadScope):
    """The view depends on hidden inputs that this viewer may not see."""


class State(StrEnum):
    LIVE = "live"
    EDITION = "edition"  # the newest one, in place of live numbers
    KEPT_BACK = "kept back"
    FROZEN = "frozen"  # a snapshot


@dataclass(frozen=True)
class Sight:
    """What its viewer sees of a board in one view. ``of``: whose editions stand in its place, of other boards none."""

    scope: Scope
    of: Edition.What | None = None
    frozen: bool = False

    @cached_property
    def state(self) -> State:
        if self.frozen:
            return State.FROZEN
        if not (self.only_editions or self._stands_in()):
            return State.LIVE
        return State.EDITION if self.edition else State.KEPT_BACK

    @property
    def live(self) -> bool:
        return self.state == State.LIVE

    @cached_property
    def sealed(self) -> bool:
        """Whether visitors see editions of these numbers, or of some of them."""
        return rests_on_hidden(self.scope)

    @cached_property
    def only_editions(self) -> bool:
        """Whether the viewer sees, of this kind of verdict, editions alone: no other board, no part, no row behind."""
        return not self.scope.staff and not self.scope.edition and bool(self.scope.kind.hidden) and self.sealed

    def _stands_in(self) -> bool:
        """Whether an edition of pairs or scores stands in for this view: it has no filters and the usual source. Other
        views are live, without the verdicts that only editions count.
        """
        scope = self.scope
        if self.of != MODELS or scope.staff or scope.edition or scope.kind.hidden or scope.source != HUMANS:
            return False
        if scope.narrowed or scope.half or scope.run or scope.majority or changed(scope):
            return False
        anchor = scope.benchmark.anchor.name if scope.benchmark.anchor else ""
        return scope.anchor == anchor and scope.elo in (ELO[0], NO_ELO) and self.edition is not None

    @cached_property
    def edition(self) -> Edition | None:
        """The newest one, whether it is what this viewer sees or not."""
        return _newest_edition(self.scope, self.of) if self.of else None

    @property
    def reason(self) -> str:
        """Why nothing stands there, of what an edition does not hold; "" where something may."""
        if self.state == State.EDITION:
            return BESIDE
        if self.state == State.KEPT_BACK:
            return NONE_YET if self.of else STAFFS
        return ""

    @property
    def refusal(self) -> str:
        """Why the view cannot be asked for: it is a part of an edition, or of other verdicts than the edition's."""
        scope = self.scope
        other_split = scope.split if scope.split != hidden_split(scope) else ""
        part = scope.level or scope.question_type or scope.campaign or other_split
        other = part or scope.run or scope.source != HUMANS or changed(scope)
        return AS_A_WHOLE if self.of and self.only_editions and other else ""

    @property
    def versions(self) -> list[int | None]:
        """What an edition is shown by, in place of the data that a live view is computed from."""
        newest = (_newest_edition(self.scope, what) for what in Edition.What)
        return [edition.pk if edition else None for edition in newest]


def refuse_live(scope: Scope) -> None:
    """Raises Withheld if this viewer may not see live numbers of this kind of verdict: what reads keys asks again,
    whatever its door has asked.
    """
    if Sight(scope).only_editions:
        raise Withheld(STAFFS)


def _newest_edition(scope: Scope, what: Edition.What) -> Edition | None:
    kind, split = scope.kind.name, hidden_split(scope) or ""

    def find() -> Edition | None:
        editions = Edition.objects.filter(benchmark=scope.benchmark, what=what, kind=kind, split=split)
        return editions.defer("cells").order_by("-number").first()

    return until_changed(("edition", scope.benchmark.pk, what, kind, split), find, benchmark=scope.benchmark.pk)
