"""Build stored wrong answers from the solution or the stub of their exercise."""

from helpers.exercises import WrongAnswer


def edited(exercise, name, says, *changes):
    """Return the solution with each (old, new) replaced; each old text stands there once."""
    source = exercise.solution
    for old, new in changes:
        assert source.count(old) == 1, (name, old)
        source = source.replace(old, new)
    return WrongAnswer(name, source, says)


def returning(exercise, what, says):
    """Return the stub's first line with a body that returns something."""
    head = exercise.stub.partition("\n")[0]
    return WrongAnswer(f"returns {what}", f"{head}\n    return {what}\n", says)
