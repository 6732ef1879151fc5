"""``jit`` as its users see it: plans, code, reports, donated arguments, errors, caches."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import functrans as ft
from compiler.native_programs import STEPS, Program
from functrans import lax
from functrans.compiler.compiled import predicted_compile_s
from functrans.compiler.cost import compile_seconds
from functrans.compiler.prepare import prepare
from functrans.compiler.programs import write_program
from functrans.control.native import as_compiled

X = np.linspace(0.1, 1.0, 1000)
ROOT = Path(__file__).parent.parent


def energy(x: Any, scale: Any = 2.0) -> Any:
    return np.sum(np.sin(x) * scale + x * x)


def run(code: str, *flags: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own."""
    return subprocess.run(
        [sys.executable, *flags, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
    )


# looking inside ----------------------------------------------------------------------------------


def test_plan_names_loops_routines_and_what_is_fused() -> None:
    def f(x: Any, a: Any) -> Any:
        y = np.sin(x) * a
        return np.sum(y), np.linalg.inv(np.outer(x[:3], x[:3]) + np.eye(3))

    text = str(ft.jit(f).plan(X, 2.0))
    lines = text.splitlines()
    # the identity matrix is a constant, and so an argument of the program
    assert lines[0] == "plan of f: f64[3,3], f64[1000], f64*[] -> f64[], f64[3,3]"
    assert any(
        ". loops 1000, the last one over lanes: stores " in line and "in registers" in line
        for line in lines
    )
    assert any("routine inv" in line for line in lines)
    assert "temporary memory: " in lines[-1]
    assert "bytes; " in lines[-1]
    assert text == str(ft.jit(f).plan(X, 2.0))
    assert repr(ft.jit(f).plan(X, 2.0)) == text


def test_plan_nests_the_plans_of_control_flow() -> None:
    def f(x: Any) -> Any:
        y, _ = lax.scan(lambda c, _: (lax.cond(c[0] > 0, np.sin, np.cos, c), None), x, None, 3)
        return lax.while_loop(lambda v: np.sum(v) > 1.0, lambda v: v * 0.5, y)

    lines = str(ft.jit(f).plan(X)).splitlines()
    scan = next(i for i, line in enumerate(lines) if "scan[" in line)
    assert "length=3" in lines[scan]
    assert lines[scan + 1].strip().startswith("jaxpr of ")
    branches = next(line for line in lines if "branches[0] of" in line)
    assert len(branches) - len(branches.lstrip()) > 8
    assert any("loop without a known end" in line for line in lines)
    assert any("cond_jaxpr of" in line for line in lines)


def test_plan_shows_numpy_calls_with_reason_and_line() -> None:
    def f(x: Any) -> Any:
        y = ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), np.float64), x * 2.0)
        return y + 1.0

    plan = ft.jit(f).plan(np.ones(3))
    assert len(plan.host_calls) == 1
    assert plan.host_calls[0].startswith("pure_callback has no native form at test_jit_native.py:")
    numbered = [line for line in str(plan).splitlines() if line[0].isdigit()]
    assert [line[:3] for line in numbered] == ["1. ", "2. ", "3. "]
    assert numbered[1].startswith("2. NumPy call: pure_callback")


def test_long_python_loops_are_planned_as_loops() -> None:
    def f(x: Any) -> Any:
        for _ in range(400):
            x = x * 1.5 - x * x
        return x

    lowered = ft.jit(f).lower(0.5)
    assert len(lowered.jaxpr.eqns) == 1200
    assert "scan" in str(lowered.plan)
    assert lowered.plan.lines < 400
    assert_allclose(lowered.compile()(0.5), f(0.5), rtol=1e-12)


def test_texts_of_a_lowered_function() -> None:
    f = ft.jit(energy)
    lowered = f.lower(X)
    assert "define i32 @program(" in lowered.llvm
    assert "program" in lowered.asm
    assert lowered.llvm == f.llvm(X)
    assert lowered.asm == f.asm(X)
    assert str(lowered.plan) == str(f.plan(X))
    assert lowered.plan.lines == lowered.llvm.count("\n")
    assert repr(lowered) == "Lowered(energy: f64[1000] -> f64[])"


def test_executable_is_native_and_of_one_kind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "cache"))
    f = ft.jit(lambda x, n: x * n + np.cos(x), static_argnums=1)
    executable = f.lower(X, 3).compile()
    assert executable.is_native
    assert not executable.was_cached
    assert_allclose(executable(X, 3), X * 3 + np.cos(X), rtol=1e-14)
    assert executable.as_text() == executable.llvm == f.llvm(X, 3)
    assert str(executable.plan) == str(f.plan(X, 3))
    assert "program" in executable.asm
    with pytest.raises(TypeError, match="static"):
        executable(X, 4)
    with pytest.raises(TypeError, match=r"f64\[3\].*f64\[1000\]"):
        executable(X[:3], 3)
    assert_allclose(ft.grad(lambda x: np.sum(executable(x, 3)))(X), 3 - np.sin(X))
    assert ft.jit(lambda x, n: x * n + np.cos(x), static_argnums=1).lower(X, 3).compile().was_cached


