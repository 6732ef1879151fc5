"""Einstein summation: subscripts, contraction order, and each contraction by ``dot_general``.

Here: ``einsum`` with NumPy's whole notation (ellipsis, repeated labels, implicit output, lists of
labels in place of a string) and ``einsum_path``. A plan is made once per subscripts and shapes.
Not here: products without subscripts (``products``).

One step takes one or two operands: repeated labels within an operand become its diagonal, labels
that nothing else needs are summed, an axis of extent 1 that meets a longer one is dropped, and what
is left is one ``dot_general``: labels of both operands that are needed later are batch axes, the
others of both are contracted.

Layer: ``numpy``.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from functrans.core.caching import remembered
from functrans.core.dispatch import dtype_of, shape_of
from functrans.core.source import here
from functrans.core.values import Array
from functrans.errors import ShapeError
from functrans.numpy.common import as_array, stored, view
from functrans.numpy.dispatch import implements
from functrans.primitives import elementwise as ew
from functrans.primitives import structural
from functrans.primitives.complex_parts import real_dtype
from functrans.primitives.dot import dot_general
from functrans.primitives.indexing import gather, scatter
from functrans.primitives.structural import cast, inverse_permutation
from functrans.records import dataclass

Labels = tuple[Any, ...]
Shape = tuple[int, ...]

_ELLIPSIS = "."  # axes of an ellipsis are labels (".", k), k counted from the last one


# notation ---------------------------------------------------------------------------------------


def _bad(message: str) -> ValueError:
    return ValueError(f"einsum: {message}{here()}")


def _term_labels(term: str, ndim: int | None) -> list[Any]:
    """Labels of one operand; ``ndim`` is its rank, ``None`` for the output."""
    head, dots, tail = term.partition("...")
    if "." in head or "." in tail:
        raise _bad(f"{term!r} holds a '.' that is not part of one ellipsis ('...')")
    for label in head + tail:
        if not label.isalpha():
            raise _bad(f"invalid subscript {label!r} in {term!r}; use letters")
    if ndim is None:
        return [*head, *([Ellipsis] if dots else []), *tail]
    extra = ndim - len(head) - len(tail)
    if extra < 0 or (extra and not dots):
        raise _bad(
            f"operand of {ndim} axes has {len(head) + len(tail)} subscripts {term!r}; give one per "
            "axis, or an ellipsis"
        )
    return [*head, *((_ELLIPSIS, k) for k in range(extra - 1, -1, -1)), *tail]


@remembered(1024)
def _parse(subscripts: str, ndims: tuple[int, ...]) -> tuple[tuple[Labels, ...], Labels]:
    """Labels of each operand and of the output."""
    text = subscripts.replace(" ", "")
    inputs, arrow, output = text.partition("->")
    if ("-" in inputs or ">" in inputs) or (arrow and ("-" in output or ">" in output)):
        raise _bad("subscripts can only contain one '->'")
    terms = inputs.split(",")
    if len(terms) != len(ndims):
        raise _bad(f"{len(terms)} subscripts given for {len(ndims)} operands")
    labels = [_term_labels(term, ndim) for term, ndim in zip(terms, ndims, strict=True)]
    rank = max((sum(type(x) is tuple for x in term) for term in labels), default=0)
    dots = [(_ELLIPSIS, k) for k in range(rank - 1, -1, -1)]
    if arrow:
        final: list[Any] = []
        for label in _term_labels(output, None):
            final.extend(dots if label is Ellipsis else [label])
        if rank and "..." not in output:
            raise _bad("the output has no ellipsis, but operands have axes under theirs")
    else:
        every = [x for term in labels for x in term if type(x) is not tuple]
        final = [*dots, *sorted(x for x in set(every) if every.count(x) == 1)]
    known = {x for term in labels for x in term}
    for label in final:
        if label not in known:
            raise _bad(f"output subscript {label!r} does not appear in any operand")
    if len(set(final)) != len(final):
        raise _bad(f"output has a subscript more than once: {output!r}")
    return tuple(map(tuple, labels)), tuple(final)


def _string_of(operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """Subscripts and operands of ``einsum(op, labels, op, labels, ..., [labels])``."""
    arrays = list(operands[: len(operands) // 2 * 2 : 2])
    lists = list(operands[1::2])
    output = operands[-1] if len(operands) % 2 else None

    def text(labels: Array) -> str:
        return "".join("..." if x is Ellipsis else _letter(x) for x in labels)

    subscripts = ",".join(map(text, lists))
    return subscripts if output is None else f"{subscripts}->{text(output)}", arrays


def _letter(label: int) -> str:
    """Letter of a numbered label: A to Z, then a to z, in NumPy's order."""
    number = operator.index(label)
    if not 0 <= number < 52:
        raise _bad(f"subscript {number} is not in the valid range [0, 52)")
    return chr(ord("A") + number) if number < 26 else chr(ord("a") + number - 26)


