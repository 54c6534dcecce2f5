"""What a process that only shows pages does not load: each weighs tens of megabytes."""

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


def test_the_process_of_a_page_loads_neither_arrow_nor_distributions_nor_what_calls_judges():
    done = subprocess.run([sys.executable, "-c", SHOWN], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
