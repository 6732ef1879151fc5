"""Functions with a batching rule of their own: ``custom_vmap`` and ``sequential_vmap``.

Here: the decorators, the primitive, and what becomes of a user's rule when the function is
differentiated. Not here: functions with derivative rules (``control.custom_rules``).

A call is one equation that holds the function as a program and the rule. Its jvp is such an
equation again, of the program of values and tangents, with the jvp of the rule; likewise its
transpose. So ``vmap`` finds a rule wherever it comes from.

Layer: ``control``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Generic

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import check_structure, flatten_operands, stage_body
from functrans.control.calls import is_nonzero, kept_residuals, to_front
from functrans.control.custom_rules import Late
from functrans.control.native import run
from functrans.control.rule_conventions import by_position
from functrans.control.scanning import map as map_sequentially
from functrans.core.arguments import check_callable, name_of, result_leaf, take_over
from functrans.core.avals import Aval, Zero
from functrans.core.boundary import boundary
from functrans.core.calling import call_traced
from functrans.core.dispatch import aval_of, bind, innermost_staging
from functrans.core.jaxpr import Jaxpr
from functrans.core.lowering import Structured
from functrans.core.primitive import Joint, Primitive, is_linear
from functrans.core.source import here, signature_of
from functrans.core.transformed import Wrapper
from functrans.core.values import P, R, Rule
from functrans.errors import ShapeError, UnsupportedOperationError
from functrans.passes.cotangents import plain, zeros
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.programs import (
    Flags,
    batched_aval,
    hoist,
    jvp_jaxpr,
    prune_jaxpr,
    select,
    split,
    spread,
    tangent_avals,
    transpose_jaxpr,
    with_batch_axis,
)
from functrans.passes.staging import stage
from functrans.primitives.structural import cast

# rules ------------------------------------------------------------------------------------------


class _Batching:
    """How an equation is batched (abstract)."""

    __slots__ = ("label",)
    label: str

    def program(
        self, size: int, flags: Flags, avals: Sequence[Aval]
    ) -> tuple[Jaxpr, tuple[Any, ...], Flags]:
        """The program of a batch.

        Args:
          size: extent of the batch axis, which is in front.
          flags: per operand, whether it has the axis.
          avals: avals of the operands of one element.

        Returns:
          Program ``(*captured, *operands) -> outs``, what it captured, and per result whether it
          has the axis.
        """
        raise NotImplementedError


def _avals(size: int, flags: Flags, avals: Sequence[Aval]) -> list[Aval]:
    return [
        batched_aval(aval, size) if flag else aval for flag, aval in zip(flags, avals, strict=True)
    ]


def _widened(size: int, values: Sequence[Any], has: Flags, wanted: Flags) -> list[Any]:
    """Values with the batch axis where it is wanted and they have it not."""
    return [
        with_batch_axis(value, size, None) if want and not flag else value
        for value, flag, want in zip(values, has, wanted, strict=True)
    ]


class _UserBatching(_Batching):
    """The rule that ``def_vmap`` was given."""

    __slots__ = ("n_captured", "out_avals", "out_treedef", "rule", "treedef")

    def __init__(
        self,
        label: str,
        rule: Callable[..., Any] | None,
        n_captured: int,
        treedef: Any,
        out_treedef: Any,
        out_avals: Sequence[Any],
    ) -> None:
        self.label = label
        self.rule = rule
        self.n_captured = n_captured
        self.treedef = treedef
        self.out_treedef = out_treedef
        self.out_avals = out_avals

    def program(
        self, size: int, flags: Flags, avals: Sequence[Aval]
    ) -> tuple[Jaxpr, tuple[Any, ...], Flags]:
        """The user's rule, and the checks of its results."""
        rule, n, label = self.rule, self.n_captured, f"vmap rule of {self.label}"
        if rule is None:
            raise TypeError(
                f"{self.label} has no rule for vmap yet{here()}; give one with def_vmap"
            )
        if any(flags[:n]):
            raise UnsupportedOperationError(
                f"{self.label}: the function refers to a value that vmap maps{here()}, which its "
                "rule does not see; pass it as an argument"
            )
        in_batched = tree.map(
            lambda flag: flag is True, tree.unflatten(self.treedef, list(flags[n:]))
        )  # float0 has no axis
        out_flags: list[bool] = []

        def flat(*operands: object) -> list[Any]:
            result = call_traced(
                rule, size, in_batched, *tree.unflatten(self.treedef, operands[n:])
            )
            if not isinstance(result, tuple) or len(result) != 2:
                got = type(result).__name__
                raise TypeError(f"{label}: expected a pair (out, out_batched), got {got}{here()}")
            out, out_batched = result
            told = tree.broadcast_prefix(out_batched, out, label, "out_batched")
            flat_out = tree.leaves(out)
            of_float0 = iter(
                [flag for flag, leaf in zip(told, flat_out, strict=True) if tree.is_float0(leaf)]
            )
            folded = tree.fold_float0(out, lambda shape: shape[1:] if next(of_float0) else shape)
            leaves, treedef = tree.flatten(folded)
            check_structure(label, self.out_treedef, treedef, "out", "the result of the function")
            out_flags.extend(
                bool(flag)
                for flag, leaf in zip(told, flat_out, strict=True)
                if not tree.is_float0(leaf)
            )
            found = []
            for i, (leaf, aval, flag) in enumerate(
                zip(leaves, self.out_avals, out_flags, strict=True)
            ):
                leaf = result_leaf(leaf, label, folded, i)
                expected = (batched_aval(aval, size) if flag else aval).strong()
                own: Any = aval_of(leaf)
                if own.shape != expected.shape or not np.can_cast(
                    own.dtype, expected.dtype, "same_kind"
                ):
                    path = tree.paths_of(treedef, "out")[i]
                    axis = f", with an axis of {size} in front" if flag else ""
                    kind = TypeError if own.shape == expected.shape else ShapeError
                    raise kind(
                        f"{label}: {path} is {own}, but out_batched={flag} tells {expected}: the "
                        f"result of the function{axis}"
                    )
                found.append(cast(leaf, expected.dtype))
            return found

        program, captured = hoist(stage(flat, _avals(size, flags, avals), label))
        return program, captured, tuple(out_flags)


