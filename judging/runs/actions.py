"""Starting, pausing, resuming, cancelling and retrying runs. Each action is one transaction."""

import hashlib
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from accounts.jobs import defer
from accounts.models import User
from bank.criteria import answer_keys
from bank.database import bulk
from bank.errors import BadInput
from bank.models import Benchmark, Item, Sample, SampleImage
from judging import protocols
from judging.collecting.collectors import COLLECTORS, Collector
from judging.extras import attacks as attack_catalogue
from judging.models import OVERLAP, STRICT, Judge, Run, RunItem, RunTask, reason_key, table_of
from judging.protocols import prompts
from judging.runs import item_sets, plan
from judging.work import run_kinds

# Of a run that somebody starts again: what failed before is forgotten.
ANEW: dict[str, Any] = {
    "state": Run.State.QUEUED,
    "state_reason": "",
    "next_try_at": None,
    "tries": 0,
    "failing_since": None,
}
MOST_ITEMS = 1_000_000_000


# ---- new rows ----


def create_run(
    *, judge: Judge, settings: dict[str, Any], template: prompts.Prompt | None = None, **columns: Any
) -> Run:
    """Create a run, with all that is fixed when it starts: template, seed, what the judge can do."""
    return Run.objects.create(
        judge=judge,
        settings=settings,
        settings_hash=protocols.settings_hash(settings),
        template=f"{template.protocol}.{template.name}" if template else "",
        template_version=template.version if template else None,
        template_sha256=template.sha256 if template else "",
        seed=secrets.randbelow(2**31),
        abilities=judge.abilities,
        verdicts=0,
        failures=0,
        undecided=0,
        **columns,
    )


def create_judging_run(
    *, judge: Judge, protocol: str, settings: dict[str, Any], item_ids: Sequence[int], **columns: Any
) -> Run:
    """Create a run of a judge over these items."""
    template = None
    if not judge.is_baseline:
        template = prompts.get(protocol, settings["prompt"])
    run = create_run(
        judge=judge,
        protocol=protocol,
        settings=settings,
        template=template,
        items_hash=items_hash(item_ids),
        reading=STRICT,
        **columns,
    )
    bulk.insert(RunItem, ("run_id", "item_id"), [(run.pk, pk) for pk in item_ids])
    run.criteria_fingerprint, run.held = plan.criteria_fingerprint(run), plan.will_hold(run)
    run.planned = len(item_ids) * plan.judgments_per_item(run)
    run.save(update_fields=["criteria_fingerprint", "held", "planned"])
    return run


def create_task_run(tasks: Sequence[RunTask], **columns: Any) -> Run:
    """Create a run that lets a model write, with its tasks."""
    run = create_run(planned=len(tasks), **columns)
    for task in tasks:
        task.run = run
    bulk.insert_objects(RunTask, tasks)
    return run


def items_hash(ids: Sequence[int]) -> str:
    """The hash that identifies a set of items."""
    return hashlib.sha256(",".join(map(str, sorted(ids))).encode()).hexdigest()


def tasks_hash(tasks: Sequence[RunTask]) -> str:
    """The hash that identifies tasks in their order."""
    return hashlib.sha256(repr([(task.sample_id, task.place) for task in tasks]).encode()).hexdigest()


