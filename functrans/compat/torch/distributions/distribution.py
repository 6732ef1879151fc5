"""``Distribution``, the base of all, and ``Family``, whose classes are made of formulas.

Here: shapes, checks of parameters and values, what is derived of other methods; the words of which
a class statement of ``continuous`` and ``discrete`` consists. Not here: the distributions.

A formula is a function of arrays, recorded as one node. The names of its arguments say what it
reads: a value ``x`` first, where there is one, then attributes of the distribution.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.distributions``, for the names and
the behaviour; Nielsen and Nock, Entropies and cross-entropies of exponential families (ICIP 2010).
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from functrans.autograd.api import grad as gradient_of
from functrans.autograd.composites import composite
from functrans.autograd.methods.rows import known
from functrans.autograd.modes import enable_grad, no_grad
from functrans.autograd.promotion import result_dtype, to_dtype
from functrans.autograd.sizes import Size
from functrans.autograd.tensors import Tensor
from functrans.compat.torch.distributions import constraints
from functrans.compat.torch.distributions.constraints import Constraint
from functrans.compat.torch.distributions.utils import broadcast_all, lazy_property
from functrans.compat.torch.functional_names import TORCH

__all__ = ["Distribution", "ExponentialFamily", "Family"]

Shape = Sequence[int]
EMPTY = Size()
_PACKAGE = __name__.rpartition(".")[0]


def _absent(name: str, doc: str | None = None) -> Any:
    def get(self: object) -> Any:
        raise NotImplementedError(f"{type(self).__name__} has no {name}")

    return property(get, doc=doc)


class Distribution:
    """A probability distribution, or several along the axes of ``batch_shape``.

    Args:
      batch_shape: extents of the parameters.
      event_shape: extents of one value.
      validate_args: whether parameters and values are checked, by default unless Python runs with
        ``-O``.

    Raises:
      ValueError: a parameter does not lie in its set.

    Example:
      >>> import functrans.compat.torch as torch
      >>> from functrans.compat.torch.distributions import Normal
      >>> normal = Normal(torch.tensor([0.0, 1.0]), 2.0)
      >>> normal.batch_shape, normal.mean, normal.stddev
      (torch.Size([2]), tensor([0., 1.]), tensor([2., 2.]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args: bool = __debug__

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions are checked that do not say so themselves."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    def __init__(
        self,
        batch_shape: Shape = EMPTY,
        event_shape: Shape = EMPTY,
        validate_args: bool | None = None,
    ) -> None:
        self._batch_shape = batch_shape if type(batch_shape) is Size else Size(batch_shape)
        self._event_shape = event_shape if type(event_shape) is Size else Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _is_given(self, name: str) -> bool:
        """Whether a parameter does not just follow from others."""
        found = getattr(type(self), name, None)
        return name in vars(self) or not isinstance(found, lazy_property)

    def _check_parameters(self) -> None:
        try:
            sets = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = "
                "{}` or initialize the distribution with `validate_args=False` to turn off "
                "validation.",
                stacklevel=3,
            )
            return
        for name, constraint in sets.items():
            if constraints.is_dependent(constraint):
                continue
            if not self._is_given(name):
                continue
            value = getattr(self, name)
            if not _holds(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape "
                    f"{tuple(value.shape)}) of distribution {self!r} to satisfy the constraint "
                    f"{constraint!r}, but found invalid values:\n{value}"
                )

    batch_shape = property(lambda self: self._batch_shape, doc="Extents of the parameters.")
    event_shape = property(lambda self: self._event_shape, doc="Extents of one value.")
    arg_constraints: Any = _absent("arg_constraints", "Sets of the parameters by name.")
    support: Any = _absent("support", "The set of the values.")
    mean: Any = _absent("mean", "The mean.")
    variance: Any = _absent("variance", "The variance.")
    stddev: Any = property(lambda self: self.variance.sqrt(), doc="The standard deviation.")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        raise NotImplementedError(f"{type(self).__name__} has no expand")

    def sample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values without derivative; ``sample_shape`` comes first in their shape."""
        with no_grad():
            return self.rsample(sample_shape).detach()

    def rsample(self, sample_shape: Shape = EMPTY) -> Tensor:
        """Random values that are differentiable in the parameters."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample")

    def sample_n(self, n: int) -> Tensor:
        """``n`` random values; deprecated."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.",
            FutureWarning,
            stacklevel=2,
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density, or of the probability, at values."""
        raise NotImplementedError(f"{type(self).__name__} has no log_prob")

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of at most a value."""
        raise NotImplementedError(f"{type(self).__name__} has no cdf")

    def icdf(self, value: Tensor) -> Tensor:
        """The value of a given cumulative probability."""
        raise NotImplementedError(f"{type(self).__name__} has no icdf")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values, along a new first axis.

        Args:
          expand: whether the other axes are those of ``batch_shape``, or of extent 1.
        """
        raise NotImplementedError(f"{type(self).__name__} has no enumerate_support")

    def entropy(self) -> Tensor:
        """Shannon's entropy, in nats."""
        raise NotImplementedError(f"{type(self).__name__} has no entropy")

    def perplexity(self) -> Tensor:
        """The exponential of the entropy."""
        return self.entropy().exp()

    def _extended_shape(self, sample_shape: Shape = EMPTY) -> Size:
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Check values.

        Raises:
          ValueError: they are of the wrong type or shape, or not in the support.
        """
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        shape, event = tuple(value.shape), tuple(self._event_shape)
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(
                "The right-most size of value must match event_shape: "
                f"{Size(shape)} vs {self._event_shape}."
            )
        expected = self._batch_shape + self._event_shape
        if any(i != j and 1 not in (i, j) for i, j in zip(shape[::-1], expected[::-1])):  # noqa: B905  # the shorter one counts
            raise ValueError(
                f"Value is not broadcastable with batch_shape+event_shape: {Size(shape)} vs "
                f"{Size(expected)}."
            )
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please "
                "initialize the distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not _holds(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {shape}) to be within "
                f"the support ({support!r}) of the distribution {self!r}, but found invalid "
                f"values:\n{value}"
            )

    def _widened(self, batch_shape: Shape, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters with a larger ``batch_shape``."""
        axes = len(self._batch_shape)
        return {
            name: value.expand((*batch_shape, *(value.shape[axes:] if value.ndim > axes else ())))
            for name, value in parameters.items()
        }

    def _expanded(self, batch_shape: Shape, _instance: object, **attributes: Any) -> Any:
        """An object of the class with a larger ``batch_shape`` and given attributes."""
        new = self._get_checked_instance(_constructed(self), _instance)
        vars(new).update(attributes)
        Distribution.__init__(new, batch_shape, self._event_shape, False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: object = None) -> Any:
        """An empty distribution of the class, for ``expand``."""
        if _instance is not None:
            return _instance
        if type(self).__init__ is not cls.__init__:  # type: ignore[misc]  # of the class
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ "
                "method must also define a custom .expand() method."
            )
        return type(self).__new__(type(self))

    def __repr__(self) -> str:
        given = {name: vars(self)[name] for name in self.arg_constraints if name in vars(self)}
        texts = [
            f"{name}: {_number(value) if value.numel() == 1 else Size(value.shape)}"
            for name, value in given.items()
        ]
        return f"{type(self).__name__}({', '.join(texts)})"


