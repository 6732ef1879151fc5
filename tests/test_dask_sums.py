"""Sums over Dask collections equal sums over arrays, under all transforms."""

import functools
import operator

import dask
import dask.array as da
import dask.bag as db
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 3))
Y = (RNG.random(37) < 0.5) * 1.0
SCALE = np.array([1.0, 0.5, 2.0])
W = np.array([0.3, -0.2, 0.5])


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def loss(w, x, y):
    z = x @ (w * SCALE)
    return fnp.sum(fnp.logaddexp(0.0, z) - y * z)


def moments(w, x, y):
    """Several results, of which one depends on nothing but data."""
    z = fnp.tanh(x @ w)
    return {"first": fnp.sum(z), "second": x.T @ (x * z[:, None]), "count": fnp.sum(y > 0.5)}


def cut(rows=10):
    return da.from_array(X, chunks=(rows, 3)), da.from_array(Y, chunks=rows)


def along(f, v):
    return lambda w: ft.jvp(f, (w,), (v,))[1]


TRANSFORMS = {
    "value": lambda f: f,
    "grad": ft.grad,
    "value_and_grad": ft.value_and_grad,
    "jvp": lambda f: along(f, SCALE),
    "hvp": lambda f: lambda w: ft.hvp(f, (w,), (SCALE,)),
    "vhp": lambda f: lambda w: ft.vhp(f, (w,), (SCALE,)),
    "hessian": ft.hessian,
    "jacfwd of jacfwd": lambda f: ft.jacfwd(ft.jacfwd(f)),
    "jacrev of jacrev": lambda f: ft.jacrev(ft.jacrev(f)),
    "third": lambda f: ft.jacfwd(ft.hessian(f)),
    "vmap": lambda f: lambda w: ft.vmap(f)(fnp.stack([w, 2 * w])),
    "vmap of grad": lambda f: lambda w: ft.vmap(ft.grad(f))(fnp.stack([w, 2 * w])),
    "grad of vmap": lambda f: ft.grad(lambda w: fnp.sum(ft.vmap(f)(fnp.stack([w, w * w])))),
    "jit": ft.jit,
    "jit of grad": lambda f: ft.jit(ft.grad(f)),
    "jit of hessian": lambda f: ft.jit(ft.hessian(f)),
    "linearize": lambda f: lambda w: ft.linearize(f, w)[1](SCALE),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(f)),
}


def close(found, expected):
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert np.asarray(one).dtype == np.asarray(other).dtype
        if np.asarray(one).dtype != ft.float0:
            np.testing.assert_allclose(one, other, 1e-12, 1e-13)


@pytest.mark.parametrize("rows", [10, 37, 4])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_sum_has_the_derivatives_of_the_sum(name, rows):
    summed = ft.dask.sum_over(loss)
    data = cut(rows)
    found = TRANSFORMS[name](lambda w: summed(w, *data))(W)
    close(found, TRANSFORMS[name](lambda w: loss(w, X, Y))(W))


@pytest.mark.parametrize("name", ["value", "jvp", "jit", "vmap", "linearize"])
def test_several_results(name):
    summed = ft.dask.sum_over(moments)
    data = cut()
    found = TRANSFORMS[name](lambda w: summed(w, *data))(W)
    close(found, TRANSFORMS[name](lambda w: moments(w, X, Y))(W))


def test_jacobians_of_several_results():
    def both(w, x, y):
        return fnp.sum(x @ w), x.T @ fnp.tanh(x @ w)

    summed = ft.dask.sum_over(both)
    data = cut()
    for transform in (ft.jacrev, ft.jacfwd):
        close(transform(lambda w: summed(w, *data))(W), transform(lambda w: both(w, X, Y))(W))


def test_captured_values_have_derivatives():
    def of(scale):
        return ft.dask.sum_over(lambda w, x: fnp.sum(fnp.tanh(x @ (w * scale))))(W, cut()[0])

    close(ft.grad(of)(SCALE), ft.grad(lambda s: fnp.sum(fnp.tanh(X @ (W * s))))(SCALE))


def test_gradients_in_several_arguments_of_pytrees():
    summed = ft.dask.sum_over(lambda p, b, x, y: loss(p["w"], x, y) + b * fnp.sum(x))
    x, y = cut()
    found = ft.grad(summed, argnums=(0, 1))({"w": W}, 0.5, x, y=y)
    close(found, ({"w": ft.grad(loss)(W, X, Y)}, np.sum(X)))


