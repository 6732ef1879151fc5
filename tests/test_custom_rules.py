"""Functions with rules of their own: the rule is what is used, everywhere, in both modes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import lax
from functrans.errors import (
    NonDifferentiableError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)

XS = np.array([0.1, 0.2, 0.3])
SLOPE = 10.0  # by which a rule's derivative differs from the function's own


def with_jvp() -> Callable[..., Any]:
    @ft.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    @f.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        (x, y), (x_dot, y_dot) = primals, tangents
        return f(x, y), SLOPE * np.cos(x) * x_dot * y + np.sin(x) * y_dot

    return f


def with_jvps() -> Callable[..., Any]:
    @ft.custom_jvp
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    f.defjvps(
        lambda x_dot, out, x, y: SLOPE * np.cos(x) * x_dot * y,
        lambda y_dot, out, x, y: np.sin(x) * y_dot,
    )
    return f


def with_vjp() -> Callable[..., Any]:
    @ft.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return np.sin(x) * y

    def bwd(residuals: Any, ct: Any) -> Any:
        x, y = residuals
        return SLOPE * np.cos(x) * y * ct, np.sin(x) * ct

    f.defvjp(lambda x, y: (f(x, y), (x, y)), bwd)
    return f


def with_gradient() -> Callable[..., Any]:
    @ft.custom_gradient
    def f(x: Any, y: Any) -> Any:
        def pullback(ct: Any) -> Any:
            return SLOPE * np.cos(x) * y * ct, np.sin(x) * ct

        return np.sin(x) * y, pullback

    return f


KINDS = pytest.mark.parametrize("make", [with_jvp, with_jvps, with_vjp, with_gradient])
OUTER = pytest.mark.parametrize("outer", [lambda f: f, ft.jit], ids=["eager", "jit"])


@KINDS
@OUTER
def test_rule_is_used_in_both_modes(make: Any, outer: Any) -> None:
    x, y = np.float64(0.3), np.float64(2.0)
    for f in (make(), ft.jit(make())):
        assert_allclose(outer(f)(x, y), np.sin(x) * y)
        slopes = outer(ft.grad(f, (0, 1)))(x, y)
        assert_allclose(slopes, (SLOPE * np.cos(x) * y, np.sin(x)))
        pushed = outer(lambda x, y: ft.jvp(f, (x, y), (1.0, 1.0)))(x, y)  # noqa: B023  # called here
        assert_allclose(pushed, (np.sin(x) * y, sum(slopes)))


@KINDS
@OUTER
def test_second_order_differentiates_the_rule(make: Any, outer: Any) -> None:
    x, y = np.float64(0.3), np.float64(2.0)
    f = make()
    want = -SLOPE * np.sin(x) * y
    assert_allclose(outer(ft.grad(ft.grad(f)))(x, y), want)
    assert_allclose(outer(ft.hessian(f))(x, y), want)
    assert_allclose(outer(lambda x: ft.jvp(ft.grad(f), (x, y), (1.0, 0.0))[1])(x), want)

    def slope(x: Any) -> Any:
        return ft.jvp(lambda x: f(x, y), (x,), (1.0,))[1]

    assert_allclose(outer(lambda x: ft.jvp(slope, (x,), (1.0,))[1])(x), want)
    assert_allclose(outer(ft.grad(slope))(x), want)
    assert_allclose(outer(ft.grad(ft.grad(f), 1))(x, y), SLOPE * np.cos(x))
    assert_allclose(outer(ft.grad(ft.grad(ft.grad(f))))(x, y), -SLOPE * np.cos(x) * y)


@KINDS
@OUTER
def test_rule_is_used_under_and_over_vmap(make: Any, outer: Any) -> None:
    f = make()
    want = SLOPE * np.cos(XS) * 2.0
    over = ft.vmap(f, (0, None))
    assert_allclose(outer(over)(XS, 2.0), np.sin(XS) * 2.0)
    assert_allclose(outer(ft.vmap(ft.grad(f), (0, None)))(XS, 2.0), want)
    assert_allclose(outer(ft.grad(lambda x: np.sum(over(x, 2.0))))(XS), want)
    pushed = outer(lambda x: ft.jvp(lambda x: over(x, 2.0), (x,), (np.ones(3),))[1])(XS)
    assert_allclose(pushed, want)
    assert_allclose(outer(ft.grad(lambda y: np.sum(over(XS, y))))(2.0), np.sum(np.sin(XS)))
    nested = ft.vmap(ft.vmap(ft.grad(f), (0, None)), (None, 0))(XS, np.array([1.0, 2.0]))
    assert_allclose(nested, [want / 2, want])
    twice = ft.vmap(ft.vmap(f, (0, None)), (None, 0))
    assert_allclose(ft.grad(lambda x: np.sum(twice(x, np.ones(2))))(XS), want)


@KINDS
@OUTER
def test_rule_is_used_in_control_flow(make: Any, outer: Any) -> None:
    f = make()
    want = SLOPE * np.cos(XS) * 2.0

    def looped(x: Any, y: Any) -> Any:
        return lax.scan(lambda c, x: (c + f(x, y), None), 0.0, x)[0]

    assert_allclose(outer(ft.grad(looped))(XS, 2.0), want)
    assert_allclose(outer(ft.grad(looped, 1))(XS, 2.0), np.sum(np.sin(XS)))
    assert_allclose(outer(ft.grad(lambda y: ft.grad(looped)(XS, y)[0]))(2.0), want[0] / 2)
    assert_allclose(outer(lambda x: ft.jvp(lambda x: looped(x, 2.0), (x,), (x,))[1])(XS), want @ XS)
    chosen = ft.grad(lambda x: lax.cond(x > 0.15, lambda x: f(x, 2.0), lambda x: x, x))
    assert_allclose(outer(ft.vmap(chosen))(XS), [1.0, *want[1:]])
    assert_allclose(outer(ft.grad(ft.checkpoint(f)))(XS[0], 2.0), want[0])


@KINDS
def test_stays_one_equation_until_differentiated(make: Any) -> None:
    f = make()
    for program in (
        ft.make_jaxpr(f)(1.0, 2.0),
        ft.make_jaxpr(ft.vmap(f))(XS, XS),
        ft.jit(ft.vmap(ft.vmap(f))).jaxpr(np.ones((2, 3)), np.ones((2, 3))),
    ):
        assert [eqn.primitive.name[:6] for eqn in program.eqns] == ["custom"]
    assert "custom" not in str(ft.jit(ft.grad(f)).jaxpr(1.0, 2.0))


def test_python_control_flow_in_function_and_rule() -> None:
    @ft.custom_jvp
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    f.defjvp(lambda p, t: (f(*p), t[0] * (5.0 if p[0] > 0 else -7.0)))

    @ft.custom_vjp
    def g(x: Any) -> Any:
        return x if x > 0 else -x

    g.defvjp(lambda x: (g(x), x), lambda x, ct: (ct * (5.0 if x > 0 else -7.0),))
    for h in (f, g):
        assert [ft.grad(h)(2.0), ft.grad(h)(-2.0)] == [5.0, -7.0]
        assert ft.jvp(h, (-2.0,), (1.0,)) == (2.0, -7.0)
        assert ft.grad(ft.grad(h))(2.0) == 0.0
        assert [ft.value_and_grad(h)(-2.0)] == [(2.0, -7.0)]


# closures ---------------------------------------------------------------------------------------


def closing_jvp(w: Any, x: Any) -> Any:
    @ft.custom_jvp
    def f(x: Any) -> Any:
        return x * w * w

    f.defjvp(lambda p, t: (f(p[0]), t[0] * w * w * 3.0))
    return f(x)


def closing_vjp(w: Any, x: Any) -> Any:
    @ft.custom_vjp
    def f(x: Any) -> Any:
        return x * w * w

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * w * w * 3.0,))
    return f(x)


@pytest.mark.parametrize("loss", [closing_jvp, closing_vjp])
def test_closed_over_tracers_are_seen(loss: Any) -> None:
    """The rule's derivative in the argument, the function's own in what it refers to."""
    both = (20.0, 12.0)
    assert_allclose(ft.grad(loss, (0, 1))(2.0, 5.0), both)
    assert_allclose(ft.jit(ft.grad(loss, (0, 1)))(2.0, 5.0), both)
    assert_allclose(ft.grad(ft.jit(loss), (0, 1))(2.0, 5.0), both)
    assert_allclose(ft.grad(loss)(2.0, 5.0), 20.0)
    assert_allclose(ft.grad(loss, 1)(2.0, 5.0), 12.0)
    assert_allclose(ft.grad(lambda w: loss(w, w))(2.0), 8.0 + 12.0)
    assert_allclose(ft.jvp(loss, (2.0, 5.0), (1.0, 1.0))[1], 32.0)
    assert_allclose(ft.grad(ft.grad(loss, 1))(2.0, 5.0), 12.0)
    assert_allclose(ft.grad(lambda x: ft.grad(lambda w: loss(w, x))(2.0))(5.0), 4.0)
    assert_allclose(ft.grad(lambda w: np.sum(ft.vmap(loss, (None, 0))(w, XS)))(2.0), 4 * XS.sum())
    assert_allclose(ft.jit(ft.vmap(ft.grad(loss, (0, 1))))(XS, XS), (2 * XS**2, 3 * XS**2))
    assert_allclose(ft.jacrev(lambda w: loss(w, XS))(2.0), 4 * XS)

    def looped(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c + loss(w, x), None), 0.0, xs)[0]

    assert_allclose(ft.grad(looped)(2.0, XS), 4 * XS.sum())
    assert_allclose(ft.jit(ft.grad(looped, 1))(2.0, XS), np.full(3, 12.0))


def test_pullback_of_a_closure_can_be_called_later() -> None:
    _, pullback = ft.vjp(closing_vjp, 2.0, 5.0)
    assert_allclose(pullback(1.0), (20.0, 12.0))
    assert_allclose(pullback(2.0), (40.0, 24.0))


def test_tracer_in_an_attribute_is_refused() -> None:
    class Holder:
        pass

    def loss(w: Any) -> Any:
        holder = Holder()
        holder.w = w

        @ft.custom_jvp
        def f(x: Any) -> Any:
            return x * holder.w

        f.defjvp(lambda p, t: (f(p[0]), t[0] * 3.0))
        return f(w)

    with pytest.raises(UnsupportedOperationError, match="pass it as an argument"):
        ft.grad(loss)(2.0)


# nondiff arguments ------------------------------------------------------------------------------


@partial(ft.custom_jvp, nondiff_argnums=(0, 2))
def applied(fun: Any, x: Any, n: Any) -> Any:
    return fun(x) * n


applied.defjvp(lambda fun, n, p, t: (applied(fun, p[0], n), t[0] * 100.0 * n))


@partial(ft.custom_vjp, nondiff_argnums=(0, 2))
def applied_too(fun: Any, x: Any, n: Any) -> Any:
    return fun(x) * n


applied_too.defvjp(
    lambda fun, x, n: (applied_too(fun, x, n), ()), lambda fun, n, res, ct: (ct * 100.0 * n,)
)


@pytest.mark.parametrize("f", [applied, applied_too])
def test_nondiff_arguments(f: Any) -> None:
    assert ft.grad(lambda x: f(np.sin, x, 3))(1.0) == 300.0
    assert ft.jit(ft.grad(lambda x: f(np.sin, x, 3)))(1.0) == 300.0
    batched = ft.vmap(lambda x, n: ft.grad(lambda x: f(np.sin, x, n))(x))
    assert_allclose(batched(XS, np.arange(3.0)), 100 * np.arange(3.0))
    over = ft.vmap(lambda x, n: f(np.sin, x, n))
    assert_allclose(ft.grad(lambda x: np.sum(over(x, np.arange(3.0))))(XS), 100 * np.arange(3.0))
    assert_allclose(ft.grad(lambda w: f(lambda x: x * w, 5.0, 3))(1.0), 15.0)
    with pytest.raises(NonDifferentiableError, match="nondiff_argnums"):
        ft.grad(lambda n: f(np.sin, 1.0, n))(3.0)
    assert ft.grad(lambda x: f(np.sin, x, ft.stop_gradient(x)))(2.0) == 200.0


# arguments and results --------------------------------------------------------------------------


def test_pytrees_integers_and_keywords() -> None:
    @ft.custom_vjp
    def f(params: Any, n: Any, scale: Any = 2.0) -> Any:
        return {"y": params["w"] * n * scale, "n": n + 1}

    def bwd(residuals: Any, ct: Any) -> Any:
        n, scale = residuals
        assert ct["n"].dtype.names == ("float0",)
        return {"w": ct["y"] * n * scale * SLOPE}, None, None

    f.defvjp(lambda params, n, scale: (f(params, n, scale), (n, scale)), bwd)

    @ft.custom_jvp
    def g(params: Any, n: Any, scale: Any = 2.0) -> Any:
        return {"y": params["w"] * n * scale, "n": n + 1}

    @g.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        params, n, scale = primals
        params_dot, n_dot, _ = tangents
        assert n_dot.dtype.names == ("float0",)
        out_dot = {"y": params_dot["w"] * n * scale * SLOPE, "n": n_dot}
        return g(params, n, scale), out_dot

    for h in (f, g):
        for call in (h, ft.jit(h)):
            loss = lambda p: np.sum(call(p, 3)["y"])  # noqa: B023, E731  # called here
            assert_allclose(ft.grad(loss)({"w": XS})["w"], np.full(3, 60.0))
            assert_allclose(ft.jvp(loss, ({"w": XS},), ({"w": XS},))[1], 60 * XS.sum())
        keyword = ft.grad(lambda p: np.sum(h(n=3, params=p, scale=1.0)["y"]))  # noqa: B023  # called here
        assert_allclose(keyword({"w": XS})["w"], np.full(3, 30.0))


TREES: dict[str, Any] = {
    "leaf": 1.0,
    "pair": (1.0, 2.0),
    "nested": {"a": (1.0, [2.0, 3.0]), "b": {"c": 4.0}},
    "with integers": {"n": (3, True), "x": [1.0, (2.0, 5)]},
}


def without_each_node(tree: Any) -> list[Any]:
    """The tree, and the trees with one of its nodes replaced by ``None``."""
    if isinstance(tree, dict):
        parts = [(key, without_each_node(item)) for key, item in tree.items()]
        return [None, *({**tree, key: new} for key, items in parts for new in items)]
    if isinstance(tree, (tuple, list)):
        kind = type(tree)
        return [
            None,
            *(
                kind([*tree[:i], new, *tree[i + 1 :]])
                for i, item in enumerate(tree)
                for new in without_each_node(item)
            ),
        ]
    return [None, tree]


@pytest.mark.parametrize("name", TREES)
def test_none_at_any_node_of_a_cotangent_stands_for_zeros(name: str) -> None:
    example = TREES[name]

    def total(tree: Any) -> Any:
        return sum(leaf * 1.0 for leaf in ft.tree.leaves(tree))

    for cotangent in without_each_node(example):
        f = ft.custom_vjp(lambda tree, x: total(tree) * x)
        f.defvjp(lambda tree, x: (f(tree, x), None), lambda _, ct: (cotangent, 7.0 * ct))  # noqa: B023  # called here
        found = ft.grad(lambda tree, x: f(tree, x), (0, 1), allow_int=True)(example, 2.0)  # noqa: B023
        # None is a container without leaves for zip; fill it by the path of each leaf
        marks = _filled(cotangent, example)
        for leaf, want, own in zip(
            ft.tree.leaves(found[0]), marks, ft.tree.leaves(example), strict=True
        ):
            assert leaf.dtype == (np.float64 if type(own) is float else ft.float0)
            assert type(own) is not float or leaf == want
        assert found[1] == 7.0


def _filled(cotangent: Any, example: Any) -> list[Any]:
    """Leaves of a cotangent, zeros for ``None``."""
    if cotangent is None:
        return [0.0] * len(ft.tree.leaves(example))
    if isinstance(example, dict):
        return [leaf for key in sorted(example) for leaf in _filled(cotangent[key], example[key])]
    if isinstance(example, (tuple, list)):
        pairs = zip(cotangent, example, strict=True)
        return [leaf for own, item in pairs for leaf in _filled(own, item)]
    return [cotangent]


def test_cotangents_of_integers_may_be_anything() -> None:
    for anything in (None, 1, 2.5, "text", (1, 2), np.zeros((), ft.float0), np.ones(7)):
        f = ft.custom_vjp(lambda x, n: x * n[0])
        f.defvjp(lambda x, n: (x * n[0], None), lambda _, ct: (ct * 5.0, anything))  # noqa: B023  # called here
        assert ft.grad(f)(2.0, (3, True)) == 5.0
        assert ft.jit(ft.grad(f))(2.0, (3, True)) == 5.0
    f = ft.custom_vjp(lambda x, n: x[0] * n)
    f.defvjp(lambda x, n: (x[0] * n, None), lambda _, ct: ((ct, None, ct), None))
    with pytest.raises(TreeMismatchError, match=r"cotangent of args\[0\]"):
        ft.grad(f)((2.0, 1.0), 3)


def test_arguments_bound_by_partial_are_part_of_the_function() -> None:
    def f(x: Any, a: Any, *, b: Any = 2.0) -> Any:
        return np.sin(x) * a * b

    for bound in (partial(f, a=0.1), partial(f, a=0.1, b=3.0), partial(f, XS)):
        given = (0.1,) if bound.args else (XS,)
        for outer in (lambda g: g, ft.jit):
            plain = ft.custom_jvp(bound)
            plain.defjvp(lambda p, t: (plain(*p), 7.0 * t[0] * np.ones(3)))  # noqa: B023  # called here
            assert_allclose(outer(plain)(*given), bound(*given))
            slope = ft.grad(lambda *args: np.sum(outer(plain)(*args)))(*given)  # noqa: B023
            assert_allclose(slope, 21.0 if bound.args else np.full(3, 7.0))
            backward = ft.custom_vjp(bound)
            backward.defvjp(lambda *args: (bound(*args), None), lambda _, ct: (np.sum(ct),))  # noqa: B023
            if bound.args:
                assert outer(ft.grad(lambda a: np.sum(backward(a))))(0.1) == 3.0  # noqa: B023
    with pytest.raises(TypeError, match=r"keyword-only arguments \(b\)"):
        plain(0.1, b=1.0)


def test_decorated_functions_keep_attributes() -> None:
    def f(x: Any) -> Any:
        return x * 2.0

    f.units = "m"  # type: ignore[attr-defined]
    f.lower = "not the method"  # type: ignore[attr-defined]
    for wrap in (ft.jit, ft.checkpoint, ft.custom_jvp, ft.custom_vjp, ft.grad, ft.vmap):
        assert wrap(f).units == "m"
        assert ft.jit(wrap(f)).units == "m"
    assert callable(ft.jit(f).lower)
    assert ft.jit(f)(1.0) == 2.0


def test_plain_call_is_the_function_itself() -> None:
    f = with_vjp()
    assert type(f(0.3, 2.0)) is np.float64
    assert f.__name__ == "f"
    out = ft.custom_jvp(lambda x: x)
    with pytest.raises(TypeError, match="no rule yet"):
        out(1.0)


def test_function_cannot_write_to_values_by_mistake() -> None:
    @ft.custom_vjp
    def f(x: Any) -> Any:
        return np.sum(x)

    def fwd(x: Any) -> Any:
        x[0] = 7.0
        return f(x), None

    f.defvjp(fwd, lambda _, ct: (ct,))
    x = XS.copy()
    with pytest.raises(ValueError, match="read-only"):
        ft.grad(f)(x)
    assert_allclose(x, XS)


def test_methods_can_be_decorated() -> None:
    class Model:
        scale = 3.0

        @partial(ft.custom_jvp, nondiff_argnums=0)
        def run(self, x: Any) -> Any:
            return x * self.scale

        @run.defjvp
        def _rule(self, primals: Any, tangents: Any) -> Any:
            return self.run(primals[0]), tangents[0] * 7.0

    assert ft.grad(Model().run)(2.0) == 7.0


def test_residuals_of_any_kind() -> None:
    @ft.custom_vjp
    def f(x: Any) -> Any:
        return x * x

    f.defvjp(
        lambda x: (f(x), {"x": x, "name": "a string", "none": None, "n": 3}),
        lambda r, ct: (ct * r["x"] * r["n"] * (r["name"] == "a string"),),
    )
    for g in (f, ft.jit(f)):
        assert ft.grad(g)(2.0) == 6.0
        assert_allclose(ft.vmap(ft.grad(g))(XS), 3 * XS)
        assert_allclose(ft.grad(lambda x: np.sum(ft.vmap(g)(x)))(XS), 3 * XS)  # noqa: B023  # called here


# errors -----------------------------------------------------------------------------------------


def decorated_jvp(rule: Any) -> Any:
    f = ft.custom_jvp(lambda x: {"a": x})
    f.defjvp(rule)
    return lambda x: f(x)["a"]


@pytest.mark.parametrize(
    ("rule", "error", "match"),
    [
        (lambda p, t: p[0], TypeError, r"must return a pair \(primal_out, tangent_out\), got"),
        (lambda p, t: (p[0], t[0], 1), TypeError, "tuple of 3"),
        (lambda p, t: ({"a": p[0]}, t[0]), TreeMismatchError, "tangent_out has structure"),
        (
            lambda p, t: ({"a": p[0]}, {"a": np.ones(3) * t[0]}),
            ShapeError,
            r"tangent_out\['a'\] of the jvp rule is f64\[3\], expected f64\[\]",
        ),
        (
            lambda p, t: ({"a": p[0]}, {"a": t[0].astype(np.float32)}),
            TypeError,
            r"tangent_out\['a'\].*f32.*expected f64",
        ),
        (lambda p, t: ({"a": t[0]}, {"a": t[0]}), NonDifferentiableError, "computed from tangents"),
        (lambda p, t: ({"a": p[0]}, {"a": np.sin(t[0])}), NonDifferentiableError, "not linear"),
    ],
)
def test_wrong_jvp_rules(rule: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ft.grad(decorated_jvp(rule))(np.float64(1.0))


def decorated_vjp(fwd: Any, bwd: Any) -> Any:
    f = ft.custom_vjp(lambda d: d["a"] * 1.0)
    f.defvjp(fwd, bwd)
    return lambda x: f({"a": x})


def forward(d: Any) -> Any:
    return d["a"] * 1.0, None


@pytest.mark.parametrize(
    ("fwd", "bwd", "error", "match"),
    [
        (lambda d: d["a"], None, TypeError, r"fwd must return a pair \(out, residuals\)"),
        (forward, lambda r, ct: ct, TypeError, "tuple of 1 cotangents"),
        (forward, lambda r, ct: (ct, ct), TypeError, "got 2 items"),
        (forward, lambda r, ct: (ct,), TreeMismatchError, r"args\[0\] returned by bwd"),
        (
            forward,
            lambda r, ct: ({"a": ct * np.ones(2)},),
            ShapeError,
            r"cotangent of args\[0\]\['a'\] returned by bwd is f64\[2\], expected f64\[\]",
        ),
    ],
)
def test_wrong_vjp_rules(fwd: Any, bwd: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match):
        ft.grad(decorated_vjp(fwd, bwd or fwd))(np.float64(1.0))


def test_backward_function_that_is_not_linear_has_no_forward_mode() -> None:
    f = decorated_vjp(forward, lambda r, ct: ({"a": np.clip(ct, -1.0, 1.0)},))
    assert ft.grad(f)(5.0) == 1.0
    assert ft.grad(lambda x: 3.0 * f(x))(5.0) == 1.0
    with pytest.raises(NonDifferentiableError, match="not linear in the cotangent"):
        ft.jvp(f, (5.0,), (1.0,))


def test_argument_that_is_no_array_raises_with_the_remedy() -> None:
    f = ft.custom_vjp(lambda x, mode: x)
    f.defvjp(lambda x, mode: (x, None), lambda r, ct: (ct, None))
    with pytest.raises(UnsupportedOperationError, match=r"args\[1\].*nondiff_argnums"):
        ft.grad(lambda x: f(x, "fast"))(1.0)
    keyword_only = ft.custom_jvp(lambda x, *, n: x)
    keyword_only.defjvp(lambda p, t: (p[0], t[0]))
    with pytest.raises(TypeError, match="keyword-only"):
        keyword_only(1.0, n=2)
    with pytest.raises(TypeError, match="expected a function"):
        ft.custom_jvp(3)
    with pytest.raises(TypeError, match="does not go with nondiff_argnums"):
        applied.defjvps(None)


# stop_gradient ----------------------------------------------------------------------------------


def test_stop_gradient() -> None:
    def f(x: Any) -> Any:
        return np.sum(x * ft.stop_gradient({"a": (x, 1, "s")})["a"][0])

    for outer in (lambda g: g, ft.jit):
        assert_allclose(outer(ft.grad(f))(XS), XS)
        assert_allclose(outer(lambda x: ft.jvp(f, (x,), (x,))[1])(XS), XS @ XS)
        assert_allclose(outer(ft.hessian(f))(XS), np.zeros((3, 3)))
        assert_allclose(outer(ft.vmap(ft.grad(lambda x: x * ft.stop_gradient(x))))(XS), XS)
    assert ft.stop_gradient(XS) is XS


def test_a_rule_that_differentiates_a_function_of_arrays_forward_over_reverse() -> None:
    scale = np.array([1.0, 2.0])  # may be written to: a program of its own must not capture it

    @ft.custom_jvp
    def f(x: Any) -> Any:
        return np.sum(scale * x**3)

    @f.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        slope = ft.grad(lambda v: np.sum(scale * v**3))(primals[0])
        return f(primals[0]), np.sum(slope * tangents[0])

    x = np.array([1.0, 2.0])
    slope, second = ft.jvp(lambda x: ft.vjp(f, x)[1](1.0)[0], (x,), (np.ones(2),))
    assert_allclose(slope, 3 * scale * x**2)
    assert_allclose(second, 6 * scale * x)


def test_with_options_only_they_are_decorators() -> None:
    @ft.custom_jvp(nondiff_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x**n

    @power.defjvp
    def _(n: int, primals: Any, tangents: Any) -> Any:
        return power(*primals, n), 10.0 * tangents[0]

    @ft.custom_vjp(nondiff_argnums=(1,))
    def scaled(x: Any, n: int) -> Any:
        return x * n

    scaled.defvjp(lambda x, n: (x * n, None), lambda n, _, ct: (7.0 * ct,))
    assert isinstance(power, ft.custom_jvp)
    assert isinstance(scaled, ft.custom_vjp)
    assert_allclose(ft.grad(power)(2.0, 3), 10.0)
    assert_allclose(ft.grad(scaled)(2.0, 3), 7.0)
    assert_allclose(power(2.0, 3), 8.0)


def test_rules_hold_for_tensors() -> None:
    """A function with rules of its own has them in the imperative half too, to second order."""

    @ft.custom_jvp
    def identity(x: Any) -> Any:
        return x

    identity.defjvp(lambda primals, tangents: (primals[0], primals[0] ** 2 * tangents[0]))

    @ft.custom_vjp
    def tenfold(x: Any) -> Any:
        return np.sin(x)

    tenfold.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (10.0 * x**2 * ct,))
    for fun, slope, bend in ((identity, 4.0, 4.0), (tenfold, 40.0, 40.0)):
        x = ft.tensor([2.0], requires_grad=True)
        (gradient,) = ft.autograd.grad(fun(x), x, create_graph=True)
        (second,) = ft.autograd.grad(gradient, x)
        assert (gradient.item(), second.item()) == (slope, bend)
