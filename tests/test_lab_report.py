"""The lab report: what it shows, what it leaves out, and what may leave the machine."""

import itertools
import json
import math
import os
import random
import re
import socket
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from color_math import contrast

from helpers import (
    _claim_record,
    _reader,
    _report_evidence,
    _report_page,
    _report_schema,
    _shelf,
    claims,
    exercises,
    lab_report,
    plotting,
)
from helpers._report_board import Board, state_of
from helpers._report_claims import SAMPLE_CELL, Claims
from helpers._report_evidence import Evidence
from helpers._report_guesses import Guess, Guesses, message_of, side
from helpers._report_milestones import MILESTONES, Milestones
from helpers._report_part import Grid, drawn_for
from helpers.exercises import _catalog, _predict
from helpers.exercises._record import blank

TORCH = "2.13.0"
LEDGER = claims.load_ledger()
BY_ID = {claim.id: claim for claim in LEDGER}
SAMPLE = lab_report.build(sample=True)  # several tests read it, none changes it


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_shelf, "in_memory", {})
    monkeypatch.setattr(claims, "_recorded", {})
    monkeypatch.setattr(_predict, "_measured", {})
    return tmp_path / "home"


def evidence(records=(), claim_records=(), device="cpu", torch=TORCH):
    return Evidence(
        records={record["id"]: record for record in records},
        claims={record["id"]: record for record in claim_records},
        machine="Machine: CPU",
        torch=torch,
        device=device,
        cores=2,
    )


def exercise(id, best="passed", **fields):
    return {**blank(id, "exercise"), "best": best, "last": 5.0, **fields}


def prediction(id, guess, truth=None, *, late=False):
    guess = {"value": guess, "unit": None, "at": 1.0, "late": late}
    truth = None if truth is None else {"value": truth, "unit": None, "at": 2.0}
    return {**blank(id, "prediction"), "guess": guess, "truth": truth, "last": 2.0}


def measured(claim_id, values=None, met=True, **fields):
    claim = BY_ID[claim_id]
    cells = _report_evidence.cells_of(claim.notebook).get(claim_id, {None})
    return {
        **_claim_record.blank(claim_id),
        "values": values or dict.fromkeys(claim.names, 1),
        "met": met,
        "verdict": claim.verdict,
        "fingerprint": min(cells),
        "torch": TORCH,
        "device": "cpu",
        "cores": 2,
        "at": 3.0,
        **fields,
    }


# Building


def test_with_nothing_recorded_it_is_the_labeled_sample_and_nothing_is_written(home, page):
    report = lab_report.build()
    assert report.is_sample
    assert repr(report).startswith("Sample record: generated, not yours.\nMachine: CPU")
    assert report == SAMPLE
    assert "Sample record: generated, not yours." in page
    assert json.loads(report.to_json())["sample"] is True
    assert not home.exists()


def test_each_part_of_a_sample_says_so_itself_and_no_other_does():
    label = "Sample record: generated, not yours."
    for part in SAMPLE.parts:
        assert repr(part).splitlines()[1] == label
        assert f"<p>{label}</p>" in part.html()
    own = lab_report._of(evidence([exercise("13.1")]))
    assert label not in repr(own)


def test_the_sample_is_the_same_in_every_run():
    assert lab_report.build(sample=True) == SAMPLE
    assert repr(SAMPLE) == repr(lab_report.build(sample=True))


def test_with_one_record_it_is_the_readers_own_and_showing_it_twice_writes_nothing(home):
    exercises.check("00.1", lambda n: n)
    before = {path: path.read_bytes() for path in home.rglob("*.json")}
    report = lab_report.build()
    assert not report.is_sample
    assert repr(report) == repr(lab_report.build())
    report._repr_mimebundle_()
    assert {path: path.read_bytes() for path in home.rglob("*.json")} == before
    assert lab_report.build(sample=True).is_sample


def test_a_claim_alone_makes_a_report_too():
    total = 15
    claims.record("A1-28", total=total)
    report = lab_report.build()
    assert not report.is_sample
    assert report.board.counts()["not attempted"] == len(report.board.states)


def test_the_machine_is_named_by_its_kind_alone():
    total = 15
    claims.record("A1-28", total=total)
    line = repr(lab_report.build()).splitlines()[0]
    assert re.fullmatch(r"Machine: .+ · \d+ cores? · \d+ threads? · torch .+ · NumPy .+", line)
    assert socket.gethostname() not in line


