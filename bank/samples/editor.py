"""Makes and changes samples. Each change raises the sample's edition and is recorded with its author and time."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, Max, QuerySet
from django.utils import timezone

import bank.criteria
from accounts.models import User
from bank import images
from bank.database import batched
from bank.errors import BadInput, Stale
from bank.models import Benchmark, Capability, Sample, SampleImage, SampleReview, SampleRevision
from bank.picked import picked
from bank.samples import quality

FIELDS = ("key", "instruction", "hint", "language", "question_type", "options", "split", "source", "group")
BULK = ("split", "capability", "status", "question_type")


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as the editor submits it: an existing one (``pk``) or a new one (``stored``)."""

    pk: int | None = None
    stored: images.Stored | None = None
    description: str = ""
    objects_found: list[Any] = field(default_factory=list)


def _new_draft(benchmark: Benchmark, author: User) -> Sample:
    """The last sample of its benchmark, not yet saved."""
    last = benchmark.samples.aggregate(last=Max("position"))["last"]
    sample = Sample(benchmark=benchmark, position=0 if last is None else last + 1, edition=0)
    sample.status, sample.author = Sample.Status.DRAFT, author
    return sample


def _locked(sample: Sample, edition: int) -> Sample:
    """The sample as it is stored, locked. Raises Stale if it is not of this edition any more."""
    rows = Sample.objects.select_for_update(of=("self",)).select_related("capability", "benchmark")
    locked = rows.get(pk=sample.pk)
    if locked.edition != edition:
        raise Stale(_who_was_faster(locked))
    return locked


@transaction.atomic
def save_sample(
    *,
    by: User,
    benchmark: Benchmark,
    sample: Sample | None,
    edition: int,
    fields: dict[str, Any],
    capability: Capability | None,
    pictures: Sequence[Picture],
    criteria: Sequence[dict[str, Any]],
    note: str = "",
) -> Sample:
    """Save a sample as the editor submits it: fields, pictures in order, criteria in order.

    ``sample`` None creates a draft by the author ``by``. ``edition`` is the one the editor was opened with. Without
    changes, no edition is made. Raises Stale, BadInput.
    """
    fresh = sample is None
    changes: dict[str, list[Any]] = {}
    if sample is None:
        sample = _new_draft(benchmark, by)
    else:
        sample = _locked(sample, edition)
        changes = _changes(sample, fields | {"capability": capability})
    for name in FIELDS:
        setattr(sample, name, fields[name])
    sample.capability = capability
    try:
        with transaction.atomic():
            sample.save()
    except IntegrityError:
        raise BadInput(f"This benchmark already has a sample {sample.key!r}; choose another key.") from None
    pictures_changed = _set_pictures(sample, pictures)
    criteria_changes = bank.criteria.edit(user=by, sample=sample, rows=criteria)
    if not fresh:
        changes |= _changes_beside(pictures_changed, criteria_changes)
        if not changes:
            return sample
    if sample.status == Sample.Status.DRAFT:
        sample.status_reason = ""  # this change addresses it; the request stays in the history
    sample.quality_hints = _hints(sample, criteria, near=bool(pictures_changed))
    _save_revision(sample, by=by, changes=changes, note=note or ("made" if fresh else ""))
    bank.criteria.note_closed(Sample.objects.filter(pk=sample.pk))
    requested = SampleReview.objects.filter(sample=sample, verdict=SampleReview.Verdict.REVISE, revised_at=None)
    requested.update(revised_at=timezone.now())
    return sample


ANSWER = ("answer", "answer_key")  # key and kind of the criterion that is the right option


@transaction.atomic
def change_sample(*, by: User, sample: Sample, values: dict[str, Any], note: str) -> Sample:
    """Change some of ``FIELDS``, the capability and the status; pictures and criteria stay as they are. Reads the
    criteria, which is logged. Raises Stale, BadInput.
    """
    if status := values.get("status"):
        change_many(by=by, samples=Sample.objects.filter(pk=sample.pk), values={"status": status}, note=note)
        sample = Sample.objects.select_related("benchmark", "capability").get(pk=sample.pk)
    texts = bank.criteria.for_staff(user=by, samples=[sample], how="editor").get(sample.pk, [])
    fields = {name: values.get(name, getattr(sample, name)) for name in FIELDS}
    answer = next((text.text for text in texts if (text.key, text.kind) == ANSWER), "")
    if answer and fields["options"] and answer not in fields["options"]:
        raise BadInput("The answer key is none of these options.", "options")
    kept = ("key", "kind", "category", "weight", "shown_to", "text")
    return save_sample(
        by=by,
        benchmark=sample.benchmark,
        sample=sample,
        edition=sample.edition,
        fields=fields,
        capability=values.get("capability", sample.capability),
        pictures=[Picture(each.pk, None, each.description, each.objects_found) for each in sample.images.all()],
        criteria=[picked(text, kept) for text in texts],
        note=note,
    )


