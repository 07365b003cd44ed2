"""Ask and check what 13_share_memory_with_numpy teaches."""

import numpy as np
import torch

from helpers import sharing
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "13.p1": Choice(
        question="What is tensor[0] now?",
        options={
            "0.0": "You took the conversion for a copy. from_numpy copies nothing: "
            "the tensor looks at the array's own bytes.",
            "7.0": "Right: the write reached the bytes that both look at; the doubling made "
            "new ones.",
            "14.0": "array * 2 makes a new array, and the name moves to it. Only a write into the "
            "old bytes, such as array *= 2, shows in the tensor.",
            "an error": "Two owners are allowed, and neither of them is told when the other writes.",
        },
    ),
    "13.p2": Number(
        question="How many of the twelve conversions share memory?",
        unit="conversions",
        among=12,
        notes=(
            (
                0,
                6,
                "More of them share than you thought: as long as dtype and device stay the "
                "same, most conversions copy nothing.",
            ),
            (
                6,
                8,
                "Close. One that is often missed: torch.Tensor(array) shares when the array "
                "happens to be float32.",
            ),
            (8, 9, "You counted them all."),
            (
                9,
                13,
                "Fewer share: a change of dtype needs new bytes, and torch.tensor and "
                "np.array copy by default.",
            ),
        ),
    ),
    "13.p3": Choice(
        question="The masked array [1, (100), 3] has mean 2. What is the mean of its tensor?",
        options={
            "2.0": "A mask is a second array beside the data. torch sees the data alone.",
            "34.67": "Right: the masked 100 came back, and nothing said so.",
            "nan": "Nothing marks the masked place in the data: there is a plain 100 in it.",
            "an error": "A masked array is an ndarray by inheritance, so torch accepts it "
            "and ignores what makes it special.",
        },
    ),
    "13.p4": Choice(
        question="w = [2, 3], y = w0**2 + w1**2. Before backward, one line writes 100 into "
        "w's NumPy view. What is the gradient?",
        options={
            "[4, 6]": "autograd saved w itself, not a copy of its values: the 100 is what "
            "the backward pass found.",
            "[200, 6]": "Right: the backward pass read the 100 and said nothing.",
            "an error": "The same write through torch raises, since torch counts its own "
            "writes. A write by NumPy is not counted.",
        },
    ),
    "13.p5": Number(
        question="One thread, a million float32 numbers: how many of add, sum, cumsum, tanh and "
        "sort does torch win?",
        unit="operations",
        among=5,
        notes=(
            (
                0,
                1,
                "No library has the fastest routine for everything: look at the rows where "
                "torch leads.",
            ),
            (
                1,
                5,
                "The operation decides, not the library: the lead belongs to whoever has a "
                "vectorized routine for it on this processor.",
            ),
            (
                5,
                6,
                "Look at sort first, where the two do not even do the same work.",
            ),
        ),
    ),
}


# --- 13.1 -------------------------------------------------------------------------------

SHARES = {
    "torch.as_tensor(a)": lambda a, t: torch.as_tensor(a),
    "torch.Tensor(a)": lambda a, t: torch.Tensor(a),
    "torch.tensor(a)": lambda a, t: torch.tensor(a),
    "t.float()": lambda a, t: t.float(),
    "t.contiguous()": lambda a, t: t.contiguous(),
    "torch.stack([t])[0]": lambda a, t: torch.stack([t])[0],
    "t.numpy(force=True)": lambda a, t: t.numpy(force=True),
    "np.ascontiguousarray(t)": lambda a, t: np.ascontiguousarray(t),
    "np.array(t)": lambda a, t: np.array(t),
    "np.asarray(t)": lambda a, t: np.asarray(t),
}

