"""``functrans.functional``: the nesting and the meaning of ``torch.autograd.functional``."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import functional
from functrans.core.state import open_traces
from functrans.errors import NonDifferentiableError, ShapeError

X = np.array([0.5, -1.0, 2.0])
Y = np.array([1.5, 0.25])


def scaled(x: Any, y: Any) -> Any:
    return np.sum(x) * y


def both(x: Any, y: Any) -> Any:
    return x * y[0], np.sum(x) * y


def energy(x: Any, y: Any) -> Any:
    return np.sum(x**3) * y[0] + y[1] ** 2


def assert_nested(result: Any, expected: Any) -> None:
    """Tuples where tuples are expected, arrays of the callers' own where arrays are."""
    if isinstance(expected, tuple):
        assert type(result) is tuple
        assert len(result) == len(expected)
        for one, want in zip(result, expected, strict=True):
            assert_nested(one, want)
        return
    assert type(result) is np.ndarray
    assert result.flags.writeable
    assert result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, atol=1e-12)


# jacobian ---------------------------------------------------------------------------------------

JACOBIANS: dict[str, tuple[Callable[..., Any], Any, Any]] = {
    "array to array": (lambda x: x**2, X, np.diag(2 * X)),
    "tuple of one in": (lambda x: x * 2, (X,), (2 * np.eye(3),)),
    "tuple of one out": (lambda x: (x * 2,), X, (2 * np.eye(3),)),
    "tuples of one": (lambda x: (x * 2,), (X,), ((2 * np.eye(3),),)),
    "tuple in": (scaled, (X, Y), (np.outer(Y, np.ones(3)), np.sum(X) * np.eye(2))),
    "tuple out": (lambda x: (x * 2, np.sum(x * x)), X, (2 * np.eye(3), 2 * X)),
    "tuples": (
        both,
        (X, Y),
        (
            (Y[0] * np.eye(3), np.outer(X, [1, 0])),
            (np.outer(Y, np.ones(3)), np.sum(X) * np.eye(2)),
        ),
    ),
    "scalar": (lambda x: x * x, 2.0, np.array(4.0)),
    "scalar to array": (lambda x: x * Y, np.array(2.0), Y),
    "array to scalar": (lambda x: np.sum(x * x), X, 2 * X),
    "matrices": (lambda x: x.T, np.ones((2, 3)), np.eye(6).reshape(2, 3, 2, 3).swapaxes(0, 1)),
    "independent": (
        lambda x, y: (x * 2, y),
        (X, Y),
        ((2 * np.eye(3), np.zeros((3, 2))), (np.zeros((2, 3)), np.eye(2))),
    ),
    "constant": (lambda x: Y, X, np.zeros((2, 3))),
    "empty": (lambda x: x[:0], X, np.zeros((0, 3))),
}


@pytest.mark.parametrize("name", JACOBIANS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"vectorize": True},
        {"strategy": "forward-mode", "vectorize": True},
        {"create_graph": True},
    ],
    ids=str,
)
def test_jacobian_nests_by_results_then_arguments(name: str, options: Any) -> None:
    fun, inputs, expected = JACOBIANS[name]
    assert_nested(functional.jacobian(fun, inputs, **options), expected)


def test_jacobian_runs_the_function_once_on_values() -> None:
    calls = []

    def fun(x: Any) -> Any:
        calls.append(1)
        return x * 2 if x[0] > 0 else x

    assert_nested(functional.jacobian(fun, X), 2 * np.eye(3))
    assert calls == [1]


def test_jacobian_of_complex_functions() -> None:
    z = np.array([1.0 + 2.0j, 0.5j])
    assert_nested(functional.jacobian(lambda z: z * z, z), np.diag(2 * z))
    assert_nested(functional.jacobian(lambda z: np.sum(abs(z) ** 2), z), 2 * np.conj(z))
    assert_nested(functional.jacobian(lambda x: x * 1j, X), 1j * np.eye(3))
    with pytest.raises(NonDifferentiableError, match="complex"):
        functional.jacobian(lambda z: np.abs(z), z, strategy="forward-mode")


# hessian ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options", [{}, {"vectorize": True}, {"outer_jacobian_strategy": "forward-mode"}], ids=str
)
def test_hessian_nests_by_arguments_twice(options: Any) -> None:
    assert_nested(functional.hessian(lambda x: np.sum(x**3), X, **options), np.diag(6 * X))
    assert_nested(functional.hessian(lambda x: np.sum(x**3), (X,), **options), ((np.diag(6 * X),),))
    cross = np.outer(3 * X**2, [1, 0])
    expected = ((np.diag(6 * X * Y[0]), cross), (cross.T, np.diag([0.0, 2.0])))
    assert_nested(functional.hessian(energy, (X, Y), **options), expected)
    assert_nested(functional.hessian(lambda x: x**3, 2.0, **options), np.array(12.0))


