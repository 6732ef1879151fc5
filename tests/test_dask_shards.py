"""``ft.dask.shard_map`` is the same body under ``ft.vmap(axis_name=...)``, on workers."""

import dask
import dask.array as da
import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans import lax
from functrans.dask.phases import cut

P = ft.dask.P
CUT = P("i")
N = 4
RNG = np.random.default_rng(0)
X = RNG.normal(size=(8, 3))
W = RNG.normal(size=3)


@pytest.fixture(autouse=True)
def _in_this_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


# bodies: (w, x of a shard) -> {"own": [k, ...], "all": the same for all shards}


def softmax(w, x):
    z = x @ w
    top = lax.pmax(fnp.max(z), "i")
    total = lax.psum(fnp.sum(fnp.exp(z - top)), "i")
    return {"own": fnp.exp(z - top) / total, "all": top + fnp.log(total)}


def whitened(w, x):
    mean = lax.pmean(fnp.mean(x, 0), "i")
    spread = lax.pmean(fnp.mean((x - mean) ** 2, 0), "i")
    return {"own": (x - mean) / fnp.sqrt(spread) * w, "all": spread}


def neighbours(w, x):
    rows = lax.all_gather(fnp.tanh(x @ w), "i")
    i = lax.axis_index("i")
    after = rows[(i + 1) % N]
    low = lax.pmin(fnp.min(after * x[:, 0]), "i")
    return {"own": after * x[:, 0] + i, "all": low * lax.psum(after @ after, "i")}


def nothing(w, x):
    return {"own": fnp.sin(x * w), "all": fnp.sum(w)}


def looped(w, x):
    """Power iterations with a matrix that is spread by rows, in a loop whose results are kept."""

    def step(v, _):
        new = lax.psum(x.T @ (x @ v), "i")
        new = new / fnp.sqrt(fnp.sum(new**2))
        return new, (fnp.sum(x @ new), new[0])

    last, (sums, firsts) = lax.scan(step, w, None, length=3)
    return {"own": x @ last + sums[1], "all": last * firsts[0]}


def nested(w, x):
    """Loops in loops; one reads rows of an array."""

    def outer(v, row):
        def inner(_, u):
            return fnp.tanh(u + lax.pmean(x @ u, "i")[0] * row)

        return lax.fori_loop(0, 2, inner, v), lax.axis_index("i") * fnp.sum(v)

    last, own = lax.scan(outer, w, x, reverse=True)
    return {"own": own, "all": lax.psum(last, "i")}


def in_calls(w, x):
    """Collectives inside of jit, checkpoint and a user's rule."""

    @ft.custom_jvp
    def ruled(z):
        return lax.psum(fnp.sum(z**2), "i")

    ruled.defjvp(lambda p, t: (ruled(p[0]), lax.psum(fnp.sum(2 * p[0] * t[0]), "i")))
    total = ft.jit(lambda z: lax.psum(fnp.sum(fnp.exp(z)), "i"))(x @ w)
    again = ft.checkpoint(lambda z: lax.pmean(fnp.cos(z), "i"))(x @ w)
    return {"own": again * total, "all": ruled(x @ w)}


BODIES = [softmax, whitened, neighbours, nothing, looped, nested, in_calls]


def sharded(body):
    return ft.dask.shard_map(body, (P(), P("i")), {"own": P("i"), "all": P()}, "i", axis_size=N)


def vmapped(body):
    def of(w, x):
        parts = x.reshape((N, 2, *x.shape[1:]))
        out = ft.vmap(body, (None, 0), axis_name="i")(w, parts)
        own = out["own"]
        return {"own": own.reshape((N * 2, *own.shape[2:])), "all": out["all"][0]}

    return of


def loss(f):
    def of(w, x):
        out = f(w, x)
        return fnp.sum(fnp.sin(out["own"])) + fnp.sum(out["all"] ** 2)

    return of


TRANSFORMS = {
    "value": lambda f: f(W, X),
    "jit": lambda f: ft.jit(f)(W, X),
    "jvp": lambda f: ft.jvp(f, (W, X), (np.cos(W), np.sin(X))),
    "grad": lambda f: ft.grad(loss(f), argnums=(0, 1))(W, X),
    "jit of grad": lambda f: ft.jit(ft.grad(loss(f)))(W, X),
    "hvp": lambda f: ft.hvp(lambda w: loss(f)(w, X), (W,), (np.cos(W),)),
    "jacrev": lambda f: ft.jacrev(lambda w: f(w, X)["all"])(W),
    "vmap": lambda f: ft.vmap(f, (0, None))(np.stack([W, -W]), X),
    "vmap of grad": lambda f: ft.vmap(ft.grad(loss(f)), (None, 1))(W, np.stack([X, 2 * X], 1)),
}


