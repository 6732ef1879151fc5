"""The grammar of random programs: expressions in NumPy's words, by how their results are compared.

An expression has operands ``{a}``, ``{b}``, ``{c}``, which stand for earlier values, and other
places, which are filled as ``FILLERS`` says. The words in front of a group's colon are the weight of
the group and the policy by which ``judging`` compares results.
"""

# ruff: noqa: E501  # one line for each expression
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from functrans import numpy as fnp

INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
DTYPES = ("b1", *INTEGERS, "f2", "f4", "f8", "c8", "c16")


@dataclass(frozen=True, slots=True)
class Group:
    """Expressions that are drawn alike and compared alike.

    Attributes:
      weight: how often the group is drawn, against others.
      policy: see ``judging``.
      expressions: with places.
      is_eager: whether their shapes depend on values, so that they cannot be staged.
    """

    weight: float
    policy: str
    expressions: tuple[str, ...]
    is_eager: bool = False


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.strip().splitlines())


def _calls(names: str, operands: str) -> tuple[str, ...]:
    return tuple(f"np.{name}({operands})" for name in names.split())


EXACT_UNARY = """abs absolute negative positive sign signbit floor ceil trunc rint fix isfinite isinf
isnan isneginf isposinf logical_not conj conjugate real imag spacing square sqrt reciprocal invert
bitwise_invert bitwise_not bitwise_count fabs iscomplex isreal modf frexp nan_to_num copy"""
EXACT_BINARY = """add subtract multiply divide true_divide equal not_equal less less_equal greater
greater_equal logical_and logical_or logical_xor maximum minimum fmax fmin copysign nextafter
heaviside fmod remainder mod floor_divide divmod gcd lcm bitwise_and bitwise_or bitwise_xor
left_shift bitwise_left_shift right_shift bitwise_right_shift ldexp"""
ULPS_UNARY = """sin cos tan arcsin arccos arctan sinh cosh tanh arcsinh arccosh arctanh exp exp2 expm1
log log2 log10 log1p cbrt deg2rad rad2deg radians degrees angle sinc acos acosh asin asinh atan
atanh"""
ULPS_BINARY = "power pow float_power arctan2 atan2 hypot logaddexp logaddexp2"

