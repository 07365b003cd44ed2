"""Find lines that work on one kind of device only, by reading the source and running nothing."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from helpers.table import Table

RULES = {
    "named device": (
        "The name of one vendor's device stands in the code.",
        "device = pick_device(), and pass it on",
    ),
    "one vendor": (
        "The choice leaves out accelerators that torch can use.",
        "pick_device(), or torch.accelerator.current_accelerator(check_available=True)",
    ),
    "raises without it": (
        "Where this device is missing, the call raises.",
        "put it under `if ...is_available():`",
    ),
    "number without it": (
        "Where this device is missing, the call may return 0, which looks measured.",
        "put it under `if ...is_available():`, and keep None otherwise",
    ),
    "born on the CPU": (
        "A tensor made in forward lies on the CPU, wherever the input lies.",
        "pass device=x.device",
    ),
    "left behind": (
        "A plain tensor attribute stays where it was made; .to(device) moves the others.",
        "self.register_buffer(name, tensor)",
    ),
    "hidden layers": (
        "Layers in a list or dict are invisible to .to(device), parameters() and state_dict().",
        "nn.ModuleList or nn.ModuleDict",
    ),
    "no leaf": (
        "On another device .to() returns a new tensor, which is not a leaf: its grad stays None.",
        "make it with device=",
    ),
    "float64": (
        "Apple's GPUs have no float64.",
        "use float32 there, or stay on the CPU",
    ),
}
_KINDS = ("cuda", "mps", "xpu")
_DEVICE = re.compile(rf"(?:{'|'.join(_KINDS)})(?::\d+)?")
_ASKS = (
    "is_available", "is_initialized", "is_built", "_is_compiled", "device_count",
    "current_accelerator",
)  # fmt: skip
_FACTORIES = frozenset(
    ("arange", "empty", "eye", "full", "linspace", "logspace", "normal", "ones", "rand", "randint")
    + ("randn", "randperm", "tensor", "tril_indices", "triu_indices", "zeros")
)
_KEYWORDS = ("device", "device_type", "map_location", "default")
_TAKES_DEVICE = {
    "to",
    "device",
    "set_default_device",
    "Generator",
    "autocast",
    "GradScaler",
    "load",
}
# Answered without a device, and not to be mistaken for a measurement; a test calls each.
_ANSWERED = ("is_bf16_supported", "is_tf32_supported", "get_arch_list", "get_gencode_flags")
_SEEDS = ("manual_seed", "manual_seed_all", "seed", "seed_all", "empty_cache", "get_rng_state_all")
HARMLESS = {
    "cuda": (*_ASKS, *_ANSWERED, *_SEEDS),
    "xpu": (*_ASKS, *_ANSWERED, *_SEEDS),
    "mps": (*_ASKS, "manual_seed"),
    "accelerator": _ASKS,
}
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_ZERO = re.compile(r"(?:max_)?memory_(?:allocated|reserved|cached|stats)")


@dataclass(frozen=True)
class Finding:
    """Hold one line that works on one kind of device only.

    Attributes
    ----------
    line : int
        From 1; in a notebook, within the cell.
    rule : str
        A key of `RULES`.
    code : str
        The expression.
    where : str
        The cell of a notebook, or empty.
    """

    line: int
    rule: str
    code: str
    where: str = ""

    @property
    def why(self) -> str:
        """Say what goes wrong elsewhere."""
        return RULES[self.rule][0]

    @property
    def instead(self) -> str:
        """Say what to write instead."""
        return RULES[self.rule][1]

    def __str__(self) -> str:
        place = f"{self.where}, line {self.line}" if self.where else f"line {self.line}"
        return f"{place}: `{self.code}` ({self.rule}). {self.why} Instead: {self.instead}."


@dataclass(frozen=True, repr=False)
class Findings:
    """Hold what the lint found; show it as a table."""

    rows: tuple[Finding, ...]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def rules(self) -> tuple[str, ...]:
        """Return the rule of each finding, in order."""
        return tuple(row.rule for row in self.rows)

    @property
    def table(self) -> Table:
        """Return the findings as a table."""
        rows = [
            [f"{r.where} {r.line}".strip(), r.code, f"{r.why} Instead: {r.instead}."]
            for r in self.rows
        ]
        return Table(["line", "code", "why, and what to write instead"], rows)

    def __repr__(self) -> str:
        if self.rows:
            return "\n".join(map(str, self.rows))
        return "No line was found that works on one kind of device only."

    def _repr_html_(self) -> str:
        return self.table._repr_html_() if self.rows else f"<p>{self!r}</p>"


def lint(source: str, *, where: str = "") -> Findings:
    """Find lines of a Python source that work on one kind of device only.

    Why: on a machine without a GPU such a line is often never reached, or right by accident.
    A call under a question such as ``if torch.cuda.is_available():`` is no finding, nor is
    one in a private function that is called only there. The lint reads; it does not know types,
    so it is silent about a module that returns CPU tensors from elsewhere: rehearse that on the
    meta device under `helpers.rehearsal.one_device`.

    Parameters
    ----------
    source : str
        Python, as in a file or a cell; lines that begin with ``%`` or ``!`` are passed over.
    where : str
        Named in each finding.

    Returns
    -------
    Findings
        In order of lines. The keys of `RULES` are its rules.

    Raises
    ------
    ValueError
        If the source is no Python.

    Examples
    --------
    >>> lint('model.cuda()').rules
    ('named device',)
    >>> lint('model.to(device)').rules
    ()
    """
    try:
        tree = ast.parse(source)
    except SyntaxError:
        tree = _parse_cell(source)
    reader = _Reader(tree)
    found = {
        (node.lineno, node.col_offset, rule): Finding(node.lineno, rule, _short(node), where)
        for node, rule in reader.findings()
    }
    return Findings(tuple(found[key] for key in sorted(found)))


def lint_file(path: str | Path) -> Findings:
    """Find such lines in a Python file or in the code cells of a notebook.

    Cells with the tag ``teaches-old-api`` show such lines on purpose and are passed over, and so
    are cells that end in ``check(...)``: a stub may be what is to be repaired.

    Parameters
    ----------
    path : str or pathlib.Path
        Ends in ``.py`` or ``.ipynb``.

    Returns
    -------
    Findings
        In order of cells and lines.

    Raises
    ------
    ValueError
        If a source is no Python, or the file is of another kind.

    Examples
    --------
    >>> from helpers._paths import ROOT
    >>> len(lint_file(ROOT / "helpers" / "device.py"))
    0
    """
    path = Path(path)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return lint(text)
    if path.suffix != ".ipynb":
        raise ValueError(f"path must end in .py or .ipynb, got {path.name}")
    found: list[Finding] = []
    for number, cell in enumerate(json.loads(text)["cells"], 1):
        source = "".join(cell["source"])
        tags = cell.get("metadata", {}).get("tags", [])
        on_purpose = "teaches-old-api" in tags or re.search(r"^check\(.*\)$", source, re.MULTILINE)
        if cell["cell_type"] == "code" and not on_purpose and not source.startswith("%%"):
            found += lint(source, where=f"cell {number}")
    return Findings(tuple(found))


def _parse_cell(source: str) -> ast.Module:
    """Parse a cell without IPython's own lines."""
    try:
        return ast.parse(re.sub(r"^(\s*)[%!].*$", r"\1pass", source, flags=re.MULTILINE))
    except SyntaxError as error:
        raise ValueError(
            f"source must be Python, got an error in line {error.lineno}: {error.msg}; "
            "a lint reads what Python can read"
        ) from None


