"""Run torchrun's agent for one machine of a launch, and note what it says about its ranks.

The agent reads a pipe from the process that launched it. When that process dies, the pipe closes
and the agent ends its ranks and itself.
"""

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

from helpers._rank import FOLDER, note

MACHINE = "COURSE_LAUNCH_MACHINE"


def main(arguments):
    """Hand the arguments to torchrun; exit as it does."""
    folder = Path(os.environ[FOLDER])
    alone = threading.Event()
    threading.Thread(target=_watch, args=(alone,), daemon=True).start()
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.run import main as torchrun

    result = {"finished": False, "codes": {}, "root_cause": None}
    try:
        torchrun(arguments)
        result["finished"] = True
    except ChildFailedError as error:
        result["root_cause"] = error.get_first_failure()[0]
        result["codes"] = {rank: failure.exitcode for rank, failure in error.failures.items()}
        raise
    finally:
        if alone.is_set():
            shutil.rmtree(folder, ignore_errors=True)
        else:
            note(folder / f"agent-{os.environ[MACHINE]}.json", result)


def _watch(alone):
    while os.read(0, 1):
        pass
    alone.set()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(sys.argv[1:])
