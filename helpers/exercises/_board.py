"""Show what was tried and passed, and carry it to another machine."""

from dataclasses import dataclass
from functools import partial

from helpers import _claim_record, _display, _reader
from helpers.exercises import _catalog, _progress, _record, _transfer
from helpers.exercises._check import Page
from helpers.exercises._guess import band_for
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
        shelves = (_progress.read_all(), _claim_record.SHELF.read_all(), _reader.SHELF.read_all())
        records = [record for shelf in shelves for record in shelf.values()]
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
            shelf, blank = _place_of(record)
            before = shelf.read(blank)
            after, why = shelf.update(blank, partial(shelf.merge, record))
            added, notice = added + (after != before), why or notice
        return Page(f"{added} record{'' if added == 1 else 's'} added", notice=notice)

    def new_id(self):
        """Replace the random id under which lab reports of one reader are merged.

        It is a pseudonym: 8 random hexadecimal digits that say nothing about you, but two reports
        that carry the same ones come from one reader. The next report carries the new ones.

        Returns
        -------
        Page
            It says that the id was replaced, and does not show it.

        Examples
        --------
        >>> Progress().new_id().word
        'New id'
        """
        notice = _reader.new_id()
        return Page(
            "New id", "The next report carries it; earlier reports keep theirs.", "", notice
        )


def _place_of(record):
    """Return the shelf of a record, and the blank record of its id."""
    if "values" in record:
        return _claim_record.SHELF, _claim_record.blank(record["id"])
    if "reader" in record:
        return _reader.SHELF, _reader.blank()
    return _progress.SHELF, _record.blank(record["id"], record["kind"])


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
