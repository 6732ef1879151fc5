"""An interpreter with the compiler's mathematics and nothing else of the compiler.

Here: ``evaluate_like_compiled``, which ``config(compiler_math=True)`` puts in the place of compiled
programs. It computes one equation after the other on whole arrays: elementwise equations by a
native loop over scalars made for that one primitive, reductions by NumPy in the order that
``compiler.reductions`` documents, routines by their own native code on arrays that nothing else
shares, movement by NumPy. There is no fusion, no vector lane, no index map, no schedule and no
memory that is used twice; so a compiled program gives the same bits exactly if all of that is
right.
Not here: compiled programs (``compiler.compiled``).

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from functrans.compiler.compiled import Compiled, compiled
from functrans.compiler.prepare import entry_program, prepare
from functrans.compiler.reductions import empty_value, identity_value, is_ordered
from functrans.compiler.support import HostCall, partition
from functrans.compiler.symbols import address, symbol_name
from functrans.core.avals import ShapedArray, Tape
from functrans.core.caching import remembered
from functrans.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from functrans.core.lowering import (
    IndexMap,
    Pointwise,
    Reduction,
    Routine,
    Structured,
    branch_number,
)
from functrans.core.primitive import Primitive
from functrans.core.tapes import TapeValue
from functrans.core.values import Array
from functrans.emitter.builder import Builder, Module
from functrans.emitter.dtypes import literal_in, loop_dtypes
from functrans.emitter.numbers import Number
from functrans.emitter.routine import Routines
from functrans.emitter.types import I32, I64, POINTER, Value
from functrans.machine.engine import compile_object, load_object
from functrans.passes.simplify import exact_key

_MAX_KERNELS = 1024
_LANES, _ROUNDS, _UPPER_ROUNDS, _BLOCK, _SHORT = 32, 8, 4, 8, 32
"""Constants of the documented order; written down again, so that a change does not go unseen."""


def evaluate_like_compiled(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program with the results that it has when it is compiled, bit by bit.

    Args:
      jaxpr: a simplified program.
      args: one array or number per argument.

    Returns:
      One array per result; results that are no arrays (tapes) as they are.
    """
    prepared = prepare(jaxpr)
    env = _given(prepared, args)
    with np.errstate(all="ignore"):
        for part in partition(prepared):
            if isinstance(part, HostCall):
                _evaluate(part.eqn, env, _by_impl)
            else:
                for eqn in part.jaxpr.eqns:
                    _evaluate(eqn, env, _as_compiled)
    return [_value(atom, env) for atom in prepared.outvars]


def _run(jaxpr: Jaxpr, args: Sequence[Any]) -> list[Any]:
    """Run a program that is compiled as a part of another one."""
    prepared = prepare(jaxpr)
    env = _given(prepared, args)
    for eqn in prepared.eqns:
        _evaluate(eqn, env, _as_compiled)
    return [_value(atom, env) for atom in prepared.outvars]


def _given(jaxpr: Jaxpr, args: Sequence[Any]) -> dict[Var, Any]:
    """What is known when a program begins."""
    variables = (*jaxpr.constvars, *jaxpr.invars)
    values = zip(variables, (*jaxpr.consts, *args), strict=True)
    return {var: _own(value, var.aval) for var, value in values}


def _evaluate(
    eqn: Equation, env: dict[Var, Any], rule: Callable[[Equation, list[Any]], Sequence[Any]]
) -> None:
    outs = rule(eqn, [_operand(atom, env) for atom in eqn.inputs])
    for var, value in zip(eqn.outputs, outs, strict=True):
        env[var] = _own(value, var.aval)


def _value(atom: Atom, env: dict[Var, Any]) -> Any:
    return _own(atom.value, atom.aval) if isinstance(atom, Literal) else env[atom]


def _operand(atom: Atom, env: dict[Var, Any]) -> Array | complex:
    """A value; a Python integer as it is, since beside floats it may be of any size."""
    is_integer = isinstance(atom, Literal) and type(atom.value) is int
    return atom.value if is_integer else _value(atom, env)  # type: ignore[union-attr]  # a literal


def _own(value: object, aval: object) -> Any:
    """A value as an array in C order of its aval's dtype; what is no array stays."""
    if type(aval) is not ShapedArray:
        return value
    array = np.array(value, aval.dtype, order="C")
    assert array.shape == aval.shape, (array.shape, aval)
    return array


