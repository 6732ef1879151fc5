"""``float0``, the dtype of tangents of integers and booleans, under every pair of transforms.

The property: a function whose arguments and results hold integers and booleans beside floats can be
transformed by anything, and the result by anything again. The floats of its result are those of the
function whose integers are closed over; tangents of integers are ``float0`` of their shape; a
program gives the same as the call.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.errors import NonDifferentiableError, ShapeError

STATE = {"x": np.array([1.5, -0.5]), "n": np.array(3), "b": np.array(True)}


def function(s: Any) -> Any:
    """Floats, an index, a count and a truth value."""
    scaled = np.where(s["b"], s["x"] ** 2 * s["n"], s["x"])
    return {"y": np.sin(scaled), "i": (np.argmax(s["x"]), s["n"] + 1), "p": np.sum(s["x"]) > 0}


def is_float(leaf: Any) -> bool:
    return np.dtype(leaf.dtype).kind == "f"


def ones(tree: Any) -> Any:
    """Tangents of a tree: ones, and ``float0`` for what has none."""
    return ft.tree.map(
        lambda leaf: np.ones(leaf.shape) if is_float(leaf) else np.zeros(leaf.shape, ft.float0),
        tree,
    )


def twice(tree: Any) -> Any:
    """The tree with each leaf stacked on itself."""
    return ft.tree.map(
        lambda leaf: (
            np.zeros((2, *leaf.shape), ft.float0)
            if leaf.dtype == ft.float0
            else np.stack([leaf, leaf])
        ),
        tree,
    )


def by_vjp(f: Any) -> Any:
    def transformed(s: Any) -> Any:
        out, pullback = ft.vjp(f, s)
        return out, pullback(ones(out))

    return transformed


def by_linearize(f: Any) -> Any:
    def transformed(s: Any) -> Any:
        out, pushforward = ft.linearize(f, s)
        return out, pushforward(ones(s))

    return transformed


def by_grad(f: Any) -> Any:
    def total(s: Any) -> Any:
        return sum(np.sum(leaf) for leaf in ft.tree.leaves(f(s)) if is_float(leaf))

    return lambda s: ft.value_and_grad(total, allow_int=True)(s)


def by_custom_jvp(f: Any) -> Any:
    ruled = ft.custom_jvp(f)
    ruled.defjvp(lambda primals, tangents: ft.jvp(f, primals, tangents))
    return ruled


def by_custom_vjp(f: Any) -> Any:
    ruled = ft.custom_vjp(f)
    ruled.defvjp(lambda s: (f(s), s), lambda s, ct: ft.vjp(f, s)[1](ct))
    return ruled


def by_custom_vmap(f: Any) -> Any:
    """The rule gets and gives ``float0`` for what the function gets and gives."""

    def rule(n: int, in_batched: Any, s: Any) -> Any:
        axes = ft.tree.map(lambda flag: 0 if flag else None, in_batched)
        return ft.vmap(f, axes)(s), True

    ruled = ft.custom_vmap(f)
    ruled.def_vmap(rule)
    return lambda s: (ruled(s), ft.vmap(ruled)(twice(s)))


def by_associative_scan(f: Any) -> Any:
    def transformed(s: Any) -> Any:
        return ft.lax.associative_scan(lambda a, b: b, ft.vmap(f)(twice(s)))

    return transformed


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "jit": ft.jit,
    "custom_vmap": by_custom_vmap,
    "sequential_vmap": lambda f: lambda s: ft.vmap(ft.sequential_vmap(f))(twice(s)),
    "switch": lambda f: lambda s: ft.lax.switch(s["n"] - 3, [f, f], s),
    "associative_scan": by_associative_scan,
    "jvp": lambda f: lambda s: ft.jvp(f, (s,), (ones(s),)),
    "vjp": by_vjp,
    "linearize": by_linearize,
    "jet": lambda f: lambda s: ft.jet(f, (s,), ([ones(s)],)),
    "grad": by_grad,
    "vmap": lambda f: lambda s: ft.vmap(f)(twice(s)),
    "scan": lambda f: lambda s: ft.lax.scan(lambda c, _: ((c[0], f(c[0])), 0), (s, f(s)), None, 2),
    "map": lambda f: lambda s: ft.lax.map(f, twice(s)),
    "map_in_blocks": lambda f: lambda s: ft.lax.map(f, twice(s), batch_size=2),
    "cond": lambda f: lambda s: ft.lax.cond(s["b"], f, f, s),
    "fori_loop": lambda f: (
        lambda s: ft.lax.fori_loop(0, 2, lambda _, v: (s, f(v[0])), (s, f(s)))[1]
    ),
    "while_loop": lambda f: (
        lambda s: ft.lax.while_loop(lambda v: v[0] < 2, lambda v: (v[0] + 1, f(s)), (0, f(s)))[1]
    ),
    "checkpoint": ft.checkpoint,
    "custom_jvp": by_custom_jvp,
    "custom_vjp": by_custom_vjp,
}


def assert_equal(received: Any, expected: Any) -> None:
    """Structures, shapes, dtypes and values agree."""
    assert ft.tree.structure(received) == ft.tree.structure(expected)
    for a, b in zip(ft.tree.leaves(received), ft.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        if a.dtype != ft.float0:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def floats(tree: Any) -> list[Any]:
    return [leaf for leaf in ft.tree.leaves(tree) if is_float(leaf)]


@each("outer", TRANSFORMS)
@each("inner", TRANSFORMS, by="inner")
def test_every_transform_of_every_transform_carries_float0(outer: str, inner: str) -> None:
    transformed = TRANSFORMS[outer](TRANSFORMS[inner](function))
    with ft.config(native=False):
        assert_equal(ft.jit(transformed)(STATE), transformed(STATE))


@pytest.mark.parametrize("name", sorted(TRANSFORMS.keys() - {"cond", "switch"}))  # which read some
def test_integers_beside_floats_change_no_float(name: str) -> None:
    def alone(s: Any) -> Any:
        return floats(function({**STATE, **s}))

    found = floats(TRANSFORMS[name](function)(STATE))
    expected = floats(TRANSFORMS[name](alone)({"x": STATE["x"]}))
    assert len(found) == len(expected) > 0
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_compiled_programs_and_announced_shapes_carry_float0(name: str) -> None:
    transformed = TRANSFORMS[name](TRANSFORMS["jvp"](function))
    expected = transformed(STATE)
    compiled = ft.jit(transformed)
    for _ in range(2):
        assert_equal(compiled(STATE), expected)
    announced = ft.tree.leaves(ft.eval_shape(transformed, STATE))
    results = ft.tree.leaves(expected)
    assert [(a.shape, a.dtype) for a in announced] == [(x.shape, x.dtype) for x in results]


def test_float0_goes_into_programs_of_any_kind() -> None:
    """As an argument, as a whole and in a container, with and without an axis to map over."""
    none = np.zeros((3, 2), ft.float0)
    keep = ft.jit(lambda t, x: (t, x + 1.0))
    for _ in range(2):
        assert_equal(keep(none, np.ones(2)), (none, 2 * np.ones(2)))
    assert keep.cache_size == 1
    assert keep.lower(none, np.ones(2)).compile()(none, np.ones(2))[0].dtype == ft.float0
    assert ft.vmap(lambda t, x: (t, x), (0, None), (1, None))(none, 1.0)[0].shape == (2, 3)
    assert ft.vmap(lambda t: t, in_axes=1)(none).shape == (2, 3)
    struct = ft.ShapeDtypeStruct((2,), ft.float0)
    assert repr(ft.eval_shape(lambda t: t, struct)) == "ShapeDtypeStruct(float0[2])"
    with pytest.raises(ShapeError, match=r"args\[1\].* 2, but 3"):
        ft.vmap(lambda t, x: x)(none, np.ones(2))


def test_cotangents_of_integers_are_float0_or_zero() -> None:
    out, pullback = ft.vjp(function, STATE)
    expected = pullback(ones(out))
    assert {key: leaf.dtype for key, leaf in expected[0].items()} == {
        "x": np.float64, "n": ft.float0, "b": ft.float0
    }  # fmt: skip
    given = {"y": np.ones(2), "i": (0, np.zeros((), ft.float0)), "p": False}
    assert_equal(pullback(given), expected)
    with pytest.raises(NonDifferentiableError, match=r"ct\['p'\].*no derivative.*np.zeros"):
        pullback({**given, "p": 1.0})
    with pytest.raises(ShapeError, match=r"ct\['p'\] has shape \(2,\)"):
        pullback({**given, "p": np.zeros(2, ft.float0)})
    with pytest.raises(NonDifferentiableError, match=r"tangents\[0\].*no derivative"):
        ft.jvp(lambda n: n * 2.0, (3,), (1,))
    assert_equal(ft.jvp(lambda n: n * 2.0, (3,), (0,)), (np.array(6.0), np.array(0.0)))


def test_grad_takes_integers_if_asked_to_under_jit_too() -> None:
    def loss(n: Any, x: Any) -> Any:
        return n * x**2

    with pytest.raises(NonDifferentiableError, match="allow_int=True"):
        ft.grad(loss, (0, 1))(3, 2.0)
    slope = ft.grad(loss, (0, 1), allow_int=True)
    assert_equal(ft.jit(slope)(3, 2.0), slope(3, 2.0))
    assert slope(3, 2.0)[0].dtype == ft.float0


def test_shapes_come_from_any_object_that_has_them() -> None:
    class Announced:
        shape = (3, 2)
        dtype = "float32"

    assert repr(ft.eval_shape(np.transpose, Announced())) == "ShapeDtypeStruct(f32[2,3])"
    (ct,) = ft.linear_transpose(lambda x: 3.0 * x, Announced())(np.ones((3, 2), np.float32))
    assert ct.shape == (3, 2)
    struct = ft.ShapeDtypeStruct((4, 2), np.float64)
    assert (len(struct), struct.ndim, struct.size) == (4, 2, 8)
    with pytest.raises(TypeError, match="dtype is None"):
        ft.ShapeDtypeStruct((4, 2), None)
    with pytest.raises(TypeError, match="without axes"):
        len(ft.ShapeDtypeStruct((), float))


def test_callbacks_get_float0_as_it_is() -> None:
    seen: list[Any] = []

    def f(x: Any) -> Any:
        tangents = ft.jvp(lambda x: (2.0 * x, np.argmax(x)), (x,), (x,))[1]
        ft.debug.callback(lambda t: seen.append(t[1].dtype), tangents)
        ft.io_callback(lambda t: seen.append(t[1].dtype), None, tangents)
        out = ft.ShapeDtypeStruct(x.shape, x.dtype)
        return ft.pure_callback(lambda t: t[0] * (t[1].dtype == ft.float0), out, tangents)

    for run in (f, ft.jit(f)):
        np.testing.assert_array_equal(run(np.arange(2.0)), [0.0, 2.0])
    assert seen == [ft.float0] * 4
