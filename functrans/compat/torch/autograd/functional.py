"""``torch.autograd.functional``: derivatives of functions of tensors, in one call.

Not here: the same of functions of arrays (``functrans.functional``), transforms of functions of
tensors (``functrans.autograd.func``).

Inputs and outputs are one tensor or a tuple of tensors; results are nested accordingly. Each call
runs the function once, on tensors of its own that require gradients.

Layer: ``compat``. Reference: PyTorch's documentation of ``torch.autograd.functional``, for the
behaviour.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans.autograd import func as transforms
from functrans.autograd.api import grad
from functrans.autograd.composites import named
from functrans.autograd.modes import enable_grad
from functrans.autograd.tensors import Tensor
from functrans.primitives import movement, structural

_Tensors = tuple[Any, ...]

# what all functions have in common ---------------------------------------------------------------


def _as_tuple(value: Any, what: str, who: str) -> tuple[_Tensors, bool]:
    """A tensor or a tuple of tensors as a tuple, and whether it was one."""
    is_tuple = isinstance(value, tuple)
    items: _Tensors = value if is_tuple else (value,)
    for i, item in enumerate(items):
        if not isinstance(item, Tensor):
            place = f"value at index {i}" if is_tuple else f"given {what}"
            raise TypeError(
                f"The {what} given to {who} must be either a Tensor or a tuple of Tensors but the "
                f"{place} has type {type(item)}."
            )
    return items, is_tuple


def _nested(values: Sequence[Any], is_tuple: bool) -> Any:
    return tuple(values) if is_tuple else values[0]


def _opened(inputs: Sequence[Any], create_graph: bool) -> _Tensors:
    """Tensors to differentiate with respect to.

    With ``create_graph`` those that belong to a graph stay in it.
    """
    return tuple(
        x.view_as(x) if create_graph and x.requires_grad else x.detach().requires_grad_()
        for x in inputs
    )


def _closed(values: Tensor | tuple[Any, ...], create_graph: bool) -> Any:
    """Results, outside of the graph unless that was asked for."""
    if isinstance(values, tuple):
        return tuple([_closed(value, create_graph) for value in values])
    return values if create_graph else values.detach()


_OUTPUTS = "outputs of the user-provided function"


def _call(func: Callable[..., Any], inputs: _Tensors, who: str, strict: bool) -> Any:
    """The results of a function, and whether they are a tuple."""
    outputs, is_tuple = _as_tuple(func(*inputs), _OUTPUTS, who)
    if strict:
        for i, out in enumerate(outputs):
            if not out.requires_grad:
                raise RuntimeError(
                    f"Output {i} of the user-provided function does not require gradients. The "
                    "outputs must be computed in a differentiable manner from the input when "
                    "running in strict mode."
                )
    return outputs, is_tuple


def _gradients(
    outputs: Sequence[Any],
    inputs: Sequence[Any],
    cotangents: Sequence[Any],
    create_graph: bool,
    batched: bool = False,
) -> list[Any]:
    """Gradients, ``None`` where an input is not used; outputs outside of the graph count not."""
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return [None] * len(inputs)
    kept, given = zip(*pairs, strict=True)
    return list(
        grad(
            kept,
            inputs,
            given,
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
            is_grads_batched=batched,
        )
    )


def _zeros(x: Tensor, *lead: int) -> Tensor:
    result = Tensor.of(np.zeros((*lead, *x.shape), x.dtype))
    result._follows = x._follows
    return result


_NOT_LINEAR = (
    "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You "
    "should ensure that your function is twice differentiable and that the jacobian depends on "
    "the inputs (this would be violated by a linear function for example)."
)


def _filled(
    gradients: Sequence[Any], inputs: Sequence[Any], strict: bool, create_graph: bool, stage: str
) -> _Tensors:
    """Gradients with zeros for inputs that are not used.

    Args:
      gradients: gradients or ``None``.
      inputs: what they belong to.
      strict: whether zeros are refused.
      create_graph: whether constants are refused, too, by ``strict``.
      stage: ``"output"``, ``"jacobian"``, ``"hessian"``: which dependence an absent one shows.

    Raises:
      RuntimeError: ``strict``, and there is none.
    """
    filled = []
    for i, (gradient, x) in enumerate(zip(gradients, inputs, strict=True)):
        if gradient is None:
            if strict:
                raise RuntimeError(_ABSENT[stage].format(i))
            gradient = _zeros(x)
        elif strict and create_graph and not gradient.requires_grad:
            raise RuntimeError(_CONSTANT[stage].format(i))
        filled.append(gradient)
    return tuple(filled)


_ABSENT = {
    "output": "The output of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "hessian": _NOT_LINEAR,
}
_ABSENT["jacobian"] = _ABSENT["output"]
_CONSTANT = {
    "output": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
    "jacobian": _NOT_LINEAR,
    "hessian": "The hessian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
}
"""What ``strict`` refuses: that a gradient is absent, or constant, by the stage that it is of."""


def _directions(
    v: Tensor | tuple[Tensor, ...] | None,
    like: Sequence[Any],
    is_tuple: bool,
    who: str,
    missing: str,
) -> _Tensors:
    """The given vectors; 1 where none is needed."""
    if v is None:
        if len(like) != 1 or math.prod(like[0].shape) != 1:
            raise RuntimeError(missing)
        return (Tensor.of(np.ones(like[0].shape, like[0].dtype)),)
    vectors, _ = _as_tuple(v, "v", who)
    vectors = tuple([vector.detach() if not vector.requires_grad else vector for vector in vectors])
    if len(vectors) != len(like):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(vectors)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for i, (vector, x) in enumerate(zip(vectors, like, strict=True)):
        if vector.shape != x.shape:
            place = f"Entry {i} in " if is_tuple else ""
            raise RuntimeError(
                f"{place}v has invalid size: should be {x.shape} but got {vector.shape}."
            )
    return vectors


_NO_OUTPUT_VECTOR = (
    "The vector v can only be None if the user-provided function returns a single Tensor with a "
    "single element."
)
_NO_INPUT_VECTOR = (
    "The vector v can only be None if the input to the user-provided function is a single Tensor "
    "with a single element."
)

# products ----------------------------------------------------------------------------------------


def _product(
    who: str, func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool
) -> tuple[Any, Any]:
    """Value of a function, and a product with its Jacobian or Hessian.

    The Hessian is the Jacobian of the gradient. A vector is pushed forward by the pullback of the
    pullback.
    """
    is_pushed, is_hessian = who in ("jvp", "hvp"), who in ("vhp", "hvp")
    with enable_grad():
        given, is_in_tuple = _as_tuple(inputs, "inputs", who)
        vectors: _Tensors = ()
        if who != "vjp":
            vectors = _directions(v, given, is_in_tuple, who, _NO_INPUT_VECTOR)
        opened = _opened(given, create_graph)
        outputs, is_tuple = _call(func, opened, who, strict)
        if who == "vjp":
            vectors = _directions(v, outputs, is_tuple, who, _NO_OUTPUT_VECTOR)
        stage, results = "output", outputs
        if is_hessian:
            _check_number(outputs, is_tuple, who)
            stage, results = "hessian", _slopes(outputs[0], opened, strict)
        sources = opened
        if is_pushed:
            sources = tuple([_zeros(result).requires_grad_() for result in results])
            pulled = _gradients(results, opened, sources, True)
            results = _filled(pulled, opened, strict, False, stage)
        gradients = _gradients(results, sources, vectors, create_graph)
        product = _filled(gradients, sources, strict, create_graph, stage)
        is_many = is_tuple if who == "jvp" else is_in_tuple
        return _closed((_nested(outputs, is_tuple), _nested(product, is_many)), create_graph)


def _check_number(outputs: Sequence[Any], is_tuple: bool, who: str) -> None:
    if is_tuple:
        raise RuntimeError(f"The function given to {who} should return a single Tensor")
    if math.prod(outputs[0].shape) != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {who} should contain a single element"
        )


def _slopes(value: Tensor, inputs: Sequence[Any], strict: bool) -> _Tensors:
    """The gradient of one number, in the graph."""
    gradients = _gradients([value], inputs, [Tensor.of(np.ones(value.shape, value.dtype))], True)
    return _filled(gradients, inputs, strict, strict, "jacobian")


def vjp(
    func: Callable[..., Any],
    inputs: object,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function and the product of a vector with its Jacobian.

    Args:
      func: function of tensors that returns a tensor or a tuple of tensors.
      inputs: a tensor or a tuple of tensors.
      v: shaped like the result; may be left out if that is one element.
      create_graph: whether the results can be differentiated.
      strict: raise where a result does not depend on an input, in place of giving zeros.

    Returns:
      ``(func(*inputs), product)``; the product is shaped like the inputs.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      RuntimeError: ``v`` does not fit; ``strict``, and an input is not used.

    Example:
      >>> from functrans.autograd import tensor
      >>> vjp(lambda x: x * x, tensor([1.0, 2.0]), tensor([1.0, 10.0]))
      (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    return _product("vjp", func, inputs, v, create_graph, strict)


def jvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function and the product of its Jacobian with a vector.

    The product is the gradient of the pullback with respect to its cotangent, as in torch, so that
    it can be differentiated again. ``torch.func.jvp`` needs one pass only.

    Args:
      func: function of tensors that returns a tensor or a tuple of tensors.
      inputs: a tensor or a tuple of tensors.
      v: shaped like the inputs; may be left out if these are one element.
      create_graph: whether the results can be differentiated.
      strict: raise where a result does not depend on an input, in place of giving zeros.

    Returns:
      ``(func(*inputs), product)``; the product is shaped like the results.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      RuntimeError: ``v`` does not fit; ``strict``, and an input is not used.

    Example:
      >>> from functrans.autograd import tensor
      >>> jvp(lambda x: x.sum() * x, tensor([1.0, 2.0]), tensor([1.0, 0.0]))
      (tensor([3., 6.]), tensor([4., 2.]))
    """
    return _product("jvp", func, inputs, v, create_graph, strict)