_EXACT_MOVEMENT = """
np.reshape({a}, {shape})
{a}.reshape({shape})
np.ravel({a})
{a}.flatten()
np.transpose({a})
np.transpose({a}, {perm})
{a}.T
{a}.mT
np.matrix_transpose({a})
np.permute_dims({a}, {perm})
np.swapaxes({a}, {k}, {k})
np.moveaxis({a}, {k}, {k})
np.rollaxis({a}, {k})
np.squeeze({a})
np.expand_dims({a}, {k})
np.broadcast_to({a}, {wide})
np.broadcast_arrays({a}, {b})
np.concatenate([{a}, {b}], axis={k})
np.concatenate([{a}, {b}], axis=None)
np.concat([{a}, {a}, {b}])
np.append({a}, {b})
np.append({a}, {b}, axis={k})
np.stack([{a}, {b}], axis={k})
np.vstack([{a}, {b}])
np.hstack([{a}, {b}])
np.dstack([{a}, {b}])
np.column_stack([{a}, {b}])
np.block([[{a}, {b}], [{b}, {a}]])
np.split({a}, 2, axis={k})
np.array_split({a}, 3, axis={k})
np.hsplit({a}, 2)
np.vsplit({a}, 2)
np.dsplit({a}, 2)
np.unstack({a})
np.tile({a}, {n})
np.tile({a}, (2, {n}))
np.repeat({a}, {n}, axis={k})
np.repeat({a}, 2)
np.roll({a}, {n}, axis={k})
np.roll({a}, -{n})
np.flip({a})
np.flip({a}, {k})
np.fliplr({a})
np.flipud({a})
np.rot90({a}, {n})
np.pad({a}, {n})
np.pad({a}, (1, 2), mode="edge")
np.pad({a}, 1, mode="reflect")
np.pad({a}, 1, mode="symmetric")
np.pad({a}, 2, mode="wrap")
np.atleast_1d({a})
np.atleast_2d({a})
np.atleast_3d({a})
np.diag({a})
np.diag({a}, 1)
np.diagonal({a})
np.diagonal({a}, -1)
np.diagflat({a})
np.tril({a})
np.triu({a}, 1)
np.take({a}, {ix}, axis={k})
np.take({a}, {ix}, mode="wrap")
np.take({a}, {ix}, axis={k}, mode="clip")
np.take_along_axis({a}, np.argsort({a}, axis={k}, kind="stable"), axis={k})
np.compress({flags}, {a})
np.delete({a}, {i}, axis=0)
np.insert({a}, {i}, {b}, axis=0)
np.insert({a}, 0, {b})
np.resize({a}, {wide})
np.where({a}, {b}, {c})
np.where({a} == {b}, {a}, {c})
np.where({mask}, {a}, {b})
np.select([{a} > {b}, {a} == {b}], [{a}, {b}], {c})
np.choose({a}, [{b}, {c}], mode="clip")
np.piecewise({a}, [{a} > {b}], [lambda x: abs(x), 3])
np.clip({a}, {b}, {c})
np.clip({a}, -1, 1)
{a}.clip({f})
np.meshgrid({a}, {b})
np.ix_({a}, {b})
np.fft.fftshift({a})
np.fft.ifftshift({a})
np.full_like({a}, {f})
np.zeros_like({a})
np.ones_like({a})
np.asarray({a})
np.asanyarray({a})
np.array({a})
np.ascontiguousarray({a})
np.asfortranarray({a})
np.real_if_close({a})
{a}.astype({d})
np.astype({a}, np.dtype({d}))
{a}[{s}]
{a}[{s}]
{a}[{s}][{s}]
{a}[{mask}]
{a}[..., None]
{a}[{ix}]
{a}[{ix}, {i}]
{a}[..., {ix}]
{a}.take({ix})
{a}.swapaxes({k}, {k})
{a}.squeeze()
{a}.ravel()
{a}.transpose()
{a}.copy()
{a}.repeat(2)
{a}.diagonal()
{a}.real
{a}.imag
{a}.conj()
np.apply_along_axis(lambda r: r[::-1], {k}, {a})
put({a}, {s}, {b})
put({a}, {s}, {f})
put({a}, {ix}, {b})
put({a}, {mask}, {f})
putting(np.put, {a}, {ix}, {b})
putting(np.put_along_axis, {a}, np.argsort({a}, axis={k}, kind="stable"), {b}, {k})
putting(np.putmask, {a}, {mask}, {b})
putting(np.place, {a}, {mask}, {b})
putting(np.copyto, {a}, {b})
putting(np.fill_diagonal, {a}, {f})
"""

