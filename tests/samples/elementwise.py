"""Rows of the elementwise primitives and of those between real and complex arrays.

Definitions are functions of Python numbers (``math``, ``cmath``, operators), so that NumPy is not
compared with itself.
"""

import cmath
import math
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from functrans.errors import ShapeError
from functrans.primitives import complex_parts as cp
from functrans.primitives import elementwise as ew
from samples.row import (
    Refused,
    Rng,
    Row,
    Sample,
    annulus,
    booleans,
    by_element,
    integers,
    uniform,
)

Draw = Callable[[Rng, tuple[int, ...]], np.ndarray]

LN2, LN10 = math.log(2.0), math.log(10.0)


# where operands are drawn from ------------------------------------------------------------------


def span(low: float, high: float) -> Draw:
    return partial(uniform, low=low, high=high)


def signed(low: float, high: float) -> Draw:
    """Numbers of either sign with a modulus in an interval."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
        return uniform(rng, shape, low, high) * np.where(booleans(rng, shape), 1.0, -1.0)

    return draw


def fraction(low: float, high: float) -> Draw:
    """Integers plus a fraction from an interval: away from jumps and from other fractions."""

    def draw(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
        return integers(rng, shape, -3, 3) + uniform(rng, shape, low, high)

    return draw


def small_integers(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Integers as float64, so that there are ties."""
    return integers(rng, shape, -2, 3).astype(np.float64)


def special(rng: Rng, shape: tuple[int, ...]) -> np.ndarray:
    """Among others NaN, infinities and signed zeros."""
    values = [math.nan, math.inf, -math.inf, 0.0, -0.0, -1.5, 2.0]
    return np.resize(rng.permutation(values), shape)


def polar(low: float, high: float, *angles: float) -> Draw:
    return partial(annulus, low=low, high=high, angles=angles)  # type: ignore[arg-type]  # a partial is a Draw


def ints(low: int, high: int) -> Draw:
    return partial(integers, low=low, high=high)


# unary ------------------------------------------------------------------------------------------


def by_kind(real: Callable[[Any], Any], cplx: Callable[[Any], Any] | None) -> Any:
    """A definition that has one form for real and one for complex operands."""

    def reference(x: Any) -> np.ndarray:
        is_complex = np.asarray(x).dtype.kind == "c"
        return by_element(cplx if is_complex and cplx is not None else real)(x)

    return reference


def unary(
    primitive: Any,
    numpy: Any,
    real: Callable[[Any], Any],
    cplx: Callable[[Any], Any] | None = None,
    draw: Draw = uniform,
    draw_complex: Draw = annulus,
    draw_int: Draw | None = None,
    kinks: tuple[float, ...] = (),
    **options: Any,
) -> Row:
    """A row of an elementwise primitive of one operand."""

    def make(rng: Rng) -> Iterator[Sample]:
        yield Sample("f64[3]", (draw(rng, (3,)),))
        yield Sample("f64[]", (draw(rng, ()),))
        yield Sample("f64[2,3]", (draw(rng, (2, 3)),))
        yield Sample("f64[2,0]", (draw(rng, (2, 0)),))
        yield Sample("f32[3]", (draw(rng, (3,)).astype(np.float32),))
        yield Sample("float", (float(draw(rng, ())),))
        if cplx is not None:
            yield Sample("c128[3]", (draw_complex(rng, (3,)),))
            yield Sample("c64[2]", (draw_complex(rng, (2,)).astype(np.complex64),))
        if draw_int is not None:
            yield Sample("i64[3]", (draw_int(rng, (3,)),))
        if kinks:
            is_finite = bool(np.isfinite(kinks).all())
            yield Sample("kinks", (np.array(kinks),), is_smooth=False, has_derivative=is_finite)

    if cplx is None:
        refused = Refused(
            "complex", (np.ones(2) * 1j,), TypeError, f"{primitive.name}: not defined"
        )
        options.setdefault("refused", (refused,))
    return Row(primitive, make, by_kind(real, cplx), numpy=numpy, **options)


