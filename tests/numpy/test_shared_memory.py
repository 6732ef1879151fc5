"""Which results share memory with their argument: as in NumPy, for every function of one array."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from functrans.errors import FunctransError

X = np.array([1.5, -2.5, 0.5])

VIEWS: dict[str, Callable[[Any], Any]] = {
    "own": lambda a: a,
    "all": lambda a: a[:],
    "part": lambda a: a[1:],
    "one": lambda a: a[:1],
    "none": lambda a: a[3:],
    "column": lambda a: a.reshape(3, 1)[:, :],
    "row": lambda a: a.reshape(1, 3),
    "number seen": lambda a: a[..., 0],
}

FURTHER: dict[str, Callable[[Any], Any]] = {
    "broadcast_to": lambda v: np.broadcast_to(v, v.shape),
    "reshape": lambda v: np.reshape(v, v.shape),
    "reshape to vector": lambda v: v.reshape(-1),
    "swapaxes": lambda v: np.swapaxes(v, 0, -1),
    "moveaxis": lambda v: np.moveaxis(v, 0, -1),
    "rollaxis": lambda v: np.rollaxis(v, 0),
    "permute_dims": lambda v: np.permute_dims(v, tuple(range(v.ndim))),
    "roll": lambda v: np.roll(v, 0),
    "astype": lambda v: v.astype(v.dtype),
    "astype without copy": lambda v: v.astype(v.dtype, copy=False),
    "array without copy": lambda v: np.array(v, copy=None),
    "expand_dims": lambda v: np.expand_dims(v, 0),
    "squeeze an axis": lambda v: np.squeeze(v, 0),
    "squeeze no axis": lambda v: np.squeeze(v, ()),
    "index ()": lambda v: v[()],
    "index ...": lambda v: v[...],
    "index None": lambda v: v[None],
    "index backwards": lambda v: v[::-1],
    "diagonal": lambda v: np.diagonal(v[None] if v.ndim == 1 else v),
    "rot90": lambda v: np.rot90(v, 0),
    "split": lambda v: np.split(v, 1),
    "array_split": lambda v: np.array_split(v, 2),
    "broadcast_arrays": lambda v: np.broadcast_arrays(v, v),
    "flip no axis": lambda v: np.flip(v, ()),
    "nan_to_num without copy": lambda v: np.nan_to_num(v, copy=False),
    "where": lambda v: np.where(True, v, v),
    "tile": lambda v: np.tile(v, 1),
    "repeat": lambda v: np.repeat(v, 1),
    "items": list,
    "unstack": np.unstack,
    "clip": lambda v: np.clip(v, None, 9),
    "sum no axis": lambda v: np.sum(v, axis=()),
    "pad": lambda v: np.pad(v, 0),
    "delete": lambda v: np.delete(v, []),
    "append": lambda v: np.append(v, []),
    "diff": lambda v: np.diff(v, 0),
    "compress": lambda v: np.compress([True], v, 0),
    "einsum": lambda v: np.einsum("...->...", v),
    "einsum transposed": lambda v: np.einsum("ij->ji", v),
}


def _calls() -> dict[str, Callable[[Any], Any]]:
    calls = dict(FURTHER)
    for name in fnp.__all__:
        function = getattr(np, name, None)
        if callable(function) and not isinstance(function, type):
            calls[name] = function
    for name in dir(np.ndarray):
        if name.startswith("_"):
            continue
        if callable(getattr(np.ndarray, name)):
            calls[f".{name}"] = lambda v, name=name: getattr(v, name)()
        else:
            calls[f".{name}"] = lambda v, name=name: getattr(v, name)
    del calls["empty"], calls["empty_like"]  # whose contents are not specified
    return calls


CALLS = _calls()


def _written(call: Callable[[Any], Any], view: Callable[[Any], Any], where: str) -> Any:
    """A function that writes to an array, to a view of it or to a result, and gives both."""

    def f(x: Any) -> Any:
        a = x * 1.0
        v = view(a)
        result = call(v)
        while isinstance(result, (tuple, list)):
            result = result[0]
        if where == "array":
            a *= 2.0
        elif where == "view":
            v[...] = 9.0
        else:
            result += 3.0
        return a * 1.0, result * 1.0

    return f


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "vjp": lambda f: ft.vjp(f, X)[0],
    "jvp": lambda f: ft.jvp(f, (X,), (X,))[0],
    "jaxpr": lambda f: ft.eval_jaxpr(ft.make_jaxpr(f)(X), None, X),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("where", ["array", "view", "result"])
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_writes_reach_what_they_reach_in_numpy(view: str, where: str, transform: str) -> None:
    wrong, n_compared = [], 0
    for name, call in CALLS.items():
        f = _written(call, VIEWS[view], where)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                expected = [np.asarray(out, complex) for out in f(X.copy())]
            except Exception:  # whatever NumPy does not take, or cannot write to
                continue
            try:
                outs = TRANSFORMS[transform](f)
            except (TypeError, ValueError, AttributeError, FunctransError):
                continue  # refused
        n_compared += 1
        for got, wanted in zip(outs, expected, strict=True):
            is_same = np.allclose(np.asarray(got, complex), wanted, 1e-12, equal_nan=True)
            if np.shape(got) != wanted.shape or not is_same:
                wrong.append(f"{name}: {got} instead of {wanted}")
    assert not wrong, "\n".join(wrong)
    assert n_compared > 30
