"""Programs as object files and libraries that C programs are built from."""

import ctypes
import math
import os
import platform
import re
import shutil
import struct
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.linalg import _umath_linalg

import functrans as ft
from exported_calls import called
from functrans import lax
from functrans.compiler.export import Exported
from functrans.compiler.interface import c_names
from functrans.core.dispatch import bind
from functrans.errors import CompilationError, UnsupportedOperationError
from functrans.machine import engine
from functrans.scipy.sparse import csr_array
from other_processors import OTHERS, tools_for
from samples import ROWS

pytest.importorskip("llvmlite")

needs_cc = pytest.mark.skipif(
    shutil.which("cc") is None or os.name != "posix", reason="there is no C compiler"
)
rng = np.random.default_rng(0)


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def walk(state: Any, kicks: Any) -> Any:
    def step(state: Any, kick: Any) -> Any:
        turned = np.stack([np.sin(state[1]), -np.tanh(state[0])])
        return state + 0.01 * turned * kick, np.exp(state[0])

    last, seen = lax.scan(step, state, kicks)
    return np.sum(last) + np.sum(seen)


def newton(x: Any) -> Any:
    """The square root, by rounds until nothing changes."""
    state = (x, x * 0.0)
    return lax.while_loop(
        lambda s: np.abs(s[0] - s[1]) > 0.0, lambda s: (0.5 * (s[0] + x / s[0]), s[0]), state
    )[0]


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in ft.tree.leaves(value)]


def compiled(
    folder: Path, exported: Exported, main: str, *flags: str, compiler: str = "cc"
) -> Path:
    """A C program that is linked to exported code."""
    source, program = folder / "main.c", folder / "main"
    source.write_text(main)
    command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic"]
    command += ["-o", str(program)]
    command += [f"-I{exported.header.parent}", str(source), str(exported.code), *flags, "-lm"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not run.returncode, run.stderr
    return program


MAIN = """
#include <stdio.h>
#include "{name}.h"

static {given_type} given[{n_given}];
static {type} result[{n_result}];
static unsigned char workspace[{macro}_WORKSPACE_BYTES];

int main(void) {{
    if (fread(given, sizeof given, 1, stdin) != 1) return 1;
    int32_t status = {name}(given, result, workspace);
    if (status != {macro}_SUCCESS) {{ fputs({name}_error_text(status), stderr); return status; }}
    fwrite(result, sizeof result, 1, stdout);
    return 0;
}}
"""


def main_of(exported: Exported, given: np.ndarray, result: np.ndarray, c_type: str) -> str:
    """A program that calls a function of an array on its input."""
    return MAIN.format(
        name=exported.name, macro=exported.name.upper(), given_type=c_type, type=c_type,
        n_given=given.size, n_result=result.size,
    )  # fmt: skip


# results -----------------------------------------------------------------------------------------


@needs_cc
@pytest.mark.parametrize("target", [None, "x86-64", "x86-64-v3"])
def test_a_c_program_computes_the_bits_of_python(tmp_path: Path, target: str | None) -> None:
    if target and platform.machine() != "x86_64":
        pytest.skip("names of processors of x86-64")
    if target == "x86-64-v3" and "+avx2" not in engine.target().features.split(","):
        pytest.skip("this processor lacks AVX2")
    slope = ft.jit(ft.grad(rosenbrock))
    x = rng.normal(size=203)
    exported = slope.export(tmp_path / "out", x, name="slope", target=target)
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files == {"slope.h", "slope.md", "slope.o"}
    program = compiled(tmp_path, exported, main_of(exported, x, x, "double"))
    run = subprocess.run([program], input=x.tobytes(), capture_output=True, check=True)
    assert run.stdout == slope(x).tobytes()


PROGRAMS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "scan": (ft.grad(walk), (np.array([0.3, -0.2]), rng.normal(size=60))),
    "small product": (lambda a, b: a @ b, (rng.normal(size=(9, 7)), rng.normal(size=(7, 12)))),
    "product": (lambda a, b: a @ b + 1.0, (rng.normal(size=(70, 96)), rng.normal(size=(96, 64)))),
    "large product": (
        lambda a, b: np.tanh(a @ b),
        (rng.normal(size=(200, 210)).astype("f4"), rng.normal(size=(210, 190)).astype("f4")),
    ),
    "large memory": (
        lambda x: np.cumsum(np.sort(x.ravel()).reshape(x.shape) * x, 0).T + np.sum(x, 0)[:, None],
        (rng.normal(size=(600, 500)),),
    ),
    "large loop": (lambda x: np.exp(np.sin(x)) + np.log1p(x * x), (rng.normal(size=300_000),)),
    "rounds": (
        lambda x: lax.map(lambda row: np.sort(np.exp(row)) - np.cumsum(row), x),
        (rng.normal(size=(64, 2000)),),
    ),
    "while": (newton, (np.array(3.0),)),
    "rounding": (lambda x: np.round(x) + np.rint(2.0 * x), (np.arange(-4.0, 4.0, 0.25),)),
    "number": (lambda x, n: x * n, (2.5, 3)),
    "dtypes": (
        lambda a, b: np.tanh(a @ b),
        (rng.normal(size=(7, 5)).astype("f4"), rng.normal(size=(5, 6))),
    ),
    "batch": (ft.vmap(ft.hessian(rosenbrock)), (rng.normal(size=(5, 6)),)),
    "no results to compute": (lambda x: (x, x), (np.arange(3.0),)),
    "empty": (lambda x: x + 1.0, (np.ones((0, 3)),)),
}  # fmt: skip


