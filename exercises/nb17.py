"""Ask and check what 17_train_a_convolutional_network teaches."""

import copy
import inspect
import math
import operator
import statistics

import torch
import torch.nn.functional as F
from torch import nn

from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "17.p1": Choice(
        question="Each validation digit moves one pixel sideways. What is left of the 96 of 100?",
        options={
            "about 95 of 100": "You see the same digit. The network sees 64 columns of numbers, "
            "and most of them have changed.",
            "about 80 of 100": "Neighboring pixels are alike, but each has weights of its own.",
            "about half": "Right: moved strokes meet the weights of other places.",
            "about 10 of 100": "That is chance. Some strokes are wide enough to survive one pixel.",
        },
    ),
    "17.p2": Number(
        question="A layer Conv2d(1, 8, 3, padding=1, bias=False) turns 8 × 8 pixels into 8 "
        "channels of 8 × 8. Written as a matrix it has 64 × 512 entries. How many different "
        "numbers, apart from 0, stand in it?",
        unit="numbers",
        notes=(
            (0, 50, "One filter has nine numbers, and there is one filter for each channel."),
            (50, 100, "You counted the parameters: eight filters of nine numbers."),
            (100, 10_000, "About that many entries are not zero. They repeat."),
            (10_000, 1e9, "That is a linear layer: every entry free, nothing shared."),
        ),
    ),
    "17.p3": Choice(
        question="The same shift by one pixel sideways, and a network with two convolutions. "
        "What does it keep?",
        options={
            "about all": "The map of a convolution moves along with the image. Neither the pooling "
            "behind it nor the last layer does.",
            "about three quarters": "Right: the map moves along, what reads it does not.",
            "about half": "That is the network without convolutions. Sharing a filter saves a part.",
        },
    ),
    "17.p4": Choice(
        question="One digit is put into two batches with different company. In which mode are "
        "its logits equal?",
        options={
            "in both": "In training mode BatchNorm takes mean and variance from the whole batch.",
            "only in training": "It is the other way round: training mode looks at the batch.",
            "only in evaluation": "Right: only stored statistics do not depend on the company.",
            "in neither": "In evaluation mode every image is computed on its own.",
        },
    ),
    "17.p5": Choice(
        question="One change is drawn for each training image. Which one costs most on "
        "unchanged digits?",
        options={
            "flipping": "Right: a mirrored 3 still carries the label 3, and no reader would "
            "write it so.",
            "shifting": "It costs little here. Shifted digits are harder, and still digits.",
            "rotating": "Up to 15 degrees is what handwriting does anyway.",
            "brightness": "The strokes keep their form.",
            "contrast": "The strokes keep their form.",
        },
    ),
    "17.p6": Choice(
        question="Which ingredient, added alone, raises the accuracy on unchanged digits most?",
        options={
            "dropout": "It slows learning down, and 140 steps are few.",
            "weight decay": "It keeps weights small. Small weights were not what was missing.",
            "BatchNorm": "Right: the same 140 steps lead further.",
            "shifting": "It makes the task harder. That pays on another test.",
        },
    ),
}  # fmt: skip


def _tensor(result, what):
    if not isinstance(result, torch.Tensor):
        missing = " Is a return missing?" if result is None else ""
        raise Wrong(f"Return {what} as a tensor, got {type(result).__name__}.{missing}")
    return result.detach()


def _names_in(answer):
    """Return the names that an answer uses, also inside comprehensions."""
    todo, names = [getattr(inspect.unwrap(answer), "__code__", None)], set()
    while todo:
        code = todo.pop()
        if code is not None:
            names.update(code.co_names)
            todo += [const for const in code.co_consts if inspect.iscode(const)]
    return names


# --- 17.1 -------------------------------------------------------------------------------

TORCH_CONVOLUTIONS = {name for at in (torch, F, nn) for name in dir(at) if "conv" in name.lower()}
# batch, channels in, channels out, height, width, height and width of the filter
CONVOLUTIONS = ((1, 1, 1, 5, 5, 3, 3), (2, 2, 3, 4, 6, 3, 5), (1, 3, 2, 4, 7, 1, 3))


