"""When hooks run, what they see, and what becomes of what they return."""

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from functrans.autograd import backward, enable_grad, grad, no_grad, tensor
from functrans.autograd.forward_ad import dual_level, make_dual, unpack_dual
from functrans.autograd.graph import get_gradient_edge, register_multi_grad_hook


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(values, requires_grad=True)


def test_hooks_of_a_node_run_around_it_and_retain_grad_is_last_of_those_on_the_tensor() -> None:
    log: list[str] = []
    x = leaf()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: log.append("tensor") or g * 10)
    y.grad_fn.register_prehook(lambda g: log.append("pre") or (g[0] * 3,))
    y.grad_fn.register_hook(lambda gi, go: log.append(f"post {gi[0].tolist()} {go[0].tolist()}"))
    node = get_gradient_edge(x).node
    node.register_hook(lambda gi, go: log.append(f"leaf post {gi} {go[0].tolist()}"))
    x.register_post_accumulate_grad_hook(lambda p: log.append(f"accumulated {p.grad.tolist()}"))
    node.register_prehook(lambda g: log.append("leaf pre"))
    x.register_hook(lambda g: log.append("leaf tensor"))
    y.sum().backward()
    assert_array_equal(y.grad.numpy(), [10, 10])
    assert log == [
        "tensor",
        "pre",
        "post [60.0, 60.0] [30.0, 30.0]",
        "leaf tensor",
        "leaf pre",
        "accumulated [60.0, 60.0]",
        "leaf post () [60.0, 60.0]",
    ]


def test_a_leaf_runs_as_soon_as_its_last_contribution_is_there() -> None:
    log: list[str] = []
    x, w = leaf(), leaf()
    for name, t in (("x", x), ("w", w)):
        t.register_post_accumulate_grad_hook(lambda p, name=name: log.append(name))
    a = x * 2
    a.register_hook(lambda g: log.append("a"))
    b = a * w
    b.register_hook(lambda g: log.append("b"))
    b.sum().backward()
    assert log == ["b", "w", "a", "x"]


@pytest.mark.parametrize("with_leaf", [False, True])
def test_post_accumulate_hooks_may_free_the_gradient(with_leaf: bool) -> None:
    x = leaf()

    def step(p: Any) -> None:
        with no_grad():
            p -= p.grad
        p.grad = None

    x.register_post_accumulate_grad_hook(step)
    y = x if with_leaf else x * 1
    backward([y.sum(), (x * 1).sum()])
    assert x.grad is None
    assert_array_equal(x.detach().numpy(), [-1, 0])


def test_handles_remove_once_and_refer_to_nothing_after_pickling() -> None:
    x = leaf()
    log: list[int] = []
    first = x.register_hook(lambda g: log.append(1))
    with x.register_hook(lambda g: log.append(2)):
        x.sum().backward()
    copy = pickle.loads(pickle.dumps(first))
    copy.remove()
    x.sum().backward()
    first.remove()
    first.remove()
    x.sum().backward()
    assert log == [1, 2, 1]


@pytest.mark.parametrize("kind", ["tensor", "pre", "post"])
def test_hooks_cannot_be_anything_but_callables(kind: str) -> None:
    y = leaf() * 2
    add = {
        "tensor": y.register_hook,
        "pre": y.grad_fn.register_prehook,
        "post": y.grad_fn.register_hook,
    }[kind]
    with pytest.raises(TypeError, match="must be callable, got int"):
        add(5)


def test_replacements_count_from_there_on() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = x * w
    y.register_hook(lambda g: g * 2)
    y.grad_fn.register_prehook(lambda g: (g[0] + 1,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, None))
    w.register_hook(lambda g: None)
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [90, 120])
    assert w.grad is None


@pytest.mark.parametrize(
    ("result", "error", "message"),
    [
        (5, TypeError, "expected Variable, but hook returned 'int'"),
        (tensor([1.0]), RuntimeError, "has changed the size of value"),
        (tensor([1, 1]), RuntimeError, "was torch.DoubleTensor got torch.LongTensor"),
    ],
    ids=["no tensor", "shape", "dtype"],
)
def test_wrong_results_of_hooks_are_refused(result: Any, error: Any, message: str) -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: result)
    with pytest.raises(error, match=message):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("count", [0, 1, 3])
def test_hooks_of_nodes_return_as_many_gradients_as_they_get(count: int) -> None:
    y = leaf() * leaf()
    y.grad_fn.register_hook(lambda gi, go: (gi[0],) * count)
    with pytest.raises(RuntimeError, match=rf"got {count}, but expected 2"):
        y.sum().backward()


def test_a_gradient_that_is_none_cannot_be_replaced() -> None:
    a, b = leaf().unbind()
    b.register_hook(lambda g: tensor(1.0))
    with pytest.raises(RuntimeError, match="can't replace a None gradient"):
        a.backward()


