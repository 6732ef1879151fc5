"""Bad input: every mistake raises its own error, which names what, where and the remedy.

Each case states the error class and what its message must contain: the key path of the argument or
the primitive, and the remedy. All messages name the line of this file. After each, no trace is
open and the next derivative is right.
"""

import functools
import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans import functional
from functrans.core.avals import ShapedArray
from functrans.core.dispatch import bind
from functrans.core.primitive import Primitive, linear
from functrans.core.state import open_traces
from functrans.errors import (
    AliasedWriteError,
    ConcretizationError,
    EscapedTracerError,
    FunctransError,
    NonDifferentiableError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)

X = np.array([0.5, -1.0, 2.0])
BUFFER = np.zeros(3)
LINE = r"test_bad_input\.py:\d+"


def loss(x: Any, y: Any = 2.0) -> Any:
    return np.sum(np.sin(x) * y)


class Frame:
    """An array-like of another library, with operators of its own."""

    shape = (3,)
    dtype = np.dtype(float)

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.ones(3)


def matrix() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # NumPy does not recommend them either
        return np.asmatrix(X)


def check_state() -> None:
    """What every case must leave behind."""
    assert open_traces.get() == ()
    np.testing.assert_allclose(ft.grad(loss)(X), 2 * np.cos(X))
    np.testing.assert_allclose(ft.vmap(loss)(X), 2 * np.sin(X))
    np.testing.assert_array_equal(BUFFER, np.zeros(3))


def raises(call: Callable[[], Any], error: type[Exception], *parts: str, line: bool = True) -> None:
    """Check the class and the message of an error, and the state after it."""
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, f"{part!r} is not in: {text}"
    if line:
        assert re.search(LINE, text), f"no line of the user in: {text}"
    caught = None  # type: ignore[assignment]  # frees the traceback
    check_state()


def case(
    name: str, error: type[Exception], call: Callable[[], Any], *parts: str, line: bool = True
) -> Any:
    return pytest.param(error, call, parts, line, id=name)


def in_grad(body: Callable[[Any], Any]) -> Callable[[], Any]:
    return lambda: ft.grad(lambda x: np.sum(body(x)))(X)


def leaked() -> Any:
    kept: list[Any] = []
    ft.grad(lambda x: kept.append(x) or loss(x))(X)
    return kept[0]


