"""Functions of tensors as functions of the values that a transform hands them.

Here: ``OnValues``, and the checks of arguments and results that the transforms of tensors share.
Not here: these transforms (``autograd.func``).

A tensor that enters a transform is a tensor of a new imperative trace, whose value is a tracer of
the transform; what is done with it goes on to the transform. Tensors outside of it, arguments and
those that the function refers to, belong to enclosing traces: a result is differentiable with
respect to them.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.anomaly import unwatched, watching
from functrans.autograd.hooks import refuse_hooks, registered
from functrans.autograd.modes import RECORDING, entered, modes
from functrans.autograd.nodes import LeafNode
from functrans.autograd.overlaps import share_memory
from functrans.autograd.recording import (
    PERMANENT,
    ImperativeTrace,
    enter_session,
    namespaces,
    node_of,
)
from functrans.autograd.refusals import as_torchs
from functrans.autograd.residuals import root_of
from functrans.autograd.tensors import Tensor, View
from functrans.core.arguments import name_of
from functrans.core.avals import is_differentiable_dtype
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer, tracing
from functrans.core.state import open_traces
from functrans.core.values import Array
from functrans.primitives.complex_parts import conjugate


def as_given(x: Any) -> Array | Tensor:
    """A tensor for a transform: its array, if nothing is recorded of it."""
    if not isinstance(x, Tensor):
        return x
    enter_session(x)
    return x._value if node_of(x) is None and x._trace is PERMANENT else x


def returned(x: Any) -> Any:
    """A result of a transform as a tensor; of the function around it, if there is one."""
    if isinstance(x, (np.ndarray, np.generic)):
        result = Tensor.of(np.asarray(x))
    elif isinstance(x, Tracer) and not isinstance(x, Tensor):
        around = _around(x)
        if around is None:
            return x
        result = around.tensor(x)
    else:
        return x
    if modes.inference:
        result._inference = True
    return result


def _around(x: Tracer) -> ImperativeTrace | None:
    """The trace of tensors that runs now, if the trace of a value is around it."""
    for trace in reversed(open_traces.get()):
        if trace is x._trace:
            return None
        if isinstance(trace, ImperativeTrace):
            return trace
    return None


def conjugated(x: Array | Tensor) -> Array | Tensor:
    """The gradient of a cotangent, or the reverse."""
    return conjugate(x) if getattr(x, "dtype", _REAL).kind == "c" else x


_REAL = np.dtype(float)


def _value_in(trace: ImperativeTrace, x: Tensor) -> Any:
    """The value of a tensor of the trace that ends; constants as arrays."""
    if not isinstance(x, Tensor):
        return x
    node = node_of(x)  # a view takes over what was written to its base
    return x._value if x._trace is trace or (x._trace is PERMANENT and node is None) else x


def all_leaves(given: object) -> list[Any]:
    """Leaves of a container, ``None`` among them: PyTorch counts it as one."""
    leaves: list[Any] = tree.flatten(given, none_is_leaf=True)[0]
    return leaves


def check_tensors(given: object) -> None:
    """Refuse leaves that are no tensors, or have no derivatives.

    Raises:
      ValueError: one is no tensor.
      RuntimeError: one is of integers.
    """
    for leaf in all_leaves(given):
        if not isinstance(leaf, (Tracer, np.ndarray, np.generic)):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(leaf)}")
        if not is_differentiable_dtype(leaf.dtype):
            raise RuntimeError(
                "only Tensors of floating point dtype can require gradients, got a tensor of dtype "
                f"{leaf.dtype}: leave it out of argnums, or pass it to the function by a partial"
            )


NO_HOOKS = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks."
_MODES = tuple(RECORDING)
_levels = itertools.count(1)


class Shared(NamedTuple):
    """What a result of a function shares the memory of.

    Attributes:
      of: the tensor, an argument of the caller's or one from outside of the function.
      place: the position of the argument.
      how: how it is a view, if it is one.
    """

    of: Tensor
    place: int | None
    how: View | None = None

    def tensor(self) -> Tensor:
        """The result as a tensor of the caller."""
        result: Tensor = self.of
        return result if self.how is None else deferred.tensor_viewed_as(result, self.how)


class OnValues:
    """A function of tensors as a function of the values that a transform hands it.

    In reverse mode the function runs in ``enable_grad``, while what encloses the transform keeps
    the modes of the caller. In other transforms the function runs in these modes, and programs that
    are made of it are evaluated with recording on: what ``no_grad`` computed in them is marked.

    Attributes:
      fun: the function.
      originals: leaves of the arguments of the caller.
      kinds: per leaf of the arguments whether it is a tensor.
      written: positions of the leaves that the last call wrote to.
      shared: by position in the result of the last call what this is a view of.
      n_results: how many results there were.
      takes_writes: whether what was written is returned, too: ``(result, values)``.
      requires: whether its tensors require gradients, so that it may use ``autograd.grad``; it is
        for reverse mode.
      further: modes that the transform sets for the function, other than for reverse mode.
      outside: grad mode, inference mode and their like of the caller.
      follows: whether the tensors are those of ``functrans.compat.torch``.
      check: called with the result of the function, before values are taken out.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        direction: str,
        check: Callable[[Any], None] | None = None,
    ) -> None:
        self.fun = fun
        if direction == "reverse" and modes.packers:
            raise RuntimeError(NO_HOOKS)
        self.originals = tree.leaves((tuple(args), dict(kwargs)))
        self.kinds = [isinstance(leaf, Tensor) for leaf in self.originals]
        self.written: list[int] = []
        self.shared: dict[int, Shared] = {}
        self.n_results = 0
        self.takes_writes = False
        self.direction = direction
        self.requires = direction == "reverse"
        self.further = {"forward": True} if direction == "forward" else {}
        self.outside = {name: getattr(modes, name) for name in _MODES}
        self.check = check
        self.follows = any(isinstance(x, Tensor) and x._follows for x in self.originals)
        self.__name__ = self.__qualname__ = name_of(fun)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function with tensors that have these values."""
        leaves, treedef = tree.flatten((args, kwargs))
        trace = ImperativeTrace(f"{self.__name__} on tensors", is_plain=False)
        trace.stops = True
        trace.is_reverse = self.requires
        own: dict[str, object] = {**self.outside, **self.further}
        if self.requires:
            own = dict(RECORDING)
        if own != self.outside:
            trace.outer = self.outside
        if self.requires:
            own["no_packers"] = NO_HOOKS
        trace.level = next(_levels)
        tracers = [leaf for leaf in leaves if isinstance(leaf, Tracer)]
        own["level"] = trace.level
        kept = {i: self.originals[i] for i, leaf in enumerate(leaves) if self._is_kept(leaf, i)}
        own["observers"] = before = modes.observers
        if self.direction:
            for i in kept:
                leaves[i] = deferred.argument_of(self._tensor(trace, leaves[i], i), trace.level)
            given = {id(leaves[i]): x for i, x in kept.items()}
            levels, around = modes.derivative
            own["derivative"] = ((*levels, trace.level), {**around, **given})
        if self.takes_writes and not self.direction:
            mapped = [x for i, x in enumerate(self.originals) if self.kinds[i] and i not in kept]
            own["mapped"] = (*modes.mapped, *mapped)
        versions = {i: x._stored().version for i, x in kept.items()}
        with tracing(trace, tracers), entered(own), unwatched():
            tensors = [self._tensor(trace, leaf, i) for i, leaf in enumerate(leaves)]
            trace.arguments = {
                id(x): self.originals[i]
                for i, x in enumerate(tensors)
                if self.kinds[i] and x._trace is trace
            }
            trace.unwritten = set(trace.arguments) if self.takes_writes else set()
            own_args, own_kwargs = tree.unflatten(treedef, tensors)
            since = registered.newest
            result = self.fun(*own_args, **own_kwargs)
            if registered.newest != since:
                outs = [x for x in tree.leaves(result) if isinstance(x, Tensor)]
                nodes = [node_of(x) for x in outs if x._trace is trace]
                refuse_hooks(self.__name__, [node for node in nodes if node is not None], since)
            if self.check is not None:
                self.check(result)
            self._note_writes(trace, tensors)
            self._check_shared([i for i, x in kept.items() if x._stored().version != versions[i]])
            self._note_shared(trace, tensors, tree.leaves(result))
            self._note_origin(result)
            value_in = functools.partial(_value_in, trace)
            values = tree.map(value_in, result)
            if self.takes_writes:
                values = (values, [value_in(tensors[i]) for i in self.written])
            added = [watch for watch in modes.observers if watch not in before]
        # what was written to in a transform around this one is watched on
        lasting = [watch for watch in added if getattr(watch, "trace", trace) is not trace]
        if lasting:
            modes.update(observers=(*modes.observers, *lasting))
        return values

    def _is_kept(self, leaf: object, i: int) -> bool:
        """Whether a leaf is a tensor that the transform leaves as it is."""
        return self.kinds[i] and (isinstance(leaf, Tensor) or not isinstance(leaf, Tracer))

    def _tensor(self, trace: ImperativeTrace, leaf: Any, i: int) -> Any:
        if isinstance(leaf, Tensor) or not (self.kinds[i] or isinstance(leaf, Tracer)):
            return leaf
        if not isinstance(leaf, Tracer):  # the transform leaves it as it is
            return self.originals[i]
        tensor = trace.tensor(leaf)
        tensor._follows = self.originals[i]._follows if self.kinds[i] else False
        if self.requires and is_differentiable_dtype(tensor.dtype):
            tensor._node = LeafNode(tensor._weak(), tensor._value.shape, tensor._value.dtype)
        return tensor

    def _note_shared(
        self, trace: ImperativeTrace, tensors: Sequence[object], results: Sequence[object]
    ) -> None:
        """Note which results share the memory of arguments, or are tensors from outside."""
        places = {id(x): i for i, x in enumerate(tensors) if x is not self.originals[i]}
        given = {id(x): i for i, x in enumerate(tensors) if self.kinds[i]}
        self.n_results = len(results)
        for k, x in enumerate(results):
            if not isinstance(x, Tensor):
                continue
            if x._trace is not trace:
                place = given.get(id(x))
                self.shared[k] = Shared(x if place is None else self.originals[place], None)
                continue
            how = x._view
            place = places.get(id(root_of(x)))
            if place is not None and self.kinds[place] and not (how and how.is_apart):
                self.shared[k] = Shared(self.originals[place], place, how)

    def _note_origin(self, result: object) -> None:
        if namespaces.has_torch and not self.follows:
            self.follows = any(isinstance(x, Tensor) and x._follows for x in tree.leaves(result))

    def results(self, values: object) -> Any:
        """What the transform gave as tensors."""
        return tree.map(self._result if self.follows else returned, values)

    def own_results(
        self, values: object, is_last: bool = False, originals: Sequence[Any] | None = None
    ) -> Any:
        """Results of the function as tensors; those that share memory with others still do.

        Args:
          values: its first results, or its last ones.
          is_last: whether they are these.
          originals: tangents of the arguments, if the values are those of the results.
        """
        leaves, treedef = tree.flatten(self.results(values))
        start = self.n_results - len(leaves) if is_last else 0
        for k, x in enumerate(leaves):
            shared = self.shared.get(start + k)
            if shared is None or not isinstance(x, Tensor):
                continue
            if originals is not None:
                of = None if shared.place is None else originals[shared.place]
                if not isinstance(of, Tensor) or of.dtype != x.dtype:
                    continue
                shared = shared._replace(of=of)
            leaves[k] = shared.tensor()
        return tree.unflatten(treedef, leaves)

    def _result(self, x: Array | Tensor) -> Any:
        result = returned(x)
        if isinstance(result, Tensor):
            result._follows = True
        return result

    def _note_writes(self, trace: ImperativeTrace, tensors: Sequence[Any]) -> None:
        """Note which arguments were written to."""
        self.written[:] = [
            i
            for i, x in enumerate(tensors)
            if isinstance(x, Tensor)
            and x._trace is trace
            and x is not self.originals[i]
            and x._storage is not None
            and x._storage.version
        ]
        self._check_shared(self.written)
        if self.written and not self.takes_writes:
            raise RuntimeError(
                f"{self.__name__} modifies an argument inplace, and the tensor that was given to "
                "the transform would not change. Write to a copy (x = x.clone()), or use the "
                "operation without the underscore."
            )

    def _check_shared(self, written: Sequence[int]) -> None:
        """Refuse writes to arguments that share their memory with others."""
        tensors = [x for x, is_tensor in zip(self.originals, self.kinds, strict=True) if is_tensor]
        for own in [self.originals[i] for i in written]:
            if sum(share_memory(own, x) for x in tensors) > 1:
                raise RuntimeError(
                    f"{self.__name__} modifies an argument inplace whose memory another argument "
                    "shares, which would not change with it. Give a copy for one of them "
                    "(x.clone())"
                )

    def check_apart(self, directions: Sequence[Any]) -> None:
        """Refuse writes to arguments that share memory with their directions."""
        for i in self.written:
            if share_memory(self.originals[i], directions[i]):
                raise RuntimeError(
                    f"{self.__name__} modifies an argument inplace that shares memory with its "
                    "tangent. Give a copy for one of them (x.clone())"
                )

    def write_back(self, values: Sequence[Any], originals: Sequence[Any] | None = None) -> None:
        """Write into the tensors of the caller what the function wrote into its arguments.

        Args:
          values: what it wrote, in the order of ``written``.
          originals: other tensors than the arguments, by the same positions.
        """
        for i, value in zip(self.written, values, strict=True):
            (self.originals if originals is None else originals)[i].copy_(returned(value))


def transformed(
    transform: Callable[[Callable[..., Any]], Callable[..., Any]],
    fun: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    direction: str = "",
    check: Callable[[Any], None] | None = None,
    place: int | None = None,
) -> Any:
    """Call the transform of a function of tensors.

    Args:
      transform: of functions of arrays; it may let the function take writes.
      fun: the function of tensors.
      args: its positional arguments.
      kwargs: its keyword arguments.
      direction: ``"forward"`` or ``"reverse"`` for derivatives.
      check: called with the result of the function.
      place: where the transform gives results of the function as they are, with its first one if
        this is 0, else with its last one.
    """
    on_values = OnValues(fun, args, kwargs, direction, check)
    given_args, given_kwargs = tree.map(as_given, (tuple(args), dict(kwargs)))
    records = modes.grad or not (on_values.requires or modes.inference)
    watch = watching() if on_values.requires else nullcontext()
    with entered({"grad": records}), watch, as_torchs():
        values = transform(on_values)(*given_args, **given_kwargs)
    if on_values.takes_writes:
        values, written = values
        on_values.write_back(written)
    if place is None:
        return on_values.results(values)
    parts = list(values)
    own = on_values.own_results(parts.pop(place), is_last=place != 0)
    others = list(on_values.results(parts))
    return (*others[:place], own, *others[place:])


def argument_numbers(argnums: object) -> Any:
    """Numbers of arguments, a tuple if there are several.

    Raises:
      RuntimeError: they are no numbers.
    """
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    return argnums


def check_argnums(argnums: object, args: Sequence[Any]) -> None:
    """Refuse numbers of arguments that there are not, and arguments that are no tensors.

    Raises:
      RuntimeError: a number is out of range, or given twice.
      ValueError: an argument is no tensor.
    """
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    for number in numbers:
        if not isinstance(number, int):
            raise RuntimeError(f"argnum must be int, got: {type(number)}")
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
        check_tensors(args[number])
    places = [number % len(args) for number in numbers]
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")


def check_results(who: str, call: str, has_aux: bool, result: object) -> None:
    """Refuse results that are no tensors.

    Raises:
      RuntimeError: one is none, there are none, or it is no pair where one is needed.
    """
    if has_aux:
        result = without_aux(who, result)
    if not tree.leaves(result):
        raise RuntimeError(
            f"{who}: Expected f to be a function that has non-empty output (got output = {result})"
        )
    for leaf in all_leaves(result):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{who}: expected {call} to return only tensors, got unsupported type {type(leaf)}"
            )


def without_aux(who: str, result: object) -> Tensor:
    """The first of a pair of results of which the second is auxiliary.

    Raises:
      RuntimeError: it is no pair, or not all of the second are tensors.
    """
    if not isinstance(result, tuple) or len(result) != 2:
        raise RuntimeError(
            f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    for leaf in all_leaves(result[1]):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{who}: Expected tensors, got unsupported type {type(leaf)}")
    return result[0]


def check_chunk(who: str, chunk_size: Any) -> None:
    """Refuse numbers of rows that there are not.

    Raises:
      ValueError: it is not positive.
    """
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"{who}: `chunk_size` should be greater than 0.")


def check_randomness(randomness: str) -> None:
    """Refuse other behaviours of random operations than there are.

    Raises:
      RuntimeError: there is none of this name.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
