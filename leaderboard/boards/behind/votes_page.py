"""The votes behind a number: lists of items, and one item with its answers and everybody's verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from bank.models import Sample
from judging.models import Run
from leaderboard.boards.base import ModelsBoard
from leaderboard.boards.behind import item_page as one_item
from leaderboard.boards.behind.disagreements import DisagreementRow
from leaderboard.boards.behind.voters import MATCHES, listed
from leaderboard.boards.behind.votes import UNREADABLE, VoteList
from leaderboard.hidden import blind_items, until_closed
from leaderboard.kinds import Kind
from leaderboard.lookups import items_with_samples, model_names, samples_by_id, texts_of
from leaderboard.rows import UNKNOWN, Number
from leaderboard.scope import DROPPED, HALF, Scope
from leaderboard.show import marks
from leaderboard.show.pickers import Segment, Select, pick, segments
from leaderboard.view import Address
from leaderboard.votes import SPLIT
from stats.disclosure import MIN_SAMPLES
from stats.figures import Write, number_of, percent, signed, two, whole, with_interval

NO_MAJORITY = "No majority"
SAMPLES = 20  # a page of pairs
OUTCOME_WORDS = {"win": "won", "tie": "tied", "loss": "lost"}
SITUATIONS = {1: "both right or both wrong", 2: "both with serious faults"}


@dataclass(frozen=True, slots=True)
class VoteRow:
    """One item of a list."""

    link: str
    sample: Sample
    answers: str  # whose: both models of a pair
    first: str  # one voter's verdict
    second: str
    same: bool


def outcome_segments(address: Address, votes: VoteList) -> list[Segment]:
    counts = zip(OUTCOME_WORDS.items(), votes.shown[:3], strict=True)
    parts = [("", "All", votes.shown.items), *((name, word.capitalize(), n) for (name, word), n in counts)]
    return segments(address, "outcome", parts)


def model_select(address: Address, names: Sequence[str]) -> Select:
    return pick("model", "Model", names, address.params.get("model", ""), empty="choose")


def opponent_select(address: Address, names: Sequence[str]) -> list[Select]:
    if len(names) < 2 and "other" not in address.params:
        return []
    other = address.params.get("other", "")
    return [pick("other", "Against", names, other, on=bool(other), empty="all")]


@dataclass(frozen=True, slots=True)
class Said:
    """A verdict as it is drawn, in words, the class of what stands beside it, and of a judge who said it."""

    drawn: SafeString
    words: str
    css: str = ""
    who: str = ""


@dataclass(frozen=True, slots=True)
class PairLine:
    """A pair of answers with everybody's verdicts, the model named first."""

    link: str
    model: str
    other: str
    people: Said
    judges: list[Said]
    differ: str
    mattered: bool


@dataclass(frozen=True, slots=True)
class SamplePairs:
    """The pairs of one sample."""

    sample: Sample
    link: str
    lines: list[PairLine]


def pairs_by_sample(
    address: Address, table: pd.DataFrame, samples: Sequence[int], judges: Sequence[Run]
) -> list[SamplePairs]:
    """The rows of ``votes_of`` about these samples."""
    kept = table[table["sample"].isin(samples)]
    known = samples_by_id(samples)
    groups = dict(iter(kept.groupby("sample", sort=False)))
    found = []
    for sample in samples:
        lines = [_pair_line(address, row, judges) for row in groups[sample].to_dict("records")]
        found.append(SamplePairs(known[sample], lines[0].link, lines))
    return found


def _pair_line(address: Address, row: dict[str, Any], judges: Sequence[Run]) -> PairLine:
    people = row["people"] if isinstance(row["people"], str) else None
    said = [replace(_judged(row[f"judge {run.pk}"], people), who=run.judge.titled) for run in judges]
    outcome = ", ".join(f"{OUTCOME_WORDS[name]} {int(row[name])}" for name in OUTCOME_WORDS if row[name])
    return PairLine(
        link=address.to("leaderboard:item", row["item"], **address.params),
        model=str(row["model"]),
        other=str(row["other"]),
        people=_people(row, people),
        judges=said,
        differ=_disagreement(int(row["differ"]), people, said) or outcome,
        mattered=bool(row["mattered"]),
    )


def _people(row: dict[str, Any], verdict: str | None) -> Said:
    """``First, 4 of 5``: people's verdict and how many gave it, or that they have no majority; empty without any."""
    counts = {"first": int(row["first"]), "tie": int(row["even"]), "second": int(row["second"])}
    n = sum(counts.values())
    if not n or verdict is None:
        return Said(SafeString(), "")
    drawn = marks.vote_line(counts, width=96)
    if verdict == SPLIT:
        return Said(drawn, NO_MAJORITY)
    return Said(drawn, f"{verdict.capitalize()}, {counts[verdict]} of {n}")


