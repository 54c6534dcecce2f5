"""Judgments from files: one run per judge, protocol and settings; later files add to it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.db.models import F, Model
from django.utils import timezone

from bank.database import bulk, unfinished
from bank.intake.formats.reading import Row
from bank.intake.imports import Report
from bank.intake.imports.context import ImportContext
from bank.intake.imports.items import ABOUT, ITEM, VerdictItems, block_of
from bank.intake.imports.provenance import Closing
from bank.intake.imports.stage import KEY, NUMBER, TEXT, columns_of, seen
from bank.models.verdict import COLUMNS
from judging.judgments.provenance import note_held_by_juries
from judging.models import Judge, Judgment, Run, RunItem, reason_key
from judging.protocols import settings_hash

RunKey = tuple[str, str, str]  # judge, protocol, hash of the settings

STAGED = "staged_judgment"
RESULT = ("status", *COLUMNS)  # what a second judgment of the same place has to say, too
OWN = ("order", "repeat", *RESULT, "analysis", "raw", "prompt_tokens", "completion_tokens", "cost", "reason_hash")
OF_RUN = f"{ITEM} JOIN staged_run run ON run.run = staged.run"
OF_STORED = f"""{OF_RUN} JOIN judging_judgment stored ON stored.run_id = run.stored AND stored.item_id = item.item
        AND stored."order" = staged."order" AND stored.repeat = staged.repeat"""
COUNTED = {  # what a run says of its judgments
    "verdicts": "status = 'ok'",
    "failures": "status <> 'ok'",
    "undecided": "choice = 'undecided'",
}


class Judgments:
    """Imports judgment records of one benchmark.

    ``context.judge``, if given, is the judge of all rows, whatever judge they name.
    """

    def __init__(self, context: ImportContext) -> None:
        self.context, self.stage = context, context.stage
        self.items = VerdictItems(context)
        self.stored: dict[RunKey, Run] = {}
        for run in Run.objects.filter(benchmark=context.benchmark, imported=True).select_related("judge"):
            self.stored[(run.judge.name, run.protocol, run.settings_hash)] = run
        self.numbers: dict[RunKey, int] = {}  # of runs that the file names, and below what it says of each first
        self.about: dict[RunKey, dict[str, Any]] = {}
        self.used: list[RunKey] = []  # runs that get judgments
        self.runs: dict[RunKey, Run] = {}  # the same, stored or made
        self.judges: dict[str, Judge] = {}  # of runs that the import creates
        self.closing, self.closed_now = Closing(context), list[RunKey]()  # runs that the import closes
        self.rows = 0
        self.stage.make("staged_run_item", primary=("run", "k"), run=NUMBER, k=NUMBER, n=NUMBER)
        self.stage.make(STAGED, n=KEY, place=NUMBER, i=NUMBER, run=NUMBER, **columns_of(Judgment, OWN))

    def check(self, rows: list[Row], report: Report) -> None:
        block = block_of(rows)
        if not self.context.judge:
            nameless = [not judge for judge in block.columns["judge"]]
            block = block.without(nameless, "judge", "is missing; name it with --judge", report)
        if self.context.saw_nothing:
            told = [settings.get("criteria") is True for settings in block.columns["settings"]]
            reason = "says that the judge was shown criteria; it did not see nothing"
            block = block.without(told, "settings", reason, report)
        if not len(block):
            return
        columns = block.columns
        columns["reason_hash"] = [
            "" if status == "ok" else reason_key(reason)
            for status, reason in zip(columns["status"], columns["reason"], strict=True)
        ]
        own: dict[str, bulk.Column] = {
            "n": range(self.rows + 1, self.rows + len(block) + 1),
            "place": self.stage.places(block.places),
            "i": self.items.put(block),
            "run": self._runs(columns),
        }
        self.stage.put(STAGED, own | bulk.prepared(Judgment, {name: columns[name] for name in OWN}))
        self.rows += len(block)

    def settle(self, report: Report) -> None:
        self.items.settle(STAGED, report)
        if not self.stage.span(STAGED):
            return
        report.made["items"] += 0  # told first
        self.items.turn(STAGED, "order")
        self._put_runs(self.stored)
        key = {"staged.run": NUMBER, "about.k": NUMBER, 'staged."order"': TEXT, "staged.repeat": NUMBER}
        for where, first, _ in self.stage.repeated(STAGED, ABOUT, key, told="n"):
            reason = f"the same item, order and repeat of this judge already appears at {first}"
            report.refuse(where, "sample", reason)
        for where, is_same in self.stage.stored(STAGED, OF_STORED, Judgment, RESULT):
            if is_same:
                report.unchanged += 1
            else:
                report.refuse(where, "choice", "another verdict is stored for this judgment")
        by_number = {number: key for key, number in self.numbers.items()}
        self.used = [by_number[run] for (run,) in self.stage.ask(f"SELECT DISTINCT run FROM {STAGED} ORDER BY run")]
        report.made["runs"] += len(set(self.used) - self.stored.keys())
        report.made["judgments"] += self.stage.number(f"SELECT count(*) FROM {STAGED}")
        report.closing += self.closing.count(STAGED)
        report.closing_stored += sum(map(self._close, self.used))
        self.items.announce(STAGED, report)
        self._find_run_items()

    def _put_runs(self, known: Mapping[RunKey, Run]) -> None:
        """The ids of the runs that are known, of those that the file names."""
        ids = {number: known[key].pk for key, number in self.numbers.items() if key in known}
        self.stage.make("staged_run", run=KEY, stored=NUMBER)
        self.stage.put("staged_run", {"run": list(ids), "stored": list(ids.values())})

    def _find_run_items(self) -> None:
        """The items that runs do not have yet, each with the number of the first judgment that needs it."""
        self.stage.do(
            f"""INSERT INTO staged_run_item SELECT staged.run, about.k, staged.n FROM {STAGED} staged
            {ABOUT} WHERE true ORDER BY staged.n ON CONFLICT DO NOTHING"""
        )
        if any(key in self.stored for key in self.used):
            self.stage.do(
                f"""DELETE FROM staged_run_item WHERE EXISTS (
                    SELECT 1 FROM staged_run run JOIN staged_item item ON item.k = staged_run_item.k
                    JOIN judging_runitem stored ON stored.run_id = run.stored AND stored.item_id = item.item
                        AND {seen(RunItem, "stored")}
                    WHERE run.run = staged_run_item.run)"""
            )
        self.stage.look_at("staged_run_item")

    def _close(self, key: RunKey) -> int:
        """How many stored judgments of a run close, since these come with them."""
        run = self.stored.get(key)
        if self.context.saw_nothing or run is None:
            return 0
        self.closed_now.append(key)
        return self.closing.stored(Judgment.objects.filter(run=run, status=Judgment.Status.OK), held="run__held")

    def expected_rows(self) -> dict[type[Model], int]:
        runs = len(set(self.used) - self.stored.keys())
        judgments = self.stage.span(STAGED)
        own = {Judge: runs, Run: runs, RunItem: judgments, Judgment: judgments}
        return self.items.expected_rows() | own

    def write(self) -> Iterator[int]:
        writer = self.context.writer
        self.runs = {key: self.stored.get(key) or self._run(key) for key in self.used}
        self._put_runs(self.runs)
        writer.flush()
        self.items.write()
        first = """JOIN staged_run_item first
            ON first.run = staged.run AND first.k = about.k AND first.n = staged.n"""
        columns = {"run_id": "run.stored", "item_id": self.items.pk}
        number = {"id": f"staged.n + {writer.numbered(RunItem, self.stage, STAGED)}"}
        writer.copy_all(RunItem, self.stage, STAGED, f"{OF_RUN} {first}", number | columns)
        columns |= {column: f'staged."{column}"' for column in columns_of(Judgment, OWN)}
        number = {"id": f"staged.n + {writer.numbered(Judgment, self.stage, STAGED)}"}
        yield from writer.copy(Judgment, self.stage, STAGED, OF_RUN, number | columns)

    def finish(self) -> None:
        """Note of which runs nobody knows any more what they held, and count what came in.

        A run that was imported before runs counted themselves stays uncounted.
        """
        self.items.finish()
        closed_now = [self.runs[key].pk for key in self.closed_now]
        Run.objects.filter(pk__in=closed_now).update(held=self.context.held)
        note_held_by_juries(closed_now)
        counts = ", ".join(f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)" for condition in COUNTED.values())
        with unfinished.included():
            for run, *added in self.stage.ask(
                f"""SELECT run.stored, {counts} FROM {STAGED} judgment
                JOIN staged_run run ON run.run = judgment.run GROUP BY run.stored"""
            ):
                more = {name: F(name) + count for name, count in zip(COUNTED, added, strict=True)}
                Run.objects.filter(pk=run).update(**more)

    def _runs(self, columns: Mapping[str, Sequence[Any]]) -> list[int]:
        """The number of each row's run. Where no protocol is named, it is the one called as the kind of item."""
        hashes: dict[str, str] = {}  # by the settings as Python writes them, which tells 1 from True
        numbers = []
        names = ("judge", "protocol", "kind", "settings", "reported_model", "simulated")
        rows = zip(*(columns[name] for name in names), strict=True)
        for judge, protocol, kind, settings, reported, simulated in rows:
            text = repr(settings)
            if text not in hashes:
                hashes[text] = settings_hash(settings)
            key = (self.context.judge or judge, protocol or kind, hashes[text])
            if key not in self.numbers:
                self.numbers[key] = len(self.numbers) + 1
                self.about[key] = {"settings": settings, "reported_model": reported, "simulated": simulated}
            numbers.append(self.numbers[key])
        return numbers

    def _run(self, key: RunKey) -> Run:
        name, protocol, hash_of_settings = key
        writer, about = self.context.writer, self.about[key]
        judge = self.judges.get(name) or Judge.objects.filter(name=name).first()
        judge = judge or writer.make(Judge(name=name, simulated=about["simulated"]))
        self.judges[name] = judge
        return writer.make(
            Run(
                judge=judge,
                benchmark=self.context.open(),
                protocol=protocol,
                settings=about["settings"],
                settings_hash=hash_of_settings,
                state=Run.State.FINISHED,
                imported=True,
                held=self.context.held,
                reported_model=about["reported_model"],
                finished_at=timezone.now(),
                **dict.fromkeys(COUNTED, 0),
            )
        )
