"""Methods of ``Tensor`` that concern its state: gradient, graph, hooks, conversion, copies.

Not here: how tensors print (``methods.printing``).

Layer: ``autograd``.
"""

from __future__ import annotations

import copy
import math
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from functrans.arrays.sparse import answer_to_scipy
from functrans.autograd import api
from functrans.autograd.composites import named
from functrans.autograd.dtypes import DTYPE_LIKE, given_dtype
from functrans.autograd.hooks import RemovableHandle, add_tensor_hook, made_by, retain
from functrans.autograd.labels import edge_of
from functrans.autograd.memory_order import is_dense
from functrans.autograd.methods.data import DATA
from functrans.autograd.methods.layouts import layout_of, viewed_layout
from functrans.autograd.methods.rows import (
    by_name,
    concrete,
    with_numpy_names,
)
from functrans.autograd.methods.shaping import axis_of
from functrans.autograd.modes import is_grad_enabled, modes
from functrans.autograd.nodes import GraphNode, LeafNode, shown
from functrans.autograd.promotion import to_dtype, torch_kind
from functrans.autograd.recording import (
    enter_session,
    node_of,
    with_only,
)
from functrans.autograd.refusals import asked
from functrans.autograd.tensors import Tensor, refuse_device
from functrans.autograd.views import detached
from functrans.autograd.writes import check_captured, check_read
from functrans.core.annotations import POST_ACCUMULATE_HOOK, TENSOR_HOOK
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import noted, shorten, warn
from functrans.core.dispatch import Tracer, bind
from functrans.core.source import here
from functrans.errors import ConcretizationError
from functrans.passes.pushing import PushingTracer
from functrans.primitives.structural import copy_p

# the graph ---------------------------------------------------------------------------------------


def _get_requires_grad(self: Tensor) -> bool:
    """Whether gradients flow to it."""
    return node_of(self) is not None


