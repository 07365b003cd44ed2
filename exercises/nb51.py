"""Ask and check what 51_steer_the_optimizer teaches."""

import math
import random
import warnings
from dataclasses import replace

import torch
from torch import nn

from exercises._answers import edited, returning
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "51.p1": Choice(
        question="After the one gradient of 1,000, how does Adam move?",
        options={
            "it diverges": "Adam divides by the root of its second moment, so no step is much "
            "larger than the rate. SGD is the one that jumps.",
            "it recovers within 1,000 steps": "The average keeps 0.999 of itself per step, so "
            "after 1,000 steps more than a third of what the spike added is still there.",
            "it crawls for thousands of steps": "Right: the second moment has seen a million, and "
            "forgets a thousandth of it per step.",
            "nothing changes": "The step is bounded. What divides it remembers.",
        },
    ),
    "51.p2": Number(
        question="Of 10,000 gradients one is NaN. How many are NaN after clip_grad_norm_?",
        unit="gradients",
        notes=(
            (0, 1, "Clipping multiplies. No factor makes a number of a NaN."),
            (1, 2, "That is clipping element by element. The norm is one number for all."),
            (2, 9_999, "More: every gradient is multiplied by the same factor."),
            (9_999, 10_001, "Right: the norm is NaN, and each gradient is multiplied by it."),
            (10_001, float("inf"), "There are only 10,000."),
        ),
    ),
    "51.p3": Number(
        question="Three schedulers are constructed, and nothing has stepped. What is the rate?",
        unit="",
        notes=(
            (-1e9, 1e-6, "min_lr is where OneCycleLR ends."),
            (1e-6, 0.001, "Right: max_lr / 25, where OneCycleLR begins."),
            (0.001, 0.05, "max_lr is the peak of OneCycleLR. It begins at a 25th of it."),
            (0.05, 1e9, "That is what the optimizer was given. The constructors wrote over it."),
        ),
    ),
    "51.p4": Choice(
        question="T_max is 100. What is the rate after 200 steps?",
        options={
            "0.0": "It is 0 at step 100. A cosine goes on.",
            "0.1": "Right: T_max is half a period. After it the rate rises to where it began.",
            "an error": "OneCycleLR raises after its last step. A cosine has none.",
        },
    ),
    "51.p5": Number(
        question="At the end, the error at rate 0.2 is how many times that at rate 0.1?",
        unit="times",
        notes=(
            (0, 0.9, "Both have long arrived. The larger step makes the larger noise."),
            (0.9, 1.3, "Both do get there, and then stay at different distances."),
            (1.3, 3, "Right: the floor is the rate / (2 − the rate), so a little more than twice."),
            (3, 1e9, "Each step's noise has 4 times the square, and is forgotten twice as fast."),
        ),
    ),
    "51.p6": Number(
        question="The model defines 234 numbers. How many does the optimizer get?",
        unit="numbers",
        notes=(
            (0, 17, "The head is an attribute, and so registered."),
            (17, 20, "Right: the head alone. The list hides the blocks."),
            (20, 230, "All three blocks stand in one list: none of them or all."),
            (230, 1e9, "A module finds modules that are attributes. It does not look into lists."),
        ),
    ),
}


