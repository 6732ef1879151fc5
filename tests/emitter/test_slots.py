"""Vectors in memory on the stack agree in place and type, and every text compiles everywhere."""

import pickle
import random
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.compiler.compiled import NativePart, plan_of
from functrans.compiler.programs import write_program
from functrans.emitter.slots import Slots
from functrans.passes.simplify import simplify

OPERATIONS: dict[str, Callable[..., Any]] = {
    "outer": lambda x, y: np.outer(x[0], y[:, 0]),
    "outer transposed": lambda x, y: np.outer(x[0], y[:, 0]).T,
    "outer of a column": lambda x, y: np.outer(x[:, 0], y[0]).T,
    "transpose": lambda x, y: (x * y).T,
    "reshape": lambda x, y: np.reshape((x * y).T, (-1,)),
    "sum of a transpose": lambda x, y: (x * y).T.sum(0),
    "stack": lambda x, y: np.stack([x * y, y], axis=-1),
    "stack of rows": lambda x, y: np.stack([x[0] * y[0], x[-1]], axis=1).T[::-1],
    "concatenate": lambda x, y: np.concatenate([x * y, y], axis=1)[:, ::-1],
    "concatenate rows": lambda x, y: np.concatenate([x * y, y], axis=0).T,
    "einsum": lambda x, y: np.einsum("ij,kj->ki", x, y),
    "einsum transposed": lambda x, y: np.einsum("ij,jk->ki", x, y.T),
    "slices": lambda x, y: (x * y)[:, 1:] + y[:, :-1],
    "steps": lambda x, y: (x * y)[::-1, ::2],
    "take": lambda x, y: np.take(x * y, [0, x.shape[1] - 1, 0], axis=1),
    "roll": lambda x, y: np.roll(x * y, 1, axis=1) * np.flip(y, 1),
    "product": lambda x, y: (x @ y.T) @ y,
    "where": lambda x, y: np.where((x * y).T != 0, (x * y).T, y.T)[..., ::-1],
    "cumulative": lambda x, y: np.cumsum((x * y).T, axis=0).T * y,
}
DTYPES = ["c16", "c8", "f8", "f4", "f2", "i8", "i4", "i2", "i1", "u1", "?"]


def texts_of(fun: Callable[..., Any], *args: Any) -> list[str]:
    """The texts of a function's native parts."""
    plan = plan_of(simplify(ft.make_jaxpr(fun)(*args)))
    return [write_program(part.jaxpr).text for part in plan if isinstance(part, NativePart)]


def texts() -> dict[str, str]:
    """Programs of one or two operations on short arrays of all dtypes, by what they are."""
    choose = random.Random(0)
    found = {}
    for name, first in OPERATIONS.items():
        for dtype in (*DTYPES, "c16", "c8"):
            shape = choose.choice((1, 2, 3, choose.randint(1, 8))), choose.randint(1, 8)
            other, second = choose.choice([("", None), *OPERATIONS.items()])
            x = np.ones(shape, dtype)

            def both(x: Any, y: Any, first: Any = first, second: Any = second) -> Any:
                z = first(x, y)
                return z if second is None or z.ndim != 2 else second(z, z)

            for i, text in enumerate(texts_of(both, x, x)):
                found[f"{name}, {other} {dtype}{shape} {i}"] = text
    found["reported"] = texts_of(
        lambda a, b: np.outer(a, b).T, np.ones(1, "c16"), np.ones(3, "c16")
    )[0]
    return found


