"""autograd's differential operators over ``vjp`` and ``jvp``.

An operator takes a function of one argument and where it is differentiated; ``unary_to_nary`` makes
one that takes ``argnum`` (a position, or several) from it.

Layer: ``compat``.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import OrderedDict
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from functrans import numpy as fnp
from functrans import pytrees
from functrans.compat.autograd.spaces import vspace
from functrans.control.checkpoint import checkpoint as checkpoint
from functrans.core.arguments import name_of
from functrans.core.boundary import boundary
from functrans.core.calling import call_traced
from functrans.core.dispatch import Tracer
from functrans.core.state import rebinds
from functrans.core.values import Array, R
from functrans.transforms.forward import jvp
from functrans.transforms.jacobian import jacrev
from functrans.transforms.reverse import vjp


def called(function: Callable[..., R], *args: Any, **options: Any) -> R:
    """Call a function of functrans for code written for autograd.

    Boxes have no in-place operators there: ``x += y`` makes another one.
    """
    token = rebinds.set(True)
    try:
        return function(*args, **options)
    finally:
        rebinds.reset(token)


def _given(value: Any) -> Any:
    """A result in which numbers of NumPy's stand for arrays without axes."""
    if isinstance(value, Tracer):
        return value
    return pytrees.map(lambda x: x[()] if type(x) is np.ndarray and not x.ndim else x, value)


def unary_to_nary(operator: Callable[..., Any]) -> Callable[..., Any]:
    """An operator on functions of one argument, as one that takes ``argnum``.

    Args:
      operator: takes a function of one argument, and that argument.

    Returns:
      Operator ``(fun, argnum=0, *options)``, which gives a function of the arguments of ``fun``.
    """

    @boundary
    @functools.wraps(operator)
    def nary(
        fun: Callable[..., Any], argnum: Any = 0, *options: object, **named: Any
    ) -> Callable[..., Any]:
        if not callable(fun):
            raise TypeError(
                f"{operator.__name__}: expected a function, got {type(fun).__name__}; give the "
                "function itself, not its value"
            )

        @boundary
        def of_fun(*args: object, **kwargs: object) -> Any:
            places = [argnum] if isinstance(argnum, int) else list(argnum)

            def unary(x: Any) -> Array:
                values = [x] if isinstance(argnum, int) else x
                given = list(args)
                for place, value in zip(places, values, strict=True):
                    given[place] = value
                return call_traced(fun, *given, **kwargs)

            unary.__name__ = name_of(fun)
            x = args[argnum] if isinstance(argnum, int) else tuple([args[k] for k in places])
            return _given(called(operator, unary, x, *options, **named))

        of_fun.__name__ = f"{operator.__name__}_of_{name_of(fun)}_wrt_argnum_{argnum}"
        of_fun.__doc__ = (
            f"    {operator.__name__} of function {name_of(fun)} with respect to argument number "
            f"{argnum}."
        )
        return of_fun

    return nary


