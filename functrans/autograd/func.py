"""Functional transforms of functions that are written with tensors (``torch.func``).

Here: ``grad``, ``vjp``, ``jvp``, Jacobians, ``vmap`` and relatives with torch's arguments, and
``functional_call``. Not here: the transforms of functions of arrays, which these are made of
(``transforms``).

A tensor that enters a transform is a tensor of a new imperative trace, whose value is a tracer of
the transform; what is done with it goes on to the transform. Tensors outside of it, arguments and
those that the function refers to, belong to enclosing traces: a result is differentiable with
respect to them.

Layer: ``autograd``.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functrans import tree
from functrans.autograd.modes import modes
from functrans.autograd.nodes import LeafNode
from functrans.autograd.recording import (
    PERMANENT,
    ImperativeTrace,
    enter_session,
    mark_origin,
    namespaces,
    node_of,
)
from functrans.autograd.tensors import Tensor
from functrans.ir.avals import is_differentiable_dtype
from functrans.primitives.complex_parts import conjugate
from functrans.trace import Tracer, shape_of, tracing
from functrans.transforms import forward, jacobian, reverse, vectorize
from functrans.transforms.arguments import name_of

# tensors in, tensors out -------------------------------------------------------------------------


def _given(x: Any) -> Any:
    """A tensor for a transform: its array, if nothing is recorded of it."""
    if not isinstance(x, Tensor):
        return x
    enter_session(x)
    return x._value if node_of(x) is None and x._trace is PERMANENT else x


def _returned(x: Any) -> Any:
    """A result of a transform as a tensor."""
    return Tensor.of(np.asarray(x)) if isinstance(x, (np.ndarray, np.generic)) else x


def _conjugated(x: Any) -> Any:
    """The gradient of a cotangent, or the reverse."""
    return conjugate(x) if getattr(x, "dtype", _REAL).kind == "c" else x


_REAL = np.dtype(float)


def _value_in(trace: Any, x: Any) -> Any:
    """The value of a tensor of the trace that ends; constants as arrays."""
    if not isinstance(x, Tensor):
        return x
    node = node_of(x)  # a view takes over what was written to its base
    return x._value if x._trace is trace or (x._trace is PERMANENT and node is None) else x


def _check_tensors(leaves: Sequence[Any]) -> None:
    """Refuse leaves that are no tensors.

    Raises:
      ValueError: one is none.
    """
    for leaf in leaves:
        if not isinstance(leaf, (Tracer, np.ndarray, np.generic)):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")


class _OnValues:
    """A function of tensors as a function of the values that a transform hands it.

    Attributes:
      fun: the function.
      kinds: per leaf of the arguments whether it is a tensor.
      requires: whether its tensors require gradients, so that it may use ``autograd.grad``.
      check: called with the result of the function, before values are taken out.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Any,
        kwargs: Mapping[str, Any],
        requires: bool,
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self.fun = fun
        self.kinds = [isinstance(leaf, Tensor) for leaf in tree.leaves((tuple(args), dict(kwargs)))]
        self.requires = requires
        self.check = check
        self.__name__ = self.__qualname__ = name_of(fun)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, treedef = tree.flatten((args, kwargs))
        trace = ImperativeTrace(f"{self.__name__} on tensors", is_plain=False)
        trace.stops = self.requires
        with tracing(trace, [leaf for leaf in leaves if isinstance(leaf, Tracer)]):
            tensors = [
                self._tensor(trace, leaf, kind)
                for leaf, kind in zip(leaves, self.kinds, strict=True)
            ]
            own_args, own_kwargs = tree.unflatten(treedef, tensors)
            result = self.fun(*own_args, **own_kwargs)
            if self.check is not None:
                self.check(result)
            return tree.map(functools.partial(_value_in, trace), result)

    def _tensor(self, trace: ImperativeTrace, leaf: Any, is_tensor: bool) -> Any:
        if isinstance(leaf, Tensor) or not (is_tensor or isinstance(leaf, Tracer)):
            return leaf
        if not isinstance(leaf, Tracer):
            return Tensor.of(np.asarray(leaf))
        tensor = trace.tensor(leaf)
        if self.requires and modes.grad and is_differentiable_dtype(tensor.dtype):
            tensor._node = LeafNode(tensor._weak(), tensor.shape, tensor.dtype)
        return tensor