def _disagreement(differ: int, people: str | None, said: Sequence[Said]) -> str:
    """``2 of 4 differ``, ``all agree``, ``people split``; empty where there is nothing to compare."""
    if people == SPLIT:
        return "people split"
    told = sum(one.css in ("same", "differs") for one in said)
    if people is None or not told:
        unread = sum(one.css == "unread" for one in said)
        return f"{unread} unreadable" if unread else ""
    return f"{differ} of {told} differ{'s' if differ == 1 else ''}" if differ else "all agree"


def _judged(choice: Any, people: str | None) -> Said:
    if not isinstance(choice, str):
        return Said(SafeString(), "no verdict")
    if choice == UNREADABLE:
        return Said(SafeString("×"), "unreadable", "unread")
    differs = people in ("first", "second", "tie") and match(choice, people) == "differs"
    return Said(
        marks.vote_line({choice: 1}, judge=True, hollow=differs, width=72), choice, "differs" if differs else "same"
    )


def only_segments(address: Address, found: VoteList) -> list[Segment]:
    """Parts of the list by how verdicts go together; none where nobody but one is heard."""
    words = {"differ": "Judges differ from people", "split": "People split", "order": "Order mattered"}
    selected = address.params.get("only", "")
    parts = [(name, words[name], n) for name, n in found.parts.items() if n or selected == name]
    return segments(address, "only", [("", "All", found.shown.items), *parts]) if parts else []


def has_pictures(rows: Sequence[Any]) -> bool:
    """Whether the list needs a column for pictures."""
    return any(row.sample.picture for row in rows)


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """One answer of a model with its score or mark; ``link`` leads to the item, if there is one."""

    sample: Sample
    text: str
    link: str
    value: str
    said: str
    right: bool | None


def answer_rows(address: Address, table: pd.DataFrame, model: str, kind: Kind) -> list[AnswerRow]:
    """Rows of ``answers.of_model``, with their samples and texts; without texts that people are labelling blind."""
    samples = samples_by_id(table["sample"])
    texts = texts_of(table["sample"], model, address.viewer)
    rows = []
    for row in table.to_dict("records"):
        sample = samples[row["sample"]]
        item = row["item"]
        rows.append(
            AnswerRow(
                sample=sample,
                text=texts.get(sample.pk, ""),
                link=address.to("leaderboard:item", item, **address.view()) if item is not None else "",
                value="" if row["value"] is None else kind.shape.main.write(row["value"]),
                said=row["said"] or "",
                right=None if row["right"] is None else bool(row["right"]),
            )
        )
    return rows


def mark_segments(address: Address, counts: dict[str, int]) -> list[Segment]:
    parts = (("", "All", sum(counts.values())), *((name, name.capitalize(), k) for name, k in counts.items()))
    return segments(address, "mark", parts)


def compared_rows(address: Address, table: pd.DataFrame) -> list[VoteRow]:
    """Rows of ``side_by_side`` by sample, with the models' names in the verdicts."""
    items = items_with_samples(table.index)
    names = model_names(table.index)
    rows = []
    for pk, row in zip(table.index.tolist(), table.to_dict("records"), strict=True):
        rows.append(
            VoteRow(
                address.to("leaderboard:item", pk, **address.view()),
                items[pk].sample,
                answers=_whose(names[pk]),
                first=verdict_words(row["first"], names[pk]),
                second=verdict_words(row["second"], names[pk]),
                same=bool(row["same"]),
            )
        )
    return sorted(rows, key=lambda row: row.sample.key)


def _whose(models: Sequence[str]) -> str:
    if not models:
        return "The sample"
    return " against ".join(models) if len(models) < 3 else f"{len(models)} answers"


def compared_segments(address: Address, table: pd.DataFrame, *, reads_options: bool) -> list[Segment]:
    """``reads_options``: whether both say which option an answer means, so that the differences are of two sorts."""
    labels = {"": "All", "same": "Same", "different": "Different"}
    if reads_options:
        labels |= {"none": "One reads no option", "options": "Two options"}
    parts = [(match, label, int(MATCHES[match](table).sum())) for match, label in labels.items()]
    return segments(address, "match", parts)


