"""Captured arrays of any memory layout give the bits of ordinary ones, under every transform.

Arrays of the other byte order, unaligned ones and those with negative strides are handed to all
primitives, and to all indexed updates and reads: as operands of an eager call, and as arrays that a
traced function refers to. Layouts of the arguments of ``jit``: ``compiler/test_bitwise_samples``.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.core.dispatch import bind
from functrans.numpy.at import At
from samples import Row, Sample, each_sample

Arrange = Callable[[np.ndarray], np.ndarray]
Function = Callable[[Any], Any]


def _unaligned(x: np.ndarray) -> np.ndarray:
    memory = np.empty(x.nbytes + 1, np.uint8)
    result: np.ndarray = np.ndarray(x.shape, x.dtype, memory, 1)
    result[...] = x
    return result


LAYOUTS: dict[str, Arrange] = {
    "swapped": lambda x: x.astype(x.dtype.newbyteorder("S")),
    "unaligned": _unaligned,
    "negative": lambda x: np.flip(np.flip(x).copy()),
    "swapped and negative": lambda x: np.flip(np.flip(x).astype(x.dtype.newbyteorder("S"))),
}


def _interpreted(f: Function, x: Any) -> Any:
    with ft.config(native=False):
        return ft.jit(f)(x)


def _as_compiled(f: Function, x: Any) -> Any:
    with ft.config(compiler_math=True):
        return ft.jit(f)(x)


def _pushed(f: Function, x: Any) -> Any:
    return ft.jvp(f, (x,), (x,)) if x.dtype.kind in "fc" else ()


def _pulled(f: Function, x: Any) -> Any:
    if x.dtype.kind not in "fc":
        return ()
    outs, pullback = ft.vjp(f, x)
    return outs, pullback(outs)


WAYS: dict[str, Callable[[Function, Any], Any]] = {
    "interpreted": _interpreted,
    "like compiled": _as_compiled,
    "vmap": lambda f, x: ft.vmap(f)(np.stack([x, x])),
    "jvp": _pushed,
    "vjp": _pulled,
    "staged vjp": lambda f, x: _interpreted(lambda x: _pulled(f, x), x),
}
COMPILED: dict[str, Callable[[Function, Any], Any]] = {
    "jit": lambda f, x: ft.jit(f)(x),
    "jit of vjp": lambda f, x: ft.jit(lambda x: _pulled(f, x))(x),
    "jit of vmap": lambda f, x: ft.jit(ft.vmap(f))(np.stack([x, x])),
}


def _assert_same(found: Any, expected: Any, what: str) -> None:
    for one, other in zip(ft.tree.leaves(found), ft.tree.leaves(expected), strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert one.shape == other.shape, what
        assert one.dtype.newbyteorder("=") == other.dtype.newbyteorder("="), what
        np.testing.assert_array_equal(one, other, err_msg=what)


# primitives -------------------------------------------------------------------------------------


def _arranged(operands: tuple[Any, ...], arrange: Arrange) -> list[Any]:
    """The operands, those that are arrays of numbers in another layout."""
    return [
        arrange(x) if isinstance(x, np.ndarray) and x.dtype.kind in "iufc" else x for x in operands
    ]


def _with_one_traced(row: Row, sample: Sample, i: int, arrange: Arrange) -> Function:
    """A primitive as a function of an operand, which refers to the others."""
    others = _arranged(sample.operands, arrange)
    return lambda x: bind(row.primitive, *others[:i], x, *others[i + 1 :], **sample.params)


def _check_captured(row: Row, label: str, layout: str, ways: dict[str, Any]) -> None:
    sample = row.sample(label)
    for i, x in enumerate(sample.operands):
        if not isinstance(x, np.ndarray) or len(sample.operands) == 1:
            continue
        plain = _with_one_traced(row, sample, i, np.copy)
        moved = _with_one_traced(row, sample, i, LAYOUTS[layout])
        for way, run in ways.items():
            try:
                expected = run(plain, x)
            except (ft.errors.FunctransError, TypeError, ValueError, np.linalg.LinAlgError):
                continue  # an operand without derivative, a refusal of these values
            _assert_same(run(moved, x), expected, f"{row.name} {label}: {way}, operand {i}")


@each("layout", LAYOUTS)
@each(("row", "label"), each_sample(), by="row", one_of=12, full=2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operands_of_a_primitive(row: Row, label: str, layout: str) -> None:
    sample = row.sample(label)
    expected = bind(row.primitive, *sample.operands, **sample.params)
    found = bind(row.primitive, *_arranged(sample.operands, LAYOUTS[layout]), **sample.params)
    if layout.startswith("swapped"):  # sums of others may be taken in another order
        _assert_same(found, expected, f"{row.name} {label}")


@each(("row", "label"), each_sample(), by="row", one_of=9, full=2)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_captured_operands_of_a_primitive(row: Row, label: str) -> None:
    _check_captured(row, label, "swapped", WAYS)


@each(("row", "label"), each_sample(), by="row", one_of=48, full=6)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_captured_operands_of_a_compiled_primitive(row: Row, label: str) -> None:
    _check_captured(row, label, "swapped", {"jit": COMPILED["jit"]})


# indexed updates and reads ----------------------------------------------------------------------

INDICES: dict[str, Callable[[Arrange], Any]] = {
    "number": lambda arrange: 1,
    "slice": lambda arrange: slice(None, None, -1),
    "array": lambda arrange: arrange(np.array([2, 0, 2])),
    "narrow": lambda arrange: arrange(np.array([1, -1], np.int16)),
    "two arrays": lambda arrange: (arrange(np.array([0, 2])), arrange(np.array([1, 1], "u4"))),
    "array apart": lambda arrange: (slice(None), arrange(np.array([[0], [1]]))),
    "mask": lambda arrange: np.array([True, False, True]),
}
UPDATES = ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply")
DTYPES = ("i2", "i8", "u4", "f2", "f4", "f8", "c8", "c16")


def _updated(name: str, x: Any, index: Any, value: Any) -> Any:
    place = At(x)[index]
    return (
        place.apply(lambda part: part * value) if name == "apply" else getattr(place, name)(value)
    )


def _written(x: Any, index: Any, value: Any) -> Any:
    y = x * 1
    y[index] = value
    y[index] += value
    return y


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{
        name: lambda x, index, value, name=name: _updated(name, x, index, value) for name in UPDATES
    },
    "get": lambda x, index, value: At(x)[index].get() * value,
    "read": lambda x, index, value: x[index] * value,
    "written": _written,
}


def _roles(name: str, index: str, dtype: str, arrange: Arrange) -> list[tuple[Function, Any]]:
    """An operation as a function of its array, of its values, and of their factor."""
    rng = np.random.default_rng(0)
    x = rng.integers(1, 4, (3, 2)).astype(dtype)
    value = np.array(2, dtype)
    place, run = INDICES[index](arrange), OPERATIONS[name]
    fits = dtype[0] not in "iu" or name not in ("divide", "power")
    if not fits or (dtype[0] == "c" and name in ("min", "max")):
        return []
    of_array = (lambda x: run(x, place, arrange(value)), x)
    of_value = (lambda value: run(arrange(x), place, value), value)
    if name in ("read", "written"):  # an ndarray has its own index, and is no array of ours
        return [of_array]
    return [of_array, of_value]


def _check_operation(
    name: str, index: str, dtype: str, layout: str, ways: dict[str, Callable[..., Any]]
) -> None:
    plain = _roles(name, index, dtype, np.copy)
    moved = _roles(name, index, dtype, LAYOUTS[layout])
    for (expected, x), (found, _) in zip(plain, moved, strict=True):
        what = f"{name} {index} {dtype} {layout}"
        _assert_same(found(x), expected(x), f"{what}: eager")
        for way, run in ways.items():
            _assert_same(run(found, x), run(expected, x), f"{what}: {way}")


def _unbatched(f: Function, x: Any) -> Any:
    """Under vmap, as an argument that all elements share."""
    swapped = LAYOUTS["swapped"](x)
    return ft.vmap(lambda x, k: (f(x), k), in_axes=(None, 0))(swapped, np.arange(2))[0]


@each("layout", LAYOUTS)
@each("dtype", DTYPES)
@each("index", INDICES)
@each("name", OPERATIONS, by="name", one_of=8)
def test_captured_operands_of_indexed_operations(
    name: str, index: str, dtype: str, layout: str
) -> None:
    _check_operation(name, index, dtype, layout, {**WAYS, "unbatched": _unbatched})


@each("layout", LAYOUTS)
@each("dtype", DTYPES)
@each("index", INDICES)
@each("name", OPERATIONS, by="name", one_of=80, full=8)
def test_captured_operands_of_compiled_indexed_operations(
    name: str, index: str, dtype: str, layout: str
) -> None:
    _check_operation(name, index, dtype, layout, COMPILED)


# what stays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("native", [True, False])
def test_writes_into_a_captured_array_of_the_other_byte_order_are_seen(native: bool) -> None:
    weights = np.arange(3.0).astype(LAYOUTS["swapped"](np.zeros(1)).dtype)
    with ft.config(native=native):
        for way in (lambda x: x * weights, lambda x: ft.lax.scan(
            lambda c, w: (c + w * weights, c), x, np.ones(2))[0]):  # fmt: skip
            jitted = ft.jit(way)
            weights[...] = [1.0, 2.0, 3.0]
            np.testing.assert_array_equal(jitted(np.ones(3)), way(np.ones(3)))
            weights[1] = 7.0
            np.testing.assert_array_equal(jitted(np.ones(3)), way(np.ones(3)))


def test_conversion_to_the_other_byte_order_changes_no_traced_value() -> None:
    for dtype in (">f8", "<f8", ">i4", "<c16"):
        jitted = ft.jit(lambda x, dtype=dtype: x.astype(dtype) * 1)
        expected = np.arange(3.0).astype(dtype)
        found = jitted(np.arange(3.0))
        assert found.dtype == expected.dtype.newbyteorder("=")
        np.testing.assert_array_equal(found, expected)
