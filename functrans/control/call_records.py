"""Functions with derivative rules of their own, as records: what the equations carry.

Here: ``JvpCall``, ``VjpCall`` and ``Pullback`` (abstract), and what they become under ``vmap``. Not
here: the primitives (``control.custom_calls``), users' conventions (``control.rule_conventions``).

Layer: ``control``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from functrans.control.calls import to_front
from functrans.core.dispatch import aval_of, owner
from functrans.core.state import open_traces
from functrans.passes.batch import evaluate_batched
from functrans.passes.programs import Flags, select, split, spread, with_batch_axis
from functrans.passes.staging import stage
from functrans.primitives.structural import reduce_sum


class Call:
    """A call of a function with a custom rule, on leaves (abstract).

    Attributes:
      label: what it is, for messages: ``custom_vjp of f``.
      refused: per traced value that the function refers to, why no derivative can be taken in it;
        ``None`` where it can.
    """

    __slots__ = ("label", "refused")
    label: str
    refused: tuple[str | None, ...]

    @property
    def n_closed(self) -> int:
        """Number of traced values that the function or its rules refer to."""
        return len(self.refused)

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The function."""
        raise NotImplementedError


class JvpCall(Call):
    """A call of a function with a jvp rule (abstract).

    Attributes:
      takes_zeros: whether the rule takes ``None`` for a tangent that is zero.
    """

    __slots__ = ()
    takes_zeros = False

    def jvp(
        self, closed: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """Results and tangents; tangents of integers are ``None``."""
        raise NotImplementedError


class VjpCall(Call):
    """A call of a function with a vjp rule (abstract)."""

    __slots__ = ()

    def forward(
        self, closed: Sequence[Any], args: Sequence[Any], perturbed: Flags
    ) -> tuple[list[Any], list[Any], Pullback]:
        """Results, residuals, and the backward function; which arguments have tangents is told."""
        raise NotImplementedError

    def push(
        self, args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]] | None:
        """Results and tangents by a rule for forward mode; ``None`` if there is none."""
        return None

    @property
    def n_mapped(self) -> int | None:
        """How many results ``mapped`` gives, of which the first ones are; ``None`` without rule."""
        return None

    def mapped(
        self, size: int, args: Sequence[Any], dims: Sequence[int | None]
    ) -> tuple[tuple[Any, ...], tuple[int | None, ...]] | None:
        """Results of a batch and their batch axes by a rule for that; ``None`` if there is none."""
        return None