# plans ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Step:
    """One contraction.

    Attributes:
      places: positions of the operands, which it takes out of the list; the result goes to its end.
      keep: labels that the result needs.
    """

    places: tuple[int, ...]
    keep: frozenset[Any]


def _extents(labels: tuple[Labels, ...], shapes: tuple[Shape, ...]) -> dict[Any, int]:
    """Extent of each label; 1 gives way to that of another operand."""
    extents: dict[Any, int] = {}
    for term, shape in zip(labels, shapes, strict=True):
        own: dict[Any, int] = {}
        for label, n in zip(term, shape, strict=True):
            if own.setdefault(label, n) != n:
                raise ShapeError(
                    f"einsum: operand of shape {shape} has no diagonal: subscript {label!r} has "
                    f"extents {own[label]} and {n}{here()}"
                )
            have = extents.get(label, 1)
            if have != n and 1 not in (have, n):
                raise _bad(
                    f"operands of shapes {' and '.join(map(str, shapes))} do not fit: subscript "
                    f"{label if type(label) is str else '...'!r} has extents {have} and {n}"
                )
            extents[label] = n if have == 1 else have
    return extents


@remembered(1024)
def _plan(
    labels: tuple[Labels, ...], output: Labels, shapes: tuple[Shape, ...], optimize: object
) -> tuple[_Step, ...]:
    """The contractions in order."""
    extents = _extents(labels, shapes)
    pending = list(labels)
    steps = []
    for places in _order(labels, output, extents, shapes, optimize):
        chosen = tuple([pending[i] for i in places])
        rest = [term for i, term in enumerate(pending) if i not in places]
        keep = frozenset(output).union(*rest)
        steps.append(_Step(places, keep))
        found = sorted({x for term in chosen for x in term} & keep, key=str)
        pending = [*rest, tuple(found)]
    return tuple(steps)


def _order(
    labels: tuple[Labels, ...],
    output: Labels,
    extents: dict[Any, int],
    shapes: tuple[Shape, ...],
    optimize: Any,
) -> list[tuple[int, ...]]:
    """Which operands to contract, one or two at a time."""
    n = len(labels)
    if n <= 2:
        return [tuple(range(n))]
    if isinstance(optimize, tuple) and optimize and optimize[0] == "einsum_path":
        path = [tuple(sorted(step)) for step in optimize[1:]]
    else:
        names = {label: chr(ord("a") + i) if i < 26 else chr(ord("A") + i - 26)
                 for i, label in enumerate(sorted(extents, key=str))}  # fmt: skip
        text = ",".join("".join(names[x] for x in term) for term in labels)
        text += "->" + "".join(names[x] for x in output)
        dummies = [np.broadcast_to(0.0, shape) for shape in shapes]
        rule = optimize if optimize not in (True, False) else "greedy"
        path = np.einsum_path(text, *dummies, optimize=rule)[0][1:]
    pairs: list[tuple[int, ...]] = []
    count = n
    for step in path:
        places = sorted(step)
        while len(places) > 2:  # many at once: two by two
            pairs.append((places[0], places[1]))
            count -= 1
            places = [p - (p > places[0]) - (p > places[1]) for p in places[2:]] + [count - 1]
        pairs.append(tuple(places))
        count -= len(places) - 1
    if count > 1:
        raise _bad(f"optimize={optimize!r} is no complete contraction path")
    return pairs


