"""Emitted arithmetic gives NumPy's answers, for every dtype, one number or several at a time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from emitter.numbercheck import (
    Failing,
    compiled,
    emit,
    is_float,
    operands,
    same,
    ulp_errors,
    values,
)
from functrans.core.avals import ShapedArray
from functrans.core.lowering import Expansion, Pointwise
from functrans.emitter.builder import Builder, Module
from functrans.emitter.casts import literal
from functrans.emitter.dtypes import loop_dtypes
from functrans.emitter.numbers import Numbers
from functrans.primitives import complex_parts, elementwise, structural
from functrans.primitives.linalg import lstsq as linalg_lstsq
from functrans.primitives.special import functions as special
from processors import ON_X86, SMALL

BRAIN = np.dtype(pytest.importorskip("ml_dtypes").bfloat16)
INTEGERS = [np.dtype(c) for c in "bBhHiIqQ"]
FLOATS = [np.dtype(c) for c in "efd"] + [BRAIN]
COMPLEX = [np.dtype(c) for c in "FD"]
BOOL = np.dtype(bool)
REALS = [*INTEGERS, *FLOATS]
ALL = [BOOL, *REALS, *COMPLEX]

pytestmark = pytest.mark.filterwarnings("ignore")


def method(name: str) -> Callable[..., Any]:
    return lambda e, *numbers: getattr(e, name)(*numbers)


def check(
    write: Callable[..., Any],
    reference: Callable[..., Any],
    cases: Sequence[tuple[np.dtype, ...]],
    ulp: float = 0,
    points: Callable[[Any], list[np.ndarray]] = operands,
) -> None:
    """Compare with a function of arrays, bit by bit or within an error."""
    for dtypes, runs in zip(cases, compiled([(write, d) for d in cases]), strict=True):
        arrays = points(dtypes)
        with np.errstate(all="ignore"):
            want = np.asarray(reference(*arrays))
        for run in runs:
            got = run(*arrays)
            assert got.dtype == want.dtype, (dtypes, got.dtype, want.dtype)
            good = ulp_errors(got, want) <= ulp if ulp else same(got, want)
            bad = np.flatnonzero(~good)
            assert not bad.size, (
                dtypes, run.lanes, [a[bad[:5]] for a in arrays], got[bad[:5]], want[bad[:5]],
            )  # fmt: skip


# real arithmetic and all that is exact ------------------------------------------------------------

EXACT = {
    "add": [BOOL, *REALS, *COMPLEX],
    "subtract": [*REALS, *COMPLEX],
    "multiply": [BOOL, *REALS],
    "divide": [*FLOATS, *COMPLEX],
    "floor_divide": REALS,
    "remainder": REALS,
    "fmod": REALS,
    "negative": [*REALS, *COMPLEX],
    "absolute": [BOOL, *REALS],
    "sign": REALS,
    "sqrt": FLOATS,
    "floor": [BOOL, *REALS],
    "ceil": [BOOL, *REALS],
    "trunc": [BOOL, *REALS],
    "rint": [*FLOATS, *COMPLEX],
    "spacing": FLOATS,
    "signbit": FLOATS,
    "heaviside": FLOATS,
    "nextafter": FLOATS,
    "copysign": FLOATS,
    "isnan": ALL,
    "isinf": ALL,
    "isfinite": ALL,
    "logical_and": ALL,
    "logical_or": ALL,
    "logical_xor": ALL,
    "logical_not": ALL,
    "bitwise_and": [BOOL, *INTEGERS],
    "bitwise_or": [BOOL, *INTEGERS],
    "bitwise_xor": [BOOL, *INTEGERS],
    "invert": [BOOL, *INTEGERS],
    "left_shift": INTEGERS,
    "right_shift": INTEGERS,
    "gcd": INTEGERS,
    "lcm": INTEGERS,
    "bitwise_count": INTEGERS,
    "equal": ALL,
    "not_equal": ALL,
    "less": ALL,
    "less_equal": ALL,
    "greater": ALL,
    "greater_equal": ALL,
    "conjugate": [*REALS, *COMPLEX],
}


@pytest.mark.parametrize("name", EXACT)
def test_exact_operations_are_bit_identical(name: str) -> None:
    ufunc = getattr(np, name)
    check(method(name), ufunc, [(d,) * ufunc.nin for d in EXACT[name]])


@pytest.mark.parametrize("name", ["maximum", "minimum", "fmax", "fmin"])
def test_extrema_propagate_nan_and_order_zeros(name: str) -> None:
    def reference(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        result: np.ndarray = getattr(np, name)(a, b)
        if is_float(a.dtype):  # NumPy's choice among zeros depends on the place in the array
            signs = np.signbit(a), np.signbit(b)
            is_negative = np.logical_and(*signs) if "max" in name else np.logical_or(*signs)
            zero = np.zeros((), a.dtype)
            zeros = np.where(is_negative, -zero, zero)
            result = np.where((a == 0) & (b == 0), zeros, result)
        return result

    check(method(name), reference, [(d, d) for d in ALL])


def test_clip() -> None:
    check(
        method("clip"),
        lambda x, low, high: np.clip(x, low, high).astype(x.dtype),
        [(d, d, d) for d in ALL],
    )


def test_clip_of_complex_numbers_with_any_part_that_is_nan() -> None:
    parts = 0.0, 1.0, -1.0, np.inf, np.nan
    numbers = [complex(real, imag) for real in parts for imag in parts]

    def triples(dtypes: tuple[np.dtype, ...]) -> list[np.ndarray]:
        grids = np.meshgrid(*[np.array(numbers, d) for d in dtypes])
        return [grid.ravel() for grid in grids]

    check(method("clip"), np.clip, [(d, d, d) for d in COMPLEX], points=triples)


def test_where_takes_any_condition() -> None:
    cases = [(c, d, d) for c in (BOOL, FLOATS[0], FLOATS[2], COMPLEX[0]) for d in ALL]
    check(method("where"), np.where, cases)


def test_products_of_complex_numbers_round_every_product() -> None:
    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        out.real = x.real * y.real - x.imag * y.imag
        out.imag = x.real * y.imag + x.imag * y.real
        return out

    check(method("multiply"), reference, [(d, d) for d in COMPLEX])


def test_a_strong_zero_annihilates() -> None:
    check(
        method("mul_strong_zero"),
        lambda a, b: np.where(a == 0, np.zeros((), a.dtype), a * b),
        [(d, d) for d in REALS],
    )


def test_signed_and_unsigned_integers_are_compared_by_value() -> None:
    signed, unsigned = np.dtype(np.int64), np.dtype(np.uint64)
    for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"):
        cases = [(signed, unsigned), (unsigned, signed)]
        check(method(name), getattr(np, name), cases)


def test_exponents() -> None:
    check(method("frexp_exponent"), lambda x: np.frexp(x)[1], [(d,) for d in FLOATS])
    shifts = np.array(
        [
            *(0, 1, -1, 10, -10, 15, -14, -24, -25, 100, -100, -126, -149, -150, 127, 128, -1022),
            *(-1060, -1074, -1075, -1100, 1023, 1024, 2046, 2100, -2098, 2**31 - 1, -(2**31)),
        ]
    )

    def points(dtypes: Any) -> list[np.ndarray]:
        grids = np.meshgrid(values(dtypes[0]), shifts.astype(dtypes[1]))
        return [np.ascontiguousarray(g.ravel()) for g in grids]

    cases = [(d, np.dtype(n)) for d in FLOATS[:3] for n in (np.int32, np.int64)]
    check(method("ldexp"), np.ldexp, cases, points=points)


def test_parts_of_complex_numbers() -> None:
    check(method("real"), lambda x: np.ascontiguousarray(x.real), [(d,) for d in COMPLEX])
    check(method("imag"), lambda x: np.ascontiguousarray(x.imag), [(d,) for d in COMPLEX])

    def reference(re: np.ndarray, im: np.ndarray) -> np.ndarray:
        out = np.empty(re.shape, np.result_type(re, im, np.complex64))
        out.real, out.imag = re, im
        return out

    parts = [BOOL, np.dtype("i"), np.dtype("q"), np.dtype("f"), np.dtype("d")]
    check(method("complex"), reference, [(a, b) for a in parts for b in parts])


# integers -----------------------------------------------------------------------------------------


def _small_exponents(dtypes: Any) -> list[np.ndarray]:
    exponents = np.array([0, 1, 2, 3, 5, 17, 63, 100], dtypes[1])
    grids = np.meshgrid(values(dtypes[0]), exponents)
    return [np.ascontiguousarray(g.ravel()) for g in grids]


@pytest.mark.parametrize("name", ["power", "left_shift", "right_shift"])
def test_integers_wrap(name: str) -> None:
    cases = [(d, d) for d in INTEGERS]
    check(method(name), getattr(np, name), cases, points=_small_exponents)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 4, 9])
def test_constant_powers_of_integers(exponent: int) -> None:
    check(
        lambda e, x: e.power(x, e.like(x, exponent)),
        lambda x: x**exponent,
        [(d,) for d in INTEGERS],
    )


def test_a_negative_power_of_integers_leaves_the_program() -> None:
    module = Module()
    failures = []

    def write(e: Failing, x: Any, y: Any) -> Any:
        result = e.power(x, y)
        failures.append(e.failures)
        return result

    emit(module, "f", write, (np.int64, np.int64), 4)
    emit(module, "g", write, (np.uint64, np.uint64), 4)
    assert [len(f) for f in failures] == [1, 0]
    assert failures[0][0][0] is ValueError
    e = Numbers(Builder(Module(), "h", []))
    base, exponent = e.constant(np.int64, 2), e.constant(np.int64, -1)
    with pytest.raises(NotImplementedError, match="powers"):
        e.power(base, exponent)


# functions ----------------------------------------------------------------------------------------

UNARY = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "cbrt", "sin", "cos", "tan"),
    *("arcsin", "arccos", "arctan", "sinh", "cosh", "tanh", "arcsinh", "arccosh", "arctanh"),
)


@pytest.mark.parametrize("name", [*UNARY, "arctan2", "hypot", "power"])
def test_functions_are_close_to_numpy(name: str) -> None:
    """Their distance to the exact values is measured in the tests of vector math."""
    ufunc = getattr(np, name)
    check(method(name), ufunc, [(d,) * ufunc.nin for d in FLOATS], ulp=5)


@pytest.mark.parametrize(
    ("name", "ulp"),
    [
        ("sigmoid", 5),
        ("softplus", 5),
        ("erf", 5),
        ("erfc", 64),
        ("lgamma", 1024),
        ("digamma", 1024),
    ],
)
def test_special_functions_are_close_to_scipy(name: str, ulp: float) -> None:
    """The larger bounds are SciPy's: far out, and near roots and poles."""
    check(method(name), getattr(special, name), [(d,) for d in FLOATS], ulp=ulp)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2"])
