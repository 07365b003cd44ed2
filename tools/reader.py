"""Put a reader's guesses and answers into a notebook, as a reader would type them."""

import copy
import re

from helpers.exercises import Choice

CALL = re.compile(r"""\b(predict|reveal|check)\(\s*["']([^"']+)["']""")


def ids(nb, call):
    """Return the ids with which code cells call predict, reveal or check, in order."""
    cells = [cell.source for cell in nb.cells if cell.cell_type == "code"]
    return [id for source in cells for name, id in CALL.findall(source) if name == call]


def guesses_of(asked, truth=None):
    """Return every guess worth trying: each option, or far too low, far too high and right."""
    if isinstance(asked, Choice):
        return list(asked.options)
    ends = [0.001, 1e15] if asked.among is None else [0, asked.among]
    return ends + ([truth] if isinstance(truth, int | float) else [])


def with_guesses(nb, guesses):
    """Return a copy in which each `predict("13.p1")` carries its guess."""
    nb = copy.deepcopy(nb)
    for cell in nb.cells:
        if cell.cell_type == "code":
            for id, guess in guesses.items():
                call = rf"""\bpredict\(\s*["']{re.escape(id)}["']\s*(?:,[^()]*)?\)"""
                put = f'predict("{id}", guess={guess!r})'
                cell.source = re.sub(call, lambda _, put=put: put, cell.source)
    return nb


def with_solutions(nb, exercises):
    """Return a copy in which each stub is replaced by its solution."""
    nb = copy.deepcopy(nb)
    for id, exercise in exercises.items():
        for cell in nb.cells:
            if holds_stub(cell.source, id, exercise):
                cell.source = check_cell(id, exercise, exercise.solution)
    return nb


def each_cell_twice(nb):
    """Return a copy in which every code cell stands twice in a row."""
    nb = copy.deepcopy(nb)
    cells = []
    for cell in nb.cells:
        cells.append(cell)
        if cell.cell_type == "code":
            again = copy.deepcopy(cell)
            again.id = f"{cell.id}-again"[:64]
            cells.append(again)
    nb.cells = cells
    return nb


def check_cell(id, exercise, source):
    """Return the text of the cell that holds an answer and its check."""
    return f'{source.rstrip()}\n\ncheck("{id}", {exercise.answer})'


def holds_stub(source, id, exercise):
    """Say whether a cell is the stub and its check; a formatter puts two lines after a def."""
    tight = re.sub(r"\n{3,}check\(", "\n\ncheck(", source.strip())
    return tight == check_cell(id, exercise, exercise.stub)


def differences(nb, module):
    """Say where a notebook and its module of exercises disagree.

    Why: a stub that differs from its module's counts as attempted, so that an untouched
    notebook would be called wrong; and a prediction that nobody asks is dead text.
    """
    predictions, exercises = list(module.PREDICTIONS), list(module.EXERCISES)
    found = []
    for what, call, known in (
        ("predictions", "predict", predictions),
        ("predictions", "reveal", predictions),
        ("exercises", "check", exercises),
    ):
        if ids(nb, call) != known:
            found.append(f"the {what} are {known}; the notebook calls {call} for {ids(nb, call)}")
    sources = [cell.source for cell in nb.cells]
    for id, exercise in module.EXERCISES.items():
        if not any(holds_stub(source, id, exercise) for source in sources):
            found.append(f"no cell holds the stub of {id}, an empty line and its check alone")
    return found
