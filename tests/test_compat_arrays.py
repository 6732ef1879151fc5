"""Arrays in code written for JAX and autograd: what they are, and what in-place operators do."""

import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.autograd as autograd
import functrans.compat.jax as jax

jnp, lax, anp = jax.numpy, jax.lax, autograd.numpy

X = np.array([1.5, 2.0, 3.0])
S = 2.0

# in place -----------------------------------------------------------------------------------------

OPERATORS = {
    "iadd": X, "isub": X, "imul": X, "itruediv": X, "ifloordiv": X, "imod": X, "ipow": X,
    "imatmul": np.ones((2, 2)), "iand": np.array([5, 6]), "ior": np.array([5, 6]),
    "ixor": np.array([5, 6]), "ilshift": np.array([5, 6]), "irshift": np.array([5, 6]),
}  # fmt: skip


def _other(x: Any) -> Any:
    return np.full(x.shape, 3.0) if x.ndim == 2 else 2 if x.dtype.kind == "i" else S


def _out_of_place(name: str) -> Callable[[Any, Any], Any]:
    plain = name[1:] + ("_" if name in ("iand", "ior") else "")
    return getattr(operator, plain)


def _both(name: str, x: Any, operate: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
    old = new = x
    new = operate(new, _other(x))
    return old, new


TRANSFORMS: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "none": lambda f, x: f(x),
    "jit": lambda f, x: jax.jit(f)(x),
    "vmap": lambda f, x: jax.vmap(f)(x[None]),
    "jit of vmap": lambda f, x: jax.jit(jax.vmap(f))(x[None]),
    "scan": lambda f, x: lax.scan(lambda c, _: (c, f(c)), x, None, 2),
    "while": lambda f, x: lax.fori_loop(0, 2, lambda i, p: f(p[0]), (x, x)),
    "cond": lambda f, x: jax.jit(lambda x: lax.cond(x.sum() > 0, f, f, x))(x),
    "map": lambda f, x: lax.map(f, x[None]),
    "checkpoint": lambda f, x: jax.checkpoint(f)(x),
}
DERIVATIVES: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "grad": lambda f, x: jax.grad(f)(x),
    "value_and_grad": lambda f, x: jax.value_and_grad(f)(x),
    "jvp": lambda f, x: jax.jvp(f, (x,), (x,)),
    "vjp": lambda f, x: jax.vjp(f, x)[1](1.0),
    "linearize": lambda f, x: jax.linearize(f, x)[1](x),
    "hessian": lambda f, x: jax.hessian(f)(x),
    "grad of jit": lambda f, x: jax.grad(jax.jit(f))(x),
    "jit of grad": lambda f, x: jax.jit(jax.grad(f))(x),
    "grad of grad": lambda f, x: jax.grad(lambda x: jax.grad(f)(x).sum())(x),
    "autograd": lambda f, x: autograd.grad(f)(np.array(x)),
    "autograd jacobian": lambda f, x: autograd.jacobian(f)(np.array(x)),
    "autograd jvp": lambda f, x: autograd.make_jvp(f)(np.array(x))(np.array(x)),
    "autograd hvp": lambda f, x: autograd.hessian_vector_product(f)(np.array(x), np.array(x)),
}


def _assert_same(found: Any, expected: Any) -> None:
    leaves, others = ft.tree.leaves(found), ft.tree.leaves(expected)
    assert len(leaves) == len(others)
    for leaf, other in zip(leaves, others, strict=True):
        np.testing.assert_array_equal(leaf, other)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_augmented_assignments_keep_the_old_value(name: str, transform: str) -> None:
    x = jnp.array(OPERATORS[name])
    apply = TRANSFORMS[transform]

    def run(operate: Callable[[Any, Any], Any]) -> Any:
        def f(x: Any) -> Any:
            old, new = _both(name, 1 * x, operate)
            return old.astype(x.dtype), new.astype(x.dtype)

        return apply(f, x)

    _assert_same(run(getattr(operator, name)), run(_out_of_place(name)))


