"""Settings of ``gunicorn evalsite.wsgi``, which reads this file in the folder where it is started."""

import subprocess
import sys
from pathlib import Path

from evalsite.web_server import *  # noqa: F403


def on_starting(server: object) -> None:
    """Look once, before any process serves, whether this installation may: see evalsite.checks."""
    manage = Path(__file__).with_name("manage.py")
    if subprocess.run([sys.executable, str(manage), "may_start", "--web"]).returncode:  # noqa: S603 (ours)
        sys.exit(1)