def _set_requires_grad(self: Tensor, value: bool) -> None:
    if not isinstance(value, bool):
        raise RuntimeError("requires_grad must be a bool")
    if value and not is_leaf(self):
        raise RuntimeError("you can only change requires_grad flags of leaf variables.")
    if value and not is_differentiable_dtype(self.dtype):
        raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
    requires_grad_(self, value)


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Say whether gradients are accumulated in this leaf.

    Raises:
      RuntimeError: it is no leaf, an inference tensor, or a tensor of integers.
    """
    if not requires_grad:
        if not is_leaf(self):
            raise RuntimeError(
                "you can only change requires_grad flags of leaf variables. If you want to use a "
                "computed variable in a subgraph that doesn't require differentiation use "
                "var_no_grad = var.detach()."
            )
        self._node = None
        return self
    if node_of(self) is not None:
        return self
    if self._inference and not modes.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
        )
    api.check_requires_grad(self.dtype)
    self._node = LeafNode(self._weak(), self._value.shape, self._value.dtype)
    return self


def _volatile(self: Tensor) -> bool:
    warn("volatile was removed (Variable.volatile is always False)")
    return False


def is_leaf(self: Tensor) -> bool:
    """Whether no recorded operation made it."""
    node = node_of(self)
    return node is None or node.primitive is None


def _get_grad_fn(self: Tensor) -> GraphNode | Any:
    """The node that made it; ``None`` for leaves."""
    node = node_of(self)
    return None if node is None or node.primitive is None else shown(made_by(self, node))


def _get_output_nr(self: Tensor) -> int:
    """Which result of its node it is."""
    return edge_of(node_of(self))[1]


def _get_grad(self: Tensor) -> Tensor | Any:
    """The accumulated gradient, or ``None``."""
    if modes.session is not None:
        modes.session.touch(self)
    if self._follows and self._grad is not None:
        self._grad._follows = True
    if self._grad is None and not self._retains and not is_leaf(self):
        warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed"
            f"{here()}. Its .grad attribute won't be populated during autograd.backward(). If you "
            "indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() "
            "on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you "
            "access the leaf Tensor instead.",
            UserWarning,
        )
    return self._grad


def _delete_grad(self: Tensor) -> None:
    _set_grad(self, None)


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if modes.session is not None:
        modes.session.touch(self)
    if value is None:
        self._grad = None
        return
    if not isinstance(value, Tensor):
        raise TypeError(
            "assigned grad expected to be a Tensor or None but got grad of type "
            f"{type(value).__name__}"
        )
    if value is self:
        raise RuntimeError("can't assign Variable as its own grad")
    if value.shape != self.shape:
        raise RuntimeError(
            f"attempting to assign a gradient of size '{list(value.shape)}' to a tensor of size "
            f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same "
            "size"
        )
    if value.dtype != self.dtype:
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{torch_kind(value.dtype).lower()}' to a "
            f"tensor with grad_dtype '{torch_kind(self.dtype)}'. The gradient must match the "
            "tensor's grad_dtype (defaults to the tensor's dtype)."
        )
    self._grad = value


def _is_view(self: Tensor) -> bool:
    """Whether it shares the memory of another tensor that it was made of."""
    return self._view is not None and not self._inference


def backward(
    self: Tensor,
    gradient: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Add the gradients of this tensor to ``.grad`` of the leaves; see ``autograd.backward``."""
    try:
        api.backward(self, gradient, retain_graph, create_graph, inputs)
    except Exception as error:
        shorten(error)
        raise


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in its ``.grad``.

    Raises:
      RuntimeError: it requires none.
    """
    node = node_of(self)
    if node is None:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    if node.primitive is not None:
        retain(node, self)
        self._retains = True


def _get_retains_grad(self: Tensor) -> bool:
    """Whether ``retain_grad`` was called on it, and it is no leaf."""
    return self._retains and not is_leaf(self)


def detach(self: Tensor) -> Tensor:
    """A view of it outside of the graph."""
    result = detached(self)
    result._storage = self._stored()
    return result


def detach_(self: Tensor) -> Tensor:
    """Take it out of the graph.

    Raises:
      RuntimeError: it is a view, as dual tensors and arguments of ``vmap`` and ``jvp`` are.
    """
    if modes.level:
        check_captured(self)
        if id(self) in modes.derivative[1]:
            return self  # a constant there already; that of the caller stays what it is
    trace: Any = self._trace
    is_argument = modes.level and id(self) in trace.arguments and not trace.is_reverse
    is_view = self._view is not None or self._dual is not None or is_argument
    if is_view and not self._inference:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    if isinstance(self._value, Tracer):
        self._value = with_only(self._value, None)
    self._node = None
    return self


# hooks -------------------------------------------------------------------------------------------


def _hooked(self: Tensor) -> Any:
    """The node of a tensor that takes hooks."""
    node = node_of(self)
    if node is None or id(self) in modes.derivative[1]:  # a constant there
        raise noted(
            RuntimeError("cannot register a hook on a tensor that doesn't require gradient"),
            "Make it with requires_grad=True, or call requires_grad_().",
        )
    return node


def register_hook(self: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call a function with the gradient whenever it is computed; what it returns replaces it.

    Returns:
      A handle, whose ``remove()`` ends it.

    Raises:
      RuntimeError: the tensor requires no gradient.
    """
    node = _hooked(self)
    return add_tensor_hook(self, node, TENSOR_HOOK, hook)


def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Any], Any]) -> RemovableHandle:
    """Call a function with this leaf after a gradient was added to its ``.grad``.

    Raises:
      RuntimeError: it requires no gradient, or is no leaf.
    """
    node = _hooked(self)
    if node.primitive is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    return add_tensor_hook(self, node, POST_ACCUMULATE_HOOK, hook)


# values ------------------------------------------------------------------------------------------


_OF_MEMORY = frozenset({"numpy()", "pickle", "__dlpack__"})
"""What gives the array itself, without its derivative."""


