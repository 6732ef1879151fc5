"""What type checkers know of tensors."""

import ast
from typing import Any, assert_type

import numpy as np
from tensor_stub import PATH, stub

from functrans.autograd import Tensor, backward, from_numpy, tensor
from functrans.autograd.nodes import GraphNode
from functrans.autograd.sizes import Size


def test_the_stub_is_what_the_table_says() -> None:
    written = PATH.read_text("utf-8")
    assert ast.unparse(ast.parse(written)) == ast.unparse(ast.parse(stub())), (
        "run: python tests/typed/tensor_stub.py"
    )


def test_methods_and_operators() -> None:
    x = tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    assert_type(x, Tensor)
    assert_type(from_numpy(np.ones(2)), Tensor)
    assert_type(x[0], Tensor)
    assert_type(x[:, 1:], Tensor)
    assert_type(x * 2, Tensor)
    assert_type(2.0 - x, Tensor)
    assert_type(x @ x.T, Tensor)
    assert_type(-x / x, Tensor)
    assert_type(x > 0, Tensor)
    assert_type(x == x, Tensor)
    assert_type(x.sum(), Tensor)
    assert_type(x.sum(dim=0, keepdim=True), Tensor)
    assert_type(x.mean(1).std(), Tensor)
    assert_type(x.view(-1).reshape(2, 2).t(), Tensor)
    assert_type(x.exp().relu().softmax(0), Tensor)
    assert_type(x.detach().add_(1.0), Tensor)
    assert_type(x.max(), Tensor)
    assert_type(x.max(0).values, Tensor)
    assert_type(x.sort(0).indices, Tensor)
    assert_type(x.topk(1)[0], Tensor)
    assert_type(x.split(1), tuple[Tensor, ...])
    assert_type(x.shape, Size)
    assert_type(x.size(), tuple[int, ...])
    assert_type(x.size(0), int)
    assert_type(x.ndim, int)
    assert_type(x.numel(), int)
    assert_type(x.requires_grad, bool)
    assert_type(x.is_leaf, bool)
    assert_type(x.grad_fn, GraphNode | Any)
    assert_type(x.detach().numpy(), np.ndarray)
    assert_type(x.item() if x.numel() == 1 else None, Any | None)
    assert_type(x.float().double(), Tensor)
    assert_type([row for row in x], list[Tensor])  # noqa: C416  # what iteration gives
    assert_type(float(x.detach().sum()), float)
    handle = x.register_hook(lambda ct: 2 * ct)
    loss = (x * x).sum()
    assert_type(loss.backward(), None)
    assert_type(x.grad, Tensor | Any)
    handle.remove()
    backward(x.sum())
    x.requires_grad = False
    x.grad = None
    assert x.grad is None
