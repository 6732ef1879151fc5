"""The Python array API standard 2024.12: names, signatures, dtypes, values.

The tables are the function list of the standard. Every function runs on plain arrays, and on arrays
that are traced inside ``jit``.
"""

import inspect
import itertools

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans import numpy as xp
from functrans.errors import ConcretizationError, UnsupportedOperationError

SIGNED = ["int8", "int16", "int32", "int64"]
UNSIGNED = ["uint8", "uint16", "uint32", "uint64"]
INTEGERS = SIGNED + UNSIGNED
REAL = ["float32", "float64"]
COMPLEX = ["complex64", "complex128"]
NUMERIC = INTEGERS + REAL + COMPLEX
BOOL = ["bool"]
PARTS = {"complex64": "float32", "complex128": "float64"}

# function: (dtypes that it must take, dtype of the result as a function of theirs)
same = lambda d: d  # noqa: E731
truth = lambda d: "bool"  # noqa: E731
part = lambda d: PARTS.get(d, d)  # noqa: E731
UNARY = {
    **dict.fromkeys(["negative", "positive", "square"], (NUMERIC, same)),
    "abs": (NUMERIC, part),
    "sign": (NUMERIC, same),
    **dict.fromkeys(
        [
            "acos",
            "acosh",
            "asin",
            "asinh",
            "atan",
            "atanh",
            "cos",
            "cosh",
            "exp",
            "expm1",
            "log",
            "log1p",
            "log2",
            "log10",
            "reciprocal",
            "sin",
            "sinh",
            "sqrt",
            "tan",
            "tanh",
        ],
        (REAL + COMPLEX, same),
    ),
    "conj": (COMPLEX, same),
    "real": (COMPLEX, part),
    "imag": (COMPLEX, part),
    **dict.fromkeys(["isfinite", "isinf", "isnan"], (NUMERIC, truth)),
    **dict.fromkeys(["ceil", "floor", "trunc"], (INTEGERS + REAL, same)),
    "round": (NUMERIC, same),
    "bitwise_invert": (BOOL + INTEGERS, same),
    "logical_not": (BOOL, truth),
    "signbit": (REAL, truth),
}
BINARY = {
    **dict.fromkeys(["add", "subtract", "multiply", "pow"], (NUMERIC, same)),
    **dict.fromkeys(["equal", "not_equal"], (BOOL + NUMERIC, truth)),
    "divide": (REAL + COMPLEX, same),
    **dict.fromkeys(["floor_divide", "remainder", "maximum", "minimum"], (INTEGERS + REAL, same)),
    **dict.fromkeys(["less", "less_equal", "greater", "greater_equal"], (INTEGERS + REAL, truth)),
    **dict.fromkeys(["atan2", "copysign", "hypot", "logaddexp", "nextafter"], (REAL, same)),
    **dict.fromkeys(["bitwise_and", "bitwise_or", "bitwise_xor"], (BOOL + INTEGERS, same)),
    **dict.fromkeys(["bitwise_left_shift", "bitwise_right_shift"], (INTEGERS, same)),
    **dict.fromkeys(["logical_and", "logical_or", "logical_xor"], (BOOL, truth)),
}
OLD_NAMES = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atanh": "arctanh", "atan2": "arctan2", "pow": "power", "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}  # fmt: skip


def values(dtype, number=0):
    """Four elements where all functions of a table are defined."""
    if dtype == "bool":
        return np.array([True, False, True, number == 0])
    x = np.array([1, 2, 3, 5]) if number == 0 else np.array([2, 1, 3, 2])
    if dtype in REAL:
        return (x / 8).astype(dtype)
    return (x / 8 + 0.25j).astype(dtype) if dtype in COMPLEX else x.astype(dtype)


def interpreted(fun, *args):
    with ft.config(native=False):
        return ft.jit(fun)(*args)


CASES = [
    pytest.param(name, dtype, count, result, id=f"{name}-{dtype}")
    for table, count in ((UNARY, 1), (BINARY, 2))
    for name, (dtypes, result) in table.items()
    for dtype in dtypes
]