# evaluation -------------------------------------------------------------------------------------


def _diagonals(x: ArrayLike, labels: list[Any]) -> Any:
    """Repeated labels of one operand become its diagonal; ``labels`` loses the repetitions."""
    for label in [one for i, one in enumerate(labels) if one in labels[:i]]:
        axes = tuple([k for k, other in enumerate(labels) if other == label])
        if len(axes) < 2:
            continue
        x = gather(x, (np.arange(shape_of(x)[axes[0]]),) * len(axes), axes)
        labels[:] = [label, *[other for other in labels if other != label]]
    return x


def _summed(x: ArrayLike, labels: list[Any], keep: Any) -> Array:
    """Labels that are not kept are summed away."""
    axes = tuple([k for k, label in enumerate(labels) if label not in keep])
    labels[:] = [label for label in labels if label in keep]
    return structural.reduce_sum(x, axes)


def _with_extents_of(
    x: ArrayLike, labels: list[Any], other: ArrayLike, other_labels: list[Any], keep: Any
) -> Any:
    """Axes of extent 1 whose label has a longer one in the other operand: repeated, or dropped.

    An axis that is summed is repeated: a factor before the sum is no infinity times each term.
    """
    shape = shape_of(x)
    extents = dict(zip(other_labels, shape_of(other), strict=True))
    long = [shape[k] == 1 and extents.get(label, 1) > 1 for k, label in enumerate(labels)]
    if not any(long):
        return x
    is_dropped = [is_long and label in keep for is_long, label in zip(long, labels, strict=True)]
    full = [extents[label] if long[k] else shape[k] for k, label in enumerate(labels)]
    kept = [k for k in range(len(labels)) if not is_dropped[k]]
    labels[:] = [labels[k] for k in kept]
    x = structural.reshape(x, tuple([shape[k] for k in kept]))
    return structural.broadcast_to(x, tuple([full[k] for k in kept]))


def _contract(
    x: ArrayLike, y: ArrayLike, x_labels: list[Any], y_labels: list[Any], keep: Any
) -> Array:
    """The product of two operands; ``x_labels`` becomes the labels of the result."""
    x = _with_extents_of(x, x_labels, y, y_labels, keep)
    y = _with_extents_of(y, y_labels, x, x_labels, keep)
    x = _summed(x, x_labels, keep | set(y_labels))
    y = _summed(y, y_labels, keep | set(x_labels))
    both = [label for label in x_labels if label in y_labels]
    batch = [label for label in both if label in keep]
    contracted = [label for label in both if label not in keep]
    out = dot_general(
        x,
        y,
        (tuple(map(x_labels.index, contracted)), tuple(map(y_labels.index, contracted))),
        (tuple(map(x_labels.index, batch)), tuple(map(y_labels.index, batch))),
    )
    x_labels[:] = [
        *batch,
        *[label for label in x_labels if label not in both],
        *[label for label in y_labels if label not in both],
    ]
    return out


def _permuted(x: ArrayLike, labels: list[Any], output: Labels) -> Array:
    """The axes in the order of the output; labels that are missing have been of extent 1."""
    missing = [label for label in output if label not in labels]
    if missing:
        x = structural.reshape(x, shape_of(x) + (1,) * len(missing))
        labels = [*labels, *missing]
    return structural.transpose(x, tuple(map(labels.index, output)))


def _view_of(x: ArrayLike, labels: Labels, output: Labels) -> Array:
    """One operand without sums: a permutation or a diagonal, which is a view in NumPy."""

    def read(base: ArrayLike) -> Any:
        own = list(labels)
        return _permuted(_diagonals(base, own), own, output)

    def write(base: Any, new: Any) -> Any:
        if len(output) == len(labels):
            back = inverse_permutation(tuple(map(labels.index, output)))
            return structural.transpose(new, back)
        # Every place of the base that the diagonal visits, by the positions of the labels.
        shape = shape_of(new)
        grids = np.indices(shape, sparse=True)
        indices = tuple([grids[output.index(label)] for label in labels])
        return scatter(base, new, indices, tuple(range(len(labels))), unique_indices=True)

    return view(x, read(x), read, write)


