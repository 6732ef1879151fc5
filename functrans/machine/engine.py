"""LLVM: text to object code, object code to addresses.

Here: the machine that code is made for (``target``), compilation in memory (``compile_object``),
linking into the running process (``load_object``), and text for people (``optimised_text``,
``assembly``). Not here: what the text says (``emitter``, the planner), the disk
(``machine.cache``), calls (``compiler.entry``). The only module that imports llvmlite, inside
functions.

Object code is position independent and of the small code model: constants are addressed relative to
the instruction pointer, and symbols outside go through a table. Such code may lie anywhere, so it
can be kept on disk; the linker puts all sections of an object into one block.

Levels. The text carries explicit vectors and few redundancies, so most of what LLVM's standard
pipelines look for is not there, and making code costs more than improving the text.

- 0: no improvement, fast instruction selection. For long straight-line programs: 40,000 scalar
  operations take 0.12 s, at level 1 0.6 s, at level 3 1.1 s, and run as fast; vector loops run at
  half the speed, loops that keep values in stack slots at a quarter.
- 1: values into registers, then proper instruction selection, scheduling and register allocation.
  Nearly all the speed of vector loops, at 60 % of the time of LLVM's O1.
- 2: LLVM's O1, and numbers side by side in registers where straight-line code does the same with
  several of them. Half as long again as level 1; formulas with many divisions and roots run in
  three quarters of the time.
- 3: LLVM's O2, the same with loops unrolled. The loop vectoriser stays off everywhere.

No level assumes anything of floating-point numbers.

Layer: ``machine``.
"""

from __future__ import annotations

import _thread
import collections
import ctypes
import functools
import os
import re
import signal
import struct
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from functrans.core.boundary import warn
from functrans.emitter.types import Machine
from functrans.errors import CompilationError
from functrans.machine.system import function_address, system, unsupported_platform
from functrans.records import dataclass, replace

_lock = threading.RLock()
"""Held around every use of LLVM: its objects are not safe to share."""

_held: dict[weakref.ref[Loaded], tuple[Any, ...]] = {}
"""What LLVM holds of programs: the garbage collector, which would finalise a program and the linker
that it belongs to in any order and thread, must never find it."""
_doomed: collections.deque[weakref.ref[Loaded]] = collections.deque()
"""Programs that are gone, freed by the next holder of the lock: a finaliser must not wait, and no
Python code runs when one goes, for an interrupt in it would be lost."""

LEVELS = range(4)


@dataclass(frozen=True, slots=True)
class Target:
    """What code is made for.

    Attributes:
      triple: architecture, vendor and operating system.
      cpu: name of the processor, in LLVM's terms.
      features: instruction sets, comma-separated with signs; empty for those of ``cpu``.
      llvm_version: version of LLVM, ``"22.1.0"``.
      llvmlite_version: version of llvmlite, which makes LLVM's pipelines of passes.
    """

    triple: str
    cpu: str
    features: str
    llvm_version: str
    llvmlite_version: str = ""


# LLVM ------------------------------------------------------------------------------------------


_T = TypeVar("_T")
_P = ParamSpec("_P")


class _Work:
    """A call that runs in a thread of its own."""

    __slots__ = ("error", "result", "running")

    def __init__(self) -> None:
        self.running = threading.Lock()
        self.running.acquire()
        self.result: Any = None
        self.error: BaseException | None = None


_works: dict[int, _Work] = {}
"""Calls in threads of their own, by the number of the thread."""


