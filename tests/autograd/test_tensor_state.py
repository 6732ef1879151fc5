"""Attributes of tensors and assignments to them, copies, pickles, conversions, ``Variable``."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from functrans.autograd import (
    Tensor,
    Variable,
    from_numpy,
    inference_mode,
    no_grad,
    tensor,
    variable,
)
from functrans.autograd.modes import modes
from functrans.compat.torch.nn import Parameter


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(values, requires_grad=True)


# attributes --------------------------------------------------------------------------------------


def test_attributes_of_leaves_results_views_and_constants() -> None:
    x, c = leaf(), tensor([1.0, 2.0])
    y = x * 2
    view = y[:1]
    _, last = y.unbind()
    rows = {
        "requires_grad": (True, False, True, True, True),
        "is_leaf": (True, True, False, False, False),
        "retains_grad": (False, False, False, False, False),
        "output_nr": (0, 0, 0, 0, 1),
        "_version": (0, 0, 0, 0, 0),
    }
    for name, expected in rows.items():
        found = tuple([getattr(t, name) for t in (x, c, y, view, last)])
        assert found == expected, name
    assert x.grad_fn is None
    assert c.grad_fn is None
    assert y.grad_fn.name() == "MulBackward0"
    assert view.grad_fn.next_functions == ((y.grad_fn, 0),)
    assert view._base is y
    assert y._base is x._base is None
    assert y[:1][:1]._base is y


@pytest.mark.parametrize("name", ["grad_fn", "is_leaf", "output_nr", "_version", "_base", "shape"])
def test_attributes_that_cannot_be_set(name: str) -> None:
    x = leaf()
    before = getattr(x, name)
    with pytest.raises(AttributeError):
        setattr(x, name, 3)
    assert getattr(x, name) == before


def test_requires_grad_of_leaves() -> None:
    x = tensor([1.0])
    assert x.requires_grad_() is x
    node = (x * 2).grad_fn.next_functions[0][0]
    x.requires_grad = True
    assert (x * 2).grad_fn.next_functions[0][0] is node
    x.requires_grad = False
    assert not (x * 2).requires_grad
    assert x.requires_grad_(False) is x
    y = leaf() * 2
    assert y.requires_grad_() is y  # it does already


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda x, y, i: setattr(x, "requires_grad", 1), "requires_grad must be a bool"),
        (lambda x, y, i: setattr(y, "requires_grad", False), "If you want to use a computed"),
        (lambda x, y, i: y.requires_grad_(False), "only change requires_grad flags of leaf"),
        (lambda x, y, i: setattr(y, "requires_grad", True), r"flags of leaf variables\.$"),
        (lambda x, y, i: i.requires_grad_(), "only Tensors of floating point dtype can"),
        (lambda x, y, i: setattr(i, "requires_grad", True), "floating point and complex dtype"),
        (lambda x, y, i: tensor([1], requires_grad=True), "floating point and complex dtype"),
        (lambda x, y, i: i.retain_grad(), "can't retain_grad on Tensor that has requires_grad=F"),
        (lambda x, y, i: i.register_hook(print), "cannot register a hook on a tensor that"),
        (
            lambda x, y, i: i.register_post_accumulate_grad_hook(print),
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
        (
            lambda x, y, i: y.register_post_accumulate_grad_hook(print),
            "cannot be registered on non-leaf tensors",
        ),
        (lambda x, y, i: y[:1].detach_(), "Can't detach views in-place"),
    ],
)
def test_what_is_refused_changes_nothing(action: Any, message: str) -> None:
    x, i = leaf(), tensor([1, 2])
    y = x * 2
    node = y.grad_fn
    with pytest.raises(RuntimeError, match=message):
        action(x, y, i)
    assert x.requires_grad
    assert y.grad_fn is node
    assert not i.requires_grad
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [2, 2])


def test_retain_grad() -> None:
    x = leaf()
    y = x * 2
    for _ in range(2):
        y.retain_grad()
        x.retain_grad()
    assert y.retains_grad
    assert not x.retains_grad
    (y * 3).sum().backward()
    assert_array_equal(y.grad.numpy(), [3, 3])
    assert_array_equal(x.grad.numpy(), [6, 6])


def test_the_gradient_of_what_is_no_leaf_is_asked_for_in_vain() -> None:
    y = leaf() * 2
    with pytest.warns(UserWarning, match=r"not a leaf Tensor .* \(test_tensor_state.py|is being"):
        assert y.grad is None
    y.retain_grad()
    assert y.grad is None  # it will come


# grad --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (5, TypeError, "assigned grad expected to be a Tensor or None but got grad of type int"),
        (np.ones(2), TypeError, "got grad of type ndarray"),
        (tensor([1.0]), RuntimeError, r"gradient of size '\[1\]' to a tensor of size '\[2\]'"),
        (
            tensor([1.0, 2.0], dtype=np.float32),
            RuntimeError,
            "gradient with dtype 'float' to a tensor with grad_dtype 'Double'",
        ),
    ],
    ids=["number", "array", "shape", "dtype"],
)
def test_gradients_that_do_not_fit(value: Any, error: Any, message: str) -> None:
    x = leaf()
    x.grad = tensor([3.0, 4.0])
    with pytest.raises(error, match=message):
        x.grad = value
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x
    assert_array_equal(x.grad.numpy(), [3, 4])


def test_gradients_that_the_user_sets() -> None:
    x = leaf()
    own = x.grad = tensor([3.0, 4.0])
    (x * 2).sum().backward()
    assert x.grad is own
    assert_array_equal(own.numpy(), [5, 6])
    own.zero_()
    (x * 2).sum().backward()
    assert_array_equal(own.numpy(), [2, 2])
    del x.grad
    assert x.grad is None
    (x * 3).sum().backward()
    assert_array_equal(own.numpy(), [2, 2])
    assert_array_equal(x.grad.numpy(), [3, 3])
    x.grad = None
    assert x.grad is None


# data --------------------------------------------------------------------------------------------


def test_data_is_replaced_without_notice() -> None:
    x = leaf()
    y = (x * x).sum()
    x.data = tensor([5.0, 6.0])
    assert x._version == 0
    assert x.requires_grad
    y.backward()
    assert_array_equal(x.grad.numpy(), [2, 4])  # of the values that were saved
    x.grad = None
    x.data = tensor([[1.0, 2.0, 3.0]])
    (x * x).sum().backward()
    assert_array_equal(x.grad.numpy(), [[2, 4, 6]])


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (5, TypeError, "Variable data has to be a tensor, but got int"),
        (np.ones(2), TypeError, "Variable data has to be a tensor, but got ndarray"),
        (tensor([1, 2]), RuntimeError, "must be floating point or complex dtype"),
    ],
)
def test_data_that_do_not_fit(value: Any, error: Any, message: str) -> None:
    x = leaf()
    with pytest.raises(error, match=message):
        x.data = value
    assert_array_equal(x.detach().numpy(), [1, 2])


def test_detach() -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: g * 100)
    d = y.detach()
    assert (d.requires_grad, d.is_leaf, d.grad_fn) == (False, True, None)
    d += 1
    assert_array_equal(y.data.numpy(), [3, 5])
    assert y._version == d._version == 1
    assert y.detach_() is y
    assert y.is_leaf
    assert not (y * x.detach()).requires_grad


# copies ------------------------------------------------------------------------------------------


def test_deep_copies_are_leaves_of_their_own() -> None:
    x = leaf()
    x.grad = tensor([3.0, 4.0])
    x.note = ["text"]
    x.register_hook(lambda g: g * 100)
    other = copy.deepcopy(x)
    assert (other.requires_grad, other.is_leaf) == (True, True)
    assert other.note == ["text"]
    assert other.note is not x.note
    (other * 2).sum().backward()
    assert_array_equal(other.grad.numpy(), [5, 6])  # hooks are not copied
    assert_array_equal(x.grad.numpy(), [3, 4])
    with no_grad():
        other += 1
    assert_array_equal(x.detach().numpy(), [1, 2])
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(x * 2)


@pytest.mark.parametrize(
    "parts",
    [
        lambda x: [x, x[:2]],
        lambda x: [x[:2], x],
        lambda x: [x.view(2, 2), x[::2]],
        lambda x: [x, x.detach()],
        lambda x: [x.t() if x.ndim > 1 else x, x[1:]],
        lambda x: [x, x],
    ],
    ids=["base first", "view first", "two views", "detached", "rest", "twice"],
)
def test_deep_copies_share_memory_where_the_originals_do(parts: Any) -> None:
    x = tensor([1.0, 2.0, 3.0, 4.0])
    originals = parts(x)
    first, second = copy.deepcopy(originals)
    assert (first is second) == (originals[0] is originals[1])
    before = [t.numpy().copy() for t in originals]
    for t, original in zip((first, second), originals, strict=True):
        assert_array_equal(t.numpy(), original.numpy())
        assert t.stride() == original.stride()
    assert np.shares_memory(first.numpy(), second.numpy())
    first.mul_(10)
    assert second.numpy().max() >= 10
    for t, values in zip(originals, before, strict=True):
        assert_array_equal(t.numpy(), values)


def test_layouts_of_copies() -> None:
    x = tensor(np.arange(6.0).reshape(2, 3))
    for t in (x.t(), x[:, 1:], x[0]):
        other = copy.deepcopy(t)
        assert other.stride() == t.stride()
        assert_array_equal(other.numpy(), t.numpy())
    reversed_ = from_numpy(np.arange(4.0)[::-1])
    assert_array_equal(copy.deepcopy(reversed_).numpy(), [3, 2, 1, 0])


def test_shallow_copies() -> None:
    x = leaf()
    other = copy.copy(x)
    assert other.requires_grad
    assert other.data_ptr() == x.data_ptr()
    (other * 2).sum().backward()
    assert x.grad is None
    y = copy.copy(x * 2)
    assert y.grad_fn.name() == "CloneBackward0"  # a copy does not lose the derivative


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_are_leaves(protocol: int) -> None:
    x = leaf()
    x.grad = tensor([3.0, 4.0])
    x.note = 5
    x.register_hook(lambda g: g * 100)
    for t in (x, x * 2, x.detach(), tensor([1, 2]), tensor([1j]), tensor(3.0)):
        other = pickle.loads(pickle.dumps(t, protocol))
        assert (other.requires_grad, other.is_leaf) == (t.requires_grad, True)
        assert other.dtype == t.dtype
        assert_array_equal(other.detach().numpy(), t.detach().numpy())
    other = pickle.loads(pickle.dumps(x, protocol))
    assert other.grad is None
    assert other.note == 5
    (other * 2).sum().backward()
    assert_array_equal(other.grad.numpy(), [2, 2])


def test_copies_of_inference_tensors_are_plain() -> None:
    with inference_mode():
        x = tensor([1.0, 2.0])
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x)), x.clone()):
        assert not other.is_inference()
        assert_array_equal(other.numpy(), [1, 2])


# conversions -------------------------------------------------------------------------------------


def test_memory_is_shared_with_arrays_both_ways() -> None:
    a = np.array([1.0, 2.0])
    x = from_numpy(a)
    assert x.numpy() is a
    a[0] = 5.0
    x[1] = 6.0
    assert_array_equal(a, [5, 6])
    assert x._version == 1
    assert_array_equal(x.detach().numpy(), np.asarray(x))
    owned = tensor(a)
    a[:] = 0
    assert_array_equal(owned.numpy(), [5, 6])
    for wrong in ([1.0], tensor([1.0]), "text", None):
        with pytest.raises(TypeError, match=r"expected np\.ndarray"):
            from_numpy(wrong)  # type: ignore[arg-type]  # refused
    with pytest.raises(TypeError, match=r"can't convert np\.ndarray of type"):
        from_numpy(np.array(["text"]))


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        (lambda x: x.numpy(), RuntimeError, "Can't call numpy.. on Tensor that requires grad"),
        (lambda x: np.asarray(x), RuntimeError, "Can't call numpy.. on Tensor that requires grad"),
        (lambda x: x.item(), RuntimeError, "a Tensor with 2 elements cannot be converted"),
        (lambda x: bool(x), RuntimeError, "Boolean value of Tensor with more than one value is"),
        (lambda x: bool(x[:0]), RuntimeError, "Boolean value of Tensor with no values is"),
        (lambda x: float(x.detach()), ValueError, "only one element tensors can be converted to"),
        (lambda x: int(x.detach()), ValueError, "only one element tensors can be converted to"),
        (lambda x: complex(x.detach()), ValueError, "only one element tensors can be converted"),
        (lambda x: f"{x:.2f}", TypeError, "unsupported format string passed to Tensor"),
        (lambda x: f"{x[:0]:>9}", TypeError, "unsupported format string passed to Tensor"),
        (lambda x: f"{Parameter(x[0].detach()):.2f}", TypeError, "string passed to Parameter"),
        (lambda x: len(x[0]), TypeError, r"len\(\) of a 0-d tensor"),
        (lambda x: iter(x[0]), TypeError, "iteration over a 0-d tensor"),
        (lambda x: [1, 2][x[0].detach()], TypeError, "only integer tensors of a single element"),
        (lambda x: x.size(3), IndexError, r"Dimension out of range \(.* \[-1, 0\], but got 3"),
        (lambda x: x.stride(-2), IndexError, r"Dimension out of range \(.* \[-1, 0\], but got -2"),
    ],
)
def test_conversions_that_are_refused(action: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        action(leaf())


def test_what_tensors_say_of_themselves() -> None:
    x = tensor(np.arange(6, dtype=np.float32).reshape(2, 3), requires_grad=True)
    assert x.size() == (2, 3)
    assert (x.size(0), x.size(-1)) == (2, 3)
    assert (x.stride(), x.stride(0), x.t().stride(-1)) == ((3, 1), 3, 3)
    assert (x.element_size(), x.dim(), x.ndimension(), x.numel(), x.nelement()) == (4, 2, 2, 6, 6)
    assert (x.is_floating_point(), x.is_complex()) == (True, False)
    assert (tensor([1j]).is_complex(), tensor([1]).is_floating_point()) == (True, False)
    assert x[1:].data_ptr() - x.data_ptr() == 12
    assert x.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
    assert x[1, 2].item() == 5.0
    assert type(tensor([3]).item()) is int
    assert len(x) == 2
    assert [row.tolist() for row in x] == x.tolist()
    assert x.contiguous() is x
    assert not x.t().is_contiguous()
    assert x.t().contiguous().stride() == (2, 1)
    assert 4.0 in x
    assert 9.0 not in x
    assert len({x, x, x.detach()}) == 2
    assert [10, 20][tensor(1)] == 20
    assert (x.to(np.float64).dtype, x.to(tensor(1.0)).dtype) == (np.float64, np.float64)
    assert x.to(np.float32) is x
    assert x.to(np.float32, copy=True) is not x
    assert repr(tensor([1.0, 2.5], requires_grad=True)) == "tensor([1. , 2.5], requires_grad=True)"
    assert (f"{tensor(1.5):.2f}", f"{tensor([1.5])}") == ("1.50", "tensor([1.5])")
    assert f"{Parameter(tensor(1.5))}".startswith("Parameter containing:")


# Variable ----------------------------------------------------------------------------------------


def test_variables_are_tensors() -> None:
    data = tensor([1.0, 2.0])
    v = Variable(data, requires_grad=True)
    assert type(v) is Tensor
    assert isinstance(data, Variable)
    assert not isinstance(np.ones(2), Variable)
    assert v.requires_grad
    assert not data.requires_grad
    assert v.data_ptr() == data.data_ptr()
    (v * v).sum().backward()
    assert_array_equal(v.grad.numpy(), [2, 4])
    assert Variable(leaf() * 2).is_leaf
    assert not Variable(leaf()).requires_grad
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])  # type: ignore[arg-type]  # refused
    with pytest.raises(RuntimeError, match="dtype can require gradients"):
        Variable(tensor([1]), requires_grad=True)
    with pytest.raises(RuntimeError, match=r"is deprecated, use torch\.tensor"):
        variable(data)
    assert modes.grad
