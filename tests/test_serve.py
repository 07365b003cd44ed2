"""The service of 63 as a process: bad input, overload, the end of it, and nothing left behind."""

import json
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import psutil
import pytest
import torch
from torch import nn

from helpers import load, serving
from helpers._paths import ROOT
from helpers.data import load_digits
from helpers.onnx_export import digits_network, to_onnx

httpx = pytest.importorskip("httpx")
PIXELS = [round(16 * value) for value in load_digits().test.images[0].flatten().tolist()]
GOOD = json.dumps({"pixels": PIXELS}).encode()
JSON = {"Content-Type": "application/json"}


class Deploy(nn.Module):
    """The network with what stands before and after it."""

    def __init__(self):
        super().__init__()
        self.network = digits_network().eval()

    def forward(self, pixels):
        return self.network(pixels / 16).softmax(1)


@pytest.fixture(scope="module")
def model():
    return Deploy().eval()


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("a model") / "digits.onnx"
    path.write_bytes(to_onnx(model, torch.zeros(2, 64)))
    return path


@pytest.fixture(scope="module")
def server(file):
    with serving.start(file, body_timeout=0.5) as started:
        yield started


def post(server, body, **headers):
    with httpx.Client(trust_env=False, timeout=20) as client:
        return client.post(server.url + "/predict", content=body, headers=JSON | headers)


def changed(value, place=7):
    """Return the good request with another value in one place, as a text of JSON."""
    return (
        json.dumps({"pixels": [*PIXELS[:place], "?", *PIXELS[place + 1 :]]})
        .replace('"?"', value)
        .encode()
    )


BAD = {
    "no JSON": (b"{", 422),
    "nothing": (b"", 422),
    "no UTF-8": (b'{"pixels": "\xff"}', 400),
    "a list": (b"[1]", 422),
    "another key": (b'{"image": [1]}', 422),
    "63 pixels": (json.dumps({"pixels": PIXELS[1:]}).encode(), 422),
    "65 pixels": (json.dumps({"pixels": [0, *PIXELS]}).encode(), 422),
    "rows of 8": (json.dumps({"pixels": np.reshape(PIXELS, (8, 8)).tolist()}).encode(), 422),
    "not a list": (b'{"pixels": {"0": 1}}', 422),
    "NaN": (changed("NaN"), 422),
    "infinity": (changed("-Infinity"), 422),
    "beyond all floats": (changed("1e999"), 422),
    "a number of 3,000 digits": (changed("9" * 3_000), 422),
    "below the range": (changed("-0.5"), 422),
    "above the range": (changed("255"), 422),
    "text": (changed('"0.0"'), 422),
    "true": (changed("true"), 422),
    "null": (changed("null"), 422),
    "an item that is a list": (changed("[0]", 63), 422),
    "half a surrogate": (b'{"\\ud800": 1, "pixels": "\\ud800"}', 422),
    "deeply nested": (b'{"pixels":' + b"[" * 4_000, 422),
    "5,000 bytes": (GOOD + b" " * 5_000, 413),
    "a huge body": (b"[" + b"0," * 2**20 + b"0]", 413),
}


@pytest.mark.parametrize("name", BAD)
def test_each_bad_input_gets_a_4xx_with_a_reason_and_the_next_good_one_its_digit(server, name):
    body, status = BAD[name]
    answer = post(server, body)
    statuses = {400, 422} if name == "deeply nested" else {status}  # by Python's version
    assert answer.status_code in statuses, answer.text
    assert answer.json()["detail"]
    assert post(server, GOOD).status_code == 200


def test_a_reason_names_the_place_and_does_not_repeat_what_came(server):
    answer = post(server, changed("NaN"))
    assert answer.json() == {"detail": ["body.pixels.7: Input should be a finite number"]}
    many = post(server, json.dumps({"pixels": [99] * 64}).encode()).json()["detail"]
    assert many[0] == "body.pixels.0: Input should be less than or equal to 16"
    assert len(many) == 3


def test_other_types_paths_and_methods_get_a_4xx(server):
    assert post(server, GOOD, **{"Content-Type": "text/plain"}).status_code == 422
    with httpx.Client(trust_env=False, base_url=server.url) as client:
        assert client.get("/predict").status_code == 405
        assert client.get("/nowhere").status_code == 404


