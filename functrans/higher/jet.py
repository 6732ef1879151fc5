"""Taylor mode: ``jet`` and ``nth_derivative``.

Here: the trace that carries power series through a function, what control flow and calls do with
them, and the two transforms. Not here: the arithmetic of series (``higher.series``).

A series goes through a loop or a call as further arguments: the body becomes a program of values
and coefficients (``series_program``), as it becomes one of values and tangents in forward mode.

Operations of the user's function get all their coefficients at once, in program order. Those
inside a derivative rule, which may refer to the result that they are to give, get each when it is
asked for (``_TaylorTrace.is_lazy``).

Layer: ``higher``. Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008),
ch. 13; Bettencourt, Johnson & Duvenaud, Taylor-Mode Automatic Differentiation for Higher-Order
Derivatives in JAX, NeurIPS program transformations workshop (2019).
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.branches import cond_lanes_p, cond_p
from functrans.control.checkpoint import checkpoint_p
from functrans.control.loop_bodies import fixpoint
from functrans.control.loops import Shape, scan_p, scan_shape
from functrans.control.native import jit_p
from functrans.control.revolve import binomial_p, revolve_p
from functrans.control.while_loop import bind_while, while_p
from functrans.core.arguments import (
    differentiable_leaf,
    leaf_description,
    leaf_type,
    name_of,
    named,
    result_leaf,
    tangent_dtype,
)
from functrans.core.avals import ShapedArray, Zero, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import (
    Tracer,
    aval_of,
    bind,
    dtype_of,
    innermost_staging,
    shape_of,
    standing,
    tracing,
)
from functrans.core.jaxpr import Jaxpr, Var
from functrans.core.ownership import own_arrays
from functrans.core.primitive import Joint, Primitive, linear, multilinear
from functrans.core.source import here
from functrans.core.transformed import transform
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.higher.series import (
    Series,
    elementwise_series,
    given_series,
    linear_series,
    multilinear_series,
    slope,
    solved,
)
from functrans.higher.towers import TowerTrace, TowerTracer
from functrans.passes.cotangents import zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import Flags, derivation, derived, permute, select, split
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.transforms.linear_functions import fit_tangent
from functrans.transforms.reverse import private

Coefficients = list[Any]


class _TaylorTrace(TowerTrace):
    """Evaluates every operation on power series up to an order.

    Attributes:
      order: number of coefficients besides the value.
      is_lazy: coefficients are computed when they are asked for; inside derivative rules.
    """

    __slots__ = ("is_lazy", "order")

    def __init__(self, label: str, order: int) -> None:
        super().__init__(label)
        self.order = order
        self.is_lazy = False

    def raised(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Results of an operation and their series."""
        holder = _HOLDERS.get(primitive)
        if holder is not None:
            return self._held(holder, primitive, values, towers, params)
        outs = bind(primitive, *values, **params)
        series = self._series(primitive, values, towers, params, outs)
        if not self.is_lazy:
            series = [None if s is None else s.settled(self.order) for s in series]
        return outs, series

    def _series(
        self,
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
        outs: Sequence[Any],
    ) -> Sequence[Series | None]:
        """The series of the results of a primitive that holds no program."""
        if primitive.elementwise is not None and not params:
            found = elementwise_series(primitive, towers, values, outs[0])
            if found is not None:
                return [found]
        rule = primitive.jvp
        if rule is linear:
            return linear_series(primitive, towers, values, params, outs, _still)
        if rule is multilinear:
            return multilinear_series(primitive, towers, values, params, outs)
        if not callable(rule) and type(rule) is not Joint:
            raise NonDifferentiableError(
                f"primitive {primitive.name} has no derivative rule (field jvp is None){here()}; "
                "use ft.stop_gradient or give a custom rule (ft.custom_jvp)"
            )
        return self._solved(rule, values, towers, params, outs)

    def _solved(
        self,
        rule: Any,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
        outs: Sequence[Any],
    ) -> list[Series]:
        """The series of results as solutions of the equations that a jvp rule is."""
        results: list[Series] = []
        found: list[Sequence[Any]] = []

        def run() -> Sequence[Any]:
            primals = tuple([self._tracer(v, s) for v, s in zip(values, towers, strict=True)])
            tangents = tuple(
                [
                    Zero(aval_of(v)) if s is None else self._slope(s)
                    for v, s in zip(values, towers, strict=True)
                ]
            )
            was_lazy, self.is_lazy = self.is_lazy, True
            try:
                if type(rule) is Joint:
                    _, dots = rule.rule(primals, tangents, **params)
                else:
                    own = tuple(
                        [
                            TowerTracer(self, s.value, s) if _is_floating(s.value) else s.value
                            for s in results
                        ]
                    )
                    dots = rule(primals, tangents, own, **params)
            finally:
                self.is_lazy = was_lazy
            return dots

        def rate(i: int) -> Callable[[Series], Series | None]:
            def at(y: Series) -> Series | None:
                if not found:
                    found.append(run())
                dot = found[0][i]
                if type(dot) is Zero or dot is None:
                    return None
                value, tower = self.split(dot)
                return given_series(value, ()) if tower is None else tower

            return at

        results.extend(solved(out, rate(i)) for i, out in enumerate(outs))
        return results

    def _slope(self, series: Series) -> TowerTracer:
        w = slope(series)
        return TowerTracer(self, w.value, w)

    def _tracer(self, value: Array | complex, series: Series | None) -> Any:
        return value if series is None else TowerTracer(self, value, series)

    def _held(
        self,
        holder: Callable[..., Any],
        primitive: Primitive,
        values: Sequence[Any],
        towers: Sequence[Any],
        params: Mapping[str, Any],
    ) -> tuple[Sequence[Any], Sequence[Any]]:
        """Results of an equation that holds programs, and their series."""

        def run(order: int) -> tuple[Sequence[Any], list[Coefficients | None]]:
            own = [_filled(v, s, order) for v, s in zip(values, towers, strict=True)]
            result: tuple[Sequence[Any], list[Coefficients | None]] = holder(
                primitive, values, own, order, **params
            )
            return result

        if not self.is_lazy:
            outs, coefficients = run(self.order)
            return outs, [None if c is None else given_series(o, c) for o, c in zip(
                outs, coefficients, strict=True)]  # fmt: skip
        outs = bind(primitive, *values, **params)
        found: list[list[Coefficients | None]] = []

        def rule(i: int) -> Callable[[int, int], Any]:
            def at(k: int, wanted: int) -> Any:
                if not found or any(c is not None and len(c) < k for c in found[-1]):
                    found.append(run(wanted)[1])
                own = found[-1][i]
                return None if own is None else own[k - 1]

            return at

        return outs, [Series(out, rule(i)) for i, out in enumerate(outs)]