SHARES_WHY = {
    "torch.as_tensor(a)": "as_tensor keeps dtype and device here, so it has no reason to copy.",
    "torch.Tensor(a)": "torch.Tensor makes float32, the default. This array is float32, so the "
    "bytes are taken as they are.",
    "torch.tensor(a)": "torch.tensor always copies: that is what it is for.",
    "t.float()": "float() on a float32 tensor has nothing to convert and returns t itself.",
    "t.contiguous()": "t is contiguous already, and then contiguous() returns t itself.",
    "torch.stack([t])[0]": "stack makes a new tensor and copies its inputs into it, even one.",
    "t.numpy(force=True)": "force means detach, move to the CPU and resolve if needed. It "
    "does not mean copy.",
    "np.ascontiguousarray(t)": "the memory of t is in order already, so NumPy takes it as it is.",
    "np.array(t)": "np.array copies by default. np.asarray is the one that shares.",
    "np.asarray(t)": "asarray copies only when it must; np.array is the one that copies.",
}


def _writes_through(convert):
    """Tell whether a write to the array shows in the result of a conversion of it or its tensor."""
    array = np.arange(4, dtype=np.float32)
    return sharing.writes_through(lambda a: convert(a, torch.from_numpy(a)), array)


def test_shares(answer, call):
    wrong = []
    for name, convert in SHARES.items():
        if not isinstance(answer[name], bool):
            raise Wrong(
                f"Answer with True or False: {name} got {answer[name]!r}. True means that a "
                "write to one side shows on the other."
            )
        if answer[name] != _writes_through(convert):
            wrong.append(name)
    if wrong:
        more = f" ({len(wrong)} of {len(SHARES)} to look at again.)" if len(wrong) > 1 else ""
        raise Wrong(f"{wrong[0]}: {SHARES_WHY[wrong[0]]}{more}")


_SHARES_STUB = "shares = {\n" + "".join(f'    "{name}": ...,\n' for name in SHARES) + "}\n"
_COPIES = ("torch.tensor(a)", "torch.stack([t])[0]", "np.array(t)")


def _shares_source(**changed):
    """Write out an answer to 13.1: the right one, with the named entries changed."""
    changed = {list(SHARES)[int(key[1:])]: value for key, value in changed.items()}
    lines = (f'    "{name}": {changed.get(name, name not in _COPIES)!r},\n' for name in SHARES)
    return "shares = {\n" + "".join(lines) + "}\n"


# --- 13.2 -------------------------------------------------------------------------------


def _values(entry):
    """Return an entry of a history as a list of floats, whatever type it has."""
    if isinstance(entry, torch.Tensor):
        return entry.detach().tolist()
    if isinstance(entry, (list, tuple)):
        return [float(value) for value in entry]
    return np.asarray(entry, dtype=float).tolist()


def _why_alias(answer, entry):
    """Say why an entry still follows the weight, in the words of the call that made it."""
    names = set(answer.__code__.co_names)
    consts = str(answer.__code__.co_consts)
    if isinstance(entry, (list, tuple)):
        return "list() of a tensor holds one view per element. tolist() makes Python numbers."
    if isinstance(entry, torch.Tensor):
        if "data" in names:
            return ".data is another tensor on the same storage. Only clone() takes new bytes."
        if "detach" in names:
            return "detach() drops the graph and keeps the storage. Only clone() takes new bytes."
        return "The list holds the weight itself, five times."
    if "asarray" in names:
        return "np.asarray shares whenever it can. np.array is the one that copies."
    if "force" in consts:
        return "force=True detaches and moves; on the CPU it still shares."
    return "cpu() and numpy() copy only when the tensor comes from a GPU. Here they share."


