"""Sequences of imperative operations, against a model of memory and differences.

A case has leaves and steps: operations with hooks, views, writes, ``backward``, exceptions, each
within blocks of modes and of hooks for saved tensors. The library runs the steps; ``memory.Model``
says what every tensor is then, and what the derivatives are. Judged are

- all values at the end, and which tensors require a gradient;
- gradients of leaves, what hooks saw, and what ``retain_grad`` kept, by differences; the gradient
  of the gradient, and of that, by differences of the same model;
- refusals: a write that PyTorch refuses may be, and a value that is needed and was written to may
  be missed if it was written to; another number never;
- the tangent of forward mode, where the sequence means the same there; the step under ``jit``;
  ``func.grad`` of the step;
- that no mode, trace or tensor is left behind.
"""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd.modes import Modes, modes
from functrans.autograd.nodes import running
from functrans.core import state
from functrans.errors import FunctransError

from .common import Case, Finding, Kind
from .memory import Cell, Model, Unfit, differences, recording, value_of, weighted, weights
from .programs import NEVER
from .tensor_runs import Runner, is_overwritten, leaf_tensor, total_of
from .tensor_steps import CONTEXTS, MANY, OPERATIONS, RAISED, VIEWS, WRITES, Row

REENTRANT = "use_reentrant=True"
FINALS = ("backward", "twice", "order 2", "order 3")
MODES = ("forward", "jit", "func")
LARGE = 1e5
"""Beyond, rounding shows in sines, and single precision overflows soon."""


class Imperative(Kind):
    """See the module's docstring."""

    name = "imperative"

    def draw(self, rng: np.random.Generator) -> Case:
        is_single = rng.random() < 0.15
        args = {f"v{i}": _drawn_leaf(rng, i, is_single) for i in range(int(rng.integers(1, 4)))}
        model = Model(is_drawing=True)
        for name, leaf in args.items():
            model.leaf(name, leaf)
        steps: list[dict[str, Any]] = []
        wanted = int(rng.integers(2, 16))
        for _ in range(12 * wanted):
            try:
                step = _drawn_step(rng, model)
                with np.errstate(all="ignore"):
                    model.do(len(steps), step)
            except (Unfit, ValueError, IndexError, TypeError, AttributeError):
                continue
            steps.append(step)
            if len(steps) == wanted:
                break
        return {
            "args": args,
            "steps": steps,
            "final": str(rng.choice(FINALS)),
            "modes": [str(m) for m in MODES if rng.random() < 0.25],
            "directions": int(rng.integers(10**6)),
        }

    def run(self, case: Case, counts: Counter[str]) -> None:
        try:
            with np.errstate(all="ignore"):
                watched = _judged(case, counts)
        finally:
            _check_state()
        if watched is not None:
            counts["freed at once"] += len(watched)
            left = [name for name, tensor in watched.items() if tensor() is not None]
            if left:
                gc.collect()
                raise Finding("a tensor is left", f"{left}")

    def smaller(self, case: Case) -> Any:
        yield from super().smaller(case)
        for key, value in (("modes", []), ("final", "backward")):
            if case[key] != value:
                yield {**case, key: value}
        for i, step in enumerate(case["steps"]):
            for key in ("hook", "observe", "retain", "in"):
                if step.get(key):
                    rest = {k: v for k, v in step.items() if k != key}
                    less = rest if key != "in" else {**step, "in": step["in"][1:]}
                    yield {**case, "steps": [*case["steps"][:i], less, *case["steps"][i + 1 :]]}

    def script(self, case: Case) -> str:
        lines = [
            "import numpy as np, functrans as ft, functrans.compat.torch as T",
            "from tests.fuzz.tensor_runs import *  # from the root of the repository",
            "from tests.fuzz.tensor_runs import WORDS, context, leaf_tensor, total_of",
            "globals().update(WORDS)",
        ]
        for name, leaf in case["args"].items():
            lines.append(f"{name} = leaf_tensor({leaf}, {leaf['grad']})")
        for i, step in enumerate(case["steps"]):
            for depth, name in enumerate(step["in"]):
                lines.append(f"{'    ' * depth}with context({name!r}):")
            lines.append("    " * len(step["in"]) + _line(i, step))
        lines.append(f"# then: {case['final']} of the sum of all tensors, also by {case['modes']}")
        return "\n".join(lines) + "\n"


KIND = Imperative()


