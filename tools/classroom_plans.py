"""Lay plans for a class: which parts of which notebooks fit into the hours at hand.

A notebook's minutes are those of its line of facts. Its exercises have minutes of their own;
what is left is shared out equally among its beats, the sections in which something is measured,
at least `SHORTEST` minutes for each. A class that discusses a prediction with its neighbors needs
`DISCUSSION` minutes more for it, and each notebook takes `OPENING` minutes to begin.
"""

import importlib
import json
import math
import re
from dataclasses import dataclass

from helpers import catalog
from helpers._paths import ROOT
from tools.readme import filled

DISCUSSION = 2  # minutes that a class needs more for each prediction
OPENING = 3  # minutes for the question of a notebook and its setup cell
SHORTEST = 4  # minutes of a beat, however many exercises its notebook has
FRAME = (
    "The question", "Try it", "Exercises", "In practice", "What you can do now",
    "Check yourself", "Sources", "Next",
)  # fmt: skip


@dataclass(frozen=True)
class Take:
    """Take a part of a notebook.

    Attributes
    ----------
    number : str
        The notebook.
    beats : tuple of int, or None
        The beats that are done, counted from 1; None for all.
    exercises : tuple of int
        The exercises that are done in class, by their last number.
    """

    number: str
    beats: tuple[int, ...] | None = None
    exercises: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fixed:
    """Spend minutes on something that is no notebook: a break, the start, the end."""

    what: str
    minutes: int


@dataclass(frozen=True)
class Plan:
    """Fill some minutes with takes and breaks, in their order."""

    name: str
    minutes: int
    parts: tuple[Take | Fixed, ...]


@dataclass(frozen=True)
class Notebook:
    """Hold what a plan needs to know of a notebook."""

    entry: catalog.Entry
    beats: tuple[tuple[str, tuple[str, ...]], ...]
    exercises: dict[str, int]

    @property
    def per_beat(self):
        """Return the minutes of one beat for somebody who reads alone."""
        reading = self.entry.minutes - sum(self.exercises.values())
        return max(SHORTEST, reading / len(self.beats))


def beats(cells):
    """Return heading and predictions of each section that is no part of the frame."""
    found, current = [], None
    for cell in cells:
        source = "".join(cell["source"])
        is_text = cell["cell_type"] == "markdown"
        heading = re.search(r"^## (.+)", source, re.MULTILINE) if is_text else None
        if heading:
            current = None if heading[1].strip() in FRAME else (heading[1].strip(), [])
            found += [current] if current else []
        if current and cell["cell_type"] == "code":
            current[1].extend(re.findall(r"""\bpredict\(\s*["']([^"']+)["']""", source))
    return tuple((heading, tuple(ids)) for heading, ids in found)


def read_notebooks(folder=ROOT / "notebooks"):
    """Return the notebooks of a folder by their numbers."""
    found = {}
    for entry in catalog.read_entries(folder):
        cells = json.loads(entry.path.read_text(encoding="utf-8"))["cells"]
        module = importlib.import_module(f"exercises.nb{entry.number}")
        minutes = {id: exercise.minutes for id, exercise in module.EXERCISES.items()}
        found[entry.number] = Notebook(entry, beats(cells), minutes)
    return found


def minutes_of(take, notebook):
    """Return the minutes of a take in class, and the predictions that it discusses."""
    chosen = take.beats or range(1, len(notebook.beats) + 1)
    asked = sum(len(notebook.beats[beat - 1][1]) for beat in chosen)
    own = {id: minutes for id, minutes in notebook.exercises.items() if _is_taken(id, take)}
    work = len(chosen) * notebook.per_beat + sum(own.values())
    return OPENING + math.ceil(work + DISCUSSION * asked), asked


def _is_taken(id, take):
    return int(id.partition(".")[2]) in take.exercises


def homework(take, notebook):
    """Return the exercises that a take leaves for home: id to minutes."""
    return {id: m for id, m in notebook.exercises.items() if not _is_taken(id, take)}


def rows(plan, notebooks):
    """Return the lines of a plan: starting minute, what, which part, minutes, what is left.

    A notebook that does not exist is left out.
    """
    found, at = [], 0
    for part in plan.parts:
        if isinstance(part, Fixed):
            line = (part.what, "", part.minutes, "")
        elif part.number in notebooks:
            notebook = notebooks[part.number]
            left = ", ".join(homework(part, notebook))
            title = f"[{part.number} {notebook.entry.title}]({part.number}.md)"
            line = (title, _part(part, notebook), minutes_of(part, notebook)[0], left)
        else:
            continue
        found.append((at, *line))
        at += line[2]
    return found


def _part(take, notebook):
    """Say which beats and exercises a take has."""
    ids = [id for id in notebook.exercises if _is_taken(id, take)]
    every = take.beats is None or len(take.beats) == len(notebook.beats)
    beats = "all beats" if every else f"beat{'s' * (len(take.beats) > 1)} {_runs(take.beats)}"
    return beats + (f"; exercise{'s' * (len(ids) > 1)} {_listed(ids)}" if ids else "")


def _runs(numbers):
    """Return whole numbers as text, three or more in a row as `1 to 3`."""
    groups = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    long = [f"{group[0]} to {group[-1]}" if len(group) > 2 else group for group in groups]
    return _listed([n for group in long for n in ([group] if isinstance(group, str) else group)])


def _listed(things):
    *most, last = map(str, things)
    return f"{', '.join(most)} and {last}" if most else last


