"""``Function`` under functional transforms: a call as an equation with custom rules.

Here: ``apply_traced`` (a call on tensors or arrays of a transform), and tensors around traced
values for the user's methods (``tensors_of``). Not here: the class and calls on permanent tensors
(``autograd.function``), the equations of custom rules (``control.custom_calls``).

The user's ``forward`` runs at the lowest level only, on arrays or staged values. At each level of
differentiation above, the call is one equation; what ``backward`` reads is then argument or result
of that equation, so that derivatives of derivatives go through the user's methods again, as they do
on permanent tensors. An intermediate tensor that was saved is a further result, through which no
derivative flows.

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.modes import modes
from functrans.autograd.recording import PERMANENT, ImperativeTrace, node_of
from functrans.autograd.tensors import Tensor, View
from functrans.control.custom_rules import custom_jvp, custom_vjp
from functrans.control.rule_conventions import UserPullback, UserVjpCall
from functrans.core.arguments import tangent_dtype
from functrans.core.avals import is_differentiable_dtype
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, owner, tracing
from functrans.core.structs import SymbolicZero
from functrans.core.values import Array
from functrans.passes.cotangents import zeros
from functrans.primitives.complex_parts import conjugate
from functrans.primitives.structural import cast, stop_gradient_p
from functrans.records import dataclass
from functrans.transforms.vectorize import vmap


@dataclass(frozen=True, slots=True)
class Rules:
    """What calls need of ``Function``.

    Attributes:
      new_context: the context of a call.
      run_forward: runs the user's ``forward``.
      apply_recorded: the call on permanent tensors.
      checked_gradients: checks what that returned.
      has_jvp: whether a function has ``jvp``.
      has_vjp: whether it has ``backward`` or ``vjp``.
      has_vmap: whether it has ``vmap``.
      write: stores a result in the memory of a tensor.
    """

    new_context: Callable[..., Any]
    run_forward: Callable[..., Any]
    apply_recorded: Callable[..., Any]
    checked_gradients: Callable[..., Any]
    has_jvp: Callable[..., bool]
    has_vjp: Callable[..., bool]
    has_vmap: Callable[..., bool]
    write: Callable[..., Any]


class VmapInfo(NamedTuple):
    """What ``Function.vmap`` is told.

    Attributes:
      batch_size: extent of the batch axis.
      randomness: how random operations behave.
    """

    batch_size: int
    randomness: str


# tensors around values ---------------------------------------------------------------------------


@contextmanager
def tensors_of(
    label: str, values: Sequence[Any]
) -> Iterator[tuple[list[Any], Callable[[Any], Any]]]:
    """Tensors with given values, for a ``with`` block in which the user's code runs.

    Args:
      label: what runs, for messages.
      values: arrays, tensors, tracers of functional transforms, ``None``.

    Yields:
      A tensor per value (tensors and ``None`` as they are), and a function that gives the value of
      a tensor that was computed from them.
    """
    foreign = [v for v in values if isinstance(v, Tracer) and not isinstance(v, Tensor)]
    if not foreign:
        tensors = [
            v if v is None or isinstance(v, Tensor) else Tensor.of(_writable(v)) for v in values
        ]
        yield tensors, functools.partial(value_in, None)
        return
    trace = ImperativeTrace(label, is_plain=False)
    with tracing(trace, foreign):
        tensors = [v if v is None or isinstance(v, Tensor) else trace.tensor(v) for v in values]
        yield tensors, functools.partial(value_in, trace)


def _writable(value: object) -> np.ndarray:
    """An array that the user's code may write to."""
    array: np.ndarray = np.asarray(value)
    return array if array.flags.writeable else array.copy()


def value_in(trace: object, x: Any) -> Any:
    """The value of a tensor of a trace, or of a constant; other tensors as they are."""
    if not isinstance(x, Tensor):
        return x
    node = node_of(x)  # a view takes over what was written to its base
    return x._value if x._trace is trace or (x._trace is PERMANENT and node is None) else x


