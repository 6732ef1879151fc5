"""Modes and interrupts: a mode that was not entered is not left behind."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

import functrans.compat.torch as torch
from functrans.autograd import anomaly, graph, profiler
from functrans.autograd.modes import entered, modes

CONTEXTS: dict[str, Callable[[], Any]] = {
    "entered": lambda: entered({"batches": (1,), "session": None}),
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "inference_mode": torch.inference_mode,
    "anomaly": lambda: anomaly._Anomaly(True, check_nan=False),
    "saved_tensors_hooks": lambda: graph.saved_tensors_hooks(lambda x: x, lambda x: x),
    "disable_saved_tensors_hooks": lambda: graph.disable_saved_tensors_hooks("no"),
    "profile": profiler.profile,
}


class _Strike:
    """Raises ``KeyboardInterrupt`` at one of the places where Python would, below a function.

    Those are the first instruction of a function, and what follows a call of one of C's.
    """

    def __init__(self, count: int) -> None:
        self.left = count

    def __call__(self, frame: Any, event: str, arg: Any) -> None:
        if frame.f_code.co_name in ("__enter__", "__exit__", "attempt"):
            return  # where no ``with`` statement is safe
        if event in ("call", "c_return"):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def attempt(context: Any, count: int) -> bool:
    """Enter and leave a context that is struck; whether it was."""
    strike = _Strike(count)
    outer = sys.getprofile()
    sys.setprofile(strike)
    try:
        with context:
            pass
    except KeyboardInterrupt:
        pass
    finally:
        sys.setprofile(outer)
    return strike.left <= 0


@pytest.mark.parametrize("name", CONTEXTS)
def test_modes_are_as_before_after_an_interrupt(name: str) -> None:
    names = [name for name in vars(type(modes)) if not name.startswith("_")]
    values = [name for name in names if not callable(getattr(modes, name))]
    before = {name: getattr(modes, name) for name in values}
    with CONTEXTS[name]():
        pass  # imports and tables
    count = 1
    while attempt(CONTEXTS[name](), count):
        after = {name: getattr(modes, name) for name in values if not name.startswith("is_")}
        assert after == {name: before[name] for name in after}, count
        modes.update()
        count += 1
    assert count > 2 or name in ("no_grad", "enable_grad", "disable_saved_tensors_hooks")
    assert {name: getattr(modes, name) for name in values} == before
