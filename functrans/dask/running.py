"""Programs on workers: what travels, what runs there, and the tree of sums.

Here: ``total`` (a program over all parts of data, added up) and the functions that workers call.
Not here: what the programs are (``sums``), where parts come from (``chunks``).

A program is a task of Dask whose result is its text: each worker fetches it once, and compiles it
when it first runs it. The operands of a call are one more such task. Results are added in a tree
that depends on the number of parts alone, so that bits depend neither on the number of workers nor
on the order in which they end.

Layer: ``dask``.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Hashable, Sequence
from hashlib import sha256
from typing import Any
from uuid import uuid4

import numpy as np

from functrans import pytrees as tree
from functrans.control.custom_calls import without_rules
from functrans.control.native import run_silently
from functrans.core.analyses import analysis
from functrans.core.caching import Recent
from functrans.core.jaxpr import Jaxpr
from functrans.dask.chunks import Chunks
from functrans.dask.scheduling import client as current_client
from functrans.dask.scheduling import schedule
from functrans.errors import FunctransError, ShapeError, UnsupportedOperationError
from functrans.ir.serialize import load, save
from functrans.records import dataclass

FAN_IN = 8
"""Results that one task adds up."""
LARGE_BYTES = 1 << 20
"""Operands of more go to the workers directly, and not through the scheduler."""
ATTEMPTS = 3


# on the driver ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Package:
    """What travels as it is: Dask does not look for tasks in it."""

    content: Any


@analysis
def text_of(jaxpr: Jaxpr) -> tuple[str, Package]:
    """The key of a program and the program as it travels."""
    stream = io.BytesIO()
    program, _ = without_rules(jaxpr)  # what travels is evaluated only
    try:
        save(program, stream)
    except UnsupportedOperationError as error:
        raise UnsupportedOperationError(
            f"the program of {jaxpr.name} cannot travel to workers: {error}"
        ) from error
    text = stream.getvalue()
    digest = sha256(text).hexdigest()
    return f"program-{digest[:32]}", Package((_version(), digest, text))


def _version() -> str:
    own: str = sys.modules[__name__.partition(".")[0]].__version__
    return own


def result_of_parts(
    label: str, programs: Sequence[Jaxpr], chunks: Chunks, operands: Sequence[Any]
) -> tuple[dict[Hashable, Any], list[Hashable]]:
    """Tasks that run programs ``(*part, *operands) -> results``, and their keys part by part.

    Args:
      label: what keys begin with, which progress shows up to its last ``-``.
      programs: one for each kind of part.
      chunks: the parts.
      operands: the same for all parts.
    """
    from dask._task_spec import DataNode, List, Task, TaskRef

    tasks = dict(chunks.graph)
    known = []
    for program in programs:
        key, package = text_of(program)
        tasks[key] = DataNode(key, package)
        known.append(TaskRef(key))
    given = f"operands-{label}"
    package = Package(list(operands))
    client = current_client() if sum(np.asarray(v).nbytes for v in operands) > LARGE_BYTES else None
    tasks[given] = (
        DataNode(given, package)
        if client is None
        else client.scatter(package, broadcast=True, hash=False)
    )
    keys: list[Hashable] = []
    for i, (kind, part) in enumerate(zip(chunks.kinds, chunks.keys, strict=True)):
        own = (label, i)
        arguments = List(*map(TaskRef, part))
        name = chunks.name(i)
        tasks[own] = Task(own, run_part, known[kind], TaskRef(given), name, arguments)
        keys.append(own)
    return tasks, keys


def total(programs: Sequence[Jaxpr], chunks: Chunks, operands: Sequence[Any]) -> list[Any]:
    """The results of programs over all parts, added up; see ``result_of_parts``."""
    for attempt in range(ATTEMPTS):
        try:
            return _attempt(programs, chunks, operands)
        except Exception as error:  # operands lay with workers that are gone: they are sent again
            if type(error).__name__ != "FutureCancelledError" or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError


def _attempt(programs: Sequence[Jaxpr], chunks: Chunks, operands: Sequence[Any]) -> list[Any]:
    from dask._task_spec import List, Task, TaskRef
    from dask.highlevelgraph import HighLevelGraph  # has a name: a dictionary would be hashed

    label = f"{programs[0].name or 'sum'}-{uuid4().hex}"
    tasks, level = result_of_parts(label, programs, chunks, operands)
    depth = 0
    while len(level) > 1:
        depth += 1
        above: list[Hashable] = []
        for i in range(0, len(level), FAN_IN):
            own = (f"sum-{label}", depth, i // FAN_IN)
            tasks[own] = Task(own, add, List(*map(TaskRef, level[i : i + FAN_IN])))
            above.append(own)
        level = above
    results: list[Any] = schedule(HighLevelGraph.from_collections(label, tasks, []), level[0])
    return results


# on workers -------------------------------------------------------------------------------------

_programs: Recent[str, Jaxpr] = Recent(256)
_lock = threading.Lock()


def _received(package: Package) -> Jaxpr:
    """The program that a worker was sent, the same object each time."""
    version, digest, text = package.content
    if version != _version():
        raise FunctransError(
            f"this worker has functrans {_version()}, but the program comes from {version}; "
            "install the same version on all workers"
        )
    known = _programs.used(digest)
    if known is None:
        with _lock:
            known = _programs.used(digest) or _programs.kept(digest, load(io.BytesIO(text)))
    return known


def run_part(program: Package, operands: Package, name: str, part: Sequence[Any]) -> list[Any]:
    """The results of a program for one part of the data."""
    jaxpr = _received(program)
    leaves = [_array(leaf, name) for value in part for leaf in tree.leaves(value)]
    expected = jaxpr.in_avals[: len(leaves)]
    for leaf, aval in zip(leaves, expected, strict=False):
        if leaf.shape != aval.shape or leaf.dtype != aval.dtype:
            raise ShapeError(
                f"{name} of the data is {leaf.dtype}{list(leaf.shape)}, but its collection says "
                f"{aval}; the function that makes it and its meta= must agree"
            )
    try:
        return list(run_silently(jaxpr, [*leaves, *operands.content]))
    except Exception as error:
        error.add_note(f"in {name} of the data")
        raise


def _array(leaf: Any, name: str) -> np.ndarray:
    """An array of a part; what is more than its numbers is refused."""
    array = np.asarray(leaf)
    if isinstance(leaf, np.ma.MaskedArray) or not (
        array.dtype.kind in "biufc" or array.dtype.name == "bfloat16"
    ):
        raise UnsupportedOperationError(
            f"{name} of the data is a {type(leaf).__name__} of dtype {array.dtype}; expected an "
            "array of numbers: .filled() of what is masked, .todense() of what is sparse"
        )
    return array


def add(parts: Sequence[Sequence[Any]]) -> list[Any]:
    """Sums of results, in order."""
    sums = list(parts[0])
    for other in parts[1:]:
        sums = [a + b for a, b in zip(sums, other, strict=True)]
    return sums