def test_captured_arrays_are_read_by_an_executable_at_every_call() -> None:
    w = np.ones(3)
    executable = ft.jit(lambda x: x * w).lower(np.ones(3)).compile()
    assert_array_equal(executable(np.ones(3)), np.ones(3))
    w[:] = 2.0
    assert_array_equal(executable(np.ones(3)), np.full(3, 2.0))


# why it was staged again -------------------------------------------------------------------------


def test_explain_says_what_differed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "cache"))

    @ft.jit
    def f(params: Any, x: Any) -> Any:
        return params["w"] * x

    assert len(f.explain()) == 0
    f({"w": np.ones(3)}, 1.0)
    f({"w": np.ones(4)}, 1.0)
    f({"w": np.ones(4)}, 1.0)
    f({"w": np.ones(4)}, np.float32(1.0))
    f({"w": np.ones(4), "b": 1}, 1.0)
    with ft.config(safe_where=False):
        f({"w": np.ones(3)}, 1.0)
    first, second, third, fourth, fifth = reports = f.explain()
    assert first.nearest is None
    assert dict(first.arguments) == {"params['w']": "f64[3]", "x": "float"}
    assert second.changes == ("params['w']: f64[3] -> f64[4]",)
    assert third.changes == ("x: float -> f32[]",)
    assert third.nearest == 1
    assert fourth.changes == ("params['b']: absent -> int",)
    assert fifth.changes == ("config(safe_where): absent -> False",)
    assert fifth.nearest == 0
    assert all(report.is_compiled and not report.host_calls for report in reports)
    assert all(report.staging_s > 0 and (report.compile_s or 0) > 0 for report in reports)
    assert not first.was_cached
    text = str(reports)
    assert text.startswith("jit of f: 5 programs\n1. params['w']: f64[3], x: float")
    assert "unlike program 1: params['w']: f64[3] -> f64[4]" in text
    assert repr(reports) == text


def test_explain_names_static_values_axes_and_numpy_calls() -> None:
    @ft.jit
    def plain(x: Any) -> Any:
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((), np.float64), x)

    plain(np.float64(1.0))
    assert "pure_callback" in plain.explain()[0].host_calls[0]

    f = ft.jit(lambda x, mode: x, static_argnames="mode")
    f(1.0, mode="a")
    f(1.0, mode="b")
    assert f.explain()[1].changes == ("mode: static 'a' -> static 'b'",)

    g = ft.jit(lambda x: lax.psum(x, "i"))
    ft.vmap(g, axis_name="i")(np.ones(3))
    report = g.explain()[0]
    assert report.arguments["axis 'i'"] == "3"
    assert report.reason == "not run on its own so far"


def test_explain_names_arguments_that_are_passed_by_keyword_now() -> None:
    f = ft.jit(lambda x, n: x * n)
    f(np.ones(3), 2.0)
    f(x=np.ones(3), n=2.0)
    f(np.ones(3), n=2.0)
    reports = f.explain()
    assert [report.changes for report in reports] == [
        (),
        ("passed by keyword: none -> n, x",),
        ("passed by keyword: n, x -> n",),
    ]
    assert "another way to pass the same arguments" in str(reports[1])


def test_explain_names_another_container() -> None:
    f = ft.jit(lambda p: p[0] + p[1])
    f((np.ones(3), np.ones(3)))
    f([np.ones(3), np.ones(3)])
    (change,) = f.explain()[1].changes
    assert change == "containers: (((*, *),), {}) -> (([*, *],), {})"
    assert "another structure of the arguments" in str(f.explain())


def test_explain_counts_equal_numpy_calls() -> None:
    def f(x: Any) -> Any:
        for _ in range(5):
            x = ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), np.float64), x)
        return x

    jitted = ft.jit(f)
    jitted(np.ones(3))
    report = jitted.explain()[0]
    assert len(report.host_calls) == 5
    (line,) = [line for line in str(report).splitlines() if "NumPy call" in line]
    assert line.endswith("(5 times)")


def test_explain_says_why_a_program_is_interpreted() -> None:
    f = ft.jit(lambda x: x + 1.0)
    with ft.config(native=False):
        f(1.0)
        assert f.explain()[0].reason == "interpreted, since config(native=False) says so"
    with ft.config(compile_budget_s=0.0):
        f(1.0)
        assert "compile_budget_s is 0" in f.explain()[1].reason
        assert not f.explain()[1].is_compiled


