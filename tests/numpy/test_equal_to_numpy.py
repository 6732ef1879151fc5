"""Generated comparisons with NumPy: dtypes, special values and methods of every ufunc."""

import functools
import itertools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.numpy.at import At
from functrans.numpy.ufuncs import UFUNCS

ELEMENTWISE = [ufunc for ufunc in UFUNCS if ufunc.signature is None]
FOLDED = [ufunc for ufunc in ELEMENTWISE if (ufunc.nin, ufunc.nout) == (2, 1)]
SCALARS = (True, 2, 2.0, 1 + 2j)


def of(call: Callable[..., Any], *args: Any) -> Any:
    """A result as a tuple, or the error that was raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = call(*args)
    except (TypeError, ValueError, OverflowError) as error:
        return error
    return result if isinstance(result, tuple) else (result,)


def staged(call: Callable[..., Any], *args: Any) -> Any:
    """The results of the staged function, interpreted."""
    return tuple(ft.eval_jaxpr(ft.make_jaxpr(call)(*args), None, *args))


def agree(wanted: Any, got: Any, eps: float = 8.0) -> bool:
    """Whether dtypes, shapes and values are equal; zeros and infinities in their signs too."""
    wanted, got = np.asarray(wanted), np.asarray(got)
    if wanted.dtype != got.dtype or wanted.shape != got.shape:
        return False
    if wanted.dtype.kind == "c":
        return agree(wanted.real, got.real, eps) and agree(wanted.imag, got.imag, eps)
    if wanted.dtype.kind != "f":
        return np.array_equal(wanted, got)
    info = np.finfo(wanted.dtype)
    with np.errstate(all="ignore"):
        close = np.abs(wanted - got) <= eps * info.eps * np.abs(wanted)
        close |= np.abs(wanted - got) <= 2 * info.smallest_subnormal
        close &= (wanted != 0) & (got != 0)
    exact = (wanted == got) & (np.signbit(wanted) == np.signbit(got))
    return bool(np.all(close | exact | (np.isnan(wanted) & np.isnan(got))))


def failures(cases: Any) -> list[str]:
    """What differs from NumPy, of pairs of a name, what NumPy gives, and what is given."""
    found = []
    for name, wanted, got in cases:
        if isinstance(wanted, Exception) or isinstance(got, Exception):
            if not (isinstance(wanted, Exception) and isinstance(got, Exception)):
                found.append(f"{name}: {wanted!r} in NumPy, {got!r} here")
        elif len(wanted) != len(got) or not all(map(agree, wanted, got)):
            found.append(f"{name}: {wanted!r} in NumPy, {got!r} here")
    return found


# dtypes -----------------------------------------------------------------------------------------


def operand_pairs(dtypes: str) -> list[tuple[Any, Any]]:
    """Arrays beside arrays, NumPy's scalars and Python's, on either side."""
    others: list[Any] = [*SCALARS]
    for dtype in dtypes:
        others += [np.ones(2, dtype), np.ones((), dtype), np.dtype(dtype).type(1)]
    arrays = [np.array([1, 2]).astype(dtype) for dtype in dtypes]
    pairs = [(array, other) for array in arrays for other in others]
    return pairs + [(b, a) for a, b in pairs if not isinstance(b, np.ndarray)]


@pytest.mark.parametrize("ufunc", FOLDED, ids=lambda u: u.__name__)
def test_binary_ufunc_of_any_two_operands_gives_numpys_dtype_and_value(ufunc: np.ufunc) -> None:
    def cases() -> Any:
        for a, b in operand_pairs("?bLfD"):
            is_first = isinstance(a, np.ndarray)
            call = (lambda x, b=b: ufunc(x, b)) if is_first else (lambda x, a=a: ufunc(a, x))
            yield f"{a!r}, {b!r}", of(ufunc, a, b), of(staged, call, a if is_first else b)

    assert not failures(cases())


OPERATORS = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
    "**": lambda a, b: a**b, "&": lambda a, b: a & b, "<<": lambda a, b: a << b,
    "==": lambda a, b: a == b,
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_of_any_two_operands_gives_numpys_dtype_and_value(name: str) -> None:
    operator = OPERATORS[name]

    def cases() -> Any:
        for a, b in operand_pairs("?bLfD"):
            is_first = isinstance(a, np.ndarray)
            if not is_first and isinstance(a, np.generic):
                continue  # NumPy's scalar answers by its ufunc, which is above
            call = (lambda x, b=b: operator(x, b)) if is_first else (lambda x, a=a: operator(a, x))
            yield f"{a!r} {name} {b!r}", of(operator, a, b), of(staged, call, a if is_first else b)

    assert not failures(cases())


# values -----------------------------------------------------------------------------------------


def special_values(dtype: str) -> np.ndarray:
    """Zeros of both signs, infinities, NaN, the smallest and largest numbers, and ordinary ones."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        info = np.iinfo(dtype)
        return np.array([info.min, info.max, info.max - 1, 0, 1, 2, 3, 7, info.min + 1], dtype)
    if kind == "c":
        parts = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, 2.5])
        values = np.empty((9, 9), dtype)
        values.real, values.imag = parts[:, None], parts
        return values.ravel()
    limits = np.finfo(dtype)
    numbers = [0.0, np.inf, 1, 0.5, 2, 3, 1.5, 2.5, 0.1, 7.25, 10]
    numbers += [float(limits.tiny), float(limits.smallest_subnormal), float(limits.max)]
    return np.array([*numbers, *(-number for number in numbers), np.nan], dtype)