def _as_compiled(eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    """An equation with a native form."""
    lower = eqn.primitive.lower
    if isinstance(lower, IndexMap):
        return _by_impl(eqn, operands)
    if isinstance(lower, Pointwise):
        try:
            return (_pointwise(eqn, operands),)
        except OverflowError:  # an integer that only NumPy takes: it is not compiled
            return _by_impl(eqn, operands)
    if isinstance(lower, Reduction):
        dtype = eqn.outputs[0].aval.dtype
        (axis,) = eqn.params["axes"]
        return (reduce_in_order(lower.kind, operands[0].astype(dtype), axis),)
    if isinstance(lower, Routine):
        return _routine(eqn, operands)
    assert isinstance(lower, Structured)
    if lower.kind == "entries":
        count = np.int64(max(tape.length for tape in operands))
        return _scan(
            (count, *operands), jaxpr=entry_program(eqn), n_consts=0, n_carry=0, length=None,
            reverse=False, unroll=1,
        )  # fmt: skip
    return _BLOCKS[lower.kind](operands, **eqn.params)


def _by_impl(eqn: Equation, operands: Sequence[Any]) -> Sequence[Any]:
    """An equation that moves elements, or has no native form: what NumPy computes."""
    values = []
    for atom, value in zip(eqn.inputs, operands, strict=True):
        if isinstance(atom, Literal):
            value = atom.value
        elif type(atom.aval) is ShapedArray and not atom.aval.shape:
            value = value.item() if atom.aval.weak else value[()]
        values.append(value)
    outs: Sequence[Any] = eqn.primitive.impl(*values, **eqn.params)
    return outs


# elementwise equations --------------------------------------------------------------------------


def _pointwise(eqn: Equation, operands: Sequence[np.ndarray]) -> np.ndarray:
    """The result of an elementwise equation."""
    out: Any = eqn.outputs[0].aval
    avals: Any = tuple([atom.aval for atom in eqn.inputs])
    dtypes = loop_dtypes(eqn.primitive, avals, out)
    numbers = tuple([atom if isinstance(atom, Literal) else None for atom in eqn.inputs])
    params = tuple(sorted((key, exact_key(value)) for key, value in eqn.params.items()))
    arrays = [
        np.ascontiguousarray(np.broadcast_to(x, out.shape), dtype)
        for x, dtype, number in zip(operands, dtypes, numbers, strict=True)
        if number is None
    ]
    result = np.empty(out.shape, out.dtype)
    kernel = _kernel(eqn.primitive, dtypes, out.dtype, numbers, params, _Params(eqn.params))
    kernel(arrays, result)
    return result


class _Params(dict[str, Any]):
    """Parameters beside a key that stands for them."""

    def __hash__(self) -> int:  # type: ignore[override]  # the key beside it is compared
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Params)


class _Kernel:
    """A native loop over the elements of arrays, for one elementwise primitive."""

    def __init__(
        self,
        primitive: Primitive,
        dtypes: Sequence[np.dtype],
        out_dtype: np.dtype,
        numbers: Sequence[Literal | None],
        params: _Params,
    ) -> None:
        lower = primitive.lower
        assert isinstance(lower, Pointwise)
        count = sum(number is None for number in numbers)
        module = Module()
        b = self._b = Builder(module, "kernel", [*[POINTER] * (count + 1), I64], I32)
        self._errors: list[Exception] = []
        self._symbols: dict[str, int] = {}
        e = Routines(b, self._no_workspace, self._fail, self._symbol)
        *sources, target, size = b.arguments
        with b.loop(b.index(0), size) as i:
            pointers = iter(sources)
            operands = []
            for dtype, number in zip(dtypes, numbers, strict=True):
                if number is not None:
                    value = literal_in(number.value, dtype, primitive)
                    operands.append(e.constant(dtype, value))
                    continue
                offset = b.mul(i, b.index(dtype.itemsize))
                operands.append(e.load(dtype, b.offset(next(pointers), offset)))
            result: Number = lower.write(e, *operands, **params)
            if result.dtype != out_dtype:
                result = e.cast(result, out_dtype)
            e.store(result, b.offset(target, b.mul(i, b.index(out_dtype.itemsize))))
        b.ret(b.const(I32, 0))
        b.finish()
        self._code = load_object(compile_object(str(module), 1), self._symbols)
        function = ctypes.CFUNCTYPE(
            ctypes.c_int32, *[ctypes.c_void_p] * (count + 1), ctypes.c_int64
        )
        self._call = function(self._code.address("kernel"))

    def __call__(self, arrays: Sequence[np.ndarray], result: np.ndarray) -> None:
        """Compute a result; raises what the primitive fails with."""
        places = [array.ctypes.data for array in (*arrays, result)]
        status = self._call(*places, result.size)
        if status:
            error = self._errors[status - 1]
            raise type(error)(*error.args)

    def _fail(self, condition: Value, error: Callable[[str], Exception], message: str) -> None:
        self._errors.append(error(message))
        b = self._b
        with b.when(condition, "wrong"):
            b.ret(b.const(I32, len(self._errors)))
            b.start(b.label("unreachable"))

    def _symbol(self, name: str) -> str:
        symbol = symbol_name(name)
        self._symbols[symbol] = address(name)
        return symbol

    def _no_workspace(self, size_bytes: int) -> Value:
        raise NotImplementedError(f"an elementwise primitive asks for {size_bytes} bytes")


