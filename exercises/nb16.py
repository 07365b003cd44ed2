"""Ask and check what 16_build_your_own_autograd teaches."""

import random

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "16.p1": Number(
        question="21 nodes in a chain of x = x + x. A recursion walks from the last node into "
        "every parent. How many visits?",
        unit="visits",
        notes=(
            (0, 22, "There are 21 nodes, and the recursion meets most of them more than once."),
            (22, 1000, "You counted edges. A recursion walks paths, and paths multiply."),
            (1000, 1_000_000, "Every node doubles the number of paths below it, 20 times over."),
            (1_000_000, 4_000_000, "You counted the paths: they double with every node."),
            (4_000_000, 1e15, "Each node doubles the paths, 20 times: that is 2**21 - 1 visits."),
        ),
    ),
    "16.p2": Choice(
        question="Each node is visited once. Which order gives torch's gradient on every graph?",
        options={
            "breadth first": "A node near the root may still have a user far away, whose part "
            "then comes too late.",
            "depth first, on first sight": "On first sight only one user has paid in. The others "
            "come too late.",
            "after all its users": "Right: a node passes its gradient on when it is complete.",
        },
    ),
    "16.p3": Choice(
        question="The product of a (3, 4) and a (4,) is summed. What is the gradient of the (4,)?",
        options={
            "shape (3, 4)": "That is the gradient of the repeated copies. There is one vector to "
            "give it to.",
            "shape (4,): the sum over rows": "Right: three copies were used, so three parts add up.",
            "shape (4,): the first row": "All three rows used the vector, so all three count.",
            "shape (4,): the mean over rows": "A mean comes from a mean in the loss. Copying a "
            "value never divides.",
        },
    ),
    "16.p4": Choice(
        question="float32, (f(x + h) - f(x - h)) / 2h. Which h comes nearest to the slope?",
        options={
            "0.1": "The curve bends within that step. A smaller one does better, up to a point.",
            "0.001": "Right: small enough for the curve, large enough for the 24 bits.",
            "1e-08": "Smaller is better on paper. In float32, 1 + 1e-8 is 1, and the difference "
            "is 0.",
        },
    ),
    "16.p5": Choice(
        question="y keeps its gradient, then a hook multiplies by 10. Without the hook y.grad is "
        "[6, 12]. What is it now?",
        options={
            "[6.0, 12.0]": "The order of the two calls does not matter: torch stores the "
            "retained gradient after all hooks.",
            "[60.0, 120.0]": "Right: hooks run first, the result is stored last.",
            "[600.0, 1200.0]": "A hook runs once in each backward pass.",
            "an error": "A tensor may have both.",
        },
    ),
    "16.p6": Choice(
        question="One of four checks sees that the second derivative of Cube is wrong. Which?",
        options={
            "gradcheck on 100 inputs": "It compares first derivatives, and they are right at "
            "every input.",
            "gradcheck, tolerance / 1000": "The first derivative is right to the last digits.",
            "gradgradcheck": "Right: it is the one that differentiates the backward pass.",
            "torch's gradient of x**3": "It agrees to the last digits: the gradient is right. Its own "
            "derivative is not.",
        },
    ),
    "16.p7": Number(
        question="256 separate gradients, by a loop or by vmap. By what factor does vmap lower "
        "the number of operations that torch is asked to run?",
        unit="ratio",
        notes=(
            (0, 2, "The arithmetic is equal. The number of calls is not."),
            (2, 50, "More: vmap asks once for the whole batch, whatever its size."),
            (50, 200, "Close: some operations more per pass, and one pass instead of 256."),
            (200, 1e9, "Fewer: the batched pass asks for almost three times the operations of "
             "one sample, since it also splits and sums. Divide the numbers of the recap."),
        ),
    ),
}  # fmt: skip


# --- 16.1 -------------------------------------------------------------------------------


class _Node:
    """Stand for a node of a graph, as the notebook's own does: each node equals itself alone."""

    def __init__(self, name, parents=(), value=0.0):
        self.name, self.parents, self.value = name, tuple(parents), value

    def __repr__(self):
        return f"node {self.name}"


def _graphs():
    """Yield (description, root): fixed small ones, equal numbers, then random ones."""
    yield "one node", _Node("a", value=1.0)
    a = _Node("a", value=1.0)
    b = _Node("b", [a], 2.0)
    d = _Node("d", [b], 3.0)
    c = _Node("c", [a], 4.0)
    yield "r of (c, d), c of (a), d of (b), b of (a)", _Node("r", [c, d], 5.0)
    leaf = _Node("a", value=1.0)
    yield "r of (b, b), b of (a, a)", _Node("r", [_Node("b", [leaf, leaf], 2.0)] * 2, 3.0)
    pair = [_Node("a", value=1.0), _Node("b", value=1.0)]
    yield "r of (a, b), where a and b hold equal numbers", _Node("r", pair, 2.0)
    for _ in range(60):
        nodes = [_Node("a", value=0.0)]
        for i in range(1, random.randint(3, 9)):
            parents = random.choices(nodes, k=random.randint(1, 3))
            nodes.append(_Node("abcdefghi"[i], parents, float(i)))
        yield _described(nodes[-1]), nodes[-1]


def _described(root):
    lines = (f"{n.name} of ({', '.join(p.name for p in n.parents)})" for n in _reached(root))
    return ", ".join(line for line in lines if not line.endswith("()"))


def _reached(root):
    """Return every node below root once, in the order of a walk."""
    found, todo = {}, [root]
    while todo:
        node = todo.pop(0)
        if id(node) not in found:
            found[id(node)] = node
            todo.extend(node.parents)
    return list(found.values())


