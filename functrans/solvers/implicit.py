"""Solvers made differentiable by what they solve: ``implicit_diff``, ``fixed_point``.

Here: the decorator, the linear systems of implicit derivatives, fixed-point iterations. Not here:
the same for functions that are staged (``solvers.custom_root``), Krylov methods
(``solvers.krylov``).

A solver returns ``x`` with ``F(x, *args) = 0``. By the implicit function theorem
``dF/dx dx = -dF/dargs dargs``, whatever the solver did to find ``x``; so it may be any Python code.
The rule is written for tangents, and is linear in them, so that reverse mode is its transpose; it
calls the decorated solver again, so that it has derivatives of any order.

Layer: ``solvers``. References: Krantz & Parks, The Implicit Function Theorem (2002); Blondel et
al., Efficient and modular implicit differentiation, NeurIPS 2022.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.call_records import JvpCall, only_traces_of
from functrans.control.callbacks import pure_callback
from functrans.control.closures import Template, make_template
from functrans.control.custom_calls import custom_jvp_p
from functrans.control.scanning import while_loop
from functrans.core.arguments import (
    canonical,
    check_callable,
    further_arguments,
    leaf_description,
    name_of,
    take_over,
)
from functrans.core.avals import aval_of_plain, is_differentiable_dtype
from functrans.core.boundary import boundary, warn
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, shape_of, tracing
from functrans.core.ownership import own_arrays
from functrans.core.source import here
from functrans.core.state import open_traces
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.transformed import Wrapper
from functrans.core.values import Array
from functrans.errors import ConvergenceError, UnsupportedOperationError
from functrans.jitted.forks import forked
from functrans.passes.programs import split
from functrans.passes.pushing import PushingTrace, PushingTracer
from functrans.primitives.structural import cast
from functrans.solvers.custom_root import pair_of
from functrans.solvers.krylov import Space, bicgstab, cg, gmres
from functrans.solvers.linear_solve import custom_linear_solve
from functrans.transforms.forward import linearize
from functrans.transforms.vectorize import vmap

# linear systems ---------------------------------------------------------------------------------

MAX_DENSE = 1024
"""Unknowns up to which ``solve="auto"`` forms the matrix."""

LinearSolver = Callable[[Callable[[Any], Any], Any], Any]
Prepared = Callable[[Any], Any]
_KRYLOV = {"cg": cg, "bicgstab": bicgstab, "gmres": gmres}
_RTOL = {"float64": 1e-12, "float32": 1e-6}


def check_solver_name(who: str, solve: str | LinearSolver) -> None:
    """Refuse an unknown solver.

    Raises:
      ValueError: names those that are known.
    """
    if not callable(solve) and solve not in ("auto", "dense", *_KRYLOV):
        names = ", ".join(map(repr, ("auto", "dense", *_KRYLOV)))
        raise ValueError(f"{who}: solve must be a function or one of {names}, got {solve!r}")


def prepare_solver(
    who: str, matvec: Callable[[Any], Any], example: Any, solve: str | LinearSolver, symmetric: bool
) -> Prepared:
    """A function that solves ``matvec(x) = b``; what does not depend on ``b`` is done here.

    Args:
      who: for messages.
      matvec: linear function of pytrees.
      example: a pytree like ``b``.
      solve: name of the solver, or a function ``(matvec, b) -> x``.
      symmetric: whether the matrix is symmetric.
    """
    if callable(solve):
        own = solve
        other = None if symmetric else own
        return lambda b: custom_linear_solve(matvec, b, own, other, symmetric=symmetric)
    space = Space(who, example, "the residual")

    def product(v: Array) -> Any:
        return space.ravel(matvec(space.unravel(v)), "the tangent of the residual")

    name = solve
    if name == "auto":
        name = "dense" if space.size <= MAX_DENSE else "cg" if symmetric else "gmres"
    if name != "dense":
        tol = _RTOL.get(space.dtype.name, 1e-6)

        def iterate(product: Callable[[Any], Any], rhs: Any) -> Array:
            x, info = _KRYLOV[name](product, rhs, tol=tol)
            return np.where(info == 0, x, np.nan * x)

        def solved(b: Array) -> dict[str, Any]:
            x = custom_linear_solve(
                product, space.ravel(b, "b"), iterate, None if symmetric else iterate, symmetric
            )
            return space.unravel(x)

        return solved
    if space.size == 0:
        return lambda b: b
    matrix = vmap(product, out_axes=1)(np.eye(space.size, dtype=space.dtype))
    if type(matrix) is np.ndarray:
        _check_regular(who, matrix)
    return lambda b: space.unravel(np.linalg.solve(matrix, space.ravel(b, "b")))


def _check_regular(who: str, matrix: np.ndarray) -> None:
    """Refuse a matrix that is singular to working precision."""
    from scipy.linalg import get_lapack_funcs

    n = len(matrix)
    getrf, gecon = get_lapack_funcs(("getrf", "gecon"), (matrix,))
    is_finite = bool(np.isfinite(matrix).all())
    rcond = 0.0
    if is_finite:
        factors, _, info = getrf(matrix)
        if info == 0:
            rcond, _ = gecon(factors, np.linalg.norm(matrix, 1))
    if not is_finite or rcond < np.finfo(matrix.dtype).eps:
        what = f"is singular (reciprocal condition number {rcond:.1e})"
        raise np.linalg.LinAlgError(
            f"{who}: the {n} x {n} Jacobian of the optimality condition in the unknowns "
            f"{what if is_finite else 'has entries that are not finite'} at the "
            "solution, so that the solution is no differentiable function of the arguments; "
            "look for unknowns that the condition does not determine"
        )


# the decorator ----------------------------------------------------------------------------------


class _Arguments:
    """How the arguments of a solver are made up of arrays.

    Attributes:
      treedef: structure of ``(args, kwargs)``.
      static: per leaf, its value if it is no array, in a tuple; else ``None``.
      n_guess: number of arrays in the first argument.
    """

    __slots__ = ("n_guess", "static", "treedef")

    def __init__(self, treedef: Any, static: list[tuple[Any] | None], n_guess: int) -> None:
        self.treedef = treedef
        self.static = static
        self.n_guess = n_guess

    def fill(self, arrays: Sequence[Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments."""
        given = iter(arrays)
        leaves = [next(given) if own is None else own[0] for own in self.static]
        args, kwargs = tree.unflatten(self.treedef, leaves)
        return args, kwargs