# ---- runs of judges ----


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
    tryout: bool = False,
) -> Run:
    """Start judging a benchmark's items, or continue the run that does the same. Raises BadInput.

    The same judge, protocol, settings and items with unchanged criteria continue the existing run: a paused run
    resumes, a finished one makes what is missing. Of items that such runs judge in part, the new run takes the others,
    and they resume; a finished tryout takes the others itself, so that one run holds the verdicts on all of them. A
    cancelled run stays cancelled. ``new`` judges all of them again. The caller may pass ``items``;
    those of another kind than the protocol's and those of rejected samples are left out. ``settings`` may contain
    ``items``, a part of the benchmark (see ``item_sets``). A new ``budget`` replaces the old one. ``reuse`` answers
    identical calls from stored ones; ``batched`` uses the endpoint's batch interface. With ``attacks`` the run tests
    the judge against these attacks (all of them if the list is empty) and makes no judgments (see
    ``judging.extras.attacks``). A ``tryout`` stays with staff until a run with the same settings goes on from it.
    """
    used_protocol, settings, item_set = read_settings(protocol, settings)
    check_judge(judge, benchmark, used_protocol, settings, budget)
    if attacks is not None:
        settings |= {"attacks": _attacks(attacks, judge, used_protocol, settings)}
        if not item_set and items is None and limit is None:
            item_set = {"sample": attack_catalogue.DEFAULT_SAMPLE, "seed": 0}
    check_limit(limit)
    choose = partial(_item_ids, benchmark, used_protocol, item_set, items, limit)
    item_ids = choose()
    if not item_ids:
        raise _no_items(benchmark, used_protocol.kind, item_set)
    if batched and settings.get("step_calls"):
        raise BadInput("step_calls: a batch asks every call at once; choose one of the two.", "settings")
    same_settings: dict[str, Any] = {
        "kind": Run.Kind.JUDGMENTS if attacks is None else Run.Kind.ATTACKS,
        "judge": judge,
        "benchmark": benchmark,
        "protocol": protocol,
        "settings_hash": protocols.settings_hash(settings),
    }
    if not tryout:
        same_settings["tryout"] = False
    if not new:
        earlier = continue_run(same_settings | {"items_hash": items_hash(item_ids)}, budget)
        if earlier is None and benchmark.samples.filter(status=Sample.Status.REJECTED).exists():
            # An existing run continues even if some of its samples were rejected since: its verdicts are paid for.
            earlier = continue_run(same_settings | {"items_hash": items_hash(choose(rejected=True))}, budget)
        if earlier is None and attacks is None and not tryout:
            earlier = _grow_tryout(same_settings, item_ids, budget, item_set=item_set, reuse=reuse, batched=batched)
        if earlier is None and attacks is None:
            item_ids, earlier = _resume_in_part(same_settings, item_ids, budget)
        if earlier is not None:
            return earlier
    if not judge.is_baseline:
        _check_pictures(benchmark, item_ids, settings)
    return create_judging_run(
        kind=same_settings["kind"],
        judge=judge,
        benchmark=benchmark,
        protocol=protocol,
        settings=settings,
        item_ids=item_ids,
        item_set=item_set,
        budget=budget,
        by=by,
        reuse=reuse,
        batched=batched,
        tryout=tryout,
    )


def _item_ids(
    benchmark: Benchmark,
    protocol: protocols.Protocol,
    item_set: item_sets.ItemSet,
    items: "QuerySet[Item] | Sequence[Item] | None",
    limit: int | None,
    *,
    rejected: bool = False,
) -> list[int]:
    """The items that a run judges, with ``rejected`` also those of rejected samples. Raises BadItemSet."""
    query = plan.judgeable_items(benchmark=benchmark, protocol=protocol, rejected=rejected)
    if items is not None:
        chosen: Any = items.values("pk") if isinstance(items, QuerySet) else [item.pk for item in items]
        query = query.filter(pk__in=chosen)
    query = item_sets.items(item_set, benchmark=benchmark, query=query)
    return list(query.values_list("pk", flat=True)[:limit])


def lacking_all(benchmark: Benchmark, number: int, what: str) -> str:
    """The refusal where a picture of everything that would be asked is not stored here."""
    return (
        f"{benchmark}: a picture of each of the {number:,} {what} is not stored here, so nothing could be asked. Send "
        "the benchmark's file with its pictures in one zip, as a new version, under Upload, or fetch the pictures that "
        "have an address (manage.py fetch_images)."
    )


def _check_pictures(benchmark: Benchmark, item_ids: Sequence[int], settings: Mapping[str, Any]) -> None:
    """Raises BadInput where all these items lack a picture that the judge is to see, or to be told of."""
    if settings.get("context", "image") == "none":
        return
    absent = set(plan.without_pictures(benchmark).values_list("pk", flat=True))
    if absent and absent.issuperset(item_ids):
        raise BadInput(lacking_all(benchmark, len(item_ids), "items"), "benchmark")


