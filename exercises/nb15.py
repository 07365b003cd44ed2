"""Ask and check what 15_train_a_first_model teaches."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "15.p1": Number(
        question="Ten classes, no training yet: what is the cross-entropy?",
        unit="nats",
        notes=(
            (0, 0.05, "0 is the other end: it takes a model that is certain and right."),
            (0.05, 0.5, "0.1 is the accuracy of guessing. The loss is the logarithm of 10."),
            (0.5, 2, "More: the untrained model gives each class about a tenth, and ln 10 is 2.3."),
            (2, 2.7, "Right: ln 10. Each class gets about a tenth of the probability."),
            (2.7, 5, "Less. Did you take log2? The logarithm here is the natural one."),
            (5, 1e9, "10 is the number of classes. The loss is its natural logarithm."),
        ),
    ),
    "15.p2": Number(
        question="How many of the 26,122 numbers in this model will train?",
        unit="parameters",
        notes=(
            (0, 1290, "The layer `last` is an attribute, so it at least is found: 128 · 10 + 10."),
            (1290, 1291, "Right: `last` alone. The list hides the two others."),
            (
                1291,
                26_000,
                "Fewer: a plain list hides all it holds, and only `last` stands outside of it.",
            ),
            (
                26_000,
                1e12,
                "A Module registers what is set as its attribute, if that is a Module or a "
                "Parameter. A list is neither, and nothing looks into it.",
            ),
        ),
    ),
    "15.p3": Choice(
        question="The targets are noise. Where does the training loss end?",
        options={
            "near 1": "Noise cannot be learned, and it can be stored: the net has more "
            "parameters than there are targets.",
            "about 0.9": "That is what a linear model gets out of 100 rows. This net stores them.",
            "near 0": "Right: 100 targets fit into 769 parameters. Nothing was learned.",
        },
    ),
    "15.p4": Choice(
        question="A model with dropout is called twice on the same digits. What makes the two "
        "results equal?",
        options={
            "no_grad()": "no_grad stops the recording for backward. Dropout goes on.",
            "eval()": "Right: eval() tells each layer to behave as in use. Recording goes on.",
            "both together": "eval() alone does it. no_grad saves memory and changes no value.",
            "manual_seed(0) once, before both": "The generator moves on after the first call, "
            "so the second one draws other zeros.",
        },
    ),
    "15.p5": Choice(
        question="The state dict of the best epoch is loaded at the end. Which weights are these?",
        options={
            "the best": "A state dict holds the weights themselves. No number was copied when "
            "it was made.",
            "the last": "Right: every tensor in the dict is the model's own, and training "
            "writes into it.",
            "the first": "Nothing keeps the weights of the beginning.",
            "an error": "Loading weights onto themselves is allowed.",
        },
    ),
    "15.p6": Choice(
        question="Each width is trained with twelve seeds. In which share of the 144 pairs of "
        "runs does width 64 score higher than width 128?",
        options={
            "in none": "The runs of one width scatter over several digits, and the two "
            "ranges overlap.",
            "in some, at most a third": "That is what chance does to a small difference: "
            "one pair of runs names no winner.",
            "in more than a third": "Then the two are hardly different, or the narrow one is better.",
        },
    ),
}


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- 15.1 -------------------------------------------------------------------------------


def _paths(learning_rates, momentum):
    """Return the reader's and torch's parameters, equal at the start, and torch's optimizer."""
    mine = [
        nn.Parameter(torch.randn(3, 2)),
        nn.Parameter(torch.randn(4)),
        nn.Parameter(torch.ones(2)),
    ]
    theirs = copy.deepcopy(mine)
    optimizer = torch.optim.SGD(theirs, lr=learning_rates[0], momentum=momentum)
    return mine, theirs, optimizer


def _give_gradients(mine, theirs):
    for p, q in zip(mine[:2], theirs[:2], strict=True):  # the third one stays without
        q.grad = torch.randn(q.shape)
        p.grad = q.grad.clone()


def test_sgd_step(answer, call):
    momentum, rates = 0.8, (0.1, 0.1, 0.05, 0.05, 0.2)
    mine, theirs, optimizer = _paths(rates, momentum)
    velocities = [torch.zeros_like(p) for p in mine]
    start = [p.detach().clone() for p in mine]
    for step, rate in enumerate(rates, 1):
        _give_gradients(mine, theirs)
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        _sgd_once(answer, call, mine, velocities, rate, momentum)
        _about_gradients(mine, theirs)
        _about_velocities(velocities, theirs, optimizer, rate, momentum, step)
        _about_parameters(mine, theirs, start, rate, step)


def _sgd_once(answer, call, mine, velocities, rate, momentum):
    try:
        call(answer, mine, velocities, rate, momentum, may_change=(0, 1))
    except RuntimeError as error:
        if "leaf" in str(error):
            raise Wrong(
                "A parameter is a leaf that requires grad, and autograd refuses to have it "
                "changed in place. Do the update under torch.no_grad()."
            ) from None
        raise
    except (TypeError, AttributeError) as error:
        if "NoneType" in str(error):
            raise Wrong(
                "The last parameter has no gradient: its grad is None. Skip it, as torch does."
            ) from None
        raise


