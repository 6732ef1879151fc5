"""A jitted function for one kind of arguments: its program, its plan, its code, and itself.

Here: ``Lowered``, what ``jit(f).lower(*args)`` returns, and ``Executable``, what its ``compile()``
returns. Not here: staging and running (``jitted.jit``), the texts (``compiler.inspect``).

Layer: ``jitted``.
"""

from __future__ import annotations

import os
from collections.abc import Hashable
from functools import cached_property
from pathlib import Path
from typing import Any

from functrans import pytrees as tree
from functrans.compiler.compiled import Compiled, predicted_compile_s
from functrans.compiler.inspect import Plan, assembly_text, llvm_text, plan
from functrans.control.native import as_compiled, call_program, compile_now
from functrans.core.avals import Aval
from functrans.core.deferred import deferred
from functrans.core.dispatch import aval_of
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import current_config
from functrans.jitted.guards import check_all_paths
from functrans.jitted.signatures import Signature
from functrans.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class CallKind:
    """A kind of call, apart from shapes and dtypes.

    Attributes:
      in_treedef: structure of the traced arguments.
      static: key of the static arguments.
      treedef: structure of the result.
      donated: positions of the leaves whose memory the caller gives away.
    """

    in_treedef: Any
    static: Hashable
    treedef: Any
    donated: tuple[int, ...]


