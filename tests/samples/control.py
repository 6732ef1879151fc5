"""Rows of the primitives whose rules run a pass: calls, branches, loops, custom rules, checkpoints.

Their operands and parameters are those of the equation that a user's function makes; what they
compute is written down a second time in plain Python.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import functrans as ft
from functrans.control import (
    branches,
    callbacks,
    custom_calls,
    custom_vmap,
    loops,
    native,
    revolve,
    while_loop,
)
from functrans.control import checkpoint as cp
from functrans.control.scanning import fori_loop, scan
from functrans.control.scanning import while_loop as run_while
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Literal
from functrans.core.primitive import Primitive
from functrans.passes import remat
from functrans.primitives import kernels, structural
from functrans.solvers import external, external_maps, linear_solve
from samples.row import Rng, Row, Sample, annulus, integers, uniform


def captured(
    primitive: Primitive,
    label: str,
    fun: Callable[..., Any],
    args: tuple[Any, ...],
    expected: Any,
    **options: Any,
) -> Sample:
    """The equation of a primitive in the program of a call, with the values it is applied to."""
    jaxpr = ft.make_jaxpr(fun)(*args)
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, jaxpr.consts, strict=True))
    env.update(zip(jaxpr.invars, args, strict=True))
    for eqn in jaxpr.eqns:
        operands = tuple(a.value if isinstance(a, Literal) else env[a] for a in eqn.inputs)
        if eqn.primitive is primitive:
            outs = expected if isinstance(expected, tuple) else (expected,)
            return Sample(label, operands, eqn.params, expected=outs, **options)
        env.update(zip(eqn.outputs, bind(eqn.primitive, *operands, **eqn.params), strict=True))
    raise AssertionError(f"no equation of {primitive.name} in {jaxpr}")


# jit --------------------------------------------------------------------------------------------


def _two(x: Any, y: Any) -> Any:
    return np.sin(x) * y, np.sum(x * x)


def _jit_samples(rng: Rng) -> Iterator[Sample]:
    call = ft.jit(_two)
    for label, x_shape, y_shape in (("same", (3,), (3,)), ("broadcast", (2, 1), (3,))):
        args = uniform(rng, x_shape), uniform(rng, y_shape)
        yield captured(native.jit_p, label, call, args, _two(*args))
    args = uniform(rng, (0, 2)), uniform(rng, ())
    yield captured(native.jit_p, "empty", call, args, _two(*args))
    nested = ft.jit(lambda x: ft.jit(np.cos)(x) * 2.0)
    x = uniform(rng, (3,))
    yield captured(native.jit_p, "nested", nested, (x,), np.cos(x) * 2)
    z = annulus(rng, (2,))
    yield captured(native.jit_p, "complex", ft.jit(lambda z: z * z), (z,), z * z)


# branches ---------------------------------------------------------------------------------------


def _first(x: Any, y: Any) -> Any:
    return np.sin(x) * y, 2.0 * y


def _second(x: Any, y: Any) -> Any:
    return x**2 + y, np.cos(y)


def _cond_samples(rng: Rng) -> Iterator[Sample]:
    def chosen(p: Any, x: Any, y: Any) -> Any:
        return branches.cond(p, _first, _second, x, y)

    def switched(i: Any, x: Any) -> Any:
        return branches.switch(i, [np.sin, np.exp, lambda x: x * x], x)

    for label, p in (("true", np.array(True)), ("false", np.array(False))):
        args = p, uniform(rng, (3,)), uniform(rng, (3,))
        expected = (_first if p else _second)(*args[1:])
        yield captured(branches.cond_p, label, chosen, args, expected)
    for i, f in enumerate((np.sin, np.exp, np.square)):
        x = uniform(rng, (2, 2))
        yield captured(branches.cond_p, f"switch_{i}", switched, (np.array(i), x), f(x))
    x = uniform(rng, (3,))
    yield captured(branches.cond_p, "below", switched, (np.array(-4), x), np.sin(x))


def _cond_lanes_samples(rng: Rng) -> Iterator[Sample]:
    def one(i: Any, x: Any, y: Any) -> Any:
        return branches.cond(i, _first, _second, x, y)

    def loop(i: Any, x: Any, y: Any) -> Any:
        ys = y if y.ndim == x.ndim else np.stack([y] * len(x))
        rows = [(_first if c else _second)(a, b) for c, a, b in zip(i, x, ys, strict=True)]
        return tuple(np.stack(column) for column in zip(*rows, strict=True))

    mixed = np.array([True, False, False, True])
    for label, i in (("mixed", mixed), ("all_true", mixed | True), ("all_false", mixed & False)):
        args = i, uniform(rng, (4, 2)), uniform(rng, (4, 2))
        yield captured(branches.cond_lanes_p, label, ft.vmap(one), args, loop(*args))
    args = mixed, uniform(rng, (4, 2)), uniform(rng, (2,))
    shared = ft.vmap(one, in_axes=(0, 0, None))
    yield captured(branches.cond_lanes_p, "shared_operand", shared, args, loop(*args))


# loops ------------------------------------------------------------------------------------------


def _step(carry: Any, x: Any) -> Any:
    state, total = carry
    state = np.sin(state) + 0.5 * x
    return (state, total + np.sum(state * x)), state * total


def _scan_loop(state: Any, total: Any, xs: Any, is_reverse: bool = False) -> Any:
    carry, rows = (state, total), []
    for x in xs[::-1] if is_reverse else xs:
        carry, row = _step(carry, x)
        rows.append(row)
    stacked = np.array(rows[::-1] if is_reverse else rows).reshape(len(xs), *np.shape(state))
    return (*carry, stacked)


def _scan_samples(rng: Rng) -> Iterator[Sample]:
    def run(state: Any, total: Any, xs: Any, **options: Any) -> Any:
        (state, total), ys = scan(_step, (state, total), xs, **options)
        return state, total, ys

    for label, length, options in (
        ("forward", 4, {}),
        ("reverse", 3, {"reverse": True}),
        ("one_step", 1, {}),
        ("no_step", 0, {}),
        ("unrolled", 5, {"unroll": 2}),
    ):
        args = uniform(rng, (2,)), uniform(rng, ()), uniform(rng, (length, 2))
        expected = _scan_loop(*args, is_reverse=bool(options.get("reverse")))

        def fun(*args: Any, options: Any = options) -> Any:
            return run(*args, **options)

        yield captured(loops.scan_p, label, fun, args, expected)
    weights = uniform(rng, (2, 2))
    x = uniform(rng, (2,))

    def closing(w: Any, x: Any) -> Any:
        return fori_loop(0, 3, lambda i, x: np.tanh(w @ x) + i, x)

    expected = x
    for i in range(3):
        expected = np.tanh(weights @ expected) + i
    yield captured(loops.scan_p, "closure", closing, (weights, x), (3, expected))


def _while_samples(rng: Rng) -> Iterator[Sample]:
    def run(n: Any, x: Any) -> Any:
        return run_while(
            lambda c: c[0] < n, lambda c: (c[0] + 1, np.sin(c[1]) * 1.5), (0, x)
        )  # fmt: skip

    for label, n in (("some", 3), ("one", 1), ("none", 0)):
        x = uniform(rng, (2,))
        expected = x
        for _ in range(n):
            expected = np.sin(expected) * 1.5
        args = np.array(n), x
        yield captured(while_loop.while_p, label, run, args, (np.array(n), expected))

    def by_value(x: Any) -> Any:
        return run_while(lambda x: np.sum(x * x) < 50.0, lambda x: x * 1.7 + 0.1, x)

    x = uniform(rng, (2,), 0.5, 1.0)
    expected = x
    while np.sum(expected**2) < 50.0:
        expected = expected * 1.7 + 0.1
    yield captured(while_loop.while_p, "by_value", by_value, (x,), expected)


def _binomial_samples(rng: Rng) -> Iterator[Sample]:
    def run(state: Any, total: Any, xs: Any, n: int, is_reverse: bool) -> Any:
        policy = ft.checkpoint_policies.binomial(n)
        (state, total), ys = scan(_step, (state, total), xs, reverse=is_reverse, checkpoint=policy)
        return state, total, ys

    for label, length, n, is_reverse in (
        ("forward", 5, 2, False),
        ("reverse", 4, 3, True),
        ("one_state", 4, 1, False),
        ("two_steps", 2, 1, False),
    ):
        args = uniform(rng, (2,)), uniform(rng, ()), uniform(rng, (length, 2))
        fun = functools.partial(run, n=n, is_reverse=is_reverse)
        expected = _scan_loop(*args, is_reverse=is_reverse)
        yield captured(revolve.binomial_p, label, fun, args, expected)

    def until(n: Any, x: Any) -> Any:
        return run_while(
            lambda c: c[0] < n,
            lambda c: (c[0] + 1, np.sin(c[1]) * 1.5),
            (0, x),
            checkpoint=ft.checkpoint_policies.binomial(2),
        )

    for label, n in (("while", 5), ("no_step", 0)):
        x = uniform(rng, (2,))
        expected = x
        for _ in range(n):
            expected = np.sin(expected) * 1.5
        args = np.array(n), x
        yield captured(revolve.binomial_p, label, until, args, (np.array(n), expected))


def _revolve_samples(rng: Rng) -> Iterator[Sample]:
    """The linear part of a loop that keeps few states."""

    def pushed(x: Any, w: Any, x_dot: Any, w_dot: Any) -> Any:
        def run(x: Any, w: Any) -> Any:
            policy = ft.checkpoint_policies.binomial(2)
            return fori_loop(0, 4, lambda i, x: np.sin(w * x), x, checkpoint=policy)

        return ft.linearize(run, x, w)[1](x_dot, w_dot)

    for label, shape in (("vector", (3,)), ("0d", ()), ("empty", (0,))):
        x, w, x_dot, w_dot = (uniform(rng, shape) for _ in range(4))
        value, dot = x, x_dot
        for _ in range(4):
            dot = np.cos(w * value) * (w * dot + w_dot * value)
            value = np.sin(w * value)
        yield captured(revolve.revolve_p, label, pushed, (x, w, x_dot, w_dot), dot)


# custom rules -----------------------------------------------------------------------------------


@ft.custom_jvp
def _softplus(x: Any) -> Any:
    return np.log1p(np.exp(x))


@_softplus.defjvp
def _softplus_jvp(primals: Any, tangents: Any) -> Any:
    (x,), (x_dot,) = primals, tangents
    return _softplus(x), x_dot / (1 + np.exp(-x))


@ft.custom_vjp
def _product(x: Any, y: Any) -> Any:
    return np.sin(x) * y


def _product_fwd(x: Any, y: Any) -> Any:
    return _product(x, y), (x, y)


def _product_bwd(residuals: Any, ct: Any) -> Any:
    x, y = residuals
    return np.cos(x) * y * ct, np.sin(x) * ct


_product.defvjp(_product_fwd, _product_bwd)


@ft.custom_vmap
def _scaled(x: Any, y: Any) -> Any:
    return np.sin(x) * np.sum(y)


@_scaled.def_vmap
def _scaled_vmap(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
    return ft.vmap(lambda x, y: np.sin(x) * np.sum(y), [0 if b else None for b in in_batched])(
        x, y
    ), True


def _custom_vmap_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape in (("vector", (3,)), ("0d", ()), ("matrix", (2, 2)), ("empty", (0,))):
        args = uniform(rng, shape), uniform(rng, (2,))
        expected = np.sin(args[0]) * np.sum(args[1])
        yield captured(custom_vmap.custom_vmap_p, label, _scaled, args, expected)


def _custom_jvp_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape in (("vector", (3,)), ("0d", ()), ("matrix", (2, 2)), ("empty", (0,))):
        x = uniform(rng, shape)
        expected = np.log1p(np.exp(x))
        yield captured(custom_calls.custom_jvp_p, label, _softplus, (x,), expected)


def _custom_vjp_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape in (("vector", (3,)), ("0d", ()), ("matrix", (2, 2)), ("empty", (0,))):
        args = uniform(rng, shape), uniform(rng, shape)
        expected = np.sin(args[0]) * args[1]
        yield captured(custom_calls.custom_vjp_p, label, _product, args, expected)


def _linear_call_samples(rng: Rng) -> Iterator[Sample]:
    """The linear part of a function with a custom_vjp: the transpose of its backward function."""

    def pushed(x: Any, y: Any, x_dot: Any, y_dot: Any) -> Any:
        return ft.jvp(_product, (x, y), (x_dot, y_dot))[1]

    for label, shape in (("vector", (3,)), ("0d", ()), ("empty", (0,))):
        x, y, x_dot, y_dot = (uniform(rng, shape) for _ in range(4))
        expected = np.cos(x) * y * x_dot + np.sin(x) * y_dot
        args = x, y, x_dot, y_dot
        yield captured(custom_calls.linear_call_p, label, pushed, args, expected)


def _dense(matvec: Any, b: Any) -> Any:
    return np.linalg.solve(ft.vmap(matvec, out_axes=1)(np.eye(len(b))), b)


def _solved(A: Any, b: Any) -> Any:
    return linear_solve.custom_linear_solve(lambda x: A @ x, b, _dense, _dense)


def _solved_symmetric(A: Any, b: Any) -> Any:
    return linear_solve.custom_linear_solve(
        lambda x: A @ x + x @ A, b, _dense, _dense, symmetric=True
    )


def _linear_solve_samples(rng: Rng) -> Iterator[Sample]:
    """Operands are the matrix, then for each solver the matrix and its factors, then ``b``."""
    for label, n, solved in (
        ("one", 1, _solved), ("four", 4, _solved), ("symmetric", 3, _solved_symmetric)
    ):  # fmt: skip
        A, b = uniform(rng, (n, n)) + 4 * np.eye(n), uniform(rng, (n,))
        expected = np.linalg.solve(A if solved is _solved else A + A.T, b)
        yield captured(linear_solve.custom_linear_solve_p, label, solved, (A, b), expected)


def _solved_again(A: Any, *operands: Any, **params: Any) -> Any:
    """The solution where all that solvers refer to moves with the matrix, as in a user's call."""
    is_symmetric = params["vecmat"] is params["matvec"]
    return ((_solved_symmetric if is_symmetric else _solved)(A, operands[-1]),)