def vhp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function with one number as result, and the product of a vector with its Hessian.

    Args:
      func: function of tensors that returns a tensor with one element.
      inputs: a tensor or a tuple of tensors.
      v: shaped like the inputs; may be left out if these are one element.
      create_graph: whether the results can be differentiated.
      strict: raise where the gradient does not depend on an input, in place of giving zeros.

    Returns:
      ``(func(*inputs), product)``; the product is shaped like the inputs.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      RuntimeError: ``v`` or the result does not fit; ``strict``, and the gradient is constant.

    Example:
      >>> from functrans.autograd import tensor
      >>> vhp(lambda x: (x * x * x).sum(), tensor([1.0, 2.0]), tensor([1.0, 1.0]))
      (tensor(9.), tensor([ 6., 12.]))
    """
    return _product("vhp", func, inputs, v, create_graph, strict)


def hvp(
    func: Callable[..., Any],
    inputs: Any,
    v: Any = None,
    create_graph: bool = False,
    strict: bool = False,
) -> tuple[Any, Any]:
    """Value of a function with one number as result, and the product of its Hessian with a vector.

    The Hessian is symmetric where the second derivatives are continuous; ``vhp`` is cheaper.

    Args:
      func: function of tensors that returns a tensor with one element.
      inputs: a tensor or a tuple of tensors.
      v: shaped like the inputs; may be left out if these are one element.
      create_graph: whether the results can be differentiated.
      strict: raise where the gradient does not depend on an input, in place of giving zeros.

    Returns:
      ``(func(*inputs), product)``; the product is shaped like the inputs.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      RuntimeError: ``v`` or the result does not fit; ``strict``, and the gradient is constant.

    Example:
      >>> from functrans.autograd import tensor
      >>> hvp(lambda x: (x * x * x).sum(), tensor([1.0, 2.0]), tensor([1.0, 1.0]))
      (tensor(9.), tensor([ 6., 12.]))
    """
    return _product("hvp", func, inputs, v, create_graph, strict)


# Jacobians ---------------------------------------------------------------------------------------

_STRATEGIES = ("reverse-mode", "forward-mode")


def _check_forward(vectorize: bool, create_graph: bool, strict: bool) -> None:
    """Refuse what torch does not combine with forward mode."""
    name = 'torch.autograd.functional.jacobian: `{}=True` and `strategy="forward-mode"`'
    after = (
        "are not supported together (yet). Please either set `{}=False` or "
        '`strategy="reverse-mode"`.'
    )
    if strict:
        raise RuntimeError(f"{name.format('strict')} {after.format('strict')}")
    if create_graph:
        raise NotImplementedError(f"{name.format('create_graph')} {after.format('create_graph')}")
    if not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is"
            "only implemented for `vectorize=True`."
        )


def jacobian(
    func: Callable[..., Any],
    inputs: object,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function of tensors at a point.

    Args:
      func: function of tensors that returns a tensor or a tuple of tensors.
      inputs: a tensor or a tuple of tensors.
      create_graph: whether the result can be differentiated.
      strict: raise where a result does not depend on an input, in place of giving zeros.
      vectorize: all rows in one batched pass.
      strategy: ``"reverse-mode"``, or ``"forward-mode"`` (columns; with ``vectorize``).

    Returns:
      A tensor with the axes of the result, then those of the input; a tuple over inputs or over
      results, or of tuples, where those are tuples.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      AssertionError: there is no such ``strategy``.
      RuntimeError: ``strict``, and a result does not depend on an input.
      NotImplementedError: options that torch does not combine.

    Example:
      >>> from functrans.autograd import tensor
      >>> jacobian(lambda x: x * x, tensor([1.0, 2.0]))
      tensor([[2., 0.],
              [0., 4.]])
    """
    if strategy not in _STRATEGIES:
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your '
            'function has more outputs than inputs, "forward-mode" tends to be more performant. '
            'Otherwise, prefer to use "reverse-mode".'
        )
    if strategy == "forward-mode":
        _check_forward(vectorize, create_graph, strict)
        return _forward_jacobian(func, inputs)
    if vectorize and strict:
        raise RuntimeError(
            "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not "
            "supported together. Please either set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        given, is_in_tuple = _as_tuple(inputs, "inputs", "jacobian")
        opened = _opened(given, create_graph)
        outputs, is_tuple = _call(func, opened, "jacobian", strict)
        blocks = []
        for i, out in enumerate(outputs):
            if vectorize:
                row = _batched_rows(out, opened, create_graph)
            else:
                row = _rows(out, opened, create_graph, strict, i)
            shaped = [
                named(structural.reshape(block, (*out.shape, *x.shape)), "View")
                for block, x in zip(row, opened, strict=True)
            ]
            blocks.append(_nested(shaped, is_in_tuple))
        return _closed(_nested(blocks, is_tuple), create_graph)


def _batched_rows(out: Tensor, inputs: _Tensors, create_graph: bool) -> list[Any]:
    """Per input all rows of the Jacobian of one result, by one pass."""
    count = math.prod(out.shape)
    if not out.requires_grad or not count:
        return [_zeros(x, count) for x in inputs]
    basis = np.eye(count, dtype=out.dtype).reshape(count, *out.shape)
    found = _gradients([out], inputs, [Tensor.of(basis)], create_graph, batched=True)
    return [
        _zeros(x, count) if gradient is None else gradient
        for gradient, x in zip(found, inputs, strict=True)
    ]


def _rows(
    out: Tensor, inputs: _Tensors, create_graph: bool, strict: bool, number: int
) -> list[Any]:
    """Per input all rows of the Jacobian of one result, one by one."""
    count = math.prod(out.shape)
    found: list[list[Any]] = [[] for _ in inputs]
    for j in range(count):
        basis = np.zeros(count, out.dtype)
        basis[j] = 1
        one = Tensor.of(basis.reshape(out.shape))
        gradients = _gradients([out], inputs, [one], create_graph)
        for i, (gradient, x) in enumerate(zip(gradients, inputs, strict=True)):
            if gradient is None:
                if strict:
                    raise RuntimeError(
                        f"Output {number} of the user-provided function is independent of input "
                        f"{i}. This is not allowed in strict mode."
                    )
                gradient = _zeros(x)
            elif strict and create_graph and not gradient.requires_grad:
                raise RuntimeError(_CONSTANT["output"].format(i))
            found[i].append(gradient)
    return [
        movement.stack(rows, axis=0) if rows else _zeros(x, 0)
        for rows, x in zip(found, inputs, strict=True)
    ]


def _forward_jacobian(func: Callable[..., Any], inputs: Any) -> Tensor:
    """The Jacobian by forward mode."""
    given, is_in_tuple = _as_tuple(inputs, "inputs", "jacobian")

    def checked(*args: object) -> Tensor:
        result = func(*args)
        _as_tuple(result, _OUTPUTS, "jacobian")
        return result

    argnums = tuple(range(len(given))) if is_in_tuple else 0
    return transforms.jacfwd(checked, argnums)(*[x.detach() for x in given])


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of tensors with one number as result, at a point.

    Args:
      func: function of tensors that returns a tensor with one element.
      inputs: a tensor or a tuple of tensors.
      create_graph: whether the result can be differentiated.
      strict: raise where the gradient does not depend on an input, in place of giving zeros.
      vectorize: all rows in one batched pass.
      outer_jacobian_strategy: ``"reverse-mode"``, or ``"forward-mode"`` (with ``vectorize``): how
        the gradient is differentiated.

    Returns:
      A tensor with the axes of the input twice; a tuple of tuples for a tuple of inputs.

    Raises:
      TypeError: something is neither a tensor nor a tuple of tensors.
      AssertionError: there is no such strategy.
      RuntimeError: the result is no single number; ``strict``, and the gradient is constant.
      NotImplementedError: options that torch does not combine.

    Example:
      >>> from functrans.autograd import tensor
      >>> hessian(lambda x: (x * x * x).sum(), tensor([1.0, 2.0]))
      tensor([[ 6.,  0.],
              [ 0., 12.]])
    """
    if outer_jacobian_strategy not in _STRATEGIES:
        raise AssertionError('Expected strategy to be either "forward-mode" or "reverse-mode".')
    given, is_in_tuple = _as_tuple(inputs, "inputs", "hessian")

    def single(*args: object) -> Tensor:
        result = func(*args)
        outputs, is_tuple = _as_tuple(result, _OUTPUTS, "hessian")
        _check_number(outputs, is_tuple, "hessian")
        return outputs[0].reshape(())

    if outer_jacobian_strategy == "forward-mode":
        _check_forward(vectorize, create_graph, strict)
        argnums = tuple(range(len(given))) if is_in_tuple else 0
        return transforms.hessian(single, argnums)(*[x.detach() for x in given])

    def slope(*args: object) -> Any:
        value = single(*args)
        _call(lambda: value, (), "hessian", strict)
        return _nested(_slopes(value, args, strict), is_in_tuple)

    return jacobian(slope, inputs, create_graph, strict, vectorize)
