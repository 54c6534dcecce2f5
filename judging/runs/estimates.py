"""What a run would take, before it starts: calls, tokens, money. An estimate from a sample of its items, no promise.

No criteria are read for it: where a prompt shows some, text of an ordinary length stands in for them. Where earlier
runs of the same kind measured what a call takes, that is taken instead.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from django.db.models import Avg, Count, Max, Min, Q, QuerySet

from bank.models import Benchmark, Item, SampleImage
from judging import protocols
from judging.models import Judge, Judgment, Run
from judging.protocols import CannotAsk, Criterion, prompts
from judging.runs import plan, requests
from judging.work.money import price

LOOKED_AT = 24  # items
MEASURED = 300  # judgments of earlier runs
FEWEST = 10  # of them, to go by
STAND_INS = (Criterion("1", "component", "x" * 120, 5.0), Criterion("2", "soft_reference", "x" * 160, 5.0))
TILE, EACH_TILE, ANY_PICTURE = 512, 170, 85  # tokens of a picture, as OpenAI counts them for GPT-4o
REPLY = {"none": 12, "first": 220, "after": 220, "three-step": 400}  # tokens, by when the reasons are given


@dataclass(frozen=True, slots=True)
class Estimate:
    """``sent``, ``received`` are tokens of all calls; None for a judge that makes none. ``measured`` says from earlier
    calls. ``told`` judgments need no call, ``stored`` ones are answered from stored calls; both by the sample's share.
    """

    items: int
    judgments: int
    told: int = 0
    stored: int = 0
    sent: int | None = None
    received: int | None = None
    cost: float | None = None
    measured: bool = False

    @property
    def calls(self) -> int:
        return max(0, self.judgments - self.told - self.stored)

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
) -> Estimate:
    """``settings`` are canonical; ``items`` those of the run, as far as ``limit`` lets them in."""
    number = min(items.count(), limit or math.inf)
    kind = Run.Kind.ATTACKS if attacks else Run.Kind.JUDGMENTS
    chosen = settings | ({"attacks": list(attacks)} if attacks else {})
    run = Run(kind=kind, judge=judge, benchmark=benchmark, protocol=protocol.name, settings=chosen)
    run.abilities = judge.abilities
    judgments = int(number) * plan.judgments_per_item(run)
    if not number or judge.is_baseline:
        return Estimate(int(number), judgments)
    looked_at = list(plan.subjects_by_item(_spread(items.order_by(), int(number))).values())
    jobs = [
        plan.Job(replace(one, criteria=STAND_INS), order, 0)
        for one in looked_at
        for order in plan.orders(run, one.content_hash, len(one.answers))
    ]
    told = stored = asked = 0
    tokens = 0.0
    template = prompts.get(protocol.name, *prompts.split(str(settings["prompt"])))
    known = _stored(run, template, [job.subject.item_id for job in jobs]) if reuse else set()
    for job in jobs:
        try:
            request = requests.judge_request(run, job, template=template, protocol=protocol)
            needless = protocol.without_call(request.material) is not None
        except CannotAsk:
            told += 1  # it ends in words, without a call
            continue
        told += needless
        stored += not needless and (job.subject.item_id, job.order) in known
        asked += 1
        tokens += text_tokens(request.text) + sum(picture_tokens(image, settings) for image in request.images)
    share = judgments / len(jobs)
    found = Estimate(int(number), judgments, round(told * share), round(stored * share))
    sent, received, measured = tokens / asked if asked else 0.0, _reply_tokens(settings), False
    if before := _measured(run, template):
        (sent, received), measured = before, True
    totals = round(found.calls * sent), round(found.calls * received)
    return replace(
        found, sent=totals[0], received=totals[1], cost=price(judge, totals[0], totals[1]), measured=measured
    )


def text_tokens(text: str) -> float:
    """About how many tokens a text takes: four letters of ASCII to one, other scripts nearly one to one."""
    plain = sum(character < "\x80" for character in text)
    return plain / 4 + 0.8 * (len(text) - plain)


def picture_tokens(image: SampleImage, settings: dict[str, Any]) -> float:
    """A picture in tiles of 512 pixels: made to fit 2,048, then its short edge 768."""
    if settings.get("detail") == "low":
        return ANY_PICTURE
    longest = min(2_048, settings.get("image_size") or 2_048)
    scale = min(1.0, longest / max(image.width, image.height, 1))
    scale = min(scale, 768 / max(min(image.width, image.height), 1)) if scale else scale
    tiles = math.ceil(image.width * scale / TILE) * math.ceil(image.height * scale / TILE)
    return ANY_PICTURE + EACH_TILE * tiles


def _reply_tokens(settings: dict[str, Any]) -> float:
    usual = REPLY[settings["reasoning"]]
    return min(usual, settings.get("max_tokens") or usual)


def _spread(items: QuerySet[Item], number: int) -> list[int]:
    """The ids of some items from all over a set, in a few quick looks however large it is."""
    if number <= 2_000:
        ids = list(items.order_by("pk").values_list("pk", flat=True)[:number])
        return [ids[n * len(ids) // min(LOOKED_AT, len(ids))] for n in range(min(LOOKED_AT, len(ids)))]
    ends = items.aggregate(low=Min("pk"), high=Max("pk"))
    step = (ends["high"] - ends["low"]) / LOOKED_AT
    places = (ends["low"] + int(n * step) for n in range(LOOKED_AT))
    found = [items.filter(pk__gte=at).order_by("pk").values_list("pk", flat=True).first() for at in places]
    return list(dict.fromkeys(pk for pk in found if pk is not None))


def _stored(run: Run, template: prompts.Prompt, items: Sequence[int]) -> set[tuple[int, str]]:
    """(item, order) of what runs with the same settings have stored of this endpoint's model."""
    same = Q(run__protocol=run.protocol, run__template_sha256=template.sha256)
    same &= Q(run__settings_hash=protocols.settings_hash(run.settings), run__imported=False)
    same &= Q(run__judge__base_url=run.judge.base_url, run__judge__model=run.judge.model)
    found = Judgment.objects.filter(same, item__in=set(items), status="ok", repeat=0).order_by()
    return set(found.values_list("item_id", "order"))


def _measured(run: Run, template: prompts.Prompt) -> tuple[float, float] | None:
    """Tokens sent and received by a call, of this judge's newest runs with the same prompt and context here."""
    alike = Run.objects.filter(
        kind=Run.Kind.JUDGMENTS,
        judge=run.judge,
        benchmark=run.benchmark,
        template_sha256=template.sha256,
        settings__context=run.settings["context"],
        settings__reasoning=run.settings["reasoning"],
    )
    newest = alike.order_by("-pk").values_list("pk", flat=True)[:5]
    rows = Judgment.objects.filter(run__in=list(newest), prompt_tokens__isnull=False).order_by("-pk")[:MEASURED]
    found = Judgment.objects.filter(pk__in=list(rows.values_list("pk", flat=True))).aggregate(
        n=Count("pk"), sent=Avg("prompt_tokens"), received=Avg("completion_tokens")
    )
    return (found["sent"], found["received"] or 0.0) if found["n"] >= FEWEST else None
