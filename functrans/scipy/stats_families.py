"""Distributions with location and scale: what the tables of them share.

Here: the records ``Continuous`` and ``Discrete``, whose fields are functions of the standardised
variable and whose methods are SciPy's. Not here: the distributions (``stats_continuous``,
``stats_positive``, ``stats_discrete``).

Outside the support, and at infinity, densities are 0 and their derivatives are 0, not NaN: the
functions of the table see a point inside in its place. At an end of the support derivatives are
those of the formula from inside. Parameters for which there is no distribution give NaN, as in
SciPy.

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from functrans.core.dispatch import dtype_of
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.numpy.common import as_operand
from functrans.primitives import elementwise as ew
from functrans.primitives.special import elementary as el
from functrans.primitives.structural import cast
from functrans.records import dataclass
from functrans.scipy.special_common import as_floating

Function = Callable[..., Any]

_OPTIONS = {"loc": 0, "scale": 1}


def _arguments(
    method: str, names: tuple[str, ...], args: tuple[Any, ...], options: dict[str, Any]
) -> list[Any]:
    """Shapes, location and scale by position or name."""
    if len(args) > len(names):
        raise TypeError(
            f"{method}: got {len(args) + 1} arguments, expected {len(names) + 1} at most"
        )
    given = dict(zip(names, args, strict=False))
    for name, value in options.items():
        if name not in names or name in given:
            problem = "given twice" if name in given else "unknown"
            raise TypeError(
                f"{method}: argument {name!r} is {problem}; it takes (x, {', '.join(names)})"
            )
        given[name] = value
    missing = [name for name in names if name not in given and name not in _OPTIONS]
    if missing:
        raise TypeError(f"{method}: missing {', '.join(missing)}; it takes (x, {', '.join(names)})")
    return [as_operand(given[name] if name in given else _OPTIONS[name]) for name in names]


_VARIABLES = {"ppf": "q", "isf": "q"}


def _signature(method: str, variable: str, names: tuple[str, ...]) -> inspect.Signature:
    """``(x, a, loc=0, scale=1)``."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    empty = inspect.Parameter.empty
    return inspect.Signature(
        [
            inspect.Parameter(name, kind, default=_OPTIONS.get(name, empty))
            for name in (_VARIABLES.get(method, variable), *names)
        ]
    )


def _publish(
    distribution: Any, kind: str, methods: Mapping[str, bool], variable: str, names: tuple[str, ...]
) -> None:
    """Give a distribution methods whose signatures name its parameters, and documentation.

    Args:
      distribution: the record.
      kind: what it is, in words.
      methods: name of each method, and whether there is a formula for it.
      variable: name of the first argument of most methods.
      names: names of the others.
    """
    lines = []
    for method, has_formula in methods.items():
        bound = getattr(distribution, method)
        signature = _signature(method, variable, names)

        @functools.wraps(bound, assigned=("__name__", "__doc__"))
        def function(*args: Array, bound: Callable[..., Any] = bound, **options: object) -> Any:
            return bound(*args, **options)

        public: Any = function
        del public.__wrapped__
        public.__module__ = "functrans.scipy.stats"
        public.__qualname__ = f"{distribution.name}.{method}"
        public.__signature__ = signature
        text = f"{bound.__doc__.splitlines()[0]}"
        public.__doc__ = f"{text}\n\nParameters as those of scipy.stats.{distribution.name}."
        object.__setattr__(distribution, method, public)
        if has_formula:
            lines.append(f"  {method}{signature}: {text[0].lower()}{text[1:]}")
    shapes = ", ".join(f"``{name}``" for name in distribution.shapes)
    taking = (
        f", with the parameters {shapes}" if "," in shapes else f", with the parameter {shapes}"
    )
    object.__setattr__(
        distribution,
        "__doc__",
        f"SciPy's ``{distribution.name}``: {kind}{taking if shapes else ''}.\n\n"
        f"Parameters as those of scipy.stats.{distribution.name}; arguments broadcast. Methods:\n\n"
        + "\n".join(lines),
    )


def _is_nan(x: Array) -> Array:
    return ew.isnan(x)


