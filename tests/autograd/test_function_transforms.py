"""``Function`` under functional transforms, of arrays and of tensors."""

from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from functrans.autograd import func, grad, tensor
from functrans.autograd.function import Function
from functrans.errors import UnsupportedOperationError

X = np.array([0.5, 1.0, 2.0])


class Softened(Function):
    """``exp(x) * x`` with the wrong factor 10 in its derivatives, so that one sees who gave them.

    It saves an argument, a result and an intermediate tensor.
    """

    @staticmethod
    def forward(ctx: Any, x: Any, factor: float) -> Any:
        e = x.exp()
        y = e * x
        ctx.save_for_backward(x, y, e, None)
        ctx.factor = factor
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        x, y, e, nothing = ctx.saved_tensors
        assert nothing is None
        return grad * (y + e + 0 * x) * ctx.factor, None


class Pushed(Softened):
    """The same with a ``jvp`` of factor 100."""

    @staticmethod
    def jvp(ctx: Any, x_dot: Any, factor_dot: Any) -> Any:
        assert factor_dot is None
        _, y, e, _ = ctx.saved_tensors
        return 100 * x_dot * (y + e)


SLOPE = np.exp(X) * (X + 1)


def total(x: Any) -> Any:
    return Softened.apply(x, 10.0).sum()


@pytest.mark.parametrize("transform", [ft.grad, lambda f: ft.jit(ft.grad(f)), ft.jacrev])
def test_reverse_mode_on_arrays(transform: Any) -> None:
    assert_allclose(transform(total)(X), 10 * SLOPE)


def test_forward_mode_transposes_backward_or_asks_jvp() -> None:
    assert_allclose(ft.jvp(total, (X,), (X,))[1], 10 * SLOPE @ X)
    pushed = ft.jvp(lambda x: Pushed.apply(x, 10.0).sum(), (X,), (X,))
    assert_allclose(pushed, (np.exp(X) @ X, 100 * SLOPE @ X))
    assert_allclose(ft.grad(lambda x: Pushed.apply(x, 10.0).sum())(X), 10 * SLOPE)


def test_batches() -> None:
    assert_allclose(ft.vmap(lambda x: Softened.apply(x, 1.0))(X), np.exp(X) * X)
    assert_allclose(ft.vmap(ft.grad(lambda x: Softened.apply(x, 10.0)))(X), 10 * SLOPE)
    batched = ft.grad(lambda x: ft.vmap(lambda v: Softened.apply(v, 10.0))(x).sum())
    assert_allclose(batched(X), 10 * SLOPE)


