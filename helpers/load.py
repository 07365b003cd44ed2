"""Send requests to a server, on a schedule or one after another, and keep what became of each."""

from __future__ import annotations

import asyncio
import gc
import math
import random
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from helpers import plotting
from helpers.plotting import Chart
from helpers.units import format_time

if TYPE_CHECKING:
    import httpx

_Result = TypeVar("_Result")
Events = Mapping[float, Callable[[], object]]


@dataclass(frozen=True)
class Request:
    """Hold what became of one request; times in seconds since the start of the load.

    Attributes
    ----------
    scheduled, sent : float
        When it was due, and when the client came to it.
    finished : float or None
        When the answer was there, of whatever status; None without an answer.
    status : int or str
        Of HTTP, or "refused" (no connection), "lost" (connection broken), "timeout".
    answer : dict or None
        The body, where the status is 200.
    model_seconds : float or None
        How long the model took, as the server says.
    """

    scheduled: float
    sent: float
    finished: float | None
    status: int | str
    answer: dict[str, Any] | None = field(default=None, repr=False)
    model_seconds: float | None = None

    @property
    def latency(self) -> float:
        """Return the seconds from when it was due to its answer; without one, infinity."""
        return math.inf if self.finished is None else self.finished - self.scheduled


@dataclass(frozen=True)
class Load:
    """Hold the requests of one load test, in order of their schedule.

    Attributes
    ----------
    requests : tuple of Request
        All of them, answered or not.
    seconds : float
        From the start to the end of the last one.

    Examples
    --------
    >>> Load((Request(0.0, 0.1, 0.5, 200), Request(1.0, 1.0, None, "lost")), 2.0)
    2 requests: 1 x 200, 1 x lost
    """

    requests: tuple[Request, ...]
    seconds: float

    @property
    def statuses(self) -> dict[int | str, int]:
        """Return how many requests ended with each status."""
        found = Counter(request.status for request in self.requests)
        return {status: found[status] for status in sorted(found, key=str)}

    @property
    def answers(self) -> tuple[dict[str, Any], ...]:
        """Return the bodies of the answers with status 200, in order of the schedule."""
        return tuple(r.answer for r in self.requests if r.answer is not None)

    @property
    def lateness(self) -> float:
        """Return the 99th percentile of how late the client itself was, in seconds.

        Where this is not small, the client was the bottleneck and the load test says little.
        """
        return percentile([r.sent - r.scheduled for r in self.requests], 0.99)

    def only(self, status: int | str) -> Load:
        """Return the requests that ended with one status.

        Parameters
        ----------
        status : int or str
            As `statuses` names it.

        Returns
        -------
        Load
            Of the same duration.
        """
        return Load(tuple(r for r in self.requests if r.status == status), self.seconds)

    def latency(self, share: float) -> float:
        """Return the latency that a share of the requests does not exceed.

        Parameters
        ----------
        share : float
            Such as 0.5 for the median, 0.99 for the 99th percentile.

        Returns
        -------
        float
            Seconds; infinity where so many had no answer.
        """
        return percentile([request.latency for request in self.requests], share)

    def in_time(self, deadline: float) -> int:
        """Count the answers with status 200 that came within a deadline.

        Parameters
        ----------
        deadline : float
            Seconds after a request was due.

        Returns
        -------
        int
            At most ``len(requests)``.
        """
        return sum(r.latency <= deadline for r in self.requests if r.status == 200)

    def __repr__(self) -> str:
        parts = ", ".join(f"{n:,} x {status}" for status, n in self.statuses.items())
        return f"{len(self.requests):,} requests: {parts or 'none'}"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that a share of all values does not exceed (nearest rank).

    Parameters
    ----------
    values : sequence of float
        In any order; infinity is allowed.
    share : float
        Above 0, at most 1.

    Returns
    -------
    float
        One of the values.

    Raises
    ------
    ValueError
        If there are no values, or the share is no share.

    Examples
    --------
    >>> percentile([0.3, 0.1, 0.2, float("inf")], 0.75)
    0.3
    """
    if not 0 < share <= 1:
        raise ValueError(f"share must be above 0 and at most 1, got {share}; use 0.99 for the p99")
    if not values:
        raise ValueError("values must hold at least one latency, got none; was anything answered?")
    return sorted(values)[math.ceil(share * len(values) - 1e-9) - 1]


def open_loop(
    url: str,
    bodies: Sequence[bytes],
    *,
    rate: float,
    seconds: float,
    timeout: float = 10.0,
    seed: int = 0,
    events: Events | None = None,
) -> Load:
    """Send requests when they are due, whether or not earlier ones were answered.

    The intervals are exponential, as between callers who know nothing of each other.

    Parameters
    ----------
    url : str
        To POST to.
    bodies : sequence of bytes
        JSON, sent in turn.
    rate : float
        Requests per second, on average.
    seconds : float
        How long to send; answers are awaited beyond it.
    timeout : float
        Seconds after which a caller hangs up.
    seed : int
        Of the intervals.
    events : mapping of float to callable, optional
        What to call after so many seconds, in a thread of its own.

    Returns
    -------
    Load
        One request for each that was due.

    Raises
    ------
    ValueError
        If rate or seconds are not positive.
    """
    for name, value in {"rate": rate, "seconds": seconds}.items():
        if not value > 0:
            raise ValueError(f"{name} must be positive, got {value}; use 20 per second for 3 s")
    schedule = _arrivals(rate, seconds, random.Random(seed))

    async def drive(client: _Client) -> None:
        tasks = []
        for number, due in enumerate(schedule):
            await asyncio.sleep(max(0.0, due - client.now()))
            tasks.append(asyncio.create_task(client.post(bodies[number % len(bodies)], due)))
        await asyncio.gather(*tasks)

    return _run(_load(url, timeout, events or {}, drive))


def closed_loop(
    url: str,
    bodies: Sequence[bytes],
    *,
    seconds: float | None = None,
    count: int | None = None,
    timeout: float = 10.0,
    events: Events | None = None,
) -> Load:
    """Send one request after another: the next one when the last one is answered.

    Parameters
    ----------
    url : str
        To POST to.
    bodies : sequence of bytes
        JSON, sent in turn.
    seconds, count : float, int
        How long to send, or how many; where both are given, whichever ends first.
    timeout : float
        Seconds after which the caller hangs up.
    events : mapping of float to callable, optional
        What to call after so many seconds, in a thread of its own.

    Returns
    -------
    Load
        Each request was due when it was sent: this client cannot be late.

    Raises
    ------
    ValueError
        If neither seconds nor count is given.
    """
    if seconds is None and count is None:
        raise ValueError("seconds or count must be given, got neither; use count=100 for a look")
    last, end = count or math.inf, math.inf if seconds is None else seconds

    async def drive(client: _Client) -> None:
        number = 0
        while number < last and (now := client.now()) < end:
            await client.post(bodies[number % len(bodies)], now)
            number += 1

    return _run(_load(url, timeout, events or {}, drive))


def _arrivals(rate: float, seconds: float, dice: random.Random) -> list[float]:
    """Return when requests are due; at least one."""
    schedule, due = [0.0], dice.expovariate(rate)
    while due < seconds:
        schedule.append(due)
        due += dice.expovariate(rate)
    return schedule


class _Client:
    """Send requests and note what becomes of them."""

    def __init__(self, client: httpx.AsyncClient, url: str) -> None:
        self.client, self.url, self.start = client, url, time.perf_counter()
        self.requests: list[Request] = []

    def now(self) -> float:
        return time.perf_counter() - self.start

    async def post(self, body: bytes, due: float) -> None:
        import httpx

        sent, finished, answer, model = self.now(), None, None, None
        status: int | str
        try:
            headers = {"Content-Type": "application/json"}
            response = await self.client.post(self.url, content=body, headers=headers)
            finished, status = self.now(), response.status_code
            if status == 200:
                answer = response.json()
                said = response.headers.get("server-timing", "")
                model = float(said.rpartition("=")[2]) / 1e3 if said else None
        except httpx.TimeoutException:
            status = "timeout"
        except httpx.ConnectError:
            status = "refused"
        except httpx.TransportError:
            status = "lost"
        self.requests.append(Request(due, sent, finished, status, answer, model))


async def _load(
    url: str, timeout: float, events: Events, drive: Callable[[_Client], Coroutine[Any, Any, None]]
) -> Load:
    """Run a client and the events beside it."""
    import httpx

    # As many connections as requests: a queue inside the client would hide waiting.
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as http:
        client = _Client(http, url)

        async def happen(when: float, call: Callable[[], object]) -> None:
            await asyncio.sleep(when)
            await asyncio.to_thread(call)

        others = [asyncio.create_task(happen(*event)) for event in events.items()]
        await drive(client)
        seconds = client.now()
        await asyncio.gather(*others)
    return Load(tuple(sorted(client.requests, key=lambda r: r.scheduled)), seconds)


def _run(load: Coroutine[Any, Any, _Result]) -> _Result:
    """Run in a thread: a notebook's own thread has an event loop that runs already."""
    collects = gc.isenabled()
    gc.collect()
    gc.disable()  # a pause of the client's collector would count as the server's
    try:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(asyncio.run, load).result()
    finally:
        if collects:
            gc.enable()


