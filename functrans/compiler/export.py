"""Programs that leave Python, as files.

Here: ``export_program``, from a program to a C header beside an object file, a shared library or
LLVM's text. Not here: the code (``compiler.standalone``), the header's text (``compiler.header``).

Everything is made in memory or in a directory of its own first; files with the right names appear
when nothing can fail any more but renaming.

Layer: ``compiler``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from functrans.compiler.compiled import optimisation_level
from functrans.compiler.header import (
    Leaf,
    c_name,
    c_names,
    declaration_of,
    header_text,
    is_c_name,
    status_names,
)
from functrans.compiler.inspect import host_calls
from functrans.compiler.prepare import prepare
from functrans.compiler.standalone import StandaloneText, write_standalone
from functrans.compiler.support import NativePart, partition
from functrans.core.jaxpr import Jaxpr
from functrans.errors import CompilationError, UnsupportedOperationError
from functrans.machine import engine
from functrans.machine.system import system
from functrans.records import dataclass

KINDS = ("object", "shared", "llvm", "c-free")
"""What can be written beside the header; ``"c-free"`` is another name of ``"llvm"``."""

_SHARED = {"windows": "{}.dll", "macos": "lib{}.dylib", "posix": "lib{}.so"}
_COMPILER_NAMES = frozenset(
    f"{name}{suffix}"
    for name in ("ceil", "floor", "fma", "fmod", "nearbyint", "rint", "round", "roundeven", "trunc")
    for suffix in ("", "f", "l")
) | {"memcmp", "memcpy", "memmove", "memset"}
"""Functions of C that LLVM may call for instructions that a processor does not have."""

_NOT_FREE = re.compile(r"functrans|ft_|Py|_Py|(m|c|re)alloc$|free$|madvise|pthread_")
"""What no exported code refers to: that would be a fault here."""


@dataclass(frozen=True, slots=True)
class Exported:
    """A program that was written to files; what ``jit(f).export(path, *args)`` returns.

    Attributes:
      name: of the function in C.
      declaration: of the function in C.
      header: the header file.
      code: the object file, shared library or text of LLVM.
      workspace_bytes: size of the workspace that each call is given.
      statuses: what the function may return, by number: names in the header.
      external: functions that the code refers to: of BLAS and LAPACK, and of the C library.
    """

    name: str
    declaration: str
    header: Path
    code: Path
    workspace_bytes: int
    statuses: Mapping[int, str]
    external: tuple[str, ...]

    def __repr__(self) -> str:
        """``<exported int32_t f(const double *x, double *out, void *workspace)>``."""
        return f"<exported {self.declaration}>"


def export_program(
    jaxpr: Jaxpr,
    captured: Sequence[Any],
    results: Sequence[str],
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    kind: str = "object",
    target: str | None = None,
    tape_bytes: int = 0,
) -> Exported:
    """Write a simplified program to files that other programs are built from.

    Args:
      jaxpr: the program.
      captured: what its first arguments always are.
      results: key paths of its results.
      path: directory of the files; it is made if it is not there.
      name: of the function; made from the program's if not given.
      kind: one of ``KINDS``.
      target: what ``engine.foreign_target`` takes.
      tape_bytes: most memory for what loops of unknown length keep for their derivatives.

    Raises:
      UnsupportedOperationError: an equation has no native form, or needs Python or its libraries.
      ValueError: there is no such kind, target or name in C, or ``tape_bytes`` is no size.
      CompilationError: llvmlite is missing, or a shared library cannot be linked.
      NotADirectoryError: there is a file in the place of the directory.
    """
    folder = Path(path)
    if kind not in KINDS:
        raise ValueError(f"export: kind {kind!r} is none of {', '.join(map(repr, KINDS))}")
    if name is not None and not is_c_name(name):
        raise ValueError(f"export: name {name!r} is no name of a function in C")
    if isinstance(tape_bytes, bool) or not isinstance(tape_bytes, int) or tape_bytes < 0:
        raise ValueError(f"export: tape_bytes must be an integer from 0 on, got {tape_bytes!r}")
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"export: {folder} is a file, and no directory to write into")
    try:
        goal = engine.foreign_target(target)
    except ValueError as error:
        raise ValueError(f"export: {error}") from None
    linker = _linker(goal) if kind == "shared" else ""
    name = name or c_name(jaxpr.name, "program")
    prepared = _native(jaxpr)
    text = write_standalone(prepared, captured, name, engine.machine(goal), tape_bytes)
    _check_unique(name, text)
    arguments, made = _leaves(jaxpr, len(captured), results, name)
    level = optimisation_level(text.text)
    code = engine.compile_object(text.text, level, goal)
    external = _external(code, text)
    if any(map(_NOT_FREE.match, external)):
        raise CompilationError(f"export: the code of {name} refers to {', '.join(external)}")
    about = _about(
        jaxpr.name or name, goal, [symbol for symbol in external if symbol not in text.routines]
    )
    header = header_text(name, text, arguments, made, about)
    if kind == "object":
        file, data = f"{name}.o", code
    elif kind == "shared":
        file = _SHARED[system()].format(name)
        data = _linked(linker, code)
    else:
        file, data = f"{name}.ll", f'target triple = "{goal.triple}"\n{text.text}'.encode()
    _write(folder, {file: data, f"{name}.h": header.encode()})
    return Exported(
        name,
        declaration_of(name, arguments, made),
        folder / f"{name}.h",
        folder / file,
        text.workspace_bytes,
        status_names(name, text),
        external,
    )


def _native(jaxpr: Jaxpr) -> Jaxpr:
    """The prepared program, if it has a native form as a whole."""
    prepared = prepare(jaxpr)
    parts = partition(prepared)
    if len(parts) != 1 or not isinstance(parts[0], NativePart):
        raise UnsupportedOperationError(
            f"export: {jaxpr.name or 'the program'} cannot leave Python, since parts of it have no "
            f"native form: {'; '.join(host_calls(parts))}"
        )
    return prepared


def _check_unique(name: str, text: StandaloneText) -> None:
    """Refuse a name that the code uses for something else."""
    used = re.findall(r"^(?:define|declare)[^@\n]*@([\w.]+)\(", text.text, re.MULTILINE)
    if used.count(name) > 1 or name in _COMPILER_NAMES:
        raise ValueError(
            f"export: the code calls another function {name!r}; give it another name with name="
        )


def _leaves(
    jaxpr: Jaxpr, n_captured: int, results: Sequence[str], name: str
) -> tuple[list[Leaf], list[Leaf]]:
    """Arguments and results of the function."""
    given = jaxpr.in_avals[n_captured:]
    paths = list(jaxpr.arg_names[n_captured:]) or [f"args[{i}]" for i in range(len(given))]
    taken = (name, f"{name}_error_text", "workspace", "status")
    names = c_names(paths, "arg", taken)
    made = c_names(results, "out", (*taken, *names))
    rows: Any = zip(names, paths, given, strict=True)
    outs: Any = zip(made, results, jaxpr.out_avals, strict=True)
    return [Leaf(*row) for row in rows], [Leaf(*row) for row in outs]


def _external(code: bytes, text: StandaloneText) -> tuple[str, ...]:
    """Functions that object code refers to; where it is not ELF, those of the text."""
    try:
        return tuple(sorted(engine.object_symbols(code)[1]))
    except CompilationError:
        return text.routines


def _about(what: str, goal: engine.Target, functions: Sequence[str]) -> list[str]:
    """What the header says first."""
    own = sys.modules[__name__.partition(".")[0]].__version__
    lines = [f"{what}, made by functrans {own} for {goal.triple} ({goal.cpu})."]
    if functions:
        lines.append(f"It calls these functions of the C library (-lm): {', '.join(functions)}.")
    return lines


# files -------------------------------------------------------------------------------------------


def _linker(goal: engine.Target) -> str:
    """The C compiler that links shared libraries of a target."""
    own = engine.foreign_target()
    if goal.triple != own.triple:
        raise UnsupportedOperationError(
            f"export: kind='shared' is linked by the C compiler of this machine, {own.triple}, and "
            f"not for {goal.triple}; export kind='object' and link it there"
        )
    command = os.environ.get("CC") or "cc"
    found = shutil.which(command)
    if found is None:
        raise CompilationError(
            f"export: kind='shared' is linked by a C compiler, and there is no {command!r}; "
            "install one, name it in the environment variable CC, or export kind='object'"
        )
    return found


def _linked(linker: str, code: bytes) -> bytes:
    """A shared library of object code; what BLAS gives is looked for when it is loaded."""
    with tempfile.TemporaryDirectory() as place:
        source, library = Path(place, "code.o"), Path(place, "library")
        source.write_bytes(code)
        flags = ["-undefined", "dynamic_lookup"] if system() == "macos" else []
        command = [linker, "-shared", *flags, "-o", str(library), str(source), "-lm"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise CompilationError(f"export: {' '.join(command)} failed: {run.stderr.strip()}")
        return library.read_bytes()


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files under other names, then rename them all; nothing is left of a failure."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[Path, Path]] = []
    try:
        for file, data in files.items():
            temporary = folder / f".{file}.{os.getpid()}.tmp"
            written.append((temporary, folder / file))
            temporary.write_bytes(data)
        for temporary, final in written:
            temporary.replace(final)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
