"""Start the course: make its environment, then run a command inside it.

    python3 course.py lab

This file uses the standard library alone and keeps to syntax that Python 3.6 can parse,
so that an old Python gets a sentence instead of a SyntaxError. The commands themselves are
modules of tools/ and run inside the environment.
"""

import contextlib
import errno
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.abspath(__file__))
OLDEST, NEWEST = (3, 11), (3, 14)
OTHERS = ("3.13", "3.12", "3.14", "3.11")  # tried in turn when the running Python does not fit

# Each command is tools/<command>.py, except those in MODULES. First the extras of
# pyproject.toml that it needs.
COMMANDS = {
    "lab": ("deploy", "open the course in JupyterLab (more arguments go to JupyterLab)"),
    "test": ("deploy test", "run every test and every notebook (more arguments go to pytest)"),
    "test-twice": ("deploy test", "run each cell twice and try every guess; takes numbers: 13 22"),
    "test-browser": ("deploy test", "drive the course in JupyterLab and Chromium"),
    "check": ("deploy test", "lint code and notebooks; --mutate breaks them to see who notices"),
    "notebooks": ("deploy test", "execute notebooks and store their outputs, for maintainers"),
    "new": ("test", "lay out a new notebook, for authors"),
    "stamp": ("deploy test", "write another address (owner/name) or --version everywhere"),
    "bench": ("deploy test", "measure the course's own tools and write benchmarks/RESULTS.md"),
    "gpu-check": ("deploy test", "run on a CUDA device what needs one, and keep what it measured"),
    "doctor": ("", "say what this machine lacks, each with its fix"),
    "site": ("", "write the course as web pages, to read without running"),
    "class": ("", "join the lab reports of a class into one table: a.json b.json ..."),
    "classroom": ("deploy", "keep the pages for instructors true; --edition adds solutions"),
    "shared-server": ("deploy", "say what a machine needs that a class shares: --users 20"),
    "wheelhouse": ("", "collect the wheels for installs without a network, in a folder"),
    "test-colab": ("deploy test", "run the notebooks at Colab's versions; takes numbers: 13 62"),
}
MODULES = {"class": "class_table"}  # `class` is a word of Python

# Which files inside the environment belong to this program:
LOCK = ".course-lock"  # held while one start makes the environment
OWNED = ".course-made-this"  # the folder may be cleared: this program created it
STAMP = ".course-stamp"  # what was installed; absent while an install is under way

WHEEL_SUMS = "SHA256SUMS"  # in a folder of wheels that tools/wheelhouse.py made

GIGABYTE = 10**9
# pip says one of these before it has installed anything: it resolves and fetches all at first.
UNRESOLVED = ("No matching distribution", "ResolutionImpossible")
UNREACHABLE = ("Retrying (", "NewConnectionError", "NameResolutionError", "ProxyError", "SSLError")
PROBE = (
    "import importlib.util as u, json, platform, sys; print(json.dumps(["
    "sys.executable, list(sys.version_info[:2]), sys.maxsize > 2**32, platform.machine(), "
    "all(u.find_spec(m) for m in ('venv', 'ensurepip'))]))"
)


class SetupError(Exception):
    """End with one plain sentence that names the fix."""


class NothingInstalledError(SetupError):
    """End so where pip gave up before it changed the environment."""


class Python:
    """Hold what this program needs to know about one interpreter."""

    def __init__(self, path, version, is_64_bit=True, machine="", can_make_venv=True):
        """Keep the answers of PROBE."""
        self.path, self.version = path, tuple(version)
        self.is_64_bit, self.machine, self.can_make_venv = is_64_bit, machine, can_make_venv

    @property
    def fits(self):
        """Tell whether PyTorch has wheels for this interpreter."""
        return OLDEST <= self.version <= NEWEST and self.is_64_bit


def probe(command):
    """Ask an interpreter what it is; None when it does not start (a pyenv shim, a stub)."""
    try:
        answer = subprocess.check_output(
            list(command) + ["-c", PROBE], stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL
        )
        return Python(*json.loads(answer.decode()))
    except (OSError, ValueError, TypeError, subprocess.CalledProcessError):
        return None


def other_commands():
    """List the commands under which a fitting Python may be installed."""
    if os.name == "nt":
        return [["py", "-" + version] for version in OTHERS]
    found = [shutil.which("python" + version) for version in OTHERS]
    return [[path] for path in found if path]


