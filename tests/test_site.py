"""The site holds every notebook, loads nothing from elsewhere, and leads nowhere that is missing."""

import os
import re
import subprocess
import sys

import nbformat
import pytest
from bs4 import BeautifulSoup
from color_math import contrast

from helpers import catalog, claims, glossary
from helpers._paths import ROOT
from tools import site, site_links, site_style
from tools.lint_notebooks import _private_patterns
from tools.site_notebooks import Content, convert, convert_markdown

ENTRIES = catalog.read_entries()
NAMES = [f"{entry.path.stem}.html" for entry in ENTRIES]
LEVELS = ["h1", "h2", "h3", "h4", "h5", "h6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the site once, into a folder whose name has a space."""
    out = tmp_path_factory.mktemp("a site") / "out"
    assert site.build(out) == []
    return out


@pytest.fixture(scope="module")
def pages(folder):
    found = sorted(folder.glob("*.html"))
    return {path.name: BeautifulSoup(path.read_text("utf-8"), "html.parser") for path in found}


def each(pages, check):
    """Return the names of the pages that fail a check, so that all are named at once."""
    return [name for name, page in pages.items() if not check(page)]


# Structure -----------------------------------------------------------------------------------


def test_there_is_a_page_for_every_notebook_and_three_more(pages):
    assert set(pages) == {*NAMES, "index.html", "claims.html", "glossary.html"}


def test_every_page_names_its_language_and_has_one_first_heading(pages):
    assert each(pages, lambda page: page.html["lang"] == "en" and page.title.string) == []
    assert each(pages, lambda page: len(page.find_all("h1")) == 1 and page.main.h1) == []


def test_no_heading_skips_a_level(pages):
    def steps(page):
        levels = [LEVELS.index(h.name) for h in page.find_all(LEVELS)]
        return all(b <= a + 1 for a, b in zip([-1, *levels], levels, strict=False))

    assert each(pages, steps) == []


def test_every_page_has_its_landmarks_and_begins_with_a_way_past_them(pages):
    for name, page in pages.items():
        assert [len(page.find_all(t)) for t in ("header", "main", "footer")] == [1, 1, 1], name
        first = page.body.find(["a", "button", "summary"])
        assert (first["class"], first["href"]) == (["skip"], "#main"), name
        labels = [nav.get("aria-label") or nav.get("aria-labelledby") for nav in page("nav")]
        assert all(labels), name
        assert len(labels) == len(set(labels)), name


def test_the_theme_button_says_its_state_without_a_script_too(pages):
    for name, page in pages.items():
        button = page.find("button", id="theme")
        assert (button.get_text(), button["aria-pressed"]) == ("Dark theme", "false"), name


def test_no_id_stands_twice_on_a_page(pages):
    def once(page):
        ids = [element["id"] for element in page.find_all(id=True)]
        return len(ids) == len(set(ids))

    assert each(pages, once) == []


def test_the_contents_list_every_section(pages):
    for name in NAMES:
        listed = [a["href"] for a in pages[name].select(".contents a")]
        assert listed == [f"#{h['id']}" for h in pages[name].main.find_all("h2")]
        assert len(listed) >= 3, name


def test_the_neighbors_lead_through_all_notebooks_in_order(pages):
    here, seen = NAMES[0], []
    while here:
        seen.append(here)
        later = pages[here].find("a", rel="next")
        if later:
            assert pages[later["href"]].find("a", rel="prev")["href"] == here
        here = later and later["href"]
    assert seen == NAMES


# Nothing from elsewhere, nothing private --------------------------------------------------------


def test_nothing_is_loaded_from_another_host(folder, pages):
    for name, page in pages.items():
        assert [s.get("src") for s in page("script")] == ["site.js"], name
        assert [link["href"] for link in page("link")] == ["data:,", "style.css"], name
        assert all(re.fullmatch(r"figures/[\w-]+\.png", i["src"]) for i in page("img")), name
        assert page.find_all(["iframe", "object", "embed", "video", "base"]) == [], name
        text = (folder / name).read_text("utf-8")
        assert not re.search(r"url\(\s*['\"]?\w+:", text), name
    for name in ("style.css", "site.js"):
        text = (folder / name).read_text("utf-8")
        assert not re.search(r"https?:|@import|url\(|fetch\(|import\(", text), name


def test_no_page_links_to_a_server_that_is_gone(pages):
    assert each(pages, lambda page: not page.select('a[href*="127.0.0.1"]')) == []


def test_no_page_shows_where_it_was_made(pages):
    private = [(what, pattern) for what, pattern in _private_patterns() if what != "a date"]
    found = []
    for entry, name in zip(ENTRIES, NAMES, strict=True):
        own = "\n".join(cell.source for cell in nbformat.read(entry.path, as_version=4).cells)
        text = pages[name].get_text(" ")
        hits = [hit.group() for _, pattern in private for hit in re.finditer(pattern, text)]
        found += [f"{name}: {hit}" for hit in hits if hit not in own]
    assert found == []


def test_the_same_input_gives_the_same_bytes_in_another_process(folder):
    script = (
        "from tools import site; from tools.site_notebooks import convert;"
        "from helpers._paths import ROOT; p = next(ROOT.glob('notebooks/11_*.ipynb'));"
        "print(convert(p, site.address).body); print(site.glossary_page(p.parent).content.body)"
    )
    env = os.environ | {"PYTHONHASHSEED": "1", "PYTHONUTF8": "1"}
    again = subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, env=env, text=True)
    for name in (NAMES[1], "glossary.html"):
        main = re.search(r"<h1.*(?=\n</main>)", (folder / name).read_text("utf-8"), re.DOTALL)[0]
        assert main.partition("\n<nav")[0].strip() in again


