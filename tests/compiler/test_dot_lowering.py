"""Native products against NumPy's: every order of axes, every dtype, every core."""

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import functrans as ft
from compiler.routine_harness import program, run
from functrans.compiler import threads
from functrans.emitter.types import Machine
from functrans.primitives.dot import dot_general_p
from functrans.primitives.native import dot as dot_lowering
from helpers import assert_close
from samples import ROWS

PRODUCTS = next(row for row in ROWS if row.primitive is dot_general_p)
NONE: Any = ((), ())
MATMUL: Any = ((1,), (0,))
REAL = ("f8", "f4")
DTYPES = (*REAL, "c16", "c8", "i8", "i4", "i2", "i1", "u8", "u1", "?", "f2", "bfloat16")
EPS = {
    "f8": 2.0**-52,
    "c16": 2.0**-52,
    "f4": 2.0**-23,
    "c8": 2.0**-23,
    "f2": 2.0**-10,
    "bfloat16": 2.0**-7,
}


def _dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16) if name == "bfloat16" else np.dtype(name)


def _draw(rng: np.random.Generator, shape: tuple[int, ...], name: str) -> np.ndarray:
    dtype = _dtype(name)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.4)
    if dtype.kind in "iu":
        low = -100 if dtype.kind == "i" else 0
        return np.asarray(rng.integers(low, 100, shape)).astype(dtype)
    x = np.asarray(rng.uniform(-2, 2, shape))
    if dtype.kind == "c":
        x = x + 1j * rng.uniform(-2, 2, shape)
    return np.asarray(x).astype(dtype)


def _agrees(name: str, a: np.ndarray, b: np.ndarray, **params: Any) -> None:
    """Integers are equal; floats are within the rounding of sums of absolute values."""
    (found,) = run(dot_general_p, a, b, **params)
    if a.dtype.kind in "iub":
        (expected,) = dot_general_p.impl(a, b, **params)
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
        return
    wide = np.complex128 if a.dtype.kind == "c" else np.float64
    wa, wb = a.astype(wide), b.astype(wide)
    (expected,) = dot_general_p.impl(wa, wb, **params)
    (size,) = dot_general_p.impl(np.abs(wa), np.abs(wb), **params)
    assert found.shape == np.shape(expected)
    assert found.dtype == a.dtype
    error = np.abs(found.astype(wide) - expected)
    assert (error <= 8 * EPS[name] * size + 2.0**-24 * (name == "f2")).all()


@pytest.mark.parametrize("label", [sample.label for sample in PRODUCTS.samples()])
def test_samples(label: str) -> None:
    sample = PRODUCTS.sample(label)
    dtype = np.result_type(*sample.operands)  # what the caller converts operands to
    a, b = (np.asarray(x).astype(dtype) for x in sample.operands)
    (found,) = run(dot_general_p, a, b, **sample.params)
    (expected,) = dot_general_p.impl(a, b, **sample.params)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype == np.float32 else 1e-14)


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes(name: str, rng: np.random.Generator) -> None:
    for m, n, k in ((5, 7, 9), (1, 40, 3), (19, 18, 33)):
        _agrees(
            name, _draw(rng, (m, k), name), _draw(rng, (k, n), name), contract=MATMUL, batch=NONE
        )
    x, y = _draw(rng, (37,), name), _draw(rng, (37,), name)
    _agrees(name, x, y, contract=((0,), (0,)), batch=NONE)
    _agrees(name, x, y, contract=NONE, batch=NONE)
    _agrees(name, x, y, contract=NONE, batch=((0,), (0,)))


