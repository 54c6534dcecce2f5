"""How many judgments came when: the curve on a run's page."""

from datetime import datetime, timedelta
from typing import Any

POINTS = 120  # of a curve


def new(at: datetime) -> dict[str, Any]:
    """An empty curve: ``points`` hold judgments, each over ``width`` seconds, from ``from`` on."""
    return {"from": at.isoformat(timespec="seconds"), "width": 1, "points": []}


def extend(curve: dict[str, Any], number: int, *, now: datetime) -> None:
    """Add judgments at their time. When the curve gets longer than POINTS, they become twice as wide."""
    since = max(0.0, (now - datetime.fromisoformat(curve["from"])) / timedelta(seconds=1))
    while since // curve["width"] >= POINTS:
        _widen(curve)
    points: list[int] = list(curve["points"])
    place = int(since // curve["width"])
    points += [0] * (place + 1 - len(points))
    points[place] += number
    curve["points"] = points


def merged(*curves: dict[str, Any] | None) -> dict[str, Any]:
    """The sum of the curves of several workers; empty where there is none."""
    first, *others = sorted((curve for curve in curves if curve and curve.get("points")), key=_start) or [{}]
    total = dict(first)
    for curve in others:
        while total["width"] < curve["width"]:
            _widen(total)
        for place, number in enumerate(curve["points"]):
            extend(total, number, now=_start(curve) + timedelta(seconds=(place + 0.5) * curve["width"]))
    return total


def _start(curve: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(curve["from"])


def _widen(curve: dict[str, Any]) -> None:
    points = curve["points"]
    curve["points"] = [sum(points[n : n + 2]) for n in range(0, len(points), 2)]
    curve["width"] *= 2
