"""Rows that pages name or show, by their numbers."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from string import ascii_uppercase

from django.urls import reverse

from accounts.rules import Viewer, allowed
from bank.database import chunks
from bank.models import Benchmark, EvaluatedModel, Item, ItemResponse, Response, Sample
from judging.models import Run
from leaderboard.scope import answers_shown


@dataclass(frozen=True, slots=True)
class KnownModel:
    """What is known of an evaluated model beside its rows. ``page``: its address."""

    page: str = ""
    organisation: str = ""
    simulated: bool = False
    is_open: bool | None = None
    parameters: str = ""
    price_out: float | None = None


class KnownModels(dict[str, KnownModel]):
    """By name. Of a variant of a model nothing is known."""

    def __missing__(self, name: str) -> KnownModel:
        return KnownModel()

    def shown(self, name: str) -> str:
        """Its name for texts and plots, which have no chips."""
        return f"{name} (simulated)" if self[name].simulated else name


def known_models(names: Iterable[str]) -> KnownModels:
    facts = ("name", "pk", "organisation", "simulated", "open", "parameters", "price_out")
    known = KnownModels()
    for some in chunks(names):
        for name, pk, *told in EvaluatedModel.objects.filter(name__in=some).values_list(*facts):
            known[name] = KnownModel(reverse("leaderboard:model-detail", args=[pk]), *told)
    return known


def has_answered(benchmark: Benchmark, model: str, viewer: Viewer) -> bool:
    """Whether the model has answers that boards show this viewer: below staff, no submissions that wait for release."""
    return (
        answers_shown(staff=allowed(viewer, "read-hidden", of=benchmark))
        .filter(sample__benchmark=benchmark, model__name=model)
        .exists()
    )


def runs_of(ids: Iterable[int]) -> dict[int, Run]:
    """With their judges, in the order of their numbers."""
    return Run.objects.filter(pk__in=ids).select_related("judge").order_by("pk").in_bulk()


def samples_by_id(ids: Iterable[int]) -> dict[int, Sample]:
    return Sample.objects.select_related("capability").prefetch_related("images").in_bulk(list(ids))


def texts_of(samples: Iterable[int], model: str, viewer: Viewer) -> dict[int, str]:
    """A model's first answer to each sample, as far as the viewer may read them."""
    rows = Response.objects.seen_by(viewer).filter(sample__in=list(samples), model__name=model)
    return dict(rows.order_by("sample", "-variant").values_list("sample", "text"))


def items_with_samples(ids: Iterable[int]) -> dict[int, Item]:
    return Item.objects.select_related("sample__capability").prefetch_related("sample__images").in_bulk(list(ids))


def model_names(ids: Iterable[int]) -> dict[int, list[str]]:
    """The models of pairs in canonical order, with the variant if there is one."""
    places = ItemResponse.objects.filter(item__in=list(ids)).order_by("item", "position")
    names: dict[int, list[str]] = defaultdict(list)
    for item, model, variant in places.values_list("item", "response__model__name", "response__variant"):
        names[item].append(f"{model} ({variant})" if variant else model)
    return names


def names_of(item: Item, viewer: Viewer) -> list[str]:
    """The same of one item, as far as this viewer is told them: answers that people label blind have letters alone."""
    names = model_names([item.pk])[item.pk]
    if not item.hides_authors_from(viewer):
        return names
    return [f"Answer {letter}" for letter in ascii_uppercase[: len(names)]]
