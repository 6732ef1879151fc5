"""Lines and correlations of two samples: ``linregress``, ``pearsonr``.

Here: statistics of pairs, and their p-values. Not here: those of one sample (``stats_summary``).

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from functrans import numpy as fnp
from functrans.core.dispatch import shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.numpy.common import as_array
from functrans.numpy.dispatch import has_tracer
from functrans.scipy.special import stdtr
from functrans.scipy.special_common import as_floating


class _Line(NamedTuple):
    slope: Any
    intercept: Any
    rvalue: Any
    pvalue: Any
    stderr: Any


class LinregressResult(_Line):
    """Result of ``linregress``: five fields, as SciPy's, and the error of the intercept.

    Attributes:
      slope: of the line.
      intercept: its value at 0.
      rvalue: the correlation.
      pvalue: of the hypothesis that the slope is 0.
      stderr: standard error of the slope.
      intercept_stderr: that of the intercept.
    """

    intercept_stderr: Any


class PearsonRResult(NamedTuple):
    """Result of ``pearsonr``.

    Attributes:
      statistic: the correlation.
      pvalue: of the hypothesis that there is none.
    """

    statistic: Any
    pvalue: Any

    @property
    def correlation(self) -> Array:
        """The correlation."""
        return self.statistic


def _moments(who: str, x: Any, y: Any) -> tuple[Any, Any, Any, Any, Any, int]:
    """Means, variances, covariance, and the number of pairs."""
    x, y = as_floating(as_array(x), as_array(y))
    if len(shape_of(x)) != 1 or shape_of(x) != shape_of(y) or shape_of(x)[0] < 3:
        raise ShapeError(
            f"{who}: the samples have the shapes {shape_of(x)} and {shape_of(y)}{here()}; expected "
            "two vectors of the same length, three at least"
        )
    x_mean, y_mean = fnp.mean(x), fnp.mean(y)
    a, b = x - x_mean, y - y_mean
    return x_mean, y_mean, fnp.mean(a * a), fnp.mean(b * b), fnp.mean(a * b), shape_of(x)[0]


def _p_value(who: str, r: Any, n: int, alternative: str) -> Array:
    """Of Student's test of a correlation."""
    t = r * fnp.sqrt((n - 2) / ((1.0 - r) * (1.0 + r)))
    if alternative == "two-sided":
        return 2.0 * stdtr(float(n - 2), -abs(t))
    if alternative in ("less", "greater"):
        return stdtr(float(n - 2), t if alternative == "less" else -t)
    raise UnsupportedOperationError(
        f"{who}: alternative={alternative!r}{here()}; expected 'two-sided', 'less' or 'greater'"
    )


def linregress(x: Any, y: Any, alternative: str = "two-sided") -> Any:
    """The line of least squares through points, as ``scipy.stats.linregress``.

    Args:
      x: ``[n]``.
      y: ``[n]``.
      alternative: of the test: ``"two-sided"``, ``"less"`` or ``"greater"``.

    Returns:
      ``(slope, intercept, rvalue, pvalue, stderr)``, also as attributes, with
      ``intercept_stderr``.

    Raises:
      ShapeError: they are not vectors of the same length.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> x = np.array([0.0, 1.0, 2.0])
      >>> ft.grad(lambda y: linregress(x, y).slope)(np.array([0.0, 1.0, 3.0]))
      array([-0.5,  0. ,  0.5])
    """
    if not has_tracer((x, y)):
        import scipy.stats

        return scipy.stats.linregress(x, y, alternative)
    x_mean, y_mean, xx, yy, xy, n = _moments("linregress", x, y)
    slope = xy / xx
    r = xy / fnp.sqrt(xx * yy)
    error = fnp.sqrt((1.0 - r**2) * yy / xx / (n - 2))
    p = _p_value("linregress", r, n, alternative)
    result = LinregressResult(slope, y_mean - slope * x_mean, r, p, error)
    result.intercept_stderr = error * fnp.sqrt(xx + x_mean**2)
    return result


def pearsonr(x: Any, y: Any, *, alternative: str = "two-sided", **kwargs: object) -> Any:
    """The correlation of two samples, as ``scipy.stats.pearsonr``.

    Args:
      x: ``[n]``.
      y: ``[n]``.
      alternative: of the test: ``"two-sided"``, ``"less"`` or ``"greater"``.
      **kwargs: of SciPy's function, for plain samples.

    Returns:
      ``(statistic, pvalue)``, also as attributes.

    Raises:
      ShapeError: they are not vectors of the same length.
      UnsupportedOperationError: further options, for traced samples.

    Example:
      >>> import numpy as np
      >>> x, y = np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 3.0])
      >>> round(float(pearsonr(x, y).statistic), 6)
      0.981981
    """
    if not has_tracer((x, y)):
        import scipy.stats

        return scipy.stats.pearsonr(x, y, alternative=alternative, **kwargs)
    if kwargs:
        raise UnsupportedOperationError(
            f"pearsonr({', '.join(kwargs)}) of traced samples{here()} is not supported; leave it "
            "out"
        )
    _, _, xx, yy, xy, n = _moments("pearsonr", x, y)
    r = xy / fnp.sqrt(xx * yy)
    return PearsonRResult(r, _p_value("pearsonr", r, n, alternative))
