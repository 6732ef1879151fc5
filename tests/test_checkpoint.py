"""``checkpoint``: the same derivatives from fewer stored values."""

import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import lax
from functrans.core.jaxpr import subjaxprs
from functrans.errors import ConcretizationError
from functrans.passes.simplify import simplify

POLICIES = ft.checkpoint_policies
W = np.cos(np.arange(16.0)).reshape(4, 4)
X = np.linspace(0.0, 1.0, 4)


def network(w: Any, x: Any) -> Any:
    h = np.sin(w @ x)
    h = ft.checkpoint_name(np.tanh(w @ h), "h")
    h = ft.checkpoint_name(np.exp(w @ h), "e")
    return np.sum(np.sin(h))


CASES = {
    "default": (None, []),
    "nothing": (POLICIES.nothing_saveable, []),
    "everything": (POLICIES.everything_saveable, ["exp", "dot_general", "name", "sin", "tanh"]),
    "dots": (POLICIES.dots_saveable, ["dot_general"]),
    "dots without batch": (POLICIES.dots_with_no_batch_dims_saveable, ["dot_general"]),
    "only h": (POLICIES.save_only_these_names("h"), ["name"]),
    "h and e": (POLICIES.save_only_these_names("h", "e"), ["name"]),
    "names but h": (POLICIES.save_any_names_but_these("h"), ["name"]),
    "all but h": (POLICIES.save_anything_except_these_names("h"), None),
    "both": (
        POLICIES.save_from_both_policies(
            POLICIES.dots_saveable, POLICIES.save_only_these_names("e")
        ),
        ["dot_general", "name"],
    ),
}
EACH = pytest.mark.parametrize(("policy", "kept"), CASES.values(), ids=CASES.keys())


@EACH
def test_derivatives_are_the_same(policy: Any, kept: Any) -> None:
    f = ft.checkpoint(network, policy=policy)
    want = ft.grad(network, (0, 1))(W, X)
    with ft.config(check_jaxprs=True):
        assert_allclose(f(W, X), network(W, X))
        for gradient in (
            ft.grad(f, (0, 1)),
            ft.jit(ft.grad(f, (0, 1))),
            ft.grad(ft.jit(f), (0, 1)),
        ):
            for own, expected in zip(gradient(W, X), want, strict=True):
                assert_allclose(own, expected)
        assert_allclose(ft.jvp(f, (W, X), (W, X))[1], np.sum(want[0] * W) + want[1] @ X)
        assert_allclose(ft.hessian(f, 1)(W, X), ft.hessian(network, 1)(W, X))
        batch = np.stack([X, 2 * X])
        for outer in (lambda g: g, ft.jit):
            assert_allclose(
                outer(ft.vmap(ft.grad(f), (None, 0)))(W, batch),
                ft.vmap(ft.grad(network), (None, 0))(W, batch),
            )


@EACH
def test_policy_decides_what_is_kept(policy: Any, kept: Any) -> None:
    jaxpr = ft.jit(ft.grad(ft.checkpoint(network, policy=policy))).jaxpr(W, X)
    *forward, backward = [e for e in jaxpr.eqns if e.primitive.name == "checkpoint"]
    arguments = {*jaxpr.invars, *(v for e in forward for v in e.outputs)}
    stored = [a for a in backward.inputs if a in arguments and a not in jaxpr.invars]
    makers = set()
    for eqn in forward:
        program = eqn.params["jaxpr"]
        maker = {var: e.primitive.name for e in program.eqns for var in e.outputs}
        for var, atom in zip(eqn.outputs, program.outvars, strict=True):
            if var in stored:
                makers.add(maker[atom])
    if kept is not None:
        assert makers <= set(kept)
        assert bool(makers) == bool(kept)
    again = [e.primitive.name for e in backward.params["jaxpr"].eqns]
    assert ("tanh" in again) == (policy in (None, POLICIES.nothing_saveable)
                                 or ("tanh" not in makers and "name" not in makers)
                                 or policy is CASES["names but h"][0]
                                 or policy is CASES["all but h"][0]
                                 or policy is CASES["both"][0])  # fmt: skip


def test_backward_pass_keeps_the_arguments_only() -> None:
    n, depth = 20_000, 30

    def chain(x: Any) -> Any:
        for _ in range(depth):
            x = np.sin(x) * np.exp(-x)
        return np.sum(x)

    def kept_bytes(f: Any) -> int:
        x = np.linspace(0.0, 1.0, n)
        ft.vjp(f, x)  # programs are staged, and compiled, at the first call
        tracemalloc.start()
        try:
            _, pullback = ft.vjp(f, x)
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
            del pullback

    chain_bytes = kept_bytes(chain)
    assert chain_bytes > depth * 8 * n
    assert kept_bytes(ft.checkpoint(chain)) < 4 * 8 * n
    assert kept_bytes(ft.jit(ft.checkpoint(chain))) < 4 * 8 * n


