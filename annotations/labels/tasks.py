"""What a campaign asks, for people who label it in Label Studio or Argilla: what these export comes in again as labels.
To Label Studio its labels can go with it.

Each item is named by its sample's key and its models in the order shown, which is shuffled for each item and the same
for everybody; the models' names are in the data, and not shown. Criteria stay here.
"""

import base64
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree as xml

from annotations import ballots
from annotations.ballots import FLAGS, Ballot
from annotations.labels.exports import json_array, label_records
from annotations.models import Campaign, CampaignItem
from bank import images
from bank.database import batched
from bank.errors import BadInput
from bank.intake import exports
from bank.intake.exports import ExportRequest, picture, ref, trimmed
from bank.models import Benchmark, Sample, with_answers

# The column that each protocol asks for, by the name that the control or question has there.
ASKED = {
    **dict.fromkeys(("pair", "pairwise-criteria"), "choice"),
    "pair-graded": "preference",
    "score": "score",
    "yes-no": "answer",
    "label": "option",
    "batch": "ranking",
}
LONGEST = 1600  # pixels of a picture's longer edge in Argilla, which keeps it as text
AT_ONCE = 100
SIDES = ("left", "right")


@dataclass(frozen=True, slots=True)
class Task:
    """An item to label: how it is named, and what is shown."""

    number: int
    item: int
    about: dict[str, Any]  # sample, kind, protocol, responses
    instruction: str
    pictures: list[str]
    answers: list[str]


@dataclass(frozen=True, slots=True)
class Asked:
    """A campaign's question about each of its items."""

    campaign: Campaign
    ballot: Ballot
    column: str
    answers: int  # most of one item
    pictures: int

    @property
    def name(self) -> str:
        return f"{self.campaign.benchmark.slug}-campaign-{self.campaign.pk}"

    @property
    def options(self) -> dict[str, str]:
        """The verdicts by value, with their words; none where answers are ranked."""
        words = {button.value: str(button.words) for button in self.ballot.buttons}
        if self.column in ("score", "preference"):
            return {value: f"{value}: {said}" if said else value for value, said in words.items()}
        return words


def asked_of(benchmark: Benchmark, asked: ExportRequest) -> Asked:
    """The question of the campaign in the request. Raises BadInput if there is none, or tools cannot ask it."""
    campaign = Campaign.objects.filter(benchmark=benchmark, pk=asked.campaign or 0).select_related("benchmark").first()
    if campaign is None:
        raise BadInput("A campaign's items are labelled: name it with --campaign NAME.", "campaign")
    if campaign.protocol not in ASKED:
        raise BadInput(f"Other tools cannot ask {campaign.protocol}; they can ask {', '.join(ASKED)}.", "shape")
    ballot = ballots.of(campaign)
    counts = {(0, 0)} | {(len(task.answers), len(task.pictures)) for task in _tasks(campaign)}
    return Asked(campaign, ballot, ASKED[campaign.protocol], max(n for n, _ in counts), max(n for _, n in counts))


def _tasks(campaign: Campaign) -> Iterator[Task]:
    """The items that annotators may get, in the campaign's order, their answers shuffled."""
    places = CampaignItem.objects.filter(campaign=campaign).assignable().select_related("item__sample")
    places = places.prefetch_related("item__sample__images", with_answers("item__"))
    for number, place in enumerate(places.order_by("position", "pk").iterator(chunk_size=AT_ONCE), 1):
        item, sample = place.item, place.item.sample
        responses = item.ordered_responses()
        random.Random(f"{campaign.pk} {item.pk}").shuffle(responses)
        refs = [ref(response.model.name, response.variant) for response in responses]
        yield Task(
            number=number,
            item=item.pk,
            about={"sample": sample.key, "kind": item.kind, "protocol": campaign.protocol, "responses": refs},
            instruction=_instruction(sample),
            pictures=[image.path for image in sample.images.all()],
            answers=[response.text for response in responses],
        )


def _instruction(sample: Sample) -> str:
    options = [f"{key}. {text}" for key, text in sample.options.items()]
    return "\n".join(filter(None, [sample.hint, sample.instruction, *options]))