class _ImplicitCall(JvpCall):
    """A call of a solver that ``implicit_diff`` decorates.

    Attributes:
      owner: the decorated solver, for its options.
      template: solver, condition and linear solver, without what they refer to.
      arguments: how arrays make up arguments.
      out: structures of ``x`` and of ``aux``, once the solver has run.
      is_inside: whether traces were open at the call.
    """

    __slots__ = ("arguments", "is_inside", "out", "owner", "template")
    takes_zeros = True

    def __init__(self, owner: ImplicitFunction, template: Template, arguments: _Arguments) -> None:
        self.label = owner.label
        self.refused = ()
        self.owner = owner
        self.template = template
        self.arguments = arguments
        self.out: list[Any] = []
        self.is_inside = False

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """Run the solver: on plain arrays, in a callback if there are none yet."""
        if any(isinstance(arg, Tracer) for arg in args) and not self.owner.traceable:
            return self._called_back(args)
        x, aux = self._run(args)
        leaves = self._leaves("the solution", x)
        if self.is_inside and not any(isinstance(arg, Tracer) for arg in args):
            held, operands = split(args, len(self.template.holes))
            own, kwargs = self.arguments.fill(operands)
            self.owner.refuse_unseen(self.template.fill(held)[1](x, *own[1:], **kwargs))
        extra = self._leaves("aux", aux) if self.owner.has_aux else []
        self.out[:] = [tree.structure(x), tree.structure(aux), len(leaves)]
        return [*leaves, *extra]

    def _run(self, values: Sequence[Any]) -> tuple[Any, Any]:
        """``(x, aux)`` of the solver; it may write to the initial guess."""
        held, operands = split(values, len(self.template.holes))
        solver = self.template.fill(held)[0]
        n = self.arguments.n_guess
        guess = [x if isinstance(x, Tracer) else np.array(x) for x in operands[:n]]
        args, kwargs = self.arguments.fill([*guess, *operands[n:]])
        with only_traces_of(values):
            result = solver(*args, **kwargs)
        return pair_of(self.label, result, self.owner.has_aux)

    def _leaves(self, what: str, value: Array | complex) -> list[Any]:
        """Leaves of a result."""
        found = []
        for i, leaf in enumerate(tree.leaves(value)):
            describe = functools.partial(leaf_description, self.label, value, i, what)
            leaf = canonical(leaf, describe, "return arrays and numbers")
            found.append(leaf if isinstance(leaf, Tracer) else np.asarray(leaf))
        return found

    def _called_back(self, values: Sequence[Any]) -> list[Any]:
        """Run the solver when the program runs."""
        args, kwargs = self.arguments.fill(split(values, len(self.template.holes))[1])
        like = self.owner.announced(args, kwargs)
        x_like, aux_like = pair_of(self.label, like, self.owner.has_aux)
        leaves, treedef = tree.flatten(x_like)
        aux_leaves, aux_treedef = tree.flatten(aux_like)

        def run(*arrays: object) -> list[Any]:
            x, aux = self._run(arrays)
            own, own_treedef = tree.flatten(x)
            if own_treedef != treedef:
                Space(self.label, x_like, "out_like").ravel(x, "the solution")
            self._check_plain(arrays, own, treedef)
            return [*own, *(tree.leaves(aux) if self.owner.has_aux else [])]

        self.out[:] = [treedef, aux_treedef, len(leaves)]
        structs = [
            ShapeDtypeStruct(shape_of(leaf), dtype_of(leaf))
            if not isinstance(leaf, ShapeDtypeStruct)
            else leaf
            for leaf in [*leaves, *(aux_leaves if self.owner.has_aux else [])]
        ]
        return list(pure_callback(run, structs, *values, vmap_method="sequential"))

    def _check_plain(self, values: Sequence[Any], x: Sequence[Any], treedef: object) -> None:
        """Warn if plain arrays do not satisfy the condition."""
        if self.owner.tol is None or not x:
            return
        held, operands = split(values, len(self.template.holes))
        condition = self._condition(held, operands, treedef)
        point = [np.asarray(leaf) for leaf in x]
        with only_traces_of(values):
            out, push = linearize(lambda *leaves: condition(leaves, {}), *point)
            self._check_solved(point, out, push)

    def _condition(
        self, held: Sequence[Any], operands: Sequence[Any], treedef: object
    ) -> Callable[..., list[Any]]:
        """Leaves of ``F`` as a function of the leaves of ``x`` and of some arguments, by number.

        The numbers count what functions refer to, then the arrays among the arguments.
        """
        k = len(held)

        def condition(x: Sequence[Any], moving: dict[int, Any]) -> list[Any]:
            values = [moving.get(i, value) for i, value in enumerate([*held, *operands])]
            fun = self.template.fill(values[:k])[1]
            args, kwargs = self.arguments.fill(values[k:])
            point = tree.unflatten(treedef, list(x))
            result = fun(point, *args[1:], **kwargs)
            space = Space(self.label, point, "the solution")
            what = "the result of fixed_point_fun" if self.owner.is_fixed_point else (
                "the result of optimality_fun"
            )  # fmt: skip
            space.ravel(result, what)  # refuses what is not like the solution
            leaves = tree.leaves(result)
            if self.owner.is_fixed_point:
                return [out - own for out, own in zip(leaves, x, strict=True)]
            return leaves

        return condition

    def jvp(
        self, closed: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The implicit function theorem."""
        with only_traces_of(args):
            outs = list(bind(custom_jvp_p, *args, call=self, jaxpr=None, n_extra=0))
        treedef, _, n = self.out
        x = outs[:n]
        nothing = [None] * len(outs)
        k = len(self.template.holes)
        moving = [
            i
            for i, t in enumerate(tangents)
            if t is not None and not k <= i < k + self.arguments.n_guess
        ]
        if not moving or not x:
            return outs, nothing
        for i, leaf in enumerate(x):
            self._check_real(i, leaf)
        held, operands = split(args, k)
        condition = self._condition(held, operands, treedef)
        with only_traces_of(args):
            out, push = linearize(lambda *leaves: condition(leaves, {}), *x)

            def matvec(v: Array) -> Any:
                return tree.unflatten(treedef, push(*tree.leaves(v)))

            self._check_solved(x, out, push)
            solve = prepare_solver(
                self.label,
                matvec,
                tree.unflatten(treedef, x),
                self.template.fill(held)[2],
                self.owner.symmetric,
            )

        # The unknowns are of the same trace, without moving: so what is made of both may be said to
        # be ``like`` either.
        def moved(values: list[Any]) -> list[Any]:
            return condition(values[:n], dict(zip(moving, values[n:], strict=True)))

        pushed = self._pushed(
            moved,
            [*x, *(args[i] for i in moving)],
            [*(None for _ in x), *(tangents[i] for i in moving)],
        )
        rhs = [cast(t, dtype_of(leaf)) for t, leaf in zip(pushed, x, strict=True)]
        found = tree.leaves(solve(tree.unflatten(treedef, rhs)))
        return outs, [*(-t for t in found), *nothing[n:]]

    def _pushed(
        self, fun: Callable[[list[Any]], list[Any]], values: list[Any], tangents: list[Any]
    ) -> list[Any]:
        """Tangents of results.

        Not by ``ft.jvp``, for which a plain tangent belongs to the program that is being staged:
        here it may be that of an enclosing transform.
        """
        trace = PushingTrace(self.label)
        with tracing(trace, [*values, *(t for t in tangents if t is not None)]):
            outs = fun([PushingTracer(trace, x, t) for x, t in zip(values, tangents, strict=True)])
        return [
            np.zeros(shape_of(out), dtype_of(out)) if tangent is None else tangent
            for out, tangent in zip(outs, trace.taken_apart(outs)[1], strict=True)
        ]

    def _check_real(self, i: int, leaf: Array) -> None:
        """Refuse unknowns without real derivatives."""
        aval: Any = aval_of(leaf)
        if not is_differentiable_dtype(aval.dtype):
            raise TypeError(
                f"{self.label}: leaf {i} of the solution is {aval}{here()}; the solver must return "
                "floating-point numbers: start from np.asarray(x0, dtype=float)"
            )
        if aval.dtype.kind == "c":
            raise UnsupportedOperationError(
                f"{self.label}: leaf {i} of the solution is {aval}{here()}; make its real and "
                "imaginary part two unknowns"
            )

    def _check_solved(
        self, x: Sequence[Any], residual: Sequence[Any], push: Callable[..., Any]
    ) -> None:
        """Warn where ``F(x)`` is larger than a relative change of ``x`` by ``tol`` makes it."""
        tol = self.owner.tol
        if tol is None or not all(type(value) is np.ndarray for value in [*x, *residual]):
            return
        rng = np.random.default_rng(0)
        moved = [np.asarray((1 + np.abs(v)) * rng.choice([-1.0, 1.0], v.shape), v.dtype) for v in x]
        scale = _norm(push(*moved))
        size = _norm(residual)
        if not size <= tol * scale:
            warn(
                f"{self.label}: the solver has not converged: the optimality condition is "
                f"{size:.2g} in norm at its result, more than {tol:g} of what a change of the "
                "solution by 100 % makes it. Derivatives there are not those of a solution; give "
                "the solver more iterations or a smaller tolerance, or pass tol=None to "
                "implicit_diff.",
                RuntimeWarning,
            )


def _norm(values: Sequence[Any]) -> float:
    return float(np.sqrt(sum(np.sum(np.square(np.asarray(v, np.float64))) for v in values)))


class ImplicitFunction(Wrapper):
    """A solver whose derivative is that of the condition which its result satisfies.

    Attributes:
      label: what it is, for messages.
      has_aux: see ``implicit_diff``.
      symmetric: likewise.
      traceable: likewise.
      tol: likewise.
      is_fixed_point: whether the condition is that of a fixed point.
    """

    def __init__(
        self,
        solver: Callable[..., Any],
        condition: Callable[..., Any],
        solve: str | LinearSolver,
        *,
        is_fixed_point: bool,
        has_aux: bool,
        symmetric: bool,
        traceable: bool,
        out_like: Any,
        tol: float | None,
    ) -> None:
        self._given = (solver, condition)
        solver = traced_form("implicit_diff", solver)
        take_over(self, solver)
        self.label = f"implicit_diff of {name_of(solver)}"
        self.has_aux = has_aux
        self.symmetric = symmetric
        self.traceable = traceable
        self.tol = tol
        self.is_fixed_point = is_fixed_point
        self._solver = solver
        self._condition = traced_form("implicit_diff", condition)
        self._solve = solve
        self._out_like = out_like

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Run the solver."""
        if not args:
            raise TypeError(
                f"{self.label}: give the initial guess by position, as the first argument{here()}"
            )
        template, held = make_template((self._solver, self._condition, self._solve), objects=True)
        leaves, treedef = tree.flatten((args, kwargs))
        if not held and not any(isinstance(leaf, Tracer) for leaf in leaves):
            result = self._solver(*args, **kwargs)
            if open_traces.get():
                x, _ = pair_of(self.label, result, self.has_aux)
                self.refuse_unseen(self._condition(x, *args[1:], **kwargs))
            return result
        is_array = [isinstance(leaf, Tracer) or aval_of_plain(leaf) is not None for leaf in leaves]
        static = [None if flag else (leaf,) for leaf, flag in zip(leaves, is_array, strict=True)]
        operands = [leaf for leaf, flag in zip(leaves, is_array, strict=True) if flag]
        n_guess = sum(is_array[: len(tree.leaves(args[0]))])
        operands[:n_guess] = [
            cast(x, dtype_of(x)) if is_differentiable_dtype(dtype_of(x)) else x
            for x in operands[:n_guess]
        ]
        call = _ImplicitCall(self, template, _Arguments(treedef, static, n_guess))
        call.is_inside = bool(open_traces.get())
        outs = bind(custom_jvp_p, *held, *operands, call=call, jaxpr=None, n_extra=0)
        x_treedef, aux_treedef, n = call.out
        own = own_arrays(outs, operands)
        x = tree.unflatten(x_treedef, own[:n])
        return (x, tree.unflatten(aux_treedef, own[n:])) if self.has_aux else x

    def refuse_unseen(self, residual: Any) -> None:
        """Refuse traced values that the condition of plain arguments refers to.

        Raises:
          UnsupportedOperationError: there are some; their derivatives would be lost.
        """
        hidden = [leaf for leaf in tree.leaves(residual) if isinstance(leaf, Tracer)]
        if hidden:
            raise UnsupportedOperationError(
                f"{self.label}: the condition refers to traced values where they are not seen, as "
                "in a global variable or a slot of an object: of plain arguments it is "
                f"{hidden[0]._describe()}{here()}; pass them as arguments of the solver"
            )

    def announced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Something like the result of the solver.

        Raises:
          TypeError: nothing is known about it.
        """
        if self._out_like is not None:
            like = self._out_like
            return like(*args, **kwargs) if callable(like) else like
        if self.has_aux or not tree.leaves(args[0]):
            what = "(x, aux)" if self.has_aux else "x"
            raise TypeError(
                f"{self.label}: the types of its results are not known in a program that is staged"
                f"{here()}; pass out_like={what}, arrays or ft.ShapeDtypeStruct, to implicit_diff, "
                "or traceable=True if the solver can be traced"
            )
        return args[0]

    def parts(self) -> tuple[Any, ...]:
        """Solver, condition and linear solver."""
        return (self._solver, self._condition, self._solve)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> ImplicitFunction:
        """The same around other functions."""
        return self._remade(*parts())

    @property
    def _remade(self) -> Callable[..., ImplicitFunction]:
        return functools.partial(
            ImplicitFunction, is_fixed_point=self.is_fixed_point, has_aux=self.has_aux,
            symmetric=self.symmetric, traceable=self.traceable, out_like=self._out_like,
            tol=self.tol,
        )  # fmt: skip

    def __reduce__(self) -> Any:
        """Pickled as what it was made of."""
        return self._remade, (*self._given, self._solve)

    def __get__(self, instance: object, owner: object = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<implicit_diff of f>``."""
        return f"<{self.label}>"


@boundary
def implicit_diff(
    optimality_fun: Callable[..., Any] | None = None,
    solve: str | LinearSolver = "auto",
    has_aux: bool = False,
    *,
    fixed_point_fun: Callable[..., Any] | None = None,
    symmetric: bool = False,
    traceable: bool = False,
    out_like: object = None,
    tol: float | None = 1e-3,
) -> Callable[[Callable[..., Any]], ImplicitFunction]:
    """Decorate a solver: its derivatives are those of the condition that its result satisfies.

    The solver is called as ``solver(x0, *args, **kwargs)`` and may be any Python code, also calls
    of SciPy: it gets plain arrays under every transform, in a callback in staged programs (``jit``,
    ``vmap``). Derivatives are taken in ``args`` and ``kwargs``, in both modes and to any order; the
    initial guess has none.

    Args:
      optimality_fun: function ``(x, *args, **kwargs)`` that vanishes at the solution; it returns
        something like ``x``. For a minimum, the gradient: ``ft.grad(objective)``.
      solve: how the linear systems are solved: ``"dense"`` (forms the matrix), ``"cg"``,
        ``"gmres"``, ``"bicgstab"`` (products only), a function ``(matvec, b) -> x`` of operations
        that can be traced, or ``"auto"``: dense up to 1024 unknowns, above that ``"cg"`` for
        symmetric systems and ``"gmres"`` for others. Derivatives are NaN where an iterative solver
        does not converge.
      has_aux: whether the solver returns ``(x, aux)``; ``aux`` is not differentiated.
      fixed_point_fun: in place of ``optimality_fun``, a function of which ``x`` is a fixed point.
      symmetric: whether the Jacobian of the condition in ``x`` is symmetric, as a Hessian is.
      traceable: whether the solver consists of operations that can be traced; it then becomes a
        part of staged programs.
      out_like: in staged programs, something like the result of the solver, or a function of its
        arguments that gives it; by default the initial guess.
      tol: a warning is given if the condition at the result is larger than a relative change of the
        result by this much would make it, as far as values are at hand; ``None`` for no check.

    Returns:
      A decorator.

    Raises:
      TypeError: neither or both of ``optimality_fun`` and ``fixed_point_fun`` are given.
      TreeMismatchError, ShapeError: (in derivatives) the condition returns something unlike ``x``.
      LinAlgError: (in derivatives) the condition does not determine ``x``.

    Example:
      >>> import functrans as ft
      >>> from scipy.optimize import brentq
      >>> @implicit_diff(lambda x, a: x**3 + x - a)
      ... def root(x0, a):
      ...     return brentq(lambda x: x**3 + x - a, -10.0, 10.0)
      >>> ft.grad(root, 1)(0.0, 10.0)  # 1 / (3 x**2 + 1) at x = 2
      array(0.07692308)
    """
    if (optimality_fun is None) == (fixed_point_fun is None):
        raise TypeError("implicit_diff: give either optimality_fun or fixed_point_fun")
    condition: Any = fixed_point_fun if optimality_fun is None else optimality_fun
    check_callable("implicit_diff", condition)
    check_solver_name("implicit_diff", solve)

    def decorate(solver: Callable[..., Any]) -> ImplicitFunction:
        return ImplicitFunction(
            solver, condition, solve, is_fixed_point=optimality_fun is None, has_aux=has_aux,
            symmetric=symmetric, traceable=traceable, out_like=out_like, tol=tol,
        )  # fmt: skip

    return decorate


# fixed points -----------------------------------------------------------------------------------


@boundary
def fixed_point(
    fun: Callable[..., Any],
    x0: Any,
    args: tuple[Any, ...] = (),
    xtol: float = 1e-8,
    maxiter: int = 500,
    *,
    anderson: int = 0,
    damping: float = 1.0,
    solve: str | LinearSolver = "auto",
) -> Any:
    """Find a fixed point of a function by iteration; its derivative is the implicit one.

    Args:
      fun: function ``(x, *args)`` that returns something like ``x``. Derivatives are taken in
        ``args`` and in the traced values that it refers to.
      x0: start, a pytree of floating arrays.
      args: further arguments.
      xtol: the iteration ends when ``norm(fun(x) - x) <= xtol * (1 + norm(x))``; at least four
        times the precision of the numbers.
      maxiter: greatest number of evaluations.
      anderson: number of steps that Anderson acceleration combines; 0 for plain iteration.
      damping: part of the step to ``fun(x)`` that is taken.
      solve: how the linear systems of derivatives are solved; see ``implicit_diff``.

    Returns:
      ``x``; NaN in a staged program that has not converged, where nothing can be raised.

    Raises:
      ConvergenceError: ``maxiter`` evaluations were not enough.
      TreeMismatchError, ShapeError: ``fun`` returns something unlike ``x``.

    Example:
      >>> import functrans as ft
      >>> fixed_point(np.cos, 1.0, xtol=1e-10)
      array(0.73908513)
      >>> ft.grad(lambda a: fixed_point(lambda x: np.cos(a * x), 1.0))(1.0)
      array(-0.29...)

    Reference: Walker & Ni, Anderson acceleration for fixed-point iterations, SIAM J. Numer. Anal.
    49 (2011), 1715-1735.
    """
    fun = forked(traced_form("fixed_point", fun), "fixed_point", is_pure=True)
    if anderson < 0 or maxiter < 1:
        raise ValueError(
            f"fixed_point: anderson must not be negative and maxiter at least 1, got {anderson} "
            f"and {maxiter}"
        )
    who = f"fixed_point of {name_of(fun)}"
    args = further_arguments(args)
    start = Space(who, x0, "x0")
    xtol = max(xtol, 4 * float(np.finfo(start.dtype).eps))

    def solver(x: Array, *own: float) -> Any:
        space = Space(who, x, "x0")

        def step(vector: Array) -> Any:
            return space.ravel(fun(space.unravel(vector), *own), "the result of fun") - vector

        vector, residual, k = _iterate(step, space.ravel(x, "x0"), xtol, maxiter, anderson, damping)
        size, bound = _length(residual), xtol * (1.0 + _length(vector))
        is_solved = size <= bound
        if isinstance(is_solved, Tracer):
            flag: Any = is_solved
            vector = np.where(flag, vector, np.nan * vector)
        elif not is_solved:
            raise ConvergenceError(
                f"{who}: after {int(k)} evaluations fun(x) - x is {float(size):.3g} in norm, more "
                f"than {float(bound):.3g}{here()}; allow more evaluations (maxiter), a larger "
                "xtol, or accelerate with anderson=5"
            )
        return space.unravel(vector)

    call = implicit_diff(fixed_point_fun=fun, solve=solve, traceable=True, tol=None)(solver)
    result = call(start.unravel(start.ravel(x0, "x0")), *args)
    leaves, treedef = tree.flatten(result)
    return tree.unflatten(treedef, own_arrays(leaves))


def _length(vector: Array) -> Array:
    return np.sqrt(np.sum(np.abs(vector) ** 2))


def _iterate(
    step: Callable[[Any], Any],
    x: Array | complex,
    xtol: float,
    maxiter: int,
    window: int,
    damping: float,
) -> tuple[Any, Any, Any]:
    """Iterate ``x + step(x)``; the last point, ``step`` there, and the number of evaluations."""
    n, dtype = shape_of(x)[0], dtype_of(x)
    f = step(x)
    history = np.zeros((window, n), dtype) + 0.0 * f

    def body(state: Sequence[Any]) -> tuple[Array, Array, Array, Array, Array]:
        x, f, moves, changes, k = state
        ahead = x + damping * f
        if window:
            # Least squares by normal equations, scaled: rows that are not there yet are 0.
            sizes = np.sqrt(np.sum(changes * changes, axis=1))
            scaled = changes / np.where(sizes == 0, 1.0, sizes)[:, None]
            gram = scaled @ scaled.T + 1e-10 * np.eye(window, dtype=dtype)
            weights = np.linalg.solve(gram, scaled @ f) / np.where(sizes == 0, 1.0, sizes)
            ahead = ahead - weights @ (moves + damping * changes)
        new = step(ahead)
        if window:
            moves = np.concatenate([moves[1:], (ahead - x)[None]])
            changes = np.concatenate([changes[1:], (new - f)[None]])
        return ahead, new, moves, changes, k + 1

    def goes_on(state: Sequence[Array]) -> Array:
        x, f, _, _, k = state
        return (_length(f) > xtol * (1.0 + _length(x))) & (k < maxiter)

    state: Any = (x, f, history, history, np.int64(1))
    if any(isinstance(value, Tracer) for value in state):
        state = while_loop(goes_on, body, state)
    else:
        while goes_on(state):
            state = body(state)
    return state[0], state[1], state[4]
