"""The transforms as functions: arguments, structures, results, their types and their ownership."""

import dataclasses
import functools
import inspect
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import functrans as ft
from functrans import errors

X = np.array([0.5, -1.0, 2.0])
Y = np.array([1.5, 0.25, -0.75])
FLOAT0 = np.dtype([("float0", "V")])


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Model:
    weights: Any
    bias: Any
    name: Any = None


def loss(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y**2)


def assert_own(result: Any, *callers: np.ndarray) -> None:
    """A plain ndarray that the caller may write to and that is nobody else's."""
    assert type(result) is np.ndarray
    assert result.flags.writeable
    for array in callers:
        assert not np.shares_memory(result, array)


# grad and value_and_grad ------------------------------------------------------------------------


def test_grad_is_with_respect_to_the_first_argument() -> None:
    np.testing.assert_allclose(ft.grad(loss)(X, Y), np.cos(X) * Y**2)


@pytest.mark.parametrize("argnums", [1, -1])
def test_argnums_counts_from_either_end(argnums: int) -> None:
    np.testing.assert_allclose(ft.grad(loss, argnums)(X, Y), 2 * np.sin(X) * Y)


@pytest.mark.parametrize("argnums", [(0, 1), [0, 1], (0, -1)])
def test_several_argnums_give_a_tuple(argnums: Any) -> None:
    result = ft.grad(loss, argnums)(X, Y)
    assert type(result) is tuple
    np.testing.assert_allclose(result[0], np.cos(X) * Y**2)
    np.testing.assert_allclose(result[1], 2 * np.sin(X) * Y)


def test_argnums_of_one_in_a_tuple_give_a_tuple_of_one() -> None:
    result = ft.grad(loss, (1,))(X, Y)
    assert type(result) is tuple
    assert len(result) == 1


def test_argnums_order_is_the_order_of_the_result() -> None:
    by_y, by_x = ft.grad(loss, (1, 0))(X, Y)
    np.testing.assert_allclose(by_y, 2 * np.sin(X) * Y)
    np.testing.assert_allclose(by_x, np.cos(X) * Y**2)


def test_keyword_arguments_are_passed_on() -> None:
    def scaled(x: Any, *, scale: float, shift: Any) -> Any:
        return np.sum(scale * x**2 + shift)

    np.testing.assert_allclose(ft.grad(scaled)(X, scale=3.0, shift=Y), 6 * X)


def test_static_keyword_arguments_may_be_anything() -> None:
    def select(x: Any, mode: str, table: dict[str, Any]) -> Any:
        return np.sum(table[mode](x))

    table = {"square": lambda x: x * x}
    np.testing.assert_allclose(ft.grad(select)(X, mode="square", table=table), 2 * X)
    np.testing.assert_allclose(ft.grad(select)(X, "square", table), 2 * X)


def test_value_and_grad_gives_both() -> None:
    value, gradient = ft.value_and_grad(loss)(X, Y)
    np.testing.assert_allclose(value, loss(X, Y))
    np.testing.assert_allclose(gradient, np.cos(X) * Y**2)


def test_has_aux_carries_plain_values_out() -> None:
    def with_aux(x: Any) -> Any:
        y = x * 2
        return np.sum(y**2), {"y": y, "text": "note", "none": None, "number": 3}

    gradient, aux = ft.grad(with_aux, has_aux=True)(X)
    np.testing.assert_allclose(gradient, 8 * X)
    np.testing.assert_allclose(aux["y"], 2 * X)
    assert_own(aux["y"], X)
    assert (aux["text"], aux["none"], aux["number"]) == ("note", None, 3)
    (value, aux), gradient = ft.value_and_grad(with_aux, has_aux=True)(X)
    np.testing.assert_allclose(value, np.sum(4 * X**2))
    np.testing.assert_allclose(aux["y"], 2 * X)


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "linearize", "jacrev", "jacfwd"])
def test_aux_that_is_an_argument_is_a_copy(transform: str) -> None:
    x = X.copy()

    def fun(x: Any) -> Any:
        return np.sum(x * x), x

    results = {
        "grad": lambda: ft.grad(fun, has_aux=True)(x),
        "vjp": lambda: ft.vjp(fun, x, has_aux=True),
        "jvp": lambda: ft.jvp(fun, (x,), (x,), has_aux=True),
        "linearize": lambda: ft.linearize(fun, x, has_aux=True),
        "jacrev": lambda: ft.jacrev(fun, has_aux=True)(x),
        "jacfwd": lambda: ft.jacfwd(fun, has_aux=True)(x),
    }
    assert_own(results[transform]()[-1], x)


def test_aux_written_to_does_not_reach_the_pullback() -> None:
    _, pullback, aux = ft.vjp(lambda x: (np.sum(x * x), x), X, has_aux=True)
    aux[:] = 100
    np.testing.assert_allclose(pullback(1.0)[0], 2 * X)


def test_gradient_has_the_structure_of_the_argument() -> None:
    params = {
        "pair": Pair(X, 2.0),
        "model": Model(np.eye(3), Y),
        "list": [X, (Y, None)],
        "none": None,
        "empty": (),
    }

    def fun(p: Any) -> Any:
        total = np.sum(p["pair"].left * p["pair"].right) + np.sum(p["model"].weights @ p["list"][0])
        return total + np.sum(p["model"].bias * p["list"][1][0])

    gradient = ft.grad(fun)(params)
    assert list(gradient) == list(params)
    assert type(gradient["pair"]) is Pair
    assert type(gradient["model"]) is Model
    assert gradient["none"] is None
    assert gradient["model"].name is None
    assert gradient["empty"] == ()
    assert type(gradient["list"]) is list
    assert gradient["list"][1][1] is None
    np.testing.assert_allclose(gradient["pair"].left, [2, 2, 2])
    np.testing.assert_allclose(gradient["pair"].right, np.sum(X))
    np.testing.assert_allclose(gradient["model"].weights, np.outer(np.ones(3), X))
    np.testing.assert_allclose(gradient["model"].bias, Y)
    np.testing.assert_allclose(gradient["list"][0], [1, 1, 1])
    np.testing.assert_allclose(gradient["list"][1][0], Y)


