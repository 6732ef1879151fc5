"""Functions of Python functions: apply_along_axis, apply_over_axes, vectorize.

Here: what calls a function given by the user once per element or vector. With values at hand it is
called that often, as NumPy does; in staging it is traced once and batched, with all its paths where
it uses Python's ``if``. Not here: ``piecewise`` (``elements``), ``ft.vmap``.

Layer: ``numpy``.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.avals import ShapedArray
from functrans.core.boundary import boundary
from functrans.core.dispatch import Tracer, dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.jitted.forks import forked
from functrans.numpy.common import as_array, as_tuple, axis_of, is_known
from functrans.numpy.dispatch import has_tracer, implements
from functrans.passes.batch import evaluate_batched
from functrans.passes.staging import stage
from functrans.primitives import movement, structural
from functrans.primitives.structural import moveaxis, normalize_axis


def mapped(
    function: Callable[..., Sequence[Any]],
    arrays: Sequence[Any],
    size: int,
    label: str,
    *,
    has_types: bool = False,
) -> list[Any]:
    """Apply a function to corresponding slices along the first axis of arrays.

    Args:
      function: takes one slice of each array, returns a flat sequence of results.
      arrays: arrays of extent ``size`` along their first axis.
      size: number of slices, not 0.
      label: what is traced, for messages.
      has_types: whether results are converted to types that are given, and not to the first one's.

    Returns:
      The results, stacked along a new first axis.

    Raises:
      TypeError: NumPy would cut results to the integers that the first of them is.
    """
    if all(map(is_known, arrays)):
        columns = [movement.unstack(x, 0) for x in arrays]
        rows = [[as_array(out) for out in function(*row)] for row in zip(*columns, strict=True)]
        columns = list(zip(*rows, strict=True))
        if not has_types:
            for column in columns:
                _check_first(column, label)
        return [movement.stack(column, 0) for column in columns]
    avals = [ShapedArray(shape_of(x)[1:], dtype_of(x)) for x in arrays]
    row_function = forked(lambda *row: [as_array(out) for out in function(*row)], label)
    jaxpr = stage(row_function, avals, label)
    outs, dims = evaluate_batched(jaxpr, size, arrays, [0] * len(arrays))
    return [
        structural.broadcast_to(out, (size, *shape_of(out)))
        if dim is None
        else moveaxis(out, dim, 0)
        for out, dim in zip(outs, dims, strict=True)
    ]


def _check_first(results: Sequence[Any], label: str) -> None:
    kinds = [dtype_of(x).kind for x in results]
    others = [x for x, kind in zip(results, kinds, strict=True) if kind in "fc"]
    if kinds[0] in "biu" and others:
        raise TypeError(
            f"numpy.{label}{here()}: the first result is {dtype_of(results[0])}, a later one is "
            f"{dtype_of(others[0])}. NumPy takes the type of the first and would cut the others to "
            "it, which has no derivative. Return floats (0.0 for 0)"
            f"{', or give otypes=[float]' if label == 'vectorize' else ''}"
        )


@implements(np.apply_along_axis)
def apply_along_axis(
    func1d: Callable[..., Any],
    axis: int | Sequence[int] | None,
    arr: Array,
    *args: object,
    **kwargs: object,
) -> Array:
    """Apply a function to the vectors along an axis, which it may write to."""
    x = as_array(arr)
    shape = shape_of(x)
    k = normalize_axis(axis, len(shape), "axis")
    lead = shape[:k] + shape[k + 1 :]
    count = math.prod(lead)
    if not count:
        raise ValueError("Cannot apply_along_axis when any iteration dimensions are 0")
    order = (*[i for i in range(len(shape)) if i != k], k)
    lanes = structural.reshape(structural.transpose(x, order), (count, shape[k]))
    is_written = False

    def call(lane: Any) -> list[Any]:
        nonlocal is_written
        before = lane._twin() if isinstance(lane, Tracer) else lane
        result = func1d(lane, *args, **kwargs)
        is_written |= not _is_same(lane, before)
        return [result, lane]

    out, written = mapped(call, [lanes], count, "apply_along_axis")
    if is_written:
        written = structural.reshape(written, (*lead, shape[k]))
        arr[...] = structural.transpose(written, tuple(map(order.index, range(len(order)))))
    own = shape_of(out)[1:]
    out = structural.reshape(out, lead + own)
    ndim = len(lead)
    back = (*range(k), *range(ndim, ndim + len(own)), *range(k, ndim))
    return structural.transpose(out, back)


def _is_same(x: ArrayLike, before: ArrayLike) -> bool:
    """Whether a traced array stands for what its twin stands for, so that it was not written to."""
    return all(getattr(x, name, None) is getattr(before, name, None) for name in ("_var", "_value"))


@implements(np.apply_over_axes)
def apply_over_axes(
    func: Callable[..., Any], a: ArrayLike, axes: int | Sequence[int] | None
) -> Array:
    """Apply a reduction to one axis after the other, which stay with extent 1."""
    x = as_array(a)
    ndim = len(shape_of(x))
    for axis in as_tuple(axes):
        k = axis_of(axis + ndim if axis < 0 else axis, ndim or 1)
        result = as_array(func(x, k))
        own = shape_of(result)
        if len(own) != ndim:
            result = structural.reshape(result, (*own[:k], 1, *own[k:]))
            if len(shape_of(result)) != ndim:
                raise ValueError("function is not returning an array of the correct shape")
        x = result
    return x


def _core_names(text: str) -> list[tuple[str, ...]]:
    """Names of core axes per argument of one side of a signature: ``(n),(n,m)``."""
    groups = re.findall(r"\(([^()]*)\)", text)
    return [tuple(name for name in group.replace(" ", "").split(",") if name) for group in groups]


class vectorize:  # noqa: N801  # NumPy's name
    """``numpy.vectorize`` for traced values: a Python function applied to broadcast elements.

    Plain arguments go to ``numpy.vectorize`` itself. With values at hand the function is called
    once per element; in staging it is traced once and batched. It may use Python's ``if``. Without
    ``otypes``, results have the common dtype of all elements and paths (NumPy: that of the first
    element, which cuts fractions where that is an integer).

    Args:
      pyfunc: function of scalars, or of arrays with a ``signature``.
      otypes: dtypes of the results.
      doc: docstring of the result.
      excluded: positions and names of arguments that are passed as they are.
      cache: as in NumPy.
      signature: core axes: ``"(m,n),(n)->(m)"``.
    """

    @boundary
    def __init__(
        self,
        pyfunc: Callable[..., Any],
        otypes: Any = None,
        doc: str | None = None,
        excluded: Any = None,
        cache: bool = False,
        signature: str | None = None,
    ) -> None:
        self._plain = np.vectorize(pyfunc, otypes, doc, excluded, cache, signature)
        self.pyfunc = pyfunc
        self.excluded = frozenset(excluded or ())
        self.signature = signature
        functools.update_wrapper(self, pyfunc, updated=())  # its attributes are its own
        if doc is not None:
            self.__doc__ = doc

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the function to broadcast arguments."""
        if not has_tracer(args) and not has_tracer(kwargs.values()):
            return self._plain(*args, **kwargs)
        return self.traced(*args, **kwargs)

    def traced(self, *args: Any, **kwargs: object) -> Any:
        """The same where traced values may be arguments, or used by the function otherwise."""
        names = [name for name in kwargs if name not in self.excluded]
        places = [i for i in range(len(args)) if i not in self.excluded]
        arrays = [as_array(args[i]) for i in places] + [as_array(kwargs[n]) for n in names]

        def call(*values: Any) -> Any:
            own = list(args)
            for i, value in zip(places, values[: len(places)], strict=True):
                own[i] = value
            return self.pyfunc(
                *own, **{**kwargs, **dict(zip(names, values[len(places) :], strict=True))}
            )

        cores: list[Any] = [()] * len(arrays)
        if self.signature is not None:
            cores = _core_names(self.signature.split("->")[0])
            if len(cores) != len(arrays):
                raise TypeError(
                    f"wrong number of positional arguments: expected {len(cores)}, "
                    f"got {len(arrays)}"
                )
        return self._mapped(call, arrays, [len(core) for core in cores])

    def _mapped(self, call: Callable[..., Any], arrays: list[Any], ranks: list[int]) -> Any:
        """The function over all elements of the broadcast loop axes."""
        for x, rank in zip(arrays, ranks, strict=True):
            if len(shape_of(x)) < rank:
                raise ValueError(
                    f"vectorize: an argument of shape {shape_of(x)} has fewer axes than its part "
                    f"of the signature {self.signature!r}"
                )
        loops = [
            shape_of(x)[: len(shape_of(x)) - rank] for x, rank in zip(arrays, ranks, strict=True)
        ]
        loop = np.broadcast_shapes(*loops)
        size = math.prod(loop)
        if not size:
            raise ValueError("cannot call `vectorize` on size 0 inputs")
        rows = []
        for x, own in zip(arrays, loops, strict=True):
            core = shape_of(x)[len(own) :]
            wide = structural.broadcast_to(x, loop + core)
            rows.append(structural.reshape(wide, (size, *core)))
        is_tuple: list[bool] = []

        def flat(*row: ArrayLike) -> Sequence[Any]:
            result = call(*row)
            is_tuple[:] = [isinstance(result, tuple)]
            return result if isinstance(result, tuple) else (result,)

        types = self._plain.otypes
        outs = mapped(flat, rows, size, "vectorize", has_types=types is not None)
        if types is not None:
            dtypes = map(np.dtype, types)
            outs = [structural.cast(x, dtype) for x, dtype in zip(outs, dtypes, strict=True)]
        shaped = tuple([structural.reshape(out, loop + shape_of(out)[1:]) for out in outs])
        return shaped if is_tuple[0] else shaped[0]
