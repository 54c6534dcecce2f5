"""Entry point of the web server: many threads receive requests and send responses, few compute.

A client that sends its request slowly, or reads its response slowly, occupies a thread that does nothing else. Only
complete requests go to one of the few computing threads, each of which keeps a database connection.
"""

import gc
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Full, Queue
from threading import Event
from typing import Any

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

IN_MEMORY = 2**20  # bytes of a body; larger ones lie in a file meanwhile
LARGEST = 9 * 2**20  # bytes of a body that is received first: a browser sends files in pieces of 8 MB
ALIVE = "/healthz"  # asks for nothing, and answers while what others wait for is away
AHEAD = 16  # pieces of a long answer that are ready before they are sent
LOOK_EVERY = 1.0  # seconds

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]


class ThreadPoolApplication:
    """A WSGI application that runs another one in ``at_once`` threads of its own."""

    def __init__(self, application: Application, *, at_once: int) -> None:
        self.application, self.at_once = application, at_once
        self.pool: ThreadPoolExecutor | None = None

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        if environ.get("PATH_INFO") == ALIVE:
            return self.application(environ, start_response)
        if self.pool is None:  # made here, for threads do not outlive a fork
            self.pool = ThreadPoolExecutor(self.at_once, thread_name_prefix="computes")
        _receive(environ)
        answer = _Answer()
        self.pool.submit(answer.compute, self.application, environ)
        return answer.sent(start_response)


class _Answer:
    """A response that one thread computes and another sends."""

    def __init__(self) -> None:
        self.head: Future[tuple[Any, ...]] = Future()
        self.pieces: Queue[bytes | BaseException | None] = Queue(AHEAD)
        self.unwanted = Event()

    def compute(self, application: Application, environ: Environ) -> None:
        started: list[Any] = []

        def start_response(*head: Any) -> None:
            started[:] = head

        try:
            result = application(environ, start_response)
            wrapper = environ.get("wsgi.file_wrapper")
            if wrapper is not None and isinstance(result, wrapper):
                self.head.set_result((started, result))  # a file: the server sends it without us
                return
            try:
                if not getattr(result, "streaming", True):
                    self.head.set_result((started, [b"".join(result)]))
                    return
                self.head.set_result((started, None))
                for piece in result:
                    if not self._put(piece):
                        return
                self._put(None)
            finally:
                if close := getattr(result, "close", None):
                    close()
        except BaseException as error:
            if self.head.done():
                self._put(error)
            else:
                self.head.set_exception(error)

    def _put(self, piece: bytes | BaseException | None) -> bool:
        """Pass a piece on; returns whether the client still wants it."""
        while not self.unwanted.is_set():
            try:
                self.pieces.put(piece, timeout=LOOK_EVERY)
            except Full:
                continue
            return True
        return False

    def sent(self, start_response: StartResponse) -> Iterable[bytes]:
        started, whole = self.head.result()
        start_response(*started)
        return self if whole is None else whole

    def __iter__(self) -> Iterator[bytes]:
        while (piece := self.pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            yield piece

    def close(self) -> None:
        self.unwanted.set()


def _receive(environ: Environ) -> None:
    """Read the whole body and replace the stream with it. Large uploads stay as they are: their view decides whether it
    wants them before it reads a byte.
    """
    left = int(environ.get("CONTENT_LENGTH") or 0)
    if not 0 < left <= LARGEST:
        return
    body = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (it is read later)
    while left > 0 and (piece := environ["wsgi.input"].read(min(left, 2**16))):
        body.write(piece)
        left -= len(piece)
    body.seek(0)
    environ["wsgi.input"] = body


AT_ONCE = 4  # requests that a process computes at once; gunicorn's threads only receive and send

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")
os.umask(0o077)
application = ThreadPoolApplication(get_wsgi_application(), at_once=AT_ONCE)
get_resolver().url_patterns  # noqa: B018 (imports every page, which the first request would wait for)

# What start-up made lives as long as the process: without this the collector looks through all of it again and again,
# an eighth of the CPU of a request.
gc.collect()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
