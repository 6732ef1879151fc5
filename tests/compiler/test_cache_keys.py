"""Keys of machine code: what decides the code is in the key, for every field of it."""

import dataclasses
import hashlib
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
import pytest

import functrans as ft
from functrans.compiler import compiled
from functrans.compiler.compiled import NativePart, _key_of, entry_of, plan_of
from functrans.compiler.entry import ArraySpec, Entry, ScalarSpec
from functrans.compiler.execution import execution_of
from functrans.compiler.programs import write_program
from functrans.core.dispatch import bind
from functrans.core.jaxpr import Jaxpr, Literal
from functrans.core.lowering import Pointwise
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.machine import cache, engine
from functrans.machine.cache import cache_key
from functrans.passes.simplify import simplify
from processors import SMALL
from samples import Row, each_sample

X = np.arange(3.0)


def parts_of(fun: Any, *args: Any) -> list[NativePart]:
    """The native parts of a function's program."""
    plan = plan_of(simplify(ft.make_jaxpr(fun)(*args)))
    return [part for part in plan if isinstance(part, NativePart)]


def key_of(fun: Any, *args: Any) -> str:
    (part,) = parts_of(fun, *args)
    return _key_of(part.jaxpr, entry_of(part))[0]


def shift(k: float) -> Any:
    """A primitive that is not the library's: there are many of that name."""
    p = Primitive(
        "shift",
        impl=lambda x: (x + k,),
        abstract_eval=lambda x: (x.strong(),),
        jvp=nondifferentiable,
        lower=Pointwise(lambda e, x: e.add(x, e.constant(x.dtype, k))),
    )
    return lambda x: bind(p, x)[0]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("own_cache")
def test_primitives_of_one_name_have_their_own_code() -> None:
    def inside(x: Any, k: float) -> Any:
        return ft.lax.fori_loop(0, 2, lambda _, c: shift(k)(c), x)

    for _ in range(2):  # the second time from disk
        for k in (1.0, 2.0):
            np.testing.assert_array_equal(ft.jit(shift(k))(X), X + k)
            np.testing.assert_array_equal(ft.jit(inside, static_argnums=1)(X, k), X + 2 * k)
    np.testing.assert_array_equal(ft.jit(lambda x: shift(1.0)(shift(2.0)(x)))(X), X + 3)


EDITED = """
import numpy as np
import functrans as ft
from functrans.core.lowering import Pointwise
from functrans.core.primitive import Primitive, nondifferentiable
from functrans.core.dispatch import bind

K = 1.0
shift_p = Primitive(
    "shift",
    impl=lambda x: (x + K,),
    abstract_eval=lambda x: (x.strong(),),
    jvp=nondifferentiable,
    lower=Pointwise(lambda e, x: e.add(x, e.constant(x.dtype, K))),
)
f = ft.jit(lambda x: ft.lax.fori_loop(0, 3, lambda _, c: bind(shift_p, c)[0], x))
print(*f(np.zeros(2)), f.explain()[0].was_cached)
"""


