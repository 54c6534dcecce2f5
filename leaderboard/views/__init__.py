"""Pages of leaderboard: the index, the start page and the search here; boards and rows in modules of their own."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_safe

from accounts.http import PageRequest
from accounts.models import User
from accounts.rules import ANYWHERE, BY_NAME, allowed, class_of, labels_only, requires
from annotations.views.labelling import desk_for
from bank.models import Benchmark
from bank.recipes import store
from bank.views.common import benchmark_named
from leaderboard.benchmarks import benchmark_counts, newest_visible
from leaderboard.frozen.page import citation_of
from leaderboard.kept.pages import prepared
from leaderboard.kept.values import until_changed
from leaderboard.kinds import available
from leaderboard.pages import benchmark as benchmark_page
from leaderboard.pages import dashboard, search
from leaderboard.pages import home as home_page
from leaderboard.pages import method as method_page
from leaderboard.pages import steps as steps_page
from leaderboard.registry import BOARDS
from leaderboard.submissions import open_benchmarks
from leaderboard.view import Address
from leaderboard.views.frame import frame, of_benchmark


@requires("read-public")
@prepared(by_role=True)
def index(request: HttpRequest) -> HttpResponse:
    """The benchmarks that the viewer may see, newest version each, with what they hold."""
    counts = benchmark_counts(newest_visible(request.user), request.user)
    by_recipes = store.is_answered(*(count.benchmark for count in counts))
    context = {"section": "leaderboards", "benchmarks": counts, "by_recipes": by_recipes}
    return render(request, "leaderboard/index.html", context)


@requires("read-bank", of=BY_NAME)
@require_safe
def steps(request: HttpRequest, name: str) -> HttpResponse:
    """The line of steps of a benchmark, which its page and the end of an import load."""
    (counts,) = benchmark_counts([benchmark_named(name)], request.user)
    steps = steps_page.steps_of(counts)
    return render(request, "leaderboard/_steps.html", {"steps": steps, "counts": counts, "most": steps_page.MANY})


@requires("read-public")
def home(request: HttpRequest) -> HttpResponse:
    """What this installation is, one item as judged, and where things stand; for annotators what waits for them, for
    staff what needs a decision. These see the page of visitors at ``?as=visitor``.
    """
    viewer = request.user
    if isinstance(viewer, User) and allowed(viewer, "read-bank") and request.GET.get("as") != "visitor":
        if request.method == "POST":  # the list of setting up is hidden, or shown again
            viewer.preferences |= {dashboard.SETUP: "shown" if "show" in request.POST else "hidden"}
            viewer.save(update_fields=["preferences"])
            return redirect("home")
        return render(request, "leaderboard/dashboard.html", {"page": dashboard.dashboard_of(viewer)})
    if labels_only(viewer):
        return render(request, "annotations/home.html", {"desk": desk_for(request)})
    return _home(request)


@prepared(by_role=True)
def _home(request: HttpRequest) -> HttpResponse:
    """The home of visitors."""
    page = home_page.build_home_page(request.user)
    picture = page.picture or page.shared
    social = {"social": picture.png, "social_alt": picture.alt} if picture else {}
    return render(request, "leaderboard/home.html", {"home": page} | social)


@requires("label", of=ANYWHERE)
@require_safe
@prepared()
def boards_fed(request: HttpRequest) -> HttpResponse:
    """The boards that a person's labels count for, with who leads there; their home loads it, for it takes a while."""
    boards = home_page.boards_fed(desk_for(request).boards, request.user)
    return render(request, "leaderboard/_boards_fed.html", {"boards": boards})


@requires("read-public")
@require_safe
def find(request: PageRequest) -> HttpResponse:
    """What the search box finds; for htmx the list under it, while somebody types."""
    text, typing = request.GET.get("q", "").strip()[:200], bool(request.htmx)
    groups = search.find(text, request.user, typing=typing)
    similar = [] if groups or len(text) < search.FEWEST else search.similar(text, request.user)
    context = {"text": text, "groups": groups, "similar": similar, "fewest": search.FEWEST}
    return render(request, "leaderboard/_find_hits.html" if typing else "leaderboard/find.html", context)


@requires("read-public")
@require_safe
def method(request: HttpRequest) -> HttpResponse:
    """What each number is, in words for those who read the boards."""
    context = {"sections": method_page.sections(method_page.READERS), "example": method_page.example()}
    return render(request, "leaderboard/method.html", context | {"section": "method"})


@requires("read-public")
@require_safe
def formulas(request: HttpRequest) -> HttpResponse:
    """How each number is computed, with its interval and its source."""
    context = {"sections": method_page.sections(method_page.FORMULAS), "section": "method"}
    return render(request, "leaderboard/method.html", context)


@requires("read-public")
@require_safe
@prepared(by_role=True)
def data(request: HttpRequest) -> HttpResponse:
    """What can be downloaded of each benchmark that the viewer may see, under which licence."""
    counts = benchmark_counts(newest_visible(request.user), request.user)
    offers = []
    for count in counts:
        staff = allowed(request.user, "read-hidden", of=count.benchmark)
        boards = [name for name in BOARDS if available(count.benchmark, name, staff=staff)]
        if any(kind.pairwise for kind in available(count.benchmark, "judges", staff=staff)):
            boards.insert(-1, "agreement")
        offers.append((count, boards))
    return render(request, "leaderboard/data.html", {"section": "data", "offers": offers})


@requires("read-public")
@prepared(by_role=True)
@of_benchmark("benchmark")
def benchmark(request: HttpRequest, address: Address) -> HttpResponse:
    """A benchmark's first page: what it is, and where its models and judges stand."""
    page = until_changed(
        ("benchmark", address.name, class_of(request.user)),
        lambda: benchmark_page.build_benchmark_page(address),
        benchmark=address.benchmark.pk,
    )
    title = address.benchmark.titled
    where = request.build_absolute_uri(request.path)
    citation = citation_of(f"{title}, a benchmark", str(address.benchmark), where)
    context = frame(request, address, "benchmark", []) | {"page": page, "citation": citation}
    context["submit_link"] = _submit_link(request, address.benchmark)
    if page.picture:
        context |= {"social": page.picture.png, "social_alt": page.picture.alt}
    return render(request, "leaderboard/benchmark.html", context)


def _submit_link(request: HttpRequest, benchmark: Benchmark) -> str:
    """Where the viewer may submit to the benchmark; "" if they may not."""
    if not allowed(request.user, "submit") or not open_benchmarks(request.user).filter(pk=benchmark.pk).exists():
        return ""
    return f"{reverse('leaderboard:submission-new')}?{urlencode({'benchmark': str(benchmark)})}"
