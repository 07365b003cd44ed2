"""Ask and check what 15_train_a_first_model teaches."""

import copy
import math
import weakref

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


def _plain(value):
    """Return the number in a tensor or NumPy value without dimensions, else the value itself."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


# --- 15.1 -------------------------------------------------------------------------------

_RATE = 0.5


class _Token:
    """Stand for a graph: this object lives as long as the graph does."""


class _Traced(torch.autograd.Function):
    """Hand a value on, and tell the model when backward comes by and how long the graph lives."""

    @staticmethod
    def forward(ctx, logits, model):
        ctx.model, ctx.token = model, _Token()
        model.tokens.append(weakref.ref(ctx.token))
        return logits.clone()

    @staticmethod
    def backward(ctx, gradient):
        ctx.model.events.append("backward")
        return gradient, None


class _Watched(nn.Module):
    """Classify four pixels into ten classes, and remember how it was called and with what."""

    def __init__(self, images):
        super().__init__()
        self.layer, self.known = nn.Linear(4, 10), images.flatten(1)
        self.modes, self.batches, self.alive = [], [], []
        self.tokens, self.events = [], []

    def forward(self, x):
        rows = x.flatten(1)
        self.modes.append(self.training)
        self.batches.append((rows[:, None] == self.known).all(-1).long().argmax(1))
        self.alive.append(sum(token() is not None for token in self.tokens))
        return _Traced.apply(self.layer(rows), self)


class _Stepping(torch.optim.SGD):
    """Take steps, and tell the model of each."""

    def __init__(self, model):
        super().__init__(model.parameters(), lr=_RATE)
        self.model = model

    def step(self, closure=None):
        loss = super().step(closure)
        self.model.events.append("step")
        return loss


def test_one_epoch(answer, call):
    size = int(torch.randint(4, 8, ()))
    images, labels = torch.rand(4 * size + 2, 1, 2, 2), torch.randint(0, 10, (4 * size + 2,))
    orders = []
    for _ in range(2):
        model = _Watched(images).eval()
        start = [p.detach().double() for p in copy.deepcopy(model.layer).parameters()]
        generator = torch.Generator().manual_seed(7)
        result = call(answer, model, _Stepping(model), images, labels, size, generator)
        _about_batches(model, labels, size)
        _about_order(model, orders)
        _about_events(model)
        _about_weights(model, start, labels)
        _about_epoch_loss(result, model, start, labels)


def _about_batches(model, labels, size):
    sizes, seen = [len(batch) for batch in model.batches], sum(map(len, model.batches))
    if seen == len(labels) - 2 and set(sizes) == {size}:
        raise Wrong(
            f"{len(labels)} examples in batches of {size} leave a last batch of 2, and it was "
            "dropped. Those examples count as well: take the smaller batch too."
        )
    if seen != len(labels):
        raise Wrong(f"The model saw {seen} examples of {len(labels)}. An epoch is all of them.")
    if any(n != size for n in sizes[:-1]) or sizes[-1] > size:
        raise Wrong(f"The batches held {sizes} examples; asked for was batch_size = {size}.")
    if not all(model.modes):
        raise Wrong(
            "The model came in eval mode, as a score leaves it, and was trained in it: dropout "
            "would stay off. Call model.train() before the first batch."
        )


def _about_order(model, orders):
    orders.append(torch.cat(model.batches).tolist())
    if len(set(orders[-1])) < len(orders[-1]):
        raise Wrong(
            "Some examples came twice and others never: they were drawn with replacement. An "
            "order of all of them is torch.randperm(n, generator=generator)."
        )
    if orders[-1] == sorted(orders[-1]):
        raise Wrong(
            "The examples came in the order in which they lie. Draw a new order for the epoch, "
            "from the generator."
        )
    if orders[-1] != orders[0]:
        raise Wrong(
            "Two generators with one seed gave two orders: the order was drawn elsewhere. Pass "
            "generator=generator to what draws it."
        )


def _about_events(model):
    events, count = model.events, len(model.batches)
    if "backward" not in events:
        raise Wrong("backward was never called, so there is no gradient for a step to follow.")
    if events.count("step") != count:
        raise Wrong(
            f"{count} batches, and optimizer.step() was called {events.count('step')} times. "
            "Each batch brings one step."
        )
    if events[0] == "step":
        raise Wrong(
            "optimizer.step() came before backward: it followed the gradients of the batch "
            "before, or none. First backward computes them, then the step uses them."
        )
    if model.alive[-1] > 2:
        raise Wrong(
            f"At the last batch {model.alive[-1]} graphs of earlier batches were still alive: "
            "adding up the losses keeps the graph of each. Add loss.item(), a number."
        )


def _replayed(model, start, labels, *, emptied=True, matched=True):
    """Return weights and batch losses after the same batches, by formulas of our own."""
    weight, bias = (value.clone() for value in start)
    gradients, losses, done = [0, 0], [], 0
    for batch in model.batches:
        x = model.known[batch].double()
        truth = labels[batch] if matched else labels[done : done + len(batch)]
        logits = x @ weight.t() + bias
        losses.append((logits.logsumexp(1) - logits[torch.arange(len(x)), truth]).mean().item())
        error = (logits.softmax(1) - functional.one_hot(truth, 10)) / len(x)
        new = [error.t() @ x, error.sum(0)]
        gradients = new if emptied else [g + n for g, n in zip(gradients, new, strict=True)]
        weight, bias = weight - _RATE * gradients[0], bias - _RATE * gradients[1]
        done += len(batch)
    return [weight, bias], losses


def _about_weights(model, start, labels):
    now = [p.detach().double() for p in model.layer.parameters()]

    def equal(expected):
        return all(torch.allclose(p, q, atol=1e-5) for p, q in zip(now, expected, strict=True))

    if equal(_replayed(model, start, labels)[0]):
        return
    if equal(start):
        raise Wrong(
            "The weights did not move: the gradients were emptied between backward and step. "
            "zero_grad belongs before backward, or after the step."
        )
    if equal(_replayed(model, start, labels, emptied=False)[0]):
        raise Wrong(
            "Every step followed the sum of all gradients so far: backward adds to what is in "
            ".grad. Call optimizer.zero_grad() for each batch."
        )
    if equal(_replayed(model, start, labels, matched=False)[0]):
        raise Wrong(
            "The images are in a new order and the labels in the old one, so each image learns "
            "another one's label. Index both with the same order."
        )
    raise Wrong(
        "After the epoch the weights are others than those of torch's loop. Each step follows "
        "the gradient of the mean cross-entropy of its own batch."
    )


def _about_epoch_loss(result, model, start, labels):
    if isinstance(result, torch.Tensor) and result.requires_grad:
        raise Wrong(
            "The returned loss is a tensor with a graph, which keeps what made it alive. "
            "Return a float: add up loss.item()."
        )
    result = _plain(result)
    if not _is_number(result):
        raise Wrong(f"Expected the mean loss as a float, got {type(result).__name__}.")
    losses = _replayed(model, start, labels)[1]
    means = sum(losses) / len(losses)
    parts = zip(losses, model.batches, strict=True)
    right = sum(loss * len(batch) for loss, batch in parts) / len(labels)
    if abs(result - right) < 1e-5:
        return
    if abs(result - means) < 1e-5:
        raise Wrong(
            f"The loss is {means:.4f}, the mean of {len(losses)} batch means; over all "
            f"{len(labels)} examples it is {right:.4f}. Weigh each loss by len(batch)."
        )
    raise Wrong(
        f"Expected the mean of the losses of all examples, each from before its step, {right:.4f}; "
        f"got {result:.4f}."
    )


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
    if isinstance(scale, nn.Parameter):
        raise Wrong(
            f"scale trains now, but it holds {scale.numel()} numbers and was one. Keep "
            "torch.ones(1) inside the Parameter."
        )
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


class _Log:
    """Note how a model was called. A deep copy of the model writes into the same log."""

    def __init__(self):
        self.examples, self.modes, self.recorded = 0, [], []

    def __deepcopy__(self, memo):
        return self


class _Dropping(nn.Module):
    """Classify three features into ten classes, with dropout, and remember how it was called."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)  # fresh: divides by sqrt(1 + eps) when in use
        self.drop, self.last = nn.Dropout(0.5), nn.Linear(3, 10)
        self.log = _Log()

    def forward(self, x):
        self.log.examples += len(x)
        self.log.modes.append(any(module.training for module in self.modules()))
        self.log.recorded.append(torch.is_grad_enabled())
        return self.last(self.drop(self.norm(x)))


