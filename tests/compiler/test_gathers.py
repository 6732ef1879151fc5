"""Reads at index arrays in front of what they read from: the same bits and errors, less work."""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.numpy as fnp
from cases import each
from compiler.bitwise import assert_compiled_is_reference, assert_same_bits
from functrans import lax
from functrans.compiler import gathers, prepare
from functrans.core.lowering import IndexMap, Pointwise, Reduction
from functrans.primitives.indexing import gather
from helpers import assert_close
from samples import Row, each_sample
from samples.row import integers

Rng = np.random.Generator
MODES = ("raise", "clip", "wrap", "drop")


@contextlib.contextmanager
def set_to(module: Any, name: str, value: object) -> Iterator[None]:
    """Another value for a while."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, value)
        yield


def fresh(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The same function as another one, of which no program is kept."""
    itself = object()
    return lambda *args: (itself, fun(*args))[1]


def names_in(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The primitives of the program that a call of a function runs."""
    jitted = ft.jit(fresh(fun))
    with contextlib.suppress(IndexError), np.errstate(all="ignore"):
        jitted(*args)
    (program,) = jitted.kept_programs()
    return [eqn.primitive.name for part in program.native.parts for eqn in part.part.jaxpr.eqns]


def is_moved(fun: Callable[..., Any], *args: Any) -> bool:
    """Whether reads of a function move in front of something."""
    names = names_in(fun, *args)
    return "places" in names and "gather" in names


def assert_stays_the_same(fun: Callable[..., Any], *args: Any, what: str = "") -> Any:
    """A function has the same bits with reads in front, where they stand, and by the reference."""
    with set_to(gathers, "_READ", 0):
        found = assert_compiled_is_reference(fresh(fun), *args, what=what)
    with set_to(prepare, "with_gathers_in_front", lambda jaxpr, *_: jaxpr):
        expected = assert_compiled_is_reference(fresh(fun), *args, what=what)
    pairs = zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True)
    for number, (one, other) in enumerate(pairs):
        assert_same_bits(one, other, f"{what}: result {number}")
    return found


def some_read(rng: Rng, n: int) -> tuple[np.ndarray, str]:
    """Fewer indices than there are elements, and a mode."""
    mode = str(rng.choice(MODES))
    shape = [(), (1,), (n - 1,), (1, n - 1), (n // 2, 1)][rng.integers(5)]
    reach = 0 if mode == "raise" else 3
    return integers(rng, shape, -n - reach, n + reach), mode


def read_of(fun: Callable[..., Any], axis: int, mode: str) -> Any:
    """The function that reads each result of another one along an axis, where that is less."""

    def read(index: Any, *operands: Any) -> Any:
        outs = fun(*operands)
        return [
            gather(out, [index], (axis,), mode)
            for out in outs
            if axis < len(out.shape) and index.size < out.shape[axis]
        ]

    return read


def sample_read(row: Row, label: str, rng: Rng) -> Any:
    """A read along some axis of the results of a sample: indices, axis, mode; if there is one."""
    sample = row.sample(label)
    with np.errstate(all="ignore"):
        out = np.asarray(row.primitive.impl(*sample.operands, **sample.params)[0])
    axes = [axis for axis, n in enumerate(out.shape) if n > 1]
    if not axes or not out.size:
        return None
    axis = int(rng.choice(axes))
    index, mode = some_read(rng, out.shape[axis])
    return index, axis, mode


MOVING = each_sample(
    lambda row, _: isinstance(row.primitive.lower, Pointwise | IndexMap | Reduction)
)


@each(("row", "label"), MOVING, by="row", one_of=4, full=2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_reads_of_every_primitive_have_the_same_bits(row: Row, label: str, rng: Rng) -> None:
    found = sample_read(row, label, rng)
    if found is None:
        return
    index, *how = found
    sample = row.sample(label)
    fun, operands = read_of(row.bound(sample), *how), (index, *sample.operands)
    assert_stays_the_same(fun, *operands, what=f"{row.name} {label}")
    if row.primitive.elementwise is not None and isinstance(row.primitive.lower, Pointwise):
        dtype = np.result_type(*fun(*operands))
        may_fail = row.name == "power" and dtype.kind in "iu"
        with set_to(gathers, "_READ", 0):
            assert is_moved(fun, *operands) != may_fail


@each(
    ("row", "label"),
    each_sample(
        lambda row, sample: bool(
            isinstance(row.primitive.lower, Pointwise | IndexMap | Reduction)
            and row.is_differentiable
            and sample.has_derivative
            and row.moving(sample)
            and row.primitive.name != "overwritten"
        )
    ),
    by="row",
    one_of=6,
    full=3,
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_derivatives_of_reads_have_the_same_bits(row: Row, label: str, rng: Rng) -> None:
    found = sample_read(row, label, rng)
    if found is None:
        return
    index, *how = found
    sample = row.sample(label)
    fun = read_of(row.function(sample), *how)
    points = [sample.operands[i] for i in row.moving(sample)]
    directions = row.direction(sample, rng)

    def derivatives(index: Any, points: Any, directions: Any) -> Any:
        own = functools.partial(fun, index)
        _, tangents = ft.jvp(own, tuple(points), tuple(directions))
        outs, pullback = ft.vjp(own, *points)
        return tangents, pullback(outs)

    assert_stays_the_same(derivatives, index, points, directions, what=f"{row.name} {label}")


# what moves -------------------------------------------------------------------------------------


def numbers(*shapes: tuple[int, ...], seed: int = 0) -> list[np.ndarray]:
    """Arrays of normal numbers."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=shape) for shape in shapes]


def skinned(transforms: Any, base: Any, weights: Any, index: Any) -> Any:
    """Some of the points that are moved by a few matrices, with weights."""
    points = fnp.sum((transforms @ base) * weights[:, None, :], 0) + 1.0
    return points[:, index]


FUNCTIONS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], tuple[int, ...]]] = {
    "elementwise": (lambda i, x: fnp.exp(fnp.sin(x) * 2.0)[i], ((500,),), (40,)),
    "rows": (lambda i, x, w: fnp.tanh(x * w + x)[i], ((300, 6), (6,)), (4, 5)),
    "columns": (lambda i, x, w: fnp.tanh(x * w + x)[:, i], ((6, 300), (300,)), (4, 5)),
    "middle": (lambda i, x: fnp.exp(x)[:, :, i], ((2, 3, 90, 4),), (20,)),
    "broadcast": (lambda i, x, y: fnp.exp(x[:, None] - y)[i], ((200,), (30,)), (20,)),
    "sum": (lambda i, x: fnp.exp(fnp.sum(x * x, 1))[i], ((200, 50),), (9,)),
    "sum_in_front": (lambda i, x: fnp.sum(fnp.exp(x), 0)[i], ((50, 300),), (60,)),
    "sums": (lambda i, x: fnp.sum(fnp.sin(x), (0, 2))[i], ((7, 99, 8),), (70,)),
    "largest": (lambda i, x: fnp.max(fnp.sin(x), 0)[i], ((50, 300),), (7,)),
    "moments": (lambda i, x: fnp.var(fnp.sin(x), 1)[i], ((300, 40),), (7,)),
    "transposed": (lambda i, x: (fnp.exp(x).T * 2.0)[i], ((30, 90),), (20,)),
    "slices": (lambda i, x: fnp.exp(x[1:] - x[:-1])[:, i], ((40, 90),), (20,)),
    "joined": (lambda i, x, y: fnp.exp(fnp.concatenate([x, y, x]))[:, i], ((4, 99), (2, 99)), (9,)),
    "stacked": (lambda i, x, y: fnp.stack([fnp.exp(x), y * 2.0], 1)[i], ((99,), (99,)), (9,)),
    "reshaped": (lambda i, x: fnp.exp(x).reshape(2, 3, 99)[:, :, i], ((6, 99),), (9,)),
    "where": (lambda i, x, y: fnp.where(x > y, fnp.exp(x), y)[i], ((200, 3), (3,)), (9,)),
    "number": (lambda i, x: fnp.exp(x)[i], ((200,),), ()),
    "product": (lambda i, a, b: (a @ b)[:, i], ((40, 3), (3, 200)), (50,)),
    "skinning": (lambda i, *xs: skinned(*xs, i), ((22, 3, 4), (4, 900), (22, 900)), (90,)),
    "same_reads": (
        lambda i, x: [fnp.exp(x)[i], fnp.sin(x)[i], (x * x.T)[i]], ((99, 99),), (9,)
    ),
}  # fmt: skip
"""Functions of an index and arrays, shapes of the arrays and of the index."""