ARGUMENTS = [
    case("argnums beyond", ValueError, lambda: ft.grad(loss, 1)(X), "argnums=1", "by position"),
    case("argnums of jacobian", ValueError, lambda: ft.jacobian(loss, 3)(X), "jacobian of loss"),
    case("argnums of hessian", ValueError, lambda: ft.hessian(loss, -2)(X), "hessian of loss"),
    case("argnums by keyword", ValueError, lambda: ft.grad(loss)(x=X), "0 positional", "position"),
    case("argnums text", TypeError, lambda: ft.grad(loss, "x"), "argnums", "int"),  # type: ignore[arg-type]  # refused
    case("argnums float", TypeError, lambda: ft.jacfwd(loss, (0, 1.0)), "argnums", "ints"),  # type: ignore[arg-type]  # refused
    case("argnums twice", ValueError, lambda: ft.grad(loss, (0, 0)), "twice"),
    case("argnums twice from the end", ValueError, lambda: ft.grad(loss, (0, -2))(X, X), "twice"),
    case("argnums empty", ValueError, lambda: ft.grad(loss, ()), "argnums is empty", "at least"),
    case("no function", TypeError, lambda: ft.grad(3), "expected a function, got int"),  # type: ignore[arg-type]  # refused
    case("point for argnums", TypeError, lambda: ft.grad(loss, X), "argnums", "f64", "grad(f)(x)"),  # type: ignore[arg-type]  # refused
    case("point for jit", TypeError, lambda: ft.jit(loss, X), "static_argnums", "jit(f)"),  # type: ignore[arg-type]  # refused
    case("point for hessian", TypeError, lambda: ft.hessian(loss, X), "hessian: argnums"),  # type: ignore[arg-type]  # refused
    case("value for function", TypeError, lambda: ft.grad(loss(X)), "give the function itself"),  # type: ignore[arg-type]  # refused
    case(
        "value for function of functional", TypeError,
        lambda: functional.jacobian(loss(X), X), "functional.jacobian", "give the function itself",  # type: ignore[arg-type]  # refused
    ),
    case("no function to vmap", TypeError, lambda: ft.vmap(None), "expected a function"),  # type: ignore[arg-type]  # refused
    case("no primal", TypeError, lambda: ft.vjp(loss), "at least one primal"),
    case(
        "integer", NonDifferentiableError, lambda: ft.grad(loss)(3), "args[0] is of int",
        "allow_int",
    ),
    case(
        "integer leaf", NonDifferentiableError,
        lambda: ft.grad(lambda t: loss(t["a"][0]))({"a": (np.arange(3),), "b": X}),
        "args[0]['a'][0] is of dtype int64", "astype(float)",
    ),
    case("boolean", NonDifferentiableError, lambda: ft.grad(loss)(True), "args[0] is of bool"),
    case(
        "unsigned", NonDifferentiableError, lambda: ft.jacfwd(loss)(np.zeros(3, np.uint8)),
        "jacfwd of loss: args[0]", "uint8",
    ),
    case(
        "integer of hessian", NonDifferentiableError, lambda: ft.hessian(loss)(3),
        "hessian of loss",
    ),
    case(
        "cotangent of an integer", NonDifferentiableError,
        lambda: ft.vjp(lambda t: t["a"], {"a": 1})[1](1.0), "pullback of <lambda>: ct", "2.0",
    ),
    case(
        "tangent of an integer", NonDifferentiableError, lambda: ft.jvp(loss, (3,), (1,)),
        "jvp of loss: tangents[0]", "ft.float0",
    ),
    case(
        "pushed tangent of an integer", NonDifferentiableError,
        lambda: ft.linearize(loss, 3)[1](1.0), "tangents[0]",
    ),
    case("integer of hvp", NonDifferentiableError, lambda: ft.hvp(loss, (3,), (1,)), "hvp of loss"),
    case(
        "integer of functional", NonDifferentiableError,
        lambda: functional.jacobian(loss, (X, np.arange(3))), "inputs[1]", "functional.jacobian",
    ),
    case(
        "complex result", NonDifferentiableError, lambda: ft.grad(lambda z: z * z)(1j),
        "complex", "holomorphic=True",
    ),
    case(
        "complex result of a real argument", NonDifferentiableError,
        lambda: ft.grad(lambda x: np.sum(x * 1j))(X), "have real=True", ".real",
    ),
    case(
        "complex forward", NonDifferentiableError, lambda: ft.jacfwd(lambda z: abs(z))(1j),
        "args[0] is complex", "holomorphic=True",
    ),
    case(
        "complex reverse", NonDifferentiableError, lambda: ft.jacrev(lambda z: z * z)(1j),
        "result 0 is complex", "holomorphic=True",
    ),
    case(
        "real argument, holomorphic", NonDifferentiableError,
        lambda: ft.grad(lambda z: z * z, holomorphic=True)(1.0), "args[0]", "complex inputs",
    ),
    case(
        "real result, holomorphic", NonDifferentiableError,
        lambda: ft.grad(abs, holomorphic=True)(1j), "complex result", "without holomorphic",
    ),
    case(
        "masked array", UnsupportedOperationError,
        lambda: ft.grad(loss)(np.ma.array(X, mask=[1, 0, 0])), "args[0] is a MaskedArray", "filled",
    ),
    case(
        "matrix", UnsupportedOperationError,
        lambda: ft.grad(lambda t: loss(t["m"]))({"m": matrix()}),
        "args[0]['m'] is a matrix", "np.asarray",
    ),
    case(
        "array of objects", UnsupportedOperationError,
        lambda: ft.grad(loss)(np.array([1.0, None])), "args[0]", "object", "astype(float)",
    ),
    case(
        "array of text", UnsupportedOperationError, lambda: ft.grad(loss)(np.array(["a"])),
        "args[0]", "expected numbers",
    ),
    case(
        "array of dates", UnsupportedOperationError,
        lambda: ft.jvp(loss, (np.array(["2020-01-01"], "M8[D]"),), (X,)), "primals[0]",
        "datetime64",
    ),
    case(
        "array of records", UnsupportedOperationError,
        lambda: ft.vjp(loss, np.zeros(2, [("a", float)])), "primals[0]", "expected numbers",
    ),
    case(
        "text", UnsupportedOperationError, lambda: ft.grad(lambda t: loss(X))({"k": "text"}),
        "args[0]['k']", "builtins.str", "partial",
    ),
    case("set", UnsupportedOperationError, lambda: ft.grad(loss)({1.0}), "args[0]", "builtins.set"),
    case(
        "frame", UnsupportedOperationError, lambda: ft.grad(loss)(Frame()), "args[0]", "Frame",
        "np.asarray(x)",
    ),
    case(
        "masked array of vmap", UnsupportedOperationError, lambda: ft.vmap(loss)(np.ma.array(X)),
        "args[0]",
    ),
    case(
        "text of vmap", UnsupportedOperationError, lambda: ft.vmap(loss)(np.array(["a"])),
        "args[0]",
    ),
    case(
        "text of make_jaxpr", UnsupportedOperationError, lambda: ft.make_jaxpr(loss)("text"),
        "args[0]", "static",
    ),
    case(
        "object of eval_shape", UnsupportedOperationError, lambda: ft.eval_shape(loss, object()),
        "args[0]",
    ),
    case(
        "text of jit", UnsupportedOperationError, lambda: ft.jit(loss)("text"), "x is of type str",
        "static", line=False,
    ),
    case("escaped argument", EscapedTracerError, lambda: ft.grad(loss)(leaked()), "has_aux=True"),
    case(
        "arguments of a program", TypeError, lambda: ft.eval_jaxpr(ft.make_jaxpr(loss)(X), None),
        "takes 1 arguments, got 0", line=False,
    ),
]  # fmt: skip

