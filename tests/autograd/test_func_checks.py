"""What transforms of ``torch.func`` refuse, in the words that programs search for."""

from collections.abc import Callable
from typing import Any

import pytest

import functrans.compat.torch as torch

F = torch.func
X = torch.tensor([1.0, 2.0, 3.0])


def _modules() -> list[Any]:
    return [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).requires_grad_(False)]


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: F.grad(torch.sum, argnums=[0])(X), RuntimeError, "argnums must be int or Tuple"),
    (lambda: F.grad(torch.sum, argnums=0.5)(X), RuntimeError, "argnums must be int or Tuple"),
    (lambda: F.vjp(torch.sin, X)[1]((X, X)), RuntimeError, "Expected pytree structure of cotan"),
    (lambda: F.jvp(torch.sin, (), ()), RuntimeError, "contain at least one Tensor"),
    (lambda: F.jvp(torch.sin, (1.0,), (X,)), RuntimeError, "primals to only contain Tensors"),
    (lambda: F.jvp(torch.sin, (X,), (1.0,)), RuntimeError, "tangents to only contain Tensors"),
    (lambda: F.jacrev(torch.sin)(X + 0j), RuntimeError, "jacrev: Expected all inputs to be real"),
    (lambda: F.jacfwd(torch.sin)(X + 0j), RuntimeError, "jacfwd: Expected all inputs to be real"),
    (lambda: F.jacrev(lambda x: x + 0j)(X), RuntimeError, "jacrev: Expected all outputs"),
    (lambda: F.jacfwd(lambda x: x + 0j)(X), RuntimeError, "jacfwd: Expected all outputs"),
    (lambda: F.vmap(torch.sin, in_dims=[0])(X), ValueError, "expected `in_dims` to be int or a"),
    (lambda: F.vmap(torch.sin, in_dims="a")(X), ValueError, "expected `in_dims` to be int or a"),
    (lambda: F.vmap(lambda: X)(), ValueError, "got no inputs"),
    (lambda: F.vmap(torch.sin, out_dims="a")(X), ValueError, "`out_dims` must be an int, None"),
    (lambda: F.vmap(lambda x: (x, x), out_dims=(0,))(X), ValueError, "out_dims is not compatible"),
    (lambda: F.stack_module_state(_modules()), RuntimeError, "to have the same .requires_grad"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_one_axis_in_a_tuple_is_that_of_one_result() -> None:
    assert F.vmap(torch.sin, out_dims=(0,))(X).tolist() == torch.sin(X).tolist()
    wide = torch.ones(3, 2)
    assert F.vmap(torch.sin, out_dims=(1,))(wide).shape == (2, 3)
    assert F.vmap(lambda x: (x,), out_dims=(1,))(wide)[0].shape == (2, 3)


def test_stacked_states_are_of_the_namespace_of_the_modules() -> None:
    parameters, _ = F.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
    assert "dtype" not in repr(parameters["weight"])