def _about_gradients(mine, theirs):
    for p, q in zip(mine[:2], theirs[:2], strict=True):
        if p.grad is None or not torch.equal(p.grad, q.grad):
            raise Wrong(
                "The step changed p.grad. The caller still needs it, for logging or clipping: "
                "emptying it is the work of zero_grad."
            )


def _about_velocities(velocities, theirs, optimizer, rate, momentum, step):
    expected = [optimizer.state[q].get("momentum_buffer") for q in theirs[:2]]
    first, right = velocities[0], expected[0]
    if all(torch.allclose(v, e, atol=1e-5) for v, e in zip(velocities, expected, strict=False)):
        return
    if torch.equal(first, torch.zeros_like(first)):
        raise Wrong(
            "The caller's velocities are still zero after the step: yesterday's velocity is lost. "
            "`v = ...` gives the name v to a new tensor; change v in place, as v.mul_ does."
        )
    if step == 1 and torch.allclose(first, (1 - momentum) * right, atol=1e-5):
        raise Wrong(
            "The gradient was multiplied by 1 - momentum. torch does not damp: "
            "v becomes momentum · v + g."
        )
    if step == 1 and torch.allclose(first, rate * right, atol=1e-5):
        raise Wrong(
            "The learning rate is inside the velocity. It belongs into the step: a velocity "
            "of yesterday must not keep yesterday's rate."
        )
    raise Wrong(
        f"After step {step} the velocity starts with {_first(first):.4f}, torch's with "
        f"{_first(right):.4f}. v becomes momentum · v + g."
    )


def _about_parameters(mine, theirs, start, rate, step):
    if all(torch.allclose(p, q, atol=1e-5) for p, q in zip(mine, theirs, strict=True)):
        return
    if torch.equal(mine[0], start[0]):
        raise Wrong(
            "The parameters did not move. `p = p - ...` gives the name p to a new tensor and "
            "leaves the model's as it is; subtract in place."
        )
    moved, right = mine[0] - start[0], theirs[0] - start[0]
    if torch.allclose(moved, -right, atol=1e-5):
        raise Wrong("The parameters moved up the gradient. Subtract: the loss must fall.")
    if not torch.equal(mine[2], start[2]):
        raise Wrong("The parameter without a gradient moved. Skip those whose grad is None.")
    raise Wrong(
        f"After step {step} the first parameter starts with {_first(mine[0]):.4f}, torch's with "
        f"{_first(theirs[0]):.4f}. p becomes p - lr · v, with lr = {rate}."
    )


def _first(tensor):
    return tensor.detach().flatten()[0].item()


# --- 15.2 -------------------------------------------------------------------------------


def test_deep(answer, call):
    depth, width = int(torch.randint(3, 6, ())), int(torch.randint(4, 8, ()))
    model = call(answer, depth, width)
    if not isinstance(model, nn.Module):
        raise Wrong(f"Expected a torch.nn.Module, got {type(model).__name__}: inherit from it.")
    x = torch.rand(5, width)
    y = _forward(model, x, call)
    if not torch.equal(y, _forward(model, x, call)):
        raise Wrong(
            "Two calls on one input differ: layers that are made in forward have new weights "
            "each call. Make them once, in __init__."
        )
    _about_scale(model)
    _about_layers(model, depth, width)
    _about_output(model, x, y)
    _about_training(model, x)


def _forward(model, x, call):
    y = call(model, x)
    if not isinstance(y, torch.Tensor) or y.shape != x.shape:
        kind = tuple(y.shape) if isinstance(y, torch.Tensor) else type(y).__name__
        raise Wrong(f"forward must return a tensor of shape {tuple(x.shape)}, got {kind}.")
    return y


def _about_scale(model):
    if any(p.numel() == 1 for p in model.parameters()):
        return
    if any(b.numel() == 1 for b in model.buffers()):
        raise Wrong(
            "scale is a buffer: it is saved and moves with the model, and no optimizer "
            "trains it. What trains is a torch.nn.Parameter."
        )
    scale = getattr(model, "scale", None)
    why = "requires_grad does not register it; " if getattr(scale, "requires_grad", False) else ""
    raise Wrong(
        f"scale is not in parameters(), so no optimizer gets it: {why}a bare tensor is no "
        "parameter of a module. Wrap it in torch.nn.Parameter."
    )


def _about_layers(model, depth, width):
    count = sum(p.numel() for p in model.parameters())
    one = width * width + width
    if count == depth * one + 1:
        return
    if count == 1:
        raise Wrong(
            "parameters() finds none of the layers: a Module does not look into a plain list, "
            "tuple or dict. torch.nn.ModuleList is the list that it looks into."
        )
    if count == one + 1:
        raise Wrong(
            f"{depth} layers and the numbers of one: all places hold the same layer, so its "
            "weights are shared. Make a new layer for each place."
        )
    raise Wrong(
        f"Depth {depth} and width {width} make {depth} · ({width} · {width} + {width}) + 1 = "
        f"{depth * one + 1} numbers; parameters() finds {count}."
    )


