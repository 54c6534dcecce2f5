"""Whether this process answers, and whether the installation can work."""

import contextvars
import logging
import threading

from django.db import DEFAULT_DB_ALIAS, connections
from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts.http import is_local
from accounts.rules import requires
from evalsite import doctor

log = logging.getLogger(__name__)
WITHIN = 1.5  # seconds, of a probe, whatever hangs: who asks gives up soon
HANGS = doctor.fault(f"does not answer within {WITHIN:g} s")
_hanging: threading.Thread | None = None  # a look that has not ended


@requires("read-public")
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


def _look(found: dict[str, doctor.Finding]) -> None:
    for name, examination in {"database": doctor.writable, **doctor.READY, "storage": doctor.storage}.items():
        if name in doctor.READY and found["database"].is_fault:
            continue
        found[name] = HANGS  # until it is done
        found[name] = doctor.safely(examination)


def _findings() -> dict[str, doctor.Finding]:
    """What is found in time, by a thread that has the connection of this one meanwhile. One that hangs keeps it."""
    global _hanging
    if _hanging is not None and _hanging.is_alive():
        return {"status": doctor.fault("what was asked before has not answered yet")}
    found: dict[str, doctor.Finding] = {}
    connection, context = connections[DEFAULT_DB_ALIAS], contextvars.copy_context()
    connection.inc_thread_sharing()
    given_up = threading.Event()

    def look() -> None:
        connections[DEFAULT_DB_ALIAS] = connection
        try:
            context.run(_look, found)
        finally:
            if given_up.is_set():
                connection.close()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(WITHIN)
    if thread.is_alive():
        _hanging = thread
        del connections[DEFAULT_DB_ALIAS]  # this thread makes another one
        given_up.set()
    else:
        connection.dec_thread_sharing()
    return dict(found)


@requires("read-public")
def readyz(request: HttpRequest) -> JsonResponse:
    """The state of database, migrations, keys, storage and worker; 503 unless all are well. Writes nothing.

    What is wrong is told to this machine and to the log; others get the status and no reason.
    """
    states = {name: finding.words if finding.is_fault else "ok" for name, finding in _findings().items()}
    wrong = {name: state for name, state in states.items() if state != "ok"}
    if wrong:
        log.warning("Not ready: %s", "; ".join(f"{name}: {state}" for name, state in wrong.items()))
    told = states if is_local(request) else {"status": "not ready" if wrong else "ok"}
    return JsonResponse(told, status=503 if wrong else 200)