STRUCTURES = [
    case(
        "tangents", TreeMismatchError, lambda: ft.jvp(lambda t: t["a"], ({"a": X},), ({"b": X},)),
        "'a'", "'b'", "must be the same",
    ),
    case("number of tangents", TreeMismatchError, lambda: ft.jvp(loss, (X,), (X, X)), "tangents"),
    case(
        "tangents of linearize", TreeMismatchError, lambda: ft.linearize(loss, X)[1](X, X),
        "pushforward of loss",
    ),
    case("tangents in no tuple", TypeError, lambda: ft.jvp(loss, X, X), "must be tuples"),
    case(
        "vector of hvp in no tuple", TypeError, lambda: ft.hvp(loss, (X,), X),
        "hvp of loss: tangents must be a tuple",
    ),
    case(
        "point of vhp in no tuple", TypeError, lambda: ft.vhp(loss, 1.0, 1.0),
        "vhp of loss: primals must be a tuple",
    ),
    case(
        "cotangent", TreeMismatchError, lambda: ft.vjp(lambda x: {"a": x}, X)[1]({"b": X}),
        "pullback", "'a'", "'b'",
    ),
    case(
        "cotangent of linear_transpose", TreeMismatchError,
        lambda: ft.linear_transpose(lambda x: x, X)((X, X)), "cotangent",
    ),
    case(
        "shape of a tangent", ShapeError,
        lambda: ft.jvp(lambda t: t["a"], ({"a": X},), ({"a": X[:2]},)),
        "tangents[0]['a'] has shape (2,)", "f64[3]", "must be equal",
    ),
    case(
        "shape of a cotangent", ShapeError, lambda: ft.vjp(lambda x: {"a": x}, X)[1]({"a": 1.0}),
        "ct['a'] has shape ()", "f64[3]",
    ),
    case(
        "complex cotangent", NonDifferentiableError, lambda: ft.vjp(lambda x: x, X)[1](X * 1j),
        "ct is complex", "real",
    ),
    case(
        "masked cotangent", UnsupportedOperationError,
        lambda: ft.vjp(lambda x: x, X)[1](np.ma.array(X)), "ct is a MaskedArray",
    ),
    case(
        "in_axes, number", TreeMismatchError, lambda: ft.vmap(loss, (0, 0))(X), "in_axes has 2",
        "one entry per argument",
    ),
    case(
        "in_axes beyond", ShapeError, lambda: ft.vmap(lambda t: t["a"], ({"a": 2},))({"a": X}),
        "axis 2 of args[0]['a'] (f64[3])", "[-1, 0] or None",
    ),
    case(
        "in_axes, keys", TreeMismatchError,
        lambda: ft.vmap(lambda t: t["a"], ({"b": 0},))({"a": X}),
        "in_axes[0]", "'a'", "one entry per top-level item",
    ),
    case("in_axes text", TypeError, lambda: ft.vmap(loss, "a")(X), "in_axes must be an int, None"),
    case("in_axes float", TypeError, lambda: ft.vmap(loss, (0.5,))(X), "ints or None, got 0.5"),
    case("in_axes boolean", TypeError, lambda: ft.vmap(loss, True)(X), "ints or None"),
    case("in_axes of a scalar", ShapeError, lambda: ft.vmap(loss)(2.0), "args[0]", "in_axes=None"),
    case("nothing mapped", ValueError, lambda: ft.vmap(loss, None)(X), "axis_size"),
    case(
        "extents", ShapeError, lambda: ft.vmap(lambda t, y: t["a"] * y)({"a": X}, np.ones(4)),
        "args[1] (f64[4], axis 0) has 4", "3 of args[0]['a']",
    ),
    case("axis_size", ShapeError, lambda: ft.vmap(loss, axis_size=4)(X), "axis_size=4", "args[0]"),
    case(
        "out_axes beyond", ShapeError, lambda: ft.vmap(lambda x: x, out_axes=3)(X), "out_axes=3",
        "[-1, 0]",
    ),
    case(
        "out_axes None", ShapeError, lambda: ft.vmap(lambda x: x, out_axes=None)(X), "result 0",
        "give it an axis",
    ),
    case(
        "out_axes, number", TreeMismatchError, lambda: ft.vmap(lambda x: (x, x), out_axes=(0,))(X),
        "out_axes", "one entry",
    ),
    case("chunk_size", ValueError, lambda: ft.vmap(loss, chunk_size=0), "at least 1, got 0"),
    case(
        "chunk_size of jacobian", ValueError, lambda: ft.jacobian(loss, chunk_size=0), "chunk_size",
        line=False,
    ),
    case(
        "mode of jacobian", ValueError, lambda: ft.jacobian(loss, mode="backward"),
        "'forward' or 'reverse'", line=False,
    ),
    case(
        "setting", TypeError, lambda: ft.config(speed=1).__enter__(), "'speed'", "safe_where",
        line=False,
    ),
    case(
        "trees", TreeMismatchError, lambda: ft.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}), "'a'",
        "'b'", line=False,
    ),
]  # fmt: skip

