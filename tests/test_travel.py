"""Transformed functions travel: they pickle, compare and hash, into other processes and back."""

import copy
import importlib.util
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import differential_evolution

import functrans as ft

X = np.array([0.5, 1.5, 2.5])


def loss(x: Any) -> Any:
    """A loss."""
    return np.sum(x**3)


def rows(x: Any) -> Any:
    return np.stack([x * x, np.sin(x)])


@ft.vmap
def squared(x: Any) -> Any:
    return x * x


@ft.custom_jvp
def sine(x: Any) -> Any:
    return np.sin(x)


@sine.defjvp
def sine_jvp(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), 2 * np.cos(primals[0]) * tangents[0]


@ft.custom_vjp
def cosine(x: Any) -> Any:
    return np.cos(x)


cosine.defvjp(lambda x: (np.cos(x), x), lambda x, g: (-2 * np.sin(x) * g,))


@ft.custom_vmap
def doubled(x: Any) -> Any:
    return 2 * x


@doubled.def_vmap
def doubled_vmap(axis_size: int, in_batched: Any, x: Any) -> Any:
    return 3 * x, in_batched[0]


@ft.implicit_diff(lambda x, a: x * x - a)
def root(x0: Any, a: Any) -> Any:
    return np.sqrt(a)


@ft.sequential_vmap
def halved(x: Any) -> Any:
    return x / 2


def sine_rule(primals: Any, tangents: Any) -> Any:
    return np.sin(primals[0]), 3 * np.cos(primals[0]) * tangents[0]


def forward(x: Any) -> Any:
    return loss(x), x


def backward(x: Any, g: Any) -> Any:
    return (g * x,)


def batched(axis_size: int, in_batched: Any, x: Any) -> Any:
    return np.stack([x**3, x], -1), in_batched[0]


def condition(x: Any, a: Any) -> Any:
    return x * x - a


def solver(x0: Any, a: Any) -> Any:
    return np.sqrt(a)


def other(make: Callable[..., Any], fun: Any, rule: str, *rules: Any) -> Any:
    """A function with rules that has no name of its own in this module."""
    made = make(fun)
    getattr(made, rule)(*rules)
    return made


class Model:
    """Holds a transformed function as a method."""

    def energy(self, x: Any) -> Any:
        return np.sum(x * x)

    force = ft.grad(energy, argnums=1)


TRANSFORMS: list[tuple[Callable[..., Any], Any, dict[str, Any]]] = [
    (ft.grad, loss, {}), (ft.value_and_grad, loss, {}), (ft.vmap, loss, {}), (ft.jacrev, rows, {}),
    (ft.jacfwd, rows, {}), (ft.jacobian, rows, {"mode": "forward"}), (ft.hessian, loss, {}),
    (ft.hessian_diag, loss, {}), (ft.make_jaxpr, loss, {}), (ft.checkpoint, loss, {}),
    (ft.laplacian, loss, {}), (ft.forward_laplacian, loss, {}), (ft.jit, loss, {}),
    (ft.vmap, rows, {"in_axes": 0, "out_axes": 1}), (ft.grad, loss, {"argnums": (0,)}),
]  # fmt: skip
IDS = [f"{transform.__name__}{number}" for number, (transform, _, _) in enumerate(TRANSFORMS)]


def same(found: Any, expected: Any) -> bool:
    return str(found) == str(expected)


@pytest.mark.parametrize(("transform", "fun", "options"), TRANSFORMS, ids=IDS)
def test_transformed_functions_pickle(transform: Any, fun: Any, options: Any) -> None:
    made = transform(fun, **options)
    x = X if transform is not ft.vmap else np.stack([X, 2 * X])
    for twin in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert same(twin(x), made(x))
        assert twin.__name__ == made.__name__
    if transform is ft.make_jaxpr:
        return  # programs are no arrays
    nested = ft.jit(ft.vmap(made))
    assert same(pickle.loads(pickle.dumps(nested))(x[None]), nested(x[None]))


@pytest.mark.parametrize(("transform", "fun", "options"), TRANSFORMS, ids=IDS)
def test_the_same_transform_of_the_same_function_is_equal(
    transform: Any, fun: Any, options: Any
) -> None:
    if transform is ft.jit:
        return  # each has a cache of its own
    made = transform(fun, **options)
    again = transform(fun, **options)
    assert made == again
    assert hash(made) == hash(again)
    assert made == pickle.loads(pickle.dumps(made))
    assert made != transform(lambda x: loss(x), **options)
    assert made != loss
    assert made != ft.jvp


def test_options_are_compared_by_what_they_mean() -> None:
    assert ft.grad(loss) == ft.grad(loss, 0, has_aux=False)
    assert ft.grad(loss) != ft.grad(loss, argnums=(0,))
    assert ft.grad(fun=loss) == ft.grad(loss)
    assert ft.vmap(ft.grad(loss)) == ft.vmap(ft.grad(loss))
    assert ft.laplacian(loss, weights=X) == ft.laplacian(loss, weights=X.copy())
    assert ft.laplacian(loss, weights=X) != ft.laplacian(loss, weights=2 * X)
    assert ft.laplacian(loss, weights=X) != ft.laplacian(loss, weights=X[:2])
    assert ft.laplacian(loss, weights=X) != ft.laplacian(loss)
    assert ft.vmap(loss, in_axes=({"a": 0, "b": None},)) != ft.vmap(
        loss, in_axes=({"a": 0, "b": 1},)
    )
    assert ft.vmap(ft.grad(loss)) != ft.vmap(ft.jacfwd(loss))
    assert len({ft.grad(loss), ft.grad(loss), ft.hessian(loss)}) == 2