# The board


@pytest.mark.parametrize(
    ("record", "state"),
    [
        (exercise("13.1"), "passed"),
        (exercise("13.1", solution=True), "passed after the solution"),
        (exercise("13.1", "wrong", solution=True), "tried"),
        (exercise("13.1", "raised"), "tried"),
        (exercise("13.1", "unfinished"), "tried"),
        (blank("13.1", "exercise"), "not attempted"),
    ],
)
def test_an_exercise_is_in_one_of_four_states(record, state):
    assert state_of(record) == state


def test_the_board_has_every_exercise_of_the_course_once():
    board = Board.of(evidence([exercise("13.1"), exercise("13.2", solution=True)]))
    counts = board.counts()
    assert sum(counts.values()) == len(_catalog.known_ids("EXERCISES"))
    assert (counts["passed"], counts["passed after the solution"], counts["tried"]) == (1, 1, 0)
    row = next(row for row in board.grids()[0].rows if str(row[0]).startswith("13 "))
    assert row[1:3] == (1, 1)
    assert str(row[0]) == "13 Share memory with NumPy"
    assert row[0].html().startswith('<a href="13_share_memory_with_numpy.ipynb">')


def test_a_record_of_an_exercise_that_the_course_no_longer_has_is_shown():
    board = Board.of(evidence([exercise("97.1")]))
    assert board.states["97.1"] == "passed"
    assert "97" in repr(board)


# Guesses


def guesses(*pairs, late=(), unit="", topic="1"):
    made = [
        Guess(f"{topic}1.p{n}", guess, truth, n in late, "factor", unit)
        for n, (guess, truth) in enumerate(pairs)
    ]
    return Guesses(tuple(made))


def test_errors_of_size_are_averaged_as_factors():
    assert guesses((10, 1), (0.1, 1)).typical == pytest.approx(1)
    assert guesses((4, 1), (4, 1), (1000, 1)).typical == pytest.approx(4)
    assert guesses().typical is None


def test_a_topic_with_few_guesses_says_no_side_either():
    few, enough = guesses(*[(2, 1)] * 4), guesses(*[(2, 1)] * 5)
    assert few.grids()[0].rows[0][2] == "too few to say"
    assert "nothing can be said" in few.remarks()[1]
    assert enough.grids()[0].rows[0][2] == "2.0x too high"


@pytest.mark.parametrize("factor", [1.2, 9, 250, 700_000, 1e12])
def test_the_numbers_on_the_axis_of_factors_do_not_write_over_each_other(factor):
    figure = guesses((factor, 1)).chart().figure
    figure.canvas.draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert len(boxes) >= 5
    assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))


def test_a_column_for_those_who_tried_and_did_not_pass_says_so():
    board = lab_report.build(sample=True).board
    assert "tried, not passed" in board.grids()[0].columns


def test_the_typical_factor_does_not_depend_on_the_unit_and_turns_over_with_the_sides():
    rng = random.Random(0)
    for _ in range(100):
        pairs = [(rng.lognormvariate(0, 3), rng.lognormvariate(0, 3)) for _ in range(7)]
        factor = guesses(*pairs).typical
        assert guesses(*((1024 * g, 1024 * t) for g, t in pairs)).typical == pytest.approx(factor)
        assert guesses(*((t, g) for g, t in pairs)).typical == pytest.approx(1 / factor)


def test_a_late_guess_is_shown_hollow_and_counts_nothing():
    made = guesses((8, 1), (1, 1), late=(0,))
    assert [g.factor for g in made.counted] == [1.0]
    assert "2 guesses stored, 1 with a factor counted, 1 late." in repr(made)
    rows = made.chart().rows
    assert [row[-1] for row in rows] == ["late", "counted"]
    faces = [line.get_markerfacecolor() for line in made.chart().axes.lines[:2]]
    assert faces[0] == plotting.colors()["paper"] != faces[1]


@pytest.mark.parametrize("pair", [(0, 5), (5, 0), (-1, 2), (1, None), (1e300, 1e-300)])
def test_where_no_factor_leads_from_one_to_the_other_nothing_is_counted(pair):
    assert guesses(pair).counted == ()
    assert guesses(pair).chart() is None
    assert "no factor" in repr(guesses(pair).grids()[-1].rows) or pair[1] is None