def _line(i: int, step: dict[str, Any]) -> str:
    """A step as Python."""
    if step["do"] == "backward":
        return f"total_of({step['of'][0]}, {i}).backward(retain_graph=True)"
    names = dict(zip("ab", step["of"], strict=False))
    call = f"(lambda {', '.join(names)}: {step['text']})({', '.join(names.values())})"
    extras = {k: step[k] for k in ("hook", "observe", "retain") if step.get(k)}
    comment = f"  # {extras}" if extras else ""
    out = step.get("out", [])
    target = "".join(f"{name}, " for name in out) if len(out) > 1 else "".join(out)
    return (f"{target} = " if out else "") + call + comment


# drawing ----------------------------------------------------------------------------------------


def _drawn_leaf(rng: np.random.Generator, i: int, is_single: bool) -> dict[str, Any]:
    real = "float32" if is_single and rng.random() < 0.7 else "float64"
    is_complex = not is_single and rng.random() < 0.2
    shapes = ([3], [2, 3], [3, 3], [2], [3, 2], [1, 3])
    return {
        "dtype": "complex128" if is_complex else real,
        "shape": list(shapes[rng.integers(len(shapes))]),
        "seed": int(rng.integers(10**6)),
        "grad": bool(i == 0 or rng.random() < 0.6),
    }


def _drawn_step(rng: np.random.Generator, model: Model) -> dict[str, Any]:
    names = [name for name, cell in model.cells.items() if not cell.is_stale]
    do = str(
        rng.choice(["op", "view", "write", "backward", "raise"], p=[0.4, 0.27, 0.27, 0.04, 0.02])
    )
    contexts = _drawn_contexts(rng)
    if do == "backward":
        return {"do": do, "of": [str(rng.choice(names))], "in": []}
    if do == "raise":
        text = str(rng.choice(RAISED))
        return {"do": do, "text": text, "of": [str(rng.choice(names))], "in": contexts}
    rows = {"op": OPERATIONS, "view": VIEWS, "write": WRITES}[do]
    row = rows[rng.integers(len(rows))]
    of = [_drawn_name(rng, names) for _ in range(row.operands)]
    step: dict[str, Any] = {"do": do, "text": row.text, "of": of, "in": contexts}
    cells = [model.cells[name] for name in of]
    _check_operands(row, do, cells, contexts)
    count = len(value_of(row.expression, [cells[0].value])) if row.text in MANY else 1
    if do != "write":
        step["out"] = [f"v{len(model.cells) + k}" for k in range(count)]
    # A derivative that reads the result reads it behind its hooks, which then count once more.
    if do == "op" and "o" not in row.reads and rng.random() < 0.25:
        step["hook"] = [str(rng.choice(["tensor", "node", "pre"])), float(rng.choice([2.0, -0.5]))]
    for extra in ("observe", "retain"):
        if do == "op" and rng.random() < 0.15:
            step[extra] = True
    return step


def _drawn_contexts(rng: np.random.Generator) -> list[str]:
    if rng.random() < 0.7:
        return []
    p = [0.3, 0.15, 0.05, 0.15, 0.2, 0.15]
    return [str(name) for name in rng.choice(CONTEXTS, size=int(rng.integers(1, 3)), p=p)]


def _drawn_name(rng: np.random.Generator, names: list[str]) -> str:
    """Later ones are more likely."""
    return names[int(len(names) * rng.random() ** 0.6)]


def _check_operands(row: Row, do: str, cells: list[Cell], contexts: list[str]) -> None:
    """Raises ``Unfit`` for operands that the step does not take."""
    for cell in cells:
        if ("c" if np.iscomplexobj(cell.value) else "r") not in row.kinds:
            raise Unfit
    if "slope" in row.text and "inference" in contexts:  # nothing can be recorded there
        raise Unfit
    if do == "write":
        target = cells[0]
        is_odd = target.hidden_since is not None and recording(contexts)
        # A function that writes to a leaf or one of several views is refused when it has done so.
        is_late = target.flow.is_leaf or target.is_part or not recording(contexts)
        if target.repeats or is_odd or (row.text == "Tripled.apply(a)" and is_late):
            raise Unfit


# judging ----------------------------------------------------------------------------------------