def integer_unary(primitive: Any, numpy: Any, definition: Callable[[Any], Any]) -> Row:
    """A row of a bit operation of one operand."""

    def make(rng: Rng) -> Iterator[Sample]:
        yield Sample("i64[3]", (integers(rng, (3,)),))
        yield Sample("u8[2,2]", (integers(rng, (2, 2), 0, 255, np.uint8),))
        yield Sample("i32[0]", (integers(rng, (0,), dtype=np.int32),))

    refused = Refused("float", (np.ones(2),), TypeError, f"{primitive.name}: not defined")
    return Row(primitive, make, definition, numpy=numpy, refused=(refused,))


def kind_test(primitive: Any, numpy: Any, real: Any, cplx: Any = None) -> Row:
    """A row of a test of floating numbers, on special values."""
    return unary(
        primitive, numpy, real, cplx, draw=special, draw_complex=lambda r, s: special(r, s) + 1j
    )


UNARY = (
    unary(ew.negative_p, np.negative, operator.neg, operator.neg, draw_int=integers,
          linear_in=((0,),), is_flat=True),
    unary(ew.exp_p, np.exp, math.exp, cmath.exp, draw_int=integers),
    unary(ew.exp2_p, np.exp2, math.exp2, lambda z: 2**z, draw_int=integers),
    unary(ew.expm1_p, np.expm1, math.expm1, lambda z: cmath.exp(z) - 1, draw_int=integers),
    unary(ew.log_p, np.log, math.log, cmath.log, span(0.2, 3), draw_int=ints(1, 5)),
    unary(ew.log2_p, np.log2, math.log2, lambda z: cmath.log(z) / LN2, span(0.2, 3),
          draw_int=ints(1, 5)),
    unary(ew.log10_p, np.log10, math.log10, cmath.log10, span(0.2, 3), draw_int=ints(1, 5)),
    unary(ew.log1p_p, np.log1p, math.log1p, lambda z: cmath.log(1 + z), span(-0.7, 2),
          polar(0.1, 0.7, -3, 3), ints(0, 5)),
    unary(ew.sqrt_p, np.sqrt, math.sqrt, cmath.sqrt, span(0.2, 3), draw_int=ints(1, 9)),
    unary(ew.cbrt_p, np.cbrt, math.cbrt, None, signed(0.3, 2), draw_int=ints(1, 9)),
    unary(ew.sin_p, np.sin, math.sin, cmath.sin, draw_int=integers),
    unary(ew.cos_p, np.cos, math.cos, cmath.cos, draw_int=integers),
    unary(ew.tan_p, np.tan, math.tan, cmath.tan, span(-1.2, 1.2), draw_int=integers),
    unary(ew.arcsin_p, np.arcsin, math.asin, cmath.asin, span(-0.8, 0.8), polar(0.1, 0.8, -3, 3)),
    unary(ew.arccos_p, np.arccos, math.acos, cmath.acos, span(-0.8, 0.8), polar(0.1, 0.8, -3, 3)),
    unary(ew.arctan_p, np.arctan, math.atan, cmath.atan, span(-2, 2), polar(0.1, 0.8, -3, 3)),
    unary(ew.sinh_p, np.sinh, math.sinh, cmath.sinh, draw_int=integers),
    unary(ew.cosh_p, np.cosh, math.cosh, cmath.cosh, draw_int=integers),
    unary(ew.circle_square_p, None, lambda x: 1 - x * x, lambda x: 1 - x * x, draw_int=integers),
    unary(ew.tanh_p, np.tanh, math.tanh, cmath.tanh, draw_int=integers),
    unary(ew.arcsinh_p, np.arcsinh, math.asinh, cmath.asinh, span(-2, 2), polar(0.1, 0.8, -3, 3)),
    unary(ew.arccosh_p, np.arccosh, math.acosh, cmath.acosh, span(1.2, 3), polar(0.5, 2, 0.5, 2.5)),
    unary(ew.arctanh_p, np.arctanh, math.atanh, cmath.atanh, span(-0.8, 0.8),
          polar(0.1, 0.8, -3, 3)),
    unary(ew.absolute_p, np.absolute, abs, None, signed(0.2, 2), draw_int=integers,
          kinks=(0.0, -0.0, 1.0), is_flat=True, refused=()),
    unary(ew.sign_p, np.sign, lambda x: (x > 0) - (x < 0), None, signed(0.2, 2),
          draw_int=integers, zero_in=(0,), refused=()),
    unary(ew.floor_p, np.floor, math.floor, None, fraction(0.2, 0.8), zero_in=(0,)),
    unary(ew.ceil_p, np.ceil, math.ceil, None, fraction(0.2, 0.8), zero_in=(0,)),
    unary(ew.trunc_p, np.trunc, math.trunc, None, fraction(0.2, 0.8), zero_in=(0,)),
    unary(ew.rint_p, np.rint, round, None, fraction(0.6, 1.4), zero_in=(0,), refused=()),
    unary(ew.spacing_p, np.spacing, math.ulp, None, span(1.1, 1.9), zero_in=(0,)),
    unary(ew.logical_not_p, np.logical_not, operator.not_, operator.not_, small_integers,
          draw_int=ints(-1, 2)),
    kind_test(ew.isnan_p, np.isnan, math.isnan, cmath.isnan),
    kind_test(ew.isinf_p, np.isinf, math.isinf, cmath.isinf),
    kind_test(ew.isfinite_p, np.isfinite, math.isfinite, cmath.isfinite),
    kind_test(ew.signbit_p, np.signbit, lambda x: math.copysign(1, x) < 0),
    integer_unary(ew.invert_p, np.invert, lambda x: -1 - x if x.dtype.kind == "i" else 255 - x),
    integer_unary(ew.bitwise_count_p, np.bitwise_count, by_element(lambda x: abs(x).bit_count())),
    unary(ew.frexp_exponent_p, lambda x: np.frexp(x)[1], lambda x: math.frexp(x)[1], None,
          signed(0.2, 40), refused=()),
)  # fmt: skip


