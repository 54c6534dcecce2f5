"""Views of boards, frozen."""

from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.db import models

from bank.models import Benchmark
from bank.models.catalogue import is_staff
from leaderboard.rows import in_order

if TYPE_CHECKING:
    from bank.access import Viewer


class SnapshotQuerySet(models.QuerySet["Snapshot"]):
    def visible_to(self, viewer: "Viewer") -> "SnapshotQuerySet":
        return self if is_staff(viewer) else self.filter(benchmark__visibility=Benchmark.Visibility.PUBLIC)


class Snapshot(models.Model):
    """The rows of a view as they were, as everybody could see them, with what made them. It is never changed.

    ``scope`` holds the parameters of the view's address; ``tables`` the ``rows`` and the ``order`` of their columns;
    ``made_from`` the judges' runs with settings and prompts, the majority rule, counts and versions of the methods.
    """

    code = models.CharField(max_length=12, unique=True)  # stands in the address: the fingerprint's beginning
    benchmark = models.ForeignKey(Benchmark, on_delete=models.CASCADE, related_name="snapshots")
    what = models.CharField(max_length=12)  # models, judges, agreement, bias
    scope = models.JSONField(default=dict)
    fingerprint = models.CharField(max_length=64)  # of the view with its data: equal ones hold equal numbers
    tables = models.JSONField()
    made_from = models.JSONField(default=dict)
    computed_at = models.DateTimeField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    objects = SnapshotQuerySet.as_manager()

    class Meta:
        ordering = ["-pk"]
        constraints = [models.UniqueConstraint(fields=["what", "fingerprint"], name="snapshot_once")]

    def __str__(self) -> str:
        return f"{self.what} of {self.benchmark_id}, {self.code}"

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows, their columns in the order of the board."""
        return [in_order(row, self.tables.get("order", [])) for row in self.tables["rows"]]
