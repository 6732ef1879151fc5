"""Saved tensors: what nodes keep, hooks that keep it elsewhere, writes to it."""

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import functrans.numpy as fnp
from functrans.autograd import grad, no_grad, tensor
from functrans.autograd.composites import composite
from functrans.autograd.graph import (
    GradientEdge,
    Node,
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    get_gradient_edge,
    increment_version,
    save_on_cpu,
    save_to_disk,
    saved_tensors_hooks,
)


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(values, requires_grad=True)


def swish(x: Any) -> Any:
    """Several equations as one node."""
    return composite("Swish", lambda v: v / (1 + fnp.exp(-v)), x)


def program(x: Any) -> Any:
    """Nodes of all kinds: elementwise, composite, product of matrices, sum, view."""
    y = fnp.exp(x * x) * 2 + swish(x)
    return (y.reshape(1, 2) @ (y * x).reshape(2, 1)).sum()


# nodes -------------------------------------------------------------------------------------------


def test_nodes_and_edges() -> None:
    x = leaf()
    y = x * 2
    z = y * y
    assert isinstance(z.grad_fn, Node)
    assert isinstance(get_gradient_edge(x).node, Node)
    assert not isinstance(z, Node)
    assert z.grad_fn.next_functions == ((y.grad_fn, 0), (y.grad_fn, 0))
    assert y.grad_fn.next_functions == ((get_gradient_edge(x).node, 0), (None, 0))
    assert y.grad_fn._sequence_nr() < z.grad_fn._sequence_nr()
    assert get_gradient_edge(z) == GradientEdge(z.grad_fn, 0)
    z.grad_fn.metadata["note"] = 1
    assert z.grad_fn.metadata == {"note": 1}
    with pytest.raises(TypeError, match="abstract"):
        Node()
    with pytest.raises(AttributeError, match=r"MulBackward0.*nothing"):
        z.grad_fn.nothing  # noqa: B018  # raises


def test_saved_values_by_name() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    assert y.grad_fn._saved_self is x
    assert y.grad_fn._saved_other is w
    assert (x**3).grad_fn._saved_exponent == 3
    z = y * 5
    assert z.grad_fn._saved_self is None
    assert z.grad_fn._saved_other.item() == 5
    e = fnp.exp(y)
    assert_allclose(e.grad_fn._saved_result.detach().numpy(), np.exp([3, 8]))
    assert e.grad_fn._saved_result.grad_fn is e.grad_fn
    assert {"_saved_self", "_saved_other", "_raw_saved_self"} <= set(dir(y.grad_fn))
    assert "_saved_self" not in dir(e.grad_fn)
    (g,) = grad(e.grad_fn._saved_result.sum(), x, retain_graph=True)
    assert_allclose(g.numpy(), [3 * np.exp(3), 4 * np.exp(8)])


def test_saved_values_of_a_product_of_matrices() -> None:
    a, b = leaf([[1.0, 2.0]]), leaf([[3.0], [4.0]])
    c = a @ b
    assert c.grad_fn._saved_self is a
    assert c.grad_fn._saved_mat2 is b


def test_saved_values_that_are_gone_or_changed() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    with no_grad():
        x += 1
    assert y.grad_fn._saved_other is w
    with pytest.raises(RuntimeError, match="at version 1; expected version 0"):
        y.grad_fn._saved_self  # noqa: B018  # raises
    z = fnp.exp(w)
    raw = z.grad_fn._raw_saved_result
    z.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        z.grad_fn._saved_result  # noqa: B018  # raises
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_hooks_on_one_saved_tensor() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    raw = y.grad_fn._raw_saved_self
    raw.register_hooks(lambda t: t.tolist(), lambda v: tensor([10 * n for n in v]))
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        raw.register_hooks(lambda t: t, lambda t: t)
    with pytest.raises(RuntimeError, match="value None is forbidden"):
        (x * 2).grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t)
    with no_grad():
        x += 1  # no longer read
    y.sum().backward()
    assert_array_equal(w.grad.numpy(), [10, 20])
    assert_array_equal(x.grad.numpy(), [3, 4])


def test_the_other_operand_stays_guarded() -> None:
    x = leaf()
    a = x * 1
    y = a[:1] * a[1:]
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), tensor)
    a *= 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


# hooks -------------------------------------------------------------------------------------------


def expected_gradients() -> tuple[Any, Any]:
    x = leaf()
    (g,) = grad(program(x), x, create_graph=True)
    (h,) = grad((g * g).sum(), x)
    return g.detach().numpy(), h.numpy()


