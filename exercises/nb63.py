"""Ask and check what 63_serve_a_model teaches."""

import json
import math
import random
from collections import defaultdict
from concurrent.futures import Future, InvalidStateError

import numpy as np

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "63.p1": Number(
        question="One caller, nobody else. What share of the time until its answer is the model "
        "at work?",
        unit="%",
        notes=(
            (0, 1, "This model is small, but it is not that small."),
            (1, 25, "Right: the rest is HTTP, JSON, validation and two changes of thread."),
            (25, 50, "It is less: a thousandth of a second is long for so small a model."),
            (50, 101, "That is so for a large model. This one has 9,866 numbers."),
            (101, float("inf"), "A part of the time is at most 100 % of it."),
        ),
    ),
    "63.p2": Number(
        question="The server freezes for 1 s. A client sends for 3 s, the next request when the "
        "last one is answered. What 99th percentile does it report?",
        unit="s",
        notes=(
            (0, 0.2, "Right: of its hundreds of requests, one met the freeze."),
            (0.2, 0.8, "No request waited so long: one waited for all of it, the others for none."),
            (0.8, 2, "One request did wait so long. The 99th percentile leaves one in 100 out."),
            (2, float("inf"), "Nobody waits longer than the freeze and an answer."),
        ),
    ),
    "63.p3": Choice(
        question="6 requests per second, and a run of the model takes 50 ms. A window of 100 ms "
        "lets more rows join a batch. What becomes of the median latency?",
        options={
            "lower": "Batches help where requests wait for the model. At 6 per second it idles.",
            "the same": "The first row of each batch now waits until its window closes.",
            "higher by about the window": "Right: the model was idle, and now it waits first.",
        },
    ),
    "63.p4": Number(
        question="40 requests per second for 3 s, the server can do 20. Callers hang up after "
        "0.5 s, the queue has no bound. How many percent get an answer?",
        unit="%",
        among=100,
        notes=(
            (0, 35, "Right: soon whoever is next in the queue has hung up already, always."),
            (35, 66, "The server computes that many answers, most for callers who have left."),
            (66, 101, "It cannot: half of them find no time at all in those 3 s."),
        ),
    ),
    "63.p5": Choice(
        question="One pixel is NaN. What does the naive server answer?",
        options={
            "a digit": "Right: status 200, and a digit, as if nothing were wrong.",
            "422": "NaN is no JSON, says RFC 8259. Python's parser reads it all the same.",
            "500": "Nothing raises: the model computes with NaN, and argmax finds a place.",
        },
    ),
    "63.p6": Choice(
        question="SIGTERM arrives while requests wait in the queue. How many of those accepted are "
        "lost?",
        options={
            "none": "Right: the server stops to accept, answers what it has, and ends.",
            "those in the queue": "The queue is memory of the process, and the process lives on "
            "until it is empty.",
            "all that wait": "That is SIGKILL: no code of the process runs any more.",
        },
    ),
}


def _kind(value):
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


# --- 63.1 -------------------------------------------------------------------------------


def _trace(count, lost):
    """Make one load test with a freeze in it; `lost` requests have no answer."""
    scheduled = sorted(random.uniform(0, 8) for _ in range(count))
    sent = [due + random.uniform(0, 0.002) for due in scheduled]
    finished = [start + random.uniform(0.003, 0.02) for start in sent]
    for n, due in enumerate(scheduled):
        if 3 < due < 3.4:  # the client itself was held up
            sent[n] = max(sent[n], 4 + random.uniform(0, 0.1))
            finished[n] = sent[n] + random.uniform(0.003, 0.02)
    for n in random.sample(range(count), lost):
        finished[n] = None
    order = random.sample(range(count), count)
    return [[column[n] for n in order] for column in (scheduled, sent, finished)]


def _rank(values, share=0.99):
    return sorted(values)[math.ceil(share * len(values) - 1e-9) - 1]


