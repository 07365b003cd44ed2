"""Ask and check what 14_follow_gradients_with_autograd teaches."""

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "14.p1": Choice(
        question="x = [2.], and one cell runs three times: y = x**2; y.backward(). What is x.grad "
        "after each run?",
        options={
            "4, 4, 4": "You took backward for an assignment. It adds to what is there, which is "
            "why training loops clear the gradient.",
            "4, 8, 12": "Right: each run records a new graph, and each backward adds 4.",
            "4, then an error": "That is what a second backward on the same y gives. Here each "
            "run computes a new y, with a graph of its own.",
        },
    ),
    "14.p2": Number(
        question="A million derivatives by one forward and one backward pass: as much arithmetic "
        "as how many forward passes?",
        unit="forward passes",
        notes=(
            (0, 1.6, "Forward alone is 1. Backward multiplies matrices in every layer too."),
            (
                1.6,
                2.4,
                "Backward has two products in each layer, one for the weights and one for "
                "the input of the layer. You counted one.",
            ),
            (
                2.4,
                2.99,
                "Close: two products backward for each one forward, except in the first "
                "layer, whose input needs no gradient.",
            ),
            (
                2.99,
                4,
                "That would be all layers with two products backward. The first layer needs "
                "one: nobody asks for the gradient of the data.",
            ),
            (4, 1000, "Less: two products backward for each one forward, whatever their number."),
            (
                1000,
                1e12,
                "That is one nudge for each weight. Backward gets all of them from one "
                "walk through the graph.",
            ),
        ),
    ),
    "14.p3": Choice(
        question="One factor is missing in a backward pass written by hand. What does the loss of "
        "the network do in 200 steps?",
        options={
            "it rises": "Only a direction more than 90° from the gradient climbs at first. This "
            "one is wrong and still points downhill.",
            "it stalls": "A wrong length or a wrong angle slows descent; it does not have to stop "
            "it.",
            "it falls as low": "Right, and that is the trouble: the curve cannot see the fault.",
        },
    ),
    "14.p4": Choice(
        question="y = op(x); y += 1; y.sum().backward(). For which op does it raise, exp or sin?",
        options={
            "both": "Autograd does not forbid writing. It refuses where it would have to read "
            "what was overwritten, and sin saved x, not y.",
            "only exp": "Right: exp saved its result, which is what += overwrote. sin saved its "
            "input.",
            "only sin": "The other way round: the derivative of exp is its result, so exp saved y. "
            "sin saved x.",
            "neither": "exp saved y itself, not a copy, and noticed that it had changed.",
        },
    ),
    "14.p5": Choice(
        question="w = [1.], loss = (w*w*w).sum(). Before backward, w.data.mul_(10). What is the "
        "gradient?",
        options={
            "3": "3 is the gradient of the loss that was computed. Backward found another w.",
            "300": "300 is the gradient at the new w. Backward has the new w too, and still the "
            "product w*w of the old one.",
            "201": "Right: 1 from the product that was saved, 200 from the new w. It is the "
            "gradient at no w that there was, and no word about it.",
            "an error": "Three other ways to write raise. .data hands out a tensor with a version "
            "counter of its own, so nobody notices.",
        },
    ),
    "14.p6": Choice(
        question="Which line leaves layer 1 unchanged and the accuracy nearly intact?",
        options={
            "h = h.detach()": "Right: one missing edge. Layer 2 learns, on features that nobody "
            "trains.",
            "no zero_grad": "Then gradients exist and are sums: layer 1 would change, and too "
            "much.",
            "learning rate / 10": "A learning rate is the same for all layers, so no single layer "
            "would stand still.",
            "all ReLUs closed": "Layer 1 would stand still, and layer 2 would see zeros only: the "
            "accuracy would fall to chance.",
        },
    ),
}


# --- 14.1 -------------------------------------------------------------------------------

_NAMES = ("dw1", "db1", "dw2", "db2")


def _layers(samples, inputs, hidden, outputs):
    """Return x, y, w1, b1, w2, b2 of a random regression, float64."""
    shapes = ((samples, inputs), (samples, outputs), (inputs, hidden), (hidden,))
    shapes += ((hidden, outputs), (outputs,))
    return [np.random.standard_normal(shape) for shape in shapes]


def _by_autograd(x, y, *parameters):
    x, y = torch.tensor(x), torch.tensor(y)
    w1, b1, w2, b2 = leaves = [torch.tensor(p, requires_grad=True) for p in parameters]
    loss = (((x @ w1 + b1).relu() @ w2 + b2 - y) ** 2).sum() / len(x)
    return [g.numpy() for g in torch.autograd.grad(loss, leaves)]


