"""What a process does not load that does not need it, each tens of megabytes."""

import subprocess
import sys

SHOWN = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
import evalsite.urls
print(*[name for name in ("pyarrow", "scipy.stats", "scipy.optimize", "openai", "aiohttp") if name in sys.modules])
import pyarrow.parquet
"""

WORKER = """
import django, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
django.setup()
import evalsite.worker, judging.endpoints.client
print(*[name for name in ("pandas", "scipy", "pyarrow") if name in sys.modules])
import pandas
print(pandas.DataFrame({"name": ["a"]}).dtypes["name"].storage)
import pyarrow.parquet
"""


def output_of(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.splitlines()


def test_a_worker_loads_no_tables_and_arrow_stays_at_hand():
    assert output_of(WORKER) == ["", "python"]


def test_the_process_of_a_page_loads_neither_arrow_nor_distributions_nor_what_calls_judges():
    assert output_of(SHOWN) == [""]