def test_gradient_by_nothing_is_nothing() -> None:
    assert ft.grad(lambda x: 1.0)(None) is None
    assert ft.grad(lambda x: 1.0)(()) == ()


@pytest.mark.parametrize(
    "argument", [X, X.astype(np.float32), 2.0, np.float64(2), np.float32(2), np.array(2.0), X[:0]]
)
def test_gradient_is_an_ndarray_of_the_arguments_shape_and_dtype(argument: Any) -> None:
    gradient = ft.grad(lambda x: np.sum(x * x))(argument)
    assert_own(gradient)
    assert gradient.shape == np.shape(argument)
    assert gradient.dtype == np.asarray(argument).dtype
    np.testing.assert_allclose(gradient, 2 * np.asarray(argument))


def test_value_is_a_0d_ndarray() -> None:
    value, _ = ft.value_and_grad(lambda x: x * x)(3.0)
    assert type(value) is np.ndarray
    assert value.shape == ()


def test_function_that_ignores_an_argument_has_zero_gradient() -> None:
    by_x, by_y = ft.grad(lambda x, y: np.sum(x), (0, 1))(X, Y)
    np.testing.assert_array_equal(by_x, np.ones(3))
    np.testing.assert_array_equal(by_y, np.zeros(3))
    assert_own(by_y)


def test_constant_function_has_zero_gradient() -> None:
    np.testing.assert_array_equal(ft.grad(lambda x: 3.0)(X), np.zeros(3))
    np.testing.assert_array_equal(ft.grad(lambda x: np.float64(3))(X), np.zeros(3))


def test_identity_has_gradient_one_and_does_not_return_the_argument() -> None:
    x = np.array(2.0)
    value, gradient = ft.value_and_grad(lambda x: x)(x)
    np.testing.assert_array_equal(gradient, 1.0)
    assert_own(value, x)


def test_one_array_passed_twice_has_two_gradients() -> None:
    by_x, by_y = ft.grad(loss, (0, 1))(X, X)
    np.testing.assert_allclose(by_x, np.cos(X) * X**2)
    np.testing.assert_allclose(by_y, 2 * np.sin(X) * X)
    assert_own(by_x, by_y)


def test_one_array_twice_in_a_tree_has_two_gradients() -> None:
    gradient = ft.grad(lambda t: np.sum(t["a"] * 2) + np.sum(t["b"]))({"a": X, "b": X})
    np.testing.assert_array_equal(gradient["a"], 2 * np.ones(3))
    np.testing.assert_array_equal(gradient["b"], np.ones(3))


def test_constant_result_is_not_the_captured_array() -> None:
    captured = np.array(3.0)
    value, _ = ft.value_and_grad(lambda x: captured)(1.0)
    assert_own(value, captured)
    assert_own(ft.vjp(lambda x: captured, 1.0)[0], captured)
    assert_own(ft.jvp(lambda x: captured, (1.0,), (1.0,))[0], captured)
    assert_own(ft.linearize(lambda x: captured, 1.0)[0], captured)
    assert_own(ft.vmap(lambda x: captured, out_axes=None)(X), captured)
    program = ft.make_jaxpr(lambda x: Y)(1.0)
    assert_own(ft.eval_jaxpr(program, None, 1.0)[0], Y)


def test_allow_int_gives_float0_for_integers() -> None:
    gradient = ft.grad(lambda t: np.sum(t["x"] * t["n"]), allow_int=True)(
        {"x": X, "n": np.arange(3)}
    )
    np.testing.assert_array_equal(gradient["x"], np.arange(3))
    assert gradient["n"].dtype == FLOAT0
    assert gradient["n"].shape == (3,)


def test_transformed_function_is_named_after_transform_and_function() -> None:
    transforms: list[Callable[..., Any]] = [
        ft.grad, ft.value_and_grad, ft.jacfwd, ft.jacrev, ft.jacobian, ft.hessian, ft.hessian_diag,
        ft.vmap, ft.make_jaxpr, ft.laplacian, ft.forward_laplacian, ft.checkpoint,
    ]  # fmt: skip
    for transform in transforms:
        made = transform(loss)
        assert made.__name__ == f"{transform.__name__}(loss)"
        assert repr(made).startswith(f"<function {transform.__name__}(loss) at ")
        assert made.__doc__ == loss.__doc__
        assert inspect.unwrap(made) is loss
    assert repr(ft.jit(ft.vmap(ft.grad(loss)))) == "<jit of vmap(grad(loss))>"
    assert repr(ft.ggn(loss, np.sum)) == "<ggn of loss and sum>"


@pytest.mark.parametrize(
    ("transform", "label"), [(ft.hessian, "hessian of loss"), (ft.hessian_diag, "hessian_diag of")]
)
def test_errors_name_the_transform_that_was_called(transform: Any, label: str) -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match=f"^{label}") as caught:
        transform(loss)(3, Y)
    assert "allow_int" not in str(caught.value)


@pytest.mark.parametrize(
    "fun",
    [
        functools.partial(loss, y=Y),
        type("Callable", (), {"__call__": lambda self, x: loss(x, Y)})(),
    ],
    ids=["partial", "callable"],
)
def test_any_callable_is_accepted(fun: Any) -> None:
    np.testing.assert_allclose(ft.grad(fun)(X), np.cos(X) * Y**2)
    np.testing.assert_allclose(ft.jacfwd(fun)(X), np.cos(X) * Y**2)
    np.testing.assert_allclose(ft.vmap(fun)(np.stack([X, X])), [loss(X, Y)] * 2)
    assert len(ft.make_jaxpr(fun)(X).invars) == 1