def test_products_of_gauss_newton_matrices_add_up():
    def product(w, v, x, y):
        return ft.ggn(lambda w: x @ w, lambda z: fnp.sum(fnp.logaddexp(0.0, z) - y * z))(w, v)

    x, y = cut()
    close(ft.dask.sum_over(product)(W, SCALE, x, y), product(W, SCALE, X, Y))


def test_bags_and_loaders():
    items = [{"x": X[i], "y": Y[i]} for i in range(37)]
    bag = db.from_sequence(items, npartitions=5)
    over_bag = ft.dask.sum_over(lambda w, rows: loss(w, rows["x"], rows["y"]))
    close(ft.grad(over_bag)(W, bag), ft.grad(loss)(W, X, Y))
    load = dask.delayed(lambda i: (X[i : i + 10], Y[i : i + 10]))
    over_loaders = ft.dask.sum_over(lambda w, rows: loss(w, *rows))
    close(ft.grad(over_loaders)(W, [load(i) for i in range(0, 37, 10)]), ft.grad(loss)(W, X, Y))


def test_empty_chunks_and_one_row():
    x = da.from_array(X[:1], chunks=(1, 3))
    summed = ft.dask.sum_over(lambda w, x: fnp.sum(x @ w))
    close(ft.grad(summed)(W, x), X[0])
    empty = da.concatenate([da.from_array(X[:0], chunks=(1, 3)), x])
    close(ft.grad(summed)(W, empty), X[0])


def test_jacobian_is_a_dask_array_of_blocks():
    def residuals(p, x, y):
        return {"r": fnp.tanh(x @ p["w"]) - y, "outer": x[:, :, None] * p["w"]}

    x, y = cut()
    found = ft.dask.jacobian(residuals)({"w": W}, x, y)
    expected = ft.jacobian(residuals)({"w": W}, X, Y)
    assert found["r"]["w"].chunks == ((10, 10, 10, 7), (3,))
    close(ft.tree.map(lambda a: a.compute(), found), expected)


def test_grids_depend_on_chunks_alone(monkeypatch):
    """Additions in another order would differ in bits for these numbers."""
    values = da.from_array(RNG.normal(size=200) * 10.0 ** RNG.integers(-9, 9, 200), chunks=1)
    summed = ft.dask.sum_over(lambda w, x: w * fnp.sum(x))
    with dask.config.set(scheduler="synchronous"):
        one = summed(1.0, values)
    with dask.config.set(scheduler="threads", num_workers=4):
        assert all(summed(1.0, values).tobytes() == one.tobytes() for _ in range(5))


def test_complex_results_are_not_taken_for_holomorphic():
    x, ones = cut()[0], np.ones(3) + 0.5j
    turned = ft.dask.sum_over(lambda w, x: fnp.sum(1j * (x @ w)))
    close(ft.grad(lambda w: fnp.imag(turned(w, x)))(W), X.sum(0))
    flipped = ft.dask.sum_over(lambda z, x: fnp.sum(fnp.conj(z) * x))
    found = ft.grad(lambda z: fnp.real(flipped(z, x) * 1j))(ones)
    close(found, ft.grad(lambda z: fnp.real(fnp.sum(fnp.conj(z) * X) * 1j))(ones))


def test_jacobians_are_those_of_the_time_of_the_call():
    w = W.copy()
    blocks = ft.dask.jacobian(lambda w, x: fnp.exp(x @ w))(w, cut()[0])
    w[:] = 5.0
    close(blocks.compute(), ft.jacobian(lambda w: fnp.exp(X @ w))(W))


def test_other_data_under_the_same_name_is_other_data():
    summed = ft.dask.sum_over(lambda w, x: w * fnp.sum(x))
    arrays = [da.from_array(v * np.ones(6), chunks=3, name="same") for v in (1.0, 2.0)]
    assert [float(summed(1.0, x)) for x in arrays] == [6.0, 12.0]
    for v in (1.0, 2.0):
        make = dask.delayed(lambda v=v: v * np.ones(2))
        assert float(summed(1.0, [make(dask_key_name=f"part-{i}") for i in range(3)])) == 6 * v


def test_loaders_are_asked_once_for_the_shapes_of_parts():
    calls = []
    make = dask.delayed(lambda i: calls.append(i) or np.full(2, float(i)))
    parts = [make(i) for i in range(3)]
    summed = ft.dask.sum_over(lambda w, x: w * fnp.sum(x))
    assert [float(summed(1.0, parts)) for _ in range(3)] == [6.0] * 3
    assert len(calls) == 3 * (1 + 3)


