"""What a process does not load that does not need it, each tens of megabytes, and what a request does not map."""

import subprocess
import sys
from resource import RUSAGE_THREAD, getrusage

from django.conf import settings
from django.http import HttpResponse
from django.utils.module_loading import import_string

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
import judging.work.worker, judging.endpoints.client
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


def test_calls_within_a_request_take_no_new_memory_as_they_go_back_and_forth(rf):
    """Outside of one the kernel maps thousands of memory pages for these calls, until CPython keeps its chunks."""

    def nested(depth):
        return nested(depth - 1) if depth else 0

    def view(request):
        before = getrusage(RUSAGE_THREAD).ru_minflt
        for depth in range(300):
            for _ in range(10):
                nested(depth)
        return HttpResponse(str(getrusage(RUSAGE_THREAD).ru_minflt - before))

    outermost = import_string(settings.MIDDLEWARE[0])
    assert int(outermost(view)(rf.get("/")).content) < 100
