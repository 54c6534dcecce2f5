"""How large a campaign would be before it is made: items, labels, hours; and an item as annotators will see it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from django.utils.safestring import SafeString

import bank.text.rendering
from annotations import ballots
from annotations.assignment import material
from annotations.assignment.queries import Answer, presented_answers
from annotations.campaigns.candidates import (
    Candidate,
    ballot_settings,
    candidates_for,
    configured_ballot,
    lacks_criteria_alone,
    why_no_items,
)
from annotations.campaigns.sampling import Plan, select_items
from annotations.labels.own import usual_seconds
from annotations.models import Campaign, CampaignItem, Label
from bank.database import chunks
from bank.errors import BadInput
from bank.models import Benchmark, Item, Sample, SampleImage
from bank.samples.items import make_items, plan_items
from judging.judgments import analyses
from judging.models import Judgment

YES_NO_QUESTION = re.compile(
    r"\byes\b.{1,40}\bno\b|(^|[.!?:,;\n])\W*(and |or |so )?"
    r"(is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|shall|should|may|might|must)(n['’]t)?\b[^.?!\n]*\?"
    r"|吗|是否|是不是|有没有",
    re.IGNORECASE,
)
MANY = 1_000  # items; opening so many to everybody is confirmed first
MADE_AT_ONCE = 5_000  # items that the form makes itself; more are made on the page Items, in steps


@dataclass(frozen=True, slots=True)
class Hides:
    """What nobody below staff sees of a blind campaign's items until it is closed, where gold is hidden among them."""

    labels: int
    judgments: int
    due: date | None
    lacking: int = 0  # decoys, for which there are too few ordinary items


def hidden_by(items: Iterable[int], *, due: date | None, lacking: int = 0) -> Hides:
    """The verdicts on these items."""
    labels = judgments = 0
    for ids in chunks(items):
        labels += Label.objects.filter(item__in=ids).count()
        judgments += Judgment.objects.filter(item__in=ids).count()
    return Hides(labels, judgments, due, lacking)


def hides(campaign: Campaign) -> Hides | None:
    """The same of a campaign that was made; None where it hides nothing because of gold."""
    gold = CampaignItem.objects.filter(campaign=campaign, gold__isnull=False, practice=False).count()
    if not campaign.blind or campaign.state == Campaign.State.CLOSED or not (gold or campaign.gold_rate):
        return None
    decoys = CampaignItem.objects.filter(campaign=campaign, decoy=True).count()
    items = campaign.campaign_items.values_list("item", flat=True)
    return hidden_by(items, due=campaign.due, lacking=max(0, gold - decoys))


@dataclass(frozen=True, slots=True)
class Size:
    """``why`` says why there are no items, and ``makable`` how many the form could make now."""

    benchmark: Benchmark
    protocol: str
    items: int = 0
    samples: int = 0
    of_samples: int = 0  # the benchmark's
    overlap: int = 1
    usual: float = 0
    timed: int = 0  # labels that the usual time comes from
    readable: int | None = None
    absent: int = 0  # items of which a picture is not stored here
    why: str = ""
    lacks_criteria: bool = False  # there would be items if the campaign showed criteria
    makable: int = 0
    kind: str = ""
    first: Candidate | None = None
    hides: Hides | None = None  # with hidden gold
    open_questions: int = 0  # items without a third way whose instruction does not look like a yes or no question

    @property
    def labels(self) -> int:
        return self.items * self.overlap

    @property
    def work(self) -> float:
        """Seconds."""
        return self.labels * self.usual

    @property
    def noun(self) -> str:
        """A word for the items: pairs, scores."""
        return {Item.Kind.PAIR: "pairs", Item.Kind.BATCH: "batches"}.get(Item.Kind(self.kind), "single answers")


def size_of(
    *,
    benchmark: Benchmark,
    protocol: str,
    plan: Plan,
    seed: int,
    shows_criteria: bool,
    ballot: Mapping[str, Any],
    overlap: int,
    hides_gold: bool = False,
    due: date | None = None,
) -> Size:
    """Of the campaign that these settings make. Raises BadInput for settings that make none."""
    selection = select_items(
        benchmark=benchmark, protocol=protocol, plan=plan, seed=seed, shows_criteria=shows_criteria, ballot=ballot
    )
    candidates = selection.candidates
    every: dict[str, Any] = {
        "benchmark": benchmark,
        "protocol": protocol,
        "shows_criteria": shows_criteria,
        "ballot": ballot,
    }
    if not candidates and not candidates_for(**every):
        return _none(**every)
    readable = _readable(candidates) if _shows_one_analysis(protocol, ballot) else None
    usual, timed = usual_seconds(protocol)
    lacking = set(benchmark.samples.exclude(absent_images=[]).values_list("pk", flat=True))
    return Size(
        benchmark,
        protocol,
        items=len(candidates),
        samples=selection.samples,
        of_samples=benchmark.samples.in_use().count(),
        overlap=overlap,
        usual=usual,
        timed=timed,
        readable=readable,
        absent=sum(candidate.sample in lacking for candidate in candidates),
        first=candidates[0] if candidates else None,
        hides=hidden_by((candidate.item for candidate in candidates), due=due) if hides_gold else None,
        open_questions=_open_questions(benchmark, candidates) if protocol == "yes-no" else 0,
    )