_EXACT_SELECTION = """
np.sort({a}, axis={k})
np.sort({a}, axis=None)
np.sort({a}, axis={k}, kind="stable")
np.argsort({a}, axis={k}, kind="stable")
np.sort_complex({a})
np.lexsort(({a}, {b}))
np.searchsorted(np.sort({a}.ravel()), {b})
np.searchsorted(np.sort({a}.ravel()), {b}, side="right")
np.digitize({a}, np.sort({b}.ravel()))
np.max({a}, axis={K})
np.min({a}, axis={K}, keepdims={t})
np.amax({a}, {k})
np.amin({a})
{a}.max()
{a}.min(axis={k})
np.max({a}, initial={n}, where={a} == {a})
np.ptp({a}, axis={k})
np.argmax({a})
np.argmax({a}, axis={k})
np.argmin({a}, axis={k}, keepdims={t})
{a}.argmin()
np.nanmax({a}, axis={k})
np.nanmin({a})
np.nanargmax({a}, axis={k})
np.nanargmin({a}, axis={k})
np.any({a}, axis={K})
np.all({a}, axis={K}, keepdims={t})
{a}.any()
{a}.all({k})
np.count_nonzero({a})
np.count_nonzero({a}, axis={k})
np.isin({a}, {b})
np.asarray(np.array_equal({a}, {b}))
np.asarray(np.array_equiv({a}, {b}))
numpy.maximum.reduce({a}, axis={k})
numpy.minimum.accumulate({a}, axis={k})
numpy.fmax.reduce({a}, axis={k})
numpy.fmin.accumulate({a}, axis={k})
numpy.logical_and.reduce({a}, axis={k})
numpy.logical_or.accumulate({a}, axis={k})
numpy.bitwise_xor.reduce({a}, axis={k})
numpy.bitwise_or.accumulate({a}, axis={k})
numpy.maximum.outer({a}, {b})
numpy.subtract.outer({a}, {b})
numpy.less.outer({a}, {b})
np.median({a})
np.median({a}, axis={k})
np.diff({a}, axis={k})
np.diff({a}, n={n})
np.ediff1d({a})
np.ravel_multi_index((np.abs({a}), np.abs({b})), (7, 9), mode="clip")
np.unravel_index(np.abs({a}) % 6, (2, 3))
np.diag_indices_from({a})
np.tril_indices_from({a})
np.triu_indices_from({a})
"""

_EXACT_OPERATORS = """
{a} + {b}
{a} - {b}
{a} * {b}
{a} / {b}
{a} // {b}
{a} % {b}
divmod({a}, {b})
{a} & {b}
{a} | {b}
{a} ^ {b}
{a} << {n}
{a} >> {n}
~{a}
-{a}
+{a}
abs({a})
{a} < {b}
{a} >= {b}
{a} == {b}
{a} != {f}
{a} + {f}
{f} - {a}
{a} * {f}
{f} / {a}
{a} // {f}
{a} % {f}
{a} + {n}
{n} - {a}
{a} * {n}
{a} / 2
{a} // 2
{a} * 2 + {b}
{a} ** 2
"""

_ULPS = """
at({a})[{s}].divide({b})
{a} ** {n}
{a} ** {f}
{n} ** {a}
{a} ** {b}
np.round({a})
np.round({a}, {n})
np.around({a}, -1)
np.isclose({a}, {b})
np.polyval([1, -2, {n}], {a})
np.interp({a}, np.array([-1.5, 0.0, 2.0, 7.0]), np.array([1.0, -1.0, 3.0, 0.5]))
"""

