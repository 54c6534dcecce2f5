"""What Prometheus is told, by a server of two processes and from the database."""

import json
import os
from pathlib import Path

import pytest
from django.utils import timezone
from prometheus_client.parser import text_string_to_metric_families

from bank.models import Benchmark
from judging.models import Attempt, Judge, Run, RunHold, WorkerBeat
from tests import forks
from tests.judging.outside import ROOT
from tests.operations.served import GUNICORN, asked, free_port, running, wait_for


def samples(text):
    """{(name, the labels' values): value}"""
    families = text_string_to_metric_families(text)
    return {
        (one.name, *(value for name, value in sorted(one.labels.items()) if name != "le")): one.value
        for family in families
        for one in family.samples
        if not one.name.endswith("_bucket")
    }


@pytest.mark.both_databases
def test_it_tells_of_runs_calls_spending_and_failures(client, db, people, settings):
    settings.LOCAL = True
    benchmark = Benchmark.objects.create(slug="a", title="A")
    judge = Judge.objects.create(name="j")
    columns = {"benchmark": benchmark, "judge": judge, "protocol": "pair", "settings_hash": ""}
    Run.objects.create(**columns, state="finished", calls=7, spent=0.5, verdicts=5, planned=5, failures=0)
    going = Run.objects.create(
        **columns, state="running", calls=4, lost=1, spent=0.25, verdicts=2, planned=9, failures=1
    )
    RunHold.objects.create(run=going, until=timezone.now() + timezone.timedelta(seconds=20), in_flight=3)
    for _ in range(2):
        Attempt.objects.create(
            run=going, order="", repeat=0, at=timezone.now(), outcome="rate-limited", http_status=429, seconds=1
        )
    WorkerBeat.objects.create(name="w", seen_at=timezone.now())
    WorkerBeat.objects.create(name="gone", seen_at=timezone.now() - timezone.timedelta(minutes=3))
    told = samples(client.get("/metrics").content.decode())
    expected = {
        ("evalsite_runs", "running"): 1,
        ("evalsite_runs", "waiting"): 0,
        ("evalsite_results_waiting",): 6,
        ("evalsite_calls_in_flight",): 3,
        ("evalsite_calls_total", "j"): 11,
        ("evalsite_calls_lost_total", "j"): 1,
        ("evalsite_spent_dollars_total", "j"): 0.75,
        ("evalsite_verdicts_total", "j"): 7,
        ("evalsite_calls_failed_total", "rate-limited", "429"): 2,
        ("evalsite_workers",): 1,
        ("evalsite_labels_total",): 0,
    }
    assert {name: told[name] for name in expected} == expected


@pytest.mark.parametrize(
    ("sent", "address", "local", "status"),
    [
        ({}, "127.0.0.1", True, 200),
        ({}, "192.0.2.1", True, 404),
        ({}, "127.0.0.1", False, 404),
        ({"HTTP_AUTHORIZATION": "Bearer wrong"}, "127.0.0.1", False, 404),
        ({"HTTP_AUTHORIZATION": "Bearer a-long-token"}, "192.0.2.1", False, 200),
    ],
)
def test_only_who_has_the_token_and_the_machine_of_a_local_installation_learn_of_it(
    client, db, settings, sent, address, local, status
):
    settings.METRICS_TOKEN, settings.LOCAL = "a-long-token", local
    assert client.get("/metrics", REMOTE_ADDR=address, **sent).status_code == status
    settings.METRICS_TOKEN, settings.LOCAL = "", False
    assert client.get("/metrics", REMOTE_ADDR=address, HTTP_AUTHORIZATION="Bearer ").status_code == 404


def test_all_processes_of_a_server_count_into_one_answer(here, tmp_path):
    port, log = free_port(), tmp_path / "log"
    here.manage("collectstatic", "--no-input", "-v0")

    def requests():
        told = samples(asked(port, "/metrics", Authorization="Bearer a-long-token")[2].decode())
        return told.get(("evalsite_request_seconds_count", "GET", "leaderboard:index", "2xx"), 0)

    with running(here, [*GUNICORN, "--bind", f"127.0.0.1:{port}"], log, METRICS_TOKEN="a-long-token") as server:
        wait_for(port, server, log)
        for _ in range(12):
            assert asked(port, "/leaderboards/")[0] == 200
        assert requests() == 12


def test_the_board_for_grafana_asks_for_what_there_is(client, db, settings):
    settings.LOCAL = True
    names = {name for name, *_ in samples(client.get("/metrics").content.decode())}
    board = json.loads((ROOT / "docs" / "grafana.json").read_text(encoding="utf-8"))
    asked_for = {
        word
        for panel in board["panels"]
        for target in panel["targets"]
        for word in target["expr"].replace("(", " ").replace("[", " ").replace("{", " ").split()
        if word.startswith("evalsite_")
    }
    per_judge = {
        "evalsite_calls_total",
        "evalsite_spent_dollars_total",
        "evalsite_calls_failed_total",
        "evalsite_calls_lost_total",
    }
    timed = {f"evalsite_{what}_seconds_{part}" for what in ("request", "board") for part in ("bucket", "count", "sum")}
    assert asked_for
    assert asked_for <= names | per_judge | timed


def test_words_of_a_client_are_no_method_of_their_own(client, db, settings):
    settings.LOCAL = True
    client.generic("BREW", "/")
    told = client.get("/metrics").content.decode()
    assert 'method="other"' in told
    assert "BREW" not in told


@pytest.mark.parametrize("given", [True, False])
def test_what_lies_in_a_given_folder_outlives_the_server(tmp_path, given):
    folder = tmp_path / "given"
    code = (
        "import os, pathlib\nfrom evalsite import web_server\n"
        "folder = pathlib.Path(os.environ['PROMETHEUS_MULTIPROC_DIR'])\n"
        "for name in ('histogram_1.db', 'theirs'): (folder / name).touch()\n"
        "web_server.on_exit(None)\nprint(folder)"
    )
    environment = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(folder) if given else "", "TMPDIR": str(tmp_path)}
    done = forks.run(["-c", code], environment=environment)
    made = Path(done.stdout.strip())
    assert (made == folder) is given
    assert [path.name for path in made.glob("*")] == (["theirs"] if given else [])
