"""Check an answer, open hints and the solution, and record each."""

from dataclasses import dataclass

from helpers import _display
from helpers.exercises import _catalog, _progress
from helpers.exercises._judge import judge
from helpers.exercises._record import ORDER

_WORDS = {
    "not attempted": ("open", "Not attempted"),
    "unfinished": ("open", "Unfinished"),
    "wrong": ("bad", "Not yet"),
    "raised": ("bad", "Error"),
    "stopped": ("bad", "Stopped"),
    "passed": ("good", "Passed"),
}
_rungs = {}  # id to the number of hints opened in this kernel


@dataclass(frozen=True, repr=False)
class Result(_display.Shown):
    """Hold the outcome of a check and show it, with buttons for hints in a notebook.

    Attributes
    ----------
    id : str
        The exercise.
    status : str
        not attempted, unfinished, wrong, raised, stopped or passed.
    sentence : str
        What teaches.
    printed : str
        The first 2,000 characters that the answer printed during the check.
    notice : str
        Why nothing was saved, if so.
    """

    id: str
    status: str
    sentence: str = ""
    printed: str = ""
    notice: str = ""

    def text(self):
        """Return the word of the outcome, the sentence, and how to get a hint."""
        shown = self._printed_lines()
        printed = _below("Printed during the check:", shown) if shown else ""
        return _display.lines(self._headline(), self.sentence, printed, self._help(), self.notice)

    def html(self):
        """Return the same as a card."""
        return self._card(self._help())

    def widget(self):
        """Return the card above buttons that open hints and the solution in place."""
        if self.status == "passed":
            return None
        import ipywidgets as widgets

        return widgets.VBox([widgets.HTML(self._card("")), _ladder(self.id)])

    def _headline(self):
        title = _catalog.find_exercise(self.id).title
        return f"{_WORDS[self.status][1]}: {self.id} {title}"

    def _card(self, help):
        shown = self._printed_lines()
        extra = (
            f"<div>Printed during the check:</div>{_display.source_block(shown)}" if shown else ""
        )
        tone = _WORDS[self.status][0]
        return _display.card(tone, self._headline(), self.sentence, help, self.notice, extra=extra)

    def _printed_lines(self):
        return self.printed.rstrip() if self.status in ("wrong", "raised", "stopped") else ""

    def _help(self):
        if self.status == "passed":
            return f'`solution("{self.id}")` shows one way to write it.'
        begin = "Complete the code, then run the cell again. " if not self.sentence else ""
        return f'{begin}`hint("{self.id}")` helps.'


@dataclass(frozen=True, repr=False)
class Page(_display.Shown):
    """Hold a hint, a solution or a remark, and show it."""

    word: str
    body: str = ""
    code: str = ""
    notice: str = ""

    def text(self):
        """Return heading and body."""
        return _display.lines(self.word, self.body, self.code.rstrip(), self.notice)

    def html(self):
        """Return the same as a card."""
        extra = _display.source_block(self.code) if self.code else ""
        return _display.card("note", self.word, self.body, self.notice, extra=extra)


def check(id, answer):
    """Run the test of an exercise on an answer and show what it says.

    Whatever the answer does, nothing but KeyboardInterrupt reaches the notebook: an exception,
    an endless loop (10 s, or the exercise's own limit), ``exit()``, floods of output. Modes,
    random generators and the working folder are put back.

    Parameters
    ----------
    id : str
        Id of the exercise, such as ``"13.2"``.
    answer : object
        The function, class or dictionary that the exercise asks for; ``...`` for none yet.

    Returns
    -------
    Result
        With ``status`` and ``sentence``; it displays itself.

    Raises
    ------
    KeyError
        If no exercise has this id; the text lists those that exist.

    Examples
    --------
    >>> check("13.2", ...).status
    'not attempted'
    """
    exercise = _catalog.find_exercise(id)
    notices = []

    def started():  # on disk before the answer runs: os._exit() in it cannot be caught
        notices.append(_record(id, "raised", "ended", counts=1))

    verdict = judge(id, exercise, answer, before=started)
    state = {"stopped": "raised"}.get(verdict.status, verdict.status)
    if verdict.message:
        counts = 0 if notices else 1
        notices.append(_record(id, state, verdict.message, counts=counts))
    notice = notices[-1] if notices else ""
    sentence = verdict.sentence
    if verdict.status == "not attempted" and _progress.read(id, "exercise")["best"] == "passed":
        sentence = "You passed this earlier, and that stays recorded. This is the empty stub again."
    return Result(id, verdict.status, sentence, verdict.printed, notice)