def _transformed(
    transform: Callable[[Callable[..., Any]], Callable[..., Any]],
    fun: Callable[..., Any],
    args: Any,
    kwargs: Mapping[str, Any],
    requires: bool = False,
    check: Callable[[Any], None] | None = None,
) -> Any:
    """Call the transform of a function of tensors."""
    on_values = _OnValues(fun, args, kwargs, requires, check)
    given_args, given_kwargs = tree.map(_given, (tuple(args), dict(kwargs)))
    result = tree.map(_returned, transform(on_values)(*given_args, **given_kwargs))
    if namespaces.has_torch:
        operands = tree.flatten((args, kwargs))[0]
        for out in tree.flatten(result)[0]:
            if isinstance(out, Tensor):
                mark_origin(out, operands)
    return result


def _numbers(argnums: Any) -> Any:
    if isinstance(argnums, (list, tuple)):
        return tuple(argnums)
    return argnums


def _check_argnums(argnums: Any, args: Sequence[Any]) -> None:
    """Refuse numbers of arguments that there are not, and arguments that are no tensors.

    Raises:
      RuntimeError: a number is out of range, or given twice.
      ValueError: an argument is no tensor.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
        _check_tensors(tree.leaves(args[number]))
    places = [number % len(args) for number in numbers]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")


# gradients ---------------------------------------------------------------------------------------


def _check_scalar(has_aux: bool, result: Any) -> None:
    """Refuse a result that has no gradient.

    Raises:
      RuntimeError: it is no tensor without axes, or no pair where one is needed.
    """
    who = "grad_and_value(f)(*args)"
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(
                f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        result = result[0]
    if not isinstance(result, Tensor):
        raise RuntimeError(f"{who}: Expected f(*args) to return a Tensor, got {type(result)}")
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
    def gradient(*args: Any, **kwargs: Any) -> Any:
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
    numbers = _numbers(argnums)

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        _check_argnums(numbers, args)
        value, gradient = _transformed(
            lambda f: reverse.value_and_grad(f, numbers, has_aux),
            func,
            args,
            kwargs,
            requires=True,
            check=functools.partial(_check_scalar, has_aux),
        )
        return tree.map(_conjugated, gradient), value

    return gradient_and_value


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
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
    _check_tensors(tree.leaves(primals))
    check = functools.partial(_check_results, "vjp(f, *primals)", "f(*primals)", has_aux)
    on_values = _OnValues(func, primals, {}, requires=True, check=check)
    out, pull, *aux = reverse.vjp(on_values, *tree.map(_given, primals), has_aux=has_aux)

    def pullback(cotangents: Any, retain_graph: Any = None, create_graph: Any = None) -> Any:
        """Pull cotangents of the result back; the flags are accepted and not needed."""
        given = tree.map(_conjugated, tree.map(_given, cotangents))
        return tree.map(_conjugated, tree.map(_returned, pull(given)))

    return (tree.map(_returned, out), pullback, *tree.map(_returned, tuple(aux)))


def _check_results(who: str, call: str, has_aux: bool, result: Any) -> None:
    """Refuse results that are no tensors.

    Raises:
      RuntimeError: one is none, or it is no pair where one is needed.
    """
    if has_aux:
        if not isinstance(result, tuple) or len(result) != 2:
            raise RuntimeError(
                f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True"
            )
        result = result[0]
    for leaf in tree.leaves(result):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{who}: expected {call} to return only tensors, got unsupported type {type(leaf)}"
            )


# forward mode ------------------------------------------------------------------------------------


def jvp(
    func: Callable[..., Any],
    primals: Any,
    tangents: Any,
    *,
    strict: bool = False,
    has_aux: bool = False,
) -> tuple[Any, ...]:
    """Evaluate a function of tensors and its directional derivative.

    Args:
      func: function of tensors.
      primals: tuple of arguments.
      tangents: tuple of the same structure: the direction.
      strict: accepted for torch's sake; tangents that do not depend on a primal are zeros.
      has_aux: whether ``func`` returns ``(out, aux)``.

    Returns:
      ``(out, tangent)`` or ``(out, tangent, aux)``.

    Raises:
      RuntimeError: primals or tangents are no tuples, or their structures differ.

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
    if tree.structure(primals) != tree.structure(tangents):
        raise RuntimeError(
            f"{who}: Expected primals and tangents to have the same python structure."
        )
    _check_tensors(tree.leaves((primals, tangents)))
    check = functools.partial(_check_results, who, "f(*primals)", has_aux)
    on_values = _OnValues(func, primals, {}, requires=False, check=check)
    given, directions = tree.map(_given, (primals, tangents))
    return tree.map(_returned, forward.jvp(on_values, given, directions, has_aux))  # type: ignore[no-any-return]  # a tuple


