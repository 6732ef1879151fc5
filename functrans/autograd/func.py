"""Functional transforms of functions that are written with tensors (``torch.func``).

Not here: how tensors enter a transform (``autograd.on_values``), ``vmap``
(``autograd.func_batches``), functional calls of modules (``autograd.func_modules``), the transforms
of functions of arrays, which these are made of (``transforms``).

Layer: ``autograd``.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.anomaly import watching
from functrans.autograd.func_batches import vmap as vmap
from functrans.autograd.func_modules import functional_call as functional_call
from functrans.autograd.func_modules import stack_module_state as stack_module_state
from functrans.autograd.modes import entered, modes
from functrans.autograd.on_values import (
    OnValues,
    all_leaves,
    argument_numbers,
    as_given,
    check_argnums,
    check_chunk,
    check_randomness,
    check_results,
    check_tensors,
    conjugated,
    returned,
    transformed,
    without_aux,
)
from functrans.autograd.random import BatchLevel
from functrans.autograd.refusals import as_torchs
from functrans.autograd.tensors import Tensor
from functrans.core.boundary import boundary
from functrans.core.boundary import guard as _guard
from functrans.core.dispatch import Tracer
from functrans.namespaces import listing
from functrans.passes.pushing import PushingTracer
from functrans.transforms import forward, jacobian, reverse

__all__ = [
    "debug_unwrap",
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
__dir__ = listing(__all__)

# gradients ---------------------------------------------------------------------------------------


def _check_scalar(has_aux: bool, result: object) -> None:
    """Refuse a result that has no gradient."""
    who = "grad_and_value(f)(*args)"
    if has_aux:
        result = without_aux(who, result)
    if not isinstance(result, Tensor):
        raise RuntimeError(f"{who}: Expected f(*args) to return a Tensor, got {type(result)}")
    if result.dtype.kind == "c":
        raise RuntimeError(
            f"grad can be implicitly created only for real scalar outputs but got {result.dtype}; "
            "use x.abs() or x.real"
        )
    if result.shape:
        raise RuntimeError(
            f"{who}: Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{len(result.shape)} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Transform a function of tensors with a scalar result into its gradient.

    Args:
      func: function of tensors (and containers of them) that returns a tensor without axes.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``func`` returns ``(out, aux)``.

    Returns:
      Function with the arguments of ``func`` that returns the gradient, or ``(gradient, aux)``.

    Raises:
      RuntimeError: the result is no scalar tensor, or an argument does not exist.
      ValueError: an argument is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> grad(lambda x: (x * x * x).sum())(tensor([1.0, 2.0]))
      tensor([ 3., 12.])
    """

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def gradient(*args: object, **kwargs: object) -> Any:
        result, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (result, value[1]) if has_aux else result

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Transform a function of tensors into one that gives gradient and value.

    Args:
      func: function of tensors that returns a tensor without axes.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``func`` returns ``(out, aux)``.

    Returns:
      Function that returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Raises:
      RuntimeError: the result is no scalar tensor, or an argument does not exist.
      ValueError: an argument is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> grad_and_value(lambda x: x * x)(tensor(3.0))
      (tensor(6.), tensor(9.))
    """
    numbers = argument_numbers(argnums)

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def gradient_and_value(*args: object, **kwargs: object) -> tuple[Any, ...]:
        check_argnums(numbers, args)
        value, gradient = transformed(
            lambda f: reverse.value_and_grad(f, numbers, has_aux),
            func,
            args,
            kwargs,
            direction="reverse",
            check=functools.partial(_check_scalar, has_aux),
            place=0,
        )
        return tree.map(conjugated, gradient), value

    return gradient_and_value


@boundary
def vjp(func: Callable[..., Any], *primals: object, has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function of tensors and return its pullback.

    Args:
      func: function of tensors.
      *primals: point of evaluation.
      has_aux: whether ``func`` returns ``(out, aux)``.

    Returns:
      ``(out, pullback)`` or ``(out, pullback, aux)``; ``pullback`` takes cotangents shaped like
      ``out`` and returns a tuple shaped like ``primals``.

    Raises:
      RuntimeError: ``func`` returns something else than tensors.
      ValueError: a primal is no tensor.

    Example:
      >>> from functrans.autograd import tensor
      >>> out, pullback = vjp(lambda x, y: x * y, tensor(3.0), tensor(4.0))
      >>> pullback(tensor(1.0))
      (tensor(4.), tensor(3.))
    """
    check_tensors(primals)
    check = functools.partial(check_results, "vjp(f, *primals)", "f(*primals)", has_aux)
    on_values = OnValues(func, primals, {}, direction="reverse", check=check)
    with as_torchs():
        out, pull, *aux = reverse.vjp(  # type: ignore[call-overload]  # has_aux is not known
            on_values, *tree.map(as_given, primals), has_aux=has_aux
        )

    def pullback(
        cotangents: object, retain_graph: object = None, create_graph: object = None
    ) -> tuple[Any, ...]:
        """Pull cotangents of the result back; the flags are accepted and not needed."""
        if tree.structure(cotangents) != tree.structure(out):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of "
                f"outputs to the function. cotangents: {tree.in_words(tree.structure(cotangents))}"
                f", primal output: {tree.in_words(tree.structure(out))}"
            )
        given = tree.map(conjugated, tree.map(as_given, cotangents))
        for i, (own, like) in enumerate(zip(tree.leaves(given), tree.leaves(out), strict=True)):
            if np.shape(own) != np.shape(like):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{i}] has a shape of {list(np.shape(own))} and "
                    f"output[{i}] has a shape of {list(np.shape(like))}."
                )
        with watching(), as_torchs():
            pulled = pull(given)
        return tree.map(conjugated, on_values.results(pulled))

    last = on_values.own_results(tuple(aux), is_last=True)
    return (on_values.own_results(out), pullback, *last)


