"""``out=`` of methods and functions, by keyword and by place, into each kind of array."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from helpers import check_scalar_program

POINT = np.array([0.7, -0.4, 1.3, 0.2, 2.1, -1.6])
check = functools.partial(check_scalar_program, x=POINT)

METHODS: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = {
    # arguments before out, those by keyword, shape of the result of an array of (2, 3)
    "clip": ((-0.5, 1.0), {}, (2, 3)),
    "cumsum": ((1, None), {}, (2, 3)),
    "cumprod": ((0, None), {}, (2, 3)),
    "round": ((1,), {}, (2, 3)),
    "sum": ((0, None), {}, (3,)),
    "prod": ((1, None), {}, (2,)),
    "mean": ((0, None), {}, (3,)),
    "std": ((1, None), {"ddof": 1}, (2,)),
    "var": ((0, None), {"ddof": 0}, (3,)),
    "max": ((1,), {}, (2,)),
    "min": ((0,), {"keepdims": True}, (1, 3)),
    "take": (([2, 0], 1), {"mode": "clip"}, (2, 2)),
    "compress": (([True, False, True], 1), {}, (2, 2)),
    "trace": ((0, 0, 1, None), {}, ()),
    "dot": ((np.arange(6.0).reshape(3, 2),), {}, (2, 2)),
}
WHOLE: dict[str, tuple[tuple[Any, ...], dict[str, Any], tuple[int, ...]]] = {
    "sum": ((None, None), {}, ()),
    "max": ((None,), {}, ()),
    "mean": ((None, None), {}, ()),
    "cumsum": ((None, None), {}, (6,)),
    "take": ((4, None), {}, ()),
}
DISCRETE = {
    "argmax": ((1,), {}, (2,)),
    "argmin": ((0,), {}, (3,)),
    "any": ((1,), {}, (2,)),
    "all": ((0,), {}, (3,)),
}

SOURCES: dict[str, Callable[[Any], Any]] = {
    "argument": lambda x: x.reshape(2, 3),
    "filled": lambda x: _filled(np.zeros((3, 3)), 2.0 * x.reshape(2, 3)),
    "constant": lambda x: np.arange(6.0).reshape(2, 3) - 2.5,
}


def _filled(a: Any, x: Any) -> Any:
    a[: len(x)] = x
    return a[: len(x)]


def _of_constant(x: Any, shape: Any) -> Any:
    out = np.zeros(shape)
    return out, out


def _traced(x: Any, shape: Any) -> Any:
    out = np.ones(shape)
    out[...] = x[0]
    return out, out


def _view(x: Any, shape: Any) -> Any:
    out = np.zeros((*shape[:-1], 2 * shape[-1]) if shape else 2)
    return out, out[..., ::2] if shape else out[1, ...]


TARGETS: dict[str, Callable[[Any, Any], Any]] = {
    "new": _of_constant,
    "traced": _traced,
    "view": _view,
}

CASES = [
    *((name, *row) for table in (METHODS, WHOLE, DISCRETE) for name, row in table.items()),
]


def _called(how: str, name: str, a: Any, args: Any, kwargs: Any, out: Any) -> Any:
    is_method = how.startswith("method")
    function = getattr(a, name) if is_method else functools.partial(getattr(np, name), a)
    if not is_method and name == "compress":
        function, args = functools.partial(np.compress, args[0], a), args[1:]
    if how.endswith("keyword"):
        return function(*args, out=out, **kwargs)
    return function(*args, out, **kwargs)


HOW = ["method, keyword", "method, place", "function, keyword", "function, place"]


@each("how", HOW)
@each("target", TARGETS)
@each("source", SOURCES, by="source", one_of=2)
@each("case", CASES, ids=lambda case: f"{case[0]} {case[3]}")
def test_results_are_written_to_out(case: Any, source: str, target: str, how: str) -> None:
    name, args, kwargs, shape = case
    is_discrete = name in DISCRETE
    if is_discrete and target != "new":
        pytest.skip("of another dtype")
    if (name == "dot" and target == "view") or (name in ("any", "all") and how == "method, place"):
        pytest.skip("refused by NumPy")

    def f(x: Any) -> Any:
        a = SOURCES[source](x)
        whole, out = TARGETS[target](x, shape)
        if is_discrete:
            whole = out = out.astype(bool if name in ("any", "all") else int)
        result = _called(how, name, a, args, kwargs, out)
        assert result is out
        weights = np.arange(1.0, 1.0 + whole.size).reshape(whole.shape)
        return (whole * weights).sum() * x[1] + (result * result).sum()

    check(f, is_short=True)


def into_itself(x: Any) -> Any:
    a = x * 2
    a.clip(-0.5, 0.5, out=a)
    b = np.zeros(6)
    b[:] = x
    b.cumsum(out=b)
    np.dot(np.arange(36.0).reshape(6, 6), b, out=b)
    c = np.arange(6.0)
    c.clip(x[0], x[4], out=c)
    np.clip(c, None, 1.2 * x[2], c)
    return a.sum() + (b * c).sum()


def into_rows(x: Any) -> Any:
    table = np.zeros((3, 6))
    for row in table:
        x.cumsum(out=row)
        np.multiply(row, x, row)
    x.take([0, 1, 2], out=table[1, :3])
    return (table * np.arange(18.0).reshape(3, 6)).sum()


def choices(x: Any) -> Any:
    out, traced = np.zeros(3), np.zeros(3)
    np.array([0, 1, 1]).choose([x[:3], x[3:]], out=out)
    np.choose([1, 0, 1], [out, x[3:]], traced)
    return out @ traced


@pytest.mark.parametrize("f", [into_itself, into_rows, choices])
def test_programs_with_out(f: Any) -> None:
    check(f)


def test_out_of_another_kind_or_from_outside_is_refused() -> None:
    outside = np.zeros(3)

    def counts(x: Any) -> Any:
        a = np.zeros(3, int)
        x[:3].cumsum(out=a)
        return a.sum() * 1.0

    def lost(x: Any) -> Any:
        x = x * np.ones(6)
        x[:3].cumsum(out=outside)
        return x.sum()

    with pytest.raises(TypeError, match="cannot store float64 in an array of int64"):
        ft.grad(counts)(POINT)
    with pytest.raises(ft.errors.UnsupportedOperationError, match="arrays of the caller"):
        ft.grad(lost)(POINT)
    assert not outside.any()


# out=... ------------------------------------------------------------------------------------------

UFUNCS = sorted(
    name
    for name, ufunc in vars(np).items()
    if isinstance(ufunc, np.ufunc)
    and any(set(types[: ufunc.nin]) == {"d"} for types in ufunc.types)
)
OPERANDS: dict[str, Callable[[Any], Any]] = {
    "constant": lambda x: np.full(3, 0.4),
    "constant number": lambda x: np.full((), 0.4),
    "traced": lambda x: np.full(3, 0.2) + 0.2 * x[0] / x[0],
    "traced number": lambda x: 0.4 * x[0] / x[0],
}
has_dots = pytest.mark.skipif(
    np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy before 2.3 has no out=..."
)


@has_dots
@each("operand", OPERANDS)
@each("name", UFUNCS)
def test_dots_ask_for_arrays_without_axes_too(name: str, operand: str) -> None:
    ufunc = getattr(np, name)

    def f(x: Any) -> Any:
        value = OPERANDS[operand](x)
        if ufunc.signature and not np.ndim(value):
            value = np.stack([value, value])
        if name in ("vecmat", "matvec"):
            first, second = (value, np.stack([value] * len(value)))
            operands = [first, second] if name == "vecmat" else [second, first]
        else:
            operands = [value] * ufunc.nin
        results = ufunc(*operands, out=...)
        results = results if isinstance(results, tuple) else (results,)
        shapes = [result.shape for result in results]
        first = results[0].copy()
        for result in results:
            if result.dtype.kind == "f":
                result[...] = 3.0 * x[1]
        return (x[0] * first).sum(), results[-1] * 1.0, shapes

    with np.errstate(all="ignore"):
        plain = f(POINT)
        traced = ft.jvp(lambda x: f(x)[:2], (POINT,), (POINT,))[0]
        compiled = ft.jit(lambda x: f(x)[:2])(POINT)
        shapes: list[Any] = []
        ft.grad(lambda x: shapes.append(f(x)[2]) or x.sum())(POINT)  # type: ignore[func-returns-value]
    assert shapes[0] == plain[2]
    for found in (traced, compiled):
        for own, theirs in zip(found, plain[:2], strict=True):
            np.testing.assert_allclose(own, theirs, rtol=1e-12)


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "take"] + ["std", "var", "min"])
def test_methods_of_numbers_in_arrays(name: str) -> None:
    def f(x: Any) -> Any:
        a = np.full((), 0.4)
        return np.sum(getattr(a, name)()) * x[0] + x[0]

    check(f)
