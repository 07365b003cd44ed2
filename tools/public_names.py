"""List the public names of the libraries that differ between Colab and constraints.txt.

    OLD_PYTHON -P tools/public_names.py list old.json     where Colab's versions are installed
    NEW_PYTHON -P tools/public_names.py list new.json     in the environment of the course
    NEW_PYTHON -P tools/public_names.py compare old.json new.json

The comparison writes tools/newer_than_colab.json: what the newer one has and the older one
lacks. tools/lint_newer.py reads it. This file uses the standard library alone, so that it
runs in an environment without the course.

A name counts as public if no part of it starts with an underscore and it can be reached by
attributes from a module that can be imported. Of functions and classes the keyword
parameters are listed where Python knows their signature; of widgets, their traits.
"""

import importlib
import inspect
import json
import pkgutil
import sys
import types
import warnings
from pathlib import Path

OUTPUT = Path(__file__).with_name("newer_than_colab.json")
# Library: the submodules that are imported with all that they hold.
LIBRARIES = {
    "torch": [
        "accelerator", "amp", "ao", "autograd", "backends", "compiler", "cpu", "cuda",
        "distributed", "distributions", "export", "fft", "fx", "func", "hub", "jit", "library",
        "linalg", "monitor", "mps", "mtia", "multiprocessing", "nested", "nn", "onnx", "optim",
        "overrides", "package", "profiler", "quantization", "random", "serialization", "signal",
        "sparse", "special", "storage", "testing", "types", "utils", "version", "xpu",
    ],
    "numpy": [
        "dtypes", "exceptions", "fft", "lib", "linalg", "ma", "polynomial", "random", "strings",
        "testing", "typing",
    ],
    "ipywidgets": ["widgets"],
}  # fmt: skip
# What is reached through objects whose class a reader of source cannot see.
OBJECTS = ("torch.Tensor", "torch.nn.Module", "torch.optim.Optimizer", "numpy.ndarray")
SKIPPED = {"tests", "examples", "datapipes", "internal"}


def modules(library, parts):
    """Import a library's public modules and yield each with its name."""
    top = importlib.import_module(library)
    yield library, top
    for part in parts:
        name = f"{library}.{part}"
        module = _import(name)
        if module is None:
            continue
        yield name, module
        for found in pkgutil.walk_packages(getattr(module, "__path__", []), f"{name}.", _ignore):
            if not SKIPPED & set(found.name.split(".")) and not _is_private(found.name):
                inner = _import(found.name)
                if inner is not None:
                    yield found.name, inner


def _import(name):
    try:
        return importlib.import_module(name)
    except BaseException:  # noqa: BLE001 - another system's backend; some even exit
        return None


def _ignore(name):
    """Let pkgutil go on after a package that cannot be imported here."""


def _is_private(name):
    return any(part.startswith("_") for part in name.split("."))


def names_of(library, parts):
    """Return the keyword parameters of each public name; None where Python knows none."""
    found = {}
    for name, module in modules(library, parts):
        found.setdefault(name, None)
        for attribute in dir(module):
            value = inspect.getattr_static(module, attribute, None)
            if not attribute.startswith("_") and _home(value, library) == library:
                found[f"{name}.{attribute}"] = parameters(value)
    for name in OBJECTS:
        if name.startswith(library):
            owner = _reach(name)
            for attribute in dir(owner):
                if not attribute.startswith("_"):
                    found[f"{name}.{attribute}"] = parameters(getattr(owner, attribute, None))
    return found


def _home(value, default):
    """Return the library that a value comes from; a constant belongs where it is found."""
    is_module = isinstance(value, types.ModuleType)
    module = value.__name__ if is_module else getattr(value, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else default


def _reach(name):
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def parameters(value):
    """Return the names by which a callable can be given arguments; None if unknown."""
    if isinstance(value, type) and hasattr(value, "class_trait_names"):
        return sorted(n for n in value.class_trait_names() if not n.startswith("_"))
    if not callable(value):
        return None
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    given = signature.parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in given):  # nobody can say what it takes
        return None
    return sorted(p.name for p in given if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


def take_list():
    """List everything in this environment."""
    warnings.simplefilter("ignore")
    versions, names = {}, {}
    for library, parts in LIBRARIES.items():
        names |= names_of(library, parts)
        versions[library] = importlib.import_module(library).__version__.partition("+")[0]
    return {"versions": versions, "names": names}


def compare(old, new):
    """Return what the newer list has and the older one lacks."""
    before, after = old["names"], new["names"]
    added = {name for name in after if name not in before}
    # Below a new module or class everything is new.
    roots = {n for n in added if not any(p in added for p in _parents(n))}
    keywords = {
        name: sorted(set(given) - set(before[name]))
        for name, given in after.items()
        if name in before and given and before[name] is not None and set(given) - set(before[name])
    }
    return {
        "made": "by tools/public_names.py",
        "older": old["versions"],
        "newer": new["versions"],
        "names": sorted(roots),
        "keywords": dict(sorted(keywords.items())),
    }


def _parents(name):
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts))]


def main(arguments):
    """List or compare."""
    if arguments[:1] == ["list"]:
        Path(arguments[1]).write_text(json.dumps(take_list()), encoding="utf-8")
        return 0
    old, new = (json.loads(Path(name).read_text(encoding="utf-8")) for name in arguments[1:])
    text = json.dumps(compare(old, new), indent=1, ensure_ascii=False)
    OUTPUT.write_text(text + "\n", encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
