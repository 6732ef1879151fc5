"""Any Python or compiled function as one differentiable operation: ``external``.

Here: ``external``. Not here: the linear operation that its rules on plain arrays become
(``solvers.external_maps``), how a Python function is called from a program
(``control.callbacks``), custom rules of functions that can be traced (``control.custom_rules``).

The function gets real arrays under every transform. What its derivative is, the caller says: by a
rule that is itself a functrans function (``rules="traced"``: the other mode is its transpose, and
it can be differentiated again), by rules on plain arrays (``rules="arrays"``, for adjoints that are
compiled code), or by finite differences.

Layer: ``solvers``. Reference: step sizes as in Press et al., Numerical Recipes, 3rd ed. (2007),
sec. 5.7; the complex step as in Squire & Trapp, SIAM Review 40 (1998) 110.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.callbacks import pure_callback
from functrans.control.custom_calls import guarded
from functrans.control.custom_rules import custom_jvp, custom_vjp
from functrans.control.rule_conventions import UserPullback, UserVjpCall
from functrans.core.arguments import check_callable, name_of, named
from functrans.core.avals import is_differentiable_dtype
from functrans.core.boundary import as_user
from functrans.core.dispatch import Tracer, aval_of, bind, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.transformed import transform
from functrans.core.values import Array
from functrans.errors import NonDifferentiableError, ShapeError, TreeMismatchError
from functrans.passes.cotangents import zeros
from functrans.records import dataclass
from functrans.solvers.external_maps import (
    FD_METHODS,
    BasisMap,
    Differences,
    Map,
    NoMap,
    UserMap,
    external_linear_p,
)

# results ----------------------------------------------------------------------------------------


def announced(label: str, out_like: Callable[..., Any], args: Sequence[Any]) -> ShapeDtypeStruct:
    """The result's structure with ``ShapeDtypeStruct`` leaves."""
    if callable(out_like) and not hasattr(out_like, "shape"):
        out_like = out_like(*tree.map(_struct, tuple(args)))
    leaves, treedef = tree.flatten(out_like)
    found = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (bool, int, float, complex)):
            found.append(ShapeDtypeStruct((), np.asarray(leaf).dtype))
            continue
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        if shape is None or dtype is None:
            path = tree.key_paths(out_like, "out_like")[i]
            raise TypeError(
                f"{label}: {path} is a {type(leaf).__name__}, which has no shape and dtype"
                f"{here()}; use ft.ShapeDtypeStruct(shape, dtype), an array like the result, or a "
                "function of the arguments' shapes that returns them"
            )
        found.append(ShapeDtypeStruct(shape, dtype))
    return tree.unflatten(treedef, found)


def _struct(leaf: Array) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(shape_of(leaf), dtype_of(leaf))


def _checked_leaves(
    label: str, result: Array, expected: object, announced_by: str, dtypes_widen: bool = False
) -> list[np.ndarray]:
    """Leaves of what came back, as arrays.

    Args:
      label: what was called, for messages.
      result: what it returned.
      expected: its structure with ``ShapeDtypeStruct`` leaves.
      announced_by: where the expectation comes from, for messages.
      dtypes_widen: whether a dtype of the same kind is converted.

    Raises:
      TreeMismatchError, ShapeError, TypeError: it is not what was announced.
    """
    wanted, treedef = tree.flatten(expected)
    leaves, found = tree.flatten(result)
    if found != treedef:
        raise TreeMismatchError(
            f"{label} returned {tree.describe(found)}, but {announced_by} has structure "
            f"{tree.describe(treedef)}"
        )
    arrays = []
    for i, (leaf, struct) in enumerate(zip(leaves, wanted, strict=True)):
        value = np.asarray(leaf)
        is_number = type(leaf) in (bool, int, float, complex)
        fits = value.dtype == struct.dtype or (
            (is_number or dtypes_widen) and np.can_cast(value.dtype, struct.dtype, "same_kind")
        )
        if value.shape != struct.shape or not fits:
            kind = ShapeError if value.shape != struct.shape else TypeError
            raise kind(
                f"{label}: {tree.paths_of(treedef, 'result')[i]} is an array of shape "
                f"{value.shape} and dtype {value.dtype}, but {announced_by} says {struct.aval}"
            )
        arrays.append(np.array(value, struct.dtype))
    return arrays


