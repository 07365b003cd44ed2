"""Every page of the site in Chromium: both themes, axe-core, a phone's width, print, keyboard."""

import os
import re

import pytest

from browser.axe import violations
from browser.driver import LOW_CONTRAST
from helpers._paths import ROOT
from tools import site

NAMES = ["index", "claims", "glossary", *sorted(p.stem for p in ROOT.glob("notebooks/*.ipynb"))]
# Seven pages hold every kind of content; the nightly run looks at all of them.
FEW = [*NAMES[:3], *(name for name in NAMES if name[:2] in ("13", "15", "41", "72"))]
SHOWN = NAMES if os.environ.get("COURSE_EVERY_PAGE") else FEW
PICTURED = next(name for name in NAMES if name.startswith("15"))  # figures, maps and widgets
OPEN_FOLDS = "for (const fold of document.querySelectorAll('details')) fold.open = true"
# Code is thousands of spans in five colors, which tests/test_site.py computes; axe sees one block.
ONE_BLOCK = """() => document.querySelectorAll('.highlight').forEach(
  (block, place) => block.toggleAttribute('data-later', place > 0))"""
ALL_TEXT = LOW_CONTRAST.replace(".jp-OutputArea-output", "body")
TOO_WIDE = """() => {
  const wide = document.documentElement.clientWidth;
  const inside = e => e.parentElement?.closest('.scroll, pre');
  const far = [...document.querySelectorAll('main *, header *, footer *, .contents *')].filter(
    e => !inside(e) && e.getBoundingClientRect().right > wide + 1);
  return {page: document.documentElement.scrollWidth - wide, far: far.map(
    e => e.outerHTML.slice(0, 80))};
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Build the site."""
    out = tmp_path_factory.mktemp("site") / "a site"
    assert site.build(out) == []
    return out