def test_a_report_keeps_no_program_alive() -> None:
    f = ft.jit(lambda x: x + 1.0)
    f(1.0)
    report = f.explain()
    f.clear_cache()
    assert len(report) == 1
    assert len(f.explain()) == 0


# donated arguments -------------------------------------------------------------------------------


def taken(f: Any, args: Any, donate: Any = None, **options: Any) -> list[int | None]:
    """Call a function twice with copies of arguments that are given away; check its results.

    Returns:
      Per result, the number of the argument that became it.
    """
    donate = tuple(range(len(args))) if donate is None else donate
    want = f(*args)
    jitted = ft.jit(f, donate_argnums=donate, **options)
    owners: list[int | None] = []
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        for _ in range(3):  # the first call compiles, later ones take the shortest way
            mine = [np.array(a) if isinstance(a, np.ndarray) else a for a in args]
            found = jitted(*mine)
            found, expected = (
                list(r) if isinstance(r, (tuple, list)) else [r] for r in (found, want)
            )
            for one, other in zip(found, expected, strict=True):
                assert_allclose(one, other, rtol=1e-12, atol=1e-13)
            for i, (array, before) in enumerate(zip(mine, args, strict=True)):
                if i not in donate:
                    assert_array_equal(array, before)
            owners = [
                next((i for i, array in enumerate(mine) if array is one), None) for one in found
            ]
            pairs = [(a, b) for a in found for b in found if a is not b]
            assert not any(np.shares_memory(a, b) for a, b in pairs)
    return owners


M = np.random.default_rng(0).uniform(0.5, 1.5, (40, 40))
Y = X[::-1].copy()
ROWS = np.arange(1000.0).reshape(100, 10)


USABLE = {
    "elementwise": (lambda x, y: x + 0.1 * y, (X, Y), [0]),
    "two results": (lambda x, y: (x + y, x - y), (X, Y), [0, 1]),
    "after a reduction": (lambda x: x - np.mean(x), (X,), [0]),
    "beside a reduction": (lambda x: (2.0 * x, np.sum(x * x)), (X,), [0, None]),
    "after two reductions": (lambda x: x / np.sum(np.exp(x)) * np.max(x), (X,), [0]),
    "unchanged": (lambda x: x, (X,), [0]),
    "twice": (lambda x: (x, x + 1.0), (X,), [0, None]),
    "exchanged": (lambda x, y: (y, x), (X, Y), [0, 1]),
    "short": (lambda x: np.sin(x) + x[::-1], (X[:7].copy(),), [0]),
    "short rows": (lambda r: r + np.sum(r, axis=1, keepdims=True), (ROWS,), [0]),
    "loop": (lambda x: lax.fori_loop(0, 5, lambda _, c: c * 0.5 + 1.0, x), (X,), [0]),
    "window": (lambda x, i: lax.dynamic_update_slice(x, np.ones(3), (i,)), (X, 5), [0]),
    "integers": (lambda n: n * n, (np.arange(100),), [0]),
    "complex": (lambda z: z * z.conj(), (X + 1j * Y,), [0]),
    "one of two": (lambda x, y: x * 2.0 + y[::-1], (X, Y), [0]),
}

NOT_USABLE = {
    "reversed": (lambda x: x[::-1] * 2.0, (X,)),
    "rolled": (lambda x: np.concatenate([x[1:], x[:1]]), (X,)),
    "transposed": (lambda m: m.T + 1.0, (M,)),
    "symmetric": (lambda m: m + m.T, (M,)),
    "product": (lambda m: m @ m, (M,)),
    "cumulative": (np.cumsum, (X,)),
    "sorted": (np.sort, (Y,)),
    "read by a later loop": (lambda x: (x * 2.0, np.cumsum(np.flip(x) ** 2)), (X,)),
    "rows of another shape": (lambda r: np.sum(r.reshape(10, 100), 0)[:, None] * r, (ROWS,)),
    "read in a loop": (lambda x: lax.fori_loop(0, 5, lambda _, c: c * 0.5 + x, x), (X,)),
    "reversed in a loop": (lambda x: lax.fori_loop(0, 5, lambda _, c: c[::-1] + 1.0, x), (X,)),
    "stencil": (lambda x: np.concatenate([x[:1], (x[:-2] + x[2:]) / 2, x[-1:]]), (X,)),
}


@pytest.mark.parametrize("case", USABLE)
def test_results_take_over_donated_arguments(case: str) -> None:
    f, args, owners = USABLE[case]
    assert taken(f, args) == owners


@pytest.mark.parametrize("case", NOT_USABLE)
def test_donated_arguments_that_are_read_too_late_stay(case: str) -> None:
    f, args = NOT_USABLE[case]
    owners = taken(f, args)
    assert owners[0] is None or case == "rows of another shape"


