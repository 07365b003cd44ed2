"""Ask and check what 52_debug_a_model teaches."""

import contextlib
import warnings

import numpy as np
import torch
from torch import nn

from helpers.exercises import Choice, Exercise, Wrong, WrongAnswer

PREDICTIONS = {
    "52.p1": Choice(
        question="Ten programs, each with one bug, are trained alike. How many of them name at "
        "least nine of ten test digits rightly?",
        options={
            "none": "A bug that lowers the accuracy gets found. The others are still in there.",
            "1 or 2": "You trust the accuracy a little. It judges the task, not the program.",
            "3 or 4": "Less trust, and still too much: most bugs leave the accuracy where it was.",
            "half or more": "Right: a network learns around most bugs. The accuracy cannot tell.",
        },
    ),
    "52.p2": Choice(
        question="One check only: a program has to store a batch of 32 digits. Which of the ten "
        "bugs does it find?",
        options={
            "all of them": "Storing needs gradients that point somewhere downhill, and no more. "
            "Most bugs leave that.",
            "half or fewer": "Right: it finds what keeps the loss up, and nothing else.",
            "none": "It does find what keeps the loss up: a softmax too many, or old gradients.",
        },
    ),
    "52.p3": Choice(
        question="30 default Linear layers of width 256, each with ReLU. 128 digits go in. How far "
        "apart are they after the last layer, compared with after the first?",
        options={
            "about as far": "Training frameworks ship defaults that work, for a few layers. A "
            "factor per layer is a power over thirty.",
            "about a hundredth": "A factor below 1 in every layer multiplies thirty times. Yours "
            "would be 0.85 per layer.",
            "below a millionth": "Right: less than half is left by each layer, and that to the "
            "power of thirty.",
        },
    ),
    "52.p4": Choice(
        question="The root of x at x = 0 has an infinite gradient; exp(x) - exp(x) at x = 1000 is "
        "NaN itself, and so is its gradient. For which of them does anomaly mode raise?",
        options={
            "both": "It asks for NaN, in what a backward function returns. An infinity is no NaN, "
            "and the difference is made between two finite or infinite parts.",
            "the root": "An infinity is not a NaN, and anomaly mode asks for NaN only.",
            "exp(x) - exp(x)": "Each backward function returns an infinity: the NaN arises when "
            "the two are added, and nobody looks there.",
            "neither": "Right: it asks one question, and neither of the two answers it with NaN.",
        },
    ),
    "52.p5": Choice(
        question="A tutorial prints grad_output[0].norm() in a full backward hook of a Linear "
        "layer, as the layer's gradient norm. Which norm is it?",
        options={
            "of weight.grad": "The hook gets no gradient of a parameter at all: grad_output is "
            "about what leaves the module.",
            "of the loss by the layer's output": "Right: it is what arrives at the module from "
            "above, before the layer has computed anything.",
            "of the loss by the layer's input": "That is grad_input, the second argument.",
        },
    ),
    "52.p6": Choice(
        question="A forward hook is to keep the first batch's result, as a lambda of one line: "
        "kept.setdefault(name, output). What does it change in the second batch?",
        options={
            "nothing": "A lambda returns its value, and what a forward hook returns counts.",
            "the module's output": "Right: what a forward hook returns takes the place of the "
            "output, here that of the first batch.",
            "an error": "No error: the shapes fit, and nothing looks wrong.",
        },
    ),
}


def _kind(value):
    return "None" if value is None else type(value).__name__


def _hooks(model):
    return sum(
        len(hooks)
        for module in model.modules()
        for hooks in (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks)
    )


def _refuse_left(model, when):
    if _hooks(model):
        raise Wrong(
            f"{_hooks(model)} hooks are still on the model {when}. A second call would run them "
            "again: keep each handle, and remove it in finally or by `with`."
        )


# --- 52.1 -------------------------------------------------------------------------------


