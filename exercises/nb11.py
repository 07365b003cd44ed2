"""Ask and check what 11_create_and_inspect_tensors teaches."""

import operator

import torch

from helpers import memory
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "11.p1": Number(
        question="A float32 counter adds 1 for ever. At which number does it stop?",
        unit="",
        notes=(
            (0, 1_000_000, "float32 still counts there: it has 24 bits for the digits."),
            (1_000_000, 100_000_000, "That is where 24 bits for the digits run out."),
            (100_000_000, 1e12, "Near 2**31 an integer overflows. float32 has 24 bits for the "
             "digits, so the gaps grow past 1 long before."),
            (1e12, 1e40, "You named the range of float32. Its precision ends much earlier."),
        ),
    ),
    "11.p2": Number(
        question="You keep ten float32 numbers of ten million and save them. How big is the file?",
        unit="bytes",
        notes=(
            (0, 1000, "You counted the elements you see. The file holds the storage they live in."),
            (1000, 10_000, "Right for a clone. A slice brings its whole storage along."),
            (10_000, 1_000_000_000, "The whole storage went into the file."),
        ),
    ),
    "11.p3": Choice(
        question="On this machine, torch.zeros(1).expand(10**15): what happens?",
        options={
            "out of memory": "A shape costs nothing. Only the storage does, and it has one element.",
            "the disk starts to swap": "No byte is touched: the storage has one element.",
            "an error: too large": "Sizes are 64-bit numbers. This one fits.",
            "a tensor of 4 bytes": "Right: one element, and a stride of 0.",
        },
    ),
    "11.p4": Number(
        question="Of six checks, how many notice the scrambled row?",
        unit="checks",
        among=6,
        notes=(
            (0, 1, "One does: it compares numbers at their places."),
            (1, 2, "Right: only a comparison place by place can see an order."),
            (2, 7, "Shape, dtype, sum, spread and sorted values are the same in any order."),
        ),
    ),
    "11.p5": Choice(
        question="r = x[:, ::2].reshape(-1); r[0] = -1. Which x changes?",
        options={
            "both": "reshape is a view only where one stride can walk the elements.",
            "neither": "A stepped slice is a view, and reshape keeps it one if it can.",
            "only the 4-column one": "Right: there every step is 2 cells, also across the rows.",
            "only the 5-column one": "With 5 columns the steps are 2, 2, then 1: no single stride.",
        },
    ),
    "11.p6": Number(
        question="How many of the six writes arrive in x?",
        unit="writes",
        among=6,
        notes=(
            (0, 3, "More arrive: an assignment through an index writes, whatever the index is, "
             "and an integer tensor without dimensions is read as a plain integer: a view."),
            (3, 4, "You counted them all."),
            (4, 7, "Fewer arrive: reading with a list, a mask or an index tensor copies first, "
             "unless the tensor has no dimension."),
        ),
    ),
}  # fmt: skip


# --- 11.1 -------------------------------------------------------------------------------

SHAPES = ((2, 3), (4,), (2, 3, 4), (3, 1, 2), (2, 0, 3), (), (5, 4, 3, 2))


def test_strides_of(answer, call):
    for shape in SHAPES:
        expected = torch.empty(shape).stride()
        got = call(answer, shape)
        if not isinstance(got, (tuple, list)):
            raise Wrong(f"Return a tuple of integers for {shape}, got {got!r}.")
        try:
            got = tuple(map(operator.index, got))  # NumPy's integers are integers too
        except TypeError:
            raise Wrong(
                f"Strides count elements: return integers for {shape}, got {tuple(got)!r}."
            ) from None
        if got != expected:
            raise Wrong(f"{shape} has strides {expected}, got {got}. {_why_strides(shape, got)}")


