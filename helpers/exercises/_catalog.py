"""Find a prediction or an exercise by its id, in exercises/nbNN.py or a module of one's own."""

import importlib
import pkgutil
import re
from functools import cache

_ID = re.compile(r"(\d\d)\.p?\d{1,3}")
_used = []


class UnknownIdError(KeyError):
    """Say which ids exist when one does not."""

    def __str__(self):
        return self.args[0]


def use(module):
    """Register a module of exercises that does not lie in the course's ``exercises`` folder.

    Its ids win over those of the course. Tests and instructors use this.

    Parameters
    ----------
    module : module or object
        Anything with the dictionaries ``PREDICTIONS`` and ``EXERCISES``; either may be missing.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> use(SimpleNamespace(EXERCISES={}, PREDICTIONS={}))
    """
    _used.insert(0, module)


def find_exercise(id):
    """Return the Exercise of that id."""
    return _find(id, "EXERCISES", "exercise")


def find_prediction(id):
    """Return the Choice or Number of that id."""
    return _find(id, "PREDICTIONS", "prediction")


def known_ids(table):
    """Return all ids of ``"EXERCISES"`` or ``"PREDICTIONS"``, sorted by notebook and number."""
    ids = {id for module in _all_modules() for id in getattr(module, table, {})}
    return tuple(sorted(ids, key=sort_key))


def sort_key(id):
    """Order ids by notebook, exercises before predictions, then number."""
    notebook, _, rest = id.partition(".")
    return notebook, rest.startswith("p"), int(rest.lstrip("p") or 0)


def _find(id, table, noun):
    if isinstance(id, str):
        for module in (*_used, *_course_module(id)):
            if id in getattr(module, table, {}):
                return getattr(module, table)[id]
    known = known_ids(table)
    notebook = str(id).partition(".")[0]
    near = [other for other in known if other.startswith(f"{notebook}.")] or known
    listed = ", ".join(near) or "none"
    raise UnknownIdError(f"no {noun} has the id {id!r}; known ids: {listed} (write them as text)")


def _course_module(id):
    match = _ID.fullmatch(id)
    return [_import(f"nb{match[1]}")] if match and f"nb{match[1]}" in _course_names() else []


@cache
def _course_names():
    package = importlib.import_module("exercises")
    names = [info.name for info in pkgutil.iter_modules(package.__path__)]
    return sorted(name for name in names if re.fullmatch(r"nb\d\d", name))


def _all_modules():
    return [*_used, *map(_import, _course_names())]


def _import(name):
    return importlib.import_module(f"exercises.{name}")