def test_small_integers_are_added_as_numpy_adds_them():
    x = da.full(500, 200, chunks=50, dtype="u1")
    found = ft.dask.sum_over(lambda x: fnp.max(x))(x)
    assert found == 2000
    assert found.dtype == np.uint64


@pytest.mark.parametrize("kind", ["custom_jvp", "custom_vjp"])
@pytest.mark.parametrize("name", ["value", "grad", "vmap", "jit", "vmap of grad"])
def test_losses_with_rules_of_users(kind, name):
    if kind == "custom_jvp":
        ruled = ft.custom_jvp(fnp.sin)
        ruled.defjvp(lambda p, t: (fnp.sin(p[0]), 2.0 * t[0] * fnp.cos(p[0])))
    else:
        ruled = ft.custom_vjp(fnp.sin)
        ruled.defvjp(lambda z: (fnp.sin(z), z), lambda z, ct: (2.0 * ct * fnp.cos(z),))
    x = cut()[0]
    summed = ft.dask.sum_over(lambda w, x: fnp.sum(ruled(x @ w)))
    found = TRANSFORMS[name](lambda w: summed(w, x))(W)
    close(found, TRANSFORMS[name](lambda w: fnp.sum(ruled(X @ w)))(W))


def test_several_results_of_loops_in_reverse():
    def halved(w):
        return ft.lax.while_loop(lambda c: fnp.sum(c * c) > 0.1, lambda c: fnp.sin(c) * 0.5, w)

    def rows(w, x):
        return fnp.tanh(halved(w)) * fnp.sum(x, 0)

    x = cut()[0]
    summed = ft.dask.sum_over(rows)
    close(ft.grad(lambda w: fnp.sum(summed(w, x)))(W), ft.grad(lambda w: fnp.sum(rows(w, X)))(W))


# refusals ---------------------------------------------------------------------------------------


def refused(kind, words, fun, *args):
    with pytest.raises(kind, match=words):
        ft.dask.sum_over(fun)(*args)


def test_bad_data_is_refused_before_anything_runs():
    x, y = cut()
    refused(TypeError, "no argument is data in parts.*expected a dask.array.Array", loss, W, X, Y)
    refused(
        ft.errors.ShapeError,
        r"args\[1\]: 4 chunks of 10, 10, 10, 7 rows; args\[2\]: 2 chunks of 20, 17 rows.*rechunk",
        loss, W, x, y.rechunk(20),
    )  # fmt: skip
    refused(
        ft.errors.ShapeError,
        r"sizes of the chunks of args\[1\] are not known.*compute_chunk_sizes",
        loss, W, x[y > 0.5], y[y > 0.5],
    )  # fmt: skip
    refused(
        ft.errors.ShapeError, r"first axis only: .rechunk\({1: -1}\)", loss, W,
        x.rechunk((10, 2)), y,
    )  # fmt: skip
    refused(ft.errors.ShapeError, "has no axis to be cut along", loss, W, x, y.sum())
    refused(
        ft.errors.ShapeError,
        r"result of chunk 3 of 4 \(rows 30:37\) is f64\[7\], but that of chunk 0 of 4.*f64\[10\]",
        lambda w, x: x @ w, W, x,
    )  # fmt: skip
    with pytest.raises(ft.errors.ShapeError, match="expected one axis of rows"):
        ft.dask.jacobian(lambda w, x: fnp.sum(x @ w))(W, x)


def test_programs_that_cannot_travel_are_refused():
    def with_callback(w, x):
        return ft.pure_callback(lambda v: np.sum(v), ft.ShapeDtypeStruct((), np.float64), x @ w)

    refused(ft.errors.UnsupportedOperationError, "callback", with_callback, W, cut()[0])


def test_errors_on_workers_name_the_chunk():
    lies = da.from_array(X, chunks=(10, 3)).map_blocks(
        lambda block: block[:5], dtype=float, chunks=((10, 10, 10, 7), (3,))
    )
    refused(
        ft.errors.ShapeError,
        r"chunk \d of 4 \(rows \d+:\d+\).*float64\[5, 3\], but.*f64\[(10|7),3\]",
        lambda w, x: fnp.sum(x @ w),
        W,
        lies,
    )

    def fails(block):
        raise OSError("no such disk")

    broken = da.from_array(X, chunks=(10, 3)).map_blocks(fails, dtype=float, meta=X[:0])
    refused(OSError, "no such disk", lambda w, x: fnp.sum(x @ w), W, broken)


