"""See names of files from where the reader stands: course.py runs its commands in the course."""

import os
from pathlib import Path


def path(name):
    """Return the absolute path of a name that the reader typed.

    Parameters
    ----------
    name : str or pathlib.Path
        Absolute, below ``~``, or relative to the folder in which course.py was started.

    Returns
    -------
    pathlib.Path
    """
    return Path(os.environ.get("COURSE_CWD", ""), Path(name).expanduser()).absolute()
