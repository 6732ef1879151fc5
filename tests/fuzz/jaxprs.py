"""Damaged programs: whatever ``Jaxpr.load`` accepts runs, natively as in the interpreter.

Programs of all samples of the primitives, and random ones with their derivatives, are saved and
then changed: numbers, axes, dtypes, shapes, names, operands, equations, trees. Each damaged file
must be refused with ``CacheFormatError``, or give compiled the bits of the interpreter in
compiler-math mode, or the same exception from both. A program that runs for too long is stopped, as
by Ctrl-C, and not compared.
"""

from __future__ import annotations

import base64
import contextlib
import copy
import io
import json
import signal
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import functrans as ft
from functrans.core.dispatch import bind
from functrans.core.jaxpr import subjaxprs
from functrans.errors import CacheFormatError, FunctransError

from .common import Case, Finding, Kind
from .judging import same_bits
from .programs import KIND as PROGRAMS
from .programs import Program
from .reference import TRACED

MAX_ELEMENTS = 10**5
MAX_S = 5.0

NUMBERS = (-1, 0, 1, 2, 3, 7, 100, -2, 255, 2**31, -(2**63), 2**63 - 1)
OTHERS: tuple[Any, ...] = (None, True, False, "", "x", 0.5, [], [0], {}, [-1, 2])


class Stopped(Exception):  # noqa: N818  # it is a result, not an error of the fuzzer
    """The time for one run is over."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise ``Stopped`` in this thread after some seconds."""

    def stop(*_: object) -> None:
        raise Stopped

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Jaxprs(Kind):
    """See the module's docstring."""

    name = "jaxprs"
    timeout_s = 60.0
    cases_per_child = 3000

    def draw(self, rng: np.random.Generator) -> Case:
        while True:
            jaxpr = _drawn_program(rng)
            stream = io.BytesIO()
            try:
                _save(jaxpr, stream)
            except FunctransError:  # a callback, or what else has no file
                continue
            break
        with zipfile.ZipFile(stream) as archive:
            document = json.loads(archive.read("program.json"))
            arrays = [
                [name, base64.b64encode(archive.read(name)).decode()]
                for name in archive.namelist()
                if name != "program.json"
            ]
        steps: list[Any] = []
        damaged = copy.deepcopy(document)
        for _ in range(int(rng.integers(1, 4))):
            step = _drawn_change(rng, damaged)
            _change(damaged, *step)
            steps.append(step)
        return {"document": document, "arrays": arrays, "steps": steps}

    def run(self, case: Case, counts: Counter[str]) -> None:
        document = _damaged(case)
        path = "damaged.zip"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("program.json", json.dumps(document))
            for name, text in case["arrays"]:
                archive.writestr(name, base64.b64decode(text))
        try:
            with time_limit(MAX_S):
                jaxpr = ft.Jaxpr.load(path)
        except CacheFormatError:
            counts["files, refused"] += 1
            return
        counts["files, loaded"] += 1
        if _elements(jaxpr) > MAX_ELEMENTS:
            counts["files, too large to run"] += 1
            return
        _compare_runs(jaxpr, _changed_primitives(case), counts)

    def script(self, case: Case) -> str:
        document = _damaged(case)
        changes = "".join(f"# {path} = {value!r}\n" for path, value in case["steps"])
        return (
            f"{changes}import base64, json, zipfile\n"
            "import functrans as ft, numpy as np\n"
            "with zipfile.ZipFile('damaged.zip', 'w') as archive:\n"
            f"    archive.writestr('program.json', {json.dumps(document)!r})\n"
            f"    for name, text in {case['arrays']}:\n"
            "        archive.writestr(name, base64.b64decode(text))\n"
            "jaxpr = ft.Jaxpr.load('damaged.zip')\n"
            "print(jaxpr)\n"
            "args = [np.ones(v.aval.shape, v.aval.dtype) for v in jaxpr.invars]\n"
            "print(ft.eval_jaxpr(jaxpr, None, *args))\n"
            "print(ft.jit(lambda *xs: ft.eval_jaxpr(jaxpr, None, *xs))(*args))\n"
        )


def _save(jaxpr: Any, stream: Any) -> None:
    """``Jaxpr.save`` into memory."""
    jaxpr.save("whole.zip")
    stream.write(Path("whole.zip").read_bytes())


def _drawn_program(rng: np.random.Generator) -> Any:
    """The program of a sample, or of a random case, perhaps with its derivative."""
    while True:
        try:
            return _of_sample(rng) if rng.random() < 0.6 else _of_case(rng)
        except (FunctransError, ValueError, TypeError, IndexError):  # not staged with such operands
            continue


def _of_case(rng: np.random.Generator) -> Any:
    program = Program(PROGRAMS.draw(rng))
    fun = program.function(TRACED)
    args = list(program.args.values())
    if rng.random() < 0.3:
        return ft.make_jaxpr(lambda *xs: ft.jvp(fun, xs, xs))(*args)
    return ft.make_jaxpr(ft.vmap(fun) if rng.random() < 0.2 else fun)(*args)


def _of_sample(rng: np.random.Generator) -> Any:
    from samples import ROWS  # takes seconds; only children that run this kind need it

    row = ROWS[rng.integers(len(ROWS))]
    samples = list(row.samples())
    sample = samples[rng.integers(len(samples))]
    return ft.make_jaxpr(lambda *xs: bind(row.primitive, *xs, **sample.params))(*sample.operands)


