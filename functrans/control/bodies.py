"""Users' functions as programs: what every higher-order primitive starts from.

Here: ``stage_body`` (a function of pytrees becomes a Jaxpr without constants), and the checks that
two results have the same types, with key paths in messages. Not here: what is done with the
programs (``passes.programs`` and one file per primitive).

Layer: ``control``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans import pytrees as tree
from functrans.control.inline import inline_calls
from functrans.control.native import jit_p
from functrans.core.arguments import canonical, leaf_description, result_leaf
from functrans.core.avals import ShapedArray
from functrans.core.dispatch import aval_of, bind
from functrans.core.jaxpr import Jaxpr
from functrans.core.ownership import own_arrays
from functrans.core.source import attribute, here
from functrans.core.values import Array
from functrans.errors import ShapeError, TreeMismatchError
from functrans.passes.evaluate import evaluate
from functrans.passes.programs import hoist, intern
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.primitives.structural import cast_p
from functrans.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """A user's function as a program.

    Attributes:
      jaxpr: ``(*captured, *leaves of the arguments) -> leaves of the result``; no constants.
      captured: arrays and tracers that the function refers to.
      treedef: structure of the result.
      label: what it is, for messages: ``scan: body step``.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    treedef: Any
    label: str

    @property
    def out_avals(self) -> tuple[Any, ...]:
        """Avals of the leaves of the result."""
        return self.jaxpr.out_avals

    def out_paths(self, root: str) -> list[str]:
        """Key paths of the leaves of the result."""
        return tree.paths_of(self.treedef, root)


def flatten_operands(who: str, operands: object, root: str) -> tuple[list[Any], Any, list[str]]:
    """Leaves (arrays, numbers or tracers), structure and key paths of arguments.

    Raises:
      UnsupportedOperationError: a leaf is no array of numbers; names its key path.
    """
    operands = tree.fold_float0(operands)
    leaves, treedef = tree.flatten(operands)
    values = [
        canonical(leaf, functools.partial(leaf_description, who, operands, i, root))
        for i, leaf in enumerate(leaves)
    ]
    return values, treedef, tree.key_paths(operands, root)


def stage_body(
    label: str,
    fun: Callable[..., Any],
    treedef: object,
    avals: Sequence[Any],
    arg_names: Sequence[str] = (),
    finish: Callable[[Any], Any] | None = None,
    is_branch: bool = False,
    axes: Mapping[str, int] | None = None,
) -> Body:
    """Stage a function of pytrees.

    Args:
      label: what it is, for messages.
      fun: the user's function.
      treedef: structure of the tuple of its arguments.
      avals: avals of the leaves of its arguments.
      arg_names: key paths of the leaves.
      finish: what to make of the result before it is flattened.
      is_branch: whether it may not run; its operations on tracers from outside do not, then.
      axes: named axes that collectives inside may use.
    """
    structure: list[Any] = []

    def flat(*tracers: Array) -> list[Any]:
        result = fun(*tree.unflatten(treedef, tracers))
        if finish is not None:
            result = finish(result)
        result = tree.fold_float0(result)
        outs, out_treedef = tree.flatten(result)
        structure.append(out_treedef)
        return [result_leaf(out, label, result, i) for i, out in enumerate(outs)]

    name = attribute(fun, "__name__") or ""
    jaxpr = stage(
        flat, avals, label, name=name, arg_names=arg_names, axes=axes, is_branch=is_branch
    )
    program, captured = hoist(simplify(inline_calls(jaxpr, jit_p)))
    return Body(intern(program), captured, structure[0], label)


def cast_results(jaxpr: Jaxpr, avals: Sequence[Any]) -> Jaxpr:
    """The program with results cast to the dtypes of strong avals of the same shapes."""
    if jaxpr.out_avals == tuple(avals):
        return jaxpr

    def run(*args: object) -> list[Any]:
        outs = evaluate(jaxpr, args)
        return [
            out if aval_of(out) == aval else _cast(out, aval.dtype)
            for out, aval in zip(outs, avals, strict=True)
        ]

    program = stage(
        run, jaxpr.in_avals, f"conversion of results of {jaxpr.name}",
        name=jaxpr.name, arg_names=jaxpr.arg_names,
    )  # fmt: skip
    return intern(simplify(program))


def _cast(value: object, dtype: np.dtype) -> Array:
    """A value of a strong dtype; a number stays one, and so a literal of the program."""
    (out,) = bind(cast_p, value, dtype=dtype)
    return out[()] if isinstance(out, np.ndarray) else out


def joined_aval(first: ShapedArray, second: ShapedArray) -> ShapedArray | None:
    """The aval that both convert to without loss: a Python scalar takes the other's dtype.

    ``None`` when there is none.
    """
    if first == second:
        return first
    if first.shape != second.shape:
        return None
    if first.dtype == second.dtype:
        return first.strong()
    if first.weak and second.weak:
        kinds = "biufc"
        wider = max(first, second, key=lambda aval: kinds.index(aval.dtype.kind))
        return wider.strong()
    weak, strong = (first, second) if first.weak else (second, first)
    if weak.weak and _KIND_RANK[weak.dtype.kind] <= _KIND_RANK.get(strong.dtype.kind, 3):
        return strong
    return None


_KIND_RANK = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}


def check_structure(who: str, expected: object, received: object, what: str, where: str) -> None:
    """Refuse ``what`` if its structure is not the expected one, which is that of ``where``.

    Raises:
      TreeMismatchError: names both structures.
    """
    if expected != received:
        raise TreeMismatchError(
            f"{who}{here()}: {what} has structure {tree.in_words(received)}, but {where} has "
            f"{tree.in_words(expected)}; both must be the same"
        )


def mismatch(
    who: str, what: str, received: Any, where: str, expected: Any, advice: str
) -> Exception:
    """The error for a leaf of a wrong type."""
    kind = ShapeError if received.shape != expected.shape else TypeError
    return kind(f"{who}: {what} is {received}, but {where} is {expected}; {advice}")


def finish_results(outs: Sequence[Any], operands: Sequence[Any], treedef: object) -> Any:
    """Results in their structure; plain ones are arrays that share no memory with operands."""
    results = own_arrays(outs, operands)
    return results if treedef is None else tree.unflatten(treedef, results)
