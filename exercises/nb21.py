"""Ask and check what 21_set_up_a_gpu teaches."""

import ast
import itertools
import random

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from helpers import memory
from helpers.device_lint import lint
from helpers.exercises import Choice, Exercise, Number, Wrong, WrongAnswer
from helpers.exercises._attempt import definition
from helpers.rehearsal import MixedDevicesError, one_device

PREDICTIONS = {
    "21.p1": Choice(
        question="nvidia-smi says CUDA 13.0, nvcc says 11.8, pip says torch 2.11.0+cu128. "
        "Which CUDA does torch run?",
        options={
            "11.8": "nvcc compiles programs, and nothing is compiled here: it may even be missing.",
            "13.0": "That is the newest CUDA which the driver can serve, not the one in use.",
            "12.8": "Right: the one in the wheel.",
            "none: they must agree": "They need not. The driver must be new enough for the wheel, "
            "and nvcc is not asked.",
        },
    ),
    "21.p2": Choice(
        question="torch 2.13 comes as cu126 and as cu130. Which wheel runs on a GTX 1080 (6.1), "
        "and which on an RTX 5090 (12.0)?",
        options={
            "cu130 on both": "Newer wheels drop old cards, because each card makes them larger.",
            "cu126 on both": "A new driver is not enough: the kernels lie in the wheel, and those "
            "of cu126 end before this card.",
            "cu126 on the first, cu130 on the second": "Right: each wheel covers a span of cards.",
            "either on both": "A wheel holds kernels for a list of architectures, and neither "
            "list covers both cards.",
        },
    ),
    "21.p3": Choice(
        question="There is no GPU. What does torch.cuda.max_memory_allocated() do?",
        options={
            "an error": "Most of its neighbors raise. This one does not.",
            "None": "None would say that nothing was measured. This is worse.",
            "a warning": "Nothing is said at all.",
            "0": "Right, and you would plot it.",
        },
    ),
    "21.p4": Choice(
        question="w = torch.ones(3, requires_grad=True).to(device). Where is w a leaf, which "
        "gets a gradient?",
        options={
            "on both devices": "A move is an operation, and its result has a parent in the graph.",
            "on the CPU only": "Right: there, nothing moved.",
            "on the other device only": "The other way round: what moved has a parent.",
            "on neither": "On the CPU there is nothing to move, so w is the tensor itself.",
        },
    ),
    "21.p5": Number(
        question="Six models train on the CPU, and on a GPU something goes wrong. For how many does "
        "one step on the meta device raise?",
        unit="models",
        among=6,
        notes=(
            (
                0,
                2,
                "Some are refused: linear layers compare devices, and a gradient cannot travel "
                "back from meta.",
            ),
            (2, 3, "Right. The meta device is polite to the others."),
            (3, 7, "Fewer: lookups and matrix products accept a CPU tensor beside a meta tensor."),
        ),
    ),
    "21.p6": Choice(
        question="A float32 matrix full of 4097 is multiplied by the identity, with TF32 allowed "
        "on a card that has it. What comes out?",
        options={
            "4097": "float32 itself holds 4097. The operands are rounded on the way in.",
            "4096": "Right: 10 stored bits reach 2048 without a gap, and here the step is 4.",
            "4097 with noise": "Rounding is no noise: the same input gives the same output.",
            "an error": "TF32 changes digits and tells nobody.",
        },
    ),
}


# --- 21.1 -------------------------------------------------------------------------------

_MACHINE_CODE = "Machine code for X.Y runs on X.Z with Z at least Y, and on no other major."


def _ask_runs_on(answer, call, arch_list, capability):
    result = call(answer, list(arch_list), capability)
    if not isinstance(result, (bool, np.bool_)):
        raise Wrong(f"Expected True or False for {arch_list} and {capability}, got {result!r}.")
    return bool(result)


_CARDS = (
    # architectures, card, truth, why
    (["sm_80", "sm_86"], (8, 6), True, "The very same architecture is in the list."),
    (["sm_80", "sm_86"], (8, 9), True, "No sm_89 is needed: 8.9 runs the code of sm_86."),
    (["sm_86"], (8, 0), False, "Code for 8.6 may use what 8.0 lacks: minors go up only."),
    (["sm_75", "sm_90"], (8, 6), False, "8.6 lies between the two, and neither is major 8."),
    (["sm_80", "sm_90"], (12, 0), False, f"12.0 is newer than all of it. {_MACHINE_CODE}"),
    (["sm_75", "sm_80", "sm_120"], (6, 1), False, "6.1 is older than all of it."),
    (["sm_75", "sm_120"], (12, 0), True, "sm_120 is 12.0: the last digit is the minor."),
    (["sm_100", "sm_90"], (12, 1), False, f"12.1 needs code of major 12. {_MACHINE_CODE}"),
    (["sm_100"], (10, 3), True, "sm_100 is 10.0: the last digit is the minor."),
    (["sm_70", "compute_70"], (12, 0), True, "compute_70 is compiled by the driver for any card "
     "from 7.0 up."),
    (["compute_90"], (8, 9), False, "compute_90 needs at least 9.0."),
    (["compute_75"], (7, 0), False, "compute_75 needs at least 7.5, and 7.0 is older: the minor "
     "counts within one major."),
    (["compute_75"], (8, 0), True, "8.0 is newer than 7.5, though its minor is smaller: compare "
     "major and minor as one pair."),
    (["compute_90"], (9, 0), True, "compute_90 is compiled for 9.0 itself, too."),
    ([], (8, 0), False, "An empty list is a CPU wheel: it runs on no card."),
)  # fmt: skip


