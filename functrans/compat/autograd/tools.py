"""``autograd.misc`` and ``autograd.test_util``: containers as vectors, optimizers, checks.

Layer: ``compat``.

References: Kingma & Ba, Adam, ICLR 2015; Tieleman & Hinton, RMSProp (2012); Polyak, USSR
Computational Mathematics 4 (1964), for momentum.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from functrans import numpy as fnp
from functrans.compat.autograd.operators import make_vjp, unary_to_nary
from functrans.compat.autograd.rules import defvjp, isbox, primitive
from functrans.compat.autograd.spaces import vspace
from functrans.control.custom_rules import stop_gradient
from functrans.core.values import Array
from functrans.flatten_util import ravel_pytree
from functrans.testing import check_grads as check

flatten = ravel_pytree


def flatten_func(func: Callable[..., Any], example: object) -> tuple[Any, Any, Any]:
    """A function of a container as one of vectors, how to get containers back, and the example."""
    flat, unflatten = flatten(example)

    def of_vectors(x: Array, *args: object) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vectors, unflatten, flat


# optimizers ---------------------------------------------------------------------------------------


def _optimized(
    grad: Any, x0: object, callback: Any, num_iters: int, step: Callable[[int, Any, Any], Any]
) -> dict[str, Any]:
    """Steps ``x + step(i, x, g)`` on the flattened container."""
    x, unflatten = flatten(x0)
    for i in range(num_iters):
        gradient = grad(unflatten(x), i)
        if callback:
            callback(unflatten(x), i, gradient)
        x = x + step(i, x, flatten(gradient)[0])
    return unflatten(x)


def sgd(
    grad: object, x0: object, callback: object = None, num_iters: int = 200, step_size: Any = 0.1,
    mass: Any = 0.9,
) -> dict[str, Any]:  # fmt: skip
    """Gradient descent with momentum; ``grad(x, i)`` is the gradient in iteration ``i``.

    Example:
      >>> abs(float(sgd(lambda x, i: 2 * x, 1.0))) < 1e-4
      True
    """
    velocity: Any = 0.0

    def step(i: int, x: Array, g: Array) -> Any:
        nonlocal velocity
        velocity = mass * velocity - (1.0 - mass) * g
        return step_size * velocity

    return _optimized(grad, x0, callback, num_iters, step)


def rmsprop(
    grad: object, x0: object, callback: object = None, num_iters: int = 100, step_size: Any = 0.1,
    gamma: Any = 0.9, eps: Any = 1e-8,
) -> dict[str, Any]:  # fmt: skip
    """Steps divided by a running root mean square of the gradient."""
    mean: Any = 1.0

    def step(i: int, x: Array, g: Array) -> Any:
        nonlocal mean
        mean = gamma * mean + (1 - gamma) * g**2
        return -step_size * g / (fnp.sqrt(mean) + eps)

    return _optimized(grad, x0, callback, num_iters, step)


def adam(
    grad: object, x0: object, callback: object = None, num_iters: int = 100, step_size: Any = 0.001,
    b1: Any = 0.9, b2: Any = 0.999, eps: Any = 1e-8,
) -> dict[str, Any]:  # fmt: skip
    """Steps by running means of the gradient and of its square."""
    first: Any = 0.0
    second: Any = 0.0

    def step(i: int, x: Array, g: Array) -> Any:
        nonlocal first, second
        first = b1 * first + (1 - b1) * g
        second = b2 * second + (1 - b2) * g**2
        scale = fnp.sqrt(second / (1 - b2 ** (i + 1))) + eps
        return -step_size * first / (1 - b1 ** (i + 1)) / scale

    return _optimized(grad, x0, callback, num_iters, step)


# fixed points -------------------------------------------------------------------------------------


@primitive
def fixed_point(f: Any, a: Any, x0: Any, distance: Any, tol: Any) -> Any:
    """The fixed point of ``f(a)``, from ``x0``; differentiable in ``a``.

    Args:
      f: gives a function for a parameter.
      a: parameter.
      x0: where the iteration begins.
      distance: of two points.
      tol: the iteration ends where two points are no farther apart.

    Example:
      >>> newton = lambda a: lambda x: 0.5 * (x + a / x)
      >>> def root(a):
      ...     return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-12)
      >>> import functrans as ft
      >>> round(float(ft.grad(root)(4.0)), 9)
      0.25
    """
    step = f(a)
    before, x = x0, step(x0)
    while distance(x, before) > tol:
        before, x = x, step(x)
    return x


def _fixed_point_vjp(
    ans: Array | complex,
    f: Callable[..., Any],
    a: Array | complex,
    x0: Array | complex,
    distance: Callable[..., Any],
    tol: Array | complex,
) -> Callable[..., Any]:
    space = vspace(ans)

    def pull(g: Array) -> Any:
        pull_x, _ = make_vjp(f(a))(ans)

        def adjoint(g: Any) -> Callable[[Any], Any]:
            return lambda u: space.add(pull_x(u), g)

        u = fixed_point(adjoint, g, space.zeros(), distance, tol)
        return make_vjp(lambda a: f(a)(ans))(a)[0](u)

    return pull


defvjp(fixed_point, None, _fixed_point_vjp, None)


# linear algebra -----------------------------------------------------------------------------------


def cholesky(a: Any) -> Array:
    """``numpy.linalg.cholesky``, whose derivative is that of a symmetric matrix, as in autograd.

    Example:
      >>> from functrans.compat.autograd import grad
      >>> grad(lambda a: cholesky(a)[1, 0])(fnp.eye(2))
      array([[0. , 0.5],
             [0.5, 0. ]])
    """
    if isbox(a):
        mean = (a + fnp.conj(fnp.matrix_transpose(a))) / 2
        a = mean + stop_gradient(a - mean)
    return fnp.linalg.cholesky(a)


# checks -------------------------------------------------------------------------------------------


def scalar_close(a: Any, b: Any) -> bool:
    """Whether two numbers differ by less than 1e-6, absolutely or relatively."""
    return bool(abs(a - b) < 1e-6 or abs(a - b) / abs(a + b) < 1e-6)


def check_equivalent(x: Any, y: Any) -> None:
    """Assert that two values are of one space, and close.

    Raises:
      AssertionError: they are not.
    """
    first, second = vspace(x), vspace(y)
    assert first == second, f"VSpace mismatch:\nx: {first}\ny: {second}"
    along = first.randn()
    is_close = scalar_close(first.inner_prod(x, along), first.inner_prod(y, along))
    assert is_close, f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: Any, x: Any, modes: Any = ("fwd", "rev"), order: int = 2) -> None:
    """Returns a function which compares derivatives with differences.

    Example:
      >>> check_grads(fnp.sin)(1.0)
    """
    check(f, (x,), order=order, modes=tuple(modes), eps=1e-6)


def check_vjp(f: Any, x: Any) -> None:
    """Compare reverse mode with differences."""
    check(f, (x,), order=1, modes=("rev",))


def check_jvp(f: Any, x: Any) -> None:
    """Compare forward mode with differences."""
    check(f, (x,), order=1, modes=("fwd",))


def combo_check(fun: object, *args: object, **kwargs: object) -> Callable[..., None]:
    """A function which checks all combinations of arguments and keywords.

    Example:
      >>> combo_check(fnp.sum)([fnp.ones((2, 2))], axis=[0, 1])
    """

    def check_all(*choices: Any, **named: Any) -> None:
        for values in itertools.product(*choices):
            for options in itertools.product(*named.values()):
                own = dict(zip(named, options, strict=True))
                check_grads(fun, *args, **kwargs)(*values, **own)

    return check_all
