"""Programs that are compiled, and how they are called.

Here: ``Compiled``, a program as native functions and NumPy calls in order, ``compiled``, which
makes it (from the cache on disk where it can), and the errors that native code ends with. Not here:
when a program is compiled and when it is interpreted (``jitted.jit``).

Layer: ``compiler``.
"""

from __future__ import annotations

import hashlib
import re
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from functrans.compiler import threads
from functrans.compiler.cost import LONG_PROGRAM_LINES, compile_seconds
from functrans.compiler.donation import NO_DONATIONS, Donations, find_donations
from functrans.compiler.entry import (
    ArraySpec,
    Entry,
    ScalarSpec,
    Spec,
    emit_entry,
    entry_symbols,
    make_function,
)
from functrans.compiler.exchange import Exchanged
from functrans.compiler.functions import FIRST_ERROR, NO_MEMORY
from functrans.compiler.prepare import known_values, prepare
from functrans.compiler.programs import ProgramText, write_program
from functrans.compiler.support import HostCall, NativePart, Part, partition
from functrans.compiler.symbols import address
from functrans.core.analyses import analysis
from functrans.core.avals import ShapedArray
from functrans.core.boundary import warn
from functrans.core.byte_order import in_native_order
from functrans.core.jaxpr import Equation, Jaxpr, Literal, Var, subjaxprs
from functrans.core.progress import Progress
from functrans.core.source import resolve
from functrans.core.values import Array
from functrans.emitter.builder import Module
from functrans.errors import CompilationError, UnsupportedOperationError
from functrans.machine import engine
from functrans.machine.cache import cache_key, object_cache, packed, unpacked
from functrans.passes.work import program_work, rounds
from functrans.records import dataclass, replace

_VECTOR = re.compile(r"<\d+ x ")
_SLOW = re.compile(r" = (?:fdiv|call) (?:float|double) (?!@(?!llvm\.sqrt\.))")
_FAST = re.compile(r" = f(?:add|sub|mul) ")
_ROUNDS = re.compile(r"^(?:scan|while)_h", re.MULTILINE)
_MANY_SLOW = 8
"""Divisions and roots of numbers from which they are worth to be computed side by side."""
_SHARE = 8
"""How many additions and products there may be for each of them, of numbers or vectors."""
_LOOPING = 16
"""How many times longer a program of loops may be."""
_PLAIN_SLOTS = 2
"""Stack slots that every program has: its status and its memory."""
QUICK_LINES = 800
"""Lines from which a program begins with code that is not optimised."""
QUICK_WORK = 4e7
"""The work of a call of such a program (``passes.work``), at most: some 40 ms with better code."""
LONG_RUN_ELEMENTS = 20_000
"""Elements from which a program lets other Python threads run meanwhile."""

_SCALARS = {"b": "bool", "i": "int", "f": "float", "c": "complex"}


@dataclass(frozen=True, slots=True, eq=False)
class NativeFunction:
    """A native part that is ready to be called.

    Attributes:
      part: its program.
      call: the function: arrays in, array or tuple of arrays out, or ``NotImplemented`` for
        arguments that are not as they should be, or an error number.
      entry: what it takes and gives.
      program: the code of the program itself, which takes addresses.
      was_cached: whether the code came from disk.
    """

    part: NativePart
    call: Callable[..., Any]
    entry: Entry
    program: engine.Loaded
    was_cached: bool


class Compiled:
    """A compiled program.

    Attributes:
      prepared: the program as it was planned.
      parts: native functions and NumPy calls, in order.
      donations: what becomes of arguments that the caller gives away.
    """

    def __init__(
        self,
        prepared: Jaxpr,
        parts: Sequence[NativeFunction | HostCall],
        donations: Donations = NO_DONATIONS,
    ) -> None:
        # no reference to the program itself, which holds this in its cache
        self.prepared = prepared
        self.parts = parts
        self.donations = donations
        part = parts[0] if len(parts) == 1 else None
        self._is_whole = isinstance(part, NativeFunction) and _is_whole(prepared, part.part)

    @property
    def was_cached(self) -> bool:
        """Whether all machine code came from disk."""
        return all(part.was_cached for part in self.parts if isinstance(part, NativeFunction))

    @property
    def is_quick(self) -> bool:
        """Whether a part has code that better code may follow."""
        calls = [part.call for part in self.parts if isinstance(part, NativeFunction)]
        return any(isinstance(call, Exchanged) and call.is_quick for call in calls)

    @property
    def direct(self) -> NativeFunction | None:
        """The function that is the whole program, if there is one without constants of its own."""
        if self._is_whole and not self.prepared.constvars:
            return self.parts[0]  # type: ignore[return-value]  # checked when made
        return None

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """Run the program on arrays and numbers."""
        operands = (*self.prepared.consts, *args)
        if self._is_whole:
            return _call(self.parts[0], operands)  # type: ignore[arg-type]  # checked when made
        env: dict[Var, Any] = dict(
            zip((*self.prepared.constvars, *self.prepared.invars), operands, strict=True)
        )
        for part in self.parts:
            if isinstance(part, HostCall):
                _call_host(part, env)
                continue
            outs = _call(part, [env[var] for var in part.part.inputs])
            env.update(zip(part.part.jaxpr.outvars, outs, strict=True))  # type: ignore[arg-type]  # variables
        return [env[atom] for atom in self.prepared.outvars]  # type: ignore[index]  # variables


