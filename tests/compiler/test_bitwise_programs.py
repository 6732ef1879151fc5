"""Random programs give the bits of the interpreter in compiler-math mode; text has no fast math.

``FUNCTRANS_TEST_PROGRAMS`` sets how many programs are drawn in all: 100 by default, 300 in the full
run of the tests.
"""

import importlib
import os
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import functrans as ft
from cases import IS_FULL
from compiler.bitwise import assert_compiled_is_reference, texts_of
from compiler.native_programs import ALL, FLOATS, OPERATIONS, Program, programs
from random_programs import PROGRAMS
from random_programs import Program as SmallProgram
from samples import ROWS

PROGRAM_COUNT = int(os.environ.get("FUNCTRANS_TEST_PROGRAMS", "300" if IS_FULL else "100"))
SEEDS = st.integers(0, 1000)


def _share(part: float) -> Any:
    """Settings for a part of all programs."""
    return settings(max_examples=max(5, round(part * PROGRAM_COUNT)))


def test_the_grammar_has_many_operations() -> None:
    assert len(OPERATIONS) >= 60
    assert len({operation.name for operation in OPERATIONS}) == len(OPERATIONS)


@_share(0.4)
@given(programs(ALL), SEEDS)
def test_values(program: Program, seed: int) -> None:
    assert_compiled_is_reference(program, *program.point(seed))


@_share(0.1)
@given(programs(FLOATS), SEEDS)
def test_gradients(program: Program, seed: int) -> None:
    gradient = ft.value_and_grad(program.loss, argnums=(0, 1))
    assert_compiled_is_reference(gradient, *program.point(seed))


@_share(0.1)
@given(programs(FLOATS), SEEDS)
def test_tangents(program: Program, seed: int) -> None:
    assert_compiled_is_reference(
        lambda point, direction: ft.jvp(program.loss, point, direction),
        program.point(seed),
        program.point(seed + 1),
    )


@_share(0.1)
@given(programs(ALL), SEEDS)
def test_batches(program: Program, seed: int) -> None:
    assert_compiled_is_reference(ft.vmap(program), *program.point(seed, (3,)))


@_share(0.05)
@given(programs(FLOATS), SEEDS)
def test_batches_of_gradients(program: Program, seed: int) -> None:
    gradient = ft.vmap(ft.grad(program.loss, argnums=(0, 1)))
    assert_compiled_is_reference(gradient, *program.point(seed, (3,)))


@_share(0.05)
@given(programs(FLOATS), SEEDS)
def test_second_derivatives(program: Program, seed: int) -> None:
    gradient = ft.grad(program.loss, argnums=(0, 1))
    assert_compiled_is_reference(
        lambda point, direction: ft.jvp(gradient, point, direction),
        program.point(seed),
        program.point(seed + 1),
    )


@_share(0.2)
@given(PROGRAMS, SEEDS)
def test_small_programs(program: SmallProgram, seed: int) -> None:
    rng = np.random.default_rng(seed)
    point = [np.asarray(rng.uniform(-1.5, 1.5, shape)) for shape in program.shapes]

    def derivatives(x: Any, y: Any) -> Any:
        gradient = ft.grad(program, argnums=(0, 1))
        return program(x, y), gradient(x, y), ft.jvp(gradient, (x, y), (x, y))[1]

    assert_compiled_is_reference(derivatives, *point)


# the text ---------------------------------------------------------------------------------------

FLAG = re.compile(r"(?<![\w.@%])(?:fast|nnan|ninf|nsz|arcp|contract|afn|reassoc)(?![\w.])")
"""A flag as a word of its own; names begin with ``@`` or ``%``."""


def test_the_pattern_finds_flags() -> None:
    assert FLAG.search("  %v1 = fadd fast double %a, %b")
    assert FLAG.search("  %v1 = fmul nnan contract <8 x double> %a, %b")
    assert FLAG.search("  %v1 = call reassoc double @llvm.fma.f64(double %a)")
    assert not FLAG.search("  %v1 = fadd double %a, %b")
    assert not FLAG.search("  %v1 = call double @fast(double %contract)")


def _assert_no_flags(texts: list[str]) -> None:
    for text in texts:
        found = FLAG.search(text)
        assert found is None, found


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_no_flags_in_samples(row: Any) -> None:
    for sample in row.samples():
        _assert_no_flags(texts_of(row.bound(sample), *sample.operands))


WORKLOADS = (
    *("elementwise", "expfit", "gmm", "logistic", "lstm", "mlp", "pairwise", "rk4", "rosenbrock"),
)


@pytest.mark.parametrize("name", WORKLOADS)
def test_no_flags_in_benchmarks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The programs that the benchmarks' contenders of functrans are made of."""
    module = importlib.import_module(f"tests.benchmarks.workloads.{name}")
    texts: list[str] = []

    def jit(fun: Any) -> Any:
        return lambda *args: texts.extend(texts_of(fun, *args))

    monkeypatch.setattr(ft, "jit", jit)
    for workload in module.WORKLOADS:
        inputs = workload.make_inputs(np.random.default_rng(0))
        for contender in workload.contenders:
            if contender.library == "functrans" and contender.variant == "jit":
                contender.build(inputs)()
    assert texts
    _assert_no_flags(texts)
