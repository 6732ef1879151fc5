"""Vector math under test: compiled alone, run over arrays, compared with mpmath in ulp.

``Compiled(function, dtype, lanes)`` is a callable on NumPy arrays; ``ulp_errors`` measures its
results against exact values; ``random_bits``, ``grid`` and ``specials`` make points.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm
import mpmath
import numpy as np

from functrans.emitter.builder import Builder, Module
from functrans.emitter.types import F32, F64, I64, POINTER, Value

Function = Callable[..., Value]
Exact = Callable[..., Any]

ELEMENTS = {np.dtype("f4"): F32, np.dtype("f8"): F64}


class Compiled:
    """A function of vector math as machine code: a loop over contiguous arrays of one length.

    Args:
      function: ``f(b, x, ...) -> Value``.
      dtype: float32 or float64, of operands and result.
      lanes: numbers that are computed at a time.
      arity: number of operands.
      cpu: LLVM's name of the processor to compile for; the host if not given.
    """

    def __init__(
        self, function: Function, dtype: Any, lanes: int = 1, arity: int = 1, cpu: str | None = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.lanes = lanes
        self.arity = arity
        self.text = self._emit(function)
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=2, jit=True
        )
        module = llvm.parse_assembly(self.text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        # The lanes under test are the ones written.
        options.loop_vectorization = options.slp_vectorization = False
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        self.optimised = str(module)
        self.assembly = machine.emit_assembly(module)
        self._engine = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        signature = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (arity + 1))
        self._run = signature(self._engine.get_function_address("run"))

    def _emit(self, function: Function) -> str:
        module = Module()
        b = Builder(module, "run", [I64] + [POINTER] * (self.arity + 1))
        count, target, *sources = b.arguments
        element = ELEMENTS[self.dtype]
        with b.loop(b.index(0), count, self.lanes) as i:
            operands = [
                b.load(element.with_lanes(self.lanes), b.element(source, i, element))
                for source in sources
            ]
            b.store(function(b, *operands), b.element(target, i, element))
        b.ret()
        b.finish()
        return str(module)

    def into(self, out: np.ndarray, *operands: np.ndarray) -> None:
        """Run over contiguous arrays, the length of which is a multiple of the lanes."""
        self._run(out.size, out.ctypes.data, *[operand.ctypes.data for operand in operands])

    def __call__(self, *operands: Any) -> np.ndarray:
        """Run over arrays or numbers of any length; they are broadcast against each other."""
        arrays = np.broadcast_arrays(*[np.asarray(x, self.dtype) for x in operands])
        shape, size = arrays[0].shape, arrays[0].size
        padded = -(-size // self.lanes) * self.lanes
        filled = [np.ones(padded, self.dtype) for _ in arrays]
        for to, array in zip(filled, arrays, strict=True):
            to[:size] = array.ravel()
        out = np.empty(padded, self.dtype)
        self.into(out, *filled)
        return out[:size].reshape(shape)


def ulp_errors(
    got: np.ndarray,
    exact: Exact,
    *operands: np.ndarray,
    precision_bits: int = 160,
    magnitude: Exact | None = None,
) -> np.ndarray:
    """Distances of results from the exact ones, in ulp of the exact ones.

    Infinity counts as the next number after the largest finite one. Where ``exact`` raises
    ``ValueError`` or gives NaN or a complex number, the result must be NaN, else the error is
    infinite; it is also where a result is NaN and the exact one is not.

    Args:
      got: float32 or float64 results.
      exact: function of mpmath numbers.
      *operands: what the results were computed from; finite.
      precision_bits: of mpmath's arithmetic; more where ``exact`` cancels.
      magnitude: function of mpmath numbers, the number whose ulp counts if that is larger than the
        exact result's: ``|x - x0| |f'(x0)|`` near a zero ``x0``.
    """
    info = np.finfo(got.dtype)
    digits, largest = info.nmant + 1, int(info.maxexp)
    # np.frexp has the mantissa in [1/2, 1): exponents are those of mpmath's ``mag``.
    smallest = int(info.minexp) + 1
    errors = np.empty(got.size)
    with mpmath.workprec(precision_bits):
        beyond = mpmath.ldexp(1, largest)
        for position, result in enumerate(got.ravel().tolist()):
            arguments = [mpmath.mpf(x.flat[position].item()) for x in operands]
            try:
                value = exact(*arguments)
            except ValueError:
                value = mpmath.nan
            if isinstance(value, mpmath.mpc) or mpmath.isnan(value):
                errors[position] = 0 if np.isnan(result) else np.inf
                continue
            if np.isnan(result):
                errors[position] = np.inf
                continue
            value = max(min(value, beyond), -beyond)
            if np.isinf(result):
                result = beyond if result > 0 else -beyond
            scale = abs(value)
            if magnitude is not None:
                scale = max(scale, magnitude(*arguments))
            exponent = smallest if scale == 0 else max(int(mpmath.mag(scale)), smallest)
            exponent = min(exponent, largest)
            errors[position] = float(abs(value - result) * mpmath.ldexp(1, digits - exponent))
    return errors.reshape(got.shape)


def random_bits(rng: np.random.Generator, dtype: Any, count: int) -> np.ndarray:
    """Finite numbers with uniformly distributed bits: all magnitudes and signs, subnormals too."""
    dtype = np.dtype(dtype)
    numbers = rng.integers(
        0, 1 << (8 * dtype.itemsize), size=count + count // 16 + 16,
        dtype=np.dtype(f"u{dtype.itemsize}"),
    ).view(dtype)  # fmt: skip
    return numbers[np.isfinite(numbers)][:count]


def random_in(
    rng: np.random.Generator, dtype: Any, low: float, high: float, count: int
) -> np.ndarray:
    """Numbers with uniformly distributed bits between two positive numbers, or two negative."""
    dtype = np.dtype(dtype)
    ends = np.array([low, high], dtype).view(np.dtype(f"i{dtype.itemsize}"))
    bits = rng.integers(ends.min(), ends.max(), size=count, endpoint=True, dtype=ends.dtype)
    return bits.view(dtype)


def grid(dtype: Any, low: float, high: float, count: int) -> np.ndarray:
    """Evenly spaced numbers, both ends included."""
    return np.linspace(low, high, count).astype(dtype)


def specials(dtype: Any) -> np.ndarray:
    """Finite numbers at the edges of the format and near 1, with both signs and both zeros."""
    info = np.finfo(dtype)
    one = np.ones((), dtype)
    positive = np.array(
        [
            0.0,
            info.smallest_subnormal,
            3 * info.smallest_subnormal,
            np.nextafter(info.tiny, 0 * one),
            info.tiny,
            np.nextafter(info.tiny, one),
            info.eps,
            0.5,
            np.nextafter(one, 0 * one),
            1.0,
            np.nextafter(one, 2 * one),
            2.0,
            np.nextafter(info.max, one),
            info.max,
        ],
        dtype,
    )
    return np.concatenate([positive, -positive])


def same(got: Any, expected: Any) -> bool:
    """Whether all numbers agree, NaN with NaN, and zeros in their signs too."""
    got, expected = np.broadcast_arrays(np.asarray(got), np.asarray(expected))
    nan = np.isnan(got) & np.isnan(expected)
    return bool(np.all(nan | ((got == expected) & (np.signbit(got) == np.signbit(expected)))))