def _first_sight(root):
    found, todo = {}, [root]
    while todo:
        node = todo.pop()
        if id(node) not in found:
            found[id(node)] = node
            todo.extend(reversed(node.parents))
    return list(found.values())


def test_order(answer, call):
    for name, root in _graphs():
        order = _as_nodes(call(answer, root))
        nodes = _reached(root)
        if problem := _what_is_wrong(order, nodes, root):
            raise Wrong(f"On the graph {name}: {problem}")
    chain = _Node("end", value=0.0)
    for i in range(10_000):
        chain = _Node(str(i), [chain], float(i))
    try:
        order = _as_nodes(call(answer, chain))
    except RecursionError:
        raise Wrong(
            "A chain of 10,000 nodes is deeper than Python's stack: the recursion ends in "
            "RecursionError. Keep the nodes that wait in a list of your own."
        ) from None
    if len(order) != 10_001 or order[0] is not chain:
        raise Wrong(f"A chain of 10,001 nodes came back with {len(order):,} nodes.")


def _as_nodes(result):
    if isinstance(result, _Node) or not hasattr(result, "__iter__"):
        raise Wrong(
            f"Return a list of nodes, the root first; got {type(result).__name__}. "
            "Is a return missing?"
        )
    order = list(result)
    strange = [item for item in order if not isinstance(item, _Node)]
    if strange:
        kind = type(strange[0]).__name__
        raise Wrong(f"The list must hold the nodes themselves; one entry is a {kind}.")
    return order


def _what_is_wrong(order, nodes, root):
    """Return a sentence, or nothing if each node stands once, after all its users."""
    place = {id(node): i for i, node in enumerate(order)}
    missing = [node for node in nodes if id(node) not in place]
    if missing and missing[0].value in [node.value for node in order]:
        return (
            f"{missing[0]} is missing. Two different nodes may hold equal numbers: remember the "
            "nodes themselves, not what they hold."
        )
    if missing:
        return f"{missing[0]} is missing. Every node below the root must appear."
    if len(order) > len(nodes):
        twice = next(n for i, n in enumerate(order) if place[id(n)] != i)
        return f"{twice} stands there twice. A node with two users still passes on once."
    late = _late(order, place)
    if late is None:
        return ""
    if _late(order[::-1], {key: -i for key, i in place.items()}) is None:
        return "the order is right from the other end: leaves come first. Begin with the root."
    user, node = late
    return (
        f"{node} stands before {user}, which uses it, so its gradient is not complete when it is "
        f"passed on. {_why_late(order, nodes, root)}"
    )


def _late(order, place):
    """Return (user, node) where a node stands before one of its users."""
    pairs = ((user, node) for user in order for node in user.parents)
    return next(((u, n) for u, n in pairs if place[id(n)] < place[id(u)]), None)


def _why_late(order, nodes, root):
    names = [node.name for node in order]
    if names == [node.name for node in nodes]:
        return "Breadth first puts near nodes early, and near nodes can have far users."
    if names == [node.name for node in _first_sight(root)]:
        return "You list a node on first sight, when only one of its users has been there."
    return "List a node only after all its users."


# --- 16.2 -------------------------------------------------------------------------------

BROADCASTS = (
    ((3, 4), (4,)), ((3, 4), (3, 4)), ((3, 4), (3, 1)), ((3, 3), (3,)), ((3, 4), ()),
    ((2, 3, 4), (3, 1)), ((2, 3, 4), (1, 1, 1)), ((1, 3), (3,)), ((1, 4), (1, 4)),
    ((2, 3, 4), (2, 1, 4)), ((0, 3), (1, 3)), ((), ()),
)  # fmt: skip


def test_unbroadcast(answer, call):
    for i, (large, small) in enumerate(BROADCASTS):
        dtype = (np.float64, np.float32)[i % 2]
        grad = np.asarray(np.random.default_rng(i).standard_normal(large), dtype=dtype)
        given = grad.copy()
        try:
            got = call(answer, given, small, may_change=(0,))
        except (ValueError, IndexError, TypeError) as error:
            raise Wrong(
                f"A gradient of {large} for the shape {small} raised {type(error).__name__}: "
                f"{str(error)[:100]}. Which dimensions were added, which were stretched?"
            ) from None
        if given.shape != grad.shape or not np.array_equal(given, grad):
            raise Wrong(
                f"grad itself changed: the caller's array of {large} is now {given.shape}. "
                "Others may hold the same array, so return a new one."
            )
        _compare(got, grad, small)


def _compare(got, grad, small):
    large, expected = grad.shape, _summed_by_torch(grad, small)
    if not isinstance(got, (np.ndarray, np.generic)):
        raise Wrong(f"Return a NumPy array of shape {small}, got {type(got).__name__}.")
    case = f"For a gradient of {large} and the shape {small}"
    if got.shape != small:
        raise Wrong(f"{case} the result has shape {got.shape}. {_why_shape(got.shape, small)}")
    if not np.allclose(got, expected, atol=1e-5):
        raise Wrong(f"{case} the numbers differ from torch's. {_why_sum(got, grad, expected)}")
    if got.dtype != grad.dtype:
        raise Wrong(f"{case} the dtype must stay {grad.dtype}, got {got.dtype}.")


def _summed_by_torch(grad, shape):
    x = torch.zeros(shape, dtype=torch.float64, requires_grad=True)
    (x + torch.zeros(grad.shape, dtype=torch.float64)).backward(torch.tensor(grad).double())
    return x.grad.numpy()


