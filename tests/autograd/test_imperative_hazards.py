"""What users of such libraries have reported, on the imperative side.

One group per line of the list of hazards that concerns tensors; gradients are compared with values
computed by hand, orders 1 and 2, eager and jitted where both exist. Points where derivatives are
special are in ``test_special_points.py``, threads in ``test_hooks_order.py``, depth and leaks in
``test_backward_pass.py``, jitted steps in ``test_staged.py``.
"""

import copy
import gc
import io
import math
import multiprocessing
import os
import pickle
import sys
import threading
import warnings
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.compat.torch as torch
from functrans.autograd import (
    Function,
    Tensor,
    backward,
    enable_grad,
    func,
    grad,
    gradcheck,
    no_grad,
    tensor,
)
from functrans.autograd.graph import save_on_cpu, saved_tensors_hooks
from functrans.compat.torch.utils.checkpoint import checkpoint


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(np.array(values), requires_grad=True)


def first_and_second(function: Callable[[Any], Any], values: Any) -> tuple[Any, Any]:
    """Gradient of a sum, and gradient of the sum of the gradient."""
    x = leaf(values)
    (g,) = grad(function(x).sum(), x, create_graph=True)
    if not g.requires_grad:
        return g.numpy(), np.zeros(x.shape)
    (h,) = grad(g.sum(), x, materialize_grads=True)
    return g.detach().numpy(), h.numpy()


# where, ties, zeros ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "values", "first", "second"),
    [
        (lambda x: torch.where(x >= 0, x, (-x).sqrt()), [1.0], [1.0], [0.0]),
        (lambda x: torch.where(x < 1, x.cos(), torch.zeros_like(x)), [math.inf], [0.0], [0.0]),
        (lambda x: x**0, [0.0, 2.0], [0.0, 0.0], [0.0, 0.0]),
        (lambda x: x.relu(), [0.0, -1.0, 1.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]),
        (lambda x: x.abs(), [0.0, -1.0], [0.0, -1.0], [0.0, 0.0]),
        (lambda x: x.prod(), [0.0, 3.0, 4.0], [12.0, 0.0, 0.0], [7.0, 4.0, 3.0]),
        (lambda x: x.prod(), [0.0, 0.0, 4.0], [0.0, 0.0, 0.0], [4.0, 4.0, 0.0]),
        (lambda x: x.cumprod(0)[2], [0.0, 3.0, 4.0], [12.0, 0.0, 0.0], [7.0, 4.0, 3.0]),
        (lambda x: x.logsumexp(0), [-math.inf, 0.0], [0.0, 1.0], [0.0, 0.0]),
        (lambda x: x.view(2, 2).det(), [1.0, 2.0, 2.0, 4.0], [4.0, -2.0, -2.0, 1.0], None),
    ],
    ids=[
        "where", "where at inf", "power 0", "relu", "abs", "prod with a 0", "prod with zeros",
        "cumprod", "logsumexp", "singular det",
    ],
)  # fmt: skip
def test_gradients_at_special_values(function: Any, values: Any, first: Any, second: Any) -> None:
    g, h = first_and_second(function, values)
    assert_allclose(g, first, atol=1e-12)
    if second is not None:
        assert_allclose(h, second, atol=1e-12)


# perturbation confusion --------------------------------------------------------------------------


def d(function: Any) -> Any:
    """The derivative by ``autograd.grad``, recorded."""

    def derivative(x: Any) -> Any:
        with enable_grad():
            x = x if x.requires_grad else x.detach().requires_grad_()
            y = function(x)
            return grad(y, x, create_graph=True)[0]

    return derivative


def test_derivatives_inside_derivatives_keep_apart() -> None:
    one, four = leaf(1.0), leaf(4.0)
    inner = leaf(1.0)
    assert d(lambda x: x * d(lambda y: x + y)(inner))(one).item() == 1.0
    assert d(lambda x: x * d(lambda y: x * y)(inner))(four).item() == 8.0
    assert func.grad(lambda x: x * func.grad(lambda y: x + y)(tensor(1.0)))(tensor(1.0)).item() == 1
    assert func.grad(lambda x: x * func.grad(lambda y: x * y)(tensor(1.0)))(tensor(4.0)).item() == 8

    def cube(x: Any) -> Any:
        return x * x * x

    assert d(d(cube))(leaf(2.0)).item() == 12.0


