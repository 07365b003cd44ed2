"""Measure the course's own tools and write benchmarks/RESULTS.md.

    python3 course.py bench                 all of them, about ten minutes
    python3 course.py bench timing_verdicts one of them; the others keep their last results
    python3 course.py bench twice colab     hostile too: they take long and are left out by default

Ratios are taken within one run. A limit that does not hold is shown so, and the exit code is 1.
"""

import argparse
import datetime
import importlib
import json
import platform
import sys

from helpers._paths import ROOT
from helpers.device import describe_machine

MODULES = (
    "imports", "memory_tracking", "timing_verdicts", "widget_renders", "redraw", "notebooks",
    "faults", "hostile", "twice", "colab",
)  # fmt: skip
LONG = ("hostile", "twice", "colab")
RESULTS = ROOT / "benchmarks" / "RESULTS.md"
STORE = ROOT / "benchmarks" / "results.json"


def available():
    """Return the names of the benchmarks that exist, in order."""
    return [name for name in MODULES if (ROOT / "benchmarks" / f"{name}.py").exists()]


def kind_of_machine():
    """Say what kind of machine this is: no host, no CPU model."""
    machine = describe_machine()
    return (
        f"{platform.system()} {platform.machine()}, {machine.kind}, {machine.cores} cores, "
        f"Python {platform.python_version()}, torch {machine.torch}, NumPy {machine.numpy}"
    )


def run(name):
    """Run one benchmark and return what is stored of it."""
    found = importlib.import_module(f"benchmarks.{name}").measure()
    return {
        "about": importlib.import_module(f"benchmarks.{name}").__doc__.splitlines()[0],
        "machine": kind_of_machine(),
        "date": datetime.date.today().isoformat(),
        "findings": [
            {"what": f.what, "value": f.value, "limit": f.limit, "at_least": f.at_least,
             "holds": f.holds}
            for f in found
        ],
    }  # fmt: skip


def to_markdown(store):
    """Return the page of results."""
    lines = ["# Results of the benchmarks", "", "Written by `python3 course.py bench`.", ""]
    for name in MODULES:
        if name not in store:
            continue
        entry = store[name]
        lines += [f"## {entry['about']}", "", f"{entry['machine']}; {entry['date']}", ""]
        lines += ["| measured | value | limit | holds |", "|---|---|---|---|"]
        lines += [row(finding) for finding in entry["findings"]]
        lines.append("")
    return "\n".join(lines)


def row(finding):
    """Return one line of a table."""
    value = "not measured here" if finding["value"] is None else f"{finding['value']:.3g}"
    sign = "at least" if finding["at_least"] else "at most"
    limit = "" if finding["limit"] is None else f"{sign} {finding['limit']:.3g}"
    holds = {True: "yes", False: "**no**", None: ""}[finding["holds"]]
    return f"| {finding['what']} | {value} | {limit} | {holds} |"


def main(argv=None):
    """Run the wanted benchmarks and write the results; return 1 if a limit does not hold."""
    parser = argparse.ArgumentParser(prog="course.py bench")
    parser.add_argument("names", nargs="*", choices=[[], *available()], metavar="name")
    wanted = parser.parse_args(argv).names or [name for name in available() if name not in LONG]
    store = json.loads(STORE.read_text(encoding="utf-8")) if STORE.exists() else {}
    for name in wanted:
        store[name] = run(name)
        for finding in store[name]["findings"]:
            print(row(finding), flush=True)
        STORE.write_text(json.dumps(store, indent=1) + "\n", encoding="utf-8")
        RESULTS.write_text(to_markdown(store), encoding="utf-8")
    kept = [f["holds"] is not False for name in wanted for f in store[name]["findings"]]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