def _why_shape(got, small):
    if len(got) < len(small) and tuple(n for n in small if n != 1) == got:
        return "A dimension of size 1 was stretched and must stay, with size 1: keepdims."
    if len(got) == len(small):
        return "Dimensions of size 1 were stretched too: sum over them, and keep them."
    return "Shapes are aligned from the right: the extra dimensions on the left go away."


def _why_sum(got, grad, expected):
    copies = grad.size / max(1, expected.size)
    if copies and np.allclose(got * copies, expected, atol=1e-5):
        return "Copies add up: take the sum, not the mean."
    if expected.shape and grad.size and np.allclose(got, grad.flat[: got.size].reshape(got.shape)):
        return "You kept the part of one copy. Every copy sends one, and they add up."
    if grad.shape == (3, 3) and np.allclose(got, grad.sum(1), atol=1e-5):
        return "Equal sizes mislead here: shapes are aligned from the right, so sum over rows."
    return "Sum over the dimensions that were added or stretched, and over no others."


# --- 16.3 -------------------------------------------------------------------------------


def test_log_cosh(answer, call):
    if not (isinstance(answer, type) and issubclass(answer, torch.autograd.Function)):
        raise Wrong("LogCosh must stay a class that derives from torch.autograd.Function.")
    for dtype in (torch.float64, torch.float32):
        _check_values(answer, dtype)
    _check_slope(answer)
    _check_second(answer)
    _check_edit(answer)
    x = torch.linspace(-2, 2, 5, dtype=torch.float64).add(0.1).requires_grad_()
    for check in (torch.autograd.gradcheck, torch.autograd.gradgradcheck):
        try:
            check(answer.apply, x)
        except RuntimeError as error:
            said = str(error).split("\n")[0]
            raise Wrong(f"{check.__name__} does not agree: {said[:150]}") from None


def _check_values(answer, dtype):
    x = torch.tensor([-1000.0, -3.0, -0.5, 0.0, 0.25, 2.0, 1000.0], dtype=dtype)
    got, expected = answer.apply(x), torch.logaddexp(x, -x) - np.log(2)
    if not isinstance(got, torch.Tensor):
        raise Wrong(f"forward must return a tensor, got {type(got).__name__}.")
    if got.shape != x.shape or got.dtype != dtype:
        raise Wrong(
            f"forward must keep shape and dtype: expected {tuple(x.shape)} {dtype}, got "
            f"{tuple(got.shape)} {got.dtype}."
        )
    if not torch.isfinite(got).all():
        raise Wrong(
            f"At 1000 the value is {got[-1].item()}, and {expected[-1].item():.2f} is right: cosh "
            "overflows. Write cosh(x) with exp(-2|x|), which never does."
        )
    if not torch.allclose(got, expected, atol=1e-6):
        i = (got - expected).abs().argmax()
        raise Wrong(
            f"At {x[i].item():g} the value must be {expected[i].item():.4f}, "
            f"got {got[i].item():.4f}."
        )


def _check_slope(answer):
    x = torch.tensor([-1000.0, -0.5, 0.25, 1000.0], dtype=torch.float64, requires_grad=True)
    (got,) = torch.autograd.grad(answer.apply(x), x, torch.full_like(x, 3.0), allow_unused=True)
    slope = torch.tanh(x.detach())
    if got is None:
        raise Wrong("backward returned no gradient for x: return one tensor per input.")
    if not torch.isfinite(got).all():
        raise Wrong(
            f"The gradient at 1000 is {got[-1].item()}: sinh / cosh overflows. tanh does not."
        )
    if torch.allclose(got, slope):
        raise Wrong(
            "A loss of 3 * LogCosh(x).sum() must triple the gradient, and yours stays: backward "
            "ignores its incoming gradient. That is right only under a bare sum()."
        )
    if not torch.allclose(got, 3 * slope):
        i = (got - 3 * slope).abs().argmax()
        raise Wrong(
            f"With an incoming gradient of 3 the gradient at {x[i].item():g} must be "
            f"{3 * slope[i].item():.4f}, got {got[i].item():.4f}."
        )


def _check_second(answer):
    """Differentiate LogCosh(x * x) twice: a constant slope still leaves one of two parts."""
    got, expected = [], []
    for function, found in ((answer.apply, got), (_plain, expected)):
        x = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(function(x * x), x, create_graph=True)
        found.append(torch.autograd.grad(first, x)[0].item())
    if not np.isclose(got[0], expected[0]) and hasattr(answer.backward, "__wrapped__"):
        raise Wrong(
            f"The second derivative of LogCosh(x * x) at 0.7 is {expected[0]:.4f}, got "
            f"{got[0]:.4f}. once_differentiable takes the backward pass out of the graph: leave "
            "the decorator away."
        )
    if not np.isclose(got[0], expected[0]):
        raise Wrong(
            f"The second derivative of LogCosh(x * x) at 0.7 is {expected[0]:.4f}, got "
            f"{got[0]:.4f}. What forward computes, backward sees as a constant: save x and "
            "compute the slope in backward."
        )


def _plain(x):
    return torch.logaddexp(x, -x)


def _check_edit(answer):
    leaf = torch.tensor([0.5, 1.0], dtype=torch.float64, requires_grad=True)
    x = leaf * 1
    y = answer.apply(x)
    with torch.no_grad():
        x.add_(10)
    try:
        (got,) = torch.autograd.grad(y.sum(), leaf)
    except RuntimeError:
        return  # save_for_backward noticed the edit
    if not torch.allclose(got, torch.tanh(leaf.detach())):
        raise Wrong(
            "x was edited between forward and backward, and the gradient came out wrong without "
            "an error. Only ctx.save_for_backward keeps the version and raises."
        )


