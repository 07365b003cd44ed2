"""Ask and check what 61_compile_a_model teaches."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "61.p1": Choice(
        question="Compiled, a chain of 1 link and one of 8 links run over the same 10 million "
        "numbers. How much longer does the chain of 8 take?",
        options={
            "about the same": "Right: both read each number once and write it once.",
            "twice": "Something is saved, and more than that: 15 of the 16 results never reach "
            "memory.",
            "eight times": "That is the law of arithmetic, and arithmetic is not what these "
            "numbers wait for. Count the trips to memory.",
            "an error": "A Python loop of fixed length is unrolled while the graph is captured.",
        },
    ),
    "61.p2": Number(
        question="How many times as long as a later call did the first call of the compiled "
        "chain take?",
        unit="times",
        notes=(
            (0, 10, "You pictured a parser. A C++ compiler ran, and large headers went with it."),
            (10, 100, "A compiler was loaded, and C++ was written, built and loaded again."),
            (
                100,
                1000,
                "Seconds of compiling stand beside one pass over memory.",
            ),
            (1000, 1e5, "You know what a compiler costs beside one pass over memory."),
            (1e5, 1e12, "A later call still reads and writes all numbers, which takes its time."),
        ),
    ),
    "61.p3": Choice(
        question="Three functions, compiled with mode='max-autotune': a chain of 6, a product "
        "of two 1024 x 1024 matrices, and x * 2 + 1 on 100 numbers. Which one does compiling slow "
        "down most?",
        options={
            "the chain": "It is the one that gains: there were intermediate results to remove.",
            "the product": "It has the most arithmetic and gains nothing, for a library has "
            "tuned it already. Another one loses more.",
            "the tiny one": "Right: before each call guards compare the inputs with those that "
            "were compiled for, and 100 numbers do not repay that.",
            "none of them": "A compiled function does more than its loop: look at the smallest.",
        },
    ),
    "61.p4": Choice(
        question="step is called with ones, ones, and minus ones. How many graphs are there "
        "after each call?",
        options={
            "1, 1, 1": "One graph would need both branches in it. Python's if takes one.",
            "1, 1, 2": "One graph per branch is close. But the condition needs a value, so it "
            "is a graph of its own, before either branch.",
            "2, 2, 3": "Right: one up to the condition, one for each branch that was taken.",
            "an error": "That is the rule of fullgraph=True, and of torch.export. The default "
            "cuts the graph and goes on.",
        },
    ),
    "61.p5": Choice(
        question="The module counts its calls in self.calls. Twenty calls, one shape. How many "
        "compilations?",
        options={
            "1": "The shape stays. The graph also depends on the integer, which was compiled in.",
            "2": "Shapes and number arguments become dynamic at their second value. Integer "
            "attributes of a module do not.",
            "8": "Right: one for each value of self.calls, until the limit. After it the module "
            "runs uncompiled, for good.",
            "20": "Each value does ask for its own graph. There is a limit.",
        },
    ),
    "61.p6": Choice(
        question="A model is compiled and called once. Then a forward hook is registered, and "
        "the model is called again. How often does the hook run?",
        options={
            "0": "Right: nothing guards the dictionary of hooks, so the old code runs.",
            "1": "So does eager. The compiled code was made without the hook and nobody asked it "
            "to look again.",
            "an error": "There is none, and no warning: that is what makes it worth a test.",
        },
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


def _counted(function):
    """Compile with a backend that counts its graphs, and needs no C++ compiler."""
    graphs = []

    def counting(graph, inputs):
        graphs.append(graph)
        return graph.forward

    torch.compiler.reset()
    return graphs, torch.compile(function, backend=counting)


# --- 61.1 -------------------------------------------------------------------------------


def _first_gain(first, eager, compiled, most=10_000):
    """Count calls until the compiled total is lower; None if it is not within `most`."""
    for n in range(1, most):
        if first + (n - 1) * compiled < n * eager:
            return n
    return None


def test_break_even(answer, call):
    cases = [(900, 100, 100), (900, 100, 140), (1000, 110, 10), (900, 1000, 10)]
    for _ in range(20):
        eager, compiled = (int(n) for n in np.random.randint(5, 400, 2))
        cases.append((int(np.random.randint(400, 9000)), eager, compiled))
    for first, eager, compiled in cases:
        got = call(answer, first, eager, compiled)
        _look_at_calls(got, first, eager, compiled, _first_gain(first, eager, compiled))
    first, eager, compiled = 7_000_000_000, 301, 300
    got = call(answer, first, eager, compiled)
    _look_at_calls(got, first, eager, compiled, 6_999_999_701)


def _look_at_calls(got, first, eager, compiled, n):
    case = f"first {first:,}, eager {eager}, compiled {compiled}"
    if got is not None and (isinstance(got, bool) or not isinstance(got, int)):
        raise Wrong(f"{case}: return a number of calls, an int, or None; got {_kind(got)}.")
    if got == n:
        return
    if n is None:
        raise Wrong(f"{case}: code that is not faster never repays its first call: None.")
    if got is None:
        raise Wrong(f"{case}: each later call saves {eager - compiled}, so it does repay.")
    total = first + (got - 1) * compiled
    at = f"{case}: got {got:,} calls, it is {n:,}."
    if got in (-(-first // eager), first // eager, first // eager + 1) and got != n - 1:
        raise Wrong(f"{at} A later call saves only the difference, eager less compiled.")
    if got < n:
        raise Wrong(f"{at} At {got:,} you are still behind or level: {total:,}, {got * eager:,}.")
    raise Wrong(f"{at} The first call also delivers a result, which eager had to pay for.")


# --- 61.2 -------------------------------------------------------------------------------


def _rescaled(x):
    values = x.detach().double().numpy()
    return np.maximum(values / max(1.0, np.abs(values).max()), 0)


def _input(largest):
    x = torch.rand(7) - 0.5
    return (x * (largest / x.abs().max())).requires_grad_()


def test_rescale(answer, call):
    with torch.enable_grad():
        inputs = [_input(largest) for largest in (0.6, 3.0, 0.4, 7.0)]
        graphs, compiled = _counted(answer)
        for function in (answer, compiled):
            for x in inputs:
                _look_at_rescaled(call(function, x), x)
        if len(graphs) != 1:
            raise Wrong(
                f"The values are right, in {len(graphs)} graphs. Python's if, bool() and .item() "
                "need the value while the graph is captured: let a tensor operation choose."
            )
        call(compiled, inputs[1]).sum().backward()
        gradient = inputs[1].grad
        inputs[1].grad = None
        twin = inputs[1].detach().clone().requires_grad_()
        (twin / twin.abs().max()).relu().sum().backward()
        if not torch.allclose(gradient, twin.grad, atol=1e-6):
            raise Wrong("The gradient is another: size depends on x too, so keep its graph.")
        nothing = torch.zeros(5, requires_grad=True)
        call(compiled, nothing).sum().backward()
        if not nothing.grad.isfinite().all():
            raise Wrong(
                "For an x of zeros the gradient is nan: torch.where computes both sides, and 0 / 0 "
                "comes back through the one that was not chosen. Let it choose the divisor."
            )


def _look_at_rescaled(got, x):
    largest = f"{float(x.detach().abs().max()):.1f}"
    if not isinstance(got, torch.Tensor) or got.shape != x.shape:
        raise Wrong(f"Return a tensor of the shape of x, got {_kind(got)}.")
    if not got.requires_grad:
        raise Wrong(
            "The result has left the graph of x, and its gradients are gone: stay in torch."
        )
    if np.allclose(got.detach().double().numpy(), _rescaled(x), atol=1e-6):
        return
    values = x.detach()
    if float(largest) < 1 and torch.allclose(got, (values / values.abs().max()).relu(), atol=1e-6):
        raise Wrong(f"An x with largest size {largest} was divided. Up to 1 it stays as it is.")
    if float(largest) > 1 and torch.allclose(got, values.relu(), atol=1e-6):
        raise Wrong(
            f"An x with largest size {largest} was not divided. Keep both cases, and decide for "
            "each input anew."
        )
    if (got.detach() < 0).any():
        raise Wrong("Numbers below zero come back: the relu at the end is gone.")
    raise Wrong(
        f"An x with largest size {largest} came back with other values. The condition is about "
        "the largest of all, one for the whole x, not about each number."
    )


# --- 61.3 -------------------------------------------------------------------------------


def test_counter(answer, call):
    limit = torch._dynamo.config.recompile_limit
    try:
        model = call(answer)
        if not isinstance(model, nn.Module):
            raise Wrong(f"Counter() must make a torch.nn.Module, got {_kind(model)}.")
        graphs, compiled = _counted(model)
        x = torch.randn(3)
        for _ in range(20):
            got = call(compiled, x)
            if not isinstance(got, torch.Tensor) or not torch.equal(got, x.clamp(min=0)):
                raise Wrong("forward must return x.relu(), as it did.")
        _look_at_counter(model, len(graphs))
    finally:
        torch._dynamo.config.recompile_limit = min(limit, 8)


def _look_at_counter(model, graphs):
    if not hasattr(model, "calls"):
        raise Wrong("model.calls is gone: after 20 calls it must be 20.")
    if graphs > 8:
        raise Wrong(
            f"{graphs} graphs: a higher limit only compiles more often. Let the number be data, "
            "which no guard compares."
        )
    if isinstance(model.calls, list | tuple | dict):
        raise Wrong(
            f"Still {graphs} graphs: the number inside the {_kind(model.calls)} is guarded like "
            "an attribute."
        )
    if graphs > 2:
        raise Wrong(
            f"{graphs} graphs in 20 calls: a Python integer of a module is compiled in, and each "
            "new value asks for a new graph."
        )
    count = float(model.calls)
    if count != 20:
        raise Wrong(f"The count is {count:g} after 20 calls.")
    if graphs == 2:
        raise Wrong(
            f"2 graphs: a {_kind(model.calls)} becomes dynamic at its second value. And "
            "state_dict() does not save it. What holds a number as data?"
        )
    if "calls" not in model.state_dict():
        raise Wrong(
            "1 graph and the right count, but state_dict() forgets it: a tensor that belongs to "
            "the module must be registered."
        )
    if any(True for _ in model.parameters()):
        raise Wrong(
            "1 graph, and saved. But an optimizer would see calls among the parameters: what is "
            "not trained is a buffer."
        )


# --- 61.4 -------------------------------------------------------------------------------


def _plain(rng):
    names = [str(n) for n in rng.permutation(["model", "origin", "mod", "dirt", "gate"])]
    model = nn.Module()
    for name in names[:3]:
        model.add_module(name, nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))
    for value in model.state_dict().values():
        value.copy_(torch.rand(value.shape) * 9)
    return model, names[:3]


def _wrapped(model, names, *, outer, inner):
    for name in names[:inner]:
        setattr(model, name, torch.compile(getattr(model, name), backend="eager"))
    return torch.compile(model, backend="eager") if outer else model


def test_plain_state_dict(answer, call):
    rng = np.random.default_rng(np.random.randint(1_000_000))
    for outer, inner in ((True, 0), (True, 2), (False, 1), (False, 0)):
        model, names = _plain(rng)
        expected = {key: value.clone() for key, value in model.state_dict().items()}
        compiled = _wrapped(model, names, outer=outer, inner=inner)
        keys = list(compiled.state_dict())
        try:
            got = call(answer, compiled)
        except AttributeError as error:
            if "_orig_mod" not in str(error):
                raise
            raise Wrong(
                "This model has a compiled part inside and is not compiled itself, so it has no "
                "_orig_mod. Work on the keys."
            ) from None
        _look_at_state(got, expected, keys)
        if list(compiled.state_dict()) != keys:
            raise Wrong("The compiled model has changed: copy, and leave its own keys alone.")


def _look_at_state(got, expected, keys):
    if not isinstance(got, Mapping):
        raise Wrong(f"Return a dict of names and tensors, got {_kind(got)}.")
    for key in got:
        if not isinstance(key, str):
            raise Wrong(f"Keys are names: {key!r} is none.")
        if "_orig_mod" in key:
            raise Wrong(
                f"{key} still holds _orig_mod. A compiled part inside a compiled model gives its "
                "keys a second one: remove it anywhere."
            )
        if key not in expected:
            _explain(key, keys)
    missing = [key for key in expected if key not in got]
    if missing:
        kind = "buffers belong to the state" if "running" in missing[0] else "it was in the model"
        raise Wrong(f"{missing[0]} is missing: {kind}.")
    for key, value in expected.items():
        if not isinstance(got[key], torch.Tensor) or not torch.equal(got[key], value):
            raise Wrong(f"{key} holds another value than in the model. Rename, and nothing else.")


def _explain(key, keys):
    if ".." in key or key.startswith("."):
        raise Wrong(f"{key!r} has a dot too many: what is inserted is '_orig_mod.', with its dot.")
    stripped = [one for one in keys if one.lstrip("_orig_mod.") == key]  # noqa: B005 - the mistake
    if stripped:
        raise Wrong(
            f"{stripped[0]} became {key}: lstrip takes away letters, any of those given, not a "
            "prefix."
        )
    if any(one.partition(".")[2] == key for one in keys):
        raise Wrong(
            f"{key} has lost its first part, which was a real name. Not every key begins with "
            "_orig_mod: this model itself is not compiled."
        )
    raise Wrong(f"{key} is no key of the plain model. Names identify the tensors, not their order.")


_RESCALE = "def rescale(x):\n    size = x.abs().max()\n"
_COUNTER = "class Counter(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n"
_FORWARD = "\n    def forward(self, x):\n"
_STATE = "def plain_state_dict(model):\n"
_ITEMS = " for key, value in model.state_dict().items()}\n"


def _wrong(name, source, says):
    return WrongAnswer(name=name, source=source, says=says)


EXERCISES = {
    "61.1": Exercise(
        title="Compute the call that breaks even",
        minutes=6,
        task="The times of the first compiled call, an eager call, and a later compiled call are "
        "whole microseconds. Return the smallest number of calls after which the compiled "
        "function has taken less time in total, or None if there is none. It may be billions: "
        "do not count.",
        stub="def break_even(first, eager, compiled):\n"
        '    """Return the number of calls, or None; all times in whole microseconds."""\n    ...\n',
        answer="break_even",
        test=test_break_even,
        hints=(
            "After n calls: first + (n - 1) · compiled against n · eager.",
            "first 1,000, eager 110, compiled 10: at 9 calls 1,080 against 990, at 10 calls 1,090 "
            "against 1,100.",
            "if eager <= compiled: return None",
        ),
        solution="def break_even(first, eager, compiled):\n    if eager <= compiled:\n"
        "        return None\n    return (first - compiled) // (eager - compiled) + 1\n",
        wrong=(
            _wrong(
                "first by eager",
                "def break_even(first, eager, compiled):\n    if eager <= compiled:\n"
                "        return None\n    return first // eager + 1\n",
                "saves only the difference",
            ),
            _wrong(
                "negative",
                "def break_even(first, eager, compiled):\n    if eager == compiled:\n"
                "        return None\n    return (first - compiled) // (eager - compiled) + 1\n",
                "never repays",
            ),
            _wrong(
                "rounded down",
                "def break_even(first, eager, compiled):\n    if eager <= compiled:\n"
                "        return None\n    return max(1, (first - compiled) // (eager - compiled))\n",
                "still behind or level",
            ),
            _wrong(
                "first call for nothing",
                "def break_even(first, eager, compiled):\n    if eager <= compiled:\n"
                "        return None\n    return first // (eager - compiled) + 1\n",
                "also delivers a result",
            ),
            _wrong(
                "a float",
                "def break_even(first, eager, compiled):\n    if eager <= compiled:\n"
                "        return None\n    return (first - compiled) / (eager - compiled)\n",
                "got float",
            ),
            _wrong(
                "never",
                "def break_even(first, eager, compiled):\n    return None\n",
                "so it does repay",
            ),
        ),
    ),
    "61.2": Exercise(
        title="Turn several graphs into one",
        minutes=8,
        task="`rescale` divides x by its largest size where that is above 1, and cuts off what is "
        "below zero. Compiled, it falls into several graphs. Repair it: one graph, the same "
        "values and gradients for every x.",
        stub=_RESCALE + "    if size > 1:\n        x = x / size\n    return x.relu()\n",
        answer="rescale",
        test=test_rescale,
        hints=(
            "Which of two results it is may depend on a value, if a tensor operation chooses.",
            "[0.2, 3.0] becomes [0.067, 1.0]: one condition for both numbers.",
            "x = x / torch.where(size > 1, ..., ...)",
        ),
        solution=_RESCALE + "    return (x / torch.where(size > 1, size, 1.0)).relu()\n",
        wrong=(
            _wrong(
                "both sides computed",
                _RESCALE + "    return torch.where(size > 1, x / size, x).relu()\n",
                "Let it choose the divisor",
            ),
            _wrong(
                "item",
                _RESCALE + "    if size.item() > 1:\n        x = x / size\n    return x.relu()\n",
                "The values are right, in",
            ),
            _wrong("branch dropped", "def rescale(x):\n    return x.relu()\n", "Keep both cases"),
            _wrong(
                "decided once",
                "seen = {}\n\n\n"
                + _RESCALE
                + '    if "large" not in seen:\n        seen["large"] = bool(size > 1)\n'
                '    return (x / size if seen["large"] else x).relu()\n',
                "decide for each input anew",
            ),
            _wrong("always", _RESCALE + "    return (x / size).relu()\n", "was divided"),
            _wrong(
                "number by number",
                _RESCALE + "    return torch.where(x.abs() > 1, x / size, x).relu()\n",
                "not about each number",
            ),
            _wrong(
                "clamp",
                "def rescale(x):\n    return x.clamp(0, 1)\n",
                "not about each number",
            ),
            _wrong(
                "NumPy",
                "def rescale(x):\n    a = x.detach().numpy()\n"
                "    return torch.from_numpy(np.maximum(a / max(1, np.abs(a).max()), 0))\n",
                "gradients are gone",
            ),
            _wrong(
                "size detached",
                "def rescale(x):\n    size = x.detach().abs().max()\n"
                "    return torch.where(size > 1, x / size, x).relu()\n",
                "keep its graph",
            ),
            _wrong(
                "no relu",
                _RESCALE + "    return torch.where(size > 1, x / size, x)\n",
                "below zero",
            ),
            _wrong("nothing", "def rescale(x):\n    x.relu()\n", "got None"),
        ),
        limit=20.0,
    ),
    "61.3": Exercise(
        title="Stop a compilation at every call",
        minutes=6,
        task="`Counter` counts its calls and compiles again at each. Repair it: one graph in "
        "20 calls, `calls` is 20 afterwards, and `state_dict()` saves it.",
        stub=_COUNTER
        + "        self.calls = 0\n"
        + _FORWARD
        + "        self.calls += 1\n        return x.relu()\n",
        answer="Counter",
        test=test_counter,
        hints=(
            "Guards compare Python values, and the shapes of tensors. They do not compare the "
            "values of tensors.",
            "BatchNorm counts its batches in num_batches_tracked and does not compile again.",
            'self.register_buffer("calls", ...)',
        ),
        solution=_COUNTER
        + '        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))\n'
        + _FORWARD
        + "        self.calls += 1\n        return x.relu()\n",
        wrong=(
            _wrong(
                "deleted",
                _COUNTER + "        self.calls = 0\n" + _FORWARD + "        return x.relu()\n",
                "The count is 0",
            ),
            _wrong("gone", _COUNTER + _FORWARD + "        return x.relu()\n", "calls is gone"),
            _wrong(
                "list",
                _COUNTER
                + "        self.calls = [0]\n"
                + _FORWARD
                + "        self.calls[0] += 1\n        return x.relu()\n",
                "inside the list",
            ),
            _wrong(
                "float",
                _COUNTER
                + "        self.calls = 0.0\n"
                + _FORWARD
                + "        self.calls += 1\n        return x.relu()\n",
                "becomes dynamic at its second value",
            ),
            _wrong(
                "plain tensor",
                _COUNTER
                + "        self.calls = torch.zeros(())\n"
                + _FORWARD
                + "        self.calls += 1\n        return x.relu()\n",
                "forgets it",
            ),
            _wrong(
                "parameter",
                _COUNTER
                + "        self.calls = torch.nn.Parameter(torch.zeros(()), False)\n"
                + _FORWARD
                + "        self.calls += 1\n        return x.relu()\n",
                "is a buffer",
            ),
            _wrong(
                "higher limit",
                _COUNTER
                + "        self.calls = 0\n        torch._dynamo.config.recompile_limit = 1000\n"
                + _FORWARD
                + "        self.calls += 1\n        return x.relu()\n",
                "a higher limit only compiles more often",
            ),
            _wrong(
                "int(...)",
                _COUNTER
                + "        self.calls = int(0)\n"
                + _FORWARD
                + "        self.calls = self.calls + 1\n        return x.relu()\n",
                "is compiled in",
            ),
            _wrong(
                "other result",
                _COUNTER
                + "        self.calls = torch.zeros(())\n"
                + _FORWARD
                + "        self.calls += 1\n        return self.calls\n",
                "as it did",
            ),
            _wrong(
                "a function",
                "def Counter():\n    return torch.relu\n",
                "must make a torch.nn.Module",
            ),
        ),
        limit=20.0,
    ),
    "61.4": Exercise(
        title="Save weights that a plain model loads",
        minutes=6,
        task="`model` may be compiled, hold compiled parts, both, or neither. Return its "
        "state_dict under the keys of the plain model.",
        stub=_STATE + '    """Return the tensors of the model by their plain names."""\n    ...\n',
        answer="plain_state_dict",
        test=test_plain_state_dict,
        hints=(
            "torch.compile wraps a module in another one and holds it as its child _orig_mod.",
            "Both levels compiled: _orig_mod.gate._orig_mod.0.weight. The plain key is "
            "gate.0.weight.",
            "return {...: value for key, value in model.state_dict().items()}",
        ),
        solution=_STATE + '    return {key.replace("_orig_mod.", ""): value' + _ITEMS,
        wrong=(
            _wrong(
                "lstrip",
                _STATE + '    return {key.lstrip("_orig_mod."): value' + _ITEMS,
                "lstrip takes away letters",
            ),
            _wrong(
                "first prefix only",
                _STATE + '    return {key.removeprefix("_orig_mod."): value' + _ITEMS,
                "a second one",
            ),
            _wrong(
                "dot left",
                _STATE + '    return {key.replace("_orig_mod", ""): value' + _ITEMS,
                "a dot too many",
            ),
            _wrong(
                "first part cut",
                _STATE
                + '    return {key.partition(".")[2].replace("_orig_mod.", ""): value'
                + _ITEMS,
                "lost its first part",
            ),
            _wrong(
                "outer only",
                _STATE + "    return {k.replace('_orig_mod.', ''): v for k, v in "
                "model._orig_mod.state_dict().items()}\n",
                "not compiled itself",
            ),
            _wrong(
                "parameters only",
                _STATE + '    return {key.replace("_orig_mod.", ""): value '
                "for key, value in model.named_parameters()}\n",
                "buffers belong to the state",
            ),
            _wrong(
                "by position",
                _STATE + "    return dict(enumerate(model.state_dict().values()))\n",
                "Keys are names",
            ),
            _wrong(
                "by number",
                _STATE + "    return {str(i): value for i, value in "
                "enumerate(model.state_dict().values())}\n",
                "not their order",
            ),
            _wrong(
                "rounded",
                _STATE + '    return {key.replace("_orig_mod.", ""): value.half()' + _ITEMS,
                "Rename, and nothing else",
            ),
            _wrong(
                "first layer lost",
                _STATE + '    return {key.replace("_orig_mod.", ""): value '
                "for key, value in list(model.state_dict().items())[2:]}\n",
                "it was in the model",
            ),
            _wrong(
                "renamed in place",
                _STATE
                + '    state = {key.replace("_orig_mod.", ""): value'
                + _ITEMS
                + "    for name, part in list(model.named_children()):\n"
                "        setattr(model, name, getattr(part, '_orig_mod', part))\n"
                "    return state\n",
                "leave its own keys alone",
            ),
            _wrong("nothing", _STATE + "    model.state_dict()\n", "got None"),
        ),
        limit=20.0,
    ),
}
