"""Which half of a hidden split a sample is in."""

import hashlib
from collections import Counter

from bank.models.submissions import new_seed

MOST_DRAWN, MOST_HASHED = 64, 50_000  # among many clusters any seed is even enough


def is_kept(*, seed: str, cluster: str) -> bool:
    """Whether what belongs to this cluster (samples that share a picture) is in the half whose score is kept back.

    It depends on the seed and the cluster alone, so that samples which come later move no other one between halves.
    """
    return bool(hashlib.sha256(f"{seed}:{cluster}".encode()).digest()[0] & 1)


def even_seed(clusters: Counter[str]) -> str:
    """A secret seed whose halves hold about as many samples each; ``clusters`` counts the samples of each."""

    def unevenness(seed: str) -> int:
        kept = sum(samples for cluster, samples in clusters.items() if is_kept(seed=seed, cluster=cluster))
        return abs(2 * kept - clusters.total())

    draws = max(1, min(MOST_DRAWN, MOST_HASHED // max(1, len(clusters))))
    return min((new_seed() for _ in range(draws)), key=unevenness)
