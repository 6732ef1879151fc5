"""Decorators that give a function derivative rules: ``custom_jvp``, ``custom_vjp`` and relatives.

Here: the decorators, the calling conventions of users' rules, the checks of what rules return, and
``stop_gradient``. Not here: how calls are differentiated (``control.custom_calls``).

One rule is enough for both modes: reverse mode transposes a jvp rule, which is linear in tangents;
forward mode transposes a backward function, which is linear in cotangents.

Layer: ``control``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Concatenate, Generic, Self, overload

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import check_structure
from functrans.control.call_records import Call, JvpCall, Pullback, VjpCall
from functrans.control.closures import Template, make_template
from functrans.control.custom_calls import custom_jvp_p, custom_vjp_p
from functrans.core.arguments import (
    canonical,
    check_argnums,
    check_callable,
    leaf_description,
    name_of,
    take_over,
)
from functrans.core.avals import Aval, ShapedArray, aval_of_plain, is_differentiable_dtype
from functrans.core.boundary import boundary
from functrans.core.calling import call_traced, traced_form
from functrans.core.dispatch import Trace, Tracer, aval_of, bind, inner_trace, tracing
from functrans.core.primitive import Primitive
from functrans.core.source import defined_at, here, signature_of
from functrans.core.state import open_traces
from functrans.core.structs import SymbolicZero
from functrans.core.transformed import Wrapper
from functrans.core.values import Argnums, Array, Instance, Operand, P, Q, R, Result, Rule
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import hoist
from functrans.passes.staging import stage
from functrans.primitives.structural import cast, stop_gradient_p

# checks -----------------------------------------------------------------------------------------


def _pair(label: str, rule: str, result: tuple[Any, ...], names: str) -> tuple[Any, Any]:
    """A pair that a rule returns."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        raise TypeError(f"{label}: {rule} must return a pair {names}, got {got}{here()}")
    return result


def _fitted(label: str, what: str, value: Any, expected: Aval, where: str) -> Any:
    """A tangent or cotangent of a rule, in the type of what it belongs to.

    ``None`` for integers and symbolic zeros.

    Raises:
      ShapeError, TypeError: it has another type.
    """
    if not is_differentiable_dtype(expected.dtype):
        return None
    if type(value) is SymbolicZero:
        if value.shape == expected.shape:
            return None
        raise ShapeError(f"{label}: {what} is {value}, expected the shape of {where}, {expected}")
    value = canonical(value, lambda: f"{label}: {what}")
    aval: Any = aval_of(value)
    if aval.shape != expected.shape:
        raise ShapeError(
            f"{label}: {what} is {aval}, expected {expected.strong()}, the type of {where}"
        )
    if aval.dtype != expected.dtype and not (
        aval.weak and np.can_cast(aval.dtype, expected.dtype, "same_kind")
    ):
        raise TypeError(
            f"{label}: {what} is {aval}, expected {expected.strong()}, the type of {where}; "
            "convert it with .astype"
        )
    return cast(value, expected.dtype)


def _leaves(label: str, what: str, value: object) -> tuple[list[Any], Any]:
    """Leaves of a result, as arrays."""
    value = tree.fold_float0(value)
    leaves, treedef = tree.flatten(value)
    return [
        canonical(leaf, functools.partial(leaf_description, label, value, i, what))
        for i, leaf in enumerate(leaves)
    ], treedef


def by_position(
    label: str, signature: inspect.Signature | None, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, ...]:
    """Arguments of a function by position, with defaults: rules see every one of them.

    Arguments that can only be passed by keyword keep their defaults, which are a part of the
    function (``functools.partial`` binds such).

    Raises:
      TypeError: an argument cannot be given by position.
    """
    if signature is None:
        if kwargs:
            raise TypeError(
                f"{label}: keyword arguments {', '.join(kwargs)} cannot be placed, since "
                "the signature of the function is not known; pass them by position"
            )
        return args
    parameters = signature.parameters
    if not kwargs and len(args) == len(parameters):
        return args
    bound = signature.bind(*args, **kwargs)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD)
    given = [name for name in bound.arguments if parameters[name].kind in by_name]
    if given:
        raise TypeError(
            f"{label}: keyword-only arguments ({', '.join(given)}) cannot be passed on "
            "to rules; make them positional, or bind them with functools.partial before "
            "decorating"
        )
    bound.apply_defaults()
    return bound.args


def _none(aval: Any, symbolic: bool) -> Array | SymbolicZero:
    """What a rule gets where there is no tangent or cotangent."""
    if symbolic:
        real = is_differentiable_dtype(aval.dtype)
        return SymbolicZero(ShapedArray(aval.shape, aval.dtype if real else tree.FLOAT0))
    return np.zeros(aval.shape, tree.FLOAT0)