RESULTS = [
    case("array", ShapeError, lambda: ft.grad(lambda x: x * 2)(X), "f64[3]", "sum it", "jacobian"),
    case(
        "array of one", ShapeError, lambda: ft.value_and_grad(lambda x: x[:1])(X), "value_and_grad",
        "f64[1]",
    ),
    case(
        "tuple", TypeError, lambda: ft.grad(lambda x: (np.sum(x), 1.0))(X), "(*, *)",
        "has_aux=True",
    ),
    case("list", TypeError, lambda: ft.grad(lambda x: [np.sum(x)])(X), "[*]", "one scalar"),
    case("None", TypeError, lambda: ft.grad(lambda x: None)(X), "None", "one scalar"),
    case(
        "text", UnsupportedOperationError, lambda: ft.grad(lambda x: "t")(X), "result",
        "has_aux=True",
    ),
    case(
        "text of vmap", UnsupportedOperationError, lambda: ft.vmap(lambda x: {"a": (x, "t")})(X),
        "result['a'][1]", "builtins.str",
    ),
    case("no pair", TypeError, lambda: ft.grad(loss, has_aux=True)(X), "pair (out, aux)"),
    case(
        "three", TypeError, lambda: ft.jvp(lambda x: (x, x, x), (X,), (X,), has_aux=True),
        "tuple of 3",
    ),
    case(
        "index", NonDifferentiableError, lambda: ft.grad(lambda x: np.argmax(x))(X), "i64[]",
        "no derivative",
    ),
    case("boolean", NonDifferentiableError, lambda: ft.grad(lambda x: np.sum(x) > 0)(X), "bool[]"),
    case(
        "index of jacobian", NonDifferentiableError,
        lambda: ft.jacobian(lambda x: (x, np.argmax(x)))(X), "result 1", "no derivative",
    ),
    case(
        "masked array", UnsupportedOperationError, lambda: ft.vjp(lambda x: np.ma.array(X), X),
        "result is a MaskedArray",
    ),
]  # fmt: skip