# --- 16.4 -------------------------------------------------------------------------------


class _Counter(TorchDispatchMode):
    """Count the operations that torch is asked to run."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += 1
        return func(*args, **(kwargs or {}))


def _models():
    nn = torch.nn
    yield nn.Linear(5, 3), 5, 3
    yield nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4)), 6, 4
    yield nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 3)), 4, 3


def _norms_by_loop(model, x, y):
    rows = []
    for image, label in zip(x, y, strict=True):
        loss = torch.nn.functional.cross_entropy(model(image[None]), label[None])
        rows.append(torch.stack([g.norm() for g in torch.autograd.grad(loss, model.parameters())]))
    return torch.stack(rows)  # (batch, parameter)


def test_gradient_norms(answer, call):
    for model, features, classes in _models():
        x, y = torch.randn(7, features), torch.randint(classes, (7,))
        for p in model.parameters():
            p.grad = torch.ones_like(p)  # of the batch before
        got = call(answer, model, x, y)
        if not isinstance(got, torch.Tensor):
            raise Wrong(f"Return a tensor with one norm per sample, got {type(got).__name__}.")
        _about_grad(model)
        _compare_norms(got.detach().float(), _norms_by_loop(model, x, y))
    counts = []
    for n in (4, 64):
        x, y = torch.randn(n, features), torch.randint(classes, (n,))
        with _Counter() as counter:
            call(answer, model, x, y)
        counts.append(counter.count)
    if counts[1] > 8 * counts[0]:
        raise Wrong(
            f"The norms are right. 4 samples took {counts[0]:,} operations and 64 took "
            f"{counts[1]:,}: there is a loop over samples. vmap asks once for all of them."
        )


def _about_grad(model):
    """Refuse a .grad that is no longer the ones it held before the call."""
    grads = [p.grad for p in model.parameters()]
    if any(grad is None or not grad.any() for grad in grads):
        raise Wrong(
            "The gradients of the batch before are gone: the call cleared .grad, and the next "
            "optimizer step would miss them. torch.func.grad needs no zero_grad()."
        )
    if not all(torch.equal(grad, torch.ones_like(grad)) for grad in grads):
        raise Wrong(
            "The call filled .grad of the parameters: the next optimizer step would use it. "
            "torch.func.grad returns gradients and touches nothing."
        )


def _compare_norms(got, parts):
    expected = parts.square().sum(1).sqrt()
    if got.shape != expected.shape:
        raise Wrong(
            f"7 samples have 7 norms, shape (7,); got {tuple(got.shape)}. The norm of a mean is "
            "one number for all: take gradients of each sample's own loss."
        )
    if torch.allclose(got, expected, rtol=1e-4, atol=1e-6):
        return
    if torch.allclose(got, got[:1].expand_as(got)):
        why = "All are equal: the norm of the mean gradient is one number for all."
    elif torch.allclose(got * len(got), expected, rtol=1e-3):
        why = "They are 7 times too small: the loss of one sample is not divided by the batch."
    elif torch.allclose(got, expected**2, rtol=1e-3):
        why = "These are the squares: the root is missing."
    elif torch.allclose(got, parts.sum(1), rtol=1e-3):
        why = "Norms of the parameters do not add up; their squares do."
    elif any(torch.allclose(got, parts[:, i], rtol=1e-3) for i in range(parts.shape[1])):
        why = "That is the norm over one parameter. Take all of them together."
    else:
        why = "Compare with a loop over samples, torch.autograd.grad and one root at the end."
    raise Wrong(f"Sample 0 has the norm {expected[0]:.4f}, got {got[0].item():.4f}. {why}")


# --- 16.5 -------------------------------------------------------------------------------


class _Scales(torch.nn.Module):
    """Hold parameters whose gradients a caller chooses: forward returns sum of p * g."""

    def __init__(self, grads):
        super().__init__()
        self.weights = torch.nn.ParameterList([torch.zeros_like(g) for g in grads])
        self.frozen = torch.nn.Parameter(torch.ones(2), requires_grad=False)
        self.grads = grads

    def forward(self):
        """Return the scalar whose gradients are the chosen ones."""
        return sum((p * g).sum() for p, g in zip(self.weights, self.grads, strict=True))


LIMIT = 1.5


def test_clip_each(answer, call):
    grads = [torch.tensor([3.0, 4.0]), torch.tensor([[0.3], [-0.4]]), torch.zeros(3),
             torch.tensor([-6.0, 0.5, 2.0])]  # fmt: skip
    model = _Scales(grads)
    handles = _registered(call, answer, model)
    model().backward()
    for p, grad in zip(model.weights, grads, strict=True):
        _compare_clipped(p.grad, grad)
    _two_calls(model, grads)
    _no_edit(model)
    for handle in handles:
        handle.remove()
    model.zero_grad()
    model().backward()
    if not all(torch.equal(p.grad, g) for p, g in zip(model.weights, grads, strict=True)):
        raise Wrong(
            "After every handle was removed the gradients are still clipped: one hook has no "
            "handle in your list."
        )


def _registered(call, answer, model):
    try:
        handles = call(answer, model, LIMIT)
    except RuntimeError as error:
        if "require gradient" not in str(error):
            raise
        raise Wrong(
            "A frozen parameter gets no gradient, and register_hook refuses it. Skip those "
            "whose requires_grad is False."
        ) from None
    fine = isinstance(handles, (list, tuple)) and all(hasattr(h, "remove") for h in handles)
    if not fine or not handles:
        raise Wrong(
            f"Return the list of handles that register_hook gives, got {type(handles).__name__}: "
            "without them nobody can take the hooks away."
        )
    return handles


def _compare_clipped(got, grad):
    norm = grad.norm()
    expected = grad * min(1.0, LIMIT / max(norm.item(), 1e-12))
    if torch.allclose(got, expected, rtol=1e-3):
        return
    case = f"The gradient {grad.flatten().tolist()} of norm {norm:.2f}, with a limit of {LIMIT},"
    if torch.isnan(got).any():
        why = "A gradient of zeros has the norm 0: do not divide by it unprotected."
    elif torch.equal(got, grad):
        why = "Nothing changed. What a hook returns replaces the gradient; None keeps it."
    elif norm <= LIMIT:
        why = "It was below the limit and must stay as it is."
    elif torch.allclose(got, grad.clamp(-LIMIT, LIMIT)):
        why = "Clipping each value changes the direction. Scale the whole gradient."
    else:
        why = "Scale the whole gradient by limit / norm, each parameter by its own norm."
    shown = [round(v, 3) for v in got.flatten().tolist()]
    raise Wrong(f"{case} became {shown}. {why}")


def _two_calls(model, grads):
    model.zero_grad()
    for _ in range(2):
        model().backward()
    got = model.weights[0].grad.norm().item()
    if not np.isclose(got, 2 * LIMIT, rtol=1e-3):
        raise Wrong(
            f"Two backward passes must add two clipped gradients, with a norm of {2 * LIMIT:g}; "
            f"got {got:.2f}. A hook after accumulation clips the sum of both."
        )
    model.zero_grad()


def _no_edit(model):
    weight = model.weights[0]
    sent = torch.full_like(weight, 5.0)
    torch.autograd.backward([weight], [sent])
    if not torch.equal(sent, torch.full_like(sent, 5.0)):
        raise Wrong(
            "The hook changed the gradient it was given, in place. Other nodes may receive the "
            "same tensor: a hook returns a new one and never edits."
        )
    model.zero_grad()


_LOG_COSH = """class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {save}
        return {value}

    @staticmethod
    def backward(ctx, grad):
        {load}
        return {result}
