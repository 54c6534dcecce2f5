"""The items of a benchmark that a protocol can label, and the judgments that can be reviewed or compared."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from django.db.models import QuerySet

import bank.criteria
from annotations import ballots
from annotations.ballots import Ballot
from annotations.campaigns import choosing
from annotations.models import Campaign
from bank import exposure
from bank.errors import BadInput
from bank.models import Benchmark, Item, Sample
from judging import protocols
from judging.judgments import analyses
from judging.models import Judgment, Run


def items_for(*, benchmark: Benchmark, ballot: Ballot, shows_criteria: bool = False) -> QuerySet[Item]:
    """Items of approved samples that this ballot fits, in a stable order; none that a file of verdicts chose."""
    approved = Item.objects.filter(exposure.named_openly(""), sample__status=Sample.Status.APPROVED)
    items = ballot.fitting(approved.filter(sample__benchmark=benchmark, kind=ballot.kind))
    if ballot.shows == ballots.COMPONENTS:
        samples = bank.criteria.shown_weights(
            sample_ids=set(items.values_list("sample", flat=True)),
            by_campaign=shows_criteria,
            default_weight=ballot.default_weight,
        )
        items = items.filter(sample__in=list(samples))
    return items.order_by("pk")


def judgments_for(*, benchmark: Benchmark, run: Run | None = None) -> QuerySet[Judgment]:
    """Judgments whose single verdicts annotators may see: those that may choose items for them."""
    judgments = choosing.judgments().filter(run__benchmark=benchmark, status=Judgment.Status.OK)
    judgments = judgments.filter(item__sample__status=Sample.Status.APPROVED)
    return (judgments if run is None else judgments.filter(run=run)).order_by("pk")


def lacks_criteria_alone(*, benchmark: Benchmark, ballot: Ballot) -> bool:
    """Whether there would be items if the campaign showed criteria."""
    if ballot.shows != ballots.COMPONENTS:
        return False
    return items_for(benchmark=benchmark, ballot=ballot, shows_criteria=True).exists()


def why_no_items(*, benchmark: Benchmark, ballot: Ballot, shows_criteria: bool) -> str:
    """Why there is nothing to label, and what to do about it."""
    if ballot.kind and not Item.objects.filter(sample__benchmark=benchmark, kind=ballot.kind).exists():
        command = f"manage.py make_items {ballot.kind} --benchmark {benchmark}"
        return (
            f"{benchmark} has no {ballot.kind} items yet. Make them first, on its page Items in the bank or with "
            f"{command}"
        )
    of_files = Item.objects.filter(sample__benchmark=benchmark, kind=ballot.kind, held__gt=0)
    if ballot.kind and of_files.exclude(exposure.named_openly("")).exists():
        return (
            f"The {ballot.kind} items of {benchmark} came with verdicts of files, and which there are may tell what is "
            "hidden. Make items by a plan, or say that those who gave the verdicts saw nothing hidden"
        )
    if not shows_criteria and lacks_criteria_alone(benchmark=benchmark, ballot=ballot):
        why = (
            "its weighted components are not public"
            if benchmark.visibility == Benchmark.Visibility.PUBLIC
            else f"{benchmark.titled} is for staff only"
        )
        return f"Annotators would not see the weighted components, because {why}. Let this campaign show criteria."
    return f"{benchmark} has nothing to label with {ballot.protocol}: {ballot.lacking}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that can be labelled: an item, or ``judgments``, one under review or two that are compared."""

    item: int
    sample: int
    judgments: tuple[int, ...] = ()

    @property
    def subject(self) -> tuple[int, ...]:
        """As ``CampaignItem.subject``."""
        return self.judgments or (self.item,)


def comparisons_for(*, benchmark: Benchmark, run: Run | None) -> Iterator[Candidate]:
    """Every two judges on every item, once: two judgments as in ``judgments_for`` whose analyses annotators may read,
    with verdicts of one kind, by different judges, or by one with different protocols or settings; with ``run``, one of
    them of this run.

    Both saw the answers in the same order, for their analyses name the answers by it: in the first order in which both
    have judged the item, the first judgment of each.
    """
    kinds = {name: protocol.verdict_kind for name, protocol in protocols.all_by_name().items()}
    judgments = judgments_for(benchmark=benchmark)
    readable = analyses.open_among(judgments)
    columns = ("pk", "item", "item__sample", "order", "run", "run__judge", "run__protocol", "run__settings_hash")
    on_item: dict[tuple[int, int, str], dict[str, dict[tuple[Any, ...], tuple[int, int]]]] = defaultdict(dict)
    for pk, item, sample, order, of_run, *judge in judgments.values_list(*columns):
        if pk in readable:
            on_item[item, sample, kinds.get(judge[1], judge[1])].setdefault(order, {}).setdefault(
                tuple(judge), (pk, of_run)
            )
    for (item, sample, _), in_orders in on_item.items():
        drawn = set()
        for _, first in sorted(in_orders.items()):
            for a, b in combinations(sorted(first, key=first.__getitem__), 2):
                (one, run_of_one), (other, run_of_other) = first[a], first[b]
                if frozenset((a, b)) in drawn or (run is not None and run.pk not in (run_of_one, run_of_other)):
                    continue
                drawn.add(frozenset((a, b)))
                yield Candidate(item, sample, (one, other))


def candidates_for(
    *,
    benchmark: Benchmark,
    protocol: str,
    shows_criteria: bool = False,
    run: Run | None = None,
    ballot: Mapping[str, Any] | None = None,
) -> list[Candidate]:
    """Everything in a benchmark that can be labelled with this protocol and ballot. Raises BadInput."""
    configured = configured_ballot(benchmark=benchmark, protocol=protocol, ballot=ballot or {})
    if configured.of_two:
        return list(comparisons_for(benchmark=benchmark, run=run))
    if configured.of_judgments:
        judgments = judgments_for(benchmark=benchmark, run=run)
        return [
            Candidate(item, sample, (pk,)) for item, sample, pk in judgments.values_list("item", "item__sample", "pk")
        ]
    items = items_for(benchmark=benchmark, ballot=configured, shows_criteria=shows_criteria)
    return [Candidate(*row) for row in items.values_list("pk", "sample_id")]


def candidates_of(campaign: Campaign) -> list[Candidate]:
    """Everything that a campaign could take."""
    return candidates_for(
        benchmark=campaign.benchmark,
        protocol=campaign.protocol,
        shows_criteria=campaign.shows_criteria,
        ballot=campaign.ballot,
    )


def configured_ballot(*, benchmark: Benchmark, protocol: str, ballot: Mapping[str, Any]) -> Ballot:
    """The ballot of a protocol with these settings. Raises BadInput."""
    settings = ballot_settings(benchmark=benchmark, protocol=protocol, ballot=ballot)
    return type(ballots.get(protocol))(settings)


def ballot_settings(*, benchmark: Benchmark, protocol: str, ballot: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a ballot with all defaults filled in. Raises BadInput."""
    try:
        return ballots.get(protocol).clean_settings(ballot, scale=ballots.scale_of(benchmark))
    except (ballots.UnknownBallot, ballots.BadSettings) as error:
        raise BadInput(str(error)) from None
