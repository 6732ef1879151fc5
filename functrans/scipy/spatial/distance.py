"""Distances between vectors, under SciPy's names: ``cdist``, ``pdist``, ``euclidean`` ...

Here: distances of real vectors. Not here: those of Boolean vectors, which SciPy computes for plain
ones.

Where two vectors are equal, the derivative of a distance that has a kink there is 0.

Layer: ``numpy``, ``scipy``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans import numpy as fnp
from functrans.core.dispatch import shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import UnsupportedOperationError
from functrans.namespaces import listing as _listing
from functrans.numpy.common import as_array
from functrans.numpy.dispatch import has_tracer
from functrans.scipy.special import rel_entr
from functrans.scipy.special_common import as_floating

# metrics: functions of arrays of vectors along the last axis -------------------------------------


def _root(x: Any, power: float = 0.5) -> Array:
    """A root, whose derivative at 0 is taken to be 0."""
    is_positive = x > 0
    return fnp.where(is_positive, fnp.where(is_positive, x, 1.0) ** power, 0.0)


def _weighted(x: Any, w: Any) -> Any:
    return fnp.sum(x if w is None else x * w, axis=-1)


def _sqeuclidean(a: Any, b: Any, w: object = None) -> Array:
    return _weighted((a - b) ** 2, w)


def _euclidean(a: ArrayLike, b: ArrayLike, w: object = None) -> Array:
    return _root(_sqeuclidean(a, b, w))


def _cityblock(a: Any, b: Any, w: object = None) -> Array:
    return _weighted(abs(a - b), w)


def _minkowski(a: Any, b: Any, w: object = None, p: float = 2) -> Array:
    if np.isinf(p):
        return _chebyshev(a, b)
    return _root(_weighted(_root(abs(a - b), p) if p < 1 else abs(a - b) ** p, w), 1.0 / p)


def _chebyshev(a: Any, b: Any) -> Array:
    return fnp.max(abs(a - b), axis=-1)


def _canberra(a: Any, b: Any, w: object = None) -> Array:
    size = abs(a) + abs(b)
    return _weighted(fnp.where(size > 0, abs(a - b) / fnp.where(size > 0, size, 1.0), 0.0), w)


def _braycurtis(a: Any, b: Any, w: object = None) -> Array:
    return _weighted(abs(a - b), w) / _weighted(abs(a + b), w)


def _cosine(a: Any, b: Any, w: object = None) -> Array:
    sizes = fnp.sqrt(_weighted(a * a, w)) * fnp.sqrt(_weighted(b * b, w))
    return 1.0 - _weighted(a * b, w) / sizes


def _correlation(a: Any, b: Any, w: Any = None, centered: bool = True) -> Array:
    if centered:
        total = shape_of(a)[-1] if w is None else fnp.sum(w)
        a, b = (v - (_weighted(v, w) / total)[..., None] for v in (a, b))
    return _cosine(a, b, w)


def _seuclidean(a: Any, b: Any, V: Any) -> Array:  # SciPy's name
    return _root(fnp.sum((a - b) ** 2 / V, axis=-1))


def _mahalanobis(a: Any, b: Any, VI: Any) -> Array:  # SciPy's name
    gap = a - b
    return _root(fnp.sum((gap @ VI) * gap, axis=-1))


def _jensenshannon(a: Any, b: Any, base: float | None = None) -> Array:
    a, b = (v / fnp.sum(v, axis=-1, keepdims=True) for v in (a, b))
    middle = 0.5 * (a + b)
    found = fnp.sum(rel_entr(a, middle) + rel_entr(b, middle), axis=-1) / 2.0
    return _root(found if base is None else found / np.log(base))


_METRICS: dict[str, Callable[..., Any]] = {
    "braycurtis": _braycurtis, "canberra": _canberra, "chebyshev": _chebyshev,
    "cityblock": _cityblock, "correlation": _correlation, "cosine": _cosine,
    "euclidean": _euclidean, "jensenshannon": _jensenshannon, "mahalanobis": _mahalanobis,
    "minkowski": _minkowski, "seuclidean": _seuclidean, "sqeuclidean": _sqeuclidean,
}  # fmt: skip


def _metric(who: str, metric: object) -> Callable[..., Any]:
    """The function of a metric."""
    found = _METRICS.get(str(metric).lower())
    if found is None:
        raise UnsupportedOperationError(
            f"{who}: the metric {metric!r} of traced vectors{here()} is not supported; those that "
            f"are: {', '.join(_METRICS)}, and functions of two vectors"
        )
    return found


def _options(metric: object, rows: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Options of a metric, with those that SciPy computes of all vectors."""
    options = {key: value for key, value in options.items() if value is not None}
    name = str(metric).lower()
    if name == "seuclidean" and "V" not in options:
        options["V"] = fnp.var(rows, axis=0, ddof=1)
    if name == "mahalanobis" and "VI" not in options:
        options["VI"] = fnp.linalg.inv(fnp.cov(rows.T)).T
    return options


def _scipy() -> Any:
    import scipy.spatial.distance

    return scipy.spatial.distance


def _no_out(who: str, out: Array | None) -> None:
    if out is not None:
        raise UnsupportedOperationError(
            f"{who} was asked to write traced distances into an array{here()}; use the result"
        )


