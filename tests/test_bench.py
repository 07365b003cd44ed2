"""Benchmarks judge what they measured, and the page shows what does not hold."""

import importlib
import json

import pytest

from benchmarks import Finding, faults, twice
from helpers._paths import ROOT
from tools import bench


@pytest.mark.parametrize(
    ("value", "limit", "at_least", "holds"),
    [
        (1.0, 2.0, False, True),
        (2.0, 2.0, False, True),
        (3.0, 2.0, False, False),
        (94, 95, True, False),
        (95, 95, True, True),
        (1.0, None, False, None),
        (None, 2.0, False, None),
    ],
)
def test_a_finding_holds_on_the_right_side_of_its_limit(value, limit, at_least, holds):
    assert Finding("x", value, limit, at_least=at_least).holds is holds


def test_every_benchmark_can_be_called():
    assert bench.available()
    for name in bench.available():
        module = importlib.import_module(f"benchmarks.{name}")
        assert callable(module.measure)
        assert module.__doc__.endswith(".\n") or module.__doc__.endswith(".")


def test_every_benchmark_file_is_in_the_list():
    files = {path.stem for path in (ROOT / "benchmarks").glob("*.py")} - {"__init__"}
    assert files <= set(bench.MODULES)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(bench, "STORE", tmp_path / "results.json")
    monkeypatch.setattr(bench, "RESULTS", tmp_path / "RESULTS.md")
    return tmp_path


def run(monkeypatch, *findings):
    module = importlib.import_module("benchmarks.imports")
    monkeypatch.setattr(module, "measure", lambda: list(findings))
    return bench.main(["imports"])


def test_a_limit_that_does_not_hold_is_shown_and_fails(store, monkeypatch, capsys):
    assert run(monkeypatch, Finding("added (s)", 0.2, 0.15)) == 1
    page = (store / "RESULTS.md").read_text()
    assert "| added (s) | 0.2 | at most 0.15 | **no** |" in page
    assert "**no**" in capsys.readouterr().out


def test_what_cannot_be_measured_is_no_failure_and_no_number(store, monkeypatch):
    assert run(monkeypatch, Finding("on a GPU (s)", None, 1.0)) == 0
    assert (
        "| on a GPU (s) | not measured here | at most 1 |  |" in (store / "RESULTS.md").read_text()
    )


def test_a_run_of_one_keeps_the_results_of_the_others(store, monkeypatch):
    other = {"about": "About.", "machine": "m", "date": "2026-01-01", "findings": []}
    (store / "results.json").write_text(json.dumps({"notebooks": other}))
    assert run(monkeypatch, Finding("added (s)", 0.1, 0.15)) == 0
    kept = json.loads((store / "results.json").read_text())
    assert kept["notebooks"] == other
    assert kept["imports"]["findings"][0]["holds"] is True


def test_the_page_in_the_repository_is_what_its_store_says():
    stored = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    assert (ROOT / "benchmarks" / "RESULTS.md").read_text() == bench.to_markdown(stored)


def test_the_machine_is_named_by_kind_only():
    text = bench.kind_of_machine()
    assert "cores" in text
    assert "torch 2." in text
    assert str(ROOT) not in text


def test_an_unknown_name_is_refused(store, capsys):
    with pytest.raises(SystemExit):
        bench.main(["nothing"])
    assert "invalid choice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("attributes", "counted"),
    [
        ('tests="7" failures="2" errors="1" skipped="1"', (3, 7)),
        ('tests="7" failures="0" errors="0" skipped="0"', (7, 7)),
        ('tests="0"', (0, 0)),
    ],
)
def test_only_what_passed_is_counted_as_passed(tmp_path, attributes, counted):
    report = f"<testsuites><testsuite {attributes}/></testsuites>"
    assert faults.count(lambda path: path.write_text(report), tmp_path) == counted


def test_a_run_that_wrote_no_report_passed_nothing(tmp_path):
    (tmp_path / "report.xml").write_text('<testsuite tests="7"/>')  # of an earlier run
    assert faults.count(lambda path: None, tmp_path) == (0, 0)


def test_the_long_ones_run_only_when_named(store, monkeypatch):
    asked = []
    monkeypatch.setattr(bench, "run", lambda name: asked.append(name) or {"findings": []})
    monkeypatch.setattr(bench, "to_markdown", lambda store: "")
    assert bench.main([]) == 0
    assert not set(bench.LONG) & set(asked)
    assert bench.main(list(bench.LONG)) == 0
    assert asked[-len(bench.LONG) :] == list(bench.LONG)


def test_what_runs_twice_is_counted_for_each_notebook(tmp_path):
    cases = "".join(
        f'<testcase name="test_{name}">{inside}</testcase>'
        for name, inside in (
            ("again[11_a]", ""),
            ("again[12_b]", "<failure/>"),
            ("guess[11_a]", ""),
            ("guess[12_b]", ""),
            ("again[13_c]", "<error/>"),
            ("guess[13_c]", "<skipped/>"),
        )
    )
    (tmp_path / "report.xml").write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    done = twice.by_notebook(tmp_path / "report.xml")
    assert done == {"11_a": [True, True], "12_b": [False, True], "13_c": [False, False]}


def test_a_run_that_ends_before_its_report_passes_no_notebook(monkeypatch):
    monkeypatch.setattr(twice, "pytest_run", lambda arguments: lambda report: None)
    found = twice.measure()
    assert len(found) == len(list((faults.ROOT / "notebooks").glob("*.ipynb")))
    assert not any(finding.holds for finding in found)
