"""``Tensor``: a value with its place in the imperative graph.

Here: what a tensor holds, and the properties that need nothing but that. Not here: how operations
are recorded (``autograd.recording``), nodes (``autograd.nodes``), and the methods, which are
installed by tables (``autograd.methods``).

Layer: ``autograd``.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Set
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from functrans.autograd.dtypes import given_dtype, torch_dtype
from functrans.autograd.modes import modes
from functrans.autograd.sizes import SIZES, Size
from functrans.core.avals import ShapedArray
from functrans.core.boundary import shorten
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.state import current_config
from functrans.core.values import Array
from functrans.errors import TensorDeviceError


class Storage:
    """What a tensor and its views have in common.

    Attributes:
      version: how many times the memory was written to.
      writer: name and captured line of the last operation that wrote to it.
      is_viewed: whether a view of it was ever made.
      held: weak references to tensors with the memory as it was before the next write to it.
      views: weak references to views of it, and some that are dead.
      duals: the same to dual tensors whose tangent it holds.
    """

    __slots__ = (
        "__weakref__", "_n_views", "duals", "held", "is_viewed", "version", "views", "writer",
    )  # fmt: skip

    def __init__(self) -> None:
        self.version = 0
        self.is_viewed = False
        self.views: Any = ()  # most lists would stay empty
        self._n_views = 16
        self.held: Any = ()
        self.duals: Any = ()
        self.writer: tuple[str, Any] | None = None

    def note_view(self, view: Tensor) -> None:
        """Know a view of it, as long as it is there."""
        if not self.views:
            self.views = []
        self.views.append(weakref.ref(view))
        if len(self.views) > self._n_views:
            self.views = [reference for reference in self.views if reference() is not None]
            self._n_views = 16 + 2 * len(self.views)

    def forget_view(self, view: Tensor) -> None:
        """Know it no longer: it has other memory now."""
        self.views = [reference for reference in self.views if reference() is not view]

    def release(self) -> None:
        """Give what holds the memory as it is a copy: it is about to be written to."""
        if self.held:
            for tensor in self._held():
                tensor._value = np.array(tensor._value, order="K")
                tensor._storage = None
            self.held = ()

    def _held(self) -> list[Tensor]:
        return [tensor for reference in self.held if (tensor := reference()) is not None]

    def bump(self, name: str, source: tuple[Any, ...] | None) -> None:
        """Note a write."""
        self.version += 1
        self.writer = (name, source)
        for dual in [reference() for reference in self.duals]:
            if dual is None or dual._dual is None:  # its level has ended
                continue
            for view in [reference() for reference in dual._stored().views]:
                if view is not None and view._view.root._dual is dual._dual:
                    view._view.note_version(-1)  # is made anew of the new tangent


IN_CUSTOM_FUNCTION = (
    "This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)


TWIN = "Twin"
"""Creator of the views that a dual tensor keeps of the two that it was made of."""
ARGUMENT = "Argument"
"""Creator of the views that stand for tensors which a transform hands on as they are."""


class View:
    """How a tensor is a view of another one.

    Attributes:
      base: the tensor that is no view itself, or a detached one.
      steps: functions from tensor to tensor, from the base to the view. Where the shape of the
        base was changed in place since, they begin with the way back to the one that it had.
      version: that of the storage when the view's node was made.
      made_at: that of the storage when the view was made.
      is_multiple: whether it is one of several views that one call made (``split``, ``unbind``).
      creator: name of the operation, for messages.
      is_custom: whether a ``Function`` returned it, so that its node is the function's.
      detach: of what is the same memory outside of the graph, what makes its value of that of its
        base, and of what else has the derivative, if anything; ``None`` for other views (and where
        values are neither traced nor copied: arrays are shared then).
      is_own: of what is detached, whether it was written to, and so may have derivatives.
      is_unrecorded: whether it was made while nothing was recorded (``no_grad``).
      is_inferred: whether that was in inference mode.
      is_copied: whether its memory is a copy of the base's, which NumPy cannot share (conjugates):
        it is made anew whenever it is read, and writes to it are written to the base.
      is_conj: whether it is conjugated.
      levels: numbers of the transforms that hand it on as it is, or what it is a view of.
      node_version: of what is copied, ``version`` is -1 and this the version of the node.
    """

    __slots__ = (
        "base", "creator", "detach", "is_conj", "is_copied", "is_custom", "is_inferred",
        "is_multiple", "is_own", "is_unrecorded", "levels", "made_at", "node_version", "steps",
        "version",
    )  # fmt: skip

    def __init__(
        self,
        base: Tensor,
        steps: tuple[Callable[[Any], Any], ...],
        storage: Storage,
        creator: str,
        is_multiple: bool = False,
        detach: Callable[[Any, Any], Any] | None = None,
    ) -> None:
        self.base = base
        self.steps = steps
        self.version = self.made_at = storage.version
        storage.is_viewed = True
        self.creator = creator
        self.is_multiple = is_multiple
        self.detach = detach
        self.is_own = False
        self.is_custom = False
        self.is_unrecorded = False
        self.is_inferred = False
        self.is_conj = False
        self.is_copied = False
        self.levels: tuple[int, ...] = ()
        self.node_version = -1

    @property
    def root(self) -> Tensor:
        """The tensor whose memory it is, whatever is detached on the way."""
        base = self.base
        return base if base._view is None else base._view.root

    @property
    def is_apart(self) -> bool:
        """Whether it is detached, or a copy, or a view of what is."""
        before = self.base._view
        is_own = self.detach is not None or self.is_copied
        return is_own or (before is not None and before.is_apart)

    @property
    def path(self) -> tuple[Callable[[Any], Any], ...]:
        """All steps from the root on."""
        before = self.base._view
        return self.steps if before is None else (*before.path, *self.steps)

    def copy_from(self, how: View) -> None:
        """Be a copy as what it is a view of, and a view of the same argument."""
        self.levels = how.levels
        self.is_conj = how.is_conj
        if how.is_copied:
            self.set_copied()

    def copied(self) -> Array:
        """The view of what the base holds now."""
        value = self.base._memory()
        for step in self.steps:
            value = step(value)
        return value

    def note_version(self, version: int) -> None:
        """Note the version of the storage for which its node is right."""
        if self.is_copied:
            self.node_version = version
        else:
            self.version = version

    def set_copied(self) -> None:
        """Be a copy of the base's memory."""
        self.is_copied = True
        self.node_version, self.version = self.version, -1

    def of_both_modes(self, event: str) -> str:
        """Why an unrecorded view has no place in a graph that is recorded.

        Args:
          event: what was written to, for the message.
        """
        block = "inference_mode" if self.is_inferred else "no_grad"
        made = "inference mode" if self.is_inferred else "no_grad mode"
        now = "in normal mode" if self.is_inferred else "with grad mode enabled"
        return (
            f"A view was created in {made} and {event} modified inplace {now}. Given that this use "
            "case is ambiguous and error-prone, it is forbidden. You can clarify your code by "
            f"moving both the view and the inplace either both inside the {block} block (if you "
            "don't want the inplace to be tracked) or both outside (if you want the inplace to be "
            "tracked)."
        )