def test_hessian_of_one_element() -> None:
    for shape in ((1,), (1, 1), ()):
        result = functional.hessian(lambda x, s=shape: np.sum(x**3).reshape(s), X)
        assert_nested(result, np.diag(6 * X))
    assert_nested(functional.hessian(lambda x: (np.sum(x**3),), X), np.diag(6 * X))


def test_hessian_of_what_is_linear_or_unused_is_zero() -> None:
    assert_nested(functional.hessian(np.sum, X), np.zeros((3, 3)))
    result = functional.hessian(lambda x, y: np.sum(x**2), (X, Y))
    assert_nested(result, ((2 * np.eye(3), np.zeros((3, 2))), (np.zeros((2, 3)), np.zeros((2, 2)))))


# products ---------------------------------------------------------------------------------------


def test_vjp() -> None:
    assert_nested(functional.vjp(np.sin, X, X), (np.sin(X), np.cos(X) * X))
    assert_nested(functional.vjp(lambda x: np.sum(x * x), X), (np.sum(X * X), 2 * X))
    assert_nested(functional.vjp(lambda x: np.sum(x * x), (X,), 2.0), (np.sum(X * X), (4 * X,)))
    assert_nested(
        functional.vjp(both, (X, Y), (X, Y)),
        ((X * Y[0], np.sum(X) * Y), (Y[0] * X + Y @ Y, np.array([X @ X, 0]) + np.sum(X) * Y)),
    )
    assert_nested(functional.vjp(lambda x, y: x, (X, Y), X), (X, (X, np.zeros(2))))


def test_jvp() -> None:
    assert_nested(functional.jvp(np.sin, X, X), (np.sin(X), np.cos(X) * X))
    assert_nested(functional.jvp(lambda x: x * X, 2.0), (2 * X, X))
    assert_nested(
        functional.jvp(both, (X, Y), (X, Y)),
        ((X * Y[0], np.sum(X) * Y), (2 * X * Y[0], 2 * np.sum(X) * Y)),
    )
    assert_nested(functional.jvp(lambda x: (x, Y), X, X), ((X, Y), (X, np.zeros(2))))


@pytest.mark.parametrize("product", [functional.hvp, functional.vhp])
def test_hessian_vector_products(product: Any) -> None:
    assert_nested(product(lambda x: np.sum(x**3), X, X), (np.sum(X**3), 6 * X * X))
    assert_nested(product(lambda x: x**3, 2.0), (np.array(8.0), np.array(12.0)))
    assert_nested(product(lambda x: np.sum(x**3), (X,), (X,)), (np.sum(X**3), (6 * X * X,)))
    (xx, xy), (yx, yy) = functional.hessian(energy, (X, Y))
    assert_nested(
        product(energy, (X, Y), (X, Y)), (energy(X, Y), (xx @ X + xy @ Y, yx @ X + yy @ Y))
    )
    assert_nested(product(np.sum, X, X), (np.sum(X), np.zeros(3)))
    assert_nested(product(lambda x: np.sum(x**2).reshape(1), X, X)[1], 2 * X)


def test_products_do_not_share_memory_with_the_callers_arrays() -> None:
    v = np.ones(3)
    results = [
        functional.vjp(lambda x: x + 1.0, X, v),
        functional.jvp(lambda x: x + 1.0, X, v),
        functional.vjp(lambda x: x, X, v),
        functional.hvp(lambda x: np.sum(x * x) / 2, X, v),
    ]
    for pair in results:
        for result in pair:
            assert not np.shares_memory(result, v)
            assert not np.shares_memory(result, X)


def coupled(x: Any, y: Any) -> Any:
    return np.sum(x) * np.sum(y) + np.sum(x**2) + np.sum(y**2)


def separate(x: Any, y: Any) -> Any:
    return np.sum(x**2) + np.sum(y**2)


def half_linear(x: Any, y: Any) -> Any:
    return np.sum(x**2) + np.sum(y)


# strict -----------------------------------------------------------------------------------------

ALLOWED: list[tuple[Callable[..., Any], Callable[..., Any], Any, tuple[Any, ...]]] = [
    (functional.jacobian, scaled, (X, Y), ()),
    (functional.hessian, lambda x: np.sum(x**3), X, ()),
    (functional.hessian, coupled, (X, Y), ()),
    (functional.vjp, lambda x, y: (x * 2, y), (X, Y), ((X, Y),)),
    (functional.jvp, lambda x, y: (x * 2, y), (X, Y), ((X, Y),)),
    (functional.hvp, energy, (X, Y), ((X, Y),)),
    (functional.vhp, separate, (X, Y), ((X, Y),)),
]


@pytest.mark.parametrize(("transform", "fun", "inputs", "rest"), ALLOWED)
def test_strict_allows_what_depends(transform: Any, fun: Any, inputs: Any, rest: Any) -> None:
    strict = transform(fun, inputs, *rest, strict=True)
    for one, other in zip(
        ft.tree.leaves(strict), ft.tree.leaves(transform(fun, inputs, *rest)), strict=True
    ):
        np.testing.assert_array_equal(one, other)