@needs_cc
@pytest.mark.parametrize("target", [None, "x86-64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_libraries_compute_the_bits_of_python(
    tmp_path: Path, name: str, target: str | None
) -> None:
    if target and platform.machine() != "x86_64":
        pytest.skip("a name of processors of x86-64")
    fun, args = PROGRAMS[name]
    jitted = ft.jit(fun)
    expected = leaves(jitted(*args))
    exported = jitted.export(tmp_path, *args, name="program", kind="shared", target=target)
    for workspace_at in (0, 1, 63):
        status, results = called(exported, args, expected, workspace_at)
        assert status == 0
        for result, wanted in zip(results, expected, strict=True):
            assert result.tobytes() == wanted.tobytes()
    names = {re.sub(r"f$", "", symbol) for symbol in exported.external}
    assert names <= {"memcpy", "memmove", "memset", "fma", "fmod", "nearbyint"}, names


@needs_cc
@pytest.mark.parametrize(
    "dtype", ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u1", "?", "c16", "c8"]
)
def test_dtypes(tmp_path: Path, dtype: str) -> None:
    x = (10 * rng.normal(size=37)).astype(dtype)
    jitted = ft.jit(lambda x: (x[::-1], x == x[::-1]))
    expected = leaves(jitted(x))
    exported = jitted.export(tmp_path, x, name="turn", kind="shared")
    status, results = called(exported, [x], expected)
    assert status == 0
    assert [r.tobytes() for r in results] == [e.tobytes() for e in expected]
    (tmp_path / "main.c").write_text('#include "turn.h"\nint main(void) { return TURN_SUCCESS; }\n')
    command = ["cc", "-std=c99", "-Wall", "-pedantic", "-Werror", "-fsyntax-only"]
    subprocess.run([*command, str(tmp_path / "main.c")], check=True)


@needs_cc
def test_arrays_that_the_function_refers_to_are_constants(tmp_path: Path) -> None:
    weights = rng.normal(size=(30, 4))
    jitted = ft.jit(lambda x: np.tanh(weights @ x))
    x = rng.normal(size=4)
    expected = jitted(x)
    exported = jitted.export(tmp_path, x, name="layer", kind="shared")
    weights[:] = 0.0
    status, (result,) = called(exported, [x], [expected])
    assert status == 0
    assert result.tobytes() == expected.tobytes()


@needs_cc
def test_threads_have_a_workspace_each(tmp_path: Path) -> None:
    def fun(x: Any) -> Any:
        return np.cumsum(np.sort(x))[::-1] @ np.outer(x, x)

    jitted = ft.jit(fun)
    inputs = [rng.normal(size=300) for _ in range(4)]
    expected = [jitted(x) for x in inputs]
    exported = jitted.export(tmp_path, inputs[0], name="shared", kind="shared")
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(50):
            status, (result,) = called(exported, [inputs[number]], [expected[number]])
            if status or result.tobytes() != expected[number].tobytes():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# BLAS and LAPACK ---------------------------------------------------------------------------------


def factor(a: Any, b: Any) -> Any:
    lower = np.linalg.cholesky(a @ a.T + 3.0 * np.eye(6))
    return np.linalg.solve(lower, b), lower


def shims(routines: tuple[str, ...], folder: Path) -> list[str]:
    """What links Fortran's names to the library that NumPy has loaded."""
    if platform.machine() != "x86_64" or not Path("/proc/self/maps").exists():
        pytest.skip("jumps are written for Linux on x86-64")
    library = ctypes.CDLL(_umath_linalg.__file__)
    lines, sought = [], "dgemm_"
    for routine in routines:
        forms = [f"scipy_{routine}64_", f"{routine}64_", f"scipy_{routine}", routine]
        found = next((form for form in forms if hasattr(library, form)), "")
        if not found:
            pytest.skip(f"NumPy's library does not show {routine}")
        if found != routine:
            sought = found
            lines.append(f'__asm__(".globl {routine}\\n{routine}: jmp {found}@PLT\\n");')
    (folder / "shims.c").write_text("\n".join([*lines, "typedef int not_empty;"]))
    loaded = set(re.findall(r"/\S*blas\S*\.so\S*", Path("/proc/self/maps").read_text()))
    paths = [path for path in loaded if hasattr(ctypes.CDLL(path), sought)]
    if not paths:
        pytest.skip("NumPy's library is no file of its own")
    return [str(folder / "shims.c"), paths[0], f"-Wl,-rpath,{Path(paths[0]).parent}"]


@needs_cc
def test_routines_of_lapack_have_fortrans_names(tmp_path: Path) -> None:
    a, b = rng.normal(size=(6, 6)), rng.normal(size=6)
    jitted = ft.jit(lambda x: factor(x[:36].reshape(6, 6), x[36:])[0])
    given = np.concatenate([a.ravel(), b])
    exported = jitted.export(tmp_path, given, name="solve")
    assert "dpotrf_" in exported.external
    assert "dpotrf_" in exported.header.read_text()
    flags = shims(exported.external, tmp_path)
    main = main_of(exported, given, b, "double")
    program = compiled(tmp_path, exported, main, *flags)
    run = subprocess.run([program], input=given.tobytes(), capture_output=True, check=True)
    np.testing.assert_array_max_ulp(np.frombuffer(run.stdout), jitted(given), 2)


# code --------------------------------------------------------------------------------------------


@needs_cc
def test_code_refers_to_no_heap_and_no_python(tmp_path: Path) -> None:
    for name, (fun, args) in PROGRAMS.items():
        exported = ft.jit(fun).export(tmp_path, *args, name="program")
        run = ["nm", "-u", str(exported.code)]
        found = subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()
        assert set(found) - {"U"} == set(exported.external), name
        assert not [s for s in found if re.match(r"Py|malloc|realloc|calloc|free|functrans|ft_", s)]
        text = ft.jit(fun).export(tmp_path, *args, name="program", kind="llvm").code.read_text()
        variables = re.findall(r"^@\S+ = .*$", text, re.MULTILINE)
        assert all(" constant " in line for line in variables)


STACK = """
#include <stdint.h>
typedef int32_t function(void *, void *, void *, void *, void *, void *, void *, void *);

/* How far below this frame a call writes. */
long taken(function *f, void **p)
{
    volatile unsigned char *here = __builtin_frame_address(0);
    for (long i = 512; i < 300000; i++) here[-i] = 0xA5;
    f(p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]);
    for (long i = 299999; i > 512; i--) if (here[-i] != 0xA5) return i;
    return 512;
}
"""


@needs_cc
@pytest.mark.parametrize("target", [None, "x86-64"])
def test_calls_take_no_more_stack_than_is_said(tmp_path: Path, target: str | None) -> None:
    if target and platform.machine() != "x86_64":
        pytest.skip("a name of processors of x86-64")
    (tmp_path / "stack.c").write_text(STACK)
    command = [
        "cc",
        "-shared",
        "-fPIC",
        "-o",
        str(tmp_path / "stack.so"),
        str(tmp_path / "stack.c"),
    ]
    subprocess.run(command, check=True)
    measure = ctypes.CDLL(str(tmp_path / "stack.so")).taken
    measure.restype = ctypes.c_long
    for name, (fun, args) in PROGRAMS.items():
        jitted = ft.jit(fun)
        options: dict[str, Any] = {"kind": "shared", "target": target, "name": "program"}
        exported = jitted.export(tmp_path / name.replace(" ", "_"), *args, **options)
        memory = np.zeros(exported.workspace_bytes, np.uint8)
        arrays = [*map(np.asarray, args), *leaves(jitted(*args)), memory]
        pointers = [array.ctypes.data for array in arrays] + [0] * (8 - len(arrays))
        function = ctypes.CDLL(str(exported.code)).program
        given = ctypes.cast(function, ctypes.c_void_p), (ctypes.c_void_p * 8)(*pointers)
        measure(*given)  # symbols are looked up in the first call
        used, said = measure(*given), exported.stack_bytes
        assert said is not None, name
        assert f"PROGRAM_STACK_BYTES {said}\n" in exported.header.read_text()
        # the frame of ``taken`` and eight arguments on the stack; and 512 bytes are not looked at
        assert used <= max(said, 512) + 256, name
        assert said <= 4 * used + 256, name


@needs_cc
@pytest.mark.parametrize("kind", ["object", "shared"])
def test_the_program_in_the_readme_runs(tmp_path: Path, kind: str) -> None:
    jacobian = ft.sparse_jacobian(differences)

    def step(params: Any, x: Any) -> Any:
        z = (params["w"] @ x + params["b"][0]).astype(np.complex128)
        return {"y": z.real, "z": z, "half": x.astype(np.float16)}, jacobian(params["w"][0])

    params = {"w": np.ones((3, 4)), "b": [np.ones(3), np.array(2)]}
    for fun, args in ((step, (params, np.ones(4))), (rosenbrock, (np.ones(3),))):
        exported = ft.jit(fun).export(tmp_path, *args, name="step", kind=kind)
        text = exported.readme.read_text()
        program, *loops = re.findall(r"```c\n(.*?)```", text, re.DOTALL)
        program = program.replace(
            "    return 0;", "\n".join(f"    {{ {loop} }}\n" for loop in loops) + "    return 0;"
        )
        (tmp_path / "main.c").write_text(program)
        (command,) = re.findall(r"```sh\n(.*?)\n```", text)
        flags = "cc -std=c99 -Wall -Wextra -Werror -pedantic"
        subprocess.run(command.replace("cc", flags, 1), shell=True, check=True, cwd=tmp_path)
        run = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
        assert run.stdout.count("(") == (6 if loops else 0)
        assert "| 0 | `STEP_SUCCESS` | success |" in text


MACHINES = {
    "x86-64-v3": 62, "x86_64-linux-gnu": 62, "aarch64-linux-gnu": 183, "riscv64-linux-gnu": 243,
    "armv7-linux-gnueabihf": 40,
}  # fmt: skip


@pytest.mark.parametrize("target", MACHINES)
def test_targets(tmp_path: Path, target: str) -> None:
    if target == "x86-64-v3" and platform.machine() != "x86_64":
        pytest.skip("the name of a processor of x86-64")
    for name, (fun, args) in PROGRAMS.items():
        try:
            exported = ft.jit(fun).export(tmp_path, *args, name="program", target=target)
        except ValueError as error:
            assert "nor a triple" in str(error)  # noqa: PT017  # an LLVM without that target
            pytest.skip(str(error))
        data = exported.code.read_bytes()
        assert data[:4] == b"\x7fELF", name
        assert struct.unpack_from("<HH", data, 16) == (1, MACHINES[target])  # relocatable
        assert exported.stack_bytes is not None, name


def extrema(x: Any) -> Any:
    """Zeros of both signs, in vectors and in numbers, in both precisions."""
    y = x.astype(np.float32)
    small, large = np.minimum(x, x[::-1]), np.maximum(x, x[::-1])
    small_32, large_32 = np.minimum(y, y[::-1]), np.maximum(y, y[::-1])
    numbers = np.stack([np.min(x), np.max(x), np.min(y[4:]), np.max(y[4:])])
    return np.concatenate([small, large, small_32, large_32, numbers, y * y])


EXTREMA = {"extrema": (extrema, (np.array([0.0, -0.0, 1.0, -1.0, 1e-21, -0.0, 0.0, 2.0, np.inf]),))}


@pytest.mark.parametrize("target", OTHERS)
def test_another_processor_computes_the_same_bits(tmp_path: Path, target: str) -> None:
    compiler, emulator = tools_for(target)
    programs = {**PROGRAMS, **EXTREMA}
    for name in ("scan", "product", "large memory", "batch", "rounds", "while", "extrema"):
        fun, args = programs[name]
        shapes = [np.shape(x) for x in args]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]

        def flat(x: Any, fun: Any = fun, shapes: Any = shapes, ends: Any = ends) -> Any:
            parts = np.split(x, ends.tolist())
            return fun(*[part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)])

        x = np.concatenate([np.ravel(x) for x in args])
        jitted = ft.jit(flat)
        expected = jitted(x)
        exported = jitted.export(tmp_path, x, name="program", target=target)
        main = main_of(exported, x, expected, "double")
        program = compiled(tmp_path, exported, main, "-static", compiler=compiler)
        command = [emulator, str(program)]
        run = subprocess.run(command, input=x.tobytes(), capture_output=True, check=True)
        assert run.stdout == expected.tobytes(), name


