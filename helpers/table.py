"""Show rows of results as a table, in text and in HTML."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Table:
    """Show rows under named columns.

    Parameters
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequences
        The cells, each row as long as `columns`; shown with ``str``, booleans as yes and no.

    Raises
    ------
    ValueError
        If a row has another length than `columns`.

    Examples
    --------
    >>> Table(["call", "shares"], [["from_numpy", True], ["tensor", False]])
    call        shares
    from_numpy  yes
    tensor      no
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[object]]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(
                    f"each row must have {len(self.columns)} cells ({', '.join(self.columns)}), "
                    f"got {len(row)}: {row!r}"
                )

    @classmethod
    def of(cls, records: Iterable[Mapping[str, object]]) -> Table:
        """Make a table of mappings that have the same keys.

        Parameters
        ----------
        records : iterable of mappings
            One per row; the keys of the first one are the heads.

        Examples
        --------
        >>> Table.of([{"n": 1, "square": 1}, {"n": 2, "square": 4}])
        n  square
        1  1
        2  4
        """
        records = list(records)
        columns = list(records[0]) if records else []
        return cls(columns, [[record[name] for name in columns] for record in records])

    def __repr__(self) -> str:
        return "\n".join(text_table(self.columns, [[_text(c) for c in row] for row in self.rows]))

    def _repr_html_(self) -> str:
        left = ' style="text-align:left"'
        head = "".join(f"<th{left}>{escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td{left}>{escape(_text(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(cell: object) -> str:
    return ("yes" if cell else "no") if isinstance(cell, bool) else str(cell)


def text_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    r"""Align columns of text with spaces.

    Parameters
    ----------
    columns : sequence of str
        The heads.
    rows : sequence of sequence of str
        The cells; each row as long as `columns`.

    Returns
    -------
    list of str
        One line for the heads and one per row.

    Examples
    --------
    >>> print("\n".join(text_table(["name", "n"], [["a", "1"], ["bcdef", "20"]])))
    name   n
    a      1
    bcdef  20
    """
    lines = [list(columns), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