def read_settings(
    protocol: str, settings: Mapping[str, Any] | None
) -> tuple[protocols.Protocol, protocols.Settings, item_sets.ItemSet]:
    """The protocol, its settings with every default filled in, and the part of the benchmark. Raises BadInput."""
    chosen, items = _split_settings(settings)
    used_protocol, item_set = protocols.get(protocol), item_sets.canonical(items)
    return used_protocol, used_protocol.settings(chosen), item_set


def _split_settings(settings: Mapping[str, Any] | None) -> tuple[dict[str, Any], Any]:
    """The settings without their ``items``, and the ``items``."""
    rest = dict(settings or {})
    return rest, rest.pop("items", None)


def _no_items(benchmark: Benchmark, kind: str, item_set: Mapping[str, Any]) -> BadInput:
    if item_set:
        return BadInput(f"No items of kind {kind} in {benchmark} match that selection.", "settings")
    return BadInput(
        f"{benchmark} has no items of kind {kind}. Make them first, on its page Items in the bank or by "
        f"manage.py make_items {kind} --benchmark {benchmark}",
        "benchmark",
    )


def check_limit(limit: int | None) -> None:
    """Raises BadInput for an impossible number of items."""
    if limit is not None and not 1 <= limit <= MOST_ITEMS:
        raise BadInput(f"limit: a whole number from 1 to {MOST_ITEMS:,}.", "limit")


def check_judge(
    judge: Judge,
    benchmark: Benchmark,
    protocol: protocols.Protocol,
    settings: Mapping[str, Any],
    budget: float | None,
) -> None:
    """Raises BadInput for what this judge cannot do."""
    if not judge.can_run:
        raise BadInput(f"{judge.name} has no endpoint: its judgments were imported. Add it as a judge first.", "judge")
    if judge.is_baseline and judge.baseline not in protocol.baselines:
        raise BadInput(f"{judge.name} cannot judge with the protocol {protocol.name}.", "judge")
    if judge.baseline == OVERLAP and not settings.get("criteria"):
        raise BadInput(
            f"{judge.name} compares answers with the criteria; it cannot judge with criteria false.", "settings"
        )
    check_abilities(judge, benchmark, settings)
    check_budget(judge, budget)


def _attacks(
    names: Sequence[str], judge: Judge, protocol: protocols.Protocol, settings: Mapping[str, Any]
) -> list[str]:
    if protocol.name not in attack_catalogue.PROTOCOLS:
        raise BadInput(
            f"{protocol.name} says what an answer means, not how good it is: there is nothing to inflate.", "protocol"
        )
    if judge.baseline == OVERLAP:
        raise BadInput("The overlap baseline uses the hidden criteria, so its verdicts stay with staff.", "judge")
    return attack_catalogue.canonical(names, pictures=not judge.baseline and settings["context"] == "image")


class CannotSee(BadInput):
    """The judge was asked about pictures. ``cure`` is the setting by which it would not be, ``named`` what forms call
    it; both are empty where there is none.
    """

    def __init__(self, judge: Judge, settings: Mapping[str, Any]) -> None:
        self.cure, self.named, how = "", "", ""
        if "context" in settings:
            self.cure, self.named = "context", "What the judge sees"
            how = f": under Pictures, choose no pictures or descriptions as “{self.named}” (context)"
        elif "no_pictures" in settings:
            self.cure, self.named = "no_pictures", "Without the pictures"
            how = f": tick “{self.named}” (no_pictures)"
        super().__init__(f"{judge.name} cannot see pictures, as its test showed{how}.", "settings")


def check_abilities(judge: Judge, benchmark: Benchmark, settings: Mapping[str, Any]) -> None:
    """Raises BadInput for settings that the endpoint failed in its test; without pictures, none need be seen."""
    shows = settings.get("context", "image") == "image" and not settings.get("no_pictures")
    blind = shows and judge.abilities.get("vision") is False
    if blind and SampleImage.objects.filter(sample__benchmark=benchmark).exists():
        raise CannotSee(judge, settings)
    if settings.get("structured") and judge.abilities.get("json_schema") is not True:
        raise BadInput(
            f"No test has shown that {judge.name} follows a JSON schema: test it, or leave it out.", "settings"
        )
    if "reasoning_effort" in settings and judge.abilities.get("reasoning_effort") is False:
        raise BadInput(
            f"{judge.name} does not accept a reasoning effort, as its test showed; leave it out.", "settings"
        )