def pulled(fun: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """The pullback of a function of one argument, and its value."""
    value, pull = called(vjp, fun, x)
    return boundary(lambda g: _given(called(pull, g)[0])), _given(value)


def pushed(fun: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
    """The pushforward of a function of one argument: tangent to value and tangent."""
    return boundary(lambda v: _given(called(jvp, fun, (x,), (v,))))


@unary_to_nary
def make_vjp(fun: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Returns a function which gives the pullback at a point, and the value there.

    Example:
      >>> pull, value = make_vjp(lambda x: x * x)(3.0)
      >>> float(pull(1.0)), float(value)
      (6.0, 9.0)
    """
    return pulled(fun, x)


@unary_to_nary
def make_jvp(fun: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
    """Returns a function which gives the pushforward at a point: tangent to value and tangent.

    Example:
      >>> value, tangent = make_jvp(lambda x: x * x)(3.0)(1.0)
      >>> float(value), float(tangent)
      (9.0, 6.0)
    """
    return pushed(fun, x)


def _scalar(who: str, fun: Callable[..., Any], x: Any) -> tuple[Any, Callable[[Any], Any]]:
    pull, value = pulled(fun, x)
    if vspace(value).size != 1:
        raise TypeError(
            f"{who} only applies to real functions with one number as result, got "
            f"{vspace(value)}; try jacobian, elementwise_grad or holomorphic_grad"
        )
    return value, pull


@unary_to_nary
def grad(fun: Callable[..., Any], x: Any) -> Any:
    """Returns a function which computes the gradient of one whose result is one number.

    Example:
      >>> float(grad(lambda x, y: x * y, 1)(3.0, 2.0))
      3.0
    """
    value, pull = _scalar("grad", fun, x)
    return pull(vspace(value).ones())


@unary_to_nary
def value_and_grad(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """Returns a function which computes the value and the gradient."""
    value, pull = _scalar("value_and_grad", fun, x)
    return value, pull(vspace(value).ones())


@unary_to_nary
def grad_and_aux(fun: Callable[..., Any], x: Any) -> tuple[Any, Any]:
    """Returns a function which computes the gradient of the first result, and the second."""
    value, pull, aux = vjp(fun, x, has_aux=True)
    return pull(vspace(value).ones())[0], aux


@unary_to_nary
def elementwise_grad(fun: Callable[..., Any], x: Any) -> Array:
    """Returns a function which computes the sums of the Jacobian's columns.

    Example:
      >>> elementwise_grad(fnp.square)(fnp.array([1.0, 2.0]))
      array([2., 4.])
    """
    pull, value = pulled(fun, x)
    if vspace(value).iscomplex:
        raise TypeError("elementwise_grad only applies to functions with real results")
    return pull(vspace(value).ones())


@unary_to_nary
def deriv(fun: Callable[..., Any], x: Any) -> Any:
    """Returns a function which computes the derivative along ones, in forward mode."""
    return jvp(fun, (x,), (vspace(x).ones(),))[1]


@unary_to_nary
def jacobian(fun: Callable[..., Any], x: Any) -> Array:
    """Returns a function which computes the Jacobian, of the shapes of result and argument."""
    return jacrev(fun)(x)


@unary_to_nary
def holomorphic_grad(fun: Callable[..., Any], x: Any) -> Any:
    """Returns a function which computes the derivative of a holomorphic one."""
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=4)
    return grad(lambda x: fnp.real(fun(x)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """The gradient with respect to an argument that is named."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


@unary_to_nary
def hessian(fun: Callable[..., Any], x: Any) -> Array:
    """Returns a function which computes the Hessian."""
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[..., Any], x: Any) -> tuple[Callable[[Any], Any], Any]:
    """Returns a function which gives products with the Hessian at a point, and the gradient."""
    return pulled(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: object = 0) -> Callable[..., Any]:
    """A function ``(*args, tensor)`` which computes the Hessian times a tensor.

    Example:
      >>> hessian_tensor_product(lambda x: fnp.sum(x**3))(fnp.array([1.0, 2.0]), fnp.ones(2))
      array([ 6., 12.])
    """

    @boundary
    def product(*args: object, **kwargs: object) -> Any:
        *given, tensor = args

        @unary_to_nary
        def along(fun: Callable[..., Any], x: Array) -> Any:
            return jvp(grad(fun), (x,), (tensor,))[1]

        return along(fun, argnum)(*given, **kwargs)

    return product


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: object = 0) -> Callable[..., Any]:
    """A function ``(*args, tensor)`` which computes a tensor times the Jacobian.

    Example:
      >>> tensor_jacobian_product(fnp.square)(fnp.array([1.0, 2.0]), fnp.array([1.0, 3.0]))
      array([ 2., 12.])
    """

    @boundary
    def product(*args: Array, **kwargs: Any) -> Any:
        *given, tensor = args

        def contracted(*given: Array, **kwargs: Any) -> Any:
            return fnp.tensordot(tensor, fun(*given, **kwargs), axes=fnp.ndim(tensor))

        return jacobian(contracted, argnum)(*given, **kwargs)

    return product


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[..., Any], x: Any) -> Callable[[Any], Any]:
    """Returns a function which gives the tangent alone."""
    return lambda v: pushed(fun, x)(v)[1]


def _half_square(x: Array) -> Array:
    return 0.5 * fnp.sum(x**2, axis=-1)


def make_ggnvp(
    f: Callable[..., Any], g: Callable[..., Any] = _half_square, f_argnum: object = 0
) -> Callable[..., Any]:
    """A function which gives products with the generalized Gauss-Newton matrix at a point."""

    @unary_to_nary
    def make(f: Callable[..., Any], x: Array) -> Callable[[Any], Any]:
        pull, value = pulled(f, x)
        curve, _ = pulled(grad(g), value)
        return lambda v: pull(curve(pushed(f, x)(v)[1]))

    return make(f, f_argnum)


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The gradients with respect to all arguments, by their names.

    Example:
      >>> {name: float(g) for name, g in multigrad_dict(lambda a, b: a * b)(2.0, b=3.0).items()}
      {'a': 3.0, 'b': 2.0}
    """
    signature = inspect.signature(fun)

    @boundary
    def gradients(*args: object, **kwargs: object) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def call(arguments: Any) -> Any:
            return fun(*(own := _bound(signature, arguments)).args, **own.kwargs)

        found = grad(call)(dict(bound.arguments))
        return OrderedDict((name, found[name]) for name in bound.arguments)

    return gradients


def _bound(signature: inspect.Signature, arguments: Any) -> inspect.BoundArguments:
    return inspect.BoundArguments(signature, OrderedDict(arguments))


def adapted(name: str, value: Any) -> Any:
    """What is offered for a name: functions whose errors come without frames of functrans.

    Those of SciPy's names give numbers in place of arrays without axes, as SciPy does.
    """
    if not isinstance(value, FunctionType) or name.startswith("autograd.numpy."):
        return value
    return boundary(_giving(value) if name.startswith("autograd.scipy.") else value)


def _giving(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        return _given(function(*args, **kwargs))

    return call