def _why_strides(shape, got):
    after = [1]
    for size in reversed(shape[1:]):
        after.append(after[-1] * size)
    plain = tuple(reversed(after)) if shape else ()
    before = [1]
    for size in shape[:-1]:
        before.append(before[-1] * size)
    if 0 in shape and got == plain:
        return "torch treats a size of 0 as 1 here."
    if got in (tuple(size * s for s in plain) for size in (4, 8)):
        return "Strides count elements in torch and bytes in NumPy."
    if len(shape) > 1 and got == tuple(before):
        return "The last dimension moves by 1, the first by the most."
    if shape and got == tuple(s * max(1, n) for s, n in zip(plain, shape, strict=True)):
        return "The stride of a dimension multiplies the sizes after it, not its own."
    return "One step along a dimension jumps over everything behind it."


# --- 11.2 -------------------------------------------------------------------------------


def test_split_heads(answer, call):
    for batch, time, dim, heads in ((2, 6, 12, 3), (3, 4, 6, 3), (1, 2, 8, 4)):
        x = torch.rand(batch, time, dim)
        size = dim // heads
        got = call(answer, x, heads)
        if not isinstance(got, torch.Tensor):
            raise Wrong(f"Return a tensor, got {type(got).__name__}.")
        expected = (batch, heads, time, size)
        if tuple(got.shape) != expected:
            raise Wrong(
                f"For {batch} sequences of {time} tokens and {heads} heads the shape is "
                f"{expected}, got {tuple(got.shape)}. {_why_heads(tuple(got.shape), expected)}"
            )
        for b in range(batch):
            for h in range(heads):
                for t in range(time):
                    if not torch.equal(got[b, h, t], x[b, t, h * size : (h + 1) * size]):
                        raise Wrong(_mixed(got, x, b, h, t, size, heads))


def _why_heads(got, expected):
    batch, heads, time, size = expected
    if got == (batch, time, heads, size):
        return "Your dimensions are (batch, time, heads, size): heads must come before time."
    if got == (heads, batch, time, size):
        return "Batch comes first."
    return "The last dimension is split into heads; time stays whole."


def _mixed(got, x, b, h, t, size, heads):
    if torch.equal(got[b, h, t], x[b, t, h::heads]):
        return (
            f"Head {h} took the features of token {t} in steps of {heads}. A head is a run of "
            f"neighbors: "
            f"features {h * size} to {(h + 1) * size - 1}."
        )
    return (
        f"The shape is right and the tokens are mixed: head {h} of token {t} must hold "
        f"x[{b}, {t}, {h * size}:{(h + 1) * size}]. view() counts through memory in order; "
        "swapping two dimensions needs transpose or permute. The sum did not notice."
    )


# --- 11.3 -------------------------------------------------------------------------------


def test_keep_first(answer, call):
    for x, n in (
        (torch.rand(1000), 10),
        (torch.arange(600).view(200, 3), 5),
        (torch.rand(64, dtype=torch.float64), 64),
    ):
        kept = x.clone()
        got = call(answer, x, n)
        if not isinstance(got, torch.Tensor):
            missing = " Is a return missing?" if got is None else ""
            raise Wrong(f"Return a tensor, got {type(got).__name__}.{missing}")
        if not torch.equal(got, kept[:n]):
            raise Wrong(f"The result must equal x[:{n}], with its dtype and shape.")
        if got.dtype != x.dtype:
            raise Wrong(f"The dtype must stay {x.dtype}, got {got.dtype}.")
        if memory.shares_storage(got, x):
            raise Wrong(
                f"The result shows {memory.tensor_bytes(got):,} bytes and keeps "
                f"{memory.storage_bytes(got):,} alive: it still looks into x. {_why_kept(answer)}"
            )
        if memory.storage_bytes(got) != memory.tensor_bytes(got):
            raise Wrong(
                f"The result shows {memory.tensor_bytes(got):,} bytes and holds "
                f"{memory.storage_bytes(got):,}: the whole storage was copied. "
                f"{_why_kept(answer)}"
            )


def _why_kept(answer):
    names = set(getattr(getattr(answer, "__code__", None), "co_names", ()))
    for name, why in (
        ("contiguous", "A slice from the start is contiguous already: contiguous() returns it."),
        ("deepcopy", "deepcopy copies the whole storage, and then looks at a part of it."),
        ("detach", "detach() leaves the graph, not the bytes."),
        ("float", "There is nothing to convert, so nothing is copied."),
        ("to", "There is nothing to convert, so nothing is copied."),
        ("reshape", "reshape returns a view wherever it can."),
    ):
        if name in names:
            return why
    return "A slice is a view."


