"""``where`` on plain arrays, which chooses by bits where that is faster: NumPy's bytes."""

from typing import Any

import numpy as np
import pytest

from functrans.primitives.elementwise import where_p


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", ">f4", ">f8", "c8", "i4", "bool"])
@pytest.mark.parametrize("shape", [(10,), (5000,), (80, 90)])
def test_choices_have_numpys_bytes(dtype: str, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(len(shape))

    def array() -> np.ndarray:
        return np.asarray((rng.normal(size=shape) * 10).astype(dtype))

    special = array()
    if special.dtype.kind in "fc":
        special.flat[::3], special.flat[1::5], special.flat[2::7] = np.nan, -0.0, -np.inf
    numbers = [0, 0.0, -0.0, 1, 2.5, np.nan, False, True, np.float32(3), np.float64(0)]
    others = [
        np.zeros((), dtype),
        np.ones(1, dtype),
        special.real.astype(float),
        array().T.copy().T,
    ]
    operands: list[Any] = [special, array(), *numbers, *others]
    conditions = rng.normal(size=shape) > 0
    for condition in (conditions, ~conditions, conditions.astype("i1"), conditions.T.copy().T):
        before = condition.copy()
        for a in operands:
            for b in operands:
                expected, found = np.where(condition, a, b), where_p.impl(condition, a, b)[0]
                assert type(found) is type(expected)
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                assert found.tobytes() == expected.tobytes(), (a, b)
        assert condition.tobytes() == before.tobytes()
