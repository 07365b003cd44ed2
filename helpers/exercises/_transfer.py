"""Turn records into a text that a reader can copy to another machine, and back."""

import base64
import json
import re
import zlib

from helpers import _claim_record, _reader
from helpers.exercises import _record
from helpers.exercises._record import as_json

PREFIX = "measured-pytorch-1"
NOTICE_FOR_READER = "For you alone: this text holds times. Read it in with progress.load(...)."
_LARGEST_TEXT, _LARGEST_JSON = 1_000_000, 4_000_000


def pack(records):
    """Return records as a text that a reader can copy from one machine to another."""
    data = zlib.compress(as_json(sorted(records, key=lambda record: record["id"])).encode(), 9)
    code = base64.b64encode(data).decode()
    return f"{PREFIX}:{zlib.crc32(data):08x}:{code}"


def unpack(text):
    """Return the records in a transfer text.

    Raises
    ------
    ValueError
        If the text is cut, changed, too large or not of this course; the sentence is for readers.
    """
    if not isinstance(text, str):
        text = ""
    if len(text) > _LARGEST_TEXT:
        raise ValueError("This text is longer than any that progress.export() makes.")
    _, found, rest = re.sub(r"[\s\"'\\]", "", text).partition(f"{PREFIX}:")
    if not found:
        raise ValueError(f"A transfer text holds {PREFIX}: and this one does not.")
    checksum, _, code = rest.partition(":")
    try:
        data = base64.b64decode(code, validate=True)
    except ValueError:
        raise ValueError("The text was cut or changed: copy all of it again.") from None
    if f"{zlib.crc32(data):08x}" != checksum:
        raise ValueError("The text was cut or changed: copy all of it again.")
    return _records_in(data)


def _records_in(data):
    try:
        opened = zlib.decompressobj()
        plain = opened.decompress(data, _LARGEST_JSON)
        records = json.loads(plain) if opened.eof else None
    except (zlib.error, ValueError, RecursionError):
        records = None
    records = [_as_record(value) for value in records] if isinstance(records, list) else [None]
    if None in records:
        raise ValueError("The text holds no records that this version of the course can read.")
    return records


def _as_record(value):
    readers = (_record.as_record, _claim_record.as_record, _reader.as_record)
    return next((found for found in (read(value) for read in readers) if found), None)
