"""Linear systems with a solver of the user's: ``custom_linear_solve``.

Here: the function, and the primitive behind it. Not here: solvers (``solvers.krylov``), nonlinear
systems (``solvers.custom_root``).

The derivative of ``x = solve(A, b)`` is ``dx = solve(A, db - dA x)``, and the transpose of the map
from ``b`` to ``x`` solves with the transposed matrix, so that the steps of the solver are never
differentiated. All four programs (product and solver, and both transposed) are parameters of the
equation; what they refer to are its operands, the right-hand side is the last of them. Transposing
exchanges the programs.

Layer: ``solvers``. Reference: Giles, An extended collection of matrix derivative results for
forward and reverse mode automatic differentiation, Oxford NA-08/01 (2008), section 2.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from functrans import pytrees as tree
from functrans.control.bodies import (
    Body,
    check_structure,
    finish_results,
    flatten_operands,
    stage_body,
)
from functrans.control.calls import is_nonzero, kept_residuals, to_front
from functrans.control.native import run
from functrans.core.avals import Aval, Zero, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here
from functrans.core.state import batch_axis
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.passes.cotangents import instantiate, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batch_jaxpr,
    derivation,
    derived,
    intern,
    jvp_jaxpr,
    permute,
    spread,
    transpose_jaxpr,
    with_batch_axis,
)
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.structural import cast

# the primitive ----------------------------------------------------------------------------------


def _impl(*operands: Array, jaxpr: Jaxpr, **_: int | Jaxpr) -> tuple[Any, ...]:
    return tuple(run(jaxpr, operands))


def _abstract_eval(*avals: Aval, jaxpr: Jaxpr, **_: int | Jaxpr) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _moved(
    operands: Sequence[Any], solution: Sequence[Any], dots: Sequence[Any], params: dict[str, Any]
) -> list[Any]:
    """``db - dA x``, the right-hand side for the tangent of the solution.

    Args:
      operands: those of the equation.
      solution: ``x``.
      dots: tangent of each operand, ``None`` for zero.
      params: of the equation.
    """
    matvec, n_product = params["matvec"], params["n_product"]
    n = len(solution)
    own = dots[:n_product]
    rhs = [
        zeros(aval_of(x).strong()) if t is None else t
        for t, x in zip(dots[len(dots) - n :], solution, strict=True)
    ]
    flags = (*(t is not None for t in own), *(False for _ in solution))
    if not any(flags):
        return rhs
    program, out_nonzero = jvp_jaxpr(matvec, flags)
    given = [t for t in own if t is not None]
    results = evaluate(program, [*operands[:n_product], *solution, *given])
    pushed = spread(out_nonzero, results[n:], lambda i: None)
    return [b if t is None else b - t for b, t in zip(rhs, pushed, strict=True)]


def _solve_for(operands: Sequence[Any], rhs: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The same system with another right-hand side; without auxiliary results."""
    n = len(rhs)
    own = {**params, "jaxpr": _without_aux(params["jaxpr"], n)}
    return list(bind(custom_linear_solve_p, *operands[: len(operands) - n], *rhs, **own))


def _without_aux(jaxpr: Jaxpr, n: int) -> Jaxpr:
    """The program of the solution alone."""
    return jaxpr if len(jaxpr.outvars) == n else _solution(jaxpr, n)


@derivation
def _solution(jaxpr: Jaxpr, n: int) -> Jaxpr:
    return intern(simplify(permute(jaxpr, None, range(n))))


def _n_solution(params: dict[str, Any]) -> int:
    return len(params["matvec"].outvars)


def _jvp(primals: tuple[Array, ...], tangents: tuple[Any, ...], **params: Any) -> tuple[Any, ...]:
    outs = list(bind(custom_linear_solve_p, *primals, **params))
    n = _n_solution(params)
    rest = [Zero(aval_of(out).strong()) for out in outs[n:]]
    if not _is_moving(is_nonzero(tangents), params, len(primals)):
        return outs, [*(Zero(aval_of(out).strong()) for out in outs[:n]), *rest]
    dots = [None if type(t) is Zero else t for t in tangents]
    rhs = _moved(primals, outs[:n], dots, params)
    return outs, [*_solve_for(primals, rhs, params), *rest]


