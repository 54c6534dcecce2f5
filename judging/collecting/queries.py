"""Reads for the pages of collecting runs."""

from accounts.rules import Viewer, allowed
from judging.models import Collected, Run

ROWS = 14  # on a run's page


def newest(run: Run, *, viewer: Viewer, failed: bool) -> list[Collected]:
    """What came of a run's newest calls, for staff; none for others, and none of runs that judge."""
    if run.judges or not allowed(viewer, "read-calls"):
        return []
    rows = Collected.objects.filter(run=run).select_related("sample", "response")
    if failed:
        rows = rows.exclude(status=Collected.Status.OK)
    return list(rows.order_by("-pk")[:ROWS])
