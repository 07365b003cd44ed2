"""Keep the README's table of notebooks true: it is generated from the notebooks' first cells."""

import re
from pathlib import Path

import nbformat

from helpers._paths import ROOT

README = ROOT / "README.md"
START, END = "<!-- notebooks -->", "<!-- /notebooks -->"
FACTS = re.compile(r"^(\d+ min) · (.+?) · (after .+)$", re.MULTILINE)


def row(path):
    """Return the table's line for one notebook: number and title, promise, time, device.

    Raises
    ------
    ValueError
        If the first cell has no title, no promise or no line of facts.
    """
    first = nbformat.read(path, as_version=4).cells[0].source
    paragraphs = [part.strip() for part in first.split("\n\n") if part.strip()]
    facts = FACTS.search(first)
    if len(paragraphs) < 2 or not paragraphs[0].startswith("# ") or not facts:
        raise ValueError(
            f"{path.name} must begin with '# Title', a promise, and a line such as "
            "'30 min · CPU, GPU optional · after 11'"
        )
    number, title = path.stem[:2], paragraphs[0].removeprefix("# ")
    promise = " ".join(paragraphs[1].split())
    return f"| [{number} {title}](notebooks/{path.name}) | {promise} | {facts[1]} | {facts[2]} |"


def table(folder=ROOT / "notebooks"):
    """Return the table of all notebooks, between its markers."""
    rows = [row(path) for path in sorted(Path(folder).glob("*.ipynb"))]
    head = ["| notebook | what you get | time | runs on |", "|---|---|---|---|"]
    return "\n".join([START, *head, *rows, END])


def with_table(text, folder=ROOT / "notebooks"):
    """Return the README's text with a fresh table.

    Raises
    ------
    ValueError
        If the markers are missing.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"README.md must hold {START} and, after it, {END}")
    return before + table(folder) + after


def write(path=README, folder=ROOT / "notebooks"):
    """Bring the table in README.md up to date."""
    text = path.read_text(encoding="utf-8")
    fresh = with_table(text, folder)
    if fresh != text:
        path.write_text(fresh, encoding="utf-8", newline="\n")
