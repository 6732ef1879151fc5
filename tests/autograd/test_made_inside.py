"""Tensors that are made while a transform of ``torch.func`` runs belong to it once written to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import functrans as ft
import functrans.compat.torch as torch

func = torch.func
X = torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)
V = torch.tensor([1.0, -1.0, 2.0], dtype=torch.float64)
W = torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64, requires_grad=True)


def ones(*shape: int) -> Any:
    return torch.ones(*shape, dtype=torch.float64)


def filled(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        out = make(x)
        for i in range(3):
            out[i] = x[i] ** 2 * (i + 1)
        return (out * x).sum()

    return f


def view_made_before(x: Any) -> Any:
    out = 0 * ones(3)
    view = out[1:]
    out[1] = x[1] ** 2
    return (view * view).sum() + out.sum()


def view_written(x: Any) -> Any:
    out = 0 * ones(2, 3)
    view = out[1]
    view.copy_(x * x)
    return (out * out).sum()


def view_of_view(x: Any) -> Any:
    out = ones(2, 3)
    part = out.T[1:]
    part[:, 0] += x[1:] ** 3
    return (out * 2).sum() + (part * part).sum()


def used_before(x: Any) -> Any:
    out = ones(3)
    first = (x + out) ** 2
    out.mul_(2)
    out[0] = x[0]
    out.mul_(3)
    return (first * out).sum()


def view_used_before(x: Any) -> Any:
    out = ones(2, 3)
    view = out[0]
    first = x + view
    out.add_(1)
    second = x * 2 + view
    out[0, 1] = x[0]
    return (first * second).sum() + (view * view).sum()


def only_numbers_written(x: Any) -> Any:
    out = ones(3)
    first = x * out
    out.add_(1)
    return (first * first).sum() + (out * x).sum()


def in_an_inner_transform(x: Any) -> Any:
    def inner(y: Any) -> Any:
        out = 0 * ones(3)
        out[0] = y[0] * x[0]
        out[1] = y[1]
        return (out * out).sum()

    return (func.grad(inner)(x) * x).sum()


def between_inner_transforms(x: Any) -> Any:
    out = ones(3)
    first = func.vmap(lambda e: e * out[0] + out.sum())(x)
    out.mul_(2)
    second = func.vmap(lambda e: e * out[0])(x)
    out[1] = x[1]
    return (first + second + func.vmap(lambda e: e * out.sum())(x)).sum()


def result_of_an_inner_transform(x: Any) -> Any:
    out = 0 * ones(3)
    out[:] = func.grad(lambda y: (y**3).sum())(x)
    return (out * x).sum()


def clone_of_captured(x: Any) -> Any:
    out = W.clone()
    out[:2] *= x[:2]
    return (out * out).sum()


def computed_from_captured(x: Any) -> Any:
    out = (W * 2).reshape(3, 1)
    out[:, 0] = x**2 * W
    return (out * out).sum() + W.sum()


def in_place_functions(x: Any) -> Any:
    out = x.new_zeros(4)
    out.index_add_(0, torch.tensor([0, 2, 2]), x * x)
    out.scatter_(0, torch.tensor([1]), x[:1])
    out.masked_fill_(torch.tensor([True, False, False, False]), 0.5)
    return (out**2).sum()


def diagonal(x: Any) -> Any:
    out = torch.eye(3, dtype=torch.float64)
    out.fill_diagonal_(2.0)
    out.diagonal().copy_(x * x)
    return (out @ x).sum()


def summed(x: Any) -> Any:
    total = torch.tensor(0.0, dtype=torch.float64)
    for v in x:
        total += v * v
    return total


def recurrence(x: Any) -> Any:
    out = 0 * ones(3)
    out[0] = x[0]
    for i in (1, 2):
        out[i] = out[i - 1].clone() * x[i]
    return out.sum()


def numbers_before_a_view(x: Any) -> Any:
    out = x * x
    out.fill_(0.3)
    view = out[:2]
    view[0] = x[1]
    return (view * view).sum() + (out * x).sum()


def numbers_after_a_view(x: Any) -> Any:
    out = torch.sin(x)
    view, part = out[:2], out[0]
    part.mul_(0.5)
    out.copy_(ones(3))
    view[0] = x[1]
    part.sin_()
    out.mul_(x)
    return (view * view).sum() + out.sum() + part


def captured_copied_then_written(x: Any) -> Any:
    other = W + 1
    out = torch.sin(other) + x
    out.copy_(other)
    other.mul_(W**2)
    out[0] = x[0]
    return (out * out).sum() + (other * x).sum()


def other_shape(x: Any) -> Any:
    out = 0 * ones(3)
    out.view(1, 3)[0, 1] = x[1]
    out.unsqueeze_(0)
    return (out @ x).sum()


PATTERNS: dict[str, Callable[[Any], Any]] = {
    "zeros": filled(lambda x: torch.zeros(3, dtype=torch.float64)),
    "zeros_like": filled(torch.zeros_like),
    "new_zeros": filled(lambda x: x.new_zeros(3)),
    "empty": filled(lambda x: torch.empty(3, dtype=torch.float64)),
    "full": filled(lambda x: torch.full((3,), 2.0, dtype=torch.float64)),
    "clone": filled(lambda x: X.clone()),
    **{
        f.__name__: f
        for f in (
            view_made_before, view_written, view_of_view, used_before, view_used_before,
            only_numbers_written, in_an_inner_transform, between_inner_transforms,
            result_of_an_inner_transform, clone_of_captured, computed_from_captured,
            in_place_functions, diagonal, summed, recurrence, other_shape,
            numbers_before_a_view, numbers_after_a_view, captured_copied_then_written,
        )
    },
}  # fmt: skip


SAVED = ("only_numbers_written", "between_inner_transforms")
"""In which ``backward`` would read what was written to; transforms keep what it was."""


def slopes(f: Callable[[Any], Any], x: Any, step: float = 1e-5) -> np.ndarray:
    """The gradient by central differences of eager calls."""
    rows = []
    for e in np.eye(3):
        ahead, behind = (f(x + s * step * torch.tensor(e)) for s in (1, -1))
        rows.append((ahead - behind).detach().numpy() / (2 * step))
    return np.stack(rows)


def close(found: Any, expected: Any, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(found.detach().numpy(), expected, tolerance, tolerance)


@pytest.mark.parametrize("name", PATTERNS)
def test_derivatives_and_batches(name: str) -> None:
    f = PATTERNS[name]
    expected = slopes(f, X)
    close(func.grad(f)(X), expected, 1e-7)
    close(func.jacfwd(f)(X), expected, 1e-7)
    value, tangent = func.jvp(f, (X,), (V,))
    close(value, f(X).detach().numpy())
    close(tangent, expected @ V.numpy(), 1e-7)
    if name in SAVED:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.functional.jacobian(f, X)
    else:
        close(torch.autograd.functional.jacobian(f, X, vectorize=True), expected, 1e-7)
    batch = torch.stack([X, X + 1])
    close(func.vmap(f)(batch), [f(row).item() for row in batch])
    close(func.vmap(func.grad(f))(batch), [func.grad(f)(row).detach().numpy() for row in batch])
    second = slopes(func.grad(f), X)
    close(func.hessian(f)(X), second, 1e-6)
    close(func.jacrev(func.grad(f))(X), second, 1e-6)


@pytest.mark.parametrize("name", ["clone_of_captured", "computed_from_captured"])
def test_captured_leaves_get_their_gradients(name: str) -> None:
    """What was made of a captured leaf keeps its derivative in it, as far as it is not written."""
    f = PATTERNS[name]

    def of_leaf(call: Callable[[Any], Any]) -> Any:
        W.grad = None
        call(X).backward()
        return W.grad.numpy()

    expected = of_leaf(f)
    close(torch.tensor(of_leaf(lambda x: func.vjp(f, x)[0])), expected)
    close(torch.tensor(of_leaf(lambda x: func.vmap(f)(x[None])[0])), expected)
    close(torch.tensor(of_leaf(lambda x: func.jvp(f, (x,), (V,))[0])), expected)


@pytest.mark.parametrize("transform", [func.grad, func.jacfwd, func.jacrev])
def test_detached_ones_share_the_memory(transform: Any) -> None:
    def read(x: Any) -> Any:
        out = 0 * ones(3)
        alias = out.detach()
        out[0] = x[0] * 2
        return (alias * x).sum() + out.sum()

    def written(x: Any) -> Any:
        out = 0 * ones(3)
        out.detach()[1] = x[1] * 2
        return (out * x).sum()

    def both(x: Any) -> Any:
        out = ones(3)
        alias = out.detach()
        alias.add_(1)
        with torch.no_grad():
            out.mul_(0.5)
        alias.mul_(3)
        return (out * x).sum() + (alias * x).sum()

    close(transform(both)(X), [6, 6, 6])
    close(transform(read)(X), [2 * X[0].item() + 2, 0, 0])
    close(transform(written)(X), [0, 2 * X[1].item(), 0])


@pytest.mark.parametrize(
    "transform", [func.grad, func.jacfwd, func.hessian, lambda f: func.jvp(f, (X,), (V,))]
)
def test_tensors_from_outside_are_not_given_values_of_a_transform(transform: Any) -> None:
    outside = 0 * ones(3)

    def f(x: Any) -> Any:
        outside[0] = x[0]
        return outside.sum()

    with pytest.raises(RuntimeError, match="made outside"):
        (lambda g: g(X) if callable(g) else g)(transform(f))
    close(outside, np.zeros(3))


def test_captured_views_are_as_they_are_now() -> None:
    """The place of a view in the graph is that after the last write to its base."""
    leaf = X.clone().requires_grad_()
    whole = leaf * W.detach()
    view = whole[:2][0]
    view.mul_(0.5)
    func.vmap(lambda e: e * 2 + view)(X).sum().backward()
    close(leaf.grad, [3 * 0.5 * W[0].item(), 0, 0])


def test_written_between_uses_in_a_batch() -> None:
    """What an operation of a batch read is what was there then."""
    captured = ones(3)

    def f(x: Any) -> Any:
        first = x + captured
        captured.add_(1)
        return (first * captured).sum()

    batch = torch.stack([X, X + 1])
    close(func.vmap(f)(batch), ((batch + 1) * 2).sum(1).numpy())
    close(captured, np.full(3, 2.0))


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize(
    "look",
    [
        lambda x: x[0].item(),
        lambda x: x.tolist()[0],
        lambda x: float(x[0]),
        lambda x: 0.5 * bool(x[0] > 0),
        lambda x: 0.5 * x.nonzero().shape[0] / 3,
        lambda x: 0.5 * torch.allclose(x, X),
        lambda x: 0.5 * torch.equal(x, X),
        lambda x: x[x > 0][0].item(),
        lambda x: x.unique()[0].item(),
        lambda x: float(f"{x[0]:.1f}"),
    ],
)
def test_values_are_at_hand_where_derivatives_are_taken(look: Any) -> None:
    """They are numbers, of derivative 0."""

    def f(x: Any) -> Any:
        return (x * x * look(x)).sum()

    close(func.grad(f)(X), X.numpy())
    close(func.vjp(f, X)[1](torch.tensor(1.0, dtype=torch.float64))[0], X.numpy())
    close(func.jvp(f, (X,), (V,))[1], X.numpy() @ V.numpy())


# what other names write to the memory -------------------------------------------------------------


def _by_init(x: Any, _: Any) -> None:
    torch.nn.init.constant_(x, 5.0)


def _by_an_optimizer(x: Any, _: Any) -> None:
    x.grad = 0 * x + 1
    torch.optim.SGD([x], lr=2.0).step()


def _by_a_detached_alias(_: Any, alias: Any) -> None:
    alias.mul_(3)


def _by_numpy(x: Any, _: Any) -> None:
    x.numpy()[...] = [7, 8, 9]


@pytest.mark.parametrize(
    "write", [_by_init, _by_an_optimizer, _by_a_detached_alias, _by_numpy], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_batch_reads_what_was_there_whoever_writes_later(write: Any, is_nested: bool) -> None:
    captured = ones(3)
    alias = captured.detach()

    def f(x: Any) -> Any:
        times = func.vmap(lambda y: y * captured) if is_nested else (lambda x: x * captured)
        first = times(x)
        write(captured, alias)
        return (first * times(x)).sum()

    batch = torch.stack([X, X + 1])
    found = func.vmap(f)(batch)
    after = captured.numpy().copy()
    square = batch.numpy() ** 2
    close(found, square.sum(1) * after.sum() if is_nested else (square * after).sum(1))


def test_captured_tensors_do_not_collect_what_programs_held_of_them() -> None:
    captured = ones(3)
    for _ in range(10):
        func.vmap(lambda x: x * captured[0] + captured[1])(X)
    assert len(captured._stored().held) <= 4


def test_running_statistics_of_a_layer_that_was_made_inside() -> None:
    def f(x: Any) -> Any:
        layer = torch.nn.BatchNorm1d(1, affine=False, dtype=torch.float64)
        y = layer(x[:, None] ** 2)[:, 0]
        return (y * x).sum() + layer.running_mean.sum()

    leaf = X.clone().requires_grad_()
    value = f(leaf)
    value.backward()
    close(func.grad(f)(X), leaf.grad.numpy())
    close(func.jacfwd(f)(X), leaf.grad.numpy())
    close(func.vjp(f, X)[0], value.item())
    close(func.vmap(f)(X[None]), [value.item()])


# dual levels inside -------------------------------------------------------------------------------

dual = torch.autograd.forward_ad


def _result_of_a_level(x: Any) -> Any:
    with dual.dual_level():
        y = dual.make_dual(x * 1, ones(3)) ** 2
    return (y * x).sum()


def _tangent_and_primal(x: Any) -> Any:
    with dual.dual_level():
        y = dual.make_dual(x, x * x) ** 2
        slope = dual.unpack_dual(y).tangent
    return (y * slope).sum()


def _written_in_a_level(x: Any) -> Any:
    out = 0 * ones(3)
    with dual.dual_level():
        out[:2] = dual.make_dual(x * 1, ones(3))[1:] ** 2
    return (out * out).sum() + out.sum()


def _view_written_in_a_level(x: Any) -> Any:
    out = 0 * ones(2, 3)
    view = out[1]
    with dual.dual_level():
        view.copy_(dual.make_dual(x * 1, x * x) ** 2)
        primal, tangent = dual.unpack_dual(view)
        both = (primal * tangent).sum()
    return both + (out * out).sum() + view.sum()


@pytest.mark.parametrize(
    "f",
    [_result_of_a_level, _tangent_and_primal, _written_in_a_level, _view_written_in_a_level],
    ids=lambda f: f.__name__,
)
def test_what_is_left_of_a_dual_level_belongs_to_the_transform_around_it(f: Any) -> None:
    leaf = X.clone().requires_grad_()
    f(leaf).backward()
    expected = leaf.grad.numpy()
    assert abs(expected).max() > 0
    close(func.grad(f)(X), expected)
    close(func.jacrev(f)(X), expected)
    close(func.jacfwd(f)(X), expected)
    close(func.jvp(f, (X,), (V,))[1], expected @ V.numpy())
    close(func.vmap(f)(X[None]), [f(X).item()])
    close(func.vmap(func.grad(f))(X[None]), expected[None])
    second = leaf.clone().detach().requires_grad_()
    func.vjp(f, second)[0].backward()
    close(second.grad, expected)


@pytest.mark.parametrize("of", [torch.nn.Parameter, torch.nn.Buffer])
def test_a_parameter_is_a_constant_of_the_levels_around_on_the_memory_it_was_made_of(
    of: Any,
) -> None:
    level = torch.autograd.forward_ad
    with level.dual_level():
        dual = level.make_dual(torch.ones(2), torch.ones(2))
        for x in (dual, dual[...], 1.0 * dual):
            made = of(x)
            assert made.requires_grad is (of is torch.nn.Parameter)
            assert level.unpack_dual(3.0 * made).tangent is None
            with torch.no_grad():
                made.mul_(5.0)
            assert x[0].item() == made[0].item()
    one = torch.tensor([1.0, 2.0])
    assert torch.func.grad(lambda v: (of(v) * v).sum())(one).tolist() == [1.0, 2.0]
    assert torch.func.jvp(lambda v: of(v) * v, (one,), (one,))[1].tolist() == [1.0, 4.0]
    assert torch.func.vmap(lambda v: 2.0 * of(v))(one).tolist() == [2.0, 4.0]
    inner = torch.func.grad(lambda v: torch.func.grad(lambda w: (of(v) * w).sum())(v).sum())
    assert inner(one).tolist() == [0.0, 0.0]
    for outer in (torch.func.jacrev, torch.func.jacfwd):
        for inside in (torch.func.jacrev, torch.func.jacfwd):
            second = outer(inside(lambda v: (of(v) * v * v * v).sum()))
            assert second(one).tolist() == [[6.0, 0.0], [0.0, 24.0]]


def test_a_buffer_requires_a_gradient_as_what_it_is_made_of() -> None:
    w = torch.tensor([1.0, 2.0], requires_grad=True)
    for x, requires in ((w, True), (2 * w, True), (w.detach(), False)):
        made = torch.nn.Buffer(x)
        assert made.is_leaf
        assert made.requires_grad is requires
    made = torch.nn.Buffer(2 * w)
    (made * w).sum().backward()
    assert made.grad.tolist() == [1.0, 2.0]


LAID_OUT_ANEW: dict[str, tuple[Callable[[Any], Any], bool]] = {
    # the call, and whether the result shares the memory
    "contiguous of a transpose": (lambda y: y.mT.contiguous(), False),
    "contiguous": (lambda y: y.contiguous(), True),
    "contiguous of columns": (lambda y: y[:, :2].contiguous(), False),
    "contiguous of rows": (lambda y: y[1:].contiguous(), True),
    "reshape of a transpose": (lambda y: y.mT.reshape(-1), False),
    "reshape": (lambda y: y.reshape(-1), True),
    "reshape of a column": (lambda y: y[:, 1].reshape(2, 1), True),
    "reshape of every second column": (lambda y: y[:, ::2].reshape(-1), False),
    "reshape of what is expanded": (lambda y: y[:1].expand(2, 3).reshape(-1), False),
    "reshape_as": (lambda y: y.mT.reshape_as(torch.zeros(6)), False),
    "flatten of a transpose": (lambda y: y.mT.flatten(), False),
    "flatten": (lambda y: y.flatten(), True),
    "ravel of a transpose": (lambda y: y.mT.ravel(), False),
    "reshape after two views": (lambda y: y.unsqueeze(0).permute(2, 0, 1).reshape(6), False),
    "reshape of what was detached": (lambda y: y.detach().mT.reshape(-1), False),
}


@pytest.mark.parametrize("name", LAID_OUT_ANEW)
@pytest.mark.parametrize(
    "context", ["none", "grad", "vjp", "jvp", "vmap", "vmap of grad", "dual", "jit", "jit of grad"]
)
def test_what_is_laid_out_anew_shares_no_memory_in_any_context(name: str, context: str) -> None:
    call, shares = LAID_OUT_ANEW[name]
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3)

    def f(v: Any) -> Any:
        y = 1.0 * v
        call(y).mul_(10.0)
        return y

    def slopes(v: Any) -> Any:
        return func.grad(lambda w: f(w).sum())(v)

    is_detached = "detached" in name
    expected = f(x)
    assert (expected.tolist() != x.tolist()) is shares
    tangent = torch.ones_like(x)
    one = torch.ones_like(x) if is_detached or not shares else f(torch.ones_like(x))
    level = torch.autograd.forward_ad
    with level.dual_level():
        dual = level.unpack_dual(f(level.make_dual(x, tangent)))
    found = {
        "none": lambda: (f(x), one),
        "grad": lambda: (expected, slopes(x)),
        "vjp": lambda: (func.vjp(f, x)[0], func.vjp(f, x)[1](tangent)[0]),
        "jvp": lambda: func.jvp(f, (x,), (tangent,)),
        "vmap": lambda: (func.vmap(f)(x[None])[0], one),
        "vmap of grad": lambda: (expected, func.vmap(slopes)(x[None])[0]),
        "dual": lambda: dual,
        "jit": lambda: (ft.jit(f)(x), one),
        "jit of grad": lambda: (expected, ft.jit(slopes)(x)),
    }[context]()
    for have, want in zip(found, (expected, one), strict=True):
        assert_allclose(have.detach().numpy(), want.numpy())
    assert x.tolist() == torch.arange(6.0, dtype=torch.float64).reshape(2, 3).tolist()


@pytest.mark.parametrize("transform", [func.grad, func.jacfwd, func.vmap])
def test_data_are_not_set_inside_of_transforms(transform: Any) -> None:
    def f(x: Any) -> Any:
        y = x.clone()
        y.data = 3.0 * x
        return (y * x).sum()

    with pytest.raises(RuntimeError, match=r"mutating directly with `\.data`"):
        transform(f)(torch.ones(2))