def total(plan, notebooks):
    """Return the minutes that a plan fills."""
    return sum(line[3] for line in rows(plan, notebooks))


PLANS = (
    Plan(
        "two hours",
        120,
        (
            Fixed("Welcome: how guess, measurement and record work here", 8),
            Take("00", (1, 2, 5), (1,)),
            Take("11", (1, 2, 4), (2,)),
            Fixed("Break", 10),
            Take("13", (1,), (2,)),
            Take("14", (1, 3), (1,)),
            Fixed("Look back: which guess was furthest off, and why", 6),
        ),
    ),
    Plan(
        "half a day",
        210,
        (
            Fixed("Welcome: how guess, measurement and record work here", 8),
            Take("00", (1, 2, 5), (1,)),
            Take("11", (1, 2, 4, 5), (2,)),
            Take("12", (1, 3), ()),
            Fixed("Break", 15),
            Take("13", (1, 4), (2,)),
            Take("14", (1, 3, 5), (1,)),
            Fixed("Break", 10),
            Take("15", (2, 3, 4, 5), (2,)),
            Fixed("Look back: which guess was furthest off, and why", 8),
        ),
    ),
    Plan(
        "one day",
        360,
        (
            Fixed("Welcome: how guess, measurement and record work here", 8),
            Take("00", (1, 2, 5), (1,)),
            Take("11", (1, 2, 4, 5), (2,)),
            Take("12", (1, 2, 3), (3,)),
            Fixed("Break", 15),
            Take("13", (1, 3, 4), (2,)),
            Take("14", (1, 2, 3, 5), (1,)),
            Fixed("Look back on the morning; lunch is outside these hours", 5),
            Take("15", (2, 3, 4, 5, 7), (2, 5)),
            Take("22", (1, 2, 4, 5), (1,)),
            Fixed("Break", 15),
            Take("41", (1, 2, 5), (1,)),
            Take("43", (1,), (1,)),
            Fixed("Records: save them, read the class table, name what surprised you", 15),
        ),
    ),
)

BREAK = Fixed("Break", 10)
SESSIONS = (
    (Take("00", (1, 2, 5, 7)), Take("11"), BREAK, Take("12")),
    (Take("13", (1, 2, 3, 4)), BREAK, Take("14")),
    (Take("15"), BREAK, Take("16")),
    (Take("17", None, (4,)), BREAK, Take("21", None, (4,))),
    (Take("22", None, (1,)), BREAK, Take("23", None, (1,))),
    (Take("41"), Take("42", (1, 2, 3, 4, 5, 6)), BREAK, Take("43", (1, 2, 3, 5))),
    (Take("44", None, (1,)), BREAK, Take("45", None, (2,))),
    (Take("31", None, (1,)), BREAK, Take("32")),
    (Take("33", (1, 2, 4, 5, 6, 7)), Take("54", (1, 2, 3, 4, 5)), BREAK, Take("34")),
    (Take("51", (1, 2, 3, 5, 6)), Take("52", (1, 2, 3, 4, 5)), BREAK, Take("53", (1, 2, 3, 4, 5))),
    (Take("61", (1, 2, 3, 4, 5, 6)), Take("62", (1, 2, 3, 4, 6)), BREAK, Take("64")),
    (Take("63", (1, 2, 4, 5)), BREAK, Take("71"), Take("72")),
)
SIX_WEEKS = tuple(
    Plan(f"week {place // 2 + 1}, session {place % 2 + 1}", 120, parts)
    for place, parts in enumerate(SESSIONS)
)


def plan_table(plan, notebooks):
    """Return one plan as a Markdown table with the minutes that it fills."""
    lines = ["| at | what | part | minutes |", "|---|---|---|---|"]
    lines += [f"| {_clock(at)} | {what} | {part} | {minutes} |"
              for at, what, part, minutes, _ in rows(plan, notebooks)]  # fmt: skip
    return "\n".join([*lines, "", f"Filled: {total(plan, notebooks)} of {plan.minutes} minutes."])


def weeks_table(notebooks, plans=SIX_WEEKS):
    """Return the sessions of six weeks as one Markdown table, with what is left for home."""
    lines = ["| session | what | part | minutes | at home, exercises |", "|---|---|---|---|---|"]
    for plan in plans:
        for place, (_, what, part, minutes, left) in enumerate(rows(plan, notebooks)):
            lines.append(f"| {'' if place else plan.name} | {what} | {part} | {minutes} | {left} |")
    in_class = sum(total(plan, notebooks) for plan in plans) / 60
    takes = [part for plan in plans for part in plan.parts if isinstance(part, Take)]
    left = [homework(t, notebooks[t.number]) for t in takes if t.number in notebooks]
    at_home = sum(sum(minutes.values()) for minutes in left) / 60
    last = f"In class {in_class:.1f} h, breaks included; at home {at_home:.1f} h of exercises."
    return "\n".join([*lines, "", last])


def _clock(minutes):
    return f"{minutes // 60}:{minutes % 60:02}"


def with_plans(text, folder=ROOT / "notebooks"):
    """Return the guide's text with fresh plans between their markers.

    Raises
    ------
    ValueError
        If the markers of a plan are missing.
    """
    notebooks = read_notebooks(folder)
    tables = {plan.name: plan_table(plan, notebooks) for plan in PLANS}
    tables["six weeks"] = weeks_table(notebooks)
    for name, table in tables.items():
        text = filled(text, f"plan: {name}", table, "classroom/README.md")
    return text