class _Watch(TorchDispatchMode):
    """Notice whether torch computed anything."""

    noticed = False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.noticed = True
        return operation(*args, **(kwargs or {}))


def test_backward(answer, call):
    widths_of_one = ((4, 3, 1, 3), (5, 1, 4, 1))
    for sizes in ((4, 5, 6, 3), (7, 5, 4, 2), (1, 3, 8, 2), *widths_of_one):
        arrays = _layers(*sizes)
        with _Watch() as torch_seen:
            got = call(answer, *arrays)
        if torch_seen.noticed:
            raise Wrong(
                "torch computed here, so the derivatives are its own. Write them by hand this "
                "time: NumPy alone, no tensor."
            )
        if not isinstance(got, tuple | list) or len(got) != 4:
            kind = f"{len(got)} things" if isinstance(got, tuple | list) else type(got).__name__
            raise Wrong(f"Return four arrays, (dw1, db1, dw2, db2), got {kind}.")
        for name, value in zip(_NAMES, got, strict=True):
            if not isinstance(value, np.ndarray | np.floating):
                raise Wrong(f"{name} must be a NumPy array, got {type(value).__name__}.")
        right = _by_autograd(*arrays)
        _look_at_order([np.shape(value) for value in got], [value.shape for value in right])
        for name, value, expected in zip(_NAMES, got, right, strict=True):
            if np.shape(value) != expected.shape:
                raise Wrong(_why_shape(name, np.shape(value), expected.shape, sizes[0]))
            if not np.allclose(value, expected, rtol=1e-6, atol=1e-9):
                raise Wrong(_why_gradient(name, value, expected, arrays))


def _look_at_order(shapes, expected):
    if shapes != expected and sorted(shapes) == sorted(expected):
        kinds = dict(zip(expected, _NAMES, strict=True))
        order = ", ".join(kinds[shape] for shape in shapes)
        raise Wrong(
            f"By their shapes, what came is ({order}): return the gradients in the order "
            f"({', '.join(_NAMES)})."
        )


def _why_shape(name, got, expected, samples):
    if got == ():
        return (
            f"{name} is one number and must have shape {expected}: each element has a gradient of "
            "its own. A sum for a bias runs over the samples alone, which is dimension 0."
        )
    if len(got) < len(expected) and got == tuple(n for n in expected if n != 1):
        return (
            f"{name} has shape {got} and must have {expected}: a width of 1 is a dimension too. "
            "squeeze() removes it."
        )
    if got == (samples, *expected):
        return (
            f"{name} has shape {got} and must have {expected}. One bias, {samples} users: its "
            "gradient is the sum over the samples."
        )
    if got == (1, *expected):
        return f"{name} has shape {got} and must have {expected}: sum without keepdims."
    return (
        f"{name} has shape {got} and must have {expected}: a gradient has the shape of what it "
        "belongs to. Look at which of the two factors needs .T."
    )


def _why_gradient(name, got, expected, arrays):
    x, y, w1, b1, w2, b2 = arrays
    samples, outputs = y.shape
    factors = {
        samples: f"{name} is {samples} times too large: the loss divides by the samples, so the "
        "gradient does too.",
        -1: f"{name} has the wrong sign: going against it, this climbs.",
        1 / samples: f"{name} is {samples} times too small: the samples are added up, and the loss "
        "has divided by their number already.",
        0.5: f"{name} is half of what it must be: the derivative of error**2 is 2 * error.",
        1 / outputs: f"{name} is {outputs} times too small: the loss divides by the number of "
        "samples, not by the number of entries.",
    }
    for factor, sentence in factors.items():
        if factor != 1 and np.allclose(got, factor * expected, rtol=1e-6, atol=1e-9):
            return sentence
    error = 2 * ((np.maximum(x @ w1 + b1, 0)) @ w2 + b2 - y) / samples
    passed = error @ w2.T
    if any(np.allclose(got, g) for g in (x.T @ passed, passed.sum(0)) if g.shape == got.shape):
        return (
            f"{name} ignores the ReLU: closed units pass nothing back. Where x @ w1 + b1 is below "
            "0, what comes back is multiplied by 0."
        )
    return (
        f"{name} starts with {got.flat[0]:.4f}, autograd says {expected.flat[0]:.4f}. Take the "
        "forward pass line by line from below, and write one line for each."
    )


# --- 14.2 -------------------------------------------------------------------------------


