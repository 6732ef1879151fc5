"""What stands for Python's numbers in twins: ``math``, ``cmath``, ``statistics``, ``float()``, ...

Every function gives what Python gives for numbers, and for traced values what functrans's function
of the same meaning gives, so that they stay traced. Where Python needs the number (``int``,
``range``, an index), a traced value is asked for it, as everywhere.

Here: the functions. Not here: how calls of types are told from types (``plain.twins``).

Layer: ``plain``.
"""

from __future__ import annotations

import builtins
import cmath
import functools
import math
import statistics
import struct
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

import functrans.numpy as fnp
from functrans.arrays.callers import is_plain_code
from functrans.arrays.masked import MaskedSelection
from functrans.arrays.python_values import is_python_number, made_python_number, python_number
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer, standing
from functrans.core.source import here
from functrans.core.values import Array, Operand
from functrans.errors import ConcretizationError
from functrans.passes.layouts import plain_value
from functrans.passes.recording import RecordingTracer
from functrans.passes.staging import has_answer
from functrans.plain.kinds import class_of, exemplar
from functrans.plain.libraries import Proxy
from functrans.plain.marked import CALLED_TYPES, called
from functrans.plain.memory import (
    Buffer,
    any_traced,
    holds_tracer,
    is_traced_number,
    number_of,
    run_through,
    settled,
)
from functrans.plain.numpy_names import ScalarType
from functrans.plain.readers import reading
from functrans.plain.standins import StandIn, original_class
from functrans.plain.twins import (
    Names,
    builtin_twins,
    identity_of,
    is_beside,
    made_by_twins,
    original_of,
    register,
    registered,
    twin,
)


