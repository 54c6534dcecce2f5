"""The items of a judge's run that people should look at, and how its verdicts compare with people's.

An item is in doubt if the repeats have no majority, a reply has no verdict, the verdict changes with the order of the
answers, or people decided otherwise (MLLM-as-a-Judge, arXiv 2402.04788, sends inconsistent items to annotators). The
orders of one repeat are combined as on the boards: pairs by votes, scores and points by their mean, rankings by mean
position.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from django.db.models import QuerySet
from rapidfuzz.distance import Levenshtein

from annotations.campaigns import choosing
from annotations.labels.verdicts import VERDICT_COLUMNS, main_column, majority_word, verdict_key, verdict_number
from annotations.models import Adjudication, Label, LabelQuerySet
from bank.samples.held_out import held_out_samples
from judging.models import Judgment, Run

NO_MAJORITY, NO_VERDICT, TURNED, DIFFERS = "no-majority", "no-verdict", "turned", "differs"

REASONS = {
    NO_MAJORITY: "No majority over the repeats",
    NO_VERDICT: "A reply without a verdict",
    TURNED: "A different verdict in the other order",
    DIFFERS: "A different verdict from people's",
}

# A reply came, but no verdict could be read from it. Failed and unaffordable calls are not listed: they are repeated.
UNREADABLE = ("parse_failed", "refused", "filtered", "truncated", "empty")

NUMBERS = {"score", "parts"}  # columns of which one can be compared with the other

FAR_SCORE = 1.0  # on the benchmark's scale; a smaller difference is a matter of taste

FAR_RANKING = 0.5  # normalized Levenshtein distance

Verdict = dict[str, Any]
COLUMNS = ("item", "repeat", "order", "status", *VERDICT_COLUMNS)


def doubts_of(run: Run, *, reasons: Iterable[str] = REASONS) -> dict[int, set[str]]:
    """The items of a run that are in doubt for one of these reasons, each with its reasons, and may be given to people:
    by verdicts that may choose (``choosing``). Only finished items.
    """
    return _in_doubt(
        run, choosing.judgments(), labels=choosing.labels(), adjudications=choosing.adjudications(), reasons=reasons
    )


def withheld_doubts(run: Run) -> dict[int, set[str]]:
    """The items that are in doubt as well, with their reasons, by verdicts that may not choose; for staff."""
    every = _in_doubt(
        run,
        Judgment.objects.all(),
        labels=Label.objects.all(),
        adjudications=Adjudication.objects.all(),
        reasons=REASONS,
    )
    given = doubts_of(run)
    return {item: left for item, why in every.items() if (left := why - given.get(item, set()))}


def _in_doubt(
    run: Run,
    judgments: QuerySet[Judgment],
    *,
    labels: LabelQuerySet,
    adjudications: QuerySet[Adjudication],
    reasons: Iterable[str],
) -> dict[int, set[str]]:
    by_item: dict[int, list[Verdict]] = defaultdict(list)
    for row in judgments.filter(run=run).order_by("item", "repeat", "order").values(*COLUMNS):
        by_item[row["item"]].append(row)
    expected = 0 if run.imported else run.repeats
    compared = by_item.keys() - _held_out(run)
    people = human_verdicts(compared, rule=run.benchmark.majority, labels=labels, adjudications=adjudications)
    doubts: dict[int, set[str]] = {}
    for item, verdicts in by_item.items():
        if len({verdict["repeat"] for verdict in verdicts}) < expected:
            continue
        if why := _reasons(verdicts, people.get(item)) & set(reasons):
            doubts[item] = why
    return doubts


def _held_out(run: Run) -> set[int]:
    """The items on which the run's verdicts are not compared with people's before somebody asks for it."""
    held = held_out_samples(run.benchmark)
    judged = Judgment.objects.filter(run=run).order_by().values_list("item", "item__sample").distinct() if held else ()
    return {item for item, sample in judged if sample in held}


def _reasons(judgments: Sequence[Verdict], people: Verdict | None) -> set[str]:
    why = set()
    if any(judgment["status"] in UNREADABLE for judgment in judgments):
        why.add(NO_VERDICT)
    repeats = _by_repeat(judgments)
    if any(map(_depends_on_order, repeats.values())):
        why.add(TURNED)
    combined = [merged for verdicts in repeats.values() if (merged := combine_verdicts(verdicts))]
    if _lacks_majority(combined):
        why.add(NO_MAJORITY)
    verdict_of_judge = judge_verdict(combined)
    if people and verdict_of_judge and differs(verdict_of_judge, people):
        why.add(DIFFERS)
    return why


def _depends_on_order(verdicts: Iterable[Verdict]) -> bool:
    return len({verdict_key(verdict) for verdict in verdicts}) > 1


def _lacks_majority(verdicts: Iterable[Verdict]) -> bool:
    keys = [key for verdict in verdicts if (key := verdict_key(verdict))]
    return len(keys) > 1 and majority_word(keys) is None


def judge_verdict(repeats: Sequence[Verdict]) -> Verdict | None:
    """A judge's verdict on an item: that of more than half of its repeats, else all repeats combined."""
    majority_key = majority_word(key for verdict in repeats if (key := verdict_key(verdict)))
    for verdict in repeats:
        if majority_key and verdict_key(verdict) == majority_key:
            return verdict
    return combine_verdicts(repeats)