# --- 11.4 -------------------------------------------------------------------------------


def test_scale_pixels(answer, call):
    for dtype in (torch.uint8, torch.float32, torch.float64):
        images = torch.randint(1, 200, (2, 3, 4)).to(dtype)
        images[0, 0, 0] = 255 if dtype == torch.uint8 else 200  # the brightest need not be white
        before, writes = images.clone(), images._version
        got = answer(images)
        if torch.equal(images, before) and images._version != writes:
            raise Wrong(
                "Your function wrote into its input and undid it. Meanwhile, and after an error, "
                "the caller's images are wrong, and autograd refuses them: only read the input."
            )
        if not torch.equal(images, before):
            raise Wrong(
                f"The {dtype} input changed: {before[0, 0, 0].item():g} became "
                f"{images[0, 0, 0].item():g}. The same "
                "line is harmless for uint8, where the conversion copies."
            )
        if not isinstance(got, torch.Tensor) or got.dtype != torch.float32:
            kind = got.dtype if isinstance(got, torch.Tensor) else type(got).__name__
            raise Wrong(f"{dtype} images must become float32, got {kind}.")
        if got.shape != images.shape:
            raise Wrong(f"The shape must stay {tuple(images.shape)}, got {tuple(got.shape)}.")
        expected = before.double() / 255
        if set(got.flatten().tolist()) <= {0.0, 1.0}:
            raise Wrong("Only 0 and 1 are left: // drops the fraction.")
        if not torch.allclose(got.double(), expected, atol=1e-6):
            raise Wrong(
                f"A pixel of {before[0, 0, 1].item():g} must become "
                f"{expected[0, 0, 1].item():.4f}, got {got[0, 0, 1].item():.4f}. White is 255 in "
                "every image, whatever its brightest pixel is, and becomes 1."
            )