def test_runs_on(answer, call):
    for arch_list, capability, truth, why in _CARDS:
        if _ask_runs_on(answer, call, arch_list, capability) != truth:
            raise Wrong(f"{arch_list} on {capability}: expected {truth}. {why}")
    codes = [f"sm_{major}{minor}" for major in (5, 7, 8, 9, 10, 12) for minor in (0, 5, 6)]
    for _ in range(100):
        arch_list = random.sample(codes, 3)
        capability = (random.choice((5, 6, 7, 8, 9, 10, 11, 12)), random.choice((0, 1, 5, 9)))
        major, minor = capability
        truth = any(f"sm_{major}{low}" in arch_list for low in range(minor + 1))
        if _ask_runs_on(answer, call, arch_list, capability) != truth:
            raise Wrong(f"{arch_list} on {capability}: expected {truth}. {_MACHINE_CODE}")


# --- 21.2 -------------------------------------------------------------------------------

CAUSES = ("cpu-wheel", "no-driver", "driver-too-old", "hidden", "no-kernels", "ok")
_WHY_CAUSE = {
    "cpu-wheel": "The wheel has no CUDA, so nothing else matters.",
    "no-driver": "No driver answered, whatever the variable says.",
    "driver-too-old": "The floor belongs to the wheel's CUDA, and the driver is below it.",
    "hidden": "The variable is set and lists no card: the driver is fine, and torch sees none.",
    "no-kernels": "torch sees the card, and its wheel holds no code for it.",
    "ok": "Every layer is there.",
}


def _machines():
    """Return each consistent combination of facts, with its cause."""
    wheels = {None: None, "11.8": 450, "12.6": 525, "12.8": 525, "13.0": 580}
    drivers = {None: None, "96.43.20": 96, "470.256.02": 470, "550.54": 550, "580.65.06": 580}
    seen = (None, "0", "1,0", "", "-1")
    for wheel, driver, visible, arch_ok in itertools.product(wheels, drivers, seen, (True, False)):
        if wheel is None:
            cause = "cpu-wheel"
        elif driver is None:
            cause = "no-driver"
        elif drivers[driver] < wheels[wheel]:
            cause = "driver-too-old"
        elif visible in ("", "-1"):
            cause = "hidden"
        else:
            cause = "ok" if arch_ok else "no-kernels"
        count = 1 if cause in ("ok", "no-kernels") else 0
        yield (wheel, driver, visible, count, arch_ok), cause


def test_diagnose(answer, call):
    names = ("version_cuda", "driver", "visible_devices", "device_count", "arch_ok")
    for facts, cause in _machines():
        told = ", ".join(f"{n}={v!r}" for n, v in zip(names, facts, strict=True))
        try:
            result = call(answer, *facts)
        except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
            raise Wrong(
                f"{told}: your function raised {type(error).__name__}: {error}. Versions are texts "
                "such as '580.65.06' or None: ask for None first, then compare the number before "
                "the first dot."
            ) from None
        if result not in CAUSES:
            raise Wrong(f"{told}: expected one of {', '.join(CAUSES)}, got {result!r}.")
        if result != cause:
            raise Wrong(f"{told}: expected {cause!r}, got {result!r}. {_WHY_CAUSE[cause]}")


# --- 21.3 -------------------------------------------------------------------------------


class _Reference(torch.nn.Module):
    """Say independently what the classifier of 21.3 computes."""

    def __init__(self, words=50, classes=4):
        super().__init__()
        self.words = torch.nn.Embedding(words, 16)
        self.places = torch.nn.Embedding(8, 16)
        self.heads = torch.nn.ModuleList(torch.nn.Linear(16, classes) for _ in range(2))

    def forward(self, tokens):
        x = self.words(tokens) + self.places.weight[: tokens.shape[1]]
        pooled = x.mean(1) / 2
        return self.heads[0](pooled) + self.heads[1](pooled)


