"""Settings of ``gunicorn evalsite.wsgi``, which reads this file in the folder where it is started."""

import subprocess
import sys
from pathlib import Path

# Look once, before the site is loaded, whether this installation may start: see evalsite.checks.
_manage = Path(__file__).with_name("manage.py")
if subprocess.run([sys.executable, str(_manage), "may_start", "--web"]).returncode:  # noqa: S603 (ours)
    sys.exit(1)

from evalsite.web_server import *  # noqa: E402, F403 (it makes a folder)