# changes ----------------------------------------------------------------------------------------


def _places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values in a document."""
    if path:
        yield path
    if isinstance(document, dict):
        for key, value in document.items():
            yield from _places(value, (*path, key))
    elif isinstance(document, list):
        for i, value in enumerate(document):
            yield from _places(value, (*path, i))


def _at(document: Any, path: Any) -> Any:
    for key in path:
        document = document[key]
    return document


def _change(document: Any, path: Any, value: Any) -> None:
    """Put a value at a path."""
    *parents, last = path
    _at(document, parents)[last] = copy.deepcopy(value)


def _damaged(case: Case) -> Any:
    """The document with all changes."""
    document = copy.deepcopy(case["document"])
    for path, value in case["steps"]:
        with contextlib.suppress(LookupError, TypeError):  # it needs a change that was left out
            _change(document, path, value)
    return document


def _drawn_change(rng: np.random.Generator, document: Any) -> list[Any]:
    """A path and a new value for it: parameters, then avals and operands, then anything."""
    places = list(_places(document))
    part = rng.random()
    if part < 0.5:
        places = [p for p in places if p[0] == "programs" and len(p) > 5 and p[4] == 2] or places
    elif part < 0.85:
        places = [p for p in places if p[0] in ("programs", "avals", "literals")] or places
    path = places[rng.integers(len(places))]
    old = _at(document, path)
    return [list(path), _changed(rng, old, document, places)]


def _changed(rng: np.random.Generator, old: Any, document: Any, places: Any) -> Any:
    if rng.random() < 0.15:
        return OTHERS[rng.integers(len(OTHERS))]
    if rng.random() < 0.3:  # what stands elsewhere
        return _at(document, places[rng.integers(len(places))])
    if isinstance(old, bool):
        return not old
    if isinstance(old, int):
        near = old + int(rng.choice([-1, 1, 2]))
        return near if rng.random() < 0.6 else int(rng.choice([-old, *NUMBERS]))
    if isinstance(old, str):
        return str(rng.choice(["f4", "f8", "i8", "c16", "b1", "f2", "float32", "sin", "V8", "O"]))
    if isinstance(old, list) and old:
        i, j = int(rng.integers(len(old))), int(rng.integers(len(old)))
        swapped = [old[j] if k == i else old[i] if k == j else v for k, v in enumerate(old)]
        kinds = [old[:i] + old[i + 1 :], [*old, old[i]], swapped, [*old[:i], old[j], *old[i:]]]
        return kinds[rng.integers(len(kinds))]
    if isinstance(old, dict) and old:
        gone = list(old)[rng.integers(len(old))]
        return {key: value for key, value in old.items() if key != gone}
    return OTHERS[rng.integers(len(OTHERS))]


# runs -------------------------------------------------------------------------------------------


def _elements(jaxpr: Any) -> int:
    """Of the largest value in a program."""
    largest = 0
    pending = [jaxpr]
    while pending:
        current = pending.pop()
        results = [v for eqn in current.eqns for v in eqn.outputs]
        for var in (*current.invars, *results):
            largest = max(largest, int(np.prod([float(n) for n in var.aval.shape], initial=1.0)))
        pending += [sub for eqn in current.eqns for sub in subjaxprs(eqn.params)]
    return largest


def _argument(aval: Any, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=aval.shape) * 2
    if aval.dtype.kind in "biu":
        numbers = np.abs(np.round(numbers))
    return np.asarray(numbers).astype(aval.dtype)


def _outcome(jitted: Any, args: list[Any]) -> Any:
    """Results, or the class of what was raised."""
    try:
        with np.errstate(all="ignore"), time_limit(MAX_S):
            return jitted(*args)
    except (Stopped, MemoryError):
        return Stopped
    except Exception as error:
        return type(error)


def _changed_primitives(case: Case) -> str:
    """Names of the primitives whose equations were changed, or what else was."""
    names = set()
    for path, _ in case["steps"]:
        name = str(path[0])
        if path[0] == "programs" and len(path) > 3 and path[2] == "eqns":
            with contextlib.suppress(LookupError, TypeError):
                eqn = _at(case["document"], path[:4])
                name = case["document"]["primitives"][eqn[0]]
        names.add(name)
    return " ".join(sorted(names))


def _compare_runs(jaxpr: Any, names: str, counts: Counter[str]) -> None:
    args = [_argument(var.aval, i) for i, var in enumerate(jaxpr.invars)]
    jitted = ft.jit(lambda *xs: ft.eval_jaxpr(jaxpr, None, *xs))
    with ft.config(compiler_math=True):
        expected = _outcome(jitted, args)
    found = _outcome(jitted, args)
    if Stopped in (found, expected):
        counts["files, stopped"] += 1
        return
    if isinstance(found, type) or isinstance(expected, type):
        if found is not expected:
            what = [x.__name__ if isinstance(x, type) else "a result" for x in (found, expected)]
            raise Finding(f"native {what[0]}, interpreted {what[1]}: {names}", str(jaxpr))
        counts[f"files, both raise {found.__name__}"] += 1
        return
    for one, other in zip(found, expected, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype) or not same_bits(one, other).all():
            raise Finding(f"values: {names}", f"{one!r} instead of {other!r}\n{jaxpr}")
    counts["files, compared"] += 1


KIND = Jaxprs()