# binary -----------------------------------------------------------------------------------------


def binary(
    primitive: Any,
    numpy: Any,
    definition: Callable[[Any, Any], Any],
    draw_a: Draw = uniform,
    draw_b: Draw = uniform,
    draw_complex: Draw | None = None,
    draw_int: tuple[Draw, Draw] | None = None,
    kinks: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    jumps_at_integers: bool = False,
    **options: Any,
) -> Row:
    """A row of an elementwise primitive of two operands."""

    def make(rng: Rng) -> Iterator[Sample]:
        yield Sample("same", (draw_a(rng, (3,)), draw_b(rng, (3,))))
        yield Sample("broadcast", (draw_a(rng, (2, 1)), draw_b(rng, (3,))))
        yield Sample("0d_left", (draw_a(rng, ()), draw_b(rng, (2, 3))))
        yield Sample("0d_right", (draw_a(rng, (2,)), draw_b(rng, ())))
        yield Sample("0d_both", (draw_a(rng, ()), draw_b(rng, ())))
        yield Sample("empty", (draw_a(rng, (2, 0)), draw_b(rng, (1,))))
        yield Sample("float_right", (draw_a(rng, (3,)), float(draw_b(rng, ()))))
        yield Sample("float_left", (float(draw_a(rng, ())), draw_b(rng, (3,))))
        yield Sample("floats", (float(draw_a(rng, ())), float(draw_b(rng, ()))))
        f32 = draw_a(rng, (3,)).astype(np.float32), draw_b(rng, (3,)).astype(np.float32)
        yield Sample("f32", f32)
        yield Sample("f32_float", (f32[0], float(draw_b(rng, ()))))
        yield Sample("mixed", (f32[0], draw_b(rng, (2, 3))))
        if draw_complex is not None:
            yield Sample("complex", (draw_complex(rng, (3,)), draw_complex(rng, (2, 1))))
            yield Sample("complex_real", (draw_complex(rng, (3,)), draw_b(rng, (3,))))
            yield Sample("real_complex", (draw_a(rng, (3,)), draw_complex(rng, ())))
        if draw_int is not None:
            yield Sample("int", (draw_int[0](rng, (3,)), draw_int[1](rng, (3,))))
            operands = draw_int[0](rng, (3,)), draw_b(rng, (3,))
            yield Sample("int_float", operands, is_smooth=not jumps_at_integers)
        if kinks is not None:
            operands = np.array(kinks[0]), np.array(kinks[1])
            is_finite = all(np.isfinite(x).all() for x in operands)
            yield Sample("kinks", operands, is_smooth=False, has_derivative=is_finite)

    return Row(
        primitive,
        make,
        by_element(definition),
        numpy=numpy,
        refused=(*shapes_differ(primitive.name, 2), *options.pop("refused", ())),
        **options,
    )


