"""Judgments from files: one run per judge, protocol and settings, to which later files add."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

from django.utils import timezone

from bank.formats.reading import Row
from bank.formats.records import JudgmentRecord
from bank.imports import Report, chunks
from bank.imports.items import Found, Resolver, Spec, describe, ensure, foreseen
from bank.imports.scene import Scene
from bank.imports.seen import Seen
from bank.models.verdict import COLUMNS, turned
from judging.models import Judge, Judgment, Run, RunItem, reason_key

RunKey = tuple[str, str, str]  # judge, protocol, hash of the settings
DEFAULT_PROTOCOLS = {"pair": "pair", "score": "score", "batch": "batch"}


def settings_hash(settings: dict[str, Any]) -> str:
    """SHA-256 of settings written in one way."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Judgments:
    """Takes judgment records of the scene's benchmark.

    ``scene.judge`` is the name of rows that name none, and overrides that of the others.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.resolver = Resolver(scene)
        self.seen = Seen()
        self.runs: dict[RunKey, Run] = {}
        for run in Run.objects.filter(benchmark=scene.benchmark, imported=True).select_related("judge"):
            self.runs[(run.judge.name, run.protocol, run.settings_hash)] = run
        self.coming_runs: set[RunKey] = set()

    def check(self, rows: list[Row], report: Report) -> list[JudgmentRecord]:
        named = []
        for row in rows:
            if self.scene.judge or row.data.judge:
                named.append(row)
            else:
                report.refuse(row.where, "judge", "is missing; name it with --judge")
        resolved = self.resolver.specs(named, report)
        found, new_items = foreseen([spec for _, spec in resolved], self.scene)
        stored = self._stored(found.values())
        places = [self._place(row.data, spec, found) for row, spec in resolved]
        taken = self.seen.claim(places, [row.where for row, _ in resolved])
        fresh: list[JudgmentRecord] = []
        for number, (row, spec) in enumerate(resolved):
            record: JudgmentRecord = row.data
            key, content_hash, order, repeat = places[number]
            if number in taken:
                reason = f"the same item, order and repeat of this judge stands already at {taken[number]}"
                report.refuse(row.where, "sample", reason)
                continue
            run, item = self.runs.get(key), found[content_hash]
            old = stored.get((run.pk, item.pk, order, repeat)) if run else None
            if old is None:
                fresh.append(record)
                self.coming_runs.add(key)
            elif self._same(old, record, spec, item):
                report.unchanged += 1
            else:
                report.refuse(row.where, "choice", "another verdict is stored for this judgment")
        report.made["items"] += new_items
        report.made["runs"] = len(self.coming_runs - self.runs.keys())
        report.made["judgments"] += len(fresh)
        return fresh

    def write(self, batch: list[JudgmentRecord]) -> None:
        rows = self.resolver.written(batch)
        found, _ = ensure([spec for _, spec in rows])
        fresh = [(self._key(record), spec, found[spec.content_hash], record) for record, spec in rows]
        self._write(fresh)

    def _key(self, record: JudgmentRecord) -> RunKey:
        protocol = record.protocol or DEFAULT_PROTOCOLS[record.kind]
        return (self.scene.judge or record.judge, protocol, settings_hash(record.settings))

    def _place(self, record: JudgmentRecord, spec: Spec, found: dict[str, Found]) -> tuple[RunKey, str, str, int]:
        """What no two judgments share: run, item, presented order, repeat."""
        order = self._order(record, spec, found[spec.content_hash])
        return (self._key(record), spec.content_hash, order, record.repeat)

    def _order(self, record: JudgmentRecord, spec: Spec, item: Found) -> str:
        """Canonical positions in the order presented: the row's own order where it names none."""
        by_ref = dict(zip(record.responses, spec.response_ids, strict=True))
        presented = [by_ref[ref] for ref in (record.order or record.responses)]
        return describe(item.order_of(presented)) or "0"

    def _columns(self, record: JudgmentRecord, spec: Spec, item: Found) -> dict[str, Any]:
        return turned(record.columns(), order=item.order_of(spec.response_ids))

    def _same(self, old: Judgment, record: JudgmentRecord, spec: Spec, item: Found) -> bool:
        wanted = self._columns(record, spec, item)
        return old.status == record.status and all(getattr(old, name) == wanted[name] for name in COLUMNS)

    def _stored(self, items: Iterable[Found]) -> dict[tuple[int, int, str, int], Judgment]:
        stored: dict[tuple[int, int, str, int], Judgment] = {}
        runs = [run.pk for run in self.runs.values()]
        for ids in chunks(item.pk for item in items):
            found = Judgment.objects.filter(run__in=runs, item__in=ids).defer("analysis", "raw")
            stored |= {(old.run_id, old.item_id, old.order, old.repeat): old for old in found}
        return stored

    def _write(self, fresh: list[tuple[RunKey, Spec, Found, JudgmentRecord]]) -> None:
        for key, _, _, record in fresh:
            if key not in self.runs:
                self.runs[key] = self._run(key, record)
        RunItem.objects.bulk_create(
            [RunItem(run=self.runs[key], item_id=item.pk) for key, _, item, _ in fresh],
            batch_size=1000,
            ignore_conflicts=True,
        )
        Judgment.objects.bulk_create(
            [
                Judgment(
                    run=self.runs[key],
                    item_id=item.pk,
                    order=self._order(record, spec, item),
                    repeat=record.repeat,
                    status=record.status,
                    analysis=record.analysis,
                    raw=record.raw,
                    prompt_tokens=record.prompt_tokens,
                    completion_tokens=record.completion_tokens,
                    cost=record.cost,
                    reason_hash="" if record.status == "ok" else reason_key(record.reason),
                    **self._columns(record, spec, item),
                )
                for key, spec, item, record in fresh
            ],
            batch_size=500,
        )

    def _run(self, key: RunKey, record: JudgmentRecord) -> Run:
        name, protocol, hashed = key
        judge, _ = Judge.objects.get_or_create(name=name)
        return Run.objects.create(
            judge=judge,
            benchmark=self.scene.open(),
            protocol=protocol,
            settings=record.settings,
            settings_hash=hashed,
            state=Run.State.FINISHED,
            imported=True,
            reported_model=record.reported_model,
            finished_at=timezone.now(),
        )
