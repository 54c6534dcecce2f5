"""Descriptions of pictures, for judges that are shown words in place of pictures ("vision expert", MLLM-as-a-Judge)."""

from collections.abc import Sequence
from typing import Any

from bank.actions.pictures import describe
from bank.models import Benchmark, Sample, SampleImage
from judging.collecting.base import Collector, Task
from judging.models import Collected, Run
from judging.protocols.settings import Settings


class Captions(Collector):
    name = "captions"
    title = "Descriptions of pictures"
    own = {"replace": False}

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return [image.position for image in images]

    def shown(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        return tuple(image for image in images if image.position == place)

    def taken(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        if settings["replace"]:
            return set()
        described = SampleImage.objects.filter(sample__benchmark=benchmark).exclude(description="")
        return set(described.values_list("sample_id", "position"))

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {"instruction": task.sample.instruction}

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        texts = {(row.sample_id, row.place): row.text for row in rows if row.status == Collected.Status.OK}
        describe(texts=texts, origin=f"{run.model_name}, run {run.pk}", by=run.by, replace=run.settings["replace"])