def positive(*shapes: Array) -> Any:
    """Whether all parameters are positive: the usual condition."""
    result: Any = True
    for shape in shapes:
        result = (shape > 0) & result
    return result


class Power(NamedTuple):
    """A factor ``base ** exponent`` of a density.

    Where the base is 0 the logarithm has no slope that could be used: ``log(y**2)`` is infinite
    there, ``y**2`` is as smooth as anywhere.

    Attributes:
      base: at least 0.
      exponent: real.
      complement: ``1 - base``, where that is known more exactly.
    """

    base: Any
    exponent: Any
    complement: Any = None

    def log(self) -> Any:
        """The logarithm; 0 for exponent 0."""
        if self.complement is None:
            return el.xlogy(self.exponent, self.base)
        return el.xlog1py(self.exponent, -self.complement)


def _no_powers(*operands: Array) -> tuple[Power, ...]:
    return ()


# Below this nothing is left of an exponential, times the largest number that there is.
_NOTHING = -1500.0


def exp_of_log(value: Array) -> Array:
    """``exp``; 0 and flat where it is 0 against any slope, infinite ones included."""
    return ew.where(value < _NOTHING, 0.0, ew.exp(value))


def complement_of_exp(value: Array) -> Array:
    """``1 - exp``; 1 and flat where ``exp_of_log`` is."""
    return ew.where(value < _NOTHING, 1.0, -ew.expm1(value))


def _log_of_product(rest: Array, powers: tuple[Power, ...]) -> Array:
    for power in powers:
        rest = rest + power.log()
    return rest


def _product(rest: Array, powers: tuple[Power, ...]) -> Array:
    """``exp(rest)`` times the powers: by logarithms, except where they are powers of 0."""
    value = exp_of_log(_log_of_product(rest, powers))
    if not powers:
        return value
    is_zero: Any = False
    is_infinite: Any = False
    for power in powers:
        is_zero = (power.base == 0) | is_zero
        is_infinite = ((power.base == 0) & (power.exponent < 0)) | is_infinite
    is_zero = is_zero & ~is_infinite
    product = ew.exp(ew.where(is_zero, rest, 0))
    for base, exponent, _ in powers:
        product = product * ew.power(ew.where(is_zero, base, 1), ew.where(is_zero, exponent, 1))
    return ew.where(is_zero, product, value)


