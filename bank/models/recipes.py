"""Recipes: how models are asked, and how what they answer becomes a number (ChEF, arXiv 2311.02692, section 2)."""

from django.db import models

from accounts.models import User


class Recipe(models.Model):
    """One version of a recipe. ``spec`` is what ``bank.recipes.spec.Spec`` holds, without name and version.

    A version that was used never changes: a change makes the next one.
    """

    name = models.SlugField(max_length=80, db_index=False)
    version = models.PositiveIntegerField(default=1)
    spec = models.JSONField()
    sha256 = models.CharField(max_length=64)  # of the spec, written in one way
    built_in = models.BooleanField(default=False)  # came with the installation
    by = models.ForeignKey(User, on_delete=models.PROTECT, null=True, blank=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "-version"]
        constraints = [models.UniqueConstraint(fields=["name", "version"], name="recipe_version")]

    def __str__(self) -> str:
        return f"{self.name}@{self.version}"