_SUM = """
np.histogram_bin_edges({a}, bins=3)
{a} * {a} + {b} * {b}
np.vander({a}, 3)
np.sum({a}, axis={K})
np.sum({a}, axis={K}, keepdims={t})
np.sum({a}, axis={k}, dtype={d})
np.sum({a}, where={a} == {a})
{a}.sum()
{a}.sum({k})
np.mean({a}, axis={K})
{a}.mean({k})
np.prod({a}, axis={K})
{a}.prod()
np.cumsum({a}, axis={k})
np.cumprod({a}, axis={k})
{a}.cumsum()
{a}.cumprod({k})
np.cumulative_sum({a}, axis={k})
np.cumulative_prod({a}, axis={k}, include_initial={t})
np.nansum({a}, axis={k})
np.nanprod({a}, axis={k})
np.nanmean({a}, axis={k})
np.nancumsum({a}, axis={k})
np.nancumprod({a}, axis={k})
numpy.add.reduce({a}, axis={k})
numpy.add.accumulate({a}, axis={k})
numpy.multiply.reduce({a}, axis={k})
numpy.multiply.accumulate({a}, axis={k})
numpy.multiply.outer({a}, {b})
np.trace({a})
np.matmul({a}, {b})
{a} @ {b}
{a} @ {a}.T
np.dot({a}, {b})
{a}.dot({b})
np.inner({a}, {b})
np.outer({a}, {b})
np.outer({a}, {b}).T
np.vdot({a}, {b})
np.vecdot({a}, {b})
np.matvec({a}, {b})
np.vecmat({a}, {b})
np.tensordot({a}, {b}, axes=1)
np.tensordot({a}, {b}, axes=0)
np.kron({a}, {b})
np.einsum("ij,jk->ki", {a}, {b})
np.einsum("ij,ij->j", {a}, {b})
np.einsum("...i,...i->...", {a}, {b})
np.einsum("ii->i", {a})
np.einsum("ij->", {a})
np.linalg.multi_dot([{a}, {b}, {c}])
np.linalg.matmul({a}, {b})
np.linalg.outer({a}, {b})
np.linalg.vecdot({a}, {b})
np.linalg.tensordot({a}, {b}, axes=1)
np.linalg.trace({a})
np.linalg.diagonal({a})
np.linalg.matrix_transpose({a})
np.linalg.matrix_power({a}, {n})
np.convolve({a}, {b})
np.convolve({a}, {b}, "same")
np.convolve({a}, {b}, "valid")
np.correlate({a}, {b}, "full")
np.correlate({a}, {b})
np.bincount({a} & 7)
numpy.hypot.reduce({a}, axis={k})
"""

_NORM = """
np.var({a}, axis={k})
np.std({a}, axis={K}, ddof=1)
{a}.var()
{a}.std({k})
np.nanvar({a}, axis={k})
np.nanstd({a})
np.average({a}, axis={k})
np.average({a}, weights=np.abs({b}) + 1, axis={k})
np.quantile({a}, 0.3, axis={k})
np.percentile({a}, [10, 50, 77])
np.quantile({a}, 0.25, method="midpoint")
np.quantile({a}, 0.6, method="lower", axis={k})
np.nanmedian({a}, axis={k})
np.nanquantile({a}, 0.4)
np.nanpercentile({a}, 20, axis={k})
np.gradient({a})
np.gradient({a}, 0.5, axis={k})
np.trapezoid({a}, axis={k})
np.trapezoid({a}, dx=0.5)
np.cov({a})
np.cov({a}, {b})
np.cross({a}, {b})
np.linalg.cross({a}, {b})
np.unwrap({a})
np.linspace({a}, {b}, 4)
np.linspace({a}, {b}, 5, axis=-1, endpoint={t})
np.polyadd({a}, {b})
np.polysub({a}, {b})
np.polyder({a})
np.polyint({a})
np.histogram({a}.ravel(), bins=4, range=(-2, 3))
np.linalg.norm({a})
np.linalg.norm({a}, axis={k})
np.linalg.norm({a}, 1)
np.linalg.norm({a}, np.inf, axis={k})
np.linalg.vector_norm({a}, axis={k}, ord=3)
np.linalg.matrix_norm({a})
np.linalg.svdvals({a})
np.linalg.svd({a}, compute_uv=False)
np.linalg.norm({a}, 2)
np.linalg.norm({a}, "nuc")
np.linalg.eigvalsh({a} + np.conj({a}.T))
np.linalg.det({a})
np.linalg.solve({a} @ np.conj({a}.T) + (1 + np.linalg.norm({a}) ** 2) * np.eye(len({a})), {a})
np.linalg.inv({a} @ np.conj({a}.T) + (1 + np.linalg.norm({a}) ** 2) * np.eye(len({a})))
np.linalg.cholesky({a} @ np.conj({a}.T) + np.eye(len({a})))
np.linalg.slogdet({a} @ np.conj({a}.T) + np.eye(len({a})))[1]
np.linalg.pinv({a} @ np.conj({a}.T) + (1 + np.linalg.norm({a}) ** 2) * np.eye(len({a})))
np.linalg.lstsq({a} @ np.conj({a}.T) + (1 + np.linalg.norm({a}) ** 2) * np.eye(len({a})), {a})[0]
np.linalg.cond({a} @ np.conj({a}.T) + np.eye(len({a})))
np.linalg.tensorinv(np.eye(6).reshape(2, 3, 6) * 2 + 0 * np.sum({a}))
np.linalg.tensorsolve(np.eye(6).reshape(2, 3, 6) * 2, np.resize({a}, 6))
np.abs(np.linalg.qr({a} + np.eye(*{a}.shape))[1])
np.linalg.matrix_rank({a})
np.fft.fft({a})
np.fft.fft({a}, axis={k}, norm="ortho")
np.fft.fft({a}, 5)
np.fft.ifft({a}, axis={k})
np.fft.rfft({a})
np.fft.rfft({a}, 6, axis={k})
np.fft.irfft({a})
np.fft.irfft({a}, 5)
np.fft.hfft({a})
np.fft.ihfft({a})
np.fft.fft2({a})
np.fft.ifft2({a})
np.fft.rfft2({a})
np.fft.irfft2({a})
np.fft.fftn({a})
np.fft.ifftn({a})
np.fft.rfftn({a})
np.fft.irfftn({a})
"""

