"""Where names stand in a plot: beside their dot, on no other dot, name or dashed line."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from math import hypot

from leaderboard.show.fonts import Measure, width_on_page

Spot = tuple[float, float]
Line = tuple[Spot, Spot]
Box = tuple[float, float, float, float]  # left, top, right, bottom
ASCENT, DESCENT = 0.8, 0.25  # of letters above and below the line that they stand on, as shares of their size
FREE = 2.5  # pixels around a name
NEAR, FAR = (9.0, 13.0), (22.0, 34.0, 48.0)  # pixels from the middle of a dot; far ones have a line to it
SIDES = ((1, 0), (-1, 0), (1, -1), (1, 1), (-1, -1), (-1, 1), (0, -1), (0, 1))


@dataclass(frozen=True, slots=True)
class Label:
    """``anchor``: which part of it is at ``x``; ``y``: the line of its letters; ``leader``: to its dot."""

    x: float
    y: float
    anchor: str
    box: Box
    leader: Line | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """``within``: what no name leaves; ``dots`` with their radius; ``barred``: lines that no name crosses; ``thin``:
    those that only a name which may be ``across`` them does; ``taken``: names that stand already.
    """

    within: Box
    width_of: Measure = width_on_page
    dots: list[tuple[Spot, float]] = field(default_factory=list)
    barred: list[Line] = field(default_factory=list)
    thin: list[Line] = field(default_factory=list)
    taken: list[Box] = field(default_factory=list)

    def beside(self, words: str, dot: Spot, size: float, *, across: bool) -> Label | None:
        """Of a dot; None where every place would cover something."""
        wide = self.width_of(words, size)
        return self._first((self._label(place, dot) for place in _around(dot, wide, size)), dot, across=across)

    def along(
        self, words: str, y: float, size: float, *, across: bool, from_right: bool = False, bold: bool = False
    ) -> Label | None:
        """Just above or below a level line."""
        left, _, right, _ = self.within
        wide = self.width_of(words, size, bold=bold)
        free = max(0.0, right - left - wide)
        steps = [free * n / 24 for n in range(25)]
        starts = [right - wide - step if from_right else left + step for step in steps]
        above, below = y - DESCENT * size - FREE - 1, y + ASCENT * size + FREE + 1
        boxes = (_box(x, base, wide, size) for x, base in product(starts, (above, below)))
        at, anchor = (2, "end") if from_right else (0, "start")
        places = (Label(box[at], box[3] - DESCENT * size, anchor, box) for box in boxes)
        return self._first(places, None, across=across)

    def _first(self, places: Iterator[Label], own: Spot | None, *, across: bool) -> Label | None:
        """Of those that may be across intervals, the first that is across the fewest."""
        free = (place for place in places if self._is_free(place, own, across=across))
        found = min(free, key=self._crossed, default=None) if across else next(free, None)
        if found:
            self.taken.append(found.box)
            self.barred.extend([found.leader] if found.leader else [])
        return found

    def _crossed(self, label: Label) -> int:
        return sum(crosses(line, label.box) for line in self.thin)

    def _label(self, box: Box, dot: Spot) -> Label:
        (x, y), (left, top, right, bottom) = dot, box
        size = (bottom - top) / (ASCENT + DESCENT)
        end = min(max(x, left - 1), right + 1), min(max(y, top), bottom)
        far = hypot(end[0] - x, end[1] - y)
        radius = next((r for spot, r in self.dots if spot == dot), 0.0) + 1.5
        leader = None
        if far > max(NEAR) * 1.5:
            leader = (x + (end[0] - x) * radius / far, y + (end[1] - y) * radius / far), end
        start = (right, "end") if right < x else (left, "start") if left > x else ((left + right) / 2, "middle")
        return Label(start[0], bottom - DESCENT * size, start[1], box, leader)

    def _is_free(self, label: Label, own: Spot | None, *, across: bool) -> bool:
        left, top, right, bottom = label.box
        if left < self.within[0] or top < self.within[1] or right > self.within[2] or bottom > self.within[3]:
            return False
        box = left - FREE, top - FREE / 2, right + FREE, bottom + FREE / 2
        if any(_overlap(box, other) for other in self.taken) or self._is_on_dot(label, own):
            return False
        if any(crosses(line, box) for line in (self.barred if across else [*self.barred, *self.thin])):
            return False
        return label.leader is None or not self._is_in_the_way(label.leader, own)

    def _is_on_dot(self, label: Label, own: Spot | None) -> bool:
        """Whether it covers a dot, or is nearer to another one than to its own."""
        near = _away(label.box, own) if own and not label.leader else 0.0
        for spot, radius in self.dots:
            away = _away(label.box, spot)
            if away < radius + 1.5 or (spot != own and away < near):
                return True
        return False

    def _is_in_the_way(self, leader: Line, own: Spot | None) -> bool:
        """Whether a line to a dot crosses a label or another dot."""
        if any(crosses(leader, other) for other in self.taken):
            return True
        return any(spot != own and _from_line(leader, spot) < radius + 1.5 for spot, radius in self.dots)


def _around(dot: Spot, wide: float, size: float) -> Iterator[Box]:
    """Boxes around a dot, the usual places first."""
    (x, y), tall = dot, (ASCENT + DESCENT) * size
    for distance in (*NEAR, *FAR):
        for across, down in SIDES:
            if distance in FAR and not (across and down):  # a line to it would look like the dot's interval
                continue
            away = distance * (0.75 if across and down else 1.0)
            left, top = _start(x, across, away, wide), _start(y, down, away, tall)
            yield left, top, left + wide, top + tall


def _start(dot: float, side: int, away: float, length: float) -> float:
    """Where a box begins along one direction: after the dot, before it, or with the dot in its middle."""
    if side > 0:
        return dot + away
    return dot - away - length if side < 0 else dot - length / 2


def _box(x: float, y: float, wide: float, size: float) -> Box:
    return x, y - ASCENT * size, x + wide, y + DESCENT * size


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and one[2] > other[0] and one[1] < other[3] and one[3] > other[1]


def _away(box: Box, spot: Spot) -> float:
    """From a spot to the nearest of the box; 0 within it."""
    x, y = spot
    return hypot(max(box[0] - x, 0.0, x - box[2]), max(box[1] - y, 0.0, y - box[3]))


def _from_line(line: Line, spot: Spot) -> float:
    (x, y), ((a, b), (c, d)) = spot, line
    length = (c - a) ** 2 + (d - b) ** 2
    share = min(1.0, max(0.0, ((x - a) * (c - a) + (y - b) * (d - b)) / length)) if length else 0.0
    return hypot(x - a - share * (c - a), y - b - share * (d - b))


def crosses(line: Line, box: Box) -> bool:
    """Whether a line has a part within a box (Liang and Barsky)."""
    (a, b), (c, d) = line
    first, last = 0.0, 1.0
    for way, room in ((a - c, a - box[0]), (c - a, box[2] - a), (b - d, b - box[1]), (d - b, box[3] - b)):
        if way == 0:
            if room <= 0:
                return False
            continue
        share = room / way
        first, last = (max(first, share), last) if way < 0 else (first, min(last, share))
        if first >= last:
            return False
    return True
