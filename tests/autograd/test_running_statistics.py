"""Running statistics of layers under transforms: refused before anything is changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.compat.torch import nn

LAYERS: dict[str, Callable[..., Any]] = {
    "batch": lambda **k: nn.BatchNorm1d(3, **k),
    "instance": lambda **k: nn.InstanceNorm1d(3, **{"track_running_stats": True, **k}),
}
X = torch.tensor(np.random.default_rng(0).normal(size=(4, 3, 5)), dtype=torch.float32)
TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: torch.func.grad(lambda x: f(x).pow(3).sum())(X),
    "vjp": lambda f: torch.func.vjp(f, X),
    "jvp": lambda f: torch.func.jvp(f, (X,), (X,)),
    "jacrev": lambda f: torch.func.jacrev(f)(X),
    "vmap": lambda f: torch.func.vmap(f)(torch.stack([X, X])),
    "jit of grad": lambda f: ft.jit(torch.func.grad(lambda x: f(x).pow(3).sum()))(X),
}


@pytest.mark.parametrize("name", LAYERS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_running_statistics_are_not_given_values_of_a_transform(name: str, transform: str) -> None:
    layer = LAYERS[name]()
    with pytest.raises(RuntimeError, match=r"made outside of .*track_running_stats=False"):
        TRANSFORMS[transform](layer)
    assert np.array_equal(layer.running_mean.numpy(), np.zeros(3))
    layer(X)  # and is whole
    assert layer.running_mean.numpy().any()
    TRANSFORMS[transform](layer.eval())
    TRANSFORMS[transform](LAYERS[name](track_running_stats=False))


@pytest.mark.parametrize("name", LAYERS)
def test_running_statistics_move_in_jitted_steps(name: str) -> None:
    eager, jitted = LAYERS[name](), LAYERS[name]()
    eager(X)
    ft.jit(lambda x: jitted(x).sum())(X)
    np.testing.assert_allclose(jitted.running_mean.numpy(), eager.running_mean.numpy(), rtol=1e-5)