def _save_revision(sample: Sample, *, by: User | None, changes: dict[str, list[Any]], note: str) -> None:
    """Save a changed sample as its next edition. Call it in a transaction that has locked the sample's row."""
    sample.edition += 1
    sample.save()
    SampleRevision.objects.create(sample=sample, edition=sample.edition, by=by, changes=changes, note=note)


def _who_was_faster(sample: Sample) -> str:
    last = sample.revisions.select_related("by").first()
    who = str(last.by) if last and last.by else "Somebody"
    return (
        f"{who} changed this sample while you were editing. Your text is not lost; it is below. "
        "See what changed, then save again to replace it with yours."
    )


def _changes(sample: Sample, values: Mapping[str, Any]) -> dict[str, list[Any]]:
    """{field: [old, new]} of those fields that these values change."""
    changes = {}
    for name, new in values.items():
        old = getattr(sample, name)
        if name == "capability":
            old, new = (node.path if node else "" for node in (old, new))
        if old != new:
            changes[name] = [old, new]
    return changes


def _summary(picture: SampleImage) -> dict[str, Any]:
    """A picture in a sample's history."""
    return {"sha256": picture.sha256, "description": picture.description, "objects": picture.objects_found}


def _file_of(picture: images.Stored) -> dict[str, Any]:
    """The columns of a picture that say which file it is."""
    return picked(picture, ("sha256", "original_sha256", "kind", "width", "height", "phash"))


def _set_pictures(sample: Sample, submitted: Sequence[Picture]) -> list[Any]:
    """Replace the sample's pictures; returns [old, new] if something changed, else []."""
    existing: dict[int | None, SampleImage] = {picture.pk: picture for picture in sample.images.all()}
    old = [_summary(picture) for picture in existing.values()]
    final = [_picture_row(sample, picture, existing) for picture in submitted]
    new = [_summary(row) for row in final]
    if old == new:
        return []
    kept_ids = {row.pk for row in final if row.pk}
    sample.images.exclude(pk__in=kept_ids).delete()
    # Positions are unique: move all out of the way first.
    sample.images.update(position=F("position") + 1000)
    for position, row in enumerate(final):
        row.position = position
        row.save()
    return [old, new]


def _changes_beside(pictures: list[Any], criteria: Sequence[str]) -> dict[str, list[Any]]:
    """Changes of a sample beside its own columns, as its history has them."""
    changes = {}
    if pictures:
        changes["pictures"] = pictures
    if criteria:
        changes["criteria"] = ["", ", ".join(criteria)]
    return changes


def _picture_row(sample: Sample, picture: Picture, existing: Mapping[int | None, SampleImage]) -> SampleImage:
    """The row that holds a submitted picture, with its description, not yet saved. Raises Stale."""
    if picture.stored is not None:
        row = SampleImage(sample=sample, **_file_of(picture.stored))
    elif picture.pk in existing:
        row = existing[picture.pk]
    else:
        raise Stale("A picture of this sample was removed while you were editing. Check it, then save again.")
    if row.description != picture.description:
        row.described_by = ""  # now written by the editor
    row.description, row.objects_found = picture.description, picture.objects_found
    return row


def _hints(sample: Sample, criteria: Sequence[dict[str, Any]], *, near: bool) -> int:
    pictures = list(sample.images.all())
    mask = quality.hints_for(
        shown=(sample.instruction, sample.hint),
        options=sample.options,
        sizes=[(picture.width, picture.height) for picture in pictures],
        absent=bool(sample.absent_images),
        criteria=[(row["kind"], row["text"]) for row in criteria],
    )
    bit = quality.BY_NAME["duplicate"].bit
    if not near:
        return mask | (sample.quality_hints & bit)
    twins = quality.lookalikes(sample)
    if twins:
        Sample.objects.filter(pk__in=twins).update(quality_hints=F("quality_hints").bitor(bit))
    return mask | (bit if twins else 0)


def _check_bulk(values: Mapping[str, Any], note: str) -> None:
    unknown = set(values) - set(BULK)
    if unknown:
        raise ValueError(f"not for bulk editing: {sorted(unknown)}")
    if not values:
        raise BadInput("Choose what to change.")
    if values.get("status") == Sample.Status.REJECTED and not note.strip():
        raise BadInput("Say why the samples are rejected.")