@each("name", FUNCTIONS)
@each("mode", ("writeable", "known"))
def test_what_is_computed_before_a_read_moves_behind_it(name: str, mode: str, rng: Rng) -> None:
    fun, shapes, index_shape = FUNCTIONS[name]
    arrays = numbers(*shapes)
    index = integers(rng, index_shape, -6, 6)
    if mode == "known" and index_shape:
        index = abs(index)
        index.flags.writeable = False
        fun = functools.partial(fun, index)
        names = names_in(fun, *arrays)
        assert "places" not in names
        found = assert_stays_the_same(fun, *arrays, what=name)
        assert_close(found, fun(*arrays), name)
        return
    assert is_moved(fun, index, *arrays), names_in(fun, index, *arrays)
    found = assert_stays_the_same(fun, index, *arrays, what=name)
    assert_close(found, fun(index, *arrays), name)


STAYING: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], tuple[int, ...]]] = {
    "read_in_full": (lambda i, x: [(y := fnp.exp(x)) * 2.0, y[i]], ((500,),), (40,)),
    "a_result": (lambda i, x: [y := fnp.exp(x), y[i]], ((500,),), (40,)),
    "more_than_there_is": (lambda i, x: fnp.exp(x)[i], ((50,),), (60,)),
    "as_many_as_there_are": (lambda i, x: fnp.exp(x)[i], ((50,),), (50,)),
    "an_argument": (lambda i, x: fnp.exp(x[i]), ((500,),), (40,)),
    "two_indices": (lambda i, x: [(y := fnp.exp(x))[i], y[i + 1]], ((500,),), (40,)),
    "along_the_sum": (lambda i, x: fnp.cumsum(fnp.exp(x))[i], ((500,),), (40,)),
    "a_routine": (lambda i, x: fnp.sort(x, 1)[i], ((200, 20),), (40,)),
    "many_operands": (lambda i, *xs: sum(xs)[i], ((500,),) * 9, (400,)),
    "other_order": (lambda i, x: fnp.sum(x * x, 0)[i], ((99, 500),), (20,)),
}  # fmt: skip


