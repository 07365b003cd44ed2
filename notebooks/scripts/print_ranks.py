"""Report what torchrun tells each process."""

import os

from helpers.launch import report

NAMES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "GROUP_RANK")
report(**{name: int(os.environ[name]) for name in NAMES})
