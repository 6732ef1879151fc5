"""Jacobians by forward mode in staged programs: sums over what is zero by structure are short."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from functrans.passes.zeros import _groups
from helpers import assert_close

RNG = np.random.default_rng(0)
BASE, WEIGHTS = RNG.normal(size=(2, 500)), RNG.uniform(size=(12, 500))


def moved(angles, base=BASE, weights=WEIGHTS):
    """Points that are moved by 12 rotations, of which each turns three more."""
    total = [angles[i] if i % 4 == 0 else angles[i - i % 4 : i + 1].sum() for i in range(12)]
    c, s = fnp.cos(fnp.stack(total)), fnp.sin(fnp.stack(total))
    turn = fnp.stack([fnp.stack([c, -s], 1), fnp.stack([s, c], 1)], 1)
    return fnp.sum((turn @ base) * weights[:, None, :], 0)


FUNCTIONS = {
    "bones": moved,
    "own": lambda x: fnp.sum(fnp.exp(x)[:, None] * WEIGHTS * BASE[0], 0),
    "own_by_product": lambda x: fnp.sum((x[:, None, None] * WEIGHTS[:, None]) ** 2, 0) @ BASE.T,
    "dense": lambda x: fnp.sum((x @ x) * x[:, None] * WEIGHTS, 0),
    "two_results": lambda x: (moved(x), fnp.sum(x[:4, None] * WEIGHTS[:4], 0)),
    "permuted": lambda x: moved(x[np.array([3, 1, 0, 2, *range(11, 3, -1)])]),
    "where": lambda x: fnp.sum(fnp.where(WEIGHTS > 0.5, x[:, None] * WEIGHTS, 1.0) ** 2, 0),
}


@each("name", FUNCTIONS)
def test_staged_jacobians_are_those_of_the_interpreter(name):
    fun = FUNCTIONS[name]
    x = RNG.normal(size=12)
    staged = ft.jit(ft.jacfwd(fun))
    assert_close(staged(x), ft.jacfwd(fun)(x), name)
    with ft.config(native=False):
        assert_close(ft.jit(ft.jacfwd(fun))(x), ft.jacfwd(fun)(x), name)
    assert_close(ft.jit(ft.vmap(ft.jacfwd(fun)))(x[None]), ft.vmap(ft.jacfwd(fun))(x[None]), name)


def test_sums_leave_out_what_a_direction_does_not_move():
    program = ft.jit(ft.jacfwd(moved)).jaxpr(np.ones(12))
    largest = max(var.aval.size for eqn in program.eqns for var in eqn.outputs)
    assert largest <= 12 * 12 * 2 * 500 // 2


def test_other_results_beside_a_jacobian_are_right():
    x = RNG.normal(size=12)
    fun = ft.jit(lambda x: ft.jacfwd(lambda x: (moved(x), x), has_aux=True)(x))
    found, aux = fun(x)
    assert_close(found, ft.jacfwd(moved)(x))
    assert_close(aux, x)


@pytest.mark.parametrize("n", [1, 5, 30])
def test_groups_hold_all_that_is_not_zero(n):
    table = RNG.uniform(size=(n, 9)) < 0.3
    covered = np.zeros_like(table)
    groups = _groups(table)
    assert len(groups) <= 8
    assert [start for (start, _), _ in groups] == [0, *[stop for (_, stop), _ in groups][:-1]]
    for (start, stop), (low, high) in groups:
        covered[start:stop, low:high] = True
    assert not (table & ~covered).any()
    assert groups[-1][0][1] == n
