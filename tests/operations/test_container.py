"""Dockerfile, compose.yaml and the systemd unit: checked as files, and their processes started by hand in that layout,
for no engine runs where the tests do.
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

import psycopg
import pytest
import yaml

from tests.judging.outside import ROOT
from tests.on_postgres import URL
from tests.operations.served import asked, free_port, wait_for

SECRETS = {
    "SITE": "eval.example.org",
    "POSTGRES_PASSWORD": "secret",
    "SECRET_KEY": "tests-only-" + "x" * 50,
    "CRITERIA_KEYS": "dGVzdHMtb25seS1rZXktb2YtdGhpcnR5LXR3by1ieXQ=",
}
NOBODY = 65534
# Whether a user can start this Python and its packages, from itself as `serve` does: setpriv finds a program by its own
# rights still, below a home that the user may not enter.
AGAIN = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import django'])"


@pytest.fixture(scope="module")
def compose():
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def instructions():
    """(instruction, the rest) of the Dockerfile."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def filled(text, **more):
    """With what ``${NAME:?hint}`` and ``${NAME:-default}`` stand for."""

    def value(match):
        name, default = match[1], match[3]
        return (SECRETS | more).get(name, default if match[2] == ":-" else "")

    return re.sub(r"\$\{(\w+)(:[-?])?([^}]*)\}", value, str(text))


