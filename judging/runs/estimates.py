"""What a run will take, before it starts: calls, tokens, money, estimated from a sample of its items.

It reads no criteria: where a prompt shows some, placeholders of ordinary length take their place. If earlier runs of
the same kind measured the tokens of a call, those numbers are used instead.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Avg, Count, Max, Min, Q, QuerySet

from bank import guard
from bank.models import Benchmark, Item, SampleImage
from judging import protocols
from judging.models import Judge, Judgment, Run
from judging.protocols import CannotAsk, Criterion, prompts
from judging.runs import plan, requests
from judging.work.budget import price

SAMPLED_ITEMS = 24
MEASURED = 300  # judgments of earlier runs
FEWEST_MEASURED = 10
PLACEHOLDER_CRITERIA = (Criterion("1", "component", "x" * 120, 5.0), Criterion("2", "soft_reference", "x" * 160, 5.0))
TILE, TILE_TOKENS, IMAGE_TOKENS = 512, 170, 85  # tokens of an image, as OpenAI counts them for GPT-4o
REPLY_TOKENS = {"none": 12, "first": 220, "after": 220, "three-step": 400}  # by the setting ``reasoning``


@dataclass(frozen=True, slots=True)
class Estimate:
    """``sent`` and ``received`` are the tokens of all calls, None for a judge that makes none. ``measured``: taken from
    earlier calls. Of ``absent`` items a picture is not stored here. ``told`` judgments need no call, ``stored`` ones
    reuse stored calls; both extrapolated from the sample.
    """

    items: int
    judgments: int
    absent: int = 0
    told: int = 0
    stored: int = 0
    sent: int | None = None
    received: int | None = None
    cost: float | None = None
    measured: bool = False

    @property
    def calls(self) -> int:
        """None of a judge that makes none, however many judgments it gives."""
        return 0 if self.sent is None else max(0, self.judgments - self.told - self.stored)

    @property
    def made(self) -> int:
        """Calls, or verdicts where none are made."""
        return self.judgments if self.sent is None else self.calls

    @property
    def rough(self) -> bool:
        """Whether even the number of calls is a guess."""
        return bool(self.told or self.stored)


def estimate(
    *,
    judge: Judge,
    benchmark: Benchmark,
    protocol: protocols.Protocol,
    settings: dict[str, Any],
    items: QuerySet[Item],
    limit: int | None = None,
    attacks: Sequence[str] = (),
    reuse: bool = False,
    ordinary: bool = False,
) -> Estimate:
    """``settings`` are canonical; of ``items``, the run takes the first ``limit``.

    With ``ordinary`` nothing measured is used: whatever the length of the criteria, the estimate is the same.
    """
    all_items = items.count()
    number = min(all_items, limit or all_items)
    run = Run(judge=judge, benchmark=benchmark, protocol=protocol.name, settings=settings, abilities=judge.abilities)
    if attacks:
        run.kind, run.settings = Run.Kind.ATTACKS, settings | {"attacks": list(attacks)}
    judgments = number * plan.judgments_per_item(run)
    if not number or judge.is_baseline:
        return Estimate(number, judgments)
    absent = 0 if settings["context"] == "none" else _without_pictures(items, number)
    jobs = _jobs(run, _spread(items.order_by(), number))
    template = prompts.get(protocol.name, settings["prompt"])
    counted = _count(run, jobs, template, protocol, reuse=reuse)
    share = judgments / len(jobs)
    told, stored = round(counted.told * share), round(counted.stored * share)
    rough = Estimate(number, judgments, absent, told, stored)
    earlier = None if ordinary else _measured(run, template)
    sent, received = earlier or (counted.sent, _reply_tokens(settings))
    if (steps := requests.steps_of(settings)) and earlier is None:  # each step sends what was said before
        sent = len(steps) * sent + 1.5 * received
    calls = max(0, judgments - told - stored)
    totals = round(calls * sent), round(calls * received)
    cost = price(judge, totals[0], totals[1])
    return replace(rough, sent=totals[0], received=totals[1], cost=cost, measured=earlier is not None)


def _without_pictures(items: QuerySet[Item], number: int) -> int:
    """How many of the first items lack a picture of theirs here."""
    first = items.order_by().values("pk")[:number]
    return items.filter(pk__in=first).exclude(sample__absent_images=[]).count()


def _jobs(run: Run, items: Sequence[int]) -> list[plan.Job]:
    """The first repeat of these items, with placeholders for criteria."""
    return [
        plan.Job(replace(subject, criteria=PLACEHOLDER_CRITERIA), order, 0)
        for subject in plan.subjects_by_item(items).values()
        for order in plan.orders(run, subject.content_hash, len(subject.answers))
    ]


@dataclass(frozen=True, slots=True)
class _Counted:
    """Of some jobs, those that end without a call, those whose call is stored, and the tokens of the mean prompt."""

    told: int
    stored: int
    sent: float


def _count(
    run: Run, jobs: Sequence[plan.Job], template: prompts.Prompt, protocol: protocols.Protocol, *, reuse: bool
) -> _Counted:
    stored_calls = _stored(run, template, [job.subject.item_id for job in jobs]) if reuse else set()
    told = stored = calls = 0
    tokens = 0.0
    for job in jobs:
        if plan.unanswered_places(job, protocol, run.settings):
            told += 1
            continue
        try:
            request = requests.judge_request(run, job, template=template, protocol=protocol)
            needs_no_call = protocol.without_call(request.material) is not None
        except CannotAsk:
            told += 1  # ends with a reason, without a call
            continue
        told += needs_no_call
        stored += not needs_no_call and (job.subject.item_id, job.order) in stored_calls
        calls += 1
        tokens += text_tokens(request.text) + sum(image_tokens(image, run.settings) for image in request.images)
    return _Counted(told, stored, tokens / calls if calls else 0.0)


def text_tokens(text: str) -> float:
    """Roughly how many tokens a text takes: a quarter per ASCII character, 0.8 per character of other scripts."""
    ascii_length = sum(character < "\x80" for character in text)
    return ascii_length / 4 + 0.8 * (len(text) - ascii_length)


def image_tokens(image: SampleImage, settings: dict[str, Any]) -> float:
    """In tiles of 512 pixels, after scaling to fit 2,048 and then the short edge to 768."""
    if settings.get("detail") == "low":
        return IMAGE_TOKENS
    longest = min(2_048, settings.get("image_size") or 2_048)
    scale = min(1.0, longest / max(image.width, image.height, 1))
    scale = min(scale, 768 / max(min(image.width, image.height), 1)) if scale else scale
    tiles = math.ceil(image.width * scale / TILE) * math.ceil(image.height * scale / TILE)
    return IMAGE_TOKENS + TILE_TOKENS * tiles


def _reply_tokens(settings: dict[str, Any]) -> float:
    usual = REPLY_TOKENS[settings["reasoning"]]
    return min(usual, settings.get("max_tokens") or usual)


def _spread(items: QuerySet[Item], number: int) -> list[int]:
    """The ids of a few items spread evenly over a set, with few queries however large it is."""
    if number <= 2_000:
        ids = list(items.order_by("pk").values_list("pk", flat=True)[:number])
        return [ids[n * len(ids) // min(SAMPLED_ITEMS, len(ids))] for n in range(min(SAMPLED_ITEMS, len(ids)))]
    ends = items.aggregate(low=Min("pk"), high=Max("pk"))
    step = (ends["high"] - ends["low"]) / SAMPLED_ITEMS
    starts = (ends["low"] + int(n * step) for n in range(SAMPLED_ITEMS))
    keys = [items.filter(pk__gte=start).order_by("pk").values_list("pk", flat=True).first() for start in starts]
    return list(dict.fromkeys(pk for pk in keys if pk is not None))


@guard.working()
def _stored(run: Run, template: prompts.Prompt, items: Sequence[int]) -> set[tuple[int, str]]:
    """(item, order) of the judgments that runs with the same settings stored for this endpoint's model."""
    same = Q(run__protocol=run.protocol, run__template_sha256=template.sha256)
    same &= Q(run__settings_hash=protocols.settings_hash(run.settings), run__imported=False)
    same &= Q(run__judge__base_url=run.judge.base_url, run__judge__model=run.judge.model)
    judgments = Judgment.objects.filter(same, item__in=set(items), status="ok", repeat=0).order_by()
    return set(judgments.values_list("item_id", "order"))


@guard.working()
def _measured(run: Run, template: prompts.Prompt) -> tuple[float, float] | None:
    """Mean tokens sent and received per call in this judge's newest runs here with the same prompt and context."""
    similar = Run.objects.filter(
        kind=Run.Kind.JUDGMENTS,
        judge=run.judge,
        benchmark=run.benchmark,
        template_sha256=template.sha256,
        settings__context=run.settings["context"],
        settings__reasoning=run.settings["reasoning"],
    )
    newest = similar.order_by("-pk").values_list("pk", flat=True)[:5]
    rows = Judgment.objects.filter(run__in=list(newest), prompt_tokens__isnull=False).order_by("-pk")[:MEASURED]
    means = Judgment.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).aggregate(
        n=Count("pk"), sent=Avg("prompt_tokens"), received=Avg("completion_tokens")
    )
    return (means["sent"], means["received"] or 0.0) if means["n"] >= FEWEST_MEASURED else None