def _traced(original: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """A function of Python, which is another one for traced values."""
    gives_numbers = original.__module__ != "statistics"

    @functools.wraps(original)
    def call(*args: Any, **kwargs: object) -> Any:
        if len(args) == 1 and not kwargs and _is_known_float(args[0]):  # the same, quickly
            original(args[0]._value)
            result = own(*args)
            return _of_python(result) if gives_numbers else result
        args, kwargs = settled(tuple(map(run_through, args))), settled(kwargs)
        if not holds_tracer(args) and not holds_tracer(kwargs):
            return original(*args, **kwargs)
        known, options = _known(args), _known(kwargs)
        is_known = known is not None and options is not None
        if is_known:
            original(*known, **options)  # it raises what Python raises
        result = own(*args, **kwargs)
        if not is_known and original.__module__ == "math":
            _raise_as_python(original, args, result)
        return _of_python(result) if gives_numbers else result

    return call


def _is_known_float(x: Operand) -> bool:
    return type(x) is RecordingTracer and type(x._value) is float


def _known(value: object) -> Any:
    """Arguments with the plain numbers of traced ones; ``None`` where they are not known."""
    if isinstance(value, Tracer):
        plain = plain_value(value)
        return plain.item() if isinstance(plain, np.ndarray) and not plain.ndim else plain
    if isinstance(value, (list, tuple)):
        items = list(map(_known, value))
        return None if any(map(_is_unknown, items, value)) else items
    if type(value) is dict and value:
        items = _known(list(value.values()))
        return None if items is None else dict(zip(value, items, strict=True))
    return value


def _is_unknown(plain: Array, value: Array) -> bool:
    return plain is None and value is not None


def _of_python(result: Operand) -> Any:
    """What a function of ``math`` or ``cmath`` gives: numbers of Python, traced or not."""
    if type(result) is RecordingTracer and not result.shape:
        return made_python_number(result)
    if isinstance(result, tuple):
        return tuple(map(_of_python, result))
    if isinstance(result, np.generic):
        return result.item()
    return python_number(result) if isinstance(result, Tracer) and not result.shape else result


_MAY_OVERFLOW = frozenset(
    {"cosh", "exp", "exp2", "expm1", "gamma", "ldexp", "lgamma", "pow", "sinh"}
)


def _raise_as_python(original: Callable[..., Any], args: tuple[Any, ...], result: Array) -> None:
    """Where a trace answers questions and code may catch errors: those that Python raises."""
    if not isinstance(result, Tracer) or result.dtype.kind != "f" or not has_answer(result):
        return
    if not _may_be_caught() or bool(fnp.isfinite(result)):
        return
    if bool(fnp.isnan(result)):
        if not any(bool(fnp.isnan(x)) for x in args):
            raise ValueError("math domain error")
    elif all(bool(fnp.isfinite(x)) for x in args):
        is_pole = original.__name__ in ("gamma", "lgamma", "pow") and bool(args[0] <= 0)
        if original.__name__ in _MAY_OVERFLOW and not is_pole:
            raise OverflowError("math range error")
        raise ValueError("math domain error")


def _may_be_caught() -> bool:
    """Whether a function of plain code that is being called has a ``try`` or ``with``."""
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        if is_plain_code(frame) and frame.f_code.co_exceptiontable:
            return True
        frame = frame.f_back
    return False


def _number(x: Any) -> Any:
    """A traced array of one element as a number of Python, as ``float`` takes it."""
    if isinstance(x, Tracer) and x.shape:
        if math.prod(x.shape) != 1:
            raise TypeError(f"only length-1 arrays can be converted to Python scalars{here()}")
        x = fnp.reshape(x, ())
    return python_number(x) if isinstance(x, Tracer) and not _is_known_float(x) else x


def _of_numbers(function: Callable[..., Any]) -> Callable[..., Any]:
    def apply(*args: object) -> Any:
        return function(*map(_number, args))

    return apply


def _log(x: Array, base: object = None) -> Array:
    logarithm = fnp.log(_number(x))
    return logarithm if base is None else logarithm / fnp.log(_number(base))


def _integer(name: str) -> Callable[[Any], int]:
    def apply(x: Any) -> int:
        x = _number(x)
        return int(getattr(fnp, name)(x)) if isinstance(x, Tracer) else getattr(math, name)(x)

    return apply


def _special(name: str) -> Callable[..., Any]:
    def apply(*args: object) -> Any:
        return getattr(deferred.scipy_names.namespace.special, name)(*map(_number, args))

    return apply


def _isclose(a: Any, b: Any, *, rel_tol: Any = 1e-9, abs_tol: Any = 0.0) -> Any:
    return abs(a - b) <= fnp.maximum(rel_tol * fnp.maximum(abs(a), abs(b)), abs_tol)


def _vector(values: Any) -> Array:
    return fnp.asarray(list(values))


def _fsum(values: object) -> Any:
    return fnp.sum(_vector(values))


def _math_prod(values: object, *, start: object = 1) -> Array:
    return fnp.prod(_vector(values)) * start


def _dist(p: object, q: object) -> Any:
    return fnp.linalg.norm(_vector(p) - _vector(q))


def _math_hypot(*coordinates: Array) -> Array:
    return (
        fnp.linalg.norm(_vector(coordinates)) if len(coordinates) > 2 else fnp.hypot(*coordinates)
    )


def _sumprod(p: object, q: object) -> Any:
    return fnp.dot(_vector(p), _vector(q))


_SAME_NAME = (
    "exp", "expm1", "log1p", "log2", "log10", "sqrt", "cbrt", "exp2", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "fabs", "copysign", "degrees", "radians", "isnan", "isinf", "isfinite", "fmod",
    "modf", "frexp", "ldexp", "nextafter",
)  # fmt: skip
_OTHER_NAME = {
    "asin": "arcsin", "acos": "arccos", "atan": "arctan", "atan2": "arctan2", "asinh": "arcsinh",
    "acosh": "arccosh", "atanh": "arctanh", "pow": "power",
}  # fmt: skip

MATH: dict[str, Callable[..., Any]] = {
    **{name: _of_numbers(getattr(fnp, name)) for name in _SAME_NAME},
    **{name: _of_numbers(getattr(fnp, own)) for name, own in _OTHER_NAME.items()},
    **{name: _integer(name) for name in ("floor", "ceil", "trunc")},
    **{name: _special(name) for name in ("erf", "erfc", "gamma")},
    "lgamma": _special("gammaln"),
    "log": _log,
    "hypot": _math_hypot,
    "fsum": _fsum,
    "prod": _math_prod,
    "dist": _dist,
    "sumprod": _sumprod,
    "isclose": _isclose,
    "remainder": lambda x, y: _number(x) - _number(y) * fnp.rint(_number(x) / _number(y)),
    "ulp": _of_numbers(fnp.spacing),
    "fma": lambda x, y, z: x * y + z,
}
_OF_COMPLEX = ("exp", "sqrt", "log10", "sin", "cos", "tan", "sinh", "cosh", "tanh")


def _complex_function(name: str) -> Callable[[Any], Any]:
    own = getattr(fnp, _OTHER_NAME.get(name, name))
    return lambda z: own(_number(z) + 0j)


CMATH: dict[str, Callable[..., Any]] = {
    **{name: _complex_function(name) for name in _OF_COMPLEX},
    **{name: _complex_function(name) for name in _OTHER_NAME if name not in ("atan2", "pow")},
    "log": lambda z, base=None: _log(_number(z) + 0j, base),
    "phase": lambda z: fnp.angle(_number(z)),
    "polar": lambda z: (abs(_number(z)), fnp.angle(_number(z))),
    "rect": lambda r, phi: _number(r) * fnp.exp(1j * _number(phi)),
    "isnan": _of_numbers(fnp.isnan),
    "isinf": _of_numbers(fnp.isinf),
    "isfinite": _of_numbers(fnp.isfinite),
    "isclose": _isclose,
}
STATISTICS: dict[str, Callable[..., Any]] = {
    "mean": lambda data: fnp.mean(_vector(data)),
    "fmean": lambda data, weights=None: fnp.average(
        _vector(data), weights=None if weights is None else _vector(weights)
    ),
    "geometric_mean": lambda data: fnp.exp(fnp.mean(fnp.log(_vector(data)))),
    "harmonic_mean": lambda data: 1 / fnp.mean(1 / _vector(data)),
    "median": lambda data: fnp.median(_vector(data)),
    "variance": lambda data, xbar=None: fnp.var(_vector(data), ddof=1),
    "stdev": lambda data, xbar=None: fnp.std(_vector(data), ddof=1),
    "pvariance": lambda data, mu=None: fnp.var(_vector(data)),
    "pstdev": lambda data, mu=None: fnp.std(_vector(data)),
    "covariance": lambda x, y: fnp.cov(_vector(x), _vector(y))[0, 1],
    "correlation": lambda x, y: fnp.corrcoef(_vector(x), _vector(y))[0, 1],
}

NUMBERS: dict[types.ModuleType, dict[str, Callable[..., Any]]] = {
    math: MATH,
    cmath: CMATH,
    statistics: STATISTICS,
}
"""Modules of Python with functions of numbers: what their functions are for traced values."""


# builtins -----------------------------------------------------------------------------------------


def _float(x: Any = 0.0, /) -> Any:
    """``float(x)``: a traced number is itself, in double precision."""
    if _is_known_float(x):
        return x
    if is_traced_number(x):
        x = number_of(_number(settled(x)))
        if x.dtype.kind == "c":
            raise TypeError(f"float() argument must be a real number, not complex{here()}")
        return x if x.dtype == np.float64 else python_number(x.astype(np.float64))
    return float(x)


def _complex(*args: Any, **kwargs: Any) -> Array | complex:
    """``complex(x, y)``, likewise."""
    parts = list(map(settled, (*args, *kwargs.values())))
    if any(map(is_traced_number, parts)):
        parts = list(map(_number, parts))
        return parts[0] + 1j * (parts[1] if len(parts) > 1 else 0.0)  # of numbers of Python
    return complex(*args, **kwargs)


def _type(*args: Any, **kwargs: object) -> type:
    """``type(x)``: of an object from outside, the class by which twins know it."""
    if len(args) == 1 and not kwargs:
        value = args[0]
        is_known = isinstance(value, (Tracer, Buffer, MaskedSelection, type))
        kind = class_of(value) if is_known else value.__class__
        other = registered(kind)
        return other if type(other) in (StandIn, ScalarType) else kind
    if len(args) == 3:
        args = args[0], tuple(map(original_class, args[1])), args[2]
    return type(*args, **kwargs)


def _of_memory(kind: type) -> Callable[..., Any]:
    """``memoryview``, ``bytes`` or ``bytearray``, which read the memory of an array."""

    @functools.wraps(kind, updated=())
    def call(*args: object, **kwargs: object) -> Any:
        if any_traced(args):
            raise ConcretizationError(
                f"{kind.__name__}() of an array that holds traced values was asked{here()}: their "
                "bits are not known. Write the function without it, or call that code by "
                "ft.external"
            )
        return kind(*args, **kwargs)

    return call


def _extreme(original: Callable[..., Any], own: Callable[..., Any]) -> Callable[..., Any]:
    """``max`` or ``min``: of traced numbers, NumPy's, whose rule at ties is declared."""

    @functools.wraps(original)
    def call(*args: Any, **kwargs: object) -> Any:
        values = settled(list(args[0]) if len(args) == 1 else list(args))
        is_traced = any(isinstance(x, Tracer) for x in values)
        if is_traced and kwargs.keys() <= {"default"} and not any(map(np.ndim, values)):
            result = functools.reduce(own, values)
            return _of_python(result) if all(map(is_python_number, values)) else result
        if len(args) == 1:
            return original(values, **kwargs)
        return original(*values, **kwargs)

    return call


def _plain_kinds(kinds: object) -> Any:
    if isinstance(kinds, tuple):
        return tuple(map(_plain_kinds, kinds))
    if isinstance(kinds, ScalarType):
        return kinds.kind
    if isinstance(kinds, type):
        original = original_of(kinds)
        return kinds if original is not kinds and is_beside(original) else original
    return kinds if hasattr(type(kinds), "__instancecheck__") else original_of(kinds)


def _flat(kinds: object) -> list[Any]:
    if isinstance(kinds, tuple):
        return [kind for part in kinds for kind in _flat(part)]
    return [kinds]


def _isinstance(value: Array | complex, kinds: Any, /) -> bool:
    """``isinstance``: traced values are of the classes that their values have."""
    kinds = _plain_kinds(kinds)
    if not isinstance(value, (Tracer, Buffer, MaskedSelection)):
        return isinstance(value, kinds)
    example = exemplar(value)
    return any(
        isinstance(example, kind) or (_may_look(kind) and isinstance(value, kind))
        for kind in _flat(kinds)
    )


_OF_PYTHON = frozenset({"builtins", "abc", "typing", "types", "functrans.plain.standins"})


def _may_look(kind: object) -> bool:
    """Whether a class answers for itself what its instances are, or is one of functrans."""
    return type(kind).__module__ not in _OF_PYTHON or kind.__module__.startswith("functrans.")


def _hasattr(value: Array, name: str, /) -> bool:
    """``hasattr``, likewise."""
    return hasattr(exemplar(value), name)


_missing = object()


def _getattr(value: object, name: str, default: Any = _missing, /) -> Callable[..., Any]:
    """``getattr``, likewise."""
    if isinstance(value, Tracer) and not hasattr(exemplar(value), name):
        value = exemplar(value)
    return getattr(value, name) if default is _missing else getattr(value, name, default)


def _text(function: Any) -> Callable[..., Any]:
    """``str`` or ``repr``: of the number, where it is known."""

    @functools.wraps(function, updated=())
    def call(*args: object, **kwargs: object) -> Any:
        if len(args) == 1 and not kwargs and _is_traced_inside(args[0]):
            return function(_shown(args[0]))
        return function(*args, **kwargs)

    return call


def _is_traced_inside(value: object) -> bool:
    return holds_tracer(settled(value))


def _shown(value: Any) -> Any:
    """A value with plain numbers in place of traced ones, for a text."""
    value = settled(value)
    if isinstance(value, Tracer):
        plain = value._concrete("format()")
        if isinstance(exemplar(value), np.ndarray):
            return np.asarray(plain)
        return plain[()] if isinstance(plain, np.ndarray) else plain
    if isinstance(value, MaskedSelection):
        return _shown(standing(value))
    if type(value) in (list, tuple):
        return type(value)(map(_shown, value))
    return {key: _shown(item) for key, item in value.items()} if type(value) is dict else value


@functools.wraps(print)
def _print(*args: Any, **kwargs: Any) -> None:
    """``print``, which shows traced values as such where they are not known."""
    print(*[_printed(settled(x)) if _is_traced_inside(x) else x for x in args], **kwargs)


def _printed(value: object) -> Any:
    try:
        return _shown(value)
    except ConcretizationError:
        return repr(value)


def _issubclass(cls: Any, kinds: object, /) -> bool:
    return issubclass(_plain_kinds(cls), _plain_kinds(kinds))


def _map(function: Any, *iterables: Any) -> Any:
    """``map``: of a type of Python, its twin."""
    return map(_CALLED.get(function, function) if _is_hashable(function) else function, *iterables)


def _is_hashable(value: object) -> bool:
    return type(value).__hash__ is not None


def _globals() -> dict[str, Any]:
    """The globals of the module itself."""
    own = sys._getframe(1).f_globals
    return own.original if isinstance(own, Names) else own


_python_import = builtins.__import__


def _import(
    name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
) -> Any:
    """An ``import`` statement in a function: it gives the twin of a module."""
    if isinstance(globals, Names):
        globals = globals.original
    return twin(_python_import(name, globals, locals, fromlist, level))


def _super(cls: Any, *args: object) -> Any:
    """``super``: of the twin of a class, where an object is of it."""
    kind = args[0] if args and isinstance(args[0], type) else type(args[0]) if args else cls
    original = original_of(cls)
    return super(cls if is_beside(original) and cls in type.mro(kind) else original, *args)


_CALLED: dict[Any, Callable[..., Any]] = {
    float: _float,
    complex: _complex,
    type: _type,
    str: _text(str),
    super: _super,
    **{kind: _of_memory(kind) for kind in (memoryview, bytes, bytearray)},
}


def install() -> None:
    """Make the tables."""
    for module, table in NUMBERS.items():
        names = {}
        for name in dir(module):
            value = getattr(module, name)
            names[name] = _traced(value, table[name]) if name in table else value
            if name in table:
                register(value, names[name])
        register(module, Proxy(module, names))
    names = {name: reading(getattr(struct, name)) for name in _OF_STRUCT}
    for name, function in names.items():
        register(getattr(struct, name), function)
    register(struct, Proxy(struct, {**vars(struct), **names}))
    builtin_twins.update(
        {
            "max": _extreme(max, fnp.maximum),
            "min": _extreme(min, fnp.minimum),
            "isinstance": _isinstance,
            "hasattr": _hasattr,
            "getattr": _getattr,
            "repr": _text(repr),
            "print": _print,
            "issubclass": _issubclass,
            "map": _map,
            "id": identity_of,
            "globals": _globals,
            "__import__": _import,
            "__build_class__": _build_class,
            **{called(kind): _CALLED[getattr(builtins, kind)] for kind in CALLED_TYPES},
        }
    )
    for name in _VALUES:
        register(getattr(builtins, name), builtin_twins[name])


_VALUES = (
    "max", "min", "isinstance", "hasattr", "getattr", "repr", "print", "issubclass", "map",
    "globals", "id",
)  # fmt: skip
"""Functions of Python that are their twins wherever they are met: defaults, items."""


_OF_STRUCT = ("pack", "pack_into", "unpack", "unpack_from", "iter_unpack")


def _build_class(*args: object, **kwargs: object) -> Any:
    result = builtins.__build_class__(*map(original_class, args), **kwargs)
    made_by_twins.add(result)
    return result


def has_twin(name: str) -> bool:
    """Whether a function of Python, or a call of one of its types, is another one in twins."""
    return name in builtin_twins or called(name) in builtin_twins