def _about_output(model, x, y):
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    scale = next(p for p in model.parameters() if p.numel() == 1)
    expected = x
    with torch.no_grad():
        for layer in linears:
            expected = (expected @ layer.weight.t() + layer.bias).clamp(min=0)
        scale.fill_(2.0)
        twice = model(x)
    if torch.allclose(y, expected, atol=1e-6) and torch.allclose(twice, 2 * expected, atol=1e-6):
        return
    raise Wrong(
        "The result is another one than before the repair. Keep forward as it was: relu after "
        "every layer, and the scale, which begins at 1, in front."
    )


def _about_training(model, x):
    model.zero_grad()
    y = model(x)
    if y.grad_fn is None:
        raise Wrong("The result has no graph, so nothing can train. Is there a detach or no_grad?")
    y.sum().backward()
    still = [name for name, p in model.named_parameters() if p.grad is None]
    if still:
        raise Wrong(
            f"backward left {still[0]} without a gradient: forward does not use it, or detaches it."
        )


# --- 15.3 -------------------------------------------------------------------------------


def _small():
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def _shake(model):
    """Change all parameters and running statistics in place, as a training step does."""
    model.train()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.rand_like(p) + 0.1)
        model(torch.randn(8, 3))


def test_best_weights(answer, call):
    nan = math.nan
    for losses in ([0.9, 0.5, 0.5, 0.7, 0.6], [nan, 0.8, 0.6, 0.7], [0.8, 0.4, nan]):
        _one_history(answer, call, losses)


def _one_history(answer, call, losses):
    model, states = _small(), []
    best = call(answer)
    for name in ("update", "restore"):
        if not callable(getattr(best, name, None)):
            raise Wrong(f"{name} is missing. BestWeights needs the methods update and restore.")
    for loss in losses:
        _shake(model)
        states.append(copy.deepcopy(model.state_dict()))
        call(best.update, loss, model)
        if not _equal(model.state_dict(), states[-1]):
            raise Wrong("update changed the model. It only keeps; restore is what changes.")
    _shake(model)
    states.append(copy.deepcopy(model.state_dict()))
    _restore(best, model, call)
    lowest = min((loss, place) for place, loss in enumerate(losses) if not math.isnan(loss))[1]
    _compare_states(model.state_dict(), states, losses, lowest)
    _shake(model)
    _restore(best, model, call)
    if not _equal(model.state_dict(), states[lowest]):
        raise Wrong(
            "A second restore, after more training, brings other weights: restore handed out "
            "the kept tensors themselves. Copy into the model, as load_state_dict does."
        )


def _restore(best, model, call):
    try:
        call(best.restore, model)
    except (TypeError, AttributeError, RuntimeError) as error:
        raise Wrong(
            f"restore raised {type(error).__name__}: {str(error)[:80]}. After update it must be "
            "able to load what update kept, with every key of the state dict."
        ) from None


def _equal(one, other, keys=None):
    return all(torch.equal(one[key], other[key]) for key in keys or one)


def _compare_states(now, states, losses, lowest):
    if _equal(now, states[lowest]):
        return
    buffers = [key for key in now if "running" in key or "tracked" in key]
    parameters = [key for key in now if key not in buffers]
    if _equal(now, states[-1], parameters):
        raise Wrong(
            "The restored weights are the last ones: what update kept follows the model. A "
            "state dict, and its .copy(), hold the model's own tensors. Copy the tensors."
        )
    if _equal(now, states[lowest], parameters):
        raise Wrong(
            "The parameters are right and the running statistics are not. These buffers belong "
            "to the model: keep the whole state dict."
        )
    found = next((n for n, state in enumerate(states) if _equal(now, state)), None)
    if found is not None and found < len(losses):
        _about_choice(found, losses, lowest)
    raise Wrong("The restored weights are those of no epoch. Keep one state dict as it was.")


def _about_choice(found, losses, lowest):
    if math.isnan(losses[found]):
        raise Wrong(
            "The epoch whose loss is nan won. nan compares False with everything: let only "
            "`loss < self.loss` decide, from infinity on."
        )
    if losses[found] == losses[lowest]:
        raise Wrong("Two epochs have the lowest loss, and the later one won. Keep the earlier.")
    raise Wrong(
        f"The losses were {losses}; the kept weights are those of {losses[found]}. A loss is "
        "better when it is lower."
    )


# --- 15.4 -------------------------------------------------------------------------------

_SIZES = (10, 10, 10, 3)


class _Dropping(nn.Module):
    """Classify three features into ten classes, with dropout, and remember how it was called."""

    def __init__(self):
        super().__init__()
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(3, 10)
        self.modes, self.recorded = [], []

    def forward(self, x):
        self.modes.append(self.training)
        self.recorded.append(torch.is_grad_enabled())
        return self.last(self.drop(x))


def _batches():
    """Return batches of which the last one is small and wrong, so that it must not weigh more."""
    images = [torch.randn(size, 3) for size in _SIZES]
    return images, [torch.randint(0, 10, (size,)) for size in _SIZES]