def check_budget(judge: Judge, budget: float | None) -> None:
    """Raises BadInput for a budget that cannot be enforced."""
    if budget is None:
        return
    if not 0 < budget < 1e9:
        raise BadInput("budget: US dollars, more than 0.", "budget")
    if not judge.is_baseline and (judge.price_in is None or judge.price_out is None):
        raise BadInput(f"{judge.name} has no prices, so a budget cannot be enforced. Give it prices first.", "budget")


def continue_run(identity: Mapping[str, Any], budget: float | None) -> Run | None:
    """Continue the run with that identity; None if there is none or its criteria have changed."""
    run = next(_unchanged(identity), None)
    return run and _resume(run, budget)


def _unchanged(identity: Mapping[str, Any]) -> Iterator[Run]:
    """The runs with that identity, newest first, that are not cancelled and whose criteria are as they were."""
    runs = Run.objects.filter(**identity, imported=False).exclude(state=Run.State.CANCELLED)
    for run in runs.order_by("-pk"):
        if not run.judges or (run.criteria_fingerprint == plan.criteria_fingerprint(run) and not plan.held_more(run)):
            yield run


def _resume(run: Run, budget: float | None) -> Run:
    if budget is not None:
        run.budget = budget
        run.save(update_fields=["budget"])
    if run.state in Run.HALTED or (
        run.state == Run.State.FINISHED and run_kinds.run_kind(run).page(read_criteria=False)
    ):
        _queue(run, frm=run.state)
    run.refresh_from_db()
    return run


def _grow_tryout(
    same_settings: Mapping[str, Any], item_ids: Sequence[int], budget: float | None, **columns: Any
) -> Run | None:
    """Make the newest finished tryout with these settings the run over all of these items; None if there is none."""
    for run in _unchanged({**same_settings, "tryout": True, "state": Run.State.FINISHED}):
        tried = set(run.run_items.values_list("item", flat=True))
        # Of two people who go on with it at once, one does.
        if not tried <= set(item_ids) or not Run.objects.filter(pk=run.pk, tryout=True).update(tryout=False):
            continue
        bulk.insert(RunItem, ("run_id", "item_id"), [(run.pk, pk) for pk in item_ids if pk not in tried])
        columns |= {
            "items_hash": items_hash(item_ids),
            "criteria_fingerprint": plan.criteria_fingerprint(run),
            "held": run.held | plan.will_hold(run),
            "planned": len(item_ids) * plan.judgments_per_item(run),
        }
        Run.objects.filter(pk=run.pk).update(**columns)
        return _resume(run, budget)
    return None


def _resume_in_part(
    same_settings: Mapping[str, Any], item_ids: Sequence[int], budget: float | None
) -> tuple[list[int], Run | None]:
    """Resume the runs with the same settings that judge some of these items.

    Returns the items that are left for another run; where none is, the newest of those runs.
    """
    left, newest = set(item_ids), None
    for run in reversed(list(_unchanged(same_settings))):
        judged = set(RunItem.objects.filter(run=run).values_list("item", flat=True))
        if judged.intersection(item_ids):
            newest = _resume(run, budget)
            left -= judged
    return [pk for pk in item_ids if pk in left], None if left else newest


def _queue(run: Run, *, frm: str) -> None:
    Run.objects.filter(pk=run.pk, state=frm).update(**ANEW, finished_at=None)


@transaction.atomic
def pause_run(*, run: Run, reason: str = "") -> None:
    """Pause a run; its workers notice within about a second. Raises BadInput if it does not go on by itself."""
    changes = {"state": Run.State.PAUSED, "state_reason": reason, "next_try_at": None}
    if not Run.objects.filter(pk=run.pk, state__in=Run.GOING).update(**changes):
        raise BadInput("Only a queued, running or waiting run can pause.")
    defer("follow_runs")


@transaction.atomic
def resume_run(*, run: Run, budget: float | None = None) -> None:
    """Resume a paused run, or try one that waits now. If it paused because another model answered, that model is
    accepted from now on.

    A new ``budget`` replaces the old one. Raises BadInput.
    """
    check_budget(run.judge, budget)
    paused = Run.objects.filter(pk=run.pk, state__in=Run.HALTED, imported=False)
    run.refresh_from_db()
    changes: dict[str, Any] = {"reported_model": ""} if "other_model" in run.live else {}
    changes |= {} if budget is None else {"budget": budget}
    if not paused.update(**ANEW, **changes):
        raise BadInput("Only a paused or waiting run can resume.")