def _is_floating(value: Array | complex) -> bool:
    return is_differentiable_dtype(dtype_of(value))


def _still(value: Any) -> Any:
    """The tangent of a constant operand of a linear primitive."""
    if not _is_floating(value):
        return value
    if type(value) in (float, complex):
        return type(value)(0)
    return zeros(aval_of(value).strong())


def _filled(value: object, series: Series | None, order: int) -> Coefficients | None:
    """The coefficients of a series as arrays; ``None`` where all are zero."""
    if series is None:
        return None
    found = [series[k] for k in range(order, 0, -1)][::-1]
    if all(c is None for c in found):
        return None
    zero = None
    filled = []
    for c in found:
        if c is None:
            zero = zeros(aval_of(value).strong()) if zero is None else zero
            c = zero
        filled.append(c)
    return filled


# programs of series -----------------------------------------------------------------------------


@derivation
def series_program(
    jaxpr: Jaxpr, nonzero: Flags, order: int, instantiate: Flags | bool = False
) -> tuple[Jaxpr, Flags]:
    """The program of values and coefficients.

    Args:
      jaxpr: the program.
      nonzero: per argument, whether it has coefficients.
      order: how many.
      instantiate: per result (or for all) whether coefficients that are all zero are made arrays.

    Returns:
      Program ``(*args, *coefficients[nonzero]) -> (*outs, *coefficients[out_nonzero])``, those of
      one value next to each other, and ``out_nonzero``.
    """
    n = len(jaxpr.invars)
    flags = (instantiate,) * len(jaxpr.outvars) if isinstance(instantiate, bool) else instantiate
    out_nonzero: list[bool] = []

    def run(*args: object) -> list[Any]:
        trace = _TaylorTrace(f"series of {jaxpr.name or 'a program'}", order)
        groups = iter(_groups(args[n:], order))
        with tracing(trace):
            tracers = [
                TowerTracer(trace, value, given_series(value, next(groups))) if flag else value
                for value, flag in zip(args[:n], nonzero, strict=True)
            ]
            outs = evaluate(jaxpr, tracers)
            values: list[Any] = []
            results: list[Any] = []
            for out, flag in zip(outs, flags, strict=True):
                value, series = trace.split(out)
                values.append(value)
                own = _filled(value, series, order)
                if own is None and flag:
                    own = [zeros(aval_of(value).strong())] * order
                out_nonzero.append(own is not None)
                results.extend(own or ())
        return values + results

    avals = [
        *jaxpr.in_avals,
        *(a.strong() for a in select(jaxpr.in_avals, nonzero) for _ in range(order)),
    ]
    program = stage(run, avals, f"series of {jaxpr.name}", name=jaxpr.name)
    return simplify(program), tuple(out_nonzero)


