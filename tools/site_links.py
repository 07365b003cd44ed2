"""Check links: inside the built site, inside the repository, and the form of those that leave."""

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import nbformat

from helpers._paths import ROOT
from tools.site_notebooks import slug, unique

_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}", re.IGNORECASE)
_MARKDOWN = re.compile(r"(?<!`)\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
_ATTRIBUTE = re.compile(r"""\b(?:href|src)=["']([^"']+)["']""")
_BLOCK = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)


class Page(HTMLParser):
    """Collect the links and the ids of one HTML page."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.links, self.ids = path, [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        """Note what a tag links to and what links can lead to."""
        for name, value in attrs:
            if name in ("href", "src"):
                self.links.append(value)
            elif name == "id":
                self.ids.append(value)


def pages(folder: Path) -> dict[Path, Page]:
    """Read the pages of a built site."""
    return {path: Page(path) for path in sorted(folder.glob("**/*.html"))}


def broken(folder: Path, site: dict[Path, Page] | None = None) -> list[str]:
    """Return a sentence for each link of a built site that leads nowhere."""
    site = site or pages(folder)
    ids = {path.resolve(): set(page.ids) for path, page in site.items()}
    return [
        f"{path.relative_to(folder)}: {link} {says}"
        for path, page in site.items()
        for link in page.links
        if (says := _broken(link, path.resolve(), ids, folder))
    ]


def _broken(link: str, path: Path, ids: dict[Path, set[str]], root: Path) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    if parts.scheme or parts.netloc:
        return malformed(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_relative_to(root.resolve()):
        return "leaves the folder"
    if not target.exists():
        return "does not exist"
    if parts.fragment and target in ids and unquote(parts.fragment) not in ids[target]:
        return "has no such place"
    return ""


def malformed(link: str) -> str:
    """Say what is wrong with the form of an external link; nothing is fetched.

    Examples
    --------
    >>> malformed("https://docs.pytorch.org/docs/stable/"), malformed("http://example.org")
    ('', 'is not https')
    """
    try:
        parts = urlsplit(link)
        host, account = parts.hostname or "", parts.username
    except ValueError as error:
        return f"cannot be read ({error})"
    if parts.scheme != "https":
        return "is not https"
    if not _HOST.fullmatch(host) or account:
        return "names no public host"
    if re.search(r"\s|[<>\"{}|\\^`]", link) or link.endswith((".", ",", ";")):
        return "holds a character that belongs to the sentence"
    return ""


def external(site: dict[Path, Page]) -> list[str]:
    """Return the links that leave a built site, each once, sorted."""
    links = {link for page in site.values() for link in page.links}
    return sorted(link for link in links if urlsplit(link).scheme not in ("", "data"))


# The repository -----------------------------------------------------------------------------


def texts(root: Path = ROOT) -> Iterable[tuple[Path, str]]:
    """Yield each text of the repository that a visitor reads, notebooks as their Markdown."""
    for place in (
        "*.md",
        "docs/**/*.md",
        "classroom/**/*.md",
        "benchmarks/*.md",
        ".github/**/*.md",
    ):
        for path in sorted(root.glob(place)):
            yield path, path.read_text(encoding="utf-8")
    for path in sorted(root.glob("notebooks/*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        yield path, "\n\n".join(c.source for c in cells if c.cell_type == "markdown")


def broken_in_repository(root: Path = ROOT) -> list[str]:
    """Return a sentence for each link of the repository's texts that leads nowhere."""
    read = dict(texts(root))
    ids = {path: _headings(text) for path, text in read.items()}
    found = []
    for path, text in read.items():
        for link in links_of(text):
            says = _broken(link, path, ids, root)
            if says:
                found.append(f"{path.relative_to(root)}: {link} {says}")
    return found


def links_of(text: str) -> list[str]:
    """Return the links of a Markdown text, not those in code.

    Examples
    --------
    >>> links_of("[a](b.md) and `[c](d.md)`")
    ['b.md']
    """
    text = _CODE.sub("`code`", text)
    return _MARKDOWN.findall(text) + _ATTRIBUTE.findall(text)


def _headings(text: str) -> set[str]:
    taken: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", _BLOCK.sub("", text), re.MULTILINE):
        unique(slug(re.sub(r"[*`]", "", heading)), taken)
    return taken
