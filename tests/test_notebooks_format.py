"""Every notebook passes every lint of tools/lint_notebooks.py, and every lint can fail."""

import copy

import nbformat
import pytest
from sample_notebooks import code, error, notebook, result, stream, text, write

from tools import colab_cell
from tools import lint_notebooks as lints
from tools import notebooks as tool

NOTEBOOKS = tool.find()
NAME = "99_count_the_bytes"
IGNORED = ["nbval-ignore-output"]


def bootstrap():
    cell = code(colab_cell.cell())
    cell.metadata.update(colab_cell.FOLD)
    return cell


def test_found():
    assert NOTEBOOKS, "no notebook lies in notebooks/"


@pytest.mark.parametrize("check", lints.LINTS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, check):
    assert check(path, nbformat.read(path, as_version=4)) == []


# A notebook in which nothing is to be found, with what comes close to each fault ------------

GOOD = notebook(
    "# Count the bytes\n\nYou know what a tensor weighs.\n\n30 min · CPU, GPU optional · after 11, 12"
    f"\n\n{colab_cell.badge(NAME)}",
    "## The question\n\nOne line stores 24 bytes, the next 48 bytes. Why? See `.data` and `80 GB`.",
    "**What you will do.** Afterwards you are able to\n\n- count bytes (99.1)",
    bootstrap(),
    code("import torch\n\nlimit = 10\nfrom torch.utils.data import DataLoader\nprint(24)", stream("24\n")),
    "Work stops after 10 s. A float32 takes 4 bytes, so six take 6 × 4 bytes = 24 bytes. "
    "The shape is 28 x 28; run it 3 times. All of it is 100 %. Compile just-in-time: see "
    '[Made easy](https://pytorch.org). A page says "just 70 GB". A wire carries 39 GB/s '
    "([measured](https://pytorch.org)); memory holds 12.5 ns (Smith, 2020).\n\n"
    "| size | time |\n|---|---|\n| 1 | $12$ ms `easy` |",
    code("torch.zeros(6).nbytes, '48 bytes', '24 bytes'", result("(24, '48 bytes', '24 bytes')")),
    code("seconds = 3.0\nassert seconds > 2\nseconds", result("3.0"), tags=IGNORED),
    "A long stretch of compared cells follows.",
    *[c for n in range(4) for c in (text(f"Next comes {n}."), code(f"{n} + 1", result(f"{n + 1}")))],
    "It fails:",
    code("1 / 0", error("ZeroDivisionError", "division by zero"), tags=["raises-exception"]),
    "The date 2024-02-29 is data:",
    code("'2024-02-29'", result("'2024-02-29'")),
    "## Exercises\n\n### 99.1 Count (5 min)",
    "## In practice",
    "## What you can do now",
    "## Check yourself",
    "## Next and sources",
)  # fmt: skip
GOOD.metadata.update(colab_cell.GPU)


def faulty(change):
    nb = copy.deepcopy(GOOD)
    change(nb)
    return nb


def says(words, place=9):
    """Put a sentence into the prose cell that stands between compared cells."""
    return lambda nb: nb.cells[place - 1].update(source=words)


def adds(*cells):
    def change(nb):
        nb.cells[9:9] = [*cells, text("Go on.")]

    return change


def shows(*outputs, tags=()):
    return adds(code("x = 1", *outputs, tags=tags))


def runs(source, *tags):
    return adds(code(source, tags=tags))


def folded(source):
    cell = code(source)
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell


def meta(**values):
    return lambda nb: nb.metadata.update(values)


def renames(old, new):
    return lambda nb: nb.cells[0].update(source=nb.cells[0].source.replace(old, new))


def drops(place):
    return lambda nb: nb.cells.pop(place - 1)


def display(**data):
    return nbformat.v4.new_output("display_data", data=data)