@each("name", STAYING)
def test_what_is_needed_in_full_stays(name: str, rng: Rng) -> None:
    fun, shapes, index_shape = STAYING[name]
    arrays = numbers(*shapes)
    index = integers(rng, index_shape, 0, 5)
    assert not is_moved(fun, index, *arrays)
    found = assert_compiled_is_reference(fun, index, *arrays, what=name)
    assert_close(found, fun(index, *arrays), name)


@each("mode", MODES)
@each("index", ([700, 3], [-701, 3], [-700, 3, 699], [1 << 40]))
def test_indices_out_of_bounds_mean_what_they_mean(mode: str, index: list[int]) -> None:
    def fun(index: Any, x: Any) -> Any:
        y = fnp.exp(x[:, None, :] * 0.5) + x[:, None, :]
        return [gather(y, [index], (2,), mode), gather(y * 2.0, [index], (2,), mode, 3.0)]

    where, (x,) = np.array(index), numbers((3, 700))
    assert is_moved(fun, where, x)
    assert_stays_the_same(fun, where, x)
    out_of_bounds = mode == "raise" and any(not -700 <= i < 700 for i in index)
    if out_of_bounds:
        with pytest.raises(IndexError, match="out of bounds for axis 2 with extent 700"):
            ft.jit(fun)(where, x)
    else:
        assert_close(ft.jit(fun)(where, x), fun(where, x))