def test_logarithms_of_sums(name: str) -> None:
    ufunc = getattr(np, name)
    check(method(name), ufunc, [(d, d) for d in FLOATS], ulp=64)  # they cancel near 0


@pytest.mark.parametrize("exponent", [-1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1.7])
def test_constant_powers(exponent: float) -> None:
    check(
        lambda e, x: e.power(x, e.like(x, exponent)),
        lambda x: x**exponent if x.dtype != BRAIN else x ** np.full_like(x, exponent),
        [(d,) for d in FLOATS if d != BRAIN or exponent != 0.5],
        ulp=4,
    )


@pytest.mark.parametrize("exponent", [-1.0, 1.0, 2.0, 3.0, 1.7])
def test_powers_do_not_depend_on_what_is_constant(exponent: float) -> None:
    for dtype in (*FLOATS, *COMPLEX):
        fixed, general = compiled(
            [
                (lambda e, x: e.power(x, e.like(x, exponent)), (dtype,)),
                (lambda e, x, y: e.power(x, y), (dtype, dtype)),
            ],
            lanes=(4,),
        )
        x = values(dtype)
        if dtype.kind == "c":
            x = x[np.isfinite(x)]
        results = fixed[0](x), general[0](x, np.full_like(x, exponent))
        assert same(*results).all()


