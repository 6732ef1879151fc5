"""Plain and traced calls accept the same axes, and refuse the same ones.

The functions are those of the table of NumPy's functions that have an argument for axes.
"""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.numpy.protocols import array_functions

# Arguments before those for axes, of functions that have more than one.
ARGUMENTS: dict[str, Callable[[Any], tuple[Any, ...]]] = {
    **dict.fromkeys(["linspace", "logspace", "geomspace"], lambda a: (a, a + 1, 4)),
    **dict.fromkeys(["concatenate", "stack", "lexsort"], lambda a: ((a, a),)),
    **dict.fromkeys(["append", "cross", "tensordot", "vecdot"], lambda a: (a, a)),
    **dict.fromkeys(["delete", "take", "partition", "argpartition"], lambda a: (a, 0)),
    **dict.fromkeys(["quantile", "nanquantile"], lambda a: (a, 0.5)),
    **dict.fromkeys(["percentile", "nanpercentile"], lambda a: (a, 50)),
    **dict.fromkeys(["array_split", "split", "roll"], lambda a: (a, 1)),
    "compress": lambda a: ([True, False], a),
    "insert": lambda a: (a, 0, 1.0),
    "repeat": lambda a: (a, 2),
    "sliding_window_view": lambda a: (a, 2),
    "take_along_axis": lambda a: (a, np.zeros(a.shape, int)),
    "tensorsolve": lambda a: (np.eye(6).reshape(2, 3, 2, 3), a),
    "apply_along_axis": lambda a: (np.sum, a),
    "apply_over_axes": lambda a: (np.sum, a),
    "put_along_axis": lambda a: (a, np.zeros(a.shape, int), 2.0),
}
# Other axes that a function must have, beside the one that is looked at.
BESIDE: dict[str, dict[str, Any]] = {
    "swapaxes": {"axis1": 0, "axis2": 0},
    "moveaxis": {"source": 0, "destination": 0},
}
WITH_VALUES = {"trim_zeros", "unique", "nanargmax", "nanargmin"}
AXES: tuple[Any, ...] = (
    None, 0, -1, 1, -2, 2, -3, 5, (), (0,), (0, 1), (-1, 0), (0, 0), (0, 2), [0], [1, 0],
    True, False, np.True_, (True,), np.int64(0), np.array(0), np.array([0]), np.array(0.0),
    1.0, (0.0,), "0", "a", 1j,
)  # fmt: skip
OPERANDS = (np.array(2.0), np.arange(1.0, 4.0), np.arange(1.0, 7.0).reshape(2, 3))


def _rows() -> Iterator[tuple[Callable[..., Any], str]]:
    ft.make_jaxpr(np.sum)(0.0)  # which fills the table
    for function, traced in array_functions().items():
        for name in inspect.signature(traced).parameters:
            if name.startswith("ax") or name in ("source", "destination"):
                yield function, name


def _call(function: Any, name: str, axis: Any) -> Callable[[Any], Any]:
    """The function of its first operand."""
    own = function.__name__
    options = {**BESIDE.get(own, {}), name: axis}

    def call(x: Any) -> Any:
        if own.startswith("apply"):
            (inner, operand), axes = ARGUMENTS[own](x), options.popitem()[1]
            order = (axes, operand) if own == "apply_along_axis" else (operand, axes)
            return function(inner, *order)
        x = x.copy() if own == "put_along_axis" else x
        result = function(*ARGUMENTS.get(own, lambda a: (a,))(x), **options)
        return x if own == "put_along_axis" else result

    return call


def _outcome(function: Callable[[], Any]) -> Any:
    """Results, or the error."""
    try:
        return [np.asarray(y) for y in ft.tree.leaves(function())]
    except (TypeError, ValueError, IndexError) as error:
        return error


def _run(function: Callable[[Any], Any], x: Any, needs_values: bool) -> Any:
    """The results for a matrix; for others it is enough that tracing raises no error."""
    if needs_values:
        return ft.vjp(function, x)[0]
    jaxpr = ft.make_jaxpr(function)(x)
    return ft.eval_jaxpr(jaxpr, None, x) if x.ndim == 2 else ()


@pytest.mark.parametrize(
    ("function", "name"), list(_rows()), ids=lambda x: getattr(x, "__name__", x)
)
@pytest.mark.filterwarnings("ignore")
def test_plain_and_traced_calls_accept_the_same_axes(function: Any, name: str) -> None:
    accepted = 0
    for x in OPERANDS:
        for axis in AXES:
            plain = _outcome(lambda x=x, axis=axis: _call(function, name, axis)(x))
            traced = _outcome(
                lambda x=x, axis=axis: _run(
                    _call(function, name, axis), x, function.__name__ in WITH_VALUES
                )
            )
            case = (x.ndim, axis, plain, traced)
            assert isinstance(traced, Exception) == isinstance(plain, Exception), case
            if isinstance(plain, Exception):
                # Of matrices nothing else is wrong, so that the kind of the error is certain.
                is_type = isinstance(plain, TypeError) and x.ndim == 2
                assert not is_type or isinstance(traced, TypeError), case
                continue
            accepted += 1
            if x.ndim < 2:
                continue
            assert [y.shape for y in traced] == [y.shape for y in plain], case
            for y, expected in zip(traced, plain, strict=True):
                np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-12, err_msg=str(case))
    assert accepted


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3)])
def test_values_fit_where_index_arrays_select_as_in_numpy(shape: tuple[int, ...]) -> None:
    """Selections without elements take any leading axes of values that have none."""

    def written(x: Any, v: Any, places: Any, is_along: bool) -> Any:
        x = x * 1.0
        if is_along:
            np.put_along_axis(x, places, v, 0)
        else:
            x[places] = v
        return x

    for own in ((0, *shape[1:]), (1, *shape[1:]), (2, *shape[1:])):
        if shape[0] == 0 and own[0]:
            continue
        for like in ((), (2,), (0,), (1,), (2, 0), (2, 1), (1, 1, 3), (2, 1, 3), (2, 3), (0, 3)):
            for is_along in (False, True):
                args = (np.ones(shape), np.full(like, 2.0), np.zeros(own, int), is_along)
                plain = _outcome(lambda args=args: written(*args))
                traced = _outcome(
                    lambda args=args: ft.jit(lambda x, v: written(x, v, *args[2:]))(*args[:2])
                )
                case = (own, like, is_along, plain, traced)
                assert isinstance(traced, Exception) == isinstance(plain, Exception), case
                if not isinstance(plain, Exception):
                    np.testing.assert_array_equal(traced, plain, err_msg=str(case))