def linearize(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
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
    _check_tensors(tree.leaves(primals))
    check = functools.partial(_check_results, "linearize(f, *primals)", "f(*primals)", False)
    on_values = _OnValues(func, primals, {}, requires=False, check=check)
    out, push = forward.linearize(on_values, *tree.map(_given, primals))

    def pushforward(*tangents: Any) -> Any:
        """Push tangents of the primals forward."""
        return tree.map(_returned, push(*tree.map(_given, tangents)))

    return tree.map(_returned, out), pushforward


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
    _check_chunk("jacrev", chunk_size)
    check = functools.partial(_check_results, "vjp(f, *primals)", "f(*primals)", has_aux)
    numbers = _numbers(argnums)
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
    return _jacobian(func, numbers, transform, check, requires=True)


def _check_chunk(who: str, chunk_size: Any) -> None:
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"{who}: `chunk_size` should be greater than 0.")


def _jacobian(
    func: Callable[..., Any], numbers: Any, transform: Any, check: Any, requires: bool
) -> Callable[..., Any]:
    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        _check_argnums(numbers, args)
        return _transformed(transform, func, args, kwargs, requires, check)

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
      randomness: see :func:`vmap`.

    Returns:
      Function that gives the Jacobian, as :func:`jacrev`.

    Raises:
      RuntimeError: ``func`` returns something else than tensors, or an argument does not exist.

    Example:
      >>> from functrans.autograd import tensor
      >>> jacfwd(lambda x: x * x)(tensor([1.0, 2.0]))
      tensor([[2., 0.],
              [0., 4.]])
    """
    _check_randomness(randomness)
    check = functools.partial(_check_results, "jvp(f, primals, tangents)", "f(*primals)", has_aux)
    numbers = _numbers(argnums)
    transform = functools.partial(jacobian.jacfwd, argnums=numbers, has_aux=has_aux)
    return _jacobian(func, numbers, transform, check, requires=False)


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


# batches -----------------------------------------------------------------------------------------


def _check_randomness(randomness: str) -> None:
    """Refuse other behaviours of random operations than there are.

    Raises:
      RuntimeError: there is none of this name.
      NotImplementedError: different random numbers for each element.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if randomness == "different":
        raise NotImplementedError(
            "vmap: randomness='different' is not supported; draw the random tensor with its batch "
            "axis outside, and pass it as an argument"
        )


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function of tensors over an axis of its arguments, as one batched computation.

    Args:
      func: function of tensors for one example.
      in_dims: per positional argument the axis mapped over, or ``None``; or one for all.
      out_dims: where the batch axis goes in results.
      randomness: ``"error"`` or ``"same"``: random tensors made inside are the same for every
        example.
      chunk_size: how many examples are computed at once.

    Returns:
      Function of arguments with a batch axis.

    Raises:
      ValueError: an argument that is mapped over is no tensor, or extents differ.
      RuntimeError: there is no such ``randomness``.

    Example:
      >>> from functrans.autograd import tensor
      >>> vmap(lambda x: (x * x).sum())(tensor([[1.0, 2.0], [3.0, 4.0]]))
      tensor([ 5., 25.])
    """
    _check_randomness(randomness)
    _check_chunk("vmap", chunk_size)

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def vmapped(*args: Any, **kwargs: Any) -> Any:
        name = name_of(func)
        _check_mapped(name, in_dims, args)

        def check(result: Any) -> None:
            for leaf in tree.leaves(result):
                if not isinstance(leaf, Tensor):
                    raise ValueError(
                        f"vmap({name}, ...): `{name}` must only return Tensors, got type "
                        f"{type(leaf)}."
                    )

        return _transformed(
            lambda f: vectorize.vmap(f, in_dims, out_dims, chunk_size=chunk_size),
            func,
            args,
            kwargs,
            check=check,
        )

    return vmapped


def _check_mapped(name: str, in_dims: Any, args: Sequence[Any]) -> None:
    """Refuse mapped arguments that are no tensors, and batches of different size.

    Raises:
      ValueError: names the function, or the sizes.
    """
    specs = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    if len(specs) != len(args):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
            f"structure of inputs. in_dims has {len(specs)} entries but there are {len(args)} "
            "arguments."
        )
    sizes = []
    for spec, arg in zip(specs, args, strict=True):
        leaves = tree.leaves(arg)
        dims = [spec] * len(leaves) if spec is None or isinstance(spec, int) else None
        if dims is None:
            dims = tree.broadcast_prefix(spec, arg, f"vmap of {name}", "in_dims")
        for leaf, dim in zip(leaves, dims, strict=True):
            if dim is None:
                continue
            if not isinstance(leaf, (Tracer, np.ndarray)):
                raise ValueError(
                    f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an "
                    f"input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                    "arguments, please use None as the respective in_dim"
                )
            shape = shape_of(leaf)
            if not -len(shape) <= dim < len(shape):
                raise ValueError(
                    f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some "
                    f"input, but that input is a Tensor of dimensionality {len(shape)} so expected "
                    f"in_dim to satisfy -{len(shape)} <= in_dim < {len(shape)}."
                )
            sizes.append(shape[dim])
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )


# modules -----------------------------------------------------------------------------------------


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers.

    Args:
      module: a module with ``named_parameters`` and ``named_buffers``.
      parameter_and_buffer_dicts: tensors by name, or several such dictionaries.
      args: the argument of the module, or a tuple of arguments.
      kwargs: arguments by name.
      tie_weights: whether a tensor that goes by several names is replaced under all of them.
      strict: whether every parameter and buffer must be given.

    Returns:
      What the module returns; the module is as it was.

    Raises:
      KeyError: a name does not exist.
      ValueError: a name is in two dictionaries.
      RuntimeError: ``strict``, and a name is missing.
    """
    given: dict[str, Any] = {}
    dicts = parameter_and_buffer_dicts
    for own in [dicts] if isinstance(dicts, Mapping) else dicts:
        for name, value in own.items():
            if name in given:
                raise ValueError(f"{name} appears in multiple dictionaries")
            given[name] = value
    positional = () if args is None else args if isinstance(args, tuple) else (args,)
    with _exchanged(module, given, tie_weights, strict):
        return module(*positional, **(kwargs or {}))


