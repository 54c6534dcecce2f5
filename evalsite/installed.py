"""``evalsite`` as a tool: what a wheel installs (see pyproject.toml), with the data in the platform's data folder.

It is ``evalsite_installed`` in site-packages; everything else lies beside it in ``site/``, which goes on the path here.
"""

import os
import runpy
import sys
from pathlib import Path

import platformdirs

SITE = Path(__file__).resolve().parent / "site"


def main() -> None:
    """``evalsite COMMAND ...`` is ``manage.py COMMAND ...``; without a command it is ``serve``, which starts all."""
    if not os.environ.get("EVALSITE_DATA"):
        os.environ["EVALSITE_DATA"] = platformdirs.user_data_dir("evalsite", appauthor=False)
    if len(sys.argv) == 1:
        sys.argv.append("serve")
    sys.path.insert(0, str(SITE))
    runpy.run_path(str(SITE / "manage.py"), run_name="__main__")
