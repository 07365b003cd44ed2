"""Ask and check what 62_export_a_model teaches."""

import random

import torch
from torch import nn

from helpers import onnx_export
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "62.p1": Choice(
        question="forward divides x by its largest size where that is above 1. The model was "
        "traced by torch.jit.trace with [0.5, 0.2]. What does it answer to [10, 5]?",
        options={
            "[1.0, 0.5]": "That is what the code says. The file does not hold the code: the "
            "tracer wrote down what happened to [0.5, 0.2].",
            "[10.0, 5.0]": "Right: the branch was not taken while the tracer looked on.",
            "an error": "An error would be help. There is a warning, at export, and then none.",
        },
    ),
    "62.p2": Choice(
        question="A layer was exported with an example of 2 rows. What does the program do with "
        "5 rows?",
        options={
            "answers 5 rows": "No weight depends on the number of rows. The program also holds "
            "the shapes it was recorded with.",
            "answers 2 rows": "Some traced models do: you will see one. This program compares "
            "shapes first.",
            "an error": "Right: every size in the example is taken for a constant.",
        },
    ),
    "62.p3": Number(
        question="The same 360 images, one in each request. On how many percent is the file right?",
        unit="%",
        notes=(
            (0, 25, "Right: alone, an image less the mean of its batch is nothing at all."),
            (25, 85, "Pairs of images land there. An image alone has itself for a mean."),
            (85, 101, "The weights are frozen. The statistics are not: they come from the batch."),
        ),
    ),
    "62.p4": Choice(
        question="Each call adds 1 to self.n and returns x + self.n. The exported program is "
        "called three times with x = 0. What comes back?",
        options={
            "1, 2, 3": "self.n is an attribute in Python, and Python is not in the program.",
            "1, 1, 1": "Right: Python ran once, and its result became a constant.",
            "0, 0, 0": "Python did run, once, before the program was there.",
            "an error": "A branch on a value is refused. A number that changes is not noticed.",
        },
    ),
    "62.p5": Choice(
        question="One image, one thread. Which of these takes longest for an answer?",
        options={
            "the model in Python": "It calls its five layers, and does little else.",
            "the exported program": "Right: it tests its input, then calls the operations of its "
            "graph one by one, all in Python.",
            "TorchScript": "Its interpreter is written in C++.",
            "ONNX Runtime": "It is there for this: no autograd, no dispatcher, fused operations.",
        },
    ),
    "62.p6": Number(
        question="The model was trained on pixels / 16. A client divides by 255. On how many "
        "percent of the test images is the file right?",
        unit="%",
        notes=(
            (0, 30, "Right: 16 times darker, and BatchNorm takes off the mean it knows."),
            (30, 80, "More is lost: BatchNorm takes off the mean of brighter images."),
            (
                80,
                101,
                "A darker digit is the same digit, to you. BatchNorm takes off a fixed mean.",
            ),
        ),
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


# --- 62.1 -------------------------------------------------------------------------------


class _Forward(nn.Module):
    """Run one of the eight functions as forward."""

    def __init__(self, function):
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        return self.function(self, x)


def _all_layers(model, x):
    for layer in model.layers:
        x = layer(x)
    return x


FORWARDS = {
    "x / 2 if x.max() > 1 else x": lambda model, x: x / 2 if x.max() > 1 else x,
    "x / 2 if x.shape[1] > 3 else x": lambda model, x: x / 2 if x.shape[1] > 3 else x,
    "x / 2 if x.shape[0] > 3 else x": lambda model, x: x / 2 if x.shape[0] > 3 else x,
    "x / 2 if self.training else x": lambda model, x: x / 2 if model.training else x,
    "for layer in self.layers: x = layer(x)": _all_layers,
    "torch.stack([row * 2 for row in x])": lambda model, x: torch.stack([row * 2 for row in x]),
    "self.layers[int(x[0, 0])](x)": lambda model, x: model.layers[int(x[0, 0].item())](x),
    "x + random.random()": lambda model, x: x + random.random(),
}
_REASONS = {
    "x / 2 if x.max() > 1 else x": "a branch on a value needs data, and while a graph is recorded "
    "there is none: refused",
    "x / 2 if x.shape[1] > 3 else x": "dimension 1 is fixed by the example, so the condition is a "
    "constant, and a correct one: right",
    "x / 2 if x.shape[0] > 3 else x": "a free dimension must not be decided, and this condition "
    "would decide it: refused",
    "x / 2 if self.training else x": "the mode is a Python value. Python ran once, and the mode of "
    "that moment was recorded: frozen",
    "for layer in self.layers: x = layer(x)": "the number of layers is fixed, so the loop is "
    "written out: right",
    "torch.stack([row * 2 for row in x])": "the number of rows is free, and a loop over rows asks "
    "for a number: refused",
    "self.layers[int(x[0, 0])](x)": "an index into a Python list must be a number now, and the "
    "value of x is not there: refused",
    "x + random.random()": "Python ran once, and the number it drew was recorded: frozen",
}


def fate(name):
    """Export a forward in training mode with a free batch; say what a later call meets.

    Parameters
    ----------
    name : str
        A key of `FORWARDS`.

    Returns
    -------
    str
        "refused" by torch.export, "frozen" (another answer than the model in evaluation mode),
        or "right".

    Examples
    --------
    >>> fate("x / 2 if self.training else x")
    'frozen'
    """
    model = _Forward(FORWARDS[name])
    shapes = ({0: torch.export.Dim("batch")},)
    try:
        with onnx_export.quiet():
            exported = torch.export.export(model, (torch.rand(2, 4),), dynamic_shapes=shapes)
    except RuntimeError:
        return "refused"
    x = 2 * torch.rand(5, 4)
    same = torch.allclose(exported.module()(x), model.eval()(x), atol=1e-5)
    return "right" if same else "frozen"


def test_fates(answer, call):
    for name, guess in answer.items():
        if guess not in ("right", "refused", "frozen"):
            raise Wrong(f"{name!r}: write right, refused or frozen, not {guess!r}.")
    for name, guess in answer.items():
        if guess != fate(name):
            raise Wrong(f"{name}: {_REASONS[name]}, not {guess}.")


# --- 62.2 -------------------------------------------------------------------------------


def _trained_somewhat():
    """Return a model in training mode with one layer that its owner keeps in evaluation mode."""
    layers = [nn.Linear(16, 64), nn.BatchNorm1d(64), nn.Dropout(0.5), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(64, 64), nn.BatchNorm1d(64), nn.Linear(64, 3))
    with torch.no_grad():
        for _ in range(3):
            model(torch.randn(32, 16) * 2 + 1)
    model[5].eval()
    return model


def test_export_any_batch(answer, call):
    model = _trained_somewhat()
    modes = [part.training for part in model.modules()]
    state = {key: value.clone() for key, value in model.state_dict().items()}
    with onnx_export.quiet():
        got = call(answer, model, torch.randn(2, 16))
    if not isinstance(got, bytes | bytearray):
        raise Wrong(
            f"Return the bytes of the file, got {_kind(got)}. A program has "
            "model_proto.SerializeToString()."
        )
    now = [part.training for part in model.modules()]
    if now != modes:
        raise Wrong(
            "You changed the caller's model: its layers had modes of their own, "
            f"{sum(modes)} in training mode, now {sum(now)}. Work on a copy."
        )
    if any(not torch.equal(value, model.state_dict()[key]) for key, value in state.items()):
        raise Wrong("The weights or statistics of the caller's model have changed. Export a copy.")
    _look_at_file(bytes(got), model.eval())


def _look_at_file(file, model):
    import onnx

    try:
        nodes = [node.op_type for node in onnx.load_model_from_string(file).graph.node]
    except Exception:  # noqa: BLE001 - protobuf has its own family of errors
        raise Wrong("These bytes are no ONNX file. Is it torch.save, or a path?") from None
    left = sorted({"Dropout", "BatchNormalization"} & set(nodes))
    if "Dropout" in left:
        raise Wrong(f"Training nodes are left in the file: {', '.join(left)}. Export in eval().")
    try:
        session = onnx_export.open_session(file)
    except Exception as error:
        if "xternal data" in str(error):
            raise Wrong(
                "These bytes hold no weights: they lie in a second file, and you returned one."
            ) from None
        raise
    for rows in (2, 1, 7, 33):
        _look_at_rows(session, torch.randn(rows, 16), model)


def _look_at_rows(session, x, model):
    try:
        got = onnx_export.answer(session, x)
    except Exception as error:  # noqa: BLE001 - the runtime has its own family of errors
        text = str(error)
        if "expected: (tensor(double))" in text:
            raise Wrong(
                "The file expects tensor(double): a float32 model became another one."
            ) from None
        raise Wrong(
            f"{len(x)} rows: {onnx_export.reason(error, length=300)} Dimension 0 must be free."
        ) from None
    with torch.no_grad():
        expected = model(x)
    same = got.shape == expected.shape and torch.allclose(got, expected, rtol=1e-3, atol=1e-4)
    if not same:
        raise Wrong(
            f"{len(x)} rows: the file answers otherwise than model.eval(). It must hold this "
            "model, unchanged."
        )


# --- 62.3 -------------------------------------------------------------------------------

_WEIGHT = torch.tensor([[1.0, -2.0, 0.5], [0.5, 1.0, -1.0], [2.0, 0.3, 1.0], [-1.0, 0.7, 0.2]])


def _only_earlier(x):
    moved = x.clone()
    moved[:-1] = moved[:-1] + x[1:]
    return moved


def _sample_deviation(x):
    moved = x - x.mean(0)
    return moved / (moved.square().sum(0) / (len(x) - 1)).sqrt()  # x.std(0), which would warn


# name, function, whether it depends, what an answer that misses it should know
MATES = (
    ("x @ w", lambda x: x @ _WEIGHT, False, ""),
    ("x.softmax(1)", lambda x: x.softmax(1), False, ""),
    (
        "x @ w with other rounding in larger batches",
        lambda x: x @ _WEIGHT * (1 + 2e-7 * len(x)),
        False,
        "the numbers differ in the seventh digit. Rounding is no dependence: allow for it",
    ),
    (
        "x - x.mean(0)",
        lambda x: x - x.mean(0),
        True,
        "every row changes with its mates, and a batch mean survives every permutation. Compare "
        "with rows alone",
    ),
    (
        "x + 0.01 * x.mean(0), large logits",
        lambda x: x + 0.01 * x.mean(0) + torch.tensor([9.0, 0.0, 0.0, 0.0]),
        True,
        "the logits moved, the winner did not. Compare all numbers, with a small tolerance",
    ),
    (
        "each row but the last gets the next one added",
        _only_earlier,
        True,
        "an earlier row moved. Look at all rows",
    ),
    (
        "each row but the first gets the first one subtracted",
        lambda x: torch.cat([x[:1], x[1:] - x[:1]]),
        True,
        "a later row moved. Look at all rows",
    ),
    (
        "(x - x.mean(0)) / x.std(0)",
        _sample_deviation,
        True,
        "alone, a row gives NaN here, and NaN > tolerance is False. Ask what is close, not what "
        "is far",
    ),
)


def test_depends_on_batch_mates(answer, call):
    draws = []

    def noted(function):
        def f(x):
            draws.append(len(x) if x.dim() else 0)
            return function(x)

        return f

    for name, function, depends, lesson in MATES:
        x = torch.rand(6, 4) + 0.1
        draws.clear()
        got = call(answer, noted(function), x)
        if not isinstance(got, bool):
            raise Wrong(f"Return True or False, got {_kind(got)}. bool(...) makes one of it.")
        if depends and not got and len(draws) > 1 and set(draws) == {6}:
            raise Wrong(
                f"f(x) = {name} must give True. f saw {len(draws)} batches of 6 rows: calling it "
                "again tests randomness, and a batch mean survives every permutation. Send rows "
                "alone."
            )
        if got != depends:
            lesson = lesson or "each row is computed from itself alone"
            raise Wrong(f"f(x) = {name} must give {depends}: {lesson}.")


# --- 62.4 -------------------------------------------------------------------------------


def test_deploy(answer, call):
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).eval()
    with torch.no_grad():
        model[1].weight.mul_(4)
        model[3].weight.mul_(4)
    deployed = call(answer, model)
    if not isinstance(deployed, nn.Module):
        raise Wrong(f"Deploy(model) must make a torch.nn.Module, got {_kind(deployed)}.")
    pixels = torch.randint(0, 17, (7, 1, 8, 8), dtype=torch.uint8)
    with torch.no_grad():
        _look_at_probabilities(call(deployed.eval(), pixels), pixels, model)
    try:
        file = onnx_export.to_onnx(deployed, pixels[:2])
    except torch.onnx.OnnxExporterError as error:
        raise Wrong(
            "In Python the answers are right, and the exporter refuses: "
            f"{onnx_export.reason(error, length=60)} No branch may look at values."
        ) from None
    _look_at_deployed(onnx_export.open_session(file), pixels, model)


