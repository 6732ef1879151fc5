"""Abstract values: what is known of an array without its data.

Here: ``ShapedArray``, ``Tape``, the symbolic ``Zero``, and ``aval_of`` for plain values. Not here:
programs (``core.jaxpr``), tracers (``core.dispatch``).

A Python scalar is *weak*, as in NumPy 2 (NEP 50): it takes the dtype of the array it meets.

Layer: ``core``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functrans.records import dataclass

_SHORT_KINDS = {"f": "f", "c": "c", "i": "i", "u": "u"}
WEAK_DTYPES: dict[type, np.dtype] = {
    bool: np.dtype(np.bool_), int: np.dtype(np.int64),
    float: np.dtype(np.float64), complex: np.dtype(np.complex128),
}  # fmt: skip
PYTHON_SCALARS = frozenset(WEAK_DTYPES)


def dtype_name(dtype: np.dtype) -> str:
    """Short name of a dtype as printed in programs: ``f64``, ``c128``, ``bool``, ``float0``."""
    if dtype.kind in _SHORT_KINDS:
        return f"{_SHORT_KINDS[dtype.kind]}{8 * dtype.itemsize}"
    if dtype.name == "bfloat16":
        return "bf16"
    if dtype.names is not None:  # float0
        return dtype.names[0]
    return dtype.name


def shape_text(shape: tuple[int, ...]) -> str:
    """Write a shape as it stands in printed avals: ``3,4``."""
    return ",".join(map(str, shape))


@dataclass(frozen=True, slots=True)
class ShapedArray:
    """Shape and dtype of an array.

    Attributes:
      shape: extents.
      dtype: NumPy dtype, native byte order.
      weak: the value is a Python scalar, which does not take part in promotion.
    """

    shape: tuple[int, ...]
    dtype: np.dtype
    weak: bool = False

    def __str__(self) -> str:
        """``f64[3,4]``; a weak scalar is ``f64*[]``."""
        return f"{dtype_name(self.dtype)}{'*' if self.weak else ''}[{shape_text(self.shape)}]"

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    def strong(self) -> ShapedArray:
        """The same aval without the weak flag."""
        return ShapedArray(self.shape, self.dtype) if self.weak else self


@dataclass(frozen=True, slots=True)
class Tape:
    """A growable stack of values, one per iteration of a loop of unknown length.

    Attributes:
      element: aval of one entry; a tape of tapes belongs to a loop in a loop.
    """

    element: Aval

    def __str__(self) -> str:
        """``Tape[f64[3]]``."""
        return f"Tape[{self.element}]"

    @property
    def shape(self) -> tuple[Any, ...]:
        """Equal for equal tapes only: a tape has no extents."""
        return (self,)

    @property
    def dtype(self) -> np.dtype:
        """Dtype of the entries."""
        return self.element.dtype

    def strong(self) -> Tape:
        """The same aval without weak flags."""
        return Tape(self.element.strong())


Aval = ShapedArray | Tape


class Zero:
    """A symbolic zero tangent or cotangent.

    Attributes:
      aval: shape and dtype of the zero array it stands for.
    """

    __slots__ = ("aval",)

    def __init__(self, aval: Aval) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        """``Zero(f64[3])``."""
        return f"Zero({self.aval})"


def is_differentiable_dtype(dtype: np.dtype) -> bool:
    """Whether values of this dtype have tangents: floating and complex dtypes do."""
    return dtype.kind in "fc" or dtype.name == "bfloat16"


def aval_of_plain(value: Any) -> ShapedArray | None:
    """The aval of an ndarray, NumPy scalar or Python number; ``None`` for anything else."""
    cls = type(value)
    if cls is np.ndarray or isinstance(value, (np.ndarray, np.generic)):
        dtype = value.dtype
        if dtype.kind in "fciub" or dtype.name == "bfloat16":
            return ShapedArray(value.shape, dtype if dtype.isnative else dtype.newbyteorder("="))
        return None
    weak = WEAK_DTYPES.get(cls)
    if weak is not None:
        return ShapedArray((), weak, True)
    for python_type in (bool, int, float, complex):
        if isinstance(value, python_type):
            return ShapedArray((), WEAK_DTYPES[python_type], True)
    return None
