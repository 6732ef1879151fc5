"""The recording trace: values and nodes, for reverse mode and linearization.

Here: ``RecordingTrace`` and its tracer. The user's function runs on values, so that Python's
``if``, ``while`` and ``int`` work; each differentiable operation leaves a node. Not here: what a
node keeps and how it is pulled back (``passes.nodes``, ``passes.pullback``).

The values may be tracers of an enclosing trace; the same code then builds programs.

Layer: ``passes``.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from sys import getrefcount
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.core.avals import WEAK_DTYPES, ShapedArray
from functrans.core.boundary import ERRORS, warn_at_user
from functrans.core.dispatch import Tracer, elementwise
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.source import capture
from functrans.core.state import replayed
from functrans.passes.cotangents import zeros
from functrans.passes.nodes import SOLE_REFERENCES, Node, detached, is_writable, kept, record
from functrans.passes.staging import may_change
from functrans.passes.value_tracers import (
    OBJECT,
    ValueTrace,
    ValueTracer,
    is_floating,
    object_array,
    raise_clearer,
)
from functrans.primitives.slicing import BasicIndex, slice_p, slice_update_p


class RecordingTracer(ValueTracer):
    """Stand-in for an array that has its value and the node of its derivative."""

    __slots__ = ()
    _trace: RecordingTrace
    if TYPE_CHECKING:
        _node: Node | None
    else:
        _node = ValueTracer._beside


class RecordingTrace(ValueTrace):
    """Evaluates every operation and keeps what its derivative needs.

    Attributes:
      lifts: whether an array that a derivative will read becomes a constant of the enclosing
        program, if there is one. If not, the array itself is saved: for programs that capture none.
      copies: by ``id`` of an array that may change, a weak reference to it and one to its last
        copy.
    """

    __slots__ = ("copies", "lifts")
    tracer = RecordingTracer
    is_outermost = False  # outside of all programs, also of those that are being staged

    def __init__(self, label: str, lifts: bool = True) -> None:
        super().__init__(label)
        self.lifts = lifts
        self.copies: dict[int, tuple[Any, Any]] = {}

    def keep(self, value: Any) -> Any:
        """What is saved of a constant operand: something that does not change.

        A copy of an array that its owner may write to; of a large one that was not written to since
        the last copy, that copy. Within a program its constant, which stays a hidden input.
        """
        if type(value) is not np.ndarray:
            return kept(value)
        trace = None if self.is_outermost else self.parent
        while trace is not None:
            if trace.is_staging:
                return trace.lift(value) if self.lifts and may_change(value) else value
            trace = trace.parent
        if value.nbytes <= _CHEAP_COPY_BYTES or not value.flags.writeable:
            return kept(value)
        known = self.copies.get(id(value))
        if known is not None and known[0]() is value:
            copy = known[1]()
            if copy is not None and has_same_bits(copy, value):
                return copy
        if (copy := kept(value)) is not value:
            self.copies[id(value)] = (weakref.ref(value), weakref.ref(copy))
        return copy

    def _source(self) -> Any:
        """The user's line, or that of the equation that a pass applies again."""
        origin = None if self.parent is None else replayed.get()
        return capture(4) if origin is None else origin[0]

    def elementwise(self, primitive: Primitive, operands: tuple[Any, ...]) -> Any:
        """Evaluate an elementwise operation and record it."""
        family = primitive.elementwise
        assert family is not None
        values = []
        parents = []
        needed = 0
        for operand, reads in zip(operands, family.reads):  # noqa: B905  # hot
            if type(operand) is RecordingTracer and operand._trace is self:
                values.append(operand._value)
                node = operand._node
                parents.append(node)
                if node is not None:
                    needed |= reads
            else:
                values.append(operand)
                parents.append(None)
        token = warn_at_user()
        try:
            is_plain = self.parent is None  # no enclosing trace
            out = family.function(*values) if is_plain else elementwise(primitive, *values)
        except (ValueError, TypeError) as error:
            raise_clearer(primitive, values, {}, error)
            raise
        finally:
            if token is not None:
                ERRORS.reset(token)
        if primitive.jvp is nondifferentiable:
            return out
        if not needed:
            return RecordingTracer(self, out, None) if is_floating(out) else out
        saved: list[Any] = []
        bit = 1
        for value, parent in zip(values, parents):  # noqa: B905  # hot
            if not needed & bit:
                saved.append(None)
            elif parent is None and type(value) not in _SCALARS:
                saved.append(self.keep(value))
            else:
                saved.append(value)
            bit <<= 1
        saved.append(out if needed & bit else None)
        if type(out) is float:
            shape, dtype = (), _FLOAT
        else:
            try:
                shape = out.shape
                dtype = out.dtype
            except AttributeError:
                shape, dtype = (), WEAK_DTYPES[type(out)]
        if dtype is OBJECT:
            raise object_array(primitive)
        source = capture() if self.parent is None else self._source()  # the call costs 5 %
        return RecordingTracer(
            self, out, Node(primitive, _NO_PARAMS, saved, tuple(parents), shape, dtype, source)
        )

    def update_in_place(self, x: RecordingTracer, v: Any, index: BasicIndex) -> bool:
        """Write into the array of a tracer if nothing else can see it; whether it was done.

        This makes filling an array in a loop linear. The array must have been made by this trace
        (it is no input), own its memory, and be held by nothing but the tracer: an array that is a
        view of it, or a node that saved it, counts as a reference.
        """
        if (
            getrefcount(x._value) > SOLE_REFERENCES
            or not is_writable(x._value)
            or (isinstance(v, Tracer) and not (type(v) is RecordingTracer and v._trace is self))
            or (x._alias is not None and x._alias.base is not None)
            or (x._node is not None and x._node.primitive is None)
        ):  # fmt: skip
            return False
        value = x._value
        v_value, v_node = (v._value, v._node) if type(v) is RecordingTracer else (v, None)
        if isinstance(v_value, Tracer):
            return False
        value[index.entries] = v_value
        if x._node is not None or v_node is not None:
            saved = (  # zero tangents of constants
                None if x._node is not None else zeros(ShapedArray(value.shape, value.dtype)),
                None if v_node is not None else value.dtype.type(0),
            )
            x._node = Node(  # type: ignore[misc]  # another name of a slot
                slice_update_p, {"index": index}, saved, (x._node, v_node),
                value.shape, value.dtype, self._source(),
            )  # fmt: skip
        return True

    def process(
        self, primitive: Primitive, operands: tuple[Any, ...], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Evaluate an operation and record it."""
        if primitive.elementwise is not None and not params:
            return (self.elementwise(primitive, operands),)
        values, parents = self.taken_apart(operands)
        try:
            outs, nodes = record(
                primitive,
                values,
                params,
                tuple(parents),
                self._source(),
                self.parent is None,
                self.keep,
            )
        except (ValueError, TypeError, IndexError) as error:
            raise_clearer(primitive, values, params, error)
            raise
        if primitive is slice_p:
            outs = (detached(outs[0], values[0]),)
        if len(outs) == 1:
            out, node = outs[0], nodes[0]
            if node is not None or is_floating(out):
                return (RecordingTracer(self, out, node),)
            return outs
        return tuple(
            [
                RecordingTracer(self, out, node) if node is not None or is_floating(out) else out
                for out, node in zip(outs, nodes, strict=True)
            ]
        )


_CHEAP_COPY_BYTES = 2048


def has_same_bits(first: Any, second: Any) -> bool:
    """Whether two arrays of one shape and dtype hold the same, as far as that is cheap to tell."""
    if first.strides != second.strides or not first.flags.forc:
        return False
    if first.flags.f_contiguous:
        first, second = first.T, second.T
    word = {2: np.uint16, 4: np.uint32}.get(first.itemsize, np.uint8)
    if first.itemsize % 8 == 0:
        word = np.uint64
    return bool(np.array_equal(first.view(word), second.view(word)))


_SCALARS = frozenset({float, int, complex, bool, np.float64, np.float32})
_FLOAT = WEAK_DTYPES[float]
_NO_PARAMS: Mapping[str, Any] = {}
