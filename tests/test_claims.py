"""The ledger: its rows, its expectations, what record accepts, and which notebook records what."""

import ast
import itertools
import json
import random
import re
import runpy
from collections import Counter

import numpy as np
import pytest
import torch

from helpers import claims
from helpers._expression import evaluate, names_in
from helpers._literals import record_calls
from helpers._paths import ROOT

LEDGER = claims.load_ledger()
BY_ID = {claim.id: claim for claim in LEDGER}
MEASURABLE = [claim for claim in LEDGER if claim.evidence in ("cell", "cell-with-cuda")]
# The statements that each notebook owns, by design; notebooks without one are left out.
OWNED = {
    11: 8, 12: 8, 13: 6, 14: 2, 15: 1, 21: 9, 22: 6, 23: 10, 31: 8, 32: 3, 33: 1, 34: 3,
    41: 1, 42: 9, 43: 6, 44: 9, 51: 9, 52: 2, 53: 3, 54: 3, 61: 1, 62: 3, 72: 3,
}  # fmt: skip
NOT_YET = ROOT / "tests" / "claims_not_yet_tested.txt"


@pytest.fixture(autouse=True)
def _empty_record(monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(claims, "_recorded", {})


# The rows


def test_the_ledger_has_114_rows_in_order_with_unique_ids():
    ids = [claim.id for claim in LEDGER]
    expected = [f"A1-{n:02}" for n in range(1, 65)] + [f"A2-{n:02}" for n in range(1, 51)]
    assert ids == expected


def test_each_statement_belongs_to_the_notebook_of_the_design():
    assert Counter(claim.notebook for claim in LEDGER) == OWNED


def test_verdict_evidence_and_environment_come_from_fixed_words():
    assert {claim.verdict for claim in LEDGER} == set(claims.VERDICTS)
    assert {claim.evidence for claim in LEDGER} == set(claims.EVIDENCE)
    environments = {"any", "cuda", "several-cuda", "torchvision"}
    assert {claim.asks_for for claim in LEDGER} == environments


@pytest.mark.parametrize("claim", LEDGER, ids=lambda claim: claim.id)
def test_a_row_is_filled_in_as_its_evidence_demands(claim):
    assert claim.statement.endswith(".")
    assert claim.correct.endswith(".")
    assert bool(claim.expectation) == (claim in MEASURABLE)
    assert bool(claim.reference) == (claim.evidence == "source")
    if claim.evidence == "source":
        assert "accessed 2026-11-30" in claim.reference
    if claim.evidence == "no-claim":
        assert claim.verdict == "unsupported"
    if claim.evidence == "cell-with-cuda":
        assert "cuda" in claim.asks_for


def test_a_source_is_a_neutral_reference_with_a_date():
    sources = {claim.id[:2]: claim.source for claim in LEDGER}
    assert len({claim.source for claim in LEDGER}) == len(sources) == 2
    assert "2025-05-21" in sources["A1"]
    assert "date not stated" in sources["A2"]
    for claim in LEDGER:
        words = re.findall(r"[a-z]+", f"{claim.statement} {claim.correct}".lower())
        assert not {"author", "authors", "invented", "simply", "just", "obviously"} & set(words)


# The expectations


def _numbers(expression):
    """Return values around the constants of an expression: on, between and beyond them."""
    tree = ast.parse(expression, mode="eval")
    constants = sorted({n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)} | {0, 1, 2})
    middles = [(a + b) / 2 for a, b in itertools.pairwise(constants)]
    far = [-constants[-1] - 1, constants[-1] + 1, 3 * constants[-1]]
    return list(dict.fromkeys([*constants, *middles, *far]))


def _samples(expression, limit=20_000):
    names = names_in(expression)
    grid = _numbers(expression)
    if len(grid) ** len(names) <= limit:
        for values in itertools.product(grid, repeat=len(names)):
            yield dict(zip(names, values, strict=True))
        return
    draw = random.Random(expression)
    for _ in range(limit):
        yield {name: draw.choice(grid) for name in names}


def _python(code, values):
    """Decide by Python itself: the independent oracle, for expressions of this repository."""
    try:
        return bool(eval(code, {"__builtins__": {}}, values))
    except ZeroDivisionError:
        return False