# complex functions --------------------------------------------------------------------------------

COMPLEX_UNARY = (
    *("sqrt", "exp", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh"),
    *("arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh"),
)


def _plane(dtype: np.dtype) -> np.ndarray:
    """Special points with all signs of zero, branch points, and points near the unit circle."""
    info = np.finfo(dtype)
    rng = np.random.default_rng(5)
    far = (710.0, 720.0, -745.0, 1e160, -1e-160, 1e300, 1.7e308)
    if dtype.itemsize == 8:
        far = (89.0, 95.0, -104.0, 1e19, -1e-19, 1e30, 3e38)
    line = [0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 1.5, 3, -10, 25, 1e-5, -1e-8, 1e3, 1e10, 0.6, 0.8]
    line += [1 + float(info.eps), 1 - float(info.eps) / 2, float(info.tiny), *far]
    line += [float(info.smallest_subnormal), -3 * float(info.smallest_subnormal)]
    line += [np.inf, -np.inf, np.nan]
    re, im = (grid.ravel() for grid in np.meshgrid(line, line))
    random = [rng.standard_normal((2, 200)) * scale for scale in (0.01, 1, 10)]
    radius = 1 + rng.standard_normal(200) * 10.0 ** rng.uniform(-6, 0, 200)
    angle = rng.uniform(-np.pi, np.pi, 200)
    re = np.concatenate([re, *(r[0] for r in random), radius * np.cos(angle)])
    im = np.concatenate([im, *(r[1] for r in random), radius * np.sin(angle)])
    out = np.empty(re.size, dtype)
    out.real, out.imag = re, im
    return out


def _wide_log1p(z: np.ndarray) -> np.ndarray:
    """NumPy's formula loses all digits of small numbers; only the imaginary part is taken."""
    result = np.log1p(z)
    excess = z.real * (2 + z.real) + z.imag * z.imag
    with np.errstate(all="ignore"):
        result.real = np.where(np.abs(excess) < 0.9, np.log1p(excess) / 2, result.real)
    return result


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", COMPLEX_UNARY)
def test_complex_functions_part_by_part(name: str, dtype: np.dtype) -> None:
    """Against the extended format: infinities, NaN and signs of zero too, branch cuts with them."""
    wide = np.clongdouble if dtype.itemsize == 16 else np.complex128
    if np.finfo(np.longdouble).nmant <= 52 and dtype.itemsize == 16:
        pytest.skip("long double is double here")
    points = _plane(dtype)
    if name == "log1p":  # where the reference has digits
        points = points[~((np.abs(points) < 2.0**-40) | (np.abs(points.real + 1) < 1e-7))]
    reference = _wide_log1p if name == "log1p" else getattr(np, name)
    (runs,) = compiled([(method(name), (dtype,))])
    with np.errstate(all="ignore"):
        want = reference(points.astype(wide)).astype(dtype)
    for run in runs:
        got = run(points)
        for part in ("real", "imag"):
            parts = [np.ascontiguousarray(getattr(z, part)) for z in (got, want)]
            errors = ulp_errors(*parts)
            bad = np.flatnonzero(errors > 6)
            assert not bad.size, (run.lanes, points[bad[:5]], got[bad[:5]], want[bad[:5]])


@pytest.mark.parametrize("dtype", COMPLEX, ids=str)
@pytest.mark.parametrize("name", ["absolute", "sign", "exp2", "expm1", "power"])
def test_complex_functions_as_a_whole(name: str, dtype: np.dtype) -> None:
    rng = np.random.default_rng(2)
    ufunc = getattr(np, name)
    arrays = [
        (rng.standard_normal(400) + 1j * rng.standard_normal(400)).astype(dtype)
        for _ in range(ufunc.nin)
    ]
    if name == "power":
        arrays[1][::2] = rng.integers(-12, 12, 200)
    (runs,) = compiled([(method(name), (dtype,) * ufunc.nin)])
    wide = [a.astype(np.clongdouble) for a in arrays]
    for run in runs:
        want = ufunc(*wide)
        error = np.abs(run(*arrays) - want) / np.abs(want)
        assert error.max() < 16 * np.finfo(dtype).eps


def test_complex_powers_at_special_points() -> None:
    points = np.array([0, 1, -1, 1j, 2, -2.5, 0.5 + 1j, 3, -3j, 1 - 1j, 0.5], np.complex128)
    a, b = (np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(points, points))
    (runs,) = compiled([(method("power"), (a.dtype, a.dtype))])
    with np.errstate(all="ignore"):
        want = np.power(a, b)
    for run in runs:
        np.testing.assert_allclose(run(a, b), want, rtol=1e-14, atol=1e-14)


# conversions, memory ------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ALL, ids=str)
def test_casts_are_those_of_astype(target: np.dtype) -> None:
    def points(dtypes: Any) -> list[np.ndarray]:
        x = values(dtypes[0])
        is_open = target == np.uint32 if ON_X86 else target.kind in "iu"
        if is_open and not np.can_cast(dtypes[0], np.int64):
            # NumPy leaves what does not fit to the processor, and to the place in the array.
            real = x.real.astype(np.float64)
            limits = np.iinfo(target)
            x = x[(real > limits.min - 1.0) & (real < limits.max + 1.0)]
        return [x]

    check(
        lambda e, x: e.cast(x, target),
        lambda x: x.astype(target),
        [(d,) for d in ALL],
        points=points,
    )


def test_integers_of_what_does_not_fit() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 3e9, -3e9, 2.0**63, -(2.0**63)])
    for dtype in INTEGERS:
        want = np.array([as_on_x86(each, dtype) for each in x], dtype)
        if ON_X86 and dtype != np.uint32:
            np.testing.assert_array_equal(want, x.astype(dtype))
        (runs,) = compiled([(lambda e, x, d=dtype: e.cast(x, d), (np.float64,))])
        for run in runs:
            np.testing.assert_array_equal(run(x), want)


