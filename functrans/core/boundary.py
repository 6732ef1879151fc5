"""What users see of an error that comes out of functrans, and of a warning of NumPy's.

Here: ``boundary``, through which users' calls enter (tracebacks without frames of functrans),
``at_user``, in which functrans evaluates (warnings at the user's line), and ``Refusals``: what
traced values refused is remembered, since C code may make another error of it, or none. Not here:
the messages.

Layer: ``core``.
"""

from __future__ import annotations

import contextvars
import dis
import functools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from threading import Lock
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar

import numpy as np

from functrans.core.deferred import deferred
from functrans.core.source import Captured, is_internal, is_own
from functrans.core.state import current_config
from functrans.errors import FunctransError

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")


def boundary(function: F) -> F:
    """Make a function one that users call: its errors come without frames of functrans.

    ``config(traceback="full")`` leaves them in.
    """

    @functools.wraps(function)
    def call(*args: object, **kwargs: object) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            shorten(error)
            raise

    return call  # type: ignore[return-value]  # it has the signature of F


def guard(
    names: dict[str, Any],
    public: Iterable[str] | None = None,
    *,
    homes: tuple[str, ...] = (),
    make: Callable[[Any], Any] = boundary,
) -> None:
    """Make boundaries of the public functions of a module, at its end.

    Args:
      names: ``globals()`` of the module.
      public: its ``__all__``, if it re-exports; without it, what the module itself defines.
      homes: how modules begin that it re-exports from, if not with its own name. The functions
        become boundaries there, too, so that they pickle by their name; those that are not there
        pickle by their name here.
      make: makes a boundary of a function.
    """
    own = names["__name__"]
    for name in list(names if public is None else public):
        value = names.get(name)
        if name.startswith("_") or not isinstance(value, FunctionType):
            continue
        home, qualname = value.__module__, value.__qualname__
        if home == own or (public is not None and home.startswith(homes or own)):
            names[name] = guarded(value, make)
            there = vars(sys.modules[home])
            if there.get(qualname) is value:
                there[qualname] = names[name]
            elif there.get(qualname) is not names[name]:  # made for a table: its home is this one
                names[name].__module__, names[name].__qualname__ = own, name


def guarded(function: FunctionType, make: Callable[[Any], Any] = boundary) -> Callable[..., Any]:
    """A function as a boundary, always the same one; itself if it cuts its errors' tracebacks."""
    if shorten.__name__ in function.__code__.co_names:
        return function
    known = _guarded.get(function)
    if known is None:
        known = _guarded[function] = make(function)
    return known


_guarded: dict[FunctionType, Callable[..., Any]] = {}


# tracebacks -------------------------------------------------------------------------------------


def shorten(error: BaseException) -> None:
    """Take frames of functrans out of the traceback of an error, and of those that it came from.

    So go those of libraries that functrans called, and below the user's line if the error is its
    own: what SciPy did on the way to a refusal says nothing. The frame that calls this must be one
    of functrans, and raise the error by a bare ``raise``, which adds no frame.
    """
    if current_config.get().traceback == "full":
        return
    for link in _chain(error):
        is_users = True
        last = 0
        frames = []
        for entry in _entries(link.__traceback__):
            file = entry.tb_frame.f_code.co_filename
            if is_own(file):
                is_users = False
            elif not is_internal(file):
                is_users = True
                frames.append(entry)
                last = len(frames)
            elif is_users:
                frames.append(entry)
        link.__traceback__ = _joined(frames[:last] if isinstance(link, FunctransError) else frames)
    for link in _chain(error):
        cause = link.__cause__
        if cause is not None and cause.__traceback__ is None and isinstance(link, FunctransError):
            link.__cause__ = None  # of functrans alone, and still the context


def note_lists(error: Exception, args: tuple[Any, ...]) -> None:
    """Say of an error whether an argument is a list of numbers, which NumPy takes for an array."""
    for i, arg in enumerate(args):
        if type(arg) is list and arg and all(type(x) in (int, float, complex) for x in arg):
            array = str(arg) if len(arg) <= 4 else f"args[{i}]"
            error.add_note(
                f"args[{i}] is a list, which is a pytree of {len(arg)} numbers, not an array: pass "
                f"np.array({array})"
            )


def note_traced(error: Exception) -> None:
    """Say of an error of the standard library whether it comes of a traced value.

    It knows nothing of those; what functrans raises says so itself.
    """
    if isinstance(error, FunctransError) or getattr(error, "__notes__", None):
        return
    *_, last = _entries(error.__traceback__)
    if not is_own(last.tb_frame.f_code.co_filename):
        note = deferred.traced_note(error)
        if note:
            error.add_note(note)


