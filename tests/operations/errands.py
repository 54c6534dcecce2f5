"""Jobs of the tests, and a worker that knows them: ``python -m tests.operations.errands [OPTION OF WORKER ...]``."""

import os
import signal
import sys
import time
from pathlib import Path


def spin(*, seconds: float, folder: str) -> None:
    """Compute so long, and until there is a file; files in the folder tell of it."""
    Path(folder, f"begun-{os.getpid()}").touch()
    until = time.monotonic() + seconds
    while time.monotonic() < until or not Path(folder, "go").exists():
        sum(range(10_000))
    Path(folder, "done").touch()


def wait(*, folder: str) -> None:
    """Wait for a file, or for the stop."""
    from accounts.jobs import STOPPING

    Path(folder, f"begun-{os.getpid()}").touch()
    while not Path(folder, "go").exists():
        if STOPPING.is_set():
            Path(folder, "stopped").touch()
            return
        time.sleep(0.02)
    Path(folder, "done").touch()


def die(*, folder: str) -> None:
    """End as a process does that takes too much memory; the second time, do not."""
    if Path(folder, "died").exists():
        Path(folder, "done").touch()
        return
    Path(folder, "died").touch()
    os.kill(os.getpid(), signal.SIGKILL)


def note(*, folder: str, word: str) -> None:
    """Write a word into a file."""
    with Path(folder, "noted").open("a") as file:
        file.write(f"{word}\n")


def register() -> None:
    from accounts import jobs

    jobs.register("draw", "tests.operations.errands.spin", lane=jobs.PAGES)
    jobs.register("note", "tests.operations.errands.note", lane=jobs.PAGES)

    for name in ("spin", "wait", "die"):
        jobs.register(name, f"tests.operations.errands.{name}", lane=jobs.HEAVY)


if __name__ == "__main__":
    import django
    from django.core.management import call_command

    django.setup()
    register()
    call_command("worker", *sys.argv[1:])