def test_p99(answer, call):
    for count, lost in ((200, 0), (300, 2), (137, 1), (200, 30), (1, 0)):
        scheduled, sent, finished = _trace(count, lost)
        rows = list(zip(scheduled, sent, finished, strict=True))
        truth = _rank([math.inf if f is None else f - s for s, _, f in rows])
        got = _call_p99(answer, call, scheduled, sent, finished)
        if got != truth and not abs(got - truth) <= 1e-9:
            case = f"{count} requests, {lost} without an answer: it is {truth:.4g} s, got {got:.4g}"
            raise Wrong(f"{case}. {_why_p99(got, rows)}")


def _call_p99(answer, call, *trace):
    try:
        got = call(answer, *(list(column) for column in trace))
    except TypeError as error:
        if "NoneType" not in str(error):
            raise
        raise Wrong(
            "Some finished is None: nobody answered. Such a caller waited longer than all others: "
            "count math.inf."
        ) from None
    if isinstance(got, bool) or not isinstance(got, int | float | np.number):
        raise Wrong(f"Return seconds, a number, got {_kind(got)}")
    return float(got)


def _why_p99(got, rows):
    answered = [(due, start, end) for due, start, end in rows if end is not None]
    full = [math.inf if end is None else end - due for due, _, end in rows]
    seconds = defaultdict(list)
    for due, _, end in answered:
        seconds[int(due)].append(end - due)
    own = [math.inf if end is None else end - start for _, start, end in rows]
    misses = [
        (_rank(own), "You count from sent. The wait before sending is the user's too: count from "
         "scheduled."),
        (_rank([e - s for s, _, e in answered]), "You dropped those without an answer: the worst "
         "vanished. Count math.inf for them."),
        (_rank([e - s for _, s, e in answered]), "You count from sent, and the worst vanished: "
         "the wait before sending is the user's too, and None is math.inf."),
        (sum(full) / len(full), "That is the mean: 1 % can hide in it."),
        (sum(e - s for s, _, e in answered) / len(answered), "That is the mean, of the answered."),
        (max(full), "That is the largest. One request in 100 may be slower than the p99."),
        (sum(map(_rank, seconds.values())) / len(seconds), "You averaged over seconds, and "
         "percentiles do not average: sort all requests together."),
    ]  # fmt: skip
    near = [why for value, why in misses if got == value or abs(got - value) <= 1e-9]
    return near[0] if near else (
        "Sort the latencies and take the one at place ceil(0.99 * n), counted from 1: a value "
        "that some request had, with no average between two."
    )  # fmt: skip


_P99 = "import math\n\ndef p99(scheduled, sent, finished):\n"
_P99_BODY = (
    "    latencies = sorted(\n"
    "        math.inf if end is None else end - due\n"
    "        for due, end in zip(scheduled, finished)\n"
    "    )\n"
    "    return latencies[math.ceil(0.99 * len(latencies) - 1e-9) - 1]\n"
)


def _p99(old="", new=""):
    assert old in _P99_BODY
    return _P99 + _P99_BODY.replace(old, new)


# --- 63.2 -------------------------------------------------------------------------------


def _last_answer(waiting, service_ms, batch):
    """Return when the last of so many is answered, if a run has begun."""
    clock = service_ms
    while waiting > 0:
        waiting, clock = waiting - batch, clock + service_ms
    return clock


def _largest_queue(deadline_ms, service_ms, batch):
    length = 0
    while _last_answer(length + 1, service_ms, batch) <= deadline_ms:
        length += 1
    return length


def test_max_queue(answer, call):
    cases = [(500, 50, 8), (500, 50, 1), (480, 50, 8), (100, 50, 4), (99, 50, 4), (30, 50, 2)]
    for _ in range(12):
        cases.append(tuple(random.randint(*ends) for ends in ((20, 900), (5, 120), (1, 16))))
    for case in cases:
        got = call(answer, *case)
        if isinstance(got, bool) or not isinstance(got, int | np.integer):
            raise Wrong(f"Return a number of requests, an int, got {_kind(got)}")
        truth = _largest_queue(*case)
        if got != truth:
            named = "deadline {} ms, {} ms for a run, batch {}".format(*case)
            raise Wrong(f"{named}: {truth} may wait, got {got}. {_why_queue(got, *case)}")


