"""Which items of a judge's run people should look at: no majority over repeats, no verdict, turned with the order, or
another verdict than people gave (MLLM-as-a-Judge, arXiv 2402.04788: what is inconsistent goes to annotators).

One verdict a repeat combines the orders as the boards do: of a pair more votes win, scores and points are averaged,
rankings by mean position.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import pandas as pd
from django.db.models import Q
from rapidfuzz.distance import Levenshtein

from annotations.labels.verdicts import VERDICT_COLUMNS, main_column, majority_word, verdict_key, verdict_number
from annotations.models import Adjudication, Label
from judging.models import Judgment, Run
from stats.verdicts import majority

NO_MAJORITY, NO_VERDICT, ORDER_CHANGES_IT, DIFFERS = "no-majority", "no-verdict", "turned", "differs"

REASONS = {
    NO_MAJORITY: "No majority over the repeats",
    NO_VERDICT: "A reply without a verdict",
    ORDER_CHANGES_IT: "Another verdict in the other order",
    DIFFERS: "Another verdict than people gave",
}

# A reply came, and no verdict could be read from it. What failed on the way, or cost too much, is asked again instead.
UNREADABLE = ("parse_failed", "refused", "filtered", "truncated", "empty")

FAR_SCORE = 1.0  # on the benchmark's scale: less is a difference of taste

FAR_RANKING = 0.5  # normalized Levenshtein distance

Verdict = dict[str, Any]


def doubts_of(run: Run) -> dict[int, set[str]]:
    """The items of a run that somebody should look at, with the reasons. Only items that the run is done with count."""
    by_item: dict[int, list[tuple[int, str, str, Verdict]]] = defaultdict(list)
    rows = Judgment.objects.filter(run=run).order_by("item", "repeat", "order").values_list(*COLUMNS)
    for item, repeat, order, status, *columns in rows:
        by_item[item].append((repeat, order, status, dict(zip(VERDICT_COLUMNS, columns, strict=True))))
    expected = 0 if run.imported else run.repeats
    people = human_verdicts(by_item, rule=run.benchmark.majority)
    found: dict[int, set[str]] = {}
    for item, judged in by_item.items():
        if len({repeat for repeat, *_ in judged}) < expected:
            continue
        if why := _reasons(judged, people.get(item)):
            found[item] = why
    return found


COLUMNS = ("item", "repeat", "order", "status", *VERDICT_COLUMNS)


def _reasons(judged: Sequence[tuple[int, str, str, Verdict]], people: Verdict | None) -> set[str]:
    why = set()
    if any(status in UNREADABLE for _, _, status, _ in judged):
        why.add(NO_VERDICT)
    repeats: dict[int, list[Verdict]] = defaultdict(list)
    for repeat, _, status, verdict in judged:
        if status == Judgment.Status.OK:
            repeats[repeat].append(verdict)
    if any(len({verdict_key(verdict) for verdict in given}) > 1 for given in repeats.values()):
        why.add(ORDER_CHANGES_IT)
    combined = [whole for given in repeats.values() if (whole := combine_verdicts(given))]
    words = [said for whole in combined if (said := verdict_key(whole))]
    if len(words) > 1 and majority_word(words) is None:
        why.add(NO_MAJORITY)
    chosen = judge_verdict(combined)
    if people and chosen and differs(chosen, people):
        why.add(DIFFERS)
    return why


def judge_verdict(repeats: Sequence[Verdict]) -> Verdict | None:
    """A judge's verdict on an item: that of more than half of its repeats, else what they make together."""
    best = majority_word(said for verdict in repeats if (said := verdict_key(verdict)))
    return next((verdict for verdict in repeats if best and verdict_key(verdict) == best), None) or combine_verdicts(
        repeats
    )


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict | None:
    """One verdict of several on the same item; None where there is none."""
    given = [verdict for verdict in verdicts if main_column(verdict)]
    if not given:
        return None
    name = main_column(given[0])
    assert name is not None
    match name:
        case "choice":
            votes = Counter(verdict["choice"] for verdict in given)
            if votes["first"] != votes["second"]:
                return {"choice": "first" if votes["first"] > votes["second"] else "second"}
            same = len(votes) == 1
            return {"choice": given[0]["choice"] if same else "tie"}
        case "score" | "parts" | "grade":
            numbers = [value for verdict in given if (value := verdict_number(verdict)) is not None]
            return {"score": fmean(numbers)}
        case "ranking":
            return {"ranking": mean_ranking([verdict["ranking"] for verdict in given])}
    best = Counter(verdict[name] for verdict in given).most_common(2)
    return None if len(best) > 1 and best[0][1] == best[1][1] else {name: best[0][0]}


