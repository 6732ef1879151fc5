"""``functrans.compat.jax`` and ``functrans.compat.autograd``: tables of names, and ``install``."""

import functools
import importlib
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.autograd
import functrans.compat.jax
from functrans.compat.autograd import table as autograd_table
from functrans.compat.jax import table as jax_table

TABLES = {"jax": jax_table.TABLE, "autograd": autograd_table.TABLE}
MODULES = [
    pytest.param(
        f"functrans.compat.{library}" + (f".{name}" if name else ""), id=f"{library}.{name}"
    )
    for library, table in TABLES.items()
    for name in table
]
OTHERS = {"bfloat16"}  # of another package, which may be missing


@pytest.mark.parametrize("name", MODULES)
def test_every_name_of_the_table_is_there(name: str) -> None:
    module = importlib.import_module(name)
    for public in dir(module):
        if public not in OTHERS:
            getattr(module, public)


def test_other_names_say_where_they_were_looked_for() -> None:
    with pytest.raises(AttributeError, match=r"jax\.numpy\.nothing is not offered by functrans"):
        functrans.compat.jax.numpy.nothing  # noqa: B018  # it raises


def _run(code: str) -> str:
    root = Path(ft.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], cwd=root, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert not done.returncode, done.stderr
    return done.stdout


def test_installed_modules_are_what_import_finds() -> None:
    text = _run(
        """
        import functrans.compat.autograd, functrans.compat.jax
        functrans.compat.jax.install()
        functrans.compat.autograd.install()
        import jax
        import jax.numpy as jnp
        import jax.scipy.stats.norm as normal
        from jax.tree_util import tree_map
        from jax import lax, random
        import autograd.numpy as anp
        from autograd import elementwise_grad
        key = random.PRNGKey(0)
        print(jax.jit(jax.grad(lambda x: jnp.sum(lax.sin(x)) + normal.logpdf(0.0)))(jnp.zeros(2)))
        print(tree_map(jnp.shape, {"w": random.normal(key, (3,))}))
        print(elementwise_grad(anp.square)(anp.ones(2)))
        """
    )
    assert text.splitlines() == ["[1. 1.]", "{'w': (3,)}", "[2. 2.]"]


def test_install_refuses_where_the_library_is_imported() -> None:
    text = _run(
        """
        import sys, types
        sys.modules["jax"] = types.ModuleType("jax")
        import functrans.compat.jax
        try:
            functrans.compat.jax.install()
        except ImportError as error:
            print(error)
        """
    )
    assert "jax itself is imported already" in text
    assert "functrans.compat.jax.install() before" in text


# jax ----------------------------------------------------------------------------------------------

jax = functrans.compat.jax
jnp = functrans.compat.jax.numpy


def test_places_of_new_arrays_are_updated_under_a_transform() -> None:
    def f(x: Any) -> Any:
        return jnp.zeros(3).at[1].set(x).at[-1].add(2 * x)

    assert jax.jit(f)(2.0).tolist() == [0.0, 2.0, 4.0]
    assert jax.jacobian(f)(2.0).tolist() == [0.0, 1.0, 2.0]


def test_places_of_arrays_are_updated_outside_of_transforms() -> None:
    x = jnp.arange(3.0)
    y = x.at[jnp.array([0, 0])].add(2.0)
    assert (x.tolist(), y.tolist()) == ([0.0, 1.0, 2.0], [4.0, 1.0, 2.0])
    doubled = jax.jit(lambda x: 2 * x)(y)
    assert doubled.at[-1].get() == 4.0
    assert doubled.at[0].multiply(0.5).at[1].set(7.0).tolist() == [4.0, 7.0, 4.0]
    assert jax.vmap(jax.grad(jnp.square))(x).at[0].set(1.0).tolist() == [1.0, 2.0, 4.0]
    assert round(jnp.sum(x).block_until_ready() / 2) == 2
    np.testing.assert_array_equal(jax.jit(lambda i: x[i])(2), 2.0)
    assert jax.jit(lambda x: x)(np.ones(2)).sum(where=None) == 2.0


def test_transformed_functions_are_methods_and_keep_their_own() -> None:
    class Model:
        @functools.partial(jax.jit, static_argnums=0)
        def scaled(self, x: Any) -> Any:
            return self.factor * x

        factor = 3.0

    assert Model().scaled(2.0) == 6.0
    assert Model.scaled.__name__ == "scaled"
    assert "multiply" in str(jax.jit(lambda x: x * x).lower(2.0).jaxpr)


def test_keywords_of_devices_and_exactness_are_taken() -> None:
    x = jnp.ones((2, 2), jnp.float32)
    assert jnp.matmul(x, x, precision=jax.lax.Precision.HIGHEST).tolist() == [[2, 2], [2, 2]]
    assert jnp.dot(x, x, preferred_element_type=jnp.float64).dtype == np.float64
    assert jax.random.normal(jax.random.key(0), (2,), out_sharding=None).shape == (2,)
    assert jnp.max(x, axis=[0, 1]) == 1
    assert jax.jit(backend="cpu")(jnp.sum)(x) == 4