def as_on_x86(x: float, dtype: np.dtype) -> int:
    """What its instructions make of a number; ``uint64`` is taken in two halves."""
    bits = 64 if dtype.itemsize == 8 or dtype == np.uint32 else 32
    if dtype == np.uint64 and x >= 2.0**63:
        return as_on_x86(x - 2.0**63, np.dtype(np.int64)) % 2**64 ^ 2**63
    whole = int(x) if abs(x) < 2.0 ** (bits - 1) else -(2 ** (bits - 1))
    low, count = np.iinfo(dtype).min, 2 ** (8 * dtype.itemsize)
    return (whole - low) % count + low


def test_every_float16_and_every_rounding_to_it() -> None:
    everything = np.arange(65536, dtype=np.uint16)
    rng = np.random.default_rng(0)
    halfway = np.arange(-70000, 70000, 0.25)
    wide = np.concatenate([halfway, halfway * 2.0**-25, rng.standard_normal(1000) * 1e-7])
    for half in (np.dtype(np.float16), BRAIN):
        x = everything.view(half)
        up, down, narrow = compiled(
            [
                (lambda e, x: e.cast(x, np.float64), (half,)),
                (lambda e, x, d=half: e.cast(x, d), (np.float64,)),
                (lambda e, x, d=half: e.cast(x, d), (np.float32,)),
            ],
            lanes=(8,),
        )
        assert same(up[0](x), x.astype(np.float64)).all()
        assert same(down[0](wide), wide.astype(half)).all()
        single = wide.astype(np.float32)
        assert same(narrow[0](single), single.astype(half)).all()