def _kind(value):
    """Name the type of what came back."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _is_number(value):
    if isinstance(value, torch.Tensor):
        return value.ndim == 0
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- 51.1 -------------------------------------------------------------------------------


def _with_gradients(norm, *, unused=False):
    """Return parameters of several shapes whose gradients have this norm together."""
    shapes = [(4, 3), (5,), (2, 3, 2)]
    parameters = [nn.Parameter(torch.randn(shape)) for shape in shapes]
    gradients = [torch.randn(shape) for shape in shapes]
    now = math.sqrt(sum(g.double().square().sum().item() for g in gradients))
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = gradient * (norm / now)
    if unused:
        parameters.insert(1, nn.Parameter(torch.randn(3)))
    return parameters


def test_clip_global(answer, call):
    _one_clip(answer, call, norm=8.0)
    _one_clip(answer, call, norm=0.2)
    _one_clip(answer, call, norm=8.0, unused=True)
    _one_clip(answer, call, norm=8.0, generator=True)


def _one_clip(answer, call, *, norm, unused=False, generator=False):
    max_norm = random.uniform(0.5, 2.0)
    parameters = _with_gradients(norm, unused=unused)
    held = [p.grad for p in parameters]
    before = [None if g is None else g.clone() for g in held]
    given = (p for p in parameters) if generator else parameters
    try:
        got = call(answer, given, max_norm, may_change=(0,))
    except (AttributeError, TypeError):
        if not unused:
            raise
        raise Wrong(
            "A parameter that took no part in the loss has no gradient: p.grad is None. Leave "
            "it out."
        ) from None
    if not _is_number(got):
        raise Wrong(f"Return the norm as a number, got {_kind(got)}")
    _about_gradients(parameters, held, before, (norm, max_norm), generator=generator)
    _about_norm(float(got), before, norm, max_norm)


def _about_gradients(parameters, held, before, norms, *, generator):
    norm, max_norm = norms
    factor = min(1.0, max_norm / norm)
    pairs = [(p, g, b) for p, g, b in zip(parameters, held, before, strict=True) if b is not None]
    if any(p.grad is not g for p, g, _ in pairs):
        raise Wrong(
            "p.grad became a new tensor. Whoever holds the old one keeps unclipped numbers: "
            "multiply in place."
        )
    if all(torch.allclose(g, factor * b, rtol=1e-3) for _, g, b in pairs):
        return
    after = [g for _, g, _ in pairs]
    unchanged = all(torch.equal(g, b) for _, g, b in pairs)
    raise Wrong(_why_gradients(after, [b for *_, b in pairs], norms, unchanged, generator))


def _why_gradients(after, before, norms, unchanged, generator):
    norm, max_norm = norms
    if unchanged and generator:
        return (
            "`parameters` was a generator, and its gradients were left alone: the first pass "
            "uses it up, the second sees nothing. Make a list first."
        )
    if unchanged:
        return f"The norm is {norm:g}, more than {max_norm:.2f}, and no gradient was changed."
    if norm < max_norm:
        return (
            f"The norm was {norm:g}, and {max_norm:.2f} was allowed: such gradients stay as they "
            "are. Clipping never makes a gradient larger."
        )
    if any(torch.isclose(g.norm(), torch.tensor(max_norm), rtol=1e-3) for g in after):
        return (
            "Each tensor was clipped by itself, so the direction of the whole gradient changed. "
            "Take one norm over all of them and one factor."
        )
    if all(g.abs().max() <= max_norm * 1.001 for g in after) and any(
        torch.equal(g, b.clamp(-max_norm, max_norm)) for g, b in zip(after, before, strict=True)
    ):
        return "That bounds each element and turns the gradient. Multiply all by one factor."
    reached = math.sqrt(sum(g.double().square().sum().item() for g in after))
    return (
        f"The norm afterwards is {reached:.3g}, and {max_norm:.3g} was asked for. The whole norm "
        "is the root of the sum of all squares."
    )


def _about_norm(got, before, norm, max_norm):
    if math.isclose(got, norm, rel_tol=1e-3):
        return
    said = f"The norm before clipping was {norm:g}, got {got:.4g}. "
    if math.isclose(got, min(norm, max_norm), rel_tol=1e-3):
        raise Wrong(
            said + "That is the norm afterwards, which says nothing any more: a log needs the "
            "one that shows spikes."
        )
    if math.isclose(got, min(1.0, max_norm / norm), rel_tol=1e-3):
        raise Wrong(said + "That is the factor.")
    raise Wrong(said + "Return the number that was compared with max_norm.")


# --- 51.2 -------------------------------------------------------------------------------


class _Case:
    """Hold a weight, its optimizer, a scaler and a scheduler that halves the rate each step."""

    def __init__(self, slope):
        self.weight = nn.Parameter(torch.zeros(4))
        self.slope = slope
        self.optimizer = torch.optim.SGD([self.weight], lr=1.0)
        self.scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, 1, gamma=0.5)
        self.rates, self.stale = [], False
        self.weight.register_hook(self._look_at_what_is_there)
        self.optimizer.register_step_post_hook(
            lambda which, *_: self.rates.append(which.param_groups[0]["lr"])
        )

    def _look_at_what_is_there(self, gradient):
        self.stale |= self.weight.grad is not None and bool(self.weight.grad.any())

    def run(self, answer, call):
        given = (self.optimizer, self.scaler, self.scheduler)
        with torch.enable_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loss = (self.slope * self.weight).sum()
            try:
                call(answer, loss, [self.weight], *given, may_change=(0, 1, 2, 3, 4))
            except (AssertionError, RuntimeError) as error:
                why = _why_scaler(str(error))
                if why is None:
                    raise
                raise Wrong(why) from None
        return self


def _why_scaler(text):
    if "unscale_() has already been called" in text:
        return "The gradients were divided twice. Call unscale_ once between two updates."
    if "after step" in text or "after update" in text or "inf checks" in text:
        return "The order is unscale_, scaler.step, update: each of them once."
    return None


def test_amp_step(answer, call):
    for size in (0.25, 3.0):
        slope = torch.nn.functional.normalize(torch.randn(4), dim=0) * size
        case = _Case(slope).run(answer, call)
        if case.rates and case.rates[0] != 1.0:
            raise Wrong(
                f"The first step was taken at the rate {case.rates[0]:g}, not 1: scheduler.step() "
                "comes after the optimizer has stepped."
            )
        _about_step(case, -slope * min(1.0, 1.0 / size), size)
        if case.scheduler.get_last_lr() != [0.5]:
            raise Wrong(
                "The step was taken and the schedule did not advance once: its rate is "
                f"{case.scheduler.get_last_lr()[0]:g}, expected 0.5."
            )
        if case.run(answer, call).stale:  # clearing at the end or at the next start, both will do
            raise Wrong("The gradient is still there and would be added to the next: clear it.")
    _about_overflow(_Case(torch.full((4,), 3e38)).run(answer, call))


def _about_step(case, expected, size):
    got = case.weight.detach()
    if torch.allclose(got, expected, rtol=1e-2):
        return
    moved, wanted = got.norm().item(), expected.norm().item()
    said = f"The gradient has norm {size:g}; the step has {moved:.3g}, expected {wanted:.3g}. "
    if moved == 0:
        raise Wrong(said + "No step was taken: is scaler.step(optimizer) there?")
    if math.isclose(moved, size / 2**16, rel_tol=1e-2):
        raise Wrong(
            said + "The gradients were divided by the scale twice: update() comes after "
            "scaler.step, which remembers unscale_ only until then."
        )
    if moved < 1e-3:
        raise Wrong(
            said + "Clipping saw gradients that were still 65,536 times too large. Call "
            "scaler.unscale_(optimizer) before it."
        )
    if math.isclose(moved, size, rel_tol=1e-2):
        raise Wrong(said + "Nothing was clipped to the norm 1.")
    if moved > 1e3:
        raise Wrong(
            said + "That step used scaled gradients: let scaler.step(optimizer) take it, or "
            "divide them first."
        )
    raise Wrong(said + "Clip the norm to 1, once, after unscale_.")


def _about_overflow(case):
    if case.weight.detach().any() or case.weight.isnan().any():
        raise Wrong(
            "The gradients overflowed, and the weights moved. Let scaler.step(optimizer) decide: "
            "it skips such a step."
        )
    if case.scaler.get_scale() >= 2.0**16:
        raise Wrong("After an overflow the scale did not shrink: call scaler.update().")
    if case.scheduler.get_last_lr() != [1.0]:
        raise Wrong(
            "The step was skipped, and the schedule advanced all the same. A scale that shrank in "
            "update() tells that a step was skipped."
        )


# --- 51.3 -------------------------------------------------------------------------------


def _torch_factors(warmup, total, count):
    """Let PyTorch's own schedulers compute the factors."""
    from torch.optim import lr_scheduler

    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], lr=1.0)
    cosine = lr_scheduler.CosineAnnealingLR(optimizer, total - warmup)
    schedule = cosine
    if warmup:
        optimizer.param_groups[0]["lr"] = 1.0
        line = lr_scheduler.LinearLR(optimizer, 1 / (warmup + 1), total_iters=warmup)
        cosine = lr_scheduler.CosineAnnealingLR(optimizer, total - warmup)
        schedule = lr_scheduler.SequentialLR(optimizer, [line, cosine], [warmup])
    factors = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(total + 1):
            factors.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            schedule.step()
    return factors + [0.0] * (count - len(factors))