def _groups(items: Sequence[Any], size: int) -> list[list[Any]]:
    """Consecutive groups of one size."""
    return [list(items[i : i + size]) for i in range(0, len(items), size)]


def _flat(coefficients: Sequence[Coefficients | None]) -> list[Any]:
    return [c for own in coefficients if own is not None for c in own]


def _has(coefficients: Sequence[Any]) -> Flags:
    return tuple(own is not None for own in coefficients)


def _spread(flags: Flags, items: Sequence[Any], order: int) -> list[Coefficients | None]:
    """The coefficients of each result, ``None`` where the flag is off."""
    groups = iter(_groups(items, order))
    return [next(groups) if flag else None for flag in flags]


def _call(
    primitive: Primitive,
    values: Sequence[Any],
    own: list[Coefficients | None],
    order: int,
    *,
    jaxpr: Jaxpr,
    **params: object,
) -> Any:
    program, out_nonzero = series_program(jaxpr, _has(own), order)
    results = bind(primitive, *values, *_flat(own), jaxpr=program, **params)
    n = len(jaxpr.outvars)
    return results[:n], _spread(out_nonzero, results[n:], order)


def _loop(
    primitive: Primitive, values: Any, own: Any, order: int, *, jaxpr: Jaxpr, **_: object
) -> Any:
    """A loop under a policy of reverse mode, as a call of the plain one."""
    return _call(jit_p, values, own, order, jaxpr=jaxpr, name=jaxpr.name)


def _branches(branches: tuple[Jaxpr, ...], nonzero: Flags, order: int) -> Any:
    """The branches of values and coefficients, which give the same ones."""
    each = [series_program(branch, nonzero, order)[1] for branch in branches]
    out_nonzero = tuple(map(any, zip(*each, strict=True)))
    programs = [series_program(branch, nonzero, order, out_nonzero)[0] for branch in branches]
    return tuple(programs), out_nonzero


def _cond(
    primitive: Primitive,
    values: Sequence[Any],
    own: list[Coefficients | None],
    order: int,
    *,
    branches: tuple[Jaxpr, ...],
) -> Any:
    index, *operands = values
    if not isinstance(index, Tracer):
        return _call(jit_p, operands, own[1:], order, jaxpr=branches[int(index)], name="branch")
    programs, out_nonzero = _branches(branches, _has(own[1:]), order)
    results = bind(cond_p, index, *operands, *_flat(own), branches=programs)
    n = len(branches[0].outvars)
    return results[:n], _spread(out_nonzero, results[n:], order)


def _cond_lanes(
    primitive: Primitive,
    values: Sequence[Any],
    own: list[Coefficients | None],
    order: int,
    *,
    branches: tuple[Jaxpr, ...],
    batched: Flags,
) -> Any:
    nonzero = _has(own[1:])
    programs, out_nonzero = _branches(branches, nonzero, order)
    flags = (*batched, *(flag for flag in select(batched, nonzero) for _ in range(order)))
    results = bind(cond_lanes_p, *values, *_flat(own), branches=programs, batched=flags)
    n = len(branches[0].outvars)
    return results[:n], _spread(out_nonzero, results[n:], order)