@pytest.mark.parametrize("shape", [(1,), (3,), (30,), (64,), (65,), (40, 3), (3, 40), (2, 0)])
def test_results_are_right_whatever_is_taken_over(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).normal(size=shape)
    y = np.random.default_rng(2).normal(size=shape)
    taken(lambda x, y: (np.sin(x) + x[::-1], x * 2.0 + y, np.sum(x) * y), (x, y))
    taken(lambda x, y: (x + np.roll(y, 1), y * 2.0), (x, y))
    taken(lambda x, y: (np.cumsum(x, 0) + y, np.flip(y) * x, x - y), (x, y))
    taken(lambda x, y: (x - y, x[::-1] - y[::-1], x + 1.0), (x, y))


EXTENTS = st.sampled_from([(5,), (33,), (70,), (600,), (40, 3)])


@settings(max_examples=25)
@given(EXTENTS, EXTENTS, STEPS, st.integers(0, 255), st.integers(0, 999))
def test_random_programs_with_donated_arguments(
    first: tuple[int, ...], second: tuple[int, ...], steps: Any, wanted: int, seed: int
) -> None:
    program = Program((first, second, first), ("f8", "f8", "f8"), tuple(steps), wanted)

    def f(*args: Any) -> Any:
        made = program(*args)
        u, v, w = args
        kept = [r for r in made if r.dtype == np.float64 and r.shape == u.shape]
        total = sum(np.sum(np.tanh(np.abs(r).astype(float))) for r in made if r.size)
        return [*made, u * total + w, v + total, w - (kept[-1] if kept else u)]

    args = program.point(seed)
    want = ft.jit(f)(*args)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        found = ft.jit(f, donate_argnums=(0, 1, 2))(*(a.copy() for a in args))
    for one, other in zip(found, want, strict=True):
        assert_array_equal(one, other)


def test_a_donation_that_is_of_no_use_warns() -> None:
    with pytest.warns(UserWarning, match=r"donated buffers were not usable: f64\[3\] \(no result"):
        assert ft.jit(np.sum, donate_argnums=0)(np.ones(3)) == 3.0
    with pytest.warns(UserWarning, match=r"f64\[100\] \(it is still read"):
        ft.jit(lambda x: x[::-1] + x, donate_argnums=0)(np.ones(100))

    def host(x: Any) -> Any:
        return ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), np.float64), x) + x

    with pytest.warns(UserWarning, match="calls NumPy"):
        ft.jit(host, donate_argnums=0)(np.ones(3))


def test_donation_by_name_and_in_trees() -> None:
    def step(state: Any, gradient: Any, rate: Any) -> Any:
        return {k: v - rate * gradient[k] for k, v in state.items()}

    state = {"w": np.ones((3, 3)), "b": np.zeros(3)}
    kept = {"w": np.ones((3, 3)), "b": np.ones(3)}
    for f in (
        ft.jit(step, donate_argnames="state"),
        ft.jit(step, donate_argnums=0),
        ft.jit(step, donate_argnums=-3),
    ):
        new = f(state, kept, 0.5)
        assert new["w"] is state["w"]
        assert new["b"] is state["b"]
        new = f(state=state, gradient=kept, rate=0.5)
        assert new["w"] is state["w"]
    assert_array_equal(kept["w"], np.ones((3, 3)))
    assert_array_equal(state["b"], np.full(3, -3.0))


def test_arrays_that_somebody_else_may_have_are_copied() -> None:
    double = ft.jit(lambda x: x * 2.0, donate_argnums=0)
    whole = np.ones(10)
    assert double(np.ones(3)) is not None
    view = double(whole[:3])
    assert_array_equal(whole, np.ones(10))
    assert not np.shares_memory(view, whole)
    frozen = np.ones(3)
    frozen.flags.writeable = False
    assert_array_equal(double(frozen), np.full(3, 2.0))
    assert_array_equal(frozen, np.ones(3))
    assert_array_equal(double(np.asfortranarray(np.ones((3, 4)))), np.full((3, 4), 2.0))
    assert double([1.0, 2.0][0]) == 2.0


def test_an_array_given_twice_is_copied() -> None:
    x = np.ones(3)
    both = ft.jit(lambda x, y: (x + y, x - y), donate_argnums=(0, 1))
    for _ in range(2):
        total, difference = both(x, x)
        assert_array_equal(total, np.full(3, 2.0))
        assert_array_equal(difference, np.zeros(3))
        assert_array_equal(x, np.ones(3))
    one = ft.jit(lambda x, y: x + y, donate_argnums=0)
    assert_array_equal(one(x, x), np.full(3, 2.0))
    assert_array_equal(x, np.ones(3))


