"""Predict, then measure: guesses are stored once, judged by factor, never raise."""

import json
import math
import re

import example_exercises
import numpy as np
import pytest
import torch

from helpers import _shelf, exercises
from helpers._paths import progress_home
from helpers.exercises import Choice, Number, _predict, _progress, predict, reveal
from helpers.exercises._guess import band_of
from helpers.exercises._strip import strip

exercises.use(example_exercises)
GIB = 2**30


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_shelf, "in_memory", {})
    monkeypatch.setattr(_predict, "_measured", {})
    return tmp_path / "home"


def new_kernel(monkeypatch):
    monkeypatch.setattr(_predict, "_measured", {})


def stored(id):
    return _progress.read(id, "prediction")


def test_an_open_question_shows_its_options_and_how_to_choose_and_writes_nothing(home):
    assert repr(predict("98.p1")) == (
        "98.p1 What is tensor[0] now?\n  - 0.0\n  - 7.0\n  - an error\n"
        'Choose before you measure, for example `predict("98.p1", guess="0.0")`.'
    )
    assert not home.exists()


def test_an_open_number_shows_how_to_write_it_and_dots_are_no_guess(home):
    shown = predict("98.p2", guess=...)
    assert shown.guess == ""
    assert repr(shown).splitlines()[1] == (
        'Before you measure, put a number (such as "2 MiB") in place of the dots: '
        '`predict("98.p2", guess=...)`.'
    )
    assert "a number (conversions) in place" in repr(predict("98.p3"))
    assert not home.exists()


def test_a_guess_is_stored_once_and_shown_again():
    assert repr(predict("98.p1", guess="7.0")).splitlines()[1] == "Your guess: 7.0"
    assert repr(predict("98.p1")) == repr(predict("98.p1", guess=7.0))
    other = predict("98.p1", guess="an error")
    assert (other.guess, other.remark) == ("7.0", "The first guess counts: an error came after it.")
    assert stored("98.p1")["guess"]["value"] == "7.0"


def test_a_stored_guess_has_no_options_and_no_buttons_any_more():
    shown = predict("98.p1", guess="7.0")
    assert "an error" not in repr(shown)
    assert shown.widget() is None


@pytest.mark.parametrize(
    ("id", "guess", "remark"),
    [
        ("98.p1", "8.0", 'The guess must be one of "0.0", "7.0", "an error", got \'8.0\'.'),
        ("98.p3", "many", "The guess must be a number, got 'many'."),
        ("98.p3", "", "The guess must be a number, got ''."),
        ("98.p3", float("nan"), "The guess must be a number, got 'nan'."),
        ("98.p3", math.inf, "The guess must be a number, got 'inf'."),
        ("98.p3", True, "The guess must be a number, got 'True'."),
        ("98.p3", [1], "The guess must be a number, got '[1]'."),
        ("98.p3", "28,5", "The guess must be a number, got '28,5'."),
        ("98.p3", "3 GiB", "The guess must be a number, got '3 GiB'."),
        ("98.p2", "3 ms", "The guess must be a number, got '3 ms'."),
        ("98.p2", "1.2.3 GiB", "The guess must be a number, got '1.2.3 GiB'."),
        ("98.p3", -1, "This quantity cannot be negative, got '-1'."),
        ("98.p3", "x" * 100, f"The guess must be a number, got '{'x' * 60} …'."),
    ],
)
def test_an_impossible_guess_is_told_and_not_stored(home, id, guess, remark):
    shown = predict(id, guess=guess)
    assert shown.remark == remark
    assert remark in repr(shown)
    assert not home.exists()


@pytest.mark.parametrize(
    ("id", "guess", "value"),
    [
        ("98.p2", "28 GiB", 28 * GIB),
        ("98.p2", "1.5kB", 1500),
        ("98.p2", "2 bytes", 2),
        ("98.p2", 3e9, 3e9),
        ("98.p3", "1,000", 1000),
        ("98.p3", 8, 8),
        ("98.p3", np.float32(8), 8),
        ("98.p4", "-2x", -2),
        ("98.p5", "3 ms", 3e-3),
        ("98.p5", "2 µs", 2e-6),
        ("98.p5", "1e-3 s", 1e-3),
    ],
)
def test_a_number_may_carry_its_unit(id, guess, value):
    predict(id, guess=guess)
    assert stored(id)["guess"]["value"] == pytest.approx(value)


def test_without_a_guess_the_measurement_stands_alone_and_nothing_is_written(home):
    late = "No guess was stored before; one made from now on counts as late."
    assert repr(reveal("98.p1", 7.0)) == f"This machine measured 7.0.\n{late}"
    assert repr(reveal("98.p2", 104 * GIB)) == f"This machine measured 104 GiB.\n{late}"
    assert not home.exists()