def test_warmup_cosine(answer, call):
    for _ in range(3):
        warmup, total = random.randint(2, 9), random.randint(20, 60)
        _one_schedule(answer, call, warmup, total)
    _one_schedule(answer, call, 0, random.randint(5, 30))


def _one_schedule(answer, call, warmup, total):
    truth = _torch_factors(warmup, total, total + 6)
    for step, expected in enumerate(truth):
        try:
            got = call(answer, step, warmup, total)
        except ZeroDivisionError:
            raise Wrong(f"With warmup={warmup} your code divides by 0 at step {step}.") from None
        if not _is_number(got):
            raise Wrong(f"Return the factor as a number, got {_kind(got)}")
        if not math.isclose(got, expected, rel_tol=1e-5, abs_tol=1e-7):
            why = _why_factor(float(got), step, warmup, total)
            raise Wrong(
                f"warmup={warmup}, total={total}: at step {step} the factor is {expected:.4g}, "
                f"got {got:.4g}. {why}"
            )


def _why_factor(got, step, warmup, total):
    if step <= warmup:
        return _why_warmup(got, step, warmup)
    if step > total:
        return "The schedule is over: stay at 0. A cosine rises again unless you stop it."
    share = (step - warmup) / (total - warmup)
    known = {
        (1 + math.cos(math.pi * step / total)) / 2: "The decay begins after the warm-up: use "
        "(step - warmup) / (total - warmup).",
        (1 + math.cos(math.radians(share * 180) / 180 * math.pi)) / 2: "math.cos takes radians: "
        "half a turn is math.pi, not 180 degrees.",
        (1 + math.cos(180 * share)) / 2: "math.cos takes radians: half a turn is math.pi, not 180.",
        math.cos(math.pi * share): "A cosine runs from 1 to -1. Add 1 and halve.",
        (1 + math.cos(2 * math.pi * share)) / 2: "That is a whole turn, back at 1. Half a turn "
        "ends at 0.",
        1 - share: "That is a straight line. Half a turn of a cosine was asked for.",
    }
    for value, sentence in known.items():
        if math.isclose(got, value, rel_tol=1e-5, abs_tol=1e-7):
            return sentence
    return "From 1 at `warmup` to 0 at `total`: (1 + cos(pi * share)) / 2."