class Reciprocal(Function):
    """``1 / x``, whose derivative is written with its result."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any) -> Any:
        return 1 / x

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        return -grad * y * y


def reciprocals(x: Any) -> Any:
    return Reciprocal.apply(x).sum()


def test_second_derivatives_through_a_saved_result() -> None:
    assert_allclose(ft.hessian(reciprocals)(X), np.diag(2 / X**3))
    assert_allclose(ft.grad(lambda x: ft.grad(reciprocals)(x).sum())(X), 2 / X**3)
    twice = func.jacrev(func.jacrev(reciprocals))
    assert_allclose(twice(tensor(X)).numpy(), np.diag(2 / X**3))


def test_a_transform_over_recorded_tensors() -> None:
    x = tensor(X, requires_grad=True)
    slope = func.grad(reciprocals)(x)
    assert_allclose(slope.detach().numpy(), -1 / X**2)
    (second,) = grad(slope.sum(), x, create_graph=True)
    assert_allclose(second.detach().numpy(), 2 / X**3)
    (third,) = grad(second.sum(), x)
    assert_allclose(third.numpy(), -6 / X**4)
    values = func.vmap(Reciprocal.apply)(x)
    (found,) = grad(values.sum(), x)
    assert_allclose(found.numpy(), -1 / X**2)


def test_autograd_grad_inside_a_transform() -> None:
    def inner(x: Any) -> Any:
        return grad(Reciprocal.apply(x).sum(), x, create_graph=True)[0].sum()

    assert_allclose(func.grad(inner)(tensor(X)).numpy(), 2 / X**3)


class Pair(Function):
    """``x * y``, ``x + y`` and a number, with a rule for batches."""

    sizes: ClassVar[list[Any]] = []

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y, x + y, "text"

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, product: Any, total: Any, text: Any) -> Any:
        assert text is None
        x, y = ctx.saved_tensors
        return product * y + total, product * x + total

    @staticmethod
    def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
        Pair.sizes.append((info.batch_size, in_dims))
        return Pair.apply(x, y), (0, 0, None)


def test_the_users_rule_for_batches() -> None:
    Pair.sizes.clear()
    y = X + 1

    def both(a: Any, b: Any) -> Any:
        product, sum_, text = Pair.apply(a, b)
        assert text == "text"
        return product, sum_

    product, sum_ = func.vmap(both)(tensor(X), tensor(y))
    assert_allclose(product.numpy(), X * y)
    assert_allclose(sum_.numpy(), X + y)
    assert Pair.sizes == [(3, (0, 0))]
    slope = func.grad(lambda a: func.vmap(both)(a, tensor(y))[0].sum())(tensor(X))
    assert_allclose(slope.numpy(), y)


def test_only_jvp_gives_both_modes() -> None:
    class Squared(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def jvp(ctx: Any, x_dot: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * x * x_dot

    assert_allclose(ft.jvp(Squared.apply, (X,), (X,))[1], 2 * X * X)
    assert_allclose(ft.grad(lambda x: Squared.apply(x).sum())(X), 2 * X)


def test_writes_and_results_without_derivative() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            sign = x * 0 + 1
            x *= 2
            ctx.mark_dirty(x)
            ctx.mark_non_differentiable(sign)
            return x, sign

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            return grad * 2

    def squares(x: Any) -> Any:
        y = x * x
        z, sign = Doubled.apply(y)
        return (y * z * sign).sum()

    assert_allclose(func.grad(squares)(tensor(X)).numpy(), 16 * X**3)
    assert_array_equal(X, [0.5, 1.0, 2.0])


def test_attributes_of_the_context_that_are_tensors() -> None:
    class Kept(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.cosine = x.cos()
            return x.sin()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.cosine

    assert_allclose(ft.grad(lambda x: Kept.apply(x).sum())(X), np.cos(X))
    assert_allclose(func.vmap(func.grad(Kept.apply))(tensor(X)).numpy(), np.cos(X))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (lambda g: (g, g), "incorrect number of gradients"),
        (lambda g: g[:1], "expected shape compatible with"),
        (lambda g: 2.0, r"expected Variable or None \(got float\)"),
    ],
)
def test_wrong_gradients_are_refused(result: Any, message: str) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return result(grad)

    with pytest.raises(RuntimeError, match=message):
        ft.grad(lambda x: Wrong.apply(x).sum())(X)


class Tripled(Function):
    """Writes to its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        return x.mul_(3)

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 3 * grad


def test_retain_grad_follows_what_a_function_wrote_to() -> None:
    y = tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
    y.retain_grad()
    assert Tripled.apply(y) is y
    (y * y).sum().backward()
    assert y.grad.tolist() == [6, 12, 18]


def test_what_a_function_writes_to_a_view_is_in_its_base() -> None:
    def total(x: Any) -> Any:
        y = x * 1
        Tripled.apply(y[1:])
        return y.sum()

    x = tensor(X, requires_grad=True)
    assert total(x) == ft.jit(total)(tensor(X)) == X[0] + 3 * X[1:].sum()
    for gradient in (grad(total(x), x)[0], func.grad(total)(tensor(X))):
        assert_array_equal(gradient.numpy(), [1, 3, 3])
    with pytest.raises(NotImplementedError, match="must implement the jvp function"):
        func.jvp(total, (tensor(X),), (tensor([1.0, 10.0, 100.0]),))


def test_a_function_that_writes_to_a_view_of_a_leaf_is_refused() -> None:
    x = tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        Tripled.apply(x[1:])
    assert x.is_leaf


