"""``Function``: derivatives by the user's methods, of all orders, and what contexts keep."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from functrans.autograd import grad, no_grad, tensor
from functrans.autograd.anomaly import detect_anomaly
from functrans.autograd.function import (
    Function,
    InplaceFunction,
    NestedIOFunction,
    once_differentiable,
    traceable,
)
from functrans.autograd.graph import saved_tensors_hooks

X = np.array([1.0, 2.0, 3.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


class Scaled(Function):
    """``x**3 * k`` with a context."""

    @staticmethod
    def forward(ctx: Any, x: Any, k: float) -> Any:
        ctx.save_for_backward(x)
        ctx.k = k
        ctx.shape = "the user's"  # a name that nodes use too
        return x * x * x * k

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * 3 * x * x * ctx.k, None


class Product(Function):
    """``x * y`` and ``x + y``, with ``setup_context``."""

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y, x + y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def vjp(ctx: Any, product: Any, total: Any) -> Any:
        x, y = ctx.saved_tensors
        return product * y + total, product * x + total


class Reciprocal(Function):
    """``1 / x``, whose derivative is written with its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = 1 / x
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (y,) = ctx.saved_tensors
        return -grad * y * y


def made(forward: Any = None, backward: Any = None) -> Any:
    class Made(Function):
        @staticmethod
        def forward(ctx: Any, *args: Any) -> Any:
            return forward(ctx, *args) if forward else args[0] * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return backward(ctx, *grads) if backward else grads[0]

    return Made


