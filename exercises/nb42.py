"""Ask and check what 42_train_in_mixed_precision teaches."""

import contextlib
import copy
import itertools
import math

import torch

from helpers import memory
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer

PREDICTIONS = {
    "42.p1": Number(
        question="w is 1.0 in bfloat16, and 0.001 is added a thousand times. What is w?",
        unit="",
        notes=(
            (-1e9, 0.99, "w never falls: nothing negative is added."),
            (0.99, 1.05, "Right: each of the thousand sums rounds back to 1."),
            (1.05, 1.95, "Rounding errors do not cancel here, they swallow: each sum is 1 again."),
            (1.95, 2.1, "That is float32. In bfloat16 the number after 1 is 1 + 2^-7."),
            (2.1, 1e9, "A thousand times 0.001 is 1, so 2 is the most that exact sums give."),
        ),
    ),
    "42.p2": Choice(
        question="All weights and images are bfloat16. Where does the training loss end?",
        options={
            "where float32 ends": "The gradients are as good as float32's. The weights do not "
            "take the updates.",
            "nan": "Range is not the problem: bfloat16 has as much of it as float32.",
            "a little above float32": "It is no noise around the right path: most updates vanish.",
            "near its start": "Right: most updates are smaller than half a step of their weight.",
        },
    ),
    "42.p3": Number(
        question="Of the gradients that are not zero in float32, how many percent are zero in "
        "float16?",
        unit="percent",
        notes=(
            (0, 1, "float16 ends near 6e-8. Gradients of a small loss lie below that."),
            (1, 50, "More: most of these gradients lie below 3e-8, and half a step rounds to 0."),
            (50, 80, "Nearly; it is even more."),
            (80, 101, "Right: most of them drowned."),
        ),
    ),
    "42.p4": Choice(
        question="The scale is so large that gradients overflow. What does scaler.step do to the "
        "weights?",
        options={
            "they become nan": "The scaler looks for values that are not finite before it lets "
            "the optimizer step.",
            "they move a little": "Nothing is clipped. A step with such gradients is left out.",
            "nothing": "Right: the step is skipped, and update() halves the scale.",
            "an error": "Overflow is expected: it is how the scaler finds the largest scale.",
        },
    ),
    "42.p5": Number(
        question="Layers are 1,024 wide. From which batch on do activations under autocast take no "
        "more bytes than in float32?",
        unit="rows",
        notes=(
            (0, 33, "The weights are copied, not moved: each copy costs 2 bytes per weight."),
            (33, 900, "More: each layer's copy has as many elements as 1,024 rows have."),
            (900, 1_200, "Right: where the batch has as many rows as the layer is wide."),
            (1_200, 1e12, "Less: the copies are as large as 1,024 rows, and no larger."),
        ),
    ),
}


def _kind(value):
    """Name the type of what came in place of an answer."""
    return "None: is a return missing?" if value is None else f"{type(value).__name__}."


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# --- 42.1 -------------------------------------------------------------------------------

_FORMATS = {(5, 10): torch.float16, (8, 7): torch.bfloat16}


def _gap(x, dtype):
    """Read the distance to the next number off the bits: the integer behind them counts up."""
    stored = torch.tensor(x, dtype=torch.float64).to(dtype)
    after = (stored.view(torch.int16) + 1).view(dtype)
    return (after.double() - stored.double()).item()


def _numbers(dtype):
    tiny = torch.finfo(dtype).smallest_normal
    fixed = (1.0, 1.5, 2.0, 0.75, 1000.0, tiny, tiny / 4, tiny / 2 * 1.5)
    drawn = (math.exp(e) for e in torch.empty(20).uniform_(-8, 8).tolist())
    for x in (*fixed, *drawn):
        yield torch.tensor(x, dtype=torch.float64).to(dtype).double().item()


def test_step_size(answer, call):
    for (exponent_bits, fraction_bits), dtype in _FORMATS.items():
        for x in _numbers(dtype):
            got = call(answer, x, exponent_bits, fraction_bits)
            if not _is_number(got):
                raise Wrong(f"Return a Python number, got {_kind(got)}")
            gap = _gap(x, dtype)
            if got != gap:
                why = _why_step(x, got, gap, dtype, fraction_bits)
                raise Wrong(f"Beside {x:g} in {dtype} the step is {gap:g}, got {got:g}. {why}")


def _why_step(x, got, gap, dtype, fraction_bits):
    if x < torch.finfo(dtype).smallest_normal:
        if got == 2 * gap or got == gap / 2:
            return "The smallest normal exponent is 2 - 2^(exponent_bits - 1)."
        return "Below the smallest normal number the step no longer shrinks: it is constant."
    if got == 2.0**-fraction_bits:
        return "That is the step beside 1. It doubles at each power of two."
    if got == 2 * gap:
        return "The exponent is one too high: round log2(x) down, never to the nearest or up."
    if got == gap / 2:
        return "That is half a step, the largest rounding error."
    if got == x * 2.0**-fraction_bits:
        return "That is right at powers of two only. Between two of them the step stays the same."
    return "Between 2^e and 2^(e+1) lie 2^fraction_bits numbers at equal distance."