class _Once:
    """Hand out batches once, as a generator does, and count how often the end was reached."""

    def __init__(self, images, labels):
        self.pairs, self.ends = zip(images, labels, strict=True), 0

    def __iter__(self):
        return self

    def __next__(self):
        for pair in self.pairs:
            return pair
        self.ends += 1
        raise StopIteration


def _batches():
    """Return batches of which the last one is small and wrong, so that it must not weigh more."""
    images = [torch.randn(size, 3) for size in _SIZES]
    return images, [torch.randint(0, 10, (size,)) for size in _SIZES]


def _truth(model, images, labels):
    """Score all examples at once, by formulas of our own."""
    x, y = torch.cat(images), torch.cat(labels)
    x = x / math.sqrt(1 + model.norm.eps)
    logits = (x @ model.last.weight.t() + model.last.bias).detach().double()
    losses = logits.logsumexp(1) - logits[torch.arange(len(y)), y]
    return losses.mean().item(), (logits.argmax(1) == y).double().mean().item(), losses


def test_evaluate(answer, call):
    for training, other in ((True, ""), (False, ""), (True, "norm"), (False, "drop")):
        model = _Dropping().train(training)
        odd = getattr(model, other, None)  # frozen in training, or sampling while in use
        if odd is not None:
            odd.train(not training)
        images, labels = _batches()
        with torch.no_grad():  # the right class for most, so that the accuracy is far from 0
            labels[:-1] = [model.last(x).argmax(1) for x in images[:-1]]
        result = _evaluated(answer, call, model, images, labels)
        _about_result(result)
        _about_modes(model, training, odd)
        _about_score(result, model, images, labels)


