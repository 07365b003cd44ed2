"""Ask and check what 00_start_here teaches."""

import math
import random
from fractions import Fraction

import torch

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "00.p1": Choice(
        question="0.1 + 0.2 == 0.3 is False in Python. What does a tensor say?",
        options={
            "False, as in Python": "Python's float is float64. A tensor literal is float32, and "
            "there both sides round to the same number.",
            "True: torch compares with a tolerance": "`==` compares values exactly. The float64 "
            "line of the table says False.",
            "True: in float32 both sides round to the same number": "Right, and the table shows "
            "that another dtype answers differently.",
            "an error": "`==` works on any two numbers. Whether it is wise is another question.",
        },
    ),
    "00.p2": Number(
        question="How many times faster than three Python loops is A @ B, at 128 by 128?",
        unit="ratio",
        notes=(
            (0, 30, "Compiled code alone beats Python by that much. Vector units, several "
                    "multiply-adds per cycle and caches multiply it again."),
            (30, 1000, "The right direction, with one factor missing."),
            (1000, 50_000, "You know what a matrix product costs in Python."),
            (50_000, 1e12, "Few single cores multiply that fast."),
        ),
    ),
    "00.p3": Number(
        question="The same line is timed 30 times, one call each. Longest over shortest time?",
        unit="ratio",
        notes=(
            (0, 1.1, "A computer does many things at once, and your call waits for some of them."),
            (1.1, 1000, "How large it is depends on what else runs. That is the point."),
            (1000, 1e12, "That would be a very busy machine."),
        ),
    ),
    "00.p4": Choice(
        question="x is a 2 by 3 tensor of zeros, y = x.t().reshape(6), y[0] = 1. What is x[0, 0]?",
        options={
            "0.0": "Right: this reshape had to copy.",
            "1.0": "Without .t() it would be. After a transpose no stride describes the walk, and "
            "reshape copies: 11 and 13.",
            "an error": "reshape never raises for that reason; view does: 11.",
        },
    ),
    "00.p5": Choice(
        question="p has shape (8, 1), y has shape (8,). What shape has (p - y)**2?",
        options={
            "(8, 1)": "A missing dimension is added on the left, so y counts as (1, 8): 12.",
            "(8,)": "Sizes of 1 stretch, and so both do: 12.",
            "(8, 8)": "Right, and a loss built on it trains in silence: 12.",
            "an error": "Both shapes fit by stretching, which is the trap: 12.",
        },
    ),
    "00.p6": Choice(
        question="w is 3. (w**2).backward() runs twice and nothing is zeroed. What is w.grad?",
        options={
            "6.0": "backward adds to the gradient that is there; nothing resets it: 14.",
            "12.0": "Right: gradients accumulate.",
            "36.0": "The second pass adds its gradient; it multiplies nothing: 14.",
            "an error": "Each call builds a graph of its own, so backward may run on each: 14.",
        },
    ),
    "00.p7": Choice(
        question="best = model.state_dict(), then training goes on. What does best hold?",
        options={
            "the best weights": "state_dict hands out the model's own tensors, and training "
            "writes into them: 13 and 15.",
            "the latest weights": "Right: it shares, so it follows.",
        },
    ),
    "00.p8": Choice(
        question="float32 and Adam: how many bytes per parameter, activations aside?",
        options={
            "4": "That is the weight alone. Its gradient and Adam's two moments are as large: 41.",
            "8": "Adam keeps two moments beside weight and gradient: 41.",
            "12": "Adam keeps two moments, not one: 41.",
            "16": "Right: weight, gradient and two moments.",
        },
    ),
    "00.p9": Choice(
        question="Four equal micro-batches, mean loss, gradients added, nothing divided: how many "
        "times the gradient of the full batch?",
        options={
            "0.25": "Each mean already divides by its own batch; four of them are added: 44.",
            "1": "Four means add up to four times their mean: 44.",
            "4": "Right, unless each loss is divided by four.",
        },
    ),
}  # fmt: skip


# --- 00.1 -------------------------------------------------------------------------------


def test_gib(answer, call):
    sizes = [80 * 10**9, 2**30, 1, 16 * 10**9, random.randrange(10**6, 10**12)]
    for size in sizes:
        expected = Fraction(size, 2**30)
        got = call(answer, size)
        if isinstance(got, bool) or not isinstance(got, (int, float)):
            raise Wrong(f"Return a number, got {got!r}.")
        if not math.isclose(got, expected, rel_tol=1e-12):
            raise Wrong(
                f"{size:,} bytes are {float(expected):.4g} GiB, got {got:.4g}. {_why_gib(size, got)}"
            )


def _why_gib(size, got):
    for factor, why in (
        (Fraction(size, 10**9), "GB counts 10**9 bytes, GiB counts 2**30."),
        (Fraction(size, 2**20), "That is MiB: one factor of 1,024 is missing."),
        (Fraction(size * 2**30), "Bytes become fewer units, not more."),
    ):
        if math.isclose(got, factor, rel_tol=1e-9):
            return why
    if got == size // 2**30:
        return "A fraction got lost: // drops it."
    if any(round(float(Fraction(size, 2**30)), digits) == got for digits in range(6)):
        return f"You rounded to {got}. Round only when you print."
    return "Divide by the bytes of one GiB."


