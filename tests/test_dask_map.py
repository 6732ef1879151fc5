"""``ft.dask.map`` is ``ft.vmap`` with the items spread over workers."""

import dask
import dask.array as da
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp

RNG = np.random.default_rng(0)
BATCH = {"a": RNG.normal(size=(11, 3)), "b": RNG.normal(size=11)}
W = RNG.normal(size=3)
V = RNG.normal(size=3)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


def fun(w, item):
    z = fnp.tanh(item["a"] * w) * item["b"]
    return {"sum": fnp.sum(z), "all": fnp.outer(z, w)}


def mapped(w, batch):
    return ft.dask.map(lambda item: fun(w, item), batch)


def vmapped(w, batch):
    return ft.vmap(lambda item: fun(w, item))(batch)


def loss(f):
    def of(w, batch):
        out = f(w, batch)
        return fnp.sum(out["sum"] ** 2) + fnp.sum(fnp.sin(out["all"]))

    return of


TRANSFORMS = {
    "value": lambda f: f(W, BATCH),
    "jvp in what is captured": lambda f: ft.jvp(lambda w: f(w, BATCH), (W,), (V,)),
    "jvp in the batch": lambda f: ft.jvp(
        lambda a: f(W, {**BATCH, "a": a}), (BATCH["a"],), (np.cos(BATCH["a"]),)
    ),
    "grad": lambda f: ft.grad(loss(f), argnums=(0, 1))(W, BATCH),
    "grad of jit": lambda f: ft.grad(ft.jit(loss(f)))(W, BATCH),
    "jit of grad": lambda f: ft.jit(ft.grad(loss(f), argnums=1))(W, BATCH),
    "hessian": lambda f: ft.hessian(loss(f))(W, BATCH),
    "hvp": lambda f: ft.hvp(lambda w: loss(f)(w, BATCH), (W,), (V,)),
    "jacobian": lambda f: ft.jacrev(lambda w: f(w, BATCH)["sum"])(W),
    "jacobian forwards": lambda f: ft.jacfwd(lambda b: f(W, {**BATCH, "b": b}))(BATCH["b"]),
    "vmap in what is captured": lambda f: ft.vmap(lambda w: f(w, BATCH))(np.stack([W, V])),
    "vmap in the batch": lambda f: ft.vmap(lambda b: f(W, {**BATCH, "b": b}), 1, 1)(
        np.stack([BATCH["b"], -BATCH["b"]], 1)
    ),
    "vmap of grad": lambda f: ft.vmap(ft.grad(loss(f)), (0, None))(np.stack([W, V]), BATCH),
    "grad of vmap": lambda f: ft.grad(
        lambda w: fnp.sum(ft.vmap(lambda s: loss(f)(s * w, BATCH))(np.array([1.0, 2.0])))
    )(W),
    "checkpoint": lambda f: ft.grad(ft.checkpoint(loss(f)))(W, BATCH),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_it_equals_vmap(name):
    found, expected = TRANSFORMS[name](mapped), TRANSFORMS[name](vmapped)
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, 1e-12, 1e-13)


def test_bits_are_those_of_each_item_alone():
    """Also where loops run as often as an item needs."""

    def halvings(x):
        return ft.lax.while_loop(lambda c: c[0] > 1.0, lambda c: (c[0] * 0.5, c[1] + 1), (x, 0))

    x = np.exp(RNG.normal(size=9) * 5)
    values, counts = ft.dask.map(halvings, x)
    alone = [ft.jit(halvings)(v) for v in x]
    assert values.tolist() == [float(a) for a, _ in alone]
    assert counts.tolist() == [int(b) for _, b in alone]


def test_keys_are_those_of_items():
    key = ft.random.key(3)
    found = ft.dask.map(lambda i, k: i + ft.random.normal(k, (2,)), np.arange(5.0), key=key)
    expected = [i + ft.random.normal(ft.random.fold_in(key, i), (2,)) for i in range(5)]
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found % 1.0)) == 10


def test_bits_do_not_depend_on_threads():
    grad = ft.grad(lambda w: loss(mapped)(w, BATCH))
    with dask.config.set(scheduler="threads", num_workers=3):
        assert grad(W).tobytes() == grad(W).tobytes()
        many = grad(W).tobytes()
    with dask.config.set(scheduler="synchronous", num_workers=1):
        assert grad(W).tobytes() == many


def test_batches_of_one_item_and_of_none():
    for n in (0, 1):
        small = {"a": BATCH["a"][:n], "b": BATCH["b"][:n]}
        found = ft.grad(loss(mapped), argnums=(0, 1))(W, small)
        expected = ft.grad(loss(vmapped), argnums=(0, 1))(W, small)
        for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(one, other, 1e-12)


def test_several_starts_of_a_fit_have_derivatives_in_the_data():
    def fit(scale, start):
        def step(_, p):
            return p - 0.1 * ft.grad(lambda p: fnp.sum((p * p - scale) ** 2))(p)

        return ft.lax.fori_loop(0, 200, step, start)

    starts = np.array([-2.0, -0.5, 0.4, 1.7])
    found = ft.dask.map(lambda s: fit(1.44, s), starts)
    np.testing.assert_allclose(np.abs(found), 1.2, 1e-6)
    slopes = ft.jacobian(lambda c: ft.dask.map(lambda s: fit(c, s), starts))(1.44)
    np.testing.assert_allclose(slopes, 0.5 / found, 1e-4)


# refusals ---------------------------------------------------------------------------------------


def test_errors_name_the_item():
    def factor(a):
        return fnp.linalg.cholesky(a)

    batch = np.stack([np.eye(2)] * 4)
    batch[2] = -batch[2]
    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.dask.map(factor, batch)
    assert "in item 2 of 4 of the batch" in caught.value.__notes__


def test_bad_batches_are_refused():
    with pytest.raises(ft.errors.ShapeError, match=r"batch\['a'\] \[3\], batch\['b'\] \[2\]"):
        ft.dask.map(lambda item: item["a"], {"a": np.ones(3), "b": np.ones(2)})
    with pytest.raises(ft.errors.ShapeError, match=r"first axis is that of the items.*\[\]"):
        ft.dask.map(lambda x: x, 1.0)
    with pytest.raises(TypeError, match="the batch has no arrays"):
        ft.dask.map(lambda x: 1.0, {})
    with pytest.raises(TypeError, match=r"data of Dask.*sum_over"):
        ft.dask.map(lambda x: x, da.ones(3))
    with pytest.raises(ft.errors.UnsupportedOperationError, match="cannot travel"):
        ft.dask.map(
            lambda x: ft.pure_callback(np.sum, ft.ShapeDtypeStruct((), np.float64), x), np.ones(3)
        )
