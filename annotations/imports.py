"""Labels from files: into a closed campaign, by annotators who need no account."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils import timezone

from annotations.models import (
    Annotator,
    Assignment,
    Campaign,
    CampaignItem,
    Label,
    LabelRevision,
    Membership,
    new_pseudonym,
)
from bank.formats.reading import Row
from bank.formats.records import LabelRecord
from bank.imports import BadInput, Report, chunks
from bank.imports.items import Found, Resolver, Spec, describe, ensure, foreseen
from bank.imports.scene import Scene
from bank.imports.seen import Seen
from bank.models.verdict import COLUMNS, turned

DEFAULT_CAMPAIGN = "imported"
Resolved = tuple[Spec, Found, LabelRecord, str]


class Labels:
    """Takes label records of the scene's benchmark.

    ``scene.campaign`` takes all rows; without it each goes where it says, else to ``imported``.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene, self.now = scene, timezone.now()
        self.resolver = Resolver(scene)
        self.seen = Seen()
        self.campaigns = {
            campaign.name: campaign for campaign in Campaign.objects.filter(imported=True).select_related("benchmark")
        }
        self.taken_names = set(Campaign.objects.filter(imported=False).values_list("name", flat=True))
        self.annotators = {a.name: a for a in Annotator.objects.filter(origin=scene.slug)}
        self.coming: dict[str, set[str]] = defaultdict(set)

    def check(self, rows: list[Row], report: Report) -> list[LabelRecord]:
        resolved = self.resolver.specs(rows, report)
        found, new_items = foreseen([spec for _, spec in resolved], self.scene)
        report.made["items"] += new_items
        stored = self._stored(found.values())
        names = [(self._campaign_name(row.data), spec.content_hash, row.data.annotator) for row, spec in resolved]
        taken = self.seen.claim(names, [row.where for row, _ in resolved])
        fresh: list[LabelRecord] = []
        for number, (row, spec) in enumerate(resolved):
            record: LabelRecord = row.data
            name = names[number][0]
            if number in taken:
                reason = f"a label of {record.annotator!r} on this item stands already at {taken[number]}"
                report.refuse(row.where, "annotator", reason)
                continue
            item = found[spec.content_hash]
            old = stored.get((name, item.pk, record.annotator))
            if old is None:
                if fault := self._fault(name):
                    report.refuse(row.where, "campaign", fault)
                else:
                    fresh.append(record)
            elif all(getattr(old, c) == v for c, v in self._columns(spec, item, record).items() if c in COLUMNS):
                report.unchanged += 1
            else:
                report.refuse(row.where, "choice", "another verdict is stored for this label")
        self._count(report, "campaigns", {self._campaign_name(record) for record in fresh} - self.campaigns.keys())
        self._count(report, "annotators", {record.annotator for record in fresh} - self.annotators.keys())
        report.made["labels"] += len(fresh)
        return fresh

    def write(self, batch: list[LabelRecord]) -> None:
        rows = self.resolver.written(batch)
        found, _ = ensure([spec for _, spec in rows])
        self._write([(spec, found[spec.content_hash], record, self._campaign_name(record)) for record, spec in rows])

    def _campaign_name(self, record: LabelRecord) -> str:
        if self.scene.campaign or record.campaign:
            return self.scene.campaign or record.campaign
        default = self.campaigns.get(DEFAULT_CAMPAIGN)
        # Names are unique: the second benchmark's imported labels get the benchmark's name beside it.
        taken = DEFAULT_CAMPAIGN in self.taken_names or (default and default.benchmark != self.scene.benchmark)
        return f"{DEFAULT_CAMPAIGN} ({self.scene.slug})" if taken else DEFAULT_CAMPAIGN

    def _fault(self, name: str) -> str:
        if name in self.taken_names:
            return f"{name!r} is a campaign of people here; name another with --campaign"
        campaign = self.campaigns.get(name)
        if campaign is not None and campaign.benchmark != self.scene.benchmark:
            return f"{name!r} belongs to {campaign.benchmark}; name another with --campaign"
        return ""

    def _count(self, report: Report, noun: str, names: set[str]) -> None:
        fresh = names - self.coming[noun]
        self.coming[noun] |= fresh
        report.made[noun] += len(fresh)

    def _stored(self, items: Iterable[Found]) -> dict[tuple[str, int, str], Label]:
        stored = {}
        for ids in chunks(item.pk for item in items):
            found = Label.objects.filter(item__in=ids)
            for label in found.select_related("campaign", "annotator"):
                stored[(label.campaign.name, label.item_id, label.annotator.name)] = label
        return stored

    def _columns(self, spec: Spec, item: Found, record: LabelRecord) -> dict[str, Any]:
        return turned(record.columns(), order=item.order_of(spec.response_ids))

    def _write(self, fresh: list[Resolved]) -> None:
        for _, _, record, name in fresh:
            if name not in self.campaigns:
                self.campaigns[name] = self._make_campaign(name, record)
        names = sorted({record.annotator for _, _, record, _ in fresh} - set(self.annotators))
        made = Annotator.objects.bulk_create(
            [Annotator(name=name, origin=self.scene.slug, pseudonym=new_pseudonym()) for name in names]
        )
        self.annotators |= {annotator.name: annotator for annotator in made}
        for name in {name for *_, name in fresh}:
            self._write_campaign(self.campaigns[name], [row for row in fresh if row[3] == name])

    def _write_campaign(self, campaign: Campaign, rows: list[Resolved]) -> None:
        ids = list(dict.fromkeys(item.pk for _, item, _, _ in rows))
        start = campaign.campaign_items.count()
        CampaignItem.objects.bulk_create(
            [CampaignItem(campaign=campaign, item_id=pk, position=start + n) for n, pk in enumerate(ids)],
            ignore_conflicts=True,
            batch_size=1000,
        )
        Membership.objects.bulk_create(
            [
                Membership(campaign=campaign, annotator=self.annotators[name])
                for name in dict.fromkeys(record.annotator for _, _, record, _ in rows)
            ],
            ignore_conflicts=True,
        )
        places = {
            place.item_id: place
            for chunk in chunks(ids)
            for place in CampaignItem.objects.filter(campaign=campaign, item__in=chunk)
        }
        assignments = []
        for spec, item, record, _ in rows:
            place, at = places[item.pk], record.at or self.now
            assignments.append(
                Assignment(
                    campaign_item=place,
                    annotator=self.annotators[record.annotator],
                    order=describe(item.order_of(spec.response_ids)) or "0",
                    state=Assignment.State.SUBMITTED,
                    slot=place.taken,
                    leased_at=at,
                    lease_until=at,
                )
            )
            place.taken += 1
        Assignment.objects.bulk_create(assignments, batch_size=1000)
        Label.objects.bulk_create(
            [self._label(campaign, assignment, row) for assignment, row in zip(assignments, rows, strict=True)],
            batch_size=500,
        )
        LabelRevision.objects.bulk_create(
            [
                revision
                for assignment, row in zip(assignments, rows, strict=True)
                for revision in self._revisions(assignment, row)
            ],
            batch_size=500,
        )
        CampaignItem.objects.bulk_update(places.values(), ["taken"], batch_size=400)
        most = max(place.taken for place in places.values())
        if most > campaign.overlap:
            campaign.overlap = most
            campaign.save(update_fields=["overlap"])

    def _label(self, campaign: Campaign, assignment: Assignment, row: Resolved) -> Label:
        spec, item, record, _ = row
        at: datetime = record.at or self.now
        return Label(
            assignment=assignment,
            campaign=campaign,
            item_id=item.pk,
            annotator=assignment.annotator,
            seconds=record.seconds,
            comment=record.comment,
            flags=record.flags,
            created_at=at,
            changed_at=at,
            **self._columns(spec, item, record),
        )

    def _revisions(self, assignment: Assignment, row: Resolved) -> list[LabelRevision]:
        spec, item, record, _ = row
        order = item.order_of(spec.response_ids)
        return [
            LabelRevision(
                label=assignment.label,
                verdict={
                    name: value
                    for name, value in turned(revision.columns(), order=order).items()
                    if value not in (None, "")
                },
                seconds=revision.seconds,
                comment=revision.comment,
                flags=revision.flags,
                by=assignment.annotator,
                given_at=revision.at,
                replaced_at=revision.until,
            )
            for revision in record.earlier()
        ]

    def _make_campaign(self, name: str, record: LabelRecord) -> Campaign:
        if not name.strip():
            raise BadInput("A campaign needs a name.")
        return Campaign.objects.create(
            name=name,
            benchmark=self.scene.open(),
            protocol=record.protocol or record.kind,
            state=Campaign.State.CLOSED,
            imported=True,
        )
