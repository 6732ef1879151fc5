"""Programs that leave Python, as files.

Here: ``export_program``, from a program to a C header beside an object file, a shared library or
LLVM's text, and ``Exported``, which says what was written. Not here: the code
(``compiler.standalone``), what C sees of it (``compiler.interface``), the texts of headers
(``compiler.header``, ``compiler.bindings``).

Everything is made in memory or in a directory of its own first; files with the right names appear
when nothing can fail any more but renaming.

Layer: ``compiler``.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from functrans.compiler.bindings import cmake_text, fortran_text
from functrans.compiler.execution import execution_of
from functrans.compiler.header import header_text
from functrans.compiler.inspect import host_calls
from functrans.compiler.interface import (
    Interface,
    Leaf,
    c_name,
    c_names,
    is_c_name,
    size_macros,
)
from functrans.compiler.patterns import Table, prefixes_of, without_patterns
from functrans.compiler.prepare import prepare
from functrans.compiler.readme import readme_text
from functrans.compiler.standalone import write_standalone
from functrans.compiler.support import NativePart, partition
from functrans.core.jaxpr import Jaxpr
from functrans.errors import CompilationError, UnsupportedOperationError
from functrans.machine import engine
from functrans.machine.intrinsics import with_known_instructions
from functrans.machine.stack import stack_bytes
from functrans.machine.system import system
from functrans.records import dataclass, field, replace

KINDS = ("object", "shared", "llvm", "c-free")
"""What can be written beside the header; ``"c-free"`` is another name of ``"llvm"``."""
ALSO = ("cmake", "fortran")
"""What can be written beside that."""

_LEVEL = 2
"""How hard LLVM tries: the code is made once, of long programs, too."""

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
class Options:
    """How a program is written.

    Attributes:
      name: of the function; made from the program's if not given.
      kind: one of ``KINDS``.
      target: what ``engine.foreign_target`` takes.
      tape_bytes: most memory for what loops of unknown length keep for their derivatives.
      tables: arrays that become constants of the code, as ``<name>_<key>``.
      also: which of ``ALSO``.
    """

    name: str | None = None
    kind: str = "object"
    target: str | None = None
    tape_bytes: int = 0
    tables: Mapping[str, Any] = field(default_factory=dict)
    also: Sequence[str] = ()

    def check(self) -> None:
        """Refuse what makes no sense.

        Raises:
          ValueError: the message says what there is.
        """
        if self.kind not in KINDS:
            raise ValueError(
                f"export: kind {self.kind!r} is none of {_listed(KINDS)}; for Python there are "
                "ft.jit(f).save(file, *args) and ft.load(file)"
            )
        names = [] if self.name is None else [self.name]
        for name in (*names, *(f"f_{key}" for key in self.tables)):
            if not is_c_name(name):
                raise ValueError(f"export: name {name!r} is no name in C")
        size = self.tape_bytes
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise ValueError(f"export: tape_bytes must be an integer from 0 on, got {size!r}")
        if isinstance(self.also, str) or not set(self.also) <= set(ALSO):
            raise ValueError(f"export: also={self.also!r} is no sequence of {_listed(ALSO)}")
        if "cmake" in self.also and self.kind not in ("object", "shared"):
            raise ValueError(f"export: CMake has no use for kind {self.kind!r}")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))


@dataclass(frozen=True, slots=True)
class Exported:
    """A program that was written to files; what ``jit(f).export(path, *args)`` returns.

    Attributes:
      name: of the function in C.
      declaration: of the function in C.
      header: the header file.
      code: the object file, shared library or text of LLVM.
      readme: what there is, and how to call it.
      workspace_bytes: size of the workspace that each call is given.
      stack_bytes: the most stack that a call takes, beside what the functions of ``external`` take;
        ``None`` where that is not known: of another compiler's code, say.
      statuses: what the function may return, by number: names in the header.
      external: functions that the code refers to: of BLAS and LAPACK, and of the C library.
    """

    name: str
    declaration: str
    header: Path
    code: Path
    readme: Path
    workspace_bytes: int
    stack_bytes: int | None
    statuses: Mapping[int, str]
    external: tuple[str, ...]

    def __repr__(self) -> str:
        """``<exported int32_t f(const double *x, double *out, void *workspace)>``."""
        return f"<exported {self.declaration}>"


def export_program(
    jaxpr: Jaxpr,
    captured: Sequence[Any],
    treedef: Any,
    path: str | os.PathLike[str],
    **given: Any,
) -> Exported:
    """Write a simplified program to files that other programs are built from.

    Args:
      jaxpr: the program.
      captured: what its first arguments always are.
      treedef: structure of its results.
      path: directory of the files; it is made if it is not there.
      **given: how it is written: ``Options``.

    Raises:
      UnsupportedOperationError: an equation has no native form, or needs Python or its libraries.
      ValueError: an option makes no sense.
      CompilationError: llvmlite is missing, or a shared library cannot be linked.
      NotADirectoryError: there is a file in the place of the directory.
    """
    options = Options(**given)
    options.check()
    folder, kind = Path(path), options.kind
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(f"export: {folder} is a file, and no directory to write into")
    goal = _target(options.target)
    linker = _linker(goal) if kind == "shared" else ""
    interface = _interface(jaxpr, captured, treedef, goal, options)
    name, text = interface.name, interface.text.text
    code, listing = engine.compile_with_assembly(text, _LEVEL, goal)
    if kind in ("object", "shared"):
        interface = replace(interface, stack_bytes=stack_bytes(listing, name, goal.triple))
    external = _external(code, interface)
    if kind == "object":
        file, data = f"{name}.o", code
    elif kind == "shared":
        file, data = _SHARED[system()].format(name), _linked(linker, code)
    else:
        file, data = f"{name}.ll", f'target triple = "{goal.triple}"\n{text}'.encode()
    about = _about(jaxpr.name or name, goal, interface, external)
    texts = {f"{name}.h": header_text(interface, about)}
    texts[f"{name}.md"] = readme_text(interface, about, file, options.also)
    if "cmake" in options.also:
        texts[f"{name}.cmake"] = cmake_text(interface, file)
    if "fortran" in options.also:
        texts[f"{name}.f90"] = fortran_text(interface)
    _check_case(folder, (file, *texts))
    write_files(folder, {file: data, **{key: value.encode() for key, value in texts.items()}})
    return Exported(
        name,
        interface.declaration,
        folder / f"{name}.h",
        folder / file,
        folder / f"{name}.md",
        interface.text.workspace_bytes,
        interface.stack_bytes,
        interface.statuses,
        external,
    )


def _target(name: str | None) -> engine.Target:
    try:
        return engine.foreign_target(name)
    except ValueError as error:
        raise ValueError(f"export: {error}") from None


def _interface(
    jaxpr: Jaxpr,
    captured: Sequence[Any],
    treedef: Any,
    goal: engine.Target,
    options: Options,
) -> Interface:
    """The function with its code."""
    name = options.name or c_name(jaxpr.name, "program")
    given = [Table(f"{name}_{key}", key, _table(key, x)) for key, x in options.tables.items()]
    captured = list(map(_constant, captured, jaxpr.in_avals))
    jaxpr, out_paths, patterns = without_patterns(jaxpr, captured, treedef, name)
    execution_of(jaxpr).constants = dict(zip(jaxpr.invars, captured, strict=False))
    tables = [*given, *(table for p in patterns for table in (p.indptr, p.indices))]
    arrays = {table.name: table.array for table in tables}
    machine = engine.machine(goal)
    text = write_standalone(_native(jaxpr), captured, name, machine, options.tape_bytes, arrays)
    text = replace(text, text=with_known_instructions(text.text, goal.triple))
    prefixes = prefixes_of(patterns, out_paths, name)
    macros = [macro for prefix in prefixes for macro in size_macros(prefix)]
    reserved = (*Interface(name, text, (), ()).reserved, *macros)
    symbols = (name, f"{name}_error_text", f"{name}_call", *(table.name for table in tables))
    _check_unique(symbols, reserved, text.text)
    avals = jaxpr.in_avals[len(captured) :]
    paths = list(jaxpr.arg_names[len(captured) :]) or [f"args[{i}]" for i in range(len(avals))]
    taken = (name, f"{name}_error_text", "workspace", "status", *reserved)
    names = c_names(paths, "arg", taken)
    out_names = c_names(out_paths, "out", (*taken, *names))
    arguments = [Leaf(*row) for row in zip(names, paths, avals, strict=True)]
    results = [Leaf(*row) for row in zip(out_names, out_paths, jaxpr.out_avals, strict=True)]
    return Interface(
        name,
        text,
        tuple(arguments),
        tuple(results),
        tuple([table.leaf for table in given]),
        tuple([p.matrix(x, results[p.result]) for p, x in zip(patterns, prefixes, strict=True)]),
    )


def _constant(value: Any, aval: Any) -> np.ndarray:
    """What an array holds now."""
    array = np.array(value, aval.dtype, order="C")
    array.flags.writeable = False
    return array


def _table(key: str, value: object) -> np.ndarray:
    """A constant array, in native byte order."""
    array = np.asarray(value)
    dtype = array.dtype.newbyteorder("=")
    if dtype.kind not in "biufc" or dtype.itemsize > (16 if dtype.kind == "c" else 8):
        raise TypeError(f"export: tables[{key!r}] is of dtype {dtype}, which has no type in C")
    return np.array(array, dtype, order="C")


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


def _check_unique(names: Sequence[str], reserved: Sequence[str], text: str) -> None:
    """Refuse names that the code or the header uses for something else."""
    used = re.findall(r"^(?:(?:define|declare)[^@\n]*)?@([\w.]+)(?:\(| = )", text, re.MULTILINE)
    counts = Counter([*names, *reserved])
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        raise ValueError(
            f"export: two things would be called alike: {', '.join(twice)}; give the function "
            "another name with name=, or tables other keys"
        )
    for name in names:
        if used.count(name) > 1 or name in _COMPILER_NAMES:
            raise ValueError(
                f"export: the code calls another function {name!r}; give it another name with name="
            )
        if _is_of_c_library(name):
            raise ValueError(
                f"export: the C library has a {name!r}, which programs would no longer find; give "
                "the function another name with name="
            )


def _is_of_c_library(name: str) -> bool:
    """Whether the libraries of this process have a symbol."""
    if system() == "windows":
        return False
    return hasattr(ctypes.CDLL(None), name)


def _external(code: bytes, interface: Interface) -> tuple[str, ...]:
    """Functions that object code refers to; where it is not ELF, those of the text."""
    try:
        found = tuple(sorted(engine.object_symbols(code)[1]))
    except CompilationError:
        return interface.text.routines
    if any(map(_NOT_FREE.match, found)):
        raise CompilationError(f"export: {interface.name} refers to {', '.join(found)}")
    return found


def _about(
    what: str, goal: engine.Target, interface: Interface, external: Sequence[str]
) -> list[str]:
    """What the header says first."""
    own = sys.modules[__name__.partition(".")[0]].__version__
    lines = [f"{what}, made by functrans {own} for {goal.triple} ({goal.cpu})."]
    functions = [symbol for symbol in external if symbol not in interface.text.routines]
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


def _check_case(folder: Path, files: Sequence[str]) -> None:
    """Refuse files beside those that some systems take for the same ones."""
    own = {file.lower(): file for file in files}
    there = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    for name in there:
        if own.get(name.lower(), name) != name:
            raise ValueError(
                f"export: {folder} has a file {name}, which is {own[name.lower()]} on systems that "
                "do not tell upper from lower case; export to another directory, or give the "
                "function another name with name="
            )


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files under other names, then rename them all; nothing is left of a failure."""
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    written: list[tuple[Path, Path]] = []
    try:
        for file, data in files.items():
            temporary = folder / f".{file}.{os.getpid()}.tmp"
            written.append((temporary, folder / file))
            temporary.write_bytes(data)
            if (folder / file).exists():
                shutil.copymode(folder / file, temporary)
        for temporary, final in written:
            temporary.replace(final)
    except BaseException:
        for temporary, _ in written:
            temporary.unlink(missing_ok=True)
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        raise
