"""Small arrays in vector registers, and functions that straight-line code shares."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
import functrans.lax as lax
import functrans.numpy as fnp
from compiler.bitwise import assert_compiled_is_reference, texts_of
from functrans.compiler.packs import PACK, packed_variables, pieces
from functrans.compiler.prepare import prepare
from functrans.core.jaxpr import Var

SHAPES = ((4,), (5,), (7,), (8,), (9,), (15,), (16,), (4, 4), (2, 8), (8, 1), (3, 5), (2, 2, 4))
DTYPES = ("float64", "float32", "float16", "complex128", "int64", "int8", "bool")


def _array(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    x: np.ndarray = rng.normal(size=shape) * 3
    if dtype == "complex128":
        x = x + 1j * rng.normal(size=shape)
    return x.astype(dtype)


@pytest.mark.parametrize("size", range(1, 17))
def test_pieces_cover_an_array_once_in_powers_of_two(size: int) -> None:
    covered = [start + lane for start, lanes in pieces(size) for lane in range(lanes)]
    assert covered == list(range(size))
    for _, lanes in pieces(size):
        assert lanes <= PACK
        assert lanes & (lanes - 1) == 0


# bits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_arithmetic_has_the_bits_of_single_elements(shape: Any, dtype: str) -> None:
    def f(x: Any, y: Any) -> Any:
        z = fnp.where(x == y, x, x * y + x)
        return z, z + z, fnp.sum(z), z.ravel()[0], z.ravel()[-1]

    assert_compiled_is_reference(f, _array(shape, dtype), _array(shape, dtype, 1))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_functions_have_the_bits_of_single_elements(shape: Any) -> None:
    def f(x: Any) -> Any:
        y = fnp.sin(x) * fnp.exp(-x * x) / (1 + fnp.tanh(x))
        return y, y.astype("float32"), fnp.abs(y) ** 1.7

    x = _array(shape)
    x.flat[0], x.flat[-1] = 1e300, np.nan  # a rare way through sine, in one lane
    assert_compiled_is_reference(f, x)


@pytest.mark.parametrize("shapes", [((4, 1), (4, 4)), ((2, 1, 4), (2, 2, 1)), ((), (5,))], ids=str)
def test_broadcast_operands(shapes: Any) -> None:
    def f(x: Any, y: Any) -> Any:
        return fnp.sin(x) * (x + y) - fnp.cos(y)

    assert_compiled_is_reference(f, *[_array(shape, seed=k) for k, shape in enumerate(shapes)])


MAPS: dict[str, Callable[[Any], Any]] = {
    "reverse": lambda x: x[::-1],
    "roll": lambda x: fnp.roll(x, 3),
    "shift": lambda x: fnp.concatenate([x[1:], fnp.zeros(1)]),
    "pad": lambda x: fnp.pad(x[2:-2], 2),
    "every_other": lambda x: fnp.repeat(x[::2], 2)[: x.shape[0]],
    "transpose": lambda x: x[:8].reshape(2, 4).T.ravel(),
    "slices": lambda x: fnp.concatenate([x[4:7], x[:3]]),
    "one_element": lambda x: fnp.broadcast_to(x[3], (6,)),
    "stack": lambda x: fnp.stack([x[k] * (k + 1) for k in range(8)]),
    "numbers": lambda x: fnp.concatenate([x[:4], np.arange(4.0)]),
}


@pytest.mark.parametrize("is_computed", [False, True])
@pytest.mark.parametrize("size", [8, 11, 16])
@pytest.mark.parametrize("name", MAPS)
def test_elements_that_are_moved_around(name: str, size: int, is_computed: bool) -> None:
    def f(x: Any) -> Any:
        y = MAPS[name](fnp.exp(x) if is_computed else x)
        z = y * y + fnp.sin(y)
        return z, z[0] * z[-1]

    def loss(x: Any) -> Any:
        return fnp.sum(f(x)[0] ** 2)

    x = _array((size,)) / 4
    assert_compiled_is_reference(f, x)
    assert_compiled_is_reference(ft.grad(loss), x)
    assert_compiled_is_reference(MAPS[name], x)


def _by_vectors(x: Any, entry: Any) -> Any:
    return x + 0.1 * fnp.sin(x[::-1]) * entry, x * 2


def _by_elements(x: Any, entry: Any) -> Any:
    numbers = [x[k] * entry + x[k - 1] for k in range(x.shape[0])]
    return fnp.stack(numbers), fnp.tanh(x)


def _rolled(x: Any, entry: Any) -> Any:
    return fnp.roll(x, 1), x * entry


def _mixed(x: Any, entry: Any) -> Any:
    return fnp.where(x[0] > entry, x * x[1], fnp.cos(x)), x[2]


STEPS = (_by_vectors, _by_elements, _rolled, _mixed)


@pytest.mark.parametrize("size", [4, 7, 8, 13, 16])
@pytest.mark.parametrize("step", STEPS)
def test_carried_values(step: Callable[[Any, Any], Any], size: int) -> None:
    def f(x: Any, entries: Any) -> Any:
        return lax.scan(step, x, entries)

    def loss(x: Any, entries: Any) -> Any:
        last, kept = f(x, entries)
        return fnp.sum(last * last) + fnp.sum(kept)

    x, entries = _array((size,)) / 4, _array((20,), seed=1) / 4
    assert_compiled_is_reference(f, x, entries)
    assert_compiled_is_reference(ft.grad(loss, (0, 1)), x, entries)


def test_values_that_change_places_in_a_loop() -> None:
    """All are read before any is written."""

    def f(x: Any, y: Any) -> Any:
        return lax.fori_loop(0, 5, lambda _, state: (state[1] * 1.5, fnp.sin(state[0])), (x, y))

    assert_compiled_is_reference(f, _array((10,)), _array((10,), seed=1))


def test_loops_and_branches() -> None:
    def f(x: Any) -> Any:
        y = lax.while_loop(
            lambda z: fnp.sum(z * z) < 100, lambda z: 1.5 * z + 0.1 * fnp.sin(z[::-1]), x
        )
        return lax.cond(y[0] > y[1], lambda z: fnp.exp(-z), lambda z: z[::-1] * z, y)

    assert_compiled_is_reference(f, _array((12,)))
    assert_compiled_is_reference(f, -_array((12,)))


def test_registers_are_read_in_loops_over_larger_arrays() -> None:
    def f(x: Any, table: Any) -> Any:
        y = fnp.sin(x) * 2
        return table * y + y[3], fnp.sum(table * y[::-1], axis=0)

    assert_compiled_is_reference(f, _array((8,)), _array((40, 8), seed=1))


def test_an_error_in_one_lane() -> None:
    def f(x: Any, n: Any) -> Any:
        return x**n

    x = np.arange(8)
    assert_compiled_is_reference(f, x, np.arange(8))
    assert_compiled_is_reference(f, x, np.arange(8) - 1)  # raises


# what is packed -----------------------------------------------------------------------------------


def _packed(f: Callable[..., Any], *args: Any) -> set[str]:
    """Names of the primitives whose results are packed."""
    jaxpr = prepare(ft.jit(f).jaxpr(*args))
    results = {atom for atom in jaxpr.outvars if isinstance(atom, Var)}
    packed = packed_variables(jaxpr, results)
    return {eqn.primitive.name for eqn in jaxpr.eqns if not packed.isdisjoint(eqn.outputs)}


def test_chains_from_memory_to_results_are_packed() -> None:
    assert _packed(lambda x: 2 * fnp.sin(x) + x, _array((9,))) == {"sin", "multiply", "add"}


def test_other_sizes_are_not() -> None:
    for size in (3, 17, 100):
        assert not _packed(lambda x: 2 * fnp.sin(x) + x, _array((size,)))


def test_cheap_results_of_which_elements_are_read_are_not() -> None:
    def f(x: Any) -> Any:
        y = x * 3
        return y[0] * y[1]

    assert not _packed(f, _array((8,)))
    assert _packed(lambda x: fnp.sin(x)[0] * fnp.sin(x)[1], _array((8,))) == {"sin"}


def test_cheap_results_of_single_numbers_are_not() -> None:
    def stacked(x: Any) -> Any:
        return fnp.stack([x[k] ** 2 for k in range(8)])

    assert not _packed(lambda x: stacked(x) * 2, _array((100,)))
    assert _packed(lambda x: fnp.exp(stacked(x)), _array((100,))) == {"exp"}


def test_what_is_moved_around_and_stored_is_packed() -> None:
    assert _packed(lambda x: x[::-1], _array((8,))) == {"slice"}


def test_carried_vectors_stay_in_registers() -> None:
    """The loop's body has neither loads nor stores of single numbers."""

    def f(x: Any) -> Any:
        return lax.fori_loop(0, 50, lambda _, x: x + 0.5 * x * x, x)

    (text,) = texts_of(f, _array((16,)))
    assert len(re.findall("fmul <8 x double>", text)) == 4
    assert "fmul double" not in text
    assert not re.search(r"(load|store) double %?v", text)


