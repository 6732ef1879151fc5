"""The mistakes that users make: each raises with its cause, the user's line and what to do.

Each case is a function with the mistake in it, what the message says of cause and remedy, and the
remedy followed, with what that gives. Those that became no mistakes work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
import io
import math
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numba
import numpy as np
import optree
import pytest
import scipy.integrate
import scipy.optimize
import scipy.stats

import functrans as ft
import functrans.autograd as ag
import functrans.numpy as fnp
from cases import each
from functrans import lax
from functrans.errors import (
    ConcretizationError,
    EscapedTracerError,
    FunctransError,
    NonDifferentiableError,
    ShapeError,
    TreeMismatchError,
    UnsupportedOperationError,
)
from functrans.scipy.optimize import curve_fit, minimize

X = np.array([1.0, 2.0, 3.0])
M = np.array([[2.0, 1.0], [1.0, 3.0]])
BUFFER = np.zeros(3)
SQUARED = numba.njit(lambda x: x * x)
FROM_PYTHON = np.frompyfunc(math.sinh, 1, 1)


@dataclasses.dataclass
class Mistake:
    """A mistake, what is said of it, and what becomes of it when that is followed."""

    function: Callable[[], Any]
    error: type[Exception]
    cause: str
    remedy: str
    followed: Callable[[], Any]
    gives: Any


MISTAKES: dict[str, Mistake] = {}


def mistake(
    error: type[Exception], cause: str, remedy: str, followed: Callable[[], Any], gives: Any
) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Add a case: exception, words of cause and remedy, the remedy followed, what that gives."""

    def decorate(function: Callable[[], Any]) -> Callable[[], Any]:
        name = function.__name__
        assert name not in MISTAKES
        MISTAKES[name] = Mistake(function, error, cause, remedy, followed, gives)
        return function

    return decorate


# derivatives ------------------------------------------------------------------------------------


@mistake(
    ShapeError,
    "needs a function with a scalar result, got f64[3]",
    "sum it",
    lambda: ft.grad(lambda x: (x**2).sum())(X),
    [2, 4, 6],
)
def gradient_of_no_scalar():
    ft.grad(lambda x: x**2)(X)


@mistake(
    ShapeError,
    "needs a function with a scalar result, got f64[3]",
    "ft.jacobian",
    lambda: ft.jacobian(lambda x: x**2)(X),
    np.diag([2, 4, 6]),
)
def gradient_of_a_vector():
    ft.value_and_grad(lambda x: x**2)(X)


@mistake(
    NonDifferentiableError,
    "args[0] is of int",
    "Use a float (2.0",
    lambda: ft.grad(lambda n: n * 2.0)(3.0),
    2,
)
def integer_input():
    ft.grad(lambda n: n * 2.0)(3)


@mistake(
    NonDifferentiableError,
    "args[0] is of dtype int64",
    "x.astype(float)",
    lambda: ft.grad(lambda x: np.sum(x * 2.0))(np.arange(2).astype(float)),
    [2, 2],
)
def array_of_integers():
    ft.grad(lambda x: np.sum(x * 2.0))(np.arange(2))


@mistake(
    NonDifferentiableError,
    "args[0] is of bool",
    "derivatives need floating-point inputs",
    lambda: ft.grad(lambda x: x * 2.0)(1.0),
    2,
)
def boolean_input():
    ft.grad(lambda x: x * 2.0)(True)


@mistake(
    NonDifferentiableError,
    "args[1]['n'] is of int",
    "allow_int=True",
    lambda: ft.grad(lambda x, p: x * p["w"], argnums=1, allow_int=True)(2.0, {"w": 1.0, "n": 3})[
        "w"
    ],
    2,
)
def integer_in_a_tree():
    ft.grad(lambda x, p: x * p["w"], argnums=1)(2.0, {"w": 1.0, "n": 3})


@mistake(
    ValueError,
    "argnums=2 asks for positional argument 2, but the function was called with 2",
    "arguments to differentiate must be passed by position",
    lambda: ft.grad(lambda x, y: x * y, argnums=1)(2.0, 3.0),
    2,
)
def argument_that_does_not_exist():
    ft.grad(lambda x, y: x * y, argnums=2)(2.0, 3.0)


@mistake(
    ValueError,
    "argnums=0 asks for positional argument 0",
    "must be passed by position",
    lambda: ft.grad(lambda x: x * x)(2.0),
    4,
)
def argument_by_keyword():
    ft.grad(lambda x: x * x)(x=2.0)


@mistake(
    TypeError,
    "argnums must be an int or a tuple of ints, got 'x'",
    "argnums must be an int",
    lambda: ft.grad(lambda x: x * x, argnums=0)(2.0),
    4,
)
def argument_by_name():
    ft.grad(lambda x: x * x, argnums="x")


@mistake(
    TypeError,
    "got f64[3]",
    "grad makes a function, which takes the arguments: grad(f)(x)",
    lambda: ft.grad(lambda x: np.sum(x * x))(X),
    [2, 4, 6],
)
def point_as_second_argument():
    ft.grad(lambda x: np.sum(x * x), X)


@mistake(
    TypeError,
    "grad: expected a function, got float64",
    "give the function itself, not its value",
    lambda: ft.grad(np.sin)(0.0),
    1,
)
def value_instead_of_function():
    ft.grad(np.sin(0.0))


@mistake(
    TypeError,
    "needs a function with a scalar result, got None",
    "return one scalar",
    lambda: ft.grad(lambda x: np.sum(x * x))(X),
    [2, 4, 6],
)
def function_that_returns_nothing():
    def loss(x):
        np.sum(x * x)

    ft.grad(loss)(X)