def test_what_decorates_a_function_pickles_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(squared)) is squared
    np.testing.assert_array_equal(squared(X), X * X)


NAMED = [sine, cosine, doubled, root, halved]
UNNAMED: list[tuple[Any, tuple[Any, ...]]] = [
    (other(ft.custom_jvp, np.sin, "defjvp", sine_rule), (1.0,)),
    (other(ft.custom_vjp, loss, "defvjp", forward, backward), (X,)),
    (other(ft.custom_vmap, rows, "def_vmap", batched), (X,)),
    (ft.implicit_diff(condition)(solver), (X, X)),
    (ft.sparse_jacobian(rows), (X,)),
    (ft.sparse_hessian(loss), (X,)),
    (ft.sparse_jacobian(rows, pattern=np.ones((6, 3)), coloring=None, format="coo"), (X,)),
    (ft.scipy.optimize.as_scipy(loss, X), (X,)),
    (ft.scipy.optimize.as_scipy(loss), (X,)),
    (ft.ops.segment_sum, (X, np.array([0, 0, 1]))),
    (ft.tree.map, (abs, X)),
]
WAYS: list[Callable[[Any], Any]] = [
    lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy,
    lambda x: pickle.loads(pickle.dumps(x, 2)),
]  # fmt: skip


@pytest.mark.parametrize("function", NAMED, ids=lambda f: f.__name__)
def test_decorated_functions_travel_by_their_name(function: Any) -> None:
    for way in WAYS:
        assert way(function) is function
        assert way(ft.grad(function)) == ft.grad(function)
        assert same(
            way(ft.jit(function))(*[X] * (1 + (function is root))),
            function(*[X] * (1 + (function is root))),
        )


@pytest.mark.parametrize(("function", "args"), UNNAMED, ids=lambda f: getattr(f, "__name__", ""))
def test_functions_with_rules_travel_with_them(function: Any, args: tuple[Any, ...]) -> None:
    def results(f: Any) -> list[Any]:
        found = [f(*args)]
        if isinstance(f, (ft.custom_jvp, ft.custom_vjp)):
            found.append(ft.grad(f)(*args))
        if isinstance(f, ft.custom_vmap):
            found.append(ft.vmap(f)(*args))
        return found

    for way in WAYS:
        assert same(results(way(function)), results(function))


def test_decorated_functions_in_processes() -> None:
    functions = [ft.grad(sine), ft.grad(cosine), ft.vmap(doubled), ft.grad(root, 1), halved]
    arguments: list[tuple[Any, ...]] = [(1.0,), (1.0,), (X,), (1.0, 4.0), (1.0,)]
    functions += [function for function, _ in UNNAMED]
    arguments += [args for _, args in UNNAMED]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = [pool.submit(f, *args) for f, args in zip(functions, arguments, strict=True)]
        for future, f, args in zip(found, functions, arguments, strict=True):
            assert same(future.result(), f(*args))


def test_a_transformed_function_in_a_class_is_a_method() -> None:
    model = Model()
    np.testing.assert_array_equal(model.force(X), 2 * X)
    np.testing.assert_array_equal(Model.force(model, X), 2 * X)


def test_what_cannot_be_pickled_is_said_as_pickle_says_it() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(ft.grad(lambda x: x * x))


def test_processes() -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = list(pool.map(ft.grad(loss), [X, 2 * X]))
    np.testing.assert_array_equal(found, [3 * X**2, 12 * X**2])


def test_workers_of_scipy() -> None:
    bounds = [(-1.0, 1.0)] * 2
    value = ft.checkpoint(loss)
    found = differential_evolution(
        value, bounds, workers=2, updating="deferred", maxiter=2, popsize=3, seed=1, polish=False
    )
    alone = differential_evolution(
        value, bounds, updating="deferred", maxiter=2, popsize=3, seed=1, polish=False
    )
    np.testing.assert_array_equal(found.x, alone.x)


def test_joblib() -> None:
    joblib = pytest.importorskip("joblib")
    tasks = (joblib.delayed(ft.grad(loss))(k * X) for k in (1, 2))
    found = joblib.Parallel(n_jobs=2)(tasks)
    np.testing.assert_array_equal(found, [3 * X**2, 12 * X**2])


DASK = """
import dask.array, numpy as np, functrans as ft
if __name__ == "__main__":
    blocks = dask.array.from_array(np.arange(8.0), chunks=4).map_blocks(ft.vmap(ft.grad(np.sin)))
    np.testing.assert_allclose(blocks.compute(scheduler="processes"), np.cos(np.arange(8.0)))
"""


def test_dask(tmp_path: Path) -> None:
    if importlib.util.find_spec("dask") is None:
        pytest.skip("dask is not installed")
    program = tmp_path / "program.py"  # apart: dask imports a ``sparse``, and finds these tests'
    program.write_text(DASK)
    environment = {**os.environ, "PYTHONPATH": str(Path(ft.__file__).parent.parent)}
    subprocess.run([sys.executable, program], cwd=tmp_path, env=environment, check=True)


def test_tensors_share_their_memory_by_dlpack() -> None:
    for dtype in (np.float32, np.float64, np.int64, np.bool_, np.complex64):
        t = ft.tensor(np.ones((2, 3), dtype))
        array = np.from_dlpack(t)
        assert np.shares_memory(array, t.numpy())
        np.testing.assert_array_equal(array, t.numpy())
    leaf = ft.tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(BufferError, match=r"use tensor\.detach\(\)"):
        np.from_dlpack(leaf)
    np.testing.assert_array_equal(np.from_dlpack(leaf.detach()), [1.0, 2.0])
    with pytest.raises(ft.errors.UnsupportedOperationError, match="DLPack"):
        ft.jit(np.from_dlpack)(leaf.detach())
