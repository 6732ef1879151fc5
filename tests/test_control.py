"""Control flow against the Python code that it stands for, under all transforms."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
from functrans import lax
from functrans.errors import (
    AliasedWriteError,
    ConcretizationError,
    NonDifferentiableError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)

XS = np.array([0.7, -0.3, 0.2, -1.0])


@pytest.fixture(autouse=True)
def checked_programs() -> Any:
    with ft.config(check_jaxprs=True):
        yield


def same_derivatives(fun: Callable[..., Any], plain: Callable[..., Any], *args: Any) -> None:
    """Value, both modes, second order and jit of ``fun`` are those of ``plain``."""
    tangents = tuple(np.cos(np.arange(np.size(x), dtype=float)).reshape(np.shape(x)) for x in args)
    assert_allclose(fun(*args), plain(*args))
    assert_allclose(ft.jit(fun)(*args), plain(*args))
    expected = ft.grad(plain, tuple(range(len(args))))(*args)
    for gradient in (
        ft.grad(fun, tuple(range(len(args)))),
        ft.jit(ft.grad(fun, tuple(range(len(args))))),
        ft.grad(ft.jit(fun), tuple(range(len(args)))),
    ):
        for own, want in zip(gradient(*args), expected, strict=True):
            assert_allclose(own, want, atol=1e-12)
    slope = sum(np.sum(g * t) for g, t in zip(expected, tangents, strict=True))
    assert_allclose(ft.jvp(fun, args, tangents)[1], slope)
    assert_allclose(ft.jit(lambda *a: ft.jvp(fun, a, tangents)[1])(*args), slope)

    def slope_of(f: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *a: ft.jvp(f, a, tangents)[1]

    want_second = ft.grad(slope_of(plain))(*args)
    assert_allclose(ft.grad(slope_of(fun))(*args), want_second, atol=1e-12)
    assert_allclose(
        ft.jvp(ft.grad(fun), args, tangents)[1], want_second, atol=1e-12
    )  # forward over reverse

    def reverse_twice(f: Callable[..., Any]) -> Callable[..., Any]:
        return ft.grad(lambda *a: np.sum(ft.grad(f)(*a) * tangents[0]))

    assert_allclose(reverse_twice(fun)(*args), reverse_twice(plain)(*args), atol=1e-12)
    assert_allclose(ft.jit(reverse_twice(fun))(*args), reverse_twice(plain)(*args), atol=1e-12)


def per_lane(fun: Callable[..., Any], *args: Any) -> None:
    """``vmap`` is the Python loop, also of derivatives, with and without jit."""
    lanes = list(zip(*args, strict=True))
    for f in (fun, ft.grad(fun), ft.grad(ft.grad(fun)), lambda *a: ft.jvp(fun, a, a)[1]):
        want = np.stack([f(*lane) for lane in lanes])
        assert_allclose(ft.vmap(f)(*args), want, atol=1e-12)
        assert_allclose(ft.jit(ft.vmap(f))(*args), want, atol=1e-12)
    want = np.stack([ft.grad(fun)(*lane) for lane in lanes])
    assert_allclose(ft.grad(lambda *a: np.sum(ft.vmap(fun)(*a)))(*args), want, atol=1e-12)


# cond -------------------------------------------------------------------------------------------


def branch(x: Any, w: Any) -> Any:
    return lax.cond(x > 0, lambda x: np.sin(x) * w, lambda x: np.exp(x * w), x)


def branch_plain(x: Any, w: Any) -> Any:
    return np.sin(x) * w if x > 0 else np.exp(x * w)


@pytest.mark.parametrize("x", [0.7, -0.3])
def test_cond_is_an_if(x: float) -> None:
    same_derivatives(branch, branch_plain, np.float64(x), np.float64(1.5))


def test_cond_under_vmap_takes_each_lanes_branch() -> None:
    per_lane(branch, XS, np.full(4, 1.5))
    nested = ft.vmap(ft.vmap(ft.grad(branch), (0, None)), (None, 0))(XS, np.array([1.0, 2.0]))
    assert_allclose(nested, [[ft.grad(branch)(x, w) for x in XS] for w in (1.0, 2.0)])


@pytest.mark.parametrize("transform", [lambda f: f, ft.grad, lambda f: ft.grad(ft.grad(f))])
def test_lane_not_taken_gives_no_nan(transform: Any) -> None:
    def root(x: Any) -> Any:
        return lax.cond(x > 0, np.sqrt, lambda x: 0.0 * x, x)

    values = ft.vmap(transform(root))(XS)
    assert np.isfinite(values).all()
    assert_allclose(values, [transform(root)(x) for x in XS])
    assert_allclose(ft.jit(ft.vmap(transform(root)))(XS), values)


def _by_operand(pred: Any, taken: Any, other: Any, x: Any, w: Any) -> Any:
    return lax.cond(pred, taken, other, x, w)


def _by_closure(pred: Any, taken: Any, other: Any, x: Any, w: Any) -> Any:
    return lax.cond(pred, lambda: taken(x, w), lambda: other(x, w))


def _by_closure_in_a_loop(pred: Any, taken: Any, other: Any, x: Any, w: Any) -> Any:
    def body(_: Any, total: Any) -> Any:
        return total + lax.cond(pred, lambda: taken(x, w), lambda: other(x, w)) / 2

    return lax.fori_loop(0, 2, body, x * 0)


def _by_loop_in_a_closure(pred: Any, taken: Any, other: Any, x: Any, w: Any) -> Any:
    def loop() -> Any:
        return lax.fori_loop(0, 2, lambda i, total: total + taken(x, w) / 2, 0.0)

    return lax.switch(_as_number(pred), [lambda: other(x, w), loop])


def _as_number(pred: Any) -> Any:
    return ft.numpy.asarray(pred).astype(int)


UNTAKEN: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "overflow": (lambda x, w: w / np.expm1(abs(x)), lambda x, w: w * np.exp(800.0 / abs(x))),
    "root": (lambda x, w: w * np.sqrt(abs(x)), lambda x, w: x * np.sqrt(w * np.minimum(x, 0.0))),
    "quotient": (lambda x, w: w / (abs(x) + 1), lambda x, w: w / np.maximum(-x, 0.0)),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of lanes of NumPy's, in what is expected
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: f, ft.grad, lambda f: ft.grad(f, 1), lambda f: ft.grad(ft.grad(f)),
        lambda f: lambda x, w: ft.jvp(f, (x, w), (1.0, 1.0))[1],
    ],
    ids=["value", "grad", "grad_w", "second", "jvp"],
)  # fmt: skip
@pytest.mark.parametrize(
    "how", [_by_operand, _by_closure, _by_closure_in_a_loop, _by_loop_in_a_closure]
)
@pytest.mark.parametrize("name", UNTAKEN)
def test_what_a_branch_refers_to_from_outside_is_computed_in_it(
    name: str, how: Any, transform: Any
) -> None:
    taken, other = UNTAKEN[name]

    def f(x: Any, w: Any) -> Any:
        return how(x > 0, taken, other, x * w, w)

    own = transform(f)
    xs = np.array([0.7, 0.3, 2.0])
    expected = [transform(lambda x, w: taken(x * w, w))(x, 1.5) for x in xs]
    assert_allclose([own(x, 1.5) for x in xs], expected)
    assert_allclose([ft.jit(own)(x, 1.5) for x in xs], expected)
    assert_allclose(ft.vmap(own, (0, None))(xs, 1.5), expected)
    assert_allclose(ft.jit(ft.vmap(own, (0, None)))(xs, 1.5), expected)


def _views(x: Any) -> tuple[Any, ...]:
    """Arrays and views of them that follow a write, of traced arrays and of those filled."""
    a = x * 1.0
    v, r = a[:2], a.reshape(3, 1)
    a[0] = 5.0 * x[1]
    b = np.zeros((2, 2))
    t, row, diagonal = b.T, b[1], np.diagonal(b)
    b[0, :], b[1, 0] = x[:2], x[2]
    return a, v, r, b, t, row, diagonal


READS: dict[str, Callable[..., Any]] = {
    "views": lambda a, v, r, b, t, row, diagonal: v.sum() * r[1, 0],
    "views of filled": lambda a, v, r, b, t, row, diagonal: (t @ row).sum() * diagonal[1],
    "views of views": lambda a, v, r, b, t, row, diagonal: v[1:].sum() + row[:1].sum() * t[0, 1],
    "copies": lambda a, v, r, b, t, row, diagonal: _changed(v.copy(), a[2]) + _changed(+row, a[0]),
    "nested": lambda a, v, r, b, t, row, diagonal: lax.cond(
        a[0] > 0, lambda: v[0] * row[0], lambda: np.exp(-a[0] * row[0])
    ),
}


def _changed(own: Any, value: Any) -> Any:
    own[0] += value
    own *= value
    return own.sum()


@pytest.mark.parametrize("name", READS)
def test_views_made_outside_of_a_branch_are_read_in_it(name: str) -> None:
    read = READS[name]

    def f(x: Any) -> Any:
        arrays = _views(x)
        y = lax.cond(x[0] > 0, lambda: read(*arrays), lambda: np.sum(arrays[0]))
        return y * read(*arrays) + sum(np.sum(array) for array in arrays)

    def plain(x: Any) -> Any:
        arrays = _views(x)
        y = read(*arrays) if x[0] > 0 else np.sum(arrays[0])
        return y * read(*arrays) + sum(np.sum(array) for array in arrays)

    points = np.array([[0.3, 0.5, 0.7], [-0.3, 0.5, 0.7]])
    for x in points:
        slope = [(plain(x + e) - plain(x - e)) / 2e-6 for e in 1e-6 * np.eye(3)]
        assert_allclose(ft.jit(f)(x), plain(x))
        assert_allclose(ft.grad(f)(x), slope, 1e-7)
        assert_allclose(ft.jit(ft.grad(f))(x), slope, 1e-7)
        assert_allclose(ft.jacfwd(f)(x), slope, 1e-7)
    assert_allclose(ft.vmap(f)(points), [plain(x) for x in points])
    assert_allclose(ft.vmap(ft.grad(f))(points), [ft.grad(f)(x) for x in points])
    assert_allclose(ft.jit(ft.vmap(ft.hessian(f)))(points), [ft.hessian(plain)(x) for x in points])


WRITES: dict[str, Callable[..., Any]] = {
    "array": lambda x, a, v, r, b, t, row, diagonal: a.__setitem__(0, 7.0),
    "in place": lambda x, a, v, r, b, t, row, diagonal: a.__iadd__(x[1]),
    "view": lambda x, a, v, r, b, t, row, diagonal: v.__setitem__(0, 7.0),
    "view made there": lambda x, a, v, r, b, t, row, diagonal: a[1:].__setitem__(0, 7.0),
    "reshaped there": lambda x, a, v, r, b, t, row, diagonal: a.reshape(3, 1).__setitem__(0, x[1]),
    "filled": lambda x, a, v, r, b, t, row, diagonal: b.__setitem__((0, 0), x[1]),
    "view of filled": lambda x, a, v, r, b, t, row, diagonal: row.__setitem__(0, x[1]),
    "filled, a number": lambda x, a, v, r, b, t, row, diagonal: t[0].__setitem__(0, 2.0),
    "transposed there": lambda x, a, v, r, b, t, row, diagonal: b.T[0].__setitem__(0, x[0]),
    "flat": lambda x, a, v, r, b, t, row, diagonal: b.flat.__setitem__(0, x[0]),
    "sorted": lambda x, a, v, r, b, t, row, diagonal: a.sort(),
    "put": lambda x, a, v, r, b, t, row, diagonal: np.put(a, [0], x[1]),
    "out": lambda x, a, v, r, b, t, row, diagonal: np.multiply(v, 2.0, out=v),
    "at": lambda x, a, v, r, b, t, row, diagonal: np.add.at(a, [0, 0], x[1]),
}


@pytest.mark.parametrize("transform", [ft.jit, ft.grad, ft.vmap, lambda f: ft.jit(ft.grad(f))])
@pytest.mark.parametrize("name", WRITES)
def test_writes_in_a_branch_to_what_is_outside_raise(name: str, transform: Any) -> None:
    def f(x: Any) -> Any:
        arrays = _views(x)

        def taken() -> Any:
            WRITES[name](x, *arrays)
            return np.sum(arrays[0])

        return lax.cond(x[0] > 0, taken, lambda: 0.0) + sum(np.sum(array) for array in arrays)

    x = np.array([0.3, 0.5, 0.7])
    with pytest.raises(AliasedWriteError, match=r"test_control\.py"):
        transform(f)(x[None] if transform is ft.vmap else x)


def test_a_branch_that_is_not_taken_costs_nothing() -> None:
    calls: list[float] = []

    def f(x: Any) -> Any:
        def costly() -> Any:
            ft.debug.callback(calls.append, x * 2)
            return np.exp(x)

        return lax.cond(x > 0, lambda: 0.0 * x, costly)

    program = ft.make_jaxpr(f)(1.0)
    assert "exp" not in {eqn.primitive.name for eqn in program.eqns}
    for run in (f, ft.jit(f), ft.grad(f), ft.jit(ft.grad(f))):
        run(1.0)
    assert not calls


def test_operand_that_lanes_share_gets_the_sum() -> None:
    def total(w: Any) -> Any:
        return np.sum(ft.vmap(branch, (0, None))(XS, w))

    assert_allclose(ft.grad(total)(1.5), sum(ft.grad(branch, 1)(x, 1.5) for x in XS))
    assert_allclose(ft.jvp(total, (1.5,), (1.0,))[1], ft.grad(total)(1.5))


def test_cond_with_batched_operands_and_shared_choice() -> None:
    def f(x: Any, flag: Any) -> Any:
        return lax.cond(flag, lambda x: x * x, lambda x: 3.0 * x, x)

    for flag in (True, False):
        assert_allclose(ft.vmap(f, (0, None))(XS, flag), [f(x, flag) for x in XS])
        jitted = ft.jit(ft.vmap(ft.grad(f), (0, None)))(XS, flag)
        assert_allclose(jitted, [ft.grad(f)(x, flag) for x in XS])


def test_cond_on_no_lanes() -> None:
    assert ft.vmap(branch)(np.zeros(0), np.zeros(0)).shape == (0,)
    assert ft.vmap(ft.grad(branch))(np.zeros(0), np.zeros(0)).shape == (0,)


def test_cond_of_pytrees_and_integers() -> None:
    def f(n: Any, x: Any) -> Any:
        return lax.cond(
            n > 1, lambda n, x: {"n": n + 1, "x": (x * n,)}, lambda n, x: {"n": n, "x": (x,)}, n, x
        )

    result = ft.jit(f)(2, 3.0)
    assert result["n"] == 3
    assert result["n"].dtype == np.int64
    assert result["x"][0] == 6.0
    assert ft.grad(lambda x: f(2, x)["x"][0])(3.0) == 2.0
    batched = ft.vmap(f)(np.array([0, 2]), np.array([1.0, 3.0]))
    assert batched["n"].tolist() == [0, 3]
    assert batched["x"][0].tolist() == [1.0, 6.0]


def test_branches_convert_python_scalars() -> None:
    x = np.float32(2.0)
    for pred in (True, False):
        assert lax.cond(pred, lambda x: x, lambda x: 0.0, x).dtype == np.float32
        assert ft.jit(lambda p: lax.cond(p, lambda: 1, lambda: 0.5))(pred).dtype == np.float64


def test_switch_clamps_its_index() -> None:
    branches = [lambda x: x, lambda x: x * x, lambda x: -x]

    def f(i: Any, x: Any) -> Any:
        return lax.switch(i, branches, x)

    numbers = np.array([-5, 0, 1, 2, 9])
    want = [3.0, 3.0, 9.0, -3.0, -3.0]
    assert [f(int(i), 3.0) for i in numbers] == want
    assert ft.vmap(f, (0, None))(numbers, 3.0).tolist() == want
    assert [ft.jit(f)(i, 3.0) for i in numbers] == want
    assert ft.vmap(ft.grad(f, 1), (0, None))(numbers, 3.0).tolist() == [1.0, 1.0, 6.0, -1.0, -1.0]


def test_select_chooses_elementwise() -> None:
    pred = np.array([True, False])
    assert lax.select(pred, np.ones(2), np.zeros(2)).tolist() == [1.0, 0.0]
    assert ft.grad(lambda x: np.sum(lax.select(pred, x, 2 * x)))(np.ones(2)).tolist() == [1.0, 2.0]
    with pytest.raises(ShapeError, match="select"):
        lax.select(pred, np.ones(2), np.ones(3))


def test_cond_errors_name_the_path() -> None:
    with pytest.raises(TreeMismatchError, match="true_fun"):
        lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)
    with pytest.raises(ShapeError, match=r"out\['a'\]"):
        lax.cond(True, lambda x: {"a": x}, lambda x: {"a": np.ones(3) * x}, 1.0)
    with pytest.raises(TypeError, match=r"out.*f32"):
        lax.cond(True, lambda x: x, lambda x: x.astype(np.float32), np.float64(1.0))
    with pytest.raises(ShapeError, match="pred must be a scalar"):
        lax.cond(np.array([True, False]), lambda: 1.0, lambda: 2.0)
    with pytest.raises(TypeError, match="index must be an integer"):
        lax.switch(1.5, [lambda: 1.0])
    with pytest.raises(ValueError, match="at least one function"):
        lax.switch(0, [])
    with pytest.raises(ConcretizationError, match=r"lax\.cond"):
        lax.cond(True, lambda x: 1.0 if x > 0 else 2.0, lambda x: 1.0, 1.0)


# scan -------------------------------------------------------------------------------------------

W = np.array([[0.2, -0.4, 0.1], [0.3, 0.1, -0.2], [-0.5, 0.2, 0.3]])
INPUTS = np.sin(np.arange(12.0)).reshape(4, 3)
STATE = np.array([0.1, -0.2, 0.3])


def recurrent(w: Any, h: Any, xs: Any, **options: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        h = np.tanh(w @ h + x)
        return h, h * x

    h, ys = lax.scan(step, h, xs, **options)
    return np.sum(ys * ys) + np.sum(h)


def recurrent_plain(w: Any, h: Any, xs: Any, reverse: bool = False) -> Any:
    total = 0.0
    order = range(len(xs))
    for i in reversed(order) if reverse else order:
        h = np.tanh(w @ h + xs[i])
        y = h * xs[i]
        total = total + np.sum(y * y)
    return total + np.sum(h)


def test_scan_is_a_loop() -> None:
    same_derivatives(recurrent, recurrent_plain, W, STATE, INPUTS)


@pytest.mark.parametrize("options", [{"unroll": 2}, {"unroll": True}, {"length": 4}])
def test_options_of_scan_change_no_result(options: dict[str, Any]) -> None:
    assert_allclose(recurrent(W, STATE, INPUTS, **options), recurrent(W, STATE, INPUTS))


def test_reverse_scan() -> None:
    same_derivatives(
        lambda w, h, xs: recurrent(w, h, xs, reverse=True),
        lambda w, h, xs: recurrent_plain(w, h, xs, reverse=True),
        W, STATE, INPUTS,
    )  # fmt: skip
    _, ys = lax.scan(lambda c, x: (c + x, c), 0.0, np.arange(4.0), reverse=True)
    assert ys.tolist() == [6.0, 5.0, 3.0, 0.0]


def test_hessian_of_scan() -> None:
    for make in (ft.hessian, lambda f: ft.jacrev(ft.grad(f)), lambda f: ft.jit(ft.hessian(f))):
        assert_allclose(
            make(recurrent)(W, STATE, INPUTS), ft.hessian(recurrent_plain)(W, STATE, INPUTS),
            atol=1e-12,
        )  # fmt: skip


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (None, None, 1), (0, 0, 0)])
def test_vmap_of_scan(axes: tuple[Any, ...]) -> None:
    args = []
    for arg, axis in zip((W, STATE, INPUTS), axes, strict=True):
        args.append(arg if axis is None else np.stack([arg, 2 * arg, -arg], axis))
    lanes = [
        [
            arg if axis is None else np.take(arg, i, axis)
            for arg, axis in zip(args, axes, strict=True)
        ]
        for i in range(3)
    ]
    for f in (recurrent, ft.grad(recurrent), ft.grad(recurrent, 2)):
        want = np.stack([f(*lane) for lane in lanes])
        assert_allclose(ft.vmap(f, axes)(*args), want)
        assert_allclose(ft.jit(ft.vmap(f, axes))(*args), want)


def test_carry_becomes_batched_in_the_loop() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * x + 1.0, c), 0.0, None, 3)[1]

    assert_allclose(ft.vmap(f)(XS), [f(x) for x in XS])


def test_scan_without_xs_and_without_length() -> None:
    carry, ys = lax.scan(lambda c, _: (c + 1, None), 0, None, 5)
    assert carry == 5
    assert ys is None
    carry, ys = lax.scan(lambda c, x: (c, x * 2.0), 1.0, np.zeros(0))
    assert carry == 1.0
    assert ys.shape == (0,)
    assert ft.grad(lambda c: lax.scan(lambda c, x: (c * x, c), c, np.zeros(0))[0])(3.0) == 1.0
    with pytest.raises(ValueError, match="give length"):
        lax.scan(lambda c, _: (c, None), 0.0)


def test_scan_of_pytrees() -> None:
    def step(carry: Any, x: Any) -> Any:
        return {"a": carry["a"] + x[0], "b": (carry["b"][0] * x[1],)}, (x[0], {"z": carry["a"]})

    init = {"a": 1.0, "b": (np.ones(2),)}
    xs = (np.arange(3.0), np.arange(6.0).reshape(3, 2) + 1.0)
    carry, (same, later) = ft.jit(lambda i, x: lax.scan(step, i, x))(init, xs)
    assert carry["a"] == 4.0
    assert carry["b"][0].tolist() == [15.0, 48.0]
    assert same.tolist() == [0.0, 1.0, 2.0]
    assert later["z"].tolist() == [1.0, 1.0, 2.0]


def test_integers_and_booleans_are_carried_as_constants() -> None:
    def f(x: Any) -> Any:
        def step(carry: Any, _: None) -> Any:
            n, flag, y = carry
            return (n + 1, ~flag, y * x + n), n

        return lax.scan(step, (0, np.True_, x), None, 4)[0][2]

    assert_allclose(f(2.0), 2.0 * 16 + 1 * 4 + 2 * 2 + 3)
    assert_allclose(ft.grad(f)(2.0), 5 * 16 + 2 * 2.0 + 2)
    assert_allclose(ft.vmap(ft.grad(f))(XS), [ft.grad(f)(x) for x in XS])


def test_python_scalar_takes_the_type_of_the_carry() -> None:
    x = np.arange(3, dtype=np.float32)
    assert lax.scan(lambda c, x: (c + x, c), 0.0, x)[0].dtype == np.float32
    assert lax.scan(lambda c, x: (c + x, c), 0, np.arange(3.0))[0].dtype == np.float64
    assert lax.scan(lambda c, x: (c + 1, c * x), 0, x)[1].dtype == np.float32
    assert lax.scan(lambda c, x: (0.0, c * x), np.float32(1.0), x)[1].dtype == np.float32
    assert ft.grad(lambda c: lax.scan(lambda c, x: (c * x, None), c, x)[0])(2.0) == 0.0


def test_single_precision_is_kept_by_derivatives() -> None:
    w, h, xs = (x.astype(np.float32) for x in (W, STATE, INPUTS))
    for gradient in (ft.grad(recurrent, (0, 1, 2)), ft.jit(ft.grad(recurrent, (0, 1, 2)))):
        assert [g.dtype for g in gradient(w, h, xs)] == [np.float32] * 3


def test_residuals_that_are_there_already_are_not_stacked() -> None:
    def loss(w: Any, xs: Any) -> Any:
        return lax.scan(lambda c, x: (c * np.sum(x * w), None), 1.0, xs)[0]

    jaxpr = ft.jit(ft.grad(loss, (0, 1))).jaxpr(STATE, INPUTS)
    first, _ = [eqn for eqn in jaxpr.eqns if eqn.primitive.name == "scan"]
    assert {var.aval.shape for var in first.outputs} <= {(), (4,)}, str(jaxpr)


def test_captured_arrays_are_operands_and_read_when_they_change() -> None:
    w = np.ones(3)

    @ft.jit
    def f(x: Any) -> Any:
        return lax.scan(lambda c, x: (c + np.sum(w * x), None), 0.0, x)[0]

    assert_allclose(f(INPUTS), INPUTS.sum())
    assert_allclose(ft.grad(f)(INPUTS), np.ones((4, 3)))
    w[:] = 2.0
    assert_allclose(f(INPUTS), 2 * INPUTS.sum())
    assert_allclose(ft.grad(f)(INPUTS), 2 * np.ones((4, 3)))
    assert_allclose(ft.jit(ft.grad(f))(INPUTS), 2 * np.ones((4, 3)))


def test_pullback_keeps_what_it_needs_of_a_captured_array() -> None:
    w = np.ones(3)
    _, pullback = ft.vjp(
        lambda x: lax.scan(lambda c, x: (c + np.sum(w * x), None), 0.0, x)[0], INPUTS
    )
    w[:] = 7.0
    assert_allclose(pullback(1.0)[0], np.ones((4, 3)))


def test_results_share_no_memory_with_arguments() -> None:
    x = np.arange(3.0)
    for result in (
        lax.scan(lambda c, _: (c, None), x, None, 2)[0],
        lax.cond(True, lambda x: x, lambda x: x, x),
        lax.while_loop(lambda x: False, lambda x: x, x),
        lax.fori_loop(0, 0, lambda i, x: x, x),
    ):
        assert not np.shares_memory(result, x)
        result[:] = 9.0
    assert x.tolist() == [0.0, 1.0, 2.0]


def test_item_assignment_in_a_body() -> None:
    def fill(v: Any) -> Any:
        def body(i: Any, a: Any) -> Any:
            a[i] = v * i
            return a

        return np.sum(lax.fori_loop(0, 5, body, np.zeros(5)) ** 2)

    assert fill(2.0) == 120.0
    assert ft.jit(fill)(2.0) == 120.0
    assert ft.grad(fill)(2.0) == 120.0
    assert_allclose(ft.vmap(ft.grad(fill))(np.arange(3.0)), [0.0, 60.0, 120.0])


def test_write_to_an_array_of_the_outer_trace_raises() -> None:
    def f(x: Any) -> Any:
        def body(c: Any, _: None) -> Any:
            x[0] = 5.0
            return c, None

        return lax.scan(body, np.sum(x), None, 2)[0]

    for transformed in (ft.grad(f), ft.jit(f)):
        with pytest.raises(AliasedWriteError, match=r"test_control\.py"):
            transformed(np.ones(3))

    def g(x: Any) -> Any:
        def taken(y: Any) -> Any:
            x[0] = y
            return y

        return lax.cond(True, taken, lambda y: y, 1.0)

    with pytest.raises(AliasedWriteError):
        ft.grad(g)(np.ones(3))


def test_scan_errors_name_the_path() -> None:
    with pytest.raises(TypeError, match="must return a pair"):
        lax.scan(lambda c, x: c, 0.0, np.ones(2))
    with pytest.raises(TreeMismatchError, match="carry"):
        lax.scan(lambda c, x: ((c, c), x), 0.0, np.ones(2))
    with pytest.raises(ShapeError, match=r"carry\['a'\] returned by .*f64\[2\].*f64\[\]"):
        lax.scan(lambda c, x: ({"a": x}, None), {"a": np.float64(0.0)}, np.ones((3, 2)))
    with pytest.raises(TypeError, match=r"carry returned by .*i64\[\].*f64\[\]|f64\[\].*i64\[\]"):
        lax.scan(lambda c, x: (c + x, None), np.int64(0), np.ones(2))
    with pytest.raises(ShapeError, match=r"xs\['b'\].*3.*xs\['a'\] has 2"):
        lax.scan(lambda c, x: (c, None), 0.0, {"a": np.ones(2), "b": np.ones(3)})
    with pytest.raises(ShapeError, match="is a scalar"):
        lax.scan(lambda c, x: (c, None), 0.0, 1.0)
    with pytest.raises(ValueError, match="unroll"):
        lax.scan(lambda c, x: (c, None), 0.0, np.ones(2), unroll=-1)
    with pytest.raises(TypeError, match="expected a function"):
        lax.scan(3, 0.0, np.ones(2))
    with pytest.raises(ConcretizationError, match="xs"):
        lax.scan(lambda c, x: (c if x > 0 else -c, None), 0.0, np.ones(2))


def test_error_in_a_body_tells_the_line() -> None:
    @ft.jit
    def f(x: Any) -> Any:
        return lax.scan(lambda c, x: (c, np.linalg.cholesky(x)), 0.0, x)[1]

    with pytest.raises(np.linalg.LinAlgError) as caught:
        f(-np.ones((2, 1, 1)))
    assert any("test_control.py" in note for note in caught.value.__notes__)


# while ------------------------------------------------------------------------------------------


def iterate(x: Any, a: Any) -> Any:
    def body(state: Any) -> Any:
        i, x = state
        return i + 1.0, np.sin(x) * a + 0.3 * x

    return lax.while_loop(lambda s: s[0] < 2 * a, body, (0.0, x))[1]


def iterate_plain(x: Any, a: Any) -> Any:
    i = 0.0
    while i < 2 * a:
        i, x = i + 1.0, np.sin(x) * a + 0.3 * x
    return x


@pytest.mark.parametrize("a", [2.0, 3.7, -1.0])
def test_while_is_a_loop(a: float) -> None:
    same_derivatives(iterate, iterate_plain, np.float64(0.5), np.float64(a))


def test_third_derivative_through_tapes() -> None:
    third = ft.grad(ft.grad(ft.grad(iterate)))(0.5, 2.0)
    assert_allclose(third, ft.grad(ft.grad(ft.grad(iterate_plain)))(0.5, 2.0))


def test_reverse_mode_stores_on_tapes() -> None:
    text = str(ft.jit(ft.grad(iterate)).jaxpr(0.5, 2.0))
    assert "Tape[f64[]]" in text
    assert "length=None" in text


def test_while_under_vmap_with_lengths_of_each_lane() -> None:
    per_lane(iterate, np.array([0.5, 0.2, 0.9, 0.1]), np.array([2.0, 3.7, -1.0, 1.1]))


def test_while_under_two_vmaps() -> None:
    x, a = np.array([0.5, 0.2]), np.array([2.0, 3.7, -1.0])
    for f in (iterate, ft.grad(iterate), ft.grad(iterate, 1)):
        nested = ft.vmap(ft.vmap(f, (0, None)), (None, 0))(x, a)
        assert_allclose(nested, [[f(u, v) for u in x] for v in a])


def test_vmap_of_while_on_no_lanes() -> None:
    assert ft.vmap(iterate)(np.zeros(0), np.zeros(0)).shape == (0,)
    assert ft.vmap(ft.grad(iterate))(np.zeros(0), np.zeros(0)).shape == (0,)


def test_finished_lane_gives_no_nan() -> None:
    """A lane that is done is not stepped over the edge of the domain, nor differentiated there."""

    def f(x: Any) -> Any:
        return lax.while_loop(lambda x: x > 1.0, lambda x: np.sqrt(x - 0.9), x)

    xs = np.array([0.5, 3.0, 30.0])
    for g in (f, ft.grad(f), ft.grad(ft.grad(f))):
        values = ft.vmap(g)(xs)
        assert np.isfinite(values).all()
        assert_allclose(values, [g(x) for x in xs])


def test_jacobian_through_a_while_loop() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda x: np.sum(x) < 20.0, lambda x: x * x[::-1] + 1.0, x)

    def plain(x: Any) -> Any:
        while np.sum(x) < 20.0:
            x = x * x[::-1] + 1.0
        return x

    x = np.array([1.0, 1.5])
    for jacobian in (ft.jacrev, ft.jacfwd, lambda f: ft.jit(ft.jacrev(f))):
        assert_allclose(jacobian(f)(x), ft.jacrev(plain)(x))


def test_loops_in_loops_store_tapes_of_tapes() -> None:
    def inner(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 2.5, lambda s: (s[0] + 1.0, np.sin(s[1]) + s[1]),
                              (0.0, x))[1]  # fmt: skip

    def f(x: Any) -> Any:
        return lax.while_loop(lambda x: x < 2.0, lambda x: inner(x) + 0.1 * x, x)

    def g(x: Any) -> Any:
        return lax.scan(lambda c, _: (inner(c) * 0.5, c), x, None, 3)[0]

    def h(x: Any) -> Any:
        return lax.cond(x > 0.0, f, lambda x: x * x, x)

    def plain_inner(x: Any) -> Any:
        for _ in range(3):
            x = np.sin(x) + x
        return x

    def plain_f(x: Any) -> Any:
        while x < 2.0:
            x = plain_inner(x) + 0.1 * x
        return x

    def plain_g(x: Any) -> Any:
        for _ in range(3):
            x = plain_inner(x) * 0.5
        return x

    same_derivatives(f, plain_f, np.float64(0.2))
    same_derivatives(g, plain_g, np.float64(0.2))
    same_derivatives(h, plain_f, np.float64(0.2))
    lanes = np.array([0.2, 0.01, 1.9])
    per_lane(f, lanes)
    per_lane(g, lanes)
    per_lane(h, np.array([0.2, -0.3, 1.9]))


def test_linear_while_loop_can_be_transposed() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(
            lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * (s[0] + 2.0)), (0, x)
        )[1]

    assert_allclose(ft.linear_transpose(f, 1.0)(1.0)[0], 24.0)
    with pytest.raises(NonDifferentiableError, match="condition"):
        ft.linear_transpose(lambda x: lax.while_loop(lambda x: x < 9.0, lambda x: 2.0 * x, x), 1.0)(
            1.0
        )


def test_linear_scan_can_be_transposed() -> None:
    def f(x: Any) -> Any:
        def step(state: Any, k: Any) -> Any:
            n, c = state
            return (n * 2.0, c * n + x * k), c

        (_, c), cs = lax.scan(step, (1.0, 0.0), np.arange(4.0))
        return c + np.sum(cs)

    assert_allclose(ft.linear_transpose(f, 1.0)(1.0)[0], f(1.0))


def test_while_errors() -> None:
    with pytest.raises(TypeError, match="boolean scalar, got f64"):
        lax.while_loop(lambda x: x, lambda x: x, 1.0)
    with pytest.raises(TypeError, match="boolean scalar"):
        lax.while_loop(lambda x: x > 0, lambda x: x, np.ones(2))
    with pytest.raises(TypeError, match="container"):
        lax.while_loop(lambda x: (x > 0,), lambda x: x, 1.0)
    with pytest.raises(ShapeError, match=r"val\['x'\]"):
        lax.while_loop(lambda s: True, lambda s: {"x": np.ones(2)}, {"x": np.float64(1.0)})


# fori_loop, map, associative_scan ---------------------------------------------------------------


def test_fori_loop_with_static_and_traced_bounds() -> None:
    def f(x: Any, lower: Any = 1, upper: Any = 5) -> Any:
        return lax.fori_loop(lower, upper, lambda i, c: c * x + i, x)

    def plain(x: Any) -> Any:
        c = x
        for i in range(1, 5):
            c = c * x + i
        return c

    same_derivatives(f, plain, np.float64(0.7))
    assert_allclose(ft.jit(f)(0.7, 1, 5), plain(0.7))
    assert_allclose(ft.grad(ft.jit(f))(0.7, 1, 5), ft.grad(plain)(0.7))
    assert_allclose(ft.vmap(ft.grad(f))(np.full(3, 0.7), np.array([1, 5, 1]), np.array([5, 1, 5])),
                    [ft.grad(plain)(0.7), 1.0, ft.grad(plain)(0.7)])  # fmt: skip
    assert f(0.7, 5, 1) == 0.7
    assert lax.fori_loop(0, 3, lambda i, c: c + i, np.float32(0)).dtype == np.float32
    with pytest.raises(TypeError, match="upper must be an integer"):
        lax.fori_loop(0, 2.5, lambda i, c: c, 0.0)


@pytest.mark.parametrize("batch_size", [None, 1, 2, 4, 7])
def test_map_is_vmap(batch_size: int | None) -> None:
    def f(x: Any) -> Any:
        return {"s": np.sum(np.sin(x)), "x": x * 2.0}

    def mapped(xs: Any) -> Any:
        return lax.map(f, xs, batch_size=batch_size)

    want = ft.vmap(f)(INPUTS)
    result = ft.jit(mapped)(INPUTS)
    assert_allclose(result["s"], want["s"])
    assert_allclose(result["x"], want["x"])
    assert_allclose(ft.grad(lambda x: np.sum(mapped(x)["s"]))(INPUTS), np.cos(INPUTS))
    assert mapped(np.zeros((0, 3)))["x"].shape == (0, 3)


@pytest.mark.parametrize("n", range(9))
def test_associative_scan_gives_prefixes(n: int) -> None:
    x = np.arange(float(n)) + 1.0
    assert_allclose(lax.associative_scan(np.add, x), np.cumsum(x))
    assert_allclose(lax.associative_scan(np.multiply, x, reverse=True), np.cumprod(x[::-1])[::-1])
    if n:
        weights = np.cos(np.arange(float(n)))
        assert_allclose(
            ft.jit(ft.grad(lambda x: np.sum(weights * lax.associative_scan(np.multiply, x))))(x),
            ft.grad(lambda x: np.sum(weights * np.cumprod(x)))(x),
        )


def test_associative_scan_of_matrices_along_an_axis() -> None:
    mats = np.stack([W, W + 1.0, W - 1.0, W * 2.0, W.T])
    want = [W]
    for m in mats[1:]:
        want.append(want[-1] @ m)
    assert_allclose(lax.associative_scan(lambda a, b: a @ b, mats), want)
    assert_allclose(lax.associative_scan(np.add, mats, axis=2), np.cumsum(mats, 2))
    flags = np.array([False, True, False, False])
    assert lax.associative_scan(np.logical_or, flags).tolist() == [False, True, True, True]
    with pytest.raises(ShapeError, match="differ in extent"):
        lax.associative_scan(lambda a, b: a, (np.ones(2), np.ones(3)))


# collectives and lanes --------------------------------------------------------------------------


def test_collective_among_lanes_that_part_raises() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: lax.psum(x, "i"), lambda x: x, x)

    with pytest.raises(UnsupportedOperationError, match="before the cond"):
        ft.vmap(f, axis_name="i")(XS)

    def g(x: Any) -> Any:
        return lax.while_loop(lambda x: x < 1.0, lambda x: x + lax.pmax(x, "i"), x)

    with pytest.raises(UnsupportedOperationError, match="length differs"):
        ft.vmap(g, axis_name="i")(XS)


def test_programs_are_shared_between_calls() -> None:
    """A body written inside a function gives the same program at each call."""
    from functrans.control.scanning import scan

    def loss(x: Any) -> Any:
        return scan(lambda c, x: (np.sin(c) * x, None), 1.0, x)[0]

    def program() -> Any:
        (eqn,) = [e for e in ft.make_jaxpr(loss)(INPUTS[0]).eqns if e.primitive.name == "scan"]
        return eqn.params["jaxpr"]

    assert program() is program()


def test_nothing_of_the_users_is_kept_alive() -> None:
    """Programs are shared by a table; functions, rules, callbacks and arrays are not held by it."""

    class Token:
        pass

    def use() -> list[Any]:
        token, array = Token(), np.ones(1000)

        @ft.custom_vjp
        def rule(x: Any) -> Any:
            assert token is not None
            return x * x

        rule.defvjp(lambda x: (rule(x), x), lambda x, ct: (2.0 * x * ct,))

        def f(x: Any) -> Any:
            def body(c: Any, v: Any) -> Any:
                ft.debug.callback(lambda _: token, c)
                c = ft.checkpoint(lambda c: c * np.sum(array) * 1e-3)(rule(c))
                return lax.cond(c > 0, lambda c: c * v, lambda c: rule(c), c), v

            return lax.scan(body, x, np.ones(3))[0]

        ft.grad(f)(1.0)
        ft.vmap(ft.grad(f))(np.ones(2))
        ft.jit(ft.grad(f))(1.0)
        ft.jvp(f, (1.0,), (1.0,))
        return [weakref.ref(token), weakref.ref(array), weakref.ref(f)]

    references = use()
    gc.collect()  # a rule that calls its own function is a cycle of the user's
    assert [reference() for reference in references] == [None] * 3


@pytest.mark.parametrize("outer", [lambda f: f, ft.jit], ids=["eager", "jit"])
@pytest.mark.parametrize("is_matrix_batched", [False, True])
def test_vmap_of_while_loop_keeps_what_no_iteration_changes(
    outer: Any, is_matrix_batched: bool
) -> None:
    """Though the lanes end apart; between and around values that change, also read by both."""
    xs = np.array([[4.0, 1.0], [0.5, 0.25], [9.0, 3.0]])
    limit, matrix = np.array(1.0), np.array([[0.5, 0.1], [0.0, 0.5]])
    matrices = np.stack([matrix] * 3) if is_matrix_batched else matrix

    def loop(x: Any, matrix: Any) -> Any:
        return lax.while_loop(
            lambda s: np.sum(s[2]) > s[0],
            lambda s: (s[0], s[1], s[1] @ s[2], s[3] + 1),
            (limit, matrix, x, 0),
        )

    axis = 0 if is_matrix_batched else None
    found = outer(ft.vmap(loop, (0, axis), (None, axis, 0, 0)))(xs, matrices)
    assert [np.shape(x) for x in found] == [(), np.shape(matrices), (3, 2), (3,)]
    for i, x in enumerate(xs):
        want = loop(x, matrix)
        assert_allclose(found[2][i], want[2])
        assert found[3][i] == want[3]
    slope = outer(ft.grad(lambda xs, m: np.sum(ft.vmap(loop, (0, axis))(xs, m)[2]), (0, 1)))
    own = [ft.grad(lambda x, m: np.sum(loop(x, m)[2]), (0, 1))(x, matrix) for x in xs]
    by_x, by_matrix = slope(xs, matrices)
    assert_allclose(by_x, np.stack([g[0] for g in own]))
    expected = np.stack([g[1] for g in own])
    assert_allclose(by_matrix, expected if is_matrix_batched else expected.sum(0))