def shapes_differ(name: str, count: int) -> tuple[Refused, ...]:
    """Operands of an elementwise primitive that do not broadcast."""
    operands = tuple(np.ones(2 + (i == 0)) for i in range(count))
    return (Refused("shapes", operands, ShapeError, f"{name}: operands of shapes .* broadcast"),)


def comparison(primitive: Any, numpy: Any, definition: Any, complex_too: bool = False) -> Row:
    """A row of a comparison, on operands with ties."""
    return binary(
        primitive, numpy, definition, small_integers, small_integers,
        (lambda r, s: small_integers(r, s) + 1j) if complex_too else None, (integers, integers),
    )  # fmt: skip


def integer_binary(
    primitive: Any,
    numpy: Any,
    definition: Any,
    draw_a: Draw = integers,
    draw_b: Draw = integers,
    with_bool: bool = False,
) -> Row:
    """A row of an operation on integers."""

    def make(rng: Rng) -> Iterator[Sample]:
        yield Sample("same", (draw_a(rng, (3,)), draw_b(rng, (3,))))
        yield Sample("broadcast", (draw_a(rng, (2, 1)), draw_b(rng, (3,))))
        yield Sample("int_right", (draw_a(rng, (3,)), int(draw_b(rng, ()))))
        yield Sample("i32", (draw_a(rng, (3,)).astype(np.int32), draw_b(rng, ()).astype(np.int32)))
        yield Sample("empty", (draw_a(rng, (0,)), draw_b(rng, (1,))))
        if with_bool:
            yield Sample("bool", (booleans(rng, (4,)), booleans(rng, (4,))))

    refused = Refused(
        "float", (np.ones(2), np.ones(2)), TypeError, f"{primitive.name}: not defined"
    )
    return Row(
        primitive, make, by_element(definition), numpy=numpy,
        refused=(refused, *shapes_differ(primitive.name, 2)),
    )  # fmt: skip


def _mul_strong_zero(a: Any, b: Any) -> Any:
    return 0 if a == 0 else a * b


def _heaviside(x: float, at_zero: float) -> float:
    return at_zero if x == 0 else float(x > 0)


LEFT, RIGHT = fraction(0.0, 0.4), fraction(0.5, 0.9)
TIES = (1.0, 0.0, 2.0, -1.0), (1.0, -0.0, 1.0, 3.0)


def extremum(primitive: Any, numpy: Any, definition: Any) -> Row:
    """A row of a maximum or minimum, away from ties and at ties."""
    ints_too = integers, integers
    return binary(primitive, numpy, definition, LEFT, RIGHT, None, ints_too, TIES, is_flat=True)