@mistake(
    TypeError,
    "needs a function with a scalar result, got (*, *) (a tuple of 2)",
    "has_aux=True",
    lambda: ft.grad(lambda x: (x * x, x), has_aux=True)(2.0)[0],
    4,
)
def two_results():
    ft.grad(lambda x: (x * x, x))(2.0)


@mistake(
    TypeError,
    "has_aux=True needs the function to return a pair (out, aux)",
    "return a pair",
    lambda: ft.grad(lambda x: (x * x, x), has_aux=True)(2.0)[0],
    4,
)
def no_pair():
    ft.grad(lambda x: x * x, has_aux=True)(2.0)


@mistake(
    NonDifferentiableError,
    "needs a real result, got c128",
    "holomorphic=True",
    lambda: ft.grad(lambda z: z * z, holomorphic=True)(1j),
    2j,
)
def complex_input():
    ft.grad(lambda z: z * z)(1j)


@mistake(
    NonDifferentiableError,
    "needs a real result, got c128",
    "use abs(.)**2 or .real",
    lambda: ft.grad(lambda x: np.exp(1j * x).real)(0.0),
    0,
)
def complex_result():
    ft.grad(lambda x: np.exp(1j * x))(0.0)


@mistake(
    NonDifferentiableError,
    "needs a floating-point result, got bool",
    "no derivative",
    lambda: ft.grad(lambda x: np.sum(np.where(x > 0, x, 0.0)))(X),
    [1, 1, 1],
)
def truth_as_result():
    ft.grad(lambda x: np.any(x > 0))(X)


@mistake(
    UnsupportedOperationError,
    "args[0] is a MaskedArray",
    "fill it (x.filled(value))",
    lambda: ft.grad(np.sum)(np.ma.array(X, mask=[0, 1, 0]).filled(0.0)),
    [1, 1, 1],
)
def masked_array():
    ft.grad(np.sum)(np.ma.array(X, mask=[0, 1, 0]))


@mistake(
    UnsupportedOperationError,
    "args[0] is a matrix",
    "use np.asarray(x)",
    lambda: ft.grad(np.sum)(np.asarray(_matrix())),
    np.ones((2, 2)),
)
def matrix_input():
    ft.grad(np.sum)(_matrix())


@mistake(
    UnsupportedOperationError,
    "args[0] is an array of dtype object",
    ".astype(float)",
    lambda: ft.grad(np.sum)(np.array([1.0, 2], object).astype(float)),
    [1, 1],
)
def array_of_objects():
    ft.grad(np.sum)(np.array([1.0, 2], object))


@mistake(
    UnsupportedOperationError,
    "args[0] is of type builtins.str",
    "functools.partial",
    lambda: ft.grad(lambda mode, x: x * x, argnums=1)("sum", 2.0),
    4,
)
def text_as_argument():
    ft.grad(lambda mode, x: x * x)("sum", 2.0)


@mistake(
    TypeError,
    "args[0] is a list, which is a pytree of 3 numbers",
    "pass np.array([1.0, 2.0, 3.0])",
    lambda: ft.grad(lambda x: np.sum(x * 2.0))(np.array([1.0, 2.0, 3.0])),
    [2, 2, 2],
)
def list_as_array():
    ft.grad(lambda x: np.sum(x * 2.0))([1.0, 2.0, 3.0])


@mistake(
    UnsupportedOperationError,
    "args[0].name is of type builtins.str",
    'field(metadata={"static": True})',
    lambda: ft.grad(lambda p: p.a**2)(StaticName(2.0, "x")).a,
    4,
)
def dataclass_with_a_text():
    ft.grad(lambda p: p.a**2)(WithName(2.0, "x"))


@mistake(
    UnsupportedOperationError,
    "args[0] is of type test_mistakes.Model",
    "register_pytree_node",
    lambda: _register() or ft.grad(lambda m: m.w**2)(Registered(3.0)).w,
    6,
)
def object_as_argument():
    ft.grad(lambda m: m.w**2)(Model(3.0))


@mistake(
    ShapeError,
    "cotangent",
    "f64[3]",
    lambda: ft.vjp(np.sin, X)[1](np.ones(3))[0],
    np.cos(X),
)
def cotangent_of_another_shape():
    ft.vjp(np.sin, X)[1](1.0)


@mistake(
    TreeMismatchError,
    "cotangent",
    "tuple",
    lambda: ft.vjp(lambda x: (x, x), 2.0)[1]((1.0, 1.0))[0],
    2,
)
def cotangent_of_another_structure():
    ft.vjp(lambda x: (x, x), 2.0)[1](1.0)


@mistake(
    ShapeError,
    "tangents",
    "f64[3]",
    lambda: ft.jvp(np.sin, (X,), (np.ones(3),))[1],
    np.cos(X),
)
def tangent_of_another_shape():
    ft.jvp(np.sin, (X,), (np.ones(2),))


@mistake(
    TypeError,
    "primals",
    "tuple",
    lambda: ft.jvp(np.sin, (X,), (X,))[1],
    np.cos(X) * X,
)
def primals_without_tuple():
    ft.jvp(np.sin, X, X)


@mistake(
    MemoryError,
    "the dense result of 1000000 x 1000000 entries",
    "ft.sparse_jacobian",
    lambda: ft.sparse_jacobian(lambda x: x * 2)(np.ones(10**6)).sum(),
    2e6,
)
def dense_jacobian_too_large():
    ft.jacobian(lambda x: x * 2)(np.ones(10**6))


