"""Staging a function once and running its program: the primitive ``jit`` and the transform.

Here: the primitive, the function ``run`` that evaluates a program (the seam for compiled code),
``jit`` and its cache. Not here: evaluation (``passes.evaluate``), rewriting (``passes``).

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
import operator
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from functrans import tree
from functrans.compiler.compiled import Compiled, compile_or_warn, predicted_compile_s
from functrans.compiler.reference import evaluate_like_compiled
from functrans.control.calls import (
    Binder,
    call_batch,
    call_jvp,
    call_linearize,
    call_prune,
    call_transpose,
)
from functrans.control.inline import inline_calls
from functrans.control.programs import Flags, hoist
from functrans.errors import UnsupportedOperationError
from functrans.ir.avals import PYTHON_SCALARS, Aval, aval_of_plain
from functrans.ir.jaxpr import Jaxpr
from functrans.ir.lowering import Structured
from functrans.ir.primitive import Joint, Primitive
from functrans.passes.evaluate import evaluate
from functrans.passes.nodes import LinearProgram
from functrans.passes.simplify import exact_key, simplify
from functrans.staging import may_change, stage
from functrans.state import config, current_config, open_traces
from functrans.trace import Tracer, aval_of, bind
from functrans.transforms.arguments import (
    canonical,
    check_callable,
    name_of,
    own_arrays,
    result_leaf,
)

_MAX_PROGRAMS = 256


def run(jaxpr: Jaxpr, args: Sequence[Any]) -> Sequence[Any]:
    """Evaluate a program on plain values."""
    return evaluate(jaxpr, args)


def run_silently(jaxpr: Jaxpr, args: Sequence[Any]) -> Sequence[Any]:
    """Evaluate the program of a jitted function: compiled, or interpreted without warnings."""
    if current_config.get().compiler_math:
        return evaluate_like_compiled(jaxpr, args)
    native = native_program(jaxpr)
    if native is not None:
        with np.errstate(all="ignore"):
            return native(args)
    start = time.perf_counter()
    with np.errstate(all="ignore"):
        outs = run(jaxpr, args)
    jaxpr.cache["interpreted_s"] = (
        jaxpr.cache.get("interpreted_s", 0.0) + time.perf_counter() - start
    )
    return outs


def native_program(jaxpr: Jaxpr) -> Compiled | None:
    """The machine code of a program, made when it is first needed; ``None`` to interpret it."""
    settings = current_config.get()
    if not settings.native:
        return None
    cache = jaxpr.cache
    if "native" in cache:
        known: Compiled | None = cache["native"]
        return known
    if predicted_compile_s(jaxpr) > settings.compile_budget_s + cache.get("interpreted_s", 0.0):
        return None
    cache["native"] = native = compile_or_warn(jaxpr)
    return native


# the primitive ----------------------------------------------------------------------------------


def _jit_impl(*operands: Any, jaxpr: Jaxpr, name: str) -> tuple[Any, ...]:
    return tuple(run_silently(jaxpr, operands))


def _jit_aval(*avals: Aval, jaxpr: Jaxpr, name: str) -> tuple[Aval, ...]:
    return jaxpr.out_avals


def _jit_jvp(primals: Any, tangents: Any, *, jaxpr: Jaxpr, name: str) -> Any:
    return call_jvp(_binder(name), jaxpr, primals, tangents)


def _jit_linearize(
    needs: Flags, operands: Any, *, jaxpr: Jaxpr, name: str
) -> tuple[tuple[Any, ...], LinearProgram]:
    return call_linearize(_binder(name), jaxpr, needs, operands)


def _jit_transpose(cts: Any, operands: Any, *, jaxpr: Jaxpr, name: str) -> tuple[Any, ...]:
    return call_transpose(_binder(name), jaxpr, cts, operands)


def _jit_batch(size: int, operands: Any, dims: Any, *, jaxpr: Jaxpr, name: str) -> Any:
    return call_batch(_binder(name), jaxpr, size, operands, dims)


def _jit_prune(used: Flags, *, jaxpr: Jaxpr, name: str) -> Any:
    return call_prune(_binder(name), jaxpr, used)


jit_p = Primitive(
    "jit",
    impl=_jit_impl,
    abstract_eval=_jit_aval,
    jvp=Joint(_jit_jvp),
    linearize=_jit_linearize,
    transpose=_jit_transpose,
    batch=_jit_batch,
    prune=_jit_prune,
    lower=Structured("call"),
    holds_programs=True,
    is_call=True,
)


def _binder(name: str) -> Binder:
    return Binder(jit_p, (("name", name),))


# the cache --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A staged call.

    Attributes:
      jaxpr: ``(*captured, *leaves) -> leaves of the result``.
      captured: arrays and tracers that the function refers to.
      treedef: structure of the result.
      needs_trace: whether the program has an effect, which an enclosing program must see.
    """

    jaxpr: Jaxpr
    captured: tuple[Any, ...]
    treedef: Any
    needs_trace: bool


