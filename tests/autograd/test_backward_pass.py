"""The backward pass: order, edges, batches, layouts, complex numbers, depth, leaks, anomalies."""

import gc
import logging
import sys
import threading
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.numpy as fnp
from functrans.autograd import backward, grad, no_grad, tensor
from functrans.autograd.anomaly import (
    detect_anomaly,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    set_detect_anomaly,
)
from functrans.autograd.composites import composite
from functrans.autograd.graph import (
    GradientEdge,
    get_gradient_edge,
    register_multi_grad_hook,
    saved_tensors_hooks,
)
from functrans.autograd.nodes import GraphNode


def leaf(values: Any = (1.0, 2.0), dtype: Any = None) -> Any:
    return tensor(values, dtype=dtype, requires_grad=True)


# arguments ---------------------------------------------------------------------------------------


def test_edges_stand_for_tensors() -> None:
    x = leaf()
    y = x * 2
    z = y * y
    one = tensor([1.0, 1.0])
    node = z.grad_fn.next_functions[0]
    for place in (y, get_gradient_edge(y), GradientEdge(*node)):
        (g,) = grad(z, place, one, retain_graph=True)
        assert_array_equal(g.numpy(), [4, 8])
        (g,) = grad(place, x, one, retain_graph=True)
        assert_array_equal(g.numpy(), [2, 2])
    backward(get_gradient_edge(z), one, inputs=[get_gradient_edge(x), get_gradient_edge(y)])
    assert_array_equal(x.grad.numpy(), [8, 16])
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_edges_of_several_results() -> None:
    x = leaf((1.0, 2.0, 3.0))
    a, b, c = x.unbind()
    z = a * 2 + c * c
    edge = get_gradient_edge(c)
    assert edge.output_nr == 2
    assert edge.node is a.grad_fn
    (g,) = grad(z, edge, retain_graph=True)
    assert g.item() == 6
    (g,) = grad(z, GradientEdge(a.grad_fn, 0), retain_graph=True)
    assert g.item() == 2
    assert grad(z, b, retain_graph=True, allow_unused=True) == (None,)
    with pytest.raises(IndexError, match="UnbindBackward0 has 3 results"):
        grad(z, GradientEdge(a.grad_fn, 3), retain_graph=True)
    (g,) = grad(edge, x)
    assert_array_equal(g.numpy(), [0, 0, 1])


def test_backward_to_a_result_keeps_its_gradient_from_then_on() -> None:
    x = leaf()
    y = x * 2
    z = (y * y).sum()
    z.backward(inputs=[y], retain_graph=True)
    assert y.retains_grad
    assert x.grad is None
    z.backward()
    assert_array_equal(y.grad.numpy(), [8, 16])
    assert_array_equal(x.grad.numpy(), [8, 16])


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x, y: grad(y.sum(), leaf()), RuntimeError, "at index 0 appears to not have been"),
        (lambda x, y: grad(y.sum(), []), RuntimeError, r"`inputs` argument to `grad\(\)` cannot"),
        (lambda x, y: y.sum().backward(inputs=[]), RuntimeError, "`inputs` argument to `backward"),
        (lambda x, y: grad(y.sum(), [5]), RuntimeError, "all inputs have to be Tensors or"),
        (lambda x, y: grad(y.sum(), tensor(1.0)), RuntimeError, "does not require grad"),
        (lambda x, y: y.sum().backward(inputs=[tensor(1.0)]), RuntimeError, "can't retain_grad"),
        (lambda x, y: grad(y, x), RuntimeError, "implicitly created only for scalar outputs"),
        (lambda x, y: y.backward(tensor([1.0])), RuntimeError, "Mismatch in shape"),
        (
            lambda x, y: grad(y, x, tensor([[1.0]]), is_grads_batched=True),
            RuntimeError,
            "we interpret the first dimension",
        ),
        (lambda x, y: grad([y, y], x, [None]), RuntimeError, "got 2 tensors and 1 gradients"),
        (
            lambda x, y: grad(y.sum(), x, materialize_grads=True, allow_unused=False),
            ValueError,
            "Expected allow_unused to be True",
        ),
    ],
)
def test_wrong_arguments_change_nothing(call: Any, error: Any, message: str) -> None:
    x = leaf()
    y = x * x
    with pytest.raises(error, match=message):
        call(x, y)
    assert x.grad is None


