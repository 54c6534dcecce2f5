"""Labels as files: rows of the ``generic`` format, tasks of Label Studio, and preference pairs for DPO."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from django.db.models import QuerySet

from annotations.campaigns.run_doubts import human_verdicts
from annotations.models import Adjudication, Campaign, Label
from bank.database import batched
from bank.intake import exports, parquet
from bank.intake.exports import Records, refs, trimmed
from bank.models import Benchmark, Item
from bank.models.catalogue import in_hidden_splits

SHAPES = {
    "jsonl": ("JSON Lines", "application/x-ndjson", "jsonl"),
    "csv": ("CSV", "text/csv", "csv"),
    "parquet": ("Parquet", "application/vnd.apache.parquet", "parquet"),
    "label-studio": ("Label Studio JSON", "application/json", "json"),
    "preferences": ("Preference pairs for DPO, JSON Lines", "application/x-ndjson", "jsonl"),
}


def available_shapes() -> dict[str, tuple[str, str, str]]:
    """The shapes that can be made here."""
    return {name: shape for name, shape in SHAPES.items() if name != "parquet" or parquet.available()}


REVISED = ("seconds", "comment", "flags")

# What of the points in a label may be told below staff; gets the sample's id.
OpenParts = Callable[[int, dict[str, float]], dict[str, float]]


def labels_to_export(
    *, benchmark: Benchmark | None = None, campaign: Campaign | None = None, staff: bool = True
) -> "QuerySet[Label]":
    """The labels to export, oldest first. Below staff nothing about hidden splits."""
    found = Label.objects.all()
    if benchmark is not None:
        found = found.filter(item__sample__benchmark=benchmark)
    if campaign is not None:
        found = found.filter(campaign=campaign)
    return found if staff else found.exclude(in_hidden_splits("item__sample__"))


def all_labels(benchmark: Benchmark, asked: exports.Asked) -> Records:
    """Labels of all campaigns; annotators by pseudonym unless ``asked.names``."""
    return label_records(benchmark=benchmark, names=asked.names)


def all_preferences(benchmark: Benchmark, asked: exports.Asked) -> Records:
    """Preference pairs of all campaigns."""
    return preferences(benchmark=benchmark)


def label_records(
    *,
    benchmark: Benchmark | None = None,
    names: bool = False,
    campaign: Campaign | None = None,
    staff: bool = True,
    parts: OpenParts | None = None,
) -> Records:
    """Labels, each with what it was before every change; annotators by pseudonym unless ``names``."""
    query = labels_to_export(benchmark=benchmark, campaign=campaign, staff=staff)
    query = query.select_related("annotator", "campaign", "item__sample").order_by("pk")
    query = query.prefetch_related("item__places__response__model", "revisions")
    for label in query.iterator(chunk_size=500):
        item = label.item
        record = {
            "kind": item.kind,
            "protocol": label.campaign.protocol,
            "sample": item.sample.key,
            "responses": refs(item),
            "annotator": label.annotator.name if names else label.annotator.pseudonym,
            "seconds": label.seconds,
            "comment": label.comment,
            "flags": label.flags,
            "campaign": label.campaign.name,
            "at": label.created_at.isoformat(),
            "revisions": [_revision(label, one, parts) for one in label.revisions.all()],
        }
        yield trimmed(record | _row(label, label.verdict(), parts))


def _row(label: Label, verdict: dict[str, Any], parts: OpenParts | None) -> dict[str, Any]:
    """A verdict on the label's item as the format writes it."""
    if parts is not None and verdict.get("parts"):
        verdict = verdict | {"parts": parts(label.item.sample_id, verdict["parts"])}
    # Only known columns of a revision are written: what a later version stored beside them stays here.
    known = {name: value for name, value in verdict.items() if name in exports.VERDICT.split()}
    return Label(**known).as_row(label.item.ordered_responses())


def _revision(label: Label, revision: Any, parts: OpenParts | None) -> dict[str, Any]:
    record = {name: getattr(revision, name) for name in REVISED}
    times = {"at": revision.given_at.isoformat(), "until": revision.replaced_at.isoformat()}
    return trimmed(record | times | _row(label, revision.verdict, parts))


# ---- Label Studio


def label_studio(records: Records) -> Iterator[bytes]:
    """``rows`` as tasks of Label Studio (JSON), one an item, each label an annotation. Items come in order of their
    first label; ``annotations.result`` has one region a column of the verdict, named like it."""
    tasks: dict[str, dict[str, Any]] = {}
    for record in records:
        named = json.dumps([record["sample"], record.get("responses", []), record["campaign"]], sort_keys=True)
        task = tasks.setdefault(named, {"id": len(tasks) + 1, "data": _data(record), "annotations": []})
        task["annotations"].append(_annotation(record))
    yield b"["
    for number, batch in enumerate(batched(tasks.values(), 200)):
        body = ",\n".join(json.dumps(task, ensure_ascii=False) for task in batch)
        yield (",\n" if number else "\n").encode() + body.encode()
    yield b"\n]\n"


def _data(record: dict[str, Any]) -> dict[str, Any]:
    names = ("sample", "kind", "protocol", "campaign")
    return {name: record[name] for name in names} | {"responses": record.get("responses", [])}


