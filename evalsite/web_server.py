"""How gunicorn serves evalsite: its settings, for ``manage.py serve`` and for ``gunicorn.conf.py``."""

import logging
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

wsgi_app = "evalsite.wsgi"
bind = f"127.0.0.1:{os.environ.get('PORT') or 8000}"
workers = 2
preload_app = True  # loaded before anything can ask: the first request is as fast as the second, and memory is shared
# Threads receive requests and send answers; four of a process compute (evalsite.wsgi). A thread is made when it is
# needed, so that many cost little; a client that sends half a request holds one.
worker_class = "gthread"
threads = 256
worker_connections = 800  # below the 1024 open files that most systems allow a process
keepalive = 5
timeout = 120
graceful_timeout = 5
max_requests = 20_000  # a process ends then, and with it what has gathered in its memory
max_requests_jitter = 2_000
loglevel = "warning"
control_socket_disable = True
umask = 0o077
# What a proxy says is believed by TRUSTED_PROXIES alone (evalsite.settings), not by the server, too.
forwarded_allow_ips = ""

# Where the processes of this server keep what /metrics tells of requests. They find it in their environment.
_OWN = "evalsite-metrics-"
if not os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = tempfile.mkdtemp(prefix=_OWN)
os.makedirs(os.environ["PROMETHEUS_MULTIPROC_DIR"], mode=0o700, exist_ok=True)


def when_ready(server: Any) -> None:
    """Say nothing of memory where a worker is killed since it did not stop in time: then the server listens no more."""

    def tells(record: logging.LogRecord) -> bool:
        return bool(server.LISTENERS) or "out of memory" not in record.getMessage()

    logging.getLogger("gunicorn.error").addFilter(tells)


def on_exit(server: object) -> None:
    """Remove what was counted, and the folder only if it was made here: another may hold other things."""
    folder = Path(os.environ["PROMETHEUS_MULTIPROC_DIR"])
    if folder.name.startswith(_OWN):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        for file in folder.glob("histogram_*.db"):
            file.unlink(missing_ok=True)