def test_record(answer, call):
    weight = torch.rand(3).requires_grad_()
    history, truth = [], []
    for _ in range(5):
        with torch.no_grad():
            weight += torch.rand(3) + 0.1
        truth.append(weight.detach().clone().tolist())
        call(answer, history, weight, may_change=(0,))
    if len(history) != 5:
        raise Wrong(
            f"After five steps the history has {len(history)} entries. record must append one "
            "entry to the list it is given; what it returns is ignored."
        )
    for entry in history:
        if not isinstance(entry, (torch.Tensor, np.ndarray, list, tuple)):
            raise Wrong(
                f"An entry is {entry!r:.40}. Store the values themselves: a tensor, an array or a "
                "list of numbers."
            )
        if isinstance(entry, torch.Tensor) and (entry is weight or entry.grad_fn is not None):
            if entry is weight:
                raise Wrong("The list holds the weight itself, five times.")
            raise Wrong(
                "Each entry keeps the graph that made it (it has a grad_fn), so memory "
                "grows with every step. Detach before you clone."
            )
    _compare_history(answer, history, truth)


def _short(values):
    return ", ".join(f"{value:.5g}" for value in np.ravel(values))


def _compare_history(answer, history, truth):
    entries = [_values(entry) for entry in history]
    if entries != [_values(values) for values in truth]:
        distinct = len({tuple(np.ravel(entry)) for entry in entries})
        if distinct == 1:
            raise Wrong(
                f"Five steps, 1 distinct value: every entry is the last one. "
                f"{_why_alias(answer, history[0])}"
            )
        raise Wrong(
            f"The weight was {_short(truth[0])}, the first entry says {_short(entries[0])}. "
            "Store all values of the weight, unchanged."
        )


# --- 13.3 -------------------------------------------------------------------------------


def _kinds():
    """Return (name, array) pairs: arrays that code in the wild hands to torch."""
    random = np.random.default_rng(np.random.randint(1 << 30))  # seeded by the engine
    base = random.integers(1, 100, 6)
    packed = np.zeros(3, dtype=[("flag", "i1"), ("value", "f4")])
    packed["value"] = random.random(3)
    read_only = random.random(3)
    read_only.flags.writeable = False
    return [
        ("float32", random.random(4, dtype=np.float32)),
        ("float64", random.random((2, 3))),
        ("float16", random.random(3).astype(np.float16)),
        ("int64", base.copy()),
        ("int32, large", np.array([16_777_217, -5], dtype=np.int32)),
        ("uint16", base.astype(np.uint16)),
        ("reversed", random.random(5, dtype=np.float32)[::-1]),
        ("(1, 3, 2) reversed along its first dimension", random.random((1, 3, 2))[::-1]),
        ("big-endian float", random.random(3).astype(">f4")),
        ("big-endian integer", base.astype(">i8")),
        ("read-only", read_only),
        ("Fortran order", np.asfortranarray(random.random((2, 3), dtype=np.float32))),
        ("broadcast", np.broadcast_to(random.random((1, 3)), (2, 3))),
        ("field of a packed record", packed["value"]),
        ("0-d", np.array(random.random())),
        ("empty (0, 3)", np.zeros((0, 3))),
        ("boolean", np.array([True, False, True])),
    ]


def _one_kind(name, array, answer, call):
    """Check one array: values, dtype, shape and ownership."""
    expected_dtype = torch.float32 if array.dtype.kind == "f" else torch.int64
    expected = torch.tensor(
        array.tolist(), dtype=torch.float64 if array.dtype.kind == "f" else None
    )
    expected = expected.to(expected_dtype).reshape(array.shape)
    try:
        tensor = call(answer, array)
    except (ValueError, TypeError) as error:
        raise Wrong(
            f"The {name} array was refused ({type(error).__name__}: {str(error)[:60]}...). "
            f"{_REFUSED.get(name, 'Every plain array of numbers must arrive.')}"
        ) from None
    if not isinstance(tensor, torch.Tensor):
        missing = " Is a return missing?" if tensor is None else ""
        raise Wrong(
            f"Expected a torch.Tensor for the {name} array, got {type(tensor).__name__}.{missing}"
        )
    if tuple(tensor.shape) != array.shape:
        raise Wrong(
            f"The {name} array has shape {array.shape}; its tensor has {tuple(tensor.shape)}. "
            "Going through a list, or through ascontiguousarray, can lose a shape."
        )
    if tensor.dtype != expected_dtype:
        raise Wrong(
            f"The {name} array became {tensor.dtype}; expected {expected_dtype}. "
            f"{_DTYPES.get(array.dtype.kind, _DTYPES['i'])}"
        )
    if not torch.equal(tensor.double(), expected.double()):
        raise Wrong(
            f"The {name} array starts with {array.flat[0]}; its tensor with {tensor.flatten()[0]}. "
            f"{_VALUES.get(array.dtype.kind, _VALUES['i'])}"
        )
    _own_bytes(name, array, tensor)


