"""numba's kernels compute what NumPy does, to the bit, and are used when that pays only."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cases import each
from functrans.kernels import loops, table
from functrans.primitives.cumulative import linear_recurrence_p
from functrans.primitives.gather_scatter import accumulate_p, scatter_add_p
from functrans.primitives.scatter_reduce import neighbour_writes_p, scatter_reduce_p

DTYPES = ("float64", "float32", "int64", "int32")


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Kernels are used for everything; gives the names of those that were."""
    used: list[str] = []

    def pays(name: str, saved_s: float) -> bool:
        assert saved_s >= 0
        if name:
            used.append(name)
        return bool(name)

    monkeypatch.setattr(table, "pays", pays)
    return used


def _values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(dtype)
    bound = np.iinfo(dtype).max
    return rng.integers(-bound, bound, shape, dtype=dtype)


def _both(
    monkeypatch: pytest.MonkeyPatch, primitive: Any, *operands: Any, **params: Any
) -> tuple[Any, Any]:
    """Results with kernels, and of NumPy alone."""
    with_kernels = primitive.impl(*operands, **params)
    monkeypatch.setattr(table, "pays", lambda name, saved_s: False)
    return with_kernels, primitive.impl(*operands, **params)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "axis"), [((40,), 0), ((7, 3), 1), ((5, 4, 3), 1), ((6, 50), 0)])
def test_linear_recurrence(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    eager: list[str],
    dtype: str,
    reverse: bool,
    shape: tuple[int, ...],
    axis: int,
) -> None:
    a, b = _values(rng, shape, dtype), _values(rng, shape, dtype)
    if dtype.startswith("f"):
        b.flat[1] = np.inf
    operands = (a, np.asfortranarray(b))
    found, expected = _both(monkeypatch, linear_recurrence_p, *operands, axis=axis, reverse=reverse)
    assert eager
    assert found[0].tobytes() == expected[0].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", [3, 40])
@pytest.mark.parametrize("op", ["add", "multiply"])
@pytest.mark.parametrize("is_scalar", [False, True])
def test_scatters(
    rng: np.random.Generator,
    monkeypatch: pytest.MonkeyPatch,
    eager: list[str],
    dtype: str,
    width: int,
    op: str,
    is_scalar: bool,
) -> None:
    x = _values(rng, (5, width, 2), dtype)
    index = rng.integers(-5, 5, (4, 6))
    v = _values(rng, () if is_scalar else (4, 6, width, 2), dtype)
    params: dict[str, Any] = {"axes": (0,), "mode": "raise", "unique_indices": False}
    primitive: Any = scatter_add_p
    if op == "multiply":
        primitive, params["op"] = scatter_reduce_p, op
    found, expected = _both(monkeypatch, primitive, x, v, index, **params)
    assert eager == [f"scatter_{op}_{dtype[0]}{dtype[-2:]}"]
    assert found[0].tobytes() == expected[0].tobytes()


def test_indices_out_of_bounds_are_refused(eager: list[str]) -> None:
    v, index = np.ones((2, 30)), np.array([0, 3])
    params = {"shape": (3, 30), "axes": (0,), "mode": "raise"}
    with pytest.raises(IndexError, match="out of bounds for axis 0"):
        accumulate_p.impl(v, index, **params)
    assert not eager


@pytest.mark.parametrize("mode", ["raise", "drop", "clip", "wrap"])
def test_neighbour_writes(
    rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch, eager: list[str], mode: str
) -> None:
    reach = 0 if mode == "raise" else 3
    indices = tuple(rng.integers(-n - reach, n + reach, (20, 3)) for n in (5, 4))
    found, expected = _both(monkeypatch, neighbour_writes_p, *indices, extents=(5, 4), mode=mode)
    assert eager
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_kernel_is_a_function_of_arrays() -> None:
    name = "linear_recurrence_f64"
    assert table.function(name) == table.function(name)
    a, b, out = np.full((1, 4, 1), 2.0), np.ones((1, 4, 1)), np.empty((1, 4, 1))
    table.function(name)(a, b, out, 0)
    assert out.ravel().tolist() == [1.0, 3.0, 7.0, 15.0]


def test_unknown_kernels_are_named() -> None:
    with pytest.raises(LookupError, match="no kernel 'sorted'"):
        table.function("sorted")
    assert table.name_for("linear_recurrence", np.dtype(np.complex128)) == ""
    assert table.name_for("linear_recurrence", np.dtype(">f8")) == ""


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A process and a disk without kernels."""
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path))
    for known, nothing in (
        ((table, "_known"), {}),
        ((table, "_lost_s"), {}),
        ((loops, "_loops"), {}),
    ):
        monkeypatch.setattr(*known, nothing)


def test_a_kernel_pays_after_as_much_was_lost(unknown: None) -> None:
    name = "scatter_add_f64"
    assert not table.pays(name, 1e-9)
    assert not table.pays("", 100.0)
    assert not table.pays(name, 1.0)
    assert table.pays(name, 1.0)
    table.function(name)
    assert table.pays(name, 1e-3)
    assert not table.pays(name, 1e-9)


def test_a_kernel_that_is_on_disk_pays_sooner(
    unknown: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "scatter_add_f64"
    table.function(name)
    first = table._known[name]
    monkeypatch.setattr(table, "_known", {})
    monkeypatch.setattr(loops, "_loops", {})
    assert not table.pays(name, 0.06)
    assert table.pays(name, 0.06)
    second = table._known[name]
    assert first is not None
    assert second is not None
    assert second.address != first.address
    out = np.zeros(3)
    second.run(out, np.ones(2), np.array([1, 1]), np.array([0]), 1)
    assert out.tolist() == [0.0, 2.0, 0.0]


@each("name", table.KERNELS)
def test_kernels_are_kept_on_disk(name: str) -> None:
    table.function(name)
    loop = table._known[name]
    assert loop is not None
    assert loop.is_portable


def test_without_numba_numpy_does_it(unknown: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loops, "numba", lambda: None)
    assert not table.pays("scatter_add_f64", 1e9)
    with pytest.raises(LookupError, match="needs numba"):
        table.function("scatter_add_f64")


def test_numba_is_not_imported_for_small_work() -> None:
    code = (
        "import sys, numpy as np, functrans\n"
        "from functrans.primitives.cumulative import linear_recurrence_p\n"
        "from functrans.core.dispatch import bind\n"
        "ones = np.ones((100, 30))\n"
        "bind(linear_recurrence_p, ones, ones, axis=0, reverse=False)\n"
        "assert 'numba' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
