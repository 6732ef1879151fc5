"""Integrators of SciPy in plain code, with SciPy's signatures: ``odeint`` and ``solve_ivp``.

functrans's ``odeint`` takes JAX's arguments: parameters one by one, states of any structure. Code
that was written for SciPy's gives a tuple as the fourth argument, and gets a column for a number.

Here: both. Not here: the integrators (``functrans.scipy.integrate``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.core.dispatch import Tracer
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import UnsupportedOperationError
from functrans.passes.layouts import plain_value
from functrans.plain.memory import given, settled
from functrans.scipy.integrate import odes


def odeint(
    func: Callable[..., Any],
    y0: object,
    t: object,
    args: object = (),
    Dfun: object = None,
    col_deriv: object = 0,
    full_output: object = 0,
    ml: object = None,
    mu: object = None,
    rtol: object = None,
    atol: object = None,
    tcrit: object = None,
    h0: object = 0.0,
    hmax: object = 0.0,
    hmin: object = 0.0,
    ixpr: object = 0,
    mxstep: object = 0,
    mxhnil: object = 0,
    mxordn: object = 12,
    mxords: object = 5,
    printmessg: object = 0,
    tfirst: bool = False,
) -> Array:
    """As SciPy's; what only steers its method (Jacobian, orders, shortest step) has no effect."""
    if full_output:
        raise UnsupportedOperationError(
            f"scipy.integrate.odeint with full_output=True{here()} is not supported in code that "
            "is traced; leave it out, or use solve_ivp, whose result says how it went"
        )
    options: dict[str, Any] = {"rtol": rtol, "atol": atol}
    options.update(h0=h0 or None, hmax=hmax or None, mxstep=mxstep or None)
    options = {name: settled(value) for name, value in options.items() if value is not None}
    if not isinstance(args, tuple):
        raise TypeError(f"odeint: args must be a tuple, got {args!r}{here()}; write args=(a,)")
    start = fnp.atleast_1d(fnp.asarray(settled(y0)))
    slope = _with_arguments(func, args)
    return given(odes.odeint(slope, start, settled(t), tfirst=bool(tfirst), **options))


def _with_arguments(function: Any, args: tuple[Any, ...]) -> Callable[..., Any]:
    """A function with its last arguments, which may be any objects."""
    if not args:
        return function

    @functools.wraps(function)
    def call(*own: Any) -> Any:
        return function(*own, *args)

    return call


_STIFF = frozenset({"BDF", "LSODA", "Radau"})
_OF_STIFF = frozenset({"jac", "jac_sparsity", "lband", "uband", "min_step"})
"""Options of these methods that steer how the Jacobian is found, which is exact here."""


def solve_ivp(
    fun: Callable[..., Any],
    t_span: object,
    y0: Operand,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    **options: object,
) -> Any:
    """As SciPy's, with ``"Rodas4"`` for its stiff methods.

    Under ``jit`` and ``vmap`` without ``t_eval`` only the ends of the steps are known.
    """
    if isinstance(method, type):
        method = method.__name__
    if method in _STIFF:
        method = "Rodas4"
        options = {name: value for name, value in options.items() if name not in _OF_STIFF}
    if args is not None:
        args = args if isinstance(args, (tuple, list)) else (args,)
        fun = _with_arguments(fun, tuple(args))
        if callable(events):
            events = _with_arguments(events, tuple(args))
        elif events is not None:
            events = [_with_arguments(event, tuple(args)) for event in events]
    result = odes.solve_ivp(
        fun, settled(t_span), settled(y0), method, settled(t_eval), dense_output, events,
        vectorized, **settled(options),
    )  # fmt: skip
    t, y = given(result.t), given(result.y)
    if t_eval is None and isinstance(result.y, Tracer) and plain_value(result.y) is None:
        t, y = Ends(result.t, 0), Ends(result.y, 1)
    return result._replace(t=t, y=y)


class Ends:
    """An array over the steps of a solver which are not known: its first and last elements.

    Args:
      values: array of the two.
      axis: over the steps.
    """

    def __init__(self, values: Any, axis: int) -> None:
        self._values, self._axis = values, axis

    def __getitem__(self, index: Any) -> Any:
        """Elements at the first or the last step, or rows of both."""
        key = list(index) if type(index) is tuple else [index]
        if any(x is Ellipsis for x in key):
            place = next(i for i, x in enumerate(key) if x is Ellipsis)
            key[place : place + 1] = [slice(None)] * (self._values.ndim - len(key) + 1)
        key += [slice(None)] * (self._values.ndim - len(key))
        if not all(isinstance(x, (int, np.integer, slice)) for x in key):
            raise self._refusal("elements by arrays")
        step = key[self._axis]
        if step == slice(None):
            lost = sum(not isinstance(x, slice) for x in key[: self._axis])
            return Ends(self._values[tuple(key)], self._axis - lost)
        if step not in (0, -1, slice(-1, None)):
            raise self._refusal(f"the steps {step}")
        return given(self._values[tuple(key)])

    def __iter__(self) -> Any:
        """Rows, if the steps are not along the first axis."""
        return (self[i] for i in range(len(self)))

    def __len__(self) -> int:
        if not self._axis:
            raise self._refusal("their number")
        return int(self._values.shape[0])

    @property
    def T(self) -> Ends:  # noqa: N802  # NumPy's name
        """The transpose."""
        return Ends(self._values.T, self._values.ndim - 1 - self._axis)

    def __getattr__(self, name: str) -> Any:
        """Nothing else."""
        if name.startswith("__"):
            raise AttributeError(name)
        raise self._refusal(f".{name} of them")

    def __array__(self, *_: object, **__: object) -> Any:
        """Refused."""
        raise self._refusal("an array of them")

    def __array_ufunc__(self, *_: object, **__: object) -> Any:
        """Refused."""
        raise self._refusal("arithmetic with all of them")

    def __array_function__(self, func: Any, *_: object) -> Any:
        """Refused."""
        raise self._refusal(f"numpy.{func.__name__} of all of them")

    def _refusal(self, what: str) -> UnsupportedOperationError:
        return UnsupportedOperationError(
            f"solve_ivp without t_eval under jit or vmap: {what} was asked for{here()}, but how "
            "many steps the solver takes is not known. The first and the last one are: y[:, 0], "
            "y[:, -1]. Give t_eval=times for others"
        )


def _operator(name: str) -> Callable[..., Any]:
    def method(self: Ends, *_: object) -> Any:
        raise self._refusal(name)

    return method


for _name in (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "radd", "rsub", "rmul",
    "rtruediv", "rfloordiv", "rmod", "rpow", "rmatmul", "neg", "pos", "abs", "lt", "le", "gt",
    "ge", "eq", "ne", "bool", "float", "contains",
):  # fmt: skip
    setattr(Ends, f"__{_name}__", _operator(f"__{_name}__"))
Ends.__hash__ = object.__hash__  # type: ignore[method-assign]  # those that define __eq__ have none


NAMES: dict[str, Callable[[], dict[str, Any]]] = {
    "scipy.integrate": lambda: {"odeint": odeint, "solve_ivp": solve_ivp}
}
