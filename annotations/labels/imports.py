"""Labels from files, stored in a closed campaign, by annotators who need no account."""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from django.db.models import Model
from django.utils import timezone

from annotations import ballots
from annotations.labels.provenance import shown_by
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
from bank.intake.formats.records import ComparedRecord, Ref, Revision
from bank.intake.formats.seen import NameIndex, SeenNames
from bank.intake.imports import Report
from bank.intake.imports.context import FIRST_PENDING, ImportContext
from bank.intake.imports.items import Block, NewItems, VerdictItems, block_of, describe
from bank.intake.imports.provenance import Closing
from bank.models.verdict import COLUMNS, LABEL, in_canonical_order, is_of_categories, turned
from bank.samples.items import ItemSpec, StoredItem
from judging.models import Judgment
from judging.protocols import settings_hash

OWN = ("seconds", "comment", "flags", "changed_late")
Two = tuple[int | None, int | None]  # judgments whose analyses are compared
NEITHER: Two = (None, None)
Place = tuple[str, int, Two]  # a campaign's name, an item's number and what of it is compared


@dataclass(frozen=True, slots=True)
class Batch:
    """Labels to store, by column. Items by number, see VerdictItems; campaign items by theirs, see ``_places``."""

    protocols: dict[str, str]  # of the batch's campaigns, for those that are new
    new_items: NewItems
    simulated: set[str]  # annotators that a row says are
    members: list[tuple[str, str]]  # new ones: campaign, annotator
    new_places: list[tuple[str, int, Two, int]]  # new campaign items: campaign, item, what is compared, position
    campaigns: bulk.Column
    annotators: bulk.Column
    items: list[int]
    places: list[int]
    assignments: dict[str, bulk.Column]  # as the database takes them
    labels: dict[str, bulk.Column]
    revisions: list[tuple[int, dict[str, Any]]]  # the row of the label, and what it was


