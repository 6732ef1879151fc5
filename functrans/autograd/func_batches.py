"""``vmap`` of functions of tensors (``torch.func``).

Not here: the transform of functions of arrays, which this is made of (``transforms.vectorize``).

Layer: ``autograd``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.autograd.modes import entered, modes
from functrans.autograd.on_values import (
    OnValues,
    Shared,
    all_leaves,
    check_chunk,
    check_randomness,
    transformed,
)
from functrans.autograd.random import BatchLevel, get_rng_state, set_rng_state
from functrans.autograd.residuals import region_of
from functrans.autograd.tensors import Tensor
from functrans.core.arguments import name_of
from functrans.core.boundary import cause
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer, shape_of
from functrans.core.state import open_traces
from functrans.errors import ShapeError, TreeMismatchError
from functrans.primitives.movement import concatenate
from functrans.transforms import vectorize


def vmap(
    func: Callable[..., Any],
    in_dims: object = 0,
    out_dims: object = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Map a function of tensors over an axis of its arguments, as one batched computation.

    Args:
      func: function of tensors for one example.
      in_dims: per positional argument the axis mapped over, or ``None``; or one for all.
      out_dims: where the batch axis goes in results.
      randomness: ``"error"``: random operations raise; ``"same"``: they give all examples the same
        numbers; ``"different"``: each example its own, those of a draw for the whole batch.
      chunk_size: how many examples are computed at once.

    Returns:
      Function of arguments with a batch axis; keyword arguments are passed as they are.

    Raises:
      ValueError: an argument that is mapped over is no tensor, or extents differ.
      RuntimeError: there is no such ``randomness``; a random operation where it raises.

    Example:
      >>> from functrans.autograd import tensor
      >>> vmap(lambda x: (x * x).sum())(tensor([[1.0, 2.0], [3.0, 4.0]]))
      tensor([ 5., 25.])
    """
    check_randomness(randomness)
    check_chunk("vmap", chunk_size)

    @functools.wraps(func, assigned=("__name__", "__doc__"), updated=())
    def vmapped(*args: object, **kwargs: object) -> Any:
        name = name_of(func)
        _check_dims(name, in_dims, out_dims, args)
        size = _check_mapped(name, in_dims, args)
        if chunk_size is not None and size:
            return by_chunks(name, size, args, kwargs)

        results = _Results(name, out_dims)
        around = next(reversed(open_traces.get()), None)

        @functools.wraps(func, assigned=("__name__",), updated=())
        def one(*given: Any) -> Any:
            *own, lane = given
            level = BatchLevel(randomness, size, lane, open_traces.get()[-1], around)
            with entered({"batches": (*modes.batches, level)}):
                return results.taken(func(*own, **kwargs))  # keywords are not mapped

        lanes = Tensor.of(np.arange(size)) if randomness == "different" else None
        axes = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        given = (*args, lanes)
        dims = _leaf_dims(name, "in_dims", in_dims, (*axes, 0), given)
        moved: list[Any] = []
        called: list[Any] = []

        def batched(f: Any) -> Callable[..., Any]:
            f.takes_writes = True
            called.append(f)

            def run(*values: Any) -> tuple[Any, ...]:
                found = f(*values)
                moved[:] = [dims[i] for i in f.written]
                return found

            run.__name__ = name
            axes_of_all = (*axes, None if lanes is None else 0)
            return vectorize.vmap(run, axes_of_all, (results.dims, moved))

        try:
            found = transformed(batched, one, given, {})
        except ShapeError as error:
            if "out_axes is None" in str(error):
                text = f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is"
                raise ValueError(f"{text} None: {error}") from cause(error)
            raise
        return results.whole(_with_shared(found, results.dims, called[-1], dims, size))

    def by_chunks(name: str, size: int, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call the function anew for each chunk, which draws and writes on its own."""
        assert chunk_size is not None
        whole = vmap(func, in_dims, out_dims, randomness)
        leaves, treedef = tree.flatten(tuple(args))
        specs = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
        dims = _leaf_dims(name, "in_dims", in_dims, specs, args)
        found = []
        state = get_rng_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:  # as if all chunks were one
                set_rng_state(state)
            part = slice(start, start + chunk_size)
            own = [
                x if dim is None else x[(slice(None),) * (dim % len(x.shape)) + (part,)]
                for x, dim in zip(leaves, dims, strict=True)
            ]
            found.append(whole(*tree.unflatten(treedef, own), **kwargs))
        ends = _out_dims(name, out_dims, found[0])
        columns = zip(*map(tree.leaves, found), strict=True)
        joined = [
            parts[0] if dim is None else concatenate(parts, dim % len(parts[0].shape))
            for parts, dim in zip(columns, ends, strict=True)
        ]
        return tree.unflatten(tree.structure(found[0]), joined)

    return vmapped


class _Results:
    """What the function returns: the tensors, and the rest, which ``out_dims`` of ``None`` allows.

    Attributes:
      dims: of the tensors, where the batch axis goes.
    """

    def __init__(self, name: str, out_dims: object) -> None:
        self.name = name
        self.out_dims = out_dims
        self.dims: list[Any] = []

    def taken(self, result: Any) -> list[Tensor]:
        """The tensors of a result.

        Raises:
          ValueError: something else is to get a batch axis, or ``out_dims`` does not fit.
          IndexError: there is no such axis.
        """
        self.leaves, self.treedef = tree.flatten(result, none_is_leaf=True)
        marked = tree.unflatten(self.treedef, [_NONE if x is None else x for x in self.leaves])
        ends = _out_dims(self.name, self.out_dims, marked)
        self.dims[:] = []
        for leaf, end in zip(self.leaves, ends, strict=True):
            if isinstance(leaf, Tensor):
                n = len(leaf.shape) + 1
                if end is not None and not -n <= end < n:
                    raise IndexError(
                        f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but "
                        f"got {end})"
                    )
                self.dims.append(end)
            elif end is not None:
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                    f"{type(leaf)}. Did you mean to set out_dims= to None for output?"
                )
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def whole(self, tensors: Sequence[Any]) -> Any:
        """The result of the whole batch."""
        given = iter(tensors)
        leaves = [next(given) if isinstance(x, Tensor) else x for x in self.leaves]
        return tree.unflatten(self.treedef, leaves)


_NONE = object()


def _out_dims(name: str, out_dims: Any, result: object) -> list[Any]:
    """Per leaf of a result the axis; a tuple of one is that of a single leaf, too."""
    is_one = isinstance(out_dims, tuple) and len(out_dims) == 1
    spec = out_dims[0] if is_one and tree.structure(result) == tree.LEAF else out_dims
    return _leaf_dims(name, "out_dims", out_dims, [spec], [result])


def _with_shared(
    found: list[Any],
    ends: Sequence[Any],
    function: OnValues,
    dims: Sequence[Any],
    size: int,
) -> list[Any]:
    """Results, of which those that share memory with the caller's tensors still do.

    Args:
      found: the results.
      ends: where their batch axis is.
      function: the function, which ran.
      dims: per argument the axis that was mapped over.
      size: the number of examples.
    """
    for k, shared in function.shared.items():
        end = ends[k]
        if shared.place is None or dims[shared.place] is None:
            one = shared.tensor()
            if end is not None:
                at = end % (len(one.shape) + 1)
                one = one.unsqueeze(at).expand(*one.shape[:at], size, *one.shape[at:])
            found[k] = one
        elif shared.how is None:
            original: Any = shared.of
            n = len(original.shape)
            start, end = dims[shared.place] % n, end % n
            found[k] = original if start == end else original.movedim(start, end)
        elif end is not None and size:
            found[k] = _mapped_view(found[k], shared, dims[shared.place], end)
    return found


def _mapped_view(found: object, shared: Shared, start: int, end: int) -> object:
    """The same view of each example as one of the whole, if NumPy can share."""
    assert shared.how is not None
    one = region_of(shared.how.steps)

    def memory(whole: np.ndarray) -> np.ndarray:
        part = one(np.moveaxis(whole, start, 0)[0, ...])
        shape, strides = (whole.shape[start], *part.shape), (whole.strides[start], *part.strides)
        return np.moveaxis(np.lib.stride_tricks.as_strided(part, shape, strides), 0, end)

    own: object = shared.of._memory()
    if not isinstance(own, np.ndarray) or not np.may_share_memory(
        one(np.moveaxis(own, start, 0)[0, ...]), own
    ):
        return found
    whole, label = vectorize.vmap(one, start, end), shared.how.creator
    result: object = deferred.tensor_view(label, shared.of, whole, memory)
    return result


def _leaf_dims(
    name: str, what: str, whole: object, specs: Sequence[Any], values: Sequence[Any]
) -> list[Any]:
    """Per leaf of arguments or results the axis.

    Args:
      name: of the function.
      what: ``"in_dims"`` or ``"out_dims"``.
      whole: as it was given.
      specs: per value an axis, or a tree of them.
      values: arguments, or the result.

    Raises:
      ValueError: they do not fit.
    """
    dims: list[Any] = []
    for spec, value in zip(specs, values, strict=True):
        if spec is None or isinstance(spec, int):
            dims.extend([spec] * len(tree.leaves(value)))
            continue
        try:
            own = tree.broadcast_prefix(spec, value, f"vmap of {name}", what)
        except TreeMismatchError as error:
            side = "inputs" if what == "in_dims" else "outputs"
            raise ValueError(
                f"vmap({name}, ..., {what}={whole}): {what} is not compatible with the structure "
                f"of `{side}`: {error}"
            ) from cause(error)
        dims.extend(own)
    return dims


def _check_dims(name: str, in_dims: object, out_dims: object, args: Sequence[Any]) -> None:
    """Refuse axes that are no numbers, and calls without arguments.

    Raises:
      ValueError: there is one.
    """
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a "
            "(potentially nested) tuple matching the structure of inputs, got: "
            f"{type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are "
            "trying to vmap over a function with no inputs. The latter is unsupported."
        )
    for dim in tree.leaves(in_dims):
        if not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an input "
                "but in_dim must be either an integer dimension or None."
            )
    if not all(isinstance(dim, int) for dim in tree.leaves(out_dims)):
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
            "collection of ints representing where in the outputs the vmapped dimension should "
            "appear."
        )


def _check_mapped(name: str, in_dims: object, args: Sequence[Any]) -> int:
    """The number of examples."""
    specs = in_dims if isinstance(in_dims, (tuple, list)) else (in_dims,) * len(args)
    if len(specs) != len(args):
        raise ValueError(
            f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): in_dims is not compatible with the "
            f"structure of inputs. in_dims has {len(specs)} entries but there are {len(args)} "
            "arguments."
        )
    sizes = []
    for spec, arg in zip(specs, args, strict=True):
        own = _leaf_dims(name, "in_dims", in_dims, [spec], [arg])
        pairs = [*zip(tree.leaves(arg), own, strict=True)]
        if isinstance(spec, int):
            pairs += [(None, spec) for leaf in all_leaves(arg) if leaf is None]
        for leaf, dim in pairs:
            if dim is None:
                continue
            if not isinstance(leaf, (Tracer, np.ndarray)):
                raise ValueError(
                    f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for an "
                    f"input but the input is of type {type(leaf)}. We cannot vmap over non-Tensor "
                    "arguments, please use None as the respective in_dim"
                )
            shape = shape_of(leaf)
            if not -len(shape) <= dim < len(shape):
                raise ValueError(
                    f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): Got in_dim={dim} for some "
                    f"input, but that input is a Tensor of dimensionality {len(shape)} so expected "
                    f"in_dim to satisfy -{len(shape)} <= in_dim < {len(shape)}."
                )
            sizes.append(shape[dim])
    if len(set(sizes)) > 1:
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0] if sizes else 0