# check, what makes it fail, words of the sentence
FAULTS = [
    ("run_in_order", lambda nb: nb.cells[3].update(execution_count=7), "execution counts [7, 2"),
    ("run_in_order", lambda nb: nb.cells[3].update(execution_count=None), "counts [None, 2"),
    ("committed_form", meta(language_info={"name": "python", "version": "3.14"}), "notebooks 99"),
    ("committed_form", lambda nb: nb.cells[3].metadata.update(collapsed=True), "committed form"),
    ("committed_form", lambda nb: nb.metadata.pop("accelerator"), "committed form"),
    ("committed_form", meta(colab={"gpuType": "A100", "provenance": []}), "committed form"),
    ("no_widget_state", meta(widgets={}), "metadata.widgets"),
    ("no_widget_state", shows(display(**{tool.WIDGET_VIEW: {}})), "cell 10 stores a widget view"),
    ("png_figures", shows(display(**{"image/svg+xml": "<svg/>"})), "use PNG"),
    ("no_stderr", shows(stream("old", "stderr")), "capture the warning"),
    ("no_stderr", shows(stream("old", "stderr"), tags=IGNORED), "capture the warning"),
    ("no_untagged_error", shows(error("ValueError", "no")), "without the tag"),
    ("no_untagged_error", shows(tags=["raises-exception"]), "stores no error"),
    ("no_untagged_error",
     shows(error("ValueError", "no"), tags=["raises-exception", *IGNORED]), "nothing at all"),
    ("every_cell_runs", shows(tags=["nbval-skip"]), "every cell runs"),
    ("every_cell_runs", runs("# NBVAL_IGNORE_OUTPUT\nx = 1"), "use a tag"),
    ("every_cell_runs", runs(" "), "is empty"),
    ("few_ignored", shows(stream("1"), tags=IGNORED), "of 2 of 10 cells; 1 are allowed"),
    ("ignored_cells_assert", shows(stream("1"), tags=IGNORED), "asserts nothing"),
    ("ignored_cells_assert", runs("assert True", *IGNORED), "asserts nothing"),
    ("nothing_private", shows(stream("/home/ada/course/x.py")), "a path: '/home/ada/course/x.py'"),
    ("nothing_private", shows(stream("File C:\\Users\\ada")), "a path"),
    ("nothing_private", shows(stream("/lib/site-packages/torch")), "a path"),
    ("nothing_private", shows(stream("Intel(R) Xeon(R) CPU")), "a processor"),
    ("nothing_private", shows(display(**{"text/html": "<b>AMD EPYC</b> 7543"})), "a processor"),
    ("nothing_private", shows(stream("on 2026-01-31")), "a date: '2026-01-31'"),
    ("nothing_private", shows(stream("Jan 31, 2026")), "a date"),
    ("nothing_private", shows(stream("at 12:31:59")), "a time of day"),
    ("small_enough", shows(stream("x" * 600_000)), "600 kB are allowed"),
    ("short_cells", runs("x = 1\n" * 26), "has 26 lines"),
    ("short_cells", adds(code("x = 1\n" * 21), code("x = 2\n" * 21)), "more than 20 lines in cells [10, 11]"),
    ("prose_between_code", adds(code("1"), code("2"), code("3")), "cell 10 to 12 are code"),
    ("title_matches_name", says("# Count bytes", 1), "'Count bytes'"),
    ("title_matches_name", says("# count the bytes", 1), "has the title"),
    ("title_matches_name", says("Count", 1), "found 0"),
    ("title_matches_name", says("# Another title"), "found 2"),
    ("facts_line", says("# Count the bytes\n\n30 min, CPU", 1), "lacks its facts"),
    ("facts_line", says("# Count\n\n30 min · CPU · after 12, 99", 1), "after itself"),
    ("facts_line", says("# Count\n\n30 min · CPU · after some notebooks", 1), "lacks its facts"),
    ("parts_in_order", drops(2), "the question is missing"),
    ("parts_in_order", drops(3), "able to do is missing"),
    ("parts_in_order", lambda nb: nb.cells.append(nb.cells.pop(-4)), "What you can do now stands too early"),
    ("starts_on_colab", says("# Count the bytes", 1), "needs its badge in the first cell: [![Open"),
    ("starts_on_colab", renames("blob/v", "blob/main/v"), "needs its badge"),
    ("starts_on_colab", renames("99_count_the_bytes.ipynb", "98_count.ipynb"), "needs its badge"),
    ("starts_on_colab", drops(4), "needs the cell of tools/colab_cell.py, once"),
    ("starts_on_colab", lambda nb: nb.cells.insert(3, code("x = 1")), "as its first code"),
    ("starts_on_colab", lambda nb: nb.cells.insert(3, bootstrap()), "once, as its first code"),
    ("starts_on_colab", lambda nb: nb.cells[3].update(source="'google.colab'"), "needs the cell"),
    ("starts_on_colab", lambda nb: nb.cells[3].metadata.pop("cellView"), "cell 4 must be folded"),
    ("starts_on_colab", lambda nb: nb.cells[3].metadata.pop("jupyter"), "cell 4 must be folded"),
    ("plain_words", says("You simply run it."), "says 'simply'"),
    ("plain_words", says("Of course, it is JUST as Easy."), "says 'easy'"),
    ("plain_words", says("It runs blazingly fast."), "says 'blazingly'"),
    ("plain_words", says("Done \U0001f389"), "emoji"),
    ("one_word_for_each_idea", says("Sum along an axis."), "says 'axis'; the glossary's word is"),
    ("one_word_for_each_idea", says("Two Minibatches."), "glossary's word is 'batch'"),
    ("plain_words", runs("print('\u2705')"), "emoji"),
    ("current_api", runs("w.data[0] = 1"), "uses .data"),
    ("current_api", runs("model.weight.data.zero_()"), "uses .data"),
    ("current_api", runs("model.cuda()"), "use .to(device)"),
    ("current_api", runs("torch.cuda.amp.GradScaler()"), "torch.cuda.amp, which"),
    ("current_api", runs("from torch.cuda.amp import autocast"), "deprecated"),
    ("current_api", runs("from torch import jit"), "torch.jit, which is deprecated"),
    ("current_api", runs("torch.jit.script(f)"), "deprecated"),
    ("current_api", runs("torch.utils.checkpoint.checkpoint(f, x)"), "use_reentrant"),
    ("current_api", runs("from torch.utils.checkpoint import checkpoint as c\nc(f, x)"), "c(...)"),
    ("current_api", runs("%time torch\ntorch.load(f, weights_only=False)"), "runs code"),
    ("numbers_have_an_origin", says("It takes 7 ms here."), "says '7 ms'"),
    ("numbers_have_an_origin", says("It is 3.5x as fast."), "says '3.5x'"),
    ("numbers_have_an_origin", says("It is 5 times faster."), "says '5 times'"),
    ("numbers_have_an_origin", says("It saves 40 % of it."), "says '40 %'"),
    ("numbers_have_an_origin", says("- one\n- it holds 1,024.5 MiB"), "says '1,024.5 MiB'"),
    ("numbers_have_an_origin", says("| a | 124 bytes |"), "says '124 bytes'"),
    ("binary_sizes", says("It needs 16 GB."), "'6 GB'"),
    ("binary_sizes", says("It moves 3 GiB/s."), "'3 GiB/s'"),
]  # fmt: skip

# What must not be found: check, change
HARMLESS = [
    ("few_ignored", shows(tags=IGNORED)),  # an ignored cell without outputs
    ("current_api", runs("w.data[0] = 1", "teaches-old-api")),
    ("current_api", runs("masked = np.ma.array([1])\nmasked.data")),
    (
        "current_api",
        runs("from helpers import data\ndata.load_digits()\nhelpers.data.load_digits()"),
    ),
    ("current_api", runs("checkpoint(f, x, use_reentrant=False)\nsaver.checkpoint(f)")),
    (
        "current_api",
        runs("from torch.utils.checkpoint import checkpoint\ncheckpoint(f, **options)"),
    ),
    ("current_api", runs("torch.cuda.is_available()\ntorch.load(f, weights_only=True)")),
    ("current_api", runs("%%writefile x.py\ntorch.jit.script(f)")),
    ("current_api", runs("this is no Python")),
    ("numbers_have_an_origin", says("It takes 7 ms. <!-- numbers: 7 ms: the question -->")),
    ("numbers_have_an_origin", says("Numbers as 13.2, 2x2, 0x7f, 1980s, 4 GPUs, 5 min and 3×3.")),
    ("numbers_have_an_origin", says("It is 2 to 16 bits wide, or 64 bits, and 0 % is lost.")),
    ("numbers_have_an_origin", says("125 × 8 bytes = 1,000 bytes")),
    ("one_word_for_each_idea", says("A step, `axis=0`, “the axis”, a relaxis, [axis](a.html).")),
    ("plain_words", says("An adjustment is justified; the easel is simple; ease comes later.")),
    ("nothing_private", shows(stream("ratio 3/4, and/or, 24 MiB/s, 1:30, torch/nn/functional"))),
    ("prose_between_code", adds(code("1"), code("2"))),
    ("prose_between_code", adds(code("1"), code("2"), code('predict("99.p1")'), code("3"))),
    ("prose_between_code", adds(code("1"), code("2"), folded("3"))),
    ("facts_line", says("# Count\n\n30 min · CPU · after any five notebooks", 1)),
    ("short_cells", runs("x = 1\n" * 25)),
    ("title_matches_name", says("```\n# a comment\n```")),
]


def findings(check, nb, tmp_path):
    path = write(tmp_path / f"{NAME}.ipynb", nb)
    return getattr(lints, check)(path, nb)


def test_the_good_notebook_passes_every_lint(tmp_path):
    path = write(tmp_path / f"{NAME}.ipynb", GOOD)
    assert lints.lint(path) == []


@pytest.mark.parametrize(("check", "change", "words"), FAULTS)
def test_a_fault_is_found_and_named(tmp_path, check, change, words):
    found = findings(check, faulty(change), tmp_path)
    assert any(words in finding for finding in found), found


@pytest.mark.parametrize(("check", "change"), HARMLESS)
def test_what_only_looks_like_a_fault_is_not_found(tmp_path, check, change):
    assert findings(check, faulty(change), tmp_path) == []


def test_every_lint_can_fail_and_says_why_it_exists():
    assert {check.__name__ for check in lints.LINTS} == {check for check, _, _ in FAULTS}
    assert [check.__name__ for check in lints.LINTS if "Why: " not in check.__doc__] == []


def test_measuring_notebooks_may_ignore_more(tmp_path):
    nb = faulty(shows(stream("1"), tags=IGNORED))
    assert lints.few_ignored(tmp_path / "22_measure_a_speedup.ipynb", nb) == []


def test_the_entrance_and_the_report_are_free_in_form(tmp_path):
    assert lints.parts_in_order(tmp_path / "00_start_here.ipynb", notebook("# Start here")) == []


@pytest.mark.parametrize("name", ["9_count_the_bytes", "99_Count", "99-count", "99_"])
def test_a_file_that_is_not_named_as_a_notebook_is_found(tmp_path, name):
    assert "is no name of a notebook" in lints.title_matches_name(tmp_path / name, GOOD)[0]