def _checkpoint_samples(rng: Rng) -> Iterator[Sample]:
    call = ft.checkpoint(_two)
    for label, x_shape, y_shape in (("same", (3,), (3,)), ("0d", (), ()), ("empty", (0,), ())):
        args = uniform(rng, x_shape), uniform(rng, y_shape)
        yield captured(cp.checkpoint_p, label, call, args, _two(*args))


# identities and callbacks -----------------------------------------------------------------------


def _named_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("f64", (uniform(rng, (3,)),), {"name": "seen"})
    yield Sample("0d", (uniform(rng, ()),), {"name": "seen"})
    yield Sample("complex", (annulus(rng, (2,)),), {"name": "seen"})
    yield Sample("empty", (uniform(rng, (0,)),), {"name": "seen"})


def _identity_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("f64", (uniform(rng, (3,)),))
    yield Sample("0d", (uniform(rng, ()),))
    yield Sample("complex", (annulus(rng, (2,)),))
    yield Sample("int", (integers(rng, (2,)),))


def _overwritten_samples(rng: Rng) -> Iterator[Sample]:
    for sample in _identity_samples(rng):
        (x,) = sample.operands
        yield Sample(sample.label, (x, x + x))


def _number_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("f64", (uniform(rng, ()),))
    yield Sample("complex", (annulus(rng, ()),))
    yield Sample("int", (integers(rng, ()),))


