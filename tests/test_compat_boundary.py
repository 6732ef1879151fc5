"""Where code written for JAX and autograd meets functrans: settings, star imports, tracebacks."""

import contextlib
import importlib
import logging
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.autograd as autograd
import functrans.compat.jax as jax
from functrans.compat.autograd import table as autograd_table
from functrans.compat.jax import settings
from functrans.compat.jax import table as jax_table

jnp, lax, anp = jax.numpy, jax.lax, autograd.numpy

# names --------------------------------------------------------------------------------------------

MODULES = [
    f"functrans.compat.{library}" + (f".{name}" if name else "")
    for library, table in (("jax", jax_table.TABLE), ("autograd", autograd_table.TABLE))
    for name in table
]


@pytest.mark.parametrize("name", MODULES)
def test_all_names_are_imported_by_a_star(name: str) -> None:
    module = importlib.import_module(name)
    listed = [public for public in dir(module) if not public.startswith("_")]
    assert sorted(public for public in module.__all__ if not public.startswith("_")) == listed
    found: dict[str, Any] = {}
    exec(f"from {name} import *", found)
    for public in listed:
        assert found[public] is getattr(module, public)


def test_modules_of_the_library_are_no_names() -> None:
    assert not {"arrays", "opaque", "settings", "table", "values"} & set(dir(jax))
    assert not {"operators", "rules", "spaces", "table", "tools"} & set(dir(autograd))


# settings -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def _set(name: str, value: object) -> Any:
    before = getattr(jax.config, name)
    jax.config.update(name, value)
    try:
        yield
    finally:
        jax.config.update(name, before)