def _by_repeat(judgments: Sequence[Verdict]) -> Mapping[int, list[Verdict]]:
    """The verdicts in all orders, by repeat."""
    repeats: dict[int, list[Verdict]] = defaultdict(list)
    for judgment in judgments:
        if judgment["status"] == Judgment.Status.OK:
            repeats[judgment["repeat"]].append(judgment)
    return repeats


def combine_verdicts(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Combine several verdicts on the same item into one. None if there is none."""
    decided = [verdict for verdict in verdicts if main_column(verdict)]
    if not decided:
        return None
    column = main_column(decided[0])
    assert column is not None
    match column:
        case "choice":
            return {"choice": _combined_choice([verdict["choice"] for verdict in decided])}
        case "score" | "parts" | "grade":
            return {"score": _mean_number(decided)}
        case "ranking":
            return {"ranking": mean_ranking([verdict["ranking"] for verdict in decided])}
    return _most_frequent(column, decided)


def _mean_number(verdicts: Iterable[Verdict]) -> float:
    return fmean(number for verdict in verdicts if (number := verdict_number(verdict)) is not None)


def _most_frequent(column: str, verdicts: Iterable[Verdict]) -> Verdict | None:
    """The value of this column that is there most often; None if two are."""
    top = Counter(verdict[column] for verdict in verdicts).most_common(2)
    return None if len(top) > 1 and top[0][1] == top[1][1] else {column: top[0][0]}


def mean_ranking(rankings: Sequence[list[list[int]]]) -> list[list[int]]:
    """Groups of positions by mean rank (Borda). Equal means share a group."""
    ranks: dict[int, list[float]] = defaultdict(list)
    for ranking in rankings:
        before = 0
        for group in ranking:
            for position in group:
                ranks[position].append(before + (len(group) + 1) / 2)
            before += len(group)
    means = {position: round(fmean(values), 9) for position, values in ranks.items()}
    groups: dict[float, list[int]] = defaultdict(list)
    for position, mean in means.items():
        groups[mean].append(position)
    return [sorted(groups[mean]) for mean in sorted(groups)]


def _combined_choice(choices: Sequence[str]) -> str:
    votes = Counter(choices)
    if votes["first"] != votes["second"]:
        return "first" if votes["first"] > votes["second"] else "second"
    return choices[0] if len(votes) == 1 else "tie"


def differs(judge: Verdict, people: Verdict) -> bool:
    """Compare a judge's verdict with people's. A tie and "unable to decide" count as the same."""
    judge_column, column = main_column(judge), main_column(people)
    if judge_column is None or column is None or not _comparable(judge_column, column):
        return False
    if column == "choice":
        choices = {judge["choice"], people["choice"]}
        return len(choices) > 1 and not choices <= {"tie", "undecided"}
    if column in NUMBERS:
        return abs((verdict_number(judge) or 0) - (verdict_number(people) or 0)) >= FAR_SCORE
    if column == "ranking":
        return Levenshtein.normalized_distance(_in_line(judge), _in_line(people)) > FAR_RANKING
    return bool(judge[column] != people[column])


def _comparable(column: str, other: str) -> bool:
    return column == other or {column, other} == NUMBERS


def _in_line(verdict: Verdict) -> list[int]:
    """The positions of a ranking, best first."""
    return [position for group in verdict["ranking"] for position in group]


def human_verdicts(
    items: Iterable[int],
    *,
    rule: str,
    labels: LabelQuerySet,
    adjudications: QuerySet[Adjudication],
    every: bool = False,
) -> dict[int, Verdict]:
    """People's verdict on each of these items: the adjudicated one, else the one that those of these labels make
    together which are compared with judges' verdicts, or ``every`` one that counts.
    """
    wanted = set(items)
    answers = labels.of_answers()
    by_item = _verdicts_by_item(answers.counted() if every else answers.compared(), wanted, "item")
    choices = [(item, label["choice"]) for item, verdicts in by_item.items() for label in verdicts if label["choice"]]
    people = _majorities(choices, rule) if choices else {}
    for item, verdicts in by_item.items():
        if item not in people and (combined := combine_verdicts(verdicts)):
            people[item] = combined
    adjudications = adjudications.filter(campaign_item__reviewed__isnull=True)
    for item, verdicts in _verdicts_by_item(adjudications, wanted, "campaign_item__item").items():
        for adjudicated in filter(main_column, verdicts):
            people[item] = adjudicated
    return people


def _majorities(choices: Sequence[tuple[int, str]], rule: str) -> dict[int, Verdict]:
    """The majority per item of these choices: (item, choice)."""
    import pandas as pd  # here: commands that need no majority start in half the time

    from stats.verdicts import majority

    labels = pd.DataFrame(choices, columns=["item", "choice"])
    majorities = majority(labels=labels, rule=rule)["choice"]
    return {int(item): {"choice": choice} for item, choice in majorities.items()}


def _verdicts_by_item(rows: Any, items: set[int], column: str) -> dict[int, list[Verdict]]:
    """The verdicts in rows about these items, oldest first. Filters by id only if the items are few."""
    if len(items) <= 500:
        rows = rows.filter(**{f"{column}__in": items})
    by_item: dict[int, list[Verdict]] = defaultdict(list)
    for row in rows.order_by("pk").values(column, *VERDICT_COLUMNS):
        if row[column] in items:
            by_item[row[column]].append(row)
    return by_item


HQ, HARD = "hq", "hard"

SUBSETS = {HQ: "HQ: judgments that agree with people", HARD: "HARD: judgments that differ, or hallucinate"}


def subset_of(run: Run, name: str) -> list[int]:
    """The judgments (ids) of a run in one of the subsets of MLLM-as-a-Judge (arXiv 2402.04788, 3).

    HQ has the judgments that agree with people, HARD those that differ or hallucinate. Judgments on items without a
    human verdict are in neither, nor are those on items that are held out. If a judgment was reviewed, a majority of
    its reviewers decides: it is in HARD if they find it wrong or hallucinating, and otherwise in HQ, even if nobody
    labelled the item.
    """
    rows = list(Judgment.objects.filter(run=run, status="ok").order_by("pk").values("pk", "item", *VERDICT_COLUMNS))
    held = _held_out(run)
    rows = [row for row in rows if row["item"] not in held]
    people = human_verdicts(
        {row["item"] for row in rows},
        rule=run.benchmark.majority,
        labels=Label.objects.all(),
        adjudications=Adjudication.objects.all(),
    )
    agreed, hallucinated = _reviews_of(run)
    subset = []
    for row in rows:
        human, pk = people.get(row["item"]), row["pk"]
        wrong = _is_wrong(row, human, agreed[pk])
        hallucinates = 2 * sum(hallucinated[pk]) > len(hallucinated[pk])
        if wrong is None and not hallucinates:
            continue
        if (HARD if wrong or hallucinates else HQ) == name:
            subset.append(pk)
    return subset


def _is_wrong(judgment: Verdict, people: Verdict | None, reviews: Sequence[bool]) -> bool | None:
    """By its reviews, else by people's verdict on the item; None if there is neither."""
    if reviews:
        return 2 * sum(reviews) <= len(reviews)
    return differs(judgment, people) if people and main_column(people) else None


def _reviews_of(run: Run) -> tuple[dict[int, list[bool]], dict[int, list[bool]]]:
    """The answers of reviewers by judgment: is it right, does it hallucinate."""
    agreed: dict[int, list[bool]] = defaultdict(list)
    hallucinated: dict[int, list[bool]] = defaultdict(list)
    reviews = Label.objects.compared().filter(assignment__campaign_item__reviewed__run=run)
    columns = ("assignment__campaign_item__reviewed", "agree", "hallucination")
    for judgment, agree, hallucination in reviews.values_list(*columns):
        for answers, answer in ((agreed, agree), (hallucinated, hallucination)):
            if answer is not None:
                answers[judgment].append(answer)
    return agreed, hallucinated