def test_methods_are_accepted() -> None:
    class Quadratic:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        def value(self, x: Any) -> Any:
            return self.scale * np.sum(x**2)

    np.testing.assert_allclose(ft.grad(Quadratic(3.0).value)(X), 6 * X)


# vjp --------------------------------------------------------------------------------------------


def test_vjp_pulls_back_any_number_of_times() -> None:
    out, pullback = ft.vjp(lambda x, y: x * y, X, Y)
    np.testing.assert_allclose(out, X * Y)
    for scale in (1.0, 2.0):
        by_x, by_y = pullback(scale * np.ones(3))
        np.testing.assert_allclose(by_x, scale * Y)
        np.testing.assert_allclose(by_y, scale * X)


def test_results_of_a_pullback_are_the_callers() -> None:
    ct = np.ones(3)
    _, pullback = ft.vjp(lambda x: x + 1.0, X)
    (first,) = pullback(ct)
    assert_own(first, ct)
    first[:] = 7
    np.testing.assert_array_equal(pullback(ct)[0], np.ones(3))
    np.testing.assert_array_equal(ct, np.ones(3))


@pytest.mark.parametrize("start", ["vjp", "linearize"])
def test_writing_to_the_result_does_not_change_the_derivative(start: str) -> None:
    out, derivative = getattr(ft, start)(np.exp, X)  # the result is a residual of exp
    out[:] = 0
    product = derivative(np.ones(3))
    np.testing.assert_allclose(product[0] if start == "vjp" else product, np.exp(X))


@pytest.mark.parametrize("start", ["vjp", "linearize"])
def test_writing_to_the_argument_afterwards_does_not_change_the_derivative(start: str) -> None:
    x, y = X.copy(), Y.copy()
    _, derivative = getattr(ft, start)(lambda x: x * x * y, x)
    x[:] = 0
    y[:] = 0
    product = derivative(np.ones(3))
    np.testing.assert_allclose(product[0] if start == "vjp" else product, 2 * X * Y)


def test_results_of_vjp_are_not_views_of_one_another() -> None:
    (a, b), _ = ft.vjp(lambda x: (x, x), X)
    assert_own(a, X, b)
    assert_own(b, X, a)
    y = X.copy()
    whole, part = ft.vjp(lambda x: (x * 1.0, (x * 1.0)[:2]), y)[0]
    assert_own(part, whole, y)


def test_vjp_of_trees() -> None:
    def fun(t: Any) -> Any:
        return {"a": t.left * 2.0, "b": [t.left * t.right, None]}

    out, pullback = ft.vjp(fun, Pair(X, Y))
    assert list(out) == ["a", "b"]
    (ct,) = pullback({"a": np.ones(3), "b": [np.ones(3), None]})
    assert type(ct) is Pair
    np.testing.assert_allclose(ct.left, 2.0 + Y)
    np.testing.assert_allclose(ct.right, X)


def test_vjp_with_one_node_as_several_results() -> None:
    def fun(x: Any) -> Any:
        y = np.sin(x)
        return y, y, (y, x)

    _, pullback = ft.vjp(fun, X)
    (ct,) = pullback((np.ones(3), 2 * np.ones(3), (3 * np.ones(3), Y)))
    np.testing.assert_allclose(ct, 6 * np.cos(X) + Y)


def test_vjp_with_results_that_depend_on_nothing() -> None:
    _, pullback = ft.vjp(lambda x: (x * 2, 1.0, np.arange(3), X), X)
    (ct,) = pullback((np.ones(3), 5.0, np.zeros(3), np.ones(3)))
    np.testing.assert_allclose(ct, [2, 2, 2])


def test_vjp_of_integer_results_ignores_their_cotangents() -> None:
    _, pullback = ft.vjp(lambda x: (np.sum(x), np.argmax(x)), X)
    np.testing.assert_allclose(pullback((1.0, 0))[0], np.ones(3))


def test_vjp_takes_python_and_integer_cotangents() -> None:
    _, pullback = ft.vjp(lambda x: np.sum(x * x), X)
    for one in (1, 1.0, np.float32(1), np.array(1)):
        np.testing.assert_allclose(pullback(one)[0], 2 * X)


def test_cotangents_take_the_dtype_of_the_result() -> None:
    _, pullback = ft.vjp(lambda x: x * x, X.astype(np.float32))
    (ct,) = pullback(np.ones(3, np.float64))
    assert ct.dtype == np.float32


def test_a_pullback_inside_a_transform_sees_the_outer_values() -> None:
    def fun(x: Any) -> Any:
        _, pullback = ft.vjp(lambda z: z**3, x)
        return pullback(1.0)[0]

    np.testing.assert_allclose(ft.grad(fun)(2.0), 12.0)


def test_an_outer_array_written_to_between_vjp_and_pullback_counts_as_it_was() -> None:
    def fun(x: Any) -> Any:
        y = x * 1.0
        _, by_both = ft.vjp(lambda z: np.sum(z * z * y), y)
        y[...] = 0.0
        return np.sum(by_both(1.0)[0])  # 2 * y * y

    np.testing.assert_allclose(ft.grad(fun)(X), 4 * X)


# jvp --------------------------------------------------------------------------------------------


def test_jvp_gives_value_and_tangent() -> None:
    out, tangent = ft.jvp(loss, (X, Y), (Y, X))
    np.testing.assert_allclose(out, loss(X, Y))
    np.testing.assert_allclose(tangent, np.sum(np.cos(X) * Y**3 + 2 * np.sin(X) * Y * X))


