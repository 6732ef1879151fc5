"""What transforms of ``torch.func`` refuse, in the words that programs search for."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import functrans.compat.torch as torch
from functrans.errors import ConcretizationError

F = torch.func
X = torch.tensor([1.0, 2.0, 3.0])


def _modules() -> list[Any]:
    return [torch.nn.Linear(1, 1), torch.nn.Linear(1, 1).requires_grad_(False)]


def _second(x: Any, y: Any) -> Any:
    return (y * y).sum()


WITHOUT_NONE: list[tuple[Callable[[Any, Any], Any], type[Exception], str]] = [
    *(
        (lambda x, y, t=t: t(_second, (0, 1))(x, y), ValueError, "Thing passed to transform API")
        for t in (F.grad, F.grad_and_value, F.jacrev, F.jacfwd, F.hessian)
    ),
    (lambda x, y: F.vjp(_second, x, y), ValueError, "Thing passed to transform API"),
    (lambda x, y: F.linearize(_second, x, y), ValueError, "Thing passed to transform API"),
    (
        lambda x, y: F.jvp(_second, (x, y), (x, y)),
        RuntimeError,
        "primals to only contain Tensors",
    ),
    (lambda x, y: F.vmap(_second)(x, y), ValueError, "cannot vmap over non-Tensor"),
]
"""``None`` is no tensor, and nothing that is left out in silence."""
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
    (lambda: F.vjp(torch.sin, X)[1](X[:1]), RuntimeError, "Mismatch in shape"),
    (lambda: F.jvp(torch.sin, (X,), (X[:1],)), RuntimeError, "forward gradient that has a diff"),
    (lambda: F.linearize(torch.sin, X)[1]((X,)), RuntimeError, "to have the same argspec"),
    (lambda: F.linearize(torch.sin, X)[1](X[:1]), RuntimeError, "shapes must be equal"),
    (lambda: F.grad(lambda x: (x + 1j).sum())(X), RuntimeError, "only for real scalar outputs"),
    *(
        (lambda f=f: f(torch.sum)(X.long()), RuntimeError, "only Tensors of floating point dtype")
        for f in (F.grad, F.jacrev, F.jacfwd, lambda f: lambda x: F.vjp(f, x))
    ),
    *(
        (lambda f=f, aux=aux: f(lambda x: (x.sum(), aux)), RuntimeError, "Expected tensors, got")
        for f in (
            lambda f: F.grad(f, has_aux=True)(X),
            lambda f: F.vjp(f, X, has_aux=True),
            lambda f: F.jvp(f, (X,), (X,), has_aux=True),
            lambda f: F.jacrev(f, has_aux=True)(X),
            lambda f: F.jacfwd(f, has_aux=True)(X),
        )
        for aux in (2.0, "a", None, {"a": None})
    ),
    *(
        (lambda t=t, none=none: t(none, X), error, words)
        for t, error, words in WITHOUT_NONE
        for none in (None, {"a": None}, [X, None])
    ),
    *(
        (lambda t=t: t(lambda x: (x.sum(), None), X), RuntimeError, "to return only tensors")
        for t in (
            F.vjp,
            lambda f, x: F.jvp(f, (x,), (x,)),
            lambda f, x: F.jacrev(f)(x),
            lambda f, x: F.jacfwd(f)(x),
        )
    ),
    *(
        (lambda d=d: F.vmap(torch.sin, in_dims=d)(X), ValueError, "must be either an integer dim")
        for d in ((0.0,), ("a",))
    ),
    (lambda: F.vmap(lambda x: X[x < X])(X), RuntimeError, "output dynamic shape"),
    (lambda: F.vmap(torch.sin, in_dims=([0],))(X), ValueError, "in_dims is not compatible"),
    *(
        (lambda d=d: F.vmap(torch.sin, out_dims=d)(X), ValueError, "out_dims is not compatible")
        for d in ((0, 0), (0, (0,)), [0], {"a": 0}, ())
    ),
    *(
        (lambda r=r: F.vmap(lambda x: r)(X), ValueError, "Did you mean to set out_dims= to None")
        for r in (None, 2.0, "a", (X, None))
    ),
    *(
        (lambda d=d: F.vmap(lambda x: (x, x), out_dims=d)(X), ValueError, "return a BatchedTensor")
        for d in (None, (0, None))
    ),
    *(
        (lambda d=d: F.vmap(torch.sin, out_dims=d)(X[None]), IndexError, "Dimension out of range")
        for d in (2, -3, (2,))
    ),
    *(
        (lambda t=t: t(_written_to)(X), RuntimeError, "mutate a captured Tensor")
        for t in (F.grad, F.jacrev, F.jacfwd, F.vmap)
    ),
]


def _written_to(x: Any) -> Any:
    torch.zeros(x.shape).add_(x)  # made inside
    OUTSIDE[x.shape].add_(x)
    return x.sum()


OUTSIDE = {(): torch.zeros(()), (3,): torch.zeros(3)}


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_is_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


CONTROL = "data-dependent control flow. We don't support that yet"
ITEM = r"on a Tensor. We don't support vmap over calling .item\(\) on a Tensor"
SHAPE = "operators that can output dynamic shape"
MEMORY = "Cannot access data pointer of Tensor"
ASKERS: dict[Callable[[Any], Any], str] = {
    bool: CONTROL,
    lambda x: x and x: CONTROL,
    torch.is_nonzero: CONTROL,
    lambda x: torch.equal(x, x): CONTROL,
    lambda x: torch.allclose(x, x): CONTROL,
    torch.Tensor.item: ITEM,
    float: ITEM,
    int: ITEM,
    complex: ITEM,
    "{:.2f}".format: ITEM,
    lambda x: X[: x.long()]: ITEM,
    lambda x: torch.tensor([x, x]): ITEM,
    lambda x: torch.full((2,), x): ITEM,
    torch.nonzero: SHAPE,
    torch.argwhere: SHAPE,
    lambda x: torch.where(x > 0): SHAPE,
    torch.unique: SHAPE,
    torch.unique_consecutive: SHAPE,
    lambda x: torch.masked_select(X, x < X): SHAPE,
    torch.Tensor.tolist: MEMORY,
    lambda x: x.detach().numpy(): MEMORY,
    torch.Tensor.data_ptr: MEMORY,
}


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("f", ASKERS)
@pytest.mark.parametrize("transform", [lambda f: f, F.grad], ids=["vmap", "vmap of grad"])
def test_values_of_a_batch_are_refused(transform: Any, f: Callable[[Any], Any]) -> None:
    caught: list[RuntimeError] = []

    def asking(x: Any) -> Any:
        try:
            f(x)
        except RuntimeError as error:
            caught.append(error)
            raise
        return x

    with pytest.raises(RuntimeError, match=ASKERS[f]):
        F.vmap(transform(asking))(X)
    assert len(caught) == 1  # also where the function itself catches it
    assert isinstance(caught[0], ConcretizationError)
    text = str(caught[0])
    assert "torch.where" in text
    assert "in_dims=None" in text
    assert not re.search(r"\b(np|ft|functrans)\.|in_axes", text)


def test_other_results_than_tensors_pass_where_they_get_no_axis() -> None:
    marker = object()
    assert F.vmap(lambda x: marker, out_dims=None)(X) is marker
    assert F.vmap(lambda x: None, out_dims=None)(X) is None
    found = F.vmap(lambda x: (x, {"a": None, "b": (marker, X)}), out_dims=(0, None))(X)
    assert found[0].tolist() == X.tolist()
    assert found[1]["a"] is None
    assert found[1]["b"][0] is marker
    assert found[1]["b"][1].tolist() == X.tolist()


@pytest.mark.parametrize("find", [torch.unique, torch.unique_consecutive])
def test_distinct_elements_have_derivatives(find: Callable[[Any], Any]) -> None:
    x = torch.tensor([[2.0, 3.0], [2.0, 3.0], [5.0, 7.0]])
    assert F.grad(lambda x: (find(x[0]) ** 2).sum())(x)[0].tolist() == [4.0, 6.0]
    assert F.grad(lambda x: find(x, dim=0).prod())(x).tolist() == [[105, 70], [0, 0], [42, 30]]
    assert F.jvp(find, (x[0],), (x[0],))[1].tolist() == [2.0, 3.0]


HOOKS = {
    "saved_tensors_hooks": lambda: torch.autograd.graph.saved_tensors_hooks(abs, abs),
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "mutation": torch.autograd.graph.allow_mutation_on_saved_tensors,
}
REVERSE: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: F.grad(f)(X),
    "vjp": lambda f: F.vjp(f, X),
    "jacrev": lambda f: F.jacrev(f)(X),
    "hessian": lambda f: F.hessian(f)(X),
    "grad of vmap": lambda f: F.grad(lambda x: F.vmap(f)(x[None]).sum())(X),
}


@pytest.mark.parametrize("hooks", HOOKS)
@pytest.mark.parametrize("name", REVERSE)
def test_hooks_for_saved_tensors_are_refused(name: str, hooks: str) -> None:
    def hooked(x: Any) -> Any:
        with HOOKS[hooks]():
            return (x * x).sum()

    with pytest.raises(RuntimeError, match="don't yet support saved tensor hooks"):
        REVERSE[name](hooked)
    with pytest.raises(RuntimeError, match="saved tensor hooks"), HOOKS[hooks]():
        REVERSE[name](lambda x: (x * x).sum())
    with HOOKS["save_on_cpu"]():  # afterwards they are as before
        y = (X.clone().requires_grad_() ** 2).sum()
    y.backward()


def test_one_axis_in_a_tuple_is_that_of_one_result() -> None:
    assert F.vmap(torch.sin, out_dims=(0,))(X).tolist() == torch.sin(X).tolist()
    wide = torch.ones(3, 2)
    assert F.vmap(torch.sin, out_dims=(1,))(wide).shape == (2, 3)
    assert F.vmap(lambda x: (x,), out_dims=(1,))(wide)[0].shape == (2, 3)


def test_stacked_states_are_of_the_namespace_of_the_modules() -> None:
    parameters, _ = F.stack_module_state([torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)])
    assert "dtype" not in repr(parameters["weight"])


@pytest.mark.parametrize("randomness", ["error", "different"])
@pytest.mark.parametrize("place", [0, 1])
def test_an_argument_whose_value_is_asked_has_its_own_number(place: int, randomness: str) -> None:
    mapped = torch.func.vmap(lambda *own: own[place].item(), randomness=randomness)
    with pytest.raises(RuntimeError, match=rf"argument args\[{place}\]"):
        mapped(torch.ones(3), torch.ones(3))
