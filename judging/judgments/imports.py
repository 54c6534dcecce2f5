"""Judgments from files: one run per judge, protocol and settings; later files add to it."""

import hashlib
import json
from collections.abc import Collection, Iterable
from typing import Any

from django.db.models import Model
from django.utils import timezone

from bank.database import chunks
from bank.intake.formats.reading import Row
from bank.intake.formats.records import JudgmentRecord
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.items import PendingItems, Place, Resolver, describe
from bank.intake.imports.name_index import SeenNames
from bank.models.verdict import COLUMNS, turned
from bank.samples.items import ItemSpec, StoredItem
from judging.models import Judge, Judgment, Run, RunItem, reason_key

RunKey = tuple[str, str, str]  # judge, protocol, hash of the settings
DEFAULT_PROTOCOLS = {"pair": "pair", "score": "score", "batch": "batch"}
RESULT_COLUMNS = ("status", "analysis", "raw", "prompt_tokens", "completion_tokens", "cost")

# Judgments to store: their runs with settings and reported model, and for each judgment its run, item and columns.
Batch = tuple[dict[RunKey, tuple[dict[str, Any], str]], list[tuple[RunKey, Place, dict[str, Any]]]]


def settings_hash(settings: dict[str, Any]) -> str:
    """The SHA-256 of settings in canonical form."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Judgments:
    """Imports judgment records of one benchmark.

    ``context.judge``, if given, is the judge of all rows, whatever judge they name.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context = context
        self.resolver, self.items = Resolver(context), PendingItems(context)
        self.seen = SeenNames()
        self.runs: dict[RunKey, Run] = {}
        for run in Run.objects.filter(benchmark=context.benchmark, imported=True).select_related("judge"):
            self.runs[(run.judge.name, run.protocol, run.settings_hash)] = run
        self.judges: dict[str, Judge] = {}  # of runs that the import creates
        self.pending_runs: set[RunKey] = set()
        self.pending_judgments = 0

    def check(self, rows: list[Row], report: Report) -> Batch | None:
        named = []
        for row in rows:
            if self.context.judge or row.data.judge:
                named.append(row)
            else:
                report.refuse(row.where, "judge", "is missing; name it with --judge")
        resolved = self.resolver.specs(named, report)
        found, new_items = self.items.foreseen([spec for _, spec in resolved])
        stored = self._stored(found.values())
        places = [self._place(row.data, spec, found) for row, spec in resolved]
        taken = self.seen.claim(places, [row.where for row, _ in resolved])
        runs: dict[RunKey, tuple[dict[str, Any], str]] = {}
        new_judgments: list[tuple[RunKey, Place, dict[str, Any]]] = []
        for index, (row, spec) in enumerate(resolved):
            record: JudgmentRecord = row.data
            key, content_hash, order, repeat = places[index]
            if index in taken:
                reason = f"the same item, order and repeat of this judge already appears at {taken[index]}"
                report.refuse(row.where, "sample", reason)
                continue
            run, item = self.runs.get(key), found[content_hash]
            existing = stored.get((run.pk, item.pk, order, repeat)) if run else None
            columns = turned(record.columns(), order=item.order_of(spec.response_ids))
            if existing is None:
                runs.setdefault(key, (record.settings, record.reported_model))
                result = {name: getattr(record, name) for name in RESULT_COLUMNS} | {"order": order, "repeat": repeat}
                result["reason_hash"] = "" if record.status == "ok" else reason_key(record.reason)
                new_judgments.append((key, (spec.kind, spec.sample_id, item.response_ids), columns | result))
            elif existing.status == record.status and all(getattr(existing, name) == columns[name] for name in COLUMNS):
                report.unchanged += 1
            else:
                report.refuse(row.where, "choice", "another verdict is stored for this judgment")
        self.pending_runs |= runs.keys()
        self.pending_judgments += len(new_judgments)
        report.made["items"] += new_items
        report.made["runs"] = len(self.pending_runs - self.runs.keys())
        report.made["judgments"] += len(new_judgments)
        return (runs, new_judgments) if new_judgments else None

    def expected_rows(self) -> dict[type[Model], int]:
        runs = len(self.pending_runs - self.runs.keys())
        made = {Judge: runs, Run: runs, RunItem: self.pending_judgments, Judgment: self.pending_judgments}
        return self.items.rows() | made

    def write(self, batch: Batch) -> None:
        runs, new_judgments = batch
        for key, (settings, reported) in runs.items():
            if key not in self.runs:
                self.runs[key] = self._run(key, settings, reported)
        items = self.items.written([place for _, place, _ in new_judgments])
        run_ids = [self.runs[key].pk for key, *_ in new_judgments]
        self._add_run_items(dict.fromkeys(zip(run_ids, items, strict=True)))
        values = {name: [columns[name] for *_, columns in new_judgments] for name in new_judgments[0][2]}
        self.context.writer.put_values(Judgment, {"run_id": run_ids, "item_id": items, **values})

    def finish(self) -> None:
        """Judgments are never changed."""

    def _add_run_items(self, run_items: Collection[tuple[int, int]]) -> None:
        """Add these items (run, item) to their runs, unless they are there."""
        runs = {run for run, _ in run_items}
        existing: set[tuple[int, int]] = set()
        for items in chunks(item for _, item in run_items):
            existing.update(RunItem.objects.filter(run__in=runs, item__in=items).order_by().values_list("run", "item"))
        missing = [pair for pair in run_items if pair not in existing]
        if missing:
            self.context.writer.put(RunItem, dict(zip(("run_id", "item_id"), zip(*missing, strict=True), strict=True)))

    def _key(self, record: JudgmentRecord) -> RunKey:
        protocol = record.protocol or DEFAULT_PROTOCOLS[record.kind]
        return (self.context.judge or record.judge, protocol, settings_hash(record.settings))

    def _place(
        self, record: JudgmentRecord, spec: ItemSpec, found: dict[str, StoredItem]
    ) -> tuple[RunKey, str, str, int]:
        """What identifies a judgment: run, item, presented order, repeat."""
        order = self._order(record, spec, found[spec.content_hash])
        return (self._key(record), spec.content_hash, order, record.repeat)

    def _order(self, record: JudgmentRecord, spec: ItemSpec, item: StoredItem) -> str:
        """Canonical positions in presented order; the order of the row's responses if it names none."""
        ids_by_ref = dict(zip(record.responses, spec.response_ids, strict=True))
        presented = [ids_by_ref[ref] for ref in (record.order or record.responses)]
        return describe(item.order_of(presented)) or "0"

    def _stored(self, items: Iterable[StoredItem]) -> dict[tuple[int, int, str, int], Judgment]:
        stored: dict[tuple[int, int, str, int], Judgment] = {}
        runs = [run.pk for run in self.runs.values()]
        for ids in chunks(item.pk for item in items if item.pk):
            judgments = Judgment.objects.filter(run__in=runs, item__in=ids).defer("analysis", "raw")
            stored |= {(row.run_id, row.item_id, row.order, row.repeat): row for row in judgments}
        return stored

    def _run(self, key: RunKey, settings: dict[str, Any], reported: str) -> Run:
        name, protocol, hash_of_settings = key
        writer = self.context.writer
        judge = self.judges.get(name) or Judge.objects.filter(name=name).first() or writer.make(Judge(name=name))
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
                reported_model=reported,
                finished_at=timezone.now(),
            )
        )