@pytest.mark.parametrize(
    "hooks",
    [
        lambda path: saved_tensors_hooks(lambda t: t, lambda t: t),
        lambda path: saved_tensors_hooks(lambda t: t.tolist(), tensor),
        lambda path: save_on_cpu(pin_memory=True),
        lambda path: save_to_disk(path),
        lambda path: save_to_disk(),
    ],
    ids=["same", "lists", "cpu", "disk", "temporary"],
)
def test_derivatives_of_what_was_kept_elsewhere(hooks: Any, tmp_path: Path) -> None:
    first, second = expected_gradients()
    x = leaf()
    with hooks(tmp_path):
        y = program(x)
    for _ in range(2):
        (g,) = grad(y, x, retain_graph=True)
        assert_allclose(g.numpy(), first)
    x = leaf()
    with hooks(tmp_path):
        (g,) = grad(program(x), x, create_graph=True)
        assert_allclose(g.detach().numpy(), first)
        (h,) = grad((g * g).sum(), x)
    assert_allclose(h.numpy(), second)


def test_what_is_packed() -> None:
    packed: list[Any] = []

    def pack(t: Any) -> Any:
        packed.append(t)
        return t

    x, c = leaf(), tensor([5.0, 6.0])
    with saved_tensors_hooks(pack, lambda t: t):
        y = x * 3
        assert not packed
        z = y * c
        e = fnp.exp(z)
        tensor([1.0]) * 2
        _ = z + y
    assert len(packed) == 2
    assert packed[0] is not y
    assert_array_equal(packed[0].numpy(), c.numpy())
    assert_array_equal(packed[1].numpy(), e.detach().numpy())
    with saved_tensors_hooks(pack, lambda t: t):
        x * leaf()
    assert packed[3] is x or packed[2] is x


def test_the_innermost_hooks_count_and_only_in_their_block() -> None:
    log: list[str] = []
    x = leaf()

    def hooks(name: str) -> Any:
        return saved_tensors_hooks(lambda t: log.append(name) or t, lambda t: t)

    @hooks("decorated")
    def f() -> Any:
        return x * x

    with hooks("outer"):
        with hooks("inner"):
            _ = x * x
        _ = fnp.exp(x)
    _ = x * x
    f()
    assert log == ["inner"] * 2 + ["outer"] + ["decorated"] * 2


