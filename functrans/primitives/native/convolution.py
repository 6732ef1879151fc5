"""Native code of ``conv_general``.

Here: the ``lower`` rule of ``convolution``. Not here: the record, its NumPy code, the notation.

Three ways, chosen by shapes:

``positions``: vectors run along the last axis of the result. A tile of output channels shares each
    vector of the left operand.
``window``: vectors run along the last axis of the kernel, for kernels that are longer than the
    result (the kernel's cotangent). A tile of positions shares each vector of the kernel.
``product``: windows of one element are left to the library's matrix product, if it is large.

Copying windows into a matrix for the library did not pay: at 8 x 64 x 32 x 32 with 64 kernels of
3 x 3 in single precision it took 7.9 ms, vectors of positions 6.2 ms.

The left operand is first spread and padded, one group of one element of the batch at a time. With
``m`` the stride (the dilation of the kernel for ``window``), the element at ``q`` of the last axis
is put at ``q // m`` of row ``q mod m``, so that the vectors are contiguous.

Kernels that are not finite must not meet the zeros of the padding, which would make NaN: they take
a plain loop with bounds.

Numbers of 16 bits are summed in single precision.

Layer: ``primitives.native``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from functrans.primitives.native.routine_loops import (
    Counter,
    LoopVariable,
    contiguous,
    copy_run,
    load_run,
    most_lanes,
    nest,
    plus,
    store_run,
    vectors,
    weighted,
    zeros,
)
from functrans.records import dataclass, replace

if TYPE_CHECKING:
    from functrans.emitter.builder import Builder
    from functrans.emitter.numbers import Number
    from functrans.emitter.routine import Array, Routines
    from functrans.emitter.types import Value

Shape = tuple[int, ...]

_TILE = 4
"""Output channels, or positions, that are summed side by side."""
_PAIR = 2
"""Output channels that share each vector of the left operand where vectors are of the kernel."""
_PRODUCT_WORK = 1 << 18
"""From so many multiplications on the library's product pays, from so many channels on either."""
_PRODUCT_CHANNELS = 16


@dataclass(frozen=True, slots=True)
class _Geometry:
    """Extents of one convolution between groups.

    Attributes:
      batch, groups, outs, ins: extents; ``outs`` and ``ins`` are those of a group.
      space, window, positions: spatial extents of operands and result.
      strides, lows, spread, dilation: per spatial axis.
      padded: spatial extents of the left operand after it was spread and padded.
      groups_in_batch: whether groups are of the batch, not of the channels.
    """

    batch: int
    groups: int
    outs: int
    ins: int
    space: Shape
    window: Shape
    positions: Shape
    strides: Shape
    lows: Shape
    spread: Shape
    dilation: Shape
    padded: Shape
    groups_in_batch: bool

    @property
    def terms(self) -> int:
        """Products in each sum."""
        return self.ins * math.prod(self.window)

    def lhs_plane(self, e: Routines, n: Value, group: Value) -> Value:
        """Number of the first element of a group of the left operand."""
        plane = self.ins * math.prod(self.space)
        if self.groups_in_batch:
            return weighted(e, (group, n), (self.batch * plane, plane))
        return weighted(e, (n, group), (self.groups * plane, plane))


@dataclass(frozen=True, slots=True)
class _Plane:
    """A group of the left operand in memory.

    Attributes:
      array: where it is.
      start: number of its first element.
      modulus: into how many rows the last axis is split.
      row: extent of such a row.
      strides: elements per step along channels and along the spatial axes but the last.
    """

    array: Array
    start: Value
    modulus: int
    row: int
    strides: tuple[int, ...]

    def last(self, e: Routines, steps: Value, factor: int) -> Value:
        """Where the element at ``steps * factor`` of the last axis is."""
        b = e.b
        place = steps if factor == 1 else b.mul(steps, b.index(factor))
        if self.modulus == 1:
            return place
        modulus = b.index(self.modulus)
        return plus(e, b.mul(b.urem(place, modulus), b.index(self.row)), b.udiv(place, modulus))


