"""Products over a few terms in the loops of what reads them, and sums inside of lanes."""

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from compiler.bitwise import assert_compiled_is_reference
from helpers import assert_close


def arrays(*shapes, dtype=np.float64):
    """Arrays of normal numbers."""
    rng = np.random.default_rng(0)
    return [rng.normal(size=shape).astype(dtype) for shape in shapes]


def skinned(transforms, base, weights):
    """Points that are moved by some matrices, with weights."""
    return fnp.sum((transforms @ base) * weights[:, None, :], -3)


def routines(fun, *args):
    """How many products the plan of a function leaves to their routine."""
    return str(ft.jit(fun).plan(*args)).count("routine dot_general")


PRODUCTS = {
    "matrix": (lambda a, b: fnp.exp(a @ b), (90, 4), (4, 70)),
    "one_term": (lambda a, b: 1.0 + a @ b, (90, 1), (1, 70)),
    "batch": (lambda a, b: fnp.tanh(a @ b), (6, 30, 3), (6, 3, 50)),
    "broadcast": (lambda a, b: 2.0 * (a @ b), (5, 7, 3, 4), (4, 80)),
    "two_axes": (lambda a, b: -fnp.tensordot(a, b, 2), (80, 2, 2), (2, 2, 90)),
    "transposed": (lambda a, b: fnp.abs(fnp.swapaxes(fnp.matmul(a, b), 0, 1)), (90, 3), (3, 80)),
    "summed": (lambda a, b: fnp.sum(a @ b, 0), (40, 3), (3, 200)),
}


@each("name", PRODUCTS)
def test_products_over_few_terms_share_the_loops_of_their_reader(name):
    fun, *shapes = PRODUCTS[name]
    for dtype in (np.float64, np.float32):
        operands = arrays(*shapes, dtype=dtype)
        assert routines(fun, *operands) == 0
        assert_close(assert_compiled_is_reference(fun, *operands, what=name), fun(*operands), name)


OTHERS = {
    "many_terms": lambda a, b: fnp.exp(a @ b),
    "result": lambda a, b: a[:, :3] @ b[:3],
    "read_twice": lambda a, b: [fnp.sin(x := a[:, :3] @ b[:3]), x.T + 1.0],
    "read_by_a_routine": lambda a, b: fnp.sort(a[:, :3] @ b[:3], 1),
}


@each("name", OTHERS)
def test_other_products_are_left_to_their_routine(name):
    operands = arrays((80, 16), (16, 90))
    assert routines(OTHERS[name], *operands) == 1
    assert_compiled_is_reference(OTHERS[name], *operands, what=name)


def test_products_of_infinities_and_nan_are_those_of_the_routine():
    a, b = arrays((80, 3), (3, 90))
    a[0], a[1, 1], b[2, 3], b[1, 4] = 0.0, -0.0, np.inf, np.nan
    inline = ft.jit(lambda a, b: (a @ b) * 1.5)(a, b)
    np.testing.assert_array_equal(inline, ft.jit(lambda a, b: a @ b)(a, b) * 1.5)


@pytest.mark.parametrize("n", [7, 22, 32, 33])
@pytest.mark.parametrize("columns", [40, 1000, 4099])
def test_sums_inside_of_lanes_have_the_order_of_other_sums(n, columns):
    operands = arrays((9, n, 3, 4), (4, columns), (n, columns))
    found = assert_compiled_is_reference(skinned, *operands)
    assert_close(found, skinned(*operands))


def test_sums_of_much_smaller_arrays_run_inside_of_lanes_and_on_threads():
    operands = arrays((26, 22, 3, 4), (4, 2000), (22, 2000))
    assert "loops 2000 x 26 x 3 x 22, number 1 over lanes" in str(ft.jit(skinned).plan(*operands))
    one, two = (run_with(n, skinned, *operands) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def run_with(threads, fun, *operands):
    """A call with a number of threads."""
    before = ft.get_num_threads()
    ft.set_num_threads(threads)
    try:
        return ft.jit(fun)(*operands)
    finally:
        ft.set_num_threads(before)


def test_what_is_read_elsewhere_is_summed_in_the_usual_loops():
    def softmax(x, w):
        e = fnp.exp(x[:, :, None] * w - 1.0)
        return e / fnp.sum(e, 1)[:, None]

    operands = arrays((9, 12), (12, 700))
    assert "number 1 over lanes" not in str(ft.jit(softmax).plan(*operands))
    assert_compiled_is_reference(softmax, *operands)


def test_equal_constants_are_one():
    one, two = (np.linspace(0.0, 1.0, 3000) for _ in range(2))
    one.flags.writeable = two.flags.writeable = False
    fun = ft.jit(lambda x: (fnp.exp(x * one), fnp.exp(x * two)))
    found = fun(2.0)
    np.testing.assert_array_equal(found[0], found[1])
    assert fun.llvm(2.0).count("fdiv") <= ft.jit(lambda x: fnp.exp(x * one)).llvm(2.0).count("fdiv")