# --- 42.2 -------------------------------------------------------------------------------


def _activations(widths, batch, *, autocast):
    """Count what a stack keeps for backward, with the tracker of the course."""
    pairs = itertools.pairwise(widths)
    layers = [m for a, b in pairs for m in (torch.nn.Linear(a, b), torch.nn.ReLU())]
    model, x = torch.nn.Sequential(*layers), torch.ones(batch, widths[0])
    cast = torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast)
    with torch.enable_grad(), memory.track_memory(model, x) as count, cast:
        out = model(x)
    kept = count.live().by_category["activation"]
    del out
    return kept


def test_autocast_saves(answer, call):
    drawn = [torch.randint(2, 60, (n,)).tolist() for n in (4, 5)]
    for widths, batch in (([6, 4, 8], 5), ([3, 5], 7), *((w, 2 * w[0] + 3) for w in drawn)):
        got = call(answer, list(widths), batch)
        if not _is_number(got):
            raise Wrong(f"Return the bytes as a number, got {_kind(got)}")
        plain = _activations(widths, batch, autocast=False)
        truth = plain - _activations(widths, batch, autocast=True)
        if got != truth:
            why = _why_saves(widths, batch, got, truth)
            raise Wrong(
                f"Widths {widths} with a batch of {batch} save {truth:,} bytes as counted, got "
                f"{got:,}. {why}"
            )


def _why_saves(widths, batch, got, truth):
    pairs = list(itertools.pairwise(widths))
    all_weights = 2 * sum(a * b for a, b in pairs)
    copies = all_weights - 2 * widths[0] * widths[1]
    biases = sum(widths[1:])
    known = {
        2 * batch * biases: "You halved the outputs and counted no copy: neither the input's "
        "nor the weights'.",
        truth + copies: "Each layer keeps a 16-bit copy of its weight until backward, 2 bytes "
        "per weight. The first layer does not: its input needs no gradient.",
        truth + copies - all_weights: "The first layer's copy is freed: the input needs no "
        "gradient, so nobody keeps that weight.",
        truth + 2 * batch * widths[0]: "The input is float32 and is cast too: its 16-bit copy "
        "is kept for the gradient of the first weight.",
        truth - 2 * (biases - widths[1]): "A copy of a bias is not kept: backward of a sum does "
        "not need it.",
        -truth: "The sign is turned: positive is saved.",
        2 * batch * biases + all_weights + 2 * biases: "Parameters stay float32 and are not "
        "halved: they are copied.",
    }
    return known.get(got, "Count what each layer keeps: its input, and its weight's copy.")


# --- 42.3 -------------------------------------------------------------------------------


def _problem():
    torch.manual_seed(int(torch.randint(1_000, ())))
    x = torch.randn(512, 16)
    y = (x @ torch.randn(16, 4)).argmax(1)
    model = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    rows = torch.randint(512, (150, 32))
    return model, [(x[i], y[i]) for i in rows], x, y


def _reference(model, batches):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for x, y in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@contextlib.contextmanager
def _watched(model):
    """Note what each step and each layer of the reader's loop works with."""
    from torch.optim import optimizer as hooks

    seen = {"rates": set(), "dtypes": set(), "outputs": set(), "inside": False, "moved": []}
    before = []

    def before_step(optimizer, args, kwargs):
        before[:] = [p.detach().clone() for p in model.parameters()]
        seen["inside"] |= torch.is_autocast_enabled("cpu")
        for group in optimizer.param_groups:
            seen["rates"].add(group["lr"])
            seen["dtypes"] |= {p.dtype for p in group["params"]}

    def after_step(optimizer, args, kwargs):
        pairs = zip(model.parameters(), before, strict=True)
        changed = torch.cat([(p != q).flatten() for p, q in pairs])
        seen["moved"].append(changed.float().mean().item())

    handles = [
        hooks.register_optimizer_step_pre_hook(before_step),
        hooks.register_optimizer_step_post_hook(after_step),
    ]
    handles += [
        layer.register_forward_hook(lambda _, inputs, output: seen["outputs"].add(output.dtype))
        for layer in model
        if isinstance(layer, torch.nn.Linear)
    ]
    try:
        yield seen
    finally:
        for handle in handles:
            handle.remove()


def _names(answer):
    code = getattr(answer, "__code__", None)
    return set(getattr(code, "co_names", ()))


