"""Grad modes: what they switch, for how long, in which thread; inference tensors."""

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from functrans.autograd import (
    Function,
    backward,
    enable_grad,
    grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
    tensor,
)
from functrans.autograd.composites import composite

MODES: list[Any] = [no_grad, enable_grad, inference_mode]
SWITCHES: list[Any] = [
    (no_grad, (False, False)),
    (enable_grad, (True, False)),
    (lambda: set_grad_enabled(False), (False, False)),
    (lambda: set_grad_enabled(True), (True, False)),
    (inference_mode, (False, True)),
    (lambda: inference_mode(False), (True, False)),
]
NAMES = ["no_grad", "enable_grad", "disabled", "enabled", "inference", "no inference"]


def leaf(values: Any = (1.0, 2.0)) -> Any:
    return tensor(values, requires_grad=True)


def state() -> tuple[bool, bool]:
    return is_grad_enabled(), is_inference_mode_enabled()


@pytest.fixture(autouse=True)
def modes_are_restored() -> Iterator[None]:
    assert state() == (True, False)
    yield
    assert state() == (True, False)
    assert is_multithreading_enabled()


def _first_part(y: Any) -> Any:
    return y.unbind()[0].view(1)


# scopes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("make", "expected"), SWITCHES, ids=NAMES)
def test_a_block_has_the_mode_and_gives_it_back_also_after_an_error(
    make: Any, expected: Any
) -> None:
    with make():
        assert state() == expected
        assert (leaf() * 2).requires_grad == expected[0]
    assert state() == (True, False)
    with pytest.raises(ZeroDivisionError), make():
        raise ZeroDivisionError
    assert state() == (True, False)


@pytest.mark.parametrize(("make", "expected"), SWITCHES, ids=NAMES)
@pytest.mark.parametrize("outer", [no_grad, inference_mode])
def test_the_innermost_block_counts(outer: Any, make: Any, expected: Any) -> None:
    with outer():
        before = state()
        with make():
            is_kept = outer is inference_mode and make not in (SWITCHES[5][0], inference_mode)
            assert state() == (expected[0], is_kept or expected[1])
        assert state() == before


def test_one_object_serves_several_blocks() -> None:
    mode = no_grad()
    for _ in range(2):
        with mode:
            assert not is_grad_enabled()
        assert is_grad_enabled()


@pytest.mark.parametrize(("make", "expected"), SWITCHES, ids=NAMES)
def test_a_decorated_function_has_the_mode_in_each_call(make: Any, expected: Any) -> None:
    @make()
    def f(n: int, *, fails: bool = False) -> Any:
        """Text."""
        assert state() == expected
        if fails:
            raise ZeroDivisionError
        return f(n - 1) if n else state()

    assert state() == (True, False)
    assert f(2) == expected
    assert (f.__name__, f.__doc__) == ("f", "Text.")
    with pytest.raises(ZeroDivisionError):
        f(0, fails=True)
    with no_grad():
        assert f(1) == expected
        assert not is_grad_enabled()


@pytest.mark.parametrize("mode", MODES)
def test_a_decorator_without_parentheses(mode: Any) -> None:
    @mode
    def f() -> Any:
        return state()

    with mode():
        expected = state()
    assert f() == expected


@pytest.mark.parametrize(("make", "expected"), SWITCHES, ids=NAMES)
def test_a_generator_has_the_mode_while_it_runs_only(make: Any, expected: Any) -> None:
    log: list[Any] = []

    @make()
    def f() -> Any:
        try:
            log.append((state(), (yield 1)))
            try:
                yield 2
            except KeyError:
                log.append(state())
            yield 3
        finally:
            log.append(state())
        return 4

    def outer() -> Any:
        log.append((yield from f()))

    generator = f()
    assert next(generator) == 1
    assert state() == (True, False)
    assert generator.send("sent") == 2
    assert state() == (True, False)
    assert generator.throw(KeyError()) == 3
    assert state() == (True, False)
    generator.close()
    assert log == [(expected, "sent"), expected, expected]
    log.clear()
    assert list(outer()) == [1, 2, 3]
    assert log == [(expected, None), expected, 4]


def test_an_error_of_a_generator_reaches_the_caller() -> None:
    @no_grad()
    def f() -> Any:
        yield 1
        raise ZeroDivisionError

    generator = f()
    next(generator)
    with pytest.raises(ZeroDivisionError):
        next(generator)


def test_set_grad_enabled_works_at_once() -> None:
    set_grad_enabled(False)
    try:
        assert not is_grad_enabled()
    finally:
        set_grad_enabled(True)
    for wrong in (1, None, "no"):
        with pytest.raises(TypeError, match="must be bool, not"):
            set_grad_enabled(wrong)  # type: ignore[arg-type]  # refused
        assert is_grad_enabled()