def test_second_computation_is_not_merged_with_the_first() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.exp(np.sin(x)))

    jaxpr = ft.jit(ft.value_and_grad(ft.checkpoint(f))).jaxpr(X)
    programs = [e.params["jaxpr"] for e in jaxpr.eqns if e.primitive.name == "checkpoint"]
    assert len(programs) == 2
    assert all("sin" in str(program) for program in programs)


def test_body_of_a_loop() -> None:
    def step(c: Any, x: Any) -> Any:
        return np.sin(c) * np.exp(-x), None

    def loss(body: Any) -> Any:
        return lambda c, xs: np.sum(lax.scan(body, c, xs)[0])

    xs = np.linspace(0.0, 1.0, 8).reshape(2, 4)
    plain, saving = loss(step), loss(ft.checkpoint(step))
    for outer in (ft.grad, lambda f: ft.jit(ft.grad(f)), lambda f: ft.grad(f, 1), ft.hessian):
        assert_allclose(outer(saving)(X, xs), outer(plain)(X, xs))


def test_closure_keywords_and_static_arguments() -> None:
    def f(w: Any) -> Any:
        return ft.checkpoint(lambda x, *, s: np.sum(np.sin(w * x) * s))(X, s=2.0)

    assert_allclose(ft.grad(f)(2.0), np.sum(2 * X * np.cos(2 * X)))
    assert_allclose(ft.jit(ft.grad(f))(2.0), np.sum(2 * X * np.cos(2 * X)))

    @ft.remat(static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x**n if n > 2 else x

    assert ft.grad(power)(2.0, 3) == 12.0
    assert power.__name__ == "checkpoint(power)"
    with pytest.raises(ConcretizationError, match=r"args\[0\]"):
        ft.checkpoint(lambda x: x if x > 0 else -x)(1.0)


def test_captured_array_that_changes() -> None:
    w = np.ones(4)
    _, pullback = ft.vjp(ft.checkpoint(lambda x: np.sum(np.sin(w * x))), X)
    w[:] = 7.0
    assert_allclose(pullback(1.0)[0], np.cos(X))


def test_names_change_no_value() -> None:
    assert ft.checkpoint_name(2.0, "x") == 2.0
    f = lambda x: ft.checkpoint_name({"a": np.sin(x)}, "x")["a"]  # noqa: E731  # one line
    assert ft.grad(f)(0.5) == np.cos(0.5)
    assert ft.jvp(f, (0.5,), (1.0,))[1] == np.cos(0.5)
    assert_allclose(ft.vmap(ft.grad(f))(X), np.cos(X))


def test_effects_are_not_repeated() -> None:
    seen: list[float] = []

    def draw() -> float:
        seen.append(1.0)
        return float(len(seen))

    @ft.checkpoint
    def f(x: Any) -> Any:
        return np.sin(x) * ft.io_callback(draw, ft.ShapeDtypeStruct((), float))

    assert ft.grad(f)(0.5) == np.cos(0.5)
    assert ft.jit(ft.grad(f))(0.5) == 2 * np.cos(0.5)
    assert len(seen) == 2


# forward mode in programs: nothing is computed again ---------------------------------------------


def _sines(jaxpr: Any) -> int:
    """How often a program, with those in it, computes a sine."""
    total = 0
    for eqn in jaxpr.eqns:
        total += eqn.primitive.name == "sin" and sum(map(_sines, subjaxprs(eqn.params))) == 0
        total += sum(map(_sines, subjaxprs(eqn.params)))
    return total


@ft.checkpoint
def _block(x: Any, scale: Any) -> Any:
    return np.sin(x * scale) * x[::-1]


def _chain(p: Any) -> Any:
    y, _ = lax.scan(lambda y, s: (_block(y, s), None), p["x"] * 1.0, np.linspace(1, 2, 3))
    return {"y": _block(y, p["s"]), "s": np.sum(p["s"] ** 2), "zero": np.zeros(2)}


_POINT = {"x": X + 0.5, "s": np.float64(0.7), "idle": np.ones(3)}

COLUMNS = {
    "jacfwd": ft.jacfwd(_chain),
    "jacfwd of a part": ft.jacfwd(lambda p: _chain(p)["y"]),
    "hessian": ft.hessian(lambda p: np.sum(_chain(p)["y"] ** 2)),
    "jacfwd of jacfwd": ft.jacfwd(ft.jacfwd(lambda p: _chain(p)["y"])),
    "third": ft.jacfwd(ft.hessian(lambda p: np.sum(_chain(p)["y"] ** 2))),
    "reverse of forward": ft.jacrev(ft.jacfwd(lambda p: _chain(p)["y"])),
    "under vmap": lambda p: ft.vmap(lambda s: ft.jacfwd(_chain)({**p, "s": s}))(np.arange(3.0)),
    "with aux": ft.jacfwd(lambda p: (_chain(p)["y"], {"kept": p["x"] * 2}), has_aux=True),
    "written to": ft.jacfwd(lambda p: _written_to(p)),
    "one of two": ft.jacfwd(lambda a, p: a * _chain(p)["y"], argnums=1),
}


def _written_to(p: Any) -> Any:
    y = p["x"] * 2
    y[1:] = _block(y[1:], p["s"])
    z = np.zeros_like(y)
    z[0] = y[1]
    y[0] = 3.0
    return y * z[0]


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_in_programs_are_those_outside(name: str) -> None:
    fun = COLUMNS[name]
    args = (np.float64(1.5), _POINT) if name == "one of two" else (_POINT,)
    with ft.config(check_jaxprs=True):
        found, expected = ft.jit(fun)(*args), fun(*args)
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for own, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert (own.shape, own.dtype) == (other.shape, other.dtype)
        assert_allclose(own, other, rtol=1e-10, atol=1e-10)


def test_forward_mode_in_a_program_computes_nothing_again() -> None:
    def loop(x: Any) -> Any:
        return lax.scan(lambda y, s: (_block(y, s), None), x, np.linspace(1, 2, 3))[0]

    assert _sines(simplify(ft.make_jaxpr(ft.jacfwd(loop))(X))) == 1
    assert _sines(simplify(ft.make_jaxpr(ft.jacrev(loop))(X))) == 2


def test_effects_are_not_repeated_by_columns() -> None:
    calls: list[float] = []

    def fun(x: Any) -> Any:
        ft.io_callback(lambda v: calls.append(float(np.sum(v))), None, x)
        return _block(x, 0.7)

    ft.jit(ft.jacfwd(fun))(X)
    assert len(calls) == 1


def test_columns_that_do_not_fit_at_once_are_pushed_in_a_loop() -> None:
    with ft.config(jacobian_memory_bytes=1000):
        small = ft.jit(ft.jacfwd(lambda x: _block(x, 0.7)))(X)
    assert_allclose(small, ft.jacfwd(lambda x: _block(x, 0.7))(X))


@ft.custom_jvp
def _damped(x: Any) -> Any:
    return x


_damped.defjvp(lambda primals, tangents: (primals[0], 0.1 * tangents[0]))
_FIXED = X.copy()
_FIXED.flags.writeable = False
_once = ft.checkpoint(np.sin)

SAME_VALUES = {
    "captured": lambda x: ft.jacfwd(lambda y: _once(y) - x)(x),
    "given twice": lambda x: ft.jacfwd(lambda y, z: _once(y) * z)(x, x),
    "both asked for": lambda x: ft.jacfwd(lambda y, z: _once(y) * z, (0, 1))(x, x),
    "in a hessian": lambda x: ft.hessian(
        lambda y: np.sum(_once(y) * x * y + np.sin(x) * y**3)
    )(x),
    "a captured constant": lambda x: ft.jacfwd(
        lambda y, z: _once(y) * z * _FIXED * 2.0, (0, 1)
    )(x, _FIXED),
    "a number": lambda x: ft.jacfwd(lambda y, z: _once(y) * z * 2.0, (0, 1))(x, 2.0),
    "a result that is its operand": ft.jacfwd(lambda y: _once(_damped(y)) * y),
    "stopped": ft.jacfwd(lambda y: _once(y) * ft.stop_gradient(y) + np.floor(y) * y),
    "an order": lambda x: ft.jacfwd(lambda y: _once(y)[np.argsort(y)] * y * x)(x),
    "a Newton step in a loop": lambda x: lax.fori_loop(
        0, 3,
        lambda i, x: x - np.linalg.solve(
            ft.jacfwd(lambda y: y - 0.1 * _once(y) * x)(x), x - 0.1 * np.sin(x) * x
        ),
        x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME_VALUES)
def test_columns_of_what_has_the_value_of_something_else(name: str) -> None:
    fun, x = SAME_VALUES[name], X + 0.5
    found, expected = ft.jit(fun)(x), fun(x)
    for own, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert_allclose(own, other, rtol=1e-12, atol=1e-13)
