"""Processes that are killed or interrupted in the middle of a case of another kind.

Here: ``Kills``. A step is a case of another kind, and a moment. A fork of this process begins the
case and is struck at that moment: by SIGKILL, or by SIGINT as Ctrl-C sends it. All forks share one
cache of machine code. After SIGKILL a new fork runs the case to its end, on whatever the dead one
left on disk; after SIGINT the same process does, with the state that the interrupt left in it:
traces, modes, settings and NumPy's error state must be those of before, and nothing in between may
catch the interrupt. Not judged is what an interrupt leaves that Python raises at the first
instruction of an ``__enter__`` or ``__exit__``, NumPy's and the standard library's included, or
inside ``contextlib`` or NumPy's ``errstate``: no ``with`` statement is safe there (Python's
documentation of ``signal``, on handlers and exceptions).
"""

from __future__ import annotations

import importlib
import json
import os
import re
import select
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable
from traceback import walk_stack
from typing import Any

import numpy as np

import functrans as ft
from functrans.autograd.modes import Modes, modes
from functrans.core import state
from functrans.machine.cache import ObjectCache, default_directory

from .common import Case, Finding, Kind, generator, judge, kind_named

KINDS = ("programs", "derivatives", "imperative")
END_S = 60.0
"""After an interrupt or without one, a case must end within this."""
UNPROTECTED = re.compile(r"__enter__|__exit__|/(contextlib|_ufunc_config)\.py:")
"""Functions, or modules, in which an interrupt may leave anything; see ``_interrupted``."""


class Kills(Kind):
    """See the module's docstring."""

    name = "kills"
    timeout_s = 600.0

    def prepare(self) -> None:
        """Import what the forks need, the compiler included.

        Python leaves modules behind whose import was interrupted, SciPy's among them: that is not
        what is judged here.
        """
        for name in ("fft", "interpolate", "linalg", "ndimage", "signal", "special", "stats"):
            importlib.import_module(f"scipy.{name}")
        for name in KINDS:
            kind = kind_named(name)
            kind.prepare()
            for seed in range(3):
                judge(kind, kind.draw(generator(name, seed)))
        ft.jit(lambda x: x + 1)(np.zeros(1))

    def draw(self, rng: np.random.Generator) -> Case:
        """Up to four cases, each with a signal and milliseconds."""

        def step() -> list[Any]:
            how = str(rng.choice(("kill", "interrupt")))
            ms = round(float(10 ** rng.uniform(0, 3.2)), 1)
            return [str(rng.choice(KINDS)), int(rng.integers(0, 1 << 31)), how, ms]

        return {"steps": [step() for _ in range(int(rng.integers(1, 5)))]}

    def run(self, case: Case, counts: Counter[str]) -> None:
        """Strike each case, and run it again."""
        for name, seed, how, ms in case["steps"]:
            kind = kind_named(name)
            drawn = kind.draw(generator(name, seed))
            if how == "kill":
                with _Fork(_verdict, kind, drawn) as fork:
                    was_struck = fork.strike(signal.SIGKILL, ms / 1e3) is None
                with _Fork(_verdict, kind, drawn) as fork:
                    signature, text = fork.result()
            else:
                with _Fork(_interrupted, kind, drawn) as fork:
                    signature, text = fork.strike(signal.SIGINT, ms / 1e3) or ("", "")
                was_struck = signature != "ended"
                if signature in ("ended", "unprotected"):
                    counts[f"{name}, {how}, {signature}"] += 1
                    continue
            counts[f"{name}, {how}, {'struck' if was_struck else 'ended'}"] += 1
            if signature:
                raise Finding(f"{name}, after {how}: {signature}", text)
        directory = default_directory()
        if directory is not None and (damaged := ObjectCache(directory).statistics().damaged):
            raise Finding("damaged entries of the cache", f"{damaged} in {directory}")

    def script(self, case: Case) -> str:
        """The case by this module."""
        return (
            "from collections import Counter\n\nfrom tests.fuzz.kills import KIND\n\n"
            f"KIND.prepare()\nKIND.run({case!r}, Counter())"
        )