"""


def _log_cosh(
    save="ctx.save_for_backward(x)",
    value="x.abs() + torch.nn.functional.softplus(-2 * x.abs()) - np.log(2)",
    load="(x,) = ctx.saved_tensors",
    result="grad * torch.tanh(x)",
):
    return _LOG_COSH.format(save=save, value=value, load=load, result=result)


_NORMS = """def gradient_norms(model, x, y):
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, label):
        scores = torch.func.functional_call(model, parameters, (image[None],))
        return torch.nn.functional.cross_entropy(scores, label[None])

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    squares = [g.flatten(1).square().sum(1) for g in each.values()]
    return torch.stack(squares).sum(0).sqrt()
"""

_LOOP = """def gradient_norms(model, x, y):
    norms = []
    for image, label in zip(x, y):
        loss = torch.nn.functional.cross_entropy(model(image[None]), label[None])
        {line}
        norms.append(torch.stack([g.square().sum() for g in grads]).sum().sqrt())
    return torch.stack(norms)
"""

_MEAN = """def gradient_norms(model, x, y):
    loss = torch.nn.functional.cross_entropy(model(x), y)
    grads = torch.autograd.grad(loss, list(model.parameters()))
    return torch.stack([g.square().sum() for g in grads]).sum().sqrt(){end}
"""

_CLIP = """def clip_each(model, limit):
    def clip(grad):
        {line}

    return [p.register_hook(clip) for p in model.parameters(){which}]
