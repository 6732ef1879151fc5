"""Run the native code of one primitive alone: a module with one function of data pointers.

Here: ``program`` and ``run``, by which the tests of ``Routine`` rules compare a rule with the
``impl`` of its primitive. Not here: the compiler, which plans whole programs.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from typing import Any

import numpy as np

from functrans.compiler import symbols, threads  # noqa: F401  # which gives code the threads
from functrans.core.avals import ShapedArray
from functrans.core.lowering import Routine
from functrans.core.primitive import Primitive
from functrans.emitter.builder import Builder, Module
from functrans.emitter.routine import Array, Routines
from functrans.emitter.types import POINTER, Machine, Value
from functrans.machine import engine

_ALIGN = 64
_GUARD = 0xA5


class Program:
    """The native code of one equation.

    Attributes:
      text: LLVM's.
      symbols: names of the library functions that it calls.
    """

    def __init__(
        self,
        primitive: Primitive,
        avals: Any,
        params: Any,
        level: int = 2,
        in_place: bool = False,
        same: bool = False,
        machine: Machine | None = None,
    ) -> None:
        rule = primitive.lower
        assert isinstance(rule, Routine), primitive.name
        assert rule.supports is None or rule.supports(*avals, **params)
        self.outs = primitive.abstract_eval(*avals, **params)
        self.in_place = rule.in_place if in_place else None
        self.symbols: list[str] = []
        self._errors: list[tuple[type[Exception], str]] = []
        self._scratch = 0
        module = Module(machine or engine.machine())
        pointers = [POINTER] * (len(avals) + len(self.outs) + 2)
        self._b = b = Builder(module, "routine", pointers)
        self._status, self._space = b.arguments[-2:]
        arrays = [
            Array(pointer, tuple(aval.shape), aval.dtype)
            for pointer, aval in zip(b.arguments, (*avals, *self.outs), strict=False)
        ]
        operands, results = arrays[: len(avals)], arrays[len(avals) :]
        if same:
            operands = [operands[0]] * len(operands)
        if self.in_place is not None:
            pointer = operands[self.in_place].pointer
            results[0] = Array(pointer, results[0].shape, results[0].dtype)
        e = Routines(b, self._workspace, self._fail, self._symbol)
        rule.write(e, operands, results, **params)
        b.ret()
        b.finish()
        self.text = str(module)
        code = engine.compile_object(self.text, level)
        known = {symbols.symbol_name(name): symbols.address(name) for name in self.symbols}
        self._loaded = engine.load_object(code, known)
        self.call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))(
            self._loaded.address("routine")
        )

    def _workspace(self, size_bytes: int) -> Value:
        at = self._scratch
        self._scratch += -(-size_bytes // _ALIGN) * _ALIGN
        return self._b.offset(self._space, self._b.index(at))

    def _fail(self, condition: Value, error: type[Exception], message: str) -> None:
        self._errors.append((error, message))
        b = self._b
        with b.when(condition):
            b.store(b.index(len(self._errors)), self._status)
            b.ret()
            b.start(b.label("dead"))

    def _symbol(self, name: str) -> str:
        if name not in self.symbols:
            self.symbols.append(name)
        return symbols.symbol_name(name)

    def places(self, arrays: list[np.ndarray]) -> tuple[list[int], Any]:
        """Addresses of the arguments, and what must be kept alive."""
        status = np.zeros(1, np.int64)
        # Not initialised, and behind its end there is something to notice.
        space = np.full(self._scratch + 2 * _ALIGN, _GUARD, np.uint8)
        start = -space.ctypes.data % _ALIGN
        places = [x.ctypes.data for x in (*arrays, status)]
        return [*places, space.ctypes.data + start], (arrays, status, space)

    def __call__(self, *operands: Any) -> tuple[np.ndarray, ...]:
        """Run it.

        Raises:
          Exception: what the rule fails with.
        """
        arrays = [np.array(x, order="C") for x in operands]
        before = [x.copy() for x in arrays]
        outs, frames = [], []
        for aval in self.outs:
            size = int(np.prod(aval.shape)) * aval.dtype.itemsize
            frame = np.full(size + 2 * _ALIGN, _GUARD, np.uint8)
            frames.append((frame, size))
            outs.append(frame[_ALIGN : _ALIGN + size].view(aval.dtype).reshape(aval.shape))
        if self.in_place is not None:
            outs[0] = arrays[self.in_place]
        places, kept = self.places([*arrays, *outs])
        self.call(*places)
        for frame, size in frames:
            edges = frame[:_ALIGN], frame[_ALIGN + size :]
            assert all((edge == _GUARD).all() for edge in edges), "written beside a result"
        for i, (x, old) in enumerate(zip(arrays, before, strict=True)):
            if i != self.in_place:
                np.testing.assert_array_equal(x, old, "an operand was changed")
        _, status, space = kept
        assert (space[-_ALIGN:] == _GUARD).all(), "written behind the workspace"
        if status[0]:
            error, message = self._errors[status[0] - 1]
            raise error(message)
        return tuple(outs)


def aval_of(x: Any) -> ShapedArray:
    """Shape and dtype of an operand."""
    array = np.asarray(x)
    return ShapedArray(array.shape, array.dtype)


@lru_cache(maxsize=256)
def _program(primitive: Primitive, avals: Any, params: Any, *options: Any) -> Program:
    return Program(primitive, avals, dict(params), *options)


def program(
    primitive: Primitive,
    *operands: Any,
    level: int = 2,
    in_place: bool = False,
    same: bool = False,
    machine: Machine | None = None,
    **params: Any,
) -> Program:
    """The native code for operands of such shapes and dtypes.

    Args:
      primitive: whose rule is a ``Routine``.
      *operands: arrays of the shapes and dtypes, or numbers.
      level: of LLVM's optimisation.
      in_place: whether the first result takes over the memory that the rule names.
      same: whether all operands are one array.
      machine: what it is written for; this machine if not given.
      **params: the primitive's parameters.
    """
    avals = tuple(map(aval_of, operands))
    options = level, in_place, same, machine
    return _program(primitive, avals, tuple(sorted(params.items())), *options)


def run(
    primitive: Primitive, *operands: Any, in_place: bool = False, **params: Any
) -> tuple[np.ndarray, ...]:
    """The results of the native code."""
    return program(primitive, *operands, in_place=in_place, **params)(*operands)


def serves(primitive: Primitive, *operands: Any, **params: Any) -> bool:
    """Whether there is native code for the operands."""
    rule = primitive.lower
    if not isinstance(rule, Routine):
        return False
    avals = tuple(map(aval_of, operands))
    return rule.supports is None or bool(rule.supports(*avals, **params))


def same_bits(found: Any, expected: Any, zeros: bool = True) -> None:
    """Two arrays are equal bit by bit, but for the bits of NaN.

    Args:
      found: an array.
      expected: an array.
      zeros: whether the signs of zeros count.
    """
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    if found.dtype.kind == "c":
        same_bits(found.real, expected.real, zeros)
        same_bits(found.imag, expected.imag, zeros)
        return
    np.testing.assert_array_equal(found, expected)
    if found.dtype.kind == "f" and zeros:
        is_number = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found)[is_number], np.signbit(expected)[is_number])