def test_convolve(answer, call):
    used = sorted(_names_in(answer) & TORCH_CONVOLUTIONS)
    if used:
        raise Wrong(
            f"{used[0]} is one of torch's own convolutions. Write the sum yourself: move the image, "
            "multiply by one number of the filter, add."
        )
    for batch, given, made, height, width, rows, columns in CONVOLUTIONS:
        images = torch.rand(batch, given, height, width, dtype=torch.float64)
        weight = torch.rand(made, given, rows, columns, dtype=torch.float64) - 0.3
        kept = images.clone(), weight.clone()
        got = _tensor(call(answer, images, weight, may_change=(0, 1)), "the channels")
        if not torch.equal(images, kept[0]) or not torch.equal(weight, kept[1]):
            raise Wrong("images and weight must stay as they are: sum into a tensor of your own.")
        images, weight = kept
        expected = F.conv2d(images, weight, padding=(rows // 2, columns // 2))
        if got.shape != expected.shape:
            raise Wrong(_wrong_shape(tuple(got.shape), tuple(expected.shape), images, weight))
        if not torch.allclose(got.double(), expected, atol=1e-4):
            raise Wrong(_wrong_sum(got.double(), expected, images, weight))


def _wrong_shape(got, expected, images, weight):
    rows, columns = weight.shape[2:]
    said = (
        f"Images {tuple(images.shape)} and weight {tuple(weight.shape)} give {expected}, got {got}."
    )
    if got == tuple(F.conv2d(images, weight).shape):
        return f"{said} The image shrank: put {rows // 2} and {columns // 2} zeros around it."
    if len(got) == 4 and got[:2] == expected[:2]:
        return f"{said} Rows need {rows // 2} zeros on each side, columns {columns // 2}."
    return f"{said} One channel for each filter, one map for each image."


def _wrong_sum(got, expected, images, weight):
    rows, columns = weight.shape[2] // 2, weight.shape[3] // 2
    around = (columns, columns, rows, rows)
    for why, other in (
        ("The filter lies on the image as it is: torch does not flip it. "
         "Only the convolution of mathematics does.",
         lambda: F.conv2d(images, weight.flip(-1, -2), padding=(rows, columns))),
        ("The image was continued from its opposite edge, as roll does. Outside are zeros.",
         lambda: F.conv2d(F.pad(images, around, mode="circular"), weight)),
        ("The edge pixels were repeated outward. Outside are zeros.",
         lambda: F.conv2d(F.pad(images, around, mode="replicate"), weight)),
        ("Only the first input channel arrived. Each filter has one part for each input "
         "channel, and their results are added.",
         lambda: F.conv2d(images[:, :1], weight[:, :1], padding=(rows, columns))),
        ("Rows and columns of the filter are swapped.",
         lambda: F.conv2d(images, weight.transpose(-1, -2), padding=(columns, rows))),
        ("The products were averaged. A convolution adds them.", lambda: expected
         / weight[0].numel()),
    ):  # fmt: skip
        other = other()
        if other.shape == got.shape and torch.allclose(got, other, atol=1e-4):
            return why
    at = tuple((got - expected).abs().flatten(0).argmax().unsqueeze(0).tolist())
    place = tuple(int(i) for i in torch.unravel_index(torch.tensor(at[0]), got.shape))
    return (
        f"Image {place[0]}, channel {place[1]}, row {place[2]}, column {place[3]} must be "
        f"{expected[place]:.4f}, got {got[place]:.4f}. Compute this one number from the window "
        "around it."
    )


# --- 17.2 -------------------------------------------------------------------------------

SHIFTS = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]


def _moved(images, dy, dx):
    return F.pad(images, (dx, -dx, dy, -dy))


def _which(results, images, move):
    """Return for each image which of the nine shifts it got, or -1."""
    found = torch.full((len(images),), -1)
    for number, (dy, dx) in enumerate(SHIFTS):
        same = (results - move(images, dy, dx)).abs().flatten(1).amax(1) < 1e-4
        found[same & (found == -1)] = number
    return found


def test_random_shift(answer, call):
    images = torch.rand(300, 1, 8, 8) + 0.1
    kept = images.clone()
    generator = torch.Generator().manual_seed(3)
    got = _tensor(call(answer, images, generator, may_change=(0, 1)), "the shifted images")
    if not torch.equal(images, kept):
        raise Wrong(
            "The images that went in have changed: the next epoch starts with shifted ones, and "
            "they wander out of the picture. Write into a tensor of your own."
        )
    if got.shape != images.shape:
        raise Wrong(f"The shape must stay {tuple(images.shape)}, got {tuple(got.shape)}.")
    if got.dtype != images.dtype:
        raise Wrong(
            f"{images.dtype} went in and {got.dtype} came out: the first layer would refuse it. "
            "Make new tensors with dtype=images.dtype."
        )
    _look_at_shifts(got, images)
    again = call(answer, images, torch.Generator().manual_seed(3), may_change=(0, 1))
    if not torch.equal(got, _tensor(again, "the shifted images")):
        raise Wrong(
            "Two generators with the same seed gave two results: the run is not repeatable. "
            "Every draw must come from the generator that was passed."
        )
    _look_at_other_sizes(answer, call)
    if torch.equal(got, call(answer, images, generator, may_change=(0, 1))):
        raise Wrong(
            "The second call drew the same shifts as the first, so every epoch sees the same "
            "images. Draw on from the generator, and do not seed inside."
        )


def _look_at_other_sizes(answer, call):
    images = torch.rand(300, 2, 6, 9) + 0.1
    try:
        got = call(answer, images.clone(), torch.Generator().manual_seed(3), may_change=(0, 1))
    except (IndexError, RuntimeError, ValueError):
        got = images[:, :, :0]  # stopped: sizes that do not fit
    if len(got) == 300 and got.ndim == 4 and got.shape[1] != 2:
        raise Wrong(f"Images of two channels came back with {got.shape[1]}: move all channels.")
    if got.shape != images.shape or (_which(got, images, _moved) == -1).any():
        raise Wrong(
            "Images of 6 × 9 pixels go wrong, although 8 × 8 works: 8 stands in your code. Take "
            "height and width from images.shape."
        )


def _look_at_shifts(got, images):
    found = _which(got, images, _moved)
    if (found == -1).any():
        rolled = _which(got, images, lambda x, dy, dx: x.roll((dy, dx), (2, 3)))
        if (rolled != -1).all():
            raise Wrong(
                "Ink that leaves on one side re-enters on the opposite one: roll goes in a "
                "circle. Zeros must enter."
            )
        where = int((found == -1).nonzero()[0])
        raise Wrong(
            f"Image {where} is none of the nine shifted versions of itself. Move it by −1, 0 or 1 "
            "row and −1, 0 or 1 column, with zeros entering."
        )
    seen = {SHIFTS[number] for number in found.tolist()}
    if len(seen) == 1:
        raise Wrong("300 images, one shift: the draw happened once for the whole batch.")
    missing = [shift for shift in SHIFTS if shift not in seen]
    if missing:
        if all(dy == dx for dy, dx in seen):
            raise Wrong("Rows and columns moved together: draw one number for each.")
        if all(0 in shift for shift in seen):
            raise Wrong("Each image moved by rows or by columns, never by both: draw each alone.")
        if not any(1 in shift for shift in seen):
            raise Wrong("No image moved by +1: the upper end of randint is left out.")
        dy, dx = missing[0]
        raise Wrong(
            f"None of 300 images moved by {dy} rows and {dx} columns. Draw both from −1, 0 and 1."
        )


# --- 17.3 -------------------------------------------------------------------------------


def _layers():
    """Return (conv, bn, images): layers as they come out of a training."""
    for conv, eps in (
        (nn.Conv2d(2, 3, 3, padding=1, bias=False), 0.1),
        (nn.Conv2d(3, 4, (3, 1), stride=2, bias=True), 1e-5),
        (nn.Conv2d(4, 4, 3, padding=2, dilation=2, groups=2, bias=True), 1e-5),
        (nn.Conv2d(3, 4, 3, stride=(2, 1), padding=(1, 0), dilation=(1, 2),
                   padding_mode="circular"), 1e-5),
    ):  # fmt: skip
        bn = nn.BatchNorm2d(conv.out_channels, eps=eps)
        with torch.no_grad():
            for tensor in (bn.weight, bn.bias, bn.running_mean):
                tensor.copy_(torch.randn(conv.out_channels) + 0.2)
            bn.running_var.copy_(torch.rand(conv.out_channels) * 3 + 0.2)
            if eps > 0.01:
                bn.running_var[0] = 1e-3  # so small that 1e-5 and no eps differ
            if conv.bias is not None:
                conv.bias.copy_(torch.randn(conv.out_channels))
        evaluates = conv.bias is None  # the others come as a training leaves them
        images = torch.randn(2, conv.in_channels, 7, 7)
        yield conv.train(not evaluates), bn.train(not evaluates), images


def test_fold(answer, call):
    for conv, bn, images in _layers():
        before = copy.deepcopy((conv.state_dict(), bn.state_dict()))
        modes = conv.training, bn.training
        twins = [copy.deepcopy(layer).eval() for layer in (conv, bn)]
        folded = call(answer, conv, bn)
        for layer, old in zip((conv, bn), before, strict=True):
            if not all(torch.equal(old[name], now) for name, now in layer.state_dict().items()):
                raise Wrong(
                    f"The original {type(layer).__name__} has changed, and folding it again would "
                    "scale it twice. Work on a copy."
                )
        if (conv.training, bn.training) != modes:
            raise Wrong(
                "A layer was handed in in one mode and is now in the other: its training would go "
                "on with fixed statistics. fold reads numbers and needs no eval()."
            )
        if not isinstance(folded, nn.Conv2d):
            missing = " Is a return missing?" if folded is None else ""
            raise Wrong(f"Return one nn.Conv2d, got {type(folded).__name__}.{missing}")
        _compare_folded(folded, *twins, images)


@torch.no_grad()
def _compare_folded(folded, conv, bn, images):
    if folded.bias is None:
        raise Wrong(
            "The folded layer has no bias. BatchNorm subtracts a mean and adds its own bias: "
            "both must live on, even if the convolution had none."
        )
    expected, kind = bn(conv(images)), folded.padding_mode
    try:
        got = folded(images)
    except RuntimeError:
        got = None
    if got is None or got.shape != expected.shape or kind != conv.padding_mode:
        raise Wrong(_not_kept(folded, conv))
    if not torch.allclose(got, expected, atol=1e-4, rtol=1e-4):
        raise Wrong(_wrong_fold(folded, conv, bn))


def _not_kept(folded, conv):
    for name in ("stride", "padding", "dilation"):
        mine, given = getattr(folded, name), getattr(conv, name)
        if mine != given and mine in [(number, number) for number in given]:
            return (
                f"The folded layer has {name} {mine}; it must be {given}, one number for rows and "
                "one for columns. Hand on the whole tuple."
            )
    options = ("kernel_size", "stride", "padding", "dilation", "groups")
    same = all(getattr(folded, name) == getattr(conv, name) for name in options)
    if same and folded.padding_mode != conv.padding_mode:
        return (
            f"The folded layer pads with {folded.padding_mode!r}; it must be "
            f"{conv.padding_mode!r}. padding_mode decides which values enter at the edges."
        )
    return (
        f"The folded layer is {folded}; it must keep the sizes, stride, padding, dilation "
        f"and groups of {conv}."
    )


def _wrong_fold(folded, conv, bn):
    scale = bn.weight / (bn.running_var + bn.eps).sqrt()
    if not _scales(scale, folded, conv):
        return _wrong_scale(folded, conv, bn)
    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias
    mean, beta = bn.running_mean, bn.bias
    for why, other in (
        ("The bias of the convolution passes through BatchNorm too: it is scaled with the rest.",
         beta + bias - mean * scale),
        ("The running mean is missing: BatchNorm subtracts it first.", beta + bias * scale),
        ("The convolution's own bias is missing.", beta - mean * scale),
        ("BatchNorm's bias is missing.", (bias - mean) * scale),
    ):  # fmt: skip
        if torch.allclose(folded.bias, other, atol=1e-4, rtol=1e-4):
            return why
    return "The weights are right. The bias must be beta + (bias − mean) · scale."


def _scales(factor, folded, conv):
    return torch.allclose(folded.weight, conv.weight * factor.view(-1, 1, 1, 1), rtol=1e-4)


def _wrong_scale(folded, conv, bn):
    variance, eps = bn.running_var, bn.eps
    for why, factor in (
        ("BatchNorm divides by the root of variance + eps. Yours has no eps.",
         bn.weight / variance.sqrt()),
        ("1e-5 is the default of eps. This layer has its own: read bn.eps.",
         bn.weight / (variance + 1e-5).sqrt()),
        ("BatchNorm divides by the root of the variance, not by the variance.",
         bn.weight / (variance + eps)),
        ("BatchNorm's weight is missing from the scale.", 1 / (variance + eps).sqrt()),
        ("The weights are still those of the convolution: scale them too.",
         torch.ones_like(variance)),
    ):  # fmt: skip
        if _scales(factor, folded, conv):
            return why
    return (
        "The weights are scaled along the wrong dimension, or by the wrong factor. There is "
        f"one factor for each output channel, dimension 0 of {tuple(conv.weight.shape)}; "
        "broadcasting begins at the last one."
    )


# --- 17.4 -------------------------------------------------------------------------------


def _network():
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten(), nn.Linear(8, 3))
    model[2].register_buffer("cache", torch.zeros(2), persistent=False)
    return model.requires_grad_(False).eval()


