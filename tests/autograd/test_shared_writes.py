"""Writes to one of several views, to views of such views, and to elements that share memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.compat.torch import func

WRITES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda p: p.mul_(2),
    "zero_": lambda p: p.zero_(),
    "fill_": lambda p: p.fill_(3.0),
    "copy_": lambda p: p.copy_(torch.ones_like(p)),
    "normal_": lambda p: p.normal_(),
    "setitem": lambda p: p.__setitem__(..., 1.0),
    "masked": lambda p: p.__setitem__(torch.ones_like(p, dtype=torch.bool), 1.0),
    "element": lambda p: p[..., 0].add_(1.0),
}
SEVERAL: dict[str, Callable[[Any], Any]] = {
    "unbind": lambda y: y.unbind(1),
    "split": lambda y: y.split(1),
    "split sizes": lambda y: torch.split(y, [1, 2]),
    "split_with_sizes": lambda y: y.split_with_sizes([1, 2]),
    "chunk": lambda y: y.chunk(2),
}
APART: dict[str, Callable[[Any], Any]] = {
    "tensor_split": lambda y: y.tensor_split(2),
    "vsplit": lambda y: y.vsplit(3),
    "hsplit": lambda y: torch.hsplit(y, 2),
    "dsplit": lambda y: [part[..., 0] for part in y[..., None].dsplit(1)],
}
PARTS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda p: p,
    "view": lambda p: p.view(p.shape),
    "slice": lambda p: p[:1],
    "transposed": lambda p: p.t(),
}


def leaf() -> Any:
    return torch.arange(6.0).reshape(3, 2).requires_grad_()


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("split", SEVERAL)
def test_one_of_several_views_is_written_to_outside_of_the_graph_only(
    split: str, part: str, write: str
) -> None:
    x = leaf()
    y = x * 1
    with pytest.raises(RuntimeError, match="function that returns multiple views"):
        WRITES[write](PARTS[part](SEVERAL[split](y)[0]))
    assert y.tolist() == x.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [[1.0, 1.0]] * 3
    plain = leaf().detach()
    written = PARTS[part](SEVERAL[split](plain)[0])
    WRITES[write](written)
    assert PARTS[part](SEVERAL[split](plain)[0]).tolist() == written.tolist()


@pytest.mark.parametrize("part", ["itself", "view", "slice"])
@pytest.mark.parametrize("split", APART)
def test_views_that_were_made_one_by_one_are_written_to_in_the_graph(split: str, part: str) -> None:
    x = leaf()
    y = x * 1
    PARTS[part](APART[split](y)[0]).mul_(3.0)
    y.sum().backward()
    expected = torch.ones(3, 2)
    PARTS[part](APART[split](expected)[0]).mul_(3.0)
    assert x.grad.tolist() == expected.tolist()


class _Shared(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        return gradient * 10


def test_a_view_of_a_view_that_a_function_made_is_not_written_to() -> None:
    x = leaf()
    y = _Shared.apply(x * 1)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        y[:1].mul_(2)
    y[:1].sum().backward()
    assert x.grad.tolist() == [[10.0, 10.0], [0.0, 0.0], [0.0, 0.0]]


EXPANDED: dict[str, Callable[[Any], Any]] = {
    "expand": lambda y: y.expand(3, 2),
    "expand_as": lambda y: y.expand_as(torch.zeros(3, 2)),
    "broadcast_to": lambda y: torch.broadcast_to(y, (3, 2)),
    "as_strided": lambda y: y.as_strided((3, 2), (0, 1)),
    "meshgrid": lambda y: torch.meshgrid(torch.zeros(3), y, indexing="ij")[1],
    "slice": lambda y: y.expand(5, 2)[1:4],
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("expand", EXPANDED)
def test_elements_that_share_memory_are_written_to_where_they_get_one_number(
    expand: str, write: str, recorded: bool
) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=recorded)
    y = x * 1
    p = EXPANDED[expand](y)
    if write in ("zero_", "fill_"):
        WRITES[write](p)
        assert p.tolist() == [y.tolist()] * 3 == [[0.0 if write == "zero_" else 3.0] * 2] * 3
        if recorded:
            (p.sum() + y.sum()).backward()
            assert x.grad.tolist() == [0.0, 0.0]
        return
    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        WRITES[write](p)
    assert y.tolist() == [1.0, 2.0]
    p[1].mul_(3.0)  # these two elements do not overlap
    p[0, 0] = 5.0
    assert p.tolist() == [[5.0, 6.0]] * 3
    if recorded:
        (p * p).sum().backward()
        np.testing.assert_allclose(x.grad, [0.0, 3 * 2 * 6 * 3])


@pytest.mark.parametrize("transform", [func.grad, func.jacrev, func.jacfwd])
def test_elements_that_share_memory_are_refused_in_transforms_too(transform: Any) -> None:
    def written(x: Any) -> Any:
        y = x * 1
        y.expand(3, 2).copy_(torch.ones(3, 2))
        return y.sum()

    with pytest.raises(RuntimeError, match="refers to a single memory location"):
        transform(written)(torch.tensor([1.0, 2.0]))