def test_hooks_on_one_of_several_results() -> None:
    x = leaf((1.0, 2.0, 3.0))
    a, b, c = x.unbind()
    seen: list[Any] = []
    b.register_hook(seen.append)
    a.register_hook(lambda g: g * 100)
    c.retain_grad()
    a.grad_fn.register_prehook(lambda g: seen.append([t is None for t in g]))
    (a * 2 + c * 5).backward()
    assert seen == [None, [False, True, False]]
    assert_array_equal(x.grad.numpy(), [200, 0, 5])
    assert c.grad.item() == 5


def test_hooks_before_a_write_belong_to_the_old_gradient() -> None:
    x = leaf()
    y = x * 2
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(("old", g.tolist())))
    y.retain_grad()
    y *= 3
    y.register_hook(lambda g: seen.append(("new", g.tolist())))
    y[:1] *= 5
    y.sum().backward()
    assert seen == [("new", [5.0, 1.0]), ("old", [15.0, 3.0])]
    assert_array_equal(y.grad.numpy(), [1, 1])
    assert y.retains_grad


def test_hooks_and_inputs() -> None:
    log: list[str] = []
    x, w = leaf(), leaf()
    y = x * w
    for name, t in (("x", x), ("w", w), ("y", y)):
        t.register_hook(lambda g, name=name: log.append(name) or g * 2)
    for name, t in (("x", x), ("w", w)):
        t.register_post_accumulate_grad_hook(lambda p, name=name: log.append(f"{name}.grad"))
    z = (y * 3).sum()
    (g,) = grad(z, y, retain_graph=True)
    assert_array_equal(g.numpy(), [6, 6])
    (g,) = grad(z, w, retain_graph=True)
    assert_array_equal(g.numpy(), [12, 24])
    z.backward(inputs=[x])
    assert_array_equal(x.grad.numpy(), [12, 24])
    assert w.grad is None
    assert log == ["y", "y", "w", "y", "x", "x.grad"]


def test_hooks_of_a_gradient_of_a_gradient_are_recorded() -> None:
    x = leaf((2.0, 3.0))
    y = x * x
    y.register_hook(lambda g: g * x)
    (g,) = grad(y.sum(), x, create_graph=True)
    assert_array_equal(g.detach().numpy(), [8, 18])
    (h,) = grad(g.sum(), x)
    assert_array_equal(h.numpy(), [8, 12])


@pytest.mark.parametrize("order", ["ab", "ba", "ay", "ya"])
def test_leaves_that_are_results_and_not_read_come_first(order: str) -> None:
    log: list[str] = []
    t = {name: leaf() for name in "abc"}
    t["y"] = t["b"] * t["c"]
    for name, x in t.items():
        x.register_hook(lambda g, name=name: log.append(name))
    backward([t[name] for name in order], [tensor([1.0, 1.0])] * 2)
    assert log == [*(name for name in order if name != "y"), *("ybc" if "y" in order else "")]


def test_the_only_result_shows_its_hooks_a_gradient_that_goes_nowhere() -> None:
    x, unused = leaf(), leaf()
    y = x * 2
    seen: list[Any] = []
    y.register_hook(seen.append)
    y.grad_fn.register_prehook(lambda g: seen.append("node"))
    x.register_hook(seen.append)
    x.register_post_accumulate_grad_hook(lambda p: seen.append("leaf"))
    seed = tensor([1.0, 3.0])
    assert grad(y, unused, seed, retain_graph=True, allow_unused=True) == (None,)
    x.backward(seed, inputs=[unused])
    assert [g.tolist() for g in seen] == [[1, 3]] * 2
    grad([y, x], unused, [seed, seed], allow_unused=True)
    assert len(seen) == 2


def test_what_grad_asks_for_on_the_way_to_other_inputs_is_as_it_came() -> None:
    x = leaf()
    y = x * 2
    y.register_hook(lambda g: g * 10)
    along = grad((y * y).sum(), [x, y], retain_graph=True)
    assert [g.tolist() for g in along] == [[80, 160], [4, 8]]
    (last,) = grad((y * y).sum(), y)
    assert last.tolist() == [40, 80]


def test_hooks_of_dual_tensors_see_gradients_of_their_primals() -> None:
    x, w = leaf(), leaf()
    seen: list[Any] = []
    with dual_level():
        dual = make_dual(x, w)
        y = dual * dual
        y.retain_grad()
        handles = [dual.register_hook(lambda g: g * 3), y.register_hook(seen.append)]
        primal, tangent = unpack_dual(y * 5)
        (primal + tangent).sum().backward(retain_graph=True)
        handles[0].remove()
    assert [g.tolist() for g in seen] == [[5, 5]]
    assert y.grad.tolist() == [5, 5]
    assert x.grad.tolist() == [3 * (10 + 10), 3 * (20 + 20)]
    primal.sum().backward()
    assert x.grad.tolist() == [70, 140]