def cdist(
    XA: object,
    XB: object,
    metric: object = "euclidean",
    *,
    out: Array | None = None,
    **kwargs: object,
) -> Array:
    """Distances between the rows of two matrices, as ``scipy.spatial.distance.cdist``.

    Args:
      XA: ``[m, d]``.
      XB: ``[n, d]``.
      metric: name of a metric of real vectors, or a function of two vectors.
      out: as in SciPy, for plain arrays.
      **kwargs: of the metric: ``p``, ``w``, ``V``, ``VI``, ``base``, ``centered``.

    Returns:
      ``[m, n]``.

    Raises:
      UnsupportedOperationError: traced vectors, and a metric of Boolean ones.

    Example:
      >>> import functrans as ft
      >>> x = np.array([[0.0, 0.0], [3.0, 4.0]])
      >>> ft.grad(lambda x: cdist(x, np.zeros((1, 2))).sum())(x)
      array([[0. , 0. ],
             [0.6, 0.8]])
    """
    if not has_tracer((XA, XB, *kwargs.values())):
        return _scipy().cdist(XA, XB, metric, out=out, **kwargs)
    _no_out("cdist", out)
    a, b = as_floating(as_array(XA), as_array(XB))
    if callable(metric):
        rows = [[metric(u, v, **kwargs) for v in b] for u in a]
        return fnp.asarray(rows)
    options = _options(metric, fnp.concatenate([a, b]), kwargs)
    return _metric("cdist", metric)(a[:, None, :], b[None, :, :], **options)


def pdist(
    X: ArrayLike, metric: object = "euclidean", *, out: Array | None = None, **kwargs: object
) -> Array:
    """Distances between the rows of a matrix, as ``scipy.spatial.distance.pdist``.

    Args:
      X: ``[n, d]``.
      metric: as in ``cdist``.
      out: as in SciPy, for plain arrays.
      **kwargs: as in ``cdist``.

    Returns:
      ``[n (n - 1) / 2]``: the first with the second, the first with the third ...

    Raises:
      UnsupportedOperationError: see ``cdist``.

    Example:
      >>> pdist(np.array([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
      array([5.        , 1.        , 4.24264069])
    """
    if not has_tracer((X, *kwargs.values())):
        return _scipy().pdist(X, metric, out=out, **kwargs)
    _no_out("pdist", out)
    (x,) = as_floating(as_array(X))
    first, second = np.triu_indices(shape_of(x)[0], 1)
    if callable(metric):
        pairs = zip(first, second, strict=True)
        return fnp.asarray([metric(x[i], x[j], **kwargs) for i, j in pairs])
    return _metric("pdist", metric)(x[first], x[second], **_options(metric, x, kwargs))


def squareform(X: ArrayLike, force: str = "no", checks: bool = True) -> Array:  # SciPy's name
    """The distances of ``pdist`` as a symmetric matrix, or back.

    Args:
      X: vector or square matrix.
      force: ``"tovector"``, ``"tomatrix"`` or ``"no"``, as in SciPy.
      checks: whether a plain matrix is checked.

    Raises:
      ValueError: the length is that of no matrix.

    Example:
      >>> squareform(np.array([1.0, 2.0, 3.0]))
      array([[0., 1., 2.],
             [1., 0., 3.],
             [2., 3., 0.]])
    """
    if not has_tracer((X,)):
        return _scipy().squareform(X, force, checks)
    x = as_array(X)
    shape = shape_of(x)
    if len(shape) == 2:
        if force.lower() == "tomatrix" or shape[0] != shape[1]:
            raise ValueError(f"squareform: expected a vector, got the shape {shape}{here()}")
        return x[np.triu_indices(shape[0], 1)]
    n = round((1 + np.sqrt(1 + 8 * shape[0])) / 2)
    if force.lower() == "tovector" or n * (n - 1) != 2 * shape[0]:
        raise ValueError(f"squareform: no square matrix has {shape[0]} pairs of rows{here()}")
    places = np.zeros((n, n), np.intp)
    first, second = np.triu_indices(n, 1)
    places[first, second] = places[second, first] = np.arange(shape[0])
    return fnp.where(np.eye(n, dtype=bool), 0.0, x[places])


def _of_two(name: str) -> Callable[..., Any]:
    metric = _METRICS[name]

    def distance(u: object, v: ArrayLike, *args: object, **kwargs: object) -> Any:
        if not has_tracer((u, v, *args, *kwargs.values())):
            return getattr(_scipy(), name)(u, v, *args, **kwargs)
        u, v = as_floating(as_array(u), as_array(v))
        kwargs = {key: value for key, value in kwargs.items() if value is not None}
        if name == "minkowski" and args:
            kwargs["p"], args = args[0], args[1:]
        if name in ("seuclidean", "mahalanobis", "jensenshannon"):
            return metric(u, v, *args, **kwargs)
        if args:
            kwargs["w"] = args[0]
        return metric(u, v, **kwargs)

    distance.__name__ = distance.__qualname__ = name
    distance.__doc__ = (
        f"The {name} distance of two vectors, as ``scipy.spatial.distance.{name}``.\n\n"
        "Args:\n  u: vector.\n  v: vector.\n  *args: as in SciPy.\n  **kwargs: as in SciPy.\n"
    )
    return distance


braycurtis = _of_two("braycurtis")
canberra = _of_two("canberra")
chebyshev = _of_two("chebyshev")
cityblock = _of_two("cityblock")
correlation = _of_two("correlation")
cosine = _of_two("cosine")
euclidean = _of_two("euclidean")
jensenshannon = _of_two("jensenshannon")
mahalanobis = _of_two("mahalanobis")
minkowski = _of_two("minkowski")
seuclidean = _of_two("seuclidean")
sqeuclidean = _of_two("sqeuclidean")

__all__ = [
    "braycurtis", "canberra", "cdist", "chebyshev", "cityblock", "correlation", "cosine",
    "euclidean", "jensenshannon", "mahalanobis", "minkowski", "pdist", "seuclidean",
    "sqeuclidean", "squareform",
]  # fmt: skip
__dir__ = _listing(__all__)