@pytest.mark.parametrize("transform", DERIVATIVES)
@pytest.mark.parametrize("name", ["iadd", "isub", "imul", "itruediv", "ipow", "imod"])
def test_derivatives_see_the_old_value(name: str, transform: str) -> None:
    apply = DERIVATIVES[transform]

    def run(operate: Callable[[Any, Any], Any]) -> Any:
        def f(x: Any) -> Any:
            old, new = _both(name, 1.0 * x, operate)
            return (old * new**2).sum()

        return apply(f, jnp.array(X))

    _assert_same(run(getattr(operator, name)), run(_out_of_place(name)))


def test_native_functions_write_in_place_before_and_after() -> None:
    def f(x: Any) -> Any:
        old = x = 1.0 * x
        x += 1.0
        return old

    twice = ft.jit(f)(X), jax.jit(f)(X), ft.jit(f)(X), jax.jit(f)(X)
    assert [float(y[0]) for y in twice] == [2.5, 1.5, 2.5, 1.5]
    assert ft.jacobian(f)(X)[0, 0] == 1.0


def test_views_are_other_arrays() -> None:
    def f(x: Any) -> Any:
        view, flat = x[1:], x.ravel()
        view += 1.0
        x *= 2.0
        return x, view, flat

    for call in (f, jax.jit(f)):
        x, view, flat = call(jnp.array(X))
        assert (x.tolist(), view.tolist()) == ([3.0, 4.0, 6.0], [3.0, 4.0])
        assert flat.tolist() == X.tolist()


def test_broadcasting_and_promotion_make_another_array() -> None:
    x = jnp.arange(2)
    x += 0.5
    assert (x.dtype, x.tolist()) == (np.float64, [0.5, 1.5])

    def grown(x: Any) -> Any:
        x += jnp.ones((2, 1))
        return x

    assert jax.jit(grown)(x).shape == grown(x).shape == (2, 2)


def test_numpys_arrays_are_not_written_to_by_arrays_that_are_not() -> None:
    def f(x: Any) -> Any:
        total = first = np.ones(3)
        total += x
        second = total
        total *= x
        return total, second + 0 * total, first + 0 * total

    expected = (1 + X) * X, 1 + X, np.ones(3)
    for name, call in (("none", f), ("jit", jax.jit(f)), ("vmap", lambda x: jax.vmap(f)(x[None]))):
        for found, other in zip(call(jnp.array(X)), expected, strict=True):
            np.testing.assert_array_equal(np.ravel(found), other, err_msg=name)
    slopes = jax.jacobian(f)(jnp.array(X))
    for found, other in zip(slopes, (1 + 2 * X, np.ones(3), np.zeros(3)), strict=True):
        np.testing.assert_array_equal(np.diag(found), other)


def test_numpys_arrays_are_written_to_by_their_own() -> None:
    total = np.zeros(3)
    kept = []
    for _ in range(2):
        total += np.ones(3)
        kept.append(total)
    np.add(J, J, out=total)
    assert kept[0] is kept[1] is total
    assert total.tolist() == (2 * X).tolist()
    matrix = first = np.eye(2)
    matrix @= jnp.ones((2, 2))
    assert first.tolist() == np.eye(2).tolist()
    assert matrix.tolist() == np.ones((2, 2)).tolist()
    places = np.zeros(3)
    places[1:] += J[1:]
    assert places.tolist() == [0.0, *X[1:]]


def test_sorting_gives_a_copy() -> None:
    x = jnp.array([3.0, 1.0, 2.0])
    assert x.sort().tolist() == jax.jit(lambda x: x.sort())(x).tolist() == [1.0, 2.0, 3.0]
    assert x.tolist() == [3.0, 1.0, 2.0]
    assert np.sort(x).tolist() == jnp.sort(x).tolist() == [1.0, 2.0, 3.0]  # NumPy's own code