@pytest.mark.parametrize("kind", ["llvm", "c-free"])
def test_text(tmp_path: Path, kind: str) -> None:
    exported = ft.jit(rosenbrock).export(tmp_path, np.ones(9), kind=kind)
    assert exported.code.name == "rosenbrock.ll"
    text = exported.code.read_text()
    assert text.startswith('target triple = "')
    assert exported.stack_bytes is None  # another compiler makes the code
    assert engine.compile_object(text, 1)


# headers -----------------------------------------------------------------------------------------


@needs_cc
def test_the_example_in_a_header_runs(tmp_path: Path) -> None:
    def step(params: Any, x: Any) -> Any:
        z = (params["w"] @ x + params["b"]).astype(np.complex128)
        return {"y": z.real, "z": z, "half": x.astype(np.float16)}, x > 0

    params = {"w": np.ones((3, 4)), "b": np.ones(3)}
    exported = ft.jit(step).export(tmp_path, params, np.ones(4), name="step")
    assert exported.declaration == (
        "int32_t step(const double *params_b, const double *params_w, const double *x, "
        "uint16_t *out_0_half, double *out_0_y, double *out_0_z, bool *out_1, void *workspace)"
    )
    header = exported.header.read_text()
    assert "/* params['w']: float64[3, 4] */" in header
    example = header.partition("A call:")[2].partition("*/")[0]
    body = "\n".join(line.removeprefix(" *") for line in example.splitlines())
    body = re.sub(r"(double params_\w+|double x)(\[\d+\]);", r"\1\2 = {0};", body)
    main = f'#include <stdio.h>\n#include "step.h"\nint main(void) {{\n{body}\nreturn status;\n}}\n'
    subprocess.run([compiled(tmp_path, exported, main)], check=True)
    if shutil.which("c++"):
        (tmp_path / "main.cpp").write_text(main)
        command = ["c++", "-Wall", "-Werror", "-o", str(tmp_path / "main_cpp")]
        files = [str(tmp_path / "main.cpp"), str(exported.code), "-lm"]
        subprocess.run([*command, *files], check=True)
        subprocess.run([tmp_path / "main_cpp"], check=True)


