"""Lay the notebooks out in workbook/ and open JupyterLab there, on this machine alone."""

import os
import socket
import subprocess
import sys
from pathlib import Path

from tools import workbook

ROOT = Path(__file__).resolve().parents[1]
START = "00_start_here.ipynb"


def free_port() -> int:
    """Ask the system for a port that nobody uses."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settings(environment) -> dict[str, str]:
    """Return the variables that JupyterLab and its kernels start with.

    Kernels run the course's startup file, unless the reader has one, and come from this
    environment, not from a user-wide installation.
    """
    own = environment.get("PYTHONSTARTUP")
    startup = own or str(ROOT / "tools" / "kernel_startup.py")
    return {"PYTHONSTARTUP": startup, "JUPYTER_PREFER_ENV_PATH": "1"}


def _farewell(arguments: list[str]) -> str:
    """Return the last line before JupyterLab takes over this terminal."""
    if any(argument.split("=")[0].endswith("no-browser") for argument in arguments):
        return "Open the address that JupyterLab prints in a browser; Ctrl-C here ends it."
    return "JupyterLab opens in your browser; Ctrl-C here ends it. Your work is saved."


def first_notebook(folder: Path) -> str | None:
    """Return the name of the notebook to open: the start, else the first, else none."""
    names = sorted(path.name for path in folder.glob("*.ipynb"))
    return START if START in names else next(iter(names), None)


def lab_command(folder: Path, arguments: list[str], *, port: int, is_root: bool) -> list[str]:
    """Return the command that starts JupyterLab; the reader's own arguments win.

    The token stays on: other people may have accounts on the same machine.
    """
    name = first_notebook(folder)
    options = {
        "--ServerApp.root_dir": str(folder),
        "--ip": "127.0.0.1",
        "--port": str(port),
        "--ServerApp.port_retries": "50",  # when another start took the port meanwhile
        "--LabApp.default_url": f"/lab/tree/{name}" if name else "/lab",
        "--LabApp.app_settings_dir": str(ROOT / "tools" / "lab_settings"),
        "--LabApp.news_url": "None",
        "--LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "--ServerApp.answer_yes": "True",  # one Ctrl-C ends it; work is on the disk
    }
    given = {argument.partition("=")[0] for argument in arguments}
    given |= {name.replace("ServerApp.", "") for name in given}
    chosen = [f"{name}={value}" for name, value in options.items() if name not in given]
    if is_root:
        chosen.append("--allow-root")  # containers; the address is this machine's own
    return [sys.executable, "-m", "jupyterlab", *chosen, *arguments]


def main(arguments: list[str]) -> int:
    """Lay the notebooks out, say what happened, and become JupyterLab."""
    folder = workbook.folder(os.environ)
    if workbook.main():
        return 1
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    command = lab_command(folder, arguments, port=free_port(), is_root=is_root)
    print(_farewell(arguments), flush=True)
    os.environ.update(settings(os.environ))
    if os.name != "nt":
        os.execv(command[0], command)
    try:
        return subprocess.call(command)
    except KeyboardInterrupt:
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