def _body(
    jaxpr: Jaxpr, shape: Shape, consts: Flags, start: Flags, xs: Flags, order: int
) -> tuple[Jaxpr, Flags, Flags]:
    """The body of values and coefficients; which carried values and ``ys`` have them."""
    c, k, m = shape.n_consts, shape.n_carry, len(jaxpr.outvars)

    def at(carry: Flags) -> tuple[Jaxpr, Flags]:
        return series_program(jaxpr, (*consts, *carry, *xs), order, (*carry, *(False,) * (m - k)))

    carry = fixpoint(start, lambda flags: at(flags)[1][:k])
    program, out_nonzero = at(carry)
    n = len(jaxpr.invars)
    further = split(range(n, len(program.invars)), order * sum(consts), order * sum(carry))
    plain = split(range(n), c, k)
    arguments = [i for pair in zip(plain, further, strict=True) for part in pair for i in part]
    first_y = m + order * sum(carry)
    results = [*range(k), *range(m, first_y), *range(k, m), *range(first_y, len(program.outvars))]
    return permute(program, arguments, results), carry, out_nonzero[k:]


def _start(
    values: Sequence[Any], own: Sequence[Coefficients | None], flags: Flags, order: int
) -> list[Any]:
    """The first coefficients of carried values, zeros where there are none yet."""
    return [
        c
        for value, given, flag in zip(values, own, flags, strict=True)
        if flag
        for c in (given or [zeros(aval_of(value).strong())] * order)
    ]


def _scan(
    primitive: Primitive,
    values: Sequence[Any],
    own: list[Coefficients | None],
    order: int,
    *,
    jaxpr: Jaxpr,
    **params: object,
) -> Any:
    shape = scan_shape(params)
    first, consts, carry, xs = shape.unpack(values)
    _, *parts = shape.unpack(own)
    flags = [_has(part) for part in parts]
    program, carry_nonzero, ys_nonzero = derived(
        jaxpr,
        ("series of a loop", shape.n_consts, shape.n_carry, *flags, order),
        lambda: _body(jaxpr, shape, flags[0], flags[1], flags[2], order),
    )
    final, ys = shape.bind(
        program,
        first,
        [*consts, *_flat(parts[0])],
        [*carry, *_start(carry, parts[1], carry_nonzero, order)],
        [*xs, *_flat(parts[2])],
    )
    k, n_ys = len(carry), len(ys_nonzero)
    coefficients = _spread((*carry_nonzero, *ys_nonzero), [*final[k:], *ys[n_ys:]], order)
    return [*final[:k], *ys[:n_ys]], coefficients


def _while(
    primitive: Primitive,
    values: Sequence[Any],
    own: list[Coefficients | None],
    order: int,
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> Any:
    cond_consts, consts, carry = split(values, n_cond_consts, n_body_consts)
    _, *parts = split(own, n_cond_consts, n_body_consts)
    shape = Shape(n_body_consts, len(carry), None, False, 1)
    flags = [_has(part) for part in parts]
    program, carry_nonzero, ys_nonzero = derived(
        body_jaxpr,
        ("series of a loop", n_body_consts, len(carry), *flags, order),
        lambda: _body(body_jaxpr, shape, flags[0], flags[1], (), order),
    )
    start = _start(carry, parts[1], carry_nonzero, order)
    extra = tuple([Var(aval_of(c)) for c in start])
    names = cond_jaxpr.arg_names and (*cond_jaxpr.arg_names, *("" for _ in extra))
    condition = replace(cond_jaxpr, invars=(*cond_jaxpr.invars, *extra), arg_names=names, cache={})
    final, ys = bind_while(
        condition, program, cond_consts, [*consts, *_flat(parts[0])], [*carry, *start]
    )
    k, n_ys = len(carry), len(ys_nonzero)
    coefficients = _spread((*carry_nonzero, *ys_nonzero), [*final[k:], *ys[n_ys:]], order)
    return [*final[:k], *ys[:n_ys]], coefficients


_HOLDERS: Mapping[Primitive, Callable[..., Any]] = {
    jit_p: _call,
    checkpoint_p: _call,
    binomial_p: _loop,
    revolve_p: _loop,
    cond_p: _cond,
    cond_lanes_p: _cond_lanes,
    scan_p: _scan,
    while_p: _while,
}


# the transforms ---------------------------------------------------------------------------------


@boundary
def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]]
) -> tuple[Any, Any]:
    """Push paths through a function: all derivatives up to an order along them, in one pass.

    The argument number ``i`` moves on the path ``x_i(t)`` with ``x_i(0) = primals[i]`` and
    derivatives ``series[i][k - 1]`` of order ``k`` at ``t = 0``. The result moves on ``y(t)``; its
    value and derivatives are returned. For the derivatives of ``fun`` along a straight line, the
    series is ``[v, 0, 0, ...]``.

    Derivatives are not scaled by factorials, as in ``jax.experimental.jet``. The cost grows with
    the square of the order (nested ``jvp`` doubles it with each).

    Args:
      fun: function of pytrees of floating arrays; it runs on values, once.
      primals: one item per argument; leaves ``f64[...]``, ``f32[...]`` or complex.
      series: one sequence per argument, all of the same length: the derivatives of its path from
        the first on, each of the argument's structure and shapes. A number 0 stands for zeros.

    Returns:
      ``(out, out_series)``. The second has the structure of ``out`` with a list in place of each
      array: its derivatives from the first on.

    Raises:
      TypeError: ``primals`` or ``series`` is no sequence with one item per argument.
      ValueError: the series differ in length, or are empty.
      NonDifferentiableError: a derivative of an integer or a boolean is neither 0 nor ``float0``.
      TreeMismatchError, ShapeError: a derivative does not fit its primal; names the key path.

    Example:
      >>> import numpy as np
      >>> jet(np.exp, (0.0,), ([1.0, 0.0, 0.0],))
      (array(1.), [array(1.), array(1.), array(1.)])

    Reference: Griewank & Walther, Evaluating Derivatives, 2nd ed. (2008), ch. 13.
    """
    fun = traced_form("jet", fun)
    outs, found, treedef = _push(f"jet of {name_of(fun)}", fun, primals, series)
    return tree.unflatten(treedef, outs), tree.unflatten(treedef, found)


