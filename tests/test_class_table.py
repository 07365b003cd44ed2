"""The table of a class: counts that add up, small rows hidden, and nobody's id."""

import copy
import csv
import io
import json
import random
import re

import pytest

from helpers import _report_schema, class_table
from helpers.class_table import CLAIMS, EXERCISES, FEW, PREDICTIONS, build, merge, wilson
from helpers.exercises import Choice, _catalog
from tools import class_table as tool

CLASS = class_table.generated(readers=12)
TABLE = build(CLASS)


def empty(reader):
    lists = {name: [] for name in _report_schema.LISTS}
    return {**CLASS[0], **lists, "reader": reader, "sample": False}


def exercise(id="13.2", best="passed", **fields):
    return {"id": id, "week": "2026-W49", "order": 1, "best": best, "solution": False,
            "checks": 2, "hints": 0, "message": None, "misses": [], **fields}  # fmt: skip


def prediction(id, guess, truth, *, late=False):
    return {"id": id, "week": "2026-W49", "order": 1, "guess": guess, "truth": truth, "late": late}


def claim(values, *, met=True, id="A1-55"):
    return {"id": id, "week": "2026-W49", "order": 1, "values": values, "met": met,
            "verdict": "holds", "fingerprint": "0" * 16, "torch": "2.13.0", "device": "cpu",
            "cores": 4}  # fmt: skip


def readers(*entries, of=None, kind="exercises"):
    """Return one report for each entry, and more readers who did nothing."""
    made = [{**empty(f"{n:08x}"), kind: [entry]} for n, entry in enumerate(entries)]
    return made + [empty(f"{n:08x}") for n in range(len(made), of or len(made))]


def row(table, id="13.2"):
    return dict(zip(EXERCISES, next(r for r in table.exercises if r[0] == id), strict=True))


# Intervals


@pytest.mark.parametrize(
    ("k", "n", "low", "high"), [(5, 5, 57, 100), (15, 20, 53, 89), (0, 5, 0, 43), (0, 0, 0, 100)]
)
def test_the_interval_is_wilsons(k, n, low, high):
    assert [round(100 * end) for end in wilson(k, n)] == [low, high]


def test_the_ends_of_the_interval_are_the_rates_from_which_k_is_just_two_sigma_away():
    for k, n in [(3, 10), (9, 10), (1, 40)]:
        for rate in wilson(k, n):
            assert abs(k / n - rate) == pytest.approx(1.959964 * (rate * (1 - rate) / n) ** 0.5)


def test_the_interval_covers_the_rate_about_as_often_as_it_says():
    rng = random.Random(0)
    hits, tries = 0, 4_000
    for _ in range(tries):
        rate, n = rng.uniform(0.05, 0.95), rng.randint(5, 30)
        low, high = wilson(sum(rng.random() < rate for _ in range(n)), n)
        hits += low <= rate <= high
    assert 0.93 < hits / tries < 0.98


@pytest.mark.parametrize(("k", "n"), [(2, 1), (-1, 3)])
def test_counts_that_cannot_be_are_refused(k, n):
    with pytest.raises(ValueError, match=f"k must be between 0 and n, got k = {k} and n = {n}"):
        wilson(k, n)


# Merging


def test_reports_of_one_reader_count_once_in_any_order_any_number_of_times():
    once = build(CLASS)
    shuffled = [*CLASS, *CLASS[:4], CLASS[0]]
    random.Random(1).shuffle(shuffled)
    assert build(shuffled) == once


def versions(rng):
    """Return a report of one reader at some time."""
    entries = [exercise(id, rng.choice(("wrong", "passed")), checks=rng.randint(1, 5),
                        solution=rng.random() < 0.5, order=rng.randint(1, 9),
                        misses=rng.sample(["detach only"], rng.randint(0, 1)))
               for id in rng.sample(("13.1", "13.2", "13.3"), 2)]  # fmt: skip
    guesses = [prediction("12.p4", float(rng.randint(1, 3)), 2.0)]
    return {**empty("0badcafe"), "exercises": sorted(entries, key=lambda e: e["id"]),
            "predictions": guesses}  # fmt: skip


