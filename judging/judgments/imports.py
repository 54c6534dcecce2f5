"""Judgments from files: one run per judge, protocol and settings; later files add to it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import F, Model
from django.utils import timezone

from bank.database import bulk, chunks, unfinished
from bank.intake.formats.reading import Row
from bank.intake.formats.seen import NameIndex, SeenNames
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.items import Block, NewItems, VerdictItems, block_of, describe
from bank.intake.imports.provenance import Closing
from bank.models.verdict import COLUMNS, in_canonical_order
from bank.samples.items import StoredItem
from judging.judgments.provenance import note_held_by_juries
from judging.models import Judge, Judgment, Run, RunItem, reason_key
from judging.protocols import settings_hash

RunKey = tuple[str, str, str]  # judge, protocol, hash of the settings
Place = tuple[RunKey, str, str, int]  # what identifies a judgment: run, item by its hash, presented order, repeat

RESULT_COLUMNS = ("repeat", "status", "analysis", "raw", "prompt_tokens", "completion_tokens", "cost")
ABOUT_RUN = ("settings", "reported_model", "simulated")  # the last: whether a new judge is invented
COUNTED = ("verdicts", "failures", "undecided")  # what a run says of its judgments
ADDED = 1  # in the index of items that runs have


@dataclass(frozen=True, slots=True)
class Batch:
    """Judgments to store, by column. Items by number, see VerdictItems; runs by their place in ``about_runs``."""

    about_runs: dict[RunKey, list[Any]]  # ABOUT_RUN of each, should it be new
    new_items: NewItems
    run_items: list[tuple[int, int]]  # items that the runs did not have: (run, item)
    runs: bulk.Column
    items: list[int]
    columns: dict[str, bulk.Column]  # as the database takes them
    counts: Counter[tuple[RunKey, str]]  # of these judgments, by run and one of COUNTED


class Judgments:
    """Imports judgment records of one benchmark.

    ``context.judge``, if given, is the judge of all rows, whatever judge they name.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.items = VerdictItems(context)
        self.seen = SeenNames()
        self.runs: dict[RunKey, Run] = {}
        for run in Run.objects.filter(benchmark=context.benchmark, imported=True).select_related("judge"):
            self.runs[(run.judge.name, run.protocol, run.settings_hash)] = run
        self.judges: dict[str, Judge] = {}  # of runs that the import creates
        self.pending_runs: set[RunKey] = set()
        self.closing, self.closed_now = Closing(context), set[RunKey]()  # runs that the import closes
        self.counts: Counter[tuple[RunKey, str]] = Counter()  # of all batches that were written
        self.run_items = NameIndex()  # items that runs have or will have, as far as they were looked for
        self.pending_run_items = self.pending_judgments = 0

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        block = self._without_told(self._with_judge(block_of(rows), report), report)
        block, specs = self.items.resolved(block, report)
        if not specs:
            return None
        by_hash = self.items.find(block, specs)
        items = [by_hash[spec.content_hash] for spec in specs]
        turned = {
            row: item.order_of(spec.response_ids)
            for row, (spec, item) in enumerate(zip(specs, items, strict=True))
            if spec.response_ids != item.response_ids
        }
        columns = block.columns | in_canonical_order(block.columns, turned)
        keys = self._keys(columns)
        orders = list(map(describe, columns["order"]))
        for row, order in turned.items():
            orders[row] = describe(tuple(order[position] for position in columns["order"][row]))
        hashes = [spec.content_hash for spec in specs]
        places = list(zip(keys, hashes, orders, columns["repeat"], strict=True))
        stored, taken = self._stored(set(keys), items), self.seen.claim(places, block.places)
        fresh: Sequence[int] = range(len(specs))
        if stored or taken:
            fresh = self._fresh(block, columns, places, items, stored, taken, report)
            specs, keys = [specs[row] for row in fresh], [keys[row] for row in fresh]
        numbers, new_items = self.items.announce(specs, by_hash, report)
        self.pending_runs |= set(keys)
        self.pending_judgments += len(fresh)
        report.made["runs"] = len(self.pending_runs - self.runs.keys())
        report.made["judgments"] += len(fresh)
        report.closing += self.closing.count(specs)
        report.closing_stored += sum(map(self._close, dict.fromkeys(keys)))
        run_items = self._missing_run_items(dict.fromkeys(zip(keys, numbers, strict=True)))
        if not (self.context.writes and fresh):
            return None
        values = {name: columns[name] for name in (*COLUMNS, *RESULT_COLUMNS)} | {"order": orders}
        if len(fresh) < len(block):
            values = {name: [column[row] for row in fresh] for name, column in values.items()}
        values["reason_hash"] = [
            "" if status == "ok" else reason_key(reason)
            for status, reason in zip(values["status"], values["reason"], strict=True)
        ]
        counts: Counter[tuple[RunKey, str]] = Counter()
        for key, status, choice in zip(keys, values["status"], values["choice"], strict=True):
            counts[key, "verdicts" if status == "ok" else "failures"] += 1
            counts[key, "undecided"] += choice == "undecided"
        first: dict[RunKey, int] = {}
        for row, key in zip(fresh, keys, strict=True):
            first.setdefault(key, row)
        number_of = {key: number for number, key in enumerate(first)}
        return Batch(
            about_runs={key: [columns[name][row] for name in ABOUT_RUN] for key, row in first.items()},
            new_items=new_items,
            run_items=[(number_of[key], item) for key, item in run_items],
            runs=bulk.compact([number_of[key] for key in keys]),
            items=numbers,
            columns=bulk.prepared(Judgment, values),
            counts=counts,
        )

    def _close(self, key: RunKey) -> int:
        """How many stored judgments of a run close, since these come with them; counted once."""
        run = self.runs.get(key)
        if self.context.saw_nothing or run is None or key in self.closed_now:
            return 0
        self.closed_now.add(key)
        return self.closing.stored(Judgment.objects.filter(run=run, status=Judgment.Status.OK), held="run__held")

    def expected_rows(self) -> dict[type[Model], int]:
        runs = len(self.pending_runs - self.runs.keys())
        own = {Judge: runs, Run: runs, RunItem: self.pending_run_items, Judgment: self.pending_judgments}
        return self.items.expected_rows() | own

    def write(self, batch: Batch) -> None:
        writer = self.context.writer
        for key, about in batch.about_runs.items():
            if key not in self.runs:
                self.runs[key] = self._run(key, *about)
        runs = [self.runs[key].pk for key in batch.about_runs]
        self.items.write(batch.new_items)
        if batch.run_items:
            added, items = zip(*batch.run_items, strict=True)
            writer.put(RunItem, {"run_id": [runs[run] for run in added], "item_id": self.items.ids(items)})
        own = {"run_id": [runs[run] for run in batch.runs], "item_id": self.items.ids(batch.items)}
        writer.put(Judgment, bulk.completed(Judgment, own | batch.columns))
        self.counts += batch.counts

    def finish(self) -> None:
        """Note of which runs nobody knows any more what they held, and count what came in.

        A run that was imported before runs counted themselves stays uncounted.
        """
        self.items.finish()
        closed_now = [self.runs[key].pk for key in self.closed_now]
        Run.objects.filter(pk__in=closed_now).update(held=self.context.held)
        note_held_by_juries(closed_now)
        with unfinished.included():
            for key in {key for key, _ in self.counts}:
                added = {name: F(name) + self.counts[key, name] for name in COUNTED}
                Run.objects.filter(pk=self.runs[key].pk).update(**added)

    def _with_judge(self, block: Block, report: Report) -> Block:
        """The rows that name a judge, or all if the import names one; the others become problems."""
        if self.context.judge or all(block.columns["judge"]):
            return block
        refused = {row for row, judge in enumerate(block.columns["judge"]) if not judge}
        for row in sorted(refused):
            report.refuse(block.places[row], "judge", "is missing; name it with --judge")
        return block.without(refused)

    def _without_told(self, block: Block, report: Report) -> Block:
        """Without rows of judges that were shown criteria, where it is said that they saw nothing: they are refused."""
        if not self.context.saw_nothing:
            return block
        told = {row for row, settings in enumerate(block.columns["settings"]) if settings.get("criteria") is True}
        for row in sorted(told):
            report.refuse(
                block.places[row], "settings", "says that the judge was shown criteria; it did not see nothing"
            )
        return block.without(told) if told else block

    def _fresh(
        self,
        block: Block,
        columns: Mapping[str, Sequence[Any]],
        places: Sequence[Place],
        items: Sequence[StoredItem],
        stored: Mapping[tuple[int, int, str, int], tuple[Any, ...]],
        taken: Mapping[int, object],
        report: Report,
    ) -> list[int]:
        """The rows that are new. Rows that are stored already are counted; those that contradict become problems."""
        fresh = []
        for row, (key, _, order, repeat) in enumerate(places):
            if row in taken:
                reason = f"the same item, order and repeat of this judge already appears at {taken[row]}"
                report.refuse(block.places[row], "sample", reason)
                continue
            run = self.runs.get(key)
            existing = stored.get((run.pk, items[row].pk, order, repeat)) if run else None
            if existing is None:
                fresh.append(row)
            elif existing == (columns["status"][row], *(columns[name][row] for name in COLUMNS)):
                report.unchanged += 1
            else:
                report.refuse(block.places[row], "choice", "another verdict is stored for this judgment")
        return fresh

    def _missing_run_items(self, wanted: Mapping[tuple[RunKey, int], None]) -> list[tuple[RunKey, int]]:
        """Of these pairs of a run and an item those that must be added; they count as added from then on."""
        unknown = [pair for pair, known in zip(wanted, self.run_items.find(list(wanted)), strict=True) if not known]
        existing = self._stored_run_items(unknown)
        self.run_items.add(unknown, [ADDED] * len(unknown))
        missing = [pair for pair in unknown if pair not in existing]
        self.pending_run_items += len(missing)
        return missing

    def _keys(self, columns: Mapping[str, Sequence[Any]]) -> list[RunKey]:
        """The run of each row. Where no protocol is named, it is the one that is called as the kind of item."""
        hashes: dict[str, str] = {}  # by the settings as Python writes them, which tells 1 from True
        keys: list[RunKey] = []
        rows = zip(*(columns[name] for name in ("judge", "protocol", "kind", "settings")), strict=True)
        for judge, protocol, kind, settings in rows:
            text = repr(settings)
            if text not in hashes:
                hashes[text] = settings_hash(settings)
            keys.append((self.context.judge or judge, protocol or kind, hashes[text]))
        return keys

    def _stored(
        self, keys: set[RunKey], items: Sequence[StoredItem]
    ) -> dict[tuple[int, int, str, int], tuple[Any, ...]]:
        """The stored verdicts of these runs on these items: status and COLUMNS by run, item, order, repeat."""
        stored: dict[tuple[int, int, str, int], tuple[Any, ...]] = {}
        runs = [self.runs[key].pk for key in keys if key in self.runs]
        for ids in chunks(item.pk for item in items if item.pk > 0 and runs):
            judgments = Judgment.objects.filter(run__in=runs, item__in=ids).order_by()
            for row in judgments.values_list("run_id", "item_id", "order", "repeat", "status", *COLUMNS):
                stored[row[:4]] = row[4:]
        return stored

    def _stored_run_items(self, pairs: Sequence[tuple[RunKey, int]]) -> set[tuple[RunKey, int]]:
        """Those of these pairs of a run and an item that are stored."""
        runs = {run.pk: key for key in {key for key, _ in pairs} if (run := self.runs.get(key))}
        stored: set[tuple[RunKey, int]] = set()
        for items in chunks(item for _, item in pairs if item > 0 and runs):
            rows = RunItem.objects.filter(run__in=list(runs), item__in=items).order_by().values_list("run", "item")
            stored.update((runs[run], item) for run, item in rows)
        return stored

    def _run(self, key: RunKey, settings: dict[str, Any], reported: str, simulated: bool) -> Run:
        name, protocol, hash_of_settings = key
        writer = self.context.writer
        judge = self.judges.get(name) or Judge.objects.filter(name=name).first()
        judge = judge or writer.make(Judge(name=name, simulated=simulated))
        self.judges[name] = judge
        return writer.make(
            Run(
                judge=judge,
                benchmark=self.context.open(),
                protocol=protocol,
                settings=settings,
                settings_hash=hash_of_settings,
                state=Run.State.FINISHED,
                imported=True,
                held=self.context.held,
                reported_model=reported,
                finished_at=timezone.now(),
                **dict.fromkeys(COUNTED, 0),
            )
        )