def talk(server, *parts, pause=0.0):
    """Send raw bytes, part by part; return the first line of the answer."""
    port = int(server.url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        return connection.recv(4096).partition(b"\r\n")[0].decode()


HEAD = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def test_a_large_body_is_refused_whether_declared_or_in_chunks(server):
    assert "413" in talk(server, HEAD + b"Content-Length: 99999999\r\n\r\n")
    chunk = b"1000\r\n" + b" " * 4096 + b"\r\n"
    assert "413" in talk(server, HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + chunk)


def test_a_late_body_gets_408_and_a_slow_one_in_time_its_digit(server):
    head = HEAD + f"Content-Length: {len(GOOD)}\r\n\r\n".encode()
    assert "408" in talk(server, head + GOOD[:10])
    assert "200" in talk(server, head, GOOD[:50], GOOD[50:], pause=0.05)


def test_garbage_and_a_negative_length_get_400(server):
    assert "400" in talk(server, b"\x16\x03\x01\x00\x00\r\n\r\n")
    assert "400" in talk(server, HEAD + b"Content-Length: -5\r\n\r\n")


def test_a_caller_who_leaves_in_the_middle_harms_nobody(server):
    port = int(server.url.rpartition(":")[2])
    for sent in (HEAD[:20], HEAD + b"Content-Length: 400\r\n\r\n{"):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
            connection.sendall(sent)
    assert post(server, GOOD).status_code == 200


def test_the_answer_is_that_of_the_model(server, model):
    images = load_digits().test.images[:40].flatten(1) * 16
    bodies = [json.dumps({"pixels": row}).encode() for row in images.tolist()]
    found = load.open_loop(server.url + "/predict", bodies, rate=400, seconds=0.1)
    count = len(found.answers)
    assert count == len(found.requests)
    scores = torch.tensor([answer["scores"] for answer in found.answers])
    torch.testing.assert_close(scores, model(images[torch.arange(count) % 40]))
    assert [a["digit"] for a in found.answers] == scores.argmax(1).tolist()


def test_it_listens_on_127_0_0_1_only_and_tells_its_health_and_its_counts(server):
    listening = [c.laddr.ip for c in psutil.Process(server.process.pid).net_connections()
                 if c.status == psutil.CONN_LISTEN]  # fmt: skip
    assert listening == ["127.0.0.1"]
    assert json.loads(server.get("/health")) == {"status": "ok", "waiting": 0}
    before = read_metrics(server)
    assert post(server, GOOD).status_code == 200
    assert post(server, b"{").status_code == 422
    after = read_metrics(server)
    grown = {name: int(after[name] - before.get(name, 0)) for name in after}
    assert grown['answers{status="422"}'] == grown["rows"] == grown["batches"] == 1
    assert grown["waiting"] == 0


def read_metrics(server):
    lines = server.get("/metrics").splitlines()
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_rows_that_wait_share_a_batch_and_a_full_queue_answers_503(file):
    with serving.start(file, pad_ms=300, max_batch=4, max_queue=8) as slow:
        with ThreadPoolExecutor(24) as pool:
            answers = list(pool.map(lambda _: post(slow, GOOD), range(24)))
        health = json.loads(slow.get("/health"))
    refused = [answer for answer in answers if answer.status_code == 503]
    taken = [answer for answer in answers if answer.status_code == 200]
    assert len(refused) + len(taken) == 24
    assert {answer.headers["Retry-After"] for answer in refused} == {"1"}
    assert refused[0].json() == {"detail": "8 requests are waiting; try again later"}
    assert max(answer.json()["rows"] for answer in taken) == 4
    assert health == {"status": "ok", "waiting": 0}


def test_a_window_gathers_rows_that_come_one_by_one(file):
    with serving.start(file, window_ms=400) as patient:
        found = load.open_loop(patient.url + "/predict", [GOOD], rate=100, seconds=0.1)
    assert max(answer["rows"] for answer in found.answers) > 1


def stopped(file, how, **options):
    """Load a slow server, end it while requests wait; return the load and the ended server."""
    with serving.start(file, pad_ms=100, max_batch=1, **options) as server:
        found = load.open_loop(
            server.url + "/predict", [GOOD], rate=60, seconds=0.25,
            events={0.6: lambda: getattr(server, how)()},
        )  # fmt: skip
        server.process.wait(20)
    return found, server


def test_sigterm_finishes_what_is_in_flight_then_the_port_is_closed(file):
    found, server = stopped(file, "stop")
    assert set(found.statuses) == {200}
    assert len(found.requests) > 8
    assert found.seconds > 0.9  # it had to wait for answers after the signal
    after = load.closed_loop(server.url + "/predict", [GOOD], count=3)
    assert after.statuses == {"refused": 3}


def test_sigkill_loses_what_is_in_flight(file):
    found, _ = stopped(file, "kill")
    assert found.statuses["lost"] > 0


def test_a_grace_that_is_too_short_answers_500_or_breaks_off(file):
    found, server = stopped(file, "stop", grace=0.2)
    assert sum(n for status, n in found.statuses.items() if status != 200) > 0
    assert not server.running


def test_a_freeze_ends_and_close_ends_even_a_frozen_server(file):
    with serving.start(file) as server:
        events = {0.2: lambda: server.freeze(0.5)}
        found = load.closed_loop(server.url + "/predict", [GOOD], seconds=1, events=events)
        assert set(found.statuses) == {200}
        assert found.latency(1) > 0.3
        psutil.Process(server.process.pid).suspend()
        server.close(wait=0.5)
    assert repr(server) == "Server: ended"
    assert not psutil.pid_exists(server.process.pid)


def test_it_ends_when_its_owner_is_killed(file):
    program = (
        f"import sys, time; sys.path.insert(0, {str(ROOT)!r})\n"
        "from helpers import serving\n"
        f"server = serving.start({str(file)!r})\n"
        "print(server.process.pid, flush=True)\n"
        "time.sleep(60)"
    )
    owner = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    served = psutil.Process(int(owner.stdout.readline()))
    owner.kill()
    owner.wait(10)
    owner.stdout.close()
    psutil.wait_procs([served], timeout=20)
    assert not served.is_running() or served.status() == psutil.STATUS_ZOMBIE


def test_what_does_not_start_says_why_and_leaves_nothing(file, tmp_path):
    before = {child.pid for child in psutil.Process().children()}
    with pytest.raises(FileNotFoundError, match=r"model must be an ONNX file, got .*nowhere"):
        serving.start(tmp_path / "nowhere.onnx")
    with pytest.raises(RuntimeError, match=r"60 s: .*unrecognized arguments: --colour 1048576"):
        serving.start(file, colour=2**20)
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    with pytest.raises(RuntimeError, match=r"must answer within 60 s: .*INVALID_PROTOBUF"):
        serving.start(broken)
    with pytest.raises(RuntimeError, match=r"must answer within 0.01 s: it said nothing"):
        serving.start(file, wait=0.01)
    left = {child.pid for child in psutil.Process().children()} - before
    assert not left