def test_jvp_of_trees() -> None:
    out, tangent = ft.jvp(
        lambda t, s: {"u": t.left * s, "v": (t.right,)}, (Pair(X, Y), 2.0), (Pair(Y, X), 1.0)
    )
    np.testing.assert_allclose(out["u"], 2 * X)
    np.testing.assert_allclose(tangent["u"], 2 * Y + X)
    np.testing.assert_allclose(tangent["v"][0], X)


def test_jvp_of_integers_has_float0_tangents() -> None:
    _, (moved, index) = ft.jvp(lambda x: (x * 2, np.argmax(x)), (X,), (Y,))
    np.testing.assert_allclose(moved, 2 * Y)
    assert index.dtype == FLOAT0


def test_jvp_of_constants_has_zero_tangents() -> None:
    out, tangent = ft.jvp(lambda x: (1.0, Y), (X,), (X,))
    np.testing.assert_array_equal(out[1], Y)
    np.testing.assert_array_equal(tangent[0], 0.0)
    np.testing.assert_array_equal(tangent[1], np.zeros(3))
    assert_own(out[1], Y)


def test_results_of_jvp_are_the_callers() -> None:
    x, v = X.copy(), Y.copy()
    out, tangent = ft.jvp(lambda x: x, (x,), (v,))
    assert_own(out, x, v)
    assert_own(tangent, x, v, out)
    outs, tangents = ft.jvp(lambda x: (x, x), (x,), (v,))
    assert_own(outs[0], outs[1])
    assert_own(tangents[0], tangents[1])


def test_jvp_with_aux() -> None:
    out, tangent, aux = ft.jvp(lambda x: (x * 2, {"x": x, "s": "s"}), (X,), (Y,), has_aux=True)
    np.testing.assert_allclose(out, 2 * X)
    np.testing.assert_allclose(tangent, 2 * Y)
    np.testing.assert_allclose(aux["x"], X)
    assert aux["s"] == "s"


def test_jvp_keeps_single_precision() -> None:
    x = X.astype(np.float32)
    out, tangent = ft.jvp(lambda x: np.sin(x) * 2.0 + 1, (x,), (Y,))
    assert out.dtype == tangent.dtype == np.float32


# linearize and linear_transpose -----------------------------------------------------------------


def test_linearize_runs_the_function_once() -> None:
    calls = []

    def fun(x: Any) -> Any:
        calls.append(1)
        return np.sin(x) * x

    out, pushforward = ft.linearize(fun, X)
    np.testing.assert_allclose(out, np.sin(X) * X)
    for tangent in (X, Y):
        np.testing.assert_allclose(pushforward(tangent), (np.cos(X) * X + np.sin(X)) * tangent)
    assert len(calls) == 1


def test_linearize_of_several_arguments_and_results() -> None:
    out, pushforward = ft.linearize(lambda x, t: (x * t["s"], 1.0, x), X, {"s": 2.0})
    product, constant, same = pushforward(Y, {"s": 1.0})
    np.testing.assert_allclose(product, 2 * Y + X)
    np.testing.assert_array_equal(constant, 0.0)
    np.testing.assert_array_equal(same, Y)
    assert_own(same, Y)
    assert_own(out[2], X)


def test_linearize_with_aux() -> None:
    out, pushforward, aux = ft.linearize(lambda x: (x * x, x), 3.0, has_aux=True)
    np.testing.assert_allclose([out, pushforward(1.0), aux], [9, 6, 3])


def test_linear_transpose_is_the_adjoint() -> None:
    A = np.arange(6.0).reshape(2, 3)

    def fun(x: Any, y: Any) -> Any:
        return A @ x + 2.0 * y, -y[0]

    transposed = ft.linear_transpose(fun, X, Y[:2])
    u, w = np.array([1.0, -2.0]), 3.0
    by_x, by_y = transposed((u, w))
    np.testing.assert_allclose(by_x, A.T @ u)
    np.testing.assert_allclose(by_y, 2 * u - np.array([w, 0]))


def test_linear_transpose_needs_shapes_only() -> None:
    transposed = ft.linear_transpose(lambda x: x[::2], ft.ShapeDtypeStruct((3,), np.float32))
    (ct,) = transposed(np.ones(2))
    np.testing.assert_array_equal(ct, [1, 0, 1])
    assert ct.dtype == np.float32


def test_linear_transpose_of_an_unused_argument_is_zero() -> None:
    _, by_y = ft.linear_transpose(lambda x, y: x * 2.0, X, Y)(X)
    np.testing.assert_array_equal(by_y, np.zeros(3))


# Jacobians --------------------------------------------------------------------------------------


def field(x: Any) -> Any:
    return np.array([x[0] * x[1], np.sin(x[2]), x[0] ** 2, x[1]], like=x)