@torch.no_grad()
def _forward(model):
    model.train()
    model(torch.rand(4, 1, 4, 4))


@torch.no_grad()
def _nudge(model):
    bias = model[3].bias
    bias[1] = torch.nextafter(bias[1], torch.tensor(9.0))


@torch.no_grad()
def _swap(model):
    model[0].weight.copy_(model[0].weight.flip(0))


def _count(model):
    model[1].num_batches_tracked += 1


def _remember(model):
    model[2].cache += 1


@torch.no_grad()
def _spoil(model):
    model[3].bias[0] = torch.nan


def _read(model):
    model(torch.rand(4, 1, 4, 4))


# what happens, whether the model comes in training mode, and the change itself
USES = (
    ("a forward pass in training mode", False, _forward),
    ("a change of the last digit of one bias", False, _nudge),
    ("two filters changing places", False, _swap),
    ("one more counted batch", False, _count),
    ("a change of a buffer that was registered with persistent=False", False, _remember),
    ("a NaN in one bias", False, _spoil),
    ("a forward pass in evaluation mode", False, _read),
    ("a forward pass in the mode in which the model came, training", True, _read),
)


def _snapshot(model):
    return {
        name: tensor.clone() for name, tensor in (*model.named_parameters(), *model.named_buffers())
    }


def _modes(model):
    return [module.training for module in model.modules()]


def test_moved(answer, call):
    for what, trains, use in USES:
        model, seen, modes = _network().train(trains), [], []

        def watched(given, use=use, seen=seen, modes=modes):
            seen.append(given)
            modes.append(_modes(given))
            use(given)
            modes.append(_modes(given))

        before, twin = _snapshot(model), copy.deepcopy(model)
        modes.append(_modes(model))
        got = call(answer, model, watched)
        if len(seen) != 1 or seen[0] is not model:
            raise Wrong(
                f"use was called {len(seen)} times with this model; call use(model) once, "
                "between the two looks, on the model itself."
                if len(seen) != 1
                else "use was called with another object. Call it with the model itself."
            )
        if modes[0] != modes[1] or modes[2] != _modes(model):
            raise Wrong(
                "Your function put the model into another mode, and the mode decides whether "
                "statistics move. Leave train() and eval() to use."
            )
        if isinstance(got, (str, dict)) or not hasattr(got, "__iter__"):
            raise Wrong(f"Return a list of names, got {got!r}.")
        use(twin)
        after = _snapshot(twin)
        expected = [name for name in before if not torch.equal(before[name], after[name])]
        got = [str(name) for name in got]
        if sorted(got) != sorted(expected):
            raise Wrong(f"After {what}: {_why_moved(answer, got, expected, model)}")


def _why_moved(answer, got, expected, model):
    missing = [name for name in expected if name not in got]
    extra = [name for name in got if name not in expected]
    said = f"moved are {', '.join(expected) or 'none'}; you found {', '.join(got) or 'none'}."
    if extra:
        return f"{said} {extra[0]} holds the same numbers as before."
    if not missing:
        return f"{said} Name each of them once."
    names = _names_in(answer)
    spoiled = [name for name, now in model.named_parameters() if now.isnan().any()]
    if missing == spoiled:
        return f"{said} NaN > 0 is False, so a difference of NaN hides. Compare with torch.equal."
    return f"{said} {_why_missing(names, set(missing), model) or _why_overlooked(names, got)}"


def _why_missing(names, missing, model):
    """Return what the looks leave out, or an empty text."""
    parameters = {name for name, _ in model.named_parameters()}
    if "_version" in names:
        return (
            "`_version` does not rise when BatchNorm writes its running statistics: compare the "
            "numbers."
        )
    if "state_dict" not in names and "named_buffers" not in names and not missing & parameters:
        return "Statistics are buffers, and named_parameters() leaves buffers out."
    if "named_buffers" in names and "named_parameters" not in names and missing <= parameters:
        return "named_buffers() leaves the parameters out."
    if not missing & set(model.state_dict()):
        return (
            "state_dict() leaves out buffers that were registered with persistent=False. "
            "named_buffers() lists them."
        )
    return ""


def _why_overlooked(names, got):
    """Return why a difference in something that was looked at did not show."""
    if got:
        return "Do not stop at the first one."
    if {"allclose", "isclose"} & names:
        return "A small drift hides behind the tolerance of allclose: compare exactly."
    if {"sum", "mean", "norm"} & names:
        return "Two filters that change places have the same sum: compare place by place."
    return (
        "Before and after are two views of one tensor: state_dict() and "
        "named_parameters() hand out the model's own tensors. Clone each one first."
    )


# --- 17.5 -------------------------------------------------------------------------------