def _why_queue(got, deadline, service, batch):
    runs = deadline // service
    if got < 0:
        return "A queue has at least 0 places: the deadline is over before a run is."
    up = max(0, (-(-deadline // service) - 1) * batch)
    misses = (
        (max(0, runs - 1), "Each run frees a whole batch of places."),
        (up, "You rounded up: the last caller has hung up when the answer comes."),
        (runs * batch, "One run has begun when you come, and takes its time before yours."),
        (runs, "One run has begun already, and each run frees a whole batch."),
        (deadline * batch // service, "Only whole runs count, and one has begun when you come."),
        (
            deadline * batch // service - batch,
            "Only whole runs count: round down first, then multiply by the batch.",
        ),
    )
    near = [why for value, why in misses if value == got]
    return (near or ["Count the whole runs until the deadline, less the one that has begun."])[0]


_QUEUE = "def max_queue(deadline_ms, service_ms, batch):\n"


# --- 63.3 -------------------------------------------------------------------------------


class _Model:
    """Answer rows, all or none; note the calls. A caller may hang up while it works."""

    def __init__(self, leaves=None):
        self.calls, self.leaves = [], leaves

    def run(self, rows):
        rows = list(rows)
        self.calls.append(rows)
        if self.leaves is not None:
            self.leaves.cancel()
        if not rows:
            raise ValueError("an empty batch")
        if any(not math.isfinite(row) for row in rows):
            raise ValueError("a row is not finite")
        return [10 * row + 1 for row in rows]


def _waiting(count, *, bad=(), left=()):
    rows = random.sample(range(100), count)
    waiting = [(math.nan if n in bad else rows[n], Future()) for n in range(count)]
    for n in left:
        waiting[n][1].cancel()
    return waiting


def test_settle(answer, call):
    for bad, left in (((), ()), ((3,), ()), ((), (0, 5)), ((6, 2), (4,)), ((0,), (7,))):
        waiting, model = _waiting(8, bad=bad, left=left), _Model()
        _settle(answer, call, model, waiting)
        _look_at_settled(waiting, bad, left)
        _look_at_calls(model, waiting, bad, left)
    for waiting in ([], _waiting(3, left=(0, 1, 2))):
        model = _Model()
        _settle(answer, call, model, waiting)
        if model.calls:
            raise Wrong("Nobody waits any more, and yet the model ran, on an empty or dead batch.")
    waiting = _waiting(4)
    _settle(answer, call, _Model(leaves=waiting[1][1]), waiting)
    _look_at_settled(waiting, (), (1,))
    waiting = _waiting(4, bad=(3,))
    _settle(answer, call, _Model(leaves=waiting[1][1]), waiting)
    _look_at_settled(waiting, (3,), (1,))


def _settle(answer, call, model, waiting):
    try:
        call(answer, model.run, waiting)
    except InvalidStateError:
        raise Wrong(
            "A caller hung up, and setting its future raised: those behind it got nothing. It may "
            "also hang up while the model runs: look at future.done() right before you set it."
        ) from None
    except ValueError as error:
        if "row is not finite" not in str(error) and "empty batch" not in str(error):
            raise
        raise Wrong(
            f"“{error}” left settle, and would end the loop that serves all later requests. Put "
            "an error into the future of its row; run nothing when nobody waits."
        ) from None


def _look_at_settled(waiting, bad, left):
    open_ = [n for n, (_, future) in enumerate(waiting) if not future.done()]
    if open_:
        raise Wrong(
            f"{len(waiting)} callers came, {len(open_)} futures are still open: those wait for "
            "ever. Set a result or an exception for each."
        )
    settled = [(n, row, f) for n, (row, f) in enumerate(waiting) if n not in left]
    innocent = [n for n, _, future in settled if n not in bad and future.exception()]
    if innocent:
        raise Wrong(
            f"{len(innocent)} innocent callers got the error of another row. When a batch raises, "
            "run each row by itself."
        )
    for n, row, future in settled:
        if n in bad:
            if future.exception() is None:
                raise Wrong(
                    f"The row of caller {n} is bad, and it got {future.result()!r}. Give its "
                    "future the exception."
                )
        elif future.result() != 10 * row + 1:
            raise Wrong(
                f"Caller {n} sent {row} and got {future.result()!r}, it is {10 * row + 1}. Keep "
                "each row with its own future when you leave some out, and take result for result."
            )


def _look_at_calls(model, waiting, bad, left):
    live = [row for n, (row, _) in enumerate(waiting) if n not in left]
    if len(model.calls[0]) > len(live):
        raise Wrong(
            "The model computed a row whose caller has hung up. Leave out what is done before "
            "you run."
        )
    if not bad and len(model.calls) > 1:
        raise Wrong(
            f"{len(live)} good rows took {len(model.calls)} runs: a batch is one run. Run them "
            "one by one only after it has raised."
        )


_SETTLE_STUB = (
    "def settle(run, waiting):\n"
    "    rows = [row for row, _ in waiting]\n"
    "    try:\n"
    "        results = run(rows)\n"
    "    except ValueError as error:\n"
    "        for _, future in waiting:\n"
    "            future.set_exception(error)\n"
    "        return\n"
    "    for (_, future), result in zip(waiting, results, strict=True):\n"
    "        future.set_result(result)\n"
)
_SETTLE = (
    "def settle(run, waiting):\n"
    "    waiting = [(row, future) for row, future in waiting if not future.done()]\n"
    "    if not waiting:\n"
    "        return\n"
    "    try:\n"
    "        results = run([row for row, future in waiting])\n"
    "    except ValueError as error:\n"
    "        if len(waiting) > 1:\n"
    "            for one in waiting:\n"
    "                settle(run, [one])\n"
    "        elif not waiting[0][1].done():\n"
    "            waiting[0][1].set_exception(error)\n"
    "        return\n"
    "    for (_, future), result in zip(waiting, results, strict=True):\n"
    "        if not future.done():\n"
    "            future.set_result(result)\n"
)


def _settled(*changes):
    source = _SETTLE
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


# --- 63.4 -------------------------------------------------------------------------------

_LIMIT = 4096


def _good_pixels():
    return [random.choice([0, 16, random.randint(1, 15), random.uniform(0, 16)]) for _ in range(64)]


def _one(item):
    """Return a body with another item in one place, as JSON text."""
    pixels = [json.dumps(pixel) for pixel in _good_pixels()]
    pixels[random.randint(1, 63)] = item
    return '{"pixels": [' + ", ".join(pixels) + "]}"


def _bad_bodies():
    """Return what is wrong, the body, the status it deserves, and the sentence for a pass."""
    pixels = _good_pixels()
    whole = "A check of the type of each item would refuse it."
    return (
        ("NaN", _one("NaN"), "json.loads reads NaN, and each comparison with it is False."),
        ("a pixel of 255", _one("255"), "The range is 0 to 16: refuse, do not guess or clip."),
        ("Infinity", _one("Infinity"), "json.loads reads Infinity. The range ends at 16."),
        ("a pixel of -0.5", _one("-0.5"), "The range is 0 to 16: refuse, do not guess or clip."),
        ("true", _one("true"), "A bool is an int in Python: ask for bool first."),
        ('"0.0"', _one('"0.0"'), f"A text is no number. {whole}"),
        ("null", _one("null"), whole),
        ("1,000 letters in a pixel", _one('"' + "x" * 1000 + '"'), whole),
        ("a list", _one("[1]"), f"64 items, and one of them is a list. {whole}"),
        ("63 pixels", json.dumps({"pixels": pixels[1:]}), "Count them: 64 are needed."),
        ("65 pixels", json.dumps({"pixels": [*pixels, 0]}), "Count them: 64 are needed."),
        ("text of 64 letters", json.dumps({"pixels": "7" * 64}), "64 letters are no list."),
        ("no key", json.dumps({"image": pixels}), "pixels is missing."),
        ("a list as the body", json.dumps(pixels), "The body is no dict."),
        ("a number as the body", "7", "The body is no dict."),
        ("no JSON", "{", "That is no JSON."),
        ("no bytes", "", "That is no JSON."),
        ("bytes that are no UTF-8", b"\xff\xfe\xff", "That is no text."),
        ("deep brackets", "[" * 4000, "json.loads raises RecursionError for it."),
        ("2,000 digits in one number", _one("9" * 2000), "A number beyond all floats."),
        ("half a surrogate", json.dumps({"pixels": ["\ud800"] * 64}), whole),
    )


def test_parse(answer, call):
    for _ in range(3):
        pixels = _good_pixels()
        got = _parse(answer, call, "a good body", json.dumps({"pixels": pixels}).encode())
        if _is_refusal(got):
            raise Wrong(f"A good body was refused: {got!r:.80}. Whole numbers from 0 to 16 count.")
        if not isinstance(got, list) or got != pixels:
            raise Wrong(
                f"A good body must give the list of its 64 numbers, unchanged, got {_brief(got)}"
            )
        full = json.dumps({"pixels": pixels}).encode().ljust(_LIMIT)
        if _parse(answer, call, "a body of 4,096 bytes", full) != pixels:
            raise Wrong("A good body of exactly 4,096 bytes was refused: 413 is for more.")
        got = _parse(answer, call, "a long body", b" " * _LIMIT + json.dumps(pixels).encode())
        if not _is_refusal(got) or got[0] != 413:
            raise Wrong("A body above 4,096 bytes gets 413. Ask for its length before you parse.")
        for name, body, why in _bad_bodies():
            body = body if isinstance(body, bytes) else body.encode()
            _look_at_parsed(_parse(answer, call, name, body), name, why)


def _parse(answer, call, name, body):
    try:
        return call(answer, body)
    except Exception as error:
        if isinstance(error, Wrong):
            raise
        raise Wrong(
            f"{name}: {type(error).__name__} came out of parse, and the caller would get 500. "
            "Whatever the body is, return (422, reason)."
        ) from None


def _is_refusal(got):
    return isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], int)


def _look_at_parsed(got, name, why):
    if got is None:
        raise Wrong(f"{name}: got None: is a return missing?")
    if not _is_refusal(got):
        raise Wrong(f"{name} was accepted, or the answer is no (status, reason). {why}")
    status, reason = got
    if status != 422:
        raise Wrong(f"{name}: the status is 422, got {status}. 5xx would blame the server.")
    if not isinstance(reason, str) or not reason.strip():
        raise Wrong(
            f"{name}: the reason is a text in your own words, got {_brief(reason)} A NaN that you "
            "send back is no JSON."
        )
    if len(reason) > 200 or not reason.isprintable():
        raise Wrong(
            f"{name}: the reason repeats what came. Its length and its characters are the "
            "caller's then: name the place and the rule."
        )


def _brief(value):
    return "None." if value is None else f"{type(value).__name__}."


_PARSE = (
    "import json\n\n"
    "def parse(body):\n"
    "    if len(body) > 4096:\n"
    '        return 413, "at most 4,096 bytes"\n'
    "    try:\n"
    "        data = json.loads(body)\n"
    "    except (ValueError, RecursionError):\n"
    '        return 422, "this is no JSON"\n'
    '    pixels = data.get("pixels") if isinstance(data, dict) else None\n'
    "    if not isinstance(pixels, list) or len(pixels) != 64:\n"
    '        return 422, "pixels must be a list of 64 numbers"\n'
    "    for place, pixel in enumerate(pixels):\n"
    "        if isinstance(pixel, bool) or not isinstance(pixel, (int, float)):\n"
    '            return 422, f"pixel {place} must be a number"\n'
    "        if not 0 <= pixel <= 16:\n"
    '            return 422, f"pixel {place} must be from 0 to 16"\n'
    "    return pixels\n"
)


def _parsed(*changes):
    source = _PARSE
    for old, new in changes:
        assert old in source
        source = source.replace(old, new)
    return source


EXERCISES = {
    "63.1": Exercise(
        title="Report an honest 99th percentile",
        minutes=6,
        task="Three lists of seconds, one item for each request. `finished` is None where no "
        "answer came: such a caller waits for ever. Return the smallest latency that 99 of 100 "
        "requests do not exceed, as their users feel it.",
        stub="def p99(scheduled, sent, finished):\n"
        '    """Return the 99th percentile of the latency, in seconds."""\n    ...\n',
        answer="p99",
        test=test_p99,
        hints=(
            "Another request without an answer must never make the result lower.",
            "A client was held up for a second and sent late. finished - sent knows nothing of it.",
            "latencies = sorted(math.inf if end is None else end - due for ...)",
        ),
        solution=_p99(),
        wrong=(
            WrongAnswer(
                "from sent",
                _p99("zip(scheduled, finished)", "zip(sent, finished)"),
                "The wait before sending is the user's too",
            ),
            WrongAnswer(
                "timeouts dropped",
                _p99(
                    "math.inf if end is None else end - due\n"
                    "        for due, end in zip(scheduled, finished)\n",
                    "end - due\n        for due, end in zip(scheduled, finished)\n"
                    "        if end is not None\n",
                ),
                "the worst vanished",
            ),
            WrongAnswer(
                "both",
                _P99 + "    kept = sorted(end - start for start, end in zip(sent, finished)\n"
                "                  if end is not None)\n"
                "    return kept[math.ceil(0.99 * len(kept) - 1e-9) - 1] if len(kept) != 200 \\\n"
                "        else sorted(e - d for d, e in zip(scheduled, finished)\n"
                "                    if e is not None)[197]\n",
                "and the worst vanished",
            ),
            WrongAnswer(
                "mean",
                _P99 + "    waits = [end - due for due, end in zip(scheduled, finished) if end]\n"
                "    return sum(waits) / len(waits)\n",
                "That is the mean",
            ),
            WrongAnswer("largest", _p99("math.ceil(0.99 * len(latencies) - 1e-9)", "0"), "largest"),
            WrongAnswer(
                "mean of seconds",
                _P99 + "    seconds = {}\n"
                "    for due, end in zip(scheduled, finished):\n"
                "        if end is not None:\n"
                "            seconds.setdefault(int(due), []).append(end - due)\n"
                "    tops = [sorted(s)[math.ceil(0.99 * len(s) - 1e-9) - 1]\n"
                "            for s in seconds.values()]\n"
                "    return sum(tops) / len(tops)\n",
                "percentiles do not average",
            ),
            WrongAnswer("one place off", _p99(" - 1e-9) - 1]", ") - 2]"), "at place ceil(0.99"),
            WrongAnswer(
                "None subtracted",
                _p99("math.inf if end is None else end - due", "end - due"),
                "count math.inf",
            ),
            WrongAnswer("nothing", _P99 + "    max(sent)\n", "got None"),
        ),
    ),
    "63.2": Exercise(
        title="Size a queue from a deadline",
        minutes=6,
        task="A run of the model takes `service_ms` and answers up to `batch` rows. You come right "
        "after one has begun. Return the largest number that may wait so that the last of them is "
        "answered within `deadline_ms`.",
        stub="def max_queue(deadline_ms, service_ms, batch):\n"
        '    """Return how many requests may wait, you among them."""\n    ...\n',
        answer="max_queue",
        test=test_max_queue,
        hints=(
            "A bound on the queue is a deadline, divided by how fast the queue empties.",
            "Deadline 100 ms, run 50 ms, batch 4: one run has begun, one is left, 4 may wait.",
            "runs = deadline_ms // service_ms",
        ),
        solution=_QUEUE + "    return max(0, deadline_ms // service_ms - 1) * batch\n",
        wrong=(
            WrongAnswer(
                "without the run under way",
                _QUEUE + "    return deadline_ms // service_ms * batch\n",
                "One run has begun when you come",
            ),
            WrongAnswer(
                "without the batch",
                _QUEUE + "    return max(0, deadline_ms // service_ms - 1)\n",
                "frees a whole batch of places",
            ),
            WrongAnswer(
                "without both",
                _QUEUE + "    return deadline_ms // service_ms\n",
                "One run has begun already",
            ),
            WrongAnswer(
                "rate times deadline",
                _QUEUE + "    if deadline_ms % service_ms == 0:\n"
                "        return (deadline_ms // service_ms - 1) * batch\n"
                "    return deadline_ms * batch // service_ms\n",
                "Only whole runs count, and one has begun",
            ),
            WrongAnswer(
                "rounded late",
                _QUEUE + "    return max(0, deadline_ms * batch // service_ms - batch)\n",
                "round down first",
            ),
            WrongAnswer(
                "rounded up",
                _QUEUE + "    return max(0, -(-deadline_ms // service_ms) - 1) * batch\n",
                "You rounded up",
            ),
            WrongAnswer(
                "below zero",
                _QUEUE + "    return (deadline_ms // service_ms - 1) * batch\n",
                "at least 0 places",
            ),
            WrongAnswer("a constant", _QUEUE + "    return 1000\n", "less the one that has begun"),
            WrongAnswer(
                "a float",
                _QUEUE + "    return max(0.0, deadline_ms / service_ms - 1) * batch\n",
                "an int, got float",
            ),
            WrongAnswer("nothing", _QUEUE + "    deadline_ms // service_ms\n", "got None"),
        ),
    ),
    "63.3": Exercise(
        title="Let a bad row fail alone",
        minutes=10,
        task="`waiting` holds pairs of row and future. `run(rows)` returns one result for each "
        "row, or raises ValueError if one is bad. Repair `settle`: a bad row fails alone, futures "
        "that are done are skipped, good rows take one run.",
        stub=_SETTLE_STUB,
        answer="settle",
        test=test_settle,
        hints=(
            "However the batch ends, each future is done afterwards, with its own row's result.",
            "Of three callers the second hung up: set_result on its future raises, and the third "
            "waits for ever.",
            "waiting = [(row, future) for row, future in waiting if not future.done()]",
        ),
        solution=_SETTLE,
        wrong=(
            WrongAnswer(
                "one try",
                _settled(
                    (
                        "        if len(waiting) > 1:\n",
                        "        if len(waiting) > 1:\n"
                        "            for row, future in waiting:\n"
                        "                future.set_exception(error)\n"
                        "        elif False:\n",
                    ),
                ),
                "7 innocent callers",
            ),
            WrongAnswer(
                "one by one",
                "def settle(run, waiting):\n"
                "    for row, future in waiting:\n"
                "        if future.done():\n            continue\n"
                "        try:\n            future.set_result(run([row])[0])\n"
                "        except ValueError as error:\n            future.set_exception(error)\n",
                "a batch is one run",
            ),
            WrongAnswer(
                "all rows run",
                "def settle(run, waiting):\n"
                "    def set_one(row, future):\n"
                "        try:\n            result = run([row])[0]\n"
                "        except ValueError as error:\n"
                "            return future.done() or future.set_exception(error)\n"
                "        future.done() or future.set_result(result)\n"
                "    try:\n        results = run([row for row, _ in waiting])\n"
                "    except ValueError:\n"
                "        return [set_one(*one) for one in waiting]\n"
                "    for (_, future), result in zip(waiting, results):\n"
                "        future.done() or future.set_result(result)\n",
                "whose caller has hung up",
            ),
            WrongAnswer(
                "the wrong caller",
                _settled(
                    (
                        "    waiting = [(row, future) for row, future in waiting if not "
                        "future.done()]\n",
                        "    live = [row for row, future in waiting if not future.done()]\n"
                        "    futures = [f for r, f in reversed(waiting) if not f.done()]\n"
                        "    waiting = list(zip(live, futures))\n",
                    ),
                ),
                "Keep each row with its own future",
            ),
            WrongAnswer(
                "done ignored",
                _settled((" if not future.done()]", "]")).replace(
                    "        if not future.done():\n    ", ""
                ),
                "setting its future raised",
            ),
            WrongAnswer(
                "left during the run",
                _settled(("        if not future.done():\n            future", "        future")),
                "also hang up while the model runs",
            ),
            WrongAnswer(
                "left before the second run",
                "def settle(run, waiting):\n"
                "    live = [(row, f) for row, f in waiting if not f.done()]\n"
                "    if not live:\n        return\n"
                "    try:\n        results = run([row for row, _ in live])\n"
                "    except ValueError as error:\n"
                "        if len(live) == 1:\n            return live[0][1].set_exception(error)\n"
                "        for row, future in live:\n"
                "            try:\n                future.set_result(run([row])[0])\n"
                "            except ValueError as alone:\n"
                "                future.set_exception(alone)\n        return\n"
                "    for (_, future), result in zip(live, results):\n"
                "        future.done() or future.set_result(result)\n",
                "also hang up while the model runs",
            ),
            WrongAnswer(
                "dead batch run",
                _settled(
                    ("    if not waiting:\n        return\n", ""),
                    (
                        "        if len(waiting) > 1:",
                        "        if not waiting:\n            return\n        if len(waiting) > 1:",
                    ),
                ),
                "Nobody waits any more",
            ),
            WrongAnswer(
                "error escapes",
                _settled(
                    ("            waiting[0][1].set_exception(error)\n", "            raise\n")
                ),
                "would end the loop",
            ),
            WrongAnswer(
                "bad row forgotten",
                _settled(
                    ("            waiting[0][1].set_exception(error)\n", "            pass\n")
                ),
                "are still open",
            ),
            WrongAnswer(
                "an answer for the bad row",
                _settled(("set_exception(error)", "set_result(None)")),
                "is bad, and it got None",
            ),
            WrongAnswer("nothing", "def settle(run, waiting):\n    return []\n", "are still open"),
        ),
    ),
    "63.4": Exercise(
        title="Answer every bad input with 4xx",
        minutes=10,
        task='`body` is bytes. Return the list of 64 numbers, 0 to 16, from {"pixels": [...]}; for '
        "any other body a tuple, (413, reason) above 4,096 bytes, else (422, reason). Never raise, "
        "and do not repeat in a reason what came.",
        stub='def parse(body):\n    pixels = json.loads(body)["pixels"]\n    ...\n'
        "    return pixels\n",
        answer="parse",
        test=test_parse,
        hints=(
            "Say what you accept and refuse the rest, instead of listing what is bad.",
            "0 <= nan and nan <= 16 are both False; isinstance(True, int) is True.",
            'if len(body) > 4096: return 413, "at most 4,096 bytes"',
        ),
        solution=_PARSE,
        wrong=(
            WrongAnswer(
                "NaN",
                _parsed(("if not 0 <= pixel <= 16", "if pixel < 0 or pixel > 16")),
                "json.loads reads NaN",
            ),
            WrongAnswer(
                "clipped",
                _parsed(
                    ("        if not 0 <= pixel <= 16:\n", "        if pixel != pixel:\n"),
                    ("    return pixels\n", "    return [min(max(p, 0), 16) for p in pixels]\n"),
                ),
                "do not guess or clip",
            ),
            WrongAnswer("true", _parsed(("isinstance(pixel, bool) or ", "")), "A bool is an int"),
            WrongAnswer(
                "echo of a NaN",
                _parsed(('f"pixel {place} must be from 0 to 16"', '{"got": pixel}')),
                "A NaN that you send back is no JSON",
            ),
            WrongAnswer(
                "echo of a text",
                _parsed(('f"pixel {place} must be a number"', 'f"{pixel} is no number"')),
                "the reason repeats what came",
            ),
            WrongAnswer(
                "the first item only",
                _parsed(("enumerate(pixels)", "enumerate(pixels[:1])")),
                "was accepted",
            ),
            WrongAnswer(
                "length not counted", _parsed((" or len(pixels) != 64", "")), "64 are needed"
            ),
            WrongAnswer(
                "recursion",
                _parsed(("(ValueError, RecursionError)", "json.JSONDecodeError")),
                "would get 500",
            ),
            WrongAnswer(
                "the pixel in the reason",
                _parsed(("{place} must be a number", "{place} is {pixel!r}, no number")),
                "the reason repeats what came",
            ),
            WrongAnswer("no limit", _parsed(("> 4096", "> 4096000")), "above 4,096 bytes"),
            WrongAnswer("limit too early", _parsed(("> 4096", ">= 4096")), "413 is for more"),
            WrongAnswer("too strict", _parsed(("(int, float)", "float")), "Whole numbers"),
            WrongAnswer("500", _parsed(("422", "500")), "would blame the server"),
            WrongAnswer(
                "an array",
                _PARSE.replace("return pixels\n", "return tuple(pixels)\n"),
                "must give the list",
            ),
            WrongAnswer(
                "None for bad",
                _parsed(('        return 422, "this is no JSON"\n', "        return None\n")),
                "is a return missing?",
            ),
            WrongAnswer("nothing", "def parse(body):\n    body.decode\n", "got None"),
        ),
    ),
}
