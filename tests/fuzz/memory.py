"""A model of tensors in NumPy: memory that views share, and what is a function of the leaves.

Every tensor of the model is two arrays of extended precision: its *value*, and its *deviation*, by
how much the value differs when the leaves do, along the graph. An operation takes values to values
and the deviated values to the deviated result. Where nothing is recorded (``no_grad``, a detached
tensor), values change and deviations stay. Derivatives of any order are then differences: of the
sum of results, by the deviations of the leaves, at zero. A hook that multiplies the gradient of a
tensor multiplies its deviation; the gradient that a hook sees is the derivative by a deviation that
is added to the tensor.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

from .tensor_steps import DETACHED, MANY, OPERATIONS, VIEWS, WRITES, Row

ROWS = {
    "op": {row.text: row for row in OPERATIONS},
    "view": {row.text: row for row in VIEWS},
    "write": {row.text: row for row in WRITES},
}
LARGEST = 20.0


class Unfit(Exception):  # noqa: N818  # it is a result of drawing
    """A step that is not drawn: its numbers are extreme, or its operands do not fit."""


@dataclass
class Storage:
    """Memory with the steps that wrote to it."""

    writes: list[int] = field(default_factory=list)


@dataclass
class Flow:
    """What a tensor and its views share in the graph."""

    is_recorded: bool = False
    is_leaf: bool = False


@dataclass
class Cell:
    """A tensor.

    Attributes:
      value: an array, which views share.
      deviation: alike.
      flow: of the graph.
      storage: of the memory.
      is_part: one of several results of a view.
      is_inference: made in inference mode.
      hidden_since: of a view that was made where nothing was recorded, the writes before.
    """

    value: np.ndarray
    deviation: np.ndarray
    flow: Flow
    storage: Storage
    is_part: bool = False
    is_inference: bool = False
    hidden_since: int | None = None

    @property
    def is_stale(self) -> bool:
        """Whether it is a hidden view whose base was written to, which may be refused."""
        return self.hidden_since is not None and len(self.storage.writes) > self.hidden_since

    @property
    def repeats(self) -> bool:
        """Whether elements share memory."""
        return any(
            s == 0 and n > 1 for s, n in zip(self.value.strides, self.value.shape, strict=True)
        )


def _put(x: np.ndarray, index: Any, value: Any) -> np.ndarray:
    if np.iscomplexobj(value) and not np.iscomplexobj(x):
        raise Unfit
    result = x.copy()
    if not isinstance(index, np.ndarray) and not result[index].size:
        raise Unfit
    result[index] = value
    return result


def _as_real(x: np.ndarray) -> np.ndarray:
    step = x.imag.__array_interface__["data"][0] - x.real.__array_interface__["data"][0]
    return np.lib.stride_tricks.as_strided(x.real, (*x.shape, 2), (*x.strides, step))


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        raise Unfit
    return True


WORDS = {
    "np": np,
    "put": _put,
    "as_real": _as_real,
    "same": _same,
    "square_jacobian": lambda x: np.diag(2 * x) if x.ndim == 1 else _same(x, x[0]),
}


@functools.cache
def _code(text: str) -> CodeType:
    return compile(text, text, "eval")


def value_of(text: str, operands: list[Any]) -> Any:
    """The model's text of ``a`` and ``b``."""
    return eval(_code(text), {**WORDS, **dict(zip("ab", operands, strict=False))})


def wide(x: np.ndarray) -> np.ndarray:
    """In extended precision, and in memory of its own."""
    return np.array(x, np.clongdouble if np.iscomplexobj(x) else np.longdouble)


def weighted(value: Any, k: int, cos: Any) -> Any:
    """A combination of all elements, of an array or a tensor; ``cos`` makes the weights."""
    real = (value.real * cos(value.shape, k)).sum()
    if np.dtype(value.dtype).kind != "c":
        return real
    return real + (value.imag * cos(value.shape, k + 1)).sum()


def weights(shape: tuple[int, ...], k: int) -> np.ndarray:
    """Numbers between -1 and 1."""
    return np.cos(np.arange(np.prod(shape, dtype=int)) * 1.7 + k).reshape(shape)


def recording(contexts: list[str]) -> bool:
    """Whether operations within these blocks are recorded."""
    on = True
    for name in contexts:
        if name in ("no_grad", "enable_grad"):
            on = name == "enable_grad"
    return on and "inference" not in contexts