class _JvpBatching(_Batching):
    """The jvp of a rule: operands are ``(*primals, *tangents[nonzero])``.

    Attributes:
      out_nonzero: per result, whether its tangent is one.
      has_primals: whether results are ``(*outs, *tangents)``, not tangents only.
    """

    __slots__ = ("has_primals", "inner", "nonzero", "out_nonzero")

    def __init__(
        self, inner: _Batching, nonzero: Flags, out_nonzero: Flags, has_primals: bool
    ) -> None:
        self.label = inner.label
        self.inner = inner
        self.nonzero = nonzero
        self.out_nonzero = out_nonzero
        self.has_primals = has_primals

    def program(
        self, size: int, flags: Flags, avals: Sequence[Aval]
    ) -> tuple[Jaxpr, tuple[Any, ...], Flags]:
        """The jvp of the program of the rule; a value has the axis if its tangent has it."""
        n = len(self.nonzero)
        dot_flags = spread(self.nonzero, flags[n:], lambda i: False)
        both = tuple(a or b for a, b in zip(flags[:n], dot_flags, strict=True))
        one, captured, out_flags = self.inner.program(size, both, avals[:n])
        k = len(captured)
        pushed, found = jvp_jaxpr(one, (False,) * k + self.nonzero, self.out_nonzero)
        wanted = (*both, *select(both, self.nonzero))

        def run(*operands: object) -> list[Any]:
            outs = evaluate(pushed, [*operands[:k], *_widened(size, operands[k:], flags, wanted)])
            values, dots = split(outs, len(found))
            dots = select(spread(found, dots, lambda i: None), self.out_nonzero)
            return [*values, *dots] if self.has_primals else dots

        staged = stage(run, [*one.in_avals[:k], *_avals(size, flags, avals)], self.label)
        dots = tuple(select(out_flags, self.out_nonzero))
        return staged, captured, (*out_flags, *dots) if self.has_primals else dots