def backward_on_traced(
    function: Callable[[list[Any]], list[Any]], values: Sequence[Any], size: int | None
) -> list[Any]:
    """Call the user's function of gradients on traced gradients, or on a batch of them.

    Args:
      function: from gradients (tensors or ``None``) to gradients.
      values: arrays, tensors or tracers; ``None`` where nothing came.
      size: extent of a leading batch axis, or ``None``.
    """
    present = [i for i, value in enumerate(values) if value is not None]
    found: list[bool] = []

    def one(*given: object) -> list[Any]:
        slots: list[Any] = [None] * len(values)
        for i, value in zip(present, given, strict=True):
            slots[i] = value
        with tensors_of("the backward function", slots) as (tensors, value_in):
            results = [value_in(r) for r in function(tensors)]
        found[:] = [r is not None for r in results]
        return [r for r in results if r is not None]

    given = [values[i] for i in present]
    outs = iter(one(*given) if size is None else vmap(one)(*given))
    return [next(outs) if flag else None for flag in found]


# calls -------------------------------------------------------------------------------------------


def _steps(x: Tensor) -> tuple[Any, ...]:
    """From its base to a view."""
    return () if x._view is None else x._view.steps


def _viewed(out: Tensor, inputs: Sequence[Any]) -> int | None:
    """The argument that a result is, or that it is a view of, or of what that views."""
    base = None if out._view is None else out._view.base
    for i, x in enumerate(inputs):
        if x is out or (base is not None and isinstance(x, Tensor) and _base(x) is base):
            return i
    return None


def _base(x: Tensor) -> Any:
    return x if x._view is None else x._view.base


class _Layout:
    """What a run of ``forward`` returned and saved, without the tensors.

    Attributes:
      many: whether it returned a tuple.
      others: per result ``None`` for a tensor, else a tuple with the value.
      saved: where the tensors for ``backward`` are: ``("input", i)``, ``("output", i)``; or
        ``None``.
      pushed: likewise those for ``jvp``; ``None`` if there are none.
      tensors: likewise attributes of the context that are tensors, by name.
      attributes: the other attributes.
      dirty: pairs of tensor argument and result that are the same tensor.
      views: pairs of tensor argument and result that is a view of it, or the same.
      constant: results without derivative.
    """

    def __init__(self, ctx: Any, inputs: Sequence[Any], outs: Sequence[Any], many: bool) -> None:
        self.many = many
        self.others = [None if isinstance(out, Tensor) else (out,) for out in outs]
        own = [out for out in outs if isinstance(out, Tensor)]
        written = {id(x) for x in ctx.dirty_tensors}
        places = {id(out): ("output", i) for i, out in enumerate(own)}
        places.update({id(x): ("input", i) for i, x in enumerate(inputs) if id(x) not in written})
        self.extra: list[Any] = []
        self._places = places
        self._n_own = len(own)
        self.saved = [self._place(x) for x in ctx.to_save or ()]
        pushed = ctx.saved_for_forward
        self.pushed = None if pushed is None else [self._place(x) for x in pushed]
        given = {k: v for k, v in vars(ctx).items() if k not in _OWN_ATTRIBUTES}
        self.tensors = {k: self._place(v) for k, v in given.items() if isinstance(v, Tensor)}
        self.attributes = {k: v for k, v in given.items() if not isinstance(v, Tensor)}
        self.attributes["materialize_grads"] = ctx.materialize_grads
        constant = {id(x) for x in ctx.non_differentiable}
        self.constant = [id(out) in constant for out in own]
        numbers = {id(x): i for i, x in enumerate(inputs)}
        self.views = [
            (k, i, _steps(out))
            for i, out in enumerate(own)
            if id(out) not in written and (k := _viewed(out, inputs)) is not None
        ]
        self.dirty = [
            (numbers[id(out)], i)
            for i, out in enumerate(own)
            if id(out) in written and id(out) in numbers
        ]

    def _place(self, x: Tensor | None) -> tuple[Any, ...] | None:
        if x is None:
            return None
        place = self._places.get(id(x))
        if place is None:
            place = self._places[id(x)] = ("output", self._n_own + len(self.extra))
            self.extra.append(x)
        return place

    @property
    def for_jvp(self) -> list[Any]:
        """Where what ``jvp`` reads is."""
        return [*(self.pushed or ()), *self.tensors.values()]

    def finished(self) -> list[Any]:
        """The further results; given up here, so that the layout holds no tensor."""
        extra, self.extra, self._places = self.extra, [], {}
        return extra

    def values(
        self, places: Sequence[Any], leaves: Sequence[Any], outs: Sequence[Any]
    ) -> list[Any]:
        """What is at places."""
        return [None if p is None else (leaves if p[0] == "input" else outs)[p[1]] for p in places]


