"""What a function writes into its arguments reaches the tensors of the caller, or raises."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from functrans.compat import torch

func, forward_ad = torch.func, torch.autograd.forward_ad
START = np.array([[0.2, 0.4, 0.6], [0.3, 0.5, 0.7]])

OF_AXES = ("as_strided_", "resize_", "set_", "squeeze_", "t_")  # they write no numbers


def _in_place() -> list[str]:
    """Operations that write to a tensor of floats and need no argument."""
    found = []
    for name in dir(torch.Tensor):
        if name.endswith("_") and not name.startswith("_") and name not in OF_AXES:
            x, state = torch.tensor(START), torch.get_rng_state()
            try:
                getattr(torch.tensor(START[0]), name)()
                same = getattr(x, name)() is x
            except (TypeError, RuntimeError, NotImplementedError, ValueError):
                continue
            draws = not torch.equal(torch.get_rng_state(), state)
            again = getattr(torch.tensor(START), name)()
            if same and x._version and np.array_equal(x, again) and not draws:
                found.append(name)
    return found


NAMES = _in_place()
WRITES: dict[str, Callable[[Any], Any]] = {
    "mul_": lambda x: x.mul_(2),
    "operator": lambda x: x.__imul__(3),
    "element": lambda x: x.__setitem__(0, 5.0),
    "part": lambda x: x[1:].sin_(),
    "view": lambda x: x.view(-1)[::2].mul_(4),
    "detached": lambda x: x.detach().add_(1),
    "twice": lambda x: x.exp_().sub_(1),
}

OF_WHOLE: dict[str, Callable[[Any], Any]] = {
    "operator": lambda x: x.__imul__(3),
    "copy_": lambda x: x.copy_(x * 2),
    "sine of a part": lambda x: (x[:1].sin_(), x)[1],
}


def _writer(name: str) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        if name in WRITES:
            WRITES[name](x)
        else:
            getattr(x, name)()
        return x * 1

    return f


def _written(name: str, rows: Any) -> np.ndarray:
    tensors = [torch.tensor(row) for row in rows]
    for x in tensors:
        _writer(name)(x)
    return np.stack([x.numpy() for x in tensors])


def test_there_are_many() -> None:
    assert len(NAMES) > 40


@pytest.mark.parametrize("name", [*NAMES, *WRITES])
def test_writes_reach_the_caller(name: str) -> None:
    expected, f = _written(name, START), _writer(name)
    x = torch.tensor(START)
    assert_allclose(func.vmap(f)(x), expected, rtol=1e-12)
    assert_allclose(x, expected, rtol=1e-12)
    assert x._version
    x, columns = torch.tensor(START), torch.tensor(START.T.copy())
    func.vmap(f, in_dims=1)(columns)
    assert_allclose(columns, expected.T, rtol=1e-12)
    x = torch.tensor(START[0])
    func.jacfwd(f)(x)
    assert_allclose(x, expected[0], rtol=1e-12)
    for pushed in (_by_jvp, _by_dual):
        x, direction = torch.tensor(START[0]), torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)
        out, tangent = pushed(f, x, direction)
        assert_allclose(x, expected[0], rtol=1e-12)
        assert_allclose(x, out, rtol=1e-12)
        if name != "detached":
            assert_allclose(direction, tangent, rtol=1e-12)


def _by_jvp(f: Any, x: Any, direction: Any) -> Any:
    return func.jvp(f, (x,), (direction,))


def _by_dual(f: Any, x: Any, direction: Any) -> Any:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(f(forward_ad.make_dual(x, direction)))


REVERSE: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: func.grad(lambda x: f(x).sum()),
    "vjp": lambda f: lambda x: func.vjp(f, x),
    "jacrev": func.jacrev,
    "hessian": lambda f: func.hessian(lambda x: f(x).sum()),
    "linearize": lambda f: lambda x: func.linearize(f, x),
}


@pytest.mark.parametrize("name", REVERSE)
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad])
def test_writes_that_cannot_reach_it_raise(name: str, mode: Any) -> None:
    def f(x: Any) -> Any:
        with mode():
            x.mul_(2)
        return x * 1

    x = torch.tensor(START[0])
    with pytest.raises(RuntimeError, match=r"in-?place"):
        REVERSE[name](f)(x)
    assert_allclose(x, START[0])


def test_writes_are_recorded_or_refused() -> None:
    leaf = torch.tensor(START, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        func.vmap(lambda x: x.mul_(10))(leaf)
    y = leaf * 1
    func.vmap(lambda x: x.mul_(10))(y)
    y.sum().backward()
    assert_allclose(leaf.grad, np.full((2, 3), 10.0))
    viewed = torch.arange(6.0).reshape(2, 3).requires_grad_()
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        viewed.mul_(2)


def test_unmapped_and_given_tensors_are_those_of_the_caller() -> None:
    shared = torch.zeros(3)
    func.vmap(lambda x, s: x + s.add_(1), (0, None))(torch.zeros(2, 3), shared)
    func.grad(lambda x, s: (x * s.add_(1)).sum())(torch.ones(3), shared)
    assert shared.tolist() == [2, 2, 2]
    assert shared._version == 2


def test_dual_tensors_are_written_to_in_turns() -> None:
    x, direction = torch.ones(3), torch.ones(3)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, direction)
        dual *= 2
        x.add_(1)
        dual[0] = 5.0
        out, tangent = forward_ad.unpack_dual(dual * 1)
    assert x.tolist() == out.tolist() == [5, 3, 3]
    assert direction.tolist() == tangent.tolist() == [0, 2, 2]


@pytest.mark.parametrize("name", [*NAMES, *OF_WHOLE])
def test_results_that_are_written_arguments_are_the_tensors_of_the_caller(name: str) -> None:
    write = OF_WHOLE.get(name) or (lambda x: getattr(x, name)())
    x, y = torch.tensor(START), torch.ones(2)
    first, other, again = func.vmap(lambda p, q: (write(p), q * 2, p))(x, y)
    assert first is x
    assert again is x
    assert other is not y
    columns = torch.tensor(START)
    found = func.vmap(write, in_dims=1, out_dims=-1)(columns)
    assert found is columns
    columns = torch.tensor(START)
    moved = func.vmap(write, in_dims=1)(columns)
    assert_allclose(moved, columns.T)
    moved[0, 1] = 77.0  # a view of it
    assert columns[1, 0].item() == 77
    untouched = torch.tensor(START)
    assert func.vmap(lambda p: p)(untouched) is untouched


def test_parts_of_dual_tensors_are_those_that_were_given() -> None:
    base, tangents = torch.arange(6.0).reshape(2, 3), torch.ones(3, 2)
    cases = {  # primal, tangent, whether the tangent is taken as it is
        "alike": (base, torch.ones(2, 3), True),
        "transposed": (base, tangents.T, False),
        "both transposed": (base.T, torch.ones(2, 3).T, False),
        "a part": (base[0], torch.ones(3), False),
        "empty": (torch.zeros(0, 3), torch.zeros(3, 0).T, True),
        "expanded": (base, torch.ones(3).expand(2, 3), False),
    }
    for name, (primal, tangent, is_taken) in cases.items():
        before = tangent.clone()
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(primal, tangent)
            first, second = forward_ad.unpack_dual(dual), forward_ad.unpack_dual(dual)
            if name != "both transposed":
                assert (first.tangent is tangent) == is_taken, name
            assert first.tangent is second.tangent, name
            assert first.primal is not second.primal, name
            assert dual.data_ptr() == primal.data_ptr(), name
            if name != "empty":
                assert first.tangent.stride() == primal.stride(), name
            dual.mul_(2)
            assert_allclose(first.primal, primal)
            assert_allclose(first.tangent, 2 * before)
            is_shared = first.tangent.data_ptr() == tangent.data_ptr() and name != "empty"
            assert_allclose(tangent, 2 * before if is_shared else before)


def test_parts_of_computed_dual_tensors_share_their_memory() -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.ones(3)) * 2
        parts = forward_ad.unpack_dual(dual)
        parts.primal.add_(1)
        parts.tangent.add_(3)
        assert dual.tolist() == [3, 3, 3]
        squares = forward_ad.unpack_dual(dual * dual)
        assert squares.tangent.tolist() == [30, 30, 30]
        dual.mul_(2)
        assert parts.primal.tolist() == [6, 6, 6]
        assert parts.tangent.tolist() == [10, 10, 10]
        assert repr(dual) == "tensor([6., 6., 6.], tangent=tensor([10., 10., 10.]))"


def test_writes_to_memory_of_two_arguments_are_refused() -> None:
    x = torch.arange(6.0)
    for first, second in ((x, x), (x[:4], x[2:])):
        n = min(len(first), len(second))
        with pytest.raises(RuntimeError, match="whose memory another argument shares"):
            func.vmap(lambda a, b: (a.add_(1), b * 1))(first[:n], second[:n])
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    func.vmap(lambda a, b: (a.add_(1), b * 1))(x[::2], x[1::2])
    assert x.tolist() == [1, 1, 3, 3, 5, 5]
    func.vmap(lambda a, b: a * b)(x, x)
