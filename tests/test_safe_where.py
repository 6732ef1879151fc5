"""Safe selection: the branch that is not taken never reaches a derivative, at no order, in no mode.

``0 * inf`` elsewhere stays NaN. Switched off, the transpose of a selection is the textbook one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans import lax
from functrans.core.dispatch import bind
from functrans.passes.cotangents import Masked, add_cotangents
from samples import Row, Sample, each_sample

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the untaken branch computes NaN


def root(x: Any) -> Any:
    return np.where(x >= 0, x**3, np.sqrt(-x))


def cosine(x: Any) -> Any:
    return np.where(x < 1, np.cos(x), 0.0)


def logarithm(x: Any) -> Any:
    return np.where(x > 0, np.log(x) * x, x**2)


def inner_is_unsafe(x: Any) -> Any:
    return np.where(x > 1, np.where(x > 2, np.arcsin(x / 10), np.arcsin(x)), x**2)


def through_movement(x: Any) -> Any:
    y = np.log(x)
    y = np.stack([y, y])[:, None].reshape(2, *np.shape(x))[::-1]
    y = np.concatenate([y, y])[1:3].swapaxes(0, -1).swapaxes(0, -1)
    return np.where(x > 0, np.sum(y, 0), x**2)


def through_padding(x: Any) -> Any:
    y = np.pad(np.log(np.atleast_1d(x)), 1)[1:-1]
    return np.where(np.atleast_1d(x) > 0, y, np.atleast_1d(x) ** 2).reshape(np.shape(x))


def through_broadcast(x: Any) -> Any:
    y = np.broadcast_to(np.log(x), (3, *np.shape(x)))
    return np.sum(np.where(x > 0, y, x**2), 0)


def selected_twice(x: Any) -> Any:
    y = np.where(x > 0, np.log(x), x)
    return np.where(x > -1, y, np.arccosh(-x) ** 2)


def select(x: Any) -> Any:
    return np.select([x > 1, x > 0], [np.log(x - 1), np.sqrt(x)], x**2)


def quotient(x: Any) -> Any:
    return np.where(x == 0, 1.0, np.sin(x) / x)


def power(x: Any) -> Any:
    return np.where(x > 0, x**-1.5, x**2)


CASES: list[
    tuple[Callable[[Any], Any], list[float], Callable[[Any], Any], Callable[[Any], Any]]
] = [
    (root, [1.0, 2.0], lambda x: 3 * x**2, lambda x: 6 * x),
    (root, [-1.0, -4.0], lambda x: -0.5 / np.sqrt(-x), lambda x: -0.25 / np.sqrt(-x) ** 3),
    (cosine, [np.inf, 3.0], lambda x: 0 * np.ones_like(x), lambda x: 0 * np.ones_like(x)),
    (logarithm, [-1.0, 0.0], lambda x: 2 * x, lambda x: 2 + 0 * x),
    (logarithm, [1.0, 2.0], lambda x: np.log(x) + 1, lambda x: 1 / x),
    (inner_is_unsafe, [0.5, 0.25], lambda x: 2 * x, lambda x: 2 + 0 * x),
    (
        inner_is_unsafe,
        [3.0, 4.0],
        lambda x: 0.1 / np.sqrt(1 - x**2 / 100),
        lambda x: 0.001 * x / np.sqrt(1 - x**2 / 100) ** 3,
    ),
    (through_movement, [-1.0, -0.0], lambda x: 2 * x, lambda x: 2 + 0 * x),
    (through_movement, [1.0, 2.0], lambda x: 2 / x, lambda x: -2 / x**2),
    (through_padding, [-1.0, 0.0], lambda x: 2 * x, lambda x: 2 + 0 * x),
    (through_broadcast, [-1.0, 0.0], lambda x: 6 * x, lambda x: 6 + 0 * x),
    (selected_twice, [-0.5, 0.0], lambda x: 1 + 0 * x, lambda x: 0 * x),
    (select, [-1.0, 0.0], lambda x: 2 * x, lambda x: 2 + 0 * x),
    (select, [0.25, 1.0], lambda x: 0.5 / np.sqrt(x), lambda x: -0.25 / np.sqrt(x) ** 3),
    (quotient, [0.0, 0.0], lambda x: 0 * x, lambda x: 0 * x),
    (power, [0.0, -2.0], lambda x: 2 * x, lambda x: 2 + 0 * x),
]


@pytest.mark.parametrize(
    ("fun", "points", "first", "second"), CASES, ids=[f"{c[0].__name__}{c[1][0]:g}" for c in CASES]
)
def test_untaken_branches_contribute_nothing(
    fun: Any, points: list[float], first: Any, second: Any
) -> None:
    x = np.array(points)
    slope, curve = first(x), second(x)

    def total(x: Any) -> Any:
        return np.sum(fun(x))

    def check(found: Any, expected: Any) -> None:
        np.testing.assert_allclose(found, expected, atol=1e-15)

    check(ft.grad(total)(x), slope)
    check(ft.grad(fun)(points[0]), slope[0])
    check(ft.jvp(fun, (x,), (np.ones(2),))[1], slope)
    check(ft.linearize(fun, x)[1](np.ones(2)), slope)
    check(ft.jacfwd(fun)(x), np.diag(slope))
    check(ft.jacrev(fun)(x), np.diag(slope))
    check(ft.vmap(ft.grad(fun))(x), slope)
    check(ft.grad(lambda x: np.sum(ft.vmap(fun)(x)))(x), slope)
    check(ft.jit(ft.grad(total))(x), slope)
    check(ft.grad(ft.jit(total))(x), slope)
    check(ft.hessian(total)(x), np.diag(curve))
    check(ft.grad(lambda x: np.sum(ft.grad(total)(x)))(x), curve)
    check(ft.hvp(total, (x,), (np.ones(2),)), curve)
    check(ft.jacfwd(ft.jacfwd(total))(x), np.diag(curve))
    check(ft.jacrev(ft.jacfwd(total))(x), np.diag(curve))
    check(ft.vmap(ft.hessian(fun))(x), curve)
    check(ft.jit(ft.hessian(total))(x), np.diag(curve))
    check(ft.hessian(ft.jit(total))(x), np.diag(curve))
    check(ft.grad(ft.grad(ft.jit(fun)))(points[0]), curve[0])
    check(ft.vmap(ft.vmap(ft.grad(fun)))(np.stack([x, x])), np.stack([slope, slope]))


@pytest.mark.parametrize("name", ["grad", "jacfwd", "hessian"])
def test_broadcast_conditions(name: str) -> None:
    x = np.array([[1.0, -1.0, 4.0]])
    condition = np.array([[True, False, True], [True, False, False]])

    def fun(x: Any) -> Any:
        return np.sum(np.where(condition, np.sqrt(x) ** 3, x[0, 0]))

    slope = 1.5 * np.sqrt(np.array([1.0, 0.0, 4.0])) * [2, 0, 1] + [3, 0, 0]
    if name == "hessian":
        curve = np.diag([0.75 * 2, 0.0, 0.375])
        np.testing.assert_allclose(ft.hessian(fun)(x).reshape(3, 3), curve)
        return
    np.testing.assert_allclose(getattr(ft, name)(fun)(x), slope[None])


def test_scalar_against_array() -> None:
    gradient = ft.grad(lambda s: np.sum(np.where(np.array([True, False]), np.log(s), 1.0)))(0.5)
    np.testing.assert_allclose(gradient, 2.0)
    gradient = ft.grad(lambda s: np.sum(np.where(np.array([False, False]), np.log(s), s)))(0.0)
    np.testing.assert_allclose(gradient, 2.0)


def test_an_unmasked_use_clears_the_mask() -> None:
    def fun(x: Any) -> Any:
        y = np.log(x)
        return np.sum(np.where(x > 0, y, 0.0) + y)

    np.testing.assert_array_equal(ft.grad(fun)(np.array([1.0, 0.0])), [2, np.inf])


def test_two_masked_uses_join_their_masks() -> None:
    def fun(x: Any) -> Any:
        y = np.log(x)
        return np.sum(np.where(x > 0, y, 0.0) + np.where(x > 1, 2 * y, 0.0) + np.where(x < 0, y, 0))

    np.testing.assert_array_equal(ft.grad(fun)(np.array([1.0, 2.0, 0.0, -2.0])), [1, 1.5, 0, -0.5])


def test_zero_times_infinity_elsewhere_stays_nan() -> None:
    assert np.isnan(ft.grad(lambda x: 0.0 * np.log(x) * x)(0.0))
    assert np.isnan(ft.grad(lambda x: np.where(x >= 0, 0.0 * np.log(x), x))(0.0))
    assert np.isnan(ft.grad(lambda x: np.sum(np.log(x) * np.array([1.0, 0.0])))(np.zeros(2))[1])


def test_a_selection_inside_a_computation_masks_only_what_leads_to_it() -> None:
    def fun(x: Any) -> Any:
        return np.exp(np.where(x > 0, np.sqrt(x), 0.0)) * 3.0 + x

    assert ft.grad(fun)(-1.0) == 1
    assert ft.grad(fun)(0.0) == 1
    np.testing.assert_allclose(ft.grad(fun)(1.0), 1.5 * np.e + 1)


def test_writes_under_a_mask() -> None:
    def fun(x: Any) -> Any:
        y = np.log(x)
        y[x <= 0] = 0.0
        return np.sum(y)

    np.testing.assert_array_equal(ft.grad(fun)(np.array([2.0, 0.0, -1.0])), [0.5, 0, 0])
    np.testing.assert_array_equal(ft.jacfwd(fun)(np.array([2.0, 0.0, -1.0])), [0.5, 0, 0])


def test_in_control_flow() -> None:
    def body(i: Any, c: Any) -> Any:
        return c + np.where(c > 0, np.sqrt(c), 0.0) * i

    for loop in (lambda c: ft.lax.fori_loop(0, 3, body, c), lambda c: ft.checkpoint(body)(2.0, c)):
        assert ft.grad(loop)(-1.0) == 1
        assert ft.grad(loop)(0.0) == 1
        assert ft.grad(ft.grad(loop))(-1.0) == 0


def test_off_gives_the_textbook_transpose() -> None:
    def unsafe(x: Any) -> Any:
        return np.where(x < 1, np.arcsin(x), x**2)

    with ft.config(safe_where=False):
        assert np.isnan(ft.grad(unsafe)(2.0))
        assert np.isnan(ft.jit(ft.grad(unsafe))(2.0))
        assert np.isnan(ft.jacrev(lambda x: unsafe(x))(np.array([2.0, 0.0]))[0, 0])
        assert ft.jvp(unsafe, (2.0,), (1.0,))[1] == 4  # forward mode selects tangents
    assert ft.grad(unsafe)(2.0) == 4
    assert ft.jit(ft.grad(unsafe))(2.0) == 4
    with ft.config(safe_where=False):
        assert np.isnan(ft.grad(unsafe)(2.0))  # also after the caches have met the other setting


def test_accumulation_of_masked_cotangents() -> None:
    on, off = np.array([True, False]), np.array([False, False])
    first, second = Masked(np.ones(2), on), Masked(np.ones(2), off)
    joined = add_cotangents(first, second)
    assert type(joined) is Masked
    np.testing.assert_array_equal(joined.mask, [True, False])
    np.testing.assert_array_equal(joined.value, [2, 2])
    assert type(add_cotangents(first, np.ones(2))) is np.ndarray
    assert type(add_cotangents(np.ones(2), first)) is np.ndarray


# what moves values moves masks ------------------------------------------------------------------


def _moves_floats(row: Row, sample: Sample) -> bool:
    return bool(row.primitive.moves) and any(_moved(row, sample))


def _moved(row: Row, sample: Sample) -> list[tuple[int, ...]]:
    """Sets of operands in which a sample is linear, of real floats all."""
    return [
        tuple(positions)
        for positions in row.linear_sets(sample)
        if all(
            isinstance(sample.operands[i], np.ndarray)
            and sample.operands[i].dtype in (np.float64, np.float32)
            for i in positions
        )
    ]


MOVING = each_sample(_moves_floats)


def test_movement_is_sampled() -> None:
    assert len(MOVING) > 80
    names = {case.values[0].primitive.name for case in MOVING}
    assert names >= {"split", "cast", "gather", "scatter_add", "cumsum", "unstack", "reduce_sum"}


@each(("row", "label"), MOVING, by="row")
def test_infinite_slopes_behind_a_selection_do_not_come_through_movement(
    row: Row, label: str, rng: np.random.Generator
) -> None:
    """Zeros under a logarithm, moved, and left out by a selection: their slope is 0."""
    sample = row.sample(label)
    for positions in _moved(row, sample):

        def moved(*values: Any, positions: Any = positions) -> list[Any]:
            operands = list(sample.operands)
            for i, value in zip(positions, values, strict=True):
                operands[i] = value
            return list(bind(row.primitive, *operands, **sample.params))

        xs = []
        for i in positions:
            x = rng.uniform(0.5, 2.0, sample.operands[i].shape).astype(sample.operands[i].dtype)
            x[rng.random(x.shape) < 0.3] = 0.0
            xs.append(x)
        outs = moved(*map(np.log, xs))
        if any(np.asarray(out).dtype.kind != "f" for out in outs):
            continue
        keep = [np.isfinite(out) for out in outs]
        weights = [np.where(k, rng.normal(size=k.shape), 0.0) for k in keep]

        def total(*xs: Any, moved: Any = moved, keep: Any = keep, weights: Any = weights) -> Any:
            outs = moved(*map(np.log, xs))
            return sum(
                np.sum(np.where(k, out, 0.0) * w)
                for k, out, w in zip(keep, outs, weights, strict=True)
            )

        cts = [w.astype(np.asarray(out).dtype) for w, out in zip(weights, outs, strict=True)]
        pulled = ft.vjp(moved, *xs)[1](cts)
        argnums = tuple(range(len(xs)))
        for grad in (ft.grad(total, argnums), ft.jit(ft.grad(total, argnums))):
            for x, ct, found in zip(xs, pulled, grad(*xs), strict=True):
                expected = np.where(x == 0, 0, ct / np.where(x == 0, 1, x))
                np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


STEPS = np.array([1.0, 2.0, 3.0])
LANES = np.arange(4)
SCALINGS = [lambda t: 2 * t, lambda t: 3 * t, lambda t: -t]


def _carried(x: Any) -> Any:
    return lax.scan(lambda c, a: (c[::-1] * a, c * 2), x, STEPS)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "split": lambda x: np.concatenate(np.split(x, 2)),
    "cast": lambda x: x.astype(np.float32),
    "cumulative": lambda x: np.cumsum(x[::-1])[::-1],
    "sort": np.sort,
    "checkpoint": ft.checkpoint(lambda x: 2 * x),
    "checkpoint of parts": lambda x: np.concatenate(ft.checkpoint(lambda x: (x[:2], x[2:]))(x)),
    "call": ft.jit(lambda x: 2 * x),
    "vmap of a call": ft.vmap(ft.jit(lambda x: 2 * x)),
    "scan": lambda x: lax.scan(lambda c, a: (c, 2 * a), 0.0, x)[1],
    "carry of a scan": lambda x: _carried(x)[0],
    "a step of a scan": lambda x: _carried(x)[1][2],
    "sum over steps": lambda x: lax.scan(lambda c, a: (c + a * x, 0.0), np.zeros(4), STEPS)[0],
    "constant of a scan": lambda x: lax.scan(lambda c, a: (c, a * x[::-1]), 0.0, STEPS)[1][1],
    "scan of a checkpoint": lambda x: lax.scan(
        ft.checkpoint(lambda c, a: (c, a * x[::-1])), 0.0, STEPS
    )[1][1],
    "reversed scan": lambda x: lax.scan(lambda c, a: (a, c + 0 * a), 0.0, x, reverse=True)[1],
    "loop": lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2.0, x),
    "loop in a scan": lambda x: lax.scan(
        lambda c, a: (c, lax.fori_loop(0, 3, lambda i, t: 2 * t, a)), 0.0, x
    )[1],
    "while": lambda x: lax.while_loop(
        lambda state: state[0] < 3, lambda state: (state[0] + 1, 1.5 * state[1]), (0, x)
    )[1],
    "cond": lambda x: lax.cond(x[3] > 0, lambda t: t[::-1], lambda t: 2 * t, x),
    "branch of zeros": lambda x: lax.cond(x[3] > 0, lambda t: 2 * t, lambda t: np.zeros(4), x),
    "lanes of a cond": ft.vmap(lambda a: lax.cond(a > 1, lambda t: 3 * t, lambda t: 2 * t, a)),
    "shared by lanes": lambda x: ft.vmap(
        lambda k: lax.cond(k > 1.5, lambda t: k * t[::-1], lambda t: 2 * t, x)
    )(STEPS)[1],
    "branch of zeros in lanes": lambda x: ft.vmap(
        lambda k: lax.cond(k > 1.5, lambda t: 2 * t, lambda t: np.zeros(4), x)
    )(STEPS)[1],
    "lanes of a switch in a scan": lambda x: lax.scan(
        lambda c, k: (c, ft.vmap(lambda i, t: lax.switch(i, SCALINGS, t))(LANES + k, x)),
        0.0,
        LANES[:2],
    )[1][1],
    "custom rule": ft.custom_jvp(lambda x: 2 * x),
}
PROGRAMS["custom rule"].defjvps(lambda t, y, x: 2 * t)  # type: ignore[attr-defined]  # it has a rule


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("order", ["zero first", "zero inside"])
def test_infinite_slopes_behind_a_selection_do_not_come_through_programs(
    name: str, order: str
) -> None:
    program = PROGRAMS[name]
    x = np.array([0.0, 1.5, 2.0, 3.0] if order == "zero first" else [1.5, 0.0, 2.0, 3.0])
    keep = np.isfinite(np.asarray(program(np.log(x))))

    def fun(x: Any) -> Any:
        return np.where(keep, program(np.log(x)), 0.0)

    def total(x: Any) -> Any:
        return np.sum(fun(x))

    (pulled,) = ft.vjp(program, np.log(np.where(x == 0, 1, x)))[1](
        keep.astype(np.asarray(program(x)).dtype)
    )
    expected = np.where(x == 0, 0, pulled / np.where(x == 0, 1, x))
    gradients = {
        "grad": ft.grad(total),
        "jit of grad": ft.jit(ft.grad(total)),
        "grad of jit": ft.grad(ft.jit(total)),
        "jacrev": lambda x: np.sum(ft.jacrev(fun)(x), 0),
        "vmap of grad": lambda x: ft.vmap(ft.grad(total))(np.stack([x, x]))[1],
    }
    for way, gradient in gradients.items():
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, err_msg=way)


# A selection by a narrow condition gives a narrow mask, which leaves programs in full, whether the
# cotangents that come in have masks or not. The programs take and give pairs.
IN_PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "call": lambda f, pair: ft.jit(f)(pair),
    "checkpoint": lambda f, pair: ft.checkpoint(f)(pair),
    "vmap of a call": lambda f, pair: ft.vmap(ft.jit(f))(pair),
    "scanned": lambda f, pair: lax.scan(lambda c, a: (c, f(a)), 0.0, pair)[1],
    "scanned twice": lambda f, pair: lax.scan(
        lambda c, a: (c, lax.scan(lambda d, _: (d, f(a)), 0.0, None, 2)[1]), 0.0, pair
    )[1],
    "carry": lambda f, pair: lax.scan(lambda c, _: (f(c), 0.0), pair, None, 2)[0],
    "while": lambda f, pair: lax.while_loop(
        lambda state: state[0] < 2, lambda state: (state[0] + 1, f(state[1])), (0, pair)
    )[1],
    "cond": lambda f, pair: lax.cond(pair[0][0, 0] > -1, f, lambda pair: pair, pair),
    "lanes of a cond": lambda f, pair: ft.vmap(
        lambda own: lax.cond(own[0][0] > 0.5, f, lambda pair: pair, own)
    )(pair),
    "shared by lanes": lambda f, pair: tuple(
        part[0] for part in ft.vmap(lambda k: lax.cond(k > 1.5, lambda pair: pair, f, pair))(STEPS)
    ),
    "while in a cond": lambda f, pair: lax.cond(
        pair[0][0, 0] > -1,
        lambda pair: lax.while_loop(lambda c: c[1][0, 0] < 2, f, pair),
        lambda pair: (2 * pair[0], pair[1]),
        pair,
    ),
}
NARROW: dict[str, Callable[[Any], Any]] = {
    "scalar": lambda t: t[..., 0].sum() > -1,
    "row": lambda t: t.sum(axis=tuple(range(t.ndim - 1))) > -1,
}


@each("name", IN_PROGRAMS, by="name", one_of=3, full=2)
@each("shape", NARROW)
@each("masked", ["neither", "first", "second"])
def test_narrow_masks_leave_programs_in_full(name: str, shape: str, masked: str) -> None:
    def inner(pair: Any) -> Any:
        t, u = pair
        return np.where(NARROW[shape](t), np.sin(t), 0.0), 1.5 * u

    def fun(x: Any) -> Any:
        t, u = IN_PROGRAMS[name](inner, (np.sin(x), np.cos(x)))
        keep = x > 0.5 if np.ndim(t) == 2 else np.stack([x, x], 1) > 0.5
        if masked == "first":
            t = np.where(keep, t, 0.0)
        if masked == "second":
            u = np.where(keep, u, 0.0)
        return t * u

    def rows(x: Any) -> Any:
        return np.sum(fun(x), axis=tuple(range(1, np.ndim(fun(x)))))

    def total(x: Any) -> Any:
        return np.sum(fun(x))

    x = np.random.default_rng(1).uniform(0.2, 1.0, (4, 3))
    steps = 1e-6 * np.eye(x.size).reshape(-1, *x.shape)
    expected = np.reshape([total(x + step) - total(x - step) for step in steps], x.shape) / 2e-6
    for way, gradient in {
        "grad": ft.grad(total),
        "jit of grad": ft.jit(ft.grad(total)),
        "grad of jit": ft.grad(ft.jit(total)),
        "vmap of grad": lambda x: ft.vmap(ft.grad(total))(np.stack([x, x]))[1],
        "rows": lambda x: np.sum(ft.jacrev(rows)(x), 0),
        "rows, compiled": lambda x: np.sum(ft.jit(ft.jacrev(rows))(x), 0),
    }.items():
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-6, atol=1e-8, err_msg=way)
    hessian = ft.hessian(total)(x)
    for way, other in {
        "reverse twice": ft.jacrev(ft.jacrev(total)),
        "jit": ft.jit(ft.hessian(total)),
        "vmap": lambda x: ft.vmap(ft.hessian(total))(np.stack([x, x]))[1],
    }.items():
        np.testing.assert_allclose(other(x), hessian, rtol=1e-9, atol=1e-12, err_msg=way)