class _Leaky(nn.Module):
    """A network in which samples may see each other, in one of several ways."""

    def __init__(self, leak=None):
        super().__init__()
        self.leak = leak
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 4)
        self.norm, self.drop = nn.BatchNorm1d(8), nn.Dropout(0.5)

    def forward(self, x):
        h = self.drop(self.norm(self.first(x)).relu())
        if self.leak == "reshape":
            h = h.t().reshape(h.shape)
        z = self.last(h)
        if self.leak == "softmax":
            return z.softmax(0)
        if self.leak == "first":
            return torch.cat([z[:1] + 0.1 * z[-1:], z[1:]])
        if self.leak == "middle" and len(z) > 2:
            return torch.cat([z[:2], z[2:3] + 0.1 * z[1:2], z[3:]])
        return z


_WHERE = {
    "softmax": "normalizes over dim 0, the samples",
    "reshape": "mixes samples by a reshape where a transpose is meant",
    "first": "adds the last sample to the first one, and to no other",
    "middle": "adds the second sample to the third one, and to no other",
}


def _modes(model):
    return [module.training for module in model.modules()]


def test_samples_independent(answer, call):
    for leak in (None, "first", "middle", "softmax", "reshape"):
        model = _Leaky(leak)
        model(torch.rand(16, 6))  # gives BatchNorm statistics of its own
        model.norm.eval()
        modes, x = _modes(model), torch.rand(5, 6)
        got = call(answer, model, x)
        if not isinstance(got, bool | np.bool_):
            raise Wrong(f"Return True or False, got {_kind(got)}.")
        _look_at_independence(bool(got), leak)
        if _modes(model) != modes:
            raise Wrong(
                "The model came in training mode with its BatchNorm in evaluation mode, and has "
                "other modes now. Note the mode of every module, and give each its own back."
            )


def _look_at_independence(got, leak):
    if leak is None and not got:
        raise Wrong(
            "This network treats each sample by itself, yet you say that it does not. Did dropout "
            "draw twice, or BatchNorm see the batch? Call model.eval() first. And a sample's own "
            "output may change with it."
        )
    if leak and got:
        raise Wrong(
            f"One network {_WHERE[leak]}, and you call it independent. Compare every sample alone, "
            "as a batch of one, with its row in the whole batch."
        )


# --- 52.2 -------------------------------------------------------------------------------


class _Step(nn.Module):
    """Pass a batch on, spoil it if told to, and return it in a tuple if told to."""

    def __init__(self, value=None, pair=False):
        super().__init__()
        self.value, self.pair, self.given, self.made = value, pair, None, None

    def forward(self, x):
        self.given = x[-1] if isinstance(x, tuple) else x
        self.made = self.given * 1.0
        if self.value is not None:
            self.made[-1, -1] = self.value
        return (self.made[:0], self.made) if self.pair else self.made


class _Steps(nn.Module):
    """Run its steps in an order of their own, then perhaps fail."""

    def __init__(self, steps, order, fails=False):
        super().__init__()
        for name, step in steps.items():
            self.add_module(name, step)
        self.order, self.fails = order, fails

    def forward(self, x):
        for name in self.order:
            x = self.get_submodule(name)(x)
        if self.fails:
            raise ArithmeticError("this model fails on purpose")
        return x


class _Spoiler(nn.Sequential):
    """Run finite steps, then spoil the result in a line of its own, as a division does."""

    value = float("nan")

    def forward(self, x):
        y = super().forward(x) * 1.0
        y[-1, -1] = self.value
        return y


def _nested(value, *, pair=False, fails=False):
    """Return a model with this fault at a random depth, and the name to be found."""
    order = [*(f"s{n}" for n in np.random.permutation(4) + 1), "s0"]
    broken = order[int(np.random.randint(1, 4))]
    steps = {name: _Step() for name in sorted(order)}
    steps[broken] = nn.Sequential(_Step(value, pair), _Step())
    return _Steps(steps, order, fails), f"{broken}.0"


def test_first_nonfinite(answer, call):
    for value in (float("nan"), float("inf"), -float("inf"), None):
        for pair in (False, True):
            model, where = _nested(value, pair=pair)
            got = _run_first(answer, call, model)
            _look_at_first(got, None if value is None else where, value, model)
            _refuse_left(model, "after the call")
            _refuse_replaced(model)
    _look_at_containers(answer, call)
    model, _ = _nested(None, fails=True)
    with contextlib.suppress(ArithmeticError):
        call(answer, model, torch.rand(3, 4))
    _refuse_left(model, "after its forward pass raised")