class _Fork:
    """A fork of this process that judges a case; a context manager that ends it."""

    def __init__(self, function: Callable[[Kind, Case], tuple[str, str]], *args: Any) -> None:
        self.function, self.args = function, args

    def __enter__(self) -> _Fork:
        self.begun, ready = os.pipe()
        self.reply, reply = os.pipe()
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._serve(ready, reply)
        os.close(ready)
        os.close(reply)
        os.read(self.begun, 1)
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.begun)
        os.close(self.reply)

    def _serve(self, ready: int, reply: int) -> None:
        """What the fork does; it does not return."""
        code = 1
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            os.write(ready, b"r")
            os.write(reply, json.dumps(self.function(*self.args)).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def strike(self, number: int, after_s: float) -> tuple[str, str] | None:
        """Send a signal after some time; what the fork says, ``None`` if it says nothing."""
        if not self._has_ended(after_s):
            os.kill(self.pid, number)
        if number == signal.SIGKILL:
            return self._answer()
        return self.result()

    def result(self) -> tuple[str, str]:
        """What the fork says; raises ``Finding`` if it hangs or dies."""
        if not self._has_ended(END_S):
            raise Finding("hangs", f"a fork has not ended after {END_S} s")
        answer = self._answer()
        if answer is None:
            end = os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            raise Finding("dies", f"a fork ended without a word: {end}")
        return answer

    def _has_ended(self, after_s: float) -> bool:
        return bool(select.select([self.reply], [], [], after_s)[0])

    def _answer(self) -> tuple[str, str] | None:
        text = b"".join(iter(lambda: os.read(self.reply, 1 << 16), b""))
        return tuple(json.loads(text)) if text else None


def _verdict(kind: Kind, case: Case) -> tuple[str, str]:
    outcome = judge(kind, case)
    return outcome.signature, outcome.text


def _interrupted(kind: Kind, case: Case) -> tuple[str, str]:
    """Run a case until an interrupt comes, compare the state, and run it again."""
    ignored: list[Any] = []
    came: list[str] = []
    places: list[str] = []

    def interrupt(_: int, frame: Any) -> None:
        came.append("".join(traceback.format_stack(frame, 8)))
        places.extend(f"{at.f_code.co_filename}:{at.f_code.co_name}" for at, _ in walk_stack(frame))
        raise KeyboardInterrupt

    sys.unraisablehook = ignored.append  # in a finalizer Python itself drops the exception
    before = _state()
    try:
        signal.signal(signal.SIGINT, interrupt)
        outcome = judge(kind, case)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if UNPROTECTED.search(places[0]):
            return "unprotected", ""
        if _state() != before:
            return "leaves another state", f"{_state()}\ninstead of\n{before}\n{came[0]}"
        signature, text = _verdict(kind, case)
        return signature, f"{text}\nafter an interrupt in\n{came[0]}" if signature else text
    is_in_index = any(place.endswith(":_to_index") for place in places)
    if came and (is_in_index or UNPROTECTED.search(places[0])):
        return "unprotected", ""  # NumPy drops what __index__ raises
    if came and not ignored:
        return "catches the interrupt", f"{outcome.signature} {outcome.text}\n{came[0]}"
    return ("ended", "") if not outcome.signature else (outcome.signature, outcome.text)


def _state() -> dict[str, Any]:
    names = [name for name in Modes.__annotations__ if not name.startswith("_")]
    found = {name: getattr(modes, name) for name in {*names, "grad", "inference", "session"}}
    found |= {name: str(value) for name, value in np.geterr().items()}
    for variable in (state.open_traces, state.current_config, state.batch_axis, state.name_scope):
        found[variable.name] = variable.get()
    return {name: repr(value) for name, value in found.items()}


KIND = Kills()