class _Staged:
    """A program with its texts.

    Attributes:
      jaxpr: the program; captured arrays are its constants.
    """

    def __init__(
        self,
        signature: Signature,
        jaxpr: Jaxpr,
        kind: CallKind,
        hoisted: Jaxpr,
        captured: tuple[Any, ...],
    ) -> None:
        self.jaxpr = jaxpr
        self._signature = signature
        self._kind = kind
        self._hoisted = hoisted
        """The program with captured arrays as arguments."""
        self._captured = captured

    def __repr__(self) -> str:
        """``Lowered(loss: f64[3] -> f64[])``."""
        given = ", ".join(map(str, self.jaxpr.in_avals))
        results = ", ".join(map(str, self.jaxpr.out_avals))
        return f"{type(self).__name__}({self.jaxpr.name}: {given} -> {results})"

    @property
    def in_avals(self) -> tuple[Aval, ...]:
        """Shapes and dtypes of the leaves of the arguments."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> tuple[Aval, ...]:
        """Shapes and dtypes of the leaves of the result."""
        return self.jaxpr.out_avals

    @cached_property
    def plan(self) -> Plan:
        """What is computed in which order, in loops, routines, control flow and NumPy calls."""
        return plan(as_compiled(self._hoisted))

    @cached_property
    def llvm(self) -> str:
        """LLVM assembly as the compiler writes it."""
        return llvm_text(as_compiled(self._hoisted))

    @cached_property
    def asm(self) -> str:
        """Assembly of this machine."""
        return assembly_text(as_compiled(self._hoisted))

    def _repr_html_(self) -> str | None:
        """What a notebook shows: the page of ``report`` in a frame, unless it takes too long."""
        jaxpr = as_compiled(self._hoisted)
        if predicted_compile_s(jaxpr) > current_config.get().compile_budget_s:
            return None
        text: str = deferred.framed_explorer(jaxpr, self._signature.name)
        return text

    def report(self, path: str | os.PathLike[str]) -> Path:
        """Write a page that shows lines, equations, steps and code; see ``jit(f).report``.

        Args:
          path: of the file, in a folder that exists.

        Returns:
          The path.

        Raises:
          FileNotFoundError: its folder does not exist.
          IsADirectoryError: it is a folder.
        """
        file: Path = deferred.checked_report_path(path)
        written: Path = deferred.write_report(
            as_compiled(self._hoisted), self._signature.name, file
        )
        return written


class Lowered(_Staged):
    """A jitted function staged for one kind of arguments.

    Attributes:
      jaxpr: its program; captured arrays are its constants.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> lowered = ft.jit(lambda x: 2.0 * x + 1.0).lower(np.ones(3))
      >>> lowered
      Lowered(<lambda>: f64[3] -> f64[3])
      >>> lowered.plan
      plan of <lambda>: f64[3] -> f64[3]
      1. straight-line code: stores b:f64[3]; a in registers
          a:f64[3] = multiply 2.0 x
          b:f64[3] = add a 1.0
      temporary memory: 0 bytes; ... lines of LLVM
    """

    def as_text(self) -> str:
        """The program as text."""
        return str(self.jaxpr)

    def cost(self) -> Any:
        """Flops, bytes and peak memory of the program, before fusion; see ``Jaxpr.cost``."""
        return self.jaxpr.cost()

    def compile(self) -> Executable:
        """Make machine code, whatever it costs.

        Returns:
          The function for arguments of this kind only.

        Raises:
          UnsupportedOperationError: the function is specialised, and takes several paths.
        """
        check_all_paths(self.jaxpr, "compile")
        donated = tuple([len(self._captured) + i for i in self._kind.donated])
        return Executable(self, donated, compile_now(self._hoisted, donated))


class LoweredStep(_Staged):
    """A jitted function that works on tensors, staged for one call, which is not made.

    Attributes:
      jaxpr: its program: first come arrays and tensors that the function reaches, then its
        arguments; tensors that are written to are the first results.
      creates: what state the call would create, so that the next one has another program; empty
        for most.

    Example:
      >>> import functrans as ft
      >>> w = ft.tensor([1.0, 2.0], requires_grad=True)
      >>> ft.jit(lambda x: (w * x).sum()).lower(ft.tensor([3.0, 4.0])).jaxpr
      { lambda ; a:f64[2] b:f64[2]. let
          c:f64[2] = multiply a b
          d:f64[] = reduce_sum[axes=(0,)] c
        in (d,) }
    """

    def __init__(
        self, signature: Signature, hoisted: Jaxpr, captured: tuple[Any, ...], creates: str
    ) -> None:
        super().__init__(signature, hoisted, CallKind(None, None, None, ()), hoisted, captured)
        self.creates = creates

    def as_text(self) -> str:
        """The program as text."""
        return str(self.jaxpr)


class Executable(_Staged):
    """A jitted function compiled for one kind of arguments.

    Called like the function, with arguments of this kind; raises ``TypeError`` for others. It
    pickles where the function does, and is compiled, or found in the cache, where it is loaded.

    Attributes:
      jaxpr: its program; captured arrays are its constants.

    Example:
      >>> import functrans as ft
      >>> import numpy as np
      >>> double = ft.jit(lambda x: 2.0 * x).lower(np.ones(3)).compile()
      >>> double(np.arange(3.0))
      array([0., 2., 4.])
    """

    def __init__(self, lowered: Lowered, donated: tuple[int, ...], native: Compiled | None) -> None:
        super().__init__(
            lowered._signature, lowered.jaxpr, lowered._kind, lowered._hoisted, lowered._captured
        )
        self._lowered = lowered
        self._donated = donated
        self._native = native

    def __reduce__(self) -> Any:
        """Pickled as a program: machine code is of a machine, whose cache may have it."""
        return Lowered.compile, (self._lowered,)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Call the function."""
        signature, kind = self._signature, self._kind
        leaves, treedef, static = signature.split(args, kwargs)
        if treedef != kind.in_treedef:  # perhaps arrays of dtype float0
            args, kwargs = tree.fold_float0((args, kwargs))
            leaves, treedef, static = signature.split(args, kwargs)
        if treedef != kind.in_treedef:
            raise TypeError(
                f"{signature.label}: compiled for arguments of structure "
                f"{tree.describe(kind.in_treedef)}, got {tree.describe(treedef)}"
            )
        if static != kind.static:
            raise TypeError(
                f"{signature.label}: compiled for other values of its static arguments, or "
                "another order of its dicts; call the jitted function itself, or lower it again"
            )
        values = signature.canonical(leaves, args, kwargs)
        for i, (value, aval) in enumerate(zip(values, self.in_avals, strict=True)):
            if aval_of(value) != aval:
                path = signature.paths(args, kwargs)[i]
                raise TypeError(
                    f"{signature.label}: {path} is {aval_of(value)}, but the function was compiled "
                    f"for {aval}; call the jitted function itself, or lower it again"
                )
        operands = (*self._captured, *values)
        outs = call_program(self._hoisted, operands, signature.name, self._donated, self._native)
        return tree.unflatten(kind.treedef, outs)

    @property
    def was_cached(self) -> bool:
        """Whether the machine code came from disk."""
        return self._native is not None and self._native.was_cached

    @property
    def is_native(self) -> bool:
        """Whether there is machine code; without llvmlite the program is interpreted."""
        return self._native is not None

    def as_text(self) -> str:
        """LLVM assembly, as ``llvm``."""
        return self.llvm
