"""Whatever a color says, a word says first: results, doctor, claims, guesses, widgets, reports."""

import itertools
import re
from html import unescape

import pytest

from helpers import _display, claims, doctor
from helpers._paths import ROOT
from helpers._report_part import State
from helpers.exercises import _check, _predict
from helpers.widgets import (
    bits,
    broadcasting,
    fit,
    graph,
    ranks,
    schedules,
    segments,
    sharing,
    strides,
    timeline,
    training,
)

RESULTS = {
    "not attempted": "Not attempted",
    "unfinished": "Unfinished",
    "wrong": "Not yet",
    "raised": "Error",
    "stopped": "Stopped",
    "passed": "Passed",
}


def words(html):
    """Return what HTML says without tags, styles and colors."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html)).split())


def test_a_card_begins_with_its_word_and_its_tone_changes_no_word():
    cards = {tone: _display.card(tone, "Not yet", "Look at `x`.") for tone in _display.TONES}
    assert len(set(cards.values())) == len(_display.TONES)
    assert {words(card) for card in cards.values()} == {"Not yet Look at x ."}


def test_a_tone_is_used_only_where_a_word_stands_beside_it():
    use = re.compile(r"(?<!_)TONES\[")
    users = {p.name for p in ROOT.glob("helpers/**/*.py") if use.search(p.read_text("utf-8"))}
    assert users <= {"_display.py", "_report_part.py"}


def test_no_other_helper_says_anything_by_a_color_of_its_own():
    color = re.compile(r"(?:color|background|fill|stroke)\s*:\s*(?:#|red|green|rgb)")
    users = {p.name for p in ROOT.glob("helpers/**/*.py") if color.search(p.read_text("utf-8"))}
    assert users == set()


@pytest.mark.parametrize("status", RESULTS)
def test_the_outcome_of_a_check_begins_with_its_word(status):
    shown = _check.Result("13.2", status, "A sentence.")
    assert set(_check._WORDS) == set(RESULTS)
    assert len(set(RESULTS.values())) == len(RESULTS)
    for text in (shown.text(), words(shown.html())):
        assert text.startswith(f"{RESULTS[status]}: 13.2")


def test_a_hint_and_a_solution_say_what_they_are():
    for word in ("Hint 1 of 3", "One solution of 13.2"):
        page = _check.Page(word, "body")
        assert page.text().startswith(word)
        assert words(page.html()).startswith(word)


def test_a_guess_says_whether_it_was_made_and_whether_it_is_late():
    asked, made = _predict.Prediction("13.p1"), _predict.Prediction("13.p1", "7.0")
    late = _predict.Prediction("13.p1", "7.0", late=True)
    for form in (lambda shown: shown.text(), lambda shown: words(shown.html())):
        assert "Your guess" not in form(asked)
        assert "Your guess: 7.0" in form(made)
        assert "Late" not in form(made)
        assert "Late" in form(late)


def test_a_reveal_says_the_distance_in_words():
    shown = _predict.Reveal("13.p2", "You guessed 4. This machine counted 8.", band="2x")
    assert words(shown.html()) == shown.text() == "You guessed 4. This machine counted 8."


@pytest.mark.parametrize("status", ["ok", "note", "fix"])
def test_each_row_of_the_doctor_begins_with_its_word(status):
    report = doctor.Report((doctor.Row("compiler", status, "none", "install one"),))
    assert str(report).startswith(status)
    row = re.search(r"<tbody><tr>(.*?)</tr>", report._repr_html_())[1]
    assert words(row).split()[0] == status
    assert ("To fix first: compiler." in words(report._repr_html_())) == (status == "fix")


@pytest.mark.parametrize(
    ("met", "says"),
    [(True, "this machine agrees"), (False, "this machine disagrees"), (None, "not measured here")],
)
def test_an_outcome_of_the_ledger_begins_with_its_verdict_in_words(met, says):
    claim = next(claim for claim in claims.load_ledger() if claim.id == "A1-12")
    outcome = claims.Outcome(claim=claim, values=(("itemsize", 4),), met=met)
    for text in (repr(outcome), words(outcome._repr_html_())):
        assert text.startswith("A1-12")
        assert says in text.partition("The tutorial says")[0]


@pytest.mark.parametrize("tone", _display.TONES)
def test_a_state_of_the_report_is_a_word(tone):
    assert words(State("not yet", tone).html()) == str(State("not yet", tone)) == "not yet"


# Widgets --------------------------------------------------------------------------------------


def states(make, *choices):
    return [make(*choice) for choice in itertools.product(*choices)]


def _training_runs():
    curve = (("loss", (1.0, 0.5)),)
    ends = (("running", 2), ("finished", 2), ("stopped", 2), ("ValueError", 2))
    return [
        training.Run(total, begun=done, done=done, curves=curve, state=state)
        for total in (2, 9)
        for state, done in ends
    ]


RUNS = segments.explore(
    {0: 90, 4: 40, 8: 30}, {0: 0.2, 4: 0.3, 8: 0.31}, arithmetic={0: 30, 4: 40, 8: 40}
).state.runs
WIDGETS = {
    "bits": (bits, states(bits.BitsState, ["1.0", "0.1", "65520", "1e-8", "x"], bits.FORMATS, [-1, 0, 1])),
    "broadcasting": (
        broadcasting,
        states(broadcasting.BroadcastState, ["5, 1", "3", "2, 4", "b"], ["5", "1, 3", "4"], broadcasting.OPERATIONS),
    ),
    "fit": (fit, states(fit.FitState, ["GPT-2 124M"], [1, 8, 64], fit.CARDS)),
    "graph": (graph, [s for p in graph.PRESETS for s in states(graph.GraphState, [p], range(graph.steps(p) + 1))]),
    "ranks": (ranks, states(ranks.RanksState, ranks.METHODS, [1, 2, 3, 4], ranks.OPTIMIZERS)),
    "schedules": (schedules, states(schedules.ScheduleState, schedules.SHAPES, [0, 2], schedules.COUNTED)),
    "segments": (segments, [segments.SegmentsState(RUNS, run.name) for run in RUNS]),
    "sharing": (sharing, states(sharing.SharingState, sharing.CONVERSIONS, sharing.SIDES)),
    "strides": (strides, states(strides.StrideState, strides.OPERATIONS, range(12))),
    "timeline": (timeline, states(timeline.TimelineState, [4, 40, 400], [20, 500], timeline.MODES)),
    "training": (training, _training_runs()),
}  # fmt: skip


def test_every_widget_is_among_them():
    assert set(WIDGETS) == {path.stem for path in ROOT.glob("helpers/widgets/[!_]*.py")}


@pytest.mark.parametrize("name", WIDGETS)
def test_what_a_picture_tells_apart_the_text_tells_apart_too(name):
    module, every = WIDGETS[name]
    drawn = {}
    for state in every:
        view = module.render(state)
        drawn.setdefault(view.text(), set()).add(view.svg(""))
    assert len(drawn) > 2
    assert [text for text, pictures in drawn.items() if len(pictures) > 1] == []


@pytest.mark.parametrize("name", WIDGETS)
def test_the_finding_stands_before_the_picture(name):
    module, every = WIDGETS[name]
    for state in every[:20]:
        view = module.render(state)
        for page in (view.html(), view.static_html()):
            assert page.index("<strong") < re.search("<svg|<img", page).start()
            assert page.index("<strong") < page.index("<table")
        assert view.text().startswith(view.heading)
        assert len(view.heading.split()) >= 4
