"""Keep one word for each idea: the course's terms, and the notebooks that define them."""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from helpers._paths import ROOT
from helpers.table import Table

ITALIC = re.compile(r"(?<![*\w])\*(?![\s*])([^*\n]+?)(?<!\s)\*(?![*\w])")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True)
class Term:
    """Hold one term.

    Attributes
    ----------
    name : str
        The word of the course.
    definition : str
        One sentence.
    chinese : str
        The usual term in Chinese.
    not_said : str
        Synonyms that the course does not use for this idea.
    """

    name: str
    definition: str
    chinese: str
    not_said: str


@cache
def load() -> tuple[Term, ...]:
    """Read the glossary.

    Returns
    -------
    tuple of Term
        One for each row of ``glossary.csv``, in its order.

    Examples
    --------
    >>> next(term.chinese for term in load() if term.name == "stride")
    '步幅'
    """
    with (ROOT / "glossary.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            Term(row["term"], row["definition"], row["chinese"], row["not"])
            for row in csv.DictReader(file)
        )


def find(word: str) -> Term | None:
    """Return the term that a word of the text means, or None.

    Parameters
    ----------
    word : str
        As it stands in a sentence: any case, singular or plural.

    Examples
    --------
    >>> find("Claims").name
    'claim'
    """
    wanted = {word.lower(), word.lower().removesuffix("s"), word.lower().removesuffix("es")}
    for term in load():
        if wanted & {name.strip().lower() for name in term.name.split(",")}:
            return term
    return None


def italics(path: Path) -> list[str]:
    """Return the words in italics of a notebook's Markdown cells, in order.

    Examples
    --------
    >>> ITALIC.findall("A *view* is **no** copy; 2*3*4.")
    ['view']
    """
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    texts = ("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return [word for text in texts for word in ITALIC.findall(_CODE.sub("", text))]


def table(folder: Path = ROOT / "notebooks") -> Table:
    """Show the terms that the notebooks define, with the number of the notebook.

    Examples
    --------
    >>> table().columns
    ['term', 'defined in', 'meaning', '中文']
    """
    where = {}
    for path in sorted(folder.glob("*.ipynb")):
        for word in italics(path):
            term = find(word)
            if term is not None:
                where.setdefault(term, path.stem[:2])
    rows = [[t.name, where[t], t.definition, t.chinese] for t in load() if t in where]
    return Table(["term", "defined in", "meaning", "中文"], rows)