def _decide(differences, t, *, root=None, deviation=statistics.stdev, above=operator.gt):
    n = len(differences)
    if n < 2:
        return "cannot tell"
    mean = statistics.fmean(differences)
    half = t * deviation(differences) / (root or math.sqrt(n))
    if above(mean - half, 0):
        return "helped"
    return "hurt" if above(0, mean + half) else "cannot tell"


def _paired(a, b):
    return [a[seed] - b[seed] for seed in a if seed in b]


def _verdict(a, b, t):
    return _decide(_paired(a, b), t)


def _unpaired(a, b, t):
    spread = math.sqrt(
        statistics.variance(a.values()) / len(a) + statistics.variance(b.values()) / len(b)
    )
    gain = statistics.fmean(a.values()) - statistics.fmean(b.values())
    return "helped" if gain > t * spread else "hurt" if gain < -t * spread else "cannot tell"


def _by_order(a, b, t):
    return _decide([x - y for x, y in zip(a.values(), b.values(), strict=False)], t)


def _by_rank(a, b, t):
    return _by_order(*(dict(enumerate(sorted(runs.values()))) for runs in (a, b)), t)


def _sign(value):
    return "helped" if value > 0 else "hurt" if value < 0 else "cannot tell"


MISTAKES = (
    (lambda a, b, t: _sign(max(a.values()) - max(b.values())),
     "Best against best compares two lucky seeds. Use every seed."),
    (lambda a, b, t: _sign(statistics.fmean(_paired(a, b))),
     "The means differ, as means always do. Without the spread there is no verdict."),
    (lambda a, b, t: _sign(statistics.fmean(a.values()) - statistics.fmean(b.values())),
     "The means differ, as means always do. Without the spread there is no verdict."),
    (_unpaired, "Runs with the same seed belong together: subtract first, then look at the "
     "spread of the differences."),
    (_by_order, "The dictionaries list their seeds in different orders, and one seed is in one "
     "of them only. Pair by seed, not by place."),
    (_by_rank, "Sorted scores pair the best run with the best, whatever its seed, and a spread "
     "that cancels is lost. Pair by seed, not by rank."),
    (lambda a, b, t: _decide(_paired(a, b), t, above=operator.ge),
     "Equal runs have differences of 0 and an interval from 0 to 0. It is neither above nor below "
     "0: use > and <."),
    (lambda a, b, t: _decide(_paired(a, b), t, deviation=statistics.pstdev),
     "The spread of n differences around their own mean divides by n − 1, not by n."),
    (lambda a, b, t: _decide(_paired(a, b), 1.0),
     "The interval reaches t · spread / √n to each side. Yours has no t."),
    (lambda a, b, t: _decide(_paired(a, b), 1.96),
     "1.96 belongs to many runs. For few runs use t, which was passed."),
    (lambda a, b, t: _decide(_paired(a, b), t, root=1.0),
     "That is the spread of single runs. The mean of n runs spreads √n less."),
)  # fmt: skip


def _comparisons():
    """Return (with, without, t) so that each mistake gives another verdict than the rule."""
    base = {seed: 90.0 + 2.0 * seed for seed in range(5)}
    t = 2.776

    def plus(*gains):
        return {seed: base[seed] + gain for seed, gain in enumerate(gains)}, base, t

    half = t * statistics.stdev((-1, -0.5, 0, 0.5, 1)) / math.sqrt(5)
    spread = (-1, -0.5, 0, 0.5, 1)
    shuffled = dict(reversed(list(plus(1.1, 0.9, 1.0, 1.2, 0.8)[0].items())))
    extra = {seed: base[seed] for seed in (2, 0, 4, 1)} | {7: 99.0, 3: base[3]}
    noise = [torch.randn(()).item() for _ in range(5)]
    return [
        plus(1.1, 0.9, 1.0, 1.2, 0.8),
        plus(-1.1, -0.9, -1.0, -1.2, -0.8),
        plus(-3.0, 2.0, -1.0, -2.0, 3.0),
        plus(*(0.95 * half + x for x in spread)),
        plus(*(0.8 * half + x for x in spread)),
        plus(*(0.5 * half + x for x in spread)),
        plus(*(1.3 * half + x for x in spread)),
        plus(*(-1.3 * half + x for x in spread)),
        plus(*(30 + x for x in spread)),
        plus(*(-30 + x for x in spread)),
        plus(9.0, 5.0, 1.0, -3.0, -7.0),
        plus(*(0.4 + x for x in noise)),
        (
            {seed: 90.0 + x for seed, x in enumerate(noise[:3])},
            dict.fromkeys(range(3), 90.5),
            4.303,
        ),
        (shuffled, extra, t),
        (plus(1.1, 0.9, 1.0, 1.2, 0.8)[0] | {8: 50.0}, base, t),
        plus(0, 0, 0, 0, 0),
        ({0: 95.0}, {0: 90.0}, math.inf),
        ({0: 95.0}, {1: 90.0}, math.inf),
    ]


def test_verdict(answer, call):
    cases, answers, stopped = _comparisons(), [], ""
    for a, b, t in cases:
        try:
            got = call(answer, dict(a), dict(b), t)
        except (KeyError, statistics.StatisticsError, ZeroDivisionError) as error:
            stopped = _why_stopped(error, _paired(a, b))
            break
        if got not in ("helped", "hurt", "cannot tell"):
            raise Wrong(f"Answer 'helped', 'hurt' or 'cannot tell', got {got!r}.")
        answers.append(got)
    cases = cases[: len(answers)]
    right = [_verdict(*case) for case in cases]
    if answers != right:
        raise Wrong(_why_verdict(cases, answers, right))
    if stopped:
        raise Wrong(stopped)


def _why_stopped(error, gains):
    if isinstance(error, KeyError):
        return f"Seed {error} has a score in one dictionary only. Compare the seeds that both have."
    if not gains:
        return "No seed has two scores, so there is no difference at all: answer 'cannot tell'."
    if len(gains) == 1:
        return "With one pair there is no spread, and nothing to divide by: answer 'cannot tell'."
    return "Equal runs have a spread of 0. Compare the mean with t · spread / √n, undivided."


def _why_verdict(cases, answers, right):
    for mistake, why in MISTAKES:
        said = [_tried(mistake, case) for case in cases]
        if all(guess in (None, got) for guess, got in zip(said, answers, strict=True)):
            return why
    (a, b, t), got, expected = next(
        found for found in zip(cases, answers, right, strict=True) if found[1] != found[2]
    )
    gains = ", ".join(f"{gain:+.2f}" for gain in _paired(a, b)) or "no seed"
    return (
        f"For differences of {gains} and t = {t:g} the answer is {expected!r}, got {got!r}. "
        "Compute the interval mean ± t · spread / √n."
    )


def _tried(mistake, case):
    try:
        return mistake(*case)
    except statistics.StatisticsError:  # one run has no spread: any answer agrees
        return None


def _anew(**changed):
    """Write out an answer to 17.3 that builds the layer from its options, some of them changed."""
    names = ("stride", "padding", "dilation", "groups", "padding_mode")
    options = {name: f"conv.{name}" for name in names} | changed
    return (
        "@torch.no_grad()\n"
        "def fold(conv, bn):\n"
        "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
        "    bias = 0 if conv.bias is None else conv.bias\n"
        "    folded = torch.nn.Conv2d(\n"
        "        conv.in_channels, conv.out_channels, conv.kernel_size,\n"
        f"        {', '.join(f'{name}={value}' for name, value in options.items())},\n"
        "    )\n"
        "    folded.weight.copy_(conv.weight * scale.view(-1, 1, 1, 1))\n"
        "    folded.bias.copy_(bn.bias + (bias - bn.running_mean) * scale)\n"
        "    return folded\n"
    )


