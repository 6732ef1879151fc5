"""Python functions called while a program runs: ``pure_callback``, ``io_callback``, debugging.

Here: the primitives, and the functions that users call. ``functrans.debug`` re-exports those for
debugging. Not here: differentiable external functions.

A callback gets real arrays, which it must not write to, under every transform. One with an effect
is an equation that no pass drops, merges or moves past another one with an effect; under ``vmap``
it is called once for each element of the batch. A pure one may be dropped, merged, or called again.

Layer: ``control``.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.calls import to_front
from functrans.control.custom_calls import guarded
from functrans.control.custom_rules import custom_jvp, custom_vjp
from functrans.core.arguments import canonical, check_callable, leaf_description, name_of
from functrans.core.avals import Aval, ShapedArray, aval_of_plain
from functrans.core.boundary import as_user, boundary
from functrans.core.dispatch import Tracer, aval_of, bind, shape_of
from functrans.core.primitive import Primitive, Rule, nondifferentiable
from functrans.core.source import SourceLine, capture, here, resolve
from functrans.core.values import Array
from functrans.errors import ShapeError, TreeMismatchError, UnsupportedOperationError
from functrans.primitives.structural import broadcast_to, reshape


class Callback:
    """A function of flat arrays that calls a Python function (abstract)."""

    __slots__ = ()

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Call the function."""
        raise NotImplementedError


class _UserCallback(Callback):
    """A user's function of pytrees.

    Attributes:
      label: what it is, for messages: ``pure_callback of f``.
      fun: the function.
      treedef: structure of ``(args, kwargs)``.
      static: per leaf of the arguments, its value if it is no array, in a tuple; else ``None``.
      avals: types of the leaves of the result.
      out_treedef: structure of the result; ``None`` where it is not used.
    """

    __slots__ = ("avals", "fun", "label", "out_treedef", "static", "treedef")

    def __init__(
        self,
        label: str,
        fun: Callable[..., Any],
        treedef: Any,
        static: Sequence[tuple[Any] | None],
        avals: tuple[Any, ...],
        out_treedef: Any,
    ) -> None:
        self.label = label
        self.fun = fun
        self.treedef = treedef
        self.static = static
        self.avals = avals
        self.out_treedef = out_treedef

    def __repr__(self) -> str:
        """The function's name."""
        return name_of(self.fun)

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Call the user's function on arrays and check its result."""
        given = iter(operands)
        leaves = [
            guarded(np.asarray(next(given))) if own is None else own[0] for own in self.static
        ]
        args, kwargs = tree.unflatten(self.treedef, leaves)
        result = as_user(self.fun, *args, **kwargs)
        return [] if self.out_treedef is None else self._checked(result)

    def with_avals(self, avals: tuple[Any, ...]) -> _UserCallback:
        """The same callback with results of other types."""
        return _UserCallback(
            self.label, self.fun, self.treedef, self.static, avals, self.out_treedef
        )

    def _checked(self, result: Array) -> list[Any]:
        """Leaves of a result as arrays."""
        leaves, treedef = tree.flatten(result)
        if treedef != self.out_treedef:
            raise TreeMismatchError(
                f"{self.label}: the function returned {tree.describe(treedef)}, but "
                f"result_shape_dtypes has structure {tree.describe(self.out_treedef)}"
            )
        arrays = []
        for i, (leaf, aval) in enumerate(zip(leaves, self.avals, strict=True)):
            have = aval_of_plain(leaf)
            value = np.asarray(leaf)
            is_scalar = have is not None and have.weak
            fits = np.can_cast(value.dtype, aval.dtype, "same_kind") if is_scalar else (
                value.dtype == aval.dtype
            )  # fmt: skip
            if value.shape != aval.shape or not fits:
                path = tree.paths_of(treedef, "result")[i]
                kind = ShapeError if value.shape != aval.shape else TypeError
                raise kind(
                    f"{self.label}: {path} is an array of shape {value.shape} and dtype "
                    f"{value.dtype}, but result_shape_dtypes announced {aval}"
                )
            arrays.append(np.array(value, aval.dtype))
        return arrays