@mistake(
    AssertionError,
    "forward mode at order 1",
    "A derivative rule is wrong",
    lambda: ft.check_grads(np.sin, (1.0,)),
    None,
)
def wrong_rule_is_checked():
    @ft.custom_jvp
    def f(x):
        return np.sin(x)

    f.defjvp(lambda primals, tangents: (np.sin(primals[0]), tangents[0]))
    ft.check_grads(f, (1.0,))


# Python's control flow and numbers ---------------------------------------------------------------


@mistake(
    ConcretizationError,
    "bool() of a traced value of type bool*[] (computed from x)",
    "np.where",
    lambda: ft.jit(lambda x: np.where(x > 0, x, -x))(-2.0),
    2,
)
def if_under_jit():
    ft.jit(lambda x: x if x > 0 else -x)(-2.0)


@mistake(
    ConcretizationError,
    "traces with shapes and dtypes only",
    "jit with specialize=True",
    lambda: ft.jit(lambda x: x if x > 0 else -x, specialize=True)(-2.0),
    2,
)
def if_under_jit_again():
    ft.jit(lambda x: x if x > 0 else -x)(-2.0)


@mistake(
    ConcretizationError,
    "bool() of",
    "ft.lax.while_loop",
    lambda: ft.jit(lambda x: lax.while_loop(lambda x: x > 1, lambda x: x / 2, x))(8.0),
    1,
)
def while_under_jit():
    ft.jit(_halved)(8.0)


@mistake(
    ConcretizationError,
    "bool() of",
    "ft.vmap(ft.jit(f, specialize=True))",
    lambda: ft.vmap(ft.jit(_halved, specialize=True))(np.array([8.0, 3.0])),
    [1, 0.75],
)
def while_under_vmap():
    ft.vmap(_halved)(np.array([8.0, 3.0]))


@mistake(
    ConcretizationError,
    "bool() of",
    "np.where",
    lambda: ft.vmap(lambda x: np.where(x > 0, x, -x))(-X),
    X,
)
def if_under_vmap():
    ft.vmap(lambda x: x if x > 0 else -x)(-X)


@mistake(
    ConcretizationError,
    "bool() of",
    "np.where",
    lambda: ft.jit(lambda x: np.where((x > 0) & (x < 2), x, 0.0))(X),
    [1, 0, 0],
)
def chained_comparison_under_jit():
    ft.jit(lambda x: np.where(0 < x < 2, x, 0.0))(X)


@mistake(
    ConcretizationError,
    "index() of a traced value of type i64*[] (argument n)",
    "ft.lax.fori_loop",
    lambda: ft.jit(lambda x, n: lax.fori_loop(0, n, lambda i, s: s + x, 0.0))(2.0, 5),
    10,
)
def range_under_jit():
    ft.jit(lambda x, n: sum(x for _ in range(n)))(2.0, 5)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda x, n: sum(x for _ in range(n)), static_argnames="n")(2.0, 5),
    10,
)
def range_under_jit_again():
    ft.jit(lambda x, n: sum(x for _ in range(n)))(2.0, 5)


@mistake(
    ConcretizationError,
    "format() of",
    "ft.debug.print",
    lambda: _printed(),
    "x = 2.0",
)
def format_under_jit():
    ft.jit(lambda x: print(f"x = {x:.1f}"))(2.0)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda n: np.zeros(n), static_argnames="n")(2),
    [0, 0],
)
def zeros_of_a_traced_length():
    ft.jit(lambda n: np.zeros(n))(2)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda n: np.ones((n, 2)), static_argnames="n")(1),
    [[1, 1]],
)
def ones_of_a_traced_shape():
    ft.jit(lambda n: np.ones((n, 2)))(1)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda n: np.eye(n), static_argnames="n")(2),
    np.eye(2),
)
def eye_of_a_traced_extent():
    ft.jit(lambda n: np.eye(n))(2)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda n: np.arange(n), static_argnames="n")(3),
    [0, 1, 2],
)
def arange_of_a_traced_length():
    ft.jit(lambda n: np.arange(n))(3)


@mistake(
    ConcretizationError,
    "argument n",
    'static_argnames="n"',
    lambda: ft.jit(lambda x, n: x.reshape(n, -1), static_argnames="n")(X, 3),
    X[:, None],
)
def reshape_to_a_traced_extent():
    ft.jit(lambda x, n: x.reshape(n, -1))(X, 3)


@mistake(
    ConcretizationError,
    "argument n",
    "lax.dynamic_slice",
    lambda: ft.jit(lambda x, n: lax.dynamic_slice(x, (n,), (2,)))(X, 1),
    [2, 3],
)
def slice_from_a_traced_place():
    ft.jit(lambda x, n: x[n : n + 2])(X, 1)


@mistake(
    ConcretizationError,
    "selection by the traced mask",
    "np.where(mask, f(x), y)",
    lambda: ft.jit(lambda x: np.where(x > 1, x, 0.0))(X),
    [0, 2, 3],
)
def selection_by_a_mask():
    ft.jit(lambda x: x[x > 1])(X)


@mistake(
    ConcretizationError,
    "selection by the traced mask",
    "np.sum(x, where=mask)",
    lambda: ft.jit(lambda x: np.mean(x, where=x > 1))(X),
    2.5,
)
def mean_of_a_selection():
    ft.jit(lambda x: np.mean(np.sort(x[x > 1])))(X)


@mistake(
    ConcretizationError,
    "how many elements it finds is not known",
    "size=",
    lambda: ft.jit(lambda x: fnp.nonzero(x > 1, size=2)[0])(X),
    [1, 2],
)
def nonzero_under_jit():
    ft.jit(lambda x: np.nonzero(x > 1)[0])(X)