@dataclass(frozen=True)
class Continuous:
    """A continuous distribution; methods take ``(x, *shapes, loc=0, scale=1)``.

    All of it is differentiable in ``x`` (or ``q``), shapes, ``loc`` and ``scale``.

    Example:
      >>> from functrans.scipy.stats import norm
      >>> round(float(norm.logpdf(0.0, loc=1.0, scale=2.0)), 12)
      -1.737085713765

    Attributes:
      name: SciPy's name.
      shapes: names of the shape parameters.
      log_density: of the standardised variable and the shapes, as all functions here; without
        the powers.
      inside: a point inside the support for all shapes, or a function of the shapes.
      typical: values of the shapes for which there is a distribution.
      distribution: the cumulative distribution function.
      survival: its complement.
      log_distribution: its logarithm, where that is more exact than the logarithm of it.
      log_survival: the logarithm of the complement.
      quantile: the inverse of the distribution function.
      upper_quantile: the inverse of the complement.
      support: ends of the support: numbers, or a function of the shapes.
      is_open: whether the density is 0 at the ends whatever the formula says.
      is_valid: whether there is a distribution for the shapes.
      powers: factors of the density whose base is 0 somewhere in the support.
    """

    name: str
    shapes: tuple[str, ...]
    log_density: Function
    inside: Any = 0.5
    typical: tuple[float, ...] = ()
    distribution: Function | None = None
    survival: Function | None = None
    log_distribution: Function | None = None
    log_survival: Function | None = None
    quantile: Function | None = None
    upper_quantile: Function | None = None
    support: Any = (-math.inf, math.inf)
    is_open: bool = False
    is_valid: Function = positive
    powers: Function = _no_powers

    def __post_init__(self) -> None:
        """Methods with signatures."""
        _publish(self, "a continuous distribution", self._methods(), "x", self._names())

    def _names(self) -> tuple[str, ...]:
        return (*self.shapes, "loc", "scale")

    def _methods(self) -> dict[str, bool]:
        """All methods, and whether there is a formula."""
        has_distribution = self.distribution is not None
        has_survival = has_distribution or self.survival is not None
        return {
            "logpdf": True,
            "pdf": True,
            "cdf": has_distribution,
            "logcdf": has_distribution or self.log_distribution is not None,
            "sf": has_survival,
            "logsf": has_survival or self.log_survival is not None,
            "ppf": self.quantile is not None,
            "isf": self.quantile is not None or self.upper_quantile is not None,
        }

    def __dir__(self) -> list[str]:
        """The methods."""
        return [*self._methods(), "name", "shapes"]

    def __repr__(self) -> str:
        """Where it is found."""
        return f"functrans.scipy.stats.{self.name}"

    def _read(self, method: str, x: Array, args: Any, options: Any) -> tuple[Any, ...]:
        """The variable, safe shapes, location and scale, validity, and the support."""
        names = self._names()
        values = _arguments(f"{self.name}.{method}", names, args, options)
        x, *rest = as_floating(as_operand(x), *values)
        *shapes, loc, scale = rest
        is_valid = self.is_valid(*shapes) & (scale > 0)
        safe = [
            ew.where(is_valid, shape, value)
            for shape, value in zip(shapes, self.typical, strict=True)
        ]
        low, high = self.support(*safe) if callable(self.support) else self.support
        return x, tuple(safe), loc, ew.where(is_valid, scale, 1), is_valid, low, high

    def _function(self, method: str, function: Function | None) -> Function:
        if function is None:
            raise UnsupportedOperationError(
                f"{self.name}.{method} has no formula that can be differentiated; use "
                f"scipy.stats.{self.name} on plain arrays"
            )
        return function

    def _at(self, y: Array, is_inside: Array, shapes: tuple[Any, ...]) -> Array:
        point = self.inside(*shapes) if callable(self.inside) else self.inside
        return ew.where(is_inside, y, point)

    def _density(
        self,
        method: str,
        outside: float,
        combine: Function,
        x: Array,
        args: object,
        options: object,
    ) -> Array:
        x, shapes, loc, scale, is_valid, low, high = self._read(method, x, args, options)
        y = (x - loc) / scale
        is_inside = (y > low) & (y < high) if self.is_open else (y >= low) & (y <= high)
        is_inside = is_inside & ew.isfinite(y)
        y_inside = self._at(y, is_inside, shapes)
        rest = self.log_density(y_inside, *shapes) - ew.log(scale)
        value = ew.where(is_inside, combine(rest, self.powers(y_inside, *shapes)), outside)
        return ew.where(is_valid & ~_is_nan(y), value, math.nan)

    def logpdf(self, x: Array, *args: Any, **options: object) -> Array:
        """The logarithm of the density; ``-inf`` outside the support."""
        return self._density("logpdf", -math.inf, _log_of_product, x, args, options)

    def pdf(self, x: Array, *args: Any, **options: object) -> Array:
        """The density; 0 outside the support."""
        return self._density("pdf", 0.0, _product, x, args, options)

    def _cumulative(
        self, method: str, function: Function, ends: tuple[float, float], x: Array, args: object,
        options: object,
    ) -> Array:  # fmt: skip
        x, shapes, loc, scale, is_valid, low, high = self._read(method, x, args, options)
        y = (x - loc) / scale
        is_inside = (y > low) & (y < high)
        value = function(self._at(y, is_inside, shapes), *shapes)
        value = ew.where(is_inside, value, ew.where(y >= high, ends[1], ends[0]))
        return ew.where(is_valid & ~_is_nan(y), value, math.nan)

    def cdf(self, x: Array, *args: Any, **options: object) -> Array:
        """The cumulative distribution function."""
        function = self._function("cdf", self.distribution)
        return self._cumulative("cdf", function, (0.0, 1.0), x, args, options)

    def sf(self, x: Array, *args: Any, **options: object) -> Any:
        """The complement of the cumulative distribution function."""
        function = self.survival
        if function is None:
            distribution = self._function("sf", self.distribution)

            def function(y: Any, *shapes: object) -> Any:
                return 1 - distribution(y, *shapes)

        return self._cumulative("sf", function, (1.0, 0.0), x, args, options)

    def logcdf(self, x: Array, *args: Any, **options: object) -> Array:
        """The logarithm of the cumulative distribution function."""
        function = self.log_distribution
        if function is None:
            distribution = self._function("logcdf", self.distribution)

            def function(y: Array, *shapes: Array) -> Any:
                return ew.log(distribution(y, *shapes))

        return self._cumulative("logcdf", function, (-math.inf, 0.0), x, args, options)

    def logsf(self, x: Array, *args: Any, **options: object) -> Array:
        """The logarithm of the complement of the cumulative distribution function."""
        function = self.log_survival
        if function is None and self.survival is not None:
            survival = self.survival

            def function(y: Array, *shapes: Array) -> Any:
                return ew.log(survival(y, *shapes))

        elif function is None:
            distribution = self._function("logsf", self.distribution)

            def function(y: Array, *shapes: Array) -> Any:
                return ew.log1p(-distribution(y, *shapes))

        return self._cumulative("logsf", function, (0.0, -math.inf), x, args, options)

    def _inverse(
        self,
        method: str,
        function: Function,
        is_upper: bool,
        q: Array,
        args: object,
        options: object,
    ) -> Array:
        q, shapes, loc, scale, is_valid, low, high = self._read(method, q, args, options)
        is_inside = (q > 0) & (q < 1)
        value = function(ew.where(is_inside, q, 0.5), *shapes)
        first, last = (high, low) if is_upper else (low, high)
        value = ew.where(is_inside, value, ew.where(q == 0, first, last)) * scale + loc
        return ew.where(is_valid & (q >= 0) & (q <= 1), value, math.nan)

    def ppf(self, q: Array, *args: Any, **options: object) -> Array:
        """The quantile function, the inverse of ``cdf``."""
        function = self._function("ppf", self.quantile)
        return self._inverse("ppf", function, False, q, args, options)

    def isf(self, q: Array, *args: Any, **options: object) -> Array:
        """The inverse of ``sf``."""
        function = self.upper_quantile
        if function is None:
            quantile = self._function("isf", self.quantile)

            def function(q: Array, *shapes: Array) -> Any:
                return quantile(1 - q, *shapes)

        return self._inverse("isf", function, True, q, args, options)