def _judged(case: Case, counts: Counter[str]) -> dict[str, Any] | None:
    """Everything that is compared; references to tensors that must be gone afterwards."""
    leaves = {name: leaf_tensor(leaf, leaf["grad"]) for name, leaf in case["args"].items()}
    runner = Runner(case, leaves, is_plain=case["final"].startswith("order"))
    runner.run()
    counts["steps"] += len(case["steps"])
    counts["steps refused"] += sum(note == "refused" for note in runner.notes.values())
    if runner.failed is not None:
        counts["backward within met a value written to"] += 1
        return None
    model = Model(notes=runner.notes).run(case)
    if not all(np.all(np.abs(cell.value) <= LARGE) for cell in model.cells.values()):  # or NaN
        counts["sequences that grow too large"] += 1
        return None
    _compare_values(runner, model, case, counts)
    used = [n for n, c in model.cells.items() if not c.is_stale and c.hidden_since is None]
    judge = _Judge(case, runner.notes, used, model)
    _judge_gradients(judge, runner, counts)
    if not judge.is_refused:
        for mode in case["modes"]:
            _OTHERS[mode](judge, counts)
    is_plain = not case["modes"] and "refused" not in runner.notes.values()
    texts = " ".join(step.get("text", "") for step in case["steps"])
    if not is_plain or judge.is_refused or any(w in texts for w in ("func.", "ft.", "boom")):
        return None
    return {name: weakref.ref(tensor) for name, tensor in runner.tensors.items()}


def _tolerance(case: Case) -> float:
    is_single = any(leaf["dtype"] == "float32" for leaf in case["args"].values())
    return 3e-3 if is_single else 1e-7


def _compare_values(runner: Runner, model: Model, case: Case, counts: Counter[str]) -> None:
    sizes = [float(np.max(np.abs(cell.value), initial=1.0)) for cell in model.cells.values()]
    for name, cell in model.cells.items():
        if cell.is_stale:
            continue
        tensor = runner.tensors[name]
        found = np.asarray(tensor.detach().numpy())
        if found.shape != cell.value.shape:
            raise Finding("shape", f"{name}: {found.shape} instead of {cell.value.shape}")
        scale = max(sizes) ** 2  # sin(x) * x has the error of x twice over
        if not np.all(np.abs(found - cell.value) <= 0.01 * _tolerance(case) * scale):
            raise Finding("values", f"{name}: {found} instead of {cell.value}")
        counts["values compared"] += 1
        if cell.flow.is_recorded and not tensor.requires_grad:
            raise Finding("requires no gradient", name)
        # PyTorch's views that are made in no_grad say that they require a gradient.
        is_open = any(c.hidden_since is not None or c.is_inference for c in model.cells.values())
        if tensor.requires_grad and not cell.flow.is_recorded and not is_open:
            raise Finding("requires a gradient", name)


class _Judge:
    """The model as a function of deviations.

    Attributes:
      case: see ``Imperative``.
      notes: of the runner.
      used: names of tensors in the loss.
      model: without deviations.
      variables: names of leaves that require a gradient, and where they are.
      is_refused: the loss met a value that was written to, or does not depend on leaves.
    """

    def __init__(self, case: Case, notes: dict[int, str], used: list[str], model: Model) -> None:
        self.case, self.notes, self.used, self.model = case, notes, used, model
        self.variables = [name for name, leaf in case["args"].items() if leaf["grad"]]
        self.rng = np.random.default_rng(case["directions"])
        self.is_refused = False

    def functional(self, times: int, steps: int = 1) -> Callable[[dict[str, Any]], Any]:
        """``steps`` times what ``backward`` was called on, and ``times`` times the loss."""

        def functional(deviations: dict[str, Any]) -> Any:
            model = Model(deviations, self.notes).run(self.case)
            total = steps * model.total
            for k, name in enumerate(self.used):
                cell = model.cells[name]
                if cell.flow.is_recorded:
                    total = total + times * weighted(cell.value + cell.deviation, k, weights)
            return total

        return functional

    def loss(self, tensors: dict[str, Any]) -> Any:
        """The library's sum of all tensors; None if it is constant."""
        parts = [
            total_of(tensors[name], k)
            for k, name in enumerate(self.used)
            if self.model.cells[name].flow.is_recorded
        ]
        return sum(parts[1:], parts[0]) if parts else None

    def direction(self, name: str, cell: Cell) -> dict[str, np.ndarray]:
        """A random one, of one variable."""
        t = self.rng.uniform(-1, 1, cell.value.shape)
        if np.iscomplexobj(cell.value):
            t = t + 1j * self.rng.uniform(-1, 1, cell.value.shape)
        return {name: t}

    def compare(
        self, what: str, found: Any, functional: Any, along: list[Any], counts: Counter[str]
    ) -> bool:
        """A gradient times the last direction, against differences; whether these are trusted."""
        expected, error = differences(functional, along)
        if not error <= 1e-6 * max(1.0, abs(expected)):
            counts[f"{what}, differences no judge"] += 1
            return False
        counts[f"{what}, against differences"] += 1
        ((t,)) = along[-1].values()
        terms = np.zeros(1) if found is None else (np.conj(np.asarray(found)) * t).real
        size = max(1.0, abs(expected), float(np.sum(np.abs(terms))))
        if not abs(float(np.sum(terms)) - expected) <= _tolerance(self.case) * size + 30 * error:
            raise Finding(what, f"{np.sum(terms)} instead of {expected} along {along}")
        return True