def _outputs_agree(answer, call):
    torch.manual_seed(0)
    model = call(answer)
    torch.manual_seed(0)
    reference = _Reference()
    tokens = torch.randint(50, (3, 5))
    if not isinstance(model, torch.nn.Module):
        raise Wrong(f"Classifier() must make a module, got {type(model).__name__}.")
    names = sorted(name for name, _ in model.named_parameters())
    if names != sorted(name for name, _ in reference.named_parameters()):
        extra = sorted(set(names) - {name for name, _ in reference.named_parameters()})
        if extra == ["mix"] and model.mix.requires_grad:
            raise Wrong(
                "mix is a parameter now, so an optimizer would train it. What belongs to "
                "the model and is not trained is a buffer."
            )
        if extra:
            raise Wrong(
                f"The parameter {extra[0]} has a name that the stub does not give. Names are keys "
                "of saved weights, so they stay: both heads under heads, in an nn.ModuleList. A "
                "constant is no parameter."
            )
        raise Wrong(
            f"The model has the parameters {', '.join(names)}. Those of both heads must be among "
            "them, under their old names: a list hides them, nn.ModuleList does not."
        )
    output = call(model, tokens)
    if not isinstance(output, torch.Tensor):
        raise Wrong(f"Calling the model must return a tensor, got {type(output).__name__}.")
    if output.shape != (3, 4) or not torch.allclose(output, reference(tokens), atol=1e-6):
        raise Wrong(
            "On the CPU the outputs differ from those of the stub. Only the places where tensors "
            "are made shall change."
        )
    return model


def _rehearse(model):
    """Run one step on meta, where nothing may lie on another device."""
    model.to("meta")
    kept = [
        n for n, v in vars(model).items() if isinstance(v, torch.device | str) and "cpu" in str(v)
    ]
    tokens = torch.zeros(3, 5, dtype=torch.long, device="meta")
    try:
        with one_device():
            output = model(tokens)
            output.sum().backward()
    except MixedDevicesError as error:
        if kept:
            raise Wrong(
                f"self.{kept[0]} still says cpu after .to(): a device that is kept in __init__ is "
                "stale after the first move. Ask a tensor where it lies, when you need it."
            ) from None
        raise Wrong(f"Rehearsed on meta: {error}.") from None
    except NotImplementedError:
        raise Wrong(
            "The model moves tensors to the CPU. On a GPU that waits for the copy in every call, "
            "and weights lie elsewhere. Make new tensors where the input lies."
        ) from None
    if not output.is_meta:
        raise Wrong(
            "For an input on meta the output lies on the CPU. It belongs where the input is."
        )


def test_classifier(answer, call):
    model = _outputs_agree(answer, call)
    _rehearse(model)
    node = definition(answer)
    for finding in lint(ast.unparse(node)) if node is not None else ():
        raise Wrong(f"The lint still finds `{finding.code}`. {finding.why} Try {finding.instead}.")


_CLASSIFIER = """class Classifier(torch.nn.Module):
    def __init__(self, words=50, classes=4):
        super().__init__()
        self.words = torch.nn.Embedding(words, 16)
        self.places = torch.nn.Embedding(8, 16)
        {mix}
        {heads}

    def forward(self, tokens):  # (batch, time)
        {first}x = self.words(tokens) + self.places({places})
        return sum(head(x.mean(1) @ {use}) for head in self.heads)
"""
_BUFFER = 'self.register_buffer("mix", torch.eye(16) / 2)'
_LIST = "self.heads = [torch.nn.Linear(16, classes) for _ in range(2)]"
_MODULES = "self.heads = torch.nn.ModuleList(torch.nn.Linear(16, classes) for _ in range(2))"
_THERE = "torch.arange(tokens.shape[1], device=tokens.device)"


def _classifier(mix=_BUFFER, heads=_MODULES, places=_THERE, first="", use="self.mix"):
    """Write out an answer to 21.3: the right one, with parts replaced."""
    source = _CLASSIFIER.format(mix=mix, heads=heads, places=places, first=first, use=use)
    return "".join(line for line in source.splitlines(True) if line.strip() != "" or line == "\n")


# --- 21.4 -------------------------------------------------------------------------------


def test_snapshot(answer, call):
    model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
    before = {name: value.detach().clone() for name, value in model.state_dict().items()}
    taken = call(answer, model)
    if not isinstance(taken, dict):
        raise Wrong(f"Expected a dict from name to tensor, got {type(taken).__name__}.")
    missing = [name for name in before if name not in taken]
    if missing:
        raise Wrong(
            f"{missing[0]} is missing. Buffers such as running means belong to the model as much "
            "as parameters do: state_dict() has both."
        )
    for name in before:
        _is_own(name, taken[name], model.state_dict()[name])
    optimizer = torch.optim.SGD(model.parameters(), 0.5)
    model(torch.randn(8, 4)).pow(2).sum().backward()
    optimizer.step()
    changed = [name for name in before if not torch.equal(taken[name], before[name])]
    if changed:
        raise Wrong(
            f"{changed[0]} differs from the value that the model had when the snapshot was taken."
        )
    _comes_to_the_cpu(answer, call)