@mistake(
    ConcretizationError,
    "how many elements it finds is not known",
    "size=",
    lambda: ft.jit(lambda x: fnp.unique(x, size=2))(np.array([1.0, 1.0, 2.0])),
    [1, 2],
)
def unique_under_jit():
    ft.jit(lambda x: np.unique(x))(X)


@mistake(
    TypeError,
    "a list times a traced value of type i64*[] (argument n)",
    "static_argnums",
    lambda: ft.jit(lambda n: [1.0] * n, static_argnums=0)(3),
    [1, 1, 1],
)
def list_repeated_under_jit():
    ft.jit(lambda n: [1.0] * n)(3)


@mistake(
    TypeError,
    "a tuple times a traced value of type i64*[] (argument n)",
    "static_argnums",
    lambda: ft.jit(lambda n: (1.0,) * n, static_argnums=0)(3),
    [1, 1, 1],
)
def tuple_repeated_under_jit():
    ft.jit(lambda n: (1.0,) * n)(3)


@mistake(
    TypeError,
    "used as a key of a dict or in a set",
    "int(x)",
    lambda: ft.grad(lambda x: {int(x): x}[2] * x)(2.0),
    4,
)
def key_of_a_dict():
    ft.grad(lambda x: {x: 1.0}[x] * x)(2.0)


@mistake(
    ConcretizationError,
    "index() of",
    "np.asarray(array, like=i)[i]",
    lambda: ft.jit(lambda i: np.asarray([1.0, 2.0], like=i)[i])(1),
    2,
)
def list_indexed_under_jit():
    ft.jit(lambda i: [1.0, 2.0][i])(1)


# jit ----------------------------------------------------------------------------------------------


@mistake(
    TypeError,
    "cannot be hashed",
    "tuple",
    lambda: ft.jit(lambda x, shape: np.broadcast_to(x, shape), static_argnames="shape")(1.0, (2,)),
    [1, 1],
)
def static_argument_without_hash():
    ft.jit(lambda x, shape: np.broadcast_to(x, shape), static_argnames="shape")(1.0, [2])


@mistake(
    ValueError,
    "'m'",
    "n",
    lambda: ft.jit(lambda x, n: x * n, static_argnames="n")(1.0, 2),
    2,
)
def static_name_that_does_not_exist():
    ft.jit(lambda x, n: x * n, static_argnames="m")(1.0, 2)


@mistake(
    UnsupportedOperationError,
    "mode is of type str",
    'static_argnames="mode"',
    lambda: ft.jit(lambda x, mode: x * 2, static_argnames="mode")(1.0, "double"),
    2,
)
def text_under_jit():
    ft.jit(lambda x, mode: x * 2)(1.0, "double")


@mistake(
    UnsupportedOperationError,
    "decorates a method",
    "ft.jit(obj.step)",
    lambda: ft.jit(Plain(2.0).step)(3.0),
    6,
)
def jitted_method():
    Decorated(2.0).step(3.0)


@mistake(
    TypeError,
    "expected a function",
    "give the function itself",
    lambda: ft.jit(np.sin)(0.0),
    0,
)
def jit_of_a_value():
    ft.jit(np.sin(0.0))


@mistake(
    IndexError,
    "index 5 is out of bounds for axis 0 with size 3",
    "index 5 is out of bounds",
    lambda: ft.jit(lambda x: x[2])(X),
    3,
)
def index_out_of_bounds_under_jit():
    ft.jit(lambda x: x[5])(X)


@mistake(
    IndexError,
    "out of bounds",
    "size 3",
    lambda: ft.grad(lambda x: x[2])(X),
    [0, 0, 1],
)
def index_out_of_bounds():
    ft.grad(lambda x: x[3])(X)


@mistake(
    EscapedTracerError,
    "after jit of",
    "return it from the function",
    lambda: ft.jit(lambda x: (x * x, x + 1))(2.0)[1],
    3,
)
def leak_from_jit():
    kept = []
    ft.jit(lambda x: kept.append(x + 1) or x * x)(2.0)
    kept[0] + 1.0


@mistake(
    EscapedTracerError,
    "after vmap of",
    "return it from the function",
    lambda: ft.vmap(lambda x: (x * x, x + 1))(X)[1],
    X + 1,
)
def leak_from_vmap():
    kept = []
    ft.vmap(lambda x: kept.append(x + 1) or x * x)(X)
    kept[0] + 1.0


@mistake(
    UserWarning,
    "NumPy's global generator (numpy.random) was used",
    "pass them as arguments",
    lambda: ft.jit(lambda x, noise: x + noise)(1.0, 0.5),
    1.5,
)
def random_numbers_under_jit():
    ft.jit(lambda x: x + np.random.normal())(1.0)  # noqa: NPY002  # the mistake


# arrays that are written to -----------------------------------------------------------------------


@mistake(
    UnsupportedOperationError,
    "",
    "copy",
    lambda: ft.grad(_fill_a_copy)(X),
    [1, 1, 1],
)
def buffer_from_outside():
    def fill(x):
        for i in range(3):
            BUFFER[i] = x[i]
        return BUFFER.sum()

    ft.grad(fill)(X)


@mistake(
    UnsupportedOperationError,
    "asked to write a traced result into a plain ndarray",
    "functrans.numpy.array(buffer, like=x)",
    lambda: ft.grad(_sum_into_traced)(X),
    [1, 1, 1],
)
def sum_into_an_array_from_outside():
    def add(x, total=BUFFER):
        total += x
        return np.sum(total)

    ft.grad(add)(X)


