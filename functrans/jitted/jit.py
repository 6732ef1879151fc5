"""Staging a function once and running its program: the transform ``jit``.

Here: ``jit`` and its cache. Not here: what a jitted function tells about itself
(``jitted.described``), the arguments of calls and what a program depends on of them
(``jitted.signatures``), how a call is staged (``jitted.staged_calls``), how a program is run and
when it is compiled (``control.native``), functions on tensors (``jitted.imperative``).

A call is looked up by what the program depends on: structure of the arguments, shape, dtype and
weakness of every leaf, static values, configuration, and the named axes of the ``vmap`` around it.
Arrays that the function refers to are operands of the program, read anew at every call; a program
that refers to traced values of an enclosing transform is used once and not kept. The cache belongs
to the jitted function and is bounded.

Layer: ``jitted``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Concatenate, Generic, Self, overload

import numpy as np

from functrans import pytrees as tree
from functrans.compiler.compiled import native_error
from functrans.control.native import call_program, run
from functrans.core.arguments import check_callable, result_leaf, take_over
from functrans.core.avals import aval_of_plain
from functrans.core.boundary import boundary, note_lists, shorten
from functrans.core.caching import Living, Recent
from functrans.core.calling import call_traced
from functrans.core.dispatch import Tracer, innermost_staging
from functrans.core.jaxpr import Jaxpr
from functrans.core.state import Config, config, current_config, open_traces, rebinds, scope, under
from functrans.core.transformed import Wrapper
from functrans.core.values import Array, Instance, P, Q, R
from functrans.jitted import shared
from functrans.jitted.described import Described
from functrans.jitted.direct import Direct, direct_call, structured
from functrans.jitted.explanations import tell_of_the_last
from functrans.jitted.imperative import Steps, door, looking_for_tensors
from functrans.jitted.lowered import LoweredStep
from functrans.jitted.named_arguments import matched
from functrans.jitted.signatures import (
    DEFAULT_CONFIG,
    Signature,
    axes_around,
    is_leaf,
    leaf_key,
    unwatched,
)
from functrans.jitted.specialize import Path, Paths
from functrans.jitted.staged_calls import Program, closed_program, staged_path, staged_program
from functrans.passes.answers import answering
from functrans.passes.layouts import plain_value

_MAX_PROGRAMS = 256
MAX_PATHS = 64
"""Paths of a function that is specialised, per kind of arguments."""


# the cache --------------------------------------------------------------------------------------


class JitFunction(Wrapper, Described, Generic[P, R]):
    """A function that is staged once per kind of arguments and then run as a program.

    Made by :func:`jit`.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        static_argnums: tuple[int, ...],
        static_argnames: frozenset[str],
        donate_argnums: tuple[int, ...],
        donate_argnames: frozenset[str],
        specialize: bool = False,
        max_paths: int = MAX_PATHS,
        state: Any = None,
        is_rebinding: bool | None = None,
    ) -> None:
        take_over(self, fun)
        arguments = static_argnums, static_argnames, donate_argnums, donate_argnames
        self.signature = Signature(fun, *arguments)
        self._fun = fun
        self._state = state
        self._rebinds = rebinds.get() if is_rebinding is None else is_rebinding
        self._specialize = specialize
        self._max_paths = max_paths
        self._options = (*arguments, specialize, max_paths)
        self._programs: Recent[Hashable, Any] = Recent(_MAX_PROGRAMS)
        """By kind of call: a ``Program``, or the ``Paths`` of calls that are specialised."""
        self._imperative: Steps | None = None
        """What the imperative side keeps of a function that works on tensors."""
        self._direct: Direct | None = None
        """The machine code of the last call, if that is all there is to do."""
        self._positional: Callable[..., Any] | None = None
        """The same as a function of the arguments, where these and the result are arrays."""
        _functions.add(self)
        if door.side is not None:
            door.side.note_made(self)

    _internal = Wrapper._internal | {"kept", "kept_programs", "staged"}

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function through its program."""
        try:
            settings = current_config.get()
            positional = self._positional
            if positional is not None and settings is DEFAULT_CONFIG and not kwargs:
                result = positional(*args)
                if result is not NotImplemented:
                    if type(result) is int:  # arguments that were given away cannot be used again
                        raise self._error_of(positional, result)
                    return result
            return self._call(settings, args, kwargs)
        except Exception as error:
            note_lists(error, args)
            shorten(error)
            raise

    def _call(self, settings: Config, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call it as it was not called the last time."""
        if rebinds.get() is not self._rebinds:  # it means what it does where it is made
            return under(self._rebinds, self._call, settings, args, kwargs)
        if not settings.jit:
            return call_traced(self._fun, *args, **kwargs)
        if not kwargs and not self.signature.static_argnums and all(map(is_leaf, args)):
            leaves: list[Any] = list(args)
            treedef: Any = len(args)
            static: Hashable = ()
        else:
            leaves, treedef, static = self.signature.split(args, kwargs)
        direct = self._direct
        if (
            direct is not None
            and settings is DEFAULT_CONFIG
            and direct.treedef == treedef
            and direct.static == static
        ):
            result = direct.call(*leaves)
            if result is not NotImplemented:
                if type(result) is int:
                    raise self._error_of(direct.call, result)
                return structured(direct.result, result)
        tensors = door.side
        if tensors is not None:
            if tensors.is_staging:  # a part of the step around it
                tensors.meet(self)
                return call_traced(self._fun, *args, **kwargs)
            if tensors.is_known(self) or any(map(tensors.is_tensor, leaves)):
                return tensors.call(self, args, kwargs)
        keys = [leaf_key(leaf) for leaf in leaves]
        if None in keys:
            if any(map(tree.is_float0, leaves)):
                args, kwargs = tree.fold_float0((args, kwargs))
                leaves, treedef, static = self.signature.split(args, kwargs)
            leaves = self.signature.canonical(leaves, args, kwargs)
            keys = [leaf_key(leaf) or aval_of_plain(leaf) for leaf in leaves]
        axes = axes_around() if open_traces.get() else ()
        key = (
            treedef,
            static,
            tuple(keys),
            None if settings is DEFAULT_CONFIG else unwatched(settings),
            self._rebinds,
            axes,
        )
        if self._specialize or settings.specialize:
            return self._call_specialized(key, leaves, args, kwargs)
        program: Program | None = self._programs.used(key)
        if program is not None and not _fit(program.captured, program.jaxpr):
            program = None
        if program is None:
            program, references = self._find_shared(key)
        is_new = program is None
        if program is None:
            with looking_for_tensors(self):
                program = staged_program(self.signature, self._specialize, args, kwargs)
            if program is None:
                assert tensors is not None
                return tensors.call(self, args, kwargs)
            self._keep(key, program, references)
        operands = (*program.captured, *leaves)
        if axes and not any(isinstance(operand, Tracer) for operand in operands):
            outs = list(run(program.jaxpr, operands))  # an axis index is traced all the same
        else:
            outs = call_program(program.jaxpr, operands, self.signature.name, program.donated)
        if is_new:
            tell_of_the_last(self.explain, len(self._programs))
        if not axes and settings is DEFAULT_CONFIG:  # one without axes is right among any
            direct = direct_call(program, treedef, static)
            is_flat = direct is not None and direct.result is None and treedef == len(args)
            self._direct = direct
            self._positional = direct.call if direct is not None and is_flat else None
        return tree.unflatten(program.treedef, outs)

    @property
    def function(self) -> Callable[P, R]:
        """The function that is staged."""
        return self._fun

    @property
    def state(self) -> Any:
        """What ``state=`` declares."""
        return self._state

    def parts(self) -> tuple[Any, ...]:
        """The function that is staged."""
        return (self._fun,)

    def with_parts(self, parts: Callable[[], tuple[Any, ...]]) -> JitFunction:
        """Another function jitted in the same way."""
        (fun,) = parts()
        return JitFunction(fun, *self._options, self._state, self._rebinds)

    @overload
    def __get__(self, instance: None, owner: object = None) -> Self: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[Instance, Q], R], instance: Instance, owner: object = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: object = None) -> Any:
        """Bind to an instance, as functions in a class do."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        """``<jit of f>``."""
        return f"<{self.signature.label}>"

    def __reduce__(self) -> Any:
        """Pickled as its function; without programs."""
        return JitFunction, (self._fun, *self._options, self._state, self._rebinds)

    def _find_shared(self, key: Any) -> tuple[Any, Any]:
        """What another ``jit`` of the function staged for such a call, or what ``keep`` asks for.

        Arguments that are objects, static or traced, could read what the function does not name.
        """
        if self._state is not None or not shared.is_plain(*key[:2]):
            return None, None
        found, references = shared.find(self._fun, (self._options, key))
        if found is not None:
            self._programs[key] = found
        return found, references

    def _keep(self, key: tuple[Any, ...], program: Program, references: object) -> None:
        """Keep a program for calls like the one that it was staged for.

        Not one that refers to traced values.
        """
        if any(isinstance(value, Tracer) for value in program.captured):
            return
        self._programs[key] = program
        shared.keep(self._fun, (self._options, key), references, program)

    # paths

    def _call_specialized(
        self, key: Any, leaves: list[Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Array:
        """Call the function along the path that the values of the arguments lead."""
        values = list(map(plain_value, leaves))
        staging = innermost_staging()
        is_answered = staging is not None and staging.answers is not None
        if is_answered or key[-1] or any(value is None for value in values):
            return self._call_within(args, kwargs)
        paths: Paths | None = self._programs.used(key)
        if paths is not None and not all(_fit(path.captured, path.whole) for path in paths.kept()):
            del self._programs[key]
            paths = None
        if paths is None:
            paths = self._new_paths(key)

        def trace() -> Path | None:
            with looking_for_tensors(self):
                return staged_path(self.signature, args, kwargs, values)
            return None  # there were some

        result = paths.call(leaves, values, trace)
        if result is NotImplemented:
            assert door.side is not None
            return door.side.call(self, args, kwargs)
        if current_config.get() is DEFAULT_CONFIG and paths.has_quick():
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
        leaves = [result_leaf(out, self.signature.label, result, i) for i, out in enumerate(outs)]
        return tree.unflatten(treedef, leaves)

    def _new_paths(self, key: object) -> Paths:
        """The paths of a kind of call."""
        new = Paths(self.signature.label, self.signature.name, self._max_paths)
        paths: Paths = self._programs.kept(key, new)
        return paths

    def _error_of(self, call: Callable[..., Any], status: int) -> Exception:
        """The exception that machine code ended with."""
        function = call.func if isinstance(call, functools.partial) else call
        for program in self.kept_programs():
            native = program.native
            if native is not None and native.direct is not None and native.direct.call is function:
                return native_error(native.direct.part.jaxpr, status)
        label = self.signature.label
        return RuntimeError(f"{label}: a compiled program that is no longer kept failed")

    def staged(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[Jaxpr, Any] | LoweredStep:
        """The program of a call; that of a step if the function works on tensors."""
        args, kwargs = tree.fold_float0((args, kwargs))
        tensors = door.side
        if tensors is None or not (
            tensors.is_known(self) or any(map(tensors.is_tensor, tree.leaves((args, kwargs))))
        ):
            with looking_for_tensors(self):
                return closed_program(self.signature, self._specialize, args, kwargs)
        assert tensors is not None
        return tensors.lower(self, args, kwargs)

    def kept(self) -> list[Any]:
        """The programs in the cache, and those of a function that works on tensors."""
        steps = [] if self._imperative is None else self._imperative.kept()
        return [*self.kept_programs(), *steps]

    def kept_programs(self) -> list[Program | Path]:
        """The programs in the cache, one per path of calls that are specialised."""
        programs: list[Program | Path] = []
        for found in self._programs.all():
            programs += found.kept() if isinstance(found, Paths) else [found]
        return programs

    def clear_cache(self) -> None:
        """Forget all programs."""
        self._programs.clear()
        self._direct = self._positional = None
        shared.forget()
        if self._imperative is not None:
            self._imperative.clear()

    @property
    def cache_size(self) -> int:
        """Number of programs kept."""
        return len(self.kept())


def _fit(captured: tuple[Any, ...], jaxpr: Jaxpr) -> bool:
    """Whether the arrays that a function refers to are of the kind that it was staged with."""
    return all(
        type(value) is not np.ndarray
        or (value.shape == var.aval.shape and value.dtype == var.aval.dtype)
        for var, value in zip(jaxpr.invars, captured, strict=False)
    )


shared.KINDS[JitFunction] = shared.jitted


_functions: Living[JitFunction] = Living()


def jitted_functions() -> list[JitFunction]:
    """The jitted functions that are alive."""
    return _functions.all()


# the transform ----------------------------------------------------------------------------------


@overload
def jit(
    fun: np.ufunc, static_argnums: int | Sequence[int] | None = None, static_argnames: str |
    Sequence[str] | None = None, donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None, specialize: bool = False, max_paths: int
    = MAX_PATHS, state: Any = None,
) -> JitFunction[..., Any]: ...  # fmt: skip
@overload
def jit(
    fun: Callable[P, R],
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    specialize: bool = False,
    max_paths: int = MAX_PATHS,
    state: Any = None,
) -> JitFunction[P, R]: ...
@overload
def jit(
    fun: None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Sequence[str] | None = None,
    specialize: bool = False,
    max_paths: int = MAX_PATHS,
    state: Any = None,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...
@boundary
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
      inside; ``.as_cfunc``, ``.export``: for C, ``.save``: for files. Without ``fun``, a decorator.
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
    static = matched(fun, "static", static_argnums, static_argnames)
    donated = matched(fun, "donate", donate_argnums, donate_argnames)
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
        if door.side is None:
            raise TypeError(
                f"jit: state= is for functions on tensors, got a {type(state).__qualname__} before "
                "functrans.autograd was imported; import it, or pass what changes as an argument"
            )
        door.side.check_state(state)
    return JitFunction(fun, *static, *donated, bool(specialize), max_paths, state)


@scope
def disable_jit(disable: bool = True) -> Iterator[None]:
    """Let jitted functions run as they are, on values, for the duration of a ``with`` block.

    Args:
      disable: false to jit in the block, inside one that disables it.

    Example:
      >>> with disable_jit():
      ...     jit(lambda x: x if x > 0 else -x)(-2.0)
      2.0
    """
    with config(jit=not disable):
        yield