STRUCTS = """
#include <stdio.h>
#include <string.h>
#include "step.h"

static unsigned char workspace[STEP_WORKSPACE_BYTES];

int main(void) {
    double w[12], b[3] = {1.0, 2.0, 3.0}, x[4] = {0.5, -1.0, 2.0, 0.25};
    double y[3], z[6], flat_y[3], flat_z[6];
    uint16_t half[4], flat_half[4];
    bool is_positive[4], flat_is_positive[4];
    for (int i = 0; i < 12; i++) w[i] = 0.1 * i;
    const step_params params = {b, w};
    const step_out out = {half, y, z, is_positive};
    if (step_call(&params, x, &out, workspace) != STEP_SUCCESS) return 1;
    if (step(b, w, x, flat_half, flat_y, flat_z, flat_is_positive, workspace)) return 2;
    if (memcmp(y, flat_y, sizeof y) || memcmp(z, flat_z, sizeof z)) return 3;
    return is_positive[1] || !is_positive[2] || z[1] != 0.0 || z[0] != y[0];
}
"""


@needs_cc
def test_containers_are_structs_in_another_function(tmp_path: Path) -> None:
    def step(params: Any, x: Any) -> Any:
        y = np.tanh(params["w"] @ x + params["b"])
        return {"y": y, "z": y.astype(np.complex128), "half": x.astype(np.float16)}, x > 0

    params = {"w": np.ones((3, 4)), "b": np.ones(3)}
    exported = ft.jit(step).export(tmp_path, params, np.ones(4), name="step")
    subprocess.run([compiled(tmp_path, exported, STRUCTS)], check=True)
    plain = ft.jit(rosenbrock).export(tmp_path, np.ones(4), name="plain")
    assert "struct" not in plain.header.read_text()