def cause(error: Exception) -> Exception | None:
    """What an error that says more is raised from: the error, where all is to be shown."""
    return error if current_config.get().traceback == "full" else None


def noted(error: Exception, note: str) -> Exception:
    """An error with a note."""
    error.add_note(note)
    return error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was raised from, or raised while they were handled."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        link = pending.pop()
        if link is not None and id(link) not in seen:
            seen.add(id(link))
            yield link
            pending += [link.__context__, link.__cause__]


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _joined(entries: list[TracebackType]) -> TracebackType | None:
    """A traceback of these entries, which stay as they are."""
    joined: TracebackType | None = None
    for entry in reversed(entries):
        joined = TracebackType(joined, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return joined


# refusals ---------------------------------------------------------------------------------------

_MAX_KEPT = 64


class Refusals:
    """What values of a trace refused while it was open, the first at each of the user's lines.

    C code may drop an error and raise another one, or print it and go on.
    """

    __slots__ = ("_by_place", "dropped")

    def __init__(self) -> None:
        self._by_place: dict[Captured, tuple[FrameType, FunctransError]] = {}
        self.dropped: FunctransError | None = None
        """One that C code printed, which it does where it cannot raise."""
        _listen(self)

    def add(self, error: FunctransError) -> None:
        """Remember that a value refused something, for the user's line."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and is_internal(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        place = (frame.f_code, frame.f_lasti)
        known = self._by_place.get(place)
        if known is None:
            if len(self._by_place) >= _MAX_KEPT:
                return
        elif known[0] is frame and not _has_reached(*known):
            return
        self._by_place[place] = (frame, error)

    def drop(self, error: object) -> bool:
        """Note that C code, or a thread, printed an error; whether a value of the trace made it."""
        if not any(error is kept for _, kept in list(self._by_place.values())):
            return False
        self.dropped = self.dropped or error  # type: ignore[assignment]  # a kept one
        return True

    def behind(self, error: BaseException) -> FunctransError | None:
        """The refusal that an error comes from, ready to be raised in its place.

        It stands in its chain, or the error came out of the very call in which it was made and
        never left. What the user's code, or functrans's, raises by a statement is what it wants to
        raise.
        """
        if not isinstance(error, Exception):
            return None
        is_full = current_config.get().traceback == "full"
        entries = list(_entries(error.__traceback__))
        places = [(entry.tb_frame, entry.tb_lasti) for entry in entries]
        chain = list(_chain(error))
        is_kept = isinstance(error, FunctransError) or _is_raised(entries[-1])
        for (_, offset), (frame, refusal) in self._by_place.items():
            is_cause = refusal is self.dropped or any(link is refusal for link in chain)
            is_here = (frame, offset) in places
            is_behind = is_cause or (is_here and not _has_reached(frame, refusal))
            if refusal is not error and (is_kept or not is_behind):
                continue
            if is_here and not is_full:
                entries = entries[: places.index((frame, offset)) + 1]
            refusal.__traceback__ = _joined(entries)
            if refusal is not error:
                for link in chain:  # the other way round from now on
                    if link.__context__ is refusal:
                        link.__context__ = None
                    if link.__cause__ is refusal:
                        link.__cause__ = None
                first_line = str(error).partition("\n")[0]
                refusal.add_note(f"It ended in {type(error).__name__}: {first_line}")
                refusal.__cause__ = error if is_full else None
                refusal.__suppress_context__ = True
            return refusal
        return None


def _has_reached(frame: FrameType, error: FunctransError) -> bool:
    """Whether an error came out of the call that a frame was in: it can be caught there."""
    return any(entry.tb_frame is frame for entry in _entries(error.__traceback__))


def _is_raised(end: TracebackType) -> bool:
    """Whether a statement of the user's code, or of functrans's, raised what ends here."""
    code = end.tb_frame.f_code
    is_library = is_internal(code.co_filename) and not is_own(code.co_filename)
    return not is_library and code.co_code[end.tb_lasti] == _RAISE


_RAISE = dis.opmap["RAISE_VARARGS"]


_listening: list[Refusals] = []
"""Those of all traces that are open, in any thread."""
_hooks: dict[str, tuple[Any, Any]] = {}
"""By name in ``sys``: the hook that was there before, and the one that asks ``_listening``."""
_hooks_lock = Lock()


def _listen(refusals: Refusals) -> None:
    """Ask refusals of every error that the interpreter prints, from now on."""
    with _hooks_lock:
        _listening.append(refusals)
        if _hooks:
            return
        for name in ("excepthook", "unraisablehook"):
            before = getattr(sys, name)
            _hooks[name] = before, _asking(before)
            setattr(sys, name, _hooks[name][1])


def _asking(before: Callable[..., object]) -> Callable[..., None]:
    """A hook that passes on what no value of an open trace refused.

    A new one each time: where another hook was put over an old one, that one may still be called.
    """

    def hook(*report: Any) -> None:
        error = report[1] if len(report) > 1 else report[0].exc_value
        if not any(refusals.drop(error) for refusals in list(_listening)):
            before(*report)

    return hook


def _stop_listening(refusals: Refusals) -> None:
    """Leave the interpreter as it was when the last trace that listens has closed."""
    with _hooks_lock:
        _listening[:] = [other for other in _listening if other is not refusals]
        if _listening:
            return
        for name, (before, own) in _hooks.items():
            if getattr(sys, name) is own:
                setattr(sys, name, before)
        _hooks.clear()


def note_refusal(trace: Any, error: FunctransError) -> None:
    """Remember on a trace that one of its values refused what Python or NumPy asked of it."""
    if trace.is_open and not trace.is_root:
        if trace.refusals is None:
            trace.refusals = Refusals()
        trace.refusals.add(error)


def settle(trace: Any, error: BaseException | None) -> None:
    """Raise what a trace that is closed refused, if its function ends for that reason."""
    refusals, trace.refusals = trace.refusals, None
    _stop_listening(refusals)
    refusal = refusals.dropped if error is None else refusals.behind(error)
    if refusal is not None:
        try:
            raise refusal
        finally:  # no cycle of error, traceback and this frame
            del refusal, refusals, error


# warnings ---------------------------------------------------------------------------------------


class _AtUser:
    """Where NumPy writes what it would warn of: a warning at the user's line."""

    def write(self, text: str) -> None:
        """Warn as NumPy does, of ``Warning: divide by zero encountered in log``."""
        warn(text.removeprefix("Warning: ").rstrip(), RuntimeWarning)


_AT_USER = _AtUser()


def _settings() -> tuple[ContextVar[Any], object]:
    """The context variable of ``np.errstate``, and its value that writes to ``_AT_USER``."""
    with np.errstate(divide="log", over="log", invalid="log", call=_AT_USER):
        ((variable, value),) = contextvars.copy_context().items()
    return variable, value


ERRORS, WRITTEN = contextvars.Context().run(_settings)
"""The context variable of NumPy's settings of errors, and its value that writes to ``_AT_USER``."""
DEFAULT = contextvars.Context().run(ERRORS.get)
"""Its value where nothing was set."""


def warn_at_user() -> Any:
    """Let NumPy's warnings of floating-point errors name the user's line from now on.

    For the time that functrans evaluates: the user's code sees and sets its own settings.

    Returns:
      The token that resets ``ERRORS``, or ``None`` if nothing was to be done.
    """
    current = ERRORS.get()
    if current is DEFAULT:
        return ERRORS.set(WRITTEN)
    if current is WRITTEN:
        return None
    written = _last[1] if _last[0] is current else _written(current)
    return None if written is current else ERRORS.set(written)


_last: tuple[object, object] = (None, None)
"""Settings, and what they are while functrans evaluates."""


def _written(current: object) -> object:
    """Settings that write to ``_AT_USER`` instead of a warning; themselves if nothing is warned."""
    global _last
    written = current
    warned: Any = {kind: "log" for kind, action in np.geterr().items() if action == "warn"}
    if warned and np.geterrcall() is None:
        with np.errstate(**warned, call=_AT_USER):
            written = ERRORS.get()
    _last = current, written
    return written


def at_user(function: Callable[..., R], *args: object, **kwargs: object) -> R:
    """A function of arguments; what NumPy warns of in it is at the user's line."""
    token = warn_at_user()
    if token is None:
        return function(*args, **kwargs)
    try:
        return function(*args, **kwargs)
    finally:
        ERRORS.reset(token)


def as_user(function: Callable[..., R], *args: object, **kwargs: object) -> R:
    """A function of the user's that an evaluation calls: of arguments, under its own settings."""
    if np.geterrcall() is not _AT_USER:
        return function(*args, **kwargs)
    warned: Any = {kind: "warn" for kind, action in np.geterr().items() if action == "log"}
    with np.errstate(**warned, call=None):  # type: ignore[arg-type]  # none is what it was
        return function(*args, **kwargs)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the user's line, from wherever functrans was called."""
    level = 2
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_internal(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