VIEW_WRITES: dict[str, Callable[[Any], Any]] = {
    "sin_": lambda v: v.sin_(),
    "mul_": lambda v: v.mul_(3),
    "masked_fill_": lambda v: v.masked_fill_(v > 1, 0.5),
    "clamp_": lambda v: v.clamp_(min=1.5),
    "of a part": lambda v: v[:1].mul_(3),
    "index_add_": lambda v: v.index_add_(0, tensor([1]), tensor([2.0])),
    "by a mask": lambda v: v.__setitem__(v > 3, 0.5),
}


@pytest.mark.parametrize("name", VIEW_WRITES)
@pytest.mark.parametrize(
    "take", [lambda x: x[:2], lambda x: x.view(3), lambda x: x[:, None][1:, 0]]
)
def test_hooks_of_a_view_do_not_see_what_comes_after_a_write_to_it(name: str, take: Any) -> None:
    found = []
    for is_hooked in (False, True):
        x = leaf((1.0, 2.0, 3.0))
        base = x * 2
        view = take(base)
        before = view * 5
        seen: list[Any] = []
        base.register_hook(seen.append)
        if is_hooked:
            view.register_hook(lambda g, seen=seen: seen.append("view") or g * 1)
        VIEW_WRITES[name](view)
        (view * view).sum().backward(retain_graph=True)
        assert "view" not in seen
        before.sum().backward()
        assert ("view" in seen) == is_hooked
        found.append(x.grad.numpy())
    assert_allclose(found[0], found[1])


def test_hooks_of_nodes_see_no_gradients_that_were_not_asked_for() -> None:
    x, w = leaf(), leaf()
    y = x * w
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda gi, go: seen.append([g is not None for g in gi]))
    grad(y.sum(), x, retain_graph=True)
    y.sum().backward(inputs=[w], retain_graph=True)
    y.sum().backward()
    assert seen == [[True, False], [False, True], [True, True]]


def test_a_gradient_that_is_kept_of_a_batch_is_not_added_to() -> None:
    x = leaf()
    y = x * x
    y.retain_grad()
    grad(y, x, tensor(np.eye(2)), is_grads_batched=True, retain_graph=True)
    y.sum().backward()
    assert y.grad.tolist() == [1, 1]


def test_a_batch_of_gradients_is_shown_to_hooks_once_and_as_one_example() -> None:
    x = leaf()
    y = x * x
    shapes: list[Any] = []
    y.register_hook(lambda g: shapes.append(g.shape) or g * g.sum())
    (jacobian,) = grad(y, x, tensor(np.diag([1.0, 3.0])), is_grads_batched=True)
    assert_array_equal(jacobian.numpy(), [[2, 0], [0, 36]])
    assert shapes == [(2,)]


# several tensors ---------------------------------------------------------------------------------


def test_a_hook_on_several_tensors_waits_for_those_that_take_part() -> None:
    t = [leaf() for _ in range(4)]
    seen: list[Any] = []
    handle = register_multi_grad_hook(t, seen.append)
    (t[0] * t[1] + t[2]).sum().backward()
    (t[3] * 2).sum().backward()
    handle.remove()
    t[0].sum().backward()
    assert [[g is not None for g in gradients] for gradients in seen] == [
        [True, True, True, False],
        [False, False, False, True],
    ]


def test_a_hook_on_several_tensors_with_grad_and_inputs() -> None:
    x, w = leaf(), leaf()
    y = x * w
    seen: list[Any] = []
    register_multi_grad_hook([x, w, y], seen.append)
    grad(y.sum(), x, retain_graph=True)
    y.sum().backward(inputs=[w])
    assert [[g is not None for g in gradients] for gradients in seen] == [
        [True, False, True],
        [False, True, True],
    ]