def _shows_one_analysis(protocol: str, ballot: Mapping[str, Any]) -> bool:
    kind = ballots.get(protocol)
    return kind.of_judgments and not kind.of_two and bool(ballot.get("analyses", True))


def _readable(candidates: Sequence[Candidate]) -> int:
    """How many of the judgments have an analysis that everybody may read."""
    judgments = Judgment.objects.filter(pk__in=[pk for candidate in candidates for pk in candidate.judgments])
    return len(analyses.open_among(judgments))


def _open_questions(benchmark: Benchmark, candidates: Sequence[Candidate]) -> int:
    """How many ask something that yes or no does not answer, as far as English and Chinese words tell."""
    samples = Sample.objects.filter(benchmark=benchmark).values_list("pk", "instruction")
    closed = {pk for pk, instruction in samples if YES_NO_QUESTION.search(instruction)}
    return sum(candidate.sample not in closed for candidate in candidates)


def _none(*, benchmark: Benchmark, protocol: str, shows_criteria: bool, ballot: Mapping[str, Any]) -> Size:
    configured = configured_ballot(benchmark=benchmark, protocol=protocol, ballot=ballot)
    why = why_no_items(benchmark=benchmark, ballot=configured, shows_criteria=shows_criteria)
    if not configured.kind or Item.objects.filter(sample__benchmark=benchmark, kind=configured.kind).exists():
        lacks_criteria = not shows_criteria and lacks_criteria_alone(benchmark=benchmark, ballot=configured)
        return Size(benchmark, protocol, why=why, lacks_criteria=lacks_criteria)
    size = Size(benchmark, protocol, makable=_makable(benchmark, configured.kind), kind=configured.kind)
    if size.makable:
        return size
    few = f"Too few models have answered {benchmark.titled} for {size.noun}. Bring their answers in from a file first."
    return replace(size, why=few)


def _makable(benchmark: Benchmark, kind: str) -> int:
    try:
        return plan_items(kind=kind, benchmark=benchmark).count()
    except BadInput:
        return 0


def make_missing(*, benchmark: Benchmark, protocol: str) -> int:
    """Make the items of a benchmark that this protocol needs. Raises BadInput for none, and for too many at once."""
    plan = plan_items(kind=ballots.get(protocol).kind, benchmark=benchmark)
    if not 0 < plan.count() <= MADE_AT_ONCE:
        raise BadInput(f"{plan.count():,} items cannot be made here. Make them on the benchmark's page Items.")
    return make_items(plan)[0]


@dataclass(frozen=True, slots=True)
class Preview:
    """An item as annotators will see it, without the texts of criteria: those are logged when somebody labels."""

    ballot: ballots.Ballot
    sample: Sample
    instruction: SafeString
    images: list[SampleImage]
    answers: list[Answer]
    groups: list[ballots.Group]
    components: Sequence[ballots.Component]
    reviewed: list[str]  # the verdicts in words
    shows_criteria: bool

    @property
    def ranked(self) -> bool:
        return self.ballot.layout == "ranking"


def preview_of(size: Size, *, ballot: Mapping[str, Any], blind: bool, shows_criteria: bool) -> Preview | None:
    """The first item of a campaign of this size."""
    first = size.first
    if first is None:
        return None
    settings = ballot_settings(benchmark=size.benchmark, protocol=size.protocol, ballot=ballot)
    campaign = Campaign(
        benchmark=size.benchmark,
        protocol=size.protocol,
        ballot=settings,
        blind=blind,
        shows_criteria=shows_criteria,
    )
    item = Item.objects.select_related("sample").get(pk=first.item)
    configured = ballots.of(campaign)
    judgments = list(Judgment.objects.filter(pk__in=first.judgments).select_related("run", "item").order_by("pk"))
    place = CampaignItem(campaign=campaign, item=item)
    place.reviewed, place.against = [*judgments, None, None][:2]
    assignment = material.unshuffled(place)
    if len(judgments) == 1:
        assignment.order = judgments[0].order
    subject = material.material_for(assignment, configured)
    return Preview(
        ballot=configured,
        sample=item.sample,
        instruction=bank.text.rendering.markdown(item.sample.instruction),
        images=list(SampleImage.objects.filter(sample=item.sample_id)),
        answers=presented_answers(assignment) if item.places.exists() else [],
        groups=configured.groups(subject, {}),
        components=subject.components,
        reviewed=[material.verdict_in_words(judgment) for judgment in judgments],
        shows_criteria=shows_criteria,
    )
