"""The judgments that a run is made of: items x orders x repeats (x attacks), minus those already stored."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

import bank.criteria
from bank import exposure
from bank.models import Benchmark, Item, ItemResponse, Response, Sample, SampleImage
from bank.text.digests import keyed_digest
from judging import protocols
from judging.extras import attacks
from judging.models import OVERLAP, Judge, Run, RunItem, Trial, judgment_table_of, reason_key
from judging.protocols import Criterion, Option, Protocol

CIRCULAR = re.compile(r"circular-(?P<k>[0-9]{1,2})")  # position i showed option i + k (CircularEval, MMBench 4.1)
# Why nobody was asked about a response that is no answer, by its status. What was cut off is one, as far as it goes.
NOT_ASKED = {
    "empty": "not asked: the answer is empty",
    "refused": "not asked: the model refused to answer",
    "filtered": "not asked: the answer was stopped by the provider's content filter",
    "error": "not asked: the call for the answer failed",
}
SAMPLE_FIELDS = [f"sample__{name}" for name in ("instruction", "question_type", "hint", "options", "absent_images")]


def not_asked_keys() -> list[str]:
    """By which judgments are found about which nobody was asked."""
    return [reason_key(reason) for reason in NOT_ASKED.values()]


class ShownResponse(NamedTuple):
    """The part of a response that a call may show."""

    text: str
    option_order: list[Any] | None
    variant: str
    status: str

    @property
    def unanswered(self) -> str:
        """The status of a response that is no answer: empty, refused, stopped, or of a call that failed; else ""."""
        if self.status in NOT_ASKED:
            return self.status
        return "" if self.text.strip() else str(Response.Status.EMPTY)


@dataclass(frozen=True, slots=True)
class Subject:
    """An item with everything its calls may show, answers in canonical order."""

    item_id: int
    content_hash: str
    sample_id: int
    instruction: str
    question_type: str
    hint: str
    answers: tuple[str, ...]
    criteria: tuple[Criterion, ...]
    options: tuple[Option, ...]
    images: tuple[SampleImage, ...]
    absent: bool  # an image of the sample is not stored here
    unanswered: tuple[str, ...]  # of each answer, why it is none, or ""


@dataclass(frozen=True, slots=True)
class Job:
    """One judgment to make. ``order`` lists canonical positions in presented order: "10" is swapped.

    ``attack`` (NAME@VERSION) is applied to the ``target`` answer; "" leaves the item as it is.
    """

    subject: Subject
    order: str
    repeat: int
    attack: str = ""

    @property
    def positions(self) -> list[int]:
        """Canonical positions in presented order."""
        return [int(position) for position in self.order]

    @property
    def target(self) -> int:
        """The canonical position of the answer under attack: the same for every judge."""
        return attacks.target(self.subject.content_hash, len(self.order))

    @property
    def target_place(self) -> int:
        """Where the judge sees the answer under attack."""
        return self.positions.index(self.target)


def judgeable_items(*, benchmark: Benchmark, protocol: Protocol, rejected: bool = False) -> "QuerySet[Item]":
    """Items that this protocol judges, in the benchmark's order; with ``rejected`` also those of rejected samples."""
    items = protocol.fitting(Item.objects.filter(sample__benchmark=benchmark, kind=protocol.kind))
    if not rejected:
        items = items.exclude(sample__status=Sample.Status.REJECTED)
    return items.order_by("sample__position", "sample_id", "pk")


def without_pictures(benchmark: Benchmark) -> "QuerySet[Item]":
    """Items of which a picture is not stored here."""
    return Item.objects.filter(sample__benchmark=benchmark).exclude(sample__absent_images=[])


@dataclass(frozen=True, slots=True)
class Offer:
    """A protocol for a judge and a benchmark: how many items it would judge, or why it cannot."""

    protocol: Protocol
    items: int
    problem: str

    @property
    def words(self) -> str:
        if self.problem:
            return self.problem
        noun = self.protocol.units if self.protocol.needs_answer else "items"
        count = f"{self.items:,} {noun if self.items != 1 else noun.removesuffix('s')}"
        both = self.protocol.kind == Item.Kind.PAIR and self.protocol.settings({})["order"] == "both"
        return f"{count}{' in both orders' if both else ''}: {self.protocol.words}"


def offers(*, judge: Judge | None, benchmark: Benchmark, names: Sequence[str]) -> list[Offer]:
    """These protocols for a benchmark, those first with which the judge can judge something."""
    counted: dict[str, int] = {}
    found = [_offer(judge, benchmark, protocols.get(name), counted) for name in names]
    return sorted(found, key=lambda offer: bool(offer.problem))