BINARY = (
    binary(ew.add_p, np.add, operator.add, draw_complex=annulus, draw_int=(integers, integers),
           linear_in=((0, 1), (0,), (1,)), is_flat=True),
    binary(ew.subtract_p, np.subtract, operator.sub, draw_complex=annulus,
           draw_int=(integers, integers), linear_in=((0, 1), (0,), (1,)), is_flat=True),
    binary(ew.multiply_p, np.multiply, operator.mul, draw_complex=annulus,
           draw_int=(integers, integers), linear_in=((0,), (1,))),
    binary(ew.divide_p, np.divide, operator.truediv, uniform, signed(0.4, 2), annulus,
           (integers, ints(1, 5)), linear_in=((0,),)),
    binary(ew.floor_divide_p, np.floor_divide, operator.floordiv, fraction(0.3, 0.5),
           lambda r, s: np.where(booleans(r, s), 1.0, -1.0), None, (integers, ints(1, 4)),
           jumps_at_integers=True, zero_in=(0, 1)),
    binary(ew.remainder_p, np.remainder, operator.mod, fraction(0.3, 0.5),
           lambda r, s: 2.0 * np.where(booleans(r, s), 1.0, -1.0), None, (integers, ints(1, 4)),
           jumps_at_integers=True, is_flat=True),
    binary(ew.fmod_p, np.fmod, math.fmod, fraction(0.3, 0.5),
           lambda r, s: 2.0 * np.where(booleans(r, s), 1.0, -1.0), None, (integers, ints(1, 4)),
           jumps_at_integers=True, is_flat=True),
    binary(ew.power_p, np.power, operator.pow, span(0.3, 2), uniform, annulus,
           (ints(1, 4), ints(0, 4)), ((0.0, 0.0, 0.0), (0.0, 1.0, 2.5))),
    binary(ew.logaddexp_p, np.logaddexp, lambda a, b: math.log(math.exp(a) + math.exp(b))),
    binary(ew.logaddexp2_p, np.logaddexp2, lambda a, b: math.log2(2**a + 2**b)),
    binary(ew.arctan2_p, np.arctan2, math.atan2, signed(0.4, 2), signed(0.4, 2)),
    binary(ew.tanh_slope_p, None, lambda x, y: 1 - y * y, draw_b=span(-0.9, 0.9), fixed=(0,)),
    binary(ew.hypot_p, np.hypot, math.hypot, signed(0.4, 2), signed(0.4, 2),
           kinks=((0.0, 1.0), (0.0, 0.0))),
    binary(ew.cosine_p, None, lambda a, b: a / (math.hypot(a, b) or 1), signed(0.4, 2),
           signed(0.4, 2), kinks=((0.0, 1.0), (0.0, 0.0))),
    extremum(ew.maximum_p, np.maximum, max),
    extremum(ew.minimum_p, np.minimum, min),
    extremum(ew.fmax_p, np.fmax, max),
    extremum(ew.fmin_p, np.fmin, min),
    # Where its first operand is exactly 0, the derivative in the second is 1: test_hazards.
    binary(ew.heaviside_p, np.heaviside, _heaviside, signed(0.2, 2), uniform,
           kinks=((0.0, 1.0, -0.0), (0.3, 0.4, 0.5)), zero_in=(0, 1)),
    binary(ew.copysign_p, np.copysign, math.copysign, signed(0.2, 2), signed(0.2, 2),
           zero_in=(1,), is_flat=True),
    binary(ew.mul_strong_zero_p, np.multiply, _mul_strong_zero, draw_complex=annulus,
           draw_int=(integers, integers), kinks=((0.0, 0.0, 0.0), (math.inf, math.nan, 2.0)),
           linear_in=((0,), (1,))),
    comparison(ew.equal_p, np.equal, operator.eq, True),
    comparison(ew.not_equal_p, np.not_equal, operator.ne, True),
    comparison(ew.less_p, np.less, operator.lt),
    comparison(ew.less_equal_p, np.less_equal, operator.le),
    comparison(ew.greater_p, np.greater, operator.gt),
    comparison(ew.greater_equal_p, np.greater_equal, operator.ge),
    comparison(ew.logical_and_p, np.logical_and, lambda a, b: bool(a and b), True),
    comparison(ew.logical_or_p, np.logical_or, lambda a, b: bool(a or b), True),
    comparison(ew.logical_xor_p, np.logical_xor, lambda a, b: bool(a) != bool(b), True),
    integer_binary(ew.bitwise_and_p, np.bitwise_and, operator.and_, with_bool=True),
    integer_binary(ew.bitwise_or_p, np.bitwise_or, operator.or_, with_bool=True),
    integer_binary(ew.bitwise_xor_p, np.bitwise_xor, operator.xor, with_bool=True),
    integer_binary(ew.left_shift_p, np.left_shift, operator.lshift, integers, ints(0, 5)),
    integer_binary(ew.right_shift_p, np.right_shift, operator.rshift, integers, ints(0, 5)),
    integer_binary(ew.gcd_p, np.gcd, math.gcd),
    integer_binary(ew.lcm_p, np.lcm, math.lcm),
)  # fmt: skip