@remembered(_MAX_KERNELS)
def _kernel(
    primitive: Primitive,
    dtypes: tuple[np.dtype, ...],
    out_dtype: np.dtype,
    numbers: tuple[Literal | None, ...],
    key: Hashable,
    params: _Params,
) -> _Kernel:
    return _Kernel(primitive, dtypes, out_dtype, numbers, params)


# reductions -------------------------------------------------------------------------------------


def reduce_in_order(kind: str, x: np.ndarray, axis: int) -> np.ndarray:
    """Reduce along one axis in the order that ``compiler.reductions`` documents.

    Args:
      kind: that of ``core.lowering.Reduction``.
      x: elements, of the dtype of the result.
      axis: which axis.
    """
    n = x.shape[axis]
    rows = np.moveaxis(x, axis, 0)
    if not n:
        return np.full(rows.shape[1:], empty_value(kind, x.dtype), x.dtype)
    long = [position for position, extent in enumerate(x.shape) if extent >= _SHORT]
    if long and long[-1] == axis:
        return _in_lanes(kind, rows)
    if is_ordered(kind, x.dtype) and n > _BLOCK:
        blocks = [_total(kind, rows[start : start + _BLOCK]) for start in range(0, n, _BLOCK)]
        return _total(kind, blocks)
    return _total(kind, rows)


