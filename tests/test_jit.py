"""``jit``: what a program is found again by, what it captures, what it returns."""

import collections
import dataclasses
import gc
import logging
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans.core.jaxpr import subjaxprs
from functrans.core.source import resolve
from functrans.errors import (
    ConcretizationError,
    EscapedTracerError,
    ShapeError,
    UnsupportedOperationError,
)

X = np.linspace(0.0, 1.0, 5)


def energy(x: Any, scale: Any = 2.0) -> Any:
    return np.sum(np.sin(x) * scale + x * x)


def test_traces_once_for_each_kind_of_arguments() -> None:
    kinds = []

    @ft.jit
    def f(x: Any) -> Any:
        kinds.append((x.shape, x.dtype))
        return x + 1

    for x in (X, X + 1, X[:3], X[2:], X.astype(np.float32), 1.0, 2.0, 1, 2, np.float64(1.0)):
        assert_allclose(f(x), x + 1)
    assert len(kinds) == 6
    assert f.cache_size == 6
    f.clear_cache()
    assert f.cache_size == 0


def test_python_scalar_stays_weak() -> None:
    step = ft.jit(lambda x, h: x * h)
    x = X.astype(np.float32)
    assert step(x, 0.1).dtype == np.float32
    assert step(x, 3).dtype == np.float32
    assert step(x, np.float64(0.1)).dtype == np.float64
    assert ft.grad(ft.jit(lambda x: np.sum(x * 0.5)))(x).dtype == np.float32


def test_results_are_arrays_of_their_own() -> None:
    x = X.copy()
    whole, part, scalar, number = ft.jit(lambda x: (x, x[1:], np.sum(x), 3))(x)
    assert [type(r) for r in (whole, part, scalar, number)] == [np.ndarray] * 4
    assert scalar.shape == number.shape == ()
    for result in (whole, part):
        assert not np.shares_memory(result, x)
        result[...] = -1.0
    assert_array_equal(x, X)
    twice = ft.jit(lambda x: (x + 1, x + 1))(x)
    assert not np.shares_memory(*twice)


@pytest.mark.parametrize(
    "x",
    [X[::-1], X[::2], np.asfortranarray(np.eye(3)), np.zeros((0, 2)), X.astype(">f8")],
    ids=["negative", "strided", "fortran", "empty", "big-endian"],
)
def test_layouts(x: Any) -> None:
    assert_allclose(ft.jit(energy)(x), energy(x.astype(float)))
    x.flags.writeable = False
    assert_allclose(ft.jit(ft.grad(energy))(x), np.cos(x) * 2 + 2 * x)


def test_pytrees_keywords_and_none() -> None:
    @ft.jit
    def f(params: Any, *rest: Any, bias: Any = None, **more: Any) -> Any:
        out = params["w"] * rest[0][0]
        if bias is not None:
            out = out + bias
        return {"out": out, "none": None, "more": (more, rest[1:])}

    result = f({"w": X}, (2.0, None), 7.0, bias=1.0, z=X)
    assert_allclose(result["out"], 2 * X + 1)
    assert result["none"] is None
    assert_allclose(result["more"][0]["z"], X)
    assert result["more"][1] == (7.0,)
    assert_allclose(f({"w": X}, (2.0, None))["out"], 2 * X)


def test_static_arguments_by_position_and_name() -> None:
    def power(x: Any, n: int, flag: bool = False) -> Any:
        for _ in range(n):
            x = x * x
        return -x if flag else x

    for f in (
        ft.jit(power, static_argnums=(1, 2)),
        ft.jit(power, static_argnames=("n", "flag")),
        ft.jit(static_argnums=1, static_argnames="flag")(power),
        ft.jit(power, static_argnums=(-2, -1)),
    ):
        assert f(2.0, 2) == 16.0
        assert f(2.0, n=3) == 256.0
        assert f(2.0, 1, True) == f(2.0, 1, flag=True) == -4.0
        assert f.cache_size >= 3
        assert ft.grad(f)(2.0, 2) == 32.0


def test_static_values_are_told_apart_by_type() -> None:
    f = ft.jit(lambda x, n: x * n, static_argnums=1)
    assert f(1, 2).dtype == np.int64
    assert f(1, 2.0).dtype == np.float64
    g = ft.jit(lambda x, pair: x * pair[0], static_argnums=1)
    assert g(1, (2,)).dtype == np.int64
    assert g(1, (2.0,)).dtype == np.float64
    h = ft.jit(np.copysign, static_argnums=1)
    assert h(2.0, 0.0) == 2.0
    assert h(2.0, -0.0) == -2.0