FIELD = np.array([[X[1], X[0], 0], [0, 0, np.cos(X[2])], [2 * X[0], 0, 0], [0, 1, 0]])
JACOBIANS = [ft.jacfwd, ft.jacrev, ft.jacobian]


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_has_result_axes_then_argument_axes(jacobian: Any) -> None:
    np.testing.assert_allclose(jacobian(field)(X), FIELD)
    cube = jacobian(lambda x: x[:, None] * Y)(X)
    assert cube.shape == (3, 3, 3)
    np.testing.assert_allclose(cube, np.eye(3)[:, None, :] * Y[:, None])


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_of_scalars(jacobian: Any) -> None:
    np.testing.assert_allclose(jacobian(lambda x: x**3)(2.0), 12.0)
    np.testing.assert_allclose(jacobian(lambda x: x * Y)(2.0), Y)
    np.testing.assert_allclose(jacobian(lambda x: np.sum(x * Y))(X), Y)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_of_trees_nests_results_then_arguments(jacobian: Any) -> None:
    def fun(p: Any, s: Any) -> Any:
        return Pair(p["w"] * s, [p["b"]])

    result = jacobian(fun, (0, 1))({"w": X, "b": Y}, 2.0)
    assert type(result) is Pair
    by_p, by_s = result.left
    np.testing.assert_allclose(by_p["w"], 2 * np.eye(3))
    np.testing.assert_allclose(by_p["b"], np.zeros((3, 3)))
    np.testing.assert_allclose(by_s, X)
    by_p, by_s = result.right[0]
    np.testing.assert_allclose(by_p["b"], np.eye(3))
    np.testing.assert_allclose(by_s, np.zeros(3))


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_of_constants_and_unused_arguments_is_zero(jacobian: Any) -> None:
    by_x, by_y = jacobian(lambda x, y: (x * 2, Y), (0, 1))(X, Y[:2])
    np.testing.assert_array_equal(by_x[1], np.zeros((3, 2)))
    np.testing.assert_array_equal(by_y[0], np.zeros((3, 3)))


@pytest.mark.parametrize("jacobian", JACOBIANS)
@pytest.mark.parametrize(
    ("fun", "x", "shape"),
    [
        (np.sin, np.zeros(0), (0, 0)),
        (lambda x: x[:0], X, (0, 3)),
        (lambda x: np.sum(x), np.zeros(0), (0,)),
        (lambda x: np.sum(x[:0]), X, (3,)),
        (lambda x: np.zeros((2, 0)) + np.sum(x), X, (2, 0, 3)),
    ],
)
def test_jacobian_of_empty_arrays(jacobian: Any, fun: Any, x: Any, shape: Any) -> None:
    result = jacobian(fun)(x)
    assert result.shape == shape
    assert not result.any()


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_blocks_are_arrays_of_their_own(jacobian: Any) -> None:
    a, b = jacobian(lambda x: (x, x))(X)
    assert_own(a, b)
    assert_own(b, a)


@pytest.mark.parametrize("jacobian", JACOBIANS)
def test_jacobian_with_aux_and_keywords(jacobian: Any) -> None:
    result, aux = jacobian(lambda x, scale: (x * scale, {"s": scale, "x": x}), has_aux=True)(
        X, scale=3.0
    )
    np.testing.assert_allclose(result, 3 * np.eye(3))
    assert aux["s"] == 3.0
    np.testing.assert_allclose(aux["x"], X)


def test_jacrev_allows_integers() -> None:
    by_x, by_n = ft.jacrev(lambda x, n: x * n, (0, 1), allow_int=True)(X, np.arange(3))
    np.testing.assert_allclose(by_x, np.diag([0, 1, 2]))
    assert by_n.dtype == FLOAT0
    assert by_n.shape == (3, 3)


def test_jacobian_is_the_same_in_chunks() -> None:
    A = np.arange(12.0).reshape(4, 3)
    for fun in (lambda x: np.sin(A @ x), lambda x: np.tanh(A.T @ A @ x) * x[0]):
        whole = [jacobian(fun)(X) for jacobian in JACOBIANS]
        with ft.config(jacobian_memory_bytes=100):  # the result fits, a batch does not
            pieces = [jacobian(fun)(X) for jacobian in JACOBIANS]
        for first, second in zip(whole, pieces, strict=True):
            np.testing.assert_allclose(first, second)
        for chunk_size in (1, 2, 100):
            np.testing.assert_allclose(ft.jacobian(fun, chunk_size=chunk_size)(X), whole[0])


@pytest.mark.parametrize("transform", [*JACOBIANS, ft.hessian])
def test_a_result_beyond_the_memory_budget_is_refused(transform: Any) -> None:
    with (
        ft.config(jacobian_memory_bytes=1000),
        pytest.raises(MemoryError, match=r"20 x 20 entries.*jacobian_memory_bytes"),
    ):
        transform(lambda x: np.sum(x**3) if transform is ft.hessian else np.sin(x))(np.ones(20))


def test_jacobian_chooses_by_shape_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "functrans"):
        ft.jacobian(lambda x: np.sum(x))(X)
        ft.jacobian(lambda x: x * Y)(2.0)
    first, second = (record.getMessage() for record in caplog.records)
    assert "reverse mode for 1 results of 3 arguments" in first
    assert "forward mode for 3 results of 1 arguments" in second


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_in_a_given_mode(mode: str) -> None:
    np.testing.assert_allclose(ft.jacobian(field, mode=mode)(X), FIELD)


def test_hessian_is_the_jacobian_of_the_gradient() -> None:
    def fun(x: Any) -> Any:
        return np.sum(np.sin(x)) * x[0] + x[1] ** 3

    expected = ft.jacrev(ft.grad(fun))(X)
    np.testing.assert_allclose(ft.hessian(fun)(X), expected)
    np.testing.assert_allclose(ft.jacfwd(ft.jacfwd(fun))(X), expected)
    np.testing.assert_allclose(ft.jacrev(ft.jacfwd(fun))(X), expected)
    np.testing.assert_allclose(expected, expected.T)


def test_hessian_of_trees_and_several_results() -> None:
    result = ft.hessian(lambda p: {"q": p["a"] ** 2 * p["b"], "l": p["a"]})({"a": 2.0, "b": 3.0})
    np.testing.assert_allclose(result["q"]["a"]["a"], 6.0)
    np.testing.assert_allclose(result["q"]["a"]["b"], 4.0)
    np.testing.assert_allclose(result["q"]["b"]["a"], 4.0)
    np.testing.assert_allclose(result["q"]["b"]["b"], 0.0)
    np.testing.assert_allclose(result["l"]["a"]["b"], 0.0)