def test_a_count_out_of_some_is_a_whole_number_and_judged_by_how_many_it_is_off():
    for bad in (13, 2.5, -1, "many"):
        assert predict("98.p6", guess=bad).guess == ""
    assert "a whole number from 0 to 12" in predict("98.p6", guess=13).remark
    assert "a whole number from 0 to 12 (conversions)" in repr(predict("98.p6"))
    predict("98.p6", guess=9)
    shown = reveal("98.p6", 8)
    assert shown.sentence == (
        "You guessed 9 conversions. This machine measured 8 conversions, 1 fewer."
    )
    assert shown.band == "off by 1"
    assert reveal("98.p6", 9).band == "exact"
    assert reveal("98.p6", 12).sentence.endswith("12 conversions, 3 more.")


@pytest.mark.parametrize("guess", [7, 7.0, "7", " 7.00 ", "7.0"])
def test_a_choice_is_recognized_however_its_number_is_written(guess):
    assert predict("98.p1", guess=guess).guess == "7.0"


def test_a_choice_is_recognized_without_its_spaces():
    assert predict("98.p1", guess="AN  error").guess == "an error"


def test_a_choice_shows_the_sentence_of_the_option_that_was_guessed():
    predict("98.p1", guess="0.0")
    shown = reveal("98.p1", torch.tensor(7.0))
    assert repr(shown) == (
        "You guessed 0.0. This machine measured 7.0.\nA conversion is not a copy."
    )
    assert shown.band == "not as measured"
    assert stored("98.p1")["truth"]["value"] == "7.0"
    assert reveal("98.p1", 0.0).band == "as measured"


def test_an_exception_is_the_option_an_error():
    predict("98.p1", guess="an error")
    shown = reveal("98.p1", RuntimeError("no sharing"))
    assert shown.sentence == (
        "You guessed an error. This machine measured an error, RuntimeError: no sharing."
    )
    assert shown.band == "as measured"


def test_a_measurement_that_no_option_says_is_told_and_its_text_not_stored():
    predict("98.p1", guess="7.0")
    shown = reveal("98.p1", "/home/ada")
    assert "measured /home/ada, which none of the options says." in shown.sentence
    assert stored("98.p1")["truth"]["value"] == "none of the options"


def test_a_number_is_judged_by_its_factor_and_its_note():
    predict("98.p2", guess="28 GiB")
    shown = reveal("98.p2", 104 * GIB)
    assert repr(shown) == (
        "You guessed 28.0 GiB. This machine measured 104 GiB, 3.7 times more.\n"
        "Gradients and moments are missing."
    )
    assert shown.band == "within 10x"


@pytest.mark.parametrize(
    ("guess", "truth", "said", "band"),
    [
        (8, 8, "measured 8 conversions, as you guessed.", "within 10 %"),
        (100, 104, "measured 104 conversions, within 10 %.", "within 10 %"),
        (8, 6, "measured 6 conversions, 1.3 times less.", "within 1.5x"),
        (8, 16, "measured 16 conversions, 2.0 times more.", "within 2x"),
        (1, 5000, "measured 5,000 conversions, 5,000 times more.", "further than 10x"),
        (0, 8, "measured 8 conversions; no factor leads from one to the other.", "further than 10x"),
        (8, 0, "measured 0 conversions; no factor leads from one to the other.", "further than 10x"),
        (0, 0, "measured 0 conversions, as you guessed.", "within 10 %"),
    ],
)  # fmt: skip
def test_every_band_has_its_words(guess, truth, said, band):
    predict("98.p3", guess=guess)
    shown = reveal("98.p3", truth)
    assert shown.sentence.endswith(said)
    assert shown.band == band


def test_bands_are_symmetric_in_guess_and_truth():
    for factor in (1.0, 1.05, 1.4, 1.9, 9.0, 11.0):
        assert band_of(factor, 1.0) == band_of(1.0, factor) == band_of(-factor, -1.0)


def test_a_guess_after_the_measurement_is_late_and_not_scored():
    reveal("98.p3", 8)
    shown = predict("98.p3", guess=8)
    assert shown.late
    assert "Late: the measurement was there before, so it is not scored." in repr(shown)
    assert repr(predict("98.p3", guess=8)) == repr(shown)
    told = reveal("98.p3", 8)
    assert told.sentence.startswith("Late guess, not scored. You guessed 8 conversions.")
    assert told.band == ""