INSIDE = [
    case(
        "if on a staged value", ConcretizationError,
        lambda: ft.jit(lambda x: x if x > 0 else -x)(2.0),
        "bool()", "computed from x", "np.where", "static_argnums",
    ),
    case(
        "if on a mapped value", ConcretizationError,
        lambda: ft.vmap(lambda t: 1.0 if t["a"] > 0 else 2.0)({"a": X}),
        "args[0]['a']", "vmap of", "ft.lax.cond",
    ),
    case(
        "range of a staged value", ConcretizationError,
        lambda: ft.make_jaxpr(lambda n: list(range(n)))(3), "args[0]", "static",
    ),
    case(
        "math of a staged value", ConcretizationError, lambda: ft.jit(lambda x: math.sin(x))(2.0),
        "float()", "np.sin",
    ),
    case(
        "math of a value", ConcretizationError, in_grad(lambda x: math.sin(x[0])), "float()",
        "np.sin",
    ),
    case(
        "format of a staged value", ConcretizationError, lambda: ft.jit(lambda x: f"{x:.2f}")(2.0),
        "format()",
    ),
    case(
        "list in np.array", ConcretizationError, in_grad(lambda x: np.array([x[0], x[1]])),
        "functrans.numpy", "np.stack",
    ),
    case(
        "value in np.array", ConcretizationError, in_grad(lambda x: np.array(x)), "lose the trace",
    ),
    case(
        "list in np.mean", ConcretizationError, in_grad(lambda x: np.mean([x[0], x[1]])), "np.mean",
    ),
    case(
        "list in np.array", ConcretizationError, in_grad(lambda x: np.array([x[0], x[1]])),
        "Replace np.array([x, y]), np.asarray([x, y]): by np.stack([x, y])",
    ),
    case(
        "list in np.asarray over two lines", ConcretizationError,
        in_grad(lambda x: np.asarray(
            [x[0], 1.0])),
        "Replace np.array([x, y]), np.asarray([x, y]): by np.stack([x, y])",
    ),
    case(
        "np.r_", ConcretizationError, in_grad(lambda x: np.r_[x[0], 1.0]), "Replace np.mean",
        "functrans.numpy's function of the same name",
    ),
    case("np.vectorize", ConcretizationError, in_grad(np.vectorize(math.sin)), "ft.vmap(f)(x)"),
    case(
        "random numbers", ConcretizationError,
        in_grad(lambda x: np.random.default_rng(0).normal(x)),
        "Replace rng.normal(x, s): by x + s * rng.standard_normal(np.shape(x))",
    ),
    case(
        "np.float64", ConcretizationError, in_grad(lambda x: np.float64(x)), "Replace np.float64(x)"
    ),
    case("np.full", ConcretizationError, in_grad(lambda x: np.full(3, x[0])), "np.full"),
    case(
        "array.dot", ConcretizationError, in_grad(lambda x: np.ones(3).dot(x)), "lose the trace",
        "Replace array.dot(x): by array @ x",
    ),
    case("array[value]", ConcretizationError, lambda: ft.jit(lambda n: X[n])(1), "take"),
    case(
        "array[array]", ConcretizationError, lambda: ft.jit(lambda n: X[n])(np.array([1])),
        "Replace array[i], np.take(array, i): by functrans.numpy.take",
    ),
    case(
        "element of a buffer", ConcretizationError, in_grad(lambda x: BUFFER.__setitem__(0, x[0])),
        "buffer[i] = x", "like=x",
    ),
    case(
        "slice of a buffer", ConcretizationError,
        in_grad(lambda x: BUFFER.__setitem__(slice(None), x)), "like=x",
    ),
    case(
        "element of a buffer, staged", ConcretizationError,
        lambda: ft.jit(lambda x: BUFFER.__setitem__(0, x[0]) or x)(X), "like=x",
    ),
    case("fill", ConcretizationError, in_grad(lambda x: BUFFER.fill(x[0])), "like=x"),
    case(
        "augmented buffer", UnsupportedOperationError, in_grad(lambda x: BUFFER.__iadd__(x)),
        "plain ndarray", "like=x",
    ),
    case(
        "out=", UnsupportedOperationError, in_grad(lambda x: np.sin(x, out=BUFFER)), "numpy.sin",
        "like=x",
    ),
    case(
        "copyto", UnsupportedOperationError, in_grad(lambda x: np.copyto(BUFFER, x)), "copyto",
        "like=x",
    ),
    case(
        "put", UnsupportedOperationError, in_grad(lambda x: np.put(BUFFER, [0], x[:1])), "put",
        "like=x",
    ),
    case(
        "add.at", UnsupportedOperationError, in_grad(lambda x: np.add.at(BUFFER, [0], x[:1])),
        "like=x",
    ),
    case("full_like", FunctransError, in_grad(lambda x: np.full_like(BUFFER, x)), line=True),
    case(
        "masked array", UnsupportedOperationError, in_grad(lambda x: x * np.ma.array(X)),
        "MaskedArray", "filled",
    ),
    case(
        "masked array on the left", ConcretizationError, in_grad(lambda x: np.ma.array(X) * x),
        "does not dispatch", "np.ma.array(x, mask=m)",
    ),
    case(
        "matrix", UnsupportedOperationError, in_grad(lambda x: x @ matrix().T), "matrix",
        "np.asarray",
    ),
    case(
        "frame", UnsupportedOperationError, in_grad(lambda x: x * Frame()), "Frame",
        "np.asarray(x)",
    ),
    case("frame on the left", UnsupportedOperationError, in_grad(lambda x: Frame() * x), "Frame"),
    case(
        "array of objects", UnsupportedOperationError,
        in_grad(lambda x: x * np.array([1.0, 2, 3], object)), "object", "astype(float)",
    ),
    case(
        "array of None", UnsupportedOperationError, in_grad(lambda x: x + np.array([1, None, 3])),
        "object", "float",
    ),
    case(
        "array of objects under vmap", UnsupportedOperationError,
        lambda: ft.vmap(lambda x: x * np.array([1.0], object))(X), "object",
    ),
    case(
        "array of objects under jvp", UnsupportedOperationError,
        lambda: ft.jvp(lambda x: x * np.array([1.0], object), (X,), (X,)), "object",
    ),
    case(
        "shapes", ShapeError, in_grad(lambda x: x + np.ones(4)), "add", "(3,) and (4,)",
        "equal or 1",
    ),
    case(
        "shapes of a product", ShapeError, in_grad(lambda x: np.ones((2, 4)) @ x), "extent 4",
        "extent 3",
    ),
    case("shape of a reshape", ShapeError, in_grad(lambda x: x.reshape(2, 2)), "size 3", "(2, 2)"),
    case("shapes of solve", ShapeError, in_grad(lambda x: np.linalg.solve(np.eye(4), x)), "solve"),
    case(
        "shapes of concatenate", ShapeError,
        in_grad(lambda x: np.concatenate([x[:, None], np.ones((2, 2))])), "concatenate",
    ),
    case(
        "shapes of where", ShapeError, in_grad(lambda x: np.where(np.ones(2, bool), x, 0)), "where",
    ),
    case(
        "shapes of an assignment", ShapeError, in_grad(lambda x: x.__setitem__(0, x)), "(3,)", "()",
    ),
    case(
        "shapes under vmap", ShapeError, lambda: ft.vmap(lambda x: x + np.ones(4))(np.ones((2, 3))),
        "(3,) and (4,)",
    ),
    case(
        "shapes under jvp", ShapeError, lambda: ft.jvp(lambda x: x + np.ones(4), (X,), (X,)),
        "(3,) and (4,)",
    ),
    case(
        "shapes under jit", ShapeError, lambda: ft.jit(lambda x: x + np.ones(4))(X),
        "(3,) and (4,)",
    ),
    case(
        "shapes under hessian", ShapeError, lambda: ft.hessian(lambda x: np.sum(x + np.ones(4)))(X),
        "(3,) and (4,)",
    ),
    case("index", IndexError, in_grad(lambda x: x[5]), "index 5", "size 3"),
    case("index under jit", IndexError, lambda: ft.jit(lambda x: x[5])(X), "index 5", line=False),
    case(
        "complex into real", TypeError, in_grad(lambda x: x.__setitem__(0, 1j)), "complex128",
        "astype",
    ),
    case(
        "complex into real in place", TypeError, in_grad(lambda x: x.__iadd__(1j)), "complex128",
        "astype",
    ),
    case("escaped", EscapedTracerError, lambda: leaked() + 1.0, "grad of", "has_aux=True"),
    case(
        "escaped in another trace", EscapedTracerError, in_grad(lambda x: x * leaked()),
        "has_aux=True",
    ),
    case("hash", TypeError, in_grad(lambda x: {x: 1}), "unhashable", line=False),
    case(
        "write to an outer array", AliasedWriteError,
        in_grad(lambda x: ft.grad(lambda z: x.__setitem__(0, 1.0) or z)(1.0)), "grad of",
        "return it",
    ),
    case(
        "shape from a staged value", ConcretizationError,
        lambda: ft.jit(lambda x: x[x > 0].sum() + np.unique(x))(X),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call", "parts", "line"), ARGUMENTS + STRUCTURES)
def test_bad_arguments(error: Any, call: Any, parts: Any, line: bool) -> None:
    raises(call, error, *parts, line=line)


@pytest.mark.parametrize(("error", "call", "parts", "line"), RESULTS)
def test_bad_results(error: Any, call: Any, parts: Any, line: bool) -> None:
    raises(call, error, *parts, line=line)


@pytest.mark.parametrize(("error", "call", "parts", "line"), INSIDE)
def test_mistakes_inside_a_traced_function(error: Any, call: Any, parts: Any, line: bool) -> None:
    with ft.config(plain=False):  # some are none in plain code
        raises(call, error, *parts, line=line)


# a primitive without a rule ---------------------------------------------------------------------


def bare(**rules: Any) -> Callable[[Any], Any]:
    """A function of a primitive that triples, with some rules only."""
    primitive = Primitive(
        "triple", impl=lambda x: (3 * x,), abstract_eval=lambda x: (ShapedArray(x.shape, x.dtype),),
        **{"jvp": None, **rules},
    )  # fmt: skip
    return lambda x: bind(primitive, x)[0]


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: ft.grad(lambda x: np.sum(f(x)))(X),
        lambda f: ft.jvp(f, (X,), (X,)),
        lambda f: ft.linearize(f, X)[1](X),
        lambda f: ft.vjp(f, X)[1](X),
        lambda f: ft.jacfwd(f)(X),
        lambda f: ft.hessian(lambda x: np.sum(f(x)))(X),
        lambda f: ft.grad(ft.jit(lambda x: np.sum(f(x))))(X),
    ],
)
def test_a_primitive_without_derivative_rule(transform: Any) -> None:
    function = bare()
    raises(
        lambda: transform(lambda x: function(x)), NonDifferentiableError, "triple", "field jvp",
        "custom rule", "stop_gradient",
    )  # fmt: skip


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: ft.grad(lambda x: np.sum(f(x)))(X),
        lambda f: ft.vjp(f, X)[1](X),
        lambda f: ft.jacrev(f)(X),
        lambda f: ft.linear_transpose(f, X)(X),
    ],
)
def test_a_primitive_without_transpose_rule(transform: Any) -> None:
    function = bare(jvp=linear)
    np.testing.assert_allclose(ft.jvp(function, (X,), (X,))[1], 3 * X)
    raises(
        lambda: transform(lambda x: function(x)), NonDifferentiableError, "triple", "transpose rule"
    )


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: ft.vmap(f)(X[None]),
        lambda f: ft.vmap(ft.jit(f))(X[None]),
        lambda f: ft.grad(lambda x: np.sum(ft.vmap(f)(x)))(X[None]),
    ],
)
def test_a_primitive_without_batching_rule(transform: Any) -> None:
    function = bare(jvp=linear)
    raises(
        lambda: transform(lambda x: function(x)), UnsupportedOperationError, "triple",
        "no batching rule",
    )  # fmt: skip


