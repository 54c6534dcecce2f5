"""Labels as rows of the ``generic`` format, as Label Studio tasks with annotations, and preference pairs for DPO."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, product
from typing import Any

from django.db.models import Count, Model, Q, QuerySet

from accounts.rules import Viewer, allowed, where
from annotations.campaigns.run_doubts import human_verdicts
from annotations.models import Adjudication, Annotator, Campaign, Label, LabelQuerySet, LabelRevision
from bank import exposure, guard
from bank.database import batched, chunks
from bank.intake.exports import ExportRequest, Records, refs_by_item, trimmed
from bank.models import Benchmark, Item, with_answers
from bank.models.verdict import COLUMNS, as_row
from judging.models import Judgment

MARKS = ("simulated", "changed_late")  # written where they are true
REVISED = ("seconds", "comment", "flags")
COMPARED = ("assignment__campaign_item__reviewed", "assignment__campaign_item__against")  # where the second is set
WORDLESS: dict[str, Any] = {"comment": "", "flags": [], "reason": ""}  # what a label says in words
AT_ONCE = 900  # labels
# Columns of the format by the fields that hold them: of a label, and of the campaign and the annotator of many.
PLAIN = {
    "kind": "item__kind",
    "sample": "item__sample__key",
    "seconds": "seconds",
    "comment": "comment",
    "changed_late": "changed_late",
}
OF_CAMPAIGN = {"protocol": "protocol", "campaign": "name"}
OF_ANNOTATOR = {"annotator": "pseudonym", "simulated": "simulated"}


def labels_to_export(viewer: Viewer | None, **conditions: Any) -> LabelQuerySet:
    """The labels under these conditions that this viewer may see; without a viewer, all of them."""
    labels: LabelQuerySet = Label.objects.all() if viewer is None else Label.objects.seen_by(viewer)
    return labels.filter(**conditions)


def all_labels(benchmark: Benchmark, asked: ExportRequest) -> Records:
    """Labels of all campaigns or of ``asked.campaign``, with annotators by pseudonym unless ``asked.names``."""
    order = "item__sample_id" if asked.by_sample else "pk"
    return label_records(names=asked.names, viewer=asked.viewer, order=order, **_conditions(benchmark, asked))


def all_preferences(benchmark: Benchmark, asked: ExportRequest) -> Records:
    """Preference pairs of all campaigns or of ``asked.campaign``."""
    return preferences(viewer=asked.viewer, **_conditions(benchmark, asked))


def _conditions(benchmark: Benchmark, asked: ExportRequest) -> dict[str, Any]:
    of_benchmark = {"item__sample__benchmark": benchmark}
    return of_benchmark if asked.campaign is None else of_benchmark | {"campaign": asked.campaign}


def label_records(
    *, names: bool = False, viewer: Viewer | None = None, order: str = "pk", **conditions: Any
) -> Records:
    """Labels with their earlier versions, annotators by pseudonym unless ``names``."""
    found = labels_to_export(viewer, **conditions)
    given = _given(found)
    fields = ("pk", "item_id", "campaign_id", "annotator_id", "created_at", *COMPARED, *PLAIN.values(), *given)
    if viewer is not None:
        found, fields = found.with_words(viewer), (*fields, "in_words")
    rows = found.order_by(order, "pk").values(*fields)
    campaigns = _Shared(Campaign, OF_CAMPAIGN)
    annotators = _Shared(Annotator, OF_ANNOTATOR | ({"annotator": "name"} if names else {}))
    for labels in batched(rows.iterator(chunk_size=AT_ONCE), AT_ONCE):
        responses = refs_by_item(label["item_id"] for label in labels)
        revisions = _revisions_of([label["pk"] for label in labels])
        compared = _compared_judgments(labels)
        for label in labels:
            named, earlier = responses.get(label["item_id"], []), revisions.get(label["pk"], [])
            if not label.get("in_words", True):
                label |= WORDLESS
                earlier = [row | WORDLESS | {"verdict": row["verdict"] | WORDLESS} for row in earlier]
            record = {name: label[field] for name, field in PLAIN.items()}
            record |= campaigns[label["campaign_id"]] | annotators[label["annotator_id"]]
            record |= {"responses": named, "at": label["created_at"].isoformat()} | _compared(label, named, compared)
            record |= {name: record[name] or None for name in MARKS}
            record["revisions"] = [_revision(row, named) for row in earlier]
            yield trimmed(record | _verdict(label, named, given))


class _Shared(dict[int, dict[str, Any]]):
    """What many labels have in common, by the key of a row, which is read once."""

    def __init__(self, model: type[Model], columns: Mapping[str, str]) -> None:
        self.rows, self.columns = model._base_manager, columns

    def __missing__(self, pk: int) -> dict[str, Any]:
        row = self.rows.filter(pk=pk).values_list(*self.columns.values()).get()
        self[pk] = dict(zip(self.columns, row, strict=True))
        return self[pk]


def _given(labels: LabelQuerySet) -> list[str]:
    """The columns of verdicts, and the flags, if any of these labels holds some: one kind of verdict fills few."""
    held = {name: Count(name) for name in COLUMNS} | {"flags": Count("pk", filter=~Q(flags=[]))}
    counted = labels.order_by().aggregate(**{f"n_{name}": count for name, count in held.items()})
    return [name for name in held if counted[f"n_{name}"]]


def _compared(
    label: Mapping[str, Any], responses: Sequence[object], judgments: Mapping[int, Judgment]
) -> dict[str, Any]:
    """The two judgments that a label compares, if it does."""
    if not label[COMPARED[1]]:
        return {}
    return {"compared": [_named(judgments[label[field]], responses) for field in COMPARED]}


@guard.working()
def _compared_judgments(labels: Iterable[Mapping[str, Any]]) -> dict[int, Judgment]:
    ids = {label[field] for label in labels if label[COMPARED[1]] for field in COMPARED}
    return Judgment.objects.select_related("run__judge").defer("analysis", "raw").in_bulk(ids) if ids else {}


def _named(judgment: Judgment, responses: Sequence[object]) -> dict[str, Any]:
    """A judgment as the format names it."""
    run = judgment.run
    order = [responses[int(place)] for place in judgment.order] if responses else []
    named = {"judge": run.judge.name, "protocol": run.protocol, "settings": run.settings, "order": order}
    return trimmed(named | {"repeat": judgment.repeat})


def _verdict(columns: Mapping[str, Any], responses: Sequence[object], known: Sequence[str] = COLUMNS) -> dict[str, Any]:
    """The verdict in these columns as the format writes it. Of a revision only known columns, in case a later version
    of the software stored more.
    """
    verdict = {name: value for name in known if (value := columns.get(name)) not in (None, "")}
    return as_row(verdict, responses)


def _revisions_of(labels: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    """The earlier versions of these labels, oldest first."""
    revisions: dict[int, list[dict[str, Any]]] = defaultdict(list)
    fields = ("label_id", "verdict", "given_at", "replaced_at", *REVISED)
    for ids in chunks(labels):
        for row in LabelRevision.objects.filter(label__in=ids).order_by("pk").values(*fields):
            revisions[row["label_id"]].append(row)
    return revisions


def _revision(row: Mapping[str, Any], responses: Sequence[object]) -> dict[str, Any]:
    record = {name: row[name] for name in REVISED}
    times = {"at": row["given_at"].isoformat(), "until": row["replaced_at"].isoformat()}
    return trimmed(record | times | _verdict(row["verdict"], responses))


def label_studio(what: str, benchmark: Benchmark, asked: ExportRequest) -> Iterator[bytes]:
    """Labels as Label Studio tasks (JSON): one task per item, one annotation per label.

    ``annotations.result`` has one region per verdict column, with its name.
    """
    conditions = _conditions(benchmark, asked)
    order = "assignment__campaign_item_id"
    records = label_records(names=asked.names, viewer=asked.viewer, order=order, **conditions)
    return json_array(
        {"id": number, "data": data, "annotations": list(map(_annotation, labels))}
        for number, (data, labels) in enumerate(groupby(records, key=_data), 1)
    )


def json_array(values: Iterable[Any]) -> Iterator[bytes]:
    """A JSON array, piece by piece, a value a line."""
    before = b"[\n"
    for value in values:
        yield before + json.dumps(value, ensure_ascii=False).encode()
        before = b",\n"
    yield b"\n]\n" if before == b",\n" else b"[]\n"


def _data(record: dict[str, Any]) -> dict[str, Any]:
    names = ("sample", "kind", "protocol", "campaign")
    compared = {"compared": record["compared"]} if "compared" in record else {}
    return {name: record[name] for name in names} | {"responses": record.get("responses", [])} | compared


def _annotation(record: dict[str, Any]) -> dict[str, Any]:
    annotation = {
        "completed_by": {"username": record["annotator"]},
        "was_cancelled": False,
        "result": list(_regions(record)),
    }
    return annotation | trimmed({"lead_time": record.get("seconds"), "created_at": record["at"]})


# How Label Studio stores a column: the type of region, which is also the key of its value.
_LABEL_STUDIO = {
    **dict.fromkeys(("choice", "option", "extraction", "answer", "agree", "hallucination"), "choices"),
    **dict.fromkeys(("score", "grade"), "rating"),
    **dict.fromkeys(("preference", "situation", "confidence"), "number"),
}


def _region(name: str, kind: str, **value: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "item", "type": kind, "value": value}


def _plain_regions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of the columns that hold one value."""
    for name, kind in _LABEL_STUDIO.items():
        value = record.get(name)
        if value is not None:
            value = ("yes" if value else "no") if isinstance(value, bool) else value
            yield _region(name, kind, **{kind: [value] if kind == "choices" else value})


