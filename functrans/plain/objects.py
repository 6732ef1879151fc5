"""Objects of libraries that users have made before, remade from what they were made of.

Here: what a spline, a distribution with parameters or a function compiled by numba becomes in
twins. Not here: objects of users' classes (``plain.twin_classes``), generators of random numbers
(``plain.generators``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from functrans.core.deferred import deferred
from functrans.plain.distributions import Distribution
from functrans.plain.libraries import find_in_scipy
from functrans.plain.library_calls import library
from functrans.plain.numpy_names import Vectorized
from functrans.plain.twins import makers_by_name, registered, twin


def _distribution(value: Any) -> Distribution:
    """A distribution of SciPy, or one that is frozen."""
    if hasattr(value, "dist") and hasattr(value, "kwds"):
        found = twin(value.dist)
        is_ours = isinstance(found, Distribution)
        return found(*map(twin, value.args), **value.kwds) if is_ours else value
    found = find_in_scipy(value)
    if found is None:  # SciPy freezes copies
        named: Any = getattr(resolve_name("scipy.stats"), getattr(value, "name", ""), None)
        if type(named) is type(value) and (named.a, named.b) == (value.a, value.b):
            found = registered(named)
    return Distribution(None, value) if found is None else found


_PARAMETERS = {
    "dirichlet_frozen": ("dirichlet", "alpha"),
    "gaussian_kde": ("gaussian_kde", "dataset", "factor", "weights"),
    "multinomial_frozen": ("multinomial", "n", "p"),
    "multivariate_normal_frozen": ("multivariate_normal", "mean", "cov", "allow_singular"),
    "multivariate_t_frozen": ("multivariate_t", "loc", "shape", "df"),
    "wishart_frozen": ("wishart", "df", "scale"),
}
"""Distributions of several variables with parameters: what makes them, from which attributes."""


def _of_several(value: Any) -> Any:
    """A distribution of several variables with parameters, or a density from samples."""
    if type(value).__name__ not in _PARAMETERS:
        return value
    name, *attributes = _PARAMETERS[type(value).__name__]
    make = twin(getattr(resolve_name("scipy.stats"), name))
    return make(*(getattr(value, attribute) for attribute in attributes))


def _vectorized(value: Any) -> Vectorized:
    return Vectorized(
        twin(value.pyfunc), otypes=value.otypes, excluded=value.excluded, signature=value.signature
    )


def _piecewise(value: Any) -> Callable[..., Any]:
    """A spline or another piecewise polynomial of SciPy."""
    own = deferred.scipy_names.namespace.interpolate
    if hasattr(value, "t"):
        return library(own.BSpline(value.t, value.c, value.k, value.extrapolate, value.axis))
    return library(own.PPoly(value.c, value.x, value.extrapolate, value.axis))


def _interp1d(value: Any) -> Callable[..., Any]:
    own = deferred.scipy_names.namespace.interpolate
    return library(
        own.interp1d(
            value.x,
            value.y,
            kind=value._spline.k if value._kind == "spline" else value._kind,
            axis=value.axis,
            bounds_error=value.bounds_error,
            fill_value=value.fill_value,
        )
    )


def _dispatcher(value: Any) -> Any:
    """A function compiled by numba: the function of Python that it was compiled from."""
    return twin(value.py_func)


MAKERS: dict[str, Callable[[Any], Any]] = {
    "scipy.stats._distn_infrastructure.rv_generic": _distribution,
    "scipy.stats._distn_infrastructure.rv_frozen": _distribution,
    "scipy.stats._multivariate.multi_rv_generic": _distribution,
    "scipy.stats._multivariate.multi_rv_frozen": _of_several,
    "scipy.stats._kde.gaussian_kde": _of_several,
    "numpy.vectorize": _vectorized,
    "scipy.interpolate._interpolate.PPoly": _piecewise,
    "scipy.interpolate._bsplines.BSpline": _piecewise,
    "scipy.interpolate._interpolate.interp1d": _interp1d,
    "scipy.sparse._base._spbase": lambda matrix: deferred.scipy_names.of_matrix(matrix),
    "builtins.SuperLU": lambda factors: deferred.scipy_names.of_superlu(factors),
    "numba.core.dispatcher.Dispatcher": _dispatcher,
}
"""By name of a class."""


def install() -> None:
    """Make the table."""
    makers_by_name.update(MAKERS)
