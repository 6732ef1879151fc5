"""Roots found by a solver of the user's: ``custom_root``.

Here: the function, as a call with a derivative rule. Not here: the primitive of such calls
(``control.custom_calls``), linear systems (``solvers.linear_solve``), solvers of plain Python
(``solvers.implicit``).

``f(x, theta) = 0`` defines ``x(theta)``; by the implicit function theorem
``df/dx dx = -df/dtheta dtheta``. ``f`` is staged at the types of the initial guess, so that
whatever it refers to is an operand of the call and has its derivative.

Layer: ``solvers``. Reference: Christianson, Reverse accumulation and implicit functions,
Optimization Methods and Software 9 (1998), 307-322.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functrans import pytrees as tree
from functrans.control.bodies import Body, check_structure, flatten_operands, stage_body
from functrans.control.call_records import JvpCall, only_traces_of
from functrans.control.closures import Template, make_template
from functrans.control.custom_calls import custom_jvp_p
from functrans.core.arguments import canonical, leaf_description
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, bind
from functrans.core.ownership import own_array, own_arrays
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import jvp_jaxpr, linearize_jaxpr, split
from functrans.primitives.structural import cast

_WHO = "custom_root"


def solution_leaves(
    who: str, x: Any, treedef: object, avals: Sequence[Any], what: str
) -> list[Any]:
    """Leaves of something that must be like the unknown, in its dtypes.

    Args:
      who: for messages.
      x: what was returned.
      treedef: structure of the unknown.
      avals: types of its leaves.
      what: what ``x`` is.

    Raises:
      TreeMismatchError, ShapeError, TypeError: it is of another type; names the key path.
    """
    leaves, own = tree.flatten(x)
    check_structure(who, treedef, own, what, "the initial guess")
    values = []
    for i, (leaf, want) in enumerate(zip(leaves, avals, strict=True)):
        value = canonical(leaf, lambda i=i: leaf_description(who, x, i, what))  # type: ignore[misc]  # mypy sees no default
        have: Any = aval_of(value)
        if have.shape != want.shape:
            raise ShapeError(
                f"{leaf_description(who, x, i, what)} is {have}, but the initial guess has {want} "
                f"there{here()}; both must have one shape"
            )
        if have.dtype != want.dtype and not have.weak:
            raise TypeError(
                f"{leaf_description(who, x, i, what)} is {have}, but the initial guess has {want} "
                f"there{here()}; convert one of them with .astype"
            )
        values.append(cast(value, want.dtype))
    return values


def guess_leaves(who: str, guess: object) -> tuple[list[Any], Any]:
    """Leaves of an initial guess, and their structure.

    Raises:
      TypeError: a leaf is not floating.
    """
    leaves, treedef, paths = flatten_operands(who, guess, "initial_guess")
    values = []
    for leaf, path in zip(leaves, paths, strict=True):
        aval: Any = aval_of(leaf)
        if not is_differentiable_dtype(aval.dtype):
            raise TypeError(
                f"{who}: {path} is {aval}{here()}; unknowns are floating-point numbers: start from "
                "np.asarray(x0, dtype=float)"
            )
        values.append(cast(leaf, aval.dtype))
    return values, treedef


def pair_of(who: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """``(x, aux)`` of what a solver returned; ``aux`` is ``None`` without ``has_aux``.

    Raises:
      TypeError: there is no pair.
    """
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise TypeError(f"{who}: has_aux=True needs solve to return (x, aux), got {got}{here()}")
    return result


class _RootCall(JvpCall):
    """A call of a solver.

    Attributes:
      body: ``f`` as a program of what it refers to and of the unknown.
      template: the two solvers, without what they refer to.
      treedef: structure of the unknown.
      avals: types of its leaves.
      has_aux: whether the solver returns ``(x, aux)``.
      out: structure of the result, once the solver has run.
    """

    __slots__ = ("avals", "body", "has_aux", "out", "template", "treedef")
    takes_zeros = True

    def __init__(
        self, body: Body, template: Template, treedef: Any, avals: list[Any], has_aux: bool
    ) -> None:
        self.label = _WHO
        self.refused = ()
        self.body = Body(body.jaxpr, (), body.treedef, body.label)
        self.template = template
        self.treedef = treedef
        self.avals = avals
        self.has_aux = has_aux
        self.out: list[Any] = []

    def _split(self, args: Sequence[Any]) -> list[list[Any]]:
        """What ``f`` refers to, what the solvers refer to, the initial guess."""
        n_own = len(self.body.jaxpr.invars) - len(self.avals)
        return split(args, n_own, len(self.template.holes))

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Run the solver."""
        own, held, guess = self._split(args)
        solve, _ = self.template.fill(held)

        def f(x: Array) -> Any:
            values = solution_leaves(_WHO, x, self.treedef, self.avals, "the argument of f")
            return tree.unflatten(self.treedef, evaluate(self.body.jaxpr, [*own, *values]))

        start = tree.unflatten(self.treedef, [own_array(value, guess) for value in guess])
        with only_traces_of(args):
            result = solve(f, start)
        x, aux = pair_of(_WHO, result, self.has_aux)
        leaves = solution_leaves(_WHO, x, self.treedef, self.avals, "the result of solve")
        aux_leaves, aux_treedef = tree.flatten(aux)
        self.out[:] = [aux_treedef]
        return [*leaves, *aux_leaves] if self.has_aux else leaves

    def jvp(
        self, closed: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The implicit function theorem."""
        outs = list(bind(custom_jvp_p, *args, call=self, jaxpr=None, n_extra=0))
        n = len(self.avals)
        x, rest = outs[:n], [None] * (len(outs) - n)
        own, held, _ = self._split(args)
        dots = tangents[: len(own)]
        if all(t is None for t in dots):
            return outs, [None] * len(outs)
        _, tangent_solve = self.template.fill(held)
        jaxpr = self.body.jaxpr
        moving = (*(t is not None for t in dots), *(False for _ in x))
        program, _ = jvp_jaxpr(jaxpr, moving, True)
        pushed = evaluate(program, [*own, *x, *(t for t in dots if t is not None)])[n:]
        linear = linearize_jaxpr(jaxpr, (False,) * len(own) + (True,) * n, True)
        residuals = evaluate(linear.primal, [*own, *x])[n:]

        def matvec(v: Array) -> Array:
            values = solution_leaves(_WHO, v, self.treedef, self.avals, "the argument of g")
            return tree.unflatten(self.treedef, evaluate(linear.linear, [*residuals, *values]))

        found = tangent_solve(matvec, tree.unflatten(self.treedef, pushed))
        solved = solution_leaves(
            _WHO, found, self.treedef, self.avals, "the result of tangent_solve"
        )
        return outs, [*(-t for t in solved), *rest]


@boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: object,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Find a root with any solver; its derivative is that of the implicit function.

    Args:
      f: function of a pytree like ``initial_guess``, which returns one like it. Derivatives are
        taken in the traced values that it refers to.
      initial_guess: pytree of floating arrays; the root does not depend on it.
      solve: function ``(f, initial_guess) -> x``. Its steps are not differentiated. It gets plain
        arrays unless a program is staged (``jit``, ``vmap``).
      tangent_solve: function ``(g, y) -> x`` that solves ``g(x) = y`` for a linear function ``g``,
        and is linear in ``y``: with ``custom_linear_solve``, or ``y / g(1.0)`` for one unknown.
      has_aux: whether ``solve`` returns ``(x, aux)``; ``aux`` is not differentiated.

    Returns:
      ``x``, or ``(x, aux)``.

    Raises:
      TypeError: a leaf of ``initial_guess`` is not floating.
      TreeMismatchError, ShapeError: ``f`` or a solver returns something unlike it.

    Example:
      >>> import functrans as ft
      >>> from functrans import lax
      >>> def newton(f, x):
      ...     return lax.while_loop(
      ...         lambda x: abs(f(x)) > 1e-12, lambda x: x - f(x) / ft.grad(f)(x), x
      ...     )
      >>> def root(a):
      ...     return custom_root(lambda x: x**2 - a, 1.0, newton, lambda g, y: y / g(1.0))
      >>> ft.grad(root)(4.0)
      array(0.25)
    """
    f = traced_form(f"{_WHO}: f", f)
    solve = traced_form(f"{_WHO}: solve", solve)
    tangent_solve = traced_form(f"{_WHO}: tangent_solve", tangent_solve)
    guess, treedef = guess_leaves(_WHO, initial_guess)
    avals = [aval_of(value).strong() for value in guess]
    body = stage_body(f"{_WHO}: f", f, tree.structure((initial_guess,)), avals)
    check_structure(_WHO, treedef, body.treedef, "the result of f", "the initial guess")
    for path, have, want in zip(body.out_paths("result"), body.out_avals, avals, strict=True):
        if have.shape != want.shape or have.dtype != want.dtype:
            kind = ShapeError if have.shape != want.shape else TypeError
            raise kind(
                f"{_WHO}: {path} of f is {have}, but the initial guess has {want} there{here()}; "
                "there must be one equation for each unknown, of its dtype"
            )
    template, held = make_template((solve, tangent_solve), objects=True)
    call = _RootCall(body, template, treedef, avals, has_aux)
    outs = bind(custom_jvp_p, *body.captured, *held, *guess, call=call, jaxpr=None, n_extra=0)
    leaves = own_arrays(outs, [*body.captured, *guess])
    x = tree.unflatten(treedef, leaves[: len(avals)])
    if not has_aux:
        return x
    return x, tree.unflatten(call.out[0], leaves[len(avals) :])