# calls ------------------------------------------------------------------------------------------


class _Signature:
    """How a call's leaves make up arguments, and its results leaves.

    Attributes:
      label: what it is, for messages.
      template: function, rules, and the arguments that are not differentiated.
      nondiff: positions of these arguments.
      n_args: number of all arguments.
      treedef: structure of the tuple of the others.
      out: structure of the result, once the function has run.
    """

    __slots__ = ("label", "n_args", "nondiff", "out", "template", "treedef")

    def __init__(
        self, label: str, template: Template, nondiff: tuple[int, ...], n_args: int, treedef: Any
    ) -> None:
        self.label = label
        self.template = template
        self.nondiff = nondiff
        self.n_args = n_args
        self.treedef = treedef
        self.out: list[Any] = []

    def arguments(self, nondiff: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """All arguments in order."""
        others = iter(tree.unflatten(self.treedef, leaves))
        fixed = dict(zip(self.nondiff, nondiff, strict=True))
        return [fixed[i] if i in fixed else next(others) for i in range(self.n_args)]

    def results(self, result: object) -> list[Any]:
        """Leaves of a result."""
        leaves, treedef = _leaves(self.label, "result", result)
        self.out[:] = [treedef]
        return leaves


class _UserJvpCall(JvpCall):
    """A call of a function that ``custom_jvp`` decorates."""

    __slots__ = ("signature", "takes_zeros")

    def __init__(
        self, signature: _Signature, refused: tuple[str | None, ...], symbolic: bool
    ) -> None:
        self.label = signature.label
        self.refused = refused
        self.signature = signature
        self.takes_zeros = symbolic

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The function."""
        fun, _, nondiff = self.signature.template.fill(closed)
        result = call_traced(fun, *self.signature.arguments(nondiff, args))
        return self.signature.results(result)

    def jvp(
        self, closed: Sequence[Any], args: Sequence[Any], tangents: Sequence[Any]
    ) -> tuple[list[Any], list[Any]]:
        """The user's rule, and the checks of its results."""
        signature, label = self.signature, self.label
        _, rule, nondiff = signature.template.fill(closed)
        filled = [
            _none(aval_of(x), self.takes_zeros) if t is None else t
            for t, x in zip(tangents, args, strict=True)
        ]
        result = call_traced(
            rule,
            *nondiff,
            tree.unflatten(signature.treedef, args),
            tree.unflatten(signature.treedef, filled),
        )
        out, out_dot = _pair(label, "the jvp rule", result, "(primal_out, tangent_out)")
        expected = signature.out[0] if signature.out else None
        leaves = signature.results(out)
        (folded,) = signature.out
        if expected is not None:
            check_structure(label, expected, folded, "primal_out", "the result of the function")
        given, treedef = tree.flatten(out)
        dots, dot_treedef = tree.flatten(out_dot)
        check_structure(label, treedef, dot_treedef, "tangent_out", "primal_out")
        dots = [dot for dot, x in zip(dots, given, strict=True) if not tree.is_float0(x)]
        names = tree.paths_of(folded, "primal_out")
        dot_names = tree.paths_of(folded, "tangent_out")
        return leaves, [
            _fitted(label, f"{dot_name} of the jvp rule", dot, aval_of(leaf), name)
            for dot, leaf, name, dot_name in zip(dots, leaves, names, dot_names, strict=True)
        ]


class _UserVjpCall(VjpCall):
    """A call of a function that ``custom_vjp`` decorates.

    Attributes:
      symbolic: whether the rules take :class:`Perturbed` and :class:`SymbolicZero`.
    """

    __slots__ = ("signature", "symbolic")

    def __init__(
        self, signature: _Signature, refused: tuple[str | None, ...], symbolic: bool = False
    ) -> None:
        self.label = signature.label
        self.refused = refused
        self.signature = signature
        self.symbolic = symbolic

    def primal(self, closed: Sequence[Any], args: Sequence[Any]) -> list[Any]:
        """The function."""
        fun, _, _, nondiff = self.signature.template.fill(closed)
        result = call_traced(fun, *self.signature.arguments(nondiff, args))
        return self.signature.results(result)

    def forward(
        self, closed: Sequence[Any], args: Sequence[Any], perturbed: Sequence[bool]
    ) -> tuple[list[Any], list[Any], _UserPullback]:
        """The user's forward function; its residuals are the leaves that are arrays."""
        signature = self.signature
        _, fwd, _, nondiff = signature.template.fill(closed)
        given = list(map(CustomVJPPrimal, args, perturbed)) if self.symbolic else args
        result = call_traced(fwd, *signature.arguments(nondiff, given))
        out, residuals = _pair(self.label, "fwd", result, "(out, residuals)")
        expected = signature.out[0] if signature.out else None
        outs = signature.results(out)
        if expected is not None:
            check_structure(
                self.label, expected, signature.out[0], "out of fwd", "the result of the function"
            )
        leaves, treedef = tree.flatten(residuals)
        is_array = tuple(
            isinstance(leaf, Tracer) or aval_of_plain(leaf) is not None for leaf in leaves
        )
        arrays = [leaf for leaf, flag in zip(leaves, is_array, strict=True) if flag]
        others = [leaf for leaf, flag in zip(leaves, is_array, strict=True) if not flag]
        pullback = _UserPullback(
            signature, len(closed), is_array, others, treedef, [aval_of(x) for x in args],
            [aval_of(x) for x in outs], self.symbolic,
        )  # fmt: skip
        return outs, [*closed, *arrays], pullback


class CustomVJPPrimal:
    """An argument of a forward function that was set with ``symbolic_zeros=True``.

    Attributes:
      value: the argument.
      perturbed: whether a derivative is asked in it.
    """

    __slots__ = ("perturbed", "value")

    def __init__(self, value: Any, perturbed: bool) -> None:
        self.value = value
        self.perturbed = perturbed

    def __repr__(self) -> str:
        """``CustomVJPPrimal(array(2.), perturbed=True)``."""
        return f"CustomVJPPrimal({self.value!r}, perturbed={self.perturbed})"


class _UserPullback(Pullback):
    """The backward function of a call that ``custom_vjp`` decorates.

    Attributes:
      pusher: from residuals and tangents to the tangents of the results; ``None`` if there is no
        such rule.
    """

    __slots__ = (
        "arg_avals", "is_array", "n_closed", "others", "out_avals", "pusher", "signature",
        "takes_zeros", "treedef",
    )  # fmt: skip

    def __init__(
        self,
        signature: _Signature,
        n_closed: int,
        is_array: tuple[bool, ...],
        others: list[Any],
        treedef: Any,
        arg_avals: list[Any],
        out_avals: list[Any],
        symbolic: bool,
    ) -> None:
        self.label = signature.label
        self.takes_zeros = symbolic
        self.signature = signature
        self.n_closed = n_closed
        self.is_array = is_array
        self.others = others
        self.treedef = treedef
        self.arg_avals = arg_avals
        self.out_avals = out_avals
        self.pusher: Callable[[Any, Sequence[Any]], list[Any]] | None = None

    @property
    def has_push(self) -> bool:  # type: ignore[override]  # not set
        """Whether there is a rule for forward mode."""
        return self.pusher is not None

    def push(self, residuals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
        """That rule."""
        assert self.pusher is not None
        return self.pusher(self._structured(residuals), tangents)

    def _structured(self, residuals: Sequence[Any]) -> Any:
        """The residuals as the user's forward function returned them."""
        arrays, others = iter(residuals[self.n_closed :]), iter(self.others)
        leaves = [next(arrays) if flag else next(others) for flag in self.is_array]
        return tree.unflatten(self.treedef, leaves)

    def pull(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """The user's backward function, and the checks of its results."""
        signature = self.signature
        _, _, bwd, nondiff = signature.template.fill(residuals[: self.n_closed])
        filled = [
            _none(aval, self.takes_zeros) if ct is None else ct
            for ct, aval in zip(cts, self.out_avals, strict=True)
        ]
        result = call_traced(
            bwd, *nondiff, self._structured(residuals), tree.unflatten(signature.out[0], filled)
        )
        return self._checked(result, bwd)

    def _checked(self, result: Sequence[Array], bwd: object) -> list[Any]:
        """Cotangents of the leaves of the arguments; ``None`` for zero."""
        signature, label = self.signature, self.label
        rule = f", of bwd{defined_at(bwd)}"
        positions = [i for i in range(signature.n_args) if i not in signature.nondiff]
        if not isinstance(result, (tuple, list)) or len(result) != len(positions):
            got = (
                f"{len(result)} items"
                if isinstance(result, (tuple, list))
                else type(result).__name__
            )
            raise TypeError(
                f"{label}: bwd must return a tuple of {len(positions)} cotangents, one for each "
                f"differentiated argument, got {got}{rule}"
            )
        avals = iter(self.arg_avals)
        found: list[Any] = []
        children = tree.children_of(signature.treedef)
        for position, ct, expected in zip(positions, result, children, strict=True):
            own = [next(avals) for _ in range(expected.num_leaves)]
            root = f"args[{position}]"
            try:
                cts = _aligned(ct, expected, iter([is_differentiable_dtype(a.dtype) for a in own]))
            except TreeMismatchError:
                what = f"the cotangent of {root} returned by bwd"
                check_structure(label, expected, tree.structure(ct), what, root)
                raise
            for leaf, aval, path in zip(cts, own, tree.paths_of(expected, root), strict=True):
                what = f"the cotangent of {path} returned by bwd"
                found.append(
                    None if leaf is None else _fitted(label, what, leaf, aval, path + rule)
                )
        return found


def _aligned(ct: Array, treedef: Any, has_tangent: Iterator[bool]) -> list[Any]:
    """Leaves of a cotangent by those of its argument; ``None``, at any node, stands for zeros.

    Where all leaves are integers or booleans there may be anything.
    """
    flags = [next(has_tangent) for _ in range(treedef.num_leaves)]
    if ct is None or not any(flags):
        return [None] * len(flags)
    if treedef is tree.LEAF:
        return [ct]
    below = iter(flags)
    items = zip(tree.children_of(treedef), tree.children_up_to(treedef, ct), strict=True)
    return [leaf for child, item in items for leaf in _aligned(item, child, below)]


def _refusals(tracers: Sequence[Tracer], values: Sequence[Any]) -> tuple[str | None, ...]:
    """Why no derivative can be taken in tracers that are arguments which are not differentiated.

    Those that a function among such arguments refers to are no arguments.
    """
    if not tracers:
        return ()
    excluded = {id(leaf) for leaf in tree.leaves(tuple(values)) if isinstance(leaf, Tracer)}
    reason = (
        "a derivative was asked in an argument that nondiff_argnums excludes; take it out of "
        "nondiff_argnums, or pass ft.stop_gradient(x)"
    )
    return tuple(reason if id(tracer) in excluded else None for tracer in tracers)


# decorators -------------------------------------------------------------------------------------


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
            signature = _Signature(self._label, template, nondiff, len(full), treedef)
            call = self._call(signature, _refusals(tracers, fixed))
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

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        """The user's rules."""
        raise NotImplementedError

    def _call(self, signature: _Signature, refused: tuple[str | None, ...]) -> Call:
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

    @boundary
    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self._jvp: Callable[..., Any] | None = None

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
        self._jvp = jvp
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
                    total = part if total is None else tree.map(_add, total, part)
            if total is None:
                total = tree.map(lambda x: np.zeros(aval_of(x).shape, aval_of(x).dtype), out)
            return out, total

        self._jvp = jvp
        self._symbolic = False

    def parts(self) -> tuple[Any, ...]:
        """The function and its rule."""
        return (self._fun, self._jvp)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> custom_jvp:
        """The same decorated function around other functions."""
        new = custom_jvp(Late(parts, 0, self._fun), self._nondiff)
        new._jvp = None if self._jvp is None else Late(parts, 1, self._jvp)
        new._symbolic = self._symbolic
        return new

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        if self._jvp is None:
            raise TypeError(f"{self._label} has no rule yet{here()}; give one: f.defjvp(rule)")
        return (self._jvp,)

    def _call(self, signature: _Signature, refused: tuple[str | None, ...]) -> Call:
        return _UserJvpCall(signature, refused, self._symbolic)


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

    @boundary
    def __init__(
        self,
        fun: Callable[P, R],
        nondiff_argnums: Argnums = (),
        nondiff_argnames: str | Sequence[str] = (),
    ) -> None:
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self._forward: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None

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
        self._forward = fwd
        self._backward = bwd
        self._symbolic = symbolic_zeros

    def parts(self) -> tuple[Any, ...]:
        """The function and its rules."""
        return (self._fun, self._forward, self._backward)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> custom_vjp:
        """The same decorated function around other functions."""
        new = custom_vjp(Late(parts, 0, self._fun), self._nondiff)
        new._forward = None if self._forward is None else Late(parts, 1, self._forward)
        new._backward = None if self._backward is None else Late(parts, 2, self._backward)
        new._symbolic = self._symbolic
        return new

    def _rules(self) -> tuple[Callable[..., Any], ...]:
        if self._forward is None or self._backward is None:
            raise TypeError(f"{self._label} has no rule yet{here()}; give one: f.defvjp(fwd, bwd)")
        return (self._forward, self._backward)

    def _call(self, signature: _Signature, refused: tuple[str | None, ...]) -> Call:
        return _UserVjpCall(signature, refused, self._symbolic)


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


def _add(a: Array, b: Array) -> Any:
    return a + b


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
        out, pullback = _pair(f"custom_gradient of {name_of(fun)}", "it", result, "(out, pullback)")
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
            return _none(aval, symbolic_zeros)
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