@pytest.mark.parametrize("lanes", [1, 2, 3, 4, 16])
def test_numbers_are_read_and_written_in_any_lanes(lanes: int) -> None:
    cases = [(lambda e, x: x, (d,)) for d in ALL]
    for (_, (dtype,)), (run,) in zip(cases, compiled(cases, (lanes,)), strict=True):
        x = np.resize(values(dtype), 48)
        assert same(run(x), x).all()


@pytest.mark.parametrize("lanes", [2, 3, 16])
def test_operations_work_in_any_lanes(lanes: int) -> None:
    codes = {"fmod": "dd", "gcd": "qq", "bitwise_count": "h", "equal": "FF", "exp": "D"}
    codes |= {"arctan2": "ff", "ldexp": "di", "isnan": "e", "power": "qq", "add": "ee"}
    cases = [(method(name), [np.dtype(c) for c in text]) for name, text in codes.items()]
    for (_, dtypes), (run, scalar) in zip(cases, compiled(cases, (lanes, 1)), strict=True):
        arrays = operands(dtypes)
        assert same(run(*arrays), scalar(*arrays)).all(), dtypes


def test_a_byte_that_is_not_zero_is_true() -> None:
    (runs,) = compiled([(lambda e, x: x, (BOOL,))])
    for run in runs:
        assert run(np.arange(256, dtype=np.uint8).view(bool)).view(np.uint8).sum() == 255