_DEFAULT_CONFIG = current_config.get()
_LEAF_TYPES = frozenset({np.ndarray, float, int, complex, bool, np.float64, np.float32})


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


_WEAK_KEYS: dict[str, Hashable] = {"b": bool, "i": int, "f": float, "c": complex}


def _axes() -> Hashable:
    """Named axes that collectives may refer to, with sizes."""
    return tuple(
        item for trace in open_traces.get() if trace.is_staging for item in trace.axes.items()
    )


def _in_order(value: Any) -> Any:
    """A captured array that nobody can change, laid out as machine code reads it."""
    if type(value) is np.ndarray and not may_change(value):
        return np.ascontiguousarray(value)
    return value


def _direct_call(
    program: _Program, args: Sequence[Any], treedef: Any
) -> Callable[..., Any] | None:
    """The machine code as a function of the arguments, where it needs nothing around it.

    It checks the arguments itself: whatever is not as it was is looked up again.
    """
    native = program.jaxpr.cache.get("native")
    if native is None or native.direct is None or treedef != len(args):
        return None
    call: Callable[..., Any] = native.direct.call
    if program.captured:
        call = functools.partial(call, *program.captured)
    entry = native.direct.entry
    flat = tree.unflatten(program.treedef, list(range(len(entry.outputs))))
    if entry.single:
        return call if flat == 0 else None
    return call if flat == tuple(range(len(entry.outputs))) else None


