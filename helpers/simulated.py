"""Simulate a device that takes orders at once and works them off later, in virtual seconds.

A GPU is such a device. The simulated one has the calls that matter for timing (``launch``,
``copy``, ``item``, ``synchronize``, ``clock``), gives the same numbers on every machine, and
fits into `helpers.timing`: ``timing.benchmark(call, clock=device.clock,
synchronize=device.synchronize)``.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from typing import NamedTuple

KEPT = 1000  # events; enough to draw, and a long run stays fast


class Event(NamedTuple):
    """Say what occupied a lane, and when.

    Parameters
    ----------
    name : str
        Of the order, or "wait".
    lane : str
        "host" or the name of a stream.
    start, end : float
        Virtual seconds.
    """

    name: str
    lane: str
    start: float
    end: float


class SimulatedDevice:
    """Work off orders in streams while the host goes on; time is virtual and nothing sleeps.

    Within a stream orders run one after another; streams run beside each other.

    Parameters
    ----------
    launch_s : float
        Seconds that the host spends on writing one order.
    queue_depth : int
        Unfinished orders that a stream holds; the host waits to write one more. Real devices
        have such a limit too, but CUDA's documentation names no number.
    first_call_s : float
        Seconds that the first launch of each name costs the host in addition.
    pageable_bytes_per_s, pinned_bytes_per_s : float
        Rates of copies between host and device from ordinary and from pinned memory.

    Raises
    ------
    ValueError
        If a time is negative, a rate is not above zero, or the queue has no room for an order.

    See Also
    --------
    CUDA semantics, asynchronous execution : https://docs.pytorch.org/docs/stable/notes/cuda.html

    Examples
    --------
    >>> device = SimulatedDevice()
    >>> for _ in range(10):
    ...     _ = device.launch("product", 1e-3)
    >>> written = device.clock()
    >>> device.synchronize()
    >>> round(1e3 * written, 3), round(1e3 * device.clock(), 3)  # milliseconds
    (0.05, 10.005)
    """

    def __init__(
        self,
        *,
        launch_s: float = 5e-6,
        queue_depth: int = 1024,
        first_call_s: float = 0.0,
        pageable_bytes_per_s: float = 6e9,
        pinned_bytes_per_s: float = 12e9,
    ) -> None:
        """Start at zero seconds with nothing queued."""
        if queue_depth < 1:
            raise ValueError(f"queue_depth must be at least 1, got {queue_depth}; CUDA holds many")
        _check_seconds("launch_s", launch_s)
        _check_seconds("first_call_s", first_call_s)
        _check_rate("pageable_bytes_per_s", pageable_bytes_per_s)
        _check_rate("pinned_bytes_per_s", pinned_bytes_per_s)
        self.waits = 0
        self._launch_s, self._first_call_s = launch_s, first_call_s
        self._depth = queue_depth
        self._rates = {False: pageable_bytes_per_s, True: pinned_bytes_per_s}
        self._now = 0.0
        self._seen: set[str] = set()
        self._ends: dict[str, float] = defaultdict(float)  # when each stream is through
        self._queues: dict[str, deque[float]] = defaultdict(deque)
        self._events: list[Event] = []

    @property
    def events(self) -> tuple[Event, ...]:
        """Return the first thousand events in the order in which they were ordered."""
        return tuple(self._events)

    @property
    def queued(self) -> int:
        """Return how many orders are unfinished at this moment."""
        return sum(end > self._now for queue in self._queues.values() for end in queue)

    def clock(self) -> float:
        """Return the host's time in virtual seconds."""
        return self._now

    def host(self, name: str, seconds: float) -> None:
        """Let the host do something itself, such as loading a batch.

        Parameters
        ----------
        name : str
            What it does.
        seconds : float
            How long.
        """
        _check_seconds("seconds", seconds)
        self._keep(name, "host", self._now, self._now + seconds)
        self._now += seconds

    def launch(
        self, name: str, seconds: float, *, stream: str = "compute", after: float = 0.0
    ) -> float:
        """Order a kernel and go on.

        Parameters
        ----------
        name : str
            Of the kernel.
        seconds : float
            How long the device works on it.
        stream : str
            Where it queues.
        after : float
            Do not start earlier: what `launch` or `copy` returned for the order to wait for.

        Returns
        -------
        float
            When it will be finished, in virtual seconds.
        """
        _check_seconds("seconds", seconds)
        queue = self._queues[stream]
        while queue and queue[0] <= self._now:
            queue.popleft()
        if len(queue) >= self._depth:
            self._wait_until(queue.popleft())
        cost = self._launch_s
        if self._first_call_s and name not in self._seen:
            self._seen.add(name)
            cost += self._first_call_s
        self._keep(name, "host", self._now, self._now + cost)
        self._now += cost
        start = max(self._now, self._ends[stream], after)
        end = start + seconds
        self._ends[stream] = end
        queue.append(end)
        self._keep(name, stream, start, end)
        return end

    def copy(
        self,
        name: str,
        nbytes: int,
        *,
        pinned: bool = False,
        non_blocking: bool = False,
        stream: str = "compute",
    ) -> float:
        """Order a copy to the device; the host goes on only if it is pinned and non-blocking.

        Parameters
        ----------
        name : str
            Of the copy.
        nbytes : int
            How many bytes.
        pinned, non_blocking : bool
            Kind of host memory, and whether the host asked not to wait.
        stream : str
            Where it queues.

        Returns
        -------
        float
            When it will be finished, in virtual seconds.
        """
        end = self.launch(name, nbytes / self._rates[pinned], stream=stream)
        if not (pinned and non_blocking):
            self._wait_until(end)
        return end

    def synchronize(self, device: object = None) -> None:
        """Wait until all orders are finished.

        Parameters
        ----------
        device : object, optional
            Ignored; there for the signature of `torch.accelerator.synchronize`.
        """
        self.waits += 1
        self._wait_until(max(self._ends.values(), default=0.0))

    def item(self) -> None:
        """Wait for the last result, as ``tensor.item()`` does."""
        self.synchronize()

    def _wait_until(self, moment: float) -> None:
        if moment > self._now:
            self._keep("wait", "host", self._now, moment)
            self._now = moment

    def _keep(self, name: str, lane: str, start: float, end: float) -> None:
        if len(self._events) < KEPT:
            self._events.append(Event(name, lane, start, end))


def _check_seconds(name: str, seconds: float) -> None:
    if not 0 <= seconds < math.inf:
        raise ValueError(f"{name} must be zero or more seconds, got {seconds}; 5e-6 is 5 µs")


def _check_rate(name: str, rate: float) -> None:
    if not 0 < rate < math.inf:
        raise ValueError(f"{name} must be above zero, got {rate}; 6e9 is 6 GB/s")