def _look_at_probabilities(got, pixels, model):
    if not isinstance(got, torch.Tensor):
        raise Wrong(f"forward must return a tensor, got {_kind(got)}.")
    if got.shape != (7, 10):
        raise Wrong(f"7 images need shape (7, 10), got {tuple(got.shape)}.")
    if got.dtype != torch.float32:
        raise Wrong(f"Probabilities came as {got.dtype}: clients were promised torch.float32.")
    expected = model(pixels / 16).softmax(1)
    if torch.allclose(got, expected, atol=1e-5):
        return
    if torch.allclose(got, model(pixels / 16), atol=1e-4):
        raise Wrong("These are logits, scaled as they should be: return probabilities.")
    sums = got.sum(1)
    if not torch.allclose(sums, torch.ones(7), atol=1e-4):
        raise Wrong(
            f"Rows must sum to 1: the first one sums to {sums[0]:.2f}. Is there a softmax, over the "
            "classes?"
        )
    logits = {
        "The file accepts pixels and does not scale them: divide inside.": pixels.float(),
        "All pixels became 0 or 1: // cuts the fraction off.": (pixels // 16).float(),
        "These are the answers for pixels / 255. The network was trained on / 16.": pixels / 255,
        "Scaled twice: pixels / 16 is already from 0 to 1.": pixels / 16 / 16,
    }
    for sentence, inputs in logits.items():
        if torch.allclose(got, model(inputs).softmax(1), atol=1e-5):
            raise Wrong(sentence)
    raise Wrong("The probabilities are others than those of the model for pixels / 16.")


def _look_at_deployed(session, pixels, model):
    for batch in (pixels, pixels[:1]):
        with torch.no_grad():
            expected = model(batch / 16).softmax(1)
        got = onnx_export.answer(session, batch)
        if got.shape != expected.shape or not torch.allclose(got, expected, atol=1e-4):
            raise Wrong(
                f"Right in Python, and the file differs for {len(batch)} images. Something was "
                "recorded that shall be computed."
            )


_HEAD = "def export_any_batch(model, example):\n"
_COPY = "    import copy\n\n    copied = copy.deepcopy(model).eval()\n"
_FREE = '    free = ({0: torch.export.Dim("batch")},)\n'
_BYTES = "    return program.model_proto.SerializeToString()\n"
_MATES_HEAD = "def depends_on_batch_mates(f, x):\n"
_ALONE = "    alone = torch.cat([f(row) for row in x.split(1)])\n"
_DEPLOY = (
    "class Deploy(torch.nn.Module):\n    def __init__(self, model):\n        super().__init__()\n"
    "        self.model = model\n\n"
    "    def forward(self, pixels):  # uint8, (n, 1, 8, 8), 0 to 16\n"
)


def _program(model="copied", example="example", shapes="free", rest=""):
    options = f"dynamic_shapes={shapes}, verbose=False"
    return f"    program = torch.onnx.export({model}, ({example},), {options}{rest})\n"


def _fates(**changes):
    """Return the solution of 62.1 as source, with some lines answered otherwise."""
    known = dict(zip(FORWARDS, _FATES, strict=True))
    for part, guess in changes.items():
        known |= {name: guess for name in known if part in name}
    return "fates = {\n" + "".join(f'    "{k}": "{v}",\n' for k, v in known.items()) + "}\n"


_FATES = ("refused", "right", "refused", "frozen", "right", "refused", "refused", "frozen")


def _wrong(name, source, says):
    return WrongAnswer(name=name, source=source, says=says)


EXERCISES = {
    "62.1": Exercise(
        title="Say what is refused and what is frozen",
        minutes=6,
        task="Eight lines of a forward. torch.export records each in training mode, with a free "
        "batch and an example of 2 rows. Write what a later call in evaluation mode meets: "
        "right, refused (at export), or frozen (another answer than the model's).",
        stub="fates = {\n" + "".join(f'    "{name}": ...,\n' for name in FORWARDS) + "}\n",
        answer="fates",
        test=test_fates,
        hints=(
            "What is known while the graph is recorded: sizes of fixed dimensions, Python values. "
            "What is not: numbers in tensors, the size of a free dimension.",
            "A Python value that changes later is not refused. It is recorded.",
            'x / 2 if x.max() > 1 else x is "refused": it asks for a number in a tensor.',
        ),
        solution=_fates(),
        wrong=(
            _wrong("branch works", _fates(max="right"), "a branch on a value needs data"),
            _wrong("any shape", _fates(**{"shape[1]": "refused"}), "a constant, and a correct one"),
            _wrong("batch decided", _fates(**{"shape[0]": "right"}), "must not be decided"),
            _wrong("mode is live", _fates(training="right"), "the mode of that moment"),
            _wrong("no loops", _fates(**{"for layer": "refused"}), "the loop is written out"),
            _wrong("loop over rows", _fates(stack="frozen"), "a loop over rows asks"),
            _wrong("index", _fates(int="right"), "an index into a Python list"),
            _wrong("fresh dice", _fates(random="right"), "the number it drew"),
            _wrong("other word", _fates(random="constant"), "write right, refused or frozen, not"),
        ),
        limit=60.0,
    ),
    "62.2": Exercise(
        title="Export for any batch",
        minutes=8,
        task="Return the bytes of one ONNX file that takes any number of rows, weights inside. "
        "The model comes in training mode, with one layer its owner keeps in evaluation mode, and "
        "goes back as it came. The file shall answer as in evaluation mode.",
        stub=_HEAD + '    """Return an ONNX file as bytes."""\n    ...\n',
        answer="export_any_batch",
        test=test_export_any_batch,
        hints=(
            "Three things are recorded at export: the mode, the sizes and the dtype.",
            "model.eval() and model.train() afterwards: the layer that was in evaluation mode is "
            "now in training mode.",
            "copied = copy.deepcopy(model).eval()",
        ),
        solution=_HEAD + _COPY + _FREE + _program() + _BYTES,
        wrong=(
            _wrong(
                "static",
                _HEAD + _COPY + _program(shapes="None") + _BYTES,
                "Dimension 0 must be free",
            ),
            _wrong(
                "no eval",
                _HEAD
                + "    import copy\n\n    copied = copy.deepcopy(model)\n"
                + _FREE
                + _program()
                + _BYTES,
                "Training nodes are left",
            ),
            _wrong(
                "mode not restored",
                _HEAD + _FREE + _program("model.eval()") + "    model.train()\n" + _BYTES,
                "layers had modes of their own",
            ),
            _wrong(
                "external data",
                _HEAD
                + "    import pathlib\n    import tempfile\n"
                + _COPY
                + _FREE
                + _program()
                + "    with tempfile.TemporaryDirectory() as folder:\n"
                "        path = pathlib.Path(folder, 'model.onnx')\n"
                "        program.save(path, external_data=True)\n"
                "        return path.read_bytes()\n",
                "hold no weights",
            ),
            _wrong(
                "double",
                _HEAD + _COPY + _FREE + _program("copied.double()", "example.double()") + _BYTES,
                "expects tensor(double)",
            ),
            _wrong(
                "rounded",
                _HEAD + _COPY + "    with torch.no_grad():\n"
                "        for weight in copied.parameters():\n            weight.round_()\n"
                + _FREE
                + _program()
                + _BYTES,
                "this model, unchanged",
            ),
            _wrong(
                "weights changed",
                _HEAD
                + _COPY
                + "    with torch.no_grad():\n        model[0].weight.mul_(2)\n"
                + "    return b''\n",
                "statistics of the caller's model have changed",
            ),
            _wrong(
                "weights only",
                _HEAD + "    import io\n\n    file = io.BytesIO()\n"
                "    torch.save(model.state_dict(), file)\n    return file.getvalue()\n",
                "no ONNX file",
            ),
            _wrong("a program", _HEAD + _COPY + "    return copied\n", "got Sequential"),
            _wrong("nothing", _HEAD + "    model.eval\n", "got None"),
        ),
        limit=60.0,
    ),
    "62.3": Exercise(
        title="Prove that an answer stands alone",
        minutes=8,
        task="`f` takes a batch, rows first, and returns a tensor with as many rows. Return True "
        "if some row of f(x) depends on the other rows of x, else False. Differences up to 1e-5 "
        "are rounding.",
        stub=_MATES_HEAD + '    """Return whether a row\'s answer depends on its batch mates."""\n'
        "    ...\n",
        answer="depends_on_batch_mates",
        test=test_depends_on_batch_mates,
        hints=(
            "Give every row other batch mates, or none, and keep the row.",
            "x - x.mean(0) gives the same rows after every permutation. A row alone gives zeros.",
            "alone = torch.cat([f(row) for row in x.split(1)])",
        ),
        solution=_MATES_HEAD
        + _ALONE
        + "    return not torch.allclose(f(x), alone, rtol=1e-5, atol=1e-5)\n",
        wrong=(
            _wrong(
                "twice the same",
                _MATES_HEAD + "    return not torch.allclose(f(x), f(x))\n",
                "tests randomness",
            ),
            _wrong(
                "permutation alone",
                _MATES_HEAD
                + "    order = torch.arange(len(x)).flip(0)\n"
                + "    return not torch.allclose(f(x)[order], f(x[order]), atol=1e-5)\n",
                "survives every permutation",
            ),
            _wrong(
                "argmax only",
                _MATES_HEAD
                + _ALONE
                + "    return not torch.equal(f(x).argmax(1), alone.argmax(1))\n",
                "the winner did not",
            ),
            _wrong(
                "equal bits",
                _MATES_HEAD + _ALONE + "    return not torch.equal(f(x), alone)\n",
                "Rounding is no dependence",
            ),
            _wrong(
                "last row only",
                _MATES_HEAD
                + "    return not torch.allclose(f(x)[-1:], f(x[-1:]), rtol=1e-5, atol=1e-5)\n",
                "an earlier row moved",
            ),
            _wrong(
                "first row only",
                _MATES_HEAD
                + "    return not torch.allclose(f(x)[:1], f(x[:1]), rtol=1e-5, atol=1e-5)\n",
                "a later row moved",
            ),
            _wrong(
                "far apart",
                _MATES_HEAD
                + _ALONE
                + "    return bool(((f(x) - alone).abs() > 1e-5 + 1e-5 * alone.abs()).any())\n",
                "alone, a row gives NaN",
            ),
            _wrong("always", _MATES_HEAD + "    return True\n", "from itself alone"),
            _wrong(
                "a tensor",
                _MATES_HEAD + _ALONE + "    return (f(x) != alone).any()\n",
                "Return True or False",
            ),
            _wrong("nothing", _MATES_HEAD + "    f(x)\n", "got None"),
        ),
    ),
    "62.4": Exercise(
        title="Put the preprocessing into the file",
        minutes=6,
        task="Clients send pixels as uint8, 0 to 16, and want probabilities. The network was "
        "trained on pixels / 16 and returns logits. Repair `Deploy`, so that nothing is left to "
        "do outside the file.",
        stub=_DEPLOY + "        return self.model(pixels.float())\n",
        answer="Deploy",
        test=test_deploy,
        hints=(
            "What a client must do before and after belongs inside.",
            "7 // 16 is 0. 7 / 16 is 0.4375, also for a tensor of uint8.",
            "return self.model(pixels / 16)...",
        ),
        solution=_DEPLOY + "        return self.model(pixels / 16).softmax(1)\n",
        wrong=(
            _wrong(
                "whole division",
                _DEPLOY + "        return self.model((pixels // 16).float()).softmax(1)\n",
                "0 or 1",
            ),
            _wrong(
                "by 255",
                _DEPLOY + "        return self.model(pixels / 255).softmax(1)\n",
                "trained on / 16",
            ),
            _wrong(
                "softmax over images",
                _DEPLOY + "        return self.model(pixels / 16).softmax(0)\n",
                "Rows must sum to 1",
            ),
            _wrong(
                "divides outside",
                _DEPLOY + "        return self.model(pixels.float()).softmax(1)\n",
                "divide inside",
            ),
            _wrong(
                "divides twice",
                _DEPLOY + "        return self.model(pixels / 16 / 16).softmax(1)\n",
                "Scaled twice",
            ),
            _wrong(
                "logits", _DEPLOY + "        return self.model(pixels / 16)\n", "These are logits"
            ),
            _wrong(
                "float64",
                _DEPLOY + "        return self.model(pixels / 16).double().softmax(1)\n",
                "promised torch.float32",
            ),
            _wrong(
                "scaled by its own largest",
                _DEPLOY + "        return self.model(pixels / pixels.max() / 2).softmax(1)\n",
                "are others than those",
            ),
            _wrong(
                "checks the values",
                _DEPLOY + "        if pixels.max() > 16:\n            pixels = pixels * 0\n"
                "        return self.model(pixels / 16).softmax(1)\n",
                "the exporter refuses",
            ),
            _wrong(
                "one answer remembered",
                _DEPLOY
                + "        if not hasattr(self, 'largest'):\n"
                + "            self.largest = int(len(pixels))\n"
                + "        scale = self.largest / 7\n"
                + "        size = 1 if torch.compiler.is_exporting() else 0\n"
                + "        return self.model(pixels / 16 * scale * (1 - size / 2)).softmax(1)\n",
                "Right in Python, and the file differs",
            ),
            _wrong(
                "argmax",
                _DEPLOY + "        return self.model(pixels / 16).argmax(1)\n",
                "need shape (7, 10)",
            ),
            _wrong("a list", _DEPLOY + "        return [pixels]\n", "got list"),
            _wrong("a function", "def Deploy(model):\n    return model.forward\n", "got method"),
        ),
        limit=60.0,
    ),
}
