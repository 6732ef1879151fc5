"""Programs on workers: what travels, and what runs there.

Not here: what the programs are (``sums``, ``rows``), where parts come from (``chunks``), sums of
results (``totals``).

A program is a task of Dask whose result is its text. A client keeps it, so that each worker fetches
it once, and compiles it when it first runs it.

Layer: ``dask``.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Hashable, Sequence
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from functrans import pytrees as tree
from functrans.control.custom_calls import without_rules
from functrans.control.native import run_silently
from functrans.core.analyses import analysis
from functrans.core.caching import Recent, listed
from functrans.core.jaxpr import Jaxpr
from functrans.errors import FunctransError, ShapeError, UnsupportedOperationError
from functrans.ir.serialize import load, save
from functrans.records import dataclass

KEPT_PROGRAMS = 64
"""Programs that a client keeps on its workers."""


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


_sent: WeakKeyDictionary[Any, Recent[str, Any]] = listed("programs on workers", WeakKeyDictionary())
"""Per client, futures of programs."""


def on_workers(program: Jaxpr, client: Any) -> tuple[Hashable, Any]:
    """A key and what stands for it in a graph: a program, which a client keeps."""
    from dask._task_spec import DataNode

    key, package = text_of(program)
    if client is None:
        return key, DataNode(key, package)
    with _lock:
        for other in list(_sent):
            if other.status == "closed":  # futures refer to their client
                del _sent[other]
        known = _sent.setdefault(client, Recent(KEPT_PROGRAMS))
        future = known.used(key)
        if future is None or future.status in ("cancelled", "lost", "error"):
            known[key] = future = client.submit(_same, package, key=key, pure=False)
    return key, future


def _same(package: Package) -> Package:
    return package


# on workers -------------------------------------------------------------------------------------

_programs: Recent[str, Jaxpr] = Recent(256)
_lock = threading.Lock()


def received(package: Package) -> Jaxpr:
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
    """The results of a program for one part."""
    try:
        return results_of_part(received(program), operands.content, name, part)
    except Exception as error:
        error.add_note(f"in {name}")
        raise


def results_of_part(
    jaxpr: Jaxpr, operands: Sequence[Any], name: str, part: Sequence[Any]
) -> list[Any]:
    """The results of a program for one part, which is checked first."""
    leaves = checked_leaves(part, jaxpr.in_avals, name)
    return list(run_silently(jaxpr, [*leaves, *operands]))


def checked_leaves(part: Sequence[Any], expected: Sequence[Any], name: str) -> list[Any]:
    """The arrays of a part, of which its collection must have told the truth."""
    leaves = [_array(leaf, name) for value in part for leaf in tree.leaves(value)]
    for leaf, aval in zip(leaves, expected, strict=False):
        if leaf.shape != aval.shape or leaf.dtype != aval.dtype:
            raise ShapeError(
                f"{name} is {leaf.dtype}{list(leaf.shape)}, but its collection says {aval}; the "
                "function that makes it and its meta= must agree"
            )
    return leaves


def _array(leaf: Any, name: str) -> np.ndarray:
    """An array of a part; what is more than its numbers is refused."""
    array = np.asarray(leaf)
    if isinstance(leaf, np.ma.MaskedArray) or not (
        array.dtype.kind in "biufc" or array.dtype.name == "bfloat16"
    ):
        raise UnsupportedOperationError(
            f"{name} is a {type(leaf).__name__} of dtype {array.dtype}; expected an "
            "array of numbers: .filled() of what is masked, .todense() of what is sparse"
        )
    return array
