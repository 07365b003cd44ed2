"""TensorBoard as a process: it answers, keeps a sample, ends, and leaves nothing behind."""

import socket
import subprocess
import sys
import urllib.request
from urllib.parse import urlsplit

import psutil
import pytest
from torch.utils.tensorboard import SummaryWriter

from helpers import board as boards
from helpers._paths import ROOT


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("some runs")
    with SummaryWriter(str(place / "spike")) as writer:
        for step in range(3_000):
            writer.add_scalar("loss", 50.0 if step == 1_234 else 1.0, step)
    return place


@pytest.fixture(scope="module")
def board(folder):
    started = boards.start(folder)
    yield started
    started.close()


def test_it_is_another_process_and_answers_on_127_0_0_1_only(board):
    assert board.running
    assert psutil.Process(board.process.pid).ppid() == psutil.Process().pid
    assert urlsplit(board.url).hostname == "127.0.0.1"
    listening = [c.laddr.ip for c in psutil.Process(board.process.pid).net_connections()
                 if c.status == psutil.CONN_LISTEN]  # fmt: skip
    assert listening == ["127.0.0.1"]
    assert b"<title>TensorBoard" in urllib.request.urlopen(board.url, timeout=10).read()


def test_it_keeps_a_thousand_points_and_always_the_last(board):
    points = board.scalars("spike", "loss", until=2_999)
    assert board.runs() == ["spike"]
    assert len(points) == 1_000
    assert points == sorted(points)
    assert points[-1] == (2_999, 1.0)


def test_a_step_that_never_comes_ends_the_wait(board):
    with pytest.raises(TimeoutError, match=r"step 5000 of 'loss' in run 'spike' must arrive within "
                       r"0.3 s, the last was 2999; was the writer flushed"):  # fmt: skip
        board.scalars("spike", "loss", until=5_000, wait=0.3)
    with pytest.raises(TimeoutError, match="the last was none"):
        board.scalars("spike", "no such tag", until=1, wait=0.3)


def test_a_second_start_closes_the_first_and_close_leaves_nothing(folder):
    one = boards.start(folder)
    two = boards.start(folder, points=10**6)
    assert not one.running
    assert repr(one) == one._repr_html_() == "TensorBoard: closed"
    assert two.url in repr(two)
    assert f'href="{two.url}"' in two._repr_html_()
    points = two.scalars("spike", "loss", until=2_999)
    assert (len(points), max(value for _, value in points)) == (3_000, 50.0)
    family = [two.process.pid, *(p.pid for p in psutil.Process(two.process.pid).children())]
    two.close()
    two.close()
    assert not any(map(psutil.pid_exists, family))
    with socket.socket() as probe:  # its port is free again
        assert probe.connect_ex(("127.0.0.1", urlsplit(two.url).port)) != 0


def test_it_ends_when_its_owner_is_killed(folder):
    program = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from helpers import board\n"
        f"print(board.start({str(folder)!r}).process.pid, flush=True)\n"
        "time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    served = psutil.Process(int(owner.stdout.readline()))
    owner.kill()
    owner.wait(10)
    owner.stdout.close()
    psutil.wait_procs([served], timeout=20)
    assert not served.is_running() or served.status() == psutil.STATUS_ZOMBIE


def test_the_files_hold_every_point(folder, tmp_path):
    points = boards.read_points(folder / "spike")
    assert [step for step, _ in points] == list(range(3_000))
    assert points[1_234][1] == 50.0
    assert boards.read_points(folder / "spike", "no such tag") == []
    assert boards.read_points(tmp_path) == []


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="folder must exist, got .*nowhere.*log something"):
        boards.start(tmp_path / "nowhere")


def test_points_below_one_are_refused(folder):
    with pytest.raises(ValueError, match="points must be at least 1, got 0; 10\\*\\*9 keeps all"):
        boards.start(folder, points=0)


def test_a_server_that_does_not_start_says_why(folder, monkeypatch, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('no tensorboard here')")
    monkeypatch.setattr(boards, "_SERVER", broken)
    with pytest.raises(RuntimeError, match="TensorBoard must answer within 60 s: no tensorboard"):
        boards.start(folder)
    broken.write_text("import time; time.sleep(60)")
    with pytest.raises(RuntimeError, match="within 0.5 s: it said nothing"):
        boards.start(folder, wait=0.5)
    assert not any("broken.py" in " ".join(c.cmdline()) for c in psutil.Process().children())


def test_the_figure_tells_both_numbers_and_both_maxima():
    logged = [(n, 50.0 if n == 7 else 1.0) for n in range(20)]
    chart = boards.plot_kept("One spike", logged, logged[::10], caption="every tenth")
    assert chart.rows == (("logged", "20", "50"), ("kept", "2", "1"))
    assert [len(line.get_xdata()) for line in chart.axes.lines] == [20, 2]
    with pytest.raises(ValueError, match="got nothing to draw"):
        boards.plot_kept("None", logged, [])
