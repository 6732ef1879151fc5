"""Dual tensors: tangents, both orders with reverse mode, the end of a level."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.compat.torch as torch
from cases import each
from functrans.autograd import forward_ad as fw
from functrans.autograd import from_numpy, func, grad, no_grad, tensor
from functrans.autograd.function import Function
from functrans.core.state import open_traces

X = np.array([0.5, 1.0, 2.0])
T = np.array([1.0, -2.0, 3.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


def waves(x: Any) -> Any:
    return (x.sin() * x).sum()


FIRST = np.cos(X) * X + np.sin(X)
SECOND = 2 * np.cos(X) - np.sin(X) * X


def test_a_tangent() -> None:
    with fw.dual_level():
        pair = fw.unpack_dual(waves(fw.make_dual(tensor(X), tensor(T))))
    assert isinstance(pair, fw.UnpackedDualTensor)
    primal, tangent = pair
    assert_allclose((primal.item(), tangent.item()), (np.sin(X) @ X, FIRST @ T))
    assert open_traces.get() == ()


def test_tensors_without_tangent() -> None:
    x = tensor(X)
    assert fw.unpack_dual(x).primal is x
    with fw.dual_level():
        primal, tangent = fw.unpack_dual(x)  # the primal is a view, as in PyTorch
        assert primal is not x
        assert np.shares_memory(primal.numpy(), x.numpy())
        assert tangent is None
        dual = fw.make_dual(x, tensor(T))
        assert fw.unpack_dual(dual.detach()).tangent is None
        with no_grad():
            assert_array_equal(fw.unpack_dual(dual * 2).tangent.numpy(), 2 * T)


def test_reverse_mode_of_a_dual_tensor() -> None:
    x = leaf()
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        assert dual.requires_grad
        assert not dual.is_leaf
        for at in (dual, x):
            (gradient,) = grad(waves(dual), at, create_graph=True)
            primal, product = fw.unpack_dual(gradient)
            assert_allclose(primal.detach().numpy(), FIRST)
            assert_allclose(product.detach().numpy(), SECOND * T)
        (third,) = grad(product.sum(), x)
    assert_allclose(third.numpy(), (-3 * np.sin(X) - np.cos(X) * X) * T)


def test_gradients_of_other_leaves() -> None:
    x, w = leaf(), leaf(T)
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        (gradient,) = grad((dual * dual * w * w).sum(), w)
        assert_allclose(fw.unpack_dual(gradient).tangent.numpy(), 4 * X * T * T)


def test_reverse_mode_of_a_tangent() -> None:
    x, t = leaf(), leaf(T)
    with fw.dual_level():
        tangent = fw.unpack_dual(waves(fw.make_dual(x, t))).tangent
        found = grad(tangent, [x, t])
    assert_allclose(found[0].numpy(), SECOND * T)
    assert_allclose(found[1].numpy(), FIRST)


def test_the_end_of_a_level() -> None:
    x = leaf()
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        y = waves(dual)
        y.backward(retain_graph=True)
    assert fw.unpack_dual(y).tangent is None
    assert_allclose(y.item(), np.sin(X) @ X)
    assert_allclose(x.grad.numpy(), FIRST)
    x.grad = None
    (y * 2).backward()
    assert_allclose(x.grad.numpy(), 2 * FIRST)
    assert_array_equal(dual.detach().numpy(), X)


def test_values_within_a_level() -> None:
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        assert waves(dual).item() == pytest.approx(np.sin(X) @ X)
        assert bool((dual > 0).all())
        assert_array_equal(dual.numpy(), X)


def test_writes() -> None:
    x = tensor(X)
    with fw.dual_level():
        y = fw.make_dual(x, tensor(T)) * 1
        y *= y
        y[0] = 0.0
        primal, tangent = fw.unpack_dual(y)
        assert_allclose(primal.numpy(), [0, *X[1:] ** 2])
        assert_allclose(tangent.numpy(), [0, *(2 * X * T)[1:]])


def test_a_write_to_a_tensor_without_tangent() -> None:
    y = tensor(X) * 1
    with fw.dual_level():
        y *= fw.make_dual(tensor(X), tensor(T))
        primal, tangent = fw.unpack_dual(y)
        assert_allclose(primal.numpy(), X * X)
        assert_allclose(tangent.numpy(), X * T)
    assert_allclose(y.numpy(), X * X)


def test_transforms_within_a_level() -> None:
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        jacobian = func.jacrev(lambda a: a * dual)(tensor(X))
        assert_allclose(fw.unpack_dual(jacobian).tangent.numpy(), np.diag(T))
        gradient = func.grad(waves)(dual)
        assert_allclose(fw.unpack_dual(gradient).tangent.numpy(), SECOND * T)


class Cube(Function):
    """``x**3``; the derivative of ``jvp`` has a factor 10, so that one sees who gave it."""

    @staticmethod
    def forward(ctx: Any, x: Any, other: Any) -> Any:
        ctx.save_for_backward(x)
        ctx.save_for_forward(x, None)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * gradient, None

    @staticmethod
    def jvp(ctx: Any, x_dot: Any, other_dot: Any) -> Any:
        assert other_dot is None
        x, _ = ctx.saved_tensors
        return 30 * x * x * x_dot


def test_functions() -> None:
    x = leaf()
    with fw.dual_level():
        dual = fw.make_dual(x, tensor(T))
        tangent = fw.unpack_dual(Cube.apply(dual, 3)).tangent
        assert_allclose(tangent.detach().numpy(), 30 * X**2 * T)
        (found,) = grad(tangent.sum(), x)
        assert_allclose(found.numpy(), 60 * X * T)
        (gradient,) = grad(Cube.apply(dual, 3).sum(), x)
        assert_allclose(fw.unpack_dual(gradient).primal.numpy(), 3 * X**2)


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda t: t[:2], "different size than that of the original Tensor"),
        (lambda t: (t, t), r"forward gradients \(expected 1 but got 2\)"),
        (lambda t: 3, r"expected Variable or None \(got int\) for grad output 0"),
    ],
)
def test_wrong_tangents_are_refused(result: Any, message: str) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def jvp(ctx: Any, x_dot: Any) -> Any:
            return result(x_dot)

    with fw.dual_level(), pytest.raises(RuntimeError, match=message):
        Wrong.apply(fw.make_dual(tensor(X), tensor(T)))


def test_levels() -> None:
    assert fw.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="Nested forward mode AD is not supported"):
        fw.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one that was created"):
        fw.exit_dual_level(level=3)
    fw.exit_dual_level(level=0)
    with pytest.raises(RuntimeError, match="Dual level must be a positive number"):
        fw.exit_dual_level()
    with pytest.raises(RuntimeError, match="no level exists"):
        fw.make_dual(tensor(X), tensor(T))


@pytest.mark.parametrize(
    ("primal", "tangent", "error", "message"),
    [
        (tensor(X), tensor(T[:2]), RuntimeError, r"of size \[3\] while .* size \[2\]"),
        (tensor([1]), tensor([1]), ValueError, "primal to be floating point or complex"),
        (tensor(X), tensor([1, 2, 3]), ValueError, "tangent to be floating point or complex"),
        (tensor(X), 1.0, TypeError, "tangent must be a Tensor"),
    ],
)
def test_wrong_pairs_are_refused(primal: Any, tangent: Any, error: Any, message: str) -> None:
    with fw.dual_level(), pytest.raises(error, match=message):
        fw.make_dual(primal, tangent)


def test_dual_tensors_of_dual_tensors_are_refused() -> None:
    with fw.dual_level():
        dual = fw.make_dual(tensor(X), tensor(T))
        with pytest.raises(RuntimeError, match="already has a forward gradient"):
            fw.make_dual(dual, tensor(T))
        with pytest.raises(RuntimeError, match="itself has a forward gradient"):
            fw.make_dual(tensor(X), dual)


# writes to what was there before ------------------------------------------------------------------

VIEWS: dict[str, Callable[[Any], Any]] = {
    "base": lambda x: x,
    "select": lambda x: x[1],
    "column": lambda x: x[..., -1],
    "slice": lambda x: x[:, 1:],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(6),
    "chain": lambda x: x.T[1:, 0],
    "unsqueeze": lambda x: x[None],
    "unbind": lambda x: x.unbind(0)[1],
    "same": lambda x: x[...],
}
WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "mul_": lambda x, d: x.mul_(d),
    "add_": lambda x, d: x.add_(d),
    "copy_": lambda x, d: x.copy_(d),
    "setitem": lambda x, d: x.__setitem__(..., 2.0 * d),
    "twice": lambda x, d: x.mul_(d).mul_(d),
}


def _views_after(write: str, written: str, seen: str, t: float, dual: Any = None) -> Any:
    """What a write to one view makes of another one; both were made before the level."""
    memory = np.arange(6.0).reshape(2, 3) - 2.5
    base = from_numpy(memory)
    target, other, plain = VIEWS[written](base), VIEWS[seen](base), base.detach()
    make = dual or (lambda shape, t: tensor(_point(shape, t)))
    point = make(target.shape, t)
    WRITES[write](target, point)
    return memory, base, target, other, plain


def _point(shape: Any, t: float) -> np.ndarray:
    return np.sin(1.0 + t + np.arange(float(np.prod(shape)))).reshape(shape)


@each("seen", VIEWS)
@each("written", VIEWS)
@each("write", WRITES, by="write")
def test_views_made_before_see_values_and_tangents(write: str, written: str, seen: str) -> None:
    step = 1e-6
    ends = [_views_after(write, written, seen, s) for s in (0.0, step, -step)]

    def dual(shape: Any, t: float) -> Any:
        slope = np.cos(1.0 + t + np.arange(float(np.prod(shape)))).reshape(shape)
        return fw.make_dual(tensor(_point(shape, t)), tensor(slope))

    with fw.dual_level():
        found = _views_after(write, written, seen, 0.0, dual)
        memory, *tensors, plain = found
        for x, middle, above, below in zip(tensors, *[end[1:4] for end in ends], strict=True):
            value, tangent = fw.unpack_dual(x)
            assert_allclose(value.numpy(), middle.numpy(), rtol=1e-14)
            slope = (above.numpy() - below.numpy()) / (2 * step)
            own = np.zeros(x.shape) if tangent is None else tangent.numpy()
            assert_allclose(own, slope, rtol=1e-7, atol=1e-8)
            doubled = fw.unpack_dual(2.0 * x).tangent
            own = np.zeros(x.shape) if doubled is None else doubled.numpy()
            assert_allclose(own, 2.0 * slope, rtol=1e-7, atol=1e-8)
        assert_allclose(memory, ends[0][0], rtol=1e-14)
        assert_allclose(plain.numpy(), ends[0][0], rtol=1e-14)
    _, base, target, other, _ = found
    memory += 1.0
    for x, name in ((base, "base"), (target, written), (other, seen)):
        assert_array_equal(x.numpy(), VIEWS[name](from_numpy(memory)).numpy())
    base.mul_(2.0)
    assert_array_equal(other.numpy(), VIEWS[seen](from_numpy(memory)).numpy())


RESHAPED: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "unsqueeze_": lambda x: x.unsqueeze_(1),
    "transpose_": lambda x: x.transpose_(0, 1),
    "squeeze_": lambda x: x.squeeze_(),
}


@pytest.mark.parametrize("is_inside", [True, False])
@pytest.mark.parametrize("written", ["base", "view"])
@pytest.mark.parametrize("reshape", RESHAPED)
def test_writes_after_a_change_of_shape(reshape: str, written: str, is_inside: bool) -> None:
    def make() -> tuple[Any, Any]:
        base = tensor(np.arange(6.0).reshape(2, 3) - 2.5)
        view = base[1]
        RESHAPED[reshape](base)
        return base, view

    base, view = make()
    with fw.dual_level():
        if is_inside:
            base, view = make()
        target = base if written == "base" else view
        before = (base.numpy().copy(), view.numpy().copy())
        target.mul_(fw.make_dual(tensor(np.full(target.shape, 3.0)), tensor(np.ones(target.shape))))
        flags = np.ones((2, 3), bool) if written == "base" else np.array([[0] * 3, [1] * 3], bool)
        own = from_numpy(np.where(flags, 1.0, 0.0))
        row = own[1]
        RESHAPED[reshape](own)
        for x, was, is_written in zip((base, view), before, (own, row), strict=True):
            primal, tangent = fw.unpack_dual(x)
            on = is_written.numpy()
            assert_allclose(primal.numpy(), was * np.where(on, 3.0, 1.0), rtol=1e-14)
            assert_allclose(tangent.numpy(), was * on, rtol=1e-14)
    base.mul_(2.0)
    assert_allclose(view.numpy(), 6.0 * before[1], rtol=1e-14)


@pytest.mark.parametrize("has_view", [True, False])
@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("reshape", RESHAPED)
def test_a_dual_tensor_that_changes_its_shape_shares_memory_as_before(
    reshape: str, is_recorded: bool, has_view: bool
) -> None:
    """Writes to primal, tangent and the dual tensor are seen in all, during the level and after."""

    def turned(values: np.ndarray) -> np.ndarray:
        return RESHAPED[reshape](from_numpy(values.copy())).numpy()

    start = np.arange(6.0).reshape(2, 3) - 2.5
    x = tensor(start, requires_grad=is_recorded)
    primal, tangent = x * 1.0, tensor(start + 1.0)
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        row = dual[1] if has_view else None
        RESHAPED[reshape](dual)
        value, slope = 2.0 * start, start + 1.0
        primal.mul_(2.0)
        for factor in (1.0, 3.0):
            value, slope = factor * value, factor * slope
            dual.mul_(factor)
            copied = fw.unpack_dual(dual * 1.0)
            assert_array_equal(copied.primal.detach().numpy(), turned(value))
            assert_array_equal(copied.tangent.detach().numpy(), turned(slope))
            assert_array_equal(primal.detach().numpy(), value)
            assert_array_equal(tangent.detach().numpy(), slope)
        tangent.mul_(0.5)
        assert_array_equal(fw.unpack_dual(dual).tangent.detach().numpy(), turned(0.5 * slope))
        assert row is None or row.detach().tolist() == value[1].tolist()
    dual.add_(1.0)
    assert_array_equal(primal.detach().numpy(), value + 1.0)
    if is_recorded:
        (found,) = grad((dual * dual).sum() + primal.sum(), x)
        assert_array_equal(found.numpy(), 6.0 * (2.0 * (value + 1.0) + 1.0))


@pytest.mark.parametrize("seen", VIEWS)
@pytest.mark.parametrize("written", VIEWS)
def test_gradients_go_through_writes_in_levels(written: str, seen: str) -> None:
    w = tensor(np.arange(6.0).reshape(2, 3) - 2.5, requires_grad=True)

    def values(dual: Any) -> Any:
        base = w * 1.0
        target, other = VIEWS[written](base), VIEWS[seen](base)
        if written != "unbind":  # torch forbids writes to one of several views
            target.mul_(dual(target.shape, 0.0))
        return base, other

    def dual(shape: Any, t: float) -> Any:
        return fw.make_dual(tensor(_point(shape, t)), tensor(np.ones(shape)))

    expected = grad(
        sum((x * x).sum() for x in values(lambda shape, t: tensor(_point(shape, t)))), w
    )
    with fw.dual_level():
        total = sum((x * x).sum() for x in values(dual))
        (found,) = grad(fw.unpack_dual(total).primal, w)
    assert_allclose(found.numpy(), expected[0].numpy(), rtol=1e-13)


BEFORE_A_WRITE: dict[str, Callable[[Any], Any]] = {
    "plus a number": lambda d: d + 1,
    "minus a leaf": lambda d: d - LEAF,
    "times one": lambda d: d * 1,
    "clone": lambda d: d.clone(),
    "flip": lambda d: d.flip(0),
    "cat": lambda d: torch.cat([d]),
    "double": lambda d: d.to(torch.float64, copy=True),
    "negative twice": lambda d: d.neg().neg(),
    "of a part": lambda d: d[1:] + 0,
    "transposed": lambda d: d.expand(2, 3).t() + 1,
}
LEAF = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("name", BEFORE_A_WRITE)
@pytest.mark.parametrize("is_made_inside", [False, True])
def test_results_are_not_written_to_with_their_operands(name: str, is_made_inside: bool) -> None:
    """An operation that hands a tangent on, as addition does, hands on a copy."""
    operation = BEFORE_A_WRITE[name]
    value = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
    tangent = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
    with fw.dual_level():
        dual = fw.make_dual(value, tangent)
        if is_made_inside:
            made = LEAF.clone()
            made[0] = dual[0]
            dual = made
        result = operation(dual)
        before = [x.detach().clone() for x in fw.unpack_dual(result)]
        dual.mul_(dual.detach().clone() + 1)
        dual.sin_()
        for now, then in zip(fw.unpack_dual(result), before, strict=True):
            assert_allclose(now.detach().numpy(), then.numpy())


@pytest.mark.parametrize(
    "name", ["sin_", "cos_", "exp_", "square_", "sigmoid_", "tanh_", "reciprocal_", "pow_", "atan_"]
)
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:]])
def test_reverse_mode_goes_through_writes_to_dual_tensors(name: str, part: Any) -> None:
    def slope(write: Any) -> Any:
        x = tensor([0.4, 1.3], requires_grad=True)
        w = tensor([0.7, -0.2], requires_grad=True)
        with fw.dual_level():
            dual = fw.make_dual(x * 2, w * 3)
            primal, tangent = fw.unpack_dual(write(dual))
            (primal * tangent).sum().backward()
        return [x.grad.numpy(), w.grad.numpy()]

    args = (3,) if name == "pow_" else ()

    def in_place(dual: Any) -> Any:
        getattr(part(dual), name)(*args)
        return dual

    def as_new(dual: Any) -> Any:
        new = getattr(part(dual), name[:-1])(*args)
        return new if new.shape == dual.shape else torch.cat([dual[:1], new])

    for found, expected in zip(slope(in_place), slope(as_new), strict=True):
        assert_allclose(found, expected, 1e-12)


@pytest.mark.parametrize("requires_grad", [False, True])
def test_writes_to_the_parts_reach_the_dual_tensor_and_its_views(requires_grad: bool) -> None:
    leaf = tensor([1.0, 2.0], requires_grad=requires_grad)
    given = leaf * 1
    with fw.dual_level():
        dual = fw.make_dual(given, given * 0.5)
        view = dual[:1]
        for write in (given, fw.unpack_dual(dual).primal):
            write[0] += 3
        fw.unpack_dual(view).primal.add_(1)
        fw.unpack_dual(view).tangent.mul_(4)
        for x in (dual, view):
            primal, tangent = fw.unpack_dual(x)
            assert primal[0].item() == 8
            assert tangent[0].item() == 2


@pytest.mark.parametrize("name", ["relu", "exp", "tanh", "sigmoid", "sqrt"])
def test_writes_to_a_dual_result_do_not_reach_what_its_derivative_reads(name: str) -> None:
    found = []
    for is_unpacked in (False, True):
        x = tensor([0.3, 0.8], requires_grad=True)
        with fw.dual_level():
            result = getattr(torch, name)(fw.make_dual(x * 1, x * x))
            if is_unpacked:
                fw.unpack_dual(result)
            primal, tangent = fw.unpack_dual(result.add_(1) if is_unpacked else result + 1)
            (primal + tangent).sum().backward()
        found.append(x.grad.numpy())
    assert_allclose(found[0], found[1], 1e-12)


def test_an_unpacked_primal_is_recorded_when_its_dual_tensor_is() -> None:
    w = tensor([0.7, -0.2], requires_grad=True)
    with fw.dual_level():
        dual = fw.make_dual(tensor([1.0, 2.0]), tensor([3.0, 4.0]))
        primal = fw.unpack_dual(dual).primal
        dual *= w
        primal.sum().backward()
        number = w.sum() * 1
        part = fw.unpack_dual(number).primal
        number.mul_(4)
        assert part.item() == number.item() > 1
    assert w.grad.tolist() == [1, 2]


def test_a_write_to_a_dual_is_counted_once() -> None:
    primal, tangent = torch.ones(2), torch.ones(2)
    with fw.dual_level():
        dual = fw.make_dual(primal, tangent)
        for count, x in enumerate((dual, primal, dual[:1], fw.unpack_dual(dual).primal), 1):
            x.mul_(2.0)
            assert primal._version == dual._version == count
        assert tangent._version == 2  # of the writes to the dual and to its view
        plain = torch.zeros(2)
        plain.copy_(dual)
        assert plain._version == 1


WRITES_TO_PRIMALS: dict[str, Any] = {
    "itself": lambda v, d, x: v.tanh_(),
    "by a variable": lambda v, d, x: v.mul_(x),
    "a part": lambda v, d, x: v[1:].sin_(),
    "a constant factor": lambda v, d, x: v.mul_(2.0),
    "both": lambda v, d, x: (v.mul_(x), d.mul_(2.0), v.sin_()),
    "both, the dual first": lambda v, d, x: (d.mul_(x), v.mul_(2.0), d[1:].sin_()),
    "copied": lambda v, d, x: v.copy_(x * 3.0),
    "filled": lambda v, d, x: v.fill_(0.5),
}


def _slope(y: Any, x: Any) -> Any:
    if not y.requires_grad:
        return np.zeros(x.shape)
    return grad(y.sum(), x, retain_graph=True)[0].detach().numpy()


@pytest.mark.parametrize("written", WRITES_TO_PRIMALS)
@pytest.mark.parametrize("made", ["recorded", "constant", "view"])
@pytest.mark.parametrize("when", ["in the level", "after it"])
def test_a_dual_tensor_has_the_gradient_of_what_is_written_to_its_primal(
    written: str, made: str, when: str
) -> None:
    x = tensor([0.3, 0.6, 0.9], requires_grad=True)
    start = {
        "recorded": lambda: x * x,
        "constant": lambda: tensor([0.7, 0.2, 0.4]),
        "view": lambda: torch.cat([x, x * x])[2:5],
    }[made]
    primal = start()
    with fw.dual_level():
        dual = fw.make_dual(primal, tensor([1.0, 2.0, 3.0]))
        part = dual[1:]
        WRITES_TO_PRIMALS[written](primal, dual, x)
        found = [dual, part, dual * dual]
        if when == "in the level":
            slopes = [_slope(y, x) for y in found]
    if when == "after it":
        slopes = [_slope(y, x) for y in found]
    other = start()
    WRITES_TO_PRIMALS[written](other, other, x)
    for y, slope, right in zip(found, slopes, (other, other[1:], other * other), strict=True):
        assert y.requires_grad == right.requires_grad
        assert_allclose(slope, _slope(right, x))
    assert_allclose(dual.detach().numpy(), other.detach().numpy())


def test_hooks_of_a_dual_tensor_stay_where_nothing_recorded_was_written() -> None:
    seen: list[Any] = []
    x = tensor([0.3, 0.6], requires_grad=True)
    primal = x * x
    with fw.dual_level():
        dual = fw.make_dual(primal, tensor([1.0, 2.0]))
        dual.register_hook(lambda g: seen.append(g))
        with no_grad():
            primal.mul_(2.0)
        dual.sum().backward()
    assert len(seen) == 1
    assert_allclose(x.grad, [0.6, 1.2])


@pytest.mark.parametrize("part", [slice(None), slice(1, None)])
def test_a_write_to_a_view_of_a_former_dual_tensor_is_one_to_its_primal(part: slice) -> None:
    x = tensor([0.3, 0.6, 0.9], requires_grad=True)
    primal = x * 1.0
    with fw.dual_level():
        dual = fw.make_dual(primal, tensor([1.0, 2.0, 3.0]))
        view = dual[part]
    view.mul_(3.0)
    wanted = np.ones(3)
    wanted[part] = 3.0
    for y in (primal, dual):
        assert_allclose(grad(y.sum(), x, retain_graph=True)[0], wanted)
    dual.sin_()
    at = x.detach().numpy() * 3.0
    inside = np.zeros(3)
    inside[part] = 1.0
    assert_allclose(grad(view.sum(), x)[0], np.cos(at) * 3.0 * inside)


def test_primal_and_former_dual_tensor_retain_gradients_of_their_own() -> None:
    x = tensor([0.3, 0.6], requires_grad=True)
    primal = x * 1.0
    with fw.dual_level():
        dual = fw.make_dual(primal, tensor([1.0, 2.0]))
    primal.retain_grad()
    dual.retain_grad()
    primal.mul_(2.0)
    (dual.sum() + 2.0 * primal.sum()).backward()
    assert_allclose(dual.grad, [1.0, 1.0])
    assert_allclose(primal.grad, [3.0, 3.0])
    assert_allclose(x.grad, [6.0, 6.0])


def test_views_of_a_dual_tensor_keep_their_graph_where_the_primal_is_detached() -> None:
    x = tensor([0.3, 0.6], requires_grad=True)
    primal = x * 2.0
    with fw.dual_level():
        dual = fw.make_dual(primal, tensor([1.0, 2.0]))
        primal.detach_()
        view = dual.view(2)
    assert_allclose(grad(view.sum(), x)[0], [2.0, 2.0])


VIEWS_OF_DUALS: dict[str, Any] = {
    "part": lambda d: d.narrow(-1, 1, 2),
    "diagonal": lambda d: d.diagonal(),
    "shape": lambda d: d.view(6),
    "all of it": lambda d: d.view_as(d),
    "of a view": lambda d: d.t()[1:],
    "expanded": lambda d: d.expand(2, 2, 3),
    "detached": lambda d: d.detach(),
}
WRITES_AROUND: dict[str, Any] = {
    "nothing": lambda x, d, v, u: None,
    "the dual": lambda x, d, v, u: d.mul_(2),
    "the primal": lambda x, d, v, u: x.mul_(u.sum()),
    "the view": lambda x, d, v, u: v.mul_(u.sum()),
    "the view, the dual": lambda x, d, v, u: (v.mul_(u.sum()), d.sin_()),
}


@pytest.mark.parametrize("then", WRITES_AROUND)
@pytest.mark.parametrize("first", WRITES_AROUND)
@pytest.mark.parametrize("viewed", VIEWS_OF_DUALS)
def test_views_that_a_level_leaves_have_the_gradients_of_views_of_a_view(
    viewed: str, first: str, then: str
) -> None:
    """Gradients with regard to primal, former dual tensor, view and variable."""
    if viewed == "expanded" and "view" in first + then:
        pytest.skip("writes to elements that share memory are refused")

    def run(is_dual: bool) -> list[Any]:
        u = tensor([[0.226, -0.418, -0.514], [-0.479, -0.678, 1.359]], requires_grad=True)
        x = u * 1
        with fw.dual_level():
            d = fw.make_dual(x, torch.ones_like(x)) if is_dual else x.view_as(x)
            v = VIEWS_OF_DUALS[viewed](d)
            WRITES_AROUND[first](x, d, v, u)
        WRITES_AROUND[then](x, d, v, u)
        y = v.pow(2).sum() + d.sum()
        asked = [t for t in (d, x, v, u) if t.requires_grad]
        return [len(asked), *grad(y, asked, allow_unused=True), x, d, v]

    for found, right in zip(run(True), run(False), strict=True):
        if isinstance(found, torch.Tensor):
            assert_allclose(found.detach(), right.detach())
        else:
            assert found == right


def test_gradients_of_dual_tensors_depend_on_the_gradients_that_were_given() -> None:
    p, w = leaf([1.0, 2.0]), leaf(3.0)
    with fw.dual_level():
        dual = fw.make_dual(p, tensor([1.0, 1.0]))
        (found,) = grad(dual**3, p, w * tensor([1.0, 1.0]), create_graph=True)
        ((found**2).sum() + w).backward()
        batch = (w * tensor([1.0, 1.0])).expand(2, 2)
        (rows,) = grad(dual**3, p, batch, create_graph=True, is_grads_batched=True)
        (slope,) = grad(rows.sum(), w)
        along = torch.autograd.functional.jvp(
            lambda x: (x * x).sum(), (fw.make_dual(p.detach(), p.detach()),), (tensor([5.0, 6.0]),)
        )
    assert_allclose(w.grad, 1 + 2 * 3 * (3.0**2 + 12.0**2))
    assert_allclose(slope, 2 * (3.0 + 12.0))
    assert_allclose(along[1], 2 * (1 * 5 + 2 * 6))


RETAINED: dict[str, Any] = {
    "computed": lambda z, d: z.mul_(2),
    "several times": lambda z, d: z.mul_(2).add_(1).mul_(3),
    "by a dual": lambda z, d: z.mul_(d),
    "a part": lambda z, d: z[0].mul_(2),
    "after a view": lambda z, d: (z.view(2), z.mul_(2)),
}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("write", RETAINED)
@pytest.mark.parametrize("kind", ["dual", "result", "view", "plain"])
def test_retained_gradients_are_those_after_writes_in_a_level(
    kind: str, write: str, before: bool
) -> None:
    """As of the same program without dual tensors; or with a backward pass in the level."""

    def run(is_dual: bool) -> list[Any]:
        p, k = leaf([1.0, 2.0]), tensor([5.0, 6.0])
        with fw.dual_level():
            d = fw.make_dual(p * 1, tensor([1.0, 1.0])) if is_dual else (p * 1).view(2)
            factor = fw.make_dual(k.clone(), tensor([1.0, 1.0])) if is_dual else k
            of_kind = {"dual": d, "result": d * k, "view": (d * k)[:], "plain": p * k}
            z = of_kind[kind]
            z.retain_grad()
            z.retain_grad()
            RETAINED[write](z, factor)
            y = z.pow(2).sum()
            if before:
                y.backward()
        if not before:
            y.backward()
        return [z.grad, p.grad]

    for found, right in zip(run(True), run(False), strict=True):
        assert_allclose(found, right)


class _Scaled(Function):
    """A view whose gradient is another one."""

    @staticmethod
    def forward(ctx: Any, x: Any, start: int) -> Any:
        ctx.extra = x.shape, start
        return x.view_as(x) if start == 0 else x[start:]

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return 100 * g.sum() * torch.ones(ctx.extra[0]), None

    @staticmethod
    def jvp(ctx: Any, t: Any, _: Any) -> Any:
        return t.view_as(t) if ctx.extra[1] == 0 else t[ctx.extra[1] :]


@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("viewed", ["dual", "result", "view"])
def test_views_of_a_function_are_in_the_memory_of_its_argument_when_a_level_ends(
    viewed: str, start: int
) -> None:
    def run(x: Any) -> Any:
        with fw.dual_level():
            dual = fw.make_dual(x, torch.ones_like(x))
            d = {"dual": dual, "result": dual * 1, "view": dual[1:]}[viewed]
            return d, _Scaled.apply(d, start)

    d, out = run(tensor(X))
    d.mul_(3.0)
    assert_allclose(out, d[start:])
    d, out = run(leaf() * 1)
    d.mul_(3.0)
    with pytest.raises(RuntimeError, match="has been modified inplace"):
        out.sum()
    d, out = run(leaf() * 1)
    with pytest.raises(RuntimeError, match="is being modified inplace"):
        out.mul_(3.0)


PLAIN_BY_DUAL: dict[str, Any] = {
    "all of it": lambda x, d: x.mul_(d),
    "a part": lambda x, d: x[1:].mul_(d[1:]),
    "several times": lambda x, d: x.sin_().mul_(d).exp_().pow_(d),
}


@pytest.mark.parametrize("write", PLAIN_BY_DUAL)
def test_what_is_written_by_a_dual_tensor_has_gradients_after_the_level(write: str) -> None:
    def run(is_dual: bool) -> list[Any]:
        p, q = leaf(), leaf([3.0, 1.0, 2.0])
        with fw.dual_level():
            x = p * 1
            PLAIN_BY_DUAL[write](x, fw.make_dual(q, tensor(T)) if is_dual else q)
        return [x.detach(), *grad(x.sum(), [p, q])]

    for found, right in zip(run(True), run(False), strict=True):
        assert_allclose(found, right)


@pytest.mark.parametrize("follow", [lambda d: d.detach(), lambda d: d[1:], lambda d: d.view(3)])
def test_writes_to_a_tangent_after_the_level_reach_nothing_else(follow: Any) -> None:
    for x in (tensor(X), leaf() * 1):
        direction = tensor(T)
        with fw.dual_level():
            view = follow(fw.make_dual(x, direction))
        direction.mul_(2.0)
        assert_allclose(view.detach(), X[-len(view) :])
        assert_allclose(direction, 2 * T)


NODES: dict[str, Any] = {
    "dual": lambda d: d,
    "product": lambda d: d * 2,
    "part": lambda d: d[1:],
    "sine": lambda d: d.sin(),
    "one of several": lambda d: d.split(1)[1],
}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("made", NODES)
def test_what_is_registered_on_nodes_in_a_level_holds_after_it(made: str, before: bool) -> None:
    x = leaf()
    with fw.dual_level():
        z = NODES[made](fw.make_dual(x * 1, tensor(T)))
        y = z.sum()
        (right,) = grad(y, x, retain_graph=True)
        edge = torch.autograd.graph.get_gradient_edge(z)
        z.grad_fn.metadata["key"] = 1
        handle = z.grad_fn.register_prehook(
            lambda g: tuple(None if each is None else each * 10 for each in g)
        )
        if not before:
            z.grad_fn.register_hook(
                lambda inputs, _: tuple(None if each is None else each * 3 for each in inputs)
            )
        if before:
            assert_allclose(grad(y, x, retain_graph=True)[0], 10 * right)
    assert z.grad_fn.metadata == {"key": 1}
    assert_allclose(grad(y, edge, retain_graph=True)[0], np.ones(z.shape))
    factor = 10 if before else 30
    assert_allclose(grad(y, x, retain_graph=True)[0], factor * right.detach())
    handle.remove()
    assert_allclose(grad(y, x)[0], factor / 10 * right.detach())


DETACHED: dict[str, Callable[[Any], Any]] = {
    "detached": lambda b: b.detach(),
    "a part, detached": lambda b: b[1:].detach(),
    "a part of what is detached": lambda b: b.detach()[1:],
    "data": lambda b: b.data,
    "data of a part": lambda b: b[1:].data,
}


@pytest.mark.parametrize("name", DETACHED)
@pytest.mark.parametrize("requires", [False, True])
def test_the_primal_of_what_is_detached_shares_memory(name: str, requires: bool) -> None:
    with fw.dual_level():
        primal = torch.ones(3, requires_grad=requires)
        dual = fw.make_dual(primal, torch.ones(3))
        parts = fw.unpack_dual(DETACHED[name](dual))
        assert parts.tangent is None
        assert not parts.primal.requires_grad
        parts.primal.mul_(3.0)
        expected = [1.0 if "part" in name else 3.0, 3.0, 3.0]
        assert primal.tolist() == expected
        assert fw.unpack_dual(dual).primal.tolist() == expected
        assert fw.unpack_dual(dual).tangent.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("is_tangent", [False, True])
@pytest.mark.parametrize("name", ["squeeze_", "unsqueeze_", "t_", "swapaxes_", "mul_"])
def test_dual_tensors_of_leaves_are_not_changed_in_place(name: str, is_tangent: bool) -> None:
    leaf = torch.ones(1, 3, requires_grad=True)
    pair = (torch.ones(1, 3), leaf) if is_tangent else (leaf, torch.ones(1, 3))
    arguments = {"unsqueeze_": (0,), "swapaxes_": (0, 1), "mul_": (2.0,)}.get(name, ())
    with fw.dual_level():
        dual = fw.make_dual(*pair)
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
            getattr(dual, name)(*arguments)
        assert dual.shape == leaf.shape == (1, 3)
        with torch.no_grad():
            getattr(fw.make_dual(leaf * 1, torch.ones(1, 3)), name)(*arguments)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("kind", ["plain", "leaf", "recorded"])
def test_other_data_of_a_primal_are_not_those_of_its_dual_tensor(kind: str, size: int) -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=kind != "plain")
    if kind == "recorded":
        x, size = x * 1, 3
    with fw.dual_level():
        dual = fw.make_dual(x, torch.tensor([2.0, 2.0, 2.0]))
        part = dual[1:]
        x.data = torch.zeros(size)
        with torch.no_grad():
            x.add_(5)
        assert fw.unpack_dual(dual).primal.tolist() == dual.tolist() == [1, 2, 3]
        with torch.no_grad():
            dual.mul_(3)
        assert fw.unpack_dual(dual).primal.tolist() == [3, 6, 9]
        assert fw.unpack_dual(part).tangent.tolist() == [6, 6]
    assert (dual.tolist(), part.tolist(), x.tolist()) == ([3, 6, 9], [6, 9], [5] * size)


def test_other_data_of_a_tangent_are_refused() -> None:
    tangent = torch.ones(3)
    with fw.dual_level():
        dual = fw.make_dual(torch.zeros(3), tangent)
        with pytest.raises(RuntimeError, match="data set to the tangent of a dual tensor"):
            tangent.data = torch.zeros(3)
        tangent.copy_(torch.full((3,), 2.0))
        assert fw.unpack_dual(dual).tangent.tolist() == [2, 2, 2]
    tangent.data = torch.zeros(2)
    assert tangent.tolist() == [0, 0]


@pytest.mark.parametrize("name", ["swapaxes_", "mul_"])
@pytest.mark.parametrize("is_part", [False, True])
def test_dual_tensors_of_views_of_a_function_are_not_changed_in_place(
    name: str, is_part: bool
) -> None:
    class Viewed(Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            pass

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0]

    made = Viewed.apply(tensor([1.0, 2.0], requires_grad=True))
    with fw.dual_level():
        dual = fw.make_dual(made, torch.ones(2))
        dual = dual[1:] if is_part else dual
        with pytest.raises(RuntimeError, match="a view and is being modified inplace"):
            getattr(dual, name)(*((0, 0) if name == "swapaxes_" else (2.0,)))
