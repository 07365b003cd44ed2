"""Show what was tried and passed, and carry it to another machine."""

from dataclasses import dataclass

from helpers import _display
from helpers.exercises import _catalog, _progress, _transfer
from helpers.exercises._check import Page
from helpers.exercises._guess import band_for
from helpers.exercises._record import merge
from helpers.table import Table

_HEADER = ("notebook", "passed", "after the solution", "tried", "not attempted", "guesses")


@dataclass(frozen=True, repr=False)
class Board(_display.Shown):
    """Show one row for each notebook.

    Attributes
    ----------
    rows : tuple of tuple
        Notebook, passed, passed after the solution, tried, not attempted, guesses.
    """

    rows: tuple

    def text(self):
        """Return the table in plain text, or say that nothing was recorded."""
        return repr(Table(_HEADER, self.rows)) if self.rows else _NOTHING

    def html(self):
        """Return the table."""
        if not self.rows:
            return _display.card("open", _NOTHING)
        return _display.card("note", "Progress", extra=_display.table(_HEADER, self.rows))


_NOTHING = "Nothing recorded yet."


class TransferText(str):
    """Show a text so that it can be copied as it is."""

    __slots__ = ()

    def __repr__(self):
        return str(self)


class Progress:
    """Show the board of all notebooks: ``progress()``.

    ``progress.export()`` returns a text that ``progress.load(text)`` reads in on another machine.
    """

    def __call__(self):
        """Return the Board; it displays itself and writes nothing.

        Examples
        --------
        >>> type(Progress()()).__name__
        'Board'
        """
        records = _progress.read_all()
        if not records:
            return Board(())
        ids = {*records, *_catalog.known_ids("EXERCISES"), *_catalog.known_ids("PREDICTIONS")}
        notebooks = sorted({id.partition(".")[0] for id in ids})
        return Board(tuple(_row(notebook, ids, records) for notebook in notebooks))

    def export(self):
        """Return all records as a text to copy.

        Its first line says that it is for the reader alone, since it holds times.

        Returns
        -------
        TransferText
            A str.

        Examples
        --------
        >>> Progress().export().startswith("For you alone")
        True
        """
        records = _progress.read_all().values()
        return TransferText(f"{_transfer.NOTICE_FOR_READER}\n{_transfer.pack(records)}")

    def load(self, text):
        """Merge the records of a transfer text into those here; nothing here is lost.

        Parameters
        ----------
        text : str
            What ``progress.export()`` returned. Spaces, line breaks and quotes do not matter.

        Returns
        -------
        Page
            It says how many records were added, or why none was.

        Examples
        --------
        >>> Progress().load("hello").body
        'A transfer text holds measured-pytorch-1: and this one does not.'
        """
        try:
            records = _transfer.unpack(text)
        except ValueError as error:
            return Page("Nothing loaded", str(error))
        added, notice = 0, ""
        for record in records:
            before = _progress.read(record["id"], record["kind"])
            after, why = _merge_in(record)
            added, notice = added + (after != before), why or notice
        return Page(f"{added} record{'' if added == 1 else 's'} added", notice=notice)


def _merge_in(record):
    def change(old):
        return merge(old, record)

    return _progress.update(record["id"], record["kind"], change)


def _row(notebook, ids, records):
    own = [id for id in ids if id.startswith(f"{notebook}.")]
    exercises = [records.get(id) for id in own if ".p" not in id]
    tried = [record for record in exercises if record and record["best"] != "not attempted"]
    passed = [record for record in tried if record["best"] == "passed"]
    after = [record for record in passed if record["solution"]]
    return (
        notebook,
        len(passed) - len(after),
        len(after),
        len(tried) - len(passed),
        len(exercises) - len(tried),
        _guesses([id for id in own if ".p" in id], records),
    )


def _guesses(ids, records):
    there = [records[id] for id in ids if id in records and records[id]["guess"]]
    if not ids:
        return "none asked"
    bands = {}
    for record in sorted(there, key=lambda record: _catalog.sort_key(record["id"])):
        bands[_band(record)] = bands.get(_band(record), 0) + 1
    details = ", ".join(f"{count} {band}" for band, count in bands.items())
    return f"{len(there)} of {len(ids)}" + (f": {details}" if details else "")


def _band(record):
    guess, truth = record["guess"], record["truth"]
    if guess["late"]:
        return "late"
    if truth is None:
        return "not measured yet"
    if isinstance(guess["value"], str) or isinstance(truth["value"], str):
        return "as measured" if guess["value"] == truth["value"] else "not as measured"
    return band_for(_catalog.find_prediction(record["id"]), guess["value"], truth["value"])