def test_views_that_one_call_makes_see_writes_to_their_base_in_transforms() -> None:
    def total(x: Any) -> Any:
        y = x * 1
        _, second, _ = y.unbind()
        y.mul_(5)
        return second.sum()

    assert ft.jit(total)(tensor(X)) == 5 * X[1]
    assert_array_equal(func.grad(total)(tensor(X)).numpy(), [0, 5, 0])


class _TripledInPlace(Function):
    """Saves an intermediate, writes to its argument, and has a rule for batches that does both."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.clone())
        x.mul_(3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * g + 0 * x

    @staticmethod
    def vmap(info, in_dims, x):
        _TripledInPlace.calls += 1
        return _TripledInPlace.apply(x), in_dims[0]


@pytest.mark.parametrize("axis", [0, 1])
def test_a_rule_for_batches_that_writes_is_applied_once(axis):
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    of_copy = lambda a: _TripledInPlace.apply(a * 1)  # noqa: E731  # one line
    _TripledInPlace.calls = 0
    for call in (func.vmap(of_copy, axis, axis), ft.jit(func.vmap(of_copy, axis, axis))):
        assert_allclose(call(x).numpy(), 3 * x.numpy())
    assert _TripledInPlace.calls == 2
    for slopes in (
        func.vmap(func.grad(lambda a: of_copy(a).sum()), axis, axis)(x),
        func.grad(lambda x: func.vmap(of_copy, axis, axis)(x).sum())(x),
    ):
        assert_allclose(slopes.numpy(), np.full((2, 2), 3.0))
    written = x.clone()
    assert_allclose(func.vmap(_TripledInPlace.apply, axis, axis)(written).numpy(), 3 * x.numpy())
    assert_allclose(written.numpy(), 3 * x.numpy())


def _hooked(a):
    t = a.sin()
    t.register_hook(lambda g: 10 * g)
    return (t * a).sum()


def _hooked_node(a):
    t = a.sin()
    t.grad_fn.register_prehook(lambda grads: (10 * grads[0],))
    return (t * a).sum()


def _hooked_argument(a):
    a.register_hook(lambda g: 10 * g)
    return (a.sin() * a).sum()


def _slope(f, x):
    leaf = x.clone().requires_grad_()
    return grad(f(leaf), leaf)[0]


@pytest.mark.parametrize("f", [_hooked, _hooked_node, _hooked_argument])
def test_a_hook_is_called_or_refused(f):
    """Where a derivative is taken of the whole function at once, no backward pass meets hooks."""
    x = tensor([0.3, -1.2, 2.0])
    expected = _slope(f, x).numpy()
    in_step = ft.jit(lambda leaf: grad(f(leaf), leaf)[0])
    assert_allclose(in_step(x.clone().requires_grad_()).numpy(), expected)
    at_once = (
        func.grad(f), func.jacrev(f), func.hessian(f), ft.jit(func.grad(f)),
        lambda x: func.vmap(func.grad(f))(x[None]), lambda x: _slope(ft.jit(f), x),
    )  # fmt: skip
    for call in at_once:
        with pytest.raises(UnsupportedOperationError, match="a hook was registered on a gradient"):
            call(x)


def test_hooks_that_were_called_or_are_outside_are_no_reason_to_refuse():
    weight = tensor([1.0, 2.0], requires_grad=True)
    weight.register_hook(lambda g: 2 * g)

    def step(x):
        t = x * weight
        t.register_hook(lambda g: 0.5 * g)
        loss = (t * t).sum()
        loss.backward()
        return loss

    x = tensor([3.0, 4.0])
    for call in (step, ft.jit(step)):
        weight.grad = None
        call(x)
        assert_allclose(weight.grad.numpy(), 2 * weight.detach().numpy() * x.numpy() ** 2)
    sums = ft.jit(lambda x: (x * weight).sum())
    assert_allclose(grad(sums(x), weight)[0].numpy(), 2 * x.numpy())
