"""Plain and traced calls accept the same axes, and refuse the same ones."""

from typing import Any

import numpy as np
import pytest

import functrans as ft

# Functions with an axis, and their arguments before it.
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(
        [
            "mean", "var", "std", "median", "flip", "average", "argmax", "argmin", "cumsum",
            "cumprod", "nanargmax", "nanargmin", "nancumsum", "nancumprod", "nanmean", "nanvar",
            "nanstd", "nanmedian", "sum", "prod", "min", "max", "any", "all", "sort", "argsort",
            "ptp", "nansum", "nanprod", "nanmax", "nanmin", "count_nonzero", "diff", "trapezoid",
            "gradient", "squeeze", "expand_dims", "unwrap",
        ],
        (),
    ),
    "take": (0,), "repeat": (2,), "percentile": (50,), "quantile": (0.5,), "delete": (0,),
    "nanpercentile": (50,), "nanquantile": (0.5,), "insert": (0, 1.0), "append": (1.0,),
}  # fmt: skip
AXES = (None, 0, -1, 1, -2, 2, -3, (), (0,), (0, 1), (-1, 0), (0, 0), (0, 2), 1.0, "0")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_plain_and_traced_calls_accept_the_same_axes(name: str) -> None:
    for x in (np.array(2.0), np.arange(1.0, 4.0), np.arange(6.0).reshape(2, 3)):
        for axis in AXES:

            def call(y: Any, axis: Any = axis) -> Any:
                return getattr(np, name)(y, *FUNCTIONS[name], axis=axis)

            def accepts(run: Any, x: Any = x) -> bool:
                try:
                    run(x)
                except (TypeError, ValueError, IndexError):
                    return False
                return True

            assert accepts(ft.make_jaxpr(call)) == accepts(call), (x.ndim, axis)
