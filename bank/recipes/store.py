"""Recipes in the database: versions, and those that come with the installation."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import User
from accounts.rules import Viewer, allowed
from bank import guard
from bank.errors import BadInput
from bank.models import Benchmark, Recipe, Response
from bank.recipes import spec as specs
from bank.recipes.spec import Scenario, Spec

DEFAULTS = Path(__file__).resolve().parent / "defaults"


class UnknownRecipe(LookupError):
    """There is no recipe of that name and version."""


def visible_to(viewer: Viewer) -> "QuerySet[Recipe]":
    """All versions that the viewer may know of: not those about benchmarks that they may not know of."""
    if allowed(viewer, "read-private"):
        return Recipe.objects.all()
    known: dict[str, bool] = {}  # a slug alone is its newest version
    visible = set(Benchmark.objects.visible_to(viewer).values_list("pk", flat=True))
    for pk, slug, version in Benchmark.objects.order_by("pk").values_list("pk", "slug", "version"):
        known |= {slug: pk in visible, f"{slug}@{version}": pk in visible}
    closed = {name for name, is_known in known.items() if not is_known}
    asked = Recipe.objects.values_list("pk", "spec")
    hidden = [pk for pk, spec in asked if not closed.isdisjoint(part["benchmark"] for part in spec["scenario"])]
    return Recipe.objects.exclude(pk__in=hidden)


def get(name: str, viewer: Viewer | None = None) -> Recipe:
    """The recipe called NAME (its newest version) or NAME@VERSION, of those that the ``viewer`` may know of.

    Raises UnknownRecipe.
    """
    slug, _, version = name.partition("@")
    rows = (Recipe.objects.all() if viewer is None else visible_to(viewer)).filter(name=slug).order_by("-version")
    if version:
        rows = rows.filter(version=int(version)) if version.isdecimal() and len(version) < 9 else rows.none()
    recipe = rows.first()
    if recipe is None:
        raise UnknownRecipe(f"There is no recipe {name!r}.")
    return recipe


def spec_of(recipe: Recipe) -> Spec:
    """The content of a stored recipe."""
    return specs.parsed(recipe.spec | {"name": recipe.name, "version": recipe.version})


def newest(recipes: "QuerySet[Recipe]") -> "QuerySet[Recipe]":
    """Of these, the newest version of each, by name."""
    later = recipes.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    return recipes.filter(~Exists(later))


def benchmark_of(scenario: Scenario) -> Benchmark | None:
    """The benchmark that a scenario names, or None if it does not exist."""
    try:
        return Benchmark.objects.named(scenario.benchmark)
    except Benchmark.DoesNotExist:
        return None


@guard.working()
def is_used(recipe: Recipe) -> bool:
    """Whether answers were collected with it, or are being collected."""
    return Response.all_objects.filter(recipe=recipe).exists() or recipe.runs.exists()


@guard.working()
def is_answered(*benchmarks: Benchmark) -> bool:
    """Whether models have answered questions of one of these benchmarks by recipes."""
    return Response.all_objects.exclude(recipe=None).filter(sample__benchmark__in=benchmarks).exists()


@transaction.atomic
def save(spec: Spec, *, by: User | None = None, built_in: bool = False) -> tuple[Recipe, bool]:
    """Store a recipe; returns it, and whether anything changed.

    A version that was used stays as it is: a change then makes the next one. Raises BadInput for the name of one that
    came with the installation.
    """
    rows = list(Recipe.objects.select_for_update().filter(name=spec.name).order_by("-version"))
    digest = specs.digest(spec)
    if not built_in and _changes_built_in(rows, digest):
        raise BadInput(
            f"{spec.name} came with the installation and stays as it is. Save yours under another name.", "name"
        )
    same = next((row for row in rows if row.sha256 == digest), None)
    content = specs.stored(spec)
    if same is not None:
        return same, _keep_note(same, content)
    if rows and not is_used(rows[0]):
        recipe = rows[0]
        recipe.spec, recipe.sha256, recipe.by = content, digest, by
        recipe.save(update_fields=["spec", "sha256", "by"])
        return recipe, True
    version = rows[0].version + 1 if rows else 1
    return (
        Recipe.objects.create(name=spec.name, version=version, spec=content, sha256=digest, built_in=built_in, by=by),
        True,
    )


def _changes_built_in(versions: Sequence[Recipe], digest: str) -> bool:
    return bool(versions) and versions[0].built_in and versions[0].sha256 != digest


def _keep_note(recipe: Recipe, content: dict[str, Any]) -> bool:
    """Store a recipe's new note, its only difference; returns whether there is one."""
    if recipe.spec == content or recipe.built_in:
        return False
    recipe.spec = content
    recipe.save(update_fields=["spec"])
    return True


@transaction.atomic
def remove(recipe: Recipe) -> None:
    """Delete a version that nothing was collected with. Raises BadInput."""
    if recipe.built_in:
        raise BadInput("It came with the installation.")
    if is_used(recipe):
        raise BadInput("Answers were collected with it, so it is kept as a record of how.")
    recipe.delete()


def ensure_defaults() -> None:
    """Store the recipes that come with the installation; those that are there stay."""
    for path in sorted(DEFAULTS.glob("*.yaml")):
        save(specs.from_yaml(path.read_text(encoding="utf-8")), built_in=True)
