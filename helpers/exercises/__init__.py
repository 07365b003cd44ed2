"""Predict before you measure, check what you wrote, and keep what you reached.

A notebook calls ``predict``, ``reveal``, ``check``, ``hint``, ``solution`` and ``progress``.
A module ``exercises/nbNN.py`` describes its predictions and exercises with ``Choice``,
``Number``, ``Exercise``, ``WrongAnswer`` and ``Wrong``.
"""

from helpers.exercises._board import Progress
from helpers.exercises._catalog import use
from helpers.exercises._check import check, hint, solution
from helpers.exercises._model import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.exercises._predict import predict, reveal

progress = Progress()

__all__ = [
    "Choice",
    "Exercise",
    "Number",
    "Wrong",
    "WrongAnswer",
    "check",
    "hint",
    "predict",
    "progress",
    "reveal",
    "solution",
    "use",
]