def _look_at_containers(answer, call):
    steps = {"s0": _Step(), "s1": _Spoiler(_Step(), _Step()), "s2": _Step()}
    got = _run_first(answer, call, _Steps(steps, list(steps)))
    if got != "s1":
        raise Wrong(
            "'s1' returns nan by a line of its own, after two finite modules inside it, and you "
            f"say {got!r}. A module with children computes, too: hook every one."
        )


def _run_first(answer, call, model):
    try:
        return call(answer, model, torch.rand(3, 4))
    except (AttributeError, TypeError) as error:
        if "tuple" not in str(error):
            raise
        raise Wrong(
            "One module returns a tuple of tensors, as an LSTM does. Look at every tensor in it."
        ) from None


def _look_at_first(got, expected, value, model):
    if got == expected:
        return
    names = dict(model.named_modules())
    if expected is None:
        raise Wrong(f"Every output is finite: return None, got {got!r}.")
    if got is None:
        raise Wrong(
            f"{expected} returns {value}, in the last element of its last tensor, and you found "
            "nothing. Ask torch.isfinite: it knows NaN and both infinities."
        )
    if not isinstance(got, str) or got not in names:
        raise Wrong(f"Return a name from model.named_modules() or None, got {_kind(got)}.")
    if got == expected[:-1] + "1":
        raise Wrong(
            f"You name {got!r}; {expected!r} before it was the first to return {value}, in the "
            "last tensor of a tuple. Look at every tensor of an output."
        )
    if expected.startswith(got):
        raise Wrong(
            f"You name {got!r}, and {expected!r} inside it was first. Hook every module of "
            "named_modules(), and keep the first that reports."
        )
    raise Wrong(
        f"You name {got!r}; {expected!r} was the first to return {value}. The order in which "
        "modules run counts, not the order of names; and a hook made in a loop needs the name "
        "bound to it."
    )


def _refuse_replaced(model):
    steps = [step for step in model.modules() if isinstance(step, _Step)]
    made = {id(step.made) for step in steps}
    if sum(id(step.given) not in made for step in steps) != 1:
        raise Wrong(
            "A module was given something else than the module before it returned, or did not "
            "run. A forward hook must return None: what it returns takes the output's place."
        )


# --- 52.3 -------------------------------------------------------------------------------


class _Units(nn.Module):
    """Hold ReLUs of which known units are dead; what follows writes over their results."""

    def __init__(self, dead):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Dropout(0.5, inplace=True))
        self.tail = nn.ModuleList([nn.Linear(7, 6), nn.ReLU()])
        with torch.no_grad():
            for layer, count in zip((self.body[0], self.tail[0]), dead, strict=True):
                layer.weight.normal_()
                layer.bias.zero_()
                order = torch.randperm(len(layer.bias))
                layer.bias[order[:count]] = -1e3
                layer.bias[order[count]] = 1e3  # a unit that is never zero

    def forward(self, x):
        h = self.body(x)
        return self.tail[1](self.tail[0](h)).mul_(0)


def _zeros(model, x):
    """Return what is to be found, computed by hand, in evaluation mode."""
    h = model.body[0](x).clamp(min=0)
    return [h, model.tail[0](h).clamp(min=0)]


def test_dead_units(answer, call):
    for _ in range(3):
        dead = [int(n) for n in np.random.randint(1, 5, 2)]
        model, x = _Units(dead), torch.randn(40, 5)
        model.eval()
        with torch.no_grad():
            found = _zeros(model, x)
        expected = {
            name: int((h == 0).all(0).sum())
            for name, h in zip(("body.1", "tail.1"), found, strict=True)
        }
        got = call(answer, model, x)
        _look_at_dead(got, expected, found)
        _refuse_left(model, "after the call")