@pytest.mark.parametrize("name", ["f8", "f4", "c16", "c8"])
@pytest.mark.parametrize("orders", list(itertools.product((0, 1), (0, 1))), ids=str)
def test_blas_reads_all_orders(name: str, orders: Any, rng: np.random.Generator) -> None:
    i, j = orders
    m, n, k = 30, 28, 31
    a = _draw(rng, ((m, k), (k, m))[i], name)
    b = _draw(rng, ((k, n), (n, k))[j], name)
    params = {"contract": ((1 - i,), (j,)), "batch": NONE}
    native = program(dot_general_p, a, b, machine=Machine(), **params)
    assert native.symbols == [f"blas.{dot_lowering.LETTER[a.dtype.char]}gemm"]
    assert "alloca" not in native.text, "nothing is copied"
    exact = np.asarray(dot_general_p.impl(a, b, **params)[0])
    np.testing.assert_allclose(native(a, b)[0], exact, rtol=64 * EPS[name], atol=64 * EPS[name])


@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("orders", list(itertools.product((0, 1), (0, 1))), ids=str)
@pytest.mark.parametrize(
    "sizes",
    [
        (32, 32, 32),
        (5, 100, 64),  # one row of tiles
        (23, 64, 1300),  # sums in three blocks
        (64, 70, 33),  # a narrow tile at the end, and one that overlaps
        (41, 43, 40),
        (300, 250, 120),  # rows in ranges, on threads
        (16, 900, 640),  # columns in ranges
    ],
    ids=str,
)
def test_large_products_are_tiles(
    name: str, orders: Any, sizes: Any, rng: np.random.Generator
) -> None:
    i, j = orders
    m, n, k = sizes
    shapes = ((m, k), (k, m))[i], ((k, n), (n, k))[j]
    params = {"contract": ((1 - i,), (j,)), "batch": NONE}
    wide = Machine(registers=32)
    # whole numbers: every order of sums gives the same, and nothing is rounded
    a, b = (rng.integers(-8, 9, shape).astype(name) for shape in shapes)
    native = program(dot_general_p, a, b, machine=wide, **params)
    assert not native.symbols
    assert "functrans.product" in native.text
    np.testing.assert_array_equal(native(a, b)[0], dot_general_p.impl(a, b, **params)[0])
    a, b = (_draw(rng, shape, name) for shape in shapes)
    before = threads.get_num_threads()
    found = []
    for count in (1, 2, 3):
        threads.set_num_threads(count)
        found.append(native(a, b)[0])
    threads.set_num_threads(before)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    expected = dot_general_p.impl(a.astype("f8"), b.astype("f8"), **params)[0]
    size = dot_general_p.impl(abs(a.astype("f8")), abs(b.astype("f8")), **params)[0]
    assert (abs(found[0] - expected) <= 2 * EPS[name] * np.sqrt(k) * size).all()


def test_large_products_of_a_batch(rng: np.random.Generator) -> None:
    a, b = _draw(rng, (3, 40, 64), "f8"), _draw(rng, (3, 64, 48), "f8")
    params: Any = {"contract": ((2,), (1,)), "batch": ((0,), (0,))}
    native = program(dot_general_p, a, b, machine=Machine(registers=32), **params)
    assert not native.symbols
    np.testing.assert_allclose(native(a, b)[0], a @ b, rtol=1e-13, atol=1e-13)


def test_products_that_fill_their_tiles_badly_are_left_to_blas(rng: np.random.Generator) -> None:
    for sizes in ((40, 9, 100), (64, 5, 100)):
        m, n, k = sizes
        a, b = _draw(rng, (m, k), "f8"), _draw(rng, (k, n), "f8")
        params: Any = {"contract": MATMUL, "batch": NONE, "machine": Machine(registers=32)}
        assert program(dot_general_p, a, b, **params).symbols == ["blas.dgemm"]


