"""Records: merge laws, files that survive everything, and the transfer text."""

import base64
import errno
import json
import os
import random
import signal
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from helpers import _shelf, exercises
from helpers._paths import progress_home
from helpers.exercises import _progress, _transfer
from helpers.exercises._record import ORDER, blank, is_record, merge

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(_shelf, "in_memory", {})
    return tmp_path / "home" / "exercises"


def random_record(rng):
    def event():
        kinds = [None, {"value": rng.choice([1.5, "7.0"]), "unit": None, "at": rng.randint(1, 4)}]
        chosen = rng.choice(kinds)
        return chosen and {**chosen, "late": rng.random() < 0.5}

    def counts():
        return {f"{rng.randint(1, 3):08x}": rng.randint(1, 4) for _ in range(rng.randint(0, 3))}

    return {
        **blank("98.1", rng.choice(["exercise", "prediction"])),
        "course": rng.choice(["0.1", "0.2", None]),
        "best": rng.choice(ORDER),
        "latest": rng.choice([*ORDER, None]),
        "message": rng.choice(["a", "b", None]),
        "misses": sorted(rng.sample(["a", "b", "c"], rng.randint(0, 3))),
        "checks": counts(),
        "hints": counts(),
        "solution": rng.random() < 0.5,
        "first": rng.choice([None, 1, 2]),
        "last": rng.choice([None, 1, 2]),
        "passed_at": rng.choice([None, 1, 2]),
        "guess": event(),
        "truth": event(),
    }


def test_merging_is_commutative_associative_and_idempotent_and_changes_no_input():
    rng = random.Random(0)
    for _ in range(2_000):
        a, b, c = (random_record(rng) for _ in range(3))
        copies = json.dumps([a, b, c])
        assert merge(a, b) == merge(b, a)
        assert merge(merge(a, b), c) == merge(a, merge(b, c))
        assert merge(a, a) == a
        assert merge(merge(a, b), b) == merge(a, b)
        assert is_record(merge(a, b))
        assert json.dumps([a, b, c]) == copies


def test_merging_keeps_the_best_the_earliest_guess_and_the_newest_truth():
    early = {"value": 1.0, "unit": "s", "at": 1, "late": False}
    later = {"value": 2.0, "unit": "s", "at": 2, "late": True}
    a = {**blank("98.1", "exercise"), "best": "passed", "guess": early, "truth": early}
    b = {**blank("98.1", "exercise"), "best": "wrong", "guess": later, "truth": later}
    merged = merge(a, b)
    assert (merged["best"], merged["guess"], merged["truth"]) == ("passed", early, later)


def test_records_of_two_ids_are_not_merged():
    with pytest.raises(ValueError, match="records must have one id, got 98.1 and 98.2"):
        merge(blank("98.1", "exercise"), blank("98.2", "exercise"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", 2),
        ("id", "../../x"),
        ("kind", "secret"),
        ("best", "alphabetical"),
        ("message", "x" * 201),
        ("misses", "detach only"),
        ("misses", ["x" * 201]),
        ("misses", [None]),
        ("checks", {"ada": 1}),
        ("checks", {"0badcafe": -1}),
        ("first", "yesterday"),
        ("last", float("nan")),
        ("solution", 1),
        ("guess", {"value": {"a": 1}, "unit": None, "at": 1}),
        ("guess", {"value": 1, "unit": None, "at": 1, "host": "ada"}),
        ("truth", {"value": 1, "unit": None, "at": None}),
    ],
)
def test_a_record_with_anything_else_in_a_field_is_refused(field, value):
    assert is_record(blank("98.1", "exercise"))
    assert not is_record({**blank("98.1", "exercise"), field: value})


def test_a_record_with_another_field_is_refused():
    assert not is_record({**blank("98.1", "exercise"), "host": "ada"})
    assert not is_record([])


def count(record):
    kernel = _progress.KERNEL
    checks = {**record["checks"], kernel: record["checks"].get(kernel, 0) + 1}
    return {**record, "kind": "exercise", "checks": checks, "last": _progress.stamp(record)}


def test_a_record_is_stored_in_one_file_and_read_back(home):
    record, notice = _progress.update("98.1", "exercise", count)
    assert notice == ""
    assert json.loads((home / "98.1.json").read_bytes()) == record
    assert _progress.read("98.1", "exercise") == record
    assert _progress.read_all() == {"98.1": record}
    assert sorted(path.name for path in home.iterdir()) == [".lock", "98.1.json"]