def _push(
    label: str, fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Any]
) -> tuple[list[Any], list[Coefficients], Any]:
    """Leaves of the result, the derivatives of each, and the structure."""
    order = _check_series(label, primals, series)
    leaves, treedef = tree.flatten(tuple(primals))
    values = [
        differentiable_leaf(
            leaf,
            functools.partial(leaf_description, label, tuple(primals), i, "primals"),
            allow_int=True,
        )
        for i, leaf in enumerate(leaves)
    ]
    columns = [
        _column(label, tuple(primals), values, tuple([own[k] for own in series]), k)
        for k in range(order)
    ]
    staging = innermost_staging()
    foreign = [*values, *(c for column in columns for c in column if c is not None)]
    trace = _TaylorTrace(label, order)
    with tracing(trace, foreign):
        tracers: list[Any] = []
        for i, value in enumerate(values):
            if not is_differentiable_dtype(dtype_of(value)):
                tracers.append(private(value))
                continue
            own = [_divided(column[i], k + 1, staging) for k, column in enumerate(columns)]
            tracers.append(TowerTracer(trace, value, given_series(value, own).settled(order)))
        result = fun(*tree.unflatten(treedef, tracers))
        outs, out_treedef = tree.flatten(result)
        out_values, out_series = [], []
        for i, out in enumerate(map(standing, outs)):
            value, tower = trace.split(out)
            if value is out:
                value = result_leaf(out, label, result, i)
            out_values.append(value)
            out_series.append(_derivatives(value, tower, order))
    flat = own_arrays([*out_values, *(d for own in out_series for d in own)], foreign)
    return flat[: len(outs)], _groups(flat[len(outs) :], order), out_treedef


def _check_series(label: str, primals: Sequence[Any], series: Sequence[Any]) -> int:
    """The order of given series."""
    for name, given in (("primals", primals), ("series", series)):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                f"{label}: {name} must be a tuple with one item per argument, got "
                f"{type(given).__name__}{here()}"
            )
    if len(primals) != len(series) or not primals:
        raise TypeError(
            f"{label}: got {len(primals)} primals and {len(series)} series{here()}; give one "
            "series per argument, and one argument at least"
        )
    for i, own in enumerate(series):
        if not isinstance(own, (tuple, list)):
            raise TypeError(
                f"{label}: series[{i}] must be a list of derivatives, got "
                f"{type(own).__name__}{here()}"
            )
    lengths = [len(own) for own in series]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise ValueError(
            f"{label}: the series have lengths {lengths}{here()}; give as many derivatives for "
            "each argument, one at least (zeros where a path is straight)"
        )
    return lengths[0]


