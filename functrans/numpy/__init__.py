"""``functrans.numpy``: the namespace of NumPy for plain and traced arrays.

Every function has NumPy's name and signature. Plain arguments go to NumPy itself, traced ones to
functrans's implementation, and so do NumPy's own functions when they are called with traced arrays.
Constants, dtypes and helpers without traced arguments are NumPy's own.

Layer: ``numpy``.
"""

from __future__ import annotations

from typing import Any as _Any

import numpy as _numpy

# isort: off
from numpy import (
    False_ as False_, True_ as True_, array2string as array2string, array_repr as array_repr,
    array_str as array_str, bartlett as bartlett, base_repr as base_repr,
    binary_repr as binary_repr, blackman as blackman, bool as bool, bool_ as bool_,
    broadcast as broadcast, broadcast_shapes as broadcast_shapes, byte as byte, cdouble as cdouble,
    clongdouble as clongdouble, complex64 as complex64, complex128 as complex128,
    complexfloating as complexfloating, csingle as csingle, diag_indices as diag_indices,
    double as double, dtype as dtype, e as e, errstate as errstate, euler_gamma as euler_gamma,
    finfo as finfo, float16 as float16, float32 as float32, float64 as float64,
    floating as floating, format_float_positional as format_float_positional,
    format_float_scientific as format_float_scientific, from_dlpack as from_dlpack,
    generic as generic, get_printoptions as get_printoptions, geterr as geterr, half as half,
    hamming as hamming, hanning as hanning, iinfo as iinfo, index_exp as index_exp,
    inexact as inexact, inf as inf, int8 as int8, int16 as int16, int32 as int32, int64 as int64,
    int_ as int_, intc as intc, integer as integer, intp as intp, isdtype as isdtype,
    isfortran as isfortran, isscalar as isscalar, issubdtype as issubdtype, iterable as iterable,
    kaiser as kaiser, load as load, long as long, longdouble as longdouble, longlong as longlong,
    mask_indices as mask_indices, mgrid as mgrid, min_scalar_type as min_scalar_type,
    mintypecode as mintypecode, nan as nan, ndarray as ndarray, ndenumerate as ndenumerate,
    ndindex as ndindex, nditer as nditer, newaxis as newaxis, number as number, ogrid as ogrid,
    packbits as packbits, pi as pi, printoptions as printoptions, promote_types as promote_types,
    s_ as s_, save as save, savetxt as savetxt, savez as savez,
    savez_compressed as savez_compressed, set_printoptions as set_printoptions, seterr as seterr,
    short as short, signedinteger as signedinteger, single as single, tril_indices as tril_indices,
    triu_indices as triu_indices, typecodes as typecodes, typename as typename, ubyte as ubyte,
    ufunc as ufunc, uint as uint, uint8 as uint8, uint16 as uint16, uint32 as uint32,
    uint64 as uint64, uintc as uintc, uintp as uintp, ulong as ulong, ulonglong as ulonglong,
    unpackbits as unpackbits, unsignedinteger as unsignedinteger, ushort as ushort,
)  # fmt: skip

