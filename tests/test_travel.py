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
