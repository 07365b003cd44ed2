"""Reading a profiler's trace, and the figure of its phases."""

import gzip
import itertools
import json
import time

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, record_function

from helpers import plotting, traces
from helpers.traces import Span


def event(name, ts, dur, *, cat="user_annotation", ph="X"):
    return {"name": name, "ts": ts, "dur": dur, "cat": cat, "ph": ph}


def write(path, events):
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        json.dump({"traceEvents": events}, file)
    return path


@pytest.mark.parametrize("name", ["t.json", "t.json.gz"])
def test_spans_come_in_order_of_time_in_seconds_from_the_first(tmp_path, name):
    events = [event("b", 2_000_000, 500_000), event("a", 1_000_000, 250_000)]
    path = write(tmp_path / name, events)
    assert traces.read_spans(path, ["a", "b"]) == [Span("a", 0.0, 0.25), Span("b", 1.0, 0.5)]


def test_other_events_of_the_same_name_are_left_out(tmp_path):
    others = [
        event("a", 0, 1, cat="cpu_op"),
        event("a", 0, 1, cat="gpu_user_annotation"),
        event("a", 0, 1, ph="i"),
        event("b", 0, 1),
    ]
    path = write(tmp_path / "t.json", [*others, event("a", 5, 10)])
    assert traces.read_spans(path, ["a"]) == [Span("a", 0.0, 1e-5)]


def test_a_trace_without_the_labels_says_what_to_do(tmp_path):
    path = write(tmp_path / "t.json", [event("a", 0, 1)])
    with pytest.raises(ValueError, match="at least one of loss, step, got none; wrap the phases"):
        traces.read_spans(path, ["step", "loss"])


def test_a_real_trace_holds_each_call_of_a_label(tmp_path):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        for _ in range(3):
            with record_function("multiply"):
                torch.ones(4, 4) @ torch.ones(4, 4)
    prof.export_chrome_trace(str(tmp_path / "t.json"))
    spans = traces.read_spans(tmp_path / "t.json", ["multiply"])
    assert [span.name for span in spans] == ["multiply"] * 3
    assert all(one.start + one.seconds <= two.start for one, two in itertools.pairwise(spans))


def test_the_figure_has_a_bar_for_each_span_and_a_row_for_each_label():
    spans = [Span("a", 0.0, 0.001), Span("b", 0.001, 0.002), Span("a", 0.003, 0.004)]
    chart = traces.plot_spans("Two labels", spans, caption="once")
    assert chart.rows == (("a", "2", "5.00 ms"), ("b", "1", "2.00 ms"))
    bars = [len(bars.get_paths()) for bars in chart.axes.collections]
    assert bars == [2, 1]
    assert [label.get_text() for label in chart.axes.get_yticklabels()] == ["a", "b"]
    first = chart.axes.collections[0].get_paths()[1].get_extents()
    assert (first.x0, first.x1) == pytest.approx((3.0, 7.0))


def test_nothing_to_draw_and_too_many_labels_are_refused():
    with pytest.raises(ValueError, match="got nothing to draw"):
        traces.plot_spans("None", [])
    with pytest.raises(ValueError, match="at most 6 labels, got 7"):
        traces.plot_spans("Many", [Span(str(n), n, 1.0) for n in range(7)])


def test_the_figure_follows_the_theme():
    plotting.use_style("dark")
    try:
        chart = traces.plot_spans("Dark", [Span("a", 0.0, 1.0)])
        assert chart.figure.get_facecolor()[:3] != (1.0, 1.0, 1.0)
    finally:
        plotting.use_style()


def test_seconds_inside_operators_leave_out_python_and_what_torch_labels():
    layer = torch.nn.Linear(4, 4)
    optimizer = torch.optim.Adam(layer.parameters())
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        with record_function("all"):
            layer(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            time.sleep(0.05)
        prof.step()
    rows = prof.key_averages()
    kept = {row.key for row in traces.operator_rows(rows)}
    assert {"aten::addmm", "aten::mm"} <= kept
    assert kept.isdisjoint({"all", "Optimizer.step#Adam.step", "ProfilerStep*"})
    everything = sum(row.self_cpu_time_total for row in rows) / 1e6
    assert 0 < traces.operator_seconds(rows) < everything - 0.05
