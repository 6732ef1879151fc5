"""The whole global state of functrans: a short declared list of context variables.

Here: the stack of open traces, the configuration, the name scope, the axis being batched, and
whether in-place operators rebind. All are ``ContextVar`` objects, so that threads and asyncio tasks
do not disturb each other. Not here: caches (they belong to the object they serve).

Layer: ``core`` (imports nothing from functrans).
"""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
import warnings
import weakref
from collections.abc import Callable, Iterator
from contextlib import _GeneratorContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, ParamSpec, TypeVar

from functrans.records import dataclass, fields, replace

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Config:
    """Settings that change what functrans does; :func:`config` says what each means."""

    safe_where: bool = True
    copy_residuals: bool = True
    check_jaxprs: bool = False
    jit: bool = True
    jacobian_memory_bytes: int = 8 << 30
    native: bool = True
    compile_budget_s: float = 10.0
    compiler_math: bool = False
    plain: bool = True
    specialize: bool = False
    nan_watch: Any = None
    traceback: str = os.environ.get("FUNCTRANS_TRACEBACK", "filtered")
    progress: bool = os.environ.get("FUNCTRANS_PROGRESS", "on") != "off"


open_traces: ContextVar[tuple[Any, ...]] = ContextVar("functrans_open_traces", default=())
current_config: ContextVar[Config] = ContextVar("functrans_config", default=Config())  # noqa: B039  # frozen
batch_axis: ContextVar[str | None] = ContextVar("functrans_batch_axis", default=None)
name_scope: ContextVar[str] = ContextVar("functrans_name_scope", default="")
rebinds: ContextVar[bool] = ContextVar("functrans_rebinds", default=False)
"""Whether the user's ``x += y`` makes another array, as where arrays are never written to."""
replayed: ContextVar[tuple[Any, str] | None] = ContextVar("functrans_replayed", default=None)
"""Source and name scope of the equation that a pass applies again, under another trace."""


def under(value: bool, function: Callable[..., T], *args: object) -> T:
    """Call a function of arguments with ``rebinds`` at a value."""
    token = rebinds.set(value)
    try:
        return function(*args)
    finally:
        rebinds.reset(token)


def scope(function: Callable[P, Iterator[T]]) -> Callable[P, _GeneratorContextManager[T]]:
    """``contextmanager``, which warns of a call that is a statement: it has no effect.

    Where the instruction after the call drops the result, and nobody entered it by then, nobody
    can any more.
    """
    manager = contextmanager(function)

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> _GeneratorContextManager[T]:
        try:
            made = manager(*args, **kwargs)
        except TypeError as error:  # of arguments that it does not take
            error.__traceback__ = None  # without frames of functrans
            raise
        frame = sys._getframe(1)
        code, after = frame.f_code.co_code, frame.f_lasti + 2
        while code[after] == _CACHE:
            after += 2
        if code[after] == _POP_TOP:
            place = (frame.f_code.co_filename, frame.f_lineno)
            weakref.finalize(
                made, _check_entered, made.gen, function.__name__, place
            ).atexit = False
        return made

    return make


_CACHE, _POP_TOP = dis.opmap["CACHE"], dis.opmap["POP_TOP"]


def _check_entered(generator: Any, name: str, place: tuple[str, int]) -> None:
    if inspect.getgeneratorstate(generator) == inspect.GEN_CREATED:
        warnings.warn_explicit(
            f"functrans.{name}(...) was called and not entered, so that it has no effect: write "
            f"with functrans.{name}(...): around what it is for, or decorate a function with it",
            UserWarning,
            *place,
        )