class Pullback:
    """A backward function on leaves (abstract).

    Attributes:
      label: what it is, for messages.
      has_push: whether there is a rule for forward mode, too.
      takes_zeros: whether ``pull`` takes ``None`` for a cotangent that is zero.
    """

    __slots__ = ("label",)
    label: str
    has_push = False
    takes_zeros = False

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """Tangents of the results from those of the arguments, ``None`` for zero, by that rule."""
        raise NotImplementedError

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Cotangents of the arguments from those of the results; ``None`` for zero."""
        raise NotImplementedError


# calls under batching ---------------------------------------------------------------------------


def _batched(
    function: Callable[..., Sequence[Any]],
    size: int,
    flags: Sequence[bool],
    axis_name: str | None,
    args: Sequence[Any],
) -> tuple[list[Any], list[int | None]]:
    """A flat function of one element, applied to a batch (axes in front)."""
    avals = []
    for arg, flag in zip(args, flags, strict=True):
        aval: Any = aval_of(arg)
        avals.append(replace(aval, shape=aval.shape[1:], weak=False) if flag else aval)
    axes = {axis_name: size} if axis_name is not None else None
    jaxpr = stage(function, avals, "a custom rule under vmap", axes=axes)
    dims = [0 if flag else None for flag in flags]
    return evaluate_batched(jaxpr, size, list(args), dims, axis_name)


def _front(outs: Sequence[Any], dims: Sequence[int | None], size: int) -> list[Any]:
    return [with_batch_axis(out, size, dim) for out, dim in zip(outs, dims, strict=True)]


def _primal_of_each(
    call: BatchedJvpCall | BatchedVjpCall, closed: Sequence[Any], args: Sequence[Any]
) -> list[Any]:
    """The function of a batched call, for each element of the batch."""

    def one(*values: object) -> list[Any]:
        return call.inner.primal(*split(values, call.n_closed))

    outs = _batched(one, call.size, call.flags, call.axis_name, [*closed, *args])
    return _front(*outs, call.size)


class BatchedJvpCall(JvpCall):
    """A batch of calls; all results have the batch axis in front."""

    __slots__ = ("axis_name", "flags", "inner", "size", "takes_zeros")

    def __init__(self, inner: JvpCall, size: int, flags: Flags, axis_name: str | None) -> None:
        self.label = inner.label
        self.refused = inner.refused
        self.takes_zeros = inner.takes_zeros
        self.inner = inner
        self.size = size
        self.flags = flags
        self.axis_name = axis_name

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The function for each element."""
        return _primal_of_each(self, closed, args)

    def jvp(
        self, closed: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The rule for each element."""
        given = [t for t in tangents if t is not None]
        has_tangent = [t is not None for t in tangents]
        n = len(args)
        has_out: list[bool] = []

        def one(*values: object) -> list[Any]:
            own_closed, own_args, dots = split(values, self.n_closed, n)
            filled = spread(has_tangent, dots, lambda i: None)
            outs, out_dots = self.inner.jvp(own_closed, own_args, filled)
            has_out.extend(t is not None for t in out_dots)
            return [*outs, *(t for t in out_dots if t is not None)]

        flags = (*self.flags, *select(self.flags[self.n_closed :], has_tangent))
        results = _batched(one, self.size, flags, self.axis_name, [*closed, *args, *given])
        outs, dots = split(_front(*results, self.size), len(has_out))
        return outs, spread(has_out, dots, lambda i: None)


class BatchedVjpCall(VjpCall):
    """A batch of calls; all results have the batch axis in front."""

    __slots__ = ("axis_name", "flags", "inner", "size")

    def __init__(self, inner: VjpCall, size: int, flags: Flags, axis_name: str | None) -> None:
        self.label = inner.label
        self.refused = inner.refused
        self.inner = inner
        self.size = size
        self.flags = flags
        self.axis_name = axis_name

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The function for each element."""
        return _primal_of_each(self, closed, args)

    def forward(
        self, closed: Sequence[Any], args: Sequence[Any], perturbed: Flags
    ) -> tuple[list[Any], list[Any], Pullback]:
        """The forward function for each element."""
        pullbacks: list[Any] = []
        n_outs: list[int] = []

        def one(*values: object) -> list[Any]:
            own_closed, own_args = split(values, self.n_closed)
            outs, residuals, pullback = self.inner.forward(own_closed, own_args, perturbed)
            pullbacks.append(pullback)
            n_outs.append(len(outs))
            return [*outs, *residuals]

        results, dims = _batched(one, self.size, self.flags, self.axis_name, [*closed, *args])
        n = n_outs[0]
        residual_flags = tuple(dim is not None for dim in dims[n:])
        residuals = to_front(self.size, results[n:], dims[n:])
        outs = _front(results[:n], dims[:n], self.size)
        arg_flags = self.flags[self.n_closed :]
        pullback = BatchedPullback(
            pullbacks[0], self.size, residual_flags, (True,) * n, arg_flags, self.axis_name
        )
        return outs, residuals, pullback


class BatchedPullback(Pullback):
    """A batch of backward functions."""

    __slots__ = (
        "arg_flags", "axis_name", "ct_flags", "inner", "residual_flags", "size", "takes_zeros"
    )  # fmt: skip

    def __init__(
        self,
        inner: Pullback,
        size: int,
        residual_flags: Flags,
        ct_flags: Flags,
        arg_flags: Flags,
        axis_name: str | None,
    ) -> None:
        self.label = inner.label
        self.takes_zeros = inner.takes_zeros
        self.inner = inner
        self.size = size
        self.residual_flags = residual_flags
        self.ct_flags = ct_flags
        self.arg_flags = arg_flags
        self.axis_name = axis_name

    @property
    def has_push(self) -> bool:  # type: ignore[override]  # not set
        """Whether that of one element has."""
        return self.inner.has_push

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The rule for each element."""
        k = len(residuals)
        given = [t is not None for t in tangents]

        def one(*values: object) -> list[Any]:
            return self.inner.push(values[:k], spread(given, values[k:], lambda i: None))

        flags = (*self.residual_flags, *select(self.arg_flags, given))
        values = [*residuals, *select(tangents, given)]
        return _front(*_batched(one, self.size, flags, self.axis_name, values), self.size)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The backward function for each element; shared arguments get the sum."""
        found: list[bool] = []
        k = len(residuals)
        given = [ct is not None for ct in cts]

        def one(*values: object) -> list[Any]:
            pulled = self.inner.pull(values[:k], spread(given, values[k:], lambda i: None))
            found.extend(ct is not None for ct in pulled)
            return [ct for ct in pulled if ct is not None]

        flags = (*self.residual_flags, *select(self.ct_flags, given))
        values = [*residuals, *select(cts, given)]
        results = _batched(one, self.size, flags, self.axis_name, values)
        pulled = spread(found, _front(*results, self.size), lambda i: None)
        return [
            ct if ct is None or flag else reduce_sum(ct, (0,))
            for ct, flag in zip(pulled, self.arg_flags, strict=True)
        ]


@contextmanager
def only_traces_of(values: Sequence[Any]) -> Iterator[None]:
    """Leave out the open traces inside the one that values belong to; all, if they are plain.

    A rule runs for the values of one trace, while programs of inner traces may be being staged.
    What it computes is no part of them; and a solver on plain values may use transforms itself.
    """
    trace = owner(values)
    stack = open_traces.get()
    if trace is None:
        stack = ()
    elif trace in stack:
        stack = stack[: stack.index(trace) + 1]
    token = open_traces.set(stack)
    try:
        yield
    finally:
        open_traces.reset(token)