def test_a_function_that_is_not_linear_has_no_transpose() -> None:
    functions: list[Callable[[Any], Any]] = [
        lambda x: x * x, lambda x: np.sin(x), lambda x: np.floor(x), lambda x: abs(x),
        lambda x: np.maximum(x, 0), lambda x: x @ x, lambda x: 1.0 / x, lambda x: np.sign(x),
        lambda x: x % 2.0, lambda x: x // 2.0, lambda x: np.sort(x), lambda x: x ** 2,
        lambda x: np.where(x > 0, x, 0),
    ]  # fmt: skip
    for function in functions:
        out = ft.eval_shape(function, X)
        transposed = ft.linear_transpose(function, X)
        raises(functools.partial(transposed, np.ones(out.shape)), NonDifferentiableError, "linear")


# unusual input that is right --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "dtype"),
    [
        (X.astype(">f8"), "f8"),
        (X.astype(">f4"), "f4"),
        (X.astype(np.longdouble), np.longdouble),
        (X.astype(np.float16), "f2"),
        (np.broadcast_to(X, (2, 3)), "f8"),
        (X[::-1], "f8"),
        (np.asfortranarray(np.outer(X, X)), "f8"),
        (np.array(2.0), "f8"),
        (np.float32(2.0), "f4"),
        (np.zeros((0, 3)), "f8"),
        (np.array([np.nan, np.inf, -np.inf, 1e308, 5e-324]), "f8"),
        (np.memmap, "f8"),
        (np.recarray, "f8"),
    ],
    ids=lambda value: str(getattr(value, "dtype", value)),
)
def test_unusual_arrays(x: Any, dtype: Any, tmp_path: Any) -> None:
    if x is np.memmap:
        x = np.memmap(tmp_path / "data", np.float64, "w+", shape=(3,))
        x[:] = X
    elif x is np.recarray:
        x = X.view(np.recarray)
    before = np.array(x)
    with np.errstate(all="ignore"):
        results = [
            ft.grad(lambda x: np.sum(x * x))(x),
            ft.vjp(lambda x: np.sum(x * x), x)[1](1.0)[0],
            ft.jacfwd(lambda x: np.sum(x * x))(x),
            ft.jit(ft.grad(lambda x: np.sum(x * x)))(x),
        ]
        for result in results:
            assert type(result) is np.ndarray
            assert result.dtype == np.dtype(dtype)
            assert result.shape == np.shape(x)
        np.testing.assert_array_equal(results[0], 2 * np.asarray(before, dtype))
        np.testing.assert_array_equal(results[0], results[3])
    np.testing.assert_array_equal(before, np.array(x))


