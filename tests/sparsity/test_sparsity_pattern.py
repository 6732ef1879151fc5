"""Patterns contain all nonzero entries of dense derivatives, others only where values decide."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from cases import each
from functrans import lax
from functrans.primitives import movement, slicing, structural
from functrans.primitives.table import PRIMITIVES
from functrans.sparse import walk
from functrans.sparse.dependence import Sets, is_equal
from functrans.sparse.rules import RULES
from helpers import assert_close
from random_programs import PROGRAMS, Program
from samples import Row, each_sample


def _dense(fun: Callable[..., Any], xs: Sequence[np.ndarray]) -> np.ndarray:
    """The Jacobian by forward mode, all columns as a batch."""
    columns = []
    outs, pushforward = ft.linearize(fun, *xs)
    n_rows = sum(np.size(out) for out in ft.tree.leaves(outs))
    for k, x in enumerate(xs):
        basis = np.eye(x.size, dtype=x.dtype).reshape(x.size, *x.shape)
        tangents = tuple(basis if i == k else np.zeros_like(v) for i, v in enumerate(xs))
        axes = tuple(0 if i == k else None for i in range(len(xs)))
        pushed = ft.vmap(pushforward, in_axes=axes)(*tangents)
        columns += np.concatenate(
            [np.reshape(out, (x.size, -1)) for out in ft.tree.leaves(pushed)], axis=1
        ).tolist()
    return np.array(columns).reshape(len(columns), n_rows).T


def _numbers(*rows: str) -> list[list[int]]:
    return [[int(c) for c in row] for row in rows]


# Where derivatives are zero by structure only. Elsewhere the pattern may be larger: selections,
# degrees of polynomials, triangular factors.
EXACT = {
    *(p.name for p in structural.PRIMITIVES),
    *(p.name for p in slicing.PRIMITIVES),
    *(p.name for p in movement.PRIMITIVES),
    *("gather", "accumulate", "scatter_add", "scatter_set", "select_along", "place_along"),
    *("dynamic_slice", "dynamic_embed", "dynamic_update_slice", "reduce_sum", "cumsum"),
    *("add", "subtract", "multiply", "negative", "exp", "expm1", "log", "log1p", "sqrt"),
    *("sin", "cos", "tan", "arctan", "sinh", "tanh", "arcsinh", "sigmoid", "erf", "where"),
    *("csr_matmul", "csr_sample"),
    *("complex", "real", "conjugate", "dot_general", "fft_c2c", "rfft", "jit", "checkpoint"),
    *("floor", "ceil", "rint", "sign", "stop_gradient", "cumlogsumexp", "logsumexp"),
}
SAMPLES = each_sample(
    lambda row, sample: (
        row.is_differentiable
        and sample.has_derivative
        and bool(row.moving(sample))
        and all(np.size(sample.operands[i]) for i in row.moving(sample))
    )
)


@each(("row", "label"), SAMPLES, by="row")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pattern_of_each_primitive(row: Row, label: str) -> None:
    sample = row.sample(label)
    fun, moving = row.function(sample), row.moving(sample)
    shapes = [
        ft.ShapeDtypeStruct(np.shape(x), x.dtype) for x in (sample.operands[i] for i in moving)
    ]
    if not fun(*(sample.operands[i] for i in moving)):
        pytest.skip("no floating results")
    pattern = ft.sparsity_pattern(fun, *shapes, argnums=tuple(range(len(moving)))).toarray()
    nonzero = np.zeros(pattern.shape, bool)
    for seed in range(2):
        values = [row.sample(label, seed).operands[i] for i in moving]
        nonzero |= _dense(fun, values) != 0
    assert not (nonzero & ~pattern).any(), "an entry is missing"
    if row.name in EXACT and sample.is_smooth:
        np.testing.assert_array_equal(pattern, nonzero)


@settings(max_examples=150)
@given(PROGRAMS, st.integers(0, 1000))
def test_patterns_of_random_programs(program: Program, seed: int) -> None:
    rng = np.random.default_rng(seed)
    point = tuple(np.asarray(rng.uniform(-1.5, 1.5, shape)) for shape in program.shapes)
    argnums = tuple(range(len(point)))
    first = ft.sparsity_pattern(program, *point, argnums=argnums).toarray()
    assert not ((_dense(program, point) != 0) & ~first).any()
    second = ft.sparsity_pattern(program, *point, argnums=argnums, order=2).toarray()
    hessian = _dense(ft.grad(program, argnums), point)
    assert not ((hessian != 0) & ~second).any()


@settings(max_examples=60)
@given(PROGRAMS, st.integers(0, 1000))
def test_sparse_derivatives_of_random_programs(program: Program, seed: int) -> None:
    rng = np.random.default_rng(seed)
    point = tuple(np.asarray(rng.uniform(-1.5, 1.5, shape)) for shape in program.shapes)
    with ft.config(native=False):
        hessian = ft.sparse_hessian(program, argnums=tuple(range(len(point))))(*point)
    assert_close(hessian.toarray(), _dense(ft.grad(program, (0, 1)), point), rtol=1e-10)


# by hand ----------------------------------------------------------------------------------------


def test_pattern_of_a_chain_is_a_band() -> None:
    def chain(x: Any) -> Any:
        return np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)

    pattern = ft.sparsity_pattern(chain, np.ones(5), order=2)
    assert pattern.dtype == bool
    assert pattern.has_canonical_format
    assert pattern.toarray().tolist() == _numbers("11000", "11100", "01110", "00111", "00011")


@pytest.mark.parametrize(
    ("fun", "rows"),
    [
        (lambda x: np.sum(x), ("000", "000", "000")),
        (lambda x: np.sum(x**2), ("100", "010", "001")),
        (lambda x: x[0] * x[1], ("010", "100", "000")),
        (lambda x: x[0] / x[1], ("010", "110", "000")),
        (lambda x: np.sum(x) ** 2, ("111", "111", "111")),
        (lambda x: np.sin(x[0] + x[1]) + x[2], ("110", "110", "000")),
        (lambda x: np.sum(np.abs(x)) + np.max(x), ("000", "000", "000")),
        (lambda x: np.sum((x - 1)[::-1] * x), ("001", "010", "100")),
        (lambda x: (np.sum(x**3), np.prod(x))[0], ("100", "010", "001")),
        (lambda x: np.where(x[0] > 0, x[0] * x[1], x[2] ** 2), ("010", "100", "001")),
        (lambda x: np.linalg.norm(x[:2]) + x[2], ("110", "110", "000")),
        (
            lambda x: np.sum(lax.dynamic_update_slice(1 * x, x[:1], (np.argmax(x),)) ** 2),
            ("111", "110", "101"),
        ),
    ],
)
def test_hessians_by_hand(fun: Callable[..., Any], rows: tuple[str, ...]) -> None:
    """Linear operations let nothing meet, a product only its factors, the rest everything."""
    assert ft.sparsity_pattern(fun, np.ones(3), order=2).toarray().tolist() == _numbers(*rows)


@pytest.mark.parametrize(
    ("fun", "rows"),
    [
        (lambda x: np.cumsum(x), ("1000", "1100", "1110", "1111")),
        (lambda x: np.roll(x, 1) * 2, ("0001", "1000", "0100", "0010")),
        (lambda x: np.sort(x[:2]), ("1100", "1100")),
        (lambda x: np.concatenate([x[2:], x[:1] * x[3:]]), ("0010", "0001", "1001")),
        (lambda x: np.pad(x[:2], 1), ("0000", "1000", "0100", "0000")),
        (lambda x: x[np.array([2, 0])], ("0010", "1000")),
        (lambda x: x[np.argmax(x)], ("1111",)),
        (lambda x: np.fft.fft(x[:2]).real, ("1100", "1100")),
        (lambda x: np.array([[1.0, 0, 0, 2], [0, 0, 3, 0]]) @ x, ("1001", "0010")),
        (lambda x: x * np.array([1.0, 0, 2, 0]), ("1000", "0000", "0010", "0000")),
        (lambda x: np.where(np.arange(4) < 2, x, x[::-1]), ("1000", "0100", "0100", "1000")),
        (lambda x: lax.stop_gradient(x) * x[0], ("1000", "1000", "1000", "1000")),
        (lambda x: np.floor(x), ("0000",) * 4),
        (lambda x: x - x.mean(), ("1111",) * 4),
        (lambda x: lax.cond(x[0] > 0, lambda v: v[:2], lambda v: v[2:], x), ("1010", "0101")),
        (lambda x: lax.cond(True, lambda v: v[:2], lambda v: v[2:], x), ("1000", "0100")),
        (lambda x: lax.scan(lambda c, v: (c, v * v), 0.0, x)[1], ("1000", "0100", "0010", "0001")),
        (
            lambda x: lax.scan(lambda c, v: (c * v, c), 1.0, x)[1],
            ("0000", "1000", "1100", "1110"),
        ),
        (
            lambda x: lax.fori_loop(1, 4, lambda i, y: y.at[i].set(y[i] * x[i - 1]), x),
            ("1000", "1100", "0110", "0011"),
        ),
        (
            lambda x: lax.while_loop(lambda v: np.sum(v) < 9, lambda v: v * v[0], x)[1:],
            ("1100", "1010", "1001"),
        ),
        (ft.checkpoint(lambda x: np.sin(x[:2])), ("1000", "0100")),
        (ft.jit(lambda x: np.sin(x[:2])), ("1000", "0100")),
        (
            ft.vmap(lambda v: lax.cond(v > 0, np.sin, lambda u: 0.0 * u, v)),
            ("1000", "0100", "0010", "0001"),
        ),
    ],
)  # fmt: skip
def test_jacobians_by_hand(fun: Callable[..., Any], rows: tuple[str, ...]) -> None:
    assert ft.sparsity_pattern(fun, np.ones(4)).toarray().tolist() == _numbers(*rows)


def test_custom_rules_count_not_what_they_replace() -> None:
    @ft.custom_jvp
    def straight_through(x: Any) -> Any:
        return np.floor(x)

    @straight_through.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return straight_through(*primals), tangents[0]

    @ft.custom_vjp
    def mixed(x: Any) -> Any:
        return np.sin(x)

    mixed.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.cumsum(ct),))
    assert ft.sparsity_pattern(straight_through, np.ones(2)).toarray().tolist() == _numbers(
        "10", "01"
    )
    # pulled back by a prefix sum: the Jacobian is its transpose
    assert ft.sparsity_pattern(mixed, np.ones(3)).toarray().tolist() == _numbers(
        "111", "011", "001"
    )


def test_long_loops_are_a_fixed_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """The superset: every iteration depends on what any iteration depends on."""

    def run(x: Any) -> Any:
        return lax.scan(lambda c, v: (c, np.sin(v) * c), x[0], x[1:4])[1]

    exact = ft.sparsity_pattern(run, np.ones(5))
    assert exact.toarray().tolist() == _numbers("11000", "10100", "10010")
    monkeypatch.setattr(walk, "MAX_STEPS", 2)
    assert ft.sparsity_pattern(run, np.ones(5)).toarray().tolist() == _numbers(*("11110",) * 3)


def test_structure_of_arguments_and_results() -> None:
    def fun(tree: Any, scale: Any) -> Any:
        return {"a": tree["x"] * scale, "b": np.sum(tree["y"])}

    tree = {"x": np.ones(2), "y": np.ones((2, 1))}
    pattern = ft.sparsity_pattern(fun, tree, 2.0)
    assert pattern.toarray().tolist() == _numbers("1000", "0100", "0011")
    both = ft.sparsity_pattern(fun, tree, 2.0, argnums=(0, 1))
    assert both.toarray().tolist() == _numbers("10001", "01001", "00110")
    assert ft.sparsity_pattern(fun, tree, scale=2.0).shape == (3, 4)


def test_integers_are_indices_and_floats_are_not() -> None:
    def fun(x: Any, where: Any, weights: Any) -> Any:
        return x[where] * weights

    pattern = ft.sparsity_pattern(fun, np.ones(3), np.array([2, 2]), np.zeros(2))
    assert pattern.toarray().tolist() == _numbers("001", "001")
    unknown = ft.ShapeDtypeStruct((2,), np.int64)
    assert ft.sparsity_pattern(fun, np.ones(3), unknown, np.zeros(2)).nnz == 6


@pytest.mark.parametrize("shape", [(0,), (2, 0), ()])
def test_few_elements(shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape))
    pattern = ft.sparsity_pattern(lambda x: np.sin(x), np.ones(shape))
    assert pattern.toarray().tolist() == np.eye(size, dtype=bool).tolist()
    assert ft.sparsity_pattern(lambda x: np.sum(x**2), np.ones(shape), order=2).shape == (
        size,
        size,
    )
    assert ft.sparsity_pattern(lambda x: np.zeros(3), np.ones(shape)).nnz == 0


def test_large_elementwise_chains_share_their_sets() -> None:
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = np.sin(x) * x
        return x

    pattern = ft.sparsity_pattern(chain, np.ones(200_000))
    assert pattern.nnz == 200_000
    assert (
        ft.sparsity_pattern(lambda x: np.sum((x - x.mean()) ** 2), np.ones(200_000)).nnz == 200_000
    )


# index sets -------------------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 1000))
def test_unions_and_reductions_are_those_of_sets(n: int, k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sets = Sets(n, "a test")
    (start,) = sets.arguments([(n,)])
    shape = (3, 4)

    def moved(index: np.ndarray) -> Any:
        return sets.move(start, lambda places: np.where(index < n, places[index % n], 0))

    chosen = [rng.integers(0, 2 * n, shape) for _ in range(9)]
    expected = [[set(row[row < n].tolist()) for row in rows] for rows in np.stack(chosen, -1)]
    union = sets.union([moved(index) for index in chosen], shape)
    indptr, indices = sets.rows(union, shape)
    found = [set(indices[a:b].tolist()) for a, b in pairwise(indptr)]
    assert found == [s for row in expected for s in row]
    axes = ((0,), (1,), (0, 1))[k % 3]
    indptr, indices = sets.rows(sets.reduce(union, axes), np.zeros(shape).sum(axes).shape)
    found = [set(indices[a:b].tolist()) for a, b in pairwise(indptr)]
    by_element = np.array([[frozenset(s) for s in row] for row in expected], object)
    if axes == (0, 1):
        assert found == [frozenset().union(*by_element.ravel())]
    else:
        columns = by_element.T if axes == (0,) else by_element
        assert found == [frozenset().union(*column) for column in columns]
    assert is_equal(union, union, sets, shape)


def test_rules_are_for_primitives_that_exist() -> None:
    names = {primitive.name for primitive in PRIMITIVES}
    assert set(RULES) <= names | {"weaken", "name"}


# errors -----------------------------------------------------------------------------------------


def test_a_program_that_depends_on_values_has_no_pattern() -> None:
    def fun(x: Any) -> Any:
        return x if x.sum() > 0 else x[::-1]

    with pytest.raises(ft.errors.ConcretizationError, match="holds at all points"):
        ft.sparsity_pattern(fun, np.ones(2))


def test_a_dense_part_that_does_not_fit_is_refused() -> None:
    with (
        ft.config(jacobian_memory_bytes=1 << 16),
        pytest.raises(MemoryError, match=r"sparsity_pattern of .*depends on .* the budget"),
    ):
        ft.sparsity_pattern(np.cumsum, np.ones(1000))


def test_what_has_no_derivative_is_refused() -> None:
    with pytest.raises(ft.errors.NonDifferentiableError, match="int64"):
        ft.sparsity_pattern(lambda x: x, np.arange(3))
    with pytest.raises(ft.errors.NonDifferentiableError, match="result 0"):
        ft.sparsity_pattern(lambda x: np.argmax(x), np.ones(3))
    with pytest.raises(ft.errors.ShapeError, match="one scalar result"):
        ft.sparsity_pattern(lambda x: x, np.ones(3), order=2)
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        ft.sparsity_pattern(lambda x: x, np.ones(3), order=3)