class LabelImporter:
    """Imports label records of the context's benchmark.

    All rows go to ``context.campaign`` if it is set; otherwise each goes to the campaign it names, or to ``imported``.
    Some protocols have a campaign of their own, see ``ballots.alone``. Labels that name nobody are by
    ``context.annotator``.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.now = context, timezone.now()
        self.items = VerdictItems(context)
        self.seen = SeenNames()
        self.campaigns = {
            campaign.name: campaign for campaign in Campaign.objects.filter(imported=True).select_related("benchmark")
        }
        self.alone = {name: ballots.alone(campaign.protocol) for name, campaign in self.campaigns.items()}
        self.taken_names = set(Campaign.objects.filter(imported=False).values_list("name", flat=True))
        self.annotators = {a.name: a.pk for a in Annotator.objects.filter(origin=context.slug)}
        self.pending_names: dict[str, set[str]] = defaultdict(set)
        self.pending_labels = self.pending_revisions = self.pending_members = 0
        self.members: dict[str, set[str]] = {}  # annotators of each campaign, pending ones included
        self.place_numbers = NameIndex()  # campaign items by Place, as far as they were looked for
        self.slots = array("i")  # taken ones of each pending campaign item
        self.stored_slots: dict[int, int] = {}  # the same of campaign items that were there before, by id
        self.changed: set[int] = set()  # of those, the ones that get labels
        self.positions: dict[str, int] = {}  # the next free one, by campaign
        self.most: dict[str, int] = {}  # labels of one item, by campaign
        self.closing, self.closed_now = Closing(context), set[str]()  # campaigns that the import closes

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        block = self._with_annotator(block_of(rows), report)
        block, specs = self.items.resolved(block, report)
        if not specs:
            return None
        stored_items = self.items.find(block, specs)
        block, specs = self._with_compared(block, specs, stored_items, report)
        if not specs:
            return None
        block = self._without_stored(self._about_items(block, specs, stored_items), report)
        columns = block.columns
        campaigns, annotators = columns["campaign"], columns["annotator"]
        numbers, new_items = self.items.announce(columns["spec"], stored_items, report)
        self._count(report, "campaigns", set(campaigns) - self.campaigns.keys())
        self._count(report, "annotators", set(annotators) - self.annotators.keys())
        report.made["labels"] += len(block)
        report.closing += self.closing.count(columns["spec"])
        report.closing_stored += sum(map(self._close, dict.fromkeys(campaigns)))
        self.pending_labels += len(block)
        members = self._new_members(dict.fromkeys(zip(campaigns, annotators, strict=True)))
        places, new_places = self._places(list(zip(campaigns, numbers, columns["two"], strict=True)))
        slots = self._taken_slots(campaigns, places)
        revisions = [(row, revision) for row, earlier in enumerate(columns["revisions"]) for revision in earlier]
        self.pending_revisions += len(revisions)
        if not (self.context.writes and len(block)):
            return None
        at = [moment or self.now for moment in columns["at"]]
        assignments: dict[str, bulk.Column] = {
            "order": columns["shown"],
            "state": [Assignment.State.SUBMITTED.value] * len(at),
            "slot": slots,
            "leased_at": at,
            "lease_until": at,
        }
        labels = {"created_at": at, "changed_at": at} | {name: columns[name] for name in (*COLUMNS, *OWN)}
        return Batch(
            protocols=_protocols(columns),
            new_items=new_items,
            simulated=set(compress(annotators, columns["simulated"])),
            members=members,
            new_places=new_places,
            campaigns=bulk.compact(campaigns),
            annotators=bulk.compact(annotators),
            items=numbers,
            places=places,
            assignments=bulk.prepared(Assignment, assignments),
            labels=bulk.prepared(Label, labels),
            revisions=revisions,
        )

    def _with_compared(
        self, block: Block, specs: list[ItemSpec], stored: Mapping[str, StoredItem], report: Report
    ) -> tuple[Block, list[ItemSpec]]:
        """The rows with ``two``, the judgments whose analyses they compare, in the order of a campaign, and ``back``,
        whether the row names them the other way round. Those whose judgments are not here become problems.
        """
        judgments = self._compared_judgments(block, specs, stored)
        refused = {row for row, two in enumerate(judgments) if two and (0 in two or two[0] == two[1])}
        for row in sorted(refused):
            judges = " and ".join(dict.fromkeys(repr(each.judge) for each in block.columns["compared"][row]))
            reason = f"there are no two such judgments of this item by {judges}; import the judgments first"
            report.refuse(block.places[row], "compared", reason)
        block = Block(block.places, block.columns | _in_campaign_order(judgments))
        if not refused:
            return block, specs
        return block.without(refused), [spec for row, spec in enumerate(specs) if row not in refused]

    def _compared_judgments(
        self, block: Block, specs: list[ItemSpec], stored: Mapping[str, StoredItem]
    ) -> list[tuple[int, ...]]:
        """By row the judgments (ids) that it compares, 0 for one that is not here; () where none are compared."""
        items = [stored[spec.content_hash] for spec in specs]
        keys_by_row = [
            [self._key(each, refs, spec, item) for each in compared]
            for compared, refs, spec, item in zip(
                block.columns["compared"], block.columns["responses"], specs, items, strict=True
            )
        ]
        known = self._judgments({key[0] for keys in keys_by_row for key in keys})
        return [tuple(known.get(key, 0) for key in keys) for keys in keys_by_row]

    def _key(self, named: ComparedRecord, refs: Sequence[Ref], spec: ItemSpec, item: StoredItem) -> tuple[Any, ...]:
        """The key of a judgment: item, judge, protocol, settings, order and repeat."""
        positions = item.order_of(spec.response_ids)
        order = describe(tuple(positions[refs.index(ref)] for ref in named.order))
        return (item.pk, named.judge, named.protocol, settings_hash(named.settings), order, named.repeat)

    def _judgments(self, items: Iterable[int]) -> dict[tuple[Any, ...], int]:
        """The judgments of these items that hold a verdict, by what tells them; the first, where several are alike."""
        columns = ("run__judge__name", "run__protocol", "run__settings_hash", "order", "repeat")
        known: dict[tuple[Any, ...], int] = {}
        for ids in chunks(pk for pk in items if pk > 0):
            judgments = Judgment.objects.filter(item__in=ids, status=Judgment.Status.OK).order_by("pk")
            for pk, *key in judgments.values_list("pk", "item_id", *columns):
                known.setdefault(tuple(key), pk)
        return known

    def _about_items(self, block: Block, specs: Sequence[ItemSpec], stored: Mapping[str, StoredItem]) -> Block:
        """The block with the items, the campaigns and the orders in which answers were shown, and with verdicts and
        their revisions in canonical order.
        """
        items = [stored[spec.content_hash] for spec in specs]
        orders = _orders(block.columns, specs, items)
        columns = block.columns | in_canonical_order(block.columns, orders)
        columns |= {"spec": specs, "item": items, "campaign": self._campaign_names(columns)}
        columns["shown"] = [
            describe(tuple(orders.get(row, range(len(item.response_ids) if two == NEITHER else 2))))
            for row, (item, two) in enumerate(zip(items, columns["two"], strict=True))
        ]
        columns["revisions"] = [
            [_revision(revision, orders.get(row)) for revision in earlier]
            for row, earlier in enumerate(columns["revisions"])
        ]
        return Block(block.places, columns)

    def _without_stored(self, block: Block, report: Report) -> Block:
        """The rows that are new. Rows that are stored already are counted; those that contradict become problems."""
        columns = block.columns
        campaigns, items, annotators = columns["campaign"], columns["item"], columns["annotator"]
        hashes = [spec.content_hash for spec in columns["spec"]]
        taken = self.seen.claim(list(zip(campaigns, hashes, columns["two"], annotators, strict=True)), block.places)
        stored = self._stored(items)
        kept = list(zip(campaigns, map(ballots.alone, columns["protocol"]), strict=True))
        faults = {each: self._fault(*each) for each in dict.fromkeys(kept)}
        left_out = set()
        given = zip(campaigns, items, columns["two"], annotators, strict=True)
        for row, (campaign, item, two, annotator) in enumerate(given):
            old = stored.get((campaign, item.pk, *two, annotator))
            if row in taken:
                reason = f"{taken[row]} already has a label of {annotator!r} on this item"
                report.refuse(block.places[row], "annotator", reason)
            elif old is not None:
                if old == tuple(columns[name][row] for name in COLUMNS):
                    report.unchanged += 1
                else:
                    report.refuse(block.places[row], "choice", "a different verdict is stored for this label")
            elif faults[kept[row]]:
                report.refuse(block.places[row], "campaign", faults[kept[row]])
            else:
                continue
            left_out.add(row)
        return block.without(left_out) if left_out else block

    def _close(self, name: str) -> int:
        """How many stored labels of a campaign close, since these come with them; counted once."""
        campaign = self.campaigns.get(name)
        if self.context.saw_nothing or campaign is None or name in self.closed_now:
            return 0
        self.closed_now.add(name)
        return self.closing.stored(Label.objects.filter(campaign=campaign, excluded=False), held="campaign__held")

    def expected_rows(self) -> dict[type[Model], int]:
        return self.items.expected_rows() | {
            Annotator: len(self.pending_names["annotators"]),
            Campaign: len(self.pending_names["campaigns"]),
            Membership: self.pending_members,
            CampaignItem: len(self.slots),
            Assignment: self.pending_labels,
            Label: self.pending_labels,
            LabelRevision: self.pending_revisions,
        }

    def write(self, batch: Batch) -> None:
        writer = self.context.writer
        for name, protocol in batch.protocols.items():
            if name not in self.campaigns:
                self.campaigns[name] = self._make_campaign(name, protocol)
        campaign_ids = {name: self.campaigns[name].pk for name in batch.protocols}
        self._make_annotators(set(batch.annotators), batch.simulated)
        self.items.write(batch.new_items)
        writer.put_objects(
            [
                Membership(campaign_id=campaign_ids[campaign], annotator_id=self.annotators[annotator])
                for campaign, annotator in batch.members
            ]
        )
        self._write_places(batch.new_places, campaign_ids)
        reserved = writer.reserved(CampaignItem)
        places = [place if place > 0 else reserved[FIRST_PENDING - place] for place in batch.places]
        annotators = [self.annotators[name] for name in batch.annotators]
        campaigns = [campaign_ids[name] for name in batch.campaigns]
        ids, label_ids = writer.ids(Assignment, len(places)), writer.ids(Label, len(places))
        assignments: dict[str, bulk.Column] = {"id": ids, "annotator_id": annotators, "campaign_item_id": places}
        labels: dict[str, bulk.Column] = {"id": label_ids, "assignment_id": ids, "annotator_id": annotators}
        labels |= {"campaign_id": campaigns, "item_id": self.items.ids(batch.items)}
        writer.put(Assignment, bulk.completed(Assignment, assignments | batch.assignments))
        writer.put(Label, bulk.completed(Label, labels | batch.labels))
        writer.put_objects(
            [
                LabelRevision(label_id=label_ids[row], by_id=annotators[row], **revision)
                for row, revision in batch.revisions
            ]
        )

    def finish(self) -> None:
        """Update the slots of items that existed before; of campaigns what people saw, the overlap and categories."""
        bulk.update_column(CampaignItem, "taken", {place: self.stored_slots[place] for place in self.changed})
        self.items.finish()
        closed_now = [self.campaigns[name].pk for name in self.closed_now]
        Campaign.objects.filter(pk__in=closed_now).update(held=self.context.held)
        for name, most in self.most.items():
            Campaign.objects.filter(pk=self.campaigns[name].pk, overlap__lt=most).update(overlap=most)
            if is_of_categories(self.campaigns[name].protocol):
                self._keep_categories(self.campaigns[name])

    def _keep_categories(self, campaign: Campaign) -> None:
        """The campaign's categories are those that somebody gave, unless they are too many for a ballot."""
        names = Label.objects.filter(campaign=campaign).order_by("option").values_list("option", flat=True).distinct()
        try:
            ballot = ballots.get(LABEL).clean_settings({"categories": list(names)})
        except ballots.BadSettings:
            return
        Campaign.objects.filter(pk=campaign.pk).update(ballot=ballot)

    def _with_annotator(self, block: Block, report: Report) -> Block:
        """The rows with an annotator, their own or the import's; the others become problems."""
        named = [name or self.context.annotator for name in block.columns["annotator"]]
        refused = {row for row, name in enumerate(named) if not name}
        for row in sorted(refused):
            report.refuse(block.places[row], "annotator", "is missing; name it with --annotator")
        return Block(block.places, block.columns | {"annotator": named}).without(refused)

    def _campaign_names(self, columns: Mapping[str, Sequence[Any]]) -> list[str]:
        named, protocols = columns["campaign"], columns["protocol"]
        if self.context.campaign:
            return [self.context.campaign] * len(named)
        held = list(map(ballots.alone, protocols))
        free = {words: self._free(f"imported {words}".strip()) for words in set(held)}
        return [name or free[words] for name, words in zip(named, held, strict=True)]

    def _free(self, name: str) -> str:
        """Campaign names are unique, so for a second benchmark the slug is added."""
        campaign = self.campaigns.get(name)
        taken = name in self.taken_names or (campaign and campaign.benchmark != self.context.benchmark)
        return f"{name} ({self.context.slug})" if taken else name

    def _fault(self, name: str, alone: str) -> str:
        if name in self.taken_names:
            return f"{name!r} is a campaign with annotators here; choose another with --campaign"
        campaign = self.campaigns.get(name)
        if campaign is not None and campaign.benchmark != self.context.benchmark:
            return f"{name!r} belongs to {campaign.benchmark}; choose another with --campaign"
        held = self.alone.setdefault(name, alone)
        if held != alone:
            return f"{name!r} holds {held or 'other verdicts'}; {alone or held} need a campaign of their own"
        return ""

    def _count(self, report: Report, noun: str, names: set[str]) -> None:
        fresh = names - self.pending_names[noun]
        self.pending_names[noun] |= fresh
        report.made[noun] += len(fresh)

    def _stored(self, items: Sequence[StoredItem]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
        """The stored verdicts on these items: COLUMNS by campaign, item, what of it is compared, annotator."""
        stored: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        place = "assignment__campaign_item__"
        key = ("campaign__name", "item_id", f"{place}reviewed", f"{place}against", "annotator__name")
        for ids in chunks(item.pk for item in items if item.pk > 0):
            labels = Label.objects.filter(item__in=ids)
            for row in labels.values_list(*key, *COLUMNS):
                stored[row[: len(key)]] = row[len(key) :]
        return stored

    def _new_members(self, wanted: Mapping[tuple[str, str], None]) -> list[tuple[str, str]]:
        """Of these pairs of a campaign and an annotator those that are no members yet; they count as members now."""
        missing = []
        for campaign, annotator in wanted:
            if campaign not in self.members:
                joined = Membership.objects.filter(campaign__name=campaign, annotator__origin=self.context.slug)
                self.members[campaign] = set(joined.values_list("annotator__name", flat=True))
            if annotator not in self.members[campaign]:
                self.members[campaign].add(annotator)
                missing.append((campaign, annotator))
        self.pending_members += len(missing)
        return missing

    def _places(self, wanted: Sequence[Place]) -> tuple[list[int], list[tuple[str, int, Two, int]]]:
        """The number of each campaign item, and those that must be made: campaign, item, what is compared and position.

        A number is the id of a stored campaign item, or negative for one that the import makes (see ImportContext).
        """
        unknown = list(
            dict.fromkeys(
                place for place, number in zip(wanted, self.place_numbers.find(wanted), strict=True) if not number
            )
        )
        stored = self._stored_places(unknown)
        new_places = []
        numbers = []
        for name, item, two in unknown:
            number = stored.get((name, item, two))
            if number is None:
                if name not in self.positions:
                    self.positions[name] = CampaignItem.objects.filter(campaign__name=name).count()
                new_places.append((name, item, two, self.positions[name]))
                self.positions[name] += 1
                number = FIRST_PENDING - len(self.slots)
                self.slots.append(0)
            numbers.append(number)
        self.place_numbers.add(unknown, numbers)
        return self.place_numbers.find(wanted), new_places

    def _stored_places(self, wanted: Sequence[Place]) -> dict[Place, int]:
        stored: dict[Place, int] = {}
        for name in {name for name, item, _ in wanted if item > 0 and name in self.campaigns}:
            rows = CampaignItem.objects.filter(campaign=self.campaigns[name])
            columns = ("pk", "item_id", "taken", "reviewed_id", "against_id")
            for ids in chunks({item for campaign, item, _ in wanted if campaign == name and item > 0}):
                for pk, item, taken, *two in rows.filter(item__in=ids).values_list(*columns):
                    stored[(name, item, (two[0], two[1]))] = pk
                    self.stored_slots[pk] = taken
        return stored

    def _taken_slots(self, campaigns: Sequence[str], places: Sequence[int]) -> list[int]:
        """A slot for each label, the next of its campaign item."""
        slots = []
        for campaign, place in zip(campaigns, places, strict=True):
            if place > 0:
                slot = self.stored_slots[place]
                self.stored_slots[place] = slot + 1
                self.changed.add(place)
            else:
                slot = self.slots[FIRST_PENDING - place]
                self.slots[FIRST_PENDING - place] = slot + 1
            slots.append(slot)
            if slot >= self.most.get(campaign, 0):
                self.most[campaign] = slot + 1
        return slots

    def _write_places(self, new_places: Sequence[tuple[str, int, Two, int]], campaign_ids: Mapping[str, int]) -> None:
        """Make campaign items, with all the slots that this import takes: the check has seen every label."""
        if not new_places:
            return
        names, items, twos, positions = zip(*new_places, strict=True)
        writer = self.context.writer
        ids = writer.ids(CampaignItem, len(names))
        start = ids[0] - writer.reserved(CampaignItem)[0]
        columns: dict[str, bulk.Column] = {
            "id": ids,
            "campaign_id": [campaign_ids[name] for name in names],
            "item_id": self.items.ids(items),
            "reviewed_id": [two[0] for two in twos],
            "against_id": [two[1] for two in twos],
            "position": positions,
            "taken": self.slots[start : start + len(ids)].tolist(),
        }
        writer.put(CampaignItem, bulk.completed(CampaignItem, columns))

    def _make_annotators(self, names: set[str], simulated: set[str]) -> None:
        annotators = [
            Annotator(name=name, origin=self.context.slug, pseudonym=new_pseudonym(), simulated=name in simulated)
            for name in sorted(names - self.annotators.keys())
        ]
        self.context.writer.put_objects(annotators)
        self.annotators |= {annotator.name: annotator.pk for annotator in annotators}

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
                held=self.context.held | shown_by(protocol),
            )
        )