def test_hessian_of_several_arguments() -> None:
    (xx, xy), (yx, yy) = ft.hessian(loss, (0, 1))(X, Y)
    np.testing.assert_allclose(xx, np.diag(-np.sin(X) * Y**2))
    np.testing.assert_allclose(xy, np.diag(2 * np.cos(X) * Y))
    np.testing.assert_allclose(yx, xy.T)
    np.testing.assert_allclose(yy, np.diag(2 * np.sin(X)))


def test_hessian_with_aux() -> None:
    result, aux = ft.hessian(lambda x: (np.sum(x**3), x), has_aux=True)(X)
    np.testing.assert_allclose(result, np.diag(6 * X))
    np.testing.assert_allclose(aux, X)
    assert type(aux) is np.ndarray


@pytest.mark.parametrize("product", [ft.hvp, ft.vhp])
def test_hessian_vector_products(product: Any) -> None:
    np.testing.assert_allclose(product(lambda x: np.sum(x**3), (X,), (Y,)), 6 * X * Y)
    by_x, by_y = product(loss, (X, Y), (Y, X))
    (xx, xy), (yx, yy) = ft.hessian(loss, (0, 1))(X, Y)
    np.testing.assert_allclose(by_x, xx @ Y + xy @ X)
    np.testing.assert_allclose(by_y, yx @ Y + yy @ X)
    tree = product(lambda p: p["a"] ** 2 * p["b"], ({"a": 2.0, "b": 3.0},), ({"a": 1.0, "b": 0.0},))
    np.testing.assert_allclose([tree["a"], tree["b"]], [6.0, 4.0])


def test_hessian_diag_is_the_diagonal_of_the_hessian() -> None:
    def fun(x: Any) -> Any:
        return np.sum(np.sin(x)) * x[0] + x[1] ** 3

    np.testing.assert_allclose(ft.hessian_diag(fun)(X), np.diag(ft.hessian(fun)(X)))
    np.testing.assert_allclose(ft.hessian_diag(fun, chunk_size=2)(X), np.diag(ft.hessian(fun)(X)))


# vmap -------------------------------------------------------------------------------------------

BATCH = np.arange(12.0).reshape(4, 3) / 10


def test_vmap_equals_a_loop() -> None:
    result = ft.vmap(loss, in_axes=(0, None))(BATCH, Y)
    np.testing.assert_allclose(result, [loss(x, Y) for x in BATCH])
    assert_own(result, BATCH)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_in_axes_and_out_axes(axis: int) -> None:
    rows = np.moveaxis(BATCH, axis, 0)
    expected = np.stack([row * 2 for row in rows])
    np.testing.assert_allclose(ft.vmap(lambda x: x * 2, in_axes=axis)(BATCH), expected)
    np.testing.assert_allclose(
        ft.vmap(lambda x: x * 2, in_axes=axis, out_axes=1)(BATCH), expected.T
    )
    np.testing.assert_allclose(
        ft.vmap(lambda x: x * 2, in_axes=[axis], out_axes=-1)(BATCH), expected.T
    )


def test_axes_are_tree_prefixes() -> None:
    def fun(p: Any, s: Any) -> Any:
        return {"u": p["w"] * s, "v": (p["b"], s)}

    result = ft.vmap(fun, in_axes=({"w": 0, "b": None}, None), out_axes={"u": 1, "v": None})(
        {"w": BATCH, "b": Y}, 2.0
    )
    np.testing.assert_allclose(result["u"], 2 * BATCH.T)
    np.testing.assert_array_equal(result["v"][0], Y)
    assert_own(result["v"][0], Y)


def test_vmap_of_keywords_maps_their_first_axis() -> None:
    result = ft.vmap(lambda x, y: x * y, in_axes=0)(BATCH, y=BATCH)
    np.testing.assert_allclose(result, BATCH**2)


def test_results_that_do_not_depend_on_the_batch_are_repeated() -> None:
    result = ft.vmap(lambda x: (Y, 1.0))(BATCH)
    np.testing.assert_array_equal(result[0], np.stack([Y] * 4))
    np.testing.assert_array_equal(result[1], np.ones(4))
    assert_own(result[0], Y)


def test_vmap_in_chunks() -> None:
    for chunk_size in (1, 3, 4, 9):
        result = ft.vmap(loss, in_axes=(0, None), chunk_size=chunk_size)(BATCH, Y)
        np.testing.assert_allclose(result, [loss(x, Y) for x in BATCH])
    constant, moved = ft.vmap(lambda x: (Y, x), out_axes=(0, 1), chunk_size=3)(BATCH)
    np.testing.assert_array_equal(constant, np.stack([Y] * 4))
    np.testing.assert_array_equal(moved, BATCH.T)


def test_vmap_of_an_empty_batch() -> None:
    result = ft.vmap(loss, in_axes=(0, None))(np.zeros((0, 3)), Y)
    assert result.shape == (0,)
    assert ft.vmap(lambda x: x[:, None])(np.zeros((0, 3))).shape == (0, 3, 1)
    assert ft.vmap(ft.grad(loss), in_axes=(0, None))(np.zeros((0, 3)), Y).shape == (0, 3)


def test_axis_size_without_mapped_arguments() -> None:
    result = ft.vmap(lambda x: x * 2, in_axes=None, axis_size=3)(2.0)
    np.testing.assert_array_equal(result, [4, 4, 4])


def test_unmapped_arguments_are_plain_values() -> None:
    def fun(x: Any, flag: float, n: Any) -> Any:
        if flag > 0 and np.sin(1.0) > 0:
            for _ in range(int(n)):
                x = x * 2
        return x

    result = ft.vmap(fun, in_axes=(0, None, None))(BATCH, 1.0, np.array(3))
    np.testing.assert_array_equal(result, 8 * BATCH)


