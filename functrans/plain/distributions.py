"""Distributions of SciPy in twins: densities and probabilities are functrans's.

Here: distributions, and frozen ones, as twins see them. Not here: those that users have made before
(``plain.objects``).

Layer: ``plain``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functrans.numpy as fnp
from functrans.plain.library_calls import library


class Distribution:
    """A distribution of SciPy, whose densities and probabilities are functrans's.

    Attributes:
      own: functrans's distribution; ``None`` of one that functrans does not have.
      scipy: SciPy's, which has all other methods, for plain parameters.
    """

    def __init__(self, own: Any, scipy: Any) -> None:
        self.own, self.scipy = own, scipy

    def __getattr__(self, name: str) -> Any:
        """A method."""
        found = getattr(self.own, name, None)
        if found is None:
            value = getattr(self.scipy, name)
            return library(value) if callable(value) else value
        is_multivariate = not hasattr(self.scipy, "ppf")
        return library(_without_ones(found) if is_multivariate else found)

    def __call__(self, *args: object, **kwargs: object) -> Frozen:
        """The distribution with parameters."""
        return Frozen(self, args, kwargs)

    freeze = __call__

    def __repr__(self) -> str:
        """Of SciPy's."""
        return repr(self.scipy)


def _without_ones(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose results have no axes of one element, as SciPy's of several variables."""
    return lambda *args, **kwargs: fnp.squeeze(method(*args, **kwargs))


_WITHOUT_ARGUMENT = frozenset(
    {"mean", "var", "std", "median", "entropy", "support", "stats", "rvs"}
)


class Frozen:
    """A distribution with parameters, as ``norm(loc=1.0, scale=2.0)`` gives it."""

    def __init__(self, distribution: Distribution, args: Any, kwargs: Any) -> None:
        self.dist, self.args, self.kwds = distribution, args, kwargs

    def __getattr__(self, name: str) -> Any:
        """A method, which is given the parameters."""
        if name == "median":
            return lambda: self.ppf(0.5)
        if name == "interval":
            return lambda confidence: (
                self.ppf((1 - confidence) / 2),
                self.ppf((1 + confidence) / 2),
            )
        method = getattr(self.dist, name)
        if name in _WITHOUT_ARGUMENT:
            return lambda *args, **kwargs: method(*self.args, *args, **self.kwds, **kwargs)
        return lambda x, *args, **kwargs: method(x, *self.args, *args, **self.kwds, **kwargs)