def _truth(model, images, labels):
    """Score all examples at once, by formulas of our own."""
    x, y = torch.cat(images), torch.cat(labels)
    logits = (x @ model.last.weight.t() + model.last.bias).detach().double()
    losses = logits.logsumexp(1) - logits[torch.arange(len(y)), y]
    return losses.mean().item(), (logits.argmax(1) == y).double().mean().item(), losses


def test_evaluate(answer, call):
    for training in (True, False):
        model = _Dropping().train(training)
        images, labels = _batches()
        with torch.no_grad():  # the right class for most, so that the accuracy is far from 0
            labels[:-1] = [model.last(x).argmax(1) for x in images[:-1]]
        result = _evaluated(answer, call, model, images, labels)
        _about_result(result)
        _about_modes(model, training)
        _about_score(result, model, images, labels)


def _evaluated(answer, call, model, images, labels):
    try:
        result = call(answer, model, zip(images, labels, strict=True))
    except TypeError as error:
        if "len()" in str(error):
            raise Wrong(
                "batches may be a generator, which has no length. Count the examples as they come."
            ) from None
        raise
    except RuntimeError as error:
        if "size of tensor" in str(error):
            raise Wrong(
                "Predictions and labels of the last batch differ in length. argmax(0) goes over "
                "the examples, and stays silent as long as a batch has as many examples as "
                "classes. The classes are dimension 1."
            ) from None
        raise
    if len(model.modes) < len(_SIZES):
        raise Wrong(f"The model saw {len(model.modes)} of {len(_SIZES)} batches. Score them all.")
    return result


def _about_result(result):
    if not isinstance(result, tuple | list) or len(result) != 2:
        raise Wrong(f"Expected two floats, (loss, accuracy), got {type(result).__name__}.")
    for name, value in zip(("loss", "accuracy"), result, strict=True):
        if isinstance(value, torch.Tensor):
            graph = " with a graph" if value.grad_fn is not None else ""
            raise Wrong(
                f"The {name} is a tensor{graph}; expected a float. A sum of tensors keeps what "
                "made them alive: take .item() of each batch."
            )
        if not _is_number(value):
            raise Wrong(f"The {name} must be a float, got {type(value).__name__}.")


def _about_modes(model, training):
    if any(model.modes):
        raise Wrong(
            "Dropout was active: the model was called in training mode. eval() comes first; "
            "no_grad does not replace it."
        )
    if any(model.recorded):
        raise Wrong(
            "The forward passes were recorded for a backward that never comes, and that "
            "costs memory. Score under torch.no_grad()."
        )
    if model.training != training:
        left, came = ("eval", "training") if training else ("training", "eval")
        raise Wrong(
            f"The model came in {came} mode and was left in {left} mode. Remember "
            "model.training before, and put it back."
        )


def _about_score(result, model, images, labels):
    loss, accuracy, losses = _truth(model, images, labels)
    chunks = losses.split(_SIZES)
    means = sum(chunk.mean().item() for chunk in chunks) / len(chunks)
    if abs(result[0] - loss) > 1e-4:
        if abs(result[0] - means) < 1e-4:
            raise Wrong(
                f"The loss is {means:.3f}, the mean of {len(_SIZES)} batch means; over all "
                f"{sum(_SIZES)} examples it is {loss:.3f}. Weigh each batch by its size."
            )
        raise Wrong(f"Expected the mean loss over all examples, {loss:.3f}, got {result[0]:.3f}.")
    if abs(result[1] - accuracy) > 1e-6:
        if 1 < result[1] <= 100 and abs(result[1] / 100 - accuracy) < 1e-6:
            raise Wrong("The accuracy is in percent; expected a share from 0 to 1.")
        raise Wrong(
            f"{round(accuracy * sum(_SIZES))} of {sum(_SIZES)} are right, so the accuracy is "
            f"{accuracy:.3f}; got {result[1]:.3f}. Compare labels with argmax over the classes, "
            "dimension 1, and divide by all examples. argmax(0) stays silent when a batch has "
            "as many examples as classes."
        )


# --- 15.5 -------------------------------------------------------------------------------

_LOSSES = ("two classes, first", "two classes, lowest", "smoothed, first", "smoothed, lowest")


def _true_losses():
    """Return the four losses, computed by torch itself."""
    zero, label = torch.zeros(8, 1, dtype=torch.float64), torch.ones(8, 1, dtype=torch.float64)
    bce = functional.binary_cross_entropy_with_logits
    target = torch.arange(10)
    smooth = torch.full((10, 10), 0.01, dtype=torch.float64) + 0.9 * torch.eye(10)
    ce = functional.cross_entropy
    flat = torch.zeros(10, 10, dtype=torch.float64)
    return (
        bce(zero, label).item(),
        bce(50 * label, label).item(),
        ce(flat, target, label_smoothing=0.1).item(),
        ce(smooth.log(), target, label_smoothing=0.1).item(),
    )