def _constructed(self: Distribution) -> type:
    """The class of the library whose constructor an object should have."""
    return next(c for c in type(self).__mro__ if c.__module__.startswith(_PACKAGE))


def _number(value: Tensor) -> object:
    array = known(value)
    return value if array is None else array.reshape(()).item() if array.ndim == 0 else value


def _holds(constraint: Constraint, value: Any) -> bool:
    """Whether values lie in a set; those that are not known, in ``vmap``, are not checked."""
    with no_grad():
        found = known(constraint.check(value))
    return found is None or bool(found.all())


class ExponentialFamily(Distribution):
    """A distribution with natural parameters, from which its entropy follows.

    A subclass gives ``_natural_params``, ``_log_normalizer(*params)`` and
    ``_mean_carrier_measure``, or its own ``entropy``.
    """

    _natural_params: Any = _absent("_natural_params")
    _mean_carrier_measure: Any = _absent("_mean_carrier_measure")

    def _log_normalizer(self, *natural_params: Tensor) -> Tensor:
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """By the gradient of the logarithm of the normaliser (Bregman's divergence)."""
        result = -self._mean_carrier_measure
        with enable_grad():
            params = [p.detach().requires_grad_() for p in self._natural_params]
            log_normalizer = self._log_normalizer(*params)
            gradients = gradient_of(log_normalizer.sum(), params, create_graph=True)
        result = result + log_normalizer
        for param, gradient in zip(params, gradients, strict=True):
            term: Any = param * gradient
            result = result - term.reshape(*self._batch_shape, -1).sum(-1)
        return result


