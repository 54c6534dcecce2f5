"""What a comparison can tell apart, and how many items it takes: before any label is given, and from what was seen."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt

from scipy.special import ndtri

from stats.proportions import USUAL_LIKENESS, normal_quantile
from stats.results import InvalidCount

LEVEL, POWER = 0.95, 0.8
MOST_TIMES = 20.0  # as many items: beyond that a difference is not worth looking for


def detectable(error: float, *, level: float = LEVEL, power: float = POWER) -> float:
    """The smallest true difference that a two-sided test at 1 - level finds with this power, where the difference has
    this standard error: (z_level + z_power) times it (Miller 2024, arXiv 2411.00640, equation 10).
    """
    return (normal_quantile(level) + float(ndtri(power))) * error


def times_as_many(difference: float, error: float, *, level: float = LEVEL, power: float = POWER) -> float | None:
    """How many times as many items, in groups like those seen, find a difference as large as the one seen with this
    power. At least 1; None for no difference, and where it is more than `MOST_TIMES`.
    """
    if not difference:
        return None
    times = max(1.0, (detectable(error, level=level, power=power) / difference) ** 2)
    return times if times <= MOST_TIMES else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Two models to be compared by labels on the same items.

    ``items`` of each model, ``labels`` an item; ``rate``: the share of wins or right answers, in which a tie, given
    with the share ``ties``, is half; ``alike``: the correlation of two labels on one item (an intraclass correlation);
    ``together``: that of what two models deserve on one item; ``in_group``: items that share a picture or prompt.
    """

    items: int
    labels: int = 1
    rate: float = 0.5
    ties: float = 0.0
    alike: float = 0.5
    together: float = 0.0
    in_group: float = 1.0

    def __post_init__(self) -> None:
        if self.items < 1 or self.labels < 1 or self.in_group < 1:
            raise InvalidCount("a plan has at least one item, with one label")
        if not all(0 <= share <= 1 for share in (self.rate, self.ties, self.alike, self.together)):
            raise InvalidCount("rates, ties and correlations lie between 0 and 1")
        if self.ties > 2 * min(self.rate, 1 - self.rate):
            raise InvalidCount("with so many ties the rate cannot be as far from a half")

    @property
    def variance(self) -> float:
        """Of the difference on one item, whose labels are averaged: what the models deserve there, and what labels on
        one item differ by (Miller 2024, equation 9), times what items that share a group add (Kish 1965, 5.4).
        """
        of_label = self.rate * (1 - self.rate) - self.ties / 4
        of_item = self.alike * (1 - self.together) + (1 - self.alike) / self.labels
        return 2 * of_label * of_item * (1 + (self.in_group - 1) * USUAL_LIKENESS)

    def detectable(self, *, level: float = LEVEL, power: float = POWER) -> float:
        """The smallest difference of the two rates that is found with this power."""
        return detectable(sqrt(self.variance / self.items), level=level, power=power)

    def items_for(self, difference: float, *, level: float = LEVEL, power: float = POWER) -> int:
        """How many items of each model find this difference with this power. Raises InvalidCount for none."""
        if not difference:
            raise InvalidCount("no difference can be found with any number of items")
        return max(1, ceil((detectable(sqrt(self.variance), level=level, power=power) / difference) ** 2 - 1e-9))