_ADDRESS = re.compile(r"(%\S+) = getelementptr (?:inbounds )?(\w+), ptr (%\S+), i64 (\S+)$")
_LOAD = re.compile(r"%\S+ = load (.*), ptr (%\S+), align \d+$")
_STORE = re.compile(r"store (<[^>]*>|\w+) (.*), ptr (%\S+), align \d+$")
_BYTES = {"i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


def disagreements(text: str) -> list[str]:
    """Vectors that overlap a stored one of another place or type, where LLVM sees all accesses."""
    places: dict[str, tuple[str, int]] = {}
    unknown: set[str] = set()
    accesses: dict[str, list[tuple[int, str, bool, str]]] = defaultdict(list)
    for line in map(str.strip, text.splitlines()):
        if " = alloca " in line:
            name = line.split()[0]
            places[name] = name, 0
        elif (match := _ADDRESS.match(line)) and match[3] in places:
            slot, start = places[match[3]]
            if match[4].isdigit():
                places[match[1]] = slot, start + int(match[4]) * _BYTES[match[2]]
            else:
                unknown.add(slot)
        elif (match := _LOAD.match(line)) and match[2] in places:
            slot, start = places[match[2]]
            accesses[slot].append((start, match[1], False, line))
        elif (match := _STORE.match(line)) and match[3] in places:
            slot, start = places[match[3]]
            accesses[slot].append((start, match[1], True, line))
        else:
            unknown.update(
                places[word][0] for word in re.findall(r"%[\w.]+", line) if word in places
            )
    return [
        f"{first[3]} | {second[3]}"
        for slot, found in accesses.items()
        if slot not in unknown
        for first in found
        for second in found
        if first[2] and "<" in first[1] and "<" in second[1]
        and first[:2] != second[:2]
        and first[0] < second[0] + _size(second[1]) and second[0] < first[0] + _size(first[1])
    ]  # fmt: skip


def _size(type_: str) -> int:
    lanes, _, element = type_.strip("<>").partition(" x ")
    return int(lanes) * _BYTES[element]


@pytest.fixture(scope="module")
def programs() -> dict[str, str]:
    return texts()


def test_vectors_on_the_stack_agree_in_place_and_type(programs: dict[str, str]) -> None:
    assert {name: found for name, text in programs.items() if (found := disagreements(text))} == {}


def test_without_settling_they_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Slots, "settle", lambda self: None)
    for dtype, vectors in (("c16", "<6 x double>"), ("c8", "<6 x float>")):
        ones = np.ones(1, dtype), np.ones(3, dtype)
        (text,) = texts_of(lambda a, b: np.outer(a, b).T, *ones)
        found = disagreements(text)
        assert found
        assert all(vectors in pair for pair in found)


COMPILE = """
import pickle, sys
from functrans.machine import engine
from functrans.compiler.compiled import optimisation_level
engine._llvm().initialize_all_targets()
engine._llvm().initialize_all_asmprinters()
targets = [
    engine.Target(f"{triple}-elf", cpu, "", "")
    for triple, cpu in (
        ("x86_64-pc-linux-gnu", "x86-64"),
        ("x86_64-pc-windows-msvc", "x86-64-v3"),
        ("x86_64-pc-linux-gnu", "x86-64-v4"),
        ("x86_64-apple-darwin24.0.0", "haswell"),
        ("aarch64-unknown-linux-gnu", "generic"),
        ("arm64-apple-darwin24.0.0", "apple-m1"),
        ("aarch64-unknown-linux-gnu", "neoverse-v2"),
    )
] + [engine.target()]
for number, text in enumerate(pickle.load(sys.stdin.buffer)):
    for target in targets if "<6 x double>" in text else targets[number % 4 :: 4]:
        print(number, target.triple, target.cpu, flush=True)
        engine.compile_object(text, optimisation_level(text), target)
print("done", flush=True)
"""


def test_every_text_compiles_for_every_processor(programs: dict[str, str]) -> None:
    """In a process of its own, which LLVM ends where an assertion of it does not hold."""
    names = sorted(programs)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", COMPILE],
        input=pickle.dumps([programs[name] for name in names]),
        capture_output=True, check=False, timeout=300,
    )  # fmt: skip
    last = done.stdout.decode().split("\n")[-2]
    where = f"{last}: {names[int(last.split()[0])]}" if last != "done" else last
    assert (done.returncode, last) == (0, "done"), (where, done.stderr.decode()[-2000:])


@pytest.mark.parametrize("dtype", ["c16", "c8", "f8", "i2"])
@pytest.mark.parametrize("extents", [(1, 3), (3, 1), (3, 3), (2, 3), (1, 5)])
def test_elements_that_were_stored_as_another_vector_are_right(
    dtype: str, extents: tuple[int, int]
) -> None:
    a, b = (np.arange(1, n + 1).astype(dtype) for n in extents)
    np.testing.assert_array_equal(ft.jit(lambda a, b: np.outer(a, b).T)(a, b), np.outer(a, b).T)
