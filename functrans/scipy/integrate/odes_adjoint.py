"""Gradients of solutions by a second differential equation: the continuous adjoint.

Here: ``integrate_backsolve``, ``integrate`` under another reverse rule. Not here: derivatives of
the discrete solution (``scipy.integrate.odes_loop``).

Between two output times the cotangent ``a`` of the state obeys ``da/dt = -a df/dy``, and those of
the parameters collect ``-a df/dp``. Both are integrated backwards together with the state, which is
computed again from the later of the two. Memory does not depend on the number of steps; the
gradient is that of the exact solution, to the accuracy of the second integration.

Layer: ``scipy``. Reference: Chen, Rubanova, Bettencourt & Duvenaud, Neural ordinary differential
equations, NeurIPS 31 (2018); Cao, Li, Petzold & Serban, Adjoint sensitivity analysis for
differential-algebraic equations, SIAM Journal on Scientific Computing 24 (2003), 1076-1089.
"""

from __future__ import annotations

from typing import Any

import functrans.numpy as fnp
from functrans.control.custom_rules import custom_vjp
from functrans.control.scanning import scan
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.values import Array
from functrans.scipy.integrate.odes_loop import Options, integrate
from functrans.scipy.integrate.odes_methods import Method
from functrans.transforms.reverse import vjp


def integrate_backsolve(
    method: Method,
    slope: Any,
    y: Any,
    start: Any,
    times: Any,
    bound: Any,
    params: tuple[Any, ...],
    options: Options,
) -> tuple[Any, Any, Any, Any]:
    """:func:`integrate`, whose reverse mode solves the adjoint equation."""

    @custom_vjp
    def solve(y: Any, start: Any, times: Any, bound: Any, params: Any) -> tuple[Any, ...]:
        return integrate(method, slope, y, start, times, bound, params, options)

    def forward(y: Any, start: Any, times: Any, bound: Any, params: Any) -> Any:
        out = integrate(method, slope, y, start, times, bound, params, options)
        return out, (out[0], y, start, times, bound, params)

    def backward(residuals: Any, cts: Any) -> Any:
        values, y, start, times, bound, params = residuals
        ct_values = cts[0]
        n = shape_of(y)[0]
        shapes = [shape_of(p) for p in params]
        sizes = [int(fnp.size(p)) for p in params]
        dtypes = [dtype_of(p) for p in params]

        def augmented(t: object, state: Any, *own: object) -> Array:
            now, adjoint = state[:n], state[n : 2 * n]
            rate, pull = vjp(lambda y, p: slope(t, y, *p), now, own)
            y_bar, p_bar = pull(-adjoint)
            flat = [fnp.ravel(p).astype(dtype_of(y)) for p in p_bar]
            return fnp.concatenate([rate, y_bar, *flat])

        def segment(carry: Any, x: Any) -> Any:
            adjoint, sums = carry
            before, after, value, ct = x
            adjoint = adjoint + ct
            time_ct = fnp.sum(slope(after, value, *params) * ct)
            state = fnp.concatenate([value, adjoint, sums])
            end, status, *_ = integrate(
                method, augmented, state, after, before[None], before, params, options
            )
            end = fnp.where((before == after) & (status == 0), state, end[0])
            return (end[n : 2 * n], end[2 * n :]), time_ct

        befores = fnp.concatenate([start[None], times[:-1]])
        sums = fnp.zeros(sum(sizes), dtype_of(y))
        (adjoint, sums), time_cts = scan(
            segment, (fnp.zeros_like(y), sums), (befores, times, values, ct_values), reverse=True
        )
        parts, position = [], 0
        for shape, size, dtype in zip(shapes, sizes, dtypes, strict=True):
            part = sums[position : position + size]
            parts.append(fnp.reshape(part, shape).astype(dtype))
            position += size
        start_ct = -fnp.sum(adjoint * slope(start, y, *params))
        return adjoint, start_ct, time_cts, fnp.zeros_like(bound), tuple(parts)

    solve.defvjp(forward, backward)
    result: tuple[Any, Any, Any, Any] = solve(y, start, times, bound, params)
    return result