def _gamma(x: Any) -> Any:
    return np.vectorize(math.gamma, otypes=[np.float64])(x)


def _callback_samples(rng: Rng) -> Iterator[Sample]:
    def call(x: Any) -> Any:
        out = ft.ShapeDtypeStruct(x.shape, x.dtype)
        return callbacks.pure_callback(_gamma, out, x, vmap_method="sequential")

    for label, shape in (("vector", (3,)), ("0d", ()), ("matrix", (2, 2))):
        x = uniform(rng, shape, 0.5, 3)
        yield captured(callbacks.pure_callback_p, label, call, (x,), _gamma(x))


def _external_samples(rng: Rng) -> Iterator[Sample]:
    """The derivative of an external function whose rules get plain arrays."""
    sine = external.external(
        np.sin,
        lambda x: x,
        jvp=lambda primals, tangents: np.cos(primals[0]) * tangents[0],
        vjp=lambda primals, outs, ct: (np.cos(primals[0]) * ct,),
        rules="arrays",
    )

    def pushed(x: Any, x_dot: Any) -> Any:
        return ft.jvp(sine, (x,), (x_dot,))[1]

    for label, shape in (("vector", (3,)), ("0d", ()), ("empty", (0,))):
        x, x_dot = uniform(rng, shape), uniform(rng, shape)
        args = x, x_dot
        yield captured(external_maps.external_linear_p, label, pushed, args, np.cos(x) * x_dot)