@each(("name", "dtype", "count", "result"), CASES, by="dtype")
def test_elementwise(name, dtype, count, result):
    args = [values(dtype, number) for number in range(count)]
    if name == "acosh":
        args = [args[0] + args[0].dtype.type(1)]
    fun = getattr(xp, name)
    expected = getattr(np, OLD_NAMES.get(name, name))(*args)
    plain, traced = fun(*args), interpreted(fun, *args)
    assert plain.dtype == traced.dtype == np.dtype(result(dtype))
    np.testing.assert_array_equal(plain, expected)
    eps = 0 if traced.dtype.kind in "biu" else 4 * np.finfo(traced.dtype).eps
    np.testing.assert_allclose(traced, expected, rtol=eps)


# operators: dunder of traced arrays, the function with the same meaning
OPERATORS = {
    "__add__": "add", "__sub__": "subtract", "__mul__": "multiply", "__truediv__": "divide",
    "__floordiv__": "floor_divide", "__mod__": "remainder", "__pow__": "pow", "__lt__": "less",
    "__le__": "less_equal", "__gt__": "greater", "__ge__": "greater_equal", "__eq__": "equal",
    "__ne__": "not_equal", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "__lshift__": "bitwise_left_shift",
    "__rshift__": "bitwise_right_shift", "__matmul__": "matmul",
}  # fmt: skip


@pytest.mark.parametrize("method", OPERATORS)
def test_operators_are_the_functions(method):
    dtype = (
        "int32" if "shift" in method or method in ("__and__", "__or__", "__xor__") else "float32"
    )
    x, y = values(dtype), values(dtype, 1)
    expected = getattr(xp, OPERATORS[method])(x, y)
    traced = interpreted(lambda x, y: getattr(x, method)(y), x, y)
    assert traced.dtype == expected.dtype
    np.testing.assert_array_equal(traced, expected)


def test_promotion_of_two_dtypes():
    for left, right in itertools.product(NUMERIC, repeat=2):
        is_mixed = (left in INTEGERS) != (right in INTEGERS)
        if is_mixed or ({left, right} & {"uint64"} and (left in SIGNED or right in SIGNED)):
            continue  # the standard leaves it open
        x, y = values(left), values(right, 1)
        expected = np.result_type(left, right)
        assert xp.result_type(x, y) == expected
        assert interpreted(xp.add, x, y).dtype == expected
        assert interpreted(lambda x, y, d=expected: x + xp.astype(y, d), x, y).dtype == expected


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float32", "complex64"])
def test_python_numbers_give_way(dtype):
    x = values(dtype)
    number = 2 if dtype in INTEGERS else 0.5
    traced = interpreted(lambda x: (x + number, number * x, xp.add(x, number)), x)
    assert {t.dtype for t in traced} == {x.dtype}


# all other functions ------------------------------------------------------------------------------