def _nextafter_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("same", (uniform(rng, (3,)), uniform(rng, (3,))))
    yield Sample("broadcast", (uniform(rng, (2, 1)), uniform(rng, (3,))))
    yield Sample("float_right", (uniform(rng, (3,)), 5.0))
    yield Sample("empty", (uniform(rng, (0,)), uniform(rng, ())))


def _ldexp_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("same", (uniform(rng, (3,)), integers(rng, (3,))))
    yield Sample("broadcast", (uniform(rng, (2, 1)), integers(rng, (3,), dtype=np.int32)))
    yield Sample("int_right", (uniform(rng, ()), 3))
    yield Sample("f32", (uniform(rng, (3,)).astype(np.float32), integers(rng, ())))
    yield Sample("empty", (uniform(rng, (0,)), integers(rng, (1,))))


# where, clip ------------------------------------------------------------------------------------


def _where_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("same", (booleans(rng, (4,)), uniform(rng, (4,)), uniform(rng, (4,))))
    yield Sample("broadcast", (booleans(rng, (2, 1)), uniform(rng, (3,)), uniform(rng, ())))
    yield Sample("0d", (np.array(True), uniform(rng, ()), uniform(rng, ())))
    yield Sample("scalars", (booleans(rng, (3,)), 1.5, 0))
    yield Sample("f32_scalar", (booleans(rng, (3,)), uniform(rng, (3,)).astype(np.float32), 0.0))
    yield Sample("scalar_f64", (booleans(rng, (3,)), 2, uniform(rng, (2, 3))))
    yield Sample("mixed", (booleans(rng, (3,)), integers(rng, (3,)), uniform(rng, (3,))))
    yield Sample("int_condition", (integers(rng, (4,), 0, 2), uniform(rng, (4,)), annulus(rng, ())))
    yield Sample("empty", (booleans(rng, (2, 0)), uniform(rng, (1, 1)), uniform(rng, ())))
    arms = np.array([math.nan, 1.0]), np.array([2.0, math.inf])
    yield Sample("nan_untaken", (np.array([False, True]), *arms), is_smooth=False)


def _where(c: Any, a: Any, b: Any) -> np.ndarray:
    return by_element(lambda c, a, b: a if c else b)(c, a, b)