@transaction.atomic
def cancel_run(*, run: Run) -> None:
    """End a run for good; its verdicts stay. Raises BadInput if it has already ended."""
    going = Run.objects.filter(pk=run.pk).exclude(state__in=Run.ENDED)
    if not going.update(state=Run.State.CANCELLED, state_reason="", next_try_at=None):
        raise BadInput("This run has already ended.")
    defer("follow_runs")


@transaction.atomic
def retry_failed(*, run: Run, statuses: Sequence[str] = (), reason: str | None = None) -> int:
    """Judge again what ended without a verdict; returns how many judgments.

    Failed judgments are deleted, and the run then makes what is missing, with what the judge can do as far as is known
    today. Their calls stay in the log of attempts, and their cost stays spent. Verdicts are never deleted. Raises
    BadInput.
    """
    if run.imported or run.state == Run.State.CANCELLED:
        raise BadInput("Imported and cancelled runs cannot be retried.")
    failed: QuerySet[Any] = table_of(run).objects.filter(run=run).exclude(status="ok")
    failed = failed.exclude(reason_hash__in=plan.not_asked_keys())
    if not run.judges:  # a refusal is a response too, and responses are never changed
        failed = failed.exclude(status="skipped")
        failed = failed.filter(response=None, last=True)
    if statuses:
        failed = failed.filter(status__in=statuses)
    if reason is not None:
        failed = failed.filter(reason_hash=reason_key(reason))
    _, deleted = failed.delete()
    number = deleted.get(failed.model._meta.label, 0)
    if number:
        abilities = run.judge.abilities | ({"dropped": run.dropped} if run.dropped else {})
        abilities |= {name: run.abilities[name] for name in _abilities_of(run.dropped)}
        Run.objects.filter(pk=run.pk).update(failures=F("failures") - number, abilities=abilities)
        _queue(run, frm=Run.State.FINISHED)
    return number


def _abilities_of(parameters: Sequence[str]) -> set[str]:
    """The abilities that say whether these parameters are sent."""
    return {"max_tokens" if name.startswith("max_") else name for name in parameters}


def _check_may_stop(samples: Sequence[Sample], batched: bool) -> None:
    """Which rotations exist tells whether the first was right, and so what is hidden. Raises BadInput."""
    asked = Sample.objects.filter(pk__in=[sample.pk for sample in samples])
    if answer_keys.with_open_keys(asked).count() < len(samples):
        raise BadInput(
            "stop_rotations: which rotations were asked would tell the answer keys, and not everybody may see all of "
            "them. Choose a split whose keys are open, or leave it out.",
            "settings",
        )
    if batched:
        raise BadInput("stop_rotations: a batch asks all rotations at once; choose one of the two.", "settings")


# ---- runs that let an endpoint write ----


BLIND = " without pictures"  # what the name of a model ends with that answers so


@dataclass(frozen=True, slots=True)
class Collecting:
    """What a collecting run asks: all of its ``tasks``, and those ``missing`` of which the bank has no text yet."""

    collector: Collector
    identity: dict[str, Any]
    settings: protocols.Settings
    item_set: dict[str, Any]
    tasks: list[RunTask]
    missing: list[RunTask]

    @property
    def stored(self) -> int:
        """How many tasks need no call."""
        return len(self.tasks) - len(self.missing)

    @property
    def failing(self) -> list[RunTask]:
        """Those missing that fail for sure: a picture of their sample is not stored here."""
        shows = self.collector.shows(self.settings)
        return [task for task in self.missing if shows and task.sample.absent_images]