def _regions(record: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The columns of a verdict and what stands beside it, a region each."""
    yield from _plain_regions(record)
    if record.get("ranking"):
        yield _region("ranking", "ranker", ranker={str(rank): group for rank, group in enumerate(record["ranking"], 1)})
    for part in record.get("parts") or ():
        yield _region(f"part:{part['component']}", "number", number=part["points"])
    for start, end in record.get("spans") or ():
        yield _region("spans", "labels", start=start, end=end, labels=["hallucination"])
    if record.get("flags"):
        yield _region("flags", "choices", choices=record["flags"])
    if record.get("comment"):
        yield _region("comment", "textarea", text=[record["comment"]])


def preferences(*, viewer: Viewer | None = None, **conditions: Any) -> Records:
    """Pairs of responses of which people prefer one: ``prompt``, ``chosen``, ``rejected`` and the votes for each.

    The verdict is the adjudicated one if there is one, else the majority (by the benchmark's rule) or the mean ranking.
    Ties and undecided items give no pair. ``agree`` and ``against`` count labels. Below staff without closed answers.
    """
    labels = labels_to_export(viewer, **conditions).counted().of_answers()
    if viewer is not None and not allowed(viewer, "read-hidden"):
        closed = exposure.answers_closed("item__sample__")
        labels = labels.filter(~closed | where(viewer, "read-hidden", "campaign__benchmark__"))
    ids = list(dict.fromkeys(labels.order_by("pk").values_list("item", flat=True)))
    for batch in batched(ids, 300):
        items = Item.objects.filter(pk__in=batch).select_related("sample__benchmark").prefetch_related("sample__images")
        by_pk = items.prefetch_related(with_answers()).in_bulk()
        preferred: dict[int, list[list[tuple[int, int]]]] = defaultdict(list)
        for label in labels.filter(item__in=batch):
            preferred[label.item_id].append(preferred_pairs(label.verdict()))
        adjudications = _adjudications_seen_by(viewer).filter(campaign_item__item__in=batch)
        adjudicated = set(adjudications.values_list("campaign_item__item", flat=True))
        verdicts = human_verdicts(
            batch,
            rule=by_pk[batch[0]].sample.benchmark.majority,
            labels=labels_to_export(viewer),
            adjudications=adjudications,
            every=True,
        )
        for pk in batch:
            source = "adjudicated" if pk in adjudicated else "majority"
            yield from _preference_records(by_pk[pk], verdicts.get(pk, {}), preferred[pk], source)


def _adjudications_seen_by(viewer: Viewer | None) -> QuerySet[Adjudication]:
    if viewer is None:
        return Adjudication.objects.all()
    seen = exposure.seen_singly(viewer, held="campaign_item__campaign__held", item="campaign_item__item__")
    return Adjudication.objects.filter(seen)


def _preference_records(
    item: Item, verdict: dict[str, Any], labels: Sequence[list[tuple[int, int]]], source: str
) -> Records:
    for better, worse in preferred_pairs(verdict):
        responses = item.ordered_responses()
        chosen, rejected = responses[better], responses[worse]
        yield {
            "prompt": item.sample.instruction,
            "images": [image.path for image in item.sample.images.all()],
            "chosen": chosen.text,
            "rejected": rejected.text,
            "chosen_model": chosen.model.name,
            "rejected_model": rejected.model.name,
            "sample": item.sample.key,
            "agree": sum((better, worse) in label for label in labels),
            "against": sum((worse, better) in label for label in labels),
            "source": source,
        }


def preferred_pairs(verdict: dict[str, Any]) -> list[tuple[int, int]]:
    """Pairs of canonical positions in which a verdict prefers the first."""
    if verdict.get("choice") in ("first", "second"):
        return [(0, 1)] if verdict["choice"] == "first" else [(1, 0)]
    groups = verdict.get("ranking") or []
    pairs: list[tuple[int, int]] = []
    for rank, group in enumerate(groups, 1):
        pairs += product(group, chain.from_iterable(groups[rank:]))
    return pairs
