"""Sparse Jacobians and Hessians are the dense ones, by every way of evaluation."""

from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.scipy.sparse import SparseArray
from functrans.sparse import api, color_pattern
from helpers import assert_close
from scipy import sparse

A = np.random.default_rng(0).uniform(size=(30, 40)) * (
    np.random.default_rng(1).random((30, 40)) < 0.1
)


def stencil(x: Any) -> Any:
    """A nonlinear band with a dense row and a dense column."""
    y = np.sin(x[1:]) * x[:-1] + x[0] ** 2
    return np.concatenate([y, np.sum(x**2).reshape(1)])


def energy(x: Any) -> Any:
    """A chain with one element that meets all others."""
    return np.sum((x[1:] - x[:-1] ** 2) ** 2) + np.sum(np.cos(x[3] * x))


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("fun", [stencil, lambda x: np.tanh(A @ x), lambda x: A.T @ (A @ x) ** 2])
def test_jacobian(fun: Any, mode: str, format: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, 40)
    jac = ft.sparse_jacobian(fun, mode=mode, format=format)
    found = jac(x)
    assert isinstance(found, getattr(sparse, f"{format}_array"))
    assert_close(found.toarray(), ft.jacobian(fun)(x), rtol=1e-12)
    assert found.nnz == jac.pattern(x).nnz == jac.values(x).size
    jac.check(x)
    assert_close(jac(2 * x).toarray(), ft.jacobian(fun)(2 * x), rtol=1e-12)
    if format != "coo":
        np.testing.assert_array_equal(found.data, jac.values(x))
        assert found.has_canonical_format


@pytest.mark.parametrize("mode", ["auto", "symmetric", "forward"])
@pytest.mark.parametrize("native", [True, False])
def test_hessian(mode: str, native: bool, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, 25)
    with ft.config(native=native):
        hess = ft.sparse_hessian(energy, mode=mode)
        found = hess(x)
    assert_close(found.toarray(), ft.hessian(energy)(x), rtol=1e-12)
    assert (hess.coloring.kind == "star") == (mode != "forward")
    hess.check(x)


def test_many_colors_go_through_a_loop(rng: np.random.Generator) -> None:
    def dense(x: Any) -> Any:
        return np.sin(x) * np.sum(x) + x[0]

    x = rng.uniform(size=40)
    for mode in ("forward", "reverse", "bidirectional"):
        jac = ft.sparse_jacobian(dense, mode=mode)
        assert_close(jac(x).toarray(), ft.jacobian(dense)(x), rtol=1e-12)
        assert jac.n_colors >= 40


def test_structured_arguments(rng: np.random.Generator) -> None:
    def fun(tree: Any, scale: Any) -> Any:
        return [tree["a"] * scale, np.sum(tree["b"], axis=0) ** 2]

    tree = {"a": rng.uniform(size=3), "b": rng.uniform(size=(2, 2))}
    jac = ft.sparse_jacobian(fun, argnums=(0, 1))
    found = jac(tree, 2.0).toarray()
    blocks = ft.jacobian(fun, argnums=(0, 1))(tree, 2.0)
    sizes = (3, 4, 1)
    expected = np.concatenate(
        [
            np.concatenate(
                [b.reshape(-1, n) for b, n in zip(ft.tree.leaves(row), sizes, strict=True)], axis=1
            )
            for row in blocks
        ]
    )
    assert ft.sparse_jacobian(fun)(tree, scale=3.0).shape == (5, 7)
    assert_close(found, expected, rtol=1e-12)


def test_float32_stays(rng: np.random.Generator) -> None:
    x = rng.uniform(size=10).astype(np.float32)
    found = ft.sparse_jacobian(stencil)(x)
    assert found.dtype == np.float32
    assert_close(found.toarray(), ft.jacobian(stencil)(x), rtol=1e-5)


def test_complex(rng: np.random.Generator) -> None:
    z = rng.normal(size=6) + 1j * rng.normal(size=6)
    jac = ft.sparse_jacobian(lambda z: np.exp(z[1:]) * z[:-1])
    expected = ft.jacfwd(lambda z: np.exp(z[1:]) * z[:-1], holomorphic=True)(z)
    assert_close(jac(z).toarray(), expected, rtol=1e-12)
    real = ft.sparse_jacobian(lambda x: np.exp(1j * x))
    x = rng.normal(size=6)
    assert_close(real(x).toarray(), np.diag(1j * np.exp(1j * x)), rtol=1e-12)
    with pytest.raises(ft.errors.NonDifferentiableError, match="holomorphic"):
        ft.sparse_jacobian(np.abs)(z)
    with pytest.raises(ft.errors.NonDifferentiableError, match="mode='forward'"):
        ft.sparse_jacobian(lambda x: np.exp(1j * x), mode="reverse")(x)


