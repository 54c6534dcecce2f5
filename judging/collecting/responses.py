"""The answers of an evaluated model to a benchmark's samples; options also in every rotation (CircularEval)."""

from collections.abc import Sequence
from typing import Any

from bank.models import Benchmark, EvaluatedModel, Response, Sample, SampleImage
from judging.collecting.base import Collector, Task
from judging.models import Collected, Run, reason_key
from judging.protocols.settings import Settings

STORED_MEANWHILE = "another response of this model to this sample was stored meanwhile"


class Responses(Collector):
    name = "responses"
    title = "Answers of a model"
    own = {"circular": False}

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return list(range(max(1, len(sample.options)) if settings["circular"] else 1))

    def taken(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        stored = Response.objects.filter(sample__benchmark=benchmark, model__name=model)
        by_variant = {variant(place): place for place in range(27)}
        rows = stored.filter(variant__in=by_variant).values_list("sample_id", "variant")
        return {(sample, by_variant[name]) for sample, name in rows}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        order = shown(task.labels, task.place)
        return {
            "instruction": task.sample.instruction,
            "hint": task.sample.hint,
            "options": [(label, str(task.sample.options[key])) for label, key in zip(task.labels, order, strict=True)],
            "images": len(task.images),
        }

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        model, _ = EvaluatedModel.objects.get_or_create(name=run.model_name, defaults={"family": run.judge.family})
        made = {(row.sample_id, variant(row.place)): row for row in rows if row.status != Collected.Status.ERROR}
        samples = {sample for sample, _ in made}
        before = _stored(model, samples)
        fresh = [key for key in made if key not in before]
        labels = dict(Sample.objects.filter(pk__in=samples).values_list("pk", "options"))
        Response.objects.bulk_create(
            Response(
                sample_id=sample,
                model=model,
                variant=name,
                text=made[sample, name].text,
                status=made[sample, name].status,
                reason=made[sample, name].reason,
                option_order=shown(list(labels[sample]), made[sample, name].place) or None,
                tokens=made[sample, name].completion_tokens,
            )
            for sample, name in fresh
        )
        after = _stored(model, samples)
        for key, row in made.items():
            if key in before:
                row.status, row.reason = Collected.Status.ERROR, STORED_MEANWHILE
                row.reason_hash = reason_key(STORED_MEANWHILE)
            else:
                row.response_id, row.text = after[key], ""  # the text stands in the response


def variant(place: int) -> str:
    """The variant of a response to options rotated by ``place``; none for options as they are."""
    return f"circular-{place}" if place else ""


def shown(labels: Sequence[str], place: int) -> list[str]:
    """The sample's labels in the order in which their options are shown: place i shows option i + ``place``."""
    return [*labels[place:], *labels[:place]]


def _stored(model: EvaluatedModel, samples: set[int]) -> dict[tuple[int, str], int]:
    rows = Response.objects.filter(model=model, sample__in=samples).values_list("sample_id", "variant", "pk")
    return {(sample, name): pk for sample, name, pk in rows}
