"""People and teams that may do more with a benchmark than their role gives (ADR 42)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404

from accounts import rights
from accounts.forms import NewGrant
from accounts.http import done, form_page, person, posted
from accounts.models import Grant
from accounts.rules import requires
from bank.views.common import bank_page, benchmark_named


@requires("grant-rights")
@form_page
def benchmark_people(request: HttpRequest, name: str) -> HttpResponse:
    """Who was granted what, and forms to grant a right and to end one."""
    benchmark = benchmark_named(name)
    grants = Grant.objects.filter(benchmark=benchmark.slug).select_related("person", "team")
    if pk := request.POST.get("end"):
        grant = get_object_or_404(grants, pk=pk if pk.isdecimal() and len(pk) < 19 else 0)
        rights.end(grant=grant, by=person(request))
        return done(
            request,
            f"{grant.person or grant.team} may do what the role gives, and no more.",
            "bank:benchmark-people",
            benchmark,
        )
    form = NewGrant(posted(request))
    if form.is_valid():
        to, right = form.cleaned_data["to"], form.cleaned_data["right"]
        given = rights.grant(benchmark=benchmark.slug, to=to, right=right, by=person(request))
        return done(request, f"{to} may {given.words} from now on.", "bank:benchmark-people", benchmark)
    context = {
        "benchmark": benchmark,
        "form": form,
        "grants": grants.prefetch_related("team__members"),
    }
    return bank_page(request, "bank/people.html", context, status=400 if form.errors else 200)