def _column(
    label: str,
    primals: tuple[Array | complex, ...],
    values: Sequence[Any],
    given: tuple[Array | complex, ...],
    k: int,
) -> list[Any]:
    """The derivatives of one order of all leaves; ``None`` for zero."""
    found: list[Any] = []
    start = 0
    for number, (primal, item) in enumerate(zip(primals, given, strict=True)):
        leaves, treedef = tree.flatten(primal)
        n = len(leaves)
        if type(item) in (int, float) and item == 0:
            found.extend([None] * n)
        else:
            items, own_treedef = tree.flatten(item)
            tree.check_same(
                treedef, own_treedef, label, f"primals[{number}]", f"series[{number}][{k}]"
            )
            for i, leaf in enumerate(items):
                describe = functools.partial(
                    leaf_description, label, item, i, f"series[{number}][{k}]"
                )
                fitted = fit_tangent(leaf, leaf_type(values[start + i]), describe)
                found.append(None if tree.is_float0(fitted) else fitted)
        start += n
    return found


def _divided(derivative: Array | complex | None, k: int, staging: Any) -> Any:
    """The coefficient of a derivative of order ``k``; zeros that are known to be are ``None``."""
    if derivative is None or (_is_plain(derivative) and not np.any(derivative)):
        return None
    if staging is not None and not isinstance(derivative, Tracer):
        derivative = staging.lift(derivative)  # a constant path from an argument is no constant
    factor = 1 / math.factorial(k)
    return derivative if factor == 1 else derivative * factor


def _is_plain(value: Array | complex) -> bool:
    return not isinstance(value, Tracer)


def _derivatives(value: Array, series: Series | None, order: int) -> Coefficients:
    """The derivatives that the coefficients of a result are."""
    aval = leaf_type(value)
    dtype = tangent_dtype(aval.dtype)
    found = []
    for k in range(1, order + 1):
        c = None if series is None else series[k]
        if c is None:
            found.append(np.zeros(aval.shape, dtype))
        else:
            found.append(c if k == 1 else c * float(math.factorial(k)))
    return found


@transform
def nth_derivative(fun: Callable[..., Any], n: int) -> Callable[..., Any]:
    """The derivative of order ``n`` of a function of one real or complex number.

    Args:
      fun: function of a number (0-d); further arguments are passed on as they are. It may return a
        pytree of arrays.
      n: the order, from 0 on.

    Returns:
      Function that gives the derivative, in the structure of the result of ``fun``. One pass of
      Taylor mode: the cost grows with the square of ``n``.

    Raises:
      TypeError: ``n`` is no integer.
      ValueError: ``n`` is negative.
      ShapeError: (when called) the argument is no single number; use ``ft.vmap`` for many points.
      NonDifferentiableError: (when called) the argument is not floating.

    Example:
      >>> nth_derivative(lambda x: x**5, 3)(2.0)
      array(240.)
    """
    fun = traced_form("nth_derivative", fun)
    try:
        order = operator.index(n)
    except TypeError:
        raise TypeError(
            f"nth_derivative: n must be an integer, got {type(n).__name__}{here()}"
        ) from None
    if order < 0:
        raise ValueError(f"nth_derivative: n must not be negative, got {order}{here()}")

    @named("nth_derivative", fun)
    def derivative(x: float, *args: object, **kwargs: object) -> Any:
        label = f"nth_derivative of {name_of(fun)}"
        value = differentiable_leaf(x, lambda: f"{label}: args[0]")
        if shape_of(value):
            raise ShapeError(
                f"{label}: args[0] is {aval_of(value)}{here()}, but a derivative of order {order} "
                "is defined here for functions of one number; use ft.vmap for many points, ft.jet "
                "for a direction"
            )
        if not order:
            return fun(x, *args, **kwargs)

        def own(y: Array | complex) -> Any:
            return fun(y, *args, **kwargs)

        own.__name__ = name_of(fun)
        aval = ShapedArray((), dtype_of(value))
        one = np.ones((), aval.dtype)
        _, found, treedef = _push(label, own, (value,), ([one, *[0] * (order - 1)],))
        return tree.unflatten(treedef, [derivatives[-1] for derivatives in found])

    return derivative
