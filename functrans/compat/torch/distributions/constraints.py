"""Sets in which parameters and values of distributions lie.

Here: ``Constraint``, and one row for each set. Not here: transforms onto them
(``constraint_registry``).

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.distributions.constraints``, for
the names and the behaviour.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans.autograd.methods.linear_algebra import LINALG
from functrans.autograd.methods.rows import known
from functrans.autograd.tensors import Tensor

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent",
    "dependent_property", "greater_than", "greater_than_eq", "half_open_interval", "independent",
    "integer_interval", "interval", "is_dependent", "less_than", "lower_cholesky",
    "lower_triangular", "multinomial", "nonnegative", "nonnegative_integer", "one_hot", "positive",
    "positive_definite", "positive_integer", "positive_semidefinite", "real", "real_vector",
    "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip

Bound = Tensor | float


class Constraint:
    """A set of values.

    Attributes:
      is_discrete: whether the values are integers.
      event_dim: how many of the last axes make one value.

    Example:
      >>> import functrans.compat.torch as torch
      >>> positive.check(torch.tensor([-1.0, 2.0]))
      tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0
    _bounds: tuple[str, ...] = ()

    def check(self, value: Tensor) -> Tensor:
        """Whether values lie in the set, without their last ``event_dim`` axes."""
        raise NotImplementedError

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__.lstrip('_')}({given})"


def _kind(
    name: str,
    check: Callable[..., Tensor],
    bounds: str = "",
    is_discrete: bool = False,
    event_dim: int = 0,
) -> type[Any]:
    """A class of constraints, with a check of a value and the bounds."""
    names = tuple(bounds.split())

    def __init__(self: Any, *args: Bound, **given: Bound) -> None:  # noqa: N807  # of the class
        values = {**dict(zip(names, args, strict=False)), **given}
        if len(args) > len(names) or set(values) != set(names):
            raise TypeError(f"{name.strip('_')}() takes the arguments {', '.join(names) or 'none'}")
        vars(self).update(values)

    def checked(self: Any, value: Tensor) -> Tensor:
        return check(value, *[getattr(self, bound) for bound in names])

    attributes = {
        "__init__": __init__, "check": checked, "_bounds": names, "is_discrete": is_discrete,
        "event_dim": event_dim, "__module__": __name__,
        "__doc__": f"Values for which ``{bounds or name.strip('_')}`` hold.",
    }  # fmt: skip
    return type(name, (Constraint,), attributes)


def _whole(value: Tensor) -> Any:
    return value % 1 == 0


def _every(value: Any, count: int = 1) -> Any:
    for _ in range(count):
        value = value.all(-1)
    return value


def _is_cholesky(value: Any) -> Any:
    return _every(value.tril() == value, 2) & _every(value.diagonal(0, -2, -1) > 0)


def _has_unit_rows(value: Any) -> Any:
    tolerance = float(np.finfo(value.dtype).eps) * value.shape[-1] * 10
    norm = (value.detach() ** 2).sum(-1).sqrt()
    return _every((norm - 1).abs() <= tolerance)


def _is_square(value: Any) -> Any:
    return value.new_full(value.shape[:-2], value.shape[-2] == value.shape[-1]).bool()


def _is_symmetric(value: Any) -> Any:
    if value.shape[-2] != value.shape[-1]:
        return _is_square(value)
    return _every(value.isclose(value.mT, atol=1e-6), 2)


