"""Checkpoints of functions of tensors: what is run again, what is stored, what is refused."""

import gc
import weakref
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from functrans.autograd import func, grad, no_grad, random, tensor
from functrans.autograd.checkpoint import (
    CheckpointError,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from functrans.autograd.function import Function
from functrans.autograd.graph import saved_tensors_hooks
from functrans.compat import torch

X = np.array([0.5, 1.0, 2.0])


def leaf(values: Any = X) -> Any:
    return tensor(values, requires_grad=True)


class Counted:
    """``exp(sin(x) * x)``, and how often it was run."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, x: Any) -> Any:
        self.runs += 1
        return (x.sin() * x).exp()


FIRST = np.exp(np.sin(X) * X) * (np.cos(X) * X + np.sin(X))

both = pytest.mark.parametrize("use_reentrant", [True, False])


@both
def test_the_function_is_run_again_in_each_backward_pass(use_reentrant: bool) -> None:
    f, x = Counted(), leaf()
    y = checkpoint(f, x, use_reentrant=use_reentrant).sum()
    assert f.runs == 1
    for n in (1, 2):
        y.backward(retain_graph=True)
        assert_allclose(x.grad.numpy(), n * FIRST)
        assert f.runs == 1 + n


def test_intermediate_tensors_are_not_stored() -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        inner = x.exp()
        kept.append(weakref.ref(inner))
        return inner.sin()

    gc.disable()
    try:
        x = leaf()
        y = checkpoint(f, x, use_reentrant=False)
        assert kept[0]() is None
        y.sum().backward()
        assert kept[1]() is None
    finally:
        gc.enable()
    assert_allclose(x.grad.numpy(), np.cos(np.exp(X)) * np.exp(X))


def test_derivatives_of_derivatives_and_of_chosen_inputs() -> None:
    x = leaf()
    (first,) = grad(checkpoint(Counted(), x, use_reentrant=False).sum(), x, create_graph=True)
    assert_allclose(first.detach().numpy(), FIRST)
    (second,) = grad(first.sum(), x)
    inner = np.cos(X) * X + np.sin(X)
    expected = np.exp(np.sin(X) * X) * (inner**2 + 2 * np.cos(X) - np.sin(X) * X)
    assert_allclose(second.numpy(), expected)


def test_checkpoints_in_checkpoints() -> None:
    f, x = Counted(), leaf()

    def outer(x: Any) -> Any:
        return checkpoint(f, x * 1.0, use_reentrant=False) * 2

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    assert_allclose(x.grad.numpy(), 2 * FIRST)


def test_functions_with_users_derivatives() -> None:
    class Square(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return 2 * grad * x

    x = leaf()
    checkpoint(lambda x: Square.apply(x.exp()), x, use_reentrant=False).sum().backward()
    assert_allclose(x.grad.numpy(), 2 * np.exp(2 * X))


def test_keywords_tensors_of_closures_and_constants() -> None:
    x, w = leaf(), leaf(X + 1)

    def f(x: Any, *, factor: float) -> Any:
        return (x * w).sin() * factor

    checkpoint(f, x, factor=3.0, use_reentrant=False).sum().backward()
    assert_allclose(x.grad.numpy(), 3 * np.cos(X * (X + 1)) * (X + 1))
    assert_allclose(w.grad.numpy(), 3 * np.cos(X * (X + 1)) * X)


@both
@pytest.mark.parametrize("preserve", [True, False])
def test_random_numbers(use_reentrant: bool, preserve: bool) -> None:
    drawn: list[Any] = []

    def f(x: Any) -> Any:
        drawn.append((np.random.rand(), random.default_generator.words(1).tolist()))  # noqa: NPY002  # the stream in question
        return x * x

    random.manual_seed(0)
    y = checkpoint(f, leaf(), use_reentrant=use_reentrant, preserve_rng_state=preserve)
    state = np.random.get_state()[2]  # noqa: NPY002  # the stream in question
    y.sum().backward()
    assert (drawn[0] == drawn[1]) is preserve
    assert (np.random.get_state()[2] == state) is preserve  # noqa: NPY002  # the stream in question


def test_contexts_of_both_runs() -> None:
    entered: list[str] = []

    @contextmanager
    def note(name: str) -> Any:
        entered.append(name)
        yield

    x = leaf()
    y = checkpoint(
        Counted(), x, use_reentrant=False, context_fn=lambda: (note("first"), note("second"))
    )
    y.sum().backward()
    assert entered == ["first", "second"]


def test_hooks_for_saved_tensors_see_the_arguments() -> None:
    packed: list[Any] = []

    def pack(x: Any) -> Any:
        packed.append(x.detach().numpy().copy())
        return x

    x = leaf()
    with saved_tensors_hooks(pack, lambda x: x):
        y = checkpoint(Counted(), x, use_reentrant=False)
    assert len(packed) == 1
    assert_array_equal(packed[0], X)
    y.sum().backward()
    assert_allclose(x.grad.numpy(), FIRST)


def test_under_functional_transforms() -> None:
    f = Counted()
    found = func.grad(lambda x: checkpoint(f, x, use_reentrant=False).sum())(tensor(X))
    assert_allclose(found.numpy(), FIRST)


def test_without_recording_it_is_a_call() -> None:
    f = Counted()
    with no_grad():
        y = checkpoint(f, leaf(), use_reentrant=False)
    assert (f.runs, y.grad_fn) == (1, None)


@pytest.mark.parametrize("segments", [1, 2, 3])
@both
def test_sequences(segments: int, use_reentrant: bool) -> None:
    functions = [lambda x: x.sin(), lambda x: x * x, lambda x: x.exp()]
    x = leaf()
    checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant).sum().backward()
    expected = np.exp(np.sin(X) ** 2) * 2 * np.sin(X) * np.cos(X)
    assert_allclose(x.grad.numpy(), expected)
    with pytest.raises(ValueError, match="9 segments for 3 functions"):
        checkpoint_sequential(functions, 9, x, use_reentrant=use_reentrant)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: other"):
        checkpoint_sequential(functions, 1, x, use_reentrant=use_reentrant, other=1)


# what is refused ---------------------------------------------------------------------------------


class Varying:
    """Another operation in each run."""

    def __init__(self, *functions: Any) -> None:
        self.functions = iter(functions)

    def __call__(self, x: Any) -> Any:
        return next(self.functions)(x)


def short(x: Any) -> Any:
    return x.sin()


def long(x: Any) -> Any:
    return x.sin().exp()


def test_fewer_tensors_in_the_second_run() -> None:
    y = checkpoint(Varying(long, short), leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match=r"during forward: 2\n.*during recomputation: 1"):
        y.sum().backward()


def test_more_tensors_in_the_second_run() -> None:
    x = leaf()
    checkpoint(Varying(short, long), x, use_reentrant=False).sum().backward()
    assert_allclose(x.grad.numpy(), np.cos(X))
    with set_checkpoint_early_stop(False):
        y = checkpoint(Varying(short, long), leaf(), use_reentrant=False)
    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        y.sum().backward()


@pytest.mark.parametrize("check", ["default", "none"])
def test_other_shapes_in_the_second_run(check: str) -> None:
    y = checkpoint(
        Varying(short, lambda x: (x.detach()[:2] * leaf(X[:2])).sin()),
        leaf(),
        use_reentrant=False,
        determinism_check=check,
    )
    message = r"different metadata.*\n.*position 0:\n.*\(3,\).*\n.*\(2,\)"
    if check == "none":
        message = "has shape"
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


def test_errors_tell_the_operations_in_debug_mode() -> None:
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(Varying(long, short), leaf(), use_reentrant=False)
    with pytest.raises(
        CheckpointError, match=r"(?s)original forward:.*in long.*recomputation:.*in short"
    ):
        y.sum().backward()


@both
def test_arguments_that_are_written_to_are_noticed(use_reentrant: bool) -> None:
    x = leaf() * 1
    y = checkpoint(Counted(), x, use_reentrant=use_reentrant)
    x += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"use_reentrant": True, "other": 1}, "Unexpected keyword arguments: other"),
        ({"use_reentrant": True, "debug": True}, "only supported when use_reentrant=False"),
        (
            {"use_reentrant": True, "context_fn": lambda: (None, None)},
            "only supported when use_reentrant=False",
        ),
        ({"use_reentrant": False, "determinism_check": "x"}, "should be one of"),
    ],
)
def test_options_that_do_not_go_together(options: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checkpoint(short, leaf(), **options)


def test_limits_of_the_reentrant_form() -> None:
    x = leaf()
    y = checkpoint(short, x, use_reentrant=True).sum()
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing"):
        grad(y, x, retain_graph=True)
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing"):
        y.backward(inputs=[x])
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        checkpoint(lambda x: x.detach(), x, use_reentrant=True).sum().backward()
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(short, tensor(X), use_reentrant=True).requires_grad
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(short, x)
    with pytest.raises(RuntimeError, match="Only tuple of tensors is supported"):
        detach_variable([x])  # type: ignore[arg-type]  # the error in question


@pytest.mark.parametrize("early_stop", [True, False])
@pytest.mark.parametrize("extra", [False, True])
def test_a_backward_pass_inside_of_the_function(early_stop: bool, extra: bool) -> None:
    def f(x: Any) -> Any:
        (gradient,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        return (gradient * x).exp() if extra else gradient * x

    expected = f(x := torch.tensor([0.5, 1.0], requires_grad=True))
    expected.sum().backward()
    y = torch.tensor([0.5, 1.0], requires_grad=True)
    found = torch.utils.checkpoint.checkpoint(f, y, use_reentrant=False, early_stop=early_stop)
    found.sum().backward()
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy())
    np.testing.assert_allclose(y.grad.numpy(), x.grad.numpy(), rtol=1e-6)


def test_saved_tensors_are_asked_for_once_in_a_backward_pass() -> None:
    class Asks(torch.autograd.Function):
        times = 1

        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            for _ in range(Asks.times):
                (x,) = ctx.saved_tensors
            return g * x

    def run() -> Any:
        x = torch.tensor([2.0], requires_grad=True)
        f = lambda z: Asks.apply(z.sin())  # noqa: E731
        return x, torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)

    x, y = run()
    y.backward(retain_graph=True)
    y.backward()  # another pass asks again
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.sin(2) * np.cos(2), rtol=1e-5)
    Asks.times = 2
    with pytest.raises(CheckpointError, match="was already unpacked once"):
        run()[1].backward()


def test_debug_mode_shows_the_lines() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(x)
        return x.sin().cos() if len(runs) == 1 else x.sin()

    x = torch.tensor([2.0], requires_grad=True)
    y = torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False, debug=True)
    with pytest.raises(CheckpointError, match=r"(?s)dumping logs.*forward:.*x\.sin\(\)\.cos\(\)"):
        y.backward()
