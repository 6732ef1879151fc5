"""How far long work has come: a bar of tqdm after two seconds, where somebody looks.

Here: ``Progress``, which compilation, Jacobians in chunks, SciPy's solvers and work on Dask report
to. Not here: what they do.

Nothing is shown where the standard error stream is no terminal and there is no notebook, where tqdm
is not installed, with ``ft.config(progress=False)``, and for what takes less time. Until then a
report is a look at the clock. A bar that nobody asked for is gone when the work is done.

Layer: ``core``.
"""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import threading
import time
import warnings
from collections.abc import Callable
from typing import Any

from functrans.core.state import current_config

_lock = threading.Lock()
"""Held where a bar is opened, changed or closed: timers run in threads of their own."""
DELAY_S = 2.0
"""Work that takes less time is done before anyone wonders."""


def is_shown() -> bool:
    """Whether somebody would see a bar, and wants to."""
    return (
        current_config.get().progress
        and (_is_notebook() or _is_terminal())
        and importlib.util.find_spec("tqdm") is not None
    )


def _is_terminal() -> bool:
    """Whether the standard error stream is one; there may be none, or a closed one."""
    try:
        return bool(sys.stderr.isatty())
    except (AttributeError, ValueError):
        return False


def _is_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def tqdm_class(who: str) -> Any:
    """The class of progress bars, that of notebooks in one.

    Raises:
      ImportError: tqdm is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of widgets that a notebook lacks: it does without
            from tqdm.auto import tqdm
    except ImportError:
        raise ImportError(
            f"{who}: progress=True shows a bar of tqdm, which is not installed; install it (pip "
            "install tqdm), or give a function of (done, total)"
        ) from None
    return tqdm


def _own_class(who: str) -> Any:
    """A class of bars with a lock of its own: tqdm keeps it held where drawing is interrupted."""
    return type("Bar", (tqdm_class(who),), {"_lock": threading.RLock()})


class Progress:
    """Reports of how much is done; a context manager.

    Args:
      what: is done, for the bar.
      total: how much there is, if that is known.
      asked: ``True`` for a bar at once, a function of ``(done, total)``, or ``False`` for a bar
        after two seconds.
      unit: what is counted.
      is_timed: whether the bar comes after two seconds even if nothing is reported until then.

    Attributes:
      done: how much is.
      total: how much there is.
    """

    __slots__ = (
        "_bar", "_due", "_is_timed", "_note", "_report", "_timer", "_unit", "_what", "done", "total"
    )  # fmt: skip

    def __init__(
        self,
        what: str,
        total: int | None = None,
        asked: bool | Callable[[int, int], Any] = False,
        unit: str = "it",
        is_timed: bool = False,
    ) -> None:
        self.done = 0
        self.total = total
        self._what = what
        self._unit = unit
        self._is_timed = is_timed
        self._note = ""
        self._timer: threading.Timer | None = None
        self._bar: Any = None
        self._report: Any = None
        self._due: float | None = None
        """When a bar comes; ``None`` if there is one, or will be none."""
        if asked is True:
            self._bar = _own_class(what)(total=total, desc=what, unit=unit)
        elif asked:
            self._report = asked
        elif total != 1:  # of one there is nothing between its start and its end
            self._due = time.monotonic() + DELAY_S

    def __enter__(self) -> Progress:
        """Start."""
        if self._is_timed and self._due is not None and is_shown():
            self._timer = threading.Timer(DELAY_S, self._show)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the bar."""
        if self._bar is None and self._timer is None:
            self._due = None
            return
        with _lock:
            self._due = None
            bar, self._bar = self._bar, None
            timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        if bar is not None:
            with contextlib.suppress(Exception):
                bar.close()

    def advance(self, n: int = 1) -> None:
        """Report that ``n`` more are done."""
        if not n:
            return
        self.done += n
        if self._bar is not None:
            self._draw(lambda bar: bar.update(n))
        elif self._due is not None and time.monotonic() >= self._due:
            if is_shown():
                self._show()
            else:
                self._due = None
        if self._report is not None:
            self._report(self.done, self.total)

    def expect(self, total: int) -> None:
        """How much there is, once that is known."""
        self.total = total
        if self._bar is not None:
            self._draw(lambda bar: setattr(bar, "total", total))

    def say(self, note: str) -> None:
        """What is being done now, behind the bar."""
        self._note = note
        if self._bar is not None:
            self._draw(lambda bar: bar.set_postfix_str(note))

    def _draw(self, change: Callable[[Any], Any]) -> None:
        """Change the bar, if there is one; work does not fail for a bar that cannot be drawn."""
        with _lock:
            if self._bar is not None:
                try:
                    change(self._bar)
                except Exception:  # whatever a stream or tqdm raises
                    self._bar = None

    def _show(self) -> None:
        """Open a bar that nobody asked for, as if it had been there from the start."""
        bars = _own_class(self._what)
        with _lock, contextlib.suppress(Exception):
            if self._due is None or self._bar is not None:
                return
            passed = time.monotonic() - self._due + DELAY_S
            self._due = None
            bar = bars(total=self.total, desc=self._what, unit=self._unit, leave=False)
            bar.start_t -= passed
            bar.n = self.done
            bar.set_postfix_str(self._note)  # draws it
            self._bar = bar