# Pictures, tables, code, folds ----------------------------------------------------------------


def test_every_picture_has_words_and_is_there(folder, pages):
    shown = {image["src"]: image["alt"] for page in pages.values() for image in page("img")}
    assert {p.relative_to(folder).as_posix() for p in folder.glob("figures/*")} == set(shown)
    assert all(len(alt.split()) >= 3 for alt in shown.values())
    drawn = [svg for page in pages.values() for svg in page("svg")]
    assert len(drawn) >= 10
    for svg in drawn:
        assert svg["role"] == "img"
        assert svg.find(id=svg["aria-labelledby"]).get_text().strip()


def test_maps_of_colors_are_not_turned_over(pages):
    kinds = {"as-is": [], "drawn": []}
    for page in pages.values():
        for cell in page.select(".cell"):
            for image in cell("img"):
                kinds[image["class"][0]].append("plot_images(" in cell.pre.get_text())
    assert all(kinds["as-is"])
    assert not any(kinds["drawn"])
    assert len(kinds["as-is"]) >= 3


def outputs(entry):
    cells = nbformat.read(entry.path, as_version=4).cells
    return [output for cell in cells for output in cell.get("outputs", ())]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.number)
def test_every_output_of_the_notebook_is_on_its_page(entry, pages):
    page = pages[f"{entry.path.stem}.html"]
    data = [output.get("data", {}) for output in outputs(entry)]
    widgets = [d for d in data if "mp-view" in d.get("text/html", "")]
    shown = page.select(".mp-view")
    assert len(shown) == len(widgets)
    for view in shown:
        assert len(view("svg")) == 1
        assert len(view("table")) == 1
    figures = [
        d["text/plain"].splitlines()[0] for d in data if set(d) == {"image/png", "text/plain"}
    ]
    assert [image["alt"] for image in page.main("img")] == figures
    text = re.sub(r"\s+", "", page.main.get_text() + " ".join(figures))
    for output in outputs(entry):
        said = output.get("text") or output.get("data", {}).get("text/plain", "")
        for line in said.splitlines() if "text/html" not in output.get("data", {}) else ():
            assert re.sub(r"\s+|\x1b\[[\d;]*m", "", line) in text, line


def test_every_table_scrolls_inside_itself_and_says_what_its_heads_are_for(pages):
    for name, page in pages.items():
        for table in page("table"):
            assert "scroll" in table.parent["class"], name
            assert all(head.get("scope") == "col" for head in table.select("thead th")), name


def test_a_measured_answer_waits_behind_a_fold(pages):
    reveals = 0
    for page in pages.values():
        for cell in page.select(".cell"):
            if re.search(r"^(?:\w+ = |display\()?reveal\(", cell.pre.get_text(), re.MULTILINE):
                reveals += 1
                assert cell.select_one("details.fold > .output"), cell.pre.get_text()[:80]
    assert reveals >= 2 * len(NAMES)