def test_factorizations_read_both_triangles() -> None:
    a = np.array([[4.0, 2.0], [0.0, 9.0]])
    slope = jax.grad(lambda a: jnp.linalg.cholesky(a)[1, 0])(a)
    assert slope[0, 1] == slope[1, 0] == 0.25
    assert jnp.linalg.cholesky(a)[1, 0] == 0.5
    assert jnp.linalg.cholesky(a, symmetrize_input=False)[1, 0] == 0.0
    assert jnp.linalg.slogdet(a, method="qr")[1] == np.log(36.0)
    expm = functrans.compat.jax.scipy.linalg.expm
    np.testing.assert_allclose(expm(np.zeros((2, 2)), upper_triangular=True), np.eye(2))


def test_classes_that_are_not_registered_are_leaves() -> None:
    import dataclasses

    @dataclasses.dataclass
    class Pair:
        first: Any
        second: Any

    pairs = {"a": Pair(1.0, 2.0)}
    assert jax.tree.map(lambda pair: pair.second, pairs) == {"a": 2.0}
    assert len(jax.tree.leaves(pairs)) == 1
    assert jax.tree_util.tree_flatten(pairs)[0] == [pairs["a"]]
    jax.tree_util.register_dataclass(Pair, ["first", "second"], [])
    assert jax.tree.leaves(pairs) == [1.0, 2.0]


def test_settings_are_kept_and_doubles_stay_on() -> None:
    assert jax.config.jax_enable_x64
    with pytest.warns(UserWarning, match="changes nothing"):
        jax.config.update("jax_enable_x64", False)
    jax.config.update("jax_debug_nans", False)
    assert jax.config.jax_debug_nans is False
    assert jnp.zeros(1).dtype == np.float64
    with pytest.raises(RuntimeError, match="one device"):
        jax.pmap(jnp.sin)
    with pytest.raises(RuntimeError, match="no backend 'gpu'"):
        jax.devices("gpu")


def test_shapes_stand_for_arrays_in_functions_that_make_alike_ones() -> None:
    struct = jax.ShapeDtypeStruct((2, 3), np.float32)
    for function in (jnp.zeros_like, jnp.ones_like, jnp.empty_like, np.zeros_like):
        made = function(struct)
        assert (made.shape, made.dtype) == ((2, 3), np.float32)
    assert jnp.full_like(struct, 2.0, dtype=int).tolist() == [[2, 2, 2], [2, 2, 2]]
    with pytest.raises(TypeError):
        np.sum(struct)


# autograd -----------------------------------------------------------------------------------------

autograd = functrans.compat.autograd
anp = functrans.compat.autograd.numpy


def _loss(a: Any, b: Any, scale: float = 1.0) -> Any:
    return scale * anp.sum(anp.sin(a) * b**2)


A, B, V = np.array([0.3, 1.1]), np.array([2.0, -1.0]), np.array([0.5, 2.0])


def test_operators_take_positions_and_keywords() -> None:
    by_b = 2 * np.sin(A) * B
    np.testing.assert_allclose(autograd.grad(_loss, 1)(A, B, scale=3.0), 3 * by_b)
    first, second = autograd.grad(_loss, [0, 1])(A, B)
    np.testing.assert_allclose(first, np.cos(A) * B**2)
    np.testing.assert_allclose(second, by_b)
    value, found = autograd.value_and_grad(_loss, 1)(A, B)
    assert value == _loss(A, B)
    np.testing.assert_allclose(found, by_b)
    np.testing.assert_allclose(autograd.grad_named(_loss, "b")(A, B), by_b)
    named = autograd.multigrad_dict(_loss)(A, b=B)
    assert list(named) == ["a", "b", "scale"]
    np.testing.assert_allclose(named["b"], by_b)


def test_second_order_operators_agree() -> None:
    matrix = np.diag(-np.sin(A) * B**2)
    np.testing.assert_allclose(autograd.hessian(_loss)(A, B), matrix, atol=1e-12)
    np.testing.assert_allclose(autograd.hessian_vector_product(_loss)(A, B, V), matrix @ V)
    np.testing.assert_allclose(autograd.make_hvp(_loss)(A, B)[0](V), matrix @ V)
    jac = autograd.jacobian(anp.cumsum)(A)
    np.testing.assert_allclose(autograd.tensor_jacobian_product(anp.cumsum)(A, V), V @ jac)
    np.testing.assert_allclose(autograd.make_ggnvp(anp.cumsum)(A)(V), jac.T @ (jac @ V))
    _, tangent = autograd.make_jvp(anp.sin)(A)(V)
    np.testing.assert_allclose(tangent, np.cos(A) * V)
    np.testing.assert_allclose(autograd.elementwise_grad(anp.sin)(A), np.cos(A))
    assert autograd.grad_and_aux(lambda x: (x * x, x))(3.0) == (6.0, 3.0)