def _call(function: NativeFunction, operands: Sequence[Any]) -> list[Any]:
    result = function.call(*operands)
    if result is NotImplemented:
        inputs, donated = function.entry.inputs, set(function.entry.donated.values())
        fitting = [_fitting(x, spec) for x, spec in zip(operands, inputs, strict=True)]
        for i in donated:  # read-only, a view, or given twice: the program gets a copy
            fitting[i] = np.array(fitting[i], order="C")
        result = function.call(*fitting)
        if result is NotImplemented:
            given = ", ".join(type(x).__name__ for x in operands)
            raise TypeError(f"a compiled program of {inputs} was called with {given}")
    if type(result) is int:
        raise native_error(function.part.jaxpr, result)
    return [result] if function.entry.single else list(result)


def _fitting(value: Array, spec: Spec) -> Array | complex:
    """An operand as native code takes it: in C order, aligned, in native byte order."""
    if isinstance(spec, ScalarSpec):
        number = {"bool": bool, "int": int, "float": float, "complex": complex}[spec.kind](value)
        if spec.kind == "int" and not -(1 << 63) <= number < 1 << 63:
            raise OverflowError(
                f"the integer {number} is too large for a compiled program, which computes with "
                "64-bit integers; pass it as a float, or as a static argument"
            )
        return number
    array = np.asarray(value)
    flags = array.flags
    is_plain = type(array) is np.ndarray and array.dtype == spec.dtype
    if is_plain and flags.c_contiguous and flags.aligned:
        return array
    return np.array(array, dtype=spec.dtype, order="C", copy=True, subok=False)


def _call_host(call: HostCall, env: dict[Var, Any]) -> None:
    operands = []
    for atom in call.eqn.inputs:
        value = atom.value if isinstance(atom, Literal) else env[atom]
        aval = atom.aval
        if type(aval) is ShapedArray and not aval.shape and isinstance(value, np.ndarray):
            value = value.item() if aval.weak else value[()]
        operands.append(value)
    outs = call.eqn.primitive.impl(*in_native_order(operands), **call.eqn.params)
    env.update(zip(call.eqn.outputs, outs, strict=True))


def native_error(jaxpr: Jaxpr, status: int) -> Exception:
    """The exception that a status stands for, with the user's line."""
    if status == NO_MEMORY:
        return MemoryError(f"no memory for the temporary arrays of {jaxpr.name or 'a program'}")
    text = write_program(jaxpr)  # the same text as was compiled: errors are numbered alike
    found = text.errors[status - FIRST_ERROR]
    error = found.make(found.message)
    line = resolve(found.source)
    where = f" (at {line})" if line is not None else ""
    error.add_note(f"in compiled code{f' of {jaxpr.name}' if jaxpr.name else ''}{where}")
    return error


# making ------------------------------------------------------------------------------------------


def _is_whole(prepared: Jaxpr, part: NativePart) -> bool:
    """Whether a part is the whole program; one that leaves out a tape is not."""
    return len(part.inputs) == len(prepared.constvars) + len(prepared.invars)


def compiled(jaxpr: Jaxpr, given: Sequence[int] = (), is_quick: bool = False) -> Compiled:
    """Compile a simplified program, or find it on disk.

    Args:
      jaxpr: the program.
      given: positions of arguments whose memory results may take over.
      is_quick: whether long parts begin with code that is not optimised (``compiler.exchange``).

    Raises:
      CompilationError: LLVM is missing, or rejects the program.
    """
    with Progress(f"compiling {jaxpr.name}".rstrip(), unit="stage", is_timed=True) as progress:
        return _compiled(jaxpr, given, is_quick, progress)