def _evaluated(answer, call, model, images, labels):
    batches = _Once(images, labels)
    try:
        result = call(answer, model, batches)
    except ZeroDivisionError:
        result = None
        if batches.ends < 2:
            raise
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
    if batches.ends > 1:
        raise Wrong(
            "There was a second pass over batches, and a generator is exhausted after the first: "
            "the second one sees no batch at all. Collect all that is needed in one pass."
        )
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


def _about_modes(model, training, odd):
    if any(model.log.modes):
        raise Wrong(
            "Dropout was active: the model was called in training mode. eval() comes first; "
            "no_grad does not replace it."
        )
    if any(model.log.recorded):
        raise Wrong(
            "The forward passes were recorded for a backward that never comes, and that "
            "costs memory. Score under torch.no_grad()."
        )
    if model.training != training:
        left, came = ("eval", "training") if training else ("training", "eval")
        raise Wrong(
            f"The model came in {came} mode and was left in {left} mode. Remember "
            "the mode of each module before, and put it back."
        )
    if odd is not None and odd.training == training:
        raise Wrong(
            f"The model's own mode is back, and that of its {type(odd).__name__}, which was the "
            "other one, is not: train(mode) sets every module inside. Remember module.training "
            "for each of model.modules()."
        )


def _about_score(result, model, images, labels):
    loss, accuracy, losses = _truth(model, images, labels)
    chunks = losses.split(_SIZES)
    means = sum(chunk.mean().item() for chunk in chunks) / len(chunks)
    right = abs(result[0] - loss) <= 1e-4 and abs(result[1] - accuracy) <= 1e-6
    seen = model.log.examples
    if not right and seen < sum(_SIZES):
        raise Wrong(f"The model saw {seen} of {sum(_SIZES)} examples. Score them all.")
    if not abs(result[0] - loss) <= 1e-4:  # nan is never close
        if abs(result[0] - means) < 1e-4:
            raise Wrong(
                f"The loss is {means:.3f}, the mean of {len(_SIZES)} batch means; over all "
                f"{sum(_SIZES)} examples it is {loss:.3f}. Weigh each batch by its size."
            )
        raise Wrong(f"Expected the mean loss over all examples, {loss:.3f}, got {result[0]:.3f}.")
    if not abs(result[1] - accuracy) <= 1e-6:
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
    values = {name: _plain(answer[name]) for name in _LOSSES}
    for name, value in values.items():
        if not _is_number(value) or not math.isfinite(value):
            raise Wrong(f"“{name}” needs a finite number, got {value!r}.")
    for name, right in zip(_LOSSES, _true_losses(), strict=True):
        value = values[name]
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


_EPOCH = "def one_epoch(model, optimizer, images, labels, batch_size, generator):\n"
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


