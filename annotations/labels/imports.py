"""Labels from files, stored in a closed campaign, by annotators who need no account."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
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
from bank.database import bulk
from bank.errors import BadInput
from bank.intake.formats.reading import Row
from bank.intake.formats.records import ComparedRecord, Ref, Revision
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.items import ITEM, VerdictItems, block_of, describe
from bank.intake.imports.provenance import Closing
from bank.intake.imports.stage import KEY, NUMBER, TEXT, columns_of, seen
from bank.models.verdict import COLUMNS, LABEL, is_of_categories, turned
from judging.models import Judgment
from judging.protocols import settings_hash

STAGED = "staged_label"
OWN = (*COLUMNS, "seconds", "comment", "flags", "changed_late", "created_at", "changed_at")
SWAPPED = [1, 0]
# What tells the labels of a campaign apart: an item, and perhaps two judgments of it whose analyses are compared.
ASKED = ("staged.campaign", "about.k", "staged.reviewed", "staged.against")
OF_STORED = f"""{ITEM} JOIN staged_campaign named ON named.campaign = staged.campaign
    JOIN annotations_label stored ON stored.item_id = item.item
    JOIN annotations_campaign campaign ON campaign.id = stored.campaign_id AND campaign.name = named.name
    JOIN annotations_annotator annotator ON annotator.id = stored.annotator_id AND annotator.name = staged.annotator
    JOIN annotations_assignment assignment ON assignment.id = stored.assignment_id
    JOIN annotations_campaignitem place ON place.id = assignment.campaign_item_id
        AND coalesce(place.reviewed_id, 0) = staged.reviewed AND coalesce(place.against_id, 0) = staged.against"""


class LabelImporter:
    """Imports label records of the context's benchmark.

    All rows go to ``context.campaign`` if it is set; otherwise each goes to the campaign it names, or to ``imported``.
    Some protocols have a campaign of their own, see ``ballots.alone``. Labels that name nobody are by
    ``context.annotator``.

    Staged are: the labels; ``staged_campaign`` and ``staged_annotator``, what they name; ``staged_compared``, the
    judgments whose analyses they compare; ``staged_revision``, what they were before; ``staged_asked``, the campaign
    items that they are on; ``staged_slot``, which of these and which slot of it each label takes.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.stage, self.now = context, context.stage, timezone.now()
        self.items = VerdictItems(context)
        self.stored = {
            campaign.name: campaign for campaign in Campaign.objects.filter(imported=True).select_related("benchmark")
        }
        self.alone = {name: ballots.alone(campaign.protocol) for name, campaign in self.stored.items()}
        self.taken_names = set(Campaign.objects.filter(imported=False).values_list("name", flat=True))
        self.numbers: dict[str, int] = {}  # of campaigns that the file names
        self.protocols: dict[str, str] = {}  # of each campaign that gets labels, that of its first
        self.campaigns: dict[str, Campaign] = {}  # the same, stored or made
        self.simulated: set[str] = set()  # annotators of whom a row says it
        self.new_annotators: list[str] = []
        self.members: list[tuple[str, str]] = []  # new ones: campaign, annotator
        self.closing, self.closed_now = Closing(context), list[str]()  # campaigns that the import closes
        self.rows = self.compared = self.revisions = self.new_places = 0  # so many of each are staged
        make = self.stage.make
        numbers = dict.fromkeys(("place", "i", "campaign", "compares", "reviewed", "against", "back"), NUMBER)
        make(STAGED, n=KEY, **numbers, annotator=TEXT, protocol=TEXT, shown=TEXT, **columns_of(Label, OWN))
        key = {"judge": TEXT, "protocol": TEXT, "settings_hash": TEXT, "order": TEXT, "repeat": NUMBER}
        make("staged_compared", m=KEY, n=NUMBER, second=NUMBER, **key, judgment=NUMBER)
        make("staged_revision", n=KEY, label=NUMBER, revision=TEXT)
        asked = ("campaign", "k", "reviewed", "against", "added", "item", "taken", "position", "number")
        make("staged_asked", p=KEY, **dict.fromkeys(asked, NUMBER))
        make("staged_new_place", n=KEY, p=NUMBER)
        make("staged_slot", n=KEY, p=NUMBER, slot=NUMBER)

    def check(self, rows: list[Row], report: Report) -> None:
        block = block_of(rows)
        named = [name or self.context.annotator for name in block.columns["annotator"]]
        block.columns["annotator"] = named
        reason = "is missing; name it with --annotator"
        block = block.without([not name for name in named], "annotator", reason, report)
        if not len(block):
            return
        columns = block.columns
        campaigns = self._campaign_names(columns)
        first = self.rows + 1
        columns["created_at"] = columns["changed_at"] = [moment or self.now for moment in columns["at"]]
        nothing = bulk.Constant(0, len(block))
        own: dict[str, bulk.Column] = {
            "n": range(first, first + len(block)),
            "place": self.stage.places(block.places),
            "i": self.items.put(block),
            "campaign": [self.numbers.setdefault(name, len(self.numbers) + 1) for name in campaigns],
            "protocol": [name or kind for name, kind in zip(columns["protocol"], columns["kind"], strict=True)],
            "compares": [int(bool(compared)) for compared in columns["compared"]],
            "reviewed": nothing,
            "against": nothing,
            "back": nothing,
            "annotator": columns["annotator"],
            "shown": [
                describe(tuple(range(2 if compared else len(responses))))
                for compared, responses in zip(columns["compared"], columns["responses"], strict=True)
            ],
        }
        self.stage.put(STAGED, own | bulk.prepared(Label, {name: columns[name] for name in OWN}))
        self.simulated |= set(compress(columns["annotator"], columns["simulated"]))
        self._put_compared(first, columns)
        self._put_revisions(first, columns["revisions"])
        self.rows += len(block)

    def _put_compared(self, first: int, columns: Mapping[str, Sequence[Any]]) -> None:
        rows = [
            (first + row, second, *_key(named, refs))
            for row, (compared, refs) in enumerate(zip(columns["compared"], columns["responses"], strict=True))
            for second, named in enumerate(compared)
        ]
        if rows:
            names = ("n", "second", "judge", "protocol", "settings_hash", "order", "repeat")
            numbers = {"m": range(self.compared + 1, self.compared + len(rows) + 1)}
            self.stage.put("staged_compared", numbers | dict(zip(names, zip(*rows, strict=True), strict=True)))
            self.compared += len(rows)

    def _put_revisions(self, first: int, revisions: Sequence[Sequence[Revision]]) -> None:
        rows = [
            (first + row, json.dumps(_as_json(revision)))
            for row, earlier in enumerate(revisions)
            for revision in earlier
        ]
        if rows:
            labels, texts = zip(*rows, strict=True)
            numbers = range(self.revisions + 1, self.revisions + len(rows) + 1)
            self.stage.put("staged_revision", {"n": numbers, "label": labels, "revision": texts})
            self.revisions += len(rows)

    def settle(self, report: Report) -> None:
        stage = self.stage
        self.items.settle(STAGED, report)
        if self.compared:
            self._find_compared(report)
        if not stage.span(STAGED):
            return
        report.made["items"] += 0  # told first
        self.items.turn(STAGED, "shown", condition="verdict.compares = 0")
        self._put_campaigns(self.stored)
        key = dict.fromkeys(ASKED, NUMBER) | {"staged.annotator": TEXT}
        for where, first, annotator in stage.repeated(STAGED, ITEM, key, told="annotator"):
            report.refuse(where, "annotator", f"{first} already has a label of {annotator!r} on this item")
        for where, is_same in stage.stored(STAGED, OF_STORED, Label, COLUMNS):
            if is_same:
                report.unchanged += 1
            else:
                report.refuse(where, "choice", "a different verdict is stored for this label")
        self._refuse_faulty(report)
        self._find_used()
        report.made["campaigns"] += len(self.protocols.keys() - self.stored.keys())
        self._find_annotators(report)
        report.made["labels"] += stage.number(f"SELECT count(*) FROM {STAGED}")
        report.closing += self.closing.count(STAGED)
        report.closing_stored += sum(map(self._close, self.protocols))
        self.items.announce(STAGED, report)
        self._find_members()
        self._find_places()

    def _find_used(self) -> None:
        rows = self.stage.ask(
            f"""SELECT campaign.name, staged.protocol FROM {STAGED} staged
            JOIN staged_campaign campaign ON campaign.campaign = staged.campaign
            JOIN (SELECT min(n) AS n FROM {STAGED} GROUP BY campaign) first ON first.n = staged.n ORDER BY staged.n"""
        )
        self.protocols = dict(rows)

    def _put_campaigns(self, known: Mapping[str, Campaign]) -> None:
        """The names of campaigns, the ids of those that are known, and how many items these have."""
        self.stage.make("staged_campaign", campaign=KEY, name=TEXT, stored=NUMBER, items=NUMBER)
        ids = [known[name].pk if name in known else None for name in self.numbers]
        items = [CampaignItem.objects.filter(campaign=pk).count() if pk else 0 for pk in ids]
        named: dict[str, bulk.Column] = {"campaign": list(self.numbers.values()), "name": list(self.numbers)}
        self.stage.put("staged_campaign", named | {"stored": ids, "items": items})

    def _find_compared(self, report: Report) -> None:
        """Find the judgments whose analyses are compared, the first that holds a verdict where several are alike, and
        bring both, and the verdict about them, into the order of a campaign. Rows without two become problems.
        """
        for some in self.stage.slices("staged_compared", "m"):
            rows = self.stage.ask(
                f"""SELECT turned.positions, compared."order", compared.m FROM staged_compared compared
                JOIN {STAGED} staged ON staged.n = compared.n JOIN staged_turned turned ON turned.i = staged.i
                WHERE compared.m BETWEEN %s AND %s""",
                *some,
            )
            orders = [("".join(positions[int(place)] for place in order), m) for positions, order, m in rows]
            self.stage.change("staged_compared", "m", orders, "order")
        self.stage.do(
            f"""UPDATE staged_compared SET judgment = (SELECT min(stored.id) FROM {STAGED} staged {ITEM}
                JOIN judging_judge judge ON judge.name = staged_compared.judge
                JOIN judging_run run ON run.judge_id = judge.id AND run.protocol = staged_compared.protocol
                    AND run.settings_hash = staged_compared.settings_hash
                JOIN judging_judgment stored ON stored.run_id = run.id AND stored.item_id = item.item
                    AND stored."order" = staged_compared."order" AND stored.repeat = staged_compared.repeat
                    AND stored.status = %s AND {seen(Judgment, "stored")}
                WHERE staged.n = staged_compared.n)""",
            Judgment.Status.OK,
        )
        for some in self.stage.slices("staged_compared", "m"):
            self._settle_compared(report, *some)
        self.stage.do(f"DELETE FROM {STAGED} WHERE compares = 1 AND reviewed = 0")

    def _settle_compared(self, report: Report, first: int, last: int) -> None:
        rows = self.stage.ask(
            f"""SELECT staged.n, staged.place, one.judge, two.judge, one.judgment, two.judgment, staged.choice,
                staged.preference, staged.ranking
            FROM staged_compared one JOIN staged_compared two ON two.m = one.m + 1
            JOIN {STAGED} staged ON staged.n = one.n
            WHERE one.second = 0 AND one.m BETWEEN %s AND %s ORDER BY staged.n""",
            first,
            last,
        )
        changed = []
        for number, place, judge, other, one, two, choice, preference, ranking in rows:
            if not one or not two or one == two:
                judges = " and ".join(dict.fromkeys((repr(judge), repr(other))))
                reason = f"there are no two such judgments of this item by {judges}; import the judgments first"
                report.refuse(self.stage.where(place), "compared", reason)
                continue
            verdict = {"choice": choice, "preference": preference, "ranking": ranking and json.loads(ranking)}
            back = one > two
            verdict = turned(verdict, order=SWAPPED) if back else verdict
            said = (verdict["choice"], verdict["preference"], verdict["ranking"] and json.dumps(verdict["ranking"]))
            changed.append((min(one, two), max(one, two), int(back), "10" if back else "01", *said, number))
        columns = ("reviewed", "against", "back", "shown", "choice", "preference", "ranking")
        self.stage.change(STAGED, "n", changed, *columns)

    def _refuse_faulty(self, report: Report) -> None:
        """Rows of a protocol whose labels cannot go to the campaign where they should."""
        names = {number: name for name, number in self.numbers.items()}
        kinds = self.stage.ask(f"SELECT campaign, protocol FROM {STAGED} GROUP BY campaign, protocol ORDER BY min(n)")
        for campaign, protocol in kinds:
            reason = self._fault(names[campaign], ballots.alone(protocol))
            if not reason:
                continue
            of_kind = f"FROM {STAGED} WHERE campaign = {campaign} AND protocol = %s"
            for some in self.stage.slices(STAGED):
                for (place,) in self.stage.ask(
                    f"SELECT place {of_kind} AND n BETWEEN %s AND %s ORDER BY n", protocol, *some
                ):
                    report.refuse(self.stage.where(place), "campaign", reason)
            self.stage.do(f"DELETE {of_kind}", protocol)

    def _find_annotators(self, report: Report) -> None:
        rows = self.stage.ask(
            f"""SELECT DISTINCT staged.annotator FROM {STAGED} staged LEFT JOIN annotations_annotator stored
                ON stored.origin = %s AND stored.name = staged.annotator AND {seen(Annotator, "stored")}
            WHERE stored.id IS NULL""",
            self.context.slug,
        )
        self.new_annotators = sorted(name for (name,) in rows)
        report.made["annotators"] += len(self.new_annotators)

    def _find_members(self) -> None:
        """Annotators of a campaign who are no members of it yet."""
        rows = self.stage.ask(
            f"""SELECT DISTINCT campaign.name, staged.annotator FROM {STAGED} staged
            JOIN staged_campaign campaign ON campaign.campaign = staged.campaign
            LEFT JOIN annotations_annotator annotator ON annotator.origin = %s AND annotator.name = staged.annotator
            LEFT JOIN annotations_membership stored ON stored.campaign_id = campaign.stored
                AND stored.annotator_id = annotator.id AND {seen(Membership, "stored")}
            WHERE stored.id IS NULL""",
            self.context.slug,
        )
        self.members = sorted(rows)

    def _find_places(self) -> None:
        """The campaign items that labels are on, and the slot that each label takes: the next of its campaign item."""
        stage = self.stage
        stage.look_at(STAGED)
        stage.do(
            f"""INSERT INTO staged_asked SELECT row_number() OVER (ORDER BY wanted.n), wanted.campaign, wanted.k,
                wanted.reviewed, wanted.against, wanted.added, stored.id, coalesce(stored.taken, 0),
                campaign.items - 1 + row_number()
                    OVER (PARTITION BY wanted.campaign, stored.id IS NULL ORDER BY wanted.n),
                CASE WHEN stored.id IS NULL THEN row_number() OVER (PARTITION BY stored.id IS NULL ORDER BY wanted.n)
                END
            FROM (SELECT {", ".join(ASKED)}, min(staged.n) AS n, count(*) AS added
                FROM {STAGED} staged {ITEM} GROUP BY {", ".join(ASKED)}) wanted
            JOIN staged_item item ON item.k = wanted.k
            JOIN staged_campaign campaign ON campaign.campaign = wanted.campaign
            LEFT JOIN annotations_campaignitem stored ON stored.campaign_id = campaign.stored
                AND stored.item_id = item.item AND coalesce(stored.reviewed_id, 0) = wanted.reviewed
                AND coalesce(stored.against_id, 0) = wanted.against AND {seen(CampaignItem, "stored")}"""
        )
        stage.index("staged_asked", "k", "campaign")
        stage.do(
            f"""INSERT INTO staged_slot
            SELECT staged.n, asked.p, asked.taken - 1 + row_number() OVER (PARTITION BY asked.p ORDER BY staged.n)
            FROM {STAGED} staged {ITEM} JOIN staged_asked asked ON asked.k = about.k
                AND asked.campaign = staged.campaign AND asked.reviewed = staged.reviewed
                AND asked.against = staged.against"""
        )
        self.new_places = stage.do(
            "INSERT INTO staged_new_place SELECT number, p FROM staged_asked WHERE number IS NOT NULL ORDER BY number"
        )

    def _close(self, name: str) -> int:
        """How many stored labels of a campaign close, since these come with them."""
        campaign = self.stored.get(name)
        if self.context.saw_nothing or campaign is None:
            return 0
        self.closed_now.append(name)
        return self.closing.stored(Label.objects.filter(campaign=campaign, excluded=False), held="campaign__held")

    def expected_rows(self) -> dict[type[Model], int]:
        labels = self.stage.span(STAGED)
        return self.items.expected_rows() | {
            Annotator: len(self.new_annotators),
            Campaign: len(self.protocols.keys() - self.stored.keys()),
            Membership: len(self.members),
            CampaignItem: self.new_places,
            Assignment: labels,
            Label: labels,
            LabelRevision: self.revisions,
        }

    def write(self) -> Iterator[int]:
        writer, stage = self.context.writer, self.stage
        self.campaigns = {name: self.stored.get(name) or self._make_campaign(name) for name in self.protocols}
        annotators = self._make_annotators()
        writer.put_objects(
            [
                Membership(campaign=self.campaigns[campaign], annotator_id=annotators[annotator])
                for campaign, annotator in self.members
            ]
        )
        writer.flush()
        self.items.write()
        self._put_campaigns(self.campaigns)
        named = "JOIN staged_campaign campaign ON campaign.campaign = {}.campaign"
        asked = "JOIN staged_asked asked ON asked.p = staged.p JOIN staged_item item ON item.k = asked.k"
        columns = {
            "campaign_id": "campaign.stored",
            "item_id": self.items.pk,
            "reviewed_id": "nullif(asked.reviewed, 0)",
            "against_id": "nullif(asked.against, 0)",
            "position": "asked.position",
            "taken": "asked.added",
        }
        place = writer.numbered(CampaignItem, stage, "staged_new_place")
        joins = f"{asked} {named.format('asked')}"
        writer.copy_all(CampaignItem, stage, "staged_new_place", joins, {"id": f"staged.n + {place}"} | columns)
        stage.do("UPDATE staged_asked SET item = number + %s WHERE number IS NOT NULL", place)
        stage.make("staged_annotator", name=f"{TEXT} PRIMARY KEY", id=NUMBER)
        stage.put("staged_annotator", {"name": list(annotators), "id": list(annotators.values())})
        by = "JOIN staged_annotator annotator ON annotator.name = staged.annotator"
        slots = "JOIN staged_slot slot ON slot.n = staged.n JOIN staged_asked asked ON asked.p = slot.p"
        columns = {
            "campaign_item_id": "asked.item",
            "annotator_id": "annotator.id",
            "order": "staged.shown",
            "state": f"'{Assignment.State.SUBMITTED}'",
            "slot": "slot.slot",
            "leased_at": "staged.created_at",
            "lease_until": "staged.created_at",
        }
        assignment, label = (writer.numbered(model, stage, STAGED) for model in (Assignment, Label))
        joins = f"{by} {slots}"
        writer.copy_all(Assignment, stage, STAGED, joins, {"id": f"staged.n + {assignment}"} | columns)
        columns = {column: f'staged."{column}"' for column in columns_of(Label, OWN)}
        columns |= {"id": f"staged.n + {label}", "assignment_id": f"staged.n + {assignment}"}
        columns |= {"campaign_id": "campaign.stored", "item_id": self.items.pk, "annotator_id": "annotator.id"}
        yield from writer.copy(Label, stage, STAGED, f"{by} {ITEM} {named.format('staged')}", columns)
        self._write_revisions(label)

    def _write_revisions(self, offset: int) -> None:
        """What labels were before; ``offset`` leads from their numbers to their ids."""
        for some in self.stage.slices("staged_revision"):
            rows = self.stage.ask(
                f"""SELECT staged.n, annotator.id, staged.back, staged.compares, turned.positions, revision.revision
                FROM staged_revision revision JOIN {STAGED} staged ON staged.n = revision.label
                JOIN staged_annotator annotator ON annotator.name = staged.annotator
                LEFT JOIN staged_turned turned ON turned.i = staged.i
                WHERE revision.n BETWEEN %s AND %s ORDER BY revision.n""",
                *some,
            )
            revisions = []
            for number, annotator, back, compares, positions, text in rows:
                order = SWAPPED if back else list(map(int, positions or "")) if not compares else []
                revisions.append(LabelRevision(label_id=number + offset, by_id=annotator, **_revision(text, order)))
            self.context.writer.put_objects(revisions)
            self.context.writer.flush()

    def finish(self) -> None:
        """Update the slots of items that existed before; of campaigns what people saw, the overlap and categories."""
        stage = self.stage
        more = stage.ask("SELECT item, taken + added FROM staged_asked WHERE number IS NULL")
        bulk.update_column(CampaignItem, "taken", dict(more))
        self.items.finish()
        closed_now = [self.campaigns[name].pk for name in self.closed_now]
        Campaign.objects.filter(pk__in=closed_now).update(held=self.context.held)
        most = dict(stage.ask("SELECT campaign, max(taken + added) FROM staged_asked GROUP BY campaign"))
        for name, campaign in self.campaigns.items():
            overlap = most[self.numbers[name]]
            Campaign.objects.filter(pk=campaign.pk, overlap__lt=overlap).update(overlap=overlap)
            if is_of_categories(campaign.protocol):
                self._keep_categories(campaign)

    def _keep_categories(self, campaign: Campaign) -> None:
        """The campaign's categories are those that somebody gave, unless they are too many for a ballot."""
        names = Label.objects.filter(campaign=campaign).order_by("option").values_list("option", flat=True).distinct()
        try:
            ballot = ballots.get(LABEL).clean_settings({"categories": list(names)})
        except ballots.BadSettings:
            return
        Campaign.objects.filter(pk=campaign.pk).update(ballot=ballot)

    def _campaign_names(self, columns: Mapping[str, Sequence[Any]]) -> list[str]:
        named, protocols = columns["campaign"], columns["protocol"]
        if self.context.campaign:
            return [self.context.campaign] * len(named)
        held = list(map(ballots.alone, protocols))
        free = {words: self._free(f"imported {words}".strip()) for words in set(held)}
        return [name or free[words] for name, words in zip(named, held, strict=True)]

    def _free(self, name: str) -> str:
        """Campaign names are unique, so for a second benchmark the slug is added."""
        campaign = self.stored.get(name)
        taken = name in self.taken_names or (campaign and campaign.benchmark != self.context.benchmark)
        return f"{name} ({self.context.slug})" if taken else name

    def _fault(self, name: str, alone: str) -> str:
        """Why labels that are ``alone`` in a campaign cannot go to the one of this name; "" where they can."""
        if name in self.taken_names:
            return f"{name!r} is a campaign with annotators here; choose another with --campaign"
        campaign = self.stored.get(name)
        if campaign is not None and campaign.benchmark != self.context.benchmark:
            return f"{name!r} belongs to {campaign.benchmark}; choose another with --campaign"
        held = self.alone.setdefault(name, alone)
        if held != alone:
            return f"{name!r} holds {held or 'other verdicts'}; {alone or held} need a campaign of their own"
        return ""

    def _make_annotators(self) -> dict[str, int]:
        """The ids of all annotators of this benchmark's files by name, those that are new included."""
        stored = Annotator.objects.filter(origin=self.context.slug).values_list("name", "pk")
        annotators = [
            Annotator(name=name, origin=self.context.slug, pseudonym=new_pseudonym(), simulated=name in self.simulated)
            for name in self.new_annotators
        ]
        self.context.writer.put_objects(annotators)
        return dict(stored) | {annotator.name: annotator.pk for annotator in annotators}

    def _make_campaign(self, name: str) -> Campaign:
        protocol = self.protocols[name]
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


def _key(named: ComparedRecord, refs: Sequence[Ref]) -> tuple[Any, ...]:
    """What tells a judgment of an item: judge, protocol, settings, order and repeat."""
    order = describe(tuple(refs.index(ref) for ref in named.order))
    return named.judge, named.protocol, settings_hash(named.settings), order, named.repeat


def _as_json(revision: Revision) -> dict[str, Any]:
    """An earlier version of a label, as the file has it."""
    times = {"given_at": revision.at.isoformat(), "replaced_at": revision.until.isoformat()}
    said = {"seconds": revision.seconds, "comment": revision.comment, "flags": revision.flags}
    return {"verdict": revision.columns()} | said | times


def _revision(text: str, order: list[int]) -> dict[str, Any]:
    """The same as LabelRevision holds it; ``order`` turns it into the item's, where it is another."""
    said = json.loads(text)
    verdict = turned(said["verdict"], order=order) if order else said["verdict"]
    return said | {
        "verdict": {name: value for name, value in verdict.items() if value not in (None, "")},
        "given_at": datetime.fromisoformat(said["given_at"]),
        "replaced_at": datetime.fromisoformat(said["replaced_at"]),
    }
