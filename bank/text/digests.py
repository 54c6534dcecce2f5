"""Digests from which everything that is drawn by a seed is drawn: the same on every machine and after every crash."""

import hashlib
import random


def keyed_digest(seed: int, *parts: str, size: int = 16) -> bytes:
    """A digest of so many bytes of these parts, keyed by a seed."""
    return hashlib.blake2b("\x1f".join(parts).encode(), key=str(seed).encode(), digest_size=size).digest()


def drawn_number(*parts: object) -> int:
    """A number of 128 bits that these parts decide, to seed a generator with."""
    digest = hashlib.blake2b("\x1f".join(map(str, parts)).encode(), digest_size=16).digest()
    return int.from_bytes(digest, "big")


def generator(*parts: object) -> random.Random:
    return random.Random(drawn_number(*parts))