_CONTROL = """
lax.cond(np.sum({a}).real > 0, lambda x, y: x + y, lambda x, y: y + x * 2, {a}, {b})
lax.cond(np.any({a}), lambda x: -x, lambda x: x, {a})
lax.switch({n}, [lambda x: x, lambda x: -x, lambda x: x * x], {a})
lax.switch(np.argmax({b}), [lambda x: x, lambda x: -x, lambda x: x * x], {a})
lax.fori_loop(0, {n}, lambda i, c: c * {a} + {b}, {a} * {b})
lax.fori_loop(0, 3, lambda i, c: (c[1] + i, -c[0]), ({a}, {a}))[1]
lax.fori_loop(np.argmax({a}), 4, lambda i, c: np.maximum(c, -c) + {a}, {a})
lax.while_loop(lambda c: c[0] < {n}, lambda c: (c[0] + 1, c[1] * c[1]), (np.int64(0), {a}))
lax.while_loop(lambda c: np.sum(c[0]) < 9, lambda c: (c[0] + 2, -c[1]), (np.argmax({a}), {b}))
lax.scan(lambda c, x: (c + x, c * x), {a}[0], {a})
lax.scan(lambda c, x: (x, c - x), {a}[-1], {a}, reverse=True)
lax.scan(lambda c, x: (np.maximum(c, x[0]), x[1]), {a}[0], ({a}, {a}[::-1]))
lax.scan(lambda c, _: (c * {b}, c), {a} * {b}, None, length={n})
ft.vmap(lambda r: r * 2 + r[::-1])({a})
ft.vmap(lambda r, s: r - s, in_axes=(0, None))({a}, {b})
ft.vmap(np.sort, in_axes=1, out_axes=1)({a})
ft.vmap(ft.vmap(lambda r: np.maximum(r, 1)))({a})
ft.vmap(lambda i: {a}[i])(np.argsort({a}, axis=0, kind="stable"))
ft.jit(lambda x, y: (x - y) * x)({a}, {b})
ft.jit(ft.vmap(lambda x: x[{i}]))({a})
ft.checkpoint(lambda x: x * x)({a})
"""

_AT = """
at({a})[{s}].set({b})
at({a})[{s}].set({f})
at({a})[{s}].add({b})
at({a})[{s}].subtract({b})
at({a})[{s}].multiply({b})
at({a})[{s}].min({b})
at({a})[{s}].max({b})
at({a})[{ix}].add({b})
at({a})[{ix}].set({n})
at({a})[{ix}].multiply({b})
at({a})[{ix}].max({b})
at({a})[{s}].get()
at({a})[{mask}].set({b})
at({a})[{s}].apply(lambda x: x * x)
"""