def test_constants_and_splats() -> None:
    for dtype in ALL:
        number = 1 if dtype == BOOL else 3
        write = [
            lambda e, x, d=dtype, n=number: e.constant(d, n, x.lanes),
            lambda e, x, d=dtype, n=number: e.splat(e.constant(d, n), x.lanes),
        ]
        for runs in compiled([(w, (dtype,)) for w in write]):
            for run in runs:
                assert (run(np.zeros(8, dtype)) == number).all()
    e = Numbers(Builder(Module(), "f", []))
    for lanes in (1, 4):
        assert literal(e.constant(np.float64, 2.5, lanes).value) == 2.5
        assert literal(e.constant(np.int8, -3, lanes).value) == -3
        assert literal(e.constant(bool, True, lanes).value) == 1
        assert literal(e.constant(np.float64, 0, lanes).value) == 0
    assert literal(Builder(Module(), "f", [e.constant(np.int8, 1).value.type]).arguments[0]) is None


def test_select_takes_whole_numbers() -> None:
    check(
        lambda e, c, x, y: e.select(c, x, y),
        np.where,
        [(BOOL, d, d) for d in ALL],
    )


# records, text ------------------------------------------------------------------------------------


def test_every_pointwise_primitive_has_a_method() -> None:
    records = (*elementwise.PRIMITIVES, *complex_parts.PRIMITIVES, linalg_lstsq.norm_sqrt_p)
    for primitive in records:
        if isinstance(primitive.lower, Expansion):
            continue  # it is made of others
        assert isinstance(primitive.lower, Pointwise), primitive
        assert primitive.lower.cost >= 1
        assert callable(getattr(Numbers, primitive.name)), primitive
    assert isinstance(structural.cast_p.lower, Pointwise)


def test_rules_call_the_method() -> None:
    rules = [
        lambda e, x: elementwise.exp_p.lower.write(e, x),
        lambda e, x: structural.cast_p.lower.write(e, x, dtype=np.dtype(np.float32)),
        lambda e, x: linalg_lstsq.norm_sqrt_p.lower.write(e, x),
    ]
    results = compiled([(rule, (np.float64,)) for rule in rules], (4,))
    x = np.array([4.0, 0.25, 9.0, 1.0])
    np.testing.assert_allclose(results[0][0](x), np.exp(x), rtol=1e-15)
    np.testing.assert_array_equal(results[1][0](x), x.astype(np.float32))
    np.testing.assert_array_equal(results[2][0](x), np.sqrt(x))


