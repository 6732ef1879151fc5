"""Copies of several tensors share memory as the originals do; replaced data of leaves."""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.compat.torch as torch
from functrans.autograd import from_numpy, grad, tensor


def _saved(x: Any) -> Any:
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    return torch.load(file, weights_only=not isinstance(x, torch.nn.Module))


def _pickled(x: Any) -> Any:
    return pickle.loads(pickle.dumps(x))


COPIES = pytest.mark.parametrize("copied", [copy.deepcopy, _saved, _pickled])

VIEWS: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[1:],
    "step": lambda x: x[:, ::2],
    "transposed": lambda x: x.t(),
    "flat": lambda x: x.view(-1),
    "element": lambda x: x[1, 2],
    "view of a view": lambda x: x.t()[1:][:, 1],
    "detached": lambda x: x.detach(),
    "expanded": lambda x: x[:1].expand(4, 3),
}


@COPIES
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_base_and_its_view_share_memory_in_the_copy(
    view: Callable[[Any], Any], order: int, copied: Callable[[Any], Any]
) -> None:
    base = tensor(np.arange(6.0).reshape(2, 3))
    part = view(base)
    new_base, new_part = copied([base, part][::order])[::order]
    assert_array_equal(new_part.numpy(), part.numpy())
    assert new_part.stride() == part.stride()
    assert np.shares_memory(new_base.numpy(), new_part.numpy())
    new_base.mul_(10)
    assert_array_equal(new_part.numpy(), 10 * part.numpy())
    assert_array_equal(base.numpy(), np.arange(6.0).reshape(2, 3))


@COPIES
def test_views_without_their_base_share_memory(copied: Callable[[Any], Any]) -> None:
    base = tensor(np.arange(6.0))
    first, second = copied([base[:4], base[2:]])
    first[3] = 50.0
    assert_array_equal(second.numpy(), [2.0, 50.0, 4.0, 5.0])


@COPIES
def test_a_view_of_memory_with_gaps_is_copied_alone(copied: Callable[[Any], Any]) -> None:
    base = from_numpy(np.arange(12.0).reshape(3, 4)[:, ::2])
    part = copied(base[1:])
    assert_array_equal(part.numpy(), [[4.0, 6.0], [8.0, 10.0]])


@COPIES
def test_empty_views(copied: Callable[[Any], Any]) -> None:
    base = tensor(np.arange(6.0))
    assert copied([base, base[6:]])[1].shape == (0,)


@COPIES
def test_tied_parameters_stay_tied(copied: Callable[[Any], Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    model[1].weight = model[0].weight
    model[0].register_buffer("window", model[0].bias.detach()[:1])
    new = copied(model)
    assert new[1].weight is new[0].weight
    assert new[0].weight is not model[0].weight
    with torch.no_grad():
        new[0].bias.fill_(7.0)
    assert new[0].window.item() == 7.0
    assert len(list(new.parameters())) == 3


@pytest.mark.parametrize("copied", [_saved, _pickled])
def test_results_are_pickled_as_leaves(copied: Callable[[Any], Any]) -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = copied(x * 3)
    assert y.is_leaf
    assert y.requires_grad
    assert_array_equal(y.detach().numpy(), [3.0, 6.0])
    assert copied(tensor([1])).exp().dtype == np.float64
    assert copied(torch.tensor([1])).exp().dtype == np.float32


# data ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new", [np.zeros((2, 2)), np.ones(3, np.float32), np.ones(3, complex)])
def test_a_leaf_with_other_data_gets_gradients_of_their_type(new: np.ndarray) -> None:
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    seen = []
    handle = x.register_hook(lambda g: seen.append((g.shape, g.dtype)))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.shape))
    x.data = from_numpy(new)
    (x * x.conj()).real.sum().backward()
    assert seen == [(new.shape, new.dtype), new.shape]
    assert x.grad.dtype == new.dtype
    assert_allclose(x.grad.numpy(), 2 * new)
    handle.remove()
    x.grad = None
    (x * x).sum().backward(torch.ones((), dtype=new.dtype))
    assert len(seen) == 3


def test_data_of_the_same_type_keep_the_node() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    node = (x * 1).grad_fn.next_functions[0][0]
    x.data = tensor([3.0, 4.0])
    assert (x * 1).grad_fn.next_functions[0][0] is node


def test_data_that_do_not_fit_are_refused() -> None:
    x = tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = tensor([1, 2, 3])
    with pytest.raises(RuntimeError, match="its gradient would not fit"):
        y.data = tensor([[1.0]])
    assert_array_equal(y.detach().numpy(), [2.0, 4.0, 6.0])
    x.data = tensor([[5.0]])
    with pytest.raises(RuntimeError, match=r"shape \[3\] came to a leaf of shape \[1, 1\]"):
        y.sum().backward()
    assert x.grad is None
    assert_array_equal(grad((x * x).sum(), x)[0].numpy(), [[10.0]])


CHANGES: dict[str, Callable[[Any], Any]] = {
    "axes that change places": lambda x: x.t_(),
    "another axis": lambda x: x.unsqueeze_(0),
    "data": lambda x: setattr(x, "data", tensor([[1.0], [2.0], [3.0]])),
    "data twice": lambda x: [setattr(x, "data", tensor([1.0] * n)) for n in (2, 4)],
    "data of another dtype": lambda x: setattr(x, "data", x.detach().double()),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("has_more", [False, True])
def test_no_gradient_of_a_leaf_as_it_was_is_lost(change: str, has_more: bool) -> None:
    x = tensor([[1.0, 2.0, 3.0]], requires_grad=True, dtype=np.float32)
    total = (2.0 * x).sum()
    with torch.no_grad():
        CHANGES[change](x)
    if has_more:
        total = total + (x * x).sum()
    match = r"a gradient of shape \[1, 3\] would come to a leaf of shape"
    for options in ({}, {"allow_unused": True}, {"materialize_grads": True}):
        with pytest.raises(RuntimeError, match=match):
            grad(total, x, retain_graph=True, **options)
    with pytest.raises(RuntimeError, match=match):
        total.backward(inputs=[x], retain_graph=True)
    assert x.grad is None
    (gradient,) = grad((x * x).sum(), x)
    assert_array_equal(gradient.numpy(), 2.0 * x.detach().numpy())
