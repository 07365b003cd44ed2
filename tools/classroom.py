"""Keep the instructors' pages true: classroom/NN.md, one for each notebook, and the plans.

    python3 course.py classroom              bring what is generated up to date
    python3 course.py classroom --check      change nothing; say which pages are stale
    python3 course.py classroom --edition    write the notebooks with all solutions

A page has a generated part between two markers and a core that people write. The command
rewrites what is between the markers and nothing else.
"""

import argparse
import importlib
import json
import math
import re
import sys
from collections import Counter
from pathlib import Path

from helpers import catalog, claims
from helpers._paths import ROOT
from helpers.exercises import Choice
from helpers.exercises._guess import as_text
from tools import classroom_edition, classroom_plans, notebooks
from tools.readme import filled

PAGES = ROOT / "classroom"
GUIDE = PAGES / "README.md"
START, END = "<!-- generated -->", "<!-- /generated -->"
CORE = ("Main point", "What stands behind the wrong guesses", "What to cut", "To discuss")
_MEASURED = "This machine measured "


def main(argv=None):
    """Write, check, or make the edition; return 1 when something is stale or failed."""
    parser = argparse.ArgumentParser(prog="course.py classroom", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("names", nargs="*", help="how notebooks start, such as 13")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument(
        "--edition", nargs="?", const=classroom_edition.FOLDER, type=Path, metavar="FOLDER"
    )
    parser.add_argument("--execute", action="store_true", help="run the edition's notebooks")
    options = parser.parse_args(argv)
    if options.edition and options.check:
        parser.error("--edition writes and --check changes nothing: choose one")
    if options.execute and not options.edition:
        parser.error("--execute runs the notebooks of --edition: add it")
    if options.edition and not options.names and str(options.edition)[:2].isdigit():
        parser.error(f"numbers come first: classroom {options.edition} --edition")
    notebooks.find(options.names)  # a name that fits none ends here
    if options.edition:
        return classroom_edition.write(options.edition, options.names, run=options.execute)
    texts = fresh_texts(options.names)
    stale = [path for path, text in texts.items() if text != read(path)]
    for path in stale:
        if options.check:
            number = f" {path.stem}" if path.stem.isdigit() else ""
            print(f"{path.name} is stale; run: python3 course.py classroom{number}")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(texts[path], encoding="utf-8", newline="\n")
            print(f"{path.name} is up to date now")
    return 1 if options.check and stale else 0


def read(path):
    """Return a file's text, "" where there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def fresh_texts(names=(), folder=ROOT / "notebooks", pages=PAGES):
    """Return, for each page and for the guide, the text that it must have."""
    texts = {}
    for entry in catalog.read_entries(folder):
        if not names or entry.path.stem.startswith(tuple(names)):
            path = pages / f"{entry.number}.md"
            texts[path] = with_generated(read(path) or empty_page(entry), generated(entry), path)
    guide = pages / "README.md"
    if guide.is_file() and not names:
        texts[guide] = classroom_plans.with_plans(read(guide), folder)
    return texts


def empty_page(entry):
    """Return a page whose core is still to be written; the tests refuse it as it is."""
    headings = "\n\n".join(f"## {heading}" for heading in CORE)
    return f"# {entry.number} {entry.title}\n\n{START}\n{END}\n\n{headings}\n"


def with_generated(text, fresh, path):
    """Return a page with a fresh generated part.

    Raises
    ------
    ValueError
        If the markers are missing, or stand in the wrong order.
    """
    return filled(text, "generated", fresh, path.name)


def core_of(text):
    """Return the hand-written sections of a page: heading to text, in their order."""
    after = text.partition(END)[2]
    parts = re.split(r"^## (.+)$", after, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], (part.strip() for part in parts[1::2]), strict=True))


def generated(entry):
    """Return the generated part of a notebook's page."""
    module = importlib.import_module(f"exercises.nb{entry.number}")
    cells = json.loads(entry.path.read_text(encoding="utf-8"))["cells"]
    exercises = sum(exercise.minutes for exercise in module.EXERCISES.values())
    parts = [
        f"{entry.minutes} min · {entry.runs_on} · after {entry.after}",
        plain(entry.promise),
        f"Of the {entry.minutes} minutes, the exercises take {exercises}.",
        _beats(cells),
        *_predictions(module, stored_answers(cells)),
        *_exercises(module),
        *_claims(int(entry.number)),
    ]
    return "\n\n".join(parts)


def _beats(cells):
    """List the sections in which something is measured, with the predictions of each."""
    lines = []
    for number, (heading, ids) in enumerate(classroom_plans.beats(cells), 1):
        asked = f" ({', '.join(ids)})" if ids else ""
        lines.append(f"{number}. {plain(heading)}{asked}")
    return "## Beats\n\n" + "\n".join(lines)


def stored_answers(cells):
    """Return what the committed run measured for each prediction that has one true answer."""
    found = {}
    for cell in cells:
        source = "".join(cell["source"])
        ids = re.findall(r"""\breveal\(\s*["']([^"']+)["']""", source)
        ignored = "nbval-ignore-output" in cell["metadata"].get("tags", ())
        texts = [_text(output) for output in cell.get("outputs", ())]
        texts = [text for text in texts if text.startswith(_MEASURED)]
        if len(ids) == len(texts) == 1 and not ignored:
            found[ids[0]] = texts[0].splitlines()[0].removeprefix(_MEASURED).removesuffix(".")
    return found


def _text(output):
    return "".join(output.get("data", {}).get("text/plain", ""))


def _predictions(module, answers):
    """Yield the heading, then question, answer and sentences of each prediction."""
    if module.PREDICTIONS:
        yield "## Predictions"
    for id, asked in module.PREDICTIONS.items():
        answer = answers.get(id)
        known = f"The stored run measured {plain(answer)}." if answer else _VARIES
        yield f"**{id}** {plain(asked.question)} {known}"
        yield table(("guess", "what the course answers"), guesses(asked))


_VARIES = "The answer is measured anew on each machine."


def guesses(asked):
    """Return the rows of one prediction: each option, or each range, with its sentence."""
    if isinstance(asked, Choice):
        return list(asked.options.items())
    last = len(asked.notes) - 1
    return [
        (_range(asked, low, high, is_first=not place, is_last=place == last), note)
        for place, (low, high, note) in enumerate(asked.notes)
    ]


def _range(asked, low, high, *, is_first, is_last):
    """Name a range of guesses: whole numbers where things are counted, else up to its end."""
    if asked.among is not None:
        first, last = math.ceil(low), math.ceil(high) - 1
        counted = f"{first} to {last}" if first < last else f"{first}"
        return f"{counted} {asked.unit}".strip()
    if is_first:
        return f"below {as_text(asked, high)}"
    if is_last:  # the end of the last range only stands for no end
        return f"{as_text(asked, low)} and more"
    unit = asked.unit if asked.unit in ("bytes", "s", "ratio") else ""
    return f"{as_text(asked, low, unit)} up to {as_text(asked, high)}"


def _exercises(module):
    """Yield the tables of the exercises and of the wrong answers that they catch."""
    if not module.EXERCISES:
        return
    yield "## Exercises"
    rows = [(id, f"{e.title}. {e.task}", f"{e.minutes}") for id, e in module.EXERCISES.items()]
    yield table(("exercise", "task", "minutes"), rows)
    yield "A check says more than the fragment in the last column; it also names where to look."
    rows = [
        (id, wrong.name, f"… {wrong.says} …")
        for id, exercise in module.EXERCISES.items()
        for wrong in exercise.wrong
    ]
    yield table(("exercise", "wrong answer", "from the sentence that it meets"), rows)


def _claims(notebook):
    """Yield the table of the claims that a notebook owns."""
    owned = [claim for claim in claims.load_ledger() if claim.notebook == notebook]
    if not owned:
        return
    yield "## Claims"
    counted = Counter(claim.verdict for claim in owned)
    yield ", ".join(f"{verdict}: {counted[verdict]}" for verdict in counted) + "."
    yield table(
        ("claim", "verdict", "the tutorial says", "what is true", "evidence", "our test"),
        [
            (c.id, c.verdict, c.statement, c.correct, c.reference or c.evidence, _code(c))
            for c in owned
        ],
    )


def _code(claim):
    return f"`{claim.expectation}`" if claim.expectation else "none"


def table(columns, rows):
    """Return a Markdown table; its cells are text in which only backticks have a meaning."""
    lines = [columns, ["---"] * len(columns), *([plain(str(c)) for c in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text):
    """Return a text in one line in which Markdown sees nothing but code in backticks."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()))
    pieces[::2] = [re.sub(r"([\\*<>\[\]]|__)", r"\\\1", piece) for piece in pieces[::2]]
    return "".join(pieces).replace("|", "\\|")


if __name__ == "__main__":
    sys.exit(main())