SPARSE = """
#include <stdio.h>
#include "slopes.h"

static unsigned char workspace[SLOPES_WORKSPACE_BYTES];

int main(void) {
    double x[6] = {0.5, -1.0, 2.0, 0.25, 3.0, 1.5}, y[5], data[SLOPES_OUT_1_NNZ];
    if (slopes(x, y, data, workspace) != SLOPES_SUCCESS) return 1;
    for (int i = 0; i < SLOPES_OUT_1_%(lines)s; i++)
        for (int k = slopes_out_1_indptr[i]; k < slopes_out_1_indptr[i + 1]; k++)
            printf("%%d %%d %%.17g\\n", i, (int)slopes_out_1_indices[k], data[k]);
    return SLOPES_OUT_1_ROWS != 5 || SLOPES_OUT_1_COLUMNS != 6 || slopes_scale[1] != 2.0;
}
"""


def differences(x: Any) -> Any:
    return x[1:] ** 2 * x[:-1]


@needs_cc
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_patterns_of_sparse_results_are_constants(tmp_path: Path, format: str) -> None:
    jacobian = ft.sparse_jacobian(differences, format=format)
    jitted = ft.jit(lambda x: (differences(x), jacobian(x)))
    x = np.array([0.5, -1.0, 2.0, 0.25, 3.0, 1.5])
    options: dict[str, Any] = {"name": "slopes", "tables": {"scale": [1.0, 2.0]}}
    exported = jitted.export(tmp_path, x, **options)
    assert "double *out_1_data, void *workspace" in exported.declaration
    lines = {"csr": "ROWS", "csc": "COLUMNS"}[format]
    program = compiled(tmp_path, exported, SPARSE % {"lines": lines})
    run = subprocess.run([program], capture_output=True, text=True, check=True)
    found = np.array([line.split() for line in run.stdout.splitlines()], float)
    expected = jacobian(x)
    places = np.repeat(np.arange(len(expected.indptr) - 1), np.diff(expected.indptr))
    assert found[:, 0].tolist() == places.tolist()
    assert found[:, 1].tolist() == expected.indices.tolist()
    assert found[:, 2].tolist() == expected.data.tolist()