# broadcasting, integers, dtypes ------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (3, 1), (1, 4), (3, 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("factor", [2.0, np.float64(2.0), 2], ids=["float", "float64", "int"])
def test_gradients_have_shape_and_dtype_of_what_they_belong_to(
    shape: tuple[int, ...], dtype: Any, factor: Any
) -> None:
    x = tensor(np.ones(shape, dtype), requires_grad=True)
    other = tensor(np.arange(12, dtype=dtype).reshape(3, 4), requires_grad=True)
    y = (x * other * factor).sum()
    assert y.dtype == dtype
    y.backward()
    for t in (x, other):
        assert t.grad.shape == t.shape
        assert t.grad.dtype == t.dtype == dtype
    summed = other.detach().numpy() * 2
    for axis, n in enumerate((3, 4)):
        if len(shape) == 2 and shape[axis] != n:
            summed = summed.sum(axis, keepdims=True)
    if len(shape) < 2:
        summed = np.broadcast_to(summed.sum(), shape)
    assert_allclose(x.grad.numpy(), summed)


def test_integers_carry_no_gradient() -> None:
    x = leaf((3.0, 1.0, 2.0))
    index = x.argsort()
    assert not index.requires_grad
    assert index.is_leaf
    assert not x.argmax().requires_grad
    assert not (x > 1).requires_grad
    (x[index] * tensor([1.0, 10.0, 100.0])).sum().backward()
    assert_array_equal(x.grad.numpy(), [100, 1, 10])
    with pytest.raises(RuntimeError, match="dtype can require gradients"):
        index.requires_grad_()
    with pytest.raises(RuntimeError, match="does not require grad"):
        backward(index.sum())


def test_ties_of_maxima() -> None:
    values = [2.0, 5.0, 5.0]
    assert_allclose(first_and_second(lambda x: x.amax(), values)[0], [0, 0.5, 0.5])
    x = leaf(values)
    assert first_and_second(lambda x: x[x.argmax()], values)[0].tolist() == [0.0, 1.0, 0.0]
    x.max().backward()
    assert x.grad.numpy().sum() == 1.0


# empty arrays ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.sum(),
        lambda x: x.prod(),
        lambda x: x.cumsum(0).sum(),
        lambda x: (x @ x.t()).sum(),
        lambda x: x.exp().mean(1).sum(),
        lambda x: x[torch.zeros(0, dtype=torch.int64)].sum(),
        lambda x: torch.cat([x, x]).sum(),
        lambda x: x.logsumexp(1).sum(),
    ],
)
def test_empty_tensors_have_empty_gradients(function: Any) -> None:
    x = leaf(np.zeros((0, 3)))
    y = function(x)
    y.backward()
    assert x.grad.shape == (0, 3)
    assert y.item() in (0.0, 1.0)


def test_maxima_of_nothing() -> None:
    x = leaf(np.zeros((0, 3)))
    with pytest.raises((RuntimeError, IndexError, ValueError)):
        x.max()
    assert x.amax(1).shape == (0,)


def test_batches_of_nothing() -> None:
    x = leaf()
    (g,) = grad(x * x, x, tensor(np.zeros((0, 2))), is_grads_batched=True)
    assert g.shape == (0, 2)


# raw NumPy on tensors ----------------------------------------------------------------------------

X = (1.0, 2.0, 3.0)

ENTRIES: dict[str, Callable[[Any, np.ndarray], Any]] = {
    "np.array": lambda t, buf: np.array(t),
    "np.array of a list": lambda t, buf: np.array([t, t]),
    "np.asarray": lambda t, buf: np.asarray(t),
    "np.mean of a list": lambda t, buf: np.mean([t, t]),
    "np.full": lambda t, buf: np.full(3, t[0]),
    "np.full_like": lambda t, buf: np.full_like(buf, t[0]),
    "array.dot": lambda t, buf: buf.dot(t),
    "index": lambda t, buf: buf[t],
    "fill": lambda t, buf: buf.fill(t[0]),
    "assignment": lambda t, buf: buf.__setitem__(slice(None), t),
    "assignment of one": lambda t, buf: buf.__setitem__(0, t[0]),
    "in-place add": lambda t, buf: buf.__iadd__(t),
    "np.copyto": lambda t, buf: np.copyto(buf, t),
    "np.put": lambda t, buf: np.put(buf, [0], t[:1]),
    "np.add.at": lambda t, buf: np.add.at(buf, [0], t[:1]),
    "out": lambda t, buf: np.add(t, 1.0, out=buf),
    "np.sin": lambda t, buf: np.sin(t),
    "np.sum": lambda t, buf: np.sum(t),
    "np.dot": lambda t, buf: np.dot(buf, t),
    "np.where": lambda t, buf: np.where(buf > 0, t, 0.0),
    "np.concatenate": lambda t, buf: np.concatenate([t, t]),
    "np.stack": lambda t, buf: np.stack([t, t]),
    "array on the left": lambda t, buf: buf * t,
    "array @ tensor": lambda t, buf: buf @ t,
    "np.float64 on the left": lambda t, buf: np.float64(2.0) * t,
    "np.linalg.norm": lambda t, buf: np.linalg.norm(t),
    "np.max": lambda t, buf: np.max(t),
    "masked array": lambda t, buf: np.ma.masked_array(t),
    "math.sin": lambda t, buf: math.sin(t[0]),
}


