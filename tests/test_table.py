"""Tables align in text and are escaped in HTML."""

import pytest

from helpers.table import Table, text_table


def test_columns_are_as_wide_as_their_widest_cell():
    assert text_table(["a", "b"], [["long", "1"], ["x", ""]]) == ["a     b", "long  1", "x"]


def test_booleans_are_words():
    assert str(Table(["call", "shares"], [["f", True], ["g", False]])).split() == [
        "call", "shares", "f", "yes", "g", "no",
    ]  # fmt: skip


def test_text_of_a_reader_is_escaped():
    html = Table(["<b>"], [["<script>alert(1)</script>"]])._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<th" in html


def test_a_row_of_another_length_is_refused_with_its_content():
    with pytest.raises(ValueError, match=r"each row must have 2 cells \(a, b\), got 1: \[1\]"):
        Table(["a", "b"], [[1]])


def test_a_table_of_mappings_and_of_nothing():
    assert str(Table.of([{"n": 1, "m": 2}])) == "n  m\n1  2"
    assert Table.of([]).rows == []
