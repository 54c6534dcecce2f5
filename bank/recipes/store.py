"""Recipes in the database: versions, and those that come with the installation."""

from pathlib import Path

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from accounts.models import User
from accounts.rules import Viewer, allowed
from bank.errors import BadInput
from bank.models import Benchmark, Recipe, Response
from bank.recipes import spec as specs
from bank.recipes.spec import Spec

DEFAULTS = Path(__file__).resolve().parent / "defaults"


class UnknownRecipe(LookupError):
    """There is no recipe of that name and version."""


def get(name: str) -> Recipe:
    """The recipe called NAME (its newest version) or NAME@VERSION. Raises UnknownRecipe."""
    slug, _, version = name.partition("@")
    rows = Recipe.objects.filter(name=slug).order_by("-version")
    if version:
        rows = rows.filter(version=int(version)) if version.isdecimal() and len(version) < 9 else rows.none()
    recipe = rows.first()
    if recipe is None:
        raise UnknownRecipe(f"There is no recipe {name!r}.")
    return recipe


def spec_of(recipe: Recipe) -> Spec:
    """What a stored recipe says."""
    return specs.parsed(recipe.spec | {"name": recipe.name, "version": recipe.version})


def newest() -> "QuerySet[Recipe]":
    """The newest version of every recipe, by name."""
    later = Recipe.objects.filter(name=OuterRef("name"), version__gt=OuterRef("version"))
    return Recipe.objects.filter(~Exists(later))


def is_used(recipe: Recipe) -> bool:
    """Whether answers were collected with it, or are being collected."""
    return Response.all_objects.filter(recipe=recipe).exists() or recipe.runs.exists()


@transaction.atomic
def save(spec: Spec, *, by: User | None = None, built_in: bool = False) -> tuple[Recipe, bool]:
    """Store a recipe; returns it, and whether anything changed.

    A version that was used stays as it is: a change then makes the next one. Raises BadInput for the name of one that
    came with the installation.
    """
    rows = list(Recipe.objects.select_for_update().filter(name=spec.name).order_by("-version"))
    digest = specs.digest(spec)
    if rows and rows[0].built_in and not built_in and rows[0].sha256 != digest:
        raise BadInput(
            f"{spec.name} came with the installation and stays as it is. Save yours under another name.", "name"
        )
    same = next((row for row in rows if row.sha256 == digest), None)
    content = specs.stored(spec)
    if same is not None:
        if same.spec != content and not same.built_in:  # another note
            same.spec = content
            same.save(update_fields=["spec"])
            return same, True
        return same, False
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


def visible_to(viewer: Viewer) -> list[Recipe]:
    """The newest version of each recipe that the viewer may know of: not those about benchmarks that are not public."""
    recipes = list(newest())
    if allowed(viewer, "read-bank"):
        return recipes
    closed = _closed()
    return [recipe for recipe in recipes if not _names(recipe) & closed]


def may_see(recipe: Recipe, viewer: Viewer) -> bool:
    return allowed(viewer, "read-bank") or not _names(recipe) & _closed()


def _closed() -> set[str]:
    rows = Benchmark.objects.exclude(visibility=Benchmark.Visibility.PUBLIC).values_list("slug", "version")
    return {name for slug, version in rows for name in (slug, f"{slug}@{version}")}


def _names(recipe: Recipe) -> set[str]:
    return {str(scenario["benchmark"]) for scenario in recipe.spec["scenario"]}
