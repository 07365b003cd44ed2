"""Run every notebook with the versions that Colab has."""

from benchmarks import Finding
from tools import notebooks, test_colab


def measure() -> list[Finding]:
    """Run `course.py test-colab` and count the cells of the notebooks that ran to their end."""
    python, different = test_colab.make_environment(
        test_colab.read_pins(), test_colab.find_python()
    )
    test_colab.lay_stand_in(python)
    versions = ", ".join(test_colab.describe(python).split(", ")[:3])
    found = [Finding(f"pins that cannot be had ({versions})", len(different), 0)]
    for result in test_colab.results(notebooks.find(), python):
        what = f"{result.name}: cells that ran (of {result.cells})"
        ran = 0 if result.error else result.cells
        found.append(Finding(what, ran, result.cells, at_least=True))
    return found