@dataclass
class Model:
    """Runs the steps of a case.

    Attributes:
      deviations: of leaves by name, and of gradients that hooks see, as ``seen v3``, ``kept v3``.
      notes: by step, ``refused`` or ``copied``: what the library did where it has the choice.
      cells: all tensors by name.
      total: the sum of what ``backward`` was called on.
      saved: by step and rank of derivative, memory that recorded operations may read again.
      is_drawing: raise ``Unfit`` for extreme numbers.
      has_kink: whether an absolute value of exactly 0 is recorded, whose slope is declared to be 0
        and may be that of a smooth function, such as its square; or a maximum of numbers so close
        that differences mix them.
    """

    deviations: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: Mapping[int, str] = field(default_factory=dict)
    cells: dict[str, Cell] = field(default_factory=dict)
    total: Any = 0.0
    saved: list[tuple[int, int, Storage]] = field(default_factory=list)
    is_drawing: bool = False
    has_kink: bool = False

    def run(self, case: dict[str, Any]) -> Model:
        """All leaves and steps."""
        for name, leaf in case["args"].items():
            self.leaf(name, leaf)
        for i, step in enumerate(case["steps"]):
            if self.notes.get(i) != "refused":
                self.do(i, step)
        return self

    def leaf(self, name: str, leaf: dict[str, Any]) -> None:
        """A leaf, as ``{"dtype", "shape", "seed", "grad"}``."""
        value = wide(leaf_value(leaf))
        flow = Flow(leaf["grad"], leaf["grad"])
        deviation = value * 0 + self.deviations.get(name, 0.0)
        self.cells[name] = Cell(value, deviation, flow, Storage())

    def is_possible(self, step: dict[str, Any]) -> bool:
        """Whether its operands are there."""
        cells = [self.cells.get(name) for name in step["of"]]
        return all(cell is not None and not cell.is_stale for cell in cells)

    def do(self, i: int, step: dict[str, Any]) -> None:
        """One step."""
        if step["do"] == "raise" or not self.is_possible(step):
            return
        cells = [self.cells[name] for name in step["of"]]
        if step["do"] == "backward":
            if cells[0].flow.is_recorded:
                self.total = self.total + weighted(_deviated(cells[0]), i, weights)
        else:
            row = ROWS[step["do"]][step["text"]]
            getattr(self, "_" + step["do"])(i, step, row, cells)

    def _results(self, row: Row, cells: list[Cell]) -> tuple[np.ndarray, np.ndarray]:
        """Value and deviation of an expression."""
        value = np.array(value_of(row.expression, [c.value for c in cells]))
        moved = np.array(value_of(row.expression, [_deviated(c) for c in cells]))
        if self.is_drawing and not _is_moderate(value):
            raise Unfit
        if self.is_drawing and "a > b" in row.expression and _is_close(*[c.value for c in cells]):
            raise Unfit  # rounding to single precision decides
        return value, moved - value

    def _op(self, i: int, step: dict[str, Any], row: Row, cells: list[Cell]) -> None:
        value, deviation = self._results(row, cells)
        name = step["out"][0]
        flow = Flow(recording(step["in"]) and any(c.flow.is_recorded for c in cells))
        if flow.is_recorded:
            deviation = self._hooked(step, name, deviation)
            self.has_kink |= "np.abs(" in row.expression and not cells[0].value.all()
            self.has_kink |= "a.max(" in row.expression and _has_near_ties(cells[0].value)
        cell = Cell(value, np.array(deviation * flow.is_recorded), flow, Storage())
        cell.is_inference = "inference" in step["in"]
        self.cells[name] = cell
        if flow.is_recorded:
            self._keep(i, step, row, {"o": cell, **dict(zip("ab", cells, strict=False))})

    def _hooked(self, step: dict[str, Any], name: str, deviation: Any) -> Any:
        where, factor = step.get("hook", ("", 1.0))
        if where != "tensor":
            deviation = factor * deviation
        deviation = deviation + self.deviations.get(f"kept {name}", 0.0)
        if where == "tensor":
            deviation = factor * deviation
        return deviation + self.deviations.get(f"seen {name}", 0.0)

    def _keep(self, i: int, step: dict[str, Any], row: Row, cells: dict[str, Cell]) -> None:
        """Note memory that derivatives read."""
        packers = [name for name in step["in"] if name in ("identity", "copy", "wide")]
        if packers[-1:] == ["copy"]:
            return
        first = {
            letter
            for part in row.reads.split()
            for letter in part[2:]
            if cells[part[0]].flow.is_recorded
        }
        for letter, cell in cells.items():
            if row.reads:
                # A write may overwrite the other operand itself.
                at = i - (step["do"] == "write" and letter == "b")
                self.saved.append((at, 1 if letter in first else 2, cell.storage))

    def _view(self, i: int, step: dict[str, Any], row: Row, cells: list[Cell]) -> None:
        base = cells[0]
        values, deviations = (value_of(row.expression, [x]) for x in (base.value, base.deviation))
        is_many = row.text in MANY
        if not is_many:
            values, deviations = [values], [deviations]
        is_copied = self.notes.get(i) == "copied" or not np.shares_memory(values[0], base.value)
        if is_copied and self.is_drawing:
            raise Unfit
        is_hidden = not recording(step["in"]) and not base.is_inference
        for name, value, deviation in zip(step["out"], values, deviations, strict=False):
            cell = Cell(value, deviation, base.flow, base.storage, base.is_part or is_many)
            cell.is_inference = base.is_inference
            cell.hidden_since = base.hidden_since
            if is_copied:
                cell.value, cell.deviation, cell.storage = value.copy(), deviation.copy(), Storage()
                cell.flow = Flow(base.flow.is_recorded and recording(step["in"]))
                cell.deviation = cell.deviation * cell.flow.is_recorded
            elif row.text == DETACHED or is_hidden:
                cell.deviation, cell.flow = _zeros(value), Flow()
                cell.is_part = False
                if row.text != DETACHED:
                    cell.hidden_since = len(base.storage.writes)
            self.cells[name] = cell

    def _write(self, i: int, step: dict[str, Any], row: Row, cells: list[Cell]) -> None:
        target = cells[0]
        value, deviation = self._results(row, cells)
        if value.shape != target.value.shape or np.iscomplexobj(value) > np.iscomplexobj(
            target.value
        ):
            raise Unfit
        before = target.flow.is_recorded
        if recording(step["in"]):
            target.flow.is_recorded |= any(c.flow.is_recorded for c in cells)
            if target.flow.is_recorded:
                target.deviation[...] = deviation
                old = Cell(target.value, target.deviation, Flow(before), Storage())
                letters = {
                    "o": target,
                    "c": old,
                    "a": old,
                    **dict(zip("b", cells[1:], strict=False)),
                }
                self._keep(i, step, row, letters)
        target.value[...] = value
        target.storage.writes.append(i)

    def is_overwritten(self, rank: int, until: int) -> bool:
        """Whether memory that derivatives up to this rank read was written to before a step."""
        return any(
            needed <= rank and any(at < w < until for w in storage.writes)
            for at, needed, storage in self.saved
        )

    def overlaps(self, step: dict[str, Any]) -> bool:
        """Whether a write reads the memory that it writes to, or writes to elements twice."""
        target, *others = (self.cells[name] for name in step["of"])
        return target.repeats or any(np.shares_memory(target.value, c.value) for c in others)