RECORDED = (
    "np.sin", "np.sum", "np.dot", "np.where", "np.concatenate", "np.stack", "array on the left",
    "array @ tensor", "np.float64 on the left", "np.linalg.norm", "np.max",
)  # fmt: skip
WRITES = ("np.full_like", "in-place add", "np.copyto", "np.put", "np.add.at", "out")
OUTCOMES = {
    **dict.fromkeys(RECORDED, "recorded"),
    **dict.fromkeys(WRITES, "UnsupportedOperationError"),
    **dict.fromkeys(("fill", "assignment of one", "math.sin"), "warned"),
}
"""What comes of those calls; the others raise torch's ``RuntimeError``."""


def outcome(name: str) -> str:
    """What comes of a call: ``recorded``, ``warned``, or the name of the error."""
    t, buf = leaf(X), np.array([5.0, 6.0, 7.0])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = ENTRIES[name](t, buf)
        except Exception as error:
            return type(error).__name__ if len(str(error)) > 20 else "an error without a text"
    results = result if isinstance(result, (list, tuple)) else [result]
    if all(isinstance(r, Tensor) and r.requires_grad for r in results):
        return "recorded"
    assert getattr(result, "dtype", np.dtype(float)).kind != "O"
    return "warned" if any("derivative is lost" in str(w.message) for w in caught) else "silent"


@pytest.mark.parametrize("name", ENTRIES)
def test_numpy_with_a_tensor_is_recorded_refused_or_warned_of(name: str) -> None:
    """Never an array of objects; never a value whose derivative is lost in silence."""
    assert outcome(name) == OUTCOMES.get(name, "RuntimeError")


@pytest.mark.parametrize("name", ["np.sin", "np.sum", "np.where", "array on the left", "np.dot"])
def test_numpy_functions_with_a_tensor_have_the_right_derivative(name: str) -> None:
    t, buf = leaf(X), np.array([5.0, 6.0, 7.0])
    expected = {
        "np.sin": np.cos(X), "np.sum": np.ones(3), "np.where": np.ones(3),
        "array on the left": buf, "np.dot": buf,
    }[name]  # fmt: skip
    (g,) = grad(ENTRIES[name](t, buf).sum(), t)
    assert_allclose(g.numpy(), expected)


@pytest.mark.parametrize("make", [tensor, torch.tensor, torch.as_tensor])
@pytest.mark.parametrize("transform", [ft.grad, ft.vmap, ft.hessian])
def test_a_traced_array_does_not_become_a_tensor(make: Any, transform: Any) -> None:
    with pytest.raises(ft.errors.UnsupportedOperationError, match="derivative would be lost"):
        transform(lambda v: (make(v) * 2).sum())(np.array(X))


# aliasing, in-place, mutated arrays --------------------------------------------------------------


