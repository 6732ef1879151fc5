"""Attributes and methods of traced arrays against ndarray's."""

import copy
from typing import Any

import numpy as np
import pytest
from numpy_cases import Case, check

import functrans as ft
import functrans.numpy as fnp

R = np.random.default_rng(6)
X = R.standard_normal((3, 4))
V = R.standard_normal(6)
Z = X + 1j * R.standard_normal((3, 4))


def in_place(write):
    def f(x, *rest):
        y = x * 1.0
        write(y, *rest)
        return y

    return f


METHODS = (
    Case("T", lambda x: x.T, X),
    Case("mT", lambda x: x.mT, R.standard_normal((2, 3, 4))),
    Case("real imag", lambda x: x.real * 2 + x.imag, Z),
    Case("flat", lambda x: x.flat[1:7:2] * x.flat[3], X),
    Case("flat list", lambda x: x.flat[[0, 5]], X),
    Case("argpartition", lambda x: x[x.argpartition(2)[:1]], V),
    Case("argsort", lambda x: x[x.argsort()], V),
    Case("argmax", lambda x: x[x.argmax()] * x.argmin(), V),
    Case("astype", lambda x: x.astype(complex), X),
    Case("clip", lambda x: x.clip(-0.5, 0.5) + x.clip(min=0.1), X),
    Case("compress", lambda x: x.compress([True, False, True], axis=0), X),
    Case("conj", lambda x: x.conj() * x.conjugate(), Z),
    Case("copy", lambda x: x.copy("F"), X),
    Case("cumprod", lambda x: x.cumprod(axis=1), X),
    Case("cumsum", lambda x: x.cumsum(), X),
    Case("diagonal", lambda x: x.diagonal(1), X),
    Case("dot", lambda x, v: x.dot(v), X, V[:4]),
    Case("flatten", lambda x: x.flatten("F"), X),
    Case("max min", lambda x: x.max() * x.min(axis=0) - x.max(axis=1, keepdims=True), X),
    Case("mean", lambda x: x.mean(axis=-1), X),
    Case("prod", lambda x: x.prod(0), X),
    Case("ravel", lambda x: x.ravel("F"), X),
    Case("repeat", lambda x: x.repeat(2, 1), X),
    Case("reshape", lambda x: x.reshape(2, 6) @ x.reshape((6, 2), order="F"), X),
    Case("round", lambda x: x.round(1), X),
    Case("searchsorted", lambda x: x * x.searchsorted(0.3), np.sort(V)),
    Case("squeeze", lambda x: x.squeeze(0), X[:1]),
    Case("std var", lambda x: x.std(0) + x.var(axis=0, ddof=1), X),
    Case("sum", lambda x: x.sum() * x.sum(axis=1, keepdims=True), X),
    Case("swapaxes", lambda x: x.swapaxes(0, 1), X),
    Case("take", lambda x: x.take([0, 5]) + x.take(1, axis=0)[:2], X),
    Case("trace", lambda x: x.trace(), X),
    Case("transpose", lambda x: x.transpose(1, 0) + x.transpose((1, 0)) + x.transpose(), X),
    Case("view", in_place(lambda y: y.view().__setitem__(0, 2.0)), X),
    Case("any all", lambda x: x * (x.any() and (x > -9).all()), X, is_staged=False),
    Case("nonzero", lambda x: x[(x > 0).nonzero()], X, is_staged=False),
    Case("fill", in_place(lambda y, v: y.fill(v[0])), X, V),
    Case("put", in_place(lambda y, v: y.put([1, 3], v[:2])), X, V),
    Case("sort", in_place(lambda y: y.sort(axis=0)), X),
    Case("partition", in_place(lambda y: (y.partition(1), y.sort())), V),
    Case("set real", in_place(lambda y: setattr(y, "real", 2.0)), Z),
    Case("set imag", in_place(lambda y, v: setattr(y, "imag", v[:4])), Z, V),
    Case("set real of real", in_place(lambda y, v: setattr(y, "real", v[:4])), X, V),
    Case("set flat", in_place(lambda y, v: setattr(y, "flat", v[:5])), X, V),
    Case("write flat", in_place(lambda y, v: y.flat.__setitem__(slice(2, 7), v[:2])), X, V),
    Case("augmented", in_place(lambda y, v: y[1].__iadd__(v[:4]).__imul__(2.0)), X, V),
    Case("copy module", lambda x: copy.copy(x) + copy.deepcopy(x), X),
    Case("iterate", lambda x: sum(row[0] * i for i, row in enumerate(x)), X),
    Case("iterate flat", lambda x: sum(v**2 for v in x.flat), X),
    Case("unpack", lambda x: (lambda a, b, c: a * b - c)(*x), X),
    Case("contains", lambda x: x * (3.0 in x), X, is_staged=False),
    Case("device", lambda x: x.to_device(x.device), X),
)  # fmt: skip


