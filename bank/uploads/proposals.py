"""What the page proposes to do with files that were looked at."""

import re
from itertools import islice
from pathlib import PurePath
from typing import Any

from django.db.models import Count

from bank.formats import generic, reader
from bank.formats.reading import BadFile, Row
from bank.imports.bundle import Look
from bank.models import Benchmark, Sample, Upload

LOOKED_AT = 50


def propose(upload: Upload, seen: Look) -> dict[str, Any]:
    """``{benchmark, version, title, visibility, anchor, parts}``: the benchmark is that of the format, or of the
    file's name; of files without samples the one that holds the samples they name."""
    stored = None
    if "samples" in seen.parts:
        slug = re.sub(r"[^a-z0-9_-]+", "-", _stem(upload.name).lower()).strip("-")[:80] or "benchmark"
        slug = slug if seen.format == generic.NAME else seen.format
        title = _title(slug) if seen.format == generic.NAME else seen.name
        stored = Benchmark.objects.filter(slug=slug).order_by("-pk").first()
    else:
        stored = _named_in(seen)
        slug, title = (stored.slug, stored.title) if stored else ("", "")
    anchor = seen.module.anchor(seen.path) if hasattr(seen.module, "anchor") else ""
    return {
        "benchmark": slug,
        "version": stored.version if stored else "1",
        "title": stored.title if stored else title,
        "visibility": stored.visibility if stored else "private",
        "anchor": "" if stored else anchor,
        "parts": list(seen.parts),
    }


def _named_in(seen: Look) -> Benchmark | None:
    """The benchmark that holds most of the samples that the first rows name; of several versions the newest."""
    keys: set[str] = set()
    for part in seen.parts:
        try:
            rows = islice(reader(seen.module, part)(seen.path), LOOKED_AT)
            keys |= {row.data.sample for row in rows if isinstance(row, Row)}
        except BadFile:
            continue
    counted = Sample.objects.filter(key__in=list(keys)).order_by().values("benchmark").annotate(n=Count("pk"))
    best = counted.order_by("-n", "-benchmark").first()
    return Benchmark.objects.get(pk=best["benchmark"]) if best else None


def _stem(name: str) -> str:
    stem = PurePath(name).name
    while (shorter := PurePath(stem).stem) != stem and re.fullmatch(r"\.[A-Za-z]{2,8}", PurePath(stem).suffix):
        stem = shorter
    return stem


def _title(slug: str) -> str:
    return slug.replace("-", " ").replace("_", " ").capitalize()