@mistake(
    UnsupportedOperationError,
    "asked to write a traced result into a plain ndarray",
    "use the result: y = numpy.sin(...)",
    lambda: ft.grad(lambda x: np.sum(np.sin(x)))(X),
    np.cos(X),
)
def result_into_an_array_from_outside():
    ft.grad(lambda x: np.sum(np.sin(x, out=BUFFER)))(X)


@mistake(
    TypeError,
    "integer",
    "float",
    lambda: ft.grad(_into_floats)(0.5),
    1,
)
def fractions_into_integers():
    def fill(x):
        a = np.zeros(2, int)
        a[0] = x
        return a.sum()

    ft.grad(fill)(0.5)


# vmap ---------------------------------------------------------------------------------------------


@mistake(
    ValueError,
    "axis 2 of args[0] (f64[2,2]) does not exist",
    "in_axes must be in [-2, 1]",
    lambda: ft.vmap(np.sum, in_axes=1)(M),
    M.sum(0),
)
def axis_that_does_not_exist():
    ft.vmap(np.sum, in_axes=2)(M)


@mistake(
    ValueError,
    "sizes",
    "args[1]",
    lambda: ft.vmap(lambda x, y: x + y, in_axes=(0, None))(X, 1.0),
    X + 1,
)
def axes_of_different_sizes():
    ft.vmap(lambda x, y: x + y)(X, np.ones(2))


@mistake(
    ValueError,
    "in_axes",
    "2",
    lambda: ft.vmap(lambda x, y: x + y, in_axes=(0, 0))(X, X),
    2 * X,
)
def in_axes_too_short():
    ft.vmap(lambda x, y: x + y, in_axes=(0,))(X, X)


@mistake(
    ValueError,
    "args[1]",
    "None",
    lambda: ft.vmap(lambda x, y: x + y, in_axes=(0, None))(X, 1.0),
    X + 1,
)
def number_without_axes_is_mapped():
    ft.vmap(lambda x, y: x + y)(X, 1.0)


@mistake(
    ValueError,
    "nothing",
    "axis",
    lambda: ft.vmap(lambda x: x + 1, in_axes=0)(X),
    X + 1,
)
def nothing_is_mapped():
    ft.vmap(lambda x: x + 1, in_axes=None)(X)


@mistake(
    TreeMismatchError,
    "in_axes[0]={'w': 0} is no tree prefix",
    "give one entry per top-level item",
    lambda: ft.vmap(lambda p: p["w"] * p["b"], in_axes=({"w": 0, "b": None},))({"w": X, "b": 2.0}),
    2 * X,
)
def in_axes_of_another_structure():
    ft.vmap(lambda p: p["w"] * p["b"], in_axes=({"w": 0},))({"w": X, "b": 2.0})


@mistake(
    ValueError,
    "out_axes",
    "0",
    lambda: ft.vmap(lambda x: x + 1, out_axes=0)(X),
    X + 1,
)
def out_axis_that_does_not_exist():
    ft.vmap(lambda x: x + 1, out_axes=3)(X)


@mistake(
    NameError,
    "'i'",
    "vmap with axis_name='i'",
    lambda: ft.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(X),
    X / 6,
)
def unknown_axis_name():
    ft.vmap(lambda x: x / lax.psum(x, "i"))(X)


# control flow -------------------------------------------------------------------------------------


@mistake(
    TypeError,
    "carried values keep their type",
    "start with an array of the type",
    lambda: lax.fori_loop(0, 3, lambda i, s: s + 0.5, 0.0),
    1.5,
)
def carry_of_another_dtype():
    lax.fori_loop(0, 3, lambda i, s: s + 0.5, np.int64(0))


@mistake(
    ShapeError,
    "carry",
    "shape",
    lambda: lax.while_loop(lambda s: s[0] < 4, lambda s: s * 2, np.ones(2)),
    [4, 4],
)
def carry_of_another_shape():
    lax.while_loop(lambda s: s.sum() < 4, lambda s: np.concatenate([s, s]), np.ones(2))


@mistake(
    TypeError,
    "got an array",
    "(carry, y)",
    lambda: lax.scan(lambda s, x: (s + x, None), 0.0, X)[0],
    6,
)
def scan_body_without_pair():
    lax.scan(lambda s, x: s + x, 0.0, X)


@mistake(
    TreeMismatchError,
    "carry",
    "same",
    lambda: lax.scan(lambda s, x: ((s[0] + x, s[1]), None), (0.0, 0.0), X)[0][0],
    6,
)
def carry_of_another_structure():
    lax.scan(lambda s, x: ((s[0] + x,), None), (0.0, 0.0), X)


@mistake(
    ValueError,
    "length",
    "xs",
    lambda: lax.scan(lambda s, xy: (s + xy[0] * xy[1], None), 0.0, (X, X))[0],
    14,
)
def scanned_arrays_of_different_lengths():
    lax.scan(lambda s, xy: (s + xy[0] * xy[1], None), 0.0, (X, X[:2]))


@mistake(
    TreeMismatchError,
    "true_fun",
    "a tuple of 2",
    lambda: lax.cond(True, lambda x: (x, x), lambda x: (x, -x), 1.0)[0],
    1,
)
def branches_of_different_structure():
    lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)


@mistake(
    ShapeError,
    "true_fun",
    "false_fun",
    lambda: lax.cond(True, lambda x: x, lambda x: 2 * x, X),
    X,
)
def branches_of_different_shapes():
    lax.cond(True, lambda x: x, lambda x: x[:2], X)


@mistake(
    ShapeError,
    "pred",
    "choose elementwise with np.where",
    lambda: np.where(X > 1, X, -X),
    [-1, 2, 3],
)
def condition_that_is_an_array():
    lax.cond(X > 1, lambda x: x, lambda x: -x, X)


# operations ---------------------------------------------------------------------------------------


