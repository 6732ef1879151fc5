"""Checks of derivatives against finite differences: ``check_grads``.

Here: central differences along one random direction, compared with forward mode entry by entry
and with reverse mode through an inner product, to any order; the one table of steps and tolerances
by dtype, which functrans' own tests use too. Not here: transforms.

Near a kink (``abs`` at 0, a tie of ``max``) a difference quotient is not the derivative: check at
a point farther away from it than the step.

Layer: ``testing`` (uses the transforms; nothing imports it).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import pytrees as tree
from functrans.core.arguments import name_of
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.boundary import guard as _guard
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, dtype_of, shape_of
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError
from functrans.namespaces import listing as _listing
from functrans.records import dataclass
from functrans.transforms.forward import jvp
from functrans.transforms.reverse import vjp

TOLERANCES: dict[str, tuple[float, float]] = {
    "float64": (1e-4, 1e-5),
    "complex128": (1e-4, 1e-5),
    "float32": (5e-3, 2e-3),
    "complex64": (5e-3, 2e-3),
    "float16": (6e-2, 3e-2),
    "bfloat16": (1.5e-1, 1e-1),
}
"""Step of the differences, and tolerance (absolute and relative), by dtype."""

_MODES = {"fwd": "forward", "rev": "reverse"}
_SEED = 20240229


def tolerance_of(values: Sequence[Any]) -> tuple[float, float]:
    """Step and tolerance for values of several dtypes: those of the coarsest."""
    pairs = [TOLERANCES.get(dtype_of(value).name, TOLERANCES["float64"]) for value in values]
    return max(pairs, default=TOLERANCES["float64"])


def random_like(rng: np.random.Generator, value: ArrayLike) -> np.ndarray:
    """A standard normal array with shape and dtype of a floating or complex array."""
    shape, dtype = shape_of(value), dtype_of(value)
    array: Any = rng.standard_normal(shape)
    if dtype.kind == "c":
        array = array + 1j * rng.standard_normal(shape)
    return np.asarray(array, dtype)


def inner(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Real part of ``sum(a * b)``: the pairing of cotangents and tangents, without conjugation."""
    return sum(float(np.sum(_wide(a) * _wide(b)).real) for a, b in zip(first, second, strict=True))


def central_difference(
    fun: Callable[..., Sequence[Any]], point: Sequence[Any], direction: Sequence[Any], step: float
) -> list[np.ndarray]:
    """``(f(x + h t) - f(x - h t)) / 2h`` for each result, in double precision.

    Args:
      fun: function of arrays that returns a sequence of arrays.
      point: floating or complex arrays ``x``.
      direction: arrays ``t`` of the same shapes and dtypes.
      step: ``h``.
    """
    outs = []
    for sign in (1, -1):
        moved = [
            np.asarray(x + np.asarray(sign * step * t, dtype_of(x)), dtype_of(x))
            for x, t in zip(point, direction, strict=True)
        ]
        outs.append([_wide(out) for out in fun(*moved)])
    return [(high - low) / (2 * step) for high, low in zip(*outs, strict=True)]


def _wide(value: ArrayLike) -> np.ndarray:
    """An array in double precision."""
    array = np.asarray(value)
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)


@dataclass(frozen=True, slots=True)
class _Check:
    """What all levels of one check share.

    Attributes:
      modes: ``"fwd"``, ``"rev"`` or both.
      step: given by the user, or ``None``.
      atol: likewise.
      rtol: likewise.
      in_names: key path of each differentiated leaf.
      out_names: key path of each differentiable result.
    """

    modes: tuple[str, ...]
    step: float | None
    atol: float | None
    rtol: float | None
    in_names: tuple[str, ...]
    out_names: tuple[str, ...]