def test_data_that_is_more_than_numbers_is_refused():
    masked = da.ma.masked_greater(da.from_array(np.arange(6.0), chunks=3), 3.0)
    words = r"chunk \d of 2 \(rows \d:\d\) of the data is a MaskedArray.*filled"
    refused(ft.errors.UnsupportedOperationError, words, lambda w, x: w * fnp.sum(x), 1.0, masked)
    texts = da.from_array(np.array(["a", "b"]), chunks=1)
    words = r"args\[1\] has dtype <U1.*expected numbers"
    refused(ft.errors.UnsupportedOperationError, words, lambda w, x: w, 1.0, texts)


def test_jacobians_of_what_gives_no_row_for_each_row_are_refused():
    x = cut()[0]
    for fun in (lambda w, x: (x @ x.T) * (x @ w)[:, None], lambda w, x: fnp.sum(x @ w)[None]):
        with pytest.raises(ft.errors.ShapeError, match="expected a row of one shape"):
            ft.dask.jacobian(fun)(W, x)
    with pytest.raises(TypeError, match="argnums=1 names data in parts"):
        ft.dask.jacobian(lambda w, x: x @ w, argnums=1)(W, x)


def test_a_decision_on_values_names_what_works_for_parts():
    x = da.ones((10, 2), chunks=(5, 2))

    def decides(w, x):
        return np.sum(x @ w) if w[0] > 0 else np.sum(x)

    for apart in (ft.dask.sum_over, ft.dask.jacobian):
        with pytest.raises(ft.errors.ConcretizationError) as caught:
            apart(decides)(np.ones(2), x)
        assert "np.where, ft.lax.cond" in str(caught.value)
        assert "functools.partial" in str(caught.value)
        assert "jit" not in str(caught.value)


def test_an_array_of_numpy_beside_the_data_is_named():
    x, y = da.ones((10, 2), chunks=(5, 2)), np.ones(10)
    with pytest.raises(ValueError, match="broadcast") as caught:
        ft.dask.sum_over(lambda w, x, y: np.sum(x @ w - y))(np.ones(2), x, y)
    (note,) = caught.value.__notes__
    assert note.startswith("args[2] is an array of NumPy with as many rows as the data")


USES = {
    "matmul": lambda w, x: np.sum(x @ w),
    "rmatmul": lambda w, x: np.sum(w @ x.T),
    "multiply": lambda w, x: np.sum(x * w),
    "reflected": lambda w, x: np.sum(w - x),
    "function": lambda w, x: np.sum(np.dot(x, w)),
    "of functrans": lambda w, x: fnp.sum(fnp.where(x > 0.0, w, 0.0)),
    "list": lambda w, x: np.sum(np.concatenate([w, x[0]])),
    "derived": lambda w, x: np.sum(np.sin(x)) * w[0],
    "augmented": lambda w, x: np.sum(operator.iadd(w * 1.0, x[0])),
    "comparison": lambda w, x: np.sum(fnp.where(w < x[0], w, 0.0)),
    "power": lambda w, x: np.sum(w ** x[0]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(
    "transform", [ft.grad, ft.jit, ft.hessian, lambda f: functools.partial(ft.linearize, f)]
)
def test_data_outside_of_its_place_is_refused_with_advice(use, transform):
    """Nothing of it is made."""

    def fails(block):
        raise AssertionError("made")

    x = da.ones((6, 2), chunks=(4, 2)).map_blocks(fails, dtype=float, meta=np.ones((0, 2)))
    function = transform(lambda w: USES[use](w, x))
    with pytest.raises(
        ft.errors.UnsupportedOperationError, match=r"dask\.array.* meets .*ft\.dask\.sum_over"
    ) as caught:
        function(np.ones(2))
    assert "test_dask_sums.py" in str(caught.value)


def test_what_several_arguments_come_from_is_made_once():
    made = []

    def rows(block_info):
        made.append(block_info[None]["chunk-location"][0])
        return np.full(block_info[None]["chunk-shape"], 1.0 + made[-1])

    with dask.config.set(scheduler="synchronous"):
        data = da.map_blocks(rows, chunks=((2, 2, 1), (3,)), dtype=float, meta=np.empty((0, 0)))
        total = ft.dask.sum_over(lambda w, x, y: np.sum((x @ w - y) ** 2))
        found = ft.grad(total)(np.array([1.0, 2.0]), data[:, :2], data[:, 2])
    assert sorted(made) == [0, 1, 2]
    np.testing.assert_allclose(found, np.full(2, 4.0 * (2 * 1.0 + 2 * 4.0 + 9.0)))
