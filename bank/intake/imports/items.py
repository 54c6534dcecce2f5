"""The items that imported verdicts are about."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from itertools import compress, groupby
from operator import itemgetter, or_
from typing import Any

from django.db.models import Model

from bank import exposure
from bank.database import bulk, unfinished
from bank.intake.formats.reading import Row, Where
from bank.intake.formats.records import AS_STORED, VerdictRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.stage import KEY, NUMBER, TEXT, seen
from bank.models import Item, ItemResponse, Response, Sample
from bank.models.items import content_hash
from bank.models.verdict import GRADED, turned
from bank.samples.items import note_blind_twins

Columns = dict[str, Any]  # by name, with one value per row
ABOUT = "JOIN staged_about about ON about.i = staged.i"  # from verdicts to what they are about
ITEM = f"{ABOUT} JOIN staged_item item ON item.k = about.k"
NO_SAMPLE, NO_RESPONSE, ANOTHER_TEXT = 1, 2, 3  # why a row is about nothing that is here


@dataclass(frozen=True, slots=True)
class Block:
    """Judgments or labels by column, under the names of their record.

    ``responses`` are tuples of model and variant; the verdict columns count positions in them, and so does ``order``,
    the positions in presented order; ``revisions`` are records.
    """

    places: Sequence[Where]
    columns: Columns

    def __len__(self) -> int:
        return len(self.places)

    def without(self, bad: Sequence[bool], field: str, reason: str, report: Report) -> "Block":
        """The block without its bad rows, which are refused."""
        if not any(bad):
            return self
        for place in compress(self.places, bad):
            report.refuse(place, field, reason)
        kept = [not each for each in bad]
        columns = {name: list(compress(column, kept)) for name, column in self.columns.items()}
        return Block(list(compress(self.places, kept)), columns)


def block_of(rows: Sequence[Row]) -> Block:
    """Not for empty lists."""
    records: list[VerdictRecord] = [row.data for row in rows]
    values = [vars(record) for record in records]
    columns: Columns = {name: [of_record[name] for of_record in values] for name in type(records[0]).model_fields}
    columns["responses"] = list(map(tuple, columns["responses"]))
    columns |= {name: list(map(stored, records)) for name, stored in AS_STORED.items()}
    graded = [preference is not None for preference in columns["preference"]]
    columns["protocol"] = [GRADED if each else name for each, name in zip(graded, columns["protocol"], strict=True)]
    if "order" in columns:
        columns["order"] = [describe(_presented(record)) for record in records]
    if "revisions" in columns:
        columns["revisions"] = [record.earlier() for record in records]  # type: ignore[attr-defined]
    return Block([row.where for row in rows], columns)


def _presented(record: Any) -> tuple[int, ...]:
    return tuple(map(record.responses.index, record.order or record.responses))


class VerdictItems:
    """Finds the items of staged verdicts, and makes those that are missing.

    ``put`` numbers what rows name: a sample and responses in their order. Its number, ``i``, stands in their table,
    which has the columns ``n``, ``place`` (in the file) and ``i``. What a file names of the same import has a negative
    id until it is written, see ImportContext. These tables hold what the parts of an import name together:

    - ``staged_named`` and ``staged_ref``: the names; ``staged_placed`` and ``staged_cited``: the ids behind them
    - ``staged_item``: the items, each called by the ``i`` that named it first, with its id, 0 where it has none;
      ``staged_about``: the item of each ``i``; ``staged_new_item``: the items that a part makes
    - ``staged_turned``: the canonical positions of the responses of each ``i`` that names them in another order
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.stage = context, context.stage
        if not self.stage.has("staged_named"):
            self._make_tables()
        self.first = self.next = 0  # what this part names is numbered behind what those before it name
        self.part = ""
        self.count = self.most = 0  # new items, and the most responses of one
        self.answering: dict[str, bool] = {}

    def _make_tables(self) -> None:
        make = self.stage.make
        make("staged_named", i=KEY, kind=TEXT, sample=TEXT)
        make("staged_ref", primary=("i", "place"), i=NUMBER, place=NUMBER, model=TEXT, variant=TEXT, text=TEXT)
        make("staged_placed", i=KEY, sample=NUMBER)
        make("staged_cited", primary=("i", "place"), i=NUMBER, place=NUMBER, response=NUMBER, differs=NUMBER)
        make("staged_item", k=KEY, hash=f"{TEXT} UNIQUE", item=NUMBER)
        make("staged_new_item", n=KEY, part=TEXT)
        make("staged_about", i=KEY, k=NUMBER)
        make("staged_turned", i=KEY, positions=TEXT)

    def put(self, block: Block) -> list[int]:
        """Stage what these rows name; returns its number for each."""
        if not self.next:
            self.first = self.next = 1 + self.stage.number("SELECT max(i) FROM staged_named")
        columns = block.columns
        numbers: dict[tuple[Any, ...], int] = {}
        of_rows = []
        for named in zip(
            columns["kind"], columns["sample"], columns["responses"], map(tuple, columns["texts"]), strict=True
        ):
            number = numbers.get(named)
            if number is None:
                number = numbers[named] = self.next
                self.next += 1
            of_rows.append(number)
        new = range(self.next - len(numbers), self.next)
        kinds, samples, _, _ = zip(*numbers, strict=True)
        self.stage.put("staged_named", {"i": new, "kind": kinds, "sample": samples})
        refs = [
            (number, place, model, variant, texts[place] if place < len(texts) else None)
            for (_, _, responses, texts), number in numbers.items()
            for place, (model, variant) in enumerate(responses)
        ]
        if refs:
            columns_of_refs = zip(*refs, strict=True)
            names = ("i", "place", "model", "variant", "text")
            self.stage.put("staged_ref", dict(zip(names, columns_of_refs, strict=True)))
        return of_rows

    def settle(self, table: str, report: Report) -> None:
        """Find what the rows of a table are about. Those that are about nothing become problems and leave it."""
        if not self.next:
            return
        for staged in ("staged_named", "staged_ref", table):
            self.stage.look_at(staged)
        self._find()
        self._refuse(table, report)
        self._name()
        self._turn()

    def _find(self) -> None:
        """The ids of samples and responses, 0 where there are none."""
        self.stage.do(
            f"""INSERT INTO staged_placed SELECT named.i, coalesce(stored.id, pending.number, 0)
            FROM staged_named named {self.context.of_sample("named.sample")}
            WHERE named.i >= %s ORDER BY named.i""",
            self.first,
        )
        self.stage.look_at("staged_placed")
        self.stage.do(
            f"""INSERT INTO staged_cited SELECT ref.i, ref.place, coalesce(stored.id, pending.number, 0),
                CASE WHEN stored.text <> ref.text THEN 1 ELSE 0 END
            FROM staged_ref ref JOIN staged_placed placed ON placed.i = ref.i
            LEFT JOIN bank_evaluatedmodel model ON model.name = ref.model
            LEFT JOIN bank_response stored ON stored.sample_id = placed.sample AND stored.model_id = model.id
                AND stored.variant = ref.variant AND stored.recipe_id IS NULL AND {seen(Response, "stored")}
            LEFT JOIN staged_response pending ON pending.sample = placed.sample AND pending.model = ref.model
                AND pending.variant = ref.variant
            WHERE ref.i >= %s ORDER BY ref.i, ref.place""",
            self.first,
        )
        self.stage.look_at("staged_cited")

    def _refuse(self, table: str, report: Report) -> None:
        """Refuse rows that name what is not here, or a text that a stored response does not have."""
        self.stage.make("staged_fault", i=KEY, fault=NUMBER, model=TEXT, variant=TEXT)
        found = self.stage.do(
            "INSERT INTO staged_fault SELECT i, %s, '', '' FROM staged_placed WHERE sample = 0 AND i >= %s",
            NO_SAMPLE,
            self.first,
        )
        for fault, bad in ((NO_RESPONSE, "response = 0"), (ANOTHER_TEXT, "differs = 1")):
            found += self.stage.do(
                f"""INSERT INTO staged_fault SELECT ref.i, %s, ref.model, ref.variant FROM staged_ref ref
                JOIN (SELECT i, min(place) AS place FROM staged_cited WHERE {bad} AND i >= %s GROUP BY i) worst
                    ON worst.i = ref.i AND worst.place = ref.place
                WHERE ref.i NOT IN (SELECT i FROM staged_fault)""",
                fault,
                self.first,
            )
        if not found:
            return
        for place, *about in self.stage.rows(
            table,
            f"""SELECT verdict.place, fault.fault, named.sample, fault.model, fault.variant
            FROM {table} verdict JOIN staged_fault fault ON fault.i = verdict.i
            JOIN staged_named named ON named.i = verdict.i WHERE verdict.n BETWEEN %s AND %s ORDER BY verdict.n""",
        ):
            self._say_fault(self.stage.where(place), *about, report=report)
        for staged in (table, "staged_placed", "staged_cited"):
            self.stage.do(f"DELETE FROM {staged} WHERE i IN (SELECT i FROM staged_fault)")

    def _say_fault(self, where: Where, fault: int, sample: str, model: str, variant: str, *, report: Report) -> None:
        name = model + (f" ({variant})" if variant else "")
        if fault == NO_SAMPLE:
            report.refuse(where, "sample", f"no sample {sample!r} in {self.context}", sample=sample)
        elif fault == ANOTHER_TEXT:
            reason = f"the stored response of {model!r} to sample {sample!r} has a different text"
            report.refuse(where, "responses", reason)
        elif self._answers(model):
            reason = f"{name!r} has no response to sample {sample!r}; import its responses first"
            report.refuse(where, "responses", reason)
        else:
            report.refuse(where, "responses", f"unknown model {name!r}: it has no response in {self.context}")

    def _answers(self, model: str) -> bool:
        """Whether the model has responses to the benchmark, pending ones included."""
        if model not in self.answering:
            stored = Response.objects.filter(model__name=model, sample__benchmark=self.context.benchmark)
            pending = self.stage.number("SELECT count(*) FROM staged_response WHERE model = %s", model)
            self.answering[model] = bool(pending) or (self.context.benchmark is not None and stored.exists())
        return self.answering[model]

    def _name(self) -> None:
        """Find the item of each ``i`` by its content hash, which also tells apart what only the import will make."""
        self.stage.make("staged_hash", i=KEY, hash=TEXT)
        for some in self._slices():
            hashes = self._hashes(
                """SELECT placed.i, named.kind, placed.sample, cited.response FROM staged_placed placed
                JOIN staged_named named ON named.i = placed.i LEFT JOIN staged_cited cited ON cited.i = placed.i
                WHERE placed.i BETWEEN %s AND %s ORDER BY placed.i""",
                *some,
            )
            self.stage.put("staged_hash", {"i": list(hashes), "hash": list(hashes.values())})
        self.stage.look_at("staged_hash")
        self.stage.do(
            f"""INSERT INTO staged_item SELECT hashed.i, hashed.hash, coalesce(stored.id, 0) FROM staged_hash hashed
            LEFT JOIN bank_item stored ON stored.content_hash = hashed.hash AND stored.recipe_id IS NULL
                AND {seen(Item, "stored")}
            WHERE true ORDER BY hashed.i ON CONFLICT DO NOTHING"""
        )
        self.stage.look_at("staged_item")
        self.stage.do(
            """INSERT INTO staged_about SELECT hashed.i, item.k FROM staged_hash hashed
            JOIN staged_item item ON item.hash = hashed.hash ORDER BY hashed.i"""
        )
        self.stage.look_at("staged_about")

    def _slices(self) -> Iterator[tuple[int, int]]:
        for first, last in self.stage.slices("staged_placed", "i"):
            if last >= self.first:
                yield max(first, self.first), last

    def _turn(self) -> None:
        """Note in which order responses are named, where it is not the canonical one.

        The canonical order of a new item is that of the first row that names it; but by name where verdicts of the
        benchmark may be sealed: everybody sees the order, and a row may name the better answer first.
        """
        known = "item.item > 0 OR item.k <> about.i"
        items = "staged_about about JOIN staged_item item ON item.k = about.k"
        if not self.by_name and not self.stage.number(f"SELECT count(*) FROM {items} WHERE {known}"):
            return
        if_known = "" if self.by_name else f"AND ({known})"
        for first, last in self._slices():
            rows = self.stage.ask(
                f"""SELECT about.i, item.item, ref.model, ref.variant, coalesce(stored.position, first.place)
                FROM {items} JOIN staged_cited cited ON cited.i = about.i
                JOIN staged_ref ref ON ref.i = cited.i AND ref.place = cited.place
                LEFT JOIN bank_itemresponse stored ON stored.item_id = item.item
                    AND stored.response_id = cited.response
                LEFT JOIN staged_cited first ON item.item <= 0 AND first.i = item.k
                    AND first.response = cited.response
                WHERE about.i BETWEEN %s AND %s {if_known} ORDER BY about.i, cited.place""",
                first,
                last,
            )
            orders: dict[int, str] = {}
            for (i, item), of_item in groupby(rows, itemgetter(0, 1)):
                named = list(of_item)
                positions = [row[4] for row in named]
                if item <= 0 and self.by_name:
                    ranks = sorted((row[2], row[3]) for row in named)
                    positions = [ranks.index((row[2], row[3])) for row in named]
                if positions != sorted(positions):
                    orders[i] = describe(tuple(positions))
            if orders:
                self.stage.put("staged_turned", {"i": list(orders), "positions": list(orders.values())})
        self.stage.look_at("staged_turned")

    def turn(self, table: str, shown: str, condition: str = "true") -> None:
        """Bring the verdicts of a table into the canonical order of their items: ``choice``, ``preference`` and
        ``ranking``, and the column that holds the positions in presented order.
        """
        if not self.stage.number("SELECT count(*) FROM staged_turned WHERE i >= %s", self.first or 1):
            return
        for first, last in self.stage.slices(table):
            rows = self.stage.ask(
                f"""SELECT verdict.n, turned.positions, verdict."{shown}", choice, preference, ranking
                FROM {table} verdict JOIN staged_turned turned ON turned.i = verdict.i
                WHERE verdict.n BETWEEN %s AND %s AND {condition}""",
                first,
                last,
            )
            changed = []
            for number, positions, order, choice, preference, ranking in rows:
                verdict = {"choice": choice, "preference": preference, "ranking": ranking and json.loads(ranking)}
                verdict = turned(verdict, order=list(map(int, positions)))
                ranking = ranking and json.dumps(verdict["ranking"])
                canonical = "".join(positions[int(place)] for place in order)
                changed.append((canonical, verdict["choice"], verdict["preference"], ranking, number))
            self.stage.change(table, "n", changed, shown, "choice", "preference", "ranking")

    def announce(self, table: str, report: Report) -> None:
        """The items of these rows will be made, where they are not there."""
        self.part = table
        self.count = self.stage.do(
            f"""INSERT INTO staged_new_item SELECT item.k, %s FROM staged_item item WHERE item.item = 0
                AND item.k IN (SELECT about.k FROM {table} staged {ABOUT})
            ON CONFLICT DO NOTHING""",
            table,
        )
        self.stage.look_at("staged_new_item")
        self.most = self.stage.number(
            f"SELECT max(cited.place) + 1 FROM {self.new} JOIN staged_cited cited ON cited.i = staged.n"
        )
        report.made["items"] += self.count

    @property
    def new(self) -> str:
        """The items that this part makes, to join to."""
        return f"(SELECT n FROM staged_new_item WHERE part = '{self.part}') staged"

    @property
    def pk(self) -> str:
        """SQL for the id of an item, stored or new."""
        ids = self.context.writer.reserved(Item)
        offset = ids[0] - self.stage.first("staged_new_item") if ids else 0
        return f"CASE WHEN item.item > 0 THEN item.item ELSE item.k + {offset} END"

    def expected_rows(self) -> dict[type[Model], int]:
        span = self.stage.span("staged_new_item") if self.count else 0
        return {Item: span, ItemResponse: span * self.most}

    def write(self) -> None:
        """Write the new items."""
        if not self.count:
            return
        context, writer, stage = self.context, self.context.writer, self.stage
        if writer.reserved(Sample) or writer.reserved(Response):
            self._hash_pending()
        response = context.as_stored(Response, "cited.response")
        from_outside = f"""EXISTS (SELECT 1 FROM staged_cited cited
            JOIN bank_response response ON response.id = {response} AND response.origin <> '{Response.Origin.STAFF}'
            WHERE cited.i = staged.n)"""
        columns = {
            "id": self.pk,
            "kind": "named.kind",
            "sample_id": context.as_stored(Sample, "placed.sample"),
            "content_hash": "item.hash",
            "outside": from_outside if self.may_be_outside else bulk.literal(False),
            "held": str(context.held),
        }
        item = f"JOIN staged_item item ON item.k = staged.n AND staged.part = '{self.part}'"
        named = "JOIN staged_named named ON named.i = staged.n JOIN staged_placed placed ON placed.i = staged.n"
        writer.copy_all(Item, stage, "staged_new_item", f"{item} {named}", columns)
        if self.most:
            first_id = writer.ids(ItemResponse, stage.span("staged_new_item") * self.most)[0]
            canonical = "CAST(substr(turned.positions, CAST(cited.place AS integer) + 1, 1) AS integer)"
            columns = {
                "id": f"{first_id} + (staged.n - {stage.first('staged_new_item')}) * {self.most} + cited.place",
                "item_id": self.pk,
                "position": f"coalesce({canonical}, cited.place)",
                "response_id": response,
            }
            cited = "JOIN staged_cited cited ON cited.i = staged.n"
            of_first = "LEFT JOIN staged_turned turned ON turned.i = staged.n"
            writer.copy_all(ItemResponse, stage, "staged_new_item", f"{item} {cited} {of_first}", columns)

    def _hash_pending(self) -> None:
        """The content hashes of items whose samples or responses had no ids when they were checked."""
        sample, response = self.context.as_stored(Sample, "placed.sample"), self.context.as_stored(Response, "response")
        pending = "placed.sample < 0 OR EXISTS (SELECT 1 FROM staged_cited WHERE i = staged.n AND response < 0)"
        for some in self.stage.slices("staged_new_item"):
            hashes = self._hashes(
                f"""SELECT staged.n, named.kind, {sample}, {response} FROM {self.new}
                JOIN staged_named named ON named.i = staged.n JOIN staged_placed placed ON placed.i = staged.n
                LEFT JOIN staged_cited cited ON cited.i = staged.n
                WHERE staged.n BETWEEN %s AND %s AND ({pending}) ORDER BY staged.n""",
                *some,
            )
            self.stage.change("staged_item", "k", [(name, k) for k, name in hashes.items()], "hash")

    def _hashes(self, statement: str, *values: Any) -> dict[int, str]:
        """The content hash of each item: the rows hold its number, its kind, its sample, and a response or none."""
        rows = self.stage.ask(statement, *values)
        return {
            number: content_hash(kind=kind, sample_id=sample, response_ids=[row[3] for row in of_item if row[3]])
            for (number, kind, sample), of_item in groupby(rows, itemgetter(0, 1, 2))
        }

    def finish(self) -> None:
        """Note which of the new items people label blind in another version. Runs in the last transaction."""
        if self.count:
            with unfinished.included():
                note_blind_twins(self.context.writer.reserved(Item))

    @cached_property
    def by_name(self) -> bool:
        """Whether verdicts of the benchmark, those of this import included, may be sealed."""
        context = self.context
        stored = Sample.objects.filter(benchmark=context.benchmark) if context.benchmark else Sample.objects.none()
        pending = [closed for (closed,) in self.stage.ask("SELECT DISTINCT closed FROM staged_sample")]
        closed = reduce(or_, pending, exposure.closed_in(stored))
        return bool(context.hidden_splits) or bool(context.held & closed & exposure.KEYED)

    @cached_property
    def may_be_outside(self) -> bool:
        """Whether the benchmark has answers from outside, those of this import included."""
        answers = Response.objects.filter(sample__benchmark=self.context.open())
        return answers.exclude(origin=Response.Origin.STAFF).exists()


@lru_cache(maxsize=1000)
def describe(positions: tuple[int, ...]) -> str:
    """Positions in presented order as they are stored: "10"; "0" without responses."""
    return "".join(map(str, positions)) or "0"
