"""Invertible functions with known Jacobians (``torch.distributions.transforms``).

Here: ``Transform``; those of single numbers, made of the words of a class statement; those of
vectors, matrices and parts. Not here: ``CumulativeDistributionTransform`` (``composed``), which
transform leads to which set (``constraint_registry``).

Layer: ``compat``. Source: Stan Reference Manual, Constraint transforms, for stick breaking and
Cholesky factors of correlations; PyTorch's documentation, for the behaviour.
"""

from __future__ import annotations

import functools
import inspect
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.methods.linear_algebra import LINALG
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.constraints import Bound, Constraint
from functrans.compat.torch.distributions.utils import (
    broadcast_all,
    log_softmax,
    sum_rightmost,
    tril_matrix_to_vec,
    vec_to_tril_matrix,
)
from functrans.scipy import special as sp

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "ExpTransform", "IndependentTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform",
    "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "identity_transform",
]  # fmt: skip

Shape = Sequence[int]


_METHODS = {"call": "_call", "inverse": "_inverse", "log_slope": "log_abs_det_jacobian"}


def _member(word: Any) -> Any:
    """What stands for a word in a class."""
    if not inspect.isfunction(word) or word.__code__.co_varnames[:1] == ("self",):
        return word
    return staticmethod(word)


class Transform:
    """A function of tensors, its inverse, and the logarithm of its Jacobian.

    A subclass has methods, or is described by the words of its class statement, whose functions may
    take the object as ``self``.

    Args:
      cache_size: 1 to remember the last argument and its result.
      call: ``x -> y``.
      inverse: ``y -> x``.
      log_slope: ``(x, y) -> log |dy/dx|``; with it the transform is bijective.
      shapes: from the shape of ``x`` to that of ``y``, and back.
      settings: names of the arguments of the constructor, without ``cache_size``.
      **words: ``domain``, ``codomain``, ``sign``, ``bijective``.

    Raises:
      ValueError: another size.

    Example:
      >>> import functrans.compat.torch as torch
      >>> exp = ExpTransform()
      >>> exp.inv(exp(torch.tensor([1.0])))
      tensor([1.])
    """

    bijective: Any = False
    domain: Any
    codomain: Any
    _settings: Sequence[str] = ()
    _kind: Any = None

    def __init_subclass__(
        cls, settings: str = "", shapes: tuple[Any, Any] | None = None, **words: Any
    ) -> None:
        super().__init_subclass__()
        if settings:
            cls._kind, cls._settings = cls, settings.split()
        if shapes is not None:
            words["forward_shape"], words["inverse_shape"] = shapes
        if "call" in words:
            words.setdefault("bijective", "log_slope" in words)
        for word, value in words.items():
            setattr(cls, _METHODS.get(word, word), _member(value))

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Transform | None = None
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is remembered."""
        return {**vars(self), "_inv": None, "_cached_x_y": (None, None)}

    @property
    def event_dim(self) -> int:
        """How many of the last axes make one value.

        Raises:
          ValueError: the transform changes that.
        """
        dim: int = self.domain.event_dim
        if dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return dim

    @property
    def sign(self) -> Any:
        """1 or -1: whether it increases or decreases.

        Raises:
          NotImplementedError: it is no function of single numbers.
        """
        raise NotImplementedError(f"{type(self).__name__} has no sign")

    @property
    def inv(self) -> Transform:
        """The inverse, a transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    def _again(self, cache_size: int) -> Transform:
        """The same transform with another cache."""
        kind: Any = self._kind or type(self)
        if not self._settings and kind.__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        settings = [getattr(self, name) for name in self._settings]
        again: Transform = kind(*settings, cache_size=cache_size)
        return again

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache of that size."""
        return self if self._cache_size == cache_size else self._again(cache_size)

    def __eq__(self, other: object) -> bool:
        without_settings = type(self).__init__ is Transform.__init__
        return self is other or (without_settings and type(self) is type(other))

    __hash__ = None  # type: ignore[assignment]  # as in torch

    def __call__(self, x: Tensor) -> Tensor:
        """The value at ``x``."""
        if not self._cache_size:
            return self._call(x)
        last, y = self._cached_x_y
        if x is not last:
            y = self._call(x)
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y: Tensor) -> Tensor:
        if not self._cache_size:
            return self._inverse(y)
        x, last = self._cached_x_y
        if y is not last:
            x = self._inverse(y)
            self._cached_x_y = x, y
        return x

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of the absolute value of the Jacobian's determinant."""
        raise NotImplementedError

    def forward_shape(self, shape: Shape) -> Size:
        """The shape of the value from that of the argument."""
        return Size(shape)

    def inverse_shape(self, shape: Shape) -> Size:
        """The shape of the argument from that of the value."""
        return Size(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class _InverseTransform(
    Transform,
    domain=property(lambda self: self._inv.codomain),
    codomain=property(lambda self: self._inv.domain),
    bijective=property(lambda self: self._inv.bijective),
    sign=property(lambda self: self._inv.sign),
    log_slope=lambda self, x, y: -self._inv.log_abs_det_jacobian(y, x),
    shapes=(
        lambda self, shape: self._inv.inverse_shape(shape),
        lambda self, shape: self._inv.forward_shape(shape),
    ),
):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv: Transform = transform

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def _again(self, cache_size: int) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"


# single numbers ----------------------------------------------------------------------------------


def _limits(x: Tensor) -> tuple[float, float]:
    info = np.finfo(x.dtype)
    return float(info.tiny), 1.0 - float(info.eps)


def _softplus(x: Tensor) -> Tensor:
    return sp.softplus(x)


def _logit(y: Tensor) -> Tensor:
    y = y.clamp(*_limits(y))
    return y.log() - (-y).log1p()


class _Increasing(Transform, domain=constraints.real, sign=1):
    """A function of all numbers that increases."""


class ExpTransform(
    _Increasing,
    codomain=constraints.positive,
    call=lambda x: x.exp(),
    inverse=lambda y: y.log(),
    log_slope=lambda x, y: x,
):
    """``y = exp(x)``."""


class SigmoidTransform(
    _Increasing,
    codomain=constraints.unit_interval,
    call=lambda x: x.sigmoid().clamp(*_limits(x)),
    inverse=_logit,
    log_slope=lambda x, y: -_softplus(-x) - _softplus(x),
):
    """``y = 1 / (1 + exp(-x))``."""


class SoftplusTransform(
    _Increasing,
    codomain=constraints.positive,
    call=_softplus,
    inverse=lambda y: (-y).expm1().neg().log() + y,
    log_slope=lambda x, y: -_softplus(-x),
):
    """``y = log(1 + exp(x))``."""


class TanhTransform(
    _Increasing,
    codomain=constraints.interval(-1.0, 1.0),
    call=lambda x: x.tanh(),
    inverse=lambda y: y.atanh(),
    log_slope=lambda x, y: 2.0 * (math.log(2.0) - x - _softplus(-2.0 * x)),
):
    """``y = tanh(x)``."""


class AbsTransform(
    Transform,
    domain=constraints.real,
    codomain=constraints.positive,
    call=lambda x: x.abs(),
    inverse=lambda y: y,
):
    """``y = abs(x)``, which is not bijective."""


def _extents(*names: str) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """From the shape of ``x``, and of ``y``, to that with the attributes."""

    def shape_of(self: Any, shape: Shape) -> Size:
        own = [getattr(getattr(self, name), "shape", ()) for name in names]
        return Size(np.broadcast_shapes(shape, *own))

    return shape_of, shape_of


def _same(kind: type[Transform], first: Any, second: Any, *names: str) -> bool:
    """Whether two transforms of a class have the same numbers."""
    return isinstance(second, kind) and all(
        bool(np.all(np.asarray(fnp.equal(getattr(first, name), getattr(second, name)))))
        for name in names
    )


class PowerTransform(
    Transform,
    domain=constraints.positive,
    codomain=constraints.positive,
    sign=property(lambda self: self.exponent.sign()),
    call=lambda self, x: x**self.exponent,
    inverse=lambda self, y: y ** (1 / self.exponent),
    log_slope=lambda self, x, y: (self.exponent * y / x).abs().log(),
    shapes=_extents("exponent"),
    settings="exponent",
):
    """``y = x ** exponent``."""

    def __init__(self, exponent: Bound, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def __eq__(self, other: object) -> bool:
        return _same(PowerTransform, self, other, "exponent")


def _affine_slope(self: Any, x: Tensor, y: Tensor) -> Any:
    if isinstance(self.scale, Tensor):
        slope = self.scale.abs().log().expand(x.shape)
    else:
        slope = x.new_full(x.shape, math.log(abs(self.scale)))
    return sum_rightmost(slope, self.event_dim)


def _affine_sign(self: Any) -> Any:
    scale = self.scale
    return scale.sign() if isinstance(scale, Tensor) else (scale > 0) - (scale < 0)


_reals = property(lambda self: _lifted(constraints.real, self.event_dim))


class AffineTransform(
    Transform,
    domain=_reals,
    codomain=_reals,
    sign=property(_affine_sign),
    call=lambda self, x: self.loc + self.scale * x,
    inverse=lambda self, y: (y - self.loc) / self.scale,
    log_slope=_affine_slope,
    shapes=_extents("loc", "scale"),
    settings="loc scale event_dim",
):
    """``y = loc + scale * x``; the last ``event_dim`` axes make one value."""

    def __init__(self, loc: Bound, scale: Bound, event_dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    event_dim = property(lambda self: self._event_dim)

    def __eq__(self, other: object) -> bool:
        return _same(AffineTransform, self, other, "loc", "scale")


# vectors and matrices ----------------------------------------------------------------------------


def _with_axes(count: int, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A change of a shape that must have so many axes."""

    def changed(shape: Any) -> Any:
        if len(shape) < count:
            raise ValueError("Too few dimensions on input")
        return Size(change(tuple(shape)))

    return changed


def _padded(x: Tensor, before: int, after: int) -> Tensor:
    """Ones before or after the elements of the last axis."""
    ones = x.new_ones((*x.shape[:-1], 1))
    return fnp.concatenate([ones] * before + [x] + [ones] * after, axis=-1)


class SoftmaxTransform(
    Transform,
    domain=constraints.real_vector,
    codomain=constraints.simplex,
    call=lambda x: log_softmax(x).exp(),
    inverse=lambda y: y.log(),
    shapes=(_with_axes(1, tuple), _with_axes(1, tuple)),
):
    """Probabilities in proportion to ``exp(x)``, which is not bijective."""


def _odds(n: int, like: Any) -> Any:
    """Logarithms of how many parts are left, ``n, ..., 1``."""
    return np.log(np.arange(n, 0, -1)).astype(like.dtype)


def _stick(x: Tensor) -> Tensor:
    z = (x - _odds(x.shape[-1], x)).sigmoid().clamp(*_limits(x))
    return _padded(z, 0, 1) * _padded((1 - z).cumprod(-1), 1, 0)


def _unstick(y: Tensor) -> Tensor:
    parts = y[..., :-1]
    rest = (1 - parts.cumsum(-1)).clamp(float(np.finfo(y.dtype).tiny))
    return parts.log() - rest.log() + _odds(parts.shape[-1], y)


def _stick_slope(x: Tensor, y: Tensor) -> Tensor:
    x = x - _odds(x.shape[-1], x)
    return (-x - _softplus(-x) + y[..., :-1].log()).sum(-1)


class StickBreakingTransform(
    Transform,
    domain=constraints.real_vector,
    codomain=constraints.simplex,
    call=_stick,
    inverse=_unstick,
    log_slope=_stick_slope,
    shapes=(
        _with_axes(1, lambda s: (*s[:-1], s[-1] + 1)),
        _with_axes(1, lambda s: (*s[:-1], s[-1] - 1)),
    ),
):
    """Probabilities of which each takes a share, the sigmoid of a number, of what is left."""


def _triangle(shape: tuple[int, ...]) -> tuple[int, ...]:
    n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
    if n * (n - 1) // 2 != shape[-1]:
        raise ValueError("Input is not a flattened lower-diagonal number")
    return (*shape[:-1], n, n)


def _flat_triangle(shape: tuple[int, ...]) -> tuple[int, ...]:
    if shape[-2] != shape[-1]:
        raise ValueError("Input is not square")
    return (*shape[:-2], shape[-1] * (shape[-1] - 1) // 2)


def _correlation(x: Tensor) -> Tensor:
    eps = float(np.finfo(x.dtype).eps)
    r = vec_to_tril_matrix(x.tanh().clamp(-1 + eps, 1 - eps), diag=-1)
    rest = (1 - r * r).sqrt().cumprod(-1)[..., :-1]
    return (r + np.eye(r.shape[-1], dtype=r.dtype)) * _padded(rest, 1, 0)


def _uncorrelation(y: Tensor) -> Tensor:
    rest = _padded((1 - (y * y).cumsum(-1))[..., :-1], 1, 0)
    t = tril_matrix_to_vec(y, -1) / tril_matrix_to_vec(rest, -1).sqrt()
    return (t.log1p() - (-t).log1p()) / 2


def _correlation_slope(x: Tensor, y: Tensor) -> Tensor:
    rest = tril_matrix_to_vec(1 - (y * y).cumsum(-1), -2)
    return 0.5 * rest.log().sum(-1) - 2 * (x + _softplus(-2 * x) - math.log(2)).sum(-1)


class CorrCholeskyTransform(
    Transform,
    domain=constraints.real_vector,
    codomain=constraints.corr_cholesky,
    call=_correlation,
    inverse=_uncorrelation,
    log_slope=_correlation_slope,
    shapes=(_with_axes(1, _triangle), _with_axes(2, _flat_triangle)),
):
    """Cholesky factors of correlation matrices, from ``n * (n - 1) / 2`` numbers."""


def _with_diagonal(change: str) -> Callable[[Any], Any]:
    """A lower triangle of which the diagonal is changed."""
    return lambda x: x.tril(-1) + getattr(x.diagonal(0, -2, -1), change)().diag_embed()


_cholesky_of, _from_cholesky = _with_diagonal("exp"), _with_diagonal("log")


class LowerCholeskyTransform(
    Transform,
    domain=constraints.independent(constraints.real, 2),
    codomain=constraints.lower_cholesky,
    call=_cholesky_of,
    inverse=_from_cholesky,
):
    """Lower triangles, of whose diagonals the exponentials are taken."""


class PositiveDefiniteTransform(
    Transform,
    domain=constraints.independent(constraints.real, 2),
    codomain=constraints.positive_definite,
    call=lambda x: (lambda factor: factor @ factor.mT)(_cholesky_of(x)),
    inverse=lambda y: _from_cholesky(LINALG["cholesky"](y)),
):
    """Positive definite matrices, by their Cholesky factors."""


def _exchanged(shape: Shape, old: Shape, new: Shape) -> Size:
    """A shape with other last extents."""
    if len(shape) < len(old):
        raise ValueError("Too few dimensions on input")
    cut = len(shape) - len(old)
    if tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"Shape mismatch: expected {Size(shape[cut:])} but got {Size(old)}")
    return Size((*shape[:cut], *new))


class ReshapeTransform(
    Transform,
    domain=property(lambda self: constraints.independent(constraints.real, len(self.in_shape))),
    codomain=property(lambda self: constraints.independent(constraints.real, len(self.out_shape))),
    call=lambda self, x: x.reshape((*_lead(x, self.in_shape), *self.out_shape)),
    inverse=lambda self, y: y.reshape((*_lead(y, self.out_shape), *self.in_shape)),
    log_slope=lambda self, x, y: x.new_zeros(_lead(x, self.in_shape)),
    shapes=(
        lambda self, shape: _exchanged(shape, self.in_shape, self.out_shape),
        lambda self, shape: _exchanged(shape, self.out_shape, self.in_shape),
    ),
    settings="in_shape out_shape",
):
    """Another shape of the last axes."""

    def __init__(self, in_shape: Shape, out_shape: Shape, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")


def _lead(x: Any, own: Shape) -> Any:
    return x.shape[: len(x.shape) - len(own)]


# made of others ----------------------------------------------------------------------------------


def _lifted(constraint: Any, event_dim: int) -> Any:
    """A set of values with more axes."""
    missing = event_dim - constraint.event_dim
    return constraints.independent(constraint, missing) if missing else constraint


class ComposeTransform(
    Transform,
    bijective=property(lambda self: all(part.bijective for part in self.parts)),
    sign=property(lambda self: functools.reduce(operator.mul, [p.sign for p in self.parts], 1)),
    shapes=(
        lambda self, s: functools.reduce(lambda s, p: p.forward_shape(s), self.parts, Size(s)),
        lambda self, s: self.inv.forward_shape(s),
    ),
    settings="parts",
):
    """Transforms one after another.

    Example:
      >>> import functrans.compat.torch as torch
      >>> ComposeTransform([AffineTransform(1.0, 2.0), ExpTransform()]).inv(torch.tensor([1.0]))
      tensor([-0.5])
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    def _whole(self, parts: Sequence[Transform], first: str, last: str) -> Any:
        """The set where the parts end, with all axes that one of them needs."""
        if not parts:
            return constraints.real
        dim = getattr(parts[0], first).event_dim
        for part in parts:
            own = getattr(part, last).event_dim
            dim = max(dim + own - getattr(part, first).event_dim, own)
        return _lifted(getattr(parts[-1], last), dim)

    domain = property(lambda self: self._whole(self.parts[::-1], "codomain", "domain"))
    codomain = property(lambda self: self._whole(self.parts, "domain", "codomain"))

    @property
    def inv(self) -> Transform:
        """The inverses in the other order."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Tensor) -> Tensor:
        """The value at ``x``."""
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The sum of the parts' logarithms."""
        if not self.parts:
            return x.new_zeros(x.shape)
        total: Any = 0
        dim = self.domain.event_dim
        for part in self.parts:
            value = y if part is self.parts[-1] else part(x)
            slope = part.log_abs_det_jacobian(x, value)
            total = total + sum_rightmost(slope, dim - part.domain.event_dim)
            dim += part.codomain.event_dim - part.domain.event_dim
            x = value
        return total

    def __repr__(self) -> str:
        return f"{type(self).__name__}(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


identity_transform = ComposeTransform([])


def _independent_call(which: str, apply: Callable[[Any], Any]) -> Callable[..., Any]:
    def call(self: Any, x: Tensor) -> Tensor:
        if len(x.shape) < getattr(self, which).event_dim:
            raise ValueError("Too few dimensions on input")
        found: Tensor = apply(self.base_transform)(x)
        return found

    return call


class IndependentTransform(
    Transform,
    domain=property(lambda self: self._further(self.base_transform.domain)),
    codomain=property(lambda self: self._further(self.base_transform.codomain)),
    bijective=property(lambda self: self.base_transform.bijective),
    sign=property(lambda self: self.base_transform.sign),
    call=_independent_call("domain", lambda base: base),
    inverse=_independent_call("codomain", lambda base: base.inv),
    log_slope=lambda self, x, y: sum_rightmost(
        self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims
    ),
    shapes=(
        lambda self, shape: self.base_transform.forward_shape(shape),
        lambda self, shape: self.base_transform.inverse_shape(shape),
    ),
    settings="base_transform reinterpreted_batch_ndims",
):
    """A transform of which further axes make one value."""

    def __init__(
        self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0
    ) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _further(self, constraint: Constraint) -> Constraint:
        return constraints.independent(constraint, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


class _Parts(
    Transform,
    domain=property(lambda self: self._sets("domain")),
    codomain=property(lambda self: self._sets("codomain")),
    bijective=property(lambda self: all(t.bijective for t in self.transforms)),
    call=lambda self, x: self._joined(self._each(self.transforms, x), axis=self.dim),
    inverse=lambda self, y: self._joined(
        self._each([t.inv for t in self.transforms], y), axis=self.dim
    ),
):
    """A transform for each part along an axis."""

    _joined: Any
    _set: Any
    _split: Any
    length: Any

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _sets(self, which: str) -> Any:
        return self._set([getattr(t, which) for t in self.transforms])

    def _each(self, functions: Sequence[Any], *values: Any) -> list[Any]:
        """Functions of the parts of values."""
        for x in values:
            if not -len(x.shape) <= self.dim < len(x.shape) or x.shape[self.dim] != self.length:
                raise AssertionError(
                    f"axis {self.dim} of {tuple(x.shape)} must have the extent {self.length} of "
                    "the transforms together"
                )
        parts = map(self._split, values)
        return [f(*row) for f, *row in zip(functions, *parts, strict=True)]


def _cat_slope(self: Any, x: Tensor, y: Tensor) -> Any:
    """Those of the parts, or their sum where the axis is one of an event."""
    whole, parts = self.event_dim, self.transforms
    slopes = self._each([t.log_abs_det_jacobian for t in parts], x, y)
    pairs = zip(slopes, parts, strict=True)
    slopes = [sum_rightmost(slope, whole - t.event_dim) for slope, t in pairs]
    dim = (self.dim - len(x.shape) if self.dim >= 0 else self.dim) + whole
    return fnp.concatenate(slopes, axis=dim) if dim < 0 else sum(slopes)


class CatTransform(
    _Parts,
    log_slope=_cat_slope,
    settings="transforms dim lengths",
    event_dim=property(lambda self: max(t.event_dim for t in self.transforms)),
    length=property(lambda self: sum(self.lengths)),
    _joined=fnp.concatenate,
    _set=lambda self, sets: constraints.cat(sets, self.dim, self.lengths),
    _split=lambda self, x: x.split(self.lengths, self.dim),
):
    """A transform for each of several parts of an axis."""

    def __init__(
        self,
        tseq: Sequence[Transform],
        dim: int = 0,
        lengths: Sequence[int] | None = None,
        cache_size: int = 0,
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(
                f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})"
            )


class StackTransform(
    _Parts,
    settings="transforms dim",
    length=property(lambda self: len(self.transforms)),
    _joined=fnp.stack,
    _set=lambda self, sets: constraints.stack(sets, self.dim),
    _split=lambda self, x: x.unbind(self.dim),
    log_slope=lambda self, x, y: self._joined(
        self._each([t.log_abs_det_jacobian for t in self.transforms], x, y), axis=self.dim
    ),
):
    """A transform for each element of an axis."""

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)