def check(found, expected, rtol=1e-10):
    assert ft.tree.structure(found) == ft.tree.structure(expected)
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol, 1e-11)


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_it_equals_vmap(body, name):
    check(TRANSFORMS[name](sharded(body)), TRANSFORMS[name](vmapped(body)))


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_bits_are_those_of_vmap_where_the_order_is_the_same(scheduler):
    """Four vectors are added from the first to the last by both."""

    def body(x):
        total = lax.psum(x[0], "i")
        return total, lax.pmax(x[0] * total, "i"), lax.all_gather(x[0], "i")

    x = X[:4] * 10.0 ** RNG.integers(-8, 8, (4, 3))
    with dask.config.set(scheduler=scheduler):
        found = ft.dask.shard_map(body, P("i"), P(), "i", axis_size=4)(x)
    expected = ft.vmap(body, axis_name="i")(x[:, None])
    for one, other in zip(found, expected, strict=True):
        assert one.tobytes() == np.ascontiguousarray(other[0]).tobytes()


def test_many_shards_are_reduced_in_a_tree():
    x = RNG.normal(size=(100, 2))

    def body(x):
        return lax.psum(x, "i")[0], lax.pmin(x, "i")[0], lax.all_gather(x, "i", tiled=True)

    total, low, every = ft.dask.shard_map(body, P("i"), P(), "i", axis_size=100)(x)
    np.testing.assert_allclose(total, x.sum(0), 1e-12)
    np.testing.assert_array_equal(low, x.min(0))
    np.testing.assert_array_equal(every, x)


def test_chunks_of_dask_arrays_are_shards():
    x = da.from_array(X, chunks=(2, 3))

    def of_rows(w, rows):
        return ft.dask.shard_map(softmax, (P(), P("i")), {"own": P("i"), "all": P()}, "i")(w, rows)

    check(of_rows(W, x), vmapped(softmax)(W, X))
    found = ft.grad(lambda w: loss(of_rows)(w, x))(W)
    check(found, ft.grad(lambda w: loss(vmapped(softmax))(w, X))(W))
    scale = np.array(1.5)

    def captured(c):
        def body(rows):
            return lax.psum(fnp.sum(fnp.sin(rows * c)), "i")

        return ft.dask.shard_map(body, P("i"), P(), "i")(x)

    np.testing.assert_allclose(ft.grad(captured)(scale), np.sum(X * np.cos(X * scale)))


def test_other_axes_are_cut_and_joined():
    def body(a, b):
        return lax.psum(a @ b, "i"), a * 2.0, b

    a, b = RNG.normal(size=(3, 8)), RNG.normal(size=(8, 2))
    mapped = ft.dask.shard_map(
        body, (P(None, "i"), P("i")), (P(), P(None, "i"), P("i")), "i", axis_size=N
    )
    product, twice, same = mapped(a, b)
    np.testing.assert_allclose(product, a @ b)
    np.testing.assert_array_equal(twice, 2 * a)
    np.testing.assert_array_equal(same, b)


def test_loops_that_wait_for_a_condition():
    def body(x):
        def more(c):
            return lax.psum(fnp.sum(c[0] ** 2), "i") > 0.5

        return lax.while_loop(more, lambda c: (c[0] * 0.5, c[1] + 1), (x, 0))

    specs = (P("i"), P())
    mapped = ft.dask.shard_map(body, P("i"), specs, "i", axis_size=N)
    expected, counts = ft.vmap(body, axis_name="i")(X.reshape(N, 2, 3))
    found, count = mapped(X)
    np.testing.assert_array_equal(found, expected.reshape(8, 3))
    assert count == counts[0]
    tangent = ft.jvp(lambda x: mapped(x)[0], (X,), (X,))[1]
    np.testing.assert_array_equal(tangent, found)