def _annotation(record: dict[str, Any]) -> dict[str, Any]:
    result = list(_regions(record))
    found = {"completed_by": {"username": record["annotator"]}, "was_cancelled": False, "result": result}
    return found | trimmed({"lead_time": record.get("seconds"), "created_at": record["at"]})


def _regions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    def region(name: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
        return {"from_name": name, "to_name": "item", "type": kind, "value": value}

    for name in ("choice", "option", "extraction"):
        if record.get(name) is not None:
            yield region(name, "choices", {"choices": [record[name]]})
    for name in ("answer", "agree", "hallucination"):
        if record.get(name) is not None:
            yield region(name, "choices", {"choices": ["yes" if record[name] else "no"]})
    for name in ("score", "grade"):
        if record.get(name) is not None:
            yield region(name, "rating", {"rating": record[name]})
    for name in ("situation", "confidence"):
        if record.get(name) is not None:
            yield region(name, "number", {"number": record[name]})
    if record.get("ranking"):
        groups = {str(place): group for place, group in enumerate(record["ranking"], 1)}
        yield region("ranking", "ranker", {"ranker": groups})
    for part in record.get("parts") or ():
        yield region(f"part:{part['component']}", "number", {"number": part["points"]})
    for start, end in record.get("spans") or ():
        yield region("spans", "labels", {"start": start, "end": end, "labels": ["hallucination"]})
    if record.get("flags"):
        yield region("flags", "choices", {"choices": record["flags"]})
    if record.get("comment"):
        yield region("comment", "textarea", {"text": [record["comment"]]})


# ---- preferences


def preferences(*, benchmark: Benchmark | None = None, campaign: Campaign | None = None, staff: bool = True) -> Records:
    """Pairs of responses of which people prefer one: ``prompt``, ``chosen``, ``rejected`` and the votes for each.

    The verdict is the adjudicated one where there is one, else that of the majority (the benchmark's rule) or the mean
    ranking; ties and undecided items give no pair. ``agree`` and ``against`` count labels.
    """
    query = labels_to_export(benchmark=benchmark, campaign=campaign, staff=staff).filter(
        excluded=False, agree__isnull=True
    )
    query = query.exclude(assignment__campaign_item__practice=True)
    ids = list(dict.fromkeys(query.order_by("pk").values_list("item", flat=True)))
    for some in batched(ids, 300):
        items = Item.objects.filter(pk__in=some).select_related("sample__benchmark").prefetch_related("sample__images")
        by_pk = items.prefetch_related("places__response__model").in_bulk()
        given: dict[int, list[dict[str, Any]]] = {}
        for label in query.filter(item__in=some):
            given.setdefault(label.item_id, []).append(label.verdict())
        decided = {
            one.campaign_item.item_id
            for one in Adjudication.objects.filter(campaign_item__item__in=some).select_related("campaign_item")
        }
        rule = by_pk[some[0]].sample.benchmark.majority
        verdicts = human_verdicts(some, rule=rule)
        for pk in some:
            source = "adjudicated" if pk in decided else "majority"
            yield from _preference_records(by_pk[pk], verdicts.get(pk, {}), given[pk], source)


def _preference_records(item: Item, verdict: dict[str, Any], given: list[dict[str, Any]], source: str) -> Records:
    for better, worse in preferred_pairs(verdict):
        responses = item.ordered_responses()
        first, second = responses[better], responses[worse]
        ways = ((better, worse), (worse, better))
        agree, against = (sum(way in preferred_pairs(one) for one in given) for way in ways)
        yield {
            "prompt": item.sample.instruction,
            "images": [image.path for image in item.sample.images.all()],
            "chosen": first.text,
            "rejected": second.text,
            "chosen_model": first.model.name,
            "rejected_model": second.model.name,
            "sample": item.sample.key,
            "agree": agree,
            "against": against,
            "source": source,
        }


def preferred_pairs(verdict: dict[str, Any]) -> list[tuple[int, int]]:
    """Which canonical positions a verdict puts over which."""
    if verdict.get("choice") in ("first", "second"):
        return [(0, 1)] if verdict["choice"] == "first" else [(1, 0)]
    groups = verdict.get("ranking") or []
    return [
        (better, worse)
        for place, group in enumerate(groups)
        for better in group
        for below in groups[place + 1 :]
        for worse in below
    ]


def file_pieces(
    *,
    shape: str,
    benchmark: Benchmark | None = None,
    campaign: Campaign | None = None,
    names: bool = False,
    staff: bool = True,
    parts: OpenParts | None = None,
) -> Iterator[bytes]:
    """The file in one of ``SHAPES``, piece by piece."""
    if shape == "preferences":
        records = preferences(benchmark=benchmark, campaign=campaign, staff=staff)
        return exports.pieces(records=records, what="preferences", shape="jsonl")
    records = label_records(benchmark=benchmark, campaign=campaign, names=names, staff=staff, parts=parts)
    if shape == "label-studio":
        return label_studio(records)
    return exports.pieces(records=records, what="labels", shape=shape)
