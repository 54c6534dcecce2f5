"""Uploads are worked beside the worker, in a process of its own: a check that takes all memory ends alone."""

import subprocess
import sys
import time

from django.conf import settings

from bank.uploads import work

LINGER = 120  # seconds that it stays for the next upload, or for what somebody confirms: starting takes a while
REST = 5.0  # seconds before another process after one that failed
PATIENCE = 20.0  # seconds it gets to undo what it began


class Beside:
    """Starts ``manage.py work_uploads`` whenever an upload waits and none runs."""

    def __init__(self, *, linger: float = LINGER) -> None:
        self.linger = linger
        self.process: subprocess.Popen[bytes] | None = None
        self.not_before = 0.0

    @property
    def is_busy(self) -> bool:
        return self.process is not None

    def look(self) -> None:
        """To be called every second or so."""
        if self.process is not None:
            status = self.process.poll()
            if status is None:
                return
            self.process = None
            if status:
                self.not_before = time.monotonic() + REST
        if time.monotonic() >= self.not_before and work.is_waiting():
            command = [sys.executable, str(settings.BASE_DIR / "manage.py"), "work_uploads", f"--linger={self.linger}"]
            self.process = subprocess.Popen(command, cwd=settings.BASE_DIR)  # noqa: S603 (ours)

    def stop(self) -> None:
        """End it; what it began is undone or begun again by another."""
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
