"""Summary statistics of samples.

Here: moments, means, standard scores, entropy. Not here: ``mean``, ``var``, ``quantile`` and other
functions of NumPy's namespace.

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import shape_of
from functrans.core.values import Array
from functrans.numpy.common import as_array
from functrans.primitives import elementwise as ew
from functrans.primitives.special import elementary as el
from functrans.scipy.special_common import as_floating


def _sample(a: Any, axis: Any) -> tuple[Any, Any, int]:
    """The array in floating point, an axis of it, and the number of observations."""
    (a,) = as_floating(as_array(a))
    if axis is None:
        a, axis = fnp.reshape(a, (-1,)), 0
    return a, axis, shape_of(a)[axis]


def moment(a: ArrayLike, order: int = 1, axis: object = 0, *, center: Any = None) -> Array:
    """The central moment of a sample.

    Args:
      a: array.
      order: which one.
      axis: axis of the observations; all for ``None``.
      center: what is subtracted, by default the mean.

    Example:
      >>> import numpy as np
      >>> float(moment(np.array([1.0, 3.0]), 2))
      1.0
    """
    a, axis, _ = _sample(a, axis)
    middle = fnp.mean(a, axis=axis, keepdims=True) if center is None else center
    return fnp.mean(ew.power(a - middle, operator.index(order)), axis=axis)


def sem(a: ArrayLike, axis: int | Sequence[int] | None = 0, ddof: int = 1) -> Array:
    """The standard error of the mean.

    Args:
      a: array.
      axis: axis of the observations; all for ``None``.
      ddof: what is subtracted from their number.

    Example:
      >>> import numpy as np
      >>> float(sem(np.array([1.0, 3.0])))
      1.0
    """
    a, axis, n = _sample(a, axis)
    return fnp.std(a, axis=axis, ddof=ddof) / math.sqrt(n)


def zscore(a: ArrayLike, axis: int | Sequence[int] | None = 0, ddof: int = 0) -> Array:
    """Standard scores: deviations from the mean over the standard deviation.

    Args:
      a: array.
      axis: axis of the observations; all for ``None``.
      ddof: as in ``numpy.std``.

    Example:
      >>> import numpy as np
      >>> zscore(np.array([1.0, 3.0]))
      array([-1.,  1.])
    """
    return zmap(a, a, axis, ddof)


def zmap(
    scores: ArrayLike, compare: ArrayLike, axis: int | Sequence[int] | None = 0, ddof: int = 0
) -> Array:
    """Standard scores against another sample.

    Args:
      scores: array.
      compare: the sample whose mean and standard deviation count.
      axis: axis of the observations; all for ``None``.
      ddof: as in ``numpy.std``.

    Example:
      >>> import numpy as np
      >>> zmap(np.array([5.0]), np.array([1.0, 3.0]))
      array([3.])
    """
    scores, compare = as_floating(as_array(scores), as_array(compare))
    middle = fnp.mean(compare, axis=axis, keepdims=axis is not None)
    return (scores - middle) / fnp.std(compare, axis=axis, ddof=ddof, keepdims=axis is not None)


def skew(a: ArrayLike, axis: int | Sequence[int] | None = 0, bias: bool = True) -> Array:
    """The skewness of a sample.

    Args:
      a: array.
      axis: axis of the observations; all for ``None``.
      bias: false to correct for the number of observations.

    Example:
      >>> import numpy as np
      >>> float(skew(np.array([1.0, 2.0, 3.0])))
      0.0
    """
    a, axis, n = _sample(a, axis)
    value = moment(a, 3, axis) / ew.power(moment(a, 2, axis), 1.5)
    return value if bias or n < 3 else value * (math.sqrt(n * (n - 1)) / (n - 2))


def kurtosis(
    a: ArrayLike, axis: int | Sequence[int] | None = 0, fisher: bool = True, bias: bool = True
) -> Array:
    """The kurtosis of a sample.

    Args:
      a: array.
      axis: axis of the observations; all for ``None``.
      fisher: whether 3 is subtracted, so that a normal distribution has 0.
      bias: false to correct for the number of observations.

    Example:
      >>> import numpy as np
      >>> float(kurtosis(np.array([1.0, 3.0])))
      -2.0
    """
    a, axis, n = _sample(a, axis)
    value = moment(a, 4, axis) / ew.power(moment(a, 2, axis), 2)
    if not bias and n > 3:
        value = ((n * n - 1) * value - 3 * (n - 1) ** 2) / ((n - 2) * (n - 3)) + 3
    return value - 3 if fisher else value


def gmean(a: ArrayLike, axis: object = 0, weights: object = None) -> Array:
    """The geometric mean.

    Args:
      a: array of positive numbers.
      axis: axis of the observations; all for ``None``.
      weights: of the observations.

    Example:
      >>> import numpy as np
      >>> round(float(gmean(np.array([1.0, 4.0]))), 12)
      2.0
    """
    (a,) = as_floating(as_array(a))
    return ew.exp(fnp.average(ew.log(a), axis=axis, weights=weights))


def hmean(a: Any, axis: Any = 0, weights: Any = None) -> Any:
    """The harmonic mean.

    Args:
      a: array of positive numbers. Where a single one is 0, the mean is 0 and its derivatives are
        limits; where several are, those in one element at a time are 0.
      axis: axis of the observations; all for ``None``.
      weights: of the observations.

    Example:
      >>> import numpy as np
      >>> float(hmean(np.array([1.0, 3.0])))
      1.5
    """
    if axis is None and weights is not None:
        weights = fnp.reshape(weights, (-1,))
    a, axis, size = _sample(a, axis)
    if not size:
        return 1 / fnp.average(1 / a, axis=axis, weights=weights)
    # Over the least one, so that nothing is divided by it.
    place = fnp.expand_dims(fnp.argmin(a, axis=axis), axis)
    least = fnp.take_along_axis(a, place, axis=axis)
    layout = [1] * len(shape_of(a))
    layout[axis] = size
    is_least = fnp.reshape(np.arange(size), tuple(layout)) == place
    is_zero = a == 0
    others = ew.where(is_zero, np.inf, least / ew.where(is_zero, 1, a))
    ratio = ew.where(is_least, 1, others)
    return fnp.squeeze(least, axis) / fnp.average(ratio, axis=axis, weights=weights)


def pmean(a: ArrayLike, p: Any, axis: object = 0, weights: object = None) -> Array:
    """The power mean of exponent ``p``; the geometric one for the number 0.

    Args:
      a: array of positive numbers.
      p: exponent; a traced one must not be 0.
      axis: axis of the observations; all for ``None``.
      weights: of the observations.

    Example:
      >>> import numpy as np
      >>> round(float(pmean(np.array([3.0, 4.0]), 2)) ** 2, 12)
      12.5
    """
    if isinstance(p, (int, float, np.number)) and p == 0:
        return gmean(a, axis, weights)
    (a,) = as_floating(as_array(a))
    p = as_array(p)
    powers = ew.power(as_array(a), p)
    return ew.power(fnp.average(powers, axis=axis, weights=weights), 1 / p)


def entropy(pk: object, qk: object = None, base: Any = None, axis: int = 0) -> Array:
    """Shannon's entropy, or the relative one; distributions are normalised.

    Args:
      pk: array of non-negative numbers.
      qk: the distribution it is compared with.
      base: of the logarithm, by default e.
      axis: axis of the outcomes.

    Raises:
      ValueError: the base is not positive.

    Example:
      >>> import numpy as np
      >>> float(entropy(np.array([1.0, 1.0]), base=2))
      1.0
    """
    if base is not None and base <= 0:
        raise ValueError(f"entropy: base must be positive, got {base}")
    (p,) = as_floating(as_array(pk))
    p = p / fnp.sum(p, axis=axis, keepdims=True)
    if qk is None:
        terms = el.entr(p)
    else:
        p, q = as_floating(p, as_array(qk))
        terms = el.rel_entr(p, q / fnp.sum(q, axis=axis, keepdims=True))
    total = fnp.sum(terms, axis=axis)
    return total if base is None else total / math.log(base)