def _record(id, state, message, *, counts):
    stored = [wrong.name for wrong in _catalog.find_exercise(id).wrong]

    def change(record):
        now = _progress.stamp(record)
        kernel, checks = _progress.KERNEL, record["checks"]
        return {
            **record,
            **_progress.versions(),
            "kind": "exercise",
            "best": max(record["best"], state, key=ORDER.index),
            "latest": state,
            "message": message,
            "misses": sorted({*record["misses"], *(name for name in stored if name == message)}),
            "checks": {**checks, kernel: checks.get(kernel, 0) + counts},
            "first": record["first"] or now,
            "last": now,
            "passed_at": record["passed_at"] or (now if state == "passed" else None),
        }

    return _progress.update(id, "exercise", change)[1]


def hint(id, n=None):
    """Open the next hint of an exercise, or hint ``n``, and record that it was opened.

    Parameters
    ----------
    id : str
        Id of the exercise.
    n : int, optional
        Which hint, from 1; without it the next one that was not opened since the kernel started.

    Returns
    -------
    Page
        The hint; it displays itself.

    Raises
    ------
    KeyError
        If no exercise has this id; the text lists those that exist.

    Examples
    --------
    >>> hint("13.2", 9).word
    'No such hint'
    """
    hints = _catalog.find_exercise(id).hints
    if n is None:
        n = min(_rungs.get(id, 0) + 1, len(hints))
    if n not in range(1, len(hints) + 1):
        return Page("No such hint", f"n must be between 1 and {len(hints)}, got {n!r}.")
    notice = ""
    if n > _rungs.get(id, 0):
        _rungs[id] = n
        notice = _record_hints(id, n)
    last = f'The last hint; `solution("{id}")` comes next.' if n == len(hints) else ""
    return Page(f"Hint {n} of {len(hints)}", _display.lines(hints[n - 1], last), notice=notice)


def _record_hints(id, opened):
    def change(record):
        hints = {**record["hints"], _progress.KERNEL: opened}
        first = record["first"] or _progress.stamp(record)
        return {**record, "kind": "exercise", "hints": hints, "first": first}

    return _progress.update(id, "exercise", change)[1]


def solution(id):
    """Show one solution of an exercise and record it if the exercise was not passed before.

    Parameters
    ----------
    id : str
        Id of the exercise.

    Returns
    -------
    Page
        The source; it displays itself.

    Raises
    ------
    KeyError
        If no exercise has this id; the text lists those that exist.

    Examples
    --------
    >>> solution("no such id")
    Traceback (most recent call last):
    ...
    helpers.exercises._catalog.UnknownIdError: no exercise has the id 'no such id'; ...
    """
    exercise = _catalog.find_exercise(id)

    def change(record):
        before_pass = record["solution"] or record["best"] != "passed"
        first = record["first"] or _progress.stamp(record)
        return {**record, "kind": "exercise", "solution": before_pass, "first": first}

    notice = _progress.update(id, "exercise", change)[1]
    return Page(f"One solution of {id}", "", exercise.solution, notice)


def _ladder(id):
    """Return buttons that open the hints one by one and the solution, below each other."""
    import ipywidgets as widgets

    total = len(_catalog.find_exercise(id).hints)
    area = widgets.HTML()

    def label():
        return f"Hint {min(_rungs.get(id, 0) + 1, total)} of {total}"

    def next_hint(pressed):
        area.value = hint(id).html()
        pressed.description = label()

    def show_solution(pressed):
        area.value = solution(id).html()

    row = [_display.button(label(), next_hint), _display.button("Solution", show_solution)]
    return widgets.VBox([widgets.HBox(row), area])


def _below(heading, text):
    """Return a heading with an indented block of text below it."""
    return "\n".join([heading, *(f"    {line}" for line in text.splitlines())])