def test_zeros_in_place_of_none() -> None:
    x, w = leaf(), leaf([[1.0, 2.0]])
    y = (x * x).sum()
    _, zeros = grad(y, [x, w], materialize_grads=True, retain_graph=True)
    assert_array_equal(zeros.numpy(), [[0, 0]])
    assert not zeros.requires_grad
    _, zeros = grad(y, [x, w], materialize_grads=True, create_graph=True)
    assert zeros.requires_grad


def test_a_batch_of_gradients() -> None:
    x = leaf()
    y = fnp.exp(x) * x
    z = composite("Own", lambda v: fnp.exp(v) / fnp.sum(fnp.exp(v)), y)
    seeds = np.array([[1.0, 0.0], [0.0, 1.0], [2.0, 3.0]])
    found = grad(z, [x, y], tensor(seeds), is_grads_batched=True, retain_graph=True)
    for i, seed in enumerate(seeds):
        for one, many in zip(grad(z, [x, y], tensor(seed), retain_graph=True), found, strict=True):
            assert_allclose(many.numpy()[i], one.numpy(), rtol=1e-12)
    (none,) = grad(z, x, tensor(np.zeros((0, 2))), is_grads_batched=True)
    assert none.shape == (0, 2)


def test_only_what_leads_to_the_inputs_runs() -> None:
    ran: list[str] = []
    x, w = leaf(), leaf()
    a, b = x * 2, w * w
    a.grad_fn.register_hook(lambda gi, go: ran.append("a"))
    b.grad_fn.register_hook(lambda gi, go: ran.append("b"))
    y = (a * b).sum()
    grad(y, w, retain_graph=True)
    grad(y, a, retain_graph=True)
    assert ran == ["b"]
    grad(y, x)
    (g,) = grad(b.sum(), w)  # not freed
    assert_array_equal(g.numpy(), [2, 4])


# accumulation ------------------------------------------------------------------------------------


def test_gradients_are_added_in_place_unless_recorded() -> None:
    x = leaf()
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert first._version == 1
    (x * x).sum().backward(create_graph=True)
    assert x.grad is not first
    assert_array_equal(x.grad.detach().numpy(), [6, 12])
    (h,) = grad(x.grad.sum(), x)
    assert_array_equal(h.numpy(), [2, 2])
    x.grad = None


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradient_is_memory_of_its_own(create_graph: bool) -> None:
    x = leaf()
    seed = tensor([1.0, 1.0])
    x.backward(seed, create_graph=create_graph)
    with no_grad():
        x.grad *= 5
    assert_array_equal(seed.numpy(), [1, 1])
    assert_array_equal(x.grad.detach().numpy(), [5, 5])


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize(
    ("make", "is_kept"),
    [
        (lambda a: a, True),
        (lambda a: a.T, True),
        (lambda a: np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0), True),
        (lambda a: a[:, ::2], False),
        (lambda a: a[::-1], False),
        (lambda a: np.broadcast_to(a[:1], (4, 3)), False),
    ],
    ids=["rows", "columns", "permuted", "gaps", "reversed", "broadcast"],
)
def test_layout_of_the_gradient(make: Any, is_kept: bool, create_graph: bool) -> None:
    value = make(np.arange(6.0).reshape(2, 3))
    x = tensor(0.0)
    x._value = value
    x.requires_grad_()
    (x * x).sum().backward(create_graph=create_graph)
    strides = value.strides if is_kept else np.empty(value.shape).strides
    assert x.grad._value.strides == strides
    assert_array_equal(x.grad.detach().numpy(), 2 * value)
    x.grad = None