def test_train(answer, call):
    model, batches, x, y = _problem()
    twin = copy.deepcopy(model)
    _reference(twin, batches)
    with _watched(model) as seen, torch.enable_grad():
        call(answer, model, batches, may_change=(0,))
    steps = len(seen["moved"])
    if steps != len(batches):
        raise Wrong(f"{len(batches)} batches came and {steps} optimizer steps were taken.")
    if seen["rates"] != {0.01}:
        raise Wrong(
            "Leave the learning rate at 0.01: a larger one moves the frozen weights and breaks "
            "the rest."
        )
    if torch.bfloat16 in seen["dtypes"]:
        raise Wrong(_why_frozen(answer, model, sum(seen["moved"]) / steps))
    if seen["inside"]:
        raise Wrong("The step ran inside autocast. Leave the block before backward and step.")
    if torch.float16 in seen["outputs"]:
        raise Wrong("The layers gave float16, whose gradients need a scaler. Ask for bfloat16.")
    if torch.bfloat16 not in seen["outputs"]:
        raise Wrong(
            "float32 everywhere: the loss is right and no product was computed in 16 bits. "
            "autocast takes the device type of the tensors, here cpu."
        )
    if seen["outputs"] != {torch.bfloat16}:
        raise Wrong(
            "One layer computes in bfloat16 and another in float32: autocast belongs around the "
            "whole forward pass."
        )
    _about_loss(model, twin, x, y)


def _why_frozen(answer, model, moved):
    text = f"The optimizer stepped on bfloat16 weights; a step moved {moved:.0%} of them. "
    if "GradScaler" in _names(answer):
        return text + "A scaler lifts gradients; an update still rounds away beside its weight."
    if next(model.parameters()).dtype != torch.bfloat16:
        return text + "Converting back comes too late: the bits are gone already."
    return text + "Keep the weights in float32 and let autocast choose dtypes in the forward pass."


def _about_loss(model, twin, x, y):
    if any(parameter.dtype != torch.float32 for parameter in model.parameters()):
        raise Wrong(
            "The steps were right, and the model comes back in bfloat16: its weights are rounded "
            "all the same. Leave float32 weights in the model."
        )
    with torch.no_grad():
        losses = [torch.nn.functional.cross_entropy(m(x), y).item() for m in (model, twin)]
    if not abs(losses[0] - losses[1]) < 0.02 * losses[1]:
        raise Wrong(
            f"The loss ends at {losses[0]:.3f}, float32's at {losses[1]:.3f}. Clear the "
            "gradients before each backward, and change nothing else."
        )


# --- 42.4 -------------------------------------------------------------------------------


class _Recorder(torch.amp.GradScaler):
    """Be a scaler that counts its calls."""

    def __init__(self, **options):
        super().__init__("cpu", **options)
        self.calls, self.stepping = [], False

    def step(self, optimizer, *args, **kwargs):
        self.calls.append("step")
        self.stepping = True
        try:
            return super().step(optimizer, *args, **kwargs)
        finally:
            self.stepping = False

    def update(self, new_scale=None):
        self.calls.append("update")
        super().update(new_scale)


def _batches(overflow=None):
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(4)]
    if overflow is not None:
        x, y = batches[overflow]
        batches[overflow] = (x * 3e3, y)
    return batches


def _line():
    model = torch.nn.Linear(4, 1)
    return model, torch.optim.SGD(model.parameters(), lr=0.01)


def _run(answer, call, batches, scale):
    """Run the answer; return what a correct loop and the reader's loop did."""
    from torch.optim import optimizer as hooks

    model, optimizer = _line()
    twin = copy.deepcopy(model)
    twin_optimizer = torch.optim.SGD(twin.parameters(), lr=0.01)
    expected = _scaled_epoch(twin, twin_optimizer, torch.amp.GradScaler("cpu", scale), batches)
    scaler = _Recorder(init_scale=scale)
    seen = {"direct": 0, "inside": False}

    def before_step(which, args, kwargs):
        seen["direct"] += not scaler.stepping

    def at_gradient(gradient):
        seen["inside"] |= torch.is_autocast_enabled("cpu")

    for parameter in model.parameters():
        parameter.register_hook(at_gradient)
    handle = hooks.register_optimizer_step_pre_hook(before_step)
    try:
        with torch.enable_grad():
            got = call(answer, model, optimizer, scaler, batches, may_change=(0, 1, 2))
    except (AssertionError, RuntimeError) as error:
        raise Wrong(_why_refused(str(error), scaler.calls)) from None
    finally:
        handle.remove()
    return got, expected, model, twin, scaler, seen


def _why_refused(text, calls):
    if "since the last update" in text:
        return (
            "The scaler refuses a second step without an update() between them: without it the "
            "scale never recovers from an overflow. Call update() once after each step."
        )
    if ("inf checks" in text or "after step" in text) and "step" not in calls:
        return (
            "update() came, and no scaler.step() before it. optimizer.step() applies gradients "
            "that are as many times too large as the scale: step through the scaler."
        )
    if "inf checks" in text or "after step" in text:
        return "update() ran before step(): it has to know first whether that step was skipped."
    return f"The scaler or a layer refused: {text}"