def _offer(judge: Judge | None, benchmark: Benchmark, protocol: Protocol, counted: dict[str, int]) -> Offer:
    """``counted``: how many items each query found so far, for protocols that judge the same."""
    if judge and judge.is_baseline and judge.baseline not in protocol.baselines:
        return Offer(protocol, 0, f"{judge.titled} gives no such verdicts")
    items = judgeable_items(benchmark=benchmark, protocol=protocol).order_by()
    if not items.exists():
        return Offer(protocol, 0, f"no {protocol.units} yet: make items first")
    if protocol.needs_options:
        items = items.exclude(sample__options={})
    if protocol.needs_criteria:
        items = items.filter(bank.criteria.has_kind("sample", protocol.needs_criteria))
    query = str(items.query)
    if query not in counted:
        counted[query] = items.count()
    return Offer(protocol, counted[query], "" if counted[query] else protocol.lacking)


def criteria_fingerprint(run: Run) -> str:
    """The current versions of the criteria of a run's items, hashed; "" for a run that reads none."""
    if not reads_criteria(run):
        return ""
    samples = Sample.objects.filter(pk__in=run.run_items.order_by().values("item__sample"))
    return bank.criteria.fingerprint(samples)


def reads_criteria(run: Run) -> bool:
    """Whether this run shows criteria to its judge.

    Only one baseline reads criteria in every protocol; all of them where the verdict is about the criteria.
    """
    return run.reads_criteria and (
        run.judge.baseline in ("", OVERLAP) or "criteria" in protocols.get(run.protocol).fixed
    )


def will_hold(run: Run) -> int:
    """The closed inputs that its calls will hold (``exposure.Inputs``), from what is closed in its samples now."""
    if not reads_criteria(run):
        return exposure.NOTHING
    samples = Sample.objects.filter(pk__in=run.run_items.order_by().values("item__sample"))
    return exposure.closed_in(samples) & protocols.get(run.protocol).may_hold


def held_more(run: Run) -> bool:
    """Whether it held closed keys that its protocol is not shown any more, so that it must not go on."""
    return not run.imported and bool(run.held & exposure.KEYS & ~protocols.get(run.protocol).may_hold)


def orders(run: Run, content_hash: str, places: int = 2) -> list[str]:
    """The presented orders in which a run judges an item; a shuffled order is always the same for the same run."""
    canonical = "".join(str(place) for place in range(max(places, 1)))
    if places < 2:
        return [canonical]
    match run.orders:
        case "both":
            return [canonical, canonical[::-1]]
        case "shuffled":
            # Ranked by a keyed hash: every order is equally likely, and nobody can predict it without the seed.
            return ["".join(sorted(canonical, key=lambda place: seeded_hash(run, content_hash, "order", place)))]
        case _:
            return [canonical]


def judgments_per_item(run: Run) -> int:
    order_count = 2 if run.orders == "both" and protocols.get(run.protocol).answers > 1 else 1
    return order_count * run.repeats * (1 + len(run.attacks))


def planned_judgments(run: Run) -> int:
    """The number of judgments in the whole run."""
    return run.run_items.count() * judgments_per_item(run)


def unfinished_items(run: Run, *, after: int) -> "QuerySet[RunItem]":
    """The run's items with fewer judgments than planned, filtered by the database."""
    stored = judgment_table_of(run).objects.filter(run=run, item=OuterRef("item")).order_by().values("run")
    count = Coalesce(Subquery(stored.annotate(n=Count("pk")).values("n")), 0)
    planned = judgments_per_item(run)
    return run.run_items.filter(pk__gt=after).alias(stored=count).filter(stored__lt=planned).order_by("pk")


def missing_jobs(run: Run, run_items: Sequence[RunItem], *, read_criteria: bool) -> list[Job]:
    """The judgments that these items of the run still need.

    Items are in the order of their samples, so calls with the same images come close together. Criteria are read for
    all of them at once, with one record in the access log; ``read_criteria=False`` is for asking only whether anything
    is missing.
    """
    item_ids = [run_item.item_id for run_item in run_items]
    table = judgment_table_of(run)
    stored = set(table.objects.filter(run=run, item__in=item_ids).order_by().values_list(*table.KEY))
    subjects = subjects_by_item(item_ids)
    missing = [key for item in item_ids for key in _keys(run, subjects[item]) if key not in stored]
    if missing and read_criteria and reads_criteria(run):
        subjects = _with_read_criteria(run, {item: subjects[item] for item, *_ in missing})
    return [Job(subjects[item], *key) for item, *key in missing]


