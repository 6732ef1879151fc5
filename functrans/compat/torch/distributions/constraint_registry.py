"""Which transform leads from all numbers to a set: ``biject_to`` and ``transform_to``.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.distributions``, for the behaviour.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints, transforms
from functrans.compat.torch.distributions.constraints import Constraint
from functrans.compat.torch.distributions.transforms import Transform

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]

Factory = Callable[[Any], Transform]


class ConstraintRegistry:
    """A table from classes of constraints to transforms onto their sets.

    Example:
      >>> import functrans.compat.torch as torch
      >>> biject_to(constraints.positive)(torch.tensor([0.0]))
      tensor([1.])
    """

    def __init__(self) -> None:
        self._registry: dict[type[Constraint], Factory] = {}

    def register(self, constraint: object, factory: Factory | None = None) -> Any:
        """Enter what makes the transform of a constraint; also a decorator.

        Args:
          constraint: its class, or one of that class.
          factory: from the constraint to the transform.

        Raises:
          TypeError: it is no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        kind = type(constraint) if isinstance(constraint, Constraint) else constraint
        if not (isinstance(kind, type) and issubclass(kind, Constraint)):
            raise TypeError(
                "Expected constraint to be either a Constraint subclass or instance, but got "
                f"{constraint}"
            )
        self._registry[kind] = factory
        return factory

    def __call__(self, constraint: Constraint) -> Transform:
        """The transform from unbounded numbers to a set.

        Raises:
          NotImplementedError: there is none for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _from_bound(bound: Any, sign: int) -> Transform:
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(bound, sign)]
    )


def _to_interval(constraint: Any) -> Transform:
    low, high = constraint.lower_bound, constraint.upper_bound
    if not isinstance(low, Tensor) and not isinstance(high, Tensor) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform(
        [transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)]
    )


_BOTH: dict[Any, Callable[..., Transform]] = {
    constraints.real: lambda c, of: transforms.identity_transform,
    constraints.greater_than: lambda c, of: _from_bound(c.lower_bound, 1),
    constraints.greater_than_eq: lambda c, of: _from_bound(c.lower_bound, 1),
    constraints.less_than: lambda c, of: _from_bound(c.upper_bound, -1),
    constraints.interval: lambda c, of: _to_interval(c),
    constraints.half_open_interval: lambda c, of: _to_interval(c),
    constraints.corr_cholesky: lambda c, of: transforms.CorrCholeskyTransform(),
    constraints.independent: lambda c, of: transforms.IndependentTransform(
        of(c.base_constraint), c.reinterpreted_batch_ndims
    ),
    constraints.cat: lambda c, of: transforms.CatTransform(list(map(of, c.cseq)), c.dim, c.lengths),
    constraints.stack: lambda c, of: transforms.StackTransform(list(map(of, c.cseq)), c.dim),
}
"""Those that are the same in both tables, of which the parts are looked up in one."""

for _registry in (biject_to, transform_to):
    for _constraint, _factory in _BOTH.items():
        _registry.register(_constraint, functools.partial(_factory, of=_registry))

biject_to.register(constraints.simplex, lambda c: transforms.StickBreakingTransform())
transform_to.register(constraints.simplex, lambda c: transforms.SoftmaxTransform())
transform_to.register(constraints.lower_cholesky, lambda c: transforms.LowerCholeskyTransform())
for _constraint in (constraints.positive_definite, constraints.positive_semidefinite):
    transform_to.register(_constraint, lambda c: transforms.PositiveDefiniteTransform())
