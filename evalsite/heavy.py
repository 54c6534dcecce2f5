"""The processes of a worker's jobs that compute, for which neither calls nor heartbeats wait.

Nothing is imported here before Django is set up in that process.
"""

import asyncio
import logging
import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

import django
from django.utils.module_loading import import_string

log = logging.getLogger(__name__)
LINGER = 120.0  # seconds that it waits for another job, because starting takes a while
PATIENCE = 15.0  # seconds that a job has to end when the worker stops: less than the queue waits for it
AFTERWARDS = 1.0  # seconds until a killed one is known to be


class HeavyFailed(Exception):
    """A job failed, or its process died."""


class Stopped(Exception):
    """The worker stops: the job was not begun, or was killed before it had ended."""


class HeavyProcess:
    """The process of a worker's jobs of one lane. It starts with the first one, and ends some time after the last.

    ``nice``: how far its jobs stand behind what others do on this machine.
    """

    def __init__(self, lane: str, *, nice: int) -> None:
        self.lane, self.nice = lane, nice
        self._process: Any = None
        self._pipe: Connection | None = None
        self._alone = asyncio.Lock()
        self._end: asyncio.TimerHandle | None = None
        self._stopped = False

    async def do(self, path: str, arguments: dict[str, Any]) -> None:
        """Call a function there. Raises HeavyFailed, and Stopped."""
        async with self._alone:
            if self._stopped:  # whoever hands out the jobs may be slow to hear of it
                raise Stopped
            if self._end:
                self._end.cancel()
            if self._process is None or not self._process.is_alive():
                self._start()
            pipe = self._pipe
            assert pipe is not None
            pipe.send((path, arguments))
            try:
                fault = await asyncio.to_thread(pipe.recv)
            except (EOFError, ConnectionError):
                self.end()
                if self._stopped:
                    raise Stopped from None
                raise HeavyFailed("its process died: perhaps it takes more memory than there is") from None
            self._end = asyncio.get_running_loop().call_later(LINGER, self.end)
            if fault:
                raise HeavyFailed(fault)

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=do_heavy, args=(theirs, self.nice), name=f"{self.lane} jobs", daemon=True
        )
        self._process.start()
        theirs.close()

    async def stop(self) -> None:
        """Begin nothing more, and let the job that it is at end early; one that does not is killed."""
        self._stopped = True
        if self._process is None:
            return
        process = self._process
        for end, seconds in ((process.terminate, PATIENCE), (process.kill, AFTERWARDS)):
            end()
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds), self._alone:
                    pass
        self.end()

    def end(self) -> None:
        """End the process, which is at nothing."""
        if self._end:
            self._end.cancel()
        if self._pipe:
            self._pipe.close()
        if self._process:
            self._process.join(1)  # which ends with its pipe, or was killed: what nobody takes notice of stays listed
        self._process = self._pipe = self._end = None


def do_heavy(pipe: Connection, nice: int) -> None:
    """The main function of that process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the worker says when to stop
    threading.Thread(target=_end_with, args=(multiprocessing.parent_process(),), daemon=True).start()
    os.nice(nice)
    django.setup()
    from accounts.jobs import STOPPING  # now that there are apps

    signal.signal(signal.SIGTERM, lambda number, frame: STOPPING.set())
    while True:
        try:
            path, arguments = pipe.recv()
        except EOFError:
            return
        fault = ""
        try:
            import_string(path)(**arguments)
        except OSError as error:  # of a disk, a network or a storage: its words say what
            fault = str(error)
        except Exception as error:
            log.exception("%s failed", path)
            fault = type(error).__name__
        pipe.send(fault)


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(1)
