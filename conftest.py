"""Run notebooks under nbval as Jupyter runs them, and refuse skips that nobody listed.

Each departure from stock nbval 0.11 has a test in tests/test_nbval_setup.py that fails
when the stock defect is gone, so that this file shrinks with new releases.

Not handled: `clear_output`, updates of a display by its id, and what an ipywidgets Output
captures. The course uses none of them.
"""

import os
import time
from collections import deque
from pathlib import Path
from queue import Empty
from tempfile import TemporaryDirectory

import nbval.plugin
import pytest
from nbval.kernel import RunningKernel

from tools.kernel import environment, prepare_fonts

ROOT = Path(__file__).parent

# The one list of reasons to skip a test. A reason is one of these, or one of these,
# a colon and a detail. Any other skip, and every xfail, fails the run.
ALLOWED_SKIPS = ("needs-cuda", "needs-root-netns", "needs-compiler")


class Kernel(RunningKernel):
    """Run a kernel with an empty progress folder, and notice at once when it dies."""

    def __init__(self, *args, **kwargs):
        """Start the kernel in the settings of tools/kernel.py."""
        self._messages = deque()
        self._folder = TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True)
        prepare_fonts()
        with environment(self._folder.name) as self.course_home:
            super().__init__(*args, **kwargs)

    def execute_cell_input(self, cell_input, allow_stdin=None):
        """Send a cell; with history, because IPython ignores a trailing ";" without it."""
        return self.kc.execute(
            cell_input, store_history=True, allow_stdin=allow_stdin, stop_on_error=False
        )

    def await_reply(self, msg_id, timeout=None):
        """Wait for the reply and read outputs meanwhile; stop when the kernel is dead.

        nbval reads outputs after the reply only: ZeroMQ then drops messages of a cell that
        sends thousands. And it waits the whole timeout for a kernel that has died.
        """
        deadline = time.monotonic() + (timeout or float("inf"))
        while True:
            self._drain()
            try:
                return super().await_reply(msg_id, timeout=0.1)
            except Empty:
                if not self.is_alive():
                    raise RuntimeError("the kernel died while running this cell") from None
                if time.monotonic() >= deadline:
                    raise

    def _drain(self):
        try:
            while True:
                self._messages.append(self.kc.get_iopub_msg(timeout=0))
        except Empty:
            pass

    def get_message(self, stream, timeout=None):
        """Return the next message; one that asks the front end to quit is an error."""
        if stream == "iopub" and self._messages:
            return self._messages.popleft()
        message = super().get_message(stream, timeout=timeout)
        payload = message["content"].get("payload", []) if stream == "shell" else []
        if any(item.get("source") == "ask_exit" for item in payload):
            raise RuntimeError("the cell called exit(): later cells cannot run")
        return message

    def recorded(self):
        """Name what the kernel has written to its progress folder, except measured claims.

        A notebook measures its claims in every run. What must stay empty until a reader guesses
        or solves is the record of predictions and exercises.
        """
        claims = self.course_home / "claims"
        written = (path for path in self.course_home.rglob("*") if path.parent != claims)
        return sorted(path.name for path in written if path != claims)

    def clean(self):
        """Remove the folders of a kernel that has ended."""
        self._folder.cleanup()


class Notebook(nbval.plugin.IPyNbFile):
    """Collect a notebook's code cells; refuse one that was never executed."""

    def get_sanitize_files(self):
        """Name the rules by a path that does not depend on the current folder."""
        return [str(ROOT / "nbval-sanitize.cfg")]

    def collect(self):
        """Yield one test for each code cell."""
        for cell in super().collect():
            cell.output_timeout = 60  # seconds; nbval has 5 and no option
            yield cell

    def setup(self):
        """Start the kernel, unless nbval would compare nothing.

        It compares nothing in a cell that has no execution count, and passes.
        """
        counts = [c.execution_count for c in self.nb.cells if c.cell_type == "code"]
        if self.compare_outputs and counts != list(range(1, len(counts) + 1)):
            raise RuntimeError(
                f"{self.path.name} was not executed from top to bottom (execution counts "
                f"{counts}); run: python3 course.py notebooks {self.path.stem}"
            )
        super().setup()

    def teardown(self):
        """Stop the kernel; an untouched notebook must have recorded no guess and no check."""
        super().teardown()
        if not self.kernel:
            return
        written = self.kernel.recorded()
        self.kernel.clean()
        if written:
            raise AssertionError(f"an untouched {self.path.name} wrote {written} to COURSE_HOME")


nbval.plugin.RunningKernel = Kernel


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Put our collector in the place of nbval's.

    Replacing the class in nbval.plugin would recurse for ever: it names itself in super().
    """
    return [
        Notebook.from_parent(parent, path=file_path)
        if isinstance(collector, nbval.plugin.IPyNbFile)
        else collector
        for collector in (yield)
    ]


def pytest_addoption(parser):
    """Add --lax."""
    parser.addoption(
        "--lax",
        action="store_true",
        help="run every cell and its assertions, but compare no output: for machines other "
        "than the reference platform (COURSE_LAX=1 does the same)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Keep tests out of a reader's own records; compare no output where outputs may differ."""
    if "COURSE_HOME" not in os.environ:
        config._course_home = TemporaryDirectory(prefix="course-", ignore_cleanup_errors=True)
        os.environ["COURSE_HOME"] = config._course_home.name
    if config.option.lax or os.environ.get("COURSE_LAX") == "1":
        config.option.nbval, config.option.nbval_lax = False, True


def _may_skip(reason):
    return reason.removeprefix("Skipped: ").partition(":")[0] in ALLOWED_SKIPS


def _refuse_skip(report):
    if not report.skipped:
        return
    where_and_why = report.longrepr
    is_skip = isinstance(where_and_why, tuple) and not hasattr(report, "wasxfail")
    reason = where_and_why[2] if is_skip else f"xfail {getattr(report, 'wasxfail', '')}".strip()
    if not (is_skip and _may_skip(reason)):
        report.outcome = "failed"
        report.__dict__.pop("wasxfail", None)
        allowed = ", ".join(ALLOWED_SKIPS)
        report.longrepr = f"{report.nodeid} was skipped: {reason!r} is none of {allowed}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item, call):
    """Turn a skip without a listed reason, and every xfail, into a failure."""
    report = yield
    _refuse_skip(report)
    if report.passed and hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} is marked xfail and passed; remove the mark"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Turn the skip of a whole file into a failure, unless its reason is listed."""
    report = yield
    _refuse_skip(report)
    return report
