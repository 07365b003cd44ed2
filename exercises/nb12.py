"""Ask and check what 12_compute_with_tensors teaches."""

import itertools
import warnings

import torch

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "12.p1": Choice(
        question="Model A predicts every target exactly, in shape (100, 1). Model B predicts the "
        "mean for everyone. Call B's loss 1. What is A's?",
        options={
            "0": "It would be 0 if each prediction met its own target. Here each one met all "
            "hundred.",
            "1": "Being right counts for nothing here, but it is worse than that: A's hundred "
            "values are scattered, and B's are not.",
            "2": "Right: every prediction was compared with every target.",
            "an error": "(100, 1) and (100,) fit together: both stretch to (100, 100), and "
            "nothing is said.",
        },
    ),
    "12.p2": Choice(
        question="pixel is 10 and other is 20, both uint8. What is (pixel - other).abs()?",
        options={
            "10": "The difference was 246 before abs saw it, and 246 is positive.",
            "-10": "uint8 has no sign: it counts from 0 to 255.",
            "246": "Right: below 0 it goes on with 255, and abs comes too late.",
            "an error": "torch wraps around without a word.",
        },
    ),
    "12.p3": Number(
        question="On six numbers, how many of the eight functions agree with NumPy?",
        unit="functions",
        notes=(
            (0, 3, "Plain arithmetic is the same: sum, cumsum and round agree."),
            (3, 4, "You counted them all."),
            (4, 7, "Fewer agree. The names are the same, the defaults are not."),
            (7, 9, "The names agree, but that says nothing about the defaults."),
        ),
    ),
    "12.p4": Number(
        question="How many times fewer operations does A @ (B @ v) take than (A @ B) @ v?",
        unit="ratio",
        notes=(
            (
                0,
                2,
                "The result is the same, the work is not: compare the sizes of A @ B and B @ v.",
            ),
            (2, 100, "It is more: A @ B costs n·n·n, and it is needed on the left alone."),
            (
                100,
                900,
                "The order of magnitude is right. Left: n³ + n² products; right: 2 n². "
                "The ratio is (n + 1) / 2.",
            ),
            (900, 1_100, "Nearly: the right side multiplies a matrix with v twice, so half of n."),
            (1_100, float("inf"), "It is less: the right side still does 2 n² products."),
        ),
    ),
    "12.p5": Number(
        question="After counts[labels] += 1 with 1,797 labels, what is counts.sum()?",
        unit="labels counted",
        notes=(
            (0, 10, "All ten classes occur, and each is counted at least once."),
            (10, 11, "You saw it coming."),
            (
                11,
                1_797,
                "Fewer: the ten counts are read once, raised by 1, and written back. All repeats "
                "write the same value.",
            ),
            (
                1_797,
                1_798,
                "That is what a loop over the labels gives. The indexed line reads once for all.",
            ),
        ),
    ),
}


def _kind(value):
    """Name the type of what came in place of a tensor."""
    return "None: is a return missing?" if value is None else type(value).__name__


# --- 12.1 -------------------------------------------------------------------------------

_PAIRS = (
    ((3,), (3, 2)),
    ((3,), (2, 3)),
    ((2,), (3,)),
    ((0,), (1,)),
    ((0,), (2,)),
    ((2, 1), (1, 3)),
    ((1, 3), (2, 3)),
    ((), (2, 3)),
)


def _broadcast(a, b):
    """Ask torch itself, on shapes without bytes; None where it refuses."""
    try:
        return tuple((torch.empty(a, device="meta") + torch.empty(b, device="meta")).shape)
    except RuntimeError:
        return None


def _random_shape():
    length = int(torch.randint(0, 4, ()))
    return tuple(torch.randint(0, 4, (length,)).tolist())


def test_broadcast_shape(answer, call):
    pairs = (*_PAIRS, *((_random_shape(), _random_shape()) for _ in range(200)))
    for a, b in pairs:
        try:
            got = call(answer, a, b)
        except (RuntimeError, ValueError) as error:
            raise Wrong(
                f"{a} and {b} raised {type(error).__name__}. Return None where two shapes do "
                "not fit, and a tuple where they do."
            ) from None
        if got is not None and not isinstance(got, tuple):
            raise Wrong(f"Return a tuple or None: {a} and {b} gave {type(got).__name__}, {got!r}.")
        truth = _broadcast(a, b)
        if got != truth:
            raise Wrong(f"{a} and {b} give {truth}, got {got}. {_why_shape(a, b, truth, got)}")


