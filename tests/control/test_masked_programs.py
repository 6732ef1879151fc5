"""Plain code with masks under ``jit(f, specialize=True)``: values and slopes, mask after mask."""

import numpy as np
import pytest
from masked_algorithms import PROGRAMS as ALGORITHMS
from masked_programs import PROGRAMS as USES

import functrans as ft
from functrans.errors import ConcretizationError, FunctransError

PROGRAMS = {**USES, **ALGORITHMS}
POINTS = (
    np.array([0.31, 1.73, -0.42, 0.83]),
    np.array([-0.62, 0.47, 0.91, 1.37]),
    np.array([1.21, 0.15, 0.72, -0.33]),
)


def _slope(f, x):
    return [(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_slopes_are_those_of_numpy(name):
    f = PROGRAMS[name]
    compiled = ft.jit(f, specialize=True)
    slope_of_compiled = ft.grad(compiled)
    compiled_slope = ft.jit(ft.grad(f), specialize=True)
    for x in POINTS + POINTS[:1]:
        np.testing.assert_allclose(compiled(x.copy()), f(x.copy()), 1e-10, 1e-12)
        expected = _slope(f, x)
        np.testing.assert_allclose(slope_of_compiled(x.copy()), expected, 1e-5, 1e-6)
        np.testing.assert_allclose(compiled_slope(x.copy()), expected, 1e-5, 1e-6)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_without_values_they_are_right_or_the_way_out_is_named(name):
    f = PROGRAMS[name]
    compiled = ft.jit(f)
    for x in POINTS:
        try:
            result = compiled(x.copy())
        except FunctransError as error:
            assert "specialize=True" in str(error)  # noqa: PT017  # most raise, some need not
        else:
            np.testing.assert_allclose(result, f(x.copy()), 1e-10, 1e-12)


def test_one_program_for_each_mask():
    compiled = ft.jit(lambda x: (x[x > 0] @ x[x > 0]) * len(x[x > 0]), specialize=True)
    for x in (*POINTS, 2 * POINTS[0], 0.5 * POINTS[1]):
        z = x[x > 0]
        np.testing.assert_allclose(compiled(x), (z @ z) * len(z))
    assert compiled.cache_size == 3


@pytest.mark.parametrize(
    "use",
    [
        lambda z: z @ z,
        lambda z: np.ones(3) @ z,
        lambda z: 0.5 in z,
        lambda z: divmod(z, 0.5)[0].sum(),
        lambda z: np.asarray(z).sum(),
        lambda z: z[z > 1].sum(),
        lambda z: np.zeros(len(z)).sum(),
    ],
)
def test_plain_jit_names_the_way_out(use):
    with pytest.raises(ConcretizationError, match=r"test_masked_programs.py:\d+.*specialize=True"):
        ft.jit(lambda x: use(x[x > 0]))(POINTS[0])


def test_a_selection_of_another_rank_is_not_stored_for_one_of_the_same_mask():
    def f(x):
        A = np.outer(x, x + 1)
        m = x >= 1.73
        A[m] = x[m]
        return A

    np.testing.assert_allclose(ft.jit(f, specialize=True)(POINTS[0]), f(POINTS[0]))
    with pytest.raises(ConcretizationError, match="specialize=True"):
        ft.jit(f)(POINTS[0])
    with pytest.raises(ValueError, match="broadcast"):
        ft.jit(f, specialize=True)(POINTS[0] + 1.5)  # two rows, and two numbers


def test_a_mask_that_grad_makes_may_be_written_to_there():
    def f(x):
        m = x > 0
        m[0] = False
        m[1:3] &= x[1:3] < 0.6
        return (x**2 * m).sum()

    def written_from_inside(x):
        m = x > 0

        def g(y):
            m[0] = False
            return (y * m).sum()

        return ft.grad(g)(x)

    for x in POINTS:
        np.testing.assert_allclose(ft.jit(ft.grad(f))(x), ft.grad(f)(x))
        np.testing.assert_allclose(ft.jit(ft.hessian(f))(x), ft.hessian(f)(x))
    with pytest.raises(ft.errors.AliasedWriteError, match="was written to"):
        ft.jit(written_from_inside)(POINTS[0])


def test_vmap_takes_elements_of_other_masks_apart():
    def f(x):
        z = x[x > 0]
        z[z > 0.5] *= 2
        return z @ z + np.zeros(len(z)).size

    batch = np.stack([*POINTS, 2 * POINTS[0]])
    found = ft.vmap(ft.jit(f, specialize=True))(batch)
    np.testing.assert_allclose(found, [f(x) for x in batch])
