"""Code that is made quickly, and exchanged for better code if it is called for long.

Here: ``Exchanged``, the function of a native part that begins with the code of level 0. Not here:
which programs begin so (``compiler.compiled``), the levels (``machine.engine``).

Optimising a program takes two to six times as long as making it without, and its code runs two to
four times as fast. Whether that pays depends on what is still to be computed, which nobody knows.
When calls have taken a while, the better code is made, in a thread beside: so a program that is
called once is not optimised, and one that is called for long loses little. A call that takes long
itself could not be exchanged on the way: programs with much work, or an unknown amount of it
(``while``), are optimised at once. Both codes give the same bits: no level assumes anything of
floating-point numbers.

Layer: ``compiler``.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import Any

from functrans.errors import CompilationError

PATIENCE_S = 0.02
"""Time in calls after which better code is made, which takes 0.05 to 3 s."""


class Exchanged:
    """A native function that is exchanged once.

    Args:
      call: the function.
      better: makes it; called in a thread, once.
      name: that of the program.
    """

    __slots__ = ("_better", "_call", "_left_s", "_lock", "_name", "is_quick", "thread")

    def __init__(
        self,
        call: Callable[..., Any],
        better: Callable[[], Callable[..., Any]],
        name: str | None,
    ) -> None:
        self._call = call
        self._left_s: float | None = PATIENCE_S
        self._better = better
        self._name = name
        self._lock = threading.Lock()
        self.is_quick = True
        self.thread: threading.Thread | None = None

    def __call__(self, *operands: Any) -> Any:
        """Call the better function, if it is there."""
        if self._left_s is None:
            return self._call(*operands)
        start = perf_counter()
        result = self._call(*operands)
        took = perf_counter() - start
        with self._lock:
            if self._left_s is not None:
                self._left_s -= took
                if self._left_s <= 0:
                    self._left_s = None
                    # no daemon: Python would end while LLVM is in it
                    self.thread = threading.Thread(target=self._exchange, name="functrans-exchange")
                    try:
                        self.thread.start()
                    except RuntimeError:  # no more threads, or Python ends: the result counts
                        self.thread = None
        return result

    def _exchange(self) -> None:
        try:
            self._call = self._better()
            self.is_quick = False
        except Exception as error:  # whatever it is, there is code that works
            warnings.warn(
                f"{self._name or 'a program'} stays without optimisation, which failed: "
                f"{error if isinstance(error, CompilationError) else repr(error)}",
                RuntimeWarning,
                stacklevel=1,
            )
