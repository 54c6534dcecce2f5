"""Five judges and people on pairs: ``python -m tests.bench.judges PAIRS`` measures it in a process of its own.

Prints as JSON, in seconds of CPU: the judges' page as a job draws it, and ``leaderboard stand-in``, each in a new
process that nothing was computed for; orjson.dumps of what is exported, and the exports; and in milliseconds an empty
page, and the judges' page after a beat of an idle worker.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from tests.bench import boards

if TYPE_CHECKING:
    from tests.bench.parts import Result

PAIRS, EXPORTED, JUDGES = 200_000, 10_000, 5
MODELS = 20
PAGE = "/leaderboards/wide/judges/"
MANY = {"pairs": 2_000, "models": 1_000, "judges": 100, "people": 1_000}
TABLES = ("models", "judges", "stand-in", "ceiling")


def judges() -> "Iterator[Result]":
    from tests.bench.parts import Result, without_data

    def measured(pairs: int) -> dict[str, Any]:
        command = [sys.executable, "-m", "tests.bench.judges", str(pairs)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=without_data())
        return json.loads(done.stdout.splitlines()[-1])

    found, exported = measured(PAIRS), measured(EXPORTED)
    yield Result("judges' page of a million verdicts, cold, beside 5 s", 5, found["page"], 1)
    yield Result("  leaderboard stand-in", 5, found["stand_in"], 1)
    yield Result("  after an idle worker's beat", found["empty"], found["beat"], 8, "ms")
    for what in ("items", "judgments"):
        taken, dumped = exported[what]
        yield Result(f"export {what}, beside orjson.dumps of the rows", dumped, taken, 12)


def many() -> "Iterator[Result]":
    """Boards of 1,000 models, 100 judges and 1,000 annotators by command, beside an empty page; not who agrees
    with whom, which is 150,000 rows with an interval each.
    """
    from tests.bench.parts import Result, without_data

    command = [sys.executable, "-m", "tests.bench.judges", "many"]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=without_data())
    found = json.loads(done.stdout.splitlines()[-1])
    for table in TABLES:
        yield Result(f"{table} of 1,000 models, 100 judges, 1,000 people", found["empty"], found[table], 7_500)


def fill(pairs: int, *, models: int = MODELS, judges: int = JUDGES, people: int = 3) -> None:
    """``boards.fill`` with more judges, who differ on a tenth each, and three labels each on a sixth of the pairs."""
    from annotations.models import Annotator, Assignment, Campaign, CampaignItem, Label
    from bank.database import bulk
    from bank.models import Benchmark, Item
    from judging.models import Judge, Judgment, Run, RunItem

    boards.fill(votes=pairs, models=models, samples=pairs // 100)
    first, benchmark = Run.objects.get(), Benchmark.objects.get()
    now = "2026-01-01 00:00:00Z"
    votes = list(Judgment.objects.order_by("item").values_list("item", "choice"))
    turned = {"first": "second", "second": "first", "tie": "first"}
    columns = "run_id item_id order repeat status choice reason prompt_sha256 reported_model created_at".split()
    for number in range(1, judges):
        judge = Judge.objects.create(name=f"judge {number}")
        run = Run.objects.get(pk=first.pk)
        run.pk, run.judge = None, judge
        run.save()
        bulk.insert(RunItem, "run_id item_id".split(), [(run.pk, item) for item, _ in votes])
        rows = []
        for place, (item, choice) in enumerate(votes):
            differs = place % 10 == number % 10
            rows.append((run.pk, item, "01", 0, "ok", turned[choice] if differs else choice, "", "", "", now))
        bulk.insert(Judgment, columns, rows)
    campaign = Campaign.objects.create(benchmark=benchmark, name="people", protocol="pair", state="closed")
    given_by = [Annotator.objects.create(name=f"person {n}", pseudonym=f"A{n}") for n in range(people)]
    choices = dict(votes)
    items = Item.objects.order_by("pk").values_list("pk", flat=True)[: pairs // 6]
    asked = CampaignItem.objects.bulk_create(CampaignItem(campaign=campaign, item_id=item) for item in items)
    for slot in range(3):
        by = [given_by[(3 * place + slot) % people] for place in range(len(asked))]
        given = Assignment.objects.bulk_create(
            Assignment(
                campaign_item=of,
                annotator=annotator,
                order="01",
                state="submitted",
                slot=slot,
                leased_at=now,
                lease_until=now,
            )
            for of, annotator in zip(asked, by, strict=True)
        )
        labels = []
        for place, (of, assignment) in enumerate(zip(asked, given, strict=True)):
            choice = choices.get(of.item_id, "tie")
            label = Label(assignment=assignment, campaign=campaign, item_id=of.item_id, annotator=by[place])
            label.created_at = label.changed_at = now
            label.choice = turned[choice] if place % 7 == slot else choice
            labels.append(label)
        Label.objects.bulk_create(labels)


def _apart(work: Callable[[], Any]) -> Any:
    """What ``work`` returns in a process of its own, as JSON."""
    before, after_it = os.pipe()
    if os.fork() == 0:
        os.write(after_it, json.dumps(work()).encode())
        os._exit(0)
    assert os.wait()[1] == 0
    return json.loads(os.read(before, 10_000))


def _taken(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _exported(what: str) -> tuple[float, float]:
    """Seconds of CPU of an export into a file, and of orjson.dumps of all of its rows."""
    import orjson
    from django.core.management import call_command

    with tempfile.NamedTemporaryFile(suffix=".jsonl") as file:
        taken = _taken(
            lambda: call_command("export", what, *f"--benchmark wide --format jsonl --output {file.name}".split())
        )
        with open(file.name, "rb") as lines:
            rows = [orjson.loads(line) for line in lines]
    return taken, _taken(lambda: [orjson.dumps(row) for row in rows])


def main() -> None:
    import django

    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    os.environ.setdefault("EVALSITE_DATA", tempfile.mkdtemp(prefix="evalsite-bench-"))
    django.setup()
    from django.core.management import call_command
    from django.test import Client

    from evalsite import worker

    if sys.argv[1] == "many":
        call_command("migrate", verbosity=0)
        fill(**MANY)
        found = {"empty": min(_taken(lambda: Client().get("/accounts/sign-in/")) for _ in range(20))}
        with open(os.devnull, "w") as nowhere:
            for table in TABLES:
                found[table] = _taken(
                    lambda table=table: call_command("leaderboard", table, benchmark="wide", stdout=nowhere)
                )
        print(json.dumps(found))
        return

    def page() -> None:
        answer = Client().get(PAGE)
        assert answer.status_code == 200, answer.content[:2000]

    def by_job() -> float:
        taken = _taken(lambda: Client().get(PAGE))
        taken += boards.drawn()[0] / 1000
        page()
        return taken

    def kept() -> dict[str, float]:
        empty = min(_taken(lambda: Client().get("/accounts/sign-in/")) for _ in range(20))
        after = []
        for _ in range(5):
            worker.beat("idle")
            after.append(_taken(page))
        return {"empty": 1000 * empty, "beat": 1000 * min(after)}

    def stand_in() -> float:
        with open(os.devnull, "w") as nowhere:
            return _taken(lambda: call_command("leaderboard", "stand-in", benchmark="wide", stdout=nowhere))

    def filled() -> None:
        call_command("migrate", verbosity=0)
        fill(int(sys.argv[1]))

    _apart(filled)
    _taken(lambda: Client().get("/accounts/sign-in/"))  # which loads the program
    found = {"page": _apart(by_job), "stand_in": _apart(stand_in)} | _apart(kept)
    if int(sys.argv[1]) <= EXPORTED:
        found |= {what: _apart(lambda what=what: _exported(what)) for what in ("items", "judgments")}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
