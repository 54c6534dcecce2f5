"""Items that are added to a campaign automatically: by a rule, those that judges' runs leave in doubt.

A rule is ``{"runs": [ids] or "all", "reasons": [...], "seen": {run: newest judgment}}``. It covers runs on the
campaign's benchmark that no worker is processing. It is applied when somebody asks for an item or opens the campaign's
page; if there are no new judgments, that costs one index lookup per run.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.db.models import Max, QuerySet

from annotations import ballots
from annotations.assignment.errors import Refused
from annotations.campaigns import choosing, run_doubts
from annotations.campaigns.actions import add_items
from annotations.campaigns.candidates import Candidate, candidates_of
from annotations.campaigns.sampling import Selection, select_doubtful
from annotations.models import Campaign
from bank import guard
from bank.database import chunks
from bank.errors import BadInput
from judging.models import OVERLAP, Judgment, Run

ALL = "all"


def runs_for(campaign: Campaign) -> "QuerySet[Run]":
    """Runs whose items the campaign could take. Not the overlap baseline's, whose verdicts reveal criteria."""
    runs = Run.objects.filter(benchmark=campaign.benchmark_id, kind=Run.Kind.JUDGMENTS)
    return runs.exclude(judge__baseline=OVERLAP).select_related("judge", "benchmark").order_by("-pk")


def set_rule(*, campaign: Campaign, runs: Iterable[int] | str, reasons: Iterable[str]) -> int:
    """Set the rule and apply it to what is there already. Returns how many items that added. Raises BadInput."""
    reason_list = list(dict.fromkeys(reasons))
    if set(reason_list) - set(run_doubts.REASONS):
        raise BadInput(f"Choose among these reasons for doubt: {', '.join(run_doubts.REASONS)}.")
    run_ids = ALL if runs == ALL else sorted({int(run) for run in runs})
    if run_ids != ALL and runs_for(campaign).filter(pk__in=run_ids).count() != len(run_ids):
        raise BadInput(f"Choose runs on {campaign.benchmark}.")
    campaign.rule = {"runs": run_ids, "reasons": reason_list, "seen": {}} if reason_list and run_ids else {}
    campaign.save(update_fields=["rule"])
    return enqueue_new_items(campaign)


@guard.working()
def enqueue_new_items(campaign: Campaign) -> int:
    """Add what the rule finds in judgments since it was last applied. Returns how many items."""
    if not campaign.rule or campaign.imported or campaign.state == Campaign.State.CLOSED:
        return 0
    newest_by_run = _runs_with_new_judgments(campaign)
    if not newest_by_run:
        return 0
    with transaction.atomic():
        campaign = Campaign.objects.select_for_update().select_related("benchmark").get(pk=campaign.pk)
        candidates, reasons = candidates_of(campaign), campaign.rule["reasons"]
        added = 0
        for run, newest in newest_by_run.items():
            added += add_doubtful_items(campaign=campaign, run=run, reasons=reasons, candidates=candidates)
            campaign.rule["seen"][str(run.pk)] = newest
        campaign.save(update_fields=["rule"])
    return added


def _runs_with_new_judgments(campaign: Campaign) -> dict[Run, int]:
    """The rule's runs that have judgments since it was last applied, with the newest one. Not yet those that nobody
    below staff is told of.
    """
    untold = Run.objects.filter(benchmark=campaign.benchmark_id).unseen_by(AnonymousUser())
    runs = runs_for(campaign).exclude(state__in=Run.GOING).exclude(pk__in=untold)
    if campaign.rule["runs"] != ALL:
        runs = runs.filter(pk__in=campaign.rule["runs"])
    newest_by_run = {}
    for run in runs:
        newest = Judgment.objects.filter(run=run).aggregate(newest=Max("pk"))["newest"]
        if newest and newest > campaign.rule["seen"].get(str(run.pk), 0):
            newest_by_run[run] = newest
    return newest_by_run


def add_doubtful_items(*, campaign: Campaign, run: Run, reasons: Iterable[str], candidates: Iterable[Candidate]) -> int:
    """Add the items that a run leaves in doubt for these reasons. Returns how many are new to the campaign."""
    return add_items(campaign=campaign, selection=select_doubtful(candidates, run, reasons))


def select_judged_items(*, campaign: Campaign, ids: Collection[int]) -> Selection:
    """The items of these judgments that the campaign can take; in a review campaign, the judgments themselves; where
    two are compared, every two of which one is among these. Judgments that may not choose (``choosing``) are left out.

    Raises Refused, and takes none, if one of them is not about the campaign's benchmark.
    """
    candidates: dict[int, list[Candidate]] = defaultdict(list)  # by judgment; by item, where that is labelled
    for candidate in candidates_of(campaign):
        for number in candidate.subject:
            candidates[number].append(candidate)
    of_judgments = ballots.get(campaign.protocol).of_judgments
    chosen: dict[tuple[int, ...], Candidate] = {}
    why: dict[tuple[int, ...], str] = {}
    foreign, withheld = set(ids), 0
    for batch in chunks(ids):
        judgments = Judgment.objects.filter(pk__in=batch, run__benchmark=campaign.benchmark_id).order_by("pk")
        choose = set(choosing.judgments().filter(pk__in=batch).values_list("pk", flat=True))
        for pk, item, run in judgments.values_list("pk", "item", "run"):
            foreign.discard(pk)
            if pk not in choose:
                withheld += 1
                continue
            for candidate in candidates.get(pk if of_judgments else item, ()):
                chosen.setdefault(candidate.subject, candidate)
                why.setdefault(candidate.subject, f"chosen by hand (run {run})")
    if foreign:
        subject = "One of these judgments is" if len(foreign) == 1 else f"{len(foreign):,} of these judgments are"
        raise Refused(
            f"{subject} not about {campaign.benchmark}, so nothing was added. Choose only judgments about it."
        )
    return Selection(list(chosen.values()), why, withheld)
