"""``ft.lax``: control flow, collectives, windows and the elements of array code, under JAX's names.

The names are those of ``control``, ``primitives``, NumPy and SciPy; what these do not have stands
in the modules of this package. A module is imported when a name of it is first used.

Layer: ``lax``.
"""

# ruff: noqa: F401  # JAX's names, which are others than NumPy's and SciPy's

from typing import TYPE_CHECKING
from typing import Any as _Any

from functrans.namespaces import imported as _imported
from functrans.namespaces import listing as _listing
from functrans.namespaces import missing as _missing
from functrans.namespaces import places_in as _places_in

if TYPE_CHECKING:
    from functrans.control.branches import cond as cond
    from functrans.control.branches import select as select
    from functrans.control.branches import switch as switch
    from functrans.control.collectives import all_gather as all_gather
    from functrans.control.collectives import axis_index as axis_index
    from functrans.control.collectives import axis_size as axis_size
    from functrans.control.collectives import pmax as pmax
    from functrans.control.collectives import pmean as pmean
    from functrans.control.collectives import pmin as pmin
    from functrans.control.collectives import psum as psum
    from functrans.control.custom_rules import stop_gradient as stop_gradient
    from functrans.control.scanning import associative_scan as associative_scan
    from functrans.control.scanning import fori_loop as fori_loop
    from functrans.control.scanning import map as map
    from functrans.control.scanning import scan as scan
    from functrans.control.scanning import while_loop as while_loop
    from functrans.lax import linalg as linalg
    from functrans.lax.contractions import ConvDimensionNumbers as ConvDimensionNumbers
    from functrans.lax.contractions import Precision as Precision
    from functrans.lax.contractions import batch_matmul as batch_matmul
    from functrans.lax.contractions import conv as conv
    from functrans.lax.contractions import conv_dimension_numbers as conv_dimension_numbers
    from functrans.lax.contractions import conv_general_dilated as conv_general_dilated
    from functrans.lax.contractions import conv_transpose as conv_transpose
    from functrans.lax.contractions import conv_with_general_padding as conv_with_general_padding
    from functrans.lax.contractions import dot as dot
    from functrans.lax.contractions import dot_general as dot_general
    from functrans.lax.elementwise import RoundingMethod as RoundingMethod
    from functrans.lax.elementwise import clamp as clamp
    from functrans.lax.elementwise import complex as complex
    from functrans.lax.elementwise import div as div
    from functrans.lax.elementwise import integer_pow as integer_pow
    from functrans.lax.elementwise import population_count as population_count
    from functrans.lax.elementwise import round as round
    from functrans.lax.elementwise import rsqrt as rsqrt
    from functrans.lax.elementwise import select_n as select_n
    from functrans.lax.elementwise import shift_right_logical as shift_right_logical
    from functrans.lax.indexed import GatherDimensionNumbers as GatherDimensionNumbers
    from functrans.lax.indexed import GatherScatterMode as GatherScatterMode
    from functrans.lax.indexed import ScatterDimensionNumbers as ScatterDimensionNumbers
    from functrans.lax.indexed import gather as gather
    from functrans.lax.indexed import index_take as index_take
    from functrans.lax.indexed import scatter as scatter
    from functrans.lax.indexed import scatter_add as scatter_add
    from functrans.lax.indexed import scatter_max as scatter_max
    from functrans.lax.indexed import scatter_min as scatter_min
    from functrans.lax.indexed import scatter_mul as scatter_mul
    from functrans.lax.structural import argmax as argmax
    from functrans.lax.structural import argmin as argmin
    from functrans.lax.structural import bitcast_convert_type as bitcast_convert_type
    from functrans.lax.structural import broadcast as broadcast
    from functrans.lax.structural import broadcast_in_dim as broadcast_in_dim
    from functrans.lax.structural import broadcasted_iota as broadcasted_iota
    from functrans.lax.structural import collapse as collapse
    from functrans.lax.structural import concatenate as concatenate
    from functrans.lax.structural import convert_element_type as convert_element_type
    from functrans.lax.structural import cumlogsumexp as cumlogsumexp
    from functrans.lax.structural import cummax as cummax
    from functrans.lax.structural import cummin as cummin
    from functrans.lax.structural import cumprod as cumprod
    from functrans.lax.structural import cumsum as cumsum
    from functrans.lax.structural import dtype as dtype
    from functrans.lax.structural import dynamic_index_in_dim as dynamic_index_in_dim
    from functrans.lax.structural import dynamic_slice_in_dim as dynamic_slice_in_dim
    from functrans.lax.structural import dynamic_update_index_in_dim as dynamic_update_index_in_dim
    from functrans.lax.structural import dynamic_update_slice_in_dim as dynamic_update_slice_in_dim
    from functrans.lax.structural import expand_dims as expand_dims
    from functrans.lax.structural import full as full
    from functrans.lax.structural import index_in_dim as index_in_dim
    from functrans.lax.structural import iota as iota
    from functrans.lax.structural import pad as pad
    from functrans.lax.structural import reduce_and as reduce_and
    from functrans.lax.structural import reduce_max as reduce_max
    from functrans.lax.structural import reduce_min as reduce_min
    from functrans.lax.structural import reduce_or as reduce_or
    from functrans.lax.structural import reduce_prod as reduce_prod
    from functrans.lax.structural import reduce_sum as reduce_sum
    from functrans.lax.structural import reduce_xor as reduce_xor
    from functrans.lax.structural import reshape as reshape
    from functrans.lax.structural import rev as rev
    from functrans.lax.structural import slice as slice
    from functrans.lax.structural import slice_in_dim as slice_in_dim
    from functrans.lax.structural import sort as sort
    from functrans.lax.structural import sort_key_val as sort_key_val
    from functrans.lax.structural import split as split
    from functrans.lax.structural import squeeze as squeeze
    from functrans.lax.structural import transpose as transpose
    from functrans.lax.windows import padtype_to_pads as padtype_to_pads
    from functrans.lax.windows import reduce as reduce
    from functrans.lax.windows import reduce_window as reduce_window
    from functrans.numpy import abs as abs
    from functrans.numpy import acos as acos
    from functrans.numpy import acosh as acosh
    from functrans.numpy import add as add
    from functrans.numpy import asin as asin
    from functrans.numpy import asinh as asinh
    from functrans.numpy import atan as atan
    from functrans.numpy import atan2 as atan2
    from functrans.numpy import atanh as atanh
    from functrans.numpy import bitwise_and as bitwise_and
    from functrans.numpy import bitwise_not as bitwise_not
    from functrans.numpy import bitwise_or as bitwise_or
    from functrans.numpy import bitwise_xor as bitwise_xor
    from functrans.numpy import broadcast_shapes as broadcast_shapes
    from functrans.numpy import cbrt as cbrt
    from functrans.numpy import ceil as ceil
    from functrans.numpy import conj as conj
    from functrans.numpy import cos as cos
    from functrans.numpy import cosh as cosh
    from functrans.numpy import equal as eq
    from functrans.numpy import exp as exp
    from functrans.numpy import exp2 as exp2
    from functrans.numpy import expm1 as expm1
    from functrans.numpy import floor as floor
    from functrans.numpy import fmod as rem
    from functrans.numpy import full_like as full_like
    from functrans.numpy import greater as gt
    from functrans.numpy import greater_equal as ge
    from functrans.numpy import imag as imag
    from functrans.numpy import isfinite as is_finite
    from functrans.numpy import left_shift as shift_left
    from functrans.numpy import less as lt
    from functrans.numpy import less_equal as le
    from functrans.numpy import log as log
    from functrans.numpy import log1p as log1p
    from functrans.numpy import maximum as max
    from functrans.numpy import minimum as min
    from functrans.numpy import multiply as mul
    from functrans.numpy import negative as neg
    from functrans.numpy import nextafter as nextafter
    from functrans.numpy import not_equal as ne
    from functrans.numpy import power as pow
    from functrans.numpy import real as real
    from functrans.numpy import reciprocal as reciprocal
    from functrans.numpy import right_shift as shift_right_arithmetic
    from functrans.numpy import sign as sign
    from functrans.numpy import sin as sin
    from functrans.numpy import sinh as sinh
    from functrans.numpy import sqrt as sqrt
    from functrans.numpy import square as square
    from functrans.numpy import subtract as sub
    from functrans.numpy import tan as tan
    from functrans.numpy import tanh as tanh
    from functrans.numpy import tile as tile
    from functrans.primitives.dynamic_slicing import dynamic_slice as dynamic_slice
    from functrans.primitives.dynamic_slicing import dynamic_update_slice as dynamic_update_slice
    from functrans.primitives.sorting import top_k as top_k
    from functrans.scipy.special import betainc as betainc
    from functrans.scipy.special import digamma as digamma
    from functrans.scipy.special import erf as erf
    from functrans.scipy.special import erfc as erfc
    from functrans.scipy.special import erfinv as erf_inv
    from functrans.scipy.special import expit as logistic
    from functrans.scipy.special import gammainc as igamma
    from functrans.scipy.special import gammaincc as igammac
    from functrans.scipy.special import gammaln as lgamma
    from functrans.scipy.special import i0e as bessel_i0e
    from functrans.scipy.special import i1e as bessel_i1e
    from functrans.scipy.special import polygamma as polygamma
    from functrans.scipy.special import zeta as zeta
    from functrans.solvers.custom_root import custom_root as custom_root
    from functrans.solvers.linear_solve import custom_linear_solve as custom_linear_solve

_PLACES = _places_in(__file__)
__all__ = sorted(_PLACES)
__dir__ = _listing(__all__)


def __getattr__(name: str) -> _Any:
    """Import what a public name stands for, at first use."""
    if name not in _PLACES:
        raise _missing(__name__, name)
    value = globals()[name] = _imported(*_PLACES[name])
    return value
