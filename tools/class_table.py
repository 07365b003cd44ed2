"""Join the lab reports of a class: course.py class a.json b.json ... [--out folder].

A reader makes a report in notebook 72: ``lab_report.build().save()`` writes lab-report.json.
Here class-table.md, class-table.csv and class-table.png are made of all of them. Reports are read
as text and nothing in them is executed; a file that is no report is named, and the rest goes on.
"""

import argparse
import glob
import sys
from pathlib import Path

from helpers import _shelf, class_table
from tools import caller

MARK = "Class table of Measured PyTorch"
FILES = ("class-table.md", "class-table.csv", "class-table.png")
# What the first bytes of each file hold if an earlier run wrote it: only such a file is replaced.
OWN = (f"<!-- {MARK} -->", ",".join(class_table.EXERCISES[:5]), MARK)


def main(argv: list[str] | None = None) -> int:
    """Write the tables.

    Returns
    -------
    int
        0 when every file was read, 1 when some were refused or nothing could be written, 2 when
        no file was a report.
    """
    parser = argparse.ArgumentParser(
        prog="course.py class",
        description="Join lab reports into one table that names nobody.",
    )
    parser.add_argument("reports", nargs="+", metavar="report.json", help="what notebook 72 saved")
    parser.add_argument(
        "--out", default=".", metavar="folder", help="where to write; default: here"
    )
    options = parser.parse_args(argv)
    reports, refused = _read(options.reports)
    if not reports:
        print("No file was a lab report, so there is no table.", file=sys.stderr)
        return 2
    table = class_table.build(reports)
    said = _write(table, caller.path(options.out))
    if said:
        print(said, file=sys.stderr)
        return 1
    print(f"{' '.join(FILES)}: {_count(len(reports), 'report')} of "
          f"{_count(table.readers, 'reader')}.")  # fmt: skip
    return 1 if refused else 0


def _read(names: list[str]) -> tuple[list[dict], int]:
    """Read the reports; say of each that is refused why."""
    reports, refused = {}, 0
    for name in _expanded(names):
        try:
            reports[name] = class_table.read(caller.path(name))
        except ValueError as error:
            refused += _refuse(name, error)
    samples = [name for name, report in reports.items() if report["sample"]]
    if len(samples) < len(reports):  # of samples alone there is a table: it says what it is
        for name in samples:
            refused += _refuse(name, "it is a sample: its reader had recorded nothing there")
            del reports[name]
    return list(reports.values()), refused


def _expanded(names: list[str]) -> list[str]:
    """Do what a shell does with ``*.json``; those of Windows hand it over as it is."""
    found = []
    for name in names:
        place = caller.path(name)
        matches = [] if place.exists() else sorted(glob.glob(str(place)))
        found += matches or [name]
    return list(dict.fromkeys(found))


def _refuse(name: str, why: object) -> int:
    print(f"{name}: refused, {why}", file=sys.stderr)
    return 1


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"


def _write(table: class_table.ClassTable, folder: Path) -> str:
    """Write the three files; return why not, or an empty text."""
    bundle, _ = table.chart()._repr_mimebundle_()
    png = _marked(bundle["image/png"])
    contents = (f"{OWN[0]}\n{table.to_markdown()}", table.to_csv(), png)
    files = dict(zip(FILES, contents, strict=True))
    foreign = [name for name, mark in zip(FILES, OWN, strict=True)
               if not _shelf.may_replace(folder / name, mark)]  # fmt: skip
    if foreign:
        return (
            f"{', '.join(foreign)} is there and no class table: move it, or choose another --out. "
            "Nothing was written."
        )
    try:
        for name, content in files.items():
            _shelf.write(folder / name, content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        return f"Nothing was saved, because {_shelf.why(error, 'the folder')}."
    return ""


def _marked(png: bytes) -> bytes:
    """Put the mark into a PNG, so that a later run knows that it may replace it."""
    import io

    from PIL import Image, PngImagePlugin

    info, out = PngImagePlugin.PngInfo(), io.BytesIO()
    info.add_text("Title", MARK)
    with Image.open(io.BytesIO(png)) as image:
        image.save(out, format="png", pnginfo=info)
    return out.getvalue()


if __name__ == "__main__":
    raise SystemExit(main())