@pytest.mark.parametrize("shape", [(0,), (), (1,), (2, 3)])
def test_few_elements(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 0.5)
    found = ft.sparse_jacobian(np.sin)(x)
    assert_close(found.toarray(), np.diag(np.cos(x).ravel()), rtol=1e-12)
    hessian = ft.sparse_hessian(lambda x: np.sum(x**3))(x)
    assert_close(hessian.toarray(), np.diag(6 * x.ravel()), rtol=1e-12)
    assert ft.sparse_hessian(np.sum)(x).nnz == 0


def test_results_own_their_memory() -> None:
    jac = ft.sparse_jacobian(stencil)
    x = np.arange(1.0, 6.0)
    first, second = jac(x), jac(x)
    first.data[:] = 0
    first.indices[:] = 0
    first.eliminate_zeros()
    assert_close(second.toarray(), ft.jacobian(stencil)(x), rtol=1e-12)
    assert_close(jac(x).toarray(), second.toarray(), rtol=1e-12)
    np.testing.assert_array_equal(x, np.arange(1.0, 6.0))


def test_patterns_and_colorings_are_reused(rng: np.random.Generator) -> None:
    x = rng.uniform(size=12)
    pattern = ft.sparsity_pattern(energy, x, order=2)
    coloring = color_pattern(pattern, "star")
    hess = ft.sparse_hessian(energy, pattern=pattern, coloring=coloring)
    assert hess.coloring is coloring
    assert_close(hess(x).toarray(), ft.hessian(energy)(x), rtol=1e-12)
    assert hess.coloring is coloring
    larger = np.ones((12, 12))
    assert_close(
        ft.sparse_hessian(energy, pattern=larger)(x).toarray(), ft.hessian(energy)(x), rtol=1e-12
    )


def test_new_shapes_and_new_indices_have_new_patterns(rng: np.random.Generator) -> None:
    jac = ft.sparse_jacobian(lambda x, where: np.sin(x[where]) * x[0])
    for n, where in ((4, [1, 2]), (4, [3, 2]), (6, [5, 5]), (4, [1, 2])):
        x, at = rng.uniform(size=n), np.array(where)
        expected = ft.jacobian(lambda x, at=at: np.sin(x[at]) * x[0])(x)
        assert_close(jac(x, at).toarray(), expected, rtol=1e-12)
        assert jac.pattern().nnz == 4


def test_captured_arrays_that_change_are_noticed() -> None:
    weights = np.array([1.0, 0.0, 2.0])
    jac = ft.sparse_jacobian(lambda x: x * weights)
    assert jac(np.ones(3)).nnz == 2
    weights[1] = 5.0
    assert_close(jac(np.ones(3)).toarray(), np.diag(weights), rtol=1e-12)


def test_captured_arrays_with_nan_are_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    weights = np.array([1.0, np.nan, 0.0])
    jac = ft.sparse_jacobian(lambda x: x * weights)
    jac(np.ones(3))
    monkeypatch.setattr(api, "find_pattern", None)
    assert_close(jac(np.ones(3)).toarray(), np.diag(weights), rtol=1e-12)


def test_traced_indices_need_a_pattern() -> None:
    x = np.arange(4.0)

    def picked(x: Any, where: Any) -> Any:
        return np.sin(x[where])

    match = r"argument \[0\]\[1\].*indices"
    for transform in (ft.jit, ft.vmap):
        for function in (ft.sparse_jacobian(picked).values, _pattern_of(picked)):
            with pytest.raises(ft.errors.ConcretizationError, match=match):
                transform(function)(np.stack([x, x]), np.array([[0, 1], [1, 3]]))
    given = ft.sparse_jacobian(picked, pattern=np.ones((2, 4)))
    at = np.array([3, 1])
    expected = ft.jacobian(lambda x: picked(x, at))(x)
    assert_close(given(x, at).toarray(), expected, rtol=1e-12)
    assert_close(ft.jit(given.values)(x, at), expected.ravel(), rtol=1e-12)


def _pattern_of(fun: Any) -> Any:
    return lambda x, where: x * ft.sparsity_pattern(fun, x, where).nnz


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "bidirectional"])
def test_no_results(mode: str) -> None:
    x = np.ones(3, np.float32)
    for fun in (lambda x: (), lambda x: x[:0], lambda x: (x[:0], x[:0])):
        jac = ft.sparse_jacobian(fun, mode=mode)
        assert jac(x).shape == (0, 3)
        assert jac(x).dtype == np.float32
        assert jac.values(x).shape == (0,)
        jac.check(x)


def test_check_finds_functions_that_are_not_holomorphic(rng: np.random.Generator) -> None:
    z = rng.normal(size=4) + 1j * rng.normal(size=4)
    for mode in ("forward", "reverse"):
        ft.sparse_jacobian(lambda z: z[1:] * z[:-1], mode=mode).check(z)
        with pytest.raises(ValueError, match=r"row 0.*not holomorphic"):
            ft.sparse_jacobian(lambda z: np.conj(z) * z, mode=mode).check(z)