def _why_shape(a, b, truth, got):
    if truth is None:
        if len(a) != len(b):
            return "Align from the last dimension: (3,) fits (2, 3), not (3, 2)."
        return "Unequal sizes fit only where one of the two is 1."
    if got is None:
        if len(a) != len(b):
            return "A missing dimension, on the left, counts as 1."
        return "A size of 1 fits any size, whichever of the two shapes it stands in."
    if len(got) != len(truth):
        return "The result has as many dimensions as the longer shape."
    if got == truth[::-1]:
        return "The sizes are right and their order is reversed."
    if 0 in truth:
        return "A size of 1 gives way to any other, also to 0: the larger one is no rule."
    return "Where one size is 1 the other one counts, in each dimension by itself."


# --- 12.2 -------------------------------------------------------------------------------

_UNEQUAL = (
    ((5, 1), (5,)),
    ((1,), (5,)),
    ((5, 1), (5, 2)),
    ((2, 3), (3, 2)),
    ((), (5,)),
    ((3, 4), (4,)),
)


def _mean_of_squares(p, y):
    pairs = zip(p.flatten().tolist(), y.flatten().tolist(), strict=True)
    squares = [(a - b) ** 2 for a, b in pairs]
    return sum(squares) / len(squares)


def test_mean_squared_error(answer, call):
    for shape in ((5,), (4, 3), (1, 1), ()):
        p, y = torch.randn(shape, requires_grad=True), torch.randn(shape)
        try:
            got = call(answer, p, y)
        except ValueError:
            raise Wrong(
                f"Two equal shapes, {shape}, were refused. Raise only where they differ."
            ) from None
        if not isinstance(got, torch.Tensor) or got.dim():
            kind = (
                f"shape {tuple(got.shape)}" if isinstance(got, torch.Tensor) else type(got).__name__
            )
            raise Wrong(f"Return the loss as a tensor without dimensions, got {kind}.")
        expected = _mean_of_squares(p.detach(), y)
        if not torch.isclose(got.detach().double(), torch.tensor(expected).double(), rtol=1e-4):
            raise Wrong(
                f"For two tensors of shape {shape} the mean of the squared differences is "
                f"{expected:.4f}, got {got.item():.4f}. {_why_value(got.item(), expected, p)}"
            )
        if not got.requires_grad:
            raise Wrong("The loss has lost its graph, so nothing can be trained with it.")
    outcomes = {shapes: _refusal(answer, call, *shapes) for shapes in _UNEQUAL}
    for shapes, outcome in outcomes.items():
        if outcome != "ValueError":
            raise Wrong(f"{shapes[0]} against {shapes[1]}: {_why_accepted(outcomes, outcome)}")


def _why_value(got, expected, p):
    if abs(got - expected * p.numel()) < 1e-3 * (1 + got):
        return "That is their sum: its size depends on the batch."
    if abs(got - expected**0.5) < 1e-3 * (1 + got):
        return "That is its root."
    return "Leave the formula as it is; only the shapes need a test."


def _refusal(answer, call, left, right):
    """Say what the answer makes of two unequal shapes: an exception's name, or how it went on."""
    p, y = torch.randn(left), torch.randn(right)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            got = call(answer, p, y)
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
            return type(error).__name__
    if caught:
        return "warned"
    if p.numel() == y.numel() and isinstance(got, torch.Tensor) and got.numel() == 1:
        return "guessed" if abs(got.item() - _mean_of_squares(p, y)) < 1e-4 else "accepted"
    return "accepted"


def _why_accepted(outcomes, outcome):
    accepted = {shapes for shapes, what in outcomes.items() if what == "accepted"}
    if "warned" in outcomes.values():
        return (
            "a warning is shown once for each line of code, and the wrong number is returned all "
            "the same. Raise ValueError."
        )
    if outcome == "AssertionError":
        return "an assert is gone under `python -O`. Raise ValueError."
    if outcome == "guessed":
        return (
            "refuse, do not guess how to pair them. A squeezed batch of one, (1, 1), is a scalar, "
            "and a scalar broadcasts again."
        )
    if outcome == "accepted":
        return _why_passed(accepted)
    return f"raise ValueError with both shapes in its text; this raised {outcome}."