def test_compose_is_of_its_schema_and_each_service_comes_back_after_a_fault(compose):
    check = ["check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(ROOT / "compose.yaml")]
    done = subprocess.run([sys.executable, "-m", *check], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert all(service["restart"] == "unless-stopped" for service in compose["services"].values())
    images = [service["image"] for service in compose["services"].values()]
    assert not [image for image in images if ":" not in image or image.endswith(":latest")]
    for name in ("web", "worker"):
        service = compose["services"][name]
        assert service["read_only"]
        assert service["cap_drop"] == ["ALL"]
    published = [name for name, service in compose["services"].items() if "ports" in service]
    assert published == ["proxy"]


def test_the_image_has_the_version_of_the_project(compose):
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.M)[1]
    assert compose["services"]["web"]["image"] == f"evalsite:{version}"


# What the image decides, an old name, and what is for development.
OURS = {"EVALSITE_DATA", "PORT", "PROMETHEUS_MULTIPROC_DIR", "BEHIND_PROXY", "DEBUG"}


def test_compose_gives_every_setting_that_there_is_and_no_other(compose):
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([A-Z0-9_]+)` \|", table, re.M))
    web, worker = (set(compose["services"][name]["environment"]) for name in ("web", "worker"))
    assert web == documented - OURS
    assert worker == web | {"OPENAI_API_KEY"}


def test_the_image_holds_what_every_documented_setting_needs(instructions):
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    needed = {"postgres", "s3", "parquet", *re.findall(r"needs the extra `(\w+)`", table)}
    installed = next(rest for name, rest in instructions if name == "RUN" and "pip install" in rest)
    copied = next(rest for name, rest in instructions if name == "COPY" and "requirements/" in rest)
    assert set(re.findall(r"-r /tmp/requirements/(\w+)\.txt", installed)) == {"base", *needed}
    assert set(re.findall(r" ?requirements/(\w+)\.txt", copied)) == {"base", *needed}


def test_the_dockerfile_keeps_the_rules(instructions, compose):
    names = [name for name, _ in instructions]
    bases = [rest.split()[0] for name, rest in instructions if name == "FROM"]
    assert all(re.search(r":\d+\.\d+", base) for base in bases)
    assert "ADD" not in names
    user = dict(instructions)["USER"]
    assert int(user) > 0
    assert names.index("USER") < names.index("CMD")
    for name in ("ENTRYPOINT", "CMD"):
        assert dict(instructions)[name].startswith("[")
    assert "HEALTHCHECK" in names
    pip = next(rest for name, rest in instructions if name == "RUN" and "pip install" in rest)
    assert "--require-hashes" in pip
    assert "--no-cache-dir" in pip
    let_in = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name, rest in instructions:
        if name == "COPY" and "--from" not in rest:
            sources = rest.split()[:-1]
            assert all((ROOT / source).exists() for source in sources)
            assert all(source == "." or f"!{source}" in let_in for source in sources)
    client = re.search(r"postgresql-client-(\d+)", str(instructions))[1]
    assert compose["services"]["db"]["image"].startswith(f"postgres:{client}-")
    assert not [rest for name, rest in instructions if name == "ENV" and re.search(r"KEY|PASSWORD|SECRET", rest)]


def test_the_unit_file_is_one(tmp_path):
    if not shutil.which("systemd-analyze"):
        pytest.skip("The unit file is checked by systemd-analyze")
    text = (ROOT / "docs" / "evalsite.service").read_text(encoding="utf-8")
    assert "ExecStart=/opt/evalsite/.venv/bin/python /opt/evalsite/manage.py serve\n" in text
    unit = tmp_path / "evalsite.service"
    unit.write_text(
        text.replace("/opt/evalsite/.venv/bin/python", sys.executable).replace("User=evalsite", "User=root")
    )
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert "evalsite.service" not in done.stderr, done.stderr


def test_backups_and_commands_beside_the_unit_are_of_its_data():
    unit, backup, installing = (
        (ROOT / "docs" / name).read_text(encoding="utf-8")
        for name in ("evalsite.service", "backup.md", "installing.md")
    )
    data = re.search(r"EVALSITE_DATA=\S+", unit)[0]
    timer = backup.partition("[Service]")[2].partition("[Timer]")[0]
    assert f"Environment={data}\n" in timer
    assert "ExecStart=/opt/evalsite/.venv/bin/python manage.py backup" in timer
    assert f"--setenv={data} " in installing


def carried(folder: Path):
    """What .dockerignore lets into the image, in a folder that nobody may write."""
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (line[1:] for line in lines if line.startswith("!")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, target)
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


def test_a_backup_can_be_made_of_what_the_image_carries(tmp_path):
    app = carried(tmp_path / "app")
    given = {"PATH": os.environ["PATH"], "EVALSITE_DATA": str(tmp_path / "data"), "PYTHONDONTWRITEBYTECODE": "1"}
    for command in (["migrate", "-v0"], ["backup", str(tmp_path / "backups"), "--verify"]):
        argv = [sys.executable, str(app / "manage.py"), *command]
        done = subprocess.run(argv, env=given, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    assert "Verified" in done.stdout


@pytest.fixture
def world_readable():
    """A folder that everybody may enter: those of pytest are for one user."""
    with TemporaryDirectory(prefix="evalsite-compose-", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@contextmanager
def late(port: int, behind: tuple[str, int], seconds: float, asked_for):
    """At this port the database listens only some seconds after `asked_for()` says that somebody waits for it."""
    stop = threading.Event()

    def pump(source, target):
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for end in (source, target):  # both ways: who cancels a statement waits for the end of its connection
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def listen():
        while not asked_for():
            if stop.wait(0.1):
                return
        if stop.wait(seconds):
            return
        with socket.create_server(("127.0.0.1", port)) as server:
            server.settimeout(0.2)
            while not stop.is_set():
                try:
                    client, _ = server.accept()
                except TimeoutError:
                    continue
                client.settimeout(None)
                other = socket.create_connection(behind)
                for pair in ((client, other), (other, client)):
                    threading.Thread(target=pump, args=pair, daemon=True).start()

    thread = threading.Thread(target=listen)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_its_processes_start_by_nobody_from_a_read_only_tree_on_a_database_that_comes_up_late(
    compose, world_readable, seconds
):
    try:
        psycopg.connect(URL, connect_timeout=3).close()
    except psycopg.OperationalError:
        pytest.skip("compose.yaml runs on PostgreSQL: none answers here")
    server, name, relay, port = urlsplit(URL), f"evalsite_compose_{os.getpid()}", free_port(), free_port()
    app, data = carried(world_readable / "app"), world_readable / "data"
    data.mkdir(mode=0o700)
    as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if os.geteuid() == 0 and not subprocess.run([*as_nobody, sys.executable, "-c", AGAIN], cwd=app).returncode:
        os.chown(data, NOBODY, NOBODY)
    else:  # by whoever runs the tests, who is no administrator, or has a Python that nobody else may read
        as_nobody = []
    database = server._replace(netloc=f"{server.netloc.rpartition('@')[0]}@127.0.0.1:{relay}", path=f"/{name}").geturl()
    changes = {"0.0.0.0:8000": f"127.0.0.1:{port}"}

    def started(service, out):
        environment = compose["services"][service]["environment"]
        given = {key: filled(value) for key, value in environment.items() if value is not None}
        given |= {"DATABASE_URL": database, "EVALSITE_DATA": str(data), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [changes.get(word, word) for word in compose["services"][service]["command"]]
        argv = [*as_nobody, sys.executable, str(app / "manage.py"), *command]
        return subprocess.Popen(argv, cwd=app, env={"PATH": os.environ["PATH"], **given}, stdout=out, stderr=out)

    with psycopg.connect(server._replace(path="/postgres").geturl(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        log, processes = world_readable / "log", []
        try:
            log.touch()
            behind = (server.hostname, server.port or 5432)
            with late(relay, behind, seconds, lambda: "waiting up to 60 s" in log.read_text()), log.open("w") as out:
                processes.append(started("web", out))
                wait_for(port, processes[0], log)
                processes.append(started("worker", out))  # depends_on: web is healthy
                wait_for(port, processes[0], log, path="/readyz")
                assert asked(port, "/")[0] == 200
                before = time.monotonic()
                for process in reversed(processes):
                    process.terminate()
                    assert process.wait(30) in (0, -15), log.read_text()
                assert time.monotonic() - before < 30
            assert "Traceback" not in log.read_text()
        finally:
            for process in processes:
                process.kill()
                process.wait()
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