def test_sparse_results_without_a_constant_pattern_are_arrays(tmp_path: Path) -> None:
    def scaled(data: Any, indices: Any) -> Any:
        return csr_array((2.0 * data, indices, np.array([0, 1, 2])), shape=(2, 2))

    exported = ft.jit(scaled).export(tmp_path, np.ones(2), np.array([0, 1]), name="scaled")
    names = re.findall(r"\*(out\w*)", exported.declaration)
    assert names == ["out_data", "out_indices", "out_indptr"]
    assert "NNZ" not in exported.header.read_text()


CMAKE = """
cmake_minimum_required(VERSION 3.18)
project(example C)
include({folder}/slope.cmake)
add_executable(program main.c)
target_link_libraries(program PRIVATE slope)
"""


@needs_cc
@pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake")
@pytest.mark.parametrize("kind", ["object", "shared"])
def test_cmake_includes_the_function(tmp_path: Path, kind: str) -> None:
    slope, x = ft.jit(ft.grad(rosenbrock)), rng.normal(size=20)
    folder = tmp_path / "out"
    exported = slope.export(folder, x, name="slope", kind=kind, also=["cmake"])
    (tmp_path / "CMakeLists.txt").write_text(CMAKE.format(folder=folder))
    (tmp_path / "main.c").write_text(main_of(exported, x, x, "double"))
    for step in (
        ["-S", str(tmp_path), "-B", str(tmp_path / "b")],
        ["--build", str(tmp_path / "b")],
    ):
        run = subprocess.run(["cmake", *step], capture_output=True, text=True, check=False)
        assert not run.returncode, run.stdout + run.stderr
    program = tmp_path / "b" / "program"
    found = subprocess.run([program], input=x.tobytes(), capture_output=True, check=True)
    assert found.stdout == slope(x).tobytes()


FORTRAN = """
program main
  use slope_interface
  implicit none
  real(c_double) :: x(4), g(4)
  integer(c_int8_t) :: workspace(slope_workspace_bytes)
  x = slope_start
  if (slope(x, g, workspace) /= slope_success) error stop
  write (*, '(es25.17)') g
end program
"""


def test_fortran_declares_the_function(tmp_path: Path) -> None:
    slope, x = ft.jit(ft.grad(rosenbrock)), np.array([0.5, -1.0, 2.0, 0.25])
    exported = slope.export(tmp_path, x, name="slope", also=["fortran"], tables={"start": x})
    text = (tmp_path / "slope.f90").read_text()
    assert "real(c_double), intent(in) :: x(*)  ! x: float64[4]" in text
    assert max(map(len, text.splitlines())) <= 132
    compiler = shutil.which("gfortran")
    if compiler is None:
        pytest.skip("there is no gfortran")
    (tmp_path / "main.f90").write_text(FORTRAN)
    sources = [str(tmp_path / "slope.f90"), str(tmp_path / "main.f90"), str(exported.code)]
    command = [compiler, "-std=f2018", "-Wall", f"-J{tmp_path}", "-o", str(tmp_path / "main")]
    subprocess.run([*command, *sources], check=True)
    run = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert np.array(run.stdout.split(), float).tolist() == slope(x).tolist()


@needs_cc
def test_headers_of_names_that_differ_in_case_stand_together(tmp_path: Path) -> None:
    x = np.ones(3)
    for name in ("g", "G", "gG", "Gg"):
        ft.jit(lambda x: x[np.array([2])] * 2.0).export(tmp_path / name, x, name=name)
    flags = [f"-I{tmp_path / name}" for name in ("g", "G", "gG", "Gg")]
    source = "".join(f'#include "{name}.h"\n' for name in ("g", "G", "gG", "Gg"))
    sizes = "G_WORKSPACE_BYTES + g_WORKSPACE_BYTES + gG_WORKSPACE_BYTES + Gg_WORKSPACE_BYTES"
    calls = " + ".join(f"{name}(x, y, w)" for name in ("g", "G", "gG", "Gg"))
    main = f"int main(void) {{ double x[3], y[1]; char w[{sizes}]; return {calls} + G_SUCCESS; }}"
    (tmp_path / "main.c").write_text(f"{source}{main}\n")
    command = ["cc", "-std=c99", "-Werror", "-fsyntax-only", *flags, str(tmp_path / "main.c")]
    subprocess.run(command, check=True)


