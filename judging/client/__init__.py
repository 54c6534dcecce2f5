"""Calls to OpenAI-compatible endpoints, and what came of each. The only code that speaks to one.

One call is one attempt: nothing is retried here, and every way in which it can end is an ``Outcome``. Memory and time
are bounded whatever the other side does: a total deadline, a limit on the reply, no redirect followed.

``messages`` what is sent · ``http`` the sending · ``answers`` what came of it · ``hosts`` who may be called.

What sends weighs 20 MB and is loaded when it is first asked for: processes that only show pages do without.
"""

from typing import TYPE_CHECKING, Any

from judging.client.answers import Answer, Outcome, completed, refused, seconds_to_wait
from judging.client.hosts import address_fault, host_allowed
from judging.client.messages import KeyMissing, Pictures, encode, key_from

if TYPE_CHECKING:
    from judging.client.http import Endpoint, Endpoints, Failed, Received

__all__ = [
    "Answer",
    "Endpoint",
    "Endpoints",
    "Failed",
    "KeyMissing",
    "Outcome",
    "Pictures",
    "Received",
    "address_fault",
    "completed",
    "encode",
    "host_allowed",
    "key_from",
    "refused",
    "seconds_to_wait",
]


def __getattr__(name: str) -> Any:
    if name not in ("Endpoint", "Endpoints", "Failed", "Received"):
        raise AttributeError(name)
    from judging.client import http

    return getattr(http, name)