def label_studio(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """A zip of ``tasks.json``, the labelling configuration ``config.xml`` and the pictures, which Label Studio serves
    as local files. Raises BadInput.
    """
    campaign = asked_of(benchmark, asked)
    return exports.zip_of(_label_studio_files(campaign, ((task, {}) for task in _tasks(campaign.campaign))))


def labelled_label_studio(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """The same project with the campaign's labels as annotations, by pseudonym unless ``asked.names``."""
    campaign = asked_of(benchmark, asked)
    return exports.zip_of(_label_studio_files(campaign, _labelled_tasks(campaign, asked)))


def _labelled_tasks(asked: Asked, request: ExportRequest) -> Iterator[tuple[Task, dict[str, Any]]]:
    for tasks in batched(_tasks(asked.campaign), AT_ONCE):
        records = label_records(
            names=request.names,
            viewer=request.viewer,
            campaign=asked.campaign,
            item__in=[task.item for task in tasks],
        )
        labels: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in records:
            labels[_item_of(record)].append(record)
        for task in tasks:
            yield task, {"annotations": [_annotation(record, task, asked) for record in labels[_item_of(task.about)]]}


def _item_of(about: Mapping[str, Any]) -> str:
    """What tells the items of one campaign apart: the sample and the answers, in whatever order."""
    return json.dumps([about["sample"], sorted(map(json.dumps, about.get("responses", [])))])


def _annotation(record: dict[str, Any], task: Task, asked: Asked) -> dict[str, Any]:
    """A label as what somebody in Label Studio would have said with this configuration, of answers in the order shown.

    Label Studio takes an annotation of whoever imports it: it knows none of our annotators. ``annotator`` tells us.
    """
    said = _said(record, task.about["responses"])
    regions: list[tuple[str, str, str, Any]] = []
    if said is None:
        pass  # flags or a comment alone
    elif asked.column == "ranking":
        has_places = asked.ballot.settings["ties"] or any(len(group) > 1 for group in said)
        in_places = {str(place): group for place, group in enumerate(said, 1)}
        ranked = in_places if has_places else {"ranking": [one for (one,) in said]}
        regions.append(("ranking", "answers", "ranker", ranked))
    else:
        regions.append((asked.column, "instruction", "choices", [_option(said)]))
    if record.get("flags"):
        regions.append(("flags", "instruction", "choices", record["flags"]))
    if record.get("comment"):
        regions.append(("comment", "instruction", "textarea", [record["comment"]]))
    result = [
        {"id": f"{task.number}-{name}", "from_name": name, "to_name": to, "type": kind}
        | {"value": {"text" if kind == "textarea" else kind: value}}
        for name, to, kind, value in regions
    ]
    about = {"annotator": record["annotator"], "created_at": record["at"], "lead_time": record.get("seconds")}
    return {"result": result, "was_cancelled": False, "ground_truth": False} | trimmed(about)


def _said(record: Mapping[str, Any], shown: Sequence[Any]) -> Any:
    """The verdict of a label with its answers by their place in the order shown."""
    if "ranking" in record:
        return [[f"answer-{shown.index(one) + 1}" for one in group] for group in record["ranking"]]
    is_turned = record.get("responses", []) != list(shown)
    if "preference" in record:
        return 1 - record["preference"] if is_turned else record["preference"]
    if "choice" in record:
        sides = SIDES[::-1] if is_turned else SIDES
        return dict(zip(("first", "second"), sides, strict=True)).get(record["choice"], record["choice"])
    return next((record[name] for name in ("score", "answer", "option") if name in record), None)


def _option(said: Any) -> str:
    """The verdict as the configuration calls it."""
    if isinstance(said, bool):
        return "yes" if said else "no"
    return f"{said:g}" if isinstance(said, int | float) else str(said)


def _label_studio_files(
    asked: Asked, labelled: Iterable[tuple[Task, dict[str, Any]]]
) -> Iterator[tuple[str, Iterable[bytes]]]:
    pictures: dict[str, None] = {}

    def tasks() -> Iterator[dict[str, Any]]:
        for task, labels in labelled:
            pictures.update(dict.fromkeys(task.pictures))
            yield {"id": task.number, "data": task.about | _shown(task, asked)} | labels

    yield f"{asked.name}/config.xml", [_config(asked)]
    yield f"{asked.name}/tasks.json", json_array(tasks())
    for name in pictures:
        if (data := picture(name)) is not None:
            yield f"{asked.name}/{name}", [data]


def _shown(task: Task, asked: Asked) -> dict[str, Any]:
    """The data of a task, under the names that the configuration has for them."""
    shown: dict[str, Any] = {"instruction": task.instruction}
    if asked.pictures:
        shown["pictures"] = [f"/data/local-files/?d={asked.name}/{name}" for name in task.pictures]
    if asked.column == "ranking":
        answers = [
            {"id": f"answer-{number}", "title": f"Answer {number}", "body": text}
            for number, text in enumerate(task.answers, 1)
        ]
        return shown | {"answers": answers}
    return shown | {f"answer{number}": text for number, text in enumerate(task.answers, 1)}


def _config(asked: Asked) -> bytes:
    """The labelling configuration: the instruction, pictures and answers, one question, flags and a comment."""
    view = xml.Element("View")

    def add(parent: xml.Element, tag: str, **attributes: str) -> xml.Element:
        return xml.SubElement(parent, tag, attributes)

    add(view, "Text", name="instruction", value="$instruction")
    if asked.pictures:
        add(view, "Image", name="pictures", valueList="$pictures")
    if asked.column != "ranking":
        row = add(view, "View", style="display: flex; gap: 1em")
        for number in range(1, asked.answers + 1):
            column = add(row, "View", style="flex: 1")
            add(column, "Header", value=f"Answer {number}" if asked.answers > 1 else "Answer")
            add(column, "Text", name=f"answer{number}", value=f"$answer{number}")
    add(view, "Header", value=str(asked.ballot.question))
    if asked.column == "ranking":
        add(view, "List", name="answers", value="$answers", title="Answers")
        ranker = add(view, "Ranker", name="ranking", toName="answers")
        for number in range(1, asked.answers + 1) if asked.ballot.settings["ties"] else ():
            add(ranker, "Bucket", name=str(number), title=f"Place {number}")
    else:
        choices = add(view, "Choices", name=asked.column, toName="instruction", choice="single-radio", required="true")
        for value, words in asked.options.items():
            add(choices, "Choice", value=words, alias=value)
    flags = add(view, "Choices", name="flags", toName="instruction", choice="multiple")
    for value, said in FLAGS.items():
        add(flags, "Choice", value=str(said), alias=value)
    add(view, "TextArea", name="comment", toName="instruction", rows="3", placeholder="Comment", maxSubmissions="1")
    xml.indent(view)
    return xml.tostring(view) + b"\n"


def argilla(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """A zip of a dataset as Argilla's ``Dataset.from_disk`` reads it: settings and records, with pictures. Raises
    BadInput.
    """
    return exports.zip_of(_argilla_files(asked_of(benchmark, asked)))


def _argilla_files(asked: Asked) -> Iterator[tuple[str, Iterable[bytes]]]:
    shared = {
        "guidelines": asked.campaign.guidelines.strip() or None,
        "allow_extra_metadata": True,
        "distribution": {"strategy": "overlap", "min_submitted": asked.campaign.overlap},
    }
    settings = shared | {"fields": _fields(asked), "questions": _questions(asked), "metadata": [], "vectors": []}
    yield ".argilla/dataset.json", [json.dumps({"name": asked.name} | shared).encode()]
    yield ".argilla/settings.json", [json.dumps(settings).encode()]
    yield "records.json", json_array(map(_record, _tasks(asked.campaign)))


def _fields(asked: Asked) -> list[dict[str, Any]]:
    def field(name: str, title: str, **settings: Any) -> dict[str, Any]:
        return {"name": name, "title": title, "required": name == "instruction", "settings": settings}

    return [
        field("instruction", "Instruction", type="text", use_markdown=True),
        *(field(f"picture_{n}", f"Picture {n}", type="image") for n in range(1, asked.pictures + 1)),
        *(field(f"answer_{n}", f"Answer {n}", type="text", use_markdown=True) for n in range(1, asked.answers + 1)),
    ]


def _questions(asked: Asked) -> list[dict[str, Any]]:
    """The question of the campaign and a comment. A ranking is asked as a place for each answer: what Argilla exports
    of its own rankings has lost the ranks.
    """

    def question(name: str, title: str, required: bool, **settings: Any) -> dict[str, Any]:
        return {"name": name, "title": title, "required": required, "settings": settings}

    places = range(1, asked.answers + 1)
    options = [{"value": value, "text": words} for value, words in asked.options.items()]
    comment = question("comment", "Comment", required=False, type="text", use_markdown=False)
    if asked.column == "ranking":
        ranks = [{"value": place} for place in places]
        titles = [(f"rank_{place}", f"Place of answer {place} (1: best)") for place in places]
        return [*(question(name, title, True, type="rating", options=ranks) for name, title in titles), comment]
    title = str(asked.ballot.question)
    return [question(asked.column, title, True, type="label_selection", options=options), comment]


def _record(task: Task) -> dict[str, Any]:
    """A record. Metadata hold no objects, so that variants stand beside the models."""
    fields = {"instruction": task.instruction}
    fields |= {f"picture_{number}": _as_text(name) for number, name in enumerate(task.pictures, 1)}
    fields |= {f"answer_{number}": text for number, text in enumerate(task.answers, 1)}
    about = {name: value for name, value in task.about.items() if name != "responses"}
    return {
        "id": str(task.number),
        "fields": trimmed(fields),
        "metadata": about | _names(task.about["responses"]),
        "suggestions": {},
        "responses": {},
        "vectors": {},
    }


def _names(responses: Iterable[Any]) -> dict[str, list[str]]:
    """The models, and their variants if one has any."""
    refs = [one if isinstance(one, dict) else {"model": one} for one in responses]
    named = {"models": [one["model"] for one in refs]}
    if any("variant" in one for one in refs):
        named["variants"] = [one.get("variant", "") for one in refs]
    return named


def _as_text(name: str) -> str:
    """A picture as a data URI; empty if its file is not there."""
    data = picture(name)
    if data is None:
        return ""
    kind = name.rpartition(".")[2].replace("jpg", "jpeg")
    return f"data:image/{kind};base64,{base64.b64encode(images.smaller(data, longest=LONGEST)).decode()}"
