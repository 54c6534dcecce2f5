"""The ledger of exact totals: how many were told, in any place, about what one person submitted to a benchmark.

A total of chosen answers is an equation about what is hidden; many of one author tell each part. So there is at most
one for each ten samples, until a curator who sees the count releases more. What the Ladder tells is none.
"""

import hashlib
import json
from collections.abc import Mapping

from accounts.models import User
from bank.models import Benchmark, ExactTotal, Submission
from bank.submissions import Refused
from stats.disclosure import MIN_SAMPLES
from stats.figures import number_of


def note(*, submission: Submission, made_of: Mapping[str, str], of: str, samples: int) -> None:
    """Note that a total is told; ``made_of`` is the same for a total that is told again. It holds nothing in plain."""
    digest = hashlib.sha256(json.dumps(sorted(made_of.items())).encode()).hexdigest()
    told = {"of": of[:200], "samples": samples}
    ExactTotal.objects.get_or_create(submission=submission, digest=digest, defaults=told)


def told_to(*, benchmark: Benchmark, person: User) -> int:
    """How many totals are out about this person's answers to any version of the benchmark."""
    return ExactTotal.objects.filter(submission__by=person, submission__benchmark__slug=benchmark.slug).count()


def most(benchmark: Benchmark) -> int:
    """How many may be out about one person's answers before a curator, who sees it, releases more."""
    return max(1, benchmark.samples.in_use().count() // MIN_SAMPLES)


def refuse_more(submission: Submission) -> None:
    """Raises Refused where no more may be told about the answers of a submission's sender."""
    told, limit = told_to(benchmark=submission.benchmark, person=submission.by), most(submission.benchmark)
    if told >= limit:
        raise Refused(
            f"{number_of(told, 'exact total')} about the answers of {submission.by} "
            f"{'is' if told == 1 else 'are'} out, and {limit} may be: one for each {MIN_SAMPLES} samples. More of them "
            "together tell what is hidden. Release it all the same if you know why."
        )