def mean_ranking(rankings: Sequence[list[list[int]]]) -> list[list[int]]:
    """Groups of positions by their mean place, those that tie in one group (Borda)."""
    places: dict[int, list[float]] = defaultdict(list)
    for ranking in rankings:
        before = 0
        for group in ranking:
            for position in group:
                places[position].append(before + (len(group) + 1) / 2)
            before += len(group)
    means = {position: round(fmean(values), 9) for position, values in places.items()}
    groups: dict[float, list[int]] = defaultdict(list)
    for position, mean in means.items():
        groups[mean].append(position)
    return [sorted(groups[mean]) for mean in sorted(groups)]


def differs(judge: Verdict, people: Verdict) -> bool:
    """Whether a judge's verdict is another than people's. A tie and "unable to decide" are the same here."""
    mine, theirs = main_column(judge), main_column(people)
    if mine is None or theirs is None or {mine, theirs} not in ({mine}, {"score", "parts"}):
        return False
    if theirs == "choice":
        even = {"tie", "undecided"}
        return judge["choice"] != people["choice"] and not {judge["choice"], people["choice"]} <= even
    if theirs in ("score", "parts"):
        return abs((verdict_number(judge) or 0) - (verdict_number(people) or 0)) >= FAR_SCORE
    if theirs == "ranking":
        a, b = ([position for group in one["ranking"] for position in group] for one in (judge, people))
        return Levenshtein.normalized_distance(a, b) > FAR_RANKING
    return bool(judge[mine] != people[theirs])


def human_verdicts(items: Iterable[int], *, rule: str) -> dict[int, Verdict]:
    """What people say about each of these items: the adjudicated verdict, else the one that their labels make."""
    wanted = set(items)
    labels: dict[int, list[Verdict]] = defaultdict(list)
    every = Label.objects.filter(excluded=False).exclude(assignment__campaign_item__practice=True)
    every = every.filter(Q(agree__isnull=True))  # reviews are about a judge, not about the answers
    for item, *columns in _verdict_rows(every, wanted, "item"):
        labels[item].append(dict(zip(VERDICT_COLUMNS, columns, strict=True)))
    pairs = [(item, verdict["choice"]) for item, given in labels.items() for verdict in given if verdict["choice"]]
    frame = pd.DataFrame(pairs, columns=["item", "choice"])
    found: dict[int, Verdict] = {
        int(item): {"choice": choice} for item, choice in majority(labels=frame, rule=rule)["choice"].items()
    }
    for item, given in labels.items():
        if item not in found and (verdict := combine_verdicts(given)):
            found[item] = verdict
    decided = Adjudication.objects.filter(campaign_item__reviewed__isnull=True)
    for item, *columns in _verdict_rows(decided, wanted, "campaign_item__item"):
        adjudicated = dict(zip(VERDICT_COLUMNS, columns, strict=True))
        if main_column(adjudicated):
            found[item] = adjudicated
    return found


def _verdict_rows(rows: Any, items: set[int], column: str) -> Iterable[tuple[Any, ...]]:
    """Rows about these items with the verdict columns, oldest first; a few items by their ids, many by reading all."""
    if len(items) <= 500:
        rows = rows.filter(**{f"{column}__in": items})
    for row in rows.order_by("pk").values_list(column, *VERDICT_COLUMNS):
        if row[0] in items:
            yield row


HQ, HARD = "hq", "hard"

SUBSETS = {HQ: "HQ: judgments that agree with people", HARD: "HARD: judgments that differ, or hallucinate"}


def subset_of(run: Run, name: str) -> list[int]:
    """The judgments (ids) of a run in one subset. A judgment counts where people gave a verdict on its item.

    Of a judgment that reviewers looked at, more than half of them decide: not in HQ, and in HARD, where they say that
    it is wrong or hallucinates; in HQ where they agree, even if nobody labelled the item.
    """
    rows = list(
        Judgment.objects.filter(run=run, status="ok").order_by("pk").values_list("pk", "item", *VERDICT_COLUMNS)
    )
    people = human_verdicts({item for _, item, *_ in rows}, rule=run.benchmark.majority)
    reviews: dict[int, list[tuple[bool | None, bool | None]]] = defaultdict(list)
    reviewed = Label.objects.filter(
        assignment__campaign_item__reviewed__run=run, excluded=False, assignment__campaign_item__practice=False
    )
    columns = ("assignment__campaign_item__reviewed", "agree", "hallucination")
    for judgment, agree, hallucination in reviewed.values_list(*columns):
        reviews[judgment].append((agree, hallucination))
    found = []
    for pk, item, *columns_ in rows:
        verdict = dict(zip(VERDICT_COLUMNS, columns_, strict=True))
        against = people.get(item)
        wrong = differs(verdict, against) if against and main_column(against) else None
        said = [agree for agree, _ in reviews[pk] if agree is not None]
        if said:
            wrong = 2 * sum(said) <= len(said)
        seen = [one for _, one in reviews[pk] if one is not None]
        hallucinates = 2 * sum(seen) > len(seen) if seen else False
        if wrong is None and not hallucinates:
            continue
        if (HARD if wrong or hallucinates else HQ) == name:
            found.append(pk)
    return found