def _look_at_dead(got, expected, found):
    if not isinstance(got, dict):
        raise Wrong(f"Return a dict from names to counts, got {_kind(got)}.")
    if set(got) != set(expected):
        raise Wrong(
            f"The names must be those of the two nn.ReLU in named_modules(), {sorted(expected)}; "
            f"got {sorted(map(str, got))}. One lies inside a Sequential, one inside a ModuleList."
        )
    for (name, count), h in zip(expected.items(), found, strict=True):
        if isinstance(got[name], torch.Tensor) or got[name] != count:
            raise Wrong(f"{name} has {count} dead units of {h.shape[1]}. {_why(got[name], h)}")


def _why(value, h):
    if isinstance(value, torch.Tensor):
        return "You return a tensor; a count is an int."
    if value == h.shape[1]:
        return (
            "You say all of them. The result was written over, in place, after the hook: count "
            "inside the hook, or clone what you keep."
        )
    if value == int((h == 0).sum()):
        return f"You count {value} zeros. A unit that is zero for one sample only is alive."
    if value == int((h == 0).any(0).sum()):
        return f"You count {value} units that are zero for some sample; dead is zero for all."
    if value == int((h == 0).all(1).sum()):
        return "You count samples: reduce over dim 0, the samples, and what is left are units."
    return f"You say {value}. Count the columns of its output that are zero for all samples."


# --- 52.4 -------------------------------------------------------------------------------


class _Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.outer = nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True))
        self.last = nn.Linear(5, 2)
        self.frozen = nn.Parameter(torch.ones(2), requires_grad=False)

    def forward(self, x):
        return self.last(self.outer(x)) * self.frozen


def _loss(model):
    return model(torch.randn(6, 4)).pow(2).sum()


def _hooks_of_tensors(model):
    return sum(
        len(getattr(p, kind) or {})
        for p in model.parameters()
        for kind in ("_backward_hooks", "_post_accumulate_grad_hooks")
        if getattr(p, kind, None) is not None
    )


def test_log_gradients(answer, call):
    model, log = _Two(), {}
    truth = {name: [] for name, p in model.named_parameters() if p.requires_grad}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _use(call(answer, model, log, may_change=("log", 1)), model, truth)
    _look_at_log(log, truth)
    if _hooks(model) + _hooks_of_tensors(model):
        raise Wrong(
            "The block ended, by an error inside it, and hooks are still on. Whoever runs the "
            "cell again logs twice: remove every handle in finally."
        )


def _use(context, model, truth):
    if not hasattr(context, "__enter__"):
        raise Wrong(
            f"log_gradients(model, log) returns {_kind(context)}, and `with` needs a context "
            "manager: keep @contextmanager and one yield."
        )
    try:
        with contextlib.suppress(ArithmeticError), context:
            _passes(model, truth)
            raise ArithmeticError("the block fails on purpose")
    except RuntimeError as error:
        if "modified inplace" in str(error):
            raise Wrong(
                "A full backward hook on the module made the ReLU(inplace=True) after it raise. "
                "You want gradients of parameters: hook the parameters."
            ) from None
        if "requires_grad" in str(error) or "require gradient" in str(error):
            raise Wrong(
                "A frozen parameter gets no gradient, and takes no hook. Skip those whose "
                "requires_grad is False."
            ) from None
        raise


def _passes(model, truth):
    """Run two backward passes that add up, then one from zero."""
    for forget in (False, False, True):
        if forget:
            model.zero_grad()
        _loss(model).backward()
        for name, values in truth.items():
            values.append(model.get_parameter(name).grad.norm().item())


def _look_at_log(log, truth):
    if not log:
        raise Wrong(
            "log is empty after three backward passes inside the block. Put the hooks on before "
            "`yield`: what stands behind it runs when the block is over."
        )
    if set(log) != set(truth):
        raise Wrong(
            f"log must have one name for each parameter that trains, as named_parameters() spells "
            f"it: {sorted(truth)}; got {sorted(map(str, log))}. A hook made in a loop needs the "
            "name bound to it."
        )
    for name, expected in truth.items():
        got = log[name]
        if not isinstance(got, list) or not all(isinstance(value, float) for value in got):
            raise Wrong(f"log[{name!r}] must be a list of floats; .item() makes one of a norm.")
        if len(got) != len(expected):
            raise Wrong(f"Three backward passes left {len(got)} entries in log[{name!r}].")
        if not np.allclose(got, expected, rtol=1e-4):
            raise Wrong(
                f"The second entry of log[{name!r}] is {got[1]:.4g}, the norm of .grad was "
                f"{expected[1]:.4g}: two passes had added up. register_hook sees one pass, "
                "register_post_accumulate_grad_hook sees .grad."
            )


