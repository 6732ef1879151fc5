"""Staging a function once and running its program: the transform ``jit``.

Here: ``jit``, its cache, and what a jitted function tells about itself. Not here: how a program is
run and when it is compiled (``control.native``), rewriting (``passes``), reports
(``control.explanations``).

A call is looked up by what the program depends on: structure of the arguments, shape, dtype and
weakness of every leaf, static values, configuration, and the named axes of the ``vmap`` around it.
Arrays that the function refers to are operands of the program, read anew at every call; a program
that refers to traced values of an enclosing transform is used once and not kept. The cache belongs
to the jitted function and is bounded.

Layer: ``control``.
"""

from __future__ import annotations

import functools
import inspect
import sys
import time
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Lock
from typing import Any

import numpy as np

from functrans import tree
from functrans.caching import Table
from functrans.compiler.compiled import Compiled, native_error
from functrans.compiler.execution import execution_of
from functrans.compiler.inspect import Plan
from functrans.compiler.interop import CFunction
from functrans.control import shared
from functrans.control.captured import for_compiler as for_compiler
from functrans.control.captured import in_order, prepare_to_compile
from functrans.control.direct import Direct, direct_call, structured
from functrans.control.explanations import Explanation, Origin, explain, origin
from functrans.control.guards import StagedPath, check_all_paths, of_one_path, stage_path
from functrans.control.hidden_state import global_generator, warn_of_draws
from functrans.control.inline import inline_calls
from functrans.control.lowered import CallKind, Lowered, LoweredStep
from functrans.control.native import PRIMITIVES as PRIMITIVES
from functrans.control.native import as_compiled, call_program
from functrans.control.native import jit_p as jit_p
from functrans.control.native import run as run
from functrans.control.programs import hoist
from functrans.control.signatures import matched, names_of, numbers_of
from functrans.control.specialize import Path, Paths, facts_of
from functrans.errors import UnsupportedOperationError
from functrans.ir.avals import PYTHON_SCALARS, aval_of_plain
from functrans.ir.jaxpr import Jaxpr
from functrans.passes.simplify import exact_key, simplify
from functrans.staging import stage
from functrans.state import Config, config, current_config, open_traces
from functrans.trace import Tracer, aval_of, innermost_staging
from functrans.traces.answers import answering
from functrans.traces.common import plain_value
from functrans.transforms.arguments import (
    ShapeDtypeStruct,
    call_traced,
    canonical,
    check_callable,
    name_of,
    result_leaf,
    take_over,
)

_MAX_PROGRAMS = 256
MAX_PATHS = 64
"""Paths of a function that is specialised, per kind of arguments."""


# the cache --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A staged call.

    Attributes:
      jaxpr: ``(*captured, *leaves) -> leaves of the result``.
      captured: arrays and tracers that the function refers to.
      treedef: structure of the result.
      donated: positions of operands, ``(*captured, *leaves)``, that the caller gives away.
      origin: the kind of call that it was staged for.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    treedef: Any
    donated: tuple[int, ...]
    origin: Origin

    @property
    def native(self) -> Compiled | None:
        """Its machine code, if there is any so far."""
        return execution_of(self.jaxpr).codes.get(bool(self.donated))


_tensors: list[Any] = []
"""What knows how to stage functions on tensors, once the imperative side is in use."""


def install_tensors(imperative: Any) -> None:
    """Let ``jit`` hand functions that work on tensors to the imperative side."""
    _tensors[:] = [imperative]


_DEFAULT_CONFIG = current_config.get()
_LEAF_TYPES = frozenset({np.ndarray, float, int, complex, bool, np.float64, np.float32})


def _unwatched(settings: Config) -> Config | None:
    """What a program depends on of a configuration: looking for NaN changes no program."""
    if settings.nan_watch is None:
        return settings
    settings = replace(settings, nan_watch=None)
    return None if settings == _DEFAULT_CONFIG else settings


def _is_leaf(arg: Any) -> bool:
    """Whether an argument is surely no container."""
    return type(arg) in _LEAF_TYPES or isinstance(arg, Tracer)


