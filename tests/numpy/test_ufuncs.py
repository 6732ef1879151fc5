"""Every ufunc against NumPy's values, and its derivative; methods; options."""

import operator

import numpy as np
import pytest
from numpy_cases import Case, check, leaves

import functrans as ft
import functrans.numpy as fnp
from functrans.numpy.ufuncs import UFUNCS

R = np.random.default_rng(0)
A = R.uniform(0.2, 0.8, (2, 3))
B = R.uniform(1.3, 2.4, (2, 3))
S = np.array([[-1.7, 0.4, 2.2], [0.7, -0.3, -2.6]])
Z = A + 1j * S
I = np.array([[1, -2, 3], [0, 5, -7]])  # noqa: E741  # integers
U = np.array([[1, 2, 3], [0, 5, 7]])
M = np.array([[True, False, True], [False, False, True]])

REAL_UNARY = (
    np.absolute, np.arccos, np.arcsin, np.arcsinh, np.arctan, np.arctanh, np.cbrt, np.cos, np.cosh,
    np.deg2rad, np.degrees, np.exp, np.exp2, np.expm1, np.fabs, np.log, np.log10, np.log1p,
    np.log2, np.negative, np.positive, np.rad2deg, np.radians, np.reciprocal, np.sign, np.sin,
    np.sinh, np.sqrt, np.square, np.tan, np.tanh, np.floor, np.ceil, np.trunc, np.rint,
    np.conjugate, np.modf, np.frexp,
)  # fmt: skip
COMPLEX_UNARY = (
    np.absolute, np.arccos, np.arcsin, np.arcsinh, np.arctan, np.arctanh, np.cos, np.cosh, np.exp,
    np.exp2, np.expm1, np.log, np.log10, np.log1p, np.log2, np.negative, np.positive,
    np.reciprocal, np.sign, np.sin, np.sinh, np.sqrt, np.square, np.tan, np.tanh, np.conjugate,
    np.arccosh,
)  # fmt: skip
REAL_BINARY = (
    np.add, np.arctan2, np.copysign, np.divide, np.float_power, np.fmax, np.fmin, np.fmod,
    np.hypot, np.logaddexp, np.logaddexp2, np.maximum, np.minimum, np.multiply, np.power,
    np.remainder, np.subtract, np.floor_divide, np.divmod,
)  # fmt: skip
COMPLEX_BINARY = (np.add, np.divide, np.multiply, np.power, np.subtract, np.float_power)

CASES = (
    *(Case(u.__name__, u, A) for u in REAL_UNARY),
    *(
        Case(f"{u.__name__} negative", u, -A)
        for u in (np.absolute, np.cbrt, np.sign, np.reciprocal)
    ),
    *(Case(f"{u.__name__} complex", u, Z) for u in COMPLEX_UNARY),
    *(Case(u.__name__, u, B, A) for u in REAL_BINARY),
    *(Case(f"{u.__name__} broadcast", u, B, A[0]) for u in REAL_BINARY),
    *(Case(f"{u.__name__} complex", u, Z, Z[::-1] + 1.5) for u in COMPLEX_BINARY),
    Case("arccosh", np.arccosh, B),
    Case("heaviside", lambda x: np.heaviside(x, 0.5), S),
    Case("nextafter", lambda x: np.nextafter(x, 9.0), S),
    Case("spacing", np.spacing, S, is_smooth=False),
    Case("ldexp", lambda x: np.ldexp(x, U), S),
    Case("matmul", np.matmul, A, B.T),
    Case("matmul batched", np.matmul, R.standard_normal((4, 2, 3)), B.T),
    Case("matmul vector", np.matmul, A, B[0]),
    Case("matvec", np.matvec, A, B[0]),
    Case("vecmat", np.vecmat, B[0], A.T),
    Case("vecdot", np.vecdot, A, B),
    Case("vecdot complex", np.vecdot, Z, Z + 1.0),
    Case("float32", lambda x: np.sin(x) * 2.0 + x**2 / 3, A.astype(np.float32), is_smooth=False),
    Case("scalar operand", lambda x: np.add(x, 1) * np.multiply(2, x), A),
    Case("dtype=", lambda x: np.multiply(x, x, dtype=np.float64), A),
    Case("0-d", np.sin, np.asarray(0.3)),
    Case("empty", np.sin, np.zeros((0, 3))),
)

