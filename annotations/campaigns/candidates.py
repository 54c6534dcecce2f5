"""Which items of a benchmark can be labelled by a protocol, and which judgments reviewed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, QuerySet

import bank.criteria
from annotations import ballots
from annotations.ballots import Ballot
from annotations.ballots.scores import Components
from annotations.models import Campaign
from bank.errors import BadInput
from bank.models import Benchmark, Item, Sample
from bank.models.catalogue import in_hidden_splits
from judging.models import OVERLAP, Judgment, Run

REVIEW = "review"
MIN_RANKED, MAX_RANKED = 3, 8


def items_for(*, benchmark: Benchmark, ballot: Ballot, shows_criteria: bool = False) -> QuerySet[Item]:
    """Items of approved samples that this ballot can be cast on, in a stable order."""
    found = Item.objects.filter(sample__benchmark=benchmark, kind=ballot.kind)
    found = found.filter(sample__status=Sample.Status.APPROVED, sample__retired_in="")
    if ballot.protocol == "batch":
        found = found.annotate(n=Count("places")).filter(n__gte=MIN_RANKED, n__lte=MAX_RANKED)
    if ballot.protocol in ("choice-extraction", "yes-no", "components"):
        found = found.filter(places__isnull=False)
    if ballot.protocol == "choice-extraction":
        found = found.exclude(sample__options={})
    if isinstance(ballot, Components):
        samples = bank.criteria.shown_weights(
            sample_ids=_samples(found), by_campaign=shows_criteria, lacking=ballot.default_weight
        )
        found = found.filter(sample__in=list(samples))
    return found.order_by("pk")


def judgments_for(*, benchmark: Benchmark, run: Run | None = None) -> QuerySet[Judgment]:
    """Verdicts of judges that annotators may see one by one: not the overlap baseline's, nor those of hidden splits."""
    found = Judgment.objects.filter(run__benchmark=benchmark, status=Judgment.Status.OK)
    found = found.filter(item__sample__status=Sample.Status.APPROVED, item__sample__retired_in="")
    found = found.exclude(run__judge__baseline=OVERLAP).exclude(in_hidden_splits("item__sample__"))
    return (found if run is None else found.filter(run=run)).order_by("pk")


def why_no_items(*, benchmark: Benchmark, ballot: Ballot) -> str:
    """What to do where there is nothing to label."""
    if ballot.kind and not Item.objects.filter(sample__benchmark=benchmark, kind=ballot.kind).exists():
        make = f"manage.py make_items {ballot.kind} --benchmark {benchmark}"
        return (
            f"{benchmark} has no {ballot.kind} items yet; make them first, on its page Items in the bank or by {make}"
        )
    return f"{benchmark} has nothing to label by {ballot.protocol}: " + {
        "components": "no sample whose weighted components annotators may all see. Show the criteria that are marked "
        "for campaigns, make components public, or say what a part without a weight is worth.",
        "choice-extraction": "no sample of its items has options.",
        "batch": f"no item has {MIN_RANKED} to {MAX_RANKED} answers.",
        "review": "no judge has given a verdict that annotators may see.",
    }.get(ballot.protocol, "no item of an approved sample.")


def _samples(found: QuerySet[Item]) -> Iterable[int]:
    return set(found.values_list("sample", flat=True))


@dataclass(frozen=True, slots=True)
class Candidate:
    """Something that could be labelled: ``pk`` of the item, or of the judgment that is reviewed."""

    pk: int
    item: int
    sample: int


def candidates_for(
    *,
    benchmark: Benchmark,
    protocol: str,
    shows_criteria: bool = False,
    run: Run | None = None,
    ballot: Mapping[str, Any] | None = None,
) -> list[Candidate]:
    """Everything of a benchmark that can be labelled by a protocol, set up by ``ballot``. Raises BadInput."""
    settings = ballot_settings(benchmark=benchmark, protocol=protocol, ballot=ballot or {})
    if protocol == REVIEW:
        judged = judgments_for(benchmark=benchmark, run=run)
        return [Candidate(*row) for row in judged.values_list("pk", "item", "item__sample")]
    set_up = type(ballots.get(protocol))(settings)
    items = items_for(benchmark=benchmark, ballot=set_up, shows_criteria=shows_criteria)
    return [Candidate(pk, pk, sample) for pk, sample in items.values_list("pk", "sample_id")]


def candidates_of(campaign: Campaign) -> list[Candidate]:
    """Everything that a campaign could take."""
    return candidates_for(
        benchmark=campaign.benchmark,
        protocol=campaign.protocol,
        shows_criteria=campaign.shows_criteria,
        ballot=campaign.ballot,
    )


def ballot_settings(*, benchmark: Benchmark, protocol: str, ballot: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a ballot with every default filled in. Raises BadInput."""
    try:
        return ballots.get(protocol).clean_settings(ballot, scale=ballots.scale_of(benchmark))
    except (ballots.UnknownBallot, ballots.BadSettings) as error:
        raise BadInput(str(error)) from None