def test_records_become_factors_counts_and_choices():
    choice = next(iter(_catalog.find_prediction("13.p1").options))
    made = Guesses.of(
        evidence(
            [
                prediction("13.p1", choice, choice),
                prediction("13.p2", 8.0, 9.0),
                prediction("11.p2", 100.0, 400.0),
                prediction("12.p1", "anything", "none of the options"),
                prediction("12.p4", 2.0),
            ]
        )
    )
    kinds = {g.id: (g.kind, g.hit, g.factor) for g in made.guesses}
    assert kinds == {
        "11.p2": ("factor", None, 0.25),
        "12.p1": ("choice", None, None),
        "12.p4": ("factor", None, None),
        "13.p1": ("choice", True, None),
        "13.p2": ("count", False, None),
    }
    row = made.grids()[0].rows[0]
    assert row == ("Tensors and gradients", 1, "too few to say", "0 of 1", "1 of 1", "0 of 1", 0)


def test_the_three_largest_factors_come_with_the_notebook_to_reread():
    made = guesses((2, 1), (1, 1.05), (1, 9), (100, 1), (3, 1))
    assert [g.factor for g in made.largest()] == [100, pytest.approx(1 / 9), 3]
    shown = made.grids()[1]
    assert shown.caption == "The largest factors teach most"
    assert str(shown.rows[0][-1]) == "11 Create and inspect tensors"


@pytest.mark.parametrize(
    ("factor", "words"),
    [(0.25, "4.0x too low"), (12.4, "12x too high"), (1.1, "no side"), (None, "none to say"),
     (1e9, "1e+09x too high"), (1 / 1.2, "1.2x too low")],
)  # fmt: skip
def test_a_factor_is_said_in_words(factor, words):
    assert side(factor) == words


def test_the_title_of_the_figure_says_which_way_bytes_and_seconds_err():
    low = guesses(*[(1, 4)] * 4, unit="MiB").guesses
    high = guesses(*[(4, 1)] * 4, unit="s", topic="2").guesses
    fair = guesses(*[(1, 1)] * 6).guesses
    assert message_of(Guesses(low)) == "Too few guesses to say which way you err"
    assert message_of(Guesses(low + high)) == "You guess bytes too low and seconds too high"
    assert message_of(Guesses(low + fair)) == "You guess bytes too low"
    assert message_of(Guesses(fair)) == "Your guesses lean to no side"


# Claims


def states(*records, **settings):
    rows = Claims.of(evidence([], records, **settings)).rows
    return {row.claim.id: (row.state, row.detail) for row in rows}


def test_every_claim_is_in_one_state_and_the_counts_add_up():
    found = Claims.of(evidence([], [measured("A1-28"), measured("A1-12", met=False)]))
    assert [row.claim.id for row in found.rows] == [claim.id for claim in LEDGER]
    assert sum(found.counts().values()) == len(LEDGER)
    table = found.grids()[0]
    assert sum(row[-1] for row in table.rows) == len(LEDGER)
    assert [sum(row[1:-1]) for row in table.rows] == [row[-1] for row in table.rows]


def test_a_measured_claim_shows_its_own_numbers():
    assert states(measured("A1-28", {"total": 15}))["A1-28"] == ("measured here", "total = 15")


def test_a_disagreeing_machine_is_named():
    found = Claims.of(evidence([], [measured("A1-28", {"total": 14}, met=False)]))
    assert "This machine disagrees with the ledger in A1-28." in repr(found)
    assert "disagrees: total = 14" in repr(found)
    old = measured("A1-28", {"total": 14}, met=False, torch="2.11.0")
    assert "disagrees" not in repr(Claims.of(evidence([], [old]))), "what is stale says nothing now"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"torch": "2.11.0"}, "measured with torch 2.11.0, now it is 2.13.0"),
        ({"fingerprint": "0badcafe0badcafe"}, "the cell has changed"),
        ({"fingerprint": None}, "recorded outside of a notebook's cell"),
        ({"fingerprint": SAMPLE_CELL}, "the cell has changed"),
    ],
)
def test_a_changed_cell_or_another_torch_makes_a_claim_stale(change, why):
    state, detail = states(measured("A1-28", {"total": 15}, **change))["A1-28"]
    assert (state, detail) == ("stale", f"total = 15; {why}")


