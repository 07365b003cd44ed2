"""Turn a notebook into the HTML of its cells: headings, figures, tables and folds."""

import re
import struct
from base64 import b64decode
from dataclasses import dataclass, field
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
from bs4 import BeautifulSoup, NavigableString

from helpers._paths import ROOT

FILES = ROOT / "tools" / "site_files"
_REVEAL = re.compile(r"^(?:[^\s#].*\b)?reveal\(", re.MULTILINE)
_TITLE = re.compile(r"# @title (.+)")
_SVG_IMAGE = re.compile(r'<img alt="[^"]*" src="data:image/svg\+xml;base64,([^"]+)">')
_SVG_IDS = re.compile(r'((?:\bid|aria-labelledby)="|url\(#)')


@dataclass
class Content:
    """Hold what a page shows.

    Attributes
    ----------
    body : str
        HTML, with one ``h1``.
    sections : list of (str, str)
        Text and id of each ``h2``.
    pictures : dict of str to bytes
        Files that the body shows, by their path from the site's root.
    """

    body: str
    sections: list[tuple[str, str]]
    pictures: dict[str, bytes] = field(default_factory=dict)


def convert(path: Path, address) -> Content:
    """Convert a notebook.

    Parameters
    ----------
    path : pathlib.Path
        The notebook, executed.
    address : callable
        Takes a link of the notebook, returns where it leads from the site.
    """
    nb = nbformat.read(path, as_version=4)
    pictures = _take_pictures(nb, path.stem)
    return shape(_cells(nb), address, pictures)


def convert_markdown(text: str, address) -> Content:
    """Convert a text of the repository, such as the README."""
    cell = nbformat.v4.new_markdown_cell(text, id="text")
    return shape(_cells(nbformat.v4.new_notebook(cells=[cell])), address, {})


def shape(body: str, address, pictures: dict[str, bytes]) -> Content:
    """Give the cells' HTML its ids, links, scrolling tables and drawings."""
    body, drawings = _take_drawings(body)
    soup = BeautifulSoup(body, "html.parser")
    sections = _name_headings(soup)
    _lead_links(soup, address)
    _mend_tables(soup)
    for element in soup.select("[role=status]"):  # nothing changes on a page without a kernel
        del element["role"]
    text = str(soup)
    for number, drawing in enumerate(drawings):
        text = text.replace(f"@@drawing {number}@@", drawing)
    return Content(text, sections, pictures)


def _cells(nb) -> str:
    """Return the HTML of a notebook's cells.

    The method of `HTMLExporter` itself would parse and rewrite the whole page once more, to add
    the texts of images that lack one; here none does.
    """
    from nbconvert import HTMLExporter

    return super(HTMLExporter, _exporter()).from_notebook_node(nb)[0]


@cache
def _exporter():
    """Return nbconvert's exporter with the course's own template, which loads nothing."""
    from nbconvert import HTMLExporter
    from nbconvert.filters import DataTypeFilter, Highlight2HTML

    exporter = HTMLExporter(
        template_name="notebook",
        extra_template_basedirs=[str(FILES)],
        exclude_anchor_links=True,
    )
    for use in (summary_of, is_folded, figure, with_picture):
        exporter.register_filter(use.__name__, use)
    richest = DataTypeFilter(display_data_priority=["text/html", "image/png", "text/plain"])
    exporter.register_filter("filter_data_type", richest)
    exporter.register_filter("highlight_code", Highlight2HTML(pygments_lexer="python"))
    return exporter


# Filters of the template ---------------------------------------------------------------


def summary_of(source: str) -> str:
    """Say what a folded source is for: its title in Colab's form.

    Examples
    --------
    >>> summary_of("# @title Fetch the course\\nimport sys")
    'Code: Fetch the course'
    """
    title = _TITLE.match(source)
    return f"Code: {title[1]}" if title else "Code"


def is_folded(cell) -> bool:
    """Tell whether a cell's outputs wait for a guess, as they do in the notebook."""
    hidden = cell.metadata.get("jupyter", {}).get("outputs_hidden", False)
    return bool(hidden or _REVEAL.search(cell.source))


