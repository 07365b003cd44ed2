"""What our set-up of nbval adds, what it must refuse, and whether each addition is still needed.

The notebooks are run by real pytest processes: one with our set-up, one with stock nbval.
"""

import contextlib
import os
import subprocess
import sys
from collections import defaultdict
from types import SimpleNamespace
from xml.etree import ElementTree

import nbval.kernel
import nbval.plugin
import pytest
from sample_notebooks import code, error, notebook, result, stream, write

import conftest as setup
from helpers._paths import ROOT

CHILD = "import subprocess, sys\n_ = subprocess.call([sys.executable, '-c', 'print(5)'])"
FIGURE = "import matplotlib.pyplot as plt\n_ = plt.plot([1, 2])"
ENVIRONMENT = (
    "import os\nprint(os.environ['OMP_NUM_THREADS'], os.environ['COLUMNS'], "
    "os.listdir(os.environ['COURSE_HOME']), 'PYTEST_CURRENT_TEST' in os.environ)"
)
RECORD = (
    "import os, pathlib\n_ = pathlib.Path(os.environ['COURSE_HOME'], '13.1.json').write_text('')"
)
CLAIM = "from helpers import claims\ntotal = 15\n_ = claims.record('A1-28', total=total)"
IGNORED, RAISES = ["nbval-ignore-output"], ["raises-exception"]
ZERO = error("ZeroDivisionError", "division by zero")
NO = error("ValueError", "no")

# Each of these cells must pass with our set-up.
GOOD = {
    "equal": code("6 * 7", result("42")),
    "semicolon": code("6 * 7;"),
    "child": code(CHILD, stream("5\n")),
    "figure": code(
        FIGURE, result("<Figure size 640x480 with 1 Axes>", **{"image/png": "bm90IGNvbXBhcmVk"})
    ),
    "address": code("object()", result("<object at 0x7f0123456789>")),
    "environment": code(ENVIRONMENT, stream("1 80 [] False\n")),
    "helpers": code("import helpers\nhelpers.__name__", result("'helpers'")),
    "measured": code("import time\ntime.time()", result("1.0"), tags=IGNORED),
    "raises": code("1 / 0", ZERO, tags=RAISES),
    "claim": code(CLAIM),
}
# Each of these cells must fail, with these words.
BAD = {
    "edited": (code("6 * 7", result("43")), "43"),
    "missing": (code("6 * 7"), "Unexpected output fields"),
    "silent": (code("x = 1", stream("1\n")), "Missing output fields"),
    "assert": (code("assert 1 > 2"), "AssertionError"),
    "ignored": (code("assert 1 > 2", tags=IGNORED), "AssertionError"),
    "no longer raises": (code("1", NO, tags=RAISES), "output fields"),
    "raises another": (code("int('x')", NO, tags=RAISES), "invalid literal"),
    "skipped": (code("6 * 7", result("42"), tags=["nbval-skip"]), "none of needs-cuda"),
    "warns": (code("import warnings\nwarnings.warn('old')"), "stderr"),
}
# Each of these notebooks must fail, with these words.
BAD_NOTEBOOKS = {
    "unexecuted": (notebook(code("6 * 7", count=False)), "was not executed from top to bottom"),
    "records": (notebook(code(RECORD)), "wrote ['13.1.json'] to COURSE_HOME"),
    "dies": (notebook(code("import os\nos._exit(1)")), "the kernel died"),
    "exits": (notebook(code("exit()")), "called exit()"),
}
# Stock nbval treats these otherwise than Jupyter does. What to remove when it no longer does:
REFUSED = {
    "semicolon": "honors a trailing ';': remove Kernel.execute_cell_input",
    "child": "captures child processes: remove PYTEST_CURRENT_TEST from tools/kernel.py",
    "figure": "shows figures under MPLBACKEND=Agg: remove MPLBACKEND from tools/kernel.py",
}
PASSED_OVER = {
    "unexecuted": "fails on a cell that was not executed: remove Notebook.setup",
    "exits": "fails on exit(): remove the check in Kernel.get_message",
}


def run_pytest(folder, *options, **environment):
    """Run pytest on a folder; return (exit status, {(notebook, cell from 0): problem or ""})."""
    report = folder / "report.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    done = subprocess.run(
        [*command, f"--rootdir={folder}", f"--junitxml={report}", *options, str(folder)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "2"} | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    problems = defaultdict(str)
    for case in ElementTree.parse(report).iter("testcase"):
        key = (case.get("classname").removesuffix(".ipynb"), int(case.get("name").split()[-1]))
        problems[key] += "".join(child.get("message", "") + (child.text or "") for child in case)
    return done.returncode, problems


def ours(folder, *options, **environment):
    settings = ("-c", str(ROOT / "pyproject.toml"), "-p", "conftest")
    return run_pytest(folder, *settings, *options, **environment)


def write_all(folder, **notebooks):
    for name, nb in notebooks.items():
        write(folder / f"{name}.ipynb", nb)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ours")
    counter = notebook(code("n = 0"), *[code("n += 1\nn", result(str(n))) for n in range(1, 5)])
    write_all(
        folder,
        good=notebook(*GOOD.values()),
        bad=notebook(*[cell for cell, _ in BAD.values()]),
        counter=counter,
        **{name: nb for name, (nb, _) in BAD_NOTEBOOKS.items()},
    )
    status, problems = ours(folder, "-n", "2", MPLBACKEND="Agg")
    assert status == 1
    return problems