@mistake(
    ShapeError,
    "add: operands of shapes (4,) and (3,) do not broadcast",
    "extents must be equal",
    lambda: ft.grad(lambda x: np.sum(x + np.ones(3)))(X),
    [1, 1, 1],
)
def operands_that_do_not_broadcast():
    ft.grad(lambda x: np.sum(np.ones(4) + x))(X)


@mistake(
    ShapeError,
    "matmul: operands of shapes (3, 4) and (3,)",
    "must be equal",
    lambda: ft.grad(lambda w: np.sum(np.ones((4, 3)) @ w))(X),
    [4, 4, 4],
)
def product_of_wrong_shapes():
    ft.grad(lambda w: np.sum(np.ones((3, 4)) @ w))(X)


@mistake(
    ShapeError,
    "",
    "",
    lambda: ft.grad(lambda x: np.sum(np.concatenate([x, np.ones(2)])))(X),
    [1, 1, 1],
)
def arrays_that_do_not_join():
    ft.grad(lambda x: np.sum(np.concatenate([x, M])))(X)


@mistake(
    ValueError,
    "reshape",
    "3",
    lambda: ft.grad(lambda x: np.sum(x.reshape(3, 1)))(X),
    [1, 1, 1],
)
def reshape_that_does_not_fit():
    ft.grad(lambda x: np.sum(x.reshape(2, 2)))(X)


@mistake(
    ValueError,
    "einsum",
    "",
    lambda: ft.grad(lambda x: np.einsum("i,i->", x, X))(X),
    X,
)
def einsum_of_wrong_extents():
    ft.grad(lambda x: np.einsum("i,i->", x, np.ones(2)))(X)


@mistake(
    np.linalg.LinAlgError,
    "Singular matrix",
    "",
    lambda: ft.grad(lambda x: np.sum(np.linalg.pinv(x)))(np.eye(2)),
    -np.ones((2, 2)),
)
def singular_matrix():
    ft.grad(lambda x: np.sum(np.linalg.inv(x)))(np.zeros((2, 2)))


@mistake(
    UnsupportedOperationError,
    "cannot be traced",
    "ft.external",
    lambda: ft.external(math.sinh, np.float64(0), fd="central")(0.0),
    0,
)
def function_without_rule():
    ft.grad(lambda x: FROM_PYTHON(x))(1.0)


@mistake(
    AttributeError,
    "'sine'",
    "Did you mean",
    lambda: fnp.sin(0.0),
    0,
)
def name_that_does_not_exist():
    fnp.sine(0.0)


@mistake(
    AttributeError,
    "'gradd'",
    "Did you mean",
    lambda: ft.grad(np.sin)(0.0),
    1,
)
def transform_that_does_not_exist():
    ft.gradd(np.sin)


@mistake(
    TypeError,
    "unknown setting 'safe_were'",
    "settings are safe_where",
    lambda: _safe_where(),
    True,
)
def setting_that_does_not_exist():
    with ft.config(safe_were=True):
        pass


# other people's code ------------------------------------------------------------------------------


@mistake(
    ConcretizationError,
    "scipy.stats.shapiro was given a traced value",
    "ft.external",
    lambda: ft.external(lambda x: np.var(x), np.float64(0), fd="central")(X),
    np.var(X),
)
def function_of_scipy_without_derivative():
    ft.grad(lambda x: scipy.stats.shapiro(x).statistic)(X)


if find_spec("matplotlib"):

    @mistake(
        ConcretizationError,
        "matplotlib.pyplot.plot was given a traced value",
        "has_aux=True",
        lambda: ft.grad(lambda x: (x.sum(), x), has_aux=True)(X)[0],
        [1, 1, 1],
    )
    def plot_of_traced_values():
        import matplotlib as mpl

        mpl.use("Agg")
        import matplotlib.pyplot as plt

        ft.grad(lambda x: plt.plot(x) and x.sum())(X)


@mistake(
    ShapeError,
    "external",
    "out_like",
    lambda: ft.external(np.sum, np.float64(0), fd="central")(X),
    6,
)
def external_of_another_shape():
    ft.external(np.sum, np.zeros(3), fd="central")(X)


@mistake(
    ShapeError,
    "pure_callback",
    "",
    lambda: ft.pure_callback(np.sum, np.float64(0), X),
    6,
)
def callback_of_another_shape():
    ft.jit(lambda x: ft.pure_callback(np.sum, np.zeros(3), x))(X)


@mistake(
    ConcretizationError,
    "minimize: _with_if is compiled",
    "jit=False",
    lambda: _minimum(jit=False),
    [1, 1],
)
def if_in_an_objective():
    minimize(_with_if, np.zeros(2))


@mistake(
    ConcretizationError,
    "curve_fit: _model is compiled",
    "jit=False",
    lambda: curve_fit(_model, X, 2 * X, p0=[1.0], jit=False)[0],
    [2],
)
def if_in_a_model():
    curve_fit(_model, X, 2 * X, p0=[1.0])


@mistake(
    ConcretizationError,
    "A sparsity pattern holds at all points",
    "pattern=",
    lambda: ft.sparse_jacobian(_by_values, pattern=np.eye(3))(X).toarray(),
    np.diag([1, 2, 3]),
)
def pattern_that_depends_on_values():
    ft.sparse_jacobian(_by_values)(X)


@mistake(
    UserWarning,
    "dense",
    "ft.jacobian",
    lambda: ft.jacobian(lambda x: x.sum() * x)(np.ones(2)),
    [[3, 1], [1, 3]],
)
def sparse_jacobian_of_a_dense_function():
    ft.sparse_jacobian(lambda x: x.sum() * x)(np.ones(2000))