def test_what_writes_into_arrays_gives_others() -> None:
    zeros = jnp.zeros((2, 2))
    calls: dict[str, Callable[..., Any]] = {
        "fill_diagonal": lambda a, v, **o: jnp.fill_diagonal(a, v, **o),
        "put": lambda a, v, **o: jnp.put(a, np.array([0, 3]), v, **o),
        "place": lambda a, v, **o: jnp.place(a, np.eye(2) > 0, jnp.stack([v, v]), **o),
        "put_along_axis": lambda a, v, **o: jnp.put_along_axis(a, np.array([[0], [1]]), v, 1, **o),
        "at": lambda a, v, **o: jnp.add.at(a, (np.array([0, 1]), np.array([0, 1])), v, **o),
    }
    for call in calls.values():
        for under in (lambda f: f, jax.jit):
            found = under(lambda v, call=call: call(zeros, v, inplace=False))(3.0)
            assert found.tolist() == [[3.0, 0.0], [0.0, 3.0]]
        assert jax.grad(lambda v, call=call: call(zeros, v, inplace=False).sum())(3.0) == 2.0
        with pytest.raises(ValueError, match="pass inplace=False"):
            call(zeros, 3.0)
    assert not zeros.any()


def test_options_of_ufuncs_may_be_arrays() -> None:
    where = J > 1.6
    assert jnp.sum(J, where=where) == J.sum(where=where) == np.sum(J, where=where) == 5.0
    assert np.add(J, 1.0, where=where, out=np.zeros(3)).tolist() == [0.0, 3.0, 4.0]
    assert np.max(J, initial=J[2] + 1) == 4.0
    assert np.add.reduceat(J, jnp.array([0, 2])).tolist() == [3.5, 3.0]


def test_methods_of_ufuncs_give_arrays() -> None:
    assert jnp.add.reduce(J).at[()].get() == jax.jit(jnp.add.reduce)(J) == 6.5
    assert jnp.multiply.outer(J, J).at[0, 0].get() == 2.25
    assert jnp.maximum.accumulate(J).at[0].get() == 1.5


def test_arrays_are_told_from_numpys() -> None:
    for kind in (jax.Array, jnp.ndarray):
        assert isinstance(J, kind)
        assert isinstance(J[0], kind)
        assert isinstance(jnp.float32(1), kind)
        assert not isinstance(X, kind)
        assert not isinstance(1.0, kind)
        assert jax.jit(lambda x, kind=kind: 1.0 * isinstance(x, kind))(X) == 1.0


def test_boxes_of_autograd_rebind_and_arrays_are_written_to() -> None:
    def f(x: Any) -> Any:
        constant = kept = anp.ones(3)
        constant += 1
        old = x
        x *= 2
        return anp.sum(old * x * kept)

    assert autograd.grad(f)(X).tolist() == (8 * X).tolist()
    assert X[0] == 1.5


def test_results_share_no_memory_with_numpys_arrays() -> None:
    for function in (
        jax.jit(lambda x: x), jnp.asarray, jnp.array, jnp.ravel, jnp.transpose, jax.device_put,
        lambda x: jnp.reshape(x, (3, 1)), lambda x: jnp.broadcast_to(x, (2, 3)),
    ):  # fmt: skip
        given = X.copy()
        result = function(given)
        given += 1
        assert result.ravel()[0] == 1.5