NO_DERIVATIVE = (
    *((u, (S,)) for u in (np.isfinite, np.isinf, np.isnan, np.signbit, np.logical_not)),
    *(
        (u, (S, A))
        for u in (
            np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
            np.logical_and, np.logical_or, np.logical_xor,
        )
    ),
)  # fmt: skip
INTEGERS = (
    *((u, (U, U[::-1] + 1)) for u in (
        np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.left_shift, np.right_shift, np.gcd,
        np.lcm, np.add, np.floor_divide, np.remainder, np.power, np.divide, np.float_power,
        np.logaddexp, np.arctan2, np.ldexp, np.divmod,
    )),
    *((u, (I,)) for u in (
        np.invert, np.bitwise_count, np.negative, np.absolute, np.sign, np.square, np.floor,
        np.ceil, np.trunc, np.rint, np.conjugate, np.positive, np.sin, np.degrees, np.fabs,
        np.logical_not,
    )),
    (np.reciprocal, (np.array([1, -1, 2, -3]),)),
)  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_ufunc_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(
    ("ufunc", "args"), [*NO_DERIVATIVE, *INTEGERS], ids=lambda x: getattr(x, "__name__", "")
)
def test_staged_ufunc_agrees_with_numpy(ufunc: np.ufunc, args: tuple[np.ndarray, ...]) -> None:
    expected = leaves(ufunc(*args))
    jaxpr = ft.make_jaxpr(ufunc)(*args)
    for out, wanted in zip(ft.eval_jaxpr(jaxpr, None, *args), expected, strict=True):
        np.testing.assert_allclose(out, wanted, rtol=1e-14)
        assert out.dtype == wanted.dtype
    for aval, wanted in zip(jaxpr.out_avals, expected, strict=True):
        assert aval.dtype == wanted.dtype


def test_every_ufunc_but_isnat_is_traced() -> None:
    every = {v for v in vars(np).values() if isinstance(v, np.ufunc)}
    assert every - set(UFUNCS) == {np.isnat}


def test_every_ufunc_has_a_function_of_users() -> None:
    for name in dir(np):
        if isinstance(getattr(np, name), np.ufunc) and name != "isnat":
            assert getattr(fnp, name).ufunc is getattr(np, name)


def test_plain_operands_go_to_numpy_with_all_options() -> None:
    out = np.zeros(3)
    assert fnp.add([1.0, 2.0, 3.0], 1.0, out=out, where=[True, False, True]) is out
    np.testing.assert_array_equal(out, [2.0, 0.0, 4.0])
    assert fnp.sin(np.float32(0.5)).dtype == np.float32
    assert fnp.multiply(2, 3, dtype=np.float32).dtype == np.float32


def test_list_of_traced_values_is_an_operand() -> None:
    g = ft.grad(lambda x: np.sum(fnp.sin([x, 2 * x])) + fnp.add([x, x], 1.0).sum())(0.3)
    np.testing.assert_allclose(g, np.cos(0.3) + 2 * np.cos(0.6) + 2)


def test_out_and_where_write_to_traced_arrays() -> None:
    def f(x):
        buffer = np.zeros_like(x)
        np.multiply(x, x, out=buffer)
        np.add(buffer, 1.0, out=buffer, where=np.array([True, False, True]))
        return buffer

    x = np.array([1.0, 2.0, 3.0])
    out, pullback = ft.vjp(f, x)
    np.testing.assert_allclose(out, [2.0, 4.0, 10.0])
    np.testing.assert_allclose(pullback(np.ones(3))[0], 2 * x)


def test_out_of_plain_array_raises() -> None:
    buffer = np.zeros(3)
    with pytest.raises(ft.errors.UnsupportedOperationError, match="plain ndarray"):
        ft.grad(lambda x: np.sum(np.add(x, 1.0, out=buffer)))(np.ones(3))