@pytest.mark.parametrize("registers", [8, 32])
@pytest.mark.parametrize("name", ["f8", "f4"])
@pytest.mark.parametrize(
    "sizes",
    [
        *((64, 64, 64), (67, 65, 70), (5, 100, 600), (129, 257, 513), (300, 300, 7), (1000, 9, 40)),
        *((7, 1500, 700), (40, 1500, 700)),  # panels of several slices, on one thread and on some
    ],
)
def test_large_products_are_panels_in_any_order(
    sizes: tuple[int, int, int], name: str, registers: int, rng: np.random.Generator
) -> None:
    """Of whole numbers every sum is exact, so that each element is right to the bit."""
    m, n, k = sizes
    a, b = (rng.integers(-9, 10, shape).astype(name) for shape in ((m, k), (k, n)))
    machine = Machine(registers=registers)
    for axes in itertools.product((0, 1), (0, 1)):
        pairs = zip((a, b), axes, strict=True)
        operands = [np.ascontiguousarray(x.T) if axis else x for x, axis in pairs]
        params: Any = {"contract": ((1 - axes[0],), (axes[1],)), "batch": NONE, "machine": machine}
        native = program(dot_general_p, *operands, **params)
        assert not native.symbols
        np.testing.assert_array_equal(native(*operands)[0], a.astype("f8") @ b.astype("f8"))


@pytest.mark.parametrize("name", ["f8", "f4"])
def test_no_element_depends_on_the_number_of_threads(name: str, rng: np.random.Generator) -> None:
    product = ft.jit(lambda a, b: a @ b)
    before = ft.get_num_threads()
    for m, n, k in (
        (300, 310, 320),
        (20, 2000, 260),
        (2000, 20, 260),
        (513, 64, 700),
        (60, 1500, 700),
    ):
        a, b = _draw(rng, (m, k), name), _draw(rng, (k, n), name)
        found = []
        try:
            for threads in (1, 2, 5):
                ft.set_num_threads(threads)
                found.append(product(a, b))
        finally:
            ft.set_num_threads(before)
        assert all((x == found[0]).all() for x in found)
        # sums of up to 700 products of about 1, in another order than BLAS
        np.testing.assert_allclose(found[0], a @ b, rtol=0, atol=2000 * EPS[name])


@pytest.mark.parametrize("name", ["f8", "c16"])
def test_products_with_the_own_transpose(name: str, rng: np.random.Generator) -> None:
    """Results of one operand given twice are exactly symmetric."""
    a = _draw(rng, (40, 30), name)
    for axis in (0, 1):
        params = {"contract": ((axis,), (axis,)), "batch": NONE}
        native = program(dot_general_p, a, a, same=True, **params)
        assert native.symbols == [f"blas.{dot_lowering.LETTER[a.dtype.char]}syrk"]
        (found,) = native(a, a)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, dot_general_p.impl(a, a, **params)[0], atol=1e-13)


@pytest.mark.parametrize("seed", range(60))
def test_random_axes(seed: int) -> None:
    """Any number of axes of each role, in any order, with extents of 1 and odd ones."""
    rng = np.random.default_rng(seed)
    while True:
        counts = dict(zip("bmnk", rng.integers(0, 3, 4), strict=True))
        axes = [
            (role, int(rng.choice([1, 2, 3, 4, 5, 8, 9, 17, 33])))
            for role in counts
            for _ in range(counts[role])
        ]
        if 0 < np.prod([float(n) for _, n in axes]) < 2e5:
            break
    numbers = range(len(axes))
    a_axes = rng.permutation([i for i in numbers if axes[i][0] in "bmk"]).tolist()
    b_axes = rng.permutation([i for i in numbers if axes[i][0] in "bnk"]).tolist()
    pairs = {}
    for role in "bk":
        order = rng.permutation([i for i in numbers if axes[i][0] == role]).tolist()
        pairs[role] = tuple(map(a_axes.index, order)), tuple(map(b_axes.index, order))
    name = DTYPES[seed % len(DTYPES)]
    a, b = (_draw(rng, tuple(axes[i][1] for i in own), name) for own in (a_axes, b_axes))
    _agrees(name, a, b, contract=pairs["k"], batch=pairs["b"])