# the function -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class External:
    """The settings of one external function."""

    fun: Callable[..., Any]
    out_like: Any
    jvp: Callable[..., Any] | None
    vjp: Callable[..., Any] | None
    fd: str | None
    fd_step: float | None
    rules: str
    derive: str | None
    vmap_method: str

    @property
    def label(self) -> str:
        """What it is, for messages."""
        return f"external {name_of(self.fun)}"

    def run(self, like: ShapeDtypeStruct, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """The function on real arrays under every transform."""

        @functools.wraps(self.fun, assigned=("__name__", "__qualname__", "__module__"), updated=())
        def checked(*own: Array | complex, **named: object) -> Array:
            expected = like
            lead = _lead_of(own, args)
            n = math.prod(lead)
            if lead:
                expected = tree.map(lambda s: ShapeDtypeStruct((n, *s.shape), s.dtype), like)
            if len(lead) > 1:  # one batch of all elements
                k = len(lead)
                own = tree.map(lambda x: guarded(np.reshape(x, (n, *np.shape(x)[k:]))), own)
            leaves = _checked_leaves(self.label, self.fun(*own, **named), expected, "out_like")
            if len(lead) > 1:
                leaves = [np.reshape(leaf, (*lead, *np.shape(leaf)[1:])) for leaf in leaves]
            return tree.unflatten(tree.structure(like), leaves)

        return pure_callback(checked, like, *args, vmap_method=self.vmap_method, **kwargs)

    def call(self, *args: Any, **kwargs: object) -> Any:
        """Call it: at once on plain arrays, as one operation on traced ones."""
        like = announced(self.label, self.out_like, args)
        if not any(isinstance(leaf, Tracer) for leaf in tree.leaves((args, kwargs))):
            return self.run(like, args, kwargs)

        def primal(*own: Array) -> Any:
            return self.run(like, own, kwargs)

        primal.__name__ = name_of(self.fun)
        if self.rules == "traced" and self.vjp is not None:
            return self._with_vjp(primal, kwargs)(*args)
        wrapped = custom_jvp(primal)
        wrapped.defjvp(functools.partial(self._push, like, kwargs))
        return wrapped(*args)

    def _with_vjp(self, primal: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        """Reverse mode by a rule in functrans operations; forward mode by one, or its transpose."""
        wrapped = custom_vjp(primal) if self.jvp is None else _WithPush(primal, self._pushed)
        vjp = self.vjp
        assert vjp is not None

        def forward(*own: Any) -> Any:
            outs = self.call(*own, **kwargs)  # not the bare function: it has derivatives again
            return outs, (own, outs)

        def backward(kept: Any, cts: Any) -> Any:
            own, outs = kept
            pulled = vjp(own, outs, cts)
            if not isinstance(pulled, (tuple, list)) or len(pulled) != len(own):
                got = f"{len(pulled)}" if isinstance(pulled, (tuple, list)) else (
                    type(pulled).__name__
                )  # fmt: skip
                raise TypeError(
                    f"{self.label}: vjp(primals, outs, cotangents) must return a tuple with one "
                    f"cotangent per argument ({len(own)}), got {got}"
                )
            return tuple(pulled)

        wrapped.defvjp(forward, backward)
        return wrapped

    def _pushed(self, kept: Any, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of results by the rule for forward mode, where there are both.

        Args:
          kept: arguments and results.
          tangents: per leaf of the arguments; ``None`` for zero.
        """
        own, outs = kept
        leaves, treedef = tree.flatten(tuple(own))
        given = [
            t if t is not None else zeros(aval_of(x).strong()) if is_real else np.zeros(shape_of(x))
            for t, x, is_real in zip(tangents, leaves, _are_real(leaves), strict=True)
        ]
        assert self.jvp is not None
        dots = self.jvp(own, tree.unflatten(treedef, given))
        wanted, out_treedef = tree.flatten(outs)
        return [
            zeros(aval_of(x).strong()) if dot is None else dot
            for dot, x in zip(_leaves_and_none(out_treedef, dots), wanted, strict=True)
        ]

    def _push(
        self,
        like: ShapeDtypeStruct,
        kwargs: dict[str, Any],
        primals: Sequence[Array],
        tangents: tuple[Array, ...],
    ) -> tuple[Array, Array]:
        """The rule for ``custom_jvp``: results and their tangents."""
        if self.jvp is None and self.vjp is None and self.fd is None:
            raise NonDifferentiableError(
                f"{self.label} has no derivative{here()}: nothing is known of the function. Give "
                "ft.external a rule, jvp=(primals, tangents) or vjp=(primals, outs, cotangents), "
                'or fd="central" for finite differences; or ft.stop_gradient its arguments'
            )
        outs = self.call(*primals, **kwargs)  # not the bare function: it has derivatives again
        if self.rules == "traced" and self.jvp is not None:
            return outs, self.jvp(primals, tangents)
        return outs, self._push_arrays(like, kwargs, primals, tangents, outs)

    def _push_arrays(
        self,
        like: object,
        kwargs: dict[str, Any],
        primals: Sequence[Array],
        tangents: tuple[Array, ...],
        outs: Array,
    ) -> Array:
        """Tangents of results by rules on plain arrays, or by finite differences."""
        leaves, treedef = tree.flatten(tuple(primals))
        dots = _leaves_and_none(treedef, tangents)
        out_leaves, out_treedef = tree.flatten(outs)
        in_avals: tuple[Any, ...] = tuple(aval_of(x).strong() for x in leaves)
        is_real = tuple(is_differentiable_dtype(aval.dtype) for aval in in_avals)
        out_avals: tuple[Any, ...] = tuple(aval_of(x).strong() for x in out_leaves)
        out_real = tuple(is_differentiable_dtype(aval.dtype) for aval in out_avals)
        real_in = tuple(a for a, real in zip(in_avals, is_real, strict=True) if real)
        real_out = tuple(a for a, real in zip(out_avals, out_real, strict=True) if real)
        given = [t for t, real in zip(dots, is_real, strict=True) if real]
        n = len(leaves) + len(out_leaves)
        shapes = _Shapes(treedef, out_treedef, in_avals, out_avals, is_real, out_real)
        if self.fd is not None:
            forward: Map = self._differences(shapes, like, kwargs, n)
            backward: Map = BasisMap(forward, real_in, real_out)
        else:
            forward, backward = self._maps(shapes, n, real_in, real_out)
        if isinstance(forward, NoMap) and not any(isinstance(t, Tracer) for t in given):
            raise NonDifferentiableError(forward.missing + here())
        pushed = iter(
            bind(
                external_linear_p,
                *leaves,
                *out_leaves,
                *given,
                forward=forward,
                backward=backward,
                out_avals=real_out,
            )
        )
        return tree.unflatten(
            out_treedef,
            [
                next(pushed) if real else np.zeros(aval.shape)  # an integer's is not used
                for real, aval in zip(out_real, out_avals, strict=True)
            ],
        )

    def _maps(
        self, shapes: _Shapes, n: int, real_in: tuple[Any, ...], real_out: tuple[Any, ...]
    ) -> tuple[Map, Map]:
        """Both directions, as far as they are given or may be derived."""
        label = self.label
        forward: Map | None = None
        backward: Map | None = None
        if self.jvp is not None:
            forward = UserMap(label, n, functools.partial(shapes.push, label, self.jvp))
        if self.vjp is not None:
            backward = UserMap(label, n, functools.partial(shapes.pull, label, self.vjp))
        if forward is None:
            assert backward is not None
            forward = (
                BasisMap(backward, real_out, real_in) if self.derive else
                NoMap(label, n, _missing(label, "jvp", "vjp", "forward"))
            )  # fmt: skip
        if backward is None:
            backward = (
                BasisMap(forward, real_in, real_out) if self.derive else
                NoMap(label, n, _missing(label, "vjp", "jvp", "reverse"))
            )  # fmt: skip
        return forward, backward

    def _differences(self, shapes: _Shapes, like: object, kwargs: dict[str, Any], n: int) -> Map:
        """Forward mode by finite differences."""
        method = self.fd
        assert method is not None
        for aval in (*shapes.in_avals, *shapes.out_avals):
            if aval.dtype.kind == "c":
                raise NonDifferentiableError(
                    f"{self.label}: finite differences are for real arguments and results, got "
                    f"{aval}{here()}; split it into real and imaginary parts, or give a rule"
                )
        n_args = len(shapes.in_avals)

        def flat(arrays: list[Any]) -> list[Any]:
            args = tree.unflatten(shapes.treedef, [guarded(np.asarray(x)) for x in arrays])
            result = as_user(self.fun, *args, **kwargs)
            expected = like
            if method == "complex":
                expected = tree.map(_as_complex, like)
            leaves = _checked_leaves(
                f"{self.label} in a complex step" if method == "complex" else self.label,
                result, expected, "out_like", dtypes_widen=method == "complex",
            )  # fmt: skip
            if method == "complex" and not any(map(np.iscomplexobj, tree.leaves(result))):
                raise NonDifferentiableError(
                    f'{self.label} returned real results for complex arguments: fd="complex" is '
                    'for functions that compute with complex numbers; use fd="central"'
                )
            return [x for x, real in zip(leaves, shapes.out_real, strict=True) if real]

        differences = Differences(flat, method, self.fd_step, shapes.is_real)

        def push(residuals: list[Any], dots: list[Any]) -> list[Any]:
            return differences.push(residuals[:n_args], dots)

        return UserMap(self.label, n, push)


class _PushedCall(UserVjpCall):
    """A call of a function that has rules for both modes."""

    __slots__ = ("pusher",)
    pusher: Callable[[Any, Sequence[Any]], list[Any]]

    def forward(self, *given: Any) -> tuple[list[Any], list[Any], UserPullback]:
        """Results, residuals, and the backward function, which knows the rule forward, too."""
        outs, residuals, pullback = super().forward(*given)
        pullback.pusher = self.pusher
        return outs, residuals, pullback


class _WithPush(custom_vjp):
    """A function with a rule for reverse mode and one for forward mode."""

    def __init__(
        self, fun: Callable[..., Any], pusher: Callable[[Any, Sequence[Any]], list[Any]]
    ) -> None:
        super().__init__(fun)
        self._pusher = pusher

    def _call(self, signature: Any, refused: tuple[str | None, ...]) -> _PushedCall:
        call = _PushedCall(signature, refused, self._symbolic)
        call.pusher = self._pusher
        return call


def _are_real(leaves: Sequence[Any]) -> list[bool]:
    return [is_differentiable_dtype(dtype_of(x)) for x in leaves]


def _as_complex(struct: ShapeDtypeStruct) -> ShapeDtypeStruct:
    if struct.dtype.kind != "f":
        return struct
    return ShapeDtypeStruct(struct.shape, np.result_type(struct.dtype, np.complex64))


def _lead_of(own: Sequence[Any], args: Sequence[Any]) -> tuple[int, ...]:
    """The extents of the batch axes that a call got in front; one for each ``vmap``."""
    for x, y in zip(tree.leaves(tuple(own)), tree.leaves(tuple(args)), strict=True):
        shape: tuple[int, ...] = getattr(x, "shape", ())
        extra = len(shape) - len(shape_of(y))
        if extra > 0:
            return shape[:extra]
    return ()


def _missing(label: str, missing: str, given: str, mode: str) -> str:
    """The message for a mode that cannot be had."""
    return (
        f"{label} has no {mode} mode: only {given} was given, as a rule on plain arrays, which "
        f'cannot be transposed. Give {missing} too; or derive="basis", which applies {given} to '
        f'each basis vector; or write {given} in functrans operations (rules="traced")'
    )


@dataclass(frozen=True, slots=True)
class _Shapes:
    """Structure of arguments and results, and which of their leaves have derivatives."""

    treedef: Any
    out_treedef: Any
    in_avals: tuple[Any, ...]
    out_avals: tuple[Any, ...]
    is_real: tuple[bool, ...]
    out_real: tuple[bool, ...]

    def _split(self, residuals: list[Any]) -> tuple[Any, Any]:
        n = len(self.in_avals)
        return (
            tree.unflatten(self.treedef, residuals[:n]),
            tree.unflatten(self.out_treedef, residuals[n:]),
        )

    def push(
        self, label: str, rule: Callable[..., Any], residuals: list[Any], dots: list[Any]
    ) -> list[Any]:
        """``jvp(primals, tangents)`` on arrays."""
        primals, _ = self._split(residuals)
        tangents = tree.unflatten(self.treedef, _spread(self.is_real, dots, self.in_avals))
        return _pick(f"{label}: jvp", rule(primals, tangents), self.out_treedef,
                     self.out_avals, self.out_real)  # fmt: skip

    def pull(
        self, label: str, rule: Callable[..., Any], residuals: list[Any], cts: list[Any]
    ) -> list[Any]:
        """``vjp(primals, outs, cotangents)`` on arrays."""
        primals, outs = self._split(residuals)
        given = tree.unflatten(self.out_treedef, _spread(self.out_real, cts, self.out_avals))
        return _pick(f"{label}: vjp", rule(primals, outs, given), self.treedef,
                     self.in_avals, self.is_real)  # fmt: skip


def _leaves_and_none(treedef: Any, value: object) -> list[Any]:
    """What stands in a tree at the places of the leaves of a structure; ``None`` counts."""
    return [value] if treedef is tree.LEAF else list(treedef.flatten_up_to(value))


def _spread(flags: Sequence[bool], values: Sequence[Any], avals: Sequence[Any]) -> list[Any]:
    """Values where there are some, zeros for integers."""
    found = iter(values)
    return [
        next(found) if flag else np.zeros(aval.shape)
        for flag, aval in zip(flags, avals, strict=True)
    ]


def _pick(
    label: str, result: object, treedef: object, avals: Sequence[Any], flags: Sequence[bool]
) -> list[Any]:
    """What a rule returned, checked; ``None`` stands for zero."""
    try:
        leaves = _leaves_and_none(treedef, result)
    except ValueError:
        raise TreeMismatchError(
            f"{label} returned {tree.describe(tree.structure(result))}, expected the structure "
            f"{tree.describe(treedef)}"
        ) from None
    picked = []
    for i, (leaf, aval, flag) in enumerate(zip(leaves, avals, flags, strict=True)):
        if not flag:
            continue
        value = np.zeros(aval.shape, aval.dtype) if leaf is None else np.asarray(leaf)
        if value.shape != aval.shape or not np.can_cast(value.dtype, aval.dtype, "same_kind"):
            raise ShapeError(
                f"{label}: {tree.paths_of(treedef, 'result')[i]} is an array of shape "
                f"{value.shape} and dtype {value.dtype}, expected {aval}"
            )
        picked.append(value.astype(aval.dtype, copy=False))
    return picked


def check_settings(label: str, out_like: object, jvp: object, vjp: object) -> None:
    """Look at what says what a function returns, and at its rules.

    Raises:
      TypeError: the former is missing, or a rule is no function.
    """
    if out_like is ...:
        raise TypeError(f"{label}: out_like is missing; it says what the function returns")
    for name, rule in (("jvp", jvp), ("vjp", vjp)):
        if rule is not None:
            check_callable(f"{label}: {name}", rule)


@transform
def external(
    fun: Callable[..., Any] | None = None,
    out_like: object = ...,
    jvp: Callable[..., Any] | None = None,
    vjp: Callable[..., Any] | None = None,
    fd: str | bool | None = None,
    *,
    fd_step: float | None = None,
    rules: str = "traced",
    derive: str | None = None,
    vectorized: bool = False,
) -> Callable[..., Any]:
    """Make any Python or compiled function one differentiable operation.

    Args:
      fun: function of pytrees of arrays. It gets real ndarrays, which it cannot write to, under
        every transform. It may be called any number of times.
      out_like: what it returns, as a pytree of arrays or ``ShapeDtypeStruct``; or a function that
        gets the arguments with ``ShapeDtypeStruct`` leaves and returns such a pytree.
      jvp: rule ``(primals, tangents) -> tangents of the result``; both are tuples, an entry for
        each argument.
      vjp: rule ``(primals, outs, cotangents) -> cotangents of the arguments`` (a tuple).
      fd: finite differences: ``"central"`` (or ``True``), ``"forward"``, or ``"complex"`` for a
        function that takes complex numbers. Reverse mode costs a derivative for each element of the
        arguments.
      fd_step: step relative to the size of the arguments; by default the cube root (``central``)
        or the square root (``forward``) of the precision.
      rules: ``"traced"``: the rules are written in functrans operations. One is enough where it
        can be transposed (it calls no kernel and no other external function): the other mode is
        its transpose, and it can be differentiated again. ``"arrays"``: the rules get real
        ndarrays as ``fun`` does; each serves its own mode, and there is no second derivative.
      derive: ``"basis"`` derives the mode without a rule on arrays by applying the other rule to
        each basis vector. By default such a mode raises.
      vectorized: whether ``fun`` takes arrays with a leading batch axis, and returns such. Under
        ``vmap`` it is then called once; else once for each element.

    Returns:
      Function with the arguments of ``fun``. Keyword arguments are not differentiated. Its
      exceptions come out as they are. Without ``fun``, a decorator.

    Raises:
      NonDifferentiableError: a derivative is asked, and there is no rule for it.
      TreeMismatchError, ShapeError, TypeError: what came back does not fit ``out_like``.
      ValueError: an option does not exist.

    Example:
      >>> import math
      >>> import functrans as ft
      >>> @ft.external(out_like=0.0, fd="central")
      ... def gamma(x):
      ...     return math.gamma(x)
      >>> round(float(ft.grad(gamma)(3.0)), 6)
      1.845569
      >>> cube = ft.external(lambda x: x**3, lambda x: x, jvp=lambda p, t: 3 * p[0]**2 * t[0])
      >>> ft.grad(ft.grad(cube))(2.0)
      array(12.)

    Reference: Press et al., Numerical Recipes, 3rd ed. (2007), sec. 5.7 (step sizes).
    """
    if fun is None:
        return functools.partial(
            external, out_like=out_like, jvp=jvp, vjp=vjp, fd=fd, fd_step=fd_step, rules=rules,
            derive=derive, vectorized=vectorized,
        )  # fmt: skip
    check_callable("external", fun)
    label = f"external {name_of(fun)}"
    check_settings(label, out_like, jvp, vjp)
    method = {True: "central", False: None}.get(fd, fd) if isinstance(fd, bool) else fd
    if method is not None and method not in FD_METHODS:
        raise ValueError(f"{label}: fd must be one of {', '.join(FD_METHODS)}, got {fd!r}")
    if rules not in ("traced", "arrays"):
        raise ValueError(f"{label}: rules must be 'traced' or 'arrays', got {rules!r}")
    if derive not in (None, "basis"):
        raise ValueError(f"{label}: derive must be 'basis' or None, got {derive!r}")
    if method is not None and (jvp is not None or vjp is not None):
        raise TypeError(f"{label}: give rules or fd, not both")
    if derive is not None and rules != "arrays":
        raise ValueError(f'{label}: derive="basis" is for rules="arrays"')
    if fd_step is not None and not fd_step > 0:
        raise ValueError(f"{label}: fd_step must be positive, got {fd_step!r}")
    settings = External(
        fun, out_like, jvp, vjp, method, fd_step, rules, derive,
        "broadcast_all" if vectorized else "sequential",
    )  # fmt: skip

    @named("external", fun)
    def operation(*args: Array, **kwargs: object) -> Any:
        return settings.call(*args, **kwargs)

    return operation