def test_no_instruction_has_a_floating_point_flag() -> None:
    module = Module()
    pointwise = [p for p in elementwise.PRIMITIVES if isinstance(p.lower, Pointwise)]
    for i, primitive in enumerate(pointwise):
        count = len(primitive.elementwise.saves)
        for j, dtype in enumerate((np.float64, np.complex128, np.int64)):
            try:
                dtypes = loop_dtypes(
                    primitive,
                    (ShapedArray((8,), np.dtype(dtype)),) * count,
                    ShapedArray((8,), np.dtype(dtype)),
                )
            except TypeError:
                continue
            emit(module, f"f{i}_{j}", primitive.lower.write, dtypes, 8)
    text = str(module)
    assert "fadd" in text
    assert not re.search(r"= \w+ (fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)\b", text)
    assert "frem" not in text


@pytest.mark.parametrize("cpu", [SMALL[0], SMALL[2]])
def test_older_processors(cpu: str) -> None:
    names = ["add", "divide", "fmod", "floor_divide", "rint", "maximum", "nextafter"]
    cases = [(n, d) for n in names for d in FLOATS]
    written = [(method(n), (d,) * getattr(np, n).nin) for n, d in cases]
    runs = compiled(written, (8,), cpu)
    for (name, _), (_, dtypes), (run,) in zip(cases, written, runs, strict=True):
        arrays = operands(dtypes)
        if name == "maximum":
            is_sure = (arrays[0] != 0) | (arrays[1] != 0)
            arrays = [a[is_sure] for a in arrays]
        with np.errstate(all="ignore"):
            want = getattr(np, name)(*arrays)
        assert same(run(*arrays), want).all(), (name, dtypes)


# dtypes -------------------------------------------------------------------------------------------


def _loop(primitive: Any, *codes: str) -> str:
    avals = []
    for code in codes:
        weak = code.endswith("*")
        dtype = BRAIN if code == "E" else np.dtype(code.rstrip("*"))
        avals.append(ShapedArray((), dtype, weak))
    (out,) = primitive.abstract_eval(*avals)
    return "".join(d.char for d in loop_dtypes(primitive, tuple(avals), out))


def test_operands_are_converted_as_numpy_does() -> None:
    ew = elementwise
    assert _loop(ew.add_p, "f", "d*") == "ff"
    assert _loop(ew.add_p, "b", "q*") == "bb"
    assert _loop(ew.add_p, "b", "d*") == "dd"
    assert _loop(ew.add_p, "d*", "q*") == "dd"
    assert _loop(ew.divide_p, "i", "i") == "dd"
    assert _loop(ew.sin_p, "b") == "e"
    assert _loop(ew.multiply_p, "F", "d") == "DD"
    assert _loop(ew.ldexp_p, "f", "i") == "fi"
    assert _loop(ew.left_shift_p, "b", "B") == "hh"
    assert _loop(ew.frexp_exponent_p, "h") == "f"
    assert _loop(ew.where_p, "?", "f", "d*") == "?ff"
    assert _loop(ew.where_p, "d", "f", "i") == "ddd"
    assert _loop(ew.clip_p, "f", "q*", "d*") == "fff"
    assert _loop(ew.mul_strong_zero_p, "f", "d") == "dd"
    assert _loop(complex_parts.complex_p, "f", "d") == "fd"


def test_a_python_integer_is_compared_by_value() -> None:
    assert _loop(elementwise.less_p, "B", "q*").replace("l", "q") == "qq"
    assert _loop(elementwise.less_p, "Q", "q*").replace("l", "q").replace("L", "Q") == "Qq"
    assert _loop(elementwise.less_p, "f", "q*") == "ff"
    assert _loop(elementwise.less_p, "q", "d*") == "dd"
    assert _loop(elementwise.less_p, "q", "D*") == "DD"
    assert _loop(elementwise.less_p, "b", "b") == "bb"