# rules of users -----------------------------------------------------------------------------------


@mistake(
    TypeError,
    "bwd",
    "2",
    lambda: ft.grad(_with_rule(lambda res, g: (g * res, g * 0.0)), argnums=0)(2.0, 3.0),
    2,
)
def rule_with_too_few_cotangents():
    ft.grad(_with_rule(lambda res, g: (g * res,)))(2.0, 3.0)


@mistake(
    ShapeError,
    "bwd",
    "f64[3]",
    lambda: ft.grad(lambda x: np.sum(_squares(lambda x, g: (2 * x * g,))(x)))(X),
    2 * X,
)
def rule_with_a_cotangent_of_another_shape():
    ft.grad(lambda x: np.sum(_squares(lambda x, g: (np.sum(2 * x * g),))(x)))(X)


@mistake(
    TypeError,
    "defvjp",
    "f.defvjp(fwd, bwd)",
    lambda: ft.grad(_with_rule(lambda res, g: (g * res, g)))(2.0, 3.0),
    2,
)
def rule_that_was_forgotten():
    ft.grad(ft.custom_vjp(lambda x: x * x))(2.0)


@mistake(
    TypeError,
    "",
    "pair",
    lambda: ft.jvp(_sine_with(lambda p, t: (np.sin(p[0]), np.cos(p[0]) * t[0])), (0.0,), (1.0,))[1],
    1,
)
def jvp_rule_without_pair():
    ft.jvp(_sine_with(lambda p, t: np.cos(p[0]) * t[0]), (0.0,), (1.0,))


# tensors ------------------------------------------------------------------------------------------


@mistake(
    RuntimeError,
    "leaf",
    "no_grad",
    lambda: _step_without_grad(),
    [0, 1, 2],
)
def leaf_written_in_place():
    w = ag.tensor(X, requires_grad=True)
    w -= 1.0


@mistake(
    RuntimeError,
    "scalar",
    "gradient",
    lambda: _backward(lambda w: (w * 2).sum()),
    [2, 2, 2],
)
def backward_of_no_scalar():
    (ag.tensor(X, requires_grad=True) * 2).backward()


@mistake(
    RuntimeError,
    "second time",
    "retain_graph=True",
    lambda: _backward(lambda w: (w * w).sum(), retain_graph=True),
    2 * X,
)
def backward_twice():
    loss = (ag.tensor(X, requires_grad=True) ** 2).sum()
    loss.backward()
    loss.backward()


@mistake(
    RuntimeError,
    "modified by an inplace operation",
    "clone",
    lambda: _backward(lambda w: (w.exp() * 2).sum()),
    2 * np.exp(X),
)
def saved_and_overwritten():
    w = ag.tensor(X, requires_grad=True)
    y = w.exp()
    y.mul_(2)
    y.sum().backward()


@mistake(
    RuntimeError,
    "requires grad",
    "detach",
    lambda: ag.tensor(X, requires_grad=True).detach().numpy(),
    X,
)
def numpy_of_a_tensor_with_gradient():
    ag.tensor(X, requires_grad=True).numpy()


@mistake(
    RuntimeError,
    "requires",
    "requires_grad=True",
    lambda: _backward(lambda w: w.sum()),
    [1, 1, 1],
)
def backward_without_graph():
    ag.tensor(X).sum().backward()


@mistake(
    RuntimeError,
    "require",
    "requires_grad",
    lambda: ag.tensor(X, requires_grad=True).register_hook(lambda g: g) and 1,
    1,
)
def hook_on_a_tensor_without_gradient():
    ag.tensor(X).register_hook(lambda g: g)


@mistake(
    RuntimeError,
    "shape",
    "[3]",
    lambda: _backward(lambda w: w * 2, ag.tensor(np.ones(3))),
    [2, 2, 2],
)
def gradient_of_another_shape():
    (ag.tensor(X, requires_grad=True) * 2).backward(ag.tensor(np.ones(2)))


@mistake(
    RuntimeError,
    "",
    "",
    lambda: (ag.tensor(X) + ag.tensor(X)).numpy(),
    2 * X,
)
def tensors_of_different_shapes():
    ag.tensor(X) + ag.tensor(np.ones(4))


# what stands in the cases -------------------------------------------------------------------------


def _matrix() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.matrix(M)


@dataclasses.dataclass
class WithName:
    a: Any
    name: str


@dataclasses.dataclass
class StaticName:
    a: Any
    name: str = dataclasses.field(metadata={"static": True})


class Model:
    def __init__(self, w: Any) -> None:
        self.w = w


class Registered(Model):
    pass


def _register() -> None:
    optree.register_pytree_node(
        Registered, lambda m: ((m.w,), None), lambda _, w: Registered(*w), namespace="functrans"
    )


class Decorated(Model):
    @ft.jit
    def step(self, x):
        return self.w * x


class Plain(Model):
    def step(self, x):
        return self.w * x


def _halved(x):
    while x > 1:
        x = x / 2
    return x


def _printed() -> str:
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        ft.jit(lambda x: ft.debug.print("x = {x}", x=x))(2.0)
    return text.getvalue().strip()


def _fill_a_copy(x):
    buffer = BUFFER.copy()
    for i in range(3):
        buffer[i] = x[i]
    return buffer.sum()


def _sum_into_traced(x):
    total = fnp.array(BUFFER, like=x)
    total += x
    return np.sum(total)


def _into_floats(x):
    a = np.zeros(2)
    a[0] = x
    return a.sum()


def _safe_where() -> bool:
    with ft.config(safe_where=True) as current:
        return current.safe_where