def _leaf_key(leaf: Any) -> Hashable:
    """What a program depends on of a leaf; ``None`` for what is no array of numbers."""
    cls: type[Any] = type(leaf)
    if cls is np.ndarray:
        dtype = leaf.dtype
        return (leaf.shape, dtype) if dtype.isnative and dtype.kind in "fciub" else None
    if cls in PYTHON_SCALARS:
        return cls  # type: ignore[return-value]  # a class has a hash
    if isinstance(leaf, Tracer):
        aval = leaf.aval
        return _WEAK_KEYS[aval.dtype.kind] if aval.weak else (aval.shape, aval.dtype)
    return None


def _folded(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[tuple[Any, ...], Any]:
    """The arguments with arrays of dtype ``float0`` as parts of their structure."""
    folded: tuple[Any, ...] = tree.fold_float0(args)
    return folded, tree.fold_float0(kwargs)


_WEAK_KEYS: dict[str, Hashable] = {"b": bool, "i": int, "f": float, "c": complex}


def _axes() -> Hashable:
    """Named axes that collectives may refer to, with sizes."""
    return tuple(
        item for trace in open_traces.get() if trace.is_staging for item in trace.axes.items()
    )


class JitFunction:
    """A function that is staged once per kind of arguments and then run as a program.

    Made by :func:`jit`.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: frozenset[str],
        donate_argnums: tuple[int, ...],
        donate_argnames: frozenset[str],
        specialize: bool = False,
        max_paths: int = MAX_PATHS,
        state: Any = None,
    ) -> None:
        take_over(self, fun)
        self._fun = fun
        self._state = state
        self._name = name_of(fun)
        self._label = f"jit of {self._name}"
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._donate_argnums = donate_argnums
        self._donate_argnames = donate_argnames
        self._specialize = specialize
        self._max_paths = max_paths
        self._options = (
            static_argnums, static_argnames, donate_argnums, donate_argnames, specialize, max_paths,
        )  # fmt: skip
        self._programs: Table[Hashable, _Program] = Table("jitted programs", _MAX_PROGRAMS)
        self._specialized: Table[Hashable, Paths] = Table("jitted paths", _MAX_PROGRAMS)
        """The paths of calls that are specialised, by kind of call."""
        self._imperative: Any = None
        """What the imperative side keeps of a function that works on tensors."""
        self._direct: Direct | None = None
        """The machine code of the last call, if that is all there is to do."""
        self._positional: Callable[..., Any] | None = None
        """The same as a function of the arguments, where these and the result are arrays."""
        with _functions_lock:
            _functions.add(self)
        if _tensors:
            _tensors[0].note_made(self)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function through its program."""
        settings = current_config.get()
        positional = self._positional
        if positional is not None and settings is _DEFAULT_CONFIG and not kwargs:
            result = positional(*args)
            if result is not NotImplemented:
                if type(result) is int:  # arguments that were given away cannot be used again
                    raise self._error_of(positional, result)
                return result
        if not settings.jit:
            return call_traced(self._fun, *args, **kwargs)
        if not kwargs and not self._static_argnums and all(map(_is_leaf, args)):
            leaves: list[Any] = list(args)
            treedef: Any = len(args)
            static: Hashable = ()
        else:
            leaves, treedef, static = self.split(args, kwargs)
        direct = self._direct
        if (
            direct is not None
            and settings is _DEFAULT_CONFIG
            and direct.treedef == treedef
            and direct.static == static
        ):
            result = direct.call(*leaves)
            if result is not NotImplemented:
                if type(result) is int:
                    raise self._error_of(direct.call, result)
                return structured(direct.result, result)
        tensors = _tensors[0] if _tensors else None
        if tensors is not None:
            if tensors.is_staging:  # a part of the step around it
                tensors.meet(self)
                return call_traced(self._fun, *args, **kwargs)
            if tensors.is_known(self) or any(map(tensors.is_tensor, leaves)):
                return tensors.call(self, args, kwargs)
        keys = [_leaf_key(leaf) for leaf in leaves]
        if None in keys:
            if any(map(tree.is_float0, leaves)):
                args, kwargs = _folded(args, kwargs)
                leaves, treedef, static = self.split(args, kwargs)
            leaves = self._canonical(leaves, args, kwargs)
            keys = [_leaf_key(leaf) or aval_of_plain(leaf) for leaf in leaves]
        axes = _axes() if open_traces.get() else ()
        key = (
            treedef,
            static,
            tuple(keys),
            None if settings is _DEFAULT_CONFIG else _unwatched(settings),
            axes,
        )
        if self._specialize or settings.specialize:
            return self._call_specialized(key, leaves, args, kwargs)
        program = self._programs.used(key) or self._find_shared(key)
        if program is None:
            if tensors is None:
                program = self._stage(key, args, kwargs)
            else:
                with tensors.looking_for_tensors(self) as found:
                    program = self._stage(key, args, kwargs)
                if found:
                    return tensors.call(self, args, kwargs)
                assert program is not None
        operands = (*program.captured, *leaves)
        if axes and not any(isinstance(operand, Tracer) for operand in operands):
            outs = list(run(program.jaxpr, operands))  # an axis index is traced all the same
        else:
            outs = call_program(program.jaxpr, operands, self._name, program.donated)
        if not axes and settings is _DEFAULT_CONFIG:  # one without axes is right among any
            direct = direct_call(program, treedef, static)
            is_flat = direct is not None and direct.result is None and treedef == len(args)
            self._direct = direct
            self._positional = direct.call if direct is not None and is_flat else None
        return tree.unflatten(program.treedef, outs)

    @property
    def function(self) -> Callable[..., Any]:
        """The function that is staged."""
        return self._fun

    @property
    def state(self) -> Any:
        """What ``state=`` declares."""
        return self._state

    def with_function(self, fun: Callable[..., Any]) -> JitFunction:
        """Another function jitted in the same way."""
        return JitFunction(fun, *self._options, self._state)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<jit of f>``."""
        return f"<{self._label}>"

    def __reduce__(self) -> Any:
        """Pickled by name where the name leads here, else as its function; without programs."""
        name: str = getattr(self, "__qualname__", "")
        place: Any = sys.modules.get(self.__module__)
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is self:
            return name
        return JitFunction, (self._fun, *self._options, self._state)

    def _find_shared(self, key: Any) -> _Program | None:
        """The program that another ``jit`` of the function staged for such a call."""
        static = key[1]
        program: _Program | None = None if static else shared.find(self._fun, (self._options, key))
        if program is not None:
            self._programs[key] = program
        return program

    # paths

    def _call_specialized(
        self, key: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """Call the function along the path that the values of the arguments lead."""
        values = list(map(plain_value, leaves))
        staging = innermost_staging()
        is_answered = staging is not None and staging.answers is not None
        if is_answered or key[-1] or any(value is None for value in values):
            return self._call_within(args, kwargs)
        paths = self._specialized.get(key) or self._new_paths(key)
        tensors = _tensors[0] if _tensors else None

        def trace() -> Path | None:
            if tensors is None:
                return self._trace_path(args, kwargs, values)
            with tensors.looking_for_tensors(self):
                return self._trace_path(args, kwargs, values)
            return None  # there were some

        result = paths.call(leaves, values, trace)
        if result is NotImplemented:
            return tensors.call(self, args, kwargs)  # type: ignore[union-attr]  # they were found
        if current_config.get() is _DEFAULT_CONFIG and paths.has_quick():
            treedef, static = key[:2]
            is_flat = treedef == len(args) and not kwargs
            self._direct = Direct(paths.quick, treedef, static, None)
            self._positional = paths.quick if is_flat else None
        return result

    def _call_within(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Call the function as a part of what is being traced around it."""
        staging = innermost_staging()
        with answering(staging):
            result = call_traced(self._fun, *args, **kwargs)
        outs, treedef = tree.flatten_folded(result)
        leaves = [result_leaf(out, self._label, result, i) for i, out in enumerate(outs)]
        return tree.unflatten(treedef, leaves)

    def _new_paths(self, key: Any) -> Paths:
        """The paths of a kind of call; those of another ``jit`` of the function, if there are."""
        shares = not key[1]  # static values might hold the function, and so keep it alive
        found = shared.find(self._fun, (self._options, key)) if shares else None
        own = found or Paths(self._label, self._name, self._max_paths)
        paths = self._specialized.kept(key, own)
        if shares and found is None and paths is own:
            shared.keep(self._fun, (self._options, key), paths)
        return paths

    def _trace_path(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], values: Sequence[Any]
    ) -> Path:
        """Trace the path of a call."""
        start = time.perf_counter()
        staged, treedef = self._stage_path(args, kwargs, values)
        staging_s = time.perf_counter() - start
        source = self._origin(staged.jaxpr, args, kwargs, staging_s)
        facts = {**source.facts, **facts_of(staged.guards)}
        return Path(staged, treedef, replace(source, facts=facts))

    def _stage_path(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], values: Sequence[Any]
    ) -> tuple[StagedPath, Any]:
        """The simplified program of the path of a call, with guards, and its structure."""
        leaves, treedef, _ = self.split(args, kwargs)
        flat, structure = self._flat(args, kwargs, treedef)
        generator = global_generator()
        staged = stage_path(
            flat,
            list(map(aval_of, self._canonical(leaves, args, kwargs))),
            values,
            self._label,
            name=name_of(self._fun),
            arg_names=self._paths(args, kwargs),
        )
        warn_of_draws(self._label, generator)
        return replace(staged, jaxpr=simplify(inline_calls(staged.jaxpr, jit_p))), structure[0]

    # arguments

    def _static_positions(self, n_args: int) -> set[int]:
        return {i % n_args for i in self._static_argnums if -n_args <= i < n_args}

    def split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], Any, Hashable]:
        """Leaves and structure of the traced arguments, and a key of the rest.

        The rest are the static ones, and the orders of dicts, which their structure leaves open.
        """
        names = self._static_argnames
        if not names and not self._static_argnums:
            return *tree.flatten((args, kwargs)), tree.dict_orders((args, kwargs))
        positions = self._static_positions(len(args))
        static: list[Any] = [
            (i, exact_key(self._hashable(args[i], args, i))) for i in sorted(positions)
        ]
        static += [
            (name, exact_key(self._hashable(kwargs[name], args, name)))
            for name in sorted(names & kwargs.keys())
        ]
        if static:
            args = tuple([arg for i, arg in enumerate(args) if i not in positions])
            kwargs = {name: value for name, value in kwargs.items() if name not in names}
        leaves, treedef = tree.flatten((args, kwargs))
        return leaves, treedef, (*static, *tree.dict_orders((args, kwargs)))

    def call_with(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], treedef: Any, leaves: Sequence[Any]
    ) -> Any:
        """Call the function itself, with other leaves in place of those that ``split`` gave."""
        full, named, _ = self.arguments_with(args, kwargs, treedef, leaves)
        return call_traced(self._fun, *full, **named)

    def arguments_with(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], treedef: Any, leaves: Sequence[Any]
    ) -> tuple[list[Any], dict[str, Any], Any]:
        """The arguments with other leaves in place of those that ``split`` gave.

        Returns:
          Positional ones, those by name, and the traced ones of both in their containers.
        """
        positions = self._static_positions(len(args))
        traced, traced_kwargs = tree.unflatten(treedef, list(leaves))
        given = iter(traced)
        full = [arg if i in positions else next(given) for i, arg in enumerate(args)]
        static = {k: v for k, v in kwargs.items() if k in self._static_argnames}
        return full, {**traced_kwargs, **static}, (traced, traced_kwargs)

    def _hashable(self, value: Any, args: tuple[Any, ...], place: int | str) -> Any:
        """A static value, which came at a position or under a name.

        Raises:
          TypeError: it cannot be hashed.
        """
        try:
            hash(value)
        except TypeError:
            name = self._names(args)[place] if isinstance(place, int) else place
            raise TypeError(
                f"{self._label}: static argument {name} is a {type(value).__name__}, which cannot "
                "be hashed, so that its program could not be found again; pass a tuple, a string "
                "or a frozen dataclass, or make it a traced argument if it holds arrays"
            ) from None
        return value

    def _names(self, args: tuple[Any, ...]) -> list[str]:
        """A name for each positional argument: that of the parameter it is bound to."""
        try:
            bound = inspect.signature(self._fun).bind_partial(*args).arguments
        except (TypeError, ValueError):
            return [f"args[{i}]" for i in range(len(args))]
        names: list[str] = []
        for name, value in bound.items():
            if len(names) + 1 < len(args) and name == list(bound)[-1]:  # *args takes the rest
                names.extend(f"{name}[{i}]" for i in range(len(value)))
            else:
                names.append(name)
        return names if len(names) == len(args) else [f"args[{i}]" for i in range(len(args))]

    def _paths(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[str]:
        """Key paths of the leaves of the traced arguments."""
        positions = self._static_positions(len(args))
        paths: list[str] = []
        for i, (name, arg) in enumerate(zip(self._names(args), args, strict=True)):
            if i not in positions:
                paths.extend(tree.key_paths(arg, name))
        for name in sorted(kwargs):
            if name not in self._static_argnames:
                paths.extend(tree.key_paths(kwargs[name], name))
        return paths

    def _canonical(
        self, leaves: list[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> list[Any]:
        """Leaves as arrays, numbers or tracers."""
        values = []
        for i, leaf in enumerate(leaves):

            def describe(i: int = i) -> str:
                return f"{self._label}: {self._paths(args, kwargs)[i]}"

            if not isinstance(leaf, (np.ndarray, Tracer)) and aval_of_plain(leaf) is None:
                raise UnsupportedOperationError(
                    f"{describe()} is of type {type(leaf).__qualname__}, not an array of numbers; "
                    "make the argument static (static_argnums, static_argnames) if the program "
                    "depends on its value, or convert it with np.asarray(x)"
                )
            values.append(canonical(leaf, describe))
        return values

    def _donated(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
        """Positions of the leaves that are given away; numbers are not worth it."""
        if not self._donate_argnums and not self._donate_argnames:
            return ()
        n_args, static = len(args), self._static_positions(len(args))
        positions = {i % n_args for i in self._donate_argnums if -n_args <= i < n_args}
        groups = [(arg, i in positions) for i, arg in enumerate(args) if i not in static]
        groups += [
            (kwargs[name], name in self._donate_argnames)
            for name in sorted(kwargs)
            if name not in self._static_argnames
        ]
        leaves = [(leaf, given) for arg, given in groups for leaf in tree.leaves(arg)]
        return tuple([i for i, (leaf, given) in enumerate(leaves) if given and np.ndim(leaf)])

    def _error_of(self, call: Callable[..., Any], status: int) -> Exception:
        """The exception that machine code ended with."""
        function = call.func if isinstance(call, functools.partial) else call
        for program in self.kept_programs():
            native = program.native
            if native is not None and native.direct is not None and native.direct.call is function:
                return native_error(native.direct.part.jaxpr, status)
        return RuntimeError(f"{self._label}: a compiled program that is no longer kept failed")

    # staging

    def _stage(self, key: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Program:
        """Stage a call and keep its program, unless that refers to traced values."""
        start = time.perf_counter()
        closed, treedef = self._stage_closed(args, kwargs)
        jaxpr, captured = hoist(closed)
        captured = tuple(map(in_order, captured))
        prepare_to_compile(jaxpr, captured)
        donated = tuple([len(captured) + i for i in self._donated(args, kwargs)])
        staging_s = time.perf_counter() - start
        program = _Program(
            jaxpr, captured, treedef, donated, self._origin(closed, args, kwargs, staging_s)
        )
        if any(isinstance(value, Tracer) for value in captured):
            return program
        self._programs[key] = program
        if not key[1]:  # static values might hold the function, and so keep it alive
            shared.keep(self._fun, (self._options, key), program)
        return program

    def _origin(
        self, jaxpr: Jaxpr, args: tuple[Any, ...], kwargs: Mapping[str, Any], staging_s: float
    ) -> Origin:
        """What the program of a call depends on."""
        names = self._names(args)
        static = {names[i]: args[i] for i in sorted(self._static_positions(len(args)))}
        static |= {k: kwargs[k] for k in sorted(kwargs) if k in self._static_argnames}
        axes: Any = _axes() if open_traces.get() else ()
        paths = self._paths(args, kwargs)
        _, treedef, _ = self.split(args, kwargs)
        settings = current_config.get()
        return origin(paths, jaxpr.in_avals, static, settings, axes, staging_s, [*kwargs], treedef)

    def _stage_closed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Jaxpr, Any]:
        """The simplified program of a call, with captured arrays as constants."""
        leaves, treedef, _ = self.split(args, kwargs)
        structs = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, ShapeDtypeStruct)}
        for i in structs:
            leaves[i] = 0.0
        leaves = self._canonical(leaves, args, kwargs)
        avals = [structs[i].aval if i in structs else aval_of(x) for i, x in enumerate(leaves)]
        if not structs and (self._specialize or current_config.get().specialize):
            values = list(map(plain_value, leaves))
            if all(value is not None for value in values):
                path, out_treedef = self._stage_path(args, kwargs, values)
                return of_one_path(path), out_treedef
        flat, structure = self._flat(args, kwargs, treedef)
        generator = global_generator()
        jaxpr = stage(
            flat,
            avals,
            self._label,
            name=name_of(self._fun),
            arg_names=self._paths(args, kwargs),
        )
        warn_of_draws(self._label, generator)
        return simplify(inline_calls(jaxpr, jit_p)), structure[0]

    def _flat(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any], treedef: Any
    ) -> tuple[Callable[..., list[Any]], list[Any]]:
        """The function of leaves, and where it leaves the structure of its result."""
        structure: list[Any] = []

        def flat(*tracers: Any) -> list[Any]:
            result = self.call_with(args, kwargs, treedef, tracers)
            outs, out_treedef = tree.flatten_folded(result)
            structure.append(out_treedef)
            return [result_leaf(out, self._label, result, i) for i, out in enumerate(outs)]

        return flat, structure

    # inspection

    def jaxpr(self, *args: Any, **kwargs: Any) -> Jaxpr:
        """The simplified program for arguments like these; captured arrays are its constants.

        That of a function on tensors has the tensors that it reaches as first arguments.
        """
        staged = self._closed_or_step(args, kwargs)
        return staged.jaxpr if isinstance(staged, LoweredStep) else staged[0]

    def _closed_or_step(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Jaxpr, Any] | LoweredStep:
        """The program of a call; that of a step if the function works on tensors."""
        args, kwargs = _folded(args, kwargs)
        tensors = _tensors[0] if _tensors else None
        if tensors is None:
            return self._stage_closed(args, kwargs)
        if not tensors.is_known(self) and not any(
            map(tensors.is_tensor, tree.leaves((args, kwargs)))
        ):
            closed = None
            with tensors.looking_for_tensors(self) as found:
                closed = self._stage_closed(args, kwargs)
            if not found:
                assert closed is not None
                return closed
        step: LoweredStep = tensors.lower(self, args, kwargs)
        return step

    def cost(self, *args: Any, **kwargs: Any) -> Any:
        """Flops, bytes and peak memory of the program for arguments like these.

        Args:
          *args: arrays or ``ShapeDtypeStruct``, and static arguments as they are.
          **kwargs: likewise.

        Returns:
          A ``Cost``; see ``Jaxpr.cost``.

        Example:
          >>> import numpy as np
          >>> jit(lambda x: x @ x).cost(np.ones((10, 10))).flops
          2000.0
        """
        return self.lower(*args, **kwargs).jaxpr.cost()

    def lower(self, *args: Any, **kwargs: Any) -> Lowered | LoweredStep:
        """Stage the function for arguments like these, without running it.

        Args:
          *args: arguments of the function; a ``ShapeDtypeStruct`` stands for an array.
          **kwargs: likewise.

        Returns:
          An object with the attributes ``jaxpr``, ``plan``, ``llvm`` and ``asm``, and the method
          ``compile()``; this only for functions without tensors.
        """
        staged = self._closed_or_step(args, kwargs)
        if isinstance(staged, LoweredStep):
            return staged
        jaxpr, treedef = staged
        args, kwargs = _folded(args, kwargs)
        _, in_treedef, static = self.split(args, kwargs)
        kind = CallKind(in_treedef, static, treedef, self._donated(args, kwargs))
        return Lowered(self, jaxpr, kind, *for_compiler(jaxpr))

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

    def explain(self) -> Explanation:
        """Why the function was staged and compiled, once for each program that it keeps.

        Example:
          >>> import numpy as np
          >>> f = jit(lambda x: x + 1.0)
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
        found: list[Any] = [*self.kept_programs(), *self._steps()]
        programs = sorted(found, key=lambda program: program.origin.number)
        told = [(p.origin, p.jaxpr, getattr(p, "taken", None)) for p in programs]
        return explain(self._label, told, current_config.get())

    def _steps(self) -> list[Any]:
        """The programs of a function that works on tensors."""
        return [] if self._imperative is None else self._imperative.kept()

    def as_cfunc(self, *args: Any, **kwargs: Any) -> CFunction:
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
          >>> slope = jit(ft.grad(lambda x: x**3)).as_cfunc(1.0)
          >>> slope.signature
          'double ft_grad_lambda(double)'
          >>> round(quad(slope.low_level_callable(), 0.0, 2.0)[0], 12)
          8.0
        """
        staged = self._closed_or_step(args, kwargs)
        if isinstance(staged, LoweredStep):
            raise UnsupportedOperationError(
                f"{self._label} works on tensors, which a C function cannot; write it as a "
                "function of arrays"
            )
        check_all_paths(staged[0], "as_cfunc")
        jaxpr, captured = for_compiler(staged[0])
        return CFunction(as_compiled(jaxpr), captured, self._name)

    def kept_programs(self) -> list[_Program | Path]:
        """The programs in the cache, one per path of calls that are specialised."""
        programs: list[_Program | Path] = [*self._programs.all()]
        for paths in self._specialized.all():
            programs.extend(paths.kept())
        return programs

    def clear_cache(self) -> None:
        """Forget all programs."""
        self._programs.clear()
        self._specialized.clear()
        self._direct = self._positional = None
        shared.forget(self._fun)
        if self._imperative is not None:
            self._imperative.clear()

    @property
    def cache_size(self) -> int:
        """Number of programs kept."""
        return len(self.kept_programs()) + len(self._steps())


_functions: weakref.WeakSet[JitFunction] = weakref.WeakSet()
"""The jitted functions that are alive, for ``clear_caches`` and ``cache_statistics``."""
_functions_lock = Lock()


def jitted_functions() -> list[JitFunction]:
    """The jitted functions that are alive."""
    with _functions_lock:
        return list(_functions)


# the transform ----------------------------------------------------------------------------------


def jit(
    fun: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    specialize: bool = False,
    max_paths: int = MAX_PATHS,
    state: Any = None,
) -> Any:
    """Stage a function into a program once per kind of arguments, compile it, and run that.

    Args:
      fun: function of pytrees of arrays. It runs once for each kind of arguments, on shapes and
        dtypes without values.
      static_argnums: positions of arguments that the function gets as they are; the program
        depends on their values, which must be hashable.
      static_argnames: names of such arguments; with one of the two given, the other is found in
        the signature.
      donate_argnums: positions of arguments that the caller gives away: results may take over
        their arrays, whose contents are not specified afterwards. All other arrays stay as they
        are.
      donate_argnames: names of such arguments, completed as above.
      specialize: whether Python may ask for truths, integers and indices of traced arguments
        (``if x > 0``, ``while error > tolerance``, ``range(int(n))``). The function runs once for
        each path that values lead through it, and each path has a program.
      max_paths: how many paths there may be for one kind of arguments.
      state: what a function on tensors reads and writes beside its arguments: modules, optimizers,
        tensors, containers of these and of numbers, objects that say by ``state_of_steps()`` what
        they hold, or a function that reads it at each call. A number that changes counts in the
        next call, and what the function changes is written back. Without it, numbers and objects
        count that the function names itself, or that its object holds; whatever else Python code
        reads is a constant.
    Returns:
      Function with the arguments of ``fun``; results are arrays that share no memory with
      arguments that are not given away. ``.lower(*args)``, ``.jaxpr(*args)``, ``.plan(*args)``,
      ``.llvm(*args)``, ``.asm(*args)``, ``.explain()``, ``.clear_cache()`` and ``.cache_size`` look
      inside; ``.as_cfunc(*args)`` is a C function. Without ``fun``, a decorator.
    Raises:
      ConcretizationError: (when called) ``fun`` asks for the value of a traced argument; with
        ``specialize`` for a float.
      PathLimitError: (when called) the function takes more than ``max_paths`` paths; names the line
        at which they part.
      TypeError: (when called) a static argument cannot be hashed.
      TypeError: ``state`` does not say what it holds.

    Example:
      >>> import numpy as np
      >>> jit(lambda x: 2.0 * x + 1.0)(np.arange(3.0))
      array([1., 3., 5.])
      >>> step = jit(lambda x, v: x + 0.1 * v, donate_argnames="x")
      >>> x = np.zeros(2)
      >>> step(x, np.ones(2)) is x
      True
      >>> root = jit(lambda x: np.sqrt(x) if x > 0 else -np.sqrt(-x), specialize=True)
      >>> root(4.0), root(-4.0), root(9.0), root.cache_size
      (array(2.), array(-2.), array(3.), 2)
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
            donate_argnames=donate_argnames,
            specialize=specialize,
            max_paths=max_paths,
            state=state,
        )
    if isinstance(max_paths, bool) or not isinstance(max_paths, int) or max_paths < 1:
        raise ValueError(f"jit: max_paths must be an integer from 1 on, got {max_paths!r}")
    check_callable("jit", fun)
    static = matched(
        fun,
        "static",
        numbers_of("static_argnums", static_argnums),
        names_of("static_argnames", static_argnames),
    )
    donated = matched(
        fun,
        "donate",
        numbers_of("donate_argnums", donate_argnums),
        names_of("donate_argnames", donate_argnames),
    )
    both = [*(str(i) for i in donated[0] if i in static[0]), *sorted(donated[1] & static[1])]
    if both:
        raise ValueError(f"jit: argument {both[0]} is static, so that it cannot be donated")
    if specialize and any(donated):
        raise ValueError(
            "jit: arguments cannot be donated with specialize=True: they are needed again where "
            "values lead along another path than in the last call"
        )
    if state is not None:
        if specialize:
            raise ValueError(
                "jit: a function with state= is staged whole; specialize=True is for functions of "
                "arrays alone: use functrans.lax.cond, or torch.where"
            )
        if not _tensors:
            raise TypeError(
                f"jit: state= is for functions on tensors, got a {type(state).__qualname__} before "
                "functrans.autograd was imported; import it, or pass what changes as an argument"
            )
        _tensors[0].check_state(state)
    return JitFunction(fun, *static, *donated, bool(specialize), max_paths, state)


@contextmanager
def disable_jit() -> Iterator[None]:
    """Let jitted functions run as they are, on values, for the duration of a ``with`` block.

    Example:
      >>> with disable_jit():
      ...     jit(lambda x: x if x > 0 else -x)(-2.0)
      2.0
    """
    with config(jit=False):
        yield