def test_names_in_c() -> None:
    texts = ["x", "params['w']", "params.w", "int", "3", "é", "x", "workspace"]
    assert c_names(texts, "arg", ("workspace",)) == [
        "x", "params_w", "params_w_1", "int_", "arg_3", "arg", "x_1", "workspace_1",
    ]  # fmt: skip


@needs_cc
def test_errors_are_numbers_with_names_and_texts(tmp_path: Path) -> None:
    jitted = ft.jit(lambda x, i: x[i])
    x, i = np.arange(5.0), np.array([1, 9])
    exported = jitted.export(tmp_path, x, i, name="pick", kind="shared")
    ((status, name),) = [item for item in exported.statuses.items() if item[0]]
    assert name == "PICK_INDEX_ERROR"
    assert f"{name} = {status} /* " in exported.header.read_text()
    assert called(exported, [x, i], [x[:2]])[0] == status
    text = ctypes.CDLL(str(exported.code)).pick_error_text
    text.restype = ctypes.c_char_p
    assert b"out of bounds" in text(status)
    assert b"test_export.py" in text(status)
    assert text(0) == b"success"
    assert text(99) == b"unknown status"
    assert called(exported, [x, np.array([4, -1])], [x[:2]])[0] == 0


# refusals ----------------------------------------------------------------------------------------


def slope_of_newton(x: Any) -> Any:
    return ft.grad(newton)(x)


def slope_of_loops(x: Any) -> Any:
    """The derivative of a loop of unknown length that has another one in each round."""

    def outer(state: tuple[Any, Any]) -> tuple[Any, Any]:
        x, k = state
        inner = lax.while_loop(lambda s: s[1] < k, lambda s: (np.sin(s[0]), s[1] + 1), (x, 0))
        return inner[0] * 1.1, k + 1

    return ft.grad(lambda x: lax.while_loop(lambda s: s[1] < 6, outer, (x, 0))[0])(x)


@needs_cc
@pytest.mark.parametrize("fun", [slope_of_newton, slope_of_loops])
def test_derivatives_of_loops_take_memory_from_the_workspace(tmp_path: Path, fun: Any) -> None:
    jitted, x = ft.jit(fun), np.array(2.0)
    expected = jitted(x)
    exported = jitted.export(tmp_path, x, name="slope", kind="shared", tape_bytes=20_000)
    assert exported.workspace_bytes >= 20_000
    assert not [symbol for symbol in exported.external if "alloc" in symbol]
    for workspace_at in (0, 5):
        status, (result,) = called(exported, [x], [expected], workspace_at)
        assert status == 0
        assert result.tobytes() == expected.tobytes()
    (tmp_path / "small").mkdir()
    exported = jitted.export(tmp_path / "small", x, name="slope", kind="shared", tape_bytes=64)
    assert exported.statuses[2] == "SLOPE_MEMORY_ERROR"
    assert called(exported, [x], [expected])[0] == 2


REFUSED: dict[str, tuple[Any, tuple[Any, ...], str]] = {
    "callback": (
        lambda x: ft.pure_callback(np.sin, ft.ShapeDtypeStruct((3,), "f8"), x), (np.ones(3),),
        r"pure_callback.* at test_export\.py:\d+",
    ),
    "without lower": (
        lambda x: np.argpartition(x, 2), (np.ones(5),), r"argpartition.* at test_export\.py:\d+",
    ),
    "fft": (lambda x: np.fft.fft(x), (np.ones(8),), r"part of NumPy.* \(at test_export\.py:\d+"),
    "tape": (slope_of_newton, (np.array(2.0),), r"tape_bytes=.* \(at test_export\.py:\d+"),
}  # fmt: skip


def test_every_primitive_is_exported_or_refused_with_its_line(tmp_path: Path) -> None:
    refused = set()
    for row in ROWS:
        sample = row.samples()[0]
        if row.is_planned or not sample.operands:
            continue

        def fun(*operands: Any, row: Any = row, sample: Any = sample) -> Any:
            return bind(row.primitive, *operands, **sample.params)

        try:
            ft.jit(fun).export(tmp_path / "out", *sample.operands, name="program")
        except UnsupportedOperationError as error:
            refused.add(row.primitive.name)
            words = rf"^export: .*\w+ .*\bat {Path(__file__).name}:\d+"
            assert re.search(words, str(error)), error  # noqa: PT017  # of either outcome
    assert {"erfcx", "argpartition"} <= refused
    assert not refused & {"sin", "dot_general", "scan", "while", "cond", "sort", "solve"}