_IMPORT = "from contextlib import contextmanager\n\n\n"
_INDEPENDENT = "def samples_independent(model, x):\n"
_ALONE = (
    "        with torch.no_grad():\n"
    "            alone = torch.cat([model(row[None]) for row in x])\n"
    "            return torch.allclose(alone, model(x), atol=1e-5)\n"
)
_KEEP = "    modes = {module: module.training for module in model.modules()}\n    model.eval()\n"
_RESTORE = (
    "    finally:\n        for module, mode in modes.items():\n            module.training = mode\n"
)
_CHANGED = (
    "        with torch.no_grad():\n            other = x.clone()\n            other[0] += 1\n"
)

_FIRST = "def first_nonfinite(model, x):\n    found, handles = [], []\n\n"
_LOOK = (
    "    def look(name, output):\n"
    "        tensors = output if isinstance(output, tuple) else (output,)\n"
    "        if not all(torch.isfinite(t).all() for t in tensors):\n"
    "            found.append(name)\n\n"
)
_HOOK = (
    "    for name, module in model.named_modules():\n"
    "        handles.append(module.register_forward_hook(\n"
    "            lambda module, args, output, name=name: look(name, output)))\n"
)
_RUN = (
    "    try:\n        model(x)\n    finally:\n"
    "        for handle in handles:\n            handle.remove()\n"
    "    return found[0] if found else None\n"
)

_DEAD = "def dead_units(model, x):\n    counts, handles = {}, []\n\n"
_COUNT = "    def count(name, output):\n        counts[name] = int((output == 0).all(0).sum())\n\n"
_RELUS = (
    "    for name, module in model.named_modules():\n"
    "        if isinstance(module, torch.nn.ReLU):\n"
    "            handles.append(module.register_forward_hook(\n"
    "                lambda module, args, output, name=name: count(name, output)))\n"
)
_RUN_DEAD = (
    "    try:\n        model(x)\n    finally:\n"
    "        for handle in handles:\n            handle.remove()\n    return counts\n"
)

_LOG = "@contextmanager\ndef log_gradients(model, log):\n    handles = []\n"
_NORM = (
    "    for name, p in model.named_parameters():\n        if p.requires_grad:\n"
    "            handles.append(p.register_post_accumulate_grad_hook(\n"
    "                lambda p, name=name: log.setdefault(name, []).append(p.grad.norm().item())))\n"
)
_YIELD = (
    "    try:\n        yield\n    finally:\n"
    "        for handle in handles:\n            handle.remove()\n"
)
_TUTORIAL = (
    "    for module in model.{which}():\n"
    "        module.register_full_backward_hook(\n"
    "            lambda module, grad_input, grad_output: log.setdefault(\n"
    "                type(module).__name__, []\n"
    "            ).append(grad_output[0].norm())\n"
    "        )\n"
    "    yield\n"
)

