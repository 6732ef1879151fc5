"""External functions: what they get, what may come back, and each source of derivatives."""

import math
import threading
import traceback
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans.errors import NonDifferentiableError, ShapeError, TreeMismatchError

X = np.array([0.3, -0.7, 1.1])
W = np.array([2.0, 0.5, -1.0])


def plain(*values: Any) -> None:
    for value in values:
        assert type(value) is np.ndarray
        assert not value.flags.writeable


def fun(x: Any, w: Any) -> Any:
    plain(x, w)
    return np.sin(x) * w


def traced(x: Any, w: Any) -> Any:
    return np.sin(x) * w


def jvp_rule(primals: Any, tangents: Any) -> Any:
    (x, w), (t, s) = primals, tangents
    return np.cos(x) * w * t + np.sin(x) * s


def vjp_rule(primals: Any, outs: Any, ct: Any) -> Any:
    x, w = primals
    return np.cos(x) * w * ct, np.sin(x) * ct


def array_jvp(primals: Any, tangents: Any) -> Any:
    plain(*primals, *tangents)
    return jvp_rule(primals, tangents)


def array_vjp(primals: Any, outs: Any, ct: Any) -> Any:
    plain(*primals, outs, ct)
    assert_allclose(outs, traced(*primals))
    return vjp_rule(primals, outs, ct)


def same(x: Any, w: Any) -> Any:
    return x


