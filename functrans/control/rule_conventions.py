"""The calling conventions of users' derivative rules, and the checks of what rules return.

Here: how the leaves of a call make up the arguments of a function and its rules, calls and backward
functions as the equations carry them. Not here: the decorators (``control.custom_rules``), how
calls are differentiated (``control.custom_calls``).

Layer: ``control``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.bodies import check_structure
from functrans.control.call_records import JvpCall, Pullback, VjpCall
from functrans.control.closures import Template
from functrans.core.arguments import canonical, leaf_description
from functrans.core.avals import Aval, ShapedArray, aval_of_plain, is_differentiable_dtype
from functrans.core.calling import call_traced
from functrans.core.dispatch import Tracer, aval_of
from functrans.core.source import defined_at, here
from functrans.core.structs import SymbolicZero
from functrans.core.values import Array
from functrans.errors import ShapeError, TreeMismatchError
from functrans.primitives.structural import cast


def pair_of(label: str, rule: str, result: tuple[Any, ...], names: str) -> tuple[Any, Any]:
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


def no_tangent(aval: Any, symbolic: bool) -> Array | SymbolicZero:
    """What a rule gets where there is no tangent or cotangent."""
    if symbolic:
        real = is_differentiable_dtype(aval.dtype)
        return SymbolicZero(ShapedArray(aval.shape, aval.dtype if real else tree.FLOAT0))
    return np.zeros(aval.shape, tree.FLOAT0)


class Signature:
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


class UserJvpCall(JvpCall):
    """A call of a function that ``custom_jvp`` decorates."""

    __slots__ = ("signature", "takes_zeros")

    def __init__(
        self, signature: Signature, refused: tuple[str | None, ...], symbolic: bool
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
            no_tangent(aval_of(x), self.takes_zeros) if t is None else t
            for t, x in zip(tangents, args, strict=True)
        ]
        result = call_traced(
            rule,
            *nondiff,
            tree.unflatten(signature.treedef, args),
            tree.unflatten(signature.treedef, filled),
        )
        out, out_dot = pair_of(label, "the jvp rule", result, "(primal_out, tangent_out)")
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


class UserVjpCall(VjpCall):
    """A call of a function that ``custom_vjp`` decorates.

    Attributes:
      symbolic: whether the rules take :class:`Perturbed` and :class:`SymbolicZero`.
    """

    __slots__ = ("signature", "symbolic")

    def __init__(
        self, signature: Signature, refused: tuple[str | None, ...], symbolic: bool = False
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
    ) -> tuple[list[Any], list[Any], UserPullback]:
        """The user's forward function; its residuals are the leaves that are arrays."""
        signature = self.signature
        _, fwd, _, nondiff = signature.template.fill(closed)
        given = list(map(CustomVJPPrimal, args, perturbed)) if self.symbolic else args
        result = call_traced(fwd, *signature.arguments(nondiff, given))
        out, residuals = pair_of(self.label, "fwd", result, "(out, residuals)")
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
        pullback = UserPullback(
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


class UserPullback(Pullback):
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
        signature: Signature,
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
            no_tangent(aval, self.takes_zeros) if ct is None else ct
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


def refusals(tracers: Sequence[Tracer], values: Sequence[Any]) -> tuple[str | None, ...]:
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
