"""Judge a stored answer the way a notebook does: stub, solution and each wrong answer."""

import itertools
import linecache

from helpers.exercises import _catalog
from helpers.exercises._judge import judge

_numbers = itertools.count(1)


def judge_source(id, source, exercise=None):
    """Run a source text in a fresh namespace and return the Verdict on the answer it defines.

    The namespace holds what a notebook's setup cell imports, ``np`` and ``torch``. The text is
    known to ``linecache``, as every cell is. Nothing is recorded.

    Parameters
    ----------
    id : str
        Id of the exercise.
    source : str
        Text that defines the exercise's ``answer``.
    exercise : Exercise, optional
        What judges, in place of the course's exercise of that id: a changed copy of it.

    Returns
    -------
    Verdict
        With ``status`` and ``sentence``.

    Raises
    ------
    KeyError
        If no exercise has this id.
    NameError
        If the text does not define the answer.

    Examples
    --------
    >>> judge_source("13.2", _catalog.find_exercise("13.2").stub).status
    'not attempted'
    """
    import numpy as np
    import torch

    exercise = exercise or _catalog.find_exercise(id)
    name = f"<answer {next(_numbers)} to {id}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    namespace = {"__name__": "__main__", "np": np, "torch": torch}
    exec(compile(source, name, "exec"), namespace)  # noqa: S102 - stored answers of the course
    if exercise.answer not in namespace:
        raise NameError(f"the source must define {exercise.answer}, as the stub of {id} does")
    return judge(id, exercise, namespace[exercise.answer])
