"""Runs that collect what a model writes: its responses to a benchmark, or descriptions of images.

The same engine works them as runs of judges. A task is a sample and a place: the rotation of its options, or the
position of its image. The result of a task is one ``Collected`` row; the text goes where it belongs in the bank.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

from bank.criteria import answer_keys
from bank.models import Benchmark, Draft, EvaluatedModel, Response, Sample, SampleImage
from bank.models.drafts import REWRITINGS
from bank.samples import drafts
from judging.models import Collected, Run, reason_key
from judging.protocols import CannotAsk, prompts
from judging.protocols.base import prompt_setting
from judging.protocols.replies import NoVerdict
from judging.protocols.settings import (
    BadSettings,
    Printed,
    Settings,
    boolean,
    check_names,
    request_settings,
    with_printed,
)
from judging.runs.requests import CallRequest, identified, request_parameters

STORED_MEANWHILE = "another response of this model to this sample was stored meanwhile"
MOST_OPTIONS = 27
MOST_WORDS = 4  # of a noun
MOST_OBJECTS = 40
MOST_COMPONENTS = 12


@dataclass(frozen=True, slots=True)
class Task:
    """One call to make."""

    sample: Sample
    place: int
    images: tuple[SampleImage, ...]
    step: int = 0


class Collector(ABC):
    """One kind of collecting run. Subclasses define its tasks, what it asks and where the texts go."""

    name: ClassVar[str]
    title: ClassVar[str]
    nothing: ClassVar[str] = "samples"  # what a benchmark lacks that has no tasks
    complete: ClassVar[str]  # said where nothing is left to do, of ``{model}``
    printed: ClassVar[Printed | None] = None  # how a paper asks
    own_settings: ClassVar[Mapping[str, bool]] = {}  # settings that only this collector has, with their defaults
    sees: ClassVar[bool] = True  # the pictures of samples go with its calls

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        """The settings with every default filled in. Raises BadSettings."""
        chosen = with_printed(chosen, self.printed)
        check_names(chosen, ("prompt", *self.own_settings))
        settings: Settings = {"prompt": prompt_setting(self.name, chosen)}
        for name, default in self.own_settings.items():
            settings[name] = boolean(name, chosen.get(name, default))
        return settings | request_settings(chosen, temperature=0.0)

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        """The tasks of a sample: one, unless a collector has others."""
        return [0]

    def shows(self, settings: Settings) -> bool:
        """Whether the pictures of samples go with the calls."""
        return self.sees and not settings.get("no_pictures")

    def task_images(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        """The images that go with a task, where they are shown."""
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

    def texts(self, rows: Sequence[Collected]) -> dict[tuple[int, int], str]:
        """The texts of calls that succeeded, by sample and place."""
        return {(row.sample_id, row.place): row.text for row in rows if row.status == Collected.Status.OK}

    def origin(self, run: Run) -> str:
        """Who wrote them, as the bank keeps it."""
        return f"{run.model_name}, run {run.pk}"

    def read(self, text: str, run: Run) -> str:
        """The text of a reply as it is kept. Raises NoVerdict."""
        return text

    def request(self, run: Run, task: Task, *, template: prompts.Prompt) -> CallRequest:
        """Render the request of a task; the same task always gives the same one. Raises CannotAsk."""
        if task.sample.absent_images and run.shows_pictures:
            raise CannotAsk("a picture of the sample is not stored here")
        text = template.render(self.values(task, run.settings))
        parameters = request_parameters(run)
        hashes = identified(
            run, template=template, text=text, images=task.images, parameters=parameters, order=str(task.place)
        )
        return CallRequest(text=text, images=task.images, parameters=parameters, **hashes)


class Responses(Collector):
    """The responses of an evaluated model to a benchmark's samples; options also in every rotation (CircularEval).
    Without their pictures it is another model to the bank: the blind baseline of a benchmark.
    """

    name = "responses"
    title = "Answers of a model"
    complete = "All responses of {model} are stored"
    printed = Printed("MMBench", "4.1, CircularEval", {"circular": True})
    own_settings = {"circular": False, "stop_rotations": False, "no_pictures": False}

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        settings = super().settings(chosen)
        if settings["stop_rotations"] and not settings["circular"]:
            raise BadSettings("stop_rotations: there are no rotations to stop without circular.")
        for name in ("stop_rotations", "no_pictures"):
            if not settings[name]:
                del settings[name]
        return settings

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return list(range(max(1, len(sample.options)) if settings["circular"] else 1))

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        responses = Response.objects.filter(sample__benchmark=benchmark, model__name=model)
        places = {variant(place): place for place in range(MOST_OPTIONS)}
        rows = responses.filter(variant__in=places).values_list("sample_id", "variant")
        return {(sample, places[name]) for sample, name in rows}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        options = task.sample.options
        order = rotated(list(options), task.place)
        return {
            "instruction": task.sample.instruction,
            "hint": task.sample.hint,
            "options": [(label, str(options[key])) for label, key in zip(options, order, strict=True)],
            "images": len(task.images),
            "language": task.sample.language,
        }

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        store_responses(run, rows, lambda row: [_response(row)])
        for row in rows:
            if row.response:
                row.text = ""  # the response holds the text


def _response(row: Collected) -> Response:
    """The response that a rotation's reply becomes."""
    return Response(
        sample=row.sample,
        variant=variant(row.place),
        text=row.text,
        status=row.status,
        reason=row.reason,
        option_order=rotated(list(row.sample.options), row.place) or None,
        tokens=row.completion_tokens,
    )