def _with_if(x):
    return np.sum((x - 1) ** 2) if x[0] < 5 else 0.0


def _model(t, a):
    return a * t if a > 0 else -a * t


def _minimum(**options: Any) -> Any:
    return np.round(minimize(_with_if, np.zeros(2), **options).x, 6)


def _by_values(x):
    return x * x / 2 if x[0] > 0 else x


def _with_rule(bwd: Any) -> Any:
    f = ft.custom_vjp(lambda x, y: x * x)
    f.defvjp(lambda x, y: (x * x, x), bwd)
    return f


def _squares(bwd: Any) -> Any:
    f = ft.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), bwd)
    return f


def _sine_with(rule: Any) -> Any:
    f = ft.custom_jvp(np.sin)
    f.defjvp(rule)
    return f


def _step_without_grad() -> Any:
    w = ag.tensor(X, requires_grad=True)
    with ag.no_grad():
        w -= 1.0
    return w.detach().numpy()


def _backward(f: Callable[[Any], Any], *args: Any, **options: Any) -> Any:
    w = ag.tensor(X, requires_grad=True)
    f(w).backward(*args, **options)
    return w.grad.numpy()


# what was a mistake, and works --------------------------------------------------------------------


def _filled(x):
    a = np.zeros(3)
    for i in range(3):
        a[i] = math.sin(float(x[i]))
    return a.sum()


WORKS: dict[str, tuple[Callable[[], Any], Any]] = {
    "np.asarray of an argument": (lambda: ft.grad(lambda x: np.sum(np.asarray(x) ** 2))(X), 2 * X),
    "np.array of traced numbers": (lambda: ft.grad(lambda x: np.array([x, x]).sum())(1.0), 2),
    "math.sin": (lambda: ft.grad(lambda x: math.sin(x))(0.0), 1),
    "math.sin under jit": (lambda: ft.jit(lambda x: math.sin(x))(0.0), 0),
    "float": (lambda: ft.grad(lambda x: float(x) ** 2)(3.0), 6),
    "a buffer of one's own": (lambda: ft.grad(_filled)(X), np.cos(X)),
    "if under grad": (lambda: ft.grad(lambda x: x if x > 0 else -x)(-1.0), -1),
    "while under grad": (lambda: ft.grad(_halved)(8.0), 0.125),
    "format under grad": (lambda: ft.grad(lambda x: x * len(f"{x:.2f}"))(1.0), 4),
    "a sum of a list": (lambda: ft.grad(lambda x: np.sum(x))([1.0, 2.0]), [1, 1]),
    "an integer as tangent": (lambda: ft.jvp(lambda x: x * 2.0, (1.0,), (1,))[1], 2),
    "a loop that begins with 0": (lambda: lax.fori_loop(0, 3, lambda i, s: s + 0.5, 0), 1.5),
    "brentq": (
        lambda: ft.grad(lambda a: scipy.optimize.brentq(lambda x: x * x - a, 0.0, 5.0))(4.0), 0.25,
    ),
    "root_scalar": (
        lambda: ft.grad(
            lambda a: scipy.optimize.root_scalar(lambda x: x * x - a, bracket=(0.0, 5.0)).root
        )(4.0),
        0.25,
    ),
    "fsolve": (
        lambda: ft.grad(lambda a: scipy.optimize.fsolve(lambda x: x * x - a, 1.0)[0])(4.0), 0.25,
    ),
    "minimize": (
        lambda: ft.grad(
            lambda a: scipy.optimize.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(2)).x[0]
        )(4.0),
        1,
    ),
    "quad": (lambda: ft.grad(lambda a: scipy.integrate.quad(lambda t: a * t, 0, 1)[0])(1.0), 0.5),
    "scipy.stats": (lambda: ft.grad(lambda m: scipy.stats.norm(m).logpdf(1.0))(0.0), 1),
    "a function of numba": (lambda: ft.grad(lambda x: SQUARED(x))(3.0), 6),
}  # fmt: skip


def _lines(error: BaseException) -> list[str]:
    """What a script that makes the mistake prints."""
    own = error.__traceback__
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed):
        sys.__excepthook__(type(error), error, own and own.tb_next)
    return printed.getvalue().splitlines()


@each("name", MISTAKES)
def test_a_mistake_is_told_with_its_cause_its_line_and_a_remedy(name: str) -> None:
    mistake = MISTAKES[name]
    with warnings.catch_warnings(), ft.config(traceback="filtered"):
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(mistake.error) as caught:
            mistake.function()
    error = caught.value
    text = "\n".join(_lines(error))
    assert mistake.cause in text
    assert mistake.remedy in text
    assert len(_lines(error)) <= 12
    source, first = inspect.getsourcelines(mistake.function)
    own = range(first, first + len(source))
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, FunctransError):
        assert {frame.filename for frame in frames} == {__file__}
    assert frames[1].lineno in own
    for line in re.findall(r"test_mistakes\.py:(\d+)", str(error)):
        assert 0 < int(line) <= len(Path(__file__).read_text().splitlines())


@each("name", MISTAKES)
def test_the_remedy_works(name: str) -> None:
    _check(MISTAKES[name].followed(), MISTAKES[name].gives)


@each("name", WORKS)
def test_what_was_a_mistake_works(name: str) -> None:
    call, gives = WORKS[name]
    _check(call(), gives)


def _check(result: Any, expected: Any) -> None:
    if isinstance(expected, str) or expected is None:
        assert result == expected
    else:
        np.testing.assert_allclose(np.asarray(result, complex), expected, rtol=1e-6, atol=1e-12)


def test_there_are_a_hundred_kinds() -> None:
    assert len(MISTAKES) >= 100