def _judge_gradients(judge: _Judge, runner: Runner, counts: Counter[str]) -> None:
    """The loss, as the case says."""
    loss = judge.loss(runner.tensors)
    if loss is None:
        judge.is_refused = True
        return
    final = judge.case["final"]
    rank = int(final[-1]) if final.startswith("order") else 1
    try:
        if rank == 1:
            for k in range(1 + (final == "twice")):
                loss.backward(retain_graph=k == 0 and final == "twice")
        else:
            _judge_orders(judge, loss, runner, rank, counts)
    except RuntimeError as error:
        judge.is_refused = True
        if "incompatible with .grad()" in str(error) and REENTRANT in str(judge.case):
            counts["refused with a reentrant checkpoint"] += 1
            return
        if not is_overwritten(error):
            raise
        if not judge.model.is_overwritten(rank, len(judge.case["steps"])):
            raise Finding("nothing was written to", str(error)) from error
        counts["the loss met a value written to"] += 1
        return
    if rank == 1:
        _judge_kept(judge, runner, judge.functional(1 + (final == "twice")), counts)


def _judge_kept(judge: _Judge, runner: Runner, functional: Any, counts: Counter[str]) -> None:
    """``.grad`` of leaves, what hooks saw, ``.grad`` of tensors that retain it."""
    for name in judge.variables:
        found = _number(runner.tensors[name].grad)
        along = judge.direction(name, judge.model.cells[name])
        judge.compare("gradient", found, functional, [along], counts)
    for i, step in enumerate(judge.case["steps"]):
        name = step.get("out", [""])[0]
        cell = judge.model.cells.get(name)
        if cell is None or judge.notes.get(i) or not cell.flow.is_recorded or step["do"] != "op":
            continue
        if not recording(step["in"]) or not any(
            judge.model.cells[n].flow.is_recorded for n in step["of"]
        ):
            continue
        if step.get("observe"):
            along = judge.direction(f"seen {name}", cell)
            judge.compare("seen by a hook", runner.seen.get(name), functional, [along], counts)
        if step.get("retain") and not cell.storage.writes:
            along = judge.direction(f"kept {name}", cell)
            found = _number(runner.tensors[name].grad)
            judge.compare("kept", found, functional, [along], counts)


def _judge_orders(
    judge: _Judge, loss: Any, runner: Runner, rank: int, counts: Counter[str]
) -> None:
    """Gradients of gradients along directions."""
    along: list[dict[str, np.ndarray]] = []
    functional = judge.functional(1, steps=0)
    for order in range(1, rank + 1):
        if order > 1 and judge.model.has_kink:
            counts["at a declared kink"] += 1
            return
        name = judge.variables[int(judge.rng.integers(len(judge.variables)))]
        leaf = runner.tensors[name]
        (found,) = torch.autograd.grad(loss, leaf, create_graph=True, allow_unused=True)
        along.append(judge.direction(name, judge.model.cells[name]))
        if not judge.compare(f"order {order}", _number(found), functional, along, counts):
            return
        if found is None or not found.requires_grad:
            return
        t = torch.from_numpy(along[-1][name])
        loss = ((found.conj() * t).real if found.is_complex() else found * t).sum()