def test_static_argument_that_cannot_be_hashed_raises() -> None:
    f = ft.jit(lambda x, options: x, static_argnums=1)
    with pytest.raises(TypeError, match=r"static argument options is a list.*tuple"):
        f(1.0, [1])
    with pytest.raises(TypeError, match="static argument options is a dict"):
        ft.jit(lambda x, options: x, static_argnames="options")(1.0, options={})


def test_wrong_static_arguments_raise_when_jitted() -> None:
    with pytest.raises(ValueError, match="static_argnums names argument 3"):
        ft.jit(lambda x: x, static_argnums=3)
    with pytest.raises(ValueError, match="static_argnames names 'y'"):
        ft.jit(lambda x: x, static_argnames="y")
    with pytest.raises(TypeError, match="static_argnums must be an int"):
        ft.jit(lambda x: x, static_argnums="x")
    with pytest.raises(TypeError, match="donate_argnums must be an int"):
        ft.jit(lambda x: x, donate_argnums="x")
    with pytest.raises(TypeError, match="expected a function"):
        ft.jit(3)


@pytest.mark.usefixtures("names_as_they_are")
def test_value_of_a_traced_argument_names_its_path() -> None:
    @ft.jit
    def f(params: Any, *rest: Any) -> Any:
        return rest[0] if params["w"][0] > 0 else 1.0

    with pytest.raises(ConcretizationError, match=r"params\['w'\].*test_jit\.py.*jit of f"):
        f({"w": X}, 2.0)
    with pytest.raises(ConcretizationError, match=r"rest\[1\]"):
        ft.jit(lambda x, *rest: float(rest[1]))(1.0, 2.0, 3.0)


def test_argument_that_is_no_array_raises_with_the_remedy() -> None:
    with pytest.raises(UnsupportedOperationError, match=r"options\['mode'\].*str.*static_argnums"):
        ft.jit(lambda x, options: x)(1.0, {"mode": "fast"})
    with pytest.raises(UnsupportedOperationError, match="result"):
        ft.jit(lambda x: "text")(1.0)


def test_captured_array_is_read_at_every_call() -> None:
    w = np.ones(5)
    f = ft.jit(lambda x: np.sum(w * x * x))
    gradient = ft.jit(ft.grad(lambda x: np.sum(w * x * x)))
    hessian = ft.jit(ft.grad(lambda x: np.sum(ft.grad(f)(x))))
    for scale in (1.0, 2.0, -3.0):
        w[:] = scale
        assert_allclose(f(X), scale * np.sum(X * X))
        assert_allclose(gradient(X), 2 * scale * X)
        assert_allclose(ft.grad(f)(X), 2 * scale * X)
        assert_allclose(hessian(X), np.full(5, 2 * scale))
        assert_allclose(ft.vmap(f)(np.stack([X, X])), [scale * np.sum(X * X)] * 2)
    assert f.cache_size == 1