class _FromMeta(TorchDispatchMode):
    """Let copies from meta to the CPU succeed, with zeros, as copies from a GPU do."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        target = torch.device(kwargs.get("device") or "meta")
        if func is torch.ops.aten._to_copy.default and args[0].is_meta and target.type != "meta":
            return torch.zeros_like(args[0], device=target, dtype=kwargs.get("dtype"))
        if func is torch.ops.aten.copy_.default and args[1].is_meta and not args[0].is_meta:
            return args[0].zero_()
        return func(*args, **kwargs)


def _comes_to_the_cpu(answer, call):
    """Take a snapshot of a model on meta, the second device of every machine."""
    names = getattr(getattr(answer, "__code__", None), "co_names", ())
    if "load" in names:  # a file keeps tensors on meta there, also with map_location
        return
    linear, norm = torch.nn.Linear(4, 3, device="meta"), torch.nn.BatchNorm1d(3, device="meta")
    with _FromMeta():
        taken = call(answer, torch.nn.Sequential(linear, norm))
    for name, kept in taken.items():
        if kept.device.type != "cpu":
            raise Wrong(
                f"From a model on {kept.device.type}, {name} in the snapshot is on "
                f"{kept.device.type} as well. clone() and deepcopy copy a tensor where it lies, "
                "so on a GPU the snapshot fills the GPU's memory. Ask for the CPU."
            )


def _is_own(name, kept, live):
    if not isinstance(kept, torch.Tensor):
        raise Wrong(f"{name} must be a tensor, got {type(kept).__name__}.")
    if memory.shares_storage(kept, live):
        raise Wrong(
            f"{name} in the snapshot looks at the model's own storage, so after one step it equals "
            "the new weights. On the CPU, .cpu() and .to(...) have nothing to move and return the "
            "tensor itself; copy=True or clone() makes new bytes."
        )
    if kept.requires_grad:
        raise Wrong(f"{name} still requires grad and keeps its graph. Detach it.")


# --- 21.5 -------------------------------------------------------------------------------


def _tf32_oracle(x):
    """Round to 11 significant bits in float64, by mantissa and exponent."""
    fraction, exponent = np.frexp(x.numpy().astype(np.float64))
    return np.ldexp(np.rint(fraction * 2**11), exponent - 11).astype(np.float32)


def test_round_to_tf32(answer, call):
    scale = 10.0 ** np.random.uniform(-30, 30, 4000)
    x = torch.from_numpy((np.random.standard_normal(4000) * scale).astype(np.float32))
    x = x[(x.view(torch.int32) & 0x1FFF) != 0x1000]  # without ties
    rounded = call(answer, x)
    if not isinstance(rounded, torch.Tensor) or rounded.shape != x.shape:
        raise Wrong(f"Expected a tensor of shape {tuple(x.shape)}, got {_shape_of(rounded)}.")
    if rounded.dtype != torch.float32:
        raise Wrong(
            f"Expected float32, got {rounded.dtype}. TF32 is no dtype: only digits are lost."
        )
    if not torch.isfinite(rounded).all():
        raise Wrong(
            "Large numbers became infinite. TF32 keeps float32's 8 bits of exponent; float16 has 5."
        )
    truth = torch.from_numpy(_tf32_oracle(x))
    wrong = torch.nonzero(rounded != truth).flatten()
    if len(wrong):
        share = len(wrong) / len(x)
        i = wrong[0]
        raise Wrong(
            f"{share:.0%} of the numbers differ, for example {x[i]:.7g}: expected {truth[i]:.7g}, "
            f"got {rounded[i]:.7g}. {_why_digits(rounded, truth, x)}"
        )
    edge = torch.tensor([0.0, -1.0, 4097.0, 3e38])
    if call(answer, edge).tolist() != [0.0, -1.0, 4096.0, torch.from_numpy(_tf32_oracle(edge))[3]]:
        raise Wrong("0, -1, 4097 and 3e38 must become 0, -1, 4096 and the neighbor of 3e38.")


def _shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else type(value).__name__


def _why_digits(rounded, truth, x):
    left = (rounded.view(torch.int32) & 0x1FFF).ne(0).any()
    if left:
        return "Some results have more than 10 stored bits: the last 13 of 23 must be 0."
    if (rounded.abs() <= x.abs()).all():
        return "All results are smaller than their inputs: you cut. Round to the nearest instead."
    return "The results have too few digits: TF32 stores 10 bits, bfloat16 stores 7."


EXERCISES = {
    "21.1": Exercise(
        title="Tell whether a wheel runs on a card",
        minutes=6,
        task="`runs_on(arch_list, capability)`: True if the card runs at least one entry. "
        "`sm_XY` is machine code for X.Z with Z at least Y; `compute_XY` is compiled by the driver "
        "for X.Y and all newer cards. The last digit is the minor.",
        stub="def runs_on(arch_list, capability):\n"
        '    """Tell whether code for these architectures runs on a (major, minor) card."""\n'
        "    ...\n",
        answer="runs_on",
        test=test_runs_on,
        hints=(
            "Turn each name into two integers first; the rule compares integers.",
            "sm_120 is major 12, minor 0. sm_86 runs on 8.9; sm_80 does not run on 9.0.",
            "for name in arch_list: kind, digits = name.split('_'); "
            "code = (int(digits[:-1]), int(digits[-1]))",
        ),
        solution="""def runs_on(arch_list, capability):
    for name in arch_list:
        kind, digits = name.split("_")
        code = (int(digits[:-1]), int(digits[-1]))
        if code <= capability and (kind == "compute" or code[0] == capability[0]):
            return True
    return False
