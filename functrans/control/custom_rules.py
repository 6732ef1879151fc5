"""Decorators that give a function derivative rules: ``custom_jvp``, ``custom_vjp`` and relatives.

Here: the decorators and ``stop_gradient``. Not here: the calling conventions of users' rules
(``control.rule_conventions``), how calls are differentiated (``control.custom_calls``).

One rule is enough for both modes: reverse mode transposes a jvp rule, which is linear in tangents;
forward mode transposes a backward function, which is linear in cotangents.

Layer: ``control``.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Concatenate, Generic, Self, overload

import numpy as np

from functrans import pytrees as tree
from functrans.control.call_records import Call
from functrans.control.closures import make_template
from functrans.control.custom_calls import custom_jvp_p, custom_vjp_p
from functrans.control.rule_conventions import (
    Signature,
    UserJvpCall,
    UserVjpCall,
    by_position,
    no_tangent,
    pair_of,
    refusals,
)
from functrans.core.arguments import (
    canonical,
    check_argnums,
    check_callable,
    leaf_description,
    name_of,
    take_over,
)
from functrans.core.avals import aval_of_plain, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import call_traced, traced_form
from functrans.core.dispatch import Trace, Tracer, aval_of, bind, inner_trace, tracing
from functrans.core.primitive import Primitive
from functrans.core.source import here, signature_of
from functrans.core.state import open_traces
from functrans.core.transformed import Wrapper
from functrans.core.values import Argnums, Array, Instance, Operand, P, Q, R, Result, Rule
from functrans.errors import UnsupportedOperationError
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import hoist
from functrans.passes.staging import stage
from functrans.primitives.structural import stop_gradient_p


def _is_unexplained_nest(traceback: TracebackType | None) -> bool:
    """Whether the stack is full of functions with rules in one another, below the first of them.

    The end of the outermost trace explains that; here there is none. A function that stands in
    itself is no nest but the user's recursion.
    """
    assert traceback is not None
    code, outer = traceback.tb_frame.f_code, traceback.tb_frame.f_back
    while outer is not None and outer.f_code is not code:
        outer = outer.f_back
    if open_traces.get() or outer is not None:
        return False
    called = []
    while traceback is not None:
        if traceback.tb_frame.f_code is code:
            called.append(id(traceback.tb_frame.f_locals["self"]))
        traceback = traceback.tb_next
    return len(set(called)) == len(called)


class _CustomFunction(Wrapper, Generic[P, R]):
    """A function with rules (abstract); without a function, a decorator."""

    _primitive: Primitive
    _kind: str
    _setter: str

    @overload
    def __new__(
        cls,
        fun: Callable[P, R],
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> Self: ...
    @overload
    def __new__(  # type: ignore[misc]  # a decorator
        cls,
        fun: None = None,
        *,
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> Callable[[Callable[Q, Result]], _CustomFunction[Q, Result]]: ...
    def __new__(
        cls,
        fun: object = None,
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> Any:
        """Without a function, a decorator: ``@ft.custom_jvp(nondiff_argnums=0)``."""
        if fun is None:
            return functools.partial(
                cls, nondiff_argnums=nondiff_argnums, nondiff_argnames=nondiff_argnames
            )
        return super().__new__(cls)

    @boundary
    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        check_callable(self._kind, fun)
        take_over(self, fun)
        self._fun: Callable[..., R] = fun
        self._label = f"{self._kind} of {name_of(fun)}"
        numbers = (
            check_argnums(self._kind, nondiff_argnums)
            if isinstance(nondiff_argnums, int) or len(tuple(nondiff_argnums))
            else ()
        )
        self._nondiff = numbers if isinstance(numbers, tuple) else (numbers,)
        try:
            self._parameters: inspect.Signature | None = signature_of(fun)
        except (TypeError, ValueError):
            self._parameters = None
        if nondiff_argnames:
            names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else nondiff_argnames
            found = {self._position(name) for name in names}
            self._nondiff = tuple(sorted(found.union(self._nondiff)))
        self._given: tuple[Callable[..., Any], ...] = ()
        self._symbolic = False

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Without a function ``__new__`` gives a decorator."""
        return (self._fun,)

    def _position(self, name: str) -> int:
        """The position of an argument that ``nondiff_argnames`` names."""
        own = () if self._parameters is None else self._parameters.parameters.values()
        by_position = [
            p.name for p in own if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if name not in by_position:
            raise ValueError(
                f"{self._label}: nondiff_argnames: no argument {name!r} that can be given by "
                f"position; there are {', '.join(by_position) or 'none'}"
            )
        return by_position.index(name)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        try:
            rules = self._rules()
            full = by_position(self._label, self._parameters, args, kwargs)
            if not open_traces.get() and not any(isinstance(x, Tracer) for x in tree.leaves(full)):
                return self._fun(*full)  # tensors are tracers of a trace that is always open
            nondiff = tuple(i % len(full) for i in self._nondiff if -len(full) <= i < len(full))
            fixed = tuple(full[i] for i in nondiff)
            rest = tree.fold_float0(tuple(arg for i, arg in enumerate(full) if i not in nondiff))
            template, tracers = make_template((self._fun, *rules, fixed))
            leaves, treedef = tree.flatten(rest)
            if not tracers and not any(isinstance(leaf, Tracer) for leaf in leaves):
                return call_traced(self._fun, *full)
            values = [self._array(leaf, rest, i) for i, leaf in enumerate(leaves)]
            signature = Signature(self._label, template, nondiff, len(full), treedef)
            call = self._call(signature, refusals(tracers, fixed))
            outs = bind(self._primitive, *tracers, *values, call=call, jaxpr=None, n_extra=0)
            for out in outs:
                self._check_nesting(out)
            return tree.unflatten(signature.out[0], outs)
        except RecursionError as error:
            if type(error) is RecursionError and _is_unexplained_nest(error.__traceback__):
                with tracing(Trace(self._label)):  # its end explains the error
                    raise
            raise

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self: _CustomFunction[Concatenate[Instance, Q], R],
        instance: Instance,
        owner: object = None,
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: object = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<custom_vjp of f>``."""
        return f"<{self._label}>"

    def parts(self) -> tuple[Any, ...]:
        """The function and its rules."""
        return (self._fun, *self._given)

    def _with_parts(self, kind: Any, parts: Callable[[], tuple[Any, ...]]) -> Any:
        """The same function, decorated by a class, around other functions."""
        new = kind(Late(parts, 0, self._fun), self._nondiff)
        new._given = tuple([Late(parts, i, rule) for i, rule in enumerate(self._given, 1)])
        new._symbolic = self._symbolic
        return new

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        """The user's rules."""
        if not self._given:
            raise TypeError(f"{self._label} has no rule yet{here()}; give one: f.{self._setter}")
        return self._given

    def _call(self, signature: Signature, refused: tuple[str | None, ...]) -> Call:
        raise NotImplementedError

    def _array(self, leaf: Array, args: tuple[Any, ...], i: int) -> Array | complex:
        """A leaf of an argument that is differentiated."""
        if not isinstance(leaf, (np.ndarray, Tracer)) and aval_of_plain(leaf) is None:
            raise UnsupportedOperationError(
                f"{leaf_description(self._label, args, i, 'args')} is of type "
                f"{type(leaf).__qualname__}, not an array of numbers; name the argument in "
                "nondiff_argnums"
            )
        return canonical(leaf, lambda: leaf_description(self._label, args, i, "args"))

    def _check_nesting(self, out: Array) -> None:
        """Refuse a result that depends on a traced value by a way that is not looked through."""
        if not isinstance(out, Tracer):
            return
        for value in (getattr(out, "_value", None), getattr(out, "_tangent", None)):
            if isinstance(value, Tracer) and (
                inner_trace(value._trace, out._trace) is value._trace
            ):
                raise UnsupportedOperationError(
                    f"{self._label}: the function refers to {value._describe()} of "
                    f"{value._trace.label} in a way that cannot be followed (an attribute or a "
                    "global variable), so that its derivative would be lost; pass it as an argument"
                )


class custom_jvp(_CustomFunction[P, R]):  # noqa: N801  # JAX's name of a decorator
    """Give a function a rule for forward mode; reverse mode transposes it.

    Args:
      fun: function of pytrees of arrays. Without it, a decorator.
      nondiff_argnums: positions of arguments that are passed to the rule first and have no
        derivatives.
      nondiff_argnames: names of such arguments.

    Example:
      >>> @custom_jvp
      ... def f(x):
      ...     return np.log1p(np.exp(x))
      >>> @f.defjvp
      ... def f_jvp(primals, tangents):
      ...     (x,), (x_dot,) = primals, tangents
      ...     return f(x), x_dot / (1.0 + np.exp(-x))
    """

    _primitive = custom_jvp_p
    _kind = "custom_jvp"
    _setter = "defjvp(rule)"

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set the rule.

        Args:
          jvp: function ``(*nondiff, primals, tangents) -> (primal_out, tangent_out)``, linear in
            ``tangents``, which has the structure of ``primals``; the tangent of an integer has
            dtype ``float0``.
          symbolic_zeros: whether tangents that are zero for certain, those of integers among them,
            come as :class:`functrans.SymbolicZero`.

        Returns:
          ``jvp``, so that this can be used as a decorator.
        """
        check_callable(f"{self._label}: defjvp", jvp)
        self._given = (jvp,)
        self._symbolic = symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set the rule by one function for each argument.

        Args:
          *jvps: functions ``(tangent, out, *args) -> tangent of the result``, linear in
            ``tangent``; ``None`` for an argument on which the result does not depend.

        Raises:
          TypeError: the function has ``nondiff_argnums``.
        """
        if self._nondiff:
            raise TypeError(f"{self._label}: defjvps does not go with nondiff_argnums; use defjvp")

        function: Callable[..., R] = self

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
            if len(primals) != len(jvps):
                raise TypeError(
                    f"{self._label}: defjvps was given {len(jvps)} rules for {len(primals)} "
                    "arguments"
                )
            out = function(*primals)
            total: Any = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is not None:
                    part = rule(tangent, out, *primals)
                    total = part if total is None else tree.map(operator.add, total, part)
            if total is None:
                total = tree.map(lambda x: np.zeros(aval_of(x).shape, aval_of(x).dtype), out)
            return out, total

        self._given = (jvp,)
        self._symbolic = False

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> custom_jvp:
        """The same decorated function around other functions."""
        return self._with_parts(custom_jvp, parts)

    def _call(self, signature: Signature, refused: tuple[str | None, ...]) -> Call:
        return UserJvpCall(signature, refused, self._symbolic)


class custom_vjp(_CustomFunction[P, R]):  # noqa: N801  # JAX's name of a decorator
    """Give a function a rule for reverse mode; forward mode transposes it.

    Args:
      fun: function of pytrees of arrays. Without it, a decorator.
      nondiff_argnums: positions of arguments that are passed to the backward function first and
        have no derivatives.
      nondiff_argnames: names of such arguments.

    Example:
      >>> @custom_vjp
      ... def clipped(x):
      ...     return x
      >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    """

    _primitive = custom_vjp_p
    _kind = "custom_vjp"
    _setter = "defvjp(fwd, bwd)"

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False
    ) -> None:
        """Set the rule.

        Args:
          fwd: function of the arguments; returns ``(out, residuals)``.
          bwd: function ``(*nondiff, residuals, ct) -> cts``: from the cotangent of the result, a
            tuple with the cotangent of each differentiated argument. ``None`` stands for zeros, for
            an argument or for any part of it; for integers and booleans there may be anything.
          symbolic_zeros: whether cotangents that are zero for certain come as
            :class:`functrans.SymbolicZero`, and leaves of the arguments of ``fwd`` as objects with
            ``value`` and ``perturbed``, which says whether a derivative is asked in them.
        """
        check_callable(f"{self._label}: defvjp: fwd", fwd)
        check_callable(f"{self._label}: defvjp: bwd", bwd)
        self._given = (fwd, bwd)
        self._symbolic = symbolic_zeros

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> custom_vjp:
        """The same decorated function around other functions."""
        return self._with_parts(custom_vjp, parts)

    def _call(self, signature: Signature, refused: tuple[str | None, ...]) -> Call:
        return UserVjpCall(signature, refused, self._symbolic)


