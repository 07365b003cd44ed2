"""The load client: what it counts as a latency, and that it does not wait for the server."""

import contextlib
import gc
import http.server
import json
import math
import random
import threading
import time

import pytest

from helpers import load
from helpers.load import Load, Request

pytest.importorskip("httpx")


@contextlib.contextmanager
def serve(answer):
    """Run a small server in this process; `answer(number)` returns a status, or None to break."""
    numbers = iter(range(10**6))

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            status = answer(next(numbers))
            if status is None:
                return
            data = json.dumps({"got": json.loads(body)}).encode()
            self.send_response(status)
            self.send_header("Server-Timing", "model;dur=2.5")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()


def test_open_loop_sends_on_schedule_while_the_server_waits():
    release = threading.Event()
    with serve(lambda number: release.wait(20) and 200) as url:
        found = load.open_loop(url, [b"1", b"2"], rate=50, seconds=0.3, events={0.6: release.set})
    assert len(found.requests) > 5
    assert found.statuses == {200: len(found.requests)}
    assert max(r.sent for r in found.requests) < 0.6 <= min(r.finished for r in found.requests)
    assert found.latency(1) > 0.5
    assert [a["got"] for a in found.answers[:4]] == [1, 2, 1, 2]


def test_closed_loop_sends_the_next_one_after_the_answer():
    def slow(number):
        time.sleep(0.05)
        return 200

    with serve(slow) as url:
        found = load.closed_loop(url, [b"1"], count=4)
        timed = load.closed_loop(url, [b"1"], seconds=0.2)
    assert len(found.requests) == 4
    pairs = zip(found.requests, found.requests[1:], strict=False)
    assert all(one.finished <= two.sent for one, two in pairs)
    assert found.lateness < 0.01
    assert 1 <= len(timed.requests) <= 4
    assert found.requests[0].model_seconds == 0.0025


@pytest.mark.parametrize("collects", [True, False])
def test_the_collector_rests_during_a_load_and_is_then_as_before(collects):
    seen = []
    with serve(lambda number: seen.append(gc.isenabled()) or 200) as url:
        (gc.enable if collects else gc.disable)()
        try:
            load.closed_loop(url, [b"1"], count=1)
            after = gc.isenabled()
        finally:
            gc.enable()
    assert (seen, after) == ([False], collects)


def test_each_end_of_a_request_has_its_name():
    statuses = {0: 200, 1: 503, 2: None}

    def answer(number):
        if number == 3:
            time.sleep(1)
        return statuses.get(number, 200)

    with serve(answer) as url:
        found = load.closed_loop(url, [b"1"], count=4, timeout=0.5)
    gone = load.closed_loop(url, [b"1"], count=1)
    assert [r.status for r in found.requests] == [200, 503, "lost", "timeout"]
    assert gone.statuses == {"refused": 1}
    assert repr(found) == "4 requests: 1 x 200, 1 x 503, 1 x lost, 1 x timeout"
    assert [r.finished is None for r in found.requests] == [False, False, True, True]
    assert found.latency(1) == math.inf
    assert len(found.only(503).requests) == 1


def test_latency_counts_from_the_schedule_and_only_good_answers_are_in_time():
    requests = (
        Request(0.0, 0.4, 0.5, 200),
        Request(1.0, 1.0, 1.1, 200),
        Request(2.0, 2.0, 2.0, 503),
        Request(3.0, 3.0, None, "timeout"),
    )
    found = Load(requests, 4.0)
    assert [r.latency for r in requests] == [0.5, pytest.approx(0.1), 0.0, math.inf]
    assert (found.in_time(0.2), found.in_time(0.5), found.in_time(math.inf)) == (1, 2, 2)
    assert found.lateness == 0.4


def test_ask_returns_status_and_text_of_a_server_and_of_an_application():
    from fastapi import FastAPI

    application = FastAPI()

    @application.post("/predict")
    def predict(number: float):
        return 1 / number

    assert load.ask(application, [b"{}"])[0][0] == 422
    with serve(lambda number: [200, 404][number]) as url:
        assert load.ask(url, [b"1", b"2"]) == ((200, '{"got": 1}'), (404, '{"got": 2}'))

    broken = FastAPI()

    @broken.post("/predict")
    def divide():
        raise ZeroDivisionError

    assert load.ask(broken, [b"{}", b""]) == ((500, "Internal Server Error"),) * 2


def test_percentile_is_the_nearest_rank():
    values = [float(n) for n in range(1, 101)]
    random.Random(0).shuffle(values)
    assert [load.percentile(values, share) for share in (0.5, 0.99, 1)] == [50, 99, 100]
    assert load.percentile([3.0], 0.01) == 3.0
    with pytest.raises(ValueError, match="share must be above 0 and at most 1, got 99; use 0.99"):
        load.percentile(values, 99)
    with pytest.raises(ValueError, match="at least one latency, got none"):
        load.percentile([], 0.5)


def test_arrivals_have_the_rate_and_repeat_with_the_seed():
    found = load._arrivals(100, 50, random.Random(1))
    assert found == load._arrivals(100, 50, random.Random(1)) == sorted(found)
    assert 4_500 < len(found) < 5_500
    assert load._arrivals(0.001, 0.1, random.Random(1)) == [0.0]


def test_what_cannot_be_sent_is_refused():
    with pytest.raises(ValueError, match="rate must be positive, got 0; use 20 per second"):
        load.open_loop("http://127.0.0.1:9", [b""], rate=0, seconds=1)
    with pytest.raises(ValueError, match="seconds must be positive, got -1"):
        load.open_loop("http://127.0.0.1:9", [b""], rate=1, seconds=-1)
    with pytest.raises(ValueError, match="seconds or count must be given, got neither"):
        load.closed_loop("http://127.0.0.1:9", [b""])


def test_the_figure_tells_median_and_p99_and_leaves_out_what_has_no_answer():
    one = Load((Request(0, 0, 0.01, 200), Request(1, 1, 1.02, 200)), 2.0)
    two = Load((Request(0, 0, 0.1, 200), Request(1, 1, None, "lost")), 2.0)
    chart = load.plot_latencies("Two clients", {"closed": one, "open": one}, caption="here")
    assert chart.rows[0] == ("closed", "2", "10.0 ms", "20.0 ms")
    with pytest.raises(ValueError, match="one or two loads with requests"):
        load.plot_latencies("None", {})
    with pytest.raises(ValueError, match="one or two loads with requests"):
        load.plot_latencies("Empty", {"none": Load((), 1.0)})
    drawn = load.plot_latencies("A lost one", {"open": two})
    assert len(drawn.axes.lines[0].get_xdata()) == 1
