"""What made a page: source, prompt, data, rule, coverage, time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.urls import NoReverseMatch, reverse

from accounts.rules import Viewer, allowed
from bank.models import EvaluatedModel
from judging.models import Judge, Run
from judging.protocols.in_words import settings_in_words
from leaderboard.lookups import runs_of
from leaderboard.metrics import SIDED
from leaderboard.scope import HUMANS, INDIVIDUALS, Scope
from leaderboard.view import PEOPLE_IN_WORDS, RULES_IN_WORDS, Address

if TYPE_CHECKING:
    from leaderboard.boards.base import Board

CLOSED = "single labels are not shown"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: a term and what stands beside it, with a link where it has one."""

    term: str
    text: str
    link: str = ""


def run_link(viewer: Viewer, run: Run) -> str:
    """Where the run's page is, for those who may open it; else empty."""
    if not allowed(viewer, "read-judging"):
        return ""
    try:
        return reverse("judging:run-detail", args=[run.pk])
    except NoReverseMatch:
        return ""


def verdicts_link(address: Address, run: Run, *, metric: str = "", level: str = "") -> str:
    """Where a judge's verdicts stand beside the majority's: those that the metric counts, or on a level."""
    view = address.view() | ({"level": level} if level else {})
    only = "decided" if metric == SIDED.name else None
    return address.to("leaderboard:compare", **view, a="majority", b=f"run-{run.pk}", only=only)


def source_of(scope: Scope, board: "Board[Any]", viewer: Viewer) -> dict[str, Any]:
    """Whose verdicts a board counts, as ``_fact_list.html`` has it: the runs that gave them, or that read the answers
    which name no option themselves, with their pages; or else people, under which rule.
    """
    runs = list(runs_of(board.runs).values())
    mean = scope.kind.by_mean and scope.source == HUMANS
    return {
        "keyed": scope.kind.keyed,
        "runs": [(run, run_link(viewer, run)) for run in runs],
        "newest": runs[-1] if runs else None,
        "settings": settings_in_words(runs[-1].protocol, runs[-1].settings) if runs else "",
        "people": "people, mean" if mean else PEOPLE_IN_WORDS.get(scope.source, scope.source),
        "rule": "" if scope.source == INDIVIDUALS else rule_of(scope),
    }


def runs_facts(ids: Sequence[int], viewer: Viewer) -> list[Fact]:
    """One line a run, with its settings."""
    return [
        Fact(f"{r.judge}, run {r.pk}", settings_in_words(r.protocol, r.settings), run_link(viewer, r))
        for r in runs_of(ids).values()
    ]


def rule_of(scope: Scope) -> str:
    """How several people's votes on a pair become one, in words."""
    return RULES_IN_WORDS[scope.rule] if scope.kind.pairwise else ""


def priced(priced: EvaluatedModel | Judge) -> str:
    """``$2.5 and $10 a million tokens``; empty where nothing is known."""
    prices = [f"${price:g}" for price in (priced.price_in, priced.price_out) if price is not None]
    return f"{' and '.join(prices)} a million tokens" if prices else ""
