"""The API's document tried out: ``python -m tests.api_check FOLDER [--postgres]``, the folder of the tools'
environment; on SQLite, or on the PostgreSQL of ``tests.on_postgres``.

The document is validated, every GET is asked what it allows and some of what it does not (Schemathesis), a client that
is generated from it labels an item and reads every board, and the project's own client goes the whole way of its
notebook. Exit status 1: something does not hold.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from tests import on_postgres
from tests.operations.served import free_port, wait_for

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "docs" / "client"
# What an installation with a database of its own needs besides.
NOT_LOCAL = {
    "SECRET_KEY": "tests-only-" + "x" * 50,
    "CRITERIA_KEYS": "dGVzdHMtb25seS1rZXktb2YtdGhpcnR5LXR3by1ieXQ=",
    "ALLOWED_HOSTS": "127.0.0.1,localhost",
    "SSL_REDIRECT": "false",
}
EXAMPLES = 4  # for each operation
# Where a value must exist to be asked for.
SETTINGS = '[parameters]\nbenchmark = "llmfao"\nname = "Tried out"\n'
CHECKS = "not_a_server_error,status_code_conformance,response_schema_conformance"
PREPARED = """
import django; django.setup()
from django.core.management import call_command
from accounts.tokens import make_token
from accounts.models import User
from evalsite.demo import accounts, llmfao
from judging.models import Run
call_command("migrate", verbosity=0)
for name in accounts.SIGN_INS:
    accounts.make_account(name)
User.objects.update(password="!")  # only their tokens are used, and no server starts with the demo's password
llmfao.load_llmfao()
call_command("make_campaign", "Tried out", "--benchmark", "llmfao", "--protocol", "pair", "--annotators", "annotator")
for name in ("admin", "annotator"):
    print(make_token(person=User.objects.get(username=name))[1])
print(*Run.objects.order_by("pk").values_list("pk", flat=True)[:2])
"""
# After the notebook: as a large table is exported, by a worker.
LARGE = """
with Client(os.environ["EVALSITE_ADDRESS"], os.environ["EVALSITE_TOKEN"]) as staff:
    made = staff.export("towns-by-script", "by-worker.jsonl", what="responses", later=True)
    assert made.read_bytes() == Path("responses.jsonl").read_bytes()
"""
# Run with the generated client on the path: SITE, the tokens of an administrator and an annotator, two runs, names of
# boards.
DRIVEN = """
import importlib, sys
from board_client import AuthenticatedClient
from board_client.api.campaigns import campaigns_next_create
from board_client.api.labels import labels_create
from board_client.models import LabelIn, NextIn, SideEnum

site, admin, annotator, one, other = sys.argv[1:6]
def client(token):
    return AuthenticatedClient(base_url=site, token=token, prefix="Token", raise_on_unexpected_status=True)
with client(annotator) as labelling:
    item = campaigns_next_create.sync("Tried out", client=labelling, body=NextIn())
    verdict = LabelIn(assignment=item.assignment, idempotency_key="tried", choice=SideEnum.LEFT)
    label = labels_create.sync(client=labelling, body=verdict)
    print("labelled", label.id)
empty = []
with client(admin) as reading:
    for name in sys.argv[6:]:
        module = importlib.import_module(f"board_client.api.leaderboards.leaderboards_{name.replace('-', '_')}_list")
        asks = {"compare": {"a": f"run-{one}", "b": f"run-{other}"}, "disagreements": {"run": one}}
        more = asks.get(name, {})
        answer = module.sync_detailed(client=reading, benchmark="llmfao", **more)
        if answer.status_code == 200 and not answer.parsed:
            empty.append(name)
        print(name, int(answer.status_code), len(answer.parsed) if answer.status_code == 200 else "")
print("without rows:", *empty)
"""


def main(tools: Path, *options: str) -> int:
    postgres = "--postgres" in options
    if postgres and not on_postgres.answers():
        return 0
    with tempfile.TemporaryDirectory() as here, on_postgres.database() if postgres else nullcontext({}) as database:
        return _tried(tools.resolve(), Path(here), database)


def _tried(tools: Path, here: Path, database: dict[str, str]) -> int:
    environment = os.environ | {"EVALSITE_DATA": str(here / "data"), "DJANGO_SETTINGS_MODULE": "evalsite.settings"}
    environment |= NOT_LOCAL | database if database else {}
    document = here / "evalsite.yaml"
    _run([sys.executable, "manage.py", "spectacular", "--fail-on-warn", "--file", document], environment)
    _run([tools / "openapi-spec-validator", document], environment)
    _run([sys.executable, CLIENT / "make_sync.py", "--check"], environment)
    _run([tools / "mypy", "--strict", "--ignore-missing-imports", CLIENT / "src"], environment, here)
    prepared = _run([sys.executable, "-c", PREPARED], environment)
    admin, annotator, *runs = prepared.split()[-4:]
    port, log = free_port(), here / "log"
    command = [sys.executable, "manage.py", "serve", "--no-demo", "--bind", f"127.0.0.1:{port}"]
    with log.open("w") as out:
        server = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=out, stderr=subprocess.STDOUT)
        try:
            wait_for(port, server, log)
            site = f"http://127.0.0.1:{port}"
            (settings := here / "schemathesis.toml").write_text(SETTINGS)
            asked = [
                tools / "schemathesis",
                "--config-file",
                settings,
                "run",
                document,
                "--url",
                site,
                "-H",
                f"Authorization: Token {admin}",
            ]
            asked += ["--include-method", "GET", "--checks", CHECKS, "--max-examples", str(EXAMPLES), "--seed", "1"]
            asked += ["--request-timeout", "60"]
            print(_summary(_run([*asked, "--phases", "fuzzing"], environment, here)))
            options = here / "client.yaml"
            options.write_text("package_name_override: board_client\nproject_name_override: board-client\n")
            generated = here / "client" / "board_client"
            (here / "client").mkdir()
            made = ["generate", "--path", document, "--output-path", generated, "--meta", "none", "--config", options]
            _run([tools / "openapi-python-client", *made], environment)
            boards = _run(
                [
                    sys.executable,
                    "-c",
                    "import django; django.setup(); from leaderboard.registry import TABLES; print(*TABLES)",
                ],
                environment,
            )
            driven = [tools / "python", "-c", DRIVEN, site, admin, annotator, *runs, *boards.split()]
            print(_run(driven, environment | {"PYTHONPATH": str(here / "client")}))
            own = {"EVALSITE_ADDRESS": site, "EVALSITE_TOKEN": admin, "ANNOTATOR_TOKEN": annotator}
            code = f"{notebook(ROOT / 'docs' / 'client' / 'whole_way.ipynb')}\n\n{LARGE}"
            print(_run([tools / "python", "-c", code], environment | own | {"PYTHONPATH": str(CLIENT / "src")}, here))
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(60)
    return 0


def notebook(path: Path) -> str:
    """The code of a notebook, cell after cell."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")


def _summary(said: str) -> str:
    return "\n".join(line for line in said.splitlines() if "generated" in line or "Tested" in line)


def _run(command: list[object], environment: dict[str, str], folder: Path = ROOT) -> str:
    """What a command prints; where it fails, all of it, and exit status 1."""
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=600
    )
    if done.returncode:
        print(done.stdout, done.stderr, f"*** {Path(str(command[0])).name} failed ***", sep="\n")
        raise SystemExit(1)
    return done.stdout


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