def test_unmapped_arguments_may_be_anything() -> None:
    result = ft.vmap(lambda x, mode: x if mode == "same" else -x, in_axes=(0, None))(BATCH, "same")
    np.testing.assert_array_equal(result, BATCH)


def test_nested_vmap() -> None:
    outer = ft.vmap(ft.vmap(lambda x, y: x * y, in_axes=(None, 0)), in_axes=(0, None))(X, Y)
    np.testing.assert_allclose(outer, np.outer(X, Y))


def test_vmap_keeps_integers_and_booleans() -> None:
    n, flag = ft.vmap(lambda n: (n + 1, n > 1))(np.arange(3))
    assert n.dtype == np.int64
    assert flag.dtype == bool


# programs ---------------------------------------------------------------------------------------


def test_make_jaxpr_of_trees_names_its_arguments() -> None:
    program = ft.make_jaxpr(lambda p, s: p["w"] * s)({"w": X}, s=2.0)
    assert program.arg_names == ("args[0]['w']", "kwargs['s']")
    np.testing.assert_allclose(ft.eval_jaxpr(program, None, X, 3.0)[0], 3 * X)


def test_make_jaxpr_with_static_arguments() -> None:
    program = ft.make_jaxpr(lambda n, x: x**n, static_argnums=0)(3, X)
    assert len(program.invars) == 1
    np.testing.assert_allclose(ft.eval_jaxpr(program, None, X)[0], X**3)
    program = ft.make_jaxpr(lambda x, n: x**n, static_argnums=(-1,))(X, 3)
    assert len(program.invars) == 1


def test_make_jaxpr_returns_shapes() -> None:
    program, shapes = ft.make_jaxpr(lambda x: {"s": np.sum(x), "x": x}, return_shape=True)(X)
    assert shapes == {
        "s": ft.ShapeDtypeStruct((), np.float64),
        "x": ft.ShapeDtypeStruct((3,), np.float64),
    }
    assert len(program.outvars) == 2


def test_make_jaxpr_takes_shapes_in_place_of_arrays() -> None:
    program = ft.make_jaxpr(np.sin)(ft.ShapeDtypeStruct((2, 3), np.float32))
    assert str(program.out_avals[0]) == "f32[2,3]"


def test_eval_shape_computes_nothing() -> None:
    huge = ft.ShapeDtypeStruct((10**9, 10**3), np.float32)
    result = ft.eval_shape(lambda x: {"m": x.T @ x, "s": x.sum()}, huge)
    assert result["m"] == ft.ShapeDtypeStruct((1000, 1000), np.float32)
    assert result["s"].shape == ()
    assert result["m"].ndim == 2
    assert result["m"].size == 10**6


def test_eval_jaxpr_with_other_constants() -> None:
    program = ft.make_jaxpr(lambda x: x * Y)(X)
    np.testing.assert_allclose(ft.eval_jaxpr(program, None, X)[0], X * Y)
    np.testing.assert_allclose(ft.eval_jaxpr(program, [X], X)[0], X * X)


def test_a_captured_array_is_a_hidden_input() -> None:
    w = np.ones(3)
    program = ft.make_jaxpr(lambda x: x * w)(X)
    assert program.consts[0] is w
    w[:] = 2
    np.testing.assert_allclose(ft.eval_jaxpr(program, None, X)[0], 2 * X)


def test_python_numbers_stay_weak() -> None:
    program = ft.make_jaxpr(lambda x, lr: x - lr * x)(X.astype(np.float32), 0.1)
    assert program.out_avals[0].dtype == np.float32
    assert ft.vmap(lambda x: x * 0.5)(BATCH.astype(np.float32)).dtype == np.float32


# what all share ---------------------------------------------------------------------------------

