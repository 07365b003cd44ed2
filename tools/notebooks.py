"""Execute the notebooks and write them in the one form that is committed.

    python3 course.py notebooks              all of them
    python3 course.py notebooks 13 22        those whose names start so
    python3 course.py notebooks --check      say which differ from the committed form

Execution starts with an empty progress folder and the settings of the tests. A notebook
with a failing cell is left as it is on disk. What repeats a notebook follows: the tables of the
README and the pages for instructors.
"""

import argparse
import sys
from pathlib import Path

import nbformat

from helpers._paths import ROOT
from tools import classroom, colab_cell, readme
from tools.kernel import execute

NOTEBOOKS = ROOT / "notebooks"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
FOLDS = ("outputs_hidden", "source_hidden")  # JupyterLab
COLAB_FOLD = "cellView"


def find(names=(), folder=NOTEBOOKS):
    """Find the notebooks whose names start with one of `names`; all of them by default.

    Raises
    ------
    SystemExit
        If a name fits no notebook.
    """
    paths = sorted(Path(folder).glob("*.ipynb"))
    wanted = [Path(name).name.removesuffix(".ipynb") for name in names]
    for name in wanted:
        if not any(path.stem.startswith(name) for path in paths):
            known = ", ".join(path.stem for path in paths) or "none yet"
            raise SystemExit(f"no notebook starts with {name!r}; there are: {known}")
    return [path for path in paths if not wanted or path.stem.startswith(tuple(wanted))]


def canonical(nb):
    """Return a copy of a notebook without what depends on the front end or on the run.

    Kept: sources, cell ids, tags, folds, outputs. Dropped: other metadata, widget views
    (their ids are random), tracebacks (they hold paths; the last line stays). Neighboring
    pieces of one stream are joined. What the notebook asks Colab for follows from the facts
    in its first cell.
    """
    metadata = METADATA | colab_cell.metadata(nb.cells[0].source if nb.cells else "")
    tidy = nbformat.from_dict(
        {"cells": [], "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    )
    for position, cell in enumerate(nb.cells):
        kept = {
            "cell_type": cell.cell_type,
            "id": cell.get("id") or f"cell-{position + 1:02}",
            "metadata": _cell_metadata(cell.metadata),
            "source": cell.source,
        }
        if cell.cell_type == "code":
            kept["execution_count"] = cell.execution_count
            kept["outputs"] = _outputs(cell.outputs)
        tidy.cells.append(nbformat.from_dict(kept))
    return tidy


def _cell_metadata(metadata):
    kept = {}
    if metadata.get("tags"):
        kept["tags"] = list(metadata["tags"])
    folds = {name: True for name in FOLDS if metadata.get("jupyter", {}).get(name)}
    if folds:
        kept["jupyter"] = folds
    if metadata.get(COLAB_FOLD):
        kept[COLAB_FOLD] = metadata[COLAB_FOLD]
    return kept


def _outputs(outputs):
    tidy = []
    for output in outputs:
        output = nbformat.from_dict(output)
        if output.output_type == "stream":
            previous = tidy[-1] if tidy else {}
            if previous.get("name") == output.name:  # only streams have a name
                previous["text"] += output.text
                continue
        elif output.output_type == "error":
            output.traceback = [f"{output.ename}: {output.evalue}"]
        else:
            for part in (output.data, output.metadata):  # metadata: the display size of a PNG
                part.pop(WIDGET_VIEW, None)
        tidy.append(output)
    return tidy


def to_text(nb):
    """Return the file's text: what `nbformat.write` writes, with one line break at the end."""
    nbformat.validate(nb)
    return nbformat.writes(nb).rstrip("\n") + "\n"


def is_canonical(path):
    """Say whether a file is, to the byte, in the committed form."""
    text = Path(path).read_text(encoding="utf-8")
    return text == to_text(canonical(nbformat.reads(text, as_version=4)))


def run(path):
    """Execute one notebook and write it in the committed form.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        If a cell fails; nothing is written then.
    """
    nb = canonical(nbformat.read(path, as_version=4))
    for cell in nb.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = None, []
    execute(nb, path.parent)
    path.write_text(to_text(canonical(nb)), encoding="utf-8", newline="\n")


def _run_and_report(path):
    from nbclient.exceptions import CellControlSignal

    try:
        run(path)
    except CellControlSignal as error:  # a cell raised or took too long
        print(f"{path.name}: not written, because a cell failed.\n{error}", file=sys.stderr)
        return False
    except Exception as error:  # noqa: BLE001 - a dead kernel and the like: the other notebooks still run
        reason = f"{type(error).__name__}: {error}"
        print(f"{path.name}: not written. {reason}", file=sys.stderr)
        return False
    print(f"{path.name}: executed and written, {path.stat().st_size / 1000:.0f} kB")
    return True


def main(argv=None):
    """Execute or check the named notebooks; return 0 if all went well, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="course.py notebooks", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", help="how names start, such as 13")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args(argv)
    paths = find(options.names)
    if not options.check:
        done = [_run_and_report(path) for path in paths]  # all of them, also after a failure
        readme.write()
        classroom.main([])
        return 0 if all(done) else 1
    untidy = [path for path in paths if not is_canonical(path)]
    for path in untidy:
        print(f"{path.name} is not in the committed form; run: python3 course.py notebooks "
              f"{path.stem[:2]}")  # fmt: skip
    return 1 if untidy else 0


if __name__ == "__main__":
    raise SystemExit(main())