def _deviated(cell: Cell) -> np.ndarray:
    return cell.value + cell.deviation


def _zeros(value: np.ndarray) -> np.ndarray:
    """Zeros in an array that repeats no element."""
    return np.zeros(value.shape, value.dtype)


def _has_near_ties(value: np.ndarray) -> bool:
    """Whether the two largest numbers of a lane are closer than the steps of differences."""
    if value.ndim == 0 or value.shape[-1] < 2:
        return False
    first, second = np.moveaxis(np.sort(value.real, axis=-1)[..., :-3:-1], -1, 0)
    return bool(np.any(first - second < 1e-4 * np.maximum(1, np.abs(first))))


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether numbers that are compared are closer than the rounding of single precision."""
    return bool(np.any(np.abs(a - b) < 1e-4 * np.maximum(1, np.abs(a))))


def _is_moderate(value: np.ndarray) -> bool:
    return bool(
        value.size and value.size <= 64 and value.dtype.kind in "fc" and np.isfinite(value).all()
    ) and bool(np.all(np.abs(value) < LARGEST))


def leaf_value(leaf: dict[str, Any]) -> np.ndarray:
    """The numbers of a leaf."""
    rng = np.random.default_rng(leaf["seed"])
    value = rng.uniform(0.3, 1.6, leaf["shape"]) * rng.choice([-1, 1], leaf["shape"])
    if leaf["dtype"] == "complex128":
        value = value + 1j * rng.uniform(-1.5, 1.5, leaf["shape"])
    return np.asarray(value.astype(leaf["dtype"]))


def differences(functional: Any, directions: list[dict[str, np.ndarray]]) -> tuple[float, float]:
    """The mixed derivative at zero along directions, and how far it can be trusted.

    Richardson's extrapolation of central differences of three sizes; infinite where they do not
    converge, or where the slopes of both sides differ.
    """
    found = []
    for h in (0.01, 0.005, 0.0025):
        total = np.longdouble(0)
        for signs in _signs(len(directions)):
            moved: dict[str, Any] = {}
            for sign, direction in zip(signs, directions, strict=True):
                for name, t in direction.items():
                    moved[name] = moved.get(name, 0) + sign * h * t
            total += np.prod(signs) * functional(moved)
        found.append(total / (2 * np.longdouble(h)) ** len(directions))
    once = [(4 * b - a) / 3 for a, b in itertools.pairwise(found)]
    twice = (16 * once[1] - once[0]) / 15
    error = float(abs(twice - once[1]))
    return float(twice), error if _is_even(functional, directions) else np.inf


def _signs(n: int) -> Iterator[tuple[int, ...]]:
    for bits in range(2**n):
        yield tuple(1 if bits >> k & 1 else -1 for k in range(n))


def _is_even(functional: Any, directions: list[dict[str, np.ndarray]]) -> bool:
    """Whether the slopes of both sides meet, along each direction."""
    here = functional({})
    for direction in directions:
        bends = []
        for h in (1e-3, 1e-4):
            ahead, behind = (
                functional({k: sign * h * t for k, t in direction.items()}) for sign in (1, -1)
            )
            bends.append(abs(ahead + behind - 2 * here) / h)
        if not bends[1] <= 0.3 * bends[0] + 1e-12 * max(1.0, abs(here)):
            return False
    return True