def _epoch(*, result="total / len(labels)", total="loss.item() * len(batch)", **changed):
    """Write out an answer to 15.1 with these lines."""
    lines = {"mode": "model.train()", "order": "torch.randperm(len(labels), generator=generator)"}
    lines |= {"cut": ".split(batch_size)", "truth": "labels[batch]", "reduction": ""}
    lines |= {
        "step": "optimizer.zero_grad()\n        loss.backward()\n        optimizer.step()",
        "after": "",
    }
    lines |= changed
    return (
        f"{_EPOCH}"
        f"    {lines['mode']}\n"
        "    total = 0.0\n"
        f"    for batch in {lines['order']}{lines['cut']}:\n"
        "        logits = model(images[batch])\n"
        "        loss = torch.nn.functional.cross_entropy("
        f"logits, {lines['truth']}{lines['reduction']})\n"
        f"        {lines['step']}\n"
        f"        total += {total}\n"
        f"{lines['after']}"
        f"    return {result}\n"
    )


def _best(*lines, restore=_RESTORE):
    body = "".join(f"        {line}\n" for line in lines)
    return f"{_BEST}    def update(self, loss, model):\n{body}{restore}"


_COPY = "import copy\n\n\n"
_KEEP = "    self.loss, self.state = loss, copy.deepcopy(model.state_dict())"


_PUT_BACK = "for module, mode in modes.items():\n        module.training = mode"


def _evaluate(total, correct, result, **changed):
    """Write out an answer to 15.4 with these lines in the loop and this result."""
    lines = {"begin": "modes = {module: module.training for module in model.modules()}"}
    lines |= {"mode": "model.eval()", "guard": "with torch.no_grad():", "end": _PUT_BACK} | changed
    more = [f"            {lines['more']}\n"] if "more" in lines else []
    return (
        "def evaluate(model, batches):\n"
        "    total = correct = count = 0\n"
        f"    {lines['begin']}\n    {lines['mode']}\n    {lines['guard']}\n"
        "        for images, labels in batches:\n"
        "            logits = model(images)\n"
        "            loss = torch.nn.functional.cross_entropy(logits, labels)\n"
        f"            total += {total}\n"
        f"            correct += {correct}\n"
        "            count += len(labels)\n"
        f"{''.join(more)}"
        f"    {lines['end']}\n"
        f"    return {result}\n"
    )


_WEIGHTED = "loss.item() * len(labels)"
_RIGHT = "(logits.argmax(1) == labels).sum().item()"
_SHARES = "total / count, correct / count"


