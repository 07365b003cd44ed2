"""Build an HTML edition of the course, for reading without running: course.py site.

python3 course.py site                  into site/, which git ignores
python3 course.py site --out elsewhere

Every page stands alone: nothing is loaded from another host. The same notebooks give the same
bytes. Links are checked before the command ends.
"""

import argparse
import shutil
import sys
import time
import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from markupsafe import Markup

from helpers import __version__, catalog, claims, glossary
from helpers._paths import ROOT
from tools import caller, readme, site_links, site_style
from tools.site_notebooks import FILES, Content, convert, convert_markdown, shape

COURSE = "Measured PyTorch"
MARK = ".measured-pytorch-site"  # a folder with this file in it may be written over
PLACES = (
    (COURSE, "index.html"),
    ("Notebooks", "index.html#notebooks"),
    ("Claims", "claims.html"),
    ("Glossary", "glossary.html"),
)


@dataclass(frozen=True)
class Page:
    """Hold one page before it is written."""

    name: str
    title: str
    description: str
    content: Content
    neighbors: tuple = (None, None)
    wide: bool = False


def address(link: str) -> str:
    """Return where a link of a notebook or of the README leads from the site's one folder.

    Examples
    --------
    >>> address("notebooks/13_share_memory_with_numpy.ipynb"), address("claims.csv")
    ('13_share_memory_with_numpy.html', 'claims.html')
    """
    parts = urlsplit(link)
    if parts.scheme or not parts.path:
        return link
    path, anchor = parts.path.removeprefix("../"), f"#{parts.fragment}" if parts.fragment else ""
    if path.endswith(".ipynb"):
        return f"{Path(path).stem}.html{anchor}"
    if path == "docs/figure.png":
        return "figures/front.png"
    if path in ("claims.csv", "glossary.csv"):
        return f"{Path(path).stem}.html"
    return f"{source()}/{path}{anchor}"


@cache
def source() -> str:
    """Return the address of the files of the repository."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return f"{project['urls']['Repository']}/blob/main"


# Pages ---------------------------------------------------------------------------------------


def notebook_pages(folder: Path) -> list[Page]:
    """Return a page for each notebook, each with its neighbors."""
    entries = catalog.read_entries(folder)
    links = [(f"{e.number} {e.title}", f"{e.path.stem}.html") for e in entries]
    around = [None, *links, None]
    return [
        Page(
            links[i][1], links[i][0], entry.promise, convert(entry.path, address),
            (around[i], around[i + 2]),
        )
        for i, entry in enumerate(entries)
    ]  # fmt: skip


def index_page(folder: Path) -> Page:
    """Return the first page: the README, whose links lead into the site."""
    text = readme.with_tables((ROOT / "README.md").read_text(encoding="utf-8"), folder)
    content = convert_markdown(text, address)
    content.pictures["figures/front.png"] = readme.FIGURE.read_bytes()
    return Page("index.html", COURSE, "Every claim is measured.", content)


def claims_page(folder: Path) -> Page:
    """Return the ledger: every statement with its verdict in words."""
    ledger = claims.load_ledger()
    counts = Counter(claim.verdict for claim in ledger)
    listed = "".join(f"<li>{v}: {counts[v]}</li>" for v in claims.VERDICTS if counts[v])
    lead = (
        f"<p>{len(ledger)} statements of two public tutorials, in our words, each with a verdict "
        "for the environment that the tutorial asks for. The notebook in the last column measures "
        f"it or names its source.</p><ul>{listed}</ul>"
    )
    parts = ["<h1>Claims</h1>", lead]
    for tutorial in dict.fromkeys(claim.source for claim in ledger):
        rows = [claim_row(claim, folder) for claim in ledger if claim.source == tutorial]
        heads = ("id", "statement", "verdict", "what is true", "evidence", "notebook")
        parts += [f"<h2>{escape(tutorial)}</h2>", table("claims", heads, rows)]
    text = "".join(parts)
    content = shape(text, address, {})
    return Page("claims.html", "Claims", "Statements and verdicts.", content, wide=True)


def claim_row(claim, folder: Path) -> str:
    """Return a row of the ledger."""
    path = next(folder.glob(f"{claim.notebook}_*.ipynb"), None)
    number = f'<a href="{path.name}">{claim.notebook}</a>' if path else str(claim.notebook)
    how = f"<br><code>{escape(claim.expectation)}</code>" if claim.expectation else ""
    cells = (
        f'<th scope="row">{claim.id}</th>', f"<td>{escape(claim.statement)}</td>",
        f"<td>{claim.verdict}</td>", f"<td>{escape(claim.correct)}</td>",
        f"<td>{evidence(claim)}{how}</td>", f"<td>{number}</td>",
    )  # fmt: skip
    return f'<tr id="{claim.id}">{"".join(cells)}</tr>'


def evidence(claim) -> str:
    """Say what settles a statement."""
    if claim.reference.startswith("https://"):
        return f'<a href="{escape(claim.reference)}">documentation</a>'
    if claim.reference:
        return escape(claim.reference)
    return {"cell": "measured", "cell-with-cuda": "measured on CUDA"}.get(
        claim.evidence, escape(claim.evidence)
    )


def glossary_page(folder: Path) -> Page:
    """Return the terms that the notebooks define."""
    numbers = {entry.number: entry.path.name for entry in catalog.read_entries(folder)}
    rows = [
        f'<tr><th scope="row">{escape(term)}</th>'
        f'<td><a href="{numbers[number]}">{number}</a></td>'
        f'<td>{escape(meaning)}</td><td lang="zh-Hans">{escape(chinese)}</td></tr>'
        for term, number, meaning, chinese in glossary.table(folder).rows
    ]
    heads = ("term", "defined in", "meaning", "Chinese")
    text = f"<h1>Glossary</h1>{table('glossary', heads, rows)}"
    content = shape(text, address, {})
    return Page("glossary.html", "Glossary", "The course's terms.", content, wide=True)


def table(kind: str, heads: tuple[str, ...], rows: list[str]) -> str:
    """Return a table of rows that are HTML already."""
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join(rows)
    return f'<table class="{kind}"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'


# The folder ------------------------------------------------------------------------------------


def render(page: Page) -> str:
    """Put a page's content between its header and its footer."""
    import jinja2

    loader = jinja2.FileSystemLoader(FILES)
    template = jinja2.Environment(loader=loader, autoescape=True).get_template("page.html.j2")
    body = Markup(page.content.body)
    return template.render(
        title=page.title, description=page.description, body=body,
        sections=[] if page.wide else page.content.sections, places=PLACES, here=page.name,
        previous=page.neighbors[0], next=page.neighbors[1], wide=page.wide, course=COURSE,
        version=__version__, source=source(),
    )  # fmt: skip


