"""NumPy's arithmetic in emitted code.

Here: ``Number`` (a value with a NumPy dtype) and ``Numbers``: one method per elementwise primitive,
with NumPy's semantics for every dtype. Not here: instructions (``emitter.builder``), dtypes in
memory and conversions (``emitter.casts``), algorithms (``emitter.integers``, ``emitter.floats``,
``emitter.complexes``, ``emitter.complex_functions``), polynomials (``emitter.math``).

Operands come in the dtypes that NumPy's loop computes in, all with the same lanes.

Layer: ``emitter``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans.core.values import Array
from functrans.emitter import (
    casts,
    complex_functions,
    complex_inverses,
    complexes,
    floats,
    integers,
)
from functrans.emitter.builder import Builder
from functrans.emitter.math import (
    exponential,
    geometry,
    hyperbolic,
    inverse_trigonometry,
    logarithm,
    power,
    special,
    trigonometry,
)
from functrans.emitter.types import I8, Value
from functrans.records import dataclass

BOOL = np.dtype(bool)


@dataclass(frozen=True, slots=True)
class Number:
    """A number, or one per lane, of a NumPy dtype.

    Attributes:
      dtype: its dtype; booleans are ``i1`` in registers and a byte in memory.
      parts: the value; of a complex number real and imaginary part.
    """

    dtype: np.dtype
    parts: tuple[Value, ...]

    @property
    def value(self) -> Value:
        """The first part: all of a number that is not complex."""
        return self.parts[0]

    @property
    def kind(self) -> str:
        """One of ``b``, ``i``, ``u``, ``f``, ``c``."""
        return casts.kind_of(self.dtype)

    @property
    def lanes(self) -> int:
        """How many numbers there are."""
        return self.parts[0].type.lanes


class Numbers:
    """Arithmetic on numbers with NumPy's semantics.

    Attributes:
      b: the instructions.
    """

    def __init__(self, builder: Builder) -> None:
        self.b = builder

    # memory, constants, conversions --------------------------------------------------------------

    def load(self, dtype: DTypeLike | None, pointer: Value, lanes: int = 1) -> Number:
        """Read numbers that stand one after the other in memory."""
        dtype = np.dtype(dtype)
        return Number(dtype, casts.load(self.b, dtype, pointer, lanes))

    def store(self, number: Number, pointer: Value) -> None:
        """Write numbers to memory, one after the other."""
        casts.store(self.b, number.dtype, number.parts, pointer)

    def constant(self, dtype: Any, value: Any, lanes: int = 1) -> Number:
        """The same number in all lanes."""
        dtype = np.dtype(dtype)
        return Number(dtype, casts.constant_parts(dtype, value, lanes))

    def splat(self, x: Number, lanes: int) -> Number:
        """One number in all lanes."""
        return Number(x.dtype, tuple(self.b.splat(part, lanes) for part in x.parts))

    def lane(self, x: Number, lane: int) -> Number:
        """The number in one lane."""
        return Number(x.dtype, tuple(self.b.extract(part, lane) for part in x.parts))

    def pack(self, xs: Sequence[Number]) -> Number:
        """Single numbers as the lanes of one."""
        first = xs[0]
        parts = []
        for k, part in enumerate(first.parts):
            vector = Value("poison", part.type.with_lanes(len(xs)))
            for lane, x in enumerate(xs):
                vector = self.b.insert(vector, x.parts[k], lane)
            parts.append(vector)
        return Number(first.dtype, tuple(parts))

    def cast(self, x: Number, dtype: DTypeLike | None) -> Number:
        """Convert as ``astype`` does."""
        dtype = np.dtype(dtype)
        return Number(dtype, casts.cast(self.b, x.parts, x.dtype, dtype))

    def select(self, c: Number, x: Number, y: Number) -> Number:
        """``x`` where the boolean ``c`` holds, else ``y``, which has the same dtype."""
        pairs = zip(x.parts, y.parts, strict=True)
        return Number(x.dtype, tuple(self.b.select(c.value, p, q) for p, q in pairs))

    def fail_when(self, condition: Value, error: Callable[[str], Exception], message: str) -> None:
        """Leave the program with an exception where a scalar condition holds.

        Raises:
          NotImplementedError: these numbers belong to no program; the compiler's do.
        """
        raise NotImplementedError(f"{message}: there is no program to leave")

    def like(self, x: Number, value: Array | complex) -> Number:
        """A constant of the dtype and lanes of a number."""
        return self.constant(x.dtype, value, x.lanes)

    def _truth(self, value: Value) -> Number:
        return Number(BOOL, (value,))

    def _number(self, dtype: np.dtype, *parts: Value) -> Number:
        """Floats rounded to the dtype, all others as they are."""
        return Number(dtype, tuple(casts.rounded(self.b, dtype, part) for part in parts))

    # arithmetic ----------------------------------------------------------------------------------

    def add(self, x: Number, y: Number) -> Number:
        """``x + y``; of booleans, or."""
        return self._each_part(x, y, self.b.or_, self.b.add, self.b.fadd)

    def subtract(self, x: Number, y: Number) -> Number:
        """``x - y``."""
        return self._each_part(x, y, None, self.b.sub, self.b.fsub)

    def _each_part(
        self,
        x: Number,
        y: Number,
        truth: Callable[[Value, Value], Value] | None,
        integer: Callable[[Value, Value], Value],
        real: Callable[[Value, Value], Value],
    ) -> Number:
        """An operation that complex numbers have part by part."""
        if x.kind == "b":
            if truth is None:
                raise TypeError("NumPy has no such operation on booleans")
            return self._truth(truth(x.value, y.value))
        if x.kind in "iu":
            return Number(x.dtype, (integer(x.value, y.value),))
        return self._number(x.dtype, *(real(p, q) for p, q in zip(x.parts, y.parts, strict=True)))

    def multiply(self, x: Number, y: Number) -> Number:
        """``x * y``; of booleans, and. Complex products are ``(ac - bd) + (ad + bc)i``."""
        b = self.b
        if x.kind != "c":
            return self._each_part(x, y, b.and_, b.mul, b.fmul)
        return Number(x.dtype, complexes.multiply(b, x.parts, y.parts))

    def divide(self, x: Number, y: Number) -> Number:
        """``x / y`` of floats or complex numbers."""
        if x.kind == "c":
            return Number(x.dtype, complexes.divide(self.b, x.parts, y.parts))
        return self._number(x.dtype, self.b.fdiv(x.value, y.value))

    def negative(self, x: Number) -> Number:
        """``-x``."""
        if x.kind in "iu":
            return Number(x.dtype, (integers.negative(self.b, x.value),))
        if x.kind == "b":
            raise TypeError("negative is not defined for booleans")
        return Number(x.dtype, tuple(self.b.fneg(part) for part in x.parts))

    def floor_divide(self, x: Number, y: Number) -> Number:
        """``x // y``; of integers, 0 by zero."""
        if x.kind == "f":
            return self._number(x.dtype, floats.floor_divide(self.b, x.value, y.value))
        return self._integer(integers.floor_divide, x, y)

    def remainder(self, x: Number, y: Number) -> Number:
        """``x % y``, with the sign of ``y``; of integers, 0 by zero."""
        if x.kind == "f":
            return self._number(x.dtype, floats.remainder(self.b, x.value, y.value))
        return self._integer(integers.remainder, x, y)

    def fmod(self, x: Number, y: Number) -> Number:
        """The remainder with the sign of ``x``; of integers, 0 by zero."""
        if x.kind == "f":
            return self._number(x.dtype, floats.fmod(self.b, x.value, y.value))
        return self._integer(integers.fmod, x, y)

    def _integer(self, function: Callable[..., Value], *xs: Number) -> Number:
        """A function of integers that is told their signedness."""
        first = xs[0]
        values = [x.value for x in xs]
        return Number(first.dtype, (function(self.b, *values, first.kind == "i"),))

    def power(self, x: Number, y: Number) -> Number:
        """``x ** y``.

        Floats with an exponent of -1, 0.5, 1, 2 or 3 get a quotient, a root or products, whether it
        is a constant or not: ``x ** 0.5`` of a constant is NumPy's, the root also of ``-0.0`` and
        ``-inf``.

        Raises:
          ValueError: in the program, for a negative exponent of integers.
        """
        b = self.b
        if x.kind == "c":
            return Number(x.dtype, complex_functions.power(b, x.parts, y.parts))
        fixed = casts.literal(y.value)
        if x.kind == "f":
            return self._number(x.dtype, floats.power(b, x.value, y.value, fixed))
        if y.kind == "i" and (fixed is None or fixed < 0):
            is_negative = b.any_lane(b.icmp("slt", y.value, b.const(y.value, 0)))
            self.fail_when(
                is_negative, ValueError, "Integers to negative integer powers are not allowed."
            )
        if fixed is not None and 0 <= fixed <= 4:
            result = b.const(x.value, 1)
            for _ in range(int(fixed)):
                result = b.mul(result, x.value)
            return Number(x.dtype, (result,))
        return Number(x.dtype, (integers.power(b, x.value, y.value),))

    def absolute(self, x: Number) -> Number:
        """Absolute value, real for complex numbers; the smallest integer is its own."""
        if x.kind == "c":
            return Number(_part_dtype(x.dtype), (complex_functions.absolute(self.b, x.parts),))
        if x.kind == "f":
            return Number(x.dtype, (self.b.fabs(x.value),))
        return Number(x.dtype, (integers.absolute(self.b, x.value),)) if x.kind == "i" else x

    def sign(self, x: Number) -> Number:
        """-1, 0 or 1; NaN of NaN; ``x / |x|`` of complex numbers."""
        if x.kind == "c":
            return Number(x.dtype, complex_functions.sign(self.b, x.parts))
        if x.kind == "f":
            return Number(x.dtype, (floats.sign(self.b, x.dtype, x.value),))
        return self._integer(integers.sign, x)

    def gcd(self, x: Number, y: Number) -> Number:
        """Greatest common divisor."""
        return self._integer(integers.gcd, x, y)

    def lcm(self, x: Number, y: Number) -> Number:
        """Least common multiple."""
        return self._integer(integers.lcm, x, y)

    def mul_strong_zero(self, x: Number, y: Number) -> Number:
        """``x * y``, but 0 where ``x`` is 0."""
        is_zero = self.logical_not(x)
        return self.select(is_zero, self.like(x, 0), self.multiply(x, y))

    def where(self, c: Number, x: Number, y: Number) -> Number:
        """``x`` where the condition, a number of any dtype, is not zero, else ``y``."""
        return self.select(self.cast(c, BOOL), x, y)

    # comparisons ---------------------------------------------------------------------------------

    def equal(self, x: Number, y: Number) -> Number:
        """``x == y``."""
        return self._compare("eq", x, y)

    def not_equal(self, x: Number, y: Number) -> Number:
        """``x != y``; NaN is different from all."""
        return self._compare("ne", x, y)

    def less(self, x: Number, y: Number) -> Number:
        """``x < y``; complex numbers in lexicographic order."""
        return self._compare("lt", x, y)

    def less_equal(self, x: Number, y: Number) -> Number:
        """``x <= y``."""
        return self._compare("le", x, y)

    def greater(self, x: Number, y: Number) -> Number:
        """``x > y``."""
        return self._compare("gt", x, y)

    def greater_equal(self, x: Number, y: Number) -> Number:
        """``x >= y``."""
        return self._compare("ge", x, y)

    def _compare(self, name: str, x: Number, y: Number) -> Number:
        b = self.b
        if x.kind == "c":
            return self._truth(complexes.compare(b, name, x.parts, y.parts))
        if x.kind == "f":
            predicate = "une" if name == "ne" else f"o{name}"
            return self._truth(b.fcmp(predicate, x.value, y.value))
        signs = x.kind == "i", y.kind == "i"
        return self._truth(integers.compare(b, name, x.value, y.value, *signs))

    # extrema -------------------------------------------------------------------------------------

    def maximum(self, x: Number, y: Number) -> Number:
        """The larger; NaN if either is."""
        return self._extremum("ge", x, y)

    def minimum(self, x: Number, y: Number) -> Number:
        """The smaller; NaN if either is."""
        return self._extremum("le", x, y)

    def fmax(self, x: Number, y: Number) -> Number:
        """The larger; the other one of a NaN."""
        return self._extremum("ge", x, y, ignores_nan=True)

    def fmin(self, x: Number, y: Number) -> Number:
        """The smaller; the other one of a NaN."""
        return self._extremum("le", x, y, ignores_nan=True)

    def _extremum(self, name: str, x: Number, y: Number, ignores_nan: bool = False) -> Number:
        b = self.b
        if x.kind == "b":
            return self._truth((b.or_ if name == "ge" else b.and_)(x.value, y.value))
        if x.kind in "iu":
            suffix = "max" if name == "ge" else "min"
            intrinsic = ("s" if x.kind == "i" else "u") + suffix
            return Number(x.dtype, (b.intrinsic(intrinsic, x.value, y.value),))
        if x.kind == "f":
            p, q = x.value, y.value
            if ignores_nan:
                p, q = floats.number_of(b, p, q)
            extremum = floats.maximum if name == "ge" else floats.minimum
            return Number(x.dtype, (extremum(b, p, q),))
        wins = complexes.compare(b, name, x.parts, y.parts)
        nan = self.isnan(y if ignores_nan else x).value
        return self.select(self._truth(b.or_(wins, nan)), x, y)

    def multiply_add(self, x: Number, y: Number, z: Number) -> Number:
        """``x * y + z``, of real numbers rounded once."""
        if x.kind == "f":
            return self._number(x.dtype, self.b.fma(x.value, y.value, z.value))
        return self.add(self.multiply(x, y), z)

    def clip(self, x: Number, low: Number, high: Number) -> Number:
        """``min(max(x, low), high)``; NaN if any is."""
        if x.kind == "f":
            bounds = low.value, high.value
            return Number(x.dtype, (floats.clip(self.b, x.dtype, x.value, *bounds),))
        if x.kind != "c":
            return self.minimum(self.maximum(x, low), high)
        for bound, is_low in ((low, True), (high, False)):
            order = (bound.parts, x.parts) if is_low else (x.parts, bound.parts)
            keeps = self.b.or_(complexes.precedes(self.b, *order), self.isnan(x).value)
            x = self.select(self._truth(keeps), x, bound)
        return x

    def heaviside(self, x: Number, at_zero: Number) -> Number:
        """0 below 0, 1 above, ``at_zero`` at 0."""
        return Number(x.dtype, (floats.heaviside(self.b, x.value, at_zero.value),))

    # rounding, exponents, signs ------------------------------------------------------------------

    def floor(self, x: Number) -> Number:
        """The integer below; an integer itself."""
        return Number(x.dtype, (self.b.floor(x.value),)) if x.kind == "f" else x

    def ceil(self, x: Number) -> Number:
        """The integer above; an integer itself."""
        return Number(x.dtype, (self.b.ceil(x.value),)) if x.kind == "f" else x

    def trunc(self, x: Number) -> Number:
        """The integer toward zero; an integer itself."""
        return Number(x.dtype, (self.b.truncate(x.value),)) if x.kind == "f" else x

    def rint(self, x: Number) -> Number:
        """The nearest integer, ties to even; of complex numbers, of both parts."""
        return Number(x.dtype, tuple(self.b.round_even(part) for part in x.parts))

    def spacing(self, x: Number) -> Number:
        """Distance to the next float."""
        return Number(x.dtype, (floats.spacing(self.b, x.dtype, x.value),))

    def nextafter(self, x: Number, y: Number) -> Number:
        """The float next to ``x`` in the direction of ``y``."""
        return Number(x.dtype, (floats.nextafter(self.b, x.dtype, x.value, y.value),))

    def copysign(self, x: Number, y: Number) -> Number:
        """``x`` with the sign of ``y``."""
        return Number(x.dtype, (self.b.copysign(x.value, y.value),))

    def ldexp(self, x: Number, n: Number) -> Number:
        """``x * 2**n`` with an integer ``n``."""
        return self._number(x.dtype, floats.ldexp(self.b, x.value, n.value))

    def frexp_exponent(self, x: Number) -> Number:
        """The exponent of ``x = m * 2**n`` with ``0.5 <= |m| < 1``, as int32."""
        return Number(np.dtype(np.int32), (floats.frexp_exponent(self.b, x.value),))

    # tests, logic, bits --------------------------------------------------------------------------

    def isnan(self, x: Number) -> Number:
        """Whether a number, or a part of it, is NaN."""
        return self._any_part(floats.is_nan, x)

    def isinf(self, x: Number) -> Number:
        """Whether a number, or a part of it, is an infinity."""
        return self._any_part(floats.is_infinite, x)

    def isfinite(self, x: Number) -> Number:
        """Whether a number is neither NaN nor an infinity."""
        return self.logical_not(self._any_part(floats.is_not_finite, x))

    def _any_part(self, test: Callable[..., Value], x: Number) -> Number:
        if x.kind not in "fc":
            return self.constant(BOOL, False, x.lanes)
        truths = [test(self.b, part) for part in x.parts]
        return self._truth(truths[0] if len(truths) == 1 else self.b.or_(*truths))

    def signbit(self, x: Number) -> Number:
        """Whether the sign bit is set, of zeros and NaN too."""
        return self._truth(floats.sign_bit(self.b, x.value))

    def logical_and(self, x: Number, y: Number) -> Number:
        """Whether both are not zero."""
        return self._truth(self.b.and_(self._nonzero(x), self._nonzero(y)))

    def logical_or(self, x: Number, y: Number) -> Number:
        """Whether one is not zero."""
        return self._truth(self.b.or_(self._nonzero(x), self._nonzero(y)))

    def logical_xor(self, x: Number, y: Number) -> Number:
        """Whether exactly one is not zero."""
        return self._truth(self.b.xor(self._nonzero(x), self._nonzero(y)))

    def logical_not(self, x: Number) -> Number:
        """Whether a number is zero."""
        return self._truth(self.b.not_(self._nonzero(x)))

    def _nonzero(self, x: Number) -> Value:
        return casts.is_nonzero(self.b, x.dtype, x.parts)

    def bitwise_and(self, x: Number, y: Number) -> Number:
        """``x & y``."""
        return Number(x.dtype, (self.b.and_(x.value, y.value),))

    def bitwise_or(self, x: Number, y: Number) -> Number:
        """``x | y``."""
        return Number(x.dtype, (self.b.or_(x.value, y.value),))

    def bitwise_xor(self, x: Number, y: Number) -> Number:
        """``x ^ y``."""
        return Number(x.dtype, (self.b.xor(x.value, y.value),))

    def invert(self, x: Number) -> Number:
        """``~x``."""
        return Number(x.dtype, (self.b.not_(x.value),))

    def left_shift(self, x: Number, y: Number) -> Number:
        """``x << y``; 0 for shifts of the width or more."""
        return Number(x.dtype, (integers.left_shift(self.b, x.value, y.value),))

    def right_shift(self, x: Number, y: Number) -> Number:
        """``x >> y``; the sign for shifts of the width or more."""
        return self._integer(integers.right_shift, x, y)

    def bitwise_count(self, x: Number) -> Number:
        """Number of bits of the absolute value, as uint8."""
        count = self.b.intrinsic("ctpop", self.absolute(x).value)
        operation = "trunc" if count.type.bits > 8 else "zext"
        return Number(np.dtype(np.uint8), (self.b.convert(operation, count, I8),))

    # complex parts -------------------------------------------------------------------------------

    def real(self, x: Number) -> Number:
        """Real part."""
        return Number(_part_dtype(x.dtype), x.parts[:1]) if x.kind == "c" else x

    def imag(self, x: Number) -> Number:
        """Imaginary part; 0 of a real number."""
        if x.kind != "c":
            return self.like(x, 0)
        return Number(_part_dtype(x.dtype), x.parts[1:])

    def conjugate(self, x: Number) -> Number:
        """The number with its imaginary part negated."""
        if x.kind != "c":
            return x
        return Number(x.dtype, (x.parts[0], self.b.fneg(x.parts[1])))

    def complex(self, re: Number, im: Number) -> Number:
        """A complex number of its parts, which are converted to their common floating dtype."""
        dtype = np.result_type(re.dtype, im.dtype, np.complex64)
        part = _part_dtype(dtype)
        return Number(dtype, (self.cast(re, part).value, self.cast(im, part).value))

    def complex_abs(self, x: Number) -> Number:
        """``|x|``, real."""
        return self.absolute(x)

    # functions -----------------------------------------------------------------------------------

    def _function(
        self,
        x: Number,
        real: Callable[[Builder, Value], Value],
        complex_: Callable[[Builder, tuple[Value, ...]], tuple[Value, ...]] | None = None,
    ) -> Number:
        """A function that has a form for floats and perhaps one for complex numbers."""
        if x.kind == "c":
            if complex_ is None:
                raise TypeError(f"no function of {x.dtype} numbers")
            return Number(x.dtype, complex_(self.b, x.parts))
        return self._number(x.dtype, real(self.b, x.value))

    def sqrt(self, x: Number) -> Number:
        """Square root."""
        return self._function(x, Builder.sqrt, complex_functions.sqrt)

    def norm_sqrt(self, x: Number) -> Number:
        """Square root: it differs in its derivative only."""
        return self.sqrt(x)

    def cbrt(self, x: Number) -> Number:
        """Cube root."""
        return self._function(x, power.cbrt)

    def exp(self, x: Number) -> Number:
        """NumPy's ``exp``."""
        return self._function(x, exponential.exp, complex_functions.exp)

    def exp2(self, x: Number) -> Number:
        """NumPy's ``exp2``."""
        return self._function(x, exponential.exp2, complex_functions.exp2)

    def expm1(self, x: Number) -> Number:
        """NumPy's ``expm1``."""
        return self._function(x, exponential.expm1, complex_functions.expm1)

    def log(self, x: Number) -> Number:
        """NumPy's ``log``."""
        return self._function(x, logarithm.log, complex_functions.log)

    def log2(self, x: Number) -> Number:
        """Logarithm in base 2."""
        if x.kind == "c":
            return Number(x.dtype, complex_functions.log_in_base(self.b, x.parts, 2))
        return self._function(x, logarithm.log2)

    def log10(self, x: Number) -> Number:
        """Logarithm in base 10."""
        if x.kind == "c":
            return Number(x.dtype, complex_functions.log_in_base(self.b, x.parts, 10))
        return self._function(x, logarithm.log10)

    def log1p(self, x: Number) -> Number:
        """NumPy's ``log1p``."""
        return self._function(x, logarithm.log1p, complex_functions.log1p)

    def sin(self, x: Number) -> Number:
        """NumPy's ``sin``."""
        return self._function(x, trigonometry.sin, complex_functions.sin)

    def cos(self, x: Number) -> Number:
        """NumPy's ``cos``."""
        return self._function(x, trigonometry.cos, complex_functions.cos)

    def tan(self, x: Number) -> Number:
        """NumPy's ``tan``."""
        return self._function(x, trigonometry.tan, complex_functions.tan)

    def arcsin(self, x: Number) -> Number:
        """NumPy's ``arcsin``."""
        return self._function(x, inverse_trigonometry.asin, complex_inverses.arcsin)

    def arccos(self, x: Number) -> Number:
        """NumPy's ``arccos``."""
        return self._function(x, inverse_trigonometry.acos, complex_inverses.arccos)

    def arctan(self, x: Number) -> Number:
        """NumPy's ``arctan``."""
        return self._function(x, inverse_trigonometry.atan, complex_inverses.arctan)

    def sinh(self, x: Number) -> Number:
        """NumPy's ``sinh``."""
        return self._function(x, hyperbolic.sinh, complex_functions.sinh)

    def cosh(self, x: Number) -> Number:
        """NumPy's ``cosh``."""
        return self._function(x, hyperbolic.cosh, complex_functions.cosh)

    def tanh(self, x: Number) -> Number:
        """NumPy's ``tanh``."""
        return self._function(x, hyperbolic.tanh, complex_functions.tanh)

    def tanh_slope(self, x: Number, y: Number) -> Number:
        """The derivative of ``tanh``, given operand and result."""
        return self._number(x.dtype, hyperbolic.tanh_slope(self.b, x.value, y.value))

    def arcsinh(self, x: Number) -> Number:
        """NumPy's ``arcsinh``."""
        return self._function(x, hyperbolic.asinh, complex_inverses.arcsinh)

    def arccosh(self, x: Number) -> Number:
        """NumPy's ``arccosh``."""
        return self._function(x, hyperbolic.acosh, complex_inverses.arccosh)

    def arctanh(self, x: Number) -> Number:
        """NumPy's ``arctanh``."""
        return self._function(x, hyperbolic.atanh, complex_inverses.arctanh)

    def arctan2(self, y: Number, x: Number) -> Number:
        """The angle of the point ``(x, y)``."""
        return self._number(x.dtype, inverse_trigonometry.atan2(self.b, y.value, x.value))

    def hypot(self, x: Number, y: Number) -> Number:
        """``sqrt(x**2 + y**2)`` without overflow."""
        return self._number(x.dtype, geometry.hypot(self.b, x.value, y.value))

    def sigmoid(self, x: Number) -> Number:
        """``1 / (1 + exp(-x))``."""
        if x.kind == "c":
            one = self.like(x, 1)
            return self.divide(one, self.add(one, self.exp(self.negative(x))))
        return self._function(x, hyperbolic.expit)

    def sigmoid_slope(self, x: Number, y: Number) -> Number:
        """The derivative of ``sigmoid``, given operand and result."""
        return self._number(x.dtype, hyperbolic.expit_slope(self.b, x.value, y.value))

    def sigmoid_tilt(self, x: Number, y: Number) -> Number:
        """``1 - 2 sigmoid(x)``, given operand and result."""
        return self._number(x.dtype, hyperbolic.expit_tilt(self.b, x.value, y.value))

    def softplus(self, x: Number) -> Number:
        """``log(1 + exp(x))`` without overflow."""
        return self._function(x, hyperbolic.softplus)

    def erf(self, x: Number) -> Number:
        """The error function."""
        return self._function(x, special.erf)

    def erfc(self, x: Number) -> Number:
        """``1 - erf(x)``."""
        return self._function(x, special.erfc)

    def lgamma(self, x: Number) -> Number:
        """The logarithm of the absolute value of the gamma function."""
        return self._function(x, special.gammaln)

    def digamma(self, x: Number) -> Number:
        """The derivative of ``lgamma``."""
        return self._function(x, special.digamma)

    def logaddexp(self, x: Number, y: Number) -> Number:
        """``log(exp(x) + exp(y))``."""
        b = self.b
        far = exponential.exp(b, b.fneg(b.fabs(b.fsub(x.value, y.value))))
        return self._log_sum(x, y, logarithm.log1p(b, far), math.log(2))

    def logaddexp2(self, x: Number, y: Number) -> Number:
        """``log2(2**x + 2**y)``."""
        b = self.b
        far = exponential.exp2(b, b.fneg(b.fabs(b.fsub(x.value, y.value))))
        factor = b.const(far, 1 / math.log(2))
        return self._log_sum(x, y, b.fmul(factor, logarithm.log1p(b, far)), 1.0)

    def _log_sum(self, x: Number, y: Number, more: Value, at_equal: float) -> Number:
        """The larger and what the smaller adds; for equal ones, infinities too, a constant."""
        b = self.b
        is_equal = b.fcmp("oeq", x.value, y.value)
        more = b.select(is_equal, b.const(more, at_equal), more)
        larger = b.select(b.fcmp("ogt", x.value, y.value), x.value, y.value)
        return self._number(x.dtype, b.fadd(larger, more))


def _part_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype."""
    return np.dtype(f"f{dtype.itemsize // 2}")