def conv_general_lower(
    e: Routines,
    operands: Sequence[Array],
    results: Sequence[Array],
    *,
    strides: Shape,
    padding: tuple[tuple[int, int], ...],
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    feature_group_count: int,
    batch_group_count: int,
) -> None:
    """Group by group; see the module docstring."""
    (lhs, rhs), (out,) = operands, results
    if not (out.size and lhs.size and rhs.size):
        zeros(e, out)
        return
    space, window, positions = (array.shape[2:] or (1,) for array in (lhs, rhs, out))
    ones = (1,) * len(space)
    groups = feature_group_count * batch_group_count
    pads = padding or ((0, 0),)
    spread = lhs_dilation or ones
    g = _Geometry(
        out.shape[0],
        groups,
        out.shape[1] // groups,
        rhs.shape[1],
        space,
        window,
        positions,
        strides or ones,
        tuple([low for low, _ in pads]),
        spread,
        rhs_dilation or ones,
        tuple([(n - 1) * d + 1 + sum(p) for n, d, p in zip(space, spread, pads, strict=True)]),
        batch_group_count > 1,
    )
    kind = e.constant(out.dtype, 0).kind
    narrow = kind == "f" and out.dtype.itemsize == 2
    dtype = np.dtype(np.float32) if narrow else out.dtype
    kernel = _converted(e, rhs, dtype)
    if _is_product(g, kind, narrow):
        modulus, write = 1, _by_product
    elif g.window[-1] > g.positions[-1]:
        modulus, write = g.dilation[-1], _by_window
    else:
        modulus, write = g.strides[-1], _by_positions

    def fast() -> tuple[Value, ...]:
        buffer = _padded_buffer(e, g, lhs, dtype, modulus)
        with e.count(g.batch) as n, e.count(g.groups) as group:
            plane = _padded_plane(e, g, lhs, buffer, dtype, modulus, n, group)
            first_kernel = e.b.mul(group, e.b.index(g.outs * g.terms))
            size = math.prod(g.positions)
            first_out = weighted(e, (n, group), (g.groups * g.outs * size, g.outs * size))
            write(e, g, plane, kernel, first_kernel, out, first_out)
        return ()

    def bounded() -> tuple[Value, ...]:
        _by_elements(e, g, lhs, kernel, out)
        return ()

    if kind in "fc" and meets_zeros(space, pads, spread):
        e.b.choose(_is_finite(e, kernel), fast, bounded)
    else:
        fast()


def meets_zeros(space: Shape, padding: tuple[tuple[int, int], ...], spread: Shape) -> bool:
    """Whether windows may meet zeros around or between the elements of the left operand."""
    return any(max(pair) > 0 for pair in padding) or any(
        n > 1 and d > 1 for n, d in zip(space, spread, strict=True)
    )


def _is_product(g: _Geometry, kind: str, narrow: bool) -> bool:
    """Whether a convolution is a large matrix product."""
    return (
        kind in "fc"
        and not narrow
        and g.padded == g.positions  # windows of one element, at every place
        and g.ins * g.outs * math.prod(g.positions) >= _PRODUCT_WORK
        and min(g.outs, g.ins) >= _PRODUCT_CHANNELS
    )


# operands ---------------------------------------------------------------------------------------


def _converted(e: Routines, x: Array, dtype: np.dtype) -> Array:
    """An array in another dtype."""
    if x.dtype == dtype:
        return x
    out = e.workspace(x.shape, dtype)
    _convert_run(e, x, e.b.index(0), out, e.b.index(0), x.size)
    return out


