"""Runs that collect what a model writes: its responses to a benchmark, or descriptions of images.

The same engine works them as runs of judges. A task is a sample and a place: the rotation of its options, or the
position of its image. The result of a task is one ``Collected`` row; the text goes where it belongs in the bank.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bank.models import Benchmark, EvaluatedModel, Response, Sample, SampleImage
from judging.models import Collected, Run, reason_key
from judging.protocols import CannotAsk, prompts
from judging.protocols.settings import Settings, boolean, check_names, one_of, request_settings
from judging.runs.requests import CallRequest, call_key, request_hash, request_parameters

STORED_MEANWHILE = "another response of this model to this sample was stored meanwhile"
MOST_OPTIONS = 27


@dataclass(frozen=True, slots=True)
class Task:
    """One call to make."""

    sample: Sample
    place: int
    images: tuple[SampleImage, ...]

    @property
    def labels(self) -> list[str]:
        return list(self.sample.options)


class Collector(ABC):
    """One kind of collecting run. Subclasses define its tasks, what it asks and where the texts go."""

    name: ClassVar[str]
    title: ClassVar[str]
    own_settings: ClassVar[Mapping[str, bool]] = {}  # settings that only this collector has, with their defaults

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        """The settings with every default filled in. Raises BadSettings."""
        check_names(chosen, ("prompt", *self.own_settings))
        prompt = one_of("prompt", chosen.get("prompt", "default"), tuple(prompts.names(self.name)))
        settings: Settings = {"prompt": prompt}
        for name, default in self.own_settings.items():
            settings[name] = boolean(name, chosen.get(name, default))
        return settings | request_settings(chosen, temperature=0.0)

    @abstractmethod
    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        """The tasks of a sample."""

    def task_images(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        """The images that go with a task."""
        return tuple(images)

    @abstractmethod
    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        """(sample id, place) of what the bank already has, so that no call is needed."""

    @abstractmethod
    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        """The variables of the template. Raises CannotAsk."""

    @abstractmethod
    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        """Put the texts where they belong in the bank, in the transaction that stores the rows."""

    def request(self, run: Run, task: Task, *, template: prompts.Prompt) -> CallRequest:
        """Render the request of a task; the same task always gives the same one. Raises CannotAsk."""
        if task.sample.absent_images:
            raise CannotAsk("a picture of the sample is not stored here")
        text = template.render(self.values(task, run.settings))
        parameters = request_parameters(run)
        place = str(task.place)
        digest = request_hash(
            run, template=template, text=text, images=task.images, parameters=parameters, order=place, repeat=0
        )
        key = call_key(run, text=text, images=task.images, parameters=parameters, repeat=0)
        return CallRequest(text, task.images, parameters, digest, key)


class Responses(Collector):
    """The responses of an evaluated model to a benchmark's samples; options also in every rotation (CircularEval)."""

    name = "responses"
    title = "Answers of a model"
    own_settings = {"circular": False}

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return list(range(max(1, len(sample.options)) if settings["circular"] else 1))

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        responses = Response.objects.filter(sample__benchmark=benchmark, model__name=model)
        places = {variant(place): place for place in range(MOST_OPTIONS)}
        rows = responses.filter(variant__in=places).values_list("sample_id", "variant")
        return {(sample, places[name]) for sample, name in rows}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        order = rotated(task.labels, task.place)
        return {
            "instruction": task.sample.instruction,
            "hint": task.sample.hint,
            "options": [(label, str(task.sample.options[key])) for label, key in zip(task.labels, order, strict=True)],
            "images": len(task.images),
        }

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        model, _ = EvaluatedModel.objects.get_or_create(name=run.model_name, defaults={"family": run.judge.family})
        answered = {(row.sample_id, variant(row.place)): row for row in rows if row.status != Collected.Status.ERROR}
        samples = {sample for sample, _ in answered}
        stored_before = _response_ids(model, samples)
        options = dict(Sample.objects.filter(pk__in=samples).values_list("pk", "options"))
        Response.objects.bulk_create(
            Response(
                sample_id=sample,
                model=model,
                variant=name,
                text=row.text,
                status=row.status,
                reason=row.reason,
                option_order=rotated(list(options[sample]), row.place) or None,
                tokens=row.completion_tokens,
            )
            for (sample, name), row in answered.items()
            if (sample, name) not in stored_before
        )
        stored_now = _response_ids(model, samples)
        for key, row in answered.items():
            if key in stored_before:
                row.status, row.reason = Collected.Status.ERROR, STORED_MEANWHILE
                row.reason_hash = reason_key(STORED_MEANWHILE)
            else:
                row.response_id, row.text = stored_now[key], ""  # the response holds the text


class Captions(Collector):
    """Descriptions of images, for judges that get words instead of images ("vision expert", MLLM-as-a-Judge)."""

    name = "captions"
    title = "Descriptions of pictures"
    own_settings = {"replace": False}

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return [image.position for image in images]

    def task_images(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        return tuple(image for image in images if image.position == place)

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        if settings["replace"]:
            return set()
        described = SampleImage.objects.filter(sample__benchmark=benchmark).exclude(description="")
        return set(described.values_list("sample_id", "position"))

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {"instruction": task.sample.instruction}

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        from bank.samples.editor import describe  # loads numpy, which most workers never need

        texts = {(row.sample_id, row.place): row.text for row in rows if row.status == Collected.Status.OK}
        describe(texts=texts, origin=f"{run.model_name}, run {run.pk}", by=run.by, replace=run.settings["replace"])


COLLECTORS: dict[str, Collector] = {collector.name: collector for collector in (Responses(), Captions())}


def variant(place: int) -> str:
    """The variant of a response to options rotated by ``place``; "" for options as they are."""
    return f"circular-{place}" if place else ""


def rotated(labels: Sequence[str], place: int) -> list[str]:
    """The sample's labels in the order in which their options are shown: position i shows option i + ``place``."""
    return [*labels[place:], *labels[:place]]


def _response_ids(model: EvaluatedModel, samples: set[int]) -> dict[tuple[int, str], int]:
    rows = Response.objects.filter(model=model, sample__in=samples).values_list("sample_id", "variant", "pk")
    return {(sample, name): pk for sample, name, pk in rows}