def _slots(module: Any) -> dict[str, tuple[Any, str, Any]]:
    """By name the dictionary, key and tensor of each parameter and buffer."""
    found = {}
    for prefix, part in module.named_modules():
        for table in (part._parameters, part._buffers):
            for key, tensor in table.items():
                if tensor is not None:
                    found[f"{prefix}.{key}" if prefix else key] = (table, key, tensor)
    return found


@contextmanager
def _exchanged(
    module: Any, given: Mapping[str, Any], tie_weights: bool, strict: bool
) -> Iterator[None]:
    """Other tensors in a module, for a ``with`` block."""
    slots = _slots(module)
    unknown = sorted(set(given) - set(slots))
    if unknown:
        raise KeyError(f"functional_call: the module has no parameter or buffer {unknown[0]!r}")
    new = dict(given)
    if tie_weights:
        by_tensor = {id(slots[name][2]): value for name, value in given.items()}
        for name, (_, _, tensor) in slots.items():
            if id(tensor) in by_tensor:
                new.setdefault(name, by_tensor[id(tensor)])
    missing = sorted(set(slots) - set(new))
    if strict and missing:
        raise RuntimeError(f"Error(s) in loading state_dict: missing key(s): {', '.join(missing)}.")
    try:
        for name, value in new.items():
            table, key, _ = slots[name]
            table[key] = value
        yield
    finally:
        for name in new:
            table, key, tensor = slots[name]
            table[key] = tensor


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Parameters and buffers of modules of one kind, stacked for :func:`vmap`.

    Args:
      models: modules with the same names and shapes.

    Returns:
      Parameters and buffers by name, with an axis in front for the modules; the parameters are
      leaves that require gradients, if those of the modules do.

    Raises:
      RuntimeError: there are no modules, or they are of different classes or modes.
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if not all(type(model) is type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    if len({bool(getattr(model, "training", True)) for model in models}) > 1:
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    buffers = _stacked([dict(model.named_buffers()) for model in models])
    return parameters, buffers


def _stacked(tables: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    result = {}
    for name in tables[0]:
        tensors = [table[name] for table in tables]
        stacked = Tensor.of(np.stack([np.asarray(t._value) for t in tensors]))
        if node_of(tensors[0]) is not None:
            stacked._node = LeafNode(stacked._weak(), stacked.shape, stacked.dtype)
        result[name] = stacked
    return result


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
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
    return copy.copy(tensor) if value is None else _returned(value)
