"""The subsets of MLLM-as-a-Judge (arXiv 2402.04788, 3): HQ, judgments that agree with people, and HARD, those that
differ from them or that reviewers found to hallucinate."""

from collections import defaultdict

from annotations.disputes import differ, verdicts_of_people
from annotations.models import Label
from annotations.verdicts import MAIN, main_column
from judging.models import Judgment, Run

HQ, HARD = "hq", "hard"
SUBSETS = {HQ: "HQ: judgments that agree with people", HARD: "HARD: judgments that differ, or hallucinate"}


def subset_of(run: Run, name: str) -> list[int]:
    """The judgments (ids) of a run in one subset. A judgment counts where people gave a verdict on its item.

    Of a judgment that reviewers looked at, more than half of them decide: not in HQ, and in HARD, where they say that
    it is wrong or hallucinates; in HQ where they agree, even if nobody labelled the item.
    """
    rows = list(Judgment.objects.filter(run=run, status="ok").order_by("pk").values_list("pk", "item", *MAIN))
    people = verdicts_of_people({item for _, item, *_ in rows}, rule=run.benchmark.majority)
    reviews: dict[int, list[tuple[bool | None, bool | None]]] = defaultdict(list)
    reviewed = Label.objects.filter(
        assignment__campaign_item__reviewed__run=run, excluded=False, assignment__campaign_item__practice=False
    )
    columns = ("assignment__campaign_item__reviewed", "agree", "hallucination")
    for judgment, agree, hallucination in reviewed.values_list(*columns):
        reviews[judgment].append((agree, hallucination))
    found = []
    for pk, item, *columns_ in rows:
        verdict = dict(zip(MAIN, columns_, strict=True))
        against = people.get(item)
        wrong = differ(verdict, against) if against and main_column(against) else None
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