_DTYPES = {
    "f": "NumPy's default is float64 and torch's layers are float32.",
    "i": "Integers are indices and labels, and torch wants those as int64.",
}
_VALUES = {
    "f": "Converting a float to float32 may round it, and may change nothing else.",
    "i": "float32 counts integers exactly only up to 16,777,216.",
}
_REFUSED = {
    "reversed": "torch has no negative strides; a copy in C order has none.",
    "(1, 3, 2) reversed along its first dimension": "np.ascontiguousarray leaves the negative stride "
    "of a dimension of length 1 where it is. A real copy has none.",
    "big-endian float": "Copying keeps the byte order. A dtype without '>' converts it.",
    "big-endian integer": "Copying keeps the byte order. A dtype without '>' converts it.",
}


def _own_bytes(name, array, tensor):
    overlaps = tensor.numel() and np.shares_memory(tensor.detach().numpy(), array)
    if overlaps:
        raise Wrong(
            f"The tensor of the {name} array still looks at the array's bytes: a later write "
            "to one changes the other. Own bytes need a copy, also where the dtype fits already."
        )
    if tensor.numel() and 0 in tensor.stride() and tensor.dim():
        raise Wrong(f"The tensor of the {name} array has a stride of 0: its elements share bytes.")


_SMALL = "small uint64"


def _unsafe():
    """Return (name, array) pairs of dtypes whose values float32 or int64 may be unable to hold."""
    return [
        ("complex", np.array([1 + 2j])),
        ("text", np.array(["1", "2"])),
        ("datetime64", np.array(["NaT", "2026-01-01"], dtype="datetime64[D]")),
        ("object", np.array([1.7, None], dtype=object)),
        ("record", np.ones(2, dtype=[("value", "f4")])),
        ("uint64", np.array([2**64 - 1], dtype=np.uint64)),
        (_SMALL, np.array([1, 2], dtype=np.uint64)),
        ("big-endian uint64", np.array([2**64 - 1], dtype=">u8")),
    ]


_DID_REFUSE = object()
_ERRORS = (ArithmeticError, AssertionError, LookupError, RuntimeError, TypeError, ValueError)


def _must_raise(expected, name, array, answer, call):
    """Return what the answer made of an array that it must refuse, or _DID_REFUSE if it refused."""
    try:
        return call(answer, array)
    except expected:
        return _DID_REFUSE
    except _ERRORS as error:
        raise Wrong(
            f"The {name} array must raise {expected.__name__}; yours raised {type(error).__name__}."
        ) from None