def test_another_build_of_the_same_torch_makes_nothing_stale():
    assert states(measured("A1-28", torch=f"{TORCH}+cu126"))["A1-28"][0] == "measured here"


def test_where_the_notebook_does_not_lie_beside_the_helpers_nothing_is_called_stale(monkeypatch):
    monkeypatch.setattr(_report_evidence, "cells_of", lambda number: {})
    record = measured("A1-28", fingerprint="0badcafe0badcafe")
    assert states(record)["A1-28"][0] == "measured here"


def test_what_needs_cuda_says_where_it_could_be_measured():
    nothing = dict.fromkeys(BY_ID["A1-03"].names)
    expected = ("not measurable here", "needs CUDA; with it, in 22 Measure a speedup")
    assert states()["A1-03"] == expected
    assert states(measured("A1-03", nothing, met=None))["A1-03"] == expected
    assert states(device="cuda")["A1-03"] == ("missing", "measured by 22 Measure a speedup")


def test_what_a_cell_could_not_measure_is_not_called_missing():
    record = measured("A2-41", dict.fromkeys(BY_ID["A2-41"].names), met=None)
    told = ("not measurable here", "61 Compile a model could not measure it")
    assert states(record)["A2-41"] == told


def test_what_is_missing_names_its_notebook_and_what_no_cell_settles_its_reason():
    found = states()
    assert found["A1-28"] == ("missing", "measured by 12 Compute with tensors")
    source = next(claim for claim in LEDGER if claim.evidence == "source")
    assert found[source.id] == ("from source", source.reference)
    empty = next(claim for claim in LEDGER if claim.evidence == "no-claim")
    assert found[empty.id][0] == "no claim"


def test_the_figure_draws_every_claim():
    chart = SAMPLE.claims.chart()
    assert sum(int(count) for row in chart.rows for count in row[1:]) == len(LEDGER)
    widths = sum(patch.get_width() for patch in chart.axes.patches)
    assert widths == len(LEDGER)
    assert chart.message.endswith("4 name nothing to measure")


# Milestones and what is open


def test_each_milestone_names_exercises_predictions_and_claims_that_exist():
    known = set(_catalog.known_ids("EXERCISES"))
    notebooks = {id[:2] for id in known}
    assert len(MILESTONES) == 8
    for milestone in MILESTONES:
        for id in milestone.exercises:
            assert id in known or id[:2] not in notebooks, id
        assert set(milestone.numbers) <= set(_catalog.known_ids("PREDICTIONS"))
        assert all(BY_ID[id].expectation for id in milestone.claims)


def reached(*records, claim_records=()):
    rows = Milestones.of(evidence(records, claim_records)).rows
    return {name: state for name, state, *_ in rows}


def test_a_milestone_is_reached_by_all_of_its_proofs_and_by_nothing_less():
    name = "made two processes agree"
    claim = measured("A1-40", dict.fromkeys(BY_ID["A1-40"].names, 0))
    assert reached()[name] == "not yet"
    assert reached(exercise("31.4"))[name] == "not yet"
    assert reached(claim_records=[claim])[name] == "not yet"
    assert reached(exercise("31.4", "wrong"), claim_records=[claim])[name] == "not yet"
    otherwise = measured("A1-40", met=False)
    assert reached(exercise("31.4"), claim_records=[otherwise])[name] == "not yet"
    assert reached(exercise("31.4"), claim_records=[claim])[name] == "reached by your own work"
    solved = exercise("31.4", solution=True)
    assert reached(solved, claim_records=[claim])[name] == "reached after the solution"


def test_a_milestone_says_what_proves_it_where_and_with_which_numbers():
    record = measured("A1-40", {"world_size": 2, "rank_difference": 0})
    found = Milestones.of(evidence([prediction("41.p6", 28.0, 104.0)], [record]))
    rows = {name: rest for name, _, *rest in found.rows}
    proof, where, numbers = rows["made two processes agree"]
    assert proof == "31.4 not attempted; A1-40 measured"
    assert [str(link) for link in where] == ["31 Train on many GPUs"]
    assert numbers == "world_size = 2, rank_difference = 0"
    assert rows["sized a 7B model"][-1] == "41.p6: 104 GiB"
    assert rows["trained under a budget"][-1] == "–"
    assert len(found.rows) == len(MILESTONES), "a milestone is never hidden"


