"""Starts and goes on with collecting runs."""

import hashlib
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from accounts.models import User
from bank import bulk
from bank.models import Benchmark, Sample, SampleImage
from judging import item_sets, prompts, protocols
from judging.actions import BadInput, check_abilities, check_budget, check_limit, go_on
from judging.collecting import COLLECTORS
from judging.models import Judge, Run, RunTask


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
    there = collector.taken(benchmark=benchmark, model=name, settings=chosen)
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
