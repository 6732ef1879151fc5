"""Writes to views of memory that is not in C order: the gradient goes to the elements written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.autograd import gradcheck, tensor

POINT = np.array([[0.4, 0.9, -0.5], [0.7, 1.2, 0.3], [1.1, -0.3, 0.8]])
BASES: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x * 1.0,
    "transposed": lambda x: (x * 1.0).t(),
    "turned copy": lambda x: x.t().clone(),
    "turned in place": lambda x: (x * 1.0).t_(),
    "strided": lambda x: (x * 1.0)[:, ::2],
    "flipped": lambda x: (x * 1.0).flip(0),
    "part": lambda x: (x * 1.0)[1:],
    "part of a transpose": lambda x: (x * 1.0).t()[:, 1:],
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "as_strided": lambda v: v.as_strided((2, 2), v.stride(), v.storage_offset()),
    "as_strided across": lambda v: v.as_strided((2, 2), v.stride()[::-1], v.storage_offset()),
    "as_strided line": lambda v: v.as_strided((2,), (sum(v.stride()),), v.storage_offset()),
    "select": lambda v: v[1],
    "slice": lambda v: v[:, 1:],
    "steps": lambda v: v[::2],
    "t": lambda v: v.t()[0],
    "diagonal": lambda v: v.diagonal(),
    "unfold": lambda v: v.unfold(0, 1, 1),
    "squeeze": lambda v: v.unsqueeze(0).squeeze(0)[-1],
    "view_as": lambda v: v.view_as(v)[0],
    "movedim": lambda v: v.movedim(0, 1)[1:],
}
THEN: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda v: None,
    "t_": lambda v: v.t_(),
}


@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_write_reaches_the_same_elements_in_memory_and_gradient(base: str, view: str) -> None:
    for then, reform in THEN.items():

        def function(x: Any, reform: Any = reform) -> Any:
            v = BASES[base](x)
            part = VIEWS[view](v)
            part.mul_(part.clone().sin() + 2)
            reform(v)
            return (v * tensor(np.arange(1.0, 1 + v.numel())).view(v.shape)).sum() + part.sum()

        assert gradcheck(function, tensor(POINT, requires_grad=True)), then


PAIRS: dict[str, Callable[[Any], Any]] = {
    "contiguous": lambda x: x * 1.0,
    "copy of a turned one": lambda x: (x * 1.0).t().clone().t(),
    "clone": lambda x: x.clone(),
    "part": lambda x: torch.cat([x, x])[1:4],
    "windows": lambda x: torch.cat([x, x], 1)[:, 1:3],
    "unsqueezed": lambda x: (x * 1.0).unsqueeze(0)[0],
}


@pytest.mark.parametrize("base", PAIRS)
def test_a_write_to_pairs_as_complex_numbers(base: str) -> None:
    """Gradients come in other layouts than the memory that is viewed."""
    weights = torch.tensor(np.arange(1.0, 7.0).reshape(2, 3)).t()  # their gradient is turned, too

    def function(x: Any) -> Any:
        v = PAIRS[base](x)
        part = torch.view_as_complex(v)
        part.mul_(part.clone().sin() + (2 - 1j))
        return (v * weights).sum() + part.abs().sum()

    assert gradcheck(function, tensor(POINT[:, :2].copy(), requires_grad=True))
