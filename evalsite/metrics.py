"""``/metrics`` for Prometheus: requests and boards as this server's processes timed them, and the installation's state.

The first are kept by prometheus-client in files that the server's processes share (``evalsite.web_server``); the second
is read from the database when somebody asks, so that workers of any machine are in it.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable
from hmac import compare_digest
from typing import Any

from django.conf import settings
from django.db.models import Count, F, Sum
from django.http import HttpRequest, HttpResponse
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector

from accounts import jobs
from accounts.http import is_local
from accounts.models import Mail
from accounts.rules import requires
from annotations.models import Label
from bank import guard
from bank.models import Upload
from judging.models import Attempt, Run, RunHold, WorkerBeat

REQUESTS = Histogram(
    "evalsite_request_seconds",
    "Requests by route and class of status",
    ["method", "route", "status"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 10, 30),
)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
OPEN = (Run.State.QUEUED, Run.State.RUNNING, Run.State.WAITING)
Handler = Callable[[HttpRequest], HttpResponse]


def timed(get_response: Handler) -> Handler:
    """Time each request until its response begins."""

    def middleware(request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        response = get_response(request)
        route = request.resolver_match.view_name if request.resolver_match else ""
        status = f"{response.status_code // 100}xx"
        method = request.method if request.method in METHODS else "other"  # a client's own words would be kept for ever
        REQUESTS.labels(method, route or "none", status).observe(time.perf_counter() - started)
        return response

    return middleware


class Installation(Collector):
    """Metrics from the database: work, its cost, labels, and what waits."""

    def collect(self) -> Iterable[Metric]:
        with guard.working():
            yield from _of_runs()
            yield from _of_calls()
            yield _gauge("workers", "Workers seen in the last minute", WorkerBeat.objects.living().count())
            yield _counter("labels", "Labels given by people", Label.objects.count())
            yield _gauge("jobs_waiting", "Jobs whose time has come", jobs.due())
            yield _gauge("mails_waiting", "Mails that wait to be sent", Mail.objects.count())
            yield _by_state("uploads", "Uploads by state", Upload)
        yield _gauge("free_bytes", "Free space of the data folder", shutil.disk_usage(settings.DATA).free)


def _of_runs() -> Iterable[Metric]:
    yield _by_state("runs", "Runs by state", Run)
    going = Run.objects.filter(state__in=OPEN).aggregate(
        left=Sum(F("planned") - F("verdicts") - F("failures"), default=0)
    )
    yield _gauge("results_waiting", "Results that runs which have not ended still lack", max(0, going["left"]))
    in_flight = RunHold.objects.live().aggregate(calls=Sum("in_flight", default=0))["calls"]
    yield _gauge("calls_in_flight", "Calls that workers wait for", in_flight)


def _of_calls() -> Iterable[Metric]:
    sums = [
        ("calls", "calls", "Calls of judges and models"),
        ("lost", "calls_lost", "Calls that were in flight when their worker died"),
        ("spent", "spent_dollars", "US dollars spent on calls"),
        ("verdicts", "verdicts", "Results stored"),
    ]
    runs = Run.objects.filter(imported=False).values_list("judge__name").order_by("judge__name")
    for column, name, words in sums:
        yield _counters(name, words, ["judge"], runs.annotate(total=Sum(column, default=0)))
    failed = Attempt.objects.values_list("outcome", "http_status").annotate(n=Count("pk")).order_by()
    yield _counters("calls_failed", "Calls without a verdict", ["outcome", "status"], failed)


def _gauge(name: str, words: str, value: float) -> Metric:
    return GaugeMetricFamily(f"evalsite_{name}", words, value=value)


def _counter(name: str, words: str, value: float) -> Metric:
    return CounterMetricFamily(f"evalsite_{name}", words, value=value)


def _by_state(name: str, words: str, model: type[Run] | type[Upload]) -> Metric:
    counted = dict(model.objects.values_list("state").annotate(n=Count("pk")).order_by())
    rows = [(state, counted.get(state, 0)) for state in model.State.values]
    return _filled(GaugeMetricFamily(f"evalsite_{name}", words, labels=["state"]), rows)


def _counters(name: str, words: str, labels: list[str], rows: Iterable[tuple[Any, ...]]) -> Metric:
    return _filled(CounterMetricFamily(f"evalsite_{name}", words, labels=labels), rows)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, rows: Iterable[tuple[Any, ...]]
) -> GaugeMetricFamily | CounterMetricFamily:
    for *labels, value in rows:
        family.add_metric(["" if label is None else str(label) for label in labels], float(value or 0))
    return family


@requires("read-public")
def metrics(request: HttpRequest) -> HttpResponse:
    """For whoever sends METRICS_TOKEN as a bearer token, and for everybody on the machine of a local installation.

    Nobody else is told anything: counts of results tell of runs that are sealed.
    """
    sent = request.headers.get("Authorization", "").removeprefix("Bearer ")
    by_token = bool(settings.METRICS_TOKEN) and compare_digest(sent.encode(), settings.METRICS_TOKEN.encode())
    if not (by_token or (settings.LOCAL and is_local(request))):
        return HttpResponse(status=404)
    registry = CollectorRegistry()
    registry.register(Installation())
    told = generate_latest(registry)
    if os.environ.get("PROMETHEUS_MULTIPROC_DIR"):
        timed_here = CollectorRegistry()
        MultiProcessCollector(timed_here)
        told += generate_latest(timed_here)
    else:
        told += generate_latest(REGISTRY)
    return HttpResponse(told, content_type=CONTENT_TYPE_LATEST)