A = np.array([[3.0, 1.0, 2.0], [0.5, -1.0, 4.0]])
B = np.array([[1.0, -2.0, 0.5], [2.0, 3.0, 1.0]])
S = np.array([[4.0, 1.0], [1.0, 3.0]])
I32 = np.array([[3, 1, 2], [5, 0, 4]], np.int32)
Z = np.array([1 + 2j, -1j, 3.0, 0.5])
# label: (function of arrays, arrays, the same in NumPy or the expected result)
FUNCTIONS = {
    "asarray": (
        lambda x: xp.asarray(x, dtype=xp.float32, device="cpu", copy=True),
        [A],
        A.astype("f4"),
    ),
    "astype": (lambda x: xp.astype(x, xp.float32, copy=False, device="cpu"), [A], A.astype("f4")),
    "broadcast_arrays": (
        lambda x, y: xp.broadcast_arrays(x, y)[1],
        [A, A[0]],
        np.stack([A[0]] * 2),
    ),
    "broadcast_to": (lambda x: xp.broadcast_to(x, (2, 2, 3)), [A], np.stack([A, A])),
    "clip": (lambda x: xp.clip(x, 0.0, 2.0), [A], np.clip(A, 0, 2)),
    "clip, keywords": (lambda x: xp.clip(x, min=None, max=2.0), [A], np.minimum(A, 2)),
    "clip of integers": (lambda x: xp.clip(x, 1, None), [I32], np.maximum(I32, np.int32(1))),
    "empty_like": (
        lambda x: xp.empty_like(x, dtype=xp.int8, device="cpu") * 0,
        [A],
        np.zeros((2, 3), "i1"),
    ),
    "full_like": (
        lambda x: xp.full_like(x, 3, dtype=None, device="cpu"),
        [I32],
        np.full((2, 3), 3, "i4"),
    ),
    "ones_like": (
        lambda x: xp.ones_like(x, dtype=None, device="cpu"),
        [I32],
        np.ones((2, 3), "i4"),
    ),
    "zeros_like": (
        lambda x: xp.zeros_like(x, dtype=None, device="cpu"),
        [I32],
        np.zeros((2, 3), "i4"),
    ),
    "meshgrid": (
        lambda x, y: xp.meshgrid(x, y, indexing="ij")[1],
        [A[0], A[1]],
        np.stack([A[1]] * 3),
    ),
    "tril": (lambda x: xp.tril(x, k=-1), [S], np.tril(S, -1)),
    "triu": (lambda x: xp.triu(x, k=1), [S], np.triu(S, 1)),
    "take": (lambda x: xp.take(x, np.array([2, 0]), axis=1), [A], A[:, [2, 0]]),
    "take_along_axis": (
        lambda x: xp.take_along_axis(x, np.array([[2], [0]]), axis=-1),
        [A],
        np.array([[2.0], [0.5]]),
    ),
    "matmul": (xp.matmul, [A, B.T], A @ B.T),
    "matrix_transpose": (xp.matrix_transpose, [A], A.T),
    "tensordot": (lambda x, y: xp.tensordot(x, y, axes=((0, 1), (0, 1))), [A, B], np.sum(A * B)),
    "vecdot": (lambda x, y: xp.vecdot(x, y, axis=0), [A, B], np.sum(A * B, 0)),
    "vecdot, complex": (lambda x, y: xp.vecdot(x, y, axis=-1), [Z, Z], np.vdot(Z, Z)),
    "concat": (lambda x, y: xp.concat((x, y), axis=1), [A, B], np.concatenate([A, B], 1)),
    "concat, flat": (
        lambda x, y: xp.concat([x, y], axis=None),
        [A, B],
        np.concatenate([A.ravel(), B.ravel()]),
    ),
    "expand_dims": (lambda x: xp.expand_dims(x, axis=1), [A], A[:, None]),
    "flip": (lambda x: xp.flip(x, axis=None), [A], A[::-1, ::-1]),
    "moveaxis": (lambda x: xp.moveaxis(x, 0, 1), [A], A.T),
    "permute_dims": (lambda x: xp.permute_dims(x, (1, 0)), [A], A.T),
    "repeat": (lambda x: xp.repeat(x, 2, axis=1), [A], np.repeat(A, 2, 1)),
    "repeat, counts": (lambda x: xp.repeat(x, np.array([1, 2]), axis=0), [A], A[[0, 1, 1]]),
    "reshape": (lambda x: xp.reshape(x, (3, -1), copy=True), [A], A.reshape(3, 2)),
    "roll": (lambda x: xp.roll(x, (1, 1), axis=(0, 1)), [A], np.roll(A, (1, 1), (0, 1))),
    "squeeze": (lambda x: xp.squeeze(x, axis=0), [A[:1]], A[0]),
    "stack": (lambda x, y: xp.stack((x, y), axis=-1), [A, B], np.stack([A, B], -1)),
    "tile": (lambda x: xp.tile(x, (2, 1)), [A], np.tile(A, (2, 1))),
    "unstack": (lambda x: xp.unstack(x, axis=1)[2], [A], A[:, 2]),
    "argmax": (lambda x: xp.argmax(x, axis=1, keepdims=True), [A], np.array([[0], [2]])),
    "argmin": (lambda x: xp.argmin(x, axis=None, keepdims=False), [A], np.int64(4)),
    "searchsorted": (
        lambda x, y: xp.searchsorted(x, y, side="right"),
        [np.sort(A[0]), A[0]],
        np.array([3, 1, 2]),
    ),
    "searchsorted, sorter": (
        lambda x, y: xp.searchsorted(x, y, sorter=xp.argsort(x)),
        [A[0], A[0]],
        np.array([2, 0, 1]),
    ),
    "where": (lambda c, x, y: xp.where(c, x, y), [A > 1, A, B], np.where(A > 1, A, B)),
    "sort": (lambda x: xp.sort(x, axis=0, descending=True, stable=True), [A], -np.sort(-A, 0)),
    "sort, default": (xp.sort, [A], np.sort(A)),
    "argsort": (
        lambda x: xp.argsort(x, axis=-1, descending=True, stable=True),
        [np.array([1.0, 3.0, 1.0, 2.0, 3.0])],
        np.array([1, 4, 3, 0, 2]),
    ),
    "argsort, unsigned": (
        lambda x: xp.argsort(x, descending=True),
        [np.array([0, 9, 4], "u1")],
        np.array([1, 2, 0]),
    ),
    "argsort, default": (xp.argsort, [A], np.argsort(A)),
    "count_nonzero": (
        lambda x: xp.count_nonzero(x, axis=1, keepdims=True),
        [I32],
        np.array([[3], [2]]),
    ),
    "cumulative_sum": (lambda x: xp.cumulative_sum(x, axis=1), [A], np.cumsum(A, 1)),
    "cumulative_sum, initial": (
        lambda x: xp.cumulative_sum(x, dtype=xp.float32, include_initial=True),
        [A[0]],
        np.array([0, 3, 4, 6], "f4"),
    ),
    "cumulative_sum of int32": (lambda x: xp.cumulative_sum(x, axis=1), [I32], np.cumsum(I32, 1)),
    "cumulative_prod": (
        lambda x: xp.cumulative_prod(x, axis=0, include_initial=True),
        [A],
        np.stack([A[0] * 0 + 1, A[0], A[0] * A[1]]),
    ),
    "max": (lambda x: xp.max(x, axis=(0, 1), keepdims=True), [A], np.array([[4.0]])),
    "min": (lambda x: xp.min(x, axis=0), [I32], np.array([3, 0, 2], "i4")),
    "mean": (lambda x: xp.mean(x, axis=1), [A.astype("f4")], A.mean(1).astype("f4")),
    "prod of int32": (lambda x: xp.prod(x, axis=1), [I32], np.array([6, 0])),
    "sum of int32": (xp.sum, [I32], np.int64(15)),
    "sum of float32": (
        lambda x: xp.sum(x, axis=-1, dtype=None),
        [A.astype("f4")],
        A.sum(1).astype("f4"),
    ),
    "sum of uint8": (xp.sum, [I32.astype("u1")], np.uint64(15)),
    "std": (
        lambda x: xp.std(x, axis=1, correction=1.0, keepdims=True),
        [A],
        A.std(1, ddof=1, keepdims=True),
    ),
    "var": (lambda x: xp.var(x, axis=None, correction=0.0), [A], A.var()),
    "all": (lambda x: xp.all(x, axis=1), [A > 0], np.array([True, False])),
    "any": (lambda x: xp.any(x, axis=0, keepdims=True), [A > 2], np.array([[True, False, True]])),
    "diff": (lambda x: xp.diff(x, axis=1, n=2), [A], np.diff(A, n=2, axis=1)),
    "diff, prepend": (
        lambda x: xp.diff(x, axis=0, prepend=x[:1]),
        [A],
        np.diff(A, axis=0, prepend=A[:1]),
    ),
    "isin": (lambda x: xp.isin(x, np.array([1, 4]), invert=True), [I32], ~np.isin(I32, [1, 4])),
    "linalg.cholesky": (lambda x: xp.linalg.cholesky(x, upper=True), [S], np.linalg.cholesky(S).T),
    "linalg.cross": (lambda x, y: xp.linalg.cross(x, y, axis=-1), [A, B], np.cross(A, B)),
    "linalg.det": (xp.linalg.det, [S], np.array(11.0)),
    "linalg.diagonal": (lambda x: xp.linalg.diagonal(x, offset=1), [A], np.array([1.0, 4.0])),
    "linalg.eigh": (lambda x: xp.linalg.eigh(x).eigenvalues, [S], np.linalg.eigvalsh(S)),
    "linalg.eigvalsh": (xp.linalg.eigvalsh, [S], np.linalg.eigvalsh(S)),
    "linalg.inv": (xp.linalg.inv, [S], np.linalg.inv(S)),
    "linalg.matmul": (xp.linalg.matmul, [S, A], S @ A),
    "linalg.matrix_norm": (
        lambda x: xp.linalg.matrix_norm(x, ord="nuc", keepdims=True),
        [S],
        np.array([[7.0]]),
    ),
    "linalg.matrix_power": (lambda x: xp.linalg.matrix_power(x, 3), [S], S @ S @ S),
    "linalg.matrix_rank": (lambda x: xp.linalg.matrix_rank(x, rtol=1e-9), [S], np.array(2)),
    "linalg.matrix_transpose": (xp.linalg.matrix_transpose, [A], A.T),
    "linalg.outer": (xp.linalg.outer, [A[0], B[1]], np.outer(A[0], B[1])),
    "linalg.pinv": (lambda x: xp.linalg.pinv(x, rtol=1e-12), [A], np.linalg.pinv(A)),
    "linalg.qr": (lambda x: xp.linalg.qr(x, mode="complete").R, [S], np.linalg.qr(S).R),
    "linalg.slogdet": (lambda x: xp.linalg.slogdet(x).logabsdet, [S], np.log(np.array(11.0))),
    "linalg.solve": (xp.linalg.solve, [S, A], np.linalg.solve(S, A)),
    "linalg.svd": (lambda x: xp.linalg.svd(x, full_matrices=False).S, [A], np.linalg.svd(A).S),
    "linalg.svdvals": (xp.linalg.svdvals, [A], np.linalg.svd(A).S),
    "linalg.tensordot": (
        lambda x, y: xp.linalg.tensordot(x, y, axes=2),
        [A, B],
        np.array(np.sum(A * B)),
    ),
    "linalg.trace": (lambda x: xp.linalg.trace(x, offset=0, dtype=xp.float32), [S], np.float32(7)),
    "linalg.vecdot": (lambda x, y: xp.linalg.vecdot(x, y, axis=-1), [A, B], np.sum(A * B, 1)),
    "linalg.vector_norm": (
        lambda x: xp.linalg.vector_norm(x, axis=None, keepdims=True, ord=1),
        [A],
        np.array([[np.abs(A).sum()]]),
    ),
    **{
        f"fft.{name}": (
            lambda x, name=name: getattr(xp.fft, name)(x, n=3, axis=0, norm="ortho"),
            [A],
            getattr(np.fft, name)(A, n=3, axis=0, norm="ortho"),
        )
        for name in ("fft", "ifft", "rfft", "irfft", "hfft")
    },
    "fft.ihfft": (lambda x: xp.fft.ihfft(x, axis=1), [A], np.fft.ihfft(A, axis=1)),
    **{
        f"fft.{name}": (
            lambda x, name=name: getattr(xp.fft, name)(x, s=(2, 4), axes=(0, 1), norm="forward"),
            [A],
            getattr(np.fft, name)(A, s=(2, 4), axes=(0, 1), norm="forward"),
        )
        for name in ("fftn", "ifftn", "rfftn", "irfftn")
    },
    "fft.fftshift": (lambda x: xp.fft.fftshift(x, axes=1), [A], np.fft.fftshift(A, 1)),
    "fft.ifftshift": (lambda x: xp.fft.ifftshift(x, axes=None), [A], np.fft.ifftshift(A)),
    "fft of complex64": (xp.fft.fft, [Z.astype("c8")], np.fft.fft(Z.astype("c8"))),
}