def _why_warmup(got, step, warmup):
    if step == 0 and got == 0:
        return "A factor of 0 wastes the first step: begin at 1 / (warmup + 1)."
    if warmup and math.isclose(got, (step + 1) / warmup, rel_tol=1e-6):
        return "Your warm-up ends one step early. Step `warmup` is the first with factor 1."
    if got == 1:
        return "The warm-up is missing: it grows from step to step."
    return "The warm-up is (step + 1) / (warmup + 1), and 1 at `warmup`."


# --- 51.4 -------------------------------------------------------------------------------


class _Text(nn.Module):
    """Be a model with everything that a name or a type cannot tell."""

    def __init__(self):
        super().__init__()
        width = random.randint(3, 6)
        self.embed = nn.Embedding(7, width)
        self.scale = nn.Parameter(torch.ones(width))
        self.mix = nn.Parameter(torch.randn(width, width))
        self.norm = nn.LayerNorm(width)
        self.convolution = nn.Conv1d(width, width, 3)
        self.batch_norm = nn.BatchNorm1d(width)
        self.frozen = nn.Linear(width, width).requires_grad_(False)
        self.head = nn.Linear(width, 7)
        self.head.weight = self.embed.weight


def test_make_groups(answer, call):
    model, weight_decay = _Text(), random.uniform(0.05, 0.3)
    got = call(answer, model, weight_decay, may_change=(0,))
    _about_form(got)
    names = {id(p): name for name, p in model.named_parameters()}
    placed = [(p, group) for group in got for p in group["params"]]
    counts = [(p, sum(p is q for q, _ in placed)) for p, _ in placed]
    for p, count in counts:
        if id(p) not in names:
            raise Wrong("A group holds a tensor that is no parameter of the model.")
        if count > 1:
            raise Wrong(
                f"{names[id(p)]} is there {count} times: two modules share that tensor. It must "
                "be in exactly one group, once."
            )
    _about_members(model, placed)
    for p, group in placed:
        if not math.isclose(group["weight_decay"], weight_decay if p.ndim > 1 else 0.0):
            raise Wrong(_why_decay(names[id(p)], p, group["weight_decay"]))


def _about_form(got):
    if not isinstance(got, (list, tuple)) or not all(isinstance(g, dict) for g in got):
        raise Wrong(f"Return a list of dicts, got {_kind(got)}")
    if not got:
        raise Wrong("Return a list of dicts: it is empty.")
    for group in got:
        if not {"params", "weight_decay"} <= set(group):
            raise Wrong(
                f"A group has the keys {sorted(group)}. Without params and weight_decay in each "
                "group, the optimizer's default is used: AdamW's is not 0."
            )
        if not isinstance(group["params"], (list, tuple)):
            raise Wrong(
                f"params is a {type(group['params']).__name__}. Whoever reads a generator first "
                "leaves nothing for the optimizer: store a list."
            )


def _about_members(model, placed):
    for name, p in model.named_parameters():
        there = any(p is q for q, _ in placed)
        if there and not p.requires_grad:
            raise Wrong(f"{name} is frozen (requires_grad is False). Leave it out.")
        if not there and p.requires_grad:
            raise Wrong(
                f"{name} is trainable and in no group: it will never move, and nothing will say so."
            )


def _why_decay(name, p, decay):
    if p.ndim > 1:
        return f"{name} has {p.ndim} dimensions, and its weight_decay is {decay:g}. It decays."
    if "bias" in name:
        return f"{name} is a bias, and decays by {decay:.3g}. Biases do not decay."
    return (
        f"{name} has one dimension, and decays by {decay:.3g}. No name tells a norm's scale: ask "
        "for p.ndim."
    )


# --- 51.5 -------------------------------------------------------------------------------

_OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD([p], lr=0.1),
    "SGD with momentum": lambda p: torch.optim.SGD([p], lr=0.1, momentum=0.9),
    "SGD with weight decay": lambda p: torch.optim.SGD([p], lr=0.1, weight_decay=0.1),
    "Adam": lambda p: torch.optim.Adam([p], lr=0.1),
    "AdamW": lambda p: torch.optim.AdamW([p], lr=0.1),
}


def test_step_except(answer, call):
    for name, make in _OPTIMIZERS.items():
        weight = nn.Parameter(torch.randn(5, 3))
        twin = nn.Parameter(weight.detach().clone())
        optimizer, reference = make(weight), make(twin)
        rows = sorted(random.sample(range(5), 2))
        for step in range(8):
            gradient = torch.randn(5, 3)
            weight.grad, twin.grad = gradient.clone(), gradient.clone()
            reference.step()
            if step < 4:
                optimizer.step()
                continue
            before = weight.detach().clone()
            _call_step(answer, call, optimizer, weight, rows)
            _about_rows(name, weight.detach(), before, twin.detach(), rows)


def _call_step(answer, call, optimizer, weight, rows):
    try:
        call(answer, optimizer, weight, rows, may_change=(0, 1))
    except RuntimeError as error:
        if "leaf" not in str(error):
            raise
        raise Wrong(
            "A part of a parameter has no requires_grad of its own, and is changed only under "
            "torch.no_grad()."
        ) from None