def files(folder: Path) -> dict[str, bytes]:
    """Return every file of the site, by its path."""
    pages = [index_page(folder), *notebook_pages(folder), claims_page(folder)]
    pages.append(glossary_page(folder))
    made = {page.name: render(page).encode() for page in pages}
    for page in pages:
        made |= page.content.pictures
    made["style.css"] = (site_style.css() + (FILES / "style.css").read_text("utf-8")).encode()
    made["site.js"] = (FILES / "site.js").read_bytes()
    return made


def prepare(out: Path) -> None:
    """Empty a folder that holds an older site.

    Raises
    ------
    FileExistsError
        If it holds anything else.
    """
    if out.exists() and (not out.is_dir() or (any(out.iterdir()) and not (out / MARK).exists())):
        raise FileExistsError(f"{out} must be a new or empty folder, or hold an older site")
    if out.exists():
        shutil.rmtree(out)
    out.mkdir(parents=True)
    (out / MARK).write_text("course.py site made this folder and may clear it.\n")


def build(out: Path, folder: Path = ROOT / "notebooks") -> list[str]:
    """Write the site, and return a sentence for each link that leads nowhere.

    Parameters
    ----------
    out : pathlib.Path
        A new folder, or one that an earlier call wrote.
    folder : pathlib.Path
        The notebooks.
    """
    prepare(out)  # a folder that is not ours is refused before the minute of work
    made = files(folder)
    for name, content in made.items():
        path = out / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    pages = site_links.pages(out)
    leaving = "".join(f"{link}\n" for link in site_links.external(pages))
    (out / "links.txt").write_text(leaving, encoding="utf-8", newline="\n")
    return site_links.broken(out, pages)


def main(arguments: list[str] | None = None) -> int:
    """Build the site; 1 when a link leads nowhere, 2 when the folder is not ours."""
    parser = argparse.ArgumentParser(prog="course.py site", description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="folder to write")
    out, started = caller.path(parser.parse_args(arguments).out), time.monotonic()
    try:
        problems = build(out)
    except FileExistsError as error:
        print(error, file=sys.stderr)
        return 2
    except OSError as error:
        print(f"{out} cannot be written: {error.strerror}", file=sys.stderr)
        return 2
    for problem in problems:
        print(problem, file=sys.stderr)
    count, seconds = len(list(out.glob("*.html"))), time.monotonic() - started
    leaving = len((out / "links.txt").read_text(encoding="utf-8").splitlines())
    print(f"{count} pages in {out} after {seconds:.0f} s. Open {out / 'index.html'}")
    print(f"{leaving} links leave the site; links.txt lists them, and nothing fetched them.")
    return 1 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