EXERCISES = {
    "17.1": Exercise(
        title="Compute a convolution by hand",
        minutes=10,
        task="`images` (batch, in, height, width) and `weight` (out, in, rows, columns), rows and "
        "columns odd. Return (batch, out, height, width): every filter summed over its window "
        "and all input channels, zeros outside. The check compares with torch; its convolutions "
        "are not allowed.",
        stub="def convolve(images, weight):\n"
        '    """Return one map for each image and filter, as large as the image."""\n'
        "    ...\n",
        answer="convolve",
        test=test_convolve,
        hints=(
            "Pad with zeros, then add up moved copies: one for each place of the filter.",
            "A filter of 3 × 5 needs 1 row and 2 columns of zeros on each side.",
            "padded = torch.nn.functional.pad(images, (columns // 2, columns // 2, rows // 2, rows // 2))",
        ),
        solution="def convolve(images, weight):\n"
        "    rows, columns = weight.shape[2:]\n"
        "    height, width = images.shape[2:]\n"
        "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
        "    padded = torch.nn.functional.pad(images, around)\n"
        "    total = 0\n"
        "    for i in range(rows):\n"
        "        for j in range(columns):\n"
        "            moved = padded[:, :, i : i + height, j : j + width]\n"
        "            total = total + torch.einsum('bchw,oc->bohw', moved, weight[:, :, i, j])\n"
        "    return total\n",
        wrong=(
            WrongAnswer(
                "filter flipped",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    height, width = images.shape[2:]\n"
                "    padded = torch.nn.functional.pad(images, (columns // 2,) * 2 + (rows // 2,) * 2)\n"
                "    total = 0\n"
                "    for i in range(rows):\n"
                "        for j in range(columns):\n"
                "            moved = padded[:, :, i : i + height, j : j + width]\n"
                "            part = weight[:, :, rows - 1 - i, columns - 1 - j]\n"
                "            total = total + torch.einsum('bchw,oc->bohw', moved, part)\n"
                "    return total\n",
                "torch does not flip it",
            ),
            WrongAnswer(
                "edges wrapped",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    total = 0\n"
                "    for i in range(rows):\n"
                "        for j in range(columns):\n"
                "            moved = images.roll((rows // 2 - i, columns // 2 - j), (2, 3))\n"
                "            total = total + torch.einsum('bchw,oc->bohw', moved, weight[:, :, i, j])\n"
                "    return total\n",
                "from its opposite edge",
            ),
            WrongAnswer(
                "no zeros around",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    windows = images.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                "    return torch.einsum('bchwij,ocij->bohw', windows, weight)\n",
                "The image shrank",
            ),
            WrongAnswer(
                "rows and columns of zeros swapped",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    padded = torch.nn.functional.pad(images, (rows // 2,) * 2 + (columns // 2,) * 2)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                "    return torch.einsum('bchwij,ocij->bohw', windows, weight)\n",
                "zeros on each side, columns",
            ),
            WrongAnswer(
                "first input channel only",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    padded = torch.nn.functional.pad(images, (columns // 2,) * 2 + (rows // 2,) * 2)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                "    return torch.einsum('bhwij,oij->bohw', windows[:, 0], weight[:, 0])\n",
                "Only the first input channel",
            ),
            WrongAnswer(
                "averaged",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    padded = torch.nn.functional.pad(images, (columns // 2,) * 2 + (rows // 2,) * 2)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                "    total = torch.einsum('bchwij,ocij->bohw', windows, weight)\n"
                "    return total / weight[0].numel()\n",
                "were averaged",
            ),
            WrongAnswer(
                "torch does it",
                "def convolve(images, weight):\n"
                "    return torch.nn.functional.conv2d(images, weight, padding='same')\n",
                "conv2d is one of torch's own convolutions",
            ),
            WrongAnswer(
                "torch does it backward",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    turned = weight.transpose(0, 1).flip(2, 3)\n"
                "    around = (rows // 2, columns // 2)\n"
                "    return torch.nn.functional.conv_transpose2d(images, turned, padding=around)\n",
                "conv_transpose2d is one of torch's own convolutions",
            ),
            WrongAnswer(
                "edge repeated",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
                '    padded = torch.nn.functional.pad(images, around, mode="replicate")\n'
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                '    return torch.einsum("bchwij,ocij->bohw", windows, weight)\n',
                "The edge pixels were repeated",
            ),
            WrongAnswer(
                "filter transposed",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
                "    padded = torch.nn.functional.pad(images, around)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                "    if rows == columns:\n"
                "        weight = weight.transpose(2, 3)\n"
                '    return torch.einsum("bchwij,ocij->bohw", windows, weight)\n',
                "Rows and columns of the filter are swapped",
            ),
            WrongAnswer(
                "no return",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
                "    padded = torch.nn.functional.pad(images, around)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                '    torch.einsum("bchwij,ocij->bohw", windows, weight)\n',
                "Is a return missing?",
            ),
            WrongAnswer(
                "written into the images",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
                "    padded = torch.nn.functional.pad(images, around)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                '    maps = torch.einsum("bchwij,ocij->bohw", windows, weight)\n'
                "    return images.copy_(maps)\n",
                "must stay as they are",
            ),
            WrongAnswer(
                "one map for all images",
                "def convolve(images, weight):\n"
                "    rows, columns = weight.shape[2:]\n"
                "    around = (columns // 2, columns // 2, rows // 2, rows // 2)\n"
                "    padded = torch.nn.functional.pad(images, around)\n"
                "    windows = padded.unfold(2, rows, 1).unfold(3, columns, 1)\n"
                '    return torch.einsum("bchwij,ocij->ohw", windows, weight)\n',
                "One channel for each filter, one map for each image",
            ),
        ),
    ),
    "17.2": Exercise(
        title="Shift each image by itself",
        minutes=7,
        task="This function moves the whole batch by one shift, and ink re-enters on the other "
        "side. Repair it: each image draws its own shift by −1, 0 or 1 row and −1, 0 or 1 column, "
        "zeros enter, equal generators give equal results, and `images` stays as it is.",
        stub="def random_shift(images, generator):\n"
        "    dy, dx = torch.randint(-1, 2, (2,), generator=generator).tolist()\n"
        "    return images.roll((dy, dx), (2, 3))\n",
        answer="random_shift",
        test=test_random_shift,
        hints=(
            "Draw two numbers for each image, with the generator.",
            "Put a border of one zero around all images. A shift is then a window of 8 × 8 that "
            "begins at row 0, 1 or 2 and column 0, 1 or 2.",
            "rows, columns = torch.randint(0, 3, (2, len(images)), generator=generator).tolist()",
        ),
        solution="def random_shift(images, generator):\n"
        "    height, width = images.shape[2:]\n"
        "    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()\n"
        "    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))\n"
        "    moved = [p[:, i : i + height, j : j + width]\n"
        "             for p, (i, j) in zip(padded, starts, strict=True)]\n"
        "    return torch.stack(moved)\n",
        wrong=(
            WrongAnswer(
                "rolled",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()\n"
                "    return torch.stack([im.roll(d, (1, 2)) for im, d in zip(images, draws)])\n",
                "re-enters on the opposite",
            ),
            WrongAnswer(
                "one draw for the batch",
                "def random_shift(images, generator):\n"
                "    dy, dx = torch.randint(-1, 2, (2,), generator=generator).tolist()\n"
                "    return torch.nn.functional.pad(images, (dx, -dx, dy, -dy))\n",
                "300 images, one shift",
            ),
            WrongAnswer(
                "in place",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()\n"
                "    for image, (dy, dx) in zip(images, draws):\n"
                "        image.copy_(torch.nn.functional.pad(image, (dx, -dx, dy, -dy)))\n"
                "    return images\n",
                "the next epoch starts with shifted ones",
            ),
            WrongAnswer(
                "global generator",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images), 2)).tolist()\n"
                "    return torch.stack(\n"
                "        [torch.nn.functional.pad(im, (dx, -dx, dy, -dy)) for im, (dy, dx) in zip(images, draws)]\n"
                "    )\n",
                "not repeatable",
            ),
            WrongAnswer(
                "seeded inside",
                "def random_shift(images, generator):\n"
                "    generator.manual_seed(0)\n"
                "    draws = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()\n"
                "    return torch.stack(\n"
                "        [torch.nn.functional.pad(im, (dx, -dx, dy, -dy)) for im, (dy, dx) in zip(images, draws)]\n"
                "    )\n",
                "do not seed inside",
            ),
            WrongAnswer(
                "diagonal only",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images),), generator=generator).tolist()\n"
                "    return torch.stack(\n"
                "        [torch.nn.functional.pad(im, (d, -d, d, -d)) for im, d in zip(images, draws)]\n"
                "    )\n",
                "Rows and columns moved together",
            ),
            WrongAnswer(
                "upper end left out",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 1, (len(images), 2), generator=generator).tolist()\n"
                "    return torch.stack(\n"
                "        [torch.nn.functional.pad(im, (dx, -dx, dy, -dy)) for im, (dy, dx) in zip(images, draws)]\n"
                "    )\n",
                "the upper end of randint is left out",
            ),
            WrongAnswer(
                "channel lost",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()\n"
                "    moved = [\n"
                "        torch.nn.functional.pad(im, (dx, -dx, dy, -dy)) for im, (dy, dx) in zip(images, draws)\n"
                "    ]\n"
                "    return torch.cat(moved)\n",
                "The shape must stay",
            ),
            WrongAnswer(
                "up to two pixels",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-2, 3, (len(images), 2), generator=generator).tolist()\n"
                "    moved = [\n"
                "        torch.nn.functional.pad(im, (dx, -dx, dy, -dy)) for im, (dy, dx) in zip(images, draws)\n"
                "    ]\n"
                "    return torch.stack(moved)\n",
                "none of the nine shifted versions",
            ),
            WrongAnswer(
                "five directions",
                "def random_shift(images, generator):\n"
                "    ways = [(0, 0), (-1, 0), (1, 0), (0, -1), (0, 1)]\n"
                "    draws = torch.randint(0, 5, (len(images),), generator=generator).tolist()\n"
                "    moved = []\n"
                "    for image, way in zip(images, draws):\n"
                "        dy, dx = ways[way]\n"
                "        moved.append(torch.nn.functional.pad(image, (dx, -dx, dy, -dy)))\n"
                "    return torch.stack(moved)\n",
                "by rows or by columns, never by both",
            ),
            WrongAnswer(
                "never at rest",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(0, 2, (len(images), 2), generator=generator) * 2 - 1\n"
                "    moved = [\n"
                "        torch.nn.functional.pad(im, (dx, -dx, dy, -dy))\n"
                "        for im, (dy, dx) in zip(images, draws.tolist())\n"
                "    ]\n"
                "    return torch.stack(moved)\n",
                "Draw both from −1, 0 and 1",
            ),
            WrongAnswer(
                "8 × 8 written in",
                "def random_shift(images, generator):\n"
                "    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()\n"
                "    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))\n"
                "    return torch.stack(\n"
                "        [p[:, i : i + 8, j : j + 8] for p, (i, j) in zip(padded, starts)]\n"
                "    )\n",
                "8 stands in your code",
            ),
            WrongAnswer(
                "first channel only",
                "def random_shift(images, generator):\n"
                "    height, width = images.shape[2:]\n"
                "    starts = torch.randint(0, 3, (len(images), 2), generator=generator).tolist()\n"
                "    padded = torch.nn.functional.pad(images, (1, 1, 1, 1))[:, 0]\n"
                "    moved = [\n"
                "        p[i : i + height, j : j + width] for p, (i, j) in zip(padded, starts)\n"
                "    ]\n"
                "    return torch.stack(moved).unsqueeze(1)\n",
                "move all channels",
            ),
            WrongAnswer(
                "another dtype",
                "def random_shift(images, generator):\n"
                "    draws = torch.randint(-1, 2, (len(images), 2), generator=generator).tolist()\n"
                "    moved = torch.zeros(images.shape, dtype=torch.float64)\n"
                "    for i, (dy, dx) in enumerate(draws):\n"
                "        moved[i] = torch.nn.functional.pad(images[i], (dx, -dx, dy, -dy))\n"
                "    return moved\n",
                "torch.float64 came out",
            ),
        ),
    ),
    "17.3": Exercise(
        title="Fold BatchNorm into a convolution",
        minutes=8,
        task="In evaluation mode BatchNorm multiplies and adds fixed numbers. Write "
        "`fold(conv, bn)`: a new `nn.Conv2d` that computes what `bn(conv(x))` computes in "
        "evaluation, for any stride, padding, padding mode, dilation and groups, with or without a "
        "bias. `bn` has weight and bias (with `affine=False` both would be None). Both inputs stay "
        "as they are, their mode too.",
        stub="def fold(conv, bn):\n"
        '    """Return one Conv2d equal to bn(conv(x)) in evaluation mode."""\n'
        "    ...\n",
        answer="fold",
        test=test_fold,
        hints=(
            "bn computes (z − mean) / root(variance + eps) · weight + bias, for each channel.",
            "A convolution scaled by 3 has weights and bias three times as large.",
            "scale = bn.weight / (bn.running_var + bn.eps).sqrt()",
        ),
        solution="import copy\n\n\n"
        "@torch.no_grad()\n"
        "def fold(conv, bn):\n"
        "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
        "    bias = 0 if conv.bias is None else conv.bias\n"
        "    folded = copy.deepcopy(conv)\n"
        "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
        "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
        "    return folded\n",
        wrong=(
            WrongAnswer(
                "no eps",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / bn.running_var.sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "Yours has no eps",
            ),
            WrongAnswer(
                "the default eps",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + 1e-5).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "read bn.eps",
            ),
            WrongAnswer(
                "weight and bias of BatchNorm ignored",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = (bn.running_var + bn.eps).rsqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter((bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "BatchNorm's weight is missing from the scale",
            ),
            WrongAnswer(
                "weights unscaled",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "scale them too",
            ),
            WrongAnswer(
                "BatchNorm left in evaluation mode",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    bn.eval()\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "needs no eval()",
            ),
            WrongAnswer(
                "variance for its root",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps)\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "not by the variance",
            ),
            WrongAnswer(
                "bias unscaled",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + bias - bn.running_mean * scale)\n"
                "    return folded\n",
                "passes through BatchNorm too",
            ),
            WrongAnswer(
                "original changed",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    conv.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    conv.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return conv\n",
                "The original Conv2d has changed",
            ),
            WrongAnswer(
                "running mean forgotten",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + bias * scale)\n"
                "    return folded\n",
                "The running mean is missing",
            ),
            WrongAnswer(
                "scaled along the columns",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = 0 if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.copy_(conv.weight * scale)\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "along the wrong dimension",
            ),
            WrongAnswer(
                "no bias kept",
                "import copy\n\n\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    return folded\n",
                "has no bias",
            ),
            WrongAnswer(
                "two layers",
                "def fold(conv, bn):\n    return torch.nn.Sequential(conv, bn).eval()\n",
                "Return one nn.Conv2d, got Sequential",
            ),
            WrongAnswer(
                "stride and padding lost",
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = torch.nn.Conv2d(conv.in_channels, conv.out_channels, conv.kernel_size)\n"
                "    folded.weight = torch.nn.Parameter(conv.weight.clone())\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "stride, padding, dilation and groups",
            ),
            WrongAnswer(
                "one stride for rows and columns",
                _anew(stride="conv.stride[0]"),
                "has stride (2, 2); it must be (2, 1)",
            ),
            WrongAnswer(
                "one padding for rows and columns",
                _anew(padding="conv.padding[0]"),
                "has padding (1, 1); it must be (1, 0)",
            ),
            WrongAnswer(
                "one dilation for rows and columns",
                _anew(dilation="conv.dilation[0]"),
                "has dilation (1, 1); it must be (1, 2)",
            ),
            WrongAnswer(
                "padding mode dropped",
                _anew(padding_mode="'zeros'"),
                "which values enter at the edges",
            ),
            WrongAnswer(
                "BatchNorm's weight forgotten",
                "import copy\n"
                "\n"
                "\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = 1 / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "BatchNorm's weight is missing",
            ),
            WrongAnswer(
                "BatchNorm's bias forgotten",
                "import copy\n"
                "\n"
                "\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter((bias - bn.running_mean) * scale)\n"
                "    return folded\n",
                "BatchNorm's bias is missing",
            ),
            WrongAnswer(
                "the convolution's bias forgotten",
                "import copy\n"
                "\n"
                "\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (0 - bn.running_mean) * scale)\n"
                "    return folded\n",
                "The convolution's own bias is missing",
            ),
            WrongAnswer(
                "sign of the mean",
                "import copy\n"
                "\n"
                "\n"
                "@torch.no_grad()\n"
                "def fold(conv, bn):\n"
                "    scale = bn.weight / (bn.running_var + bn.eps).sqrt()\n"
                "    bias = torch.zeros(conv.out_channels) if conv.bias is None else conv.bias\n"
                "    folded = copy.deepcopy(conv)\n"
                "    folded.weight.mul_(scale.view(-1, 1, 1, 1))\n"
                "    folded.bias = torch.nn.Parameter(bn.bias + (bias + bn.running_mean) * scale)\n"
                "    return folded\n",
                "The weights are right",
            ),
        ),
    ),
    "17.4": Exercise(
        title="Find what moved",
        minutes=5,
        task="Write `moved(model, use)`: call `use(model)` once and return the names of all "
        "parameters and buffers that hold other numbers afterwards. Every difference counts, "
        "however small.",
        stub="def moved(model, use):\n"
        '    """Return the names of what use(model) changes."""\n'
        "    ...\n",
        answer="moved",
        test=test_moved,
        hints=(
            "named_parameters() and named_buffers() name everything. state_dict() leaves out "
            "buffers registered with persistent=False.",
            "Their tensors are the model's own: the first look must copy them.",
            "tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}",
        ),
        solution="def moved(model, use):\n"
        "    def tensors():\n"
        "        return {**dict(model.named_parameters()), **dict(model.named_buffers())}\n"
        "\n"
        "    before = {name: tensor.clone() for name, tensor in tensors().items()}\n"
        "    use(model)\n"
        "    return [name for name, now in tensors().items() if not torch.equal(before[name], now)]\n",
        wrong=(
            WrongAnswer(
                "parameters only",
                "def moved(model, use):\n"
                "    before = {n: p.detach().clone() for n, p in model.named_parameters()}\n"
                "    use(model)\n"
                "    return [n for n, p in model.named_parameters()\n"
                "            if not torch.equal(p, before[n])]\n",
                "leaves buffers out",
            ),
            WrongAnswer(
                "not cloned",
                "def moved(model, use):\n"
                "    before = model.state_dict()\n"
                "    use(model)\n"
                "    after = model.state_dict()\n"
                "    return [n for n in before if not torch.equal(before[n], after[n])]\n",
                "two views of one tensor",
            ),
            WrongAnswer(
                "state_dict only",
                "def moved(model, use):\n"
                "    before = {n: t.clone() for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    after = model.state_dict()\n"
                "    return [n for n in before if not torch.equal(before[n], after[n])]\n",
                "registered with persistent=False. named_buffers() lists them",
            ),
            WrongAnswer(
                "buffers only",
                "def moved(model, use):\n"
                "    before = {n: b.clone() for n, b in model.named_buffers()}\n"
                "    use(model)\n"
                "    return [n for n, b in model.named_buffers() if not torch.equal(before[n], b)]\n",
                "leaves the parameters out",
            ),
            WrongAnswer(
                "versions compared",
                "def moved(model, use):\n"
                "    before = {n: t._version for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    after = model.state_dict()\n"
                "    return [n for n in before if before[n] != after[n]._version]\n",
                "compare the numbers",
            ),
            WrongAnswer(
                "eval() before use",
                "def moved(model, use):\n"
                "    model.eval()\n"
                "    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}\n"
                "    before = {n: t.clone() for n, t in tensors.items()}\n"
                "    use(model)\n"
                "    return [n for n, t in tensors.items() if not torch.equal(before[n], t)]\n",
                "put the model into another mode",
            ),
            WrongAnswer(
                "eval() after use",
                "def moved(model, use):\n"
                "    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}\n"
                "    before = {n: t.clone() for n, t in tensors.items()}\n"
                "    use(model)\n"
                "    model.eval()\n"
                "    return [n for n, t in tensors.items() if not torch.equal(before[n], t)]\n",
                "put the model into another mode",
            ),
            WrongAnswer(
                "NaN overlooked",
                "def moved(model, use):\n"
                "    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}\n"
                "    before = {n: t.clone() for n, t in tensors.items()}\n"
                "    use(model)\n"
                "    return [n for n, t in tensors.items() if (t - before[n]).abs().sum() > 0]\n",
                "NaN > 0 is False",
            ),
            WrongAnswer(
                "tolerance",
                "def moved(model, use):\n"
                "    before = {n: t.clone() for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    after = model.state_dict()\n"
                "    return [n for n in before\n"
                "            if not torch.allclose(before[n].double(), after[n].double())]\n",
                "hides behind the tolerance",
            ),
            WrongAnswer(
                "sums",
                "def moved(model, use):\n"
                "    before = {n: t.double().sum() for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    return [n for n, t in model.state_dict().items()\n"
                "            if abs(t.double().sum() - before[n]) > 1e-12]\n",
                "have the same sum",
            ),
            WrongAnswer(
                "stops at the first",
                "def moved(model, use):\n"
                "    before = {n: t.clone() for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    for n, t in model.state_dict().items():\n"
                "        if not torch.equal(before[n], t):\n"
                "            return [n]\n"
                "    return []\n",
                "Do not stop at the first",
            ),
            WrongAnswer(
                "use forgotten",
                "import copy\n\n\n"
                "def moved(model, use):\n"
                "    before = copy.deepcopy(model.state_dict())\n"
                "    after = model.state_dict()\n"
                "    return [n for n in before if not torch.equal(before[n], after[n])]\n",
                "call use(model) once",
            ),
            WrongAnswer(
                "one text",
                "def moved(model, use):\n"
                "    before = {n: t.clone() for n, t in model.state_dict().items()}\n"
                "    use(model)\n"
                "    after = model.state_dict()\n"
                "    names = [n for n in before if not torch.equal(before[n], after[n])]\n"
                '    return ", ".join(names)\n',
                "Return a list of names",
            ),
            WrongAnswer(
                "everything named",
                "def moved(model, use):\n    use(model)\n    return list(model.state_dict())\n",
                "holds the same numbers as before",
            ),
            WrongAnswer(
                "a copy is used",
                "import copy\n"
                "\n"
                "\n"
                "def moved(model, use):\n"
                "    twin = copy.deepcopy(model)\n"
                "    use(twin)\n"
                "    before, after = model.state_dict(), twin.state_dict()\n"
                "    return [n for n in before if not torch.equal(before[n], after[n])]\n",
                "use was called with another object",
            ),
        ),
    ),
    "17.5": Exercise(
        title="Decide from seeds",
        minutes=8,
        task="`with_it` and `without` map seeds to scores; `t` is Student's quantile for the pairs. "
        "Take the differences of the seeds that both have. The interval is mean ± t · spread / √n, "
        "spread with n − 1. Return 'helped' above 0, 'hurt' below, else 'cannot tell', also for "
        "one pair or none.",
        stub="def verdict(with_it, without, t):\n"
        '    """Return helped, hurt or cannot tell."""\n'
        "    ...\n",
        answer="verdict",
        test=test_verdict,
        hints=(
            "Subtract first: what both runs of a seed share drops out of the difference.",
            "Gains of 1.1, 0.9, 1.0, 1.2 and 0.8 over scores from 90 to 98 are a clear gain.",
            "gains = [with_it[seed] - without[seed] for seed in with_it if seed in without]",
        ),
        solution="def verdict(with_it, without, t):\n"
        "    seeds = [seed for seed in with_it if seed in without]\n"
        "    if len(seeds) < 2:\n"
        "        return 'cannot tell'\n"
        "    gains = torch.tensor([with_it[s] - without[s] for s in seeds]).double()\n"
        "    half = t * gains.std() / len(gains) ** 0.5\n"
        "    if gains.mean() > half:\n"
        "        return 'helped'\n"
        "    return 'hurt' if gains.mean() < -half else 'cannot tell'\n",
        wrong=(
            WrongAnswer(
                "best against best",
                "def verdict(with_it, without, t):\n"
                "    best, other = max(with_it.values()), max(without.values())\n"
                "    return 'helped' if best > other else 'hurt' if best < other else 'cannot tell'\n",
                "two lucky seeds",
            ),
            WrongAnswer(
                "means only",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    mean = sum(gains) / len(gains)\n"
                "    return 'helped' if mean > 0 else 'hurt' if mean < 0 else 'cannot tell'\n",
                "Without the spread",
            ),
            WrongAnswer(
                "unpaired",
                "def verdict(with_it, without, t):\n"
                "    if min(len(with_it), len(without)) < 2:\n"
                "        return 'cannot tell'\n"
                "    a = torch.tensor(list(with_it.values())).double()\n"
                "    b = torch.tensor(list(without.values())).double()\n"
                "    half = t * (a.var() / len(a) + b.var() / len(b)) ** 0.5\n"
                "    gain = a.mean() - b.mean()\n"
                "    return 'helped' if gain > half else 'hurt' if gain < -half else 'cannot tell'\n",
                "same seed belong together",
            ),
            WrongAnswer(
                "paired by place",
                "def verdict(with_it, without, t):\n"
                "    pairs = zip(with_it.values(), without.values())\n"
                "    gains = torch.tensor([a - b for a, b in pairs]).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "Pair by seed",
            ),
            WrongAnswer(
                "seeds of one side only",
                "def verdict(with_it, without, t):\n"
                "    gains = torch.tensor([with_it[s] - without[s] for s in without]).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "in one dictionary only",
            ),
            WrongAnswer(
                "seeds of the other side only",
                "def verdict(with_it, without, t):\n"
                "    gains = torch.tensor([with_it[s] - without[s] for s in with_it]).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "in one dictionary only",
            ),
            WrongAnswer(
                "paired by rank",
                "def verdict(with_it, without, t):\n"
                "    pairs = zip(sorted(with_it.values()), sorted(without.values()))\n"
                "    gains = torch.tensor([a - b for a, b in pairs]).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "Pair by seed, not by rank",
            ),
            WrongAnswer(
                "equal runs helped",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    gains = torch.tensor(gains).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean >= half else 'hurt' if mean <= -half else 'cannot tell'\n",
                "use > and <",
            ),
            WrongAnswer(
                "divided by the spread",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    n = len(gains)\n"
                "    if n < 2:\n"
                "        return 'cannot tell'\n"
                "    mean = sum(gains) / n\n"
                "    spread = (sum((g - mean) ** 2 for g in gains) / (n - 1)) ** 0.5\n"
                "    ratio = mean * n**0.5 / spread\n"
                "    return 'helped' if ratio > t else 'hurt' if ratio < -t else 'cannot tell'\n",
                "Equal runs have a spread of 0",
            ),
            WrongAnswer(
                "no common seed forgotten",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    n = len(gains)\n"
                "    mean = sum(gains) / n\n"
                "    if n == 1:\n"
                "        return 'cannot tell'\n"
                "    half = t * (sum((g - mean) ** 2 for g in gains) / (n - 1)) ** 0.5 / n**0.5\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "No seed has two scores",
            ),
            WrongAnswer(
                "n for n - 1",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    gains = torch.tensor(gains).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = t * gains.std(correction=0) / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "divides by n − 1",
            ),
            WrongAnswer(
                "1.96",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    gains = torch.tensor(gains).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half = 1.96 * gains.std() / len(gains) ** 0.5\n"
                "    mean = gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "1.96 belongs to many runs",
            ),
            WrongAnswer(
                "spread of single runs",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    gains = torch.tensor(gains).double()\n"
                "    if len(gains) < 2:\n"
                "        return 'cannot tell'\n"
                "    half, mean = t * gains.std(), gains.mean()\n"
                "    return 'helped' if mean > half else 'hurt' if mean < -half else 'cannot tell'\n",
                "spread of single runs",
            ),
            WrongAnswer(
                "yes or no",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    n = len(gains)\n"
                "    mean = sum(gains) / n\n"
                "    return mean > 0\n",
                "Answer 'helped', 'hurt' or 'cannot tell'",
            ),
            WrongAnswer(
                "one pair divided by 0",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    n = len(gains)\n"
                "    mean = sum(gains) / n\n"
                "    half = t * (sum((g - mean) ** 2 for g in gains) / (n - 1)) ** 0.5 / n**0.5\n"
                '    return "helped" if mean > half else "hurt" if mean < -half else "cannot tell"\n',
                "With one pair there is no spread",
            ),
            WrongAnswer(
                "t forgotten",
                "def verdict(with_it, without, t):\n"
                "    gains = [with_it[s] - without[s] for s in with_it if s in without]\n"
                "    n = len(gains)\n"
                "    mean = sum(gains) / n\n"
                "    if n < 2:\n"
                '        return "cannot tell"\n'
                "    half = (sum((g - mean) ** 2 for g in gains) / (n - 1)) ** 0.5 / n**0.5\n"
                '    return "helped" if mean > half else "hurt" if mean < -half else "cannot tell"\n',
                "Yours has no t",
            ),
        ),
    ),
}
