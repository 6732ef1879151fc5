"""Constructors of special functions: elementwise primitives whose values are SciPy's.

Here: ``special_primitive``, dtypes of special functions, SciPy's routines at first use, and what
partial derivatives share. Not here: the records (``special.functions``, ``special.gamma`` and so
on).

Integers become float64, as in SciPy. Half precision is kept: values are computed in float32 and
rounded once. ``t`` is a tangent or cotangent, ``y`` the result.

Layer: ``primitives.special``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of
from functrans.core.lowering import Expansion, Routine
from functrans.core.primitive import Lowering, Primitive
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, UnsupportedOperationError
from functrans.primitives.family import broadcast_shapes, elementwise_primitive, promoted_dtype
from functrans.primitives.native.ufuncs import elementwise, special_loop
from functrans.primitives.structural import cast

if TYPE_CHECKING:
    from functrans.emitter.routine import Array as Memory
    from functrans.emitter.routine import Routines

SERIES = (("lower", "a series of its own that is summed in NumPy until it has converged"),)

_DIRECT = (np.dtype(np.float64), np.dtype(np.float32))
_ORDINALS = ("first", "second", "third", "fourth")


def is_half(dtype: np.dtype) -> bool:
    """Whether a dtype has 16 bits."""
    return dtype.name in ("float16", "bfloat16")


def floating(dtype: np.dtype) -> np.dtype:
    """The dtype of the result for operands of a common dtype."""
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def common_dtype(*operands: Any) -> np.dtype:
    """The floating dtype in which operands meet, traced ones too."""
    return floating(promoted_dtype(tuple(map(aval_of, operands))))  # type: ignore[arg-type]  # of arrays


@cache
def routine(name: str) -> Callable[..., Any]:
    """A function of ``scipy.special``, which is imported at first use.

    Raises:
      UnsupportedOperationError: this version of SciPy does not have it.
    """
    import scipy
    from scipy import special

    found: Callable[..., Any] | None = getattr(special, name, None)
    if found is None:
        raise UnsupportedOperationError(
            f"scipy.special.{name} is not in SciPy {scipy.__version__}; install a newer one "
            "(pip install -U scipy)"
        )
    return found


def refused_derivative(name: str, position: int, what: str = "") -> Callable[..., Any]:
    """The partial derivative in an operand in which there is no rule.

    Args:
      name: name of the function.
      position: number of the operand.
      what: what the operand is, for the message.
    """

    def partial(*operands: Array | None) -> Any:
        extra = f" ({what})" if what else ""
        raise NonDifferentiableError(
            f"{name} has no derivative in its {_ORDINALS[position]} operand{extra}; hold that "
            "constant (ft.stop_gradient), or give a rule for it (ft.custom_jvp)"
        )

    return partial


def _dtype_rule(
    name: str, parameters: tuple[int, ...], integers: tuple[int, ...], kinds: str
) -> Callable[..., Any]:
    """``abstract_eval`` of a special function."""

    def abstract_eval(*avals: ShapedArray) -> tuple[ShapedArray, ...]:
        shape = broadcast_shapes(name, [aval.shape for aval in avals])
        dtype = promoted_dtype(avals)
        is_taken = ("f" in kinds and dtype.name == "bfloat16") or (
            dtype.kind in kinds and dtype.itemsize <= (16 if dtype.kind == "c" else 8)
        )
        for i, aval in enumerate(avals):
            if i in integers:
                is_taken = is_taken and aval.dtype.kind in "biu"
            elif i in parameters:
                is_taken = is_taken and aval.dtype.kind != "c"
        if not is_taken:
            text = ", ".join(map(str, avals))
            places = " and ".join(_ORDINALS[i] for i in integers)
            hint = f"; the {places} operand must be of integers" if integers else ""
            raise TypeError(f"{name}: not defined for operands {text}{hint}")
        return (ShapedArray(shape, floating(dtype)),)

    return abstract_eval


def _are_real(*avals: Any) -> bool:
    return all(aval.dtype.kind != "c" for aval in avals)


def scipy_lowering(
    function: str,
    abstract_eval: Callable[..., Any],
    inner_dtypes: Callable[[np.dtype, Sequence[np.dtype]], tuple[np.dtype, ...]],
    output: int = 0,
) -> Routine:
    """The native code of a function of SciPy: its own loop, where it is a ufunc.

    Args:
      function: SciPy's name.
      abstract_eval: that of the primitive.
      inner_dtypes: dtypes in which SciPy is given operands, for a dtype of the result.
      output: which result of the function it is.
    """

    def loop_for(dtype: np.dtype, given: Sequence[np.dtype]) -> str:
        return special_loop(function, inner_dtypes(dtype, given))

    def has_loop(*avals: ShapedArray) -> bool:
        return bool(loop_for(abstract_eval(*avals)[0].dtype, [aval.dtype for aval in avals]))

    def write(e: Routines, operands: Sequence[Memory], results: Sequence[Memory]) -> None:
        (out,) = results
        elementwise(e, loop_for(out.dtype, [x.dtype for x in operands]), operands, out, output)

    return Routine(write, has_loop, one_thread=True)


def in_single_or_double(dtype: np.dtype, given: Sequence[np.dtype]) -> tuple[np.dtype, ...]:
    """``inner_dtypes`` of functions of real numbers: that of the result, halves in float32."""
    return (np.dtype(np.float32) if is_half(dtype) else dtype,) * len(given)


def special_primitive(
    name: str,
    partials: tuple[Any, ...],
    saves: tuple[str, ...],
    function: str | Callable[..., Any] = "",
    *,
    names: str = "",
    output: int | None = None,
    parameters: str = "",
    integers: str = "",
    has_complex: bool = False,
    has_real: bool = True,
    is_wide: bool = False,
    expansion: Callable[..., Any] | None = None,
) -> Primitive:
    """An elementwise primitive with SciPy's values.

    Args:
      name: name of the primitive.
      partials: as in ``family``, one per operand.
      saves: as in ``family``.
      function: SciPy's name, by default that of the primitive; or a function of arrays.
      names: letters of the operands; by default ``x``, or ``a``, ``b`` and so on.
      output: which result of the function it is, if that has several.
      parameters: letters of operands that stay real where others are complex, and integers where
        they are integers: orders and degrees, for which SciPy has other code then.
      integers: letters of operands that must be integers.
      has_complex: whether it takes complex numbers; the derivative is the complex one then.
      has_real: whether it takes real numbers.
      is_wide: whether ``function`` computes in float64 whatever the dtype.
      expansion: the function in other operations, if that loses nothing in compiled code; of real
        operands, since products of complex infinities are not SciPy's.
    """
    names = names or ("x" if len(partials) == 1 else "abcd"[: len(partials)])
    integral = tuple(names.index(letter) for letter in integers)
    kept = (*integral, *(names.index(letter) for letter in parameters))
    is_direct = not is_wide and not integral
    kinds = ("biuf" if has_real else "") + ("c" if has_complex else "")
    abstract_eval = _dtype_rule(name, kept, integral, kinds)

    def plain(*operands: Array) -> Any:
        call = routine(function or name) if isinstance(function, str) else function
        if is_direct:
            for x in operands:
                if (
                    type(x) is not np.ndarray
                    or x.dtype not in _DIRECT
                    or x.dtype != operands[0].dtype
                ):
                    break
            else:
                result = call(*operands)
                return result if output is None else result[output]
        # The rule says what is refused, also of plain operands; numbers are weak in it.
        (aval,) = abstract_eval(*map(aval_of, operands))
        arrays = [np.asarray(x) for x in operands]
        dtypes = inner_dtypes(aval.dtype, [x.dtype for x in arrays])
        result = call(*[x.astype(d, copy=False) for x, d in zip(arrays, dtypes, strict=True)])
        return np.asarray(result if output is None else result[output], aval.dtype)[()]

    def inner_dtypes(dtype: np.dtype, given: Sequence[np.dtype]) -> tuple[np.dtype, ...]:
        """Dtypes in which SciPy is given operands, for a dtype of the result."""
        inner = np.dtype(np.float32) if is_half(dtype) else dtype
        if is_wide:
            inner = np.dtype(np.complex128 if inner.kind == "c" else np.float64)
        real = np.zeros(0, inner).real.dtype
        return tuple(
            [
                inner if i not in kept else np.dtype(np.int64) if own.kind in "biu" else real
                for i, own in enumerate(given)
            ]
        )

    def expanded(*operands: Array) -> tuple[Any, ...]:
        dtype = common_dtype(*operands)
        return (expansion(*[cast(x, dtype) for x in operands]),)  # type: ignore[misc]  # it is used with one only

    lower: Lowering | None = None
    if expansion is not None:
        lower = Expansion(expanded, _are_real if has_complex else None)
    elif isinstance(function, str):
        lower = scipy_lowering(function or name, abstract_eval, inner_dtypes, output or 0)
    return elementwise_primitive(
        name,
        plain,
        partials,
        saves,
        names,
        abstract_eval=abstract_eval,
        lower=lower,
        reasons=() if lower is not None else SERIES,
    )