@pytest.mark.parametrize("mode", MODES)
def test_the_mode_of_a_decorated_class_is_that_of_its_making(mode: Any) -> None:
    def state() -> tuple[bool, bool]:
        return is_grad_enabled(), is_inference_mode_enabled()

    class Model:
        def __init__(self) -> None:
            self.made_in = state()

        def later(self) -> tuple[bool, bool]:
            return state()

    with mode():
        expected = state()
    with pytest.warns(FutureWarning, match="the class Model, which is deprecated"):
        make = mode()(Model)
    model = make()
    assert model.made_in == expected
    assert model.later() == state() == (True, False)


def test_modes_belong_to_their_thread() -> None:
    seen: list[Any] = []

    def work() -> None:
        seen.append(state())
        with no_grad():
            entered.set()
            leave.wait(5)
            seen.append(state())

    entered, leave = threading.Event(), threading.Event()
    with inference_mode():
        thread = threading.Thread(target=work)
        thread.start()
        assert entered.wait(5)
    assert (leaf() * 2).requires_grad
    leave.set()
    thread.join()
    assert seen == [(True, False), (False, False)]


def test_modes_of_the_backward_pass() -> None:
    seen: list[bool] = []
    for create_graph in (False, True):
        y = leaf() * 2
        y.register_hook(lambda g: seen.append(is_grad_enabled()))
        grad(y.sum(), y, create_graph=create_graph)
        assert is_grad_enabled()
    with no_grad():
        x = leaf()
        with enable_grad():
            y = (x * x).sum()
        y.backward()  # a backward pass is not recording
        assert not is_grad_enabled()
    assert seen == [False, True]
    assert_array_equal(x.grad.numpy(), [2, 4])


def test_views_and_leaves_under_no_grad() -> None:
    x = leaf()
    with no_grad():
        view = x.view(2)
        assert leaf().requires_grad
    assert view._base is x
    assert view.is_leaf
    assert not (view * x.detach()).requires_grad


@pytest.mark.parametrize("make", [lambda y: y.view(2), lambda y: y.view(2)[:1], _first_part])
@pytest.mark.parametrize("mode", [no_grad, inference_mode])
def test_a_view_from_no_grad_has_no_place_after_its_base_was_written_to(
    mode: Any, make: Any
) -> None:
    for base, write_mode in ((leaf(), no_grad), (leaf() * 1, no_grad), (leaf() * 1, enable_grad)):
        with mode():
            view = make(base)
        with write_mode():
            base += 1
        assert view.tolist()[0] == 2.0
        assert view._version == 1
        with no_grad():
            assert (view * 2).tolist()[0] == 4.0
        for use in (lambda v: v * 2, lambda v: v.requires_grad, lambda v: v.grad_fn):
            with pytest.raises(RuntimeError, match=r"A view was created in .* and its base or"):
                use(view)


def test_the_backward_pass_runs_in_the_calling_thread() -> None:
    threads: list[int] = []
    x = leaf()
    x.register_hook(lambda g: threads.append(threading.get_ident()))
    with set_multithreading_enabled(False):
        assert not is_multithreading_enabled()
        x.sum().backward()
    assert is_multithreading_enabled()
    x.sum().backward()
    assert threads == [threading.get_ident()] * 2

    @set_multithreading_enabled(False)
    def f() -> bool:
        return is_multithreading_enabled()

    set_multithreading_enabled(True)
    assert not f()
    assert is_multithreading_enabled()


# inference tensors -------------------------------------------------------------------------------


def made() -> Any:
    with inference_mode():
        return tensor([1.0, 2.0])


@pytest.mark.parametrize(
    "make",
    [
        lambda x: tensor([1.0]),
        lambda x: x * 2,
        lambda x: x.sum(),
        lambda x: x.clone(),
        lambda x: x.softmax(0),
        lambda x: x > 0,
        lambda x: x.sort().values,
        lambda x: composite("Own", lambda v: v * 2, x),
        lambda x: x.double() if x.dtype != np.float64 else x.float(),
        lambda x: Squared.apply(x),
    ],
    ids=range(10),
)
def test_results_in_inference_mode_are_inference_tensors(make: Any) -> None:
    x = leaf()
    with inference_mode():
        assert make(x).is_inference()
        with enable_grad():  # asks for nothing that inference mode could give
            result = make(x)
            assert result.is_inference()
            assert not result.requires_grad
        with inference_mode(False):
            assert not make(x).is_inference()
    assert not make(x).is_inference()


class Squared(Function):
    """``x * y`` that saves both."""

    @staticmethod
    def forward(ctx: Any, x: Any, y: Any = None) -> Any:
        y = x if y is None else y
        ctx.save_for_backward(x, y)
        return x * y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y = ctx.saved_tensors
        return g * y, g * x


