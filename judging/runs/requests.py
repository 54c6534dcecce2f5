"""The request of one call: the rendered prompt, images and parameters beside it, and the hashes that identify it."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

import bank.criteria
from accounts.installation_key import keyed
from accounts.models import User
from bank import corruptions
from bank.models import Item, SampleImage
from judging import protocols
from judging.extras import attacks
from judging.models import Judge, Judgment, Run, Trial
from judging.protocols import CannotAsk, Material, Protocol, Settings, prompts
from judging.protocols.settings import ONE_STEP
from judging.runs.plan import Job, Subject, orders, reads_criteria, seeded_hash, subjects_by_item, with_criteria

# For benchmarks without a scale of their own: the scale of MLLM-as-a-Judge (arXiv 2402.04788).
DEFAULT_SCALE = ((1.0, "Poor"), (2.0, "Fair"), (3.0, "Average"), (4.0, "Good"), (5.0, "Excellent"))
DESCRIBED = ("caption", "objects", "caption+objects")  # contexts that describe images instead of showing them
TOP_TOKENS = 20  # as many as the usual endpoints give
TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")  # the names of one parameter


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as a call shows it: with words written on it, or corrupted by ``corruption`` with the seed."""

    image: SampleImage
    overlay: str = ""
    corruption: tuple[corruptions.Step, ...] = ()
    seed: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a call: images first, then the text."""

    role: str
    text: str
    pictures: tuple[Picture, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRequest:
    """A request as it is sent: the text, the images beside it, the words written on them, the parameters.

    ``sha256`` identifies it within the run. ``key`` is the same for identical calls of any run: it leaves out the nonce
    that fences the material, because every run draws its own. ``conversation`` replaces text and images where a call
    has several messages.
    """

    parameters: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    images: tuple[SampleImage, ...] = ()
    sha256: str = ""
    key: str = ""
    overlay: str = ""
    conversation: tuple[Message, ...] = ()
    needs: tuple[str, ...] = ()  # parameters that may not be left out

    @property
    def messages(self) -> tuple[Message, ...]:
        pictures = tuple(Picture(image, self.overlay) for image in self.images)
        return self.conversation or (Message("user", self.text, pictures),)


# What the calls of ``step_calls`` ask after the prompt, which lists three steps (MLLM-as-a-Judge), and for the verdict.
STEPS = (
    "Take the steps one at a time, each in a reply of its own. Now the first step only, without a judgement.",
    "Now the second step only, without a judgement.",
    "Now the third step only, without a judgement.",
    "Now compare, and give your judgement exactly as asked above.",
)


def steps_of(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The questions of a run with these settings after the prompt, the last for the verdict; none by default."""
    steps = settings.get("step_calls")
    if isinstance(steps, str):
        return f"First one step, in a reply of its own and without a judgement: {ONE_STEP[steps]}", STEPS[-1]
    return STEPS if steps else ()


