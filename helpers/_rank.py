"""Run one script as one rank of a launch, and note how it ended.

torchrun starts this module once per rank. It works in the folder of the launch: what the rank
prints goes to NAME.log, how it ended to NAME.json, where it was when it was told to stop to
NAME.stack. The script itself knows nothing of it.
"""

import faulthandler
import json
import os
import runpy
import signal
import sys
import time
import traceback
from pathlib import Path

FOLDER = "COURSE_LAUNCH_FOLDER"


def main(script, args):
    """Run the script as `python script args` would; re-raise nothing, but keep the exit code."""
    base = Path(os.environ[FOLDER], f"{time.time_ns()}-{os.getpid()}")
    _send_output_to(base.with_suffix(".log"))
    if hasattr(faulthandler, "register"):  # not on Windows
        stack = base.with_suffix(".stack").open("w")
        faulthandler.register(signal.SIGTERM, file=stack, all_threads=True, chain=True)
    state = {
        "rank": int(os.environ["RANK"]),
        "world_size": int(os.environ["WORLD_SIZE"]),
        "pid": os.getpid(),
        "started": time.time(),
        "ended": None,
        "how": "running",
    }
    note(base.with_suffix(".json"), state)
    sys.argv = [script, *args]
    sys.path[0] = str(Path(script).parent)
    try:
        runpy.run_path(script, run_name="__main__")
    except BaseException as error:  # noqa: BLE001 - it is written down for the notebook
        state["ended"] = time.time()
        if isinstance(error, SystemExit) and not error.code:
            state["how"] = "returned"
        else:
            state |= _describe(error, script)
        code = 0 if state["how"] == "returned" else 1
    else:
        state["ended"], state["how"], code = time.time(), "returned", 0
    note(base.with_suffix(".json"), state)
    sys.exit(code)


def note(path, content):
    """Write JSON so that a reader sees the old file or the new one, never half of one."""
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(content), encoding="utf-8")
    os.replace(draft, path)


def _send_output_to(path):
    # The descriptors, not sys.stdout: messages of C++ go there too.
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def _describe(error, script):
    frames = error.__traceback__
    inner = frames
    while inner and inner.tb_frame.f_code.co_filename != script:
        inner = inner.tb_next
    text = "".join(traceback.format_exception(type(error), error, inner or None))
    sys.stderr.write(text)
    return {"how": "raised", "type": type(error).__name__, "message": str(error), "text": text}


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