def test_step(answer, call):
    for shape, lr in (((3,), 0.1), ((2, 2), 0.3)):
        target = torch.rand(shape)
        w = torch.rand(shape).add_(2).requires_grad_()
        truth, total = w.detach().clone(), torch.zeros(shape)
        for number in (1, 2, 3):
            before, version = w.detach().clone(), w._version
            _run_step(answer, call, w, target, lr)
            total += 2 * (before - target)
            truth -= lr * 2 * (truth - target)
            _look_at_step(w, before, truth, before - lr * total, number)
            if w._version == version:
                raise Wrong(_why_unnoticed(answer))


def _why_unnoticed(answer):
    names = _names_in(answer)
    how = "Write to w itself, with torch, and switch the record off for that line."
    if "data" in names:
        how = "Write without .data."
    elif names & {"numpy", "np", "asarray"}:
        how = "NumPy writes into the storage and tells torch nothing: write with torch."
    return (
        "The values are right and w._version has not moved: the counter slept. A graph that saved "
        f"w would use the new values without a word. {how}"
    )


def _names_in(answer):
    """Return the global names and attributes that a function's code mentions."""
    return set(getattr(getattr(answer, "__code__", None), "co_names", ()))


def _run_step(answer, call, w, target, lr):
    def loss_fn(w):
        return ((w - target) ** 2).sum()

    try:
        call(answer, w, loss_fn, lr, may_change=(0,))
    except RuntimeError as error:
        if "leaf" in str(error):
            raise Wrong(
                "w is a leaf: autograd refuses to record a write into it. Switch the record off "
                "first, for this line only."
            ) from None
        if "does not require grad" in str(error):
            raise Wrong(
                "Nothing was recorded, so backward finds no graph. Only the update belongs under "
                "no_grad, not the loss."
            ) from None
        raise
    except (AttributeError, TypeError) as error:
        if "NoneType" not in str(error):
            raise
        raise Wrong(
            "w.grad is None before the first backward, and after it was cleared. Use it, and clear "
            "it afterwards."
        ) from None


def _look_at_step(w, before, truth, summed, number):
    if not w.requires_grad or not w.is_leaf:
        raise Wrong(
            "After the step w must still be a leaf that requires grad: the next step waits."
        )
    now = w.detach()
    if torch.equal(now, before):
        raise Wrong(
            "The caller's w never moves. `w = ...` makes a new tensor and gives it the name w "
            "inside the function; the tensor that was handed in stays as it is. Write into it."
        )
    if torch.allclose(now, truth, rtol=1e-4, atol=1e-5):
        return
    if number > 1 and torch.allclose(now, summed, rtol=1e-4, atol=1e-5):
        raise Wrong(
            f"Step {number} is a sum: w moved by all {number} gradients so far. backward adds; "
            "clear w.grad in each step."
        )
    climbs = torch.allclose(now - before, before - truth, rtol=1e-3, atol=1e-4)
    raise Wrong(
        f"Step {number} took the first element from {before.flatten()[0]:.4f} to "
        f"{now.flatten()[0]:.4f}; w - lr * gradient is {truth.flatten()[0]:.4f}."
        + (" The sign is wrong: this climbs." if climbs else "")
    )


# --- 14.3 -------------------------------------------------------------------------------

# Why a name does not belong in the list, by what was done with its layer.
_HEALTHY = {
    "partly closed": "some of its elements are 0, and not all: one closed unit is enough. "
    "`not g.all()` is true as soon as one is 0; untrained is `not g.any()`.",
    "opposed": "its elements add up to 0, as they do in front of a softmax, and each of them "
    "trains. Look at the elements, not at their sum.",
    "faint": "its elements are near 1e-8: small, and not 0. Adam divides by their size and steps. "
    "Compare with 0, without a threshold.",
    "trained": "it is not zero.",
}
_UNTRAINED = ("detached", "unused", "closed")
_KINDS = (*_HEALTHY, *_UNTRAINED, "frozen")


class _Patchwork(torch.nn.Module):
    """Add up layers of which some are cut off, left out, closed or frozen."""

    def __init__(self, kinds):
        super().__init__()
        self.kinds = kinds
        self.layers = torch.nn.ModuleList(torch.nn.Linear(4, 3) for _ in kinds)
        for layer, kind in zip(self.layers, kinds, strict=True):
            layer.requires_grad_(kind != "frozen")
            if kind == "closed":
                torch.nn.init.constant_(layer.bias, -100.0)
            if kind == "partly closed":
                torch.nn.init.constant_(layer.weight, 0.5)
                torch.nn.init.constant_(layer.bias, 1.0)
                torch.nn.init.constant_(layer.bias[:1], -100.0)

    def forward(self, x):
        total = x.new_zeros(len(x), 3)
        for layer, kind in zip(self.layers, self.kinds, strict=True):
            if kind != "unused":
                total = total + _USES.get(kind, torch.clone)(layer(x))
        return total


