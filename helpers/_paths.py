"""Say where the checkout and the reader's progress lie."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def progress_home() -> Path:
    """Return the folder of the reader's progress: COURSE_HOME, or the system's place for data."""
    if os.environ.get("COURSE_HOME"):
        return Path(os.environ["COURSE_HOME"])
    import platformdirs

    return platformdirs.user_data_path("measured-pytorch")