EITHER_ZERO = (np.maximum, np.minimum, np.fmax, np.fmin)
"""Of 0.0 and -0.0 either may come out, in NumPy too (it depends on the loop)."""


def special_operands(ufunc: np.ufunc, dtypes: str) -> Any:
    """Operands of a ufunc among the special values, and what NumPy gives for them."""
    for dtype in dtypes:
        values = special_values(dtype)
        if ufunc.nin == 1:
            operands: tuple[np.ndarray, ...] = (values,)
        elif dtype in "FD" or (ufunc is np.power and dtype in "bLHl"):
            continue  # complex pairs: an ulp beside; powers of integers: errors
        else:
            a, b = (x.ravel() for x in np.meshgrid(values, values))
            keep = (a != 0) | (b != 0) if ufunc in EITHER_ZERO else slice(None)
            operands = (a[keep], b[keep])
        wanted = of(ufunc, *operands)
        if not isinstance(wanted, Exception):
            yield dtype, operands, wanted


@pytest.mark.parametrize("ufunc", ELEMENTWISE, ids=lambda u: u.__name__)
def test_ufunc_at_special_values_is_numpys(ufunc: np.ufunc) -> None:
    cases = special_operands(ufunc, "?bHlLefdFD")
    assert not failures((name, wanted, of(staged, ufunc, *x)) for name, x, wanted in cases)


def test_native_arithmetic_at_special_values_is_numpys() -> None:
    ufuncs = (
        np.modf, np.reciprocal, np.sign, np.square, np.absolute, np.negative, np.trunc, np.rint,
        np.copysign, np.fmod, np.divmod, np.divide, np.multiply, np.heaviside, np.maximum,
    )  # fmt: skip
    cases = [(u, *case) for u in ufuncs for case in special_operands(u, "bldD")]
    with np.errstate(all="ignore"):
        results = ft.jit(
            lambda operands: [u(*x) for (u, *_), x in zip(cases, operands, strict=True)]
        )([x for _, _, x, _ in cases])
    results = [r if isinstance(r, tuple) else (r,) for r in results]
    rows = zip(cases, results, strict=True)
    assert not failures((f"{u.__name__} {name}", w, got) for (u, name, _, w), got in rows)


# methods ----------------------------------------------------------------------------------------

MASK = np.array([[True, False, True], [False, True, True]])


def method_calls(ufunc: np.ufunc, x: np.ndarray) -> Any:
    """Calls of the methods of a ufunc on an array."""
    yield "reduce", ufunc.reduce
    yield "accumulate", ufunc.accumulate
    yield "reduce axis=()", lambda x: ufunc.reduce(x, axis=())
    yield "reduce axis=None", lambda x: ufunc.reduce(x, axis=None)
    yield "reduce keepdims", lambda x: ufunc.reduce(x, axis=-1, keepdims=True)
    yield "reduce initial", lambda x: ufunc.reduce(x, initial=2)
    yield "reduce dtype", lambda x: ufunc.reduce(x, dtype="f4")
    yield "accumulate dtype", lambda x: ufunc.accumulate(x, dtype="f4")
    mask = MASK.ravel()[: x.size].reshape(x.shape)
    yield "reduce where", lambda x: ufunc.reduce(x, where=mask)
    yield "reduce where initial", lambda x: ufunc.reduce(x, where=mask, initial=2)
    yield "outer", lambda x: ufunc.outer(x, x)
    yield "outer scalar", lambda x: ufunc.outer(x, 2)
    if x.shape and x.shape[0] > 1:
        yield "reduceat", lambda x: ufunc.reduceat(x, [1, 0, 0])
        yield "reduceat rising", lambda x: ufunc.reduceat(x, [0, 1])
        yield "reduceat nothing", lambda x: ufunc.reduceat(x, np.zeros(0, int))
        yield "at", lambda x: _at(ufunc, x, [0, 1, 0, -1], x[0])


