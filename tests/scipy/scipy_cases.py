"""Cases of SciPy-shaped functions, and what is checked of each.

Each case is a function of floating arrays that is written twice: with a function of functrans, and
with SciPy's own of the same name.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

import functrans as ft
from functrans.testing import check_grads
from helpers import assert_close, staged

Function = Callable[..., Any]


class Case:
    """A function and where to test it.

    Attributes:
      name: for the test's name: SciPy's name, and what is special after a space.
      function: ``(module, *args)``; ``module`` is functrans's namespace or SciPy's.
      args: floating or complex arrays; everything else is closed over.
      order: to which order derivatives are compared with differences; 0 for none.
      is_staged: whether it can be traced without values.
      rtol: relative and absolute tolerance of values.
      derivative_rtol: likewise of derivatives.
      keeps_single: whether single precision stays so; by default where no array in double
        precision is closed over.
    """

    def __init__(
        self,
        name: str,
        function: Function,
        *args: Any,
        order: int = 2,
        is_staged: bool = True,
        rtol: float = 1e-11,
        derivative_rtol: float = 2e-5,
        keeps_single: bool | None = None,
    ) -> None:
        self.name = name
        self.function = function
        self.args = tuple(np.asarray(arg) for arg in args)
        self.order = order
        self.is_staged = is_staged
        self.rtol = rtol
        self.derivative_rtol = derivative_rtol
        self.keeps_single = (
            not any(isinstance(function.__globals__.get(n), np.ndarray) for n in _names(function))
            if keeps_single is None
            else keeps_single
        )

    def __repr__(self) -> str:
        return self.name


def _names(function: Any) -> list[str]:
    """Names that the code of a function reads, inner functions included."""
    found, codes = [], [function.__code__]
    while codes:
        code = codes.pop()
        found.extend(code.co_names)
        codes.extend(c for c in code.co_consts if hasattr(c, "co_names"))
    return found


def _plain(tree: Any) -> list[Any]:
    return [np.asarray(x) for x in ft.tree.leaves(tree)]


def check(case: Case, module: str) -> None:
    """Values, derivatives in both modes, batches and compiled programs."""
    ours = getattr(ft.scipy, module)
    theirs = import_module(f"scipy.{module}")

    def fun(*args: Any) -> Any:
        return case.function(ours, *args)

    expected = _plain(case.function(theirs, *case.args))
    tolerance = {"rtol": case.rtol}
    assert_close(_plain(fun(*case.args)), expected, "plain", **tolerance)
    recorded = ft.vjp(fun, *case.args)[0]
    assert_close(_plain(recorded), expected, "recorded", **tolerance)
    if case.is_staged:
        interpreted = _plain(staged(fun)(*case.args))
        assert_close(interpreted, expected, "staged", **tolerance)
        compiled = _plain(ft.jit(fun)(*case.args))
        assert_close(compiled, expected, "compiled", **tolerance)
        for ours_, one, other in zip(recorded_dtypes(recorded), compiled, expected, strict=True):
            assert ours_ == other.dtype, f"dtype {ours_} instead of {other.dtype}"
            assert one.dtype in (ours_, np.result_type(ours_, np.complex64)), "compiled dtype"
        _check_batch(case, fun, theirs)
    if case.keeps_single:
        _check_single(case, fun)
    if case.order:
        check_grads(
            fun, case.args, case.order, rtol=case.derivative_rtol, atol=case.derivative_rtol
        )


def recorded_dtypes(tree: Any) -> list[np.dtype]:
    return [x.dtype for x in _plain(tree)]


def _check_batch(case: Case, fun: Function, theirs: Any) -> None:
    """A batch of two different arguments gives both results."""
    other = tuple((x * 0.97).astype(x.dtype) for x in case.args)
    pairs = [_plain(case.function(theirs, *args)) for args in (case.args, other)]
    batch = [np.stack(both) for both in zip(case.args, other, strict=True)]
    outs = _plain(ft.vmap(fun)(*batch))
    expected = [np.stack(both) for both in zip(*pairs, strict=True)]
    assert_close(outs, expected, "batched", rtol=case.rtol)


def _check_single(case: Case, fun: Function) -> None:
    """Single precision in gives single precision out, and gradients in the arguments' dtypes."""
    single = {"f": np.float32, "c": np.complex64}
    args = [x.astype(single[x.dtype.kind]) for x in case.args]
    out, pullback = ft.vjp(fun, *args)
    for leaf in _plain(out):
        assert leaf.dtype.kind not in "fc" or leaf.dtype in single.values(), leaf.dtype
    cts = ft.tree.map(lambda x: np.ones_like(x), out)
    assert [p.dtype for p in pullback(cts)] == [x.dtype for x in args]