class Late(Wrapper):
    """A function that is found when it is first called."""

    def __init__(self, parts: Callable[[], tuple[Any, ...]], index: int, like: Any) -> None:
        self._parts = parts
        self._index = index
        functools.update_wrapper(self, like, updated=())

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        return self._parts()[self._index](*args, **kwargs)

    def parts(self) -> tuple[Any, ...]:
        """The function."""
        return (self._parts()[self._index],)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> Late:
        """The other function, found late as well."""
        return Late(parts, 0, self)


class _StaticResidual:
    """A residual that is no array: the program of a backward function."""

    __slots__ = ("jaxpr", "treedef")

    def __init__(self, jaxpr: Any, treedef: Any) -> None:
        self.jaxpr = jaxpr
        self.treedef = treedef


@boundary
def custom_gradient(fun: Callable[P, tuple[R, Any]]) -> Callable[P, R]:
    """Give a function a rule for reverse mode that is made together with its result.

    Args:
      fun: function that returns ``(out, pullback)``; ``pullback`` takes a cotangent of ``out`` and
        gives a tuple with the cotangent of each argument (or the one cotangent).

    Returns:
      Function of the same arguments that returns ``out``.

    Example:
      >>> @custom_gradient
      ... def f(x):
      ...     return x * x, lambda ct: 10.0 * ct
    """
    both: Callable[..., tuple[R, Any]] = traced_form("custom_gradient", fun)

    def primal(*args: object) -> R:
        return both(*args)[0]

    def forward(*args: Any) -> Any:
        result = both(*args)
        out, pullback = pair_of(
            f"custom_gradient of {name_of(fun)}", "it", result, "(out, pullback)"
        )
        leaves, out_treedef = tree.flatten(tree.fold_float0(out))
        treedefs: list[Any] = []

        def flat(*cts: object) -> list[Any]:
            given = iter(cts)
            filled = [
                next(given)
                if is_differentiable_dtype(aval_of(leaf).dtype)
                else np.zeros(aval_of(leaf).shape, tree.FLOAT0)
                for leaf in leaves
            ]
            pulled = pullback(tree.unflatten(out_treedef, filled))
            if len(args) == 1 and not (isinstance(pulled, tuple) and len(pulled) == 1):
                pulled = (pulled,)
            own, treedef = tree.flatten(tree.fold_float0(pulled))
            treedefs.append(treedef)
            return own

        avals = [
            aval.strong() for aval in map(aval_of, leaves) if is_differentiable_dtype(aval.dtype)
        ]
        jaxpr = stage(flat, avals, f"pullback of {name_of(fun)}", name=name_of(fun))
        program, consts = hoist(jaxpr)
        return out, (_StaticResidual(program, treedefs[0]), list(consts))

    def backward(residuals: Any, ct: Operand) -> Any:
        static, consts = residuals
        cts = [leaf for leaf in tree.leaves(ct) if getattr(leaf, "dtype", None) != tree.FLOAT0]
        return tree.unflatten(static.treedef, evaluate(static.jaxpr, [*consts, *cts]))

    functools.update_wrapper(primal, fun)
    function: Any = custom_vjp(primal)
    function.defvjp(forward, backward)
    return function