def _about_rows(name, weight, before, free, rows):
    others = [row for row in range(len(weight)) if row not in rows]
    if torch.equal(weight[others], before[others]):
        raise Wrong(f"{name}: the other rows did not move. Let the optimizer step.")
    if not torch.equal(weight[rows], before[rows]):
        moved = (weight[rows] - before[rows]).abs().max().item()
        raise Wrong(
            f"{name}: a frozen row moved by {moved:.2g}. Without a gradient the optimizer's memory "
            "and weight decay still move it. Put the rows back after the step."
        )
    if not torch.allclose(weight[others], free[others], rtol=1e-4, atol=1e-6):
        raise Wrong(
            f"{name}: the other rows do not move as they would without your change. Leave rate, "
            "momentum and decay alone."
        )


EXERCISES = {
    "51.1": Exercise(
        title="Clip all gradients by one norm",
        minutes=8,
        task="`parameters` may be any iterable. If the norm of all gradients together is above "
        "`max_norm`, multiply every gradient in place so that it becomes `max_norm`. Return the "
        "norm before. Write it without `clip_grad_norm_`.",
        stub="def clip_global(parameters, max_norm):\n"
        '    """Clip in place; return the norm before."""\n'
        "    ...\n",
        answer="clip_global",
        test=test_clip_global,
        hints=(
            "One factor for all gradients keeps the direction. It is never above 1.",
            "Gradients 3 in one tensor and 4 in another have the norm 5: not 7, and not 3 and 4.",
            "Start with gradients = [p.grad for p in parameters if p.grad is not None].",
        ),
        solution="def clip_global(parameters, max_norm):\n"
        "    gradients = [p.grad for p in parameters if p.grad is not None]\n"
        "    norm = sum(g.square().sum() for g in gradients) ** 0.5\n"
        "    factor = min(1.0, max_norm / (norm.item() + 1e-6))\n"
        "    for g in gradients:\n"
        "        g.mul_(factor)\n"
        "    return norm\n",
        wrong=(),
    ),
    "51.2": Exercise(
        title="Put a mixed-precision step in order",
        minutes=8,
        task="The step shall move the weights as float32 would, with the norm of the gradient "
        "clipped to 1. When the scaler skips a step, the schedule shall wait. Repair the order and "
        "add what is missing.",
        stub="def amp_step(loss, parameters, optimizer, scaler, scheduler):\n"
        "    scaler.scale(loss).backward()\n"
        "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
        "    scaler.step(optimizer)\n"
        "    scaler.update()\n"
        "    scheduler.step()\n"
        "    optimizer.zero_grad()\n",
        answer="amp_step",
        test=test_amp_step,
        hints=(
            "Between backward and unscale_ the gradients are as many times too large as the scale.",
            "With a gradient of norm 0.25 nothing is to be clipped, yet the stub's step is 1.5e-5.",
            "After backward comes scaler.unscale_(optimizer); before update, scale = "
            "scaler.get_scale().",
        ),
        solution="def amp_step(loss, parameters, optimizer, scaler, scheduler):\n"
        "    scaler.scale(loss).backward()\n"
        "    scaler.unscale_(optimizer)\n"
        "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
        "    scaler.step(optimizer)\n"
        "    scale = scaler.get_scale()\n"
        "    scaler.update()\n"
        "    if scaler.get_scale() >= scale:\n"
        "        scheduler.step()\n"
        "    optimizer.zero_grad()\n",
        wrong=(),
    ),
    "51.3": Exercise(
        title="Write warm-up and decay as a formula",
        minutes=8,
        task="`LambdaLR` multiplies the rate by your factor of the step: (step + 1) / (warmup + 1) "
        "until `warmup`, where it is 1; then half a turn of a cosine, down to 0 at `total`; 0 from "
        "there on. `warmup` may be 0.",
        stub="def warmup_cosine(step, warmup, total):\n"
        '    """Return the factor for this step, a number from 0 to 1."""\n'
        "    ...\n",
        answer="warmup_cosine",
        test=test_warmup_cosine,
        hints=(
            "Three pieces meet: at `warmup` both give 1, at `total` both give 0.",
            "With warmup=1, total=5 the factors are 0.5, 1, 0.854, 0.5, 0.146, 0, 0.",
            "Start with import math and if step < warmup: return (step + 1) / (warmup + 1).",
        ),
        solution="def warmup_cosine(step, warmup, total):\n"
        "    import math\n\n"
        "    if step < warmup:\n"
        "        return (step + 1) / (warmup + 1)\n"
        "    share = min((step - warmup) / (total - warmup), 1)\n"
        "    return (1 + math.cos(math.pi * share)) / 2\n",
        wrong=(),
    ),
    "51.4": Exercise(
        title="Put every parameter into one group",
        minutes=6,
        task="Return a list of dicts for AdamW, each with `params` and `weight_decay`. Trainable "
        "parameters of two or more dimensions decay, the others have 0. Each is in exactly one "
        "group; frozen ones are in none.",
        stub="def make_groups(model, weight_decay):\n"
        '    """Return the parameter groups: those that decay, and the rest."""\n'
        "    ...\n",
        answer="make_groups",
        test=test_make_groups,
        hints=(
            "The scale of a norm is called weight too, and has one dimension.",
            "Two modules of the model share one tensor: model.parameters() gives it once.",
            "Start with trainable = [p for p in model.parameters() if p.requires_grad].",
        ),
        solution="def make_groups(model, weight_decay):\n"
        "    trainable = [p for p in model.parameters() if p.requires_grad]\n"
        "    decays = [p for p in trainable if p.ndim >= 2]\n"
        "    rest = [p for p in trainable if p.ndim < 2]\n"
        "    return [\n"
        '        {"params": decays, "weight_decay": weight_decay},\n'
        '        {"params": rest, "weight_decay": 0.0},\n'
        "    ]\n",
        wrong=(),
    ),
    "51.5": Exercise(
        title="Keep some rows where they are",
        minutes=5,
        task="Take one step of `optimizer` that leaves `weight[rows]` as it is, bit for bit. The "
        "stub's gradient of zero does so with plain SGD alone. The other rows move as ever.",
        stub="def step_except(optimizer, weight, rows):\n"
        "    weight.grad[rows] = 0\n"
        "    optimizer.step()\n",
        answer="step_except",
        test=test_step_except,
        hints=(
            "What moves a weight whose gradient is zero? Momentum, Adam's moments, weight decay.",
            "After four steps with a gradient, Adam moves a row whose gradient is zero from then "
            "on.",
            "Start with kept = weight[rows].detach().clone(), before the step.",
        ),
        solution="def step_except(optimizer, weight, rows):\n"
        "    kept = weight[rows].detach().clone()\n"
        "    optimizer.step()\n"
        "    with torch.no_grad():\n"
        "        weight[rows] = kept\n",
        wrong=(),
    ),
}