def store_responses(run: Run, rows: Sequence[Collected], responses_to: Callable[[Collected], list[Response]]) -> None:
    """Store the responses that the rows of ended tasks bring; a row names the last of its own.

    Where another one was stored meanwhile, it stays, and the row says so.
    """
    model, _ = EvaluatedModel.objects.get_or_create(name=run.model_name, defaults={"family": run.judge.family})
    samples = {row.sample_id for row in rows}
    stored = Response.all_objects.filter(recipe=run.recipe, model=model, sample__in=samples)
    taken = set(stored.values_list("sample_id", "variant", "repeat"))
    new: list[tuple[Collected, list[Response]]] = []
    for row in rows:
        if row.status == Collected.Status.ERROR:
            continue
        responses = responses_to(row)
        if (row.sample_id, responses[-1].variant, responses[-1].repeat) in taken:
            row.status, row.reason = Collected.Status.ERROR, STORED_MEANWHILE
            row.reason_hash = reason_key(STORED_MEANWHILE)
            continue
        for response in responses:
            response.model, response.recipe = model, run.recipe
        new.append((row, responses))
    Response.all_objects.bulk_create(chain.from_iterable(responses for _, responses in new))
    for row, responses in new:
        row.response = responses[-1]


WRONG_BEFORE = "not asked: an earlier rotation was wrong"


class RightAnswers:
    """The keys of questions that everybody may see, to tell which further rotations need no call."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.keys: dict[int, str] = {}
        self.wrong: set[int] = set()  # samples of which some rotation is wrong, as far as this worker knows

    def look_up(self, samples: Sequence[Sample]) -> None:
        """Read the keys of these samples, and what is stored of their answers."""
        asked = Sample.objects.filter(pk__in=[sample.pk for sample in samples])
        self.keys |= answer_keys.open_keys(about=f"run {self.run.pk}", samples=asked)
        by_id = {sample.pk: sample for sample in samples}
        for response in Response.objects.filter(sample__in=asked, model__name=self.run.model_name):
            self.mark(by_id[response.sample_id], response)

    def mark_row(self, row: Collected) -> None:
        """Note it of a reply that is not stored yet."""
        self.mark(row.sample, _response(row))

    def mark(self, sample: Sample, answer: Response) -> None:
        """Note whether an answer names a wrong option by its label. What nobody can read is not wrong."""
        from bank.marking import chosen_option  # loads numpy, which most workers never need

        chosen = chosen_option(answer, tuple(sample.options))
        if sample.pk in self.keys and chosen not in ("", self.keys[sample.pk].strip()):
            self.wrong.add(sample.pk)


class Captions(Collector):
    """Descriptions of images, for judges that get words instead of images ("vision expert", MLLM-as-a-Judge)."""

    name = "captions"
    title = "Descriptions of pictures"
    nothing = "pictures"
    complete = "All pictures have a description"
    own_settings = {"replace": False}
    without: ClassVar[Mapping[str, Any]] = {"description": ""}  # of pictures about which nothing is stored

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return [image.position for image in images]

    def task_images(self, place: int, images: Sequence[SampleImage]) -> tuple[SampleImage, ...]:
        return tuple(image for image in images if image.position == place)

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        if settings["replace"]:
            return set()
        described = SampleImage.objects.filter(sample__benchmark=benchmark).exclude(**self.without)
        return set(described.values_list("sample_id", "position"))

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {"instruction": task.sample.instruction}

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        from bank.samples.editor import describe  # loads numpy, which most workers never need

        describe(texts=self.texts(rows), origin=self.origin(run), by=run.by, replace=run.settings["replace"])


class Objects(Captions):
    """Lists of what can be seen in images, for judges that get words instead of images (``context objects``)."""

    name = "objects"
    title = "Objects in pictures"
    printed = Printed("MLLM-Bench", "F.2: ten boxes with confidence, there by a detector", {"prompt": "boxes"})
    complete = "All pictures have a list of objects"
    without = {"objects_found": []}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {}

    def read(self, text: str, run: Run) -> str:
        lines = [line.strip().lstrip("-*• ").strip() for line in text.splitlines()]
        lines = [line[:300] for line in lines if line and not line.startswith("```")][:MOST_OBJECTS]
        if not lines:
            raise NoVerdict("the reply lists no object")
        return "\n".join(lines)

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        from bank.samples.editor import list_objects

        objects = {place: text.split("\n") for place, text in self.texts(rows).items()}
        list_objects(objects=objects, origin=self.origin(run), by=run.by, replace=run.settings["replace"])


class Rewrites(Collector):
    """Questions in other words (ChEF, Table 3: sentences), which recipes may ask by once a person has taken them."""

    name = "rewrites"
    title = "Questions in other words"
    complete = "All questions are written in every other way"
    sees = False

    def places(self, sample: Sample, images: Sequence[SampleImage], settings: Settings) -> list[int]:
        return list(range(len(REWRITINGS)))

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        rewritten = Draft.objects.filter(sample__benchmark=benchmark, part__in=REWRITINGS)
        kept = rewritten.exclude(state=Draft.State.DISMISSED).values_list("sample", "part")
        return {(sample, REWRITINGS.index(part)) for sample, part in kept}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {"instruction": task.sample.instruction, "method": REWRITINGS[task.place]}

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        texts = {(sample, REWRITINGS[place]): text for (sample, place), text in self.texts(rows).items()}
        drafts.store(texts=texts, origin=self.origin(run))


class Verbs(Collector):
    """The verb at the root of each instruction and its direct object, which the benchmark's page counts (MIA-Bench,
    Figure 5). They are kept in the run alone.
    """

    name = "verbs"
    title = "Verbs of instructions"
    complete = "All instructions have a verb"
    sees = False

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        found = Collected.objects.filter(run__kind=self.name, sample__benchmark=benchmark, status=Collected.Status.OK)
        return {(sample, 0) for sample in found.values_list("sample", flat=True)}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        return {"instruction": task.sample.instruction}

    def read(self, text: str, run: Run) -> str:
        verb, _, noun = text.strip().partition("\n")[0].casefold().strip(" .\"'").partition(":")
        verb, noun = verb.strip(), noun.strip()
        if not verb or len(verb.split()) > 2 or len(noun.split()) > MOST_WORDS:
            raise NoVerdict("the reply is not a verb and its noun")
        return f"{verb}: {noun}" if noun else verb

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        """The run's own rows are all there is."""