def test_losses(answer, call):
    for name in _LOSSES:
        if not _is_number(answer[name]) or not math.isfinite(answer[name]):
            raise Wrong(f"“{name}” needs a finite number, got {answer[name]!r}.")
    for name, right in zip(_LOSSES, _true_losses(), strict=True):
        value = answer[name]
        if not abs(value - right) <= 0.006:
            raise Wrong(f"“{name}”: {value:g} is not it. {_why_loss(name, value, right)}")


def _why_loss(name, value, right):
    classes = 2 if name.startswith("two") else 10
    if name.endswith("first"):
        if abs(value - 1 / classes) < 0.006:
            return "1/C is the probability of a class, not a loss. The loss is minus its logarithm."
        if abs(value - math.log2(classes)) < 0.006:
            return "That is in bits. torch takes the natural logarithm, so its unit is the nat."
        if right and value > 2 * right and abs(value / right - round(value / right)) < 0.02:
            return "Did you add up the batch? The loss is its mean, whatever the batch size."
        if abs(value - math.log(10)) < 0.006:
            return "There are two classes here, so each gets a half."
        return "Logits near 0 give each class the same share. Take minus the logarithm of it."
    if classes == 2:
        return "A model that is certain and right has probability 1 for the true class: -ln 1."
    if abs(value) < 0.006:
        return (
            "0 would need a target that is certain. A smoothed target has an entropy of its own, "
            "and no prediction gets below it."
        )
    if abs(value + math.log(0.91)) < 0.006 or abs(value + math.log(0.9)) < 0.006:
        return (
            "That counts the true class alone. The nine others hold 0.01 each and count with "
            "-0.01 · ln 0.01."
        )
    return (
        "The target is 0.91 for the true class and 0.01 for each other one. The best prediction "
        "equals the target, and the loss is then the target's entropy."
    )


def _losses_source(*values):
    lines = (f'    "{name}": {value},\n' for name, value in zip(_LOSSES, values, strict=True))
    return "losses = {\n" + "".join(lines) + "}\n"


_SGD = "def sgd_step(params, velocities, lr, momentum):\n"
_DEEP = "class Deep(torch.nn.Module):\n    def __init__(self, depth, width):\n        super().__init__()\n"
_LAYERS = "torch.nn.Linear(width, width) for _ in range(depth)"
_DEEP_FORWARD = (
    "\n    def forward(self, x):\n"
    "        for layer in self.layers:\n"
    "            x = torch.relu(layer(x))\n"
    "        return self.scale * x\n"
)
_BEST = (
    "class BestWeights:\n"
    "    def __init__(self):\n"
    '        self.loss, self.state = float("inf"), None\n\n'
)
_RESTORE = "\n    def restore(self, model):\n        model.load_state_dict(self.state)\n"


def _deep(layers, scale, forward=_DEEP_FORWARD):
    return f"{_DEEP}        self.layers = {layers}\n        {scale}\n{forward}"


def _sgd(*lines, guard="    with torch.no_grad():\n", skip=True):
    """Write out an answer to 15.1: the loop with these lines in it."""
    inner = "".join(f"            {'    ' if skip else ''}{line}\n" for line in lines)
    test = "            if p.grad is not None:\n" if skip else ""
    loop = "        for p, v in zip(params, velocities):\n"
    return _SGD + (guard or "    if True:\n") + loop + test + inner


def _best(*lines, restore=_RESTORE):
    body = "".join(f"        {line}\n" for line in lines)
    return f"{_BEST}    def update(self, loss, model):\n{body}{restore}"


_COPY = "import copy\n\n\n"
_KEEP = "    self.loss, self.state = loss, copy.deepcopy(model.state_dict())"


def _evaluate(total, correct, result, **changed):
    """Write out an answer to 15.4 with these lines in the loop and this result."""
    lines = {"begin": "was = model.training", "mode": "model.eval()", "end": "model.train(was)"}
    lines |= {"guard": "with torch.no_grad():"} | changed
    return (
        "def evaluate(model, batches):\n"
        "    total = correct = count = rounds = 0\n"
        f"    {lines['begin']}\n    {lines['mode']}\n    {lines['guard']}\n"
        "        for images, labels in batches:\n"
        "            logits = model(images)\n"
        "            loss = torch.nn.functional.cross_entropy(logits, labels)\n"
        f"            total += {total}\n"
        f"            correct += {correct}\n"
        "            count += len(labels)\n"
        "            rounds += 1\n"
        f"    {lines['end']}\n"
        f"    return {result}\n"
    )


_WEIGHTED = "loss.item() * len(labels)"
_RIGHT = "(logits.argmax(1) == labels).sum().item()"
_SHARES = "total / count, correct / count"