def _scaled_epoch(model, optimizer, scaler, batches):
    losses = []
    with torch.enable_grad():
        for x, y in batches:
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=torch.float16):
                loss = torch.nn.functional.mse_loss(model(x), y)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            losses.append(loss.item())
    return losses


def test_scaled_epoch(answer, call):
    scale = 2.0**8
    calm = _run(answer, call, _batches(), scale)
    _about_calls(calm)
    _about_weights(calm)
    got, expected = calm[:2]
    _about_losses(got)
    if not all(math.isclose(g, e, rel_tol=1e-2) for g, e in zip(got, expected, strict=True)):
        raise Wrong(
            f"The first loss is {expected[0]:.4g}, and {got[0]:.4g} was logged. Log the loss "
            "itself: the scaled one changes whenever the scale does."
        )
    overflown = _run(answer, call, _batches(overflow=1), scale)
    _about_overflow(overflown, scale)
    _about_losses(overflown[0])


def _about_losses(got):
    if not isinstance(got, list):
        raise Wrong(f"Return the list of the four losses, got {_kind(got)}")
    if len(got) != 4:
        raise Wrong(
            f"Four batches came, and {len(got)} losses were returned. A batch whose step is "
            "skipped has a loss, too."
        )


def _about_calls(run):
    *_, scaler, seen = run
    if not scaler.calls and not seen["direct"]:
        raise Wrong("No step was taken.")
    if not scaler.calls:
        raise Wrong(
            "The scaler that was passed took no step. optimizer.step() applies gradients that "
            "are as many times too large as the scale; a new scaler forgets the scale that the "
            "old one found."
        )
    if seen["direct"]:
        raise Wrong("optimizer.step() ran outside the scaler, which cannot skip it then.")
    if seen["inside"]:
        raise Wrong("backward ran inside autocast. Leave the block before scale(loss).backward().")


def _about_weights(run):
    _, _, model, twin, _, _ = run
    pairs = list(zip(model.parameters(), twin.parameters(), strict=True))
    if all(torch.allclose(p, q, rtol=1e-2, atol=1e-4) for p, q in pairs):
        return
    raise Wrong(
        "The weights do not end where plain training ends. scale() multiplies the loss, and "
        "step() divides the gradients by the same number: each must happen once, and you do "
        "neither by hand. zero_grad() comes before each backward."
    )


def _about_overflow(run, scale):
    _, _, model, _, scaler, _ = run
    finite = all(p.isfinite().all() for p in model.parameters())
    if not finite or scaler.get_scale() != scale / 2:
        raise Wrong(
            f"One batch of four overflows. Its step is to be skipped and the scale of {scale:g} "
            f"to be halved once; yours ended at {scaler.get_scale():g}."
        )


# --- 42.5 -------------------------------------------------------------------------------

_T, _F = True, False
_DEVICES = (
    (("cuda", (7, 5), _F), (torch.float16, _T), "A T4 has units for float16 and none for bfloat16"),
    (("cuda", (7, 5), _T), (torch.float16, _T), "What the CPU has is no help to a T4"),
    (("cuda", (7, 0), _F), (torch.float16, _T), "A V100 has units for float16 and none for bfloat16"),
    (("cuda", (8, 0), _F), (torch.bfloat16, _F), "An A100, 8.0, is the first with bfloat16 units"),
    (("cuda", (9, 0), _T), (torch.bfloat16, _F), "An H100 has bfloat16 units"),
    (("cuda", (12, 0), _F), (torch.bfloat16, _F), "Capabilities are pairs of numbers: 12 is above 8"),
    (("cuda", (6, 1), _F), (torch.float32, _F), "A GTX 1080 has units for neither"),
    (("cpu", None, _T), (torch.bfloat16, _F), "This CPU has instructions for bfloat16"),
    (("cpu", None, _F), (torch.float32, _F), "This CPU has no instructions for either"),
)  # fmt: skip


def test_choose(answer, call):
    for (device, capability, cpu_bfloat16), truth, why in _DEVICES:
        asked = f"choose({device!r}, {capability}, {cpu_bfloat16})"
        got = call(answer, device, capability, cpu_bfloat16)
        if not isinstance(got, tuple) or len(got) != 2:
            raise Wrong(f"{asked}: return a dtype and True or False, got {_kind(got)}")
        if not isinstance(got[0], torch.dtype):
            raise Wrong(f"{asked}: return a dtype such as torch.float16, got {got[0]!r}.")
        if got[0] != truth[0]:
            raise Wrong(f"{asked}: {truth[0]}, got {got[0]}. {why}.")
        if got[1] is not truth[1]:
            raise Wrong(
                f"{asked}: the dtype is right, and needs_scaler is {truth[1]}. "
                + (
                    "Small gradients become zero in float16."
                    if truth[1]
                    else "A scaler is for float16's narrow range alone."
                )
            )


