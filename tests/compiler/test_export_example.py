"""The exported controller of ``examples/export_mpc``: Python's bits, and no memory of its own."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from functrans.machine import engine
from other_processors import OTHERS, tools_for
from tests.benchmarks import exported_mpc

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.skipif(
    shutil.which("cc") is None or os.name != "posix", reason="there is no C compiler"
)
STRICT = ("-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic")


@pytest.fixture(scope="module")
def example() -> Any:
    return exported_mpc.example()


@pytest.fixture(scope="module")
def in_python(example: Any) -> np.ndarray:
    rows: np.ndarray = example.simulated_in_python()
    return rows


def test_the_pole_stands_upright_within_the_limit(example: Any, in_python: np.ndarray) -> None:
    assert np.max(np.abs(in_python[-1, :4])) < 0.01
    assert np.max(np.abs(in_python[:, 4])) < example.LIMIT
    assert np.max(np.abs(in_python[81:, 1])) > 0.1  # it was pushed
    assert np.max(np.abs(example.gaps(in_python[-1, 5:]))) < 1e-9


def test_c_computes_the_bits_of_python(tmp_path: Path, example: Any, in_python: np.ndarray) -> None:
    exported = example.export(tmp_path)
    rows, said = example.simulated_in_c(example.build(tmp_path, exported, *STRICT))
    assert rows.tobytes() == in_python.tobytes()
    assert "a plan takes" in said
    for part in exported.values():
        assert set(part.external) <= {"memcpy", "memmove", "memset"}
    assert list(exported["derivatives"].statuses) == [0]


@pytest.mark.parametrize("target", OTHERS)
def test_other_processors_compute_the_same_bits(
    tmp_path: Path, example: Any, in_python: np.ndarray, target: str
) -> None:
    compiler, emulator = tools_for(target)
    exported = example.export(tmp_path, target)
    program = example.build(tmp_path, exported, "-static", compiler=compiler)
    assert example.simulated_in_c(program, emulator)[0].tobytes() == in_python.tobytes()


MEMORY = """
#include <stdlib.h>
#include <string.h>
#include "control.h"
#include "derivatives.h"
#include "plant.h"

static void *copied(const void *data, size_t size) { return memcpy(malloc(size), data, size); }

int main(void) {
    double *state = copied(control_state, sizeof control_state), *ahead = malloc(4 * 8);
    double *plan = copied(control_plan, sizeof control_plan), *next = malloc(sizeof control_plan);
    double *own = copied(control_multipliers, sizeof control_multipliers);
    double *found = malloc(sizeof control_multipliers), *force = malloc(8);
    double *gradient = malloc(DERIVATIVES_OUT_HESSIAN_ROWS * 8);
    double *hessian = malloc(DERIVATIVES_OUT_HESSIAN_NNZ * 8);
    double *push = copied(plant_pushes + 80, 8);
    void *first = malloc(CONTROL_WORKSPACE_BYTES), *second = malloc(DERIVATIVES_WORKSPACE_BYTES);
    void *third = malloc(PLANT_WORKSPACE_BYTES);
    int status = control(state, plan, own, force, found, next, first);
    status |= derivatives(next, found, gradient, hessian, second);
    status |= plant(state, force, push, ahead, third);
    double total = 0.0;  /* reads all results */
    for (int i = 0; i < 4; i++) total += ahead[i];
    for (int i = 0; i < DERIVATIVES_OUT_HESSIAN_ROWS; i++) total += gradient[i] + next[i];
    for (int i = 0; i < DERIVATIVES_OUT_HESSIAN_NNZ; i++) total += hessian[i];
    status |= !(total - total == 0.0);
    free(state), free(ahead), free(plan), free(next), free(own), free(found), free(force);
    free(gradient), free(hessian), free(push), free(first), free(second), free(third);
    return status;
}
"""
BLOCKS = 13


def with_exact_memory(example: Any, folder: Path, target: str | None, *flags: str) -> Path:
    """A program that calls all functions with blocks of memory that have no byte to spare."""
    exported = example.export(folder, target=target)
    (folder / "main.c").write_text(MEMORY)
    files = [str(folder / "main.c"), *(str(part.code) for part in exported.values())]
    command = ["cc", "-std=c99", "-g", *flags, f"-I{folder}", "-o", str(folder / "main"), *files]
    run = subprocess.run([*command, "-lm"], capture_output=True, text=True, check=False)
    if run.returncode and "asan" in run.stderr:
        pytest.skip("the compiler has no library for its sanitizer")
    assert not run.returncode, run.stderr
    return folder / "main"


@pytest.mark.skipif(shutil.which("valgrind") is None, reason="there is no valgrind")
def test_valgrind_finds_no_error_and_no_allocation(tmp_path: Path, example: Any) -> None:
    target = "x86-64-v3" if platform.machine() == "x86_64" else None  # it knows no AVX-512
    if target and "+avx2" not in engine.target().features.split(","):
        target = "x86-64"
    program = with_exact_memory(example, tmp_path, target)
    command = ["valgrind", "--error-exitcode=9", "--leak-check=full", str(program)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "ERROR SUMMARY: 0 errors" in run.stderr
    assert re.search(rf"total heap usage: {BLOCKS} allocs, {BLOCKS} frees", run.stderr), run.stderr


def test_the_address_sanitizer_finds_no_error(tmp_path: Path, example: Any) -> None:
    program = with_exact_memory(example, tmp_path, None, "-fsanitize=address,undefined")
    run = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
