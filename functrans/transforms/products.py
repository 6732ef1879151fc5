"""Products of Hessians with vectors: ``hvp``, ``vhp``.

Here: the products, and the choice between nestings of forward and reverse mode. Not here: Hessians
(``transforms.jacobian``), operators (``higher.operators``).

The Hessian is symmetric, so that there are three ways to a product: forward mode over the gradient,
reverse mode over a directional derivative, reverse mode over the gradient. For straight programs
they come to the same work. The first needs no memory for the outer derivative, so it is the one
that is taken; where loops, branches or custom rules are in the program, and the program is being
staged anyhow, the cheapest by the work of the three programs.

Layer: ``transforms``. Reference: Pearlmutter, Fast Exact Multiplication by the Hessian, Neural
Computation 6 (1994).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functrans import pytrees as tree
from functrans.core.arguments import name_of, part_of
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, shape_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import FunctransError
from functrans.passes.evaluate import evaluate
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.passes.work import program_work
from functrans.primitives.structural import reduce_sum
from functrans.transforms.forward import push_call
from functrans.transforms.reverse import grad

NESTINGS = ("auto", "forward-over-reverse", "reverse-over-forward", "reverse-over-reverse")


@boundary
def hvp(
    fun: Callable[..., Any], primals: object, tangents: object, *, nesting: str = "auto"
) -> Any:
    """Hessian-vector product of a scalar function.

    Args:
      fun: scalar function of pytrees of floating arrays.
      primals: tuple of arguments.
      tangents: tuple of the same structure: the vector.
      nesting: ``"forward-over-reverse"``, ``"reverse-over-forward"`` or
        ``"reverse-over-reverse"``. ``"auto"`` is the first; inside ``jit``, for a function with
        loops, branches or custom rules, it is the one whose program has the least work.

    Returns:
      Product, shaped like the primals (a single one is not wrapped in a tuple).

    Raises:
      NonDifferentiableError, ShapeError, TreeMismatchError: as :func:`ft.jvp` and :func:`ft.grad`.
      ValueError: unknown ``nesting``.

    Example:
      >>> import numpy as np
      >>> hvp(lambda x: np.sum(x**3), (np.array([1.0, 2.0]),), (np.array([1.0, 0.0]),))
      array([6., 0.])
    """
    return _hessian_product("hvp", fun, primals, tangents, nesting)


@boundary
def vhp(
    fun: Callable[..., Any], primals: object, cotangents: object, *, nesting: str = "auto"
) -> Any:
    """Vector-Hessian product of a scalar function: equal to :func:`hvp`, by symmetry.

    Arguments, result and errors as :func:`hvp`.
    """
    return _hessian_product("vhp", fun, primals, cotangents, nesting)


def _hessian_product(
    who: str, fun: Callable[..., Any], primals: Any, tangents: Any, nesting: str
) -> Any:
    fun = traced_form(who, fun)
    if nesting not in NESTINGS:
        raise ValueError(f"{who}: nesting must be one of {NESTINGS}, got {nesting!r}{here()}")
    for name, values in (("primals", primals), ("tangents", tangents)):
        if not isinstance(values, (tuple, list)):
            raise TypeError(
                f"{who} of {name_of(fun)}: {name} must be a tuple with one item per argument, got "
                f"{type(values).__name__}{here()}"
            )
    primals, tangents = tuple(primals), tuple(tangents)
    if nesting == "auto":
        leaves = tree.leaves((primals, tangents))
        if leaves and all(isinstance(x, Tracer) and x._trace.is_staging for x in leaves):
            return _cheapest(who, fun, primals, tangents)
        nesting = "forward-over-reverse"
    return _PRODUCTS[nesting](who, fun, primals, tangents)


def _forward_over_reverse(
    who: str, fun: Any, primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> Any:
    numbers = tuple(range(len(primals)))
    gradient = part_of(fun, grad(fun, numbers if len(numbers) > 1 else 0))
    return push_call(who, gradient, primals, tangents)[1]


def _reverse_over_forward(
    who: str, fun: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, ...]:
    def slope(*args: object) -> Any:
        return push_call(who, fun, args, tangents)[1]

    return _outer_gradient(fun, slope, primals)


def _reverse_over_reverse(
    who: str, fun: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...]
) -> tuple[Any, ...]:
    numbers = tuple(range(len(primals)))
    gradient = part_of(fun, grad(fun, numbers))

    def product(*args: object) -> Any:
        pairs = zip(tree.leaves(gradient(*args)), tree.leaves(tangents), strict=True)
        terms = [_inner(g, v) for g, v in pairs]
        total = terms[0]
        for term in terms[1:]:
            total = total + term
        return total

    return _outer_gradient(fun, product, primals)


def _inner(first: Array, second: Array | complex) -> Array:
    """The sum of products of all elements."""
    return reduce_sum(first * second, tuple(range(len(shape_of(first)))))


def _outer_gradient(
    fun: Callable[..., Any], function: Callable[..., Any], primals: tuple[Any, ...]
) -> tuple[Any, ...]:
    function.__name__ = name_of(fun)
    numbers = tuple(range(len(primals)))
    return grad(function, numbers if len(numbers) > 1 else 0)(*primals)


_PRODUCTS: dict[str, Callable[..., Any]] = {
    "forward-over-reverse": _forward_over_reverse,
    "reverse-over-forward": _reverse_over_forward,
    "reverse-over-reverse": _reverse_over_reverse,
}


_WORTH_IT = 0.9
"""Work of another nesting, relative to the first, from which on it is taken."""


def _cheapest(who: str, fun: object, primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> Any:
    """The product by the cheapest nesting, of staged arguments."""
    leaves, treedef = tree.flatten((primals, tangents))
    avals = [aval_of(leaf) for leaf in leaves]
    structure: list[Any] = []

    def program(product: Callable[..., Any]) -> Jaxpr:
        def flat(*tracers: Array) -> list[Any]:
            own, vectors = tree.unflatten(treedef, tracers)
            outs, out_treedef = tree.flatten(product(who, fun, own, vectors))
            structure[:] = [out_treedef]
            return outs

        return simplify(stage(flat, avals, f"{who} of {name_of(fun)}", name=name_of(fun)))

    best = program(_forward_over_reverse)
    is_real = all(aval.dtype.kind != "c" for aval in avals)  # else only linear over the reals
    if is_real and any(eqn.primitive.holds_programs for eqn in best.eqns):
        work = _WORTH_IT * program_work(best)
        for nesting in NESTINGS[2:]:
            try:
                other = program(_PRODUCTS[nesting])
            except FunctransError:  # a rule for one mode only
                continue
            if program_work(other) < work:
                best, work = other, program_work(other)
    return tree.unflatten(structure[0], evaluate(best, leaves))