EXERCISES = {
    "15.1": Exercise(
        title="Write the training loop",
        minutes=9,
        task="Train for one epoch: put the model in training mode, draw an order of all examples "
        "from `generator`, cut it into batches of `batch_size` (the last one may be smaller), and "
        "take one step per batch on its mean cross-entropy. Return the mean loss over all "
        "examples as a float.",
        stub=_EPOCH + '    """Take one step per batch; return the mean loss of the epoch."""\n'
        "    ...\n",
        answer="one_epoch",
        test=test_one_epoch,
        hints=(
            "Four lines make a step: forget the old gradients, compute the loss, compute the "
            "gradients, change the parameters.",
            "23 examples in batches of 5 are five batches, and the last of 3 weighs 3/23 of the "
            "mean loss, not a fifth.",
            "for batch in torch.randperm(len(labels), generator=generator).split(batch_size): "
            "index images and labels with batch.",
        ),
        solution=_epoch(),
        wrong=(
            WrongAnswer(
                "no zero_grad",
                _epoch(step="loss.backward()\n        optimizer.step()"),
                "the sum of all gradients so far",
            ),
            WrongAnswer("left in eval", _epoch(mode="pass"), "came in eval mode"),
            WrongAnswer(
                "mean of batch means",
                _epoch(result="total / -(-len(labels) // batch_size)", total="loss.item()"),
                "batch means; over all",
            ),
            WrongAnswer(
                "a graph returned",
                _epoch(total="loss.item() * len(batch)", result="loss * total / len(labels)"),
                "is a tensor with a graph",
            ),
            WrongAnswer(
                "graphs kept",
                _epoch(total="loss * len(batch)", result="total.item() / len(labels)"),
                "keeps the graph of each",
            ),
            WrongAnswer(
                "step before backward",
                _epoch(
                    step="optimizer.zero_grad()\n        optimizer.step()\n        loss.backward()"
                ),
                "came before backward",
            ),
            WrongAnswer(
                "last batch dropped",
                _epoch(cut="[: len(labels) // batch_size * batch_size].split(batch_size)"),
                "it was dropped",
            ),
            WrongAnswer(
                "not shuffled", _epoch(order="torch.arange(len(labels))"), "in which they lie"
            ),
            WrongAnswer(
                "generator unused",
                _epoch(order="torch.randperm(len(labels))"),
                "the order was drawn elsewhere",
            ),
            WrongAnswer(
                "with replacement",
                _epoch(order="torch.randint(len(labels), (len(labels),), generator=generator)"),
                "drawn with replacement",
            ),
            WrongAnswer(
                "labels not shuffled",
                _epoch(
                    truth="labels[done : done + len(batch)]",
                    mode="model.train()\n    done = 0",
                    after="        done += len(batch)\n",
                ),
                "the labels in the old one",
            ),
            WrongAnswer("batch size unused", _epoch(cut=".split(64)"), "asked for was batch_size"),
            WrongAnswer("first batch only", _epoch(after="        break\n"), "An epoch is all"),
            WrongAnswer(
                "emptied before the step",
                _epoch(
                    step="loss.backward()\n        optimizer.zero_grad()\n        optimizer.step()"
                ),
                "emptied between backward and step",
            ),
            WrongAnswer(
                "no step",
                _epoch(step="optimizer.zero_grad()\n        loss.backward()"),
                "Each batch brings one step",
            ),
            WrongAnswer(
                "no backward",
                _epoch(step="optimizer.zero_grad()\n        optimizer.step()"),
                "backward was never called",
            ),
            WrongAnswer(
                "summed over the batch",
                _epoch(reduction=', reduction="sum"', total="loss.item()"),
                "mean cross-entropy of its own batch",
            ),
            WrongAnswer("last loss", _epoch(result="loss.item()"), "each from before its step"),
            WrongAnswer("no return", _epoch(result="None"), "Expected the mean loss as a float"),
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
                "one scale per column",
                _deep(
                    f"torch.nn.ModuleList({_LAYERS})",
                    "self.scale = torch.nn.Parameter(torch.ones(width))",
                ),
                "Keep torch.ones(1) inside",
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
        "model is called as in use; afterwards each of its modules has the mode that it came with.",
        stub="def evaluate(model, batches):\n"
        '    """Return mean cross-entropy and accuracy over all examples."""\n'
        "    ...\n",
        answer="evaluate",
        test=test_evaluate,
        hints=(
            "Every example weighs the same, whatever batch it came in.",
            "Three batches of 10 with loss 1 and one of 3 with loss 9: the mean of the batch "
            "means is 3, the mean over the examples 1.7.",
            "modes = {m: m.training for m in model.modules()}, model.eval(), and under no_grad "
            "total += loss.item() * len(labels).",
        ),
        solution=_evaluate(_WEIGHTED, _RIGHT, _SHARES),
        wrong=(
            WrongAnswer(
                "mean of means",
                _evaluate(
                    "loss.item()",
                    _RIGHT,
                    "total / rounds, correct / count",
                    begin="rounds = 0\n    modes = {m: m.training for m in model.modules()}",
                    more="rounds += 1",
                ),
                "Weigh each batch by its size",
            ),
            WrongAnswer(
                "left in eval",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES, end="pass"),
                "was left in eval mode",
            ),
            WrongAnswer(
                "one mode for all",
                _evaluate(
                    _WEIGHTED, _RIGHT, _SHARES, begin="was = model.training", end="model.train(was)"
                ),
                "train(mode) sets every module inside",
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
                "two passes",
                _evaluate(
                    _WEIGHTED,
                    _RIGHT,
                    _SHARES,
                    begin="modes = {m: m.training for m in model.modules()}\n"
                    "    every = torch.cat([labels for _, labels in batches])",
                ),
                "a generator is exhausted",
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
                "saw 0 of 33 examples",
            ),
            WrongAnswer(
                "smaller batch skipped",
                _evaluate(_WEIGHTED, _RIGHT, _SHARES).replace(
                    "            logits =",
                    "            if len(labels) < 10:\n                continue\n            logits =",
                ),
                "saw 30 of 33 examples",
            ),
            WrongAnswer(
                "a copy in training mode",
                _evaluate(
                    _WEIGHTED,
                    _RIGHT,
                    _SHARES,
                    begin="import copy\n    model = copy.deepcopy(model)",
                    mode="model.train()",
                    end="pass",
                ),
                "Dropout was active",
            ),
            WrongAnswer(
                "a loss of nan",
                _evaluate(_WEIGHTED, _RIGHT, "float('nan'), correct / count"),
                "got nan",
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