# writes ------------------------------------------------------------------------------------------


def test_views_of_views_and_writes() -> None:
    x = leaf((1.0, 2.0, 3.0, 4.0))
    y = x * 1
    v = y.reshape(2, 2)
    w = v[0]
    w *= 10
    v[1] = w * 2
    assert [t.grad_fn.name() for t in (y, v)] == ["CopySlices", "ViewBackward0"]
    assert_array_equal(y.detach().numpy(), [10, 20, 20, 40])
    (v * v).sum().backward()
    assert_array_equal(x.grad.numpy(), [1000, 2000, 0, 0])


def test_a_part_written_with_itself() -> None:
    x = leaf()
    y = x * 2
    y[:1] *= 5  # multiplies a view in place, then assigns the view to the part
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [10, 2])


def test_a_view_from_before_its_base_became_differentiable() -> None:
    x = leaf((5.0,))
    y = tensor([0.0, 1.0, 2.0])
    v = y[:2]
    y[:1] = x
    assert v[:1].requires_grad
    (v[:1] * 3).sum().backward()
    assert x.grad.item() == 3


def test_a_tensor_that_was_overwritten_still_requires_a_gradient() -> None:
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.__imul__(0)
    y[:] = tensor([7.0, 8.0])
    assert y.requires_grad
    (y * y).sum().backward()
    assert_array_equal(x.grad.numpy(), [0, 0])
    assert_array_equal(y.grad.numpy(), [14, 16])


def test_a_view_made_under_no_grad_cannot_be_written_to_outside() -> None:
    for x in (leaf(), leaf() * 1):
        with no_grad():
            v = x[:1]
            v *= 1
        with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
            v *= 2


def test_a_view_made_under_no_grad_takes_nothing_that_is_recorded() -> None:
    x, plain = leaf(), tensor([1.0, 2.0])
    with no_grad():
        v = plain[:1]
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        v *= x[:1]
    assert plain.tolist() == [1, 2]


@pytest.mark.parametrize("write", [lambda v, x: v.mul_(x[0]), lambda v, x: v.view(1).add_(x[:1])])
def test_one_of_several_views_takes_nothing_that_is_recorded(write: Any) -> None:
    x, plain = leaf(), tensor([1.0, 2.0])
    a, b = plain.unbind()
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        write(a, x)
    b.mul_(3)
    assert plain.tolist() == [1, 6]


@pytest.mark.parametrize("part", [lambda v: v, lambda v: v[1:], lambda v: v.view(2, 1)[0]])
def test_a_leaf_that_is_a_view_cannot_be_written_to(part: Any) -> None:
    plain = tensor([1.0, 2.0])
    v = plain[:].requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        part(v).mul_(2)
    with no_grad():
        part(v).mul_(2)
    (v * v).sum().backward()
    assert_array_equal(v.grad.numpy(), 2 * v.detach().numpy())


def test_a_view_of_what_was_detached_and_written_to_is_a_constant() -> None:
    x = leaf()
    y = x * 1
    v = y[:1]
    y.detach_()
    y.mul_(5)
    (v * v * x[:1]).sum().backward()
    assert v.tolist() == [5 * x[0].item()]
    assert_array_equal(x.grad.numpy(), [25 * x[0].item() ** 2, 0])


def test_one_of_several_views_cannot_be_written_to() -> None:
    _, b = (leaf() * 1).unbind()
    with pytest.raises(RuntimeError, match="Output 1 of Unbind is a view and is being modified"):
        b *= 2


