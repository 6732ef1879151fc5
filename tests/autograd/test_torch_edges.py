"""Edges of tensors, views and graphs where programs written for PyTorch look for its behaviour."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans.compat.torch as torch
from functrans.autograd import api

X = torch.tensor([1.0, 2.0, 3.0, 4.0])
graph = torch.autograd.graph


def leaf() -> Any:
    return X.clone().requires_grad_()


# views --------------------------------------------------------------------------------------------

SEVERAL: dict[str, Callable[[Any], Any]] = {
    "unbind": lambda x: x.unbind(0)[0],
    "split": lambda x: x.split(2)[0],
    "chunk": lambda x: x.chunk(2)[1],
    "iteration": lambda x: next(iter(x)),
}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("is_base_recorded", [True, False])
def test_one_of_several_views_takes_no_recorded_write(name: str, is_base_recorded: bool) -> None:
    base = leaf().clone() if is_base_recorded else X.clone()
    part, before = SEVERAL[name](base), base.tolist()
    with pytest.raises(RuntimeError, match="the output of a function that returns multiple views"):
        part.mul_(torch.tensor(2.0, requires_grad=True))
    assert base.tolist() == before
    if not is_base_recorded:
        part.mul_(2.0)
        assert base.sum() > X.sum()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_views_made_where_nothing_was_recorded_take_no_recorded_write(mode: Any) -> None:
    base = X.clone()
    outer = base[:3]
    with mode():
        inner = outer[:2]
    with pytest.raises(RuntimeError, match="A view was created in"):
        inner.mul_(torch.tensor(2.0, requires_grad=True))
    assert base.tolist() == X.tolist()


def test_views_of_leaves_that_are_views_take_no_recorded_write() -> None:
    base = X.clone()
    x = base[:3].requires_grad_()
    for part in (x, x[:2], x[0], x.view(3, 1)):
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            part.mul_(3.0)
    assert x.is_leaf
    assert base.tolist() == X.tolist()
    with torch.no_grad():
        x[:2].mul_(3.0)
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0, 6.0]


def test_views_without_a_place_in_the_graph_print_as_such() -> None:
    base = leaf().clone()
    with torch.no_grad():
        part = base[:2]
    base.mul_(2.0)
    assert repr(part) == "tensor([2., 4.], grad_fn=<Invalid>)"
    with pytest.raises(RuntimeError, match="A view was created in no_grad mode"):
        part.sin()


def test_as_strided_in_place() -> None:
    x = leaf()
    y = x.clone()
    assert y.as_strided_((2, 2), (1, 2), 0) is y
    assert y.stride() == (1, 2)
    (y * y).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert X.as_strided((2,), (1,), 1).storage_offset() == 1
    made = X.new_empty_strided((2, 3), (1, 2))
    assert (made.shape, made.stride(), made.dtype) == ((2, 3), (1, 2), X.dtype)


@pytest.mark.parametrize("recorded", [True, False])
def test_what_was_overwritten_has_gradients_of_zeros(recorded: bool) -> None:
    x, z = leaf(), X.clone().requires_grad_(recorded)
    y = x * 2
    y.copy_(z)
    assert y.grad_fn.name() == "torch::autograd::CopyBackwards"
    (y * y).sum().backward()
    assert x.grad.tolist() == [0.0] * 4
    assert not recorded or z.grad.tolist() == [2.0, 4.0, 6.0, 8.0]
    again = leaf()
    y = again * 2
    y.copy_(z)
    (first,) = torch.autograd.grad((y**3).sum(), y, create_graph=True)
    assert torch.autograd.grad(first.sum(), again)[0].tolist() == [0.0] * 4


# saved tensors ------------------------------------------------------------------------------------


def test_hooks_that_unpacking_enters_or_leaves_are_its_own() -> None:
    packed: list[Any] = []
    outer = graph.saved_tensors_hooks(lambda x: (packed.append(x), x)[1], lambda x: x)

    def entering(x: Any) -> Any:
        outer.__enter__()
        return x

    def leaving(x: Any) -> Any:
        outer.__exit__()
        return x

    x = leaf()
    with graph.saved_tensors_hooks(lambda t: t, entering):
        y = (x * x).sum()
    y.backward()
    x * x
    assert not packed
    with graph.saved_tensors_hooks(lambda t: t, leaving):
        y = (x * x).sum()
    with outer:
        y.backward()
        x * x
    assert packed


def test_a_saved_none_has_a_place() -> None:
    class Kept(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: (ctx.save_for_backward(x, None), x * 2)[1])
        backward = staticmethod(lambda ctx, g: 2 * g)

    places = Kept.apply(leaf()).grad_fn._raw_saved_tensors
    assert [type(place).__name__ for place in places] == ["SavedTensor"] * 2
    with pytest.raises(RuntimeError, match="saved tensor with value None is forbidden"):
        places[1].register_hooks(abs, abs)


def test_versions_of_inference_tensors_are_not_counted() -> None:
    x = X.clone()
    with torch.inference_mode():
        made = torch.zeros(2)
        graph.increment_version([x, made])
    graph.increment_version(made)
    assert x._version == 1


# nodes and passes ---------------------------------------------------------------------------------


def test_nodes_are_functions_of_gradients() -> None:
    seen: list[Any] = []
    x = leaf()
    y = x * x
    y.grad_fn.register_hook(lambda *given: seen.append(given))
    assert [g.tolist() for g in y.grad_fn(X)] == [(X * X).tolist()] * 2
    assert y.grad_fn(None) == (None, None)
    assert not seen
    parts = x.split(2)
    assert parts[0].grad_fn(X[:2], X[2:]).tolist() == X.tolist()
    y.grad_fn.next_functions[0][0](X)
    assert x.grad.tolist() == X.tolist()
    for given, words in {
        (): "expected 1 arguments, got 0 instead",
        (X, X): "expected 1 arguments, got 2 instead",
        (2.0,): "argument 0 is not a Variable",
    }.items():
        with pytest.raises(TypeError, match=words):
            y.grad_fn(*given)


def test_callbacks_run_when_the_pass_is_done() -> None:
    queue = torch.autograd.Variable._execution_engine.queue_callback
    seen: list[Any] = []
    x = leaf()

    def hook(_: Any) -> None:
        queue(lambda: (seen.append(x.grad.tolist()), queue(lambda: seen.append("last"))))
        z = leaf()
        with torch.enable_grad():
            w = z * 2
            w.register_hook(lambda _: queue(lambda: seen.append("inner")))
            w.sum().backward()
        seen.append("hook")

    y = x * 3
    y.register_hook(hook)
    y.sum().backward()
    assert seen == ["inner", "hook", [3.0] * 4, "last"]
    with pytest.raises(RuntimeError, match="only be installed during backward pass"):
        queue(print)


def test_backward_with_create_graph_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api, "_told", set())

    def told() -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                (leaf() ** 2).sum().backward(create_graph=True)
            torch.autograd.grad((x := leaf()).sum(), x, create_graph=True)
        return len(caught)

    assert told() == 1
    assert told() == 0
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled()
        assert told() == 2
    finally:
        torch.set_warn_always(False)


def test_zeros_for_edges_are_refused() -> None:
    edge = graph.get_gradient_edge(leaf())
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when"):
        torch.autograd.grad(leaf().sum(), edge, materialize_grads=True)


def test_numbers_alone_make_a_tensor() -> None:
    assert torch.add(2, 3).dtype == torch.int64
    assert torch.mul(2.0, 3).dtype == torch.float32
    assert torch.div(2, 4).item() == 0.5
    assert torch.sub(2, 3).item() == -1


def test_leftover_names() -> None:
    assert X.name is None
    with pytest.warns(UserWarning, match="volatile was removed"):
        assert X.volatile is False
    assert not torch.autograd._profiler_enabled()
    with torch.autograd.profiler.profile():
        assert torch.autograd._profiler_enabled()
    assert torch.autograd.profiler_util.FunctionEvent.__name__ == "FunctionEvent"


def test_all_and_any_of_no_axes_reduce_nothing() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    for result in (x.all(()), x.any(dim=[]), torch.all(x, (), keepdim=True)):
        assert result.tolist() == [[False, True], [True, False]]
    assert x.all().item() is False


def test_tensors_of_one_element_are_numbers_in_nested_data() -> None:
    assert torch.tensor([torch.ones(1), torch.ones(1)]).shape == (2,)
    assert torch.tensor([[torch.ones(1, 1)], [2]]).shape == (2, 1)
    with pytest.raises(ValueError, match="only one element tensors can be converted"):
        torch.tensor([torch.ones(2), torch.ones(2)])


def test_reversed_gives_a_tensor() -> None:
    x = torch.arange(4).reshape(2, 2)
    assert reversed(x).tolist() == [[2, 3], [0, 1]]
    assert reversed(torch.tensor(1)).item() == 1


def test_bytes_in_an_array_are_a_mask() -> None:
    assert torch.arange(4)[np.array([1, 0, 1, 0], np.uint8)].tolist() == [0, 2]