def figure(output) -> str:
    """Return a figure: its message is the alternative text, its numbers stand behind it."""
    message, _, numbers = output.data["text/plain"].strip().partition("\n")
    kept = output.metadata["figure"]
    image = (
        f'<img class="{kept["kind"]}" alt="{escape(message)}" src="{kept["src"]}" '
        f'width="{kept["width"]}" height="{kept["height"]}">'
    )
    if not numbers:
        return f"<figure>{image}</figure>"
    return (
        f"<figure>{image}<details><summary>The numbers in this figure</summary>"
        f"<pre>{escape(numbers)}</pre></details></figure>"
    )


def with_picture(html: str, output) -> str:
    """Return an output's HTML, after its picture where the HTML itself shows none."""
    return figure(output) + html if "figure" in output.metadata else html


# Before and after nbconvert --------------------------------------------------------------


def _take_pictures(nb, stem: str) -> dict[str, bytes]:
    """Move the PNGs out of the notebook, and note on each output where they are.

    An output whose HTML holds a picture, as a widget's does, needs no second one.
    """
    taken = {}
    for number, cell in enumerate(nb.cells, 1):
        for place, output in enumerate(cell.get("outputs", ()), 1):
            data = output.get("data", {})
            if "image/png" not in data or "<img " in data.get("text/html", ""):
                continue
            name, png = f"figures/{stem[:2]}-{number}-{place}.png", b64decode(data["image/png"])
            width, height = struct.unpack(">II", png[16:24])
            size = output.metadata.get("image/png", {"width": width, "height": height})
            # Turned over for a dark page, a map of colors would show large as small.
            kind = "as-is" if "plot_images(" in cell.source else "drawn"
            output.metadata["figure"] = {"src": name, "kind": kind, **size}
            taken[name] = png
    return taken


def _take_drawings(body: str) -> tuple[str, list[str]]:
    """Put the drawings of widgets into the page itself, where they follow its theme.

    Their ids are made unique: a page has one of each.
    """
    drawings = []

    def take(image):
        svg = b64decode(image[1]).decode()
        drawings.append(_SVG_IDS.sub(rf"\1drawing{len(drawings)}-", svg))
        return f"@@drawing {len(drawings) - 1}@@"

    return _SVG_IMAGE.sub(take, body), drawings


def _name_headings(soup) -> list[tuple[str, str]]:
    """Give each heading an id from its words; return text and id of the second level."""
    taken, sections = set(), []
    for heading in soup.find_all(re.compile("^h[1-6]$")):
        text = heading.get_text().strip()
        heading["id"] = unique(slug(text), taken)
        if heading.name == "h2":
            sections.append((text, heading["id"]))
    return sections


def slug(text: str) -> str:
    """Return the id of a heading, as GitHub makes it.

    Examples
    --------
    >>> slug("Who owns these bytes?")
    'who-owns-these-bytes'
    """
    return re.sub(r"[^\w -]", "", text.strip().lower()).replace(" ", "-")


def unique(id: str, taken: set[str]) -> str:
    """Return an id that nothing else on the page has, and take it."""
    number = 0
    while (found := f"{id}-{number}" if number else id) in taken:
        number += 1
    taken.add(found)
    return found


def _lead_links(soup, address) -> None:
    """Lead links to the site's own pages; drop pictures and servers that are elsewhere."""
    for image in soup.find_all("img"):
        if urlsplit(image["src"]).scheme:  # a badge: its words say the same
            image.replace_with(NavigableString(image.get("alt", "")))
        elif not image["src"].startswith("figures/"):
            image["src"] = address(image["src"])
    for link in soup.find_all("a"):
        if urlsplit(link.get("href", "")).hostname == "127.0.0.1":  # of a kernel that is gone
            link.unwrap()
        else:
            link["href"] = address(link["href"])


def _mend_tables(soup) -> None:
    """Let each table scroll inside itself, and say which way its heads point."""
    for table in soup.find_all("table"):
        table.wrap(soup.new_tag("div", attrs={"class": "scroll"}))
        for head in table.select("thead th"):
            head["scope"] = "col"
    for block in soup.find_all("details"):
        if block.summary is None:
            raise ValueError(f"a fold without <summary>: {block.get_text()[:40]!r}")