def test_incomplete_lists_everything_that_is_open_and_nothing_else():
    report = SAMPLE
    listed = [id for kinds in report.incomplete.open.values() for ids in kinds for id in ids]
    todo = {id for id, state in report.board.states.items() if not state.startswith("passed")}
    todo |= {id for id in _catalog.known_ids("PREDICTIONS")
             if not report.evidence.record(id)["guess"]}  # fmt: skip
    todo |= {row.claim.id for row in report.claims.rows if row.state in ("missing", "stale")}
    assert sorted(listed) == sorted(todo)
    assert "A list, not a lock: every notebook is open to you" in repr(report.incomplete)


def test_with_nothing_open_it_says_so():
    assert repr(type(SAMPLE.incomplete)({})) == "Incomplete\nNothing is open."


# Merging


def test_merging_reports_counts_nothing_twice():
    one = lab_report._of(evidence([exercise("13.1", "wrong", checks={"0badcafe": 2})]))
    two = lab_report._of(
        evidence([exercise("13.1", checks={"0badcafe": 3}), exercise("13.2")], [measured("A1-28")])
    )
    both = one.merged_with(two)
    assert both == two.merged_with(one) == both.merged_with(one) == both.merged_with(both)
    assert both.evidence.records["13.1"]["checks"] == {"0badcafe": 3}
    assert both.board.counts()["passed"] == 2
    assert list(both.evidence.claims) == ["A1-28"]


def test_a_sample_is_not_merged_with_a_readers_own():
    with pytest.raises(ValueError, match="a sample was generated: merge only reports of your own"):
        SAMPLE.merged_with(lab_report._of(evidence()))


# Display