KINDS = {
    "traced jvp": ({"jvp": jvp_rule}, 1e-14),
    "traced vjp": ({"vjp": vjp_rule}, 1e-14),
    "array rules": ({"jvp": array_jvp, "vjp": array_vjp, "rules": "arrays"}, 1e-14),
    "array jvp, basis": ({"jvp": array_jvp, "rules": "arrays", "derive": "basis"}, 1e-14),
    "array vjp, basis": ({"vjp": array_vjp, "rules": "arrays", "derive": "basis"}, 1e-14),
    "central": ({"fd": "central"}, 1e-8),
    "forward": ({"fd": "forward"}, 1e-6),
    "complex": ({"fd": "complex"}, 1e-14),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_source_of_derivatives_serves_both_modes_under_every_transform(kind: str) -> None:
    options, atol = KINDS[kind]
    f = ft.external(fun, same, **options)  # type: ignore[arg-type]  # a table
    t = np.array([0.4, 1.3, -0.2])
    assert_allclose(f(X, W), traced(X, W))

    def total(g: Any) -> Any:
        return lambda x, w: np.sum(g(2.0 * x, w) ** 2)

    want = ft.grad(total(traced), (0, 1))(X, W)
    for wrap in (lambda g: g, ft.jit):
        assert_allclose(wrap(ft.grad(total(f), (0, 1)))(X, W), want, atol=20 * atol)
        assert_allclose(ft.grad(wrap(total(f)), (0, 1))(X, W), want, atol=20 * atol)
        pushed = wrap(lambda x: ft.jvp(lambda y: f(y, W), (x,), (t,)))(X)
        assert_allclose(pushed[1], np.cos(X) * W * t, atol=20 * atol)
        batch = wrap(ft.vmap(ft.grad(total(f), (0, 1)), (0, None)))(np.stack([X, 2 * X]), W)
        other = ft.vmap(ft.grad(total(traced), (0, 1)), (0, None))(np.stack([X, 2 * X]), W)
        for got, expected in zip(batch, other, strict=True):
            assert_allclose(got, expected, atol=20 * atol)
    assert_allclose(ft.jacfwd(f)(X, W), ft.jacfwd(traced)(X, W), atol=20 * atol)
    assert_allclose(ft.jacrev(f)(X, W), ft.jacrev(traced)(X, W), atol=20 * atol)
    batched = ft.grad(lambda x: np.sum(ft.vmap(f, (0, None))(x, W) ** 2))(np.stack([X, 2 * X]))
    expected = ft.grad(lambda x: np.sum(traced(x, W) ** 2))(np.stack([X, 2 * X]))
    assert_allclose(batched, expected, atol=20 * atol)


@pytest.mark.parametrize("options", [{"jvp": jvp_rule}, {"vjp": vjp_rule}])
def test_traced_rules_have_second_derivatives(options: Any) -> None:
    f = ft.external(fun, same, **options)
    ft.check_grads(lambda x, w: np.sum(f(x, w) ** 2), (X, W), order=2)
    want = ft.hessian(lambda x: np.sum(traced(x, W) ** 2))(X)
    assert_allclose(ft.hessian(lambda x: np.sum(f(x, W) ** 2))(X), want, atol=1e-13)
    assert_allclose(ft.jit(ft.hessian(lambda x: np.sum(f(x, W) ** 2)))(X), want, atol=1e-13)


def test_rules_may_be_external_functions_themselves() -> None:
    second = ft.external(lambda x: -np.sin(x), lambda x: x, fd="complex")
    first = ft.external(np.cos, lambda x: x, jvp=lambda p, t: second(p[0]) * t[0])
    sine = ft.external(np.sin, lambda x: x, vjp=lambda p, y, ct: (first(p[0]) * ct,))
    assert_allclose(ft.grad(ft.grad(ft.grad(sine)))(0.3), -np.cos(0.3), rtol=1e-13)


def test_array_rules_have_no_second_derivative() -> None:
    f = ft.external(fun, same, jvp=array_jvp, vjp=array_vjp, rules="arrays")
    with pytest.raises(NonDifferentiableError, match=r"external fun has no second derivative"):
        ft.hessian(lambda x: np.sum(f(x, W)))(X)


def test_a_mode_without_rule_raises_and_names_the_function() -> None:
    f = ft.external(fun, same)
    assert_allclose(ft.jit(f)(X, W), traced(X, W))
    for mode in (ft.jacrev, ft.jacfwd):
        with pytest.raises(NonDifferentiableError, match=r"external fun has no derivative"):
            mode(f)(X, W)
    forward = ft.external(fun, same, jvp=array_jvp, rules="arrays")
    with pytest.raises(NonDifferentiableError, match=r"external fun has no reverse mode"):
        ft.jacrev(forward)(X, W)
    assert_allclose(ft.jacfwd(forward)(X, W), np.diag(np.cos(X) * W))
    reverse = ft.external(fun, same, vjp=array_vjp, rules="arrays")
    with pytest.raises(NonDifferentiableError, match=r"external fun has no forward mode"):
        ft.jvp(lambda x: reverse(x, W), (X,), (X,))
    assert_allclose(ft.jacrev(reverse)(X, W), np.diag(np.cos(X) * W))


def test_constants_ask_for_no_derivative() -> None:
    f = ft.external(lambda x: np.floor(x), lambda x: x)
    assert_allclose(ft.grad(lambda x: np.sum(x * f(X)))(X), np.floor(X))
    assert_allclose(ft.grad(lambda x: np.sum(x * f(ft.stop_gradient(x))))(X), np.floor(X))


def test_pytrees_integers_and_keywords() -> None:
    def f(p: Any, n: Any, *, scale: Any, name: str) -> Any:
        plain(p["a"], p["b"][0], n)
        assert name == "f"
        return {"y": p["a"] * p["b"][0] ** int(n) * scale, "n": n + 1}

    def like(p: Any, n: Any) -> Any:
        return {"y": p["a"], "n": n}

    def jvp(primals: Any, tangents: Any) -> Any:
        (p, n), (t, _) = primals, tangents
        b = p["b"][0]
        k = int(n)
        dot = t["a"] * b**k + p["a"] * k * b ** (k - 1) * t["b"][0]
        return {"y": 3.0 * dot, "n": None}

    p = {"a": X, "b": [W]}
    for options in (
        {"fd": "central"},
        {"jvp": jvp, "rules": "arrays", "derive": "basis"},
    ):
        g = ft.external(f, like, **options)  # type: ignore[arg-type]  # a table
        out = ft.grad(lambda p: np.sum(g(p, 2, scale=3.0, name="f")["y"]))(p)  # noqa: B023
        assert_allclose(out["a"], 3 * W**2, rtol=1e-8)
        assert_allclose(out["b"][0], 6 * X * W, rtol=1e-8)
    assert g(p, 2, scale=1.0, name="f")["n"] == 3


def test_vectorized_functions_are_called_once_per_batch() -> None:
    shapes = []

    def f(x: Any, w: Any) -> Any:
        shapes.append((x.shape, w.shape))
        return np.sin(x) * w

    g = ft.external(f, same, vectorized=True, jvp=jvp_rule)
    xs = np.stack([X, 2 * X, 3 * X])
    assert_allclose(ft.vmap(g, (0, None))(xs, W), np.sin(xs) * W)
    assert shapes == [((3, 3), (3, 3))]
    assert_allclose(ft.vmap(ft.jacrev(g), (0, None))(xs, W)[2], np.diag(np.cos(3 * X) * W))
    shapes.clear()
    ft.vmap(ft.external(f, same), (0, None))(xs, W)
    assert shapes == [((3,), (3,))] * 3


def test_vectorized_functions_get_one_batch_axis_for_all_maps() -> None:
    shapes = []

    def f(x: Any) -> Any:
        shapes.append(x.shape)
        return np.sin(x)

    g = ft.external(f, lambda x: x, vectorized=True, fd="central")
    xs = np.stack([X, 2 * X])
    for transform in (lambda f: f, ft.jit):
        shapes.clear()
        assert_allclose(transform(ft.vmap(ft.vmap(g)))(xs), np.sin(xs))
        assert shapes == [(6,)]
        assert_allclose(transform(ft.vmap(ft.vmap(ft.grad(g))))(xs), np.cos(xs), rtol=1e-8)


def test_what_comes_back_is_checked() -> None:
    struct = ft.ShapeDtypeStruct((3,), float)
    for result, error, match in (
        (np.zeros(2), ShapeError, r"external f: result is an array of shape \(2,\).*f64\[3\]"),
        (np.zeros(3, np.float32), TypeError, r"dtype float32, but out_like says f64\[3\]"),
        ((X, X), TreeMismatchError, r"external f returned \(\*, \*\), but out_like"),
    ):

        def f(x: Any, result: Any = result) -> Any:
            return result

        g = ft.external(f, struct)
        for call in (g, ft.jit(g), lambda x, g=g: ft.vmap(g)(x[None])):
            with pytest.raises(error, match=match):
                call(X)
    bad = ft.external(fun, same, vjp=lambda p, y, ct: (ct,))
    with pytest.raises(TypeError, match=r"one cotangent per argument \(2\), got 1"):
        ft.jacrev(bad)(X, W)
    bad = ft.external(fun, same, vjp=lambda p, y, ct: (ct, ct[:2]), rules="arrays")
    with pytest.raises(ShapeError, match=r"external fun: vjp: result\[1\]"):
        ft.jacrev(bad)(X, W)
    with pytest.raises(TypeError, match=r"out_like is a str"):
        ft.external(fun, "x")(X, W)


def test_exceptions_keep_type_and_traceback() -> None:
    class OwnError(Exception):
        pass

    def breaks(x: Any) -> Any:
        raise OwnError("from inside")

    g = ft.external(breaks, lambda x: x)
    for call in (g, ft.jit(lambda x: g(2.0 * x)), ft.vmap(g), ft.jit(ft.vmap(g))):
        with pytest.raises(OwnError, match="from inside") as caught:
            call(X)
        assert "breaks" in [frame.name for frame in traceback.extract_tb(caught.tb)]


def test_arguments_cannot_be_modified() -> None:
    def writes(x: Any) -> Any:
        x[0] = 5.0
        return x

    g = ft.external(writes, lambda x: x)
    x = X.copy()
    for call in (g, ft.jit(g)):
        with pytest.raises(ValueError, match="read-only"):
            call(x)
    assert_allclose(x, X)
    keep = ft.external(lambda x: x, lambda x: x)(x)
    keep[0] = 9.0
    assert_allclose(x, X)


@pytest.mark.parametrize("fd", ["central", "forward", "complex"])
def test_finite_differences_keep_float32_and_zero_sizes(fd: str) -> None:
    f = ft.external(lambda x: x * x, lambda x: x, fd=fd)
    x = X.astype(np.float32)
    g = ft.grad(lambda x: np.sum(f(x)))(x)
    assert g.dtype == np.float32
    assert_allclose(g, 2 * x, rtol=3e-3)
    assert ft.jacrev(f)(np.zeros(0)).shape == (0, 0)
    assert ft.jacfwd(f)(np.zeros(0)).shape == (0, 0)


def test_complex_step_needs_a_function_of_complex_numbers() -> None:
    f = ft.external(lambda x: np.real(x) ** 2, lambda x: x, fd="complex")
    with pytest.raises(NonDifferentiableError, match=r"returned real results"):
        ft.grad(f)(1.0)
    g = ft.external(lambda x: x, lambda x: x, fd=True)
    with pytest.raises(NonDifferentiableError, match=r"real arguments and results"):
        ft.jvp(g, (1j,), (1.0 + 0j,))


def test_step_of_finite_differences() -> None:
    f = ft.external(lambda x: x**3, lambda x: x, fd="central", fd_step=1e-2)
    assert_allclose(ft.grad(f)(1.0), 3.0 + 1e-4, rtol=1e-9)


def test_traced_rules_for_both_modes(rng: np.random.Generator) -> None:
    """Each serves its own mode, so that neither has to be transposed."""
    called: list[str] = []

    def push(primals: Any, tangents: Any) -> Any:
        called.append("jvp")
        return {"a": 2 * primals[0] * tangents[0], "b": tangents[1]}

    def pull(primals: Any, outs: object, cts: Any) -> Any:
        called.append("vjp")
        return 2 * primals[0] * cts["a"], cts["b"], None

    f = ft.external(
        lambda x, y, n: {"a": x**2, "b": y}, lambda x, y, n: {"a": x, "b": y}, jvp=push, vjp=pull
    )
    x, y, t = rng.standard_normal((3, 4))
    wrap: Any
    for wrap in (lambda g: g, ft.jit):
        called.clear()
        _, dots = wrap(lambda x, t: ft.jvp(lambda x: f(x, y, 3), (x,), (t,)))(x, t)
        assert called == ["jvp"]
        assert_allclose(dots["a"], 2 * x * t)
        assert_allclose(dots["b"], 0 * y)
        called.clear()
        slopes = wrap(ft.grad(lambda x: np.sum(f(x, y, 3)["a"] * y)))(x)
        assert called == ["vjp"]
        assert_allclose(slopes, 2 * x * y)
        hessian = wrap(ft.hessian(lambda x: np.sum(f(x, y, 3)["a"])))(x)
        assert_allclose(hessian, 2 * np.eye(4))
    ft.check_grads(lambda x, y: f(x, y, 3), (x, y), order=2)
    pushed = ft.vmap(lambda t: ft.jvp(lambda x: f(x, y, 3), (x,), (t,))[1]["a"])(np.eye(4))
    assert_allclose(pushed, np.diag(2 * x))


def test_bad_options() -> None:
    for options, error, match in (
        ({"fd": "no"}, ValueError, "central, forward, complex"),
        ({"fd": True, "jvp": jvp_rule}, TypeError, "not both"),
        ({"rules": "x"}, ValueError, "'traced' or 'arrays'"),
        ({"derive": "basis"}, ValueError, 'rules="arrays"'),
        ({"fd": True, "fd_step": -1.0}, ValueError, "positive"),
        ({"jvp": 3}, TypeError, "expected a function"),
    ):
        with pytest.raises(error, match=match):
            ft.external(fun, same, **options)  # type: ignore[arg-type]  # a table


def test_under_loops_and_in_threads() -> None:
    gamma = ft.external(math.gamma, 0.0, fd="central")

    def f(x: Any) -> Any:
        return ft.lax.fori_loop(0, 3, lambda i, c: 0.5 * gamma(c) + 0.1 * x, x)

    def plain_f(x: float) -> float:
        c = x
        for _ in range(3):
            c = 0.5 * math.gamma(c) + 0.1 * x
        return c

    want = (plain_f(2.0 + 1e-5) - plain_f(2.0 - 1e-5)) / 2e-5
    assert_allclose(ft.grad(f)(2.0), want, rtol=1e-6)
    assert_allclose(ft.jit(ft.grad(f))(2.0), want, rtol=1e-6)
    results = []
    threads = [threading.Thread(target=lambda: results.append(ft.grad(f)(2.0))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert_allclose(results, want, rtol=1e-6)


def test_without_a_function_it_is_a_decorator() -> None:
    @ft.external(out_like=lambda x: x, fd="central")
    def cube(x: Any) -> Any:
        return np.power(x, 3)

    assert cube.__name__ == "external(cube)"
    assert_allclose(ft.grad(cube)(2.0), 12.0, rtol=1e-8)
    assert_allclose(ft.vmap(ft.grad(cube))(np.array([1.0, 2.0])), [3.0, 12.0], rtol=1e-8)


def test_what_it_returns_must_be_told() -> None:
    with pytest.raises(TypeError, match="external sin: out_like is missing; it says what"):
        ft.external(math.sin)
    with pytest.raises(TypeError, match="external cos: out_like is missing"):
        ft.external(fd="central")(math.cos)
    with pytest.raises(TypeError, match="external: expected a function, got float"):
        ft.external(0.0, fd="central")