@pytest.mark.parametrize("label", FUNCTIONS)
def test_functions_on_plain_and_traced_arrays(label):
    fun, args, expected = FUNCTIONS[label]
    plain, traced = fun(*args), interpreted(fun, *args)
    assert np.shape(plain) == np.shape(traced) == np.shape(expected)
    assert plain.dtype == traced.dtype == expected.dtype
    np.testing.assert_allclose(plain, expected, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(traced, expected, rtol=1e-6, atol=1e-12)


CREATED = {
    "arange": (
        lambda: xp.arange(1, 7, 2, dtype=xp.float32, device="cpu"),
        np.array([1, 3, 5], "f4"),
    ),
    "empty": (lambda: xp.empty((0, 2), dtype=xp.int16, device="cpu"), np.empty((0, 2), "i2")),
    "eye": (lambda: xp.eye(2, 3, k=1, dtype=xp.complex64, device="cpu"), np.eye(2, 3, 1, "c8")),
    "full": (lambda: xp.full((2,), True, dtype=None, device="cpu"), np.array([True, True])),
    "linspace": (
        lambda: xp.linspace(0, 1, 3, endpoint=False, device="cpu"),
        np.linspace(0, 1, 3, False),
    ),
    "ones": (lambda: xp.ones(3, device="cpu"), np.ones(3)),
    "zeros": (lambda: xp.zeros((2,), dtype=xp.uint8, device="cpu"), np.zeros(2, "u1")),
    "from_dlpack": (lambda: xp.from_dlpack(A[0]), A[0]),
    "fft.fftfreq": (
        lambda: xp.fft.fftfreq(5, d=2.0, dtype=xp.float32, device="cpu"),
        np.fft.fftfreq(5, 2).astype("f4"),
    ),
    "fft.rfftfreq": (lambda: xp.fft.rfftfreq(5, d=2.0, device="cpu"), np.fft.rfftfreq(5, 2)),
}


@pytest.mark.parametrize("name", CREATED)
def test_created_arrays(name):
    make, expected = CREATED[name]
    assert make().dtype == expected.dtype
    np.testing.assert_array_equal(make(), expected)


SETS = {
    "unique_all": ["values", "indices", "inverse_indices", "counts"],
    "unique_counts": ["values", "counts"],
    "unique_inverse": ["values", "inverse_indices"],
}


@pytest.mark.parametrize("name", SETS)
def test_sets(name):
    x = np.array([[3, 1], [1, 2]])
    result = getattr(xp, name)(x)
    assert list(result._fields) == SETS[name]
    assert sorted(result.values.tolist()) == [1, 2, 3]  # in no order
    if "inverse_indices" in SETS[name]:
        assert np.array_equal(result.values[result.inverse_indices], x)
    assert sorted(xp.unique_values(x).tolist()) == [1, 2, 3]
    with pytest.raises(ConcretizationError):
        interpreted(getattr(xp, name), x)


@pytest.mark.parametrize("name", ["unique_values", "nonzero"])
def test_results_of_unknown_shape_are_refused_inside_jit(name):
    with pytest.raises(ConcretizationError):
        interpreted(getattr(xp, name), I32)


# the namespace itself -----------------------------------------------------------------------------

CONSTANTS = ["e", "inf", "nan", "newaxis", "pi"]
DTYPE_FUNCTIONS = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]
KEYWORDS = {
    "sum": ["axis", "dtype", "keepdims"], "prod": ["axis", "dtype", "keepdims"],
    "mean": ["axis", "keepdims"], "std": ["axis", "correction", "keepdims"],
    "var": ["axis", "correction", "keepdims"], "max": ["axis", "keepdims"],
    "min": ["axis", "keepdims"], "argmax": ["axis", "keepdims"], "argmin": ["axis", "keepdims"],
    "all": ["axis", "keepdims"], "any": ["axis", "keepdims"],
    "count_nonzero": ["axis", "keepdims"], "sort": ["axis", "descending", "stable"],
    "argsort": ["axis", "descending", "stable"], "astype": ["copy", "device"],
    "cumulative_sum": ["axis", "dtype", "include_initial"],
    "cumulative_prod": ["axis", "dtype", "include_initial"],
    "diff": ["axis", "n", "prepend", "append"], "searchsorted": ["side", "sorter"],
    "reshape": ["copy"], "unstack": ["axis"], "vecdot": ["axis"], "clip": ["min", "max"],
    "asarray": ["dtype", "device", "copy"], "repeat": ["axis"], "take": ["axis"],
    "isin": ["invert"],
}  # fmt: skip


