"""Linear maps that plain Python computes: derivatives of external functions.

Here: ``Map`` and its kinds (a caller's rule, its transpose by basis vectors, finite differences),
and the operation ``external_linear`` that applies one. Not here: which of them a function has
(``solvers.external``).

Layer: ``solvers``. Reference: step sizes as in Press et al., Numerical Recipes, 3rd ed. (2007),
sec. 5.7; the complex step as in Squire & Trapp, SIAM Review 40 (1998) 110.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.control.callbacks import run_lanes
from functrans.control.calls import to_front
from functrans.control.custom_calls import guarded
from functrans.core.avals import Aval, ShapedArray, Zero
from functrans.core.dispatch import aval_of, bind
from functrans.core.primitive import Primitive, is_linear
from functrans.core.source import here
from functrans.errors import NonDifferentiableError
from functrans.passes.cotangents import zeros
from functrans.records import dataclass, replace

FD_METHODS = ("central", "forward", "complex")
_FD_POWER = {"central": 1 / 3, "forward": 1 / 2}
_COMPLEX_STEP = 1e-30


class Map:
    """A linear map that plain Python computes: ``(residuals, dots) -> results`` (abstract).

    Attributes:
      label: of the function whose derivative it is.
      n: number of residuals.
    """

    __slots__ = ("label", "n")

    def __init__(self, label: str, n: int) -> None:
        self.label = label
        self.n = n

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Apply it to ``(*residuals, *dots)``."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """The name of the function."""
        return self.label


class UserMap(Map):
    """A rule given by the caller."""

    __slots__ = ("call",)

    def __init__(
        self, label: str, n: int, call: Callable[[list[Any], list[Any]], list[Any]]
    ) -> None:
        super().__init__(label, n)
        self.call = call

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Call the rule on arrays that it cannot write to."""
        arrays = [guarded(np.asarray(operand)) for operand in operands]
        return self.call(arrays[: self.n], arrays[self.n :])


class BasisMap(Map):
    """The transpose of a map, by applying that to every basis vector."""

    __slots__ = ("avals", "inner", "inner_avals")

    def __init__(
        self, inner: Map, inner_avals: tuple[ShapedArray, ...], avals: tuple[ShapedArray, ...]
    ) -> None:
        super().__init__(inner.label, inner.n)
        self.inner = inner
        self.inner_avals = inner_avals
        """Types of what the inner map takes: what this one gives."""
        self.avals = avals

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """One product for each element of a result."""
        residuals, cts = list(operands[: self.n]), operands[self.n :]
        results = [np.zeros(aval.shape, aval.dtype) for aval in self.inner_avals]
        for k, result in enumerate(results):
            for index in np.ndindex(result.shape):
                basis = [np.zeros(aval.shape, aval.dtype) for aval in self.inner_avals]
                basis[k][index] = 1
                column = self.inner.run([*residuals, *basis])
                result[index] = sum(
                    np.sum(np.asarray(c) * ct) for c, ct in zip(column, cts, strict=True)
                )
        return results


class NoMap(Map):
    """A mode that was not given and is not derived."""

    __slots__ = ("missing",)

    def __init__(self, label: str, n: int, missing: str) -> None:
        super().__init__(label, n)
        self.missing = missing

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Refuse."""
        raise NonDifferentiableError(self.missing)


class _LanesMap(Map):
    """A map applied to each element of a batch, whose axis is in front."""

    __slots__ = ("avals", "flags", "inner", "size")

    def __init__(
        self, inner: Map, size: int, flags: tuple[bool, ...], avals: tuple[Any, ...]
    ) -> None:
        super().__init__(inner.label, inner.n)
        self.inner = inner
        self.size = size
        self.flags = flags
        self.avals = avals

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Apply it once for each element, in order."""
        return run_lanes(self, operands)


def _linear_impl(*operands: object, forward: Map, **_: object) -> tuple[Any, ...]:
    return tuple(forward.run(operands))


def _linear_aval(*avals: Aval, out_avals: tuple[Aval, ...], **_: UserMap) -> tuple[Aval, ...]:
    return out_avals


def _linear_jvp(
    primals: Sequence[Any], tangents: Sequence[Any], outs: object, *, forward: Map, **params: Any
) -> tuple[Any, ...]:
    n = forward.n
    if any(type(t) is not Zero for t in tangents[:n]):
        raise NonDifferentiableError(
            f"{forward.label} has no second derivative{here()}: its rules get plain arrays, so "
            'nothing is known of theirs. Give a rule written in functrans operations (rules="'
            'traced"), or a rule that calls another ft.external with rules of its own'
        )
    dots = [
        zeros(aval_of(x).strong()) if type(t) is Zero else t
        for t, x in zip(tangents[n:], primals[n:], strict=True)
    ]
    return bind(external_linear_p, *primals[:n], *dots, forward=forward, **params)


