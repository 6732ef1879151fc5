"""``out=``: functions write their results to tensors that are given."""

from collections.abc import Callable
from typing import Any

import pytest
from numpy.testing import assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd.methods import arithmetic, comparison, pointwise, reductions

X = torch.tensor([[0.25, 0.5], [0.75, 0.125]])
OTHERS: dict[str, Callable[..., Any]] = {
    "matmul": lambda **k: torch.matmul(X, X, **k),
    "cat": lambda **k: torch.cat([X, X], 1, **k),
    "stack": lambda **k: torch.stack([X, X], 1, **k),
    "column_stack": lambda **k: torch.column_stack([X, X[0]], **k),
    "where": lambda **k: torch.where(X > 0.4, X, 0.0, **k),
    "div": lambda **k: torch.div(X, 0.3, rounding_mode="floor", **k),
    "sum over an axis": lambda **k: torch.sum(X, 0, keepdim=True, **k),
    "sort": lambda **k: torch.sort(X, dim=0, **k),
    "max": lambda **k: torch.max(X, dim=1, **k),
    "topk": lambda **k: torch.topk(X, 1, **k),
    "erf": lambda **k: torch.special.erf(X, **k),
}


def _of_tables() -> dict[str, Callable[..., Any]]:
    """Functions of the tables that take one tensor, or two."""
    found: dict[str, Callable[..., Any]] = {}
    for module in (arithmetic, comparison, pointwise, reductions):
        for row in module.ROWS:
            if "f" not in row.forms or row.name == "isin":  # which takes numbers first, too
                continue
            function = getattr(torch, row.name, None)
            for operands in ((X,), (X, X)):
                try:
                    result = function(*operands)  # type: ignore[misc]  # those that are functions
                except (TypeError, RuntimeError, ValueError, NotImplementedError):
                    continue
                if isinstance(result, torch.Tensor) and result is not X:
                    found[row.name] = lambda f=function, a=operands, **k: f(*a, **k)
                break
    return found


FUNCTIONS = {**_of_tables(), **OTHERS}


def test_the_tables_were_read() -> None:
    assert len(FUNCTIONS) > 90


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_written_to_out(name: str) -> None:
    call = FUNCTIONS[name]
    expected = call()
    several = expected if isinstance(expected, tuple) else (expected,)
    outs = (
        tuple(torch.zeros(2 * y.numel(), dtype=y.dtype)[::2].view(y.shape) for y in several)
        if all(y.ndim < 2 for y in several)
        else tuple(torch.zeros_like(y) for y in several)
    )
    found = call(out=outs if isinstance(expected, tuple) else outs[0])
    for out, y, got in zip(
        outs, several, found if isinstance(found, tuple) else (found,), strict=True
    ):
        assert got is out
        assert out.dtype == y.dtype
        assert_array_equal(out.numpy(), y.numpy())
    if isinstance(expected, tuple):
        assert type(found) is type(expected)


@pytest.mark.parametrize("which", ["input", "other", "out"])
def test_out_and_gradients_do_not_go_together(which: str) -> None:
    tensors = {key: torch.ones(2) for key in ("input", "other", "out")}
    tensors[which] = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"out=.* don't support automatic differentiation"):
        torch.add(tensors["input"], tensors["other"], out=tensors["out"])
    assert tensors["out"].tolist() == [1.0, 1.0]
    with torch.no_grad():
        torch.add(tensors["input"], tensors["other"], out=tensors["out"])
    assert tensors["out"].tolist() == [2.0, 2.0]


def test_out_of_another_kind_is_refused_and_left_alone() -> None:
    out = torch.zeros(3)
    with pytest.raises(RuntimeError, match=r"out= has the shape \[3\] and the result \[2, 2\]"):
        torch.exp(X, out=out)
    numbers = torch.zeros(2, 2, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="can't be cast to the desired output type"):
        torch.exp(X, out=numbers)
    with pytest.raises(TypeError, match="argument 'out' must be Tensor"):
        torch.exp(X, out=X.numpy())
    with pytest.raises(TypeError, match="out= takes 2 tensors, 1 were given"):
        torch.sort(X, out=(torch.zeros(2, 2),))
    assert out.tolist() == [0.0] * 3
    assert numbers.tolist() == [[0, 0], [0, 0]]


def test_out_may_be_the_operand_a_part_of_it_or_in_a_jitted_step() -> None:
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.mul(x, x, out=x) is x
    assert x.tolist() == [1.0, 4.0, 9.0]
    torch.add(x[1:], x[:-1], out=x[1:])
    assert x.tolist() == [1.0, 5.0, 13.0]
    version = x._version
    torch.flip(x, (0,)).copy_(x)
    ft.jit(lambda factor: torch.mul(x, factor, out=x))(torch.tensor(2.0))
    assert x.tolist() == [2.0, 10.0, 26.0]
    assert x._version > version