def test_errors_of_what_is_not_read_stay() -> None:
    def fun(index: Any, x: Any, n: Any) -> Any:
        return (x**n)[index]

    x, n, index = np.arange(900), np.full(900, 2), np.array([1, 5])
    assert not is_moved(fun, index, x, n)
    n[7] = -1
    with pytest.raises(ValueError, match="negative integer powers"):
        ft.jit(fun)(index, x, n)


def test_nan_and_infinities_are_those_of_the_whole() -> None:
    def fun(index: Any, x: Any, y: Any) -> Any:
        return (fnp.sqrt(x) * y / x)[index]

    x, y = numbers((400,), (400,))
    x[::3], y[::5], x[1::7] = 0.0, np.inf, np.nan
    index = np.arange(0, 400, 3)
    assert is_moved(fun, index, x, y)
    assert_stays_the_same(fun, index, x, y)


def test_constants_that_do_not_change_along_the_axis_are_not_read() -> None:
    rows = np.broadcast_to(np.arange(4.0)[:, None], (4, 900)).copy()
    rows.flags.writeable = False

    def fun(index: Any, x: Any) -> Any:
        return fnp.exp(x * rows)[:, index]

    (x,) = numbers((4, 900))
    index = np.arange(50)
    assert names_in(fun, index, x).count("gather") == 1
    assert_stays_the_same(fun, index, x)


def test_indices_are_looked_at_when_only_such_constants_are_read() -> None:
    rows = np.zeros((4, 900))
    rows.flags.writeable = False
    fun = ft.jit(lambda index, t: fnp.exp(rows * t)[:, index])
    with pytest.raises(IndexError, match="out of bounds for axis 1 with extent 900"):
        fun(np.array([900]), 2.0)


def test_a_table_that_is_the_same_in_all_rounds_is_computed_once() -> None:
    def fun(table: Any, indices: Any) -> Any:
        return lax.scan(lambda c, i: (c + fnp.exp(table)[i], None), 0.0 * table[:9], indices)[0]

    (table,) = numbers((600,))
    indices = np.random.default_rng(0).integers(0, 600, (20, 9))
    names = names_in(fun, table, indices)
    assert names.index("exp") < names.index("scan")
    assert_stays_the_same(fun, table, indices)


def test_reads_move_in_the_body_of_a_loop() -> None:
    def fun(x: Any, indices: Any) -> Any:
        return lax.scan(lambda c, i: (c * 0.9, fnp.exp(c)[i]), x, indices)[1]

    (x,) = numbers((600,))
    indices = np.random.default_rng(0).integers(0, 600, (20, 9))
    (eqn,) = [e for e in ft.jit(fun).jaxpr(x, indices).eqns if e.primitive.name == "scan"]
    names = [e.primitive.name for e in prepare.prepare(eqn.params["jaxpr"]).eqns]
    assert names.index("gather") < names.index("exp")
    assert_stays_the_same(fun, x, indices)


def test_gradients_of_reads_are_those_of_the_interpreter() -> None:
    def loss(transforms: Any, base: Any, weights: Any, index: Any) -> Any:
        return fnp.sum(fnp.sin(skinned(transforms, base, weights, index)))

    arrays = numbers((5, 3, 4), (4, 300), (5, 300))
    index = np.random.default_rng(0).integers(0, 300, (3, 20))
    found = ft.jit(ft.grad(loss, (0, 1, 2)))(*arrays, index)
    with ft.config(native=False):
        assert_close(found, ft.grad(loss, (0, 1, 2))(*arrays, index))
    jacobian = ft.jacfwd(skinned)
    assert is_moved(jacobian, *arrays, index)
    found = assert_stays_the_same(jacobian, *arrays, index)
    with ft.config(native=False):
        assert_close(found, jacobian(*arrays, index))


def test_it_can_fail() -> None:
    """The check of bits sees a reduction whose order changes."""
    (x,) = numbers((99, 500))
    with set_to(gathers, "is_ordered", lambda *_: False), pytest.raises(AssertionError):
        assert_stays_the_same(lambda i, x: fnp.sum(x * x, 0)[i], np.arange(20), x)