EXERCISES = {
    "52.1": Exercise(
        title="Test that samples do not see each other",
        minutes=8,
        task="Return True if in evaluation mode the output for each sample depends on this sample "
        "alone, else False. `x` holds several samples along dim 0 and stays as it is, and so does "
        "the mode of every module. A difference of 1e-5 is rounding.",
        stub="def samples_independent(model, x):\n"
        '    """Say whether each output depends on its own sample only."""\n    ...\n',
        answer="samples_independent",
        test=test_samples_independent,
        hints=(
            "A sample that sees no other one has the same output in any company.",
            "Changing sample 0 alone misses a last sample that leaks into the first. A batch of "
            "one has no company at all.",
            "alone = torch.cat([model(row[None]) for row in x])",
        ),
        solution=_INDEPENDENT + _KEEP + "    try:\n" + _ALONE + _RESTORE,
        wrong=(
            WrongAnswer(
                "sample 0 only",
                _INDEPENDENT
                + _KEEP
                + "    try:\n"
                + _CHANGED
                + "            return torch.allclose(model(other)[1:], model(x)[1:], atol=1e-5)\n"
                + _RESTORE,
                "adds the last sample to the first",
            ),
            WrongAnswer(
                "the first alone",
                _INDEPENDENT
                + _KEEP
                + "    try:\n"
                + _ALONE.replace("in x]", "in x[:1]]").replace(
                    "alone, model(x)", "alone, model(x)[:1]"
                )
                + _RESTORE,
                "adds the second sample to the third",
            ),
            WrongAnswer(
                "the last changed",
                _INDEPENDENT
                + _KEEP
                + "    try:\n"
                + _CHANGED.replace("other[0]", "other[-1]")
                + "            return torch.allclose(model(other)[:-1], model(x)[:-1], atol=1e-5)\n"
                + _RESTORE,
                "adds the second sample to the third",
            ),
            WrongAnswer(
                "own change counted",
                _INDEPENDENT
                + _KEEP
                + "    try:\n"
                + _CHANGED
                + "            return torch.allclose(model(other), model(x), atol=1e-5)\n"
                + _RESTORE,
                "own output may change with it",
            ),
            WrongAnswer(
                "samples permuted",
                _INDEPENDENT
                + _KEEP
                + "    try:\n        with torch.no_grad():\n"
                + "            order = [0, *range(len(x) - 2, 0, -1), len(x) - 1]\n"
                + "            return torch.allclose(model(x[order]), model(x)[order], atol=1e-5)\n"
                + _RESTORE,
                "adds the last sample to the first",
            ),
            WrongAnswer(
                "no eval", _INDEPENDENT + "    if True:\n" + _ALONE, "Call model.eval() first"
            ),
            WrongAnswer(
                "mode left",
                _INDEPENDENT + "    model.eval()\n    if True:\n" + _ALONE,
                "the mode of every module",
            ),
            WrongAnswer(
                "one flag for all",
                _INDEPENDENT
                + "    was = model.training\n    model.eval()\n    try:\n"
                + _ALONE
                + "    finally:\n        model.train(was)\n",
                "the mode of every module",
            ),
            WrongAnswer(
                "input edited",
                _INDEPENDENT
                + _KEEP
                + "    try:\n        with torch.no_grad():\n            z = model(x)\n"
                + "            x[0] += 1\n"
                + "            return torch.allclose(model(x)[1:], z[1:], atol=1e-5)\n"
                + _RESTORE,
                "changed its input",
            ),
            WrongAnswer(
                "difference returned",
                _INDEPENDENT + "    return model(x) - model(x)\n",
                "Return True or False",
            ),
        ),
    ),
    "52.2": Exercise(
        title="Find the first module that breaks",
        minutes=9,
        task="Return the name, as in `model.named_modules()`, of the first module whose call "
        "returns a NaN or an infinity, or None. An output is a tensor or a tuple of tensors. No "
        "hook stays, also when the model raises, and no output changes.",
        stub="def first_nonfinite(model, x):\n"
        '    """Return the name of the first module that returns NaN or inf."""\n    ...\n',
        answer="first_nonfinite",
        test=test_first_nonfinite,
        hints=(
            "A forward hook gets the output. Collect names in a list: the first entry is the one.",
            "In `for name, module in ...: module.register_forward_hook(lambda m, a, out: f(name))` "
            "every hook says the last name.",
            "for name, module in model.named_modules(): handles.append(...), with name=name as "
            "the last argument of the lambda",
        ),
        solution=_FIRST + _LOOK + _HOOK + _RUN,
        wrong=(
            WrongAnswer(
                "isnan only",
                _FIRST
                + _LOOK.replace("not all(torch.isfinite(t).all()", "any(t.isnan().any()")
                + _HOOK
                + _RUN,
                "Ask torch.isfinite",
            ),
            WrongAnswer(
                "first element only",
                _FIRST
                + _LOOK.replace(
                    "if isinstance(output, tuple) else (output,)",
                    "[:1] if isinstance(output, tuple) else (output,)",
                )
                + _HOOK
                + _RUN,
                "every tensor of an output",
            ),
            WrongAnswer(
                "no tuples",
                _FIRST + "    def look(name, output):\n"
                "        if not torch.isfinite(output).all():\n"
                "            found.append(name)\n\n" + _HOOK + _RUN,
                "returns a tuple of tensors",
            ),
            WrongAnswer(
                "children only",
                _FIRST
                + _LOOK
                + _HOOK.replace("model.named_modules()", "model.named_children()")
                + _RUN,
                "inside it was first",
            ),
            WrongAnswer(
                "leaves only",
                _FIRST
                + _LOOK
                + _HOOK.replace(
                    "        handles",
                    "        if [*module.children()]:\n            continue\n        handles",
                )
                + _RUN,
                "A module with children computes, too",
            ),
            WrongAnswer(
                "last one",
                _FIRST + _LOOK + _HOOK + _RUN.replace("found[0]", "found[-1]"),
                "inside it was first",
            ),
            WrongAnswer(
                "name not bound",
                _FIRST + _LOOK + _HOOK.replace(", name=name", "") + _RUN,
                "needs the name bound",
            ),
            WrongAnswer(
                "order of names",
                _FIRST
                + _LOOK
                + _HOOK
                + _RUN.replace(
                    "found[0]", "[n for n, _ in model.named_modules() if n in found][1]"
                ),
                "not the order of names",
            ),
            WrongAnswer(
                "handles kept",
                _FIRST + _LOOK + _HOOK + "    model(x)\n    return found[0] if found else None\n",
                "are still on the model after the call",
            ),
            WrongAnswer(
                "no finally",
                _FIRST
                + _LOOK
                + _HOOK
                + "    model(x)\n    for handle in handles:\n        handle.remove()\n"
                "    return found[0] if found else None\n",
                "after its forward pass raised",
            ),
            WrongAnswer(
                "output replaced",
                _FIRST
                + _LOOK
                + _HOOK.replace("look(name, output)", "copy_of(look(name, output), output)")
                + "\n    def copy_of(_, output):\n"
                "        return output if isinstance(output, tuple) else output.clone()\n\n" + _RUN,
                "must return None",
            ),
            WrongAnswer(
                "always a name",
                _FIRST + _LOOK + _HOOK + _RUN.replace("else None", "else 'none'"),
                "return None, got",
            ),
            WrongAnswer(
                "module returned",
                _FIRST
                + _LOOK
                + _HOOK
                + _RUN.replace("found[0] if", "model.get_submodule(found[0]) if"),
                "Return a name",
            ),
        ),
    ),
    "52.3": Exercise(
        title="Count dead units",
        minutes=7,
        task="A unit of a ReLU is dead for a batch if its output is 0 for every sample of `x`. "
        "Return a dict: for each `nn.ReLU` in `model`, its name as in `named_modules()` and its "
        "number of dead units, an int. No hook stays.",
        stub="def dead_units(model, x):\n"
        '    """Return for each ReLU how many of its units are dead."""\n    ...\n',
        answer="dead_units",
        test=test_dead_units,
        hints=(
            "An output has the shape (sample, unit). A unit is a column.",
            "[[0, 1], [0, 0]] has three zeros and one dead unit, the first.",
            "counts[name] = int((output == 0).all(0).sum()), inside the hook",
        ),
        solution=_DEAD + _COUNT + _RELUS + _RUN_DEAD,
        wrong=(
            WrongAnswer(
                "zeros",
                _DEAD + _COUNT.replace(".all(0)", "") + _RELUS + _RUN_DEAD,
                "zero for one sample only is alive",
            ),
            WrongAnswer(
                "any sample",
                _DEAD + _COUNT.replace(".all(0)", ".any(0)") + _RELUS + _RUN_DEAD,
                "dead is zero for all",
            ),
            WrongAnswer(
                "samples",
                _DEAD
                + _COUNT.replace(".all(0)", ".all(1)").replace("== 0", "<= 0")
                + _RELUS
                + _RUN_DEAD,
                "You count samples",
            ),
            WrongAnswer(
                "looked at later",
                _DEAD
                + "    def count(name, output):\n        counts[name] = output\n\n"
                + _RELUS
                + _RUN_DEAD.replace(
                    "return counts",
                    "return {n: int((h == 0).all(0).sum()) for n, h in counts.items()}",
                ),
                "written over",
            ),
            WrongAnswer(
                "share",
                _DEAD
                + _COUNT.replace("int(", "float(").replace(".sum()", ".float().mean()")
                + _RELUS
                + _RUN_DEAD,
                "Count the columns",
            ),
            WrongAnswer(
                "tensor",
                _DEAD
                + _COUNT.replace("int((output == 0).all(0).sum())", "(output == 0).all(0).sum()")
                + _RELUS
                + _RUN_DEAD,
                "a count is an int",
            ),
            WrongAnswer(
                "top level only",
                _DEAD + _COUNT + _RELUS.replace("named_modules", "named_children") + _RUN_DEAD,
                "The names must be",
            ),
            WrongAnswer(
                "handles kept",
                _DEAD + _COUNT + _RELUS + "    model(x)\n    return counts\n",
                "are still on the model after the call",
            ),
            WrongAnswer(
                "list",
                _DEAD + _COUNT + _RELUS + _RUN_DEAD.replace("counts\n", "list(counts)\n"),
                "Return a dict",
            ),
        ),
    ),
    "52.4": Exercise(
        title="Repair a gradient log",
        minutes=10,
        task="Inside `with log_gradients(model, log):` each backward pass appends, for each "
        "parameter that trains, the norm of its `.grad` as it is after the pass: a float, in the "
        "list `log[name]`. No hook stays after the block, however it ends. Repair it.",
        stub=_IMPORT
        + "@contextmanager\ndef log_gradients(model, log):\n"
        + _TUTORIAL.format(which="children"),
        answer="log_gradients",
        test=test_log_gradients,
        hints=(
            "Three faults: whose gradient it is, which name the hook says, and who removes it.",
            "Two backward passes without zero_grad: .grad holds the sum. Which hook runs after "
            "the adding?",
            "p.register_post_accumulate_grad_hook(lambda p, name=name: ...)",
        ),
        solution=_IMPORT + _LOG + _NORM + _YIELD,
        wrong=(
            WrongAnswer(
                "modules hooked",
                _IMPORT
                + "@contextmanager\ndef log_gradients(model, log):\n"
                + _TUTORIAL.format(which="modules"),
                "hook the parameters",
            ),
            WrongAnswer(
                "after the block",
                _IMPORT + "@contextmanager\ndef log_gradients(model, log):\n    yield\n"
                "    for name, p in model.named_parameters():\n"
                "        log.setdefault(name, []).append(p.grad.norm().item())\n",
                "Put the hooks on before",
            ),
            WrongAnswer(
                "before the adding",
                _IMPORT
                + _LOG
                + _NORM.replace("p.register_post_accumulate_grad_hook", "p.register_hook")
                .replace("lambda p,", "lambda grad,")
                .replace("p.grad.norm().item()", "grad.norm().item()")
                + _YIELD,
                "register_hook sees one pass",
            ),
            WrongAnswer(
                "name not bound",
                _IMPORT + _LOG + _NORM.replace(", name=name", "") + _YIELD,
                "needs the name bound",
            ),
            WrongAnswer(
                "no finally",
                _IMPORT
                + _LOG
                + _NORM
                + "    yield\n    for handle in handles:\n        handle.remove()\n",
                "by an error inside it",
            ),
            WrongAnswer(
                "registered twice",
                _IMPORT + _LOG + _NORM + _NORM + _YIELD,
                "Three backward passes left 6",
            ),
            WrongAnswer(
                "tensors kept",
                _IMPORT + _LOG + _NORM.replace(".norm().item()", ".norm()") + _YIELD,
                "must be a list of floats",
            ),
            WrongAnswer(
                "frozen ones too",
                _IMPORT + _LOG + _NORM.replace("if p.requires_grad", "if True") + _YIELD,
                "takes no hook",
            ),
            WrongAnswer(
                "no context manager",
                "def log_gradients(model, log):\n    handles = []\n"
                + _NORM
                + "    return handles\n",
                "keep @contextmanager",
            ),
        ),
    ),
}