EXERCISES = {
    "11.1": Exercise(
        title="Compute strides from a shape",
        minutes=5,
        task="Write `strides_of(shape)`: the strides, in elements, of a new tensor of this shape. "
        "The check compares with torch, also for sizes of 0 and 1 and for the empty shape.",
        stub='def strides_of(shape):\n    """Return the strides of a fresh tensor, in elements."""'
        "\n    ...\n",
        answer="strides_of",
        test=test_strides_of,
        hints=(
            "One step along a dimension jumps over everything that lies behind it.",
            "(2, 3, 4) has (12, 4, 1): 12 = 3·4, 4 = 4. And (2, 0, 3) has (3, 3, 1).",
            "Walk the shape from the back with a running product that starts at 1.",
        ),
        solution="def strides_of(shape):\n"
        "    strides, step = [], 1\n"
        "    for size in reversed(shape):\n"
        "        strides.append(step)\n"
        "        step *= max(size, 1)\n"
        "    return tuple(reversed(strides))\n",
        wrong=(
            WrongAnswer(
                "products from the left",
                "def strides_of(shape):\n"
                "    strides, step = [], 1\n"
                "    for size in shape:\n"
                "        strides.append(step)\n"
                "        step *= size\n"
                "    return tuple(strides)\n",
                "The last dimension moves by 1",
            ),
            WrongAnswer(
                "its own size included",
                "def strides_of(shape):\n"
                "    strides, step = [], 1\n"
                "    for size in reversed(shape):\n"
                "        step *= size\n"
                "        strides.append(step)\n"
                "    return tuple(reversed(strides))\n",
                "not its own",
            ),
            WrongAnswer(
                "bytes",
                "def strides_of(shape):\n    return np.empty(shape, np.float32).strides\n",
                "bytes in NumPy",
            ),
            WrongAnswer(
                "bytes of float64",
                "def strides_of(shape):\n    return np.empty(shape).strides\n",
                "bytes in NumPy",
            ),
            WrongAnswer(
                "size 0",
                "def strides_of(shape):\n"
                "    strides, step = [], 1\n"
                "    for size in reversed(shape):\n"
                "        strides.append(step)\n"
                "        step *= size\n"
                "    return tuple(reversed(strides))\n",
                "a size of 0 as 1",
            ),
            WrongAnswer(
                "the shape itself",
                "def strides_of(shape):\n    return tuple(shape)\n",
                "jumps over everything behind it",
            ),
            WrongAnswer("a number", "def strides_of(shape):\n    return len(shape)\n", "a tuple"),
            WrongAnswer(
                "floats",
                "def strides_of(shape):\n"
                "    return tuple(float(s) for s in torch.empty(shape).stride())\n",
                "return integers",
            ),
        ),
    ),
    "11.2": Exercise(
        title="Swap dimensions without scrambling",
        minutes=6,
        task="Attention splits the features of every token into heads: (batch, time, dim) becomes "
        "(batch, heads, time, dim / heads). This version has the right shape and mixes the tokens. "
        "Repair it: head h of token t holds x[b, t, h*d:(h+1)*d].",
        stub="def split_heads(x, heads):\n"
        "    batch, time, dim = x.shape\n"
        "    return x.view(batch, heads, time, dim // heads)\n",
        answer="split_heads",
        test=test_split_heads,
        hints=(
            "view() never moves a number. It only counts through the same memory in other groups.",
            "In memory, the features of token 0 come first, then those of token 1. Which group of "
            "neighbors is a head?",
            "Start with x.view(batch, time, heads, dim // heads).",
        ),
        solution="def split_heads(x, heads):\n"
        "    batch, time, dim = x.shape\n"
        "    return x.view(batch, time, heads, dim // heads).transpose(1, 2)\n",
        wrong=(
            WrongAnswer(
                "reshape in place of view",
                "def split_heads(x, heads):\n"
                "    batch, time, dim = x.shape\n"
                "    return x.reshape(batch, heads, time, dim // heads)\n",
                "the tokens are mixed",
            ),
            WrongAnswer(
                "no transpose",
                "def split_heads(x, heads):\n"
                "    batch, time, dim = x.shape\n"
                "    return x.view(batch, time, heads, dim // heads)\n",
                "heads must come before time",
            ),
            WrongAnswer(
                "every second feature",
                "def split_heads(x, heads):\n"
                "    batch, time, dim = x.shape\n"
                "    return x.view(batch, time, dim // heads, heads).permute(0, 3, 1, 2)\n",
                "A head is a run of neighbors",
            ),
            WrongAnswer(
                "heads first",
                "def split_heads(x, heads):\n    return torch.stack(x.chunk(heads, 2))\n",
                "Batch comes first",
            ),
            WrongAnswer(
                "time split",
                "def split_heads(x, heads):\n    return torch.stack(x.chunk(heads, 1), 1)\n",
                "time stays whole",
            ),
            WrongAnswer(
                "a list of heads",
                "def split_heads(x, heads):\n    return x.chunk(heads, 2)\n",
                "Return a tensor, got tuple",
            ),
            WrongAnswer(
                "time cut",
                "def split_heads(x, heads):\n"
                "    return torch.stack([x[:, :1] for _ in range(heads)], 1)\n",
                "time stays whole",
            ),
        ),
    ),
    "11.3": Exercise(
        title="Keep a part and free the rest",
        minutes=4,
        task="`keep_first(x, n)` returns the first n rows, and the result must own what it shows "
        "and no byte more, so that the rest of x can be freed. Repair it. x stays as it is.",
        stub="def keep_first(x, n):\n    return x[:n]\n",
        answer="keep_first",
        test=test_keep_first,
        hints=(
            "Compare memory.storage_bytes of the result with memory.tensor_bytes of it.",
            "A call that has nothing to do returns the tensor it was given: contiguous(), float(), "
            "to() of the same dtype.",
            "Take the slice, then ask for new bytes: x[:n]. and one more call.",
        ),
        solution="def keep_first(x, n):\n    return x[:n].clone()\n",
        wrong=(
            WrongAnswer(
                "contiguous",
                "def keep_first(x, n):\n    return x[:n].contiguous()\n",
                "still looks into x. A slice from the start is contiguous already",
            ),
            WrongAnswer(
                "no return", "def keep_first(x, n):\n    x[:n].clone()\n", "Is a return missing"
            ),
            WrongAnswer(
                "the last rows",
                "def keep_first(x, n):\n    return x[-n:].clone()\n",
                "must equal x[:10]",
            ),
            WrongAnswer(
                "deepcopy",
                "def keep_first(x, n):\n    import copy\n    return copy.deepcopy(x[:n])\n",
                "copies the whole storage",
            ),
            WrongAnswer(
                "detach", "def keep_first(x, n):\n    return x[:n].detach()\n", "not the bytes"
            ),
            WrongAnswer(
                "same dtype",
                "def keep_first(x, n):\n    return x[:n].to(x.dtype)\n",
                "nothing to convert",
            ),
            WrongAnswer(
                "reshape",
                "def keep_first(x, n):\n    return x[:n].reshape(x[:n].shape)\n",
                "a view wherever it can",
            ),
            WrongAnswer(
                "clone, then cut",
                "def keep_first(x, n):\n    return x.clone()[:n]\n",
                "A slice is a view",
            ),
            WrongAnswer(
                "other dtype",
                "def keep_first(x, n):\n    return x[:n].double().clone()\n",
                "The dtype must stay",
            ),
            WrongAnswer(
                "x emptied by force",
                "def keep_first(x, n):\n"
                "    own = x[:n].clone()\n"
                "    x.untyped_storage().resize_(0)\n"
                "    return own\n",
                "changed its input: `x`",
            ),
        ),
    ),
    "11.4": Exercise(
        title="Scale pixels without touching the input",
        minutes=4,
        task="`scale_pixels(images)` turns pixels from 0 to 255 into float32 from 0 to 1. It works "
        "for uint8 and quietly changes its input for float32. Repair it for uint8, float32 and "
        "float64.",
        stub="def scale_pixels(images):\n"
        "    scaled = images.float()\n"
        "    scaled /= 255\n"
        "    return scaled\n",
        answer="scale_pixels",
        test=test_scale_pixels,
        hints=(
            "float() of a float32 tensor returns that very tensor.",
            "`/=` writes into the tensor on its left; `/` makes a new one.",
            "return images.float() and an operation that makes a new tensor.",
        ),
        solution="def scale_pixels(images):\n    return images.float() / 255\n",
        wrong=(
            WrongAnswer(
                "contiguous first",
                "def scale_pixels(images):\n    return images.float().contiguous().div_(255)\n",
                "input changed",
            ),
            WrongAnswer(
                "detach first",
                "def scale_pixels(images):\n    return images.detach().float().div_(255)\n",
                "input changed",
            ),
            WrongAnswer(
                "dtype kept",
                "def scale_pixels(images):\n    return images / 255\n",
                "must become float32",
            ),
            WrongAnswer(
                "integer division",
                "def scale_pixels(images):\n    return (images // 255).float()\n",
                "// drops the fraction",
            ),
            WrongAnswer(
                "256",
                "def scale_pixels(images):\n    return images.float() / 256\n",
                "White is 255",
            ),
            WrongAnswer(
                "by the brightest pixel",
                "def scale_pixels(images):\n    return images.float() / images.max()\n",
                "whatever its brightest pixel is",
            ),
            WrongAnswer(
                "written and undone",
                "def scale_pixels(images):\n"
                "    scaled = images.float()\n"
                "    scaled /= 255\n"
                "    result = scaled.clone()\n"
                "    scaled.copy_((scaled * 255).round())\n"
                "    return result\n",
                "wrote into its input and undid it",
            ),
            WrongAnswer(
                "flattened",
                "def scale_pixels(images):\n    return images.flatten().float() / 255\n",
                "The shape must stay",
            ),
        ),
    ),
}