def _is_fold_wrong(ufunc: np.ufunc) -> bool:
    """Whether NumPy folds wrongly here: its AVX-512 loops write where they still read."""
    if ufunc not in (np.arctan2, np.power):
        return False
    x = np.array([[3.0, 0.0, 2.0], [1.0, 2.0, 1.0]])
    with np.errstate(all="ignore"):
        return bool(np.any(ufunc.reduce(x, axis=-1) != ufunc(ufunc(x[:, 0], x[:, 1]), x[:, 2])))


IS_FOLD_WRONG = {ufunc: _is_fold_wrong(ufunc) for ufunc in FOLDED}


def _at(ufunc: np.ufunc, x: Any, index: list[int], value: Any) -> Any:
    y = x.copy()
    ufunc.at(y, index, value)
    return y


def small_array(dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Few numbers, some of them negative, zero and equal."""
    n = int(np.prod(shape))
    signs = np.array([-1, 1, 1, -1, 1, 1]) if np.dtype(dtype).kind in "ifc" else np.ones(6, int)
    numbers = (np.array([3, 0, 2, 1, 2, 1]) * signs)[:n]
    return (numbers + 1j * np.arange(n) if dtype == "D" else numbers).astype(dtype).reshape(shape)


@pytest.mark.parametrize("ufunc", FOLDED, ids=lambda u: u.__name__)
def test_every_method_of_a_ufunc_gives_numpys_dtype_and_value(ufunc: np.ufunc) -> None:
    def cases() -> Any:
        for dtype in "?bLD":
            for shape in ((), (0,), (1,), (2, 3)):
                x = small_array(dtype, shape)
                for name, call in method_calls(ufunc, x):
                    if not (IS_FOLD_WRONG[ufunc] and "reduce" in name):
                        yield f"{name} {dtype}{shape}", of(call, x), of(staged, call, x)

    assert not failures(cases())


def test_native_methods_give_numpys_dtypes_and_values() -> None:
    cases = []
    for ufunc, dtype in ((np.hypot, "d"), (np.logical_and, "l"), (np.subtract, "l")):
        x = small_array(dtype, (3,))
        for name, call in method_calls(ufunc, x):
            wanted = of(call, x)
            if not isinstance(wanted, Exception):
                cases.append((f"{ufunc.__name__} {name}", ft.make_jaxpr(call)(x), x, wanted))
    results = ft.jit(
        lambda xs: [ft.eval_jaxpr(c[1], None, x)[0] for c, x in zip(cases, xs, strict=True)]
    )([x for _, _, x, _ in cases])
    rows = zip(cases, results, strict=True)
    assert not failures((name, wanted, (got,)) for (name, _, _, wanted), got in rows)


def test_hypot_of_one_element_is_its_absolute_value() -> None:
    x = np.array([-3.0])
    assert ft.jit(np.hypot.reduce)(x) == 3.0
    assert ft.grad(np.hypot.reduce)(x) == -1.0
    assert ft.vmap(np.hypot.reduce)(x[None]) == 3.0


def test_masked_fold_has_no_derivative_where_the_mask_is_off() -> None:
    def f(x):
        return np.divide.reduce(x, where=np.array([True, False, True]), initial=6.0)

    x = np.array([2.0, 0.0, 3.0])
    assert f(x) == 1.0
    np.testing.assert_allclose(ft.grad(f)(x), [-0.5, 0.0, -1 / 3], rtol=1e-15)


def test_derivatives_of_parts_and_signs_are_those_of_the_functions() -> None:
    x = np.array([-3.0, -0.5, 0.0, 1.0, 2.5])
    np.testing.assert_array_equal(ft.grad(lambda x: np.sum(np.modf(x)[0]))(x), np.ones(5))
    ft.check_grads(lambda a, b: np.abs(np.sign(a + 1j * b) + 1.0), (0.3, -0.7), order=2)
    ft.check_grads(np.reciprocal, (np.array([0.3 - 1.2j, -2.0 + 0.1j]),), order=2)


@pytest.mark.parametrize("dtype", ["u1", "?", "f4", "f8"])
@pytest.mark.parametrize(("shape", "axis"), [((0, 3), 0), ((0, 3), None), ((0, 3), 1), ((3, 0), 1)])
def test_quantiles_of_nothing_are_nan(dtype: str, shape: Any, axis: Any) -> None:
    x = np.zeros(shape, dtype)
    for function in (np.nanquantile, np.nanpercentile):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of slices of NaN only
            expected = function(x, 0.2, axis=axis)
        found = ft.jit(lambda x, f=function: f(x, 0.2, axis=axis))(x)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
        # NumPy leaves out the axis of several quantiles here.
        assert ft.jit(lambda x, f=function: f(x, [0.2, 0.7], axis=axis))(x).shape == (
            2,
            *expected.shape,
        )


@pytest.mark.parametrize("dtype", ["u2", "i4", "u8", "i8"])
@pytest.mark.parametrize("values", ["?", "u1", "i2", "u4", "u8"])
def test_subtraction_at_places_is_in_the_dtype_of_the_array(dtype: str, values: str) -> None:
    x, v = np.array([5, 0, 7], dtype), np.array([2, 3]).astype(values)
    expected = x.copy()
    expected[[0, 1]] -= v.astype(dtype)
    function = lambda x, v: At(x)[np.array([0, 1])].subtract(v)  # noqa: E731  # one line
    for call in (function, ft.jit(function)):
        np.testing.assert_array_equal(call(x, v), expected)


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "put": lambda a, v: np.put(a, [0] if a.size else [], v),
    "put nowhere": lambda a, v: np.put(a, [], v),
    "putmask": lambda a, v: np.putmask(a, np.ones(a.shape, bool), v),
    "putmask nowhere": lambda a, v: np.putmask(a, np.zeros(a.shape, bool), v),
    "place": lambda a, v: np.place(a, np.ones(a.shape, bool), v),
    "place nowhere": lambda a, v: np.place(a, np.zeros(a.shape, bool), v),
    "fill_diagonal": lambda a, v: np.fill_diagonal(a, v),
    "flat": lambda a, v: a.flat.__setitem__(slice(None), v),
    "flat list": lambda a, v: a.flat.__setitem__([0] if a.size else [], v),
    "copyto": lambda a, v: np.copyto(a, v),
    "assignment": lambda a, v: a.__setitem__(..., v),
    "masked": lambda a, v: a.__setitem__(np.ones(a.shape, bool), v),
    "put_along_axis": lambda a, v: np.put_along_axis(a, np.zeros(a.shape, int), v, 0),
}


@each("values", [(0,), (2, 0), (1,), (), (1, 1), (3,)])
@each("shape", [(2,), (), (0,), (2, 2), (0, 3), (1, 3)])
@each("write", WRITES, by="write")
def test_writes_of_nothing_and_to_nothing(write: str, shape: Any, values: Any) -> None:
    """The same array or the same refusal; NumPy's masks take values of one axis only."""
    if write == "masked" and len(values) > 1:
        return

    def written(a: Any, v: Any) -> Any:
        WRITES[write](a, v)
        return a

    v = np.full(values, 5.0)
    expected = of(written, np.ones(shape), v)
    found = of(ft.jit(lambda a, v: written(a * 1.0, v)), np.ones(shape), v)
    assert isinstance(found, Exception) is isinstance(expected, Exception), (found, expected)
    if isinstance(expected, tuple):
        np.testing.assert_array_equal(found[0], expected[0])


QUANTILES = (np.quantile, np.percentile, np.nanquantile, np.nanpercentile)
METHODS = (
    *("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "interpolated_inverted_cdf"),
    *("hazen", "weibull", "linear", "median_unbiased", "normal_unbiased"),
    *("lower", "higher", "midpoint", "nearest"),
)


@pytest.mark.parametrize("method", METHODS)
def test_quantiles_have_numpys_dtype_and_value(method: str) -> None:
    def cases() -> Any:
        for function, dtype in itertools.product(QUANTILES, "bBhilLefd"):
            scale = 100 if "percent" in function.__name__ else 1
            x = np.array([3, 1, 2, 5, 1]).astype(dtype)
            exact = [0.25 * scale, 1, True, np.float32(0.5 * scale), np.array([0, 1])]
            exact += [np.array([0.25, 0.75], kind) * np.dtype(kind).type(scale) for kind in "efd"]
            for q in exact:
                call = functools.partial(function, q=q, method=method)
                yield f"{function.__name__} {dtype} {q!r}", of(call, x), of(staged, call, x)

    assert not failures(cases())


@pytest.mark.parametrize("weights", "?bLefdD")
@pytest.mark.parametrize("dtype", "?bLefdD")
def test_averages_and_sums_of_weights_have_numpys_dtype_and_value(dtype: str, weights: str) -> None:
    x, w = np.array([3, 0, 1]).astype(dtype), np.array([1, 2, 1]).astype(weights)
    cases = [("average", lambda x, w: np.average(x, weights=w))]
    if dtype in "?b":
        cases.append(("bincount", lambda x, w: np.bincount(x, w, minlength=5)))
    found = (
        (name, of(call, x, w), of(staged, lambda w, c=call: c(x, w), w)) for name, call in cases
    )
    assert not failures(found)


NUMBERS = (True, 2, 0.5)
OF_NUMBERS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(operator, name) for name in ("add", "sub", "mul", "truediv", "floordiv")},
    **{name: getattr(operator, name) for name in ("mod", "pow", "lt", "eq", "and_", "xor")},
    "neg": lambda a, b: -(a * b),
    "where": lambda a, b: np.where(np.greater(a, 0), a, b) * np.float32(2.0),
    "clip": lambda a, b: np.clip(a, 0, b) * np.float32(2.0),
    "beside an array": lambda a, b: (a + b) * np.ones(2, "f4"),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_arithmetic_of_python_numbers_is_pythons(name: str) -> None:
    """Booleans too are numbers there; functions that select give arrays, as NumPy's."""
    function = OF_NUMBERS[name]
    compiled = ft.jit(function)
    cases = []
    for a, b in itertools.product(NUMBERS, NUMBERS):
        wanted = of(function, a, b)
        cases.append((f"{a} {b} staged", wanted, of(staged, function, a, b)))
        cases.append((f"{a} {b} compiled", wanted, of(compiled, a, b)))
    assert not failures(cases)


@pytest.mark.parametrize("shape", [(), (2,), (3,), (2, 3), (3, 2), (1, 3)])
def test_conditions_of_piecewise_fit_leading_axes(shape: Any) -> None:
    """As NumPy's, where the condition has elements."""

    def cases() -> Any:
        x = np.arange(1.0, 1 + math.prod(shape)).reshape(shape)
        for own in ((), (1,), (2,), (3,), (2, 3), (3, 1), (1, 3)):
            mask = np.resize([True, False, True], own)
            for functions in ([np.negative], [np.negative, 7.0], [5.0, np.square]):

                def call(x: Any, mask: Any, functions: Any = functions) -> Any:
                    return np.piecewise(x, [mask], functions)

                try:
                    wanted: Any = (call(x, mask),)
                except IndexError as error:
                    wanted = error
                yield f"{own} {functions}", wanted, of(staged, call, x, mask)
                known = functools.partial(call, mask=mask)
                yield f"known {own} {functions}", wanted, of(staged, known, x)

    assert not failures(cases())


COVARIED = [(), (0,), (1,), (3,), (0, 3), (1, 3), (2, 3), (3, 1), (3, 0), (2, 1)]


@pytest.mark.parametrize("name", ["cov", "corrcoef"])
@pytest.mark.parametrize("options", [{}, {"rowvar": False}, {"dtype": "f4"}], ids=str)
def test_covariances_have_numpys_shape_dtype_and_value(name: str, options: Any) -> None:
    function = functools.partial(getattr(np, name), **options)
    rng = np.random.default_rng(0)
    found = []
    for shape, other in itertools.product(COVARIED, [None, *COVARIED]):
        for dtype in "?fD":
            args = [(rng.normal(size=shape) * 3).astype(dtype)]
            if other is not None:
                args.append((rng.normal(size=other) * 3).astype("f4"))
            with np.errstate(all="ignore"):
                wanted, got = of(function, *args), of(staged, function, *args)
            if isinstance(wanted, Exception) or isinstance(got, Exception):
                if type(wanted) is not type(got) and not isinstance(got, ft.errors.ShapeError):
                    found.append(f"{shape} {other} {dtype}: {wanted!r} in NumPy, {got!r} here")
                continue
            (wanted,), (got,) = wanted, got
            is_close = np.allclose(wanted, got, rtol=1e-4, atol=1e-5, equal_nan=True)
            if not (wanted.dtype == got.dtype and wanted.shape == got.shape and is_close):
                found.append(f"{shape} {other} {dtype}: {wanted!r} in NumPy, {got!r} here")
    assert not found


@pytest.mark.parametrize("op", ["add", "multiply", "min", "max"])
@pytest.mark.parametrize("index", [slice(None), [0, 1], np.array([True, True])], ids=str)
def test_updates_at_places_are_in_the_dtype_of_the_array(op: str, index: Any) -> None:
    """Whatever names the places."""
    for dtype, value in (("u1", 200), ("i2", np.array([70000, 3])), ("f2", np.array([1e-9, 3.3]))):
        x = np.array([3, 5], dtype)
        kept = np.asarray(value).astype(dtype)
        names = {"min": "minimum", "max": "maximum"}
        expected = getattr(np, names.get(op, op))(x, kept)
        call = lambda x, v=value: getattr(At(x)[index], op)(v)  # noqa: E731  # one line
        for found in (call(x), ft.jit(call)(x)):
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)
    with pytest.raises(TypeError, match=rf"cannot {op} float64 values in an array of int64"):
        getattr(At(np.arange(2))[index], op)(0.5)


