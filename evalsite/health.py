"""Whether this process answers, and whether the installation can work."""

import logging

from django.http import HttpRequest, HttpResponse, JsonResponse

from accounts.http import is_local
from accounts.rules import requires
from evalsite import doctor

log = logging.getLogger(__name__)


@requires("read-public")
def healthz(request: HttpRequest) -> HttpResponse:
    """The process answers."""
    return HttpResponse("ok\n", content_type="text/plain")


def _findings() -> dict[str, doctor.Finding]:
    findings = {"database": doctor.writable()}
    if not findings["database"].is_fault:
        findings |= {name: doctor.safely(examination) for name, examination in doctor.READY.items()}
    return findings | {"storage": doctor.storage()}


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
