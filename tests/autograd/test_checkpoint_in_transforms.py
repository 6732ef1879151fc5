"""A checkpointed function in a transform is the function: values, slopes, writes, modes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.compat.torch as torch
from functrans.compat.torch.utils.checkpoint import checkpoint

F = torch.func


def _constant(a: Any) -> Any:
    with torch.no_grad():
        c = a * a
    return c * a


def _mode_inside(a: Any) -> Any:
    with torch.no_grad():
        c = a.sin()
        with torch.enable_grad():
            d = a * a
    return c * d


def _writing(a: Any) -> Any:
    z = a * 1
    z.mul_(2)
    return z.sin() * z


def _writing_unrecorded(a: Any) -> Any:
    z = a.cos()
    with torch.no_grad():
        z[0] = 2.0
    return z * a


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "constant": _constant,
    "mode inside": _mode_inside,
    "detached": lambda a: a.detach() * a.sin(),
    "writing": _writing,
    "writing unrecorded": _writing_unrecorded,
}
TRANSFORMS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "call": lambda f: f,
    "grad": F.grad,
    "grad_and_value": F.grad_and_value,
    "vjp": lambda f: lambda x: F.vjp(f, x)[1](torch.tensor(1.0))[0],
    "jvp": lambda f: lambda x: F.jvp(f, (x,), (x,)),
    "jacrev": F.jacrev,
    "jacfwd": F.jacfwd,
    "hessian": F.hessian,
    "grad of grad": lambda f: F.grad(lambda x: F.grad(f)(x).sin().sum()),
    "vmap": lambda f: lambda x: F.vmap(f)(torch.stack([x, x + 1])),
    "vmap of grad": lambda f: lambda x: F.vmap(F.grad(f))(torch.stack([x, x + 1])),
    "grad of vmap": lambda f: F.grad(lambda x: F.vmap(f)(torch.stack([x, x * 2])).sum()),
    "jit": ft.jit,
    "jit of grad": lambda f: ft.jit(F.grad(f)),
    "jit of hessian": lambda f: ft.jit(F.hessian(f)),
}


def _backward(f: Callable[[Any], Any], x: Any) -> Any:
    leaf = x.clone().requires_grad_()
    return torch.autograd.grad(f(leaf), leaf)[0]


def _numbers(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf.detach()) for leaf in ft.tree.leaves(value)]


@pytest.fixture(name="x")
def _x() -> Any:
    return torch.tensor(np.array([0.3, -1.2, 2.0]))


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad")
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_transforms_of_a_checkpointed_function(
    name: str, transform: str, reentrant: bool, x: Any
) -> None:
    plain = FUNCTIONS[name]
    made = TRANSFORMS[transform]
    expected = made(lambda a: plain(a).sum())(x)
    found = made(lambda a: checkpoint(plain, a, use_reentrant=reentrant).sum())(x)
    for a, b in zip(_numbers(found), _numbers(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_backward_passes_around_and_inside_of_compiled_code(name: str, x: Any) -> None:
    def checkpointed(a: Any) -> Any:
        return checkpoint(FUNCTIONS[name], a, use_reentrant=False).sum()

    expected = _backward(lambda a: FUNCTIONS[name](a).sum(), x)
    ways = {
        "eager": lambda: _backward(checkpointed, x),
        "of a jitted function": lambda: _backward(ft.jit(checkpointed), x),
        "in a jitted step": lambda: ft.jit(lambda a: _backward(checkpointed, a))(x),
        "of a batch": lambda: _backward(lambda a: F.vmap(checkpointed)(a[None]).sum(), x),
    }
    for way, call in ways.items():
        np.testing.assert_allclose(*_numbers([call(), expected]), rtol=1e-12, err_msg=way)


def _doubled(z: Any) -> Any:
    z.mul_(2)
    return z.sin()


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_to_the_argument_arrive(transform: str, x: Any) -> None:
    def with_checkpoint(a: Any) -> Any:
        z = a * 1
        return (checkpoint(_doubled, z, use_reentrant=False) * z).sum()

    def without(a: Any) -> Any:
        z = a * 1
        return (_doubled(z) * z).sum()

    made = TRANSFORMS[transform]
    for a, b in zip(_numbers(made(with_checkpoint)(x)), _numbers(made(without)(x)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("transform", [t for t in TRANSFORMS if "jit" not in t])
def test_results_of_any_structure(transform: str, x: Any) -> None:
    kinds: list[Any] = []

    def results(a: Any) -> Any:
        return {"b": [a.sin(), 3], "a": (a * a, None, "text")}

    def combined(found: Any) -> Any:
        kinds.append((type(found["b"][1]), found["a"][1:]))
        return (found["b"][0] * found["a"][0]).sum()

    made = TRANSFORMS[transform]
    expected = made(lambda a: combined(results(a)))(x)
    found = made(lambda a: combined(checkpoint(results, a, use_reentrant=False)))(x)
    assert set(kinds) == {(int, (None, "text"))}
    for a, b in zip(_numbers(found), _numbers(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_the_context_of_the_first_run_is_entered(x: Any) -> None:
    entered = []

    class Context:
        def __enter__(self) -> None:
            entered.append(1)

        def __exit__(self, *_: object) -> None:
            entered.append(-1)

    def checkpointed(a: Any) -> Any:
        made = lambda: (Context(), Context())  # noqa: E731  # one line
        return checkpoint(torch.sin, a, use_reentrant=False, context_fn=made).sum()

    F.grad(checkpointed)(x)
    assert entered == [1, -1]
