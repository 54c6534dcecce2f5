"""What made a page: source, prompt, data, rule, coverage, time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.urls import NoReverseMatch, reverse

from accounts.rules import Viewer, allowed
from bank.models import EvaluatedModel
from judging.models import Judge, Run
from leaderboard import queries
from leaderboard.boards import Board
from leaderboard.metrics import SIDED
from leaderboard.pages.address import PEOPLE_IN_WORDS, RULES_IN_WORDS, Address, settings_in_words
from leaderboard.scope import HUMANS, INDIVIDUALS, Scope

CLOSED = "single labels are not shown"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: a term and what stands beside it, with a link where it has one."""

    term: str
    text: str
    link: str = ""
    mono: bool = False


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


def source_facts(scope: Scope, board: Board[Any], viewer: Viewer) -> list[Fact]:
    """Judged by whom, with which prompt, under which rule; or by answer keys."""
    if scope.kind.keyed:
        return [Fact("Compared with", "answer keys"), *reader_facts(board, viewer)]
    read = reader_facts(board, viewer)
    if not read:
        who = "people, mean" if scope.kind.by_mean and scope.source == HUMANS else ""
        facts = [Fact("Judged by", who or PEOPLE_IN_WORDS.get(scope.source, scope.source))]
        return facts + ([rule_fact(scope)] if scope.source != INDIVIDUALS and scope.kind.pairwise else [])
    return read


def runs_facts(ids: Sequence[int], viewer: Viewer) -> list[Fact]:
    """One line a run, with its settings."""
    return [
        Fact(f"{r.judge}, run {r.pk}", settings_in_words(r.protocol, r.settings), run_link(viewer, r))
        for r in queries.runs_of(ids).values()
    ]


def reader_facts(board: Board[Any], viewer: Viewer) -> list[Fact]:
    """Which runs gave the verdicts, or read the answers that name no option themselves."""
    runs = list(queries.runs_of(board.runs).values())
    if not runs:
        return []
    facts = [Fact("Judge" if not n else "", f"{r.judge}, run {r.pk}", run_link(viewer, r)) for n, r in enumerate(runs)]
    newest = runs[-1]
    facts.append(Fact("Settings", settings_in_words(newest.protocol, newest.settings)))
    if newest.reported_model and newest.reported_model != newest.judge.name:
        facts.append(Fact("Answers as", newest.reported_model))
    if newest.imported:
        facts.append(Fact("Origin", "imported from a file"))
    if newest.template:
        version = "" if newest.template_version is None else f" {newest.template_version}"
        facts.append(Fact("Prompt", f"{newest.template}{version}, {newest.template_sha256[:8]}", mono=True))
    return facts


def rule_fact(scope: Scope) -> Fact:
    return Fact("Majority", RULES_IN_WORDS[scope.rule])


def priced(priced: EvaluatedModel | Judge) -> str:
    """``$2.5 and $10 a million tokens``; empty where nothing is known."""
    prices = [f"${price:g}" for price in (priced.price_in, priced.price_out) if price is not None]
    return f"{' and '.join(prices)} a million tokens" if prices else ""