# label, shape of either operand, contracted axes, batch axes
SHAPES: tuple[tuple[str, Any, Any, Any, Any], ...] = (
    ("summed_axes_apart", (3, 600, 4), (600, 3, 4, 9), ((0, 1, 2), (1, 0, 2)), NONE),
    ("copied_for_blas", (40, 3, 41), (41, 3, 42), ((1, 2), (1, 0)), NONE),
    ("rows_merge", (30, 2, 31), (31, 33), ((2,), (0,)), NONE),
    ("rows_by_column", (31, 30, 2), (31, 33), ((0,), (0,)), NONE),
    ("batches_for_blas", (4, 30, 31), (31, 4, 33), ((2,), (0,)), ((0,), (1,))),
    ("inner_products", (50, 3), (50, 3), ((1,), (1,)), ((0,), (0,))),
    ("inner_products_of_columns", (50, 33), (50, 33), ((0,), (0,)), ((1,), (1,))),
    ("trace", (9, 50), (50, 9), ((0, 1), (1, 0)), NONE),
    ("long_sums_by_lanes", (1200, 3), (1200,), ((0,), (0,)), NONE),
    ("long_sums", (3, 20001), (20001,), ((1,), (0,)), NONE),
    ("narrow", (7, 3), (3, 2), ((1,), (0,)), NONE),
)


@pytest.mark.parametrize("name", ["f8", "f4", "c16", "i4", "f2"])
@pytest.mark.parametrize(
    ("a", "b", "contract", "batch"), [pytest.param(*rest, id=label) for label, *rest in SHAPES]
)
def test_shapes(
    name: str, a: Any, b: Any, contract: Any, batch: Any, rng: np.random.Generator
) -> None:
    if name == "f2" and 20001 in a:
        pytest.skip("sums leave the range of half precision")
    params = {"contract": contract, "batch": batch}
    _agrees(name, _draw(rng, a, name), _draw(rng, b, name), **params)


@pytest.mark.parametrize(
    ("a", "b", "contract", "batch"),
    [
        ((2, 0), (0, 3), MATMUL, NONE),
        ((0, 2), (2, 3), MATMUL, NONE),
        ((0,), (0,), ((0,), (0,)), NONE),
        ((0, 2), (0, 2), ((1,), (1,)), ((0,), (0,))),
        ((3, 0), (3, 0), ((1,), (1,)), ((0,), (0,))),
    ],
)
def test_empty(a: Any, b: Any, contract: Any, batch: Any) -> None:
    for name in ("f8", "i4", "?"):
        params = {"contract": contract, "batch": batch}
        x, y = np.ones(a, name), np.ones(b, name)
        np.testing.assert_array_equal(
            run(dot_general_p, x, y, **params)[0], dot_general_p.impl(x, y, **params)[0]
        )


def test_products_with_a_vector_call_no_library() -> None:
    for a, b in (((500, 400), (400,)), ((400,), (400, 500)), ((10**5,), (10**5,))):
        params = {"contract": ((len(a) - 1,), (0,)), "batch": NONE}
        assert not program(dot_general_p, np.empty(a), np.empty(b), **params).symbols


def test_sums_are_as_accurate_as_numpy(rng: np.random.Generator) -> None:
    x, y = (rng.uniform(0, 1, 10**6).astype(np.float32) for _ in range(2))
    exact = np.dot(x.astype(float), y.astype(float))
    (found,) = run(dot_general_p, x, y, contract=((0,), (0,)), batch=NONE)
    assert abs(float(found) - exact) <= max(abs(float(np.dot(x, y)) - exact), 2.0**-23 * exact)


def test_nan_and_infinity_reach_the_result() -> None:
    a = np.array([[np.nan, 1.0], [np.inf, 0.0]])
    b = np.array([[0.0, 1.0], [2.0, -np.inf]])
    (found,) = run(dot_general_p, a, b, contract=MATMUL, batch=NONE)
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(found, np.array([[np.nan, np.nan], [np.nan, np.nan]]))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_levels_of_optimisation_agree(level: int, rng: np.random.Generator) -> None:
    a, b = rng.uniform(-1, 1, (9, 21)), rng.uniform(-1, 1, (21, 11))
    params = {"contract": MATMUL, "batch": NONE}
    (first,) = program(dot_general_p, a, b, level=0, **params)(a, b)
    (found,) = program(dot_general_p, a, b, level=level, **params)(a, b)
    np.testing.assert_array_equal(found, first)


