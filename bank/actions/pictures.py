"""Descriptions of pictures, many at once."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import F

from accounts.models import User
from bank.actions.samples import told
from bank.models import Sample, SampleImage, SampleRevision


@transaction.atomic
def describe(*, texts: Mapping[tuple[int, int], str], origin: str, by: User | None, replace: bool = False) -> int:
    """Store descriptions by (sample id, position of the picture); returns how many.

    ``origin`` says who wrote them. A picture that is described already keeps its text unless ``replace``. Each change
    raises its sample's edition and is kept.
    """
    rows = SampleImage.objects.select_for_update().filter(sample__in={sample for sample, _ in texts})
    changed: list[SampleImage] = []
    old: dict[int, list[dict[str, Any]]] = defaultdict(list)
    new: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for image in rows.order_by("sample_id", "position"):
        text = texts.get((image.sample_id, image.position), "").strip()
        old[image.sample_id].append(told(image))
        if text and text != image.description and (replace or not image.description):
            image.description, image.described_by = text, origin
            changed.append(image)
        new[image.sample_id].append(told(image))
    SampleImage.objects.bulk_update(changed, ["description", "described_by"], batch_size=200)
    samples = {image.sample_id for image in changed}
    Sample.objects.filter(pk__in=samples).update(edition=F("edition") + 1)
    editions = dict(Sample.objects.filter(pk__in=samples).values_list("pk", "edition"))
    SampleRevision.objects.bulk_create(
        SampleRevision(
            sample_id=sample,
            edition=editions[sample],
            by=by,
            changes={"pictures": [old[sample], new[sample]]},
            note=f"Described by {origin}",
        )
        for sample in sorted(samples)
    )
    return len(changed)