def _why_passed(accepted):
    if ((1,), (5,)) in accepted and ((5, 1), (5,)) not in accepted:
        return "both have one dimension, and 1 still stretches to 5. Compare the whole shapes."
    if ((5, 1), (5,)) in accepted and ((1,), (5,)) not in accepted:
        if ((5, 1), (5, 2)) in accepted:
            return "len() is the first size alone. Compare the whole shapes."
        return (
            "they agree in the number of elements, as (2, 3) and (3, 2) do. Compare the whole "
            "shapes."
        )
    return (
        "every prediction was compared with every target, and a number came back. Raise "
        "ValueError unless the shapes are equal."
    )


# --- 12.3 -------------------------------------------------------------------------------


def test_average(answer, call):
    a = torch.arange(256, dtype=torch.uint8).repeat_interleave(256)  # all pairs of pixels
    b = torch.arange(256, dtype=torch.uint8).repeat(256)
    got = call(answer, a, b)
    if not isinstance(got, torch.Tensor):
        raise Wrong(f"Return a tensor, got {_kind(got)}")
    if got.shape != a.shape:
        raise Wrong(f"The shape must stay {tuple(a.shape)}, got {tuple(got.shape)}.")
    expected = torch.tensor([(i + j) // 2 for i, j in itertools.product(range(256), repeat=2)])
    wrong = got.double().floor() != expected
    if wrong.any():
        place = int(_worst(a, b, wrong))
        i, j = a[place].item(), b[place].item()
        raise Wrong(
            f"The average of {i} and {j} is {expected[place].item()}, got "
            f"{got[place].item():g}. {_why_average(got, a, b, answer)} "
            f"({wrong.double().mean().item():.0%} of all pairs are wrong.)"
        )
    if got.dtype != torch.uint8:
        raise Wrong(f"The values are right; the dtype must be torch.uint8 again, got {got.dtype}.")


def _worst(a, b, wrong):
    """Prefer the pair 200 and 100, then the first pair that is wrong."""
    known = (a == 200) & (b == 100) & wrong
    return (known if known.any() else wrong).nonzero()[0]


def _why_average(got, a, b, answer):
    wide = a.int() + b.int()
    names = set(getattr(getattr(answer, "__code__", None), "co_names", ()))
    if torch.equal(got.int(), (a + b).int() // 2):
        if names & {"clamp", "clip", "clamp_", "minimum"}:
            return "255 is no remedy for a sum that has wrapped already: widen before you add."
        if names & {"int", "long", "short", "float", "double", "to", "type"}:
            return "The sum was widened after the damage: convert before you add."
        return "The sum wrapped around modulo 256 before it was halved."
    if torch.equal(got.int(), a.int() // 2 + b.int() // 2):
        return "Two odd numbers lose 1 when each is halved by itself: 1 and 1 give 0."
    if torch.equal(got.int(), wide.clamp(max=255) // 2):
        return "255 is the limit of a pixel, not of a sum: halve first."
    if "bfloat16" in names:
        return "bfloat16 keeps 8 bits of digits and cannot hold 509."
    if ((got.int() - wide // 2) >= 0).all() and ((got.int() - wide // 2) <= 1).all():
        return "Round down, please."
    return "Which dtype holds the sum of two pixels, up to 510?"


# --- 12.4 -------------------------------------------------------------------------------


def test_count(answer, call):
    for labels, num_classes in (
        (torch.tensor([0, 2, 2, 1, 2]), 3),
        (torch.randint(0, 4, (50,)), 6),
        (torch.tensor([3]), 4),
        (torch.tensor([], dtype=torch.int64), 3),
    ):
        got = call(answer, labels, num_classes)
        expected = [labels.tolist().count(k) for k in range(num_classes)]
        shown = labels.tolist() if len(labels) < 8 else f"{labels.tolist()[:7]} and more"
        asked = f"The labels {shown} with {num_classes} classes"
        if not isinstance(got, torch.Tensor):
            raise Wrong(f"Return a tensor, got {_kind(got)}")
        if tuple(got.shape) != (num_classes,):
            raise Wrong(
                f"{asked} gave shape {tuple(got.shape)}; one count per class has shape "
                f"({num_classes},). A class without samples must stand there with 0."
            )
        if got.dtype != torch.int64:
            raise Wrong(
                f"The counts are {got.dtype}: counts are int64. float32, for one, stops "
                "counting at 16,777,216."
            )
        if got.tolist() != expected:
            raise Wrong(f"{asked} give {expected}, got {got.tolist()}. {_why_count(got, expected)}")


def _why_count(got, expected):
    if got.tolist() == [int(n > 0) for n in expected]:
        return (
            "Each class was counted once: an indexed += reads, adds and writes, and repeats write "
            "the same value."
        )
    if got.sum() == sum(expected):
        return "The total is right and the classes are mixed up: place k counts the label k."
    return "Compare counts.sum() with len(labels)."


# --- 12.5 -------------------------------------------------------------------------------

# (n, d, r, m), and what decides between the two orders there.
_SIZES = (
    ((64, 1024, 8, 1024), "x @ p is narrow here: 8 columns."),
    ((1000, 20, 60, 20), "p @ q is small here: 20 by 20."),
    ((64, 32, 16, 1), "All four sizes decide: count the products of both orders."),
    ((8, 64, 8, 2), "All four sizes decide: count the products of both orders."),
    ((512, 128, 4, 128), "x @ p is narrow here: 4 columns."),
    ((128, 2, 50, 60), "All four sizes decide: count the products of both orders."),
    ((2, 3, 5, 7), "All four sizes decide: count the products of both orders."),
)


def _both_orders(n, d, r, m):
    """Return the operations of (x @ p) @ q and of x @ (p @ q): a product and a sum each."""
    return 2 * n * r * (d + m), 2 * d * m * (r + n)


def _counted(answer, call, *tensors):
    from torch.backends import opt_einsum
    from torch.utils.flop_counter import FlopCounterMode

    # Where the package opt_einsum is installed, einsum would choose an order by itself.
    with opt_einsum.flags(enabled=False), FlopCounterMode(display=False) as counter:
        got = call(answer, *tensors)
    return got, counter.get_total_flops()


def test_low_rank(answer, call):
    for (n, d, r, m), why in _SIZES:
        x, p, q = torch.randn(n, d), torch.randn(d, r), torch.randn(r, m)
        got, flops = _counted(answer, call, x, p, q)
        if not isinstance(got, torch.Tensor):
            raise Wrong(f"Return a tensor, got {_kind(got)}")
        expected = x.double() @ p.double() @ q.double()
        if got.shape != expected.shape:
            raise Wrong(f"The result has shape ({n}, {m}), got {tuple(got.shape)}.")
        scale = expected.abs().max()
        if not ((got.double() - expected).abs().max() < 1e-4 * scale):
            raise Wrong("The values are not those of x @ p @ q.")
        least = min(_both_orders(n, d, r, m))
        if flops > least:
            raise Wrong(
                f"For {_shapes(x, p, q)} the cheaper order needs {least:,} operations, yours "
                f"{flops:,}. {why}{_about_einsum(answer)}"
            )
        if flops < least:
            raise Wrong(
                f"Only {flops:,} operations in matrix products were counted, fewer than the "
                f"{least:,} that are needed. Use two products with @."
            )


def _shapes(*tensors):
    named = zip("xpq", tensors, strict=False)
    return ", ".join(f"{name} {tuple(tensor.shape)}" for name, tensor in named)


def _about_einsum(answer):
    if "einsum" in getattr(getattr(answer, "__code__", None), "co_names", ()):
        return " einsum goes from left to right."
    return ""


EXERCISES = {
    "12.1": Exercise(
        title="Broadcast two shapes on paper",
        minutes=6,
        task="Write `broadcast_shape(a, b)`: the shape of the sum of two tensors with these "
        "shapes, as a tuple, or None where they do not fit. The check compares with torch on shapes "
        "of up to 3 dimensions, with sizes from 0 to 3.",
        stub='def broadcast_shape(a, b):\n    """Return the shape of a + b, or None."""\n    ...\n',
        answer="broadcast_shape",
        test=test_broadcast_shape,
        hints=(
            "Fill the shorter shape with 1s on the left. After that, each dimension stands alone.",
            "(0,) and (1,) give (0,), so the larger size is not the rule. (2,) and (3,) give None.",
            "Start with n = max(len(a), len(b)); a = (1,) * (n - len(a)) + tuple(a).",
        ),
        solution="def broadcast_shape(a, b):\n"
        "    n = max(len(a), len(b))\n"
        "    a = (1,) * (n - len(a)) + tuple(a)\n"
        "    b = (1,) * (n - len(b)) + tuple(b)\n"
        "    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):\n"
        "        return None\n"
        "    return tuple(j if i == 1 else i for i, j in zip(a, b))\n",
        wrong=(
            WrongAnswer(
                "aligned on the left",
                "def broadcast_shape(a, b):\n"
                "    n = max(len(a), len(b))\n"
                "    a = tuple(a) + (1,) * (n - len(a))\n"
                "    b = tuple(b) + (1,) * (n - len(b))\n"
                "    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):\n"
                "        return None\n"
                "    return tuple(j if i == 1 else i for i, j in zip(a, b))\n",
                "Align from the last dimension",
            ),
            WrongAnswer(
                "the larger size",
                "def broadcast_shape(a, b):\n"
                "    n = max(len(a), len(b))\n"
                "    a = (1,) * (n - len(a)) + tuple(a)\n"
                "    b = (1,) * (n - len(b)) + tuple(b)\n"
                "    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):\n"
                "        return None\n"
                "    return tuple(max(i, j) for i, j in zip(a, b))\n",
                "also to 0",
            ),
            WrongAnswer(
                "no conflict",
                "def broadcast_shape(a, b):\n"
                "    if len(a) != len(b) and a and b and a[-1] != b[-1]:\n"
                "        return None\n"
                "    n = max(len(a), len(b))\n"
                "    a = (1,) * (n - len(a)) + tuple(a)\n"
                "    b = (1,) * (n - len(b)) + tuple(b)\n"
                "    return tuple(j if i == 1 else i for i, j in zip(a, b))\n",
                "fit only where one of the two is 1",
            ),
            WrongAnswer(
                "equal length demanded",
                "def broadcast_shape(a, b):\n"
                "    if len(a) != len(b):\n"
                "        return None\n"
                "    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):\n"
                "        return None\n"
                "    return tuple(j if i == 1 else i for i, j in zip(a, b))\n",
                "counts as 1",
            ),
            WrongAnswer(
                "only a stretches",
                "def broadcast_shape(a, b):\n"
                "    n = max(len(a), len(b))\n"
                "    a = (1,) * (n - len(a)) + tuple(a)\n"
                "    b = (1,) * (n - len(b)) + tuple(b)\n"
                "    if any(i != j and i != 1 for i, j in zip(a, b)):\n"
                "        return None\n"
                "    return b\n",
                "whichever of the two shapes",
            ),
            WrongAnswer(
                "cut to the shorter",
                "def broadcast_shape(a, b):\n"
                "    pairs = list(zip(a[::-1], b[::-1]))\n"
                "    if any(i != j and 1 not in (i, j) for i, j in pairs):\n"
                "        return None\n"
                "    return tuple(j if i == 1 else i for i, j in pairs)[::-1]\n",
                "as the longer shape",
            ),
            WrongAnswer(
                "left in reverse order",
                "def broadcast_shape(a, b):\n"
                "    from itertools import zip_longest\n"
                "    pairs = list(zip_longest(a[::-1], b[::-1], fillvalue=1))\n"
                "    if any(i != j and 1 not in (i, j) for i, j in pairs):\n"
                "        return None\n"
                "    return tuple(j if i == 1 else i for i, j in pairs)\n",
                "order is reversed",
            ),
            WrongAnswer(
                "the smaller size",
                "def broadcast_shape(a, b):\n"
                "    n = max(len(a), len(b))\n"
                "    a = (1,) * (n - len(a)) + tuple(a)\n"
                "    b = (1,) * (n - len(b)) + tuple(b)\n"
                "    if any(i != j and 1 not in (i, j) for i, j in zip(a, b)):\n"
                "        return None\n"
                "    return tuple(min(i, j) for i, j in zip(a, b))\n",
                "the other one counts",
            ),
            WrongAnswer(
                "a list",
                "def broadcast_shape(a, b):\n    return [max(i, j) for i, j in zip(a, b)]\n",
                "Return a tuple or None",
            ),
            WrongAnswer(
                "torch's error let through",
                "def broadcast_shape(a, b):\n    return tuple(torch.broadcast_shapes(a, b))\n",
                "Return None where",
            ),
        ),
    ),
    "12.2": Exercise(
        title="Refuse a shape that would broadcast by accident",
        minutes=5,
        task="This loss trains a model to predict the mean, without a word, when `predictions` has "
        "shape (n, 1) and `targets` (n,). Repair it: raise ValueError unless the two shapes are "
        "equal. The value and its gradient stay as they are.",
        stub="def mean_squared_error(predictions, targets):\n"
        "    return ((predictions - targets) ** 2).mean()\n",
        answer="mean_squared_error",
        test=test_mean_squared_error,
        hints=(
            "One comparison is enough. A shape is a tuple.",
            "(1,) and (5,) have the same number of dimensions; (5, 1) and (5,) have the same number "
            "of elements. Neither pair may pass.",
            "Start with if predictions.shape != targets.shape:",
        ),
        solution="def mean_squared_error(predictions, targets):\n"
        "    if predictions.shape != targets.shape:\n"
        "        raise ValueError(\n"
        '            f"shapes must be equal, got {tuple(predictions.shape)} for predictions and "\n'
        '            f"{tuple(targets.shape)} for targets"\n'
        "        )\n"
        "    return ((predictions - targets) ** 2).mean()\n",
        wrong=(
            WrongAnswer(
                "always refuses",
                "def mean_squared_error(predictions, targets):\n    raise ValueError('shapes')\n",
                "Two equal shapes",
            ),
            WrongAnswer(
                "squeezed",
                "def mean_squared_error(predictions, targets):\n"
                "    return ((predictions.squeeze() - targets.squeeze()) ** 2).mean()\n",
                "refuse, do not guess",
            ),
            WrongAnswer(
                "view_as",
                "def mean_squared_error(predictions, targets):\n"
                "    return ((predictions.view_as(targets) - targets) ** 2).mean()\n",
                "refuse, do not guess",
            ),
            WrongAnswer(
                "same number of elements",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.numel() != targets.numel():\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions - targets) ** 2).mean()\n",
                "agree in the number of elements",
            ),
            WrongAnswer(
                "same number of dimensions",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.ndim != targets.ndim:\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions - targets) ** 2).mean()\n",
                "both have one dimension",
            ),
            WrongAnswer(
                "same length",
                "def mean_squared_error(predictions, targets):\n"
                "    size = lambda t: len(t) if t.ndim else 1\n"
                "    if size(predictions) != size(targets):\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions - targets) ** 2).mean()\n",
                "the first size alone",
            ),
            WrongAnswer(
                "warned",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        import warnings; warnings.warn("unequal shapes")\n'
                "    return ((predictions - targets) ** 2).mean()\n",
                "a warning is shown once",
            ),
            WrongAnswer(
                "left to F.mse_loss",
                "def mean_squared_error(predictions, targets):\n"
                "    return torch.nn.functional.mse_loss(predictions, targets)\n",
                "a warning is shown once",
            ),
            WrongAnswer(
                "asserted",
                "def mean_squared_error(predictions, targets):\n"
                "    assert predictions.shape == targets.shape\n"
                "    return ((predictions - targets) ** 2).mean()\n",
                "python -O",
            ),
            WrongAnswer(
                "sum",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions - targets) ** 2).sum()\n",
                "depends on the batch",
            ),
            WrongAnswer(
                "detached",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions.detach() - targets) ** 2).mean()\n",
                "lost its graph",
            ),
            WrongAnswer(
                "absolute",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        raise ValueError("unequal")\n'
                "    return (predictions - targets).abs().mean()\n",
                "Leave the formula as it is",
            ),
            WrongAnswer(
                "another exception",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        raise TypeError("unequal")\n'
                "    return ((predictions - targets) ** 2).mean()\n",
                "this raised TypeError",
            ),
            WrongAnswer(
                "what torch refuses",
                "def mean_squared_error(predictions, targets):\n"
                "    try:\n"
                "        return ((predictions - targets) ** 2).mean()\n"
                "    except RuntimeError as error:\n"
                "        raise ValueError(str(error))\n",
                "every prediction was compared",
            ),
            WrongAnswer(
                "a Python number",
                "def mean_squared_error(predictions, targets):\n"
                "    if predictions.shape != targets.shape:\n"
                '        raise ValueError("unequal")\n'
                "    return ((predictions - targets) ** 2).mean().item()\n",
                "as a tensor",
            ),
        ),
    ),
    "12.3": Exercise(
        title="Average pixels without wrap-around",
        minutes=4,
        task="`average(a, b)` takes two uint8 tensors of one shape and returns their average, "
        "rounded down, as uint8. Its sums wrap around. Repair it. The check tries all 65,536 pairs "
        "of pixels.",
        stub="def average(a, b):\n    return (a + b) // 2\n",
        answer="average",
        test=test_average,
        hints=(
            "The sum of two pixels reaches 510. Which dtype do the two have when they are added?",
            "200 and 100 gave 22: the sum was 300 - 256 = 44 before it was halved. Converting the "
            "44 does not bring 300 back.",
            "Start with (a.int() + b.int()) and come back to uint8 at the end.",
        ),
        solution="def average(a, b):\n    return ((a.int() + b.int()) // 2).to(torch.uint8)\n",
        wrong=(
            WrongAnswer(
                "floor of half the sum",
                "def average(a, b):\n    return torch.div(a + b, 2, rounding_mode='floor')\n",
                "wrapped around modulo 256",
            ),
            WrongAnswer(
                "each halved",
                "def average(a, b):\n    return a // 2 + b // 2\n",
                "Two odd numbers lose 1",
            ),
            WrongAnswer(
                "widened late",
                "def average(a, b):\n    return ((a + b).int() // 2).to(torch.uint8)\n",
                "after the damage",
            ),
            WrongAnswer(
                "clamped late",
                "def average(a, b):\n    return (a + b).clamp(max=255) // 2\n",
                "no remedy",
            ),
            WrongAnswer(
                "sum clamped",
                "def average(a, b):\n"
                "    return ((a.int() + b.int()).clamp(max=255) // 2).to(torch.uint8)\n",
                "not of a sum",
            ),
            WrongAnswer(
                "rounded to nearest",
                "def average(a, b):\n"
                "    return ((a.float() + b.float()) / 2).round().to(torch.uint8)\n",
                "Round down",
            ),
            WrongAnswer(
                "left wide",
                "def average(a, b):\n    return (a.int() + b.int()) // 2\n",
                "torch.uint8 again",
            ),
            WrongAnswer(
                "left float",
                "def average(a, b):\n    return (a.float() + b.float()) / 2\n",
                "torch.uint8 again",
            ),
            WrongAnswer(
                "bfloat16",
                "def average(a, b):\n"
                "    return ((a.bfloat16() + b.bfloat16()) / 2).floor().to(torch.uint8)\n",
                "cannot hold 509",
            ),
            WrongAnswer(
                "int8",
                "def average(a, b):\n"
                "    return ((a.to(torch.int8) + b.to(torch.int8)) // 2).to(torch.uint8)\n",
                "up to 510",
            ),
            WrongAnswer(
                "a list",
                "def average(a, b):\n    return ((a.int() + b.int()) // 2).tolist()\n",
                "Return a tensor, got list",
            ),
            WrongAnswer(
                "one number",
                "def average(a, b):\n    return torch.stack([a, b]).float().mean()\n",
                "The shape must stay",
            ),
        ),
    ),
    "12.4": Exercise(
        title="Add at repeated indices",
        minutes=4,
        task="Write `count(labels, num_classes)`: how often each class occurs among the labels, as "
        "an int64 tensor of length num_classes. A class may be missing, and the labels may be "
        "empty.",
        stub="def count(labels, num_classes):\n"
        '    """Return how often each class occurs."""\n'
        "    ...\n",
        answer="count",
        test=test_count,
        hints=(
            "The counts must add up to len(labels).",
            "For [0, 2, 2, 1, 2] an indexed += gives 1, 1, 1; the right counts are 1, 1, 3.",
            "Look at torch.bincount and its argument for a least length, or at index_add_.",
        ),
        solution="def count(labels, num_classes):\n"
        "    return torch.bincount(labels, minlength=num_classes)\n",
        wrong=(
            WrongAnswer(
                "indexed +=",
                "def count(labels, num_classes):\n"
                "    counts = torch.zeros(num_classes, dtype=torch.int64)\n"
                "    counts[labels] += 1\n"
                "    return counts\n",
                "counted once",
            ),
            WrongAnswer(
                "put_ without accumulate",
                "def count(labels, num_classes):\n"
                "    counts = torch.zeros(num_classes, dtype=torch.int64)\n"
                "    return counts.put_(labels, torch.ones_like(labels))\n",
                "counted once",
            ),
            WrongAnswer(
                "bincount without minlength",
                "def count(labels, num_classes):\n    return torch.bincount(labels)\n",
                "without samples",
            ),
            WrongAnswer(
                "unique",
                "def count(labels, num_classes):\n"
                "    return labels.unique(return_counts=True)[1]\n",
                "without samples",
            ),
            WrongAnswer(
                "one_hot without num_classes",
                "def count(labels, num_classes):\n"
                "    return torch.nn.functional.one_hot(labels).sum(0)\n",
                "without samples",
            ),
            WrongAnswer(
                "histc",
                "def count(labels, num_classes):\n"
                "    return torch.histc(labels.float(), num_classes, 0, num_classes - 1)\n",
                "counts are int64",
            ),
            WrongAnswer(
                "default dtype",
                "def count(labels, num_classes):\n"
                "    one = torch.ones(len(labels))\n"
                "    return torch.zeros(num_classes).index_add_(0, labels, one)\n",
                "counts are int64",
            ),
            WrongAnswer(
                "a list",
                "def count(labels, num_classes):\n"
                "    return [labels.tolist().count(k) for k in range(num_classes)]\n",
                "Return a tensor, got list",
            ),
            WrongAnswer(
                "labels added",
                "def count(labels, num_classes):\n"
                "    counts = torch.zeros(num_classes, dtype=torch.int64)\n"
                "    return counts.index_add_(0, labels, labels)\n",
                "Compare counts.sum() with len(labels)",
            ),
            WrongAnswer(
                "most frequent first",
                "def count(labels, num_classes):\n"
                "    counts = torch.bincount(labels, minlength=num_classes)\n"
                "    return counts.sort(descending=True)[0]\n",
                "classes are mixed up",
            ),
        ),
    ),
    "12.5": Exercise(
        title="Place parentheses by cost",
        minutes=6,
        task="`low_rank(x, p, q)` is x @ p @ q with shapes (n, d), (d, r) and (r, m). Make it "
        "choose the order that needs fewer operations, whatever the sizes. The check counts them "
        "with FlopCounterMode.",
        stub="def low_rank(x, p, q):\n    return (x @ p) @ q\n",
        answer="low_rank",
        test=test_low_rank,
        hints=(
            "A product of (a, b) and (b, c) takes a·b·c multiplications.",
            "x (64, 32), p (32, 16), q (16, 1): the left order takes 64·32·16 + 64·16·1, the right "
            "one 32·16·1 + 64·32·1. r < d is true here, and the right one is cheaper.",
            "Start with (n, d), (r, m) = x.shape, q.shape, and compare n·d·r + n·r·m with "
            "d·r·m + n·d·m.",
        ),
        solution="def low_rank(x, p, q):\n"
        "    (n, d), (r, m) = x.shape, q.shape\n"
        "    if n * d * r + n * r * m <= d * r * m + n * d * m:\n"
        "        return (x @ p) @ q\n"
        "    return x @ (p @ q)\n",
        wrong=(
            WrongAnswer(
                "always from the left",
                "def low_rank(x, p, q):\n    narrow = x @ p\n    return narrow @ q\n",
                "p @ q is small here",
            ),
            WrongAnswer(
                "always from the right",
                "def low_rank(x, p, q):\n    return x @ (p @ q)\n",
                "x @ p is narrow here",
            ),
            WrongAnswer(
                "einsum",
                'def low_rank(x, p, q):\n    return torch.einsum("nd,dr,rm->nm", x, p, q)\n',
                "einsum goes from left to right",
            ),
            WrongAnswer(
                "the rank alone",
                "def low_rank(x, p, q):\n"
                "    return (x @ p) @ q if p.shape[1] < p.shape[0] else x @ (p @ q)\n",
                "All four sizes decide",
            ),
            WrongAnswer(
                "the outer sizes",
                "def low_rank(x, p, q):\n"
                "    return (x @ p) @ q if x.shape[0] < q.shape[1] else x @ (p @ q)\n",
                "4 columns",
            ),
            WrongAnswer(
                "the rank against the last size",
                "def low_rank(x, p, q):\n"
                "    return (x @ p) @ q if p.shape[1] < q.shape[1] else x @ (p @ q)\n",
                "(128, 2)",
            ),
            WrongAnswer(
                "the smaller result in between",
                "def low_rank(x, p, q):\n"
                "    left, right = x.shape[0] * p.shape[1], p.shape[0] * q.shape[1]\n"
                "    return (x @ p) @ q if left <= right else x @ (p @ q)\n",
                "All four sizes decide",
            ),
            WrongAnswer(
                "transposed",
                "def low_rank(x, p, q):\n    return (q.T @ (x @ p).T)\n",
                "The result has shape",
            ),
            WrongAnswer(
                "divided by the rank",
                "def low_rank(x, p, q):\n    return (x @ p) @ q / p.shape[1]\n",
                "The values are not those",
            ),
            WrongAnswer(
                "a list",
                "def low_rank(x, p, q):\n    return ((x @ p) @ q).tolist()\n",
                "Return a tensor, got list",
            ),
            WrongAnswer(
                "out of NumPy",
                "def low_rank(x, p, q):\n"
                "    return torch.from_numpy(np.linalg.multi_dot([x.numpy(), p.numpy(), q.numpy()]))\n",
                "Use two products with @",
            ),
        ),
    ),
}
