"""What a process does not load that does not need it, each tens of megabytes."""

import subprocess
import sys

SHOWN = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
import evalsite.urls
print(*[name for name in ("scipy.stats", "scipy.optimize", "openai", "aiohttp") if name in sys.modules])
"""

WORKER = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
import judging.work.worker, judging.endpoints.client
print(*[name for name in ("pandas", "scipy", "pyarrow") if name in sys.modules])
"""


def output_of(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_worker_loads_no_tables():
    assert output_of(WORKER) == [""]


def test_the_process_of_a_page_loads_neither_distributions_nor_what_calls_judges():
    assert output_of(SHOWN) == [""]
