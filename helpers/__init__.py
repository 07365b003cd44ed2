"""Measure where code runs, how long it takes and how many bytes it holds.

Import the module you need, so that a reader can open it: ``from helpers import timing``.
"""

__version__ = "1.0.0"
