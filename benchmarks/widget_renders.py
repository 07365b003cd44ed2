"""Measure how long a widget takes from its state to the HTML that shows it."""

from benchmarks import Finding
from helpers import timing
from helpers.widgets import broadcasting, graph, sharing, strides


def measure() -> list[Finding]:
    """Draw the state with the most parts of each widget."""
    found = []
    for module, states in (
        (strides, [strides.StrideState(operation, 5) for operation in strides.OPERATIONS]),
        (broadcasting, [broadcasting.BroadcastState("3, 1, 4", "2, 4", "a + b")]),
        (graph, [graph.GraphState(preset, graph.steps(preset)) for preset in graph.PRESETS]),
        (sharing, [sharing.SharingState(c, sharing.SIDES[0]) for c in sharing.CONVERSIONS]),
    ):
        largest = max(states, key=lambda state, module=module: len(module.render(state).parts))

        def draw(module=module, state=largest):
            return module.render(state).html()

        seconds = timing.benchmark(draw, min_run_time=0.5, threads=1).median
        name = module.__name__.rpartition(".")[2]
        found.append(Finding(f"{name}, largest state to HTML (ms)", 1000 * seconds, 16))
    return found