def _edited(id, name, old, new, says):
    return edited(EXERCISES[id], name, says, (old, new))


def _returning(id, what, says):
    return returning(EXERCISES[id], what, says)


def _cosine(name, formula, says):
    return _edited("51.3", name, "(1 + math.cos(math.pi * share)) / 2", formula, says)


_WRONG = {
    "51.1": (
        WrongAnswer("each tensor by itself", "def clip_global(parameters, max_norm):\n"
                    "    total = 0.0\n"
                    "    for p in parameters:\n"
                    "        if p.grad is not None:\n"
                    "            norm = p.grad.norm()\n"
                    "            total += norm.item() ** 2\n"
                    "            p.grad.mul_(min(1.0, max_norm / norm.item()))\n"
                    "    return total**0.5\n", "Each tensor was clipped by itself"),
        _edited("51.1", "scales up", "min(1.0, max_norm / (norm.item() + 1e-6))",
                "max_norm / norm.item()", "never makes a gradient larger"),
        _edited("51.1", "norm after", "return norm", "return norm * factor",
                "the norm afterwards"),
        _edited("51.1", "factor", "return norm", "return factor", "That is the factor."),
        _edited("51.1", "not the norm", "return norm", "return 3 * norm",
                "compared with max_norm"),
        WrongAnswer("a new tensor", "def clip_global(parameters, max_norm):\n"
                    "    ps = [p for p in parameters if p.grad is not None]\n"
                    "    norm = sum(p.grad.square().sum() for p in ps) ** 0.5\n"
                    "    for p in ps:\n"
                    "        p.grad = p.grad * min(1.0, max_norm / norm.item())\n"
                    "    return norm\n", "p.grad became a new tensor"),
        WrongAnswer("generator used up", "def clip_global(parameters, max_norm):\n"
                    "    norm = sum(p.grad.square().sum() for p in parameters "
                    "if p.grad is not None) ** 0.5\n"
                    "    for p in parameters:\n"
                    "        if p.grad is not None:\n"
                    "            p.grad.mul_(min(1.0, max_norm / norm.item()))\n"
                    "    return norm\n", "the second sees nothing"),
        WrongAnswer("by value", "def clip_global(parameters, max_norm):\n"
                    "    gradients = [p.grad for p in parameters if p.grad is not None]\n"
                    "    norm = sum(g.square().sum() for g in gradients) ** 0.5\n"
                    "    for g in gradients:\n        g.clamp_(-max_norm, max_norm)\n"
                    "    return norm\n", "bounds each element and turns"),
        _edited("51.1", "None forgotten", " if p.grad is not None", "", "p.grad is None"),
        _edited("51.1", "sum of norms", "sum(g.square().sum() for g in gradients) ** 0.5",
                "sum(g.norm() for g in gradients)", "root of the sum of all squares"),
        _edited("51.1", "only measured", "g.mul_(factor)", "g * factor", "no gradient was changed"),
        _returning("51.1", "None", "is a return missing?"),
        _returning("51.1", "[1.0]", "got list"),
        _returning("51.1", "'1'", "got str"),
        _returning("51.1", "torch.ones(2)", "got Tensor"),
    ),
    "51.2": (
        _edited("51.2", "no unscale_", "    scaler.unscale_(optimizer)\n", "",
                "65,536 times too large"),
        _edited("51.2", "unscale_ after clipping",
                "    scaler.unscale_(optimizer)\n"
                "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n",
                "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
                "    scaler.unscale_(optimizer)\n", "65,536 times too large"),
        _edited("51.2", "unscale_ twice", "    scaler.unscale_(optimizer)\n",
                "    scaler.unscale_(optimizer)\n    scaler.unscale_(optimizer)\n",
                "divided twice"),
        _edited("51.2", "unscale_ too late",
                "    scaler.unscale_(optimizer)\n"
                "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
                "    scaler.step(optimizer)\n",
                "    scaler.step(optimizer)\n    scaler.unscale_(optimizer)\n",
                "each of them once"),
        _edited("51.2", "optimizer.step", "scaler.step(optimizer)", "optimizer.step()",
                "the weights moved"),
        _edited("51.2", "scaled gradients", "    scaler.unscale_(optimizer)\n"
                "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n"
                "    scaler.step(optimizer)\n    scale = scaler.get_scale()\n"
                "    scaler.update()\n", "    optimizer.step()\n    scale = 0\n",
                "That step used scaled gradients"),
        _edited("51.2", "no clipping", "    torch.nn.utils.clip_grad_norm_(parameters, 1.0)\n",
                "", "Nothing was clipped"),
        _edited("51.2", "clipped to 2", "parameters, 1.0", "parameters, 2.0", "Clip the norm to 1"),
        _edited("51.2", "no step", "    scaler.step(optimizer)\n", "    scaler._check_inf_per_"
                "device(optimizer)\n", "No step was taken"),
        _edited("51.2", "schedule always", "    if scaler.get_scale() >= scale:\n"
                "        scheduler.step()\n", "    scheduler.step()\n", "the schedule advanced"),
        _edited("51.2", "schedule never", "    if scaler.get_scale() >= scale:\n"
                "        scheduler.step()\n", "", "did not advance once"),
        _edited("51.2", "schedule first", "    scaler.scale(loss).backward()\n",
                "    scheduler.step()\n    scaler.scale(loss).backward()\n",
                "comes after the optimizer"),
        _edited("51.2", "scale fixed", "    scaler.update()\n",
                "    scaler.update(2.0**16 if scale else None)\n", "did not shrink"),
        _edited("51.2", "gradients kept", "    optimizer.zero_grad()\n", "", "clear it"),
        _edited("51.2", "update before step",
                "    scaler.step(optimizer)\n    scale = scaler.get_scale()\n"
                "    scaler.update()\n",
                "    scale = scaler.get_scale()\n    scaler.update()\n"
                "    scaler.step(optimizer)\n", "divided by the scale twice"),
        _edited("51.2", "backward twice", "    scaler.unscale_(optimizer)\n",
                "    loss.backward()\n    scaler.unscale_(optimizer)\n",
                "backward through the graph a second time"),
    ),
    "51.3": (
        _edited("51.3", "rises again", "min((step - warmup) / (total - warmup), 1)",
                "(step - warmup) / (total - warmup)", "rises again unless you stop it"),
        _edited("51.3", "starts at 0", "(step + 1) / (warmup + 1)", "step / warmup",
                "wastes the first step"),
        _edited("51.3", "one step early", "(step + 1) / (warmup + 1)", "(step + 1) / warmup",
                "ends one step early"),
        _edited("51.3", "no warm-up", "(step + 1) / (warmup + 1)", "1", "warm-up is missing"),
        _edited("51.3", "half a warm-up", "(step + 1) / (warmup + 1)",
                "(step + 1) / (2 * warmup + 2)", "(step + 1) / (warmup + 1), and 1"),
        _cosine("degrees", "(1 + math.cos(180 * share)) / 2", "not 180"),
        _cosine("cosine alone", "math.cos(math.pi * share)", "Add 1 and halve"),
        _cosine("whole turn", "(1 + math.cos(2 * math.pi * share)) / 2", "a whole turn"),
        _cosine("straight line", "1 - share", "a straight line"),
        _cosine("square", "(1 - share) ** 2", "From 1 at `warmup`"),
        _cosine("step by total", "1.0 if step <= warmup else max(0.0, "
                "(1 + math.cos(math.pi * step / total)) / 2)", "begins after the warm-up"),
        _edited("51.3", "divides by warmup", "if step < warmup:\n        return "
                "(step + 1) / (warmup + 1)", "if (step + 1) / (warmup + 1) < warmup / warmup:\n"
                "        return (step + 1) / (warmup + 1)", "divides by 0"),
        _returning("51.3", "None", "is a return missing?"),
        _returning("51.3", "[1.0]", "got list"),
        _returning("51.3", "'1'", "got str"),
        _returning("51.3", "torch.ones(2)", "got Tensor"),
    ),
    "51.4": (
        WrongAnswer("by the name bias", "def make_groups(model, weight_decay):\n"
                    "    named = [(n, p) for n, p in model.named_parameters() "
                    "if p.requires_grad]\n"
                    '    return [{"params": [p for n, p in named if "bias" not in n],\n'
                    '             "weight_decay": weight_decay},\n'
                    '            {"params": [p for n, p in named if "bias" in n],\n'
                    '             "weight_decay": 0.0}]\n', "No name tells a norm's scale"),
        _edited("51.4", "frozen ones too", " if p.requires_grad", "", "is frozen"),
        _edited("51.4", "shared twice", "for p in model.parameters() if p.requires_grad",
                "for _, p in model.named_parameters(remove_duplicate=False) if p.requires_grad",
                "must be in exactly one group, once"),
        _edited("51.4", "only Linear", "[p for p in model.parameters() if p.requires_grad]",
                "[p for m in model.modules() if isinstance(m, torch.nn.Linear) "
                "for p in m.parameters() if p.requires_grad]", "in no group"),
        _edited("51.4", "no default", ', "weight_decay": 0.0', "", "the optimizer's default"),
        _edited("51.4", "a generator", '{"params": decays,', '{"params": iter(decays),',
                "leaves nothing for the optimizer"),
        _edited("51.4", "biases decay", '"weight_decay": 0.0', '"weight_decay": weight_decay',
                "decays by"),
        _edited("51.4", "all biases", "p.ndim >= 2]", "p.ndim >= 2 or any(p is m.bias for m in "
                "model.modules() if getattr(m, 'bias', None) is not None)]",
                "must be in exactly one group, once"),
        WrongAnswer("only biases decay", "def make_groups(model, weight_decay):\n"
                    "    named = [(n, p) for n, p in model.named_parameters() "
                    "if p.requires_grad]\n"
                    "    def decays(n, p):\n"
                    '        return p.ndim > 1 or n.endswith("bias")\n'
                    '    return [{"params": [p for n, p in named if decays(n, p)],\n'
                    '             "weight_decay": weight_decay},\n'
                    '            {"params": [p for n, p in named if not decays(n, p)],\n'
                    '             "weight_decay": 0.0}]\n', "Biases do not decay"),
        _edited("51.4", "only matrices of linear layers", "p.ndim >= 2]", "p.ndim == 2]",
                "in no group"),
        _edited("51.4", "none decays", '"weight_decay": weight_decay', '"weight_decay": 0.0',
                "It decays."),
        _edited("51.4", "copies", '{"params": decays,',
                '{"params": [torch.nn.Parameter(p.detach().clone()) for p in decays],',
                "no parameter of the model"),
        _returning("51.4", "None", "is a return missing?"),
        _returning("51.4", "[]", "it is empty"),
        _returning("51.4", "model.parameters()", "got generator"),
        _returning("51.4", "'groups'", "got str"),
        _returning("51.4", "torch.ones(2)", "got Tensor"),
    ),
    "51.5": (
        WrongAnswer("two zeroings", "def step_except(optimizer, weight, rows):\n"
                    "    weight.grad[rows] = 0.0\n    optimizer.step()\n"
                    "    weight.grad[rows] = 0.0\n", "a frozen row moved"),
        WrongAnswer("requires_grad_ of rows", "def step_except(optimizer, weight, rows):\n"
                    "    weight[rows].requires_grad_(False)\n    optimizer.step()\n",
                    "has no requires_grad of its own"),
        WrongAnswer("restored with a graph", "def step_except(optimizer, weight, rows):\n"
                    "    kept = weight[rows].detach().clone()\n    optimizer.step()\n"
                    "    with torch.enable_grad():\n        weight[rows] = kept\n",
                    "has no requires_grad of its own"),
        WrongAnswer("rate 0", "def step_except(optimizer, weight, rows):\n"
                    "    group = optimizer.param_groups[0]\n    rate = group['lr']\n"
                    "    group['lr'] = 0.0\n    optimizer.step()\n    group['lr'] = rate\n",
                    "Let the optimizer step"),
        WrongAnswer("no decay", "def step_except(optimizer, weight, rows):\n"
                    "    weight.grad[rows] = 0\n"
                    "    optimizer.param_groups[0]['weight_decay'] = 0.0\n"
                    "    optimizer.step()\n", "a frozen row moved"),
        WrongAnswer("kept a view", "def step_except(optimizer, weight, rows):\n"
                    "    kept = weight.detach()\n    optimizer.step()\n"
                    "    with torch.no_grad():\n        weight[rows] = kept[rows]\n",
                    "a frozen row moved"),
        WrongAnswer("another rate", "def step_except(optimizer, weight, rows):\n"
                    "    kept = weight[rows].detach().clone()\n"
                    "    optimizer.param_groups[0]['lr'] = 0.01\n    optimizer.step()\n"
                    "    with torch.no_grad():\n        weight[rows] = kept\n",
                    "do not move as they would"),
        _returning("51.5", "None", "Let the optimizer step"),
    ),
}  # fmt: skip

EXERCISES = {id: replace(exercise, wrong=_WRONG[id]) for id, exercise in EXERCISES.items()}
