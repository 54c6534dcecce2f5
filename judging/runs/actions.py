"""Writes over runs. Each is one transaction."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from accounts.models import User
from bank.database import bulk
from bank.errors import BadInput
from bank.models import Benchmark, Item, Sample, SampleImage
from judging import protocols
from judging.models import OVERLAP, STRICT, Judge, Run, RunItem, RunTask, made_by, reason_key
from judging.protocols import baselines, prompts
from judging.runs import attacks as catalogue
from judging.runs import item_sets, plan
from judging.runs.collecting import COLLECTORS
from judging.work import run_kinds

MOST_ITEMS = 1_000_000_000


@transaction.atomic
def start_run(
    *,
    judge: Judge,
    benchmark: Benchmark,
    protocol: str,
    settings: Mapping[str, Any] | None = None,
    items: "QuerySet[Item] | Sequence[Item] | None" = None,
    limit: int | None = None,
    budget: float | None = None,
    by: User | None = None,
    new: bool = False,
    reuse: bool = False,
    batched: bool = False,
    attacks: Sequence[str] | None = None,
) -> Run:
    """Start judging a benchmark's items, or go on with the run that does the same. Raises BadInput.

    The same judge, protocol, settings and items, with the criteria as they were, continue the existing run: a
    paused one resumes, a finished one makes what is missing. A cancelled run stays so. ``items`` may be chosen by
    the caller; others than the protocol's kind, and those of rejected samples, are left out. ``settings`` may hold
    ``items``, a set of them (see ``item_sets``). A new ``budget`` replaces the old one. ``reuse`` answers identical
    calls from stored ones; ``batched`` hands calls in by the endpoint's batch interface. ``attacks`` makes it a run
    that tries the judge with these attacks, all where the list is empty, and makes no judgments (see
    ``judging.runs.attacks``).
    """
    given = {} if settings is None else dict(settings) if isinstance(settings, Mapping) else settings
    try:
        asked = protocols.get(protocol)
        item_set = item_sets.canonical(given.pop("items", None) if isinstance(given, dict) else None)
        chosen = asked.settings(given)
    except protocols.UnknownProtocol as error:
        raise BadInput(str(error), "protocol") from None
    except (protocols.BadSettings, item_sets.BadItemSet) as error:
        raise BadInput(str(error), "settings") from None
    _check_judge(judge, asked, chosen, budget)
    if attacks is not None:
        chosen |= {"attacks": _attacks(attacks, judge, asked, chosen)}
        if not item_set and items is None and limit is None:
            item_set = {"sample": catalogue.SAMPLE, "seed": 0}
    check_limit(limit)

    def chosen_items(*, rejected: bool) -> list[int]:
        query = plan.judgeable_items(benchmark=benchmark, kind=asked.kind, rejected=rejected)
        if isinstance(items, QuerySet):
            query = query.filter(pk__in=items.values("pk"))
        elif items is not None:
            query = query.filter(pk__in=[item.pk for item in items])
        query = item_sets.items(item_set, benchmark=benchmark, query=query)
        return list((query if limit is None else query[:limit]).values_list("pk", flat=True))

    try:
        item_ids = chosen_items(rejected=False)
    except item_sets.BadItemSet as error:
        raise BadInput(str(error), "settings") from None
    if not item_ids:
        if item_set:
            raise BadInput(f"No items of kind {asked.kind} in {benchmark} are in that set.", "settings")
        raise BadInput(
            f"{benchmark} has no items of kind {asked.kind}. Make them first, on its page Items in the bank or by "
            f"manage.py make_items {asked.kind} --benchmark {benchmark}",
            "benchmark",
        )
    identity: dict[str, Any] = {
        "kind": Run.Kind.JUDGMENTS if attacks is None else Run.Kind.ATTACKS,
        "judge": judge,
        "benchmark": benchmark,
        "protocol": protocol,
        "settings_hash": protocols.settings_hash(chosen),
        "items_hash": _items_hash(item_ids),
    }
    if not new and (run := go_on(identity, budget)):
        return run
    if not new and benchmark.samples.filter(status=Sample.Status.REJECTED).exists():
        # A run that is there goes on, though samples of it were rejected since: its verdicts are paid for.
        before = {"items_hash": _items_hash(chosen_items(rejected=True))}
        if run := go_on(identity | before, budget):
            return run
    template = None if judge.is_baseline else prompts.get(protocol, *prompts.split(str(chosen["prompt"])))
    run = Run.objects.create(
        **identity,
        settings=chosen,
        template=f"{protocol}.{template.name}" if template else "",
        template_version=template.version if template else None,
        template_sha256=template.sha256 if template else "",
        seed=secrets.randbelow(2**31),
        item_set=item_set,
        reading=STRICT,
        abilities=judge.abilities,
        budget=budget,
        by=by,
        reuse=reuse,
        batched=batched,
    )
    bulk.insert(RunItem, ("run_id", "item_id"), [(run.pk, pk) for pk in item_ids])
    run.criteria_fingerprint = plan.criteria_fingerprint(run)
    run.planned, run.verdicts, run.failures, run.undecided = len(item_ids) * plan.judgments_per_item(run), 0, 0, 0
    run.save(update_fields=["criteria_fingerprint", "planned", "verdicts", "failures", "undecided"])
    return run


def _items_hash(ids: Sequence[int]) -> str:
    return hashlib.sha256(",".join(map(str, sorted(ids))).encode()).hexdigest()


def check_limit(limit: int | None) -> None:
    """Raises BadInput for a number of first items that cannot be."""
    if limit is not None and not 1 <= limit <= MOST_ITEMS:
        raise BadInput(f"limit: a whole number from 1 to {MOST_ITEMS:,}.", "limit")


def _check_judge(judge: Judge, protocol: protocols.Protocol, settings: Mapping[str, Any], budget: float | None) -> None:
    if not judge.can_run:
        raise BadInput(f"{judge.name} has no endpoint: its judgments were imported. Add it as a judge first.", "judge")
    if judge.is_baseline and not baselines.can(judge.baseline, protocol.name):
        raise BadInput(f"{judge.name} has nothing to say in the protocol {protocol.name}.", "judge")
    if judge.baseline == OVERLAP and not settings.get("criteria"):
        raise BadInput(f"{judge.name} goes by the criteria; with criteria false it has nothing to go by.", "settings")
    check_abilities(judge, settings)
    check_budget(judge, budget)


def _attacks(
    names: Sequence[str], judge: Judge, protocol: protocols.Protocol, settings: Mapping[str, Any]
) -> list[str]:
    if protocol.name not in catalogue.PROTOCOLS:
        raise BadInput(
            f"{protocol.name} says what an answer means, not how good it is: it cannot be inflated.", "protocol"
        )
    if judge.baseline == OVERLAP:
        raise BadInput("The overlap baseline goes by the hidden criteria: its verdicts stay with staff.", "judge")
    try:
        return catalogue.canonical(names, pictures=not judge.baseline and settings["context"] == "image")
    except catalogue.UnknownAttack as error:
        raise BadInput(str(error), "attacks") from None


def check_abilities(judge: Judge, settings: Mapping[str, Any]) -> None:
    """Raises BadInput for what the endpoint was seen not to do."""
    if settings.get("context", "image") == "image" and judge.abilities.get("vision") is False:
        raise BadInput(f"{judge.name} does not see pictures, as its test showed: choose another context.", "settings")
    if settings.get("structured") and judge.abilities.get("json_schema") is not True:
        raise BadInput(f"{judge.name} was not seen to keep to a JSON schema: test it, or leave it out.", "settings")
    if "reasoning_effort" in settings and judge.abilities.get("reasoning_effort") is False:
        raise BadInput(f"{judge.name} takes no reasoning effort, as its test showed; leave it out.", "settings")


def check_budget(judge: Judge, budget: float | None) -> None:
    """Raises BadInput for a budget that cannot be kept."""
    if budget is None:
        return
    if not 0 < budget < 1e9:
        raise BadInput("budget: US dollars, more than 0.", "budget")
    if not judge.is_baseline and (judge.price_in is None or judge.price_out is None):
        raise BadInput(f"{judge.name} has no prices, so no budget can be kept. Give it prices first.", "budget")


def go_on(identity: Mapping[str, Any], budget: float | None) -> Run | None:
    """The run of that identity, going on; None when there is none, or the criteria are not what they were."""
    earlier = Run.objects.filter(**identity, imported=False).exclude(state=Run.State.CANCELLED)
    for run in earlier.order_by("-pk"):
        if run.judges and run.criteria_fingerprint != plan.criteria_fingerprint(run):
            continue
        if budget is not None:
            run.budget = budget
            run.save(update_fields=["budget"])
        if run.state == Run.State.PAUSED or (run.state == Run.State.FINISHED and run_kinds.of(run).page(reads=False)):
            _queue(run, frm=run.state)
        run.refresh_from_db()
        return run
    return None


def _queue(run: Run, *, frm: str) -> bool:
    changed = Run.objects.filter(pk=run.pk, state=frm).update(state=Run.State.QUEUED, state_reason="", finished_at=None)
    return bool(changed)


@transaction.atomic
def pause_run(*, run: Run, reason: str = "") -> None:
    """Stop a run for now; its worker notices within about a second. Raises BadInput when it is not going on."""
    live = [Run.State.QUEUED, Run.State.RUNNING]
    if not Run.objects.filter(pk=run.pk, state__in=live).update(state=Run.State.PAUSED, state_reason=reason):
        raise BadInput("Only a queued or running run can pause.")


@transaction.atomic
def resume_run(*, run: Run, budget: float | None = None) -> None:
    """Let a paused run go on; a model that answered and made it pause is accepted from now on. A new ``budget``
    replaces the old one. Raises BadInput."""
    check_budget(run.judge, budget)
    known = Run.objects.filter(pk=run.pk, state=Run.State.PAUSED, imported=False)
    run.refresh_from_db()
    changes: dict[str, Any] = {"reported_model": ""} if "other_model" in run.live else {}
    changes |= {} if budget is None else {"budget": budget}
    if not known.update(state=Run.State.QUEUED, state_reason="", **changes):
        raise BadInput("Only a paused run can resume.")


@transaction.atomic
def cancel_run(*, run: Run) -> None:
    """End a run for good; its verdicts stay. Raises BadInput when it has ended already."""
    ended = [Run.State.FINISHED, Run.State.CANCELLED]
    changed = Run.objects.filter(pk=run.pk).exclude(state__in=ended).update(state=Run.State.CANCELLED, state_reason="")
    if not changed:
        raise BadInput("This run has ended already.")


@transaction.atomic
def retry_failed(*, run: Run, statuses: Sequence[str] = (), reason: str | None = None) -> int:
    """Judge again what ended without a verdict; returns how many judgments.

    Failed judgments are removed, so that they are missing, and the run goes on to make what is missing. Their calls
    stay in the log of attempts, and what they cost stays spent. Verdicts are never removed. Raises BadInput.
    """
    if run.imported or run.state == Run.State.CANCELLED:
        raise BadInput("Imported and cancelled runs are not made again.")
    failed: QuerySet[Any] = made_by(run).objects.filter(run=run).exclude(status="ok")
    if not run.judges:  # a refusal is an answer, too, and answers are never changed
        failed = failed.filter(response=None)
    if statuses:
        failed = failed.filter(status__in=statuses)
    if reason is not None:
        failed = failed.filter(reason_hash=reason_key(reason))
    _, removed = failed.delete()
    number = removed.get(failed.model._meta.label, 0)
    if number:
        Run.objects.filter(pk=run.pk).update(failures=F("failures") - number)
        _queue(run, frm=Run.State.FINISHED)
    return number


@transaction.atomic
def start_collecting(
    *,
    kind: str,
    judge: Judge,
    benchmark: Benchmark,
    settings: Mapping[str, Any] | None = None,
    model: str = "",
    limit: int | None = None,
    budget: float | None = None,
    by: User | None = None,
    new: bool = False,
    reuse: bool = False,
    batched: bool = False,
) -> Run:
    """Let an endpoint answer a benchmark or describe its pictures; or go on with the run that does. Raises BadInput.

    ``kind`` is responses or captions; ``judge`` the endpoint; ``model`` the name under which its texts are kept, by
    default that of the endpoint's model. ``settings`` may hold ``items`` (see ``item_sets``). What the bank holds
    already is left out. The same call goes on with the same run.
    """
    if kind not in COLLECTORS:
        raise BadInput(f"There is no kind {kind!r}. There are: {', '.join(COLLECTORS)}.", "kind")
    collector = COLLECTORS[kind]
    if not judge.base_url:
        raise BadInput(f"{judge.name} has no endpoint, so it cannot write anything.", "judge")
    given = dict(settings or {}) if isinstance(settings, Mapping | None) else settings
    try:
        wanted = item_sets.canonical(given.pop("items", None) if isinstance(given, dict) else None, of_items=False)
        chosen = collector.settings(given)
        query: QuerySet[Sample] = Sample.objects.filter(benchmark=benchmark, retired_in="")
        query = query.exclude(status=Sample.Status.REJECTED).order_by("position", "pk")
        query = item_sets.samples(wanted, benchmark=benchmark, query=query)
    except (protocols.BadSettings, item_sets.BadItemSet) as error:
        raise BadInput(str(error), "settings") from None
    check_abilities(judge, chosen)
    check_budget(judge, budget)
    name = model.strip() or judge.model
    if len(name) > 200:
        raise BadInput("model: at most 200 characters.", "model")
    check_limit(limit)
    samples = list(query if limit is None else query[:limit])
    images: dict[int, list[SampleImage]] = {}
    for image in SampleImage.objects.filter(sample__benchmark=benchmark).order_by("position"):
        images.setdefault(image.sample_id, []).append(image)
    tasks = [
        (sample.pk, place)
        for sample in samples
        for place in collector.places(sample, images.get(sample.pk, []), chosen)
    ]
    if not tasks:
        raise BadInput(f"{benchmark} has no {'pictures' if kind == 'captions' else 'samples'} for this.", "benchmark")
    identity: dict[str, Any] = {
        "kind": kind,
        "judge": judge,
        "benchmark": benchmark,
        "protocol": kind,
        "model_name": name,
        "settings_hash": protocols.settings_hash(chosen),
        "items_hash": hashlib.sha256(repr(tasks).encode()).hexdigest(),
    }
    if not new and (run := go_on(identity, budget)):
        return run
    there = collector.stored(benchmark=benchmark, model=name, settings=chosen)
    missing = [task for task in tasks if task not in there]
    if not missing:
        what = "All pictures have a description" if kind == "captions" else f"All responses of {name} are stored"
        raise BadInput(f"{what}; nothing is left to collect.", "model" if kind == "responses" else "benchmark")
    template = prompts.get(kind, str(chosen["prompt"]))
    run = Run.objects.create(
        **identity,
        settings=chosen,
        item_set=wanted,
        template=f"{kind}.{template.name}",
        template_version=template.version,
        template_sha256=template.sha256,
        seed=secrets.randbelow(2**31),
        abilities=judge.abilities,
        budget=budget,
        by=by,
        reuse=reuse,
        batched=batched,
        planned=len(missing),
        verdicts=0,
        failures=0,
        undecided=0,
    )
    bulk.insert(RunTask, ("run_id", "sample_id", "place"), [(run.pk, *task) for task in missing])
    return run