# autograd -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [anp.zeros, np.zeros])
def test_assignments_to_new_arrays_are_differentiated(make: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        y = make(2)
        y[0] = 3.0 * x[0]
        y[1:] = x[1:2] ** 2
        return anp.sum(y * y)

    expected = [18.0 * X[0], 4.0 * X[1] ** 3, 0.0]
    for operator_ in (autograd.grad, autograd.jacobian, autograd.elementwise_grad):
        np.testing.assert_allclose(operator_(f)(X), expected)
    np.testing.assert_allclose(np.diag(autograd.hessian(f)(X)), [18.0, 12.0 * X[1] ** 2, 0.0])


def test_assignments_to_integers_are_refused() -> None:
    def f(x: Any) -> Any:
        y = anp.zeros(2, dtype=int)
        y[0] = x[0]
        return anp.sum(y * x[:2])

    with pytest.raises(TypeError, match="written to an array of int64"):
        autograd.grad(f)(X)


@pytest.mark.parametrize("x", [2.0, np.float64(2.0), X])
def test_types_are_those_of_the_values(x: Any) -> None:
    builtins = autograd.builtins
    name, is_number = type(x).__name__, isinstance(x, float)
    seen = []

    def f(x: Any) -> Any:
        seen.append(builtins.type(x).__name__ == name)
        seen.append(builtins.isinstance(2.0 * x, float) == is_number)
        seen.append(builtins.isinstance(x, (int, str)))
        return anp.sum(x * x)

    autograd.grad(f)(x)
    autograd.grad(lambda x: anp.sum(autograd.grad(f)(x)))(x)
    autograd.make_jvp(f)(x)(x)
    assert seen == [True, True, False] * 3


def test_derivatives_of_numbers_are_numbers() -> None:
    assert type(autograd.grad(anp.sin)(1.0)) is np.float64
    assert type(autograd.value_and_grad(anp.sin)(1.0)[0]) is np.float64
    assert type(autograd.make_vjp(anp.sin)(1.0)[0](1.0)) is np.float64
    assert type(autograd.scipy.stats.norm.cdf(0.3)) is np.float64


def test_the_derivative_of_cholesky_is_symmetric() -> None:
    a = np.array([[4.0, 2.0], [2.0, 9.0]])
    found = autograd.grad(lambda a: anp.linalg.cholesky(a)[1, 0])(a)
    np.testing.assert_allclose(found, [[-0.125, 0.25], [0.25, 0.0]])
    value = autograd.value_and_grad(lambda a: anp.sum(anp.linalg.cholesky(a)))(np.tril(a))[0]
    np.testing.assert_allclose(value, np.linalg.cholesky(a).sum())


# what results are ---------------------------------------------------------------------------------

J = jnp.array(X)


def _squares(x: Any) -> Any:
    return {"a": x * x}


def test_rules_are_given_arrays_with_places() -> None:
    seen: list[tuple[str, bool]] = []

    def see(who: str, *values: Any) -> None:
        seen.extend((who, hasattr(leaf, "at")) for leaf in ft.tree.leaves(values))

    @jax.custom_vjp
    def twice(x: Any) -> Any:
        see("fun", x)
        return 2.0 * x

    def forward(x: Any) -> Any:
        see("fwd", x)
        return 2.0 * x, (x, {"x": x})

    def backward(kept: Any, g: Any) -> Any:
        see("bwd", kept, g)
        return (2.0 * g,)

    twice.defvjp(forward, backward)

    @jax.custom_jvp
    def thrice(x: Any) -> Any:
        see("fun", x)
        return 3.0 * x

    @thrice.defjvp
    def push(primals: Any, tangents: Any) -> Any:
        see("jvp", primals)
        return thrice(*primals), 3.0 * tangents[0]

    for function in (twice, thrice):
        assert function(X).at[0].get() == function(X)[0]
        jax.grad(lambda x, function=function: function(x).sum())(X)
    jax.jvp(thrice, (X,), (X,))
    assert {who for who, _ in seen} == {"fun", "fwd", "bwd", "jvp"}
    assert all(flag for _, flag in seen)


RESULTS: dict[str, Callable[[], Any]] = {
    "jit": lambda: jax.jit(_squares)(X),
    "grad": lambda: jax.grad(lambda x: _squares(x)["a"].sum())(X),
    "value_and_grad": lambda: jax.value_and_grad(lambda x: (x.sum(), x), has_aux=True)(X),
    "vmap": lambda: jax.vmap(_squares)(X),
    "jacfwd": lambda: jax.jacfwd(_squares)(X),
    "jacrev": lambda: jax.jacrev(_squares)(X),
    "hessian": lambda: jax.hessian(lambda x: (x**3).sum())(X),
    "vjp": lambda: (jax.vjp(_squares, X)[0], jax.vjp(_squares, X)[1]({"a": X})),
    "jvp": lambda: jax.jvp(_squares, (X,), (X,)),
    "linearize": lambda: (jax.linearize(_squares, X)[0], jax.linearize(_squares, X)[1](X)),
    "linear_transpose": lambda: jax.linear_transpose(lambda x: 2.0 * x, X)(X),
    "hvp": lambda: jax.jvp(jax.grad(lambda x: (x**3).sum()), (X,), (X,)),
    "lower": lambda: jax.jit(_squares).lower(X).compile()(X),
    "checkpoint": lambda: jax.checkpoint(_squares)(J),
    "closure_convert": lambda: jax.closure_convert(_squares, X)[0](X),
    "custom_gradient": lambda: jax.custom_gradient(lambda x: (x * x, lambda g: (g,)))(J),
    "pure_callback": lambda: jax.pure_callback(np.sin, J, X),
    "ravel_pytree": lambda: (
        jax.flatten_util.ravel_pytree({"a": X})[0],
        jax.flatten_util.ravel_pytree({"a": X})[1](X),
    ),
    "scan": lambda: lax.scan(lambda c, x: (c + x, c), 0.0, X),
    "while_loop": lambda: lax.while_loop(lambda x: x.sum() < 50, lambda x: 2 * x, X),
    "fori_loop": lambda: lax.fori_loop(0, 3, lambda i, x: x * 2, X),
    "cond": lambda: lax.cond(True, _squares, _squares, X),
    "switch": lambda: lax.switch(0, [_squares, _squares], X),
    "map": lambda: lax.map(lambda x: 2 * x, X),
    "associative_scan": lambda: lax.associative_scan(jnp.add, X),
    "stop_gradient": lambda: lax.stop_gradient(X),
    "cg": lambda: jax.scipy.sparse.linalg.cg(lambda v: 2 * v, X)[0],
    "minimize": lambda: (
        jax.scipy.optimize.minimize(lambda x: ((x - 1) ** 2).sum(), X, method="BFGS").x
    ),
    "vectorize": lambda: jnp.vectorize(lambda x: 2 * x)(X),
    "initializer": lambda: jax.nn.initializers.normal()(jax.random.key(0), (2, 2)),
    "random": lambda: jax.random.split(jax.random.key(0)),
    "tree.map": lambda: jax.tree.map(lambda x: 2 * x, {"a": J}),
    "element": lambda: J[0],
    "iteration": lambda: list(J),
    "unpacking": lambda: (lambda a, b, c: (a, b, c))(*J),
    "places": lambda: (J.at[0].get(), J.at[0].set(1.0), J[0].at[()].add(1.0)),
    "number": lambda: (1 + J[0], J.sum() + 1, jnp.sum(X), abs(J[0]), -J[0], J[0] > 1),
}


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_arrays_with_places(name: str) -> None:
    leaves = ft.tree.leaves(RESULTS[name]())
    assert leaves
    for leaf in leaves:
        assert isinstance(leaf, ft.Array)
        assert leaf.at[...].get().shape == leaf.shape


@pytest.mark.parametrize("name", RESULTS)
def test_so_are_those_inside_of_transforms(name: str) -> None:
    """A constant under a trace is such an array, too."""

    def inside(_: Any) -> float:
        test_results_are_arrays_with_places(name)
        return 0.0

    if name not in ("lower", "minimize"):  # which are not called under a trace
        jax.jit(inside)(1.0)
        jax.grad(inside)(1.0)


METHODS = {
    "argmax": (), "argmin": (), "argsort": (), "astype": (int,), "clip": (0.0, 1.0), "copy": (),
    "cumprod": (), "cumsum": (), "dot": (X,), "flatten": (), "max": (), "mean": (), "min": (),
    "nonzero": (), "prod": (), "ravel": (), "repeat": (2,), "reshape": (3, 1), "round": (),
    "searchsorted": (2.0,), "sort": (), "squeeze": (), "std": (), "sum": (), "take": (0,),
    "transpose": (), "var": (), "any": (), "all": (), "conj": (), "compress": ([True],),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_give_arrays_with_places(name: str) -> None:
    result = getattr(J, name)(*METHODS[name])
    for leaf in ft.tree.leaves(result):
        assert isinstance(leaf.at[...].get(), ft.Array)
    expected = np.sort(X) if name == "sort" else getattr(X, name)(*METHODS[name])
    np.testing.assert_array_equal(result, expected)


def test_linear_functions_are_containers_of_their_arrays() -> None:
    _, pull = jax.vjp(jnp.sin, J)
    (kept,) = jax.tree.leaves(pull)
    np.testing.assert_array_equal(kept, X)
    (found,) = jax.jit(lambda pull, g: pull(g))(pull, J)
    np.testing.assert_allclose(found, X * np.cos(X))
    elsewhere = jax.tree.map(lambda x: 2 * x, pull)
    np.testing.assert_allclose(elsewhere(J)[0], X * np.cos(2 * X))


def test_jitted_functions_tell_what_they_were_made_of() -> None:
    def f(x: Any) -> Any:
        return 2.0 * x

    assert jax.jit(f).__wrapped__ is f
    assert jax.jit(f).__name__ == "f"


def test_user_functions_are_given_arrays_with_places_by_loops() -> None:
    x = np.ones(3)
    results = {
        "cond": lax.cond(True, lambda a: a.at[0].set(5.0), lambda a: a, x),
        "switch": lax.switch(1, [lambda a: a, lambda a: a.at[0].set(5.0)], x),
        "while_loop": lax.while_loop(lambda a: a[0] < 5, lambda a: a.at[0].set(5.0), x),
        "fori_loop": lax.fori_loop(0, 2, lambda i, a: a.at[0].set(5.0), x),
        "scan": lax.scan(lambda c, _: (c.at[0].set(5.0), None), x, None, 2)[0],
        "map": lax.map(lambda a: a.at[0].set(5.0), x[None])[0],
        "vmap": jax.vmap(lambda a, b: b.at[0].set(5.0 * a), (0, None))(np.ones(1), J * 0 + 1)[0],
    }
    for name, found in results.items():
        assert found.tolist() == [5.0, 1.0, 1.0], name


@jax.jit
def _by_name(x: Any) -> Any:
    return 2.0 * x


def test_functions_that_transforms_give_pickle() -> None:
    for function in (jax.grad(np.sin), jax.jit(np.sin), _by_name):
        again = pickle.loads(pickle.dumps(function))
        assert again(1.0).at[...].get() == function(1.0)


def test_got_arrays_are_numpys() -> None:
    got = jax.device_get({"a": J, "b": 1.0})
    assert type(got["a"]) is np.ndarray
    assert got["b"] == 1.0
    got["a"] += 1
    assert J[0] == 1.5


def test_a_jitted_function_means_the_same_wherever_it_is_called() -> None:
    """In-place operators have the meaning of where it was made, whatever was called before."""

    def second_name(x: Any) -> Any:
        y = x * 1
        z = y
        y += 1
        return z

    native, other = ft.jit(second_name), jax.jit(second_name)
    x = np.ones(2)
    for _ in range(3):
        np.testing.assert_array_equal(native(x), [2, 2])
        np.testing.assert_array_equal(other(x), [1, 1])
        np.testing.assert_array_equal(jax.jit(lambda x: native(x))(x), [2, 2])
        np.testing.assert_array_equal(ft.jit(lambda x: other(x))(x), [1, 1])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(ft.jit(_second_name)))(x), [2, 2])
        np.testing.assert_array_equal(pickle.loads(pickle.dumps(jax.jit(_second_name)))(x), [1, 1])


def _second_name(x: Any) -> Any:
    y = x * 1
    z = y
    y += 1
    return z


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: jnp.split(x, 3),
        lambda x: jnp.array_split(x, 2),
        lambda x: jnp.unstack(x),
        lambda x: jnp.broadcast_arrays(x, x[:1]),
        lambda x: jnp.meshgrid(x[0], x[1], copy=False),
        lambda x: jnp.ix_(x[0], x[1]),
        lambda x: jnp.atleast_1d(x, x),
    ],
)
def test_parts_of_numpys_arrays_share_no_memory_with_them(parts: Any) -> None:
    x = np.arange(12.0).reshape(3, 4)
    for part in parts(x):
        assert isinstance(part, jax.Array)
        assert not np.shares_memory(part, x)
