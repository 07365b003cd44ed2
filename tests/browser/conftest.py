"""Start JupyterLab on 127.0.0.1 with everything in temporary folders, and Chromium beside it."""

import contextlib
import json
import os
import re
import secrets
import signal
import subprocess
import time
import urllib.request
from pathlib import Path

import nbformat
import psutil
import pytest

from helpers._paths import ROOT
from tools import lab, workbook
from tools.kernel import environment, prepare_fonts
from tools.test_browser import MISSING, find_chromium

HERE = Path(__file__).parent
START_SECONDS = 60
CHROMIUM_FLAGS = (
    "--headless=new", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


def pytest_ignore_collect(collection_path, config):
    """Leave these tests to `course.py test-browser`: they need a browser and take minutes."""
    if HERE in collection_path.parents and not any(_is_here(config, arg) for arg in config.args):
        return True
    return None


def _is_here(config, argument):
    """Tell whether an argument of pytest names this folder or something in it."""
    path = (config.invocation_params.dir / str(argument).partition("::")[0]).resolve()
    return HERE in (path, *path.parents)


def _stop(number, frame):
    """Turn SIGTERM into an error, so that the fixtures end what they started."""
    raise KeyboardInterrupt(f"ended by signal {number}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Keep a picture of each open page when a test or its preparation fails, and name it."""
    report = yield
    browser = getattr(item, "funcargs", {}).get("browser")
    folder = os.environ.get("COURSE_SCREENSHOTS")
    if report.failed and browser is not None and folder:
        name = re.sub(r"\W+", "_", item.name)
        pages = [page for context in browser.contexts for page in context.pages]
        for number, page in enumerate(pages, 1):
            path = Path(folder, f"{name}_{report.when}_{number}.png")
            report.sections.append(("screenshot", _picture(page, path)))
    return report


def _picture(page, path):
    """Save a picture and return where it is, or why there is none."""
    from playwright.sync_api import Error

    try:
        page.screenshot(path=path, timeout=10_000)
    except Error as error:  # a crashed page must not hide the failure itself
        return f"no picture: {error}"
    return str(path)


class Server:
    """Hold a running JupyterLab: its address, the reader's copies and the progress folder."""

    def __init__(self, process, url, token, folder, progress):
        self.process, self.url, self.token = process, url, token
        self.folder, self.progress = folder, progress

    def record(self, id):
        """Return the stored record of a prediction or an exercise, or None."""
        path = self.progress / "exercises" / f"{id}.json"
        return json.loads(path.read_text()) if path.exists() else None

    def kernel_process(self, kernel_id):
        """Return the process of a kernel: its command line names the connection file."""
        for child in psutil.Process(self.process.pid).children(recursive=True):
            if kernel_id in " ".join(child.cmdline()):
                return child
        raise LookupError(f"no process runs kernel {kernel_id}")


def _settings(folder):
    """Write the settings that the tests need: every cell in the page, no news."""
    for extension, name, values in (
        ("notebook-extension", "tracker", {"windowingMode": "none"}),
        ("apputils-extension", "notification", {"fetchNews": "false", "doNotDisturbMode": True}),
    ):
        place = folder / "@jupyterlab" / extension
        place.mkdir(parents=True)
        (place / f"{name}.jupyterlab-settings").write_text(json.dumps(values))


def _wait(process, url, log):
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            urllib.request.urlopen(url, timeout=2).read()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"JupyterLab did not answer:\n{log.read_text()[-3000:]}")


def _end(process):
    """End a process and all that it started, by their ids."""
    try:
        parent = psutil.Process(process.pid)
        family = [*parent.children(recursive=True), parent]
    except psutil.NoSuchProcess:  # it ended by itself; the reason is in its log
        return
    for member in family:
        try:
            member.terminate()
        except psutil.NoSuchProcess:
            continue
    _, alive = psutil.wait_procs(family, timeout=10)
    for member in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            member.kill()


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """Lay out the reader's copies and serve them as `course.py lab` does."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "a workbook"
    workbook.lay(ROOT / "notebooks", folder)
    _settings(home / "settings")
    token, port = secrets.token_hex(16), lab.free_port()
    arguments = [
        "--no-browser", f"--IdentityProvider.token={token}", "--LabApp.expose_app_in_browser=True",
        "--ServerApp.terminals_enabled=False",
    ]  # fmt: skip
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    command = lab.lab_command(folder, arguments, port=port, is_root=is_root)
    log = home / "server.log"
    prepare_fonts()
    signal.signal(signal.SIGTERM, _stop)
    with environment(home) as progress, log.open("wb") as out:
        env = (
            os.environ
            | lab.settings({})
            | {
                "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
                "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
            }
        )
        process = subprocess.Popen(command, env=env, stdout=out, stderr=subprocess.STDOUT)
    url = f"http://127.0.0.1:{port}"
    try:
        _wait(process, f"{url}/api/status?token={token}", log)
        yield Server(process, url, token, folder, progress)
    finally:
        _end(process)


@pytest.fixture(scope="session")
def browser():
    """Start Chromium without a window."""
    from playwright.sync_api import sync_playwright

    program = find_chromium()
    if program is None:
        pytest.fail(MISSING)
    flags = [*CHROMIUM_FLAGS]
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        flags.append("--no-sandbox")  # Chromium's sandbox refuses root
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=flags)
        yield chromium
        chromium.close()


def sources(path):
    """Return the sources of a notebook's cells."""
    return [cell.source for cell in nbformat.read(path, as_version=4).cells]