def test_captured_arrays_are_not_given_away() -> None:
    w = np.ones(3)
    f = ft.jit(lambda x: (x + w, w * 2.0), donate_argnums=0)
    for _ in range(3):
        f(np.ones(3))
        assert_array_equal(w, np.ones(3))
    total, _ = f(w)  # the array is both
    assert_array_equal(w, np.ones(3))
    assert_array_equal(total, np.full(3, 2.0))


def test_donation_is_ignored_under_transforms_and_in_the_interpreter() -> None:
    f = ft.jit(lambda x: x * x, donate_argnums=0)
    x = np.arange(1.0, 4.0)
    assert_array_equal(ft.grad(lambda x: np.sum(f(x)))(x), 2 * x)
    assert_array_equal(ft.vmap(f)(x), x * x)
    assert_array_equal(ft.jit(lambda x: f(x) + x)(x), x * x + x)
    out, pullback = ft.vjp(f, x)
    assert_array_equal(pullback(np.ones(3))[0], 2 * np.arange(1.0, 4.0))
    assert_array_equal(x, np.arange(1.0, 4.0))
    with ft.config(native=False):
        assert_array_equal(f(x), np.arange(1.0, 4.0) ** 2)
    assert_array_equal(f(x.copy()), x * x)
    assert_array_equal(out, np.arange(1.0, 4.0) ** 2)


def test_the_error_of_a_call_with_donated_arguments_is_its_own() -> None:
    def f(x: Any, i: Any) -> Any:
        return x + 1.0, x[i]

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers")
        jitted = ft.jit(f, donate_argnums=0)
        jitted(np.arange(100.0), np.array([3]))
        for _ in range(2):
            with pytest.raises(IndexError, match="out of bounds"):
                jitted(np.arange(100.0), np.array([100]))
        assert_array_equal(jitted(np.arange(100.0), np.array([3]))[1], [3.0])


def test_donated_and_static_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="argument 0 is static"):
        ft.jit(lambda x: x, static_argnums=0, donate_argnums=0)
    with pytest.raises(ValueError, match="donate_argnames names 'y'"):
        ft.jit(lambda x: x, donate_argnames="y")
    with pytest.raises(ValueError, match="donate_argnums names argument 1"):
        ft.jit(lambda x: x, donate_argnums=1)
    with pytest.raises(TypeError, match="donate_argnames must be a str"):
        ft.jit(lambda x: x, donate_argnames=3)


def test_donation_in_an_executable() -> None:
    f = ft.jit(lambda x, y: x + y, donate_argnums=0).lower(X, Y).compile()
    x = X.copy()
    assert f(x, Y) is x
    assert_allclose(x, X + Y)


# caches and threads ------------------------------------------------------------------------------


def test_caches_are_cleared_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "cache"))
    gc.collect()
    ft.clear_caches()
    f = ft.jit(energy)
    f(X)
    f(X[:10])
    with ft.config(native=False):
        f(X)
    kept = ft.cache_statistics()
    assert (kept.programs, kept.compiled) == (3, 2)
    assert kept.functions >= 1
    assert kept.directory == str(tmp_path / "cache")
    assert kept.entries > 0
    assert kept.size_bytes > 0
    assert kept.misses > 0
    ft.clear_caches()
    after = ft.cache_statistics()
    assert (after.programs, after.compiled) == (0, 0)
    assert after.entries == kept.entries
    assert f.cache_size == 0
    assert f(X) == energy(X) or np.isclose(f(X), energy(X))
    assert f.explain()[0].was_cached
    assert ft.cache_statistics().hits > kept.hits
    ft.clear_caches(disk=True)
    assert ft.cache_statistics().entries == 0
    assert_allclose(f(X), energy(X))


def test_jitted_functions_are_counted_while_they_live() -> None:
    gc.collect()
    before = ft.cache_statistics().functions
    f = ft.jit(energy)
    assert ft.cache_statistics().functions == before + 1
    del f
    assert ft.cache_statistics().functions == before


def test_number_of_threads_is_public() -> None:
    before = ft.get_num_threads()
    try:
        ft.set_num_threads(2)
        assert ft.get_num_threads() == 2
    finally:
        ft.set_num_threads(before)


def test_public_names_are_imported_when_they_are_used() -> None:
    done = run(
        """
        import sys
        import functrans as ft
        own = {name for name in sys.modules if name.partition(".")[0] == "functrans"}
        assert own == {"functrans", "functrans.limits", "functrans.namespaces"}, own
        heavy = ("functrans.compiler", "functrans.control", "llvmlite", "numba", "scipy")
        assert not set(heavy) & set(sys.modules), set(heavy) & set(sys.modules)
        ft.get_num_threads()
        assert "llvmlite" not in sys.modules and "functrans.control" not in sys.modules
        for name in ft.__all__:
            getattr(ft, name)
        """
    )
    assert done.returncode == 0, done.stderr