def test_pack_hooks_that_fail_or_write() -> None:
    x = leaf()

    def use(pack: Any, unpack: Any) -> None:
        with saved_tensors_hooks(pack, unpack):
            y = x * x
        y.sum().backward()

    with pytest.raises(ZeroDivisionError):
        use(lambda t: 1 // 0, lambda t: t)
    with pytest.raises(ZeroDivisionError):
        use(lambda t: t, lambda t: 1 // 0)
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        use(lambda t: t, lambda t: 5)
    with pytest.raises(RuntimeError, match=r"shape \[3\].*shape \[2\]"):
        use(lambda t: t, lambda t: tensor([1.0, 2.0, 3.0]))
    with pytest.raises(RuntimeError, match="pack hook is modifying its input"):
        use(lambda t: t.detach().mul_(2), lambda t: t)
    with pytest.raises(TypeError, match="must be callable"):
        saved_tensors_hooks(1, 2)
    assert x.grad is None
    (x * x).sum().backward()


def test_hooks_can_be_refused() -> None:
    with disable_saved_tensors_hooks("no hooks here"):
        with disable_saved_tensors_hooks("inner"):
            pass
        with pytest.raises(RuntimeError, match="no hooks here"), save_on_cpu():
            pass
    with save_on_cpu(), pytest.raises(RuntimeError, match="inside"):
        disable_saved_tensors_hooks("inside").__enter__()
    with save_on_cpu():
        pass


def test_writes_after_packing_are_not_noticed_and_do_no_harm() -> None:
    x = leaf()
    with save_on_cpu():
        y = x * 1
        z = (y * y).sum()
        s = swish(y)
    y += 100
    (z + s.sum()).backward()
    v = np.array([1.0, 2.0])
    sigmoid = 1 / (1 + np.exp(-v))
    assert_allclose(x.grad.numpy(), 2 * v + sigmoid * (1 + v * (1 - sigmoid)))


@pytest.mark.parametrize("shape", [(), (0,), (3, 2)])
def test_files_of_saved_tensors_go_with_the_graph(tmp_path: Path, shape: tuple[int, ...]) -> None:
    gc.collect()
    gc.disable()
    try:
        value = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
        x = leaf(value)
        with save_to_disk(tmp_path):
            y = x * x
            z = fnp.exp(x)
        assert len(os.listdir(tmp_path)) == 3  # noqa: PTH208  # only counted
        y.sum().backward()
        assert_array_equal(x.grad.numpy(), 2 * value)
        assert len(os.listdir(tmp_path)) == 1  # noqa: PTH208  # only counted
        del z
        assert not os.listdir(tmp_path)  # noqa: PTH208  # only counted
    finally:
        gc.enable()


FORKED = """
import os, sys
import numpy as np
from functrans.autograd import tensor
from functrans.autograd.graph import save_to_disk

x = tensor(np.arange(3.0), requires_grad=True)
with save_to_disk(sys.argv[1]):
    kept, dropped = x * x, x * x
files = os.listdir(sys.argv[1])
child = os.fork()
if not child:
    del dropped
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
assert os.listdir(sys.argv[1]) == files != []
(kept + dropped).sum().backward()
assert x.grad.tolist() == [0.0, 4.0, 8.0]
assert not os.listdir(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_process_that_ends_leaves_the_files_of_its_parent(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", FORKED, str(tmp_path)], check=True, timeout=60)


def test_files_need_a_directory(tmp_path: Path) -> None:
    with pytest.raises(NotADirectoryError, match="nowhere"):
        save_to_disk(tmp_path / "nowhere")


# writes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1) if hasattr(y, "add_") else y.__iadd__(1),
        lambda y: y.detach().__imul__(2),
        lambda y: y[:1].__imul__(2),
        lambda y: y.reshape(2, 1).__imul__(2),
        increment_version,
        lambda y: increment_version([y]),
    ],
    ids=["add_", "detach", "slice", "view", "version", "versions"],
)
@pytest.mark.parametrize(
    "use",
    [lambda y: y * y, lambda y: composite("Own", lambda v: v * fnp.exp(v), y), fnp.exp],
    ids=["mul", "composite", "exp"],
)
def test_a_write_to_what_a_derivative_needs_is_noticed(write: Any, use: Any) -> None:
    x = leaf()
    y = x * 1
    z = use(y)
    write(z if use is fnp.exp else y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    assert x.grad is None


def test_a_write_to_the_result_of_a_composite_that_keeps_it_is_noticed() -> None:
    x = leaf()
    y = composite("Own", lambda v: fnp.exp(v * 2), x)
    y *= 2
    with pytest.raises(RuntimeError, match=r"modified by an inplace.*OwnBackward0"):
        y.sum().backward()


def test_a_write_to_a_view_that_a_composite_keeps_is_noticed() -> None:
    x = leaf()
    y = x * 1
    z = composite("Own", lambda v: fnp.reshape(v, (2, 1)) * fnp.reshape(v, (1, 2)), y)
    y *= 2
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        z.sum().backward()


def test_a_second_derivative_of_a_composite_needs_its_operands() -> None:
    x = leaf()
    y = x * 1
    z = composite("Own", lambda v: fnp.exp(v * 2), y)
    y *= 2
    (g,) = grad(z.sum(), x, retain_graph=True)
    assert_allclose(g.numpy(), 2 * np.exp([2, 4]))
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        grad(z.sum(), x, create_graph=True)


def test_writes_through_data_are_not_noticed() -> None:
    x = leaf()
    y = x * 1
    z = (y * y).sum()
    y.data[:1] = 50.0
    assert y._version == 0
    z.backward()
    assert_array_equal(x.grad.numpy(), [100, 4])


@pytest.mark.parametrize(
    "write",
    [lambda y: y.__iadd__(1), lambda y: y[:1].__imul__(9), lambda y: y.detach().__imul__(9)],
    ids=["whole", "part", "detached"],
)
def test_saved_tensors_that_may_be_written_to(write: Any) -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors():
        y = x * 1
        z = (y * y * y).sum() + swish(y).sum() * 0
        write(y)
        w = (y * y).sum()
        write(y)
        z.backward(retain_graph=True)
        assert_array_equal(x.grad.numpy(), [3, 12])
        w.backward()


def test_mutation_ends_with_its_block() -> None:
    x = leaf()
    with allow_mutation_on_saved_tensors() as context:
        z = (x * x).sum()
        with pytest.raises(RuntimeError, match="cannot be nested"):
            allow_mutation_on_saved_tensors().__enter__()
        y = (x * x).sum()
        context.clear()
        with pytest.raises(AssertionError, match="outside of the"):
            y.backward()
    with pytest.raises(AssertionError, match="outside of the"):
        z.backward()
    (x * x).sum().backward()


def test_versions_are_counted_per_storage() -> None:
    x = tensor([1.0, 2.0])
    view, detached, data = x[:1], x.detach(), x.data
    view += 1
    detached += 1
    increment_version((x, view))
    assert x._version == view._version == detached._version == 4
    assert data._version == 0
    assert_array_equal(data.numpy(), [3, 3])
    with pytest.raises(RuntimeError, match="expect a Iterable"):
        increment_version(5)
    with pytest.raises(RuntimeError, match="each element"):
        increment_version([x, 5])
    assert x._version == 4