_EAGER = """
np.nonzero({a})
np.flatnonzero({a})
np.argwhere({a})
np.where({a})
np.unique({a})
np.unique({a}, return_counts=True, return_inverse=True)
np.unique_all({a})
np.unique_counts({a})
np.unique_inverse({a})
np.sort(np.unique_values({a}))
np.union1d({a}, {b})
np.intersect1d({a}, {b})
np.setdiff1d({a}, {b})
np.setxor1d({a}, {b})
np.trim_zeros({a})
np.extract({a} > 0, {a})
{a}[{a} > 0]
{a}[{a} == {b}]
np.compress({a}.ravel() != 0, {b})
np.repeat({a}, {b} & 3)
np.bincount({a} & 3, weights={b})
np.asarray(np.allclose({a}, {b}))
"""

GROUPS = (
    Group(12, "exact", _calls(EXACT_UNARY, "{a}")),
    Group(12, "exact", _calls(EXACT_BINARY, "{a}, {b}")),
    Group(7, "ulps", _calls(ULPS_UNARY, "{a}")),
    Group(1, "exponential", ("np.i0({a})",)),
    Group(3, "ulps", (*_calls(ULPS_BINARY, "{a}, {b}"), *_lines(_ULPS))),
    Group(25, "exact", _lines(_EXACT_MOVEMENT)),
    Group(14, "exact", _lines(_EXACT_SELECTION)),
    Group(9, "exact", _lines(_EXACT_OPERATORS)),
    Group(13, "sum", _lines(_SUM)),
    Group(8, "norm", _lines(_NORM)),
    Group(5, "exact", _lines(_CONTROL)),
    Group(5, "exact", _lines(_AT)),
    Group(3, "exact", _lines(_EAGER), is_eager=True),
)

NOT_DRAWN = {
    "apply_over_axes": "calls a function of the user's that the grammar has directly",
    "ndim shape size iscomplexobj isrealobj can_cast result_type common_type require shares_memory "
    "may_share_memory einsum_path asarray_chkfinite": "asks about arrays, or makes none",
    "arange empty empty_like fromfunction full identity indices ones tri zeros frombuffer "
    "fromfile fromiter fromstring genfromtxt loadtxt fft.fftfreq fft.rfftfreq": "makes arrays",
    "partition argpartition": "the order within a part is not defined",
    "histogram2d histogramdd": "as histogram, which is drawn",
    "polymul": "leaves out leading zeros, so that the shape depends on values",
    "poly polydiv polyfit roots": "ill-conditioned at random coefficients",
    "corrcoef": "divides by variances that are often 0",
    "geomspace logspace": "overflow at most operands; rounding is not stated by NumPy",
    "linalg.eig linalg.eigh linalg.eigvals": "order and phase of the results are not defined",
}
"""Functions of the tables of support that no expression calls, and why."""


# filling places ---------------------------------------------------------------------------------

CONSTANTS = ("0.5", "-1.5", "2", "3", "0", "-0.0", "1", "-2", "nan", "inf", "1e-3", "True", "2.5")


def _axis(rng: np.random.Generator, a: np.ndarray) -> str:
    return str(int(rng.integers(-a.ndim, a.ndim))) if a.ndim else "0"


def _axes(rng: np.random.Generator, a: np.ndarray) -> str:
    chosen = [str(i) for i in range(a.ndim) if rng.random() < 0.5]
    return str(rng.choice(["None", _axis(rng, a), f"({''.join(i + ', ' for i in chosen)})"]))