@pytest.mark.parametrize("shape", [(), (1,), (2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_captured_array_that_nobody_can_change(shape: tuple[int, ...], order: str) -> None:
    frozen = np.asarray(np.full(shape, 2.0), order=order)
    frozen.flags.writeable = False
    x = np.ones(3)
    np.testing.assert_array_equal(ft.jit(lambda x: x * frozen)(x), x * frozen)


def test_pullback_keeps_the_captured_array_as_it_was() -> None:
    w = np.ones(5)
    _, pullback = ft.vjp(ft.jit(lambda x: np.sum(w * x)), X)
    w[:] = 7.0
    assert_allclose(pullback(1.0)[0], np.ones(5))


def test_closed_over_tracers_are_operands_and_not_kept() -> None:
    jitted = []

    def f(a: Any) -> Any:
        inner = ft.jit(lambda x: np.sum(a * x * x))
        jitted.append(inner)
        return inner(X) + inner(X)

    assert_allclose(ft.grad(f)(2.0), 2 * np.sum(X * X))
    assert_allclose(ft.jit(ft.grad(f))(2.0), 2 * np.sum(X * X))
    assert_allclose(ft.vmap(ft.grad(f))(np.arange(3.0)), np.full(3, 2 * np.sum(X * X)))
    assert_allclose(ft.jvp(f, (2.0,), (1.0,))[1], 2 * np.sum(X * X))
    assert all(inner.cache_size == 0 for inner in jitted)


@pytest.mark.parametrize("outer", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_composes_with_the_other_transforms(outer: Any) -> None:
    f = ft.jit(energy)
    want = np.cos(X) * 2 + 2 * X
    assert_allclose(outer(f)(X), energy(X))
    assert_allclose(outer(ft.grad(f))(X), want)
    assert_allclose(outer(lambda x: ft.jvp(f, (x,), (x,))[1])(X), want @ X)
    assert_allclose(outer(ft.hessian(f))(X), np.diag(2 - 2 * np.sin(X)), atol=1e-15)
    assert_allclose(outer(ft.vmap(ft.grad(f)))(np.stack([X, 2 * X]))[0], want)
    assert_allclose(outer(ft.grad(lambda s: f(X, s)))(3.0), np.sum(np.sin(X)))
    assert_allclose(outer(ft.linearize(f, X)[1])(X), want @ X)
    assert_allclose(outer(lambda x: ft.vjp(f, x)[1](1.0)[0])(X), want)


def test_nested_calls_leave_one_flat_program() -> None:
    inner = ft.jit(np.sin)
    text = str(ft.jit(lambda x: inner(x) + ft.jit(inner)(x)).jaxpr(X))
    assert "jit" not in text
    assert text.count("sin") == 1
    assert "jit" in str(ft.make_jaxpr(inner)(X))


def test_program_is_simplified() -> None:
    def f(x: Any) -> Any:
        np.exp(x)
        return np.sin(x) + np.sin(x)

    names = [eqn.primitive.name for eqn in ft.jit(f).jaxpr(X).eqns]
    assert names == ["sin", "add"]


def test_lower_and_compile() -> None:
    lowered = ft.jit(energy).lower(X, scale=3.0)
    assert "sin" in lowered.as_text()
    assert lowered.jaxpr.in_avals[0].shape == (5,)
    compiled = lowered.compile()
    assert_allclose(compiled(X, scale=3.0), energy(X, 3.0))
    with pytest.raises(TypeError, match=r"x is f64\[3\], but .* f64\[5\]"):
        compiled(X[:3], scale=3.0)
    with pytest.raises(TypeError, match="structure"):
        compiled(X)


def test_jit_can_be_switched_off() -> None:
    seen: list[Any] = []

    @ft.jit
    def f(x: Any) -> Any:
        seen.append(x)
        return x if x > 0 else -x

    with ft.disable_jit():
        assert f(-2.0) == 2.0
    with ft.config(jit=False):
        assert f(-3.0) == 3.0
    assert seen == [-2.0, -3.0]
    with pytest.raises(ConcretizationError):
        f(-2.0)


def test_configuration_is_part_of_the_key() -> None:
    def root(x: Any) -> Any:
        return np.sum(np.where(x > 0.0, np.log(x), 0.0))

    gradient = ft.jit(ft.grad(root))
    assert gradient(np.zeros(1)).tolist() == [0.0]
    with ft.config(safe_where=False):
        assert np.isnan(gradient(np.zeros(1))).all()


def test_methods_and_partial() -> None:
    from functools import partial

    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @partial(ft.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

    first, second = Model(2.0), Model(3.0)
    assert first(1.0) == 2.0
    assert second(1.0) == 3.0
    assert ft.grad(second)(1.0) == 3.0
    assert ft.jit(partial(energy, scale=0.0))(X) == np.sum(X * X)


def test_name_and_documentation_are_kept() -> None:
    f = ft.jit(energy)
    assert f.__name__ == "energy"
    assert f.__wrapped__ is energy
    assert repr(f) == "<jit of energy>"


@pytest.mark.filterwarnings("ignore:jit of f was staged and compiled 32 times")
def test_cache_is_bounded_and_drops_what_was_not_used_for_longest() -> None:
    runs: list[int] = []

    @ft.jit
    def f(x: Any) -> Any:
        runs.append(x.shape[0])
        return x

    f(np.zeros(1))
    for n in range(2, 300):
        f(np.zeros(n))
        f(np.zeros(1))
    assert f.cache_size == 256
    assert runs.count(1) == 1
    f(np.zeros(2))
    assert runs.count(2) == 2


def test_jitted_functions_are_freed_without_the_collector() -> None:
    class Token:
        pass

    def use() -> weakref.ref:
        token = Token()

        def f(x: Any) -> Any:
            assert token is not None
            return ft.lax.scan(lambda c, x: (np.sin(c) * x, None), 1.0, x)[0]

        jitted = ft.jit(f)
        jitted(X)
        ft.grad(jitted)(X)
        ft.jit(ft.grad(jitted))(X)
        ft.vmap(jitted)(np.stack([X, X]))
        return weakref.ref(token)

    gc.collect()
    gc.disable()
    try:
        assert use()() is None
    finally:
        gc.enable()


def test_error_leaves_no_trace_open_and_no_program() -> None:
    f = ft.jit(lambda x: x @ np.ones(3))
    for _ in range(2):
        with pytest.raises(ShapeError, match=r"test_jit\.py"):
            f(np.ones(2))
    assert f.cache_size == 0
    assert f(np.ones(3)) == 3.0


def test_escaped_tracer_raises() -> None:
    kept: list[Any] = []
    ft.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(EscapedTracerError, match="jit of"):
        kept[0] + 1.0


def test_threads_share_a_jitted_function() -> None:
    f = ft.jit(ft.grad(energy))
    results: dict[int, Any] = {}

    def work(n: int) -> None:
        for size in range(1, 20):
            x = np.linspace(0.0, 1.0, size)
            results[n, size] = np.allclose(f(x), np.cos(x) * 2 + 2 * x)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4 * 19
    assert all(results.values())


def test_error_at_run_time_tells_the_line() -> None:
    f = ft.jit(lambda x: np.linalg.cholesky(x) + 1.0)
    f(np.eye(2))
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError) as caught:
            f(-np.eye(2))
    assert any("test_jit.py" in note for note in caught.value.__notes__)


def test_named_scope_is_printed() -> None:
    def f(x: Any) -> Any:
        with ft.named_scope("model"), ft.named_scope("layer"):
            return np.sin(x)

    assert "model/layer" in str(ft.make_jaxpr(f)(X))

    @ft.named_scope("whole")
    def g(x: Any) -> Any:
        return np.cos(x)

    assert "whole" in str(ft.make_jaxpr(g)(X))
    with pytest.raises(TypeError, match="expected a name"), ft.named_scope(3):  # type: ignore[arg-type]  # refused
        pass


def test_calls_in_calls_are_put_in_place() -> None:
    once = ft.jit(lambda x: np.sin(x) + 1.0)
    twice = ft.jit(lambda x: (once(x), once(once(x))))
    thrice = ft.jit(lambda x: (x, twice(once(x))[1], *twice(x)))
    with ft.config(check_jaxprs=True):
        results = ft.jit(lambda x: thrice(thrice(x)[1]))(X)
    by_hand = [X]
    for _ in range(6):
        by_hand.append(np.sin(by_hand[-1]) + 1.0)
    for own, n in zip(results, (3, 6, 4, 5), strict=True):
        assert_allclose(own, by_hand[n])


def test_equations_of_derivatives_keep_the_users_lines() -> None:
    def f(x: Any) -> Any:
        def body(c: Any, v: Any) -> Any:
            return np.sin(c) * v, None

        return ft.lax.scan(body, np.exp(x), X)[0]

    def sources(jaxpr: Any) -> set[str]:
        found = set()
        for eqn in jaxpr.eqns:
            found.add(resolve(eqn.source).function.rpartition(".")[2])
            for sub in subjaxprs(eqn.params):
                found |= sources(sub)
        return found

    transforms = (ft.grad, ft.vmap, lambda f: ft.vmap(ft.grad(ft.grad(f))), ft.jacfwd)
    for transform in transforms:
        x = np.ones(2) if transform in (transforms[1], transforms[2]) else 1.0
        lines = sources(ft.jit(transform(ft.jit(f))).jaxpr(x))
        assert {"f", "body"} <= lines, lines
    for eqn in ft.jit(ft.grad(ft.named_scope("whole")(f))).jaxpr(1.0).eqns:
        assert eqn.scope in ("whole", "")


@ft.jit
def _step(params: Any, gradient: Any, rate: float = 0.1) -> Any:
    return {name: params[name] - rate * gradient[name] for name in params}


def test_a_repeated_call_with_containers_sees_what_changed() -> None:
    f = ft.jit(lambda p, n, scale: {"y": p["x"] * n + scale, "n": (n,)}, static_argnums=1)
    p = {"x": X}
    for n in (2, 3, 2):
        for scale in (X, 2 * X, 0.5):
            for _ in range(3):
                result = f(p, n, scale=scale)
                assert set(result) == {"y", "n"}
                assert_array_equal(result["y"], X * n + scale)
                assert result["n"][0] == n
    for other in ({"x": X[:2]}, {"x": X.astype(np.float32)}, {"x": X[::-1]}):
        assert_array_equal(f(other, 2, scale=1.0)["y"], other["x"] * 2 + 1.0)
    assert f({"x": X.astype(np.float32)}, 2, scale=1.0)["y"].dtype == np.float32
    with pytest.raises(KeyError):
        f({"z": X}, 2, scale=1.0)
    assert_allclose(ft.grad(lambda x: np.sum(f({"x": x}, 2, scale=1.0)["y"]))(X), 2.0)


def test_keywords_and_positions_are_interchangeable() -> None:
    f = ft.jit(lambda a, b: a - b)
    for _ in range(3):
        assert_array_equal(f(X, 2 * X), -X)
        assert_array_equal(f(a=X, b=2 * X), -X)
        assert_array_equal(f(b=X, a=2 * X), X)
        assert_array_equal(f(X, b=2 * X), -X)


def test_a_repeated_call_asks_for_the_size_of_an_axis_again() -> None:
    count = ft.jit(lambda y: y * ft.lax.psum(1.0, "i"))
    one = np.ones(2)
    for size in (3, 5, 3):
        found = ft.vmap(lambda x: x + count(one), axis_name="i")(np.zeros((size, 2)))
        assert_array_equal(found, np.full((size, 2), float(size)))


def test_jitted_functions_are_pickled() -> None:
    again = pickle.loads(pickle.dumps(_step))
    assert again is _step
    params = {"w": X}
    twice = pickle.loads(pickle.dumps(ft.jit(energy, static_argnames="scale")))
    assert twice.function is energy
    assert_allclose(twice(X, scale=3.0), energy(X, 3.0))
    assert_allclose(again(params, params)["w"], 0.9 * X)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(ft.jit(lambda x: x))


def test_lowering_takes_shapes_in_place_of_arrays() -> None:
    struct = ft.ShapeDtypeStruct((5,), np.float64)
    executable = ft.jit(energy).lower(struct, scale=2.0).compile()
    assert_allclose(executable(X, scale=2.0), energy(X))
    tree = {"w": ft.ShapeDtypeStruct((5,), np.float32)}
    assert _step.lower(tree, tree).out_avals[0].dtype == np.float32
    with pytest.raises(UnsupportedOperationError, match="ShapeDtypeStruct"):
        _step(tree, tree)


Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Checked:
    """Looks at its fields."""

    x: Any
    y: Any

    def __post_init__(self) -> None:
        assert self.x.shape == self.y.shape


def test_results_keep_their_class_in_repeated_calls() -> None:
    for f, args in (
        (ft.jit(lambda x: Pair(x + 1, x * 2)), (X,)),
        (ft.jit(lambda d: Pair(d["x"] + 1, d["x"] * 2)), ({"x": X},)),
    ):
        for _ in range(3):
            result = f(*args)
            assert type(result) is Pair
            assert_array_equal(result.b, X * 2)
    for f, args in (
        (ft.jit(lambda x: Checked(x + 1, x * 2)), (X,)),
        (ft.jit(lambda d: Checked(d["x"] + 1, d["x"] * 2)), ({"x": X},)),
        (ft.jit(lambda x: (x + 1,)), (X,)),
        (ft.jit(lambda x: [x + 1, x]), (X,)),
    ):
        first, *others = (f(*args) for _ in range(3))
        assert all(type(other) is type(first) for other in others)


def test_an_axis_index_beside_untraced_arguments() -> None:
    f = ft.jit(lambda x: x + ft.lax.axis_index("i"))
    for size in (2, 3):
        found = ft.vmap(lambda y: f(1.0) + y, axis_name="i")(np.ones(size))
        assert_array_equal(found, 2.0 + np.arange(size))


def test_factors_of_a_captured_matrix_are_computed_at_every_call() -> None:
    matrix = np.eye(5)
    f = ft.jit(lambda x: np.linalg.solve(matrix, x))
    g = ft.jit(ft.grad(lambda x: np.sum(np.linalg.solve(matrix, x))))
    assert_array_equal(f(X), X)
    assert_array_equal(g(X), np.ones(5))
    matrix *= 2
    assert_array_equal(f(X), X / 2)
    assert_array_equal(g(X), np.full(5, 0.5))
    matrix[:] = 0
    with pytest.raises(np.linalg.LinAlgError):
        f(X)


def test_shapes_in_place_of_arrays_are_checked() -> None:
    struct = ft.ShapeDtypeStruct
    f = ft.jit(lambda x: x + 1)
    assert_array_equal(f.lower(struct(3, ">f8")).compile()(np.ones(3)), np.full(3, 2.0))
    with pytest.raises(ValueError, match="must not be negative"):
        struct((-3,), float)
    for dtype in (object, "U3"):
        with pytest.raises(TypeError, match="expected a dtype of numbers"):
            struct((3,), dtype)


def test_the_order_of_dicts_counts():
    """In every call anew, wherever the dict is; structures with dicts are equal in any order."""

    def first(d):
        return next(iter(d.values()))

    numbers = {"b": 1.0, "a": 2.0}
    turned = {"a": 2.0, "b": 1.0}
    listed = ft.jit(lambda t: first(t[0]["x"]))
    named = ft.jit(lambda **k: first(k))
    sloped = ft.jit(ft.value_and_grad(first))
    beside = ft.jit(lambda n, d: first(d), static_argnums=0)
    batch = ft.jit(ft.vmap(first))
    ways = {
        "argument": ft.jit(first),
        "anew": lambda d: ft.jit(first)(d),
        "nested": ft.jit(lambda d: ft.jit(first)(d)),
        "in a list": lambda d: listed([{"x": d}]),
        "keywords": lambda d: named(**d),
        "gradient": lambda d: sloped(d)[0],
        "static beside": lambda d: beside(1, d),
        "batch": lambda d: batch({k: np.full(2, v) for k, v in d.items()})[0],
    }
    for way, call in ways.items():
        found = [float(call(d)) for d in (numbers, turned, numbers, turned)]
        assert found == [1.0, 2.0, 1.0, 2.0], way
    with pytest.raises(TypeError, match="another order of its dicts"):
        ft.jit(first).lower(numbers).compile()(turned)
    cubes = ft.sparse_hessian(lambda d: np.sum(first(d) ** 3))
    arrays = {"b": np.ones(2), "a": np.full(2, 2.0)}
    assert cubes(arrays).diagonal().tolist() == [0, 0, 6, 6]
    assert cubes({"a": arrays["a"], "b": arrays["b"]}).diagonal().tolist() == [12, 12, 0, 0]


# what is told of compilations --------------------------------------------------------------------


def test_compilations_are_logged_with_their_reasons(caplog: pytest.LogCaptureFixture) -> None:
    def twice(x: Any, n: int) -> Any:
        return x * n

    f = ft.jit(twice, static_argnums=1)
    f(X, 2)  # nobody listens
    assert not caplog.records
    with caplog.at_level(logging.INFO, "functrans.jit"):
        for n in (2, 3, 3):
            f(X, n)
    (record,) = caplog.records
    assert record.name == "functrans.jit"
    text = record.getMessage()
    assert text.startswith("jit of twice, program 2: x: f64[5], n: static 3")
    assert "n: static 2 -> static 3 (another static value)" in text
    assert "staged in" in text


def test_many_programs_are_warned_of_once_and_at_the_users_line() -> None:
    def total(x: Any) -> Any:
        return np.sum(x)

    f = ft.jit(total)
    for n in range(1, 32):
        f(np.ones(n))
    with pytest.warns(RuntimeWarning) as caught:
        f(np.ones(32))
    (warning,) = caught.list
    for n in range(33, 40):  # warnings are errors in tests
        f(np.ones(n))
    assert warning.filename == __file__
    text = str(warning.message)
    assert text.startswith("jit of total was staged and compiled 32 times, the last time because")
    assert "x: f64[31] -> f64[32] (another shape)" in text


@pytest.mark.parametrize("options", [{}, {"specialize": True}])
@pytest.mark.parametrize("n_calls", [1, 3])
def test_an_array_outside_may_get_another_shape(options: Any, n_calls: int) -> None:
    """Whatever was staged for a captured array holds for arrays of its kind."""
    functions = [
        lambda x: x * array,
        lambda x: np.sum(x * array, -1),
        ft.grad(lambda x: np.sum(np.sum(x**2 * array, 0) ** 2)),
    ]
    for function in functions:
        array = np.arange(6.0)
        jitted = ft.jit(function, **options)
        for shape in ((6,), (2, 3), (3, 2), (6, 1), (6,)):
            array.shape = shape
            for _ in range(n_calls):
                found = jitted(2.0)
                assert_array_equal(found, function(2.0), strict=np.ndim(found) > 0)
        array.dtype = np.int64
        assert_allclose(jitted(2.0), function(2.0), rtol=1e-15)
