"""``python -m evalsite.supervisor``: web server and worker in one process group, started again where one ends.

It is what ``manage.py serve`` becomes once all is prepared. It imports nothing but the standard library: it waits for
months, and Django would cost it 150 MB.
"""

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

STOP_WITHIN = 10  # seconds
OFTEN, WITHIN = 5, 60  # who ends so many times in so many seconds is not started again


class Child:
    """A process of the installation, by the arguments of its Python."""

    def __init__(self, name: str, arguments: list[str]) -> None:
        self.name, self.arguments = name, arguments
        self.starts: list[float] = []
        self.start()

    def start(self) -> None:
        self.starts = [*self.starts[1 - OFTEN :], time.monotonic()]
        self.process = _start(self.arguments)

    @property
    def ended(self) -> bool:
        return self.process.poll() is not None

    def start_again(self) -> None:
        """Raises SystemExit if it has ended too often."""
        if len(self.starts) == OFTEN and time.monotonic() - self.starts[0] < WITHIN:
            sys.exit(f"The {self.name} ended {OFTEN} times within {WITHIN} seconds; see the lines above.")
        print(f"The {self.name} ended ({self.process.returncode}) and is started again.", file=sys.stderr, flush=True)
        time.sleep(1)
        self.start()


def _look_after(children: list[Child], processes: list[subprocess.Popen[bytes]]) -> None:
    for child in children:
        if child.ended:
            child.start_again()
    for process in processes:
        process.poll()  # takes its end notice of the system


def _wait_for(health: str, children: list[Child]) -> None:
    """Until the web server answers. Raises SystemExit if it or the worker ends before."""
    while not _answers(health):
        if any(child.ended for child in children):
            sys.exit("The web server or the worker did not start; see the lines above.")
        time.sleep(0.1)


def main() -> None:
    parser = argparse.ArgumentParser(prog="evalsite.supervisor")
    parser.add_argument("--bind", required=True, help="HOST:PORT of the web server")
    parser.add_argument("--health", required=True, help="the address that answers once it serves")
    parser.add_argument("--say", default="", help="what to print then")
    parser.add_argument("--then", default="", help="the manage.py command to run then, once")
    asked = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    children = [
        Child("web server", ["-m", "gunicorn", "--config", "python:evalsite.web_server", "--bind", asked.bind]),
        Child("worker", ["manage.py", "worker", "-v0"]),  # how to stop says this process
    ]
    processes: list[subprocess.Popen[bytes]] = []  # that end by themselves
    try:
        _wait_for(asked.health, children)
        print(asked.say, flush=True)
        if asked.then:
            # Ctrl-C at the terminal is for this process, which ends that one.
            processes.append(_start(["manage.py", asked.then], interrupted=False))
        while True:
            _look_after(children, processes)
            time.sleep(0.5)
    except KeyboardInterrupt:
        print("\nStopping ...", flush=True)
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # asked twice, it still stops in order
        _stop([*(child.process for child in children), *processes])
    print("Stopped. The data is kept.")


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _start(arguments: list[str], *, interrupted: bool = True) -> subprocess.Popen[bytes]:
    parent = os.getpid()

    def end_with_parent() -> None:
        """Where the system can (Linux): a killed parent takes its children with it, so that no port stays taken."""
        if not interrupted:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(1, signal.SIGTERM)  # PR_SET_PDEATHSIG
            if os.getppid() != parent:
                os._exit(1)

    return subprocess.Popen([sys.executable, *arguments], preexec_fn=end_with_parent)  # noqa: S603 (ours)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 (our own address)
            return True
    except (urllib.error.URLError, OSError):
        return False


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + STOP_WITHIN
    for process in processes:
        try:
            process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()


if __name__ == "__main__":
    main()
