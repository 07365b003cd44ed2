"""Step through the graph that autograd recorded: what each node saved, receives and passes on."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch

from helpers.plotting import PALETTES
from helpers.table import Table
from helpers.units import format_bytes
from helpers.widgets import _panel

# Each preset is run as it stands; backward starts at y.
PRESETS = {
    "chain": "x = torch.tensor(2.0, requires_grad=True); y = (3 * x) ** 2",
    "diamond": "x = torch.tensor(2.0, requires_grad=True); y = x ** 2 + 3 * x",
    "broadcast": "x = torch.tensor(2.0, requires_grad=True); "
    "y = (x * torch.tensor([1.0, 2.0, 3.0])).sum()",
    "second backward": "x = torch.tensor(2.0, requires_grad=True); (x ** 2).backward(); y = x ** 2",
    "in place after a square": "x = torch.tensor(2.0, requires_grad=True); y = x ** 2; y += 1",
    "in place after exp": "x = torch.tensor(2.0, requires_grad=True); y = x.exp(); y += 1",
    "detached": "x = torch.tensor(2.0, requires_grad=True); a = x ** 2; y = a.detach() * x",
}
SAVED = ("shown", "hidden")

_PLATE = (150, 42)  # width and height of a node
_COLUMN, _ROW, _LEFT, _TOP = 196, 142, 14, 34
_LINE = 17  # height of a line under a node


@dataclass(frozen=True)
class GraphState:
    """Hold what the viewer shows.

    Parameters
    ----------
    preset : str
        One of `PRESETS`.
    step : int
        How many nodes have fired.
    saved : str
        ``"shown"`` or ``"hidden"``: the saved tensors.
    """

    preset: str = "diamond"
    step: int = 0
    saved: str = "shown"


@dataclass(frozen=True)
class Saved:
    """Hold one tensor that a node keeps for backward.

    Attributes
    ----------
    name : str
        What it is to the operation: ``self``, ``other``, ``result``.
    value : str
        Its value; empty where torch no longer hands it out.
    nbytes : int
        Its size.
    saved_at, now : int
        Its version when it was saved, and at the time of backward.
    """

    name: str
    value: str
    nbytes: int
    saved_at: int
    now: int


@dataclass(frozen=True)
class Node:
    """Hold one node of the graph.

    Attributes
    ----------
    name : str
        Its name in torch.
    targets : tuple of int
        Numbers of the nodes that it passes its result to.
    saved : tuple of Saved
        What it keeps for backward.
    leaf : str
        Name of the leaf whose gradient it adds to; empty for other nodes.
    receives : str
        The gradient that it received; empty if it was never reached.
    """

    name: str
    targets: tuple[int, ...]
    saved: tuple[Saved, ...]
    leaf: str
    receives: str


@dataclass(frozen=True)
class Record:
    """Hold what one backward pass did, read from the real graph.

    Attributes
    ----------
    nodes : tuple of Node
        Those that y reaches first.
    fired : tuple of int
        Numbers of nodes in the order in which torch ran them.
    error : str
        What the last of them raised; empty if backward ended.
    before, after : dict of str to str
        The gradient of each leaf before and after backward.
    y : str
        The value backward starts from.
    cut : tuple of (int, int)
        Edges that detach left out: from the node that would have had it, to the other end.
    """

    nodes: tuple[Node, ...]
    fired: tuple[int, ...]
    error: str
    before: dict[str, str]
    after: dict[str, str]
    y: str
    cut: tuple[tuple[int, int], ...]


@lru_cache
def record(preset: str) -> Record:
    """Run a preset, watch its backward pass, and return what each node did.

    Parameters
    ----------
    preset : str
        One of `PRESETS`.

    Raises
    ------
    ValueError
        If it is not one of them: only these lines are ever run.

    Examples
    --------
    >>> found = record("diamond")
    >>> [found.nodes[number].name for number in found.fired]
    ['AddBackward0', 'MulBackward0', 'PowBackward0', 'AccumulateGrad']
    >>> found.after
    {'x': '7'}
    """
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    names: dict[str, Any] = {"torch": torch}
    exec(PRESETS[preset], names)  # noqa: S102 - one of the lines above
    tensors = {name: t for name, t in names.items() if isinstance(t, torch.Tensor)}
    reached = _collect([names["y"].grad_fn])
    rest = [t.grad_fn for t in tensors.values() if t.grad_fn is not None]
    nodes = _collect([*reached, *rest])
    leaves = {id(t): name for name, t in tensors.items() if t.is_leaf}
    saved = [_saved(node, names["y"]) for node in nodes]
    before = _gradients(tensors)
    received, error = _watch(names["y"], nodes)
    described = tuple(
        Node(
            node.name().rpartition("::")[2],
            tuple(nodes.index(n) for n, _ in node.next_functions if n is not None),
            saved[i],
            leaves.get(id(getattr(node, "variable", None)), ""),
            received.get(i, ""),
        )
        for i, node in enumerate(nodes)
    )
    cut = tuple((0, i) for i in range(len(reached), len(nodes)))
    after = _gradients(tensors)
    value = _number(names["y"])
    return Record(described, tuple(received), error, before, after, value, cut)


def _collect(roots: list[Any]) -> list[Any]:
    """Return every node that the roots reach, nearest first."""
    found = list(dict.fromkeys(roots))
    for node in found:  # grows while it is walked
        found += [n for n, _ in node.next_functions if n is not None and n not in found]
    return found


def _saved(node: Any, y: torch.Tensor) -> tuple[Saved, ...]:
    """Return the tensors that a node keeps; those that torch refuses to read are y, changed."""
    kept = []
    for attribute in dir(node):
        if not attribute.startswith("_saved_"):
            continue
        name = attribute.removeprefix("_saved_")
        try:
            value = getattr(node, attribute)
        except RuntimeError as error:
            now, then = re.search(r"version (\d+); expected version (\d+)", str(error)).groups()
            kept.append(Saved(name, "", y.nbytes, int(then), int(now)))
            continue
        if isinstance(value, torch.Tensor):
            version = value._version
            kept.append(Saved(name, _number(value), value.nbytes, version, version))
    return tuple(kept)


def _watch(y: torch.Tensor, nodes: list[Any]) -> tuple[dict[int, str], str]:
    """Run backward; return what each node received, in order of firing, and the error."""
    received: dict[int, str] = {}

    def listen(number: int) -> Any:
        return lambda gradients: received.__setitem__(number, _number(gradients[0]))

    hooks = [node.register_prehook(listen(number)) for number, node in enumerate(nodes)]
    error = ""
    try:
        y.backward()
    except RuntimeError as raised:
        error = str(raised).partition(" Hint")[0]
    for hook in hooks:
        hook.remove()
    return received, error


def _gradients(tensors: dict[str, torch.Tensor]) -> dict[str, str]:
    return {
        name: "None" if t.grad is None else _number(t.grad)
        for name, t in tensors.items()
        if t.is_leaf and t.requires_grad
    }


def _number(value: torch.Tensor) -> str:
    """Return a tensor of few numbers as text, without trailing zeros."""
    values = value.detach()
    if values.dim():
        return f"[{', '.join(f'{v:.4g}' for v in values.tolist())}]"
    return f"{values.item():.4g}"


def steps(preset: str) -> int:
    """Return how many nodes fire in the backward pass of a preset.

    Examples
    --------
    >>> steps("diamond"), steps("in place after exp")
    (4, 2)
    """
    return len(record(preset).fired)


# Drawing ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plate:
    """Draw a node: its name over a line that says what it does; upper left corner at x, y."""

    x: float
    y: float
    lines: tuple[str, str]
    fill: str
    ink: str
    edge: str
    dashed: bool = False

    def labels(self) -> list[_panel.Text]:
        """Return both lines, centered."""
        middle = self.x + _PLATE[0] / 2
        return [
            _panel.Text(middle, self.y + 17 + _LINE * i, line, self.ink, "middle")
            for i, line in enumerate(self.lines)
        ]

    def svg(self, prefix: str) -> str:
        """Return SVG."""
        dash = ' stroke-dasharray="5 4"' if self.dashed else ""
        box = (
            f'<rect x="{self.x:g}" y="{self.y:g}" width="{_PLATE[0]}" height="{_PLATE[1]}" rx="5" '
            f'stroke-width="2"{dash} '
            f'style="fill:{_panel._css(self.fill)};stroke:{_panel._css(self.edge)}"/>'
        )
        return box + "".join(label.svg(prefix) for label in self.labels())

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        from matplotlib.patches import Rectangle

        colors = PALETTES["light"]
        style = {"facecolor": colors[self.fill], "edgecolor": colors[self.edge]}
        line = "--" if self.dashed else "-"
        axes.add_patch(Rectangle((self.x, self.y), *_PLATE, linewidth=1.5, linestyle=line, **style))
        for label in self.labels():
            label.draw(axes)


@dataclass(frozen=True)
class Edge:
    """Draw the way of a gradient between two points; dashed where there is none."""

    start: tuple[float, float]
    end: tuple[float, float]
    color: str
    dashed: bool = False

    def head(self) -> list[tuple[float, float]]:
        """Return the corners of the arrow head."""
        (x1, y1), (x2, y2) = self.start, self.end
        angle = math.atan2(y2 - y1, x2 - x1)
        back = [(x2 - 9 * math.cos(angle + s), y2 - 9 * math.sin(angle + s)) for s in (0.45, -0.45)]
        return [self.end, *back]

    def svg(self, prefix: str) -> str:
        """Return SVG without ids, so that a picture may hold many."""
        (x1, y1), (x2, y2) = self.start, self.end
        color = _panel._css(self.color)
        dash = ' stroke-dasharray="5 4"' if self.dashed else ""
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in self.head())
        return (
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke-width="2"{dash} '
            f'style="stroke:{color}"/><polygon points="{corners}" style="fill:{color}"/>'
        )

    def draw(self, axes: Any) -> None:
        """Draw the same with matplotlib."""
        from matplotlib.patches import Polygon

        color = PALETTES["light"][self.color]
        (x1, y1), (x2, y2) = self.start, self.end
        axes.plot([x1, x2], [y1, y2], color=color, linestyle="--" if self.dashed else "-")
        axes.add_patch(Polygon(self.head(), color=color))


def render(state: GraphState) -> _panel.View:
    """Return the picture, the finding and the table of a state.

    Parameters
    ----------
    state : GraphState
        A step past the end counts as the last one.

    Examples
    --------
    >>> render(GraphState("diamond", 4)).heading
    'AccumulateGrad adds 7 to x.grad, which was None and is 7.'
    """
    found = record(state.preset)
    done = found.fired[: state.step]
    places = _places(found)
    parts = [
        *_edges(found, places, done),
        *(_plate(found, i, places[i], done) for i in range(len(found.nodes))),
        *_words(found, places, done, tags=state.saved == "shown"),
    ]
    table = _table(found, done, tags=state.saved == "shown")
    size = (570, round(max(y for _, y in places) + _ROW - 26))
    return _panel.View(_heading(found, done), PRESETS[state.preset], table, parts, size)


def _heading(found: Record, done: tuple[int, ...]) -> str:
    if not done:
        kept = format_bytes(sum(s.nbytes for node in found.nodes for s in node.saved))
        return f"Before backward: {len(found.nodes)} nodes wait, and {kept} are kept for them."
    node = found.nodes[done[-1]]
    if found.error and len(done) == len(found.fired):
        stale = next(s for s in node.saved if s.now != s.saved_at)
        return (
            f"{node.name} refuses: its {stale.name} was saved at version {stale.saved_at} "
            f"and is at version {stale.now}."
        )
    if node.leaf:
        before, after = found.before[node.leaf], found.after[node.leaf]
        return (
            f"{node.name} adds {node.receives} to {node.leaf}.grad, "
            f"which was {before} and is {after}."
        )
    targets = " and ".join(found.nodes[i].name for i in node.targets)
    return f"{node.name} receives {node.receives} and passes its result on to {targets}."


def _places(found: Record) -> list[tuple[float, float]]:
    """Return the upper left corner of each node: y on the right, leaves on the left."""
    depth = [0] * len(found.nodes)
    edges = [(i, t) for i, node in enumerate(found.nodes) for t in node.targets]
    for _ in found.nodes:  # longest path: as many rounds as nodes are enough
        for start, end in [*edges, *found.cut]:
            depth[end] = max(depth[end], depth[start] + 1)
    cut = {end for _, end in found.cut}
    columns = [[i for i, d in enumerate(depth) if d == column] for column in range(max(depth) + 1)]
    highest = max(map(len, columns))
    places = []
    for i, d in enumerate(depth):
        row = columns[d].index(i) + (highest - len(columns[d])) / 2
        row = row if not cut else 1 if i in cut else 0
        places.append((_LEFT + _COLUMN * (max(depth) - d), _TOP + _ROW * row))
    return places


def _edges(found: Record, places: list, done: tuple[int, ...]) -> list[Edge]:
    cut = {end for _, end in found.cut}
    drawn = [
        _edge(places[i], places[t], "gradient" if i in done and not _refuses(found, i) else "ink")
        for i, node in enumerate(found.nodes)
        for t in node.targets
        if i not in cut
    ]
    ghosts = [(i, t) for i in cut for t in found.nodes[i].targets]
    return drawn + [
        _edge(places[i], places[t], "reference", True) for i, t in (*found.cut, *ghosts)
    ]


def _edge(start: tuple, end: tuple, color: str, dashed: bool = False) -> Edge:
    middle = _PLATE[1] / 2
    first, last = (start[0], start[1] + middle), (end[0] + _PLATE[0], end[1] + middle)
    return Edge(first, last, color, dashed)


def _refuses(found: Record, number: int) -> bool:
    return bool(found.error) and number == found.fired[-1]


def _plate(found: Record, number: int, place: tuple, done: tuple[int, ...]) -> Plate:
    node = found.nodes[number]
    if number in {end for _, end in found.cut}:
        return Plate(*place, (node.name, "not reached"), "paper", "reference", "reference", True)
    if number not in done:
        return Plate(*place, (node.name, "waits"), "paper", "ink", "ink")
    if _refuses(found, number):
        return Plate(*place, (node.name, "refuses"), "paper", "baseline", "baseline")
    order = done.index(number) + 1
    lines = (node.name, f"{order}. receives {node.receives}")
    return Plate(*place, lines, "gradient", "paper", "gradient")


def _words(found: Record, places: list, done: tuple[int, ...], *, tags: bool) -> list:
    """Return y over its node, leaves and saved tensors under theirs."""
    words = [_panel.Text(places[0][0] + 75, places[0][1] - 12, f"y = {found.y}", "ink", "middle")]
    for number, (node, (x, y)) in enumerate(zip(found.nodes, places, strict=True)):
        lines = [(text, "memory") for text in _tags(found, number, done)] if tags else []
        if node.leaf:
            now = (found.after if number in done else found.before)[node.leaf]
            lines = [(f"{node.leaf}.grad is {now}", "gradient")]
        words += [
            _panel.Text(x + 75, y + _PLATE[1] + _LINE * (i + 1), text, ink, "middle")
            for i, (text, ink) in enumerate(lines)
        ]
    return words


def _tags(found: Record, number: int, done: tuple[int, ...]) -> list[str]:
    """Return what a node keeps, in lines that fit under it."""
    node = found.nodes[number]
    if not node.saved:
        return ["saves no tensor"] if not node.leaf else []
    if number in done and not _refuses(found, number):
        return ["freed"]
    lines = []
    for s in node.saved:
        changed = f", now {s.now}" if s.now != s.saved_at else ""
        lines.append(f"{s.name} = {s.value}" if s.value else f"{s.name}, changed since")
        lines.append(f"{format_bytes(s.nbytes)}, version {s.saved_at}{changed}")
    return lines


def _table(found: Record, done: tuple[int, ...], *, tags: bool) -> Table:
    rows = []
    for number, node in enumerate(found.nodes):
        receives = node.receives if number in done else "-"
        order = done.index(number) + 1 if number in done else "-"
        saved = "; ".join(_tags(found, number, done)) or "-"
        rows.append([node.name, order, receives, *([saved] if tags else [])])
    leaves = {node.leaf: i in done for i, node in enumerate(found.nodes) if node.leaf}
    for name, added in leaves.items():
        now = (found.after if added else found.before)[name]
        rows.append([f"{name}.grad", "-", now, *(["-"] if tags else [])])
    return Table(["node", "order", "gradient", *(["saved"] if tags else [])], rows)


def explore(preset: str = "diamond", step: int = 0, saved: str = "shown") -> _panel.Panel:
    """Show the graph viewer.

    Parameters
    ----------
    preset : str
        One of `PRESETS`, shown first.
    step : int
        How many nodes have fired.
    saved : str
        ``"shown"`` or ``"hidden"``: the saved tensors.

    Returns
    -------
    Panel
        It displays itself: controls in a notebook, a picture and a table elsewhere.

    Raises
    ------
    ValueError
        If the preset is not one of them, or its backward pass has no such step.

    Examples
    --------
    >>> print(explore("chain", 1).text().splitlines()[0])
    PowBackward0 receives 1 and passes its result on to MulBackward0.
    """
    if not 0 <= step <= steps(preset):
        raise ValueError(f"step must be from 0 to {steps(preset)} for {preset}, got {step}")
    if saved not in SAVED:
        raise ValueError(f"saved must be one of {', '.join(SAVED)}, got {saved!r}")

    def controls(change, now):
        field = _panel.number("Step", 0, steps(now().preset), now().step, lambda n: change(step=n))

        def take(name):
            change(preset=name, step=0)
            field.value = 0
            field.max = steps(name)

        tags = _panel.choice("Saved tensors", SAVED, now().saved, lambda s: change(saved=s))
        return [_panel.choice("Graph", tuple(PRESETS), now().preset, take), field, tags]

    return _panel.Panel(render, GraphState(preset, step, saved), controls, replace)