def test_lists_are_trees_of_numbers() -> None:
    assert ft.grad(lambda x: x[0] * x[1])([2.0, 3.0]) == [3, 2]


def test_integer_subclasses_and_bools_are_constants() -> None:
    np.testing.assert_allclose(ft.grad(lambda x, n, b: np.sum(x) * n * b)(X, 3, True), [3, 3, 3])


def test_nan_and_infinities_pass_through() -> None:
    point = np.array([np.nan, np.inf, 1e200])
    with np.errstate(over="ignore"):
        value, gradient = ft.value_and_grad(lambda x: np.sum(x * x))(point)
    assert np.isnan(value)
    np.testing.assert_array_equal(gradient, [np.nan, np.inf, 2e200])


def test_nested_errors_leave_the_outer_trace_usable() -> None:
    def fun(x: Any) -> Any:
        with pytest.raises(ShapeError):
            x + np.ones(4)
        with pytest.raises(NonDifferentiableError):
            ft.grad(lambda z: z)(3)
        with pytest.raises(ConcretizationError):
            ft.vmap(lambda z: z if z > 0 else x)(X)
        return np.sum(x * x)

    np.testing.assert_allclose(ft.grad(fun)(X), 2 * X)
    np.testing.assert_allclose(ft.jvp(fun, (X,), (X,))[1], 2 * X @ X)
    np.testing.assert_allclose(ft.jit(fun)(X), X @ X)


@pytest.mark.parametrize("module", [ft, ft.numpy, ft.scipy.linalg, ft.scipy.signal, ft.scipy.fft])
def test_python_can_suggest_names_of_modules(module):
    with pytest.raises(AttributeError, match="has no attribute 'gradd'") as caught:
        _ = module.gradd
    assert (caught.value.name, caught.value.obj) == ("gradd", module)