_USES = {
    "closed": torch.relu,
    "partly closed": torch.relu,
    "detached": torch.detach,
    "opposed": lambda h: h[:, :1] - h[:, 1:2],
    "faint": lambda h: 1e-8 * h,
}


def _kind_of(name, model):
    return model.kinds[int(name.split(".")[1])]


def test_untrained(answer, call):
    for _ in range(3):
        kinds = [*_KINDS, *np.random.choice(_KINDS, 2)]
        np.random.shuffle(kinds)
        model = _Patchwork([str(kind) for kind in kinds])
        loss = model(torch.rand(5, 4)).pow(2).mean()
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)  # of the batch before
        got = _run_untrained(answer, call, model, loss)
        _look_at_names(got, model)
        for name, parameter in model.named_parameters():
            if parameter.grad is None or not bool((parameter.grad == 1).all()):
                raise Wrong(
                    f"{name}.grad has changed: looking must not touch. torch.autograd.grad returns "
                    "gradients and leaves .grad as it is."
                )
        try:
            loss.backward()
        except RuntimeError:
            raise Wrong(
                "After your look loss.backward() raises: the graph is freed. retain_graph=True "
                "keeps it."
            ) from None


def _run_untrained(answer, call, model, loss):
    try:
        got = call(answer, model, loss)
    except RuntimeError as error:
        if "appears to not have been used" in str(error):
            raise Wrong(
                "A parameter outside the graph made autograd.grad raise: allow_unused=True gives "
                "None for it."
            ) from None
        if "does not require grad" in str(error):
            raise Wrong(
                "autograd.grad refuses frozen parameters. Leave them out before you ask."
            ) from None
        raise
    if not isinstance(got, list | tuple | set):
        raise Wrong(f"Return a list of names, got {type(got).__name__}.")
    for name in got:
        if not isinstance(name, str):
            raise Wrong(f"Return a list of names, got one with a {type(name).__name__} in it.")
    known = dict(model.named_parameters())
    for name in got:
        if name not in known:
            raise Wrong(f"{name!r} is no name in model.named_parameters().")
    return set(got)


def _look_at_names(got, model):
    of_kind = {_kind_of(name, model): name for name in sorted(got)}
    if "frozen" in of_kind:
        raise Wrong(
            f"{of_kind['frozen']} has requires_grad=False: that was a decision, not a fault. Leave "
            "frozen parameters out."
        )
    for kind, why in _HEALTHY.items():
        if kind in of_kind:
            raise Wrong(f"{of_kind[kind]} does get a gradient from this loss: {why}")
    untrained = {n for n, p in model.named_parameters()} - got
    missing = sorted(name for name in untrained if _kind_of(name, model) in _UNTRAINED)
    if not missing:
        return
    if len(got) == 1:
        raise Wrong(f"One name came, and {missing[0]} is untrained too: report all of them.")
    if all(_kind_of(name, model) == "closed" for name in missing):
        raise Wrong(
            f"{missing[0]} has a gradient, and it is zero everywhere: exact zeros train nothing "
            "either."
        )
    raise Wrong(
        f"{missing[0]} gets no gradient from this loss and is not in your list. What stands in "
        ".grad may be from an earlier batch; ask autograd about this loss."
    )


# --- 14.4 -------------------------------------------------------------------------------


def _point_sets():
    repeated = torch.rand(5, 3)
    repeated[3] = repeated[1]
    return [
        ("five points, two of them equal", repeated),
        ("six points in the plane", torch.rand(6, 2)),
        ("three equal points", torch.rand(1, 2).expand(3, 2).clone()),
        ("one point", torch.rand(1, 3)),
        ("two points 5e-7 apart", torch.tensor([[0.0, 0.0], [3e-7, 4e-7]])),
    ]


