"""An event loop for calls beside the thread that owns the database connection.

Endpoints are spoken to from a loop in a thread of its own. What it needs of the database is done by the thread that
called ``run``: one connection, statements in the order they were asked for, no transaction across an awaited call.
"""

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from threading import Thread, current_thread, main_thread
from typing import Any, ParamSpec, TypeVar

from django.db import close_old_connections, connection

try:
    import uvloop
except ImportError:  # no wheel for this system
    NEW_LOOP: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
else:
    NEW_LOOP = uvloop.new_event_loop

T = TypeVar("T")
P = ParamSpec("P")

_Request = tuple["Future[Any]", Callable[[], Any]]
_requests: ContextVar["SimpleQueue[_Request | None]"] = ContextVar("requests")
_asked_at: list[float] = []  # of what the database is at


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run a coroutine in a loop of its own; returns what it returns, raises what it raises."""
    requests: SimpleQueue[_Request | None] = SimpleQueue()
    outcome: Future[T] = Future()
    started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Task[T]]] = Future()

    async def top() -> T:
        _requests.set(requests)
        task = asyncio.ensure_future(main())
        started.set_result((asyncio.get_running_loop(), task))
        return await task

    def thread() -> None:
        try:
            with asyncio.Runner(loop_factory=NEW_LOOP) as runner:
                outcome.set_result(runner.run(top()))
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            requests.put(None)

    worker = Thread(target=thread, name="calls", daemon=True)
    worker.start()
    interrupted: BaseException | None = None
    while True:
        try:
            request = requests.get()
            if request is None:
                break
            _serve(*request)
        except KeyboardInterrupt as error:
            interrupted = error
            loop, task = started.result()
            loop.call_soon_threadsafe(task.cancel)
    worker.join()
    if interrupted:
        raise interrupted
    return outcome.result()


def settle() -> None:
    """To be called once before long work: what is loaded by now is no garbage, so nobody need look through it."""
    gc.collect()
    gc.freeze()


def _serve(answer: "Future[Any]", function: Callable[[], Any]) -> None:
    if not answer.set_running_or_notify_cancel():
        return
    _asked_at.append(time.monotonic())
    try:
        if not connection.in_atomic_block:  # a connection that broke is made anew; never in somebody's transaction
            close_old_connections()
        answer.set_result(function())
    except BaseException as error:
        answer.set_exception(error)
        if not isinstance(error, Exception):
            raise
    finally:
        _asked_at.pop()


def waits_since() -> float:
    """For how many seconds the thread of the database has been at what it is at; 0 if at nothing."""
    asked_at = _asked_at[-1:]
    return time.monotonic() - asked_at[0] if asked_at else 0.0


async def db(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that uses the database, in the thread that owns the connection."""
    answer: Future[T] = Future()
    _requests.get().put((answer, lambda: function(*args, **kwargs)))
    return await asyncio.wrap_future(answer)


async def comes(event: asyncio.Event, within: float) -> bool:
    """Wait for an event; whether it came within so many seconds."""
    try:
        async with asyncio.timeout(within):
            return await event.wait()
    except TimeoutError:
        return False


@contextmanager
def signals(act: Callable[[], object], *numbers: signal.Signals) -> Iterator[None]:
    """While inside, these signals call ``act`` in the running loop; a second one ends the process as it would have.

    Signals reach the main thread only: elsewhere this does nothing.
    """
    loop = asyncio.get_running_loop()
    before: dict[int, Any] = {}

    def handle(number: int, frame: object) -> None:
        signal.signal(number, before[number])
        loop.call_soon_threadsafe(act)

    def install() -> None:
        if current_thread() is main_thread():
            before.update({number: signal.signal(number, handle) for number in numbers})

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    _requests.get().put((Future(), install))
    try:
        yield
    finally:
        _requests.get().put((Future(), restore))
