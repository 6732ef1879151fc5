"""Random programs for the compiler: many dtypes and extents, control flow, programs in programs.

A program is a list of steps as in ``random_programs``: each applies an operation, chosen by a
number that wraps around, to earlier values. Extents lie around the sizes at which the compiler
changes its mind (unrolled, in lanes, in blocks), and the results are several of the values, so that
loop nests have several roots.
"""

# ruff: noqa: E501  # one line for each operation
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from hypothesis import strategies as st

import functrans as ft
from functrans import lax

MAX_SIZE = 6000

FLOATS = ("f8", "f4")
INEXACT = ("f8", "f4", "c16", "f2")
NUMBERS = ("f8", "f4", "c16", "f2", "i8", "i4", "u1")
ALL = (*NUMBERS, "b1")


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One production of the grammar.

    Attributes:
      name: in the text of a program.
      arity: number of operands.
      dtypes: of the first operand.
      fits: whether it is defined for operands of these shapes and a number.
      run: ``(*operands, number) -> array``.
    """

    name: str
    arity: int
    dtypes: tuple[str, ...]
    fits: Callable[..., bool]
    run: Callable[..., Any]


def _always(*_: Any) -> bool:
    return True


def _has_axis(shape: Any, k: int) -> bool:
    return len(shape) >= 1


def _has_elements(shape: Any, k: int) -> bool:
    return len(shape) >= 1 and 0 not in shape


def _is_short(shape: Any, k: int) -> bool:
    return len(shape) >= 1 and 1 <= shape[0] <= 12


def _can_grow(shape: Any, k: int) -> bool:
    return 3 * int(np.prod(shape)) <= MAX_SIZE and len(shape) <= 3


def _broadcast(a: Any, b: Any, k: int) -> bool:
    try:
        return int(np.prod(np.broadcast_shapes(a, b))) <= MAX_SIZE
    except ValueError:
        return False


def _joinable(a: Any, b: Any, k: int) -> bool:
    axis = k % max(len(a), 1)
    return (
        len(a) == len(b) >= 1
        and all(m == n for i, (m, n) in enumerate(zip(a, b, strict=True)) if i != axis)
        and int(np.prod(a)) + int(np.prod(b)) <= MAX_SIZE
    )


def _same(a: Any, b: Any, k: int) -> bool:
    return a == b and 2 * int(np.prod(a)) <= MAX_SIZE and len(a) <= 3


def _multiply(a: Any, b: Any, k: int) -> bool:
    return len(a) == 2 and len(b) in (1, 2) and a[1] == b[0] and a[0] * b[-1] <= MAX_SIZE


def _is_matrix(a: Any, k: int) -> bool:
    return len(a) == 2 and 0 not in a and a[1] <= 100


def _axis(x: Any, k: int) -> int:
    return k % len(x.shape)


def _axes(x: Any, k: int) -> tuple[int, ...]:
    """Some of the axes, at least one."""
    n = len(x.shape)
    chosen = 1 + k % (2**n - 1)
    return tuple(i for i in range(n) if chosen >> i & 1)


def _along(x: Any, axis: int, entry: Any) -> Any:
    return x[(slice(None),) * axis + (entry,)]


_SLICES = (
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(None, None, -1),
    slice(-2, None, -3),
    slice(2, 7),
)


def _difference(x: Any, k: int) -> Any:
    axis = _axis(x, k)
    return _along(x, axis, slice(1, None)) - _along(x, axis, slice(None, -1))


def _assigned(x: Any, k: int) -> Any:
    axis = _axis(x, k)
    y = x.copy()
    where = (slice(None),) * axis
    y[(*where, slice(None, None, 2))] = y[(*where, slice(None, None, 2))] * 2
    y[(*where, -1)] = y[(*where, 0)]
    return y


def _transposed(x: Any, k: int) -> Any:
    n = len(x.shape)
    return np.transpose(x, np.roll(np.arange(n), k % n).tolist())


def _split_axis(x: Any, k: int) -> Any:
    """A factor of an extent as an axis of its own."""
    axis = _axis(x, k)
    n = x.shape[axis]
    factor = next((d for d in (2, 3, 5, 7) if n % d == 0), 1)
    return np.reshape(x, (*x.shape[:axis], n // factor, factor, *x.shape[axis + 1 :]))


def _padded(x: Any, k: int) -> Any:
    widths = [(0, 0)] * len(x.shape)
    widths[_axis(x, k)] = (k % 3, 2)
    return np.pad(x, widths)


def _softmax(x: Any, k: int) -> Any:
    axis = _axis(x, k)
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / np.sum(e, axis=axis, keepdims=True)


def _variance(x: Any, k: int) -> Any:
    axes = _axes(x, k)
    return np.mean((x - np.mean(x, axis=axes, keepdims=True)) ** 2, axis=axes)


def _moderate(x: Any) -> Any:
    """Smaller numbers, of the same dtype."""
    return x / (1 + np.abs(x))


def _scanned(x: Any, k: int) -> Any:
    def step(carry: Any, entry: Any) -> Any:
        total, last = carry
        total = _moderate(total + entry * last)
        return (total, entry), total - entry

    (total, _), ys = lax.scan(step, (x[0], x[-1]), x, reverse=bool(k % 2))
    return ys + total


def _looped(x: Any, k: int) -> Any:
    return lax.while_loop(
        lambda state: (state[0] < 1 + k % 4) & (np.sum(np.abs(state[1])) < 1e6),
        lambda state: (state[0] + 1, np.sin(state[1]) + state[1][..., ::-1]),
        (0, x),
    )[1]


def _counted(x: Any, k: int) -> Any:
    return lax.fori_loop(0, k % 5, lambda i, y: _moderate(y * (i + 1) + x), x)


def _chosen(x: Any, k: int) -> Any:
    return lax.cond(
        np.sum(np.abs(x)) > x.size // 2,
        lambda y: y * np.sum(y, axis=-1, keepdims=True) + 1,
        lambda y: np.tanh(y[..., ::-1]),
        x,
    )


def _switched(x: Any, k: int) -> Any:
    branches = [lambda y: y, lambda y: -y + 0.5, lambda y: np.cumsum(y, axis=0) / 2]
    return lax.switch(np.asarray(k % 3), branches, x)


def _batched(x: Any, k: int) -> Any:
    rows = ft.vmap(lambda row: row * np.sum(row) + np.max(np.abs(row)))
    return rows(x)


def _batched_choice(x: Any, k: int) -> Any:
    return ft.vmap(lambda row: lax.cond(np.sum(row) > 0, lambda y: 2 * y, lambda y: y - 1, row))(x)


def _float(name: str, run: Callable[..., Any]) -> Operation:
    return Operation(name, 1, FLOATS, _always, lambda x, k: run(x))


def _cast(name: str, dtype: str, sources: tuple[str, ...], bound: float = 100) -> Operation:
    def run(x: Any, k: int) -> Any:
        if np.dtype(x.dtype).kind == "f" and np.dtype(dtype).kind in "iu":
            x = np.clip(np.where(np.isnan(x), 0, 7 * x), 0 if dtype == "u1" else -bound, bound)
        return x.astype(dtype)

    return Operation(name, 1, sources, _always, run)


OPERATIONS: tuple[Operation, ...] = (
    _float("sin", np.sin),
    _float("tanh", np.tanh),
    _float("gauss", lambda x: np.exp(-(x**2))),
    _float("log1p_square", lambda x: np.log1p(x * x)),
    _float("arctan", np.arctan),
    Operation("root", 1, (*FLOATS, "f2"), _always, lambda x, k: np.sqrt(1 + x * x)),
    Operation("power", 1, FLOATS, _always, lambda x, k: np.abs(x) ** (0.5, 1.7, 2, -1)[k % 4]),
    Operation("halve", 1, INEXACT, _always, lambda x, k: 0.5 * x - 1),
    Operation("reciprocal", 1, INEXACT, _always, lambda x, k: 1 / (x * x + 2)),
    Operation("abs", 1, NUMBERS, _always, lambda x, k: np.abs(x)),
    Operation("square", 1, NUMBERS, _always, lambda x, k: x * x),
    Operation("conjugate", 1, ("c16",), _always, lambda x, k: np.conj(x) * 1j),
    Operation("real", 1, ("c16",), _always, lambda x, k: np.real(x) - np.imag(x)),
    Operation("complex_exp", 1, ("c16",), _always, lambda x, k: np.exp(_moderate(x))),
    Operation("complex", 1, ("f8",), _always, lambda x, k: x + 1j * x[..., ::-1] if x.shape else x + 1j),
    Operation("relu", 1, ("f8", "f4", "f2", "i8", "i4"), _always, lambda x, k: np.where(x > 0, x, x // 3)),
    Operation("clip", 1, ("f8", "f4", "i8"), _always, lambda x, k: np.clip(x, -1, 2)),
    Operation("floor_divide", 1, ("f8", "f4", "i8", "i4", "u1"), _always, lambda x, k: x // 3 + x % 5),
    Operation("bits", 1, ("i8", "i4", "u1"), _always, lambda x, k: (x ^ 5) & (x << 1) | (x >> 2)),
    Operation("not", 1, ("b1",), _always, lambda x, k: ~x),
    Operation("positive", 1, ("f8", "f4", "f2", "i8", "i4"), _always, lambda x, k: x > 0),
    _cast("to_f8", "f8", ("f4", "f2", "i8", "i4", "u1", "b1")),
    _cast("to_f4", "f4", ("f8", "f2", "i4", "b1")),
    _cast("to_f2", "f2", ("f8", "f4", "i4")),
    _cast("to_i8", "i8", ("f8", "f4", "i4", "u1", "b1")),
    _cast("to_i4", "i4", ("f8", "f4", "i8", "b1")),
    _cast("to_u1", "u1", ("f8", "i8", "b1")),
    _cast("to_c16", "c16", ("f8", "i8")),
    Operation("sum", 1, ALL, _has_axis, lambda x, k: np.sum(x, axis=_axes(x, k))),
    Operation("sum_kept", 1, NUMBERS, _has_axis, lambda x, k: x - np.sum(x, axis=_axes(x, k), keepdims=True)),
    Operation("prod", 1, NUMBERS, _has_axis, lambda x, k: np.prod(_moderate(x) if x.dtype.kind in "fc" else x, axis=_axes(x, k))),
    Operation("mean", 1, INEXACT, _has_elements, lambda x, k: np.mean(x, axis=_axes(x, k))),
    Operation("max", 1, ALL, _has_elements, lambda x, k: np.max(x, axis=_axes(x, k))),
    Operation("min", 1, ALL, _has_elements, lambda x, k: np.min(x, axis=_axes(x, k), keepdims=True)),
    Operation("any", 1, ALL, _has_axis, lambda x, k: np.any(x, axis=_axes(x, k))),
    Operation("all", 1, ALL, _has_axis, lambda x, k: np.all(x, axis=_axes(x, k), keepdims=True)),
    Operation("argmax", 1, ("f8", "f4", "i8"), _has_elements, lambda x, k: np.argmax(x, axis=_axis(x, k))),
    Operation("variance", 1, FLOATS, _has_elements, _variance),
    Operation("softmax", 1, FLOATS, _has_elements, _softmax),
    Operation("cumsum", 1, NUMBERS, _has_axis, lambda x, k: np.cumsum(x, axis=_axis(x, k))),
    Operation("sort", 1, ("f8", "f4", "i8"), _has_axis, lambda x, k: np.sort(x, axis=_axis(x, k))),
    Operation("slice", 1, ALL, _has_axis, lambda x, k: _along(x, _axis(x, k), _SLICES[k % len(_SLICES)])),
    Operation("reverse", 1, ALL, _has_axis, lambda x, k: np.flip(x, axis=_axes(x, k))),
    Operation("difference", 1, NUMBERS, _has_elements, _difference),
    Operation("assign", 1, NUMBERS, _has_elements, _assigned),
    Operation("roll", 1, ALL, _has_axis, lambda x, k: np.roll(x, k % 5 - 2, axis=_axis(x, k))),
    Operation("transpose", 1, ALL, _has_axis, _transposed),
    Operation("flatten", 1, ALL, _has_axis, lambda x, k: x.reshape(-1)),
    Operation("split_axis", 1, ALL, lambda shape, k: 1 <= len(shape) <= 3, _split_axis),
    Operation("new_axis", 1, ALL, lambda shape, k: len(shape) <= 3, lambda x, k: np.expand_dims(x, k % (len(x.shape) + 1))),
    Operation("squeeze", 1, ALL, lambda shape, k: 1 in shape, lambda x, k: np.squeeze(x)),
    Operation("broadcast", 1, ALL, _can_grow, lambda x, k: np.broadcast_to(x, (3, *x.shape)) if k % 2 else np.repeat(x[..., None], 3, axis=-1)),
    Operation("pad", 1, ALL, lambda shape, k: len(shape) >= 1 and 2 * int(np.prod(shape)) <= MAX_SIZE, _padded),
    Operation("take", 1, ALL, _has_elements, lambda x, k: np.take(x, np.array([0, -1, 0]), axis=_axis(x, k))),
    Operation("diagonal", 1, NUMBERS, _is_matrix, lambda x, k: np.diagonal(x)),
    Operation("triangle", 1, NUMBERS, _is_matrix, lambda x, k: np.tril(x)),
    Operation("add", 2, NUMBERS, _broadcast, lambda a, b, k: a + b),
    Operation("subtract", 2, NUMBERS, _broadcast, lambda a, b, k: a - b),
    Operation("multiply", 2, NUMBERS, _broadcast, lambda a, b, k: a * b),
    Operation("divide", 2, FLOATS, _broadcast, lambda a, b, k: a / (1 + b * b)),
    Operation("maximum", 2, NUMBERS, _broadcast, lambda a, b, k: np.maximum(a, b)),
    Operation("select", 2, ALL, _broadcast, lambda a, b, k: np.where(a == b, a, b)),
    Operation("less", 2, NUMBERS, _broadcast, lambda a, b, k: a < b),
    Operation("concatenate", 2, ALL, _joinable, lambda a, b, k: np.concatenate([a, b], axis=_axis(a, k))),
    Operation("stack", 2, ALL, _same, lambda a, b, k: np.stack([a, b], axis=k % (len(a.shape) + 1))),
    Operation("matmul", 2, ("f8", "f4", "c16"), _multiply, lambda a, b, k: _moderate(a) @ b),
    Operation("gram", 1, ("f8", "f4", "c16", "i8"), _is_matrix, lambda x, k: x.T @ x),
    Operation("einsum", 1, ("f8", "f4"), lambda shape, k: len(shape) == 3, lambda x, k: np.einsum("ijk,ilk->jl", x, x)),
    Operation("scan", 1, ("f8", "f4", "c16"), _is_short, _scanned),
    Operation("while", 1, ("f8", "f4"), _has_elements, _looped),
    Operation("fori", 1, ("f8", "f4", "c16"), _always, _counted),
    Operation("cond", 1, FLOATS, _has_elements, _chosen),
    Operation("switch", 1, ("f8",), _has_elements, _switched),
    Operation("vmap", 1, ("f8", "f4"), lambda shape, k: len(shape) >= 2 and 0 not in shape, _batched),
    Operation("vmap_cond", 1, ("f8",), lambda shape, k: len(shape) >= 2 and 0 not in shape, _batched_choice),
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Program:
    """A random function of arrays.

    Attributes:
      shapes: of the arguments.
      dtypes: of the arguments.
      steps: number of the operation, numbers of its operands, a number for it.
      wanted: which of the values are results, as bits; the last one always is.
    """

    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[str, ...]
    steps: tuple[tuple[int, int, int, int], ...]
    wanted: int

    @cached_property
    def resolved(self) -> list[tuple[Operation, tuple[int, ...], int]]:
        """The operations and operands that the numbers stand for, by shapes and dtypes alone."""
        found: list[tuple[Operation, tuple[int, ...], int]] = []
        values = [np.ones(s, d) for s, d in zip(self.shapes, self.dtypes, strict=True)]
        for number, first, second, k in self.steps:
            for offset in range(len(OPERATIONS)):
                operation = OPERATIONS[(number + offset) % len(OPERATIONS)]
                chosen = tuple(
                    (len(values) - 1 - choice) % len(values)
                    for choice in (first, second)[: operation.arity]
                )
                shapes = [values[i].shape for i in chosen]
                if all(
                    values[i].dtype.str[1:] in operation.dtypes for i in chosen
                ) and operation.fits(*shapes, k):
                    found.append((operation, chosen, k))
                    aval = ft.eval_shape(
                        lambda *xs, run=operation.run, k=k: run(*xs, k),
                        *(values[i] for i in chosen),
                    )
                    values.append(np.ones(aval.shape, aval.dtype))
                    break
        return found

    def __call__(self, *args: Any) -> list[Any]:
        """Some of the values that are computed."""
        values = list(args)
        for operation, operands, k in self.resolved:
            values.append(operation.run(*(values[i] for i in operands), k))
        made = values[len(args) :]
        return [v for i, v in enumerate(made) if self.wanted >> i & 1 or i == len(made) - 1]

    def loss(self, *args: Any) -> Any:
        """A number that depends on all results that have derivatives."""
        total = 0.0
        for value in self(*args):
            kind = np.dtype(value.dtype).kind
            if kind == "f" and value.size:
                total = total + np.mean(np.tanh(value))
            elif kind == "c" and value.size:
                total = total + np.mean(np.abs(value) ** 2 / (1 + np.abs(value) ** 2))
        return total

    def __repr__(self) -> str:
        """The program as an assignment per line."""
        given = ", ".join(
            f"v{i}: {d}{list(s)}"
            for i, (s, d) in enumerate(zip(self.shapes, self.dtypes, strict=True))
        )
        lines = [f"f({given}) -> {self.wanted:b}"]
        for i, (operation, operands, k) in enumerate(self.resolved, len(self.shapes)):
            names = ", ".join(f"v{j}" for j in operands)
            lines.append(f"  v{i} = {operation.name}({names}; {k})")
        return "\n".join(lines)

    def point(self, seed: int, lead: tuple[int, ...] = ()) -> tuple[np.ndarray, ...]:
        """Arguments."""
        rng = np.random.default_rng(seed)
        return tuple(
            _random(rng, (*lead, *shape), np.dtype(dtype))
            for shape, dtype in zip(self.shapes, self.dtypes, strict=True)
        )


def _random(rng: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    if dtype.kind == "b":
        return np.asarray(rng.integers(0, 2, shape), bool)
    if dtype.kind in "iu":
        return np.asarray(rng.integers(0 if dtype.kind == "u" else -9, 10, shape), dtype)
    values = rng.uniform(-1.5, 1.5, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(-1.5, 1.5, shape)
    values = np.where(rng.uniform(size=shape) < 0.05, np.copysign(0.0, values.real), values)
    return np.asarray(values, dtype)


EXTENTS = (1, 2, 3, 5, 8, 9, 17, 31, 32, 33, 40, 64, 65, 70)
SHAPES = st.one_of(
    st.sampled_from([(), (1,), (3,), (33,), (70,), (600,), (1100,), (40, 3), (3, 40), (2, 0)]),
    st.tuples(st.sampled_from(EXTENTS), st.sampled_from(EXTENTS)),
    st.tuples(*[st.sampled_from((1, 2, 3, 5, 9, 17, 33))] * 3).filter(
        lambda shape: int(np.prod(shape)) <= MAX_SIZE
    ),
)
STEPS = st.lists(
    st.tuples(
        st.integers(0, len(OPERATIONS) - 1),
        st.integers(0, 4),
        st.integers(0, 4),
        st.integers(0, 6),
    ),
    min_size=2,
    max_size=9,
)


def programs(dtypes: tuple[str, ...]) -> st.SearchStrategy[Program]:
    """Programs of two arguments of some dtypes."""
    dtype = st.sampled_from(dtypes)
    return st.builds(
        lambda first, second, kinds, steps, wanted: Program(
            (first, second), kinds, tuple(steps), wanted
        ),
        SHAPES,
        SHAPES,
        st.tuples(dtype, dtype),
        STEPS,
        st.integers(0, 511),
    )