def _uninterrupted(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """The function in a thread of its own, for two reasons.

    Python raises KeyboardInterrupt, and whatever signal handlers raise, between any two
    instructions of the main thread. Between a call of LLVM and llvmlite's note of it, that would
    free memory twice. The caller is interrupted as soon as Ctrl-C comes; the work goes on to its
    end, under the lock. And where LLVM gives up, the thread is left behind (``_on_abort``).
    """

    @functools.wraps(function)
    def run(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        if threading.get_ident() in _works:
            return function(*args, **kwargs)
        own = _Work()

        def work() -> None:
            _works[threading.get_ident()] = own
            try:
                own.result = function(*args, **kwargs)
            except BaseException as error:
                own.error = error
            finally:
                del _works[threading.get_ident()]
                own.running.release()

        # ``Thread.start`` waits in Python code, which an interrupt leaves with its lock broken.
        _thread.start_new_thread(work, ())
        own.running.acquire()
        if own.error is not None:
            error, own.error = own.error, None
            raise error
        result: _T = own.result
        return result

    return run


# LLVM's faults ----------------------------------------------------------------------------------


def _on_abort(signal_number: int) -> None:  # as C calls it
    """Leave the thread behind that LLVM gave up in.

    LLVM ends the process where an assertion fails, or where it cannot make code of what it was
    given. The thread that calls ``abort`` stays where it is for ever, with all that belongs to the
    call; it gives up the lock, and the caller gets an exception. What all calls share is made anew.
    """
    global _depth
    own = _works.get(threading.get_ident())
    _restore_abort()
    if own is None:  # not ours: what would have happened
        _libc().abort()
        return
    _shared_machine.cache_clear()
    _linkers.clear()
    # llvmlite holds a lock of its own around every call
    binding: Any = getattr(_llvm().ffi.lib, "_lock", None)
    while binding is not None and binding._lock._is_owned():
        binding.__exit__(None, None, None)
    depth, _depth = _depth, 0
    for _ in range(depth):
        _lock.release()
    own.error = CompilationError(
        "LLVM failed while it made machine code, as it said on the standard error stream; it is a "
        "fault of functrans or of LLVM, please report it"
    )
    own.running.release()
    while True:
        time.sleep(1e6)


@functools.cache
def _libc() -> ctypes.CDLL:
    library = ctypes.CDLL(None)
    library.signal.argtypes = (ctypes.c_int, ctypes.c_void_p)
    library.sigaction.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    return library


_abort_handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(_on_abort)
_before = ctypes.create_string_buffer(512)
"""What was done at ``abort`` before the lock was taken, in the form of ``sigaction``."""


def _catch_abort() -> None:
    """Have what was done at ``abort`` replaced, and remember it."""
    if system() == "windows":
        return
    _libc().sigaction(signal.SIGABRT, None, _before)
    _libc().signal(signal.SIGABRT, ctypes.cast(_abort_handler, ctypes.c_void_p))


def _restore_abort() -> None:
    """Have done at ``abort`` what was done before."""
    if system() != "windows":
        _libc().sigaction(signal.SIGABRT, _before, None)


_depth = 0
"""How often the holder of the lock holds it."""


@functools.cache
@_uninterrupted
def _llvm() -> Any:
    """The binding, initialised once."""
    reason = unsupported_platform()
    if reason:
        raise CompilationError(f"machine code is not made for {reason}")
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise CompilationError(
            f"llvmlite, which makes machine code, cannot be imported ({error}); "
            "install it with: pip install llvmlite"
        ) from error
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    if hasattr(os, "register_at_fork"):
        # A child must not inherit LLVM in the middle of another thread's compilation.
        os.register_at_fork(
            before=lambda: _lock.acquire(),
            after_in_parent=lambda: _lock.release(),
            after_in_child=lambda: _lock.release(),
        )
    return llvm


@functools.cache
def is_available() -> bool:
    """Whether programs can be compiled at all; if not, says so once, in a warning."""
    try:
        _llvm()
    except CompilationError as error:
        warn(f"functrans: programs are interpreted: {error}", RuntimeWarning)
        return False
    return True


@contextmanager
def _exclusive() -> Iterator[Any]:
    """LLVM for this thread alone."""
    global _depth
    llvm = _llvm()
    with _lock:
        if not _depth:
            _catch_abort()
        _depth += 1
        try:
            _free_doomed()
            yield llvm
        finally:
            _depth -= 1
            if not _depth:
                _restore_abort()


def _free_doomed() -> None:
    while True:
        try:
            code, linker = _held.pop(_doomed.popleft())
        except IndexError:
            return
        code.close()
        linker.release()


def target(cpu: str | None = None) -> Target:
    """The machine that code is made for.

    Args:
      cpu: a processor in LLVM's terms (``"x86-64-v3"``, ``"znver4"``) with all of its instruction
        sets; the environment variable ``FUNCTRANS_TARGET_CPU`` if not given, and the processor of
        this machine if that is not set either.

    Raises:
      CompilationError: llvmlite cannot be imported.
      ValueError: there is no such processor; LLVM would end the process over it.
    """
    return _target(cpu or os.environ.get("FUNCTRANS_TARGET_CPU") or "")


@functools.cache
@_uninterrupted
def _target(cpu: str) -> Target:
    with _exclusive() as llvm:
        triple = _triple(llvm)
        version = ".".join(map(str, llvm.llvm_version_info))
        binding = sys.modules["llvmlite"].__version__
        if cpu:
            _check_processor(triple, cpu)
            return Target(triple, cpu, "", version, binding)
        features = llvm.get_host_cpu_features().flatten()
        return Target(triple, llvm.get_host_cpu_name(), features, version, binding)


_PROCESSORS = re.compile(
    r"x86-64(-v[234])?|nehalem|westmere|sandybridge|ivybridge|haswell|broadwell|skylake(-avx512)?"
    r"|cascadelake|cooperlake|cannonlake|icelake-(client|server)|tigerlake|rocketlake|alderlake"
    r"|raptorlake|sapphirerapids|emeraldrapids|graniterapids|znver[1-5]|bdver[1-4]|btver[12]"
)


_ADDITION = "define double @f(double %x) { %y = fadd double %x, %x ret double %y }"


def _check_processor(triple: str, cpu: str) -> None:
    """Refuse a name that LLVM does not know."""
    if not _is_processor(triple, cpu):
        raise ValueError(
            f"FUNCTRANS_TARGET_CPU is {cpu!r}, which is no processor of {_architecture(triple)}; "
            f"names are LLVM's: {_names(triple)} and so on"
        )


def _is_processor(triple: str, cpu: str) -> bool:
    """Whether LLVM knows a name.

    On x86-64 it ends the process over one that it does not; on others it makes code for a processor
    without floating-point registers, whose functions are called in another way: results would be
    wrong.
    """
    if _architecture(triple) == "x86_64":
        return _PROCESSORS.fullmatch(cpu) is not None
    code = compile_object(_ADDITION, 0, Target(triple, cpu, "", ""))
    return not object_symbols(code)[1]  # the addition is a call otherwise


def _architecture(triple: str) -> str:
    return triple.split("-")[0]


def _names(triple: str) -> str:
    """Some names of processors."""
    if _architecture(triple) == "x86_64":
        return "x86-64, x86-64-v2, x86-64-v3, x86-64-v4, haswell, skylake-avx512, znver4"
    return "generic, cortex-a72, neoverse-n1, neoverse-v2, apple-m1"


_BASELINES = {
    "x86_64": ("x86-64", ""),
    "aarch64": ("generic", ""),
    "arm64": ("generic", ""),
    "riscv64": ("generic-rv64", "+m,+a,+f,+d,+c"),
    "armv7": ("generic", "+vfp3d16,-neon"),
}
"""Architectures that code can be made for, each with the processor whose code all others run, and
the instruction sets that systems expect of it: RV64GC, and VFPv3 with 16 registers, but not NEON,
which takes the smallest numbers of single precision for zero."""


@_uninterrupted
def foreign_target(name: str | None = None) -> Target:
    """A target of code that leaves this process, in the object format of its system.

    Args:
      name: a processor of this architecture in LLVM's terms (``"x86-64-v3"``), or a triple
        (``"aarch64-linux-gnu"``), which stands for all its processors; this machine's processor if
        not given.

    Raises:
      CompilationError: llvmlite cannot be imported.
      ValueError: it is neither; the message says what there is.
    """
    own = target()
    with _exclusive() as llvm:
        triple: str = llvm.get_process_triple()
        if name is None:
            return replace(own, triple=triple)
        baseline = _BASELINES.get(_architecture(name))
        if baseline is None and _is_processor(own.triple, name):
            return replace(own, triple=triple, cpu=name, features="")
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        there = [known for known in _BASELINES if _has_target(llvm, f"{known}-linux-gnu")]
        if baseline is None or _architecture(name) not in there or not _has_target(llvm, name):
            raise ValueError(
                f"target {name!r} is neither a processor of {_architecture(triple)} "
                f"({_names(triple)} and so on) nor a triple of an architecture that there is: "
                f"{', '.join(there)}, as in 'aarch64-linux-gnu'"
            )
        cpu, features = baseline
        return replace(own, triple=_with_vendor(name), cpu=cpu, features=features)


def _with_vendor(triple: str) -> str:
    """A triple as LLVM reads it: by position, so that what others leave out must be there."""
    parts = triple.split("-")
    if len(parts) > 1 and parts[1] in ("linux", "none", "windows", "freebsd"):
        parts.insert(1, "unknown")
    return "-".join(parts)


def _has_target(llvm: Any, triple: str) -> bool:
    try:
        llvm.Target.from_triple(triple)
    except RuntimeError:
        return False
    return True


_WIDE = re.compile(
    r"x86-64-v4|.*(avx512|lake-(client|server)|rapids)|(cascade|cooper|cannon|tiger|rocket)lake"
    r"|znver[45]"
)
"""Processors with registers of 64 bytes."""


def machine(goal: Target | None = None) -> Machine:
    """What code for a target should be like; a middling one where llvmlite is missing."""
    try:
        goal = goal or target()
    except CompilationError:
        return Machine()
    is_wide = "+avx512f" in goal.features.split(",") or _WIDE.fullmatch(goal.cpu) is not None
    return Machine(registers=32) if is_wide else Machine()


def _triple(llvm: Any) -> str:
    """The triple of this process, with the one object format that the loader reads: ELF.

    With it names are plain on all systems (no underscore in front), and calls are the system's.
    """
    triple: str = llvm.get_process_triple()
    return triple if "linux" in triple or triple.endswith("-elf") else f"{triple}-elf"


def _machine(llvm: Any, goal: Target, level: int, jit: bool = False) -> Any:
    """A new code generator."""
    return llvm.Target.from_triple(goal.triple).create_target_machine(
        cpu=goal.cpu,
        features=goal.features,
        opt=min(level, 2),
        reloc="pic",
        codemodel="small",
        jit=jit,
    )


@functools.lru_cache(maxsize=16)
def _shared_machine(goal: Target, level: int) -> Any:
    """The code generator of a target and level; used under the lock."""
    return _machine(_llvm(), goal, level)


def _run_passes(llvm: Any, module: object, machine: object, level: int) -> None:
    """Improve a module in place.

    Nothing is kept for the next run: a run leaves callbacks in the builder that refer to memory of
    its own, so a second one with the same builder would call into nowhere.
    """
    options = llvm.create_pipeline_tuning_options(speed_level=2 if level == 3 else 1)
    options.loop_vectorization = False
    options.loop_interleaving = False
    options.loop_unrolling = level == 3
    options.slp_vectorization = level >= 2
    builder = llvm.create_pass_builder(machine, options)
    if level >= 2:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
    passes.run(module, builder)
    # ``close`` of a pass manager frees nothing, since llvmlite's base class hides the method that
    # does. The builder leaves about 1.5 kB behind for which llvmlite has no release at all.
    llvm.newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()
    builder.close()
    options.close()


@functools.cache
def _keep_text_type(text: str) -> type[Any]:
    """The type of the buffer that llvmlite passes a text in; see ``_keep_array_types``."""
    return ctypes.c_char * (len(text) + 1)


@contextmanager
def _optimised(text: str, level: int, goal: Target | None) -> Iterator[tuple[Any, Any]]:
    """The module after optimisation, and the code generator for it."""
    if level not in LEVELS:
        raise ValueError(f"level {level!r} does not exist; levels are 0 to {LEVELS[-1]}")
    goal = goal or target()
    with _exclusive() as llvm:
        # A context of its own, so that types and constants are freed with the module.
        context = llvm.create_context()
        try:
            try:
                module = llvm.parse_assembly(text, context)
                _keep_text_type(goal.triple)
                module.triple = goal.triple
                module.verify()
            except RuntimeError as error:
                raise CompilationError(f"LLVM rejected a program: {error}") from error
            try:
                machine = _shared_machine(goal, level)
                if level:
                    _run_passes(llvm, module, machine, level)
                yield module, machine
            except RuntimeError as error:
                raise CompilationError(f"LLVM could not make code: {error}") from error
            finally:
                module.close()
        finally:
            context.close()


@_uninterrupted
def compile_object(text: str, level: int, target: Target | None = None) -> bytes:
    """Compile a module to relocatable object code.

    Args:
      text: LLVM assembly.
      level: 0 (fast to compile) to 3 (fast to run); see the module's docstring.
      target: what to compile for; this machine if not given.

    Raises:
      CompilationError: LLVM rejects the text; the message is LLVM's.
      ValueError: the level does not exist.
    """
    with _optimised(text, level, target) as (module, machine):
        code: bytes = machine.emit_object(module)
        return code


@_uninterrupted
def compile_with_assembly(text: str, level: int, target: Target) -> tuple[bytes, str]:
    """Object code and its assembly; arguments as for :func:`compile_object`."""
    with _optimised(text, level, target) as (module, machine):
        twin = module.clone()  # making code changes the module
        try:
            code: bytes = machine.emit_object(module)
            listing: str = machine.emit_assembly(twin)
        finally:
            twin.close()
        return code, listing


@_uninterrupted
def optimised_text(text: str, level: int, target: Target | None = None) -> str:
    """A module as LLVM assembly after optimisation; arguments as for :func:`compile_object`."""
    with _optimised(text, level, target) as (module, _):
        return str(module)


@_uninterrupted
def assembly(text: str, level: int, target: Target | None = None) -> str:
    """A module as assembly of the target; arguments as for :func:`compile_object`."""
    with _optimised(text, level, target) as (module, machine):
        code: str = machine.emit_assembly(module)
        return code


# loading ---------------------------------------------------------------------------------------


class Loaded:
    """Machine code in this process; without references to it, it is freed at LLVM's next use.

    Attributes:
      addresses: of the functions and globals that the code defines, by name; valid as long as this
        object lives.
    """

    __slots__ = ("__weakref__", "_uses", "addresses")

    def __init__(
        self, addresses: Mapping[str, int], code: tuple[Any, ...], uses: tuple[Loaded, ...]
    ) -> None:
        self.addresses = addresses
        self._uses = uses
        _held[weakref.ref(self, _doomed.append)] = code

    def address(self, name: str) -> int:
        """The address of a function or global, valid as long as this object lives.

        Raises:
          KeyError: the object code does not define that name.
        """
        return self.addresses[name]


@_uninterrupted
def load_object(
    data: bytes, symbols: Mapping[str, int] | None = None, uses: tuple[Loaded, ...] = ()
) -> Loaded:
    """Link object code into this process.

    Args:
      data: what ``compile_object`` returned, in this or in another process.
      symbols: addresses of names that the code refers to. Names of the C library, of its
        mathematical functions, and those that are provided need not be there.
      uses: other code that it calls, which lives at least as long.

    Raises:
      CompilationError: it is no object code of this machine, or it refers to an unknown name.
    """
    defined, undefined = object_symbols(data)
    needed = {name: _resolve(name, symbols or {}) for name in sorted(undefined)}
    with _exclusive() as llvm:
        library = llvm.JITLibraryBuilder()
        library.add_object_img(data)
        for name, address in needed.items():
            library.import_symbol(name, address)
        for name in defined:
            library.export_symbol(name)
        linker = _current_linker(llvm)
        _keep_array_types(llvm, 1, len(defined), len(needed))
        try:
            code = linker.link(library)
        except RuntimeError as error:
            raise CompilationError(f"LLVM could not load a program: {error}") from error
        return Loaded({name: code[name] for name in defined}, (code, linker), uses)


def symbol_in_process(name: str) -> int:
    """The address of a name that LLVM knows in this process, as numba's own functions; or 0."""
    with _exclusive() as llvm:
        return int(llvm.address_of_symbol(name) or 0)


_array_types: dict[tuple[type, int], type] = {}
"""Types of C arrays that llvmlite makes for a moment."""


def _keep_array_types(llvm: Any, *counts: int) -> None:
    """Keep the types of the arrays that linking makes: a type is a cycle, and garbage when dropped.

    There are as many as there are numbers of symbols, so that they do not add up, and ctypes finds
    a type that is still there. Where llvmlite makes others, nothing is lost but that.
    """
    for name in ("_LinkElement", "_SymbolAddress"):
        element: Any = getattr(llvm.orcjit, name, None)
        if element is not None:
            for count in counts:
                if (element, count) not in _array_types:
                    _array_types[element, count] = element * count


class _Linker:
    """LLVM's linker for the next few objects, each a library of its own with its own names.

    A linker takes 150 kB, so programs share one; but it keeps 10 kB of every library it ever held,
    so it is replaced after some, and freed with the last of them.
    """

    __slots__ = ("_linked", "_live", "_lljit")

    CAPACITY = 32

    def __init__(self, llvm: Any) -> None:
        machine = _machine(llvm, Target(_triple(llvm), "", "", ""), 0, jit=True)
        self._lljit = llvm.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
        self._linked = 0
        self._live = 0

    @property
    def is_full(self) -> bool:
        """Whether it takes no more objects."""
        return self._linked >= self.CAPACITY

    def link(self, library: Any) -> Any:
        """Link a library; the caller has to ``release`` it."""
        self._linked += 1
        try:
            code = library.link(self._lljit, f"program{self._linked}")
        except RuntimeError:
            self._close_if_done()
            raise
        self._live += 1
        return code

    def release(self) -> None:
        """One of its libraries is gone."""
        self._live -= 1
        self._close_if_done()

    def _close_if_done(self) -> None:
        if self.is_full and not self._live:
            self._lljit.close()


_linkers: list[_Linker] = []
"""The linker that takes the next object, used under the lock."""


def _current_linker(llvm: object) -> _Linker:
    if not _linkers or _linkers[0].is_full:
        _linkers[:] = [_Linker(llvm)]
    return _linkers[0]


_provided: dict[str, Callable[[], int]] = {}
"""Addresses of what the library gives all code, by name; each is asked for at its first use."""


def provide(name: str, address: Callable[[], int]) -> None:
    """Let all code that is loaded from now on refer to a function or to memory by a name."""
    _provided[name] = address


def _resolve(name: str, symbols: Mapping[str, int]) -> int:
    """The address behind a name."""
    address = (
        symbols.get(name) or (_provided.get(name) or functools.partial(function_address, name))()
    )
    if not address:
        # LLVM would end the process.
        raise CompilationError(f"a program refers to {name!r}, which is unknown")
    return address


_ELF_64 = tuple(map(struct.Struct, ("<16sHHIQQQIHHHHHH", "<IIQQQQIIQQ", "<IBBHQQ")))
_ELF_32 = tuple(map(struct.Struct, ("<16sHHIIIIIHHHHHH", "<IIIIIIIIII", "<IIIBBH")))
"""Header, section and symbol; a symbol of 32 bits has its last three fields in another place."""
_SYMBOL_TABLE = 2
_LOCAL = 0


def object_symbols(data: bytes) -> tuple[list[str], list[str]]:
    """Names that object code defines for others, and names that it refers to and does not define.

    Raises:
      CompilationError: it is no object code that can be read.

    Reference: Tool Interface Standard, Executable and Linking Format, version 1.2 (1995).
    """
    if data[:4] != b"\x7fELF" or data[4:6] not in (b"\x02\x01", b"\x01\x01"):
        raise CompilationError("not an object file (little-endian ELF)")
    header_of, section_of, symbol_of = _ELF_64 if data[4] == 2 else _ELF_32
    defined: list[str] = []
    undefined: list[str] = []
    try:
        header = header_of.unpack_from(data)
        sections = [
            section_of.unpack_from(data, header[6] + i * header[11]) for i in range(header[12])
        ]
        for section in sections:
            if section[1] != _SYMBOL_TABLE:
                continue
            offset, size, strings = section[4], section[5], sections[section[6]][4]
            for symbol in symbol_of.iter_unpack(data[offset : offset + size]):
                name, info, _, place = symbol[:4] if data[4] == 2 else (symbol[0], *symbol[3:])
                if name and info >> 4 != _LOCAL:
                    start = strings + name
                    text = data[start : data.index(b"\0", start)].decode()
                    (defined if place else undefined).append(text)
    except (struct.error, ValueError, IndexError) as error:
        raise CompilationError(f"damaged object file: {error}") from error
    return defined, undefined