REFUSED: list[tuple[Callable[..., Any], Callable[..., Any], Any, tuple[Any, ...], str]] = [
    (functional.jacobian, lambda x, y: (x * 2, y), (X, Y), (), "output 0 .* of input 1"),
    (functional.jacobian, lambda x: Y, X, (), "output 0 .* independent of input 0"),
    (functional.jacobian, lambda x: np.floor(x), X, (), "output 0 .* independent of input 0"),
    (functional.hessian, lambda x: np.sum(x), X, (), "gradient in input 0 .* input 0"),
    (functional.hessian, separate, (X, Y), (), "input 0 .* input 1"),
    (functional.vjp, lambda x, y: x * 2, (X, Y), (X,), "independent of input 1"),
    (functional.vjp, lambda x: Y, X, (Y,), "output 0 .* depends on no input"),
    (functional.jvp, lambda x: (x, Y), X, (X,), "output 1 .* depends on no input"),
    (functional.jvp, lambda x, y: x * 2, (X, Y), ((X, Y),), "independent of input 1"),
    (functional.hvp, lambda x, y: np.sum(x**2), (X, Y), ((X, Y),), "independent of input 1"),
    (functional.hvp, lambda x: np.sum(x), X, (X,), "gradient in input 0 is constant"),
    (functional.vhp, half_linear, (X, Y), ((X, Y),), "gradient in input 1"),
]


@pytest.mark.parametrize(("transform", "fun", "inputs", "rest", "message"), REFUSED)
def test_strict_refuses_what_does_not(
    transform: Any, fun: Any, inputs: Any, rest: Any, message: str
) -> None:
    with pytest.raises(RuntimeError, match=message + r".*test_functional\.py.*strict=False"):
        transform(fun, inputs, *rest, strict=True)
    transform(fun, inputs, *rest, strict=False)
    assert open_traces.get() == ()


# errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: functional.jacobian(np.sum, [X]), TypeError, "tuple of arrays, got list"),
        (lambda: functional.jacobian(np.sum, {"x": X}), TypeError, "got dict.*ft.jacobian"),
        (lambda: functional.jacobian(lambda x: [x], X), TypeError, "must return.*list"),
        (lambda: functional.jacobian(lambda x: (x, [x]), X), TypeError, "tuple with a list"),
        (lambda: functional.vjp(lambda x: {"a": x}, X, X), TypeError, "must return.*dict"),
        (lambda: functional.jvp(lambda x: None, X, X), TypeError, "must return.*NoneType"),
        (lambda: functional.jacobian(np.sum, (X, "a")), TypeError, r"inputs\[1\]"),
        (lambda: functional.jacobian(np.sum, np.arange(3)), NonDifferentiableError, "inputs is of"),
        (lambda: functional.vjp(np.argmax, X), NonDifferentiableError, "result 0 is i64"),
        (lambda: functional.hessian(np.sin, X), ShapeError, "scalar .one element., got f64.3."),
        (lambda: functional.hvp(lambda x: (np.sum(x), np.sum(x)), X, X), ShapeError, "one scalar"),
        (lambda: functional.vjp(np.sin, X), RuntimeError, "v is needed.*single element"),
        (lambda: functional.jvp(np.sin, X), RuntimeError, "v is needed.*single element"),
        (lambda: functional.hvp(np.sum, X), RuntimeError, "v is needed"),
        (
            lambda: functional.hvp(energy, (X, Y), X),
            RuntimeError,
            "v has 1 arrays, but inputs has 2",
        ),
        (lambda: functional.vjp(np.sin, X, Y), ShapeError, r"v has shape \(2,\)"),
        (lambda: functional.jvp(both, (X, Y), (Y, X)), ShapeError, r"v\[0\] has shape \(2,\)"),
        (lambda: functional.jacobian(np.sin, X, strategy="mixed"), ValueError, "strategy"),
        (
            lambda: functional.hessian(np.sum, X, outer_jacobian_strategy="x"),
            ValueError,
            "strategy",
        ),
        (lambda: functional.vjp(3, X), TypeError, "expected a function"),
    ],
)
def test_bad_input(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        call()
    assert open_traces.get() == ()


def test_functional_inside_transforms() -> None:
    def fun(x: Any) -> Any:
        return np.sum(functional.jacobian(lambda z: np.sin(z) * x, x) ** 2)

    h = 1e-6
    slope = [(fun(X + h * e) - fun(X - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(ft.grad(fun)(X), slope, rtol=1e-6)
    curve = functional.hessian(lambda x: functional.hvp(lambda z: np.sum(z**4), x, x)[0], X)
    np.testing.assert_allclose(curve, np.diag(12 * X**2))
    batch = ft.vmap(lambda x: functional.jacobian(np.sin, x))(np.stack([X, Y[:1].repeat(3)]))
    np.testing.assert_allclose(batch[0], np.diag(np.cos(X)))
    np.testing.assert_allclose(
        ft.jit(lambda x: functional.vhp(lambda z: np.sum(z**3), x, x)[1])(X), 6 * X * X
    )