def find_python():
    """Choose the running Python if it fits, else another one, else say what to install."""
    running = probe([sys.executable])
    fitting = [running] if running and running.fits else []
    if not (fitting and running.can_make_venv):
        others = [probe(command) for command in other_commands()]
        fitting += [python for python in others if python and python.fits]
    able = [python for python in fitting if python.can_make_venv]
    if able:
        return able[0]
    if fitting:
        raise SetupError(
            "This Python has no venv or ensurepip module, which make environments; on Debian "
            f"or Ubuntu run `sudo apt install {venv_package(fitting[0])}`, elsewhere install "
            "Python from python.org, then run the same command again."
        )
    raise SetupError(no_python_sentence(sys.version_info[:2]))


def venv_package(python):
    """Name the Debian package that completes a Python."""
    return f"python{python.version[0]}.{python.version[1]}-venv"


def no_python_sentence(version):
    """Say why the running Python does not fit and which one to install."""
    name = f"Python {version[0]}.{version[1]}"
    fix = (
        "install Python 3.13 from python.org or your package manager beside it, "
        "then run the same command again."
    )
    if version < OLDEST:
        return f"{name} is too old for the course, which needs 3.11 to 3.14; {fix}"
    if version > NEWEST:
        return f"{name} is newer than PyTorch supports, which is 3.11 to 3.14; {fix}"
    fix = fix.replace("Python 3.13", "the 64-bit Python 3.13")
    return f"This {name} is a 32-bit one, for which PyTorch has no wheels; {fix}"


def refuse_intel_mac(python):
    """Stop where PyTorch has no wheels at all."""
    if platform.system() == "Darwin" and python.machine == "x86_64":
        raise SetupError(
            "PyTorch has no wheels for Intel Macs; use Google Colab or another computer, or, "
            "if this Mac has Apple silicon, install the arm64 Python 3.13 from python.org."
        )


def environment_folder():
    """Return the folder of the environment: COURSE_VENV or .venv beside this file."""
    chosen = os.environ.get("COURSE_VENV")
    return os.path.abspath(os.path.expanduser(chosen)) if chosen else os.path.join(ROOT, ".venv")


def python_inside(folder):
    """Return the path of the interpreter inside an environment."""
    parts = ("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")
    return os.path.join(folder, *parts)