def construct(self: Family, *args: Any, **kwargs: Any) -> None:
    """The constructor of each family, whose ``super().__init__`` is ``Distribution``'s."""
    names = self._names
    values = {**self._defaults, **dict(zip(names, args, strict=False)), **kwargs}
    if (
        len(args) > len(names)
        or values.keys() != self._known
        or (args and not kwargs.keys().isdisjoint(names[: len(args)]))
    ):
        raise TypeError(
            f"{type(self).__name__}() takes the arguments {', '.join(names[:-1])} and "
            f"validate_args, got {len(args)} by position and {sorted(kwargs)} by name"
        )
    self._build(values)


class _Signature:
    """The arguments of a family's constructor, for ``inspect.signature``."""

    def __get__(self, instance: object, owner: type[Family]) -> inspect.Signature:
        if owner.__init__ is not construct:
            raise AttributeError("__signature__")
        empty, kind = inspect.Parameter.empty, inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature(
            [
                inspect.Parameter(name, kind, default=owner._defaults.get(name, empty))
                for name in owner._names
            ]
        )


class Family(Distribution):
    """Distributions whose parameters have one shape, described by the words of a class statement.

    Args:
      parameters: their sets by name: constraints, or functions of the object.
      arguments: names of the constructor's arguments; those that are no parameters stay as given.
      defaults: defaults of arguments.
      support: the set of the values: a constraint, or a function of the object.
      shapes: from the object and the shape of a parameter to ``batch_shape`` and ``event_shape``.
      sample: from a shape and attributes, tensors, to random values.
      rsample: likewise, where they are differentiable.
      **formulas: functions of the attributes they name, or a name of one: ``log_prob``, ``cdf`` and
        ``icdf``, first of a value, ``mean``, ``mode``, ``variance``, ``stddev``, ``entropy``.

    Example:
      >>> from functrans import numpy as fnp
      >>> import functrans.compat.torch as torch
      >>> class Triangle(
      ...     Family,
      ...     parameters={"height": constraints.positive},
      ...     support=lambda self: constraints.interval(0.0, 2.0 / self.height),
      ...     log_prob=lambda x, height: fnp.log(height - x * height**2 / 2),
      ...     mean=lambda height: 2 / (3 * height),
      ... ):
      ...     pass
      >>> Triangle(1.0).log_prob(torch.tensor(1.0)), Triangle(height=2.0).mean
      (tensor(-0.6931), tensor(0.3333))
    """

    _names: tuple[str, ...] = ()
    _known: frozenset[str] = frozenset()
    _parameter_names: tuple[str, ...] = ()
    _settings: tuple[str, ...] = ()
    _kept: tuple[str, ...] = ()
    _defaults: Mapping[str, Any] = {}
    alpha: Tensor
    concentration: Tensor
    concentration0: Tensor
    concentration1: Tensor
    df: Tensor
    high: Tensor
    loc: Tensor
    low: Tensor
    rate: Tensor
    scale: Tensor

    def __init_subclass__(
        cls,
        parameters: Mapping[str, Any] | None = None,
        arguments: str = "",
        defaults: Mapping[str, Any] = {},  # read only
        support: Any = None,
        shapes: Callable[[Any, Size], tuple[Shape, Shape]] | None = None,
        **formulas: Any,
    ) -> None:
        super().__init_subclass__()
        if parameters is not None:
            names = arguments.split() or parameters
            cls._names = (*names, "validate_args")
            cls._known = frozenset(cls._names)
            cls._parameter_names = tuple(name for name in names if name in parameters)
            cls._settings = tuple(name for name in names if name not in parameters)
            cls._defaults = {**defaults, "validate_args": None}
            cls.arg_constraints = _sets(parameters)
            if "__init__" not in vars(cls):
                cls.__init__ = construct  # type: ignore[method-assign]  # of the words
        if inspect.isfunction(support):
            support = constraints.dependent_property(support, is_discrete=False, event_dim=0)
        if support is not None:
            cls.support = support
        if shapes is not None:
            cls._shapes = shapes  # type: ignore[assignment,method-assign]  # of the words
        for name, word in formulas.items():
            setattr(cls, name, _member(name, word))
        if not {"sample", "rsample"}.isdisjoint(formulas):
            cls.has_rsample = "rsample" in formulas

    if TYPE_CHECKING:

        def __init__(self, *args: Any, **kwargs: Any) -> None: ...

    __signature__ = _Signature()

    def _build(self, values: dict[str, Any]) -> None:
        """Keep the arguments of the constructor, given by name."""
        self._set(self._prepared(values), values["validate_args"])

    def _prepared(self, values: dict[str, Any]) -> dict[str, Tensor]:
        """Parameters of one shape; the other arguments are kept."""
        for name in self._settings:
            setattr(self, name, values[name])
        names = self._parameter_names
        tensors = broadcast_all(*[values[name] for name in names])
        return dict(zip(names, tensors, strict=True))

    def _shapes(self, shape: Size) -> tuple[Shape, Shape]:
        """``batch_shape`` and ``event_shape``, of the shape of a parameter."""
        return shape, EMPTY

    def _set(self, parameters: dict[str, Tensor], validate_args: bool | None) -> None:
        """Keep parameters of one shape, and check them."""
        vars(self).update(parameters)
        shape = next(iter(parameters.values())).shape
        Distribution.__init__(self, *self._shapes(shape), validate_args)

    def expand(self, batch_shape: Shape, _instance: object = None) -> Any:
        """The same with a larger ``batch_shape``."""
        new = self._get_checked_instance(_constructed(self), _instance)
        for name in (*self._settings, *self._kept):
            setattr(new, name, getattr(self, name))
        given = filter(self._is_given, self._parameter_names)
        parameters = {name: getattr(self, name) for name in given}
        new._set(self._widened(batch_shape, parameters), False)
        new._validate_args = self._validate_args
        return new