def test_a_buffer_that_is_used_again() -> None:
    """Residuals that are plain arrays are copied: a later write into the buffer is harmless."""
    x, buf = leaf(X), np.zeros(3)
    s = tensor(0.0)
    for k in (1.0, 10.0, 100.0):
        buf[:] = k
        s = s + (x * buf).sum()
    s.backward()
    assert_array_equal(x.grad.numpy(), [111.0] * 3)


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (lambda x, b: x * b, [1, 2, 3]),
        (lambda x, b: b * x, [1, 2, 3]),
        (lambda x, b: x / b, [1, 1 / 2, 1 / 3]),
        (lambda x, b: x @ b, [1, 2, 3]),
        (lambda x, b: x.mul(b), [1, 2, 3]),
        (lambda x, b: (x * 1).mul_(b), [1, 2, 3]),
        (lambda x, b: np.multiply(x, b), [1, 2, 3]),
        (lambda x, b: torch.where(x > 0, x * b, x), [1, 2, 3]),
        (lambda x, b: x.pow(b), [1, 4, 27]),
        (lambda x, b: x[b.astype(int) - 1] * x.detach()[[2, 1, 0]], [3, 2, 1]),
    ],
)
def test_a_derivative_reads_what_an_array_held_then(use: Any, expected: Any) -> None:
    x, b = leaf(X), np.array([1.0, 2.0, 3.0])
    y = use(x, b).sum()
    b[:] = 100.0
    (g,) = grad(y, x)
    assert_allclose(g.numpy(), expected)


def test_the_callers_arrays_are_not_changed() -> None:
    a, seed = np.array(X), np.ones(3)
    x = tensor(a, requires_grad=True)
    given = ft.from_numpy(seed)
    (x * x).backward(given)
    (x * x).backward(given)
    x.grad.zero_()
    with no_grad():
        x.add_(5)
    assert_array_equal(a, X)
    assert_array_equal(seed, [1.0] * 3)
    assert a.flags.writeable
    assert seed.flags.writeable


def test_a_seed_does_not_become_the_gradient() -> None:
    x, seed = leaf(X), tensor(np.ones(3))
    x.backward(seed)
    (x * 1).backward(seed)
    assert_array_equal(seed.numpy(), [1.0] * 3)
    assert not np.shares_memory(x.grad.numpy(), seed.numpy())


def test_leaves_do_not_share_their_gradient() -> None:
    x, w = leaf(X), leaf(X)
    (x + w).sum().backward()
    x.grad.mul_(5)
    assert_array_equal(w.grad.numpy(), [1.0] * 3)
    a = leaf(X)
    y = a * 1
    y.retain_grad()
    y.backward(tensor(np.ones(3)))
    y.grad.mul_(5)
    assert_array_equal(a.grad.numpy(), [1.0] * 3)


def test_the_old_value_is_used_after_a_part_was_overwritten() -> None:
    x = leaf(X)
    y = x * 1
    old = y.clone()
    square = (y[:1] * 3).sum()
    y[:1] = 7.0
    (y.sum() + (old * old).sum() + square).backward()
    assert_array_equal(x.grad.numpy(), [0 + 2 + 3, 1 + 4, 1 + 6])


@pytest.mark.parametrize("is_view", [True, False])
def test_writes_to_a_reshaped_tensor_reach_it_if_it_is_a_view(is_view: bool) -> None:
    x = leaf(np.arange(6.0).reshape(2, 3))
    y = x * 1
    flat = y.reshape(-1) if is_view else y.t().reshape(-1)
    flat[0] = 100.0
    assert (y[0, 0].item() == 100.0) is is_view
    y.sum().backward()
    assert x.grad[0, 0].item() == (0.0 if is_view else 1.0)
    assert_array_equal(x.grad.numpy().ravel()[1:], np.ones(5))


def test_filling_a_tensor_in_a_loop_is_linear() -> None:
    """Steps, not seconds: the graph of n writes has O(n) nodes and the pass runs each once."""
    n = 200
    x = leaf(np.ones(n))
    y = torch.zeros(n, dtype=torch.float64)
    for i in range(n):
        y[i] = x[i] * i
    ran: list[int] = []
    node, count = y.grad_fn, 0
    while node is not None:
        count += 1
        node.register_prehook(lambda g: ran.append(1))
        node = next((p for p, _ in node.next_functions if p and p.name() == "CopySlices"), None)
    assert count == n
    y.sum().backward()
    assert len(ran) == n
    assert_array_equal(x.grad.numpy(), np.arange(n))


def test_a_view_through_a_chain_of_views_counts_versions_of_one_storage() -> None:
    x = leaf(np.arange(8.0))
    y = x * 1
    v = y.view(2, 4)
    w = v[1]
    u = w[::2]
    product = (u * u).sum()
    y[6:].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        product.backward()
    assert y._version == v._version == w._version == u._version == 1
    assert x.grad is None
    (u * u).sum().backward()
    assert_array_equal(x.grad.numpy(), [0, 0, 0, 0, 8, 0, 2 * 12 * 2, 0])


