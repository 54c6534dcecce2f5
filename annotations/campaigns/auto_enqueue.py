"""Items that flow into a campaign by themselves: by its rule, what judges' runs leave in doubt.

A rule is ``{"runs": [ids] or "all", "reasons": [...], "seen": {run: newest judgment}}``: the runs on the campaign's
benchmark that no worker is at. It is looked at when somebody asks for an item or opens the
campaign's page; what has no new judgments is passed over by one look at an index.
"""

from collections.abc import Collection, Iterable

from django.db import transaction
from django.db.models import Max, QuerySet

from annotations.assignment.errors import Refused
from annotations.campaigns import run_doubts, sampling
from annotations.campaigns.actions import add_items
from annotations.campaigns.candidates import Candidate, candidates_of
from annotations.campaigns.sampling import Selection
from annotations.models import Campaign
from bank.database import chunks
from bank.errors import BadInput
from judging.models import OVERLAP, Judgment, Run

ALL = "all"


def runs_for(campaign: Campaign) -> "QuerySet[Run]":
    """Runs whose items the campaign could take. The overlap baseline tells on the criteria: it is left out."""
    found = Run.objects.filter(benchmark=campaign.benchmark_id, kind=Run.Kind.JUDGMENTS)
    return found.exclude(judge__baseline=OVERLAP).select_related("judge", "benchmark").order_by("-pk")


def set_rule(*, campaign: Campaign, runs: Iterable[int] | str, reasons: Iterable[str]) -> int:
    """What flows in from now on, beginning with what is there; how many items that brought. Raises BadInput."""
    wanted = list(dict.fromkeys(reasons))
    if set(wanted) - set(run_doubts.REASONS):
        raise BadInput(f"Choose what is in doubt: {', '.join(run_doubts.REASONS)}.")
    chosen = ALL if runs == ALL else sorted({int(run) for run in runs})
    if chosen != ALL and runs_for(campaign).filter(pk__in=chosen).count() != len(chosen):
        raise BadInput(f"Choose runs on {campaign.benchmark}.")
    campaign.rule = {"runs": chosen, "reasons": wanted, "seen": {}} if wanted and chosen else {}
    campaign.save(update_fields=["rule"])
    return enqueue_new_items(campaign)


def enqueue_new_items(campaign: Campaign) -> int:
    """Bring in what the rule finds since it was last looked at; how many items."""
    if not campaign.rule or campaign.imported or campaign.state == Campaign.State.CLOSED:
        return 0
    fresh = _runs_with_new_judgments(campaign)
    if not fresh:
        return 0
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().select_related("benchmark").get(pk=campaign.pk)
        candidates = candidates_of(campaign)
        brought = 0
        for run, newest in fresh.items():
            brought += add_doubtful_items(
                campaign=campaign, run=run, reasons=campaign.rule["reasons"], candidates=candidates
            )
            campaign.rule["seen"][str(run.pk)] = newest
        campaign.save(update_fields=["rule"])
    return brought


def _runs_with_new_judgments(campaign: Campaign) -> dict[Run, int]:
    """The rule's runs with judgments since the last look, with the newest one."""
    runs = runs_for(campaign).exclude(state__in=(Run.State.QUEUED, Run.State.RUNNING))
    if campaign.rule["runs"] != ALL:
        runs = runs.filter(pk__in=campaign.rule["runs"])
    found = {}
    for run in runs:
        newest = Judgment.objects.filter(run=run).aggregate(newest=Max("pk"))["newest"]
        if newest and newest > campaign.rule["seen"].get(str(run.pk), 0):
            found[run] = newest
    return found


def add_doubtful_items(*, campaign: Campaign, run: Run, reasons: Iterable[str], candidates: Iterable[Candidate]) -> int:
    """Add what is in doubt in one run to a campaign; how many items it had not."""
    wanted = set(reasons)
    doubted = {item: held & wanted for item, held in run_doubts.doubts_of(run).items() if held & wanted}
    found = [candidate for candidate in candidates if candidate.item in doubted]
    why = {candidate.pk: sampling.words_for(doubted[candidate.item], run) for candidate in found}
    return add_items(campaign=campaign, chosen=Selection(found, why))


def select_judged_items(*, campaign: Campaign, ids: Collection[int]) -> Selection:
    """The items of some judgments, or for a review the judgments themselves, as far as the campaign can take them.

    Raises Refused where one of them is about another benchmark, or is none: then nothing of the rest comes in, either.
    """
    can_take = candidates_of(campaign)
    candidates = {candidate.pk: candidate for candidate in can_take}
    why: dict[int, str] = {}
    strange = set(ids)
    for some in chunks(ids):
        found = Judgment.objects.filter(pk__in=some, run__benchmark=campaign.benchmark_id).order_by("pk")
        for pk, item, run in found.values_list("pk", "item", "run"):
            strange.discard(pk)
            wanted = pk if campaign.protocol == "review" else item
            if wanted in candidates:
                why.setdefault(wanted, f"chosen by hand (run {run})")
    if strange:
        said = "One of these judgments is" if len(strange) == 1 else f"{len(strange):,} of these judgments are"
        raise Refused(f"{said} not about {campaign.benchmark}, so nothing was added. Choose only judgments about it.")
    return Selection([candidates[pk] for pk in why], why)