if TYPE_CHECKING:
    from functrans.autograd.tensor_methods import TensorMethods
else:
    TensorMethods = Tracer  # the methods of the tables are installed


class Tensor(TensorMethods):
    """An array that remembers how it was computed.

    Made by :func:`functrans.autograd.tensor`, :func:`functrans.autograd.from_numpy` and operations
    on tensors. Methods and functions are those of ``torch.Tensor``.

    Example:
      >>> from functrans.autograd import tensor
      >>> x = tensor([1.0, 2.0], requires_grad=True)
      >>> (x * x).sum().backward()
      >>> x.grad
      tensor([2., 4.])
    """

    # Defaults until an instance has its own: creating a tensor sets two attributes.
    _alias = None
    _is_array = False
    _storage: Storage | None = None
    _view: View | None = None
    _grad: Any = None
    _dual: Any = None  # primal and tangent, and the tangent that was given; see ``forward_ad``
    _place: Any = None  # of a dual tensor, in the graph of its primal
    _inference = False
    _is_held = False  # a copy that nobody else has, for a program
    _level = 0  # the transform of ``torch.func`` in which it was made; see ``Modes.level``
    _mapped: tuple[int, ...] = ()  # transforms of whose example it was made the like
    _retains = False
    _follows = False  # from functrans.compat.torch: default floating dtype of integers, printing
    _copies_grad = True  # by ``copy.deepcopy``
    _value: Any
    _node: Any

    @staticmethod
    def of(value: Any, node: object = None, trace: Any = None) -> Tensor:
        """The tensor of a value and a node; the value is not copied.

        Args:
          value: an array or NumPy scalar, or a tracer of a functional transform.
          node: its node, or ``None``.
          trace: the trace that it belongs to, if not the permanent one.
        """
        self: Tensor = _new(Tensor)
        self._value = value
        self._node = node
        if trace is not None:
            self._trace = trace
            self._level = modes.level
            if trace.keeps_account:
                trace.note(self)
        elif modes.is_inside:
            self._level = modes.level
            if modes.session is not None:
                modes.session.born[id(self)] = self
        return self

    # what all tracers have ------------------------------------------------------------------------

    @property
    def aval(self) -> ShapedArray:
        """Shape and dtype."""
        return aval_of(self._value)  # type: ignore[return-value]  # no tape

    @property
    def shape(self) -> Size:
        """Extents."""
        return SIZES[self._value.shape]

    @property
    def dtype(self) -> Any:
        """NumPy's dtype; that of torch for tensors of ``functrans.compat.torch``."""
        dtype = self._value.dtype
        return torch_dtype(dtype) if self._follows else dtype

    def _describe(self) -> str:
        return f"a tensor of type {self.aval}"

    def _twin(self) -> Tensor:
        """The same value with memory of its own, which later writes do not reach."""
        value = self._value
        if type(value) is np.ndarray and current_config.get().copy_residuals:
            value = value.copy("K")
        twin = Tensor.of(value, self._node, self.__dict__.get("_trace"))
        twin._follows = self._follows
        return twin

    def _as_now(self) -> Tensor:
        """The same value and node, which later writes do not reach; one until there are any."""
        storage = self._stored()
        alive = storage._held()
        for held in alive:
            if held._value is self._value and held._node is self._node:
                return held
        held = self._frozen(self._value)
        held._storage, held._is_held = storage, True
        if isinstance(self._value, np.ndarray):
            storage.held = [weakref.ref(x) for x in (*alive, held)]
        return held

    def _frozen(self, value: Any) -> Tensor:
        """A tensor of its trace and node, of another value."""
        frozen = Tensor.of(value, self._node, self.__dict__.get("_trace"))
        frozen._follows, frozen._inference = self._follows, self._inference
        return frozen

    # storage --------------------------------------------------------------------------------------

    def _stored(self) -> Storage:
        """The storage, made when it is first asked for."""
        storage = self._storage
        if storage is None:
            storage = self._storage = Storage()
        return storage

    def _memory(self) -> Any:
        """The array, with memory of its own: results without axes are NumPy scalars at first."""
        value = self._value
        if isinstance(value, np.generic):
            value = self._value = np.array(value)
        how = self._view
        if how is not None and how.is_copied and isinstance(value, np.ndarray):
            value = self._value = how.copied()
        return value

    @property
    def _version(self) -> int:
        """How many times the memory was written to."""
        if self._inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._storage is None else self._storage.version

    @property
    def _base(self) -> Tensor | None:
        """The tensor that this one is a view of."""
        return None if self._view is None else self._view.base

    def is_inference(self) -> bool:
        """Whether it was made in ``inference_mode``."""
        return self._inference

    def _weak(self) -> Any:
        return weakref.ref(self)