@pytest.mark.parametrize("case", METHODS, ids=repr)
def test_method_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


def test_choose_of_traced_numbers() -> None:
    n = np.array([1, 0, 2])
    jaxpr = ft.make_jaxpr(lambda n: n.choose([V[:3], 2 * V[:3], 3 * V[:3]]))(n)
    np.testing.assert_allclose(ft.eval_jaxpr(jaxpr, None, n)[0], V[:3] * (n + 1))


def test_attributes_are_numpys() -> None:
    def f(x):
        for name in ("shape", "dtype", "ndim", "size", "itemsize", "nbytes", "device"):
            assert getattr(x, name) == getattr(X, name), name
        assert len(x.flat) == 12
        assert x.__array_namespace__() is fnp
        return (x * x).sum()

    ft.grad(f)(X)
    with ft.config(plain=False):
        ft.grad(f)(X)
        ft.jvp(f, (X,), (X,))
        ft.make_jaxpr(f)(X)


def test_every_method_of_ndarray_is_there_or_refused_for_a_reason() -> None:
    # Memory, bytes and files: a traced value has none of them.
    refused = {
        "base", "byteswap", "ctypes", "data", "dump", "dumps", "flags", "getfield", "resize",
        "setfield", "setflags", "strides", "tobytes", "tofile",
    }  # fmt: skip
    names = {name for name in dir(np.ndarray) if not name.startswith("_")}
    tracers = []
    ft.make_jaxpr(lambda x: tracers.append(x) or x)(X)
    assert {name for name in names if not hasattr(type(tracers[0]), name)} == refused


@pytest.mark.usefixtures("names_as_they_are")
@pytest.mark.parametrize("use", [lambda x: x.item(), lambda x: x.tolist(), float, complex])
def test_python_numbers_are_refused(use) -> None:
    with pytest.raises(ft.errors.ConcretizationError):
        ft.grad(lambda x: use(x) * x)(2.0)


def test_view_with_another_dtype_is_refused() -> None:
    with pytest.raises(ft.errors.UnsupportedOperationError, match="astype"):
        ft.grad(lambda x: x.view(np.int64).sum())(V)


def test_astype_checks_its_casting_rule() -> None:
    with pytest.raises(TypeError, match="Cannot cast"):
        ft.vjp(lambda x: x.astype(int, casting="safe"), V)


def test_attribute_that_does_not_exist_raises_attribute_error() -> None:
    with pytest.raises(AttributeError):
        ft.grad(lambda x: x.nothing)(1.0)


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.float16, np.float64, np.complex64])
@pytest.mark.parametrize("name", ["conj", "conjugate"])
def test_conjugates_as_a_method_keep_the_dtype(name: str, dtype: Any) -> None:
    x = np.ones(2, dtype)
    found = ft.jit(lambda x: getattr(x, name)())(x)
    assert found.dtype == getattr(x, name)().dtype == dtype
    assert ft.jit(np.conjugate)(x).dtype == np.conjugate(x).dtype