class Drafts(Collector):
    """Instructions and criteria for people to verify: criteria for the instruction that is there (prompt ``default``),
    an instruction with criteria (``instruction``; MLLM-Bench, 4.2.2), or one composed of weighted ``components``
    (``composed``; MIA-Bench, 3.2).
    """

    name = "drafts"
    title = "Drafts of instructions and criteria"
    complete = "All samples have a draft that waits"
    COMPOSED = "composed"

    def settings(self, chosen: Mapping[str, Any]) -> Settings:
        rest = dict(chosen)
        components = rest.pop("components", None)
        settings = super().settings(rest)
        composed = str(settings["prompt"]).startswith(self.COMPOSED)
        if composed != (components is not None):
            raise BadSettings('The prompt composed takes components, e.g. {"mention": 3, "length limit": 1}.')
        if components is not None:
            good = isinstance(components, Mapping) and 1 <= len(components) <= MOST_COMPONENTS
            if not good or not all(
                isinstance(name, str) and 0 < len(name) <= 60 and type(weight) in (int, float) and 0 < weight <= 100
                for name, weight in components.items()
            ):
                raise BadSettings(f"components: 1 to {MOST_COMPONENTS} names with weights up to 100.")
            settings["components"] = dict(components)
        return settings

    def stored(self, *, benchmark: Benchmark, model: str, settings: Settings) -> set[tuple[int, int]]:
        waiting = Draft.objects.filter(sample__benchmark=benchmark, part=Draft.SAMPLE, state=Draft.State.WAITING)
        return {(sample, 0) for sample in waiting.values_list("sample", flat=True)}

    def values(self, task: Task, settings: Settings) -> dict[str, Any]:
        capability = task.sample.capability
        return {
            "instruction": task.sample.instruction,
            "images": len(task.images),
            "capability": capability.path if capability else "",
            "components": list(settings.get("components", {}).items()),
        }

    def read(self, text: str, run: Run) -> str:
        only_criteria = str(run.settings["prompt"]).startswith("default")
        try:
            return drafts.checked_proposal(text, wants=["criteria", *([] if only_criteria else ["instruction"])])
        except ValueError as error:
            raise NoVerdict(str(error)) from None

    def keep(self, run: Run, rows: Sequence[Collected]) -> None:
        texts = {(sample, Draft.SAMPLE): text for (sample, _), text in self.texts(rows).items()}
        drafts.store(texts=texts, origin=self.origin(run))
        for row in rows:  # the draft holds the text, encrypted; what failed may quote as much
            row.text, row.thinking = "", ""


COLLECTORS: dict[str, Collector] = {
    collector.name: collector for collector in (Responses(), Captions(), Objects(), Rewrites(), Verbs(), Drafts())
}


def variant(place: int) -> str:
    """The variant of a response to options rotated by ``place``; "" for options as they are."""
    return f"circular-{place}" if place else ""


def rotated(labels: Sequence[str], place: int) -> list[str]:
    """The sample's labels in the order in which their options are shown: position i shows option i + ``place``."""
    return [*labels[place:], *labels[:place]]