def division(scope: Scope, table: pd.DataFrame, *, decided: bool) -> str:
    """The figure that the rows of ``side_by_side`` are behind: ``772 the same of 1,049 where the first chose a side =
    73.6%``, as the board prints it. It says how many of them are shown, and what else there is, if that is about many
    samples.
    """
    shown = listed(scope, table)
    hidden, blind = len(table) - len(shown), blind_items(scope.benchmark)
    many = len({blind[item] for item in table.index if item in blind}) >= MIN_SAMPLES
    counted = table if many else shown
    if not len(counted):
        return ""
    same, n = int(counted["same"].sum()), len(counted)
    where = " where the first chose a side" if decided else ""
    said = f"{same:,} the same of {n:,}{where} = {percent(same / n)}%"
    of_shown = f"{len(shown):,} of them are shown here, {int(shown['same'].sum()):,} the same" if len(shown) else ""
    return said + _hidden_of(hidden, of_shown, many=many, until=until_closed(scope) if hidden else "")


def verdict_words(choice: str | None, names: Sequence[str], situation: int | None = None) -> str:
    """``GPT 4 better``, ``tie``, ``unable to decide (both right or both wrong)``."""
    if choice is None:
        return "no verdict"
    if choice == SPLIT:
        return NO_MAJORITY.lower()
    if choice == "undecided":
        return "unable to decide" + (f" ({SITUATIONS[situation]})" if situation in SITUATIONS else "")
    if choice in ("first", "second"):
        return f"{names[0 if choice == 'first' else 1]} better"
    return choice  # a tie; or a verdict on another kind of item, which is in words already


def sentence(choice: str | None, names: Sequence[str]) -> str:
    """The verdict as a line of its own: it begins with a capital, unless that is a model's name."""
    words = verdict_words(choice, names)
    return words if choice in ("first", "second") else capfirst(words)


# ---- where a judge differs from people ----

MOST_LINKED = 6  # items of a line


@dataclass(frozen=True, slots=True)
class SaidLine:
    """One thing that people said, and the items on which they did: links to the first with the keys of their samples
    and whose answers they are, and how many more there are.
    """

    said: str
    by: str
    n: int
    items: list[tuple[str, str, str]]
    more: int


@dataclass(frozen=True, slots=True)
class Disagreement:
    """What people say and what the judge says, on how many items, and what was said there."""

    people: str
    judged: str
    n: int
    lines: list[SaidLine]


def disagreement_groups(address: Address, rows: Sequence[DisagreementRow]) -> list[Disagreement]:
    linked: set[int] = set()
    for row in rows:
        linked.update(row.items[:MOST_LINKED])
    items, whose = items_with_samples(linked), model_names(linked)
    groups: dict[tuple[str, str], Disagreement] = {}
    for row in rows:
        group = groups.setdefault((row.people, row.judged), Disagreement(row.people, row.judged, row.of, []))
        links = [
            (address.to("leaderboard:item", pk), items[pk].sample.key, _whose(whose[pk]))
            for pk in row.items[:MOST_LINKED]
        ]
        group.lines.append(SaidLine(row.said, row.by, row.n, links, row.n - len(links)))
    return list(groups.values())


# ---- one item ----


@dataclass(frozen=True, slots=True)
class JudgeLine:
    """One judge: its verdict over all calls, and each call in words."""

    run: Run
    link: str
    verdict: str
    calls: list[str]
    match: str  # "agrees", "differs" or "" if people have no verdict to compare with


def people_lines(people: one_item.PeopleVotes, names: Sequence[str]) -> list[tuple[one_item.OneVote, str]]:
    """Each vote with its verdict in words."""
    return [(vote, verdict_words(vote.choice, names, vote.situation)) for vote in people.votes]