""",
        wrong=(
            WrongAnswer(
                "membership",
                "def runs_on(arch_list, capability):\n"
                "    return f'sm_{capability[0]}{capability[1]}' in arch_list\n",
                "No sm_89 is needed",
            ),
            WrongAnswer(
                "between smallest and largest",
                "def runs_on(arch_list, capability):\n"
                "    codes = [int(a.split('_')[1]) for a in arch_list]\n"
                "    return bool(codes) and min(codes) <= 10 * capability[0] + capability[1]\n",
                "neither is major 8",
            ),
            WrongAnswer(
                "minor ignored",
                "def runs_on(arch_list, capability):\n"
                "    return any(int(a.split('_')[1]) // 10 == capability[0] for a in arch_list)\n",
                "minors go up only",
            ),
            WrongAnswer(
                "strings",
                "def runs_on(arch_list, capability):\n"
                "    card = f'sm_{capability[0]}{capability[1]}'\n"
                "    return any(a[:4] == card[:4] and a <= card for a in arch_list)\n",
                "needs code of major 12",
            ),
            WrongAnswer(
                "first digit is the major",
                "def runs_on(arch_list, capability):\n"
                "    pairs = [(int(a[3]), int(a[4:])) for a in arch_list if a[:3] == 'sm_']\n"
                "    return any(m == capability[0] and n <= capability[1] for m, n in pairs)\n",
                "the last digit is the minor",
            ),
            WrongAnswer(
                "compute ignored",
                "def runs_on(arch_list, capability):\n"
                "    codes = [int(a[3:]) for a in arch_list if a.startswith('sm_')]\n"
                "    card = 10 * capability[0] + capability[1]\n"
                "    return any(c // 10 == card // 10 and c <= card for c in codes)\n",
                "compiled by the driver",
            ),
            WrongAnswer(
                "compute like machine code",
                "def runs_on(arch_list, capability):\n"
                "    codes = [int(a.split('_')[1]) for a in arch_list]\n"
                "    card = 10 * capability[0] + capability[1]\n"
                "    return any(c // 10 == card // 10 and c <= card for c in codes)\n",
                "compiled by the driver",
            ),
            WrongAnswer(
                "compute runs everywhere",
                "def runs_on(arch_list, capability):\n"
                "    card = 10 * capability[0] + capability[1]\n"
                "    return any('compute' in a or (int(a[3:]) // 10 == card // 10\n"
                "        and int(a[3:]) <= card) for a in arch_list)\n",
                "needs at least 9.0",
            ),
            *(
                WrongAnswer(
                    f"compute by {name}",
                    "def runs_on(arch_list, capability):\n"
                    "    major, minor = capability\n"
                    "    for a in arch_list:\n"
                    "        kind, digits = a.split('_')\n"
                    "        x, y = int(digits[:-1]), int(digits[-1])\n"
                    "        if kind == 'sm' and major == x and minor >= y:\n"
                    "            return True\n"
                    f"        if kind == 'compute' and {rule}:\n"
                    "            return True\n"
                    "    return False\n",
                    says,
                )
                for name, rule, says in (
                    ("major alone", "major >= x", "the minor counts within one major"),
                    ("each number", "major >= x and minor >= y", "its minor is smaller"),
                    ("strictly newer", "(major, minor) > (x, y)", "for 9.0 itself, too"),
                )
            ),
            WrongAnswer(
                "the first of its major only",
                "def runs_on(arch_list, capability):\n"
                "    for a in arch_list:\n"
                "        kind, digits = a.split('_')\n"
                "        code = (int(digits[:-1]), int(digits[-1]))\n"
                "        if kind == 'compute':\n"
                "            return code <= capability\n"
                "        if code[0] == capability[0]:\n"
                "            return code <= capability\n"
                "    return False\n",
                _MACHINE_CODE,
            ),
            WrongAnswer(
                "a list",
                "def runs_on(arch_list, capability):\n"
                "    return [a for a in arch_list if a == 'sm_86']\n",
                "Expected True or False",
            ),
        ),
    ),
    "21.2": Exercise(
        title="Name the cause of no CUDA",
        minutes=8,
        task="`diagnose` names the first cause, in this order: `cpu-wheel`, `no-driver`, "
        "`driver-too-old`, `hidden`, `no-kernels`, else `ok`. Versions are texts or None; None as "
        "`driver` means that nvidia-smi did not answer. `visible_devices` is CUDA_VISIBLE_DEVICES, "
        "None where it is not set. `FLOORS` has the oldest driver for each major CUDA.",
        stub="FLOORS = {11: 450, 12: 525, 13: 580}\n\n\n"
        "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
        '    """Return the first cause that applies."""\n    ...\n',
        answer="diagnose",
        test=test_diagnose,
        hints=(
            "Go through the layers in the order of the task, and return at the first that fails.",
            "A count of 0 has four causes, so it decides nothing alone. And the driver 96.43 is "
            "older than 525, though its text sorts after it.",
            "if version_cuda is None: return 'cpu-wheel'",
        ),
        solution="""FLOORS = {11: 450, 12: 525, 13: 580}


