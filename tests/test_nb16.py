"""Exercises of 16: other right answers pass, odd ones get a sentence, and the engine is complete."""

import linecache
import re

import nbformat
import pytest

from exercises import nb16
from helpers._paths import ROOT
from helpers.exercises._selftest import judge_source

RIGHT = {
    "16.1 graphlib": """import graphlib
def topological_order(root):
    found, todo = {}, [root]
    while todo:
        node = todo.pop()
        if node not in found:
            found[node] = node.parents
            todo.extend(node.parents)
    return tuple(graphlib.TopologicalSorter(found).static_order())[::-1]
""",
    "16.1 a stack with two visits": """def topological_order(root):
    order, seen, todo = [], set(), [(root, False)]
    while todo:
        node, done = todo.pop()
        if done:
            order.append(node)
        elif id(node) not in seen:
            seen.add(id(node))
            todo.append((node, True))
            todo.extend((parent, False) for parent in node.parents)
    order.reverse()
    return order
""",
    "16.2 a loop": """def unbroadcast(grad, shape):
    while np.ndim(grad) > len(shape):
        grad = grad.sum(0)
    for i, size in enumerate(shape):
        if size == 1:
            grad = grad.sum(i, keepdims=True)
    return grad
""",
    "16.2 by reshape": """def unbroadcast(grad, shape):
    padded = (1,) * (grad.ndim - len(shape)) + tuple(shape)
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    return grad.sum(axis=axes, keepdims=True).reshape(shape)
""",
    "16.3 logaddexp": """class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.logaddexp(x, -x) - np.log(2)

    @staticmethod
    def backward(ctx, grad):
        return ctx.saved_tensors[0].tanh() * grad
""",
    "16.3 setup_context": """class LogCosh(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x.abs() + torch.log1p(torch.exp(-2 * x.abs())) - np.log(2)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (1 - 2 / (torch.exp(2 * x) + 1))
""",
    "16.4 a batched backward pass": """def gradient_norms(model, x, y):
    losses = torch.nn.functional.cross_entropy(model(x), y, reduction="none")
    grads = torch.autograd.grad(
        losses, list(model.parameters()), torch.eye(len(x)), is_grads_batched=True
    )
    return torch.cat([g.flatten(1) for g in grads], dim=1).norm(dim=1)
""",
    "16.5 a branch": """def clip_each(model, limit):
    def clip(grad):
        norm = torch.linalg.vector_norm(grad)
        return grad * (limit / norm) if norm > limit else grad

    return tuple(p.register_hook(clip) for p in model.parameters() if p.requires_grad)
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_another_right_answer_passes(name):
    verdict = judge_source(name.split()[0], RIGHT[name])
    assert verdict.status == "passed", verdict.sentence


@pytest.mark.parametrize("id", ["16.1", "16.2", "16.4", "16.5"])
@pytest.mark.parametrize("value", ["None", "[]", "[None]", "'text'", "0", "np.ones(3)", "{}"])
def test_a_result_of_another_type_gets_a_sentence(id, value):
    exercise = nb16.EXERCISES[id]
    head = exercise.stub.splitlines()[0]
    verdict = judge_source(id, f"{head}\n    value = {value}\n    return value\n")
    assert verdict.status == "wrong", verdict.sentence
    assert "argument" not in verdict.sentence


@pytest.mark.parametrize("value", ["None", "[]", "'text'", "x.detach().numpy()", "x.int()"])
def test_a_function_with_a_strange_value_gets_a_sentence(value):
    verdict = judge_source("16.3", nb16._log_cosh(value=value))
    assert verdict.status == "wrong", verdict.sentence


def cells():
    nb = nbformat.read(next((ROOT / "notebooks").glob("16_*.ipynb")), as_version=4)
    return [cell.source for cell in nb.cells if cell.cell_type == "code"]


def run(sources):
    space = {"__name__": "__main__"}
    for i, source in enumerate(sources):
        name = f"<cell {i} of 16>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        exec(compile(source, name, "exec"), space)  # noqa: S102 - cells of the course
    return space


def test_the_reader_s_own_two_functions_complete_the_engine():
    sources = cells()
    end = next(i for i, source in enumerate(sources) if "OPERATORS =" in source)
    engine = [s for s in sources[: end + 1] if not re.search(r"predict\(|visits|google", s)]
    solved = [nb16.EXERCISES[id].solution for id in ("16.1", "16.2")]
    last = next(source for source in sources if source.startswith("mine = False"))
    space = run([*engine, *solved, last.replace("False", "True")])
    assert space["counts"] == [0, 0]
    assert space["lines"] < 60
