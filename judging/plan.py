"""Which calls a run is made of, and what each of them shows to the judge."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from django.db.models import Count, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

import bank.criteria
from accounts.installation_key import keyed
from accounts.models import User
from bank.models import Benchmark, Item, ItemResponse, Response, Sample, SampleImage
from judging import attacks, prompts, protocols
from judging.models import OVERLAP, Judge, Judgment, Run, RunItem, Trial, judged_by
from judging.protocols import CannotAsk, Criterion, Material, Option, Protocol, Settings
from judging.requests import Asked, call_key, identity, parameters

# Where a benchmark has no scale of its own: that of MLLM-as-a-Judge (arXiv 2402.04788).
SCALE = ((1.0, "Poor"), (2.0, "Fair"), (3.0, "Average"), (4.0, "Good"), (5.0, "Excellent"))
CIRCULAR = re.compile(r"circular-(?P<k>[0-9]{1,2})")  # place i showed option i + k (CircularEval, MMBench 4.1)
COMPONENTS = "components"
_OF_SAMPLE = [f"sample__{name}" for name in ("instruction", "question_type", "hint", "options", "absent_images")]
DESCRIBED = ("caption", "objects", "caption+objects")


class Shown(NamedTuple):
    """What a call may show of a response."""

    text: str
    option_order: list[Any] | None
    variant: str


@dataclass(frozen=True, slots=True)
class Subject:
    """An item with all that its calls may show, answers in canonical order."""

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
    absent: bool  # the sample has a picture that is not stored here


@dataclass(frozen=True, slots=True)
class Job:
    """One judgment to be made. ``order`` holds canonical positions in presented order: "10" is turned.

    ``attack`` is what is done to the ``target`` answer, as NAME@VERSION; "" in every run that tries no attacks.
    """

    subject: Subject
    order: str
    repeat: int
    attack: str = ""

    @property
    def places(self) -> list[int]:
        return [int(position) for position in self.order]

    @property
    def target(self) -> int:
        """The canonical position of the answer under attack: the same for every judge."""
        return attacks.target(self.subject.content_hash, len(self.order))

    @property
    def shown(self) -> int:
        """The place at which the judge sees it."""
        return self.places.index(self.target)


@dataclass(frozen=True, slots=True)
class AskedJudge(Asked):
    """A request to a judge, and what it shows."""

    material: Material


def covered(*, benchmark: Benchmark, kind: str, rejected: bool = False) -> "QuerySet[Item]":
    """The items of a benchmark that a protocol for this kind can judge, in the benchmark's order.

    Those of samples that staff rejected are left out, unless they are asked for.
    """
    items = Item.objects.filter(sample__benchmark=benchmark, kind=kind)
    if not rejected:
        items = items.exclude(sample__status=Sample.Status.REJECTED)
    return items.order_by("sample__position", "sample_id", "pk")


def criteria_fingerprint(run: Run) -> str:
    """Which versions of the criteria a run's items have now; "" for a run that reads none."""
    if not reads_criteria(run):
        return ""
    samples = Sample.objects.filter(pk__in=run.run_items.order_by().values("item__sample"))
    return bank.criteria.fingerprint(samples)


def reads_criteria(run: Run) -> bool:
    """Whether this run shows criteria to its judge. Of the baselines one reads them; all do to give points for them."""
    return run.reads_criteria and (run.judge.baseline in ("", OVERLAP) or run.protocol == COMPONENTS)


def orders(run: Run, content_hash: str, places: int = 2) -> list[str]:
    """The presented orders in which a run judges an item; a shuffled one is the same at every start."""
    straight = "".join(str(place) for place in range(max(places, 1)))
    if places < 2:
        return [straight]
    match run.orders:
        case "both":
            return [straight, straight[::-1]]
        case "shuffled":
            # By rank of a keyed hash: every order is as likely, and none can be foretold without the seed.
            return ["".join(sorted(straight, key=lambda place: _digest(run, content_hash, "order", place)))]
        case _:
            return [straight]


def per_item(run: Run) -> int:
    """How many judgments an item of the run gets."""
    kind = protocols.get(run.protocol).kind
    return (2 if run.orders == "both" and kind != Item.Kind.SCORE else 1) * run.repeats * (1 + len(run.attacks))


def calls(run: Run) -> int:
    """How many judgments the whole run is made of."""
    return run.run_items.count() * per_item(run)


def unfinished(run: Run, *, after: int = 0) -> "QuerySet[RunItem]":
    """The items of a run that have fewer judgments than planned: the database passes over finished ones."""
    stored = judged_by(run).objects.filter(run=run, item=OuterRef("item")).order_by().values("run")
    number = Coalesce(Subquery(stored.annotate(n=Count("pk")).values("n")), 0)
    planned = per_item(run)
    return run.run_items.filter(pk__gt=after).alias(stored=number).filter(stored__lt=planned).order_by("pk")