def test_operands_of_two_dtypes_are_not_served() -> None:
    rule = dot_general_p.lower
    avals = np.empty(2), np.empty(2, np.float32)
    assert not rule.supports(*avals, contract=((0,), (0,)), batch=NONE)  # type: ignore[union-attr]


BATCHES = {
    "batch": ("bij,bjk->bik", (24, 40, 50), (24, 50, 60)),
    "two axes": ("abij,abjk->abik", (3, 17, 40, 32), (3, 17, 32, 33)),
    "transposed": ("bji,bkj->bik", (70, 30, 36), (70, 37, 30)),
    "axis inside": ("ibj,jbk->bik", (40, 50, 40), (40, 50, 41)),
    "heads": ("bshd,bthd->bhst", (4, 64, 8, 24), (4, 66, 8, 24)),
    "shared": ("bij,jk->bik", (60, 30, 50), (50, 40)),
    "small": ("bij,bjk->bik", (4000, 8, 8), (4000, 8, 9)),
    "vectors": ("bi,bi->b", (3000, 700), (3000, 700)),
    "few": ("bij,bjk->bik", (3, 90, 95), (3, 95, 100)),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128", "int64"])
@pytest.mark.parametrize("name", BATCHES)
def test_batches_on_threads(name: str, dtype: str) -> None:
    """Rounds around a product are shared; each has the bits of one thread."""
    text, *shapes = BATCHES[name]
    rng = np.random.default_rng(0)
    a, b = ((10 * rng.normal(size=shape)).astype(dtype) for shape in shapes)
    f = ft.jit(lambda a, b: np.einsum(text, a, b))
    expected = np.einsum(text, a, b)
    before = ft.get_num_threads()
    try:
        results = []
        for threads in (1, 2, 7):
            ft.set_num_threads(threads)
            results.append(f(a, b))
    finally:
        ft.set_num_threads(before)
    tolerance = {"float32": 1e-4, "int64": 0}.get(dtype, 1e-12) * np.abs(expected).max()
    np.testing.assert_allclose(results[0], expected, rtol=0, atol=tolerance)
    for other in results[1:]:
        np.testing.assert_array_equal(other, results[0])


def test_batches_are_functions_of_threads() -> None:
    text, *shapes = BATCHES["heads"]
    f = ft.jit(lambda a, b: np.einsum(text, a, b))
    assert "functrans.run_chunks" in f.llvm(*map(np.ones, shapes))


@pytest.mark.parametrize("shapes", [((3, 4), (4, 2)), ((70, 96), (96, 64)), ((6, 3, 4), (6, 4, 2))])
@pytest.mark.parametrize(
    "dtypes", [("f4", "f8"), ("f8", "i4"), ("f2", "f4"), ("?", "i8"), ("f4", "c16"), ("u1", "i2")]
)
def test_operands_of_different_dtypes_are_converted(
    shapes: Any, dtypes: tuple[str, str], rng: np.random.Generator
) -> None:
    a, b = (
        np.abs(3 * rng.normal(size=shape)).astype(dtype)
        for shape, dtype in zip(shapes, dtypes, strict=True)
    )
    product = ft.jit(lambda a, b: a @ b)
    for x, y in ((a, b), (np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2))):
        dtype = np.result_type(x, y)
        np.testing.assert_array_equal(product(x, y), product(x.astype(dtype), y.astype(dtype)))
        assert_close(product(x, y), x @ y, rtol=5e-3 if dtype == np.float16 else 1e-5)
        assert product(x, y).dtype == dtype
    assert not any(report.host_calls for report in product.explain())
