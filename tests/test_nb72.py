"""What notebook 72 says about reports, and what its checks accept and refuse."""

import ast
import json
import math
import random

import nbformat
import pytest

from exercises import nb72
from helpers import _report_sample, claims, lab_report
from helpers._paths import ROOT
from helpers.exercises import _catalog
from helpers.exercises._record import ORDER, blank, merge
from helpers.exercises._selftest import judge_source
from tools.kernel import execute

PATH = ROOT / "notebooks" / "72_read_your_lab_report.ipynb"
SCIPY = (
    "from scipy.stats import beta\n\n\n"
    "def interval(k, n):\n    if n == 0:\n        return 0, 1\n"
    "    low = beta.ppf(0.025, k + {a}, n - k + {b}) if k else 0.0\n"
    "    high = beta.ppf(0.975, k + {b}, n - k + {a}) if k < n else 1.0\n"
    "    return low, high\n"
)
RIGHT = [
    pytest.param("72.4", SCIPY.format(a=0, b=1), id="exact"),
    pytest.param("72.4", SCIPY.format(a=0.5, b=0.5), id="Jeffreys"),
    pytest.param(
        "72.4",
        "from scipy.stats import binomtest\n\n\ndef interval(k, n):\n"
        "    if n == 0:\n        return [0.0, 1.0]\n"
        "    found = binomtest(k, n).proportion_ci(method='wilson')\n"
        "    return found.low, found.high\n",
        id="Wilson by scipy",
    ),
    pytest.param(
        "72.4",
        "def interval(k, n):\n    if n == 0:\n        return 0.0, 1.0\n"
        "    p = (k + 2) / (n + 4)\n    half = 1.96 * (p * (1 - p) / (n + 4)) ** 0.5\n"
        "    return max(0.0, p - half), min(1.0, p + half)\n",
        id="Agresti and Coull",
    ),
    pytest.param(
        "72.2",
        "def typical_factor(guesses):\n"
        "    kept = np.array([(g, t) for g, t, late in guesses if not late])\n"
        "    if kept.size == 0:\n        return None\n"
        "    return np.exp(np.median(np.log(kept[:, 0] / kept[:, 1])))\n",
        id="by NumPy",
    ),
    pytest.param(
        "72.2",
        "def typical_factor(guesses):\n"
        "    kept = torch.tensor([g / t for g, t, late in guesses if not late])\n"
        "    return 2 ** kept.log2().quantile(0.5).item() if len(kept) else None\n",
        id="in torch's default dtype",
    ),
    pytest.param(
        "72.1",
        nb72._ORDER_LINE + "def merge(a, b):\n    out = {'checks': dict(a['checks'])}\n"
        "    for kernel, n in b['checks'].items():\n"
        "        if n > out['checks'].get(kernel, -1):\n            out['checks'][kernel] = n\n"
        "    out['best'] = ORDER[max(ORDER.index(a['best']), ORDER.index(b['best']))]\n"
        "    out['passed_at'] = a['passed_at'] if a['passed_at'] is not None else b['passed_at']\n"
        "    if b['passed_at'] is not None:\n"
        "        out['passed_at'] = min(out['passed_at'], b['passed_at'])\n    return out\n",
        id="in a loop",
    ),
    pytest.param(
        "72.3",
        nb72._LISTS + "def public(record):\n    def fits(name):\n"
        "        value, allowed = record.get(name), FIELDS[name]\n"
        "        if type(allowed) is type:\n            return type(value) is allowed\n"
        "        return type(value) is str and value in allowed\n\n"
        "    out = {name: record[name] for name in FIELDS if fits(name)}\n"
        "    return out | {'late': record['measured_at'] < record['guess_at']}\n",
        id="by type alone where no text is",
    ),
]


@pytest.mark.parametrize(("id", "source"), RIGHT)
def test_another_right_answer_passes(id, source):
    verdict = judge_source(id, source)
    assert verdict.status == "passed", verdict.sentence


@pytest.mark.parametrize("id", nb72.EXERCISES)
@pytest.mark.parametrize("value", ["None", "'text'", "[1]", "3.5", "torch.ones(2)", "{}"])
def test_any_other_type_gets_a_sentence(id, value):
    head = f"def {nb72.EXERCISES[id].answer}(*args):\n"
    verdict = judge_source(id, f"import torch\n\n{head}    return {value}\n")
    assert verdict.status == "wrong"
    assert len(verdict.sentence) > 20


def test_the_checks_merge_is_the_one_that_the_course_uses():
    random.seed(3)
    assert nb72._ORDER == ORDER
    for _ in range(200):
        pair = [nb72._draw_record() for _ in range(2)]
        course = merge(*({**blank("13.2", "exercise"), **record} for record in pair))
        assert {name: course[name] for name in nb72._NAMES} == nb72._joined(*pair)


def test_the_lists_in_the_stub_are_those_of_the_check():
    namespace = {}
    exec(nb72._LISTS, namespace)  # noqa: S102 - our own stub
    assert namespace["FIELDS"] == nb72._ALLOWED