def test_pairwise_distance(answer, call):
    for name, points in _point_sets():
        exact = points.double()
        difference = exact[:, None] - exact[None]
        distance = difference.norm(dim=-1)
        points.requires_grad_()
        got = call(answer, points)
        if not isinstance(got, torch.Tensor) or got.shape != distance.shape:
            shape = tuple(got.shape) if isinstance(got, torch.Tensor) else type(got).__name__
            raise Wrong(
                f"For {name} return a tensor of shape {tuple(distance.shape)}, got {shape}."
            )
        _look_at_values(name, got, distance)
        weight = torch.rand_like(got)
        if not got.requires_grad:
            raise Wrong("The result has no graph: the gradient is 0 everywhere, for all pairs.")
        (gradient,) = torch.autograd.grad((got * weight).sum(), points, allow_unused=True)
        pairs = (weight + weight.T).double() / distance.where(distance > 0, torch.inf)
        _look_at_slope(name, gradient, (pairs[..., None] * difference).sum(1), answer)


def _look_at_values(name, got, distance):
    wrong = (got.detach().double() - distance).abs()
    if bool((wrong <= 1e-5).all()):
        return
    i, j = divmod(int(wrong.argmax()), len(distance))
    if distance[i, j] == 0:
        raise Wrong(
            f"{name.capitalize()}: your distance is {got[i, j]:.4g} between equal points. The "
            "square root makes a small number large: 1e-6 under it is 0.001 outside."
        )
    raise Wrong(
        f"{name.capitalize()}: distance [{i}, {j}] is {distance[i, j]:.4f}, yours {got[i, j]:.4f}."
    )


def _look_at_slope(name, gradient, expected, answer):
    if gradient is None or not bool(torch.isfinite(gradient).all()):
        raise Wrong(
            f"{name.capitalize()}: the values are right and the gradient is not finite. "
            f"{_why_nan(answer)}"
        )
    if not torch.allclose(gradient.double(), expected, rtol=1e-3, atol=1e-4):
        zero = " It is 0 where other points pull." if not gradient.any() else ""
        if "apart" in name:
            raise Wrong(
                f"{name.capitalize()}: their distance has a slope of 1, and yours is "
                f"{float(gradient.norm() / expected.norm()):.3f} of it. A bound or an addend under "
                "the root (clamp, eps) takes near points for equal ones."
            )
        raise Wrong(
            f"{name.capitalize()}: the gradient is finite and differs from that of the distance by "
            f"up to {(gradient.double() - expected).abs().max():.3f}.{zero} Equal points add 0, "
            "all other pairs keep their own."
        )


def _why_nan(answer):
    names = _names_in(answer)
    for name, why in (
        ("nan_to_num", "nan_to_num repairs the value, not the 0·inf on the way back."),
        ("where", "where() chooses among values; the branch that was not chosen is differentiated "
         "too, and 0·inf is nan. The root itself must not see the 0."),
    ):  # fmt: skip
        if name in names:
            return why
    return "At equal points the root still meets 0, where its slope is infinite, and 0·inf is nan."


_STEP = 'def step(w, loss_fn, lr):\n    """Move w one step down the gradient of loss_fn(w)."""\n'
_NAMED = (
    "def untrained(model, loss):\n"
    "    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]\n"
)
_GRAD = (
    "    grads = torch.autograd.grad(\n"
    "        loss, [p for _, p in named], allow_unused=True, retain_graph=True\n"
    "    )\n"
)


def _untrained_if(condition):
    """Write out an answer to 14.3 that calls a gradient `g` dead on this condition."""
    return (
        f"{_NAMED}{_GRAD}"
        f"    return [n for (n, _), g in zip(named, grads) if g is None or {condition}]\n"
    )


_SQUARES = (
    "def pairwise_distance(points):\n"
    "    difference = points[:, None] - points[None]  # (n, n, dim)\n"
    "    squares = (difference**2).sum(-1)\n"
)
_BACKWARD = (
    "def backward(x, y, w1, b1, w2, b2):\n"
    "    a = x @ w1 + b1\n"
    "    h = np.maximum(a, 0)\n"
    "    error = h @ w2 + b2 - y  # the loss is (error**2).sum() / len(x)\n"
)


def _backward(out="2 * error / len(x)", mask=" * (a > 0)", db1="da.sum(0)", db2="out.sum(0)"):
    """Write out an answer to 14.1: the right one, with parts changed."""
    return (
        f"{_BACKWARD}    out = {out}\n    da = out @ w2.T{mask}\n"
        f"    return x.T @ da, {db1}, h.T @ out, {db2}\n"
    )