def test_kernels_of_numba_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("numba")

    @ft.kernel(out_like=lambda x: x)
    def doubled(x: Any, out: Any) -> None:
        for i in range(len(x)):
            out[i] = 2.0 * x[i]

    with pytest.raises(UnsupportedOperationError, match=r"numba.* \(at test_export\.py:\d+"):
        ft.jit(lambda x: doubled(x)).export(tmp_path / "out", np.ones(3))
    assert not list(tmp_path.iterdir())


def test_values_of_a_transform_are_refused(tmp_path: Path) -> None:
    def outer(y: Any) -> Any:
        ft.jit(lambda x: x * y).export(tmp_path / "out", np.ones(3))
        return y

    with pytest.raises(UnsupportedOperationError, match="values of a transform around it"):
        ft.grad(outer)(2.0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_python_is_refused_with_the_line(tmp_path: Path, name: str) -> None:
    fun, args, message = REFUSED[name]
    with pytest.raises(UnsupportedOperationError, match=message):
        ft.jit(fun).export(tmp_path / "out", *args)
    assert not list(tmp_path.iterdir())


OPTIONS: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"kind": "static"}, ValueError, "kind 'static' is none of 'object', 'shared', 'llvm'"),
    ({"target": "pdp11"}, ValueError, "target 'pdp11' is neither .* aarch64"),
    ({"target": "vax-linux-gnu"}, ValueError, "nor a triple"),
    ({"name": "two words"}, ValueError, "'two words' is no name"),
    ({"tables": {"two words": [1]}}, ValueError, "'f_two words' is no name"),
    ({"tables": {"words": ["a"]}}, TypeError, r"tables\['words'\] is of dtype <U1"),
    ({"also": "cmake"}, ValueError, "also='cmake' is no sequence of 'cmake', 'fortran'"),
    ({"also": ["rust"]}, ValueError, "is no sequence of 'cmake', 'fortran'"),
    ({"kind": "llvm", "also": ["cmake"]}, ValueError, "no use for kind 'llvm'"),
    ({"name": "double"}, ValueError, "'double' is no name"),
    ({"name": "fma"}, ValueError, "another function 'fma'"),
    ({"tape_bytes": -1}, ValueError, "tape_bytes must be an integer from 0 on"),
    ({"kind": "shared", "target": "aarch64-windows"}, UnsupportedOperationError, "link it there"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "error", "message"), OPTIONS)
def test_options_are_checked_first(
    tmp_path: Path, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ft.jit(rosenbrock).export(tmp_path / "out", np.ones(3), **options)
    assert not list(tmp_path.iterdir())


def test_shared_libraries_need_a_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(CompilationError, match="no 'no-such-compiler'; install one"):
        ft.jit(rosenbrock).export(tmp_path / "out", np.ones(3), kind="shared")
    monkeypatch.setenv("CC", "false")
    if shutil.which("false"):
        with pytest.raises(CompilationError, match=r"false -shared .* failed"):
            ft.jit(rosenbrock).export(tmp_path / "out", np.ones(3), kind="shared")
    assert not list(tmp_path.iterdir())


def test_a_failure_while_writing_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(NotADirectoryError, match="is a file"):
        ft.jit(rosenbrock).export(file, np.ones(3))
    write = Path.write_bytes

    def fail(path: Path, data: bytes) -> int:
        if ".h." in path.name:
            raise OSError("no space left")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", fail)
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(OSError, match="no space left"):
            ft.jit(rosenbrock).export(folder, np.ones(3))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("name", ["exp", "sin", "printf", "malloc", "abs"])
def test_names_of_the_c_library_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match=f"the C library has a '{name}'|another function '{name}'"):
        ft.jit(lambda x: x * 0 + 7).export(tmp_path, np.ones(3), name=name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["unix", "int32_t", "INT32_MAX", "thread_local", "static_cast"])
def test_words_of_c_are_no_names(tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="is no name in C"):
        ft.jit(np.sin).export(tmp_path, np.ones(3), name=name)


def test_tables_do_not_hide_what_the_header_declares(tmp_path: Path) -> None:
    for key in ("call", "error_text"):
        with pytest.raises(ValueError, match=r"called alike|another function"):
            ft.jit(lambda p: p["a"] * 2).export(
                tmp_path, {"a": np.ones(3)}, name="k", tables={key: np.ones(2)}
            )
