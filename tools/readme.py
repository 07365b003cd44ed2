"""Keep the README true: its tables and its figure are taken from the notebooks."""

import base64
import json

from helpers import catalog
from helpers._paths import ROOT

README = ROOT / "README.md"
NOTEBOOKS = ROOT / "notebooks"
FIGURE = ROOT / "docs" / "figure.png"
_DRAWN_BY = ("13_share_memory_with_numpy.ipynb", "Sharing costs the same at every size")


def row(path):
    """Return the table's line for one notebook: number and title, promise, time, device."""
    entry = catalog.read_entry(path)
    link = f"[{entry.number} {entry.title}](notebooks/{path.name})"
    return f"| {link} | {entry.promise} | {entry.minutes} min | {entry.runs_on} |"


def table(folder=NOTEBOOKS):
    """Return the table of all notebooks."""
    rows = [row(entry.path) for entry in catalog.read_entries(folder)]
    return "\n".join(["| notebook | what you get | time | runs on |", "|---|---|---|---|", *rows])


def paths(folder=NOTEBOOKS):
    """Return the table of paths by time."""
    found = catalog.paths_by_time(folder)
    rows = (found.columns, ["---"] * len(found.columns), *found.rows)
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def filled(text, name, content, file):
    """Return a text with new content between the two markers of a name.

    Raises
    ------
    ValueError
        If a marker is missing; the sentence names the file.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, opened, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not opened or not closed:
        raise ValueError(f"{file} must hold {start} and, after it, {end}")
    return f"{before}{start}\n{content}\n{end}{after}"


def with_tables(text, folder=NOTEBOOKS):
    """Return the README's text with fresh tables.

    Raises
    ------
    ValueError
        If the markers of one are missing.
    """
    for name, make in (("notebooks", table), ("paths", paths)):
        text = filled(text, name, make(folder), "README.md")
    return text


def figure(folder=NOTEBOOKS):
    """Return the PNG that a notebook drew, as bytes.

    Raises
    ------
    ValueError
        If no output of that notebook begins with the figure's message.
    """
    name, message = _DRAWN_BY
    cells = json.loads((folder / name).read_text(encoding="utf-8"))["cells"]
    for output in (output for cell in cells for output in cell.get("outputs", ())):
        data = output.get("data", {})
        if "image/png" in data and "".join(data["text/plain"]).startswith(message):
            return base64.b64decode("".join(data["image/png"]))
    raise ValueError(f"{name} must hold a figure whose message begins with {message!r}")


def write(path=README, folder=NOTEBOOKS):
    """Bring the tables in README.md and its figure up to date."""
    drawn = figure(folder)
    if not FIGURE.is_file() or FIGURE.read_bytes() != drawn:
        FIGURE.parent.mkdir(exist_ok=True)
        FIGURE.write_bytes(drawn)
    text = path.read_text(encoding="utf-8")
    fresh = with_tables(text, folder)
    if fresh != text:
        path.write_text(fresh, encoding="utf-8", newline="\n")
