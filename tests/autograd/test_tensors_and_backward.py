"""Tensors, ``backward`` and ``grad``: gradients of all orders, writes, what is refused."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from functrans.autograd import backward, grad, no_grad, tensor

X = np.array([1.0, 2.0, 3.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


def test_gradients_are_added_up_in_leaves() -> None:
    x = leaf()
    for n in (1, 2):
        (x * x).sum().backward()
        assert_array_equal(x.grad.numpy(), 2 * n * X)
    x.grad = None
    backward([x.sum(), (x * x).sum()], [None, tensor(2.0)])
    assert_array_equal(x.grad.numpy(), 1 + 4 * X)


def test_derivatives_of_derivatives() -> None:
    x = leaf()
    (first,) = grad((x.exp() * x).mean(), x, create_graph=True)
    assert_allclose(first.detach().numpy(), np.exp(X) * (X + 1) / 3)
    (second,) = grad(first.sum(), x, create_graph=True)
    assert_allclose(second.detach().numpy(), np.exp(X) * (X + 2) / 3)
    (third,) = grad(second.sum(), x)
    assert_allclose(third.numpy(), np.exp(X) * (X + 3) / 3)


def test_a_write_to_a_view_reaches_its_base_and_other_views() -> None:
    x = leaf()
    y = x * 2
    head, tail = y[:2], y[1:]
    tail *= 3
    assert_array_equal(y.detach().numpy(), [2, 12, 18])
    assert y.grad_fn.name() == "CopySlices"
    (head * tensor([1.0, 10.0])).sum().backward(retain_graph=True)
    assert_array_equal(x.grad.numpy(), [2, 60, 0])
    x.grad = None
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [2, 6, 6])


def test_a_saved_tensor_that_was_written_to_is_noticed() -> None:
    x = leaf()
    y = x.exp()
    y += 1
    message = r"by an inplace.*\[torch.DoubleTensor \[3\]\].*ExpBackward0.*1; expected version 0"
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()
    assert x.grad is None


def test_writes_to_leaves_are_refused_before_anything_changes() -> None:
    x = leaf()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x += 1
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        x[0] = 5.0
    assert_array_equal(x.detach().numpy(), X)
    with no_grad():
        x += 1
    assert_array_equal(x.detach().numpy(), X + 1)
    assert x._version == 1
    assert x.is_leaf


def test_a_freed_graph_says_so() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


def test_long_chains_need_no_recursion() -> None:
    x = leaf(1.5)
    y = x
    for _ in range(100_000):
        y = y * 1.000001
    y.backward()
    assert_allclose(x.grad.item(), 1.000001**100_000)
    del y


def test_conversions_that_lose_the_derivative_warn() -> None:
    x = leaf()
    buffer = np.zeros(3)
    with pytest.warns(UserWarning, match="Converting a tensor with requires_grad=True"):
        buffer[0] = x[0]
    with pytest.warns(UserWarning, match="its derivative is lost"):
        assert float(x[1]) == 2.0
    assert x[1].item() == float(x[1].detach()) == 2.0


def test_shapes_that_do_not_fit_are_runtime_errors_and_value_errors() -> None:
    for kind in (RuntimeError, ValueError):
        with pytest.raises(kind, match=r"\(3,\).*\(2,\)|3.*2"):
            leaf() + tensor([1.0, 2.0])