V = np.array([0.7, 1.9, 0.4, 2.3, 1.1])
METHODS = (
    Case("add.reduce", lambda x: np.add.reduce(x), S),
    Case("add.reduce all", lambda x: np.add.reduce(x, axis=None, keepdims=True), S),
    Case("add.reduce where", lambda x: np.add.reduce(x, axis=1, where=M, initial=2.0), S),
    Case("multiply.reduce", lambda x: np.multiply.reduce(x, axis=1), S),
    Case("maximum.reduce", lambda x: np.maximum.reduce(x, axis=(0, 1)), S),
    Case("minimum.reduce", lambda x: np.minimum.reduce(x, axis=0, initial=0.0), S),
    Case("subtract.reduce", lambda x: np.subtract.reduce(x, axis=1), S),
    Case("divide.reduce", lambda x: np.divide.reduce(x), V),
    Case("hypot.reduce", lambda x: np.hypot.reduce(x, keepdims=True), V),
    Case("logaddexp.reduce", lambda x: np.logaddexp.reduce(x, axis=1), S),
    Case("add.accumulate", lambda x: np.add.accumulate(x, axis=1), S),
    Case("multiply.accumulate", lambda x: np.multiply.accumulate(x), S),
    Case("maximum.accumulate", lambda x: np.maximum.accumulate(x), V),
    Case("minimum.accumulate", lambda x: np.minimum.accumulate(x), V),
    Case("logaddexp.accumulate", lambda x: np.logaddexp.accumulate(x), V),
    Case("subtract.accumulate", lambda x: np.subtract.accumulate(x, axis=1), S),
    Case("multiply.outer", lambda x, y: np.multiply.outer(x, y), A, V),
    Case("subtract.outer", lambda x: np.subtract.outer(x, x), V),
    Case("add.reduceat", lambda x: np.add.reduceat(x, [0, 2, 4]), V),
    Case("add.reduceat axis", lambda x: np.add.reduceat(x, [1, 2], axis=1), S),
    Case("add.reduceat falling", lambda x: np.add.reduceat(x, [3, 1, 1, 4]), V),
    Case("multiply.reduceat", lambda x: np.multiply.reduceat(x, [0, 3]), V),
    Case("maximum.reduceat", lambda x: np.maximum.reduceat(x, [0, 3]), V),
)


@pytest.mark.parametrize("case", METHODS, ids=repr)
def test_ufunc_method_agrees_with_numpy_and_differences(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("name", ["all", "any"])
def test_logical_reduce_agrees_with_numpy(name: str) -> None:
    ufunc = np.logical_and if name == "all" else np.logical_or
    jaxpr = ft.make_jaxpr(lambda x: ufunc.reduce(x, axis=1))(S)
    np.testing.assert_array_equal(ft.eval_jaxpr(jaxpr, None, S)[0], ufunc.reduce(S, axis=1))


@pytest.mark.parametrize(
    ("ufunc", "expected"),
    [
        (np.add, lambda a, i, v: np.add.at(a, i, v)),
        (np.subtract, lambda a, i, v: np.subtract.at(a, i, v)),
        (np.multiply, lambda a, i, v: np.multiply.at(a, i, v)),
        (np.maximum, lambda a, i, v: np.maximum.at(a, i, v)),
        (np.divide, lambda a, i, v: np.divide.at(a, i, v)),
        (np.power, lambda a, i, v: np.power.at(a, i, v)),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_ufunc_at_counts_repeated_indices(ufunc, expected) -> None:
    index = np.array([0, 2, 2, 4, 2])
    values = np.array([1.5, 0.5, 2.5, 1.2, 1.7])

    def f(x, v):
        y = x * 1.0
        ufunc.at(y, index, v)
        return y

    plain = V.copy()
    expected(plain, index, values)
    check(Case(f"{ufunc.__name__}.at", f, V, values))
    np.testing.assert_allclose(ft.vjp(f, V, values)[0], plain)


def test_unary_ufunc_at_applies_once_per_index() -> None:
    def f(x):
        y = x * 1.0
        np.negative.at(y, [0, 0, 1])
        np.sin.at(y, [2, 2])
        return y

    check(Case("sin.at", f, V))


@pytest.mark.usefixtures("names_as_they_are")
def test_ufunc_at_on_plain_array_raises() -> None:
    buffer = np.zeros(3)
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"add\.at"):
        ft.grad(lambda x: np.add.at(buffer, [0], x) or buffer.sum())(1.0)


@pytest.mark.parametrize(
    "name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"]
)
def test_operator_agrees_with_numpy(name: str) -> None:
    function = getattr(operator, name)
    a, b = (B, A) if name != "matmul" else (B, A.T)
    check(Case(name, function, a, b))
