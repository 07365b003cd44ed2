"""Lay out a new notebook with all its parts, and the module of its exercises.

    python3 course.py new "46 verb the object"

makes notebooks/46_verb_the_object.ipynb and exercises/nb46.py. Nothing that exists is changed.
"""

import re
import sys
from pathlib import Path

import nbformat

from helpers._paths import ROOT
from tools import colab_cell
from tools.notebooks import canonical, to_text

SETUP = """\
import torch

from helpers import plotting
from helpers.device import describe_machine, pick_device
from helpers.exercises import check, predict, progress, reveal
from helpers.exercises import hint, solution  # noqa: F401 - yours to call

plotting.use_style()
device = pick_device()
describe_machine()"""
EXERCISES = '''\
"""Ask and check what {stem} teaches."""

from helpers.exercises import Choice, Exercise, Wrong, WrongAnswer

PREDICTIONS = {{
    "{number}.p1": Choice(
        question="What will the next cell show?",
        options={{
            "4": "Right: say why in one sentence.",
            "5": "Say which idea leads to 5, and what contradicts it.",
        }},
    ),
}}


def test_double(answer, call):
    for x in (0, 3, -2):
        if call(answer, x) != 2 * x:
            raise Wrong(f"double({{x}}) must be {{2 * x}}, got {{call(answer, x)}}.")


EXERCISES = {{
    "{number}.1": Exercise(
        title="Double a number",
        minutes=3,
        task="Write `double(x)`: it returns twice its argument.",
        stub="def double(x):\\n    ...\\n",
        answer="double",
        test=test_double,
        hints=("A property of the result.", "A counter-example.", "The first line."),
        solution="def double(x):\\n    return 2 * x\\n",
        wrong=(
            WrongAnswer("squares", "def double(x):\\n    return x**2\\n", "must be"),
            WrongAnswer("adds two", "def double(x):\\n    return x + 2\\n", "must be"),
            WrongAnswer("returns x", "def double(x):\\n    return x\\n", "must be"),
            WrongAnswer("negates", "def double(x):\\n    return -x\\n", "must be"),
        ),
    ),
}}
'''


def read_name(text):
    """Return the file stem for a name such as "46 verb the object".

    Raises
    ------
    ValueError
        If it is not a two-digit number with a part from 0 to 7, followed by words.
    """
    match = re.fullmatch(r"([0-7]\d) ([a-z][a-z0-9]*(?: [a-z0-9]+)+)", text.strip().lower())
    if not match:
        raise ValueError(
            f'expected two digits (part and place) and a phrase, such as "46 verb the object", '
            f"got {text!r}"
        )
    return f"{match[1]}_{match[2].replace(' ', '_')}"


def cells(stem):
    """Return the cells of the skeleton, each part in its place."""
    number, title = stem[:2], stem[3:].replace("_", " ").capitalize()
    markdown, code = nbformat.v4.new_markdown_cell, nbformat.v4.new_code_cell
    badge = colab_cell.badge(stem)
    return [
        markdown(f"# {title}\n\nOne sentence of payoff.\n\n30 min · CPU · after 13\n\n{badge}"),
        markdown("## The question\n\nA number or a picture that surprises."),
        markdown(
            f"**You will be able to**\n- do what exercise {number}.1 asks\n\n**You need** what "
            "13 teaches."
        ),
        code(colab_cell.cell(), metadata=colab_cell.FOLD),
        code(SETUP),
        markdown("## What does a measurement show?\n\nAsk before you measure."),
        code(f'predict("{number}.p1")'),
        code(f'reveal("{number}.p1", (torch.ones(2, device=device) * 2).sum().int().item())'),
        markdown("### The statement that the measurement supports"),
        markdown(f"## Exercises\n\n**{number}.1 Double a number** (3 min). Return twice x."),
        code(f'def double(x):\n    ...\n\n\ncheck("{number}.1", double)'),
        markdown("## In practice\n\nLimits, versions, when not to use it."),
        markdown("## What you can do now\n\nThe promise in the past tense, with numbers."),
        code("progress()"),
        markdown(
            "## Check yourself\n\n<details><summary>1. A question?</summary>\n\nAn answer.\n"
            "</details>\n\n**Next**: where it goes on.\n\n## Sources\n\n- A primary source."
        ),
    ]


def lay_out(text, root=ROOT):
    """Write the notebook and the module; return their paths.

    Raises
    ------
    ValueError
        If the name does not fit.
    FileExistsError
        If the number is taken.
    """
    stem = read_name(text)
    number = stem[:2]
    notebook = Path(root, "notebooks", f"{stem}.ipynb")
    module = Path(root, "exercises", f"nb{number}.py")
    taken = [*Path(root, "notebooks").glob(f"{number}_*.ipynb"), *([module] * module.exists())]
    if taken:
        raise FileExistsError(f"{number} is taken by {taken[0].name}; choose a free number")
    skeleton = nbformat.v4.new_notebook(cells=cells(stem))
    for place, cell in enumerate(skeleton.cells):
        cell["id"] = f"{number}-{place:02}"
    notebook.write_text(to_text(canonical(skeleton)), encoding="utf-8", newline="\n")
    module.write_text(EXERCISES.format(stem=stem, number=number), encoding="utf-8", newline="\n")
    return notebook, module


def main(argv=None):
    """Lay out the named notebook and say what comes next."""
    words = " ".join(sys.argv[1:] if argv is None else argv)
    try:
        notebook, module = lay_out(words)
    except (ValueError, FileExistsError) as error:
        print(error, file=sys.stderr)
        return 2
    print(f"Made notebooks/{notebook.name} and exercises/{module.name}.")
    print("Write the exercises first, then the notebook, then: "
          f"python3 course.py notebooks {notebook.stem[:2]}")  # fmt: skip
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