def test_a_pack_hook_that_keeps_the_tensor_itself() -> None:
    kept: list[Any] = []
    x = leaf(X)
    with saved_tensors_hooks(lambda t: kept.append(t) or len(kept) - 1, lambda i: kept[i]):
        y = x.exp().sum()
    kept[0] = kept[0].detach() * 2
    y.backward()
    assert_allclose(x.grad.numpy(), 2 * np.exp(X))


# undefined against zero --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "use",
    [
        lambda a: torch.linalg.qr(a)[1].abs().sum(),
        lambda a: torch.linalg.qr(a)[0][:, 0].sum(),
        lambda a: torch.linalg.svd(a)[1].sum(),
        lambda a: torch.linalg.eigh(a + a.mT)[0][0],
        lambda a: torch.linalg.slogdet(a)[1],
    ],
    ids=["qr: R", "qr: Q", "svd: S", "eigh: L", "slogdet"],
)
def test_results_of_which_only_some_are_used(use: Any) -> None:
    a = leaf([[3.0, 1.0], [0.5, 2.0]])
    assert gradcheck(use, a)


def test_eigenvalues_that_are_equal() -> None:
    a = leaf(np.eye(3) * 2.0)
    (g,) = grad(torch.linalg.eigvalsh(a).sum(), a)
    assert_allclose(g.numpy(), np.eye(3), atol=1e-12)
    (g,) = grad(torch.linalg.svdvals(a).sum(), a)
    assert_allclose(g.numpy(), np.eye(3), atol=1e-12)


class Two(Function):
    """Two results, of which a gradient may be missing."""

    seen: list[Any] = []  # noqa: RUF012  # what backward got

    @staticmethod
    def forward(ctx: Any, x: Any, materialize: bool) -> Any:
        ctx.set_materialize_grads(materialize)
        return x * 2, x * 3

    @staticmethod
    def backward(ctx: Any, a: Any, b: Any) -> Any:
        Two.seen.append((a is None, b is None))
        parts = [g * k for g, k in ((a, 2), (b, 3)) if g is not None]
        return sum(parts[1:], parts[0]), None


@pytest.mark.parametrize("materialize", [True, False])
def test_gradients_that_do_not_exist_are_none_or_zeros(materialize: bool) -> None:
    Two.seen.clear()
    x = leaf(X)
    a, b = Two.apply(x, materialize)
    a.sum().backward()
    assert_array_equal(x.grad.numpy(), [2.0] * 3)
    a, b = Two.apply(x, materialize)
    (a + b).sum().backward()
    assert_array_equal(x.grad.numpy(), [7.0] * 3)
    assert Two.seen == [(False, not materialize), (False, False)]


def test_an_input_that_no_output_needs_is_none_and_not_zero() -> None:
    x, w = leaf(X), leaf(X)
    y = (x * 0 + w.detach()).sum()
    first, second = grad(y, [x, w], allow_unused=True)
    assert_array_equal(first.numpy(), [0.0] * 3)
    assert second is None
    y = (x * 2).sum()
    y.backward()
    assert w.grad is None


# complex numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda z: (z * z.conj()).real, lambda z: 2 * z),
        (lambda z: abs(z), lambda z: z / abs(z)),
        (lambda z: (z * 2.0).real, lambda z: 2.0 + 0 * z),
        (lambda z: z.imag, lambda z: 1j + 0 * z),
        (lambda z: (z * z).real, lambda z: 2 * np.conj(z)),
    ],
    ids=["square", "abs", "real factor", "imag", "holomorphic"],
)
def test_complex_gradients_are_conjugate_and_those_of_functrans_are_not(
    function: Any, expected: Any
) -> None:
    at = np.array([1 + 2j, 3 - 1j])
    z = leaf(at)
    (g,) = grad(function(z).sum(), z)
    assert_allclose(g.numpy(), expected(at))
    of_tensors = func.grad(lambda v: function(v).sum())(tensor(at))
    assert_allclose(of_tensors.numpy(), expected(at))
    of_functrans = ft.grad(lambda v: function(v).sum())(tensor(at))
    assert_allclose(of_functrans.numpy(), np.conj(expected(at)))