_OWN_ATTRIBUTES = frozenset(
    {"to_save", "saved_for_forward", "dirty_tensors", "non_differentiable", "materialize_grads",
     "needs_input_grad", "_saved", "_node", "_given"}
)  # fmt: skip


_CONTAINERS = frozenset({list, tuple, dict})


class _FunctionCall(UserVjpCall):
    """A call of a ``Function`` that has a backward function."""

    __slots__ = ("function",)
    function: _Traced

    def forward(
        self, closed: Sequence[Any], args: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], UserPullback]:
        """The user's ``forward``; what a linear program pushes forward is pushed by his ``jvp``."""
        function = self.function
        function.perturbed = tuple(perturbed)
        outs, residuals, pullback = super().forward(closed, args, perturbed)
        pullback.takes_zeros = True  # those that did not come may be ``None`` for the user
        if function.is_pushed:
            pullback.pusher = function.push
        return outs, residuals, pullback

    def push(
        self, args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]] | None:
        """The user's ``jvp``; of arrays what follows from ``backward``, if there is none."""
        function = self.function
        if not function.is_pushed:
            return None
        outs, dots = function.jvp(args, tangents)
        leaves = self.signature.results(outs)
        return leaves, [
            dot if is_differentiable_dtype(dtype_of(out)) else None
            for dot, out in zip(dots, leaves, strict=True)
        ]

    @property
    def n_mapped(self) -> int | None:
        """The results of the user's ``vmap``: not what ``forward`` saves besides its own."""
        function = self.function
        if not function.rules.has_vmap(function.cls):
            return None
        assert function.layout is not None
        return sum(other is None for other in function.layout.others)

    def mapped(
        self, size: int, args: Sequence[Any], dims: Sequence[int | None]
    ) -> tuple[tuple[Any, ...], tuple[int | None, ...]] | None:
        """The user's ``vmap``, if there is one."""
        if self.n_mapped is None:
            return None
        check_one_rule(self.function.rules, self.function.cls)
        return self.function.batch(size, args, dims)


class _Rule(custom_vjp):
    """A ``Function`` as a function with custom rules."""

    _kind = "Function"
    function: _Traced

    def _call(self, signature: Any, refused: tuple[str | None, ...]) -> _FunctionCall:
        call = _FunctionCall(signature, refused)
        call.function = self.function
        return call