def _keys(run: Run, subject: Subject) -> Iterator[tuple[Any, ...]]:
    """Of the judgments that a run makes of an item, as their table has them: item, order, repeat, and the attack."""
    attack_keys: list[tuple[Any, ...]] = [()]
    if judgment_table_of(run) is Trial:
        attack_keys = [("",), *((name,) for name in run.attacks)]
    orders_of_item = orders(run, subject.content_hash, len(subject.answers))
    for attack_key in attack_keys:
        for repeat in range(run.repeats):
            yield from ((subject.item_id, order, repeat, *attack_key) for order in orders_of_item)


def _with_read_criteria(run: Run, subjects: Mapping[int, Subject]) -> dict[int, Subject]:
    """With one record in the access log."""
    sample_ids = sorted({subject.sample_id for subject in subjects.values()})
    may_hold = protocols.get(run.protocol).may_hold
    texts = bank.criteria.for_judging(run=run, sample_ids=sample_ids, may_hold=may_hold)
    return {item: with_criteria(subject, texts.get(subject.sample_id, [])) for item, subject in subjects.items()}


def subjects_by_item(item_ids: Sequence[int]) -> dict[int, Subject]:
    """Items by id with what their calls may show, but without criteria."""
    items = list(Item.all_objects.filter(pk__in=item_ids).select_related("sample").only("content_hash", *SAMPLE_FIELDS))
    responses: dict[int, list[ShownResponse]] = {}
    item_responses = ItemResponse.objects.filter(item__in=item_ids).order_by("item_id", "position")
    for item_id, *columns in item_responses.values_list("item_id", *(f"response__{f}" for f in ShownResponse._fields)):
        responses.setdefault(item_id, []).append(ShownResponse(*columns))
    images = images_by_sample(sample__in={item.sample_id for item in items})
    return {
        item.pk: Subject(
            item_id=item.pk,
            content_hash=item.content_hash,
            sample_id=item.sample_id,
            instruction=item.sample.instruction,
            question_type=item.sample.question_type,
            hint=item.sample.hint,
            answers=tuple(response.text for response in responses.get(item.pk, ())),
            criteria=(),
            options=options_of(item.sample, responses.get(item.pk, ())),
            images=tuple(images.get(item.sample_id, ())),
            absent=bool(item.sample.absent_images),
            unanswered=tuple(response.unanswered for response in responses.get(item.pk, ())),
        )
        for item in items
    }


def images_by_sample(**condition: Any) -> dict[int, list[SampleImage]]:
    """The pictures of the samples that fulfil this condition, in order."""
    images: dict[int, list[SampleImage]] = {}
    for image in SampleImage.objects.filter(**condition).order_by("sample_id", "position"):
        images.setdefault(image.sample_id, []).append(image)
    return images


def options_of(sample: Sample, responses: Sequence[Response | ShownResponse]) -> tuple[Option, ...]:
    """The sample's options as its one response saw them: in the response's own order, behind the sample's labels."""
    labels = list(sample.options)
    if not labels:
        return ()
    shown_order = labels
    if len(responses) == 1:
        own_order = [str(label) for label in responses[0].option_order or ()]
        rotation = CIRCULAR.fullmatch(responses[0].variant)
        if sorted(own_order) == sorted(labels):
            shown_order = own_order
        elif rotation:
            shift = int(rotation["k"]) % len(labels)
            shown_order = labels[shift:] + labels[:shift]
    return tuple(Option(label, key, str(sample.options[key])) for label, key in zip(labels, shown_order, strict=True))


def unanswered_places(job: Job, protocol: Protocol, settings: Mapping[str, Any]) -> list[int]:
    """The presented places of answers that are none, where these settle the verdict and no judge is asked: not in a
    ranking with two others to compare, nor about samples.
    """
    whys = job.subject.unanswered
    if settings.get("unanswered") == "asked" or not protocol.needs_answer or whys.count("") > 1:
        return []
    return [place for place, position in enumerate(job.positions) if whys and whys[position]]


def with_criteria(subject: Subject, texts: Sequence[Any]) -> Subject:
    criteria = (Criterion(text.key, text.kind, text.text, text.weight) for text in texts)
    return replace(subject, criteria=tuple(criteria))


def random_seed(run: Run, job: Job) -> bytes:
    """The seed for whatever is drawn at random for a job: the same at every start, and in both orders."""
    return seeded_hash(run, job.subject.content_hash, "draw", str(job.repeat))


def seeded_hash(run: Run, *parts: str) -> bytes:
    """A hash of these strings keyed by the run's seed: the same on every machine and after every crash."""
    return keyed_digest(run.seed, *parts, size=32)
