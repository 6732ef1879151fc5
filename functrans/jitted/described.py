"""What a jitted function tells about itself: its program, plan and code, costs and history.

Here: ``Described``, a base of ``JitFunction``. Not here: calls (``jitted.jit``), the texts
(``jitted.lowered``, ``jitted.explanations``).

Layer: ``jitted``.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from functrans import pytrees as tree
from functrans.compiler.inspect import Plan
from functrans.compiler.interop import CFunction
from functrans.control.native import as_compiled
from functrans.control.ranges import with_indices_in_range
from functrans.core.deferred import deferred
from functrans.core.dispatch import Tracer
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import current_config
from functrans.errors import UnsupportedOperationError
from functrans.jitted.captured import for_compiler
from functrans.jitted.explanations import Explanation, explain
from functrans.jitted.guards import check_all_paths
from functrans.jitted.lowered import CallKind, Lowered, LoweredStep
from functrans.jitted.saved import save_function
from functrans.jitted.signatures import Signature

if TYPE_CHECKING:
    from functrans.compiler.export import Exported


class Described(ABC):
    """Programs of a jitted function, to look at.

    Attributes:
      signature: its arguments.
    """

    signature: Signature

    @abstractmethod
    def staged(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Jaxpr, Any] | LoweredStep:
        """The program of a call and the structure of its result; that of a step on tensors."""

    @abstractmethod
    def kept(self) -> list[Any]:
        """The programs in the cache."""

    def jaxpr(self, *args: object, **kwargs: object) -> Jaxpr:
        """The simplified program for arguments like these; captured arrays are its constants.

        That of a function on tensors has the tensors that it reaches as first arguments.
        """
        staged = self.staged(args, kwargs)
        return staged.jaxpr if isinstance(staged, LoweredStep) else staged[0]

    def cost(self, *args: Any, **kwargs: Any) -> Any:
        """Flops, bytes and peak memory of the program for arguments like these.

        Args:
          *args: arrays or ``ShapeDtypeStruct``, and static arguments as they are.
          **kwargs: likewise.

        Returns:
          A ``Cost``; see ``Jaxpr.cost``.

        Example:
          >>> import functrans as ft
          >>> import numpy as np
          >>> ft.jit(lambda x: x @ x).cost(np.ones((10, 10))).flops
          2000.0
        """
        return self.lower(*args, **kwargs).jaxpr.cost()

    def lower(self, *args: object, **kwargs: float) -> Lowered | LoweredStep:
        """Stage the function for arguments like these, without running it.

        Args:
          *args: arguments of the function; a ``ShapeDtypeStruct`` stands for an array.
          **kwargs: likewise.

        Returns:
          An object with the attributes ``jaxpr``, ``plan``, ``llvm`` and ``asm``, and the method
          ``compile()``; this only for functions without tensors. A notebook shows the page of
          ``report``.
        """
        staged = self.staged(args, kwargs)
        if isinstance(staged, LoweredStep):
            return staged
        jaxpr, treedef = staged
        args, kwargs = tree.fold_float0((args, kwargs))
        _, in_treedef, static = self.signature.split(args, kwargs)
        kind = CallKind(in_treedef, static, treedef, self.signature.donated(args, kwargs))
        return Lowered(self.signature, jaxpr, kind, *for_compiler(jaxpr))

    def plan(self, *args: Any, **kwargs: Any) -> Plan:
        """What is computed in which order for arguments like these.

        Numbered items: loop nests, routines, control flow, and equations that NumPy evaluates, with
        the reason.
        """
        return self.lower(*args, **kwargs).plan

    def llvm(self, *args: Any, **kwargs: Any) -> str:
        """LLVM assembly for arguments like these, as the compiler writes it."""
        return self.lower(*args, **kwargs).llvm

    def asm(self, *args: Any, **kwargs: Any) -> str:
        """Assembly of this machine for arguments like these.

        Raises:
          CompilationError: llvmlite is missing.
        """
        return self.lower(*args, **kwargs).asm

    def report(self, *args: Any, path: str | os.PathLike[str], **kwargs: Any) -> Path:
        """Write a page that shows lines, equations, steps and code for arguments like these.

        One file of HTML, which needs no other one and no network. What belongs to the line,
        equation, step or instruction that one points at, or reaches by the keyboard, lights up.

        Args:
          *args: arguments of the function; a ``ShapeDtypeStruct`` stands for an array.
          path: of the file, in a folder that exists.
          **kwargs: more arguments of the function; one called ``path`` can be passed by position
            only.

        Returns:
          The path.

        Raises:
          FileNotFoundError: its folder does not exist.
          IsADirectoryError: it is a folder.

        Example:
          >>> import tempfile
          >>> import functrans as ft
          >>> import numpy as np
          >>> slope = ft.jit(ft.grad(lambda x: np.sum(np.sin(x) ** 2)))
          >>> with tempfile.TemporaryDirectory() as folder:
          ...     slope.report(np.ones(100), path=f"{folder}/slope.html").name
          'slope.html'
        """
        file: Path = deferred.checked_report_path(path)
        return self.lower(*args, **kwargs).report(file)

    def explain(self) -> Explanation:
        """Why the function was staged and compiled, once for each program that it keeps.

        Example:
          >>> import functrans as ft
          >>> import numpy as np
          >>> f = ft.jit(lambda x: x + 1.0)
          >>> y, z = f(np.ones(3)), f(np.ones(4))
          >>> f.explain()
          jit of <lambda>: 2 programs
          1. x: f64[3]
            the first program
            staged in ... ms; ...
          2. x: f64[4]
            unlike program 1: x: f64[3] -> f64[4] (another shape)
            staged in ... ms; ...
          >>> f.explain()[1].changes
          ('x: f64[3] -> f64[4]',)
        """
        # Uses change the order of the cache; programs are told in the order in which they came.
        found: list[Any] = self.kept()
        programs = sorted(found, key=lambda program: program.origin.number)
        told = [(p.origin, p.jaxpr, getattr(p, "taken", None)) for p in programs]
        return explain(self.signature.label, told, current_config.get())

    def as_cfunc(self, *args: object, **kwargs: object) -> CFunction:
        """The function as a C function for arguments like these; see :class:`CFunction`.

        Args:
          *args: arguments like those that it will be called with; static ones keep these values.
          **kwargs: likewise.

        Raises:
          CompilationError: llvmlite is missing.
          UnsupportedOperationError: a part of the function has no native form, or it is specialised
            and takes several paths.

        Example:
          >>> from scipy.integrate import quad
          >>> import functrans as ft
          >>> slope = ft.jit(ft.grad(lambda x: x**3)).as_cfunc(1.0)
          >>> slope.signature
          'double ft_grad_lambda(double)'
          >>> round(quad(slope.low_level_callable(), 0.0, 2.0)[0], 12)
          8.0
        """
        jaxpr, captured, _ = self._for_c("as_cfunc", args, kwargs)
        return CFunction(jaxpr, captured, self.signature.name)

    def export(
        self,
        path: str | os.PathLike[str],
        *args: object,
        name: str | None = None,
        kind: str = "object",
        target: str | None = None,
        tape_bytes: int = 0,
        tables: Mapping[str, Any] | None = None,
        also: Sequence[str] = (),
        **kwargs: object,
    ) -> Exported:
        """Write the function as code that needs no Python, for arguments like these.

        Args:
          path: directory of the files: ``<name>.h``, ``<name>.md``, a text with an example, and
            ``<name>.o`` or what ``kind`` says.
          *args: arguments like those that it will be called with, or ``ShapeDtypeStruct``; static
            ones keep these values, and arrays that the function refers to what they hold now.
          name: of the function in C; that of the Python function if not given.
          kind: ``"object"``, a relocatable object file; ``"shared"``, a shared library, linked by
            ``cc``; ``"llvm"`` or ``"c-free"``, LLVM's text.
          target: a processor of this architecture (``"x86-64-v3"``), or a triple
            (``"aarch64-linux-gnu"``, ``"riscv64-linux-gnu"``, ``"armv7-linux-gnueabihf"``); the
            processor of this machine if not given.
          tape_bytes: how much memory loops of unknown length may take for what their derivatives
            need; functions with such loops are refused if it is 0.
          tables: arrays that the header declares and the code holds, by name: ``start`` is
            ``<name>_start`` in C.
          also: more files: ``"cmake"``, for CMake to include, and ``"fortran"``, a module of
            Fortran that declares the function.
          **kwargs: more arguments of the function; those called as the options here can be passed
            by position only.

        Raises:
          CompilationError: llvmlite is missing, or there is no C compiler for a shared library.
          UnsupportedOperationError: a part of the function has no native form or needs Python, or
            it is specialised and takes several paths.
          ValueError: an option makes no sense; the message says what there is.

        Example:
          >>> import tempfile
          >>> import functrans as ft
          >>> import numpy as np
          >>> slope = ft.jit(ft.grad(lambda x: np.sum(x**3)))
          >>> with tempfile.TemporaryDirectory() as folder:
          ...     slope.export(folder, np.ones(4), name="slope")
          <exported int32_t slope(const double *x, double *out, void *workspace)>
        """
        jaxpr, captured, treedef = self._for_c("export", args, kwargs)
        if any(isinstance(value, Tracer) for value in captured):
            raise UnsupportedOperationError(
                f"export of {self.signature.name}: it refers to values of a transform around it, "
                "which are not known yet; export it outside, or pass them as arguments"
            )
        jaxpr = with_indices_in_range(jaxpr, dict(zip(jaxpr.invars, captured, strict=False)))
        exported: Exported = deferred.export_program(
            jaxpr, captured, treedef, path, name=name, kind=kind, target=target,
            tape_bytes=tape_bytes, tables=tables or {}, also=also,
        )  # fmt: skip
        return exported

    def save(self, file: Any, *args: object, **kwargs: object) -> None:
        """Write the function to a file, for arguments like these; ``ft.load`` reads it.

        The file holds the program and the arrays that it refers to, as data: it is read without
        this function's source, and nothing in it can be run but operations of functrans.

        Args:
          file: its name, or a file that is open for writing bytes.
          *args: arguments like those that it will be called with, or ``ShapeDtypeStruct``; static
            ones keep these values, and arrays that the function refers to what they hold now.
          **kwargs: more arguments of the function; one called ``file`` can be passed by position
            only.

        Raises:
          UnsupportedOperationError: it calls Python, arguments or results have containers of the
            user's classes, or it is specialised and takes several paths.

        Example:
          >>> import io
          >>> import functrans as ft
          >>> import numpy as np
          >>> file = io.BytesIO()
          >>> ft.jit(ft.grad(lambda x: np.sum(x**3))).save(file, np.ones(2))
          >>> ft.load(io.BytesIO(file.getvalue()))(np.array([1.0, 2.0]))
          array([ 3., 12.])
        """
        jaxpr, treedef = self._staged_for("save", args, kwargs)
        args, kwargs = tree.fold_float0((args, kwargs))
        static = self.signature.static_positions(len(args))
        names = [n for i, n in enumerate(self.signature.names(args)) if i not in static]
        _, in_treedef, _ = self.signature.split(args, kwargs)
        save_function(jaxpr, names, in_treedef, treedef, file)

    def _staged_for(
        self, who: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Jaxpr, Any]:
        """The program of a call, with all paths, and its result's structure."""
        staged = self.staged(args, kwargs)
        if isinstance(staged, LoweredStep):
            raise UnsupportedOperationError(
                f"{who}: {self.signature.label} works on tensors, which exist in Python only; "
                "write it as a function of arrays"
            )
        check_all_paths(staged[0], who)
        return staged

    def _for_c(
        self, who: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Jaxpr, tuple[Any, ...], Any]:
        """The program of a call as it is compiled, what it captures, and its result's structure."""
        staged, treedef = self._staged_for(who, args, kwargs)
        jaxpr, captured = for_compiler(staged)
        return as_compiled(jaxpr), captured, treedef