_STAGES = 2
"""Of a native part: LLVM's text, and machine code."""


def _compiled(jaxpr: Jaxpr, given: Sequence[int], is_quick: bool, progress: Progress) -> Compiled:
    progress.say("plan")
    prepared = prepare(jaxpr)
    planned_parts = partition(prepared)
    progress.expect(_STAGES * sum(isinstance(part, NativePart) for part in planned_parts))
    donations = NO_DONATIONS
    if given:
        inputs = [len(prepared.constvars) + i for i in given]
        part = planned_parts[0] if len(planned_parts) == 1 else None
        if isinstance(part, NativePart) and _is_whole(prepared, part):
            donations = find_donations(prepared, inputs)
        else:
            reason = "the program calls NumPy between native parts"
            donations = Donations({}, dict.fromkeys(inputs, reason))
    parts: list[NativeFunction | HostCall] = []
    alike: dict[str, NativeFunction] = {}
    for part in planned_parts:
        if isinstance(part, HostCall):
            parts.append(part)
        else:
            parts.append(_native_function(part, donations.taken, alike, is_quick, progress))
    return Compiled(prepared, parts, donations)


def compile_or_warn(jaxpr: Jaxpr, given: Sequence[int] = ()) -> Compiled | None:
    """Compile a program; ``None``, after a warning, if that cannot be done."""
    if not engine.is_available():
        return None
    engine.target()  # settings that make no sense are reported, and not worked around
    threads.get_num_threads()
    object_cache()
    try:
        return compiled(jaxpr, given, is_quick=True)
    except OverflowError:
        return None  # a Python integer that does not fit: NumPy says so when it is interpreted
    except Exception as error:  # a fault of the compiler must not stop the user
        what = str(error) if isinstance(error, CompilationError) else repr(error)
        warn(
            f"{jaxpr.name or 'a program'} is interpreted, since it could not be compiled: {what}\n"
            f"its plan:\n{_plan_text(jaxpr)}",
            RuntimeWarning,
        )
        return None


def _plan_text(jaxpr: Jaxpr) -> str:
    """The parts of a program that was not compiled, or itself if it has none."""
    try:
        parts = [part.jaxpr for part in plan_of(jaxpr) if isinstance(part, NativePart)]
    except Exception:  # what went wrong first is being reported
        parts = []
    return "\n".join(map(str, parts or [jaxpr]))


@analysis
def predicted_compile_s(jaxpr: Jaxpr) -> float:
    """Roughly how long compiling a simplified program takes, in seconds."""
    return compile_seconds(prepare(jaxpr))


def plan_of(jaxpr: Jaxpr) -> list[Part]:
    """The parts that a program is compiled in, without compiling it."""
    return partition(prepare(jaxpr))


def entry_of(part: NativePart) -> Entry:
    """What a native part takes and gives."""
    inputs: list[Spec] = []
    for var in (*part.jaxpr.constvars, *part.jaxpr.invars):
        aval: Any = var.aval
        if aval.weak:
            inputs.append(ScalarSpec(_SCALARS[aval.dtype.kind]))
        else:
            inputs.append(ArraySpec(aval.shape, aval.dtype))
    outputs = tuple([ArraySpec(a.aval.shape, a.aval.dtype) for a in part.jaxpr.outvars])
    elements = sum(
        v.aval.size for eqn in part.jaxpr.eqns for v in eqn.outputs if type(v.aval) is ShapedArray
    )
    return Entry(
        "entry",
        "program",
        tuple(inputs),
        outputs,
        single=len(outputs) == 1,
        release_gil=elements >= LONG_RUN_ELEMENTS
        and not _has(part.jaxpr, lambda eqn: eqn.primitive.name == "while"),
    )


def _is_short_run(jaxpr: Jaxpr) -> bool:
    """Whether a call is known to take little time."""
    is_open = _has(jaxpr, lambda eqn: bool(subjaxprs(eqn.params)) and rounds(eqn) is None)
    return not is_open and program_work(jaxpr) < QUICK_WORK


def _has(jaxpr: Jaxpr, is_one: Callable[[Equation], bool]) -> bool:
    """Whether there is such an equation in a prepared program or one of those in it."""
    return any(
        is_one(eqn) or any(_has(prepare(inner), is_one) for inner in subjaxprs(eqn.params))
        for eqn in jaxpr.eqns
    )