@boundary
def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: object,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Evaluate a function of tensors and its directional derivative.

    Args:
      func: function of tensors.
      primals: tuple of arguments.
      tangents: tuple of the same structure: the direction.
      strict: whether results that do not depend on the primals raise; else their tangents are
        zeros.
      has_aux: whether ``func`` returns ``(out, aux)``.

    Returns:
      ``(out, tangent)`` or ``(out, tangent, aux)``.

    Raises:
      RuntimeError: primals or tangents are no tuples, their structures differ, ``func`` returns
        something else than tensors, or ``strict`` and a result that does not depend on them.

    Example:
      >>> from functrans.autograd import tensor
      >>> jvp(lambda x: x * x, (tensor(3.0),), (tensor(1.0),))
      (tensor(9.), tensor(6.))
    """
    who = "jvp(f, primals, tangents)"
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, tuple):
            raise RuntimeError(
                f"{who}: Expected {name} to be a tuple. E.g. it should be valid to call "
                "f(*primals)."
            )
        leaves = all_leaves(given)
        if not leaves:
            raise RuntimeError(f"{who}: Expected {name} to contain at least one Tensor.")
        for leaf in leaves:
            if not isinstance(leaf, (Tracer, np.ndarray)):
                raise RuntimeError(
                    f"{who}: Expected {name} to only contain Tensors, got {type(leaf)}"
                )
    if tree.structure(primals) != tree.structure(tangents):
        raise RuntimeError(
            f"{who}: Expected primals and tangents to have the same python structure."
        )
    for own, tangent in zip(tree.leaves(primals), tree.leaves(tangents), strict=True):
        if own.shape != tangent.shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the "
                f"original Tensor, this is not supported. Tensor is of size {list(own.shape)} "
                f"while the given forward gradient is of size {list(tangent.shape)}."
            )
    check = functools.partial(check_results, who, "f(*primals)", has_aux)
    on_values = OnValues(func, primals, {}, direction="forward", check=check)
    given, directions = tree.map(as_given, (primals, tangents))
    on_values.takes_writes = True

    def with_writes(*args: object) -> tuple[Any, ...]:
        """The writes beside the result: they have tangents, too."""
        result, written = _dependent(on_values, has_aux)(*args) if strict else on_values(*args)
        return ((result[0], written), result[1]) if has_aux else (result, written)

    with as_torchs():
        (out, written), (tangent, directions), *aux = forward.jvp(  # type: ignore[call-overload]  # as above
            with_writes, given, directions, has_aux
        )
    on_values.check_apart(tree.leaves(tangents))
    on_values.write_back(written)
    on_values.write_back(directions, tree.leaves(tangents))
    last = on_values.own_results(tuple(aux), is_last=True)
    own = tree.map(_viewed, on_values.own_results(out))
    tangent = tree.map(_of_integers, tangent, out)
    slopes = on_values.own_results(tangent, originals=tree.leaves(tangents))
    return (own, slopes, *last)


def _of_integers(tangent: Any, out: Any) -> Any:
    """The tangent of integers is zeros of their dtype."""
    return np.zeros(tangent.shape, out.dtype) if tree.is_float0(tangent) else tangent


def _viewed(x: Any) -> Any:
    """The primal of a dual tensor is a view."""
    return x.view_as(x) if isinstance(x, Tensor) else x


def _dependent(on_values: OnValues, has_aux: bool) -> Callable[..., Any]:
    """A function that refuses results which do not depend on its arguments."""

    def function(*args: object) -> Any:
        traces = {leaf._trace for leaf in tree.leaves(args) if isinstance(leaf, PushingTracer)}
        result, written = on_values(*args)
        for leaf in tree.leaves(result[0] if has_aux else result):
            is_pushed = isinstance(leaf, PushingTracer) and leaf._trace in traces
            if not is_pushed or leaf._tangent is None:
                raise RuntimeError(
                    "jvp(f, primals, tangents, strict=True): The output of f is independent of "
                    "the inputs. This is not allowed with strict=True."
                )
        return result, written

    return function


@boundary
def linearize(func: Callable[..., Any], *primals: object) -> tuple[Any, Callable[..., Any]]:
    """Evaluate a function of tensors and return its derivative there as a linear function.

    Args:
      func: function of tensors.
      *primals: point of evaluation.

    Returns:
      ``(out, pushforward)``; ``pushforward(*tangents)`` gives the tangent of ``out`` without
      running ``func`` again.

    Raises:
      RuntimeError: ``func`` returns something else than tensors.

    Example:
      >>> from functrans.autograd import tensor
      >>> out, pushforward = linearize(lambda x: x * x, tensor(3.0))
      >>> pushforward(tensor(1.0))
      tensor(6.)
    """
    check_tensors(primals)
    check = functools.partial(check_results, "linearize(f, *primals)", "f(*primals)", False)
    on_values = OnValues(func, primals, {}, direction="forward", check=check)
    with as_torchs():
        out, push = forward.linearize(on_values, *tree.map(as_given, primals))

    def pushforward(*tangents: object) -> Any:
        """Push tangents of the primals forward."""
        if tree.structure(tangents) != tree.structure(primals):
            raise RuntimeError(
                "Expected the tangents to have the same argspec as the primals. tangents: "
                f"{tree.in_words(tree.structure(tangents))}, primals: "
                f"{tree.in_words(tree.structure(primals))}"
            )
        with as_torchs():
            return on_values.results(push(*tree.map(as_given, tangents)))

    return on_values.own_results(out), pushforward


# Jacobians ---------------------------------------------------------------------------------------


def jacrev(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Jacobian of a function of tensors by reverse mode.

    Args:
      func: function of tensors.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``func`` returns ``(out, aux)``.
      chunk_size: how many rows are computed at once.

    Returns:
      Function that gives the Jacobian: axes of the result, then axes of the argument.

    Raises:
      RuntimeError: ``func`` returns something else than tensors, or an argument does not exist.
      ValueError: an argument is no tensor; ``chunk_size`` is not positive.

    Example:
      >>> from functrans.autograd import tensor
      >>> jacrev(lambda x: x * x)(tensor([1.0, 2.0]))
      tensor([[2., 0.],
              [0., 4.]])
    """
    check_chunk("jacrev", chunk_size)
    check = _real_results("jacrev", "vjp(f, *primals)", has_aux)
    numbers = argument_numbers(argnums)
    if chunk_size is None:
        transform = functools.partial(jacobian.jacrev, argnums=numbers, has_aux=has_aux)
    else:
        transform = functools.partial(
            jacobian.jacobian,
            argnums=numbers,
            has_aux=has_aux,
            mode="reverse",
            chunk_size=chunk_size,
        )
    return _jacobian("jacrev", func, numbers, transform, check, "reverse", has_aux)