@pytest.mark.parametrize("name", KEYWORDS)
def test_keywords(name):
    known = inspect.signature(getattr(xp, name)).parameters
    is_open = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    assert is_open or set(KEYWORDS[name]) <= set(known)


@pytest.mark.parametrize("name", [*CONSTANTS, *DTYPE_FUNCTIONS, *BOOL, *NUMERIC])
def test_names(name):
    assert hasattr(xp, name)


def test_what_the_namespace_says():
    info = xp.__array_namespace_info__()
    assert xp.__array_api_version__ == "2024.12"
    assert info.default_device() == "cpu"
    assert info.devices() == ["cpu"]
    assert info.default_dtypes()["real floating"] == np.float64
    assert info.default_dtypes()["complex floating"] == np.complex128
    assert info.default_dtypes()["integral"] == np.int64
    assert set(info.dtypes()) >= set(NUMERIC)
    assert set(info.dtypes(kind=("signed integer", "bool"))) == {*SIGNED, "bool"}
    assert set(info.capabilities()) >= {"boolean indexing", "data-dependent shapes"}


@pytest.mark.usefixtures("names_as_they_are")
def test_what_traced_arrays_say():
    def fun(x):
        assert x.__array_namespace__() is xp
        assert x.__array_namespace__(api_version="2024.12") is xp
        assert (x.device, x.ndim, x.shape, x.size, x.dtype) == ("cpu", 2, (2, 3), 6, np.float64)
        assert x.to_device("cpu") is x
        assert x.__dlpack_device__() == (1, 0)
        assert x.T.shape == x.mT.shape == (3, 2)
        with pytest.raises(ValueError, match=r"api_version='1999\.1'"):
            x.__array_namespace__(api_version="1999.1")
        with pytest.raises(ValueError, match="cpu"):
            x.to_device("gpu")
        with pytest.raises(UnsupportedOperationError, match="DLPack"):
            x.__dlpack__()
        assert xp.result_type(x, xp.float32) == np.float64
        assert xp.can_cast(x, xp.complex128)
        assert not xp.can_cast(x.dtype, xp.int64)
        assert xp.finfo(x.dtype).bits == 64
        assert xp.isdtype(x.dtype, ("real floating", "bool"))
        return xp.sum(x)

    assert interpreted(fun, A) == A.sum()
    assert ft.grad(fun)(A).shape == A.shape