def test_reading_writes_nothing(home):
    assert _progress.read("98.1", "exercise") == blank("98.1", "exercise")
    assert _progress.read_all() == {}
    assert not home.parent.exists()


def test_a_record_of_an_older_version_is_read_and_kept(home):
    old = {**blank("98.1", "exercise"), "best": "passed"}
    del old["misses"]
    home.mkdir(parents=True)
    (home / "98.1.json").write_text(json.dumps(old))
    assert _progress.read("98.1", "exercise") == {**old, "misses": []}
    assert _progress.update("98.1", "exercise", count)[0]["best"] == "passed"
    assert not [path for path in home.iterdir() if ".aside-" in path.name]
    assert _transfer.unpack(_transfer.pack([old])) == [{**old, "misses": []}]


def test_an_update_that_changes_nothing_writes_nothing(home):
    _progress.update("98.1", "exercise", lambda record: record)
    assert not (home / "98.1.json").exists()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\x00\x9f",
        b"[1]",
        b"[" * 100_000,
        json.dumps({**blank("98.1", "exercise"), "schema": 2}).encode(),
        json.dumps(blank("98.2", "exercise")).encode(),
    ],
    ids=["empty", "cut", "binary", "list", "deep", "newer", "another id"],
)
def test_a_file_that_is_no_record_is_set_aside_and_the_course_goes_on(home, data):
    home.mkdir(parents=True)
    (home / "98.1.json").write_bytes(data)
    record, notice = _progress.update("98.1", "exercise", count)
    assert (sum(record["checks"].values()), notice) == (1, "")
    aside = [path for path in home.iterdir() if ".aside-" in path.name]
    assert [path.read_bytes() for path in aside] == [data]
    assert list(_progress.read_all()) == ["98.1"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.ENOSPC, "the disk is full"),
        (errno.EROFS, "the progress folder is read-only"),
        (errno.EACCES, "the progress folder is read-only"),
        (errno.EIO, "the progress folder cannot be written"),
    ],
)
def test_where_nothing_can_be_written_the_old_file_stays_and_memory_counts(
    home, monkeypatch, number, reason
):
    old, _ = _progress.update("98.1", "exercise", count)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", raising(OSError(number, "no")))
        for _ in range(2):
            record, notice = _progress.update("98.1", "exercise", count)
        assert notice == f"Not saved, because {reason}: this is remembered until the kernel ends."
        assert sum(record["checks"].values()) == 3
        assert json.loads((home / "98.1.json").read_bytes()) == old
        assert _progress.read_all()["98.1"] == record
        assert not list(home.glob(".*.tmp"))
    record, notice = _progress.update("98.1", "exercise", count)
    assert (sum(record["checks"].values()), notice) == (4, "")
    assert json.loads((home / "98.1.json").read_bytes()) == record


def raising(error):
    def function(*args, **kwargs):
        raise error

    return function


def test_a_home_that_is_a_file_is_survived(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "file"))
    record, notice = _progress.update("98.1", "exercise", count)
    assert notice.startswith("Not saved, because the progress folder cannot be written")
    assert _progress.read_all() == {"98.1": record}


def test_a_record_that_cannot_be_read_is_not_replaced(home):
    (home / "98.1.json").mkdir(parents=True)
    _, notice = _progress.update("98.1", "exercise", count)
    assert notice.startswith("Not saved")
    assert (home / "98.1.json").is_dir()


def test_bytes_that_come_back_different_are_noticed(home, monkeypatch):
    monkeypatch.setattr(os, "replace", lambda temp, path: path.write_bytes(b"other"))
    _, notice = _progress.update("98.1", "exercise", count)
    assert notice.startswith("Not saved")


def test_a_lock_that_is_never_given_back_is_waited_for_and_then_ignored(home):
    with _shelf.locked(home), _shelf.locked(home, patience=0.1):
        record, notice = "reached", ""
    assert (record, notice) == ("reached", "")