def _is_moving(needs: Flags, params: dict[str, Any], n_operands: int) -> bool:
    """Whether the system moves, and not only what the solvers refer to."""
    return any(needs[: params["n_product"]]) or any(needs[n_operands - _n_solution(params) :])


def _linearize(
    needs: Flags, operands: Sequence[Array], **params: Any
) -> tuple[tuple[Any, ...], LinearProgram]:
    outs = tuple(bind(custom_linear_solve_p, *operands, **params))
    n = _n_solution(params)
    targets = tuple(i for i, need in enumerate(needs) if need)

    def linear(*given: Array) -> list[Any]:
        rest = [zeros(aval_of(out).strong()) for out in outs[n:]]
        if not _is_moving(needs, params, len(operands)):
            return [*(zeros(aval_of(out).strong()) for out in outs[:n]), *rest]
        rhs = _moved(operands, outs[:n], spread(needs, given, lambda i: None), params)
        return [*_solve_for(operands, rhs, params), *rest]

    avals = [aval_of(operands[i]).strong() for i in targets]
    jaxpr = stage(linear, avals, "linear part of custom_linear_solve", name="linear_solve")
    consts = kept_residuals(jaxpr.consts, operands, needs)
    return outs, LinearProgram(replace(jaxpr, consts=tuple(consts), cache={}), targets, ())


def _transpose(cts: tuple[Any, ...], operands: Any, **params: Any) -> tuple[Any, ...]:
    n = _n_solution(params)
    first = len(operands) - n
    if any(map(is_linear, operands[:first])):
        raise NonDifferentiableError(
            f"custom_linear_solve is not linear in what matvec or solve refer to{here()}"
        )
    if params["transposed"] is None:
        raise TypeError(
            f"custom_linear_solve: reverse mode needs transpose_solve{here()}; give one, or "
            "symmetric=True where the matrix is symmetric"
        )
    found = bind(
        custom_linear_solve_p,
        *operands[:first],
        *map(instantiate, cts[:n]),
        jaxpr=params["transposed"],
        transposed=_without_aux(params["jaxpr"], n),
        matvec=params["vecmat"],
        vecmat=params["matvec"],
        n_product=params["n_product"],
    )
    return (
        *(None for _ in operands[:first]),
        *(ct if is_linear(b) else None for b, ct in zip(operands[first:], found, strict=True)),
    )


def _batch(
    size: int, operands: Sequence[Array], dims: Sequence[Any], **params: Any
) -> tuple[Any, ...]:
    n = _n_solution(params)
    first = len(operands) - n
    flags = tuple(dim is not None for dim in dims[:first])
    axis_name = batch_axis.get()
    of_product = (*flags[: params["n_product"]], *(True,) * n)

    def batched(jaxpr: Jaxpr | None, own: Flags) -> Jaxpr | None:
        return None if jaxpr is None else batch_jaxpr(jaxpr, size, own, True, axis_name)[0]

    outs = bind(
        custom_linear_solve_p,
        *to_front(size, operands[:first], dims[:first]),
        *(
            with_batch_axis(b, size, dim)
            for b, dim in zip(operands[first:], dims[first:], strict=True)
        ),
        jaxpr=batched(params["jaxpr"], (*flags, *(True,) * n)),
        transposed=batched(params["transposed"], (*flags, *(True,) * n)),
        matvec=batched(params["matvec"], of_product),
        vecmat=batched(params["vecmat"], of_product),
        n_product=params["n_product"],
    )
    return outs, (0,) * len(outs)