def change_many(*, by: User | None, samples: QuerySet[Sample], values: dict[str, Any], note: str = "") -> int:
    """Set the same values (of ``BULK``) on many samples, with one revision each. Returns how many changed."""
    _check_bulk(values, note)
    changed = 0
    with transaction.atomic():
        rows = samples.order_by("pk").select_related("capability")
        columns = rows.only("pk", "edition", "split", "status", "question_type", "capability__path")
        for page in batched(columns.iterator(chunk_size=2000), 2000):
            revisions = []
            for sample in page:
                changes = _changes(sample, values)
                if changes:
                    revisions.append(
                        SampleRevision(sample=sample, edition=sample.edition + 1, by=by, changes=changes, note=note)
                    )
            reason = {"status_reason": note} if "status" in values else {}
            ids = [revision.sample_id for revision in revisions]
            for batch in batched(ids, 500):
                Sample.objects.filter(pk__in=batch).update(**values, **reason, edition=F("edition") + 1)
                if "split" in values:
                    bank.criteria.note_closed(Sample.objects.filter(pk__in=batch))
            SampleRevision.objects.bulk_create(revisions, batch_size=500)
            changed += len(revisions)
    return changed


def set_status(*, by: User | None, sample: Sample, status: str, reason: str = "") -> None:
    """Change a sample's status, with a revision. Call it in a transaction that has locked the sample's row."""
    changes = {"status": [sample.status, status]}
    sample.status, sample.status_reason = status, reason
    _save_revision(sample, by=by, changes=changes, note=reason)


@transaction.atomic
def bring_picture(*, sample: int, position: int, picture: images.Stored, note: str) -> None:
    """Store a picture that the sample knew by its address only, where it is missing still."""
    row = Sample.objects.select_for_update().get(pk=sample)
    absent = next((image for image in row.absent_images if image["position"] == position), None)
    if absent is None or row.images.filter(position=position).exists():
        return
    old = [_summary(image) for image in row.images.all()]
    SampleImage.objects.create(
        sample=row,
        position=position,
        source_url=absent.get("url", ""),
        description=absent.get("description", ""),
        objects_found=absent.get("objects", []),
        **_file_of(picture),
    )
    row.absent_images = [image for image in row.absent_images if image is not absent]
    new = [_summary(image) for image in row.images.all()]
    _save_revision(row, by=None, changes={"pictures": [old, new]}, note=note)


def describe(*, texts: Mapping[tuple[int, int], str], origin: str, by: User | None, replace: bool = False) -> int:
    """Store descriptions by (sample id, picture position); returns how many.

    ``origin`` says who wrote them. Pictures that have a description keep it unless ``replace``. Each change raises its
    sample's edition and is recorded.
    """
    stripped = {place: text.strip() for place, text in texts.items()}
    return _fill_pictures(
        stripped, column="description", note=f"Described by {origin}", by=by, replace=replace, origin=origin
    )


def list_objects(*, objects: Mapping[tuple[int, int], list[str]], origin: str, by: User | None, replace: bool) -> int:
    """Store lists of objects by (sample id, picture position), as ``describe`` does descriptions; returns how many."""
    return _fill_pictures(objects, column="objects_found", note=f"Objects listed by {origin}", by=by, replace=replace)


@transaction.atomic
def _fill_pictures(
    values: Mapping[tuple[int, int], Any], *, column: str, note: str, by: User | None, replace: bool, origin: str = ""
) -> int:
    rows = SampleImage.objects.select_for_update().filter(sample__in={sample for sample, _ in values})
    changed: list[SampleImage] = []
    old: dict[int, list[dict[str, Any]]] = defaultdict(list)
    new: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for image in rows.order_by("sample_id", "position"):
        value, before = values.get((image.sample_id, image.position)), getattr(image, column)
        old[image.sample_id].append(_summary(image))
        if value and value != before and (replace or not before):
            setattr(image, column, value)
            image.described_by = origin or image.described_by
            changed.append(image)
        new[image.sample_id].append(_summary(image))
    SampleImage.objects.bulk_update(changed, [column, "described_by"], batch_size=200)
    samples = {image.sample_id for image in changed}
    Sample.objects.filter(pk__in=samples).update(edition=F("edition") + 1)
    editions = dict(Sample.objects.filter(pk__in=samples).values_list("pk", "edition"))
    SampleRevision.objects.bulk_create(
        SampleRevision(
            sample_id=sample,
            edition=editions[sample],
            by=by,
            changes={"pictures": [old[sample], new[sample]]},
            note=note,
        )
        for sample in sorted(samples)
    )
    return len(changed)
