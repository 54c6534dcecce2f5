"""What the collectors share: tasks, the request, the settings."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from bank.models import Benchmark, Sample, SampleImage
from judging import prompts
from judging.models import Collected, Run
from judging.protocols import CannotAsk
from judging.protocols.settings import Settings, boolean, known, one_of, request_settings
from judging.requests import Asked, call_key, identity, parameters

__all__ = ["Asked", "Collector", "Task"]


@dataclass(frozen=True, slots=True)
class Task:
    """One call to be made."""

    sample: Sample
    place: int
    images: tuple[SampleImage, ...]

    @property
    def labels(self) -> list[str]:
        return list(self.sample.options)


class Collector(ABC):
    """One kind of collecting run. Subclasses say which tasks there are, what is asked and where the text goes."""

    name: ClassVar[str]
    title: ClassVar[str]
    own: ClassVar[Mapping[str, bool]] = {}  # settings of this collector alone, with their defaults

    def settings(self, given: Mapping[str, Any]) -> Settings:
        """The settings with every default filled in. Raises BadSettings."""
        names = ("prompt", *self.own)
        known(given, names)
        chosen: Settings = {"prompt": one_of("prompt", given.get("prompt", "default"), tuple(prompts.names(self.name)))}
        for name, default in self.own.items():
            chosen[name] = boolean(name, given.get(name, default))
        return chosen | request_settings(given, temperature=0.0)

    @abstractmethod
    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        """The tasks of a sample."""

    def shown(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        """The pictures that go with a task."""
        return tuple(images)

    @abstractmethod
    def taken(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        """(sample id, place) of what the bank holds already, so that no call need be made."""

    @abstractmethod
    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        """What the template may name. Raises CannotAsk."""

    @abstractmethod
    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        """Put the texts where they belong in the bank, in the transaction that stores the rows."""

    def asked(self, run: Run, task: Task, *, template: prompts.Prompt) -> Asked:
        """Render the request of a task. The same task renders the same one. Raises CannotAsk."""
        if task.sample.absent_images:
            raise CannotAsk("a picture of the sample is not stored here")
        text = template.render(self.values(task, run.settings))
        sent = parameters(run)
        place = str(task.place)
        digest = identity(run, template=template, text=text, images=task.images, sent=sent, order=place, repeat=0)
        key = call_key(run, text=text, images=task.images, sent=sent, repeat=0)
        return Asked(text, task.images, sent, digest, key)