def test_answers_and_the_code_that_fetches_the_course_are_folded(pages):
    for name in NAMES[1:]:
        folds = pages[name].main.select("details > summary")
        assert any(s.get_text().startswith("Code: On Colab") for s in folds), name
        assert sum(bool(re.match(r"\d\. ", s.get_text())) for s in folds) >= 3, name
    assert each(pages, lambda page: all(d.summary for d in page("details"))) == []


def test_no_text_holds_a_formula_that_needs_a_program_to_be_read(pages):
    formula = re.compile(r"\$[^$\n]*\\[^$\n]*\$|\$\$|\\\(|\\\[")
    for name, page in pages.items():
        texts = page.main.find_all(string=formula)
        assert [text for text in texts if not text.find_parent(["pre", "code"])] == [], name


@pytest.mark.parametrize("theme", site_style.COLORS)
def test_every_color_of_text_reaches_the_contrast_that_reading_needs(theme):
    colors = site_style.COLORS[theme]
    for ground in ("paper", "raised"):
        for role in {"ink", "soft", "link", "good", "bad", *site_style.TOKENS}:
            assert contrast(colors[role], colors[ground]) >= 4.5, (role, ground)
        assert contrast(colors["edge"], colors[ground]) >= 3


def test_the_style_knows_every_color_that_an_output_asks_for(folder):
    style = (folder / "style.css").read_text("utf-8")
    texts = [path.read_text("utf-8") for path in folder.glob("*.html")]
    asked = {name for text in texts for name in re.findall(r"var\((--[\w-]+)", text)}
    asked = {name for name in asked if not name.startswith("--vscode")}
    assert {name for name in asked if f"{name}:" not in style} == set()
    assert asked >= {"--jp-border-color1", "--mp-paper"}


# Index, claims, glossary ----------------------------------------------------------------------


def test_the_first_page_is_the_readme_and_leads_to_every_notebook(pages):
    index = pages["index.html"]
    assert {a["href"] for a in index.main("a")} >= set(NAMES)
    assert index.main.h1.get_text() == "Measured PyTorch"
    assert index.find(id="notebooks")


def test_the_ledger_shows_each_claim_with_its_verdict_in_words(pages):
    page, ledger = pages["claims.html"], claims.load_ledger()
    rows = {row["id"]: [cell.get_text() for cell in row("td")] for row in page.select("tbody tr")}
    assert list(rows) == [claim.id for claim in ledger]
    for claim in ledger:
        statement, verdict, correct, evidence, number = rows[claim.id]
        assert (statement, verdict, correct) == (claim.statement, claim.verdict, claim.correct)
        assert verdict in claims.VERDICTS
        assert claim.expectation in evidence
        assert evidence
        assert number == str(claim.notebook)
    counted = dict(li.get_text().split(": ") for li in page.main.ul("li"))
    assert sum(map(int, counted.values())) == len(ledger)


def test_the_glossary_has_every_term_and_says_which_language_the_last_column_is(pages):
    rows = pages["glossary.html"].select("tbody tr")
    known = [[row.th.get_text(), *(td.get_text() for td in row("td"))] for row in rows]
    assert known == [list(row) for row in glossary.table().rows]
    assert all(row("td")[-1]["lang"] == "zh-Hans" for row in rows)


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("notebooks/13_share_memory_with_numpy.ipynb", "13_share_memory_with_numpy.html"),
        ("11_create_and_inspect_tensors.ipynb#try-it", "11_create_and_inspect_tensors.html#try-it"),
        ("../claims.csv", "claims.html"),
        ("#start", "#start"),
        ("https://pytorch.org/", "https://pytorch.org/"),
    ],
)
def test_a_link_of_the_repository_becomes_one_of_the_site(link, target):
    assert site.address(link) == target


def test_what_the_site_does_not_hold_is_linked_where_the_repository_is():
    assert re.fullmatch(r"https://github\.com/[\w./-]+/blob/main/LICENSE", site.address("LICENSE"))


def test_a_badge_becomes_words_and_a_dead_server_no_link():
    text = "[![Open](https://img.example.org/a.svg)](https://example.org/) [b](http://127.0.0.1:9/)"
    shown = convert_markdown(text, site.address)
    assert isinstance(shown, Content)
    assert '<a href="https://example.org/">Open</a> b' in shown.body


