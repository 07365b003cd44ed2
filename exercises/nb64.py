"""Ask and check what 64_shrink_a_model teaches."""

import math
from numbers import Real

import torch

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "64.p1": Number(
        question="All weights of the trained network become int8. How many of its 360 predictions "
        "change?",
        unit="predictions",
        among=360,
        notes=(
            (0, 3, "Right: in nearly every decision two logits are further apart than that."),
            (3, 40, "Less still: half a step in each weight moves a logit very little."),
            (
                40,
                361,
                "A quarter of the bits is no quarter of the information: the bits that went were "
                "the last ones.",
            ),
        ),
    ),
    "64.p2": Choice(
        question="The rewritten network has the same answers as before. One scale for each weight "
        "matrix, int8: what is its accuracy?",
        options={
            "as before": "Rounding does not see the function. It sees the numbers in a matrix.",
            "a few points less": "Every unit but one is rounded away, and not only a little.",
            "about 10 %, chance": "Right: one row chose the step for all others.",
        },
    ),
    "64.p3": Choice(
        question="The scale is largest / 128 instead of / 127. There is no clamp. What becomes of "
        "the largest weight, 0.7?",
        options={
            "0.7": "It would need the integer 128. int8 ends at 127.",
            "slightly less than 0.7": "Conversion to int8 does not stop at 127: it keeps the last "
            "8 bits.",
            "-0.7": "Right: 128 is the bit pattern of -128.",
            "an error": "Conversion between dtypes checks nothing.",
        },
    ),
    "64.p4": Choice(
        question="32 rows, one thread. The weights lie in int8 and are unpacked to float32 in each "
        "call. What part of the float32 model's time does that take?",
        options={
            "about a quarter": "A quarter of the bytes is read. The multiplications are the same.",
            "about half": "It would be, if reading weights were the larger half of the work.",
            "no less": "Right: the arithmetic is still float32, and unpacking comes on top.",
        },
    ),
    "64.p5": Number(
        question="49 digits share a batch with one row that is 1,000 times too bright. How many of "
        "the 49 get another class from the int8 file?",
        unit="digits",
        among=49,
        notes=(
            (0, 5, "So it is in float32. Here one scale for the batch grew by 1,000."),
            (5, 25, "More: with a scale so large, nearly all pixels of the others round to 0."),
            (25, 50, "Right: they are rounded with the bright row's scale."),
        ),
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


# --- 64.1 -------------------------------------------------------------------------------

_BYTES_LESSONS = {
    "no scales": "Restore a weight without its scale? Scales are float32 and count.",
    "bias in int8": "Biases stay float32 here: 4 bytes for each output row.",
    "no biases": "Each output row also has a bias, in float32.",
    "scale per input": "A channel is an output row: one scale for each row, not for each column.",
    "bits as bytes": "The weights come out 8 times too large: bits is a number of bits.",
    "always per channel": "per_channel is False: the matrix has one scale.",
    "never per channel": "per_channel is True: each output row has a scale of its own.",
    "rounded down": "Half a byte is stored as a whole one: round the weights of a layer up.",
}


def _real_bytes(shapes, bits, per_channel):
    """Count the bytes of tensors as they would be stored."""
    total = 0
    for outputs, inputs in shapes:
        packed = torch.zeros((outputs * inputs * bits + 7) // 8, dtype=torch.uint8)
        scale = torch.zeros(outputs if per_channel else 1, 1)
        total += packed.nbytes + scale.nbytes + torch.zeros(outputs).nbytes
    return total


def _wrong_bytes(shapes, bits, per_channel):
    """Return what each misconception counts, by its name."""
    right = _real_bytes(shapes, bits, per_channel)
    rows = sum(outputs for outputs, _ in shapes)
    scales = 4 * (rows if per_channel else len(shapes))
    weights = right - scales - 4 * rows
    return {
        "no scales": right - scales,
        "bias in int8": right - 3 * rows,
        "no biases": right - 4 * rows,
        "scale per input": right - scales + 4 * sum(inputs for _, inputs in shapes),
        "bits as bytes": right - weights + sum(o * i * bits for o, i in shapes),
        "always per channel": right - scales + 4 * rows,
        "never per channel": right - scales + 4 * len(shapes),
        "rounded down": right - weights + sum(o * i * bits // 8 for o, i in shapes),
    }


def test_payload_bytes(answer, call):
    for bits, per_channel in ((8, False), (8, True), (4, True), (4, False), (2, True)):
        odd = 2 * torch.randint(20, 60, (3, 2)) + 1
        shapes = [(int(outputs), int(inputs)) for outputs, inputs in odd]
        got = call(answer, list(shapes), bits, per_channel)
        if not _is_number(got):
            raise Wrong(f"Return a number of bytes, got {_kind(got)}.")
        expected = _real_bytes(shapes, bits, per_channel)
        if got == expected:
            continue
        told = f"{shapes}, {bits} bits, per_channel={per_channel}: {expected} bytes, got {got}."
        for name, value in _wrong_bytes(shapes, bits, per_channel).items():
            if got == value:
                raise Wrong(f"{told} {_BYTES_LESSONS[name]}")
        raise Wrong(f"{told} Add packed weights, float32 scales and float32 biases of each layer.")


# --- 64.2 -------------------------------------------------------------------------------


def _matrices():
    """Return matrices (5, 7) to quantize, each with a trap in it."""
    plain = torch.randn(5, 7)
    negative = torch.randn(5, 7)
    negative[:, 2] = -4 - torch.rand(5)
    positive = -negative
    stretched = torch.randn(5, 7)
    stretched[3] *= 1024
    empty = torch.randn(5, 7)
    empty[1] = 0
    return plain, negative, positive, stretched, empty


def test_quantize(answer, call):
    for w in _matrices():
        q, scale = _pair(call(answer, w), w)
        if not (scale > 0).all():
            raise Wrong(
                "The scale of a row of zeros is 0, and its weights become 0 / 0. Keep it above 0, "
                "with clamp(min=...)."
            )
        restored = q.float() * scale
        if restored[w == 0].any():
            raise Wrong("A row of zeros is restored as something else. Its whole numbers are 0.")
        alive = w.abs().amax(1) > 0
        _look_at_scales(w[alive], scale[alive])
        _look_at_errors(w[alive], restored[alive], scale[alive])


def _pair(got, w):
    if not (isinstance(got, tuple | list) and len(got) == 2):
        raise Wrong(f"Return q and scale, a pair, got {_kind(got)}.")
    q, scale = got
    if not (isinstance(q, torch.Tensor) and isinstance(scale, torch.Tensor)):
        raise Wrong(f"q and scale must be tensors, got {_kind(q)} and {_kind(scale)}.")
    if q.dtype != torch.int8:
        raise Wrong(f"q has the dtype {q.dtype}: no byte is spared. Convert it to torch.int8.")
    if q.shape != w.shape:
        raise Wrong(f"q must have the shape of w, {tuple(w.shape)}, got {tuple(q.shape)}.")
    if scale.numel() == 1:
        raise Wrong("One scale for all: row 3 shares row 0's step. Take the largest of each row.")
    if scale.shape == (1, w.shape[1]):
        raise Wrong("The scale follows columns, shape (1, 7). A channel is an output row.")
    if scale.shape != (w.shape[0], 1):
        raise Wrong(
            f"scale has the shape {tuple(scale.shape)}; q * scale needs (5, 1). keepdim=True "
            "keeps that dimension."
        )
    return q, scale


def _look_at_scales(w, scale):
    largest = w.abs().amax(1, keepdim=True)
    ratio = scale * 127 / largest
    if torch.allclose(ratio, torch.full_like(ratio, 127 / 128), rtol=1e-4):
        raise Wrong(
            "With largest / 128 the largest weight would need the integer 128. int8 ends at 127: "
            "it is cut, or it changes its sign."
        )
    if (ratio < 0.999).any():
        row = int(ratio.argmin())
        raise Wrong(
            f"Row {row}: weights reach {w[row].min():.2f} and {w[row].max():.2f}, and 127 steps "
            f"reach {127 * scale[row, 0]:.2f}. One side overflows: take the largest absolute value."
        )
    if (ratio > 1.001).any():
        raise Wrong(
            f"A step is {ratio.max():.1f} times as large as its row needs. The scale of a row is "
            "its largest absolute value / 127."
        )


def _look_at_errors(w, restored, scale):
    steps = ((restored - w).abs() / scale).max().item()
    if steps > 0.501:
        raise Wrong(
            f"An error reached {steps:.2f} steps; half a step is possible. Round to the nearest "
            "integer before you convert: to(torch.int8) cuts, floor goes down."
        )


# --- 64.3 -------------------------------------------------------------------------------


def _rounded_rows(x, scale):
    return (x / scale).round().clamp(-127, 127)


def _expected_rows(x, q, scale, bias):
    """Compute row by row, with sums of whole numbers."""
    rows = []
    for row in x.double():
        step = max(row.abs().max().item(), 1e-30) / 127
        sums = (row / step).round().long() @ q.long().T
        rows.append(sums * step * scale[:, 0].double() + bias.double())
    return torch.stack(rows).float()


def _other_ways(x, q, scale, bias):
    """Return what each misconception answers, by its sentence."""
    columns = x.abs().amax(0, keepdim=True) / 127
    highest = x.amax(1, keepdim=True).clamp(min=1e-9) / 127
    rows = x.abs().amax(1, keepdim=True) / 127
    wrapped = (_rounded_rows(x, rows).long() @ q.long().T).to(torch.int8)
    weight = q * scale
    return {
        "The largest size of a row is asked for, not its largest number: a row holds negative ones, "
        "too.": ((x / highest).round() * highest) @ weight.T + bias,
        "A scale for each column still takes the largest over all callers. Take it over a row.": (
            _rounded_rows(x, columns) * columns
        )
        @ weight.T
        + bias,
        "No activation was rounded: this is float32 arithmetic. x must go through whole numbers "
        "from -127 to 127.": x @ weight.T + bias,
        "The sums were kept in int8 and wrapped around: one product can be 127 * 127. Add up in "
        "float32 or int32.": wrapped * rows * scale.T + bias,
    }


def test_int8_linear(answer, call):
    x, q = torch.rand(6, 16) - 0.7, torch.randint(-127, 128, (4, 16), dtype=torch.int8)
    given = (q, torch.rand(4, 1) * 0.01 + 0.001, torch.randn(4))
    got = call(answer, x, *given)
    if not isinstance(got, torch.Tensor):
        raise Wrong(f"Return the answers as a tensor, got {_kind(got)}.")
    if got.shape != (6, 4):
        raise Wrong(f"6 rows, 4 outputs need the shape (6, 4), got {tuple(got.shape)}.")
    for sentence, value in _other_ways(x, *given).items():
        if torch.allclose(got.float(), value, rtol=1e-4, atol=1e-4):
            raise Wrong(sentence)
    bright = x.clone()
    bright[-1] *= 1000
    beside = call(answer, bright, *given)
    if not torch.allclose(beside[:5], got[:5], rtol=1e-4, atol=1e-4):
        raise Wrong(
            "Row 5 became 1,000 times brighter, and the answers to rows 0 to 4 moved. There is "
            "still one scale for all: each row needs its own."
        )
    order = torch.tensor([3, 5, 0, 4, 1, 2])
    moved = call(answer, bright[order], *given)
    if not torch.allclose(moved, beside[order], rtol=1e-4, atol=1e-4):
        raise Wrong(
            "The same rows in another order get other answers. Whose scale is it? Each row needs "
            "its own."
        )
    _look_at_answers(answer, call, bright, given)


def _look_at_answers(answer, call, bright, given):
    got, expected = call(answer, bright, *given), _expected_rows(bright, *given)
    apart = (got - expected).abs()
    relative = apart.amax(1) / expected.abs().amax(1)
    if relative[-1] > 0.3 > relative[:5].max():
        raise Wrong(
            "The bright row was cut off: you changed that caller's answer. Its own scale would "
            "hold it."
        )
    steps = bright.abs().amax(1, keepdim=True) * given[1].T  # one pixel rounded otherwise
    far = (apart > steps + 1e-3 * expected.abs()).any(1)
    if far.any():
        raise Wrong(
            f"Row {int(far.nonzero()[0])} is not q(x) @ q.T * x_scale * scale.T + bias. Was a "
            "scale left out?"
        )
    dark = bright.clone()
    dark[2] = 0
    if not torch.allclose(call(answer, dark, *given)[2].float(), given[2], atol=1e-4):
        raise Wrong(
            "A row of zeros must answer the bias. Here it is 0 / 0: keep its scale above 0, with "
            "clamp(min=...)."
        )


# --- 64.4 -------------------------------------------------------------------------------


def test_images_needed(answer, call):
    for rate in (0.01, 0.5, 0.001, 0.05, 0.2):
        got = call(answer, rate)
        if not _is_number(got):
            raise Wrong(f"Return a number of images, got {_kind(got)}.")
        if not math.isfinite(got):
            raise Wrong(f"rate {rate}: got {got}. Some number of images is always enough.")
        exact = math.log(0.05) / math.log(1 - rate)
        needed = math.ceil(exact)
        if got == needed:
            continue
        told = f"rate {rate}: {needed} images, got {got:g}."
        if got in (math.ceil(3 / rate), math.floor(3 / rate), round(3 / rate)):
            raise Wrong(f"{told} 3 / rate is a rule of thumb for small rates. Use logarithms.")
        other = math.log(0.95) / math.log(1 - rate)
        if got in (math.ceil(other), math.floor(other)):
            raise Wrong(f"{told} At most 0.05 of such tests may show no change, not 0.95.")
        if got != int(got):
            raise Wrong(f"{told} There are no fractions of images: round up.")
        if got < needed:
            chance = (1 - rate) ** got
            raise Wrong(
                f"{told} With {got:g} images such a model shows no change with a chance of "
                f"{chance:.3f}, and 0.05 is the limit. Solve (1 - rate)**n <= 0.05."
            )
        raise Wrong(f"{told} Fewer are enough: find the smallest n with (1 - rate)**n <= 0.05.")


# --- sources ------------------------------------------------------------------------------

_PAYLOAD = (
    "def payload_bytes(shapes, bits, per_channel):\n    total = 0\n"
    "    for outputs, inputs in shapes:\n"
)


def _payload(weights="(outputs * inputs * bits + 7) // 8", scales=None, biases="4 * outputs"):
    scales = scales or "4 * (outputs if per_channel else 1)"
    return _PAYLOAD + f"        total += {weights} + {scales} + {biases}\n    return total\n"


_QUANTIZE_STUB = (
    "def quantize_channels(w):  # (outputs, inputs)\n"
    '    """Return q, int8 like w, and scale, (outputs, 1)."""\n    ...\n'
)


def _quantize(
    largest="w.abs().amax(1, keepdim=True)",
    top="127",
    guard=".clamp(min=1e-12)",
    q="(w / scale).round().clamp(-127, 127).to(torch.int8)",
):
    return (
        "import torch\n\n\ndef quantize_channels(w):\n"
        f"    scale = {largest}{guard} / {top}\n    return {q}, scale\n"
    )


def _linear(scale, rounded="(x / x_scale).round()", rest=None):
    rest = rest or "    return (x_q @ q.float().T) * x_scale * scale.T + bias\n"
    return (
        f"def int8_linear(x, q, scale, bias):\n    x_scale = {scale}\n    x_q = {rounded}\n{rest}"
    )


_ROW_SCALE = "x.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127"
_IMAGES = "import math\n\n\ndef images_needed(rate):\n"

EXERCISES = {
    "64.1": Exercise(
        title="Predict the bytes",
        minutes=5,
        task="`shapes` lists the weights of Linear layers as (outputs, inputs). Return the bytes "
        "of all layers: weights of `bits` bits, packed and rounded up to a whole byte in each "
        "layer; float32 scales, one for each output or one for each layer; float32 biases.",
        stub="def payload_bytes(shapes, bits, per_channel):\n"
        '    """Return the bytes of quantized Linear layers."""\n    ...\n',
        answer="payload_bytes",
        test=test_payload_bytes,
        hints=(
            "Three parts for each layer. Two of them are float32.",
            "One layer (3, 5), 4 bits, per channel: 15 half bytes need 8 bytes, then 3 scales and "
            "3 biases of 4 bytes: 32.",
            "(outputs * inputs * bits + 7) // 8 bytes hold the weights of a layer.",
        ),
        solution=_payload(),
        wrong=(
            WrongAnswer("no scales", _payload(scales="0"), "without its scale"),
            WrongAnswer("bias in int8", _payload(biases="outputs"), "Biases stay float32"),
            WrongAnswer("no biases", _payload(biases="0"), "also has a bias"),
            WrongAnswer(
                "scale per input",
                _payload(scales="4 * (inputs if per_channel else 1)"),
                "A channel is an output row",
            ),
            WrongAnswer("bits as bytes", _payload("outputs * inputs * bits"), "8 times too large"),
            WrongAnswer(
                "always per channel", _payload(scales="4 * outputs"), "the matrix has one scale"
            ),
            WrongAnswer("never per channel", _payload(scales="4"), "a scale of its own"),
            WrongAnswer(
                "rounded down", _payload("outputs * inputs * bits // 8"), "stored as a whole one"
            ),
            WrongAnswer(
                "last layer",
                _payload().replace("total +=", "total ="),
                "Add packed weights",
            ),
            WrongAnswer("nothing", _PAYLOAD + "        total += 1\n", "Return a number of bytes"),
        ),
    ),
    "64.2": Exercise(
        title="Quantize with a proven bound",
        minutes=8,
        task="Return q and scale for a weight matrix: q in int8, one scale for each output row, "
        "its largest absolute value / 127. No weight may be off by more than half its scale. Scales "
        "stay above 0, and a row of zeros is restored as zeros.",
        stub=_QUANTIZE_STUB,
        answer="quantize_channels",
        test=test_quantize,
        hints=(
            "Each row is measured by its own largest absolute value.",
            "The row [-4, 1]: with max instead of the largest absolute value, -4 would be the "
            "integer -508.",
            "largest = w.abs().amax(1, keepdim=True).clamp(min=1e-12)",
        ),
        solution=_quantize(),
        wrong=(
            WrongAnswer(
                "128, no clamp",
                _quantize(top="128", q="(w / scale).round().to(torch.int8)"),
                "would need the integer 128",
            ),
            WrongAnswer(
                "128 and clamp",
                _quantize(top="128"),
                "would need the integer 128",
            ),
            WrongAnswer("per tensor", _quantize("w.abs().max()"), "shares row 0's step"),
            WrongAnswer(
                "per tensor, as rows",
                _quantize("w.abs().max().expand(len(w), 1)"),
                "as large as its row needs",
            ),
            WrongAnswer(
                "columns", _quantize("w.abs().amax(0, keepdim=True)"), "The scale follows columns"
            ),
            WrongAnswer(
                "no keepdim",
                _quantize("w.abs().amax(1)", q="(w.T / scale).T.round().to(torch.int8)"),
                "keepdim=True",
            ),
            WrongAnswer(
                "floor",
                _quantize(q="(w / scale).floor().clamp(-127, 127).to(torch.int8)"),
                "Round to the nearest",
            ),
            WrongAnswer(
                "no round",
                _quantize(q="(w / scale).clamp(-127, 127).to(torch.int8)"),
                "Round to the nearest",
            ),
            WrongAnswer(
                "no abs",
                _quantize("w.amax(1, keepdim=True)"),
                "One side overflows",
            ),
            WrongAnswer("zero row", _quantize(guard=""), "0 / 0"),
            WrongAnswer(
                "ones for zeros",
                _quantize(q="(w / scale).round().masked_fill(w == 0, 1).to(torch.int8)"),
                "restored as something else",
            ),
            WrongAnswer("not converted", _quantize(q="(w / scale).round()"), "no byte is spared"),
            WrongAnswer(
                "packed flat",
                _quantize(q="(w / scale).round().to(torch.int8).flatten()"),
                "the shape of w",
            ),
            WrongAnswer(
                "a list",
                "def quantize_channels(w):\n    return w.tolist(), 1.0\n",
                "must be tensors",
            ),
            WrongAnswer("q only", "def quantize_channels(w):\n    return w\n", "got Tensor"),
        ),
    ),
    "64.3": Exercise(
        title="Protect each caller from the others",
        minutes=8,
        task="A Linear layer in int8: q and scale are the weights, x is rounded in each call. One "
        "scale for the batch lets a bright row spoil the others. Repair it: the answer to a row "
        "must not depend on other rows. A row of zeros answers the bias.",
        stub="def int8_linear(x, q, scale, bias):  # (rows, inputs), (outputs, inputs), ...\n"
        "    x_scale = x.abs().max() / 127\n"
        "    x_q = (x / x_scale).round()\n"
        "    return (x_q @ q.float().T) * x_scale * scale.T + bias\n",
        answer="int8_linear",
        test=test_int8_linear,
        hints=(
            "scale is one number for each output. x_scale can be one for each row: both factors "
            "can wait until after the sum.",
            "x has the rows [1, 1] and [1000, 1000]. With one scale, 1 is the whole number 0.",
            "x_scale = x.abs().amax(1, keepdim=True) / 127, and something for rows of zeros",
        ),
        solution=_linear(_ROW_SCALE),
        wrong=(
            WrongAnswer("scale of row 0", _linear("x[:1].abs().max() / 127"), "Whose scale is it?"),
            WrongAnswer(
                "no abs",
                _linear("x.amax(1, keepdim=True).clamp(min=1e-9) / 127"),
                "The largest size of a row",
            ),
            WrongAnswer(
                "columns",
                _linear(
                    "x.abs().amax(0, keepdim=True) / 127",
                    rest="    return (x_q * x_scale) @ (q * scale).T + bias\n",
                ),
                "A scale for each column",
            ),
            WrongAnswer(
                "typical row",
                _linear("x.abs().amax(1).mean() / 127"),
                "still one scale for all",
            ),
            WrongAnswer(
                "outlier cut",
                _linear("0.01", rounded="(x / x_scale).round().clamp(-127, 127)"),
                "you changed that caller's answer",
            ),
            WrongAnswer(
                "float32",
                _linear("1", rest="    return x @ (q * scale).T + bias\n"),
                "No activation was rounded",
            ),
            WrongAnswer(
                "sums in int8",
                _linear(
                    _ROW_SCALE,
                    rounded="(x / x_scale).round().to(q.dtype)",
                    rest="    return (x_q @ q.T) * x_scale * scale.T + bias\n",
                ),
                "wrapped around",
            ),
            WrongAnswer(
                "scale left out",
                _linear(
                    _ROW_SCALE,
                    rest="    return (x_q @ q.float().T) * scale.T + bias\n",
                ),
                "Was a scale left out",
            ),
            WrongAnswer("zero row", _linear("x.abs().amax(1, keepdim=True) / 127"), "0 / 0"),
            WrongAnswer(
                "transposed",
                _linear(
                    _ROW_SCALE,
                    rest="    return ((x_q @ q.float().T) * x_scale * scale.T + bias).T\n",
                ),
                "need the shape",
            ),
            WrongAnswer(
                "nothing", "def int8_linear(x, q, scale, bias):\n    x @ q.float().T\n", "got None"
            ),
        ),
    ),
    "64.4": Exercise(
        title="Say what no change proves",
        minutes=5,
        task="You compare predictions on n fresh images, and none changes. Return the smallest n "
        "that lets you say: the rate of changes is below `rate`. A model whose rate is `rate` may "
        "pass the test with a chance of 0.05 at most.",
        stub="def images_needed(rate):\n"
        '    """Return the number of images, a whole number."""\n    ...\n',
        answer="images_needed",
        test=test_images_needed,
        hints=(
            "One image stays as it was with the chance 1 - rate. All n of them: a product.",
            "rate 0.5: 0.5**4 is 0.0625, above 0.05; 0.5**5 is 0.03125. So 5 images.",
            "Solve (1 - rate)**n = 0.05 for n with math.log, then math.ceil.",
        ),
        solution=_IMAGES + "    return math.ceil(math.log(0.05) / math.log(1 - rate))\n",
        wrong=(
            WrongAnswer(
                "one over rate", _IMAGES + "    return math.ceil(1 / rate)\n", "0.05 is the limit"
            ),
            WrongAnswer(
                "rule of thumb", _IMAGES + "    return math.ceil(3 / rate)\n", "rule of thumb"
            ),
            WrongAnswer(
                "0.95",
                _IMAGES + "    return math.ceil(math.log(0.95) / math.log(1 - rate))\n",
                "not 0.95",
            ),
            WrongAnswer(
                "rounded down",
                _IMAGES + "    return int(math.log(0.05) / math.log(1 - rate))\n",
                "0.05 is the limit",
            ),
            WrongAnswer(
                "a fraction",
                _IMAGES + "    return math.log(0.05) / math.log(1 - rate)\n",
                "round up",
            ),
            WrongAnswer(
                "0.01",
                _IMAGES + "    return math.ceil(math.log(0.01) / math.log(1 - rate))\n",
                "Fewer are enough",
            ),
            WrongAnswer("infinity", _IMAGES + "    return math.inf\n", "is always enough"),
            WrongAnswer("nothing", _IMAGES + "    math.log(rate)\n", "got None"),
        ),
    ),
}