class _Split(ast.NodeTransformer):
    """Write a < b < c as a < b and b < c."""

    def visit_Compare(self, node):
        operands = [node.left, *node.comparators]
        pairs = [
            ast.Compare(left=left, ops=[op], comparators=[right])
            for left, op, right in zip(operands, node.ops, operands[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else ast.BoolOp(op=ast.And(), values=pairs)


class _Force(ast.NodeTransformer):
    """Replace the n-th comparison by a constant."""

    def __init__(self, index, value):
        self.index, self.value, self.seen = index, value, -1

    def visit_Compare(self, node):
        self.seen += 1
        if self.seen == self.index:
            return ast.Constant(self.value)
        return self.generic_visit(node)


def _forced(expression, index, value):
    tree = _Split().visit(ast.parse(expression, mode="eval"))
    return ast.fix_missing_locations(_Force(index, value).visit(tree))


def _comparisons(expression):
    tree = _Split().visit(ast.parse(expression, mode="eval"))
    return sum(isinstance(node, ast.Compare) for node in ast.walk(tree))


@pytest.mark.parametrize("claim", MEASURABLE, ids=lambda claim: claim.id)
def test_an_expectation_can_be_met_and_can_be_missed(claim):
    answers = {evaluate(claim.expectation, values) for values in _samples(claim.expectation)}
    assert claim.names
    assert answers == {True, False}


@pytest.mark.parametrize("claim", MEASURABLE, ids=lambda claim: claim.id)
def test_every_comparison_of_an_expectation_can_decide_it(claim):
    whole = compile(claim.expectation, "<expectation>", "eval")
    for index in range(_comparisons(claim.expectation)):
        for value in (True, False):
            other = compile(_forced(claim.expectation, index, value), "<forced>", "eval")
            assert any(
                _python(whole, values) != _python(other, values)
                for values in _samples(claim.expectation)
            ), f"comparison {index} of {claim.id} never matters when it is {value}"


@pytest.mark.parametrize("claim", MEASURABLE, ids=lambda claim: claim.id)
def test_the_evaluator_agrees_with_python(claim):
    tree = compile(claim.expectation, "<expectation>", "eval")
    for values in itertools.islice(_samples(claim.expectation), 500):
        assert evaluate(claim.expectation, values) == _python(tree, values)


@pytest.mark.parametrize(
    ("claim_id", "right", "wrong"),
    [
        ("A1-02", {"small_ratio": 0.3, "matmul_ratio": 0.8},
         [{"small_ratio": 0.9}, {"matmul_ratio": 0.05}, {"matmul_ratio": 6.0}]),
        ("A1-09", {"equal": True, "itemsize": 4}, [{"equal": False}, {"itemsize": 8}]),
        ("A1-10", {"itemsize": 8, "shared": True}, [{"itemsize": 4}, {"shared": False}]),
        ("A1-11", {"shared": 8, "copied": 4}, [{"shared": 7}, {"copied": 5}]),
        ("A1-12", {"values_equal": True, "itemsize": 4}, [{"values_equal": False}, {"itemsize": 8}]),
        ("A1-13", {"raised": 5, "silent": 3}, [{"raised": 3}, {"silent": 0}]),
    ],
)  # fmt: skip
def test_the_claims_of_notebook_13_fail_on_their_wrong_sides(claim_id, right, wrong):
    assert BY_ID[claim_id].notebook == 13
    assert claims.record(claim_id, **right).met is True
    for change in wrong:
        assert claims.record(claim_id, **{**right, **change}).met is False


# The evaluator


@pytest.mark.parametrize(
    ("expression", "values", "expected"),
    [
        ("1 < x < 3", {"x": 2}, True),
        ("1 < x < 3", {"x": 3}, False),
        ("x == 1 or y == 1", {"x": 0, "y": 1}, True),
        ("not x == 1 and y != 2", {"x": 0, "y": 1}, True),
        ("on == (count > 0)", {"on": True, "count": 2}, True),
        ("on == (count > 0)", {"on": True, "count": 0}, False),
        ("-1e-9 < a - b < +1e-9", {"a": 2.0, "b": 2.0}, True),
        ("(a - b) ** 2 / 4 >= 2 * c", {"a": 5, "b": 1, "c": 2}, True),
        ("a == b", {"a": "3f2a", "b": "3f2a"}, True),
        ("a != b", {"a": "cpu", "b": "cuda"}, True),
    ],
)
def test_an_expression_is_decided_as_written(expression, values, expected):
    assert evaluate(expression, values) is expected


@pytest.mark.parametrize("expression", ["x < 1", "x != 1", "not x < 1", "x == x or 1 == 1"])
def test_nan_meets_nothing(expression):
    assert evaluate(expression, {"x": float("nan")}) is False


@pytest.mark.parametrize("expression", ["1 / x > 2", "not 1 / x > 2", "x / x != 1"])
def test_a_division_by_zero_meets_nothing(expression):
    assert evaluate(expression, {"x": 0}) is False


def test_infinity_minus_infinity_meets_nothing():
    assert evaluate("x - x != 3", {"x": float("inf")}) is False


def test_a_complex_power_meets_nothing():
    assert evaluate("x ** 0.5 != 3", {"x": -1}) is False


@pytest.mark.parametrize(
    "expression",
    [
        "abs(x) < 1",
        "x.real < 1",
        "x[0] < 1",
        "x in (1, 2)",
        "x is y",
        "x % 2 == 0",
        "x // 2 == 0",
        "x << 90 > 1",
        "x == 'text'",
        "x == True",
        "(lambda: x) == 1",
        "(x := 1) == 1",
        "[x for x in y] == 1",
        "(x if y else z) == 1",
        "~x == 1",
        "x == 1j",
        "x == __import__('os').getpid()",
    ],
)
def test_an_expression_with_anything_else_is_refused(expression):
    with pytest.raises(ValueError, match="an expectation allows comparisons, and/or/not"):
        names_in(expression)


@pytest.mark.parametrize("expression", ["x", "x + 1", "1", "x and y == 1", "not x"])
def test_an_expression_that_compares_nothing_is_refused(expression):
    with pytest.raises(ValueError, match="an expectation is a comparison, got '"):
        names_in(expression)


@pytest.mark.parametrize("expression", ["x ==", "", "x = 1", "x == 1; y == 1", "import os"])
def test_text_that_is_no_expression_is_refused(expression):
    with pytest.raises(ValueError, match="is no expression .*; write for example"):
        names_in(expression)


@pytest.mark.parametrize("power", ["9 ** 9 ** 9", "x ** 65", "2 ** -65", "(10 ** 60) ** 60"])
def test_huge_powers_are_refused_before_they_are_computed(power):
    with pytest.raises(ValueError, match="powers above 64 are refused, got"):
        evaluate(f"{power} > 1", {"x": 2})


def test_a_long_expression_is_refused():
    with pytest.raises(ValueError, match="at most 300 characters, got 305; measure a combined"):
        names_in("x" * 300 + " == 1")


def test_deep_nesting_is_an_error_and_no_crash():
    assert evaluate("-" * 290 + "x == 1", {"x": 1}) is True
    with pytest.raises(ValueError, match="is no expression"):
        names_in("(" * 145 + "x" + ")" * 145 + " == 1 1")


def test_a_name_without_value_is_named():
    with pytest.raises(ValueError, match="no value for y; got values for x"):
        evaluate("x == y", {"x": 1})


def test_texts_are_not_ordered_and_not_computed_with():
    with pytest.raises(TypeError, match="texts compare by == and != only, got 'a' and 1"):
        evaluate("x < 1", {"x": "a"})
    with pytest.raises(TypeError, match="arithmetic needs numbers, got 'a' and 2"):
        evaluate("x * 2 == 1", {"x": "a"})


# record


def test_an_outcome_shows_status_statement_correction_expectation_and_values():
    values_equal, itemsize = True, torch.ones(5).itemsize
    outcome = claims.record("A1-12", itemsize=itemsize, values_equal=int(values_equal))
    assert repr(outcome) == (
        "A1-12 fails; this machine agrees\n"
        f"  The tutorial says: {BY_ID['A1-12'].statement}\n"
        f"  What is true: {BY_ID['A1-12'].correct}\n"
        "  Our test: values_equal == 1 and itemsize == 4\n"
        "  Measured here: values_equal = 1, itemsize = 4"
    )


def test_a_disagreeing_machine_is_told_so_first():
    values_equal, itemsize = 1, 8
    outcome = claims.record("A1-12", itemsize=itemsize, values_equal=values_equal)
    assert outcome.met is False
    assert repr(outcome).startswith("A1-12: this machine disagrees with the audit\n")


@pytest.mark.parametrize(
    ("claim_id", "values", "status"),
    [
        ("A1-28", {"total": 15}, "A1-28 holds; this machine agrees"),
        ("A1-56", {"ratio_summed": 4.0}, "A1-56 holds partly; this machine agrees"),
        ("A1-42", {"future_warnings": 2}, "A1-42 is outdated; this machine agrees"),
    ],
)
def test_the_verdict_reads_as_a_sentence(claim_id, values, status):
    assert claims.record(claim_id, **values).status == status


def test_what_needs_cuda_says_that_it_was_not_measured():
    ratio_small = ratio_large = None
    outcome = claims.record("A1-03", ratio_small=ratio_small, ratio_large=ratio_large)
    assert outcome.met is None
    assert outcome.status == "A1-03: not measured here: needs CUDA"
    assert outcome.measured == "ratio_small = not measured, ratio_large = not measured"


def test_one_missing_value_leaves_the_claim_unmeasured():
    outcome = claims.record("A1-02", small_ratio=None, matmul_ratio=float(torch.tensor(0.5)))
    assert outcome.status == "A1-02: not measured here"


@pytest.mark.parametrize(
    "value", [15, 15.0, np.int64(15), np.float32(15), np.array(15), torch.tensor(15)]
)
def test_numbers_arrays_and_tensors_without_dimension_are_values(value):
    assert claims.record("A1-28", total=value).met is True


@pytest.mark.parametrize(
    ("value", "kind"),
    [([15], "list"), (torch.ones(1), "Tensor"), (np.ones(2), "ndarray"), (15j, "complex")],
)
def test_a_value_that_is_no_single_number_is_refused(value, kind):
    message = f"A1-28: total must be a single number, got {kind}; pass a count, a ratio or a 0-d"
    with pytest.raises(TypeError, match=message):
        claims.record("A1-28", total=value)


def test_nan_disagrees():
    total = torch.tensor(float("nan"))
    assert claims.record("A1-28", total=total).met is False


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (16_777_217, "16,777,217"),
        (True, "True"),
        (3.14159, "3.14"),
        (0.0123456, "0.0123"),
        (65_536.4, "65,500"),
        (4.0, "4"),
        (1.23456e-9, "1.23e-09"),
        (9.87654e12, "9.88e+12"),
        (0.0, "0"),
        (-268.435, "-268"),
        (float("inf"), "inf"),
        (float("nan"), "nan"),
    ],
)
def test_values_show_three_digits_and_integers_all(value, text):
    assert claims.record("A1-28", total=value).measured == f"total = {text}"


def test_a_long_text_is_cut_for_display_only():
    digest = "0123456789abcdef" * 4
    hashes = dict.fromkeys(BY_ID["A2-44"].names, digest)
    outcome = claims.record("A2-44", **hashes)
    assert outcome.met is True
    assert outcome.measured.startswith("hash_on_1 = 0123456789abcdef…, hash_on_2")
    other = claims.record("A2-44", **{**hashes, "hash_on_4": digest[:-1] + "e"})
    assert other.met is False


def test_missing_and_unknown_names_are_listed():
    matmul_ratio = ratio = 1.5
    with pytest.raises(
        ValueError,
        match="A1-02 expects small_ratio, matmul_ratio; missing: small_ratio; unknown: ratio",
    ):
        claims.record("A1-02", matmul_ratio=matmul_ratio, ratio=ratio)


@pytest.mark.parametrize("claim_id", ["A3-01", "a1-02", "13.p1", None])
def test_an_unknown_id_is_refused(claim_id):
    with pytest.raises(
        ValueError, match="expected an id of the ledger, A1-01 to A2-50, got .*lists them"
    ):
        claims.record(claim_id)


@pytest.mark.parametrize("claim_id", [claim.id for claim in LEDGER if claim.evidence == "no-claim"])
def test_what_nothing_can_decide_is_refused(claim_id):
    with pytest.raises(ValueError, match=f"{claim_id} names no quantity, setting or comparison"):
        claims.record(claim_id)


@pytest.mark.parametrize("claim_id", [claim.id for claim in LEDGER if claim.evidence == "source"])
def test_what_documentation_settles_is_refused_with_its_reference(claim_id):
    with pytest.raises(ValueError, match="is settled by documentation.*accessed 2026-11-30"):
        claims.record(claim_id)


def test_the_html_is_escaped_and_leaves_colors_to_the_theme(monkeypatch):
    fields = {**BY_ID["A2-44"].__dict__, "statement": "<b>&", "correct": "<script>"}
    hashes = dict.fromkeys(BY_ID["A2-44"].names, "<img src=x>")
    outcome = claims.Outcome(claim=claims.Claim(**fields), values=tuple(hashes.items()), met=True)
    html = outcome._repr_html_()
    assert "&lt;b&gt;&amp;" in html
    assert "&lt;img src=x&gt;" in html
    for tag in ("<b>", "<script>", "<img"):
        assert tag not in html
    assert not re.search(r"#[0-9a-fA-F]{3}|rgb|background", html)
    assert html.index("A2-44 holds partly; this machine agrees") < html.index("The tutorial says")


# Literals


@pytest.mark.parametrize(
    "text",
    [
        "15",
        "-1",
        "+1",
        "1e3",
        "True",
        "'15'",
        "3 * 5",
        "-(2 ** 4) + 1",
        "float(15)",
        "int('15')",
        "(15)",
        "not 0",
        "1 == 1",
        "15 if True else 0",
    ],
)
def test_a_literal_is_refused_at_run_time_and_by_the_lint(text, tmp_path):
    source = f"from helpers import claims\n\nclaims.record(\n    'A1-28', total={text}\n)\n"
    path = tmp_path / "cell.py"
    path.write_text(source)
    with pytest.raises(
        ValueError, match=r"A1-28 takes measured values, got the literal total=.*pass the variable"
    ):
        runpy.run_path(path)
    (found,) = claims.literal_arguments(source)
    assert found.startswith("line 3: A1-28 total=")


@pytest.mark.parametrize("text", ["total", "total + 0", "int(total)", "total.item()", "sum(parts)"])
def test_a_measured_value_passes_the_lint_and_the_call(text, tmp_path):
    source = f"from helpers import claims\nout = claims.record('A1-28', total={text})\n"
    path = tmp_path / "cell.py"
    path.write_text(source)
    scope = runpy.run_path(path, {"total": torch.tensor(15), "parts": [7, 8]})
    assert scope["out"].met is True
    assert claims.literal_arguments(source) == []


def test_a_literal_inside_a_dict_is_found_too():
    assert claims.literal_arguments("record('A1-28', **{'total': 15})") == [
        "line 1: A1-28 total=15"
    ]


def test_only_the_call_that_runs_is_judged(tmp_path):
    source = (
        "from helpers import claims\n"
        "first = claims.record('A1-28', total=total); never = lambda: claims.record('A1-28', total=1)\n"
    )
    path = tmp_path / "cell.py"
    path.write_text(source)
    scope = runpy.run_path(path, {"total": 15})
    assert scope["first"].met is True
    with pytest.raises(ValueError, match="got the literal total=1;"):
        scope["never"]()


def test_an_alias_of_record_is_judged_as_well():
    note = claims.record
    with pytest.raises(ValueError, match="got the literal total=15;"):
        note("A1-28", total=15)


def test_without_source_nothing_is_refused():
    scope = {"record": claims.record}
    assert eval("record('A1-28', total=15)", scope).met is True


def test_a_cell_of_a_notebook_is_read_from_where_it_keeps_its_source(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("from helpers import claims\ntotal = 15")
    shell.run_cell("%time total\nout = claims.record('A1-28', total=total)")
    bad = shell.run_cell("x = 'é'; claims.record('A1-28',\n  total=15)")
    assert shell.user_ns["out"].met is True
    assert "got the literal total=15" in str(bad.error_in_exec)
    assert "the literal total=15" in capsys.readouterr().out


def test_the_lint_reads_cells_with_magics_and_ignores_other_functions_named_record():
    cell = (
        "%timeit f()\n!ls\nif True:\n    %time f()\nrecord(history, 5, keep=3)\nx.record('a', n=1)"
    )
    assert claims.literal_arguments(cell) == []


# report


def test_a_report_of_nothing_lists_every_claim_as_missing():
    empty = claims.report()
    assert empty.outcomes == ()
    assert list(empty.missing) == MEASURABLE
    assert len(empty.missing) + len(empty.undecidable) == len(LEDGER)
    assert set(empty.counts().values()) == {0}
    assert f"0 of {len(MEASURABLE)} claims" in repr(empty)


def test_a_report_counts_what_was_recorded_and_the_last_record_wins():
    wrong, total, ratio = 14, 15, None
    claims.record("A1-28", total=wrong)
    assert claims.report().counts()["disagrees"] == 1
    claims.record("A1-28", total=total)
    claims.record("A1-12", values_equal=int(total == 15), itemsize=total)
    claims.record("A1-03", ratio_small=ratio, ratio_large=ratio)
    found = claims.report()
    assert [outcome.claim.id for outcome in found.outcomes] == ["A1-03", "A1-12", "A1-28"]
    counts = {"holds": 1, "disagrees": 1, "not measured here": 1}
    assert found.counts() == {**dict.fromkeys(found.counts(), 0), **counts}
    assert len(found.missing) == len(MEASURABLE) - 3
    lines = repr(found).splitlines()
    assert lines[0] == f"3 of {len(MEASURABLE)} claims that a cell can settle were recorded here"
    assert "  A1-12: this machine disagrees with the audit" in lines
    assert lines[-2].startswith("Not recorded: 11 (8), 12 (7), 13 (5)")


def test_a_report_of_one_notebook_leaves_the_others_out():
    found = claims.report(13)
    assert {claim.notebook for claim in (*found.missing, *(o.claim for o in found.outcomes))} == {
        13
    }
    assert len(found.missing) + len(found.outcomes) == 6
    assert "Settled by" not in repr(found)


def test_a_report_of_a_notebook_without_claims_is_refused():
    with pytest.raises(ValueError, match=r"notebook 99 owns no claim; these own some: 11, 12, 13"):
        claims.report(99)


def test_a_report_shows_itself_twice_without_changing():
    total = 15
    claims.record("A1-28", total=total)
    assert repr(claims.report()) == repr(claims.report())
    assert "A1-28 holds; this machine agrees" in claims.report()._repr_html_()


def test_a_missing_ledger_names_the_repair(monkeypatch, tmp_path):
    monkeypatch.setattr(claims, "ROOT", tmp_path)
    with pytest.raises(FileNotFoundError, match="restore it with git checkout claims.csv"):
        claims.load_ledger.__wrapped__()


# The notebooks


def _cells():
    """Yield notebook number and source of each code cell of the committed notebooks."""
    for path in sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                yield int(path.name[:2]), "".join(cell["source"])


def _records():
    """Return the notebooks that record each claim, as {id: {notebook, ...}}."""
    found = {}
    for notebook, source in _cells():
        if "record(" in source:
            for _, claim_id in record_calls(source):
                found.setdefault(claim_id, set()).add(notebook)
    return found


def test_no_notebook_records_a_typed_number():
    for notebook, source in _cells():
        if "record(" in source:
            assert claims.literal_arguments(source) == [], f"notebook {notebook}"


def test_a_notebook_records_only_claims_that_it_owns():
    for claim_id, notebooks in _records().items():
        assert claim_id in BY_ID, f"{claim_id} in {notebooks}"
        assert notebooks == {BY_ID[claim_id].notebook}, claim_id


def test_a_notebook_passes_the_names_that_the_expectation_wants():
    for _, source in _cells():
        if "record(" in source:
            for call, claim_id in record_calls(source):
                names = {keyword.arg for keyword in call.keywords}
                assert None in names or names == set(BY_ID[claim_id].names), claim_id


def test_every_claim_is_recorded_by_a_notebook_or_listed_as_not_yet_tested():
    """The list names what is still to write; it may only shrink, and its end is an empty file."""
    listed = NOT_YET.read_text(encoding="utf-8").split()
    recorded = _records()
    assert listed == [claim.id for claim in MEASURABLE if claim.id in set(listed)]
    assert not set(listed) & set(recorded), "recorded by now: remove from the list"
    missing = {claim.id for claim in MEASURABLE} - set(recorded) - set(listed)
    assert not missing, "no notebook records these"


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.999999, "0.999999"), (1.0, "1"), (0.5, "0.5"), (2.0000001, "2"), (99.9999, "99.9999"),
     (1.2345, "1.23"), (12345.6, "12,300"), (float("nan"), "nan"), (float("inf"), "inf")],
)  # fmt: skip
def test_a_value_beside_a_limit_is_not_rounded_onto_it(value, text):
    assert claims.show_value(value) == text