def test_merging_is_commutative_associative_and_idempotent_and_changes_no_input():
    rng = random.Random(0)
    for _ in range(300):
        a, b, c = (versions(rng) for _ in range(3))
        copies = copy.deepcopy([a, b, c])
        assert merge(a, b) == merge(b, a)
        assert merge(merge(a, b), c) == merge(a, merge(b, c))
        assert merge(a, a) == a
        assert merge(merge(a, b), b) == merge(a, b)
        assert [a, b, c] == copies


def test_merging_takes_no_pass_away_and_keeps_the_first_guess():
    early = {**empty("0badcafe"), "exercises": [exercise(checks=5)],
             "predictions": [prediction("12.p4", 1.0, 2.0)]}  # fmt: skip
    later = copy.deepcopy(early)
    later["exercises"][0].update(best="wrong", checks=2, week="2026-W50")
    later["predictions"][0].update(guess=9.0, week="2026-W50")
    merged = merge(later, early)
    assert (merged["exercises"][0]["best"], merged["exercises"][0]["checks"]) == ("passed", 5)
    assert merged["predictions"][0]["guess"] == 1.0


def test_reports_of_two_readers_are_not_merged():
    with pytest.raises(ValueError, match="reports of two readers are not merged"):
        merge(empty("00000001"), empty("00000002"))


# Exercises


def test_a_row_counts_passed_passed_after_the_solution_tried_and_the_class():
    entries = [exercise(checks=n) for n in (1, 2, 9)]
    entries += [exercise(solution=True), exercise(best="wrong"), exercise(best="not attempted")]
    found = row(build(readers(*entries, of=20)))
    assert [found[name] for name in EXERCISES[1:5]] == ["3", "1", "5", "20"]
    assert found["passed of tried, 95 %"] == "23 to 88 %"
    assert found["checks (median)"] == "2"
    assert found["most frequent wrong answer"] == "none"


def test_all_of_few_and_three_quarters_of_many_are_told_with_the_class():
    few = build(readers(*[exercise()] * 5, of=20))
    many = build(readers(*[exercise()] * 15, *[exercise(best="wrong")] * 5))
    assert [row(few)[name] for name in EXERCISES[1:6]] == ["5", "0", "5", "20", "57 to 100 %"]
    assert [row(many)[name] for name in EXERCISES[1:6]] == ["15", "0", "20", "20", "53 to 89 %"]


def test_the_most_frequent_wrong_answer_is_looked_up_in_the_course():
    first, second = _catalog.find_exercise("13.2").wrong[:2]
    entries = [exercise(misses=[second.name, first.name])] * 2 + [exercise(misses=[second.name])]
    table = build(readers(*entries, *[exercise()] * 4))
    told = row(table)["most frequent wrong answer"]
    assert told == f"3 of 7: {second.name} (told: … {second.says} …)"
    assert table.missed[0][1:] == (3, 7)


def test_a_row_with_fewer_than_five_readers_tells_nothing():
    names = [wrong.name for wrong in _catalog.find_exercise("13.2").wrong]
    table = build(readers(*[exercise(misses=names)] * 4, of=20))
    assert table.exercises == (("13.2", FEW, FEW, FEW, "20", FEW, FEW, FEW),)
    assert table.missed == ()
    assert table.notebooks == ()
    assert build(readers(*[exercise()] * 5, of=20)).exercises[0][1] == "5"


def test_a_class_of_fewer_than_five_shows_not_even_its_size():
    table = build(readers(*[exercise()] * 3, prediction("12.p4", 1.0, 2.0))[:3])
    assert set(table.exercises[0][1:]) == {FEW}
    assert repr(table).startswith("Fewer than 5 readers.")


def test_rows_are_sorted_by_notebook_and_number():
    ids = [found[0] for found in TABLE.exercises]
    assert ids == sorted(ids, key=_catalog.sort_key)
    assert len(set(ids)) == len(ids)


# Predictions


def guess_row(table, id):
    return dict(zip(PREDICTIONS, next(r for r in table.predictions if r[0] == id), strict=True))


def test_a_choice_counts_its_options_and_leaves_late_guesses_out():
    options = list(_catalog.find_prediction("13.p1").options)
    entries = [prediction("13.p1", option, options[1]) for option in options[:2] * 3]
    entries.append(prediction("13.p1", options[0], options[1], late=True))
    found = guess_row(build(readers(*entries, kind="predictions")), "13.p1")
    assert (found["guessed in time"], found["class"]) == ("6", "7")
    assert found["guesses"].startswith(f"{options[0]}: 3; {options[1]}: 3; ")
    assert found["as measured or within 1.5x"] == "3 of 6"


def test_a_number_shows_the_median_factor_between_quartiles():
    entries = [prediction("12.p4", 2.0**n, 1.0) for n in range(-3, 4)]
    found = guess_row(build(readers(*entries, kind="predictions")), "12.p4")
    assert found["guesses"] == "median factor 1, quartiles 0.25 and 4"
    assert found["as measured or within 1.5x"] == "1 of 7"


def test_few_guesses_tell_nothing():
    entries = [prediction("12.p4", 2.0, 1.0)] * 4
    found = build(readers(*entries, of=9, kind="predictions")).predictions
    assert found == (("12.p4", FEW, "9", FEW, FEW),)


# Claims


def claim_row(*entries, of=None):
    rows = build(readers(*entries, of=of, kind="claims")).claims
    return dict(zip(CLAIMS, rows[0], strict=True))


def test_a_claim_counts_the_machines_that_measured_it_and_those_that_meet_the_ledger():
    ratios = [claim({"flop_ratio": n / 10}, met=n < 16) for n in range(13, 18)]
    found = claim_row(*ratios, claim({"flop_ratio": None}, met=None), of=20)
    assert list(found.values())[:4] == ["A1-55", "5", "20", "3 of 5"]
    assert found["numbers"] == "flop_ratio: median 1.5, quartiles 1.35 and 1.65"


def test_a_count_that_is_equal_on_every_machine_is_told_as_such():
    found = claim_row(*[claim({"itemsize": 8, "shared": True}, id="A1-10")] * 5)
    assert found["numbers"] == "itemsize = 8; shared = True"


def test_a_number_that_too_few_machines_have_is_hidden_alone():
    some = [claim({"ratio_small": 2.0, "ratio_large": None}, id="A1-03")] * 5
    one = claim({"ratio_small": 2.0, "ratio_large": 9.0}, id="A1-03")
    assert claim_row(*some, one)["numbers"] == f"ratio_small = 2; ratio_large: {FEW}"


def test_hashes_that_differ_are_counted_and_not_shown():
    hashes = [claim({"flop_ratio": f"{n % 2:016x}"}) for n in range(6)]
    assert claim_row(*hashes)["numbers"] == "flop_ratio: 2 different values"


def test_a_claim_that_few_machines_measured_tells_nothing():
    found = claim_row(*[claim({"flop_ratio": 1.4})] * 4, of=9)
    assert list(found.values()) == ["A1-55", FEW, "9", FEW, FEW]


def test_claims_of_a_generated_class_fit_and_are_sorted():
    ids = [row[0] for row in TABLE.claims]
    assert ids == sorted(ids)
    assert len(ids) == len(CLASS[0]["claims"])
    assert all(len(row) == len(CLAIMS) for row in TABLE.claims)


# What is shown and written


def texts(table):
    return [repr(table), table.html(), table.to_markdown(), table.to_csv(), repr(table.chart())]


def test_no_id_of_a_reader_appears_anywhere():
    marked = [{**report, "reader": f"{0xDEAD0000 + n:08x}"} for n, report in enumerate(CLASS)]
    for text in texts(build(marked)):
        assert "dead00" not in text


def test_a_generated_class_says_so_everywhere_a_sentence_stands():
    assert all(report["sample"] for report in CLASS)
    for text in texts(TABLE)[:3]:
        assert "Generated class, nobody's records." in text
    assert "Generated" not in repr(build(readers(*[exercise()] * 5)))
    assert class_table.generated(12) == CLASS != class_table.generated(12, seed=1)


def test_the_csv_holds_every_table_cell_by_cell():
    rows = list(csv.reader(io.StringIO(TABLE.to_csv())))
    first, second = rows.index(list(PREDICTIONS)), rows.index(list(CLAIMS))
    assert rows[0] == list(EXERCISES)
    assert [tuple(line) for line in rows[1:first]] == list(TABLE.exercises)
    assert [tuple(line) for line in rows[first + 1 : second]] == list(TABLE.predictions)
    assert [tuple(line) for line in rows[second + 1 :]] == list(TABLE.claims)


def test_a_bar_in_a_sentence_does_not_break_the_markdown(monkeypatch):
    table = class_table.ClassTable(9, (("13.2", *["a|b"] * 7),), (), (), (), ())
    line = next(line for line in table.to_markdown().splitlines() if line.startswith("| 13.2"))
    assert len(re.findall(r"(?<!\\)\|", line)) == len(EXERCISES) + 1


def test_the_figure_draws_every_notebook_and_the_most_frequent_wrong_answers():
    chart = TABLE.chart()
    upper, lower = chart.figure.axes
    assert len(upper.get_yticklabels()) == len(TABLE.notebooks)
    assert len(lower.get_yticklabels()) == min(10, len(TABLE.missed))
    chart.figure.canvas.draw()
    assert all(axes.get_position().width > 0.4 for axes in (upper, lower))
    edge = chart.figure.bbox.x1
    assert all(t.get_window_extent().x1 <= edge for a in (upper, lower) for t in (a._left_title,))
    assert "tried, not passed" in chart.columns
    assert len(chart.rows) == len(TABLE.notebooks) + min(10, len(TABLE.missed))
    for _, *counts in TABLE.notebooks:
        assert sum(counts) % TABLE.readers == 0
    assert re.fullmatch(r"\d+ % of the exercises were passed", chart.message)


def test_a_class_too_small_to_show_has_a_figure_that_says_so():
    chart = build(readers(exercise())).chart()
    assert chart.message == "Fewer than 5 readers tried any exercise"
    assert chart.rows == ()
    assert not any(axes.axison for axes in chart.figure.axes)
    assert chart._repr_mimebundle_()[0]["image/png"].startswith(b"\x89PNG")


def test_a_report_outside_the_schema_is_refused_whole():
    with pytest.raises(ValueError, match="unknown: 'name'"):
        build([{**CLASS[0], "name": "Ada"}])


def test_options_and_sentences_of_every_prediction_fit_into_the_table():
    for id in _catalog.known_ids("PREDICTIONS"):
        asked = _catalog.find_prediction(id)
        guess = next(iter(asked.options)) if isinstance(asked, Choice) else 1.0
        entries = [prediction(id, guess, guess)] * 5
        assert guess_row(build(readers(*entries, kind="predictions")), id)["guesses"] != FEW


# The command


@pytest.fixture
def folder(tmp_path):
    for n, report in enumerate(CLASS):
        (tmp_path / f"{n}.json").write_text(json.dumps(report))
    return tmp_path


def run(folder, *names, out="out"):
    return tool.main([*(str(folder / name) for name in names), "--out", str(folder / out)])


def test_the_command_writes_three_files_and_replaces_its_own(folder, capsys):
    names = [f"{n}.json" for n in range(12)]
    for _ in range(2):
        assert run(folder, *names) == 0
        said = "class-table.md class-table.csv class-table.png: 12 reports of 12 readers.\n"
        assert capsys.readouterr().out == said
    assert sorted(p.name for p in (folder / "out").iterdir()) == sorted(tool.FILES)
    assert TABLE.to_markdown() in (folder / "out" / "class-table.md").read_text("utf-8")
    assert (folder / "out" / "class-table.csv").read_text("utf-8") == TABLE.to_csv()


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "expected the JSON of a lab report, got something else"),
        (b'{"name": "Ada"}', "unknown: 'name'"),
        (b"x" * 1_000_001, "a report has at most 1 MB, got 1.0 MB"),
    ],
)
def test_a_refused_file_is_named_with_the_reason_and_the_rest_goes_on(folder, capsys, data, said):
    (folder / "bad.json").write_bytes(data)
    assert run(folder, "0.json", "bad.json", "none.json", "out", "1.json") == 1
    shown = capsys.readouterr()
    assert "2 reports of 2 readers" in shown.out
    lines = shown.err.splitlines()
    assert lines[0].startswith(f"{folder / 'bad.json'}: refused, ")
    assert said in lines[0]
    assert lines[1].endswith("none.json: refused, there is no such file")


def test_one_report_of_one_reader_is_counted_in_the_singular(folder, capsys):
    assert run(folder, "0.json") == 0
    assert capsys.readouterr().out.endswith("class-table.png: 1 report of 1 reader.\n")
    text = (folder / "out" / "class-table.md").read_text("utf-8")
    assert "Fewer than 5 readers. A row with fewer than 5 readers shows <5." in text


def test_a_sample_among_real_reports_is_refused_and_changes_nothing(folder, capsys):
    real = [dict(report, sample=False) for report in CLASS]
    for n, report in enumerate(real[1:], 1):
        (folder / f"{n}.json").write_text(json.dumps(report))
    assert run(folder, *(f"{n}.json" for n in range(12))) == 1
    shown = capsys.readouterr()
    assert "11 reports of 11 readers" in shown.out
    assert "0.json: refused, it is a sample: its reader had recorded nothing there" in shown.err
    assert (folder / "out" / "class-table.csv").read_text("utf-8") == build(real[1:]).to_csv()


def test_names_are_seen_from_where_the_reader_stands(folder, monkeypatch, capsys):
    monkeypatch.setenv("COURSE_CWD", str(folder))
    assert tool.main(["0.json", "1.json"]) == 0
    assert {path.name for path in folder.glob("class-table.*")} == set(tool.FILES)


def test_a_pattern_that_no_shell_expanded_is_expanded(folder, capsys):
    assert run(folder, "?.json", "1.json") == 0
    assert "10 reports of 10 readers" in capsys.readouterr().out


def test_a_folder_is_no_report(folder, capsys):
    (folder / "sub").mkdir()
    assert run(folder, "sub", "0.json") == 1
    assert "sub: refused, expected a file, got something else" in capsys.readouterr().err


def test_without_any_report_there_is_no_table(folder, capsys):
    assert run(folder, "none.json") == 2
    assert "No file was a lab report, so there is no table." in capsys.readouterr().err
    assert not (folder / "out").exists()


@pytest.mark.parametrize("name", tool.FILES)
def test_a_file_that_is_no_class_table_is_never_replaced(folder, capsys, name):
    (folder / "out").mkdir()
    (folder / "out" / name).write_text("mine")
    assert run(folder, "0.json") == 1
    said = f"{name} is there and no class table: move it, or choose another --out."
    assert said in capsys.readouterr().err
    assert [p.read_text() for p in (folder / "out").iterdir()] == ["mine"]


def test_a_folder_that_cannot_be_written_gets_a_sentence(folder, capsys):
    (folder / "out").write_text("")
    assert run(folder, "0.json", out="out/deeper") == 1
    assert "Nothing was saved, because the folder cannot be written." in capsys.readouterr().err


def test_without_arguments_the_command_says_how_it_is_used(capsys):
    with pytest.raises(SystemExit) as ended:
        tool.main([])
    assert ended.value.code == 2
    assert "course.py class" in capsys.readouterr().err