def test_no_stored_wrong_answer_of_the_public_record_leaks_what_the_check_overlooks():
    for record in nb72._home_records():
        namespace = {}
        exec(nb72._PUBLIC, namespace)  # noqa: S102 - our own solution
        sent = json.dumps(namespace["public"](record))
        assert not [word for word in ("ada", "clinic", "host", "_at") if word in sent]


def test_an_interval_is_judged_by_its_exact_coverage():
    always = [(0.0, 1.0)] * 6
    assert math.isclose(nb72._covered(always, 0.3), 1.0)
    assert math.isclose(nb72._covered([(0.0, 0.0), (1.0, 1.0)], 0.5), 0.0)
    assert nb72._exact_width(5) == pytest.approx(0.678, abs=1e-3)


def test_the_ledger_has_as_many_statements_as_the_question_says():
    asked = nb72.PREDICTIONS["72.p3"]
    assert asked.among == len(claims.load_ledger())
    assert str(asked.among) in asked.question


@pytest.mark.parametrize("id", ["A1-64", "A2-49", "A2-50"])
def test_a_statement_without_a_quantity_is_refused(id):
    with pytest.raises(ValueError, match="names no quantity, setting or comparison"):
        claims.record(id, ratio=math.pi)
    assert next(c for c in claims.load_ledger() if c.id == id).notebook == 72


@pytest.fixture(scope="module")
def with_records(tmp_path_factory):
    """Return the notebook as a reader with records sees it, and their folder before and after."""
    home = tmp_path_factory.mktemp("home")
    evidence = _report_sample.sample("a reader")
    for folder, records in (("exercises", evidence.records), ("claims", evidence.claims)):
        (home / folder).mkdir()
        for id, record in records.items():
            (home / folder / f"{id}.json").write_text(json.dumps(record))
    before = {path: path.read_bytes() for path in home.rglob("*.json")}
    nb = nbformat.read(PATH, as_version=4)
    execute(nb, PATH.parent, course_home=home)
    return nb, before, {path: path.read_bytes() for path in home.rglob("*.json")}


def shown_by(nb, source):
    """Return the text that the only cell with this line in it shows."""
    (cell,) = [c for c in nb.cells if c.cell_type == "code" and source in c.source]
    return "\n".join(o.get("text") or o.data.get("text/plain", "") for o in cell.outputs)


def test_a_reader_with_records_sees_their_own(with_records):
    nb, _, _ = with_records
    board = shown_by(nb, "report.board.counts()")
    guesses = shown_by(nb, "def typical(factors)")
    assert "Sample" not in board + guesses
    assert "exercises passed" in board
    assert "too few guesses" not in guesses
    assert "\nGuesses\n" in guesses
    assert "A1-28" in shown_by(nb, "report.claims.chart()")
    assert "needs CUDA" in shown_by(nb, "report.claims.chart()")
    assert "Of your user name, host, home and folder it holds 0" in shown_by(nb, ".save(folder)")


@pytest.mark.parametrize(
    "source", ["def typical(factors)", "report.claims.chart()", ".save(folder)"]
)
def test_a_section_can_be_read_after_a_restart_without_those_before(source):
    (text,) = [c.source for c in nbformat.read(PATH, as_version=4).cells if source in c.source]
    assert text.index("lab_report.build()") <= text.index("report.")


@pytest.mark.parametrize(
    ("id", "source", "said"),
    [
        ("72.1", "def merge(a, b):\n    return a | b\n", "take a pass away"),
        ("72.4", "def interval(k, n):\n    return 0.9, 0.5\n", "The first is the lower end"),
        ("72.4", "def interval(k, n):\n    return [0.5]\n", "got 1 in a list."),
        ("72.4", "def interval(k, n):\n    return float('nan'), 1.0\n", "nan is no share"),
    ],
)
def test_a_wrong_answer_is_told_what_is_wrong_with_it_and_nothing_else(id, source, said):
    assert said in judge_source(id, source).sentence


def test_a_reader_sees_what_a_record_looks_like_before_merging_two():
    shape = nb72.EXERCISES["72.1"].stub.partition("# A record: ")[2].partition("\n")[0]
    assert ast.literal_eval(shape).keys() == set(nb72._NAMES)


def test_looking_at_the_report_writes_no_record(with_records):
    _, before, after = with_records
    assert {path: after.get(path) for path in before} == before
    assert {path.name for path in after.keys() - before.keys()} <= {"reader.json"}
    assert not list((ROOT / "notebooks").glob("lab-report*"))


def test_the_counts_add_up_to_the_ids_of_the_course():
    report = lab_report.build(sample=True)
    assert sum(report.board.counts().values()) == len(_catalog.known_ids("EXERCISES"))
    assert sum(report.claims.counts().values()) == len(claims.load_ledger())
    assert report.merged_with(report) == report
