"""Measure the course's own tools: each module has ``measure()``, which returns findings."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """Hold one measured value beside the limit it is held to.

    Parameters
    ----------
    what : str
        What was measured, with its unit.
    value : float or None
        The measurement; None if this machine cannot make it.
    limit : float or None
        The value it must not pass; None if it is reported only.
    at_least : bool
        Whether `limit` is a lower bound.

    Examples
    --------
    >>> Finding("added time (ratio)", 0.1, 0.125).holds
    True
    >>> Finding("found (of 100)", 93, 95, at_least=True).holds
    False
    >>> Finding("seconds", 3.0, None).holds is None
    True
    """

    what: str
    value: float | None
    limit: float | None = None
    at_least: bool = False

    @property
    def holds(self) -> bool | None:
        """Return whether the limit is kept, or None where there is nothing to decide."""
        if self.limit is None or self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit
