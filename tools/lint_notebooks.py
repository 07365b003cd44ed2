"""Check what neither nbval nor ruff can see in a notebook. Each check returns sentences.

A check is a function ``check(path, nb)`` that returns a list of findings, empty when all
is well. Cells are counted from 1 over all cells, as ruff counts them.

Where a check cannot know better, the notebook can say so:

- the tag ``teaches-old-api`` on a code cell whose subject is an API that we do not use;
- a comment in a Markdown cell that readers do not see, which lists numbers that stand
  there without a cell behind them, and why:
  ``<!-- numbers: 12 ms, 3 ms: the question, measured again by the next cell -->``.
"""

import ast
import getpass
import re
import socket
from functools import cache
from html import unescape
from pathlib import Path

import nbformat

from helpers import glossary
from helpers._paths import ROOT
from tools import colab_cell

IGNORE, RAISES, OLD_API = "nbval-ignore-output", "raises-exception", "teaches-old-api"
# These measure seconds in nearly every cell.
MEASURING = ("22", "23", "53", "61", "63", "64", "71", "72")
# The entrance and the report answer to their own plan.
FREE_FORM = ("00", "72")
MAX_IGNORED = 0.15
GOOD_LINES, MAX_LINES = 20, 25
MAX_BYTES = 600_000


# Reading a notebook ------------------------------------------------------------------


def _cells(nb, kind):
    return [(n, cell) for n, cell in enumerate(nb.cells, 1) if cell.cell_type == kind]


def _tags(cell):
    return set(cell.metadata.get("tags", []))


def _where(path, number):
    return f"{Path(path).stem}, cell {number}"


def _python(source):
    """Return the source without IPython's own syntax; nothing for a cell magic."""
    if source.lstrip().startswith("%%"):
        return ""
    return re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE)


def _tree(cell):
    try:
        return ast.parse(_python(cell.source))
    except SyntaxError:  # a cell that shows a syntax error on purpose
        return ast.Module(body=[], type_ignores=[])


def _dotted(node):
    """Spell out ``a.b.c``; the empty string for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = _dotted(node.value)
        return f"{left}.{node.attr}" if left else ""
    return ""


def _output_text(cell):
    """Return all text that a cell's outputs show, tags of HTML removed."""
    parts = []
    for output in cell.get("outputs", []):
        if output.output_type == "stream":
            parts.append(output.text)
        elif output.output_type == "error":
            parts.append(f"{output.ename}: {output.evalue}")
        else:
            for mime, value in output.data.items():
                if mime == "text/html":
                    parts.append(unescape(re.sub(r"<[^>]+>", " ", value)))
                elif mime.startswith("text/"):
                    parts.append(value)
    return "\n".join(parts)


def _prose(source):
    """Return Markdown without code, formulas, addresses, comments and tags of HTML."""
    source = re.sub(r"<!--.*?-->", " ", source, flags=re.DOTALL)
    source = re.sub(r"^(```|~~~).*?^\1", " ", source, flags=re.DOTALL | re.MULTILINE)
    source = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", " code ", source, flags=re.DOTALL)
    source = re.sub(r"\$\$.*?\$\$|\$[^$\n]+\$", " formula ", source, flags=re.DOTALL)
    source = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"[\1]", source)
    return re.sub(r"</?[A-Za-z][^>]*>|https?://\S+", " ", source)


def _own_words(source):
    """Return the prose without titles of linked works and quotations."""
    prose = re.sub(r"\[[^\]]*\]", " ", _prose(source))
    prose = re.sub(r"^\s*>.*$", " ", prose, flags=re.MULTILINE)
    return re.sub(r"“[^”]*”|\"[^\"\n]*\"", " ", prose)


# Executed, compared, canonical ---------------------------------------------------------


def run_in_order(path, nb):
    """Find cells that were not run from top to bottom.

    Why: nbval compares nothing in a cell that has no execution count, and passes.
    """
    counts = [cell.execution_count for _, cell in _cells(nb, "code")]
    if counts == list(range(1, len(counts) + 1)):
        return []
    return [f"{Path(path).stem} was not run from top to bottom: execution counts {counts}"]


def committed_form(path, nb):
    """Find a file that is not in the form in which `course.py notebooks` writes it.

    Why: front ends add metadata and reorder keys; a diff would then hide what changed.
    """
    from tools.notebooks import is_canonical

    if is_canonical(path):
        return []
    stem = Path(path).stem
    return [f"{stem} is not in the committed form; run: python3 course.py notebooks {stem[:2]}"]


def no_widget_state(path, nb):
    """Find saved widgets.

    Why: their ids are random, their state weighs 10 kB a widget, and GitHub shows none.
    """
    found = []
    if "widgets" in nb.metadata:
        found.append(f"{Path(path).stem} holds metadata.widgets; drop it")
    for number, cell in _cells(nb, "code"):
        if any(
            "jupyter.widget-view" in mime for out in cell.outputs for mime in out.get("data", {})
        ):
            found.append(f"{_where(path, number)} stores a widget view; drop it")
    return found


def png_figures(path, nb):
    """Find SVG figures.

    Why: matplotlib writes random ids and the date into an SVG, and nbval compares it; it
    skips PNG. Drawings that we render ourselves are shown as HTML.
    """
    return [
        f"{_where(path, number)} stores a figure as SVG; use PNG"
        for number, cell in _cells(nb, "code")
        if any("image/svg+xml" in out.get("data", {}) for out in cell.outputs)
    ]


def no_stderr(path, nb):
    """Find stored output on stderr.

    Why: warnings hold paths, and most appear once per process, so that they come and go
    with the order of cells. Capture the warning and show its text.
    """
    return [
        f"{_where(path, number)} stores stderr; capture the warning and show its text"
        for number, cell in _cells(nb, "code")
        if any(out.get("name") == "stderr" for out in cell.outputs)
    ]


def no_untagged_error(path, nb):
    """Find errors in cells that are not meant to raise, and tags of cells that do not.

    Why: a cell tagged raises-exception that no longer raises passes in a lax run.
    """
    found = []
    for number, cell in _cells(nb, "code"):
        raised = any(out.output_type == "error" for out in cell.outputs)
        if raised and RAISES not in _tags(cell):
            found.append(f"{_where(path, number)} stores an error without the tag {RAISES}")
        if RAISES in _tags(cell) and not raised:
            found.append(f"{_where(path, number)} has the tag {RAISES} and stores no error")
        if {RAISES, IGNORE} <= _tags(cell):
            found.append(f"{_where(path, number)} is tagged {RAISES} and {IGNORE}: "
                         "then nothing at all is checked")  # fmt: skip
    return found


def every_cell_runs(path, nb):
    """Find cells that nbval would leave out, and markers in comments.

    Why: a cell that is not executed proves nothing. Tags stay out of the reader's sight,
    comments do not, and a comment silently wins over a tag.
    """
    found = []
    for number, cell in _cells(nb, "code"):
        if "nbval-skip" in _tags(cell):
            found.append(f"{_where(path, number)} is tagged nbval-skip; every cell runs")
        if re.search(r"^\s*#+\s*(NBVAL|PYTEST_VALIDATE)_", cell.source, re.MULTILINE):
            found.append(f"{_where(path, number)} holds an nbval marker in a comment; use a tag")
        if not cell.source.strip():
            found.append(f"{_where(path, number)} is empty; remove it")
    return found


def few_ignored(path, nb):
    """Find notebooks that compare too little.

    Why: outputs that nobody compares go stale. At most 15 % of the cells with outputs may
    be left uncompared, in the notebooks whose subject is not time itself.
    """
    stem = Path(path).stem
    shown = [cell for _, cell in _cells(nb, "code") if cell.outputs]
    ignored = sum(IGNORE in _tags(cell) for cell in shown)
    allowed = int(MAX_IGNORED * len(shown))
    if stem.startswith(MEASURING) or ignored <= allowed:
        return []
    return [f"{stem} ignores the outputs of {ignored} of {len(shown)} cells; {allowed} are allowed"]


def ignored_cells_assert(path, nb):
    """Find measured cells that check nothing.

    Why: an output that is not compared must be held by a statement about its values, in
    the same cell, so that both move together. A constant such as True is no statement.
    """
    found = []
    for number, cell in _cells(nb, "code"):
        asserts = [node.test for node in ast.walk(_tree(cell)) if isinstance(node, ast.Assert)]
        checked = any(isinstance(n, ast.Name) for test in asserts for n in ast.walk(test))
        if IGNORE in _tags(cell) and not checked:
            found.append(f"{_where(path, number)} is tagged {IGNORE} and asserts nothing "
                         "about a value")  # fmt: skip
    return found


def nothing_private(path, nb):
    """Find the host, user, folders, processor or date of the author's machine in outputs.

    Why: they differ on every machine, and they are nobody's business. What the notebook's
    own source spells out, such as a date used as data, is no finding.
    """
    sources = "\n".join(cell.source for cell in nb.cells)
    found = []
    for number, cell in _cells(nb, "code"):
        text = _output_text(cell)
        for what, pattern in _private_patterns():
            hits = [hit.group() for hit in re.finditer(pattern, text)]
            hit = next((hit for hit in hits if hit not in sources), None)
            if hit:
                found.append(f"{_where(path, number)} shows {what}: {hit!r}")
    return found


def _private_patterns():
    month = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
    patterns = [
        ("a path", r"(?<![\w/])/(?:home|Users|root|tmp|opt|usr|var|private|mnt|work)/[\w.\-/]+"),
        ("a path", r"\b[A-Z]:\\\w[\w\\.\-]*"),
        ("a path", r"[\w.\-/]*(?:site-packages|ipykernel_\d+)[\w.\-/]*"),
        ("a path", re.escape(str(ROOT))),
        (
            "a processor",
            r"\bIntel\(R\)[^\n]*|\bXeon\b|\bEPYC\b|\bRyzen\b|\bCore\(TM\)|\bApple M\d\b",
        ),
        ("a date", r"\b20[2-9]\d-[01]\d-[0-3]\d\b"),
        ("a date", rf"\b(?:{month} \d{{1,2}},? |\d{{1,2}} {month} )20[2-9]\d\b"),
        ("a time of day", r"\b[0-2]\d:[0-5]\d:[0-5]\d\b"),
    ]
    host = socket.gethostname()
    if len(host) > 3 and host != "localhost":
        patterns.append(("the host's name", rf"\b{re.escape(host)}\b"))
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such entry: a container's bare user id
        user = ""
    if user not in {"", "root", "user", "runner", "vscode", "jovyan", "ubuntu"} and len(user) > 3:
        patterns.append(("the user's name", rf"\b{re.escape(user)}\b"))
    return patterns


def small_enough(path, nb):
    """Find files above 600 kB.

    Why: GitHub stops showing large notebooks, and every version stays in the clone.
    """
    size = Path(path).stat().st_size
    if size <= MAX_BYTES:
        return []
    return [f"{Path(path).stem} has {size / 1000:,.0f} kB; 600 kB are allowed"]


# Form --------------------------------------------------------------------------------


def short_cells(path, nb):
    """Find code that needs scrolling.

    Why: a cell holds one idea. More than 25 lines are never allowed; 21 to 25 in at most
    one cell of ten.
    """
    lengths = [(n, len(cell.source.splitlines())) for n, cell in _cells(nb, "code")]
    found = [
        f"{_where(path, n)} has {lines} lines; {MAX_LINES} is the limit, {GOOD_LINES} the aim"
        for n, lines in lengths
        if lines > MAX_LINES
    ]
    long = [n for n, lines in lengths if GOOD_LINES < lines <= MAX_LINES]
    if len(long) > max(1, len(lengths) // 10):
        found.append(f"{Path(path).stem} has more than {GOOD_LINES} lines in cells {long}; "
                     "one in ten is allowed")  # fmt: skip
    return found


def prose_between_code(path, nb):
    """Find three code cells in a row.

    Why: a reader who meets a third cell without a word no longer knows the question. A
    prediction counts as prose, because it shows its question; a cell whose source is folded
    away does not count at all.
    """
    seen = [(n, cell) for n, cell in enumerate(nb.cells, 1) if not _is_folded(cell)]
    is_code = [cell.cell_type == "code" and not _is_question(cell) for _, cell in seen]
    return [
        f"{_where(path, seen[i][0])} to {seen[i + 2][0]} are code without prose between them"
        for i in range(len(seen) - 2)
        if all(is_code[i : i + 3]) and not (i and is_code[i - 1])
    ]


def _is_folded(cell):
    return cell.metadata.get("jupyter", {}).get("source_hidden", False)


def _is_question(cell):
    return bool(re.fullmatch(r"predict\([^\n]*\)", cell.source.strip()))


def title_matches_name(path, nb):
    """Find a title that is not the file's name in sentence case.

    Why: readers look for a notebook under both names. Example: `# Share memory with NumPy`
    is 13_share_memory_with_numpy.
    """
    stem = Path(path).stem
    titles = [
        (n, title)
        for n, cell in _cells(nb, "markdown")
        for title in re.findall(r"^# +(.+?)\s*$", re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL), re.MULTILINE)
    ]  # fmt: skip
    if not re.fullmatch(r"\d\d_[a-z0-9]+(_[a-z0-9]+)*", stem):
        return [f"{stem} is no name of a notebook; use two digits, then words, with _ between"]
    if [n for n, _ in titles] != [1]:
        return [f"{stem} needs one title (# ...), in its first cell; found {len(titles)}"]
    title = titles[0][1]
    slug = re.sub(r"[^a-z0-9]+", "_", title.replace("'", "").replace("’", "").lower()).strip("_")
    if slug == stem[3:] and title[0].isupper():
        return []
    return [f"{stem} has the title {title!r}, which would belong to {stem[:3]}{slug}"]


FACTS = re.compile(
    r"^(\d+) min · CPU(?:, (?:GPU|GPUs) optional)? · after (nothing|any five notebooks|\d\d(?:, \d\d)*)\s*$",
    re.MULTILINE,
)


def facts_line(path, nb):
    """Find a first cell without its facts.

    Why: time, device and what comes before decide whether a reader starts today. The line
    reads `30 min · CPU, GPU optional · after 11, 12`, or ends in `after nothing` or, as 72
    does, in `after any five notebooks`.
    """
    stem = Path(path).stem
    first = nb.cells[0].source if nb.cells else ""
    facts = FACTS.search(first)
    if not facts:
        example = "30 min · CPU, GPU optional · after 11, 12"
        return [f"{stem} lacks its facts in the first cell; an example: {example}"]
    if stem[:2] in facts[2]:
        return [f"{stem} says that it comes after itself"]
    return []


def _heading(pattern):
    """Match a heading, or a line that opens in bold."""
    return re.compile(rf"^(?:#{{2,6}} |\*\*)[^\n]*?(?:{pattern})", re.MULTILINE | re.IGNORECASE)


SETUP = re.compile(r"\b(?:use_style|describe_machine)\(|^import torch\b", re.MULTILINE)
PARTS = (  # in order: name, cell type, pattern
    (
        "the question",
        "markdown",
        re.compile(r"^(?:#{2,6} |\*\*)[^\n]*(?:question|\?)", re.MULTILINE | re.IGNORECASE),
    ),
    ("what you will be able to do", "markdown", re.compile(r"\bable to\b", re.IGNORECASE)),
    ("the setup cell", "code", SETUP),
    ("the exercises", "markdown", _heading(r"exercises?\b|try it yourself|your turn")),
    ("In practice", "markdown", _heading("in practice")),
    ("What you can do now", "markdown", _heading("what you can do now")),
    ("Check yourself", "markdown", _heading("check yourself")),
    ("Sources", "markdown", _heading("sources")),
)


def parts_in_order(path, nb):
    """Find a missing part, or parts in another order.

    Why: a reader who knows one notebook finds the way in all of them. A part is matched by
    words in a heading (any level below the title) or in a line that opens in bold, in any
    case; the question also by a heading that ends in a question mark; the promise by the
    words "able to"; the setup cell by use_style, describe_machine or import torch. Parts
    may share a cell. 00 and 72 are free in form.
    """
    stem = Path(path).stem
    if stem.startswith(FREE_FORM):
        return []
    here = (0, 0)  # cell, offset
    for name, kind, pattern in PARTS:
        hits = [
            (n, hit.start())
            for n, cell in _cells(nb, kind)
            for hit in pattern.finditer(cell.source)
        ]
        after = [hit for hit in hits if hit > here]
        if not after:
            why = "stands too early" if hits else "is missing"
            return [f"{stem}: {name} {why}; the order is {', '.join(p[0] for p in PARTS)}"]
        here = after[0]
    return []


def starts_on_colab(path, nb):
    """Find a notebook whose start on Colab is not that of all the others.

    Why: the badge opens one release, the first cell fetches it, and both must be the same.
    The first code cell is the one of tools/colab_cell.py, folded for JupyterLab and for Colab.
    """
    stem = Path(path).stem
    found = []
    badges = re.findall(r"\[!\[Open In Colab\].*", nb.cells[0].source if nb.cells else "")
    if badges != [colab_cell.badge(stem)]:
        found.append(f"{stem} needs its badge in the first cell: {colab_cell.badge(stem)}")
    codes = _cells(nb, "code")
    own = [(n, cell) for n, cell in codes if colab_cell.MARK in cell.source]
    if [cell.source for _, cell in own] != [colab_cell.cell()] or own[0] != codes[0]:
        return [*found, f"{stem} needs the cell of tools/colab_cell.py, once, as its first code"]
    if own[0][1].metadata != colab_cell.FOLD:
        found.append(f"{_where(path, own[0][0])} must be folded: {colab_cell.FOLD}")
    return found


# Words -------------------------------------------------------------------------------

BANNED = (
    "simply", "just", "obviously", "easy", "easily", "easier", "easiest", "trivial",
    "trivially", "of course", "needless to say",
    "amazing", "awesome", "blazing", "blazingly", "cutting-edge", "effortless",
    "effortlessly", "game-changer", "game-changing", "incredible", "incredibly",
    "revolutionary", "seamless", "seamlessly", "supercharge", "unleash", "world-class",
)  # fmt: skip
BANNED_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(BANNED)})(?![\w-])", re.IGNORECASE)
EMOJI = re.compile("[\U0001f000-\U0001faff\u2600-\u26ff\u2705\u2728\u274c\u2728\u2b50\ufe0f]")


def plain_words(path, nb):
    """Find words that belittle the reader's effort, hype, and emoji.

    Why: what is easy for the author is where the reader is stuck. Code, quotations, titles
    of linked works and compounds such as just-in-time are no findings.
    """
    found = []
    for number, cell in enumerate(nb.cells, 1):
        if cell.cell_type == "markdown":
            found += [f"{_where(path, number)} {says}" for says in plain_text(cell.source)]
        elif EMOJI.search(cell.source):
            found.append(f"{_where(path, number)} holds an emoji")
    return found


def one_word_for_each_idea(path, nb):
    """Find words for which the glossary has another one.

    Why: a reader who meets a second word looks for a second thing. A word in parentheses in the
    glossary's last column has other meanings too, so it is no finding; neither are quotations,
    code and titles of linked works.
    """
    return [
        f"{_where(path, number)} says {word!r}; the glossary's word is {term!r}"
        for number, cell in enumerate(nb.cells, 1)
        if cell.cell_type == "markdown"
        for word, term in other_words(cell.source)
    ]


def other_words(text):
    """Return (word, term) for each word in a text that the glossary replaces by a term."""
    own = _own_words(text)
    return [
        (hit.group(), term)
        for word, term in _replaced()
        for hit in re.finditer(rf"(?<![\w-]){re.escape(word)}(?:e?s)?(?![\w-])", own, re.IGNORECASE)
    ]


@cache
def _replaced():
    listed = re.compile(r"(?:^|,)\s*([^,()]+?)\s*(?=,|$)")
    return [(word, term.name) for term in glossary.load() for word in listed.findall(term.not_said)]


def plain_text(text):
    """Return what a text says that a reader of the course should not meet."""
    words = sorted({hit.group().lower() for hit in BANNED_WORD.finditer(_own_words(text))})
    found = [f"says {word!r}; leave it out" for word in words]
    return found + ["holds an emoji"] * bool(EMOJI.search(_own_words(text)))


# Code --------------------------------------------------------------------------------


def current_api(path, nb):
    """Find calls that we do not teach.

    Why: readers copy what they see. `.data` and `.cuda()` hide errors and machines,
    torch.cuda.amp and torch.jit are deprecated, checkpoint without use_reentrant takes the
    variant that torch will drop, and weights_only=False runs code from the file. The tag
    teaches-old-api allows it where it is the subject. `.data` of arrays that the notebook
    itself makes with NumPy or scikit-learn is no finding.
    """
    trees = [(n, cell, _tree(cell)) for n, cell in _cells(nb, "code")]
    arrays = {name for _, _, tree in trees for name in _array_names(tree)}
    checkpoints = {name for _, _, tree in trees for name in _checkpoint_names(tree)}
    return [
        f"{_where(path, n)} uses {what}"
        for n, cell, tree in trees
        if OLD_API not in _tags(cell)
        for what in dict.fromkeys(_old_api(tree, arrays, checkpoints))
    ]


def _array_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made_by = _dotted(node.value.func)
            if re.match(r"(np|numpy|sklearn|memoryview|load_\w+|pd)\b", made_by):
                yield from (target.id for target in node.targets if isinstance(target, ast.Name))


def _checkpoint_names(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "torch.utils.checkpoint":
            yield from (alias.asname or alias.name for alias in node.names)


OLD_MODULES = re.compile(r"torch\.(?:cuda\.amp|jit)(?:\.|$)")


def _old_api(tree, arrays, checkpoints):
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = _dotted(node.value)
            modules = {"utils", "torch.utils", "helpers"}
            if node.attr == "data" and owner not in modules | arrays:
                yield ".data; use detach() or torch.no_grad()"
            if OLD_MODULES.fullmatch(_dotted(node)):
                yield f"{_dotted(node)}, which is deprecated"
        elif isinstance(node, ast.Import | ast.ImportFrom):
            base = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [base + alias.name for alias in node.names]
            yield from (f"{n}, which is deprecated" for n in names if OLD_MODULES.match(n))
        elif isinstance(node, ast.Call):
            yield from _old_call(node, checkpoints)


def _old_call(call, checkpoints):
    name = _dotted(call.func)
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    if isinstance(call.func, ast.Attribute) and call.func.attr == "cuda":
        yield ".cuda(); use .to(device)"
    is_checkpoint = name in checkpoints or re.search(
        r"(?:^|\.)checkpoint\.checkpoint(?:_sequential)?$", name
    )
    if is_checkpoint and not {"use_reentrant", None} & set(given):  # None: **options
        yield f"{name}(...) without use_reentrant=False"
    unsafe = given.get("weights_only")
    if isinstance(unsafe, ast.Constant) and unsafe.value is False:
        yield "weights_only=False, which runs code from the file"


# Numbers -----------------------------------------------------------------------------

NUMERAL = r"(?<![\w.,])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?"
MORE = r"(?:faster|slower|longer|shorter|more|less|fewer|larger|smaller|bigger|higher|lower|as)"
UNIT = rf"""
    \s?(?:ns|µs|μs|us|ms|[KMGT]iB(?:/s)?|[kKMGT]B(?:/s)?|[GMT]Hz|[GTM]FLOPS?(?:/s)?)\b
  | \s(?:s|seconds?|bytes?|bits?)\b
  | \s?(?:%|percent\b)
  | [x×](?!\w)(?!\s*[\d(])
  | \s[x×]\s(?={MORE}\b)
  | \stimes\s(?={MORE}\b)
"""
QUANTITY = re.compile(rf"({NUMERAL})({UNIT})", re.VERBOSE)
WIDTH = re.compile(r"(?:1|2|4|8|16|32|64|128)\s(?:bytes?|bits?)")  # of one element: a definition
WHOLE = re.compile(r"(?:0|100)\s?(?:%|percent)")
ARITHMETIC = re.compile(
    r"\d[^.!?;\n=]*(?:[×*/+−·–-]|times|plus|minus)[^.!?;\n=]*\d[^\n=]*=|=[^\n]*\d\s*[×*/+−·-]\s*\d"
)
CITED = re.compile(r"\]\(|\[\^|https?://|\([^()]*\b(?:19|20)\d\d\b[^()]*\)")
ALLOWED = re.compile(r"<!--\s*numbers:(.*?)-->", re.DOTALL)


def numbers_have_an_origin(path, nb):
    """Find a number with a unit, x or % in the prose that nothing stands behind.

    Why: a number typed into prose is true on the author's machine, once. It may stand

    - in a paragraph, list item or table row that cites (a link, a footnote, a year in
      parentheses), or in a line that shows the arithmetic (`6 × 4 bytes = 24 bytes`);
    - where a compared cell of the notebook shows the same number with the same unit;
    - where the code cell before or after holds it as a literal;
    - in the comment ``<!-- numbers: 12 ms: why -->`` of the same cell.

    Widths of one element (4 bytes, 16 bits), 0 % and 100 %, code, formulas, quotations and
    plain counts are no findings.
    """
    shown = "\n".join(
        _output_text(cell) for _, cell in _cells(nb, "code") if IGNORE not in _tags(cell)
    )
    found = []
    for number, cell in _cells(nb, "markdown"):
        known = _spaceless("|".join([shown, *ALLOWED.findall(cell.source)]))
        literals = _literals_near(nb, number - 1)
        for line in _lines_without_citation(cell.source):
            for hit in QUANTITY.finditer(line):
                text = hit.group().strip()
                standing = re.compile(rf"(?<![\d.,]){re.escape(_spaceless(text))}(?!\w)")
                if WIDTH.fullmatch(text) or WHOLE.fullmatch(text) or standing.search(known):
                    continue
                if float(hit[1].replace(",", "")) in literals:
                    continue
                found.append(f"{_where(path, number)} says {text!r}, and no cell shows it, "
                             "no source is cited and no arithmetic shown")  # fmt: skip
    return found


def _spaceless(text):
    return re.sub(r"\s+", "", text.replace("μ", "µ").replace("×", "x"))


def _lines_without_citation(source):
    """Yield paragraphs, list items and table rows as one line each, unless they cite."""
    fenceless = re.sub(r"^(```|~~~).*?^\1", " ", source, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*(?:[-*+]|\d+\.|\||#+)\s)", fenceless):
        line = " ".join(block.split())
        if not (CITED.search(line) or ARITHMETIC.search(line) or FACTS.search(line)):
            yield _own_words(line)


def _literals_near(nb, index):
    near = []
    for step in (-1, 1):
        at = index + step
        while 0 <= at < len(nb.cells) and nb.cells[at].cell_type != "code":
            at += step
        near += [nb.cells[at]] if 0 <= at < len(nb.cells) else []
    return {
        float(node.value)
        for cell in near
        for node in ast.walk(_tree(cell))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float)
    }


SIZE = re.compile(r"\d\s?[kKMGT]B\b(?!/)")
RATE = re.compile(r"\d\s?[KMGT]iB/s")


def binary_sizes(path, nb):
    """Find sizes in decimal units and rates in binary units.

    Why: one course, one unit for each: KiB, MiB, GiB for sizes, GB/s for rates. 80 GB and
    80 GiB differ by 7 %, and mixed units hide it. Quotations are left alone.
    """
    found = []
    for number, cell in _cells(nb, "markdown"):
        words = _own_words(cell.source)
        found += [f"{_where(path, number)} gives a size as {hit.group()!r}; use KiB, MiB or GiB"
                  for hit in SIZE.finditer(words)]  # fmt: skip
        found += [f"{_where(path, number)} gives a rate as {hit.group()!r}; use MB/s or GB/s"
                  for hit in RATE.finditer(words)]  # fmt: skip
    return found


# All of them -------------------------------------------------------------------------

LINTS = (
    run_in_order,
    committed_form,
    no_widget_state,
    png_figures,
    no_stderr,
    no_untagged_error,
    every_cell_runs,
    few_ignored,
    ignored_cells_assert,
    nothing_private,
    small_enough,
    short_cells,
    prose_between_code,
    title_matches_name,
    facts_line,
    parts_in_order,
    starts_on_colab,
    plain_words,
    one_word_for_each_idea,
    current_api,
    numbers_have_an_origin,
    binary_sizes,
)


def lint(path):
    """Return the findings of every check on one notebook file."""
    nb = nbformat.read(path, as_version=4)
    return [finding for check in LINTS for finding in check(Path(path), nb)]
