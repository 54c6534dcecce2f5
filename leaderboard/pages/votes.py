"""The votes behind a number: lists of items, and one item with its answers and everybody's verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from django.utils.safestring import SafeString

from bank.models import Item, SampleImage
from leaderboard import queries
from leaderboard.figures import number_of
from leaderboard.kinds import Kind
from leaderboard.pages import marks
from leaderboard.pages.address import Address, Choice, Select
from leaderboard.votes import of_item

PAGE = 50
OUTCOME_WORDS = {"win": "won", "tie": "tied", "loss": "lost"}
SITUATIONS = {1: "both right or both wrong", 2: "both with serious faults"}


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a switch: where it leads, with its count."""

    label: str
    n: int
    link: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class VoteRow:
    """One item of a list."""

    link: str
    key: str
    instruction: str
    level: str
    image: SampleImage | None
    first: str  # the opponent, or one voter's verdict
    outcome: str  # a word
    kind: str  # win, tie, loss; or the class of a chip
    bar: SafeString
    second: str = ""


def outcome_segments(address: Address, found: queries.VoteList) -> list[Segment]:
    chosen = address.given.get("outcome", "")
    counts = {"win": found.wins, "tie": found.ties, "loss": found.losses}
    every = Segment("All", found.items, address.link(outcome=None, page=None), not chosen)
    return [
        every,
        *(
            Segment(word.capitalize(), counts[name], address.link(outcome=name, page=None), chosen == name)
            for name, word in OUTCOME_WORDS.items()
        ),
    ]


def model_select(address: Address, names: Sequence[str]) -> Select:
    groups = [("", [Choice("", "choose")]), ("", [Choice(name, name) for name in names])]
    return Select("model", "Model", groups, address.given.get("model", ""))


def opponent_select(address: Address, names: Sequence[str]) -> list[Select]:
    if len(names) < 2 and "other" not in address.given:
        return []
    groups = [("", [Choice("", "all")]), ("", [Choice(name, name) for name in names])]
    return [Select("other", "Against", groups, address.given.get("other", ""), on="other" in address.given)]


def vote_rows(address: Address, table: pd.DataFrame) -> list[VoteRow]:
    """Rows of ``queries.votes_of``, with their samples."""
    items = queries.items_with_samples(table["item"])
    return [_vote_row(address, items[row["item"]], row) for row in table.to_dict("records")]


def _vote_row(address: Address, item: Item, row: dict[str, Any]) -> VoteRow:
    counts = {name: int(row[name]) for name in OUTCOME_WORDS}
    given = {name: n for name, n in counts.items() if n}
    single = len(given) == 1 and sum(given.values()) == 1
    words = ", ".join(OUTCOME_WORDS[name] if single else f"{OUTCOME_WORDS[name]} {n}" for name, n in given.items())
    link = address.to("leaderboard:item", item.pk, **address.given)
    bar = marks.micro_bar(*counts.values())
    return VoteRow(link, *_sample_cells(item), str(row["other"]), words, max(given, key=lambda n: given[n]), bar)


def _sample_cells(item: Item) -> tuple[str, str, str, SampleImage | None]:
    sample = item.sample
    images = list(sample.images.all())
    level = sample.capability.path if sample.capability else ""
    return sample.key, sample.instruction, level, images[0] if images else None


def has_pictures(rows: Sequence[Any]) -> bool:
    """Whether the list keeps room for pictures."""
    return any(row.image for row in rows)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer of a model with its score or mark; ``link`` leads to the item, where there is one."""

    key: str
    instruction: str
    level: str
    image: SampleImage | None
    text: str
    link: str
    value: str
    said: str
    right: bool | None


def answer_rows(address: Address, table: pd.DataFrame, model: str, kind: Kind) -> list[AnswerRow]:
    """Rows of ``answers.of_model``, with their samples and texts; texts only where people do not label them blind."""
    samples = queries.samples_by_id(table["sample"])
    texts = queries.texts_of(table["sample"], model, address.viewer)
    rows = []
    for row in table.to_dict("records"):
        sample = samples[row["sample"]]
        images = list(sample.images.all())
        item = row["item"]
        rows.append(
            AnswerRow(
                key=sample.key,
                instruction=sample.instruction,
                level=sample.capability.path if sample.capability else "",
                image=images[0] if images else None,
                text=texts.get(sample.pk, ""),
                link=address.to("leaderboard:item", item, **address.view()) if item is not None else "",
                value="" if row["value"] is None else kind.shape.main.write(row["value"]),
                said=row["said"] or "",
                right=None if row["right"] is None else bool(row["right"]),
            )
        )
    return rows


def mark_segments(address: Address, counts: dict[str, int], n: int) -> list[Segment]:
    chosen = address.given.get("mark", "")
    parts = (("", "All", sum(counts.values())), *((name, name.capitalize(), k) for name, k in counts.items()))
    return [Segment(label, k, address.link(mark=name or None, page=None), chosen == name) for name, label, k in parts]


def compared_rows(address: Address, table: pd.DataFrame) -> list[VoteRow]:
    """Rows of ``queries.side_by_side``, with their samples and the models' names in the verdicts."""
    items = queries.items_with_samples(table.index)
    names = queries.model_names(table.index)
    rows = []
    for pk, row in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        same = bool(row["same"])
        rows.append(
            VoteRow(
                address.to("leaderboard:item", pk, **address.view()),
                *_sample_cells(items[pk]),
                first=verdict_words(row["first"], names[pk]),
                second=verdict_words(row["second"], names[pk]),
                outcome="same" if same else "different",
                kind="good" if same else "warn",
                bar=SafeString(),
            )
        )
    return rows