def jobs(run: Run, rows: Sequence[RunItem], *, reads: bool = True) -> list[Job]:
    """The judgments that these items of the run lack.

    Items stand in the order of their samples, so calls with the same pictures come close together. Criteria are read
    for all at once, with one record in the access log; ``reads=False`` only asks whether something is missing.
    """
    item_ids = [row.item_id for row in rows]
    made = judged_by(run)
    stored = set(made.objects.filter(run=run, item__in=item_ids).order_by().values_list(*made.KEY))
    subjects = _subjects(item_ids)
    missing = [
        (item, order, repeat, *attack)
        for item in item_ids
        for attack in ([("",), *((name,) for name in run.attacks)] if made is Trial else [()])
        for repeat in range(run.repeats)
        for order in orders(run, subjects[item].content_hash, len(subjects[item].answers))
        if (item, order, repeat, *attack) not in stored
    ]
    if missing and reads and reads_criteria(run):
        judged = {item: subjects[item] for item, *_ in missing}
        sample_ids = sorted({subject.sample_id for subject in judged.values()})
        texts = bank.criteria.for_judging(run=run, sample_ids=sample_ids)
        subjects = {item: _with_criteria(one, texts.get(one.sample_id, [])) for item, one in judged.items()}
    return [Job(subjects[item], *key) for item, *key in missing]


def subjects(item_ids: Sequence[int]) -> list[Subject]:
    """Items with what their calls may show, without criteria."""
    return list(_subjects(item_ids).values())


def _subjects(item_ids: Sequence[int]) -> dict[int, Subject]:
    """Items by id, without criteria."""
    items = list(Item.objects.filter(pk__in=item_ids).select_related("sample").only("content_hash", *_OF_SAMPLE))
    answers: dict[int, list[Shown]] = {}
    places = ItemResponse.objects.filter(item__in=item_ids).order_by("item_id", "position")
    for item, *shown in places.values_list("item_id", *(f"response__{name}" for name in Shown._fields)):
        answers.setdefault(item, []).append(Shown(*shown))
    images: dict[int, list[SampleImage]] = {}
    samples = {item.sample_id for item in items}
    for image in SampleImage.objects.filter(sample__in=samples).order_by("sample_id", "position"):
        images.setdefault(image.sample_id, []).append(image)
    return {
        item.pk: Subject(
            item_id=item.pk,
            content_hash=item.content_hash,
            sample_id=item.sample_id,
            instruction=item.sample.instruction,
            question_type=item.sample.question_type,
            hint=item.sample.hint,
            answers=tuple(response.text for response in answers.get(item.pk, ())),
            criteria=(),
            options=options_of(item.sample, answers.get(item.pk, ())),
            images=tuple(images.get(item.sample_id, ())),
            absent=bool(item.sample.absent_images),
        )
        for item in items
    }


def options_of(sample: Sample, responses: Sequence[Response | Shown]) -> tuple[Option, ...]:
    """The sample's options as the one response saw them: its own order behind the sample's labels."""
    keys = list(sample.options)
    if not keys:
        return ()
    seen = keys
    if len(responses) == 1:
        order = [str(key) for key in responses[0].option_order or ()]
        rotation = CIRCULAR.fullmatch(responses[0].variant)
        if sorted(order) == sorted(keys):
            seen = order
        elif rotation:
            shift = int(rotation["k"]) % len(keys)
            seen = keys[shift:] + keys[:shift]
    return tuple(Option(label, key, str(sample.options[key])) for label, key in zip(keys, seen, strict=True))


def _with_criteria(subject: Subject, texts: Sequence[Any]) -> Subject:
    return replace(subject, criteria=tuple(Criterion(one.key, one.kind, one.text, one.weight) for one in texts))


def material(run: Run, job: Job) -> Material:
    """What a call of this job may show. Raises CannotAsk where pictures are to be described and are not."""
    subject = job.subject
    context = run.settings.get("context", "image")
    shown = subject.images if context == "image" else ()
    descriptions: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    if context in DESCRIBED and subject.absent:
        raise CannotAsk("a picture of the sample is not stored here, nor what is in it")
    if context in DESCRIBED and subject.images:
        if "caption" in context:
            descriptions = tuple(image.description for image in subject.images)
            if not all(descriptions):
                raise CannotAsk("a picture of the sample has no description")
        if "objects" in context:
            objects = tuple(_objects_in_words(image) for image in subject.images)
            if not all(objects):
                raise CannotAsk("no objects are noted for a picture of the sample")
    about = Material(
        instruction=subject.instruction,
        question_type=subject.question_type,
        hint=subject.hint,
        answers=tuple(subject.answers[place] for place in job.places) if subject.answers else (),
        criteria=subject.criteria,
        options=subject.options,
        scale=_scale(run),
        images=len(shown),
        descriptions=descriptions,
        objects=objects,
        withheld=bool(subject.images or subject.absent) and not shown,
        nonce=keyed("nonce", _digest(run, subject.content_hash, job.order, str(job.repeat)).hex())[:16],
    )
    if not job.attack:
        return about
    return attacks.attacked(job.attack, about, protocol=run.protocol, place=job.shown)