def test_values_can_be_transformed(rng: np.random.Generator) -> None:
    hess = ft.sparse_hessian(energy)
    x = rng.uniform(size=6)

    def total(x: Any) -> Any:
        return np.sum(hess.values(x) ** 2)

    expected = ft.grad(lambda x: np.sum(ft.hessian(energy)(x) ** 2))(x)
    assert_close(ft.grad(total)(x), expected, rtol=1e-10)
    assert_close(ft.jit(hess.values)(x), hess.values(x), rtol=1e-12)
    batch = ft.vmap(hess.values)(np.stack([x, 2 * x]))
    assert_close(batch, np.stack([hess.values(x), hess.values(2 * x)]), rtol=1e-12)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_traced_derivatives_are_matrices(format: str, rng: np.random.Generator) -> None:
    hess = ft.sparse_hessian(energy, format=format)
    x, v = rng.uniform(size=(2, 6))
    expected, found = hess(x), ft.jit(hess)(x)
    assert isinstance(found, SparseArray)
    assert (found.format, found.shape) == (format, expected.shape)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
        getattr(found, name)[...] = 0  # of nobody else
    np.testing.assert_array_equal(ft.jit(hess)(x).indices, expected.indices)
    assert_close(ft.jit(lambda x: hess(x) @ v)(x), expected @ v, rtol=1e-12)
    slope = ft.grad(lambda x: v @ (hess(x) @ v))(x)
    assert_close(slope, ft.grad(lambda x: v @ ft.hessian(energy)(x) @ v)(x), rtol=1e-10)
    with pytest.raises(
        ft.errors.UnsupportedOperationError, match=r"format='csr' or 'csc', or \.val"
    ):
        ft.jit(ft.sparse_hessian(energy, format="coo"))(x)


def test_jacobian_takes_a_pattern(rng: np.random.Generator) -> None:
    x = rng.uniform(size=8)
    expected = ft.jacobian(stencil)(x)
    found = ft.jacobian(stencil, sparsity=True)(x)
    assert sparse.issparse(found)
    assert_close(found.toarray(), expected, rtol=1e-12)
    given = ft.jacobian(stencil, sparsity=ft.sparsity_pattern(stencil, x), mode="reverse")(x)
    assert_close(given.toarray(), expected, rtol=1e-12)
    with pytest.raises(TypeError, match="dense results"):
        ft.jacobian(stencil, sparsity=True, has_aux=True)


def test_check_finds_missing_entries() -> None:
    x = np.linspace(0.5, 1, 5)
    jac = ft.sparse_jacobian(np.cumsum, pattern=np.eye(5))
    jac(x)
    with pytest.raises(ValueError, match=r"row 1 .* misses entries"):
        jac.check(x)
    ft.sparse_jacobian(np.cumsum).check(x)


def test_spy(rng: np.random.Generator) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    jac = ft.sparse_jacobian(stencil, mode="bidirectional")
    with pytest.raises(RuntimeError, match="after the first call"):
        jac.spy()
    matrix = jac(rng.uniform(size=20))
    figure, ax = pyplot.subplots()
    assert jac.spy(ax) is ax
    assert sum(len(line.get_xdata()) for line in ax.lines) == matrix.nnz
    jac.spy(pyplot.subplots()[1], rows=slice(0, 5), columns=slice(0, 5))
    pyplot.close("all")
    del figure


def test_errors() -> None:
    x = np.ones(3)
    with pytest.raises(ft.errors.ShapeError, match=r"pattern has shape \(3, 4\).*3 elements"):
        ft.sparse_jacobian(np.sin, pattern=np.ones((3, 4)))(x)
    with pytest.raises(ft.errors.ShapeError, match="results have 3 elements, the pattern has 2"):
        ft.sparse_jacobian(np.sin, pattern=np.ones((2, 3)))(x)
    with pytest.raises(ValueError, match="symmetric"):
        ft.sparse_hessian(np.sum, pattern=np.tri(3))
    with pytest.raises(ValueError, match="mode must be one of"):
        ft.sparse_jacobian(np.sin, mode="symmetric")
    with pytest.raises(ValueError, match="format must be one of"):
        ft.sparse_jacobian(np.sin, format="dia")
    with pytest.raises(TypeError, match="coloring must be a Coloring"):
        ft.sparse_jacobian(np.sin, coloring=np.zeros(3))
    with pytest.raises(ValueError, match="cannot be read"):
        ft.sparse_jacobian(np.cumsum, coloring=color_pattern(np.eye(3)))(x)
    with pytest.raises(ft.errors.UnsupportedOperationError, match=r"str.*\.partial, since"):
        ft.sparse_jacobian(lambda x, kind: x)(x, kind="a")
    with pytest.raises(TypeError, match="expected a function"):
        ft.sparse_hessian(3)
    with pytest.raises(RuntimeError, match="first call"):
        _ = ft.sparse_jacobian(np.sin).coloring
    with pytest.raises(ft.errors.ConcretizationError, match="pattern holds at all points"):
        ft.sparse_jacobian(lambda x: x if x[0] > 0 else -x)(x)
    assert repr(ft.sparse_jacobian(stencil)) == "sparse_jacobian(stencil)"