def test_methods_of_tracers_may_be_looked_up_by_two_threads_at_once() -> None:
    # A method that is looked up before the others are there is called after them, as the second of
    # two threads calls it.
    done = run(
        """
        import numpy as np
        import functrans as ft
        from functrans.core.dispatch import Tracer
        early = {name: getattr(Tracer, name) for name in ("__array_ufunc__", "__array_function__")}
        load = Tracer.__getattr__
        def f(x):
            y = np.sin(x)
            assert "__getattr__" not in vars(Tracer)
            total = early["__array_function__"](x, np.sum, (Tracer,), (y,), {})
            return early["__array_ufunc__"](x, np.exp, "__call__", total) * load(x, "size")
        assert ft.grad(f)(np.zeros(2)).tolist() == [2.0, 2.0]
        """
    )
    assert done.returncode == 0, done.stderr


# the first call ----------------------------------------------------------------------------------


def test_a_program_beyond_the_budget_is_interpreted_until_that_took_as_long() -> None:
    f = ft.jit(lambda x: np.sum(np.sin(x) * x))
    with ft.config(compile_budget_s=0.0):
        assert_allclose(f(X), np.sum(np.sin(X) * X))
        assert not f.explain()[0].is_compiled
        for _ in range(200_000):
            f(X)
            if f.explain()[0].is_compiled:
                break
        report = f.explain()[0]
        assert report.is_compiled
        assert_allclose(f(X), np.sum(np.sin(X) * X))
    assert f.cache_size == 1