def test_a_pass_that_fails_leaves_nothing_for_the_next_one() -> None:
    x, w = leaf(), leaf()
    y = x * w
    seen: list[Any] = []
    register_multi_grad_hook([x, w, y], seen.append)
    with y.register_hook(lambda g: 1 // 0), pytest.raises(ZeroDivisionError):
        y.sum().backward(retain_graph=True)
    assert not seen
    y.sum().backward()
    assert len(seen) == 1
    assert all(g is not None for g in seen[0])


def test_hooks_on_several_tensors_in_passes_inside_each_other() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    seen: list[Any] = []
    register_multi_grad_hook([x, w], lambda gs: seen.append([g.tolist() for g in gs]))
    y = x * w
    is_outer = [True]

    def hook(g: Any) -> None:
        if is_outer:
            is_outer.clear()
            with enable_grad():
                (x * w * 10).sum().backward()

    y.register_hook(hook)
    y.sum().backward()
    assert seen == [[[30.0, 40.0], [10.0, 20.0]], [[3.0, 4.0], [1.0, 2.0]]]


def test_hooks_on_several_tensors_in_several_threads() -> None:
    x, w = leaf(), leaf()
    seen: list[Any] = []
    register_multi_grad_hook([x, w], lambda gs: seen.append([g.tolist() for g in gs]))
    barrier = threading.Barrier(4)

    def work(factor: float) -> None:
        barrier.wait()
        for _ in range(20):
            (x * factor + w * factor).sum().backward()

    run_in_threads([lambda k=k: work(float(k)) for k in range(1, 5)])
    assert len(seen) == 80
    assert all(a == b for a, b in seen)


@pytest.mark.parametrize("mode", ["all", "any"])
def test_the_first_or_all_gradients(mode: str) -> None:
    x, w = leaf(), leaf()
    seen: list[Any] = []
    register_multi_grad_hook([x, w], seen.append, mode=mode)
    (x * w).sum().backward()
    (x * w).sum().backward()
    assert len(seen) == 2
    assert all(isinstance(s, list) == (mode == "all") for s in seen)


# failures ----------------------------------------------------------------------------------------


def test_after_a_hook_failed_the_graph_can_be_used_again() -> None:
    x, w = leaf(), leaf((3.0, 4.0))
    y = w * 2
    z = (y * x).sum()
    handle = y.register_hook(lambda g: 1 // 0)
    with pytest.raises(ZeroDivisionError) as caught:
        z.backward(retain_graph=True)
    assert any("in the gradient of MulBackward0" in note for note in caught.value.__notes__)
    assert w.grad is None
    x.grad = None
    handle.remove()
    z.backward()
    assert_array_equal(x.grad.numpy(), [6, 8])
    assert_array_equal(w.grad.numpy(), [2, 4])


def test_backward_inside_a_hook() -> None:
    x, w = leaf(), leaf((3.0, 4.0))

    def hook(g: Any) -> Any:
        with enable_grad():
            (w * w).sum().backward()
            return g + grad((x * x).sum(), x)[0]

    y = x * w
    y.register_hook(hook)
    y.sum().backward()
    assert_array_equal(x.grad.numpy(), [9, 20])
    assert_array_equal(w.grad.numpy(), [6 + 3, 8 + 10])


def test_a_deep_pass_inside_a_pass() -> None:
    depth = 50
    x = leaf((1.0,))
    seen: list[int] = []

    def descend(n: int) -> Callable[[Any], None]:
        def hook(g: Any) -> None:
            seen.append(n)
            if n < depth:
                with enable_grad():
                    y = x * 2
                    y.register_hook(descend(n + 1))
                    y.sum().backward()

        return hook

    y = x * 2
    y.register_hook(descend(0))
    y.sum().backward()
    assert seen == list(range(depth + 1))
    assert x.grad.item() == 2 * (depth + 1)


def run_in_threads(actions: list[Callable[[], None]]) -> None:
    errors: list[BaseException] = []

    def guarded(action: Callable[[], None]) -> None:
        try:
            action()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_no_gradient_is_lost_between_threads() -> None:
    x = leaf(np.ones(50))
    shared = x * 3
    kept = (shared * shared).sum()
    shared.retain_grad()
    n, repeats = 6, 30

    def work() -> None:
        for _ in range(repeats):
            kept.backward(retain_graph=True)
            (x * 2).sum().backward()

    run_in_threads([work] * n)
    assert_allclose(x.grad.numpy(), np.full(50, n * repeats * 20.0))
    assert_allclose(shared.grad.numpy(), np.full(50, n * repeats * 6.0))


def test_hooks_die_with_their_tensor() -> None:
    gc.collect()
    gc.disable()
    try:

        class Counted:
            pass

        token = Counted()
        ref = weakref.ref(token)
        x = leaf()
        y = x * 2
        y.register_hook(lambda g, token=token: None)
        handle = register_multi_grad_hook([x, y], lambda g, token=token: None)
        y.grad_fn.register_prehook(lambda g, token=token: None)
        y.sum().backward()
        del x, y, handle, token
        assert ref() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("read", ["base", "view"])
def test_a_view_that_is_written_to_retains_the_gradient_of_what_it_is_then(read: str) -> None:
    x = leaf((0.3, 0.6))
    base = x * 1.0
    view = base.view(2)
    view.retain_grad()
    view.mul_(x.detach())
    {"base": base, "view": view}[read].sum().backward()
    assert_allclose(x.grad, [0.3, 0.6])
    if read == "base":
        assert view.grad is None  # it was not asked for since
    else:
        assert_allclose(view.grad, [1.0, 1.0])