def test_views_are_inference_tensors_where_their_base_is_one() -> None:
    own, plain = made(), tensor([1.0, 2.0])
    for t in (own, plain):
        views = [t[:1], t.view(2, 1), t.detach(), t.data, *t.unbind()]
        with inference_mode():
            views += [t[:1], t.view(2, 1), t.detach(), *t.unbind()]
        assert [v.is_inference() for v in views] == [t is own] * len(views)


@pytest.mark.parametrize(
    "use",
    [
        lambda x, w: x * w,
        lambda x, w: x / w,
        lambda x, w: x**w,
        lambda x, w: x.atan2(w),
        lambda x, w: Squared.apply(x, w),
    ],
    ids=["mul", "div", "pow", "atan2", "function"],
)
def test_inference_tensors_are_not_saved(use: Any) -> None:
    x, w = leaf(), made()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        use(x, w)
    with no_grad():
        assert use(x, w).numpy().size
    assert use(x, w.clone()).requires_grad


@pytest.mark.parametrize(
    "use", [lambda x, w: x + w, lambda x, w: w - x, lambda x, w: composite("Own", _plus, x, w)]
)
def test_inference_tensors_that_no_derivative_needs(use: Any) -> None:
    x, w = leaf(), made()
    y = use(x, w)
    assert not y.is_inference()
    y.sum().backward()
    assert_array_equal(np.abs(x.grad.numpy()), [1, 1])


def _plus(a: Any, b: Any) -> Any:
    return a + b


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (lambda x: x._version, "Inference tensors do not track version counter"),
        (lambda x: x.add_(1), "Inplace update to inference tensor outside InferenceMode"),
        (lambda x: x[:1].zero_(), "Inplace update to inference tensor outside InferenceMode"),
        (lambda x: x.__setitem__(0, 5.0), "Inplace update to inference tensor"),
        (lambda x: x.copy_(tensor([5.0, 6.0])), "Inplace update to inference tensor"),
        (lambda x: x.resize_(1), "Inplace update to inference tensor"),
        (lambda x: x.resize_(2), "Inplace update to inference tensor"),
        (lambda x: x.set_(tensor([5.0, 6.0])), "Inplace update to inference tensor"),
        (lambda x: x.requires_grad_(), "Setting requires_grad=True on inference tensor outside"),
        (
            lambda x: setattr(x, "requires_grad", True),
            "Setting requires_grad=True on inference tensor outside",
        ),
    ],
)
def test_what_inference_tensors_refuse_outside(action: Any, message: str) -> None:
    x = made()
    with pytest.raises(RuntimeError, match=message):
        action(x)
    assert_array_equal(x.numpy(), [1, 2])
    assert not x.requires_grad


def test_writes_in_inference_mode() -> None:
    x, plain = made(), tensor([1.0, 2.0])
    y = leaf() * 2
    with inference_mode():
        x.add_(1)
        x[:1].mul_(2)
        plain.add_(1)
        view = y[:1]
        y.mul_(10)
    assert_array_equal(x.numpy(), [4, 3])
    assert plain._version == 1
    assert not plain.is_inference()
    assert y.grad_fn.name() == "MulBackward0"
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being"):
        view.mul_(2)
    assert_array_equal(y.detach().numpy(), [20, 40])


def test_gradients_in_inference_mode() -> None:
    x = leaf()
    with inference_mode():
        y = x * 2
        with pytest.raises(RuntimeError, match="does not require grad and does not have a grad_fn"):
            backward(y.sum())
    assert x.grad is None


def test_tensors_that_require_gradients_are_arrays_where_nothing_is_recorded() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    for y in (x, x * 2):
        with no_grad():
            assert np.shares_memory(y.numpy(), y.detach().numpy())
        with pytest.raises(RuntimeError, match="Can't call numpy"):
            y.numpy()
        with no_grad(), enable_grad(), pytest.raises(RuntimeError, match="Can't call numpy"):
            y.numpy()


@pytest.mark.parametrize(
    "reform", [lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0), lambda x: x.squeeze_()]
)
def test_axes_of_inference_tensors_change_inside_only(reform: Any) -> None:
    with inference_mode():
        x = tensor([[1.0, 2.0]]) * 1
        leaf = tensor([[1.0, 2.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside"):
        reform(x)
    assert x.shape == (1, 2)
    leaf = tensor([[1.0, 2.0]], requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        reform(leaf)
    with inference_mode():
        assert reform(x).shape == reform(leaf).shape != (1, 2)


def test_data_of_a_tensor_are_not_deleted() -> None:
    with pytest.raises(RuntimeError, match="Deleting tensor data is not allowed"):
        del tensor([1.0]).data


def test_anomalies_are_told_where_warnings_are_errors(capsys: Any) -> None:
    from functrans.autograd.anomaly import set_detect_anomaly

    x = tensor([-1.0], requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's, of the root
        with set_detect_anomaly(True):
            y = x.sqrt()
            with pytest.raises(RuntimeError, match="returned nan values"):
                y.backward()
    assert "Error detected in SqrtBackward0" in capsys.readouterr().err