@boundary
def zero_from_primal(primal: object, symbolic_zeros: bool = False) -> tuple[Any, ...]:
    """Tangents of zero for a pytree of arrays.

    Args:
      primal: the pytree.
      symbolic_zeros: whether they are :class:`functrans.SymbolicZero` in place of arrays.

    Example:
      >>> zero_from_primal((2.0, 3), symbolic_zeros=True)
      (SymbolicZero(f64[]), SymbolicZero(float0[]))
    """

    def zero(leaf: object) -> Any:
        aval: Any = aval_of(leaf)
        real = is_differentiable_dtype(aval.dtype)
        if symbolic_zeros or not real:
            return no_tangent(aval, symbolic_zeros)
        return np.zeros(aval.shape, aval.dtype)

    return tree.map(zero, primal)


# stop_gradient ----------------------------------------------------------------------------------


def stop_gradient(x: R) -> R:
    """The same value as a constant of differentiation.

    Args:
      x: pytree of arrays; leaves that have no derivative are passed through.

    Example:
      >>> import functrans as ft
      >>> ft.grad(lambda x: x * stop_gradient(x))(3.0)
      array(3.)
    """

    def stop(leaf: Any) -> Any:
        if isinstance(leaf, Tracer) and is_differentiable_dtype(aval_of(leaf).dtype):
            return bind(stop_gradient_p, leaf)[0]
        return leaf

    return tree.map(stop, x)