def _revision(revision: Revision, order: list[int] | None) -> dict[str, Any]:
    """An earlier version of a label, as LabelRevision holds it; ``order`` turns it into the item's."""
    verdict = revision.columns() if order is None else turned(revision.columns(), order=order)
    return {
        "verdict": {name: value for name, value in verdict.items() if value not in (None, "")},
        "seconds": revision.seconds,
        "comment": revision.comment,
        "flags": revision.flags,
        "given_at": revision.at,
        "replaced_at": revision.until,
    }


def _in_campaign_order(judgments: Sequence[tuple[int, ...]]) -> dict[str, list[Any]]:
    """The columns ``two`` and ``back`` for judgments as the rows name them."""
    two = [tuple(sorted(each)) or NEITHER for each in judgments]
    return {"two": two, "back": [bool(each) and each[0] > each[-1] for each in judgments]}


def _orders(
    columns: Mapping[str, Sequence[Any]], specs: Sequence[ItemSpec], items: Sequence[StoredItem]
) -> dict[int, list[int]]:
    """The order of a row's answers, or of the analyses that it compares, where it is not the canonical one."""
    orders = {}
    for row, (spec, item, two, back) in enumerate(zip(specs, items, columns["two"], columns["back"], strict=True)):
        if two != NEITHER:
            if back:
                orders[row] = [1, 0]
        elif spec.response_ids != item.response_ids:
            orders[row] = item.order_of(spec.response_ids)
    return orders


def _protocols(columns: Mapping[str, Sequence[Any]]) -> dict[str, str]:
    """The protocol of each campaign: that of its first row."""
    protocols: dict[str, str] = {}
    for campaign, protocol, kind in zip(columns["campaign"], columns["protocol"], columns["kind"], strict=True):
        protocols.setdefault(campaign, protocol or kind)
    return protocols