def stepped(request: CallRequest, steps: Sequence[str], said: Sequence[str]) -> CallRequest:
    """The call for the next of the ``steps`` of a conversation in which ``said`` are the replies so far."""
    first, *_ = request.messages
    messages = [replace(first, text=f"{first.text.rstrip()}\n\n{steps[0]}")]
    for reply, ask in zip(said, steps[1:], strict=False):
        messages += [Message("assistant", reply), Message("user", ask)]
    parameters = dict(request.parameters)
    if len(said) < len(steps) - 1:  # only the last holds the verdict
        parameters.pop("response_format", None)
    return replace(request, conversation=tuple(messages), parameters=parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequest(CallRequest):
    """A request to a judge, with the material it shows."""

    material: Material


def judge_request(run: Run, job: Job, *, template: prompts.Prompt, protocol: Protocol) -> JudgeRequest:
    """Render the prompt of a job. The same job gives the same prompt on every machine and after every crash.

    Raises CannotAsk if the item lacks what the protocol asks about.
    """
    if job.subject.absent and run.settings.get("context", "image") == "image":
        raise CannotAsk("a picture of the sample is not stored here")
    material = job_material(run, job)
    images = job.subject.images if material.images else ()
    text = protocol.render(template, material, run.settings)
    parameters = request_parameters(run, repeat=job.repeat, weighted=protocol.weighted)
    if run.settings.get("structured") and (schema := protocol.schema(material, run.settings)):
        json_schema = {"name": "verdict", "strict": True, "schema": schema}
        parameters["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    overlay = ""
    if job.attack:
        overlay = attacks.overlay(job.attack, material, protocol=run.protocol, place=job.target_place)
    hashes = identified(
        run,
        template=template,
        text=text,
        images=images,
        parameters=parameters,
        order=job.order,
        repeat=job.repeat,
        overlay=overlay,
        shared_text=text.replace(material.nonce, "") + "".join(steps_of(run.settings)),
    )
    return JudgeRequest(text=text, images=images, parameters=parameters, material=material, overlay=overlay, **hashes)


def job_material(run: Run, job: Job) -> Material:
    """Material that a call of this job may show. Raises CannotAsk if descriptions of images are needed and missing."""
    subject = job.subject
    context = run.settings.get("context", "image")
    images = subject.images if context == "image" else ()
    descriptions, objects = _descriptions(subject, context) if context in DESCRIBED else ((), ())
    material = Material(
        instruction=subject.instruction,
        question_type=subject.question_type,
        hint=subject.hint,
        answers=tuple(subject.answers[position] for position in job.positions) if subject.answers else (),
        criteria=subject.criteria,
        options=subject.options,
        scale=_scale(run),
        images=len(images),
        descriptions=descriptions,
        objects=objects,
        withheld=bool(subject.images or subject.absent) and not images,
        nonce=keyed("nonce", seeded_hash(run, subject.content_hash, job.order, str(job.repeat)).hex())[:16],
    )
    if not job.attack:
        return material
    return attacks.attacked(job.attack, material, protocol=run.protocol, place=job.target_place)


def _descriptions(subject: Subject, context: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The images' descriptions and the objects in them, as far as the context shows them. Raises CannotAsk."""
    descriptions: tuple[str, ...] = ()
    objects: tuple[str, ...] = ()
    if subject.absent:
        raise CannotAsk("a picture of the sample is not stored here, and neither is what it shows")
    if "caption" in context:
        descriptions = tuple(image.description for image in subject.images)
        if not all(descriptions):
            raise CannotAsk("a picture of the sample has no description")
    if "objects" in context:
        objects = tuple(_objects_as_text(image) for image in subject.images)
        if not all(objects):
            raise CannotAsk("a picture of the sample has no list of objects")
    return descriptions, objects


def _objects_as_text(image: SampleImage) -> str:
    return "\n".join(entry if isinstance(entry, str) else json.dumps(entry) for entry in image.objects_found)


def _scale(run: Run) -> tuple[tuple[float, str], ...]:
    own_scale = [(float(step["value"]), str(step.get("label", ""))) for step in run.benchmark.score_scale]
    return tuple(sorted(own_scale)) or DEFAULT_SCALE


def request_of_judgment(judgment: Judgment | Trial, *, user: User) -> JudgeRequest:
    """The prompt of a stored judgment or trial as it renders today, for staff. Reads criteria in the reader's own name.

    Its hash differs from the stored one if the sample or its criteria have changed since. Raises PermissionDenied,
    CannotAsk, and prompts.UnknownPrompt for a judgment that was not made from one of our templates.
    """
    run = judgment.run
    template = template_of(run)
    about = f"{judgment._meta.verbose_name} {judgment.pk}"
    subject = _subject_for_staff(run, judgment.item, user, how="judgment page", about=about)
    job = Job(subject, *(getattr(judgment, name) for name in judgment.KEY[1:]))
    return judge_request(run, job, template=template, protocol=protocols.get(run.protocol))


def preview_request(*, template: prompts.Prompt, settings: Settings, item: Item, user: User) -> JudgeRequest:
    """A template as a judge of this item would see it, for staff. Reads criteria in the reader's own name.

    Raises PermissionDenied, and CannotAsk if the item lacks what the protocol asks about.
    """
    protocol = protocols.get(template.protocol)
    run = Run(judge=Judge(), benchmark=item.sample.benchmark, protocol=protocol.name, settings=settings)
    about = f"{template.protocol}.{template.name}"
    subject = _subject_for_staff(run, item, user, how="prompt preview", about=about)
    order = orders(run, subject.content_hash, len(subject.answers))[0]
    return judge_request(run, Job(subject, order, 0), template=template, protocol=protocol)


def _subject_for_staff(run: Run, item: Item, user: User, *, how: str, about: str) -> Subject:
    """An item with those of its criteria that the run's judge is shown, read in this person's name."""
    subject = subjects_by_item([item.pk])[item.pk]
    if not reads_criteria(run):
        return subject
    criteria = bank.criteria.for_staff(user=user, samples=[item.sample], how=how, reason=about)
    shown = bank.criteria.may_be_held(criteria, may_hold=protocols.get(run.protocol).may_hold)
    return with_criteria(subject, shown.get(subject.sample_id, []))


def template_of(run: Run) -> prompts.Prompt:
    """The template that a run was started with. Raises prompts.UnknownPrompt if it is gone or was edited."""
    template = prompts.get(run.protocol, run.settings.get("prompt", "default"), run.template_version)
    if run.template_sha256 != template.sha256:
        raise prompts.UnknownPrompt(f"The prompt {template.name} {template.version} is not the one this run used.")
    return template


def identified(
    run: Run,
    *,
    template: prompts.Prompt,
    text: str,
    images: Sequence[SampleImage],
    parameters: Mapping[str, Any],
    order: str,
    repeat: int = 0,
    overlay: str = "",
    shared_text: str | None = None,
) -> dict[str, Any]:
    """The two hashes of a request: ``sha256`` of everything that can change what an endpoint answers, and ``key``,
    which identical calls of all runs share (of ``shared_text``, where the text differs between runs).

    They are keyed because the text contains criteria: otherwise anybody with the source could test a guess at them.
    """
    sent = [image.sha256 for image in images]
    hashed = {
        "template": template.sha256,
        "text": text.encode(errors="replace").decode(),
        "images": sent,
        "model": run.judge.model,
        "parameters": dict(parameters),
        "order": order,
        "repeat": repeat,
    } | {name: run.settings[name] for name in ("image_size", "detail", "system") if name in run.settings}
    shared_text = text if shared_text is None else shared_text
    shared: list[Any] = [
        run.judge.base_url,
        run.judge.model,
        shared_text.encode(errors="replace").decode(),
        dict(parameters),
    ]
    shared += [repeat, sent, run.settings.get("image_size"), run.settings.get("detail")]
    if "system" in run.settings:
        shared.append(["system", run.settings["system"]])
    if overlay:
        hashed["overlay"] = overlay
        shared.append(overlay)
    return {"sha256": keyed("prompt", _digest(hashed)), "key": keyed("call", _digest(shared))}


def request_parameters(run: Run, *, repeat: int = 0, weighted: bool = False) -> dict[str, Any]:
    """The parameters beside the message, limited to those that the endpoint takes as far as the run knows.

    ``weighted`` also asks for the log-probabilities of the tokens. Each repeat of a seeded call gets its own seed.
    """
    settings, abilities = run.settings, run.abilities
    parameters = _sampling_parameters(settings, abilities, repeat)
    if "max_tokens" in settings and abilities.get("max_tokens") != "":
        parameters[abilities.get("max_tokens") or _token_limit_name(settings)] = settings["max_tokens"]
    if weighted and abilities.get("logprobs"):
        parameters |= {"logprobs": True, "top_logprobs": TOP_TOKENS}
    return parameters | settings.get("extra_body", {})


def _sampling_parameters(settings: Mapping[str, Any], abilities: Mapping[str, Any], repeat: int) -> dict[str, Any]:
    parameters: dict[str, Any] = {}
    if abilities.get("temperature") is not False:
        parameters["temperature"] = settings.get("temperature", 0.0)
    for name in ("top_p", "reasoning_effort"):
        if name in settings and (name == "reasoning_effort" or abilities.get(name) is not False):
            parameters[name] = settings[name]
    if abilities.get("seed") is not False and ("seed" in settings or abilities.get("seed")):
        parameters["seed"] = settings.get("seed", 0) + repeat
    return parameters


def with_likelihoods(run: Run, parameters: dict[str, Any], call: Any) -> dict[str, Any]:
    """The parameters of a call whose reply is read for likelihoods: its own limit of tokens replaces the run's."""
    name = run.abilities.get("max_tokens") or "max_tokens"
    own = dict(call.parameters)
    if call.by == "first-token":
        own[name] = own.pop("max_tokens")
    return {key: value for key, value in parameters.items() if key not in ("max_tokens", name)} | own


def conversation_hash(
    run: Run, messages: Sequence[Message], parameters: Mapping[str, Any], place: int, step: int
) -> str:
    """As ``sha256`` of ``identified``, of a call by a recipe."""
    sent = [
        (
            message.role,
            message.text,
            [(picture.image.sha256, repr(picture.corruption), picture.seed) for picture in message.pictures],
        )
        for message in messages
    ]
    told = [run.judge.base_url, run.judge.model, sent, dict(parameters), place, step]
    return keyed("prompt", _digest([*told, run.settings["system"]] if "system" in run.settings else told))


def _digest(value: Any) -> str:
    return hashlib.sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _token_limit_name(settings: Mapping[str, Any]) -> str:
    """The name of the token limit for an endpoint that was never tested: reasoning models have their own."""
    return "max_completion_tokens" if "reasoning_effort" in settings else "max_tokens"
