"""Static values as JSON: parameters, literals, avals.

Here: ``encode_value`` and ``decode_value``. Not here: whole programs and files (``ir.serialize``),
the tables of primitives and records, in which names are looked up (``tables``).

``None``, booleans, integers, finite floats and strings stand for themselves, tuples are lists, and
all else is an object with one key, which names the kind::

    {"float": "nan"}  {"complex": [0.0, 1.0]}  {"bytes": "00ff"}  {"dtype": "float64"}
    {"scalar": ["float32", "0000803f"]}  {"aval": ["float64", [3], false]}  {"tape": [...]}
    {"slice": [0, null, 2]}  {"ellipsis": true}  {"primitive": "sin"}  {"jaxpr": 1}
    {"record": ["BasicIndex", [[0]]]}  {"object": 0}

Layer: ``ir``.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np

from functrans.core.avals import ShapedArray, Tape
from functrans.core.deferred import deferred
from functrans.core.jaxpr import Jaxpr
from functrans.core.primitive import Primitive
from functrans.errors import CacheFormatError, UnsupportedOperationError

_LARGEST_PLAIN_INT = 1 << 63

_own: dict[str, Primitive] = {}
"""Primitives of functrans by name, as far as was asked. Programs are hashed before they are
compiled for the first time; importing all primitives would be a fifth of that."""


def primitive_name(primitive: Primitive) -> str:
    """The name by which a file or a hash refers to a primitive.

    Raises:
      UnsupportedOperationError: the name does not say which primitive it is.
    """
    if not _is_own(primitive):
        raise UnsupportedOperationError(
            f"primitive {primitive.name} is not in the table of primitives, so that its name does "
            "not say what it does to readers of files and hashes; only functrans' own primitives "
            "can be written and hashed"
        )
    return primitive.name


def _is_own(primitive: Primitive) -> bool:
    """Whether a module of functrans lists it, which has been imported, as it made it."""
    if _own.get(primitive.name) is not primitive:
        package = __name__.partition(".")[0] + "."
        for name, module in list(sys.modules.items()):
            if name.startswith(package) and isinstance(module, ModuleType):  # else it is blocked
                _own.update({own.name: own for own in vars(module).get("PRIMITIVES", ())})
    return _own.get(primitive.name) is primitive


def primitive_named(name: str) -> Primitive:
    """The primitive of a name found in a file.

    Raises:
      CacheFormatError: there is none.
    """
    primitive: Primitive | None = deferred.primitives.get(name)
    if primitive is None:
        raise CacheFormatError(
            f"it uses primitive {name!r}, which this version of functrans does not have; read it "
            "with the version that wrote it"
        )
    return primitive


# encoding ---------------------------------------------------------------------------------------


class Unencodable(Exception):  # noqa: N818  # caught by every caller, never seen by users
    """A value has no encoding; carries the value."""

    def __init__(self, value: Any) -> None:
        super().__init__(value)
        self.value = value


def encode_value(
    value: Any, program: Callable[[Jaxpr], Any], stray: Callable[[Any], Any] | None = None
) -> Any:
    """A static value as JSON.

    Args:
      value: the value.
      program: what stands for a program.
      stray: what stands for a value that has no encoding (``{"object": ...}``).
    Raises:
      Unencodable: the value has no encoding and there is no ``stray``.
      UnsupportedOperationError: a primitive is not in the table.
    """
    cls = type(value)
    if value is None or cls is bool or cls is str:
        return value
    if cls is int:
        return value if abs(value) < _LARGEST_PLAIN_INT else {"int": hex(value)}
    if cls is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if cls is tuple:
        return [encode_value(item, program, stray) for item in value]
    if cls is Jaxpr:
        return {"jaxpr": program(value)}
    encoder = _ENCODERS.get(cls)
    if encoder is not None:
        return encoder(value)
    if isinstance(value, np.dtype):
        return {"dtype": dtype_text(value)}
    if isinstance(value, np.generic):
        return _encode_scalar(value)
    if deferred.records.get(cls.__name__) is cls:
        fields = [getattr(value, name) for name in cls.__slots__]
        return {"record": [cls.__name__, [encode_value(f, program, stray) for f in fields]]}
    if stray is not None:
        return stray(value)
    raise Unencodable(value)


def dtype_text(dtype: np.dtype) -> str:
    """Name of a numeric dtype: ``float64``, or ``>f8`` where the byte order is foreign."""
    if dtype.kind in "biufc":
        return dtype.name if dtype.isnative else dtype.str
    if dtype.name == "bfloat16":
        return dtype.name
    raise Unencodable(dtype)


def _encode_scalar(value: np.generic) -> dict[str, Any]:
    text = dtype_text(value.dtype)
    return {"scalar": [text, little_endian(np.asarray(value)).tobytes().hex()]}


def little_endian(array: np.ndarray) -> np.ndarray:
    """The array in little-endian byte order; itself if it has it."""
    if array.dtype.name == "bfloat16":
        array = array.view(np.uint16)
    return array.astype(array.dtype.newbyteorder("<"), copy=False)


def encode_aval(aval: object) -> dict[str, Any]:
    """An aval as JSON."""
    if type(aval) is Tape:
        return {"tape": encode_aval(aval.element)}
    if type(aval) is not ShapedArray:
        raise Unencodable(aval)
    return {"aval": [dtype_text(aval.dtype), list(aval.shape), aval.weak]}


def _encode_complex(value: complex) -> dict[str, Any]:
    return {"complex": [encode_value(part, _no_program) for part in (value.real, value.imag)]}


def _encode_slice(value: slice) -> dict[str, Any]:
    parts = (value.start, value.stop, value.step)
    return {"slice": [encode_value(part, _no_program) for part in parts]}


def _no_program(jaxpr: Jaxpr) -> Any:
    raise Unencodable(jaxpr)


_ENCODERS: Mapping[type, Callable[[Any], Any]] = {
    complex: _encode_complex,
    bytes: lambda value: {"bytes": value.hex()},
    slice: _encode_slice,
    type(Ellipsis): lambda value: {"ellipsis": True},
    ShapedArray: encode_aval,
    Tape: encode_aval,
    Primitive: lambda value: {"primitive": primitive_name(value)},
}


# decoding ---------------------------------------------------------------------------------------


def decode_value(
    encoded: object, program: Callable[[Any], Any], stray: Callable[[Any], Any]
) -> Any:
    """The value that :func:`encode_value` wrote.

    Args:
      encoded: parsed JSON.
      program: the program that an encoding stands for.
      stray: the value that an ``{"object": ...}`` stands for.
    Raises:
      CacheFormatError: the kind of value is unknown.
    """
    if isinstance(encoded, list):
        return tuple([decode_value(item, program, stray) for item in encoded])
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    if kind == "jaxpr":
        return program(content)
    if kind == "object":
        return stray(content)
    if kind == "record":
        name, fields = content
        if name not in deferred.records:
            raise CacheFormatError(f"it holds a parameter of unknown class {name!r}")
        return deferred.records[name](*[decode_value(item, program, stray) for item in fields])
    if kind not in _DECODERS:
        raise CacheFormatError(f"it holds a value of unknown kind {kind!r}")
    return _DECODERS[kind](content)


_DTYPES = {
    text: np.dtype(text)
    for dtype in map(np.dtype, "?bBhHiIlLqQefdgFDG")
    for text in (dtype.name, dtype.str, dtype.newbyteorder().str)
}


def decode_dtype(text: object) -> np.dtype:
    """The dtype of a name.

    Raises:
      CacheFormatError: there is no such dtype of numbers.
    """
    if text == "bfloat16":
        import ml_dtypes  # only where a program uses it

        return np.dtype(ml_dtypes.bfloat16)
    found = _DTYPES.get(text) if type(text) is str else None
    if found is None:
        raise CacheFormatError(f"it holds an unknown dtype, {text!r}")
    return found


def decode_aval(encoded: Any) -> Any:
    """The aval that :func:`encode_aval` wrote."""
    ((kind, content),) = encoded.items()
    if kind == "tape":
        return Tape(decode_aval(content))
    dtype, shape, weak = content
    if not all(type(extent) is int and extent >= 0 for extent in shape) or type(weak) is not bool:
        raise CacheFormatError(f"it holds an impossible shape, {shape!r}")
    return ShapedArray(tuple(shape), decode_dtype(dtype), weak)


def from_little_endian(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """The array of a dtype whose little-endian form was written."""
    if dtype.name == "bfloat16":
        return array.astype(np.uint16, copy=False).view(dtype)
    return array.astype(dtype, copy=False)


def _decode_scalar(content: Any) -> np.generic:
    text, data = content
    dtype = decode_dtype(text)
    stored = np.dtype(np.uint16) if dtype.name == "bfloat16" else dtype
    raw = np.frombuffer(bytes.fromhex(data), stored.newbyteorder("<"), count=1)
    return from_little_endian(raw, dtype)[0]


def _decode_part(encoded: object) -> Any:
    def refused(number: object) -> Any:
        raise ValueError(f"program {number!r} as a part of a number or slice")

    return decode_value(encoded, refused, refused)


_DECODERS: Mapping[str, Callable[[Any], Any]] = {
    "int": lambda content: int(content, 16),
    "float": float,
    "complex": lambda content: complex(*map(_decode_part, content)),
    "bytes": bytes.fromhex,
    "dtype": decode_dtype,
    "scalar": _decode_scalar,
    "slice": lambda content: slice(*map(_decode_part, content)),
    "ellipsis": lambda content: Ellipsis,
    "aval": lambda content: decode_aval({"aval": content}),
    "tape": lambda content: decode_aval({"tape": content}),
    "primitive": primitive_named,
}