@pytest.mark.usefixtures("own_cache")
def test_a_rule_that_was_edited_between_processes_has_other_code(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"

    def run(k: str) -> str:
        file.write_text(EDITED.replace("K = 1.0", f"K = {k}"), encoding="utf-8")
        os.utime(file, (1, 1))
        done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    found = [run(k) for k in ("1.0", "2.0", "1.0")]
    assert found == ["3.0 3.0 False", "6.0 6.0 False", "3.0 3.0 True"]


def test_programs_of_one_key_have_one_text() -> None:
    texts = defaultdict(set)
    for parameter in each_sample():
        row, label = parameter.values
        assert isinstance(row, Row)
        if len(row.name) % 5:  # a part of the table, with all samples of a primitive
            continue
        sample = row.sample(label)
        try:
            parts = parts_of(row.bound(sample), *sample.operands)
        except ft.FunctransError:  # samples of what cannot be traced
            continue
        for part in parts:
            text = write_program(part.jaxpr)
            key, _ = _key_of(part.jaxpr, entry_of(part))
            texts[key].add(hashlib.sha256(f"{text.text}{text.parameters}".encode()).digest())
    assert len(texts) > 100
    assert [key for key, found in texts.items() if len(found) > 1] == []


def changed(jaxpr: Jaxpr) -> dict[str, Jaxpr]:
    """A program with something else in each place of it."""
    eqn, other = jaxpr.eqns[0], ft.make_jaxpr(lambda x: np.cos(x))(X).eqns[0]
    var = jaxpr.invars[0]
    wide = dataclasses.replace(var.aval, shape=(4,))
    single = dataclasses.replace(var.aval, dtype=np.dtype("f4"))

    def with_eqn(**fields: Any) -> Jaxpr:
        eqns = (dataclasses.replace(eqn, **fields), *jaxpr.eqns[1:])
        return dataclasses.replace(jaxpr, eqns=eqns, cache={})

    def with_aval(aval: Any) -> Jaxpr:
        twin = type(var)(aval)
        moved = with_eqn(inputs=tuple([twin if x is var else x for x in eqn.inputs]))
        return dataclasses.replace(moved, invars=(twin, *jaxpr.invars[1:]), cache={})

    literals = {
        f"literal {value!r}": with_eqn(inputs=(var, Literal(value)))
        for value in (2, 2.0, -0.0, 0.0, np.nan, True, np.float32(2), np.float64(2), 2j)
    }
    return {
        "as it is": jaxpr,
        "primitive": with_eqn(primitive=other.primitive),
        "parameters": with_eqn(params={**eqn.params, "another": 1}),
        "shape": with_aval(wide),
        "dtype": with_aval(single),
        "weak": with_aval(dataclasses.replace(var.aval, weak=True)),
        "constant": dataclasses.replace(
            jaxpr, consts=tuple([c + 1 for c in jaxpr.consts]), cache={}
        ),
        "results": dataclasses.replace(jaxpr, outvars=jaxpr.outvars[::-1], cache={}),
        "fewer equations": dataclasses.replace(
            jaxpr, eqns=jaxpr.eqns[:1], outvars=(eqn.outputs[0],) * 2, cache={}
        ),
        **literals,
    }


def test_every_place_of_a_program_is_in_its_key() -> None:
    weights = np.array([1.0, 2.0, 4.0])

    def fun(x: Any, y: Any) -> Any:
        product = x * y
        return product, np.sin(product) + weights

    variants = changed(ft.make_jaxpr(fun)(X, X))
    entry = Entry("entry", "program", (), ())
    keys = {name: _key_of(jaxpr, entry)[0] for name, jaxpr in variants.items()}
    assert len(set(keys.values())) == len(keys), keys


ENTRY = Entry(
    "entry", "program", (ArraySpec((3,), np.dtype("f8")),), (ArraySpec((3,), np.dtype("f8")),)
)
ENTRIES: dict[str, Any] = {
    "name": "other",
    "program": "other",
    "inputs": (ScalarSpec("float"),),
    "outputs": (ArraySpec((3,), np.dtype("i8")),),
    "single": True,
    "release_gil": True,
    "donated": {0: 0},
    "parameters": (1,),
}
SPECS: dict[str, Any] = {"shape": (4,), "dtype": np.dtype("i8"), "scalar": True}
TARGETS = {
    "triple": "other", "cpu": "other", "features": "+other", "llvm_version": "0",
    "llvmlite_version": "0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("record", "others"),
    [
        (ENTRY, ENTRIES),
        (ArraySpec((), np.dtype("f8")), SPECS),
        (ScalarSpec("int"), {"kind": "bool"}),
        (engine.Target("", "", "", ""), TARGETS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_field_of_a_record_is_in_the_key(record: Any, others: dict[str, Any]) -> None:
    assert set(others) == {field.name for field in dataclasses.fields(record)}
    known = cache_key(record)
    for name, value in others.items():
        assert cache_key(dataclasses.replace(record, **{name: value})) != known, name


def test_what_a_process_runs_on_is_in_the_key(monkeypatch: Any) -> None:
    seen = {key_of(np.sin, X)}

    def note() -> None:
        cache._environment.cache_clear()
        key = key_of(np.sin, X)
        assert key not in seen
        seen.add(key)

    with monkeypatch.context() as patch:
        patch.setattr(cache, "_source_digest", lambda: "another source")
        note()
    for module in (np, ft):
        with monkeypatch.context() as patch:
            patch.setattr(module, "__version__", "0.0")
            note()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "abiflags", "t", raising=False)
        note()
    with monkeypatch.context() as patch:
        patch.setattr(
            sys, "implementation", type("Other", (), {"cache_tag": "other", "name": "other"})
        )
        note()
    cache._environment.cache_clear()
    assert engine.target().llvmlite_version == llvmlite.__version__
    for cpu in SMALL:
        monkeypatch.setenv("FUNCTRANS_TARGET_CPU", cpu)
        note()


def test_arrays_that_the_code_contains_are_in_the_key() -> None:
    def program(*places: int) -> Jaxpr:
        (part,) = parts_of(lambda x, i: x[i], X, np.array(places))
        known = {part.jaxpr.invars[1]: np.array(places)}
        execution_of(part.jaxpr).constants = known
        return part.jaxpr

    entry = Entry("entry", "program", (), ())
    keys = {_key_of(program(*places), entry)[0] for places in ((0, 1), (1, 0), (0, 2))}
    assert len(keys) == 3


@pytest.mark.usefixtures("own_cache")
def test_the_level_is_in_the_key_of_a_program(monkeypatch: Any) -> None:
    loaded = []
    for level in engine.LEVELS:
        monkeypatch.setattr(compiled, "optimisation_level", lambda text, level=level: level)
        monkeypatch.setattr(cache, "_environment", lambda level=level: (f"part {level}",))
        function = compiled.compiled(simplify(ft.make_jaxpr(np.sin)(X))).direct
        assert function is not None
        loaded.append(function.program)  # alive, so that no two have one identity
    assert len(set(map(id, loaded))) == len(engine.LEVELS)


def test_the_compiler_imports_nothing_whose_source_is_not_in_the_digest() -> None:
    package = Path(ft.__file__).parent
    apart = re.compile(
        rf"^\s*(?:from|import) functrans\.({'|'.join(cache._APART)})\b", re.MULTILINE
    )
    below = ("compiler", "control", "emitter", "ir", "kernels", "passes", "primitives", "traces")
    files = [path for name in below for path in (package / name).rglob("*.py")]
    assert len(files) > 100
    assert [path for path in files if apart.search(path.read_text())] == []


@pytest.mark.usefixtures("own_cache")
def test_errors_of_code_from_disk_name_the_lines_of_the_present_program() -> None:
    """Programs that are the same but for their lines share code, and its error numbers."""

    def one_line(x: Any, i: int, j: int) -> Any:
        total = 0.0
        for k in (i, j):
            total = total + x[k]
        return total

    def two_lines(x: Any, i: int, j: int) -> Any:
        total = 0.0
        total = total + x[i]
        return total + x[j]

    def line_of(fun: Any, *args: int) -> int:
        with pytest.raises(IndexError) as caught:
            ft.jit(fun)(X, *args)
        (note,) = caught.value.__notes__
        return int(note.split(".py:")[1].split()[0]) - fun.__code__.co_firstlineno

    assert [line_of(one_line, 5, 0), line_of(one_line, 0, 5)] == [3, 3]
    assert [line_of(two_lines, 5, 0), line_of(two_lines, 0, 5)] == [2, 3]