# --- stored texts -----------------------------------------------------------------------

_STEP = "def step_size(x, exponent_bits, fraction_bits):\n    import math\n"
_SAVES = "def autocast_saves(widths, batch):\n    pairs = list(zip(widths[:-1], widths[1:]))\n"
_COPIES = "2 * sum(a * b for a, b in pairs[1:])"
_OUTPUTS = "4 * batch * sum(widths[1:])"


def _train(setup="", forward=None, after="", rate="0.01", last=""):
    forward = forward or (
        '        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
        "            logits = model(images)\n"
    )
    return (
        f"def train(model, batches):\n{setup}"
        f"    optimizer = torch.optim.SGD(model.parameters(), lr={rate})\n"
        "    for images, labels in batches:\n"
        "        optimizer.zero_grad()\n"
        f"{forward}"
        "        torch.nn.functional.cross_entropy(logits.float(), labels).backward()\n"
        f"        optimizer.step()\n{after}{last}"
    )


_PURE = "    model.to(torch.bfloat16)\n"
_PURE_FORWARD = "        logits = model(images.to(torch.bfloat16))\n"
_FORWARD = (
    '        with torch.autocast("cpu", dtype=torch.float16):\n'
    "            loss = torch.nn.functional.mse_loss(model(x), y)\n"
)


def _epoch(*lines, setup="", forward=_FORWARD, zero="        optimizer.zero_grad()\n"):
    body = "".join(f"        {line}\n" for line in lines)
    return (
        f"def epoch(model, optimizer, scaler, batches):\n    losses = []\n{setup}"
        f"    for x, y in batches:\n{zero}{forward}{body}    return losses\n"
    )


_LOG = "losses.append(loss.item())"
_BACK = "scaler.scale(loss).backward()"
_SCALED = (_BACK, "scaler.step(optimizer)", "scaler.update()", _LOG)


def _choose(*lines):
    return "def choose(device, capability, cpu_has_bfloat16):\n" + "".join(
        f"    {line}\n" for line in lines
    )


_CPU = (
    'if device == "cpu":',
    "    return (torch.bfloat16 if cpu_has_bfloat16 else torch.float32), False",
)