EXERCISES = {
    "14.1": Exercise(
        title="Write a backward pass by hand",
        minutes=8,
        task="Complete `backward` in NumPy: the gradients of the loss in its docstring with "
        "respect to w1, b1, w2 and b2, in this order, each in the shape of its parameter. "
        "The check compares with autograd on random shapes, also for one sample.",
        stub="def backward(x, y, w1, b1, w2, b2):\n"
        '    """Return the gradients of loss with respect to w1, b1, w2 and b2.\n\n'
        "    h = np.maximum(x @ w1 + b1, 0)\n"
        "    loss = ((h @ w2 + b2 - y) ** 2).sum() / len(x)\n"
        '    """\n    ...\n',
        answer="backward",
        test=test_backward,
        hints=(
            "Each gradient has the shape of what it belongs to. Go through the forward lines from "
            "the last to the first; each gets one line.",
            "For C = A @ B the gradients are dC @ B.T for A and A.T @ dC for B. A bias is used by "
            "every sample, so its gradient is a sum.",
            "Begin with out = 2 * (h @ w2 + b2 - y) / len(x), the gradient of what comes out.",
        ),
        solution=_backward(),
        wrong=(
            WrongAnswer("not divided", _backward(out="2 * error"), "times too large"),
            WrongAnswer("no mask", _backward(mask=""), "closed units pass nothing back"),
            WrongAnswer("first bias not summed", _backward(db1="da"), "One bias, 4 users"),
            WrongAnswer("last bias not summed", _backward(db2="out"), "One bias, 4 users"),
            WrongAnswer("sign", _backward(out="-2 * error / len(x)"), "this climbs"),
            WrongAnswer("bias averaged", _backward(db2="out.mean(0)"), "added up"),
            WrongAnswer("dimension kept", _backward(db1="da.sum(0, keepdims=True)"), "without keepdims"),
            WrongAnswer("the 2 forgotten", _backward(out="error / len(x)"), "2 * error"),
            WrongAnswer("mean over entries", _backward(out="2 * error / error.size"),
                        "not by the number of entries"),
            WrongAnswer("mask of the output", _backward(mask=" * (h < 1)"), "autograd says"),
            WrongAnswer("transposed", _BACKWARD + "    out = 2 * error / len(x)\n"
                        "    da = out @ w2.T * (a > 0)\n"
                        "    return (x.T @ da).T, da.sum(0), h.T @ out, out.sum(0)\n",
                        "the shape of what it belongs to"),
            WrongAnswer("a list of strings", _BACKWARD + "    return ['a', 'b', 'c', 'd']\n",
                        "must be a NumPy array"),
            WrongAnswer("nothing", _BACKWARD + "    out = 2 * error\n", "Return four arrays"),
            WrongAnswer("left to autograd", "def backward(*arrays):\n"
                        "    x, y, *leaves = (torch.tensor(a, requires_grad=True) for a in arrays)\n"
                        "    w1, b1, w2, b2 = leaves\n"
                        "    h = (x @ w1 + b1).relu()\n"
                        "    (((h @ w2 + b2 - y) ** 2).sum() / len(x)).backward()\n"
                        "    return [leaf.grad.numpy() for leaf in leaves]\n", "torch computed here"),
            WrongAnswer("squeezed", _backward().replace("x.T @ da", "(x.T @ da).squeeze()"),
                        "a width of 1 is a dimension too"),
            WrongAnswer("bias summed to a number", _backward(db1="da.sum()"), "is one number"),
            WrongAnswer("another order", _BACKWARD + "    out = 2 * error / len(x)\n"
                        "    da = out @ w2.T * (a > 0)\n"
                        "    return h.T @ out, out.sum(0), x.T @ da, da.sum(0)\n",
                        "By their shapes, what came is (dw2, db2, dw1, db1)"),
        ),
    ),
    "14.2": Exercise(
        title="Update a weight without breaking the graph",
        minutes=5,
        task="`step` shall move the caller's `w` to `w - lr * gradient`, in place. Afterwards `w` "
        "is a leaf, ready for the next step, and its version counter has noticed the write. What "
        "step returns is ignored. Repair it.",
        stub=f"{_STEP}    loss_fn(w).backward()\n    w = w - lr * w.grad\n",
        answer="step",
        test=test_step,
        hints=(
            "Three things must hold: the same tensor, other values; a leaf as before; a gradient "
            "that belongs to this step alone.",
            "`w = w - ...` makes a new tensor. `w -= ...` writes, and raises while autograd records.",
            "Under `with torch.no_grad():` write w -= lr * w.grad; then clear w.grad.",
        ),
        solution=f"{_STEP}    loss_fn(w).backward()\n    with torch.no_grad():\n"
        "        w -= lr * w.grad\n    w.grad = None\n",
        wrong=(
            WrongAnswer("a new tensor", f"{_STEP}    loss_fn(w).backward()\n"
                        "    w = w - lr * w.grad\n    return w\n", "caller's w never moves"),
            WrongAnswer("a new tensor, recorded off", f"{_STEP}    loss_fn(w).backward()\n"
                        "    with torch.no_grad():\n        w = w - lr * w.grad\n",
                        "caller's w never moves"),
            WrongAnswer("bare in place", f"{_STEP}    loss_fn(w).backward()\n"
                        "    w -= lr * w.grad\n    w.grad = None\n", "w is a leaf"),
            WrongAnswer(".data", f"{_STEP}    loss_fn(w).backward()\n"
                        "    w.data -= lr * w.grad\n    w.grad = None\n", "Write without .data"),
            WrongAnswer("through NumPy", f"{_STEP}    loss_fn(w).backward()\n"
                        "    array = w.detach().numpy()\n    array -= lr * w.grad.numpy()\n"
                        "    w.grad = None\n", "NumPy writes into the storage"),
            WrongAnswer("not cleared", f"{_STEP}    loss_fn(w).backward()\n"
                        "    with torch.no_grad():\n        w -= lr * w.grad\n",
                        "Step 2 is a sum"),
            WrongAnswer("loss under no_grad", f"{_STEP}    with torch.no_grad():\n"
                        "        loss_fn(w).backward()\n        w -= lr * w.grad\n",
                        "Only the update"),
            WrongAnswer("uphill", f"{_STEP}    loss_fn(w).backward()\n    with torch.no_grad():\n"
                        "        w += lr * w.grad\n    w.grad = None\n", "this climbs"),
            WrongAnswer("frozen afterwards", f"{_STEP}    loss_fn(w).backward()\n"
                        "    w.requires_grad_(False)\n    w -= lr * w.grad\n    w.grad = None\n",
                        "still be a leaf"),
            WrongAnswer("cleared too early", f"{_STEP}    loss_fn(w).backward()\n"
                        "    w.grad = None\n    with torch.no_grad():\n        w -= lr * w.grad\n",
                        "Use it, and clear it afterwards"),
            WrongAnswer("no rate", f"{_STEP}    loss_fn(w).backward()\n    with torch.no_grad():\n"
                        "        w -= w.grad\n    w.grad = None\n", "w - lr * gradient is"),
        ),
    ),
    "14.3": Exercise(
        title="Find the parameters that do not learn",
        minutes=6,
        task="Return the names of all parameters of `model` that `loss` does not train: no "
        "gradient, or zeros only. Frozen ones are excluded. Looking changes nothing: `.grad` stays "
        "as it is, and `loss.backward()` still works afterwards.",
        stub="def untrained(model, loss):\n"
        '    """Return the names of the parameters that this loss does not train."""\n    ...\n',
        answer="untrained",
        test=test_untrained,
        hints=(
            "torch.autograd.grad(loss, parameters) returns gradients without storing them in .grad.",
            "A layer behind detach gets None. A layer whose ReLUs are all closed gets zeros. A "
            "frozen parameter makes autograd.grad raise.",
            "named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]",
        ),
        solution=_untrained_if("not g.any()"),
        wrong=(
            WrongAnswer("None only", f"{_NAMED}{_GRAD}"
                        "    return [n for (n, _), g in zip(named, grads) if g is None]\n",
                        "exact zeros train nothing"),
            WrongAnswer("any zero element", _untrained_if("not g.all()"), "one closed unit is enough"),
            WrongAnswer("sum near 0", _untrained_if("g.sum().abs() < 1e-5"), "add up to 0"),
            WrongAnswer("threshold", _untrained_if("g.abs().max() < 1e-6"), "without a threshold"),
            WrongAnswer("frozen listed", f"{_NAMED}{_GRAD}"
                        "    frozen = [n for n, p in model.named_parameters() if not p.requires_grad]\n"
                        "    dead = [n for (n, _), g in zip(named, grads) if g is None or not g.any()]\n"
                        "    return dead + frozen\n", "that was a decision"),
            WrongAnswer("first only", f"{_NAMED}{_GRAD}"
                        "    dead = [n for (n, _), g in zip(named, grads) if g is None or not g.any()]\n"
                        "    return dead[:1]\n", "report all of them"),
            WrongAnswer("backward, then .grad", "def untrained(model, loss):\n"
                        "    model.zero_grad()\n    loss.backward(retain_graph=True)\n"
                        "    return [n for n, p in model.named_parameters()\n"
                        "            if p.requires_grad and (p.grad is None or not p.grad.any())]\n",
                        "looking must not touch"),
            WrongAnswer("old gradients", "def untrained(model, loss):\n"
                        "    return [n for n, p in model.named_parameters() if p.grad is None]\n",
                        "an earlier batch"),
            WrongAnswer("graph freed", f"{_NAMED}"
                        "    grads = torch.autograd.grad(loss, [p for _, p in named], allow_unused=True)\n"
                        "    return [n for (n, _), g in zip(named, grads) if g is None or not g.any()]\n",
                        "the graph is freed"),
            WrongAnswer("unused not allowed", f"{_NAMED}"
                        "    grads = torch.autograd.grad(loss, [p for _, p in named])\n"
                        "    return []\n", "gives None for it"),
            WrongAnswer("frozen asked", "def untrained(model, loss):\n"
                        "    ps = list(model.parameters())\n"
                        "    torch.autograd.grad(loss, ps, allow_unused=True, retain_graph=True)\n"
                        "    return []\n", "Leave them out before"),
            WrongAnswer("layers named", "def untrained(model, loss):\n"
                        "    return [n for n, _ in model.layers.named_children()]\n",
                        "is no name in model.named_parameters()"),
            WrongAnswer("tensors", "def untrained(model, loss):\n"
                        "    return list(model.parameters())\n", "a list of names"),
            WrongAnswer("all", f"{_NAMED}    return [n for n, _ in named]\n", "does get a gradient"),
            WrongAnswer("nothing", "def untrained(model, loss):\n    pass\n    print(loss)\n",
                        "a list of names"),
        ),
    ),
    "14.4": Exercise(
        title="Keep a finite loss from giving NaN gradients",
        minutes=5,
        task="`pairwise_distance(points)` has right values, and its gradient is NaN: each point has "
        "distance 0 to itself. Repair it. Values within 1e-5, equal points included; the gradient "
        "of every pair of different points stays, equal points add 0.",
        stub="def pairwise_distance(points):\n"
        "    difference = points[:, None] - points[None]  # (n, n, dim)\n"
        "    return (difference**2).sum(-1).sqrt()\n",
        answer="pairwise_distance",
        test=test_pairwise_distance,
        hints=(
            "The slope of the root at 0 is infinite. Whatever you multiply it with later, even 0, "
            "the product is not a number.",
            "torch.where(squares > 0, squares.sqrt(), 0) still takes the root of 0, and where only "
            "chooses afterwards.",
            "Put a 1 under the root where squares is 0, and choose the 0 afterwards; or take "
            "torch.linalg.vector_norm(difference, dim=-1), which does.",
        ),
        solution="def pairwise_distance(points):\n"
        "    difference = points[:, None] - points[None]  # (n, n, dim)\n"
        "    return torch.linalg.vector_norm(difference, dim=-1)\n",
        wrong=(
            WrongAnswer("eps outside", f"{_SQUARES}    return squares.sqrt() + 1e-8\n",
                        "the root still meets 0"),
            WrongAnswer("outer where", f"{_SQUARES}"
                        "    return torch.where(squares > 0, squares.sqrt(), 0.0)\n",
                        "chooses among values"),
            WrongAnswer("nan_to_num", f"{_SQUARES}    return squares.sqrt().nan_to_num()\n",
                        "repairs the value"),
            WrongAnswer("large eps", f"{_SQUARES}    return (squares + 1e-6).sqrt()\n",
                        "between equal points"),
            WrongAnswer("clamp", f"{_SQUARES}    return squares.clamp(min=1e-12).sqrt()\n",
                        "takes near points for equal ones"),
            WrongAnswer("small eps", f"{_SQUARES}    return (squares + 1e-12).sqrt()\n",
                        "takes near points for equal ones"),
            WrongAnswer("detach", f"{_SQUARES}    return squares.detach().sqrt()\n",
                        "0 everywhere"),
            WrongAnswer("squares", f"{_SQUARES}    return squares\n", "distance ["),
            WrongAnswer("gradients hooked", f"{_SQUARES}    root = squares.sqrt()\n"
                        "    points.register_hook(torch.nan_to_num)\n    return root\n",
                        "the gradient is finite and differs"),
            WrongAnswer("one side held fixed", "def pairwise_distance(points):\n"
                        "    return torch.linalg.vector_norm(points[:, None] - points[None].detach(), dim=-1)\n",
                        "keep their own"),
            WrongAnswer("a list", f"{_SQUARES}    return squares.tolist()\n", "return a tensor"),
        ),
    ),
}  # fmt: skip
