"""Functions of functrans.numpy have one signature for plain and for traced arrays."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from functrans.errors import ConcretizationError, UnsupportedOperationError

FUNCTIONS = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in (fnp, fnp.linalg, fnp.fft)
    for name in dir(module)
    if hasattr(getattr(module, name), "numpy_functions")
}
SAME = {"functrans.numpy.arange", "functrans.numpy.fromstring"}  # by position, and text only
NAN = np.nan
X = np.array([3.0, 1.0, NAN, 3.0, 2.0, NAN, 1.0])
MASK = np.array([True, False, True, True, False, False, True])
ROWS = np.arange(6.0).reshape(2, 3)


def _put(x: Any, indices: Any, values: Any, axis: int | None, mode: str) -> Any:
    fnp.put_along_axis(x, indices, values, axis, mode=mode)
    return x


CASES: list[tuple[str, Callable[..., Any], Any]] = [
    ("where", lambda m: fnp.where(m, size=5, fill_value=9)[0], [0, 2, 3, 6, 9]),
    ("nonzero", lambda m: fnp.nonzero(m, size=2)[0], [0, 2]),
    ("flatnonzero", lambda m: fnp.flatnonzero(m, size=6, fill_value=-1), [0, 2, 3, 6, -1, -1]),
    ("argwhere", lambda m: fnp.argwhere(m, size=5, fill_value=7), [[0], [2], [3], [6], [7]]),
    ("bincount", lambda m: fnp.bincount(m * 2, length=2), [3, 0]),
    ("take", lambda m: fnp.take(X, m * 6, mode="fill", fill_value=4.0)[:2], [1.0, 3.0]),
    ("take", lambda m: fnp.take(X, m * 7, 0, None, "fill")[:2], [NAN, 3.0]),
    ("take", lambda m: fnp.take(X, m * 7, mode="fill", fill_value=4)[:2], [4.0, 3.0]),
    ("take", lambda m: fnp.take(X, m * 6, mode=None)[:2], [1.0, 3.0]),
    ("compress", lambda m: fnp.compress(m, X, size=5, fill_value=8), [3, NAN, 3, 1, 8]),
    ("extract", lambda m: fnp.extract(m, X, size=2), [3.0, NAN]),
    ("repeat", lambda m: fnp.repeat(X, m * 2, total_repeat_length=6), [3, 3, NAN, NAN, 3, 3]),
    ("repeat", lambda m: fnp.repeat(ROWS, m[:2] * 2, 0, total_repeat_length=3),
     [[0, 1, 2], [0, 1, 2], [3, 4, 5]]),
    ("unique", lambda m: fnp.unique(np.where(m, X, 0), size=2), [0, 1]),
    ("union1d", lambda m: fnp.union1d(np.where(m, X, 0), [-1, 0], size=3), [-1, 0, 1]),
    ("unique", lambda m: fnp.unique(np.where(m, X, 0), size=6, fill_value=-1),
     [0, 1, 3, NAN, -1, -1]),
    ("unique", lambda m: fnp.unique(np.where(m, X, 0), True, True, True, size=5)[1],
     [1, 6, 0, 2, 1]),
    ("unique", lambda m: fnp.unique(np.where(m, X, 0), True, True, True, size=5)[2],
     [2, 0, 3, 2, 0, 0, 1]),
    ("unique", lambda m: fnp.unique(np.where(m, X, 0), True, True, True, size=5)[3],
     [3, 1, 2, 1, 0]),
    ("take_along_axis", lambda m: fnp.take_along_axis(ROWS[:1], m[None, :3] * 3, 1, mode="fill"),
     [[NAN, 0, NAN]]),
    ("take_along_axis", lambda m: fnp.take_along_axis(X, m * 9, 0, mode="clip")[:2], [1, 3]),
    ("put_along_axis", lambda m: _put(X * (m | True), m * 9, 5.0, 0, "drop"),
     [5, 1, NAN, 3, 2, NAN, 1]),
]  # fmt: skip


@each("name", sorted(FUNCTIONS.keys() - SAME))
def test_keywords_that_numpy_lacks_are_declared_and_none_is_missing(name: str) -> None:
    function = FUNCTIONS[name]
    own = inspect.signature(function.traced).parameters
    try:
        plain = inspect.signature(function.numpy_functions[0]).parameters
    except ValueError:
        pytest.skip("this version of NumPy does not tell the signature")
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    in_traced = {key for key, p in own.items() if p.kind in by_name}
    in_plain = {key for key, p in plain.items() if p.kind in by_name}
    if not any(p.kind is p.VAR_KEYWORD for p in plain.values()):
        assert in_traced - plain.keys() == function.own & own.keys()
    if not any(p.kind is p.VAR_KEYWORD for p in own.values()):
        assert not in_plain - own.keys()


@pytest.mark.parametrize(("name", "function", "want"), CASES)
def test_plain_and_traced_arrays_give_the_same(name: str, function: Any, want: Any) -> None:
    plain = function(MASK)
    assert type(plain) is np.ndarray
    for found in (plain, ft.jit(function)(MASK)):
        np.testing.assert_array_equal(found, np.asarray(want))
        assert found.dtype == plain.dtype
    stacked = ft.vmap(function)(np.stack([MASK, ~MASK]))
    np.testing.assert_array_equal(stacked[0], plain)
    np.testing.assert_array_equal(stacked[1], function(~MASK))


def test_every_function_with_keywords_of_its_own_is_tried() -> None:
    own = {name.rpartition(".")[2] for name, function in FUNCTIONS.items() if function.own}
    assert {name for name, _, _ in CASES} == own


@pytest.mark.parametrize("name", ["unique", "compress", "extract", "repeat", "nonzero", "argwhere"])
def test_advice_for_shapes_that_depend_on_values_works(name: str) -> None:
    keyword = "total_repeat_length" if name == "repeat" else "size"
    function = getattr(fnp, name)
    args = {"compress": (MASK, X), "extract": (MASK, X), "repeat": (X, MASK * 1)}.get(name, (X,))
    advice = rf"functrans.numpy.{name}\(\.\.\., {keyword}=n"
    with pytest.raises(ConcretizationError, match=advice):
        ft.jit(function)(*args)

    def advised(*args: Any) -> Any:
        return function(*args, **{keyword: 4})

    traced, plain = ft.tree.leaves(ft.jit(advised)(*args)), ft.tree.leaves(advised(*args))
    for found, expected in zip(traced, plain, strict=True):
        assert found.shape[0] == 4
        np.testing.assert_array_equal(found, expected)


WEIGHTS = np.arange(1.0, 5.0)
DERIVATIVES: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: fnp.unique(x, size=4), [3.0, 5.0, 0.0, 2.0, 0.0]),
    (lambda x: fnp.compress(x > 1.5, x, size=4), [1.0, 0.0, 2.0, 3.0, 0.0]),
    (lambda x: fnp.extract(x < 1.5, x, size=1) * np.ones(4), [0.0, 10.0, 0.0, 0.0, 0.0]),
    (lambda x: fnp.repeat(x, (x > 2.5) * 2, total_repeat_length=4), [3.0, 0.0, 7.0, 0.0, 0.0]),
]


@pytest.mark.parametrize(("function", "want"), DERIVATIVES)
def test_elements_found_carry_derivatives(function: Any, want: Any) -> None:
    x = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    slope = ft.grad(lambda x: np.sum(function(x) * WEIGHTS))
    np.testing.assert_allclose(slope(x), want)
    np.testing.assert_allclose(ft.jit(slope)(x), want)


def test_slices_of_a_size() -> None:
    found = fnp.compress(MASK[:2], ROWS, 1, size=2, fill_value=-1.0)
    np.testing.assert_array_equal(found, [[0.0, -1.0], [3.0, -1.0]])
    with pytest.raises(UnsupportedOperationError, match="axis=None"):
        fnp.unique(ROWS, axis=0, size=2)
    for call in (fnp.unique, ft.jit(fnp.unique, static_argnames=("axis", "size"))):
        np.testing.assert_array_equal(call(ROWS[0], axis=-1, size=2), np.unique(ROWS[0])[:2])
        with pytest.raises(np.exceptions.AxisError):
            call(ROWS[0], axis=1, size=2)


def test_vectorized_functions_of_the_library_keep_their_signature() -> None:
    each_row = fnp.vectorize(fnp.vdot, signature="(n),(n)->()")
    want = [ROWS[0] @ ROWS[0], ROWS[1] @ ROWS[1]]
    assert each_row(ROWS, ROWS).tolist() == want
    assert ft.jit(each_row)(ROWS, ROWS).tolist() == want


@pytest.mark.parametrize("name", ["sum", "prod", "mean", "var", "any", "all"])
def test_no_mask_of_a_traced_array_is_none(name: str) -> None:
    function = getattr(fnp, name)
    want = getattr(np, name)(ROWS, axis=1)
    np.testing.assert_array_equal(ft.jit(lambda x: function(x, axis=1, where=None))(ROWS), want)
