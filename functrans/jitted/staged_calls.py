"""Calls of jitted functions as programs.

Here: ``Program``, what is kept of a staged call, and how a call is staged. Not here: the arguments
of calls (``jitted.signatures``), when a call is staged and where its program is kept
(``jitted.jit``).

Layer: ``jitted``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from functrans import pytrees as tree
from functrans.compiler.compiled import Compiled
from functrans.control.inline import inline_calls
from functrans.control.native import Runs, jit_p, runs_of
from functrans.core.arguments import result_leaf
from functrans.core.dispatch import aval_of
from functrans.core.hidden_state import Draws
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import current_config, open_traces
from functrans.core.structs import ShapeDtypeStruct
from functrans.core.values import Array
from functrans.jitted.captured import in_order, prepare_to_compile
from functrans.jitted.explanations import Origin, origin
from functrans.jitted.guards import StagedPath, of_one_path, stage_path
from functrans.jitted.signatures import Signature, axes_around
from functrans.jitted.specialize import Path, facts_of
from functrans.passes.layouts import plain_value
from functrans.passes.programs import hoist
from functrans.passes.simplify import simplify
from functrans.passes.staging import stage
from functrans.records import dataclass, replace


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """A staged call.

    Attributes:
      jaxpr: ``(*captured, *leaves) -> leaves of the result``.
      captured: arrays and tracers that the function refers to.
      treedef: structure of the result.
      donated: positions of operands, ``(*captured, *leaves)``, that the caller gives away.
      origin: the kind of call that it was staged for.
      runs: how it has run.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    treedef: Any
    donated: tuple[int, ...]
    origin: Origin
    runs: Runs

    @property
    def native(self) -> Compiled | None:
        """Its machine code, if there is any so far."""
        return self.runs.codes.get(bool(self.donated))


def staged_program(
    signature: Signature, specialize: bool, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Program:
    """The program of a call, ready to run or to be compiled."""
    start = time.perf_counter()
    closed, treedef = closed_program(signature, specialize, args, kwargs)
    jaxpr, captured = hoist(closed)
    captured = tuple(map(in_order, captured))
    prepare_to_compile(jaxpr, captured)
    donated = tuple([len(captured) + i for i in signature.donated(args, kwargs)])
    source = _origin(signature, closed, args, kwargs, start)
    return Program(jaxpr, captured, treedef, donated, source, runs_of(jaxpr))


def closed_program(
    signature: Signature, specialize: bool, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Jaxpr, Any]:
    """The simplified program of a call, with captured arrays as constants, and its structure."""
    leaves, treedef, _ = signature.split(args, kwargs)
    structs = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, ShapeDtypeStruct)}
    for i in structs:
        leaves[i] = 0.0
    leaves = signature.canonical(leaves, args, kwargs)
    avals = [structs[i].aval if i in structs else aval_of(x) for i, x in enumerate(leaves)]
    if not structs and (specialize or current_config.get().specialize):
        values = list(map(plain_value, leaves))
        if all(value is not None for value in values):
            path, out_treedef = _path_program(signature, args, kwargs, values)
            return of_one_path(path), out_treedef
    flat, structure = _flat(signature, args, kwargs, treedef)
    draws = Draws(signature.fun)
    label, paths = signature.label, signature.paths(args, kwargs)
    jaxpr = stage(flat, avals, label, name=signature.name, arg_names=paths)
    draws.tell(label, "call")
    return simplify(inline_calls(jaxpr, jit_p)), structure[0]


def staged_path(
    signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], values: Sequence[Any]
) -> Path:
    """The path of a call that is specialised."""
    start = time.perf_counter()
    staged, treedef = _path_program(signature, args, kwargs, values)
    source = _origin(signature, staged.jaxpr, args, kwargs, start)
    return Path(staged, treedef, replace(source, facts={**source.facts, **facts_of(staged.guards)}))


def _path_program(
    signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], values: Sequence[Any]
) -> tuple[StagedPath, Any]:
    """The simplified program of the path of a call, with guards, and its structure."""
    leaves, treedef, _ = signature.split(args, kwargs)
    flat, structure = _flat(signature, args, kwargs, treedef)
    draws = Draws(signature.fun)
    avals = list(map(aval_of, signature.canonical(leaves, args, kwargs)))
    label, paths = signature.label, signature.paths(args, kwargs)
    staged = stage_path(flat, avals, values, label, name=signature.name, arg_names=paths)
    draws.tell(label, "call")
    return replace(staged, jaxpr=simplify(inline_calls(staged.jaxpr, jit_p))), structure[0]


def _flat(
    signature: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any], treedef: object
) -> tuple[Callable[..., list[Any]], list[Any]]:
    """The function of leaves, and where it leaves the structure of its result."""
    structure: list[Any] = []

    def flat(*tracers: Array) -> list[Any]:
        result = signature.call_with(args, kwargs, treedef, tracers)
        outs, out_treedef = tree.flatten_folded(result)
        structure.append(out_treedef)
        return [result_leaf(out, signature.label, result, i) for i, out in enumerate(outs)]

    return flat, structure


def _origin(
    signature: Signature,
    jaxpr: Jaxpr,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    start: float,
) -> Origin:
    """What the program of a call depends on."""
    names = signature.names(args)
    static = {names[i]: args[i] for i in sorted(signature.static_positions(len(args)))}
    static |= {k: kwargs[k] for k in sorted(kwargs) if k in signature.static_argnames}
    axes: Any = axes_around() if open_traces.get() else ()
    paths = signature.paths(args, kwargs)
    _, treedef, _ = signature.split(args, kwargs)
    settings = current_config.get()
    staging_s = time.perf_counter() - start
    return origin(paths, jaxpr.in_avals, static, settings, axes, staging_s, [*kwargs], treedef)