def test_where_files_cannot_be_locked_the_course_goes_on(monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    assert _progress.update("98.1", "exercise", count)[1] == ""


def test_events_never_tie_though_the_clock_stands_still_or_goes_back(monkeypatch):
    monkeypatch.setattr(time, "time", lambda: 5.0)
    first, _ = _progress.update("98.1", "exercise", count)
    second, _ = _progress.update("98.1", "exercise", count)
    assert first["last"] < second["last"]


def test_the_folder_of_the_system_is_used_without_course_home(monkeypatch):
    monkeypatch.delenv("COURSE_HOME")
    assert "measured-pytorch" in str(progress_home())


WORKER = """
import sys
from helpers.exercises import _progress
def count(record):
    checks = {**record["checks"]}
    checks[_progress.KERNEL] = checks.get(_progress.KERNEL, 0) + 1
    return {**record, "kind": "exercise", "checks": checks}
print("ready", flush=True)
for i in range(int(sys.argv[1])):
    assert _progress.update(f"98.{i % 2 + 1}", "exercise", count)[1] == ""
"""


def start_worker(rounds):
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(rounds)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_two_processes_lose_no_update():
    workers = [start_worker(100) for _ in range(2)]
    assert [worker.communicate(timeout=60)[0] for worker in workers] == [b"ready\n"] * 2
    assert [worker.returncode for worker in workers] == [0, 0]
    totals = [sum(record["checks"].values()) for record in _progress.read_all().values()]
    assert totals == [100, 100]


KILLED = WORKER.replace(
    'print("ready", flush=True)',
    "import os, signal\nreplace = os.replace\n"
    "def dying(a, b, n=[0]):\n"
    "    n[0] += 1\n"
    "    if n[0] == 3: os.kill(os.getpid(), signal.SIGKILL)\n"
    "    replace(a, b)\n"
    "os.replace = dying",
)


def test_a_process_killed_between_write_and_rename_tears_nothing_and_blocks_nobody(home):
    for _ in range(2):
        worker = subprocess.run(
            [sys.executable, "-c", KILLED, "50"],
            cwd=ROOT,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        assert worker.returncode == -signal.SIGKILL
    started = time.monotonic()
    record, notice = _progress.update("98.1", "exercise", count)
    assert time.monotonic() - started < 1.9  # the lock died with its process: nobody waits for it
    assert notice == ""
    assert sum(record["checks"].values()) == 3
    assert not [path for path in home.iterdir() if ".aside-" in path.name]


def several_records(number=3):
    records = [count(blank(f"98.{n}", "exercise")) for n in range(1, number + 1)]
    return [{**record, "first": 1.5} for record in records]


def test_a_transfer_text_brings_every_record_back():
    records = several_records()
    text = _transfer.pack(records)
    assert text.startswith("measured-pytorch-1:")
    assert _transfer.unpack(text) == records


def test_spaces_line_breaks_quotes_and_the_first_line_do_not_matter():
    records = several_records()
    text = _transfer.pack(records)
    wrapped = '"""For you alone.\n' + "\n  ".join(text[i : i + 40] for i in range(0, len(text), 40))
    assert _transfer.unpack(wrapped + ' """') == records


def packed(value):
    data = zlib.compress(value)
    code = base64.b64encode(data).decode()
    return f"measured-pytorch-1:{zlib.crc32(data):08x}:{code}"


CUT = "The text was cut or changed: copy all of it again."
FOREIGN = "The text holds no records that this version of the course can read."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("hello", "A transfer text holds measured-pytorch-1: and this one does not."),
        (None, "A transfer text holds measured-pytorch-1: and this one does not."),
        ("measured-pytorch-1:", CUT),
        ("measured-pytorch-1:0:é", CUT),
        (_transfer.pack(several_records())[:-8], CUT),
        (_transfer.pack(several_records()).replace("A", "B"), CUT),
        (packed(b"no json"), FOREIGN),
        (packed(b"[1]"), FOREIGN),
        (packed(b'{"id": "98.1"}'), FOREIGN),
        (packed(b" " * 5_000_000 + b"[]"), FOREIGN),
        (packed(json.dumps([{**blank("98.1", "exercise"), "host": "ada"}]).encode()), FOREIGN),
        ("x" * 1_000_001, "This text is longer than any that progress.export() makes."),
    ],
)
def test_a_text_that_is_no_transfer_text_gets_a_sentence_and_loads_nothing(home, text, sentence):
    shown = exercises.progress.load(text)
    assert (shown.word, shown.body) == ("Nothing loaded", sentence)
    assert not home.exists()


def test_a_course_of_170_records_fits_into_a_text_one_can_copy():
    assert len(_transfer.pack(several_records(170))) < 12_000


def test_export_says_that_it_is_for_the_reader_alone_and_load_adds_each_record_once(
    home, tmp_path, monkeypatch
):
    for n in (1, 2):
        _progress.update(f"98.{n}", "exercise", count)
    text = exercises.progress.export()
    assert repr(text).splitlines()[0].startswith("For you alone: this text holds times.")
    monkeypatch.setenv("COURSE_HOME", str(tmp_path / "second"))
    assert repr(exercises.progress.load(text)) == "2 records added"
    assert repr(exercises.progress.load(text)) == "0 records added"
    assert len(_progress.read_all()) == 2