def optimisation_level(text: str) -> int:
    """How hard LLVM tries: little for long programs, and where there is nothing to gain.

    Straight-line code on numbers runs as fast without optimisation: the emitter wrote each value
    once, and no slot on the stack has to become a register. A loop, which has a phi, is another
    matter, and takes twice to four times as long then. So a program much of which is inside of
    loops is long only at many times the length. Loops over formulas of single numbers are worth
    more where divisions and roots take their time, since registers of several do these at once.
    """
    lines = text.count("\n")
    has_slots = text.count("= alloca ") > _PLAIN_SLOTS
    if not (" = phi " in text or has_slots or _VECTOR.search(text)):
        return 0
    if lines < LONG_PROGRAM_LINES:
        return 2 if _has_slow_formulas(text) else 1
    is_looping = 4 * lines_in_loops(text) >= lines
    return int(is_looping and lines < _LOOPING * LONG_PROGRAM_LINES)


def _has_slow_formulas(text: str) -> bool:
    """Whether rounds of control flow spend their time with divisions and roots of numbers."""
    if not _ROUNDS.search(text):
        return False
    slow = len(_SLOW.findall(text))
    return slow >= _MANY_SLOW and _SHARE * slow >= len(_FAST.findall(text))


def lines_in_loops(text: str) -> int:
    """Lines of a program that stand in loops, but for those of a ``scan`` of a few rounds."""
    total = start = 0
    open_loops: list[str] = []
    for label in _LOOP.finditer(text):
        hint = label[1]
        if label[2] == "h":
            start = start if open_loops else label.end()
            open_loops.append(hint)
        elif open_loops and open_loops[-1] == hint:
            open_loops.pop()
            total += 0 if open_loops else text.count("\n", start, label.start())
    return total