@implements(np.einsum)
def einsum(
    *operands: object, out: Array | None = None, optimize: bool = False, **kwargs: object
) -> Array:
    """Einstein summation over any number of operands.

    With ``optimize`` false three and more operands are contracted two by two in a greedy order,
    too; the values agree to rounding.
    """
    dtype = kwargs.pop("dtype", None)
    for option in ("casting", "order"):
        kwargs.pop(option, None)
    if kwargs:
        raise TypeError(f"einsum() got an unexpected keyword argument {sorted(kwargs)[0]!r}")
    if not operands:
        raise _bad("must specify the subscripts and at least one operand")
    if isinstance(operands[0], str):
        subscripts, given = operands[0], list(operands[1:])
    else:
        subscripts, given = _string_of(operands)
    arrays = [as_array(x) for x in given]
    if dtype is not None:
        arrays = [cast(x, dtype) for x in arrays]
    labels, output = _parse(subscripts, tuple([len(shape_of(x)) for x in arrays]))
    shapes = tuple([shape_of(x) for x in arrays])
    if len(arrays) == 1 and set(labels[0]) == set(output):
        _extents(labels, shapes)
        x = arrays[0]  # without axes, NumPy gives a number
        return stored("einsum", _view_of(x, labels[0], output) if labels[0] else x[()], out)
    path = tuple(map(_frozen, optimize)) if isinstance(optimize, (list, tuple)) else optimize
    common = np.result_type(*map(dtype_of, arrays))
    arrays = [_in_kind(x, common) for x in arrays]
    remaining = list(zip(arrays, map(list, labels), strict=True))
    for step in _plan(labels, output, shapes, path):
        chosen = [remaining[i] for i in step.places]
        for i in sorted(step.places, reverse=True):
            del remaining[i]
        remaining.append(_evaluate(chosen, step.keep))
    ((result, own),) = remaining
    result = cast(_permuted(result, own, output), common)
    return stored("einsum", result, out)


def _in_kind(x: ArrayLike, dtype: np.dtype) -> Array:
    """An operand as it is summed: in the dtype of the result; real ones stay real."""
    is_part = dtype.kind == "c" and dtype_of(x).kind != "c"
    return cast(x, real_dtype(dtype) if is_part else dtype)


def _frozen(step: object) -> Any:
    return tuple(step) if isinstance(step, (list, tuple)) else step


def _evaluate(chosen: list[tuple[Any, list[Any]]], keep: Any) -> tuple[Any, list[Any]]:
    """One step on arrays with their labels."""
    ready = []
    for x, own in chosen:
        labels = list(own)
        ready.append((_diagonals(x, labels), labels))
    x, x_labels = ready[0]
    if len(ready) == 1:
        return _summed(x, x_labels, keep), x_labels
    y, y_labels = ready[1]
    if not shape_of(x) or not shape_of(y):
        out = ew.multiply(x, y)
        labels = [*x_labels, *y_labels]
        return _summed(out, labels, keep), labels
    return _contract(x, y, x_labels, y_labels, set(keep)), x_labels


@implements(np.einsum_path)
def einsum_path(*operands: Any, optimize: Any = "greedy", einsum_call: bool = False) -> Any:
    """The contraction order of an ``einsum``, which depends on shapes only."""

    def probe(x: Any) -> Any:
        if isinstance(x, str) or (isinstance(x, (list, tuple)) and len(x) and isinstance(
            x[0], (int, type(Ellipsis)))):  # fmt: skip
            return x
        array = as_array(x)
        return np.broadcast_to(np.zeros((), dtype_of(array)), shape_of(array))

    return np.einsum_path(*map(probe, operands), optimize=optimize)