def test_derivatives_of_all_orders_go_through_the_users_method() -> None:
    x = leaf()
    (first,) = grad(Scaled.apply(x, 2.0).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    assert_allclose(first.detach().numpy(), 6 * X**2)
    assert_allclose(second.detach().numpy(), 12 * X)
    assert_allclose(third.numpy(), [12.0] * 3)


def test_a_saved_result_has_a_derivative() -> None:
    x = leaf()
    (first,) = grad(Reciprocal.apply(x).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x)
    assert_allclose(first.detach().numpy(), -1 / X**2)
    assert_allclose(second.numpy(), 2 / X**3)


def test_several_results_and_setup_context() -> None:
    x, y = leaf(), leaf(X + 1)
    product, total = Product.apply(x, y=y)
    (product * total).sum().backward()
    assert_allclose(x.grad.numpy(), (X + 1) * (2 * X + X + 1))
    assert_allclose(y.grad.numpy(), X * (2 * (X + 1) + X))


def test_the_node_shows_context_and_graph() -> None:
    x = leaf()
    y = Scaled.apply(x, 2.0)
    node = y.grad_fn
    assert node.name() == "ScaledBackward"
    assert (node.k, node.needs_input_grad) == (2.0, (True, False))
    assert node.saved_tensors[0] is x
    assert [type(n).__name__ for n, _ in node.next_functions] == ["AccumulateGrad"]
    node.metadata["seen"] = 1
    assert node.metadata == {"seen": 1}


def test_batched_gradients() -> None:
    x = leaf()
    rows = np.arange(6.0).reshape(2, 3)
    (found,) = grad(Scaled.apply(x, 1.0), x, tensor(rows), is_grads_batched=True, create_graph=True)
    assert_allclose(found.detach().numpy(), rows * 3 * X**2)
    (again,) = grad(found.sum(), x)
    assert_allclose(again.numpy(), rows.sum(0) * 6 * X)


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_that_did_not_come(materialize: bool) -> None:
    seen: list[Any] = []

    def forward(ctx: Any, x: Any) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 1, x * 2, "text"

    made(forward, lambda ctx, *grads: seen.extend(grads)).apply(leaf())[1].sum().backward()
    if materialize:
        assert_array_equal(seen[0].numpy(), np.zeros(3))
    else:
        assert seen[0] is None
    assert_array_equal(seen[1].numpy(), np.ones(3))
    assert seen[2] is None


def test_results_without_derivative() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        sign = x * 0 + 1
        ctx.mark_non_differentiable(sign)
        return sign, x * 2, x > 1

    constant, y, above = made(forward, lambda ctx, *grads: grads[1] * 2).apply(leaf())
    assert (constant.requires_grad, y.requires_grad, above.requires_grad) == (False, True, False)


def test_nothing_is_recorded_without_grad_mode() -> None:
    x = leaf()
    with no_grad():
        y = Scaled.apply(x, 2.0)
    assert y.grad_fn is None
    assert Scaled.apply(x.detach(), 2.0).grad_fn is None


def test_a_shape_is_summed_back_and_a_dtype_converted() -> None:
    x = leaf()
    wide = np.float32(2) * np.ones((4, 3), np.float32)
    made(backward=lambda ctx, g: tensor(wide)).apply(x).sum().backward()
    assert_array_equal(x.grad.numpy(), [8.0] * 3)
    assert x.grad.dtype == np.float64


@pytest.mark.parametrize(
    ("backward", "args", "message"),
    [
        (lambda ctx, g: (g, g), (leaf(),), r"number of gradients \(expected 1, got 2\)"),
        (lambda ctx, g: g, (leaf(), leaf()), r"number of gradients \(expected 2, got 1\)"),
        (lambda ctx, g: 1.0, (leaf(),), r"expected Variable or None \(got float\)"),
        (lambda ctx, g: g[:2], (leaf(),), r"got \[2\] but expected shape compatible with \[3\]"),
        (lambda ctx, g: (g, g), (leaf(), 2.0), "different than None at position 2"),
    ],
)
def test_wrong_gradients_are_refused(backward: Any, args: Any, message: str) -> None:
    y = made(backward=backward).apply(*args)
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


def test_further_gradients_may_be_none() -> None:
    x = leaf()
    made(backward=lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    assert_array_equal(x.grad.numpy(), np.ones(3))


@pytest.mark.parametrize(
    ("forward", "error", "message"),
    [
        (
            lambda ctx, x: ctx.save_for_backward(3) or x * 1,
            TypeError,
            "save_for_backward can only save variables, but argument 0 is of type int",
        ),
        (lambda ctx, x: ctx.mark_dirty(3) or x * 1, RuntimeError, "mark_dirty can only accept"),
        (lambda ctx, x: ctx.mark_dirty(x) or x * 1, RuntimeError, "marked as dirty"),
        (lambda ctx, x: ctx.mark_dirty(x) or x, RuntimeError, "a leaf Variable that requires grad"),
        (
            lambda ctx, x: ctx.mark_non_differentiable(3) or x * 1,
            RuntimeError,
            "mark_non_differentiable only accepts",
        ),
    ],
)
def test_wrong_marks_are_refused(forward: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        made(forward).apply(leaf())


def test_missing_methods_are_named() -> None:
    class Nothing(Function):
        pass

    class OnlyForward(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

    class Two(OnlyForward):
        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        @staticmethod
        def vjp(ctx: Any, grad: Any) -> Any:
            return grad

    with pytest.raises(NotImplementedError, match="must implement the forward function"):
        Nothing.apply(leaf())
    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        OnlyForward.apply(leaf()).sum().backward()
    with pytest.raises(RuntimeError, match="both 'backward' and 'vjp'"):
        Two.apply(leaf()).sum().backward()


def test_instances_are_of_the_past() -> None:
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Scaled()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward"):
        instance(leaf())
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        assert InplaceFunction(True).inplace
    assert traceable(made()).is_traceable
    with pytest.warns(FutureWarning, match="mark_shared_storage"):
        made(lambda ctx, x: ctx.mark_shared_storage((x, x)) or x * 1).apply(leaf())


# saved tensors -----------------------------------------------------------------------------------


def test_a_saved_tensor_that_was_written_to_is_noticed() -> None:
    x = leaf() * 1
    y = Scaled.apply(x, 2.0)
    x += 1
    with pytest.raises(RuntimeError, match=r"DoubleTensor \[3\].*is at version 1; expected"):
        y.sum().backward()
    z = Reciprocal.apply(leaf())
    with no_grad():
        z += 1
    with pytest.raises(RuntimeError, match="output 0 of ReciprocalBackward"):
        z.sum().backward()


def test_saved_tensors_are_freed() -> None:
    y = Scaled.apply(leaf(), 2.0).sum()
    node = Scaled.apply(leaf(), 1.0)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
    node.sum().backward()
    with pytest.raises(RuntimeError, match="already been freed"):
        _ = node.grad_fn.saved_tensors


def test_hooks_for_saved_tensors() -> None:
    x = leaf()
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t.detach().numpy() * 10

    with saved_tensors_hooks(pack, lambda held: tensor(held)):
        y = Scaled.apply(x, 1.0)
    assert packed == [x]
    y.sum().backward()
    assert_allclose(x.grad.numpy(), 3 * (10 * X) ** 2)
    z = Reciprocal.apply(x)
    (place,) = z.grad_fn._raw_saved_tensors
    place.register_hooks(lambda t: t.numpy() * 2, tensor)
    with pytest.raises(RuntimeError, match="hooks have already been set"):
        place.register_hooks(pack, pack)
    (found,) = grad(z.sum(), x)
    assert_allclose(found.numpy(), -4 / X**2)


def test_hooks_of_nodes_and_results() -> None:
    x = leaf()
    product, total = Product.apply(x, x)
    seen: list[Any] = []
    product.register_hook(lambda g: g * 2)
    total.retain_grad()
    product.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs, outputs)))
    (product + 3 * total).sum().backward()
    assert_array_equal(total.grad.numpy(), [3.0] * 3)
    ((inputs, outputs),) = seen
    assert [g.numpy().tolist() for g in outputs] == [[2.0] * 3, [3.0] * 3]
    assert_allclose(inputs[0].numpy(), 2 * X + 3)
    assert_allclose(x.grad.numpy(), 2 * (2 * X + 3))


def test_anomaly_mode_tells_where_a_function_was_called() -> None:
    x = leaf()
    with pytest.warns(UserWarning, match="Anomaly Detection"), detect_anomaly(check_nan=False):
        y = made(backward=lambda ctx, g: g[:2]).apply(x)
    with pytest.raises(RuntimeError, match="invalid gradient") as caught:
        y.sum().backward()
    assert "test_function_rules.py" in "".join(caught.value.__notes__)


class Marked(Function):
    """Doubles its argument; gives the context what ``marks`` names, so that it may be kept."""

    @staticmethod
    def forward(ctx: Any, x: Any, marks: str) -> Any:
        y = x.mul_(2) if "dirty" in marks else x * 2
        if "dirty" in marks:
            ctx.mark_dirty(y)
        if "constant" in marks:
            ctx.mark_non_differentiable(y)
        if "operand" in marks:
            ctx.save_for_backward(x)
        if "result" in marks:
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
        return y

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return 2 * grad, None


@pytest.mark.parametrize("pulls", [False, True], ids=["dropped", "pulled back"])
@pytest.mark.parametrize(
    "marks",
    ["none", "constant", "operand", "result", "dirty", "dirty constant", "dirty result"],
)
@pytest.mark.parametrize(
    "part",
    [lambda y: y, lambda y: y[None], lambda y: y[1:][:1], lambda y: y.detach(), lambda y: y.T],
    ids=["whole", "view", "view of a view", "detached", "transposed"],
)
def test_nothing_refers_in_a_circle(part: Any, marks: str, pulls: bool) -> None:
    gc.disable()
    try:
        y = leaf() * 1
        x = part(y)
        result = Marked.apply(x, marks)
        total = result.sum() + y.sum() + x.sum()
        if pulls and total.requires_grad:
            total.backward()
        kept = [weakref.ref(t) for t in (y, x, result, total)]
        kept += [weakref.ref(t.grad_fn) for t in (y, x, result, total) if t.grad_fn is not None]
        del y, x, result, total
        assert [ref() for ref in kept] == [None] * len(kept)
    finally:
        gc.enable()


def test_several_results_refer_to_nothing_in_a_circle() -> None:
    gc.disable()
    try:
        x = leaf()
        y = Reciprocal.apply(x)
        product, total = Product.apply(x, x)
        nodes = [weakref.ref(t.grad_fn) for t in (y, product)]
        del y, product, total
        assert [node() for node in nodes] == [None, None]
    finally:
        gc.enable()


# in-place and views ------------------------------------------------------------------------------


class Doubled(Function):
    """Writes to its argument."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        x *= 2
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def test_an_argument_that_is_written_to() -> None:
    x = leaf()
    y = x * x
    z = Doubled.apply(y)
    assert z is y
    assert y.grad_fn.name() == "DoubledBackward"
    (y * y).sum().backward()
    assert_allclose(x.grad.numpy(), 16 * X**3)


def test_a_view_that_is_written_to() -> None:
    x = leaf()
    y = x * 1
    head = y[:2]
    assert Doubled.apply(head) is head
    assert y.grad_fn.name() == "CopySlices"
    assert_array_equal(y.detach().numpy(), [2, 4, 3])
    (y * tensor([1.0, 10.0, 100.0])).sum().backward(retain_graph=True)
    assert_array_equal(x.grad.numpy(), [2, 20, 100])
    x.grad = None
    head.sum().backward()
    assert_array_equal(x.grad.numpy(), [2, 2, 0])


@pytest.mark.parametrize("part", [lambda y: y, lambda y: y[:2], lambda y: y[1:][:1]])
def test_what_is_written_to_keeps_neither_its_gradient_nor_hooks_of_the_view(part: Any) -> None:
    y = leaf() * 1
    x = part(y)
    log: list[Any] = []
    x.register_hook(log.append)
    x.retain_grad()
    (x * x).sum().backward(retain_graph=True)
    assert x.grad.tolist() == (2 * x).tolist()
    assert len(log) == 1
    Doubled.apply(x)
    assert x.grad is None
    (found,) = grad(y.sum(), y)
    assert found.tolist() == [1.0] * 3
    log.clear()
    y.sum().backward()
    # the hook of a view belongs to a node that nothing before the write has read
    assert [g.tolist() for g in log] == ([[2.0] * 3] if x is y else [])


@pytest.mark.parametrize("part", [lambda y: y[:2], lambda y: y[1:][:1], lambda y: y.view(3)])
def test_a_retained_gradient_is_that_of_what_was_written_through_a_view(part: Any) -> None:
    y = leaf() * 1
    y.retain_grad()
    Doubled.apply(part(y))
    y.sum().backward()
    assert y.grad.tolist() == [1.0] * 3


def test_a_view_marked_as_dirty_depends_on_a_tensor_whose_shape_changed_before() -> None:
    y = (leaf() * 1).reshape(1, 3) * 1
    head = y[0, :2]
    y.t_()
    Doubled.apply(head)
    (found,) = grad(head.sum(), y)
    assert found.shape == (3, 1)


def test_a_view_that_is_written_to_beside_other_results() -> None:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_dirty(x)
        x += 1
        return x, x * 2

    with pytest.raises(RuntimeError, match="an input that is a view of another Tensor"):
        made(forward).apply((leaf() * 1)[:2])


def test_an_argument_that_is_returned_becomes_a_view() -> None:
    x = leaf() * 1
    y = made(lambda ctx, x: x, lambda ctx, g: g * 5).apply(x)
    assert y is not x
    assert y._base is x
    (found,) = grad(y.sum(), x)
    assert_array_equal(found.numpy(), [5.0] * 3)
    with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
        y += 1
    part = made(lambda ctx, x: x[:2], lambda ctx, g: g).apply(x)
    with pytest.raises(RuntimeError, match="created inside a custom Function"):
        part *= 2


# variants ----------------------------------------------------------------------------------------


class Once(Function):
    """``x * x``, differentiable once."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2 * grad * x


def test_once_differentiable() -> None:
    x, w = leaf(), leaf()
    (first,) = grad((Once.apply(x) * w).sum(), x, create_graph=True)
    assert_allclose(first.detach().numpy(), 2 * X * X)
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        first.sum().backward()


def test_nested_arguments_and_results() -> None:
    class Nested(NestedIOFunction):
        @staticmethod
        def forward_extended(ctx: Any, table: Any, factor: float) -> Any:
            ctx.save_for_backward([table["a"]])
            ctx.factor = factor
            return {"out": table["a"] * factor, "others": [t * 3 for t in table["b"]]}

        @staticmethod
        def backward_extended(ctx: Any, grads: Any) -> Any:
            ((a,),) = ctx.saved_tensors
            assert_array_equal(a.detach().numpy(), X)
            return {"a": grads["out"] * ctx.factor, "b": tuple(g * 3 for g in grads["others"])}

    a, b, c = leaf(), leaf(), leaf()
    out = Nested.apply({"a": a, "b": (b, c)}, 2.0)
    (out["out"] + out["others"][1] * 10).sum().backward()
    assert_array_equal(a.grad.numpy(), [2.0] * 3)
    assert_array_equal(b.grad.numpy(), [0.0] * 3)
    assert_array_equal(c.grad.numpy(), [30.0] * 3)


def test_complex_gradients_are_those_of_torch() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 * x.conj()

    z = leaf(X + 1j)
    y = Square.apply(z)
    (found,) = grad((y * y.conj()).real.sum(), z)
    assert_allclose(found.numpy(), 4 * (X + 1j) * np.abs(X + 1j) ** 2)


def test_complex_gradients_of_real_inputs_are_refused() -> None:
    class Turned(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1j

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * -1j

    x = leaf(X)
    with pytest.raises(RuntimeError, match=r"input_is_complex == grad_is_complex\) to be true"):
        Turned.apply(x).imag.sum().backward()
    assert x.grad is None