class Page(HTMLParser):
    """Collect what a reader of the page, or of its source, meets."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attrs, self.captions, self.open = [], [], 0, []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attrs.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "source", "hr", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page():
    return SAMPLE.to_html()


def test_the_page_is_complete_and_needs_no_other_file(page):
    parsed = Page(page)
    assert parsed.open == []
    assert page.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert not {"script", "link", "iframe", "object", "form"} & set(parsed.tags)
    for tag, attrs in parsed.attrs:
        for name in ("src", "srcset"):
            assert attrs.get(name, "data:image/png;").startswith("data:image/png;"), tag
        assert not any(name.startswith("on") for name in attrs)
        assert ":" not in attrs.get("href", "")
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_page_has_headings_captions_heads_and_alt_texts(page):
    parsed = Page(page)
    assert parsed.tags.count("h1") == 1
    assert parsed.tags.count("h2") == len(SAMPLE.parts)
    assert parsed.tags.count("caption") == parsed.tags.count("table") > 5
    scopes = {attrs.get("scope") for tag, attrs in parsed.attrs if tag == "th"}
    assert scopes == {"col", "row"}
    alts = [attrs["alt"] for tag, attrs in parsed.attrs if tag == "img"]
    assert len(alts) == 2
    for part, alt in zip((SAMPLE.guesses, SAMPLE.claims), alts, strict=True):
        assert alt.startswith(part.chart().message)
        assert alt.endswith("The table below the figure holds the values.")


def test_the_page_has_a_dark_theme_with_figures_of_its_own(page):
    assert "color-scheme:light dark" in page
    assert "@media (prefers-color-scheme:dark)" in page
    assert page.count('<source media="(prefers-color-scheme: dark)"') == 2
    pictures = re.findall(r'(?:src|srcset)="(data:[^"]+)"', page)
    assert len(set(pictures)) == 4


def test_every_color_of_the_page_can_be_read_on_its_paper():
    style = _report_page._STYLE
    light, dark = (dict(re.findall(r"(--[\w-]+):(#\w{6})", part)) for part in style.split("@media"))
    assert light.keys() == dark.keys()
    for colors in (light, dark):
        for name, color in colors.items():
            needed = 4.5 if name in ("--ink", "--link") else 3  # what is no text: a border
            assert name == "--paper" or contrast(color, colors["--paper"]) >= needed, name


def test_drawing_for_the_page_leaves_the_theme_of_the_notebook_alone():
    import matplotlib as mpl

    plotting.use_style("dark")
    try:
        before = dict(mpl.rcParams)
        with drawn_for("light"):
            assert plotting.colors() == plotting.PALETTES["light"]
        assert plotting.colors() == plotting.PALETTES["dark"]
        assert dict(mpl.rcParams) == before
    finally:
        plotting.use_style("light")


def test_in_a_notebook_each_part_shows_text_and_html_in_the_colors_of_the_page():
    for part in SAMPLE.parts:
        bundle = part._repr_mimebundle_()
        assert bundle.keys() == {"text/plain", "text/html"}
        Page(bundle["text/html"])
        text = re.sub(r"data:image/png;base64,[^\"]+", "", bundle["text/html"])
        assert not re.search(r"(?<!, )#[0-9a-fA-F]{6}\b(?!\))", text), "a color of its own"


def test_a_state_is_a_word_before_it_is_a_color():
    html = SAMPLE.claims.html()
    for word in ("measured here", "stale", "missing", "from source", "no claim"):
        assert re.search(rf'padding-left:6px">{word}</span>', html)


def test_a_folded_table_is_in_the_html_and_named_in_the_text():
    grid = Grid("All of it", ("a", "b"), (("<x>", 1),), folded=True)
    assert grid.text() == "All of it"
    assert "<summary>All of it</summary>" in grid.html()
    assert "&lt;x&gt;" in grid.html()


# Saving


def test_save_names_two_files_and_replaces_its_own(tmp_path, page, monkeypatch):
    monkeypatch.setattr(lab_report.LabReport, "to_html", lambda report: page)
    folder = tmp_path / "reports"
    own = replace(SAMPLE, evidence=replace(SAMPLE.evidence, sample=False))
    assert repr(own.save(folder)) == "Saved\nlab-report.html to read, lab-report.json to pass on."
    said = repr(SAMPLE.save(folder))
    assert said.endswith(" are a sample: nothing of yours is recorded here.")
    assert sorted(path.name for path in folder.iterdir()) == list(lab_report.FILES)
    assert (folder / "lab-report.html").read_text("utf-8") == page
    assert _report_schema.read((folder / "lab-report.json").read_bytes())["sample"] is True


@pytest.mark.parametrize("name", lab_report.FILES)
@pytest.mark.parametrize("kind", ["text", "folder", "dangling link"])
def test_a_file_that_a_report_did_not_write_is_never_replaced(tmp_path, name, kind):
    place = tmp_path / name
    if kind == "folder":
        place.mkdir()
    elif kind == "text":
        place.write_text("mine")
    else:
        place.symlink_to(tmp_path / "nowhere")
    said = SAMPLE.save(tmp_path)
    assert said.word == "Nothing written"
    assert said.body == (
        f"{name} is there and was not written by a lab report: move it, or choose another folder."
    )
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert kind != "text" or place.read_text() == "mine"


@pytest.fixture
def fast(monkeypatch):
    """Save pages without drawing their figures."""
    page = f"<html>{_report_page.GENERATOR}"
    monkeypatch.setattr(lab_report.LabReport, "to_html", lambda report: page)


@pytest.mark.usefixtures("fast")
def test_where_nothing_can_be_written_no_error_reaches_the_cell(tmp_path):
    (tmp_path / "file").write_text("")
    said = SAMPLE.save(tmp_path / "file" / "folder")
    assert repr(said) == "Not saved\nNot saved, because the folder cannot be written."
    assert str(tmp_path) not in repr(said)


@pytest.mark.usefixtures("fast")
def test_a_folder_that_is_not_there_yet_is_made(tmp_path):
    assert SAMPLE.save(tmp_path / "new").word == "Saved"
    assert (tmp_path / "new" / "lab-report.json").is_file()


# What leaves the machine

NAME, HOST = "adalovelace", "difference-engine"


def faults(home):
    """Return answers that bring private texts into everything an answer can reach."""
    secret = f"{home}/weights.pt on {HOST}"

    class AdalovelaceError(Exception):
        pass

    def missing(*args):
        return open(secret)

    def private(*args):
        raise AdalovelaceError(secret)

    def taught(*args):
        print(secret)
        raise exercises.Wrong(secret)

    return missing, private, taught, lambda *args: secret


def test_a_record_made_by_somebody_somewhere_tells_neither_who_nor_where(tmp_path, monkeypatch):
    home = tmp_path / NAME
    home.mkdir()
    for name in ("USER", "LOGNAME", "USERNAME"):
        monkeypatch.setenv(name, NAME)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("COURSE_HOME", str(home / "progress"))
    monkeypatch.setattr(socket, "gethostname", lambda: HOST)
    monkeypatch.chdir(home)
    ids = ("00.1", "11.1", "13.2", "13.3")
    for id, answer in zip(ids, faults(home), strict=True):
        exercises.check(id, answer)
    exercises.predict("13.p1", guess=str(home))
    exercises.predict("13.p1", guess="0.0")
    exercises.reveal("13.p1", FileNotFoundError(str(home)))
    exercises.predict("12.p4", guess=2)
    exercises.reveal("12.p4", 3.0, unit=str(home))
    path = str(home)
    claims.record("A2-44", hash_on_1=path, hash_on_2=path, hash_on_4=path, hash_written=path)
    report = lab_report.build()
    assert len(report.evidence.records) == 6
    messages = {id: report.evidence.records[id]["message"] for id in ids}
    assert messages["00.1"] == "FileNotFoundError"
    assert messages["11.1"] == "other error"
    report.save(home / "out")
    out = home / "out"
    for text in (report.to_json(), repr(report), *map(str, messages.values()),
                 (out / "lab-report.html").read_text("utf-8"),
                 (out / "lab-report.json").read_text("utf-8")):  # fmt: skip
        lowered = text.lower()
        for secret in (NAME, HOST, str(home), str(tmp_path), "weights.pt"):
            assert secret.lower() not in lowered
    assert _report_schema.read(report.to_json())


def test_the_export_holds_no_time_but_week_and_order():
    report = lab_report._of(
        evidence(
            [exercise("13.1", last=1_796_000_000.125), exercise("13.2", last=1_796_900_000.5)],
            [measured("A1-28", at=1_796_100_000.25)],
        )
    )
    text = report.to_json()
    assert not re.search(r"179\d{7}", text)
    data = json.loads(text)
    assert [(e["id"], e["week"], e["order"]) for e in data["exercises"]] == [
        ("13.1", "2026-W49", 1),
        ("13.2", "2026-W50", 3),
    ]
    assert data["claims"][0]["order"] == 2


def test_a_sentence_that_no_list_has_becomes_other(home):
    record = exercise("13.1", "wrong", message="3f2a9b1c", misses=["/home/ada"])
    data = json.loads(lab_report._of(evidence([record])).to_json())
    assert data["exercises"][0]["message"] == "other sentence"
    assert data["exercises"][0]["misses"] == []


def test_what_the_course_no_longer_asks_is_left_out():
    records = [exercise("97.1"), prediction("13.p1", "an old option", "0.0")]
    data = json.loads(lab_report._of(evidence(records)).to_json())
    assert (data["exercises"], data["predictions"]) == ([], [])


def test_the_readers_id_is_made_once_and_can_be_replaced(home):
    exercises.check("00.1", lambda n: n)
    first = json.loads(lab_report.build().to_json())["reader"]
    assert re.fullmatch("[0-9a-f]{8}", first)
    assert json.loads(lab_report.build().to_json())["reader"] == first == _reader.reader_id()
    exercises.progress.new_id()
    assert json.loads(lab_report.build().to_json())["reader"] != first
    assert "00000000" in SAMPLE.to_json()


# Reading what others pass on


TEXT = SAMPLE.to_json()


def valid():
    """Return a small report: two entries of each kind, a choice among them."""
    data = json.loads(TEXT)
    data["predictions"].sort(key=lambda entry: isinstance(entry["guess"], float))
    return {**data, **{name: data[name][:2] for name in _report_schema.LISTS}}


def test_what_was_written_is_read_back():
    assert _report_schema.read(TEXT) == _report_schema.read(TEXT.encode()) == json.loads(TEXT)


def places(data):
    yield data, _report_schema.REPORT
    for name, rules in _report_schema.LISTS.items():
        yield data[name][0], rules


def test_every_missing_and_every_unknown_field_is_refused():
    for n, (_, rules) in enumerate(places(valid())):
        for field in rules:
            data = valid()
            del list(places(data))[n][0][field]
            with pytest.raises(ValueError, match=f"missing: {field}; unknown: none"):
                _report_schema.check(data)
        data = valid()
        list(places(data))[n][0]["home\nx"] = "ada"
        with pytest.raises(ValueError, match=r"missing: none; unknown: 'home\\nx'"):
            _report_schema.check(data)


def refusal(data):
    try:
        _report_schema.check(data)
    except ValueError as error:
        return str(error)
    return ""


STRANGE = [{"a": 1}, "x" * 300, "/home/ada", 1e999, -1, 10**400, math.nan, [["x"]], [1] * 2_000]


def test_a_value_of_another_type_or_length_is_refused_in_every_field():
    for n, (_, rules) in enumerate(places(valid())):
        for field in rules:
            refused = 0
            for value in STRANGE:
                data = valid()
                list(places(data))[n][0][field] = value
                said = refusal(data)
                refused += bool(said)
                assert "ada" not in said
            assert refused >= len(STRANGE) - 2, field  # a guess may be -1, or any number


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda d: d["exercises"][0].update(id="98765"), r"exercises\[0\]: id must be one of"),
        (lambda d: d["exercises"][0].update(message="/x"), r"message and misses must be ids"),
        (lambda d: d["exercises"][0].update(misses=["/x"]), r"message and misses must be ids"),
        (lambda d: d["claims"][0].update(values={"x": 1}), "values must have the names"),
        (lambda d: d["claims"][0]["values"].update(small_ratio="/home"), "values must be measured"),
        (lambda d: d["exercises"].append(d["exercises"][0]), "exercises must name each id once"),
        (lambda d: d.update(schema="other"), "schema must be one of measured-pytorch-report-1"),
        (lambda d: d.update(reader="ada"), "reader must be 8 hexadecimal digits"),
        (lambda d: d.update(torch="2.13 on ada"), "torch must be a version"),
    ],
)  # fmt: skip
def test_a_text_that_the_course_does_not_know_is_refused(change, said):
    data = valid()
    change(data)
    with pytest.raises(ValueError, match=said):
        _report_schema.check(data)


def test_a_guess_must_be_an_answer_that_the_question_allows():
    data = valid()
    entry = next(e for e in data["predictions"] if isinstance(e["guess"], str))
    entry["guess"] = "it lies in /home/ada"
    with pytest.raises(ValueError, match="guess and truth must be answers that .* allows"):
        _report_schema.check(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "expected the JSON of a lab report, got something else"),
        ("{", "expected the JSON of a lab report"),
        ("[" * 100_000, "expected the JSON of a lab report"),
        ("NaN", "expected the JSON of a lab report"),
        (b"\xff\x00", "expected the JSON of a lab report"),
        ("1" * 5_000, "expected the JSON of a lab report"),
        ("[]", "report must hold the fields of a report, got list"),
        (" " * 1_000_001, r"a report has at most 1 MB, got 1.0 MB"),
        ('{"__class__": "os.system"}', "unknown: '__class__'"),
    ],
    ids=["empty", "cut", "deep", "nan", "binary", "long number", "list", "large", "class"],
)
def test_what_is_no_report_gets_a_sentence(text, said):
    with pytest.raises(ValueError, match=said):
        _report_schema.read(text)


def test_the_schema_shows_every_field_with_its_rule():
    shown = lab_report.fields()
    assert len(shown.rows) == len(_report_schema.REPORT) + sum(
        len(rules) for rules in _report_schema.LISTS.values()
    )
    forbidden = {"user", "host", "path", "home", "address", "answer", "code", "at", "time", "text"}
    assert not forbidden & {name.rpartition(" ")[2] for name, _ in shown.rows}


def test_records_of_every_kind_pass_the_schema():
    rng = random.Random(0)
    ids = _catalog.known_ids("EXERCISES")
    for _ in range(50):
        records = [
            exercise(
                id,
                rng.choice(("passed", "wrong", "raised", "unfinished", "not attempted")),
                message=rng.choice(("time", "TypeError", "0badcafe", None)),
                checks={"0badcafe": rng.randint(0, 10**6)},
                last=rng.choice((None, rng.uniform(0, 1e11))),
            )
            for id in rng.sample(ids, 5)
        ]
        data = json.loads(lab_report._of(evidence(records)).to_json())
        assert len(_report_schema.read(json.dumps(data))["exercises"]) == 5


def test_a_whole_course_fits_into_a_report():
    records = [exercise(id) for id in _catalog.known_ids("EXERCISES")]
    found = [measured(claim.id) for claim in LEDGER if claim.expectation]
    text = lab_report._of(evidence(records, found)).to_json()
    assert len(text) < _report_schema.LARGEST / 4
    assert os.linesep not in text or text.count("\n") > 1