def _total(kind: str, rows: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """Rows added one after the other, beginning with what changes nothing."""
    total = np.full_like(rows[0], identity_value(kind, rows[0].dtype))
    for row in rows:
        total = _combined(kind, total, row)
    return total


def _in_lanes(kind: str, rows: np.ndarray) -> np.ndarray:
    n, rest = len(rows), rows.shape[1:]
    full = n // _LANES
    lanes = rows[: full * _LANES].reshape(full, _LANES, *rest)
    count = -(-n // _LANES) if is_ordered(kind, rows.dtype) else 0
    total = _rounds(kind, lanes, rows[full * _LANES :], count)
    width = _LANES
    while width > 1:
        width //= 2
        total = _combined(kind, total[:width], total[width:])
    result: np.ndarray = total[0]
    return result


def _rounds(
    kind: str, items: np.ndarray, last: np.ndarray, count: int, length: int = _ROUNDS
) -> np.ndarray:
    """Sums per lane: of ``items``, all lanes at once, then of the first few lanes in ``last``.

    If there are more items than ``length`` (``count``, with those that are not complete), so many
    of them at a time are first made one; what is left over is combined last.
    """
    n = len(items)
    start = 0
    total: np.ndarray | None = None
    if count > length:
        start = n // length * length
        blocks = items[:start].reshape(-1, length, *items.shape[1:])
        sums = _total(kind, np.moveaxis(blocks, 1, 0))
        total = _rounds(kind, sums, last[:0], -(-count // length), _UPPER_ROUNDS)
        if start == n and not len(last):
            return total
    part = np.full(items.shape[1:], identity_value(kind, items.dtype), items.dtype)
    for item in items[start:]:
        part = _combined(kind, part, item)
    if len(last):
        part[: len(last)] = _combined(kind, part[: len(last)], last)
    return part if total is None else _combined(kind, total, part)


def _combined(kind: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two arrays combined element by element, in their own dtype."""
    if kind == "prod" and x.dtype.kind == "c":
        # NumPy's own loops may fuse a product with a sum
        result = np.empty(x.shape, x.dtype)
        result.real = x.real * y.real - x.imag * y.imag
        result.imag = x.real * y.imag + x.imag * y.real
        return result
    result = _UFUNCS[kind](x, y)
    if kind in ("max", "min") and (x.dtype.kind == "f" or x.dtype.name == "bfloat16"):
        has_sign = np.signbit(x) == (kind == "min")
        result = np.where(x == y, np.where(has_sign, x, y), result)
    return result


_UFUNCS: dict[str, Callable[..., Any]] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum, "any": np.logical_or,
    "all": np.logical_and, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


# routines ---------------------------------------------------------------------------------------


def _routine(eqn: Equation, operands: Sequence[np.ndarray]) -> Sequence[Any]:
    """An equation with code of its own: a program of this equation alone, on arrays of its own."""
    key = (
        tuple([atom if isinstance(atom, Literal) else atom.aval.strong() for atom in eqn.inputs]),
        tuple(sorted((name, exact_key(value)) for name, value in eqn.params.items())),
        tuple([var.aval for var in eqn.outputs]),
    )
    program = _program(eqn.primitive, key, _Alone(eqn))
    arrays = [
        array for array, atom in zip(operands, eqn.inputs, strict=True) if isinstance(atom, Var)
    ]
    return program(arrays)


class _Alone:
    """An equation beside a key that stands for it."""

    def __init__(self, eqn: Equation) -> None:
        self.eqn = eqn

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Alone)

    @property
    def program(self) -> Jaxpr:
        """The program of this equation alone; an operand that occurs twice is two arguments."""
        inputs = tuple(
            [
                atom if isinstance(atom, Literal) else Var(atom.aval.strong())
                for atom in self.eqn.inputs
            ]
        )
        outputs = tuple([Var(var.aval.strong()) for var in self.eqn.outputs])
        alone = Equation(
            self.eqn.primitive, inputs, self.eqn.params, outputs, self.eqn.source, self.eqn.scope
        )
        arguments = tuple([atom for atom in inputs if isinstance(atom, Var)])
        return Jaxpr((), (), arguments, (alone,), outputs)


@remembered(_MAX_KERNELS)
def _program(primitive: Primitive, key: Hashable, alone: _Alone) -> Compiled:
    return compiled(alone.program)


# control flow -----------------------------------------------------------------------------------


def _call(operands: Sequence[Any], *, jaxpr: Jaxpr, **params: object) -> Sequence[Any]:
    return _run(jaxpr, operands)


def _scan(
    operands: Sequence[Any],
    *,
    jaxpr: Jaxpr,
    n_consts: int,
    n_carry: int,
    length: int | None,
    reverse: bool,
    unroll: int,
) -> Sequence[Any]:
    is_counted = length is not None
    if length is None:
        length, operands = int(operands[0]), operands[1:]
    first_x = n_consts + n_carry
    consts, carry, xs = operands[:n_consts], operands[n_consts:first_x], operands[first_x:]
    ys: list[Any] = [
        np.empty((length, *atom.aval.shape), atom.aval.dtype)
        if is_counted and type(atom.aval) is not Tape
        else TapeValue(Tape(atom.aval.strong()), length)
        for atom in jaxpr.outvars[n_carry:]
    ]
    for i in range(length - 1, -1, -1) if reverse else range(length):
        entries = [x.read(i) if type(x) is TapeValue else x[i] for x in xs]
        outs = _run(jaxpr, (*consts, *carry, *entries))
        carry = outs[:n_carry]
        for y, out in zip(ys, outs[n_carry:], strict=True):
            if type(y) is TapeValue:
                y.write(i, out)
            else:
                y[i] = out
    return (*carry, *ys)


def _while(
    operands: Sequence[Any],
    *,
    cond_jaxpr: Jaxpr,
    body_jaxpr: Jaxpr,
    n_cond_consts: int,
    n_body_consts: int,
) -> Sequence[Any]:
    first = n_cond_consts + n_body_consts
    cond_consts, body_consts = operands[:n_cond_consts], operands[n_cond_consts:first]
    carry = operands[first:]
    n = len(carry)
    tapes = [TapeValue(Tape(atom.aval.strong())) for atom in body_jaxpr.outvars[n:]]
    while _run(cond_jaxpr, (*cond_consts, *carry))[0]:
        outs = _run(body_jaxpr, (*body_consts, *carry))
        carry = outs[:n]
        for tape, out in zip(tapes, outs[n:], strict=True):
            tape.append(out)
    return (*carry, *tapes)


def _cond(operands: Sequence[Any], *, branches: Sequence[Jaxpr]) -> Sequence[Any]:
    return _run(branches[branch_number(operands[0], len(branches))], operands[1:])


def _cond_lanes(
    operands: Sequence[Any], *, branches: Sequence[Jaxpr], batched: Sequence[bool]
) -> Sequence[Any]:
    choices, *others = operands
    outs = [np.empty((len(choices), *a.shape), a.dtype) for a in branches[0].out_avals]
    for lane, choice in enumerate(choices):
        own = [x[lane] if flag else x for x, flag in zip(others, batched, strict=True)]
        branch = branches[branch_number(choice, len(branches))]
        for out, value in zip(outs, _run(branch, own), strict=True):
            out[lane] = value
    return outs


_BLOCKS: dict[str, Callable[..., Sequence[Any]]] = {
    "call": _call, "scan": _scan, "while": _while, "cond": _cond, "cond_lanes": _cond_lanes,
}  # fmt: skip