class JitFunction:
    """A function that is staged once per kind of arguments and then run as a program.

    Made by :func:`jit`.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        static_argnums: tuple[int, ...],
        static_argnames: frozenset[str],
    ) -> None:
        functools.update_wrapper(self, fun, updated=())
        self._fun = fun
        self._label = f"jit of {name_of(fun)}"
        self._static_argnums = static_argnums
        self._static_argnames = static_argnames
        self._programs: OrderedDict[Hashable, _Program] = OrderedDict()
        self._lock = Lock()
        self._direct: Callable[..., Any] | None = None
        """The machine code of the last call, if that is all there is to do."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function through its program."""
        settings = current_config.get()
        direct = self._direct
        if direct is not None and settings is _DEFAULT_CONFIG and not kwargs:
            result = direct(*args)
            if result is not NotImplemented and type(result) is not int:
                return result
        if not settings.jit:
            return self._fun(*args, **kwargs)
        if not kwargs and not self._static_argnums and all(map(_is_leaf, args)):
            leaves: list[Any] = list(args)
            treedef: Any = len(args)
            static: Hashable = ()
        else:
            leaves, treedef, static = self._split(args, kwargs)
        keys = [_leaf_key(leaf) for leaf in leaves]
        if None in keys:
            leaves = self._canonical(leaves, args, kwargs)
            keys = [_leaf_key(leaf) or aval_of_plain(leaf) for leaf in leaves]
        key = (
            treedef,
            static,
            tuple(keys),
            None if settings is _DEFAULT_CONFIG else settings,
            _axes() if open_traces.get() else (),
        )
        program = self._programs.get(key)
        if program is None:
            program = self._stage(key, args, kwargs)
        else:
            self._touch(key)
        operands = (*program.captured, *leaves)
        if program.needs_trace or any(isinstance(operand, Tracer) for operand in operands):
            outs = bind(jit_p, *operands, jaxpr=program.jaxpr, name=name_of(self._fun))
        else:
            outs = run_silently(program.jaxpr, operands)  # type: ignore[assignment]  # a list here
            self._direct = _direct_call(program, args, treedef)
        return tree.unflatten(program.treedef, own_arrays(outs, operands))

    @property
    def function(self) -> Callable[..., Any]:
        """The function that is staged."""
        return self._fun

    def with_function(self, fun: Callable[..., Any]) -> JitFunction:
        """Another function jitted in the same way."""
        return JitFunction(fun, self._static_argnums, self._static_argnames)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<jit of f>``."""
        return f"<{self._label}>"

    def _touch(self, key: Hashable) -> None:
        """Note a use, for the eviction of what was not used for longest."""
        with self._lock:
            if key in self._programs:
                self._programs.move_to_end(key)

    # arguments

    def _static_positions(self, n_args: int) -> set[int]:
        return {i % n_args for i in self._static_argnums if -n_args <= i < n_args}

    def _split(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], Any, Hashable]:
        """Leaves and structure of the traced arguments, and a key of the static ones."""
        positions = self._static_positions(len(args))
        names = self._static_argnames
        static: list[Any] = [
            (i, exact_key(self._hashable(args[i], self._names(args)[i]))) for i in sorted(positions)
        ]
        static += [
            (name, exact_key(self._hashable(kwargs[name], name)))
            for name in sorted(names & kwargs.keys())
        ]
        traced = [arg for i, arg in enumerate(args) if i not in positions]
        leaves, treedef = tree.flatten(
            (traced, {name: value for name, value in kwargs.items() if name not in names})
        )
        return leaves, treedef, tuple(static)

    def _hashable(self, value: Any, name: str) -> Any:
        """A static value.

        Raises:
          TypeError: it cannot be hashed.
        """
        try:
            hash(value)
        except TypeError:
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

    # staging

    def _stage(self, key: Hashable, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> _Program:
        """Stage a call and keep its program, unless that refers to traced values."""
        closed, treedef = self._stage_closed(args, kwargs)
        jaxpr, captured = hoist(closed)
        captured = tuple(map(_in_order, captured))
        program = _Program(jaxpr, captured, treedef, bool(jaxpr.effects))
        if any(isinstance(value, Tracer) for value in captured):
            return program
        with self._lock:
            self._programs[key] = program
            if len(self._programs) > _MAX_PROGRAMS:
                self._programs.popitem(last=False)
        return program

    def _stage_closed(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Jaxpr, Any]:
        """The simplified program of a call, with captured arrays as constants."""
        positions = self._static_positions(len(args))
        leaves, treedef, _ = self._split(args, kwargs)
        leaves = self._canonical(leaves, args, kwargs)
        static_kwargs = {k: v for k, v in kwargs.items() if k in self._static_argnames}
        structure: list[Any] = []

        def flat(*tracers: Any) -> list[Any]:
            traced, traced_kwargs = tree.unflatten(treedef, tracers)
            given = iter(traced)
            full = [arg if i in positions else next(given) for i, arg in enumerate(args)]
            result = self._fun(*full, **traced_kwargs, **static_kwargs)
            outs, out_treedef = tree.flatten(result)
            structure.append(out_treedef)
            return [result_leaf(out, self._label, result, i) for i, out in enumerate(outs)]

        jaxpr = stage(
            flat,
            [aval_of(leaf) for leaf in leaves],
            self._label,
            name=name_of(self._fun),
            arg_names=self._paths(args, kwargs),
        )
        return simplify(inline_calls(jaxpr, jit_p)), structure[0]

    # inspection

    def jaxpr(self, *args: Any, **kwargs: Any) -> Jaxpr:
        """The simplified program for arguments like these; captured arrays are its constants."""
        return self._stage_closed(args, kwargs)[0]

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """Stage the function for arguments like these, without running it."""
        jaxpr, treedef = self._stage_closed(args, kwargs)
        _, in_treedef, _ = self._split(args, kwargs)
        return Lowered(self, jaxpr, in_treedef, treedef)

    def clear_cache(self) -> None:
        """Forget all programs."""
        with self._lock:
            self._programs.clear()
            self._direct = None

    @property
    def cache_size(self) -> int:
        """Number of programs kept."""
        return len(self._programs)


class Lowered:
    """A jitted function staged for one kind of arguments.

    Attributes:
      jaxpr: its program.
    """

    def __init__(self, function: JitFunction, jaxpr: Jaxpr, in_treedef: Any, treedef: Any) -> None:
        self.jaxpr = jaxpr
        self._function = function
        self._in_treedef = in_treedef
        self._treedef = treedef

    def __repr__(self) -> str:
        """``Lowered(loss: f64[3] -> f64[])``."""
        given = ", ".join(map(str, self.jaxpr.in_avals))
        results = ", ".join(map(str, self.jaxpr.out_avals))
        return f"Lowered({self.jaxpr.name}: {given} -> {results})"

    def as_text(self) -> str:
        """The program as text."""
        return str(self.jaxpr)

    def compile(self) -> Callable[..., Any]:
        """The function for arguments of this kind only.

        Returns:
          Function that raises ``TypeError`` for arguments of another structure, shape or dtype.
        """
        jaxpr, captured = hoist(self.jaxpr)
        label = self._function._label

        def compiled(*args: Any, **kwargs: Any) -> Any:
            leaves, treedef, _ = self._function._split(args, kwargs)
            if treedef != self._in_treedef:
                raise TypeError(
                    f"{label}: compiled for arguments of structure "
                    f"{tree.describe(self._in_treedef)}, got {tree.describe(treedef)}"
                )
            values = self._function._canonical(leaves, args, kwargs)
            expected = jaxpr.in_avals[len(captured) :]
            for i, (value, aval) in enumerate(zip(values, expected, strict=True)):
                if aval_of(value) != aval:
                    path = self._function._paths(args, kwargs)[i]
                    raise TypeError(
                        f"{label}: {path} is {aval_of(value)}, but the function was compiled for "
                        f"{aval}; call the jitted function itself, or lower it again"
                    )
            operands = (*captured, *values)
            outs = bind(jit_p, *operands, jaxpr=jaxpr, name=jaxpr.name)
            return tree.unflatten(self._treedef, own_arrays(outs, operands))

        return compiled


# the transform ----------------------------------------------------------------------------------


def _numbers(name: str, value: Any) -> tuple[int, ...]:
    """Positions of arguments.

    Raises:
      TypeError: no int and no sequence of ints.
    """
    if value is None:
        return ()
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(item) for item in value)
    except TypeError:
        raise TypeError(
            f"jit: {name} must be an int or a sequence of ints, got {value!r}"
        ) from None


def _names(value: Any) -> tuple[str, ...]:
    """Names of arguments.

    Raises:
      TypeError: no str and no sequence of str.
    """
    if value is None:
        return ()
    names = (value,) if isinstance(value, str) else tuple(value)
    if not all(isinstance(item, str) for item in names):
        raise TypeError(f"jit: static_argnames must be a str or a sequence of str, got {value!r}")
    return names


def _matched(
    fun: Callable[..., Any], numbers: tuple[int, ...], names: tuple[str, ...]
) -> tuple[tuple[int, ...], frozenset[str]]:
    """Static positions and names, each completed from the other by the signature.

    Raises:
      ValueError: the function has no such argument.
    """
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return numbers, frozenset(names)
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    takes_any_name = any(p.kind is p.VAR_KEYWORD for p in parameters)
    known = {p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    n = len(by_position)
    for number in numbers:
        if not takes_any and not -n <= number < n:
            raise ValueError(
                f"jit: static_argnums names argument {number}, but {name_of(fun)} has {n} "
                "positional parameters"
            )
    for name in names:
        if not takes_any_name and name not in known:
            raise ValueError(
                f"jit: static_argnames names {name!r}, but {name_of(fun)} has the parameters "
                f"{', '.join(sorted(known)) or 'none'}"
            )
    all_numbers = {number % n if not takes_any else number for number in numbers}
    all_names = set(names)
    for i, parameter in enumerate(by_position):
        if parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            continue
        if parameter.name in names:
            all_numbers.add(i)
        elif i in all_numbers:
            all_names.add(parameter.name)
    return tuple(sorted(all_numbers)), frozenset(all_names)


def jit(
    fun: Callable[..., Any] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
) -> Any:
    """Stage a function into a program once, and run the program.

    Args:
      fun: function of pytrees of arrays. It runs once for each kind of arguments, on shapes and
        dtypes without values.
      static_argnums: positions of arguments that the function gets as they are; the program
        depends on their values, which must be hashable.
      static_argnames: names of such arguments; with one of the two given, the other is found in
        the signature.
      donate_argnums: positions of arguments that the caller gives away. Accepted for JAX's sake:
        memory of arguments is never written to.
    Returns:
      Function with the arguments of ``fun``; results are arrays that share no memory with
      arguments. ``.lower(*args)``, ``.jaxpr(*args)``, ``.clear_cache()`` and ``.cache_size`` look
      inside. Without ``fun``, a decorator.
    Raises:
      ConcretizationError: (when called) ``fun`` asks for the value of a traced argument.
      TypeError: (when called) a static argument cannot be hashed.

    Example:
      >>> import numpy as np
      >>> jit(lambda x: 2.0 * x + 1.0)(np.arange(3.0))
      array([1., 3., 5.])
    """
    if fun is None:
        return functools.partial(
            jit,
            static_argnums=static_argnums,
            static_argnames=static_argnames,
            donate_argnums=donate_argnums,
        )
    check_callable("jit", fun)
    _numbers("donate_argnums", donate_argnums)
    numbers, names = _matched(
        fun, _numbers("static_argnums", static_argnums), _names(static_argnames)
    )
    return JitFunction(fun, numbers, names)


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


PRIMITIVES = (jit_p,)
