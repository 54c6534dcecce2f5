"""Why there is no number: one answer for boards, home, the pages of judges and models, and what they print."""

from dataclasses import dataclass
from enum import StrEnum

from bank import guard
from bank.models import Item
from leaderboard import votes
from leaderboard.boards.standing import NONE_OPEN, Rounds, rounds_beside_people, rounds_of
from leaderboard.hidden import of_one_source
from leaderboard.scope import Scope
from leaderboard.sight import JUDGES, MODELS, Sight
from leaderboard.votes.scores import counted_labels
from stats.figures import number_of
from stats.proportions import FEWEST_GROUPS


class Cause(StrEnum):
    """In the order in which they are asked: the first that is true is said. That a page is being drawn, or holds
    nothing under its filters, says who knows it.
    """

    KEPT_BACK = "kept back"
    NONE = "none yet"
    FEW = "too few"


@dataclass(frozen=True, slots=True)
class Empty:
    """``title``: the cause in a sentence; ``words``: what it means and what changes it; ``help``: which of ``labels``,
    ``judge`` and ``answers`` would bring a number.
    """

    cause: Cause
    title: str
    words: str
    help: tuple[str, ...] = ()

    @property
    def icon(self) -> str:
        return "clock" if self.cause == Cause.KEPT_BACK else "users"

    @property
    def in_short(self) -> str:
        """One line, for small places."""
        return f"{self.title}."


NEEDS_EDITION = "It depends on hidden answers, weights or verdicts, so only staff see it until then."


def too_few(groups: int, *, items: int) -> Empty | None:
    """Why a number about so many groups of items is not shown; None where it is."""
    if groups >= FEWEST_GROUPS and items > 1:
        return None
    more = FEWEST_GROUPS - groups
    return Empty(
        Cause.FEW,
        f"{groups} of {FEWEST_GROUPS} groups: too few to compare",
        "A group is a picture or a prompt with all its items. Below eight of them no interval can be trusted, so "
        f"nothing is ranked. {number_of(more, 'more group')} will do.",
        ("labels",),
    )


def why_no_models(scope: Scope) -> Empty:
    """Why a board of models has no row."""
    rounds = rounds_of(of_one_source(scope)) if scope.by_people else NONE_OPEN
    if held := _kept_back(Sight(scope, MODELS), rounds):
        return held
    if scope.kind.keyed:
        words = "Models stand here once their answers have been brought in, or a curator has released their submission."
        return Empty(Cause.NONE, "No answers yet", words, ("answers",))
    words = "Models are ranked here as soon as people have labelled their answers, or a judge has judged them."
    return Empty(Cause.NONE, "No verdicts yet", words, ("labels", "judge"))


def why_no_judges(scope: Scope, judge: str = "the judges") -> Empty:
    """Why no judge, or this one, is compared with people."""
    rounds = rounds_beside_people(scope)
    if held := _kept_back(Sight(scope, JUDGES), rounds):
        return held
    judges, items = _judges(scope), _items(scope)
    of_kind = Item.objects.filter(sample__benchmark=scope.benchmark, kind=scope.kind.item_kind)
    if not of_kind.exists():
        words = "Judges are compared with people here once both have a verdict on the same answers."
        return Empty(Cause.NONE, "Nothing here is to be labelled or judged yet", words, ("labels", "judge"))
    if not _labelled(scope):
        words = f"What judges say can be compared with people from {FEWEST_GROUPS} groups of items on."
        if judges:
            words = f"{number_of(judges, 'judge has', 'judges have')} verdicts here. {words}"
        return Empty(Cause.NONE, f"Nobody has labelled these {items} yet", words, ("labels",))
    if not judges:
        words = "People have labelled some of them: a judge appears here after its first verdicts on these."
        return Empty(Cause.NONE, f"No judge has judged these {items} yet", words, ("judge",))
    words = "A judge appears here after its first verdict on items that people have labelled."
    return Empty(Cause.NONE, f"People have labelled other {items} than {judge} judged", words, ("judge",))


def why_no_biases(scope: Scope) -> Empty:
    """Why no judge's bias is measured."""
    if held := _kept_back(Sight(scope), rounds_beside_people(scope)):
        return held
    words = (
        "The verdicts show what sways a judge: position from pairs judged in both orders, length from any pairs, its "
        "own family and leniency from items that people labelled too."
    )
    return Empty(Cause.NONE, f"No judge has judged these {_items(scope)} yet", words, ("judge",))


def why_no_agreement(scope: Scope) -> Empty:
    """Why no two voters are compared."""
    if held := _kept_back(Sight(scope), rounds_beside_people(scope)):
        return held
    words = "Agreement shows as soon as two people, or a person and a judge, have given a verdict on the same item."
    return Empty(Cause.NONE, "Nobody to compare yet", words, ("labels", "judge"))


def _kept_back(sight: Sight, rounds: Rounds) -> Empty | None:
    if sight.reason:
        why = NEEDS_EDITION if sight.of else sight.reason
        return Empty(Cause.KEPT_BACK, "Kept back until an edition of it is published", why)
    if not rounds.items:
        return None
    n, again = rounds.items, " again" if rounds.again or rounds.few else ""
    which = f"{number_of(n, 'item is', 'items are')} being labelled{again}, blind"
    why = "What is said of them shows when that round closes, so that nobody who labels can see it."
    if rounds.few:
        why += " What was said of them before is of too few samples to be shown by itself."
    return Empty(Cause.KEPT_BACK, f"Held back {rounds.until_when}", f"{which}. {why}")


def _items(scope: Scope) -> str:
    """What is labelled and judged, in words."""
    words = {Item.Kind.PAIR.value: "pairs", Item.Kind.BATCH.value: "sets of answers"}
    return words.get(scope.kind.item_kind or "", "answers")


@guard.working()
def _labelled(scope: Scope) -> bool:
    return counted_labels(scope, every=True).exists()


@guard.working()
def _judges(scope: Scope) -> int:
    """How many have verdicts that count; baselines are none of them."""
    runs = votes.judged_runs(scope).filter(judge__baseline="")
    return runs.order_by().values("judge").distinct().count()