@pytest.fixture(scope="module")
def stock(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stock")
    (folder / "pytest.ini").write_text("[pytest]\n")
    passed_over = [BAD_NOTEBOOKS[name][0].cells[0] for name in PASSED_OVER]
    write_all(
        folder,
        refused=notebook(*[GOOD[name] for name in REFUSED]),
        passed_over=notebook(*passed_over),
    )
    options = ("-c", str(folder / "pytest.ini"), "--nbval", "--nbval-current-env")
    return run_pytest(folder, *options, MPLBACKEND="Agg")[1]


@pytest.mark.parametrize("name", GOOD)
def test_what_jupyter_shows_passes(outcomes, name):
    assert outcomes["good", list(GOOD).index(name)] == ""


@pytest.mark.parametrize("name", BAD)
def test_a_faulty_cell_fails_and_says_why(outcomes, name):
    assert BAD[name][1] in outcomes["bad", list(BAD).index(name)]


@pytest.mark.parametrize("name", BAD_NOTEBOOKS)
def test_a_faulty_notebook_fails_and_says_why(outcomes, name):
    assert BAD_NOTEBOOKS[name][1] in outcomes[name, 0]


def test_two_workers_keep_a_notebook_in_one_kernel(outcomes):
    assert {outcomes["counter", place] for place in range(5)} == {""}


@pytest.mark.parametrize("name", REFUSED)
def test_stock_nbval_still_refuses_what_we_mend(stock, name):
    assert stock["refused", list(REFUSED).index(name)], f"nbval now {REFUSED[name]}"


@pytest.mark.parametrize("name", PASSED_OVER)
def test_stock_nbval_still_passes_what_we_refuse(stock, name):
    place = list(PASSED_OVER).index(name)
    assert stock["passed_over", place] == "", f"nbval now {PASSED_OVER[name]}"


def test_lax_runs_every_cell_and_compares_nothing(tmp_path):
    cells = code("6 * 7", result("43")), code("6 * 7", count=False), code("assert 1 > 2")
    write_all(tmp_path, lax=notebook(*cells))
    _, problems = ours(tmp_path, COURSE_LAX="1")
    assert (problems["lax", 0], problems["lax", 1]) == ("", "")
    assert "AssertionError" in problems["lax", 2]


@pytest.mark.parametrize(("lax", "nbval"), [(True, False), (False, True)])
def test_the_option_lax_turns_the_comparison_off(monkeypatch, lax, nbval):
    monkeypatch.delenv("COURSE_LAX", raising=False)
    config = SimpleNamespace(option=SimpleNamespace(lax=lax, nbval=True, nbval_lax=False))
    setup.pytest_configure(config)
    assert (config.option.nbval, config.option.nbval_lax) == (nbval, not nbval)


class FakeClient:
    """Replies to a cell only after its outputs have been read."""

    def __init__(self, outputs=3):
        self.waiting = outputs

    def get_iopub_msg(self, timeout=None):
        if not self.waiting:
            raise setup.Empty
        self.waiting -= 1
        return {"content": {}, "n": self.waiting}

    def get_shell_msg(self, timeout=None):
        if self.waiting:
            raise setup.Empty
        return {"parent_header": {"msg_id": "cell"}, "content": {"status": "ok"}}


def kernel_with(client, kind):
    kernel = kind.__new__(kind)
    kernel.kc, kernel._messages = client, setup.deque()
    return kernel


def test_outputs_are_read_while_the_cell_runs_and_in_order():
    kernel = kernel_with(FakeClient(), setup.Kernel)
    kernel.await_reply("cell", timeout=5)
    assert [kernel.get_message("iopub")["n"] for _ in range(3)] == [2, 1, 0]


def test_stock_nbval_still_reads_outputs_only_after_the_reply():
    client = FakeClient()
    with contextlib.suppress(setup.Empty):
        kernel_with(client, nbval.kernel.RunningKernel).await_reply("cell", timeout=0.1)
    assert client.waiting == 3, "nbval now reads outputs meanwhile: remove Kernel._drain"


def test_stock_nbval_still_waits_for_a_dead_kernel():
    asked = []

    class Dead(nbval.kernel.RunningKernel):
        def __init__(self):
            pass

        def get_message(self, stream, timeout=None):
            raise setup.Empty

        def is_alive(self):
            asked.append(True)
            return False

    with pytest.raises(setup.Empty):
        Dead().await_reply("cell", timeout=0.1)
    assert not asked, "nbval now asks whether the kernel lives: remove that from Kernel.await_reply"


def test_stock_nbval_still_fixes_the_output_timeout():
    source = nbval.plugin.IPyNbCell.__init__.__code__.co_names, nbval.plugin.IPyNbCell.__init__
    assert "output_timeout" in source[0]
    assert 5 in source[1].__code__.co_consts, "nbval has another timeout: look at Notebook.collect"


SKIPS = """
import pytest

@pytest.mark.skipif(True, reason="needs-cuda: two devices")
def test_listed(): assert False

@pytest.mark.skip(reason="flaky")
def test_unlisted(): assert True

def test_skips_inside(): pytest.skip("later")

@pytest.mark.xfail(reason="needs-cuda")
def test_expected_failure(): assert False

@pytest.mark.xfail(reason="needs-cuda")
def test_expected_failure_that_passes(): assert True
"""


def test_only_listed_reasons_may_skip(tmp_path):
    (tmp_path / "test_skips.py").write_text(SKIPS)
    (tmp_path / "test_whole_file.py").write_text("import pytest\npytest.importorskip('no_such')\n")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), "-p", "conftest",
         "-p", "no:cacheprovider", "--rootdir", str(tmp_path), "--color=no", "-rA",
         "--continue-on-collection-errors", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    # a mark fails in the set-up, which pytest calls an error; so does a file, twice: it is
    # collected for its tests and for its doctests
    assert "3 failed, 1 skipped, 3 errors" in done.stdout
    assert "'Skipped: flaky' is none of needs-cuda, needs-root-netns, needs-compiler" in done.stdout
    assert "marked xfail and passed" in done.stdout