def wanted_key():
    """Hash what decides the content of the environment."""
    digest = hashlib.sha256(ROOT.encode("utf-8", "surrogateescape"))
    for name in ("pyproject.toml", "constraints.txt"):
        with open(os.path.join(ROOT, name), "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def read_stamp(folder):
    """Return what the last finished install recorded, or an empty dict."""
    try:
        with open(os.path.join(folder, STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def is_ready(folder, extras):
    """Tell whether the environment holds what a command needs, without starting pip."""
    stamp = read_stamp(folder)
    if stamp.get("key") != wanted_key() or not set(extras) <= set(stamp.get("extras", [])):
        return False
    # A system upgrade can leave .venv/bin/python pointing at another minor version.
    python = probe([python_inside(folder)])
    return python is not None and list(python.version) == stamp.get("python")


def try_lock(file):
    """Take the lock of an open file; False while another process holds it."""
    try:
        if os.name == "nt":
            import msvcrt

            file.seek(0)
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        # Any other error: this folder has no locks (some network file systems); go on without.
        return error.errno not in (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
    return True


def run_locked(command, lock, **options):
    """Start a program that shares the lock, so that it counts even after we are killed."""
    if os.name != "nt":
        options["pass_fds"] = [lock.fileno()]
    return subprocess.Popen(command, **options)


@contextlib.contextmanager
def locked(folder):
    """Let one start at a time make the environment; the others wait."""
    with open(os.path.join(folder, LOCK), "a+") as file:
        if not try_lock(file):
            say("Another start is making the environment; waiting for it.")
            while not try_lock(file):
                time.sleep(0.2)
        yield file  # closing it releases the lock, also when this process is killed


def make_writable_folder(folder):
    """Create a folder and prove that files can be written in it."""
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SetupError(
            f"The folder {folder} cannot be written ({error.strerror}); move the course to a "
            "folder of your own or set COURSE_VENV to a folder that you can write."
        ) from None


def space_needed():
    """Return the bytes that a new environment may take; CUDA comes with the wheels of Linux."""
    wheels = wheels_folder()
    if wheels and os.path.isdir(wheels):  # a wheel unpacks to two to five times its size
        return min(6 * GIGABYTE, 5 * sum(entry.stat().st_size for entry in os.scandir(wheels)))
    indexes = os.environ.get("PIP_INDEX_URL", "") + os.environ.get("PIP_EXTRA_INDEX_URL", "")
    return 6 * GIGABYTE if platform.system() == "Linux" and "/cpu" not in indexes else 2 * GIGABYTE


def require_space(folder):
    """Stop before a download that cannot fit."""
    free, need = shutil.disk_usage(folder).free, space_needed()
    if free < need:
        raise SetupError(
            f"The environment needs {need / GIGABYTE:.0f} GB and the disk of {folder} has "
            f"{free / GIGABYTE:.1f} GB free; free some space, set COURSE_VENV to a folder on "
            "another disk, or see README.md for the smaller CPU-only wheels."
        )


def is_environment(folder):
    """Tell whether somebody's venv lies here."""
    return os.path.exists(os.path.join(folder, "pyvenv.cfg"))


def prepare_folder(folder):
    """Make sure that the folder is ours, new, or an environment; never touch anything else."""
    make_writable_folder(os.path.dirname(folder))
    content = set(os.listdir(folder)) - {LOCK} if os.path.isdir(folder) else set()
    if content and OWNED not in content and not is_environment(folder):
        raise SetupError(
            f"The folder {folder} holds files that are no environment of the course; set "
            "COURSE_VENV to a folder that is empty or does not exist yet."
        )
    make_writable_folder(folder)
    if not content:
        with open(os.path.join(folder, OWNED), "w", encoding="utf-8") as file:
            file.write("course.py made this folder and may clear it.\n")


def clear(folder):
    """Remove the rest of an interrupted install, but not the lock or the owner's mark."""
    for name in sorted(set(os.listdir(folder)) - {LOCK, OWNED}):
        path = os.path.join(folder, name)
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        else:
            os.remove(path)


def create(folder, lock):
    """Create an empty environment and return its Python."""
    python = find_python()
    refuse_intel_mac(python)
    require_space(folder)
    clear(folder)
    say(f"Making an environment with Python {python.version[0]}.{python.version[1]}.")
    command = [python.path, "-m", "venv", folder]
    run = run_locked(command, lock, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    output = run.communicate()[0].decode("utf-8", "replace")
    inside = probe([python_inside(folder)])
    if run.returncode or inside is None:
        raise SetupError(
            f"Python's venv module could not make the environment ({last_line(output)}); on "
            f"Debian or Ubuntu run `sudo apt install {venv_package(python)}`, then run the same "
            "command again."
        )
    return inside


def last_line(text):
    """Return the last line that says something, without pip's prefix or a final period."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    errors = [line for line in errors if "ResolutionImpossible" not in line] or errors
    return (errors or lines or ["no message"])[-1].rpartition("ERROR: ")[2].rstrip(".")


def pip_error(errors, sentence):
    """Return the error that ends an install, of the kind that tells whether anything changed."""
    changed = "No space left" in errors or not any(w in errors for w in UNREACHABLE + UNRESOLVED)
    return (SetupError if changed else NothingInstalledError)(sentence)


def pip_failure(errors):
    """Turn what pip wrote into one sentence with the fix."""
    line = last_line(errors)
    if "No space left" in errors or "not enough space on the disk" in errors:
        return (
            "The disk filled up during the install; free some space or set COURSE_VENV to a "
            "folder on another disk, then run the same command again."
        )
    if any(word in errors for word in UNREACHABLE):
        return (
            f"pip could not reach the package index ({line}); check the network or the proxy, "
            "then run the same command again."
        )
    if "No module named pip" in errors:
        return (
            "The environment has no pip; delete it or set COURSE_VENV to a new folder, "
            "then run the same command again."
        )
    return (
        f"pip could not install the course ({line}); mend that, or delete the environment, "
        "then run the same command again."
    )


def wheels_folder():
    """Return the folder of COURSE_WHEELS, from which alone is installed; None without one."""
    chosen = os.environ.get("COURSE_WHEELS")
    return os.path.abspath(os.path.expanduser(chosen)) if chosen else None


def check_wheels(folder):
    """Compare each wheel with its sum: a copy on a stick or over a bad line may be damaged."""
    try:
        with open(os.path.join(folder, WHEEL_SUMS), encoding="utf-8") as file:
            sums = [line.partition("  ") for line in file.read().splitlines()]
    except OSError:
        raise SetupError(
            f"The folder {folder} of COURSE_WHEELS has no {WHEEL_SUMS}; make it with "
            "`python3 course.py wheelhouse FOLDER` where there is a network, and copy all of it."
        ) from None
    for expected, _, name in sums:
        if len(expected) != 64 or not name:
            raise SetupError(f"{WHEEL_SUMS} in {folder} is damaged; copy the folder again.")
        digest = hashlib.sha256()
        try:
            with open(os.path.join(folder, name), "rb") as file:
                for block in iter(lambda: file.read(2**20), b""):
                    digest.update(block)
        except OSError:
            raise SetupError(f"{name} is missing in {folder}; copy the folder again.") from None
        if digest.hexdigest() != expected:
            raise SetupError(f"{name} in {folder} is damaged; copy the folder again.")


def missing_wheel(errors, folder, extras):
    """Turn what pip wrote into one sentence, when it had a folder of wheels alone."""
    if not any(word in errors for word in UNRESOLVED):
        return pip_failure(errors)
    every = " --all" if "test" in extras else ""  # what the tests need is not in every folder
    return (
        f"A wheel for this computer is missing in {folder} ({last_line(errors)}); make the folder "
        f"with `python3 course.py wheelhouse FOLDER{every}` on a computer with the same system "
        "and the same version of Python, from the same version of the course."
    )


def install(python, extras, lock):
    """Install the course under its constraints with the environment's own pip."""
    target = ".[{}]".format(",".join(sorted(extras))) if extras else "."
    command = [python, "-m", "pip", "install", "-c", "constraints.txt", "-e", target]
    # pip's other settings stay the reader's; a user install is impossible in an environment.
    settings = dict(os.environ, PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1")
    wheels = wheels_folder()
    if wheels:
        check_wheels(wheels)
        command += ["--no-index", "--find-links", wheels]
        # A reader's setting could still name an address to look at.
        settings = {name: value for name, value in settings.items() if name[:4] != "PIP_"}
        settings.update(PIP_CONFIG_FILE=os.devnull, PIP_DISABLE_PIP_VERSION_CHECK="1")
    if not sys.stdout.isatty():
        command.append("--quiet")
    run = run_locked(command, lock, cwd=ROOT, env=settings, stderr=subprocess.PIPE)
    errors = run.communicate()[1].decode("utf-8", "replace")
    if run.returncode:
        said = missing_wheel(errors, wheels, extras) if wheels else pip_failure(errors)
        raise pip_error(errors, said)


def make_ready(folder, extras):
    """Create or update the environment so that it holds the extras; done once at a time."""
    prepare_folder(folder)
    with locked(folder) as lock:
        if is_ready(folder, extras):
            return
        stamp, stamp_file = read_stamp(folder), os.path.join(folder, STAMP)
        python = probe([python_inside(folder)])
        owned = os.path.exists(os.path.join(folder, OWNED))
        whole = bool(stamp) and python and list(python.version) == stamp.get("python")
        if owned and not (whole and python.fits):
            python = create(folder, lock)
        elif python is None or not python.fits:
            raise SetupError(
                f"The environment in {folder} was not made by the course and has no Python 3.11 "
                "to 3.14; set COURSE_VENV to a new folder."
            )
        extras = sorted(set(extras) | set(stamp.get("extras", [])))
        if os.path.exists(stamp_file):
            os.remove(stamp_file)  # from here to the end an interruption shows as unfinished
        say("Installing the course; the first time takes some minutes.")
        try:
            install(python.path, extras, lock)
        except NothingInstalledError:
            if whole:  # what was there still works, such as without a network
                write_stamp(stamp_file, stamp)
            raise
        content = {"key": wanted_key(), "extras": extras, "python": list(python.version)}
        write_stamp(stamp_file, content)


def write_stamp(path, content):
    """Write at once what an install recorded: a start that is killed leaves the old or the new."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(content, file)
    os.replace(path + ".new", path)


def hand_over(python, command, arguments):
    """Run the command's module inside the environment and return its exit code."""
    name = MODULES.get(command, command.replace("-", "_"))
    module = [python, "-m", "tools." + name] + arguments
    os.environ["COURSE_CWD"] = os.getcwd()  # names in the arguments are seen from there
    os.chdir(ROOT)
    sys.stdout.flush()
    if os.name != "nt":
        os.execv(python, module)  # same process: signals reach the command itself
    child = subprocess.Popen(module)
    while True:
        try:
            return child.wait()
        except KeyboardInterrupt:
            pass  # Ctrl-C reached the command too, which ends by itself


def say(text):
    """Print at once, also into a pipe."""
    print(text, flush=True)


def usage():
    """Return the list of commands."""
    lines = ["Usage: python3 course.py COMMAND", ""]
    lines += [f"  {name:<13} {text}" for name, (_, text) in COMMANDS.items()]
    return "\n".join(lines)


def main(arguments):
    """Run one command; return the exit code."""
    command, rest = (arguments or ["--help"])[0], arguments[1:]
    if command in ("-h", "--help", "help"):
        say(usage())
        return 0 if arguments else 2
    try:
        if command not in COMMANDS:
            raise SetupError(
                f"There is no command {command!r}; the commands are {', '.join(COMMANDS)}."
            )
        extras, folder = COMMANDS[command][0].split(), environment_folder()
        if not is_ready(folder, extras):
            make_ready(folder, extras)
        return hand_over(python_inside(folder), command, rest)
    except SetupError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(
            f"The system refused a step ({error}); mend that, then run the same command again.\n"
        )
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted; run the same command again to go on.\n")
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