EXERCISES = {
    "15.1": Exercise(
        title="Write the update rule",
        minutes=7,
        task="Write one step of SGD with momentum, in place: v becomes momentum · v + g, then p "
        "becomes p - lr · v. A parameter whose grad is None is skipped. The check compares five "
        "steps with torch.optim.SGD, with a learning rate that changes.",
        stub="def sgd_step(params, velocities, lr, momentum):\n"
        '    """Change each parameter and its velocity by one step of SGD."""\n'
        "    ...\n",
        answer="sgd_step",
        test=test_sgd_step,
        hints=(
            "After the step the caller's own tensors have changed, and no new ones were made.",
            "`v = momentum * v + p.grad` leaves the caller's v at zero. Which methods of a tensor "
            "end in an underscore?",
            "with torch.no_grad(): for p, v in zip(params, velocities): skip None, then "
            "v.mul_(momentum).add_(p.grad).",
        ),
        solution=_sgd("v.mul_(momentum).add_(p.grad)", "p.add_(v, alpha=-lr)"),
        wrong=(
            WrongAnswer(
                "damped",
                _sgd("v.mul_(momentum).add_(p.grad, alpha=1 - momentum)", "p.add_(v, alpha=-lr)"),
                "torch does not damp",
            ),
            WrongAnswer(
                "velocity rebound",
                _sgd("v = momentum * v + p.grad", "p.sub_(lr * v)"),
                "yesterday's velocity is lost",
            ),
            WrongAnswer(
                "no no_grad",
                _sgd("v.mul_(momentum).add_(p.grad)", "p.sub_(lr * v)", guard=None),
                "A parameter is a leaf",
            ),
            WrongAnswer(
                "gradient emptied",
                _sgd("v.mul_(momentum).add_(p.grad)", "p.sub_(lr * v)", "p.grad.zero_()"),
                "The caller still needs it",
            ),
            WrongAnswer(
                "parameter rebound",
                _sgd("v.mul_(momentum).add_(p.grad)", "p = p - lr * v"),
                "The parameters did not move",
            ),
            WrongAnswer(
                "uphill",
                _sgd("v.mul_(momentum).add_(p.grad)", "p.add_(lr * v)"),
                "moved up the gradient",
            ),
            WrongAnswer(
                "rate inside",
                _sgd("v.mul_(momentum).add_(p.grad, alpha=lr)", "p.sub_(v)"),
                "inside the velocity",
            ),
            WrongAnswer(
                "None not skipped",
                _sgd("v.mul_(momentum).add_(p.grad)", "p.sub_(lr * v)", skip=False),
                "has no gradient",
            ),
            WrongAnswer(
                "half a step",
                _sgd("v.mul_(momentum).add_(p.grad)", "p.sub_(lr * v / 2)"),
                "After step 1 the first parameter starts",
            ),
            WrongAnswer(
                "ones in place of None",
                _sgd(
                    "g = torch.ones_like(p) if p.grad is None else p.grad",
                    "v.mul_(momentum).add_(g)",
                    "p.sub_(lr * v)",
                    skip=False,
                ),
                "The parameter without a gradient moved",
            ),
            WrongAnswer(
                "momentum forgotten",
                _sgd("v.copy_(p.grad)", "p.sub_(lr * v)"),
                "After step 2 the velocity starts",
            ),
        ),
    ),
    "15.2": Exercise(
        title="Repair a model that does not train",
        minutes=5,
        task="An optimizer gets none of this model's numbers. Repair it for any depth and width: "
        "every layer trains, and so does `scale`. What forward computes stays as it is.",
        stub=_deep(f"[{_LAYERS}]", "self.scale = torch.ones(1)"),
        answer="Deep",
        test=test_deep,
        hints=(
            "A Module registers what is set as its attribute, if that is a Module or a Parameter.",
            "`list(Deep(3, 4).parameters())` is empty: a list is no Module, a tensor no Parameter.",
            "self.layers = torch.nn.ModuleList(...), and torch.nn.Parameter around the tensor.",
        ),
        solution=_deep(
            f"torch.nn.ModuleList({_LAYERS})", "self.scale = torch.nn.Parameter(torch.ones(1))"
        ),
        wrong=(
            WrongAnswer(
                "one layer reused",
                _deep(
                    "torch.nn.ModuleList([torch.nn.Linear(width, width)] * depth)",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                ),
                "all places hold the same layer",
            ),
            WrongAnswer(
                "requires_grad only",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.ones(1, requires_grad=True)",
                ),
                "requires_grad does not register it",
            ),
            WrongAnswer(
                "buffer",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    'self.register_buffer("scale", torch.ones(1))',
                ),
                "no optimizer trains it",
            ),
            WrongAnswer(
                "layers in forward",
                _deep(
                    "depth",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                    "\n    def forward(self, x):\n"
                    "        for _ in range(self.layers):\n"
                    "            x = torch.relu(torch.nn.Linear(x.shape[1], x.shape[1])(x))\n"
                    "        return self.scale * x\n",
                ),
                "new weights each call",
            ),
            WrongAnswer(
                "scale forgotten",
                _deep(f"torch.nn.ModuleList({_LAYERS})", "self.scale = torch.ones(1)"),
                "a bare tensor is no parameter",
            ),
            WrongAnswer(
                "tuple",
                _deep(f"tuple({_LAYERS})", "self.scale = torch.nn.Parameter(torch.ones(1))"),
                "torch.nn.ModuleList is the list",
            ),
            WrongAnswer(
                "no bias",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS.replace('width)', 'width, bias=False)')})",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                ),
                "parameters() finds",
            ),
            WrongAnswer(
                "no module",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                ).replace("(torch.nn.Module)", ""),
                "inherit from it",
            ),
            WrongAnswer(
                "no return",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                    _DEEP_FORWARD.replace("return ", ""),
                ),
                "forward must return a tensor",
            ),
            WrongAnswer(
                "detached result",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                    _DEEP_FORWARD.replace("self.scale * x", "(self.scale * x).detach()"),
                ),
                "has no graph",
            ),
            WrongAnswer(
                "detached layers",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                    _DEEP_FORWARD.replace("layer(x)", "layer(x.detach())"),
                ),
                "does not use it",
            ),
            WrongAnswer(
                "no relu",
                _deep(
                    f"torch.nn.Sequential(*[{_LAYERS}])",
                    "self.scale = torch.nn.Parameter(torch.ones(1))",
                    "\n    def forward(self, x):\n        return self.scale * self.layers(x)\n",
                ),
                "relu after every layer",
            ),
        ),
    ),
    "15.3": Exercise(
        title="Keep the best weights",
        minutes=6,
        task="`update` is called after every epoch. Keep the model's whole state when the loss is "
        "the lowest so far; of two equal losses the earlier stays, and nan never wins. `restore` "
        "brings that state back, also after more training.",
        stub=_best('"""Keep the state if this loss is the lowest so far."""', "..."),
        answer="BestWeights",
        test=test_best_weights,
        hints=(
            "What is kept must not change when the model does: it needs bytes of its own.",
            "After `best = model.state_dict().copy()` the test `torch.equal(best[key], "
            "model.state_dict()[key])` stays True for ever.",
            "if loss < self.loss: keep loss and copy.deepcopy(model.state_dict()).",
        ),
        solution=_COPY + _best("if loss < self.loss:", _KEEP),
        wrong=(
            WrongAnswer(
                "state dict itself",
                _best(
                    "if loss < self.loss:", "    self.loss, self.state = loss, model.state_dict()"
                ),
                "follows the model",
            ),
            WrongAnswer(
                "shallow copy",
                _best(
                    "if loss < self.loss:",
                    "    self.loss, self.state = loss, model.state_dict().copy()",
                ),
                "follows the model",
            ),
            WrongAnswer(
                "parameters only",
                _best(
                    "if loss < self.loss:",
                    "    self.loss = loss",
                    "    self.state = {k: p.detach().clone() for k, p in model.named_parameters()}",
                    restore=_RESTORE.replace("state)", "state, strict=False)"),
                ),
                "keep the whole state dict",
            ),
            WrongAnswer(
                "nan wins",
                _COPY + _best("if not loss >= self.loss:", _KEEP),
                "whose loss is nan won",
            ),
            WrongAnswer(
                "stuck at nan",
                _COPY + _best("if self.state is None or loss < self.loss:", _KEEP),
                "whose loss is nan won",
            ),
            WrongAnswer(
                "ties overwrite",
                _COPY + _best("if loss <= self.loss:", _KEEP),
                "the later one won",
            ),
            WrongAnswer(
                "highest wins",
                _COPY + _best("if self.state is None or loss > self.loss:", _KEEP),
                "better when it is lower",
            ),
            WrongAnswer(
                "rounded",
                _best(
                    "if loss < self.loss:",
                    "    self.loss = loss",
                    "    self.state = {k: t.half() for k, t in model.state_dict().items()}",
                ),
                "those of no epoch",
            ),
            WrongAnswer(
                "no restore",
                _COPY + _best("if loss < self.loss:", _KEEP, restore=""),
                "restore is missing",
            ),
            WrongAnswer(
                "back at once",
                _COPY
                + _best(
                    "if loss < self.loss:",
                    _KEEP,
                    "elif self.state:",
                    "    model.load_state_dict(self.state)",
                ),
                "update changed the model",
            ),
            WrongAnswer(
                "strict keys",
                _best(
                    "if loss < self.loss:",
                    "    self.loss = loss",
                    "    self.state = {k: p.detach().clone() for k, p in model.named_parameters()}",
                ),
                "every key of the state dict",
            ),
            WrongAnswer(
                "kept tensors handed out",
                _COPY
                + _best(
                    "if loss < self.loss:",
                    _KEEP,
                    restore=_RESTORE.replace("state)", "state, assign=True)"),
                ),
                "handed out the kept tensors",
            ),
        ),
    ),
    "15.4": Exercise(
        title="Score a model",
        minutes=8,
        task="Return (loss, accuracy) over all examples, as two floats, in one pass. `batches` "
        "yields images and labels, possibly from a generator; the last batch may be smaller. The "
        "model is called as in use, and its mode is put back.",
        stub="def evaluate(model, batches):\n"
        '    """Return mean cross-entropy and accuracy over all examples."""\n'
        "    ...\n",
        answer="evaluate",
        test=test_evaluate,
        hints=(
            "Every example weighs the same, whatever batch it came in.",
            "Three batches of 10 with loss 1 and one of 3 with loss 9: the mean of the batch "
            "means is 3, the mean over the examples 1.7.",
            "was = model.training, model.eval(), and under no_grad "
            "total += loss.item() * len(labels).",
        ),
        solution=_evaluate(_WEIGHTED, _RIGHT, _SHARES),
        wrong=(
            WrongAnswer(
                "mean of means",
                _evaluate("loss.item()", _RIGHT, "total / rounds, correct / count"),
                "Weigh each batch by its size",
            ),
            WrongAnswer(
                "left in eval",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES, end="pass"),
                "was left in eval mode",
            ),
            WrongAnswer(
                "always back to training",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES, end="model.train()"),
                "was left in training mode",
            ),
            WrongAnswer(
                "a graph",
                _evaluate("loss * len(labels)", _RIGHT, _SHARES, guard="if True:"),
                "is a tensor with a graph",
            ),
            WrongAnswer(
                "recorded",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES, guard="if True:"),
                "a backward that never comes",
            ),
            WrongAnswer(
                "argmax over the examples",
                _evaluate(_WEIGHTED, "(logits.argmax(0) == labels).sum().item()", _SHARES),
                "argmax(0) goes over the examples",
            ),
            WrongAnswer(
                "argmax(0)",
                _evaluate(
                    _WEIGHTED,
                    "(logits.argmax(0)[: len(labels)] == labels).sum().item()",
                    _SHARES,
                ),
                "argmax(0) stays silent",
            ),
            WrongAnswer(
                "no eval",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES, mode="pass"),
                "Dropout was active",
            ),
            WrongAnswer(
                "percent",
                _evaluate(_WEIGHTED, _RIGHT, "total / count, 100 * correct / count"),
                "in percent",
            ),
            WrongAnswer(
                "length of a generator",
                _evaluate(_WEIGHTED, _RIGHT, "total / len(batches), correct / count"),
                "a generator, which has no length",
            ),
            WrongAnswer(
                "first batch only",
                "def evaluate(model, batches):\n"
                "    images, labels = next(iter(batches))\n"
                "    return 0.0, 0.0\n",
                "of 4 batches",
            ),
            WrongAnswer(
                "sum of losses",
                _evaluate(_WEIGHTED, _RIGHT, "total, correct / count"),
                "Expected the mean loss over all examples",
            ),
            WrongAnswer(
                "text",
                _evaluate(_WEIGHTED, _RIGHT, 'total / count, f"{correct / count:.0%}"'),
                "must be a float",
            ),
            WrongAnswer(
                "loss only",
                _evaluate(_WEIGHTED, _RIGHT, "total / count"),
                "Expected two floats",
            ),
        ),
    ),
    "15.5": Exercise(
        title="State the first and the lowest loss",
        minutes=5,
        task="Without running a model, to two decimals: the loss before training (all logits 0) "
        "and the lowest possible one, for binary cross-entropy with two classes, and for "
        "cross-entropy with ten classes and `label_smoothing=0.1`, whose target is 0.91 for the "
        "true class and 0.01 for each other one.",
        stub=_losses_source(*["..."] * 4),
        answer="losses",
        test=test_losses,
        hints=(
            "The loss is -Σ target · ln(prediction), and it is lowest where both are equal.",
            "For a certain target, 1 for one class, the lowest value is -ln 1 = 0. A smoothed "
            "target is not certain.",
            "The last one is -(0.91 · ln 0.91 + 9 · 0.01 · ln 0.01).",
        ),
        solution=_losses_source(0.693, 0.0, 2.303, 0.500),
        wrong=(
            WrongAnswer("1/C", _losses_source(0.5, 0.0, 0.1, 0.5), "the probability of a class"),
            WrongAnswer("bits", _losses_source(1.0, 0.0, 3.32, 0.5), "natural logarithm"),
            WrongAnswer(
                "smoothing forgotten",
                _losses_source(0.693, 0.0, 2.303, 0.0),
                "an entropy of its own",
            ),
            WrongAnswer(
                "summed over the batch",
                _losses_source(0.693 * 64, 0.0, 2.303, 0.5),
                "add up the batch",
            ),
            WrongAnswer(
                "true class only",
                _losses_source(0.693, 0.0, 2.303, 0.094),
                "counts the true class alone",
            ),
            WrongAnswer("never 0", _losses_source(0.693, 0.31, 2.303, 0.5), "certain and right"),
            WrongAnswer(
                "a quarter", _losses_source(0.25, 0.0, 2.303, 0.5), "Logits near 0 give each class"
            ),
            WrongAnswer(
                "ten for two", _losses_source(2.303, 0.0, 2.303, 0.5), "There are two classes here"
            ),
            WrongAnswer(
                "a tenth of the first",
                _losses_source(0.693, 0.0, 2.303, 0.23),
                "the target's entropy",
            ),
            WrongAnswer(
                "words", _losses_source('"ln 2"', 0.0, 2.303, 0.5), "needs a finite number"
            ),
        ),
    ),
}