def counts_in_words(people: one_item.PeopleVotes, names: Sequence[str]) -> str:
    """``GPT 4 better 4, tie 1``: the most frequent first."""
    ordered = sorted(people.counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{verdict_words(choice, names)} {n}" for choice, n in ordered)


def judge_lines(
    judges: Sequence[one_item.JudgeVotes], names: Sequence[str], *, people: str | None, run_link: Any
) -> list[JudgeLine]:
    """``people``: their verdict, if it may be shown."""
    return [
        JudgeLine(
            run=judge.run,
            link=run_link(judge.run),
            verdict=sentence(judge.verdict, names),
            calls=_calls(judge, names),
            match=match(judge.verdict, people),
        )
        for judge in judges
    ]


def _calls(judge: one_item.JudgeVotes, names: Sequence[str]) -> list[str]:
    repeats = {vote.repeat for vote in judge.votes}
    lines = []
    for vote in judge.votes:
        first = ", ".join(names[int(place)] for place in vote.order if place.isdigit() and int(place) < len(names))
        shown = f"{first} shown" if len(names) > 2 else f"{first.split(', ')[0]} shown first"
        words = verdict_words(vote.choice, names, vote.situation)
        if vote.choice is None:
            words = f"no verdict: {vote.status.lower()}"
        repeat = f", repeat {vote.repeat + 1}" if len(repeats) > 1 else ""
        lines.append(f"{shown}{repeat}: {words}" if len(names) > 1 else f"{words}{repeat}")
    return lines


def match(verdict: str | None, people: str | None) -> str:
    if verdict is None or people is None:
        return ""
    as_tie = {"undecided": "tie"}
    return "agrees" if as_tie.get(verdict, verdict) == as_tie.get(people, people) else "differs"


def division_of_wins(scope: Scope, found: VoteList) -> str:
    """``298 won of 379 decided = 78.6%``, as the view counts ties and the board prints it; empty where repeats make
    parts of a win. It says how many of the items are shown, and what else there is, if that is about many samples.
    """
    counts = found.every if found.many else found.shown
    if not counts.items or counts.wins + counts.ties + counts.losses != counts.items:
        return ""
    won, n, said = float(counts.wins), counts.items, f"{counts.wins:,} won of {counts.items:,}"
    if scope.ties == DROPPED:
        n = counts.wins + counts.losses
        said = f"{counts.wins:,} won of {n:,} decided"
    elif scope.ties == HALF:
        won += counts.ties / 2
        said = f"{counts.wins:,} won and half of {counts.ties:,} tied, of {counts.items:,}"
    if not n:
        return ""
    shown = found.shown
    of_shown = f"{shown.items:,} of them are shown here, {shown.wins:,} won" if shown.items else ""
    return f"{said} = {percent(won / n)}%{_hidden_of(found.sealed, of_shown, many=found.many, until=found.until)}"


RATED: dict[str, tuple[str, Write]] = {
    "bt": ("rating", signed),
    "elo": ("Elo", whole),
    "win_rate_lc": ("LC %", percent),
    "preference": ("preference", two),
}


def rated(board: ModelsBoard, model: str) -> str:
    """``rating +0.98 [+0.52, +1.44], Elo 1,034``: the other numbers that the board prints of the same items."""
    row = next((row for row in board.rows if row.model == model), None)
    if row is None:
        return ""
    numbers = {name: getattr(row, name, UNKNOWN) for name in RATED}
    said = [
        f"{label} {with_interval(numbers[name], write)}"
        for name, (label, write) in RATED.items()
        if numbers[name].value is not None
    ]
    return ", ".join(said)


def division_of_answers(scope: Scope, board: ModelsBoard, model: str) -> str:
    """``mean 3.97 [3.55, 4.31] over 32 items``, and the other numbers that the board prints of the same answers."""
    row = next((row for row in board.rows if row.model == model), None)
    if row is None:
        return ""
    shape = scope.kind.shapes.get(board.ranked_by, scope.kind.shape)
    columns = [column for column in (shape.main, *shape.beside) if isinstance(getattr(row, column.name, None), Number)]
    said = [
        f"{column.label} {with_interval(row.number(column.name), column.write)}"
        for column in columns
        if row.number(column.name).value is not None
    ]
    steps: dict[str, int] = getattr(row, "extraction", {})
    every = sum(steps.values())
    found = [f"{name.replace('_', ' ')} {n:,} ({percent(n / every)}%)" for name, n in steps.items() if n]
    over = f" over {number_of(row.n, scope.kind.counted_word)}"
    return ", ".join(said) + over + (f"; options found: {', '.join(found)}" if found else "")


def _hidden_of(hidden: int, of_shown: str, *, many: bool, until: str) -> str:
    if not hidden:
        return ""
    if not many:
        return f"; the board counts {hidden:,} more"
    are = "is" if hidden == 1 else "are"
    return f"; {of_shown or 'none of them is shown here'}; {hidden:,} {are} hidden{f' {until}' if until else ''}"


def outcomes_in_words(votes: VoteList) -> str:
    """``65 items: won 42, tied 9, lost 14``; empty, and never zeros, where every item is held back."""
    if not votes.shown.items and votes.sealed:
        return ""
    counts = zip(OUTCOME_WORDS.values(), votes.shown[:3], strict=True)
    return f"{number_of(votes.shown.items, 'item')}: {', '.join(f'{word} {n:,}' for word, n in counts)}"
