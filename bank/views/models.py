"""Facts about evaluated models beside their name: who made them, and whether their weights are open."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.http import HttpRequest, HttpResponse, QueryDict
from django.template.defaultfilters import pluralize
from django.urls import reverse

from accounts.http import done, form_page, page_of
from accounts.rules import requires
from bank.errors import BadInput
from bank.models import Benchmark, EvaluatedModel, Response
from bank.views.common import bank_page, benchmark_named, told

LONGEST = 200


@transaction.atomic
def set_makers(*, facts: Mapping[int, tuple[str, bool | None]]) -> int:
    """Set ``(organisation, open)`` by the id of a model; how many changed. Raises BadInput."""
    models = EvaluatedModel.objects.select_for_update().in_bulk(facts)
    changed = []
    for pk, (organisation, is_open) in facts.items():
        name = " ".join(organisation.replace("\x00", "").split())
        if len(name) > LONGEST:
            raise BadInput(f"The name of an organisation has at most {LONGEST} characters.")
        model = models.get(pk)
        if model is None:
            raise BadInput("One of these models is not there any more.")
        if (model.organisation, model.open) != (name, is_open):
            model.organisation, model.open = name, is_open
            changed.append(model)
    EvaluatedModel.objects.bulk_update(changed, ["organisation", "open"], batch_size=500)
    return len(changed)


A_PAGE = 100
WEIGHTS = {"open": True, "closed": False, "": None}
WORDS = [("", "not known"), ("open", "open"), ("closed", "closed")]


@requires("write-bank")
@form_page
def benchmark_models(request: HttpRequest, name: str) -> HttpResponse:
    """A row a model. Only rows that were changed on the page are written, so that two people do not undo each other."""
    benchmark = benchmark_named(name)
    page = page_of(request, _models_of(benchmark), A_PAGE)
    if request.method == "POST":
        with told(request):
            changed = set_makers(facts=_facts_in(request.POST, [model.pk for model in page]))
            return done(
                request,
                f"Saved: {changed} model{pluralize(changed)} changed.",
                f"{reverse('bank:benchmark-models', args=[benchmark])}?page={page.number}",
            )
    known = EvaluatedModel.objects.exclude(organisation="").order_by("organisation")
    context = {
        "benchmark": benchmark,
        "page": page,
        "rows": [(model, "" if model.open is None else "open" if model.open else "closed") for model in page],
        "words": WORDS,
        "organisations": list(known.values_list("organisation", flat=True).distinct()[:500]),
    }
    return bank_page(request, "bank/models.html", context)


def _models_of(benchmark: Benchmark) -> Any:
    answered = Response.objects.filter(sample__benchmark=benchmark).order_by().values("model")
    return EvaluatedModel.objects.filter(pk__in=answered).order_by("name")


def _facts_in(values: QueryDict, ids: list[int]) -> dict[int, tuple[str, bool | None]]:
    facts = {}
    for pk in ids:
        organisation, weights = values.get(f"organisation-{pk}"), values.get(f"weights-{pk}", "")
        if organisation is None or weights not in WEIGHTS:
            continue
        if (organisation, weights) != (values.get(f"had-organisation-{pk}"), values.get(f"had-weights-{pk}")):
            facts[pk] = organisation, WEIGHTS[weights]
    return facts
