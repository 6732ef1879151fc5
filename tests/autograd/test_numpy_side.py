"""What a NumPy user does with tensors; the names that Python's messages and ``dir`` show."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
import functrans.autograd as imperative
import functrans.compat.torch as torch
from cases import each
from functrans.autograd import Tensor, grad, tensor

X = np.array([[1.0, 2.0], [3.0, 5.0]])


@pytest.mark.parametrize("copied", [lambda x: x.copy(), np.copy, lambda x: np.array(x.copy("F"))])
def test_copies_have_memory_of_their_own(copied: Callable[[Any], Any]) -> None:
    x = tensor(X)
    y = copied(x)
    x.zero_()
    assert_array_equal(np.asarray(y), X)


@pytest.mark.parametrize("copied", [lambda x: x.copy(), np.copy, lambda x: x.copy(order="F")])
def test_copies_are_recorded(copied: Callable[[Any], Any]) -> None:
    x = tensor(X, requires_grad=True)
    y = copied(x)
    assert y.grad_fn.name() == "CloneBackward0"
    y *= 2
    (slope,) = grad((y * y).sum(), x)
    assert_array_equal(slope.numpy(), 8 * X)


def test_order_of_a_copy() -> None:
    x = tensor(X)
    assert x.copy("F").stride() == (1, 2)
    assert x.t().copy().stride() == (2, 1)
    assert x.t().copy("K").stride() == (1, 2)


BY_VALUE: dict[str, Callable[[Any], Any]] = {
    "polyfit": lambda x: np.polyfit(np.arange(4.0), x.reshape(4), 1),
    "roots": lambda x: np.roots(x.reshape(4)),
    "average": lambda x: np.average(x, weights=x),
    "unique": np.unique,
    "gradient": lambda x: np.gradient(x)[0],
}


@pytest.mark.parametrize("function", BY_VALUE.values(), ids=BY_VALUE)
def test_functions_that_look_at_values(function: Callable[[Any], Any]) -> None:
    x = tensor(X, requires_grad=True)
    y = function(x)
    assert_allclose(y.detach().numpy(), function(X))
    total: Any = lambda x: (function(x).real ** 2).sum()  # noqa: E731  # one for both sides
    assert_allclose(grad(total(x), x)[0].numpy(), ft.grad(total)(X), rtol=1e-10)


def test_decisions_by_value() -> None:
    x = tensor(X, requires_grad=True)
    assert np.allclose(x, X)
    assert np.array_equal(x, x)
    assert [list(np.asarray(i)) for i in np.nonzero(x > 2)] == [[1, 1], [0, 1]]
    assert_array_equal(np.asarray(np.bincount(x.reshape(4).astype(int))), [0, 1, 1, 1, 0, 1])


WRITES: dict[str, Callable[[Any], Any]] = {
    "fill": lambda x: x.fill(2.0),
    "partition": lambda x: x.partition(1),
    "copyto": lambda x: np.copyto(x, 7.0),
    "fill_diagonal": lambda x: np.fill_diagonal(x, 7.0),
    "put": lambda x: np.put(x, [1], [9.0]),
    "add.at": lambda x: np.add.at(x, 0, 1.0),
    "out": lambda x: np.multiply(x, 2.0, out=x),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_writes_by_functions_of_numpy(write: Callable[[Any], Any]) -> None:
    x, expected = tensor(X), X.copy()
    view = x[1]
    write(x)
    write(expected)
    assert_array_equal(x.numpy(), expected)
    assert_array_equal(view.numpy(), expected[1])
    assert x._version == 1
    leaf = tensor(X, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        write(leaf)
    assert_array_equal(leaf.detach().numpy(), X)


def test_a_write_by_numpy_is_recorded() -> None:
    x = tensor(X, requires_grad=True)
    y = x * 1
    saved = y * y
    np.copyto(y[0], x[1])
    assert_array_equal(grad(y.sum(), x)[0].numpy(), [[0.0, 0.0], [2.0, 2.0]])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        saved.sum().backward()


@pytest.mark.parametrize("name", ["tobytes", "strides", "flags", "ctypes"])
def test_names_of_arrays_say_where_they_are(name: str) -> None:
    x = tensor(X, requires_grad=True)
    with pytest.raises(AttributeError, match=rf"an array has: x.detach\(\).numpy\(\).{name}"):
        getattr(x, name)
    assert not hasattr(x, name)


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match=r"'Tensor' object has no attribute 'sine'$"):
        tensor(X).sine  # noqa: B018  # asked for


# names --------------------------------------------------------------------------------------------

METHODS = [
    name for name, method in vars(Tensor).items() if name[0] != "_" and inspect.isfunction(method)
]


@each("name", METHODS)
def test_a_wrong_keyword_is_reported_under_the_name_of_the_method(name: str) -> None:
    if name == "cuda":
        pytest.skip("refuses every call")
    x = tensor(X)
    with pytest.raises(TypeError) as error:
        getattr(x, name)(nonsense=1)
    assert (
        str(error.value)
        .removeprefix("Tensor.")
        .startswith((f"{name}(", f"{name.removesuffix('_')}(", "transpose("))
    )
    assert_array_equal(x.numpy(), X)


@each("name", [n for n in dir(torch) if inspect.isfunction(getattr(torch, n)) and n[0] != "_"])
def test_a_wrong_keyword_is_reported_under_the_name_of_the_function(name: str) -> None:
    with pytest.raises((TypeError, ValueError, ImportError, RuntimeError)) as error:
        getattr(torch, name)(tensor(X), nonsense=1)
    if isinstance(error.value, TypeError):
        assert str(error.value).startswith((f"{name}(", f"{name.removesuffix('_')}("))


def test_messages() -> None:
    x = tensor(X)
    with pytest.raises(TypeError, match=r"^sum\(\) got an unexpected keyword argument 'dims'$"):
        x.sum(dims=0)
    with pytest.raises(TypeError, match=r"^exp\(\) takes 1 positional argument but 2 were given$"):
        x.exp(1)
    with pytest.raises(TypeError, match=r"^zeros\(\) got an unexpected keyword argument 'dtyp'$"):
        torch.zeros(2, dtyp=int)


def test_public_names() -> None:
    assert dir(imperative) == sorted(imperative.__all__)
    assert not [name for name in dir(imperative) if name.startswith("_")]
    for name in imperative.__all__:
        value = getattr(imperative, name)
        assert value.__doc__
        if inspect.ismodule(value):
            assert importlib.import_module(f"functrans.autograd.{name}") is value


# special functions --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "theirs"),
    [
        ("bessel_j0", "j0"), ("bessel_j1", "j1"), ("bessel_y0", "y0"), ("bessel_y1", "y1"),
        ("modified_bessel_i0", "i0"), ("modified_bessel_i1", "i1"), ("modified_bessel_k0", "k0"),
        ("modified_bessel_k1", "k1"), ("scaled_modified_bessel_k0", "k0e"),
        ("scaled_modified_bessel_k1", "k1e"),
    ],
)  # fmt: skip
def test_bessel_functions_have_derivatives(name: str, theirs: str) -> None:
    x = tensor([0.7, 1.3, 2.9], requires_grad=True)
    reference = getattr(scipy.special, theirs)
    y = getattr(torch.special, name)(x)
    assert_allclose(y.detach().numpy(), reference(x.detach().numpy()))
    (slope,) = grad(y.sum(), x, create_graph=True)
    at, step = x.detach().numpy(), 1e-5
    expected = (reference(at + step) - reference(at - step)) / (2 * step)
    assert_allclose(slope.detach().numpy(), expected, rtol=1e-8)
    assert np.all(np.isfinite(grad(slope.sum(), x)[0].numpy()))
    assert_allclose(ft.vmap(ft.grad(reference))(at), slope.detach().numpy())


def test_the_zeta_of_scipy_takes_tensors() -> None:
    q = tensor(1.5, requires_grad=True)
    (slope,) = grad(scipy.special.zeta(2.5, q), q)
    assert_allclose(slope.numpy(), -2.5 * scipy.special.zeta(3.5, 1.5))
    assert_allclose(scipy.special.zeta(q).item(), scipy.special.zeta(1.5))


def _stepped(c: Any, w: Any) -> Any:
    return c[0] * w, c[1] + 1, c[2] * 2.0


CONTROL: dict[str, Callable[[Any, Any], Any]] = {
    "while_loop": lambda c, w: ft.lax.while_loop(lambda c: c[1] < 3, lambda c: _stepped(c, w), c),
    "fori_loop": lambda c, w: ft.lax.fori_loop(0, 3, lambda i, c: _stepped(c, w), c),
    "scan": lambda c, w: ft.lax.scan(lambda c, x: (_stepped(c, w), x), c, np.arange(3.0))[0],
    "cond": lambda c, w: ft.lax.cond(True, lambda c: _stepped(c, w), lambda c: c, c),
    "switch": lambda c, w: ft.lax.switch(1, [lambda c: c, lambda c: _stepped(c, w)], c),
}


@pytest.mark.parametrize("name", CONTROL)
def test_numbers_beside_tensors_go_through_control_flow(name: str) -> None:
    w = tensor(2.0, requires_grad=True)
    product, count, doubled = CONTROL[name]((w, 0, 1.0), w.detach())
    n = int(count)
    assert (product.item(), n, doubled.item()) == (2.0 * 2.0**n, n, 2.0**n)
    (slope,) = grad(product, w)
    assert slope.item() == 2.0**n
