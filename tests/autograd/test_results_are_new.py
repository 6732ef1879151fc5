"""Results of operations that do nothing: of a single number most reductions are it again."""

import itertools
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch

TEXTS = """
amax(-1) amin(-1) max() min() sum(-1) mean(-1) prod(-1) nansum(-1) nanmean(-1)
logsumexp(-1) cumsum(-1) cumprod(-1) sort(-1)[0] topk(1)[0] flip(0) roll(0) roll(1)
norm() clone() contiguous().clone() clamp(-9,9) round().add(0) nan_to_num() real.add(0)
conj().resolve_conj().add(0) positive().add(0) max(-1)[0] min(-1)[0] mode(-1)[0] aminmax()[0]
unfold(0,1,1)[0].add(0) repeat(1)[0].add(0) tile(1)[0].add(0) masked_fill(NO,0)
where(~NO,0) index_select(0,FIRST) gather(0,FIRST) quantile(0.5)
float_power(1) pow(1) mul(1) add(0) sub(0) div(1) squeeze().add(0) logcumsumexp(0)
"""
OF_ONE = {"number": np.float64(0.7), "vector": np.array([0.7])}


def _applied(text: str, x: Any) -> Any:
    first = torch.zeros(tuple(x.shape), dtype=torch.int64)
    words = {"x": x, "FIRST": first, "NO": first != 0}
    return eval(f"x.{text}", words)


CASES = [
    *itertools.product(TEXTS.split(), OF_ONE.values()),
    ("diff(0)", OF_ONE["vector"]),  # of a number there are no differences
]


@pytest.mark.parametrize(("text", "value"), CASES)
def test_no_grad_stops_them_in_every_way_to_run(text: str, value: Any) -> None:
    def loss(x: Any) -> Any:
        y = x * 1.0
        with torch.no_grad():
            constant = _applied(text, y)
        return (constant * x).sum()

    def step(x: Any) -> Any:
        out = loss(x)
        out.backward()
        return x.grad

    expected = step(torch.tensor(value, requires_grad=True)).numpy()
    assert expected == _applied(text, torch.tensor(value)).sum().numpy()
    for found in (
        torch.func.grad(loss)(torch.tensor(value)),
        torch.func.jacrev(loss)(torch.tensor(value)),
        ft.jit(torch.func.grad(loss))(torch.tensor(value)),
        torch.func.grad(ft.jit(loss))(torch.tensor(value)),
        ft.jit(step)(torch.tensor(value, requires_grad=True)),
    ):
        np.testing.assert_allclose(found.numpy(), expected)


@pytest.mark.parametrize(("text", "value"), CASES)
def test_writing_to_them_leaves_the_operand(text: str, value: Any) -> None:
    def both(x: Any) -> Any:
        y = x * 1.0
        made = _applied(text, y)
        made += 1
        return y * 1.0, made

    expected = both(torch.tensor(value))
    for found in (
        ft.jit(both)(torch.tensor(value)),
        torch.func.vjp(both, torch.tensor(value))[0],
        torch.func.vmap(both)(torch.tensor(value)[None]),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(np.ravel(one.numpy()), np.ravel(other.numpy()))


WRITTEN = {
    "copy_": lambda x: torch.empty_like(x).copy_(x),
    "all of it": lambda x: _set(torch.zeros_like(x), ..., x),
    "slice": lambda x: _set(torch.zeros_like(x), slice(None), x),
    "clone": lambda x: x.clone().copy_(x),
    "detached": lambda x: torch.empty_like(x).copy_(x.detach()),
    "number": lambda x: torch.stack([torch.empty_like(v).fill_(v) for v in x.reshape(-1)]),
    "one": lambda x: torch.empty_like(x.sum()).fill_(x.reshape(-1)[0]),
}
TRANSFORMS = {
    "vmap": lambda f, x: torch.func.vmap(f)(x),
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (torch.ones_like(x),))[0],
    "tangent": lambda f, x: torch.func.jvp(f, (torch.ones_like(x),), (x,))[1],
    "vjp": lambda f, x: torch.func.vjp(f, x)[0],
    "aux": lambda f, x: torch.func.grad(lambda v: (v.sum(), f(v)), has_aux=True)(x)[1],
    "vmap in grad": lambda f, x: torch.func.grad(
        lambda v: (v.sum(), torch.func.vmap(f)(v)), has_aux=True
    )(x)[1],
    "linearize": lambda f, x: torch.func.linearize(f, x)[0],
}


def _set(x: Any, index: Any, value: Any) -> Any:
    x[index] = value
    return x


@pytest.mark.parametrize("kind", ["plain", "leaf", "recorded"])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", WRITTEN)
def test_what_was_written_of_an_argument_is_not_the_argument(
    name: str, transform: str, kind: str
) -> None:
    x = torch.tensor([[1.0], [2.0]], requires_grad=kind != "plain")
    x = x * 1 if kind == "recorded" else x
    result = TRANSFORMS[transform](WRITTEN[name], x)
    result.detach().add_(5)
    assert x.tolist() == [[1], [2]]