@dataclass(frozen=True)
class Discrete:
    """A distribution on integers; methods take ``(k, *shapes, loc=0)``.

    It is differentiable in real parameters; in ``k`` and ``loc`` derivatives are those of the
    formula, as in JAX.

    Example:
      >>> from functrans.scipy.stats import poisson
      >>> round(float(poisson.pmf(2, 1.5)), 12)
      0.251021430167

    Attributes:
      name: SciPy's name.
      shapes: names of the parameters.
      log_mass: of the integer and the parameters, as all functions here; without the powers.
      support: first and last integer: a function of the parameters.
      typical: values of the parameters for which there is a distribution.
      is_valid: whether there is a distribution for the parameters.
      distribution: the cumulative distribution function at an integer below the last.
      survival: its complement.
      log_survival: the logarithm of the complement.
      powers: factors of the probability whose base is 0 for some parameters.
    """

    name: str
    shapes: tuple[str, ...]
    log_mass: Function
    support: Function
    typical: tuple[float, ...]
    is_valid: Function
    distribution: Function | None = None
    survival: Function | None = None
    log_survival: Function | None = None
    powers: Function = _no_powers

    def __post_init__(self) -> None:
        """Methods with signatures."""
        names = (*self.shapes, "loc")
        _publish(self, "a distribution on integers", self._methods(), "k", names)

    def _methods(self) -> dict[str, bool]:
        """All methods, and whether there is a formula."""
        has_distribution, has_survival = self.distribution is not None, self.survival is not None
        return {
            "logpmf": True,
            "pmf": True,
            "cdf": has_distribution,
            "logcdf": has_distribution,
            "sf": has_survival,
            "logsf": has_survival or self.log_survival is not None,
        }

    def __dir__(self) -> list[str]:
        """The methods."""
        return [*self._methods(), "name", "shapes"]

    def __repr__(self) -> str:
        """Where it is found."""
        return f"functrans.scipy.stats.{self.name}"

    def _read(self, method: str, k: Array, args: Any, options: Any) -> tuple[Any, ...]:
        values = _arguments(f"{self.name}.{method}", (*self.shapes, "loc"), args, options)
        k, *rest = as_floating(as_operand(k), *values)
        *shapes, loc = rest
        is_valid = self.is_valid(*shapes)
        safe = [
            ew.where(is_valid, shape, value)
            for shape, value in zip(shapes, self.typical, strict=True)
        ]
        return (k - loc, tuple(safe), is_valid, *self.support(*safe))

    def _mass(
        self,
        method: str,
        outside: float,
        combine: Function,
        k: Array,
        args: object,
        options: object,
    ) -> Array:
        k, shapes, is_valid, low, high = self._read(method, k, args, options)
        is_inside = (k >= low) & (k <= high) & (ew.floor(k) == k) & ew.isfinite(k)
        k_inside = ew.where(is_inside, k, ew.where(ew.isfinite(low), low, 0))
        rest = self.log_mass(k_inside, *shapes)
        value = ew.where(is_inside, combine(rest, self.powers(k_inside, *shapes)), outside)
        return ew.where(is_valid & ~_is_nan(k), value, math.nan)

    def logpmf(self, k: Array, *args: Any, **options: int) -> Array:
        """The logarithm of the probability of ``k``; ``-inf`` where that is 0."""
        return self._mass("logpmf", -math.inf, _log_of_product, k, args, options)

    def pmf(self, k: Array, *args: Any, **options: int) -> Array:
        """The probability of ``k``."""
        return self._mass("pmf", 0.0, _product, k, args, options)

    def _cumulative(
        self,
        method: str,
        function: Function | None,
        ends: tuple[float, float],
        k: Array,
        args: object,
        options: object,
    ) -> Array:
        if function is None:
            raise UnsupportedOperationError(
                f"{self.name}.{method} has no formula that can be differentiated; use "
                f"scipy.stats.{self.name} on plain arrays"
            )
        k, shapes, is_valid, low, high = self._read(method, k, args, options)
        k = ew.floor(k)
        is_inside = (k >= low) & (k < high)
        value = function(ew.where(is_inside, k, low), *shapes)
        value = ew.where(is_inside, value, ew.where(k >= high, ends[1], ends[0]))
        return ew.where(is_valid & ~_is_nan(k), value, math.nan)

    def cdf(self, k: Array, *args: Any, **options: int) -> Array:
        """The probability of at most ``k``."""
        return self._cumulative("cdf", self.distribution, (0.0, 1.0), k, args, options)

    def sf(self, k: Array, *args: Any, **options: int) -> Any:
        """The probability of more than ``k``."""
        return self._cumulative("sf", self.survival, (1.0, 0.0), k, args, options)

    def logcdf(self, k: Array, *args: Any, **options: int) -> Array:
        """The logarithm of the probability of at most ``k``."""
        value = self._cumulative("logcdf", self.distribution, (0.0, 1.0), k, args, options)
        is_zero = value == 0
        return ew.where(is_zero, -math.inf, ew.log(ew.where(is_zero, 1, value)))

    def logsf(self, k: Array, *args: Any, **options: int) -> Array:
        """The logarithm of the probability of more than ``k``."""
        if self.log_survival is not None:
            ends = (0.0, -math.inf)
            return self._cumulative("logsf", self.log_survival, ends, k, args, options)
        value = self._cumulative("logsf", self.survival, (1.0, 0.0), k, args, options)
        is_zero = value == 0
        return ew.where(is_zero, -math.inf, ew.log(ew.where(is_zero, 1, value)))


def filled_like(value: float, like: Array) -> Array:
    """An array of one number in the shape and dtype of another."""
    return cast(like * 0 + value, dtype_of(like))