def _real_results(who: str, call: str, has_aux: bool) -> Callable[[Any], None]:
    """The check of the results of a function that has a Jacobian."""

    def check(result: Any) -> None:
        check_results(call, "f(*primals)", has_aux, result)
        _check_real(who, "outputs", tree.leaves(result[0] if has_aux else result))

    return check


def _check_real(who: str, what: str, leaves: Sequence[Any]) -> None:
    """Refuse complex tensors.

    Raises:
      RuntimeError: there is one.
    """
    for i, leaf in enumerate(leaves):
        if leaf.dtype.kind == "c":
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {i}"
            )


def _jacobian(
    who: str,
    func: Callable[..., Any],
    numbers: Any,
    transform: Any,
    check: Any,
    direction: str,
    has_aux: bool,
) -> Callable[..., Any]:
    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def jacobian_of(*args: object, **kwargs: object) -> Any:
        check_argnums(numbers, args)
        chosen = [args[i] for i in (numbers if isinstance(numbers, tuple) else (numbers,))]
        _check_real(who, "inputs", tree.leaves(chosen))
        place = 1 if has_aux else None
        return transformed(transform, func, args, kwargs, direction, check, place)

    return jacobian_of


def jacfwd(
    func: Callable[..., Any],
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Jacobian of a function of tensors by forward mode.

    Args:
      func: function of tensors.
      argnums: which positional arguments to differentiate.
      has_aux: whether ``func`` returns ``(out, aux)``.
      randomness: ``"error"``, or ``"same"``; see :func:`vmap`.

    Returns:
      Function that gives the Jacobian, as :func:`jacrev`.

    Raises:
      RuntimeError: ``func`` returns something else than tensors, an argument does not exist, or a
        random operation where it raises.
      NotImplementedError: different random numbers for each direction.

    Example:
      >>> from functrans.autograd import tensor
      >>> jacfwd(lambda x: x * x)(tensor([1.0, 2.0]))
      tensor([[2., 0.],
              [0., 4.]])
    """
    check_randomness(randomness)
    if randomness == "different":
        raise NotImplementedError(
            "jacfwd: randomness='different' is not supported: the function runs once for all "
            "directions; draw outside, and pass the tensor as an argument"
        )
    check = _real_results("jacfwd", "jvp(f, primals, tangents)", has_aux)
    numbers = argument_numbers(argnums)

    def transform(f: OnValues) -> Callable[..., Any]:
        f.takes_writes = True

        def with_writes(*args: object, **kwargs: object) -> tuple[Any, Any]:
            result, written = f(*args, **kwargs)
            out, aux = result if has_aux else (result, None)
            return out, (aux, written)

        def with_aux(*args: object, **kwargs: object) -> tuple[Any, ...]:
            found, (aux, written) = jacobian.jacfwd(with_writes, numbers, has_aux=True)(
                *args, **kwargs
            )
            return (found, aux) if has_aux else found, written

        return with_aux

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def drawing(*args: object, **kwargs: object) -> Tensor:
        with entered({"batches": (*modes.batches, BatchLevel(randomness))}):
            return func(*args, **kwargs)

    return _jacobian("jacfwd", drawing, numbers, transform, check, "forward", has_aux)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Hessian of a function of tensors: forward mode over reverse mode.

    Args:
      func: function of tensors.
      argnums: which positional arguments to differentiate.

    Returns:
      Function that gives the Hessian.

    Raises:
      RuntimeError: ``func`` returns something else than tensors, or an argument does not exist.

    Example:
      >>> from functrans.autograd import tensor
      >>> hessian(lambda x: (x * x * x).sum())(tensor([1.0, 2.0]))
      tensor([[ 6.,  0.],
              [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


# values -------------------------------------------------------------------------------------------


def debug_unwrap(tensor: object, *, recurse: bool = True) -> Any:
    """The value that a tensor of a transform stands for.

    Args:
      tensor: a tensor.
      recurse: whether all transforms are taken off, or only the innermost.

    Returns:
      A tensor of an enclosing trace; the same tensor if it belongs to no transform.
    """
    value: Any = tensor
    while isinstance(value, Tracer):
        inner: Any = getattr(value, "_value", None)
        if isinstance(value, Tensor) and not isinstance(inner, Tracer):
            return value
        value = inner
        if isinstance(value, Tensor) and not recurse:
            return value
    return copy.copy(tensor) if value is None else returned(value)


_guard(globals(), __all__, homes=("functrans.autograd",))
