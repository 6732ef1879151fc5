"""A selection by a traced mask: ``x[mask]`` where it is not known how many elements that are.

Here: ``MaskedSelection``, which elementwise operations work on and which can be stored under the
same mask: ``x[mask] = np.log(x[mask])``, ``x[mask] *= 2``. Not here: how an index is taken apart
(``indexing``).

It holds the whole array; operations act on all of it, and storing takes what the mask selects.
Any other use asks which elements these are, in one place (``MaskedSelection.selection``): where the
trace of the mask can tell (specialised functions), an array of them stands for the selection from
then on, and does what arrays do.
Elements that are not selected are replaced by a harmless number first, so that a function which is
not defined there (``np.log(x[x > 0])``) neither warns nor makes NaN.

Layer: ``arrays`` (below it).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from functrans import pytrees as tree
from functrans.core.dispatch import Tracer, dtype_of, shape_of, standing
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ConcretizationError, ShapeError
from functrans.passes.staging import has_answer
from functrans.primitives import elementwise as ew
from functrans.primitives.structural import reshape


class MaskedSelection:
    """The elements that a traced mask selects, for elementwise use and storing.

    Attributes:
      array: the array selected from, or a function of it.
      mask: traced booleans.
      axis: the axis of ``array`` where those of the mask begin.
      known: the selected elements, once a use has asked for them; they stand for the selection from
        then on.
    """

    __slots__ = ("array", "axis", "key", "known", "mask")
    __array_priority__ = 2000.0

    def __init__(self, array: Array, mask: Tracer, axis: int, key: Any = None) -> None:
        self.array = array._twin() if isinstance(array, Tracer) else array
        self.mask = mask._twin()  # what is written to either later is not seen here
        self.axis = axis
        self.known: Any = None
        self.key = _key(mask) if key is None else key

    def wide_mask(self) -> Array:
        """The mask with axes of extent 1 for the axes behind it."""
        own = shape_of(self.mask)
        behind = len(shape_of(self.array)) - self.axis - len(own)
        return reshape(self.mask, own + (1,) * behind)

    def aligned(self, value: object) -> Any:
        """A value that meets the selection, so that it broadcasts against the whole array.

        Raises:
          ConcretizationError: it is a selection by another mask, or has as many elements as are
            selected, which is not known.
        """
        if isinstance(value, MaskedSelection):
            rank = len(shape_of(self.array))  # axes are matched from the last one on
            is_same = value.axis == self.axis and value.key == self.key
            if not is_same or len(shape_of(value.array)) != rank or value.known is not None:
                raise value.refused("combined with, or stored at, another mask")
            return value.array
        value = standing(value)
        if isinstance(value, (list, tuple)):
            value = np.asarray(value)
        own = shape_of(value)
        n_mask = len(shape_of(self.mask))
        rank = len(shape_of(self.array)) - n_mask + 1  # of the selection
        behind = rank - self.axis - 1
        if len(own) <= behind:
            return value
        if len(own) > rank or own[len(own) - behind - 1] != 1:
            raise self.refused(
                f"combined with an array of shape {own}, whose elements cannot be matched with "
                "selected ones"
            )
        split = len(own) - behind - 1
        return reshape(value, (*own[:split], *(1,) * n_mask, *own[split + 1 :]))

    def selection(self, what: str) -> Any:
        """The selected elements, where the trace of the mask can tell which they are.

        Args:
          what: the use that needs to know it, for messages.

        Raises:
          ConcretizationError: it cannot.
        """
        if self.known is None:
            self.known = self.array[self.index(what)]
        return self.known

    def index(self, what: str) -> Any:
        """The index that selects them; see ``selection``."""
        if not has_answer(self.mask):
            raise self.refused(what)
        return (*(slice(None),) * self.axis, known_mask(self.mask))

    @property
    def _standing(self) -> Any:
        """What functions of arrays take it for."""
        return self.selection("given to a function of arrays")

    def refused(self, what: str) -> ConcretizationError:
        """The error for a use that needs to know what is selected."""
        return ConcretizationError(
            f"a selection by the traced mask {self.mask!r} was {what}{here()}. How many elements "
            "it selects is not known while shapes and dtypes only are traced: it is good for "
            "elementwise operations and for storing under the same mask (m = x > 0; "
            "x[m] = np.log(x[m])). Use np.where(mask, f(x), y) (for tensors torch.where, or "
            "weights: (x * mask).sum() / mask.sum()), or the where= option of a "
            "reduction (np.sum(x, where=mask)), or let each mask have a program: jit with "
            "specialize=True."
        )

    def _apply(self, function: Callable[..., Any], *operands: object) -> MaskedSelection:
        selections = [x for x in operands if isinstance(x, MaskedSelection)]
        needs_elements = any(x.known is not None for x in selections)
        if not needs_elements:
            try:
                values = [self.array if x is self else self.aligned(x) for x in operands]
            except ConcretizationError:
                if not has_answer(self.mask):
                    raise
                needs_elements = True
        if needs_elements:
            return function(
                *[
                    x.selection("combined") if isinstance(x, MaskedSelection) else x
                    for x in operands
                ]
            )
        return MaskedSelection(function(*values), self.mask, self.axis, self.key)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *inputs: MaskedSelection, **options: object
    ) -> Any:
        """Ufuncs act elementwise."""
        if method != "__call__" or options or ufunc.nout != 1 or ufunc.signature is not None:
            inputs, options = _known((inputs, options), f"given to numpy.{ufunc.__name__}")
            return getattr(ufunc, method)(*inputs, **options)
        return self._apply(ufunc, *inputs)

    def __array_function__(
        self, function: Any, types: object, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        """Other functions need to know what is selected."""
        args, kwargs = _known((args, kwargs), f"given to numpy.{function.__name__}")
        return function(*args, **kwargs)

    def __array__(self, dtype: DTypeLike | None = None, copy: object = None) -> Any:
        """Of a selection of integers or booleans that are known; else refused."""
        return self.selection("converted to a plain array").__array__(dtype, copy)

    @property
    def dtype(self) -> np.dtype:
        """That of the array."""
        return dtype_of(self.array)

    def astype(self, dtype: np.dtype, *args: Any, **options: Any) -> Any:
        """The elements in another dtype; as of an array."""
        if self.known is not None:
            return self.known.astype(dtype, *args, **options)
        array = self.array.astype(dtype, *args, **options)
        return MaskedSelection(array, self.mask, self.axis, self.key)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.selection(f"asked for .{name}"), name)

    def __len__(self) -> int:
        return len(self.selection("asked for its length"))

    def __getitem__(self, index: Array | complex) -> Any:
        return self.selection("indexed")[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.selection("written to")[index] = value

    def __iter__(self) -> Any:
        return iter(self.selection("iterated over"))

    def __bool__(self) -> bool:
        return bool(self.selection("asked for its truth"))

    def __repr__(self) -> str:
        """``Traced<f64[3]>[Traced<bool[3]>]``."""
        return f"{self.array!r}[{self.mask!r}]"


def selected(x: Any, mask: Tracer, axis: int) -> MaskedSelection:
    """The selection of an array by a mask whose axes begin at ``axis``."""
    whole = MaskedSelection(x, mask, axis)
    kind = dtype_of(x).kind
    if kind == "b":
        return whole
    harmless = ew.where(whole.wide_mask(), x, 1 if kind in "iu" else 0.5)
    return MaskedSelection(harmless, mask, axis, whole.key)


def known_mask(mask: Any) -> np.ndarray:
    """The plain booleans of a mask that its trace can tell; the path depends on them."""
    return np.asarray(mask._concrete("index()"), bool)


def _known(values: object, what: str) -> Any:
    """Values with the selected elements in place of selections, in lists and tuples, too."""
    return tree.map(lambda x: x.selection(what) if isinstance(x, MaskedSelection) else x, values)


def _key(mask: Tracer) -> Any:
    """What identifies the contents of a traced mask."""
    inner: Any = mask
    while hasattr(inner, "_value"):
        inner = inner._value
    return getattr(inner, "_var", inner)


def _operator(function: Callable[..., Any]) -> tuple[Any, Any]:
    def forward(self: MaskedSelection, other: Any) -> Any:
        return self._apply(function, self, other)

    def reflected(self: MaskedSelection, other: int) -> MaskedSelection:
        return self._apply(function, other, self)

    return forward, reflected


def _in_place(function: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    def apply(self: MaskedSelection, other: Array | complex) -> Any:
        result = self._apply(function, self, other)
        if not isinstance(result, MaskedSelection):
            own = self.selection("written to")
            own[...] = result
        elif shape_of(result.array) != shape_of(self.array):
            raise ShapeError(
                f"a selection by a mask from an array of shape {shape_of(self.array)} was changed "
                f"in place{here()} by an operand that broadcasts it to {shape_of(result.array)}"
            )
        elif dtype_of(result.array) != dtype_of(self.array):
            raise TypeError(
                f"a selection of {dtype_of(self.array)} was changed in place to "
                f"{dtype_of(result.array)}{here()}; convert it first: x[mask].astype(float)"
            )
        else:
            self.array = result.array
        return self

    return apply


def _install_operators() -> None:
    """Python's operators; an augmented one changes the selection, which is then stored."""
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift",
        "rshift",
    ):  # fmt: skip
        function = getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
        forward, reflected = _operator(function)
        setattr(MaskedSelection, f"__{name}__", forward)
        setattr(MaskedSelection, f"__i{name}__", _in_place(function))
        setattr(MaskedSelection, f"__r{name}__", reflected)
    for name in ["eq", "ne", "lt", "le", "gt", "ge"]:
        setattr(MaskedSelection, f"__{name}__", _operator(getattr(operator, name))[0])
    for name in ["neg", "pos", "abs", "invert"]:
        function = getattr(operator, name)
        setattr(
            MaskedSelection,
            f"__{name}__",
            lambda self, function=function: self._apply(function, self),
        )
    for name, function in _OF_KNOWN.items():
        setattr(MaskedSelection, f"__{name}__", _of_known(name, function))


_OF_KNOWN: dict[str, Callable[..., Any]] = {
    "matmul": operator.matmul,
    "rmatmul": lambda x, other: other @ x,
    "imatmul": operator.imatmul,
    "divmod": divmod,
    "rdivmod": lambda x, other: divmod(other, x),
    "contains": operator.contains,
    "round": round,
    "int": int,
    "float": float,
    "complex": complex,
    "index": operator.index,
    "format": format,
    "copy": lambda x: x.copy(),
    "deepcopy": lambda x, memo: x.copy(),
}
"""What Python does with arrays that needs to know which elements are selected."""


def _of_known(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: MaskedSelection, *args: object) -> Any:
        return function(self.selection(f"given to Python's {name}"), *args)

    return method


_install_operators()
