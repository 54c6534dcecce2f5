"""Labels from files, stored in a closed campaign, by annotators who need no account."""

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from django.db.models import Model
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
from bank.database import bulk, chunks
from bank.errors import BadInput
from bank.intake.formats.reading import Row
from bank.intake.formats.records import LabelRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.items import PendingItems, Place, Resolver, describe
from bank.intake.imports.name_index import SeenNames
from bank.models.verdict import COLUMNS, turned
from bank.samples.items import StoredItem

DEFAULT_CAMPAIGN = "imported"

OWN = ("seconds", "comment", "flags")


class NewLabel(NamedTuple):
    """A label to create: its columns and those of its revisions."""

    annotator_name: str
    at: datetime
    order: str  # as it was presented
    columns: dict[str, Any]
    revisions: list[dict[str, Any]]


Batch = list[tuple[str, Place, str, NewLabel]]  # the campaign, the item, the campaign's protocol if it is new


class LabelImporter:
    """Imports label records of the context's benchmark.

    All rows go to ``context.campaign`` if it is set; otherwise each goes to the campaign it names, or to ``imported``.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.now = context, timezone.now()
        self.resolver, self.items = Resolver(context), PendingItems(context)
        self.seen = SeenNames()
        self.campaigns = {
            campaign.name: campaign for campaign in Campaign.objects.filter(imported=True).select_related("benchmark")
        }
        self.taken_names = set(Campaign.objects.filter(imported=False).values_list("name", flat=True))
        self.annotators = {a.name: a for a in Annotator.objects.filter(origin=context.slug)}
        self.pending_names: dict[str, set[str]] = defaultdict(set)
        self.pending_labels = self.pending_revisions = 0
        self.positions: dict[int, int] = {}  # the next free one, by campaign
        self.taken: dict[int, int] = {}  # slots of campaign items that were there before
        self.most: dict[int, int] = {}  # labels of one item, by campaign

    def check(self, rows: list[Row], report: Report) -> Batch:
        resolved = self.resolver.specs(rows, report)
        found, new_items = self.items.foreseen([spec for _, spec in resolved])
        report.made["items"] += new_items
        stored = self._stored(found.values())
        names = [(self._campaign_name(row.data), spec.content_hash, row.data.annotator) for row, spec in resolved]
        taken = self.seen.claim(names, [row.where for row, _ in resolved])
        fresh: Batch = []
        for number, (row, spec) in enumerate(resolved):
            record: LabelRecord = row.data
            name = names[number][0]
            if number in taken:
                reason = f"{taken[number]} already has a label of {record.annotator!r} on this item"
                report.refuse(row.where, "annotator", reason)
                continue
            item = found[spec.content_hash]
            old = stored.get((name, item.pk, record.annotator))
            order = item.order_of(spec.response_ids)
            columns = turned(record.columns(), order=order)
            if old is None:
                if fault := self._fault(name):
                    report.refuse(row.where, "campaign", fault)
                    continue
                label = NewLabel(
                    annotator_name=record.annotator,
                    at=record.at or self.now,
                    order=describe(order) or "0",
                    columns=columns | {name: getattr(record, name) for name in OWN},
                    revisions=_revisions(record, order),
                )
                place = (spec.kind, spec.sample_id, item.response_ids)
                fresh.append((name, place, record.protocol or record.kind, label))
            elif all(getattr(old, column) == columns[column] for column in COLUMNS):
                report.unchanged += 1
            else:
                report.refuse(row.where, "choice", "a different verdict is stored for this label")
        self._count(report, "campaigns", {name for name, *_ in fresh} - self.campaigns.keys())
        self._count(report, "annotators", {label.annotator_name for *_, label in fresh} - self.annotators.keys())
        report.made["labels"] += len(fresh)
        self.pending_labels += len(fresh)
        self.pending_revisions += sum(len(label.revisions) for *_, label in fresh)
        return fresh

    def expected_rows(self) -> dict[type[Model], int]:
        labels = self.pending_labels
        return self.items.rows() | {
            Annotator: len(self.pending_names["annotators"]),
            Campaign: len(self.pending_names["campaigns"]),
            Membership: labels,
            CampaignItem: labels,
            Assignment: labels,
            Label: labels,
            LabelRevision: self.pending_revisions,
        }

    def write(self, batch: Batch) -> None:
        items = self.items.written([place for _, place, *_ in batch])
        for name, _, protocol, *_ in batch:
            if name not in self.campaigns:
                self.campaigns[name] = self._make_campaign(name, protocol)
        self._make_annotators({row[3].annotator_name for row in batch})
        for name in dict.fromkeys(row[0] for row in batch):
            rows = [(item, row[3]) for item, row in zip(items, batch, strict=True) if row[0] == name]
            self._write_campaign(self.campaigns[name], rows)

    def finish(self) -> None:
        """Update the slots of items that existed before, and the overlap of the campaigns."""
        bulk.update_column(CampaignItem, "taken", self.taken)
        for campaign, most in self.most.items():
            Campaign.objects.filter(pk=campaign, overlap__lt=most).update(overlap=most)

    def _campaign_name(self, record: LabelRecord) -> str:
        if self.context.campaign or record.campaign:
            return self.context.campaign or record.campaign
        default = self.campaigns.get(DEFAULT_CAMPAIGN)
        # Campaign names are unique, so for a second benchmark the slug is added.
        taken = DEFAULT_CAMPAIGN in self.taken_names or (default and default.benchmark != self.context.benchmark)
        return f"{DEFAULT_CAMPAIGN} ({self.context.slug})" if taken else DEFAULT_CAMPAIGN

    def _fault(self, name: str) -> str:
        if name in self.taken_names:
            return f"{name!r} is a campaign with annotators here; choose another with --campaign"
        campaign = self.campaigns.get(name)
        if campaign is not None and campaign.benchmark != self.context.benchmark:
            return f"{name!r} belongs to {campaign.benchmark}; choose another with --campaign"
        return ""

    def _count(self, report: Report, noun: str, names: set[str]) -> None:
        fresh = names - self.pending_names[noun]
        self.pending_names[noun] |= fresh
        report.made[noun] += len(fresh)

    def _stored(self, items: Iterable[StoredItem]) -> dict[tuple[str, int, str], Label]:
        stored = {}
        for ids in chunks(item.pk for item in items if item.pk):
            labels = Label.objects.filter(item__in=ids)
            for label in labels.select_related("campaign", "annotator"):
                stored[(label.campaign.name, label.item_id, label.annotator.name)] = label
        return stored

    def _make_annotators(self, names: set[str]) -> None:
        made = [
            Annotator(name=name, origin=self.context.slug, pseudonym=new_pseudonym())
            for name in sorted(names - self.annotators.keys())
        ]
        self.context.writer.put_objects(made)
        self.annotators |= {annotator.name: annotator for annotator in made}

    def _write_campaign(self, campaign: Campaign, rows: list[tuple[int, "NewLabel"]]) -> None:
        writer = self.context.writer
        campaign_items = self._campaign_items(campaign, list(dict.fromkeys(item for item, _ in rows)))
        annotators = {self.annotators[label.annotator_name].pk for _, label in rows}
        joined = set(Membership.objects.filter(campaign=campaign).values_list("annotator", flat=True))
        writer.put_objects([Membership(campaign=campaign, annotator_id=pk) for pk in sorted(annotators - joined)])
        before = {item: campaign_item.taken for item, campaign_item in campaign_items.items()}
        labels = [label for _, label in rows]
        slots, at = [], [label.at for label in labels]
        for item, _ in rows:
            slots.append(campaign_items[item].taken)
            campaign_items[item].taken += 1
        own: dict[str, bulk.Column] = {"annotator_id": [self.annotators[row.annotator_name].pk for row in labels]}
        values: dict[str, bulk.Column] = {
            "campaign_item_id": [campaign_items[item].pk for item, _ in rows],
            "order": [row.order for row in labels],
            "state": [Assignment.State.SUBMITTED.value] * len(rows),
            "slot": slots,
            "leased_at": at,
            "lease_until": at,
        }
        assignments = writer.put_values(Assignment, own | values)
        values = {
            "assignment_id": assignments,
            "campaign_id": [campaign.pk] * len(rows),
            "item_id": [item for item, _ in rows],
            "created_at": at,
            "changed_at": at,
        }
        columns = {name: [row.columns[name] for row in labels] for name in labels[0].columns}
        label_ids = writer.put_values(Label, own | values | columns)
        writer.put_objects(
            [
                LabelRevision(label_id=pk, by_id=by, **revision)
                for pk, by, row in zip(label_ids, own["annotator_id"], labels, strict=True)
                for revision in row.revisions
            ]
        )
        changed = [
            campaign_item for item, campaign_item in campaign_items.items() if campaign_item.taken != before[item]
        ]
        self.most[campaign.pk] = max(
            [self.most.get(campaign.pk, 0), *(campaign_item.taken for campaign_item in changed)]
        )
        own_items = [campaign_item for campaign_item in changed if writer.owns(campaign_item)]
        self.taken |= {
            campaign_item.pk: campaign_item.taken for campaign_item in changed if not writer.owns(campaign_item)
        }
        writer.do(
            partial(
                bulk.update_column,
                CampaignItem,
                "taken",
                {campaign_item.pk: campaign_item.taken for campaign_item in own_items},
            )
        )

    def _campaign_items(self, campaign: Campaign, items: list[int]) -> dict[int, CampaignItem]:
        """The campaign's rows for these items, created if missing, with their current number of labels."""
        if campaign.pk not in self.positions:
            self.positions[campaign.pk] = campaign.campaign_items.count()
        campaign_items: dict[int, CampaignItem] = {}
        for batch in chunks(items):
            for campaign_item in CampaignItem.objects.filter(campaign=campaign, item__in=batch, reviewed=None):
                campaign_item.taken = self.taken.get(campaign_item.pk, campaign_item.taken)
                campaign_items[campaign_item.item_id] = campaign_item
        start = self.positions[campaign.pk]
        fresh = [item for item in items if item not in campaign_items]
        made = [CampaignItem(campaign=campaign, item_id=pk, position=start + n) for n, pk in enumerate(fresh)]
        self.positions[campaign.pk] += len(made)
        self.context.writer.put_objects(made)
        return campaign_items | {campaign_item.item_id: campaign_item for campaign_item in made}

    def _make_campaign(self, name: str, protocol: str) -> Campaign:
        if not name.strip():
            raise BadInput("A campaign needs a name.")
        return self.context.writer.make(
            Campaign(
                name=name,
                benchmark=self.context.open(),
                protocol=protocol,
                state=Campaign.State.CLOSED,
                imported=True,
            )
        )


def _revisions(record: LabelRecord, order: list[int]) -> list[dict[str, Any]]:
    return [
        {
            "verdict": {
                name: value
                for name, value in turned(revision.columns(), order=order).items()
                if value not in (None, "")
            },
            "seconds": revision.seconds,
            "comment": revision.comment,
            "flags": revision.flags,
            "given_at": revision.at,
            "replaced_at": revision.until,
        }
        for revision in record.earlier()
    ]