NAN = {
    "function": lambda: jnp.log(jnp.array([1.0, -1.0])),
    "operator": lambda: jnp.zeros(2) / jnp.zeros(2),
    "element": lambda: jnp.zeros(2)[0] / 0.0,
    "jit": lambda: jax.jit(lambda x: x / x)(0.0),
    "grad": lambda: jax.grad(lambda x: jnp.sqrt(0.0 * x))(1.0),
    "scan": lambda: lax.scan(lambda c, x: (c / x, c), 0.0, jnp.zeros(2)),
}
WAYS: dict[str, Callable[[str, object], Any]] = {
    "update": _set,
    "with": lambda name, value: getattr(jax, name.removeprefix("jax_"))(value),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", NAN)
def test_debug_nans_raises_where_it_is_on(name: str, way: str) -> None:
    NAN[name]()
    with WAYS[way]("jax_debug_nans", True), pytest.raises(FloatingPointError):
        NAN[name]()
    with _set("jax_debug_nans", True), jax.debug_nans(False):
        NAN[name]()
    NAN[name]()


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
def test_debug_infs_raises_where_it_is_on(way: str) -> None:
    with WAYS[way]("jax_debug_infs", True):
        with pytest.raises(FloatingPointError, match=r"\(inf\) encountered in divide \(at test_c"):
            jnp.ones(2) / jnp.zeros(2)
        assert jnp.log(jnp.array(np.inf)) == np.inf  # which came from an operand


@pytest.mark.parametrize("way", WAYS)
def test_disable_jit_calls_functions_as_they_are(way: str) -> None:
    @jax.jit
    def f(x: Any) -> Any:
        return x if x > 0 else -x

    with WAYS[way]("jax_disable_jit", True):
        assert f(jnp.array(-2.0)) == 2.0
    with pytest.raises(ft.errors.ConcretizationError):
        f(-2.0)


@pytest.mark.parametrize("way", WAYS)
def test_log_compiles_logs(way: str, caplog: pytest.LogCaptureFixture) -> None:
    factor = len(way)  # programs are shared by functions that compute the same
    with WAYS[way]("jax_log_compiles", True):
        jax.jit(lambda x: factor * x)(1.0)
    (record,) = caplog.records
    assert record.getMessage().startswith("jit of <lambda>, program 1")
    jax.jit(lambda x: x - factor)(1.0)
    assert len(caplog.records) == 1
    assert logging.getLogger("functrans.jit").handlers == []


def test_filtering_of_tracebacks_is_switched_off() -> None:
    with _set("jax_traceback_filtering", "off"):
        assert _frames(lambda: jax.jit(lambda x: 1 / 0)(1.0))
    assert not _frames(lambda: jax.jit(lambda x: 1 / 0)(1.0))


@pytest.mark.parametrize("name", sorted(settings._REASONS))
def test_settings_that_change_nothing_warn(name: str) -> None:
    default, reason = settings._REASONS[name]
    other = not default if isinstance(default, bool) else "other"
    with pytest.warns(UserWarning, match=f"{name}=.* changes nothing: ") as caught:
        jax.config.update(name, other)
    assert reason in str(caught[0].message)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        jax.config.update(name, default)


def test_settings_that_are_not_known_or_not_possible_are_refused() -> None:
    with pytest.raises(AttributeError, match="Unrecognized config option: jax_nothing"):
        jax.config.update("jax_nothing", 1)
    with pytest.raises(AttributeError, match="no setting 'jax_nothing'"):
        jax.config.jax_nothing  # noqa: B018  # it raises
    with pytest.raises(AttributeError, match=r"jax\.config\.update\('jax_debug_nans', True\)"):
        jax.config.jax_debug_nans = True
    with pytest.raises(RuntimeError, match="computes on the CPU"):
        jax.config.update("jax_platforms", "cuda")
    with pytest.raises(ValueError, match="must be True or False, got 'yes'"):
        jax.config.update("jax_debug_nans", "yes")
    with pytest.raises(TypeError, match="the value is missing"):
        jax.debug_nans()
    jax.config.update("jax_compilation_cache_dir", "here")
    assert jax.config.read("jax_compilation_cache_dir") == "here"
    assert set(jax.config.values) <= set(dir(jax.config))


# tracebacks ---------------------------------------------------------------------------------------

ROOT = str(Path(ft.__file__).parent)
X, N = jnp.arange(3.0), np.arange(3.0)

MISTAKES: dict[str, Callable[[], Any]] = {
    "at set": lambda: X.at[7].set(1.0),
    "at get": lambda: X.at[7].get(),
    "at add": lambda: X.at[jnp.array([0, 9])].add(1.0),
    "at in jit": lambda: jax.jit(lambda x: x.at[9].set(1.0))(X),
    "index": lambda: X[9],
    "indices": lambda: X[jnp.array([9])],
    "dot": lambda: jnp.dot(X, jnp.ones(4)),
    "operator": lambda: X + jnp.ones(4),
    "method": lambda: X.reshape(2, 2),
    "grad": lambda: jax.grad(lambda x: x * 2)(X),
    "grad of an integer": lambda: jax.grad(lambda x: x * 2.0)(3),
    "vmap": lambda: jax.vmap(lambda a, b: a + b)(X, jnp.ones(4)),
    "truth in jit": lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0),
    "scan": lambda: lax.scan(lambda c, x: (c,), 0.0, X),
    "cond": lambda: lax.cond(True, lambda x: x, lambda x: jnp.ones(5), X),
    "pullback": lambda: jax.vjp(lambda x: x * 2, X)[1](jnp.ones(5)),
    "pushforward": lambda: jax.linearize(lambda x: x * 2, X)[1](jnp.ones(5)),
    "user's": lambda: jax.jit(lambda x: 1 / 0)(X),
    "tree": lambda: jax.tree.map(lambda a, b: a, {"a": 1}, {"b": 2}),
    "key": lambda: jax.random.normal("k"),
    "unravel": lambda: jax.flatten_util.ravel_pytree({"a": X})[1](jnp.ones(9)),
    "einsum": lambda: jnp.einsum("ij,jk", X, X),
    "rules": lambda: jax.custom_vjp(lambda x: x)(X),
    "name": lambda: jnp.nothing,
    "setting": lambda: jax.config.update("jax_nothing", 1),
    "device": lambda: jax.devices("gpu"),
    "autograd grad": lambda: autograd.grad(lambda x: anp.dot(x, np.ones(5)))(N),
    "autograd grad of a vector": lambda: autograd.grad(lambda x: x * 2)(N),
    "autograd grad of an integer": lambda: autograd.grad(lambda x: x * 2)(3),
    "autograd user's": lambda: autograd.grad(lambda x: 1 / 0)(1.0),
    "autograd numpy": lambda: anp.dot(N, np.ones(4)),
    "autograd jacobian": lambda: autograd.jacobian(lambda x: anp.linalg.inv(x))(np.zeros((2, 3))),
    "autograd pullback": lambda: autograd.make_vjp(lambda x: x * 2)(N)[0](np.ones(9)),
    "autograd hvp": lambda: autograd.hessian_vector_product(anp.sum)(N, np.ones(9)),
    "autograd primitive": lambda: autograd.grad(autograd.extend.primitive(lambda x: x))(1.0),
    "autograd function": lambda: autograd.grad(3),
    "autograd argnum": lambda: autograd.grad(lambda x: x, 3)(1.0),
    "autograd vspace": lambda: autograd.extend.vspace("a"),
    "autograd defvjp": lambda: autograd.extend.defvjp(np.sin),
    "autograd flatten": lambda: autograd.misc.flatten({"a": N})[1](np.ones(9)),
    "autograd name": lambda: anp.nothing,
    "autograd element": lambda: autograd.grad(lambda x: np.float64(x.shape))(1.0),
    "autograd optimizer": lambda: autograd.misc.optimizers.adam(lambda x, i: 1 / 0, N),
}


def _frames(call: Callable[[], object]) -> list[str]:
    """Frames of functrans in the traceback of an error."""
    try:
        with ft.config(traceback="filtered"):
            call()
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        return [f"{f.filename}:{f.name}" for f in frames if f.filename.startswith(ROOT)]
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("name", MISTAKES)
def test_tracebacks_have_no_frames_of_functrans(name: str) -> None:
    assert _frames(MISTAKES[name]) == []