def _sets(parameters: Mapping[str, Any]) -> Any:
    """A table of constraints, a property where one depends on the object."""
    if not any(inspect.isfunction(value) for value in parameters.values()):
        return dict(parameters)

    def arg_constraints(self: Any) -> dict[str, Constraint]:
        return {k: v(self) if inspect.isfunction(v) else v for k, v in parameters.items()}

    return constraints.dependent_property(arg_constraints)


def _member(name: str, word: Any) -> Any:
    """The method or property that a word stands for."""
    if isinstance(word, str):
        return property(lambda self: getattr(self, word))
    first = {"log_prob": 1, "cdf": 1, "icdf": 1, "sample": 1, "rsample": 1}.get(name, 0)
    names = word.__code__.co_varnames[first : word.__code__.co_argcount]
    label = name.title().replace("_", "")

    def formula(self: Any) -> Any:
        return composite(label, word, *[getattr(self, each) for each in names])

    def of_value(self: Any, value: Any) -> Any:
        if self._validate_args and name != "icdf":
            self._validate_sample(value)
        operands = [getattr(self, each) for each in names]
        value = value_beside(value, operands)
        if value.dtype.kind == "f":  # of which NumPy would make float64 beside integers
            operands = [
                to_dtype(x, value.dtype) if isinstance(x, Tensor) and x.dtype.kind in "iub" else x
                for x in operands
            ]
        return composite(label, word, value, *operands)

    def rsample(self: Any, sample_shape: Shape = EMPTY) -> Any:
        shape = self._extended_shape(sample_shape)
        return word(shape, *[getattr(self, each) for each in names])

    def sample(self: Any, sample_shape: Shape = EMPTY) -> Any:
        with no_grad():
            return rsample(self, sample_shape).detach()

    found: Any = {"sample": sample, "rsample": rsample}.get(name, of_value if first else formula)
    found.__name__ = found.__qualname__ = name
    found.__doc__ = getattr(Distribution, name).__doc__
    return found if first or name == "entropy" else property(found)


def value_beside(value: Any, operands: Sequence[Any]) -> Any:
    """A value of the dtype that an operation with parameters has."""
    if not isinstance(value, Tensor):
        like = next((x for x in operands if isinstance(x, Tensor)), None)
        return value if like is None else TORCH.tensor(value, dtype=like.dtype)
    dtype = result_dtype(value, *operands)
    return value if dtype == value.dtype else to_dtype(value, dtype)
