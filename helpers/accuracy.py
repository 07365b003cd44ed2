"""Say how sure one is of an accuracy that was counted on finitely many examples."""

from dataclasses import dataclass
from math import sqrt

_Z = 1.959964  # standard deviations on each side that hold 95 % of a normal distribution


@dataclass(frozen=True)
class Accuracy:
    """Hold how many answers were right, and show the share with its 95 % interval.

    The interval is Wilson's, which stays between 0 and 1. It speaks of other examples from the
    same source, not of another training run (see `helpers.scores`), and not of data from
    elsewhere.

    Parameters
    ----------
    correct, total : int
        How many of how many.

    Raises
    ------
    TypeError
        If one of them is no int.
    ValueError
        If nothing was counted or more were right than counted.

    See Also
    --------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
    Journal of the American Statistical Association 22 (1927): https://doi.org/10.2307/2276774

    Examples
    --------
    >>> Accuracy(350, 360)
    97.2 % (350 of 360; 95 % interval 95.0 to 98.5 %)
    """

    correct: int
    total: int

    def __post_init__(self):
        for name in ("correct", "total"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                kind = type(value).__name__
                raise TypeError(
                    f"{name} must be an int, got {kind}; .item() takes it from a tensor"
                )
        if not 0 <= self.correct <= self.total or not self.total:
            raise ValueError(
                f"correct must be from 0 to total and total above 0, got {self.correct} of "
                f"{self.total}; count each example once"
            )

    @property
    def share(self):
        """Return the accuracy, from 0 to 1."""
        return self.correct / self.total

    @property
    def interval(self):
        """Return the lower and the upper end of the 95 % interval, from 0 to 1."""
        n, p, zz = self.total, self.share, _Z**2
        center = (p + zz / (2 * n)) / (1 + zz / n)
        half = _Z * sqrt(p * (1 - p) / n + zz / (4 * n * n)) / (1 + zz / n)
        return max(0.0, center - half), min(1.0, center + half)

    def __str__(self):
        """Return share, counts and interval on one line."""
        low, high = (f"{100 * end:.1f}" for end in self.interval)
        counts = f"{self.correct:,} of {self.total:,}"
        return f"{100 * self.share:.1f} % ({counts}; 95 % interval {low} to {high} %)"

    __repr__ = __str__