def _if_symmetric(holds: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A check of matrices that are known to be symmetric, as far as values are known."""

    def check(value: Any) -> Any:
        is_symmetric = _is_symmetric(value)
        found = known(is_symmetric)
        if value.shape[-2] != value.shape[-1] or (found is not None and not found.all()):
            return is_symmetric
        return is_symmetric & holds(value.detach())

    return check


def _has_factor(value: Any) -> Any:
    factor, info = LINALG["cholesky_ex"](value)
    return (info == 0) & _every(factor.isfinite(), 2)


_Boolean = _kind("_Boolean", lambda x: (x == 0) | (x == 1), is_discrete=True)
_OneHot = _kind(
    "_OneHot",
    lambda x: _every((x == 0) | (x == 1)) & (x.sum(-1) == 1),
    is_discrete=True,
    event_dim=1,
)
_Real = _kind("_Real", lambda x: x == x)  # NaN is not
_Simplex = _kind("_Simplex", lambda x: _every(x >= 0) & ((x.sum(-1) - 1).abs() < 1e-6), event_dim=1)
_LowerTriangular = _kind("_LowerTriangular", lambda x: _every(x.tril() == x, 2), event_dim=2)
_LowerCholesky = _kind("_LowerCholesky", _is_cholesky, event_dim=2)
_CorrCholesky = _kind("_CorrCholesky", lambda x: _is_cholesky(x) & _has_unit_rows(x), event_dim=2)
_Square = _kind("_Square", _is_square, event_dim=2)
_Symmetric = _kind("_Symmetric", _is_symmetric, event_dim=2)
_PositiveSemidefinite = _kind(
    "_PositiveSemidefinite",
    _if_symmetric(lambda x: _every(fnp.linalg.eigvalsh(x) >= 0)),
    event_dim=2,
)
_PositiveDefinite = _kind("_PositiveDefinite", _if_symmetric(_has_factor), event_dim=2)

greater_than = _kind("_GreaterThan", lambda x, low: low < x, "lower_bound")
greater_than_eq = _kind("_GreaterThanEq", lambda x, low: low <= x, "lower_bound")
less_than = _kind("_LessThan", lambda x, high: x < high, "upper_bound")
interval = _kind(
    "_Interval", lambda x, low, high: (low <= x) & (x <= high), "lower_bound upper_bound"
)
half_open_interval = _kind(
    "_HalfOpenInterval", lambda x, low, high: (low <= x) & (x < high), "lower_bound upper_bound"
)
integer_interval = _kind(
    "_IntegerInterval",
    lambda x, low, high: _whole(x) & (low <= x) & (x <= high),
    "lower_bound upper_bound",
    is_discrete=True,
)
_IntegerGreaterThan = _kind(
    "_IntegerGreaterThan", lambda x, low: _whole(x) & (x >= low), "lower_bound", is_discrete=True
)
multinomial = _kind(
    "_Multinomial",
    lambda x, high: _every(x >= 0) & (x.sum(-1) <= high),
    "upper_bound",
    is_discrete=True,
    event_dim=1,
)


class _Dependent(Constraint):
    """A set that depends on other parameters."""

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._known = {"is_discrete": is_discrete, "event_dim": event_dim}

    def _get(self, name: str) -> Any:
        if self._known[name] is None:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return self._known[name]

    is_discrete = property(lambda self: self._get("is_discrete"))
    event_dim = property(lambda self: self._get("event_dim"))

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> Any:
        """Such a set of which more is known."""
        known = self._known
        return _Dependent(
            is_discrete=known["is_discrete"] if is_discrete is None else is_discrete,  # type: ignore[arg-type]  # by its key
            event_dim=known["event_dim"] if event_dim is None else event_dim,
        )

    def check(self, value: Tensor) -> Tensor:
        """Nothing.

        Raises:
          ValueError: always.
        """
        raise ValueError("Cannot determine validity of dependent constraint")


class dependent_property(property, _Dependent):  # noqa: N801  # torch's name
    """A property that is a constraint, and of the class a dependent one."""

    def __init__(
        self,
        fn: Callable[[Any], Any] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ) -> None:
        super().__init__(fn)
        self._known = {"is_discrete": is_discrete, "event_dim": event_dim}

    def __call__(self, fn: Any = None, **known: Any) -> Any:
        """The property of a function, where it is a decorator with arguments."""
        return dependent_property(fn, **{**self._known, **known})


class independent(Constraint):  # noqa: N801  # torch's name
    """A set of values along further axes, each of which lies in another set."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(
        lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims
    )

    def check(self, value: Tensor) -> Tensor:
        """Whether all along those axes do.

        Raises:
          ValueError: there are too few axes.
        """
        found: Any = self.base_constraint.check(value)
        if len(found.shape) < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {len(value.shape)}")
        return _every(found, self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class _Several(Constraint):
    """Sets of parts along an axis."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq = list(cseq)
        self.dim = dim

    is_discrete = property(lambda self: any(c.is_discrete for c in self.cseq))

    def __repr__(self) -> str:
        return f"{type(self).__name__.capitalize()}()"


class cat(_Several):  # noqa: N801  # torch's name
    """Sets of parts of an axis, of given lengths."""

    def __init__(
        self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None
    ) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    event_dim = property(lambda self: max(c.event_dim for c in self.cseq))

    def check(self, value: Tensor) -> Tensor:
        """Whether each part lies in its set."""
        parts = value.split(self.lengths, self.dim)
        pairs = zip(self.cseq, parts, strict=True)
        return fnp.concatenate([c.check(part) for c, part in pairs], axis=self.dim)


class stack(_Several):  # noqa: N801  # torch's name
    """Sets of the elements of an axis."""

    @property
    def event_dim(self) -> int:
        """That of the parts, and their axis where it is one of an event."""
        found: int = max(c.event_dim for c in self.cseq)
        return found + 1 if self.dim + found < 0 else found

    def check(self, value: Tensor) -> Tensor:
        """Whether each element lies in its set."""
        pairs = zip(self.cseq, value.unbind(self.dim), strict=True)
        return fnp.stack([c.check(part) for c, part in pairs], axis=self.dim)


class MixtureSameFamilyConstraint(Constraint):
    """The set of values of a mixture, from that of its components."""

    def __init__(self, base_constraint: Constraint) -> None:
        if not isinstance(base_constraint, Constraint):
            raise TypeError(f"expected a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    is_discrete = property(lambda self: self.base_constraint.is_discrete)
    event_dim = property(lambda self: self.base_constraint.event_dim)

    def check(self, value: Tensor) -> Tensor:
        """Whether all components have a value in theirs.

        Raises:
          ValueError: there are too few axes.
        """
        if len(value.shape) < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {len(value.shape)}")
        found: Any = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        axes = len(value.shape) - self.event_dim
        return _every(found.flatten(axes)) if len(found.shape) > axes else found

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_constraint!r})"


def is_dependent(constraint: object) -> bool:
    """Whether a set depends on other parameters.

    Example:
      >>> is_dependent(dependent), is_dependent(real)
      (True, False)
    """
    return isinstance(constraint, _Dependent)


dependent = _Dependent()
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
real = _Real()
real_vector = independent(real, 1)
positive = greater_than(0.0)
nonnegative = greater_than_eq(0.0)
unit_interval = interval(0.0, 1.0)
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