def test_the_modulus_at_zero_and_real_leaves_of_complex_results() -> None:
    z = leaf([0j])
    (g,) = grad(z.abs().sum(), z)
    assert_array_equal(g.numpy(), [0j])
    x, w = leaf([2.0]), leaf([1 + 1j])
    y = (x * w).abs().sum()
    y.backward()
    assert x.grad.dtype == np.float64
    assert w.grad.dtype == np.complex128
    assert_allclose(x.grad.numpy(), [math.sqrt(2)])


# custom rules ------------------------------------------------------------------------------------


class Tripled(Function):
    """``x * y`` with a backward that is wrong by 3, which shows whose rule was used."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x * y

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return 3 * g * y, 3 * g * x


@pytest.mark.parametrize("is_jitted", [False, True])
def test_a_function_keeps_its_rule_under_transforms(is_jitted: bool) -> None:
    x, y = tensor(np.array(X)), tensor(np.array([4.0, 5.0, 6.0]))

    def f(a: Any, b: Any) -> Any:
        return Tripled.apply(a, b).sum()

    def prepared(g: Any) -> Any:
        return ft.jit(g) if is_jitted else g

    expected = 3 * y.numpy()
    assert_allclose(prepared(func.grad(f))(x, y).numpy(), expected)
    assert_allclose(prepared(func.vmap(func.grad(f)))(x, y).numpy(), expected)
    assert_allclose(prepared(func.grad(lambda a: func.vmap(f)(a, y).sum()))(x).numpy(), expected)
    assert_allclose(prepared(func.vmap(func.grad(f), (0, None)))(x, y[0]).numpy(), [12.0] * 3)
    one = func.grad(lambda a: func.grad(lambda v: (Tripled.apply(v, v)).sum())(a).sum())(x)
    assert_allclose(one.numpy(), [6.0] * 3)


# jitted steps ------------------------------------------------------------------------------------


def test_a_jitted_step_and_hooks_that_come_later() -> None:
    x = leaf(X)

    def step(data: Any) -> Any:
        x.grad = None
        loss = (x * x * data).sum()
        loss.backward()
        with no_grad():
            x.sub_(0.25 * x.grad)
        return loss

    fast = ft.jit(step)
    data = tensor(np.ones(3))
    values = [fast(data).item() for _ in range(3)]
    assert values == [14.0, 3.5, 0.875]
    with x.register_hook(lambda g: g * 0):
        before = x.detach().numpy().copy()
        fast(data)
        assert_array_equal(x.detach().numpy(), before)
    fast(data)
    assert_allclose(x.detach().numpy(), before / 2)


# gradcheck ---------------------------------------------------------------------------------------


def test_gradcheck_leaves_no_trace_and_gives_the_same_every_time() -> None:
    state = np.random.get_state()[1].copy()  # noqa: NPY002  # it is the global one that counts
    x = leaf(X)
    results = []
    for _ in range(2):
        with pytest.raises(Exception, match="Jacobian mismatch") as caught:
            gradcheck(lambda v: Tripled.apply(v, v).sum(), x, fast_mode=True)
        results.append(str(caught.value))
    assert results[0] == results[1]
    assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002  # as above
    assert x.grad is None


# threads and processes ---------------------------------------------------------------------------


def in_threads(n: int, work: Callable[[int], None]) -> None:
    errors: list[BaseException] = []

    def guarded(i: int) -> None:
        try:
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_modes_hooks_and_graphs_of_threads_do_not_mix() -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    packed: list[list[int]] = [[] for _ in range(4)]
    try:

        def work(i: int) -> None:
            x = leaf(X)
            for k in range(20):
                if i % 2:
                    with no_grad():
                        assert not (x * 2).requires_grad
                with saved_tensors_hooks(lambda t: packed[i].append(i) or t, lambda t: t):
                    y = (x.exp() * (i + 1)).sum()
                (g,) = grad(y, x, create_graph=True)
                (h,) = grad(g.sum(), x)
                assert_allclose(h.numpy(), np.exp(X) * (i + 1))
                assert len(packed[i]) == k + 1

        in_threads(4, work)
    finally:
        sys.setswitchinterval(interval)
    assert all(set(p) == {i} for i, p in enumerate(packed))


@pytest.mark.parametrize("keep", [True, False])
def test_checkpoints_and_functions_in_several_threads(keep: bool) -> None:
    x = leaf(X)

    def body(v: Any) -> Any:
        return Tripled.apply(v.sin(), v)

    def work(i: int) -> None:
        for _ in range(10):
            y = checkpoint(body, x, use_reentrant=keep)
            y.sum().backward()

    in_threads(3, work)
    at = np.array(X)
    assert_allclose(x.grad.numpy(), 30 * 3 * (np.cos(at) * at + np.sin(at)))


def _of_child(queue: Any, x: Any) -> None:
    y = (x * x).sum()
    y.backward()
    queue.put((x.grad.tolist(), x.requires_grad, os.getpid()))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_tensors_in_other_processes(method: str) -> None:
    context = multiprocessing.get_context(method)
    x = leaf(X)
    (x * x).sum().backward()  # whatever this process has set up
    queue = context.Queue()
    process = context.Process(target=_of_child, args=(queue, leaf(X)))
    process.start()
    found, requires_grad, number = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    assert number != os.getpid()
    assert requires_grad
    assert found == [2.0, 4.0, 6.0]


def test_what_can_be_pickled() -> None:
    x = leaf(X)
    y = x * 2
    handle = y.register_hook(lambda g: g * 5)
    pickle.loads(pickle.dumps(handle)).remove()
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [10.0] * 3)
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps((x * 2).grad_fn)
    stream = io.BytesIO()
    torch.save({"x": x, "step": 3}, stream)
    stream.seek(0)
    state = torch.load(stream)
    assert state["step"] == 3
    assert state["x"].requires_grad


# depth -------------------------------------------------------------------------------------------


def test_deep_graphs_of_writes_views_functions_and_hooks() -> None:
    class Next(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = leaf([1.0, 2.0])
    y = x * 1
    ran: list[int] = []
    for i in range(3000):
        y = Next.apply(y) if i % 2 else y.view(2)
        y.register_hook(lambda g: ran.append(1))
    y.sum().backward()
    assert len(ran) == 3000
    assert_array_equal(x.grad.numpy(), [1, 1])
    with pytest.raises(RuntimeError, match="graph leaves"):
        copy.deepcopy(y)
    del y


def test_a_stack_of_many_tensors_is_one_operation() -> None:
    x = leaf(1.0)
    parts = [x * i for i in range(2000)]
    y = torch.stack(parts)
    assert y.grad_fn.name() == "StackBackward0"
    assert len(y.grad_fn.next_functions) == 2000
    y.sum().backward()
    assert x.grad.item() == sum(range(2000))


# leaks -------------------------------------------------------------------------------------------


def _create_graph(x: Any) -> None:
    y = (x * x * x).sum()
    y.backward(create_graph=True)
    x.grad = None


def _hooks_of_all_kinds(x: Any) -> None:
    y = x * x
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_hook(lambda gi, go: None)
    y.grad_fn.register_prehook(lambda go: None)
    x.register_post_accumulate_grad_hook(lambda p: None)
    y.retain_grad()
    y.sum().backward(create_graph=True)
    x.grad = y.grad = None


def _failing_function(x: Any) -> None:
    class Fails(Function):
        @staticmethod
        def forward(ctx: Any, v: Any) -> Any:
            ctx.save_for_backward(v)
            return v * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Fails.apply(x).sum().backward()
    del Fails
    gc.collect()  # the class of this test refers to itself


def _checkpointed(x: Any) -> None:
    for use_reentrant in (True, False):
        checkpoint(lambda v: v.exp() * v, x, use_reentrant=use_reentrant).sum().backward()


def _saved_elsewhere(x: Any) -> None:
    with save_on_cpu():
        y = (x.exp() * x).sum()
    y.backward(create_graph=True)
    x.grad = None


def _of_functional_transforms(x: Any) -> None:
    func.grad(lambda v: (v * x).sum())(x).sum().backward()
    func.hessian(lambda v: (v * v * x).sum())(x)


@pytest.mark.parametrize(
    "work",
    [
        _create_graph, _hooks_of_all_kinds, _failing_function, _checkpointed, _saved_elsewhere,
        _of_functional_transforms,
    ],
)  # fmt: skip
def test_tensors_die_by_reference_count(work: Any) -> None:
    work(leaf(X))  # caches
    gc.collect()
    gc.disable()
    try:
        x = leaf(X)
        tensor_, memory = weakref.ref(x), weakref.ref(x.detach().numpy())
        work(x)
        del x
        assert tensor_() is None
        assert memory() is None
    finally:
        gc.enable()
