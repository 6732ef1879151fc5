"""Exported loops: an index that cannot be out of range is no status, and all others are."""

import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from exported_calls import called
from functrans import lax

X = np.random.default_rng(0).normal(size=7)

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


@pytest.mark.parametrize("kind", ["read", "nested", "stacked", "written", "gradient"])
@pytest.mark.parametrize("seed", range(6))
def test_statuses_are_what_can_happen(tmp_path: Path, kind: str, seed: int) -> None:
    draw = random.Random(f"{kind} {seed}")
    start, rounds = draw.randint(-2, 3), draw.randint(1, 5)
    factor, offset = draw.choice([-1, 1, 1, 2]), draw.randint(-2, 4)

    def index(i: Any) -> Any:
        return factor * i + offset

    def read(x: Any) -> Any:
        return lax.fori_loop(start, start + rounds, lambda i, c: c * 0.5 + x[index(i)], 0.0)

    def nested(x: Any) -> Any:
        def outer(i: Any, c: Any) -> Any:
            return lax.fori_loop(0, 2, lambda j, c: c * 0.5 + x[index(i) - 2 * j + 2], c)

        return lax.fori_loop(start, start + rounds, outer, 0.0)

    def stacked(x: Any) -> Any:
        places = lax.scan(lambda i, _: (i + 1, index(i)), start, None, length=rounds)[1]
        return lax.scan(lambda c, i: (c * 0.5 + x[i], None), 0.0, places)[0]

    def written(x: Any) -> Any:
        def step(i: Any, c: Any) -> Any:
            c = fnp.array(c)
            c[index(i)] = 2.0 * i
            return c

        return lax.fori_loop(start, start + rounds, step, x)

    function = {
        "read": read, "nested": nested, "stacked": stacked, "written": written,
        "gradient": ft.grad(lambda x: read(x) ** 2),
    }[kind]  # fmt: skip
    counters = range(start, start + rounds)
    places = [
        index(i) - 2 * j + 2 * (kind == "nested")
        for i in counters
        for j in (0, 1)[: 1 + (kind == "nested")]
    ]
    fits = all(-len(X) <= place < len(X) for place in places)
    exported = ft.jit(function).export(tmp_path, X, name="loop", kind="shared")
    has_status = any("INDEX_ERROR" in name for name in exported.statuses.values())
    assert has_status == (not fits)
    like = X if kind in ("written", "gradient") else X[0]
    status, found = called(exported, [X], [np.array(like)])
    assert (status == 0) == fits
    if fits:
        np.testing.assert_allclose(found[0], ft.jit(function)(X), rtol=1e-13)
    else:
        with pytest.raises(IndexError):
            ft.jit(function)(X)


def test_a_number_of_rounds_that_is_given_may_be_too_great(tmp_path: Path) -> None:
    def total(x: Any, n: Any) -> Any:
        return lax.fori_loop(0, n, lambda i, c: c + x[i], 0.0)

    exported = ft.jit(total).export(tmp_path, X, 3, name="total", kind="shared")
    ((status, name),) = [item for item in exported.statuses.items() if item[0]]
    assert name == "TOTAL_INDEX_ERROR"
    assert called(exported, [X, np.array(8)], [np.array(0.0)])[0] == status
    assert called(exported, [X, np.array(7)], [np.array(0.0)])[0] == 0


def test_counters_that_wrap_around_in_their_dtype_are_not_followed(tmp_path: Path) -> None:
    def walk(x: Any) -> Any:
        def step(i: Any, _: Any) -> Any:
            return i + np.int8(100), x[i - np.int8(100)]

        return lax.scan(step, np.int8(100), None, length=3)[1]

    exported = ft.jit(walk).export(tmp_path, X, name="walk")
    assert "WALK_INDEX_ERROR" in exported.statuses.values()
