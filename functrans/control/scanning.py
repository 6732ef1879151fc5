"""Loops over users' functions: ``scan``, ``while_loop``, ``fori_loop``, ``associative_scan``.

Here: staging of bodies, the types of carried values, checks and messages. Not here: the primitives
(``control.loops``, ``control.while_loop``).

A carried value has one type in all iterations. A Python scalar that starts a loop has no type of
its own yet: it takes that of what the body makes of it.

Layer: ``control``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.binomial import Binomial
from functrans.control.bodies import (
    Body,
    cast_results,
    check_structure,
    finish_results,
    flatten_operands,
    joined_aval,
    mismatch,
    stage_body,
)
from functrans.control.loops import Shape
from functrans.control.revolve import bind_loops
from functrans.control.while_loop import bind_while
from functrans.core.arguments import canonical, leaf_type, name_of
from functrans.core.avals import ShapedArray
from functrans.core.boundary import boundary
from functrans.core.calling import traced_form
from functrans.core.dispatch import Tracer, aval_of, bind, shape_of
from functrans.core.hidden_state import Draws
from functrans.core.jaxpr import Jaxpr
from functrans.core.source import here
from functrans.core.state import current_config
from functrans.core.values import Array, Operand, R, Result
from functrans.errors import ShapeError
from functrans.passes.programs import batch_jaxpr, split
from functrans.passes.staging import stage
from functrans.primitives.movement import concatenate, pad, reverse
from functrans.primitives.slicing import BasicIndex, slice_index
from functrans.primitives.structural import cast_p, normalize_axis, reshape

_MAX_ATTEMPTS = 8


def _pair(who: str, result: tuple[Any, ...]) -> tuple[Any, Any]:
    """``(carry, y)`` of a body of ``scan``."""
    if not isinstance(result, tuple) or len(result) != 2:
        got = f"a tuple of {len(result)}" if isinstance(result, tuple) else type(result).__name__
        got = "an array" if isinstance(result, Tracer) else got
        raise TypeError(f"{who}: f must return a pair (carry, y), got {got}{here()}")
    return result


def _stage_loop(
    who: str,
    fun: Callable[..., Any],
    treedef: object,
    carry: Sequence[Any],
    carry_paths: Sequence[str],
    x_avals: Sequence[Any],
    x_paths: Sequence[str],
    finish: Callable[[Any], Any],
) -> tuple[Body, Jaxpr, list[Any]]:
    """Stage the body of a loop for carried values of types that it keeps.

    Args:
      who: name of the loop, for messages.
      fun: the user's function.
      treedef: structure of its arguments.
      carry: leaves of the carried values that the loop starts with.
      carry_paths: their key paths.
      x_avals: avals of its other arguments.
      x_paths: their key paths.
      finish: what to make of its result, whose first leaves are the new carried values.

    Returns:
      The body, its program with results of the carried types, and the start values in these types.

    Raises:
      ShapeError, TypeError: it returns a carried value of another type; names the key path.
    """
    label = f"{who}: {name_of(fun)}"
    leaves = list(carry)
    n = len(leaves)
    draws = Draws(fun, once=True)
    for _ in range(_MAX_ATTEMPTS):
        avals: list[Any] = [aval_of(leaf) for leaf in leaves]
        body = stage_body(label, fun, treedef, [*avals, *x_avals], [*carry_paths, *x_paths], finish)
        wanted = list(avals)
        for i, (aval, out) in enumerate(zip(avals, body.out_avals[:n], strict=True)):
            joined = joined_aval(aval, out)
            if joined is None or (joined != aval and not aval.weak):
                raise mismatch(
                    who,
                    f"{carry_paths[i]} returned by {name_of(fun)}",
                    out,
                    "what it was given",
                    aval,
                    f"carried values keep their type{here()}; start with an array of the type that "
                    "the body returns, or convert in the body with .astype",
                )
            wanted[i] = joined
        if wanted == avals:
            draws.tell(label, "round")
            results = [*avals, *body.out_avals[n:]]
            return body, cast_results(body.jaxpr, results), leaves
        leaves = [
            leaf if aval == want else bind(cast_p, leaf, dtype=want.dtype)[0]
            for leaf, aval, want in zip(leaves, avals, wanted, strict=True)
        ]
    raise AssertionError("types of carried values did not settle")


# scan -------------------------------------------------------------------------------------------


def _entry_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    return shape[1:]


def _scan_length(xs: Operand | None, length: int | None) -> int:
    """The number of iterations."""
    expected = None if length is None else operator.index(length)
    source = "length"
    for leaf, path in zip(tree.leaves(xs), tree.key_paths(xs, "xs"), strict=True):
        shape = shape_of(leaf)
        if not shape:
            raise ShapeError(
                f"scan: {path} ({leaf_type(leaf)}) is a scalar; arrays in xs are scanned over "
                f"their first axis{here()}. Capture it in f, or carry it"
            )
        if expected is None:
            expected, source = shape[0], path
        elif shape[0] != expected:
            raise ShapeError(
                f"scan: {path} ({leaf_type(leaf)}) has {shape[0]} elements along its first axis, "
                f"but {source} has {expected}{here()}; all must be equal"
            )
    if expected is None:
        raise ValueError(f"scan: xs holds no array{here()}; give length, the number of iterations")
    if expected < 0:
        raise ValueError(f"scan: length must not be negative, got {expected}")
    return expected


def _unroll(value: int) -> int:
    """How many iterations to a turn; 0 and true stand for all, which is left to the compiler."""
    number = operator.index(value)
    if number < 0:
        raise ValueError(f"unroll must not be negative, got {number}; 0 unrolls the whole loop")
    return max(number, 1)


@boundary
def scan(
    f: Callable[..., tuple[R, Result]],
    init: object,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
    *,
    checkpoint: Binomial | None = None,
) -> tuple[R, Result]:
    """Run a function along the first axis of arrays, carrying values from element to element.

    The meaning is that of this loop, which is staged once, differentiable in both modes::

        carry, ys = init, []
        for x in xs:
            carry, y = f(carry, x)
            ys.append(y)
        return carry, np.stack(ys)

    Args:
      f: function ``(carry, x) -> (carry, y)`` of pytrees; the types of ``carry`` do not change.
      init: first ``carry``.
      xs: pytree of arrays ``[length, ...]``, or ``None``.
      length: number of iterations; needed where ``xs`` is ``None``.
      reverse: whether to begin with the last element.
      unroll: iterations per turn of a compiled loop.
      checkpoint: ``checkpoint_policies.binomial(n)``: reverse mode keeps ``n`` of the carries and
        computes the others again.

    Returns:
      The last ``carry``, and the ``y`` of all iterations stacked along a new first axis.

    Raises:
      ShapeError: first axes differ; a carried value changes its shape.
      TypeError: ``f`` returns no pair; a carried value changes its dtype; names the key path.
      TreeMismatchError: a carried value changes its structure.

    Example:
      >>> import numpy as np
      >>> scan(lambda total, x: (total + x, total), 0.0, np.arange(4.0))
      (array(6.), array([0., 0., 1., 3.]))
    """
    f = traced_form("scan", f)
    turns = _unroll(unroll)
    n_kept = _states("scan", checkpoint)
    init, entries = tree.fold_float0(init), tree.fold_float0(xs, _entry_shape)
    leaves, treedef, _ = flatten_operands("scan", (init, entries), "(init, xs)")
    init_paths, x_paths = tree.key_paths(init, "carry"), tree.key_paths(entries, "xs")
    carry, stacks = split(leaves, len(init_paths))
    n = _scan_length(xs, length)
    init_treedef = tree.structure(init)
    structure: list[Any] = []

    def finish(result: tuple[Any, ...]) -> tuple[Any, Any]:
        new, y = _pair("scan", result)
        new, y = tree.fold_float0(new), tree.fold_float0(y, lambda shape: (n, *shape))
        check_structure(
            "scan", init_treedef, tree.structure(new), "the carry returned by f", "the one given"
        )
        structure[:] = [tree.structure(y)]
        return tree.leaves(new), y

    x_avals = [ShapedArray(shape_of(x)[1:], aval_of(x).dtype) for x in stacks]
    body, jaxpr, carry = _stage_loop(
        "scan", f, treedef, carry, init_paths, x_avals, x_paths, finish
    )
    shape = Shape(len(body.captured), len(carry), n, bool(reverse), turns)
    operands = [*body.captured, *carry, *stacks]

    def run(*args: object) -> list[Any]:
        _, *parts = shape.unpack(args)
        own, ys = shape.bind(jaxpr, [], *parts)
        return [*own, *ys]

    final, ys = split(_bound_loop(run, operands, n_kept), len(carry))
    operands = [*body.captured, *leaves]
    results = finish_results([*final, *ys], operands, None)
    return (
        tree.unflatten(init_treedef, results[: len(final)]),
        tree.unflatten(structure[0], results[len(final) :]),
    )


@boundary
def map(f: Callable[..., R], xs: Any, *, batch_size: int | None = None) -> R:  # jax.lax.map's name
    """Apply a function to the elements of the first axis of arrays, one after the other.

    Args:
      f: function of one element.
      xs: pytree of arrays ``[n, ...]``.
      batch_size: how many elements to compute at once, as ``vmap`` would; 0 for all of them.

    Returns:
      The results stacked along a new first axis.

    Raises:
      ShapeError: first axes differ.

    Example:
      >>> import numpy as np
      >>> map(lambda x: x * x, np.arange(3.0))
      array([0., 1., 4.])
    """
    f = traced_form("map", f)
    if batch_size is None:
        step = functools.update_wrapper(lambda _, x: ((), f(x)), f, (), ())
        return scan(step, (), xs)[1]
    entries = tree.fold_float0(xs, _entry_shape)
    leaves, treedef, paths = flatten_operands("map", (entries,), "xs")
    n = _scan_length(xs, None)
    size = operator.index(batch_size)
    if size < 0:
        raise ValueError(
            f"map: batch_size must not be negative, got {size}; 0 takes all elements at once"
        )
    size = size or max(n, 1)
    avals = [ShapedArray(shape_of(x)[1:], aval_of(x).dtype) for x in leaves]
    body = stage_body(
        f"map: {name_of(f)}", f, treedef, avals, paths,
        lambda y: tree.fold_float0(y, lambda shape: (n, *shape)),
    )  # fmt: skip
    n_captured = len(body.captured)
    flags = (False,) * n_captured + (True,) * len(leaves)
    whole, rest = divmod(n, size)
    parts: list[list[Any]] = []
    if whole:
        program, _ = batch_jaxpr(body.jaxpr, size, flags, True)
        blocks = [
            reshape(_along(x, 0, slice(0, whole * size)), (whole, size, *shape_of(x)[1:]))
            for x in leaves
        ]
        shape = Shape(n_captured, 0, whole, False, 1)
        _, ys = shape.bind(program, [], body.captured, [], blocks)
        parts.append([reshape(y, (whole * size, *shape_of(y)[2:])) for y in ys])
    if rest or not whole:
        program, _ = batch_jaxpr(body.jaxpr, rest, flags, True)
        tails = [_along(x, 0, slice(whole * size, n)) for x in leaves]
        shape = Shape(n_captured, 0, 1, False, 1)
        _, ys = shape.bind(
            program, [], body.captured, [], [reshape(x, (1, *shape_of(x))) for x in tails]
        )
        parts.append([reshape(y, shape_of(y)[1:]) for y in ys])
    joined = [column[0] if len(column) == 1 else concatenate(column, 0)
              for column in zip(*parts, strict=True)]  # fmt: skip
    return finish_results(joined, [*body.captured, *leaves], body.treedef)


def _states(who: str, checkpoint: Binomial | None) -> int | None:
    """The number of states that a policy keeps."""
    if checkpoint is None:
        return None
    if not isinstance(checkpoint, Binomial):
        raise TypeError(
            f"{who}: checkpoint must be None or checkpoint_policies.binomial(n), got "
            f"{checkpoint!r}; for another policy, checkpoint the body: "
            f"{who}(ft.checkpoint(f, policy=...), ...)"
        )
    return checkpoint.n


def _bound_loop(
    run: Callable[..., list[Any]], operands: Sequence[Any], n_kept: int | None
) -> list[Any]:
    """Results of a function that binds one loop, which keeps so many states for reverse mode."""
    if n_kept is None:
        outs = run(*operands)
        watch = current_config.get().nan_watch
        if watch is not None:
            watch.call(run, operands, outs)
        return outs
    program = stage(run, [aval_of(operand) for operand in operands], "loop")
    return bind_loops(program, operands, n_kept)


# while ------------------------------------------------------------------------------------------


@boundary
def while_loop(
    cond_fun: Callable[..., Any],
    body_fun: Callable[..., R],
    init_val: object,
    *,
    checkpoint: Binomial | None = None,
) -> R:
    """Apply a function again and again, as long as a condition holds.

    The meaning is that of this loop, which is staged once, differentiable in both modes::

        val = init_val
        while cond_fun(val):
            val = body_fun(val)
        return val

    Reverse mode stores what it needs of each iteration on a tape that grows.

    Args:
      cond_fun: function of the value; returns a boolean scalar.
      body_fun: function of the value; returns one of the same types.
      init_val: pytree of arrays.
      checkpoint: ``checkpoint_policies.binomial(n)``: reverse mode keeps ``n`` of the values and
        computes the others again, instead of the tape.

    Returns:
      The last value.

    Raises:
      TypeError: the condition is no boolean; the body changes a dtype; names the key path.
      ShapeError: the body changes a shape.
      TreeMismatchError: the body changes the structure.

    Example:
      >>> while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, 3.0)
      array(192.)
    """
    cond_fun = traced_form("while_loop: cond_fun", cond_fun)
    body_fun = traced_form("while_loop: body_fun", body_fun)
    n_kept = _states("while_loop", checkpoint)
    init_val = tree.fold_float0(init_val)
    leaves, treedef, _ = flatten_operands("while_loop", (init_val,), "init_val")
    paths = tree.key_paths(init_val, "val")
    init_treedef = tree.structure(init_val)

    def finish(result: object) -> Any:
        result = tree.fold_float0(result)
        check_structure(
            "while_loop", init_treedef, tree.structure(result), "the value returned by body_fun",
            "the one given",
        )  # fmt: skip
        return result

    body, jaxpr, carry = _stage_loop("while_loop", body_fun, treedef, leaves, paths, [], [], finish)
    avals = [aval_of(leaf) for leaf in carry]
    condition = stage_body("while_loop: cond_fun", cond_fun, treedef, avals, paths)
    _check_condition(condition)
    holds = cast_results(condition.jaxpr, [_BOOLEAN])
    n_cond, n_body = len(condition.captured), len(body.captured)

    def run(*args: object) -> list[Any]:
        cond_consts, body_consts, values = split(args, n_cond, n_body)
        return bind_while(holds, jaxpr, cond_consts, body_consts, values)[0]

    final = _bound_loop(run, [*condition.captured, *body.captured, *carry], n_kept)
    operands = [*condition.captured, *body.captured, *leaves]
    return finish_results(final, operands, init_treedef)


_BOOLEAN = ShapedArray((), np.dtype(bool))


def _check_condition(condition: Body) -> None:
    """Refuse a condition that is not one boolean."""
    if condition.treedef is not tree.LEAF:
        raise TypeError(
            f"while_loop: cond_fun must return one boolean scalar, got a container "
            f"{tree.describe(condition.treedef)}{here()}"
        )
    (aval,) = condition.out_avals
    if aval.shape or aval.dtype != np.dtype(bool):
        raise TypeError(
            f"while_loop: cond_fun must return a boolean scalar, got {aval}{here()}; compare, or "
            "reduce with np.any or np.all"
        )


@boundary
def fori_loop(
    lower: int,
    upper: Array | complex,
    body_fun: Callable[..., R],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
    checkpoint: Binomial | None = None,
) -> R:
    """Apply a function for each of a range of integers.

    The meaning is that of this loop, which is staged once, differentiable in both modes::

        val = init_val
        for i in range(lower, upper):
            val = body_fun(i, val)
        return val

    Args:
      lower: first integer.
      upper: one more than the last integer. Traced bounds make a ``while_loop`` of it.
      body_fun: function of the integer and the value; returns a value of the same types.
      init_val: pytree of arrays.
      unroll: iterations per turn of a compiled loop.
      checkpoint: as for ``scan`` and ``while_loop``.

    Returns:
      The last value.

    Raises:
      TypeError: a bound is no integer; the body changes a dtype.

    Example:
      >>> fori_loop(0, 5, lambda i, total: total + i, 0)
      array(10)
    """
    body_fun = traced_form("fori_loop", body_fun)
    bounds = [_bound(name, value) for name, value in (("lower", lower), ("upper", upper))]
    init_val = tree.fold_float0(init_val)
    init_treedef = tree.structure(init_val)

    def check(result: Any) -> Any:
        result = tree.fold_float0(result)
        check_structure(
            "fori_loop", init_treedef, tree.structure(result), "the value returned by body_fun",
            "the one given",
        )  # fmt: skip
        return result

    if any(isinstance(bound, Tracer) for bound in bounds):

        def step(state: Sequence[Array]) -> Any:
            i, stop, value = state
            return i + 1, stop, check(body_fun(i, value))

        dtype = np.result_type(*(aval_of(bound).dtype for bound in bounds))
        start, stop = (bind(cast_p, bound, dtype=dtype)[0] for bound in bounds)
        functools.update_wrapper(step, body_fun, (), ())
        step.__name__ = name_of(body_fun)
        return while_loop(
            lambda state: state[0] < state[1], step, (start, stop, init_val), checkpoint=checkpoint
        )[2]

    def body(state: Sequence[Any], _: None) -> tuple[Any, Any]:
        i, value = state
        return (i + 1, check(body_fun(i, value))), None

    functools.update_wrapper(body, body_fun, (), ())
    body.__name__ = name_of(body_fun)
    length = max(int(bounds[1]) - int(bounds[0]), 0)
    (_, final), _ = scan(
        body,
        (bounds[0], init_val),
        None,
        length,
        unroll=1 if unroll is None else unroll,
        checkpoint=checkpoint,
    )
    return final


def _bound(name: str, value: Operand) -> Any:
    """A bound of a range: an int, an integer scalar of NumPy, or a tracer."""
    value = canonical(value, lambda: f"fori_loop: {name}")
    aval = aval_of(value)
    if aval.shape or aval.dtype.kind not in "iu":
        raise TypeError(f"fori_loop: {name} must be an integer scalar, got {aval}{here()}")
    return value[()] if isinstance(value, np.ndarray) else value


# associative_scan -------------------------------------------------------------------------------


def _along(x: Array, axis: int, entry: slice) -> Array:
    """A slice along one axis."""
    return slice_index(x, BasicIndex((*[slice(None)] * axis, entry)))


@boundary
def associative_scan(
    fn: Callable[..., R], elems: object, reverse: bool = False, axis: int = 0
) -> R:
    """All prefixes of an associative operation, in logarithmically many steps.

    Args:
      fn: associative function of two pytrees of arrays, of any extent along ``axis``; it acts on
        corresponding elements.
      elems: pytree of arrays of one extent along ``axis``.
      reverse: whether to give suffixes.
      axis: the axis.

    Returns:
      Pytree of arrays like ``elems``; element ``i`` is the operation over elements 0 to ``i``.

    Raises:
      ShapeError: extents differ.

    Example:
      >>> import numpy as np
      >>> associative_scan(np.add, np.arange(5.0))
      array([ 0.,  1.,  3.,  6., 10.])

    Reference: Blelloch, Prefix sums and their applications, CMU-CS-90-190 (1990).
    """
    fn = traced_form("associative_scan", fn)
    elems = tree.fold_float0(elems)
    leaves, treedef, paths = flatten_operands("associative_scan", elems, "elems")
    axes = []
    for leaf, path in zip(leaves, paths, strict=True):
        shape = shape_of(leaf)
        if not shape:
            raise ShapeError(f"associative_scan: {path} is a scalar; it needs axis {axis}{here()}")
        axes.append(normalize_axis(axis, len(shape), "associative_scan"))
    extents = {shape_of(leaf)[own] for leaf, own in zip(leaves, axes, strict=True)}
    if len(extents) > 1:
        raise ShapeError(
            f"associative_scan: arrays differ in extent along axis {axis}: "
            f"{', '.join(_described(paths, leaves))}{here()}; all must be equal"
        )
    if not leaves:
        return tree.unflatten(treedef, [])

    def combine(first: list[Any], second: list[Any]) -> list[Any]:
        result = tree.fold_float0(
            fn(tree.unflatten(treedef, first), tree.unflatten(treedef, second))
        )
        check_structure(
            "associative_scan", treedef, tree.structure(result), "the result of fn", "elems"
        )
        return tree.leaves(result)

    given = [_reversed(x, own) for x, own in zip(leaves, axes, strict=True)] if reverse else leaves
    results = _prefixes(combine, given, axes)
    if reverse:
        results = [_reversed(x, own) for x, own in zip(results, axes, strict=True)]
    return finish_results(results, leaves, treedef)


def _described(paths: Sequence[str], leaves: Sequence[Any]) -> list[str]:
    """Key paths with types, for a message."""
    return [f"{path} ({aval_of(leaf)})" for path, leaf in zip(paths, leaves, strict=True)]


def _reversed(x: Array, axis: int) -> Array:
    """An array with one axis the other way round."""
    return reverse(x, (axis,))


def _prefixes(
    combine: Callable[[list[Any], list[Any]], list[Any]], elems: list[Any], axes: Sequence[int]
) -> list[Any]:
    """Prefixes of pairs give the odd ones; each even one is one operation more."""
    n = shape_of(elems[0])[axes[0]]
    if n < 2:
        return elems
    pairs = combine(_strided(elems, axes, 0, n - 1), _strided(elems, axes, 1, n))
    odd = _prefixes(combine, pairs, axes)
    before = odd if n % 2 else _strided(odd, axes, 0, n // 2 - 1, 1)
    even = combine(before, _strided(elems, axes, 2, n)) if n > 2 else []
    firsts = _strided(elems, axes, 0, 1)
    if even:
        firsts = [
            concatenate([first, rest], axis)
            for first, rest, axis in zip(firsts, even, axes, strict=True)
        ]
    return [_interleaved(a, b, axis) for a, b, axis in zip(firsts, odd, axes, strict=True)]


def _strided(
    elems: list[Any], axes: Sequence[int], start: int, stop: int, step: int = 2
) -> list[Any]:
    return [_along(x, axis, slice(start, stop, step)) for x, axis in zip(elems, axes, strict=True)]


def _interleaved(even: object, odd: object, axis: int) -> Array:
    """An array whose elements come from two arrays in turns."""
    n_even, n_odd = shape_of(even)[axis], shape_of(odd)[axis]
    ndim = len(shape_of(even))

    def spaced(x: Any, low: int, high: int) -> Array:
        config = [(0, 0, 0)] * ndim
        config[axis] = (low, high, 1)
        return pad(x, aval_of(x).dtype.type(0), config)

    if aval_of(even).dtype.kind == "b":
        return spaced(even, 0, int(n_even == n_odd)) | spaced(odd, 1, int(n_even != n_odd))
    return spaced(even, 0, int(n_even == n_odd)) + spaced(odd, 1, int(n_even != n_odd))