def _clip_samples(rng: Rng) -> Iterator[Sample]:
    def bounds(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return span(-1.0, -0.5)(rng, shape), span(0.5, 1.0)(rng, shape)

    def crossing(shape: tuple[int, ...]) -> np.ndarray:
        """Some below, some between, some above the bounds."""
        values = np.resize(np.array([-1.7, 0.2, 1.7]), shape)
        return values + uniform(rng, shape, -0.2, 0.2)

    yield Sample("same", (crossing((6,)), *bounds((6,))))
    yield Sample("broadcast", (crossing((3,)), *bounds((2, 1))))
    yield Sample("scalars", (crossing((2, 3)), -0.75, 0.75))
    yield Sample("0d", (crossing(()), *bounds(())))
    yield Sample("f32_scalars", (crossing((3,)).astype(np.float32), -0.75, 0.75))
    yield Sample("empty", (crossing((0,)), *bounds(())))
    yield Sample("int", (integers(rng, (5,)), np.int64(-2), np.int64(2)))
    bent = np.array([-1.0, 1.0, 0.0]), np.full(3, -1.0), np.array([1.0, 1.0, -2.0])
    yield Sample("at_bounds", bent, is_smooth=False)


def _multiply_add_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("same", (uniform(rng, (6,)), uniform(rng, (6,)), uniform(rng, (6,), 2.0, 3.0)))
    yield Sample("broadcast", (uniform(rng, (2, 1)), uniform(rng, (3,)), uniform(rng, ())))
    yield Sample("0d", (uniform(rng, ()), uniform(rng, ()), uniform(rng, ())))
    single = tuple(uniform(rng, (3,)).astype(np.float32) for _ in range(2))
    yield Sample("f32_scalar", (*single, 2.0))
    yield Sample("complex", (annulus(rng, (3,)), uniform(rng, (3,)), annulus(rng, (3,))))
    yield Sample("empty", (uniform(rng, (0,)), uniform(rng, ()), uniform(rng, ())))


TERNARY = (
    Row(ew.nextafter_p, _nextafter_samples, by_element(math.nextafter), rtol=0, numpy=np.nextafter,
        zero_in=(1,), is_flat=True, refused=shapes_differ("nextafter", 2)),
    Row(ew.ldexp_p, _ldexp_samples, by_element(math.ldexp), rtol=0, numpy=np.ldexp,
        linear_in=((0,),), is_flat=True,
        refused=(Refused("float_exponent", (np.ones(2), np.ones(2)), TypeError, "ldexp: not"),)),
    Row(ew.where_p, _where_samples, _where, rtol=0, numpy=np.where, linear_in=((1, 2), (1,), (2,)),
        is_flat=True, refused=shapes_differ("where", 3)),
    Row(ew.clip_p, _clip_samples, by_element(lambda x, lo, hi: min(max(x, lo), hi)), rtol=0,
        numpy=np.clip, is_flat=True, refused=shapes_differ("clip", 3)),
    Row(ew.multiply_add_p, _multiply_add_samples, by_element(lambda a, b, c: a * b + c),
        linear_in=((0, 2), (1, 2)), refused=(*shapes_differ("multiply_add", 3), Refused(
            "integers", (np.ones(2, int),) * 3, TypeError, "multiply_add: not"))),
)  # fmt: skip


# complex parts ----------------------------------------------------------------------------------


def _complex_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("c128[3]", (annulus(rng, (3,), angles=(-4, 4)),))
    yield Sample("c128[]", (annulus(rng, ()),))
    yield Sample("c64[2,2]", (annulus(rng, (2, 2)).astype(np.complex64),))
    yield Sample("c128[0,2]", (annulus(rng, (0, 2)),))


def _complex_pair_samples(rng: Rng) -> Iterator[Sample]:
    yield Sample("same", (uniform(rng, (3,)), uniform(rng, (3,))))
    yield Sample("broadcast", (uniform(rng, (2, 1)), uniform(rng, (3,))))
    yield Sample("f32", (uniform(rng, (3,)).astype(np.float32),) * 2)
    yield Sample("empty", (uniform(rng, (0,)), uniform(rng, ())))
    signs = np.array([math.inf, -0.0]), np.array([math.nan, -0.0])
    yield Sample("special", signs, is_smooth=False)


COMPLEX = (
    Row(cp.real_p, _complex_samples, by_element(lambda z: z.real), rtol=0, is_flat=True),
    Row(cp.imag_p, _complex_samples, by_element(lambda z: z.imag), rtol=0, is_flat=True),
    Row(cp.conjugate_p, _complex_samples, by_element(lambda z: z.conjugate()), rtol=0,
        is_flat=True),
    Row(cp.complex_p, _complex_pair_samples, by_element(complex), rtol=0, is_flat=True,
        refused=shapes_differ("complex", 2)),
    Row(cp.complex_abs_p, _complex_samples, by_element(abs)),
)  # fmt: skip

ROWS = (*UNARY, *BINARY, *TERNARY, *COMPLEX)