def test_operators_refuse_what_they_do_not_apply_to() -> None:
    with pytest.raises(TypeError, match="one number as result"):
        autograd.grad(anp.sin)(A)
    with pytest.raises(TypeError, match="expected a function"):
        autograd.grad(3.0)
    with pytest.raises(TypeError, match="vector space"):
        autograd.extend.vspace(3)


def test_primitives_have_the_rules_that_they_are_given() -> None:
    seen = []

    @autograd.extend.primitive
    def scaled(x: Any, y: Any, power: int = 1) -> Any:
        seen.append((type(x), type(y)))
        return np.asarray(x) ** power * y

    autograd.extend.defvjp(
        scaled,
        lambda ans, x, y, power=1: lambda g: g * power * x ** (power - 1) * y,
        lambda ans, x, y, power=1: lambda g: g * x**power,
    )
    pulled = autograd.grad(scaled, [0, 1])(2.0, 3.0, power=2)
    assert pulled == (12.0, 4.0)
    assert autograd.grad(autograd.grad(scaled))(2.0, 3.0, power=2) == 6.0
    assert seen[0] == (float, float)  # a primitive gets plain values
    autograd.extend.defjvp(scaled, lambda g, ans, x, y, power=1: g * power * x ** (power - 1) * y)
    assert autograd.make_jvp(scaled)(2.0, 3.0, power=2)(1.0)[1] == 12.0
    with pytest.raises(NotImplementedError, match="argnum 1 not defined"):
        autograd.make_jvp(scaled, 1)(2.0, 3.0)(1.0)
    with pytest.raises(TypeError, match="decorated with primitive"):
        autograd.extend.defvjp(np.sin, lambda ans, x: lambda g: g)


def test_linear_primitives_push_by_themselves() -> None:
    @autograd.extend.primitive
    def double(x: Any) -> Any:
        return x + x

    autograd.extend.defjvp(double, "same")
    assert autograd.make_jvp(double)(3.0)(2.0) == (6.0, 4.0)


def test_optimizers_reach_the_minimum_of_containers() -> None:
    from functrans.compat.autograd.misc.optimizers import adam, rmsprop, sgd

    goal = {"w": np.array([1.0, -2.0]), "b": 0.5}

    def loss(p: Any) -> Any:
        return anp.sum((p["w"] - goal["w"]) ** 2) + (p["b"] - goal["b"]) ** 2

    seen: list[int] = []
    start = {"w": np.zeros(2), "b": 0.0}
    gradient = autograd.grad(loss)
    for found in (
        sgd(lambda p, i: gradient(p), start, callback=lambda p, i, g: seen.append(i)),
        rmsprop(lambda p, i: gradient(p), start, num_iters=400, step_size=0.01),
        adam(lambda p, i: gradient(p), start, num_iters=2000, step_size=0.01),
    ):
        np.testing.assert_allclose(found["w"], goal["w"], atol=0.02)
        np.testing.assert_allclose(found["b"], goal["b"], atol=0.02)
    assert seen == list(range(200))


def test_a_function_may_have_the_name_of_its_module() -> None:
    from functrans.compat.autograd.misc import flatten
    from functrans.compat.autograd.misc.flatten import flatten_func

    vector, unflatten = flatten({"a": A, "b": 1.0})
    assert vector.tolist() == [*A, 1.0]
    assert unflatten(vector)["b"] == 1.0
    assert flatten_func(lambda x: {"c": x["a"]}, {"a": A})[0](A).tolist() == A.tolist()


def test_fixed_points_are_differentiable_twice() -> None:
    from functrans.compat.autograd.misc.fixed_points import fixed_point

    def root(a: Any) -> Any:
        def newton(a: Any) -> Any:
            return lambda x: 0.5 * (x + a / x)

        return fixed_point(newton, a, 1.0, lambda x, y: abs(x - y), 1e-13)

    assert abs(root(2.0) - 2**0.5) < 1e-12
    assert abs(autograd.grad(root)(2.0) - 0.5 / 2**0.5) < 1e-10


def test_vector_spaces_compare_and_have_bases() -> None:
    space = autograd.extend.vspace({"a": np.ones(2), "b": 1j})
    assert space.size == 4
    assert len(list(space.standard_basis())) == 4
    assert space == autograd.extend.vspace({"a": np.zeros(2), "b": 2j})
    assert space != autograd.extend.vspace({"a": np.zeros(3), "b": 2j})
    total = space.add(space.ones(), space.scalar_mul(space.ones(), 2.0))
    assert total["a"].tolist() == [3.0, 3.0]
    assert total["b"] == 3 + 3j