# complex numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z * (2 - 1j),
        lambda z: fnp.exp(z) / z,
        lambda z: composite("Own", lambda v: fnp.exp(v) * v, z),
        lambda z: fnp.conj(z) * z * z,
    ],
    ids=["product", "exp", "composite", "conjugate"],
)
def test_complex_gradients_point_uphill(function: Any) -> None:
    """The gradient of a real loss is d/da + i d/db; so it is for the gradient's own loss."""
    at = np.array([0.5 + 0.3j, -0.2 + 0.7j])

    def loss(z: Any) -> Any:
        return fnp.real(function(z) * (1 + 2j)).sum()

    def slope(z: Any) -> Any:
        (g,) = grad(loss(z), z, create_graph=True)
        return fnp.real(g * fnp.conj(g) * (1 - 1j) + g * g * (0.3 + 1j)).sum()

    for f in (loss, slope):
        z = leaf(at, np.complex128)
        (found,) = grad(f(z), z)
        expected = np.zeros_like(at)
        for i in range(2):
            for unit in (1, 1j):
                step = np.zeros_like(at)
                step[i] = 1e-6 * unit
                up, down = (f(leaf(at + s, np.complex128)).item() for s in (step, -step))
                expected[i] += unit * (up - down) / 2e-6
        assert_allclose(found.numpy(), expected, rtol=1e-6, atol=1e-8)


def test_complex_and_real_do_not_mix() -> None:
    z, x = leaf([1 + 2j]), leaf()
    with pytest.raises(RuntimeError, match="only for real scalar outputs"):
        (z * 2).sum().backward()
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        (z * 2).backward(tensor([1.0]))
    with pytest.raises(RuntimeError, match="required to have the same dtype"):
        (x * 2).backward(tensor([1j, 1j]))


# depth and leaks ---------------------------------------------------------------------------------