@pytest.mark.parametrize("dtype", "efd")
def test_slopes_beside_python_numbers_have_the_dtype_of_the_array(dtype: str) -> None:
    """Compiled too: Python numbers give way in what a primitive is written in terms of."""
    x = np.array([0.3, 1.2], dtype)
    for ufunc in (np.hypot, np.arctan2, np.power, np.logaddexp, np.maximum, np.divide, np.copysign):
        for call in (lambda x, b, u=ufunc: np.sum(u(x, b)), lambda x, b, u=ufunc: np.sum(u(b, x))):
            slope = ft.grad(call)
            found, expected = ft.jit(slope)(x, 1.5), slope(x, 1.5)
            assert found.dtype == expected.dtype == x.dtype
            np.testing.assert_allclose(found, expected, rtol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", ["?", *"bBhHiIlL"])
def test_bincount_of_every_integer(dtype):
    weights = np.array([0.5, 2.0, 1.0])
    for numbers in (np.array([1, 0, 1], dtype), np.array([], dtype)):
        given = weights[: numbers.size]
        try:
            expected = np.bincount(numbers, given)
        except TypeError:  # of 64 unsigned bits
            continue
        found = ft.jvp(lambda w, x=numbers: np.bincount(x, w), (given,), (given,))[0]
        np.testing.assert_array_equal(found, expected)


OF_TRUTHS: dict[str, Callable[[Any], Any]] = {
    "square": lambda b: b**2, "cube": lambda b: b**3, "power": lambda b: b**b,
    "sum": lambda b: b + b, "product": lambda b: b * 2, "quotient": lambda b: b / 2,
    "remainder": lambda b: b % 2, "invert": lambda b: ~b, "and": lambda b: b & b,
    "absolute": abs, "less": lambda b: b < b,
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TRUTHS)
def test_operators_of_truths_that_no_derivative_reaches(name: str) -> None:
    """Arrays of truths inside of transforms of transforms have NumPy's dtypes."""

    def function(x: Any) -> Any:
        return OF_TRUTHS[name](np.asarray(np.array_equal(x, x)))

    x = np.array([1.5])
    wanted = function(x)
    transforms: list[Callable[[Any], Any]] = [
        ft.jit(function),
        lambda x: ft.vjp(function, x)[0],
        lambda x: ft.jvp(function, (x,), (x,))[0],
        ft.jit(lambda x: ft.vjp(function, x)[0]),
        ft.jit(lambda x: ft.jvp(function, (x,), (x,))[0]),
        ft.jit(lambda x: ft.vmap(function)(x[None])[0]),
    ]
    for transformed in transforms:
        found = np.asarray(transformed(x))
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