class _PerLane(Callback):
    """A callback called for each element of a batch, whose axis is in front."""

    __slots__ = ("avals", "flags", "inner", "size")

    def __init__(
        self, inner: Callback, size: int, flags: tuple[bool, ...], avals: tuple[Any, ...]
    ) -> None:
        self.inner = inner
        self.size = size
        self.flags = flags
        self.avals = avals

    def __repr__(self) -> str:
        """``f per lane``."""
        return f"{self.inner!r} per lane"

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Call it once for each element, in order."""
        return run_lanes(self, operands)


def run_lanes(call: Any, operands: Sequence[Any]) -> list[Any]:
    """Run ``call.inner`` once for each of ``call.size`` elements of the operands with flags."""
    outs = [np.empty((call.size, *aval.shape), aval.dtype) for aval in call.avals]
    for lane in range(call.size):
        own = [x[lane] if flag else x for x, flag in zip(operands, call.flags, strict=True)]
        for out, value in zip(outs, call.inner.run(own), strict=True):
            out[lane] = value
    return outs


# the primitives ---------------------------------------------------------------------------------


def _callback_impl(
    *operands: Array, callback: Callback, **_: bool | str | tuple[Any, ...]
) -> tuple[Any, ...]:
    return tuple(callback.run(operands))


def _callback_aval(
    *avals: Aval, result_avals: tuple[Aval, ...], **_: bool | _UserCallback | str
) -> tuple[Aval, ...]:
    return result_avals


def _lanes_batch(get: Callable[[], Primitive]) -> Rule:
    """The batching rule of a callback that is called once for each element."""

    def batch(
        size: int,
        operands: object,
        dims: object,
        *,
        callback: Callback,
        result_avals: tuple[Any, ...],
        **params: object,
    ) -> Any:
        outs = _bind_lanes(get(), size, operands, dims, callback, result_avals, params)
        return outs, (0,) * len(outs)

    return batch


def _bind_lanes(
    primitive: Primitive,
    size: int,
    operands: Any,
    dims: Any,
    callback: Callback,
    result_avals: tuple[Any, ...],
    params: Mapping[str, Any],
) -> tuple[Any, ...]:
    flags = tuple(dim is not None for dim in dims)
    return bind(
        primitive,
        *to_front(size, operands, dims),
        callback=_PerLane(callback, size, flags, result_avals),
        result_avals=_with_lanes(result_avals, size),
        **params,
    )


def _with_lanes(avals: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    return tuple(replace(aval, shape=(size, *aval.shape)) for aval in avals)


debug_callback_p: Primitive = Primitive(
    "debug_callback",
    impl=_callback_impl,
    abstract_eval=_callback_aval,
    jvp=nondifferentiable,
    batch=_lanes_batch(lambda: debug_callback_p),
    effects=frozenset({"debug"}),
    reasons=(("lower", "it calls a Python function"), ("transpose", "it has no results")),
)
io_callback_p: Primitive = Primitive(
    "io_callback",
    impl=_callback_impl,
    abstract_eval=_callback_aval,
    jvp=nondifferentiable,
    batch=_lanes_batch(lambda: io_callback_p),
    effects=frozenset({"io"}),
    reasons=(
        ("lower", "it calls a Python function"),
        ("transpose", "its results have no derivative"),
    ),
)


def _pure_batch(
    size: int,
    operands: Sequence[Array],
    dims: Sequence[int | None],
    *,
    callback: Callback,
    result_avals: tuple[Any, ...],
    vmap_method: str | None,
) -> tuple[Any, ...]:
    if vmap_method is None:
        raise UnsupportedOperationError(
            f"vmap: pure_callback of {callback!r} was not told how to handle a batch{here()}; give "
            'vmap_method="sequential" to call it for each element, or "expand_dims" or '
            '"broadcast_all" if it handles a leading batch axis itself'
        )
    if vmap_method == "sequential":
        params = {"vmap_method": vmap_method}
        outs = _bind_lanes(pure_callback_p, size, operands, dims, callback, result_avals, params)
        return outs, (0,) * len(outs)
    wide = []
    for operand, dim in zip(to_front(size, operands, dims), dims, strict=True):
        if dim is None:
            shape = shape_of(operand)
            operand = reshape(operand, (1, *shape))  # the operand with its axis
            if vmap_method == "broadcast_all":
                operand = broadcast_to(operand, (size, *shape))  # likewise
        wide.append(operand)
    avals = _with_lanes(result_avals, size)
    assert isinstance(callback, _UserCallback)  # only "sequential" makes others
    outs = bind(
        pure_callback_p,
        *wide,
        callback=callback.with_avals(avals),
        result_avals=avals,
        vmap_method=vmap_method,
    )
    return outs, (0,) * len(outs)


pure_callback_p = Primitive(
    "pure_callback",
    impl=_callback_impl,
    abstract_eval=_callback_aval,
    jvp=None,  # type: ignore[arg-type]  # raises where a derivative is asked
    batch=_pure_batch,
    memory="held",
    reasons=(
        ("lower", "it calls a Python function"),
        ("jvp", "nothing is known of the function; the caller may give a rule"),
        ("transpose", "nothing is known of the function"),
    ),
)


# user functions ---------------------------------------------------------------------------------


def _split_arguments(
    label: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[list[Any], list[tuple[Any] | None], Any]:
    """Leaves that are arrays; those that are not; the structure."""
    leaves, treedef = tree.flatten((args, dict(kwargs)))
    static: list[tuple[Any] | None] = []
    operands = []
    for i, leaf in enumerate(leaves):
        is_array = isinstance(leaf, (Tracer, np.ndarray)) or aval_of_plain(leaf) is not None
        if is_array and not tree.is_float0(leaf):
            static.append(None)
            operands.append(
                canonical(
                    leaf, functools.partial(leaf_description, label, (args, kwargs), i, "args")
                )
            )
        else:
            static.append((leaf,))
    return operands, static, treedef


def _announced(label: str, result_shape_dtypes: object) -> tuple[tuple[ShapedArray, ...], Any]:
    """The types of results and their structure."""
    leaves, treedef = tree.flatten(result_shape_dtypes)
    avals = []
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, (int, float, complex, bool)):
            avals.append(aval_of(leaf).strong())
            continue
        shape, dtype = getattr(leaf, "shape", None), getattr(leaf, "dtype", None)
        if shape is None or dtype is None:
            path = tree.key_paths(result_shape_dtypes, "result_shape_dtypes")[i]
            raise TypeError(
                f"{label}: {path} is a {type(leaf).__name__}, which has no shape and dtype; use "
                "ft.ShapeDtypeStruct(shape, dtype), or an array like the result"
            )
        avals.append(ShapedArray(tuple(shape), np.dtype(dtype)))
    return tuple(avals), treedef  # type: ignore[arg-type]  # no tapes


@boundary
def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: object,
    vmap_method: str | None = None,
    jvp: Callable[..., Any] | None = None,
    vjp: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
    **kwargs: object,
) -> Any:
    """Call a Python function without effects from a traced function.

    Args:
      callback: function of arrays; it may be called any number of times, or not at all.
      result_shape_dtypes: pytree like the result of objects with ``shape`` and ``dtype``.
      *args: pytrees of arrays; leaves of other kinds are passed as they are.
      vmap_method: what to do under ``vmap``: ``"sequential"`` calls it for each element,
        ``"expand_dims"`` and ``"broadcast_all"`` call it once, on arrays with a leading batch axis,
        which has extent 1 or is broadcast where an argument is not batched; ``None`` raises.
      jvp: rule ``(primals, tangents) -> (out, out_tangents)`` as for ``custom_jvp``, where
        ``primals`` are ``args``.
      vjp: rules ``(fwd, bwd)`` as for ``custom_vjp``.
      **kwargs: likewise; not differentiated.

    Returns:
      The result of ``callback``.

    Raises:
      TreeMismatchError, ShapeError, TypeError: the result is not what was announced.
      NonDifferentiableError: a derivative is asked, and no rule was given.

    Example:
      >>> import functrans as ft
      >>> import math
      >>> pure_callback(math.gamma, ft.ShapeDtypeStruct((), float), 5.0)
      array(24.)
    """
    check_callable("pure_callback", callback)
    label = f"pure_callback of {name_of(callback)}"
    if vmap_method not in (None, "sequential", "expand_dims", "broadcast_all"):
        raise ValueError(
            f"{label}: vmap_method must be 'sequential', 'expand_dims', 'broadcast_all' or None, "
            f"got {vmap_method!r}"
        )
    if jvp is not None and vjp is not None:
        raise TypeError(f"{label}: give jvp or vjp, not both; either serves both modes")
    avals, out_treedef = _announced(label, result_shape_dtypes)

    def call(*own: Any) -> Any:
        operands, static, treedef = _split_arguments(label, own, kwargs)
        outs = bind(
            pure_callback_p,
            *operands,
            callback=_UserCallback(label, callback, treedef, static, avals, out_treedef),
            result_avals=avals,
            vmap_method=vmap_method,
        )
        return tree.unflatten(out_treedef, outs)

    call.__name__ = name_of(callback)
    if jvp is not None:
        forward = custom_jvp(call)
        forward.defjvp(jvp)
        return forward(*args)
    if vjp is not None:
        backward = custom_vjp(call)
        backward.defvjp(*vjp)
        return backward(*args)
    return call(*args)


@boundary
def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: object,
    *args: object,
    ordered: bool = False,
    **kwargs: object,
) -> Any:
    """Call a Python function with effects from a traced function, exactly once per evaluation.

    Args:
      callback: function of arrays.
      result_shape_dtypes: pytree like the result of objects with ``shape`` and ``dtype``.
      *args: pytrees of arrays; leaves of other kinds are passed as they are.
      ordered: whether calls must stay in order. Calls always do; accepted for JAX's sake.
      **kwargs: likewise.

    Returns:
      The result of ``callback``; it has no derivative. Under ``vmap`` the function is called once
      for each element of the batch.

    Raises:
      TreeMismatchError, ShapeError, TypeError: the result is not what was announced.

    Example:
      >>> import functrans as ft
      >>> seen = []
      >>> io_callback(lambda x: seen.append(float(x)), None, 2.0)
      >>> seen
      [2.0]
    """
    check_callable("io_callback", callback)
    label = f"io_callback of {name_of(callback)}"
    avals, out_treedef = _announced(label, result_shape_dtypes)
    operands, static, treedef = _split_arguments(label, args, kwargs)
    outs = bind(
        io_callback_p,
        *operands,
        callback=_UserCallback(label, callback, treedef, static, avals, out_treedef),
        result_avals=avals,
        ordered=bool(ordered),
    )
    return tree.unflatten(out_treedef, outs)


@boundary
def debug_callback(
    callback: Callable[..., Any], *args: object, ordered: bool = False, **kwargs: object
) -> None:
    """Call a Python function with the values that traced arrays have when the program runs.

    Args:
      callback: function of arrays; its result is not used.
      *args: pytrees of arrays; leaves of other kinds are passed as they are.
      ordered: whether calls must stay in order. Calls always do; accepted for JAX's sake.
      **kwargs: likewise.

    Example:
      >>> import functrans as ft
      >>> seen = []
      >>> ft.jit(lambda x: debug_callback(seen.append, x) or 2.0 * x)(3.0)
      array(6.)
      >>> seen
      [array(3.)]
    """
    check_callable("debug.callback", callback)
    label = f"debug.callback of {name_of(callback)}"
    operands, static, treedef = _split_arguments(label, args, kwargs)
    bind(
        debug_callback_p,
        *operands,
        callback=_UserCallback(label, callback, treedef, static, (), None),
        result_avals=(),
        ordered=bool(ordered),
    )


@boundary
def debug_print(fmt: str, *args: object, ordered: bool = False, **kwargs: object) -> None:
    """Print the values that traced arrays have when the program runs.

    Args:
      fmt: format string, as for ``str.format``.
      *args: values for ``{}``.
      ordered: whether lines must stay in order. They always do; accepted for JAX's sake.
      **kwargs: values for ``{name}``.

    Raises:
      TypeError: ``fmt`` is no string.
      KeyError, IndexError: ``fmt`` names a value that is not given.

    Example:
      >>> import functrans as ft
      >>> ft.grad(lambda x: debug_print("x = {x}", x=x) or x * x)(3.0)
      x = 3.0
      array(6.)
    """
    if not isinstance(fmt, str):
        raise TypeError(
            f"debug.print: the first argument must be a format string, got {type(fmt).__name__}; "
            'write debug.print("x = {x}", x=x)'
        )
    fmt.format(*[_Anything() for _ in args], **{name: _Anything() for name in kwargs})
    debug_callback(_Printer(fmt), *args, ordered=ordered, **kwargs)


class _Anything:
    """Has every format, attribute and item."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __getitem__(self, key: Any) -> _Anything:
        return self


class _Printer:
    """Prints values in a format."""

    __slots__ = ("fmt",)
    __name__ = "print"

    def __init__(self, fmt: str) -> None:
        self.fmt = fmt

    def __call__(self, *args: object, **kwargs: object) -> None:
        builtins.print(self.fmt.format(*args, **kwargs))


def debug_breakpoint(**values: Any) -> None:
    """Enter Python's debugger when the program runs, with the values of traced arrays at hand.

    The debugger is that of ``sys.breakpointhook``; ``values`` is a dictionary of arrays there.

    Args:
      **values: pytrees of arrays to look at.
    """
    debug_callback(_Breakpoint(resolve(capture(2))), **values)


class _Breakpoint:
    """Enters the debugger."""

    __slots__ = ("line",)
    __name__ = "breakpoint"

    def __init__(self, line: SourceLine | None) -> None:
        self.line = line

    def __call__(self, **values: object) -> None:
        if self.line is not None:
            builtins.print(f"breakpoint at {self.line}; see the dictionary `values`")
        builtins.breakpoint()  # what the function is for


PRIMITIVES: tuple[Primitive, ...] = (debug_callback_p, io_callback_p, pure_callback_p)