def plain(self: Tensor, asker: str = "this") -> Any:
    """The value, where there is one.

    Args:
      self: the tensor.
      asker: what asks for it, for messages.

    Raises:
      TensorConcretizationError: it is traced.
    """
    enter_session(self)
    if modes.observers:
        check_read(asker, self)
    value = self._value
    if not isinstance(value, Tracer):
        return value
    if modes.session is None:
        what = f"the value of a tensor ({asker})"
        return (asked if asker in _OF_MEMORY else concrete)(value, what, asker)
    raise ConcretizationError(
        f"{asker} asks for the value of a tensor of type {value.aval}{here()}, but "
        f"{modes.session.staging.label} is traced on shapes alone, to be compiled. Return the "
        "tensor and ask outside of the step; for a choice by value use torch.where or "
        "ft.lax.cond, for printing ft.debug.print"
    )


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The array, which shares memory with the tensor; that of a conjugate is read-only.

    Args:
      self: the tensor.
      force: also where a gradient is required.

    Raises:
      RuntimeError: the tensor requires a gradient, and ``no_grad`` is not in force.
    """
    if node_of(self) is not None and not force and is_grad_enabled():
        raise RuntimeError(
            "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        )
    value = plain(self, "numpy()")
    if self._view is not None and self._view.is_copied:
        fixed: np.ndarray = value[...]
        fixed.flags.writeable = False  # writes would be lost
        return fixed
    return np.asarray(value) if isinstance(self._value, Tracer) else self._memory()


def _array(self: Tensor, dtype: Any = None, copy: Any = None) -> Any:
    if node_of(self) is not None or isinstance(self._value, Tracer):
        answer = answer_to_scipy(sys._getframe(1), self)  # S @ x leaves the word to the tensor
        if answer is not None:
            return answer
    own = numpy(self)
    if dtype is not None and own.dtype != dtype:
        return own.astype(dtype)
    return own.copy() if copy else own


def tolist(self: Tensor) -> Any:
    """The elements as nested lists of Python numbers."""
    return plain(self, "tolist()").tolist()


def item(self: Tensor) -> Any:
    """The only element as a Python number.

    Raises:
      RuntimeError: there are more.
    """
    value = plain(self, "item()")
    if value.size != 1:
        raise RuntimeError(f"a Tensor with {value.size} elements cannot be converted to Scalar")
    return value.item()


def _bool(self: Tensor) -> bool:
    value = plain(self, "bool()")
    if value.size != 1:
        what = "more than one value" if value.size else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous")
    return bool(value)


def _warn_of_loss(self: Tensor) -> None:
    """Say that a conversion loses the derivative; it is how NumPy fills a buffer."""
    if node_of(self) is not None:
        warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            f"behavior{here()}: its derivative is lost.\nConsider using tensor.detach() first.",
            UserWarning,
        )


def _number(self: Tensor) -> Any:
    value = plain(self, "a Python number")
    if value.size != 1:
        raise ValueError("only one element tensors can be converted to Python scalars")
    return value.item()


def _float(self: Tensor) -> float:
    _warn_of_loss(self)
    return float(_number(self))


def _int(self: Tensor) -> int:
    return int(_number(self))


def _complex(self: Tensor) -> complex:
    _warn_of_loss(self)
    return complex(_number(self))


def _index(self: Tensor) -> int:
    value = item(self)
    if not isinstance(value, (int, bool)):
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(value)


def _len(self: Tensor) -> int:
    if not self.shape:
        raise TypeError("len() of a 0-d tensor")
    return self.shape[0]


def _iter(self: Tensor) -> Iterator[Tensor]:
    if not self.shape:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def _reversed(self: Tensor) -> Tensor:
    return self.flip(0) if self.shape else self


def _format(self: Tensor, spec: str) -> str:
    is_number = not self.shape and type(self) is Tensor  # a parameter is printed as one
    if is_number and (spec or not isinstance(self._value, Tracer)):
        return format(plain(self, "a formatted string").item(), spec)
    return object.__format__(self, spec)  # which knows no format but the empty one


# copies ------------------------------------------------------------------------------------------


def _copied(self: Tensor, order: Any) -> Tensor:
    """The same numbers in memory of their own."""
    result = named(bind(copy_p, self)[0], "Clone")
    if isinstance(self._value, np.ndarray):
        result._value = self._value.copy(order)
    return result


def clone(self: Tensor, *, memory_format: object = None) -> Tensor:
    """A copy, through which gradients flow."""
    value = self._value
    return _copied(self, "K" if isinstance(value, Tracer) or is_dense(value) else "C")


def contiguous(self: Tensor, *, memory_format: object = None) -> Tensor:
    """The tensor itself if its elements lie in C order, else such a copy."""
    if viewed_layout(self).flags.c_contiguous:
        return self
    result = _copied(self, "C")
    if modes.session is not None:
        modes.session.put_in_rows(result)
    return result


def to(
    self: Tensor,
    *args: object,
    dtype: Any = None,
    copy: bool = False,
    device: object = None,
    **_: object,
) -> Tensor:
    """Convert to a dtype, or to that of another tensor; the only device is the CPU.

    Raises:
      RuntimeError: another device is asked for.
      TypeError: an argument is something else.
    """
    for arg in (device, *args):
        if isinstance(arg, str) or type(arg).__name__ == "device":
            refuse_device(arg)
        elif isinstance(arg, Tensor):
            dtype = arg.dtype
        elif isinstance(arg, DTYPE_LIKE):
            dtype = arg
        elif arg is not None and not isinstance(arg, bool):
            raise TypeError(
                f"to() received an invalid combination of arguments - got {arg!r}; use "
                "x.type(...), or x.to(dtype)"
            )
    if dtype is None or (kind := given_dtype(dtype, "to")) == self.dtype:
        return clone(self) if copy else self
    return named(to_dtype(self, kind), "ToCopy")


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    if not is_leaf(self):
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )
    known = memo.get(id(self))
    if known is not None:
        return known
    result = object.__new__(type(self))
    memo[id(self)] = result
    result._value = _copied_memory(self, memo)
    result._node = None
    result._follows = self._follows
    if isinstance(result._value, Tracer):
        result._trace, result._level = self._trace, self._level
    for name, value in self.__dict__.items():
        if not name.startswith("_"):
            setattr(result, name, copy.deepcopy(value, memo))
    if node_of(self) is not None:
        requires_grad_(result)
    if self._grad is not None and self._copies_grad:
        result._grad = copy.deepcopy(self._grad, memo)
    return result


def _copied_memory(self: Tensor, memo: dict[int, Any]) -> Any:
    """A copy of the memory; tensors that share it share the copy."""
    enter_session(self)
    own = self._memory()
    if isinstance(own, Tracer):
        if modes.session is not None:  # a value of the step, which writes replace
            return own
        raise ConcretizationError(
            f"deepcopy of a tensor of type {own.aval}{here()}, which is traced"
        )
    how = self._view
    whole = own if how is None or how.is_copied else how.base._memory()
    while isinstance(whole.base, np.ndarray) and id(whole.base) in memo:
        whole = whole.base
    copied = memo.get(id(whole))
    if copied is None:
        copied = memo[id(whole)] = whole.copy("K")
    if whole is own:
        return copied
    offset = own.ctypes.data - whole.ctypes.data
    if copied.strides != whole.strides or offset < 0 or not own.size:
        return np.array(own, order="K")  # gaps, or reversed: the copy lies in another way
    return memory_part(copied, own.shape, own.dtype, offset, own.strides)


def _copy(self: Tensor) -> Tensor:
    """A leaf on the same memory; a recorded copy of what is no leaf."""
    if not is_leaf(self) or isinstance(self._value, Tracer):
        return clone(self)
    make, args = _reduce(self)
    result: Tensor = make(*args)
    return result


def _reduce(self: Tensor) -> Any:
    extra = {k: v for k, v in self.__dict__.items() if not k.startswith("_")}
    value = plain(self, "pickle")
    part = None
    if isinstance(self._value, Tracer):
        value = np.asarray(value)
    else:
        value, part = part_of_memory(self)
    return unpickled, (type(self), value, node_of(self) is not None, extra, self._follows, part)


def part_of_memory(self: Tensor) -> tuple[np.ndarray, Any]:
    """The memory of the tensor that this one is a view of, and which part it is.

    Pickle writes an array once, so that tensors which share memory do so again. Of memory with
    gaps, which pickle would not keep, the tensor has its own part alone.

    Returns:
      An array, and the arguments of ``memory_part``; ``None`` for all of the array.
    """
    own = self._memory()
    how = self._view
    whole = own if how is None or how.is_copied else how.base._memory()
    if whole is own or not own.size:
        return own, None
    if not (whole.flags.c_contiguous or whole.flags.f_contiguous):
        return own, None
    offset = own.ctypes.data - whole.ctypes.data
    return whole, (own.shape, own.dtype, offset, own.strides)


def memory_part(
    whole: np.ndarray, shape: tuple[int, ...], dtype: np.dtype, offset: int, strides: Any
) -> np.ndarray:
    """A part of the memory of an array without gaps.

    NumPy itself does not compare with the end of an empty memory.

    Args:
      whole: the array.
      shape: of the part.
      dtype: of the part.
      offset: bytes from the first element of the array.
      strides: of the part, in bytes.

    Raises:
      ValueError: the part would lie outside of the array, or hold what is no number.
    """
    shape, strides = tuple(map(operator.index, shape)), tuple(map(operator.index, strides))
    first = last = offset = operator.index(offset)
    for n, stride in zip(shape, strides, strict=True):
        first += min(0, (n - 1) * stride)
        last += max(0, (n - 1) * stride)
    is_inside = 0 <= offset <= whole.nbytes and min(shape, default=1) >= 0
    if 0 not in shape:
        is_inside = is_inside and first >= 0 and last + dtype.itemsize <= whole.nbytes
    if not is_inside or dtype.hasobject:
        raise ValueError(
            f"a tensor of shape {shape}, strides {strides} and offset {offset} in bytes, of "
            f"{dtype}, does not lie in a memory of {whole.nbytes} bytes"
        )
    flat = whole.ravel("K")
    if dtype.kind == "b" != whole.dtype.kind and flat.view(np.uint8).max(initial=0) > 1:
        raise ValueError("a tensor of booleans has bytes other than 0 and 1")
    return np.ndarray(shape, dtype, flat, offset, strides)


def unpickled(
    cls: type,
    value: np.ndarray,
    requires_grad: bool,
    extra: dict[str, Any],
    follows: bool = False,
    part: Any = None,
) -> Tensor:
    """A leaf; gradient, hooks and graph are not pickled."""
    result: Tensor = object.__new__(cls)
    result._value = value if part is None else memory_part(value, *part)
    result._node = None
    result._follows = follows
    result.__dict__.update(extra)
    return requires_grad_(result) if requires_grad else result


_unpickled = unpickled  # what pickles of earlier versions name


def size(self: Tensor, dim: int | None = None) -> Any:
    """Extents as ``Size``, or that of one axis."""
    return self.shape if dim is None else self.shape[axis_of(dim, len(self.shape))]


def stride(self: Tensor, dim: int | None = None) -> Any:
    """Elements from one index to the next, per axis or for one."""
    own = layout_of(self)
    strides = tuple(s // own.itemsize for s in own.strides)
    if not own.size:  # NumPy has none
        strides = tuple(math.prod(max(n, 1) for n in own.shape[i + 1 :]) for i in range(own.ndim))
    return strides if dim is None else strides[axis_of(dim, len(strides))]


def data_ptr(self: Tensor) -> int:
    """Address of the first element."""
    memory = self._memory()
    while isinstance(memory, PushingTracer):  # the primal of a dual tensor
        inner = memory._value
        memory = inner._memory() if isinstance(inner, Tensor) else inner
    if isinstance(memory, Tracer):
        asked(memory, "the address of a tensor", "data_ptr()")
    return int(memory.ctypes.data)


def _hash(self: Tensor) -> int:
    return id(self)


METHODS: dict[str, Any] = {
    **by_name(
        requires_grad_, _is_view, backward, retain_grad, detach, detach_, register_hook,
        register_post_accumulate_grad_hook, numpy, tolist, item, clone, contiguous, to,
        with_numpy_names(size), with_numpy_names(stride), data_ptr,
    ),
    "requires_grad": property(_get_requires_grad, _set_requires_grad),
    "is_leaf": property(is_leaf),
    "name": property(lambda self: None),
    "volatile": property(_volatile),
    "grad_fn": property(_get_grad_fn),
    "output_nr": property(_get_output_nr),
    "grad": property(_get_grad, _set_grad, _delete_grad),
    "data": DATA,
    "retains_grad": property(_get_retains_grad),
    "__array__": _array,
    "__bool__": _bool,
    "__float__": _float,
    "__int__": _int,
    "__complex__": _complex,
    "__index__": _index,
    "__len__": _len,
    "__iter__": _iter,
    "__reversed__": _reversed,
    "__format__": _format,
    "__hash__": _hash,
    "__copy__": _copy,
    "__deepcopy__": _deepcopy,
    "__reduce__": _reduce,
    "dim": lambda self: len(self.shape),
    "ndimension": lambda self: len(self.shape),
    "numel": lambda self: int(np.prod(self.shape, dtype=np.int64)),
    "nelement": lambda self: int(np.prod(self.shape, dtype=np.int64)),
    "element_size": lambda self: self.dtype.itemsize,
    "is_floating_point": lambda self: self.dtype.kind in "fV",
    "is_complex": lambda self: self.dtype.kind == "c",
    "is_contiguous": lambda self: bool(layout_of(self).flags.c_contiguous),
    "cpu": lambda self: self,
}  # fmt: skip
