"""The wheel in an empty environment, with the newest packages that its bounds allow, and a walk through it.

``python -m tests.installed WHEEL`` makes the environment, installs by pip (the index is asked: no hashes), starts
``evalsite``, and walks home, a label and a run of a judge. Exit status 1 and a traceback where something is wrong.
"""

import json
import os
import subprocess
import sys
import time
import urllib.request
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from tests.judging.server import Server, answer
from tests.operations.served import free_port

PRODUCTION = ("ALLOWED_HOSTS", "DATABASE_URL", "SECRET_KEY", "CRITERIA_KEYS", "EVALSITE_DATA", "PYTHONPATH")


def main(wheel: str) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "environment", with_pip=True)
        python = folder / "environment" / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
        subprocess.run([*pip, Path(wheel).resolve()], check=True, env=_clean())
        top = {path.name for path in python.parent.parent.glob("lib/*/site-packages/*")}
        assert not top & {"accounts", "annotations", "bank", "evalsite", "judging", "leaderboard", "stats"}, top
        walk([str(python.with_name("evalsite"))], folder)
        print("Installed by pip with the newest packages: home, a label and a run are fine.")


def walk(command: list[str], folder: Path, **environment: str) -> None:
    """Start everything by the bare command's ``serve`` in an empty home, and use it."""
    port = free_port()
    given = _clean() | {"HOME": str(folder), "XDG_DATA_HOME": "", "PORT": str(port)} | environment

    def run(*arguments: str) -> str:
        done = subprocess.run([*command, *arguments], env=given, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(command, env=given, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
    try:
        _wait_for("Ctrl-C stops it.", log, process)
        assert f"its data is in {folder}/.local/share/evalsite" in log.read_text()
        assert "Everyday scenes" in _page(port, "/")
        assert "Bradley-Terry" in _page(port, "/method/formulas/")
        assert "May stand in" in _page(port, "/method/")
        _wait_for("LLMFAO is in, too", log, process)
        token = run("make_user", "annotator", "--role", "annotator", "--token").split()[-1]
        campaigns = json.loads(_page(port, "/api/v1/campaigns/", token=token))["results"]
        name = next(one["name"] for one in campaigns if one["protocol"] == "batch" and one["state"] == "open")
        assignment = json.loads(_page(port, f"/api/v1/campaigns/{quote(name)}/next/", {}, token=token))
        label = {
            "assignment": assignment["assignment"],
            "ranking": [[place] for place in assignment["verdicts"]["ranking"]],
        }
        assert json.loads(_page(port, "/api/v1/labels/", label, token=token))["id"]
        with Server(lambda call: answer("Because it says more.\n[[A]]")) as judge:
            run("add_judge", "walked", "--base-url", judge.url, "--model", "m")
            words = run(
                "judge", "--benchmark", "llmfao", "--judge", "walked", "--protocol", "pair", "--limit=3", "--wait"
            )
        assert "is finished: 6 verdicts" in words, words
        assert "walked" in run("leaderboard", "bias", "--benchmark", "llmfao", "--source", "walked")
        assert "Verified" in run("backup", str(folder / "backups"), "--verify")
    finally:
        process.terminate()
        process.wait(30)
    assert "The data is kept." in log.read_text()


def _clean() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in (*PRODUCTION, "DJANGO_SETTINGS_MODULE")}


def _wait_for(words: str, log: Path, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(3000):
        if words in log.read_text():
            return
        assert process.poll() is None, log.read_text()
        time.sleep(0.1)
    raise AssertionError(log.read_text())


def _page(port: int, path: str, body: object = None, *, token: str = "") -> str:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Token {token}"} if token else {})
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(f"http://localhost:{port}{path}", data, headers)
    with urllib.request.urlopen(asked, timeout=60) as reply:
        return reply.read().decode()


if __name__ == "__main__":
    main(sys.argv[1])