def _shape(rng: np.random.Generator, a: np.ndarray) -> str:
    size = a.size
    factors = [n for n in range(1, size + 1) if size % n == 0] or [0]
    n = int(rng.choice(factors))
    choices = ["-1", str((n, size // n if n else 1)), f"(-1, {n or 1})", str((1, *a.shape[::-1]))]
    return str(rng.choice(choices))


def _slice(rng: np.random.Generator, size: int) -> str:
    return str(rng.choice([
        ":", "::-1", "::2", "1:", ":-1", "-2::-2", "0:0", "...", "None", f"{size // 2}:",
        str(int(rng.integers(-size, size))) if size else ":",
    ]))  # fmt: skip


def _index(rng: np.random.Generator, a: np.ndarray) -> str:
    parts = [_slice(rng, n) for n in a.shape[: int(rng.integers(1, 3))]] or ["..."]
    if parts.count("...") > 1:
        parts = ["..."]
    return ", ".join(parts)


def _integers(rng: np.random.Generator, a: np.ndarray) -> str:
    n = a.shape[0] if a.ndim else 1
    return (
        f"np.array({[int(i) for i in rng.integers(-n, max(n, 1), size=rng.integers(0, 5))]}, int)"
    )


def _mask(rng: np.random.Generator, a: np.ndarray) -> str:
    return f"np.resize([True, False, {bool(rng.integers(2))}], {a.shape})"


def _permutation(rng: np.random.Generator, a: np.ndarray) -> str:
    return str(tuple(int(i) for i in rng.permutation(a.ndim)))


FILLERS: dict[str, Callable[[np.random.Generator, np.ndarray], str]] = {
    "{k}": _axis,
    "{K}": _axes,
    "{n}": lambda rng, a: str(int(rng.integers(0, 5))),
    "{i}": lambda rng, a: str(int(rng.integers(-len(a), len(a))) if a.ndim and len(a) else 0),
    "{f}": lambda rng, a: str(rng.choice(CONSTANTS)),
    "{d}": lambda rng, a: repr(str(rng.choice(DTYPES))),
    "{t}": lambda rng, a: str(bool(rng.integers(2))),
    "{s}": _index,
    "{ix}": _integers,
    "{mask}": _mask,
    "{flags}": lambda rng, a: _mask(rng, np.empty(a.shape[:1])),
    "{shape}": _shape,
    "{perm}": _permutation,
    "{wide}": lambda rng, a: str((int(rng.integers(1, 4)), *a.shape)),
}


def drawn_expression(
    rng: np.random.Generator, values: dict[str, Any], is_eager: bool
) -> tuple[str, str]:
    """A random expression over the values, and its policy."""
    groups = [group for group in GROUPS if is_eager or not group.is_eager]
    weights = np.array([group.weight for group in groups])
    group = groups[rng.choice(len(groups), p=weights / weights.sum())]
    text = group.expressions[rng.integers(len(group.expressions))]
    return filled(rng, text, values), group.policy


def filled(rng: np.random.Generator, text: str, values: dict[str, Any]) -> str:
    """An expression whose places are filled with values and numbers."""
    names = list(values)
    # Later values more often, so that programs are deep.
    first = names[min(int(rng.integers(len(names))), int(rng.integers(len(names))))]
    a = values[first]
    alike = [n for n in names if values[n].shape == a.shape and values[n].dtype == a.dtype]
    text = text.replace("{a}", first)
    for place in ("{b}", "{c}"):
        pool = alike if rng.random() < 0.4 else names
        text = text.replace(place, pool[rng.integers(len(pool))])
    for place, fill in FILLERS.items():
        while place in text:
            text = text.replace(place, fill(rng, a), 1)
    return text


def functions_drawn() -> set[str]:
    """Names of NumPy's functions, with ``linalg.`` or ``fft.``, that some expression calls."""
    texts = " ".join(text for group in GROUPS for text in group.expressions)
    names = [n for n in fnp.__all__ if f"np.{n}(" in texts or f"np.{n}," in texts]
    for module in ("linalg", "fft"):
        listed = getattr(fnp, module).__all__
        names += [f"{module}.{n}" for n in listed if f"np.{module}.{n}(" in texts]
    return set(names)
