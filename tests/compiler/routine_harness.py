"""Run the native code of one primitive alone: a module with one function of data pointers.

Here: ``compiled`` and ``run``, by which the tests of ``Routine`` rules compare a rule with the
``impl`` of its primitive. Not here: the compiler, which plans whole programs.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from functrans.compiler.engine import compile_object, load_object
from functrans.compiler.symbols import address, symbol_name
from functrans.emitter.builder import Builder, Module
from functrans.emitter.routine import Array, Routines
from functrans.emitter.types import POINTER, Value
from functrans.ir.avals import ShapedArray
from functrans.ir.lowering import Routine
from functrans.ir.primitive import Primitive

_ALIGN = 64


class Compiled:
    """The native code of one equation.

    Attributes:
      text: LLVM's.
    """

    def __init__(
        self,
        primitive: Primitive,
        avals: Any,
        params: dict[str, Any],
        level: int = 2,
        is_in_place: bool = True,
    ) -> None:
        rule = primitive.lower
        assert isinstance(rule, Routine), primitive.name
        self.outs = primitive.abstract_eval(*avals, **params)
        self.in_place = rule.in_place if is_in_place else None
        self._errors: list[tuple[type[Exception], str]] = []
        self._symbols: dict[str, int] = {}
        self._scratch = 0
        module = Module()
        pointers = [POINTER] * (len(avals) + len(self.outs) + 2)
        self._b = b = Builder(module, "routine", pointers)
        self._status, self._space = b.arguments[-2:]
        arrays = [
            Array(pointer, tuple(aval.shape), aval.dtype)
            for pointer, aval in zip(b.arguments, (*avals, *self.outs), strict=False)
        ]
        operands, results = arrays[: len(avals)], arrays[len(avals) :]
        if self.in_place is not None:
            pointer = operands[self.in_place].pointer
            results[0] = Array(pointer, results[0].shape, results[0].dtype)
        e = Routines(b, self._workspace, self._fail, self._symbol)
        rule.write(e, operands, results, **params)
        b.ret()
        b.finish()
        self.text = str(module)
        self._code = load_object(compile_object(self.text, level), self._symbols)
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(pointers))
        self._call = function(self._code.address("routine"))

    def _workspace(self, size_bytes: int) -> Value:
        at = self._scratch
        self._scratch += -(-size_bytes // _ALIGN) * _ALIGN
        return self._b.offset(self._space, self._b.index(at))

    def _fail(self, condition: Value, error: type[Exception], message: str) -> None:
        self._errors.append((error, message))
        b = self._b
        with b.when(condition):
            code = b.const(b.index(0).type, len(self._errors))
            b.store(code, self._status)
            b.ret()
            b.start(b.label("dead"))

    def _symbol(self, name: str) -> str:
        self._symbols[symbol_name(name)] = address(name)
        return symbol_name(name)

    def __call__(self, *operands: Any) -> tuple[np.ndarray, ...]:
        """Run it.

        Raises:
          Exception: what the rule fails with.
        """
        arrays = [np.array(x, order="C") for x in operands]
        outs = []
        for aval in self.outs:
            out = np.empty(aval.shape, aval.dtype)
            out.view(np.uint8).fill(0xA5) if out.ndim else out[...].fill(0)
            outs.append(out)
        if self.in_place is not None:
            outs[0] = arrays[self.in_place]
        status = np.zeros(1, np.int64)
        space = np.full(self._scratch + _ALIGN, 0xA5, np.uint8)
        start = -space.ctypes.data % _ALIGN
        places = [x.ctypes.data for x in (*arrays, *outs, status)]
        self._call(*places, space.ctypes.data + start)
        if status[0]:
            error, message = self._errors[status[0] - 1]
            raise error(message)
        return tuple(outs)


def aval_of(x: Any) -> ShapedArray:
    """Shape and dtype of an operand."""
    array = np.asarray(x)
    return ShapedArray(array.shape, array.dtype)


_cache: dict[Any, Compiled] = {}


def compiled(
    primitive: Primitive, *operands: Any, is_in_place: bool = True, **params: Any
) -> Compiled:
    """The native code for operands of such shapes and dtypes.

    Args:
      primitive: whose rule is a ``Routine``.
      *operands: arrays or numbers.
      is_in_place: let the first result take the memory of an operand, if the rule can.
      **params: of the primitive.
    """
    avals = tuple(aval_of(x) for x in operands)
    key = (primitive.name, avals, is_in_place, tuple(sorted(params.items())))
    if key not in _cache:
        if len(_cache) >= 256:
            _cache.clear()
        _cache[key] = Compiled(primitive, avals, params, is_in_place=is_in_place)
    return _cache[key]


def run(primitive: Primitive, *operands: Any, **params: Any) -> tuple[np.ndarray, ...]:
    """The results of the native code; arguments as for ``compiled``."""
    return compiled(primitive, *operands, **params)(*operands)


def serves(primitive: Primitive, *operands: Any, **params: Any) -> bool:
    """Whether there is native code for the operands."""
    rule = primitive.lower
    if not isinstance(rule, Routine):
        return False
    avals = tuple(aval_of(x) for x in operands)
    return rule.supports is None or bool(rule.supports(avals, **params))


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