def ask(target: str | Callable[..., Any], bodies: Sequence[bytes]) -> tuple[tuple[int, str], ...]:
    """POST bodies one by one; return the status and the text of each answer.

    Parameters
    ----------
    target : str or ASGI application
        A URL; or an application, which is called in this process, at the path "/predict". What it
        raises becomes 500, as a server would have it.
    bodies : sequence of bytes
        Sent as JSON, whatever they are.

    Returns
    -------
    tuple of (int, str)
        In the order of the bodies.

    Raises
    ------
    httpx.TransportError
        If there is no answer.
    """
    import httpx

    transport, url = None, target
    if not isinstance(target, str):
        transport = httpx.ASGITransport(app=target, raise_app_exceptions=False)
        url = "http://application/predict"

    async def send() -> tuple[tuple[int, str], ...]:
        async with httpx.AsyncClient(transport=transport, trust_env=False, timeout=30) as client:
            headers = {"Content-Type": "application/json"}
            found = [await client.post(url, content=body, headers=headers) for body in bodies]
        return tuple((answer.status_code, answer.text) for answer in found)

    return _run(send())


def plot_latencies(message: str, loads: Mapping[str, Load], *, caption: str = "") -> Chart:
    """Draw the latency of each request over the time at which it was due, log scale.

    Parameters
    ----------
    message : str
        The title, a sentence.
    loads : mapping of str to Load
        One or two; the first is drawn as the baseline. Requests without an answer are left out.
    caption : str
        How they were measured.

    Returns
    -------
    Chart
        With one row for each: its requests, median, and 99th percentile.

    Raises
    ------
    ValueError
        If there is nothing to draw, or more than two.

    Examples
    --------
    >>> some = Load((Request(0.0, 0.0, 0.5, 200),), 1.0)
    >>> plot_latencies("One request", {"some": some}).rows
    (('some', '1', '500 ms', '500 ms'),)
    """
    if not 1 <= len(loads) <= 2 or not all(load.requests for load in loads.values()):
        raise ValueError("loads must hold one or two loads with requests; draw the rest apart")
    figure, axes = plotting.new_figure(message)
    colors, rows = plotting.colors(), []
    styles = zip(("baseline", "new"), ("s", "o"), (0.98, 0.02), ("right", "left"), strict=True)
    for (name, load), (kind, mark, x, side) in zip(loads.items(), styles, strict=False):
        answered = [(r.scheduled, r.latency) for r in load.requests if r.finished is not None]
        color, late = colors[kind], load.latency(0.99)
        axes.plot(*zip(*answered, strict=True), mark, color=color, markersize=3, alpha=0.7)
        axes.axhline(late, color=color, linestyle="--", linewidth=1)
        axes.annotate(f"p99, {name}: {format_time(late)}", (x, late), (0, 3), color=color,
                      xycoords=("axes fraction", "data"), textcoords="offset points",
                      ha=side, va="bottom", fontweight="bold",
                      bbox={"facecolor": axes.get_facecolor(), "lw": 0, "pad": 1, "alpha": 0.8})  # fmt: skip
        rows.append((name, f"{len(load.requests):,}", *map(format_time, (load.latency(0.5), late))))
    axes.set(xlabel="request was due after (s)", ylabel="latency (s)", yscale="log")
    axes.margins(y=0.12)
    plotting.write_caption(figure, caption)
    return Chart(figure, message, ("load", "requests", "median", "p99"), tuple(rows))