def test_a_picture_without_html_is_shown_beside_html_without_a_picture(tmp_path):
    png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    data = {
        "text/plain": "Three <words> here\na  1",
        "text/html": "<p>beside</p>",
        "image/png": png,
    }
    output = nbformat.v4.new_output("display_data", data=data)
    cells = [nbformat.v4.new_code_cell("x", outputs=[output])]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "98_a.ipynb")
    shown = convert(tmp_path / "98_a.ipynb", site.address)
    assert list(shown.pictures) == ["figures/98-1-1.png"]
    soup = BeautifulSoup(shown.body, "html.parser")
    assert soup.img["alt"] == "Three <words> here"
    assert soup.figure.pre.get_text() == "a  1"
    assert soup.find("p").get_text() == "beside"


def test_a_fold_without_a_summary_is_named():
    with pytest.raises(ValueError, match="a fold without <summary>: 'bare'"):
        convert_markdown("<details>bare</details>", site.address)


# Links ----------------------------------------------------------------------------------------


def test_no_link_of_the_repository_leads_nowhere():
    assert site_links.broken_in_repository() == []


def test_every_external_link_is_listed_and_well_formed(folder):
    listed = (folder / "links.txt").read_text("utf-8").splitlines()
    assert len(listed) > 50
    assert listed == sorted(set(listed))
    assert {link: says for link in listed if (says := site_links.malformed(link))} == {}


@pytest.mark.parametrize(
    ("link", "says"),
    [
        ("http://example.org/", "is not https"),
        ("https://127.0.0.1:8888/", "names no public host"),
        ("https://localhost/a", "names no public host"),
        ("https://me@example.org/", "names no public host"),
        ("https:///a", "names no public host"),
        ("https://[a/", "cannot be read"),
        ("https://example.org/a b", "holds a character that belongs to the sentence"),
        ("https://example.org/a.", "holds a character that belongs to the sentence"),
        ("mailto:a@example.org", "is not https"),
        ("https://docs.python.org/3/library/site.html#module-site", ""),
    ],
)
def test_the_form_of_an_external_link_is_judged(link, says):
    assert site_links.malformed(link).startswith(says)
    assert bool(site_links.malformed(link)) == bool(says)


def test_a_link_of_the_site_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "a b.html").write_text('<h2 id="x y">x</h2>', encoding="utf-8")
    links = ["a%20b.html#x%20y", "c.html", "a%20b.html#z", "../out.html", "data:,", "#no"]
    text = "".join(f'<a href="{link}">l</a>' for link in links)
    (tmp_path / "index.html").write_text(text, encoding="utf-8")
    assert site_links.broken(tmp_path) == [
        "index.html: c.html does not exist",
        "index.html: a%20b.html#z has no such place",
        "index.html: ../out.html leaves the folder",
        "index.html: #no has no such place",
    ]


def test_a_link_of_the_repository_that_leads_nowhere_is_named(tmp_path):
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "README.md").write_text(
        "# A `b` c\n\n[1](notebooks/11_a.ipynb#try-it) [2](gone.md) [3](#a-b-c) [4](#a) `[5](x)`"
    )
    cells = [nbformat.v4.new_markdown_cell("## Try it\n\n[6](../README.md) <a href='no.md'>7</a>")]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "notebooks" / "11_a.ipynb")
    assert site_links.broken_in_repository(tmp_path) == [
        "README.md: gone.md does not exist",
        "README.md: #a has no such place",
        f"notebooks{os.sep}11_a.ipynb: no.md does not exist",
    ]


# The command ----------------------------------------------------------------------------------


def test_a_folder_with_something_else_in_it_is_left_alone(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(site, "files", lambda folder: {"index.html": b"<a href='gone.html'>x</a>"})
    (tmp_path / "mine.txt").write_text("mine")
    assert site.main(["--out", str(tmp_path)]) == 2
    assert "must be a new or empty folder, or hold an older site" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_second_build_leaves_nothing_of_the_first_and_names_dead_links(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(site, "files", lambda folder: {"old.html": b"<p>x</p>"})
    assert site.main(["--out", str(tmp_path / "out")]) == 0
    monkeypatch.setattr(site, "files", lambda folder: {"new.html": b"<a href='gone.html'>x</a>"})
    assert site.main(["--out", str(tmp_path / "out")]) == 1
    shown = capsys.readouterr()
    assert shown.err == "new.html: gone.html does not exist\n"
    assert "0 links leave the site" in shown.out
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"new.html", "links.txt", site.MARK}


def test_git_ignores_the_folder_that_the_command_writes_by_default():
    assert "site/" in (ROOT / ".gitignore").read_text().splitlines()