_new = object.__new__


MEANINGLESS = frozenset(
    {"device", "layout", "memory_format", "names", "non_blocking", "pin_memory"}
)
"""Keywords of torch that mean nothing here; functions take them as ``**_``."""


def refuse_device(device: object) -> None:
    """Refuse a device, given as one or by its name, on which nothing is computed.

    Raises:
      TensorDeviceError: it is not the CPU.
    """
    name = str(device)
    if device is not None and name.partition(":")[0] not in ("cpu", "meta"):
        hint = f"; the dtype is torch.{name}" if name in np.sctypeDict else ""
        words = f"device {name!r} is not available: functrans computes on the CPU{hint}"
        raise TensorDeviceError(words)


def called(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A function under the name by which it is called, which Python's own messages show.

    Of a function that ignores keywords (``**_``) only those are accepted which mean nothing.

    Args:
      function: anything; what is no Python function is returned as it is.
      name: the name.

    Example:
      >>> twice = called(lambda x: 2 * x, "twice")
      >>> twice(y=1)
      Traceback (most recent call last):
      TypeError: twice() got an unexpected keyword argument 'y'
    """
    if not isinstance(function, (FunctionType, MethodType)):
        return function
    code = function.__code__
    arguments = code.co_argcount + code.co_kwonlyargcount
    takes_more = bool(code.co_flags & inspect.CO_VARARGS)
    if code.co_flags & inspect.CO_VARKEYWORDS and code.co_varnames[arguments + takes_more] == "_":
        known = MEANINGLESS.union(code.co_varnames[:arguments])
        return _checked(_renamed(function, name), name, known)
    return _renamed(function, name)


def _renamed(function: Any, name: str) -> Any:
    if function.__qualname__ == name:
        return function
    if isinstance(function, MethodType):
        return MethodType(_renamed(function.__func__, name), function.__self__)
    renamed = FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    _take_over(renamed, function, name)
    renamed.__kwdefaults__ = function.__kwdefaults__
    return renamed


def _checked(function: Callable[..., Any], name: str, known: Set[str]) -> Callable[..., Any]:
    """A function of known keywords only."""

    def checked(*args: object, **kwargs: Tensor | np.dtype) -> Tensor:
        try:
            for keyword in kwargs:
                if keyword not in known:
                    raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}")
                if keyword == "device":
                    refuse_device(kwargs[keyword])
                elif keyword == "dtype" and kwargs[keyword] is not None:
                    given_dtype(kwargs[keyword], name)
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    _take_over(checked, function, name)
    checked.__wrapped__ = function  # type: ignore[attr-defined]  # as functools.wraps does
    return checked


def _take_over(new: Callable[..., Any], function: Callable[..., Any], name: str) -> None:
    new.__dict__.update(function.__dict__)
    for attribute in ("__module__", "__doc__", "__annotations__"):
        setattr(new, attribute, getattr(function, attribute))
    new.__name__ = new.__qualname__ = name


def plain_of(x: Any) -> Any:
    """The value of a tensor; anything else as it is."""
    return x._value if isinstance(x, Tensor) else x