def test_deep_graphs_in_a_small_stack() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            x = leaf((1.0,))
            y = x
            for _ in range(100_000):
                y = y * 1.0
            y.backward()
            assert x.grad.item() == 1
            del y
            y = x * 1
            for _ in range(5_000):
                y[:1] *= 1.0
            (g,) = grad(y, x, create_graph=True)
            assert g.item() == 1
            del y, g
            y = x
            for _ in range(20_000):
                y = y * x
            (g,) = grad(y, x, create_graph=True)
            assert g.item() == 20_001
            del y, g
        except BaseException as error:
            failures.append(error)

    # CPython's own deallocation nests fifty objects deep, which takes more from 3.12 on
    size = 1024 if sys.version_info >= (3, 12) else 256
    before = threading.stack_size(size * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert not failures


def _first(x: Any) -> None:
    (fnp.exp(x * x) * x).sum().backward()


def _second(x: Any) -> None:
    (g,) = grad((fnp.exp(x * x) * x).sum(), x, create_graph=True)
    (g * g).sum().backward()
    x.grad = None


def _composites(x: Any) -> None:
    y = composite("Own", lambda v: fnp.exp(v) / fnp.sum(v * v), x)
    (g,) = grad(y.sum(), x, create_graph=True)
    g.sum().backward()


def _failing_hook(x: Any) -> None:
    y = x * x
    y.register_hook(lambda g: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()


def _freed(x: Any) -> None:
    y = (x * x).sum()
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()


def _writes(x: Any) -> None:
    y = x * 2
    v = y[:1]
    v *= 3
    y.retain_grad()
    v.retain_grad()
    (y.sum() + v.sum()).backward()


def _several(x: Any) -> None:
    a, b = x.unbind()
    a.retain_grad()
    b.register_hook(lambda g: None)
    register_multi_grad_hook([a, b, x], lambda g: None)
    (a * b).backward()


def _packed(x: Any) -> None:
    with saved_tensors_hooks(lambda t: t, lambda t: t):
        y = fnp.exp(x * x)
        z = composite("Own", lambda v: fnp.exp(v) * v, y)
    (g,) = grad(z.sum(), x, create_graph=True)
    g.sum().backward()


def _pictures(x: Any) -> None:
    y = (x * x).sum()
    y.grad_fn.jaxpr()
    y.grad_fn.to_html()
    get_gradient_edge(y)
    assert dir(y.grad_fn)


def number_of_nodes() -> int:
    return sum(issubclass(type(o), GraphNode) for o in gc.get_objects())


@pytest.mark.parametrize(
    "work",
    [
        _first, _second, _composites, _failing_hook, _freed, _writes, _several, _packed, _pictures,
    ],
)  # fmt: skip
def test_nothing_waits_for_the_collector(work: Any) -> None:
    work(leaf())  # caches
    gc.collect()
    gc.disable()
    try:
        before = number_of_nodes()
        x = leaf()
        ref = weakref.ref(x)
        work(x)
        del x
        assert ref() is None
        assert number_of_nodes() == before
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_residuals_are_freed_unless_kept() -> None:
    x = leaf()
    y = x * 1
    ref = weakref.ref(y._value)
    z = (y * y).sum()
    del y
    z.backward(retain_graph=True)
    assert ref() is not None
    z.backward()
    assert ref() is None


# anomalies ---------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_nan_names_the_node_and_shows_where_it_was_recorded() -> None:
    x = leaf()
    with detect_anomaly():
        y = x * float("nan")
        z = (y * 2).sum()
        with (
            pytest.warns(UserWarning, match=r"Error detected in MulBackward0(.|\n)*y = x \* float"),
            pytest.raises(
                RuntimeError, match="'MulBackward0' returned nan values in its 0th output"
            ) as caught,
        ):
            z.backward()
    assert any("recorded at test_backward_pass.py" in note for note in caught.value.__notes__)
    assert y.grad_fn.metadata["traceback_"][-1].strip().endswith('y = x * float("nan")')
    assert x.grad is None


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_failure_in_a_derivative_shows_the_operation_that_was_differentiated() -> None:
    x = leaf()
    with detect_anomaly(check_nan=False):
        y = x * x
        (g,) = grad(y.sum(), x, create_graph=True)
        g.grad_fn.register_hook(lambda gi, go: 1 // 0)
        total = g.sum()
        with (
            warnings.catch_warnings(record=True, action="always") as caught,
            pytest.raises(ZeroDivisionError),
        ):
            total.backward()
    first, second = (str(w.message) for w in caught)
    assert first.startswith("Error detected in AddBackward0")
    assert "create_graph=True" in first
    assert second.startswith("Previous calculation was induced by MulBackward0")
    assert "y = x * x" in second


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_an_operation_from_outside_has_no_stack() -> None:
    y = leaf() * float("nan")
    with (
        detect_anomaly(),
        pytest.warns(UserWarning, match="No forward pass information available"),
        pytest.raises(RuntimeError, match="returned nan values"),
    ):
        y.sum().backward()


def test_the_mode_is_restored() -> None:
    assert not is_anomaly_enabled()
    with pytest.warns(UserWarning, match="only be enabled for debugging"):
        mode = detect_anomaly(check_nan=False)
    assert not is_anomaly_enabled()
    with mode:
        assert is_anomaly_enabled()
        assert not is_anomaly_check_nan_enabled()
        with set_detect_anomaly(False):
            assert not is_anomaly_enabled()
            assert is_anomaly_check_nan_enabled()
        assert is_anomaly_enabled()
    assert not is_anomaly_enabled()
    set_detect_anomaly(True)
    assert is_anomaly_enabled()
    set_detect_anomaly(False)
    assert not is_anomaly_enabled()

    @set_detect_anomaly(False)
    def f() -> bool:
        return is_anomaly_enabled()

    assert not f()


def test_nodes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    x = leaf()
    with caplog.at_level(logging.DEBUG, "functrans.autograd.graph"):
        (x * 2).sum().backward()
    assert [record.getMessage().split(" object")[0] for record in caplog.records] == [
        "Executing: <SumBackward0",
        "Executing: <MulBackward0",
    ]
    assert caplog.records[1].getMessage().endswith("grad_outputs: [torch.DoubleTensor[2]]")