_LOOP = re.compile(r"^(?!few)([a-z]+)_([hd])\d+:", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Recipe:
    """What is kept on disk of a native part, beside the program that it shares with others.

    Attributes:
      program: name of the program among those in the cache.
      symbols: library functions that it refers to, by symbol.
      parameters: the sizes that this part calls it with.
      wrapper: object code of what Python calls.
    """

    program: str
    symbols: Mapping[str, str]
    parameters: tuple[int, ...]
    wrapper: bytes

    def packed(self) -> bytes:
        """The recipe as bytes."""
        return packed([self.program, self.symbols, self.parameters], self.wrapper)

    @staticmethod
    def unpacked(data: bytes) -> _Recipe:
        """The recipe from :meth:`packed`."""
        (program, symbols, parameters), wrapper = unpacked(data)
        return _Recipe(program, symbols, tuple(parameters), wrapper)


_programs: weakref.WeakValueDictionary[str, engine.Loaded] = weakref.WeakValueDictionary()
"""Programs in this process, by name: calls of other extents share them."""


def _native_function(
    part: NativePart,
    donated: Mapping[int, int],
    alike: dict[str, NativeFunction],
    is_quick: bool,
    progress: Progress,
) -> NativeFunction:
    """The function of a part: that of an earlier part of the program, from disk, or made anew.

    Args:
      part: the part.
      donated: arguments whose memory results take over.
      alike: functions of the program's parts, by what they depend on; this one is added.
      is_quick: whether a long one begins with code that is not optimised.
      progress: where to report.
    """
    entry = replace(entry_of(part), donated=donated)
    cache = object_cache()
    key, text = _key_of(part.jaxpr, entry)
    if key in alike:  # steps of a Python loop
        progress.advance(_STAGES)
        return replace(alike[key], part=part)
    data = cache.get(key)
    if data is not None:
        try:
            recipe = _Recipe.unpacked(data)
            function = _found(part, entry, recipe, is_quick)
            if function is not None:
                alike[key] = function
                progress.advance(_STAGES)
                return function
        except (CompilationError, LookupError, ValueError, struct.error):
            pass  # an entry that does not load is made anew
    progress.say("LLVM's text")
    if text is None:
        text = write_program(part.jaxpr)
    progress.advance()
    progress.say("machine code")
    entry = replace(entry, parameters=text.table)
    wrapper = Module()
    emit_entry(wrapper, entry)
    level = optimisation_level(text.text)
    name = cache_key("program", engine.target(), level, _digest(text.text))
    recipe = _Recipe(name, dict(text.symbols), text.table, engine.compile_object(str(wrapper), 0))
    is_long = text.text.count("\n") >= QUICK_LINES
    if is_quick and level and is_long and name not in _programs and _is_short_run(part.jaxpr):
        program = _shared_program(recipe, lambda: engine.compile_object(text.text, 0), _QUICK)
        function = _exchanged(part, entry, recipe, program)
    else:
        program = _shared_program(recipe, lambda: engine.compile_object(text.text, level))
        function = _assembled(part, entry, recipe, program, was_cached=False)
    cache.put(key, recipe.packed())
    progress.advance()
    alike[key] = function
    return function


def _found(
    part: NativePart, entry: Entry, recipe: _Recipe, is_quick: bool
) -> NativeFunction | None:
    """The function of a recipe whose program is in this process or on disk."""
    try:
        program = _shared_program(recipe)
    except LookupError:
        if not is_quick:
            return None
        program = _shared_program(recipe, suffix=_QUICK)
        return _exchanged(part, entry, recipe, program, was_cached=True)
    return _assembled(part, entry, recipe, program, was_cached=True)


def _exchanged(
    part: NativePart,
    entry: Entry,
    recipe: _Recipe,
    program: engine.Loaded,
    was_cached: bool = False,
) -> NativeFunction:
    """A function of quick code, which is exchanged if calls take long."""
    function = _assembled(part, entry, recipe, program, was_cached)

    def better() -> Callable[..., Any]:
        def code() -> bytes:
            text = write_program(part.jaxpr).text
            return engine.compile_object(text, optimisation_level(text))

        return _assembled(part, entry, recipe, _shared_program(recipe, code), was_cached).call

    return replace(function, call=Exchanged(function.call, better, part.jaxpr.name))


def _key_of(jaxpr: Jaxpr, entry: Entry) -> tuple[str, ProgramText | None]:
    """The name of a native part's entry in the cache, and its text if that had to be written.

    Beside what every key contains (``cache_key``), it is made of

    - the target: the triple, the processor and its features, of LLVM and llvmlite the versions;
    - the structure of the prepared program: equations, parameters, types, literals and constants by
      content. What a rule writes for them is a part of the source. A primitive that is not
      functrans' own may be any, and so may what a Python function stands for: there the text that
      they wrote counts, with the sizes that it reads from its table;
    - arguments whose values the code contains;
    - the entry: how arguments are checked, results are made, which memory results take over.

    Lines, names and scopes of the program are not in it: errors are numbers, which the present
    program explains. Nor are addresses of library functions, which are looked up at each load;
    code does not depend on the width of their integers. The program that parts share has a name of
    its own: target, level of optimisation and text.
    """
    text: ProgramText | None = None
    try:
        identity = jaxpr.structural_hash()
    except UnsupportedOperationError:
        text = write_program(jaxpr)
        identity = _digest(text.text, *text.parameters)
    known = known_values(jaxpr)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    values = [known[var].tobytes().hex() if var in known else "" for var in inputs]
    return cache_key("part", engine.target(), identity, _digest(*values), entry), text


def _digest(*texts: str) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


_QUICK = ".quick"
"""Behind the name of a program: its code at level 0."""


def _shared_program(
    recipe: _Recipe, make: Callable[[], bytes] | None = None, suffix: str = ""
) -> engine.Loaded:
    """The loaded program of a recipe: from this process, from disk, or made.

    Raises:
      LookupError: it is nowhere, and nothing makes it.
    """
    name = recipe.program + suffix
    known = _programs.get(name)
    if known is not None:
        return known
    cache = object_cache()
    symbols = {symbol: address(library) for symbol, library in recipe.symbols.items()}
    code = cache.get(name)
    if code is not None:
        try:
            return _programs.setdefault(name, engine.load_object(code, symbols))
        except CompilationError:
            pass  # made anew
    if make is None:
        raise LookupError(name)
    code = make()
    cache.put(name, code)
    return _programs.setdefault(name, engine.load_object(code, symbols))


def _assembled(
    part: NativePart, entry: Entry, recipe: _Recipe, program: engine.Loaded, was_cached: bool
) -> NativeFunction:
    entry = replace(entry, parameters=recipe.parameters)
    symbols = {**entry_symbols(entry), entry.program: program.address("program")}
    wrapper = engine.load_object(recipe.wrapper, symbols, uses=(program,))
    return NativeFunction(part, make_function(wrapper, entry), entry, program, was_cached)