def _scale(run: Run) -> tuple[tuple[float, str], ...]:
    own = [(float(step["value"]), str(step.get("label", ""))) for step in run.benchmark.score_scale]
    return tuple(sorted(own)) or SCALE


def _objects_in_words(image: SampleImage) -> str:
    return "\n".join(found if isinstance(found, str) else json.dumps(found) for found in image.objects_found)


def draw(run: Run, job: Job) -> bytes:
    """The seed of what chance decides about a job: the same at every start, and in both orders."""
    return _digest(run, job.subject.content_hash, "draw", str(job.repeat))


def asked(run: Run, job: Job, *, template: prompts.Prompt, protocol: Protocol) -> AskedJudge:
    """Render the prompt of a job. The same job renders the same prompt, on any machine and after any crash.

    Raises CannotAsk where the item lacks what the protocol asks about.
    """
    if job.subject.absent and run.settings.get("context", "image") == "image":
        raise CannotAsk("a picture of the sample is not stored here")
    about = material(run, job)
    shown = job.subject.images if about.images else ()
    text = protocol.render(template, about, run.settings)
    sent = parameters(run, repeat=job.repeat, weighted=protocol.weighted)
    if run.settings.get("structured") and (schema := protocol.schema(about, run.settings)):
        named = {"name": "verdict", "strict": True, "schema": schema}
        sent["response_format"] = {"type": "json_schema", "json_schema": named}
    written = attacks.overlay(job.attack, about, protocol=run.protocol, place=job.shown) if job.attack else ""
    digest = identity(
        run,
        template=template,
        text=text,
        images=shown,
        sent=sent,
        order=job.order,
        repeat=job.repeat,
        overlay=written,
    )
    plain = text.replace(about.nonce, "")
    key = call_key(run, text=plain, images=shown, sent=sent, repeat=job.repeat, overlay=written)
    return AskedJudge(text, shown, sent, digest, key, about, overlay=written)


def asked_again(judgment: Judgment | Trial, *, user: User) -> AskedJudge:
    """The prompt of a stored judgment or trial as it renders today, for staff. Reads criteria in the reader's own name.

    Its hash differs from the stored one when the sample or its criteria have changed since. Raises PermissionDenied,
    CannotAsk, and prompts.UnknownPrompt for a judgment that no template of ours made.
    """
    run = judgment.run
    template = template_of(run)
    subject = _subjects([judgment.item_id])[judgment.item_id]
    if reads_criteria(run):
        about = f"{judgment._meta.verbose_name} {judgment.pk}"
        found = bank.criteria.for_staff(user=user, samples=[judgment.item.sample], how="judgment page", reason=about)
        subject = _with_criteria(subject, found.get(subject.sample_id, []))
    protocol = protocols.get(run.protocol)
    job = Job(subject, *(getattr(judgment, name) for name in judgment.KEY[1:]))
    return asked(run, job, template=template, protocol=protocol)


def previewed(*, template: prompts.Prompt, settings: Settings, item: Item, user: User) -> Asked:
    """A template as a judge of this item would see it, for staff. Reads criteria in the reader's own name.

    Raises PermissionDenied, and CannotAsk where the item lacks what the protocol asks about.
    """
    protocol = protocols.get(template.protocol)
    run = Run(judge=Judge(), benchmark=item.sample.benchmark, protocol=protocol.name, settings=settings)
    subject = _subjects([item.pk])[item.pk]
    if reads_criteria(run):
        about = f"{template.protocol}.{template.name}"
        found = bank.criteria.for_staff(user=user, samples=[item.sample], how="prompt preview", reason=about)
        subject = _with_criteria(subject, found.get(subject.sample_id, []))
    order = orders(run, subject.content_hash, len(subject.answers))[0]
    return asked(run, Job(subject, order, 0), template=template, protocol=protocol)


def template_of(run: Run) -> prompts.Prompt:
    """The template that a run was started with. Raises prompts.UnknownPrompt when it is gone or was edited."""
    name, version = prompts.split(str(run.settings.get("prompt", "default")))
    template = prompts.get(run.protocol, name, version or run.template_version)
    if run.template_sha256 != template.sha256:
        raise prompts.UnknownPrompt(f"The prompt {template.name} {template.version} is not the one this run used.")
    return template


def _digest(run: Run, *parts: str) -> bytes:
    """Bytes that follow from the run's seed and these words: the same on any machine and after any crash."""
    return hashlib.blake2b("\x1f".join(parts).encode(), key=str(run.seed).encode(), digest_size=32).digest()