# code that is shared ------------------------------------------------------------------------------


def _chain(count: int, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A chain of steps that differ."""

    def f(x: Any) -> Any:
        for k in range(count):
            x = step(x * (1 + k * k / 10)) + k
        return x

    return f


@pytest.mark.parametrize("shape", [(), (3,), (8,), (16,)], ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
def test_shared_code_has_the_same_bits(shape: Any, dtype: str) -> None:
    f = _chain(20, lambda x: fnp.sin(x) * fnp.exp(-x * x) + fnp.abs(x) ** 1.3)
    x = _array(shape, dtype)
    (text,) = texts_of(f, x)
    # an exponent in 16 bits is a constant, for which there may be special code
    count = 2 if dtype == "float16" else 3
    assert len(re.findall("define internal [^@]*@each", text)) == count
    assert_compiled_is_reference(f, x)


FUNCTIONS: tuple[str, ...] = (
    *("arccosh", "arccos", "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "cos", "cosh", "exp"),
    *("exp2", "expm1", "log", "log10", "log1p", "log2", "sin", "sinh", "tan", "tanh"),
    *("arctan2", "float_power", "logaddexp", "logaddexp2", "power"),
)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_all_functions_can_be_shared(name: str, dtype: str) -> None:
    function = getattr(fnp, name)

    def f(*args: Any) -> Any:
        return [function(*[x + k for x in args]) for k in range(10)]

    x = np.array([0.2, -0.3, 1.5, 7.0, -0.0, np.inf, np.nan, 1e30], dtype)
    args = (x, x[::-1].copy())[: getattr(np, name).nin]
    (text,) = texts_of(f, *args)
    assert text.count("call <8 x ") >= 10
    assert len(re.findall("define internal [^@]*@each", text)) == 1
    assert_compiled_is_reference(f, *args)
    assert_compiled_is_reference(f, *[x[:3] for x in args])


def test_few_functions_are_written_out() -> None:
    (text,) = texts_of(_chain(8, fnp.sin), np.float64(0.5))
    assert "@each" not in text
    (text,) = texts_of(_chain(9, fnp.sin), np.float64(0.5))
    assert text.count("call double @each") == 9
    assert len(re.findall("define internal double @each", text)) == 1


def test_the_text_grows_by_a_few_lines_with_each_equation() -> None:
    """Sixteen numbers are two vectors, and a function is a call: written out it is 100 lines."""
    x = _array((16,))
    short, long = (
        sum(text.count("\n") for text in texts_of(_chain(n, fnp.cos), x)) for n in (20, 40)
    )
    assert (long - short) / 20 < 20


def test_code_for_complex_numbers_and_integers_is_not_shared() -> None:
    for x in (np.complex128(0.5 + 1j), np.float64(2.0)):
        f = _chain(12, fnp.sin if x.dtype.kind == "c" else lambda x: fnp.gcd(x.astype(int), 6))
        (text,) = texts_of(f, x)
        assert "@each" not in text
        assert_compiled_is_reference(f, x)