class _TransposedBatching(_Batching):
    """The transpose of a rule: operands are ``(*operands that are not linear, *cts[nonzero])``.

    Attributes:
      linear: per operand of the rule, whether it is transposed in it.
      linear_avals: avals of these, of one element.
      nonzero: per result of the rule, whether there is a cotangent.
      in_nonzero: per linear operand, whether its cotangent is a result.
    """

    __slots__ = ("in_nonzero", "inner", "linear", "linear_avals", "nonzero")

    def __init__(
        self,
        inner: _Batching,
        linear: Flags,
        linear_avals: Sequence[Aval],
        nonzero: Flags,
        in_nonzero: Flags,
    ) -> None:
        self.label = inner.label
        self.inner = inner
        self.linear = linear
        self.linear_avals = linear_avals
        self.nonzero = nonzero
        self.in_nonzero = in_nonzero

    def program(
        self, size: int, flags: Flags, avals: Sequence[Aval]
    ) -> tuple[Jaxpr, tuple[Any, ...], Flags]:
        """The transpose of the program of the rule; each element has cotangents of its own."""
        known = [not flag for flag in self.linear]
        n = sum(known)
        own_flags = tuple(spread(known, flags[:n], lambda i: True))
        linear_avals = iter(self.linear_avals)
        own_avals = spread(known, avals[:n], lambda i: next(linear_avals))
        one, captured, out_flags = self.inner.program(size, own_flags, own_avals)
        k = len(captured)
        all_of = (True,) * len(out_flags)
        forced = stage(
            lambda *operands: _widened(size, evaluate(one, operands), out_flags, all_of),
            one.in_avals,
            self.label,
        )
        pulled, found = transpose_jaxpr(forced, (False,) * k + self.linear, self.nonzero)
        wanted = (*flags[:n], *(True,) * (len(flags) - n))

        def run(*operands: object) -> list[Any]:
            values = [*operands[:k], *_widened(size, operands[k:], flags, wanted)]
            cts = spread(found, evaluate(pulled, values), lambda i: None)
            return [
                zeros(batched_aval(aval, size)) if ct is None else ct
                for ct, aval, flag in zip(cts, self.linear_avals, self.in_nonzero, strict=True)
                if flag
            ]

        staged = stage(run, [*one.in_avals[:k], *_avals(size, flags, avals)], self.label)
        return staged, captured, (True,) * sum(self.in_nonzero)


# the primitive ----------------------------------------------------------------------------------


def _impl(*operands: object, jaxpr: Jaxpr, rule: _Batching) -> tuple[Any, ...]:
    return tuple(run(jaxpr, operands))


def _aval(*avals: Aval, jaxpr: Jaxpr, rule: _Batching) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, rule: _Batching) -> Any:
    nonzero = is_nonzero(tangents)
    program, out_nonzero = jvp_jaxpr(jaxpr, nonzero)
    pushed = _JvpBatching(rule, nonzero, out_nonzero, True)
    operands = (*primals, *select(tangents, nonzero))
    outs, dots = split(bind(custom_vmap_p, *operands, jaxpr=program, rule=pushed), len(out_nonzero))
    return outs, spread(out_nonzero, dots, lambda i: Zero(jaxpr.out_avals[i].strong()))


def _linearize(
    needs: Flags, operands: Sequence[Any], *, jaxpr: Jaxpr, rule: _Batching
) -> tuple[tuple[Any, ...], LinearProgram]:
    outs = bind(custom_vmap_p, *operands, jaxpr=jaxpr, rule=rule)
    both, out_nonzero = jvp_jaxpr(jaxpr, needs)
    n = len(out_nonzero)
    program = prune_jaxpr(both, (False,) * n + (True,) * (len(both.outvars) - n))[0]
    pushed = _JvpBatching(rule, needs, out_nonzero, False)

    def linear(*dots: Any) -> list[Any]:
        found = bind(custom_vmap_p, *operands, *dots, jaxpr=program, rule=pushed)
        return spread(out_nonzero, found, lambda i: zeros(jaxpr.out_avals[i].strong()))

    avals = select(tangent_avals(jaxpr.in_avals), needs)
    staged = stage(linear, avals, f"linear part of {rule.label}", name=jaxpr.name)
    consts = tuple(kept_residuals(staged.consts, operands, needs))
    targets = tuple(i for i, need in enumerate(needs) if need)
    return outs, LinearProgram(replace(staged, consts=consts, cache={}), targets, ())


def _transpose(
    cts: Sequence[Any], operands: Sequence[Any], *, jaxpr: Jaxpr, rule: _Batching
) -> tuple[Any, ...]:
    linear, nonzero = tuple(map(is_linear, operands)), is_nonzero(cts)
    program, in_nonzero = transpose_jaxpr(jaxpr, linear, nonzero)
    avals = select(jaxpr.in_avals, linear)
    pulled = _TransposedBatching(rule, linear, tangent_avals(avals), nonzero, in_nonzero)
    known = [operand for operand in operands if not is_linear(operand)]
    values = [plain(ct) for ct in select(cts, nonzero)]
    found = iter(bind(custom_vmap_p, *known, *values, jaxpr=program, rule=pulled))
    of_linear = iter(in_nonzero)
    return tuple(next(found) if flag and next(of_linear) else None for flag in linear)


def _batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, jaxpr: Jaxpr, rule: _Batching
) -> tuple[Any, ...]:
    flags = tuple(dim is not None for dim in dims)
    program, captured, out_flags = rule.program(size, flags, jaxpr.in_avals)
    outs = evaluate(program, [*captured, *to_front(size, operands, dims)])
    return outs, [0 if flag else None for flag in out_flags]