@boundary
def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of a function against central finite differences.

    Each order is checked on the derivative of the order before it in every mode, so that order 2
    covers forward over forward, forward over reverse, reverse over forward and reverse over
    reverse. The directions are random, but the same in every run.

    Args:
      f: function of pytrees of arrays, smooth around the point. Integer and boolean leaves of
        arguments and results are held constant and ignored.
      args: tuple of arguments: the point.
      order: highest order of derivative, at least 1.
      modes: ``"fwd"``, ``"rev"`` or both.
      atol: absolute tolerance; by default from ``TOLERANCES`` by dtype.
      rtol: relative tolerance; likewise.
      eps: step of the differences; likewise. Take 1 for functions that are linear, or linear in
        each argument: their differences have no truncation error.

    Raises:
      AssertionError: a derivative is off; the message names mode, order, result and element.
      NonDifferentiableError: no leaf of ``args`` is floating.
      TypeError, ValueError: a wrong argument.

    Example:
      >>> check_grads(lambda x, y: np.sin(x) * y, (0.3, 2.0))
      >>> check_grads(lambda x, y: x @ y, (np.ones((2, 3)), np.ones(3)), eps=1.0)
    """
    f = traced_form("check_grads", f)
    chosen = _checked_modes(modes)
    if not isinstance(args, (tuple, list)):
        raise TypeError(
            f"check_grads: args must be a tuple with one item per argument, got "
            f"{type(args).__name__}; write (x,) for one argument"
        )
    if order < 1:
        raise ValueError(f"check_grads: order must be at least 1, got {order}")
    leaves, treedef = tree.flatten(tuple(args))
    moving = [i for i, leaf in enumerate(leaves) if is_differentiable_dtype(dtype_of(leaf))]
    if not moving:
        raise NonDifferentiableError(
            f"check_grads of {name_of(f)}: no argument is floating; derivatives need floating-point"
            " inputs, for example 2.0 in place of 2"
        )

    def call(values: Sequence[Any]) -> Any:
        filled = list(leaves)
        for i, value in zip(moving, values, strict=True):
            filled[i] = value
        return f(*tree.unflatten(treedef, filled))

    point = [np.array(leaves[i]) for i in moving]
    result = call(point)
    kept = [
        i for i, out in enumerate(tree.leaves(result)) if is_differentiable_dtype(dtype_of(out))
    ]

    def flat(*values: Array) -> tuple[Any, ...]:
        outs = tree.leaves(call(values))
        return tuple(outs[i] for i in kept)

    in_paths = tree.key_paths(tuple(args), "args")
    out_paths = tree.key_paths(result, "result")
    check = _Check(
        chosen,
        eps,
        atol,
        rtol,
        tuple(in_paths[i] for i in moving),
        tuple(out_paths[i] for i in kept),
    )
    _check_level(flat, point, order, check, (), check.out_names)


def _checked_modes(modes: Sequence[str]) -> tuple[str, ...]:
    """The modes as a tuple."""
    chosen = (modes,) if isinstance(modes, str) else tuple(modes)
    if not chosen or not set(chosen) <= set(_MODES):
        raise ValueError(f"check_grads: modes must be of 'fwd' and 'rev', got {modes!r}")
    return chosen


def _check_level(
    fun: Callable[..., tuple[Any, ...]],
    point: Sequence[np.ndarray],
    order: int,
    check: _Check,
    trail: tuple[str, ...],
    names: tuple[str, ...],
) -> None:
    """Check the derivative of one function, then those of its derivatives.

    Args:
      fun: flat function whose results are all differentiable.
      point: its arguments.
      order: how many orders to check.
      check: options.
      trail: modes of the derivatives that ``fun`` already is, the outermost first.
      names: key path of each result.
    """
    outs = fun(*point)
    if not outs:
        return
    rng = np.random.default_rng(_SEED + len(trail))
    direction = [random_like(rng, x) for x in point]
    cts = tuple(random_like(rng, out) for out in outs)
    default_step, default_tolerance = tolerance_of([*point, *outs])
    step = default_step if check.step is None else check.step
    atol = default_tolerance if check.atol is None else check.atol
    rtol = default_tolerance if check.rtol is None else check.rtol
    expected = central_difference(fun, point, direction, step)
    for mode in check.modes:
        who = _headline(mode, (mode, *trail))
        if mode == "fwd":
            values, tangents = jvp(fun, tuple(point), tuple(direction))
            _compare(f"{who}: the value", names, values, outs, atol, rtol, None)
            _compare(who, names, tangents, expected, atol, rtol, step)
        else:
            values, pullback = vjp(fun, *point)
            _compare(f"{who}: the value", names, values, outs, atol, rtol, None)
            pulled = pullback(cts)
            _check_types(who, check.in_names, pulled, point)
            _compare_inner(who, pulled, direction, cts, expected, atol, rtol, step)
        if order > 1:
            derivative = _derivative(fun, mode, direction, cts)
            inner_names = names if mode == "fwd" else check.in_names
            _check_level(derivative, point, order - 1, check, (mode, *trail), inner_names)


def _derivative(
    fun: Callable[..., tuple[Any, ...]], mode: str, direction: Sequence[Any], cts: tuple[Any, ...]
) -> Callable[..., tuple[Any, ...]]:
    """The derivative along a fixed direction, or pulled back from fixed cotangents."""

    def pushed(*xs: ArrayLike) -> tuple[Any, ...]:
        return jvp(fun, xs, tuple(direction))[1]

    def pulled(*xs: ArrayLike) -> tuple[Any, ...]:
        return vjp(fun, *xs)[1](cts)

    return pushed if mode == "fwd" else pulled


def _headline(mode: str, trail: tuple[str, ...]) -> str:
    """``check_grads: reverse mode at order 2 (rev of fwd)``."""
    nested = f" ({' of '.join(trail)})" if len(trail) > 1 else ""
    return f"check_grads: {_MODES[mode]} mode at order {len(trail)}{nested}"


_REMEDY = (
    "A derivative rule is wrong, or the point lies within the step of a kink: move it away, or "
    "give a smaller eps."
)


def _compare(
    who: str,
    names: Sequence[str],
    found: Sequence[Any],
    expected: Sequence[Any],
    atol: float,
    rtol: float,
    step: float | None,
) -> None:
    """Compare results entry by entry; ``step`` is ``None`` for values."""
    for name, out, want in zip(names, found, expected, strict=True):
        have, wide = _wide(out), _wide(want)
        if have.shape != wide.shape:
            raise AssertionError(f"{who}: {name} has shape {have.shape}, expected {wide.shape}")
        with np.errstate(all="ignore"):
            gap = np.abs(have - wide)
            allowed = atol + rtol * np.abs(wide)
            is_off = ~((gap <= allowed) | (have == wide) | (np.isnan(have) & np.isnan(wide)))
        if not is_off.any():
            continue
        excess = np.where(is_off, np.where(np.isnan(gap), np.inf, gap - allowed), -np.inf)
        worst = np.unravel_index(int(np.argmax(excess)), excess.shape)
        by = "evaluation" if step is None else f"central differences (step {step:g})"
        raise AssertionError(
            f"{who} of {name} ({aval_of(out)}) is off in {int(is_off.sum())} of {is_off.size} "
            f"elements; worst at {tuple(map(int, worst))}: {have[worst]:.9g} found, "
            f"{wide[worst]:.9g} by {by}, apart by {gap[worst]:.3g} where {allowed[worst]:.3g} is "
            f"allowed. {_REMEDY}"
        )


def _check_types(
    who: str, names: Sequence[str], pulled: Sequence[Any], point: Sequence[np.ndarray]
) -> None:
    """Cotangents have shape and dtype of what they belong to."""
    for name, ct, x in zip(names, pulled, point, strict=True):
        if aval_of(ct) != aval_of(x):
            raise AssertionError(
                f"{who}: the cotangent of {name} is {aval_of(ct)}, but {name} is {aval_of(x)}"
            )


def _compare_inner(
    who: str,
    pulled: Sequence[Any],
    direction: Sequence[Any],
    cts: Sequence[Any],
    expected: Sequence[np.ndarray],
    atol: float,
    rtol: float,
    step: float,
) -> None:
    """Compare ``<pulled, t>`` with ``<ct, df(t)>``."""
    found, want = inner(pulled, direction), inner(cts, expected)
    scale = sum(float(np.sum(np.abs(_wide(c) * e))) for c, e in zip(cts, expected, strict=True))
    allowed = atol + rtol * scale
    gap = abs(found - want)
    if gap <= allowed or found == want:
        return
    raise AssertionError(
        f"{who}: the inner product of the pulled back cotangents with a random direction is "
        f"{found:.9g}, but {want:.9g} by central differences (step {step:g}), apart by {gap:.3g} "
        f"where {allowed:.3g} is allowed. {_REMEDY}"
    )


__all__ = [
    "central_difference", "check_grads", "inner", "random_like", "tolerance_of",
]  # fmt: skip
__dir__ = _listing(__all__)
_guard(globals(), __all__)
