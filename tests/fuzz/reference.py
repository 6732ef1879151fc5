"""What control flow and transforms mean, in plain Python: the judge's side of a program's words."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

import functrans as ft
from functrans import lax
from functrans import numpy as fnp
from functrans.numpy.at import At


def _stacked(rows: list[Any], axis: int = 0) -> Any:
    return ft.tree.map(lambda *leaves: np.stack(leaves, axis=axis), *rows)


def _types(value: Any) -> list[Any]:
    return [(np.shape(leaf), np.asarray(leaf).dtype) for leaf in ft.tree.leaves(value)]


def _switch(index: Any, branches: Any, *operands: Any) -> Any:
    results = [branch(*operands) for branch in branches]
    if any(_types(result) != _types(results[0]) for result in results):
        raise TypeError("the branches return different types")
    return results[min(max(int(index), 0), len(branches) - 1)]


def _carried(carry: Any, body: Callable[[Any], Any]) -> Any:
    """The next carry, of the same type: a loop that is staged has one program for all turns."""
    new = body(carry)
    if _types(new) != _types(carry):
        raise TypeError("the type of a carried value changes")
    return new


def _fori_loop(lower: Any, upper: Any, body: Callable[..., Any], init: Any) -> Any:
    _carried(init, lambda c: body(lower, c))  # also of no turns
    for i in range(int(lower), int(upper)):
        init = _carried(init, lambda c, i=i: body(i, c))
    return init


def _while_loop(test: Callable[..., Any], body: Callable[..., Any], init: Any) -> Any:
    _carried(init, body)
    while test(init):
        init = _carried(init, body)
    return init


def _scan(body: Any, carry: Any, xs: Any, length: Any = None, reverse: bool = False) -> Any:
    n = len(ft.tree.leaves(xs)[0]) if length is None else length
    rows: list[Any] = []

    def turn(carry: Any, i: int) -> Any:
        carry, y = body(carry, ft.tree.map(lambda x: x[i], xs))
        rows.append(y)
        return carry

    for i in range(n)[:: -1 if reverse else 1]:
        carry = _carried(carry, lambda c, i=i: turn(c, i))
    return carry, _stacked(rows[:: -1 if reverse else 1])


def _vmap(fun: Callable[..., Any], in_axes: Any = 0, out_axes: int = 0) -> Callable[..., Any]:
    def run(*args: Any) -> Any:
        axes = (in_axes,) * len(args) if isinstance(in_axes, int) else in_axes
        n = next(x.shape[a] for x, a in zip(args, axes, strict=True) if a is not None)
        rows = [
            fun(*(x if a is None else np.take(x, i, a) for x, a in zip(args, axes, strict=True)))
            for i in range(n)
        ]
        return _stacked(rows, out_axes)

    return run


def _check_storable(values: Any, array: Any) -> None:
    """NumPy stores fractions in integers; a traced array refuses that."""
    if not np.can_cast(ft.numpy.result_type(values), array.dtype, "same_kind"):
        raise TypeError("the kind of the values would be lost")


class _At:
    """``x.at`` of an ndarray, by NumPy's own updates."""

    def __init__(self, array: Any, index: Any = None) -> None:
        self.array, self.index = array, index

    def __getitem__(self, index: Any) -> _At:
        return _At(self.array, index)

    def get(self) -> Any:
        return self.array[self.index]

    def set(self, values: Any) -> Any:
        return _put(self.array, self.index, values)

    def apply(self, fun: Callable[[Any], Any]) -> Any:
        return self.set(fun(self.array[self.index]))

    def __getattr__(self, name: str) -> Callable[[Any], Any]:
        words = {"min": "minimum", "max": "maximum", "mul": "multiply"}
        ufunc = getattr(np, words.get(name, name))

        def update(values: Any) -> Any:
            _check_storable(values, self.array)
            made = np.array(self.array)
            values = np.asarray(values).astype(made.dtype)  # computed in the dtype of the array
            np.broadcast_to(values, made[self.index].shape)  # others crash NumPy 2.4
            ufunc.at(made, self.index, values)
            return made

        return update


def _put(x: Any, index: Any, values: Any) -> Any:
    """In-place syntax on a copy."""
    _check_storable(values, x)
    made = x.copy()
    made[index] = values
    return made


def _putting(fun: Callable[..., Any], x: Any, *args: Any) -> Any:
    """A function of NumPy's that writes into its first argument, on a copy."""
    _check_storable(args[min(1, len(args) - 1)], x)
    made = x.copy()
    fun(made, *args)
    return made


_COMMON = {"numpy": np, "nan": np.nan, "inf": np.inf, "put": _put, "putting": _putting, "s_": np.s_}

PLAIN: dict[str, Any] = {
    **_COMMON,
    "np": np,
    "at": _At,
    "lax": SimpleNamespace(
        cond=lambda pred, yes, no, *operands: _switch(bool(pred), (no, yes), *operands),
        switch=_switch,
        fori_loop=_fori_loop,
        while_loop=_while_loop,
        scan=_scan,
    ),
    "ft": SimpleNamespace(vmap=_vmap, jit=lambda fun: fun, checkpoint=lambda fun: fun),
}
"""The words of a program for NumPy and Python loops."""

TRACED: dict[str, Any] = {**_COMMON, "np": fnp, "at": At, "lax": lax, "ft": ft}
"""The same words for functrans."""

DISPATCHED: dict[str, Any] = {**TRACED, "np": np}
"""The same words for traced arrays, where NumPy's own functions arrive by its protocols."""
