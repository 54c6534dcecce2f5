"""What every statistic returns, and the errors that it raises."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite


class StatisticsError(ValueError):
    """The input cannot mean what the function was asked for."""


class LengthMismatch(StatisticsError):
    """Columns that describe the same rows differ in length."""


class InvalidOutcome(StatisticsError):
    """A comparison that is not 1, 0.5 or 0, names an unknown model, or sets a model against itself."""


class InvalidCount(StatisticsError):
    """A count that is negative, or larger than what it is a part of."""


class UnknownVerdict(StatisticsError):
    """A verdict outside the vocabulary."""


class DuplicateVerdict(StatisticsError):
    """Two verdicts where there can be only one."""


class UnequalRaters(StatisticsError):
    """Fleiss' kappa was asked for units with different numbers of raters."""


class NotFinite(StatisticsError):
    """A NaN or an infinity was about to be published as a number."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval: `low <= high`, in the unit of the estimate; `level` such as 0.95."""

    low: float
    high: float
    level: float
    method: str

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low <= self.high):
            raise NotFinite(f"no interval: {self.low} to {self.high} ({self.method})")


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number made from `n` rows.

    `value` is None where it cannot be computed and `interval` is None where there is none; `reason`
    then says why. Neither is ever 0 or NaN in place of "unknown". `se` is the standard error in the unit of
    the value, and `groups` how many independent groups of rows it comes from, both None where unknown.
    """

    value: float | None
    n: int
    interval: Interval | None
    method: str
    reason: str = ""
    se: float | None = None
    groups: int | None = None

    def __post_init__(self) -> None:
        if self.value is not None and not isfinite(self.value):
            raise NotFinite(f"{self.method} gave {self.value}")

    @property
    def low(self) -> float | None:
        """The lower end of the interval; None where there is none."""
        return self.interval.low if self.interval else None

    @property
    def high(self) -> float | None:
        """The upper end of the interval; None where there is none."""
        return self.interval.high if self.interval else None