custom_vmap_p = Primitive(
    "custom_vmap",
    impl=_impl,
    abstract_eval=_aval,
    jvp=Joint(_jvp),
    linearize=_linearize,
    transpose=_transpose,
    batch=_batch,
    holds_programs=True,
    lower=Structured("call"),
)

PRIMITIVES: tuple[Primitive, ...] = (custom_vmap_p,)


# the decorators ---------------------------------------------------------------------------------


class custom_vmap(Wrapper, Generic[P, R]):  # noqa: N801  # JAX's name of a decorator
    """Give a function a rule for ``vmap``; elsewhere it is called as it is.

    Derivatives are the function's, those of a batch the rule's.

    Args:
      fun: function of pytrees of arrays.

    Example:
      >>> import functrans as ft
      >>> @ft.custom_vmap
      ... def dot(x, y):
      ...     return x @ y
      >>> @dot.def_vmap
      ... def dot_vmap(axis_size, in_batched, x, y):
      ...     print(axis_size, in_batched)
      ...     return np.einsum("ij,...j->i", x, y), True
      >>> ft.vmap(dot, (0, None))(np.ones((2, 3)), np.ones(3))
      2 (True, False)
      array([3., 3.])
    """

    @boundary
    def __init__(self, fun: Callable[P, R]) -> None:
        check_callable("custom_vmap", fun)
        take_over(self, fun)
        self._fun = fun
        self._label = f"custom_vmap of {name_of(fun)}"
        self._rule: Callable[..., Any] | None = None

    def def_vmap(self, rule: Rule) -> Rule:
        """Set the rule.

        Args:
          rule: function ``(axis_size, in_batched, *args) -> (out, out_batched)``: ``args`` have the
            batch axis in front where ``in_batched``, a tuple with the structure of ``args``, is
            true; ``out_batched`` says it of the leaves of ``out`` (a prefix of its structure).

        Returns:
          ``rule``, so that this can be used as a decorator.
        """
        check_callable(f"{self._label}: def_vmap", rule)
        self._rule = rule
        return rule

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        if innermost_staging() is None:  # nothing is batched
            return call_traced(self._fun, *args, **kwargs)
        try:
            parameters = signature_of(self._fun)
        except (TypeError, ValueError):
            parameters = None
        full = by_position(self._label, parameters, args, kwargs)
        leaves, treedef, paths = flatten_operands(self._label, full, "args")
        avals = list(map(aval_of, leaves))
        fun = functools.partial(call_traced, self._fun)
        body = stage_body(self._label, fun, treedef, avals, paths)
        rule = _UserBatching(
            self._label, self._rule, len(body.captured), treedef, body.treedef, body.out_avals
        )
        outs = bind(custom_vmap_p, *body.captured, *leaves, jaxpr=body.jaxpr, rule=rule)
        return tree.unflatten(body.treedef, outs)

    def __get__(self, instance: Any, owner: object = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<custom_vmap of f>``."""
        return f"<{self._label}>"

    def parts(self) -> tuple[Any, ...]:
        """The function and its rule."""
        return (self._fun, self._rule)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> custom_vmap[P, R]:
        """The same decorated function around other functions."""
        new: custom_vmap[P, R] = custom_vmap(Late(parts, 0, self._fun))
        new._rule = None if self._rule is None else Late(parts, 1, self._rule)
        return new


@boundary
def sequential_vmap(fun: Callable[P, R]) -> custom_vmap[P, R]:
    """A function whose batches are computed by a loop over the elements, one after the other.

    Args:
      fun: function of pytrees of arrays.

    Example:
      >>> import functrans as ft
      >>> f = ft.sequential_vmap(lambda x: np.sin(x))
      >>> ft.make_jaxpr(ft.vmap(f))(np.ones(3)).eqns[-1].primitive.name
      'scan'
    """
    function: custom_vmap[P, R] = custom_vmap(fun)

    def rule(axis_size: int, in_batched: object, *args: object) -> Any:
        flags = tree.leaves(in_batched)
        leaves, treedef = tree.flatten(args)

        def one(mapped: Sequence[Any]) -> Any:
            given = iter(mapped)
            full = [next(given) if flag else x for x, flag in zip(leaves, flags, strict=True)]
            return call_traced(fun, *tree.unflatten(treedef, full))

        return map_sequentially(one, select(leaves, flags)), True

    function.def_vmap(rule)
    return function