def _linear_transpose(
    cts: Sequence[Any],
    operands: Sequence[Any],
    *,
    forward: Map,
    backward: Map,
    out_avals: tuple[Any, ...],
) -> tuple[Any, ...]:
    n = forward.n
    if any(map(is_linear, operands[:n])):
        raise NonDifferentiableError(f"{forward.label} cannot be transposed in its primals")
    if isinstance(backward, NoMap):
        raise NonDifferentiableError(backward.missing + here())
    given = [
        zeros(aval) if type(ct) is Zero else ct for ct, aval in zip(cts, out_avals, strict=True)
    ]
    pulled = bind(
        external_linear_p,
        *operands[:n],
        *given,
        forward=backward,
        backward=forward,
        out_avals=tuple(_operand_aval(x) for x in operands[n:]),
    )
    return (
        *(None for _ in range(n)),
        *(ct if is_linear(x) else None for ct, x in zip(pulled, operands[n:], strict=True)),
    )


def _operand_aval(operand: Any) -> Any:
    """The aval of a value or of a linear operand."""
    return operand.aval.strong() if is_linear(operand) else aval_of(operand).strong()


def _linear_batch(
    size: int,
    operands: Sequence[Any],
    dims: Sequence[int | None],
    *,
    forward: Map,
    backward: Map,
    out_avals: tuple[Any, ...],
) -> tuple[Any, ...]:
    n = forward.n
    front = to_front(size, operands, dims)
    flags = [dim is not None for dim in dims]
    inner: tuple[Any, ...] = tuple(
        aval if not flag else replace(aval, shape=aval.shape[1:])
        for aval, flag in zip([_operand_aval(x) for x in front], flags, strict=True)
    )
    for i in range(n, len(front)):  # all tangents have the axis, so that the transpose has it too
        if not flags[i]:
            front[i] = front[i] + zeros(replace(inner[i], shape=(size, *inner[i].shape)))
            flags[i] = True
    lead = tuple(flags[:n])
    wide = tuple(replace(aval, shape=(size, *aval.shape)) for aval in out_avals)
    outs = bind(
        external_linear_p,
        *front,
        forward=_LanesMap(forward, size, tuple(flags), out_avals),
        backward=backward if isinstance(backward, NoMap) else _LanesMap(
            backward, size, (*lead, *(True,) * len(out_avals)), inner[n:]
        ),
        out_avals=wide,
    )  # fmt: skip
    return outs, (0,) * len(outs)


external_linear_p: Primitive = Primitive(
    "external_linear",
    impl=_linear_impl,
    abstract_eval=_linear_aval,
    jvp=_linear_jvp,
    transpose=_linear_transpose,
    batch=_linear_batch,
    reasons=(("lower", "it calls a Python function"),),
)


# finite differences -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Differences:
    """Directional derivatives of a function of flat arrays by finite differences.

    Attributes:
      fun: ``arrays -> arrays``.
      method: ``central``, ``forward`` or ``complex``.
      step: relative step, or ``None`` for the one that balances truncation and rounding.
      is_real: per argument, whether it is differentiated.
    """

    fun: Callable[[list[Any]], list[Any]]
    method: str
    step: float | None
    is_real: tuple[bool, ...]

    def push(self, primals: list[Any], dots: list[Any]) -> list[Any]:
        """The derivative at a point in a direction."""
        spread = iter(dots)
        directions = [next(spread) if real else None for real in self.is_real]
        size = max((float(np.max(np.abs(t), initial=0.0)) for t in dots), default=0.0)
        if size == 0.0 or not np.isfinite(size):
            return [
                np.full_like(out, 0.0 if size == 0.0 else np.nan) for out in self.fun(list(primals))
            ]
        if self.method == "complex":
            step = _COMPLEX_STEP / size
            moved = self.fun(_moved(primals, directions, 1j * step))
            return [np.imag(out) / step for out in moved]
        eps = max(float(np.finfo(t.dtype).eps) for t in directions if t is not None)
        moving = [
            float(np.max(np.abs(x[t != 0]), initial=1.0))
            for x, t in zip(primals, directions, strict=True)
            if t is not None
        ]
        relative = eps ** _FD_POWER[self.method] if self.step is None else self.step
        step = relative * max(moving) / size
        ahead = self.fun(_moved(primals, directions, step))
        if self.method == "forward":
            behind, width = self.fun(list(primals)), step
        else:
            behind, width = self.fun(_moved(primals, directions, -step)), 2 * step
        return [
            ((a - b) / width).astype(a.dtype, copy=False)
            for a, b in zip(ahead, behind, strict=True)
        ]


def _moved(primals: Sequence[Any], directions: Sequence[Any], step: complex) -> list[Any]:
    """A point on the line; integers stay."""
    return [
        x if t is None else np.asarray(x + x.dtype.type(step) * t)
        if not isinstance(step, complex) else np.asarray(x + step * t)
        for x, t in zip(primals, directions, strict=True)
    ]  # fmt: skip


PRIMITIVES: tuple[Primitive, ...] = (external_linear_p,)
