"""Start TensorBoard as a process of its own, ask it what its page shows, and end it."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
import urllib.error
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from helpers import _child, plotting
from helpers.plotting import Chart

_SERVER = Path(__file__).with_name("_serve_board.py")
_running: dict[Path, Board] = {}  # at most one for a folder: a cell may run twice


@dataclass(frozen=True)
class Board:
    """Hold a TensorBoard that runs: its address and its process.

    Attributes
    ----------
    url : str
        The address of its page, on 127.0.0.1.
    process : subprocess.Popen
        Its process. It ends with `close`, or when this process ends, in whatever way.
    """

    url: str
    process: subprocess.Popen[str] = field(repr=False)

    @property
    def running(self) -> bool:
        """Tell whether its process lives."""
        return self.process.poll() is None

    def runs(self) -> list[str]:
        """Return the names of the runs it has found so far.

        Returns
        -------
        list of str
            Paths of folders under the one it serves; "." is that folder itself.
        """
        return sorted(self._get("data/runs"))

    def scalars(
        self, run: str, tag: str, *, until: int, wait: float = 30.0
    ) -> list[tuple[int, float]]:
        """Return the points of a curve on its page, once it has loaded them.

        Parameters
        ----------
        run : str
            One of `runs`.
        tag : str
            The name that ``add_scalar`` was given.
        until : int
            The last step that was logged; the page always keeps the last point.
        wait : float
            Seconds to wait for it.

        Returns
        -------
        list of (int, float)
            Steps and values.

        Raises
        ------
        TimeoutError
            If that step does not come.
        """
        deadline = time.monotonic() + wait
        query, points = urlencode({"run": run, "tag": tag}), []
        while time.monotonic() < deadline:
            with contextlib.suppress(urllib.error.HTTPError):  # not loaded yet: 404
                found = self._get(f"data/plugin/scalars/scalars?{query}")
                points = [(step, float(value)) for _, step, value in found]
            if points and points[-1][0] == until:
                return points
            time.sleep(0.05)
        last = points[-1][0] if points else "none"
        raise TimeoutError(
            f"step {until} of {tag!r} in run {run!r} must arrive within {wait:g} s, the last was "
            f"{last}; was the writer flushed or closed?"
        )

    def close(self) -> None:
        """End its process; a second call does nothing."""
        _child.close(self.process, 10)

    def _get(self, path: str) -> Any:
        return json.loads(_child.get(self.url + path, timeout=10))

    def __repr__(self) -> str:
        return f"TensorBoard: {self.url}" if self.running else "TensorBoard: closed"

    def _repr_html_(self) -> str:
        if not self.running:
            return "TensorBoard: closed"
        return f'TensorBoard: <a href="{escape(self.url)}" target="_blank">{escape(self.url)}</a>'


def start(folder: str | Path, *, points: int = 1000, wait: float = 60.0) -> Board:
    """Start TensorBoard on a folder of runs; an earlier one on the same folder is closed.

    Parameters
    ----------
    folder : str or pathlib.Path
        Where the runs lie.
    points : int
        How many points of each scalar it keeps, by chance; its default is 1,000.
    wait : float
        Seconds in which it must answer.

    Returns
    -------
    Board
        Running, on a free port of 127.0.0.1.

    Raises
    ------
    FileNotFoundError
        If there is no such folder.
    ValueError
        If no points are to be kept.
    RuntimeError
        If it does not start, with the last line of what it said.

    See Also
    --------
    The same from a terminal: ``tensorboard --logdir runs --host 127.0.0.1 --port 0``.
    """
    if points < 1:  # its own 0 draws nothing
        raise ValueError(f"points must be at least 1, got {points}; 10**9 keeps all")
    place = Path(folder).resolve()
    if not place.is_dir():
        raise FileNotFoundError(f"folder must exist, got {str(folder)!r}; log something first")
    if place in _running:
        _running.pop(place).close()
    command = [sys.executable, "-P", str(_SERVER), str(place), str(points)]
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        process = _child.start(command, said)
        url = _child.first_line(process, wait)
        board = Board(url.rstrip("/") + "/", process)
        if not url:
            process.kill()
            board.close()
            raise RuntimeError(
                f"TensorBoard must answer within {wait:g} s: {_child.last_line(said)}"
            )
    _running[place] = board
    return board


def read_points(folder: str | Path, tag: str = "loss") -> list[tuple[int, float]]:
    """Read a curve from the files that ``SummaryWriter`` wrote, all of its points.

    Parameters
    ----------
    folder : str or pathlib.Path
        The folder of one run.
    tag : str
        The name that ``add_scalar`` was given.

    Returns
    -------
    list of (int, float)
        Steps and values in the order of the files; empty if there is no such curve.
    """
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), {"scalars": 0})  # 0: keep all
    events.Reload()
    found = events.Scalars(tag) if tag in events.Tags()["scalars"] else []
    return [(event.step, event.value) for event in found]


def plot_kept(
    message: str,
    logged: Sequence[tuple[int, float]],
    kept: Sequence[tuple[int, float]],
    *,
    caption: str = "",
) -> Chart:
    """Draw all points of a curve against those that are left of it.

    Parameters
    ----------
    message : str
        The title, a sentence.
    logged, kept : sequence of (int, float)
        Steps and values: all of them, and those that a page or a thinner kept.
    caption : str
        How they were chosen.

    Returns
    -------
    Chart
        With one row for each: its points and its largest value.

    Raises
    ------
    ValueError
        If there is nothing to draw.

    Examples
    --------
    >>> plot_kept("One is gone", [(0, 1.0), (1, 9.0)], [(0, 1.0)]).rows
    (('logged', '2', '9'), ('kept', '1', '1'))
    """
    if not logged or not kept:
        raise ValueError("logged and kept must hold at least one point each, got nothing to draw")
    figure, axes = plotting.new_figure(message)
    colors, rows, ends = plotting.colors(), [], []
    series = {"logged": (logged, "baseline", "-"), "kept": (kept, "new", "none")}
    for name, (points, kind, line) in series.items():
        steps, values = zip(*points, strict=True)
        mark = {"marker": "o", "markersize": 3} if line == "none" else {}
        axes.plot(steps, values, linestyle=line, color=colors[kind], **mark)
        rows.append((name, f"{len(points):,}", f"{max(values):.6g}"))
        ends.append((f"{name}: {len(points):,}", colors[kind]))
    axes.set(xlabel="step", ylabel="loss", ylim=(0, None))
    for place, (text, color) in zip((0.9, 0.2), ends, strict=True):
        axes.text(0.98, place, text, color=color, transform=axes.transAxes, ha="right",
                  fontweight="bold")  # fmt: skip
    plotting.write_caption(figure, caption)
    return Chart(figure, message, ("points", "number", "largest"), tuple(rows))