def test_to_tensor(answer, call):
    for name, array in _kinds():
        _one_kind(name, array, answer, call)
    masked = np.ma.array([1.0, 100.0, 3.0], mask=[False, True, False])
    tensor = _must_raise(ValueError, "masked", masked, answer, call)
    if tensor is not _DID_REFUSE:
        if not isinstance(tensor, torch.Tensor):
            raise Wrong(
                f"For the masked array you returned {tensor!r:.40}. Returning or printing is no "
                "refusal: raise ValueError, so that nobody goes on with it."
            )
        raise Wrong(
            f"The masked array has mean {masked.mean():.0f}; your tensor has mean "
            f"{torch.as_tensor(tensor).double().mean():.2f}. Raise ValueError: a mask has no "
            "place in a tensor."
        )
    bare = np.ma.array([1.0, 2.0], mask=[False, False])
    if _must_raise(ValueError, "masked", bare, answer, call) is not _DID_REFUSE:
        raise Wrong(
            "This masked array masks nothing yet, and must raise ValueError too: the next one may. "
            "np.ma.is_masked looks for masked values; np.ma.isMaskedArray at the type."
        )
    for name, array in _unsafe():
        tensor = _must_raise(TypeError, name, array, answer, call)
        if tensor is not _DID_REFUSE:
            if name == _SMALL:
                raise Wrong(
                    f"The uint64 array {array.tolist()} must raise TypeError too. Decide by the "
                    "dtype, not by today's values: larger ones would stop the same program later."
                )
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            raise Wrong(
                f"The {name} array {array.tolist()} must raise TypeError; yours returned {kind}, "
                "which cannot hold its "
                "values. What refuses is harmless; what passes changed needs finding."
            )


# --- 13.4 -------------------------------------------------------------------------------


def _pairs():
    """Return (name, tensor, array, truth, sentence) for pairs that overlap or do not."""
    a = np.arange(10, dtype=np.float32)
    t = torch.from_numpy(a)
    grid = np.arange(12, dtype=np.float32).reshape(3, 4)
    return [
        ("t and a", t, a, True,
         "Two Python objects can share memory. `is` compares the objects."),
        ("A copy with equal values", t.clone(), a, False,
         "Equal values do not mean shared bytes: the copy holds the same numbers elsewhere."),
        ("t and a[1:]", t, a[1:], True,
         "a[1:] starts at another address and lies inside t. Comparing first addresses misses it."),
        ("t[:5] and a[5:]", t[:5], a[5:], False,
         "Both look into one storage, and no byte is common to the two halves."),
        ("t[::2] and a[1::2]", t[::2], a[1::2], False,
         "The two ranges interleave, and no byte is common to them."),
        ("t[::2] and a[::3]", t[::2], a[::3], True, "Both contain elements 0 and 6."),
        ("Column 0 and column 1 of one grid", torch.from_numpy(grid)[:, 0], grid[:, 1], False,
         "Columns interleave: one range of addresses, no common byte."),
        ("t[3:3] and a", t[3:3], a, False,
         "An empty tensor holds no bytes, so nothing can be common."),
        ("t with requires_grad and a", torch.from_numpy(a).requires_grad_(), a, True,
         "A tensor that requires grad looks at the same bytes. Detach it first."),
    ]  # fmt: skip


def test_overlaps(answer, call):
    for name, tensor, array, truth, why in _pairs():
        try:
            result = call(answer, tensor, array)
        except (RuntimeError, IndexError) as error:
            raise Wrong(f"{name}: your function raised {type(error).__name__}. {why}") from None
        if not isinstance(result, (bool, np.bool_)):
            raise Wrong(f"{name}: expected True or False, got {result!r}.")
        if bool(result) != truth:
            raise Wrong(f"{name}: expected {truth}, got {bool(result)}. {why}")


_TO_TENSOR = """def to_tensor(array):
    if isinstance(array, np.ma.MaskedArray):
        raise ValueError("a tensor has no mask: fill or drop the masked values first")
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind not in "fiub" or (kind == "u" and size == 8):
        raise TypeError(f"no safe tensor for {array.dtype}")
    dtype = np.float32 if kind == "f" else np.int64
    return torch.from_numpy(np.array(array, dtype=dtype, order="C"))
"""