class _Traced:
    """A call of a ``Function`` on traced values.

    Attributes:
      rules: what is needed of ``Function``.
      cls: the function.
      args: the arguments, ``None`` in place of tensors.
      positions: of the tensors.
      held: per container among the arguments that holds tensors its position, its leaves (``None``
        in place of tensors) and its structure. They follow the other tensors, without derivative.
      perturbed: per tensor whether a derivative is asked in it.
      of_tensors: whether it is a call on tensors, whose derivatives are the user's alone.
      is_pushed: whether forward mode is the user's ``jvp``.
      layout: what the last run of ``forward`` did.
      randomness: that of the innermost ``vmap`` around the call.
      name: torch's name of the node.
    """

    def __init__(
        self, rules: Rules, cls: Any, args: Sequence[Any], positions: tuple[int, ...]
    ) -> None:
        self.rules = rules
        self.cls = cls
        self.positions = positions
        self.args = [None if i in positions else arg for i, arg in enumerate(args)]
        self.held: list[tuple[int, list[Any], Any]] = []
        self.leaves = [args[i] for i in positions]
        for i, arg in enumerate(self.args):
            if type(arg) in _CONTAINERS:
                leaves, treedef = tree.flatten(arg)
                given = [x for x in leaves if isinstance(x, Tracer)]
                if given:
                    own = [None if isinstance(x, Tracer) else (x,) for x in leaves]
                    self.held.append((i, own, treedef))
                    self.leaves.extend(given)
        self.perturbed = (True,) * len(self.leaves)
        self.of_tensors = any(isinstance(x, Tensor) for x in self.leaves)
        self.is_pushed = self.of_tensors or rules.has_jvp(cls)
        self.layout: _Layout | None = None
        self.name = f"{cls.__name__}{'Generated' if modes.level else ''}Backward"
        self.randomness = modes.batches[-1].randomness if modes.batches else "error"

    def filled(self, tensors: Sequence[Any]) -> list[Any]:
        """All arguments."""
        full = list(self.args)
        given = iter(tensors)
        for i in self.positions:
            full[i] = next(given)
        for i, leaves, treedef in self.held:
            own = [next(given) if other is None else other[0] for other in leaves]
            full[i] = tree.unflatten(treedef, own)
        return full

    def note(self, ctx: object, args: Sequence[Any], outs: Sequence[Any], many: bool) -> None:
        """Note what a run returned and saved."""
        inputs = [args[i] for i in self.positions]
        for i, _, _ in self.held:
            inputs.extend([x for x in tree.leaves(args[i]) if isinstance(x, Tensor)])
        layout = self.layout = _Layout(ctx, inputs, outs, many)
        if layout.pushed is None and not self.of_tensors:
            layout.pushed = layout.saved

    def run(self, *leaves: object) -> list[Any]:
        """``forward`` itself, at the lowest level: values of tensor results, then further ones."""
        with tensors_of(self.cls.__name__, leaves) as (tensors, value_in):
            ctx = self.rules.new_context(self.cls)
            args = self.filled(tensors)
            ctx.needs_input_grad = tuple(
                [isinstance(a, Tensor) and is_differentiable_dtype(a.dtype) for a in args]
            )
            result = self.rules.run_forward(self.cls, ctx, args)
            many = isinstance(result, tuple)
            outs = result if many else (result,)
            self.note(ctx, args, outs, many)
            assert self.layout is not None
            kept = [out for out in outs if isinstance(out, Tensor)] + self.layout.finished()
            return [value_in(x) for x in kept]

    def call(self, *leaves: object) -> list[Any]:
        """The call at the level of its arguments."""
        trace = owner(leaves)
        if trace is None:
            return self.run(*leaves)
        if trace is PERMANENT:
            return self._on_permanent(leaves)
        if (
            not self.of_tensors
            and self.rules.has_jvp(self.cls)
            and not self.rules.has_vjp(self.cls)
        ):
            pushed = custom_jvp(_named(self.run, self.cls))
            pushed.defjvp(self.jvp)
            return list(pushed(*leaves))
        rule = _Rule(_named(self.run, self.cls))
        rule.function = self
        rule.defvjp(self.forward, self.backward)
        return list(rule(*leaves))

    def _on_permanent(self, leaves: Sequence[Any]) -> list[Any]:
        """The call on permanent tensors, recorded as any other."""
        extra: list[Any] = []

        def note(ctx: object, args: Sequence[Any], outs: Sequence[Any]) -> None:
            self.note(ctx, args, outs, True)
            assert self.layout is not None
            extra.extend(self.layout.finished())

        tensors = [x if isinstance(x, Tensor) else Tensor.of(_writable(x)) for x in leaves]
        ctx = self.rules.new_context(self.cls)
        result = self.rules.apply_recorded(self.cls, ctx, self.filled(tensors), note)
        assert self.layout is not None
        self.layout.many = isinstance(result, tuple)
        outs = result if self.layout.many else (result,)
        return [out for out in outs if isinstance(out, Tensor)] + extra

    def context(self, static: _Static, saved: Sequence[Any], tensors: Sequence[Any]) -> Any:
        """A context for the user's method."""
        ctx, layout = self.rules.new_context(self.cls), static.layout
        vars(ctx).update(layout.attributes)
        vars(ctx).update(zip(layout.tensors, tensors, strict=True))
        ctx._given = tuple(saved)
        needed = dict(zip(self.positions, static.perturbed, strict=False))
        ctx.needs_input_grad = tuple([needed.get(i, False) for i in range(len(self.args))])
        return ctx

    def forward(self, *leaves: Any) -> Any:
        """Results and what the backward function reads."""
        outs = self.call(*leaves)
        layout = self.layout
        assert layout is not None
        values = layout.values([*layout.saved, *layout.tensors.values()], leaves, outs)
        pushed = layout.values(layout.for_jvp, leaves, outs) if self.is_pushed else ()
        avals = [aval_of(x) for x in leaves]
        static = _Static(layout, [aval_of(x) for x in outs], avals, self.perturbed)
        return outs, (static, values, pushed)

    def backward(self, residuals: Any, cts: list[Any]) -> tuple[Any, ...]:
        """The user's backward function on cotangents."""
        static, values, _ = residuals
        layout, avals = static.layout, static.out_avals
        fills = layout.attributes["materialize_grads"]
        gradients: list[Any] = []
        fills_constant = fills and layout.attributes.get("_materialize_non_diff_grads", True)
        for ct, aval, is_constant in zip(cts, avals, layout.constant, strict=False):
            if (
                isinstance(ct, SymbolicZero)
                or is_constant
                or not is_differentiable_dtype(aval.dtype)
            ):
                if not (fills_constant if is_constant else fills):
                    gradients.append(None)
                    continue
                ct = np.zeros(aval.shape, aval.dtype)
            gradients.append(conjugate(ct) if aval.dtype.kind == "c" else ct)
        n, k = len(values), len(layout.saved)
        with tensors_of(self.name, [*values, *gradients]) as (tensors, value_in):
            ctx = self.context(static, tensors[:k], tensors[k:n])
            given = iter(tensors[n:])
            full = [next(given) if other is None else None for other in layout.others]
            result = self.cls.call_backward(ctx, full)
            likes = [
                a if is_differentiable_dtype(a.dtype) else None
                for a in static.avals[: len(self.positions)]
            ]
            pulled = self.rules.checked_gradients(
                self.name, result, len(self.args), self.positions, likes
            )
            found = [value_in(g) for g in pulled]
        found += [None] * (len(static.avals) - len(found))  # tensors in containers
        return tuple(
            [
                conjugate(g) if g is not None and aval.dtype.kind == "c" else g
                for g, aval in zip(found, static.avals, strict=True)
            ]
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Array]) -> tuple[list[Any], list[Any]]:
        """The user's ``jvp``: results and tangents."""
        outs = self.call(*primals)
        layout = self.layout
        assert layout is not None
        values = layout.values(layout.for_jvp, primals, outs)
        avals = list(map(aval_of, primals))
        static = _Static(layout, list(map(aval_of, outs)), avals, self.perturbed)
        return outs, self.push((static, (), values), tangents)

    def push(self, residuals: Any, tangents: Sequence[Any]) -> list[Any]:
        """The user's ``jvp`` on tangents, ``None`` for zero; what it reads was saved."""
        static, _, values = residuals
        return [
            cast(dot, aval.dtype) if is_differentiable_dtype(aval.dtype) else zeros(aval.strong())
            for dot, aval in zip(
                self._pushed(static, values, tangents), static.out_avals, strict=True
            )
        ]

    def _pushed(self, static: _Static, values: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """The user's ``jvp`` on what it reads and tangents."""
        layout = static.layout
        n = len(values)
        k = n - len(layout.tensors)
        fills = layout.attributes["materialize_grads"]
        given = [
            None
            if not is_differentiable_dtype(aval.dtype)
            else np.zeros(aval.shape, aval.dtype)
            if t is None and fills
            else t
            for t, aval in zip(tangents, static.avals, strict=True)
        ]
        with tensors_of(f"jvp of {self.cls.__name__}", [*values, *given]) as (tensors, value_in):
            ctx = self.context(static, tensors[:k], tensors[k:n])
            own = dict(zip(self.positions, tensors[n:], strict=False))
            result = self.cls.jvp(ctx, *[own.get(i) for i in range(len(self.args))])
            dots = self._checked_tangents(result, static)
            self._check_memory(layout, tensors[n:], dots)
            return [value_in(dot) for dot in dots]

    def _check_memory(self, layout: _Layout, given: Sequence[Any], dots: Sequence[Any]) -> None:
        """Refuse tangents that do not share memory where results and arguments do."""
        for i, j in layout.dirty:
            if given[i] is not None and dots[j] is not given[i]:
                raise RuntimeError(
                    "An inplace custom Function is not modifying the forward mode gradients "
                    "inplace. If the forward is modifying an input inplace, then the jvp function "
                    "must modify the corresponding gradient inplace and return it: "
                    f"{self.cls.__name__}"
                )
        bases = [x if x._view is None else x._view.root for x in given if x is not None]
        for _, j, _ in layout.views:
            how = dots[j]._view if isinstance(dots[j], Tensor) else None
            if isinstance(dots[j], Tensor) and (
                how is None or all(how.root is not x for x in bases)
            ):
                raise RuntimeError(
                    "A custom Function's forward is returning a view (or an input as-is) but the "
                    f"jvp is not returning a view: {self.cls.__name__} (return tangent.view_as("
                    "tangent) for an argument that is returned as it is)"
                )

    def _checked_tangents(self, result: object, static: _Static) -> list[Any]:
        """Tangents of the results, zero for further ones."""
        layout = static.layout
        items = result if isinstance(result, tuple) else (result,)
        if len(items) != len(layout.others):
            raise RuntimeError(
                "Function's jvp returned an invalid number of forward gradients (expected "
                f"{len(layout.others)} but got {len(items)})"
            )
        own = [item for item, other in zip(items, layout.others, strict=True) if other is None]
        dots: list[Any] = []
        for i, aval in enumerate(static.out_avals):
            dot = own[i] if i < len(own) else None
            if dot is not None and not isinstance(dot, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(dot).__name__}) for grad output {i}."
                )
            is_constant = i < len(layout.constant) and layout.constant[i]
            if dot is not None and (is_constant or not is_differentiable_dtype(aval.dtype)):
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {i}, but  the corresponding "
                    "forward output is not a differentiable Tensor.You should return None at that "
                    "position instead."
                )
            if dot is None:
                if i < len(own) and not is_constant and is_differentiable_dtype(aval.dtype):
                    raise RuntimeError(
                        f"jvp of {self.cls.__name__} returned None for result {i}, which is "
                        "floating point and so has a tangent: return zeros_like(result), or call "
                        "ctx.mark_non_differentiable(result) in forward"
                    )
                dtype = tangent_dtype(aval.dtype)
                dots.append(np.zeros(aval.shape, dtype))
                continue
            if dot.shape != aval.shape:
                raise RuntimeError(
                    "Trying to set a forward gradient that has a different size than that of the "
                    "original Tensor, this is not supported. Tensor is of size "
                    f"{list(aval.shape)} while the given forward gradient is of size "
                    f"{list(dot.shape)}."
                )
            dots.append(dot)
        return dots

    def batch(
        self, size: int, leaves: Sequence[Any], dims: Sequence[int | None]
    ) -> tuple[tuple[Any, ...], tuple[int | None, ...]]:
        """The user's ``vmap``; results and where their batch axes are."""
        given = iter(dims)
        mapped: list[Any] = [None] * len(self.args)
        for i in self.positions:
            mapped[i] = next(given)
        for i, others, treedef in self.held:
            own = [next(given) if other is None else None for other in others]
            mapped[i] = tree.unflatten(treedef, own)
        info = VmapInfo(size, self.randomness)
        with tensors_of(f"vmap of {self.cls.__name__}", leaves) as (tensors, value_in):
            found = self.cls.vmap(info, tuple(mapped), *self.filled(tensors))
            pairs = [
                (value_in(x), self._out_dim(x, d))
                for x, d in zip(*_batched_results(found), strict=True)
                if isinstance(x, Tensor)
            ]
        assert self.layout is not None
        expected = sum(other is None for other in self.layout.others)
        if len(pairs) != expected:
            raise RuntimeError(
                f"the vmap staticmethod of {self.cls.__name__} returned {len(pairs)} tensors, and "
                f"forward returns {expected}"
            )
        return tuple([x for x, _ in pairs]), tuple([d for _, d in pairs])

    def _out_dim(self, x: Tensor, dim: int | None) -> int | None:
        """Where the batch axis of a result is, counted from the front."""
        if dim is None:
            return None
        n = len(x.shape)
        if not -n <= dim < n:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got "
                f"{dim}): out_dims of the vmap staticmethod of {self.cls.__name__}"
            )
        return dim % n

    def assembled(self, args: Sequence[Any], outs: Sequence[Any]) -> Any:
        """What the call returns."""
        layout = self.layout
        assert layout is not None
        results = list(outs[: len(layout.constant)])
        for i, is_constant in enumerate(layout.constant):
            out = results[i]
            if is_constant and isinstance(out, Tracer) and is_differentiable_dtype(out.dtype):
                results[i] = bind(stop_gradient_p, out)[0]
            elif isinstance(out, Tensor) and out._node is not None:
                node = out._node
                main = node if node.shape is None or not node.params.get("index", -1) >= 0 else None
                (main or node.parents[0]).label = self.name
        for i, j, steps in layout.views:
            target, out = args[self.positions[i]], results[j]
            if isinstance(target, Tensor) and isinstance(out, Tensor):  # its memory is its own here
                storage = out._storage = target._stored()
                storage.note_view(out)
                steps = (*_steps(target), *steps)
                out._view = View(_base(target), steps, storage, self.cls.__name__)
                out._view.is_custom = True
                if target._view is not None:
                    out._view.levels = target._view.levels
        for i, j in layout.dirty:
            target = args[self.positions[i]]
            if isinstance(target, Tensor) and (
                target._view is not None or target._dual is not None
            ):
                self.rules.write(self.cls.__name__, target, results[j])  # its base is written to
            elif isinstance(target, Tensor):
                target._value, target._node = results[j]._value, results[j]._node
                target._stored().bump(self.cls.__name__, None)
            elif isinstance(target, Tracer):
                target._rebind(results[j])
            results[j] = target
        given = iter(results)
        full = [next(given) if other is None else other[0] for other in layout.others]
        return tuple(full) if layout.many else full[0]