def compared_segments(address: Address, table: pd.DataFrame) -> list[Segment]:
    chosen = address.given.get("match", "")
    same = int(table["same"].sum())
    counts = (("", "All", len(table)), ("same", "Same", same), ("different", "Different", len(table) - same))
    return [
        Segment(label, n, address.link(match=value or None, page=None), chosen == value) for value, label, n in counts
    ]


def verdict_words(choice: str | None, names: Sequence[str], situation: int | None = None) -> str:
    """``GPT 4 better``, ``tie``, ``unable to decide (both right or both wrong)``."""
    if choice is None:
        return "no verdict"
    if choice == "undecided":
        return "unable to decide" + (f" ({SITUATIONS[situation]})" if situation in SITUATIONS else "")
    if choice in ("first", "second"):
        return f"{names[0 if choice == 'first' else 1]} better"
    return choice  # a tie; or a verdict on an item that is no pair, which is in words already


def sentence(choice: str | None, names: Sequence[str]) -> str:
    """The verdict as a line of its own: a capital, but never on a model's name."""
    words = verdict_words(choice, names)
    return words if choice in ("first", "second") else words.capitalize()


# ---- one item ----


@dataclass(frozen=True, slots=True)
class PersonLine:
    who: str
    verdict: str
    campaign: str
    excluded: bool


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """One judge: its verdict over all calls, and each call in words."""

    judge: str
    baseline: bool
    run: int
    link: str
    verdict: str
    calls: list[str]
    match: str  # "agrees", "differs" or "" where people have no verdict to compare with


def people_lines(found: of_item.PeopleVotes, names: Sequence[str]) -> list[PersonLine]:
    return [
        PersonLine(vote.who, verdict_words(vote.choice, names, vote.situation), vote.campaign, vote.excluded)
        for vote in found.votes
    ]


def counts_in_words(found: of_item.PeopleVotes, names: Sequence[str]) -> str:
    """``GPT 4 better 4, tie 1``: the most frequent first."""
    ordered = sorted(found.counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{verdict_words(choice, names)} {n}" for choice, n in ordered)


def judge_lines(
    found: Sequence[of_item.JudgeVotes], names: Sequence[str], *, people: str | None, run_link: Any
) -> list[JudgeLine]:
    """``people``: their verdict, where it may be shown."""
    return [
        JudgeLine(
            judge=judged.run.judge.name,
            baseline=judged.run.judge.is_baseline,
            run=judged.run.pk,
            link=run_link(judged.run),
            verdict=sentence(judged.verdict, names),
            calls=_calls(judged, names),
            match=_match(judged.verdict, people),
        )
        for judged in found
    ]


def _calls(judged: of_item.JudgeVotes, names: Sequence[str]) -> list[str]:
    repeats = {vote.repeat for vote in judged.votes}
    lines = []
    for vote in judged.votes:
        first = ", ".join(names[int(place)] for place in vote.order if place.isdigit() and int(place) < len(names))
        shown = f"{first} shown" if len(names) > 2 else f"{first.split(', ')[0]} shown first"
        said = verdict_words(vote.choice, names, vote.situation)
        if vote.choice is None:
            said = f"no verdict: {vote.status.lower()}"
        repeat = f", repeat {vote.repeat + 1}" if len(repeats) > 1 else ""
        lines.append(f"{shown}{repeat}: {said}" if len(names) > 1 else f"{said}{repeat}")
    return lines


def _match(verdict: str | None, people: str | None) -> str:
    if verdict is None or people is None:
        return ""
    as_tie = {"undecided": "tie"}
    return "agrees" if as_tie.get(verdict, verdict) == as_tie.get(people, people) else "differs"


def left_out_in_words(found: queries.VoteList) -> list[str]:
    """Why items are not in the list, one sentence a reason."""
    said = []
    if found.held:
        items = number_of(found.held, "item")
        said.append(f"{items} left out: a campaign over them goes on, and people's votes show when it has closed.")
    if found.sealed:
        said.append(f"{number_of(found.sealed, 'item')} left out: of a hidden split only sums are shown.")
    return said