"""


def _clip(line, which=" if p.requires_grad"):
    return _CLIP.format(line=line, which=which)


EXERCISES = {
    "16.1": Exercise(
        title="Order a backward pass",
        minutes=8,
        task="Write `topological_order(root)`: a list of all nodes below `root`, the root first, "
        "each node once and after all nodes that use it. `node.parents` are the nodes it was made "
        "from. Chains may have 10,000 nodes; different nodes may hold equal numbers.",
        stub='def topological_order(root):\n    """Return root and all nodes below it, users '
        'first."""\n    ...\n',
        answer="topological_order",
        test=test_order,
        hints=(
            "A node may be listed when all its users have been listed. Nobody uses the root.",
            "For r of (c, d), c of (a), d of (b), b of (a): a must wait for c and for b, though "
            "it is near to r.",
            "First walk once over all nodes to count for each id(node) how often it is used. Then "
            "start with todo = [root], and count down.",
        ),
        solution="""def topological_order(root):
    uses, todo = {id(root): 0}, [root]
    while todo:
        for parent in todo.pop().parents:
            if id(parent) not in uses:
                uses[id(parent)] = 0
                todo.append(parent)
            uses[id(parent)] += 1
    order, todo = [], [root]
    while todo:
        node = todo.pop()
        order.append(node)
        for parent in node.parents:
            uses[id(parent)] -= 1
            if uses[id(parent)] == 0:
                todo.append(parent)
    return order
""",
        wrong=(
            WrongAnswer(
                "breadth first",
                "def topological_order(root):\n"
                "    order, seen = [root], {root}\n"
                "    for node in order:\n"
                "        for parent in node.parents:\n"
                "            if parent not in seen:\n"
                "                seen.add(parent)\n"
                "                order.append(parent)\n"
                "    return order\n",
                "Breadth first puts near nodes early",
            ),
            WrongAnswer(
                "depth first, on first sight",
                "def topological_order(root, order=None):\n"
                "    order = [] if order is None else order\n"
                "    if not any(node is root for node in order):\n"
                "        order.append(root)\n"
                "        for parent in root.parents:\n"
                "            topological_order(parent, order)\n"
                "    return order\n",
                "on first sight",
            ),
            WrongAnswer(
                "recursion",
                "def topological_order(root):\n"
                "    order, seen = [], set()\n"
                "    def visit(node):\n"
                "        if node not in seen:\n"
                "            seen.add(node)\n"
                "            for parent in node.parents:\n"
                "                visit(parent)\n"
                "            order.append(node)\n"
                "    visit(root)\n"
                "    return order[::-1]\n",
                "deeper than Python's stack",
            ),
            WrongAnswer(
                "leaves first",
                "def topological_order(root):\n"
                "    order, seen = [], set()\n"
                "    def visit(node):\n"
                "        if node not in seen:\n"
                "            seen.add(node)\n"
                "            for parent in node.parents:\n"
                "                visit(parent)\n"
                "            order.append(node)\n"
                "    visit(root)\n"
                "    return order\n",
                "from the other end",
            ),
            WrongAnswer(
                "equal numbers taken for the same node",
                "def topological_order(root):\n"
                "    order, seen = [], set()\n"
                "    def visit(node):\n"
                "        if float(node.value) not in seen:\n"
                "            seen.add(float(node.value))\n"
                "            for parent in node.parents:\n"
                "                visit(parent)\n"
                "            order.append(node)\n"
                "    visit(root)\n"
                "    return order[::-1]\n",
                "may hold equal numbers",
            ),
            WrongAnswer(
                "every path",
                "def topological_order(root):\n"
                "    order = [root]\n"
                "    for node in order:\n"
                "        order.extend(node.parents)\n"
                "    return order\n",
                "stands there twice",
            ),
            WrongAnswer(
                "root only",
                "def topological_order(root):\n    return [root, *root.parents][:1]\n",
                "Every node below the root must appear",
            ),
            WrongAnswer(
                "a limit on the number of nodes",
                "def topological_order(root):\n"
                "    order, seen, todo = [], set(), [(root, False)]\n"
                "    for _ in range(5000):\n"
                "        if not todo:\n"
                "            break\n"
                "        node, done = todo.pop()\n"
                "        if done:\n"
                "            order.append(node)\n"
                "        elif id(node) not in seen:\n"
                "            seen.add(id(node))\n"
                "            todo += [(node, True), *((p, False) for p in node.parents)]\n"
                "    return order[::-1]\n",
                "A chain of 10,001 nodes came back",
            ),
            WrongAnswer(
                "no return",
                "def topological_order(root):\n    order = [root]\n",
                "Is a return missing",
            ),
            WrongAnswer(
                "numbers instead of nodes",
                "def topological_order(root):\n    return [root.value]\n",
                "the nodes themselves",
            ),
        ),
    ),
    "16.2": Exercise(
        title="Undo broadcasting in a gradient",
        minutes=6,
        task="Write `unbroadcast(grad, shape)`: an operand of this shape was broadcast to "
        "`grad.shape`. Return its gradient, a NumPy array of this shape with the dtype of `grad`, "
        "which stays as it is.",
        stub='def unbroadcast(grad, shape):\n    """Return the gradient of the operand that was '
        'broadcast."""\n    ...\n',
        answer="unbroadcast",
        test=test_unbroadcast,
        hints=(
            "Broadcasting did two things: it added dimensions on the left, and it stretched "
            "dimensions of size 1. Undo both.",
            "(2, 3, 4) for (3, 1): the 2 goes away, the 4 becomes 1. The result is (3, 1), "
            "not (3,).",
            "Start with the added ones: extra = grad.ndim - len(shape), then "
            "grad = grad.sum(axis=tuple(range(extra))).",
        ),
        solution="""def unbroadcast(grad, shape):
    extra = grad.ndim - len(shape)
    grad = np.sum(grad, axis=tuple(range(extra)))
    stretched = tuple(i for i, size in enumerate(shape) if size == 1)
    return np.sum(grad, axis=stretched, keepdims=True)
""",
        wrong=(
            WrongAnswer(
                "added dimensions only",
                "def unbroadcast(grad, shape):\n"
                "    return grad.sum(axis=tuple(range(grad.ndim - len(shape))))\n",
                "sum over them, and keep them",
            ),
            WrongAnswer(
                "squeezed",
                "def unbroadcast(grad, shape):\n"
                "    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))\n"
                "    return grad.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1))\n",
                "keepdims",
            ),
            WrongAnswer(
                "mean",
                "def unbroadcast(grad, shape):\n"
                "    grad = grad.mean(axis=tuple(range(grad.ndim - len(shape))))\n"
                "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
                "    return grad.mean(axis=ones, keepdims=True)\n",
                "not the mean",
            ),
            WrongAnswer(
                "first copy",
                "def unbroadcast(grad, shape):\n"
                "    while grad.ndim > len(shape):\n"
                "        grad = grad[0]\n"
                "    for i, n in enumerate(shape):\n"
                "        grad = grad[(slice(None),) * i + (slice(0, n),)]\n"
                "    return grad\n",
                "the part of one copy",
            ),
            WrongAnswer(
                "resized in place",
                "def unbroadcast(grad, shape):\n"
                "    grad.resize(shape, refcheck=False)\n"
                "    return grad\n",
                "grad itself changed",
            ),
            WrongAnswer(
                "aligned from the left",
                "def unbroadcast(grad, shape):\n"
                "    if len(shape) == 1 and grad.ndim == 2 and grad.shape[0] == shape[0]:\n"
                "        return grad.sum(axis=1)\n"
                "    grad = grad.sum(axis=tuple(range(grad.ndim - len(shape))))\n"
                "    ones = tuple(i for i, n in enumerate(shape) if n == 1)\n"
                "    return grad.sum(axis=ones, keepdims=True)\n",
                "aligned from the right, so sum over rows",
            ),
            WrongAnswer(
                "unchanged",
                "def unbroadcast(grad, shape):\n    return grad\n",
                "the extra dimensions on the left go away",
            ),
            WrongAnswer(
                "reshape",
                "def unbroadcast(grad, shape):\n    return grad.reshape(shape)\n",
                "Which dimensions were added",
            ),
            WrongAnswer(
                "float64 for all",
                "def unbroadcast(grad, shape):\n"
                "    return torch.tensor(grad).double().sum_to_size(shape).numpy()\n",
                "the dtype must stay",
            ),
            WrongAnswer(
                "a tensor",
                "def unbroadcast(grad, shape):\n"
                "    return torch.from_numpy(grad).sum_to_size(shape)\n",
                "Return a NumPy array",
            ),
        ),
    ),
    "16.3": Exercise(
        title="Repair a Function twice",
        minutes=8,
        task="`LogCosh` is log(cosh(x)), with a gradient that gradcheck accepts. Repair it: finite "
        "at 1000 and -1000 in float32 and float64, differentiable twice, and an edit of x between "
        "forward and backward must not go unseen.",
        stub=_log_cosh(
            save="ctx.save_for_backward(torch.tanh(x))",
            value="torch.log(torch.cosh(x))",
            load="(slope,) = ctx.saved_tensors",
            result="grad * slope",
        ),
        answer="LogCosh",
        test=test_log_cosh,
        hints=(
            "forward records nothing. So what backward needs to be differentiated again must be "
            "computed in backward, from the saved input.",
            "cosh(x) = exp(|x|) * (1 + exp(-2|x|)) / 2. Take the logarithm of that product by "
            "hand: three terms, none of which overflows.",
            "forward begins with ctx.save_for_backward(x), and its value with x.abs() + "
            "torch.nn.functional.softplus(-2 * x.abs()).",
        ),
        solution=_log_cosh(),
        wrong=(
            WrongAnswer(
                "slope computed in forward",
                _log_cosh(
                    save="ctx.save_for_backward(torch.tanh(x))",
                    load="(slope,) = ctx.saved_tensors",
                    result="grad * slope",
                ),
                "backward sees as a constant",
            ),
            WrongAnswer(
                "once_differentiable",
                _log_cosh().replace(
                    "    @staticmethod\n    def backward",
                    "    @staticmethod\n    @torch.autograd.function.once_differentiable\n"
                    "    def backward",
                ),
                "leave the decorator away",
            ),
            WrongAnswer(
                "kept as an attribute",
                _log_cosh(save="ctx.x = x", load="x = ctx.x"),
                "Only ctx.save_for_backward",
            ),
            WrongAnswer(
                "cosh as it stands", _log_cosh(value="torch.log(torch.cosh(x))"), "cosh overflows"
            ),
            WrongAnswer(
                "incoming gradient forgotten",
                _log_cosh(result="torch.tanh(x)"),
                "ignores its incoming gradient",
            ),
            WrongAnswer(
                "sinh over cosh",
                _log_cosh(result="grad * torch.sinh(x) / torch.cosh(x)"),
                "sinh / cosh overflows",
            ),
            WrongAnswer(
                "log 2 forgotten",
                _log_cosh(value="x.abs() + torch.nn.functional.softplus(-2 * x.abs())"),
                "the value must be",
            ),
            WrongAnswer(
                "clamped",
                _log_cosh(value="torch.log(torch.cosh(x.clamp(-80, 80)))"),
                "the value must be",
            ),
            WrongAnswer("nothing returned", _log_cosh(result="None"), "returned no gradient"),
            WrongAnswer(
                "an array",
                _log_cosh(value="np.logaddexp(x.detach().numpy(), -x.detach().numpy())"),
                "forward must return a tensor",
            ),
            WrongAnswer(
                "summed",
                _log_cosh(value="(torch.logaddexp(x, -x) - np.log(2)).sum()"),
                "keep shape and dtype",
            ),
            WrongAnswer(
                "sign lost",
                _log_cosh(result="grad * torch.tanh(x.abs())"),
                "With an incoming gradient of 3",
            ),
            WrongAnswer(
                "incoming gradient detached",
                _log_cosh(result="grad.detach() * torch.tanh(x)"),
                "gradgradcheck does not agree",
            ),
            WrongAnswer(
                "a plain function",
                "def LogCosh(x):\n    return torch.logaddexp(x, -x) - np.log(2)\n",
                "must stay a class",
            ),
        ),
    ),
    "16.4": Exercise(
        title="Measure the gradient of each sample",
        minutes=8,
        task="Write `gradient_norms(model, x, y)`: for each sample the norm of the gradient of its "
        "own cross-entropy, over all parameters together. Shape (batch,). Leave `.grad` alone. No "
        "loop over samples: the check counts operations.",
        stub='def gradient_norms(model, x, y):\n    """Return the norm of each sample\'s gradient, '
        '(batch,)."""\n    ...\n',
        answer="gradient_norms",
        test=test_gradient_norms,
        hints=(
            "Write the loss of one sample as a function of the parameters. grad differentiates "
            "it, vmap runs it for all samples.",
            "The norm over two parameters of norms 3 and 4 is 5, not 7. And the norm of the mean "
            "gradient says nothing about one sample.",
            "parameters = {name: p.detach() for name, p in model.named_parameters()}, then a "
            "loss(parameters, image, label) that calls torch.func.functional_call.",
        ),
        solution=_NORMS,
        wrong=(
            WrongAnswer("norm of the mean", _MEAN.format(end=""), "one number for all"),
            WrongAnswer(
                "norm of the mean, repeated", _MEAN.format(end=".expand(len(x))"), "All are equal"
            ),
            WrongAnswer(
                "divided by the batch",
                _NORMS.replace(".sum(0).sqrt()", ".sum(0).sqrt() / len(x)"),
                "7 times too small",
            ),
            WrongAnswer(
                "first parameter only",
                _NORMS.replace("each.values()]", "list(each.values())[:1]]"),
                "over one parameter",
            ),
            WrongAnswer(
                "norms added",
                _NORMS.replace(".sum(1) for", ".sum(1).sqrt() for").replace(
                    ".sum(0).sqrt()", ".sum(0)"
                ),
                "their squares do",
            ),
            WrongAnswer(
                "no root", _NORMS.replace(".sum(0).sqrt()", ".sum(0)"), "the root is missing"
            ),
            WrongAnswer(
                "backward in a loop",
                _LOOP.format(line="loss.backward(); grads = [p.grad for p in model.parameters()]"),
                "filled .grad",
            ),
            WrongAnswer(
                "gradients cleared first",
                _NORMS.replace("    parameters =", "    model.zero_grad()\n    parameters =", 1),
                "cleared .grad",
            ),
            WrongAnswer(
                "gradients set to zero first",
                _NORMS.replace(
                    "    parameters =",
                    "    model.zero_grad(set_to_none=False)\n    parameters =",
                    1,
                ),
                "cleared .grad",
            ),
            WrongAnswer(
                "a loop",
                _LOOP.format(line="grads = torch.autograd.grad(loss, list(model.parameters()))"),
                "a loop over samples",
            ),
            WrongAnswer(
                "a list",
                _NORMS.replace("sqrt()\n", "sqrt().tolist()\n"),
                "Return a tensor",
            ),
        ),
    ),
    "16.5": Exercise(
        title="Clip each gradient by a hook",
        minutes=6,
        task="Write `clip_each(model, limit)`: from now on each parameter's gradient is scaled to a "
        "norm of at most `limit` in every backward pass, its direction kept. Return the list of "
        "handles; removing them ends it. Frozen parameters are skipped.",
        stub='def clip_each(model, limit):\n    """Clip each gradient to this norm from now on; '
        'return the handles."""\n    ...\n',
        answer="clip_each",
        test=test_clip_each,
        hints=(
            "A hook on a tensor receives its gradient. What it returns takes the gradient's place.",
            "[3, 4] has the norm 5; with a limit of 1 it becomes [0.6, 0.8]. Clamping the values "
            "would make it [1, 1]. And what is the factor for [0, 0]?",
            "def clip(grad): return grad * torch.clamp(limit / (grad.norm() + 1e-12), max=1.0)",
        ),
        solution=_clip("return grad * torch.clamp(limit / (grad.norm() + 1e-12), max=1.0)"),
        wrong=(
            WrongAnswer(
                "values clipped", _clip("return grad.clamp(-limit, limit)"), "changes the direction"
            ),
            WrongAnswer(
                "in place",
                _clip("return grad.mul_(torch.clamp(limit / (grad.norm() + 1e-12), max=1.0))"),
                "never edits",
            ),
            WrongAnswer(
                "nothing returned",
                _clip("grad * torch.clamp(limit / (grad.norm() + 1e-12), max=1.0)"),
                "Nothing changed",
            ),
            WrongAnswer(
                "after accumulation",
                "def clip_each(model, limit):\n"
                "    def clip(p):\n"
                "        p.grad = p.grad * torch.clamp(limit / (p.grad.norm() + 1e-12), max=1.0)\n"
                "    return [\n"
                "        p.register_post_accumulate_grad_hook(clip)\n"
                "        for p in model.parameters() if p.requires_grad\n"
                "    ]\n",
                "clips the sum of both",
            ),
            WrongAnswer(
                "always scaled",
                _clip("return grad * limit / (grad.norm() + 1e-12)"),
                "must stay as it is",
            ),
            WrongAnswer(
                "divides by zero",
                _clip("return grad / grad.norm() * torch.clamp(grad.norm(), max=limit)"),
                "do not divide by it",
            ),
            WrongAnswer(
                "frozen ones too",
                _clip("return grad * torch.clamp(limit / (grad.norm() + 1e-12), max=1.0)", ""),
                "register_hook refuses it",
            ),
            WrongAnswer(
                "no handles",
                "def clip_each(model, limit):\n"
                "    for p in model.parameters():\n"
                "        if p.requires_grad:\n"
                "            p.register_hook(lambda g: g * torch.clamp(limit / g.norm(), max=1.0))\n",
                "Return the list of handles",
            ),
            WrongAnswer(
                "one handle kept",
                "def clip_each(model, limit):\n"
                "    def clip(grad):\n"
                "        return grad * torch.clamp(limit / (grad.norm() + 1e-12), max=1.0)\n"
                "    for p in model.parameters():\n"
                "        if p.requires_grad:\n"
                "            handle = p.register_hook(clip)\n"
                "    return [handle]\n",
                "one hook has no handle",
            ),
            WrongAnswer(
                "clipped now, once",
                "def clip_each(model, limit):\n"
                "    torch.nn.utils.clip_grad_norm_(model.parameters(), limit)\n"
                "    return []\n",
                "Return the list of handles",
            ),
        ),
    ),
}