custom_linear_solve_p: Primitive = Primitive(
    "custom_linear_solve",
    impl=_impl,
    abstract_eval=_abstract_eval,
    jvp=Joint(_jvp),
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    holds_programs=True,
    lower=Structured("call"),
)

PRIMITIVES: tuple[Primitive, ...] = (custom_linear_solve_p,)


# the function -----------------------------------------------------------------------------------


@boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Solve a linear system with any solver; derivatives solve systems too.

    Args:
      matvec: linear function of a pytree like ``b``; returns one like it.
      b: right-hand side, a pytree of floating arrays.
      solve: function ``(matvec, b) -> x``, of operations that can be traced. Its steps are not
        differentiated.
      transpose_solve: function ``(vecmat, ct) -> x`` for the transposed system, which reverse mode
        needs; ``vecmat`` is the transpose of ``matvec``.
      symmetric: whether the matrix is symmetric: then ``solve`` serves for both.
      has_aux: whether ``solve`` returns ``(x, aux)``; ``aux`` is not differentiated.

    Returns:
      ``x`` with the structure of ``b``, or ``(x, aux)``.

    Raises:
      TypeError: a leaf of ``b`` is not floating; (in reverse mode) ``transpose_solve`` is missing.
      TreeMismatchError, ShapeError: ``matvec`` or ``solve`` return something unlike ``b``.

    Example:
      >>> import numpy as np
      >>> import functrans as ft
      >>> def solve(matvec, b):
      ...     return np.linalg.solve(ft.jacobian(matvec)(b), b)
      >>> A = np.array([[2.0, 1.0], [0.0, 4.0]])
      >>> def total(b):
      ...     return custom_linear_solve(lambda x: A @ x, b, solve, transpose_solve=solve).sum()
      >>> ft.grad(total)(np.ones(2))
      array([0.5  , 0.125])
    """
    who = "custom_linear_solve"
    matvec = traced_form(f"{who}: matvec", matvec)
    solve = traced_form(f"{who}: solve", solve)
    if transpose_solve is not None:
        transpose_solve = traced_form(f"{who}: transpose_solve", transpose_solve)
    leaves, b_treedef, paths = flatten_operands(who, b, "b")
    treedef = tree.structure((b,))
    values = []
    for leaf, path in zip(leaves, paths, strict=True):
        aval: Any = aval_of(leaf)
        if not is_differentiable_dtype(aval.dtype):
            raise TypeError(
                f"{who}: {path} is {aval}{here()}; a linear system is solved in floating-point "
                "numbers: convert it with np.asarray(b, dtype=float)"
            )
        values.append(cast(leaf, aval.dtype))
    avals = [aval_of(value).strong() for value in values]
    n = len(avals)

    product = _staged(f"{who}: matvec", matvec, treedef, avals, b_treedef)
    n_product = len(product.captured)
    solver = _staged_solver(
        "solve", solve, product.jaxpr, product, treedef, avals, b_treedef, has_aux
    )
    vecmat = product.jaxpr
    other: Body | None = None
    transposed_by = transpose_solve
    if symmetric and transposed_by is None:
        transposed_by = solve
    if transposed_by is not None:
        if not symmetric:
            vecmat = _transposed(product.jaxpr, n)
        if symmetric and transposed_by is solve:
            other = solver
        else:
            other = _staged_solver(
                "transpose_solve", transposed_by, vecmat, product, treedef, avals, b_treedef,
                has_aux,
            )  # fmt: skip
    captured = [*product.captured, *solver.captured]
    is_shared = other is solver
    if other is not None and not is_shared:
        captured.extend(other.captured)
    total = len(captured)
    k = len(solver.captured)
    first = [n_product + i for i in range(k)]
    last = first if is_shared else list(range(n_product + k, total))
    outs = bind(
        custom_linear_solve_p,
        *captured,
        *values,
        jaxpr=_over_all(solver.jaxpr, product, captured, first, n),
        transposed=None
        if other is None
        else _without_aux(_over_all(other.jaxpr, product, captured, last, n), n),
        matvec=product.jaxpr,
        vecmat=vecmat,
        n_product=n_product,
    )
    return finish_results(outs, [*captured, *values], solver.treedef)


def _staged(
    label: str, fun: Callable[[Any], Any], treedef: object, avals: Sequence[Any], expected: object
) -> Body:
    """A function from pytrees like the right-hand side to such, as a program."""

    def finish(result: Array) -> Array:
        check_structure(
            "custom_linear_solve", expected, tree.structure(result), f"the result of {label}", "b"
        )
        return result

    body = stage_body(label, fun, treedef, avals, finish=finish)
    _check_types(label, body, avals)
    return body


def _check_types(label: str, body: Body, avals: Sequence[Any]) -> None:
    """Refuse a result unlike the right-hand side."""
    paths = body.out_paths("result")
    for path, have, want in zip(paths, body.out_avals, avals, strict=False):
        if have.shape != want.shape:
            raise ShapeError(
                f"{label}: {path} is {have}, but b is {want}; the matrix must be square"
            )
        if have.dtype != want.dtype:
            raise TypeError(
                f"{label}: {path} is {have}, but b is {want}; both must be of one dtype: convert "
                "with .astype"
            )


def _staged_solver(
    name: str,
    fun: Callable[..., Any],
    program: Jaxpr,
    product: Body,
    treedef: object,
    avals: Sequence[Any],
    expected: object,
    has_aux: bool,
) -> Body:
    """A solver as a program of the right-hand side; the product is part of it."""
    label = f"custom_linear_solve: {name}"

    def apply(x: Any) -> Any:
        values, own = tree.flatten(x)
        check_structure(label, expected, own, "the argument of matvec", "b")
        outs = evaluate(program, [*product.captured, *values])
        return tree.unflatten(expected, outs)

    def solved(rhs: Array) -> Any:
        return fun(apply, rhs)

    def finish(result: Array | tuple[Array, ...]) -> Any:
        x = result
        if has_aux:
            if not isinstance(result, tuple) or len(result) != 2:
                raise TypeError(f"{label}: has_aux=True needs a pair (x, aux){here()}")
            x = result[0]
        check_structure(label, expected, tree.structure(x), "the solution", "b")
        return result

    body = stage_body(label, solved, treedef, avals, finish=finish)
    _check_types(label, body, avals)
    return body


def _transposed(matvec: Jaxpr, n: int) -> Jaxpr:
    """The program of the transposed product."""
    n_consts = len(matvec.invars) - n
    flags = (False,) * n_consts + (True,) * n

    def make() -> Jaxpr:
        program, in_nonzero = transpose_jaxpr(matvec, flags, (True,) * n)
        if all(in_nonzero):
            return intern(program)
        avals = [aval.strong() for aval in matvec.in_avals[n_consts:]]

        def filled(*args: object) -> list[Any]:
            return spread(in_nonzero, evaluate(program, args), lambda i: zeros(avals[i]))

        return intern(stage(filled, program.in_avals, f"transpose of {matvec.name}"))

    return derived(matvec, ("vecmat", n), make)


def _over_all(
    jaxpr: Jaxpr, product: Body, captured: Sequence[Any], own: Sequence[int], n: int
) -> Jaxpr:
    """A solver's program with all operands of the equation as arguments."""
    avals = [*(aval_of(value) for value in captured), *jaxpr.in_avals[len(own) :]]
    total = len(captured)

    def make() -> Jaxpr:
        def solved(*args: object) -> list[Any]:
            return list(evaluate(jaxpr, [*select_at(args, own), *args[total:]]))

        return intern(stage(solved, avals, jaxpr.name or "solve", name=jaxpr.name))

    return derived(jaxpr, ("over all", tuple(avals), tuple(own)), make)


def select_at(items: Sequence[Any], positions: Sequence[int]) -> list[Any]:
    """The items at some positions."""
    return [items[i] for i in positions]
