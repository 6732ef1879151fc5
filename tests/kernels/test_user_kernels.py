"""``ft.kernel``: numba's functions as operations, in the interpreter and in compiled programs."""

import math
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import functrans as ft
from cases import each
from functrans.compiler.inspect import plan
from functrans.errors import NonDifferentiableError, ShapeError
from functrans.kernels import loops
from functrans.kernels.loops import Loop

DTYPES = (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip


def values(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    x = rng.integers(0, 100, shape)
    return (x % 2 == 0 if dtype == "bool" else x).astype(dtype)


def backwards(x: Any, out: Any) -> None:
    """Elements in the opposite order."""
    source, target = x.reshape(-1), out.reshape(-1)
    for i in range(source.size):
        target[i] = source[source.size - 1 - i]


@numba.njit
def scaled(x: Any, factor: float) -> Any:
    """A multiple, returned."""
    return x * factor


@numba.njit
def both(x: Any, n: int) -> Any:
    """Two results: an array and a number."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] ** n
    return x**n, total


@numba.njit(nogil=True)
def checked(x: Any, out: Any) -> None:
    """Raises for negative numbers."""
    for i in range(len(x)):
        if x[i] < 0:
            raise ValueError("a negative number")
        out[i] = math.sqrt(x[i])


root = ft.kernel(checked, lambda x: x, jvp=lambda p, t: t[0] / (2 * root(p[0])))


# values -------------------------------------------------------------------------------------------


@each("dtype", DTYPES)
@each("shape", [(7,), (2, 3), (2, 1, 4), (0,), (3, 0)])
def test_arrays_of_all_types(rng: np.random.Generator, dtype: str, shape: tuple[int, ...]) -> None:
    turned = ft.kernel(backwards, lambda x: x)
    x = values(rng, shape, dtype)
    expected = x.ravel()[::-1].reshape(shape)
    for found in (turned(x), ft.jit(turned)(x)):
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)


@each("dtype", DTYPES)
def test_numbers_of_all_types(dtype: str) -> None:
    def fill(x: Any, out: Any) -> None:
        for i in range(len(out)):
            out[i] = x

    filled = ft.kernel(fill, lambda x: ft.ShapeDtypeStruct((3,), x.dtype))
    x = np.dtype(dtype).type(1)
    for found in (filled(x), ft.jit(filled)(x)):
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.full(3, x))


@each("order", ["F", "negative", "sliced", "unaligned", "swapped", "read-only"])
def test_arrays_that_lie_in_another_way(rng: np.random.Generator, order: str) -> None:
    x = rng.standard_normal((4, 6))
    given = {
        "F": np.asfortranarray(x),
        "negative": x[::-1, ::-1],
        "sliced": np.repeat(x, 2, axis=1)[:, ::2],
        "unaligned": np.frombuffer(b"\0" + x.tobytes(), np.uint8)[1:]
        .view(np.float64)
        .reshape(4, 6),
        "swapped": x.astype(">f8"),
        "read-only": x.copy(),
    }[order]
    given.flags.writeable = False
    turned = ft.kernel(backwards, lambda x: ft.ShapeDtypeStruct(x.shape, np.float64))
    expected = np.asarray(given, float).ravel()[::-1].reshape(4, 6)
    for found in (turned(given), ft.jit(turned)(given)):
        np.testing.assert_array_equal(found, expected)


def test_python_numbers_are_arguments() -> None:
    f = ft.kernel(scaled, lambda x, factor: x)
    x = np.arange(3.0)
    for found in (f(x, 2.5), ft.jit(f)(x, 2.5), ft.jit(lambda x: f(x, 2.5))(x)):
        np.testing.assert_array_equal(found, [0.0, 2.5, 5.0])
    assert ft.jit(ft.kernel(lambda a, b: a + b, lambda a, b: a))(1, 2) == 3


def test_several_results() -> None:
    f = ft.kernel(both, lambda x, n: (x, ft.ShapeDtypeStruct((), x.dtype)))
    for run in (f, ft.jit(f)):
        powers, total = run(np.arange(4.0), 2)
        np.testing.assert_array_equal(powers, [0.0, 1.0, 4.0, 9.0])
        assert total == 14.0
    named = ft.kernel(both, lambda x, n: {"a": x, "b": ft.ShapeDtypeStruct((), x.dtype)})
    assert ft.jit(named)(np.arange(4.0), 2)["b"] == 14.0


def test_results_that_are_not_contiguous_are_copied() -> None:
    f = ft.kernel(lambda x: x.T, lambda x: ft.ShapeDtypeStruct(x.shape[::-1], x.dtype))
    x = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(f(x), x.T)
    np.testing.assert_array_equal(ft.jit(f)(x), x.T)


def test_results_are_zeros_before() -> None:
    def histogram(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[int(x[i])] += 1

    counts = ft.kernel(histogram, ft.ShapeDtypeStruct((5,), np.int64))
    x = np.array([0.5, 3.2, 3.9, 1.0])
    for run in (counts, ft.jit(counts)):
        for _ in range(3):
            np.testing.assert_array_equal(run(x), [1, 1, 0, 2, 0])


def test_a_decorator() -> None:
    @ft.kernel(out_like=lambda x: x)
    def doubled(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = 2 * x[i]

    assert doubled(np.arange(3.0)).tolist() == [0.0, 2.0, 4.0]
    assert "kernel(doubled)" in repr(doubled)


# programs -----------------------------------------------------------------------------------------


def test_a_program_is_one_native_part() -> None:
    turned = ft.kernel(backwards, lambda x: x)
    jaxpr = ft.jit(lambda x: turned(x + 1) * 2).jaxpr(np.arange(3.0))
    assert "loop=backwards" in str(jaxpr)
    text = str(plan(jaxpr))
    assert "routine kernel" in text
    assert "NumPy" not in text


def test_in_loops_and_branches(rng: np.random.Generator) -> None:
    turned = ft.kernel(backwards, lambda x: x)
    x = rng.standard_normal(5)

    def scanned(x: Any) -> Any:
        return ft.lax.scan(lambda c, y: (turned(c) + y, c), x, np.arange(3.0))

    def until(x: Any) -> Any:
        return ft.lax.while_loop(lambda c: np.sum(c) < 100, lambda c: turned(c) + np.arange(5), x)

    def branched(x: Any) -> Any:
        return ft.lax.cond(x[0] > 0, turned, lambda x: -x, x)

    for f in (scanned, until, branched):
        for found, expected in zip(ft.tree.leaves(ft.jit(f)(x)), ft.tree.leaves(f(x)), strict=True):
            np.testing.assert_array_equal(found, expected)


def _summed(x: Any, y: Any, out: Any) -> None:
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[i] += x[i, j] * y[j]


products = ft.kernel(_summed, lambda x, y: ft.ShapeDtypeStruct(x.shape[:1], x.dtype))


@each("in_axes", [(0, None), (None, 0), (0, 0), (2, 1), (1, None), (-1, 0)])
@each("runs_jitted", [False, True])
def test_vmap(rng: np.random.Generator, in_axes: Any, runs_jitted: bool) -> None:
    shapes = [(3, 4), (4,)]
    x, y = (
        rng.standard_normal(shape if axis is None else np.insert(shape, axis % (len(shape) + 1), 5))
        for shape, axis in zip(shapes, in_axes, strict=True)
    )
    batched = ft.vmap(products, in_axes)
    found = (ft.jit(batched) if runs_jitted else batched)(x, y)
    expected = ft.vmap(lambda x, y: x @ y, in_axes)(x, y)
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-14)


@each("runs_jitted", [False, True])
def test_nested_vmap(rng: np.random.Generator, runs_jitted: bool) -> None:
    x, y = rng.standard_normal((2, 3, 4)), rng.standard_normal((5, 4))
    batched = ft.vmap(ft.vmap(products, (None, 0)), (0, None))
    found = (ft.jit(batched) if runs_jitted else batched)(x, y)
    np.testing.assert_allclose(found, np.einsum("aij,bj->abi", x, y), rtol=1e-14, atol=1e-14)
    empty = (ft.jit(batched) if runs_jitted else batched)(x[:0], y)
    assert empty.shape == (0, 5, 3)


def test_a_batch_on_threads_is_the_same(rng: np.random.Generator) -> None:
    x = rng.random((300, 200))
    assert "on_threads=True" in str(ft.make_jaxpr(ft.vmap(root))(x))
    batched = ft.jit(ft.vmap(root))
    before = ft.get_num_threads()
    try:
        for count in (1, 2, 5):
            ft.set_num_threads(count)
            np.testing.assert_array_equal(batched(x), np.sqrt(x))
    finally:
        ft.set_num_threads(before)


# derivatives --------------------------------------------------------------------------------------


def test_one_rule_serves_all_modes(rng: np.random.Generator) -> None:
    x = rng.random(5) + 0.5
    ft.check_grads(root, (x,), order=2)
    np.testing.assert_allclose(ft.jit(ft.jacrev(root))(x), np.diag(0.5 / np.sqrt(x)), rtol=1e-14)
    hessian = ft.jit(ft.hessian(lambda x: np.sum(root(x))))(x)
    np.testing.assert_allclose(hessian, np.diag(-0.25 * x**-1.5), rtol=1e-13)


def test_a_vjp_of_a_kernel_is_a_kernel(rng: np.random.Generator) -> None:
    @ft.kernel(out_like=lambda x, outs, ct: x)
    def pulled(x: Any, outs: Any, ct: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = ct[i] / (2 * outs[i])

    f = ft.kernel(checked, lambda x: x, vjp=lambda p, outs, ct: (pulled(p[0], outs, ct),))
    x = rng.random(5) + 0.5
    for run in (ft.grad, lambda f: ft.jit(ft.grad(f))):
        np.testing.assert_allclose(run(lambda x: np.sum(f(x)))(x), 0.5 / np.sqrt(x), rtol=1e-14)
    batch = rng.random((4, 5)) + 0.5
    slopes = ft.jit(ft.vmap(ft.grad(lambda x: np.sum(f(x)))))(batch)
    np.testing.assert_allclose(slopes, 0.5 / np.sqrt(batch), rtol=1e-14)


def test_kernels_as_rules_for_both_modes(rng: np.random.Generator) -> None:
    @ft.kernel(out_like=lambda x, d: x)
    def slope(x: Any, d: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = 2 * x[i] * d[i]

    def squared(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = x[i] * x[i]

    def push(p: Any, t: Any) -> Any:
        return slope(p[0], t[0])

    def pull(p: Any, outs: object, ct: Any) -> Any:
        return (slope(p[0], ct),)

    both_modes = ft.kernel(squared, lambda x: x, jvp=push, vjp=pull)
    x, t = rng.standard_normal((2, 5))
    ft.check_grads(both_modes, (x,), order=1)
    forward = ft.jit(lambda x, t: ft.jvp(both_modes, (x,), (t,)))
    np.testing.assert_allclose(forward(x, t)[1], 2 * x * t)
    assert "NumPy" not in str(plan(forward.jaxpr(x, t)))
    np.testing.assert_allclose(ft.jit(ft.jacrev(both_modes))(x), np.diag(2 * x))
    pulled_only = ft.kernel(squared, lambda x: x, vjp=pull)
    with pytest.raises(NonDifferentiableError, match=r"kernel slope cannot be transposed.*both"):
        ft.jvp(pulled_only, (x,), (t,))
    pushed_only = ft.kernel(squared, lambda x: x, jvp=push)
    with pytest.raises(NonDifferentiableError, match=r"kernel slope cannot be transposed.*both"):
        ft.grad(lambda x: np.sum(pushed_only(x)))(x)


def test_without_a_rule_there_is_no_derivative() -> None:
    turned = ft.kernel(backwards, lambda x: x)
    with pytest.raises(NonDifferentiableError, match=r"kernel backwards has no derivative.*jvp="):
        ft.grad(lambda x: np.sum(turned(x)))(np.arange(3.0))
    assert (
        ft.grad(lambda x: np.sum(turned(ft.stop_gradient(x)) * x))(np.ones(3)).tolist() == [1.0] * 3
    )


def test_integers_have_no_derivative_and_need_no_rule() -> None:
    def largest(x: Any) -> int:
        at = 0
        for i in range(len(x)):
            if x[i] > x[at]:
                at = i
        return at

    place = ft.kernel(largest, ft.ShapeDtypeStruct((), np.int64))
    slope = ft.grad(lambda x: x[place(x)] ** 2)
    assert slope(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 6.0, 0.0]
    assert ft.jit(slope)(np.array([1.0, 3.0, 2.0])).tolist() == [0.0, 6.0, 0.0]


# errors -------------------------------------------------------------------------------------------


def test_exceptions_come_out_as_they_are(rng: np.random.Generator) -> None:
    x = np.array([1.0, -1.0])
    wide = rng.random((300, 200))
    wide[77, 3] = -1
    runs = (
        lambda: root(x),
        lambda: ft.jit(root)(x),
        lambda: ft.vmap(root)(np.stack([-x, x])),
        lambda: ft.jit(ft.vmap(root))(np.stack([-x, x])),
        lambda: ft.jit(ft.vmap(root))(wide),
        lambda: ft.jit(lambda x: ft.lax.scan(lambda c, _: (root(c - 0.5), None), x, None, 3))(x),
    )
    for run in runs:
        with pytest.raises(ValueError, match="a negative number") as caught:
            run()
        assert caught.value.args == ("a negative number",)
        assert any("in checked, compiled by numba" in note for note in caught.value.__notes__)


def test_exceptions_may_have_values() -> None:
    def refused(x: Any) -> Any:
        if x[0] > 2:
            raise ValueError("too large:", x[0], len(x))
        return x

    f = ft.kernel(refused, lambda x: x)
    for run in (f, ft.jit(f)):
        with pytest.raises(ValueError, match="too large") as caught:
            run(np.array([3.0, 1.0]))
        assert caught.value.args == ("too large:", 3.0, 2)
        assert run(np.ones(2)).tolist() == [1.0, 1.0]


def test_division_by_zero_is_pythons() -> None:
    f = ft.kernel(lambda x: 1.0 / x, ft.ShapeDtypeStruct((), float))
    for run in (f, ft.jit(f)):
        assert run(4.0) == 0.25
        with pytest.raises(ZeroDivisionError):
            run(0.0)


def test_arguments_cannot_be_written_to() -> None:
    def spoil(x: Any, out: Any) -> None:
        x[0] = 1.0
        out[0] = x[0]

    with pytest.raises(TypeError, match=r"kernel spoil: numba cannot compile it.*readonly"):
        ft.kernel(spoil, lambda x: x)(np.zeros(2))


def test_bad_input_is_named() -> None:
    x = np.ones(3)
    same = lambda x: x  # noqa: E731  # as users write it
    cases: list[tuple[Any, type[Exception], str]] = [
        (lambda: ft.kernel(3, same), TypeError, "kernel"),
        (lambda: ft.kernel(scaled), TypeError, "out_like is missing"),
        (lambda: ft.kernel(scaled, same, jvp=1), TypeError, "kernel scaled: jvp"),
        (lambda: ft.kernel(backwards, same)(x=x), TypeError, "positional arguments, got x"),
        (
            lambda: ft.kernel(backwards, same)([x, x]),
            TypeError,
            r"args\[0\] is \[\*, \*\]",
        ),
        (lambda: ft.kernel(backwards, lambda *a: x)(x, x, x), TypeError, "called with 3 arguments"),
        (lambda: ft.kernel(lambda *a: a, same)(x), TypeError, "positional parameters only"),
        (lambda: ft.kernel(lambda x: x.sum(), same)(x), ShapeError, "result 0 is float64"),
        (lambda: ft.kernel(lambda x: x > 0, same)(x), TypeError, "result 0 is .*bool"),
        (lambda: ft.kernel(lambda x: (x, x), same)(x), TypeError, "returns 2 results"),
        (lambda: ft.kernel(lambda x, out: x, same)(x), TypeError, "return nothing"),
        (
            lambda: ft.kernel(scaled, lambda x, f: ft.ShapeDtypeStruct((2,), x.dtype))(x, 1.0),
            ShapeError,
            "kernel scaled.*shape",
        ),
        (lambda: ft.kernel(backwards, same)(np.float16(x)), TypeError, "cannot compile.*float16"),
        (lambda: ft.kernel(backwards, same)(np.longdouble(x)), TypeError, "longdouble|float128"),
        (lambda: ft.kernel(backwards, same)(np.array(["a"])), Exception, "dtype"),
        (lambda: ft.kernel(backwards, lambda x: "f8")(x), TypeError, "out_like is a str"),
    ]
    for run, kind, match in cases:
        with pytest.raises(kind, match=match):
            run()


# what is kept -------------------------------------------------------------------------------------


def outputs_of_two_runs(code: str, tmp_path: Path) -> list[str]:
    """What a script prints in two processes, one after the other, with a cache of their own."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(code))
    environment = {"FUNCTRANS_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, str(script)]
    return [
        subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        for _ in range(2)
    ]


def test_another_process_does_not_compile(tmp_path: Path) -> None:
    code = """
        import sys
        import numpy as np, functrans as ft
        from functrans.kernels import loops

        def cumulated(x):
            out = np.zeros(len(x))
            for i in range(1, len(x)):
                if x[i] < 0:
                    raise ValueError("negative")
                out[i] = out[i - 1] + x[i]
            return out

        made = []
        make = loops._make
        loops._make = lambda *args: made.append(args[1]) or make(*args)
        f = ft.kernel(cumulated, lambda x: x)
        g = ft.jit(lambda x: f(x) * 2)
        print(g(np.arange(4.0)).tolist(), f(np.arange(4.0)).tolist(), made)
        try:
            g(-np.arange(4.0))
        except ValueError as error:
            print(error)
    """
    runs = [out.splitlines() for out in outputs_of_two_runs(code, tmp_path)]
    expected = "[0.0, 2.0, 6.0, 12.0] [0.0, 1.0, 3.0, 6.0]"
    assert runs[0] == [f"{expected} ['cumulated']", "negative"]
    assert runs[1] == [f"{expected} []", "negative"]


def test_code_on_disk_that_allocates_nothing_needs_no_numba(tmp_path: Path) -> None:
    code = """
        import sys
        import numpy as np, functrans as ft

        def doubled(x, out):
            for i in range(len(x)):
                out[i] = 2 * x[i]

        f = ft.kernel(doubled, lambda x: x)
        x = np.arange(3.0)
        print(f(x).tolist(), ft.jit(f)(x).tolist(), "numba" in sys.modules)
    """
    runs = [out.split("] ") for out in outputs_of_two_runs(code, tmp_path)]
    expected = ["[0.0, 2.0, 4.0", "[0.0, 2.0, 4.0"]
    assert runs[0] == [*expected, "True\n"]
    assert runs[1] == [*expected, "False\n"]


def test_code_with_objects_of_python_is_not_kept() -> None:
    def printed(x: Any) -> Any:
        with numba.objmode(y="float64[:]"):
            y = np.sort(x)
        return y  # noqa: RET504  # numba needs the name

    f = ft.kernel(printed, lambda x: x)
    x = np.array([2.0, 1.0])
    assert f(x).tolist() == [1.0, 2.0]
    (loop,) = [loop for loop in loops._loops.values() if loop.label == "printed"]
    assert isinstance(loop, Loop)
    assert not loop.is_portable