EXERCISES = {
    "42.1": Exercise(
        title="Read the step off the bits",
        minutes=6,
        task="Write `step_size(x, exponent_bits, fraction_bits)`: the distance from x, a positive "
        "number of the format, to the next larger one. The check compares with the bits of float16 "
        "and bfloat16, also below the smallest normal number, 2^(2 - 2^(exponent_bits - 1)).",
        stub="def step_size(x, exponent_bits, fraction_bits):\n"
        '    """Return the distance from x to the next larger number."""\n    ...\n',
        answer="step_size",
        test=test_step_size,
        hints=(
            "Between two neighboring powers of two all steps are equal: 2^fraction_bits of them.",
            "Beside 1.0 and beside 1.99 bfloat16's step is 2^-7. Beside 2.0 it is 2^-6.",
            "Start with e = math.floor(math.log2(x)); then e must not fall below the exponent of "
            "the smallest normal number.",
        ),
        solution=_STEP + "    lowest = 2 - 2 ** (exponent_bits - 1)\n"
        "    return 2.0 ** (max(math.floor(math.log2(x)), lowest) - fraction_bits)\n",
        wrong=(
            WrongAnswer(
                "constant", _STEP + "    return 2.0**-fraction_bits\n", "the step beside 1"
            ),
            WrongAnswer(
                "in proportion",
                _STEP + "    return x * 2.0**-fraction_bits\n",
                "right at powers of two only",
            ),
            WrongAnswer(
                "rounded up",
                _STEP + "    lowest = 2 - 2 ** (exponent_bits - 1)\n"
                "    return 2.0 ** (max(math.ceil(math.log2(x)), lowest) - fraction_bits)\n",
                "one too high",
            ),
            WrongAnswer(
                "half a step",
                _STEP + "    return 2.0 ** (math.floor(math.log2(x)) - fraction_bits - 1)\n",
                "half a step, the largest",
            ),
            WrongAnswer(
                "no end below",
                _STEP + "    return 2.0 ** (math.floor(math.log2(x)) - fraction_bits)\n",
                "no longer shrinks",
            ),
            WrongAnswer(
                "bias for the lowest exponent",
                _STEP + "    lowest = 1 - 2 ** (exponent_bits - 1)\n"
                "    return 2.0 ** (max(math.floor(math.log2(x)), lowest) - fraction_bits)\n",
                "The smallest normal exponent is",
            ),
            WrongAnswer(
                "all bits", _STEP + "    return 2.0**-(1 + exponent_bits)\n", "lie 2^fraction_bits"
            ),
            WrongAnswer("a text", _STEP + '    return "2^-7"\n', "Return a Python number"),
        ),
    ),
    "42.2": Exercise(
        title="Say what autocast saves",
        minutes=8,
        task="A stack of `Linear` and `ReLU` layers has these widths, its input needs no gradient. "
        "Write `autocast_saves(widths, batch)`: how many bytes fewer its activations take for "
        "backward under bfloat16 autocast; negative if more. The check counts with "
        "`track_memory`, on unequal widths.",
        stub="def autocast_saves(widths, batch):\n"
        '    """Return the bytes of activations that autocast saves."""\n    ...\n',
        answer="autocast_saves",
        test=test_autocast_saves,
        hints=(
            "In float32 the outputs of all ReLUs are kept. Under autocast these shrink, and two "
            "kinds of copies are added.",
            "widths [3, 5], batch 7: 140 bytes become 70, and the input's copy adds 42, so 28 are "
            "saved. The only weight's copy is not kept.",
            "Start with saved = 4 * batch * sum(widths[1:]) - 2 * batch * sum(widths).",
        ),
        solution=_SAVES + f"    return {_OUTPUTS} - 2 * batch * sum(widths) - {_COPIES}\n",
        wrong=(
            WrongAnswer(
                "everything is halved",
                _SAVES + "    return 2 * batch * sum(widths[1:]) + 2 * sum(a * b for a, b in pairs)"
                " + 2 * sum(widths[1:])\n",
                "Parameters stay float32",
            ),
            WrongAnswer(
                "outputs alone",
                _SAVES + "    return 2 * batch * sum(widths[1:])\n",
                "counted no copy",
            ),
            WrongAnswer(
                "no copies of weights",
                _SAVES + f"    return {_OUTPUTS} - 2 * batch * sum(widths)\n",
                "2 bytes per weight",
            ),
            WrongAnswer(
                "the first weight too",
                _SAVES + f"    return {_OUTPUTS} - 2 * batch * sum(widths)"
                " - 2 * sum(a * b for a, b in pairs)\n",
                "first layer's copy is freed",
            ),
            WrongAnswer(
                "no copy of the input",
                _SAVES + f"    return {_OUTPUTS} - 2 * batch * sum(widths[1:]) - {_COPIES}\n",
                "is cast too",
            ),
            WrongAnswer(
                "biases too",
                _SAVES + f"    return {_OUTPUTS} - 2 * batch * sum(widths) - {_COPIES}"
                " - 2 * sum(widths[2:])\n",
                "copy of a bias is not kept",
            ),
            WrongAnswer(
                "sign",
                _SAVES + f"    return 2 * batch * sum(widths) + {_COPIES} - {_OUTPUTS}\n",
                "The sign is turned",
            ),
            WrongAnswer(
                "elements",
                _SAVES + "    return batch * sum(widths) - sum(a * b for a, b in pairs)\n",
                "Count what each layer keeps",
            ),
            WrongAnswer("nothing", _SAVES + "    None\n", "Return the bytes as a number"),
        ),
    ),
    "42.3": Exercise(
        title="Keep the weights from freezing",
        minutes=6,
        task="`train` puts the whole model into bfloat16, and most weights never move. Repair it: "
        "products in bfloat16, and a loss that ends where float32's ends. Learning rate, optimizer "
        "and number of steps stay. The check watches every layer and every step.",
        stub="def train(model, batches):\n"
        "    model.to(torch.bfloat16)\n"
        "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
        "    for images, labels in batches:\n"
        "        optimizer.zero_grad()\n"
        "        logits = model(images.to(torch.bfloat16))\n"
        "        torch.nn.functional.cross_entropy(logits, labels).backward()\n"
        "        optimizer.step()\n",
        answer="train",
        test=test_train,
        hints=(
            "Which tensors must remember small changes, and which are used once and thrown away?",
            "A weight of 1.0 in bfloat16 does not notice an update of 0.001, whatever computed it.",
            'Drop model.to(...); the forward pass begins with with torch.autocast("cpu", '
            "dtype=torch.bfloat16):",
        ),
        solution=_train(),
        wrong=(
            WrongAnswer(
                "cast the logits",
                _train(setup=_PURE, forward=_PURE_FORWARD),
                "Keep the weights in float32",
            ),
            WrongAnswer(
                "larger learning rate",
                _train(setup=_PURE, forward=_PURE_FORWARD, rate="0.3"),
                "Leave the learning rate",
            ),
            WrongAnswer(
                "float at the end",
                _train(setup=_PURE, forward=_PURE_FORWARD, last="    model.float()\n"),
                "comes too late",
            ),
            WrongAnswer(
                "one layer alone",
                _train(
                    forward='        with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                    "            hidden = model[0](images)\n"
                    "        logits = model[1:](hidden.float())\n"
                ),
                "the whole forward pass",
            ),
            WrongAnswer(
                "a scaler",
                "def train(model, batches):\n"
                "    model.to(torch.bfloat16)\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
                '    scaler = torch.amp.GradScaler("cpu")\n'
                "    for images, labels in batches:\n"
                "        optimizer.zero_grad()\n"
                "        logits = model(images.to(torch.bfloat16)).float()\n"
                "        loss = torch.nn.functional.cross_entropy(logits, labels)\n"
                "        scaler.scale(loss).backward()\n"
                "        scaler.step(optimizer)\n"
                "        scaler.update()\n",
                "still rounds away",
            ),
            WrongAnswer(
                "float32 everywhere",
                _train(forward="        logits = model(images)\n"),
                "no product was computed in 16 bits",
            ),
            WrongAnswer(
                "float16 without a scaler",
                _train(
                    forward='        with torch.autocast("cpu", dtype=torch.float16):\n'
                    "            logits = model(images)\n"
                ),
                "whose gradients need a scaler",
            ),
            WrongAnswer(
                "everything inside autocast",
                "def train(model, batches):\n"
                "    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)\n"
                '    with torch.autocast("cpu", dtype=torch.bfloat16):\n'
                "        for images, labels in batches:\n"
                "            optimizer.zero_grad()\n"
                "            loss = torch.nn.functional.cross_entropy(model(images), labels)\n"
                "            loss.backward()\n"
                "            optimizer.step()\n",
                "Leave the block before backward",
            ),
            WrongAnswer(
                "gradients never cleared",
                _train().replace("        optimizer.zero_grad()\n", ""),
                "Clear the gradients",
            ),
            WrongAnswer(
                "one step for all",
                _train().replace("        optimizer.step()\n", "    optimizer.step()\n"),
                "optimizer steps were taken",
            ),
        ),
    ),
    "42.4": Exercise(
        title="Write the scaler loop in order",
        minutes=8,
        task="`epoch` computes in float16 with loss scaling and returns the loss of each batch. "
        "Repair the order: backward outside autocast, skipped steps really skipped, one update for "
        "each batch, and a log of the loss itself. The check includes a batch that overflows.",
        stub="def epoch(model, optimizer, scaler, batches):\n"
        "    losses = []\n"
        "    for x, y in batches:\n"
        "        optimizer.zero_grad()\n"
        '        with torch.autocast("cpu", dtype=torch.float16):\n'
        "            loss = torch.nn.functional.mse_loss(model(x), y)\n"
        "            loss = scaler.scale(loss)\n"
        "            loss.backward()\n"
        "        optimizer.step()\n"
        "        losses.append(loss.item())\n"
        "    return losses\n",
        answer="epoch",
        test=test_scaled_epoch,
        hints=(
            "Three calls belong to the scaler: scale, step, update. Each runs once for each batch.",
            "After an overflow the gradients are inf. optimizer.step() writes them into the "
            "weights; the scaler looks first.",
            "Below the autocast block start with scaler.scale(loss).backward()",
        ),
        solution=_epoch(*_SCALED),
        wrong=(
            WrongAnswer(
                "optimizer.step",
                _epoch(_BACK, "optimizer.step()", _LOG),
                "took no step",
            ),
            WrongAnswer(
                "optimizer.step, then update",
                _epoch(_BACK, "optimizer.step()", "scaler.update()", _LOG),
                "step through the scaler",
            ),
            WrongAnswer(
                "a new scaler",
                _epoch(*_SCALED, setup='    scaler = torch.amp.GradScaler("cpu")\n'),
                "as many times too large",
            ),
            WrongAnswer(
                "no step",
                _epoch(_BACK, _LOG),
                "No step was taken",
            ),
            WrongAnswer(
                "unscaled, then the optimizer's step",
                _epoch(
                    _BACK, "scaler.unscale_(optimizer)", "optimizer.step()", "scaler.update()", _LOG
                ),
                "ran outside the scaler",
            ),
            WrongAnswer(
                "backward inside autocast",
                _epoch(*_SCALED, forward=_FORWARD + f"            {_BACK}\n").replace(
                    f"        {_BACK}\n        scaler.step", "        scaler.step"
                ),
                "inside autocast",
            ),
            WrongAnswer(
                "update forgotten",
                _epoch(_BACK, "scaler.step(optimizer)", _LOG),
                "never recovers",
            ),
            WrongAnswer(
                "update first",
                _epoch(
                    _BACK,
                    "scaler.unscale_(optimizer)",
                    "scaler.update()",
                    "scaler.step(optimizer)",
                    _LOG,
                ),
                "update() ran before step()",
            ),
            WrongAnswer(
                "update twice",
                _epoch(*_SCALED, "scaler.update()"),
                "whether that step was skipped",
            ),
            WrongAnswer(
                "another shape",
                _epoch(*_SCALED).replace("model(x)", "model(x).view(-1, 3)"),
                "or a layer refused",
            ),
            WrongAnswer(
                "divided by hand as well",
                _epoch(
                    _BACK, "for p in model.parameters(): p.grad /= scaler.get_scale()", *_SCALED[1:]
                ),
                "each must happen once",
            ),
            WrongAnswer(
                "loss not scaled",
                _epoch("scaler.scale(loss)", "loss.backward()", *_SCALED[1:]),
                "each must happen once",
            ),
            WrongAnswer(
                "log of the scaled loss",
                _epoch("loss = scaler.scale(loss)", "loss.backward()", *_SCALED[1:]),
                "Log the loss itself",
            ),
            WrongAnswer(
                "no result", _epoch(*_SCALED).replace("    return losses\n", ""), "Return the list"
            ),
            WrongAnswer(
                "no loss of a skipped step",
                _epoch(
                    "before = scaler.get_scale()",
                    *_SCALED[:-1],
                    f"if scaler.get_scale() >= before: {_LOG}",
                ),
                "has a loss, too",
            ),
            WrongAnswer(
                "batches with infinities left out",
                _epoch(*_SCALED, forward=_FORWARD + "        if loss.item() > 100: continue\n"),
                "to be halved once",
            ),
        ),
    ),
    "42.5": Exercise(
        title="Choose a dtype for a device",
        minutes=5,
        task="Write `choose(device, capability, cpu_has_bfloat16)`: the dtype for autocast and "
        'whether it needs a scaler, as a tuple. Devices are `"cuda"` with a capability such as '
        '`(7, 5)`, and `"cpu"` with None. bfloat16 where the hardware has units for it, else '
        "float16 where it has those (CUDA from 7.0), else float32.",
        stub="def choose(device, capability, cpu_has_bfloat16):\n"
        '    """Return the dtype for autocast, and whether it needs a scaler."""\n    ...\n',
        answer="choose",
        test=test_choose,
        hints=(
            "A capability is a pair of numbers, and Python compares pairs as you need it.",
            "A T4 has 7.5: is_bf16_supported() says True there, since it is emulated.",
            'Start with if device == "cpu": and end with return torch.float32, False.',
        ),
        solution=_choose(
            *_CPU,
            "if capability >= (8, 0):",
            "    return torch.bfloat16, False",
            "if capability >= (7, 0):",
            "    return torch.float16, True",
            "return torch.float32, False",
        ),
        wrong=(
            WrongAnswer(
                "bfloat16 everywhere",
                _choose("return torch.bfloat16, False"),
                "A T4 has units for float16",
            ),
            WrongAnswer(
                "above 8.0 only",
                _choose(
                    *_CPU,
                    "if capability > (8, 0):",
                    "    return torch.bfloat16, False",
                    "return torch.float16, True",
                ),
                "is the first with bfloat16 units",
            ),
            WrongAnswer(
                "capabilities as text",
                _choose(
                    *_CPU,
                    'if f"{capability[0]}.{capability[1]}" >= "8.0":',
                    "    return torch.bfloat16, False",
                    "return torch.float16, True",
                ),
                "12 is above 8",
            ),
            WrongAnswer(
                "float16 on every CUDA card",
                _choose(
                    *_CPU,
                    "if capability >= (8, 0):",
                    "    return torch.bfloat16, False",
                    "return torch.float16, True",
                ),
                "A GTX 1080 has units for neither",
            ),
            WrongAnswer(
                "names of dtypes",
                _choose('return ("float16", True) if device == "cuda" else ("float32", False)'),
                "a dtype such as torch.float16",
            ),
            WrongAnswer(
                "the CPU asked for a card",
                _choose(
                    "if cpu_has_bfloat16:",
                    "    return torch.bfloat16, False",
                    'return (torch.float16, True) if device == "cuda" else (torch.float32, False)',
                ),
                "no help to a T4",
            ),
            WrongAnswer(
                "any CPU",
                _choose(
                    'if device == "cpu" or capability >= (8, 0):',
                    "    return torch.bfloat16, False",
                    "if capability >= (7, 0):",
                    "    return torch.float16, True",
                    "return torch.float32, False",
                ),
                "This CPU has no instructions",
            ),
            WrongAnswer(
                "a scaler for every 16-bit dtype",
                _choose(
                    *_CPU,
                    "if capability >= (8, 0):",
                    "    return torch.bfloat16, True",
                    "return torch.float16, True",
                ),
                "narrow range alone",
            ),
            WrongAnswer(
                "no scaler",
                _choose(
                    *_CPU,
                    "if capability >= (8, 0):",
                    "    return torch.bfloat16, False",
                    "return torch.float16, False",
                ),
                "Small gradients become zero",
            ),
            WrongAnswer(
                "dtype alone",
                _choose("return torch.bfloat16"),
                "return a dtype and True or False",
            ),
        ),
    ),
}