EXERCISES = {
    "13.1": Exercise(
        title="Say what shares",
        minutes=4,
        task="`a` is a float32 array and `t = torch.from_numpy(a)`. For each call write True if "
        "its result shares memory with `a`, and False if it has bytes of its own.",
        stub=_SHARES_STUB,
        answer="shares",
        test=test_shares,
        hints=(
            "Ask of each call: does it have a reason to need new bytes? Same dtype, same device "
            "and same layout are no reason.",
            "float() of a float64 tensor must convert, so it copies. t is float32: what has "
            "float() left to do?",
            "Three of the ten copy. Two of them have a sibling in the list that shares.",
        ),
        solution=_shares_source(),
        wrong=(
            WrongAnswer("as_tensor copies", _shares_source(_0=False), "has no reason to copy"),
            WrongAnswer(
                "Tensor copies", _shares_source(_1=False), "torch.Tensor makes float32, the default"
            ),
            WrongAnswer("float copies", _shares_source(_3=False), "nothing to convert"),
            WrongAnswer("contiguous copies", _shares_source(_4=False), "contiguous already"),
            WrongAnswer("stack of one shares", _shares_source(_5=True), "even one"),
            WrongAnswer("force copies", _shares_source(_6=False), "It does not mean copy"),
            WrongAnswer("ascontiguousarray copies", _shares_source(_7=False), "in order already"),
            WrongAnswer("np.array shares", _shares_source(_8=True), "np.array copies by default"),
            WrongAnswer("words", _shares_source(_9="yes"), "True or False"),
            WrongAnswer("tensor and np.array share", _shares_source(_2=True, _8=True), "2 of 10"),
        ),
    ),
    "13.2": Exercise(
        title="Log values that do not change later",
        minutes=4,
        task="`record` is called after every optimizer step and appends the weight's values to a "
        "list. All entries end up equal. Repair it: entries keep their values, hold no graph, and "
        "the weight stays as it is.",
        stub="def record(history, weight):\n    history.append(weight.detach().cpu().numpy())\n",
        answer="record",
        test=test_record,
        hints=(
            "An entry must have bytes of its own, or none of torch's at all.",
            "On the CPU, cpu() returns the tensor itself and numpy() a view. Change the weight "
            "once more and look at the first entry.",
            "Start with history.append(weight.detach(). and ask what makes new bytes.",
        ),
        solution="def record(history, weight):\n    history.append(weight.detach().clone())\n",
        wrong=(
            WrongAnswer(
                "detach only",
                "def record(history, weight):\n    history.append(weight.detach())\n",
                "keeps the storage",
            ),
            WrongAnswer(
                "to cpu",
                'def record(history, weight):\n    history.append(weight.detach().to("cpu").numpy())\n',
                "only when the tensor comes from a GPU",
            ),
            WrongAnswer(
                "asarray",
                "def record(history, weight):\n    history.append(np.asarray(weight.detach()))\n",
                "np.asarray shares",
            ),
            WrongAnswer(
                "force",
                "def record(history, weight):\n    history.append(weight.numpy(force=True))\n",
                "force=True detaches",
            ),
            WrongAnswer(
                "list of views",
                "def record(history, weight):\n    history.append(list(weight.detach()))\n",
                "one view per element",
            ),
            WrongAnswer(
                "clone with its graph",
                "def record(history, weight):\n    history.append(weight.clone())\n",
                "keeps the graph",
            ),
            WrongAnswer(
                "the weight itself",
                "def record(history, weight):\n    history.append(weight)\n",
                "the weight itself, five times",
            ),
            WrongAnswer(
                "returns a value",
                "def record(history, weight):\n    return weight.detach().clone()\n",
                "must append one",
            ),
            WrongAnswer(
                "data",
                "def record(history, weight):\n    history.append(weight.data)\n",
                ".data is another tensor on the same storage",
            ),
            WrongAnswer(
                "what append returns",
                "def record(history, weight):\n    history.append(print(weight))\n",
                "An entry is None",
            ),
            WrongAnswer(
                "stores the mean",
                "def record(history, weight):\n    history.append([weight.mean().item()])\n",
                "Store all values",
            ),
        ),
    ),
    "13.3": Exercise(
        title="Convert any array safely",
        minutes=8,
        task="Write `to_tensor`: floats become float32, booleans and integers int64; the shape "
        "stays; the tensor owns its bytes. A masked array, even with nothing masked, raises "
        "ValueError; complex, text, dates, objects, records and uint64, whatever its values, raise "
        "TypeError.",
        stub='def to_tensor(array):\n    """Return array as a tensor that owns its bytes."""\n    ...\n',
        answer="to_tensor",
        test=test_to_tensor,
        hints=(
            "One NumPy call can copy, set the dtype, fix the byte order and drop strange strides, "
            "all at once. After it, from_numpy has nothing left to refuse.",
            "np.ascontiguousarray returns a plain float32 array as it is, and keeps the negative "
            "stride of a dimension of length 1.",
            "After the two refusals (np.ma.isMaskedArray, array.dtype.kind): "
            "dtype = np.float32 if array.dtype.kind == 'f' else np.int64",
        ),
        solution=_TO_TENSOR,
        wrong=(
            WrongAnswer(
                "from_numpy",
                "def to_tensor(array):\n    return torch.from_numpy(array)\n",
                "still looks at the array's bytes",
            ),
            WrongAnswer(
                "ascontiguousarray",
                "def to_tensor(array):\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.ascontiguousarray(array, dtype=dtype)).clone()\n",
                "lose a shape",
            ),
            WrongAnswer(
                "ascontiguousarray, dtype kept until torch",
                "def to_tensor(array):\n"
                "    t = torch.from_numpy(np.ascontiguousarray(array))\n"
                "    return t.to(torch.float32 if t.is_floating_point() else torch.int64, copy=True)\n",
                "dimension of length 1",
            ),
            WrongAnswer(
                "copy only",
                "def to_tensor(array):\n    return torch.from_numpy(array.copy())\n",
                "NumPy's default is float64",
            ),
            WrongAnswer(
                "copy, then cast",
                "def to_tensor(array):\n"
                "    t = torch.from_numpy(array.copy())\n"
                "    return t.to(torch.float32 if t.is_floating_point() else torch.int64)\n",
                "A dtype without '>'",
            ),
            WrongAnswer(
                "everything float32",
                "def to_tensor(array):\n    return torch.from_numpy(array.astype(np.float32))\n",
                "expected torch.int64",
            ),
            WrongAnswer(
                "through float32",
                "def to_tensor(array):\n"
                "    t = torch.from_numpy(array.astype(np.float32))\n"
                "    return t if array.dtype.kind == 'f' else t.long()\n",
                "16,777,216",
            ),
            WrongAnswer(
                "astype without a copy",
                "def to_tensor(array):\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(array.astype(dtype, copy=False))\n",
                "also where the dtype fits already",
            ),
            WrongAnswer(
                "through a list",
                "def to_tensor(array):\n"
                "    dtype = torch.float32 if array.dtype.kind == 'f' else torch.int64\n"
                "    if isinstance(array, np.ma.MaskedArray):\n"
                "        raise ValueError('masked')\n"
                "    return torch.tensor(list(array.tolist() if array.ndim else [array.item()]), dtype=dtype)\n",
                "Going through a list",
            ),
            WrongAnswer(
                "takes anything",
                "def to_tensor(array):\n"
                "    if isinstance(array, np.ma.MaskedArray):\n"
                "        raise ValueError('masked')\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "must raise TypeError",
            ),
            WrongAnswer(
                "no return",
                "def to_tensor(array):\n    tensor = torch.tensor(array.tolist())\n",
                "Is a return missing",
            ),
            WrongAnswer(
                "mask forgotten",
                "def to_tensor(array):\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "a mask has no place",
            ),
            WrongAnswer(
                "only masked values refused",
                _TO_TENSOR.replace(
                    "isinstance(array, np.ma.MaskedArray)", "np.ma.is_masked(array)"
                ),
                "masks nothing yet",
            ),
            WrongAnswer(
                "only large uint64 refused",
                _TO_TENSOR.replace("size == 8", "array.max() > 2**63 - 1"),
                "not by today's values",
            ),
            WrongAnswer(
                "prints in place of raising",
                "def to_tensor(array):\n"
                "    if isinstance(array, np.ma.MaskedArray):\n"
                "        return print('masked')\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "printing is no refusal",
            ),
            WrongAnswer(
                "returns None for what it cannot hold",
                "def to_tensor(array):\n"
                "    if isinstance(array, np.ma.MaskedArray):\n"
                "        raise ValueError('masked')\n"
                "    if array.dtype.kind not in 'fiub':\n"
                "        return None\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "yours returned NoneType",
            ),
            WrongAnswer(
                "another error",
                "def to_tensor(array):\n"
                "    if isinstance(array, np.ma.MaskedArray):\n"
                "        raise TypeError('masked')\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "must raise ValueError; yours raised TypeError",
            ),
            WrongAnswer(
                "one row for all",
                "def to_tensor(array):\n"
                "    dtype = np.float32 if array.dtype.kind == 'f' else np.int64\n"
                "    if 0 in array.strides:\n"
                "        return torch.from_numpy(np.array(array[:1], dtype=dtype)).expand(array.shape)\n"
                "    return torch.from_numpy(np.array(array, dtype=dtype, order='C'))\n",
                "its elements share bytes",
            ),
            WrongAnswer(
                "returns an array",
                "def to_tensor(array):\n    return np.array(array, dtype=np.float32)\n",
                "Expected a torch.Tensor",
            ),
        ),
    ),
    "13.4": Exercise(
        title="Find out whether two objects overlap",
        minutes=4,
        task="Write `overlaps(tensor, array)`: True if at least one byte belongs to both, False if "
        "none does. It must be right for slices, steps, copies and empty tensors.",
        stub='def overlaps(tensor, array):\n    """Tell whether any byte belongs to both."""\n    ...\n',
        answer="overlaps",
        test=test_overlaps,
        hints=(
            "The question is about sets of bytes, not about first addresses, values or storages.",
            "t[:5] and a[5:] lie in one storage and share nothing. t[::2] and a[1::2] lie in one "
            "range and share nothing.",
            "NumPy answers this for two arrays: np.shares_memory. Make the tensor an array "
            "without copying it.",
        ),
        solution="def overlaps(tensor, array):\n"
        "    return np.shares_memory(tensor.detach().numpy(), array)\n",
        wrong=(
            WrongAnswer(
                "first addresses",
                "def overlaps(tensor, array):\n    return tensor.data_ptr() == array.ctypes.data\n",
                "Comparing first addresses misses it",
            ),
            WrongAnswer(
                "values",
                "def overlaps(tensor, array):\n"
                "    return bool(np.array_equal(tensor.detach().numpy(), array))\n",
                "Equal values do not mean shared bytes",
            ),
            WrongAnswer(
                "identity",
                "def overlaps(tensor, array):\n    return tensor.detach().numpy() is array\n",
                "`is` compares the objects",
            ),
            WrongAnswer(
                "storage range",
                "def overlaps(tensor, array):\n"
                "    storage = tensor.untyped_storage()\n"
                "    start = array.ctypes.data - storage.data_ptr()\n"
                "    return 0 <= start < storage.nbytes()\n",
                "no byte is common to the two halves",
            ),
            WrongAnswer(
                "may_share_memory",
                "def overlaps(tensor, array):\n"
                "    return np.may_share_memory(tensor.detach().numpy(), array)\n",
                "ranges interleave",
            ),
            WrongAnswer(
                "no detach",
                "def overlaps(tensor, array):\n"
                "    return np.shares_memory(tensor.numpy(), array)\n",
                "your function raised RuntimeError. A tensor that requires grad",
            ),
            WrongAnswer(
                "a number",
                "def overlaps(tensor, array):\n"
                "    return int(np.shares_memory(tensor.detach().numpy(), array))\n",
                "expected True or False",
            ),
        ),
    ),
}