ALL = {
    "grad": lambda f, x: ft.grad(f)(x),
    "value_and_grad": lambda f, x: ft.value_and_grad(f)(x),
    "vjp": lambda f, x: ft.vjp(f, x)[1](1.0),
    "jvp": lambda f, x: ft.jvp(f, (x,), (x,)),
    "linearize": lambda f, x: ft.linearize(f, x)[1](x),
    "jacfwd": lambda f, x: ft.jacfwd(f)(x),
    "jacrev": lambda f, x: ft.jacrev(f)(x),
    "jacobian": lambda f, x: ft.jacobian(f)(x),
    "hessian": lambda f, x: ft.hessian(f)(x),
    "hvp": lambda f, x: ft.hvp(f, (x,), (x,)),
    "vmap": lambda f, x: ft.vmap(f)(x[None]),
    "jit": lambda f, x: ft.jit(f)(x),
    "make_jaxpr": lambda f, x: ft.eval_jaxpr(ft.make_jaxpr(f)(x), None, x),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("layout", ["C", "read-only", "strided", "reversed", "big-endian"])
def test_arguments_are_never_changed(name: str, layout: str) -> None:
    x = {
        "C": lambda: X.copy(),
        "read-only": lambda: np.broadcast_to(X, (3,)),
        "strided": lambda: np.repeat(X, 2)[::2],
        "reversed": lambda: X[::-1].copy()[::-1],
        "big-endian": lambda: X.astype(">f8"),
    }[layout]()
    flags, dtype = str(x.flags), x.dtype

    def fun(x: Any) -> Any:
        x += 1.0
        x[0] = x[1] * 2.0
        x[1:] *= x[:2]
        return np.sum(x * x)

    plain = X.copy()
    expected = fun(plain)
    result = ALL[name](fun, x)
    if name in ("value_and_grad", "jvp", "jit", "vmap", "make_jaxpr"):
        np.testing.assert_allclose(
            ft.tree.leaves(result)[0], np.reshape(expected, np.shape(ft.tree.leaves(result)[0]))
        )
    np.testing.assert_array_equal(x, X)
    assert (str(x.flags), x.dtype) == (flags, dtype)


@pytest.mark.parametrize("name", sorted(set(ALL) - {"vmap", "make_jaxpr", "jit"}))
def test_python_control_flow_on_values_works(name: str) -> None:
    def fun(x: Any) -> Any:
        total = 0.0
        n = 0
        while np.sum(x) < 20 and n < 10:
            x = x * 1.5
            n += 1
        for value in x:
            total = total + (value**2 if value > 0 else -value)
        if bool(x[0] > 0) and x[0] and x.shape != ():
            total = total + x[int(abs(x[0]) % 3)] ** 2
        return total if f"{total:.3f}" != "0.000" else total * 0

    x = np.array([0.5, -1.0, 2.0])
    h = 1e-6
    gradient = np.array([(fun(x + h * e) - fun(x - h * e)) / (2 * h) for e in np.eye(3)])
    result = ALL[name](fun, x)
    expected: dict[str, Any] = {
        "grad": gradient,
        "value_and_grad": (fun(x), gradient),
        "vjp": (gradient,),
        "jvp": (fun(x), gradient @ x),
        "linearize": gradient @ x,
        "jacfwd": gradient,
        "jacrev": gradient,
        "jacobian": gradient,
    }
    if name in expected:
        for have, want in zip(ft.tree.leaves(result), ft.tree.leaves(expected[name]), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)
    else:
        product = result @ x if name == "hessian" else result
        second = (ft.grad(fun)(x + h * x) - ft.grad(fun)(x - h * x)) / (2 * h)
        np.testing.assert_allclose(product, second, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_transforms_of_functions_of_outer_traced_values(name: str) -> None:
    def fun(y: Any) -> Any:
        result = ALL[name](lambda x: np.sum(x * x * y), X)
        return sum(np.sum(leaf) for leaf in ft.tree.leaves(result))

    h = 1e-6
    expected = (fun(2.0 + h) - fun(2.0 - h)) / (2 * h)
    np.testing.assert_allclose(ft.grad(fun)(2.0), expected, rtol=1e-6)
    np.testing.assert_allclose(ft.jvp(fun, (2.0,), (1.0,))[1], expected, rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(fun)(np.array([2.0, 3.0])), [fun(2.0), fun(3.0)])


def test_half_and_brain_floats_keep_their_dtype() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = X.astype(dtype)
        value, gradient = ft.value_and_grad(lambda x: np.sum(x * x))(x)
        assert value.dtype == gradient.dtype == dtype
        np.testing.assert_allclose(gradient.astype(float), 2 * X)
        _, gradient = ft.value_and_grad(lambda x: np.sum(x * x * 2.0))(x)
        assert gradient.dtype == dtype  # also where NumPy promotes on the way
        assert ft.jacfwd(lambda x: x * x)(x).dtype == dtype
        assert ft.jacrev(lambda x: x * x)(x).dtype == dtype
        assert ft.jvp(np.square, (x,), (x,))[1].dtype == dtype


def test_mixed_dtypes_give_each_argument_its_own() -> None:
    x32, y64 = X.astype(np.float32), Y
    by_x, by_y = ft.grad(lambda x, y: np.sum(x * y), (0, 1))(x32, y64)
    assert (by_x.dtype, by_y.dtype) == (np.float32, np.float64)
    (xx, xy), (yx, yy) = ft.jacrev(lambda x, y: (x * y, x), (0, 1))(x32, y64)
    assert (xx.dtype, xy.dtype, yx.dtype, yy.dtype) == tuple(
        map(np.dtype, ("f4", "f8", "f4", "f8"))
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((1,), (4,)),
        ((), (1,)),
        ((3, 1), (1, 4)),
        ((3, 1), (4,)),
        ((0,), (1,)),
        ((2, 0), (1, 1)),
        ((), (0,)),
        ((1, 1), ()),
    ],
)
def test_gradients_have_their_arguments_shape_under_broadcasting(a: Any, b: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=a), rng.normal(size=b)
    shape = np.broadcast_shapes(a, b)
    weight = rng.normal(size=shape)

    def fun(x: Any, y: Any) -> Any:
        return np.sum(weight * (x * y - y + np.where(x > 0, x, y)))

    by_x, by_y = ft.grad(fun, (0, 1))(x, y)
    assert (by_x.shape, by_y.shape) == (a, b)
    total = np.sum(by_x * x) + np.sum(by_y * y)
    np.testing.assert_allclose(total, ft.jvp(fun, (x, y), (x, y))[1], atol=1e-12)
    (xx, xy), (yx, yy) = ft.hessian(fun, (0, 1))(x, y)
    assert (xx.shape, xy.shape, yx.shape, yy.shape) == (a + a, a + b, b + a, b + b)
    batched = ft.vmap(ft.grad(fun, (0, 1)))(np.stack([x, x]), np.stack([y, y]))
    np.testing.assert_allclose(batched[0][1], by_x, atol=1e-12)
    np.testing.assert_allclose(batched[1][0], by_y, atol=1e-12)
    for jacobian in (ft.jacfwd, ft.jacrev):
        block = jacobian(lambda x: weight * (x * y - y))(x)
        assert block.shape == shape + a
        np.testing.assert_allclose(np.sum(block), np.sum(weight * np.broadcast_to(y, shape)))


def test_results_of_transforms_of_transforms_are_plain() -> None:
    result = ft.vmap(ft.grad(lambda x: np.sum(ft.jacfwd(np.sin)(x))))(BATCH)
    np.testing.assert_allclose(result, -np.sin(BATCH))
    assert_own(result)


def test_errors_have_one_base() -> None:
    for name in dir(errors):
        cls = getattr(errors, name)
        if isinstance(cls, type) and issubclass(cls, Exception):
            assert issubclass(cls, errors.FunctransError)