def _batched_results(found: object) -> tuple[Sequence[Any], Sequence[int | None]]:
    """Results of a user's ``vmap``, and the place of the batch axis in each.

    Raises:
      RuntimeError: there are not exactly the two, or the second does not fit the first.
    """
    if not isinstance(found, tuple) or len(found) != 2:
        got = f"{len(found)} returns" if isinstance(found, tuple) else f"a {type(found)}"
        raise RuntimeError(
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got {got} instead"
        )
    out, out_dims = found
    outs = out if isinstance(out, (tuple, list)) else (out,)
    if out_dims is None or isinstance(out_dims, int):
        return outs, (out_dims,) * len(outs)
    is_many = isinstance(out, (tuple, list)) and isinstance(out_dims, (tuple, list))
    dims = out_dims if is_many else ()
    if len(dims) != len(outs) or not all(d is None or isinstance(d, int) for d in dims):
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`: "
            f"an int, None, or, for {len(outs)} results in a tuple, as many of them"
        )
    return outs, dims


class _Static:
    """What a backward function reads besides arrays."""

    __slots__ = ("avals", "layout", "out_avals", "perturbed")

    def __init__(
        self, layout: _Layout, out_avals: list[Any], avals: list[Any], perturbed: tuple[bool, ...]
    ) -> None:
        self.perturbed = perturbed
        self.layout = layout
        self.out_avals = out_avals
        self.avals = avals


def _named(function: Callable[..., Any], cls: Any) -> Callable[..., Any]:
    def run(*leaves: object) -> Any:
        return function(*leaves)

    run.__name__ = run.__qualname__ = cls.__name__
    return run


def check_one_rule(rules: Rules, cls: Any) -> None:
    """Refuse a function with two rules for batches.

    Raises:
      RuntimeError: it has them.
    """
    if rules.has_vmap(cls) and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and "
            "an overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            "overridden vmap staticmethod to avoid ambiguity"
        )


def check_batched(rules: Rules, cls: Any, kwargs: Mapping[str, Any]) -> None:
    """Refuse a call inside of ``vmap`` of functions of tensors without a rule for it.

    Raises:
      RuntimeError: it has none for batches, or two.
      NotImplementedError: it has keyword-only tensors.
    """
    if any(isinstance(x, Tensor) for x in kwargs.values()):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass "
            "kwarg-only Tensors to autograd.Function"
        )
    check_one_rule(rules, cls)
    if not rules.has_vmap(cls) and not cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True"
        )


def apply_traced(rules: Rules, cls: Any, args: Sequence[Any]) -> Tensor:
    """Call a function on tensors of a transform, or on traced arrays.

    Args:
      rules: what is needed of ``Function``.
      cls: the function.
      args: its arguments; plain arrays beside traced ones count as tensors.
    """
    has_arrays = any(isinstance(a, Tracer) and not isinstance(a, Tensor) for a in args)
    positions = tuple(
        [
            i
            for i, a in enumerate(args)
            if isinstance(a, Tracer) or (has_arrays and isinstance(a, (np.ndarray, np.generic)))
        ]
    )
    call = _Traced(rules, cls, args, positions)
    outs = call.call(*call.leaves)
    return call.assembled(args, outs)