def _number(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().numpy()


# other ways -------------------------------------------------------------------------------------


def _is_same_forward(case: Case, notes: dict[int, str]) -> bool:
    """Whether forward mode gives the derivative of the recorded sequence."""
    texts = " ".join(step.get("text", "") for step in case["steps"])
    is_plain = not any(step["in"] or step.get("hook") for step in case["steps"])
    return not notes and is_plain and "detach" not in texts and "slope" not in texts


def _tried(what: str, counts: Counter[str], way: Callable[[], Any]) -> Any:
    """A result, or None if the library refuses; it may not know everything here."""
    try:
        return way()
    except NEVER:
        raise
    except (FunctransError, NotImplementedError) as error:
        counts[f"refused, {what}: {type(error).__name__}"] += 1
    except RuntimeError as error:
        counts[f"refused, {what}: {str(error)[:50]}"] += 1
    return None


def _by_forward(judge: _Judge, counts: Counter[str]) -> None:
    if not _is_same_forward(judge.case, judge.notes):
        return
    along = {n: judge.direction(n, judge.model.cells[n])[n] for n in judge.variables}

    def way() -> Any:
        with torch.autograd.forward_ad.dual_level():
            leaves = {}
            for name, leaf in judge.case["args"].items():
                x = leaf_tensor(leaf, grad=False)
                if name in along:
                    t = torch.from_numpy(along[name].astype(leaf["dtype"]))
                    x = torch.autograd.forward_ad.make_dual(x, t)
                leaves[name] = x
            tensors = Runner(judge.case, leaves, is_plain=True).again(judge.notes).tensors
            return _number(torch.autograd.forward_ad.unpack_dual(judge.loss(tensors)).tangent)

    found = _tried("forward mode", counts, way)
    if found is not None:
        # In a case of one direction, the tangent is the gradient times a number.
        functional = judge.functional(1, steps=0)
        moved = {"t": np.ones(())}
        judge.compare(
            "forward mode",
            found,
            lambda d: functional({k: t * d["t"] for k, t in along.items()} if d else {}),
            [moved],
            counts,
        )


def _by_jit(judge: _Judge, counts: Counter[str]) -> None:
    leaves = {n: leaf_tensor(leaf, leaf["grad"]) for n, leaf in judge.case["args"].items()}
    before = {name: leaf.detach().numpy().copy() for name, leaf in leaves.items()}

    def step() -> Any:
        tensors = Runner(judge.case, leaves, is_plain=True).again(judge.notes).tensors
        loss = judge.loss(tensors)
        loss.backward()
        return loss.detach()

    jitted = ft.jit(step)
    functional = judge.functional(1, steps=0)
    for _ in range(2):
        for name, leaf in leaves.items():
            leaf.grad = None
            leaf.detach().numpy()[...] = before[name]
        if _tried("jit", counts, jitted) is None:
            return
        for name in judge.variables:
            along = judge.direction(name, judge.model.cells[name])
            found = _number(leaves[name].grad)
            judge.compare("gradient of a jitted step", found, functional, [along], counts)
        for name, leaf in leaves.items():
            expected = judge.model.cells[name].value
            if not np.allclose(leaf.detach().numpy(), expected.astype(leaf.dtype), 1e-3, 1e-3):
                raise Finding("leaves after a jitted step", f"{leaf} instead of {expected}")


def _by_func(judge: _Judge, counts: Counter[str]) -> None:
    args = judge.case["args"]
    if any(leaf["dtype"] == "complex128" for leaf in args.values()):
        return
    if any(step.get("hook") or step["in"] for step in judge.case["steps"]) or judge.notes:
        return

    def fun(*variables: Any) -> Any:
        leaves = {n: leaf_tensor(leaf, grad=False) for n, leaf in args.items()}
        leaves.update(zip(judge.variables, variables, strict=True))
        return judge.loss(Runner(judge.case, leaves, is_plain=True).again(judge.notes).tensors)

    points = [leaf_tensor(args[name], grad=False) for name in judge.variables]
    numbers = tuple(range(len(points)))
    found = _tried("func.grad", counts, lambda: torch.func.grad(fun, argnums=numbers)(*points))
    for name, gradient in zip(judge.variables, found or (), strict=False):
        along = judge.direction(name, judge.model.cells[name])
        functional = judge.functional(1, steps=0)
        judge.compare("func.grad of the step", _number(gradient), functional, [along], counts)


_OTHERS = {"forward": _by_forward, "jit": _by_jit, "func": _by_func}

_DEFAULTS = {k: v for k, v in vars(Modes).items() if k in Modes.__annotations__ or k[0] != "_"}


def _check_state() -> None:
    """Nothing is open, in this thread."""
    left = [
        name
        for name, value in _DEFAULTS.items()
        if not callable(value) and getattr(modes, name) != value
    ]
    if state.open_traces.get():
        left.append("open traces")
    if running.backward is not None:
        left.append("a backward pass")
    if left:
        for name in _DEFAULTS:
            vars(modes).pop(name, None)
        raise Finding("state is left", f"{left}")