def _reversed_sum(x: Any, y: Any, out: Any) -> None:
    """A loop for numba; ``y`` is a number."""
    flat, target = x.reshape(-1), out.reshape(-1)
    total = 0 * y
    for i in range(flat.size - 1, -1, -1):
        total += flat[i] * y
        target[i] = total


def _kernel_samples(rng: Rng) -> Iterator[Sample]:
    for label, shape in (("vector", (4,)), ("matrix", (2, 3)), ("empty", (0,))):
        x, y = uniform(rng, shape), np.float64(1.5)
        total = ft.kernel(_reversed_sum, lambda x, y: x)
        expected = np.cumsum((x * y).ravel()[::-1])[::-1].reshape(shape)
        yield captured(kernels.kernel_p, label, total, (x, y), expected)


ROWS = (
    Row(native.jit_p, _jit_samples),
    Row(branches.cond_p, _cond_samples),
    Row(branches.cond_lanes_p, _cond_lanes_samples),
    Row(loops.scan_p, _scan_samples),
    Row(structural.weaken_p, _number_samples, lambda x: x.item(), rtol=0, is_flat=True),
    Row(while_loop.while_p, _while_samples),
    Row(revolve.binomial_p, _binomial_samples),
    Row(revolve.revolve_p, _revolve_samples),
    Row(custom_calls.custom_jvp_p, _custom_jvp_samples),
    Row(custom_vmap.custom_vmap_p, _custom_vmap_samples),
    Row(custom_calls.custom_vjp_p, _custom_vjp_samples),
    Row(custom_calls.linear_call_p, _linear_call_samples),
    Row(
        linear_solve.custom_linear_solve_p,
        _linear_solve_samples,
        fixed=(1, 2, 3, 4, 5, 6),
        differentiated=_solved_again,
    ),
    Row(cp.checkpoint_p, _checkpoint_samples),
    Row(remat.name_p, _named_samples, lambda x, name: x, rtol=0, is_flat=True),
    Row(structural.stop_gradient_p, _identity_samples, lambda x: x, rtol=0),
    Row(structural.unrecorded_p, _identity_samples, lambda x: x, rtol=0, fixed=(0,), order=0),
    Row(
        structural.overwritten_p,
        _overwritten_samples,
        lambda new, old: new,
        rtol=0,
        fixed=(0, 1),
        order=0,
    ),
    Row(structural.copy_p, _identity_samples, lambda x: x, rtol=0),
    Row(callbacks.pure_callback_p, _callback_samples),
    Row(kernels.kernel_p, _kernel_samples, fixed=(0, 1), order=0, rtol=1e-14),
    Row(external_maps.external_linear_p, _external_samples, fixed=(0, 1), is_flat=True),
)