# --- 00.2 -------------------------------------------------------------------------------

DTYPES = ("float16", "bfloat16", "float32", "float64")


def test_equal(answer, call):
    truth = {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        tenth, six, seven = (torch.tensor(x, dtype=dtype) for x in (0.1, 0.6, 0.7))
        truth[name] = bool(tenth + six == seven)
    for name in DTYPES:
        if not isinstance(answer[name], bool):
            raise Wrong(f"Answer with True or False: {name} got {answer[name]!r}.")
    given = [answer[name] for name in DTYPES]
    if given == [truth[name] for name in DTYPES]:
        return
    if given == [False, True, True, False]:
        raise Wrong("These are the answers for 0.1 + 0.2 == 0.3. Other numbers, other luck.")
    if not any(given):
        raise Wrong(
            "All False would mean that rounding always shows. Python itself says True here."
        )
    if all(given):
        raise Wrong("All True is Python's answer. Python's float64 is one of the four.")
    if given == sorted(given):
        raise Wrong("Wider is not safer: float16 says True here, and the wider float32 says False.")
    name = next(name for name in DTYPES if answer[name] != truth[name])
    raise Wrong(f"{name} says {truth[name]}. Try it with torch.tensor(0.1, dtype=torch.{name}).")


# --- 00.3 -------------------------------------------------------------------------------

BANDS = ((1.1, "10 %"), (1.5, "1.5x"), (2.0, "2x"), (10.0, "10x"))
_NAMES = (*(name for _, name in BANDS), "further")


def _band(guess, measured):
    factor = max(guess / measured, measured / guess)
    return next((name for limit, name in BANDS if factor <= limit), "further")


def test_band(answer, call):
    pairs = [(10, 100), (100, 10), (2, 1), (1, 2), (3, 2), (1, 1), (1, 1000), (5.25, 5), (11, 10)]
    pairs += [(2.0 ** random.uniform(-6, 6), 2.0 ** random.uniform(-6, 6)) for _ in range(30)]
    for guess, measured in pairs:
        expected = _band(guess, measured)
        got = call(answer, guess, measured)
        if not isinstance(got, str):
            raise Wrong(f"Name the band, such as '2x', got {got!r}.")
        if got not in _NAMES:
            raise Wrong(f"{got!r} names no band. The names are {', '.join(map(repr, _NAMES))}.")
        if got != expected:
            raise Wrong(
                f"A guess of {guess:.4g} for {measured:.4g} is {expected!r}, got {got!r}. "
                f"{_why_band(answer, guess, measured)}"
            )


def _why_band(answer, guess, measured):
    factor = max(guess / measured, measured / guess)
    outside = next((name for limit, name in BANDS if factor < limit), "further")
    both = answer(guess, measured), answer(measured, guess)
    if factor in [limit for limit, _ in BANDS] and outside in both:
        if both[0] == both[1] == outside:
            return "A ratio on the edge belongs inside."
        if {*both} == {outside, _band(guess, measured)} and answer(1, 3) == answer(3, 1):
            return "On the edge rounding decides, as in == above. Compare the ratio itself."
    if both[0] != both[1]:
        return "1 for 10 and 10 for 1 miss by the same factor; yours differ."
    return "The bands are ratios: 1.1, 1.5, 2 and 10."


EXERCISES = {
    "00.1": Exercise(
        title="Convert bytes to GiB",
        minutes=2,
        task="A graphics card is sold with 80 GB, which are 80·10**9 bytes. Write "
        "`gib(num_bytes)`: the same size in GiB, as a float, not rounded.",
        stub='def gib(num_bytes):\n    """Return a size in GiB."""\n    ...\n',
        answer="gib",
        test=test_gib,
        hints=(
            "One GiB has 2**30 bytes, a little more than 10**9.",
            "80 GB are fewer than 80 GiB.",
            "return num_bytes / ...",
        ),
        solution="def gib(num_bytes):\n    return num_bytes / 2**30\n",
        wrong=(
            WrongAnswer("GB", "def gib(num_bytes):\n    return num_bytes / 1e9\n", "GB counts"),
            WrongAnswer(
                "whole GiB", "def gib(num_bytes):\n    return num_bytes // 2**30\n", "drops it"
            ),
            WrongAnswer("MiB", "def gib(num_bytes):\n    return num_bytes / 1024**2\n", "MiB"),
            WrongAnswer(
                "times", "def gib(num_bytes):\n    return num_bytes * 2**30\n", "fewer units"
            ),
            WrongAnswer(
                "rounded",
                "def gib(num_bytes):\n    return round(num_bytes / 2**30, 1)\n",
                "only when you print",
            ),
            WrongAnswer("text", "def gib(num_bytes):\n    return '74.5 GiB'\n", "Return a number"),
        ),
    ),
    "00.2": Exercise(
        title="Say when == between floats is True",
        minutes=3,
        task="For each dtype: is `a + b == c`, with a = 0.1, b = 0.6 and c = 0.7 in that dtype? "
        "Answer with True or False, then check.",
        stub='equal = {\n    "float16": ...,\n    "bfloat16": ...,\n    "float32": ...,\n'
        '    "float64": ...,\n}\n',
        answer="equal",
        test=test_equal,
        hints=(
            "Each dtype rounds the three numbers and the sum to its own grid.",
            "float64 says True, as Python does. A wider dtype is no safer than a narrow one.",
            "a, b, c = (torch.tensor(x, dtype=torch.float16) for x in (0.1, 0.6, 0.7)); a + b == c",
        ),
        solution='equal = {\n    "float16": True,\n    "bfloat16": False,\n    "float32": False,\n'
        '    "float64": True,\n}\n',
        wrong=(
            WrongAnswer(
                "the table",
                'equal = {"float16": False, "bfloat16": True, "float32": True, "float64": False}\n',
                "Other numbers",
            ),
            WrongAnswer("all False", f"equal = {dict.fromkeys(DTYPES, False)}\n", "always shows"),
            WrongAnswer("all True", f"equal = {dict.fromkeys(DTYPES, True)}\n", "one of the four"),
            WrongAnswer(
                "wider is safer",
                'equal = {"float16": False, "bfloat16": False, "float32": True, "float64": True}\n',
                "Wider is not safer",
            ),
            WrongAnswer(
                "float32 wrong",
                'equal = {"float16": True, "bfloat16": False, "float32": True, "float64": True}\n',
                "float32 says False",
            ),
            WrongAnswer("words", f"equal = {dict.fromkeys(DTYPES, 'yes')}\n", "True or False"),
        ),
    ),
    "00.3": Exercise(
        title="Judge a guess by its ratio",
        minutes=4,
        task="Write `band(guess, measured)`. The factor between the two decides: up to 1.1 "
        "returns '10 %', up to 1.5 '1.5x', up to 2 '2x', up to 10 '10x', beyond 'further'. Too "
        "low and too high count alike.",
        stub='def band(guess, measured):\n    """Name the band that a guess lies in."""\n    ...\n',
        answer="band",
        test=test_band,
        hints=(
            "Swapping guess and measurement must not change the band.",
            "A guess of 1 for 10 and one of 10 for 1 are both '10x'.",
            "factor = max(guess / measured, measured / guess)",
        ),
        solution="def band(guess, measured):\n"
        "    factor = max(guess / measured, measured / guess)\n"
        '    for limit, name in ((1.1, "10 %"), (1.5, "1.5x"), (2, "2x"), (10, "10x")):\n'
        "        if factor <= limit:\n"
        "            return name\n"
        '    return "further"\n',
        wrong=(
            WrongAnswer(
                "difference",
                "def band(guess, measured):\n"
                "    error = abs(guess - measured) / measured\n"
                '    for limit, name in ((0.1, "10 %"), (0.5, "1.5x"), (1, "2x"), (9, "10x")):\n'
                "        if error <= limit:\n"
                "            return name\n"
                '    return "further"\n',
                "miss by the same factor",
            ),
            WrongAnswer(
                "one side only",
                "def band(guess, measured):\n"
                '    for limit, name in ((1.1, "10 %"), (1.5, "1.5x"), (2, "2x"), (10, "10x")):\n'
                "        if guess / measured <= limit:\n"
                "            return name\n"
                '    return "further"\n',
                "miss by the same factor",
            ),
            WrongAnswer(
                "edges outside",
                "def band(guess, measured):\n"
                "    factor = max(guess / measured, measured / guess)\n"
                '    for limit, name in ((1.1, "10 %"), (1.5, "1.5x"), (2, "2x"), (10, "10x")):\n'
                "        if factor < limit:\n"
                "            return name\n"
                '    return "further"\n',
                "on the edge belongs inside",
            ),
            WrongAnswer(
                "logarithms of two",
                "def band(guess, measured):\n"
                "    import math\n"
                "    factor = abs(math.log2(guess / measured))\n"
                '    for limit, name in ((1.1, "10 %"), (1.5, "1.5x"), (2, "2x"), (10, "10x")):\n'
                "        if factor <= limit:\n"
                "            return name\n"
                '    return "further"\n',
                "The bands are ratios",
            ),
            WrongAnswer(
                "through logarithms",
                "def band(guess, measured):\n"
                "    import math\n"
                "    factor = math.exp(abs(math.log(guess / measured)))\n"
                '    for limit, name in ((1.1, "10 %"), (1.5, "1.5x"), (2, "2x"), (10, "10x")):\n'
                "        if factor <= limit:\n"
                "            return name\n"
                '    return "further"\n',
                "On the edge rounding decides",
            ),
            WrongAnswer(
                "another spelling",
                "def band(guess, measured):\n    return '10%'\n",
                "names no band",
            ),
            WrongAnswer(
                "a number",
                "def band(guess, measured):\n    return max(guess / measured, measured / guess)\n",
                "Name the band",
            ),
        ),
    ),
}
