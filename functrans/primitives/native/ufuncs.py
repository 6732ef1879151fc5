"""Inner loops of NumPy's and SciPy's ufuncs in compiled programs.

Here: ``call_loop``, which calls such a loop; ``elementwise``, which calls one for broadcast
operands; and the code of ``fft_c2c``, ``rfft`` and ``irfft`` made of them. Not here: the records
(``primitives.fft``, ``primitives.special``), where loops are found (``compiler.symbols``).

A ufunc has one C function for each of its types, which is given the addresses of operands and
results, extents, and distances in bytes. It neither needs the interpreter's lock nor returns to
Python; plans for lengths are kept by NumPy. Results are the library's to the bit, since the same
code computes them.

Layer: ``primitives.native``. Reference: NumPy's manual, C-API, Universal function object API.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.primitives.native.routine_loops import broadcast_strides, collapsed, weighted

if TYPE_CHECKING:
    from functrans.core.avals import ShapedArray
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

_FFT = "fft._pocketfft_umath"
_WORTH_THREADS = 2_000_000
"""From so many additions on, lines are transformed in pieces, on threads."""
_PIECES = 32


@cache
def find_loop(name: str) -> tuple[np.ufunc, int] | None:
    """A ufunc of NumPy or SciPy and the number of its loop for some types; ``None`` if none.

    Args:
      name: ``"<path in numpy>.<types>"``, as ``"fft._pocketfft_umath.fft.Dd->D"``, or
        ``"special.<name>.<types>"`` for SciPy's special functions.
    """
    *path, types = name.split(".")
    found: Any = np
    if path[0] == "special":
        import scipy.special

        found = scipy
    for part in path:
        found = getattr(found, part, None)
    if not isinstance(found, np.ufunc) or types not in found.types:
        return None
    return found, found.types.index(types)


@cache
def special_loop(function: str, dtypes: tuple[np.dtype, ...]) -> str:
    """The name of the loop that a special function of SciPy runs for some dtypes.

    Returns:
      What ``find_loop`` takes; empty if the function is none of SciPy's ufuncs, or refuses them.
    """
    from scipy import special

    # a function of Python around one has it under another name
    for name in (function, f"_ufuncs._{function}", f"_ufuncs._riemann_{function}"):
        ufunc: Any = special
        for part in name.split("."):
            ufunc = getattr(ufunc, part, None)
        if isinstance(ufunc, np.ufunc) and not ufunc.signature and ufunc.nin == len(dtypes):
            break
    else:
        return ""
    try:
        resolved = ufunc.resolve_dtypes((*dtypes, *(None,) * ufunc.nout))
    except TypeError:
        return ""
    for types in ufunc.types:
        if tuple(map(np.dtype, types.replace("->", ""))) == resolved:
            return f"special.{name}.{types}"
    return ""


def call_loop(
    e: Routines,
    loop: str,
    operands: Sequence[Value],
    extents: Sequence[Value | int],
    steps: Sequence[int],
) -> None:
    """Call the inner loop of a ufunc.

    Args:
      e: the emitter.
      loop: its name; see ``find_loop``.
      operands: addresses of operands and results.
      extents: how many times, then the extents of the core axes.
      steps: bytes from one time to the next, per operand, then those along core axes.
    """
    b = e.b

    def block(values: Sequence[Value]) -> Value:
        place = b.alloca_bytes(8 * len(values))
        for i, value in enumerate(values):
            b.store(value, b.offset(place, b.index(8 * i)), 8)
        return place

    numbers = [x if not isinstance(x, int) else b.index(x) for x in extents]
    args = [block(operands), block(numbers), block([b.index(step) for step in steps])]
    e.call_symbol(f"ufunc.{loop}", [*args, e.symbol_place(f"ufuncdata.{loop}")])


def elementwise(
    e: Routines, loop: str, operands: Sequence[Array], out: Array, output: int = 0
) -> None:
    """Call the loop of a ufunc for all elements of broadcast operands.

    Args:
      e: the emitter.
      loop: its name; see ``find_loop``.
      operands: arrays, converted to the dtypes of the loop.
      out: result.
      output: which one it is of the loop's, which are all computed.
    """
    if not out.size:
        return
    before, _, after = loop.rpartition(".")[2].partition("->")
    dtypes = [np.dtype(char) for char in (*before, *after)]
    given = [
        _converted(e, x, dtype) for x, dtype in zip(operands, dtypes[: len(before)], strict=True)
    ]
    target = out if out.dtype == dtypes[len(before) + output] else e.workspace(
        out.shape, dtypes[len(before) + output]
    )  # fmt: skip
    arrays = [*given, target]
    strides = [broadcast_strides(array.shape, out.shape) for array in arrays]
    extents, steps = collapsed(out.shape, strides)
    *outer, count = extents or (1,)
    *rest, own = [[step[i] for step in steps] for i in range(len(extents))] or [[0] * len(arrays)]
    unused = e.b.alloca_bytes(16)
    with e.each(outer) as index:
        places = [
            e.address(array, weighted(e, index, [row[k] for row in rest]))
            for k, array in enumerate(arrays)
        ]
        sizes = [stride * array.dtype.itemsize for stride, array in zip(own, arrays, strict=True)]
        results = [(unused, 0)] * len(after)
        results[output] = (places[-1], sizes[-1])
        call_loop(
            e,
            loop,
            [*places[:-1], *[place for place, _ in results]],
            [count],
            [*sizes[:-1], *[size for _, size in results]],
        )
    _converted(e, target, out.dtype, out)


# Fourier transforms ------------------------------------------------------------------------------


_TYPES = {"rfft_n_even": "dd->D", "rfft_n_odd": "dd->D", "irfft": "Dd->d"}
_LOOPS = {
    ufunc: f"{_FFT}.{ufunc}.{_TYPES.get(ufunc, 'Dd->D')}" for ufunc in ("fft", "ifft", *_TYPES)
}


def has_transforms(x: ShapedArray, **_: object) -> bool:
    """The ``supports`` of Fourier transforms: single and double precision, and integers.

    All are computed in double precision, as NumPy does where nothing is scaled.
    """
    is_known = x.dtype.char in "fdFD" or x.dtype.kind in "iub"
    return is_known and all(map(find_loop, _LOOPS.values()))


def _along(
    e: Routines, ufunc: str, source: Array, target: Array, axis: int, length: int, written: int = 0
) -> None:
    """Transform all lines along an axis; the two arrays may be one if they have one shape.

    Args:
      e: the emitter.
      ufunc: NumPy's name of the transform.
      source: operand.
      target: result.
      axis: the axis.
      length: of the transform.
      written: how many elements of each line of the result are written, if not all.
    """
    before, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    n, m = source.shape[axis], target.shape[axis]
    size, out_size = source.dtype.itemsize, target.dtype.itemsize
    factor = e.b.module.table((1.0,), e.constant(np.dtype(np.float64), 0).value.type)
    loop = _LOOPS[ufunc]
    lines, rows = (before, 1) if inner == 1 else (inner, before)
    steps = (size * n, 0, out_size * m) if inner == 1 else (size, 0, out_size)
    work = 5 * before * inner * length * max(1, length.bit_length())
    wanted = 1 if work < _WORTH_THREADS else min(_PIECES, lines * rows)
    per_row = min(lines, -(-wanted // rows))
    length_of_piece = -(-lines // per_row)

    def piece(e: Routines, arrays: list[Array], k: Value) -> None:
        b = e.b
        row, part = b.udiv(k, b.index(per_row)), b.urem(k, b.index(per_row))
        first = b.mul(part, b.index(length_of_piece))
        rest = b.sub(b.index(lines), first)
        count = b.select(
            b.icmp("slt", rest, b.index(length_of_piece)), rest, b.index(length_of_piece)
        )
        count = b.select(b.icmp("slt", count, b.index(0)), b.index(0), count)
        places = [
            b.offset(
                array.pointer,
                b.add(
                    b.mul(row, b.index(array.dtype.itemsize * extent * inner)),
                    b.mul(first, b.index(step)),
                ),
            )
            for array, extent, step in zip(arrays, (n, m), (steps[0], steps[2]), strict=True)
        ]
        core = (size * inner, out_size * inner)
        call_loop(
            e, loop, (places[0], factor, places[1]), (count, n, written or m), (*steps, *core)
        )

    if wanted > 1:
        e.in_chunks(rows * per_row, [source, target], piece)
        return
    with e.count(rows * per_row) as k:
        piece(e, [source, target], k)


def _converted(e: Routines, source: Array, dtype: Any, target: Array | None = None) -> Array:
    """An array in another dtype: itself if it is of that one already."""
    if source.dtype == dtype:
        return source
    target = e.workspace(source.shape, dtype) if target is None else target
    with e.count(source.size) as i:
        e.write(target, i, e.cast(e.read(source, i), target.dtype))
    return target


def _result(e: Routines, out: Array) -> Array:
    """Memory for a result in double precision."""
    dtype = np.dtype("c16" if out.dtype.kind == "c" else "f8")
    return out if out.dtype == dtype else e.workspace(out.shape, dtype)


def _transform_real(e: Routines, operand: Array, target: Array, axis: int, inverse: bool) -> None:
    """The half of the spectrum that a real line has, and its mirror image."""
    source = _converted(e, operand, np.dtype("f8"))
    n = source.shape[axis]
    half = "rfft_n_odd" if n % 2 else "rfft_n_even"
    _along(e, half, source, target, axis, n, written=n // 2 + 1)
    before, inner = math.prod(source.shape[:axis]), math.prod(source.shape[axis + 1 :])
    lines = target.reshape(before, n, inner)
    with e.each((before, n // 2 + 1, inner)) as (i, k, j):
        number = e.read(lines, (i, k, j))
        mirrored = e.conjugate(number)
        if inverse:
            e.write(lines, (i, k, j), mirrored)
            number, mirrored = mirrored, number
        is_own = e.b.or_(
            e.b.icmp("eq", k, e.b.index(0)), e.b.icmp("eq", e.b.add(k, k), e.b.index(n))
        )
        with e.b.when(e.b.not_(is_own)):
            e.write(lines, (i, e.b.sub(e.b.index(n), k), j), mirrored)


def fft_c2c_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    axes: Sequence[int],
    inverse: bool,
) -> None:
    """One axis after the other, the last one first, as NumPy does; from the second on in place."""
    (operand,), (out,) = operands, results
    if not out.size:
        return
    target = _result(e, out)
    if operand.dtype.kind != "c" and len(axes) == 1:
        _transform_real(e, operand, target, axes[0], inverse)
        _converted(e, target, out.dtype, out)
        return
    source = _converted(e, operand, np.dtype("c16"))
    for axis in reversed(axes):
        _along(e, "ifft" if inverse else "fft", source, target, axis, out.shape[axis])
        source = target
    _converted(e, target, out.dtype, out)


def rfft_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axes: Sequence[int]
) -> None:
    """The real axis first, then the others in place."""
    (operand,), (out,) = operands, results
    if not out.size:
        return
    source, target = _converted(e, operand, np.dtype("f8")), _result(e, out)
    n = source.shape[axes[-1]]
    _along(e, "rfft_n_odd" if n % 2 else "rfft_n_even", source, target, axes[-1], n)
    for axis in reversed(axes[:-1]):
        _along(e, "fft", target, target, axis, out.shape[axis])
    _converted(e, target, out.dtype, out)


def irfft_lower(
    e: Routines, operands: Sequence[Array], results: Sequence[Array], *, axes: Sequence[int], n: int
) -> None:
    """The complex axes in memory of their own, then the real one."""
    (operand,), (out,) = operands, results
    if not out.size:
        return
    source, target = _converted(e, operand, np.dtype("c16")), _result(e, out)
    if len(axes) > 1:
        spectrum = e.workspace(source.shape, source.dtype)
        for axis in reversed(axes[:-1]):
            _along(e, "ifft", source, spectrum, axis, source.shape[axis])
            source = spectrum
    _along(e, "irfft", source, target, axes[-1], n)
    _converted(e, target, out.dtype, out)