@pytest.fixture(scope="module")
def context(browser):
    """Open a window with the light theme of the system."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    yield context
    context.close()


class Opened:
    """Hold a page, what it asked for and what went wrong in it."""

    def __init__(self, page, folder, name):
        self.page, self.problems, self.asked = page, [], []
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("requestfailed", lambda request: self.problems.append(request.url))
        page.on("request", lambda request: self.asked.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        page.evaluate(OPEN_FOLDS)

    def _listen(self, message):
        if message.type in ("error", "warning"):
            self.problems.append(message.text)

    def theme(self, name):
        """Press the button until the page has a theme."""
        if self.page.evaluate("document.documentElement.dataset.theme") != name:
            self.page.get_by_role("button", name="Dark theme").press("Enter")
        assert self.page.evaluate("document.documentElement.dataset.theme") == name


def judged(page):
    """Return what axe-core finds on a page of the site."""
    page.evaluate(ONE_BLOCK)
    return violations(page, ["html"], ["[data-later]"])


@pytest.fixture(scope="module", params=SHOWN)
def opened(request, context, folder):
    page = context.new_page()
    yield Opened(page, folder, request.param)
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_can_be_read(opened, theme):
    opened.theme(theme)
    assert opened.page.evaluate(ALL_TEXT, 4.5) == []


def test_axe_finds_nothing_serious(opened):
    opened.theme("light")
    assert judged(opened.page) == []


def test_nothing_scrolls_sideways_on_a_phone(opened):
    opened.page.set_viewport_size({"width": 320, "height": 700})
    seen = opened.page.evaluate(TOO_WIDE)
    assert seen == {"page": 0, "far": []}


def test_what_scrolls_inside_itself_is_within_reach_of_the_keyboard(opened):
    opened.page.set_viewport_size({"width": 320, "height": 700})
    opened.page.wait_for_timeout(50)
    assert (
        opened.page.evaluate("""() => [...document.querySelectorAll('.scroll, pre')].filter(
        e => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1 && e.tabIndex !== 0)
        .map(e => e.outerHTML.slice(0, 80))""")
        == []
    )
    opened.page.set_viewport_size({"width": 1280, "height": 900})


def test_printed_it_shows_every_fold_and_no_navigation_on_white(opened):
    page = opened.page
    page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = false")
    opened.theme("dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    for hidden in ("header", ".contents", ".neighbors"):
        assert page.locator(f"{hidden}:visible").count() == 0
    style = "getComputedStyle(document.body)"
    assert page.evaluate(f"[{style}.backgroundColor, {style}.color]") == [
        "rgb(255, 255, 255)", "rgb(17, 20, 24)",
    ]  # fmt: skip
    assert page.evaluate(
        "[...document.images].every(i => getComputedStyle(i).filter === 'none' && i.naturalWidth)"
    )
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    opened.theme("light")


def test_nothing_failed_and_nothing_came_from_another_place(opened, folder):
    assert opened.problems == []
    assert [url for url in opened.asked if not url.startswith((folder.as_uri(), "data:"))] == []


# Once, on one page ----------------------------------------------------------------------------


@pytest.fixture
def page(browser, folder):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, color_scheme="dark")
    page = context.new_page()
    page.goto((folder / f"{NAMES[4]}.html").as_uri())
    yield page
    context.close()


def test_the_judges_find_what_is_planted(page):
    page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('afterbegin', '<p style=\"color:#777;"
        'background:#888">faint</p><img src="data:,"><p style="width:3000px">wide</p>\')'
    )
    found = "\n".join(judged(page))
    assert "serious color-contrast" in found
    assert "critical image-alt" in found
    assert page.evaluate(TOO_WIDE)["page"] > 0
    assert [line for line in page.evaluate(ALL_TEXT, 4.5) if line.endswith("faint")]


def test_the_systems_theme_comes_first_and_the_readers_choice_stays(page, folder):
    name = "document.documentElement.dataset.theme"
    button = page.get_by_role("button", name="Dark theme", exact=True)
    assert page.evaluate(name) == "dark"
    assert button.get_attribute("aria-pressed") == "true"
    button.focus()
    page.keyboard.press("Space")
    assert (page.evaluate(name), button.get_attribute("aria-pressed")) == ("light", "false")
    page.goto((folder / "index.html").as_uri())
    assert page.evaluate(name) == "light"
    page.get_by_role("button", name="Dark theme").press("Enter")
    page.reload()
    assert page.evaluate(name) == "dark"


def test_a_reader_without_a_script_gets_the_systems_theme(browser, folder):
    for scheme, ground in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(17, 20, 24)")):
        context = browser.new_context(color_scheme=scheme, java_script_enabled=False)
        page = context.new_page()
        page.goto((folder / f"{NAMES[4]}.html").as_uri())
        assert page.locator("body").evaluate("b => getComputedStyle(b).backgroundColor") == ground
        context.close()


def test_the_keyboard_alone_reaches_text_theme_folds_and_the_next_notebook(page):
    focused = "document.activeElement.textContent.trim()"
    page.keyboard.press("Tab")
    assert page.evaluate(focused) == "Skip to the text"
    assert page.get_by_role("link", name="Skip to the text").bounding_box()["y"] >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    while page.evaluate("document.activeElement.tagName") != "SUMMARY":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for _ in range(400):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.rel") == "next":
            break
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(f"{NAMES[5]}.html$"))
    assert page.locator("h1").count() == 1


def test_pictures_follow_the_dark_theme_and_drawings_take_its_colors(page, folder):
    page.goto((folder / f"{PICTURED}.html").as_uri())
    look = "image => getComputedStyle(image).filter"
    assert page.locator("img.drawn").first.evaluate(look).startswith("invert")
    assert page.locator("img.as-is").first.evaluate(look).startswith("brightness")
    paper = "getComputedStyle(document.querySelector('.mp-view svg rect')).fill"
    assert page.evaluate(paper) == "rgb(17, 20, 24)"


@pytest.mark.parametrize("name", [*NAMES[:3], NAMES[4]])
def test_axe_finds_nothing_serious_on_the_dark_theme_either(page, folder, name):
    page.goto((folder / f"{name}.html").as_uri())
    page.evaluate(OPEN_FOLDS)
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    assert judged(page) == []
