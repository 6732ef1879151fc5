"""Series of ``numpy.polynomial`` with traced coefficients: ``Polynomial``, ``Chebyshev`` ...

NumPy's classes compute by the functions of their module, which are functrans's for such series.

Here: the classes of traced series, and ``MAKERS``, what calls of NumPy's and of their class methods
do. Not here: the functions (``functrans.numpy.polynomial``).

Layer: ``plain``.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import Chebyshev, Hermite, HermiteE, Laguerre, Legendre, Polynomial

import functrans.numpy as fnp
from functrans.core.source import here
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.plain.memory import as_read, holds_tracer, settled


def _vector(values: Any, what: str) -> Any:
    """Coefficients, domain or window as an array of floats."""
    values = fnp.atleast_1d(fnp.asarray(settled(values)))
    if values.ndim != 1 or not values.shape[0]:
        raise ShapeError(f"{what} of a series has shape {values.shape}{here()}; expected a list")
    return values.astype(np.float64) if values.dtype.kind in "biu" else values


_ANY_SERIES: Any = Polynomial.__base__


class _Series:
    """What series with traced coefficients do in another way; a first base beside NumPy's class."""

    coef: Any
    domain: Any
    window: Any
    symbol: str
    kind: Any
    _val: Any
    _roots: Any

    def __init__(
        self, coef: Any, domain: Any = None, window: Any = None, symbol: str = "x"
    ) -> None:
        self.kind.__init__(self, [1.0], None, None, symbol)
        self.coef = _vector(coef, "the coefficients")
        for name, value in (("domain", domain), ("window", window)):
            if value is not None:
                setattr(self, name, _vector(value, name))
                if getattr(self, name).shape != (2,):
                    raise ValueError(f"{name.capitalize()} has wrong number of elements.{here()}")

    def _get_coefficients(self, other: object) -> Any:
        """The coefficients of another series of the same kind."""
        if isinstance(other, self.kind) and not isinstance(other, _Series):
            other = type(self)(other.coef, other.domain, other.window, other.symbol)
        return self.kind._get_coefficients(self, as_read(other))

    def __call__(self, arg: object) -> Any:
        """The values at some points."""
        if isinstance(arg, _ANY_SERIES):
            raise UnsupportedOperationError(
                f"a series with traced coefficients was called with a series{here()}; it takes "
                "numbers and arrays"
            )
        off, scl = self.mapparms()  # type: ignore[attr-defined]  # of NumPy's class
        return self._val(off + scl * fnp.asarray(settled(arg)), self.coef)

    def __truediv__(self, other: object) -> Any:
        """By a number."""
        return type(self)(self.coef / settled(other), self.domain, self.window, self.symbol)

    def roots(self) -> Any:
        """Where the series is zero."""
        off, scl = self.mapparms()  # type: ignore[attr-defined]  # of NumPy's class
        return (self._roots(self.coef) - off) / scl


def _reflected(name: str) -> Callable[..., Any]:
    """An operator whose left operand may be a series of NumPy's class."""
    plain, own = f"__{name}__", f"__r{name}__"

    def apply(self: Any, other: Any) -> Any:
        if isinstance(other, self.kind):
            other = type(self)(other.coef, other.domain, other.window, other.symbol)
            return getattr(other, plain)(self)
        return getattr(self.kind, own)(self, as_read(other))

    return apply


_FUNCTIONS = ("add", "sub", "mul", "div", "pow", "val", "int", "der", "fit", "roots", "fromroots")
_OPERATORS = ("add", "sub", "mul", "floordiv", "mod", "divmod")


def _traced(kind: type, module: object, prefix: str) -> type:
    """The class of one basis for traced coefficients."""
    names: dict[str, Any] = {"kind": kind, "__doc__": kind.__doc__}
    names.update({f"_{n}": staticmethod(getattr(module, prefix + n)) for n in _FUNCTIONS})
    names.update({f"__r{n}__": _reflected(n) for n in _OPERATORS})
    return type(kind)(kind.__name__, (_Series, kind), names)


def _call(kind: Any, traced: type) -> Callable[..., Any]:
    def call(*args: object, **kwargs: object) -> Any:
        args, kwargs = as_read(args), as_read(kwargs)
        is_traced = holds_tracer(args) or holds_tracer(kwargs)
        return (traced if is_traced else kind)(*args, **kwargs)

    return call


def _member(kind: object, traced: object) -> Callable[[Any], Any]:
    """Class methods, as ``fit``: of traced values, those of the class of traced series."""

    def member(value: object) -> Any:
        if type(value) is types.MethodType and value.__self__ is kind:
            other = getattr(traced, value.__name__)
            return functools.wraps(value)(_call(value, other))
        return value

    return member


_KINDS: tuple[tuple[Any, Any, str], ...] = (
    (Polynomial, fnp.polynomial.polynomial, "poly"),
    (Chebyshev, fnp.polynomial.chebyshev, "cheb"),
    (Legendre, fnp.polynomial.legendre, "leg"),
    (Hermite, fnp.polynomial.hermite, "herm"),
    (HermiteE, fnp.polynomial.hermite_e, "herme"),
    (Laguerre, fnp.polynomial.laguerre, "lag"),
)

MAKERS: dict[type, tuple[Callable[..., Any], Callable[[Any], Any]]] = {}
for _kind, _module, _prefix in _KINDS:
    _own = _traced(_kind, _module, _prefix)
    MAKERS[_kind] = _call(_kind, _own), _member(_kind, _own)
