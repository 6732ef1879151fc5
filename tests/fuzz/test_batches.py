"""Batches find what is wrong in machine code and in rules, and name the program that it is in."""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import functrans as ft
from functrans.machine import engine
from functrans.primitives.cumulative import cumprod_p, cumsum_p
from functrans.primitives.elementwise import add_p, copysign_p

from . import common
from .batches import FORMS, KIND, SIZE, _Member
from .common import Case, Finding, Outcome, Sandbox, generator, judge, minimised

_compile_object = engine.compile_object


def _miscompiled(text: str, level: int, *target: Any) -> bytes:
    return _compile_object(text.replace(" fcmp olt ", " fcmp ult "), level, *target)


# What is broken, and a program, in one of the forms, that meets it.
FAULTS = {
    "a comparison in machine code": (
        lambda: setattr(engine, "compile_object", _miscompiled),
        ("native", "v0 % np.nan < v0"),
    ),
    "a lowering": (
        lambda: object.__setattr__(copysign_p, "lower", add_p.lower),
        ("captured", "np.copysign(v0, -1.0)"),
    ),
    "a batching rule": (
        lambda: object.__setattr__(cumsum_p, "batch", cumprod_p.batch),
        ("jit(vmap)", "np.cumsum(v0)"),
    ),
}


def _program(form: str, *texts: str) -> Case:
    return {
        "args": {"v0": "np.array([1.0, 2.0], 'f8').reshape((2,))"},
        "steps": [[[f"v{i}"], text, "exact"] for i, text in enumerate(texts, 1)],
        "runs": [form],
        "axes": [0],
        "words": "numpy",
    }


def _batch(*programs: Case, exact: bool = False) -> Case:
    return {"programs": list(programs), "optimised": False, "exact": exact}


def _with_others(program: Case) -> Case:
    others = [_program(form, "v0 * 2", "v1 - 1") for form in FORMS]
    return _batch(*others[:3], program, *others[3:])


class _Here:
    """What a sandbox does, in this process."""

    def judge(self, kind: common.Kind, *, case: Case) -> Outcome:
        return judge(kind, case)


def broken() -> list[tuple[str, str, Case]]:
    """Break one thing after the other, and find each; spoils the process that it runs in."""
    found = []
    for fault, (cause, (form, text)) in FAULTS.items():
        cause()
        case = _with_others(_program(form, text))
        outcome = judge(KIND, case)
        small, _ = minimised(_Here(), KIND, case, outcome)  # type: ignore[arg-type]  # no process
        found.append((fault, outcome.signature, small))
    return found


def test_what_is_broken_is_found_in_its_program(sandbox: Sandbox) -> None:
    for form, text in (program for _, program in FAULTS.values()):
        assert sandbox.judge(KIND, case=_with_others(_program(form, text))).signature == ""
    code = f"import json; from {__name__} import broken; print(json.dumps(broken()))"
    lines = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "FUNCTRANS_CACHE_DIR": "off"},
    ).stdout
    for fault, signature, small in json.loads(lines):
        form, text = FAULTS[fault][1]
        assert signature.startswith(f"{form}, native: values: "), fault
        (program,) = small["programs"]
        assert [step[1] for step in program["steps"]] == [text]


def test_a_program_that_ends_the_process_is_named(sandbox: Sandbox) -> None:
    crash = _program("native", "np.ctypeslib.ctypes.string_at(0)")
    case = _batch(_program("native", "v0 * 2"), crash)
    outcome = sandbox.judge(KIND, case=case)
    assert outcome.signature == "dies of SIGSEGV"
    small, found = minimised(sandbox, KIND, case, outcome)
    assert found.signature == outcome.signature
    (program,) = small["programs"]
    assert program["steps"] == crash["steps"]


def test_other_bits_are_found_in_values_and_derivatives() -> None:
    step = np.array([2.0, 4.0])
    for form, right in (
        ("native", [[step], [step]]),
        ("jit(jvp)", ([[step], [step]], [[step], [step]])),
        ("jit(vjp)", ([[step], [step]], (step,))),
    ):
        member = _Member(_program(form, "v0 * 2", "v0 + v0"))
        counts: Counter[str] = Counter()
        member.compare_bits(right, right, counts)
        leaves, structure = ft.tree.flatten(right)
        assert counts["outputs compared, bits"] == len(leaves)
        for i, leaf in enumerate(leaves):
            near = [*leaves[:i], np.nextafter(leaf, 9.0), *leaves[i + 1 :]]
            where = [r"v \* #", r"v \+ v", "derivatives"][min(i, 2)]
            with pytest.raises(Finding, match=rf"{re.escape(form)}, bits: {where}"):
                member.compare_bits(ft.tree.unflatten(structure, near), right, counts)


def test_what_is_refused_leaves_the_others() -> None:
    fine = _program("native", "v0 * 2")
    counts = judge(KIND, _batch(fine, _program("native", "np.zeros(int(np.sum(v0)))"), fine)).counts
    assert counts["programs"] == 2
    assert counts["refused, native: ConcretizationError"] == 1
    assert not counts["batches taken apart"]
    singular = _program("native", "np.linalg.inv(np.outer(v0, v0))")
    counts = judge(KIND, _batch(fine, singular, fine)).counts
    assert counts["programs"] == 2
    assert counts["refused, native: LinAlgError"] == 1
    assert counts["batches taken apart"] == 1


def test_some_batches_are_optimised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUNCTRANS_CACHE_DIR", "off")
    levels: set[int] = set()

    def compile_object(text: str, level: int, *target: Any) -> bytes:
        levels.add(level)
        return _compile_object(text, level, *target)

    monkeypatch.setattr(engine, "compile_object", compile_object)
    for optimised, expected in ((False, {0}), (True, {0, 1})):  # wrappers are at level 0
        levels.clear()
        programs = [
            _program("native", f"np.resize(v0, (200,)) * {i + optimised}.5") for i in (2, 4)
        ]
        outcome = judge(KIND, {**_batch(*programs), "optimised": optimised})
        assert not outcome.signature, outcome.text
        assert outcome.counts["programs"] == 2
        assert levels == expected


def test_cases_are_those_of_their_seed_and_have_a_script() -> None:
    case = KIND.draw(generator("batches", 3))
    assert case == KIND.draw(generator("batches", 3)) == json.loads(json.dumps(case))
    assert case != KIND.draw(generator("batches", 4))
    assert len(case["programs"]) == SIZE
    compile(KIND.script(case), "script", "exec")