def _mixed(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    operations = (
        lambda a, b: a * b,
        lambda a, b: a + b,
        lambda a, b: a - 0.7 * b,
        lambda a, _: np.sin(a),
        lambda _, b: np.exp(-b),
    )
    plan = list(zip(rng.integers(0, 5, n), rng.integers(1, 9, n), strict=True))

    def f(x: Any, y: Any) -> Any:
        values = [x, y]
        for k, distance in plan:
            values.append(operations[k](values[-1], values[-min(distance, len(values))]))
        return values[-1]

    return f


@pytest.mark.parametrize(
    ("n", "x"),
    [(100, 1.0), (1000, 1.0), (4000, 1.0), (100, np.ones(4)), (1000, np.ones(500))],
    ids=["100", "1000", "4000", "100 short", "1000 long"],
)
def test_predicted_time_follows_the_lines_of_the_code(n: int, x: Any) -> None:
    prepared = prepare(ft.jit(_mixed(n)).jaxpr(x, x))
    text = write_program(prepared).text
    lines = text.count("\n")
    from functrans.compiler import cost

    is_optimised = lines < cost.LONG_PROGRAM_LINES  # others begin with code that is not
    per_line = cost._LINE_S if is_optimised else cost._LONG_LINE_S
    model = cost._PROGRAM_S + cost._EQUATION_S * len(prepared.eqns) + per_line * lines
    assert 0.5 < compile_seconds(prepared) / model < 2.0


def test_predicted_time_is_that_of_the_program_with_loops() -> None:
    def f(x: Any) -> Any:
        for _ in range(3000):
            x = x * 1.5 - x * x
        return x

    lowered = ft.jit(f).lower(0.5)
    whole = predicted_compile_s(lowered.jaxpr)
    rolled = predicted_compile_s(as_compiled(lowered._hoisted))
    assert rolled < whole / 10


@pytest.mark.parametrize("missing", ["llvmlite", "llvmlite,numba"])
def test_without_llvmlite_everything_is_interpreted_after_one_warning(missing: str) -> None:
    done = run(
        f"""
        import sys
        for name in {missing!r}.split(","):
            sys.modules[name] = None
        import warnings
        import numpy as np
        import functrans as ft
        from functrans.errors import CompilationError
        x = np.arange(1.0, 5.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            f = ft.jit(lambda x: np.sum(np.sin(x)), donate_argnums=0)
            for _ in range(3):
                assert np.isclose(f(x), np.sum(np.sin(x)))
            assert np.allclose(ft.jit(ft.grad(f))(x), np.cos(x))
            assert np.isclose(f.lower(x).compile()(x), np.sum(np.sin(x)))
            loop = ft.jit(lambda x: ft.lax.fori_loop(0, 3, lambda _, c: c * 2, x))
            assert loop(1.0) == 8.0
            assert np.allclose(ft.jit(np.linalg.inv)(np.eye(3)), np.eye(3))
            assert np.allclose(ft.jit(np.cumsum)(x), np.cumsum(x))
            assert not f.lower(x).compile().is_native
            assert "define" in f.llvm(x) and "loops" in str(f.plan(np.ones(1000)))
            assert f.explain()[0].reason == "interpreted, since llvmlite is missing"
            try:
                f.asm(x)
            except CompilationError as error:
                assert "pip install llvmlite" in str(error)
            else:
                raise AssertionError("assembly without LLVM")
        messages = [str(w.message) for w in caught]
        assert len(messages) == 1, messages
        assert "programs are interpreted" in messages[0] and "llvmlite" in messages[0], messages
        """
    )
    assert done.returncode == 0, done.stderr


# errors ------------------------------------------------------------------------------------------


def power(n: Any, k: Any) -> Any:
    return n**k


def solve(a: Any) -> Any:
    return np.linalg.solve(a, np.ones(3))


def too_much(x: Any) -> Any:
    return np.sum(np.sort(np.outer(x, x)))


ERRORS = {
    "gather": (
        lambda x, i: x[i],
        (np.arange(4.0), np.array([1, 9])),
        (np.arange(4.0), np.array([1, 3])),
        IndexError,
        "out of bounds for axis 0 with extent 4",
    ),
    "inv": (np.linalg.inv, (np.zeros((3, 3)),), (np.eye(3),), np.linalg.LinAlgError, "Singular"),
    "solve": (solve, (np.zeros((3, 3)),), (np.eye(3),), np.linalg.LinAlgError, "Singular"),
    "cholesky": (
        np.linalg.cholesky,
        (-np.eye(3),),
        (np.eye(3),),
        np.linalg.LinAlgError,
        "not positive definite",
    ),
    "power": (
        power,
        (np.array([2, 3]), np.array([-1, 2])),
        (np.array([2, 3]), np.array([1, 2])),
        ValueError,
        "negative integer powers",
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_native_errors_have_numpys_type_and_the_users_line(case: str) -> None:
    fun, bad, good, kind, message = ERRORS[case]

    def f(*args: Any) -> Any:
        return fun(*args)  # the line of functions of NumPy

    jitted = ft.jit(f)
    assert_allclose(jitted(*good), fun(*good))
    assert jitted.explain()[0].is_compiled
    for _ in range(2):
        with pytest.raises(kind, match=message) as caught:
            jitted(*bad)
        (note,) = caught.value.__notes__
        assert note.startswith("in compiled code of f (at test_jit_native.py:")
        assert_allclose(jitted(*good), fun(*good))


def test_too_large_arrays_are_a_memory_error() -> None:
    f = ft.jit(lambda x: np.broadcast_to(x, (10**6, 10**7)) + 1.0)
    g = ft.jit(too_much)
    for _ in range(2):
        with pytest.raises(MemoryError):
            f(1.0)
        with pytest.raises(MemoryError, match="temporary arrays of too_much"):
            g(np.ones(10**7))
    assert g(np.ones(3)) == 9.0


@pytest.mark.parametrize("callback", [ft.pure_callback, ft.io_callback])
def test_exceptions_in_callbacks_keep_their_traceback(callback: Any) -> None:
    fail = [True]

    def the_users_function(x: Any) -> Any:
        if fail[0]:
            raise ZeroDivisionError("in the callback")
        return np.sin(x)

    def f(x: Any) -> Any:
        y = callback(the_users_function, ft.ShapeDtypeStruct((3,), np.float64), x * 2.0)
        return y + 1.0

    jitted = ft.jit(f)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in the callback") as caught:
            jitted(np.ones(3))
        frames = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[-1] == "the_users_function"
    fail[0] = False
    assert_allclose(jitted(np.ones(3)), np.sin(np.full(3, 2.0)) + 1)


INTERRUPTED = """
    import signal
    import numpy as np
    import functrans as ft

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job may ignore it

    def endless(x):
        return ft.lax.while_loop(lambda c: c[0] >= 0.0, lambda c: c + np.cos(c) ** 2, x)

    f = ft.jit(endless)
    assert f(np.full({size}, -1.0))[0] == -1.0
    {setup}
    for _ in range(2):
        print("running", flush=True)
        try:
            {call}
            for _ in range(10**6):
                pass
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        assert f(np.full({size}, -1.0))[0] == -1.0
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(
    ("size", "setup", "call"),
    [
        (3, "", "f(np.ones(3))"),
        (30_000, "", "f(np.ones(30_000))"),
        (3, "e = f.lower(np.ones(3)).compile()", "e(np.ones(3))"),
        (3, "c = f.as_cfunc(np.ones(3))", "c(np.ones(3))"),
        (
            3,
            "x = np.ones(3); c = f.as_cfunc(x)",
            "p = [x.ctypes.data_as(t) for t in c.ctypes.argtypes]; "
            "assert c.ctypes(*p) == 3 and c.status == 3",
        ),
    ],
    ids=["small", "large", "executable", "cfunc", "ctypes"],
)
def test_ctrl_c_ends_an_endless_loop(size: int, setup: str, call: str) -> None:
    code = textwrap.dedent(INTERRUPTED).format(size=size, setup=setup, call=call)
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        for _ in range(2):
            assert process.stdout.readline() == "running\n"
            time.sleep(0.3)  # until it is inside of the loop; an early signal would be no test
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.stdout.close()


COUNTED = """
    import signal
    import numpy as np
    import functrans as ft
    from functrans import lax

    signal.signal(signal.SIGINT, signal.default_int_handler)

    def times(body):
        return ft.jit(lambda n, x: lax.fori_loop(0, n, lambda i, c: body(c), x))

    long = lambda n, body: ft.jit(lambda x: lax.fori_loop(0, n, lambda i, c: body(c), x))
    halve = lambda c: 0.5 * c + 1.0
    loops = [
        long(10**12, halve),
        long(10**9, lambda c: lax.fori_loop(0, 50, lambda j, d: halve(d), c)),
        long(10**9, lambda c: np.sort(-c)),
        long(10**9, lambda c: 0.1 * (c @ c)),
        lambda x: times(halve)(10**12, x),
        ft.jit(ft.vmap(lambda x: lax.fori_loop(0, 10**10, lambda i, c: np.sin(c) * x, x))),
        ft.jit(lambda x: lax.scan(lambda c, _: (halve(c), None), x, None, length=10**10)[0]),
    ]
    for loop in loops:
        print("running", flush=True)
        try:
            loop(np.full((100, 100), 0.01))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_ends_counted_loops() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(COUNTED)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert process.stdout is not None
    try:
        for _ in range(7):
            assert process.stdout.readline() == "running\n"
            time.sleep(0.6)  # tracing and compiling can be interrupted too, but that is no test
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "interrupted\n"
        assert process.wait(timeout=60) == 0
    finally:
        process.kill()
        process.stdout.close()


def test_an_endless_loop_in_a_thread_does_not_stop_the_others() -> None:
    done = run(
        """
        import threading, os
        import numpy as np
        import functrans as ft

        f = ft.jit(lambda x: ft.lax.while_loop(lambda c: c >= 0.0, lambda c: c * 1.0, x))
        f(-1.0)
        threading.Thread(target=f.as_cfunc(1.0).ctypes, args=(1.0,), daemon=True).start()
        total = sum(range(10**6))
        assert f(-2.0) == -2.0
        print("done", flush=True)
        os._exit(0)
        """
    )
    assert done.stdout.split() == ["done"], done.stderr


@pytest.mark.parametrize("n", [8, 40, 67])
@pytest.mark.parametrize("places", [(), (29,), (3, 30), (0, 1, 2, 38)], ids=str)
def test_stacks_of_prefixes_and_elements_are_compiled(n: int, places: tuple[int, ...]) -> None:
    def prefixes(x: np.ndarray) -> np.ndarray:
        parts = list(np.unstack(x))
        rows = list(itertools.accumulate(parts, np.bitwise_or))
        for place in places:
            rows[place % n] = parts[3]
        return np.stack(rows)

    x = np.arange(n) % 5
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that it is interpreted
        np.testing.assert_array_equal(ft.jit(prefixes)(x), prefixes(x))


@pytest.mark.parametrize("order", ["broadcast", "transposed", "0-d", "writable"])
def test_captured_constants_do_not_keep_a_call_from_machine_code(order: str) -> None:
    """Of arrays that nobody can write to, machine code gets a copy in its order, made once."""
    base = np.arange(6.0).reshape(2, 3).copy()
    captured = {
        "broadcast": np.broadcast_to(base[:1], (2, 3)),
        "transposed": base.reshape(3, 2).T,
        "0-d": np.broadcast_to(base[1, 1:2], (1,))[0:1].reshape(()),
        "writable": base[:, ::-1],
    }[order]
    if order != "writable":
        base.flags.writeable = captured.flags.writeable = False
    expected = captured * 2.0
    f = ft.jit(lambda x: captured * x)
    x = np.full(captured.shape, 2.0)
    for _ in range(2):
        np.testing.assert_array_equal(f(x), expected)
    assert f._positional is not None
    assert (f._positional(x) is NotImplemented) == (order == "writable")
    if order == "writable":  # a hidden input
        base[:] = 1.0
        np.testing.assert_array_equal(f(x), np.full((2, 3), 2.0))


def test_gradient_of_a_loop_is_machine_code_alone() -> None:
    def fun(x: Any) -> Any:
        return np.sum(
            ft.lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]
        )

    gradient = ft.jit(ft.grad(fun))
    x = np.array([0.3, 0.4])
    gradient(x)
    assert gradient._positional is not None
    np.testing.assert_allclose(gradient._positional(x), 6 * x**5)