def test_a_guess_before_the_measurement_stays_on_time_in_later_kernels(monkeypatch):
    predict("98.p3", guess=8)
    reveal("98.p3", 8)
    new_kernel(monkeypatch)
    assert not predict("98.p3", guess=8).late


def test_a_stored_measurement_makes_a_guess_late_in_another_kernel(monkeypatch):
    predict("98.p3", guess=8)
    reveal("98.p3", 8)
    path = progress_home() / "exercises" / "98.p3.json"
    path.write_text(json.dumps({**stored("98.p3"), "guess": None}))
    new_kernel(monkeypatch)
    assert predict("98.p3", guess=8).late


@pytest.mark.parametrize("value", [None, float("nan"), torch.tensor(float("nan"))])
def test_what_was_not_measured_is_not_judged(value):
    predict("98.p3", guess=8)
    assert repr(reveal("98.p3", value)) == "Not measured here."
    assert stored("98.p3")["truth"] is None


@pytest.mark.parametrize("value", ["many", [1, 2], math.inf, ValueError("x")])
def test_a_measurement_that_is_no_number_is_told(value):
    assert reveal("98.p3", value).sentence.startswith("Not judged: a number was expected, got ")


def test_revealing_twice_writes_once(home):
    predict("98.p3", guess=8)
    first = reveal("98.p3", 9)
    data = (home / "exercises" / "98.p3.json").read_bytes()
    assert repr(reveal("98.p3", 9)) == repr(first)
    assert (home / "exercises" / "98.p3.json").read_bytes() == data


def test_a_unit_of_the_measurement_may_replace_that_of_the_question():
    assert reveal("98.p3", 0.002, unit="s").sentence == "This machine measured 2.00 ms."


def test_a_guess_that_cannot_be_saved_is_kept_in_memory_with_one_sentence(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file"))
    shown = predict("98.p3", guess=8)
    assert shown.remark.startswith("Not saved, because")
    assert predict("98.p3").guess == "8 conversions"


def test_an_unknown_id_raises_and_lists_those_that_exist():
    with pytest.raises(KeyError) as caught:
        predict("98.p9")
    assert str(caught.value) == (
        "no prediction has the id '98.p9'; known ids: "
        "98.p1, 98.p2, 98.p3, 98.p4, 98.p5, 98.p6 (write them as text)"
    )
    with pytest.raises(KeyError, match="98.p1"):
        reveal("nothing", 1)
    with pytest.raises(KeyError, match=r"no prediction has the id 98\.1"):
        predict(98.1)


def test_malformed_questions_are_refused():
    with pytest.raises(ValueError, match="options must hold at least two outcomes, got 1"):
        Choice(question="?", options={"a": "b"})
    with pytest.raises(ValueError, match=r"a note must go from low to high, got \(2, 1\)"):
        Number(question="?", notes=((2, 1, "x"),))


def places(svg):
    """Return where the measurement's line and the tip of the guess lie."""
    paths = re.findall(r'd="M([\d.]+),', svg)
    return [float(x) for x in paths]


@pytest.mark.parametrize(("guess", "side"), [(10, -1), (1000, 1), (1, -1), (100, 0)])
def test_a_number_is_drawn_on_the_side_on_which_the_guess_lies(guess, side):
    predict("98.p3", guess=guess)
    shown = reveal("98.p3", 100)
    measured, guessed = places(shown.picture)
    assert (guessed > measured) - (guessed < measured) == side
    assert shown.picture in shown.html()
    assert "You guessed" in shown.picture
    assert shown.picture not in shown.text()


def test_equal_factors_are_drawn_equally_far_and_no_label_leaves_the_picture():
    for truth, guess in ((100, 1000), (1e-6, 1e-5), (3e9, 3e10), (1, 1e12)):
        drawn = strip(guess, truth, guess_text="x" * 30, truth_text="y" * 30)
        back = strip(truth, guess, guess_text="x", truth_text="y")
        measured, guessed = places(drawn)
        assert guessed - measured == pytest.approx(230 - places(back)[1] + 0, abs=0.2)
        for x in re.findall(r'<text x="([\d.]+)"', drawn):
            assert 3.4 * 32 <= float(x) <= 460 - 3.4 * 32


def test_choices_counts_and_zeros_have_no_picture():
    predict("98.p1", guess="0.0")
    predict("98.p6", guess=3)
    predict("98.p3", guess=0)
    assert reveal("98.p1", 7.0).picture == ""
    assert reveal("98.p6", 8).picture == ""
    assert reveal("98.p3", 8).picture == ""
    assert reveal("98.p5", 8.0).picture == ""