def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):
    if version_cuda is None:
        return "cpu-wheel"
    if driver is None:
        return "no-driver"
    if int(driver.split(".")[0]) < FLOORS[int(version_cuda.split(".")[0])]:
        return "driver-too-old"
    if device_count == 0:
        return "hidden"
    return "ok" if arch_ok else "no-kernels"
""",
        wrong=(
            WrongAnswer(
                "no card means no driver",
                "FLOORS = {11: 450, 12: 525, 13: 580}\n"
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if device_count == 0:\n        return 'no-driver'\n"
                "    return 'ok' if arch_ok else 'no-kernels'\n",
                "the driver is below it",
            ),
            WrongAnswer(
                "one floor for all",
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if driver is None:\n        return 'no-driver'\n"
                "    if int(driver.split('.')[0]) < 525:\n        return 'driver-too-old'\n"
                "    if device_count == 0:\n        return 'hidden'\n"
                "    return 'ok' if arch_ok else 'no-kernels'\n",
                "expected 'ok', got 'driver-too-old'",
            ),
            WrongAnswer(
                "versions as texts",
                "FLOORS = {'11': '450', '12': '525', '13': '580'}\n"
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if driver is None:\n        return 'no-driver'\n"
                "    if driver < FLOORS[version_cuda[:2]]:\n        return 'driver-too-old'\n"
                "    if device_count == 0:\n        return 'hidden'\n"
                "    return 'ok' if arch_ok else 'no-kernels'\n",
                "driver='96.43.20'",
            ),
            WrongAnswer(
                "float of a version",
                "FLOORS = {11: 450, 12: 525, 13: 580}\n"
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if driver is None:\n        return 'no-driver'\n"
                "    if float(driver) < FLOORS[int(float(version_cuda))]:\n"
                "        return 'driver-too-old'\n"
                "    return 'ok'\n",
                "the number before the first dot",
            ),
            WrongAnswer(
                "empty taken as unset",
                "FLOORS = {11: 450, 12: 525, 13: 580}\n"
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if driver is None:\n        return 'no-driver'\n"
                "    if int(driver.split('.')[0]) < FLOORS[int(version_cuda.split('.')[0])]:\n"
                "        return 'driver-too-old'\n"
                "    if visible_devices and visible_devices.startswith('-'):\n"
                "        return 'hidden'\n"
                "    return 'ok' if arch_ok else 'no-kernels'\n",
                "lists no card",
            ),
            WrongAnswer(
                "set means hidden",
                "FLOORS = {11: 450, 12: 525, 13: 580}\n"
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if version_cuda is None:\n        return 'cpu-wheel'\n"
                "    if driver is None:\n        return 'no-driver'\n"
                "    if int(driver.split('.')[0]) < FLOORS[int(version_cuda.split('.')[0])]:\n"
                "        return 'driver-too-old'\n"
                "    if visible_devices is not None:\n        return 'hidden'\n"
                "    return 'ok' if arch_ok else 'no-kernels'\n",
                "expected 'ok', got 'hidden'",
            ),
            WrongAnswer(
                "no card in the list comes first",
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    if visible_devices in ('', '-1'):\n        return 'hidden'\n"
                "    return 'cpu-wheel'\n",
                "nothing else matters",
            ),
            WrongAnswer(
                "own words",
                "def diagnose(version_cuda, driver, visible_devices, device_count, arch_ok):\n"
                "    return 'no GPU'\n",
                "expected one of cpu-wheel",
            ),
        ),
    ),
    "21.3": Exercise(
        title="Find and repair what is bound to one device",
        minutes=10,
        task="This classifier works on the CPU only. Repair it: the lint finds nothing in it, one "
        "step on the meta device passes under `one_device()`, and the outputs and the parameters "
        "stay what they are. The heads stay under `heads`.",
        stub=_classifier(
            mix="self.mix = torch.eye(16) / 2", heads=_LIST, places="torch.arange(tokens.shape[1])"
        ),
        answer="Classifier",
        test=test_classifier,
        hints=(
            "What must .to() find? Parameters, buffers and modules that are attributes.",
            "Three things stay behind: one list, one plain tensor, one tensor made in forward.",
            'self.register_buffer("mix", torch.eye(16) / 2)',
        ),
        solution=_classifier(),
        wrong=(
            WrongAnswer(
                "input to the CPU",
                _classifier(
                    first="tokens = tokens.cpu()\n        ", places="torch.arange(tokens.shape[1])"
                ),
                "moves tensors to the CPU",
            ),
            WrongAnswer(
                "device kept in __init__",
                _classifier(
                    mix=_BUFFER + "\n        self.device = self.words.weight.device",
                    places="torch.arange(tokens.shape[1], device=self.device)",
                ),
                "stale after the first move",
            ),
            WrongAnswer(
                "parameter for a buffer",
                _classifier(mix="self.mix = torch.nn.Parameter(torch.eye(16) / 2)"),
                "an optimizer would train it",
            ),
            WrongAnswer(
                "heads under other names",
                _classifier(
                    heads="self.head0, self.head1 = "
                    "(torch.nn.Linear(16, classes) for _ in range(2))"
                ).replace("in self.heads)", "in (self.head0, self.head1))"),
                "both heads under heads",
            ),
            WrongAnswer(
                "parameter without a gradient",
                _classifier(
                    mix="self.mix = torch.nn.Parameter(torch.eye(16) / 2, requires_grad=False)"
                ),
                "A constant is no parameter",
            ),
            WrongAnswer("list of layers", _classifier(heads=_LIST), "nn.ModuleList does not"),
            WrongAnswer(
                "plain tensor", _classifier(mix="self.mix = torch.eye(16) / 2"), "Rehearsed on meta"
            ),
            WrongAnswer(
                "positions forgotten",
                _classifier(places="torch.arange(tokens.shape[1])"),
                "Rehearsed on meta",
            ),
            WrongAnswer(
                "moved in every call",
                _classifier(mix="self.mix = torch.eye(16) / 2", use="self.mix.to(x.device)"),
                "The lint still finds",
            ),
            WrongAnswer(
                "positions dropped",
                _classifier().replace(" + self.places(" + _THERE + ")", ""),
                "outputs differ",
            ),
            WrongAnswer(
                "answer on the CPU",
                _classifier().replace(
                    "        return sum(head(x.mean(1) @ self.mix) for head in self.heads)",
                    "        if tokens.is_meta:\n"
                    "            return torch.zeros(3, 4, requires_grad=True)\n"
                    "        return sum(head(x.mean(1) @ self.mix) for head in self.heads)",
                ),
                "belongs where the input is",
            ),
            WrongAnswer(
                "a tuple",
                _classifier().replace("self.heads)\n", "self.heads),\n"),
                "must return a tensor, got tuple",
            ),
            WrongAnswer(
                "no module",
                "class Classifier:\n    def __init__(self, words=50, classes=4):\n        pass\n",
                "must make a module",
            ),
        ),
    ),
    "21.4": Exercise(
        title="Take a snapshot of the weights",
        minutes=4,
        task="`snapshot(model)` returns a dict from name to tensor, parameters and buffers, on the "
        "CPU. Later steps change none of it, whatever device the model is on, and it keeps no "
        "graph. This version is right on a GPU. Repair it.",
        stub="def snapshot(model):\n"
        "    return {name: value.cpu() for name, value in model.state_dict().items()}\n",
        answer="snapshot",
        test=test_snapshot,
        hints=(
            "A snapshot has a storage of its own on every device, also where nothing moves.",
            "On the CPU, value.cpu() is value.",
            '{name: value.detach().to("cpu", copy=True) ...',
        ),
        solution="def snapshot(model):\n"
        "    state = model.state_dict()\n"
        '    return {name: value.detach().to("cpu", copy=True) for name, value in state.items()}\n',
        wrong=(
            WrongAnswer(
                "detach and cpu",
                "def snapshot(model):\n"
                "    return {n: v.detach().cpu() for n, v in model.state_dict().items()}\n",
                "have nothing to move",
            ),
            WrongAnswer(
                "the state dict",
                "def snapshot(model):\n    return dict(model.state_dict())\n",
                "the model's own storage",
            ),
            WrongAnswer(
                "shallow copy",
                "import copy\ndef snapshot(model):\n    return copy.copy(model.state_dict())\n",
                "equals the new weights",
            ),
            WrongAnswer(
                "to the CPU",
                "def snapshot(model):\n"
                "    return {n: v.to('cpu') for n, v in model.state_dict().items()}\n",
                "copy=True or clone()",
            ),
            WrongAnswer(
                "clones",
                "def snapshot(model):\n"
                "    return {n: v.detach().clone() for n, v in model.state_dict().items()}\n",
                "copy a tensor where it lies",
            ),
            WrongAnswer(
                "deepcopy of the state",
                "import copy\ndef snapshot(model):\n    return copy.deepcopy(model.state_dict())\n",
                "copy a tensor where it lies",
            ),
            WrongAnswer(
                "only from CUDA",
                "def snapshot(model):\n"
                "    state = model.state_dict()\n"
                "    return {n: v.cpu() if v.is_cuda else v.clone() for n, v in state.items()}\n",
                "copy a tensor where it lies",
            ),
            WrongAnswer(
                "parameters only",
                "def snapshot(model):\n"
                "    return {n: p.detach().clone() for n, p in model.named_parameters()}\n",
                "Buffers such as running means",
            ),
            WrongAnswer(
                "with the graph",
                "def snapshot(model):\n"
                "    both = dict(model.named_parameters()) | dict(model.named_buffers())\n"
                "    return {n: v.clone() for n, v in both.items()}\n",
                "keeps its graph",
            ),
            WrongAnswer(
                "lists",
                "def snapshot(model):\n"
                "    return {n: v.tolist() for n, v in model.state_dict().items()}\n",
                "must be a tensor, got",
            ),
            WrongAnswer(
                "rounded",
                "def snapshot(model):\n"
                "    return {n: v.detach().clone().round() for n, v in model.state_dict().items()}\n",
                "when the snapshot was taken",
            ),
            WrongAnswer(
                "the model",
                "import copy\ndef snapshot(model):\n    return copy.deepcopy(model)\n",
                "Expected a dict",
            ),
        ),
    ),
    "21.5": Exercise(
        title="Round as TF32 does",
        minutes=8,
        task="`round_to_tf32(x)` returns float32 numbers rounded to the nearest with 10 stored bits "
        "of fraction. float32 stores 23, so the last 13 become 0. The range stays, and `x` stays "
        "as it is. Ties are not tested.",
        stub='def round_to_tf32(x):\n    """Return x with 10 stored bits of fraction, as float32."""\n'
        "    ...\n",
        answer="round_to_tf32",
        test=test_round_to_tf32,
        hints=(
            "Adding half of a step and then cutting rounds to the nearest.",
            "Through float16 the digits are right and 1e30 becomes infinite; through bfloat16 the "
            "range is right and three bits are missing.",
            "bits = x.view(torch.int32)  # the last 13 bits are what has to go",
        ),
        solution="def round_to_tf32(x):\n"
        "    bits = x.view(torch.int32)\n"
        "    return ((bits + (1 << 12)) >> 13 << 13).view(torch.float32)\n",
        wrong=(
            WrongAnswer(
                "cut",
                "def round_to_tf32(x):\n"
                "    return (x.view(torch.int32) >> 13 << 13).view(torch.float32)\n",
                "you cut",
            ),
            WrongAnswer(
                "bfloat16",
                "def round_to_tf32(x):\n    return x.bfloat16().float()\n",
                "bfloat16 stores 7",
            ),
            WrongAnswer(
                "float16", "def round_to_tf32(x):\n    return x.half().float()\n", "became infinite"
            ),
            WrongAnswer(
                "one bit more",
                "def round_to_tf32(x):\n"
                "    return ((x.view(torch.int32) + (1 << 11)) >> 12 << 12).view(torch.float32)\n",
                "more than 10 stored bits",
            ),
            WrongAnswer(
                "writes into x",
                "def round_to_tf32(x):\n"
                "    bits = x.view(torch.int32)\n"
                "    bits += 1 << 12\n"
                "    bits >>= 13\n"
                "    bits <<= 13\n"
                "    return x\n",
                "changed its input",
            ),
            WrongAnswer(
                "float64",
                "def round_to_tf32(x):\n"
                "    m, e = torch.frexp(x.double())\n"
                "    return torch.ldexp((m * 2**11).round() / 2**11, e.double())\n",
                "Expected float32",
            ),
            WrongAnswer(
                "a list",
                "def round_to_tf32(x):\n    return x.tolist()\n",
                "Expected a tensor of shape",
            ),
            WrongAnswer(
                "digits after the point",
                "def round_to_tf32(x):\n    return (x * 2**10).round() / 2**10\n",
                "of the numbers differ",
            ),
            WrongAnswer(
                "zero lost",
                "def round_to_tf32(x):\n"
                "    bits = (x.view(torch.int32) + (1 << 12)) >> 13 << 13\n"
                "    return torch.where(x == 0, 1.0, bits.view(torch.float32))\n",
                "0, -1, 4097 and 3e38",
            ),
        ),
    ),
}