def converged(w, x):
    """Reverse mode keeps what each iteration needs."""

    def more(c):
        return lax.psum(fnp.sum(c[0] ** 2), "i") > 0.05

    def step(c):
        v, z = c
        return fnp.tanh(v * 0.5 + 0.01 * lax.pmean(x @ z, "i")[0]), fnp.sin(z) * v

    v, z = lax.while_loop(more, step, (x[0], w))
    return {"own": v, "all": lax.psum(z * x[1], "i")}


@pytest.mark.parametrize("name", ["value", "jvp", "grad", "jit of grad", "hvp", "jacrev"])
def test_reverse_mode_through_loops_that_wait_for_a_condition(name):
    def mapped(w, x):
        specs = {"own": P("i"), "all": P()}
        return ft.dask.shard_map(converged, (P(), P("i")), specs, "i", axis_size=N)(w, x)

    def expected(w, x):
        out = ft.vmap(converged, (None, 0), axis_name="i")(w, x.reshape(N, 2, 3))
        return {"own": out["own"].reshape(-1), "all": out["all"][0]}

    check(TRANSFORMS[name](mapped), TRANSFORMS[name](expected))


def test_independent_collectives_share_an_exchange():
    def body(x):
        return lax.psum(x, "i") + lax.pmax(x, "i") * lax.psum(x * x, "i")

    jaxpr = ft.make_jaxpr(lambda x: ft.dask.shard_map(body, P("i"), P("i"), "i", axis_size=N)(x))(X)
    (eqn,) = (e for e in jaxpr.eqns if e.primitive.name == "distributed_map")
    phases = cut(eqn.params["programs"][0], "i").phases
    assert [len(phase.exchanges) for phase in phases] == [3, 0]
    assert "psum" in str(jaxpr)


# refusals ---------------------------------------------------------------------------------------


def refused(kind, words, body, in_specs=CUT, out_specs=CUT, name="i", args=(X,), **more):
    with pytest.raises(kind, match=words):
        ft.dask.shard_map(body, in_specs, out_specs, name, **({"axis_size": N} | more))(*args)


def test_bad_specs_are_refused():
    def same(x):
        return x

    refused(
        ft.errors.ShapeError,
        r"axis 0 of args\[0\] has 7 entries.*4 shards do not",
        same,
        args=(X[:7],),
    )
    refused(ft.errors.ShapeError, r"\[8, 3\].*no axis 2 to be cut", same, P(None, None, "i"))
    refused(ft.errors.ShapeError, r"result of a shard has shape \[\].*joined", lambda x: fnp.sum(x))
    refused(ValueError, r"the spec of args\[0\] is P\('j'\).*axis of shards is 'i'", same, P("j"))
    refused(ValueError, r"expected 'i' on one axis at most", same, P("i", "i"))
    refused(ValueError, "give axis_size", same, axis_size=None)
    refused(ValueError, "expected a positive integer", same, axis_size=0)
    refused(TypeError, r"expected ft.dask.P", same, ("i",))
    refused(ft.errors.TreeMismatchError, "one entry for each of 1", same, (P(), P()))
    refused(ft.errors.TreeMismatchError, "out_specs", same, out_specs=(P(), P()))
    refused(NameError, "no vmap with axis_name='j'", lambda x: lax.psum(x, "j"))
    x = da.from_array(X, chunks=(3, 3))
    refused(ft.errors.ShapeError, "chunk 2 of 3.*rechunk", same, args=(x,), axis_size=None)
    refused(ValueError, "data in parts along its first axis", same, P(), args=(x,), axis_size=None)
    refused(ValueError, "axis_size is 4, but the data has 8", same, args=(x.rechunk((1, 3)),))


def test_collectives_where_shards_may_part_are_refused():
    def branch(x):
        return lax.cond(fnp.sum(x) > 0, lambda x: lax.psum(x, "i"), lambda x: x, x)

    refused(ft.errors.UnsupportedOperationError, "inside a cond", branch)

    def apart(x):
        return lax.while_loop(
            lambda c: fnp.sum(c) > 1.0, lambda c: c - lax.pmean(fnp.abs(c), "i"), x
        )

    refused(ft.errors.UnsupportedOperationError, "holds for . of 4 shards", apart)


def test_errors_name_the_shard():
    def body(x):
        return lax.psum(fnp.linalg.cholesky(fnp.diag(x[:, 0])), "i")

    with pytest.raises(np.linalg.LinAlgError) as caught:
        ft.dask.shard_map(body, P("i"), P(), "i", axis_size=N)(-np.abs(X))
    assert any("in shard" in note for note in caught.value.__notes__)