from functrans.core.deferred import deferred as _deferred
from functrans.namespaces import exported as _exported, listing as _listing, missing as _missing
from functrans.numpy import fft as fft, linalg as linalg, polynomial as polynomial
from functrans.numpy import scimath as emath  # noqa: F401  # NumPy's name for it
from functrans.numpy.arranging import (
    broadcast_arrays as broadcast_arrays, broadcast_to as broadcast_to, flip as flip,
    fliplr as fliplr, flipud as flipud, resize as resize, roll as roll, rot90 as rot90,
)  # fmt: skip
from functrans.numpy.array_api import VERSION as _VERSION, argsort as argsort, sort as sort
from functrans.numpy.creation import (
    arange as arange, array as array, asanyarray as asanyarray, asarray as asarray,
    asarray_chkfinite as asarray_chkfinite, ascontiguousarray as ascontiguousarray,
    asfortranarray as asfortranarray, empty as empty, empty_like as empty_like, eye as eye,
    frombuffer as frombuffer, fromfile as fromfile, fromfunction as fromfunction,
    fromiter as fromiter, fromstring as fromstring, full as full, full_like as full_like,
    genfromtxt as genfromtxt, geomspace as geomspace, identity as identity, indices as indices,
    linspace as linspace, loadtxt as loadtxt, logspace as logspace, meshgrid as meshgrid,
    ones as ones, ones_like as ones_like, require as require, tri as tri, vander as vander,
    zeros as zeros, zeros_like as zeros_like,
)  # fmt: skip
from functrans.numpy.cumulative import (
    cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum, diff as diff, ediff1d as ediff1d, gradient as gradient,
    nancumprod as nancumprod, nancumsum as nancumsum, trapezoid as trapezoid,
)  # fmt: skip
from functrans.numpy.diagonals import (
    diag as diag, diag_indices_from as diag_indices_from, diagflat as diagflat,
    diagonal as diagonal, fill_diagonal as fill_diagonal, trace as trace, tril as tril,
    tril_indices_from as tril_indices_from, triu as triu, triu_indices_from as triu_indices_from,
)  # fmt: skip
from functrans.numpy.einstein import einsum as einsum, einsum_path as einsum_path
from functrans.numpy.elements import (
    angle as angle, around as around, astype as astype, clip as clip, copy as copy, fix as fix,
    i0 as i0, imag as imag, interp as interp, nan_to_num as nan_to_num, piecewise as piecewise,
    real as real, real_if_close as real_if_close, round as round, sinc as sinc, unwrap as unwrap,
)  # fmt: skip
from functrans.numpy.joining import (
    append as append, block as block, c_ as c_, column_stack as column_stack, concat as concat,
    concatenate as concatenate, delete as delete, dstack as dstack, hstack as hstack,
    insert as insert, r_ as r_, repeat as repeat, stack as stack, tile as tile,
    trim_zeros as trim_zeros, vstack as vstack,
)  # fmt: skip
from functrans.numpy.lanes import (
    apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes,
    vectorize as vectorize,
)  # fmt: skip
from functrans.numpy.logic import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv,
    can_cast as can_cast, common_type as common_type, isclose as isclose, iscomplex as iscomplex,
    iscomplexobj as iscomplexobj, isneginf as isneginf, isposinf as isposinf, isreal as isreal,
    isrealobj as isrealobj, may_share_memory as may_share_memory, result_type as result_type,
    shares_memory as shares_memory,
)  # fmt: skip
from functrans.numpy.means import mean as mean, std as std, var as var
from functrans.numpy.nan_functions import (
    nanargmax as nanargmax, nanargmin as nanargmin, nanmax as nanmax, nanmean as nanmean,
    nanmin as nanmin, nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar,
)  # fmt: skip
from functrans.numpy.padding import pad as pad
from functrans.numpy.polynomials import (
    poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit,
    polyint as polyint, polymul as polymul, polysub as polysub, polyval as polyval, roots as roots,
)  # fmt: skip
from functrans.numpy.products import (
    convolve as convolve, correlate as correlate, cross as cross, dot as dot, inner as inner,
    kron as kron, outer as outer, tensordot as tensordot, vdot as vdot,
)  # fmt: skip
from functrans.numpy.quantiles import (
    median as median, nanmedian as nanmedian, nanpercentile as nanpercentile,
    nanquantile as nanquantile, percentile as percentile, quantile as quantile,
)  # fmt: skip
from functrans.numpy.reductions import (
    all as all, amax as amax, amin as amin, any as any, argmax as argmax, argmin as argmin,
    count_nonzero as count_nonzero, max as max, min as min, prod as prod, ptp as ptp, sum as sum,
)  # fmt: skip
from functrans.numpy.selection import (
    argwhere as argwhere, choose as choose, compress as compress, copyto as copyto,
    extract as extract, flatnonzero as flatnonzero, ix_ as ix_, nonzero as nonzero, place as place,
    put as put, put_along_axis as put_along_axis, putmask as putmask,
    ravel_multi_index as ravel_multi_index, select as select, take as take,
    take_along_axis as take_along_axis, unravel_index as unravel_index, where as where,
)  # fmt: skip
from functrans.numpy.sets import (
    intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d,
    union1d as union1d, unique as unique, unique_all as unique_all, unique_counts as unique_counts,
    unique_inverse as unique_inverse, unique_values as unique_values,
)  # fmt: skip
from functrans.numpy.shaping import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    expand_dims as expand_dims, matrix_transpose as matrix_transpose, moveaxis as moveaxis,
    ndim as ndim, permute_dims as permute_dims, ravel as ravel, reshape as reshape,
    rollaxis as rollaxis, shape as shape, size as size, squeeze as squeeze, swapaxes as swapaxes,
    transpose as transpose,
)  # fmt: skip
from functrans.numpy.sorting import (
    argpartition as argpartition, lexsort as lexsort, partition as partition,
    searchsorted as searchsorted, sort_complex as sort_complex,
)  # fmt: skip
from functrans.numpy.splitting import (
    array_split as array_split, dsplit as dsplit, hsplit as hsplit, split as split,
    unstack as unstack, vsplit as vsplit,
)  # fmt: skip
from functrans.numpy.statistics import (
    average as average, bincount as bincount, corrcoef as corrcoef, cov as cov,
    digitize as digitize, histogram as histogram, histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges, histogramdd as histogramdd,
)  # fmt: skip
from functrans.numpy.ufuncs import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, arccos as arccos,
    arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh, arctan as arctan, arctan2 as arctan2,
    arctanh as arctanh, asin as asin, asinh as asinh, atan as atan, atan2 as atan2, atanh as atanh,
    bitwise_and as bitwise_and, bitwise_count as bitwise_count, bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, cbrt as cbrt,
    ceil as ceil, conj as conj, conjugate as conjugate, copysign as copysign, cos as cos,
    cosh as cosh, deg2rad as deg2rad, degrees as degrees, divide as divide, divmod as divmod,
    equal as equal, exp as exp, exp2 as exp2, expm1 as expm1, fabs as fabs,
    float_power as float_power, floor as floor, floor_divide as floor_divide, fmax as fmax,
    fmin as fmin, fmod as fmod, frexp as frexp, gcd as gcd, greater as greater,
    greater_equal as greater_equal, heaviside as heaviside, hypot as hypot, invert as invert,
    isfinite as isfinite, isinf as isinf, isnan as isnan, lcm as lcm, ldexp as ldexp,
    left_shift as left_shift, less as less, less_equal as less_equal, log as log, log1p as log1p,
    log2 as log2, log10 as log10, logaddexp as logaddexp, logaddexp2 as logaddexp2,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, matmul as matmul, matvec as matvec, maximum as maximum,
    minimum as minimum, mod as mod, modf as modf, multiply as multiply, negative as negative,
    nextafter as nextafter, not_equal as not_equal, positive as positive, pow as pow,
    power as power, rad2deg as rad2deg, radians as radians, reciprocal as reciprocal,
    remainder as remainder, right_shift as right_shift, rint as rint, sign as sign,
    signbit as signbit, sin as sin, sinh as sinh, spacing as spacing, sqrt as sqrt,
    square as square, subtract as subtract, tan as tan, tanh as tanh, true_divide as true_divide,
    trunc as trunc, vecdot as vecdot, vecmat as vecmat,
)  # fmt: skip
# isort: on


def __getattr__(name: str) -> _Any:
    """NumPy's samplers, imported at first use; their results are constants of a traced function."""
    if name == "random":
        return _numpy.random
    if name == "special":  # which SciPy asks a namespace of arrays for, with SCIPY_ARRAY_API=1
        return _deferred.special_functions
    raise _missing(__name__, name)


def __array_namespace_info__() -> _Any:  # noqa: N807  # the standard's name
    """What the Python array API standard asks about: NumPy's answer."""
    return _numpy.__array_namespace_info__()


__array_api_version__ = _VERSION

__all__ = _exported(globals(), ("fft", "linalg", "polynomial", "random"))
__dir__ = _listing(__all__)