def _short(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _dotted(node: ast.AST) -> str:
    """Spell out ``a.b.c``; the empty string for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        left = _dotted(node.value)
        return f"{left}.{node.attr}" if left else ""
    return ""


def _is_device(node: ast.AST | None) -> bool:
    return (
        isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and bool(_DEVICE.fullmatch(node.value))
    )


def _keyword(call: ast.Call, name: str) -> ast.AST | None:
    return next((k.value for k in call.keywords if k.arg == name), None)


class _Reader:
    """Walk one tree, knowing the parents of each node and what asks for a device."""

    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.parent = {c: p for p in ast.walk(tree) for c in ast.iter_child_nodes(p)}
        self.asked: set[str] = set()
        for node in ast.walk(tree):  # gpu = torch.cuda.is_available()
            if isinstance(node, ast.Assign) and self._asks(node.value):
                names = (n for t in node.targets for n in ast.walk(t))
                self.asked |= {_dotted(n) for n in names} - {""}

    def findings(self) -> Iterator[tuple[ast.AST, str]]:
        """Yield each faulty node with its rule."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call):
                rule = self._call(node)
                if rule and not self._guarded(node):
                    yield node, rule
                if self._born_on_cpu(node):
                    yield node, "born on the CPU"
            elif isinstance(node, ast.IfExp) and self._one_vendor(node):
                yield node, "one vendor"
            elif isinstance(node, ast.Assign):
                yield from self._assignment(node)
            elif isinstance(node, ast.arguments):
                yield from self._defaults(node)

    # --- what is faulty ------------------------------------------------------------------

    def _call(self, call: ast.Call) -> str:
        """Return the rule that a call breaks unless it is guarded, or the empty string."""
        name = _dotted(call.func)
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name
        if self._loses_leaf(call, last):
            return "no leaf"
        if last == "cuda" and name != "torch.cuda":
            return "named device"
        if self._names_device(call, last) or ".cuda.amp." in f"{name}.":
            return "named device"
        if self._float64(call):
            return "float64"
        return self._vendor_call(name, last)

    def _names_device(self, call: ast.Call, last: str) -> bool:
        if any(_is_device(_keyword(call, name)) for name in _KEYWORDS):
            return True
        if last == "GradScaler" and not call.args and _keyword(call, "device") is None:
            return True  # means cuda
        if last not in _TAKES_DEVICE:
            return False
        number = any(isinstance(a, ast.Constant) and type(a.value) is int for a in call.args[:1])
        return any(map(_is_device, call.args)) or (last == "to" and number)

    def _vendor_call(self, name: str, last: str) -> str:
        owner = next((o for o in HARMLESS if name.startswith(f"torch.{o}.")), None)
        if owner is None or last in HARMLESS[owner]:
            return ""
        silent = _ZERO.fullmatch(last)  # of torch.accelerator where the wheel has CUDA
        return "number without it" if silent else "raises without it"

    def _loses_leaf(self, call: ast.Call, last: str) -> bool:
        made = call.func.value if isinstance(call.func, ast.Attribute) else None
        if last not in ("to", "cuda") or not isinstance(made, ast.Call):
            return False
        wants = _keyword(made, "requires_grad")
        return isinstance(wants, ast.Constant) and wants.value is True

    def _float64(self, call: ast.Call) -> bool:
        wide = {"torch.float64", "torch.double"}
        values = [*call.args, *(k.value for k in call.keywords)]
        device = _keyword(call, "device")
        if device is None and isinstance(call.func, ast.Attribute) and call.func.attr == "to":
            device = next((a for a in call.args if "device" in _dotted(a)), None)
        here = isinstance(device, ast.Constant) and device.value in ("cpu", "meta", None)
        return device is not None and not here and any(_dotted(v) in wide for v in values)

    def _born_on_cpu(self, call: ast.Call) -> bool:
        if not self._is_factory(call) or _keyword(call, "device") is not None:
            return False
        function = self._function_of(call)
        inside = function is not None and function.name == "forward" and self._in_module(function)
        return inside and not self._carried(call)

    def _carried(self, node: ast.AST) -> bool:
        """Tell whether what a call makes goes to a device in the same expression or block."""
        chain = (ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.Subscript)
        direct = True
        for child, parent in self._above(node):
            argument = isinstance(parent, ast.Call) and child is not parent.func
            direct = direct and isinstance(parent, chain) and not argument
            if direct and isinstance(parent, ast.Attribute) and parent.attr in ("to", "type_as"):
                return True
            items = parent.items if isinstance(parent, ast.With) else ()
            if any("device" in ast.unparse(item.context_expr) for item in items):
                return True
        return False

    def _is_factory(self, node: ast.AST) -> bool:
        """Tell whether a call makes a tensor with at least one dimension on the CPU."""
        if not isinstance(node, ast.Call):
            return False
        owner, _, last = _dotted(node.func).rpartition(".")
        if owner != "torch" or last not in _FACTORIES:
            return False
        # A tensor without a dimension may meet any device.
        return not (last == "tensor" and node.args and isinstance(node.args[0], ast.Constant))

    def _is_plain_tensor(self, node: ast.AST) -> bool:
        """Tell whether an expression is a new tensor, or arithmetic and methods of one."""
        if isinstance(node, ast.BinOp):
            return self._is_plain_tensor(node.left) or self._is_plain_tensor(node.right)
        if isinstance(node, ast.UnaryOp):
            return self._is_plain_tensor(node.operand)
        if self._is_factory(node):
            return True
        method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        return method and self._is_plain_tensor(node.func.value)

    def _one_vendor(self, node: ast.IfExp) -> bool:
        if isinstance(self.parent.get(node), ast.IfExp):  # judged with the whole chain
            return False
        texts = {n.value for n in self._choices(node) if _is_device(n)}
        kinds = {text.partition(":")[0] for text in texts}
        return bool(kinds) and kinds != set(_KINDS) and self._asks(node)

    def _choices(self, node: ast.AST) -> Iterator[ast.AST]:
        """Yield what a chain of conditions chooses from, out of ``torch.device(...)`` as well."""
        if isinstance(node, ast.IfExp):
            yield from (*self._choices(node.body), *self._choices(node.orelse))
        elif isinstance(node, ast.Call) and _dotted(node.func) == "torch.device":
            yield from node.args
        else:
            yield node

    def _assignment(self, node: ast.Assign) -> Iterator[tuple[ast.AST, str]]:
        for target in node.targets:
            name = _dotted(target)
            if name.lower().endswith("device") and _is_device(node.value):
                if not self._guarded(node):
                    yield node, "named device"
            elif name.startswith("self.") and self._in_init(node):
                if self._is_plain_tensor(node.value):
                    yield node, "left behind"
                elif self._holds_layers(node.value):
                    yield node, "hidden layers"

    def _defaults(self, arguments: ast.arguments) -> Iterator[tuple[ast.AST, str]]:
        """Find ``def f(device="cuda")``."""
        last = [*arguments.posonlyargs, *arguments.args][::-1]
        pairs = [*zip(last, arguments.defaults[::-1], strict=False)]
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        for argument, default in pairs:
            if "device" in argument.arg and _is_device(default):
                yield default, "named device"

    def _holds_layers(self, node: ast.AST) -> bool:
        if isinstance(node, ast.ListComp | ast.List | ast.Tuple):
            items = [node.elt] if isinstance(node, ast.ListComp) else node.elts
        elif isinstance(node, ast.Dict | ast.DictComp):
            items = [node.value] if isinstance(node, ast.DictComp) else node.values
        else:
            return False
        calls = [_dotted(i.func) for i in items if isinstance(i, ast.Call)]
        return any(re.fullmatch(r"(?:torch\.)?nn\.[A-Z]\w*", name) for name in calls)

    # --- where it stands -----------------------------------------------------------------

    def _above(self, node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
        """Yield (child, parent) from a node up to the module."""
        while node in self.parent:
            yield node, self.parent[node]
            node = self.parent[node]

    def _function_of(self, node: ast.AST) -> ast.FunctionDef | None:
        return next((p for _, p in self._above(node) if isinstance(p, ast.FunctionDef)), None)

    def _in_module(self, function: ast.FunctionDef) -> bool:
        owner = self.parent.get(function)
        bases = owner.bases if isinstance(owner, ast.ClassDef) else []
        return any(_dotted(base).endswith("Module") for base in bases)

    def _in_init(self, node: ast.AST) -> bool:
        function = self._function_of(node)
        return function is not None and function.name == "__init__" and self._in_module(function)

    # --- whether somebody asked first ----------------------------------------------------

    def _asks(self, node: ast.AST | None) -> bool:
        """Tell whether an expression asks which device there is."""
        for n in ast.walk(node) if node is not None else ():
            if isinstance(n, ast.Call) and _dotted(n.func).rpartition(".")[2] in _ASKS:
                return True
            if isinstance(n, ast.Compare) and any(
                isinstance(c, ast.Constant) and c.value in ("cpu", *_KINDS) for c in ast.walk(n)
            ):
                return True
            if _dotted(n) in self.asked - {""}:
                return True
        return False

    def _guarded(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> bool:
        return any(self._guards(child, parent, seen) for child, parent in self._above(node))

    def _guards(self, child: ast.AST, parent: ast.AST, seen: frozenset[str]) -> bool:
        """Tell whether one construct lets its part run only after a question."""
        if isinstance(parent, ast.If | ast.IfExp | ast.While):
            if child is not parent.test and self._asks(parent.test):
                return True
        elif isinstance(parent, ast.BoolOp):
            if any(map(self._asks, parent.values[: parent.values.index(child)])):
                return True
        elif isinstance(parent, ast.For):
            if child is not parent.iter and self._asks(parent.iter):
                return True
        elif isinstance(parent, ast.Try):
            if parent.handlers and child in parent.body:
                return True
        elif isinstance(parent, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            if any(self._asks(g.iter) or any(map(self._asks, g.ifs)) for g in parent.generators):
                return True
        elif isinstance(parent, ast.With):
            if any("stand_in_card(" in ast.unparse(item.context_expr) for item in parent.items):
                return True
        elif isinstance(parent, ast.FunctionDef) and self._asked_by_callers(child, parent, seen):
            return True
        return self._left_before(child, parent)

    def _asked_by_callers(self, child, function: ast.FunctionDef, seen: frozenset[str]) -> bool:
        if child in function.decorator_list:
            return False
        if any(map(self._asks, function.decorator_list)):
            return True
        name = function.name
        if not name.startswith("_") or name in seen:
            return False
        calls = [
            node
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call) and _dotted(node.func) in (name, f"self.{name}")
        ]
        return bool(calls) and all(self._guarded(call, seen | {name}) for call in calls)

    def _left_before(self, child: ast.AST, parent: ast.AST) -> bool:
        """Tell whether an earlier statement of the same block asks, and leaves if there is none."""
        blocks = (getattr(parent, name, None) for name in ("body", "orelse", "finalbody"))
        block = next((b for b in blocks if isinstance(b, list) and child in b), [])
        for earlier in block[: block.index(child)] if block else ():
            if isinstance(earlier, ast.Assert) and self._asks(earlier.test):
                return True
            leaves = isinstance(earlier, ast.If) and isinstance(earlier.body[-1], _LEAVES)
            if leaves and self._asks(earlier.test):
                return True
        return False
