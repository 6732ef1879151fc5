"""Names in exported headers and modules: none means two things, whatever arguments are called."""

import random
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import functrans as ft

X = np.ones(3)
ENDS = ("H", "h", "SUCCESS", "success", "WORKSPACE_BYTES", "STACK_BYTES", "out", "OUT", "a", "A")
WORDS = ("x", "X", "out", "OUT", "workspace", "status", "STATUS", "f", "F", "rows", "ROWS")
FORTRAN_NAMES = re.compile(r"^  .*(?:parameter|protected) :: (\w+)", re.MULTILINE)


def energy(x: Any) -> Any:
    return np.sum(x[1:] * x[:-1])


def drawn(seed: int) -> tuple[str, Any, dict[str, Any], dict[str, Any]]:
    """A name, a function with sparse and other results, its arguments and tables."""
    draw = random.Random(seed)
    name = draw.choice(["f", "F", "fG", "Fg"])
    words = [*WORDS, *(f"{prefix}_{end}" for prefix in (name, "f", "F") for end in ENDS)]
    words += ["F_OUT_ROWS", "F_OUT_A_NNZ", "f_INDEX_ERROR", "F_INDEX_ERROR", "f_p", "f_call"]
    keys, plain, outs = (draw.sample(words, 4) for _ in range(3))

    def function(p: Any, **others: Any) -> Any:
        x = p[keys[0]]
        sparse = {key: ft.sparse_hessian(energy)(x) for key in outs[:2]}
        total = sum(others.values()) + p[keys[1]]
        return {**sparse, outs[2]: ft.numpy.take(total, np.array([2])), outs[3]: total}

    given = {"p": dict.fromkeys(keys, X), **dict.fromkeys(sorted({*plain} - {"p"}), X)}
    free = ENDS if name in ("f", "F") else ("h", "out", "OUT", "a", "A")  # for "fG", see below
    tables = dict.fromkeys(draw.sample(free, 3), X)
    return name, function, given, tables


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", range(16))
def test_no_name_means_two_things(tmp_path: Path, seed: int) -> None:
    name, function, given, tables = drawn(seed)
    also = ("fortran",)
    jitted = ft.jit(function)
    first = given.pop("p")
    exported = jitted.export(tmp_path, first, name=name, tables=tables, also=also, **given)
    source = tmp_path / "main.c"
    text = exported.header.read_text()
    call = re.search(r"A call:\n \*\n((?: \*    .*\n)+)", text)
    assert call is not None
    body = call[1].replace(" *    ", "")
    source.write_text(f'#include <stdio.h>\n#include "{name}.h"\nvoid g(void) {{\n{body}}}\n')
    for language in (["-std=c99"], ["-x", "c++"]):
        command = ["cc", *language, "-Wall", "-Werror", "-Wno-unused", "-fsyntax-only", source]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    module = (tmp_path / f"{name}.f90").read_text()
    found = [word.lower() for word in FORTRAN_NAMES.findall(module)]
    found += [f"{name}{end}".lower() for end in ("", "_error_text", "_interface")]
    assert len(found) > 10
    assert len(set(found)) == len(found)
    arguments = re.findall(r"^ {8}(\w+)[,)]", module, re.MULTILINE)
    assert len({*map(str.lower, arguments), name.lower(), "status"}) == len(arguments) + 2


@pytest.mark.parametrize("key", ["H", "SUCCESS", "WORKSPACE_BYTES"])
def test_tables_have_the_names_that_they_are_given_or_none(tmp_path: Path, key: str) -> None:
    jitted = ft.jit(lambda x: x * 2.0)
    with pytest.raises(ValueError, match=f"two things would be called alike: fG_{key}; give"):
        jitted.export(tmp_path / "new", X, name="fG", tables={key: X})
    assert not (tmp_path / "new").exists()


def test_functions_whose_names_differ_in_case_have_directories_of_their_own(tmp_path: Path) -> None:
    jitted = ft.jit(lambda x: x * 2.0)
    jitted.export(tmp_path, X, name="g")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"has a file g\.\w+, which is G\.\w+ on systems"):
        jitted.export(tmp_path, X, name="G")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
    jitted.export(tmp_path, X, name="g")
    jitted.export(tmp_path, X, name="gg")