def plan_collecting(
    *,
    kind: str,
    judge: Judge,
    benchmark: Benchmark,
    settings: Mapping[str, Any] | None = None,
    model: str = "",
    limit: int | None = None,
    budget: float | None = None,
    batched: bool = False,
) -> Collecting:
    """What ``start_collecting`` with the same arguments would ask. Raises BadInput."""
    if kind not in COLLECTORS:
        raise BadInput(f"Unknown kind {kind!r}. Known kinds: {', '.join(COLLECTORS)}.", "kind")
    collector = COLLECTORS[kind]
    name = check_endpoint(judge, budget, limit, model, purpose="write anything")
    chosen_settings, chosen_items = _split_settings(settings)
    item_set = item_sets.canonical(chosen_items, of_items=False)
    settings = collector.settings(chosen_settings)
    if settings.get("no_pictures"):
        name = check_endpoint(judge, budget, limit, f"{name}{BLIND}", purpose="write anything")
    query = Sample.objects.filter(benchmark=benchmark).exclude(status=Sample.Status.REJECTED)
    query = query.order_by("position", "pk")
    samples = list(item_sets.samples(item_set, benchmark=benchmark, query=query)[:limit])
    check_abilities(judge, benchmark, settings)
    tasks = _tasks(collector, benchmark, samples, settings)
    if settings.get("stop_rotations"):
        _check_may_stop(samples, batched)
        tasks.sort(key=lambda task: task.place)  # the first pass of all first: then it is known what needs no second
    if not tasks:
        raise BadInput(f"{benchmark} has no {collector.nothing} for this.", "benchmark")
    identity: dict[str, Any] = {
        "kind": kind,
        "judge": judge,
        "benchmark": benchmark,
        "protocol": kind,
        "model_name": name,
        "items_hash": tasks_hash(tasks),
    }
    stored = collector.stored(benchmark=benchmark, model=name, settings=settings)
    missing = [task for task in tasks if (task.sample_id, task.place) not in stored]
    return Collecting(collector, identity, settings, item_set, tasks, missing)


@transaction.atomic
def start_collecting(
    *, by: User | None = None, new: bool = False, reuse: bool = False, batched: bool = False, **asked: Any
) -> Run:
    """Let an endpoint write about a benchmark, or continue the run that does. Raises BadInput.

    ``asked`` are the arguments of ``plan_collecting``: ``kind`` is the name of a collector (``collecting.COLLECTORS``),
    ``judge`` the endpoint, ``model`` the name for the texts in the bank, by default the endpoint's model. ``settings``
    may contain ``items`` (see ``item_sets``). What the bank already has is left out.
    The same call continues the same run.
    """
    planned = plan_collecting(batched=batched, **asked)
    benchmark, missing, budget = asked["benchmark"], planned.missing, asked.get("budget")
    settings_hash = protocols.settings_hash(planned.settings)
    if not new and (run := continue_run(planned.identity | {"settings_hash": settings_hash}, budget)):
        return run
    if not missing:
        field = "model" if asked["kind"] == Run.Kind.RESPONSES else "benchmark"
        complete = planned.collector.complete.format(model=planned.identity["model_name"])
        raise BadInput(f"{complete}; nothing is left to collect.", field)
    if len(planned.failing) == len(missing):
        raise BadInput(lacking_all(benchmark, len({task.sample_id for task in missing}), "samples"), "benchmark")
    return create_task_run(
        missing,
        **planned.identity,
        settings=planned.settings,
        template=prompts.get(asked["kind"], planned.settings["prompt"]),
        item_set=planned.item_set,
        budget=budget,
        by=by,
        reuse=reuse,
        batched=batched,
    )


def check_endpoint(judge: Judge, budget: float | None, limit: int | None, model: str, *, purpose: str) -> str:
    """The name that an endpoint's texts get. Raises BadInput where it cannot be asked like this."""
    if not judge.base_url:
        raise BadInput(f"{judge.name} has no endpoint, so it cannot {purpose}.", "judge")
    check_budget(judge, budget)
    check_limit(limit)
    name = model.strip() or judge.model
    if len(name) > 200:
        raise BadInput("model: at most 200 characters.", "model")
    return name


def _tasks(
    collector: Collector, benchmark: Benchmark, samples: Sequence[Sample], settings: protocols.Settings
) -> list[RunTask]:
    """All tasks of these samples, stored or not."""
    images = plan.images_by_sample(sample__benchmark=benchmark)
    return [
        RunTask(sample=sample, place=place)
        for sample in samples
        for place in collector.places(sample, images.get(sample.pk, []), settings)
    ]
