"""What a new version of a benchmark says about the one before."""

from bank.models import Benchmark


def mark_retired(benchmark: Benchmark) -> tuple[int, str]:
    """Mark the samples of the version before that are not in this one; (how many were marked now, that version).

    Called again when more samples came in: what came back is marked no more. Nothing is removed.
    """
    older = Benchmark.objects.filter(slug=benchmark.slug, pk__lt=benchmark.pk).order_by("-pk").first()
    if older is None:
        return 0, ""
    here = benchmark.samples.order_by().values("key")
    older.samples.filter(retired_in=benchmark.version, key__in=here).update(retired_in="")
    gone = older.samples.filter(retired_in="").exclude(key__in=here)
    return gone.update(retired_in=benchmark.version), older.version