def test_arrays_of_the_namespace_of_an_argument_are_filled():
    def cumulated(x):
        xp = x.__array_namespace__()
        out = xp.zeros(x.shape)
        out[0] = x[0]
        for i in range(1, 4):
            out[i] = out[i - 1] * 0.5 + x[i]
        return xp.sum(out)

    x = np.linspace(1.0, 2.0, 4)
    for transform in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(transform(cumulated)(x), [1.875, 1.75, 1.5, 1.0])


def test_program_in_the_namespace_of_its_argument():
    """As a library writes that knows the standard only."""

    def standardized(x):
        xp = x.__array_namespace__()
        centred = xp.astype(x, xp.float64) - xp.mean(x, axis=0, keepdims=True)
        return centred / xp.std(x, axis=0, correction=1.0, keepdims=True)

    expected = (A - A.mean(0)) / A.std(0, ddof=1)
    np.testing.assert_allclose(interpreted(standardized, A), expected)
    np.testing.assert_allclose(ft.jit(standardized)(A), expected)
    ft.check_grads(standardized, (A,), order=1)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda x: xp.sort(x, axis=2), np.exceptions.AxisError),
        (lambda x: xp.argsort(x, axis=2, descending=True), np.exceptions.AxisError),
        (lambda x: xp.concat([x, x[0]]), ValueError),
        (lambda x: xp.permute_dims(x, (0, 0)), ValueError),
        (lambda x: xp.squeeze(x, axis=0), ValueError),
        (lambda x: xp.reshape(x, (4,)), ValueError),
        (lambda x: xp.cumulative_sum(x), ValueError),
        (lambda x: xp.matmul(x, x), ValueError),
    ],
)
def test_errors_are_the_same_for_plain_and_traced_arrays(call, error):
    with pytest.raises(error):
        call(A)
    with pytest.raises(error):
        interpreted(call, A)


def test_frequencies_of_integers_are_refused():
    with pytest.raises(TypeError, match="real and floating"):
        xp.fft.fftfreq(4, dtype=np.int32)
