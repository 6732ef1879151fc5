"""Emitted arithmetic under test: many small loops compiled at once, run over arrays.

``compiled`` makes callables of functions of numbers; ``values`` and ``operands`` make special and
random points of a dtype; ``same`` and ``ulp_errors`` compare.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from functrans.emitter.builder import Builder, Module
from functrans.emitter.numbers import Numbers
from functrans.emitter.types import I64, POINTER, Value

SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 2.0, 3.0, -3.0, 7.0, np.inf, -np.inf, np.nan,
    1e-310, -5e-324, 1e308, -1e308, 2.2250738585072014e-308, 1e-40, 1e38, 6e-8, 65504.0, 65520.0,
    1e10, -1e19, 2.0**31, -(2.0**31), 2.0**63, 100.0, -200.0, 127.0, 128.0, 255.0, 300.0,
)  # fmt: skip


class Failing(Numbers):
    """Numbers which remember that an operation may leave the program, and go on."""

    failures: tuple[tuple[type[Exception], str], ...] = ()

    def fail_when(self, condition: Value, error: type[Exception], message: str) -> None:
        self.failures += ((error, message),)


class Run:
    """One emitted function of arrays of equal length."""

    def __init__(self, name: str, dtypes: Sequence[np.dtype], out: np.dtype, lanes: int) -> None:
        self.name = name
        self.dtypes = tuple(dtypes)
        self.out = out
        self.lanes = lanes
        self.engine: Any = None

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Elementwise; lengths that the lanes do not divide are filled up."""
        size = arrays[0].size
        padded = -(-size // self.lanes) * self.lanes
        given = [np.resize(a, padded) for a in arrays]
        assert [a.dtype for a in given] == list(self.dtypes)
        out = np.empty(padded, self.out)
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(given) + 1), ctypes.c_int64)
        function = signature(self.engine.get_function_address(self.name))
        function(*[a.ctypes.data for a in given], out.ctypes.data, padded)
        return out[:size]


def emit(
    module: Module, name: str, write: Callable[..., Any], dtypes: Sequence[Any], lanes: int
) -> Run:
    """Write a loop over contiguous arrays."""
    kinds = [np.dtype(d) for d in dtypes]
    b = Builder(module, name, [POINTER] * (len(kinds) + 1) + [I64])
    e = Failing(b)
    *sources, target, count = b.arguments
    with b.loop(b.index(0), count, lanes) as i:
        numbers = [
            e.load(d, b.offset(source, b.mul(i, b.index(d.itemsize))), lanes)
            for d, source in zip(kinds, sources, strict=True)
        ]
        result = write(e, *numbers)
        assert result.lanes == lanes
        e.store(result, b.offset(target, b.mul(i, b.index(result.dtype.itemsize))))
    b.ret()
    b.finish()
    return Run(name, kinds, result.dtype, lanes)


def compiled(
    cases: Sequence[tuple[Callable[..., Any], Sequence[Any]]],
    lanes: Sequence[int] = (1, 8),
    cpu: str | None = None,
) -> list[list[Run]]:
    """Functions ``(e, *numbers) -> number`` with the dtypes of their operands, as machine code.

    Returns:
      For each case a callable per number of lanes.
    """
    module = Module()
    runs = [
        [emit(module, f"f{i}_{n}", write, dtypes, n) for n in lanes]
        for i, (write, dtypes) in enumerate(cases)
    ]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu or llvm.get_host_cpu_name(), features=features, opt=1, jit=True
    )
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    engine = llvm.create_mcjit_compiler(parsed, machine)
    engine.finalize_object()
    for group in runs:
        for run in group:
            run.engine = engine
    return runs


def is_float(dtype: np.dtype) -> bool:
    """Whether a real floating dtype, bfloat16 included."""
    return dtype.kind == "f" or dtype.name == "bfloat16"


def values(dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Special and random numbers."""
    rng = np.random.default_rng(seed)
    if dtype.kind == "b":
        return rng.integers(0, 2, 16).astype(bool)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        edges = [0, 1, 2, 3, 5, 7, info.max, info.max - 1, info.min, info.min + 1]
        if dtype.kind == "i":
            edges += [-1, -2, -3, -7]
        wide = rng.integers(info.min, info.max, 16, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(edges, dtype), wide, rng.integers(0, 20, 12).astype(dtype)])
    if dtype.kind == "c":
        part = values(np.dtype(f"f{dtype.itemsize // 2}"), seed)
        out = np.empty(2 * part.size, dtype)
        out.real = np.concatenate([part, part])
        out.imag = np.concatenate([rng.permutation(part), part])
        return out
    with np.errstate(all="ignore"):
        random = [rng.standard_normal(12) * scale for scale in (1, 30, 1e4)]
        return np.concatenate([SPECIAL, *random]).astype(dtype)


def operands(dtypes: Sequence[Any]) -> list[np.ndarray]:
    """All pairs of values for two operands, many triples for three."""
    kinds = [np.dtype(d) for d in dtypes]
    points = [values(d, seed) for seed, d in enumerate(kinds)]
    if len(points) == 3:
        rng = np.random.default_rng(7)
        points = [rng.permutation(p)[:20] for p in points]
    return [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*points)]


def same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two arrays are equal bit by bit; every NaN equals every other."""
    assert a.dtype == b.dtype, (a.dtype, b.dtype)
    if a.dtype.kind == "c":
        first, second = ([np.ascontiguousarray(p) for p in (z.real, z.imag)] for z in (a, b))
        return np.logical_and(same(first[0], second[0]), same(first[1], second[1]))
    if is_float(a.dtype):
        bits = f"u{a.dtype.itemsize}"
        both_nan = np.logical_and(np.isnan(a), np.isnan(b))
        return np.logical_or(a.view(bits) == b.view(bits), both_nan)
    return np.equal(a, b)


def ulp_errors(got: np.ndarray, want: np.ndarray) -> np.ndarray:
    """Errors in units of the last place of what is wanted; infinite where specials differ."""
    with np.errstate(all="ignore"):
        is_finite = np.isfinite(got) & np.isfinite(want)
        wide = np.abs(got.astype(np.float64) - want.astype(np.float64))
        errors = wide / np.abs(np.spacing(np.abs(want))).astype(np.float64)
    return np.where(same(got, want), 0.0, np.where(is_finite, errors, np.inf))