def _convert_run(
    e: Routines, source: Array, at: Value, target: Array, to: Value, width: int
) -> None:
    """Copy elements that stand one after the other, into another dtype."""
    if source.dtype == target.dtype:
        copy_run(e, source, at, target, to, width)
        return

    def part(first: Value, lanes: int) -> None:
        number = e.cast(load_run(e, source, plus(e, at, first), lanes), target.dtype)
        store_run(e, target, plus(e, to, first), number)

    vectors(e, width, target.dtype, part)


def _padded_buffer(
    e: Routines, g: _Geometry, lhs: Array, dtype: np.dtype, modulus: int
) -> Array | None:
    """Memory for a padded group, zero where no element goes; ``None`` if none is needed."""
    if g.padded == g.space and modulus == 1 and lhs.dtype == dtype and not any(g.lows):
        return None
    row = -(-g.padded[-1] // modulus)
    buffer = e.workspace((g.ins, *g.padded[:-1], modulus * row), dtype)
    zeros(e, buffer)
    return buffer


def _padded_plane(
    e: Routines,
    g: _Geometry,
    lhs: Array,
    buffer: Array | None,
    dtype: np.dtype,
    modulus: int,
    n: Value,
    group: Value,
) -> _Plane:
    """A group with its padding."""
    first = g.lhs_plane(e, n, group)
    if buffer is None:
        return _Plane(lhs, first, 1, g.space[-1], contiguous((g.ins, *g.space))[:-1])
    row = buffer.shape[-1] // modulus
    strides = contiguous(buffer.shape)[:-1]
    plane = _Plane(buffer, e.b.index(0), modulus, row, strides)
    # Element k goes to low + k * d; those outside the padded extent are cropped.
    begins, counts = [], []
    for extent, size, low, d in zip(g.space, g.padded, g.lows, g.spread, strict=True):
        begin = max(0, -(low // d))
        end = min(extent, (size - 1 - low) // d + 1)
        begins.append(begin)
        counts.append(max(end - begin, 0))
    source_strides = contiguous((g.ins, *g.space))
    base = sum(map(int.__mul__, begins, source_strides[1:]))
    targets = [low + k * d for low, k, d in zip(g.lows, begins, g.spread, strict=True)]
    head = sum(t * s for t, s in zip(targets[:-1], strides[1:], strict=True))
    steps = (strides[0], *(d * s for d, s in zip(g.spread[:-1], strides[1:], strict=True)))
    shape = (g.ins, *counts[:-1])
    with nest(e, shape, [source_strides[:-1], steps]) as (source, target):
        source = plus(e, plus(e, first, source), base)
        target = plus(e, target, head)
        if modulus == 1 and g.spread[-1] == 1:
            _convert_run(e, lhs, source, buffer, plus(e, target, targets[-1]), counts[-1])
        else:
            with e.count(counts[-1]) as k:
                place = plus(e, weighted(e, (k,), (g.spread[-1],)), targets[-1])
                number = e.cast(e.read(lhs, plus(e, source, k)), dtype)
                e.write(buffer, plus(e, target, plane.last(e, place, 1)), number)
    return plane


def _is_finite(e: Routines, x: Array) -> Value:
    """Whether all numbers are finite: only then their products with 0 do not add up to NaN."""
    if x.dtype.kind == "c":
        x = replace(x, shape=(2 * x.size,), dtype=np.dtype(f"f{x.dtype.itemsize // 2}"))
    lanes = most_lanes(x.dtype)
    whole = x.size // lanes

    def write(b: Builder) -> None:
        pointer, middle, stop = b.arguments
        own, inner = replace(x, pointer=pointer), e.on(b)
        head = _has_nan(inner, own, b.index(0), middle, lanes)
        b.ret(b.not_(b.or_(head, _has_nan(inner, own, middle, stop, 1))))

    sizes = e.b.index(whole * lanes), e.b.index(x.size)
    return e.b.helper(f"is_finite_{x.dtype.name}", [x.pointer, *sizes], e.b.true().type, write)


def _has_nan(e: Routines, x: Array, start: Value, stop: Value, lanes: int) -> Value:
    """Whether numbers from one place to another times 0 add up to NaN."""
    total = LoopVariable(e, e.constant(x.dtype, 0, lanes))
    with e.b.loop(start, stop, lanes) as k:
        number = load_run(e, x, k, lanes)
        _summed(e, total, number, e.like(number, 0))
    return e.b.any_lane(e.not_equal(total.get(), total.get()).value)


def _tiles(e: Routines, count: int, size: int, body: Callable[[Value, int], None]) -> None:
    """Cover ``range(count)`` by tiles, the last one smaller."""
    whole, left = divmod(count, size)
    if whole:
        with e.count(whole) as i:
            body(e.b.mul(i, e.b.index(size)), size)
    if left:
        body(e.b.index(whole * size), left)


def _summed(e: Routines, total: LoopVariable, x: Number, w: Number) -> None:
    """Add a product."""
    total.set(e.add(total.get(), e.multiply(x, w)))


def _outer_place(
    e: Routines, g: _Geometry, plane: _Plane, row: Sequence[Value], tap: Sequence[Value]
) -> Value:
    """Where a window begins along all spatial axes but the last."""
    return plus(
        e,
        weighted(e, row, [s * p for s, p in zip(g.strides, plane.strides[1:], strict=False)]),
        weighted(e, tap, [d * p for d, p in zip(g.dilation, plane.strides[1:], strict=False)]),
    )


# along positions --------------------------------------------------------------------------------


def _by_positions(
    e: Routines,
    g: _Geometry,
    plane: _Plane,
    kernel: Array,
    first_kernel: Value,
    out: Array,
    first_out: Value,
) -> None:
    """Vectors of positions, tiles of output channels."""
    size = math.prod(g.positions)
    dtype = kernel.dtype
    window_strides = contiguous((g.ins, *g.window))

    def tile(channel: Value, count: int) -> None:
        weights = [
            plus(e, first_kernel, e.b.mul(plus(e, channel, o), e.b.index(g.terms)))
            for o in range(count)
        ]
        outs = [
            plus(e, first_out, e.b.mul(plus(e, channel, o), e.b.index(size))) for o in range(count)
        ]
        # Few channels: longer vectors, so that as many sums are in progress.
        most = most_lanes(dtype) * (_TILE // count)

        with e.each(g.positions[:-1]) as row:

            def some(at: Value, lanes: int) -> None:
                totals = [LoopVariable(e, e.constant(dtype, 0, lanes)) for _ in range(count)]
                with e.each((g.ins, *g.window)) as (channel_in, *taps):
                    x = load_run(
                        e,
                        plane.array,
                        plus(
                            e,
                            plus(e, plane.start, weighted(e, (channel_in,), plane.strides[:1])),
                            plus(
                                e,
                                _outer_place(e, g, plane, row, taps[:-1]),
                                plus(e, plane.last(e, taps[-1], g.dilation[-1]), at),
                            ),
                        ),
                        lanes,
                    )
                    term = weighted(e, (channel_in, *taps), window_strides)
                    for total, weight in zip(totals, weights, strict=True):
                        w = load_run(e, kernel, plus(e, weight, term))
                        _summed(e, total, x, e.splat(w, lanes))
                place = plus(e, weighted(e, row, contiguous(g.positions)[:-1]), at)
                for total, base in zip(totals, outs, strict=True):
                    store_run(e, out, plus(e, base, place), e.cast(total.get(), out.dtype))

            vectors(e, g.positions[-1], dtype, some, most)

    _tiles(e, g.outs, _TILE, tile)


# along the window -------------------------------------------------------------------------------


def _by_window(
    e: Routines,
    g: _Geometry,
    plane: _Plane,
    kernel: Array,
    first_kernel: Value,
    out: Array,
    first_out: Value,
) -> None:
    """Vectors along the kernel, tiles of positions."""
    size = math.prod(g.positions)
    dtype = kernel.dtype
    window_strides = contiguous((g.ins, *g.window))
    length = g.window[-1]
    lanes = most_lanes(dtype)
    whole = length // lanes
    pieces, at = [], whole * lanes
    while at < length:
        piece = 1 << ((length - at).bit_length() - 1)
        pieces.append((at, piece))
        at += piece

    widths = ([lanes] if whole else []) + [piece for _, piece in pieces]

    def tile(channel: Value, outs: int, row: Sequence[Value], position: Value, count: int) -> None:
        channels = [plus(e, channel, k) for k in range(outs)]
        weights = [plus(e, first_kernel, e.b.mul(c, e.b.index(g.terms))) for c in channels]
        places = [
            plus(e, plane.start, plane.last(e, plus(e, position, k), g.strides[-1]))
            for k in range(count)
        ]
        totals = {
            width: [[LoopVariable(e, e.constant(dtype, 0, width)) for _ in places] for _ in weights]
            for width in widths
        }

        def add(width: int, base: Value, term: Value) -> None:
            xs = [load_run(e, plane.array, plus(e, place, base), width) for place in places]
            for weight, sums in zip(weights, totals[width], strict=True):
                w = load_run(e, kernel, plus(e, weight, term), width)
                for total, x in zip(sums, xs, strict=True):
                    _summed(e, total, x, w)

        with e.each((g.ins, *g.window[:-1])) as (channel_in, *taps):
            base = plus(
                e,
                weighted(e, (channel_in,), plane.strides[:1]),
                _outer_place(e, g, plane, row, taps),
            )
            term = weighted(e, (channel_in, *taps), window_strides[:-1])
            if whole:
                with e.count(whole) as k:
                    step = e.b.mul(k, e.b.index(lanes))
                    add(lanes, plus(e, base, step), plus(e, term, step))
            for at, piece in pieces:
                add(piece, plus(e, base, at), plus(e, term, at))
        inner = plus(e, weighted(e, row, contiguous(g.positions)[:-1]), position)
        for o, number in enumerate(channels):
            target = plus(e, plus(e, first_out, e.b.mul(number, e.b.index(size))), inner)
            for at in range(count):
                parts = [_across(e, totals[width][o][at].get()) for width in widths]
                total = functools.reduce(e.add, parts)
                store_run(e, out, plus(e, target, at), e.cast(total, out.dtype))

    def tiles(channel: Value, outs: int) -> None:
        with e.each(g.positions[:-1]) as row:
            _tiles(e, g.positions[-1], _TILE, lambda at, n: tile(channel, outs, row, at, n))

    _tiles(e, g.outs, _PAIR, tiles)


def _across(e: Routines, number: Number) -> Number:
    """The sum of all lanes, halves first."""
    lanes = number.lanes
    while lanes > 1:
        lanes //= 2
        halves = [
            type(number)(
                number.dtype,
                tuple(
                    [
                        e.b.shuffle(part, part, range(start, start + lanes))
                        if lanes > 1
                        else e.b.extract(part, start)
                        for part in number.parts
                    ]
                ),
            )
            for start in (0, lanes)
        ]
        number = e.add(*halves)
    return number


# with bounds ------------------------------------------------------------------------------------


def _by_elements(e: Routines, g: _Geometry, lhs: Array, kernel: Array, out: Array) -> None:
    """One product after the other, of elements that a window meets, without padding.

    For kernels that are not finite, whose products with zeros of the padding are NaN. The code is
    rarely run: a program has it once, for all convolutions of a rank between the same dtypes.
    """
    plane = g.ins * math.prod(g.space)
    steps = (plane, g.batch * plane) if g.groups_in_batch else (g.groups * plane, plane)
    axes = zip(g.positions, g.window, g.space, g.strides, g.dilation, g.lows, g.spread, strict=True)
    numbers = (
        g.batch, g.groups, g.outs, g.ins, g.terms, *steps, *(n for axis in axes for n in axis),
    )  # fmt: skip
    arrays = (lhs, kernel, out)

    def write(b: Builder) -> None:
        own = [replace(a, pointer=p) for a, p in zip(arrays, b.arguments[:3], strict=True)]
        _write_by_elements(e.on(b), own, b.arguments[3:])
        b.ret()

    name = "_".join(["conv", str(len(g.space)), *(array.dtype.name for array in arrays)])
    args = [*(array.pointer for array in arrays), *map(e.b.index, numbers)]
    e.b.helper(name, args, None, write)


def _write_by_elements(e: Routines, arrays: Sequence[Array], numbers: Sequence[Value]) -> None:
    """The function of :func:`_by_elements`, whose geometry is arguments."""
    b = e.b
    lhs, kernel, out = arrays
    batch, groups, outs, ins, terms, batch_step, group_step, *rest = numbers
    axes = [rest[at : at + 7] for at in range(0, len(rest), 7)]
    positions, windows = ([axis[k] for axis in axes] for k in (0, 1))
    written = Counter(e, b.index(0))
    with e.each((batch, groups, outs, *positions)) as (n, group, channel, *position):
        first = b.add(b.mul(n, batch_step), b.mul(group, group_step))
        weight = Counter(e, b.mul(b.add(b.mul(group, outs), channel), terms))
        total = LoopVariable(e, e.constant(kernel.dtype, 0))
        with e.each((ins, *windows)) as (source, *taps):
            is_met = b.true()
            for p, k, (_, _, space, stride, dilation, low, d) in zip(
                position, taps, axes, strict=True
            ):
                place = b.sub(b.add(b.mul(p, stride), b.mul(k, dilation)), low)
                # Without sign: a place before the first element is a large number.
                is_met = b.and_(is_met, b.icmp("ult", place, b.mul(space, d)))
                is_met = b.and_(is_met, b.icmp("eq", b.urem(place, d), b.index(0)))
                source = b.add(b.mul(source, space), b.udiv(place, d))
            with b.when(is_met):
                x = e.cast(e.read(lhs, b.add(first, source)), kernel.dtype)
                _summed(e, total, x, e.read(kernel, weight.get()))
            weight.advance(b.true())
        e.write(out, written.get(), e.cast(total.get(), out.dtype))
        written.advance(b.true())


# by the library's matrix product ----------------------------------------------------------------


_GEMM = {"float64": "dgemm", "float32": "sgemm", "complex128": "zgemm", "complex64": "cgemm"}


def _by_product(
    e: Routines,
    g: _Geometry,
    plane: _Plane,
    kernel: Array,
    first_kernel: Value,
    out: Array,
    first_out: Value,
) -> None:
    """Kernel ``[outs, ins]`` times plane ``[ins, positions]``; Fortran sees the transposes."""
    b, dtype = e.b, kernel.dtype
    width = math.prod(g.positions)

    def integer(number: int) -> Value:  # of 64 bits, which serve libraries of 32 bits, too
        return e.by_reference(b.index(number))

    def scalar(number: int) -> Value:
        parts = e.constant(dtype, number).parts
        slot = b.alloca(parts[0].type, len(parts), align=16)
        for k, part in enumerate(parts):
            b.store(part, b.element(slot, b.index(k), part.type))
        return slot

    plain = e.by_reference(e.constant(np.int8, ord("N")).value)
    x, w = e.address(plane.array, plane.start), e.address(kernel, first_kernel)
    args = [
        plain, plain, integer(width), integer(g.outs), integer(g.ins), scalar(1),
        x, integer(width), w, integer(g.ins), scalar(0), e.address(out, first_out), integer(width),
    ]  # fmt: skip
    e.call_symbol(f"blas.{_GEMM[dtype.name]}", args)