@scope
def config(**settings: Any) -> Iterator[Config]:
    """Change settings for the duration of a ``with`` block, in this thread or task only.

    Args:
      **settings: values by name, as below.
      safe_where: the transpose of a selection keeps NaN and infinities of the branch that was not
        taken out of the derivative.
      copy_residuals: plain writable ndarrays that a derivative will need are copied when recorded,
        so that later writes into them do no harm.
      check_jaxprs: run ``check_jaxpr`` after every pass.
      jit: ``False`` makes ``jit`` call the function as it is.
      native: programs of ``jit`` are compiled to machine code; ``False`` interprets them.
      compiler_math: programs of ``jit`` are interpreted with the mathematics of compiled ones, and
        so give the same bits; for tests of the compiler.
      compile_budget_s: a program whose compilation is predicted to take more seconds than this is
        interpreted until it has run for as long.
      jacobian_memory_bytes: what a Jacobian's batch of tangents or cotangents may occupy before it
        is evaluated in chunks, and what the result may occupy before it is refused.
      plain: functions written for plain NumPy are traced by twins, in which the names of NumPy,
        SciPy and Python's numbers stand for what traces; see ``docs/plain.md``.
      specialize: ``jit`` lets Python ask for values of traced arguments, as if each were called
        with ``specialize=True``.
      nan_watch: what looks for NaN; set by ``debug_nans``.
      traceback: ``"filtered"`` leaves frames of functrans out of the tracebacks of errors,
        ``"full"`` shows them; the environment variable ``FUNCTRANS_TRACEBACK`` sets the default.
      progress: work that takes more than two seconds (compilation, Jacobians in chunks, SciPy's
        solvers, Dask) shows a bar of tqdm in a notebook, or where the standard error stream is a
        terminal; the environment variable ``FUNCTRANS_PROGRESS=off`` sets the default to ``False``.

    Yields:
      The configuration in force.

    Raises:
      TypeError: a setting does not exist; the message lists those that do. Or its value is of
        another type than its default.
      ValueError: an amount is negative or no number.

    Example:
      >>> with config(safe_where=False) as current:
      ...     current.safe_where
      False
    """
    known = [field.name for field in fields(Config)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(f"config: unknown setting {unknown[0]!r}; settings are {', '.join(known)}")
    for name, value in settings.items():
        _check_setting(name, value)
    token = current_config.set(replace(current_config.get(), **settings))
    try:
        yield current_config.get()
    finally:
        current_config.reset(token)


def _check_setting(name: str, value: object) -> None:
    """Refuse a value that a setting cannot have: ``"no"`` would be true."""
    default = getattr(_DEFAULTS, name)
    if isinstance(default, str):
        if not isinstance(value, str):
            raise TypeError(f"config: {name} must be a string, got {value!r}")
        _check_traceback(f"config: {name}", value)
    if isinstance(default, bool):
        if type(value) is not bool:
            raise TypeError(f"config: {name} must be True or False, got {value!r}")
    elif isinstance(default, (int, float)):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"config: {name} must be a number, got {value!r}")
        if not value >= 0:
            raise ValueError(f"config: {name} must be at least 0, got {value!r}")


def _check_traceback(what: str, value: object) -> None:
    if value not in ("filtered", "full"):
        raise ValueError(f"{what} must be 'filtered' or 'full', got {value!r}")


_DEFAULTS = Config()
LOOKS = {name: getattr(_DEFAULTS, name) for name in ("nan_watch", "traceback", "progress")}
"""Defaults of the settings that change no program, only how it is looked at."""
_check_traceback("FUNCTRANS_TRACEBACK", _DEFAULTS.traceback)
if os.environ.get("FUNCTRANS_PROGRESS", "on") not in ("on", "off"):
    given = os.environ["FUNCTRANS_PROGRESS"]
    raise ValueError(f"FUNCTRANS_PROGRESS must be 'on' or 'off', got {given!r}")


@scope
def named_scope(name: str) -> Iterator[None]:
    """Give the operations of a ``with`` block, or of a function, a name in printed programs.

    Args:
      name: the name; scopes in scopes are joined by slashes.

    Yields:
      Nothing.

    Raises:
      TypeError: the name is no string.

    Example:
      >>> with named_scope("encoder"), named_scope("layer0"):
      ...     name_scope.get()
      'encoder/layer0'
    """
    if not isinstance(name, str):
        raise TypeError(f"named_scope: expected a name, got {type(name).__name__}")
    outer = name_scope.get()
    token = name_scope.set(f"{outer}/{name}" if outer else name)
    try:
        yield
    finally:
        name_scope.reset(token)
